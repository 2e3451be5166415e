"""Text files -> sentences.

A corpus is text in UTF-8: one sentence per line, an empty line ends a document. `TextFormat`
describes other supported formats. Files whose names end in `.gz` are compressed.

  statistics = TextStatistics()
  files = text_files.find_input_files("wiki/*.txt,books.txt")
  documents = split_documents(read_sentences(files, tokenizer, statistics))
  statistics.log()

`read_sentences` yields one sentence at a time, so memory need not grow with the text.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

from bert.text.corpus_statistics import TextStatistics
from bert.text.sentences import split_sentences
from bert.text.text_files import CorpusError, LinePlace, TextRange, describe_place, read_lines

_LONG_LINE = 1 << 20  # characters; a longer line is tokenized in parts


class TextFormat(NamedTuple):
  """The format of text files."""

  # Refuse bytes that are not UTF-8, instead of replacing and counting them.
  strict_utf8: bool = False
  split_sentences: bool = False  # each line is a paragraph, see `sentences.split_sentences`
  # If not empty, each line is a JSON object and a document; this field contains its text, whose
  # lines are sentences (or paragraphs).
  jsonl_field: str = ""


PLAIN_TEXT = TextFormat()


def read_sentences(
  input_files: Iterable[str],
  tokenizer,
  statistics: TextStatistics | None = None,
  text_format: TextFormat = PLAIN_TEXT,
  ends_document: Callable[[str], bool] | None = None,
) -> Iterator[list[str] | None]:
  """Yields tokens of each sentence that has any, and None for each end of a document.

  As in the original, the end of a file does not end a document, a line ends at `\\n`, and every
  `\\r` is dropped.

  Args:
    input_files: read in this order.
    tokenizer: such as a `tokenization.FullTokenizer`. Lines above a million characters reach it in
      pieces cut at spaces, which gives the same tokens and needs less memory.
    statistics: counts lines, sentences and tokens.
    text_format: the format of the files.
    ends_document: whether a sentence without tokens ends a document, as an empty line does.

  Raises:
    CorpusError: a line does not have the format.
  """
  unknown = getattr(tokenizer, "unk_token", "[UNK]")
  statistics = statistics or TextStatistics()
  for path in input_files:
    lines = read_lines(TextRange(path, 0, None))
    for sentence in _sentences_of_lines(path, lines, text_format, statistics):
      if sentence is None:
        yield None
        continue
      tokens = [token for part in parts(sentence) for token in tokenizer.tokenize(part)]
      statistics.add_sentence(len(tokens), tokens.count(unknown))
      if tokens:
        yield tokens
      elif ends_document and ends_document(sentence):
        statistics.end_document()
        yield None
  statistics.end_document()


def read_range(
  part: TextRange, text_format: TextFormat, statistics: TextStatistics
) -> Iterator[str | None]:
  """Yields the sentences of the documents of a range, and None for each end of a document.

  A document belongs to the range in which the empty line before it begins, and is read to its end,
  even beyond the range. So each document belongs to one range, and no range needs earlier text.
  Here the end of a file ends a document.

  Raises:
    CorpusError: a line does not have the format.
  """
  lines = read_lines(part) if text_format.jsonl_field else _lines_of_documents(part)
  yield from _sentences_of_lines(part.path, lines, text_format, statistics)
  statistics.end_document()
  yield None


def _lines_of_documents(part: TextRange) -> Iterator[tuple[int, bytes]]:
  inside = not part.start  # of a document of this range
  for position, data in read_lines(part._replace(end=None)):
    is_past = part.end is not None and position >= part.end
    if is_past and (not inside or _is_empty(data)):
      return
    inside = inside or _is_empty(data)
    if inside:
      yield position, data


def _is_empty(data: bytes) -> bool:
  return not data.decode("utf-8", "replace").replace("\r", "").strip()


def _sentences_of_lines(
  path: str, lines: Iterable[tuple[int, bytes]], text_format: TextFormat, statistics: TextStatistics
) -> Iterator[str | None]:
  for position, data in lines:
    line = decode_line(data, text_format.strict_utf8, path, position, statistics)
    line = line.replace("\r", "").strip()
    statistics.add_line(data, is_empty=not line)
    if text_format.jsonl_field:
      if line:
        text = _text_of_json(line, text_format.jsonl_field, path, position)
        for text_line in filter(None, map(str.strip, text.replace("\r", "").split("\n"))):
          yield from _sentences_of_line(text_line, text_format)
      statistics.end_document()
      yield None
    elif line:
      yield from _sentences_of_line(line, text_format)
    else:
      statistics.end_document()
      yield None


def _sentences_of_line(line: str, text_format: TextFormat) -> list[str]:
  return split_sentences(line) if text_format.split_sentences else [line]


def decode_line(data: bytes, strict: bool, path: str, position: int, counts) -> str:
  """Decodes a line; invalid bytes are an error if `strict`, otherwise replaced and counted.

  The line begins at byte `position`; `counts` is updated as a `TextStatistics` is.

  Raises:
    CorpusError: invalid UTF-8, if `strict`.
  """
  try:
    return data.decode("utf-8")
  except UnicodeDecodeError as error:
    invalid = error
  if strict:
    raise CorpusError(
      f"{describe_place(LinePlace(path, position))}: byte {invalid.start + 1} of the line, "
      f"0x{data[invalid.start]:02x}, is not valid UTF-8. Convert the file, or omit --strict_utf8."
    )
  counts.invalid_lines += 1
  counts.first_invalid = counts.first_invalid or LinePlace(path, position)
  return data.decode("utf-8", "replace")  # the tokenizer drops U+FFFD


def _text_of_json(line: str, field: str, path: str, position: int) -> str:
  try:
    value = json.loads(line)
    if not isinstance(value, dict):
      reason = f"expected a JSON object, not {line[:40]!r}"
    elif field not in value:
      reason = f"the object has no field {field!r}, only {sorted(value)[:10]}"
    elif not isinstance(value[field], str):
      reason = f"field {field!r} is not text, but {str(value[field])[:40]!r}"
    else:
      # JSON may contain an unpaired surrogate, UTF-8 may not.
      return value[field].encode("utf-8", "replace").decode("utf-8")
  except (ValueError, RecursionError) as error:
    reason = f"not JSON ({error})"
  raise CorpusError(f"--jsonl_field: {describe_place(LinePlace(path, position))}: {reason}.")


def parts(line: str, limit: int = _LONG_LINE) -> Iterator[str]:
  """Cuts a line at spaces into parts of about `limit` characters.

  Example:
    >>> list(parts("to be or not", limit=4))
    ['to ', 'be ', 'or ', 'not']
    >>> list(parts("unseparated words", limit=4))
    ['unseparated ', 'words']
  """
  start = 0
  while len(line) - start > limit:
    end = line.rfind(" ", start, start + limit) + 1 or line.find(" ", start + limit) + 1
    if not end:
      break
    yield line[start:end]
    start = end
  yield line[start:]


def split_documents(sentences: Iterable[list[str] | None]) -> list[list[list[str]]]:
  """Documents as lists of sentences, without empty documents.

  Example:
    >>> split_documents([None, ["a", "##b"], ["c"], None, None, ["d"]])
    [[['a', '##b'], ['c']], [['d']]]
  """
  documents: list[list[list[str]]] = [[]]
  for sentence in sentences:
    if sentence is None:
      documents.append([])
    else:
      documents[-1].append(sentence)
  return [document for document in documents if document]
