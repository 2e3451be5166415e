"""BERT's tokenizers, slow and fast, and those of DistilBERT and ELECTRA, which equal them.

tokenizer = BertTokenizerFast.from_pretrained("bert-base-uncased")
tokenizer("It rains.", return_offsets_mapping=True)
"""

import os
import unicodedata
from collections.abc import Iterable, Mapping
from typing import Any

from bert import tokenization
from bert.text.vocabulary_file import VocabularyError, write_tokens
from bert.tokenization import _is_control, _is_punctuation, _is_whitespace  # noqa: F401
from bert.transformers import tokenization_files
from bert.transformers.fast_backends import Backend, WordPieceBackend
from bert.transformers.library_words import Normalization
from bert.transformers.tokenization_fast import PreTrainedTokenizerFast
from bert.transformers.tokenization_options import LOGGER
from bert.transformers.tokenization_rows import ClsSepRows
from bert.transformers.tokenization_slow import PreTrainedTokenizer

VOCAB_FILES_NAMES = {"vocab_file": "vocab.txt"}


def load_vocab(vocab_file: str | os.PathLike) -> dict[str, int]:
  """Reads a vocab.txt or a tokenizer.json: token -> id; `VocabularyError` if it is of no use."""
  if vocab_file is None or not os.path.isfile(vocab_file):
    raise VocabularyError(
      f"No vocabulary is at {vocab_file!r}. Give the vocab.txt of the model, or read a model's "
      "folder with from_pretrained."
    )
  if os.fsdecode(vocab_file).endswith(".json"):
    return tokenization_files.vocabulary_in(vocab_file, "WordPiece")["vocab"]
  return tokenization.load_vocab(vocab_file)


def whitespace_tokenize(text: str) -> list[str]:
  """Splits at white space."""
  return text.split()


class BasicTokenizer(tokenization.BasicTokenizer):
  """Splits text into words and punctuation, as the slow tokenizers do.

  It composes characters (NFC), and drops unassigned and private ones; the original does neither.

  Attributes:
    do_lower_case: whether words are lower-cased.
    never_split: words that stay as they are.
    tokenize_chinese_chars: whether each Chinese character is a word.
    strip_accents: whether accents are dropped; None if words are lower-cased.
    do_split_on_punc: whether punctuation is cut off.
  """

  def __init__(
    self,
    do_lower_case: bool = True,
    never_split: Iterable[str] | None = None,
    tokenize_chinese_chars: bool = True,
    strip_accents: bool | None = None,
    do_split_on_punc: bool = True,
  ):
    """See the class."""
    super().__init__(
      do_lower_case,
      strip_accents=strip_accents,
      tokenize_chinese_chars=tokenize_chinese_chars,
      drop_unassigned=True,
    )
    self.never_split = set(never_split or ())
    self.do_split_on_punc = do_split_on_punc

  def tokenize(self, text: str | bytes, never_split: Iterable[str] | None = None) -> list[str]:
    """Returns the words and punctuation characters of `text`."""
    kept = self.never_split.union(never_split or ())
    text = self._clean_text(tokenization.convert_to_unicode(text))
    text = self._tokenize_chinese_chars(text)
    words: list[str] = []
    for word in unicodedata.normalize("NFC", text).split():
      if word in kept:
        words.append(word)
        continue
      if self.do_lower_case:
        word = word.lower()
      if self.strips:
        word = self._run_strip_accents(word)
      words += [word] if word in kept else self._run_split_on_punc(word)
    return " ".join(words).split()

  def _run_split_on_punc(self, text: str) -> list[str]:
    """Cuts `text` before and after each punctuation character, unless that is off."""
    return super()._run_split_on_punc(text) if self.do_split_on_punc else [text]


class WordpieceTokenizer(tokenization.WordpieceTokenizer):
  """Splits words into the longest pieces of a vocabulary; one of over 100 characters is unknown."""

  def __init__(self, vocab: Mapping[str, int], unk_token: str, max_input_chars_per_word: int = 100):
    """See `bert.tokenization.WordpieceTokenizer`."""
    super().__init__(vocab, unk_token, max_input_chars_per_word)


class BertTokenizer(ClsSepRows, PreTrainedTokenizer):
  """Text to word pieces: the slow tokenizer of transformers, whose rare differences it shares.

  Attributes:
    vocab: token -> id.
    ids_to_tokens: id -> token.
    basic_tokenizer: splits text into words.
    wordpiece_tokenizer: splits words into pieces.
    do_basic_tokenize: whether texts are split into words at more than white space.
  """

  vocab_files_names = VOCAB_FILES_NAMES
  reads_tokenizer_json = True

  def __init__(
    self,
    vocab_file: str | os.PathLike,
    do_lower_case: bool = True,
    do_basic_tokenize: bool = True,
    never_split: Iterable[str] | None = None,
    unk_token: Any = "[UNK]",
    sep_token: Any = "[SEP]",
    pad_token: Any = "[PAD]",
    cls_token: Any = "[CLS]",
    mask_token: Any = "[MASK]",
    tokenize_chinese_chars: bool = True,
    strip_accents: bool | None = None,
    clean_up_tokenization_spaces: bool = True,
    **kwargs: Any,
  ):
    """Reads the vocabulary.

    Args:
      vocab_file: file with one token per line.
      do_lower_case: True for uncased models.
      do_basic_tokenize: see the class.
      never_split: words that stay as they are.
      unk_token: the token of what the vocabulary cannot spell.
      sep_token: the token after each text.
      pad_token: the token of padding.
      cls_token: the token before a text.
      mask_token: the token of a masked word.
      tokenize_chinese_chars: whether each Chinese character is a word.
      strip_accents: whether accents are dropped; by default if `do_lower_case`.
      clean_up_tokenization_spaces: whether decoding drops spaces before punctuation.
      **kwargs: `model_max_length`, `padding_side`, ...; see `PreTrainedTokenizerBase`.

    Raises:
      VocabularyError: the file is missing or cannot be used.
    """
    self.vocab = load_vocab(vocab_file)
    self.ids_to_tokens = {index: token for token, index in self.vocab.items()}
    self.do_basic_tokenize = do_basic_tokenize
    if do_basic_tokenize:
      self.basic_tokenizer = BasicTokenizer(
        do_lower_case, never_split, tokenize_chinese_chars, strip_accents
      )
    self.wordpiece_tokenizer = WordpieceTokenizer(self.vocab, str(unk_token))
    super().__init__(
      do_lower_case=do_lower_case,
      do_basic_tokenize=do_basic_tokenize,
      never_split=never_split,
      unk_token=unk_token,
      sep_token=sep_token,
      pad_token=pad_token,
      cls_token=cls_token,
      mask_token=mask_token,
      tokenize_chinese_chars=tokenize_chinese_chars,
      strip_accents=strip_accents,
      clean_up_tokenization_spaces=clean_up_tokenization_spaces,
      **kwargs,
    )

  @property
  def do_lower_case(self) -> bool:
    """Whether words are lower-cased."""
    return self.do_basic_tokenize and self.basic_tokenizer.do_lower_case

  @property
  def vocab_size(self) -> int:
    """Number of tokens without added ones."""
    return len(self.vocab)

  def get_vocab(self) -> dict[str, int]:
    """Returns token -> id, of all tokens."""
    return {**self.vocab, **self.added_tokens_encoder}

  def _tokenize(self, text: str, split_special_tokens: bool = False, **kwargs: Any) -> list[str]:
    del kwargs
    if not self.do_basic_tokenize:
      return self.wordpiece_tokenizer.tokenize(text)
    kept = None if split_special_tokens else self.all_special_tokens
    tokens: list[str] = []
    for word in self.basic_tokenizer.tokenize(text, never_split=kept):
      is_kept = word in self.basic_tokenizer.never_split
      tokens += [word] if is_kept else self.wordpiece_tokenizer.tokenize(word)
    return tokens

  def _convert_token_to_id(self, token: str) -> int:
    found = self.vocab.get(token)
    return self.vocab.get(self.unk_token) if found is None else found

  def _convert_id_to_token(self, index: int) -> str:
    return self.ids_to_tokens.get(index, self.unk_token)

  def convert_tokens_to_string(self, tokens: list[str]) -> str:
    """Joins tokens to a text."""
    return " ".join(tokens).replace(" ##", "").strip()

  def save_vocabulary(
    self, save_directory: str, filename_prefix: str | None = None
  ) -> tuple[str, ...]:
    """Writes vocab.txt into a folder, and returns its path."""
    prefix = f"{filename_prefix}-" if filename_prefix else ""
    path = os.path.join(save_directory, f"{prefix}vocab.txt")
    tokens = sorted(self.vocab, key=self.vocab.__getitem__)
    if [self.vocab[token] for token in tokens] != list(range(len(tokens))):
      LOGGER.warning("%s: the ids have gaps, which a file of one token per line cannot have.", path)
    write_tokens(path, tokens)
    return (path,)


class BertTokenizerFast(ClsSepRows, PreTrainedTokenizerFast):
  """Text to word pieces as the library `tokenizers` makes them, with offsets and words.

  It needs no library. See `BertTokenizer` for the arguments; `tokenizer_file` goes before
  `vocab_file`.
  """

  vocab_files_names = {**VOCAB_FILES_NAMES, "tokenizer_file": "tokenizer.json"}
  slow_tokenizer_class = BertTokenizer

  def __init__(
    self,
    vocab_file: str | os.PathLike | None = None,
    tokenizer_file: str | os.PathLike | None = None,
    do_lower_case: bool = True,
    unk_token: Any = "[UNK]",
    sep_token: Any = "[SEP]",
    pad_token: Any = "[PAD]",
    cls_token: Any = "[CLS]",
    mask_token: Any = "[MASK]",
    tokenize_chinese_chars: bool = True,
    strip_accents: bool | None = None,
    **kwargs: Any,
  ):
    """Reads the vocabulary.

    Raises:
      VocabularyError: neither file was given, or one cannot be used.
    """
    if self._reads_vocabulary(tokenizer_file, kwargs):
      kwargs.setdefault("clean_up_tokenization_spaces", True)
      kwargs.setdefault("do_basic_tokenize", True)
      kwargs.setdefault("never_split", None)
    super().__init__(
      vocab_file,
      tokenizer_file=tokenizer_file,
      do_lower_case=do_lower_case,
      unk_token=unk_token,
      sep_token=sep_token,
      pad_token=pad_token,
      cls_token=cls_token,
      mask_token=mask_token,
      tokenize_chinese_chars=tokenize_chinese_chars,
      strip_accents=strip_accents,
      **kwargs,
    )
    self.do_lower_case = do_lower_case
    normalization = Normalization(tokenize_chinese_chars, strip_accents, do_lower_case)
    backend = self._backend
    if isinstance(backend, WordPieceBackend) and backend.normalization != normalization:
      backend.normalization = normalization

  def _from_vocabulary(self, *args: Any, **kwargs: Any) -> Backend:
    vocab_file, unknown = args[0], str(kwargs["unk_token"])
    vocab = load_vocab(vocab_file)
    if unknown not in vocab:  # becomes an added token
      vocab = {**vocab, unknown: len(vocab)}
    normalization = Normalization(
      kwargs["tokenize_chinese_chars"], kwargs["strip_accents"], kwargs["do_lower_case"]
    )
    if not kwargs.get("do_basic_tokenize", True):
      normalization = Normalization(False, False, False)
    return WordPieceBackend(vocab, normalization, unknown)


class ElectraTokenizer(BertTokenizer):
  """ELECTRA's slow tokenizer: BERT's."""


class ElectraTokenizerFast(BertTokenizerFast):
  """ELECTRA's fast tokenizer: BERT's."""

  slow_tokenizer_class = ElectraTokenizer


class DistilBertTokenizer(BertTokenizer):
  """DistilBERT's slow tokenizer: BERT's, without segments."""

  model_input_names = ["input_ids", "attention_mask"]


class DistilBertTokenizerFast(BertTokenizerFast):
  """DistilBERT's fast tokenizer: BERT's, without segments."""

  slow_tokenizer_class = DistilBertTokenizer
  model_input_names = ["input_ids", "attention_mask"]
