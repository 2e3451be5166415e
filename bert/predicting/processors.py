"""What is around an engine, without weights: items to rows of numbers, rows' outputs to results.

  processor = AnswerProcessor(decoder)           # or VectorProcessor, TextProcessor, ...
  rows = processor.featurize(("It rains.", "It is wet."))
  processor.finish(rows, outputs_of_each_row)

A processor and an engine are a `predictor.Predictor`; a server has them in two processes.
`servable.py` finds the processors of a folder, and how to load their engines.

Letters in shapes: S = sequence length of a row, L = number of requested layers, W = hidden size.
"""

import sys
import types
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from bert.model.configuration import BertConfig
from bert.predicting import token_ids
from bert.predicting.sentence_vectors import (
  Batching,
  batching,
  own_vectors,
  text_features,
  text_pair,
)
from bert.predicting.vector_files import Layout, TextVectors
from bert.tasks import kinds
from bert.tasks.decoding import Decoder, Row, check_length, plain
from bert.text.sequence_layout import layout_of

Outputs = Mapping[str, np.ndarray]  # of a row
_CHARACTERS_PER_TOKEN = 4  # of English, about
_CHUNK_SIZE = 1024  # rows that are sorted by length together


class ItemRows(list):
  """The rows of an item, which they remember."""

  def __init__(self, item: Any, rows: Iterable[Row]):
    super().__init__(rows)
    self.item = item


class Processor:
  """From an item to rows, and from their outputs to the result.

  Attributes:
    inputs: names of an item's texts.
    list_inputs: those of them that are lists of texts.
    padding: what fills up shorter rows of a batch, by the name of the input; 0 by default.
    max_seq_length: of a row, in tokens; None where it is not known.
    has_scores: whether the engine's outputs are scores, and not the answers themselves.
    decoder: says what answers are; None of other results, or where it is not known.
    tokenizer: of the model; None where it is not known.
    texts_in: name of a text -> its column in the tables of the run, as far as that is known.
  """

  inputs: tuple[str, ...] = ("text",)
  list_inputs: tuple[str, ...] = ()
  padding: Mapping[str, int] = {}
  max_seq_length: int | None = None
  has_scores: bool = True
  decoder: Decoder | None = None
  tokenizer: Any = None
  texts_in: Mapping[str, Any] = types.MappingProxyType({})

  def featurize(self, item: Any) -> ItemRows:
    """Makes the rows of an item.

    Raises:
      ValueError: the model does not take it.
    """
    raise NotImplementedError

  def finish(self, rows: ItemRows, outputs: Sequence[Outputs]) -> Any:
    """Makes the result of an item from the outputs of its rows."""
    raise NotImplementedError

  def own_outputs(self, rows: ItemRows, outputs: Sequence[Outputs]) -> list[Outputs]:
    """Returns the outputs of rows without what is of padding."""
    del rows
    return list(outputs)

  def batching(self, batch_size: int, batch_invariant: bool) -> Batching:
    """Returns how rows become batches; one by one where no bit may depend on other rows."""
    return Batching(1 if batch_invariant else batch_size, _CHUNK_SIZE, 0, None)

  def num_tokens(self, row: Row) -> int:
    """Counts the tokens of a row, special ones included."""
    return len(row["input_ids"])

  def trial_items(self) -> list[Any]:
    """Makes a short item and one that fills the longest row, as a first trial of an engine."""
    return [self._item("a"), self._item("a " * (self.max_seq_length or 128))]

  def _item(self, text: str) -> Any:
    return {name: [text, text] if name in self.list_inputs else text for name in self.inputs}


# ---------------------------------------------------------------------------------------------
# Fine-tuned models.


class AnswerProcessor(Processor):
  """The task that a model was fine-tuned for.

  A dict with `"truncate": False` is refused where the model would not read all of it.
  """

  decoder: Decoder

  def __init__(self, decoder: Decoder):
    """Takes what the task says."""
    self.decoder = decoder
    self.tokenizer = decoder.tokenizer
    self.inputs = tuple(decoder.inputs)
    self.list_inputs = tuple(decoder.list_inputs)
    self.needs_pairs = decoder.needs_pairs
    self.padding = decoder.padding
    self.max_seq_length = decoder.max_seq_length

  def featurize(self, item):
    """See `Processor`."""
    item, is_truncated = _whether_truncated(item)
    texts = self.decoder.other_item(item) or named_texts(self, item)
    if not is_truncated:
      self.decoder.check_not_truncated(texts)
    return ItemRows(texts, self.decoder.rows(texts))

  def finish(self, rows, outputs):
    """See `Processor`; the result is a dict."""
    return self.decoder.decode(rows.item, rows, self.own_outputs(rows, outputs))

  def own_outputs(self, rows, outputs):
    """See `Processor`."""
    return [
      {
        name: value[: len(row["input_ids"])] if self.decoder.is_of_tokens(name) else value
        for name, value in its_outputs.items()
      }
      for row, its_outputs in zip(rows, outputs, strict=True)
    ]


class TextProcessor(Processor):
  """A model that takes texts itself: a task's SavedModel. Its tokens are not known, but guessed."""

  has_scores = False

  def __init__(
    self,
    inputs: Sequence[str],
    needs_pairs: bool = False,
    decoder: Decoder | None = None,
  ):
    """Takes the names of the model's inputs, and whether it compares two texts."""
    self.decoder = decoder
    self.inputs = tuple(inputs)
    self.needs_pairs = needs_pairs

  def featurize(self, item):
    """See `Processor`."""
    item, is_truncated = _whether_truncated(item)
    if not is_truncated:
      raise ValueError("A SavedModel truncates its texts itself: leave out `truncate`.")
    texts = named_texts(self, item)
    return ItemRows(texts, [texts])

  def finish(self, rows, outputs):
    """See `Processor`; the result is a dict, without the padding to the longest of a batch."""
    own: Any = outputs[0].get("num_words", outputs[0].get("num_tokens"))
    return {
      name: plain(value if own is None or np.ndim(value) == 0 else value[:own])
      for name, value in sorted(outputs[0].items())  # a SavedModel stores them in any order
    }

  def num_tokens(self, row):
    """Guesses the number of tokens."""
    return 2 + sum(map(len, row.values())) // _CHARACTERS_PER_TOKEN


def is_text(value: Any) -> bool:
  """Tells whether a value is one text."""
  return isinstance(value, str)


# ---------------------------------------------------------------------------------------------
# Vectors.

_NOT_TEXTS = ("words", "token_ids")


class VectorProcessor(Processor):
  """Texts, or pairs of texts, to vectors.

  An item can also be tokens: a list of ids, or a dict with `token_ids`, or with `words`, of which
  those in the vocabulary are taken as they are; [CLS] and [SEP] are added where they are missing. A
  dict with `"truncate": False` is refused where it is longer than `max_seq_length`.
  """

  def __init__(
    self,
    tokenizer: Any,
    max_seq_length: int,
    config: BertConfig | None = None,
    pooling: str = "mean",
    layers: int | Sequence[int] = -1,
    is_of_layers: bool = False,
  ):
    """Takes what is known of the vectors.

    Args:
      tokenizer: of the model.
      max_seq_length: longer texts are cut.
      config: of the model, for `batching`.
      pooling: `none` where there is a vector for each token.
      layers: a number, or several, of which results have an axis.
      is_of_layers: whether the engine gives `[..., L, W]`, else `[..., W]` of the last layer.
    """
    self.max_seq_length = max_seq_length
    self.padding = {"input_ids": layout_of(tokenizer).pad_id}
    self.tokenizer = tokenizer
    self._config = config
    self._pooling = pooling
    self._has_axis = not isinstance(layers, int)
    self.layer_indexes: list[int] = [layers] if isinstance(layers, int) else list(layers)
    self._is_of_layers = is_of_layers

  def batching(self, batch_size, batch_invariant):
    """See `Processor`; TensorFlow's batches have fixed shapes instead."""
    alone = batch_invariant and not self._is_of_layers
    counts = (len(self.layer_indexes), self._pooling, self.max_seq_length)
    if alone:
      return batching(self._config, *counts, batch_size=1)._replace(batch_tokens=0)
    return batching(self._config, *counts, batch_size, batch_invariant)

  def featurize(self, item):
    """See `Processor`."""
    item, is_truncated = _whether_truncated(item)
    length = self.max_seq_length if is_truncated else sys.maxsize
    row = self._row(item, length)
    check_length(len(row["input_ids"]), self)
    return ItemRows(item, [row])

  def finish(self, rows, outputs):
    """See `Processor`; the result is float32 `[W]`, or as the engine gives it."""
    vectors = own_vectors(rows[0], outputs[0]["vectors"], self._pooling)
    if self._is_of_layers and not self._has_axis:
      return vectors[..., 0, :]
    return vectors[..., None, :] if self._has_axis and not self._is_of_layers else vectors

  def _row(self, item: Any, max_seq_length: int) -> Row:
    if isinstance(item, Mapping) and (given := [name for name in _NOT_TEXTS if name in item]):
      if len(item) > 1:
        raise ValueError(f"{given[0]} stand alone, without {', '.join(set(item) - {given[0]})}.")
      (tokens,) = item.values()
    elif isinstance(item, list) and not any(map(is_text, item)):
      given, tokens = ["token_ids"], item
    else:
      return text_features(self.tokenizer, item, max_seq_length)
    ids = self._ids_of_words(tokens) if given[0] == "words" else self._checked_ids(tokens)
    return self._row_of_ids(ids, max_seq_length)

  def _ids_of_words(self, words: Any) -> list[int]:
    if not isinstance(words, list) or not words or not all(map(is_text, words)):
      raise ValueError(f"words is {words!r:.80}, but must be a list of texts.")
    vocab = self.tokenizer.vocab
    pieces = [[word] if word in vocab else self.tokenizer.tokenize(word) for word in words]
    return [each for its in pieces for each in self.tokenizer.convert_tokens_to_ids(its)]

  def _checked_ids(self, ids: Any) -> list[int]:
    if not isinstance(ids, list) or not ids:
      raise ValueError(f"Expected a text, or a list of token ids, not {ids!r:.80}.")
    known = self.tokenizer.inv_vocab
    for each in ids:
      if type(each) is not int or each not in known:
        raise ValueError(
          f"{each!r:.40} is not a token id of this model, whose vocabulary has {len(known)} "
          f"tokens. {token_ids.REMEDY}"
        )
    ids = token_ids.without_padding(ids, layout_of(self.tokenizer).pad_id)
    if not {ids[0], ids[-1]} & set(self._ends()):
      token_ids.check_own(self.tokenizer, ids[: self.max_seq_length])
    return ids

  def _ends(self) -> tuple[int, int]:
    layout, vocab = layout_of(self.tokenizer), self.tokenizer.vocab
    return vocab[layout.cls], vocab[layout.sep]

  def _row_of_ids(self, ids: list[int], max_seq_length: int) -> Row:
    """Adds the special tokens that are missing around ids, and truncates before the last."""
    (cls, sep), layout = self._ends(), layout_of(self.tokenizer)
    inner = ids[int(ids[0] == cls) : len(ids) - int(ids[-1] == sep)]
    whole = [cls, *inner[: max_seq_length - 2], sep]
    first = whole.index(sep) + 1  # the number of tokens in the first text of a pair, or all
    segments = [0] * first + [int(layout.has_segments)] * (len(whole) - first)
    return {"input_ids": whole, "input_mask": [1] * len(whole), "segment_ids": segments}


class FeatureProcessor(VectorProcessor):
  """Texts, or pairs of texts, to `TextVectors`, with an axis of layers."""

  @property
  def layout(self) -> Layout:
    """What all results have in common."""
    longest = max(map(len, self.tokenizer.vocab))
    is_pooled = self._pooling != "none"
    return Layout(self.layer_indexes, self._config.hidden_size, is_pooled, longest)

  def finish(self, rows, outputs):
    """See `Processor`."""
    row, (text, _) = rows[0], text_pair(rows.item)
    return TextVectors(text, row["tokens"], row["input_ids"], super().finish(rows, outputs))


def _whether_truncated(item: Any) -> tuple[Any, bool]:
  """Takes `truncate` out of an item that has it; returns the rest, and its value."""
  if not isinstance(item, Mapping) or type(item.get("truncate")) is not bool:
    return item, True
  return {name: value for name, value in item.items() if name != "truncate"}, item["truncate"]


# ---------------------------------------------------------------------------------------------
# Texts of an item.


def named_texts(model: Any, item: Any) -> dict[str, Any]:
  """Returns the texts of an item by name.

  Args:
    model: has `inputs`, `list_inputs` and `needs_pairs`.
    item: see `name_texts`.

  Raises:
    ValueError: the model does not take the item.
  """
  texts = name_texts(item, model.inputs, model.list_inputs)
  if model.needs_pairs and not texts["text_b"].strip():
    raise ValueError(
      f'{item!r:.80} is one text, but this model compares two, as in "It rains. ||| It is '
      'wet.". Vectors of single texts: task=vectors, as of predict.py.'
    )
  return texts


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
    inputs = (kind.decoder_class().inputs for kind in kinds.registered().values())
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
