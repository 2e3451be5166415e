"""Windows over long documents in graphs: those of Python, and their logits pooled."""

import numpy as np
import pytest
import tensorflow as tf

from bert import modeling, run_classifier
from bert.exporting import graph_text, graph_windows
from bert.model.variables import VariableStore, get_variable, use_store
from bert.tasks.windows import POOLINGS, WindowOptions
from tests.kit.long_texts import (
  CLS,
  CONFIG,
  SEP,
  VOCAB,
  batches,
  random_pairs,
  tokenizer_in,
  windows_of,
  write_records,
)


@pytest.fixture(scope="module")
def tokenizer(tmp_path_factory):
  return tokenizer_in(tmp_path_factory.mktemp("model"))


@pytest.fixture(scope="module")
def record_file(tokenizer, tmp_path_factory):
  return write_records(tmp_path_factory.mktemp("records"), tokenizer)


# ---------------------------------------------------------------------------------------------
# The model.


@pytest.fixture(scope="module")
def logits_of():
  """`logits_of(batch, pooling, is_tpu)` of one model with random weights, float32 `[B, 3]`."""
  store = VariableStore(7)
  weights = np.random.default_rng(7).normal(size=[3, CONFIG["hidden_size"]])
  with use_store(store):  # in their usual size all logits would be near 0
    get_variable("output_weights", weights.shape, lambda shape, **_: tf.cast(weights, tf.float32))

  def compute(batch, pooling="mean", is_tpu=False):
    names = ("input_ids", "input_mask", "segment_ids")
    inputs = [tf.constant(batch[name]) for name in names]
    options = {}
    if "num_windows" in batch:
      options = dict(num_windows=tf.constant(batch["num_windows"]), window_pooling=pooling)
    with use_store(store):
      return run_classifier.create_model(
        modeling.BertConfig.from_dict(CONFIG),
        False,
        *inputs,
        tf.zeros([len(inputs[0])], tf.int32),
        3,
        is_tpu,
        **options,
      )[2].numpy()

  return compute


def window(batch, document, index):
  """One window as a batch of its own."""
  return {
    "input_ids": batch["input_ids"][document : document + 1, :, index],
    "input_mask": batch["input_mask"][document : document + 1],
    "segment_ids": batch["segment_ids"][document : document + 1],
  }


@pytest.mark.parametrize(("pooling", "pool"), [("mean", np.mean), ("max", np.max)])
def test_logits_of_a_document_are_those_of_its_windows_pooled(
  record_file, logits_of, pooling, pool
):
  (batch,) = batches(record_file, 3)
  expected = []
  for document, count in enumerate(batch["num_windows"].numpy()):
    rows = [logits_of(window(batch, document, i))[0] for i in range(count)]
    expected.append(pool(rows, axis=0))
  assert np.ptp(expected, axis=0).min() > 1e-2, "logits that are all alike would prove nothing"
  found = logits_of(batch, pooling)
  np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
  assert np.abs(found[1:] - [logits_of(window(batch, i, 0))[0] for i in (1, 2)]).max() > 1e-2


@pytest.mark.parametrize("pooling", POOLINGS)
def test_one_window_is_plain_truncation(record_file, logits_of, pooling):
  batch = batches(record_file, 1)[0]
  np.testing.assert_array_equal(logits_of(batch, pooling), logits_of(window(batch, 0, 0)))


@pytest.mark.parametrize("is_tpu", [False, True])
@pytest.mark.parametrize("pooling", POOLINGS)
def test_windows_that_only_fill_up_change_nothing(record_file, logits_of, pooling, is_tpu):
  (batch,) = batches(record_file, 3)
  expected = logits_of(batch, pooling)
  (padded,) = batches(record_file, 3, pad=True)
  np.testing.assert_allclose(logits_of(padded, pooling, is_tpu), expected, rtol=0, atol=1e-5)

  is_window = np.arange(5) < padded["num_windows"].numpy()[:, np.newaxis, np.newaxis]
  garbage = np.random.default_rng(3).integers(0, len(VOCAB), padded["input_ids"].shape)
  ids = np.where(is_window, padded["input_ids"], garbage).astype(np.int32)
  found = logits_of({**padded, "input_ids": ids}, pooling, is_tpu)
  np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


# ---------------------------------------------------------------------------------------------
# The graph of exports against Python.


@pytest.mark.parametrize(("stride", "max_windows"), [(4, 30), (3, 2), (9, 3)])
def test_windows_of_the_graph_are_those_of_python(tokenizer, stride, max_windows):
  pairs = list(random_pairs(60))
  rows, documents = [], []
  for number, (text_a, text_b) in enumerate(pairs):
    first, found, _ = windows_of(tokenizer, text_a, text_b, 10, stride, max_windows)
    rows += [
      (ids.tolist(), first.input_mask, first.segment_ids)
      for ids in found["input_ids"][: found["num_windows"]]
    ]
    documents += [number] * found["num_windows"]

  pieces = [
    tf.ragged.constant(
      [tokenizer.convert_tokens_to_ids(tokenizer.tokenize(pair[i] or "")) for pair in pairs],
      tf.int32,
      row_splits_dtype=tf.int64,
    )
    for i in (0, 1)
  ]
  options = WindowOptions(stride, max_windows)
  inputs, found_documents = graph_windows.pack_windows(
    *pieces, graph_text.Frame(CLS, SEP), 10, options
  )
  assert found_documents.numpy().tolist() == documents
  names = ("input_word_ids", "input_mask", "input_type_ids")
  found = zip(*(inputs[name].numpy().tolist() for name in names), strict=True)
  assert list(found) == rows
