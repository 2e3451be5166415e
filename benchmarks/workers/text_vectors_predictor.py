"""`predictor.Predictor` for `text_vectors.py`; also writes the weights for the peer."""

import json
import pathlib
import sys
import time

import numpy as np

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent.parent))

from serving import serve

from bert.checkpoints import finding, load_report, reading
from bert.predicting import load_run
from bert.predicting.predictor import Predictor
from bert.predicting.sentence_vectors import text_features


class Vectors:
  """Answers requests."""

  def __init__(self, weights, texts, max_seq_length, exports):
    self._weights, self._length, self._exports = weights, int(max_seq_length), exports
    self._texts = json.loads(pathlib.Path(texts).read_text())
    self._predictors = {}

  def _predictor(self, engine, precision):
    if engine == "tensorflow":
      source, given = self._weights, {"dtype": precision}
    else:
      source, given = self._exports, {"engine": engine, "precision": precision}
    given |= {"task": "vectors", "max_seq_length": self._length, "pooling": "mean"}
    return Predictor.load(source, **given)

  def _vectors(self, way):
    way = tuple(way)
    if way not in self._predictors:
      self._predictors[way] = self._predictor(*way)
    return self._predictors[way](self._texts)

  def seconds(self, way):
    """Of one pass over all texts."""
    start = time.perf_counter()
    self._vectors(way)
    return time.perf_counter() - start

  def write_vectors(self, way, path):
    """Writes float32 `[texts, W]`."""
    np.save(path, np.stack(self._vectors(way)))

  def write_npz(self, path):
    """Writes all variables of the encoder."""
    prefix = finding.find_checkpoint(self._weights)
    names = [n for n in reading.names_and_shapes(prefix) if n.startswith("bert/")]
    names = [n for n in names if not load_report.is_training_state(n)]
    np.savez(path, **reading.read_tensors(prefix, names))

  def lengths(self):
    """Tokens of each text."""
    _, tokenizer, _ = load_run.load_model(self._weights, max_seq_length=self._length)
    rows = (text_features(tokenizer, text, self._length) for text in self._texts)
    return [len(row["input_ids"]) for row in rows]


if __name__ == "__main__":
  vectors = Vectors(*sys.argv[1:])
  names = ("seconds", "write_vectors", "write_npz", "lengths")
  serve({name: getattr(vectors, name) for name in names})
