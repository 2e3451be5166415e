"""A text's vector has the same bits in every batch: tiny models, and MiniLM where it is at hand."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert.predicting import load_run, sentence_vectors
from bert.predicting.engines import tensorflow
from bert.predicting.fixed_batch_shapes import FixedBatchShapes
from bert.predicting.predictor import Predictor
from tests.kit import predictors
from tests.kit.exports import WORDS


def random_texts(words, count, longest, seed=0):
  """Texts of all lengths, the empty one and one that is too long included."""
  rng = random.Random(seed)
  lengths = [0, 1, longest * 3, *(rng.randrange(longest) for _ in range(count - 3))]
  return [" ".join(rng.choices(words, k=length)) for length in lengths]


@pytest.fixture(scope="module")
def minilm(data_dir) -> str:
  return str(data_dir / "weights" / "minilm_L-6_H-384_A-12")


def number_that_differ(predictors, items, read=lambda result: result.tobytes()):
  """How many items have not the same bytes from all predictors, in three orders each."""
  found = [set() for _ in items]
  numbers = list(range(len(items)))
  for predictor in predictors:
    for order in (numbers, numbers[::-1], random.Random(0).sample(numbers, len(items))):
      for index, result in zip(order, predictor([items[i] for i in order]), strict=True):
        found[index].add(read(result))
  return sum(len(each) > 1 for each in found)


# ---------------------------------------------------------------------------------------------
# Vectors.


@pytest.mark.parametrize("pooling", ["none", pytest.param("max", marks=pytest.mark.ci)])
def test_no_bit_of_a_tiny_model_depends_on_the_batch(trained, pooling):
  predictors = [
    Predictor.load(
      trained,
      task="vectors",
      layers=[-1, 0],
      pooling=pooling,
      max_seq_length=16,
      batch_size=size,
      batch_invariant=True,
    )
    for size in (1, 7)
  ]
  texts = random_texts(WORDS, 40, 20)
  assert number_that_differ(predictors, texts) == 0
  ordinary = Predictor.load(
    trained, task="vectors", layers=[-1, 0], pooling=pooling, max_seq_length=16
  )
  for ours, theirs in zip(predictors[0](texts), ordinary(texts), strict=True):
    np.testing.assert_allclose(ours, theirs, atol=1e-5)


@pytest.mark.ci
@pytest.mark.parametrize("dtype", ["float32", pytest.param("bfloat16", marks=pytest.mark.slow)])
def test_a_text_has_the_same_bits_at_every_place_of_a_batch(minilm, dtype):
  """What the shapes cannot promise: rows of an operation are computed alike at every place."""
  config, tokenizer, prefix = load_run.load_model(minilm)
  batch_shapes = FixedBatchShapes(128, config.max_position_embeddings)
  build = sentence_vectors.layer_vectors(config, [-1], "mean", dtype, batch_shapes=batch_shapes)
  compute = tensorflow.load_graph(
    build, sentence_vectors.INPUTS, prefix, optional=("bert/pooler/",)
  )
  words = random.Random(0).sample([word for word in tokenizer.vocab if word.isalpha()], 24)
  features = sentence_vectors.text_features(tokenizer, " ".join(words), 128)
  shape = batch_shapes.shape(len(features["input_ids"]))
  found = set()
  for place in range(shape.texts):
    batch = {name: np.zeros(shape, np.int32) for name in sentence_vectors.INPUTS}
    # Other texts before it, so that the first row without padding is another one each time.
    batch["input_ids"][:place, :3] = 2000 + place
    batch["input_mask"][:place, :3] = 1
    for name in sentence_vectors.INPUTS:
      batch[name][place, : len(features[name])] = features[name]
    found.add(compute(batch)["vectors"][place].tobytes())
  assert len(found) == 1


def test_the_shape_of_every_call_is_decided_by_the_lengths_of_its_texts():
  shapes = []

  def compute(batch):
    shapes.append(batch["codes"].shape)
    return {"sum": batch["codes"].sum(axis=1)}

  for batch_size in (1, 100):
    run = predictors.predictor(
      lambda length: {"codes": [1] * length},
      compute,
      ["codes"],
      lambda _, outputs: int(outputs["sum"]),
      batch_size=batch_size,
      batch_shapes=FixedBatchShapes(64, 64),
    )
    assert run([3, 9, 64, 4, 9]) == [3, 9, 64, 4, 9], "what fills up is dropped"
    assert run([9]) == [9]
  assert shapes == [(256, 8), (86, 16), (18, 64), (86, 16)] * 2


@given(
  lengths=st.lists(st.integers(2, 600), max_size=60),
  max_position_embeddings=st.sampled_from([600, 601, 1024]),
)
def test_batches_hold_every_text_once_and_no_more_than_they_can(lengths, max_position_embeddings):
  batch_shapes = FixedBatchShapes(600, max_position_embeddings)
  seen = []
  for chosen, shape in batch_shapes.batches(lengths):
    assert {batch_shapes.shape(lengths[index]) for index in chosen} == {shape}
    assert 0 < len(chosen) <= shape.texts
    assert (
      sum(lengths[index] for index in chosen) <= batch_shapes.tokens <= shape.texts * shape.length
    )
    assert max(lengths[index] for index in chosen) <= shape.length <= max_position_embeddings
    assert shape.texts * shape.length % 8 == 0
    seen += chosen
  assert sorted(seen) == list(range(len(lengths)))


# ---------------------------------------------------------------------------------------------
# Fine-tuned models, exports and masked words: each item alone.
