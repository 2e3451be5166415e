"""Draws attention maps: the attention of each word piece of a text to every other.

  python attention_maps.py --init_checkpoint=uncased_L-12_H-768_A-12 --layer=5 \\
    --text="The cat sat on the mat." --text_pair="It was tired." --output_file=attention.png

--layer draws the heads of one layer side by side; without it, the mean over the heads of each layer
is drawn.

From Python: `bert.predicting.attention.load` returns the maps as arrays.
"""

import numpy as np
from absl import flags, logging

from bert.figures import drawing
from bert.predicting import attention, sentence_vectors
from bert.scripts import command_line, flag_groups, path_flags

FLAGS = flags.FLAGS


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
  with flag_groups.flag_group("Model"):
    path_flags.define(
      "init_checkpoint",
      None,
      "A checkpoint, its folder, or the name of a released model.",
      is_model=True,
    )
    path_flags.define("bert_config_file", None, "Its configuration. [bert_config.json beside it]")
    path_flags.define("vocab_file", None, "Its vocabulary. [vocab.txt beside it]")
    flags.DEFINE_bool(
      "do_lower_case", True, "Whether to lower-case the text: True for uncased models."
    )
    flags.DEFINE_integer(
      "max_seq_length", 64, "Maximum sequence length in word pieces. Longer texts are truncated."
    )
  flag_groups.mark_required(["text", "output_file", "init_checkpoint"])


def main(_) -> None:
  """Draws the maps of a text."""
  command_line.check_required()
  attend = attention.load(
    FLAGS.init_checkpoint,
    FLAGS.max_seq_length,
    bert_config_file=FLAGS.bert_config_file,
    vocab_file=FLAGS.vocab_file,
    do_lower_case=FLAGS.do_lower_case if command_line.flag_was_given("do_lower_case") else None,
  )
  tokens, maps = attend(FLAGS.text, FLAGS.text_pair)
  draw(maps, tokens, FLAGS.output_file, FLAGS.layer)
  logging.info("Wrote %s: %d word pieces.", FLAGS.output_file, len(tokens))


def draw(maps: np.ndarray, tokens: list[str], output_file: str, layer: int | None = None) -> None:
  """Draws the heads of a layer, or the mean of each layer's heads.

  Args:
    maps: float `[L, N, S, S]`: layers, heads, and S word pieces that attend to S others.
    tokens: S word pieces.
    output_file: the picture.
    layer: 0 is the first, -1 the last.

  Raises:
    ValueError: the model does not have this layer.
  """
  count, heads = maps.shape[:2]
  if layer is None:
    titles = [f"layer {number}" for number in range(count)]
    title = f"Attention, mean of {heads} heads"
    drawing.plot_attention(maps.mean(axis=1), tokens, output_file, titles, title)
    return
  sentence_vectors.check_layers([layer], count)
  titles = [f"head {number}" for number in range(heads)]
  title = f"Attention in layer {layer % count} (of 0 to {count - 1})"
  drawing.plot_attention(maps[layer], tokens, output_file, titles, title)


if __name__ == "__main__":
  command_line.run(main, define_flags)
