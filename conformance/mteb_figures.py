"""MTEB's published figures of all-MiniLM-L6-v2 for three tasks of similarity, computed again.

Spearman's correlation of cosines and scores over all test pairs of a task (Muennighoff et al. 2022,
arXiv:2210.07316). The model's own settings: the mean of all pieces' vectors, 256 pieces at most,
texts without blanks around them. The figures are those of the model's card in the Hub.

The model was trained, and MTEB measured it, with the exact form of GELU, which is `gelu_erf` here;
`gelu` in a configuration of 2018 is the tanh form. Both are tried with `Predictor`, the exact one
also with the export for TensorFlow Hub.

MTEB's STS12 has five parts. dataset-sts has four of them; the fifth, pairs about videos, is in STS
benchmark: its English files begin with the pairs of that test set.
"""

import csv
import json
import pathlib
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from conformance.cases import FAILED, PASSED, SKIPPED, Case, Context, SuiteError, read_text

FOLDERS = ("stsb-multi-mt", "dataset-sts")
FIGURES = {"STSBenchmark": 0.82032, "STS12": 0.72369, "STS16": 0.78989}
LIMIT = 1e-4
_SIZES = {"STSBenchmark": 1379, "STS12": 3108, "STS16": 1186}
# Pairs of the video test set of 2012 at the beginning of each file of STS benchmark.
_VIDEO_PAIRS = {"train": 494, "dev": 131, "test": 125}
_PARTS = {
  "2012": ("MSRpar", "OnWN", "SMTeuroparl", "SMTnews"),
  "2016": ("answer-answer", "headlines", "plagiarism", "postediting", "question-question"),
}
_MAX_PIECES = 256
_BATCH = 32

Encode = Callable[[Sequence[str]], np.ndarray]


class Pair(NamedTuple):
  """Two texts and their similarity, 0 to 5."""

  text_a: str
  text_b: str
  score: float


def cases(context: Context) -> Iterator[Case]:
  """Each task through `Predictor` and through the Hub export."""
  tasks: dict[str, list[Pair]] = {}
  for task, read in (("STSBenchmark", _sts_benchmark), ("STS12", _sts12), ("STS16", _sts16)):
    try:
      tasks[task] = _checked(context, task, read(context))
    except SuiteError as error:
      yield Case(task, FAILED, "has another shape than expected", str(error))
  for face, (load, hidden_act) in _FACES.items():
    has_all = context.weights and tasks
    encode = load(context, _config_file(context, hidden_act)) if has_all else None
    for task, pairs in tasks.items():
      name = f"{task}, {face}"
      if encode is None:
        yield Case(name, SKIPPED, "needs all-MiniLM-L6-v2: WEIGHTS=FOLDER")
      else:
        yield _scored(name, FIGURES[task], correlation(pairs, encode))


def _config_file(context: Context, hidden_act: str) -> pathlib.Path:
  """The weights' configuration with this activation."""
  config = json.loads(read_text(context.weights / "bert_config.json"))
  path = context.scratch / hidden_act / "bert_config.json"
  path.parent.mkdir(exist_ok=True)
  path.write_text(json.dumps({**config, "hidden_act": hidden_act}), encoding="utf-8")
  return path


def _scored(name: str, published: float, ours: float) -> Case:
  difference = abs(ours - published)
  detail = f"published {published}, ours {ours:.6f}"
  if difference <= LIMIT:
    return Case(name, PASSED, detail, difference=difference)
  return Case(name, FAILED, f"differs by more than {LIMIT}", detail, difference)


def correlation(pairs: Sequence[Pair], encode: Encode) -> float:
  """Spearman's correlation of the pairs' scores and their cosines.

  Args:
    pairs: of the task.
    encode: texts -> float `[N, W]`.
  """
  from bert.tasks import metrics

  first = encode([pair.text_a.strip() for pair in pairs]).astype(np.float64)
  second = encode([pair.text_b.strip() for pair in pairs]).astype(np.float64)
  norms = np.linalg.norm(first, axis=1) * np.linalg.norm(second, axis=1)
  cosines = (first * second).sum(axis=1) / norms
  return metrics.spearman(np.array([pair.score for pair in pairs]), cosines)


# ---------------------------------------------------------------------------------------------
# Two ways to vectors.


def _predictor(context: Context, config_file: pathlib.Path) -> Encode:
  from bert.predicting.predictor import Predictor

  encode = Predictor.load(
    str(context.weights),
    task="vectors",
    bert_config_file=str(config_file),
    pooling="mean",
    max_seq_length=_MAX_PIECES,
  )
  return lambda texts: np.stack(encode(texts))


def _hub_export(context: Context, config_file: pathlib.Path) -> Encode:
  """Exports the weights and loads them with tensorflow_hub."""
  import tensorflow_hub as hub

  from bert.exporting import hub_encoder, hub_preprocess
  from bert.model.configuration import BertConfig

  folder = context.scratch / f"hub_{config_file.parent.name}"
  config = BertConfig.from_json_file(str(config_file))
  vocab = str(context.weights / "vocab.txt")
  hub_encoder.export_encoder(
    str(folder / "encoder"), config, str(context.weights), vocab, do_lower_case=True
  )
  hub_preprocess.export_preprocess(
    str(folder / "preprocess"), vocab, do_lower_case=True, seq_length=_MAX_PIECES
  )
  preprocess = hub.KerasLayer(str(folder / "preprocess"))
  encoder = hub.KerasLayer(str(folder / "encoder"))

  def encode(texts: Sequence[str]) -> np.ndarray:
    order = sorted(range(len(texts)), key=lambda index: len(texts[index]))
    vectors = np.empty((len(texts), config.hidden_size), np.float32)
    for start in range(0, len(order), _BATCH):
      chosen = order[start : start + _BATCH]
      inputs = preprocess([texts[index] for index in chosen])
      vectors[chosen] = _means(encoder, inputs)
    return vectors

  return encode


def _means(encoder, inputs) -> np.ndarray:
  """The mean vector of each text's pieces: float32 `[B, W]`; padding that no text needs is cut."""
  mask = inputs["input_mask"].numpy()
  longest = int(mask.sum(axis=1).max())
  length = min(-(-longest // 16) * 16, _MAX_PIECES)  # few different shapes
  cut = {name: values[:, :length] for name, values in inputs.items()}
  pieces = encoder(cut)["sequence_output"].numpy()  # [B, S, W]
  weights = mask[:, :length, None].astype(np.float32)
  return (pieces * weights).sum(axis=1) / weights.sum(axis=1)


_FACES = {
  "Predictor, exact GELU": (_predictor, "gelu_erf"),
  "Predictor, GELU of 2018": (_predictor, "gelu"),
  "Hub export, exact GELU": (_hub_export, "gelu_erf"),
}

# ---------------------------------------------------------------------------------------------
# The pairs.


def _sts_benchmark(context: Context, split: str = "test") -> list[Pair]:
  path = context.folder("stsb-multi-mt") / "data" / f"stsb-en-{split}.csv"
  rows = csv.reader(read_text(path).splitlines(keepends=True))
  return [_pair(path, number, row, score=2) for number, row in enumerate(rows, start=1)]


def _sts12(context: Context) -> list[Pair]:
  videos = [
    pair for split, count in _VIDEO_PAIRS.items() for pair in _sts_benchmark(context, split)[:count]
  ]
  return videos + _semeval(context, "2012")


def _sts16(context: Context) -> list[Pair]:
  return _semeval(context, "2016")


def _semeval(context: Context, year: str) -> list[Pair]:
  """The pairs of a year that have a score: in 2016 only some were judged."""
  pairs = []
  for part in _PARTS[year]:
    folder = context.folder("dataset-sts") / "data" / "sts" / "semeval-sts" / year
    path = folder / f"{part}.test.tsv"
    for number, line in enumerate(read_text(path).rstrip("\n").split("\n"), start=1):
      row = line.rstrip("\r").split("\t")
      if row[0].strip():
        pairs.append(_pair(path, number, row, score=0))
  return pairs


def _pair(path: pathlib.Path, number: int, row: Sequence[str], score: int) -> Pair:
  texts = [text for column, text in enumerate(row) if column != score]
  try:
    return Pair(texts[0], texts[1], float(row[score]))
  except (IndexError, ValueError):
    raise SuiteError(f"{path}:{number}: two texts and a score were expected.") from None


def _checked(context: Context, task: str, pairs: list[Pair]) -> list[Pair]:
  if len(pairs) != _SIZES[task]:
    raise SuiteError(
      f"{context.suites}: {task} has {len(pairs)} pairs, but MTEB's has {_SIZES[task]}."
    )
  return pairs
