"""ELECTRA's records: the original's, and those of any number of processes."""

import itertools
import random

import pytest

from bert.pretraining.electra_examples import SegmentBuilder
from tests.kit.paths import SAMPLE_VOCAB
from tests.kit.pretraining_records import assert_equal_to_recording, create
from tests.kit.script_runs import values_in


def lines(path, first, last):
  """Lines `first` to `last` of a text, counted from 1."""
  return "".join(path.read_text(encoding="utf-8").splitlines(keepends=True)[first - 1 : last])


# Name -> vocabulary, flags. The texts: `corpus_of`.
GOLDEN = {
  "sample_128": ("released", {"max_seq_length": 128, "random_seed": 12345}),
  "sample_32": ("released", {"max_seq_length": 32, "random_seed": 1}),
  "sample_32_cased": ("released", {"max_seq_length": 32, "random_seed": 1, "do_lower_case": False}),
  "sample_32_accents": (
    "released",
    {"max_seq_length": 32, "random_seed": 1, "strip_accents": False},
  ),
  "three_files_64": ("released", {"max_seq_length": 64, "random_seed": 7}),
  "wiki_64": ("released", {"max_seq_length": 64, "random_seed": 12345}),
  "tiny_48": ("tiny", {"max_seq_length": 48, "random_seed": 3}),
}


@pytest.fixture
def corpus_of(data_dir, tmp_path):
  """A folder with the text of a recording."""
  sample, wiki = (data_dir / "corpus" / name for name in ("sample_text.txt", "wikitext2_valid.txt"))

  def write(name):
    texts = {"a.txt": sample.read_text(encoding="utf-8")}
    if name == "three_files_64":
      texts = {"a.txt": lines(wiki, 1, 40), "b.txt": texts["a.txt"], "c.txt": lines(wiki, 900, 930)}
    elif name in ("wiki_64", "tiny_48"):
      texts = {"a.txt": lines(wiki, 1, 800)}
    folder = tmp_path / "text"
    folder.mkdir()
    for file, text in texts.items():
      (folder / file).write_text(text, encoding="utf-8")
    return folder / "*"

  return write


@pytest.mark.parametrize("name", GOLDEN)
def test_records_of_the_original(name, golden_dir, corpus_of, released_vocab_file, tmp_path):
  vocabulary, flags = GOLDEN[name]
  vocab_file = released_vocab_file
  if vocabulary == "tiny":
    vocab_file = golden_dir / "electra" / "tiny_vocab.txt"
  create(tmp_path / "out", corpus_of(name), format="electra", vocab_file=vocab_file, **flags)
  recording = golden_dir / "electra" / "pretraining_data" / f"{name}.jsonl.gz"
  assert_equal_to_recording(tmp_path / "out", recording)


# ---------------------------------------------------------------------------------------------
# Segments.


def segments_of(sentences, max_length=32, seed=0):
  """The segments of one document."""
  builder = SegmentBuilder(max_length, random.Random(seed))
  found = [*map(builder.add, sentences), builder.end_document()]
  return list(filter(None, found))


def test_records_of_one_segment_and_short_ones():
  found = segments_of([[number] for number in range(150_000)], max_length=64)
  assert len(found) > 2300
  lengths = [len(first) + len(second) + 2 + bool(second) for first, second in found]
  assert max(lengths) == 64
  assert sum(not second for _, second in found) / len(found) == pytest.approx(0.1, abs=0.02)
  # A full record of two segments has 64 tokens, one of a single segment too, after a cut.
  assert sum(length < 60 for length in lengths) / len(found) == pytest.approx(0.05, abs=0.015)
  halves = [len(first) for first, second in found if second and len(first) + len(second) == 61]
  assert set(halves) <= {28, 29, 30}  # around (64 - 3) // 2


def test_what_is_too_long_is_cut():
  for seed in range(30):
    [(first, second)] = segments_of([list(range(100))], seed=seed)
    assert first == list(range(30))
    assert second == []


# ---------------------------------------------------------------------------------------------
# Streams and files.

_WORDS = ("the", "of", "and", "to", "in", "one", "for", "was", "that", "with")


@pytest.fixture
def documents(tmp_path):
  """A file in which the words tell the document, and these documents."""
  found = []
  for word, other in itertools.permutations(_WORDS, 2):
    found.append([f"{word} {other} {word}"] * 6)
  path = tmp_path / "text.txt"
  path.write_text("\n\n".join(map("\n".join, found)) + "\n")
  return path, found


@pytest.mark.parametrize("num_workers", [0, 1])
def test_every_document_has_records_of_its_own(documents, num_workers, tmp_path):
  path, found = documents
  create(tmp_path / "out", path, format="electra", max_seq_length=16, num_workers=num_workers)
  tokens = SAMPLE_VOCAB.read_text().splitlines()
  texts = []
  for record in values_in(tmp_path / "out"):
    assert set(record) == {"input_ids", "input_mask", "segment_ids"}
    used = sum(record["input_mask"])
    assert record["input_mask"] == [1] * used + [0] * (16 - used)
    assert not any(record["input_ids"][used:])
    words = [tokens[index] for index in record["input_ids"][:used]]
    assert words.count("[SEP]") == 1 + max(record["segment_ids"])
    end = words.index("[SEP]") + 1
    assert record["segment_ids"] == [0] * end + [1] * (used - end) + [0] * (16 - used)
    texts.append(frozenset(words) - {"[CLS]", "[SEP]"})
  assert set(texts) == {frozenset(document[0].split()) for document in found}
