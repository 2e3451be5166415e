"""Where tokens come from: each token's characters in the original text.

  located = locate_tokens(tokenizer, "Où est-il?")
  located[0]                          # TokenSpan(token="ou", start=0, end=2, word_id=0)

Runs the tokenizer's own steps, character by character where they change a text, together with the
span of every character. `tokenization.FullTokenizer` offers the result as a method.
"""

import collections
import itertools
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

Span = tuple[int, int]  # start and end (exclusive) in the original text, in characters

Locate = Callable[[Any, str], Iterable[tuple[str, int, int]]]

_CANNOT_FOLLOW = "Offsets cannot be followed through the overridden methods of this tokenizer"


class TokenSpan(NamedTuple):
  """A token and its source: `text[start:end]`, in the word at index `word_id`."""

  token: str
  start: int
  end: int
  word_id: int


def locate_tokens(tokenizer, text: str, locate: Locate, dropped: str = "") -> list[TokenSpan]:
  """See `tokenization.FullTokenizer.tokenize_with_offsets`.

  `locate` makes of the tokenizer and a text without special tokens its tokens, each with start and
  end; the tokenizer does not split at the blanks `dropped`, though `str.split` does.
  """
  words = word_ids(text, dropped)
  located: list[TokenSpan] = []
  offset = 0
  for chunk in tokenizer.split_at_special_tokens(text):
    is_special = chunk in tokenizer.special_tokens
    for token, start, end in [(chunk, 0, len(chunk))] if is_special else locate(tokenizer, chunk):
      start, end = start + offset, end + offset
      located.append(TokenSpan(token, start, end, words[min(start, len(text) - 1)]))
    offset += len(chunk)
  # Always true for the classes of `tokenization`, but subclasses may override methods.
  if [span.token for span in located] != tokenizer.tokenize(text):
    raise ValueError(f"{_CANNOT_FOLLOW}: other tokens than tokenize() for {text!r:.80}")
  return located


def locate_word_pieces(tokenizer, chunk: str) -> Iterator[tuple[str, int, int]]:
  """Yields the tokens of text without special tokens, with start and end in `chunk`."""
  for word, spans in words_with_spans(tokenizer.basic_tokenizer, chunk):
    pieces = tokenizer.wordpiece_tokenizer.tokenize(word)
    first = 0
    for piece in pieces:
      # A single piece is the whole word, even if it is [UNK]; later ones start with "##".
      length = len(word) if len(pieces) == 1 else len(piece) - (2 if first else 0)
      covered = spans[first : first + length]
      if not covered:
        raise ValueError(f"{_CANNOT_FOLLOW}: {word!r} does not consist of {pieces!r:.80}")
      yield piece, min(start for start, _ in covered), max(end for _, end in covered)
      first += length


def words_with_spans(basic_tokenizer, text: str) -> Iterator[tuple[str, list[Span]]]:
  """Yields the tokens of a `BasicTokenizer`, each with the spans that its characters came from."""

  def cleaned_and_spaced(char: str) -> str:
    return basic_tokenizer._tokenize_chinese_chars(basic_tokenizer._clean_text(char))

  spans = [(index, index + 1) for index in range(len(text))]
  text, spans = _map_characters(cleaned_and_spaced, text, spans)
  for match in re.finditer(r"\S+", text):
    word, word_spans = match.group(), spans[match.start() : match.end()]
    if basic_tokenizer.do_lower_case or basic_tokenizer.strips:
      word, word_spans = _lower_with_spans(basic_tokenizer, word, word_spans)
    tokens = basic_tokenizer._run_split_on_punc(word)
    if "".join(tokens) != word:
      raise ValueError(f"{_CANNOT_FOLLOW}: {word!r:.80} was split into {''.join(tokens)!r:.80}")
    start = 0
    for token in tokens:
      yield token, word_spans[start : start + len(token)]
      start += len(token)


def _lower_with_spans(basic_tokenizer, word: str, spans: list[Span]) -> tuple[str, list[Span]]:
  lower: Callable[[str], str] = str.lower if basic_tokenizer.do_lower_case else str
  strip = basic_tokenizer._run_strip_accents if basic_tokenizer.strips else str
  lowered = lower(word)  # the whole word, since a sigma at its end becomes another letter
  stripped = strip(lowered)
  if stripped == lowered and len(lowered) == len(word):  # most words
    return stripped, spans
  _, spans = _map_characters(lower, word, spans)
  chars, char_spans = strip_with_spans(strip, lowered, spans)
  return stripped, _reorder_spans(chars, char_spans, stripped)


def strip_with_spans(
  strip: Callable[[str], str], text: str, spans: list[Span]
) -> tuple[list[str], list[Span]]:
  """Strips each character of a word; an accent's span goes to the character before it.

  Example:
    >>> strip_with_spans(lambda char: char.strip("´"), "e´a", [(0, 1), (1, 2), (2, 3)])
    (['e', 'a'], [(0, 2), (2, 3)])
  """
  chars: list[str] = []
  kept_spans: list[Span] = []
  for char, (start, end) in zip(text, spans, strict=True):
    kept = strip(char)
    chars.extend(kept)
    kept_spans.extend([(start, end)] * len(kept))
    if not kept and kept_spans:
      kept_spans[-1] = (kept_spans[-1][0], end)
  return chars, kept_spans


def _map_characters(
  function: Callable[[str], str], text: str, spans: list[Span]
) -> tuple[str, list[Span]]:
  """Applies `function` to each character; each character of a result inherits the span.

  Example:
    >>> _map_characters(str.lower, "İI", [(0, 1), (1, 2)])
    ('i̇i', [(0, 1), (0, 1), (1, 2)])
  """
  results = [function(char) for char in text]
  inherited = [[span] * len(result) for span, result in zip(spans, results, strict=True)]
  return "".join(results), list(itertools.chain.from_iterable(inherited))


def _reorder_spans(chars: list[str], spans: list[Span], text: str) -> list[Span]:
  """Spans for `text`, which is `chars` in another order.

  Decomposition sorts combining characters, a few of which are not accents (Mc) and stay. The sort
  is stable, so equal characters keep their order.
  """
  if "".join(chars) == text:
    return spans
  if sorted(chars) != sorted(text):
    raise ValueError(f"{_CANNOT_FOLLOW}: {''.join(chars)!r:.80} became {text!r:.80}")
  spans_of = collections.defaultdict(collections.deque)
  for char, span in zip(chars, spans, strict=True):
    spans_of[char].append(span)
  return [spans_of[char].popleft() for char in text]


def word_ids(text: str, dropped: str = "") -> list[int]:
  """Returns, for each character, the index of the word that it is in (or that it follows).

  Example:
    >>> word_ids(" to be")
    [-1, 0, 0, 0, 1, 1]
  """
  numbers = []
  word_id = -1
  after_space = True
  for char in text:
    is_space = char.isspace() and char not in dropped
    if after_space and not is_space:
      word_id += 1
    after_space = is_space
    numbers.append(word_id)
  return numbers
