"""Keras models leave Keras and come back: `.keras` files, checkpoints, folders of transformers.

Run alone: python -m pytest tests/keras3/saving_test.py (also: families_test.py)
"""

import json
import os

import keras
import numpy as np
import pytest

from bert import keras3
from bert.checkpoints import bundle_files, loading
from bert.keras3 import (
  NLPTaskConfig,
  NLPTaskType,
  create_bert_with_head,
)
from tests.kit.keras_models import TINY, arrays, numpy_of, on_tensorflow, random_inputs, randomized


def save_in_every_form(model, folder) -> list[str]:
  """Paths of a checkpoint, a transformers folder and a `.keras` file of a model."""
  model.save_checkpoint(folder / "checkpoint")
  model.save_pretrained(folder / "transformers")
  model.save(folder / "model.keras")
  return [str(folder / name) for name in ("checkpoint", "transformers", "model.keras")]


TASKS = [
  (NLPTaskType.SENTIMENT_ANALYSIS, {"problem_type": "classification"}),
  (NLPTaskType.TEXT_REGRESSION, {"problem_type": "regression"}),
  (NLPTaskType.NAMED_ENTITY_RECOGNITION, {"task_name": "ner"}),
  (NLPTaskType.QUESTION_ANSWERING, {"task_name": "squad"}),
  (NLPTaskType.MULTIPLE_CHOICE, {"task_name": "swag"}),
  (NLPTaskType.MASKED_LANGUAGE_MODELING, {}),
]


@pytest.mark.parametrize(
  ("task", "facts"),
  [pytest.param(*c, marks=() if c[1] == {"task_name": "ner"} else pytest.mark.ci) for c in TASKS],
)
def test_models_of_tasks(task, facts, tmp_path):
  num_classes = 1 if task is NLPTaskType.TEXT_REGRESSION else 3
  config = NLPTaskConfig("mine", task, num_classes)
  model = randomized(create_bert_with_head("tiny", config, bert_config_overrides=TINY))
  _, _, path = save_in_every_form(model, tmp_path)
  checkpoint = tmp_path / "checkpoint" / "bert_model.ckpt"
  stored = bundle_files.read_sidecar(str(checkpoint)).get("state", {}).get("fingerprint", {})
  assert {key: stored[key] for key in facts} == facts
  has_labels = bool(facts) and facts.get("task_name") not in ("squad", "swag")
  assert len(stored.get("labels", [])) == (num_classes if has_labels else 0)
  shapes, read = loading.open_weights(tmp_path / "checkpoint")
  shapes_there, read_there = loading.open_weights(path)
  assert shapes_there.items() >= shapes.items()
  for name in shapes:
    np.testing.assert_array_equal(read(name), read_there(name), err_msg=name)


class OwnClassifier(keras.Model):
  """A model as users write them: it does not describe itself."""

  def __init__(self, bert, **kwargs):
    super().__init__(**kwargs)
    self.bert = bert
    self.top = keras.layers.Dense(2)

  def call(self, inputs):
    return self.top(self.bert(inputs)["pooler_output"])


def test_what_has_no_counterpart_is_named_and_nothing_is_written(tmp_path):
  inputs = random_inputs(2, 6)
  bert = keras3.BERT(**TINY)
  own = OwnClassifier(bert, name="mine")
  own(inputs)
  task = NLPTaskConfig("sentiment", NLPTaskType.SENTIMENT_ANALYSIS, 2)
  options = {"bert_config_overrides": TINY}
  mean = create_bert_with_head(
    "tiny", task, head_config_overrides={"pooling_type": "mean"}, **options
  )
  shared = keras3.create_inputs()
  heads = [keras3.TextClassificationHead(2, name=name) for name in ("sentiment", "topic")]
  two = keras.Model(shared, [head(bert(shared)) for head in heads])
  for model, message in (
    (own, r"mine: .* no counterpart of the variables .*kernel.* Its encoder alone can be saved"),
    (mean, r"sentiment \(the original's head does not have pooling_type='mean'\)"),
    (two, r"topic \(the model has 2 such heads, a checkpoint has one\)"),
    (keras3.BERT(**TINY, attention_type="window"), "attention_type is 'window', which only"),
    (keras3.BERT(**TINY, hidden_act="silu"), "hidden_act is 'silu', which the original does not"),
    (keras3.BERT(**TINY, layer_norm_eps=1e-6), "layer_norm_eps is 1e-06, which only bert.keras3"),
    (keras.Sequential([keras.layers.Dense(2)]), "contains no BERT of bert.keras3"),
  ):
    for save in (keras3.save_checkpoint, keras3.save_pretrained):
      with pytest.raises(ValueError, match=message):
        save(model, tmp_path / "out")
  assert not os.listdir(tmp_path)
  keras3.save_checkpoint(own.bert, tmp_path / "out")
  expected = numpy_of(bert(inputs)["pooler_output"])
  found = keras3.BERT.from_checkpoint(tmp_path / "out")(inputs)["pooler_output"]
  np.testing.assert_array_equal(numpy_of(found), expected)


def test_labels_tokenizer_and_an_older_model(tmp_path, tokenizer):
  model = keras3.BertForSequenceClassification(keras3.BERT(**{**TINY, "vocab_size": 104}), 2)
  with pytest.raises(ValueError, match="The model has 2 outputs; labels are yes"):
    model.save_checkpoint(tmp_path / "out", labels=["yes"])
  with pytest.raises(ValueError, match="labels is the text 'no'; give a list of 2 names"):
    model.save_checkpoint(tmp_path / "out", labels="no")
  with pytest.raises(ValueError, match=r"A model of Keras is needed, not 'model\.keras'"):
    keras3.save_checkpoint("model.keras", tmp_path / "out")
  for save in (model.save_checkpoint, model.save_pretrained):
    folder = tmp_path / save.__name__
    save(folder, tokenizer, labels=["no", "yes"])
    save(folder, tokenizer, labels=["no", "yes"])  # replaces the first
    assert keras3.BertTokenizer.from_pretrained(folder).vocab_size == tokenizer.vocab_size
  config = json.loads((tmp_path / "save_pretrained" / "config.json").read_text())
  assert config["label2id"] == {"no": 0, "yes": 1}
  prefix = str(tmp_path / "save_checkpoint" / "bert_model.ckpt")
  facts = bundle_files.read_sidecar(prefix)["state"]["fingerprint"]
  assert facts == {"problem_type": "classification", "labels": ["no", "yes"], "do_lower_case": True}
  small = keras3.BERT(**TINY)
  with pytest.raises(ValueError, match="The tokenizer has 104 tokens, the model 40"):
    small.save_pretrained(tmp_path / "other", tokenizer)
  (tmp_path / "run").mkdir()
  (tmp_path / "run" / "model.ckpt-3.index").touch()
  with pytest.raises(ValueError, match=r"holds other checkpoints \(model.ckpt-3.index\)"):
    model.save_checkpoint(tmp_path / "run")


def test_half_precision_is_saved_as_float32(tmp_path):
  model = randomized(keras3.BERT(**TINY, dtype="bfloat16"))
  expected = {name: numpy_of(v) for name, v in model.checkpoint_variables().items()}
  for path in save_in_every_form(model, tmp_path):
    shapes, read = loading.open_weights(path)
    for name in shapes:
      np.testing.assert_array_equal(read(name).astype("float32"), expected[name].astype("float32"))


def test_encoders_that_only_keras_has_are_read_from_its_files(tmp_path):
  model = randomized(keras3.BERT(**TINY, normalization_position="pre"))
  model.save(tmp_path / "model.keras")
  shapes, read = loading.open_weights(tmp_path / "model.keras")
  variables = model.checkpoint_variables()
  assert set(shapes) == set(variables)
  for name, variable in variables.items():
    np.testing.assert_array_equal(read(name), numpy_of(variable), err_msg=name)
  with pytest.raises(ValueError, match=r"normalization_position is 'pre', which only"):
    keras3.BERT.from_checkpoint(tmp_path / "model.keras")


def test_files_without_a_bert_are_one_clear_error(tmp_path):
  path = tmp_path / "model.keras"
  path.write_bytes(b"no archive")
  with pytest.raises(ValueError, match=r"model\.keras cannot be loaded by Keras: "):
    loading.open_weights(path)
  keras.Sequential([keras.Input([2]), keras.layers.Dense(2)]).save(path)
  with pytest.raises(ValueError, match=r"contains no BERT of bert\.keras3"):
    loading.open_weights(path)


# ---------------------------------------------------------------------------------------------
# SavedModels that Keras writes.


def models_to_export() -> dict[str, keras.Model]:
  """One of each kind, none of them called before."""
  similar = NLPTaskConfig("pair", NLPTaskType.TEXT_SIMILARITY)
  task = NLPTaskConfig("sentiment", NLPTaskType.SENTIMENT_ANALYSIS, 2)
  options = {"bert_config_overrides": TINY}
  return {
    "encoder": keras3.BERT(**TINY),
    "classifier": keras3.BertForSequenceClassification(keras3.BERT(**TINY)),
    "choices": keras3.BertForMultipleChoice(keras3.BERT(**TINY)),
    "words": keras3.MaskedLanguageModel(keras3.BERT(**TINY)),
    "albert": keras3.BertForMaskedLM(keras3.BERT(**TINY, model_type="albert", embedding_size=8)),
    "roberta": keras3.BertForSequenceClassification(keras3.BERT(**TINY, model_type="roberta")),
    "task": create_bert_with_head("tiny", task, **options),
    "pair": create_bert_with_head("tiny", similar, head_config_overrides={"pair": True}, **options),
  }


def inputs_of(name: str) -> dict[str, np.ndarray]:
  inputs = random_inputs(*((2, 3, 6) if name == "choices" else (2, 6)))
  if name == "pair":
    inputs |= {f"second_{key}": values[:, :5] for key, values in inputs.items()}
  return inputs


@pytest.mark.slow
@on_tensorflow
def test_every_model_is_exported_before_its_first_call(tmp_path):
  import tensorflow as tf

  for name, model in models_to_export().items():
    model.export(tmp_path / name, verbose=False)
    inputs = inputs_of(name)
    served = tf.saved_model.load(
      str(tmp_path / name)
    )  # its functions refer to its variables weakly
    found = arrays(served.serve({key: tf.constant(value) for key, value in inputs.items()}))
    expected = arrays(model(inputs))
    assert set(found) == set(expected)
    for key, value in expected.items():
      np.testing.assert_allclose(found[key], value, rtol=0, atol=1e-5)
