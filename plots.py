"""Draws the curves of runs: losses, accuracies, learning rates, step by step.

  python plots.py --model_dir=/tmp/pretraining_output --output_file=curves.png \\
    --tags=masked_lm_loss,masked_lm_accuracy
  python plots.py output/rate_2e-5 output/rate_5e-5 --output_file=rates.png

Several folders are compared in one picture, a color for each. Without --output_file, the curves of
a single run are drawn into MODEL_DIR/plots/training.png. The values are those of the event files
that a run writes for TensorBoard: one panel for each scalar, training as a smoothed line over a
thin raw one, evaluation as points, a star at the best of them.

From Python: `bert.figures.training_curves.plot_curves`.
"""

import bert  # isort: skip  # noqa: F401  from here on Ctrl-C is one line, also while importing

import os
from collections.abc import Sequence

from absl import flags, logging

from bert.figures import drawing, event_files, training_curves
from bert.scripts import command_line, flag_groups, output_files, path_flags
from bert.scripts.settings import Path
from bert.training import hardware

FLAGS = flags.FLAGS


def define_flags() -> None:
  """Defines this script's flags."""
  with flag_groups.flag_group("Curves"):
    flags.DEFINE_multi(
      path_flags.PathParser("model_dir", Path()),
      flags.ArgumentSerializer(),
      "model_dir",
      None,
      "Folder of a run: the --output_dir of its script. May be given several times, also as words "
      "without a flag, to compare runs.",
    )
    path_flags.define(
      "output_file",
      None,
      "The picture: .png, .svg or .pdf. Default for a single run: MODEL_DIR/plots/training.png.",
      local=True,
    )
    flags.DEFINE_list(
      "tags",
      None,
      "Scalars to show, separated by commas. Default: losses, accuracies and the learning rate.",
    )
  flag_groups.mark_required(["model_dir"])


def main(argv: Sequence[str]) -> None:
  """Draws the curves."""
  model_dirs = [*(FLAGS.model_dir or []), *argv[1:]]
  command_line.check_required({"model_dir": model_dirs or None})
  if len(model_dirs) > 1 and not FLAGS.output_file:
    raise command_line.UsageError(
      f"{len(model_dirs)} runs are compared in one picture: name it by --output_file=curves.png."
    )
  if "" in model_dirs:
    raise command_line.UsageError("the name of a folder is empty: give the --output_dir of a run.")
  if not FLAGS.output_file:
    event_files.check_folder(model_dirs[0])
  output_file = FLAGS.output_file or os.path.join(model_dirs[0], "plots", "training.png")
  drawing.check_format(output_file)
  output_files.prepare([output_file])
  hardware.start_tensorflow()  # It reads the event files.
  tags = [tag for tag in FLAGS.tags or [] if tag]
  tags = training_curves.plot_curves(model_dirs, output_file, tags)
  logging.info("Wrote %s: %s.", output_file, ", ".join(tags))


if __name__ == "__main__":
  command_line.run(main, define_flags, takes_arguments=True)
