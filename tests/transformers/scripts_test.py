"""What transformers' example scripts import beside models: arguments, mappings, import lines.

Alone: python -m pytest tests/transformers/scripts_test.py
"""

import dataclasses
import importlib
import json
import logging

import pytest

from bert import transformers as room
from bert.transformers import (
  CONFIG_MAPPING,
  TF_MODEL_FOR_MASKED_LM_MAPPING,
  BertConfig,
  HfArgumentParser,
  PushToHubCallback,
  TFBertForMaskedLM,
  TFTrainingArguments,
)
from bert.transformers.utils import CONFIG_NAME, TF2_WEIGHTS_NAME, send_example_telemetry
from tests.kit.script_runs import run_python

# Import lines of transformers 4's TensorFlow examples, tests and documentation, and of others'
# notebooks: module -> names.
IMPORT_LINES = {
  "": "AdamWeightDecay AutoConfig BatchEncoding BertTokenizerFast DefaultDataCollator "
  "DataCollatorForTokenClassification EvalPrediction KerasMetricCallback PreTrainedTokenizerBase "
  "PreTrainedTokenizerFast PretrainedConfig TFAutoModelForMaskedLM TFDistilBertModel "
  "TFTrainingArguments TensorType WarmUp create_optimizer default_data_collator is_tf_available "
  "logging pipeline set_seed tf_default_data_collator",
  "activations_tf": "ACT2FN get_tf_activation",
  "configuration_utils": "PretrainedConfig",
  "data.data_collator": "DataCollatorWithPadding tf_default_data_collator",
  "data.processors.glue": "glue_convert_examples_to_features glue_processors",
  "data.processors.utils": "InputExample InputFeatures",
  "file_utils": "CONFIG_NAME ModelOutput TF2_WEIGHTS_NAME is_tf_available",
  "hf_argparser": "HfArg HfArgumentParser",
  "keras_callbacks": "KerasMetricCallback PushToHubCallback",
  "modeling_tf_bert": "TFBertMainLayer TFBertPreTrainedModel",
  "modeling_tf_outputs": "TFBaseModelOutput TFSequenceClassifierOutput",
  "modeling_tf_utils": "TFMaskedLanguageModelingLoss TFModelInputType TFPreTrainedModel "
  "TFQuestionAnsweringLoss TFSequenceClassificationLoss TFTokenClassificationLoss "
  "get_initializer keras_serializable shape_list unpack_inputs",
  "models.albert.tokenization_albert_fast": "AlbertTokenizerFast",
  "models.auto": "AutoConfig",
  "models.auto.modeling_tf_auto": "TFAutoModel TF_MODEL_FOR_MULTIPLE_CHOICE_MAPPING",
  "models.auto.tokenization_auto": "AutoTokenizer",
  "models.bert": "BertConfig TFBertModel",
  "models.bert.configuration_bert": "BertConfig",
  "models.bert.modeling_tf_bert": "TFBertForSequenceClassification TFBertMainLayer",
  "models.bert.tokenization_bert": "BertTokenizer",
  "models.roberta.modeling_tf_roberta": "TFRobertaMainLayer",
  "optimization_tf": "AdamWeightDecay WarmUp create_optimizer",
  "pipelines": "TextClassificationPipeline pipeline",
  "tf_utils": "shape_list stable_softmax",
  "tokenization_utils_base": "BatchEncoding PaddingStrategy PreTrainedTokenizerBase",
  "trainer_utils": "EvalPrediction get_last_checkpoint is_main_process set_seed",
  "training_args_tf": "TFTrainingArguments",
  "utils": "CONFIG_NAME TF2_WEIGHTS_NAME check_min_version logging send_example_telemetry",
  "utils.versions": "require_version",
}


@pytest.mark.parametrize("module", IMPORT_LINES)
def test_an_import_line_finds_its_names(module):
  found = importlib.import_module(f"{room.__name__}.{module}".rstrip("."))
  for name in IMPORT_LINES[module].split():
    assert getattr(found, name) is not None
    if name.startswith("TF") or "BERT" in name.upper():
      assert getattr(found, name) is getattr(room, name)


@pytest.mark.parametrize(
  ("name", "words"),
  [
    ("BertForMaskedLM", "bert.transformers has TFBertForMaskedLM"),
    ("AutoModel", "bert.transformers has TFAutoModel"),
    ("Seq2SeqTrainer", "without PyTorch"),
    ("Trainer", "use the fit of a model"),
    ("input_processing", "use unpack_inputs"),
    ("get_linear_schedule_with_warmup", "use create_optimizer"),
    ("TFBertLayer", "use bert.keras3.TransformerLayer"),
    ("TFT5Model", "transformers 5 with PyTorch"),
    ("TFBertTokenizer", "use BertTokenizer"),
    ("FlaxBertModel", "JAX"),
  ],
)
def test_a_name_that_is_not_here_gives_one_line(name, words):
  for module in ("", ".modeling_tf_utils", ".models.bert.modeling_tf_bert"):
    with pytest.raises(ImportError, match=words) as caught:
      getattr(importlib.import_module(room.__name__ + module), name)
    assert "\n" not in str(caught.value)


def test_tokenizers_configurations_and_arguments_need_no_tensorflow_and_print_nothing():
  names = (
    "AutoTokenizer, BertConfig, DataCollatorWithPadding, HfArgumentParser, TFTrainingArguments"
  )
  lines = f"import sys; from bert.transformers import {names}; print('tensorflow' in sys.modules)"
  done = run_python("-c", lines)
  assert (done.returncode, done.stdout, done.stderr) == (0, "False\n", "")


def test_without_transformers_one_line_says_what_to_install():
  lines = "import sys; sys.modules['transformers'] = None; from bert.transformers import BertConfig"
  done = run_python("-c", lines)
  assert done.returncode == 1
  assert 'pip install "bert-alive[transformers]"' in done.stderr.splitlines()[-1]


# ---------------------------------------------------------------------------------------------
# Arguments.


@dataclasses.dataclass
class Arguments:
  name: str
  count: int | None = None


def test_a_command_line_becomes_arguments(tmp_path):
  parser = HfArgumentParser((Arguments, TFTrainingArguments))
  line = "--name a --output_dir out --do_train --xla --warmup_ratio 0.1 --overwrite_output_dir"
  own, training = parser.parse_args_into_dataclasses(line.split())
  assert (own, training.xla, training.do_train) == (Arguments("a"), True, True)
  assert (training.overwrite_output_dir, training.get_warmup_steps(105)) == (True, 11)
  file = tmp_path / "arguments.json"
  file.write_text(json.dumps({"name": "json", "learning_rate": 0.1}))
  own, training = parser.parse_json_file(str(file))
  assert (own.name, training.learning_rate) == ("json", 0.1)


def test_what_is_derived_of_arguments():
  found = TFTrainingArguments("~/out", eval_strategy="steps", hub_token="me")
  assert (found.do_eval, found.eval_steps) == (True, 500)
  assert not found.output_dir.startswith("~")
  assert (found.n_replicas, found.train_batch_size, found.eval_batch_size) == (1, 8, 8)
  assert found.strategy is found.strategy
  assert found.get_process_log_level() == logging.WARNING
  assert "eval_steps=500" in str(found)
  assert found.push_to_hub_model_id is None  # read by all example scripts of transformers 4
  assert "me" not in json.loads(found.to_json_string()).values()
  assert found.to_sanitized_dict()["eval_strategy"] == "steps"


@pytest.mark.parametrize(
  ("given", "message"),
  [
    ({"eval_strategy": "sometimes"}, "sometimes"),
    ({"fp16": True, "bf16": True}, "fp16 and bf16"),
    ({"warmup_ratio": 2}, "warmup_ratio"),
  ],
)
def test_arguments_that_contradict_each_other(given, message):
  with pytest.raises(ValueError, match=message):
    TFTrainingArguments("out", **given)


# ---------------------------------------------------------------------------------------------
# Others.


def test_names_by_the_modules_of_transformers():
  assert (CONFIG_NAME, room.TF2_WEIGHTS_NAME) == ("config.json", TF2_WEIGHTS_NAME)
  assert CONFIG_MAPPING["bert"] is BertConfig
  assert TF_MODEL_FOR_MASKED_LM_MAPPING[BertConfig] is TFBertForMaskedLM
  assert "distilbert" in [config.model_type for config in TF_MODEL_FOR_MASKED_LM_MAPPING]
  assert send_example_telemetry("run_glue", object(), framework="tensorflow") is None


def test_nothing_is_sent_to_the_hub():
  with pytest.raises(ValueError, match="nothing is sent"):
    PushToHubCallback(output_dir="out", tokenizer=None)


def test_where_masked_words_are_all_of_pre_training():
  made = room.TF_MODEL_FOR_PRETRAINING_MAPPING
  for family in ("Roberta", "DistilBert"):
    config = getattr(room, f"{family}Config")
    expected = getattr(room, f"TF{family}ForMaskedLM")
    assert made[config] is expected
    assert room.TFAutoModelForPreTraining.class_of(config()) is expected
