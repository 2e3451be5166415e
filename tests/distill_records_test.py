"""Tests of distill.py on records: DistilBERT's method, and TinyBERT's general stage.

Alone: python -m pytest tests/distill_records_test.py (half a minute, most of it compiling graphs)
"""

import sys
from unittest import mock

import pytest

from bert import distill, run_pretraining
from bert.checkpoints import finding
from bert.io.record_files import write_records
from tests.kit import teachers, tiny_pretraining
from tests.kit.event_files import series_in
from tests.kit.script_runs import (
  Script,
  assert_same_tensors,
  json_in,
  results_in,
  stopped_after,
  tensors,
)

VOCAB = [
  *("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"),
  *(f"word{i}" for i in range(tiny_pretraining.VOCAB_SIZE - 5)),
]
HEADS = {
  "cls/predictions/output_bias": (tiny_pretraining.VOCAB_SIZE,),
  "cls/predictions/transform/dense/kernel": (16, 16),
  "cls/predictions/transform/dense/bias": (16,),
  "cls/predictions/transform/LayerNorm/beta": (16,),
  "cls/predictions/transform/LayerNorm/gamma": (16,),
  "cls/seq_relationship/output_weights": (2, 16),
  "cls/seq_relationship/output_bias": (2,),
}


def run(**values):
  """Runs distill.py, which looks for the method among the words of the command line."""
  argv = ["distill.py", *(f"--{name}={value}" for name, value in values.items())]
  with mock.patch.object(sys, "argv", argv):
    return Script(distill).run(**values)


def run_well(**values):
  done = run(**values)
  assert done.code is None, done.err
  return done


@pytest.fixture(scope="module")
def flags(tmp_path_factory) -> dict:
  """A pre-trained teacher, records, and a student of one of its layers."""
  folder = tmp_path_factory.mktemp("records")
  facts = {"task_name": "pretraining"}
  teacher = teachers.write(folder / "teacher", VOCAB, facts, HEADS, type_vocab_size=2)
  write_records(folder / "train.tfrecord", tiny_pretraining.make_records(22))
  return {
    **{"teacher": teacher, "input_file": folder / "train.tfrecord", "num_hidden_layers": 1},
    **{"max_seq_length": 16, "max_predictions_per_seq": 3, "train_batch_size": 8},
    **{"num_train_steps": 2, "num_warmup_steps": 0, "save_summary_steps": 1, "do_train": True},
  }


@pytest.mark.slow
def test_distilbert_from_a_bert(flags, tmp_path):
  out = tmp_path / "out"
  run_well(**flags, method="distilbert", do_eval=True, max_eval_steps=1, output_dir=out)
  parts = series_in(out)
  for step, loss in parts["loss"].items():
    ce, mlm, cos = (parts[f"{name}_loss"][step] for name in ("ce", "mlm", "cos"))
    assert loss == pytest.approx(5 * ce + 2 * mlm + cos, rel=1e-5)
  assert json_in(out / "bert_config.json")["model_type"] == "distilbert"
  assert {"mlm_loss", "ce_loss", "cos_loss", "masked_lm_accuracy"} <= set(
    results_in(out / "eval_results.txt")
  )
  assert not any("pooler" in name for name in tensors(finding.latest(out)))

  halves = {**flags, "method": "distilbert", "output_dir": tmp_path / "halves"}
  with stopped_after(1):
    assert run(**halves, save_checkpoints_steps=1).code == 130
  run_well(**halves)
  assert_same_tensors(finding.latest(out), finding.latest(tmp_path / "halves"))


@pytest.mark.ci
def test_rare_tokens_are_masked_while_records_are_read(flags, tmp_path):
  records = tiny_pretraining.make_unmasked(22)
  tiny_pretraining.write_with_facts(tmp_path / "train.tfrecord", records)
  vocab_file = tmp_path / "vocab.txt"
  vocab_file.write_text("".join(f"{token}\n" for token in VOCAB))
  values = {**flags, "method": "distilbert", "dynamic_masking": True, "vocab_file": vocab_file}
  values["input_file"] = tmp_path / "train.tfrecord"
  losses = {}
  for smoothing in (0.7, 0):
    out = tmp_path / f"out{smoothing}"
    done = run_well(**values, mlm_smoothing=smoothing, output_dir=out)
    assert "Counting the tokens of 1 file." in done.err
    losses[smoothing] = series_in(out)["mlm_loss"]
  assert losses[0.7] != losses[0]


@pytest.mark.ci
def test_tinyberts_general_stage(flags, tmp_path):
  out = tmp_path / "out"
  run_well(**flags, method="tinybert", stage="general", output_dir=out)
  parts = series_in(out)
  for step, loss in parts["loss"].items():
    assert loss == pytest.approx(parts["att_loss"][step] + parts["rep_loss"][step], rel=1e-5)
  # The student is a model that run_pretraining.py takes.
  values = {name: flags[name] for name in ("input_file", "max_seq_length", "train_batch_size")}
  values |= {"max_predictions_per_seq": 3, "num_train_steps": 1, "num_warmup_steps": 0}
  more = {"init_checkpoint": out, "output_dir": tmp_path / "more", "do_train": True}
  Script(run_pretraining).run_well(**values, **more)


def test_messages(flags, tmp_path):
  def error_of(**values):
    done = run(**{**flags, "output_dir": tmp_path / "out", **values})
    assert done.code == 1, done.err
    return done.err[done.err.index("ERROR: ") :]

  assert "--num_hidden_layers=3" in error_of(method="distilbert", num_hidden_layers=3)
  assert "--alpha_ce=-1.0: must be at least 0" in error_of(method="distilbert", alpha_ce=-1)
  assert "is not a fine-tuned model" in error_of(method="logits")
