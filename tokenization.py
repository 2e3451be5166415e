"""Text to WordPiece tokens and back, exactly as BERT's published models were trained.

  tokenizer = FullTokenizer("vocab.txt", do_lower_case=True)
  tokens = tokenizer.tokenize("Unaffable!")         # ["una", "##ffa", "##ble", "!"]
  ids = tokenizer.convert_tokens_to_ids(tokens)

A text takes these steps, in this order; a model knows words only as these steps spell them:

  1. clean: control characters, U+0000 and U+FFFD vanish, every kind of blank becomes a space;
  2. a space on both sides of each Chinese character, so that each is a word of its own;
  3. split at whitespace;
  4. only if lower-casing: `str.lower`, then canonical decomposition (NFD) without the accents;
  5. split before and after each punctuation character;
  6. WordPiece: the longest piece in the vocabulary, then the longest for what remains, ...

Steps 1-5 are `BasicTokenizer`, step 6 is `WordpieceTokenizer`, both together `FullTokenizer`.

Character classes come from the interpreter's `unicodedata`. Of the characters that existed when the
models were trained (Unicode 11), only U+166D, U+1734 and U+A9BD have changed class since.

These steps define the result. What is used is a table of the words met so far, which gives the same
and is faster by far (`bert/text/word_table.py`); a tokenizer with a step of its own takes the
steps.

Everything here is plain Python: only `encode_batch` needs NumPy, and nothing TensorFlow.
"""

import codecs
import collections
import functools
import hashlib
import itertools
import os
import re
import unicodedata
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from bert.text import word_table

Span = tuple[int, int]  # start and end (exclusive) in the original text, in characters

_MAX_VOCAB_BYTES = 1 << 28  # far above any vocabulary (multilingual: 1 MB); stops a wrong file
_MAX_CACHED_WORDS = word_table.MAX_WORDS
_LONG_WORD = 256  # characters; from here on `_decompose` protects against slow normalization
_NEEDED_TOKENS = ("[UNK]", "[CLS]", "[SEP]")
_CANNOT_FOLLOW = "Offsets cannot be followed through the overridden methods of this tokenizer"

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


class VocabularyError(ValueError):
  """A vocabulary file cannot be used, or lacks what is asked of it."""


class UnknownItemError(VocabularyError, KeyError):
  """A token without an id, or an id without a token."""

  __str__ = Exception.__str__  # KeyError would put the message in quotes


class VocabularyWarning(UserWarning):
  """A vocabulary file is used, but holds what its author can hardly have meant."""


class TokenSpan(NamedTuple):
  """A token and where it came from: `text[start:end]`, in the word at index `word_id`."""

  token: str
  start: int
  end: int
  word_id: int


# ---------------------------------------------------------------------------------------------
# Checks and conversions that stand alone.


def validate_case_matches_checkpoint(do_lower_case: bool, init_checkpoint: str | None) -> None:
  """Refuses lower-casing for a cased released model, and the other way round.

  Args:
    do_lower_case: whether the tokenizer will lower-case.
    init_checkpoint: path of `bert_model.ckpt` in a released model's folder, or that folder. The
      folder's name tells the model; under any other name nothing is checked.

  Raises:
    ValueError: the casing contradicts the model's name.
  """
  if not init_checkpoint:
    return
  path = os.fspath(init_checkpoint)
  match = re.match(r"^.*?([A-Za-z0-9_-]+)/bert_model.ckpt", path)
  model = match.group(1) if match else os.path.basename(path.rstrip("/"))
  if model in (_CASED_MODELS if do_lower_case else _UNCASED_MODELS):
    kind = "cased" if do_lower_case else "uncased"
    raise ValueError(
      f"--do_lower_case={do_lower_case} contradicts --init_checkpoint={path}: {model} was trained "
      f"on {kind} text. Pass --do_lower_case={not do_lower_case}, or rename the folder if its name "
      "is misleading."
    )


def convert_to_unicode(text: str | bytes) -> str:
  """Returns `text` as `str`, reading bytes as UTF-8 and skipping what is not valid.

  Example:
    >>> convert_to_unicode(b"caf\\xc3\\xa9 \\xff!")
    'café !'

  Raises:
    ValueError: `text` is neither `str` nor `bytes`.
  """
  if isinstance(text, str):
    return text
  if isinstance(text, bytes):
    return text.decode("utf-8", "ignore")
  raise ValueError(f"Text must be str or bytes, not {type(text).__name__}: {text!r:.80}")


def printable_text(text: str | bytes) -> str:
  """Returns `text` in the form that `print` and logging want, today the same as Unicode."""
  return convert_to_unicode(text)


def whitespace_tokenize(text: str) -> list[str]:
  r"""Splits at whitespace, which here includes U+2028 and the like.

  Example:
    >>> whitespace_tokenize(" two\t words\n")
    ['two', 'words']
  """
  return text.split()


# ---------------------------------------------------------------------------------------------
# The vocabulary: one token a line, the line's number (from 0) is the token's id.


def load_vocab(vocab_file: str | os.PathLike) -> dict[str, int]:
  """Reads a vocabulary file; oddities that do not prevent its use are `VocabularyWarning`s.

  As in the original, surrounding whitespace is no part of a token, every line counts (a blank one
  takes an id too), and of two equal lines the later one gives the id. A byte order mark, which the
  original took for a part of the first token, is skipped.

  Args:
    vocab_file: path of a UTF-8 text file; anything TensorFlow can open if it looks like `gs://...`.

  Returns:
    token -> id, in file order.

  Raises:
    VocabularyError: there is no such file, or it is no UTF-8 text, or holds no token.
  """
  vocab: dict[str, int] = {}
  blank, repeated = [], []
  for index, line in enumerate(_read_lines(vocab_file)):
    token = line.strip()
    if not token:
      blank.append(f"line {index + 1}")
    elif token in vocab:
      repeated.append(f"line {index + 1} repeats {token!r} of line {vocab[token] + 1}")
    vocab[token] = index
  if not any(vocab):
    raise VocabularyError(f"Vocabulary {vocab_file} is empty: expected one token per line.")
  missing = [repr(token) for token in _NEEDED_TOKENS if token not in vocab]
  _warn_if(blank, vocab_file, "blank lines take up ids that no word can have")
  _warn_if(repeated, vocab_file, "the later line gives the id")
  _warn_if(missing, vocab_file, "missing tokens that BERT needs; converting them to ids will fail")
  return vocab


def vocabulary_hash(vocab: Mapping[str, int]) -> str:
  """The sha256 of tokens and ids, the one that a run's fingerprint holds as `vocabulary`."""
  lines = "\n".join(f"{token}\t{index}" for token, index in vocab.items())
  return hashlib.sha256(lines.encode()).hexdigest()


def _read_lines(vocab_file) -> list[str]:
  data = _read_bytes(vocab_file)
  if data.startswith(codecs.BOM_UTF8):
    _warn_if(["line 1"], vocab_file, "skipping a byte order mark; save the file without it")
    data = data[len(codecs.BOM_UTF8) :]
  try:
    text = data.decode("utf-8")
  except UnicodeDecodeError as error:
    line = data.count(b"\n", 0, error.start) + 1
    raise VocabularyError(
      f"Vocabulary {vocab_file}, line {line}: byte 0x{data[error.start]:02x} is not valid UTF-8. "
      "Save the file as UTF-8 text."
    ) from error
  # Not str.splitlines: real vocabularies hold tokens such as U+2028, at which it would split.
  # Dropping every \r is what TensorFlow's line reader did for the original.
  lines = text.replace("\r", "").split("\n")
  if not lines[-1]:  # what follows the last line's \n
    lines.pop()
  return lines


def _read_bytes(vocab_file) -> bytes:
  path = os.fspath(vocab_file)
  if os.path.isdir(path):
    raise VocabularyError(
      f"Vocabulary {path} is a directory. Give the file inside it, usually "
      f"{os.path.join(path, 'vocab.txt')}."
    )
  try:
    with _open_bytes(path) as reader:
      data = reader.read(_MAX_VOCAB_BYTES + 1)
  except OSError as error:
    raise VocabularyError(
      f"Cannot read vocabulary {path}: {error.strerror}. Give the vocab.txt that came with the "
      "model's checkpoint."
    ) from error
  if len(data) > _MAX_VOCAB_BYTES:
    raise VocabularyError(
      f"Vocabulary {path} is larger than {_MAX_VOCAB_BYTES} bytes: this is some other file."
    )
  return data


def _open_bytes(path: str):
  if "://" not in path:
    return open(path, "rb")
  import tensorflow as tf  # only its file systems know gs://, s3://, hdfs://

  if not tf.io.gfile.exists(path):
    raise FileNotFoundError(2, "No such file", path)
  return tf.io.gfile.GFile(path, "rb")


def _warn_if(findings: Sequence[str], vocab_file, meaning: str) -> None:
  """Warns once about all `findings`, naming the first few."""
  if findings:
    more = f" and {len(findings) - 5} more" if len(findings) > 5 else ""
    listed = ", ".join(findings[:5]) + more
    warnings.warn(f"{vocab_file}: {meaning} ({listed}).", VocabularyWarning, stacklevel=3)


def convert_by_vocab(vocab: Mapping[Any, Any], items: Iterable[Any]) -> list[Any]:
  """Looks up each of `items`: tokens in `vocab`, or ids in its inverse.

  Example:
    >>> convert_by_vocab({"[UNK]": 0, "want": 1}, ["want", "[UNK]"])
    [1, 0]

  Raises:
    UnknownItemError: one of `items` is not there.
  """
  try:
    return [vocab[item] for item in items]
  except KeyError as error:
    item = error.args[0]
  hint = "use the vocabulary that the tokens or ids were made with"
  if isinstance(item, str) and item.startswith("["):
    hint = "special tokens are lines of the vocabulary file like all others, add this one"
  raise UnknownItemError(f"{item!r} is not in the vocabulary of {len(vocab)} entries: {hint}.")


def convert_tokens_to_ids(vocab: Mapping[str, int], tokens: Iterable[str]) -> list[int]:
  """Ids of `tokens`; raises `UnknownItemError` for a token without one."""
  return convert_by_vocab(vocab, tokens)


def convert_ids_to_tokens(inv_vocab: Mapping[int, str], ids: Iterable[int]) -> list[str]:
  """Tokens of `ids`; raises `UnknownItemError` for an id without one."""
  return convert_by_vocab(inv_vocab, ids)


# ---------------------------------------------------------------------------------------------
# Character classes.


def _is_whitespace(char: str) -> bool:
  r"""Space, \t, \n, \r and Unicode's space separators (Zs)."""
  return char in (" ", "\t", "\n", "\r") or unicodedata.category(char) == "Zs"


def _is_control(char: str) -> bool:
  r"""Control (Cc) and format (Cf) characters, except \t, \n, \r, which count as whitespace."""
  return char not in ("\t", "\n", "\r") and unicodedata.category(char) in ("Cc", "Cf")


@functools.lru_cache(maxsize=1 << 12)
def _is_punctuation(char: str) -> bool:
  """Unicode's punctuation, and every ASCII character that is no letter, digit, space or control.

  So `$`, `+` and `^` count too, which Unicode calls symbols.
  """
  code_point = ord(char)
  if code_point < 128:
    return 33 <= code_point <= 126 and not char.isalnum()
  return unicodedata.category(char).startswith("P")


class _CharacterTable(dict):
  """For `str.translate`: asks `function` once for each character met, then remembers."""

  def __init__(self, function: Callable[[str], str]):
    super().__init__()
    self._function = function

  def __missing__(self, code_point: int) -> str:
    result = self[code_point] = self._function(chr(code_point))
    return result


def _clean_character(char: str) -> str:
  if char in ("\0", "\ufffd") or _is_control(char):
    return ""
  return " " if _is_whitespace(char) else char


_CLEAN_TABLE = _CharacterTable(_clean_character)


# ---------------------------------------------------------------------------------------------
# The tokenizers.


class _Tables(NamedTuple):
  """Words met so far, "tokens" and "ids" apart; good for these settings of the tokenizers only."""

  settings: tuple
  vocab: Mapping[str, int]
  by_kind: dict[str, word_table.WordTable]


class FullTokenizer:
  """Text to WordPiece tokens, from start to end.

  Words are remembered with their tokens, under the rules of `WordpieceTokenizer`.

  Attributes:
    vocab: token -> id.
    inv_vocab: id -> token.
    basic_tokenizer: splits text into words and punctuation.
    wordpiece_tokenizer: splits words into pieces.
    special_tokens: tokens that stay whole in text.
  """

  def __init__(
    self,
    vocab_file: str | os.PathLike,
    do_lower_case: bool = True,
    special_tokens: Sequence[str] = (),
  ):
    """Reads the vocabulary.

    Args:
      vocab_file: see `load_vocab`.
      do_lower_case: True for uncased models, which also drops accents.
      special_tokens: such as `("[MASK]",)`: where a text has one, exactly so, it stays one token.
        By default none does, as in the original: `[MASK]` becomes `[`, `mask`, `]`.

    Raises:
      VocabularyError: the file cannot be used, or lacks one of `special_tokens`.
    """
    self.vocab_file = vocab_file
    self.vocab = load_vocab(vocab_file)
    self.inv_vocab = {index: token for token, index in self.vocab.items()}
    self.basic_tokenizer = BasicTokenizer(do_lower_case=do_lower_case)
    self.wordpiece_tokenizer = WordpieceTokenizer(vocab=self.vocab)
    self.special_tokens = self._checked(special_tokens)
    # Longest first: at any place in a text, the longest special token wins.
    longest_first = sorted(self.special_tokens, key=len, reverse=True)
    self._special_pattern = re.compile("(" + "|".join(map(re.escape, longest_first)) + ")")
    self._tables = _Tables((), {}, {})

  def tokenize(self, text: str | bytes) -> list[str]:
    """The tokens of `text`, without `[CLS]` and `[SEP]`."""
    look_up = self._look_up("tokens") or self._tokenize_step_by_step
    return self._around_special_tokens(look_up, str, convert_to_unicode(text))

  def text_to_ids(self, text: str | bytes) -> list[int]:
    """`convert_tokens_to_ids(tokenize(text))`, faster: words are looked up with their ids."""
    return self.texts_to_ids([text])[0]

  def texts_to_ids(self, texts: Iterable[str | bytes]) -> list[list[int]]:
    """`text_to_ids` of each text."""
    look_up = self._look_up("ids")
    if look_up is None or self._overrides("tokenize", "convert_tokens_to_ids"):
      return [self.convert_tokens_to_ids(self.tokenize(text)) for text in texts]
    if self.special_tokens:
      id_of = self.vocab.__getitem__
      look_up = functools.partial(self._around_special_tokens, look_up, id_of)
    return list(map(look_up, map(convert_to_unicode, texts)))

  def encode_batch(
    self,
    texts: Sequence[str | bytes],
    text_pairs: Sequence[str | bytes | None] | None = None,
    max_seq_length: int | None = None,
    pad_to_longest: bool = False,
    num_workers: int = 1,
  ) -> dict[str, Any]:
    """Texts, or pairs of texts, as a model reads them: `[CLS] a [SEP]`, then `b [SEP]` if any.

    Args:
      texts: the first text of each row.
      text_pairs: the second; None, or a text without a single token, makes no second segment.
      max_seq_length: a longer row is cut as by `classification.convert_single_example`: the longer
      text
        loses its last token, again and again. By default nothing is cut.
      pad_to_longest: makes rows as long as the longest of them, and not `max_seq_length`.
      num_workers: processes. They start in some tenths of a second, so this is for 100,000 texts
        and more, called below `if __name__ == "__main__":`.

    Returns:
      `input_ids`, `input_mask` (1 for a token, 0 for padding) and `segment_ids` (1 for the second
      text): int32 `[B, S]`. S is `max_seq_length`, or the longest row's length without one.

    Raises:
      UnknownItemError: the vocabulary lacks a token that is needed, such as `[CLS]`.
      ValueError: `max_seq_length` leaves no room for a token, or `text_pairs` has another length.
    """
    return word_table.encode_batch(
      self, texts, text_pairs, max_seq_length, pad_to_longest, num_workers
    )

  def tokenize_with_offsets(self, text: str | bytes) -> list[TokenSpan]:
    """The tokens of `text`, each with its place in it: for tagging, and for quoting answers.

    `[t.token for t in tokenize_with_offsets(text)]` always equals `tokenize(text)`. An accent that
    was dropped belongs to the token it stood on. Pieces of one character that decomposes (Hangul)
    all have that character's span. Word ids number the words between whitespace: those of
    `text.split()`, save that U+000B, U+000C, U+001C-U+001F and U+0085, at which `split` splits, are
    dropped here like any control character.

    Args:
      text: the text; offsets into `bytes` count the characters of `convert_to_unicode(text)`.

    Raises:
      ValueError: a tokenizer was replaced by one whose changes to the text cannot be followed.
    """
    text = convert_to_unicode(text)
    word_ids = _word_ids(text)
    located: list[TokenSpan] = []
    offset = 0
    for chunk in self._split_at_special_tokens(text):
      for token, start, end in self._locate_tokens(chunk):
        start, end = start + offset, end + offset
        located.append(TokenSpan(token, start, end, word_ids[start]))
      offset += len(chunk)
    # Holds for the classes of this module; methods overridden elsewhere may do anything.
    if [span.token for span in located] != self.tokenize(text):
      raise ValueError(f"{_CANNOT_FOLLOW}: other tokens than tokenize() for {text!r:.80}")
    return located

  def convert_tokens_to_ids(self, tokens: Iterable[str]) -> list[int]:
    """Ids of `tokens`; raises `UnknownItemError` for a token without one."""
    return self._convert(self.vocab, tokens)

  def convert_ids_to_tokens(self, ids: Iterable[int]) -> list[str]:
    """Tokens of `ids`; raises `UnknownItemError` for an id without one."""
    return self._convert(self.inv_vocab, ids)

  def _convert(self, vocab, items):
    try:
      return convert_by_vocab(vocab, items)
    except UnknownItemError as error:
      raise UnknownItemError(f"{self.vocab_file}: {error}") from None

  def _checked(self, special_tokens) -> frozenset[str]:
    if isinstance(special_tokens, str):
      raise ValueError(f"special_tokens must be a sequence of tokens, not one: {special_tokens!r}")
    missing = [token for token in special_tokens if not token or token not in self.vocab]
    if missing:
      raise VocabularyError(f"{self.vocab_file} lacks the special tokens {missing}.")
    return frozenset(special_tokens)

  def __getstate__(self):
    return {**vars(self), "_tables": _Tables((), {}, {})}  # soon filled again

  def _around_special_tokens(self, look_up, value_of, text: str) -> list:
    if not self.special_tokens:
      return look_up(text)
    values = []
    for chunk in self._split_at_special_tokens(text):
      values += [value_of(chunk)] if chunk in self.special_tokens else look_up(chunk)
    return values

  def _tokenize_step_by_step(self, text: str) -> list[str]:
    tokens: list[str] = []
    for word in self.basic_tokenizer.tokenize(text):
      tokens.extend(self.wordpiece_tokenizer.tokenize(word))
    return tokens

  def _ids_step_by_step(self, text: str) -> list[int]:
    return self.convert_tokens_to_ids(self._tokenize_step_by_step(text))

  def _look_up(self, kind: str) -> Callable[[str], list] | None:
    """A function of a text to its "tokens" or "ids"; None if it has to go step by step."""
    if not self._takes_own_steps():
      return None
    basic, wordpiece, vocab = self.basic_tokenizer, self.wordpiece_tokenizer, self.vocab
    max_chars = wordpiece.max_input_chars_per_word
    settings = (basic.do_lower_case, wordpiece.unk_token, max_chars, len(vocab))
    if self._tables.settings != settings or self._tables.vocab is not vocab:
      self._tables = _Tables(settings, vocab, {})
    tables = self._tables.by_kind
    if kind not in tables:
      values = vocab if kind == "ids" else {token: token for token in vocab}
      plain = self._ids_step_by_step if kind == "ids" else self._tokenize_step_by_step
      tables[kind] = word_table.WordTable(
        values, plain, basic.do_lower_case, max_chars, _MAX_CACHED_WORDS
      )
    return tables[kind].look_up

  def _takes_own_steps(self) -> bool:
    """Whether nothing was overridden, so that a text is its words one by one."""
    basic, wordpiece = self.basic_tokenizer, self.wordpiece_tokenizer
    return (
      type(basic) is BasicTokenizer
      and type(wordpiece) is WordpieceTokenizer
      and wordpiece.vocab is self.vocab
      and type(self.vocab) in (dict, collections.OrderedDict)
      and vars(basic).keys().isdisjoint(vars(BasicTokenizer))
      and vars(wordpiece).keys().isdisjoint(vars(WordpieceTokenizer))
    )

  def _overrides(self, *names: str) -> bool:
    methods = [getattr(getattr(self, name), "__func__", None) for name in names]
    return methods != [getattr(FullTokenizer, name) for name in names]

  def _split_at_special_tokens(self, text: str) -> list[str]:
    if not self.special_tokens:
      return [text]
    return self._special_pattern.split(text)

  def _locate_tokens(self, chunk: str) -> Iterator[tuple[str, int, int]]:
    """The tokens of `chunk`, which is a special token or has none, with start and end in it."""
    if chunk in self.special_tokens:
      yield chunk, 0, len(chunk)
      return
    for word, spans in self.basic_tokenizer.tokenize_with_spans(chunk):
      pieces = self.wordpiece_tokenizer.tokenize(word)
      first = 0
      for piece in pieces:
        # A lone piece is the whole word, also when it reads [UNK]; later ones start with "##".
        length = len(word) if len(pieces) == 1 else len(piece) - (2 if first else 0)
        covered = spans[first : first + length]
        if not covered:
          raise ValueError(f"{_CANNOT_FOLLOW}: {word!r} does not consist of {pieces!r:.80}")
        yield piece, min(start for start, _ in covered), max(end for _, end in covered)
        first += length


class BasicTokenizer:
  """Splits text into words and punctuation: steps 1 to 5 of this module's list.

  Each step is a method of its own, so that a subclass can replace one, for instance
  `_tokenize_chinese_chars` to keep Chinese words together.
  """

  def __init__(self, do_lower_case: bool = True):
    """Chooses whether words are lower-cased and lose their accents."""
    self.do_lower_case = do_lower_case
    self._spacing_table = _CharacterTable(self._space_if_chinese)

  def tokenize(self, text: str | bytes) -> list[str]:
    """The words and punctuation characters of `text`.

    Example:
      >>> BasicTokenizer().tokenize("Où est-il, 博士?")
      ['ou', 'est', '-', 'il', ',', '博', '士', '?']
    """
    text = self._clean_text(convert_to_unicode(text))
    text = self._tokenize_chinese_chars(text)
    tokens: list[str] = []
    for word in whitespace_tokenize(text):
      if self.do_lower_case:
        # Word by word, for a capital sigma becomes another letter at the end of a word.
        word = self._run_strip_accents(word.lower())
      tokens.extend(self._run_split_on_punc(word))
    return whitespace_tokenize(" ".join(tokens))

  def tokenize_with_spans(self, text: str) -> Iterator[tuple[str, list[Span]]]:
    """Like `tokenize`; beside each token, for each of its characters, the span it came from."""
    spans = [(index, index + 1) for index in range(len(text))]
    text, spans = _map_characters(self._space_clean_character, text, spans)
    for match in re.finditer(r"\S+", text):
      word, word_spans = match.group(), spans[match.start() : match.end()]
      if self.do_lower_case:
        word, word_spans = self._lower_with_spans(word, word_spans)
      tokens = self._run_split_on_punc(word)
      if "".join(tokens) != word:
        raise ValueError(f"{_CANNOT_FOLLOW}: {word!r:.80} was split into {''.join(tokens)!r:.80}")
      start = 0
      for token in tokens:
        yield token, word_spans[start : start + len(token)]
        start += len(token)

  def _clean_text(self, text: str) -> str:
    """Drops control characters, U+0000 and U+FFFD; makes every blank a space."""
    return text.translate(_CLEAN_TABLE)

  def _tokenize_chinese_chars(self, text: str) -> str:
    """Puts a space on both sides of each Chinese character."""
    return text.translate(self._spacing_table)

  def _space_if_chinese(self, char: str) -> str:
    return f" {char} " if self._is_chinese_char(ord(char)) else char

  def _is_chinese_char(self, cp: int) -> bool:
    """Whether code point `cp` is a Chinese character; kana and Hangul are not."""
    return any(first <= cp <= last for first, last in word_table.CHINESE_RANGES)

  def _run_strip_accents(self, text: str) -> str:
    """Decomposes characters into base and accents (NFD), and drops the accents (Mn).

    Example:
      >>> BasicTokenizer()._run_strip_accents("résumé")
      'resume'
    """
    if text.isascii():
      return text
    decomposed = _decompose(text)
    return "".join([char for char in decomposed if unicodedata.category(char) != "Mn"])

  def _run_split_on_punc(self, text: str) -> list[str]:
    """Cuts `text` before and after each punctuation character.

    Example:
      >>> BasicTokenizer()._run_split_on_punc("don't...")
      ['don', "'", 't', '.', '.', '.']
    """
    if text.isalnum():  # most words
      return [text]
    tokens = []
    start = 0
    for index, char in enumerate(text):
      if _is_punctuation(char):
        tokens += [text[start:index], char]
        start = index + 1
    tokens.append(text[start:])
    return [token for token in tokens if token]

  def _space_clean_character(self, char: str) -> str:
    return self._tokenize_chinese_chars(self._clean_text(char))

  def _lower_with_spans(self, word: str, spans: list[Span]) -> tuple[str, list[Span]]:
    lowered = word.lower()  # as a whole: only so it knows the sigma at a word's end
    stripped = self._run_strip_accents(lowered)
    if stripped == lowered and len(lowered) == len(word):  # most words
      return stripped, spans
    _, spans = _map_characters(str.lower, word, spans)
    chars: list[str] = []
    char_spans: list[Span] = []
    for char, (start, end) in zip(lowered, spans, strict=True):
      kept = self._run_strip_accents(char)
      chars.extend(kept)
      char_spans.extend([(start, end)] * len(kept))
      if not kept and char_spans:  # an accent: it belongs to the character before it
        char_spans[-1] = (char_spans[-1][0], end)
    return stripped, _reorder_spans(chars, char_spans, stripped)


class WordpieceTokenizer:
  """Splits words into the longest pieces that the vocabulary has: step 6 of this module's list.

  Pieces after a word's first are marked by "##". A word of more than `max_input_chars_per_word`
  characters, or with a remainder that no piece begins, becomes `unk_token` as a whole.

  Words are remembered with their pieces. Setting an attribute or adding to the vocabulary is
  noticed; after exchanging entries of a vocabulary already in use, make a new tokenizer.
  """

  def __init__(
    self,
    vocab: Mapping[str, int],
    unk_token: str = "[UNK]",
    max_input_chars_per_word: int = 200,
  ):
    """Takes any container of pieces as `vocab`; the ids do not matter here."""
    self.vocab = vocab
    self.unk_token = unk_token
    self.max_input_chars_per_word = max_input_chars_per_word
    self._settings: tuple = ()
    self._longest_piece = 0
    self._pieces_of: dict[str, tuple[str, ...]] = {}

  def tokenize(self, text: str | bytes) -> list[str]:
    """The pieces of the words of `text`, which `BasicTokenizer` has separated by whitespace.

    Example:
      >>> tokenizer = WordpieceTokenizer({"un": 0, "##aff": 1, "##able": 2})
      >>> tokenizer.tokenize("unaffable unaffected")
      ['un', '##aff', '##able', '[UNK]']
    """
    self._forget_if_settings_changed()
    pieces: list[str] = []
    for word in whitespace_tokenize(convert_to_unicode(text)):
      pieces.extend(self._pieces_of.get(word) or self._split_and_remember(word))
    return pieces

  def _forget_if_settings_changed(self) -> None:
    settings = (self.vocab, len(self.vocab), self.unk_token, self.max_input_chars_per_word)
    if settings != self._settings:
      self._settings = settings
      self._longest_piece = max(map(len, self.vocab), default=0)
      self._pieces_of.clear()

  def _split_and_remember(self, word: str) -> tuple[str, ...]:
    if len(word) > self.max_input_chars_per_word:
      return (self.unk_token,)
    if len(self._pieces_of) >= _MAX_CACHED_WORDS:
      self._pieces_of.clear()  # frequent words are back at once
    pieces = self._pieces_of[word] = self._split(word)
    return pieces

  def _split(self, word: str) -> tuple[str, ...]:
    pieces = []
    start = 0
    while start < len(word):
      prefix = "##" if start else ""
      for end in range(min(len(word), start + self._longest_piece), start, -1):
        piece = prefix + word[start:end]
        if piece in self.vocab:
          break
      else:
        return (self.unk_token,)
      pieces.append(piece)
      start = end
    return tuple(pieces)


# ---------------------------------------------------------------------------------------------
# Following characters through the steps.


def _decompose(text: str) -> str:
  """`unicodedata.normalize("NFD", text)`, in n log n time also for a pile of accents.

  Canonical order (Unicode Standard, D108-D109) is a stable sort of each run of combining
  characters by combining class. CPython does it by insertion, so that a million accents in a row
  would take it hours.
  """
  if len(text) < _LONG_WORD:
    return unicodedata.normalize("NFD", text)
  chars = itertools.chain.from_iterable(unicodedata.normalize("NFD", char) for char in text)
  ordered: list[str] = []
  for _, run in itertools.groupby(chars, key=lambda char: unicodedata.combining(char) > 0):
    ordered += sorted(run, key=unicodedata.combining)
  return "".join(ordered)


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


def _word_ids(text: str) -> list[int]:
  """For each character of `text`, the index of the word that it is in (or that it follows).

  Example:
    >>> _word_ids(" to be")
    [-1, 0, 0, 0, 1, 1]
  """
  word_ids = []
  word_id = -1
  after_space = True
  for char in text:
    is_space = _CLEAN_TABLE[ord(char)].isspace()
    if after_space and not is_space:
      word_id += 1
    after_space = is_space
    word_ids.append(word_id)
  return word_ids
