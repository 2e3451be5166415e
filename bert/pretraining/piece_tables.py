"""The pieces of a vocabulary, as the makers of records need them.

tables = load_tables(settings)
ids = tables.ids("A sentence.")
tables.begins_word[ids]  # [True, True, False, ...]
"""

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from bert import tokenization
from bert.io import vocabulary_kind
from bert.pretraining.record_settings import RecordSettings
from bert.text import sentence_pieces
from bert.text.vocabulary_file import VocabularyError

_ENGLISH = frozenset("abcdefghijklmnopqrstuvwxyz")
# ALBERT's list: neither the apostrophe nor "<", "=" and ">" are in it.
_PUNCTUATION = frozenset('!"#$%&()*+,-./:;?@[\\]^_`{|}~')


class Tables:
  """Lookup tables for tokens; see `load_tables`.

  Attributes:
    tokenizer: of the text.
    begins_word_of: whether a piece begins a word, from its spelling.
    begins_word: bool [V], the same by id.
    random_ids: int32 [V], the ids that may replace a masked token.
    unknown: the token of what the vocabulary does not have.
  """

  def __init__(self, tokenizer: Any, begins_word_of: Callable[[str], bool], unknown: str):
    self.tokenizer = tokenizer
    self.begins_word_of = begins_word_of
    self.unknown = unknown
    vocab = tokenizer.vocab
    self.cls_id, self.sep_id, self.mask_id, self.unknown_id = (
      vocab[token] for token in ("[CLS]", "[SEP]", "[MASK]", unknown)
    )
    self.random_ids = np.array(list(vocab.values()), np.int32)  # [V]
    self.begins_word = np.ones(max(vocab.values()) + 1, bool)
    inside = [index for token, index in vocab.items() if not begins_word_of(token)]
    self.begins_word[inside] = False

  def ids(self, text: str) -> list[int]:
    """Token ids of a text."""
    return self.tokenizer.text_to_ids(text)


@functools.lru_cache(maxsize=1)  # forked workers inherit them
def load_tables(settings: RecordSettings) -> Tables:
  """Reads the vocabulary, or the sentencepiece model.

  Raises:
    VocabularyError: it cannot be read, or lacks a special token.
  """
  tokenizer: Any
  if model_file := _model_file(settings):
    tokenizer = sentence_pieces.SentencePieceTokenizer(model_file, settings.do_lower_case)
    begins_word_of, unknown = begins_word_of_sentence_pieces, tokenizer.unk_token
  else:
    tokenizer = tokenization.FullTokenizer(
      settings.vocab_file,
      settings.do_lower_case,
      strip_accents=settings.strip_accents,
      drop_unassigned=settings.format == "electra",
    )
    begins_word_of, unknown = begins_word_of_word_pieces, "[UNK]"
  missing = [t for t in ("[CLS]", "[SEP]", "[MASK]", unknown) if t not in tokenizer.vocab]
  if missing:
    raise VocabularyError(f"{tokenizer.vocab_file} lacks {', '.join(missing)}.")
  return Tables(tokenizer, begins_word_of, unknown)


def _model_file(settings: RecordSettings) -> str | None:
  """The sentencepiece model, which may be given as vocabulary, too."""
  if settings.spm_model_file or not vocabulary_kind.is_meant_as_model(settings.vocab_file):
    return settings.spm_model_file
  if settings.format != "albert":
    raise VocabularyError(
      f"--vocab_file={settings.vocab_file} is a sentencepiece model, which only --format=albert "
      "takes. Give a vocab.txt, or that format."
    )
  return settings.vocab_file


def begins_word_of_word_pieces(piece: str) -> bool:
  """Whether a piece of a WordPiece vocabulary begins a word.

  Example:
    >>> [begins_word_of_word_pieces(piece) for piece in ("un", "##able")]
    [True, False]
  """
  return not piece.startswith("##")


def begins_word_of_sentence_pieces(piece: str) -> bool:
  """Whether a piece of a sentencepiece model begins a word: ALBERT's `_is_start_piece_sp`.

  Pieces of other than English letters, such as digits, each count as a word, and so does a single
  punctuation character.

  Example:
    >>> pieces = ("▁un", "able", "7", "'s", ".", "...", "<unk>")
    >>> [begins_word_of_sentence_pieces(piece) for piece in pieces]
    [True, False, True, True, True, False, True]
  """
  if piece.startswith((sentence_pieces.SPACE, "<")) or piece in _PUNCTUATION:
    return True
  return any(c.lower() not in _ENGLISH and c not in _PUNCTUATION for c in piece)
