"""Text in blocks -> pre-training records: the part that runs in parallel.

  settings = RecordSettings(vocab_file="vocab.txt", ...)
  tables = load_tables(settings)
  for number, part in enumerate(text_files.text_ranges(files, block_bytes(total_bytes))):
    for batch in records_of_range(number, part, settings, tables, statistics):
      ...  # batch.records: serialized examples

A block consists of the documents of a range of a file (`corpus.read_range`). Random next sentences
come from other documents of the same block, and each document has its own random stream, so the
records of a range depend only on the text and the settings: processes on one machine (`workers.py`)
and a cluster (`beam.py`) write the same records.

Internally a block is three arrays: token ids, ends of sentences, ends of documents. The segments of
an instance are runs of consecutive sentences, so an instance is four numbers, and thousands of them
become matrices `[n, S]` at once. Records of ELECTRA's and DistilBERT's formats need no block.

Memory is bounded by cutting: a document longer than `_DOCUMENT_CHARACTERS` is several documents, a
line of more than a million characters is several sentences.
"""

import array
import bisect
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from bert.io.tfrecord_bytes import encode_examples
from bert.pretraining import electra_examples, single_texts
from bert.pretraining.masks import MaskSettings, draw_masks
from bert.pretraining.piece_tables import Tables
from bert.pretraining.random_streams import Stream, stream_key
from bert.pretraining.record_output import Batch
from bert.pretraining.record_settings import RecordSettings
from bert.text import corpus, corpus_statistics, text_files

_DOCUMENT_CHARACTERS = 8 << 20
_BATCH = 2048  # instances that become matrices together, a few megabytes each


def block_bytes(total_bytes: int) -> int:
  """Returns the size of a block of text: 1 to 8 MB, larger for larger corpora.

  In a larger block, random next sentences come from more documents.

  Example:
    >>> [block_bytes(total) >> 20 for total in (0, 1 << 30, 1 << 40)]
    [1, 4, 8]
  """
  return min(8 << 20, max(1 << 20, total_bytes >> 8))


def records_of_range(
  range_number: int,
  part: text_files.TextRange,
  block_size: int,
  settings: RecordSettings,
  tables: Tables,
  statistics: corpus_statistics.TextStatistics,
) -> Iterator[Batch]:
  """Creates the records of the documents in a range.

  Args:
    range_number: index of the range in the input.
    part: the range.
    block_size: in characters; a range with much more text becomes several blocks.
    settings: of the records.
    tables: `piece_tables.load_tables(settings)`.
    statistics: counts documents, sentences and tokens.

  Yields:
    Records, in an order that depends only on the arguments: block by block, pass by pass.

  Raises:
    CorpusError: a line does not have the format of the settings.
  """
  if not settings.rules.has_labels:
    yield from electra_examples.records_of_range(range_number, part, settings, tables, statistics)
    return
  if settings.rules.of_lines:
    yield from single_texts.records_of_range(part, settings, tables, statistics)
    return
  for block in _read_blocks(range_number, part, block_size, settings, tables, statistics):
    if len(block) == 1 and not (settings.no_next_sentence or settings.has_sentence_order):
      statistics.documents_alone += 1
    for pass_number in range(settings.dupe_factor):
      instances = _instances_of_block(block, pass_number, settings)
      while batch := [instance for instance, _ in zip(instances, range(_BATCH), strict=False)]:
        yield _records(block, np.array(batch, np.uint64), settings, tables)


# ---------------------------------------------------------------------------------------------
# Text -> blocks.


class Block:
  """Consecutive documents as flat arrays.

  Attributes:
    place: number of the range, and number of the first document in it.
    ids: int32, all tokens.
    word_starts: bool, whether a token begins a word; filled by `freeze`.
    sentence_ends: in tokens; the first is 0, so sentence n is between ends n and n + 1.
    document_ends: in sentences, likewise.
  """

  def __init__(self, place: tuple[int, int]):
    self.place = place
    # Python arrays while they are filled, then NumPy arrays.
    self.ids: Any = array.array("i")
    self.word_starts: Any = None
    self.sentence_ends = [0]
    self.document_ends = [0]

  def __len__(self) -> int:
    return len(self.document_ends) - 1

  def add_sentence(self, ids: Sequence[int]) -> None:
    """Appends to the current document."""
    self.ids.extend(ids)
    self.sentence_ends.append(len(self.ids))

  @property
  def is_between_documents(self) -> bool:
    """Whether there are documents, and the current one is empty."""
    return len(self.sentence_ends) - 1 == self.document_ends[-1] > 0

  def end_document(self) -> None:
    """Starts another document, unless the current one is empty."""
    sentences = len(self.sentence_ends) - 1
    if sentences > self.document_ends[-1]:
      self.document_ends.append(sentences)

  def freeze(self, tables: Tables) -> None:
    """Completes the block."""
    self.ids = np.frombuffer(self.ids, np.int32)
    self.word_starts = tables.begins_word[self.ids]
    # A sentence begins with a word, which byte pairs do not say.
    self.word_starts[1:] |= self.ids[:-1] == tables.sep_id

  def end_after(self, first: int, last: int, tokens: int) -> int:
    """The end of the shortest run of sentences from `first` on that has at least `tokens` tokens.

    At least one sentence, and not beyond `last`.
    """
    wanted = self.sentence_ends[first] + tokens
    return min(bisect.bisect_left(self.sentence_ends, wanted, first + 1, last + 1), last)


def _read_blocks(range_number, part, block_size, settings, tables, statistics) -> Iterator[Block]:
  block = Block((range_number, 0))
  block_characters = document_characters = 0
  for sentence in corpus.read_range(part, settings.text_format, statistics):
    if sentence is not None:
      document_characters += len(sentence)
      for text in corpus.parts(sentence):
        _add_text(block, text, settings, tables, statistics)
    if sentence is None or document_characters > _DOCUMENT_CHARACTERS:
      block.end_document()
      block_characters += document_characters
      document_characters = 0
    if block_characters > block_size and len(block):
      block.freeze(tables)
      yield block
      block = Block((range_number, block.place[1] + len(block)))
      block_characters = 0
  if len(block):
    block.freeze(tables)
    yield block


def _add_text(block: Block, text: str, settings, tables, statistics) -> None:
  ids = tables.ids(text)
  statistics.add_sentence(len(ids), ids.count(tables.unknown_id))
  if not ids:
    return
  if settings.rules.crosses_documents:
    if block.is_between_documents:
      block.add_sentence([tables.sep_id])
    ids = [*ids, tables.sep_id]
  block.add_sentence(ids)


# ---------------------------------------------------------------------------------------------
# Blocks -> instances.

# Starts and lengths of both segments in `Block.ids`, whether the second is random, and the key of
# the random stream for masks.
Instance = tuple[int, int, int, int, int, int]


def _instances_of_block(block: Block, pass_number: int, settings) -> Iterator[Instance]:
  range_number, first_document = block.place
  crosses = settings.rules.crosses_documents
  for document in range(1 if crosses else len(block)):
    stream = Stream(
      stream_key(settings.random_seed, pass_number, range_number, first_document + document)
    )
    if settings.no_next_sentence:
      end = len(block) if crosses else document + 1
      sentences = block.document_ends[document], block.document_ends[end]
      yield from _single_segments(block, *sentences, settings, stream)
    else:
      yield from _segment_pairs(block, document, settings, stream)


def _segment_pairs(block: Block, document: int, settings, stream: Stream) -> Iterator[Instance]:
  """Like `original_stream.pairs_of_document`."""
  max_tokens = settings.max_seq_length - 3  # [CLS], [SEP], [SEP]
  target = _target(max_tokens, settings.short_seq_prob, stream)
  ends = block.sentence_ends
  first, last = block.document_ends[document : document + 2]
  while first < last:
    chunk_end = block.end_after(first, last, target)
    a_end = first + 1
    if chunk_end - first >= 2:
      a_end += stream.below(chunk_end - first - 1)
    a_length = ends[a_end] - ends[first]
    is_random_next = chunk_end - first == 1 or stream.random() < 0.5
    swaps = is_random_next and settings.has_sentence_order and chunk_end - first > 1
    if is_random_next and not swaps:
      b_first, b_end = _random_text(block, document, target - a_length, stream)
    else:
      b_first, b_end = a_end, chunk_end
    segments = (ends[first], a_length), (ends[b_first], ends[b_end] - ends[b_first])
    (a_start, a_length), (b_start, b_length) = segments[::-1] if swaps else segments
    yield (
      *_truncated(a_start, a_length, b_start, b_length, max_tokens, stream),
      is_random_next,
      stream.bits(),
    )
    # Sentences that were replaced are used again.
    first = a_end if is_random_next and not swaps else chunk_end


def _single_segments(
  block: Block, first: int, last: int, settings, stream: Stream
) -> Iterator[Instance]:
  """As many whole sentences as fit; one that is too long goes on in the next instance.

  The separator behind the last sentence, if the block has it, is that of the record.
  """
  target = _target(settings.max_seq_length - 2, settings.short_seq_prob, stream)  # [CLS], [SEP]
  separator = int(settings.rules.crosses_documents)
  ends = block.sentence_ends
  start, end = ends[first], ends[last]
  while start < end:
    fitting = bisect.bisect_right(ends, start + target + separator, first, last + 1) - 1
    is_whole = ends[fitting] > start
    stop = ends[fitting] if is_whole else min(start + target, end)
    length = stop - start - separator * is_whole
    if length:  # 0: a document's separator alone, before a sentence that is too long
      yield start, length, 0, 0, 0, stream.bits()
    start, first = stop, fitting


def _target(max_tokens: int, short_seq_prob: float, stream: Stream) -> int:
  if stream.random() < short_seq_prob:
    return 2 + stream.below(max_tokens - 1)
  return max_tokens


def _random_text(block: Block, document: int, target: int, stream: Stream) -> tuple[int, int]:
  """Sentences of another document, if possible, starting at a random one."""
  if len(block) > 1:
    other = stream.below(len(block) - 1)
    document = other + (other >= document)
  first, last = block.document_ends[document : document + 2]
  first += stream.below(last - first)
  return first, block.end_after(first, last, target)


def _truncated(
  a_start: int, a_length: int, b_start: int, b_length: int, max_tokens: int, stream: Stream
) -> tuple[int, int, int, int]:
  """Shortens as `original_stream.truncate_seq_pair` does, but not token by token.

  Example:
    >>> _truncated(0, 9, 20, 2, 8, Stream(1)), _truncated(0, 9, 20, 9, 7, Stream(1))
    ((1, 6, 20, 2), (1, 4, 24, 3))
  """
  too_many = a_length + b_length - max_tokens
  if too_many <= 0:
    return a_start, a_length, b_start, b_length
  # The longer one is cut until both are equal, then both in turn, the second first.
  longer_excess = abs(a_length - b_length)
  cut_longer = min(too_many, longer_excess)
  rest = too_many - cut_longer
  cut_a = (cut_longer if a_length > b_length else 0) + rest // 2
  cut_b = too_many - cut_a
  return (
    a_start + stream.heads(cut_a),
    a_length - cut_a,
    b_start + stream.heads(cut_b),
    b_length - cut_b,
  )


# ---------------------------------------------------------------------------------------------
# Instances -> records.


def _records(block: Block, instances: np.ndarray, settings, tables: Tables) -> Batch:
  """Records of instances, uint64 [n, 6]."""
  keys = instances[:, 5]
  a_start, a_length, b_start, b_length, is_random_next = (
    instances[:, :5].astype(np.int64).T[..., None]
  )
  is_pair = not settings.no_next_sentence
  lengths = a_length + b_length + 2 + is_pair  # [n, 1]
  column = np.arange(settings.max_seq_length)  # [S]
  in_a = (column > 0) & (column <= a_length)
  in_b = (column > a_length + 1) & (column < lengths - 1)
  is_separator = (column == a_length + 1) | (column == lengths - 1)
  source = np.where(in_a, a_start + column - 1, np.where(in_b, b_start + column - a_length - 2, 0))

  is_text = in_a | in_b  # [n, S]
  input_ids = np.where(is_text, block.ids[source], tables.pad_id)
  input_ids[is_separator] = tables.sep_id
  input_ids[:, 0] = tables.cls_id
  if settings.rules.crosses_documents:
    is_text &= input_ids != tables.sep_id
  word_starts = is_text
  if settings.masks_words:
    is_first = (column == 1) | (column == a_length + 2)  # even if its word was cut
    word_starts = is_text & (block.word_starts[source] | is_first)

  features = {
    "input_ids": input_ids,
    "input_mask": column < lengths,
    "segment_ids": (column > a_length + 1) & (column < lengths) & is_pair,
    "next_sentence_labels": is_random_next,  # 1: not the next sentence
  }
  if settings.rules.marks_boundaries:
    features["token_boundary"] = (column < lengths) & (~is_text | tables.begins_word[input_ids])
  lengths = lengths[:, 0]
  if not settings.dynamic_masking:
    mask_settings = _mask_settings(settings, tables)
    if settings.masks_nothing:
      is_text = word_starts = np.zeros_like(is_text)
    masks = draw_masks(input_ids, lengths, is_text, word_starts, keys, mask_settings)
    features["input_ids"] = masks.input_ids
    features["masked_lm_positions"] = masks.positions
    features["masked_lm_ids"] = masks.labels
    features["masked_lm_weights"] = masks.weights
  elif settings.masks_words:
    features["word_starts"] = word_starts
  return Batch(list(encode_examples(features)), lengths.tolist())


def _mask_settings(settings: RecordSettings, tables: Tables) -> MaskSettings:
  return MaskSettings(
    settings.masked_lm_prob,
    settings.max_predictions_per_seq,
    settings.ngram_max,
    tables.mask_id,
    tables.random_ids,
    settings.favor_shorter_ngram,
  )
