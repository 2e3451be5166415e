"""The curves of a run, read from the event files that it writes for TensorBoard, and drawn.

  plot_curves("/tmp/pretraining_output", "curves.png", references={"unigram entropy": 7.1})

One panel for each scalar: training as a smoothed line over a thin raw one, evaluation as points.
"""

import itertools
import os
from collections.abc import Iterator, Mapping, Sequence

from absl import logging

from bert.figures.drawing import (
  MAIN_COLOR,
  NOTE_COLOR,
  SECOND_COLOR,
  new_figure,
  plain_axes,
  save,
)
from bert.io import filesystem

# Step -> value, steps ascending.
Curve = dict[int, float]

_UNITS = {"loss": "nats", "accuracy": "share of right answers", "learning_rate": "rate"}


# ---------------------------------------------------------------------------------------------
# Reading.


def read_curves(folder: str | os.PathLike) -> dict[str, Curve]:
  """The scalars in the event files of a folder, not of those below it.

  A run that was resumed has several files, which overlap if it was killed: the newest value counts.

  Args:
    folder: `model_dir`, or `model_dir/eval`.

  Returns:
    Tag -> step -> value.
  """
  import tensorflow as tf

  paths = filesystem.matching(os.path.join(os.fspath(folder), "events.out.tfevents.*"))
  # Names are not in the order of time: they contain the process number and a counter.
  events = sorted(itertools.chain(*map(read_events, paths)), key=lambda event: event.wall_time)
  curves: dict[str, Curve] = {}
  for event in events:
    for value in event.summary.value:
      number = tf.make_ndarray(value.tensor) if value.HasField("tensor") else value.simple_value
      if getattr(number, "shape", ()) == ():
        curves.setdefault(value.tag, {})[event.step] = float(number)
  return {tag: dict(sorted(curve.items())) for tag, curve in curves.items()}


def read_events(path: str) -> Iterator:
  """The complete events of a file, whose run may have been killed or still be writing."""
  import tensorflow as tf

  try:
    for record in tf.data.TFRecordDataset(path):
      yield tf.compat.v1.Event.FromString(record.numpy())
  except tf.errors.DataLossError:
    logging.info("%s ends within an event; the events before it are shown.", path)


def smooth(values: Sequence[float], radius: int) -> list[float]:
  """The mean of each value and its neighbours on both sides; the line thus has no lag.

  Args:
    values: in the order of steps.
    radius: how many neighbours on each side. At the beginning, where curves are steep, as
      many as both sides have; at the end as many as each side has.

  Example:
    >>> smooth([1.0, 3.0, 8.0, 3.0], radius=1)
    [1.0, 4.0, 4.666666666666667, 5.5]
  """
  sums = list(itertools.accumulate(values, initial=0.0))
  smoothed = []
  for i in range(len(values)):
    before = min(radius, i)
    after = min(before, len(values) - 1 - i)
    smoothed.append((sums[i + after + 1] - sums[i - before]) / (before + 1 + after))
  return smoothed


# ---------------------------------------------------------------------------------------------
# Drawing.


def plot_curves(
  model_dir: str | os.PathLike,
  output_png: str | os.PathLike,
  tags: Sequence[str] | None = None,
  references: Mapping[str, float] | None = None,
) -> list[str]:
  """Draws the curves of a run.

  Args:
    model_dir: its folder; evaluation is looked for in `eval` below it.
    output_png: the picture; the ending decides the format.
    tags: scalars to show; by default losses, accuracies, and the learning rate.
    references: label -> value of horizontal lines, drawn in the panel of the masked words' loss,
      or else of the first loss.

  Returns:
    The tags that are shown.

  Raises:
    ValueError: there is nothing to show.
  """
  training = read_curves(model_dir)
  evaluation = read_curves(os.path.join(os.fspath(model_dir), "eval"))
  lengths = {
    t: max(len(c.get(t, ())) for c in (training, evaluation)) for t in [*training, *evaluation]
  }
  tags = _tags_to_show(model_dir, tags, lengths)
  columns = min(2, len(tags))
  rows = -(-len(tags) // columns)
  figure = new_figure(5.6 * columns, 3.4 * rows)
  panels = figure.subplots(rows, columns, squeeze=False, sharex=True).flatten()
  for panel, tag in zip(panels, tags, strict=False):
    _draw_panel(panel, tag, training.get(tag, {}), evaluation.get(tag, {}))
    if tag == _tag_of_references(tags):
      _draw_references(panel, references or {})
    panel.legend(frameon=False, fontsize=9)
  for panel in panels[len(tags) :]:
    panel.remove()
  save(figure, output_png)
  return tags


def _tags_to_show(model_dir, asked: Sequence[str] | None, present: Mapping[str, int]) -> list[str]:
  """The tags to show: those requested, or losses, accuracies, learning rate with two points.

  Args:
    model_dir: for messages.
    asked: tags.
    present: tag -> number of points.
  """
  if not present:
    raise ValueError(
      f"{model_dir} holds no event file with scalars. Give the --output_dir of a run as "
      "--model_dir."
    )
  if asked:
    unknown = [tag for tag in asked if tag not in present]
    if unknown:
      raise ValueError(
        f"--tags: {', '.join(unknown)} is not among the scalars of {model_dir}: "
        f"{', '.join(sorted(present))}."
      )
    return list(dict.fromkeys(asked))
  long = [tag for tag, length in present.items() if length > 1] or list(present)
  endings = ("loss", "accuracy", "learning_rate")
  shown = [tag for ending in endings for tag in long if tag.endswith(ending)]
  if "loss" in shown and "eval_loss" in shown:  # the same curve
    shown.remove("eval_loss")
  if sum(tag.endswith("_loss") for tag in shown) > 1 and "loss" in shown:  # the sum of them
    shown.remove("loss")
  return shown or long


def _tag_of_references(tags: Sequence[str]) -> str | None:
  """The panel that reference lines belong to.

  Example:
    >>> _tag_of_references(["loss", "masked_lm_loss", "next_sentence_loss"])
    'masked_lm_loss'
    >>> _tag_of_references(["eval_accuracy", "loss"])
    'loss'
  """
  losses = [tag for tag in tags if tag.endswith("loss")]
  return next((tag for tag in losses if tag.startswith("masked_lm")), losses[0] if losses else None)


def _draw_panel(panel, tag: str, training: Curve, evaluation: Curve) -> None:
  steps, values = list(training), list(training.values())
  if tag == "learning_rate":  # has no noise, and its corners are intended
    panel.plot(steps, values, color=MAIN_COLOR, linewidth=1.8, label="training")
    panel.ticklabel_format(axis="y", style="sci", scilimits=(-2, 3))
    panel.set_ylim(bottom=0)
  elif training:
    smoothed = smooth(values, radius=len(values) // 40 + min(3, len(values) // 10))
    panel.plot(steps, values, color=MAIN_COLOR, alpha=0.25, linewidth=0.8)
    panel.plot(steps, smoothed, color=MAIN_COLOR, linewidth=1.8, label="training, smoothed")
  if evaluation:
    panel.plot(
      list(evaluation),
      list(evaluation.values()),
      color=SECOND_COLOR,
      marker="o",
      markersize=3.5,
      linewidth=1.4,
      label="evaluation",
    )
  title = tag.replace("_lm_", " LM ").replace("_", " ")
  plain_axes(panel, title, "training step", _unit_of(tag))
  panel.tick_params(labelbottom=True)  # panels share an axis, which hides the labels
  panel.xaxis.set_major_formatter(lambda step, _: f"{step:,.0f}")


def _draw_references(panel, references: Mapping[str, float]) -> None:
  for label, value in references.items():
    panel.axhline(
      value, color=NOTE_COLOR, linestyle="--", linewidth=1.2, label=f"{label} ({value:g})"
    )


def _unit_of(tag: str) -> str:
  """The unit of the vertical axis.

  Example:
    >>> _unit_of("masked_lm_loss"), _unit_of("tokens/sec"), _unit_of("tokens_per_example")
    ('nats', 'tokens per second', 'tokens per example')
  """
  if tag.endswith("/sec"):
    return f"{tag.removesuffix('/sec')} per second"
  units = (unit for ending, unit in _UNITS.items() if tag.endswith(ending))
  return next(units, tag.replace("_", " "))
