"""Datasets and loaders of the Keras side."""

import numpy as np
import pytest

from bert.keras3 import (
  ClassificationDataset,
  MLMDataset,
  NSPDataset,
  TextLoader,
  create_classification_dataloader,
  create_mlm_dataloader,
)


@pytest.fixture(scope="module")
def texts():
  """1,000 texts of 100 words."""
  numbers = np.random.default_rng(1).integers(0, 90, (1000, 100))
  return [" ".join(f"w{number}" for number in row) for row in numbers]


# ---------------------------------------------------------------------------------------------
# Masked words.


def test_statistics_of_masks(tokenizer, texts):
  dataset = MLMDataset(texts, tokenizer, seed=3)
  batch = dataset.batch(range(len(texts)))
  ids, labels = batch["input_ids"], batch["labels"]
  before = dataset.rows.padded(np.arange(len(texts)), dataset.width, 0)["input_ids"]
  assert before.size == 102_000
  chosen = labels != -100
  np.testing.assert_array_equal(labels[chosen], before[chosen])
  np.testing.assert_array_equal(ids[~chosen], before[~chosen])
  assert (chosen.sum(axis=1) == 15).all()  # 15% of 102, rounded
  is_mask = ids[chosen] == tokenizer.mask_token_id
  is_same = ids[chosen] == before[chosen]
  assert is_mask.mean() == pytest.approx(0.8, abs=0.01)
  assert is_same.mean() == pytest.approx(0.1 + 0.1 / 99, abs=0.01)
  assert (~is_mask & ~is_same).mean() == pytest.approx(0.1 - 0.1 / 99, abs=0.01)
  assert not np.isin(labels[chosen], range(5)).any()  # no special token is predicted ...
  assert not np.isin(ids[chosen & (ids != 4)], range(5)).any()  # ... or replaces a word
  by_place = chosen.mean(axis=0)
  assert by_place[0] == by_place[-1] == 0
  assert abs(by_place[1:-1] - 0.15).max() < 0.06  # 5 standard deviations


def test_special_tokens_and_padding_are_never_chosen(tokenizer):
  texts = ["w1 [MASK] nonsense w2", "w1 w2 w3 w4 w5 w6 w7 w8", "nonsense"]
  dataset = MLMDataset(texts, tokenizer, mask_probability=0.9)
  for epoch in range(20):
    labels = dataset.batch([0, 1, 2], epoch)["labels"]
    assert set(np.flatnonzero(labels[0] != -100)) == {1, 4}
    assert (labels[2] == -100).all()  # nothing to choose from
  assert (labels[1] != -100).sum() == 8


def test_each_epoch_has_masks_of_its_own(tokenizer, texts):
  loader = create_mlm_dataloader(
    texts=texts[:20], tokenizer=tokenizer, batch_size=8, mask_probability=0.15, shuffle=False
  )
  first, second = (np.concatenate([b["labels"] for b in loader]) for _ in range(2))
  assert (first != second).any(axis=1).all()
  loader.epoch = 1
  np.testing.assert_array_equal(loader.batch(0)["labels"], second[:8])
  again = create_mlm_dataloader(texts[:20], tokenizer, batch_size=3, seed=0, shuffle=False)
  np.testing.assert_array_equal(again.batch(0)["labels"], first[:3])  # independent of the batch
  other = create_mlm_dataloader(texts[:20], tokenizer, seed=1, shuffle=False)
  assert (other.batch(0)["labels"] != first[:8]).any()


# ---------------------------------------------------------------------------------------------
# Labelled texts, and loaders.


def test_labelled_texts(tokenizer):
  loader = create_classification_dataloader(
    texts=["w1 w2", "w3"], labels=[1, 0], tokenizer=tokenizer, shuffle=False
  )
  [batch] = loader
  assert set(batch) == {"input_ids", "attention_mask", "token_type_ids", "labels"}
  assert batch["input_ids"].tolist() == [[2, 6, 7, 3], [2, 8, 3, 0]]
  assert batch["attention_mask"].tolist() == [[1, 1, 1, 1], [1, 1, 1, 0]]
  assert batch["labels"].tolist() == [1, 0]
  inputs, labels = loader[0]
  assert "labels" not in inputs
  assert labels.tolist() == [1, 0]
  dataset = ClassificationDataset(
    ["w1 w2 w3", "w4"], [0.5, 2.0], tokenizer, max_length=5, text_pairs=["w5 w6", "w7"]
  )
  example = dataset[1]
  assert example["input_ids"].tolist() == [2, 9, 3, 12, 3]
  assert example["token_type_ids"].tolist() == [0, 0, 0, 1, 1]
  assert example["labels"].dtype == np.float32
  assert dataset[0]["input_ids"].tolist() == [2, 6, 3, 10, 3]  # cut, the longer text first


def test_order_and_rest(tokenizer):
  texts = [f"w{i}" for i in range(10)]
  loader = create_classification_dataloader(texts, range(10), tokenizer, batch_size=4)
  epochs = [[b["labels"].tolist() for b in loader] for _ in range(2)]
  assert [len(batch) for batch in epochs[0]] == [4, 4, 2]
  assert all(sorted(np.concatenate(epoch)) == list(range(10)) for epoch in epochs)
  assert epochs[0] != epochs[1]
  same = create_classification_dataloader(texts, range(10), tokenizer, batch_size=4)
  assert [b["labels"].tolist() for b in same] == epochs[0]


def test_every_kind_of_tokenizer(tokenizer, full_tokenizer, texts):
  def without_segments(*args, **kwargs):
    """As of RoBERTa and DistilBERT."""
    found = tokenizer(*args, **kwargs)
    return {name: found[name] for name in ("input_ids", "attention_mask")}

  class Segmentless:
    __call__ = staticmethod(without_segments)
    all_special_ids = tokenizer.all_special_ids
    pad_token_id, unk_token_id, cls_token_id, sep_token_id, mask_token_id = range(5)

    def __len__(self):
      return len(tokenizer)

  pairs = [f"w{i} w9" for i in range(9)]
  tokenizers = (tokenizer, full_tokenizer, Segmentless())
  for create in (
    lambda t: create_mlm_dataloader(texts[:9], t),
    lambda t: create_classification_dataloader(
      texts[:9], range(9), t, max_length=20, text_pairs=pairs
    ),
    lambda t: TextLoader(NSPDataset([["w1", "w2 w3"], ["w4 w5 w6"]], t, max_length=8)),
  ):
    one, other, without = (create(t).batch(0) for t in tokenizers)
    for name in one:
      np.testing.assert_array_equal(one[name], other[name], err_msg=name)
      if name != "token_type_ids":
        np.testing.assert_array_equal(one[name], without[name], err_msg=name)
  segments = create_classification_dataloader(texts[:9], range(9), Segmentless(), text_pairs=pairs)
  assert not segments.batch(0)["token_type_ids"].any()


def test_data_that_is_wrong(tokenizer):
  with pytest.raises(ValueError, match="2 texts, but 1 labels"):
    ClassificationDataset(["w1", "w2"], [1], tokenizer)
  with pytest.raises(ValueError, match="number the classes from 0"):
    ClassificationDataset(["w1", "w2"], ["yes", "no"], tokenizer)
  with pytest.raises(ValueError, match="2 texts, but 1 text_pairs"):
    ClassificationDataset(["w1", "w2"], [1, 0], tokenizer, text_pairs=["w3"])
  with pytest.raises(TypeError, match="texts is a string"):
    MLMDataset("w1 w2", tokenizer)
  with pytest.raises(TypeError, match="a FullTokenizer is needed, not 'bert-base-uncased'"):
    ClassificationDataset(["w1"], [1], "bert-base-uncased")
  with pytest.raises(ValueError, match="mask_probability is 15"):
    MLMDataset(["w1"], tokenizer, mask_probability=15)
  with pytest.raises(ValueError, match="batch_size is 0"):
    create_mlm_dataloader(["w1"], tokenizer, batch_size=0)


# ---------------------------------------------------------------------------------------------
# Pairs of sentences.


def test_pairs_of_sentences(tokenizer):
  documents = [[f"doc{d} w{s}" for s in range(30 + d)] for d in range(9)]
  dataset = NSPDataset(documents, tokenizer, seed=5)
  assert len(dataset) == sum(29 + d for d in range(9))
  batches = [dataset.batch(range(len(dataset)), epoch) for epoch in range(10)]
  labels = np.concatenate([batch["labels"] for batch in batches])
  assert labels.mean() == pytest.approx(0.5, abs=0.02)
  assert (batches[0]["labels"] != batches[1]["labels"]).any()
  ids = np.concatenate([batch["input_ids"] for batch in batches])
  assert (ids[:, [0, 3, 6]] == [2, 3, 3]).all()
  same_document = ids[:, 1] == ids[:, 4]
  np.testing.assert_array_equal(same_document, labels == 0)
  follows = ids[:, 5] == ids[:, 2] + 1
  assert follows[labels == 0].all()
  assert set(ids[labels == 1, 4] - ids[labels == 1, 1]) == {d for d in range(-8, 9) if d}
  assert (batches[0]["token_type_ids"] == [0, 0, 0, 0, 1, 1, 1]).all()


def test_documents_as_texts(tokenizer):
  loader = TextLoader(NSPDataset(["W1 w2 w3 w4. W5 w6. ", "W7."], tokenizer, max_length=6))
  [batch] = loader
  assert batch["input_ids"].shape == (1, 6)
  assert batch["token_type_ids"].tolist() == [[0, 0, 0, 0, 1, 1]]  # 6 tokens: [CLS] 2 [SEP] 1 [SEP]
  for documents in ([["w1", "w2"]], [["w1"], ["w2"]], []):
    with pytest.raises(ValueError, match="make no pairs"):
      NSPDataset(documents, tokenizer)
