"""A custom task is checked before it trains: each message names the method and what it returns.

Alone: python -m pytest tests/fine_tuning/own_task_checks_test.py (seconds)
"""

import json
import sys

import pytest
import tensorflow as tf

from bert import tokenization
from bert.fine_tuning import engine, own_task_checks
from bert.fine_tuning.task import DataSet, Task
from bert.model.configuration import BertConfig
from bert.model.task_head import Head
from bert.scripts.command_line import UsageError
from bert.scripts.run_settings import SplitSettings
from bert.tasks import kinds
from tests.kit import own_tasks
from tests.kit.script_runs import results_in


@pytest.fixture(scope="module")
def stars():
  with own_tasks.loaded("stars"):
    yield sys.modules["stars"]


@pytest.fixture(scope="module")
def model(tmp_path_factory):
  flags = own_tasks.write(tmp_path_factory.mktemp("data"), "stars")
  config = BertConfig.from_json_file(str(flags["bert_config_file"]))
  return config, tokenization.FullTokenizer(str(flags["vocab_file"]))


def error_of(stars, model, of_task=None, of_head=None) -> str:
  """What is said of the task of `stars.py` with other attributes."""
  head = type("OtherHead", (stars.StarsHead,), of_head or {})
  task_class = type("Other", (stars.Stars,), {"head_class": head, **(of_task or {})})
  task = task_class(SplitSettings(max_seq_length=16), *model)
  examples = [stars.Review(str(n), "it was good film", "", 5.0) for n in range(3)]
  own_task_checks.check_methods(task)
  own_task_checks.check_examples(task, DataSet("train", examples))
  return ""


def with_labels(labels):
  return lambda self, example: {**self.sequence(example.text_a), "label_ids": labels}


OF_TASK = {
  "an answer that is not predicted": (
    {"answer": "points"},
    "Other.answer is 'points', which is not among what the head predicts: stars.",
  ),
  "a label for each of two": (
    {"encode": with_labels([1.0, 2.0])},
    "Other.encode gives label_ids as float64 of shape [2]; `record_spec` says float32 of shape [].",
  ),
  "a whole number": ({"encode": with_labels(5)}, "Other.encode gives label_ids as int64 of"),
  "words": ({"encode": with_labels("five")}, "Other.encode gives label_ids as <U4 of shape []"),
  "no label": (
    {"encode": lambda self, example: self.sequence(example.text_a)},
    "Other.encode returns no label_ids, which `record_spec` promises.",
  ),
  "a list as record": (
    {"records": lambda self, data, shown: [[1]], "encode": Task.encode},
    "Other.records returns a value of type list: return a dict",
  ),
  "a measure of one number": (
    {"metrics": lambda self, outputs, labels: 0.5},
    "`metrics` returns a value of type float: return a dict, name -> number.",
  ),
  "a headline that is not measured": (
    {"headline": "eval_accuracy"},
    "Other.headline is 'eval_accuracy', which is not among the scores of `metrics`: eval_close. "
    "Set",
  ),
  "an item that is a text": (
    {"view": lambda self, example: example.text_a},
    "return two values, a dict with text_a and text_b, and the gold label.",
  ),
  "an item of other names": (
    {"view": lambda self, example: ({"text": "a"}, None)},
    "Other.view names the texts text: a model reads text_a and text_b.",
  ),
}


@pytest.mark.parametrize("case", OF_TASK)
def test_a_task_that_does_not_fit_is_told(stars, model, case):
  changed, said = OF_TASK[case]
  with pytest.raises(UsageError) as error:
    error_of(stars, model, changed)
  assert said in str(error.value)


def fails(self, batch):
  raise ValueError("Dimensions must be equal")


OF_HEAD = {
  "outputs without names": (
    {"outputs": lambda self, batch: batch.bert().get_pooled_output()},
    "OtherHead.outputs returns a value of type",
  ),
  "outputs of the whole batch": (
    {"outputs": lambda self, batch: {"stars": tf.zeros([]) + 1}},
    "OtherHead.outputs gives stars the shape [] for 2 examples: its first axis is B.",
  ),
  "outputs of no token": ({"per_token": True}, "with `per_token` it is [B, S, ...]."),
  "outputs that fail": (
    {"outputs": fails},
    "stars.py: OtherHead.outputs fails for the first examples: ValueError: Dimensions must be eq",
  ),
  "one loss": (
    {"loss": lambda self, batch, outputs: tf.reduce_mean(outputs["stars"])},
    "OtherHead.loss returns a value of type",
  ),
  "losses in the place of the loss": (
    {"loss": lambda self, batch, outputs: (outputs["stars"], outputs["stars"])},
    "OtherHead.loss returns a loss of shape [2]: the first of both is one number, [].",
  ),
  "two means": (
    {"loss": lambda self, batch, outputs: (tf.reduce_mean(outputs["stars"]),) * 2},
    "OtherHead.loss gives the losses of examples the shape [] for 2 examples",
  ),
}


@pytest.mark.parametrize("case", OF_HEAD)
def test_a_head_that_does_not_fit_is_told(stars, model, case):
  changed, said = OF_HEAD[case]
  with pytest.raises(UsageError) as error:
    error_of(stars, model, of_head=changed)
  assert said in str(error.value)


def test_what_fits_passes_and_a_missing_item_is_a_warning(stars, model, caplog):
  assert error_of(stars, model) == ""
  assert not caplog.messages

  def view(self, example):
    return {"text_a": example.no_such_text}, None

  error_of(stars, model, {"view": view})
  [said] = caplog.messages
  assert "Write the method `view` of Other: it returns a dict with text_a and text_b" in said


def test_measures_that_fail_for_zeros_are_left_alone(stars, model):
  def measure(self, outputs, labels):
    raise ValueError("only one class")

  assert error_of(stars, model, {"metrics": measure}) == ""


@pytest.mark.parametrize(
  ("missing", "said"),
  [
    ({"read": Task.read}, "Other lacks the method `read`."),
    ({"encode": Task.encode}, "Other lacks the method `encode`."),
    ({"metrics": Task.metrics}, "Other lacks the method `metrics`."),
    ({"head_class": Head}, "head_class is not a subclass of fine_tuning.Head."),
  ],
)
def test_a_missing_method_is_named(stars, model, missing, said):
  with pytest.raises(UsageError) as error:
    error_of(stars, model, missing)
  assert said in str(error.value)
  with pytest.raises(UsageError, match="OtherHead lacks the method `loss`"):
    error_of(stars, model, of_head={"loss": Head.loss})


@pytest.mark.parametrize("method", ["record", "measure", "texts", "item", "score_answers"])
def test_a_method_of_an_earlier_version_names_what_takes_its_place(stars, method):
  older = type("Older", (stars.Stars,), {method: lambda self, *_: None})
  with pytest.raises(ValueError, match=f"Older.{method} is of an earlier version: write `"):
    engine.register(older)


def test_a_run_says_so_before_it_writes_records(stars, tmp_path, monkeypatch):
  monkeypatch.setattr(stars.Stars, "answer", "points")
  flags = own_tasks.write(tmp_path, "stars") | {"output_dir": tmp_path / "out", "do_train": True}
  said = own_tasks.script("stars").error_of(**flags)
  assert "Stars.answer is 'points', which is not among what the head predicts: stars." in said
  assert not list(tmp_path.glob("out/*.tf_record"))


@pytest.mark.ci
def test_two_heads_learn_and_answer(tmp_path):
  assert len(own_tasks.MORE["two_heads"].read_text().splitlines()) <= 80
  with own_tasks.loaded("two_heads"):
    flags = own_tasks.write(tmp_path, "two_heads") | {"output_dir": tmp_path / "out"}
    jobs = {"do_train": True, "do_eval": True, "do_predict": True}
    assert kinds.find("class_and_score").file
    own_tasks.script("class_and_score").run_well(**flags, **jobs)
  results = results_in(tmp_path / "out" / "eval_results.txt")
  assert results["eval_accuracy"] == 1
  assert results["eval_mae"] < 0.5
  rows = [json.loads(line) for line in (tmp_path / "out" / "predictions.jsonl").open()]
  assert [row["label"] for row in rows] == ["bad", "good"] * 6
  assert [row["id"] for row in rows] == [str(n) for n in range(12)]
  assert all(abs(row["score"] - (4.5 if n % 2 else 1)) < 1 for n, row in enumerate(rows))
