"""The encoder in Keras 3: sizes, outputs, weights, saving."""

import keras
import numpy as np
import pytest
from keras import ops

from bert.checkpoints import loading
from bert.keras3 import BERT, sizes
from bert.model.configuration import RELEASED_SIZES, BertConfig
from tests.kit import keras_models
from tests.kit.keras_models import numpy_of, on_tensorflow, random_inputs

TINY = {**keras_models.TINY, "num_layers": 2}


def make_inputs(length=12):
  return random_inputs(4, length)


@pytest.fixture(scope="module")
def bert():
  keras.utils.set_random_seed(3)
  model = BERT(**TINY, initializer_range=0.2)
  generator = np.random.default_rng(1)
  for variable in model.weights:  # LayerNorms and biases, too, so that none can hide
    variable.assign(generator.normal(0.1, 0.3, variable.shape))
  return model


# ---------------------------------------------------------------------------------------------
# Sizes.


@pytest.mark.parametrize(
  ("variant", "count"),
  [("tiny", 10119936), ("small", 35068416), ("base", 109482240), ("large", 335141888)],
)
def test_true_parameter_counts_of_the_named_variants(variant, count):
  arguments = {"type_vocab_size": 2, **sizes.variant_arguments(variant)}
  assert sizes.config_of(arguments).count_parameters() == count


def test_every_released_size_is_a_variant():
  for name in RELEASED_SIZES:
    assert sizes.config_of(sizes.variant_arguments(name)).to_dict() == (
      BertConfig.from_name(name).to_dict()
    )
  model = BERT.from_variant("cased_L-12_H-768_A-12", num_layers=1, hidden_size=24)
  assert model.vocab_size == 28996


@pytest.mark.parametrize(
  ("arguments", "message"),
  [
    ({"variant": "huge"}, "variant is 'huge'"),
    ({"variant": "base", "weights_dataset": "klingon"}, "weights_dataset is 'klingon'"),
    ({"variant": "tiny", "pretrained": True}, "intermediate_size 512"),
    ({"variant": "tiny", "hidden_act": "sine"}, "hidden_act is 'sine'"),
    ({"variant": "tiny", "num_heads": 3}, "num_attention_heads"),
    ({"variant": "tiny", "normalization_position": "middle"}, "normalization_position is"),
    ({"variant": "tiny", "normalization_type": "none"}, "normalization_type is"),
    ({"variant": "tiny", "attention_type": "none"}, "attention_type is"),
    ({"variant": "tiny", "ffn_type": "none"}, "ffn_type is"),
    ({"variant": "tiny", "pad_token_id": 40000}, "pad_token_id is"),
  ],
)
def test_wrong_arguments_are_named(arguments, message):
  with pytest.raises(ValueError, match=message):
    BERT.from_variant(**arguments)


def test_released_weights_have_their_archives_name():
  arguments = sizes.variant_arguments("base", "multilingual")
  assert arguments["vocab_size"] == 119547
  name = sizes.released_name(arguments, "base", "multilingual")
  assert name == "multi_cased_L-12_H-768_A-12"


# ---------------------------------------------------------------------------------------------
# Outputs.


def test_three_ways_to_call_give_the_same(bert):
  inputs = make_inputs()
  by_dictionary = bert(inputs)
  by_keyword = bert(
    inputs["input_ids"],
    attention_mask=inputs["attention_mask"],
    token_type_ids=inputs["token_type_ids"],
  )
  assert set(by_dictionary) == {"last_hidden_state", "pooler_output", "attention_mask"}
  for name, value in by_dictionary.items():
    np.testing.assert_array_equal(numpy_of(value), numpy_of(by_keyword[name]))
  turned = bert(inputs["input_ids"], position_ids=np.arange(12)[::-1][None])
  assert (
    np.abs(numpy_of(turned["pooler_output"]) - numpy_of(bert(inputs)["pooler_output"])).max() > 0
  )
  bare = bert(inputs["input_ids"], position_ids=np.arange(12)[None])
  ones, zeros = np.ones_like(inputs["input_ids"]), np.zeros_like(inputs["input_ids"])
  full = bert({"input_ids": inputs["input_ids"], "attention_mask": ones, "token_type_ids": zeros})
  np.testing.assert_array_equal(
    numpy_of(bare["last_hidden_state"]), numpy_of(full["last_hidden_state"])
  )


def test_wrong_inputs_are_named(bert):
  with pytest.raises(ValueError, match="input_ids"):
    bert({"attention_mask": np.ones((2, 4))})
  with pytest.raises(ValueError, match="input_mask"):
    bert({"input_ids": np.ones((2, 4)), "input_mask": np.ones((2, 4))})
  with pytest.raises(ValueError, match="sequence of 25 tokens"):
    bert(np.ones((2, 25), "int32"))


def test_padding_changes_nothing(bert):
  inputs = make_inputs()
  expected = numpy_of(bert(inputs)["last_hidden_state"])
  inputs["input_ids"] = np.where(inputs["attention_mask"] == 1, inputs["input_ids"], 7)
  seen = inputs["attention_mask"][..., None]
  np.testing.assert_allclose(
    numpy_of(bert(inputs)["last_hidden_state"]) * seen, expected * seen, rtol=0, atol=1e-6
  )
  longer = {name: np.pad(value, ((0, 0), (0, 3))) for name, value in inputs.items()}
  np.testing.assert_allclose(
    numpy_of(bert(longer)["last_hidden_state"])[:, :12] * seen, expected * seen, atol=1e-5
  )


# ---------------------------------------------------------------------------------------------
# The same as modeling.py, and as the original.


@pytest.mark.ci
def test_minilm_equals_the_original(golden_dir, data_dir):
  golden = np.load(golden_dir / "minilm_forward.npz")
  model = BERT.from_checkpoint(data_dir / "weights" / "minilm_L-6_H-384_A-12")
  outputs = model({"input_ids": golden["input_ids"], "attention_mask": golden["input_mask"]})
  mask = golden["input_mask"][:, :16, np.newaxis]
  np.testing.assert_allclose(
    numpy_of(outputs["last_hidden_state"])[:, :16] * mask,
    golden["sequence_output_first16"] * mask,
    rtol=0,
    atol=1e-5,
  )
  np.testing.assert_allclose(
    numpy_of(outputs["pooler_output"]), golden["pooled_output"], rtol=0, atol=1e-5
  )


def test_every_layer_of_the_tiny_model_equals_the_original(golden_dir):
  golden = np.load(golden_dir / "tiny_forward.npz")
  model = BERT.from_checkpoint(golden_dir / "tiny")
  outputs = model(
    golden["in_input_ids"],
    attention_mask=golden["in_input_mask"],
    token_type_ids=golden["in_segment_ids"],
    output_hidden_states=True,
  )
  embedded, *layers = (numpy_of(state) for state in outputs["hidden_states"])
  np.testing.assert_allclose(embedded, golden["embedding_output"], rtol=0, atol=1e-5)
  np.testing.assert_allclose(np.stack(layers), golden["layers"], rtol=0, atol=1e-5)


# ---------------------------------------------------------------------------------------------
# Weights.


def write_checkpoint(folder, model):
  """Writes a model's weights as the original would."""
  from bert.checkpoints import saving

  values = {name: numpy_of(v) for name, v in model.checkpoint_variables().items()}
  (folder / "bert_config.json").write_text(model.config.to_json_string())
  return saving.save(folder, 3, {**values, "cls/other": np.zeros(2, "float32")}, state={})


def warnings_of(monkeypatch):
  """What loading warns of, as a list that fills."""
  texts = []
  monkeypatch.setattr(loading.logging, "warning", texts.append)
  return texts


@on_tensorflow
def test_another_vocabulary_skips_the_word_table_with_a_warning(bert, tmp_path, monkeypatch):
  prefix = write_checkpoint(tmp_path, bert)
  texts = warnings_of(monkeypatch)
  sizes = {**TINY, "vocab_size": 60}
  model = BERT.from_variant("tiny", pretrained=prefix, **sizes)
  assert len(texts) == 1
  assert (
    "bert/embeddings/word_embeddings: float32 [40, 16] in the checkpoint, float32 [60, 16] in the "
    "model" in texts[0]
  )
  theirs, ours = bert.checkpoint_variables(), model.checkpoint_variables()
  name = "bert/encoder/layer_0/attention/self/query/kernel"
  np.testing.assert_array_equal(numpy_of(ours[name]), numpy_of(theirs[name]))
  before = numpy_of(ours["bert/embeddings/word_embeddings"])
  with pytest.raises(ValueError, match=r"word_embeddings: float32 \[40, 16\] in the checkpoint"):
    model.load_pretrained_weights(prefix, skip_mismatch=False)
  np.testing.assert_array_equal(before, numpy_of(ours["bert/embeddings/word_embeddings"]))


@on_tensorflow
def test_the_checkpoints_vocabulary_counts_by_default(bert, tmp_path, monkeypatch):
  write_checkpoint(tmp_path, bert)
  texts = warnings_of(monkeypatch)
  sizes = {key: value for key, value in TINY.items() if key != "vocab_size"}
  model = BERT.from_variant("tiny", pretrained=tmp_path, **sizes)
  assert model.vocab_size == 40
  assert not texts


@on_tensorflow
def test_the_report_names_everything(bert, tmp_path, monkeypatch):
  prefix = write_checkpoint(tmp_path, bert)
  warnings_of(monkeypatch)
  model = BERT(**{**TINY, "num_layers": 3})
  report = model.load_pretrained_weights(prefix)
  assert len(report.loaded) == len(bert.weights)
  assert all(name.startswith("bert/encoder/layer_2/") for name in report.missing)
  assert len(report.missing) == 16
  assert report.unexpected == ["cls/other"]
  assert "not used (1): cls/other" in report.summary()


@on_tensorflow
def test_weights_of_something_else_are_refused(bert, tmp_path):
  from bert.checkpoints import saving

  prefix = saving.save(tmp_path, 1, {"encoder/kernel": np.zeros(3, "float32")}, state={})
  with pytest.raises(ValueError, match="encoder/kernel"):
    bert.load_pretrained_weights(prefix)
  with pytest.raises(ValueError, match="No checkpoint"):
    bert.load_pretrained_weights(tmp_path / "nowhere")


# ---------------------------------------------------------------------------------------------
# Keras: saving, functional models, training.


def test_config_round_trip_keeps_every_argument(bert):
  arguments = {**TINY, "normalization_position": "pre", "layer_args": {"use_bias": False}}
  model = BERT(**arguments, hidden_dropout_prob=0.3, attention_type="window")
  again = BERT.from_config(model.get_config())
  assert again.get_config() == model.get_config()
  assert again.count_params() == model.count_params() < bert.count_params()


def test_dropout_only_in_training(bert):
  inputs = make_inputs()
  twice = [numpy_of(bert(inputs, training=True)["pooler_output"]) for _ in range(2)]
  assert not np.array_equal(*twice)
  calm = [numpy_of(bert(inputs, training=False)["pooler_output"]) for _ in range(2)]
  np.testing.assert_array_equal(*calm)


def test_one_seed_makes_one_model():
  def weights_of(seed):
    keras.utils.set_random_seed(seed)
    return [numpy_of(variable) for variable in BERT(**TINY).weights]

  first, again, other = weights_of(1), weights_of(1), weights_of(2)
  for one, two in zip(first, again, strict=True):
    np.testing.assert_array_equal(one, two)
  assert not np.array_equal(first[0], other[0])
  table = first[0]
  assert abs(table).max() <= 0.04
  assert 0.016 < table.std() < 0.0185  # of a normal of 0.02, cut off at twice that


def test_mixed_precision(bert):
  config = {**bert.get_config(), "dtype": "mixed_float16"}
  model = BERT.from_config(config)
  model.set_weights(bert.get_weights())
  assert model.encoder_layers[0].compute_dtype == "float16"
  assert {keras.backend.standardize_dtype(v.dtype) for v in model.weights} == {"float32"}
  inputs = make_inputs()
  outputs = numpy_of(ops.cast(model(inputs)["pooler_output"], "float32"))
  np.testing.assert_allclose(outputs, numpy_of(bert(inputs)["pooler_output"]), atol=0.02)
