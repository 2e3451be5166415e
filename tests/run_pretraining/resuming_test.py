"""run_pretraining.py on what a run left: a stop, other weights, a second phase, an export."""

import json
import os

import numpy as np
import pytest
import tensorflow as tf

from bert import run_pretraining
from bert.checkpoints import saving
from bert.io.record_files import write_records
from tests.kit.script_runs import Script, assert_same_tensors, stopped_after, tensors
from tests.kit.tiny_pretraining import CONFIG, VOCAB_SIZE, make_records

script = Script(run_pretraining)
run, run_well, error_of = script.run, script.run_well, script.error_of


@pytest.mark.ci
def test_five_and_five_steps_are_ten_bit_for_bit(model, tmp_path):
  """With dropout, shuffling and several files, and a second start that knows only the folder."""
  for i in range(3):
    write_records(tmp_path / f"part-{i}.tfrecord", make_records(11, seed=i))
  values = {**model, "input_file": tmp_path / "part-*.tfrecord", "num_train_steps": 10}
  values |= {"save_checkpoints_steps": 5, "do_train": True}
  run_well(**values, output_dir=tmp_path / "straight")

  with stopped_after(5):
    assert run(**values, output_dir=tmp_path / "parts").code == 130
  assert not (tmp_path / "parts" / "model.ckpt-10.index").exists()
  assert "Resumed from" in run_well(**values, output_dir=tmp_path / "parts").err

  straight = tmp_path / "straight" / "model.ckpt-10"
  assert "cls/predictions/output_bias/adam_v" in tensors(straight)
  assert_same_tensors(straight, tmp_path / "parts" / "model.ckpt-10")


@pytest.mark.ci
def test_an_encoder_alone_gets_new_heads_and_it_is_said(trained, tmp_path):
  encoder = {
    name: tf.Variable(value)
    for name, value in tensors(trained.out).items()
    if name.startswith("bert/") and "adam" not in name
  }
  saving.save(str(tmp_path / "encoder"), 0, encoder, {}, keep=1)
  values = {**trained.flags, "init_checkpoint": tmp_path / "encoder", "num_train_steps": 1}
  done = run_well(**{**values, "output_dir": tmp_path / "out"}, do_train=True)
  [said] = [line for line in done.err.splitlines() if "hence RANDOM" in line]
  assert "cls/predictions/transform/dense/kernel" in said
  assert said.startswith("INFO:")
  assert "hence RANDOM (expected: a new head): cls/" in said
  assert "bert/" not in said.split("hence RANDOM")[1]
  first = tensors(tmp_path / "out/model.ckpt-0")
  for name, variable in encoder.items():
    np.testing.assert_array_equal(first[name], variable.numpy(), err_msg=name)
  assert first["cls/predictions/transform/dense/kernel"].std() > 0.1


@pytest.mark.slow
def test_export_of_what_was_pretrained(trained, tmp_path):
  values = {**trained.flags, "do_export": True, "export_dir": tmp_path / "export"}
  assert "--do_export needs --vocab_file" in error_of(**values)
  special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
  words = [f"w{i}" for i in range(len(special), VOCAB_SIZE)]
  (tmp_path / "vocab.txt").write_text("\n".join(special + words) + "\n")
  run_well(**values, vocab_file=tmp_path / "vocab.txt")
  assert sorted(os.listdir(tmp_path / "export")) == ["encoder", "preprocess"]
  encoder = tf.saved_model.load(str(tmp_path / "export" / "encoder"))
  saved = tensors(trained.out / "model.ckpt-60")
  for variable in encoder.mlm.variables:
    np.testing.assert_array_equal(variable, saved[variable.name.split(":")[0]])


@pytest.mark.ci
def test_a_second_phase_with_longer_sequences_starts_from_the_first(trained, tmp_path):
  write_records(tmp_path / "long.tfrecord", make_records(8, seq_length=32, predictions=6))
  values = {**trained.flags, "init_checkpoint": trained.out, "output_dir": tmp_path / "out"}
  values |= {"input_file": tmp_path / "long.tfrecord", "num_train_steps": 2}
  values |= {"max_seq_length": 32, "max_predictions_per_seq": 6}
  done = run_well(**values, do_train=True)
  assert "RANDOM" not in done.err
  before, first = tensors(trained.out / "model.ckpt-60"), tensors(tmp_path / "out/model.ckpt-0")
  assert first["global_step"] == 0
  for name, value in first.items():
    if "/adam_" in name:
      assert not value.any(), name
    elif name != "global_step":
      np.testing.assert_array_equal(value, before[name], err_msg=name)
  assert tensors(tmp_path / "out")["global_step"] == 2


def test_another_model_in_the_folder_is_refused(trained, tmp_path):
  values = trained.copied_to(tmp_path)
  (tmp_path / "config.json").write_text(json.dumps({**CONFIG, "num_attention_heads": 4}))
  message = error_of(**{**values, "bert_config_file": tmp_path / "config.json"}, do_eval=True)
  assert "num_attention_heads was 2, now 4" in message


def test_a_folder_of_another_script_is_refused(trained, tmp_path):
  start = tensors(trained.out / "model.ckpt-0")
  state = {"fingerprint": {"task_name": "mrpc"}}
  saving.save(str(tmp_path), 3, {n: tf.Variable(v) for n, v in start.items()}, state, keep=1)
  message = error_of(**{**trained.flags, "output_dir": tmp_path}, do_train=True)
  assert "task_name was 'mrpc', now 'pretraining'" in message
