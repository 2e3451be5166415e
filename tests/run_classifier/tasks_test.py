"""run_classifier.py on every kind of task: GLUE, XNLI, your own data, processors of 2018."""

import collections
import csv
import json
import os
import shutil

import numpy as np
import pytest

from bert import predict, run_classifier, tokenization
from bert.model.task_heads import SequenceHead
from bert.run_classifier import DataProcessor, InputExample
from bert.training import estimator
from tests.kit.fake_estimator import FakeEstimator
from tests.kit.filters import run_filter
from tests.kit.script_runs import Script, Trained, records, results_in, table
from tests.kit.tiny_sentences import SIZES, texts, write, write_rows

script = Script(run_classifier)
run, run_well, error_of = script.run, script.run_well, script.error_of


def numbers(path) -> np.ndarray:
  return np.array(table(path), np.float32)


# ---------------------------------------------------------------------------------------------
# Public tasks.


@pytest.mark.usefixtures("fake_estimator")
def test_cola_has_no_header_but_in_its_test_file(model, tmp_path):
  for split in ("train", "dev"):
    rows = [("gj04", label, "*" * (1 - label), a) for label, a, _ in texts(SIZES[split])]
    write_rows(tmp_path / "CoLA", f"{split}.tsv", *rows)
  rows = [(i, a) for i, (_, a, _) in enumerate(texts(6))]
  write_rows(tmp_path / "CoLA", "test.tsv", ("index", "sentence"), *rows)
  out = tmp_path / "out"
  run_well(
    **model,
    task_name="CoLA",
    data_dir=tmp_path / "CoLA",
    output_dir=out,
    do_train=True,
    do_eval=True,
    do_predict=True,
  )
  sizes = [len(records(out / f"{name}.tf_record")) for name in ("train", "eval", "predict")]
  assert sizes == [20, 10, 6]
  assert "eval_matthews_corrcoef" in results_in(out / "eval_results.txt")
  assert set(records(out / "train.tf_record")[0]["segment_ids"][1]) == {0}
  assert numbers(out / "test_results.tsv").shape == (6, 2)


@pytest.mark.ci
def test_stsb_is_a_regression(model, tmp_path):
  header = ("index", "sentence1", "sentence2", "score")
  for split, size in SIZES.items():
    width = 3 if split == "test" else 4
    rows = [(i, a, b, 5.0 * label)[:width] for i, (label, a, b) in enumerate(texts(size))]
    write_rows(tmp_path / "STS-B", f"{split}.tsv", header[:width], *rows)
  out = tmp_path / "out"
  done = run_well(
    **model,
    task_name="STS-B",
    data_dir=tmp_path / "STS-B",
    output_dir=out,
    num_train_epochs=16.0,
    do_train=True,
    do_eval=True,
    do_predict=True,
  )
  results = results_in(out / "eval_results.txt")
  assert list(results) == [
    *("eval_loss", "global_step", "loss"),
    *("eval_pearson", "eval_spearman"),
  ]
  assert results["eval_pearson"] > 0.9
  assert "confusion matrix" not in done.err
  assert records(out / "train.tf_record")[1]["label_ids"] == ("float_list", [5.0])
  header, *rows = table(out / "predictions.tsv")
  assert header == ["id", "score", "text_a", "text_b"]
  assert [row[1:2] for row in rows] == table(out / "test_results.tsv")
  assert len(rows) == 6


MNLI_LABELS = ("contradiction", "entailment", "neutral")


def write_mnli(folder) -> None:
  header = (*"01234567", "sentence1", "sentence2", "gold_label")
  for split, size in (
    *(("train", 12), ("dev_matched", 6), ("dev_mismatched", 9)),
    *(("test_matched", 5), ("test_mismatched", 7)),
  ):
    width = 10 if split.startswith("test") else 11
    rows = [
      (f"{split}/{i}", *"1234567", a, b, MNLI_LABELS[i % 3])[:width]
      for i, (_, a, b) in enumerate(texts(size))
    ]
    write_rows(folder, f"{split}.tsv", header[:width], *rows)


@pytest.fixture(scope="module")
def mnli(model, tmp_path_factory):
  """One run on both pairs of sets, and how often each graph was built in it."""
  data, out = tmp_path_factory.mktemp("MNLI"), tmp_path_factory.mktemp("out") / "mnli"
  write_mnli(data)
  built = collections.Counter()
  outputs = SequenceHead.outputs

  def counting(head, batch):
    built["training" if batch.is_training else "inference"] += 1
    return outputs(head, batch)

  values = {**model, "task_name": "MNLI", "data_dir": data, "output_dir": out}
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(SequenceHead, "outputs", counting)
    done = run_well(**values, do_train=True, do_eval=True, do_predict=True)
  return Trained(values, out, done), built


@pytest.mark.ci
def test_mnli_has_two_results_of_each_kind(mnli):
  out = mnli[0].out
  assert len(records(out / "eval.tf_record")) == 6
  assert len(records(out / "eval_mismatched.tf_record")) == 9
  matched = results_in(out / "eval_results.txt")
  mismatched = results_in(out / "eval_results_mismatched.txt")
  assert list(matched) == list(mismatched)
  assert matched["eval_loss"] != mismatched["eval_loss"]
  for suffix, size in (("", 5), ("_mismatched", 7)):
    assert numbers(out / f"test_results{suffix}.tsv").shape == (size, 3)
    header, *rows = table(out / f"predictions{suffix}.tsv")
    names = (f"probability_{label}" for label in MNLI_LABELS)
    assert header == ["id", "label", *names, "text_a", "text_b"]
    assert len(rows) == size


def test_the_second_evaluation_and_prediction_trace_nothing_new(mnli):
  """Though sizes and lengths of the batches differ between the sets."""
  assert mnli[1] == {"training": 1, "inference": 2}


def test_ax_is_predicted_by_a_model_of_mnli(mnli, tmp_path):
  write_rows(
    tmp_path / "AX",
    "AX.tsv",
    ("index", "sentence1", "sentence2"),
    *((i, a, b) for i, (_, a, b) in enumerate(texts(4))),
  )
  values = {**mnli[0].copied_to(tmp_path), "task_name": "AX", "data_dir": tmp_path / "AX"}
  run_well(**values, do_predict=True)
  assert numbers(tmp_path / "out" / "test_results.tsv").shape == (4, 3)


@pytest.mark.usefixtures("fake_estimator")
def test_xnli_in_another_language(model, tmp_path):
  data, out = tmp_path / "XNLI", tmp_path / "out"
  rows = [
    (a, b, ("contradictory", *MNLI_LABELS[1:])[i % 3]) for i, (_, a, b) in enumerate(texts(9))
  ]
  write_rows(data, "multinli/multinli.train.de.tsv", ("premise", "hypo", "label"), *rows)
  header = ("language", "gold_label", "2", "3", "4", "5", "sentence1", "sentence2")
  for split, size in (("dev", 4), ("test", 5)):
    rows = [
      (language, MNLI_LABELS[i % 3], *"2345", a, b)
      for i, (_, a, b) in enumerate(texts(size))
      for language in ("en", "de", "zh")
    ]
    write_rows(data, f"xnli.{split}.tsv", header, *rows)
  values = {**model, "task_name": "XNLI", "data_dir": data, "output_dir": out}
  run_well(**values, xnli_language="de", do_train=True, do_eval=True, do_predict=True)
  sizes = [len(records(out / f"{name}.tf_record")) for name in ("train", "eval", "predict")]
  assert sizes == [9, 4, 5]
  assert numbers(out / "test_results.tsv").shape == (5, 3)
  message = error_of(**values, xnli_language="fr", do_eval=True)
  assert "no row is in language 'fr'; the languages are de, en, zh." in message


# ---------------------------------------------------------------------------------------------
# Your own data.


def own_rows(size, label_of=lambda good: ("no", "yes")[good]):
  """Texts with what each format has to quote or must not take for a quote."""
  return [(f'{a}, "{b}', label_of(good), f"r{i}") for i, (good, a, b) in enumerate(texts(size))]


def write_own(folder, ending, rows_of=own_rows, columns=("text", "class", "row")) -> None:
  for split in ("train", "dev", "test"):
    rows = rows_of(SIZES[split])
    if ending == "jsonl":
      lines = [json.dumps(dict(zip(columns, row, strict=True))) for row in rows]
      write(folder, f"{split}.jsonl", *lines)
    elif ending == "csv":
      folder.mkdir(parents=True, exist_ok=True)
      with open(folder / f"{split}.csv", "w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([columns, *rows])
    else:
      write_rows(folder, f"{split}.tsv", columns, *rows)


OWN_COLUMNS = {"text_a_column": "text", "label_column": "class", "id_column": "row"}


@pytest.fixture(scope="module")
def own(model, tmp_path_factory) -> dict[str, Trained]:
  """The same data in three formats; equal records and labels make an equal run."""
  trained = {}
  for ending in ("tsv", "csv", "jsonl"):
    data, out = tmp_path_factory.mktemp(ending), tmp_path_factory.mktemp("out") / ending
    write_own(data, ending)
    values = {**model, **OWN_COLUMNS, "task_name": "csv", "data_dir": data, "output_dir": out}
    with pytest.MonkeyPatch.context() as patch:
      patch.setattr(estimator, "Estimator", FakeEstimator)
      done = run_well(**values, do_train=True, do_predict=True)
    trained[ending] = Trained(values, out, done)
  return trained


def test_three_formats_of_the_same_data_give_the_same_run(own):
  for ending, trained in own.items():
    for name in ("train.tf_record", "predict.tf_record", "label_map.json", "predictions.tsv"):
      expected = (own["tsv"].out / name).read_bytes()
      assert (trained.out / name).read_bytes() == expected, (ending, name)
  assert json.loads((own["tsv"].out / "label_map.json").read_text()) == {"no": 0, "yes": 1}
  header, *rows = table(own["tsv"].out / "predictions.tsv")
  assert header == ["id", "label", "probability_no", "probability_yes", "text_a"]
  assert [row[0] for row in rows] == [f"r{i}" for i in range(6)]


def test_labels_of_the_trained_model_are_used_without_its_training_file(own, model, tmp_path):
  """Later, data with other labels or none are predicted by names, from either folder."""
  lines = [json.dumps({"text": a, "row": f"a\tb\n{i}"}) for i, (_, a, _) in enumerate(texts(3))]
  write(tmp_path / "later", "test.jsonl", *lines)
  values = {**own["jsonl"].copied_to(tmp_path), "data_dir": tmp_path / "later"}
  run_well(**values, do_predict=True)
  header, *rows = table(tmp_path / "out" / "predictions.tsv")
  assert header == ["id", "label", "probability_no", "probability_yes", "text_a"]
  assert [row[0] for row in rows] == ["a b 0", "a b 1", "a b 2"], "one line for each example"

  fresh = {**values, "init_checkpoint": tmp_path / "out", "output_dir": tmp_path / "fresh"}
  run_well(**fresh, do_predict=True)
  for name in ("predictions.tsv", "label_map.json"):
    assert (tmp_path / "fresh" / name).read_bytes() == (tmp_path / "out" / name).read_bytes()


def test_one_table_is_divided_learned_and_asked(model, tmp_path):
  """The split serves every later run; `predict.py` answers a table as `--do_predict` did."""
  path, out = tmp_path / "reviews.csv", tmp_path / "out"
  rows = [(f"r{i}", f"the film was {i}", ("no", "yes")[i % 2]) for i in range(40)]
  with open(path, "w", newline="", encoding="utf-8") as file:
    csv.writer(file).writerows([("id", "review", "class"), *rows])
  values = {**model, "task_name": "csv", "data_dir": path, "output_dir": out}
  values |= {"text_a_column": "review", "label_column": "class", "num_train_epochs": 1.0}
  run_well(**values, do_train=True, do_eval=True, do_predict=True)
  assert json.loads((out / "flags.json").read_text())["data_dir"] == str(out / "split")
  assert [len(records(out / f"{name}.tf_record")) for name in ("train", "eval", "predict")] == [
    *(32, 4, 4)
  ]
  results = (out / "eval_results.txt").read_bytes()
  (out / "eval_results.txt").unlink()
  done = run_well(**{**values, "seed": 7}, do_eval=True)
  assert f"{path} was divided by an earlier run: reading {out}/split" in done.err
  assert (out / "eval_results.txt").read_bytes() == results

  code, _, err = run_filter(
    predict,
    init_checkpoint=out,
    input_file=out / "split/test.csv",
    output_file=tmp_path / "answered.csv",
  )
  assert code is None, err
  header, *expected = table(out / "predictions.tsv")
  with open(tmp_path / "answered.csv", newline="", encoding="utf-8") as file:
    found = list(csv.DictReader(file))
  assert list(found[0])[:4] == ["id", "review", "class", "prediction"]
  assert [(row["id"], row["prediction"]) for row in found] == [tuple(row[:2]) for row in expected]
  for row, wanted in zip(found, expected, strict=True):
    for name, value in zip(header[2:4], wanted[2:4], strict=True):
      assert float(row[name]) == pytest.approx(float(value), abs=1e-6)


def test_faults_of_all_files_are_told_at_once(own, tmp_path):
  shutil.copytree(own["csv"].flags["data_dir"], tmp_path / "data")
  for name, row in (("train", "x,,r"), ("dev", "x,maybe,r")):
    with open(tmp_path / f"data/{name}.csv", "a") as file:
      file.write(f"{row}\n")
  values = {**own["csv"].flags, "data_dir": tmp_path / "data", "output_dir": tmp_path / "new"}
  message = error_of(**values, do_train=True, do_eval=True)
  assert "train.csv, line" in message
  assert "the label is empty" in message
  assert "dev.csv, line" in message
  assert "the label 'maybe' is unknown" in message


def test_data_of_another_task_than_the_models_are_named_as_such(own, tmp_path):
  write_own(tmp_path / "other", "csv", lambda size: own_rows(size, lambda good: "sport"))
  values = {**own["csv"].copied_to(tmp_path), "data_dir": tmp_path / "other"}
  for more in ({}, {"init_checkpoint": tmp_path / "out", "output_dir": tmp_path / "fresh"}):
    message = error_of(**{**values, **more}, do_eval=True)
    assert "the label 'sport' is unknown; known labels: 'no', 'yes'. The model in " in message
    assert f"{tmp_path}/out has learned these. If the data are of another task, give" in message


@pytest.mark.ci
def test_several_labels_for_a_text(model, tmp_path):
  def rows_of(size):
    return own_rows(size, lambda good: "short" if good else "short; long")

  write_own(tmp_path / "data", "csv", rows_of)
  out = tmp_path / "out"
  values = {**model, **OWN_COLUMNS, "task_name": "csv", "data_dir": tmp_path / "data"}
  values.update(problem_type="multi_label", label_separator=";", output_dir=out)
  run_well(**values, num_train_epochs=8.0, do_train=True, do_eval=True, do_predict=True)
  assert json.loads((out / "label_map.json").read_text()) == {"long": 0, "short": 1}
  assert records(out / "train.tf_record")[0]["label_ids"] == ("int64_list", [1, 1])
  assert records(out / "train.tf_record")[1]["label_ids"] == ("int64_list", [0, 1])
  results = results_in(out / "eval_results.txt")
  assert list(results) == [
    *("eval_accuracy", "eval_loss", "global_step", "loss"),
    *("eval_f1_macro", "eval_f1_micro"),
  ]
  assert results["eval_accuracy"] == 1.0
  rows = table(out / "predictions.tsv")[1:]
  assert [row[1] for row in rows] == ["long;short", "short"] * 3


@pytest.mark.usefixtures("fake_estimator")
def test_numbers_as_labels(model, tmp_path):
  write_own(tmp_path / "data", "jsonl", lambda size: own_rows(size, lambda good: 3.5 * good))
  values = {**model, **OWN_COLUMNS, "task_name": "csv", "data_dir": tmp_path / "data"}
  values.update(problem_type="regression", output_dir=tmp_path / "out")
  done = run_well(**values, do_train=True, do_eval=True, labels="no,yes", label_separator=";")
  for name in ("labels", "label_separator"):
    assert f"Flag --{name} has no effect: " in done.err
  assert "10 of 10 examples of dev are in the training set, too" in done.err
  keys = list(results_in(tmp_path / "out" / "eval_results.txt"))
  assert keys[3:] == ["eval_mse", "eval_pearson", "eval_spearman"]
  assert records(tmp_path / "out" / "train.tf_record")[1]["label_ids"] == ("float_list", [3.5])


class MyProcessor(DataProcessor):
  """Written as the original's README told people to; nothing here is of today."""

  def get_train_examples(self, data_dir):
    return self._create_examples(self._read_tsv(os.path.join(data_dir, "train.tsv")), "train")

  def get_dev_examples(self, data_dir):
    return self._create_examples(self._read_tsv(os.path.join(data_dir, "dev.tsv")), "dev")

  def get_test_examples(self, data_dir):
    return self._create_examples(self._read_tsv(os.path.join(data_dir, "test.tsv")), "test")

  def get_labels(self):
    return ["bad", "fair", "good"]

  def _create_examples(self, lines, set_type):
    examples = []
    for i, line in enumerate(lines):
      if i == 0:
        continue
      guid = "%s-%s" % (set_type, i)  # noqa: UP031
      text_a = tokenization.convert_to_unicode(line[1])
      if set_type == "test":
        label = "bad"
      else:
        label = tokenization.convert_to_unicode(line[0])
      examples.append(InputExample(guid=guid, text_a=text_a, text_b=None, label=label))
    return examples


@pytest.mark.usefixtures("fake_estimator")
def test_a_processor_of_2018_works_unchanged(model, tmp_path, monkeypatch):
  from bert.run_classifier import PROCESSORS

  monkeypatch.setitem(PROCESSORS, "mine", MyProcessor)
  for split, size in SIZES.items():
    rows = [(("bad", "good")[label], a) for label, a, _ in texts(size)]
    write_rows(tmp_path / "data", f"{split}.tsv", ("label", "text"), *rows)
  values = {**model, "task_name": "Mine", "data_dir": tmp_path / "data"}
  out = tmp_path / "out"
  run_well(**values, output_dir=out, do_train=True, do_eval=True, do_predict=True)
  assert list(results_in(out / "eval_results.txt"))[:4] == [
    *("eval_accuracy", "eval_loss", "global_step", "loss")
  ]
  header, *rows = table(out / "predictions.tsv")
  assert header[2:] == ["probability_bad", "probability_fair", "probability_good", "text_a"]
  assert rows[0][0] == "test-1"

  write_rows(tmp_path / "data", "dev.tsv", ("label", "text"), ("excellent", "the film"))
  message = error_of(**values, output_dir=tmp_path / "other", do_eval=True)
  assert "example dev-1: the label 'excellent' is unknown; known labels: 'bad', 'fair'" in message
