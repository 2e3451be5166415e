"""ALBERT's training instances: sentence order, and masks over n-grams of words.

  pieces = StorablePieces(tables)
  with Workspace("output", pieces) as workspace:
    instances = create_training_instances(files, tables, settings, pieces, workspace)

As google-research/albert's `create_pretraining_data.py`, whose draws and their order are kept: from
`random`, and the sizes of n-grams from NumPy. The original never seeds NumPy; here both have the
seed of the records.

Kept, although hardly intended: an n-gram may run across [SEP] into the second segment; the rest of
a word that was cut joins the word before it; random words may be <pad> or [CLS]; the pieces of an
n-gram are replaced each by itself; a chunk of one sentence gets text of another document, with
label 1, also where the order is to be learned.
"""

import bisect
import dataclasses
import random
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from bert.pretraining import original_stream
from bert.pretraining.instances import TrainingInstance, Workspace, shuffle
from bert.pretraining.piece_tables import Tables
from bert.pretraining.record_settings import RecordSettings
from bert.text import text_files

# In place of an unknown piece that begins no word. No piece is spelled like this.
_INSIDE_UNKNOWN = "\0unknown"


class StorablePieces:
  """A tokenizer whose tokens can be stored by their ids, and still tell where words begin.

  A sentencepiece model leaves an unknown piece its spelling, which decides whether it begins a
  word. Here such a piece is one of two tokens, with and without a word's beginning.

  Attributes:
    vocab: token -> the id by which it is stored; two tokens mean the unknown piece.
    unk_token: what most unknown pieces become.
    word_starts: the tokens that begin a word, and [CLS] and [SEP].
  """

  def __init__(self, tables: Tables):
    self._tables = tables
    self.unk_token = tables.unknown
    vocab = tables.tokenizer.vocab
    self.vocab = {**vocab, _INSIDE_UNKNOWN: len(tables.begins_word)}
    self.word_starts = frozenset({"[CLS]", "[SEP]", *filter(tables.begins_word_of, vocab)})

  def tokenize(self, text: str) -> list[str]:
    """Returns the pieces of a text."""
    pieces = self._tables.tokenizer.tokenize(text)
    return [piece if piece in self.vocab else self._unknown(piece) for piece in pieces]

  def _unknown(self, piece: str) -> str:
    return self.unk_token if self._tables.begins_word_of(piece) else _INSIDE_UNKNOWN

  def convert_tokens_to_ids(self, tokens: Sequence[str]) -> list[int]:
    """Returns the ids that are written to records."""
    ids, unknown = self.vocab, self._tables.unknown_id
    return [unknown if token == _INSIDE_UNKNOWN else ids[token] for token in tokens]


@dataclasses.dataclass(frozen=True)
class Masking:
  """How to mask, and the generators to draw from."""

  # Fraction of the tokens to predict, special tokens counted; 0: no masks at all.
  masked_lm_prob: float
  max_predictions_per_seq: int  # the maximum number of tokens to predict
  # Whether a token begins what is masked as a whole, a word or the token alone.
  begins_unit: Callable[[str], bool]
  cumulated: list[float]  # shares of n-grams of 1, 1 to 2, ... words; see `ngram_shares`.
  do_permutation: bool  # exchange as many further tokens among each other, and predict them too
  vocab_words: Sequence[str]  # random tokens are taken from all of these
  rng: random.Random  # of all draws but the sizes of n-grams
  sizes: np.random.RandomState  # of these

  def draw_size(self) -> int:
    """The number of words of an n-gram; `numpy.random.choice` makes the same of one draw."""
    return bisect.bisect_right(self.cumulated, self.sizes.random_sample()) + 1


def ngram_shares(ngram_max: int, favor_shorter_ngram: bool = True) -> list[float]:
  """Computes the probability of n words or fewer, for n from 1 to the largest: n words ~ 1/n.

  Without `favor_shorter_ngram` long ones have the shares of short ones.

  Example:
    >>> [round(share, 3) for share in ngram_shares(3)]
    [0.545, 0.818, 1.0]
    >>> [round(share, 3) for share in ngram_shares(3, favor_shorter_ngram=False)]
    [0.182, 0.455, 1.0]
  """
  shares = 1.0 / np.arange(1, ngram_max + 1)
  shares /= shares.sum(keepdims=True)
  if not favor_shorter_ngram:
    shares = shares[::-1]
  # The original divides once more, and `numpy.random.choice` a third time: the last bit counts.
  cumulated = np.cumsum(shares / shares.sum(keepdims=True))
  return (cumulated / cumulated[-1]).tolist()


def create_training_instances(
  input_files: Sequence[str],
  tables: Tables,
  settings: RecordSettings,
  pieces: StorablePieces,
  workspace: Workspace,
) -> Sequence[TrainingInstance]:
  """Reads a corpus and creates its instances, in random order.

  `pieces` is `StorablePieces(tables)`, and `workspace` is of these; it holds documents and
  instances.

  Raises:
    CorpusError: there is no text, or a line does not have the format.
  """
  rng = random.Random(settings.random_seed)
  masking = Masking(
    settings.masked_lm_prob,
    settings.max_predictions_per_seq,
    pieces.word_starts.__contains__ if settings.do_whole_word_mask else lambda token: True,
    ngram_shares(settings.ngram_max, settings.favor_shorter_ngram),
    settings.do_permutation,
    list(tables.tokenizer.vocab),
    rng,
    np.random.RandomState(settings.random_seed),
  )

  def make(documents: Sequence, index: int) -> Iterator[TrainingInstance]:
    for pair in original_stream.pairs_of_document(
      documents,
      index,
      settings.max_seq_length,
      settings.short_seq_prob,
      rng,
      sentence_order=settings.has_sentence_order,
    ):
      tokens, segment_ids = pair.with_special_tokens()
      boundary = [int(token in pieces.word_starts) for token in tokens]
      masked, positions, labels = create_masked_lm_predictions(tokens, masking)
      yield TrainingInstance(masked, segment_ids, positions, labels, pair.is_random_next, boundary)

  # The original cleans a line first, so that one of accents alone counts as empty.
  prepared = getattr(tables.tokenizer, "prepared", None)
  return original_stream.instances_of_corpus(
    input_files,
    pieces,
    make,
    settings.new_statistics(total_bytes=text_files.total_bytes(input_files)),
    settings.dupe_factor,
    rng,
    text_format=settings.text_format,
    ends_document=prepared and (lambda sentence: not prepared(sentence)),
    workspace=workspace,
  )


def create_masked_lm_predictions(
  tokens: Sequence[str], masking: Masking
) -> tuple[list[str], list[int], list[str]]:
  """Chooses n-grams of words to predict; 80% of their tokens become [MASK], 10% a random one.

  [CLS] and [SEP] are never chosen, but count in the fraction.

  Returns:
    `(tokens, positions, labels)`: the tokens with masks, the chosen positions in ascending order,
    and the original tokens at these positions.
  """
  output = list(tokens)
  if masking.masked_lm_prob == 0:
    return output, [], []
  limit = min(masking.max_predictions_per_seq, max(1, round(len(tokens) * masking.masked_lm_prob)))
  words = original_stream.word_positions(tokens, masking.begins_unit)
  starts = list(range(len(words)))
  shuffle(starts, masking.rng)
  chosen = _choose(words, starts, limit, set(), masking)
  for position in chosen:
    output[position] = original_stream.masked(tokens[position], masking.vocab_words, masking.rng)
  shuffle(starts, masking.rng)  # always drawn, although rarely used
  if masking.do_permutation:
    exchanged = sorted(_choose(words, starts, limit, set(chosen), masking))
    sources = list(exchanged)
    shuffle(sources, masking.rng)
    for position, source in zip(exchanged, sources, strict=True):
      output[position] = tokens[source]
    chosen += exchanged
  chosen.sort()
  return output, chosen, [tokens[position] for position in chosen]


def _choose(
  words: list[list[int]], starts: list[int], limit: int, taken: set[int], masking: Masking
) -> list[int]:
  """Positions of n-grams that begin at words `starts`, at most `limit`, none of them `taken`.

  An n-gram that is too long gives way to a shorter one; one that overlaps another is skipped.
  """
  chosen: list[int] = []
  for start in starts:
    if len(chosen) >= limit:
      break
    for size in range(masking.draw_size(), 0, -1):
      positions = original_stream.joined(words[start : start + size])
      if len(chosen) + len(positions) <= limit:
        if taken.isdisjoint(positions):
          chosen += positions
          taken.update(positions)
        break
  return chosen
