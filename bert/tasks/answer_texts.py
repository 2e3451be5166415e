"""SQuAD: the text of an answer, found in the paragraph.

  get_final_text("steve smith", "Steve Smith's", do_lower_case=True)   # "Steve Smith"

Pure Python, no TensorFlow.
"""

import functools
import itertools

from absl import logging

from bert.tokenization import BasicTokenizer


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
  start, end = align(pred_text, orig_text, do_lower_case, verbose_logging)
  return orig_text[start:end]


def align(pred_text: str, orig_text: str, do_lower_case: bool, verbose: bool) -> tuple[int, int]:
  """Finds start and end (exclusive) of that part in `orig_text`, see `get_final_text`."""
  everything = 0, len(orig_text)
  # Tokenization never looks beyond a space, and words are often repeated: look them up.
  words = (_tokenize_word(word, do_lower_case) for word in orig_text.split(" "))
  tokenized = " ".join(itertools.chain.from_iterable(words))
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
  first = start - tokenized.count(" ", 0, start)  # letters before it
  places = [i for i, char in enumerate(orig_text) if char != " "]
  return places[first], places[first + count - 1] + 1


@functools.lru_cache(maxsize=1 << 18)
def _tokenize_word(word: str, do_lower_case: bool) -> tuple[str, ...]:
  return tuple(_basic_tokenizer(do_lower_case).tokenize(word))


@functools.cache
def _basic_tokenizer(do_lower_case: bool) -> BasicTokenizer:
  return BasicTokenizer(do_lower_case=do_lower_case)


def _explain(verbose: bool, message: str, *texts: str) -> None:
  if verbose:
    logging.info(message, *texts)


def context_span(example, answer) -> tuple[int, int] | None:
  """Finds start and end (exclusive) of an answer in the context; None if it is not from there.

  The text between them is the answer, except that the answer has one space between two words.
  """
  if answer.start is None or not answer.text or example.word_starts is None:
    return None
  if answer.first_word is None:
    return answer.start, answer.start + len(answer.text)
  start = _context_offset(example, answer.first_word, answer.start)
  last = _context_offset(example, answer.first_word, answer.start + len(answer.text) - 1)
  return start, last + 1


def _context_offset(example, word: int, index: int) -> int:
  """Finds the position in the context of character `index` of the joined words from `word` on."""
  while index > len(example.doc_tokens[word]):
    index -= len(example.doc_tokens[word]) + 1
    word += 1
  return example.word_starts[word] + index
