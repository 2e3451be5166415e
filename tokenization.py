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
models were trained (Unicode 11), only U+166D, U+1734 and U+A9BD have changed their class since.

These steps define the result. In practice a table of the words met so far gives the same result,
much faster (`bert/text/word_table.py`); a tokenizer with an overridden step does not use the table.

Everything here is plain Python: only `encode_batch` needs NumPy, and nothing needs TensorFlow.
"""

import collections
import functools
import hashlib
import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from bert.io import vocabulary_kind
from bert.text import offsets, tokenizer_kinds, vocabulary_file
from bert.text.characters import (
  CHINESE_RANGES,
  DROPPED_BLANKS,
  CharacterTable,
  convert_to_unicode,
  decompose,
)
from bert.text.tokenizer import Tokenizer
from bert.text.vocabulary_file import (
  UnknownItemError,
  VocabularyError,
  VocabularyWarning,  # noqa: F401 (what `load_vocab` warns with)
)
from bert.text.word_table import MAX_WORDS, WordTable

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


# ---------------------------------------------------------------------------------------------
# Checks and conversions.


def validate_case_matches_checkpoint(do_lower_case: bool, init_checkpoint: str | None) -> None:
  """Refuses lower-casing for a cased released model, and the opposite for an uncased one.

  Args:
    do_lower_case: whether the tokenizer will lower-case.
    init_checkpoint: path of `bert_model.ckpt` in a released model's folder, or that folder. The
      model is recognized by the folder's name; under any other name nothing is checked.

  Raises:
    ValueError: the casing contradicts the model's name.
  """
  if not init_checkpoint:
    return
  path = os.fsdecode(init_checkpoint)
  match = re.match(r"^.*?([A-Za-z0-9_-]+)/bert_model.ckpt", path)
  model = match.group(1) if match else os.path.basename(path.rstrip("/"))
  if model in (_CASED_MODELS if do_lower_case else _UNCASED_MODELS):
    kind = "cased" if do_lower_case else "uncased"
    raise ValueError(
      f"--do_lower_case={do_lower_case} contradicts --init_checkpoint={path}: {model} was trained "
      f"on {kind} text. Pass --do_lower_case={not do_lower_case}, or rename the folder if its name "
      "is misleading."
    )


def printable_text(text: str | bytes) -> str:
  """Returns `text` as `print` and logging need it: in Python 3, as `str`."""
  return convert_to_unicode(text)


def whitespace_tokenize(text: str) -> list[str]:
  r"""Splits at whitespace, which here includes U+2028 and the like.

  Example:
    >>> whitespace_tokenize(" two\t words\n")
    ['two', 'words']
  """
  return text.split()


# ---------------------------------------------------------------------------------------------
# The vocabulary: one token per line, whose number (from 0) is the token's id.


def load_vocab(vocab_file: str | bytes | os.PathLike) -> dict[str, int]:
  """Reads a vocabulary file; oddities that do not prevent its use are `VocabularyWarning`s.

  As in the original, surrounding whitespace is no part of a token, every line counts (a blank one
  takes an id too), and of two equal lines the later one determines the id. A byte order mark, which
  the original treated as part of the first token, is skipped.

  Args:
    vocab_file: path of a UTF-8 text file, of a sentencepiece model (ALBERT), or of a byte-level BPE
      (RoBERTa: tokenizer.json or vocab.json); a path such as `gs://...` is opened by TensorFlow.
      Like every path here it may be bytes, as the assets of a SavedModel give it.

  Returns:
    token -> id, in file order.

  Raises:
    VocabularyError: the file does not exist, is not UTF-8 text, or contains no token.
  """
  vocab_file = os.fsdecode(vocab_file)
  if kind := tokenizer_kinds.of(vocab_file):
    return kind.read_vocab(vocab_file)
  return {token: index for index, token in enumerate(vocabulary_file.read_tokens(vocab_file))}


def vocabulary_hash(vocab: Mapping[str, int]) -> str:
  """Returns the sha256 of tokens and ids, stored in a run's fingerprint as `vocabulary`."""
  lines = "\n".join(f"{token}\t{index}" for token, index in vocab.items())
  return hashlib.sha256(lines.encode()).hexdigest()


def convert_by_vocab(vocab: Mapping[Any, Any], items: Iterable[Any]) -> list[Any]:
  """Looks up each of `items`: tokens in `vocab`, or ids in its inverse.

  Example:
    >>> convert_by_vocab({"[UNK]": 0, "want": 1}, ["want", "[UNK]"])
    [1, 0]

  Raises:
    UnknownItemError: one of `items` is not in the vocabulary.
  """
  try:
    return [vocab[item] for item in items]
  except KeyError as error:
    item = error.args[0]
  hint = "use the vocabulary that the tokens or ids were made with"
  if isinstance(item, str) and item.startswith("["):
    hint = (
      "special tokens are lines of the vocabulary file like all others, add this one. (The "
      f"first entry is {next(iter(vocab), None)!r:.40}; each line holds one token and nothing else)"
    )
  raise UnknownItemError(f"{item!r} is not in the vocabulary of {len(vocab)} entries: {hint}.")


def convert_tokens_to_ids(vocab: Mapping[str, int], tokens: Iterable[str]) -> list[int]:
  """Ids of `tokens`; raises `UnknownItemError` for a token without one."""
  return convert_by_vocab(vocab, tokens)


def convert_ids_to_tokens(inv_vocab: Mapping[int, str], ids: Iterable[int]) -> list[str]:
  """Returns tokens of `ids`; raises `UnknownItemError` for an id without one."""
  return convert_by_vocab(inv_vocab, ids)


def load_tokenizer(
  vocab_file: str | bytes | os.PathLike,
  do_lower_case: bool | None = None,
  special_tokens: Sequence[str] = (),
) -> Tokenizer:
  """Returns the tokenizer of a model, of the kind that its vocabulary file is for.

  Files of transformers beside the vocabulary are honored: see `io/tokenizer_settings.py`.

  Args:
    vocab_file: a `vocab.txt` for `FullTokenizer`, or a sentencepiece model for
      `sentence_pieces.SentencePieceTokenizer`. The content decides, whatever the name
      is; a name that ends in `.model` is read as nothing else. One that ends in `.json` is for
      `byte_pairs.BytePairTokenizer`.
    do_lower_case: True for uncased models, by default as the files say, else True; a byte-level BPE
      keeps the case.
    special_tokens: see `FullTokenizer`.

  Raises:
    VocabularyError: the file cannot be used, lacks one of `special_tokens`, or is of a tokenizer
      that is not supported.
    MissingExtraError: the library of such files is not installed.
  """
  vocab_file = os.fsdecode(vocab_file)
  stated = vocabulary_file.supported_settings(vocab_file)
  if do_lower_case is None:
    do_lower_case = stated.do_lower_case is not False
  if kind := tokenizer_kinds.of(vocab_file):
    return kind(vocab_file, do_lower_case, special_tokens)
  return FullTokenizer(vocab_file, do_lower_case, special_tokens, **stated.splitting)


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


def _clean_or_drop_unassigned(char: str) -> str:
  cleaned = _clean_character(char)
  return "" if cleaned != " " and unicodedata.category(char).startswith("C") else cleaned


_CLEAN_TABLE = CharacterTable(_clean_character)
_CLEAN_TABLE_OF_ASSIGNED = CharacterTable(_clean_or_drop_unassigned)


# ---------------------------------------------------------------------------------------------
# The tokenizers.


class FullTokenizer(Tokenizer):
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
    vocab_file: str | bytes | os.PathLike,
    do_lower_case: bool = True,
    special_tokens: Sequence[str] = (),
    *,
    strip_accents: bool | None = None,
    tokenize_chinese_chars: bool = True,
    drop_unassigned: bool = False,
  ):
    """Reads the vocabulary.

    Args:
      vocab_file: see `load_vocab`.
      do_lower_case: True for uncased models, which also drops accents.
      special_tokens: such as `("[MASK]",)`: exact occurrences in a text stay one token. By default
        there are none, as in the original: `[MASK]` becomes `[`, `mask`, `]`.
      strip_accents: see `BasicTokenizer`.
      tokenize_chinese_chars: see `BasicTokenizer`.
      drop_unassigned: see `BasicTokenizer`.

    Raises:
      VocabularyError: the file cannot be used, or lacks one of `special_tokens`.
    """
    vocab = load_vocab(vocab_file)
    if vocabulary_kind.is_of_model(vocab):
      raise VocabularyError(
        f"{os.fsdecode(vocab_file)} is a sentencepiece model, not a vocabulary of word pieces: "
        "load_tokenizer reads both, and scripts take it as --spm_model_file."
      )
    super().__init__(vocab_file, vocab, special_tokens)
    self.basic_tokenizer = BasicTokenizer(
      do_lower_case,
      strip_accents=strip_accents,
      tokenize_chinese_chars=tokenize_chinese_chars,
      drop_unassigned=drop_unassigned,
    )
    self.wordpiece_tokenizer = WordpieceTokenizer(vocab=self.vocab)
    self._tables: dict[str, tuple] = {}  # kind -> settings, vocabulary, table of words

  @classmethod
  def from_scratch(
    cls,
    vocab_file: str | os.PathLike | None,
    do_lower_case: bool,
    spm_model_file: str | os.PathLike | None,
  ) -> Tokenizer:
    """ALBERT's tokenizer: of `spm_model_file`, which takes texts as they are, or of `vocab_file`.

    ALBERT's callers prepare texts themselves (`sentence_pieces.preprocess_text`); `load_tokenizer`
    gives a tokenizer that does.
    """
    if not spm_model_file:
      return cls(vocab_file, do_lower_case)
    from bert.text.sentence_pieces import SentencePieceTokenizer

    return SentencePieceTokenizer(spm_model_file, do_lower_case, preprocess=False)

  def tokenize(self, text: str | bytes) -> list[str]:
    """Returns the tokens of `text`, without `[CLS]` and `[SEP]`."""
    look_up = self._look_up("tokens") or self._tokenize_step_by_step
    return self._around_special_tokens(look_up, str, convert_to_unicode(text))

  def text_to_ids(self, text: str | bytes) -> list[int]:
    """Computes `convert_tokens_to_ids(tokenize(text))`, without a list of tokens on the way."""
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

  def tokenize_with_offsets(self, text: str | bytes) -> list[offsets.TokenSpan]:
    """The tokens of `text`, each with its place in it: for tagging, and for quoting answers.

    `[t.token for t in tokenize_with_offsets(text)]` always equals `tokenize(text)`. An accent that
    was dropped belongs to the token it stood on. Pieces of one character that decomposes (Hangul)
    all have that character's span. Word ids number the words between whitespace: those of
    `text.split()`, except that U+000B, U+000C, U+001C-U+001F and U+0085, at which `split` splits,
    are dropped here like any control character.

    Args:
      text: the text; offsets into `bytes` count the characters of `convert_to_unicode(text)`.

    Raises:
      ValueError: a tokenizer was replaced by one whose changes to the text cannot be followed.
    """
    text = convert_to_unicode(text)
    return offsets.locate_tokens(self, text, offsets.locate_word_pieces, DROPPED_BLANKS)

  def convert_tokens_to_ids(self, tokens: Iterable[str]) -> list[int]:
    """Ids of `tokens`; raises `UnknownItemError` for a token without one."""
    return self._convert(self.vocab, tokens)

  def convert_ids_to_tokens(self, ids: Iterable[int]) -> list[str]:
    """Returns tokens of `ids`; raises `UnknownItemError` for an id without one."""
    return self._convert(self.inv_vocab, ids)

  def _convert(self, vocab, items):
    try:
      return convert_by_vocab(vocab, items)
    except UnknownItemError as error:
      raise UnknownItemError(f"{self.vocab_file}: {error}") from None

  def __getstate__(self):
    return {**vars(self), "_tables": {}}  # soon filled again

  def _around_special_tokens(self, look_up, value_of, text: str) -> list:
    if not self.special_tokens:
      return look_up(text)
    values = []
    for chunk in self.split_at_special_tokens(text):
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
    """Returns a function from a text to its "tokens" or "ids"; None if a step was overridden."""
    if not self._takes_own_steps():
      return None
    basic, wordpiece, vocab = self.basic_tokenizer, self.wordpiece_tokenizer, self.vocab
    max_chars = wordpiece.max_input_chars_per_word
    settings = (*basic.settings, wordpiece.unk_token, max_chars, len(vocab))
    made_for, made_from, table = self._tables.get(kind, (None, None, None))
    if made_for != settings or made_from is not vocab:
      values = vocab if kind == "ids" else {token: token for token in vocab}
      plain = self._ids_step_by_step if kind == "ids" else self._tokenize_step_by_step
      cuts = basic.tokenize_chinese_chars
      table = WordTable(values, plain, basic.do_lower_case, max_chars, MAX_WORDS, cuts)
      self._tables[kind] = settings, vocab, table
    return table.look_up

  def _takes_own_steps(self) -> bool:
    """Tells whether nothing was overridden, so that a text is its words one by one."""
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


class BasicTokenizer:
  """Splits text into words and punctuation: steps 1 to 5 of this module's list.

  Each step is a method of its own, so that a subclass can replace one, for instance
  `_tokenize_chinese_chars` to keep Chinese words together.
  """

  def __init__(
    self,
    do_lower_case: bool = True,
    *,
    strip_accents: bool | None = None,
    tokenize_chinese_chars: bool = True,
    drop_unassigned: bool = False,
  ):
    """Sets what is done to words.

    Args:
      do_lower_case: lower-case words, and drop their accents.
      strip_accents: whether accents are dropped; by default if words are lower-cased. False is
        ELECTRA's `--no-strip-accents`.
      tokenize_chinese_chars: whether each Chinese character is a word.
      drop_unassigned: drop surrogates, private and unassigned characters (Cs, Co, Cn), too, as
        ELECTRA's tokenizer does; BERT's keeps them.
    """
    self.do_lower_case = do_lower_case
    self.strip_accents = strip_accents
    self.tokenize_chinese_chars = tokenize_chinese_chars
    self.drop_unassigned = drop_unassigned
    self._spacing_table = CharacterTable(self._space_if_chinese)

  @property
  def settings(self) -> tuple[bool, bool | None, bool, bool]:
    """All that decides the result, unless a step was overridden."""
    chinese = self.tokenize_chinese_chars
    return self.do_lower_case, self.strip_accents, chinese, self.drop_unassigned

  @property
  def strips(self) -> bool:
    """Whether accents are dropped."""
    return self.do_lower_case if self.strip_accents is None else self.strip_accents

  def tokenize(self, text: str | bytes) -> list[str]:
    """Returns the words and punctuation characters of `text`.

    Example:
      >>> BasicTokenizer().tokenize("Où est-il, 博士?")
      ['ou', 'est', '-', 'il', ',', '博', '士', '?']
    """
    text = self._clean_text(convert_to_unicode(text))
    text = self._tokenize_chinese_chars(text)
    tokens: list[str] = []
    for word in whitespace_tokenize(text):
      if self.do_lower_case:
        # Word by word, because a capital sigma becomes another letter at the end of a word.
        word = word.lower()
      if self.strips:
        word = self._run_strip_accents(word)
      tokens.extend(self._run_split_on_punc(word))
    return whitespace_tokenize(" ".join(tokens))

  def _clean_text(self, text: str) -> str:
    """Drops control characters, U+0000 and U+FFFD; makes every blank a space."""
    return text.translate(_CLEAN_TABLE_OF_ASSIGNED if self.drop_unassigned else _CLEAN_TABLE)

  def _tokenize_chinese_chars(self, text: str) -> str:
    """Puts a space on both sides of each Chinese character, unless that is off."""
    return text.translate(self._spacing_table) if self.tokenize_chinese_chars else text

  def _space_if_chinese(self, char: str) -> str:
    return f" {char} " if self._is_chinese_char(ord(char)) else char

  def _is_chinese_char(self, cp: int) -> bool:
    """Tells whether code point `cp` is a Chinese character; kana and Hangul are not."""
    return any(first <= cp <= last for first, last in CHINESE_RANGES)

  def _run_strip_accents(self, text: str) -> str:
    """Decomposes characters into base and accents (NFD), and drops the accents (Mn).

    Example:
      >>> BasicTokenizer()._run_strip_accents("résumé")
      'resume'
    """
    if text.isascii():
      return text
    decomposed = decompose(text)
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


class WordpieceTokenizer:
  """Splits words into the longest pieces that the vocabulary has: step 6 of this module's list.

  Pieces after a word's first are marked by "##". A word of more than `max_input_chars_per_word`
  characters, or with a remainder that no piece begins, becomes `unk_token` as a whole.

  Words are remembered with their pieces. Setting an attribute or adding to the vocabulary is
  noticed; after replacing entries of a vocabulary in use, make a new tokenizer.
  """

  def __init__(
    self, vocab: Mapping[str, int], unk_token: str = "[UNK]", max_input_chars_per_word: int = 200
  ):
    """`vocab` may be any container of pieces; the ids do not matter here."""
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
    if len(self._pieces_of) >= MAX_WORDS:
      self._pieces_of.clear()  # frequent words return at once
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
