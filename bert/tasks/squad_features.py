"""SQuAD: from questions to windows, the input of the model.

A paragraph too long for one sequence is read through several overlapping windows:

  [CLS] question [SEP] window of the paragraph [SEP]

`generate_features` yields them one by one, so files of any size can be processed. They equal the
original's, in a fraction of its time. Pure Python and NumPy, no TensorFlow.
"""

import array
import functools
import itertools
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from absl import logging

from bert.tasks import squad_pieces
from bert.text.sequence_layout import Layout, layout_of
from bert.tokenization import printable_text

_FIRST_UNIQUE_ID = 1000000000
_LOGGED_EXAMPLES = 20

# Thai, Lao, Myanmar, Khmer, kana and Chinese characters.
_WITHOUT_SPACES = re.compile(
  "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
  "\U00020000-\U0003ffff]"
)

# With --pad_to_longest, this many windows are sorted by length together.
_SORTED_WINDOWS = 4096


class InputFeatures:
  """One window of one question.

  Attributes:
    unique_id: identifies the window among all of a file.
    example_index: the question's place in its file, from 0.
    doc_span_index: the window's place among those of its question, from 0.
    tokens: sub-word tokens, special ones included, no padding.
    token_to_orig_map: position in `tokens` -> index of the word in `doc_tokens`.
    token_is_max_context: position -> whether this window has most context around the token.
    input_ids: ids of `tokens`, then zeros.
    input_mask: 1 for each token, 0 for padding.
    segment_ids: 0 for the question, 1 for the paragraph, 0 for padding.
    start_position: position of the answer's first token; 0 if it is not in this window; None in
      prediction.
    end_position: position of its last token, likewise.
    is_impossible: whether the question has no answer.
    char_spans: of tokens of ALBERT and RoBERTa, position in `tokens` -> first and last character in
      the paragraph; else None.
  """

  char_spans: "WindowMap | None" = None

  def __init__(
    self,
    unique_id,
    example_index,
    doc_span_index,
    tokens,
    token_to_orig_map,
    token_is_max_context,
    input_ids,
    input_mask,
    segment_ids,
    start_position=None,
    end_position=None,
    is_impossible=None,
  ):
    self.unique_id = unique_id
    self.example_index = example_index
    self.doc_span_index = doc_span_index
    self.tokens = tokens
    self.token_to_orig_map = token_to_orig_map
    self.token_is_max_context = token_is_max_context
    self.input_ids = input_ids
    self.input_mask = input_mask
    self.segment_ids = segment_ids
    self.start_position = start_position
    self.end_position = end_position
    self.is_impossible = is_impossible


class WindowMap(Mapping):
  """Position in a sequence -> value, for the consecutive positions of a window.

  Reads like the dict that it replaces, in a twentieth of the memory: each of a hundred thousand
  windows has two of them.

  Example:
    >>> word_of = WindowMap(5, array.array("i", [0, 0, 1]))
    >>> word_of[7], 4 in word_of, dict(word_of)
    (1, False, {5: 0, 6: 0, 7: 1})

  Attributes:
    before: of a map to words, the pieces of the first word that are before the window.
  """

  __slots__ = ("_first", "_kind", "_values", "before")

  def __init__(
    self,
    first: int,
    values: Sequence,
    kind: Callable[[Any], Any] = int,
    before: Sequence[str] = (),
  ):
    """Maps `first`, `first + 1`, ... to `values`, each turned into a `kind`."""
    self._first, self._values, self._kind, self.before = first, values, kind, before

  def __getitem__(self, position):
    index = position - self._first
    if 0 <= index < len(self._values):
      return self._kind(self._values[index])
    raise KeyError(position)

  def __iter__(self):
    return iter(range(self._first, self._first + len(self._values)))

  def __len__(self):
    return len(self._values)

  def __repr__(self):
    return f"WindowMap({dict(self)})"


class _DocSpan(NamedTuple):
  """A window's part of the document, in tokens."""

  start: int
  length: int


class _Document(NamedTuple):
  """A paragraph in tokens; those of ALBERT and RoBERTa are words of their own and have a place."""

  pieces: list[str]
  word_of_piece: array.array
  first_piece_of_word: list[int]
  placed: squad_pieces.PlacedPieces | None = None


def convert_examples_to_features(
  examples: Iterable,
  tokenizer,
  max_seq_length: int,
  doc_stride: int,
  max_query_length: int,
  is_training: bool,
  output_fn: Callable[[InputFeatures], Any],
) -> None:
  """Calls `output_fn` with each window of `generate_features`."""
  for feature in generate_features(
    examples, tokenizer, max_seq_length, doc_stride, max_query_length, is_training
  ):
    output_fn(feature)


def generate_features(
  examples: Iterable,
  tokenizer,
  max_seq_length: int,
  doc_stride: int,
  max_query_length: int,
  is_training: bool,
  shown: int = _LOGGED_EXAMPLES,
) -> Iterator[InputFeatures]:
  """Yields the windows of all questions; those of the first ones are logged.

  Args:
    examples: of `read_squad_examples`.
    tokenizer: a `tokenization.FullTokenizer`.
    max_seq_length: tokens in a window, question and special ones included.
    doc_stride: number of tokens between the starts of two windows.
    max_query_length: longer questions are cut to this number of tokens.
    is_training: whether to give the answer's place.
    shown: of how many questions the windows are logged; those of the rest of the first 20 are debug
      messages.

  Raises:
    ValueError: the lengths leave no room for the text, or `doc_stride` is below 1.
  """
  check_lengths(tokenizer, max_seq_length, doc_stride, max_query_length)
  layout = layout_of(tokenizer)
  document_of = _document_reader(tokenizer)
  unique_id = _FIRST_UNIQUE_ID
  for example_index, example in enumerate(examples):
    query = _query(example, tokenizer, max_query_length)
    document = document_of(example)
    if document is None:
      continue
    target = _target_pieces(example, document, tokenizer) if is_training else None
    for span, feature in _windows(query, document, tokenizer, max_seq_length, doc_stride):
      feature.unique_id, feature.example_index = unique_id, example_index
      feature.is_impossible = example.is_impossible
      if is_training:
        positions = _positions_in_window(target, span, layout.start_of_second(len(query)))
        feature.start_position, feature.end_position = positions
        # ALBERT: of a window without the answer the question has none, either.
        if document.placed and positions == (0, 0):
          feature.is_impossible = True
      if example_index < _LOGGED_EXAMPLES:
        level = logging.INFO if example_index < shown else logging.DEBUG
        _log_window(feature, is_training, level)
      yield feature
      unique_id += 1


def window_reader(
  tokenizer, max_seq_length: int, doc_stride: int, max_query_length: int
) -> Callable[[Any], list[InputFeatures]]:
  """Makes a function from a question to its windows, which counts and logs nothing.

  The numbers of windows are unique among those of their question. Arguments and errors are those of
  `generate_features`.
  """
  check_lengths(tokenizer, max_seq_length, doc_stride, max_query_length)
  document_of = _document_reader(tokenizer)

  def read(example) -> list[InputFeatures]:
    document = document_of(example)
    if document is None:
      return []
    query = _query(example, tokenizer, max_query_length)
    found = _windows(query, document, tokenizer, max_seq_length, doc_stride)
    features = [feature for _, feature in found]
    for feature in features:
      feature.unique_id = feature.doc_span_index
    return features

  return read


def check_lengths(tokenizer, max_seq_length: int, doc_stride: int, max_query_length: int) -> None:
  """Raises a ValueError if they leave no room for the text, or `doc_stride` is below 1."""
  if doc_stride < 1:
    raise ValueError(f"doc_stride is {doc_stride}, but must be at least 1.")
  special = layout_of(tokenizer).num_special(True)
  if max_query_length < 0 or max_seq_length <= max_query_length + special:
    raise ValueError(
      f"The max_seq_length ({max_seq_length}) must be greater than max_query_length "
      f"({max_query_length}) + {special}"
    )


def _query(example, tokenizer, max_query_length) -> list[str]:
  # A space before the question would be a part of RoBERTa's first token.
  return tokenizer.tokenize(example.question_text.lstrip())[:max_query_length]


def _document_reader(tokenizer) -> Callable[[Any], _Document | None]:
  """Makes a function from an example to its paragraph in tokens; None without places in it."""
  if place := squad_pieces.placed_pieces(tokenizer):

    def read(example) -> _Document | None:
      placed = place(example.context)
      if placed is None:
        return None
      return _Document(placed.pieces, array.array("i", range(len(placed.pieces))), [], placed)

    return read
  # Words repeat: only one in thirty words of a SQuAD file is new.
  tokenize_word = functools.lru_cache(maxsize=1 << 18)(tokenizer.tokenize)
  return lambda example: _tokenize_document(example.doc_tokens, tokenize_word)


def _tokenize_document(words, tokenize_word) -> _Document:
  pieces, word_of_piece, first_piece_of_word = [], array.array("i"), []
  for index, word in enumerate(words):
    first_piece_of_word.append(len(pieces))
    of_word = tokenize_word(word)
    pieces += of_word
    word_of_piece.extend([index] * len(of_word))
  return _Document(pieces, word_of_piece, first_piece_of_word)


def _target_pieces(example, document, tokenizer) -> tuple[int, int] | None:
  """Finds first and last token of the answer in the document; None without an answer."""
  if example.is_impossible:
    return None
  if document.placed:
    first = example.answer_start
    ends = first, first + len(example.orig_answer_text) - 1
    (start, _), (_, end) = map(document.placed.piece_of_char, ends)
    return start, end
  start = document.first_piece_of_word[example.start_position]
  end = len(document.pieces) - 1
  if example.end_position < len(example.doc_tokens) - 1:
    end = document.first_piece_of_word[example.end_position + 1] - 1
  place = _pieces_at_answer_start(example, document, tokenizer)
  return _improve_answer_span(
    document.pieces, start, end, tokenizer, example.orig_answer_text, place
  )


class _Place(NamedTuple):
  """Where the file says that an answer is, in tokens."""

  first: int
  last: int
  # Whether they replace the answer's words where its own tokens are not found there: its text is at
  # that place, and its words have letters of a script without spaces, so each may be a sentence.
  replaces_words: bool


def _improve_answer_span(
  doc_tokens: Sequence[str],
  input_start: int,
  input_end: int,
  tokenizer,
  orig_answer_text: str,
  place: _Place | None = None,
) -> tuple[int, int]:
  """Narrows an answer's words down to its exact tokens, if found: the first and the last.

  The answer "1895" lies in the word "(1895-1943)."; of its tokens only `1895` is the answer. The
  answer "Japan" within "Japanese" stays the whole word, which is a single token. `input_start` is
  the first token of the answer's first word, `input_end` the last of its last word.

  Of several occurrences the original takes the first; this takes the closest to `place`.
  """
  answer = tokenizer.tokenize(orig_answer_text)
  length = len(answer)
  starts = [
    start
    for start in range(input_start, input_end - length + 2)
    if answer and doc_tokens[start : start + length] == answer
  ]
  if place and place.replaces_words and place.first not in starts:
    return place.first, place.last
  if not starts:
    return input_start, input_end
  start = min(starts, key=lambda each: abs(each - place.first)) if place else starts[0]
  return start, start + length - 1


def _pieces_at_answer_start(example, document, tokenizer) -> _Place | None:
  """Finds the tokens of the answer's first and last character; None if its place is not known."""
  if example.answer_start is None or example.word_starts is None:
    return None

  def tokens_before(char: int, word: int) -> tuple[int, bool]:
    # Tokens are chosen from left to right, so those before a character do not depend on the rest.
    part = tokenizer.tokenize(example.doc_tokens[word][: char - example.word_starts[word]])
    first = document.first_piece_of_word[word]
    pairs = zip(part, document.pieces[first : first + len(part)], strict=False)
    count = sum(1 for _ in itertools.takewhile(lambda pair: pair[0] == pair[1], pairs))
    return first + count, count == len(part)

  start, limit = example.answer_start, example.answer_start + len(example.orig_answer_text)
  first, _ = tokens_before(start, example.start_position)
  after, is_whole = tokens_before(limit, example.end_position)
  words = "".join(example.doc_tokens[example.start_position : example.end_position + 1])
  return _Place(
    first,
    max(first, after - 1 if is_whole else after),
    (example.context or "")[start:limit] == example.orig_answer_text
    and _WITHOUT_SPACES.search(words) is not None,
  )


def _doc_spans(num_pieces: int, max_length: int, doc_stride: int) -> list[_DocSpan]:
  """Windows from start to end; the last one has the remaining tokens.

  Example:
    >>> [tuple(span) for span in _doc_spans(10, 6, 3)]
    [(0, 6), (3, 6), (6, 4)]
  """
  spans = []
  start = 0
  while start < num_pieces:
    length = min(num_pieces - start, max_length)
    spans.append(_DocSpan(start, length))
    if start + length == num_pieces:
      break
    start += min(length, doc_stride)
  return spans


def _max_context_flags(doc_spans: Sequence[_DocSpan], num_pieces: int) -> list[bytes]:
  """Tells of each window's tokens, a byte each, which it shows with more context than any other.

  A token may lie in several windows; only one of them may answer with it, the one that has most
  tokens on the side where it has fewer. (Of `bought` in "the man went to the store and bought" and
  "to the store and bought a gallon of", the second: 3 to its right, 4 to its left.)
  """
  best_scores = np.full(num_pieces, -np.inf)
  best_indexes = np.zeros(num_pieces, np.int32)
  for index, (start, length) in enumerate(doc_spans):
    left = np.arange(length)
    scores = np.minimum(left, left[::-1]) + 0.01 * length
    is_better = scores > best_scores[start : start + length]
    best_scores[start : start + length][is_better] = scores[is_better]
    best_indexes[start : start + length][is_better] = index
  return [
    (best_indexes[start : start + length] == index).tobytes()
    for index, (start, length) in enumerate(doc_spans)
  ]


def _windows(
  query, document, tokenizer, max_seq_length, doc_stride
) -> Iterator[tuple[_DocSpan, InputFeatures]]:
  """Yields a question's windows; the caller sets the question's index and the answer."""
  layout: Layout = layout_of(tokenizer)
  capacity = max_seq_length - len(query) - layout.num_special(True)
  spans = _doc_spans(len(document.pieces), capacity, doc_stride)
  context_flags = _max_context_flags(spans, len(document.pieces))
  first = layout.start_of_second(len(query))
  for index, (span, flags) in enumerate(zip(spans, context_flags, strict=True)):
    end = span.start + span.length
    before = []
    if document.first_piece_of_word:
      word = document.word_of_piece[span.start]
      before = document.pieces[document.first_piece_of_word[word] : span.start]
    tokens, segment_ids = layout.join(query, document.pieces[span.start : end])
    pad_ids, padding = layout.padding(tokens, max_seq_length)
    feature = InputFeatures(
      unique_id=None,
      example_index=None,
      doc_span_index=index,
      tokens=tokens,
      token_to_orig_map=WindowMap(first, document.word_of_piece[span.start : end], before=before),
      token_is_max_context=WindowMap(first, flags, bool),
      input_ids=tokenizer.convert_tokens_to_ids(tokens) + pad_ids,
      input_mask=[1] * len(tokens) + padding,
      segment_ids=segment_ids + padding,
    )
    if placed := document.placed:
      feature.char_spans = WindowMap(first, placed.spans[span.start : end], squad_pieces.pair)
    yield span, feature


def _positions_in_window(target, span: _DocSpan, first: int) -> tuple[int, int]:
  """Returns start and end position of the answer in a window; (0, 0) if it is not wholly inside.

  The document's tokens begin at position `first` of the window.
  """
  if target is None:
    return 0, 0
  start, end = target
  if start < span.start or end > span.start + span.length - 1:
    return 0, 0
  return start - span.start + first, end - span.start + first


def _log_window(feature: InputFeatures, is_training: bool, level: int) -> None:
  logging.log(level, "*** Example ***")
  for name in ("unique_id", "example_index", "doc_span_index"):
    logging.log(level, "%s: %s", name, getattr(feature, name))
  logging.log(level, "tokens: %s", " ".join(map(printable_text, feature.tokens)))
  for name in ("token_to_orig_map", "token_is_max_context"):
    pairs = (f"{position}:{value}" for position, value in getattr(feature, name).items())
    logging.log(level, "%s: %s", name, " ".join(pairs))
  for name in ("input_ids", "input_mask", "segment_ids"):
    logging.log(level, "%s: %s", name, " ".join(map(str, getattr(feature, name))))
  if is_training and feature.is_impossible:
    logging.log(level, "impossible example")
  elif is_training:
    start, end = feature.start_position, feature.end_position
    logging.log(level, "start_position: %d", start)
    logging.log(level, "end_position: %d", end)
    logging.log(level, "answer: %s", printable_text(" ".join(feature.tokens[start : end + 1])))


def shortest_first(features: Iterable[InputFeatures]) -> Iterator[InputFeatures]:
  """Sorts the windows of each chunk by length: a batch then needs little padding.

  In chunks, because a window with its ids takes some 10 kB.
  """
  features = iter(features)
  while chunk := list(itertools.islice(features, _SORTED_WINDOWS)):
    yield from sorted(chunk, key=lambda window: len(window.tokens))


def kept_light(
  features: Iterable[InputFeatures], kept: list[InputFeatures]
) -> Iterator[InputFeatures]:
  """Passes windows on, and keeps them in `kept` without the ids, which are in the file by then."""
  for feature in features:
    yield feature
    feature.input_ids = feature.input_mask = feature.segment_ids = None
    kept.append(feature)


def record_of(feature: InputFeatures, is_training: bool) -> dict[str, Any]:
  """Returns the features of a window's record; with `is_training` the answer's position, too."""
  record = {
    "unique_ids": feature.unique_id,
    "input_ids": feature.input_ids,
    "input_mask": feature.input_mask,
    "segment_ids": feature.segment_ids,
  }
  if is_training:
    record["start_positions"] = feature.start_position
    record["end_positions"] = feature.end_position
    record["is_impossible"] = int(bool(feature.is_impossible))  # nobody reads it
  return record
