"""The graph-mode model: the original's numbers, names, shapes and messages."""

import json

import numpy as np
import pytest

from bert_tf1.library import modeling
from bert_tf1.real import tf

SIZES = {
  "hidden_size": 8,
  "num_hidden_layers": 1,
  "num_attention_heads": 2,
  "intermediate_size": 12,
  "max_position_embeddings": 6,
  "type_vocab_size": 2,
}
IDS = [[2, 5, 6, 3], [2, 7, 3, 0]]
MASK = [[1, 1, 1, 1], [1, 1, 1, 0]]
SEGMENTS = [[0, 0, 1, 1], [0, 0, 0, 0]]


def small_model(batch=(IDS, MASK, SEGMENTS), scope=None, sizes=None):
  config = modeling.BertConfig(11, **{**SIZES, **(sizes or {})})
  return modeling.BertModel(config, False, *map(tf.constant, batch), scope=scope)


def model_of(folder, **inputs):
  config = modeling.BertConfig.from_json_file(f"{folder}/bert_config.json")
  return modeling.BertModel(config, False, **{k: tf.constant(v) for k, v in inputs.items()})


def test_every_output_of_the_tiny_model_is_the_originals(golden_dir, started):
  golden = np.load(golden_dir / "tiny_forward.npz")
  model = model_of(
    golden_dir / "tiny",
    input_ids=golden["in_input_ids"],
    input_mask=golden["in_input_mask"],
    token_type_ids=golden["in_segment_ids"],
  )
  outputs = {
    "embedding_output": model.get_embedding_output(),
    "layers": model.get_all_encoder_layers(),
    "sequence_output": model.get_sequence_output(),
    "pooled_output": model.get_pooled_output(),
  }
  for name, value in started(golden_dir / "tiny" / "bert_model.ckpt").run(outputs).items():
    np.testing.assert_allclose(value, golden[name], rtol=0, atol=1e-5, err_msg=name)


@pytest.mark.ci
def test_minilm_is_the_originals(golden_dir, data_dir, started):
  golden = np.load(golden_dir / "minilm_forward.npz")
  (folder,) = (data_dir / "weights").glob("minilm*")
  model = model_of(folder, input_ids=golden["input_ids"], input_mask=golden["input_mask"])
  session = started(folder / "bert_model.ckpt")
  sequence, pooled = session.run([model.get_sequence_output(), model.get_pooled_output()])
  is_token = golden["input_mask"][:, :16, np.newaxis]
  sequence, expected = (x * is_token for x in (sequence[:, :16], golden["sequence_output_first16"]))
  np.testing.assert_allclose(sequence, expected, rtol=0, atol=1e-5)
  np.testing.assert_allclose(pooled, golden["pooled_output"], rtol=0, atol=1e-5)


def test_variables_are_those_of_released_checkpoints():
  small_model(sizes={"num_hidden_layers": 2})
  layer = [
    *("attention/self/query", "attention/self/key", "attention/self/value"),
    *("attention/output/dense", "intermediate/dense", "output/dense"),
  ]
  dense = [f"encoder/layer_{i}/{name}" for i in (0, 1) for name in layer] + ["pooler/dense"]
  norms = [f"encoder/layer_{i}/{name}" for i in (0, 1) for name in ("attention/output", "output")]
  assert {variable.name for variable in tf.trainable_variables()} == {
    *(f"bert/{name}/{kind}:0" for name in dense for kind in ("kernel", "bias")),
    *(f"bert/{name}/LayerNorm/{k}:0" for name in ["embeddings", *norms] for k in ("beta", "gamma")),
    *(f"bert/embeddings/{kind}_embeddings:0" for kind in ("word", "position", "token_type")),
  }
  assert tf.global_variables() == tf.trainable_variables()
  shapes = {variable.name: variable.shape.as_list() for variable in tf.trainable_variables()}
  assert shapes["bert/embeddings/word_embeddings:0"] == [11, 8]
  assert shapes["bert/embeddings/position_embeddings:0"] == [6, 8]
  assert shapes["bert/encoder/layer_1/intermediate/dense/kernel:0"] == [8, 12]


def test_one_hot_embeddings_and_unknown_sizes_change_nothing(started):
  batch = [tf.placeholder(tf.int32, [None, None]) for _ in range(3)]
  config = modeling.BertConfig(11, **SIZES)
  models = [small_model(scope="a")]
  for options in ({}, {"use_one_hot_embeddings": True}):
    with tf.variable_scope("a", reuse=True):
      models.append(
        modeling.BertModel(config, False, *batch, scope=tf.get_variable_scope(), **options)
      )
  feed = dict(zip(batch, (IDS, MASK, SEGMENTS), strict=True))
  outputs = [[m.get_sequence_output(), m.get_pooled_output()] for m in models]
  expected, *others = started().run(outputs, feed)
  for other in others:
    for a, b in zip(expected, other, strict=True):
      np.testing.assert_allclose(a, b, rtol=0, atol=1e-6)


def test_mask_and_segments_have_the_originals_defaults(started):
  ids = tf.constant(IDS)
  given = small_model(batch=(IDS, np.ones([2, 4], int), np.zeros([2, 4], int)), scope="a")
  with tf.variable_scope("a", reuse=True):
    config = modeling.BertConfig(11, **SIZES)
    default = modeling.BertModel(config, False, ids, scope=tf.get_variable_scope())
  a, b = started().run([given.pooled_output, default.pooled_output])
  np.testing.assert_array_equal(a, b)


def test_dropout_is_for_training_alone(started):
  config = modeling.BertConfig(11, **SIZES, hidden_dropout_prob=0.5)
  model = modeling.BertModel(config, False, tf.constant(IDS))
  training = modeling.BertModel(config, True, tf.constant(IDS), scope="training")
  session = started()
  first, second = (session.run([model.pooled_output, training.pooled_output]) for _ in range(2))
  assert (first[0] == second[0]).all()
  assert (first[1] != second[1]).any()
  assert config.hidden_dropout_prob == 0.5
  dropped = session.run(modeling.dropout(tf.ones([10000]), 0.2))
  assert set(np.unique(dropped)) == {np.float32(0), np.float32(1.25)}
  assert abs((dropped == 0).mean() - 0.2) < 0.05
  ones = tf.ones([2])
  assert modeling.dropout(ones, 0.0) is ones
  assert modeling.dropout(ones, None) is ones


def test_random_ops_have_the_places_of_the_originals(graph):
  """Their seeds are their places in the graph, so equal ones draw equal weights and dropout."""
  ids = tf.placeholder(tf.int32, [None, 4])
  modeling.BertModel(modeling.BertConfig(11, **SIZES), True, ids)
  places = [
    place
    for place, op in enumerate(graph.get_operations())
    if op.type in ("TruncatedNormal", "RandomUniform")
  ]
  # Those of the original's own modeling.py, run by `bert tf1` on TensorFlow 2.21.
  expected = [19, 46, 82, 119, 165, 180, 195, 235, 258, 273, 304, 332, 347, 392]
  assert places == expected


def test_initial_weights(started):
  values = modeling.create_initializer(0.5)([20000])
  values = started().run(values)
  assert abs(values).max() <= 1.0
  assert values.std() == pytest.approx(0.5 * 0.88, abs=0.02)  # truncated at two deviations


def test_attention_from_one_sequence_to_another(started):
  queries, keys = tf.ones([2, 3, 4]), tf.ones([2, 5, 6])
  with tf.variable_scope("x"):
    joined = modeling.attention_layer(queries, keys, num_attention_heads=2, size_per_head=3)
  with tf.variable_scope("x", reuse=True):
    flat = modeling.attention_layer(
      tf.reshape(queries, [6, 4]),
      tf.reshape(keys, [10, 6]),
      tf.ones([2, 3, 5]),
      num_attention_heads=2,
      size_per_head=3,
      do_return_2d_tensor=True,
      batch_size=2,
      from_seq_length=3,
      to_seq_length=5,
    )
  a, b = started().run([joined, flat])
  assert a.shape == (2, 3, 6)
  np.testing.assert_array_equal(a.reshape(6, 6), b)
  with pytest.raises(ValueError, match="must all be specified"):
    modeling.attention_layer(tf.ones([6, 4]), tf.ones([10, 6]), batch_size=2)
  with pytest.raises(ValueError, match="must match the rank of"):
    modeling.attention_layer(queries, tf.ones([10, 6]))


def test_activations(started):
  x = tf.constant([-1.0, 0.5, 3.0])
  # By TensorFlow 1.15.5.
  expected = [-0.15880796, 0.34571401, 2.99636269]
  np.testing.assert_allclose(started().run(modeling.gelu(x)), expected, rtol=0, atol=1e-6)
  assert modeling.get_activation("GELU") is modeling.gelu
  assert modeling.get_activation("relu") is tf.nn.relu
  assert modeling.get_activation("tanh") is tf.tanh
  assert modeling.get_activation(modeling.gelu) is modeling.gelu
  assert [modeling.get_activation(name) for name in ("linear", "", None)] == [None] * 3
  with pytest.raises(ValueError, match=r"^Unsupported activation: swish$"):
    modeling.get_activation("Swish")


def test_shapes_and_ranks():
  unknown = tf.placeholder(tf.float32, [None, 3, 4], name="x")
  size, *rest = modeling.get_shape_list(unknown, expected_rank=[2, 3])
  assert size.shape.as_list() == []
  assert rest == [3, 4]
  flat = modeling.reshape_to_matrix(unknown)
  assert flat.shape.as_list() == [None, 4]
  assert modeling.reshape_to_matrix(flat) is flat
  assert modeling.reshape_from_matrix(flat, [size, 3, 7]).shape.as_list() == [None, 3, 4]
  assert modeling.reshape_from_matrix(flat, [6, 4]) is flat
  with tf.variable_scope("here"), pytest.raises(ValueError, match="rank") as caught:
    modeling.assert_rank(unknown, 2)
  assert str(caught.value) == (
    "For the tensor `x:0` in scope `here`, the actual rank `3` (shape = (?, 3, 4)) is not equal "
    "to the expected rank `2`"
  )
  with pytest.raises(ValueError, match=r"must have at least rank 2. Shape = \(2,\)"):
    modeling.reshape_to_matrix(tf.ones([2]))


def test_sizes_that_do_not_fit():
  with pytest.raises(ValueError, match=r"hidden size \(8\) is not a multiple .* \(3\)"):
    modeling.transformer_model(tf.ones([1, 2, 8]), hidden_size=8, num_attention_heads=3)
  with pytest.raises(ValueError, match=r"width of the input tensor \(6\) != hidden size \(8\)"):
    modeling.transformer_model(tf.ones([1, 2, 6]), hidden_size=8, num_attention_heads=2)
  with pytest.raises(ValueError, match="must be specified if"):
    modeling.embedding_postprocessor(tf.ones([1, 2, 8]), use_token_type=True)
  too_long = np.zeros([1, 7], int)
  with pytest.raises(ValueError, match=r"of 7 are longer than max_position_embeddings \(6\)"):
    small_model(batch=(too_long, too_long, too_long))


def test_configurations(tmp_path):
  config = modeling.BertConfig.from_dict({"vocab_size": 11, "hidden_act": "relu", "extra": [1]})
  assert (config.hidden_size, config.hidden_act, config.extra) == (768, "relu", [1])
  path = tmp_path / "bert_config.json"
  path.write_text(config.to_json_string())
  assert modeling.BertConfig.from_json_file(str(path)).to_dict() == config.to_dict()
  # As TensorFlow 1.15.5 wrote it.
  assert (
    modeling.BertConfig(99).to_json_string()
    == json.dumps(
      {
        "attention_probs_dropout_prob": 0.1,
        "hidden_act": "gelu",
        "hidden_dropout_prob": 0.1,
        "hidden_size": 768,
        "initializer_range": 0.02,
        "intermediate_size": 3072,
        "max_position_embeddings": 512,
        "num_attention_heads": 12,
        "num_hidden_layers": 12,
        "type_vocab_size": 16,
        "vocab_size": 99,
      },
      indent=2,
    )
    + "\n"
  )


def test_the_assignment_map(tmp_path, started):
  small_model()
  checkpoint = tf.train.Saver([*tf.trainable_variables()[:2]]).save(started(), str(tmp_path / "m"))
  with tf.Graph().as_default():
    small_model()
    names = [variable.name for variable in tf.trainable_variables()[:2]]
    found, initialized = modeling.get_assignment_map_from_checkpoint(
      tf.trainable_variables(), checkpoint
    )
  bare = [name.removesuffix(":0") for name in names]
  assert found == {name: name for name in bare}
  assert initialized == dict.fromkeys([*bare, *names], 1)
