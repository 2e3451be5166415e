"""Tests of the files and the log that a run of run_squad.py leaves."""

import pytest
import tensorflow as tf

from bert import run_squad
from bert.checkpoints import load_report
from tests.kit.script_runs import OF_TRAINING, json_in, results_in, values_in
from tests.kit.tiny_questions import NUM_DEV, NUM_TRAIN, contexts, details_in, windows_of


def test_it_learns(v1):
  results = results_in(v1.out / "eval_results.txt")
  assert list(results) == ["exact_match", "f1", "total", "global_step"]
  assert results["exact_match"] > 90
  assert results["f1"] >= results["exact_match"]
  assert results["total"] == NUM_DEV
  assert results["global_step"] == NUM_TRAIN // 8 * 10


def test_it_learns_when_there_is_no_answer(v2):
  results = results_in(v2.out / "eval_results.txt")
  assert list(results) == [
    *("exact", "f1", "total", "HasAns_exact", "HasAns_f1", "HasAns_total"),
    *("NoAns_exact", "NoAns_f1", "NoAns_total"),
    *("best_exact", "best_exact_thresh", "best_f1", "best_f1_thresh"),
    "best_f1_null_score_diff_threshold",
    *("HasAns_exact_if_answered", "HasAns_f1_if_answered", "global_step"),
  ]
  assert results["total"] == NUM_DEV
  assert results["HasAns_total"] == 13
  assert results["best_exact"] >= results["exact"] > 80
  odds = json_in(v2.out / "null_odds.json")
  predictions = json_in(v2.out / "predictions.json")
  assert {qid: odds[qid] > 0 for qid in odds} == {qid: not predictions[qid] for qid in predictions}


def test_files_of_a_run(v1, v2):
  for trained, extra in ((v1, set()), (v2, {"null_odds.json"})):
    names = {path.name for path in trained.out.iterdir() if "tfevents" not in path.name}
    checkpoints = {
      f"model.ckpt-{step}.{suffix}"
      for step in (0, 60)
      for suffix in ("index", "data-00000-of-00001", "state.json")
    }
    record_files = {"train.tf_record", "eval.tf_record"}
    manifests = {f".{name}.manifest.json" for name in record_files}
    answers = {"predictions.json", "nbest_predictions.json", "predictions_detailed.jsonl"}
    of_model = {"bert_config.json", "vocab.txt", "example.json", *OF_TRAINING}
    assert names == {
      *(checkpoints | record_files | manifests | answers | extra | of_model),
      *("checkpoint", "dev_summary.json", "eval_results.txt"),
    }


def test_log_lines_of_the_original(v1):
  windows = {key: len(windows_of(v1, f"{key}_file", False)) for key in ("train", "predict")}
  assert windows["train"] > NUM_TRAIN
  for line in (
    "***** Running training *****",
    f"  Num orig examples = {NUM_TRAIN}",
    f"  Num split examples = {windows['train']}",
    "  Batch size = 8",
    "  Num steps = 60",
    "***** Running predictions *****",
    f"  Num orig examples = {NUM_DEV}",
    f"  Num split examples = {windows['predict']}",
    f"Processing example: 0 of {windows['predict']}",
    f"Writing predictions to: {v1.out / 'predictions.json'}",
    f"Writing nbest to: {v1.out / 'nbest_predictions.json'}",
    "***** Eval results *****",
  ):
    assert f"INFO:tensorflow:{line}\n" in v1.done.err
  assert v1.done.err.count("*** Example ***") == 1  # more with --verbosity=1
  assert v1.done.out == ""


@pytest.mark.parametrize("split", ["train", "predict"])
def test_records_have_the_originals_features(v2, split):
  is_training = split == "train"
  found = values_in(v2.out / f"{'train' if is_training else 'eval'}.tf_record")
  windows = windows_of(v2, f"{split}_file", is_training)
  assert any(window.doc_span_index for window in windows)
  for record, window in zip(found, windows, strict=True):
    expected = {
      "unique_ids": [window.unique_id],
      "input_ids": window.input_ids,
      "input_mask": window.input_mask,
      "segment_ids": window.segment_ids,
    }
    if is_training:
      expected["start_positions"] = [window.start_position]
      expected["end_positions"] = [window.end_position]
      expected["is_impossible"] = [int(window.is_impossible)]
    assert record == expected


def test_files_of_answers_agree(v1, v2):
  for trained in (v1, v2):
    predictions = json_in(trained.out / "predictions.json")
    nbest = json_in(trained.out / "nbest_predictions.json")
    details = details_in(trained.out)
    assert list(predictions) == list(nbest) == [f"q{i}" for i in range(NUM_DEV)]
    for detail, context in zip(details, contexts(NUM_DEV, 2, trained is v2), strict=True):
      qid = detail["id"]
      assert detail["text"] == predictions[qid]
      [entry] = [e for e in nbest[qid] if e["text"] == predictions[qid]]
      assert detail["probability"] == entry["probability"]
      assert sum(e["probability"] for e in nbest[qid]) == pytest.approx(1.0)
      if detail["text"]:
        assert context[detail["start"] : detail["end"]] == detail["text"]
      else:
        assert detail["start"] is detail["end"] is None
    assert max(detail["window"] for detail in details) > 0


def test_checkpoint_has_the_originals_names(v1):
  names = {name for name, _ in tf.train.list_variables(str(v1.out / "model.ckpt-60"))}
  model_names = {name for name in names if not load_report.is_training_state(name)}
  assert {name for name in model_names if not name.startswith("bert/")} == {
    "cls/squad/output_weights",
    "cls/squad/output_bias",
  }
  shapes = dict(tf.train.list_variables(str(v1.out / "model.ckpt-60")))
  assert shapes["cls/squad/output_weights"] == [2, 16]
  # The pooler is there, but nothing of the loss comes from it.
  pooler = {"bert/pooler/dense/kernel", "bert/pooler/dense/bias"}
  assert pooler < model_names
  slots = {f"{n}/{slot}" for n in model_names - pooler for slot in ("adam_m", "adam_v")}
  assert names == model_names | slots | {"global_step"}


def test_feature_writer_writes_what_write_features_does(v1, tmp_path):
  windows = windows_of(v1, "train_file", True)
  writer = run_squad.FeatureWriter(tmp_path / "one_by_one", is_training=True)
  for window in windows:
    writer.process_feature(window)
  writer.close()
  assert writer.num_features == len(windows)
  assert run_squad.write_features(str(tmp_path / "at_once"), windows, True) == len(windows)
  assert (tmp_path / "one_by_one").read_bytes() == (tmp_path / "at_once").read_bytes()
  assert (tmp_path / "at_once").read_bytes() == (v1.out / "train.tf_record").read_bytes()
