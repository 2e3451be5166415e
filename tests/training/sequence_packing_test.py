"""Packed rows: complete, within bounds, undone by unpack, and the same to a model."""

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from bert.model import heads
from bert.model.variables import VariableStore, use_store
from bert.modeling import BertConfig, BertModel
from bert.training.sequence_packing import pack, place, unpack

CONFIG = BertConfig(
  vocab_size=50,
  hidden_size=32,
  num_hidden_layers=2,
  num_attention_heads=4,
  intermediate_size=48,
  max_position_embeddings=24,
)


def batch_of(lengths, seq_length, seed=0):
  """Features of pre-training for sequences of these lengths."""
  random, count = np.random.RandomState(seed), len(lengths)
  mask = (np.arange(seq_length) < np.array(lengths)[:, None]).astype(np.int32)
  positions = np.array([sorted(random.randint(0, n, 3)) for n in lengths], np.int32)
  arrays = {
    "input_ids": random.randint(1, 50, [count, seq_length]) * mask,
    "input_mask": mask,
    "segment_ids": random.randint(0, 2, [count, seq_length]) * mask,
    "masked_lm_positions": positions,
    "masked_lm_ids": random.randint(1, 50, [count, 3]),
    "next_sentence_labels": random.randint(0, 2, [count, 1]),
  }
  features = {name: tf.constant(array, tf.int32) for name, array in arrays.items()}
  return {**features, "masked_lm_weights": tf.ones([count, 3])}


LENGTHS = [3, 24, 9, 1, 12, 12, 5, 7, 20, 2]


@settings(deadline=None, max_examples=40)
@given(
  lengths=st.lists(st.integers(1, 16), min_size=1, max_size=24), row_length=st.integers(16, 40)
)
def test_sequences_lie_side_by_side_and_few_rows_are_used(lengths, row_length):
  rows, offsets, numbers, num_rows = (
    x.numpy() for x in place(tf.constant(lengths), row_length=row_length)
  )
  taken = np.zeros([num_rows, row_length], int)
  for row, offset, length in zip(rows, offsets, lengths, strict=True):
    taken[row, offset : offset + length] += 1
  assert taken.sum() == sum(lengths)
  assert taken.max() == 1
  for row in range(num_rows):
    begins = sorted((offsets[i], numbers[i]) for i in np.flatnonzero(rows == row))
    assert [number for _, number in begins] == list(range(1, len(begins) + 1))
  # No two rows could be one: what is in the later would have found room in the earlier.
  filled = np.sort(taken.sum(axis=1))
  assert num_rows == 1 or filled[0] + filled[1] > row_length


@settings(deadline=None, max_examples=30)
@given(lengths=st.lists(st.integers(1, 12), min_size=1, max_size=16), seed=st.integers(0, 9))
def test_unpacking_undoes_packing(lengths, seed):
  features = batch_of(lengths, 12, seed)
  packed = pack(features)
  for name in ("input_ids", "input_mask", "segment_ids"):
    unpacked = unpack(packed[name], packed, length=12)
    np.testing.assert_array_equal(unpacked, features[name], err_msg=name)
  flat_ids = tf.reshape(packed["input_ids"], [-1])
  np.testing.assert_array_equal(
    tf.gather(flat_ids, packed["masked_lm_positions"]),
    tf.gather(features["input_ids"], features["masked_lm_positions"], batch_dims=1),
  )
  np.testing.assert_array_equal(
    tf.gather(flat_ids, packed["first_positions"]), features["input_ids"][:, 0]
  )


def test_rows_positions_and_numbers():
  features = batch_of([2, 3, 4], 6)
  packed = pack(features)
  assert packed["sequence_ids"].numpy().tolist() == [[1, 1, 1, 1, 2, 2], [1, 1, 1, 0, 0, 0]]
  assert packed["position_ids"].numpy().tolist() == [[0, 1, 2, 3, 0, 1], [0, 1, 2, 0, 0, 0]]
  assert packed["input_mask"].numpy().tolist() == [[1] * 6, [1, 1, 1, 0, 0, 0]]
  assert packed["first_positions"].numpy().tolist() == [4, 6, 0]
  for name in ("masked_lm_ids", "masked_lm_weights", "next_sentence_labels"):
    assert packed[name] is features[name]
  assert {x.dtype for n, x in packed.items() if n != "masked_lm_weights"} == {tf.dtypes.int32}


def test_other_features_of_tokens_have_their_own_padding():
  features = {"input_mask": tf.constant([[1, 1, 0], [1, 0, 0]]), "label_ids": tf.ones([2, 3])}
  features["label_ids"] = tf.constant([[5, -1, -1], [0, -1, -1]])
  packed = pack(features, row_length=5, token_features={"input_mask": 0, "label_ids": -1})
  assert packed["label_ids"].numpy().tolist() == [[5, -1, 0, -1, -1]]
  unpacked = unpack(packed["label_ids"], packed, length=3, padding=-1)
  np.testing.assert_array_equal(unpacked, features["label_ids"])


def test_an_example_that_is_all_padding_and_one_with_a_hole():
  features = {"input_mask": tf.constant([[0, 0, 0], [1, 0, 1], [0, 0, 0]])}
  packed = pack(features, row_length=5)
  assert packed["sequence_ids"].numpy().tolist() == [[1, 1, 1, 2, 3]]
  assert packed["input_mask"].numpy().tolist() == [[1, 0, 1, 0, 0]]


def test_a_fixed_number_of_rows_gives_fixed_shapes():
  @tf.function(autograph=False)
  def packed(features, rows):
    result = pack(features, num_rows=rows)
    assert result["input_ids"].shape == [rows, 24]
    assert result["sequence_ids"].shape == [rows, 24]
    assert result["first_positions"].shape == [10]
    return result

  features = batch_of(LENGTHS, 24)
  result = packed(features, 7)
  assert result["sequence_ids"].numpy()[-1].sum() == 0  # four are needed
  np.testing.assert_array_equal(unpack(result["input_ids"], result, 24), features["input_ids"])
  with pytest.raises(tf.errors.InvalidArgumentError, match="not fit into 3 rows of 24 tokens"):
    packed(features, 3)
  with pytest.raises(tf.errors.InvalidArgumentError, match="longer than rows of 20 tokens"):
    pack(features, row_length=20)


# ---------------------------------------------------------------------------------------------
# What a model makes of it.


def outputs(features, is_packed, skip_padding):
  """Pooled output, first-token vectors, losses of both heads; sequence output as [N, S, W]."""
  more = ("position_ids", "sequence_ids", "first_positions") if is_packed else ()
  model = BertModel(
    CONFIG,
    False,
    features["input_ids"],
    features["input_mask"],
    features["segment_ids"],
    skip_padding=skip_padding,
    **{name: features[name] for name in more},
  )
  sequence_output, positions = model.get_sequence_output(), features["masked_lm_positions"]
  tokens = sequence_output
  if is_packed:
    tokens = unpack(sequence_output, features, 24, padding=0.0)
    # One long sequence, in which the positions count.
    sequence_output = tf.reshape(sequence_output, [1, -1, CONFIG.hidden_size])
    positions = tf.reshape(positions, [1, -1])
  masked_lm = heads.get_masked_lm_output(
    CONFIG,
    sequence_output,
    model.get_embedding_table(),
    positions,
    features["masked_lm_ids"],
    features["masked_lm_weights"],
  )
  next_sentence = heads.get_next_sentence_output(
    CONFIG, model.get_pooled_output(), features["next_sentence_labels"]
  )
  return {
    "pooled": model.get_pooled_output(),
    "tokens": tokens,
    "masked_lm": masked_lm[1],
    "next_sentence": next_sentence[2],
    "loss": masked_lm[0] + next_sentence[0],
  }


@pytest.fixture(scope="module")
def both():
  """Outputs and gradients of a batch row by row, and packed; each with and without padding."""
  features = batch_of(LENGTHS, 24)
  packed = pack(features, row_length=30, num_rows=5)
  store = VariableStore(seed=3)

  def run(features, is_packed, skip_padding):
    @tf.function(autograph=False)
    def step():
      with use_store(store):
        with tf.GradientTape() as tape:
          result = outputs(features, is_packed, skip_padding)
        variables = list(store.variables.values())
        gradients = tape.gradient(result["loss"], [v for v in variables if v.trainable])
      return result, [tf.convert_to_tensor(g) for g in gradients]

    with use_store(store):
      outputs(features, is_packed, skip_padding)  # creates the variables
    for number, variable in enumerate(store.variables.values()):
      # Larger than initial values, so that attention differs between tokens.
      variable.assign(np.random.RandomState(number).normal(0.0, 0.2, variable.shape))
    return step()

  plain = run(features, False, False)
  return features, plain, [run(packed, True, False), run(packed, True, True)], list(store.variables)


@pytest.mark.ci
@pytest.mark.parametrize("skip_padding", [False, True])
def test_a_model_computes_the_same_from_packed_rows(both, skip_padding):
  features, (plain, _), packed, _ = both
  mask = features["input_mask"].numpy()[..., None]
  packed = packed[skip_padding][0]
  for name, expected in plain.items():
    scale = mask if name == "tokens" else 1
    np.testing.assert_allclose(
      packed[name] * scale, expected * scale, rtol=1e-5, atol=1e-5, err_msg=name
    )


@pytest.mark.parametrize("skip_padding", [False, True])
def test_gradients_are_the_same_from_packed_rows(both, skip_padding):
  _, (_, plain), packed, names = both
  assert len(plain) == len(names)
  for name, gradient, expected in zip(names, packed[skip_padding][1], plain, strict=True):
    assert np.abs(expected).max() > 0 or name.endswith("key/bias"), name
    np.testing.assert_allclose(gradient, expected, rtol=1e-4, atol=1e-5, err_msg=name)
