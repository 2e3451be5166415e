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
import random
from collections.abc import Sequence

import numpy as np

from bert.pretraining import original_stream
from bert.pretraining.instances import TrainingInstance, Workspace
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
  rng, sizes = random.Random(settings.random_seed), np.random.RandomState(settings.random_seed)
  cumulated = ngram_shares(settings.ngram_max, settings.favor_shorter_ngram)
  masking = original_stream.Masking(
    settings.masked_lm_prob,
    settings.max_predictions_per_seq,
    list(tables.tokenizer.vocab),
    rng,
    pieces.word_starts.__contains__ if settings.do_whole_word_mask else lambda token: True,
    # `numpy.random.choice` makes the same of one draw.
    lambda: bisect.bisect_right(cumulated, sizes.random_sample()) + 1,
    settings.do_permutation,
  )
  # The original cleans a line first, so that one of accents alone counts as empty.
  prepared = getattr(tables.tokenizer, "prepared", None)
  return original_stream.instances_of_corpus(
    input_files,
    pieces,
    lambda documents, index: original_stream.instances_of_document(
      documents,
      index,
      settings.max_seq_length,
      settings.short_seq_prob,
      masking,
      sentence_order=settings.has_sentence_order,
      word_starts=pieces.word_starts,
    ),
    settings.new_statistics(total_bytes=text_files.total_bytes(input_files)),
    settings.dupe_factor,
    rng,
    text_format=settings.text_format,
    ends_document=prepared and (lambda sentence: not prepared(sentence)),
    workspace=workspace,
  )
