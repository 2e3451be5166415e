"""Draws the curves of a run: losses, accuracies, learning rates, step by step.

  python plots.py --model_dir=/tmp/pretraining_output --output_file=curves.png \\
    --tags=masked_lm_loss,masked_lm_accuracy --reference="7.1:unigram entropy"

Without --output_file it draws all pictures of the run into MODEL_DIR/plots, as --plots of a run
does. The values are those of the event files that a run writes for TensorBoard: one panel for each
scalar, training as a smoothed line over a thin raw one, evaluation as points.

From Python: `bert.figures.training_curves.plot_curves`; `bert.figures.drawing` has the other
pictures (confusion matrices, attention, vectors, tables).
"""

from collections.abc import Sequence

from absl import flags, logging

from bert.figures import run_pictures, training_curves
from bert.scripts import command_line, flag_groups
from bert.training import hardware

FLAGS = flags.FLAGS


def define_flags() -> None:
  """Defines this script's flags."""
  with flag_groups.flag_group("Curves"):
    flags.DEFINE_string("model_dir", None, "Folder of a run: the --output_dir of its script.")
    flags.DEFINE_string(
      "output_file",
      None,
      "The picture: .png, .svg or .pdf. Default: all pictures of the run, in MODEL_DIR/plots.",
    )
    flags.DEFINE_list(
      "tags",
      None,
      "Scalars to show, separated by commas. Default: losses, accuracies and the learning rate.",
    )
    flags.DEFINE_multi_string(
      "reference",
      [],
      'A dashed horizontal line to compare losses with, as VALUE:LABEL: "7.1:unigram entropy". '
      "May be given several times.",
    )
  flag_groups.mark_required(["model_dir"])


def parse_references(texts: Sequence[str]) -> dict[str, float]:
  """Label -> value of `VALUE:LABEL`.

  Raises:
    UsageError: a text is not of that form.

  Example:
    >>> parse_references(["7.1:unigram entropy"])
    {'unigram entropy': 7.1}
  """
  references = {}
  for text in texts:
    value, _, label = text.partition(":")
    try:
      references[label.strip() or "reference"] = float(value)
    except ValueError:
      raise command_line.UsageError(
        f'--reference={text}: expected a number and a label, such as "7.1:unigram entropy".'
      ) from None
  return references


def main(_) -> None:
  """Draws the curves."""
  command_line.check_required()
  hardware.start_tensorflow()  # It reads the event files.
  if not FLAGS.output_file:
    run_pictures.draw_run(FLAGS.model_dir)
    return
  references = parse_references(FLAGS.reference)
  tags = training_curves.plot_curves(FLAGS.model_dir, FLAGS.output_file, FLAGS.tags, references)
  logging.info("Wrote %s: %s.", FLAGS.output_file, ", ".join(tags))


if __name__ == "__main__":
  command_line.run(main, define_flags)
