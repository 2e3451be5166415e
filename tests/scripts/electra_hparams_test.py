"""ELECTRA's --hparams as flags.

Alone: python -m pytest tests/scripts/electra_hparams_test.py (a second, no TensorFlow)
"""

import doctest
import json

import pytest
from absl import flags

from bert import run_classifier, run_pretraining
from bert.scripts import command_line, electra_hparams, flag_groups


def test_worked_examples():
  assert doctest.testmod(electra_hparams).failed == 0


def parsed(define_flags, *arguments):
  with flag_groups.defined_flags(define_flags):
    command_line.parse(["script", *arguments])
    return {name: flags.FLAGS[name].value for name in flags.FLAGS}


@pytest.mark.parametrize("as_file", [True, False])
@pytest.mark.parametrize("spelling", ["--hparams={}", "--hparams {}"])
def test_settings_become_flags_and_later_flags_win(tmp_path, as_file, spelling):
  content = {"learning_rate": 5e-4, "mask_prob": 0.2, "untied_generator": False, "do_train": True}
  value = json.dumps(content)
  if as_file:
    (tmp_path / "small.json").write_text(value)
    value = str(tmp_path / "small.json")
  words = [part.format(value) for part in spelling.split(" ")]
  found = parsed(run_pretraining.define_flags, *words, "--learning_rate=1e-3")
  assert found["learning_rate"] == 1e-3
  assert found["masked_lm_prob"] == 0.2
  assert found["generator"] == "tied"
  assert found["do_train"] is True


def test_electric_is_what_it_says_whatever_stands_beside_it():
  content = {"electric_objective": True, "electra_objective": False}
  found = parsed(run_pretraining.define_flags, f"--hparams={json.dumps(content)}")
  assert found["objective"] == "electric"
  content = {"two_tower_generator": True, "electric_objective": False, "electra_objective": True}
  found = parsed(run_pretraining.define_flags, f"--hparams={json.dumps(content)}")
  assert (found["objective"], found["generator"]) == ("electra", "two_tower")


def test_fine_tuning_s_settings():
  content = {"task_names": ["mrpc"], "layerwise_lr_decay": 0.8, "weight_decay_rate": 0.01}
  found = parsed(run_classifier.define_flags, f"--hparams={json.dumps(content)}")
  assert (found["task_name"], found["layerwise_lr_decay"]) == ("mrpc", 0.8)


@pytest.mark.parametrize(
  ("value", "message"),
  [
    ("{", "--hparams is not valid JSON"),
    ("missing.json", "--hparams=missing.json is neither a JSON object nor a file"),
    ('{"model_size": "small"}', "model_size has no flag: the model's sizes are in --bert_config"),
    ('{"task_names": ["mrpc", "rte"]}', "one task at a time is trained"),
    ('{"learning_rat": 1}', "'learning_rat' is not a setting of ELECTRA"),
    ('{"weight_decay_rate": 0.1}', "weight decay is 0.01"),
  ],
)
def test_what_has_no_flag_is_named(value, message):
  with pytest.raises(command_line.UsageError, match=message):
    parsed(run_pretraining.define_flags, "--hparams", value)


def test_albert_s_names_are_read():
  found = parsed(run_classifier.define_flags, "--albert_config_file=a.json")
  assert found["bert_config_file"].endswith("a.json")
