"""Answers of every fine-tuned task, from the folder of a run and from its export.

Alone: python -m pytest tests/predicting/load_run_test.py (-m "not ci": one task and no export)

Each script trains a step or two, predicts and exports, once; a `Predictor` of its folder, one of
its export and predict.py must answer as the script's own files of predictions.
"""

import contextlib
import csv
import functools
import io
import json
import pathlib
import random
import shutil
import sys
from typing import NamedTuple

import numpy as np
import pytest

from bert import export_hub, predict, run_classifier, run_ner, run_similarity, run_squad, run_swag
from bert.checkpoints import finding
from bert.predicting import load_run
from bert.predicting.predictor import Predictor
from bert.scripts import command_line, model_exports
from tests.kit import tiny_bert

WORDS = ["the", "film", "was", "good", "bad", "ann", "##s", "built", "in", "?", ",", "."]
VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
SIZES = {"num_hidden_layers": 2, "max_position_embeddings": 40, "type_vocab_size": 3}
CONFIG = tiny_bert.config(len(VOCAB), **SIZES, initializer_range=0.5)  # a mistake anywhere shows
SCRIPTS = {
  "classifier": run_classifier,
  "squad": run_squad,
  "ner": run_ner,
  "swag": run_swag,
  "similarity": run_similarity,
}


class Finished(NamedTuple):
  """A run that has trained and predicted, and the items of its predictions."""

  flags: dict
  out: pathlib.Path
  items: list
  vocab_file: pathlib.Path


def sentences(count, longest, seed) -> list[str]:
  rng = random.Random(seed)
  pieces = ["the", "film", "was", "Good", "bad", "Anns", "built", "in", "?", ",", ".", "éa"]
  return [" ".join(rng.choices(pieces, k=rng.randrange(1, longest))) for _ in range(count)]


@pytest.fixture(scope="module", autouse=True)
def no_exported_encoders(one_tokenizer):
  """Nobody asks for them."""
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(model_exports, "export_hub_models", lambda *args, **options: None)
    yield


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
  """`finished(task)` is the run of that script."""
  folder = tmp_path_factory.mktemp("model")
  (folder / "vocab.txt").write_text("\n".join(VOCAB) + "\n")
  (folder / "bert_config.json").write_text(json.dumps(CONFIG))

  @functools.cache
  def finish(task) -> Finished:
    data = tmp_path_factory.mktemp(task)
    items, flags = WRITE[task](data)
    flags |= {
      "vocab_file": folder / "vocab.txt",
      "bert_config_file": folder / "bert_config.json",
      "output_dir": data / "out",
      "train_batch_size": 8,
      "learning_rate": 0.01,
      "num_train_epochs": 1.0,
    }
    run(SCRIPTS[task], **flags, do_train=True, do_predict=True)
    return Finished(flags, data / "out", items, folder / "vocab.txt")

  return finish


@pytest.fixture(scope="module")
def exported(finished):
  """`exported(task)` is the same run after `--do_export`."""

  @functools.cache
  def export(task) -> Finished:
    done = finished(task)
    run(SCRIPTS[task], **done.flags, do_export=True)
    return done

  return export


def run(script, stdin=b"", **values) -> str:
  """Runs a script in this process; returns what it printed."""
  argv = [f"{script.__name__}.py", *(f"--{name}={value}" for name, value in values.items())]
  out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.StringIO()
  with pytest.MonkeyPatch.context() as patch, contextlib.redirect_stderr(err):
    patch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin), "utf-8"))
    patch.setattr(sys, "stdout", out)
    with pytest.raises(SystemExit) as left:
      command_line.run(script.main, script.define_flags, argv)
  assert left.value.code is None, err.getvalue()
  out.flush()
  return out.buffer.getvalue().decode()


# ---------------------------------------------------------------------------------------------
# Data of each task.


def write_classifier(folder):
  pairs = list(zip(sentences(9, 12, 1), sentences(9, 12, 2), strict=True))
  for split in ("train", "test"):
    with open(folder / f"{split}.tsv", "w", encoding="utf-8") as file:
      file.write("Quality\t#1 ID\t#2 ID\t#1 String\t#2 String\n")
      for i, (text_a, text_b) in enumerate(pairs):
        file.write(f"{i % 2}\t{i}\t{i}\t{text_a}\t{text_b}\n")
  return pairs, {"task_name": "MRPC", "data_dir": folder, "max_seq_length": 16}


def write_squad(folder):
  """Some paragraphs need several windows, some questions have no answer."""
  rng = random.Random(5)
  pairs = zip(sentences(9, 4, 3), sentences(9, 30, 4), strict=True)
  pairs = [(f"{q} ?", f"the {c}") for q, c in pairs]
  paragraphs = []
  for i, (question, context) in enumerate(pairs):
    start = context.index(rng.choice(context.split()))
    answers = [{"text": context[start:].split()[0], "answer_start": start}] if i % 3 else []
    qa = {"id": f"q{i}", "question": question, "answers": answers, "is_impossible": not answers}
    paragraphs.append({"context": context, "qas": [qa]})
  (folder / "squad.json").write_text(json.dumps({"data": [{"paragraphs": paragraphs}]}))
  flags = {"max_seq_length": 24, "doc_stride": 7, "max_query_length": 5}
  flags |= {"train_file": folder / "squad.json", "predict_file": folder / "squad.json"}
  return pairs, {**flags, "version_2_with_negative": True}


def write_ner(folder):
  texts = sentences(9, 30, 6)
  with open(folder / "train.conll", "w", encoding="utf-8") as file:
    for text in texts:
      rows = [f"{word}\t{'B-PER' if word == 'Anns' else 'O'}\n" for word in text.split()]
      file.write("".join(rows) + "\n")
  shutil.copy(folder / "train.conll", folder / "test.conll")
  return texts, {"data_dir": folder, "max_seq_length": 16, "doc_stride": 5}


def write_swag(folder):
  """Questions of two to four choices."""
  contexts, endings = sentences(9, 8, 7), iter(sentences(36, 8, 8))
  items = [(text, [next(endings) for _ in range(2 + i % 3)]) for i, text in enumerate(contexts)]
  for split in ("train", "test"):
    with open(folder / f"{split}.csv", "w", newline="", encoding="utf-8") as file:
      writer = csv.writer(file)
      writer.writerow(["sent1", "ending0", "ending1", "ending2", "ending3", "label"])
      for text, choices in items:
        writer.writerow([text, *choices, *[""] * (4 - len(choices)), 0])
  return items, {"data_dir": folder, "max_seq_length": 16}


def write_similarity(folder):
  """Some texts are longer than the sequences."""
  pairs = list(zip(sentences(9, 20, 9), sentences(9, 12, 10), strict=True))
  for split in ("train", "test"):
    with open(folder / f"{split}.csv", "w", newline="", encoding="utf-8") as file:
      rows = [(*pair, i / 8) for i, pair in enumerate(pairs)]
      csv.writer(file).writerows([("text_a", "text_b", "score"), *rows])
  return pairs, {"data_dir": folder, "max_seq_length": 16, "pooling": "max"}


WRITE = {
  "classifier": write_classifier,
  "squad": write_squad,
  "ner": write_ner,
  "swag": write_swag,
  "similarity": write_similarity,
}


# ---------------------------------------------------------------------------------------------
# What each run's own files say.


def assert_sentences(done: Finished, results):
  rows = (done.out / "test_results.tsv").read_text().splitlines()
  expected = np.array([[float(number) for number in row.split("\t")] for row in rows])
  np.testing.assert_allclose([r["probabilities"] for r in results], expected, atol=1e-5)
  assert [r["label"] for r in results] == [str(i) for i in expected.argmax(axis=1)]
  assert expected.std() > 0.01


def assert_spans(done: Finished, results):
  lines = (done.out / "predictions_detailed.jsonl").read_text(encoding="utf-8").splitlines()
  for (_, context), result, line in zip(done.items, results, lines, strict=True):
    expected = json.loads(line)
    assert result["answer"] == expected["text"]
    place = (expected["start"], expected["end"]) if expected["text"] else (-1, -1)
    assert (result["start"], result["end"]) == place
    if result["answer"]:
      assert " ".join(context[result["start"] : result["end"]].split()) == result["answer"]
    assert result["probability"] == pytest.approx(expected["probability"], abs=1e-4)
    assert result["null_odds"] == pytest.approx(expected["null_odds"], abs=1e-3)
  assert len({result["answer"] for result in results}) > 2


def assert_tags(done: Finished, results):
  blocks = (done.out / "predictions.conll").read_text(encoding="utf-8").strip().split("\n\n")
  for text, result, block in zip(done.items, results, blocks, strict=True):
    rows = [line.split("\t") for line in block.splitlines()]
    assert result["words"] == text.split() == [row[0] for row in rows]
    assert [
      text[a:b] for a, b in zip(result["starts"], result["ends"], strict=True)
    ] == text.split()
    assert [tag.replace("I-", "B-") for tag in result["tags"]] == [row[-1] for row in rows]
    assert all(0 < p <= 1 for p in result["probabilities"])
  lines = (done.out / "predictions.jsonl").read_text(encoding="utf-8").splitlines()
  for result, line in zip(results, lines, strict=True):
    places = [(e["text"], e["start"], e["type"]) for e in result["entities"]]
    assert places == [(e["text"], e["start"], e["type"]) for e in json.loads(line)["entities"]]


def assert_choices(done: Finished, results):
  lines = (done.out / "predictions.tsv").read_text(encoding="utf-8").splitlines()
  names = lines[0].split("\t")
  for (_, choices), result, line in zip(done.items, results, lines[1:], strict=True):
    row = dict(zip(names, line.split("\t"), strict=True))
    expected = [float(row[f"probability_{i}"]) for i in range(len(choices))]
    np.testing.assert_allclose(result["probabilities"], expected, atol=1e-5)
    assert result["choice"] == int(row["label"]) == int(np.argmax(expected))


def assert_similarities(done: Finished, results):
  rows = (done.out / "test_results.tsv").read_text().splitlines()
  expected = np.array(rows, np.float64)
  np.testing.assert_allclose([r["similarity"] for r in results], expected, rtol=0, atol=1e-5)
  assert expected.std() > 0.001


ASSERT = {
  "classifier": assert_sentences,
  "squad": assert_spans,
  "ner": assert_tags,
  "swag": assert_choices,
  "similarity": assert_similarities,
}


_IN_CI = [pytest.param(task, marks=pytest.mark.ci) for task in WRITE]


@pytest.mark.parametrize("task", _IN_CI)
def test_a_folder_answers_as_the_run_did_with_the_same_bits_in_any_company(finished, task):
  done = finished(task)
  answer = Predictor.load(
    str(done.out), vocab_file=str(done.vocab_file), batch_size=4, batch_invariant=True
  )
  together = answer(done.items)
  ASSERT[task](done, together)
  np.testing.assert_equal(together, [answer([item])[0] for item in done.items])


# The contract test compares each kind's export with its folder: one kind is enough here.
_ONE_IN_CI = [
  pytest.param(task, marks=pytest.mark.ci if task == "classifier" else pytest.mark.slow)
  for task in WRITE
]


@pytest.mark.ci
def test_lines_of_json_in_and_out(exported, tmp_path):
  task, names = "squad", ("question", "context")
  done = exported(task)
  lines = [json.dumps(dict(zip(names, item, strict=True))) for item in done.items]
  text = "\n".join(lines).encode()
  printed = run(predict, text, init_checkpoint=done.out, vocab_file=done.vocab_file)
  ASSERT[task](done, list(map(json.loads, printed.splitlines())))
  (tmp_path / "in.jsonl").write_bytes(text)
  run(
    predict,
    init_checkpoint=done.out / "export",
    input_file=tmp_path / "in.jsonl",
    output_file=tmp_path / "out.jsonl",
  )
  lines = (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()
  ASSERT[task](done, list(map(json.loads, lines)))


@pytest.mark.ci
def test_options_reach_the_model(finished):
  done = finished("squad")
  options = {"vocab_file": str(done.vocab_file), "null_score_diff_threshold": -1e9}
  results = Predictor.load(str(done.out), **options)(done.items)
  assert {(r["answer"], r["start"], r["end"]) for r in results} == {("", -1, -1)}
  with pytest.raises(ValueError, match=r"SpanDecoder has no option pooling. .*doc_stride"):
    Predictor.load(str(done.out), vocab_file=str(done.vocab_file), pooling="mean")
  with pytest.raises(ValueError, match="max_seq_length is 41, but must be from 3 to 40"):
    Predictor.load(str(done.out), vocab_file=str(done.vocab_file), max_seq_length=41)


@pytest.mark.ci
def test_the_best_checkpoint_answers_if_there_is_one(finished, tmp_path):
  done = finished("classifier")
  for folder in ("newest", "newest/best"):
    shutil.copytree(done.out, tmp_path / folder, ignore=shutil.ignore_patterns("export"))
  found = load_run.find_run(tmp_path / "newest", str(done.vocab_file))
  assert pathlib.Path(found.prefix).parent == tmp_path / "newest" / "best"
  assert (found.kind.name, found.facts["hidden_size"], found.settings["max_seq_length"]) == (
    "sentences",
    16,
    16,
  )


@pytest.mark.ci
def test_the_vocabulary_is_found_and_checked(exported, tmp_path):
  done = exported("ner")
  assert load_run.find_run(done.out).vocab_file == str(done.out / "vocab.txt")
  # Folders of earlier versions have it in their export only.
  old = shutil.copytree(done.out, tmp_path / "old")
  (old / "vocab.txt").unlink()
  assert load_run.find_run(old).vocab_file.startswith(str(old / "export"))
  shutil.copytree(old, tmp_path / "out", ignore=shutil.ignore_patterns("export"))
  with pytest.raises(ValueError, match=r"out has no vocab\.txt or spiece\.model"):
    load_run.find_run(tmp_path / "out")
  (tmp_path / "out" / "vocab.txt").write_text("\n".join([*VOCAB[:-2], ".", ","]) + "\n")
  with pytest.raises(ValueError, match=r"vocab\.txt is not the vocabulary that .* was trained"):
    load_run.find_run(tmp_path / "out")
  shutil.copy(done.vocab_file, tmp_path / "out")
  assert load_run.find_run(tmp_path / "out").vocab_file == str(tmp_path / "out" / "vocab.txt")


def test_a_checkpoint_that_no_run_left_is_refused(finished, tmp_path):
  done = finished("classifier")
  prefix = finding.find_checkpoint(str(done.out))
  for path in pathlib.Path(prefix).parent.glob(f"{pathlib.Path(prefix).name}.*"):
    if path.suffix == ".index" or ".data-" in path.name:
      shutil.copy(path, tmp_path / path.name)
  with pytest.raises(ValueError, match="is not a fine-tuned model of run_classifier"):
    load_run.find_run(tmp_path / pathlib.Path(prefix).name, str(done.vocab_file))


# ---------------------------------------------------------------------------------------------
# Exports for other engines.

# What the task reads as a labelled file: of the run's folder of data.
EVAL_FILES = {
  "classifier": "dev.tsv",
  "squad": "squad.json",
  "ner": "test.conll",
  "swag": "test.csv",
  "similarity": "test.csv",
}
ENGINES = {  # with what is in an export of float32, and with --int8
  "onnxruntime": (["float32"], ["float32", "int8"]),
  "openvino": (["float32", "bfloat16"], ["float32", "bfloat16"]),
  "litert": (["float32"], ["float32", "int8"]),
}
METRICS = {
  "classifier": "accuracy",
  "squad": "exact",
  "ner": "f1",
  "swag": "accuracy",
  "similarity": "spearman",
}


@pytest.mark.parametrize("task", _ONE_IN_CI)
def test_an_export_for_other_engines_answers_as_the_run_did(finished, task, tmp_path):
  done = finished(task)
  eval_file = done.out.parent / EVAL_FILES[task]
  if not eval_file.exists():
    shutil.copy(done.out.parent / "test.tsv", eval_file)
  flags = {"init_checkpoint": done.out, "export_dir": tmp_path / "export", "format": "onnx,litert"}
  # Models of 8 bits take time, and are the same for all tasks.
  smaller = {"int8": True} if task == "ner" else {}
  run(export_hub, **flags, **smaller, eval_file=eval_file)
  assert (tmp_path / "export" / "config.json").is_file()
  for engine in ENGINES:
    answer = Predictor.load(tmp_path / "export", engine, batch_size=4)
    ASSERT[task](done, answer(done.items))
  report = json.loads((tmp_path / "export" / "accuracy.json").read_text())
  models = [(row["engine"], row["precision"]) for row in report["models"]]
  assert models == [(name, each) for name in ENGINES for each in ENGINES[name][bool(smaller)]]
  assert report["examples"] == len(done.items)
  first, *others = report["models"]
  assert METRICS[task] in first["metrics"]
  assert first["agreement"] in (1, None)
  assert all(row["largest_difference"] >= 0 for row in others)
  assert "## Accuracy" in (tmp_path / "export" / "README.md").read_text()
