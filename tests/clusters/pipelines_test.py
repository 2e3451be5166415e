"""What remains of a runner's error: the worker's own message, or one line about the runner."""

import pytest

pytest.importorskip("apache_beam")

import apache_beam as beam

from bert.clusters import pipelines

TRACE = """RuntimeError: 1-th try
Traceback (most recent call last):
  File "beam.py", line 5, in process
bert.clusters.pipelines.WorkError: a.txt, line 3: 'x' does not fit.

During handling of the above exception, another exception occurred:

bert.clusters.pipelines.WorkError: a.txt, line 3: 'x' does not fit. [while running 'WriteShards']
"""


class RpcError(Exception):
  __module__ = "grpc._channel"


def error_of(monkeypatch, error):
  def fail(*_):
    raise error

  monkeypatch.setattr(beam.Pipeline, "run", fail)
  with pytest.raises(Exception) as raised:  # noqa: PT011 (each has another type)
    pipelines.run(pipelines.create("--runner=BundleBasedDirectRunner"), "--runner=X")
  return raised.value


@pytest.mark.parametrize(
  "error",
  [
    RuntimeError(TRACE),
    RuntimeError(TRACE.partition(" [while")[0]),
    pipelines.WorkError("a.txt, line 3: 'x' does not fit. [while running 'WriteShards']"),
    pipelines.WorkError("a.txt, line 3: 'x' does not fit."),
  ],
)
def test_the_message_of_a_worker_is_all_that_is_said(monkeypatch, error):
  found = error_of(monkeypatch, error)
  assert isinstance(found, pipelines.WorkError)
  assert str(found) == "a.txt, line 3: 'x' does not fit."


@pytest.mark.parametrize("error", [RuntimeError("Much\nLost it"), RpcError("Much\nLost it")])
def test_an_error_of_the_runner_is_one_line(monkeypatch, error):
  found = error_of(monkeypatch, error)
  assert isinstance(found, pipelines.RunnerError)
  assert str(found) == "Beam's runner failed (--beam_args='--runner=X'): Lost it"


def test_errors_of_the_input_are_a_workers_message():
  for error, said in (
    (ValueError("a.txt, line 3: bad"), "a.txt, line 3: bad"),
    (OSError(28, "No space left on device", "out"), "out: No space left on device"),
    (MemoryError("Lower batch_size=8"), "Lower batch_size=8"),
  ):
    with pytest.raises(pipelines.WorkError) as raised, pipelines.explained():
      raise error
    assert str(raised.value) == said
  with pytest.raises(KeyError), pipelines.explained():
    raise KeyError("bug")
