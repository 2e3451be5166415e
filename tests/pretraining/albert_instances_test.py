"""ALBERT's records: the original's."""

import dataclasses
import random

import numpy as np
import pytest

from bert.pretraining import albert_instances, original_stream, piece_tables
from bert.pretraining.albert_instances import Masking, StorablePieces, create_masked_lm_predictions
from tests.kit.pretraining_records import assert_equal_to_recording, create, sha256

_SHORT = {"max_seq_length": 64, "dupe_factor": 3, "max_predictions_per_seq": 10}
GOLDEN = {
  "sample_default": {"max_seq_length": 128, "dupe_factor": 5},
  "sample_permutation": {**_SHORT, "do_permutation": True},
  "sample_random_next": {**_SHORT, "random_next_sentence": True, "random_seed": 7},
  "sample_long_ngrams": {**_SHORT, "favor_shorter_ngram": False, "ngram": 5},
  "sample_pieces": {**_SHORT, "do_whole_word_mask": False},
  "sample_wordpiece": _SHORT,
  "sample_no_masks": {**_SHORT, "dupe_factor": 1, "masked_lm_prob": 0},
  "wiki_64": {**_SHORT, "dupe_factor": 1, "short_seq_prob": 0.3, "random_seed": 7},
  "commas": {"max_seq_length": 64, "dupe_factor": 1},
}


@pytest.mark.parametrize("name", GOLDEN)
def test_records_of_the_original(name, golden_dir, data_dir, released_vocab_file, tmp_path):
  golden = golden_dir / "albert"
  text = data_dir / "corpus" / "sample_text.txt"
  flags = {"vocab_file": "unused", "spm_model_file": golden / "tiny_spm.model"}
  if name == "sample_wordpiece":
    flags = {"vocab_file": released_vocab_file}
  elif name == "wiki_64":
    wiki = (data_dir / "corpus" / "wikitext2_valid.txt").read_text(encoding="utf-8")
    text = tmp_path / "text"
    text.write_text("".join(wiki.splitlines(keepends=True)[:600]), encoding="utf-8")
  elif name == "commas":
    text = golden / "pretraining_data" / "commas.txt"
    flags["spm_model_file"] = golden / "commas_spm.model"
  create(tmp_path / "out", text, format="albert", **flags, **GOLDEN[name])
  assert_equal_to_recording(tmp_path / "out", golden / "pretraining_data" / f"{name}.jsonl.gz")


@pytest.mark.parametrize(
  ("flags", "expected"),
  [
    ({}, "71e1fff7cb148126"),
    ({"do_permutation": True, "favor_shorter_ngram": False}, "97e90fdb32a02380"),
    ({"random_next_sentence": True, "do_whole_word_mask": False}, "daa94395161d3bcb"),
  ],
)
def test_the_stream_is_pinned(flags, expected, tmp_path):
  """Without the recordings: what this program wrote when it was equal to the original."""
  create(tmp_path / "out", format="albert", max_seq_length=64, dupe_factor=2, **flags)
  assert sha256(tmp_path / "out")[:16] == expected


# ---------------------------------------------------------------------------------------------
# Masks.

TOKENS = ["[CLS]", *["un", "##aff", "##able", "to", "be"] * 5, "[SEP]", *["in", "##side"] * 9]
TOKENS.append("[SEP]")


def masking_of(seed, **changes) -> Masking:
  values = {
    "masked_lm_prob": 0.3,
    "max_predictions_per_seq": 40,
    "begins_unit": piece_tables.begins_word_of_word_pieces,
    "cumulated": albert_instances.ngram_shares(3),
    "do_permutation": False,
    "vocab_words": ["random"],
    "rng": random.Random(seed),
    "sizes": np.random.RandomState(seed),
  }
  return Masking(**(values | changes))


def words_with(positions):
  """Whether each word is chosen as a whole or not at all."""
  words = original_stream.word_positions(TOKENS, piece_tables.begins_word_of_word_pieces)
  return all(len(set(word) & set(positions)) in (0, len(word)) for word in words)


@pytest.mark.parametrize("most", [40, 5])
def test_words_are_masked_whole_and_labels_are_the_tokens(most):
  for seed in range(60):
    output, positions, labels = create_masked_lm_predictions(
      TOKENS, masking_of(seed, max_predictions_per_seq=most)
    )
    assert positions == sorted(set(positions))
    assert 1 <= len(positions) <= min(most, round(len(TOKENS) * 0.3))
    assert labels == [TOKENS[position] for position in positions]
    assert words_with(positions)
    for position, token in enumerate(output):
      allowed = {TOKENS[position], *(["[MASK]", "random"] if position in positions else [])}
      assert token in allowed


def test_lengths_of_ngrams():
  masking = masking_of(1)
  sizes = [masking.draw_size() for _ in range(20_000)]
  shares = np.bincount(sizes, minlength=4)[1:] / len(sizes)
  assert shares == pytest.approx([6 / 11, 3 / 11, 2 / 11], abs=0.01)
  generator = np.random.RandomState(1)  # and the very draws of NumPy's own choice
  chances = 1 / np.arange(1, 4)
  drawn = generator.choice(np.arange(1, 4), size=200, p=chances / chances.sum())
  assert sizes[:200] == drawn.tolist()


def test_permuted_tokens_are_predicted_and_change_places():
  moved = 0
  for seed in range(40):
    plain, masked, _ = create_masked_lm_predictions(TOKENS, masking_of(seed))
    output, positions, labels = create_masked_lm_predictions(
      TOKENS, masking_of(seed, do_permutation=True)
    )
    exchanged = sorted(set(positions) - set(masked))
    assert set(masked) < set(positions)
    assert labels == [TOKENS[position] for position in positions]
    assert words_with(exchanged)
    assert sorted(output[p] for p in exchanged) == sorted(TOKENS[p] for p in exchanged)
    assert [output[p] for p in masked] == [plain[p] for p in masked]
    moved += sum(output[p] != TOKENS[p] for p in exchanged)
  assert moved > 100


def test_nothing_is_drawn_without_masks():
  masking = masking_of(3, masked_lm_prob=0)
  assert create_masked_lm_predictions(TOKENS, masking) == (TOKENS, [], [])
  assert masking.rng.random() == random.Random(3).random()


# ---------------------------------------------------------------------------------------------
# Pieces.


@dataclasses.dataclass
class Spelled:
  """A tokenizer that leaves unknown pieces their spelling, as sentencepiece does."""

  vocab: dict

  def tokenize(self, text):
    return text.split(" ")


@pytest.fixture
def pieces():
  tokens = ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]", "▁the", "re"]
  tokenizer = Spelled({token: index for index, token in enumerate(tokens)})
  return StorablePieces(
    piece_tables.Tables(tokenizer, piece_tables.begins_word_of_sentence_pieces, "<unk>")
  )


def test_an_unknown_piece_still_tells_where_a_word_begins(pieces):
  tokens = pieces.tokenize("▁the re ▁qu xyz é ^~ 7")
  assert [token in pieces.word_starts for token in tokens] == [1, 0, 1, 0, 1, 0, 1]
  assert pieces.convert_tokens_to_ids(tokens) == [5, 6, 1, 1, 1, 1, 1]
  token_of = {index: token for token, index in pieces.vocab.items()}
  assert [token_of[pieces.vocab[token]] for token in tokens] == tokens


def test_special_tokens_begin_a_word(pieces):
  assert {"[CLS]", "[SEP]", "▁the", "<unk>"} <= pieces.word_starts
  assert "re" not in pieces.word_starts
