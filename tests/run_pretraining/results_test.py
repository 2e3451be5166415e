"""Tests of the files, the log and the figures that a run of run_pretraining.py leaves."""

import json
import re
import shutil

import numpy as np
import pytest

from bert import run_pretraining, tokenization
from bert.checkpoints import loading
from bert.io.record_files import write_records
from bert.model.configuration import BertConfig
from bert.model.variables import VariableStore
from bert.training import pretraining_objectives
from tests.kit import tiny_bert
from tests.kit.checkpoint_names import PRETRAINING_HEADS
from tests.kit.event_files import series_in
from tests.kit.script_runs import Script, assert_same_tensors, results_in, tensors
from tests.kit.tiny_pretraining import (
  CONFIG,
  VOCAB_SIZE,
  batch_of,
  forward,
  make_records,
  write_vocabulary,
  write_with_facts,
)

script = Script(run_pretraining)
run, run_well, error_of = script.run, script.run_well, script.error_of

EVAL_KEYS = [
  "global_step",
  "loss",
  "masked_lm_accuracy",
  "masked_lm_loss",
  "next_sentence_accuracy",
  "next_sentence_loss",
]


def test_it_learns(trained):
  results = results_in(trained.out / "eval_results.txt")
  assert results["masked_lm_accuracy"] > 0.9
  assert results["next_sentence_accuracy"] > 0.9
  assert results["loss"] < 1.0 < np.log(VOCAB_SIZE)


def test_eval_results_are_the_originals_keys_sorted(trained):
  lines = (trained.out / "eval_results.txt").read_text().splitlines()
  assert [line.split(" = ")[0] for line in lines] == EVAL_KEYS
  assert lines[0] == "global_step = 60"


@pytest.mark.ci
def test_the_vocabulary_of_the_records_is_found_beside_the_configuration(model, tmp_path):
  records, folder = tmp_path / "a.tfrecord", tmp_path / "model"
  folder.mkdir()
  shutil.copy(model["bert_config_file"], folder)
  values = {**model, "input_file": records, "bert_config_file": folder / "bert_config.json"}
  digest = tokenization.vocabulary_hash(
    tokenization.load_vocab(write_vocabulary(folder / "vocab.txt"))
  )
  write_with_facts(records, make_records(22), vocabulary=digest)
  values |= {"num_train_steps": 1, "num_warmup_steps": 0, "do_train": True}
  done = run_well(**values, output_dir=tmp_path / "out")
  assert f"--vocab_file={folder}/vocab.txt, the vocabulary of the records." in done.err
  assert (tmp_path / "out" / "vocab.txt").read_bytes() == (folder / "vocab.txt").read_bytes()

  (folder / "vocab.txt").write_text("[PAD]\nof\nanother\nmodel\n")
  done = run_well(**values, output_dir=tmp_path / "without")
  assert f"--output_dir={tmp_path}/without gets no vocabulary" in done.err
  assert not (tmp_path / "without" / "vocab.txt").exists()


def test_log_lines_of_the_original(trained):
  for line in (
    "*** Input Files ***",
    f"  {trained.flags['input_file']}",
    "***** Running training *****",
    "  Batch size = 8",
    "***** Running evaluation *****",
    "***** Eval results *****",
    "  global_step = 60",
  ):
    assert f"INFO:tensorflow:{line}\n" in trained.done.err


def test_summaries_of_training(trained):
  scalars = series_in(trained.out)
  for step in (5, 60):
    parts = scalars["masked_lm_loss"][step] + scalars["next_sentence_loss"][step]
    np.testing.assert_allclose(scalars["loss"][step], parts, rtol=1e-6)
    assert 8 <= scalars["tokens_per_example"][step] <= 15
  assert scalars["masked_lm_loss"][60] < scalars["masked_lm_loss"][5]
  assert scalars["masked_lm_accuracy"][5] < 0.5 < scalars["masked_lm_accuracy"][60]
  assert 0 <= scalars["next_sentence_accuracy"][5] <= 1
  assert {"learning_rate", "examples/sec"} <= set(scalars)
  tokens = scalars["tokens/sec"][60] / scalars["examples/sec"][60]
  assert 8 <= tokens <= 14


def test_a_line_of_progress(trained):
  [line] = [line for line in trained.done.err.splitlines() if "step 60/60, " in line]
  assert re.fullmatch(
    r".*step 60/60, loss [\d.]+, masked_lm_loss [\d.]+, next_sentence_loss [\de.-]+, "
    r"masked_lm_accuracy [\d.]+, next_sentence_accuracy [\d.]+, learning_rate [\de.-]+, "
    r"[\d.]+ examples/s, [\d.]+ tokens/s, [\d:]+ left",
    line,
  )


def test_checkpoint_has_the_originals_names(trained):
  names = set(tensors(trained.out / "model.ckpt-60"))
  weights = {n for n in names if not n.endswith(("/adam_m", "/adam_v"))} - {"global_step"}
  assert {n for n in weights if n.startswith("cls/")} == set(PRETRAINING_HEADS)
  assert len(weights) == 5 + 16 + 2 + 7  # embeddings, one layer, pooler, heads
  assert names == {f"{n}{slot}" for n in weights for slot in ("", "/adam_m", "/adam_v")} | {
    "global_step"
  }


@pytest.mark.ci
@pytest.mark.parametrize("parts", [1, 2])
def test_accuracies_in_training_are_those_of_the_batch(trained, tmp_path, parts):
  """With a rate of 0 and without dropout, a batch is trained on as it is evaluated."""
  config = {**CONFIG, **tiny_bert.NO_DROPOUT}
  (tmp_path / "config.json").write_text(json.dumps(config))
  # Of the words some are known after 60 steps, some not: labels of every other record are wrong.
  records = make_records(8, seed=5, masked_each=2)
  for record in records[::2]:
    record["masked_lm_ids"] = 39 - np.array(record["masked_lm_ids"])
    record["next_sentence_labels"] = [1 - record["next_sentence_labels"][0]]
  write_records(tmp_path / "train.tfrecord", records)
  values = {**trained.flags, "bert_config_file": tmp_path / "config.json", "learning_rate": 0.0}
  values |= {"input_file": tmp_path / "train.tfrecord", "init_checkpoint": trained.out}
  values |= {"output_dir": tmp_path / "out", "num_train_steps": 1, "num_warmup_steps": 0}
  values |= {"gradient_accumulation_steps": parts, "shuffle_buffer_size": 1, "max_eval_steps": 1}
  run_well(**values, do_train=True, do_eval=True)
  results, scalars = results_in(tmp_path / "out/eval_results.txt"), series_in(tmp_path / "out")
  for name in ("masked_lm_accuracy", "next_sentence_accuracy", "masked_lm_loss"):
    assert scalars[name][1] == pytest.approx(results[name], rel=1e-5), name
  assert 0.2 < results["masked_lm_accuracy"] < 0.8
  assert 0.2 < results["next_sentence_accuracy"] < 0.8


def test_evaluation_on_training_records_is_warned_of(trained, tmp_path):
  assert "--eval_input_file=FILES evaluates on others" in trained.done.err
  others = tmp_path / "others.tfrecord"
  write_records(others, make_records(6, seed=1))
  values = {**trained.copied_to(tmp_path), "eval_input_file": others}
  # The form of 2018: nothing trains, so --input_file holds whatever the user wants to evaluate on.
  done = run_well(**{**values, "input_file": others, "eval_input_file": ""}, do_eval=True)
  assert "evaluates on others" not in done.err
  # Without training the records of --input_file are not read, so that they need not be there.
  done = run_well(**{**values, "input_file": "gone"}, do_eval=True)
  assert "evaluates on others" not in done.err
  assert (
    results_in(tmp_path / "out/eval_results.txt")["loss"]
    != results_in(trained.out / "eval_results.txt")["loss"]
  )


@pytest.mark.ci
def test_evaluation_during_training_leaves_a_curve_and_the_best(trained, tmp_path):
  write_records(tmp_path / "others.tfrecord", make_records(12, seed=9))
  values = {**trained.flags, "eval_input_file": tmp_path / "others.tfrecord", "num_train_steps": 8}
  values |= {"output_dir": tmp_path / "out", "eval_batch_size": 4, "max_eval_steps": 3}
  done = run_well(**values, eval_every_steps=3, do_train=True, do_eval=True)
  curve = series_in(tmp_path / "out/eval")["masked_lm_loss"]
  assert sorted(curve) == [3, 6, 8]
  best = min(curve, key=curve.get)
  assert tensors(tmp_path / "out/best")["global_step"] == best
  results = results_in(tmp_path / "out/eval_results.txt")
  assert results["global_step"] == best
  assert results["masked_lm_loss"] == pytest.approx(curve[best], rel=1e-5)
  assert "evaluates on others" not in done.err
  # The steps between are those of a run without evaluation.
  run_well(**{**values, "output_dir": tmp_path / "plain"}, do_train=True)
  assert_same_tensors(tmp_path / "plain/model.ckpt-8", tmp_path / "out/model.ckpt-8")


@pytest.mark.usefixtures("fake_estimator")
def test_evaluation_during_training_on_training_records_is_warned_of(model, tmp_path):
  values = {**model, "output_dir": tmp_path, "num_train_steps": 1, "num_warmup_steps": 0}
  done = run_well(**values, eval_every_steps=1, max_eval_steps=1, do_train=True)
  assert "--eval_input_file=FILES evaluates on others" in done.err


# ---------------------------------------------------------------------------------------------
# Evaluation by hand.


def test_metrics_are_those_of_all_evaluated_words(trained, tmp_path):
  """Four batches of 3 out of 10 records: the last starts over, and words weigh the same."""
  made = make_records(10, seed=2)
  write_records(tmp_path / "eval.tfrecord", made)
  start = trained.out / "model.ckpt-0"  # Untrained weights make losses that differ.
  values = {**trained.flags, "init_checkpoint": start, "output_dir": tmp_path / "out"}
  values |= {"eval_input_file": tmp_path / "eval.tfrecord", "max_eval_steps": 4}
  run_well(**values, eval_batch_size=3, do_eval=True)
  results = results_in(tmp_path / "out/eval_results.txt")

  config, store = BertConfig.from_dict(CONFIG), VariableStore()
  order = [*made, *made[:2]]
  forward(config, store, batch_of(order))
  loading.restore(str(start), store.variables)
  masked, following = forward(config, store, batch_of(order))
  weights = np.concatenate([r["masked_lm_weights"] for r in order])
  right = np.argmax(masked[2], -1) == np.concatenate([r["masked_lm_ids"] for r in order])
  labels = np.concatenate([r["next_sentence_labels"] for r in order])
  batches = [forward(config, store, batch_of(order[i : i + 3])) for i in range(0, 12, 3)]
  expected = {
    "global_step": 0,
    "loss": np.mean([m[0] + f[0] for m, f in batches]),
    "masked_lm_accuracy": np.average(right, weights=weights),
    "masked_lm_loss": np.average(masked[1], weights=weights),
    "next_sentence_accuracy": np.mean(np.argmax(following[2], -1) == labels),
    "next_sentence_loss": np.mean(following[1]),
  }
  assert weights.reshape(4, -1).sum(1).std() > 0, "equal batches would prove nothing"
  assert list(results) == list(expected)
  for key, value in expected.items():
    np.testing.assert_allclose(results[key], value, rtol=2e-6, err_msg=key)

  values["output_dir"] = tmp_path / "padded"
  run_well(**values, eval_batch_size=3, do_eval=True, pad_to_max_length=True)
  padded = results_in(tmp_path / "padded/eval_results.txt")
  np.testing.assert_allclose(list(padded.values()), list(results.values()), rtol=2e-6)


def test_nothing_masked_is_zero_and_not_nan():
  nothing = np.zeros(2, np.float32)
  results = pretraining_objectives.pair_metrics(
    nothing + 1, nothing, nothing, nothing, nothing, nothing, nothing
  )
  assert results["masked_lm_loss"] == results["masked_lm_accuracy"] == 0.0
