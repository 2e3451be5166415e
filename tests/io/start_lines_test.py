"""Which lines on stderr are hidden while TensorFlow starts."""

import os
import subprocess
import sys

import pytest

from bert.io import start_lines

ONEDNN = b"I0000 00:00:1 27689 port.cc:153] oneDNN custom operations are on. You may see\n"
OTHER = b"W0000 00:00:1 27689 gpu.cc:1] Not enough memory\n"


@pytest.mark.parametrize(
  ("level", "shown"), [("2", OTHER), ("3", OTHER), ("1", ONEDNN + OTHER), ("0", ONEDNN + OTHER)]
)
def test_lines_of_the_start_alone_are_hidden(monkeypatch, capfdbinary, level, shown):
  monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", level)
  with start_lines.hidden():
    os.write(2, ONEDNN)
    os.write(2, OTHER)
  assert capfdbinary.readouterr().err == shown


def test_what_was_written_before_an_error_is_shown(monkeypatch, capfdbinary):
  monkeypatch.setenv("TF_CPP_MIN_LOG_LEVEL", "2")

  def fail():
    with start_lines.hidden():
      os.write(2, OTHER)
      raise ValueError("gone")

  with pytest.raises(ValueError, match="gone"):
    fail()
  assert capfdbinary.readouterr().err == OTHER
  os.write(2, b"after\n")
  assert capfdbinary.readouterr().err == b"after\n"


@pytest.mark.parametrize("is_all", [True, False])
def test_the_last_words_of_a_process_that_dies_while_it_is_hidden_are_shown(is_all):
  code = (
    f"import os\nfrom bert.io import start_lines\nwith start_lines.hidden({is_all}):\n"
    "  os.write(2, b'F0000 This machine has no AVX instructions')\n  os.abort()"
  )
  environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"}
  done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True)
  assert done.stderr == b"F0000 This machine has no AVX instructions"
  assert done.returncode != 0


def test_processes_share_gpus(monkeypatch):
  import tensorflow as tf

  gpus, growing = ["GPU:0", "GPU:1"], []

  def grow(gpu, is_growing):
    growing.append((gpu, is_growing))
    if gpu == gpus[0]:
      raise RuntimeError("in use")

  monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind=None: gpus)
  monkeypatch.setattr(tf.config.experimental, "set_memory_growth", grow)
  start_lines.start_tensorflow()
  assert growing == [(gpu, True) for gpu in gpus]
