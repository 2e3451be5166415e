"""Where the pieces of a sentencepiece model come from: each piece's characters in the text.

`sentence_pieces.SentencePieceTokenizer` offers it as a method. The library says which bytes of its
input each piece covers; here they are followed back through NFKD, dropped accents and lower case.
"""

import itertools
import re
from collections.abc import Iterator

from bert.text.characters import WITHOUT_ACCENTS
from bert.text.offsets import Span, strip_with_spans

Located = tuple[str, int, int]  # token, start and end (exclusive)


def _without_accents(char: str) -> str:
  return WITHOUT_ACCENTS[ord(char)]


def prepared_with_spans(tokenizer, text: str) -> tuple[str, list[Span]]:
  """Returns `tokenizer.prepared(text)`, and for each of its characters the span it came from."""
  if not tokenizer.preprocess:
    return tokenizer.prepared(text), [(index, index + 1) for index in range(len(text))]
  spans: list[Span] = []
  end = 0  # of the word before
  for word in re.finditer(r"\S+", text):
    if end:
      spans.append((end, word.start()))
    end = word.end()
    sources = [(index, index + 1) for index in range(word.start(), end)]
    spans += strip_with_spans(_without_accents, word.group(), sources)[1]
  prepared = tokenizer.prepared(text)
  if len(prepared) != len(spans):
    raise ValueError(f"Offsets cannot be followed through the preparation of {text!r:.80}.")
  return prepared, spans


def locate_pieces(tokenizer, text: str) -> Iterator[Located]:
  """Finds the tokens of a text without special tokens, with start and end in it.

  A piece "▁" alone has an empty span before the character that follows.
  """
  prepared, spans = prepared_with_spans(tokenizer, text)
  for piece, start, end in _pieces_in_prepared(tokenizer, prepared):
    for part, first, last in _of_parts(piece, tokenizer.parts(piece), start, end):
      yield part, *_span(spans, first, last, len(text))


def _span(spans: list[Span], first: int, last: int, length: int) -> Span:
  if first == last:
    start = spans[first][0] if first < len(spans) else length
    return start, start
  return spans[first][0], max(end for _, end in spans[first:last])


def _pieces_in_prepared(tokenizer, prepared: str) -> Iterator[Located]:
  """Finds the library's tokens, with the characters of its input but for spaces around them."""
  from sentencepiece import sentencepiece_pb2

  found = sentencepiece_pb2.SentencePieceText()  # type: ignore[attr-defined] # made at import
  found.ParseFromString(tokenizer.processor.encode(prepared, out_type="serialized_proto"))
  first_bytes = itertools.accumulate((len(char.encode()) for char in prepared), initial=0)
  character_at = {byte: index for index, byte in enumerate(first_bytes)}
  for each in found.pieces:
    piece, start, end = each.piece, character_at[each.begin], character_at[each.end]
    while start < end and prepared[start].isspace():
      start += 1
    while end > start and prepared[end - 1].isspace():
      end -= 1
    if start == end:  # "▁", or one of several pieces of the character that follows
      while start < len(prepared) and prepared[start].isspace():
        start += 1
      is_part = bool(_content(piece)) and start < len(prepared)
      end = start + 1 if is_part else start
    yield piece, start, end


def _content(piece: str) -> str:
  return piece.replace("▁", "")


def _of_parts(piece: str, parts: list[str], start: int, end: int) -> list[Located]:
  """Returns spans of the parts of a piece, which covers `start` to `end`.

  Example:
    >>> _of_parts("08,", ["▁0", "8", ","], 5, 8)
    [('▁0', 5, 6), ('8', 6, 7), (',', 7, 8)]
  """
  contents = list(map(_content, parts))
  if not end - start == len(_content(piece)) == sum(map(len, contents)):
    return [(part, start, end) for part in parts]  # normalization changed it
  located = []
  for part, content in zip(parts, contents, strict=True):
    located.append((part, start, start + len(content)))
    start += len(content)
  return located
