"""Contributions of tokens: they add up to what the words change, whatever is in the batch.

Alone: python -m pytest tests/predicting/contributions_test.py (seconds)
"""

import numpy as np
import pytest

from bert.checkpoints import finding
from bert.model.task_heads import SequenceHead
from bert.modeling import BertConfig
from bert.predicting.contributions import Contributions
from bert.predicting.engines.tensorflow import load_checkpoint
from tests.kit import healthy_run

CONFIG = BertConfig.from_dict(healthy_run.CONFIG)
HEAD = SequenceHead(2)
TABLE = "bert/embeddings/word_embeddings"
ROWS = [
  {"input_ids": [2, 7, 8, 3], "input_mask": [1] * 4, "segment_ids": [0] * 4},
  {
    "input_ids": [2, 9, 3, 10, 11, 12, 3],
    "input_mask": [1] * 7,
    "segment_ids": [0, 0, 0, 1, 1, 1, 1],
  },
]
WEIGHTS = [{"logits": np.array([-1.0, 1.0])}, {"logits": np.array([1.0, -1.0])}]


def checkpoint(folder, factor=1.0):
  """Random weights; the vectors of words are multiplied by a factor."""

  def change(tensors):
    rng = np.random.default_rng(3)
    tensors["output_weights"] = rng.normal(size=(2, CONFIG.hidden_size)).astype(np.float32)
    tensors["output_bias"] = np.zeros(2, np.float32)
    for name in tensors:
      if "kernel" in name:  # small, so that few steps are close to the integral
        tensors[name] *= np.float32(0.1)
    tensors[TABLE] = np.float32(factor) * tensors[TABLE]

  folder.mkdir()
  healthy_run.save_checkpoint(folder, change)
  return finding.find_checkpoint(str(folder / "model"))


@pytest.fixture(scope="module")
def prefixes(tmp_path_factory):
  folder = tmp_path_factory.mktemp("models")
  return checkpoint(folder / "whole"), checkpoint(folder / "no_words", 0.0)


@pytest.fixture(scope="module")
def found(prefixes):
  return Contributions(prefixes[0], CONFIG, HEAD, num_steps=32)(ROWS, WEIGHTS)


def logits(prefix):
  engine = load_checkpoint(prefix, CONFIG, HEAD)
  names = ("input_ids", "input_mask", "segment_ids")
  return [
    engine({name: np.array([row[name]], np.int32) for name in names})["logits"][0] for row in ROWS
  ]


def test_they_add_up_to_what_the_words_change(prefixes, found):
  with_words, without = (logits(prefix) for prefix in prefixes)
  for n, (each, weights) in enumerate(zip(found, WEIGHTS, strict=True)):
    change = float(np.sum(weights["logits"] * (with_words[n] - without[n])))
    assert abs(change) > 0.01
    assert each.sum() == pytest.approx(change, rel=0.02)


def test_each_token_has_one_and_padding_has_none(prefixes, found):
  assert [len(each) for each in found] == [4, 7]
  alone = Contributions(prefixes[0], CONFIG, HEAD, num_steps=32)(ROWS[:1], WEIGHTS[:1])
  np.testing.assert_allclose(alone[0], found[0], atol=1e-6)
