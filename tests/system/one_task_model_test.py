"""A tagger, a reader and a chooser in folders of each kind: all readers give the same answers.

Alone: python -m pytest tests/system/one_task_model_test.py (half a minute)

`one_model_test.py` does this for sentences.
"""

import functools
import json
import os
import pathlib
import re
import shutil
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import pytest

from bert import export_hub, predict, run_ner, run_squad, run_swag
from bert.checkpoints import finding, reading, saving
from bert.checkpoints.transformers_heads import Head
from bert.predicting import servable
from bert.predicting.predictor import Predictor
from tests.kit import exports, other_forms, server_here, teachers, tiny_choices, tiny_entities
from tests.kit.script_runs import Script, json_in, json_lines, table, values_in

WORDS = ["the", "film", "was", "good", "bad", "ann", "##s", "built", "in", "?", ",", "."]
VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
TAGS = ["O", "B-PER", "B-LOC"]  # no tag continues an entity: each word is one by itself
LENGTH = 20  # so that each token of a question and its context is among the twenty best
FLAGS = {"max_seq_length": LENGTH}

TEXTS = ["Anns film was good .", "the bad ann , in the film", "was Ann good ?", "built in"]
QUESTIONS = [
  ("was it bad ?", "the film was good , the ann was bad ."),
  ("good ?", "Ann built the film in the bad film ."),
  ("in the film ?", "the good Anns was in , built in the film ."),
]
CHOICES = [
  ("the film was", ["good .", "bad , bad", "built in the film"]),
  ("ann", ["was in", "built the film ."]),
  ("the bad film", ["in the good Anns", "?", "was , was ."]),
]


class Task(NamedTuple):
  """What its folders, files and answers are."""

  facts: dict[str, Any]
  heads: dict[str, tuple[int, ...]]
  transformers: Head
  items: list
  names: tuple[str, ...]  # of the texts of an item
  script: Any
  write: Callable[[pathlib.Path], dict[str, Any]]  # writes the items; returns the script's flags
  written: Callable[[pathlib.Path], list]  # answers in the files of the script
  said: Callable[[dict], Any]  # the same of an answer
  compute: Callable[[np.ndarray, dict[str, np.ndarray], Any], tuple[Any, float]]


def write_tags(folder):
  rows = [[(word, TAGS[0]) for word in text.split()] for text in TEXTS]
  for split in ("dev", "test"):
    tiny_entities.write_conll(folder / f"{split}.conll", rows)
  return {"data_dir": folder, "labels": ",".join(TAGS)}


def write_questions(folder):
  qas = [{"id": str(n), "question": question} for n, (question, _) in enumerate(QUESTIONS)]
  rows = [{"context": text, "qas": [qa]} for (_, text), qa in zip(QUESTIONS, qas, strict=True)]
  (folder / "dev.json").write_text(json.dumps({"version": "x", "data": [{"paragraphs": rows}]}))
  return {"predict_file": folder / "dev.json", "max_query_length": 6}


def write_choices(folder):
  rows = [
    {"sent1": text, **{f"ending{n}": end for n, end in enumerate(ends)}, "label": 0}
    for text, ends in CHOICES
  ]
  for split in ("dev", "test"):
    tiny_choices.write_csv(folder / f"{split}.csv", rows)
  return {"data_dir": folder}


def compute_tags(vectors, tensors, text):
  """The labels of the first pieces of the words, and the mean of their probabilities."""
  shares = softmax(vectors[1:-1] @ tensors["output_weights"].T + tensors["output_bias"])
  pieces = [2 if word.lower() == "anns" else 1 for word in text.split()]
  shares = shares[np.cumsum([0, *pieces[:-1]])]
  return [TAGS[number] for number in shares.argmax(axis=1)], shares.max(axis=1).mean()


def compute_span(vectors, tensors, item):
  """The best span of the context, and its share among the twenty best."""
  context = item[1]
  places = [(found.start(), found.end()) for found in re.finditer(r"[Aa]nn|\S+", context)]
  logits = vectors @ tensors["cls/squad/output_weights"].T + tensors["cls/squad/output_bias"]
  offset = len(vectors) - 1 - len(places)  # of the context
  logits = logits[offset:-1]
  pairs = [(a, b) for b in range(len(places)) for a in range(b + 1)]
  spans = [(logits[a, 0] + logits[b, 1], a, b) for a, b in pairs]
  scores: dict[str, float] = {}  # of spans with one text the best counts
  for score, a, b in sorted(spans, reverse=True):
    scores.setdefault(context[places[a][0] : places[b][1]], score)
  best = list(scores.values())[:20]
  return next(iter(scores)), float(softmax(np.array(best))[0])


def compute_choice(vectors, tensors, item):
  """The choice, and its probability."""
  del item
  dense = "bert/pooler/dense/"
  pooled = np.tanh(
    np.stack([each[0] for each in vectors]) @ tensors[dense + "kernel"] + tensors[dense + "bias"]
  )
  shares = softmax(pooled @ tensors["output_weights"][0])
  return int(shares.argmax()), float(shares.max())


def softmax(values):
  exponents = np.exp(values - values.max(axis=-1, keepdims=True))
  return exponents / exponents.sum(axis=-1, keepdims=True)


def tags_written(folder):
  blocks = (folder / "predictions.conll").read_text().strip().split("\n\n")
  return [[line.split("\t")[-1] for line in block.splitlines()] for block in blocks]


TASKS = {
  "tags": Task(
    {"task_name": "ner", "labels": TAGS},
    {"output_weights": (3, 16), "output_bias": (3,)},
    Head("ForTokenClassification", TAGS),
    TEXTS,
    ("text",),
    run_ner,
    write_tags,
    tags_written,
    lambda answer: (list(answer["tags"]), np.mean(answer["probabilities"])),
    compute_tags,
  ),
  "spans": Task(
    {"task_name": "squad"},
    {"cls/squad/output_weights": (2, 16), "cls/squad/output_bias": (2,)},
    Head("ForQuestionAnswering"),
    QUESTIONS,
    ("question", "context"),
    run_squad,
    write_questions,
    lambda folder: list(json_in(folder / "predictions.json").values()),
    lambda answer: (answer["answer"], answer["probability"]),
    compute_span,
  ),
  "choices": Task(
    {"task_name": "swag"},
    {"output_weights": (1, 16)},
    Head("ForMultipleChoice"),
    CHOICES,
    ("context", "choices"),
    run_swag,
    write_choices,
    lambda folder: [int(row[1]) for row in table(folder / "predictions.tsv")[1:]],
    lambda answer: (answer["choice"], np.max(answer["probabilities"])),
    compute_choice,
  ),
}


class Folders(NamedTuple):
  """A task's folders by kind, and what their model answers."""

  task: Task
  by_kind: dict[str, pathlib.Path]
  flags: dict[str, Any]  # of its script
  answers: list  # of the items
  shares: list[float]  # their probabilities


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
  """`folders(name)` are those of a task of `TASKS`, with their data."""

  @functools.cache
  def make(name: str) -> Folders:
    root = tmp_path_factory.mktemp(name)
    (root / "data").mkdir()
    task = TASKS[name]
    return Folders(
      task, write_folders(root, task), task.write(root / "data"), *expected(root, task)
    )

  return make


def write_folders(root: pathlib.Path, task: Task) -> dict[str, pathlib.Path]:
  """Writes a folder of each kind. Of the run, the newest weights are others than the best."""
  kinds = ("run", "transformers", "transformers 5", "original", "converted", "converted back")
  found = {kind: root / kind for kind in (*kinds, "stripped", "onnx")}
  settings = {"max_seq_length": LENGTH, "doc_stride": 8, "max_query_length": 6}
  teachers.write(found["run"], VOCAB, task.facts, task.heads, settings, max_position_embeddings=32)
  prefix = finding.find_checkpoint(str(found["run"]))
  state = reading.read_state(prefix)
  tensors = weights(found["run"])
  worse = {name: -value for name, value in tensors.items()}
  saving.save(str(found["run"] / "best"), 1, {**tensors, "global_step": np.int64(1)}, state)
  saving.save(str(found["run"]), 2, {**worse, "global_step": np.int64(2)}, state)
  for kind in ("transformers", "original"):
    found[kind].mkdir()
  saving.save(str(found["original"]), 1, tensors, {})
  for file in ("bert_config.json", "vocab.txt"):
    shutil.copy(found["run"] / file, found["original"])
  if labels := task.facts.get("labels"):
    numbered = {label: number for number, label in enumerate(labels)}
    (found["original"] / "label_map.json").write_text(json.dumps(numbered))
  model = exports.Model(str(found["run"]), "")
  exports.write_transformers(model, found["transformers"], task.transformers)
  other_forms.write(found, stripped="run")
  flags = {"format": "onnx", "init_checkpoint": found["run"], "export_dir": found["onnx"]}
  Script(export_hub).run_well(**flags, **FLAGS)
  return found


def weights(folder: pathlib.Path) -> dict[str, np.ndarray]:
  prefix = finding.find_checkpoint(str(folder))
  names = [name for name in reading.names_and_shapes(prefix) if name != "global_step"]
  return dict(reading.read_tensors(prefix, names))


def expected(root: pathlib.Path, task: Task) -> tuple[list, list[float]]:
  """Computes the answers with NumPy from the vectors of the last layer."""
  prefix, tensors = str(root / "original" / "model.ckpt-1"), weights(root / "original")
  encode = Predictor.load(prefix, task="vectors", pooling="none", max_seq_length=LENGTH)
  answers, shares = [], []
  for item in task.items:
    rows = [(item[0], each) for each in item[1]] if task.names[-1] == "choices" else [item]
    vectors = encode(rows)
    vectors = vectors if task.names[-1] == "choices" else vectors[0]
    answer, share = task.compute(vectors, tensors, item)
    answers.append(answer)
    shares.append(share)
  assert len({str(each) for each in answers}) > 1
  return answers, shares


def assert_same(made: Folders, answers: list[dict]):
  said = [made.task.said(each) for each in answers]
  assert [answer for answer, _ in said] == made.answers
  np.testing.assert_allclose([share for _, share in said], made.shares, atol=2e-4)


def named(task: Task) -> list[dict[str, Any]]:
  items = [item if isinstance(item, tuple) else (item,) for item in task.items]
  return [dict(zip(task.names, item, strict=True)) for item in items]


KINDS = ["run", "transformers", "transformers 5", "stripped", "converted", "converted back", "onnx"]


def marked(kinds, in_ci):
  return [
    pytest.param(task, kind, marks=pytest.mark.ci if kind in in_ci else pytest.mark.slow)
    for task in TASKS
    for kind in kinds
  ]


@pytest.mark.parametrize(("name", "kind"), marked(KINDS, ["run", "onnx"]))
def test_predictor_script_and_server(folders, tmp_path, name, kind):
  made = folders(name)
  folder = made.by_kind[kind]
  items = named(made.task)
  assert_same(made, Predictor.load(folder, **FLAGS)(made.task.items))
  source, lines = tmp_path / "items.jsonl", tmp_path / "answers.jsonl"
  source.write_text("".join(json.dumps(item) + "\n" for item in items))
  files = {"input_file": source, "output_file": lines}
  Script(predict).run_well(**files, **FLAGS, init_checkpoint=folder)
  assert_same(made, json_lines(lines))
  with server_here.client({"it": folder}, **FLAGS) as client:
    found = client.post("/answer", json={"items": items})
    assert found.status_code == 200, found.text
    assert_same(made, found.json()["answers"])


@pytest.mark.parametrize(
  ("name", "kind"), marked([*KINDS[:-1], "original", "in its folder"], ["transformers 5"])
)
def test_task_script(folders, tmp_path, name, kind):
  made = folders(name)
  task, flags = made.task, {**FLAGS, **made.flags, "output_dir": tmp_path / "out"}
  if kind == "in its folder":
    shutil.copytree(made.by_kind["run"], tmp_path / "out")
  else:
    flags["init_checkpoint"] = made.by_kind[kind]
  Script(task.script).run_well(**flags, do_predict=True)
  assert task.written(tmp_path / "out") == made.answers
  processor = servable.find(os.fspath(made.by_kind["run"])).abilities["answers"].processor
  rows = [row for item in task.items for row in processor.featurize(item)]
  [records] = (tmp_path / "out").glob("*.tf_record")
  found = [value for record in values_in(records) for value in record["input_ids"] if value]
  assert found == [value for row in rows for value in row["input_ids"] if value]


@pytest.mark.ci
def test_labels_in_the_files(folders):
  made = folders("tags")
  for kind in ("transformers", "converted back", "onnx"):
    assert list(json_in(made.by_kind[kind] / "config.json")["id2label"].values()) == TAGS
