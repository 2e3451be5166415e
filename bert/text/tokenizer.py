"""What all tokenizers share: special tokens in a text, and batches of texts.

`tokenization.FullTokenizer` (WordPiece), `sentence_pieces.SentencePieceTokenizer` and
`byte_pairs.BytePairTokenizer` are called alike; code that takes a tokenizer takes any.
"""

import itertools
import os
import re
from collections.abc import Iterable, Sequence
from typing import Any

from bert.text import sequence_layout
from bert.text.vocabulary_file import UnknownItemError, VocabularyError


class Tokenizer:
  """Text to tokens and ids.

  Attributes:
    vocab_file: path of the vocabulary.
    vocab: token -> id.
    inv_vocab: id -> token.
    special_tokens: tokens that stay whole in text.
    layout: how texts become a sequence.
  """

  layout = sequence_layout.BERT

  def __init__(
    self,
    vocab_file: str | bytes | os.PathLike,
    vocab: dict[str, int],
    special_tokens: Sequence[str],
  ):
    """See `FullTokenizer`; raises `VocabularyError` if `vocab` lacks one of `special_tokens`."""
    self.vocab_file = os.fsdecode(vocab_file)
    self.vocab = vocab
    self.inv_vocab = {index: token for token, index in vocab.items()}
    self.special_tokens = self._checked(special_tokens)
    # Longest first: at any place in a text, the longest special token wins.
    longest_first = sorted(self.special_tokens, key=len, reverse=True)
    self._special_pattern = re.compile("(" + "|".join(map(re.escape, longest_first)) + ")")

  def _checked(self, special_tokens) -> frozenset[str]:
    if isinstance(special_tokens, str):
      raise ValueError(f"special_tokens must be a sequence of tokens, not one: {special_tokens!r}")
    missing = [token for token in special_tokens if not token or token not in self.vocab]
    if missing:
      raise VocabularyError(f"{self.vocab_file} lacks the special tokens {missing}.")
    return frozenset(special_tokens)

  def tokenize(self, text: str | bytes) -> list[str]:
    """Splits `text` into tokens, without those at its ends."""
    raise NotImplementedError

  def tokenize_word(self, word: str) -> list[str]:
    """Splits a word that stands alone in its data, as words of tags do."""
    return self.tokenize(word)

  def shown(self, token: str) -> str:
    """Writes a token as users see it among answers."""
    return token

  def text_to_ids(self, text: str | bytes) -> list[int]:
    """Computes `convert_tokens_to_ids(tokenize(text))`."""
    return self.convert_tokens_to_ids(self.tokenize(text))

  def texts_to_ids(self, texts: Iterable[str | bytes]) -> list[list[int]]:
    """Applies `text_to_ids` to each text."""
    return list(map(self.text_to_ids, texts))

  def convert_tokens_to_ids(self, tokens: Iterable[str]) -> list[int]:
    """Ids of `tokens`; that of the unknown token for one that the vocabulary lacks."""
    unknown = self.vocab[self.layout.unk]
    return [self.vocab.get(token, unknown) for token in tokens]

  def convert_ids_to_tokens(self, ids: Iterable[int]) -> list[str]:
    """Returns tokens of `ids`; raises `UnknownItemError` for an id without one."""
    try:
      return [self.inv_vocab[index] for index in ids]
    except KeyError as error:
      raise UnknownItemError(
        f"{self.vocab_file}: {error.args[0]!r} is not an id of its {len(self.vocab)} tokens."
      ) from None

  def encode_batch(
    self,
    texts: Sequence[str | bytes],
    text_pairs: Sequence[str | bytes | None] | None = None,
    max_seq_length: int | None = None,
    pad_to_longest: bool = False,
  ) -> dict[str, Any]:
    """Encodes texts, or pairs, as a model reads them: `[CLS] a [SEP]`, then `b [SEP]` if any.

    Args:
      texts: the first text of each row.
      text_pairs: the second text; None, or a text without any token, makes no second segment.
      max_seq_length: a longer row is cut as `classification.convert_single_example` does: the
        longer text loses its last token, repeatedly. By default nothing is cut.
      pad_to_longest: pad to the longest row instead of `max_seq_length`.

    Returns:
      `input_ids`, `input_mask` (1 for a token, 0 for padding) and `segment_ids` (1 for the second
      text, if the layout has segments): int32 `[B, S]`. S is `max_seq_length`, or the longest row's
      length without one.

    Raises:
      UnknownItemError: the vocabulary lacks a required token such as `[CLS]`.
      ValueError: `max_seq_length` leaves no room for a token, or `text_pairs` has another length.
    """
    texts = _checked(texts, "texts")
    pairs = [None] * len(texts) if text_pairs is None else _checked(text_pairs, "text_pairs")
    if len(pairs) != len(texts):
      raise ValueError(f"Got {len(texts)} texts, but {len(pairs)} text_pairs.")
    layout = self.layout
    cls_id, sep_id = self.convert_tokens_to_ids([layout.cls, layout.sep])
    between = [sep_id] * layout.separators
    firsts = self.texts_to_ids(texts)
    seconds = self.texts_to_ids([pair or "" for pair in pairs])
    rows, first_lengths = [], []
    for first, second in zip(firsts, seconds, strict=True):
      is_pair = bool(second)  # also if the second text is cut to nothing: it keeps its [SEP]
      if max_seq_length is not None:
        first, second = _cut(layout, first, second, max_seq_length)
      row = [cls_id, *first, *between, *second, sep_id] if is_pair else [cls_id, *first, sep_id]
      first_lengths.append(len(first) + 2 if layout.has_segments else len(row))
      rows.append(row)
    return _padded(rows, first_lengths, None if pad_to_longest else max_seq_length, layout.pad_id)

  def split_at_special_tokens(self, text: str) -> list[str]:
    """Lists the special tokens of `text` and what stands between them, in order."""
    if not self.special_tokens:
      return [text]
    return self._special_pattern.split(text)


def _checked(texts, name: str) -> list:
  if isinstance(texts, str | bytes):
    raise ValueError(f"{name} must be a sequence of texts, not one: {texts!r:.80}")
  return list(texts)


def _cut(
  layout: sequence_layout.Layout, first: list[int], second: list[int], max_seq_length: int
) -> tuple:
  special = layout.num_special(bool(second))
  if max_seq_length < special:
    raise ValueError(f"max_seq_length is {max_seq_length}, but must be at least {special}.")
  keep_first, keep_second = layout.kept_lengths(len(first), len(second), max_seq_length - special)
  return first[:keep_first], second[:keep_second]


def _padded(
  rows: list[list[int]], first_lengths: list[int], length: int | None, pad_id: int
) -> dict[str, Any]:
  """Makes arrays of rows; `first_lengths` count the ids of the first text, [CLS] and [SEP] too."""
  import numpy as np  # here, so that tokens alone do not need it

  lengths = np.fromiter(map(len, rows), np.int32, len(rows))
  length = int(lengths.max(initial=0)) if length is None else length
  position = np.arange(length)
  is_token = position < lengths[:, None]  # [B, S]
  input_ids = np.full(is_token.shape, pad_id, np.int32)
  input_ids[is_token] = np.fromiter(
    itertools.chain.from_iterable(rows), np.int32, lengths.sum(dtype=int)
  )
  segment_ids = is_token & (position >= np.array(first_lengths, np.int32)[:, None])
  return {
    "input_ids": input_ids,
    "input_mask": is_token.astype(np.int32),
    "segment_ids": segment_ids.astype(np.int32),
  }
