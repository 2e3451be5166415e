"""RoBERTa's records: sequences of whole sentences, as fairseq fills them, with a byte-level BPE."""

import random

import pytest

from bert.pretraining import piece_tables
from bert.pretraining.record_settings import RecordSettings
from tests.kit import byte_pairs
from tests.kit.pretraining_records import (
  SCRIPT,
  create,
  features_of,
  flags_for,
  manifest_of,
  sha256,
)

WORDS = ["the", "Hello", "and", "on", "at", "a", "well", "in", "<s>", "<mask>", "(re)", "é..."]
CLS, PAD, SEP = 0, 1, 2


@pytest.fixture(scope="module")
def vocab_file(tmp_path_factory) -> str:
  return byte_pairs.write(tmp_path_factory.mktemp("vocabulary"))


def settings_of(vocab_file, **changes):
  values = {
    **dict(format="roberta", max_seq_length=32, dupe_factor=1, short_seq_prob=0.0),
    **dict(dynamic_masking=True, no_next_sentence=True),
  }
  return RecordSettings(vocab_file, **{**values, **changes})


def write_text(path, documents=30, words=(1, 9), seed=0) -> list[list[str]]:
  """Documents of one to six lines."""
  rng = random.Random(seed)
  made = [
    [" ".join(rng.choices(WORDS, k=rng.randint(*words))) for _ in range(rng.randint(1, 6))]
    for _ in range(documents)
  ]
  path.write_text("\n\n".join(map("\n".join, made)) + "\n", encoding="utf-8")
  return made


def blocks_of_fairseq(items, size) -> list[list[int]]:
  """Its break mode "complete", in plain Python: as many whole items as fit, one at least."""
  blocks: list[list[int]] = [[]]
  for item in items:
    if blocks[-1] and len(blocks[-1]) + len(item) > size:
      blocks.append([])
    blocks[-1] += item
  return [[CLS, *block] for block in blocks]


def items_of(documents, ids_of):
  """What fairseq makes of lines: each with </s> behind it, and of an empty line </s> alone."""
  for number, document in enumerate(documents):
    if number:
      yield [SEP]
    for line in document:
      yield [*ids_of(line), SEP]


def tokens_of(features) -> list[int]:
  return features["input_ids"][features["input_mask"] == 1].tolist()


# ---------------------------------------------------------------------------------------------
# What a sequence is.


def test_sequences_are_those_of_fairseq(vocab_file, tmp_path):
  documents = write_text(tmp_path / "text", words=(1, 5))
  settings = settings_of(vocab_file, max_seq_length=48)
  found = features_of(tmp_path / "text", settings)
  ids_of = piece_tables.load_tables(settings).ids
  assert [tokens_of(each) for each in found] == blocks_of_fairseq(items_of(documents, ids_of), 47)
  for features in found:
    assert set(features) == {"input_ids", "input_mask", "segment_ids", "next_sentence_labels"}
    assert features["input_ids"].shape == (48,)
    assert (features["input_ids"][features["input_mask"] == 0] == PAD).all()
    assert not features["segment_ids"].any()
  inside = [tokens[1:-1] for tokens in map(tokens_of, found)]
  assert sum(tokens[i : i + 2] == [SEP, SEP] for tokens in inside for i in range(46)) > 5


def test_a_line_that_is_too_long_goes_on_in_the_next_sequence(vocab_file, tmp_path):
  """fairseq leaves such lines out; here no text is lost."""
  lines = ["a" * 2, "b" * 70, "c" * 5]
  (tmp_path / "text").write_text(f"{lines[0]}\n\n{lines[1]}\n{lines[2]}\n")
  settings = settings_of(vocab_file, max_seq_length=32)
  ids_of = piece_tables.load_tables(settings).ids
  first, long, last = map(ids_of, lines)
  assert len(long) == 70
  assert (
    [tokens_of(each) for each in features_of(tmp_path / "text", settings)]
    == [
      [CLS, *first, SEP, SEP],  # a document's end that fills a sequence
      [CLS, *long[:30], SEP],
      [CLS, *long[30:60], SEP],
      [CLS, *long[60:], SEP, *last, SEP],
    ]
  )
  # A document's separator alone would be a sequence without text.
  (tmp_path / "text").write_text("\n\n".join(["b" * 30, "b" * 31]))
  assert [len(tokens_of(each)) for each in features_of(tmp_path / "text", settings)] == [32, 32, 3]


def test_special_tokens_in_a_text_are_text(vocab_file, tmp_path):
  (tmp_path / "text").write_text("a </s> <mask> <pad>\n")
  settings = settings_of(vocab_file)
  [features] = features_of(tmp_path / "text", settings)
  vocab = piece_tables.load_tables(settings).tokenizer.vocab
  text = tokens_of(features)[1:-1]
  assert len(text) > 10
  assert not {SEP, PAD, vocab["<mask>"]} & set(text)


def test_words_begin_with_a_space_or_a_line(vocab_file, tmp_path):
  (tmp_path / "text").write_text("Hello, the well\nHello\n\nin\n")
  settings = settings_of(vocab_file, do_whole_word_mask=True)
  [features] = features_of(tmp_path / "text", settings)
  names = piece_tables.load_tables(settings).tokenizer.inv_vocab
  found = list(zip(map(names.get, tokens_of(features)), features["word_starts"], strict=False))
  assert found == [
    *[("<s>", 0), ("Hello", 1), (",", 0), ("Ġthe", 1), ("Ġw", 1), ("ell", 0), ("</s>", 0)],
    *[("Hello", 1), ("</s>", 0), ("</s>", 0), ("in", 1), ("</s>", 0)],
  ]


# ---------------------------------------------------------------------------------------------
# Masks in the records.


# ---------------------------------------------------------------------------------------------
# The script.


def test_the_vocabulary_is_enough(vocab_file, tmp_path):
  done = create(tmp_path / "a", vocab_file=vocab_file)
  assert "a byte-level BPE, means --format=roberta" in done
  assert (
    manifest_of(tmp_path / "a").items()
    >= {
      **{"format": "roberta", "dynamic_masking": True, "pad_id": PAD, "max_seq_length": 512},
      **{"max_predictions_per_seq": 77, "dupe_factor": 1},
    }.items()
  )
  assert "do_lower_case" not in manifest_of(tmp_path / "a")
  # The folder of a model, and several files.
  folder = vocab_file.rpartition("/")[0]
  create(tmp_path / "b", vocab_file=folder, format="roberta", num_workers=1)
  assert sha256(tmp_path / "a") == sha256(tmp_path / "b")


@pytest.mark.parametrize(
  ("changes", "message"),
  [
    ({"format": "bert"}, "is a byte-level BPE, which --format=bert does not take. Give --format=r"),
    ({"format": "electra"}, "which --format=electra does not take"),
    ({"do_permutation": True}, "means --format=roberta, with which --do_permutation means nothing"),
    ({"short_seq_prob": 0.1}, "--short_seq_prob means nothing"),
    ({"ngram_max": 3}, "With --format=roberta, add --nodynamic_masking."),
    ({"vocab_file": "{tmp}"}, "--vocab_file={tmp}: {tmp} has no vocab.txt or spiece.model"),
  ],
)
def test_what_cannot_be_is_one_clear_line(vocab_file, tmp_path, changes, message):
  values = {**flags_for(tmp_path / "out", vocab_file=vocab_file), **changes}
  values = {name: str(value).replace("{tmp}", str(tmp_path)) for name, value in values.items()}
  assert message.replace("{tmp}", str(tmp_path)) in SCRIPT.error_of(**values)
