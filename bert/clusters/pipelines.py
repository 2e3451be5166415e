"""Pipelines of Apache Beam, whatever they compute: options, counters, errors in one line.

  pipeline = create("--runner=FlinkRunner ...")
  ...                                           # steps, whose `process` has `with explained():`
  result = run(pipeline, "--runner=FlinkRunner ...")
  counted(result, "create_pretraining_data")    # {"records": 5, ...}

`bert/pretraining/beam.py` and `bert/predicting/beam.py` say what is computed. Every machine needs
an installation of this project, and all files under the given names.
"""

import contextlib
import shlex
from collections.abc import Iterator

import apache_beam as beam
from apache_beam.metrics import MetricsFilter
from apache_beam.options.pipeline_options import PipelineOptions

from bert.io.wording import in_one_message


class RunnerError(ValueError):
  """Beam or its runner could not run the pipeline."""


class WorkError(ValueError):
  """A worker's input, model or file cannot be used; the message says which, and why."""


def create(beam_args: str) -> beam.Pipeline:
  """Begins a pipeline.

  Args:
    beam_args: options of Beam and its runner, as on a command line.

  Raises:
    RunnerError: the options cannot be read.
  """
  try:
    words = shlex.split(beam_args)
  except ValueError as error:
    raise RunnerError(f"--beam_args={beam_args!r} cannot be read: {error}.") from error
  return beam.Pipeline(options=PipelineOptions(words))


def run(pipeline: beam.Pipeline, beam_args: str):
  """Runs a pipeline to its end; returns Beam's result.

  Raises:
    WorkError: a worker could not use its input; its message, without the runner's own words.
    RunnerError: the runner failed.
  """
  try:
    result = pipeline.run()
    result.wait_until_finish()
  except Exception as error:
    if said := _said_by_worker(error):
      raise WorkError(said) from error
    is_of_runner = isinstance(error, RuntimeError) or type(error).__module__.startswith("grpc.")
    if not is_of_runner:
      raise  # a fault of the program keeps its traceback
    reason = str(error).strip().splitlines()[-1:] or [type(error).__name__]
    raise RunnerError(f"Beam's runner failed (--beam_args={beam_args!r}): {reason[0]}") from error
  return result


def _said_by_worker(error: Exception) -> str | None:
  """The message of a `WorkError`, from whatever a runner makes of it; None for other errors.

  Runners in this process raise it again, perhaps with the step's name behind; others have only the
  text of a traceback, whose last lines are the message.

  Example:
    >>> _said_by_worker(RuntimeError("Traceback ...WorkError: a.txt, line 3: [while running 'A']"))
    'a.txt, line 3:'
  """
  if isinstance(error, WorkError):
    text = str(error)
  else:
    _, name, text = str(error).rpartition(f"{WorkError.__name__}: ")
    if not name:
      return None
  return text.partition(" [while running ")[0].strip()


@contextlib.contextmanager
def explained() -> Iterator[None]:
  """Within the block of a worker, errors in its input end the run with their message alone."""
  try:
    yield
  except WorkError:
    raise
  except (ValueError, OSError, MemoryError) as error:
    raise WorkError(in_one_message(error)) from error


def counted(result, namespace: str) -> dict[str, int]:
  """Returns the counters of a namespace."""
  counters = result.metrics().query(MetricsFilter().with_namespace(namespace))["counters"]
  return {counter.key.metric.name: counter.result for counter in counters}
