"""Tests of bert/sweeps/parallel_processes.py: programs side by side, signals, none left behind."""

import os
import signal
import sys
import time

import pytest

from bert.sweeps import parallel_processes


def test_a_second_signal_ends_processes_at_once(tmp_path):
  program = (
    "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
    "print(1, flush=True); time.sleep(60)"
  )
  ends = []
  stop = parallel_processes.stop_signals()

  class Sent(list):
    """Two signals, as soon as the process ignores them."""

    def __len__(self):
      log = tmp_path / parallel_processes.LOG_FILE
      ready = log.exists() and log.stat().st_size
      if ready and super().__len__() < 2:
        self.append(signal.SIGTERM)
      return super().__len__()

  stop.received = Sent()
  job = parallel_processes.Job(
    [sys.executable, "-c", program], str(tmp_path), lambda *end: ends.append(end)
  )
  begin = time.monotonic()
  parallel_processes.run_jobs([job], 1, stop)
  assert time.monotonic() - begin < 30
  assert ends == []


def test_no_process_is_left_when_the_sweep_itself_fails(tmp_path):
  note = tmp_path / "pid"
  noting = (
    f"import os, time\nopen({str(tmp_path / 'new')!r}, 'w').write(str(os.getpid()))\n"
    f"os.rename({str(tmp_path / 'new')!r}, {str(note)!r})\ntime.sleep(600)"
  )
  hanging = [sys.executable, "-c", noting]
  # The other one ends once the first has noted its number.
  waiting = f"import os, time\nwhile not os.path.exists({str(note)!r}): time.sleep(0.05)"
  (tmp_path / "a").mkdir()
  (tmp_path / "b").mkdir()

  def fail(code, seconds):
    raise OSError("no space left")

  jobs = [
    parallel_processes.Job(hanging, str(tmp_path / "a"), fail),
    parallel_processes.Job([sys.executable, "-c", waiting], str(tmp_path / "b"), fail),
  ]
  with pytest.raises(OSError, match="no space left"):
    parallel_processes.run_jobs(jobs, 2, parallel_processes.stop_signals())
  with pytest.raises(ProcessLookupError):
    os.kill(int(note.read_text()), 0)


def test_so_many_run_side_by_side_each_pair_on_other_gpus(tmp_path):
  program = (
    "import os, time; begin = time.time(); time.sleep(0.3); "
    "print(begin, time.time(), os.environ['CUDA_VISIBLE_DEVICES'])"
  )
  jobs = []
  for number in range(5):
    (tmp_path / str(number)).mkdir()
    jobs.append(
      parallel_processes.Job(
        [sys.executable, "-c", program], str(tmp_path / str(number)), lambda *_: None
      )
    )
  parallel_processes.run_jobs(jobs, 2, parallel_processes.stop_signals(), gpus=["4", "7"])
  spans = []
  for number in range(5):
    begin, end, gpu = (tmp_path / str(number) / parallel_processes.LOG_FILE).read_text().split()
    spans.append((float(begin), float(end), gpu))
  for begin, _, _ in spans:
    at_work = [gpu for first, last, gpu in spans if first <= begin < last]
    assert len(at_work) == len(set(at_work)) <= 2
  assert {gpu for _, _, gpu in spans} == {"4", "7"}
