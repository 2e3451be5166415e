"""The kit: configurations by name, datasets, loaders and scores.

Run alone: python -m pytest tests/keras3/kit_test.py
"""

import keras
import numpy as np
import pytest
import sklearn.metrics
from keras import ops

from bert.keras3 import (
  GELU,
  BERTForMaskedLM,
  BERTForSequenceClassification,
  BERTModel,
  ClassificationDataset,
  FeedForward,
  LayerNorm,
  MLMDataset,
  MultiHeadAttention,
  NSPDataset,
  TransformerEncoderBlock,
  compute_confusion_matrix,
  compute_precision_recall_f1,
  create_classification_dataloader,
  create_mlm_dataloader,
  create_model_config,
  create_nsp_dataloader,
  evaluate_classification_metrics,
  get_tokenizer,
  training,
)
from bert.keras3.data import truncated_lengths

SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
WORDS = [f"w{i}" for i in range(90)] + [f"doc{i}" for i in range(9)]
CONFIG = create_model_config(
  "bert-base-uncased",
  vocab_size=len(SPECIAL + WORDS),
  hidden_size=16,
  num_hidden_layers=1,
  num_attention_heads=2,
  intermediate_size=32,
  initializer_range=0.5,  # so large that untrained models tell texts apart
)


def numpy_of(tensor):
  return ops.convert_to_numpy(tensor)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
  folder = tmp_path_factory.mktemp("model")
  (folder / "vocab.txt").write_text("\n".join(SPECIAL + WORDS) + "\n")
  return get_tokenizer(folder)


@pytest.fixture(scope="module")
def texts():
  """1,000 texts of 100 words."""
  numbers = np.random.default_rng(1).integers(0, 90, (1000, 100))
  return [" ".join(f"w{number}" for number in row) for row in numbers]


# ---------------------------------------------------------------------------------------------
# Configurations and names.


def test_configurations_by_name():
  sizes = {
    "bert-base-uncased (110M)": (30522, 768, 12, 12, 3072),
    "bert-large-uncased (340M)": (30522, 1024, 24, 16, 4096),
    "bert-base-cased (110M)": (28996, 768, 12, 12, 3072),
    "bert-large-cased (340M)": (28996, 1024, 24, 16, 4096),
  }
  for name, size in sizes.items():
    config = create_model_config(name)
    assert config.to_dict() == create_model_config(name.split(" ")[0]).to_dict()
    found = config.to_dict()
    assert size == (
      found["vocab_size"],
      found["hidden_size"],
      found["num_hidden_layers"],
      found["num_attention_heads"],
      found["intermediate_size"],
    )
    assert (found["max_position_embeddings"], found["type_vocab_size"]) == (512, 2)
    assert found["hidden_dropout_prob"] == found["attention_probs_dropout_prob"] == 0.1
  assert create_model_config("uncased_L-2_H-128_A-2").num_hidden_layers == 2


def test_names_that_are_wrong():
  with pytest.raises(ValueError, match=r"called 'bert-huge'; known: .*'bert-large-cased \(340M\)'"):
    create_model_config("bert-huge")
  with pytest.raises(ValueError, match="no n_layers, only vocab_size, hidden_size"):
    create_model_config("bert-base-cased", n_layers=2)
  with pytest.raises(ValueError, match="hidden_size 100 is not a multiple"):
    create_model_config("bert-base-cased", hidden_size=100)


@pytest.mark.parametrize(
  ("cls", "shape"),
  [
    (BERTModel, (2, 5, 16)),
    (BERTForMaskedLM, (2, 5, 104)),
    (BERTForSequenceClassification, (2, 3)),
  ],
)
def test_models_give_tensors(cls, shape, tmp_path):
  model = cls(CONFIG, num_labels=3)
  ids = np.arange(10).reshape(2, 5)
  outputs = model(ids, np.ones((2, 5)))
  assert tuple(outputs.shape) == shape
  model.save(tmp_path / "model.keras")
  again = keras.models.load_model(tmp_path / "model.keras")
  assert type(again) is cls
  np.testing.assert_array_equal(numpy_of(again(ids)), numpy_of(outputs))


def test_layers():
  x = np.array([[1e-4, -1e-4, 3e-4, 1e-4]], "float32")  # so small that the epsilon matters
  expected = (x - x.mean()) / np.sqrt(x.var() + 1e-12)
  np.testing.assert_allclose(numpy_of(LayerNorm()(x)), expected, rtol=1e-4, atol=1e-6)
  x = np.array([-2.0, 0.0, 0.5, 3.0])
  expected = 0.5 * x * (1 + np.tanh(np.sqrt(2 / np.pi) * (x + 0.044715 * x**3)))
  np.testing.assert_allclose(numpy_of(GELU()(x.astype("float32"))), expected, atol=1e-6)
  vectors = np.ones((2, 3, 8), "float32")
  for layer in (
    FeedForward(8, 16),
    MultiHeadAttention(8, 2),
    TransformerEncoderBlock(8, 2, 16),
  ):
    assert tuple(layer(vectors).shape) == (2, 3, 8)


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
  assert not np.isin(labels[chosen], range(5)).any()  # no special token is to be predicted ...
  assert not np.isin(ids[chosen & (ids != 4)], range(5)).any()  # ... nor stands in for a word
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
  np.testing.assert_array_equal(again.batch(0)["labels"], first[:3])  # no matter what is beside
  other = create_mlm_dataloader(texts[:20], tokenizer, seed=1, shuffle=False)
  assert (other.batch(0)["labels"] != first[:8]).any()
  fixed = create_mlm_dataloader(texts[:20], tokenizer, shuffle=False, fresh_masks=False)
  first, second = (np.concatenate([b["labels"] for b in fixed]) for _ in range(2))
  np.testing.assert_array_equal(first, second)


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
  full = create_classification_dataloader(
    texts, range(10), tokenizer, batch_size=4, drop_last=True, max_length=8, padding="max_length"
  )
  assert [b["input_ids"].shape for b in full] == [(4, 8), (4, 8)]
  masked = create_mlm_dataloader(texts, tokenizer, max_length=8, padding="max_length")
  assert (masked.batch(0)["labels"][:, 3:] == -100).all()


def test_a_tokenizer_of_transformers_will_do(tokenizer, texts):
  class Theirs:
    """What the loaders need of it."""

    vocab_size = len(SPECIAL + WORDS)
    pad_token_id, unk_token_id, cls_token_id, sep_token_id, mask_token_id = range(5)

    def __call__(self, texts, text_pair=None, truncation=False, max_length=None):
      return tokenizer(texts, text_pair, truncation=truncation, max_length=max_length)

  ours, theirs = (create_mlm_dataloader(texts[:9], t) for t in (tokenizer, Theirs()))
  np.testing.assert_array_equal(ours.batch(1)["input_ids"], theirs.batch(1)["input_ids"])


def test_data_that_is_wrong(tokenizer):
  with pytest.raises(ValueError, match="2 texts, but 1 labels"):
    ClassificationDataset(["w1", "w2"], [1], tokenizer)
  with pytest.raises(ValueError, match="number the classes from 0"):
    ClassificationDataset(["w1", "w2"], ["yes", "no"], tokenizer)
  with pytest.raises(ValueError, match="2 texts, but 1 text_pairs"):
    ClassificationDataset(["w1", "w2"], [1, 0], tokenizer, text_pairs=["w3"])
  with pytest.raises(TypeError, match="texts is one string"):
    MLMDataset("w1 w2", tokenizer)
  with pytest.raises(TypeError, match="a FullTokenizer, cannot be called"):
    ClassificationDataset(["w1"], [1], tokenizer.tokenizer)
  with pytest.raises(ValueError, match="mask_probability is 15"):
    MLMDataset(["w1"], tokenizer, mask_probability=15)
  with pytest.raises(ValueError, match="max_length is 2"):
    MLMDataset(["w1"], tokenizer, max_length=2)
  with pytest.raises(ValueError, match="padding is 'longer'"):
    create_mlm_dataloader(["w1"], tokenizer, padding="longer")
  with pytest.raises(ValueError, match="batch_size is 0"):
    create_mlm_dataloader(["w1"], tokenizer, batch_size=0)
  with pytest.raises(IndexError, match="Batch 1 of 1"):
    create_mlm_dataloader(["w1"], tokenizer)[1]


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
  loader = create_nsp_dataloader(
    ["W1 w2 w3 w4. W5 w6. ", "W7."], tokenizer, batch_size=1, max_length=6
  )
  [batch] = loader
  assert batch["input_ids"].shape == (1, 6)
  assert batch["token_type_ids"].tolist() == [[0, 0, 0, 0, 1, 1]]  # 6 tokens: [CLS] 2 [SEP] 1 [SEP]
  for documents in ([["w1", "w2"]], [["w1"], ["w2"]], []):
    with pytest.raises(ValueError, match="make no pairs"):
      NSPDataset(documents, tokenizer)


def test_truncated_lengths_are_those_of_the_loop():
  for first in range(8):
    for second in range(8):
      for limit in range(2, 16):
        a, b = first, second
        while a + b > limit:
          if a > b:
            a -= 1
          else:
            b -= 1
        assert truncated_lengths(first, second, limit) == (a, b)


# ---------------------------------------------------------------------------------------------
# Scores.


@pytest.mark.parametrize("num_classes", [2, 4])
def test_scores_equal_scikit_learns(num_classes):
  generator = np.random.default_rng(num_classes)
  labels, predictions = generator.integers(0, num_classes, (2, 200))
  averages = ["macro", "micro", "weighted", None] + ["binary"] * (num_classes == 2)
  for average in averages:
    expected = sklearn.metrics.precision_recall_fscore_support(labels, predictions, average=average)
    found = compute_precision_recall_f1(predictions, labels, num_classes, average or "none")
    for value, name in zip(expected, ("precision", "recall", "f1"), strict=False):
      np.testing.assert_allclose(found[name], value, rtol=1e-12)
  default = compute_precision_recall_f1(predictions, labels)
  convention = "binary" if num_classes == 2 else "macro"
  assert default == compute_precision_recall_f1(predictions, labels, average=convention)
  np.testing.assert_array_equal(
    compute_confusion_matrix(predictions, labels),
    sklearn.metrics.confusion_matrix(labels, predictions),
  )


def test_scores_of_tokens_and_classes_that_do_not_occur():
  logits = np.eye(3, dtype="float32")[[[0, 1, 2], [1, 1, 0]]]  # [B, S, C]
  labels = np.array([[0, 1, -100], [0, 1, -100]])
  matrix = compute_confusion_matrix(ops.convert_to_tensor(logits), labels, num_classes=3)
  assert matrix.tolist() == [[1, 1, 0], [0, 2, 0], [0, 0, 0]]
  found = compute_precision_recall_f1(logits, labels, 3, "none")
  assert found["recall"] == [0.5, 1.0, 0.0]


def test_scores_that_cannot_be():
  with pytest.raises(ValueError, match="3 predictions, but 2 labels"):
    compute_confusion_matrix([0, 1, 1], [0, 1])
  with pytest.raises(ValueError, match="nothing to score"):
    compute_precision_recall_f1([1], [-100])
  with pytest.raises(ValueError, match="a class 2, but num_classes is 2"):
    compute_precision_recall_f1([0], [2], num_classes=2)
  with pytest.raises(ValueError, match="average is 'mean'"):
    compute_precision_recall_f1([0], [1], average="mean")


@pytest.mark.parametrize("kind", ["logits", "probabilities"])
def test_evaluation_of_a_model(kind, tokenizer, monkeypatch):
  texts = [f"w{i} w{i + 1} w{i + 2}" for i in range(21)]
  labels = np.arange(21) % 3
  keras.utils.set_random_seed(1)
  model = BERTForSequenceClassification(CONFIG, num_labels=3)
  inputs = tokenizer(texts, return_tensors="np")
  logits = numpy_of(model(inputs, training=False)).astype("float64")
  probabilities = np.exp(logits) / np.exp(logits).sum(axis=1, keepdims=True)
  if kind == "probabilities":
    model.classifier.spec.output = "probabilities"
  loader = create_classification_dataloader(texts, labels, tokenizer, batch_size=4)
  warnings = []
  monkeypatch.setattr(training, "_has_gpu", lambda: False)
  monkeypatch.setattr(training.logging, "warning", lambda *a: warnings.append(a))
  found = evaluate_classification_metrics(model, loader, device="cuda", num_classes=3)
  assert len(warnings) == 1  # there is no GPU, and that is said
  predictions = logits.argmax(axis=1)
  assert set(predictions) == {0, 1, 2}
  assert found["accuracy"] == sklearn.metrics.accuracy_score(labels, predictions)
  expected = sklearn.metrics.precision_recall_fscore_support(labels, predictions, average="macro")
  assert [found["precision"], found["recall"], found["f1"]] == pytest.approx(expected[:3])
  assert found["loss"] == pytest.approx(sklearn.metrics.log_loss(labels, probabilities), rel=1e-4)
  assert found["per_class"]["f1"] == pytest.approx(
    sklearn.metrics.f1_score(labels, predictions, average=None).tolist()
  )
  matrix = sklearn.metrics.confusion_matrix(labels, predictions)
  np.testing.assert_array_equal(found["confusion_matrix"], matrix)
  with pytest.raises(ValueError, match="num_classes is 2, but the model gives 3"):
    evaluate_classification_metrics(model, loader, num_classes=2)
  empty = create_classification_dataloader([], [], tokenizer)
  with pytest.raises(ValueError, match="nothing to score"):
    evaluate_classification_metrics(model, empty, device="cpu")
