"""Instances and documents on disk: the same as in memory, in little memory."""

import random
import tracemalloc

import pytest

from bert.pretraining import instances
from bert.pretraining.instances import Workspace
from bert.text import corpus
from tests.kit.paths import SAMPLE_TEXT
from tests.kit.pretraining_records import in_memory


@pytest.mark.parametrize("do_whole_word_mask", [False, True])
def test_on_disk_as_in_memory(tokenizer, tmp_path, do_whole_word_mask):
  expected = in_memory(tokenizer, do_whole_word_mask=do_whole_word_mask)
  with Workspace(str(tmp_path), tokenizer) as workspace:
    stored = in_memory(tokenizer, do_whole_word_mask=do_whole_word_mask, workspace=workspace)
    assert isinstance(stored, instances.StoredInstances)
    assert list(map(repr, expected)) == list(map(repr, stored))
  assert not list(tmp_path.iterdir())


def test_integers_on_disk(tmp_path):
  file = instances.IntegerFile(str(tmp_path), "q")
  numbers = [3, -1, 1 << 40] * 50_000  # more than are buffered
  for start in range(0, len(numbers), 70_000):
    file.extend(numbers[start : start + 70_000])
  file.freeze()
  assert file.view.tolist() == numbers
  assert not list(tmp_path.iterdir())  # nameless: it cannot be left behind
  file.close()


@pytest.mark.parametrize("count", [0, 1, 2, 3, 64, 65, 1000])
def test_shuffling_is_that_of_python(count):
  class Other(random.Random):
    pass

  for kind in (random.Random, Other):
    rng, expected_rng = kind(count), random.Random(count)
    items, expected = list(range(count)), list(range(count))
    instances.shuffle(items, rng)
    expected_rng.shuffle(expected)
    assert items == expected
    assert rng.random() == expected_rng.random()


def test_shuffling_on_disk_draws_what_a_list_draws(tmp_path, tokenizer):
  sentences = [["the"], None, None, ["of"], ["and"], None, ["one"], None]
  listed = corpus.split_documents(sentences)
  with Workspace(str(tmp_path), tokenizer) as workspace:
    stored = workspace.store_documents(sentences)
    assert [list(document) for document in stored] == listed
    instances.shuffle(listed, random.Random(4))
    instances.shuffle(stored, random.Random(4))
    assert [list(document) for document in stored] == listed
    with pytest.raises(IndexError):
      stored[0][9]


def peak_bytes(tokenizer, text, folder):
  """Most Python memory in use at a time while instances are created on disk."""
  tracemalloc.start()
  try:
    with Workspace(str(folder), tokenizer) as workspace:
      for _ in in_memory(tokenizer, text, dupe_factor=1, workspace=workspace):
        pass
    return tracemalloc.get_traced_memory()[1]
  finally:
    tracemalloc.stop()


@pytest.mark.parametrize("separator", ["\n", ""])
def test_memory_does_not_grow_with_the_corpus(tokenizer, tmp_path, monkeypatch, separator):
  """Neither with many documents nor with one that is long."""
  monkeypatch.setattr(instances, "_BUFFERED", 1 << 10)
  lines = "".join(line + "\n" for line in SAMPLE_TEXT.read_text().splitlines() if line)
  text = tmp_path / "text"
  peaks = []
  for copies in (5, 5, 30):  # the first run fills the caches
    text.write_text((lines + separator) * copies)
    peaks.append(peak_bytes(tokenizer, text, tmp_path))
  # In lists, the larger text takes a megabyte more.
  assert peaks[2] < peaks[1] + 100_000
