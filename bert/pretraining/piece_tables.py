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
from bert.io import byte_pair_files, vocabulary_kind
from bert.pretraining.record_settings import RecordSettings
from bert.text import byte_pairs, sentence_pieces
from bert.text.sequence_layout import layout_of
from bert.text.vocabulary_file import VocabularyError, supported_settings

_SPACE_BYTE = byte_pair_files.byte_characters()[ord(" ")]
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
    pad_id: what fills up a record.
  """

  def __init__(
    self,
    tokenizer: Any,
    begins_word_of: Callable[[str], bool],
    unknown: str,
    draws_special: bool = True,
  ):
    """Looks up the special tokens, which are among `random_ids` if `draws_special`."""
    self.tokenizer = tokenizer
    self.begins_word_of = begins_word_of
    self.unknown = unknown
    vocab, layout = tokenizer.vocab, layout_of(tokenizer)
    self.cls_id, self.sep_id, self.mask_id, self.unknown_id = (
      vocab[token] for token in (layout.cls, layout.sep, layout.mask, unknown)
    )
    self.pad_id = layout.pad_id
    self.random_ids = np.array([vocab[token] for token in vocab if token], np.int32)  # [V]
    if not draws_special:
      self.random_ids = np.setdiff1d(self.random_ids, vocabulary_kind.special_ids(vocab))
    self.begins_word = np.ones(max(vocab.values()) + 1, bool)
    inside = [index for token, index in vocab.items() if not begins_word_of(token)]
    self.begins_word[inside] = False

  def ids(self, text: str) -> list[int]:
    """Token ids of a text."""
    return self.tokenizer.text_to_ids(text)


@functools.lru_cache(maxsize=1)  # forked workers inherit them
def load_tables(settings: RecordSettings) -> Tables:
  """Reads a vocabulary or sentencepiece model; VocabularyError if a special token is missing."""
  tokenizer: Any
  splitting = supported_settings(settings.spm_model_file or settings.vocab_file).splitting
  if model_file := _model_file(settings):
    tokenizer = sentence_pieces.SentencePieceTokenizer(model_file, settings.do_lower_case)
    begins_word_of, unknown = begins_word_of_sentence_pieces, tokenizer.unk_token
  elif vocabulary_kind.is_meant_as_byte_pairs(settings.vocab_file):
    if "byte_pairs" not in settings.rules.vocabularies:
      raise VocabularyError(
        f"--vocab_file={settings.vocab_file} is a byte-level BPE, which --format="
        f"{settings.format} does not take. Give --format=roberta, or a vocab.txt."
      )
    # As fairseq reads a text: "<s>" in it is text like any other.
    tokenizer = byte_pairs.BytePairTokenizer(settings.vocab_file, plain=True)
    begins_word_of, unknown = begins_word_of_byte_pairs, tokenizer.layout.unk
  else:
    if not settings.strip_accents:
      splitting["strip_accents"] = False
    tokenizer = tokenization.FullTokenizer(
      settings.vocab_file,
      settings.do_lower_case,
      **splitting,
      drop_unassigned=settings.rules.drops_unassigned,
    )
    begins_word_of, unknown = begins_word_of_word_pieces, "[UNK]"
  layout = layout_of(tokenizer)
  missing = [t for t in (layout.cls, layout.sep, layout.mask, unknown) if t not in tokenizer.vocab]
  if missing:
    raise VocabularyError(f"{tokenizer.vocab_file} lacks {', '.join(missing)}.")
  return Tables(tokenizer, begins_word_of, unknown, draws_special=settings.rules.draws_special)


def _model_file(settings: RecordSettings) -> str | None:
  """Returns the sentencepiece model, which may be given as vocabulary, too."""
  if settings.spm_model_file or not vocabulary_kind.is_sentencepiece_file(settings.vocab_file):
    return settings.spm_model_file
  if "sentence_pieces" not in settings.rules.vocabularies:
    raise VocabularyError(
      f"--vocab_file={settings.vocab_file} is a sentencepiece model, which only --format=albert "
      "takes. Give a vocab.txt, or that format."
    )
  return settings.vocab_file


def begins_word_of_word_pieces(piece: str) -> bool:
  """Tells whether a piece of a WordPiece vocabulary begins a word.

  Example:
    >>> [begins_word_of_word_pieces(piece) for piece in ("un", "##able")]
    [True, False]
  """
  return not piece.startswith("##")


def begins_word_of_byte_pairs(piece: str) -> bool:
  """Tells whether a piece of a byte-level BPE begins a word: one with a space before it.

  The first piece of a sentence begins one, too, which its spelling does not say.

  Example:
    >>> [begins_word_of_byte_pairs(piece) for piece in ("Ġun", "able", ".")]
    [True, False, False]
  """
  return piece.startswith(_SPACE_BYTE)


def begins_word_of_sentence_pieces(piece: str) -> bool:
  """Tells whether a piece of a sentencepiece model begins a word: ALBERT's `_is_start_piece_sp`.

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
