"""ALBERT's records: the original's."""

import dataclasses

import pytest

from bert.pretraining import piece_tables
from bert.pretraining.albert_instances import StorablePieces
from tests.kit.pretraining_records import assert_equal_to_recording, create

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
