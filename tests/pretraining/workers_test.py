"""Records by several processes: the same bytes for any number of them, and clean ends."""

import contextlib
import gzip
import os
import signal
import subprocess
import sys
import time

import pytest

from bert.pretraining import workers
from bert.pretraining.record_settings import RecordSettings
from bert.text import text_files
from tests.kit import byte_pairs
from tests.kit.paths import ROOT, SAMPLE_TEXT, SAMPLE_VOCAB
from tests.kit.pretraining_records import flags_for, framed_records, manifest_of, names

# Runs the script on small blocks, so that little text keeps several workers busy.
PROGRAM = (
  # A shell's background job, such as a test run, and its children ignore Ctrl-C.
  "import signal; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
  "from bert import create_pretraining_data\n"
  "from bert.pretraining import blocks\n"
  "from bert.scripts import command_line\n"
  "blocks.block_bytes = lambda total: {block}\n"
  "{change}\n"
  "command_line.run(create_pretraining_data.main, create_pretraining_data.define_flags)\n"
)


def start(output, text, block=2000, change="", **settings):
  """Starts the script in a process of its own."""
  program = PROGRAM.format(block=block, change=change)
  arguments = [f"--{name}={value}" for name, value in flags_for(output, text, **settings).items()]
  return subprocess.Popen(
    [sys.executable, "-c", program, *arguments],
    cwd=ROOT,
    stderr=subprocess.PIPE,
    text=True,
    start_new_session=True,
  )


def create(output, text, **settings):
  """Runs the script, fails if it does, and returns its log."""
  process = start(output, text, **settings)
  _, errors = process.communicate(timeout=120)
  assert process.returncode == 0, errors
  return errors


@pytest.fixture(scope="module")
def text(tmp_path_factory):
  """The sample text, several times, in one plain and one compressed file."""
  folder = tmp_path_factory.mktemp("text")
  content = SAMPLE_TEXT.read_bytes() + b"\n"
  (folder / "a.txt").write_bytes(content * 4)
  (folder / "b.txt.gz").write_bytes(gzip.compress(content * 2))
  return folder / "*"


@pytest.fixture(scope="module")
def by_one(text, tmp_path_factory):
  """What one worker makes of it."""
  path = tmp_path_factory.mktemp("one") / "out"
  create(path, text, num_workers=1)
  return path


# ---------------------------------------------------------------------------------------------
# The same records.


@pytest.mark.parametrize("num_workers", [2, pytest.param(3, marks=pytest.mark.ci)])
def test_any_number_of_workers_writes_the_same_bytes(num_workers, text, by_one, tmp_path):
  log = create(tmp_path / "out", text, num_workers=num_workers)
  assert (tmp_path / "out").read_bytes() == by_one.read_bytes()
  assert manifest_of(tmp_path / "out") == manifest_of(by_one)
  assert names(tmp_path) == [".out.manifest.json", "out"]
  documents = SAMPLE_TEXT.read_text().split("\n\n")
  assert f"Read {6 * len(documents)} documents" in log


@pytest.mark.ci
@pytest.mark.parametrize(
  "settings",
  [
    {"format": "electra", "max_seq_length": 32},
    {"format": "albert", "max_seq_length": 64, "dupe_factor": 3},
    {"format": "roberta", "max_seq_length": 64},
  ],
  ids=lambda settings: settings["format"],
)
def test_any_number_of_workers_writes_the_same_records_of_other_families(settings, text, tmp_path):
  if settings["format"] == "roberta":
    settings = {**settings, "vocab_file": byte_pairs.write(tmp_path)}
  for number in (1, 2, 3):
    create(tmp_path / str(number), text, num_workers=number, **settings)
  one = (tmp_path / "1").read_bytes()
  assert one == (tmp_path / "2").read_bytes() == (tmp_path / "3").read_bytes()
  manifest = manifest_of(tmp_path / "3")
  assert manifest == manifest_of(tmp_path / "1")
  assert manifest["format"] == settings["format"]
  assert manifest["records"] == len(framed_records(tmp_path / "1")) > 50


@pytest.mark.ci
def test_processes_that_start_afresh(text, by_one, tmp_path):
  """As on systems without fork, or when TensorFlow has started threads."""
  change = "import sys; sys.modules['tensorflow'] = sys"
  create(tmp_path / "out", text, num_workers=2, change=change, block=1 << 20)
  log = create(tmp_path / "same", text, num_workers=1, block=1 << 20)
  assert (tmp_path / "out").read_bytes() == (tmp_path / "same").read_bytes()
  assert "Wrote" in log


# ---------------------------------------------------------------------------------------------
# Ends before the end.

KILLED = (
  "import os\n"
  "make = blocks.records_of_range\n"
  "def stop(number, *arguments):\n"
  "  yield from make(number, *arguments)\n"
  "  if number == 3:\n"
  "    {stop}\n"
  "blocks.records_of_range = stop\n"
)


@pytest.mark.ci
@pytest.mark.parametrize(
  ("stop", "message"),
  [("os.kill(os.getpid(), 9)", "was killed by signal 9"), ("os._exit(5)", "ended with code 5")],
)
def test_a_worker_that_dies_is_reported(stop, message, text, tmp_path):
  process = start(tmp_path / "out", text, num_workers=2, change=KILLED.format(stop=stop))
  _, errors = process.communicate(timeout=60)
  assert process.returncode == 1
  assert message in errors
  assert "Traceback" not in errors
  assert not names(tmp_path)


@pytest.mark.ci
@pytest.mark.skipif(sys.platform == "win32", reason="no limits of file sizes")
@pytest.mark.parametrize("num_workers", [1, 2])
def test_a_full_disk(num_workers, text, tmp_path):
  change = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (5000, 5000))"
  process = start(tmp_path / "out", text, num_workers=num_workers, change=change)
  _, errors = process.communicate(timeout=60)
  assert process.returncode == 1
  error = next(line for line in errors.splitlines() if line.startswith("ERROR"))
  assert f"{tmp_path}: File too large, while writing temporary files" in error
  assert not names(tmp_path)


SLOW = "import time\n" + KILLED.format(stop="time.sleep({seconds})")


def wait_for_work(folder, num_workers):
  """Until all workers have their files, so that they are at work."""
  for _ in range(600):
    if len(list(folder.glob(".out.worker-*.tmp"))) == num_workers:
      time.sleep(0.3)
      return
    time.sleep(0.05)
  raise AssertionError("The workers did not begin.")


@pytest.mark.ci
@pytest.mark.skipif(sys.platform == "win32", reason="other signals")
def test_ctrl_c(text, tmp_path):
  process = start(tmp_path / "out", text, num_workers=2, change=SLOW.format(seconds=60))
  wait_for_work(tmp_path, 2)
  os.killpg(process.pid, signal.SIGINT)  # to the workers, too, as a terminal does
  _, errors = process.communicate(timeout=20)
  assert process.returncode == 130
  assert errors.splitlines()[-1] == "Interrupted."
  assert "Traceback" not in errors
  assert not names(tmp_path)


@pytest.mark.ci
@pytest.mark.skipif(sys.platform == "win32", reason="other signals")
def test_a_killed_job_leaves_no_output_and_the_next_one_cleans_up(text, by_one, tmp_path):
  process = start(tmp_path / "out", text, num_workers=3, change=SLOW.format(seconds=5))
  wait_for_work(tmp_path, 3)
  process.kill()
  process.wait()  # not for its workers, which notice only when they report
  assert names(tmp_path) == [f".out.worker-{number}.tmp" for number in range(3)]
  other = tmp_path / ".out2.worker-0.tmp"
  other.touch()  # of another job
  create(tmp_path / "out", text, num_workers=2)
  assert (tmp_path / "out").read_bytes() == by_one.read_bytes()
  assert names(tmp_path) == [".out.manifest.json", other.name, "out"]


@pytest.mark.ci
@pytest.mark.skipif(sys.platform == "win32", reason="other signals")
def test_workers_of_a_killed_job_end(text, tmp_path):
  """They report far more than a pipe holds, to nobody."""
  change = "import os; from bert.pretraining import workers\n"
  change += "workers._work = lambda job, worker, next_range, report: report(bytes(1 << 20))\n"
  change += "workers._Inbox.add = lambda self, message: os.kill(os.getpid(), 9)"
  process = start(tmp_path / "out", text, num_workers=3, change=change)
  try:
    process.communicate(timeout=60)  # until no process has its standard error any more
  finally:
    with contextlib.suppress(ProcessLookupError):
      os.killpg(process.pid, signal.SIGKILL)
  assert process.returncode == -signal.SIGKILL


# The second worker waits for the lock of the first, which dies with the parent and keeps it.
DIE_WITH_THE_LOCK = """
import multiprocessing, os, time
from bert.pretraining import workers

def hold(counter):
  counter.get_lock().acquire()
  counter.value = 1
  time.sleep(0.5)
  os.kill(os.getppid(), 9)
  os.kill(os.getpid(), 9)

def count(counter):
  try:
    workers._next_number(counter)
  except BrokenPipeError:
    print("ended", flush=True)

context = multiprocessing.get_context("fork")
counter = context.Value("q", 0)
context.Process(target=hold, args=[counter]).start()
while not counter.get_obj().value:
  time.sleep(0.01)
context.Process(target=count, args=[counter]).start()
time.sleep(60)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="other signals")
def test_a_worker_does_not_wait_for_a_lock_that_died_with_the_parent():
  done = subprocess.run(
    [sys.executable, "-c", DIE_WITH_THE_LOCK],
    cwd=ROOT,
    stdout=subprocess.PIPE,
    text=True,
    timeout=40,
  )
  assert (done.returncode, done.stdout) == (-signal.SIGKILL, "ended\n")


# ---------------------------------------------------------------------------------------------
# In this process.


def settings_of(**changes):
  return RecordSettings(
    **{"vocab_file": str(SAMPLE_VOCAB), "max_seq_length": 32, "dupe_factor": 1, **changes}
  )


def test_no_text(tmp_path):
  (tmp_path / "text").write_text("\n \n\0\n")
  paths = [str(tmp_path / "text")]
  with pytest.raises(text_files.CorpusError, match="There is no text"):
    workers.create_records(paths, [str(tmp_path / "out")], settings_of(), 1, {})
  assert names(tmp_path) == ["text"]
