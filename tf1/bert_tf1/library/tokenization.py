"""The original's `tokenization`: text to WordPiece tokens and ids, with the original's names.

  tokenizer = tokenization.FullTokenizer("vocab.txt", do_lower_case=True)
  tokens = tokenizer.tokenize("Unaffable!")         # ["una", "##ffa", "##ble", "!"]
  ids = tokenizer.convert_tokens_to_ids(tokens)

`BasicTokenizer` splits text into words and punctuation, `WordpieceTokenizer` splits words into
pieces of the vocabulary, and `FullTokenizer` does both.
"""

import codecs
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from bert_tf1.real import tf

_UNCASED_MODELS = {
  *(
    f"uncased_L-{layers}_H-{hidden}_A-{hidden // 64}"
    for layers in (2, 4, 6, 8, 10, 12)
    for hidden in (128, 256, 512, 768)
  ),
  "uncased_L-24_H-1024_A-16",
  "wwm_uncased_L-24_H-1024_A-16",
  "multilingual_L-12_H-768_A-12",
  "chinese_L-12_H-768_A-12",
}
_CASED_MODELS = {
  "cased_L-12_H-768_A-12",
  "cased_L-24_H-1024_A-16",
  "wwm_cased_L-24_H-1024_A-16",
  "multi_cased_L-12_H-768_A-12",
}
# First and last code point of each block of Chinese characters; kana and Hangul are not among them.
_CHINESE_RANGES = (
  (0x4E00, 0x9FFF),
  (0x3400, 0x4DBF),
  (0x20000, 0x2A6DF),
  (0x2A700, 0x2B73F),
  (0x2B740, 0x2B81F),
  (0x2B820, 0x2CEAF),
  (0xF900, 0xFAFF),
  (0x2F800, 0x2FA1F),
)


class VocabularyError(ValueError):
  """A vocabulary file cannot be used."""


class UnknownItemError(VocabularyError, KeyError):
  """A token without an id, or an id without a token."""

  __str__ = Exception.__str__  # KeyError would put the message in quotes.


def validate_case_matches_checkpoint(do_lower_case: bool, init_checkpoint: str | None) -> None:
  """Checks the casing of a released model, which is recognized by the name of its directory.

  Raises:
    ValueError: text would be lower-cased for a cased model, or not for an uncased one.
  """
  match = re.match(r"^.*?([A-Za-z0-9_-]+)/bert_model.ckpt", init_checkpoint or "")
  if match and match[1] in (_CASED_MODELS if do_lower_case else _UNCASED_MODELS):
    kind = "cased" if do_lower_case else "uncased"
    raise ValueError(
      f"--do_lower_case={do_lower_case} contradicts --init_checkpoint={init_checkpoint}: "
      f"{match[1]} was trained on {kind} text. Pass --do_lower_case={not do_lower_case}, or rename the "
      "directory if its name is misleading."
    )


def convert_to_unicode(text: str | bytes) -> str:
  """Returns `text` as `str`; bytes are read as UTF-8, and what is not valid is skipped."""
  if isinstance(text, str):
    return text
  if isinstance(text, bytes):
    return text.decode("utf-8", "ignore")
  raise ValueError(f"Text must be str or bytes, not {type(text).__name__}: {text!r:.80}")


def printable_text(text: str | bytes) -> str:
  """Returns `text` as `print` and logging need it."""
  return convert_to_unicode(text)


def whitespace_tokenize(text: str) -> list[str]:
  """Splits at whitespace."""
  return text.split()


def load_vocab(vocab_file: str) -> dict[str, int]:
  """Reads a vocabulary: one token per line; the number of the line, from 0, is the token's id.

  Whitespace around a token is not part of it, every line counts, and of two equal lines the later
  one determines the id.

  Raises:
    VocabularyError: the file is not UTF-8 text, or has no token.
    tf.errors.OpError: the file cannot be read.
  """
  with tf.gfile.GFile(vocab_file, "rb") as reader:
    data = reader.read().removeprefix(codecs.BOM_UTF8)
  try:
    text = data.decode("utf-8")
  except UnicodeDecodeError as error:
    line = data.count(b"\n", 0, error.start) + 1
    raise VocabularyError(
      f"Vocabulary {vocab_file}, line {line}: byte 0x{data[error.start]:02x} is not valid UTF-8."
    ) from error
  # Not str.splitlines: real vocabularies hold tokens such as U+2028, at which it would split.
  lines = text.replace("\r", "").removesuffix("\n").split("\n")
  tokens = [line.strip() for line in lines]
  if not any(tokens):
    raise VocabularyError(f"Vocabulary {vocab_file} is empty: expected one token per line.")
  return {token: index for index, token in enumerate(tokens)}


def convert_by_vocab(vocab: Mapping[Any, Any], items: Iterable[Any]) -> list[Any]:
  """Looks up each of `items`: tokens in `vocab`, or ids in its inverse.

  Raises:
    UnknownItemError: one of `items` is not in the vocabulary.
  """
  try:
    return [vocab[item] for item in items]
  except KeyError as error:
    raise UnknownItemError(
      f"{error.args[0]!r} is not in the vocabulary of {len(vocab)} entries: use the vocabulary "
      "that the tokens or ids were made with."
    ) from None


def convert_tokens_to_ids(vocab: Mapping[str, int], tokens: Iterable[str]) -> list[int]:
  """Returns the ids of `tokens`."""
  return convert_by_vocab(vocab, tokens)


def convert_ids_to_tokens(inv_vocab: Mapping[int, str], ids: Iterable[int]) -> list[str]:
  """Returns the tokens of `ids`."""
  return convert_by_vocab(inv_vocab, ids)


class FullTokenizer:
  """Text to WordPiece tokens, from start to end.

  Attributes:
    vocab: token -> id.
    inv_vocab: id -> token.
    basic_tokenizer: splits text into words and punctuation.
    wordpiece_tokenizer: splits words into pieces.
  """

  def __init__(self, vocab_file: str, do_lower_case: bool = True):
    """`do_lower_case` is for uncased models; it also drops accents."""
    self.vocab = load_vocab(vocab_file)
    self.inv_vocab = {index: token for token, index in self.vocab.items()}
    self.basic_tokenizer = BasicTokenizer(do_lower_case=do_lower_case)
    self.wordpiece_tokenizer = WordpieceTokenizer(vocab=self.vocab)

  def tokenize(self, text: str | bytes) -> list[str]:
    """Returns the tokens of `text`, without `[CLS]` and `[SEP]`."""
    words = self.basic_tokenizer.tokenize(text)
    return [piece for word in words for piece in self.wordpiece_tokenizer.tokenize(word)]

  def convert_tokens_to_ids(self, tokens: Iterable[str]) -> list[int]:
    """Returns the ids of `tokens`."""
    return convert_by_vocab(self.vocab, tokens)

  def convert_ids_to_tokens(self, ids: Iterable[int]) -> list[str]:
    """Returns the tokens of `ids`."""
    return convert_by_vocab(self.inv_vocab, ids)


class BasicTokenizer:
  """Splits text into words and punctuation, each step a method that a subclass may replace."""

  def __init__(self, do_lower_case: bool = True):
    """`do_lower_case` also drops accents."""
    self.do_lower_case = do_lower_case
    self._spacing_table = _CharacterTable(self._space_if_chinese)

  def tokenize(self, text: str | bytes) -> list[str]:
    """Returns the words and punctuation characters of `text`."""
    text = self._clean_text(convert_to_unicode(text))
    text = self._tokenize_chinese_chars(text)
    tokens: list[str] = []
    for word in whitespace_tokenize(text):
      if self.do_lower_case:
        # Word by word, because a capital sigma becomes another letter at the end of a word.
        word = self._run_strip_accents(word.lower())
      tokens.extend(self._run_split_on_punc(word))
    return whitespace_tokenize(" ".join(tokens))

  def _clean_text(self, text: str) -> str:
    """Drops control characters, U+0000 and U+FFFD; makes every blank a space."""
    return text.translate(_CLEAN_TABLE)

  def _tokenize_chinese_chars(self, text: str) -> str:
    """Puts a space on both sides of each Chinese character."""
    return text.translate(self._spacing_table)

  def _space_if_chinese(self, char: str) -> str:
    return f" {char} " if self._is_chinese_char(ord(char)) else char

  def _is_chinese_char(self, cp: int) -> bool:
    return any(first <= cp <= last for first, last in _CHINESE_RANGES)

  def _run_strip_accents(self, text: str) -> str:
    """Decomposes characters into base and accents (NFD), and drops the accents (Mn)."""
    decomposed = unicodedata.normalize("NFD", text)
    return "".join([char for char in decomposed if unicodedata.category(char) != "Mn"])

  def _run_split_on_punc(self, text: str) -> list[str]:
    """Splits `text` before and after each punctuation character."""
    tokens = []
    start = 0
    for index, char in enumerate(text):
      if _is_punctuation(char):
        tokens += [text[start:index], char]
        start = index + 1
    tokens.append(text[start:])
    return [token for token in tokens if token]


class WordpieceTokenizer:
  """Splits words into the longest pieces that the vocabulary has.

  Pieces after a word's first are marked by "##". A word of more than `max_input_chars_per_word`
  characters, or with a remainder that no piece begins, becomes `unk_token` as a whole.
  """

  def __init__(
    self, vocab: Mapping[str, int], unk_token: str = "[UNK]", max_input_chars_per_word: int = 200
  ):
    """`vocab` may be any container of pieces; the ids do not matter here."""
    self.vocab = vocab
    self.unk_token = unk_token
    self.max_input_chars_per_word = max_input_chars_per_word

  def tokenize(self, text: str | bytes) -> list[str]:
    """Returns the pieces of the words of `text`, which are separated by whitespace."""
    pieces: list[str] = []
    for word in whitespace_tokenize(convert_to_unicode(text)):
      pieces += self._split(word)
    return pieces

  def _split(self, word: str) -> list[str]:
    if len(word) > self.max_input_chars_per_word:
      return [self.unk_token]
    pieces = []
    start = 0
    while start < len(word):
      prefix = "##" if start else ""
      for end in range(len(word), start, -1):
        piece = prefix + word[start:end]
        if piece in self.vocab:
          break
      else:
        return [self.unk_token]
      pieces.append(piece)
      start = end
    return pieces


class _CharacterTable(dict):
  """For `str.translate`: calls `function` once per character, then remembers the result."""

  def __init__(self, function: Callable[[str], str]):
    super().__init__()
    self._function = function

  def __missing__(self, code_point: int) -> str:
    result = self[code_point] = self._function(chr(code_point))
    return result


def _is_whitespace(char: str) -> bool:
  r"""Space, \t, \n, \r and Unicode's space separators (Zs)."""
  return char in (" ", "\t", "\n", "\r") or unicodedata.category(char) == "Zs"


def _is_control(char: str) -> bool:
  r"""Control (Cc) and format (Cf) characters, except \t, \n, \r, which count as whitespace."""
  return char not in ("\t", "\n", "\r") and unicodedata.category(char) in ("Cc", "Cf")


def _is_punctuation(char: str) -> bool:
  """Unicode's punctuation, and every ASCII character that is not a letter, digit, space or control.

  That includes `$`, `+` and `^`, which are symbols in Unicode.
  """
  code_point = ord(char)
  if code_point < 128:
    return 33 <= code_point <= 126 and not char.isalnum()
  return unicodedata.category(char).startswith("P")


def _clean_character(char: str) -> str:
  if char in ("\0", "\ufffd") or _is_control(char):
    return ""
  return " " if _is_whitespace(char) else char


_CLEAN_TABLE = _CharacterTable(_clean_character)
