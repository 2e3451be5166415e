"""Tests of `--reinit_layers`, `--min_train_steps` and `--recipe` in runs of run_classifier.py."""

import json

import numpy as np
import pytest

from bert import run_classifier
from tests.kit import tiny_bert
from tests.kit.script_runs import Script, assert_same_tensors, stopped_after, tensors
from tests.kit.tiny_sentences import VOCAB

script = Script(run_classifier)
run, run_well, error_of = script.run, script.run_well, script.error_of


def weights(prefix) -> dict[str, np.ndarray]:
  """The model's tensors in a checkpoint."""
  states = ("/adam_m", "/adam_v", "global_step")
  return {name: value for name, value in tensors(prefix).items() if not name.endswith(states)}


@pytest.fixture(scope="module")
def source(mrpc, tmp_path_factory):
  """The flags of a model of three layers, and a checkpoint of it."""
  folder = tmp_path_factory.mktemp("three_layers")
  values = {**mrpc.flags, **tiny_bert.write(folder, VOCAB, num_hidden_layers=3)}
  values |= {"num_train_epochs": 0.5, "output_dir": folder / "source"}
  run_well(**values, do_train=True, seed=7)
  return {**values, "init_checkpoint": folder / "source" / "model.ckpt-1"}


@pytest.mark.ci
def test_the_top_layers_and_the_pooler_start_anew_and_nothing_else(source, tmp_path):
  before = weights(source["init_checkpoint"])
  values = {**source, "do_train": True}
  done = run_well(**{**values, "output_dir": tmp_path / "two", "reinit_layers": 2})
  assert "drawn anew, as asked for (34): bert/encoder/layer_1/attention/self/query/" in done.err
  assert "RANDOM" not in done.err
  start = weights(tmp_path / "two" / "model.ckpt-0")
  changed = {name for name in before if not np.array_equal(before[name], start[name])}
  parts = ("bert/pooler/", "bert/encoder/layer_1/", "bert/encoder/layer_2/")
  drawn = {name for name in before if name.startswith(parts)}
  # Biases and scales of a new layer are 0 and 1, which one step of training has changed.
  assert changed == drawn

  # They are the values that the seed and the name give, whatever else is loaded.
  scratch = {name: value for name, value in values.items() if name != "init_checkpoint"}
  run_well(**{**scratch, "output_dir": tmp_path / "scratch"})
  random = weights(tmp_path / "scratch" / "model.ckpt-0")
  for name in drawn:
    np.testing.assert_array_equal(start[name], random[name], err_msg=name)

  run_well(**{**values, "output_dir": tmp_path / "none", "reinit_layers": 0})
  none = weights(tmp_path / "none" / "model.ckpt-0")
  for name, value in before.items():
    np.testing.assert_array_equal(none[name], value, err_msg=name)


@pytest.mark.ci
def test_a_resumed_run_does_not_draw_again(source, tmp_path):
  values = {**source, "recipe": "reinit", "min_train_steps": 6, "save_checkpoints_steps": 3}
  values["do_train"] = True
  run_well(**{**values, "output_dir": tmp_path / "straight"})
  with stopped_after(3):
    assert run(**{**values, "output_dir": tmp_path / "parts"}).code == 130
  done = run_well(**{**values, "output_dir": tmp_path / "parts"})
  assert "Resumed from" in done.err
  assert "drawn anew" not in done.err
  assert_same_tensors(tmp_path / "straight/model.ckpt-6", tmp_path / "parts/model.ckpt-6")

  flags = json.loads((tmp_path / "straight" / "flags.json").read_text())
  assert flags["recipe"] == "reinit"
  assert flags["adam_bias_correction"] is True
  assert (flags["num_train_steps"], flags["min_train_steps"]) == (6, 6)
  run_well(**{**values, "output_dir": tmp_path / "parts", "recipe": "stable", "min_train_steps": 7})
  done = run_well(**{**values, "output_dir": tmp_path / "parts", "recipe": "2018"})
  for change in ("recipe was 'stable', now '2018'", "min_train_steps was 7, now 6"):
    assert change in done.err
  assert "reinit_layers was" not in done.err
  assert "raise --num_train_epochs=0.5 or --min_train_steps=6." in done.err


def test_more_layers_than_the_model_has_are_one_line(mrpc, tmp_path):
  values = {**mrpc.flags, "output_dir": tmp_path, "do_train": True}
  assert "--reinit_layers=2: the model has 1 layer." in error_of(**values, reinit_layers=2)
