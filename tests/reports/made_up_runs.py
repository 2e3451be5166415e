"""Runs for reports, made up: their results, curves, examples and answers."""

import dataclasses
import pathlib
from unittest import mock

import numpy as np

from bert.checks import findings
from bert.figures.event_files import Run
from bert.reports import words
from bert.reports.runs import Entry, Runs
from bert.reports.subject import Examples, Subject
from bert.scripts import report_pages, run_subject
from bert.scripts.run_subject import Chosen
from bert.sweeps import glue, results
from bert.tasks import choice_decoder, shown, span_decoder, tag_decoder

NASTY = "<script>alert(1)</script> \"quoted\" 'so' & שלום עולם 🙂 {{ 7 * 7 }} </script><!--"

ITEMS = [
  {"text_a": "it was good", "text_b": "it was very good"},
  {"text_a": "it was bad", "text_b": ""},
  {"text_a": "it was fine", "text_b": "it was so so"},
  {"text_a": "it was long " * 20, "text_b": "it was short"},
]


def answered(how: shown.Shown, items, expected, answers, **changed) -> Examples:
  """Examples with made-up answers."""
  cases = [how.case(*three) for three in zip(items, expected, answers, strict=True)]
  lengths = [len(" ".join(map(str, item.values())).split()) for item in items]
  unknown = [0.5 * (n % 2) for n in range(len(items))]
  numbers = list(range(1, len(items) + 1))
  made = Examples(how, expected, cases, numbers, lengths, unknown, len(items))
  return dataclasses.replace(made, **changed)


def of_classes() -> Examples:
  """Three of four are right."""
  shares = np.array([[0.05, 0.95], [0.75, 0.25], [0.15, 0.85], [0.999, 0.001]], np.float32)
  answers = [{"probabilities": each} for each in shares]
  row = [words.Word("[CLS]", 3.0, True), words.Word("so", -0.5), words.Word(NASTY, 1.25)]
  return answered(
    shown.Classes(["no", "yes"]),
    ITEMS,
    ["yes", "no", "yes", "yes"],
    answers,
    contributions={3: words.Contribution("“yes”", [row])},
  )


def of_labels() -> Examples:
  """Several labels for each."""
  shares = np.array([[0.9, 0.6, 0.1], [0.2, 0.1, 0.3], [0.9, 0.9, 0.2], [0.4, 0.8, 0.7]])
  answers = [{"probabilities": each, "labels": each >= 0.5} for each in shares]
  expected = [("good",), (), ("good", "long"), ("long", "odd")]
  return answered(shown.ManyLabels(["good", "long", "odd"]), ITEMS, expected, answers)


def of_numbers() -> Examples:
  """Scores."""
  answers = [{"score": each} for each in (4.5, 1.0, 2.5, 3.0)]
  return answered(shown.Numbers("score"), ITEMS, ["5.0", "1.0", "3.0", "0.0"], answers)


def of_entities() -> Examples:
  """One sentence is right, one has a wrong type and a missing entity."""
  texts = ["ada met bob in rome", "no names here"]
  tags = [["B-PER", "O", "B-LOC", "O", "O"], ["O", "O", "O"]]
  right = [["B-PER", "O", "B-PER", "O", "B-LOC"], ["O", "O", "O"]]
  answers = []
  for text, each in zip(texts, tags, strict=True):
    words = text.split()
    starts = np.cumsum([0, *(len(word) + 1 for word in words)])[:-1]
    ends = starts + [len(word) for word in words]
    sure = np.full(len(words), 0.9)
    answers.append({"tags": each, "starts": starts, "ends": ends, "probabilities": sure})
  return answered(tag_decoder.Tags(), [{"text": text} for text in texts], right, answers)


def of_questions() -> Examples:
  """One answer is right, one is half right, one question has none."""
  context = "Ada Lovelace was born in London in 1815."
  items = [
    {"question": question, "context": context}
    for question in ("Who was born?", "Where was she born?", "When did she die?")
  ]
  answers = [
    {"answer": "Ada Lovelace", "start": 0, "end": 12, "probability": 0.9},
    {"answer": "London in 1815", "start": 25, "end": 39, "probability": 0.6},
    {"answer": "", "start": -1, "end": -1, "probability": 0.7},
  ]
  return answered(span_decoder.Spans(), items, [["Ada Lovelace"], ["London"], []], answers)


def of_choices() -> Examples:
  """Two questions with three choices."""
  items = [{"context": f"It rains {n}", "choices": ["a", "b", "c"]} for n in range(2)]
  answers = [{"probabilities": np.array([0.2, 0.7, 0.1])}, {"probabilities": np.array([1, 0, 0])}]
  return answered(choice_decoder.Choices(), items, [1, 2], answers)


def of_values() -> Examples:
  """A task of one's own that says nothing."""
  answers = [{"depth": 0.25, "words": ["a", "b"]} for _ in ITEMS]
  return answered(shown.Shown(), ITEMS, [None] * 4, answers)


KINDS = {
  "classes": of_classes,
  "labels": of_labels,
  "numbers": of_numbers,
  "entities": of_entities,
  "questions": of_questions,
  "choices": of_choices,
  "values": of_values,
}


def of_kind(name: str) -> Subject:
  """A run of a key of `KINDS`; curves, which take most of the time, are in that of classes."""
  return subject(KINDS[name](), **({} if name == "classes" else {"curves": None}))


def two_of_kind(name: str) -> tuple[Subject, Subject]:
  """Two runs of a key of `KINDS`; the second has other answers to all examples but the last."""
  first = of_kind(name)
  others = [_other(case) for case in first.examples.cases[:-1]]
  examples = dataclasses.replace(first.examples, cases=[*others, first.examples.cases[-1]])
  changed = {"results": {"eval_accuracy": "0.8"}, "flags": {"task_name": "MRPC", "do_train": True}}
  curves = first.curves and dataclasses.replace(first.curves, folder="/tmp/mrpc_other")
  second = subject(examples, folder="/tmp/mrpc_other", curves=curves, **changed)
  return first, second


def _other(case: shown.Case) -> shown.Case:
  """Right instead of wrong, or the other way round."""
  is_right = None if case.is_right is None else not case.is_right
  loss = None if case.loss is None else case.loss + 0.5
  return dataclasses.replace(
    case, is_right=is_right, loss=loss, predicted=f"other than {case.predicted}"
  )


def subject(examples: Examples | None, **changed) -> Subject:
  """A run."""
  steps = range(10, 310, 10)
  training = {
    "loss": {step: 0.7 - 0.001 * step for step in steps},
    "learning_rate": {step: 5e-5 * (1 - step / 310) for step in steps},
  }
  evaluation = {"eval_accuracy": {100: 0.5, 200: 0.75}, "loss": {100: 0.6, 200: 0.5}}
  made = Subject(
    folder="/tmp/mrpc",
    task="MRPC",
    results={"eval_accuracy": "0.7794118", "eval_loss": "0.5626763", "global_step": "343"},
    headline="eval_accuracy",
    command="python run_classifier.py \\\n  --task_name=MRPC",
    flags={"task_name": "MRPC", "do_train": True, "labels": None, "seeds": [1, 2]},
    versions={"python": "3.12.0"},
    facts={"took": "11 min"},
    curves=Run("/tmp/mrpc", training, evaluation),
    findings=[
      findings.warning("27% of the texts of train are cut.", "train.tsv", "Raise it."),
      findings.ok("3 examples for train.", "train.tsv"),
    ],
    examples=examples,
    usage={"Python": "Predictor.load('/tmp/mrpc')(['a'])"},
  )
  return dataclasses.replace(made, **changed)


def compared(*subjects: Subject) -> Runs:
  """What the page of these runs, compared, is about."""
  found = {each.folder: each for each in subjects}
  with mock.patch.object(run_subject, "subject_of", lambda folder, _: found[folder]):
    return report_pages._compared(list(found), "/tmp/page.html", Chosen())


# ---------------------------------------------------------------------------------------------
# Runs of a sweep.


def write_seeds(folder: pathlib.Path) -> pathlib.Path:
  """Writes a directory of two runs that are good, one that is not, and one that did not finish."""
  for seed in (1, 2, 3, 4):
    (folder / f"seed_{seed}").mkdir(parents=True)
  (folder / "seed_2" / "report.html").touch()
  why = "accuracy 0.6838 is not above 0.6838, the share of the most frequent label (1)"
  entries = [
    _of_seed(1, 0.78),
    _of_seed(2, 0.8, is_best=True),
    _of_seed(3, 0.6838, collapsed=why),
    Entry("seed 4", "seed_4", {}, failure="exit code 1: no space"),
  ]
  problems = ["seed 4 did not finish: exit code 1: no space"]
  results.write(Runs("MRPC", str(folder), entries, problems=problems), str(folder))
  return folder


def _of_seed(seed, accuracy, **more) -> Entry:
  scores = {"eval_accuracy": accuracy, "eval_f1": accuracy + 0.05}
  return Entry(f"seed {seed}", f"seed_{seed}", scores, seconds=90.0, **more)


def write_tasks(folder: pathlib.Path) -> pathlib.Path:
  """Writes RTE with two settings of two seeds, one of which failed, and MRPC without results."""
  entries = [
    _of_grid("RTE", 2e-5, 1, {"accuracy": 70.0}, seconds=60.0, is_best=True),
    _of_grid("RTE", 2e-5, 2, {"accuracy": 60.0}, seconds=66.0, collapsed="one answer"),
    _of_grid("RTE", 5e-5, 1, {"accuracy": 90.0}, seconds=54.0),
    _of_grid("RTE", 5e-5, 2, {}, failure="exit code 1: no <b>space</b>"),
    _of_grid("MRPC", 2e-5, 1, {}),
  ]
  averages = {"": 65.0, "With the best seed of each task": 70.0}
  problems = ["predicting AX: no weights"]
  results.write(Runs("GLUE", str(folder), entries, averages, problems), str(folder))
  return folder


def _of_grid(task, rate, seed, scores, **more) -> Entry:
  folder = f"{task}/{glue.folder_name(rate, 3, seed)}"
  setting = glue.setting_of(rate, 3)
  return Entry(f"{setting}, seed {seed}", folder, scores, task, setting, **more)
