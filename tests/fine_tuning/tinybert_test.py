"""distill.py --method=tinybert on the tasks of run_classifier.py."""

import json

import numpy as np
import pytest

from bert import distill
from tests.kit import teachers, tiny_bert
from tests.kit.event_files import series_in
from tests.kit.script_runs import Script, assert_same_tensors, results_in, stopped_after, tensors
from tests.kit.tiny_sentences import VOCAB, write_mrpc

script = Script(distill)
SIZES = {"max_seq_length": 16, "train_batch_size": 8, "learning_rate": 0.01}


@pytest.fixture(scope="module")
def task(tmp_path_factory) -> dict:
  """The flags of a student of half the teacher's layers and width."""
  folder = tmp_path_factory.mktemp("tinybert")
  write_mrpc(folder / "data")
  facts = {"task_name": "mrpc", "labels": ["0", "1"], "problem_type": "classification"}
  head = {"output_weights": (2, 16), "output_bias": (2,)}
  teacher = teachers.write(folder / "teacher", VOCAB, facts, head, {"max_seq_length": 16})
  config = tiny_bert.write_config(
    folder / "student.json", len(VOCAB), hidden_size=8, num_hidden_layers=1
  )
  return {
    **SIZES,
    "method": "tinybert",
    "stage": "task",
    "teacher": teacher,
    "data_dir": folder / "data",
    "bert_config_file": config,
    "do_train": True,
    "num_train_epochs": 3,
    "save_summary_steps": 1,
  }


@pytest.mark.slow
def test_both_halves_of_the_task_stage_resume_bit_for_bit(task, tmp_path):
  straight, halves = tmp_path / "straight", tmp_path / "halves"
  script.run_well(**task, do_eval=True, layer_epochs=4, output_dir=straight)
  layers, predictions = series_in(straight / "layers"), series_in(straight)
  assert set(layers["att_loss"]) == set(range(1, 11))  # 20 examples, batches of 8, 4 epochs
  assert list(layers["learning_rate"].values()) == pytest.approx([0.01] * 10)
  assert layers["rep_loss"][10] < layers["rep_loss"][1]
  for step, loss in layers["loss"].items():
    assert loss == pytest.approx(layers["att_loss"][step] + layers["rep_loss"][step], rel=1e-5)
  assert predictions["cls_loss"] == predictions["loss"]
  assert "att_loss" not in predictions
  assert 0 <= results_in(straight / "eval_results.txt")["eval_accuracy"] <= 1
  assert "fit_dense/kernel" in tensors(straight / "layers" / "model.ckpt-10")
  assert not any(name.startswith("fit_dense") for name in tensors(straight / "model.ckpt-7"))
  values = {**task, "layer_epochs": 4, "output_dir": halves, "save_checkpoints_steps": 5}
  for _ in range(2):  # in the first half, then in the second
    with stopped_after(5):
      assert script.run(**values).code == 130
  script.run_well(**values)
  assert_same_tensors(halves / "layers" / "model.ckpt-10", straight / "layers" / "model.ckpt-10")
  assert_same_tensors(halves / "model.ckpt-7", straight / "model.ckpt-7")


@pytest.mark.ci
def test_a_student_cut_from_the_teacher(task, tmp_path):
  values = {**task, "stage": "layers", "num_hidden_layers": 1, "output_dir": tmp_path}
  del values["bert_config_file"]
  script.run_well(**values)
  assert json.loads((tmp_path / "bert_config.json").read_text())["num_hidden_layers"] == 1
  found = tensors(tmp_path / "model.ckpt-7")
  assert found["fit_dense/kernel"].shape == (16, 16)
  # What no loss of layers reads is left alone, not even decayed, as in the original.
  started = tensors(tmp_path / "student" / "bert_model.ckpt")
  for name in ("bert/pooler/dense/kernel", "output_weights", "output_bias"):
    np.testing.assert_array_equal(found[name], started[name], err_msg=name)


@pytest.mark.parametrize(
  ("changes", "message"),
  [
    ({"stage": None}, "--method=tinybert needs --stage=task"),
    ({"method": "logits"}, "--stage has no effect without --method=tinybert"),
    ({"label_weight": 0.1}, "--label_weight has no effect with --method=tinybert"),
    ({"stage": "layers", "layer_epochs": 2}, "--layer_epochs is for --stage=task"),
    ({"layer_epochs": -1}, "--layer_epochs=-1.0: must be a positive number"),
    ({"long_text": "windows"}, "--long_text is not supported with --stage=task"),
  ],
)
def test_what_cannot_be_is_one_clear_line(task, tmp_path, changes, message):
  values = {**task, **changes, "output_dir": tmp_path}
  values = {name: value for name, value in values.items() if value is not None}
  assert message in script.error_of(**values)
