"""Where the work runs: on this machine, or on many by Apache Beam. The same flags in all scripts.

  runner_flags.define("It creates the records of --num_workers.")
  ...
  runner_flags.check()
  if runner_flags.is_beam():
    with runner_flags.needed_packages():
      from bert.pretraining import beam

Scripts that take one line after the other have more in common: `define_for_lines`, `check_files`
and `write_shards`.
"""

import contextlib
from typing import TYPE_CHECKING

from absl import flags

from bert.io import installation, text_lines
from bert.scripts import command_line, flag_groups, output_files
from bert.text import text_files

if TYPE_CHECKING:
  from bert.predicting.text_shards import Work

FLAGS = flags.FLAGS

_BEAM = "beam"


def define(note: str) -> None:
  """Defines `--runner` and `--beam_args`; the help of the first ends with `note`."""
  flags.DEFINE_enum(
    "runner", "local", ["local", _BEAM], f"Run on this machine, or with Apache Beam on many. {note}"
  )
  flags.DEFINE_string(
    "beam_args", "", 'Options of Apache Beam, such as --beam_args="--runner=FlinkRunner ...".'
  )


def check_engine() -> None:
  """Raises a UsageError where workers would choose the engine of an export, each for itself."""
  if is_beam() and FLAGS.engine == "auto":
    raise command_line.UsageError(
      "--runner=beam with --engine=auto: each worker would choose an engine for itself. Name one, "
      "such as --engine=onnxruntime."
    )


def is_beam() -> bool:
  """Whether Beam runs the work."""
  return FLAGS.runner == _BEAM


def check(*others: str) -> None:
  """Raises a UsageError for an option of Beam where Beam does not run the work.

  Args:
    *others: names of the script's own flags that mean nothing without Beam.
  """
  for name in ("beam_args", *others):
    if FLAGS[name].value and not is_beam():
      raise command_line.UsageError(f"--{name} requires --runner={_BEAM}.")


def needed_packages() -> contextlib.AbstractContextManager[None]:
  """Names the extra to install where an import in the block fails."""
  return installation.extra("beam", f"--runner={_BEAM}")


# ---------------------------------------------------------------------------------------------
# Scripts that read `--input_file` line by line, and write `--output_file`.


def define_for_lines() -> None:
  """Defines the flags, in a group, with `--num_shards`."""
  with flag_groups.flag_group("Many machines"):
    define(
      "--input_file then also takes patterns, separated by commas, and --output_file is the "
      "beginning of several names; see docs/much_text.md."
    )
    flags.DEFINE_integer(
      "num_shards",
      0,
      "With --runner=beam: write this many files or more, and so share the work among up to as "
      "many workers. 0: a file for each 16 MB of text, or less of a small text.",
    )


def check_files() -> None:
  """Checks `--num_shards` and both files, for Beam.

  Raises:
    UsageError: a file is a stream, or a value is too small.
    ValueError: there is no text, or a file cannot be written.
  """
  for name in ("input_file", "output_file"):
    if FLAGS[name].value == text_lines.STANDARD_STREAM:
      raise command_line.UsageError(f"--runner={_BEAM}: --{name} must name a file, not a stream.")
  if FLAGS.num_shards < 0:
    raise command_line.UsageError(f"--num_shards={FLAGS.num_shards}: must be at least 0.")
  inputs = text_files.find_input_files(FLAGS.input_file)
  output_files.prepare([FLAGS.output_file], inputs, may_be_remote=True)


def write_shards(work: "Work", needs_index: bool = False) -> None:
  """Has the workers write the results of `--input_file` to the shards of `--output_file`.

  Args:
    work: what they do.
    needs_index: see `bert.predicting.beam.write_shards`, also for the errors.
  """
  with needed_packages():
    from bert.predicting import beam
  beam.write_shards(
    work,
    text_files.find_input_files(FLAGS.input_file),
    FLAGS.output_file,
    FLAGS.beam_args,
    FLAGS.num_shards,
    needs_index,
  )
