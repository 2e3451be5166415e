"""A model, loaded once, that converts texts to results, for every task and every export.

  predictor = Predictor.from_run("/tmp/squad_output", vocab_file="vocab.txt")  # any run_*.py
  predictor = Predictor.from_saved_model("/tmp/squad_output/export")           # or its --do_export
  predictor([("Who?", "It was me.")])       # [{"answer": "me", "start": 7, "end": 9, ...}]
  for result in predictor.stream(many_questions): ...                          # in bounded memory

  encode = Predictor.from_checkpoint("uncased_L-12_H-768_A-12")                # one vector each
  encode(["A cat sat.", "The cat was sitting."])

Items and results of fine-tuned models:

  run_classifier.py  a text, or (text_a, text_b)  label and probabilities, or score
  run_squad.py       (question, context)          answer, and its first and last + 1 character
  run_ner.py         a text                       words, tags, where each starts and ends; entities
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

import functools
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from bert.checkpoints import sentence_pooling
from bert.io import text_lines
from bert.model import out_of_memory
from bert.predicting.fixed_batch_shapes import FixedBatchShapes, Shape
from bert.predicting.load_model import (
  Arrays,
  LoadedFunction,
  load_graph,
  load_model,
  load_signature,
  readable_length,
)
from bert.predicting.sentence_vectors import (
  INPUTS,
  batching,
  layer_vectors,
  own_vectors,
  text_features,
  text_pair,
)
from bert.tasks import kinds

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
    batch_size: number of items in a batch.
    batch_tokens: a batch may have more items, up to this number of tokens.
    chunk_size: number of items that are sorted by length and returned together.
  """

  def __init__(
    self,
    featurize: Callable[[Any], Features],
    compute: Graph,
    inputs: Sequence[str],
    finish: Callable[[Features, Arrays], Any] | None = None,
    batch_size: int = 32,
    chunk_size: int = 1024,
    batch_tokens: int = 0,
    batch_shapes: FixedBatchShapes | None = None,
  ):
    """Combines the three steps.

    Args:
      featurize: item -> features; it may add features for `finish`.
      compute: name -> int32 `[B, longest]`, padded with zeros (or strings `[B]`), to name ->
        array or tensor `[B, ...]`.
      inputs: names of the features that `compute` takes.
      finish: features of an item and its rows of the outputs -> result; by default those rows.
      batch_size: B.
      chunk_size: a larger one means less padding, and more memory for results that wait.
      batch_tokens: a batch may have more than `batch_size` items up to this number of tokens,
        padding included: small batches of short items do not keep a processor busy.
      batch_shapes: the shapes of all batches instead, whatever the other sizes say, for results
        that do not depend on the batch; `compute` has to be traced for them.

    Raises:
      ValueError: a size is below 1.
    """
    for name, value in (("batch_size", batch_size), ("chunk_size", chunk_size)):
      if value < 1:
        raise ValueError(f"{name} is {value}, but must be at least 1.")
    self.batch_size = batch_size
    self.chunk_size = chunk_size
    self.batch_tokens = batch_tokens
    self._batch_shapes = batch_shapes
    self._featurize = featurize
    self._compute = compute
    self._inputs = tuple(inputs)
    self._finish = finish or (lambda features, outputs: dict(outputs))

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
    while chunk := list(itertools.islice(features, self.chunk_size)):
      yield from self._results(chunk)

  def _featurized(self, items: Iterable, source: text_lines.Source | None) -> Iterator[Features]:
    for number, item in enumerate(items, start=1):
      try:
        yield self._featurize(item)
      except ValueError as error:
        if source is None:
          raise
        raise ValueError(f"{text_lines.place(source, number)}: {error}") from None

  def _results(self, features: list[Features]) -> list:
    lengths = [self._length(each) for each in features]
    results = [None] * len(features)
    batches = self._batch_shapes.batches(lengths) if self._batch_shapes else self._batches(lengths)
    for chosen, shape in batches:
      outputs = self._outputs([features[index] for index in chosen], shape)
      for row, index in enumerate(chosen):
        rows = {name: array[row] for name, array in outputs.items()}
        results[index] = self._finish(features[index], rows)
    return results

  def _batches(self, lengths: Sequence[int]) -> Iterator[tuple[list[int], None]]:
    """The items of each batch, shortest first: `batch_size`, or more if they are short."""
    shortest_first = sorted(range(len(lengths)), key=lengths.__getitem__)
    start = 0
    while start < len(lengths):
      stop = min(start + self.batch_size, len(lengths))
      while (
        stop < len(lengths)
        # An empty text has length 0, and counts: with a batch size of 1 it is alone, too.
        and (stop + 1 - start) * max(1, lengths[shortest_first[stop]]) <= self.batch_tokens
      ):
        stop += 1
      yield shortest_first[start:stop], None
      start = stop

  def _length(self, features: Features) -> int:
    """The length of the longest list of ids, or the number of characters."""
    values = [features[name] for name in self._inputs]
    if any(isinstance(value, str) for value in values):
      return sum(len(value) if isinstance(value, str) else sum(map(len, value)) for value in values)
    return max(map(len, values))

  def _outputs(self, rows: list[Features], shape: Shape | None) -> dict[str, np.ndarray]:
    batch = {name: _stacked([features[name] for features in rows], shape) for name in self._inputs}
    advice = f"Lower batch_size={self.batch_size}, or shorten the texts (max_seq_length)."
    with out_of_memory.explained(advice):
      outputs = {name: np.asarray(value) for name, value in self._compute(batch).items()}
    for name, array in outputs.items():
      if array.shape[:1] != (shape.texts if shape else len(rows),):
        raise ValueError(f"The model's output {name!r} is {array.shape} for {len(rows)} items.")
    return outputs

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
    dtype: str = "float32",
    batch_invariant: bool = False,
  ) -> "Predictor":
    """Encodes texts, or pairs of texts, as vectors.

    The other arguments are those of `load_model.load_model`. Texts longer than `max_seq_length`
    are truncated; None is 128, or fewer where the model can read no more.

    Args:
      layers: the layer of the vectors, -1 for the last; or several.
      pooling: see `layer_vectors`; by default that of the model, if `run_similarity.py` or
        sentence-transformers trained it, else `mean`.
      batch_size: texts in a batch; more of short ones, see `sentence_vectors`.
      dtype: of matrix products.
      batch_invariant: whether a text's vectors have the same bits whatever texts are around it, and
        whatever `batch_size` is; see `fixed_batch_shapes.py`.

    Returns:
      A predictor whose results are float32 `[W]` for one layer and `[L, W]` for several; with
      pooling `none`, `[S, W]` and `[S, L, W]`, where S is the number of the text's pieces.

    Raises:
      ValueError: a file is missing or bad, or they do not belong together.
    """
    config, tokenizer, prefix = load_model(
      init_checkpoint, bert_config_file, vocab_file, do_lower_case, max_seq_length
    )
    max_seq_length = readable_length(max_seq_length, config.longest_sequence)
    pooling = sentence_pooling.choose(pooling, prefix, "mean")
    indexes = [layers] if isinstance(layers, int) else list(layers)
    batches = batching(config, len(indexes), pooling, max_seq_length, batch_size, batch_invariant)
    build = layer_vectors(config, indexes, pooling, dtype, batch_shapes=batches.batch_shapes)

    def finish(features, outputs):
      vectors = own_vectors(features, outputs["vectors"], pooling)
      return vectors[..., 0, :] if isinstance(layers, int) else vectors

    return cls(
      functools.partial(text_features, tokenizer, max_seq_length=max_seq_length),
      load_graph(build, INPUTS, prefix, optional=("bert/pooler/",)),
      INPUTS,
      finish,
      *batches,
    )

  @classmethod
  def from_run(
    cls,
    output_dir: str,
    *,
    vocab_file: str | None = None,
    dtype: str = "float32",
    batch_size: int = 32,
    chunk_size: int = 1024,
    batch_invariant: bool = False,
    **options,
  ) -> "Predictor":
    """Loads the fine-tuned model of a run: its best checkpoint, or else the newest.

    Args:
      output_dir: `--output_dir` of a run that fine-tuned; it has everything but the vocabulary.
      vocab_file: by default vocab.txt in that folder, or in its export.
      dtype: of matrix products.
      batch_size: items in a batch.
      chunk_size: see `__init__`.
      batch_invariant: whether an answer has the same bits whatever items are around it: each item
        is then computed alone.
      **options: see `load_run.load_run`.

    Returns:
      As `from_saved_model`. Models of run_classifier.py always take a second text.

    Raises:
      ValueError: see `load_run.load_run`.
    """
    from bert.predicting import load_run

    function = load_run.load_run(output_dir, vocab_file, dtype, **options)
    return cls._of_texts(function, 1 if batch_invariant else batch_size, chunk_size)

  @classmethod
  def from_saved_model(
    cls,
    saved_model: str,
    batch_size: int = 32,
    chunk_size: int = 1024,
    batch_invariant: bool = False,
  ) -> "Predictor":
    """Loads a fine-tuned model that `--do_export` wrote.

    The other arguments are those of `from_run`.

    Args:
      saved_model: the folder of the task's model, or the export's folder around `task`.

    Returns:
      A predictor whose items are texts, pairs, or dicts of the model's inputs by name, and whose
      results are dicts of its outputs: strings, numbers, lists of strings, and arrays. The
      docstring of this module has a table.

    Raises:
      ValueError: the model does not take strings.
      OSError: the folder holds no SavedModel.
    """
    function = load_signature(saved_model)
    return cls._of_texts(function, 1 if batch_invariant else batch_size, chunk_size)

  @classmethod
  def _of_texts(cls, function: LoadedFunction, batch_size: int, chunk_size: int) -> "Predictor":
    def featurize(item):
      texts = name_texts(item, function.inputs, function.list_inputs)
      if function.needs_pairs and not texts["text_b"].strip():
        raise ValueError(
          f'{item!r:.80} is one text, but this model compares two, as in "It rains. ||| It is '
          'wet.". Vectors of single texts: predict.py --task=vectors, Predictor.from_checkpoint.'
        )
      return texts

    return cls(featurize, function, function.inputs, _own_answers, batch_size, chunk_size)


def _stacked(rows: Sequence, shape: Shape | None = None) -> Any:
  """Strings unchanged; lists as an array of that shape, or `[B, longest]`, padded with 0 or "".

  Example:
    >>> _stacked([[1], [2, 3]]).tolist()
    [[1, 0], [2, 3]]
    >>> _stacked([["a"], ["b", "cc"]]).tolist()
    [['a', ''], ['b', 'cc']]
  """
  if isinstance(rows[0], str):
    return rows
  is_text = any(row and isinstance(row[0], str) for row in rows)
  shape = shape or Shape(len(rows), max(map(len, rows)))
  stacked = np.zeros(shape, object if is_text else np.int32)
  if is_text:
    stacked[:] = ""
  for row, values in enumerate(rows):
    stacked[row, : len(values)] = values
  return stacked


# ---------------------------------------------------------------------------------------------
# Inputs and outputs of models that take texts.


def name_texts(
  item: str | tuple | Mapping[str, Any], names: Sequence[str], list_names: Sequence[str] = ()
) -> dict[str, Any]:
  """The inputs of a model by name, from an item.

  Args:
    item: a text, a pair of texts, or a dict of them. `text_b` may be missing or None, and `text`
      and `text_pair`, the names of transformers, are accepted for `text_a` and `text_b`.
    names: of the model's inputs.
    list_names: of those inputs that are lists of texts.

  Raises:
    ValueError: the model takes other inputs.

  Example:
    >>> name_texts("Hi.", ["text_a", "text_b"])
    {'text_a': 'Hi.', 'text_b': ''}
    >>> name_texts({"text": "Hi."}, ["text_a", "text_b"])
    {'text_a': 'Hi.', 'text_b': ''}
    >>> name_texts(("Who?", "Me."), ["context", "question"])
    {'question': 'Who?', 'context': 'Me.'}
    >>> name_texts(("He", ["is.", "are."]), ["choices", "context"], ["choices"])
    {'context': 'He', 'choices': ['is.', 'are.']}
  """
  texts = item
  if set(names) <= {"text", "text_a", "text_b"}:
    texts = _one_or_two(item, names)
  elif isinstance(item, str):
    texts = dict.fromkeys(names[:1], item)
  elif isinstance(item, (tuple, list)):
    inputs = (kind.inputs for kind in kinds.registered().values())
    pair: Sequence[str] = next((found for found in inputs if set(found) == set(names)), ())
    texts = dict(zip(pair, item, strict=False)) if len(pair) == len(item) else {}
  if (
    not isinstance(texts, Mapping)
    or set(texts) != set(names)
    or not all(_is_input(texts[name], name in list_names) for name in names)
  ):
    described = (f"{name} (a list)" if name in list_names else name for name in names)
    raise ValueError(
      f"{item!r:.80} does not fit this model, whose inputs are {', '.join(described)}."
    )
  return dict(texts)


def _one_or_two(item, names: Sequence[str]) -> dict[str, str]:
  """The inputs of a model of one text or two; empty if the item has other ones."""
  try:
    text_a, text_b = text_pair(item)
  except ValueError:
    return {}
  if "text_b" not in names:
    return {names[0]: text_a} if text_b is None else {}
  if text_b is None and isinstance(item, (tuple, list)):
    return {}  # a pair with a hole is rather a mistake
  return {"text_a": text_a, "text_b": text_b or ""}


def _is_input(value, is_list: bool) -> bool:
  """Whether the value is a text, or a list of non-empty texts: empty ones are padding."""
  if not is_list:
    return isinstance(value, str)
  are_texts = isinstance(value, (list, tuple)) and all(isinstance(text, str) for text in value)
  return are_texts and len(value) > 0 and all(value)


def _own_answers(features: Features, outputs: Arrays) -> dict[str, Any]:
  """The outputs of one item, without the padding of its words or choices to the longest item."""
  own = outputs.get("num_words", outputs.get("num_tokens"))
  own = len(features["choices"]) if "choices" in features else own
  answers = {
    name: _plain(value if own is None or np.ndim(value) == 0 else value[:own])
    for name, value in sorted(outputs.items())  # a SavedModel stores them in any order
  }
  if "tags" in answers and "text" in features:
    answers["entities"] = _entities(features["text"], answers)
  return answers


def _entities(text: str, answers: Mapping[str, Any]) -> list[dict[str, Any]]:
  """The entities that tags encode, as in `predictions.jsonl` of run_ner.py; none of plain tags."""
  from bert.tasks import label_schemes, tagging

  tags, scheme = answers["tags"], label_schemes.recognise(answers["tags"])
  found = [] if scheme == "plain" else label_schemes.entities_of(tags, scheme)
  places = answers["starts"], answers["ends"]
  return tagging.entity_records(text, *places, found, answers["probabilities"])


def _plain(value):
  """Bytes as text, NumPy's numbers as Python's; arrays of bytes as lists of text."""
  if isinstance(value, bytes):
    return value.decode("utf-8", "replace")
  if isinstance(value, np.ndarray):
    return [_plain(entry) for entry in value] if value.dtype.kind in "OS" else value
  return value.item() if isinstance(value, np.generic) else value
