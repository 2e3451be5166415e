"""Tests of bert/scripts/flag_names.py."""

import pytest

from bert import create_pretraining_data, predict, run_classifier, run_glue, run_pretraining
from bert.scripts import flag_groups, flag_names

USUAL = [
  ("learning-rate", "learning_rate"),
  ("epochs", "num_train_epochs"),
  ("batch_size", "train_batch_size"),
  ("per_device_train_batch_size", "train_batch_size"),
  ("max_len", "max_seq_length"),
  ("model_name_or_path", "init_checkpoint"),
  ("data", "data_dir"),
  ("model_dir", "output_dir"),
  ("warmup_steps", "warmup_proportion"),
  ("max_steps", "num_train_epochs"),
  ("grad_accum", "gradient_accumulation_steps"),
  ("noeval", "nodo_eval"),
  ("fp16", "dtype"),
  ("num_gpus", "distribution_strategy"),
  ("eval_steps", "eval_every_steps"),
  ("patience", "early_stopping_patience"),
  ("text_column", "text_a_column"),
  ("do_trian", "do_train"),
  ("trainBatchSize", "train_batch_size"),
  ("zyxw", None),
]


def suggestion(script, name) -> str:
  with flag_groups.defined_flags(script.define_flags) as values:
    own = flag_groups.own_names(values)
    return flag_names.suggestion(name, own, [each for each in own if values[each].boolean])


@pytest.mark.parametrize(("name", "meant"), USUAL)
def test_the_usual_names_of_other_programs(name, meant):
  said = suggestion(run_classifier, name)
  assert said == (f"Did you mean --{meant}?" if meant else "")


@pytest.mark.parametrize(
  ("script", "name", "meant"),
  [
    (predict, "bs", "batch_size"),
    (run_pretraining, "max_steps", "num_train_steps"),
    (run_pretraining, "warmup", "num_warmup_steps"),
    (create_pretraining_data, "workers", "num_workers"),
    (run_glue, "lr", "learning_rates"),
  ],
)
def test_another_script_has_other_flags(script, name, meant):
  assert suggestion(script, name) == f"Did you mean --{meant}?"


@pytest.mark.parametrize(
  ("name", "words"),
  [
    ("dropout", "bert_config.json"),
    ("resume_from_checkpoint", "resumes by itself"),
    ("run_with_pdb", "python -m pdb"),
  ],
)
def test_what_no_flag_sets_is_explained(name, words):
  assert words in suggestion(run_classifier, name)
