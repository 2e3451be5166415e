"""Tests of bert/scripts/flag_names.py."""

import pytest

from bert import create_pretraining_data, predict, run_classifier, run_glue, run_pretraining
from bert.scripts import flag_groups, flag_names

USUAL = [
  ("lr", "learning_rate"),
  ("learning-rate", "learning_rate"),
  ("epochs", "num_train_epochs"),
  ("num_epochs", "num_train_epochs"),
  ("batch_size", "train_batch_size"),
  ("bs", "train_batch_size"),
  ("per_device_train_batch_size", "train_batch_size"),
  ("max_len", "max_seq_length"),
  ("max_length", "max_seq_length"),
  ("max-seq-length", "max_seq_length"),
  ("MAX_SEQ_LENGTH", "max_seq_length"),
  ("model", "init_checkpoint"),
  ("model_name_or_path", "init_checkpoint"),
  ("bert_hub_module_handle", "init_checkpoint"),
  ("data", "data_dir"),
  ("dataset", "data_dir"),
  ("out", "output_dir"),
  ("model_dir", "output_dir"),
  ("warmup", "warmup_proportion"),
  ("warmup_steps", "warmup_proportion"),
  ("steps", "num_train_epochs"),
  ("max_steps", "num_train_epochs"),
  ("grad_accum", "gradient_accumulation_steps"),
  ("accumulation_steps", "gradient_accumulation_steps"),
  ("eval", "do_eval"),
  ("train", "do_train"),
  ("noeval", "nodo_eval"),
  ("predict", "do_predict"),
  ("fp16", "dtype"),
  ("vocab", "vocab_file"),
  ("config", "bert_config_file"),
  ("task", "task_name"),
  ("num_gpus", "distribution_strategy"),
  ("save_steps", "save_checkpoints_steps"),
  ("eval_steps", "eval_every_steps"),
  ("logging_steps", "log_every_steps"),
  ("patience", "early_stopping_patience"),
  ("random_seed", "seed"),
  ("text_column", "text_a_column"),
  ("do_trian", "do_train"),
  ("nodo_trian", "nodo_train"),
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
    (predict, "out", "output_file"),
    (predict, "data", "input_file"),
    (run_pretraining, "max_steps", "num_train_steps"),
    (run_pretraining, "warmup", "num_warmup_steps"),
    (create_pretraining_data, "rng_seed", "random_seed"),
    (create_pretraining_data, "workers", "num_workers"),
    (run_glue, "lr", "learning_rates"),
    (run_glue, "seed", "seeds"),
  ],
)
def test_another_script_has_other_flags(script, name, meant):
  assert suggestion(script, name) == f"Did you mean --{meant}?"


@pytest.mark.parametrize(
  ("name", "words"),
  [
    ("dropout", "bert_config.json"),
    ("no_cuda", "CUDA_VISIBLE_DEVICES=-1"),
    ("overwrite_output_dir", "another --output_dir"),
    ("resume_from_checkpoint", "resumes by itself"),
    ("run_with_pdb", "python -m pdb"),
  ],
)
def test_what_no_flag_sets_is_explained(name, words):
  assert words in suggestion(run_classifier, name)


def test_each_suggested_flag_is_one_of_some_script():
  from bert import run_ner, run_squad

  known = set()
  for script in (run_classifier, run_squad, run_ner, run_pretraining, predict, run_glue):
    with flag_groups.defined_flags(script.define_flags) as values:
      known |= set(values)
  with flag_groups.defined_flags(create_pretraining_data.define_flags) as values:
    known |= set(values)
  suggested = {name for names in flag_names._USUAL_NAMES.values() for name in names}
  assert suggested - known <= {"top_k"}
