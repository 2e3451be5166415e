"""huggingface/transformers 4: its TensorFlow example scripts, beside transformers 4.57 itself.

Each script is copied twice, and nothing but its import lines is changed: one copy imports
`bert.transformers`, the other transformers 4.57. Both train the same small model without dropout on
the same data, made here of the samples and of templates, in one batch, so that the order makes no
difference; which tokens are masked stays a matter of chance. What the scripts write is compared.

They need `datasets`, `evaluate` and `seqeval`; name the folders in which these and transformers
4.57 are installed as TRANSFORMERS4_PATH. Without them everything is skipped. The metrics are those
of the clone of evaluate.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator
from typing import Any, NamedTuple

from conformance.cases import FAILED, PASSED, SKIPPED, Case, Context

FOLDERS = ("transformers", "evaluate")
ROOT = pathlib.Path(__file__).resolve().parent.parent
SAMPLES = ROOT / "samples"
METRICS = ("glue", "squad", "seqeval")


class Script(NamedTuple):
  """What a script is run with, and how near its numbers are to be."""

  path: str
  model_class: str
  flags: str
  tolerance: float = 1e-3


_FILES = "--train_file {0} --validation_file {1}"
SCRIPTS = (
  Script(
    "text-classification/run_glue.py",
    "TFBertForSequenceClassification",
    "--task_name mrpc --max_seq_length 64 --do_predict",
  ),
  Script(
    "text-classification/run_text_classification.py",
    "TFBertForSequenceClassification",
    _FILES.format("train.json", "dev.json") + " --test_file test.json --do_predict",
  ),
  Script(
    "question-answering/run_qa.py",
    "TFBertForQuestionAnswering",
    # No --do_predict: after --do_eval it fails in the script itself, whatever is imported.
    _FILES.format("questions.json", "long_questions.json") + " --max_seq_length 64 --doc_stride 16",
  ),
  Script(
    "token-classification/run_ner.py",
    "TFBertForTokenClassification",
    _FILES.format("names.json", "more_names.json"),
  ),
  Script(
    "multiple-choice/run_swag.py",
    "TFBertForMultipleChoice",
    _FILES.format("endings.json", "more_endings.json") + " --max_seq_length 32",
  ),
  Script(
    "language-modeling/run_mlm.py",
    "TFBertForMaskedLM",
    _FILES.format("lines.txt", "lines.txt") + " --line_by_line --max_seq_length 48",
    tolerance=0.3,
  ),
)
COMMON = (
  "--output_dir result --do_train --do_eval --per_device_train_batch_size 48 --seed 7 "
  "--per_device_eval_batch_size 20 --num_train_epochs 20 --learning_rate 1e-3 "
  "--weight_decay 0.01 --warmup_ratio 0.1"
)
ROWS = 48
_IMPORTS = (
  (r"^import (\w*[tT]ransformers)$", r"import {0} as \1"),
  (r"^from \w*[tT]ransformers\b", "from {0}"),
)
# 4.57 no longer has a function that the scripts of some months before call; and see `mend_reading`.
_THEIRS = f"""
import runpy, sys, transformers.utils as utils
sys.path.insert(1, {str(ROOT)!r})
from conformance import transformers_classes
transformers_classes.mend_reading()
utils.send_example_telemetry = lambda *arguments, **options: None
sys.argv = sys.argv[1:]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
_KERAS = (r"^(\s*)import tf_keras as keras$", r"\1import keras")
_CARD = """---
configs:
- config_name: mrpc
  data_files:
  - {split: train, path: train.jsonl}
  - {split: validation, path: dev.jsonl}
  - {split: test, path: test.jsonl}
dataset_info:
- config_name: mrpc
  features:
  - {name: sentence1, dtype: string}
  - {name: sentence2, dtype: string}
  - {name: label, dtype: {class_label: {names: {'0': not_equivalent, '1': equivalent}}}}
  - {name: idx, dtype: int32}
---
"""


def cases(context: Context) -> Iterator[Case]:
  """Each script: whether it runs to its end, and whether it finds what transformers' run finds."""
  paths = os.environ.get("TRANSFORMERS4_PATH", "")
  if not paths:
    yield Case("all", SKIPPED, "TRANSFORMERS4_PATH does not say where transformers 4 is")
    return
  for script in SCRIPTS:
    name = pathlib.Path(script.path).stem
    folder = context.scratch / "transformers_examples" / name
    prepare(context, script, folder)
    theirs = run(script, folder / "theirs", "transformers", paths)
    # This environment's transformers 5 before transformers 4.
    of_ours = os.pathsep.join([str(ROOT), sysconfig.get_path("purelib"), paths])
    ours = run(script, folder / "ours", "bert.transformers", of_ours)
    for package, done in (("transformers", theirs), ("bert.transformers", ours)):
      outcome = FAILED if done.returncode else PASSED
      reason = "ends with an error" if done.returncode else ""
      yield Case(f"{name} with {package}", outcome, reason, done.stderr[-2000:])
    yield from compared(name, script.tolerance, folder)


def prepare(context: Context, script: Script, folder: pathlib.Path) -> None:
  """Writes the model, the data and the metrics into the folders `theirs` and `ours`."""
  clone = context.folder("transformers") / "examples" / "tensorflow"
  make_data(folder / "theirs")
  (folder / "theirs" / "result").mkdir()  # run_glue.py does not make it
  make_model(script.model_class, folder / "theirs" / "model")
  for metric in METRICS:
    shutil.copytree(context.folder("evaluate") / "metrics" / metric, folder / "theirs" / metric)
  for path in (clone / script.path).parent.glob("*.py"):
    shutil.copy(path, folder / "theirs")
  shutil.copytree(folder / "theirs", folder / "ours")


def make_model(model_class: str, folder: pathlib.Path) -> None:
  """Writes a model with random weights, those of the head among them, and its tokenizer."""
  import bert.transformers as room

  room.set_seed(3)
  content = json.loads((SAMPLES / "bert_config.json").read_text("utf-8"))
  content |= {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
  labels = {"num_labels": 5} if "Token" in model_class else {}
  getattr(room, model_class)(room.BertConfig(**content, **labels)).save_pretrained(folder)
  room.BertTokenizerFast(str(SAMPLES / "vocab.txt")).save_pretrained(folder)


def make_data(folder: pathlib.Path) -> None:
  """Writes the files that the flags name, and a folder in the place of the Hub's GLUE."""
  glue = folder / "nyu-mll" / "glue"
  glue.mkdir(parents=True)
  (glue / "README.md").write_text(_CARD, encoding="utf-8")
  for split, count in (("train", ROWS), ("dev", 50), ("test", 30)):
    pairs = list(_pairs(split, count))
    _write_lines(glue / f"{split}.jsonl", [{**row, "idx": i} for i, row in enumerate(pairs)])
    _write_lines(folder / f"{split}.json", pairs)
  for name, lines in (("questions", 0), ("long_questions", 2)):
    data = {"data": [_question(i, lines * (i // 16)) for i in range(ROWS)]}
    (folder / f"{name}.json").write_text(json.dumps(data), encoding="utf-8")
  _write_lines(folder / "names.json", [_sentence_with_names(i) for i in range(ROWS)])
  _write_lines(folder / "more_names.json", [_sentence_with_names(i + 5) for i in range(50)])
  _write_lines(folder / "endings.json", [_endings(i) for i in range(ROWS)])
  _write_lines(folder / "more_endings.json", [_endings(i + 5) for i in range(50)])
  lines = (SAMPLES / "sample_text.txt").read_text("utf-8").splitlines()
  (folder / "lines.txt").write_text("\n".join([x for x in lines if x.strip()][:ROWS]) + "\n")


def _write_lines(path: pathlib.Path, rows: list[dict[str, Any]]) -> None:
  path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def _pairs(split: str, count: int) -> Iterator[dict[str, Any]]:
  rows = (SAMPLES / "MRPC" / f"{split}.tsv").read_text("utf-8-sig").splitlines()
  for row in rows[1 : count + 1]:
    first, second = row.split("\t")[-2:]
    label = int(first.startswith(("In ", "On ", "The ")))  # learned in a few steps
    yield {"sentence1": first, "sentence2": second, "label": label}


_PEOPLE = ("Anna Berg", "Omar", "Li Wei", "Jean Luc Roy")
_PLACES = ("Oslo", "Lima", "New Delhi", "Cairo")


def _question(number: int, lines: int) -> dict[str, Any]:
  """A row of SQuAD, whose context has further lines before the answer."""
  person, place = _PEOPLE[number % 4], _PLACES[number // 4 % 4]
  context = "The mayor spoke of the harbour and of the market. " * lines
  context += f"{person} lives in {place}, not in Nairobi."
  answers = {"text": [place], "answer_start": [context.index(place)]}
  question = f"Where does {person} live?"
  return {"id": str(number), "title": "", "context": context, "question": question} | {
    "answers": answers
  }


def _sentence_with_names(number: int) -> dict[str, Any]:
  tokens, tags = [], []
  for text, kind in (
    (_PEOPLE[number % 4], "PER"),
    ("left", ""),
    (_PLACES[number // 4 % 4], "LOC"),
    ("because " * (number // 20) + "it rained .", ""),
  ):
    for i, word in enumerate(text.split()):
      tokens.append(word)
      tags.append(f"{'I' if i else 'B'}-{kind}" if kind else "O")
  return {"tokens": tokens, "ner_tags": tags}


def _endings(number: int) -> dict[str, Any]:
  person, place = _PEOPLE[number % 4], _PLACES[number // 4 % 4]
  row = {"sent1": f"{person} lives in {place}.", "sent2": f"{person} often walks in"}
  return {**row, **{f"ending{i}": f"{_PLACES[i]}." for i in range(4)}, "label": number // 4 % 4}


def with_imports(text: str, package: str) -> str:
  """Changes the import lines of a script to those of a package."""
  for pattern, line in _IMPORTS:
    text = re.sub(pattern, line.format(package), text, flags=re.MULTILINE)
  return text if package == "transformers" else re.sub(*_KERAS, text, flags=re.MULTILINE)


def run(script: Script, folder: pathlib.Path, package: str, paths: str):
  """Changes the import lines of a copy, and runs it in its folder; the finished process."""
  path = folder / pathlib.Path(script.path).name
  path.write_text(with_imports(path.read_text("utf-8"), package), encoding="utf-8")
  is_theirs = package == "transformers"
  environment = {**os.environ, "PYTHONPATH": paths, "TF_CPP_MIN_LOG_LEVEL": "3"}
  environment |= {"HF_HOME": str(folder / "cache"), "HF_HUB_OFFLINE": "1"}
  environment |= {"TF_USE_LEGACY_KERAS": "1"} if is_theirs else {}
  flags = f"--model_name_or_path model {COMMON} {script.flags}".split()
  done = subprocess.run(
    [sys.executable, *(("-c", _THEIRS) if is_theirs else ()), path.name, *flags],
    cwd=folder,
    env=environment,
    capture_output=True,
    text=True,
    timeout=1800,
  )
  (folder / "output.txt").write_text(done.stdout + done.stderr, encoding="utf-8")
  return done


def compared(name: str, tolerance: float, folder: pathlib.Path) -> Iterator[Case]:
  """The files that a script wrote here and there: JSON by its numbers, others as they are."""
  theirs = {path.name: path for path in (folder / "theirs" / "result").glob("*.*")}
  for file in sorted(theirs):
    if file.startswith(("config", "tf_model")):
      continue
    ours = folder / "ours" / "result" / file
    if not ours.exists():
      yield Case(f"{name}: {file}", FAILED, "not written")
      continue
    texts = [path.read_text("utf-8") for path in (theirs[file], ours)]
    if file.endswith(".json"):
      first, second = (dict(_numbers(json.loads(text))) for text in texts)
      both = first.keys() & second.keys()
      worst = max(abs(first[k] - second[k]) / max(1.0, abs(first[k])) for k in both)
      is_same = first.keys() == second.keys() and worst <= tolerance
    else:
      is_same, worst = texts[0] == texts[1], None
    outcome = PASSED if is_same else FAILED
    yield Case(f"{name}: {file}", outcome, "" if is_same else "differs", "\n".join(texts), worst)


def _numbers(value: Any, name: str = "") -> Iterator[tuple[str, float]]:
  """Lists the numbers of a JSON value by their places in it."""
  if isinstance(value, (dict, list)):
    pairs = value.items() if isinstance(value, dict) else enumerate(value)
    for key, inner in pairs:
      yield from _numbers(inner, f"{name}/{key}")
  elif isinstance(value, str):
    yield f"{name}={value}", 0.0
  else:
    yield name, float(value)
