"""SQuAD: the text of an answer, found in the paragraph.

  get_final_text("steve smith", "Steve Smith's", do_lower_case=True)   # "Steve Smith"

Pure Python, no TensorFlow.
"""

import functools
import itertools
from collections.abc import Callable, Sequence
from typing import Any

from absl import logging

from bert.tokenization import BasicTokenizer

Span = tuple[int, int]
# How words are split: `do_lower_case` of a usual tokenizer, or `BasicTokenizer.settings`.
Splitting = bool | tuple[bool, bool | None, bool, bool]


def splitting_of(tokenizer: Any) -> Splitting:
  """Returns how the words of a text are split before they become the pieces of a tokenizer."""
  basic = getattr(tokenizer, "basic_tokenizer", None)
  return basic.settings if basic else getattr(tokenizer, "do_lower_case", True)


def get_final_text(
  pred_text: str, orig_text: str, do_lower_case: bool, verbose_logging: bool = False
) -> str:
  """Finds the part of `orig_text` that was tokenized into `pred_text`.

  The words that contain an answer are often longer, and its tokens have lost case and accents. Both
  texts are compared letter by letter without spaces. If tokenization changed the number of letters,
  this fails, and all of `orig_text` is the answer.

  Args:
    pred_text: joined tokens.
    orig_text: the paragraph's words that contain them.
    do_lower_case: the tokenizer's.
    verbose_logging: whether to log a failure.

  Example:
    >>> get_final_text("steve smith", "Steve Smith's", do_lower_case=True)
    'Steve Smith'
  """
  (start, end), _ = align(pred_text, orig_text, do_lower_case, verbose_logging)
  return orig_text[start:end]


def align(
  pred_text: str,
  orig_text: str,
  splitting: Splitting,
  verbose: bool,
  pieces_to_start: Callable[[], Sequence[str]] | None = None,
) -> tuple[Span, Span]:
  """Finds start and end (exclusive) of that part in `orig_text`, see `get_final_text`.

  The first span is the original's, the first occurrence; the second is the occurrence that begins
  with the last of `pieces_to_start`, the pieces of the first word up to there. Without them, and
  where it is not found, both are the same.
  """
  everything = (0, len(orig_text)), (0, len(orig_text))
  # Tokenization never looks beyond a space, and words are often repeated: look them up.
  words = (_tokenize_word(word, splitting) for word in orig_text.split(" "))
  tokens = list(itertools.chain.from_iterable(words))
  tokenized = " ".join(tokens)
  start = tokenized.find(pred_text)
  if start == -1:
    _explain(verbose, "Unable to find text: '%s' in '%s'", pred_text, orig_text)
    return everything
  letters, tokenized_letters = orig_text.replace(" ", ""), tokenized.replace(" ", "")
  if len(letters) != len(tokenized_letters):
    _explain(
      verbose, "Length not equal after stripping spaces: '%s' vs '%s'", letters, tokenized_letters
    )
    return everything
  count = len(pred_text.replace(" ", ""))
  if not count or pred_text[0] == " " or pred_text[-1] == " ":
    _explain(verbose, "Couldn't map '%s'", pred_text)
    return everything
  places = [i for i, char in enumerate(orig_text) if char != " "]

  def span_at(index: int) -> Span:
    first = index - tokenized.count(" ", 0, index)  # letters before it
    return places[first], places[first + count - 1] + 1

  found = span_at(start)
  if pieces_to_start is None or tokenized.find(pred_text, start + 1) == -1:
    return found, found
  chosen = _start_of_piece(tokens, pieces_to_start())
  return found, span_at(chosen) if tokenized.startswith(pred_text, chosen) else found


def _start_of_piece(tokens: Sequence[str], pieces: Sequence[str]) -> int:
  """Finds where the last of `pieces` begins in the joined `tokens`, whose first pieces they are.

  Example:
    >>> _start_of_piece(["maier", "-", "meyer"], ["mai", "##er", "-", "me", "##y", "##er"])
    11
  """
  firsts = [index for index, piece in enumerate(pieces) if not piece.startswith("##")] or [0]
  before = sum(len(token) + 1 for token in tokens[: len(firsts) - 1])
  return before + sum(len(piece.removeprefix("##")) for piece in pieces[firsts[-1] : -1])


@functools.lru_cache(maxsize=1 << 18)
def _tokenize_word(word: str, splitting: Splitting) -> tuple[str, ...]:
  return tuple(_basic_tokenizer(splitting).tokenize(word))


@functools.cache
def _basic_tokenizer(splitting: Splitting) -> BasicTokenizer:
  if isinstance(splitting, bool):
    return BasicTokenizer(do_lower_case=splitting)
  lower, strips, chinese, drops = splitting
  return BasicTokenizer(
    lower, strip_accents=strips, tokenize_chinese_chars=chinese, drop_unassigned=drops
  )


def _explain(verbose: bool, message: str, *texts: str) -> None:
  if verbose:
    logging.info(message, *texts)


def context_span(example, answer) -> tuple[int, int] | None:
  """Finds start and end (exclusive) of an answer in the context; None if it is not from there.

  The text between them is the answer's `text_at_start`, except that this has one space between two
  words.
  """
  if answer.start is None or not answer.text or example.word_starts is None:
    return None
  if answer.first_word is None:
    return answer.start, answer.start + len(answer.text_at_start)
  start = _context_offset(example, answer.first_word, answer.start)
  last = _context_offset(example, answer.first_word, answer.start + len(answer.text_at_start) - 1)
  return start, last + 1


def _context_offset(example, word: int, index: int) -> int:
  """Finds the position in the context of character `index` of the joined words from `word` on."""
  while index > len(example.doc_tokens[word]):
    index -= len(example.doc_tokens[word]) + 1
    word += 1
  return example.word_starts[word] + index
