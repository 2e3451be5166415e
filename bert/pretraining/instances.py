"""Training instances, and the documents they are made from: in memory or in temporary files.

  with Workspace("output", tokenizer) as workspace:
    documents = workspace.store_documents(sentences)  # reads like a list of lists of lists
    shuffle(documents, rng)

With a workspace, nothing that grows with the corpus stays in memory. Token ids, the bounds of
sentences and documents, and finished instances lie in temporary files that are mapped into memory,
so the system keeps in RAM only what fits. What is shuffled is an array of numbers, one for each
element of the list that it represents: the random draws, and so the order, are the original's.
"""

import array
import contextlib
import mmap
import random
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from bert.tokenization import convert_by_vocab

_BUFFERED = 1 << 16  # integers; at most half a megabyte for each file that is being filled


class TrainingInstance:
  """A pair of segments with its masks.

  Attributes:
    tokens: with [CLS], [SEP] and [MASK].
    segment_ids: 0 or 1 for each token.
    masked_lm_positions: ascending.
    masked_lm_labels: the original tokens at these positions.
    is_random_next: whether the second segment comes from another place.
    token_boundary: ALBERT only, else None: 1 for each token that begins a word.
  """

  def __init__(
    self,
    tokens,
    segment_ids,
    masked_lm_positions,
    masked_lm_labels,
    is_random_next,
    token_boundary=None,
  ):
    self.tokens = tokens
    self.segment_ids = segment_ids
    self.is_random_next = is_random_next
    self.masked_lm_positions = masked_lm_positions
    self.masked_lm_labels = masked_lm_labels
    self.token_boundary = token_boundary

  def __repr__(self):
    names = ("tokens", "segment_ids", "is_random_next", "masked_lm_positions", "masked_lm_labels")
    return f"TrainingInstance({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"

  def ids(self, tokenizer) -> tuple[list[int], list[int]]:
    """Returns the ids of `tokens` and of `masked_lm_labels`."""
    convert = tokenizer.convert_tokens_to_ids
    return convert(self.tokens), convert(self.masked_lm_labels)

  def features(
    self, tokenizer, max_seq_length: int, max_predictions_per_seq: int
  ) -> dict[str, list]:
    """Name -> values: int64 `[S]`, int64 `[P]` (weights float32), and the label int64 `[1]`.

    Raises:
      ValueError: the instance has more than S tokens or P masks, or a token has no id.
    """
    length, masks = len(self.segment_ids), len(self.masked_lm_positions)
    if length > max_seq_length or masks > max_predictions_per_seq:
      raise ValueError(
        f"An instance has {length} tokens and {masks} masks; max_seq_length is {max_seq_length}, "
        f"max_predictions_per_seq {max_predictions_per_seq}."
      )
    input_ids, masked_lm_ids = self.ids(tokenizer)
    padding, no_masks = [0] * (max_seq_length - length), [0] * (max_predictions_per_seq - masks)
    boundary = {}
    if self.token_boundary is not None:
      boundary["token_boundary"] = list(self.token_boundary) + padding
    return {
      "input_ids": input_ids + padding,
      "input_mask": [1] * length + padding,
      "segment_ids": list(self.segment_ids) + padding,
      **boundary,
      "masked_lm_positions": list(self.masked_lm_positions) + no_masks,
      "masked_lm_ids": masked_lm_ids + no_masks,
      "masked_lm_weights": [1.0] * masks + [0.0] * len(no_masks),
      "next_sentence_labels": [int(self.is_random_next)],  # 1: not the next sentence
    }


def shuffle(items, rng: random.Random) -> None:
  """Shuffles a list, or a sequence on disk by its `order`; both take the same random draws.

  The draws are those of `rng.shuffle`, which takes twice the time because of a function call each.
  """
  items = getattr(items, "order", items)
  if type(rng) is not random.Random:
    rng.shuffle(items)
    return
  getrandbits = rng.getrandbits
  for count in range(len(items), 1, -1):
    bits = count.bit_length()
    chosen = getrandbits(bits)
    while chosen >= count:
      chosen = getrandbits(bits)
    items[count - 1], items[chosen] = items[chosen], items[count - 1]


@contextlib.contextmanager
def temporary_files_in(folder: str) -> Iterator[None]:
  """Adds the operation and the folder to errors that name no file, as on a full disk."""
  try:
    yield
  except OSError as error:
    if error.filename is not None or error.errno is None:
      raise
    message = f"{error.strerror}, while writing temporary files beside the output"
    raise OSError(error.errno, message, folder) from None


class IntegerFile:
  """Integers in a nameless temporary file: first filled, then read as an array.

  The file disappears with the process, however that ends.

  Attributes:
    view: after `freeze`, a memoryview of all integers, which can be changed in place.
    count: the number of integers.
  """

  def __init__(self, folder: str, typecode: str):
    self._folder = folder
    self._file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115 (closed by `close`)
    self._buffer = array.array(typecode)
    self._map: mmap.mmap | None = None
    self.view: memoryview | None = None
    self.count = 0

  def extend(self, numbers: Sequence[int]) -> None:
    """Appends."""
    self._buffer.extend(numbers)
    self.count += len(numbers)
    if len(self._buffer) >= _BUFFERED:
      self._flush()

  def freeze(self) -> None:
    """Completes the file and maps it."""
    self._flush()
    with temporary_files_in(self._folder):
      self._file.flush()
    if self.count:  # an empty file cannot be mapped
      self._map = mmap.mmap(self._file.fileno(), 0)
    typecode: Any = self._buffer.typecode
    self.view = memoryview(self._map or b"").cast(typecode)

  def close(self) -> None:
    """Releases the disk space."""
    if self.view is not None:
      self.view.release()
    if self._map is not None:
      self._map.close()
    with contextlib.suppress(OSError):  # closing tries to write again, also on a full disk
      self._file.close()

  def _flush(self) -> None:
    with temporary_files_in(self._folder):
      self._file.write(self._buffer.tobytes())
    del self._buffer[:]


class Workspace:
  """Temporary files in one folder for the documents and instances of one run.

  They take 4 bytes per token, and 0.4 to 0.7 KB per instance of 128 tokens.
  """

  def __init__(self, folder: str, tokenizer):
    self._folder = folder
    self._vocab = tokenizer.vocab
    self._convert = tokenizer.convert_tokens_to_ids
    self._stack = contextlib.ExitStack()

  def __enter__(self):
    return self

  def __exit__(self, *exc_info):
    self._stack.close()

  def store_documents(self, sentences: Iterable[list[str] | None]) -> "StoredDocuments":
    """Returns the result of `corpus.split_documents`, on disk."""
    ids, sentence_ends, document_ends, order = self._files("iqqq")
    documents = StoredDocuments(ids, sentence_ends, document_ends, order, self._token_of())
    for sentence in sentences:
      if sentence is None:
        documents.end_document()
      else:
        documents.add_sentence(convert_by_vocab(self._vocab, sentence))
    documents.freeze()
    return documents

  def new_instances(self) -> "StoredInstances":
    """Returns an empty list of instances, on disk."""
    numbers, starts = self._files("iq")
    return StoredInstances(numbers, starts, self._convert, self._token_of())

  def _files(self, typecodes: str) -> list[IntegerFile]:
    files = [IntegerFile(self._folder, typecode) for typecode in typecodes]
    for file in files:
      self._stack.callback(file.close)
    return files

  def _token_of(self) -> Mapping[int, str]:
    return {index: token for token, index in self._vocab.items()}


class StoredDocuments(Sequence):
  """Documents as sequences of sentences, which are read on access.

  Attributes:
    order: the documents' numbers; permuting them permutes the documents.
  """

  def __init__(self, ids, sentence_ends, document_ends, order, token_of):
    self._ids, self._order = ids, order
    self._sentence_ends, self._document_ends = sentence_ends, document_ends
    self._token_of = token_of
    # The end of item n is at index n + 1, so that the start of the first is no special case.
    sentence_ends.extend([0])
    document_ends.extend([0])
    self._documents = self._sentences_before = 0

  def add_sentence(self, ids: Sequence[int]) -> None:
    """Appends to the current document."""
    self._ids.extend(ids)
    self._sentence_ends.extend([self._ids.count])

  def end_document(self) -> None:
    """Starts another document, unless the current one is empty."""
    sentences = self._sentence_ends.count - 1
    if sentences > self._sentences_before:
      self._document_ends.extend([sentences])
      self._order.extend([self._documents])
      self._documents += 1
      self._sentences_before = sentences

  def freeze(self) -> None:
    """Completes the documents."""
    self.end_document()
    for file in (self._ids, self._sentence_ends, self._document_ends, self._order):
      file.freeze()
    self.order = self._order.view

  def __len__(self) -> int:
    return self._documents

  def __getitem__(self, index: int) -> "StoredDocument":  # type: ignore[override]
    number = self.order[index]
    first, end = self._document_ends.view[number], self._document_ends.view[number + 1]
    return StoredDocument(self, first, end)

  def sentence(self, number: int) -> list[str]:
    """Returns the tokens of a sentence, numbered through the whole corpus."""
    start, end = self._sentence_ends.view[number], self._sentence_ends.view[number + 1]
    return list(map(self._token_of.__getitem__, self._ids.view[start:end].tolist()))


class StoredDocument(Sequence):
  """Sentences `first` to `end` of `StoredDocuments`."""

  def __init__(self, documents: StoredDocuments, first: int, end: int):
    self._documents, self._first, self._count = documents, first, end - first

  def __len__(self) -> int:
    return self._count

  def __getitem__(self, index: int) -> list[str]:  # type: ignore[override]
    if not -self._count <= index < self._count:
      raise IndexError(f"Sentence {index} of a document of {self._count} sentences does not exist.")
    return self._documents.sentence(self._first + index % self._count)


class StoredInstances(Sequence):
  """`TrainingInstance`s as integers: four counts and the label, then ids and positions."""

  def __init__(self, numbers, starts, convert, token_of):
    self._numbers, self._starts = numbers, starts
    self._convert, self._token_of = convert, token_of

  def extend(self, instances: Iterable[TrainingInstance]) -> None:
    """Appends; not possible after `order` was used."""
    for instance in instances:
      self._starts.extend([self._numbers.count])
      positions = instance.masked_lm_positions
      first_segment = instance.segment_ids.count(0)
      self._numbers.extend(
        [
          len(instance.tokens),
          first_segment,
          len(positions),
          int(instance.is_random_next),
          len(instance.token_boundary or ()),
          *self._convert(instance.tokens),
          *positions,
          *self._convert(instance.masked_lm_labels),
          *(instance.token_boundary or ()),
        ]
      )

  @property
  def order(self) -> memoryview:
    """Where each instance starts; permuting these numbers permutes the instances."""
    if self._starts.view is None:
      self._numbers.freeze()
      self._starts.freeze()
    return self._starts.view

  def __len__(self) -> int:
    return self._starts.count

  def __getitem__(self, index: int) -> TrainingInstance:  # type: ignore[override]
    start, numbers = self.order[index], self._numbers.view
    length, first_segment, masks, is_random_next, boundaries = numbers[start : start + 5]
    content = numbers[start + 5 : start + 5 + length + 2 * masks + boundaries].tolist()
    return StoredInstance(
      input_ids=content[:length],
      segment_ids=[0] * first_segment + [1] * (length - first_segment),
      masked_lm_positions=content[length : length + masks],
      masked_lm_ids=content[length + masks : length + 2 * masks],
      is_random_next=bool(is_random_next),
      token_boundary=content[length + 2 * masks :] or None,
      token_of=self._token_of,
    )


class StoredInstance(TrainingInstance):
  """A `TrainingInstance` that holds ids; its tokens are looked up on access."""

  def __init__(
    self,
    input_ids,
    segment_ids,
    masked_lm_positions,
    masked_lm_ids,
    is_random_next,
    token_boundary,
    token_of,
  ):
    self._input_ids, self._masked_lm_ids = input_ids, masked_lm_ids
    self.segment_ids = segment_ids
    self.is_random_next = is_random_next
    self.masked_lm_positions = masked_lm_positions
    self.token_boundary = token_boundary
    self._token_of = token_of

  @property
  def tokens(self) -> list[str]:
    """As in `TrainingInstance`."""
    return list(map(self._token_of.__getitem__, self._input_ids))

  @property
  def masked_lm_labels(self) -> list[str]:
    """As in `TrainingInstance`."""
    return list(map(self._token_of.__getitem__, self._masked_lm_ids))

  def ids(self, tokenizer) -> tuple[list[int], list[int]]:
    """As in `TrainingInstance`."""
    del tokenizer
    return self._input_ids, self._masked_lm_ids
