"""A model, loaded once, that converts texts to results: any folder, any engine, any task.

  predictor = Predictor.load("/tmp/squad_output")                       # of any run_*.py
  predictor = Predictor.load("/tmp/squad_output/export")                # or its --do_export
  predictor = Predictor.load("/tmp/squad_export", "onnxruntime")        # --format=onnx
  predictor([("Who?", "It was me.")])       # [{"answer": "me", "start": 7, "end": 9, ...}]
  for result in predictor.stream(many_questions): ...                   # in bounded memory

  encode = Predictor.load("uncased_L-12_H-768_A-12", task="vectors")    # one vector each
  fill = Predictor.load("uncased_L-12_H-768_A-12", task="masked_words")
  fill("The capital of France is [MASK].")[0]["masks"][0][0]["token"]

Items and results of fine-tuned models:

  run_classifier.py  a text, or (text_a, text_b)  label and probabilities, or score
  run_squad.py       (question, context)          answer, and its first and last + 1 character
  run_ner.py         a text, or {"words": [...]}  words, tags, where each starts and ends; entities
  run_swag.py        (context, [choice, ...])     choice, and the probability of each
  run_similarity.py  (text_a, text_b)             similarity, the cosine of the two vectors

An item can also be a dictionary of its texts: `{"text_a": "A cat."}`, `{"question": "Who?",
"context": "Me."}`. One text or one dictionary alone is a list of one item. `servable.TASKS` lists
the other tasks, and their results.

A `Predictor` is a processor, which makes rows of numbers of items and results of their outputs, and
an engine, which computes what lies between; `servable.py` finds both.

How it saves time: texts are taken in chunks, sorted by length within a chunk and cut into batches,
so that there is little padding; results come in the order of the texts. The graph is traced once,
when the model is loaded, for batches of any size and length.

With `batch_invariant=True` no bit of a result depends on the other items (`fixed_batch_shapes.py`).
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from bert.io import text_lines
from bert.predicting import servable
from bert.predicting.engines.engine import Engine
from bert.predicting.fixed_batch_shapes import FixedBatchShapes
from bert.predicting.processors import ItemRows, Processor
from bert.predicting.row_batches import RowBatches

__all__ = ["Predictor"]


class Predictor:
  """Runs a model over any number of items; see this module's docstring.

  Attributes:
    processor: makes the rows of items, and the results; knows the names of an item's texts.
    chunk_size: number of rows that are sorted by length together: one of each item, or several.
  """

  def __init__(
    self,
    processor: Processor,
    engine: Engine,
    batch_size: int = 32,
    chunk_size: int = 1024,
    batch_tokens: int = 0,
    batch_shapes: FixedBatchShapes | None = None,
  ):
    """Puts an engine between both sides of a processor.

    Args:
      processor: makes rows of items, and results of their outputs.
      engine: computes the outputs of rows.
      batch_size: rows in a batch.
      chunk_size: a larger one means less padding, and more memory for results that wait.
      batch_tokens: a batch may have more than `batch_size` rows up to this number of tokens,
        padding included: small batches of short items do not keep a processor busy.
      batch_shapes: the shapes of all batches instead, whatever the other sizes say, for results
        that do not depend on the batch; the engine has to be made for them.

    Raises:
      ValueError: a size is below 1.
    """
    for name, value in (("batch_size", batch_size), ("chunk_size", chunk_size)):
      if value < 1:
        raise ValueError(f"{name} is {value}, but must be at least 1.")
    self.processor = processor
    self.chunk_size = chunk_size
    sizes = (batch_size, batch_tokens, batch_shapes)
    self._batches = RowBatches(engine, engine.inputs, *sizes, processor.padding)

  @classmethod
  def load(
    cls,
    model: str | os.PathLike,
    engine: str = "auto",
    *,
    batch_size: int = 32,
    chunk_size: int | None = None,
    batch_invariant: bool = False,
    threads: int | None = None,
    **options: Any,
  ) -> "Predictor":
    """Loads anything that can predict.

    Args:
      model: `--output_dir` of a run, of which the best checkpoint is taken, or else the newest; or
        the prefix of a checkpoint, the name of a released model, a folder of transformers; or what
        `--do_export` or `export_hub.py` wrote.
      engine: what computes the model, see `engines/registry.py`; `auto` is TensorFlow for a
        checkpoint, and for an export the first engine that is installed, see
        `load_export.choose_engine`.
      batch_size: rows in a batch, more of short texts whose vectors are computed. An item is one
        row, or one for each window or choice.
      chunk_size: see `__init__`; by default 1024, or as many as have vectors of 256 MiB, up to 64
        batches.
      batch_invariant: whether a result has the same bits whatever items are around it, and whatever
        `batch_size` is.
      threads: that compute; by default one for each core, and of TensorFlow its own choice.
      **options: see `servable.Options`: `task`, by default that of a fine-tuned model, else
        vectors; and settings of the task, such as `doc_stride` of questions.

    Returns:
      A predictor, whose results are dicts of strings, numbers, lists of strings and arrays. Models
      of run_classifier.py always take a second text. Of vectors: float32 `[W]`, see
      `servable.Options`.

    Raises:
      MissingExtraError: the engine's package is not installed.
      CheckpointError: a variable is missing, or has another shape.
      ValueError: there is no such model, a file is missing or belongs to another one, the model
        cannot do the task, or an option or the engine is unknown.
      OSError: a file cannot be read.
    """
    options |= {"engine": engine, "batch_invariant": batch_invariant}
    ability = next(iter(servable.find(model, **options).abilities.values()))
    batches = ability.processor.batching(batch_size, batch_invariant)
    if chunk_size is not None:
      batches = batches._replace(chunk_size=chunk_size)
    return cls(ability.processor, ability.load_engine(threads=threads), *batches)

  @property
  def batch_size(self) -> int:
    """Number of rows in a batch; one with short rows may have more."""
    return self._batches.batch_size

  @batch_size.setter
  def batch_size(self, value: int) -> None:
    self._batches.batch_size = value

  def __call__(self, items: Iterable) -> list:
    """The results of all items, in their order."""
    return list(self.stream(items))

  def stream(self, items: Iterable, source: text_lines.Source | None = None) -> Iterator:
    """Yields the results one by one, in the order of the items, with one chunk in memory.

    Args:
      items: the inputs; a text or a dictionary is one item.
      source: the file whose lines the items are, if they are; errors name it and the line. Or
        what an error says of the place of item 1, 2, ...

    Raises:
      OutOfMemoryError: a batch does not fit into memory.
      TypeError: `items` is bytes or a table.
      ValueError: the model does not take an item.
    """
    if isinstance(items, (str, Mapping)):
      items = [items]  # a loop would take its letters, or its keys
    elif isinstance(items, bytes):
      raise TypeError(f"Expected a list of texts, not bytes: {items!r:.60}.")
    elif hasattr(items, "iterrows"):  # of pandas: a loop would take the names of columns
      columns = ", ".join(map(repr, getattr(items, "columns", ())))
      raise TypeError(f"Expected a list of texts, not a table: give table[NAME] of {columns}.")
    found = self._featurized(items, source)
    while chunk := self._next_chunk(found):
      outputs = iter(self._batches([row for rows in chunk for row in rows]))
      yield from [self.processor.finish(rows, [next(outputs) for _ in rows]) for rows in chunk]

  def _featurized(self, items: Iterable, source: text_lines.Source | None) -> Iterator[ItemRows]:
    for number, item in enumerate(items, start=1):
      try:
        yield self.processor.featurize(item)
      except ValueError as error:
        if source is None:
          raise
        raise ValueError(f"{text_lines.place(source, number)}: {error}") from None

  def _next_chunk(self, found: Iterator[ItemRows]) -> list[ItemRows]:
    chunk: list[ItemRows] = []
    num_rows = 0
    while num_rows < self.chunk_size and (rows := next(found, None)) is not None:
      chunk.append(rows)
      num_rows += max(1, len(rows))
    return chunk
