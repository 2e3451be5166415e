"""What `create_pretraining_data.py` keeps on disk meanwhile, and what it writes.

  with Workspace("output", tokenizer) as workspace:
    documents = workspace.store_documents(sentences)  # reads like a list of lists of lists
    shuffle(documents, rng)

Nothing that grows with the corpus stays in memory. Token ids, the bounds of sentences and
documents, and finished instances lie in temporary files that are mapped into memory, so the system
keeps in RAM what fits and no more. What is shuffled is an array of numbers, for which a random
generator draws what it draws for the list that the array stands for: the order is the original's.

  with RecordFiles(["a.tfrecord", "b.tfrecord"], {"max_seq_length": 128}) as files:
    files.write(record, num_tokens=97)

The files of records appear when all of them are complete.
"""

import array
import contextlib
import gzip
import json
import mmap
import os
import random
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, BinaryIO

from bert.io.atomic_files import force_to_disk, hidden_beside, sha256_of, write_text
from bert.io.tfrecord_bytes import framed

_BUFFERED = 1 << 16  # integers; half a megabyte at most for each file that is being filled
_WRITE_BUFFER_BYTES = 1 << 20


class OutputError(ValueError):
  """A file of records cannot be written where it should be."""


# ---------------------------------------------------------------------------------------------
# On disk instead of in memory.


class TrainingInstance:
  """A pair of segments with its masks.

  Attributes:
    tokens: with [CLS], [SEP] and [MASK].
    segment_ids: 0 or 1 for each token.
    masked_lm_positions: ascending.
    masked_lm_labels: the tokens that were there.
    is_random_next: whether the second segment is from elsewhere.
  """

  def __init__(self, tokens, segment_ids, masked_lm_positions, masked_lm_labels, is_random_next):
    self.tokens = tokens
    self.segment_ids = segment_ids
    self.is_random_next = is_random_next
    self.masked_lm_positions = masked_lm_positions
    self.masked_lm_labels = masked_lm_labels

  def __repr__(self):
    names = ("tokens", "segment_ids", "is_random_next", "masked_lm_positions", "masked_lm_labels")
    return f"TrainingInstance({', '.join(f'{name}={getattr(self, name)!r}' for name in names)})"


def shuffle(items, rng: random.Random) -> None:
  """Shuffles a list, or through its `order` what lies on disk; both take the same random draws.

  The draws are those of `rng.shuffle`, which takes twice the time for a function call each.
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
  """Adds to the errors of a full disk, which name no file, what was being written and where."""
  try:
    yield
  except OSError as error:
    if error.filename is not None or error.errno is None:
      raise
    message = f"{error.strerror}, while writing temporary files beside the output"
    raise OSError(error.errno, message, folder) from None


class IntegerFile:
  """Integers in a nameless temporary file: first filled, then read as an array.

  The file vanishes with the process, however that ends.

  Attributes:
    view: after `freeze`: a memoryview of all integers, which can be changed in place.
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
    """Ends the filling and maps the file."""
    self._flush()
    with temporary_files_in(self._folder):
      self._file.flush()
    if self.count:  # an empty file cannot be mapped
      self._map = mmap.mmap(self._file.fileno(), 0)
    self.view = memoryview(self._map or b"").cast(self._buffer.typecode)

  def close(self) -> None:
    """Gives the disk space back."""
    if self.view is not None:
      self.view.release()
    if self._map is not None:
      self._map.close()
    with contextlib.suppress(OSError):  # on a full disk, closing tries to write once more
      self._file.close()

  def _flush(self) -> None:
    with temporary_files_in(self._folder):
      self._file.write(self._buffer.tobytes())
    del self._buffer[:]


class Workspace:
  """Temporary files in one folder for the documents and instances of one run.

  On disk they take 4 bytes for a token, and 0.4 to 0.7 KB for an instance of 128 tokens.
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
    """What `split_documents` returns, on disk."""
    documents = StoredDocuments(*self._files("iqqq"), self._token_of())
    for sentence in sentences:
      if sentence is None:
        documents.end_document()
      else:
        documents.add_sentence(self._convert(sentence))
    documents.freeze()
    return documents

  def new_instances(self) -> "StoredInstances":
    """An empty list of instances, on disk."""
    return StoredInstances(*self._files("iq"), self._convert, self._token_of())

  def _files(self, typecodes: str) -> list[IntegerFile]:
    files = [IntegerFile(self._folder, typecode) for typecode in typecodes]
    for file in files:
      self._stack.callback(file.close)
    return files

  def _token_of(self) -> Mapping[int, str]:
    return {index: token for token, index in self._vocab.items()}


class StoredDocuments(Sequence):
  """Documents as sequences of sentences, each read when it is asked for.

  Attributes:
    order: the documents' numbers; permuting these permutes the documents.
  """

  def __init__(self, ids, sentence_ends, document_ends, order, token_of):
    self._ids, self._order = ids, order
    self._sentence_ends, self._document_ends = sentence_ends, document_ends
    self._token_of = token_of
    # The end of number n lies at n + 1, so that the start of the first is no special case.
    sentence_ends.extend([0])
    document_ends.extend([0])
    self._documents = self._sentences_before = 0

  def add_sentence(self, ids: Sequence[int]) -> None:
    """Appends to the document that is being filled."""
    self._ids.extend(ids)
    self._sentence_ends.extend([self._ids.count])

  def end_document(self) -> None:
    """Starts another document, unless this one is empty."""
    sentences = self._sentence_ends.count - 1
    if sentences > self._sentences_before:
      self._document_ends.extend([sentences])
      self._order.extend([self._documents])
      self._documents += 1
      self._sentences_before = sentences

  def freeze(self) -> None:
    """Ends the filling."""
    self.end_document()
    for file in (self._ids, self._sentence_ends, self._document_ends, self._order):
      file.freeze()
    self.order = self._order.view

  def __len__(self) -> int:
    return self._documents

  def __getitem__(self, index: int) -> "StoredDocument":
    number = self.order[index]
    first, end = self._document_ends.view[number], self._document_ends.view[number + 1]
    return StoredDocument(self, first, end)

  def sentence(self, number: int) -> list[str]:
    """The tokens of sentence `number` of the whole corpus, in reading order."""
    start, end = self._sentence_ends.view[number], self._sentence_ends.view[number + 1]
    return list(map(self._token_of.__getitem__, self._ids.view[start:end].tolist()))


class StoredDocument(Sequence):
  """Sentences `first` to `end` of `StoredDocuments`."""

  def __init__(self, documents: StoredDocuments, first: int, end: int):
    self._documents, self._first, self._count = documents, first, end - first

  def __len__(self) -> int:
    return self._count

  def __getitem__(self, index: int) -> list[str]:
    if not -self._count <= index < self._count:
      raise IndexError(f"There is no sentence {index} in a document of {self._count}.")
    return self._documents.sentence(self._first + index % self._count)


class StoredInstances(Sequence):
  """`TrainingInstance`s as integers: four numbers that say what follows, then ids and positions."""

  def __init__(self, numbers, starts, convert, token_of):
    self._numbers, self._starts = numbers, starts
    self._convert, self._token_of = convert, token_of

  def extend(self, instances: Iterable[TrainingInstance]) -> None:
    """Appends; not possible any more once `order` was used."""
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
          *self._convert(instance.tokens),
          *positions,
          *self._convert(instance.masked_lm_labels),
        ]
      )

  @property
  def order(self) -> memoryview:
    """Where each instance starts; permuting these permutes the instances."""
    if self._starts.view is None:
      self._numbers.freeze()
      self._starts.freeze()
    return self._starts.view

  def __len__(self) -> int:
    return self._starts.count

  def __getitem__(self, index: int) -> TrainingInstance:
    start, numbers = self.order[index], self._numbers.view
    length, first_segment, masks, is_random_next = numbers[start : start + 4]
    content = numbers[start + 4 : start + 4 + length + 2 * masks].tolist()
    return StoredInstance(
      input_ids=content[:length],
      segment_ids=[0] * first_segment + [1] * (length - first_segment),
      masked_lm_positions=content[length : length + masks],
      masked_lm_ids=content[length + masks :],
      is_random_next=bool(is_random_next),
      token_of=self._token_of,
    )


class StoredInstance(TrainingInstance):
  """A `TrainingInstance` whose tokens are looked up when they are asked for.

  Attributes:
    input_ids: of `tokens`.
    masked_lm_ids: of `masked_lm_labels`.
  """

  def __init__(
    self, input_ids, segment_ids, masked_lm_positions, masked_lm_ids, is_random_next, token_of
  ):
    self.input_ids = input_ids
    self.segment_ids = segment_ids
    self.is_random_next = is_random_next
    self.masked_lm_positions = masked_lm_positions
    self.masked_lm_ids = masked_lm_ids
    self._token_of = token_of

  @property
  def tokens(self) -> list[str]:
    """As in `TrainingInstance`."""
    return list(map(self._token_of.__getitem__, self.input_ids))

  @property
  def masked_lm_labels(self) -> list[str]:
    """As in `TrainingInstance`."""
    return list(map(self._token_of.__getitem__, self.masked_lm_ids))


# ---------------------------------------------------------------------------------------------
# Files of records.


def check_output_files(
  output_files: Sequence[str], input_files: Sequence[str] = (), may_be_remote: bool = False
) -> None:
  """Makes the folders of the output, and tries to write there.

  Args:
    output_files: names of the files to come.
    input_files: files that must not be written over.
    may_be_remote: accept names such as `gs://bucket/file`, unchecked.

  Raises:
    OutputError: two names are equal, or one cannot be a file of records.
  """
  inputs = {os.path.realpath(path) for path in input_files}
  real = [os.path.realpath(path) for path in output_files]
  if not output_files:
    raise OutputError("--output_file: there is no file name.")
  for path, real_path in zip(output_files, real, strict=True):
    if "://" in path and not may_be_remote:
      raise OutputError(f"--output_file: {path} is remote. Write to a local disk, then copy it.")
    if real.count(real_path) > 1:
      raise OutputError(f"--output_file: {path} stands there twice.")
    if real_path in inputs:
      raise OutputError(f"--output_file: {path} is also an input file, which would be lost.")
    if "://" in path:
      continue
    if os.path.isdir(path):
      raise OutputError(f"--output_file: {path} is a folder. Give the name of a file in it.")
    _try_to_write(path)


def _try_to_write(path: str) -> None:
  temporary = hidden_beside(path, "tmp")
  try:
    os.makedirs(os.path.dirname(path) or ".", exist_ok=True)
    with open(temporary, "wb"):
      pass
    os.remove(temporary)
  except OSError as error:
    raise OutputError(f"--output_file: cannot write {path}: {error.strerror}.") from error


class RecordFiles:
  """TFRecord files that records are dealt to in turn; all of them appear at the end, or none.

  They are written aside, in the same folders. Beside each stands then a manifest
  (`.NAME.manifest.json`) with the number of records, bytes, sha256, and `facts`;
  `record_files` refuses a file that does not fit its manifest.

  Attributes:
    count: how many records were written.
  """

  def __init__(self, paths: Sequence[str], facts: Mapping[str, Any]):
    """Opens the files.

    Args:
      paths: final names; existing files are replaced at the end.
      facts: for the manifests. `max_seq_length` is needed for the share of padding; `compression`
        "GZIP" compresses the files.
    """
    self._paths, self._facts = list(map(os.fspath, paths)), dict(facts)
    self._temporary = [hidden_beside(path, "tmp") for path in self._paths]
    self._records, self._tokens = [0] * len(self._paths), [0] * len(self._paths)
    self.count = 0
    self._writers = []
    try:
      with self._explained():
        for path in self._temporary:
          self._writers.append(_open_records(path, facts.get("compression")))
    except OSError:
      self._close_and_remove()
      raise

  def write(self, record: bytes, num_tokens: int) -> None:
    """Writes a serialized example with so many tokens that are no padding."""
    self.write_framed(framed(record), num_tokens)

  def write_framed(self, record: bytes | memoryview, num_tokens: int) -> None:
    """Writes a record with its length and checksums around it, see `tfrecord_bytes.framed`."""
    index = self.count % len(self._paths)
    with self._explained():
      self._writers[index].write(record)
    self._records[index] += 1
    self._tokens[index] += num_tokens
    self.count += 1

  def __enter__(self):
    return self

  def __exit__(self, exc_type, exc_value, traceback):
    try:
      if exc_type is None:
        with self._explained():
          for writer in self._writers:
            writer.close()
        self._publish()
    finally:
      self._close_and_remove()

  def _publish(self) -> None:
    """Everything slow comes before the first rename: an interruption in between is unlikely."""
    for temporary in self._temporary:
      force_to_disk(temporary)
    manifests = [self._manifest(index) for index in range(len(self._paths))]
    for path in self._paths:
      with contextlib.suppress(FileNotFoundError):
        os.remove(hidden_beside(path, "manifest.json"))  # of an older file
    for temporary, path in zip(self._temporary, self._paths, strict=True):
      os.replace(temporary, path)
    for path, manifest in zip(self._paths, manifests, strict=True):
      write_text(hidden_beside(path, "manifest.json"), json.dumps(manifest) + "\n")

  def _manifest(self, index: int) -> dict[str, Any]:
    places = self._records[index] * self._facts["max_seq_length"]
    return {
      "records": self._records[index],
      "bytes": os.path.getsize(self._temporary[index]),
      "sha256": sha256_of(self._temporary[index]),
      **self._facts,
      "padding_share": round(1 - self._tokens[index] / places, 4) if places else 0.0,
    }

  def _close_and_remove(self) -> None:
    for writer in self._writers:
      with contextlib.suppress(OSError):  # on a full disk, closing tries to write once more
        writer.close()
    for path in self._temporary:
      with contextlib.suppress(OSError):
        os.remove(path)

  @contextlib.contextmanager
  def _explained(self) -> Iterator[None]:
    try:
      yield
    except OSError as error:
      message = f"Cannot write {', '.join(self._paths)}: {error.strerror or error}"
      raise OSError(message) from None


def _open_records(path: str, compression: str | None) -> BinaryIO:
  file = open(path, "wb", buffering=_WRITE_BUFFER_BYTES)  # noqa: SIM115 (closed by `RecordFiles`)
  if compression == "GZIP":
    return _GzipFile(file)
  return file


class _GzipFile(gzip.GzipFile):
  """Without name and time in its header: equal records give equal bytes."""

  def __init__(self, file: BinaryIO):
    super().__init__(filename="", mode="wb", fileobj=file, mtime=0)
    self._file_below = file

  def close(self) -> None:
    """Also closes the file below, which `GzipFile` leaves open."""
    try:
      super().close()
    finally:
      self._file_below.close()


def remove_records(paths: Iterable[str]) -> None:
  """Removes files of records with their manifests, as far as they are on a local disk."""
  for path in paths:
    for name in (path, hidden_beside(path, "manifest.json")):
      with contextlib.suppress(FileNotFoundError):
        os.remove(name)
