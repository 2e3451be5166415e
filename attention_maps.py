"""Attention maps: how much each word piece of a text looks at each other, in every layer and head.

  python attention_maps.py --init_checkpoint=uncased_L-12_H-768_A-12 --layer=5 \\
    --text="The cat sat on the mat." --text_pair="It was tired." --output_file=attention.png

draws the heads of a layer side by side; without --layer the mean of the heads of every layer. From
Python:

  attend = attention_maps.load("uncased_L-12_H-768_A-12")
  tokens, maps = attend("The cat sat on the mat.")      # float32 [L, N, S, S]

The encoder keeps no maps, which would cost every run time and memory. They are computed anew here
from what each layer reads, its queries and its keys.

Letters in shapes: B = batch size, L = layers, N = heads, S = sequence length, H = size of one head,
W = hidden size.
"""

import math
from collections.abc import Callable

import numpy as np
from absl import flags, logging

from bert.predicting import sentence_vectors
from bert.predicting.load_model import load_graph, load_model
from bert.scripts import command_line, flag_groups

FLAGS = flags.FLAGS


def define_flags() -> None:
  """Defines this script's flags."""
  with flag_groups.flag_group("Text and picture"):
    flags.DEFINE_string("text", None, "The text to show.")
    flags.DEFINE_string("text_pair", None, "A second text, as BERT reads pairs.")
    flags.DEFINE_string("output_file", None, "The picture: .png, .svg or .pdf.")
    flags.DEFINE_integer(
      "layer", None, "Which layer's heads: 0 is the first, -1 the last. [the mean of each layer's]"
    )
  with flag_groups.flag_group("Model"):
    flags.DEFINE_string(
      "init_checkpoint", None, "A checkpoint, its folder, or the name of a released model."
    )
    flags.DEFINE_string("bert_config_file", None, "Its sizes. [bert_config.json beside it]")
    flags.DEFINE_string("vocab_file", None, "Its vocabulary. [vocab.txt beside it]")
    flags.DEFINE_bool("do_lower_case", True, "True for uncased models.")
    flags.DEFINE_integer("max_seq_length", 64, "Longer texts are cut to so many word pieces.")
  flag_groups.mark_required(["text", "output_file", "init_checkpoint"])


# ---------------------------------------------------------------------------------------------
# Computing.


def attention_maps(bert_config, model, input_mask):
  """The attention probabilities of a model that was built for inference.

  Args:
    bert_config: its `BertConfig`.
    model: a `modeling.BertModel`, in the variable store of which this is called.
    input_mask: int `[B, S]`, 1 where there is a word piece.

  Returns:
    float32 `[B, L, N, S, S]`: which piece looks, and at which; the last axis sums to 1.
  """
  import tensorflow as tf

  hidden = (1.0 - tf.cast(input_mask, tf.float32))[:, tf.newaxis, tf.newaxis, :] * -10000.0
  inputs = [model.get_embedding_output(), *model.get_all_encoder_layers()[:-1]]
  maps = []
  for layer, states in enumerate(inputs):
    scope = f"bert/encoder/layer_{layer}/attention/self"
    query, key = (_heads(bert_config, states, f"{scope}/{name}") for name in ("query", "key"))
    scores = tf.matmul(query, key, transpose_b=True)  # [B, N, S, S]
    size_per_head = bert_config.hidden_size // bert_config.num_attention_heads
    maps.append(tf.nn.softmax(scores / math.sqrt(size_per_head) + hidden))
  return tf.stack(maps, axis=1)


def _heads(bert_config, states, scope: str):
  """A projection of `[B, S, W]`, split into heads: `[B, N, S, H]`."""
  import tensorflow as tf

  from bert.model.variables import get_variable

  projected = tf.matmul(states, get_variable(f"{scope}/kernel")) + get_variable(f"{scope}/bias")
  shape = tf.shape(states)
  heads = bert_config.num_attention_heads
  split = tf.reshape(projected, [shape[0], shape[1], heads, bert_config.hidden_size // heads])
  return tf.transpose(split, [0, 2, 1, 3])


def load(
  init_checkpoint: str, max_seq_length: int = 512, **options
) -> Callable[..., tuple[list[str], np.ndarray]]:
  """A function that gives the maps of a text or of a pair of texts.

  Args:
    init_checkpoint: see `load_model.load_model`.
    max_seq_length: longer texts are cut to so many word pieces.
    **options: of `load_model.load_model`.

  Returns:
    `attend(text, text_pair=None)` -> the S word pieces, and float32 `[L, N, S, S]`.

  Raises:
    ValueError: files are missing, or do not belong together.
  """
  config, tokenizer, prefix = load_model(init_checkpoint, max_seq_length=max_seq_length, **options)

  def build(features):
    from bert.modeling import BertModel

    model = BertModel(config, False, *(features[name] for name in sentence_vectors.INPUTS))
    return {"maps": attention_maps(config, model, features["input_mask"])}

  # No map depends on the pooler, which some checkpoints lack.
  function = load_graph(build, sentence_vectors.INPUTS, prefix, optional=("bert/pooler/",))

  def attend(text: str, text_pair: str | None = None):
    item = text if text_pair is None else (text, text_pair)
    features = sentence_vectors.text_features(tokenizer, item, max_seq_length)
    batch = {name: np.array([features[name]], np.int32) for name in sentence_vectors.INPUTS}
    return features["tokens"], function(batch)["maps"].numpy()[0]

  return attend


# ---------------------------------------------------------------------------------------------
# Drawing.


def draw(maps: np.ndarray, tokens: list[str], output_file: str, layer: int | None = None) -> None:
  """Draws the heads of a layer, or the mean of each layer's heads.

  Args:
    maps: float `[L, N, S, S]`.
    tokens: S word pieces.
    output_file: the picture.
    layer: 0 is the first, -1 the last.

  Raises:
    ValueError: there is no such layer.
  """
  from bert import plots

  count, heads = maps.shape[:2]
  if layer is None:
    titles = [f"layer {number}" for number in range(count)]
    title = f"Attention, mean of {heads} heads"
    plots.plot_attention(maps.mean(axis=1), tokens, output_file, titles, title)
    return
  sentence_vectors.check_layers([layer], count)
  titles = [f"head {number}" for number in range(heads)]
  title = f"Attention in layer {layer % count} (of 0 to {count - 1})"
  plots.plot_attention(maps[layer], tokens, output_file, titles, title)


def main(_) -> None:
  """Draws what the flags say."""
  command_line.check_required()
  attend = load(
    FLAGS.init_checkpoint,
    FLAGS.max_seq_length,
    bert_config_file=FLAGS.bert_config_file,
    vocab_file=FLAGS.vocab_file,
    do_lower_case=FLAGS.do_lower_case if command_line.flag_was_given("do_lower_case") else None,
  )
  tokens, maps = attend(FLAGS.text, FLAGS.text_pair)
  draw(maps, tokens, FLAGS.output_file, FLAGS.layer)
  logging.info("Wrote %s: %d word pieces.", FLAGS.output_file, len(tokens))


if __name__ == "__main__":
  command_line.run(main, define_flags)
