"""What all tokenizers share: special tokens in a text, and batches of texts.

`tokenization.FullTokenizer` (WordPiece), `sentence_pieces.SentencePieceTokenizer` and
`byte_pairs.BytePairTokenizer` are called alike; code that takes a tokenizer takes any.
"""

import os
import re
from collections.abc import Iterable, Sequence
from typing import Any

from bert.text import batch_encoding, sequence_layout
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
    return batch_encoding.encode_batch(self, texts, text_pairs, max_seq_length, pad_to_longest)

  def split_at_special_tokens(self, text: str) -> list[str]:
    """Lists the special tokens of `text` and what stands between them, in order."""
    if not self.special_tokens:
      return [text]
    return self._special_pattern.split(text)
