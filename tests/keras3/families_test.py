"""Models of other families in Keras 3: names, recorded outputs, files there and back.

Run alone: python -m pytest tests/keras3/families_test.py (on other backends: KERAS_BACKEND=torch)
"""

import json

import keras
import numpy as np
import pytest

from bert import keras3
from bert.checkpoints import loading, numpy_writer, transformers_folder, transformers_heads
from bert.keras3 import BERT, NLPTaskConfig, NLPTaskType, create_bert_with_head, sizes
from bert.model.configuration import BertConfig
from bert.model.variable_shapes import encoder_shapes, word_head_names
from tests.kit.keras_models import arrays, numpy_of, random_inputs, randomized
from tests.kit.recorded_configs import electra_config

# Row 2 of batch 2 hides every position from every other: 1e-3 of each score is lost in float32.
NOISY_ROW, NOISE = 2, 3e-4

TINY = {
  **dict(vocab_size=40, hidden_size=16, num_hidden_layers=2, num_attention_heads=2),
  **dict(intermediate_size=24, max_position_embeddings=12),
  **dict(hidden_dropout_prob=0.0, attention_probs_dropout_prob=0.0),
}
NARROW = {**TINY, "type_vocab_size": 2, "embedding_size": 8}
CONFIGS = {
  "electra": {**NARROW, "model_type": "electra"},
  "albert": {**NARROW, "model_type": "albert", "inner_group_num": 2},
  "roberta": {**TINY, "model_type": "roberta"},
  "distilbert": {**TINY, "model_type": "distilbert", "seq_classif_dropout": 0.5},
}
VARIANTS = {
  **CONFIGS,
  "electra of one width": {**CONFIGS["electra"], "embedding_size": None},
  "electra of transformers": {**CONFIGS["electra"], "transformers_heads": True},
  "albert of groups": {**NARROW, "num_hidden_layers": 4, "num_hidden_groups": 2},
  "albert of one width": {**NARROW, "num_hidden_groups": 2, "embedding_size": 16},
}


def config_of(family: str) -> BertConfig:
  return BertConfig.from_dict(VARIANTS.get(family, {**TINY, "type_vocab_size": 2}))


def shapes_of(model) -> dict[str, tuple[int, ...]]:
  return {name: tuple(variable.shape) for name, variable in model.checkpoint_variables().items()}


def assert_close(actual, expected, name="", atol=1e-5):
  np.testing.assert_allclose(actual, expected, rtol=0, atol=atol, err_msg=name)


# ---------------------------------------------------------------------------------------------
# Names, sizes and recorded outputs.


@pytest.mark.parametrize(
  "family", [pytest.param(v, marks=() if v in CONFIGS else pytest.mark.ci) for v in VARIANTS]
)
def test_variables_are_the_originals(family):
  config = config_of(family)
  bert = keras3.BertModel(config).bert
  assert shapes_of(bert) == encoder_shapes(config)
  assert bert.count_params() == config.count_parameters()
  expected = {**config.to_dict(), "model_type": config.family.name}
  if "embedding_size" in expected:
    expected["embedding_size"] = config.embedding_width
  assert bert.config.to_dict() == expected
  again = BERT.from_config(bert.get_config())
  assert again.get_config() == bert.get_config()
  words = keras3.BertForMaskedLM(bert).words
  assert set(words.checkpoint_variables()) == set(word_head_names(config))


def test_sizes_that_only_an_archive_has():
  with pytest.raises(ValueError, match="albert_base_zh"):
    BERT.from_variant("albert_base_zh")


def recorded_albert(golden_dir, letter):
  folder = golden_dir / "albert"
  config = BertConfig.from_json_file(folder / f"config_{letter}.json")
  return config, folder / f"model_{letter}.ckpt", np.load(folder / f"forward_{letter}.npz")


@pytest.mark.parametrize(
  "batches", [("b0",), pytest.param(("b1", "b2"), marks=pytest.mark.ci)], ids="-".join
)
@pytest.mark.parametrize("letter", ["A", "B", "C"])
def test_albert_equals_the_original(golden_dir, letter, batches):
  config, checkpoint, golden = recorded_albert(golden_dir, letter)
  model = keras3.BertModel(config)
  assert not model.load_pretrained_weights(checkpoint, skip_mismatch=False).missing
  for batch in batches:
    ids, mask, segments = (
      golden[f"{batch}_in_{name}"] for name in ("input_ids", "input_mask", "segment_ids")
    )
    outputs = model(ids, mask, segments, output_hidden_states=True)
    embedded = numpy_of(model.bert.embeddings(ids, segments))
    assert_close(embedded, golden[f"{batch}_embedding_output"], f"{batch} embeddings")
    layers = np.stack([numpy_of(state) for state in outputs.hidden_states[1:]], axis=1)
    pooled = numpy_of(outputs.pooler_output)
    expected = np.moveaxis(golden[f"{batch}_all_encoder_layers"], 0, 1)
    for row in range(len(ids)):
      atol = NOISE if (batch, row) == ("b2", NOISY_ROW) else 1e-5
      assert_close(layers[row], expected[row], f"{batch} layers", atol)
      assert_close(pooled[row], golden[f"{batch}_pooled_output"][row], f"{batch} pooled", atol)
  if "b2" not in batches:
    return
  bare = model(golden["b2_in_input_ids"])
  prefix = "b2_no_mask_no_segments_"
  assert_close(numpy_of(bare.last_hidden_state), golden[f"{prefix}sequence_output"])
  assert_close(numpy_of(bare.pooler_output), golden[f"{prefix}pooled_output"])


@pytest.mark.parametrize("which", ["discriminator", "generator"])
def test_electra_equals_the_original(golden_dir, which):
  golden, config = np.load(golden_dir / "electra" / "forward.npz"), electra_config(golden_dir)
  is_generator = which == "generator"
  model = keras3.BertForMaskedLM(config.generator_config()) if is_generator else BERT(
    **sizes.arguments_from_config(config)
  )  # fmt: skip
  report = model.load_pretrained_weights(golden_dir / "electra" / "model.ckpt")
  assert not report.missing + report.mismatched
  bert = model.bert if is_generator else model
  for batch in ("b0", "b3"):
    ids = golden[f"{batch}_{'masked' if is_generator else 'fake'}_input_ids"]
    inputs = {
      "input_ids": ids,
      "attention_mask": golden[f"{batch}_in_input_mask"],
      "token_type_ids": golden[f"{batch}_in_segment_ids"],
    }
    outputs = bert(inputs, output_hidden_states=True, output_attentions=batch == "b3")
    embedded, *layers = (numpy_of(state) for state in outputs["hidden_states"])
    assert_close(embedded, golden[f"{batch}_{which}_embedding_output"])
    assert_close(np.stack(layers), golden[f"{batch}_{which}_all_encoder_layers"])
    if is_generator:
      positions = golden[f"{batch}_masked_lm_positions"][..., None].astype(int)
      logits = np.take_along_axis(numpy_of(model(inputs).logits), positions, axis=1)
      assert_close(logits, golden[f"{batch}_mlm_logits"])
    else:
      assert_close(numpy_of(outputs["pooler_output"]), golden[f"{batch}_{which}_pooled_output"])
  maps = np.stack([numpy_of(each) for each in outputs["attentions"]])
  assert_close(maps, golden[f"b3_{which}_attn_maps"])
  if not is_generator:
    model = keras3.BertForReplacedTokens(config)
    report = model.load_pretrained_weights(golden_dir / "electra" / "model.ckpt")
    assert not report.missing + report.mismatched
    outputs = model(**inputs, labels=golden["b3_is_fake_tokens"])
    assert_close(numpy_of(outputs.logits), golden["b3_disc_logits"])
    labels = np.where(inputs["attention_mask"], golden["b3_is_fake_tokens"], -100)
    assert_close(numpy_of(model(**inputs, labels=labels).loss), golden["b3_disc_loss"])


BATCHES = {
  "roberta": ("a", "full64", "left", "nomask", "odd"),
  "distilbert": ("a", "full64", "left", "nomask"),
}


@pytest.mark.ci
@pytest.mark.parametrize(("family", "batches"), list(BATCHES.items()), ids=list(BATCHES))
def test_roberta_and_distilbert_equal_transformers(golden_dir, family, batches):
  folder = golden_dir / family
  golden = np.load(folder / "tiny_forward.npz")
  words = keras3.BertForMaskedLM.from_pretrained(folder / "tiny")
  texts = keras3.BertForSequenceClassification.from_pretrained(
    folder / "tiny_sequence_classification"
  )
  for batch in batches:
    inputs = {"input_ids": golden[f"{batch}/in_input_ids"]}
    if f"{batch}/in_attention_mask" in golden.files:
      inputs["attention_mask"] = golden[f"{batch}/in_attention_mask"]
    outputs = words.bert(inputs, output_hidden_states=True)
    if batch == "a":
      layers = np.stack([numpy_of(state) for state in outputs["hidden_states"]])
      assert_close(layers, golden["a/hidden_states"], "a layers")
    else:
      last = numpy_of(outputs["last_hidden_state"])
      assert_close(last, golden[f"{batch}/last_hidden_state"], f"{batch} last layer")
    logits = numpy_of(words(inputs).logits)
    # Sums of 32 products of up to 8: up to 9e-6 from float64 there.
    assert_close(logits[..., :16], golden[f"{batch}/mlm_logits_first16"], f"{batch} words", 2e-5)
    assert_close(logits[..., -4:], golden[f"{batch}/mlm_logits_last4"], f"{batch} words", 2e-5)
    np.testing.assert_array_equal(logits.argmax(-1), golden[f"{batch}/mlm_argmax"])
    assert_close(
      numpy_of(texts(inputs).logits), golden[f"{batch}/sequence_logits"], f"{batch} text"
    )


def test_albert_head_for_words_and_order_equals_the_original(golden_dir):
  config, checkpoint, _ = recorded_albert(golden_dir, "A")
  golden = np.load(golden_dir / "albert" / "pretrain_batches.npz")
  model = keras3.BertForPreTraining(config)
  assert not model.load_pretrained_weights(checkpoint, skip_mismatch=False).unexpected
  batch = {name: golden[name][0] for name in ("input_ids", "input_mask", "segment_ids")}
  outputs = model(*batch.values())
  order = numpy_of(keras.ops.log_softmax(outputs.seq_relationship_logits))
  assert_close(order, golden["b0_sentence_order_log_probs"])
  words = numpy_of(keras.ops.log_softmax(outputs.prediction_logits))
  positions = golden["masked_lm_positions"][0][..., None].astype(int)
  words = np.take_along_axis(words, positions, axis=1).reshape(-1, config.vocab_size)
  assert_close(words[:8], golden["b0_masked_lm_log_probs_first8"])


# ---------------------------------------------------------------------------------------------
# Files.

CLASSES = {
  "none": keras3.BertModel,
  "sentences": keras3.BertForSequenceClassification,
  "ner": keras3.BertForTokenClassification,
  "squad": keras3.BertForQuestionAnswering,
  "swag": keras3.BertForMultipleChoice,
  "masked_words": keras3.BertForMaskedLM,
  "next_sentence": keras3.BertForNextSentencePrediction,
  "pretraining": keras3.BertForPreTraining,
  "replaced_tokens": keras3.BertForReplacedTokens,
}
HAVING = {
  "next_sentence": ("bert",),
  "pretraining": ("bert", "albert"),
  "replaced_tokens": ("electra",),
}
# Heads of ELECTRA that transformers has otherwise, or that ELECTRA has not.
NOT_THERE = {"electra": {"sentences", "swag"}}
QUICK = {("electra", "ner"), *(("bert", task) for task in ("sentences", "pretraining", "swag"))}
CASES = [
  pytest.param(family, task, marks=() if (family, task) in QUICK else (pytest.mark.ci,))
  for family in ("bert", *CONFIGS, "electra of transformers")
  for task in (CLASSES if family == "bert" else ("sentences", "swag", "masked_words", *HAVING))
  if family in HAVING.get(task, (family,)) or (task == "masked_words" and " " not in family)
]


@pytest.mark.parametrize(("family", "task"), CASES)
def test_there_and_back(family, task, tmp_path):
  cls = CLASSES[task]
  model = randomized(cls(config_of(family), num_labels=3))
  inputs = random_inputs(*((2, 3, 6) if task == "swag" else (2, 6)))
  expected = arrays(model(inputs))
  model.save_checkpoint(tmp_path / "checkpoint")
  model.save(tmp_path / "model.keras")
  places = ["checkpoint", "model.keras"]
  if task in NOT_THERE.get(family, ()):
    message = r"transformers has no class .* Its encoder alone can be saved"
    with pytest.raises(ValueError, match=message):
      model.save_pretrained(tmp_path / "transformers")
    assert not (tmp_path / "transformers").exists()
  else:
    model.save_pretrained(tmp_path / "transformers")
    weights = transformers_folder.open_weights(tmp_path / "transformers")
    assert not weights.names_unchanged()
    if family == "bert":
      architecture = transformers_folder.read_architecture(weights.path)
      assert architecture == transformers_heads.class_of(transformers_heads.HEADS[task], family)
    places.append("transformers")
  for place in places:
    found = arrays(cls.from_pretrained(tmp_path / place, num_labels=3)(inputs))
    for name in expected:
      np.testing.assert_array_equal(found[name], expected[name], err_msg=f"{place} {name}")


def test_heads_of_electra_tasks(tmp_path):
  arguments = sizes.arguments_from_config(config_of("electra"))
  config, kernel = (
    NLPTaskConfig("mine", NLPTaskType.SPAM_DETECTION, 3),
    "task_specific/task/dense/kernel",
  )
  model = create_bert_with_head("tiny", config, bert_config_overrides=arguments)
  model.save_checkpoint(tmp_path)
  shapes, read = loading.open_weights(tmp_path)
  assert shapes[kernel] == (16, 3)
  limit = np.sqrt(6 / 19)  # Glorot's, where BERT has a truncated normal of 0.02
  assert 0.5 * limit < np.abs(read(kernel)).max() <= limit
  plain = keras3.TextClassificationHead(3, name="plain")
  inputs = keras3.create_inputs()
  other = keras.Model(inputs, plain(BERT(**arguments)(inputs)))
  with pytest.raises(ValueError, match=r"plain \(a head of ELECTRA needs the encoder"):
    keras3.save_checkpoint(other, tmp_path / "other")


def test_a_checkpoint_of_pretraining_gives_the_generator(golden_dir):
  config = electra_config(golden_dir).generator_config()
  # Its configuration comes from its shapes, which say nothing of the number of heads.
  model = keras3.BertForMaskedLM.from_pretrained(golden_dir / "electra" / "model.ckpt")
  assert model.bert.hidden_size == config.hidden_size == 8
  assert model.bert.embedding_size == config.embedding_size == 16
  assert model.bert.hidden_act == "gelu_erf"


# ---------------------------------------------------------------------------------------------
# What does not fit.


@pytest.mark.parametrize("family", ["electra", "albert"])
def test_weights_of_another_family_are_refused(tmp_path, family):
  config = config_of(family)
  zeros = {name: np.zeros(shape, "float32") for name, shape in encoder_shapes(config).items()}
  numpy_writer.write(tmp_path / "model", zeros)
  bert = BERT(**{**sizes.arguments_from_config(BertConfig(40, 16, 1, 2, 24))})
  with pytest.raises(ValueError, match=rf"is of {config.family.title}, but the model is of BE"):
    bert.load_pretrained_weights(tmp_path)


@pytest.mark.parametrize(
  ("arguments", "message"),
  [
    ({"model_type": "gpt"}, "model_type is 'gpt'; known: bert, electra, albert, roberta, distilb"),
    ({"model_type": "roberta", "pad_token_id": 600}, "pad_token_id is 600; a number from 0 to 39"),
    ({"model_type": "bert", "qa_dropout": 0.1}, "qa_dropout is 0.1, but model_type is 'bert'; it"),
    ({"embedding_size": 8}, "embedding_size is 8, but model_type is 'bert'; it is of electra, alb"),
    ({"model_type": "electra", "num_hidden_groups": 1}, "num_hidden_groups is 1, but model_type"),
    ({"model_type": "albert", "num_hidden_groups": 0}, "num_hidden_groups is 0; a whole number"),
  ],
)
def test_wrong_arguments_are_named(arguments, message):
  with pytest.raises(ValueError, match=message):
    BERT(vocab_size=40, hidden_size=16, num_layers=1, num_heads=2, **arguments)


def test_what_families_without_segments_read():
  model = BERT(**sizes.arguments_from_config(config_of("roberta")))
  assert model.longest_sequence == 10  # of 12 positions padding takes 2
  with pytest.raises(ValueError, match="sequence of 11 tokens is longer than"):
    model(np.full([1, 11], 7))
  ids = np.array([[1, 7, 8, 1]])  # padding on both sides
  expected = numpy_of(model(ids)["last_hidden_state"])
  outputs = model({"input_ids": ids, "token_type_ids": np.full_like(ids, 9)})
  np.testing.assert_array_equal(numpy_of(outputs["last_hidden_state"]), expected)
  tokens = model(ids[:, 1:3])  # positions of tokens count from 0 in the argument
  given = model({"input_ids": ids[:, 1:3], "position_ids": np.array([[0, 1]])})
  np.testing.assert_array_equal(*(numpy_of(x["last_hidden_state"]) for x in (given, tokens)))


def test_what_electra_has_not():
  with pytest.raises(ValueError, match="ELECTRA has no pairs"):
    keras3.BertForPreTraining(config_of("electra"))
  with pytest.raises(ValueError, match=r"ALBERT .* ELECTRA"):
    keras3.BertForReplacedTokens(config_of("albert"))
  arguments = sizes.arguments_from_config(config_of("electra"))
  assert BERT(**{**arguments, "hidden_act": "gelu"}).hidden_act == "gelu_erf"
  tanh_form = BERT(**{**arguments, "hidden_act": "gelu_new"})
  with pytest.raises(ValueError, match="hidden_act is 'gelu_new'"):
    tanh_form.save_checkpoint("nowhere")


def test_tinyberts_own_head(tmp_path):
  """Between the pooler and the scores a ReLU, and no dropout, which `load_run` has, too."""
  config = BertConfig.from_dict({**TINY, "type_vocab_size": 2, "classifier_activation": "relu"})
  model = randomized(keras3.BertForSequenceClassification(config, num_labels=3))
  inputs = random_inputs(4, 6)
  pooled = numpy_of(model.bert(inputs)["pooler_output"])
  head = model.classifier
  expected = np.maximum(pooled, 0) @ numpy_of(head.kernel) + numpy_of(head.bias)
  assert (pooled < 0).any()
  logits = numpy_of(model(inputs)["logits"])
  assert_close(logits, expected)
  assert model.dropout.rate == 0.0
  model.save_checkpoint(tmp_path)
  assert json.loads((tmp_path / "bert_config.json").read_text())["classifier_activation"] == "relu"
  loaded = keras3.BertForSequenceClassification.from_pretrained(tmp_path, num_labels=3)
  assert_close(numpy_of(loaded(inputs)["logits"]), logits)
  copy = keras3.BertForSequenceClassification.from_config(model.get_config())
  assert copy.bert.classifier_activation == "relu"
