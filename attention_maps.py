"""Draws attention maps: the attention of each word piece of a text to every other.

  python attention_maps.py --init_checkpoint=uncased_L-12_H-768_A-12 --layer=5 \\
    --text="The cat sat on the mat." --text_pair="It was tired." --output_file=attention.png

--layer draws the heads of one layer side by side, --head one of them alone, which is best for long
texts; without them, the mean over the heads of each layer is drawn. Most heads look at [CLS] or
[SEP] most of the time: --hide_special_tokens leaves them out.

From Python: `Predictor.load(..., task="attention_maps")` returns the maps as arrays.
"""

import bert  # isort: skip  # noqa: F401  from here on Ctrl-C is one line, also while importing

from collections.abc import Sequence

import numpy as np
from absl import flags, logging

from bert.figures import drawing
from bert.io.wording import counted
from bert.predicting import attention, sentence_vectors
from bert.predicting.predictor import Predictor
from bert.scripts import command_line, flag_groups, output_files, path_flags, shared_flags
from bert.scripts.run_settings import ModelFiles
from bert.scripts.settings import changed
from bert.training import hardware

FLAGS = flags.FLAGS

_SPECIAL_TOKENS = ("[CLS]", "[SEP]", "<s>", "</s>")
_MANY_PIECES = 40


class AttentionSettings(ModelFiles):
  """The model."""

  max_seq_length: int = changed(ModelFiles, "max_seq_length", default=attention.DEFAULT_LENGTH)


def define_flags() -> None:
  """Defines this script's flags."""
  with flag_groups.flag_group("Text and picture"):
    flags.DEFINE_string("text", None, "The text to show.")
    flags.DEFINE_string("text_pair", None, "A second text, for models that read pairs.")
    path_flags.define("output_file", None, "The picture: .png, .svg or .pdf.", local=True)
    flags.DEFINE_integer(
      "layer",
      None,
      "Layer whose heads are drawn: 0 is the first, -1 the last. [the mean of each layer's heads]",
    )
    flags.DEFINE_integer("head", None, "With --layer: the head to draw, 0 is the first. [all]")
    flags.DEFINE_bool(
      "hide_special_tokens", False, "Leave out [CLS] and [SEP], which draw most attention."
    )
  flag_groups.define(AttentionSettings)
  flag_groups.mark_required(["text", "output_file", "init_checkpoint"])


def main(_) -> None:
  """Draws the maps of a text."""
  command_line.check_required()
  if FLAGS.head is not None and FLAGS.layer is None:
    raise command_line.UsageError("--head=N is a head of a layer: give --layer=N, too.")
  if not FLAGS.text.strip():
    raise command_line.UsageError("--text is empty.")
  drawing.check_format(FLAGS.output_file)
  output_files.prepare([FLAGS.output_file])
  hardware.start_tensorflow()
  options = shared_flags.model_options()
  attend = Predictor.load(FLAGS.init_checkpoint, task="attention_maps", **options)
  [(tokens, maps)] = attend([(FLAGS.text, FLAGS.text_pair)])
  hidden = _SPECIAL_TOKENS if FLAGS.hide_special_tokens else ()
  draw(maps, tokens, FLAGS.output_file, FLAGS.layer, FLAGS.head, hidden)
  logging.info("Wrote %s: %s.", FLAGS.output_file, counted(len(tokens), "word piece"))
  if len(tokens) > _MANY_PIECES and FLAGS.head is None:
    logging.info("Many pieces are easier to read in a single map: --layer=0 --head=0.")


def draw(
  maps: np.ndarray,
  tokens: list[str],
  output_file: str,
  layer: int | None = None,
  head: int | None = None,
  hidden: Sequence[str] = (),
) -> None:
  """Draws the heads of a layer, or the mean of each layer's heads.

  Args:
    maps: float `[L, N, S, S]`: layers, heads, and S word pieces that attend to S others.
    tokens: S word pieces.
    output_file: the picture.
    layer: 0 is the first, -1 the last.
    head: of the layer; all by default.
    hidden: tokens whose rows and columns are left out.

  Raises:
    ValueError: the model does not have this layer or head.
  """
  count, heads = maps.shape[:2]
  if layer is None:
    titles = [f"layer {number}" for number in range(count)]
    title = f"Attention, mean of {heads} heads"
    drawing.plot_attention(maps.mean(axis=1), tokens, output_file, titles, title, hidden)
    return
  sentence_vectors.check_layers([layer], count)
  if head is not None and not -heads <= head < heads:
    raise ValueError(f"there is no head {head}: a layer of this model has heads 0 to {heads - 1}")
  numbers = range(heads) if head is None else [head % heads]
  titles = [f"head {number}" for number in numbers]
  title = f"Attention in layer {layer % count} (of 0 to {count - 1})"
  drawing.plot_attention(maps[layer][[*numbers]], tokens, output_file, titles, title, hidden)


if __name__ == "__main__":
  command_line.run(main, define_flags)
