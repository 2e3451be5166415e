"""Training curves as a picture, from the event files that a run leaves for TensorBoard.

  python plots.py --model_dir=/tmp/pretraining_output --output_file=curves.png \\
    --tags=masked_lm_loss,masked_lm_accuracy --reference="7.1:unigram entropy"

One panel for each scalar: training as a smoothed line over a thin raw one, evaluation as points.
`plot_curves` does the same from Python.
"""

import itertools
import os
import textwrap
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
from absl import flags, logging

import command_line

FLAGS = flags.FLAGS

# Step -> value, steps ascending.
Curve = dict[int, float]

_UNITS = {"loss": "nats", "accuracy": "share of right answers"}

# Blue and orange stay apart for colour-blind readers, and in grey.
_TRAIN_COLOR, _EVAL_COLOR, _REFERENCE_COLOR = "#2a6fbb", "#d95f02", "#555555"


def define_flags() -> None:
  """Defines this script's flags."""
  with command_line.flag_group("Curves"):
    flags.DEFINE_string("model_dir", None, "Folder of a run: the --output_dir of its script.")
    flags.DEFINE_string("output_file", None, "The picture: .png, .svg or .pdf.")
    flags.DEFINE_list(
      "tags", None, "Scalars to show. Default: losses and accuracies of training and evaluation."
    )
    flags.DEFINE_multi_string(
      "reference",
      [],
      'A dashed line to compare losses with: "7.1:unigram entropy". May be given several times.',
    )
  command_line.mark_required(["model_dir", "output_file"])


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

  paths = tf.io.gfile.glob(os.path.join(os.fspath(folder), "events.out.tfevents.*"))
  # The order of names is not that of time: process number and a counter are parts of them.
  events = sorted(itertools.chain(*map(read_events, paths)), key=lambda event: event.wall_time)
  curves: dict[str, Curve] = {}
  for event in events:
    for value in event.summary.value:
      number = tf.make_ndarray(value.tensor) if value.HasField("tensor") else value.simple_value
      if getattr(number, "shape", ()) == ():
        curves.setdefault(value.tag, {})[event.step] = float(number)
  return {tag: dict(sorted(curve.items())) for tag, curve in curves.items()}


def read_events(path: str) -> Iterator:
  """The events of a file, up to where a run that was killed or still writes left off."""
  import tensorflow as tf

  try:
    for record in tf.data.TFRecordDataset(path):
      yield tf.compat.v1.Event.FromString(record.numpy())
  except tf.errors.DataLossError:
    logging.info("%s ends within an event; what comes before is shown.", path)


def smooth(values: Sequence[float], radius: int) -> list[float]:
  """The mean of each value and its neighbours on both sides, so that the line does not lag behind.

  Args:
    values: in the order of steps.
    radius: how many neighbours on each side. At the begin, where curves are steep, no more than
      there are on both sides; at the end those that there are.

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
    tags: scalars to show; by default losses and accuracies.
    references: label -> value of horizontal lines, drawn in the panel of the masked words' loss,
      or else of the first loss.

  Returns:
    The tags that are shown.

  Raises:
    ValueError: there is nothing to show.
  """
  # Without pyplot there is no window system to ask for, and no state that others share.
  from matplotlib.backends.backend_agg import FigureCanvasAgg
  from matplotlib.figure import Figure

  training = read_curves(model_dir)
  evaluation = read_curves(os.path.join(os.fspath(model_dir), "eval"))
  tags = _tags_to_show(model_dir, tags, [*training, *evaluation])
  columns = min(2, len(tags))
  rows = -(-len(tags) // columns)
  figure = Figure(figsize=(5.6 * columns, 3.4 * rows), dpi=150, layout="constrained")
  FigureCanvasAgg(figure)
  panels = figure.subplots(rows, columns, squeeze=False).flatten()
  for panel, tag in zip(panels, tags, strict=False):
    _draw_panel(panel, tag, training.get(tag, {}), evaluation.get(tag, {}))
    if tag == _tag_of_references(tags):
      _draw_references(panel, references or {})
    panel.legend(frameon=False, fontsize=9)
  for panel in panels[len(tags) :]:
    panel.remove()
  figure.savefig(os.fspath(output_png))
  return tags


def _tags_to_show(model_dir, asked: Sequence[str] | None, present: Sequence[str]) -> list[str]:
  """What is asked for, or losses and then accuracies; a sum of losses only if its terms are not."""
  present = list(dict.fromkeys(present))
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
  shown = [tag for ending in ("loss", "accuracy") for tag in present if tag.endswith(ending)]
  if sum(tag.endswith("_loss") for tag in shown) > 1 and "loss" in shown:
    shown.remove("loss")
  return shown or present


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
  if training:
    steps, values = list(training), list(training.values())
    smoothed = smooth(values, radius=len(values) // 40)
    panel.plot(steps, values, color=_TRAIN_COLOR, alpha=0.25, linewidth=0.8)
    panel.plot(steps, smoothed, color=_TRAIN_COLOR, linewidth=1.8, label="training, smoothed")
  if evaluation:
    panel.plot(
      list(evaluation),
      list(evaluation.values()),
      color=_EVAL_COLOR,
      marker="o",
      markersize=3.5,
      linewidth=1.4,
      label="evaluation",
    )
  panel.set_title(tag.replace("_lm_", " LM ").replace("_", " "), fontsize=11, loc="left")
  panel.set_xlabel("training step")
  panel.set_ylabel(_unit_of(tag))
  panel.grid(color="#dddddd", linewidth=0.6)
  panel.set_axisbelow(True)
  panel.spines[["top", "right"]].set_visible(False)
  panel.xaxis.set_major_formatter(lambda step, _: f"{step:,.0f}")


def _draw_references(panel, references: Mapping[str, float]) -> None:
  for label, value in references.items():
    panel.axhline(
      value, color=_REFERENCE_COLOR, linestyle="--", linewidth=1.2, label=f"{label} ({value:g})"
    )


def _unit_of(tag: str) -> str:
  """What the vertical axis counts.

  Example:
    >>> _unit_of("masked_lm_loss"), _unit_of("tokens/sec"), _unit_of("tokens_per_example")
    ('nats', 'tokens per second', 'tokens per example')
  """
  if tag.endswith("/sec"):
    return f"{tag.removesuffix('/sec')} per second"
  units = (unit for ending, unit in _UNITS.items() if tag.endswith(ending))
  return next(units, tag.replace("_", " "))


# ---------------------------------------------------------------------------------------------
# Vectors as points of a plane.

_MOST_LABELS = 60  # More of them could not be read.
_LABEL_LENGTH = 40  # characters


def project_vectors(vectors: np.ndarray, method: str = "pca") -> np.ndarray:
  """Places vectors in a plane.

  Args:
    vectors: float `[M, W]`.
    method: `pca` keeps the two directions in which they differ most, so that distances mean
      something; `tsne` keeps neighbours together, and distances between groups mean nothing.

  Returns:
    float `[M, 2]`, the same for the same vectors.

  Raises:
    ValueError: there are less than three vectors, one of them is not finite, or `method` is
      unknown.
  """
  from sklearn.decomposition import PCA
  from sklearn.manifold import TSNE

  if len(vectors) < 3:
    raise ValueError(f"Three vectors at least make a picture, not {len(vectors)}.")
  if method == "pca":
    return PCA(2, svd_solver="full").fit_transform(vectors)
  if method == "tsne":
    # Each point looks at some 30 others, if there are so many.
    perplexity = min(30.0, (len(vectors) - 1) / 3)
    return TSNE(2, perplexity=perplexity, init="pca", random_state=0).fit_transform(vectors)
  raise ValueError(f"method is {method!r}, but must be pca or tsne.")


def plot_vectors(
  vectors: np.ndarray,
  labels: Sequence[str],
  output_png: str | os.PathLike,
  method: str = "pca",
) -> None:
  """Draws vectors as points; few enough of them with their labels.

  Args:
    vectors: float `[M, W]`.
    labels: M texts, cut where they are long.
    output_png: the picture; the ending decides the format.
    method: see `project_vectors`.

  Raises:
    ValueError: see `project_vectors`.
  """
  from matplotlib.backends.backend_agg import FigureCanvasAgg
  from matplotlib.figure import Figure

  points = project_vectors(vectors, method)
  figure = Figure(figsize=(9, 7), dpi=150, layout="constrained")
  FigureCanvasAgg(figure)
  panel = figure.subplots()
  panel.scatter(points[:, 0], points[:, 1], s=14, color=_TRAIN_COLOR, alpha=0.7, linewidths=0)
  if len(labels) <= _MOST_LABELS:
    for point, label in zip(points, labels, strict=True):
      panel.annotate(
        textwrap.shorten(label, _LABEL_LENGTH, placeholder=" ...").replace("$", r"\$"),
        point,
        xytext=(4, 3),
        textcoords="offset points",
        fontsize=7,
      )
  name = {"pca": "Principal component", "tsne": "t-SNE axis"}[method]
  panel.set_xlabel(f"{name} 1")
  panel.set_ylabel(f"{name} 2")
  panel.set_title(f"{len(points):,} texts", fontsize=11, loc="left")
  panel.grid(color="#dddddd", linewidth=0.6)
  panel.set_axisbelow(True)
  panel.spines[["top", "right"]].set_visible(False)
  figure.savefig(os.fspath(output_png))


# ---------------------------------------------------------------------------------------------
# A table.


def plot_table(
  rows: Sequence[Sequence[str]],
  output_png: str | os.PathLike,
  title: str,
  notes: Sequence[str] = (),
) -> None:
  """Draws a table of text with a line below its header, as a paper has it.

  Args:
    rows: cells of each row, the header first; all rows have the same number.
    output_png: the picture; the ending decides the format.
    title: above the table.
    notes: paragraphs below it.
  """
  from matplotlib.backends.backend_agg import FigureCanvasAgg
  from matplotlib.figure import Figure

  widths = [max(map(len, column)) + 2 for column in zip(*rows, strict=True)]  # characters
  lines = [line for note in notes for line in textwrap.wrap(note, sum(widths) * 4 // 3)]
  height = len(rows) + 2 + 0.8 * len(lines)  # rows
  figure = Figure(figsize=(0.1 * sum(widths) + 0.4, 0.28 * height + 0.3), dpi=150)
  FigureCanvasAgg(figure)
  panel = figure.add_axes((0.02, 0.02, 0.96, 0.96), xlim=(0, sum(widths)), ylim=(height, 0))
  panel.set_axis_off()
  style = {"fontsize": 9.5, "verticalalignment": "center", "parse_math": False}
  panel.text(0, 0.5, title, **{**style, "fontsize": 11})
  for number, row in enumerate(rows):
    for x, cell in zip(itertools.accumulate(widths, initial=0), row, strict=False):
      panel.text(x, number + 1.6, cell, weight="normal" if number else "bold", **style)
  panel.hlines([1.15, 2.1, len(rows) + 1.15], 0, sum(widths), color="black", linewidth=[1, 0.6, 1])
  for number, line in enumerate(lines):
    y = len(rows) + 1.8 + 0.8 * number
    panel.text(0, y, line, **{**style, "fontsize": 8, "color": _REFERENCE_COLOR})
  figure.savefig(os.fspath(output_png))


# ---------------------------------------------------------------------------------------------
# The job.


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
        f'--reference={text}: a number and a label are needed, as in "7.1:unigram entropy".'
      ) from None
  return references


def main(_) -> None:
  """Draws what the flags say."""
  references = parse_references(FLAGS.reference)
  tags = plot_curves(FLAGS.model_dir, FLAGS.output_file, FLAGS.tags, references)
  logging.info("Wrote %s: %s.", FLAGS.output_file, ", ".join(tags))


if __name__ == "__main__":
  command_line.run(main, define_flags)
