"""Tests of the flags of run_classifier.py: mistakes, --fast, the sample, --help."""

import pathlib

import pytest
import tensorflow as tf

from bert import run_classifier
from bert.checkpoints import released_models
from bert.fine_tuning import engine
from bert.scripts import command_line, demonstration, flag_groups
from bert.scripts.classifier_settings import ClassifierSettings
from bert.training import hardware
from tests.kit.paths import ROOT
from tests.kit.script_runs import Script, check_help, records, run_python
from tests.kit.tiny_sentences import write_mrpc, write_rows

script = Script(run_classifier)
run, run_well, error_of = script.run, script.run_well, script.error_of


# ---------------------------------------------------------------------------------------------
# What a user sees when something is wrong.


def test_without_flags_the_required_ones_are_named():
  message = error_of()
  required = ("task_name", "data_dir", "output_dir", "bert_config_file", "vocab_file")
  for name in required:
    assert f"Flag --{name} must have a value other than None." in message
  assert message.count("must have a value") == len(required)
  assert "--help" in message


def write_row_that_is_short(folder):
  header = ("Quality", "#1 ID", "#2 ID", "#1 String", "#2 String")
  write_rows(folder, "dev.tsv", header, (1, 0, 0, "a", "b"), (1, 0, 0, "a"))


# Changed flags ("{tmp}" is the test's folder), what to write there first, what the message says.
ERRORS = {
  "too long": (
    {"max_seq_length": 33},
    None,
    "Cannot use sequence length 33 because the BERT model was only trained up to sequence length "
    "32",
  ),
  "too short": ({"max_seq_length": 2}, None, "--max_seq_length=2: must be at least 3"),
  "no such folder": (
    {"data_dir": "{tmp}/nowhere"},
    None,
    "{tmp}/nowhere/train.tsv: there is no such file. There is no folder {tmp}/nowhere either",
  ),
  "another task's folder": (
    {"data_dir": "{tmp}/data", "task_name": "XNLI"},
    None,
    "{tmp}/data/multinli/multinli.train.zh.tsv: there is no such file.",
  ),
  "no vocabulary": ({"vocab_file": "{tmp}/v.txt"}, None, "{tmp}/v.txt"),
  "no checkpoint": (
    {"init_checkpoint": "{tmp}/model.ckpt-3"},
    None,
    "No checkpoint {tmp}/model.ckpt-3: {tmp}/model.ckpt-3.index does not exist.",
  ),
  "output is a file": (
    {"output_dir": "{tmp}/data/train.tsv"},
    None,
    "--output_dir={tmp}/data/train.tsv cannot be written to",
  ),
  "output below a file": (
    {"output_dir": "{tmp}/data/train.tsv/out"},
    None,
    "--output_dir={tmp}/data/train.tsv/out cannot be written to",
  ),
}


@pytest.mark.parametrize("name", ERRORS)
def test_one_message_before_any_work(model, tmp_path, name):
  """No record is written, no graph is built: a mistake is reported at once."""
  changes, prepare, expected = ERRORS[name]
  write_mrpc(tmp_path / "data")
  if prepare:
    prepare(tmp_path / "data")
  values = {**model, "task_name": "MRPC", "data_dir": tmp_path / "data", "do_train": True}
  values.update(output_dir=tmp_path / "out", do_eval=True)
  values.update(
    {k: v.format(tmp=tmp_path) if isinstance(v, str) else v for k, v in changes.items()}
  )
  message = error_of(**values)
  assert expected.format(tmp=tmp_path) in message
  assert not list(tmp_path.rglob("*.tf_record"))
  assert not list(tmp_path.rglob("label_map.json")) or name == "too short"


@pytest.mark.usefixtures("fake_estimator")
def test_malformed_rows_can_be_left_out(mrpc, tmp_path):
  values = mrpc.copied_to(tmp_path)
  write_mrpc(tmp_path / "data")
  write_row_that_is_short(tmp_path / "data")
  done = run_well(**{**values, "data_dir": tmp_path / "data"}, skip_bad_rows=True, do_eval=True)
  assert "Skipped 1 malformed row(s)." in done.err
  assert len(records(tmp_path / "out" / "eval.tf_record")) == 1


@pytest.mark.usefixtures("fake_estimator")
def test_less_than_one_step_of_data_trains_one(model, tmp_path):
  header = ("Quality", "#1 ID", "#2 ID", "#1 String", "#2 String")
  write_rows(tmp_path / "data", "train.tsv", header, *[(1, 0, 0, "the film", "good")] * 2)
  out = tmp_path / "out"
  values = {**model, "task_name": "MRPC", "data_dir": tmp_path / "data", "output_dir": out}
  done = run_well(**values, do_train=True)
  assert "2 examples, a batch of 8 and 3 epochs make less than one step" in done.err
  assert int(tf.train.load_variable(str(out), "global_step")) == 1


def test_a_misspelt_flag_is_named_with_the_right_one(mrpc, tmp_path):
  values = {**mrpc.flags, "output_dir": tmp_path / "out", "data_dir": tmp_path}
  done = run(**values, do_eval=True, train_batchsize=8, do_lower=True)
  assert "Ignoring the unknown flag --train_batchsize=8. Did you mean --train_batch_size?" in (
    done.err
  )
  assert "--do_lower is read as --do_lower_case" in done.err


# ---------------------------------------------------------------------------------------------
# Flags that stand for others.


def test_fast_stands_for_other_flags_but_for_those_that_are_given(mrpc, tmp_path, monkeypatch):
  seen = {}

  def run(self):
    self.read()
    plan = self.plan()
    seen.update(dtype=plan.dtype, group=plan.group_by_length, steps=plan.num_train_steps)

  monkeypatch.setattr(engine.FineTuning, "run", run)
  monkeypatch.setattr(hardware, "choose_dtype", lambda name, is_tpu: f"best for {name}")
  values = {**mrpc.flags, "output_dir": tmp_path / "out", "do_train": True}
  steps_per_epoch = 2.5
  long = {"num_train_epochs": 500 / steps_per_epoch}
  cases = [
    ({}, "float32", False),
    (long, "float32", False),
    ({"fast": True}, "auto", False),
    ({"fast": True, **long}, "auto", True),
    ({"fast": True, **long, "dtype": "bfloat16", "group_by_length": False}, "bfloat16", False),
    ({"fast": True, "group_by_length": True}, "auto", True),
  ]
  for flags_given, dtype, group in cases:
    run_well(**{**values, **flags_given})
    assert seen == {"dtype": f"best for {dtype}", "group": group, "steps": seen["steps"]}
    assert (seen["steps"] >= 500) == ("num_train_epochs" in flags_given)


@pytest.mark.parametrize(
  ("arguments", "is_sample"),
  [
    (["--task_name=MRPC"], True),
    (["--task_name=mrpc", "--num_train_epochs=2", "--output_dir=mine"], True),
    (["--task_name=CoLA"], False),
    ([], False),
    (["--task_name=MRPC", "--data_dir=d"], False),
    (["--task_name=MRPC", "--bert_config_file=c"], False),
    (["--task_name=MRPC", "--vocab_file=v"], False),
    (["--task_name=MRPC", "--init_checkpoint=i"], False),
    (["--task_name=MRPC", "--do_train"], False),
    (["--task_name=MRPC", "--nodo_eval"], False),
    (["--task_name=MRPC", "--do_predict=false"], False),
  ],
)
def test_the_sample_is_for_those_who_give_nothing(arguments, is_sample):
  with flag_groups.defined_flags(run_classifier.define_flags) as values:
    command_line.parse(["run_classifier.py", *arguments])
    settings = flag_groups.read(ClassifierSettings)
    assert demonstration.is_wanted(settings) is is_sample
    if not is_sample:
      return
    settings = flag_groups.read(ClassifierSettings, demonstration.SETTINGS)
    assert settings.do_train
    assert settings.do_eval
    assert pathlib.Path(settings.data_dir) == ROOT / "samples" / "MRPC"
    given = [argument.lstrip("-").split("=")[0] for argument in arguments]
    for name in given:
      assert settings.values[name] == values[name].value, "what was given stays"
    assert set(given) == settings.given
    assert set(demonstration.SETTINGS) - set(values) == {"shows_examples"}


def test_after_the_sample_comes_the_real_command(capsys):
  demonstration.say_what_comes_next("output/here")
  text = capsys.readouterr().out
  assert "output/here" in text
  command = text[text.index("python run_classifier.py") :].replace("\\\n", " ").split()
  with flag_groups.defined_flags(run_classifier.define_flags) as values:
    assert command_line.parse(command[1:]) == ["run_classifier.py"]
    assert values.data_dir == "download"
    assert values.init_checkpoint in released_models.RELEASED_MODELS


# ---------------------------------------------------------------------------------------------
# The script as a program.


def test_help_is_complete_and_needs_no_tensorflow(tmp_path):
  check_help(run_classifier, tmp_path, {"Task and data", "Model", "Training", "TPU"})


def test_the_program_itself_fails_with_one_message():
  done = run_python("run_classifier.py", "--task_name=CoLA", "--do_train")
  assert done.returncode == 1
  assert "Traceback" not in done.stderr
  assert "Flag --data_dir must have a value other than None." in done.stderr
