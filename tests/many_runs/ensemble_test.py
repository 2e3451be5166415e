"""Tests of many runs of each script: shared records, and the mean of outputs against NumPy."""

import numpy as np
import pytest

from bert.tasks import metrics
from tests.kit.script_runs import json_in, results_in, table


def outputs(out, name, seeds):
  return [np.load(out / f"seed_{seed}" / f"outputs_{name}.npz")["outputs"] for seed in seeds]


@pytest.mark.ci
def test_the_ensemble_of_classifiers_is_the_mean_of_their_probabilities(classifier, mrpc):
  classifier.run_well(**mrpc, do_predict=True, num_runs=2, seed=5)
  out = mrpc["output_dir"]
  assert classifier.folders()[:3] == ["seed_5", "seed_6", "ensemble"]
  mean = np.mean(outputs(out, "eval", (5, 6)), axis=0)
  rows = table(mrpc["data_dir"] / "dev.tsv")[1:]
  labels = [int(row[0]) for row in rows]
  expected = metrics.compute_metrics(["accuracy", "f1"], labels, mean)
  found = results_in(out / "ensemble" / "eval_results.txt")
  assert {name: found[name] for name in expected} == pytest.approx(expected, abs=1e-6)
  mean = np.mean(outputs(out, "predict", (5, 6)), axis=0)
  written = np.array(table(out / "ensemble" / "test_results.tsv"), np.float64)
  np.testing.assert_allclose(written, mean, atol=1e-7)
  header = (out / "seed_5" / "predictions.tsv").read_text().splitlines()[0]
  assert (out / "ensemble" / "predictions.tsv").read_text().splitlines()[0] == header


@pytest.mark.ci
def test_records_are_written_once_and_a_plain_run_has_no_further_file(classifier, mrpc):
  classifier.run_well(**mrpc, num_runs=2)
  out = mrpc["output_dir"]
  names = {path.name for path in (out / "features").iterdir()} - {".lock"}
  records = ("train.tf_record", "eval.tf_record")
  assert names == {
    *records,
    *(f".{name}.manifest.json" for name in records),
    *("train.key.json", "eval.key.json"),
  }
  assert not list(out.glob("seed_*/*.tf_record"))
  logs = [(out / f"seed_{seed}" / "run.log").read_text() for seed in (12345, 12346)]
  assert ["train.tf_record, which has been written" in log for log in logs] == [False, True]
  classifier.run(**{**mrpc, "output_dir": out.parent / "plain"})
  plain = {path.name for path in (out.parent / "plain").iterdir()}
  assert {"train.tf_record", "eval.tf_record"} <= plain
  assert not {"dev_summary.json", "outputs_eval.npz"} & plain


@pytest.mark.ci
def test_named_entities_average_the_probabilities_of_each_word(runs_of, ner):
  runs_of("run_ner").run_well(**ner, seeds="3,4", average_weights=False)
  out = ner["output_dir"]
  mean = np.mean(outputs(out, "predict", (3, 4)), axis=0)  # [words, C]
  labels = list(json_in(out / "seed_3" / "label_map.json"))
  words = [line for line in (ner["data_dir"] / "test.conll").read_text().splitlines() if line]
  assert mean.shape == (len(words), len(labels))
  lines = (out / "ensemble" / "predictions.conll").read_text().splitlines()
  written = [line.split("\t")[-1][-3:] for line in lines if line]
  # A label that continues nothing is written as the start of an entity; the type is the model's.
  assert written == [labels[i][-3:] for i in mean.argmax(axis=-1)]
  assert "eval_f1" in results_in(out / "ensemble" / "eval_results.txt")


@pytest.mark.ci
def test_choices_average_their_probabilities(runs_of, swag):
  runs_of("run_swag").run_well(**swag, seeds="3,4", average_weights=False)
  out = swag["output_dir"]
  mean = np.mean(outputs(out, "predict", (3, 4)), axis=0)
  written = np.array(table(out / "ensemble" / "test_results.tsv"), np.float64)
  np.testing.assert_allclose(written, mean, atol=1e-7)
  assert "eval_accuracy" in results_in(out / "ensemble" / "eval_results.txt")


@pytest.mark.ci
def test_answers_sum_the_probabilities_of_each_text(runs_of, squad):
  runs_of("run_squad").run_well(**squad, seeds="3,4", average_weights=False)
  out = squad["output_dir"]
  runs = [json_in(out / f"seed_{seed}" / "nbest_predictions.json") for seed in (3, 4)]
  found = json_in(out / "ensemble" / "nbest_predictions.json")
  null_odds = json_in(out / "ensemble" / "null_odds.json")
  predictions = json_in(out / "ensemble" / "predictions.json")
  for question, answers in found.items():
    sums = {}
    for run in runs:
      for answer in run[question]:
        sums[answer["text"]] = sums.get(answer["text"], 0.0) + answer["probability"] / 2
    best = max((text for text in sums if text), key=sums.get)
    assert null_odds[question] == pytest.approx(np.log(sums[""] / sums[best]), abs=1e-9)
    assert predictions[question] == ("" if sums[""] > sums[best] else best)
    total = sum(sums[answer["text"]] for answer in answers)
    for answer in answers:
      assert answer["probability"] == pytest.approx(sums[answer["text"]] / total)
  assert {"exact", "f1", "best_f1"} <= set(results_in(out / "ensemble" / "eval_results.txt"))
