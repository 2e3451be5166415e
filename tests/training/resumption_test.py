"""How a run continues, and where the values of its variables come from."""

import os
import threading

import numpy as np
import pytest

from bert.checkpoints import bundle_files, finding, reading, saving
from bert.training.graphs import TrainingGraph
from bert.training.resumption import ResumeMismatchError
from tests.kit.event_files import scalars_in
from tests.kit.script_runs import assert_same_tensors, tensors
from tests.kit.toy_training import eval_input_fn, make, train_input_fn


def test_five_plus_five_steps_are_ten_bit_for_bit(tmp_path):
  params = {"dropout": True}
  make(tmp_path / "a", params, save_summary_steps=1).train(train_input_fn, 10)
  make(tmp_path / "b", params, save_summary_steps=1).train(train_input_fn, 5)
  make(tmp_path / "b", params, save_summary_steps=1).train(train_input_fn, 10)
  straight, resumed = (finding.latest(str(tmp_path / x)) for x in "ab")
  assert_same_tensors(straight, resumed)
  assert tensors(straight)["toy/kernel/adam_m"].any()
  assert reading.read_state(straight) == reading.read_state(resumed)
  assert reading.read_state(straight)["run"]["examples"] == 40
  losses = [[s["loss"] for _, s in sorted(scalars_in(tmp_path / x).items())] for x in "ab"]
  assert len(losses[0]) == 10
  assert losses[0] == losses[1]


def test_resuming_reads_the_next_examples(tmp_path):
  seen = []

  def input_fn(params):
    seen.append((params["skip_examples"], params["seed"], params["batch_size"]))
    return train_input_fn(params)

  make(tmp_path, seed=3).train(input_fn, 5)
  make(tmp_path, seed=4).train(input_fn, 7)  # The seed of the run so far stays in force.
  make(tmp_path, {"train_batch_size": 8}).train(input_fn, 9)
  make(tmp_path).train(input_fn, 10)
  assert seen == [(0, 3, 4), (20, 3, 4), (28, 3, 8), (44, 3, 4)]


def test_finished_run_is_skipped(tmp_path, caplog):
  make(tmp_path).train(train_input_fn, 3)
  with caplog.at_level("INFO", logger="absl"):
    make(tmp_path).train(None, 3)
  assert "Skipping training since max_steps has already saved." in caplog.text


def test_a_run_of_a_flag_that_is_gone_is_refused(tmp_path):
  kind, flag, usual, other = "fingerprint", "label_scale", 1.0, 5.0
  for value in (usual, other):
    make(tmp_path / str(value), **{kind: {flag: value}}).train(train_input_fn, 1)
  make(tmp_path / str(usual)).train(train_input_fn, 2)
  with pytest.raises(ValueError, match=f"trained with --{flag}={other}, which this version does"):
    make(tmp_path / str(other)).train(train_input_fn, 2)


def test_another_model_is_refused_and_other_settings_only_told(tmp_path, caplog):
  facts = {"fingerprint": {"hidden_size": 4, "labels": ("0", "1")}, "informative": {"epochs": 3}}
  make(tmp_path, **facts).train(train_input_fn, 2)
  with pytest.raises(
    ResumeMismatchError, match=r"labels was \['0', '1'\], now \['0', '2'\].*output_dir"
  ):
    make(tmp_path, fingerprint={"hidden_size": 4, "labels": ["0", "2"]}).train(train_input_fn, 4)
  with caplog.at_level("INFO", logger="absl"):
    make(tmp_path, **{**facts, "informative": {"epochs": 4}}).train(train_input_fn, 4)
  assert "epochs was 3, now 4" in caplog.text
  assert finding.latest(str(tmp_path)).endswith("-4")


def test_a_checkpoint_without_sidecar_is_resumed_by_its_step(tmp_path, caplog):
  make(tmp_path).train(train_input_fn, 5)
  os.remove(tmp_path / "model.ckpt-5.state.json")
  make(tmp_path).train(train_input_fn, 8)
  assert "written by another program" in caplog.text
  assert "20 examples" in caplog.text
  make(tmp_path / "straight").train(train_input_fn, 8)
  assert_same_tensors(str(tmp_path / "model.ckpt-8"), str(tmp_path / "straight/model.ckpt-8"))


def resave(directory, step, drop):
  """Writes the newest checkpoint again without the names that `drop` picks."""
  newest = finding.latest(str(directory))
  values = {name: v for name, v in tensors(newest).items() if not drop(name)}
  saving.save(str(directory), step, values, reading.read_state(newest))
  return values


def is_slot(name):
  return name.endswith(("adam_m", "adam_v"))


def test_weights_alone_are_resumed_with_new_slots(tmp_path, caplog):
  model = make(tmp_path)
  model.train(train_input_fn, 5)
  saved = resave(tmp_path, 5, drop=is_slot)
  model.train(train_input_fn, 6)  # Its own slots, of five steps, must not live on.
  assert "no optimizer slots" in caplog.text
  after = tensors(str(tmp_path / "model.ckpt-6"))
  gradient = after["toy/bias/adam_m"]  # One step of momentum from zero is the gradient itself.
  np.testing.assert_allclose(after["toy/bias/adam_v"], gradient**2, rtol=1e-5)
  moved = saved["toy/bias"] - after["toy/bias"]
  np.testing.assert_allclose(moved, np.float32(0.1 / 1.5) * gradient, rtol=1e-5)


def test_some_slots_missing_is_refused(tmp_path):
  make(tmp_path).train(train_input_fn, 5)
  resave(tmp_path, 5, drop=lambda name: name == "toy/bias/adam_m")
  with pytest.raises(ResumeMismatchError, match="toy/bias/adam_m"):
    make(tmp_path).train(train_input_fn, 6)


# Where values come from.


def test_precedence_checkpoint_then_init_checkpoint_then_random(tmp_path, caplog):
  make(tmp_path / "source", seed=1).train(train_input_fn, 4)
  source = str(tmp_path / "source" / "model.ckpt-4")
  assert "all 3 variables are RANDOM" in caplog.text
  caplog.clear()

  params = {"init": source}
  make(tmp_path / "run", params, keep_checkpoint_max=0).train(train_input_fn, 2)
  assert "RANDOM" not in caplog.text
  first, initial = tensors(source), tensors(str(tmp_path / "run" / "model.ckpt-0"))
  np.testing.assert_array_equal(first["toy/kernel"], initial["toy/kernel"])
  assert not initial["toy/kernel/adam_m"].any()  # Slots and step are those of a new run.
  assert initial["global_step"] == 0

  make(tmp_path / "run", {"init": str(tmp_path / "missing")}).train(train_input_fn, 3)
  assert finding.latest(str(tmp_path / "run")).endswith("-3")
  with pytest.raises(bundle_files.CheckpointError, match="missing"):
    make(tmp_path / "other", {"init": str(tmp_path / "missing")}).train(train_input_fn, 3)


def test_the_first_checkpoint_is_written_while_the_first_step_is_computed(tmp_path, monkeypatch):
  """It holds what the run begins with, however late that reaches the disk."""
  make(tmp_path / "plain", keep_checkpoint_max=0).train(train_input_fn, 1)
  save, begun, computed = saving.save, threading.Event(), threading.Event()

  def slow(directory, step, *arguments, **options):
    if step == 0:
      begun.set()
      assert computed.wait(60), "the first step waits for the file"
    return save(directory, step, *arguments, **options)

  build = TrainingGraph.__init__

  def announcing(graph, *arguments):
    build(graph, *arguments)
    run = graph.run

    def announced(*inputs):
      assert begun.wait(60)
      outputs = run(*inputs)
      _ = [each.numpy() for each in outputs]
      computed.set()
      return outputs

    graph.run = announced

  monkeypatch.setattr(saving, "save", slow)
  monkeypatch.setattr(TrainingGraph, "__init__", announcing)
  make(tmp_path / "slow", keep_checkpoint_max=0).train(train_input_fn, 1)
  for step in (0, 1):
    assert_same_tensors(*(str(tmp_path / x / f"model.ckpt-{step}") for x in ("plain", "slow")))
  first, last = (tensors(str(tmp_path / "slow" / f"model.ckpt-{step}")) for step in (0, 1))
  assert not np.array_equal(first["toy/kernel"], last["toy/kernel"])


def test_evaluation_takes_the_path_then_the_newest_then_init(tmp_path):
  model = make(tmp_path, save_checkpoints_steps=5)
  model.train(train_input_fn, 10)
  newest = model.evaluate(eval_input_fn)
  older = model.evaluate(eval_input_fn, checkpoint_path=str(tmp_path / "model.ckpt-5"))
  assert (newest["global_step"], older["global_step"]) == (10, 5)
  assert newest["loss"] != older["loss"]
  assert model.evaluate(eval_input_fn) == newest
  fresh = make(tmp_path / "empty", {"init": str(tmp_path / "model.ckpt-5")})
  assert fresh.evaluate(eval_input_fn) == older, "with its step"
  resave(tmp_path, 10, drop=lambda name: name == "toy/bias")
  with pytest.raises(bundle_files.CheckpointError, match="toy/bias: not in the checkpoint"):
    make(tmp_path).evaluate(eval_input_fn)  # and not with a random bias


def test_an_init_checkpoint_that_is_evaluated_reports_its_step(tmp_path):
  make(tmp_path / "source").train(train_input_fn, 4)
  params = {"init": str(tmp_path / "source" / "model.ckpt-4")}
  model = make(tmp_path / "run", params)
  assert model.evaluate(eval_input_fn)["global_step"] == 4
  resave(tmp_path / "source", 4, drop=lambda name: name == "toy/bias")
  assert make(tmp_path / "other", params).evaluate(eval_input_fn)["global_step"] == 0
  model.train(train_input_fn, 2)
  assert finding.latest(str(tmp_path / "run")) == f"{tmp_path}/run/model.ckpt-2"
