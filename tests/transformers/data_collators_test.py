"""Batches of the data collators.

Alone: python -m pytest tests/transformers/data_collators_test.py (seconds)
"""

import numpy as np
import pytest

from bert.transformers import data_collators
from bert.transformers.tokenization_bert import BertTokenizerFast
from tests.kit import transformers_calls

PAD, CLS, SEP, MASK, A, FILM = 0, 2, 3, 4, 25, 6


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
  folder = tmp_path_factory.mktemp("vocabulary")
  return BertTokenizerFast(*transformers_calls.write_vocabularies(folder)["Bert"])


@pytest.fixture
def rows(tokenizer):
  return [dict(tokenizer(text)) for text in ("a", "a film")]


def arrays(batch):
  return {name: np.asarray(values) for name, values in batch.items()}


@pytest.mark.parametrize("kind", ["np", "tf"])
@pytest.mark.parametrize("name", ["label", "label_ids", "labels"])
def test_rows_are_padded(tokenizer, rows, kind, name):
  rows = [{**row, name: number} for number, row in enumerate(rows)]
  batch = data_collators.DataCollatorWithPadding(tokenizer, return_tensors=kind)(rows)
  found = arrays(batch)
  assert found["input_ids"].tolist() == [[CLS, A, SEP, PAD], [CLS, A, FILM, SEP]]
  assert found["attention_mask"].tolist() == [[1, 1, 1, 0], [1, 1, 1, 1]]
  assert found["labels"].tolist() == [0, 1]
  assert set(found) == {"input_ids", "token_type_ids", "attention_mask", "labels"}


@pytest.mark.parametrize("kind", ["np", "tf"])
def test_choices_are_padded_together(tokenizer, rows, kind):
  one, two = ({name: [row[name]] * 2 for name in row} for row in rows)
  collate = data_collators.DataCollatorForMultipleChoice(tokenizer, return_tensors=kind)
  found = arrays(collate([{**one, "label": 1}, {**two, "label": 0}]))
  assert found["input_ids"].tolist() == [[[CLS, A, SEP, PAD]] * 2, [[CLS, A, FILM, SEP]] * 2]
  assert found["labels"].tolist() == [1, 0]
  with pytest.raises(ValueError, match="choices"):
    collate([{name: values[:1] for name, values in one.items()}, two])


@pytest.mark.parametrize("kind", ["np", "tf"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_labels_of_tokens_are_padded(tokenizer, rows, kind, side, monkeypatch):
  monkeypatch.setattr(tokenizer, "padding_side", side)
  rows = [{**row, "labels": [7] * len(row["input_ids"])} for row in rows]
  collate = data_collators.DataCollatorForTokenClassification(tokenizer, return_tensors=kind)
  found = arrays(collate(rows))
  expected = [-100, 7, 7, 7] if side == "left" else [7, 7, 7, -100]
  assert found["labels"].tolist() == [expected, [7] * 4]
  assert {array.dtype for array in found.values()} == {np.dtype(np.int64)}


@pytest.mark.parametrize("kind", ["np", "tf"])
def test_words_are_masked_by_the_same_seed(tokenizer, kind):
  rows = [tokenizer("a film of the end was good " * 20, return_special_tokens_mask=True)] * 4
  settings = {"mlm_probability": 0.5, "seed": 3, "return_tensors": kind}
  made = [data_collators.DataCollatorForLanguageModeling(tokenizer, **settings) for _ in "12"]
  first, second = (arrays(collate(rows)) for collate in made)
  for name, array in first.items():
    np.testing.assert_array_equal(array, second[name])
  ids, labels = first["input_ids"], first["labels"]
  original = np.array([row["input_ids"] for row in rows])
  predicted = labels != data_collators.IGNORED
  np.testing.assert_array_equal(labels[predicted], original[predicted])
  np.testing.assert_array_equal(ids[~predicted], original[~predicted])
  assert not predicted[np.isin(original, [CLS, SEP])].any()
  assert 0.4 < predicted.mean() < 0.6
  assert 0.7 < (ids[predicted] == MASK).mean() < 0.9
  assert ids.dtype == labels.dtype == np.int64


@pytest.mark.parametrize("kind", ["np", "tf"])
def test_without_masks_labels_are_the_ids(tokenizer, kind):
  settings = {"mlm": False, "return_tensors": kind, "pad_to_multiple_of": 4}
  found = arrays(
    data_collators.DataCollatorForLanguageModeling(tokenizer, **settings)([[CLS, A, SEP]])
  )
  assert found["input_ids"].tolist() == [[CLS, A, SEP, PAD]]
  assert found["labels"].tolist() == [[CLS, A, SEP, -100]]


@pytest.mark.parametrize("kind", ["np", "tf"])
@pytest.mark.parametrize(
  ("label", "dtype"),
  [(3, np.int64), (0.5, np.float32), ([1, 2], np.int64), (np.int32(3), np.int64)],
)
def test_default_collator(kind, label, dtype):
  rows = [{"x": [1, 2], "y": np.ones(2, np.int32), "label": label, "text": "left out", "n": None}]
  found = arrays(data_collators.DefaultDataCollator(return_tensors=kind)(rows * 2))
  assert set(found) == {"x", "y", "labels"}
  assert found["labels"].dtype == dtype
  assert found["labels"].tolist() == [np.asarray(label).tolist()] * 2
  assert found["y"].dtype == np.int32


BAD = {
  "PyTorch": lambda t: data_collators.default_data_collator([{"x": 1}], "pt"),
  "no row to make": lambda t: data_collators.default_data_collator([], "np"),
  "form no tensor": lambda t: data_collators.default_data_collator([{"x": [1]}, {"x": []}], "np"),
  "no 'input_ids'": lambda t: data_collators.DataCollatorWithPadding(t)([{"x": 1}]),
  "whole_word_mask is": lambda t: data_collators.DataCollatorForLanguageModeling(
    t, whole_word_mask=True
  ),
  "mlm_probability is 2": lambda t: data_collators.DataCollatorForLanguageModeling(
    t, mlm_probability=2
  ),
  "more than 1 together": lambda t: data_collators.DataCollatorForLanguageModeling(
    t, random_replace_prob=0.5
  ),
}


@pytest.mark.parametrize("expected", BAD)
def test_bad_input_gives_one_line(tokenizer, expected):
  with pytest.raises(ValueError, match=expected):
    BAD[expected](tokenizer)
