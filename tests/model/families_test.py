"""ELECTRA and ALBERT against what their originals computed."""

import gzip
import json
import math

import numpy as np
import pytest
import tensorflow as tf

from bert import families
from bert.model.variable_shapes import encoder_shapes
from bert.model.variables import VariableStore, use_store
from bert.modeling import BertConfig, BertModel
from bert.predicting import attention
from tests.kit.families import load_variables, shapes_of
from tests.kit.recorded_configs import electra_config

# Row 2 of batch 2 hides every position from every other: 1e-3 of each score is lost in float32.
NOISY_ROW, NOISE = 2, 3e-4


def outputs_of(config, inputs, **options):
  model = BertModel(config, False, *inputs, **options)
  return {
    "word_embedding_output": model.get_word_embedding_output(),
    "embedding_output": model.get_embedding_output(),
    "all_encoder_layers": tf.stack(model.get_all_encoder_layers()),
    "sequence_output": model.get_sequence_output(),
    "pooled_output": model.get_pooled_output(),
  }


def assert_close(actual, expected, name, atol=1e-5):
  np.testing.assert_allclose(actual, expected, rtol=0, atol=atol, err_msg=name)


@pytest.mark.parametrize("letter", ["A", "B", "C"])
def test_albert_forward_equals_the_original(golden_dir, letter):
  folder = golden_dir / "albert"
  golden = np.load(folder / f"forward_{letter}.npz")
  config = BertConfig.from_json_file(folder / f"config_{letter}.json")
  assert config.family is families.ALBERT
  with use_store(VariableStore()) as store:
    for batch in ("b0", "b1", "b2"):
      names = ("input_ids", "input_mask", "segment_ids")
      inputs = [golden[f"{batch}_in_{name}"] for name in names]
      BertModel(config, False, *inputs)
      load_variables(store, folder / f"model_{letter}.ckpt")
      for name, value in outputs_of(config, inputs).items():
        value, expected = np.array(value), golden[f"{batch}_{name}"]
        if batch == "b2":
          rows = value.shape.index(len(inputs[0]))
          noisy = [np.take(array, [NOISY_ROW], rows) for array in (value, expected)]
          assert_close(*noisy, f"{batch} {name}, noisy row", NOISE)
          value, expected = (np.delete(array, NOISY_ROW, rows) for array in (value, expected))
        assert_close(value, expected, f"{batch} {name}")
    outputs = outputs_of(config, inputs[:1])
    prefix = "b2_no_mask_no_segments_"
    names = [name.removeprefix(prefix) for name in golden.files if name.startswith(prefix)]
    assert names
    for name in names:
      assert_close(outputs[name], golden[prefix + name], name)


@pytest.mark.parametrize("batch", ["b0", "b3"])
def test_electra_encoders_equal_the_original(golden_dir, batch):
  folder = golden_dir / "electra"
  golden = np.load(folder / "forward.npz")
  config = electra_config(golden_dir)
  assert config.hidden_act == "gelu_erf"
  mask, segments = golden[f"{batch}_in_input_mask"], golden[f"{batch}_in_segment_ids"]

  def forward():
    generator = outputs_of(
      config.generator_config(),
      (golden[f"{batch}_masked_input_ids"], mask, segments),
      scope="generator",
      embedding_scope="electra",
    )
    discriminator = outputs_of(config, (golden[f"{batch}_fake_input_ids"], mask, segments))
    return {"generator": generator, "discriminator": discriminator}

  with use_store(VariableStore()) as store:
    forward()
    load_variables(store, folder / "model.ckpt")
    for model, outputs in forward().items():
      for name in ("embedding_output", "all_encoder_layers", "pooled_output"):
        assert_close(outputs[name], golden[f"{batch}_{model}_{name}"], f"{model} {name}")


@pytest.mark.parametrize("which", ["generator", "discriminator"])
def test_electra_attention_maps_equal_the_original(golden_dir, which):
  golden = np.load(golden_dir / "electra" / "forward.npz")
  config, scopes, ids = electra_config(golden_dir), {}, golden["b3_fake_input_ids"]
  if which == "generator":
    config, ids = config.generator_config(), golden["b3_masked_input_ids"]
    scopes = {"scope": "generator", "embedding_scope": "electra"}
  mask, segments = golden["b3_in_input_mask"], golden["b3_in_segment_ids"]
  with use_store(VariableStore()) as store:
    BertModel(config, False, ids, mask, segments, **scopes)
    load_variables(store, golden_dir / "electra" / "model.ckpt")
    model = BertModel(config, False, ids, mask, segments, **scopes)
    maps = attention.attention_maps(config, model, mask, scopes.get("scope"))
  expected = np.moveaxis(golden[f"b3_{which}_attn_maps"], 0, 1)  # [B, L, N, S, S]
  assert_close(maps, expected, which)


@pytest.mark.parametrize("size", ["small", "base", "large"])
def test_electra_variables_are_the_original_s(golden_dir, size):
  with gzip.open(golden_dir / "electra" / "variables.json.gz", "rt") as stream:
    expected = json.load(stream)[f"finetuning mrpc {size}"]["variables"]
  expected = {name: shape for name, shape in expected if name.startswith("electra/")}
  config = BertConfig.from_name(f"electra_{size}")
  found = shapes_of(config)
  assert found == expected
  assert config.count_parameters() == sum(int(np.prod(shape)) for shape in expected.values())


@pytest.mark.parametrize("letter", ["A", "B", "C"])
def test_albert_variables_are_the_original_s(golden_dir, letter):
  folder = golden_dir / "albert"
  config = BertConfig.from_json_file(folder / f"config_{letter}.json")
  variables = json.loads((folder / "variables.json").read_text())[f"pretraining_{letter}"]
  expected = {name: shape for name, shape in variables if name.startswith("bert/")}
  assert shapes_of(config) == expected
  assert config.count_parameters() == sum(int(np.prod(shape)) for shape in expected.values())


# ---------------------------------------------------------------------------------------------
# Fast paths and configurations.

TINY = {
  **dict(vocab_size=50, hidden_size=16, num_attention_heads=2, intermediate_size=24),
  **dict(num_hidden_layers=3, max_position_embeddings=16, type_vocab_size=2, embedding_size=8),
}
KEYS = {
  "electra": {"model_type": "electra"},
  "albert": {"num_hidden_groups": 2},
  "roberta": {"model_type": "roberta", "max_position_embeddings": 12},
  "distilbert": {"model_type": "distilbert", "type_vocab_size": 0},
}


@pytest.mark.parametrize("family", list(KEYS))
def test_fast_paths_change_no_value(family):
  config = BertConfig.from_dict({**TINY, **KEYS[family], "initializer_range": 0.2})
  ids = np.random.RandomState(1).randint(2, 50, [3, 8])  # no padding among the tokens
  mask = np.arange(8) < np.array([[8], [5], [2]])
  inputs = ids, mask.astype(np.int32), ids % 2
  with use_store(VariableStore()):
    plain = outputs_of(config, inputs)
    unpadded = outputs_of(config, inputs, skip_padding=True, row_multiple=4)
    assert_close(unpadded["pooled_output"], plain["pooled_output"], "pooled, unpadded")
    expected = np.where(mask[..., None], plain["sequence_output"], 0)
    assert_close(unpadded["sequence_output"], expected, "sequence, unpadded")
    first = BertModel(config, False, *inputs, only_pooled_output=True)
    assert_close(first.get_pooled_output(), plain["pooled_output"], "first token alone")
    low = BertModel(config, False, *inputs, dtype=tf.bfloat16)
    assert_close(low.get_pooled_output(), plain["pooled_output"], "bfloat16", atol=0.1)


def test_shared_layers_get_the_sum_of_their_gradients():
  # In the original TensorFlow adds the gradients of all uses of a variable; so it must here.
  config = BertConfig.from_dict({**TINY, "num_hidden_groups": 1, "initializer_range": 0.5})
  ids = np.random.RandomState(1).randint(0, 50, [2, 4])
  with use_store(VariableStore()) as store:

    def loss():
      return tf.reduce_sum(BertModel(config, True, ids).get_sequence_output()[:, 1] ** 3)

    config.hidden_dropout_prob = config.attention_probs_dropout_prob = 0.0
    loss()
    name = "bert/encoder/transformer/group_0/inner_group_0/ffn_1/intermediate/dense/bias"
    bias = store.variables[name]
    with tf.GradientTape() as tape:
      value = loss()
    gradient = tape.gradient(value, bias)[0].numpy()
    step = 1e-2
    sides = []
    for sign in (1, -1):
      bias.assign(tf.one_hot(0, 24) * sign * step)
      sides.append(float(loss()))
    np.testing.assert_allclose(gradient, (sides[0] - sides[1]) / (2 * step), rtol=2e-2)


def test_rows_of_padding_learn_nothing_from_the_look_up():
  """As PyTorch's `padding_idx`: of RoBERTa, the row of words and that of positions."""
  config = BertConfig.from_dict({**TINY, **KEYS["roberta"], "initializer_range": 0.5})
  ids = np.array([[5, 1, 6, 7], [1, 8, 9, 1]])  # without a mask, padding is computed as all else
  with use_store(VariableStore()) as store:
    BertModel(config, False, ids)
    tables = [
      store.variables[f"roberta/embeddings/{name}_embeddings"] for name in ("word", "position")
    ]
    with tf.GradientTape() as tape:
      loss = tf.reduce_sum(BertModel(config, False, ids).get_sequence_output() ** 3)
    gradients = tape.gradient(loss, tables)
  for gradient, read in zip(gradients, ([5, 6, 7, 8, 9], [2, 3, 4]), strict=True):
    rows = tf.reduce_sum(tf.abs(tf.convert_to_tensor(gradient)), 1)
    assert np.flatnonzero(rows).tolist() == read


def test_a_sequence_too_long_for_its_positions_is_refused():
  config = BertConfig.from_dict({**TINY, **KEYS["roberta"]})
  assert config.longest_sequence == 10
  with use_store(VariableStore()), pytest.raises(ValueError, match="longer than the 10 positions"):
    BertModel(config, False, np.full([1, 11], 5))


@pytest.mark.parametrize(
  "keys", [{}, *KEYS.values(), {"num_hidden_groups": 1, "inner_group_num": 2}]
)
def test_shapes_that_are_known_beforehand_are_those_of_the_model(keys):
  config = BertConfig.from_dict({**TINY, **keys})
  expected = {name: list(shape) for name, shape in encoder_shapes(config).items()}
  assert shapes_of(config) == expected
  assert sum(map(math.prod, expected.values())) == config.count_parameters()


@pytest.mark.parametrize(
  ("content", "message"),
  [
    ({"model_type": "deberta"}, "model_type is .deberta.; known: bert, electra, albert, roberta"),
    ({"num_hidden_groups": 0}, "num_hidden_groups is 0; a whole number of at least 1"),
    ({"model_type": "electra", "embedding_size": -1}, "embedding_size is -1"),
    ({"model_type": "roberta", "layer_norm_eps": 0}, "layer_norm_eps is 0; a positive number"),
    ({"model_type": "roberta", "pad_token_id": 50}, "pad_token_id is 50; a number from 0 to 49"),
    ({"model_type": "roberta", "pad_token_id": 15}, "of which padding takes the first 16"),
    ({"model_type": "distilbert", "qa_dropout": 1}, "qa_dropout is 1"),
    ({"type_vocab_size": 0}, "type_vocab_size is 0; a whole number of at least 1"),
    ({"classifier_activation": "gelu"}, "classifier_activation is 'gelu' of BERT; only relu"),
  ],
)
def test_impossible_configurations_are_named(content, message):
  with pytest.raises(ValueError, match=message):
    BertConfig.from_dict({**TINY, **content}).validate()
