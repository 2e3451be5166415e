"""Tests of run_squad.py on what a run left: other questions, thresholds, a resumption."""

import json
import re

import numpy as np
import pytest

from bert import run_squad
from bert.tasks.squad import read_squad_examples
from tests.kit.script_runs import (
  Script,
  assert_same_tensors,
  json_in,
  results_in,
  stopped_after,
  tensors,
  values_in,
)
from tests.kit.tiny_questions import (
  NUM_DEV,
  YEARS,
  contexts,
  train_and_predict,
  windows_of,
  write_squad,
)

script = Script(run_squad)
run, run_well, error_of = script.run, script.run_well, script.error_of


def test_questions_of_ones_own_from_another_folder(v1, tmp_path):
  """No answers in the file, no training, the model from elsewhere: the same answers, no scores."""
  write_squad(tmp_path / "own.json", contexts(NUM_DEV, 2), with_answers=False)
  values = {
    **v1.flags,
    "predict_file": tmp_path / "own.json",
    "init_checkpoint": v1.out,
    "output_dir": tmp_path / "out",
  }
  done = run_well(**values, do_predict=True)
  for name in ("predictions.json", "nbest_predictions.json", "predictions_detailed.jsonl"):
    assert (tmp_path / "out" / name).read_bytes() == (v1.out / name).read_bytes()
  assert not (tmp_path / "out" / "eval_results.txt").exists()
  assert "has no correct answers: no scores." in done.err
  assert "has no correct answers. Use --do_predict." in error_of(**values, do_eval=True)


def test_do_eval_is_prediction_and_scores(v2, tmp_path):
  values = v2.copied_to(tmp_path)
  for name in ("predictions.json", "eval_results.txt", "null_odds.json"):
    (tmp_path / "out" / name).unlink()
  run_well(**values, do_eval=True)
  for name in ("predictions.json", "eval_results.txt", "null_odds.json"):
    assert (tmp_path / "out" / name).read_bytes() == (v2.out / name).read_bytes()


def test_only_known_answers_are_scored(v1, tmp_path):
  values = v1.copied_to(tmp_path)
  document = json_in(v1.flags["predict_file"])
  for entry in document["data"][0]["paragraphs"][5:]:
    del entry["qas"][0]["answers"]
  values["predict_file"] = tmp_path / "some.json"
  values["predict_file"].write_text(json.dumps(document))
  done = run_well(**values, do_predict=True)
  assert results_in(tmp_path / "out" / "eval_results.txt")["total"] == 5
  assert f"Scores are those of 5 questions of {NUM_DEV}." in done.err


def test_the_threshold_decides_and_the_best_one_does_not_depend_on_it(v2, tmp_path):
  values = v2.copied_to(tmp_path)
  best = results_in(v2.out / "eval_results.txt")["best_f1"]
  for threshold, num_empty in ((-1e6, NUM_DEV), (1e6, 0)):
    run_well(**values, do_eval=True, null_score_diff_threshold=threshold)
    predictions = json_in(tmp_path / "out" / "predictions.json")
    assert list(predictions.values()).count("") == num_empty
    results = results_in(tmp_path / "out" / "eval_results.txt")
    assert results["NoAns_exact"] == (100.0 if num_empty else 0.0)
    assert results["best_f1"] == best > results["f1"]
    assert (results["HasAns_f1"] == results["HasAns_f1_if_answered"]) == (num_empty == 0)
  threshold = results["best_f1_null_score_diff_threshold"]
  run_well(**values, do_eval=True, null_score_diff_threshold=threshold)
  assert results_in(tmp_path / "out" / "eval_results.txt")["f1"] == best


def test_n_best_size_and_answer_length(v1, tmp_path):
  def longest(answers):
    return max(len(entry["text"].split()) for entry in answers)

  free = json_in(v1.out / "nbest_predictions.json")
  assert max(len(answers) for answers in free.values()) == 20
  assert max(map(longest, free.values())) > 2
  values = v1.copied_to(tmp_path)
  run_well(**values, do_predict=True, n_best_size=15)
  few = json_in(tmp_path / "out" / "nbest_predictions.json")
  assert max(len(answers) for answers in few.values()) == 15
  run_well(**values, do_predict=True, max_answer_length=2)
  short = json_in(tmp_path / "out" / "nbest_predictions.json")
  assert max(map(longest, short.values())) == 2


@pytest.mark.ci
def test_parts_of_a_run_are_the_run_bit_for_bit(v1, tmp_path):
  """With dropout and shuffling on, and a second process that knows nothing of the first."""
  values = {**v1.flags, "num_train_epochs": 2.0, "save_checkpoints_steps": 6, "do_train": True}
  run_well(**{**values, "output_dir": tmp_path / "straight"})
  with stopped_after(6):
    assert run(**{**values, "output_dir": tmp_path / "parts"}).code == 130
  done = run_well(**{**values, "output_dir": tmp_path / "parts"})
  assert "Resumed from" in done.err
  straight = tmp_path / "straight" / "model.ckpt-12"
  assert "cls/squad/output_weights/adam_v" in tensors(straight)
  assert_same_tensors(straight, tmp_path / "parts" / "model.ckpt-12")


def test_the_other_version_is_answered_but_not_trained_on(v1, tmp_path):
  values = {**v1.copied_to(tmp_path), "version_2_with_negative": True}
  write_squad(tmp_path / "train.json", contexts(8, 3, True), version_2=True)
  before = (tmp_path / "out" / "train.tf_record").read_bytes()
  message = error_of(**{**values, "train_file": tmp_path / "train.json"}, do_train=True)
  assert "version_2_with_negative was False, now True" in message
  assert (tmp_path / "out" / "train.tf_record").read_bytes() == before
  run_well(**values, do_predict=True)
  assert (tmp_path / "out" / "null_odds.json").exists()


# ---------------------------------------------------------------------------------------------
# Evaluation during training.


@pytest.mark.ci
@pytest.mark.parametrize(("version_2", "pad_to_longest"), [(False, False), (True, True)])
def test_evaluation_during_training(model, tmp_path, version_2, pad_to_longest):
  """The figures of the middle are those of --do_eval on the same weights, and the best are kept."""
  more = {"num_train_epochs": 1.0, "eval_every_steps": 3, "pad_to_longest": pad_to_longest}
  trained = train_and_predict(model, tmp_path, version_2, **more)
  metric = "best_f1" if version_2 else "f1"
  lines = re.findall(rf"\b{metric} = ([\d.]+)", trained.done.err)
  assert len(lines) >= 3
  evaluated = [float(value) for value in lines[:2]]
  results = results_in(trained.out / "eval_results.txt")
  assert results[metric] == pytest.approx(max(evaluated), rel=1e-4)
  assert results["global_step"] == (3, 6)[int(np.argmax(evaluated))]
  assert results["total"] == NUM_DEV
  assert f"Using the best checkpoint, {trained.out / 'best'}" in trained.done.err
  assert re.search(r"\bloss = [\d.]+", trained.done.err)
  assert "start_positions" in values_in(trained.out / "dev.tf_record")[0]


@pytest.mark.ci
def test_the_best_checkpoint_predicts_and_not_the_last(model, tmp_path):
  """By a figure that is the same each time, the first checkpoint stays the best."""
  more = {"num_train_epochs": 1.0, "eval_every_steps": 3, "best_metric": "total"}
  trained = train_and_predict(model, tmp_path, False, **more)
  assert (trained.out / "model.ckpt-6.index").exists()
  assert results_in(trained.out / "eval_results.txt")["global_step"] == 3


def test_in_evaluation_padding_of_shorter_batches_is_no_place_for_an_answer(v1):
  """Batches of other lengths are joined with zeros, which may well be the largest logits."""
  task = run_squad.QuestionAnswering(run_squad.SquadSettings(pad_to_longest=True, n_best_size=1))
  task.dev = read_squad_examples(v1.flags["predict_file"], True)
  task.windows["dev"] = windows_of(v1, "predict_file", False)
  unique_ids = np.array([window.unique_id for window in task.windows["dev"]])
  tokens = [window.tokens for window in task.windows["dev"]]
  logits = np.zeros([len(tokens), 24], np.float32)
  for row, window_tokens in zip(logits, tokens, strict=True):
    row[: len(window_tokens)] = [-1.0 if t in YEARS else -5.0 for t in window_tokens]
  outputs = {"unique_ids": unique_ids, "start_logits": logits, "end_logits": logits}
  assert task.evaluate(**outputs)["exact_match"] == 100.0
  task.settings = task.settings.replace(pad_to_longest=False)
  assert task.evaluate(**outputs)["exact_match"] < 100.0
