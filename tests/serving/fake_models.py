"""Served models that compute nothing: the items and answers are real, scores are made up of tokens.

models = FakeModels({"mrpc": fake_models.classifier(), "encoder": fake_models.encoder()})
app = app_module.create(models, Settings(), Metrics())
"""

import asyncio
import types
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from bert import tokenization
from bert.predicting.processors import AnswerProcessor, Processor, TextProcessor, VectorProcessor
from bert.serving.errors import InvalidInput, UnknownModel
from bert.tasks import decoding, kinds
from tests.kit.paths import SAMPLE_VOCAB

WIDTH = 16
LENGTH = 32
CONFIG = types.SimpleNamespace(
  hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=2, vocab_size=865
)


class Ability(NamedTuple):
  """As `servable.Ability`."""

  name: str
  processor: Any
  scores: Any  # row -> outputs


class Servable(NamedTuple):
  """As `servable.Servable`."""

  abilities: dict[str, Ability]
  kind: Any = None
  config: Any = CONFIG
  engine: str = "fake"
  precision: str = "int8"
  folder: str = "/models/fake"


class Computed(NamedTuple):
  """As `served_models.Computed`."""

  results: list[Any]
  raw: list[Any]
  tokens: list[int]
  queue_s: float = 0.001
  tokenization_s: float = 0.002
  inference_s: float = 0.003
  device: str = "gpu"


class FakeModel:
  """As `served_models.ServedModel`; `trouble` is raised instead of an answer, `wait` is awaited."""

  def __init__(self, name: str, servable: Servable):
    self.name = name
    self.servable = servable
    self.is_ready = True
    self.version = 1
    self.trouble: BaseException | None = None
    self.wait: Any = None
    self.calls: list[tuple[str, Any]] = []
    self.cancelled = 0

  async def compute(self, ability: str, items: Sequence[Any], timeout_s: float = 0) -> Computed:
    self.calls.append((ability, list(items)))
    if self.trouble:
      raise self.trouble
    try:
      await (self.wait() if self.wait else asyncio.sleep(0))
    except asyncio.CancelledError:
      self.cancelled += 1
      raise
    found = self.servable.abilities[ability]
    rows = []
    for index, item in enumerate(items):
      try:
        rows.append(found.processor.featurize(item))
      except ValueError as error:
        raise InvalidInput(str(error), index=index) from None
    scores = [[found.scores(row) for row in its] for its in rows]
    results = [found.processor.finish(*pair) for pair in zip(rows, scores, strict=True)]
    raw = list(zip(rows, scores, strict=True))
    return Computed(results, raw, [sum(len(r.get("input_ids", "a")) for r in its) for its in rows])


class FakeModels:
  """As `served_models.ServedModels`."""

  def __init__(self, servables: dict[str, Servable]):
    self.models = {name: FakeModel(name, each) for name, each in servables.items()}
    self.names = list(self.models)
    self.is_ready = True
    self.stopped = False

  def find(self, name: str | None) -> FakeModel:
    if len(self.models) == 1:
      return self.models[self.names[0]]
    if name not in self.models:
      raise UnknownModel(f"No model {name!r:.80} is served, but {', '.join(self.names)}.")
    return self.models[name]

  async def start(self) -> None:
    pass

  async def stop(self) -> None:
    self.stopped = True


# ---------------------------------------------------------------------------------------------
# What they can do.


def _random(row, *shape: int) -> np.ndarray:
  seed = sum((place + 1) * each for place, each in enumerate(row["input_ids"]))
  return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def tokenizer():
  return tokenization.FullTokenizer(SAMPLE_VOCAB)


def task(facts: dict[str, Any], scores, settings=None) -> Servable:
  """A fine-tuned model; `scores` are those of a row."""
  kind = kinds.of_facts(facts)
  found = decoding.of_run(facts, settings or {}, tokenizer(), LENGTH)
  ability = Ability("answers", AnswerProcessor(found), scores)
  return Servable({"answers": ability}, kind)


def classifier(labels: Sequence[str] = ("0", "1"), problem_type: str = "classification"):
  facts = {"task_name": "mrpc", "problem_type": problem_type, "labels": list(labels)}
  count = 1 if problem_type == "regression" else len(labels)
  return task(facts, lambda row: {"logits": _random(row, count)})


def tagger() -> Servable:
  facts = {"task_name": "ner", "labels": ["O", "B-PER", "I-PER", "B-LOC", "I-LOC"]}
  return task(facts, lambda row: {"logits": _random(row, len(row["input_ids"]), 5)})


def chooser() -> Servable:
  return task({"task_name": "swag"}, lambda row: {"logits": _random(row, 1)})


def reader() -> Servable:
  def scores(row):
    return {f"{end}_logits": _random(row, len(row["input_ids"])) for end in ("start", "end")}

  return task({"task_name": "squad"}, scores, {"doc_stride": 8, "max_query_length": 12})


def saved_model(outputs, scores) -> Servable:
  """A SavedModel of two texts with such outputs, whose classes are 0 and 1."""
  inputs = ("text_a", "text_b")
  meaning = decoding.of_saved_model(inputs, outputs, ["0", "1"], tokenizer())
  processor = TextProcessor(inputs, decoder=meaning)
  return Servable({"answers": Ability("answers", processor, scores)}, engine="tensorflow")


def encoder() -> Servable:
  processor = VectorProcessor(tokenizer(), LENGTH)
  vectors = Ability("vectors", processor, lambda row: {"vectors": _random(row, WIDTH)})
  attention = Ability("attention", _Attention(), lambda row: {})
  masked = Ability("masked_words", _MaskedWords(), _word_ids)
  of_tokens = VectorProcessor(tokenizer(), LENGTH, pooling="none")
  tokens = Ability("token_vectors", of_tokens, _token_vectors)
  found = (vectors, masked, attention, tokens)
  return Servable({each.name: each for each in found})


def _token_vectors(row):
  padding = 3  # as a batch with a longer row has
  return {"vectors": _random(row, len(row["input_ids"]) + padding, WIDTH)}


def _word_ids(row):
  return {"ids": np.array([[7, 9]] * row["item"].count("[MASK]"))}


class _Attention(Processor):
  """A uniform map."""

  max_seq_length = LENGTH

  def featurize(self, item):
    for name in ("layer", "head"):
      if not 0 <= item[name] < 2:
        raise ValueError(f"{name} is {item[name]}, but must be from 0 to 1.")
    return [{"item": item}]

  def finish(self, rows, outputs):
    item = rows[0]["item"]
    tokens = ["[CLS]", *item["text"].split(), *item.get("text_pair", "").split(), "[SEP]"]
    return {"tokens": tokens, "map": np.full([len(tokens)] * 2, 1 / len(tokens), np.float32)}


class _MaskedWords(Processor):
  """One word, whatever the text."""

  max_seq_length = LENGTH
  mask_token = "[MASK]"

  def featurize(self, item):
    if "[MASK]" not in item:
      raise ValueError(f"no [MASK] in {item!r:.60}.")
    return [{"item": item}]

  def finish(self, rows, outputs):
    guesses = [{"token": "paris", "probability": 0.75}, {"token": "rome", "probability": 0.25}]
    return {"text": rows[0]["item"], "masks": [guesses] * rows[0]["item"].count("[MASK]")}


def all_kinds() -> FakeModels:
  """A model of each kind."""
  return FakeModels(
    {
      "mrpc": classifier(),
      "encoder": encoder(),
      "ner": tagger(),
      "squad": reader(),
      "swag": chooser(),
      "sts": classifier(["score"], "regression"),
    }
  )


def main(port: str = "8080") -> None:
  """Serves them: python -m tests.serving.fake_models 8099."""
  from bert.serving import app, http_server, metrics, service

  with http_server.open_port("127.0.0.1", int(port)) as taken:
    made = app.create(all_kinds(), service.Settings(), metrics.Metrics())
    http_server.run(http_server.make(made, drain_s=5), taken)


if __name__ == "__main__":
  import sys

  main(*sys.argv[1:])
