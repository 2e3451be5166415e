"""One model for many texts: order, batches, memory, checkpoints and fine-tuned SavedModels."""

import functools
import itertools
import json
import os
import pathlib
import random

import numpy as np
import pytest
import tensorflow as tf

from bert import export_hub, predict, tokenization
from bert.checkpoints import finding, loading, reading, saving
from bert.model.variables import VariableStore, use_store
from bert.modeling import BertModel
from bert.predicting import load_run, sentence_vectors
from bert.predicting.engines import tensorflow
from bert.predicting.predictor import Predictor
from bert.predicting.processors import TextProcessor, name_texts
from tests.kit import predictors
from tests.kit.exports import CONFIG, LABELS, WORDS
from tests.kit.filters import run_filter


def random_texts(count, longest=20, seed=0):
  rng = random.Random(seed)
  return [" ".join(rng.choices(WORDS, k=rng.randrange(longest))) for _ in range(count)]


# ---------------------------------------------------------------------------------------------
# Batches and order.


class Spy:
  """A model that adds up its input and remembers its batches."""

  def __init__(self, **options):
    self.batches = []
    self.predictor = predictors.predictor(
      lambda item: {"codes": item, "name": str(item)},
      self._compute,
      ["codes"],
      lambda item, outputs: (str(item), int(outputs["sum"])),
      **options,
    )

  def _compute(self, batch):
    assert list(batch) == ["codes"], "a model gets what it asks for"
    self.batches.append(batch["codes"])
    return {"sum": batch["codes"].sum(axis=1)}


def test_results_come_in_the_order_of_the_items():
  items = [[rng] * (rng % 7) for rng in range(100)]
  spy = Spy(batch_size=8, chunk_size=30)
  assert spy.predictor(items) == [(str(item), sum(item)) for item in items]
  assert sum(map(len, spy.batches)) == 100
  assert spy.predictor([]) == []


def test_batches_hold_items_of_like_length():
  items = [[1] * length for length in range(64)]
  random.Random(0).shuffle(items)
  spy = Spy(batch_size=8, chunk_size=64)
  spy.predictor(items)
  assert [batch.shape for batch in spy.batches] == [(8, longest) for longest in range(7, 64, 8)]
  assert all(batch.dtype == np.int32 for batch in spy.batches)


def test_short_items_make_larger_batches():
  spy = Spy(batch_size=4, chunk_size=100, batch_tokens=64)
  items = [[1] * length for length in (1, 2, 3, 4, 8, 9, 20, 30, 30, 30, 30, 30)] + [[1]] * 20
  assert spy.predictor(items) == [(str(item), sum(item)) for item in items]
  # 22 times 2, but not 23 times 3, are 64 at most. The longest do not fit, and go four by four.
  assert [batch.shape for batch in spy.batches] == [(22, 2), (4, 9), (4, 30), (2, 30)]


def test_items_without_length_count_too():
  """With a batch size of 1 an answer has the same bits in every company, that of an empty text."""
  spy = Spy(batch_size=1)
  spy.predictor([[], [], [5], []])
  assert [len(batch) for batch in spy.batches] == [1, 1, 1, 1]


def test_a_stream_holds_no_more_than_a_chunk():
  taken = itertools.count()
  spy = Spy(batch_size=4, chunk_size=8)
  results = spy.predictor.stream([next(taken)] for _ in itertools.repeat(None))  # without an end
  assert next(taken) == 0, "nothing is read before something is asked for"
  for _ in range(8):
    next(results)
  assert next(taken) == 9
  next(results)
  assert next(taken) == 18


@pytest.mark.parametrize("item", ["hello", {"text_a": "hello"}])
def test_one_item_is_not_a_list_of_letters_or_names(item):
  predictor = predictors.predictor(
    lambda each: {"codes": [1]}, lambda batch: batch, ["codes"], lambda each, outputs: each
  )
  assert predictor(item) == predictor([item]) == [item]


class Table:
  """As much of a pandas.DataFrame as is needed to know one."""

  columns = ("text", "label")

  def iterrows(self):
    """Not called."""


@pytest.mark.parametrize(
  ("items", "message"),
  [(b"hello", "not bytes: b'hello'"), (Table(), r"give table\[NAME\] of 'text', 'label'")],
)
def test_bytes_and_tables_are_no_lists_of_texts(items, message):
  with pytest.raises(TypeError, match=message):
    Spy().predictor(items)


@pytest.mark.parametrize(
  ("item", "names", "expected"),
  [
    ({"text_a": "x"}, ["text_a", "text_b"], {"text_a": "x", "text_b": ""}),
    ({"text_a": "x", "text_b": None}, ["text_a", "text_b"], {"text_a": "x", "text_b": ""}),
    ({"text": "x", "text_pair": "y"}, ["text_a", "text_b"], {"text_a": "x", "text_b": "y"}),
    ({"text_a": "x"}, ["text"], {"text": "x"}),
    ({"text": "x"}, ["text_a"], {"text_a": "x"}),
    ({"context": "x", "question": "y"}, ["context", "question"], {"context": "x", "question": "y"}),
  ],
)
def test_dictionaries_name_texts(item, names, expected):
  assert name_texts(item, names) == expected


@pytest.mark.parametrize(
  ("item", "names"),
  [
    ({}, ["text_a", "text_b"]),
    (("x", None), ["text_a", "text_b"]),
    ({"text": "x", "text_a": "y"}, ["text_a", "text_b"]),
    ({"text_a": ["x", "y"]}, ["text_a", "text_b"]),
    ({"text_a": "x", "text_b": "y"}, ["text"]),
    (("x", "y"), ["text_a"]),
    ({"text": "x"}, ["context", "question"]),
    (["x", "y", "z"], ["text_a", "text_b"]),
    (float("nan"), ["text"]),
    (None, ["text_a", "text_b"]),
  ],
)
def test_items_that_a_model_does_not_take(item, names):
  with pytest.raises(ValueError, match=f"does not fit this model, whose inputs are {names[0]}"):
    name_texts(item, names)


@pytest.mark.parametrize("name", ["batch_size", "chunk_size"])
def test_sizes_below_one_are_refused(name):
  with pytest.raises(ValueError, match=f"{name} is 0, but must be at least 1"):
    Spy(**{name: 0})


def test_an_output_without_a_row_for_each_item_is_refused():
  broken = predictors.predictor(
    lambda item: {"codes": item}, lambda batch: {"sum": np.zeros([7])}, ["codes"]
  )
  with pytest.raises(ValueError, match=r"'sum' is \(7,\) for 2 items"):
    broken([[1], [2]])


# ---------------------------------------------------------------------------------------------
# Checkpoints.


@functools.cache  # of each text once, for all layers and poolings
def own_layers(trained, text, text_b=None):
  """float32 [S, L, W] of one text alone, by BertModel itself, and its tokens."""
  tokenizer = tokenization.FullTokenizer(os.path.join(trained, "vocab.txt"))
  tokens = ["[CLS]", *tokenizer.tokenize(text)[:14], "[SEP]"]
  segments = [0] * len(tokens)
  if text_b:
    tokens += [*tokenizer.tokenize(text_b), "[SEP]"]
    segments += [1] * (len(tokens) - len(segments))
  with use_store(VariableStore()) as store:
    inputs = tf.constant([tokenizer.convert_tokens_to_ids(tokens)])
    BertModel(CONFIG, False, inputs, None, [segments])
    loading.init_from_checkpoint(finding.find_checkpoint(trained), store.variables)
    model = BertModel(CONFIG, False, inputs, None, [segments])
  return np.stack([layer[0] for layer in model.get_all_encoder_layers()], axis=1), tokens


POOL = {
  "none": lambda vectors: vectors,
  "cls": lambda vectors: vectors[0],
  "mean": lambda vectors: vectors.mean(axis=0),
  "max": lambda vectors: vectors.max(axis=0),
}


@pytest.mark.parametrize("pooling", sentence_vectors.POOLINGS)
@pytest.mark.parametrize("layers", [-1, 0, (-1, 0)])
def test_vectors_are_those_of_the_model(trained, pooling, layers):
  encode = Predictor.load(
    trained, task="vectors", layers=layers, pooling=pooling, max_seq_length=16
  )
  items = [*random_texts(5), ("the film", "was good .")]
  for item, result in zip(items, encode(items), strict=True):
    vectors, _ = own_layers(trained, *([item] if isinstance(item, str) else item))
    expected = POOL[pooling](vectors)[..., list(np.atleast_1d(layers)), :]
    expected = expected[..., 0, :] if isinstance(layers, int) else expected
    np.testing.assert_allclose(result, expected, atol=1e-5)


def test_the_graph_is_traced_once(trained):
  traces = []

  def build(features):
    traces.append(1)
    return {"sum": tf.reduce_sum(features["input_ids"], axis=1)}

  function = tensorflow.load_graph(
    lambda features: {
      **build(features),
      "first": BertModel(CONFIG, False, **_model_inputs(features)).get_pooled_output(),
    },
    sentence_vectors.INPUTS,
    finding.find_checkpoint(trained),
  )
  run = predictors.predictor(
    lambda n: dict.fromkeys(sentence_vectors.INPUTS, [1] * n), function, sentence_vectors.INPUTS
  )
  assert [result["sum"] for result in run(range(1, 20))] == list(range(1, 20))
  run.batch_size = 5
  run(range(3, 30))
  assert len(traces) == 1


def _model_inputs(features):
  return {
    "input_ids": features["input_ids"],
    "input_mask": features["input_mask"],
    "token_type_ids": features["segment_ids"],
  }


def test_a_text_may_be_empty_or_too_long(encode):
  empty, long, cut = encode(["", "the " * 500, "the " * 14])
  assert np.isfinite(empty).all()
  np.testing.assert_allclose(long, cut, atol=1e-6)


def test_the_vocabulary_of_another_run_is_said(trained, monkeypatch, caplog):
  load_run.load_model(trained, max_seq_length=16)
  assert "was trained with" not in caplog.text
  monkeypatch.setattr(reading, "read_facts", lambda prefix: {"vocabulary": "ab" * 32})
  load_run.load_model(trained, max_seq_length=16)
  assert "vocab.txt is not the vocabulary that" in caplog.text


@pytest.mark.parametrize("item", [3, ("a",), ("a", 3), None, {"text_a": "a", "text_c": "b"}])
def test_what_is_no_text_is_refused(encode, item):
  with pytest.raises(ValueError, match="Expected a text or a pair of texts"):
    encode([item])


@pytest.mark.ci
def test_an_exported_encoder_serves_as_a_checkpoint(trained, encode, tmp_path):
  done = run_filter(export_hub, init_checkpoint=trained, export_dir=tmp_path, max_seq_length=16)
  assert done.code is None, done.err
  texts = random_texts(5)
  for folder in (tmp_path, tmp_path / "encoder"):
    again = Predictor.load(str(folder), task="vectors", max_seq_length=16)
    np.testing.assert_allclose(again(texts), encode(texts), atol=1e-5)
  flags = {"task": "vectors", "init_checkpoint": tmp_path / "encoder", "max_seq_length": 16}
  code, printed, err = run_filter(predict, "\n".join(texts).encode(), **flags)
  assert code is None, err
  found = np.array([json.loads(line)["vector"] for line in printed.splitlines()])
  np.testing.assert_allclose(found, encode(texts), atol=1e-5)
  with pytest.raises(ValueError, match="exported with do_lower_case True"):
    Predictor.load(str(tmp_path), task="vectors", do_lower_case=False, max_seq_length=16)


@pytest.mark.parametrize(
  ("options", "message"),
  [
    ({"layers": 2}, "no layer 2: the model has 2, 0 to 1 from the first"),
    ({"layers": [-1, -3]}, "no layer -3"),
    ({"pooling": "sum"}, "'sum', but must be one of none, cls, mean, max"),
    ({"max_seq_length": 33}, "max_seq_length is 33, but must be from 3 to 32"),
    ({"max_seq_length": 2}, "max_seq_length is 2"),
  ],
)
def test_options_that_cannot_be(trained, options, message):
  with pytest.raises(ValueError, match=message):
    Predictor.load(trained, task="vectors", **{"max_seq_length": 16, **options})


def _copy_checkpoint(trained, folder) -> str:
  for path in pathlib.Path(trained).glob("model.ckpt-1*"):
    (folder / path.name).write_bytes(path.read_bytes())
  return str(folder / "model.ckpt-1")


def test_a_checkpoint_without_a_pooler_has_vectors_all_the_same(trained, encode, tmp_path):
  prefix = finding.find_checkpoint(trained)
  names = [name for name in reading.names_and_shapes(prefix) if "pooler" not in name]
  values = {n: tf.Variable(v, name=n) for n, v in reading.read_tensors(prefix, names).items()}
  saving.save(str(tmp_path), 1, values, {})
  files = {
    name: os.path.join(trained, path)
    for name, path in (("bert_config_file", "bert_config.json"), ("vocab_file", "vocab.txt"))
  }
  without = Predictor.load(str(tmp_path), task="vectors", max_seq_length=16, **files)
  np.testing.assert_allclose(without(["the film"]), encode(["the film"]), atol=1e-6)


def test_similarity_is_the_cosine(encode):
  a, b = np.random.default_rng(0).normal(size=(2, 8)).astype(np.float32)
  expected = np.dot(a, b) / np.sqrt(np.dot(a, a) * np.dot(b, b))
  assert sentence_vectors.cosine_similarity(a, b) == pytest.approx(expected, rel=1e-5)
  assert sentence_vectors.cosine_similarity(np.zeros(3), np.ones(3)) == 0
  assert sentence_vectors.cosine_similarity(
    *encode(["the film was good", "The film was GOOD"])
  ) == pytest.approx(1)


# ---------------------------------------------------------------------------------------------
# Fine-tuned models.


def test_the_order_of_answers_does_not_change_between_processes():
  """A SavedModel returns its outputs in any order, so JSON lines would differ from run to run."""
  outputs = {"probabilities": np.array([0.5]), "label": b"yes"}
  processor = TextProcessor(["text"])
  assert list(processor.finish([{"text": "a"}], [outputs])) == ["label", "probabilities"]


def test_answers_are_those_of_the_saved_model(exported, answer):
  items = [*random_texts(9), *zip(random_texts(4, seed=1), random_texts(4, seed=2), strict=True)]
  model = tf.saved_model.load(os.path.join(exported, "task"))
  for item, result in zip(items, answer(items), strict=True):
    texts = [item, ""] if isinstance(item, str) else list(item)
    expected = model(*(tf.constant([text]) for text in texts))
    assert result["label"] == expected["label"].numpy()[0].decode()
    np.testing.assert_allclose(result["probabilities"], expected["probabilities"][0], atol=1e-5)
    assert result["label_names"] == LABELS
  as_dict = answer([{"text_b": "bad", "text_a": "good"}])[0]
  np.testing.assert_array_equal(
    as_dict["probabilities"], answer([("good", "bad")])[0]["probabilities"]
  )


def test_words_have_as_many_answers_as_a_text_has_words(tmp_path):
  """A server's rows are filled up to the longest of their batch; a result has what is its own."""

  @tf.function(input_signature=[tf.TensorSpec([None], tf.string, "text")])
  def serve(text):
    words = tf.strings.split(text)
    lengths = tf.ragged.map_flat_values(tf.strings.length, words)
    return {
      "words": words.to_tensor(),
      "lengths": lengths.to_tensor(),
      "num_words": words.row_lengths(),
    }

  module = tf.Module()
  module.serve = serve
  tf.saved_model.save(module, str(tmp_path), {"serving_default": serve})
  short, long, none = Predictor.load(str(tmp_path))(["a bb", "a b c d", ""])
  assert (short["words"], short["lengths"].tolist(), short["num_words"]) == (["a", "bb"], [1, 2], 2)
  assert (len(long["words"]), len(long["lengths"])) == (4, 4)
  assert (none["words"], none["lengths"].tolist(), none["num_words"]) == ([], [], 0)


def test_other_folders_are_refused(trained, tmp_path):
  with pytest.raises(ValueError, match="is not a fine-tuned model of"):
    Predictor.load(trained, task="answers")
  module = tf.Module()
  module.f = tf.function(
    lambda x: {"y": x}, input_signature=[tf.TensorSpec([None, None], tf.int32, "x")]
  )
  tf.saved_model.save(module, str(tmp_path), {"serving_default": module.f})
  with pytest.raises(ValueError, match="is a SavedModel whose variables do not have BERT's names"):
    Predictor.load(str(tmp_path))
