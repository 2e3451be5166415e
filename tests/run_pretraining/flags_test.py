"""Tests of the flags of run_pretraining.py: those of 2018, mistakes, warnings, --help."""

import json

import pytest

from bert import run_pretraining
from bert.model import heads
from bert.scripts import flag_groups
from tests.kit.script_runs import Script, check_help
from tests.kit.tiny_pretraining import CONFIG, write_vocabulary

script = Script(run_pretraining)
run, run_well, error_of = script.run, script.run_well, script.error_of


def test_flags_of_the_original(golden_dir):
  golden = json.loads((golden_dir / "flags.json").read_text())["run_pretraining"]
  with flag_groups.defined_flags(run_pretraining.define_flags):
    ours = {flag["name"]: flag for flag in flag_groups.describe()}
  assert len(golden) == 22
  for flag in golden:
    assert ours[flag["name"]] == flag


def test_without_flags_the_required_ones_are_named():
  message = error_of()
  for name in ("input_file", "bert_config_file", "output_dir"):
    assert f"Flag --{name} must have a value other than None." in message


@pytest.mark.parametrize(
  ("change", "said"),
  [
    ({"do_train": False}, "At least one of `do_train` or `do_eval` must be True."),
    ({"num_warmup_steps": -1}, "--num_warmup_steps=-1: must be at least 0."),
    ({"max_predictions_per_seq": 0}, "--max_predictions_per_seq=0: must be at least 1."),
    (
      {"max_seq_length": 33},
      "Cannot use sequence length 33 because the BERT model was only trained up to sequence "
      "length 32",
    ),
    ({"gradient_accumulation_steps": 3}, "does not divide into"),
    ({"init_checkpoint": "nowhere/bert.ckpt"}, "the folder nowhere does not exist"),
  ],
)
def test_one_message_before_any_work(model, tmp_path, change, said):
  values = {**model, "output_dir": tmp_path / "out", "do_train": True, **change}
  assert said in error_of(**values)
  assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("fake_estimator")
def test_a_warmup_as_long_as_the_run_is_warned_of(model, tmp_path):
  values = {**model, "output_dir": tmp_path, "num_train_steps": 1, "num_warmup_steps": 1}
  assert "the learning rate never reaches its peak" in run_well(**values, do_train=True).err


def test_the_cheap_part_of_the_doctor_is_done_at_the_start(model, tmp_path):
  (tmp_path / "config.json").write_text(json.dumps({**CONFIG, "vocab_size": 200}))
  tokens = write_vocabulary(tmp_path / "vocab.txt").read_text().upper()
  (tmp_path / "vocab.txt").write_text(tokens)
  (tmp_path / "out").write_text("No folder.")
  files = {"bert_config_file": tmp_path / "config.json", "vocab_file": tmp_path / "vocab.txt"}
  done = run(**{**model, **files}, output_dir=tmp_path / "out", do_train=True)
  assert done.code == 1  # the folder; what comes before it has been told
  assert done.err.count("it may be another model's.") == 1
  assert "Nothing can be written here (Not a directory)" in done.err
  # No text is read here, so its case is nobody's.
  assert "do_lower_case" not in done.err


def test_the_originals_functions_are_found_here():
  for name in ("get_masked_lm_output", "get_next_sentence_output", "gather_indexes"):
    assert getattr(run_pretraining, name) is getattr(heads, name)
  with pytest.raises(AttributeError, match="get_nothing"):
    run_pretraining.get_nothing  # noqa: B018


def test_help_is_complete_and_needs_no_tensorflow(tmp_path):
  check_help(run_pretraining, tmp_path, {"Model", "Training", "TPU"})
