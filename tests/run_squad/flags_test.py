"""Tests of the flags of run_squad.py: those of 2018, mistakes, --help."""

import pytest

from bert import run_squad
from bert.scripts import flag_groups
from bert.tasks.squad import SquadExample
from tests.kit.script_runs import Script, check_help, json_in, run_python

script = Script(run_squad)
run, run_well, error_of = script.run, script.run_well, script.error_of


def test_flags_of_the_original(golden_dir):
  golden = json_in(golden_dir / "flags.json")["run_squad"]
  with flag_groups.defined_flags(run_squad.define_flags):
    ours = {flag["name"]: flag for flag in flag_groups.describe()}
  assert len(golden) == 30
  for flag in golden:
    assert ours[flag["name"]] == flag
  assert "pad_to_max_length" not in ours


def test_without_flags_the_required_ones_are_named():
  message = error_of()
  required = ("output_dir", "bert_config_file", "vocab_file")
  for name in required:
    assert f"Flag --{name} must have a value other than None." in message
  assert message.count("must have a value") == len(required)


# Changed flags ("{tmp}" is the test's folder), what the message says.
ERRORS = {
  "no predict file": (
    {"do_predict": True, "predict_file": ""},
    "If `do_predict` is True, then `predict_file` must be specified.",
  ),
  "nothing to evaluate": (
    {"do_eval": True, "predict_file": ""},
    "If `do_eval` is True, then `predict_file` must be specified.",
  ),
  "nothing to evaluate on while training": (
    {"eval_every_steps": 5, "predict_file": ""},
    "--eval_every_steps evaluates on --predict_file: name one.",
  ),
  "too long": (
    {"max_seq_length": 33},
    "Cannot use sequence length 33 because the BERT model was only trained up to sequence length "
    "32",
  ),
  "no answers": ({"n_best_size": 0}, "--n_best_size=0: must be at least 1."),
  "no length": ({"max_answer_length": -1}, "--max_answer_length=-1: must be at least 1."),
  "train file is missing": (
    {"train_file": "{tmp}/none.json"},
    "{tmp}/none.json: the file cannot be read",
  ),
  "predict file is bad": (
    {"do_predict": True, "predict_file": "{tmp}/bad.json"},
    "{tmp}/bad.json: data[0]: 'paragraphs' is missing; found nothing.",
  ),
  "no checkpoint": (
    {"init_checkpoint": "{tmp}/model.ckpt-3"},
    "No checkpoint {tmp}/model.ckpt-3: {tmp}/model.ckpt-3.index does not exist.",
  ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_one_message_before_any_work(v1, tmp_path, name):
  changes, expected = ERRORS[name]
  (tmp_path / "bad.json").write_text('{"data": [{}]}')
  values = {**v1.flags, "output_dir": tmp_path / "out", "do_train": True}
  for key, value in changes.items():
    values[key] = value.format(tmp=tmp_path) if isinstance(value, str) else value
  assert expected.format(tmp=tmp_path) in error_of(**values)
  assert not list(tmp_path.glob("out/*")), "work was done"


@pytest.mark.usefixtures("fake_estimator")
def test_less_than_one_step_of_data_trains_one(v1, tmp_path):
  values = {**v1.flags, "output_dir": tmp_path / "out", "num_train_epochs": 0.1}
  done = run_well(**values, do_train=True)
  assert "make less than one step: training for one." in done.err
  assert (tmp_path / "out" / "model.ckpt-1.index").exists()


def test_help_is_complete_and_needs_no_tensorflow(tmp_path):
  check_help(
    run_squad, tmp_path, {"Task and data", "Windows", "Answers", "Model", "Training", "TPU"}
  )


def test_code_of_2018_finds_its_names():
  for name in ("read_squad_examples", "convert_examples_to_features", "write_predictions"):
    assert callable(getattr(run_squad, name))
  example = run_squad.SquadExample("q", "?", ["a"])
  assert isinstance(example, SquadExample)
  assert run_squad.RawResult(unique_id=1, start_logits=[], end_logits=[]).unique_id == 1


def test_the_program_itself_fails_with_one_message():
  done = run_python("run_squad.py", "--do_train", "--output_dir=x")
  assert done.returncode == 1
  assert "Traceback" not in done.stderr
  assert "Flag --bert_config_file must have a value other than None." in done.stderr
