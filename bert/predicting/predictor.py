"""A model, loaded once, that converts texts to results, for every task and every export.

  predictor = Predictor.from_run("/tmp/squad_output", vocab_file="vocab.txt")  # any run_*.py
  predictor = Predictor.from_saved_model("/tmp/squad_output/export")           # or its --do_export
  predictor = Predictor.load("/tmp/squad_export", "onnxruntime")    # export_hub.py --format=onnx
  predictor([("Who?", "It was me.")])       # [{"answer": "me", "start": 7, "end": 9, ...}]
  for result in predictor.stream(many_questions): ...                          # in bounded memory

  encode = Predictor.from_checkpoint("uncased_L-12_H-768_A-12")                # one vector each
  encode(["A cat sat.", "The cat was sitting."])

Items and results of fine-tuned models:

  run_classifier.py  a text, or (text_a, text_b)  label and probabilities, or score
  run_squad.py       (question, context)          answer, and its first and last + 1 character
  run_ner.py         a text, or {"words": [...]}  words, tags, where each starts and ends; entities
  run_swag.py        (context, [choice, ...])     choice, and the probability of each
  run_similarity.py  (text_a, text_b)             similarity, the cosine of the two vectors

An item can also be a dictionary of its texts: `{"text_a": "A cat."}`, `{"question": "Who?",
"context": "Me."}`. One text or one dictionary alone is a list of one item.

`masked_words.py` guesses masked words; `predict.py` is the command line of all of them.

How a `Predictor` saves time: texts are taken in chunks, sorted by length within a chunk and cut
into batches, so that there is little padding; results come in the order of the texts. The graph is
traced once, when the model is loaded, for batches of any size and length.

With `batch_invariant=True` no bit of a result depends on the other items (`fixed_batch_shapes.py`).

Letters in shapes: B = batch size, S = sequence length, L = number of requested layers, W = hidden
size.
"""

import os
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from bert.checkpoints import sentence_pooling
from bert.io import text_lines
from bert.predicting.engines import registry
from bert.predicting.engines.engine import Engine
from bert.predicting.fixed_batch_shapes import FixedBatchShapes
from bert.predicting.load_model import (
  Arrays,
  LoadedFunction,
  check_length,
  load_graph,
  load_model,
  load_signature,
  readable_length,
)
from bert.predicting.processors import (
  AnswerProcessor,
  Processor,
  TextProcessor,
  VectorProcessor,
  name_texts,
)
from bert.predicting.row_batches import RowBatches
from bert.predicting.sentence_vectors import INPUTS, batching, layer_vectors
from bert.tasks.decoding import Decoder, Row, check_known

__all__ = ["Predictor", "name_texts"]

Features = Mapping[str, Any]  # name -> list of ints, or a string
Graph = Callable[[Features], Arrays]

# ---------------------------------------------------------------------------------------------
# The predictor: lengths and order, independent of BERT.


class Predictor:
  """Runs a model over any number of items; see this module's docstring.

  Example:
    >>> double = Predictor(
    ...   featurize=lambda text: {"codes": list(map(ord, text))},
    ...   compute=lambda batch: {"sum": batch["codes"].sum(axis=1)},
    ...   inputs=["codes"],
    ...   finish=lambda features, outputs: int(outputs["sum"]))
    >>> double(["b", "aaa", ""])
    [98, 291, 0]

  Attributes:
    chunk_size: number of rows that are sorted by length together: one of each item, or several.
    text_names: of an item's texts.
    list_names: those of them that are lists of texts.
    texts_in: name of a text -> its column in the tables of the run, as far as that is known.
  """

  text_names: Sequence[str] = ("text",)
  list_names: Sequence[str] = ()
  texts_in: Mapping[str, Any] = types.MappingProxyType({})

  def __init__(
    self,
    featurize: Callable[[Any], Features | list[Row]],
    compute: Graph,
    inputs: Sequence[str],
    finish: Callable[[Any, Any], Any] | None = None,
    batch_size: int = 32,
    chunk_size: int = 1024,
    batch_tokens: int = 0,
    batch_shapes: FixedBatchShapes | None = None,
    padding: Mapping[str, int] | None = None,
  ):
    """Combines the three steps.

    Args:
      featurize: item -> features, a row of a batch; it may add features for `finish`. An item may
        also have several rows, or none: a list of them.
      compute: name -> int32 `[B, longest]`, padded (or strings `[B]`), to name -> array or tensor
        `[B, ...]`.
      inputs: names of the features that `compute` takes.
      finish: features of an item and its row of the outputs -> result; by default that row. Of an
        item of several rows both are lists.
      batch_size: B, rows in a batch.
      chunk_size: a larger one means less padding, and more memory for results that wait.
      batch_tokens: a batch may have more than `batch_size` items up to this number of tokens,
        padding included: small batches of short items do not keep a processor busy.
      batch_shapes: the shapes of all batches instead, whatever the other sizes say, for results
        that do not depend on the batch; `compute` has to be traced for them.
      padding: what fills up shorter rows, by the name of the input; 0 by default.

    Raises:
      ValueError: a size is below 1.
    """
    for name, value in (("batch_size", batch_size), ("chunk_size", chunk_size)):
      if value < 1:
        raise ValueError(f"{name} is {value}, but must be at least 1.")
    self.chunk_size = chunk_size
    self._batches = RowBatches(compute, inputs, batch_size, batch_tokens, batch_shapes, padding)
    self._featurize = featurize
    self._finish = finish or (lambda features, outputs: outputs)

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
    features = self._featurized(items, source)
    while chunk := self._next_chunk(features):
      yield from self._results(chunk)

  def _featurized(
    self, items: Iterable, source: text_lines.Source | None
  ) -> Iterator[Features | list]:
    for number, item in enumerate(items, start=1):
      try:
        yield self._featurize(item)
      except ValueError as error:
        if source is None:
          raise
        raise ValueError(f"{text_lines.place(source, number)}: {error}") from None

  def _next_chunk(self, features: Iterator[Features | list]) -> list[Features | list]:
    chunk, num_rows = [], 0
    while num_rows < self.chunk_size and (each := next(features, None)) is not None:
      chunk.append(each)
      num_rows += max(1, len(each)) if isinstance(each, list) else 1
    return chunk

  def _results(self, chunk: list[Features | list]) -> list:
    rows = [row for each in chunk for row in (each if isinstance(each, list) else [each])]
    outputs = iter(self._batches(rows))
    return [
      self._finish(each, [next(outputs) for _ in each] if isinstance(each, list) else next(outputs))
      for each in chunk
    ]

  # -------------------------------------------------------------------------------------------
  # Loading.

  @classmethod
  def from_checkpoint(
    cls,
    init_checkpoint: str,
    *,
    layers: int | Sequence[int] = -1,
    pooling: str | None = None,
    bert_config_file: str | None = None,
    vocab_file: str | None = None,
    do_lower_case: bool | None = None,
    max_seq_length: int | None = 128,
    batch_size: int = 32,
    chunk_size: int | None = None,
    dtype: str = "float32",
    batch_invariant: bool = False,
    engine: str = "tensorflow",
    precision: str = "float32",
  ) -> "Predictor":
    """Encodes texts, or pairs of texts, as vectors.

    The other arguments are those of `load_model.load_model`. Texts longer than `max_seq_length`
    are truncated; None is 128, or fewer where the model can read no more.

    Args:
      layers: the layer of the vectors, -1 for the last; or several.
      pooling: see `layer_vectors`; by default that of the model, if `run_similarity.py` or
        sentence-transformers trained it, else `mean`.
      batch_size: texts in a batch; more of short ones, see `sentence_vectors`.
      chunk_size: see `__init__`; by default as many as have vectors of 256 MiB, up to 64 batches.
      dtype: of matrix products.
      batch_invariant: whether a text's vectors have the same bits whatever texts are around it, and
        whatever `batch_size` is; see `fixed_batch_shapes.py`.
      engine: what computes them; see `load`. Of others than TensorFlow, `init_checkpoint` is an
        export, which has the last layer alone, pooled; `auto` is TensorFlow for any other folder.
      precision: of an export's weights, see `load`.

    Returns:
      A predictor whose results are float32 `[W]` for one layer and `[L, W]` for several; with
      pooling `none`, `[S, W]` and `[S, L, W]`, where S is the number of the text's pieces.

    Raises:
      ValueError: a file is missing or bad, or they do not belong together.
    """
    from bert.predicting import load_export

    if engine != "tensorflow" and (engine != "auto" or load_export.is_export(init_checkpoint)):
      model = load_export.read_encoder(init_checkpoint, layers, pooling, vocab_file)
      found = load_export.load(init_checkpoint, model, engine, precision, pooling=pooling)
      return cls._of_encoder(found, model, batch_size, batch_invariant, chunk_size, max_seq_length)
    registry.check_not_of_export(init_checkpoint, engine, precision)
    config, tokenizer, prefix = load_model(
      init_checkpoint, bert_config_file, vocab_file, do_lower_case, max_seq_length
    )
    max_seq_length = readable_length(max_seq_length, config.longest_sequence)
    pooling = sentence_pooling.choose(pooling, prefix, "mean")
    indexes = [layers] if isinstance(layers, int) else list(layers)
    batches = batching(config, len(indexes), pooling, max_seq_length, batch_size, batch_invariant)
    if chunk_size is not None:
      batches = batches._replace(chunk_size=chunk_size)
    build = layer_vectors(config, indexes, pooling, dtype, batch_shapes=batches.batch_shapes)

    processor = VectorProcessor(tokenizer, max_seq_length, pooling, isinstance(layers, int))
    function = load_graph(build, INPUTS, prefix, optional=("bert/pooler/",))
    from bert.checkpoints import reading

    made = cls.of_halves(processor, function, *batches)
    made.texts_in = reading.read_state(prefix).get("informative", {}).get("texts_in", {})
    return made

  @classmethod
  def _of_encoder(
    cls,
    engine: Engine,
    model: Any,
    batch_size: int,
    batch_invariant: bool,
    chunk_size: int | None,
    max_seq_length: int | None = None,
  ) -> "Predictor":
    """Encodes texts with an engine of `load_export`, and the `Described` model that it computes."""
    from bert import tokenization

    length = max_seq_length or model.max_seq_length
    check_length(length, model.config.longest_sequence)
    tokenizer = tokenization.load_tokenizer(model.vocab_file, model.do_lower_case)
    batch_size = 1 if batch_invariant else batch_size
    batches = batching(model.config, 1, "mean", length, batch_size)
    batch_tokens = 0 if batch_invariant else batches.batch_tokens
    processor = VectorProcessor(tokenizer, length)
    chunk_size = batches.chunk_size if chunk_size is None else chunk_size
    return cls.of_halves(processor, engine, batch_size, chunk_size, batch_tokens)

  @classmethod
  def load(
    cls,
    folder: str | os.PathLike,
    engine: str = "auto",
    *,
    precision: str = "float32",
    threads: int | None = None,
    vocab_file: str | None = None,
    dtype: str = "float32",
    batch_size: int = 32,
    chunk_size: int | None = None,
    batch_invariant: bool = False,
    **options,
  ) -> "Predictor":
    """Loads a fine-tuned model, or an exported encoder.

    Args:
      folder: `--output_dir` of a run that fine-tuned, which has everything: its best checkpoint is
        taken, or else the newest. Or the prefix of a checkpoint there; or a folder of transformers;
        or what `export_hub.py --format=onnx,litert` wrote.
      engine: what computes the model, see `engines/registry.py`; `auto` is TensorFlow for a run,
        and for an export the first engine that is installed, see `load_export.choose_engine`.
      precision: of an export: float32, float16 or int8, as far as it has such weights, or bfloat16,
        which openvino computes from those of float32.
      threads: that compute an export; by default one for each core.
      vocab_file: by default that in the folder, or in its export.
      dtype: of matrix products, of TensorFlow.
      batch_size: rows in a batch. An item is one row, or one for each window or choice.
      chunk_size: see `__init__`; by default 1024, of an encoder as in `from_checkpoint`.
      batch_invariant: whether an answer has the same bits whatever items are around it: each row
        is then computed alone.
      **options: settings to change: `max_seq_length` of any model, and what `of_run` of its
        `Decoder` takes, such as `doc_stride` and `null_score_diff_threshold` of questions.

    Returns:
      A predictor whose items are texts, pairs, or dicts of the texts by name, and whose results are
      dicts of strings, numbers, lists of strings, and arrays. The docstring of this module has a
      table. Models of run_classifier.py always take a second text. Of an encoder: the vectors of
      texts, as `from_checkpoint`.

    Raises:
      MissingExtraError: the engine's package is not installed.
      ValueError: the folder holds no such model, a file is missing or belongs to another one, or an
        option or the engine is unknown.
    """
    from bert.predicting import load_export, load_run

    registry.check_name(engine, ("auto", *registry.NAMES))
    sizes = (batch_size, 1024 if chunk_size is None else chunk_size, batch_invariant)
    if load_export.is_export(folder):
      model = load_export.read(folder, vocab_file)
      if model.kind is None:
        check_known("An encoder", options, ["max_seq_length"])
      decoder = load_export.decoder_of(model, **options) if model.kind else None
      found = load_export.load(folder, model, engine, precision, threads)
      if decoder is None:
        return cls._of_encoder(found, model, batch_size, batch_invariant, chunk_size, **options)
      made = cls.of_engine(found, decoder, *sizes)
      made.texts_in = model.settings.get("texts_in", {})
      return made
    registry.check_not_of_export(folder, engine, precision)
    run = load_run.find_run(folder, vocab_file)
    decoder, head = load_run.decoder_of(run, **options)
    from bert.predicting.engines.tensorflow import load_checkpoint

    compute = load_checkpoint(run.prefix, run.config, head, dtype)
    made = cls.of_engine(compute, decoder, *sizes)
    made.texts_in = run.settings.get("texts_in", {})
    return made

  @classmethod
  def from_run(cls, output_dir: str | os.PathLike, **options) -> "Predictor":
    """Loads the fine-tuned model of a run: `load` with TensorFlow, whose options it takes."""
    return cls.load(output_dir, "tensorflow", **options)

  @classmethod
  def of_engine(
    cls,
    engine: Engine,
    decoder: Decoder,
    batch_size: int = 32,
    chunk_size: int = 1024,
    batch_invariant: bool = False,
  ) -> "Predictor":
    """Puts an engine between what makes rows of items and what makes answers of their scores.

    The other arguments are those of `load`.
    """
    batch_size = 1 if batch_invariant else batch_size
    return cls.of_halves(AnswerProcessor(decoder), engine, batch_size, chunk_size)

  @classmethod
  def of_halves(
    cls,
    processor: Processor,
    compute: Any,
    batch_size: int,
    chunk_size: int,
    batch_tokens: int = 0,
    batch_shapes: FixedBatchShapes | None = None,
  ) -> "Predictor":
    """Puts what computes between both sides of a processor.

    The other arguments are those of `__init__`.

    Args:
      processor: makes rows of items, and results of their outputs.
      compute: an engine, or another function with `inputs`, the names of what it reads.
    """
    made = cls(
      processor.featurize,
      compute,
      compute.inputs,
      processor.finish,
      batch_size,
      chunk_size,
      batch_tokens,
      batch_shapes,
      processor.padding,
    )
    made.text_names, made.list_names = processor.inputs, processor.list_inputs
    return made

  @classmethod
  def from_saved_model(
    cls,
    saved_model: str,
    batch_size: int = 32,
    chunk_size: int = 1024,
    batch_invariant: bool = False,
  ) -> "Predictor":
    """Loads a fine-tuned model that `--do_export` wrote as a SavedModel.

    The other arguments are those of `load`; a batch has `batch_size` items.

    Args:
      saved_model: the folder of the task's model, or the export's folder around `task`.

    Returns:
      As `load`.

    Raises:
      ValueError: the model is not a task's.
      OSError: the folder holds no SavedModel.
    """
    from bert.predicting import load_export

    if folder := load_export.task_folder(saved_model):
      return cls.load(
        folder,
        "tensorflow",
        batch_size=batch_size,
        chunk_size=chunk_size,
        batch_invariant=batch_invariant,
      )
    function = load_signature(saved_model)
    return cls._of_texts(function, 1 if batch_invariant else batch_size, chunk_size)

  @classmethod
  def _of_texts(cls, function: LoadedFunction, batch_size: int, chunk_size: int) -> "Predictor":
    processor = TextProcessor(function.inputs, function.needs_pairs)
    return cls.of_halves(processor, function, batch_size, chunk_size)
