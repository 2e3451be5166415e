"""BertModel and its functions against the original's outputs. Run: pytest tests/modeling_test.py"""

import json

import numpy as np
import pytest
import tensorflow as tf

from bert import modeling
from bert.model import heads
from bert.model.variables import VariableStore, reset_default_store, use_store
from bert.modeling import BertConfig, BertModel

# Everything under bert/ of every released size: the sum of the shapes in its checkpoint.
PARAMETER_COUNTS = {
  "uncased_L-2_H-128_A-2": 4_385_920,
  "uncased_L-2_H-256_A-4": 9_591_040,
  "uncased_L-2_H-512_A-8": 22_458_880,
  "uncased_L-2_H-768_A-12": 38_603_520,
  "uncased_L-4_H-128_A-2": 4_782_464,
  "uncased_L-4_H-256_A-4": 11_170_560,
  "uncased_L-4_H-512_A-8": 28_763_648,
  "uncased_L-4_H-768_A-12": 52_779_264,
  "uncased_L-6_H-128_A-2": 5_179_008,
  "uncased_L-6_H-256_A-4": 12_750_080,
  "uncased_L-6_H-512_A-8": 35_068_416,
  "uncased_L-6_H-768_A-12": 66_955_008,
  "uncased_L-8_H-128_A-2": 5_575_552,
  "uncased_L-8_H-256_A-4": 14_329_600,
  "uncased_L-8_H-512_A-8": 41_373_184,
  "uncased_L-8_H-768_A-12": 81_130_752,
  "uncased_L-10_H-128_A-2": 5_972_096,
  "uncased_L-10_H-256_A-4": 15_909_120,
  "uncased_L-10_H-512_A-8": 47_677_952,
  "uncased_L-10_H-768_A-12": 95_306_496,
  "uncased_L-12_H-128_A-2": 6_368_640,
  "uncased_L-12_H-256_A-4": 17_488_640,
  "uncased_L-12_H-512_A-8": 53_982_720,
  "uncased_L-12_H-768_A-12": 109_482_240,
  "uncased_L-24_H-1024_A-16": 335_141_888,
  "cased_L-12_H-768_A-12": 108_310_272,
  "cased_L-24_H-1024_A-16": 333_579_264,
  "multi_cased_L-12_H-768_A-12": 177_853_440,
  "multilingual_L-12_H-768_A-12": 167_356_416,
  "chinese_L-12_H-768_A-12": 102_267_648,
  "wwm_uncased_L-24_H-1024_A-16": 335_141_888,
  "wwm_cased_L-24_H-1024_A-16": 333_579_264,
}


def tiny_config(**changes):
  values = dict(
    vocab_size=99,
    hidden_size=32,
    num_hidden_layers=3,
    num_attention_heads=4,
    intermediate_size=37,
    max_position_embeddings=64,
    type_vocab_size=16,
  )
  return BertConfig(**{**values, **changes})


def random_ids(shape, vocab_size, seed=0):
  return tf.constant(np.random.RandomState(seed).randint(0, vocab_size, shape), tf.int32)


def load(store, prefix):
  reader = tf.train.load_checkpoint(str(prefix))
  for name, variable in store.variables.items():
    variable.assign(reader.get_tensor(name))


# ---------------------------------------------------------------------------------------------
# Against the original.


def test_tiny_forward_equals_the_original(golden_dir):
  golden = np.load(golden_dir / "tiny_forward.npz")
  config = BertConfig.from_json_file(golden_dir / "tiny" / "bert_config.json")

  def forward():
    model = BertModel(
      config, False, golden["in_input_ids"], golden["in_input_mask"], golden["in_segment_ids"]
    )
    masked = heads.get_masked_lm_output(
      config,
      model.get_sequence_output(),
      model.get_embedding_table(),
      golden["in_masked_lm_positions"],
      golden["in_masked_lm_ids"],
      golden["in_masked_lm_weights"],
    )
    following = heads.get_next_sentence_output(
      config, model.get_pooled_output(), golden["in_next_sentence_labels"]
    )
    return model, masked, following

  with use_store(VariableStore()) as store:
    forward()
    load(store, golden_dir / "tiny" / "bert_model.ckpt")
    model, masked, following = forward()

  def close(actual, name):
    np.testing.assert_allclose(actual, golden[name], rtol=0, atol=1e-5, err_msg=name)

  close(model.get_embedding_output(), "embedding_output")
  close(tf.stack(model.get_all_encoder_layers()), "layers")
  close(model.get_sequence_output(), "sequence_output")
  close(model.get_pooled_output(), "pooled_output")
  close(masked[0], "masked_lm_loss")
  close(masked[1], "masked_lm_example_loss")
  close(masked[2][:, :8], "masked_lm_log_probs_first8")
  close(following[0], "next_sentence_loss")
  close(following[2], "next_sentence_log_probs")


def test_minilm_forward_equals_the_original(golden_dir, data_dir):
  golden = np.load(golden_dir / "minilm_forward.npz")
  weights = data_dir / "weights" / "minilm_L-6_H-384_A-12"
  config = BertConfig.from_json_file(weights / "bert_config.json")
  with use_store(VariableStore()) as store:
    BertModel(config, False, tf.zeros([1, 1], tf.int32))
    load(store, weights / "bert_model.ckpt")

    @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32)] * 2)
    def forward(ids, mask):
      with use_store(store):
        model = BertModel(config, False, ids, mask)
        return model.get_sequence_output(), model.get_pooled_output()

    for length in (128, 40):  # the sentences are shorter: what they are padded to must not matter
      sequence, pooled = forward(golden["input_ids"][:, :length], golden["input_mask"][:, :length])
      mask = golden["input_mask"][:, :16, np.newaxis]
      np.testing.assert_allclose(
        sequence[:, :16] * mask, golden["sequence_output_first16"] * mask, rtol=0, atol=1e-5
      )
      np.testing.assert_allclose(pooled, golden["pooled_output"], rtol=0, atol=1e-5)


def test_names_are_the_originals(golden_dir):
  """All names of a real checkpoint, in both directions."""
  config = BertConfig.from_json_file(golden_dir / "tiny" / "bert_config.json")
  with use_store(VariableStore()) as store:
    model = BertModel(config, False, tf.zeros([1, 1], tf.int32))
    heads.masked_lm_logits(config, model.get_pooled_output(), model.get_embedding_table())
    heads.get_next_sentence_output(config, model.get_pooled_output(), tf.zeros([1], tf.int32))
  ours = {name: v.shape.as_list() for name, v in store.variables.items()}
  assert ours == dict(tf.train.list_variables(str(golden_dir / "tiny" / "bert_model.ckpt")))


# ---------------------------------------------------------------------------------------------
# Properties.


def test_shapes_eager_and_traced_with_unknown_sizes():
  config = tiny_config()
  store = VariableStore()

  @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32)])
  def traced(ids):
    with use_store(store):
      model = BertModel(config, True, ids)
      return (
        model.get_embedding_output(),
        model.get_sequence_output(),
        model.get_pooled_output(),
        model.get_all_encoder_layers(),
      )

  traced(random_ids([1, 1], 99))  # creates the variables
  traces = traced.experimental_get_tracing_count()
  for batch, length in ((13, 7), (2, 64)):
    embedded, sequence, pooled, layers = traced(random_ids([batch, length], 99))
    assert embedded.shape == sequence.shape == (batch, length, 32)
    assert pooled.shape == (batch, 32)
    assert [layer.shape for layer in layers] == [(batch, length, 32)] * 3
  assert traced.experimental_get_tracing_count() == traces

  reset_default_store()
  model = BertModel(config, False, random_ids([13, 7], 99))
  assert model.get_embedding_table().shape == (99, 32)
  assert model.get_sequence_output().shape == (13, 7, 32)


def test_padded_ids_change_nothing():
  config = tiny_config()
  ids = random_ids([2, 10], 99)
  mask = tf.constant([[1] * 10, [1] * 6 + [0] * 4])
  with use_store(VariableStore()):
    one = BertModel(config, False, ids, mask)
    other_ids = tf.where(mask == 1, ids, (ids + 17) % 99)
    other = BertModel(config, False, other_ids, mask)
    shorter = BertModel(config, False, ids[1:, :6])
  np.testing.assert_array_equal(one.get_pooled_output(), other.get_pooled_output())
  np.testing.assert_array_equal(
    one.get_sequence_output()[1, :6], other.get_sequence_output()[1, :6]
  )
  np.testing.assert_allclose(
    one.get_sequence_output()[1:, :6], shorter.get_sequence_output(), rtol=0, atol=1e-5
  )


@pytest.mark.parametrize("is_training", [False, True])
def test_skipping_padding_and_other_tokens_changes_no_output_and_no_gradient(is_training):
  """In training without dropout, so that gradients flow through the same blocks."""
  config = tiny_config(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0)
  ids = random_ids([3, 10], 99)
  mask = tf.constant([[1] * 10, [1] * 6 + [0] * 4, [1] + [0] * 9])
  segments = random_ids([3, 10], 2)
  results = []
  with use_store(VariableStore()) as store:
    for options in (
      {},
      {"skip_padding": True},
      {"only_pooled_output": True},
      {"skip_padding": True, "only_pooled_output": True},
    ):
      with tf.GradientTape() as tape:
        model = BertModel(config, is_training, ids, mask, segments, **options)
        loss = tf.reduce_sum(tf.square(model.get_pooled_output() - 0.1))
      gradients = tape.gradient(loss, list(store.trainable_variables.values()))
      results.append((model, [tf.convert_to_tensor(g) for g in gradients]))
  model, gradients = results[0]
  for other, other_gradients in results[1:]:
    np.testing.assert_allclose(model.get_pooled_output(), other.get_pooled_output(), atol=1e-6)
    for name, one, two in zip(store.trainable_variables, gradients, other_gradients, strict=True):
      np.testing.assert_allclose(one, two, rtol=1e-4, atol=1e-6, err_msg=name)
  shown = tf.cast(mask, tf.float32)[:, :, tf.newaxis]
  for plain, skipping in zip(
    model.get_all_encoder_layers(), results[1][0].get_all_encoder_layers(), strict=True
  ):
    np.testing.assert_allclose(plain * shown, skipping, atol=1e-6)

  @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32)] * 3)
  def traced(ids, mask, segments):  # sizes unknown
    with use_store(store):
      return BertModel(config, is_training, ids, mask, segments, **options).get_pooled_output()

  np.testing.assert_allclose(model.get_pooled_output(), traced(ids, mask, segments), atol=1e-6)
  with pytest.raises(ValueError, match="only_pooled_output"):
    results[2][0].get_sequence_output()


def test_one_hot_embeddings_equal_the_gather():
  config = tiny_config()
  ids = random_ids([2, 5], 99)
  with use_store(VariableStore()):
    one = BertModel(config, False, ids)
    other = BertModel(config, False, ids, use_one_hot_embeddings=True)
  np.testing.assert_allclose(
    one.get_sequence_output(), other.get_sequence_output(), rtol=0, atol=1e-6
  )


def test_a_segment_id_past_the_table_adds_nothing():
  with use_store(VariableStore()):
    embedded = modeling.embedding_postprocessor(
      tf.ones([1, 3, 8]),
      use_token_type=True,
      token_type_ids=tf.constant([[0, 5, 7]]),
      token_type_vocab_size=2,
      use_position_embeddings=False,
      dropout_prob=0.0,
    )
  np.testing.assert_array_equal(embedded[0, 1], embedded[0, 2])
  assert np.abs(embedded[0, 0] - embedded[0, 1]).max() > 0


def test_attention_layer_cross_attention_and_ranks():
  queries, memory = tf.random.normal([2, 3, 8]), tf.random.normal([2, 5, 8])
  mask = modeling.create_attention_mask_from_input_mask(queries, tf.ones([2, 5], tf.int32))
  assert mask.shape == (2, 3, 5)

  def attend(queries, memory, **kwargs):
    return modeling.attention_layer(
      queries, memory, mask, num_attention_heads=2, size_per_head=4, **kwargs
    )

  with use_store(VariableStore()):
    three = attend(queries, memory)
    two = attend(
      tf.reshape(queries, [6, 8]),
      tf.reshape(memory, [10, 8]),
      batch_size=2,
      from_seq_length=3,
      to_seq_length=5,
      do_return_2d_tensor=True,
    )
    assert three.shape == (2, 3, 8)
    np.testing.assert_allclose(tf.reshape(three, [6, 8]), two, atol=1e-6)
    with pytest.raises(ValueError, match="must match"):
      attend(queries, tf.reshape(memory, [10, 8]))
    with pytest.raises(ValueError, match="batch_size"):
      attend(tf.reshape(queries, [6, 8]), tf.reshape(memory, [10, 8]))


# ---------------------------------------------------------------------------------------------
# Configurations and errors.


@pytest.mark.parametrize("name", list(modeling.RELEASED_SIZES))
def test_parameter_counts(name):
  assert BertConfig.from_name(name).count_parameters() == PARAMETER_COUNTS[name]


def test_every_size_has_a_row():
  assert set(PARAMETER_COUNTS) == set(modeling.RELEASED_SIZES)


def test_config_to_json_string():
  config = BertConfig(vocab_size=99, hidden_size=37)
  values = json.loads(config.to_json_string())
  assert values["vocab_size"] == 99
  assert values["hidden_size"] == 37
  assert values["type_vocab_size"] == 16
  assert BertConfig.from_dict(values).to_dict() == config.to_dict()


def test_unknown_config_keys_are_kept_and_named(caplog):
  config = BertConfig.from_dict({"vocab_size": 9, "hiden_size": 4, "pooler_type": "x"})
  assert config.hiden_size == 4
  assert "hiden_size" in caplog.text
  assert "pooler_type" not in caplog.text


def test_a_sequence_past_the_positions_is_an_error_not_garbage():
  config = tiny_config(max_position_embeddings=8)
  store = VariableStore()
  with use_store(store), pytest.raises(ValueError, match="8 positions"):
    BertModel(config, False, tf.zeros([1, 9], tf.int32))

  @tf.function(input_signature=[tf.TensorSpec([None, None], tf.int32)])
  def forward(ids):
    with use_store(store):
      return BertModel(config, False, ids).get_pooled_output()

  forward(tf.zeros([1, 8], tf.int32))
  with pytest.raises(tf.errors.InvalidArgumentError, match="8 positions"):
    forward(tf.zeros([1, 9], tf.int32))


def test_wrong_rank_and_unknown_names():
  with use_store(VariableStore()), pytest.raises(ValueError, match="rank 1"):
    BertModel(tiny_config(), False, [1, 2])
  with pytest.raises(ValueError, match="uncased_L-12"):
    BertConfig.from_name("bert-base")
  assert modeling.get_activation("linear") is None
  assert modeling.get_activation(None) is None
  assert modeling.get_activation(tf.nn.elu) is tf.nn.elu


def test_assignment_map_is_the_intersection(golden_dir):
  with use_store(VariableStore()) as store:
    BertModel(tiny_config(num_hidden_layers=3), False, [[1]])
  prefix = str(golden_dir / "tiny" / "bert_model.ckpt")
  assignment, initialized = modeling.get_assignment_map_from_checkpoint(
    list(store.variables.values()), prefix
  )
  assert "bert/encoder/layer_1/output/dense/kernel" in assignment
  assert not any("layer_2" in name for name in assignment)
  assert set(initialized) == {alias for n in assignment for alias in (n, n + ":0")}
