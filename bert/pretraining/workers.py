"""Pre-training records by several processes: `create_pretraining_data.py --num_workers=N`.

  create_records(input_files, output_files, settings, num_workers=2)

Workers take one range of text after another and write its records (`blocks.py`) to a temporary file
beside the first output, one file per worker. They report where each record begins. The parent sorts
these numbers by range, an order that does not depend on N, shuffles them, and copies the records to
the output files: the same bytes for every N.

Data that grows with the corpus is on disk: temporary files as large as the output, and 8 bytes per
record. A worker needs memory for one block of text.

Neither this module nor the workers import TensorFlow.
"""

import array
import contextlib
import functools
import glob
import mmap
import multiprocessing
import multiprocessing.connection
import os
import random
import signal
import struct
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from absl import logging

from bert.io.atomic_files import hidden_beside
from bert.io.tfrecord_bytes import framed, framed_size
from bert.pretraining import blocks, instances, piece_tables, record_output
from bert.pretraining.record_settings import RecordSettings
from bert.text import corpus_statistics, text_files

# Before each record in a temporary file: the number of its tokens, without padding.
_TOKENS = struct.Struct("<I")


class WorkerError(OSError):
  """A worker process ended before it was done."""


class Job(NamedTuple):
  """The input of all workers."""

  ranges: list[text_files.TextRange]  # of the text
  block_size: int  # see `blocks.records_of_range`
  settings: RecordSettings  # of the records
  spools: list[str]  # the workers' temporary files


class Report(NamedTuple):
  """The work of a worker since its last report."""

  range_number: int  # number of the current range
  # Int64, where its further records begin: number * N + worker for byte `number`.
  addresses: array.array
  read_bytes: int  # bytes of text read
  is_complete: bool  # whether these were the last records of the range


def create_records(
  input_files: Sequence[str],
  output_files: Sequence[str],
  settings: RecordSettings,
  num_workers: int,
  facts: Mapping[str, Any],
) -> int:
  """Writes a corpus' records to files in random order; returns their number.

  Args:
    input_files: text files.
    output_files: TFRecord files to write; see `record_output.RecordFiles`.
    settings: of the records.
    num_workers: the number of processes; with 1 the work is done in this process.
    facts: for the manifests, see `RecordSettings.facts`.

  Raises:
    CorpusError: the text is empty, or does not have the format of the settings.
    WorkerError: a worker was killed.
    OSError: a file cannot be written.
  """
  total_bytes = text_files.total_bytes(input_files)
  block_size = blocks.block_bytes(total_bytes)
  ranges = text_files.text_ranges(input_files, block_size)
  num_workers = min(num_workers, len(ranges))
  folder = os.path.dirname(output_files[0]) or "."
  with _temporary_files(output_files[0], num_workers) as spools:
    with contextlib.closing(instances.IntegerFile(folder, "q")) as addresses:
      job = Job(ranges, block_size, settings, spools)
      statistics = _create(job, addresses, total_bytes)
      statistics.log()
      if not addresses.count:
        raise text_files.CorpusError(f"There is no text in {', '.join(input_files)}.")
      addresses.freeze()
      order: Any = addresses.view
      random.Random(settings.random_seed).shuffle(order)
      return _deal(addresses.view, spools, output_files, facts)


@contextlib.contextmanager
def _temporary_files(output_file: str, count: int) -> Iterator[list[str]]:
  """Hidden temporary files beside the output, removed before and after the block."""
  paths = [hidden_beside(output_file, f"worker-{number}.tmp") for number in range(count)]
  _remove_spools(output_file)  # those of a run that was killed
  try:
    yield paths
  finally:
    _remove_spools(output_file)


def _remove_spools(output_file: str) -> None:
  for path in glob.glob(glob.escape(hidden_beside(output_file, "worker-")) + "*.tmp"):
    os.remove(path)


# ---------------------------------------------------------------------------------------------
# Workers.


def _work(
  job: Job, worker: int, next_range: Callable[[], int], report: Callable[[Any], None]
) -> None:
  """Processes ranges until none is left, then reports the statistics."""
  statistics = job.settings.new_statistics(logs_progress=False)
  tables = piece_tables.load_tables(job.settings)
  offset = reported_bytes = 0
  path = job.spools[worker]
  with (
    instances.temporary_files_in(os.path.dirname(path)),
    open(path, "wb", buffering=1 << 20) as spool,
  ):
    while (number := next_range()) < len(job.ranges):
      for batch in blocks.records_of_range(
        number, job.ranges[number], job.block_size, job.settings, tables, statistics
      ):
        addresses = array.array("q")
        for record, tokens in zip(batch.records, batch.lengths, strict=True):
          data = _TOKENS.pack(tokens) + framed(record)
          spool.write(data)
          addresses.append(offset * len(job.spools) + worker)
          offset += len(data)
        new_bytes = statistics.read_bytes - reported_bytes
        reported_bytes += new_bytes
        report(Report(number, addresses, new_bytes, is_complete=False))
      report(Report(number, array.array("q"), 0, is_complete=True))
  report(statistics)


# Between two looks at whether the parent still lives.
_SECONDS_OF_WAIT = 1.0


def _next_number(counter) -> int:
  """Counts up by one, and returns the number before.

  Raises:
    BrokenPipeError: the parent has ended, perhaps with the worker that held the counter's lock,
      which nobody will then release.
  """
  while not counter.get_lock().acquire(timeout=_SECONDS_OF_WAIT):
    if not multiprocessing.parent_process().is_alive():
      raise BrokenPipeError
  try:
    counter.value += 1
    return counter.value - 1
  finally:
    counter.get_lock().release()


def _work_in_process(job: Job, worker: int, counter, connection, readers) -> None:
  """`_work` in a separate process; errors are sent to the parent.

  `readers` are the parent's ends of this pipe and of those before it, of which a process is a copy.
  As long as one is open here, a parent that was killed would not be noticed.
  """
  signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C reaches all; the parent stops the others
  for reader in readers:
    reader.close()

  try:
    _work(job, worker, functools.partial(_next_number, counter), connection.send)
  except BrokenPipeError:
    pass  # the parent has ended
  except (ValueError, OSError) as error:
    connection.send(error)
  except Exception:
    connection.send(RuntimeError(f"in worker {worker}:\n{traceback.format_exc()}"))


def _context():
  """Starts processes as copies of this one, unless threads could hold locks in the copy."""
  can_fork = "fork" in multiprocessing.get_all_start_methods() and sys.platform != "darwin"
  has_threads = threading.active_count() > 1 or "tensorflow" in sys.modules
  return multiprocessing.get_context("fork" if can_fork and not has_threads else "spawn")


class _Workers:
  """Processes that work on a job and report in `messages`."""

  def __init__(self, job: Job):
    context = _context()
    self._counter = context.Value("q", 0)  # keeps it alive: a spawned process opens it by name
    self._process_of = {}
    for worker in range(len(job.spools)):
      reader, writer = context.Pipe(duplex=False)
      process = context.Process(
        target=_work_in_process,
        args=(job, worker, self._counter, writer, [*self._process_of, reader]),
        daemon=True,
      )
      process.start()
      writer.close()  # so that the connection closes when the worker ends
      self._process_of[reader] = process

  def messages(self) -> Iterator[Any]:
    """Yields the workers' messages, until all workers have ended."""
    working = dict(self._process_of)
    while working:
      readers: list[Any] = multiprocessing.connection.wait(list(working))
      for reader in readers:
        try:
          message = reader.recv()
        except (EOFError, ConnectionResetError):
          raise WorkerError(_why_ended(working[reader])) from None
        if isinstance(message, Exception):
          raise message
        if isinstance(message, corpus_statistics.TextStatistics):  # the last message
          del working[reader]
        yield message

  def stop(self) -> None:
    """Ends the processes at once."""
    for reader, process in self._process_of.items():
      process.terminate()
      process.join()
      reader.close()


def _why_ended(process) -> str:
  process.join(5)
  code = process.exitcode
  hint = "probably by the system for lack of memory: use fewer workers"
  how = f"was killed by signal {-code} ({hint})" if code and code < 0 else f"ended with code {code}"
  return f"Worker process {process.pid} {how}. No output was written."


# ---------------------------------------------------------------------------------------------
# The parent.


def _create(job: Job, addresses, total_bytes: int) -> corpus_statistics.TextStatistics:
  """Creates the records of all ranges; stores where they begin, in the order of the ranges."""
  statistics = job.settings.new_statistics(total_bytes=total_bytes)
  inbox = _Inbox(addresses, statistics)
  if len(job.spools) == 1:
    _work(job, 0, iter(range(len(job.ranges) + 1)).__next__, inbox.add)
    return statistics
  workers = _Workers(job)
  try:
    for message in workers.messages():
      inbox.add(message)
  finally:
    workers.stop()
  return statistics


class _Inbox:
  """Sorts the workers' reports by range."""

  def __init__(self, addresses, statistics: corpus_statistics.TextStatistics):
    self._addresses = addresses
    self._statistics = statistics
    self._waiting: dict[int, list[array.array]] = {}
    self._complete: set[int] = set()
    self._current = 0  # the range whose records come next
    self._read_bytes = 0
    self._progress = corpus_statistics.Progress("Creating", statistics.total_bytes / 1e6, "MB")

  def add(self, message: "Report | corpus_statistics.TextStatistics") -> None:
    """Processes a message."""
    if isinstance(message, corpus_statistics.TextStatistics):
      self._statistics.add(message)
      return
    number = message.range_number
    self._waiting.setdefault(number, []).append(message.addresses)
    if message.is_complete:
      self._complete.add(number)
    while self._current in self._waiting:
      for addresses in self._waiting.pop(self._current):
        self._addresses.extend(addresses)
      if self._current not in self._complete:
        break
      self._current += 1
    self._read_bytes += message.read_bytes
    self._progress.update(self._read_bytes / 1e6)


def _deal(
  addresses: Sequence[int], spools: Sequence[str], output_files: Sequence[str], facts
) -> int:
  """Copies records to the output files in turn, in the order of `addresses`."""
  progress = corpus_statistics.Progress("Writing", len(addresses), "records")
  with contextlib.ExitStack() as stack:
    contents = [stack.enter_context(_mapped(path)) for path in spools]
    files = stack.enter_context(record_output.RecordFiles(output_files, facts))
    for count, address in enumerate(addresses):
      start, worker = divmod(address, len(spools))
      content = contents[worker]
      (tokens,) = _TOKENS.unpack_from(content, start)
      start += _TOKENS.size
      files.write_framed(content[start : start + framed_size(content[start : start + 8])], tokens)
      if not count % 1024:
        progress.update(count)
  logging.info("Wrote %d total instances", files.count)
  return files.count


@contextlib.contextmanager
def _mapped(path: str) -> Iterator[mmap.mmap | bytes]:
  if not os.path.getsize(path):  # an empty file cannot be mapped
    yield b""
    return
  with open(path, "rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
    yield content
