"""Makes a report of a run: one HTML file with its results, curves and examples.

  python report.py /tmp/mrpc_output                      # writes /tmp/mrpc_output/report.html
  python report.py /tmp/squad_output --eval_file=dev.json --output_file=squad.html
  python report.py /tmp/rate_2e-5 /tmp/rate_5e-5         # compares runs of a task

The folder is the --output_dir of a run of any task, yours among them (--plugin). Its eval set is
answered once more for the examples: the model is read from the folder, the data from where the run
found them, or from --data_dir or --eval_file. Where the data are gone, the report has the rest.

The file needs no network and no scripts, prints well, and is the same, byte for byte, each time.
"""

import bert  # isort: skip  # noqa: F401  from here on Ctrl-C is one line, also while importing

from collections.abc import Sequence

from absl import flags

from bert.scripts import (
  command_line,
  flag_groups,
  output_files,
  path_flags,
  report_pages,
  run_subject,
)
from bert.training import hardware

FLAGS = flags.FLAGS


def define_flags() -> None:
  """Defines this script's flags."""
  with flag_groups.flag_group("Report"):
    path_flags.define(
      "run",
      None,
      "The --output_dir of a run; also as words without a flag, one or several.",
      local=True,
    )
    path_flags.define(
      "output_file", None, "The report. [RUN/report.html, RUN/compared_with_RUN2.html]", local=True
    )
    path_flags.define("data_dir", None, "The folder of the data. [that of the run]", local=True)
    path_flags.define(
      "eval_file", None, "The labelled file to answer. [that of the run]", local=True
    )
    flags.DEFINE_integer(
      "max_examples", 2000, "Answer at most this many examples, a random sample of more."
    )
    flags.DEFINE_integer("batch_size", 32, "Sequences in a batch.")


def main(argv: Sequence[str]) -> None:
  """Writes the report."""
  folders = report_pages.folders_of([*([FLAGS.run] if FLAGS.run else []), *argv[1:]])
  command_line.check_at_least(1, "max_examples", "batch_size")
  output_file = FLAGS.output_file or report_pages.default_file(folders)
  output_files.prepare([output_file])
  hardware.start_tensorflow()
  chosen = run_subject.Chosen(FLAGS.data_dir, FLAGS.eval_file, FLAGS.max_examples, FLAGS.batch_size)
  report_pages.write(folders, output_file, chosen)


if __name__ == "__main__":
  command_line.run(main, define_flags, takes_arguments=True)
