"""One model, loaded once, that takes texts and gives results: from checkpoints and SavedModels.

  predictor = Predictor.from_saved_model("out/export/task")      # of run_classifier.py --do_export
  predictor(["It rains.", ("Is it wet?", "It is.")])             # a list of dicts
  for result in predictor.stream(open("many_lines.txt")): ...    # in bounded memory

  encode = Predictor.from_checkpoint("uncased_L-12_H-768_A-12")  # a vector for each text
  cosine_similarity(*encode(["A cat sat.", "The cat was sitting."]))

Or, for task models, one JSON object for each line of a file, or of standard input:

  python predictor.py --saved_model=out/export/task --input_file=lines.txt

A line holds a text, or two with ` ||| ` between them, or a JSON object of the model's inputs.

How a `Predictor` saves time: texts are taken in chunks, sorted by length within a chunk and cut
into batches, so that little is computed for padding; results are dealt out in the order of the
texts. The graph is traced once, when the model is loaded, for batches of any size and length.

Letters in shapes: B = batch size, S = sequence length, L = number of layers asked for, W = hidden
size.
"""

import contextlib
import functools
import itertools
import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from absl import flags

import command_line
from examples import InputExample, join_texts
from model_loading import Arrays, load_graph, load_model, load_signature
from text_lines import (
  STANDARD_STREAM,
  check_output_file,
  read_lines,
  split_pair,
  to_json,
  written_whole,
)

FLAGS = flags.FLAGS

# What `BertModel` reads, by the names that `examples.InputFeatures` and records have.
INPUTS = ("input_ids", "input_mask", "segment_ids")
POOLINGS = ("none", "cls", "mean", "max")

# Vectors that wait until all texts of their chunk are done.
_CHUNK_BYTES = 1 << 28

Features = Mapping[str, Any]  # name -> list of ints, or a string
Graph = Callable[[Features], Arrays]

# ---------------------------------------------------------------------------------------------
# The predictor: knows lengths and order, and nothing of BERT.


class Predictor:
  """Runs a model over any number of items; see this module's docstring.

  Example:
    >>> double = Predictor(
    ...   featurize=lambda text: {"codes": list(map(ord, text))},
    ...   compute=lambda batch: {"sum": batch["codes"].sum(axis=1)},
    ...   inputs=["codes"],
    ...   finish=lambda features, outputs: int(outputs["sum"]))
    >>> double(["b", "aaa", ""])
    [98, 291, 0]

  Attributes:
    batch_size: so many items are computed at a time.
    chunk_size: so many items are sorted by length together, and wait for each other.
  """

  def __init__(
    self,
    featurize: Callable[[Any], Features],
    compute: Graph,
    inputs: Sequence[str],
    finish: Callable[[Features, Arrays], Any] | None = None,
    batch_size: int = 32,
    chunk_size: int = 1024,
  ):
    """Puts the three steps together.

    Args:
      featurize: an item's features. It may add what `finish` needs.
      compute: name -> int32 `[B, longest]`, filled up with zeros (or strings `[B]`), to name ->
        array or tensor `[B, ...]`.
      inputs: names of the features that `compute` takes.
      finish: makes an item's result of its features and its rows of the outputs; by default those
        rows are the result.
      batch_size: B.
      chunk_size: more means less padding, and more memory for results that wait.

    Raises:
      ValueError: a size is below 1.
    """
    for name, value in (("batch_size", batch_size), ("chunk_size", chunk_size)):
      if value < 1:
        raise ValueError(f"{name} must be at least 1, but is {value}.")
    self.batch_size = batch_size
    self.chunk_size = chunk_size
    self._featurize = featurize
    self._compute = compute
    self._inputs = tuple(inputs)
    self._finish = finish or (lambda features, outputs: dict(outputs))

  def __call__(self, items: Iterable) -> list:
    """The results of all items, in their order."""
    return list(self.stream(items))

  def stream(self, items: Iterable) -> Iterator:
    """The results one by one, in the order of the items; holds one chunk in memory.

    Raises:
      TypeError: `items` is one text; a list with it is meant.
    """
    if isinstance(items, (str, bytes)):
      raise TypeError(f"A list of texts is needed; write [{items!r:.60}].")
    iterator = iter(items)
    while chunk := list(itertools.islice(iterator, self.chunk_size)):
      yield from self._results([self._featurize(item) for item in chunk])

  def _results(self, features: list[Features]) -> list:
    shortest_first = sorted(range(len(features)), key=lambda index: self._length(features[index]))
    results = [None] * len(features)
    for start in range(0, len(features), self.batch_size):
      chosen = shortest_first[start : start + self.batch_size]
      outputs = self._outputs([features[index] for index in chosen])
      for row, index in enumerate(chosen):
        rows = {name: array[row] for name, array in outputs.items()}
        results[index] = self._finish(features[index], rows)
    return results

  def _length(self, features: Features) -> int:
    return sum(len(features[name]) for name in self._inputs)

  def _outputs(self, rows: list[Features]) -> dict[str, np.ndarray]:
    batch = {name: _stacked([features[name] for features in rows]) for name in self._inputs}
    outputs = {name: np.asarray(value) for name, value in self._compute(batch).items()}
    for name, array in outputs.items():
      if array.shape[:1] != (len(rows),):
        raise ValueError(f"The model's output {name!r} is {array.shape} for {len(rows)} items.")
    return outputs

  # -------------------------------------------------------------------------------------------
  # Where models come from.

  @classmethod
  def from_checkpoint(
    cls,
    init_checkpoint: str,
    *,
    layers: int | Sequence[int] = -1,
    pooling: str = "mean",
    bert_config_file: str | None = None,
    vocab_file: str | None = None,
    do_lower_case: bool | None = None,
    max_seq_length: int = 128,
    batch_size: int = 32,
    dtype: str = "float32",
  ) -> "Predictor":
    """Turns texts, or pairs of texts, into vectors.

    Args:
      init_checkpoint: a checkpoint's prefix, a folder with one, an exported encoder, or the name of
        a released model.
      layers: which layer's vectors, -1 for the last; or several.
      pooling: see `layer_vectors`.
      bert_config_file: see `load_model`.
      vocab_file: see `load_model`.
      do_lower_case: see `load_model`.
      max_seq_length: longer texts are cut.
      batch_size: texts computed at a time.
      dtype: of the matrix products.

    Returns:
      A predictor whose results are float32 `[W]` for one layer and `[L, W]` for several; with
      pooling `none`, `[S, W]` and `[S, L, W]`, where S counts the text's own pieces.

    Raises:
      ValueError: a file is missing or bad, or they do not belong together.
    """
    config, tokenizer, prefix = load_model(
      init_checkpoint, bert_config_file, vocab_file, do_lower_case, max_seq_length
    )
    indexes = [layers] if isinstance(layers, int) else list(layers)
    build = layer_vectors(config, indexes, pooling, dtype)

    def finish(features, outputs):
      vectors = own_vectors(features, outputs["vectors"], pooling)
      return vectors[..., 0, :] if isinstance(layers, int) else vectors

    return cls(
      functools.partial(text_features, tokenizer, max_seq_length=max_seq_length),
      load_graph(build, INPUTS, prefix, optional=("bert/pooler/",)),
      INPUTS,
      finish,
      batch_size,
      chunk_that_fits(config, len(indexes), pooling, max_seq_length, batch_size),
    )

  @classmethod
  def from_saved_model(
    cls, saved_model: str, batch_size: int = 32, chunk_size: int = 1024
  ) -> "Predictor":
    """Runs a fine-tuned model that `--do_export` wrote.

    Args:
      saved_model: the folder of the task's model, or the export's folder around `task`.
      batch_size: items computed at a time.
      chunk_size: see `__init__`.

    Returns:
      A predictor whose items are texts; for models of two texts, pairs, or a text alone where
      `text_b` may be missing; for any model, dicts of its inputs. Its results are dicts of the
      model's outputs: strings, numbers, lists of strings, and arrays.

    Raises:
      ValueError: it is no model that takes strings.
      OSError: there is no SavedModel.
    """
    function = load_signature(saved_model)
    return cls(
      lambda item: name_texts(item, function.inputs),
      function,
      function.inputs,
      lambda features, outputs: _own_answers(outputs),
      batch_size,
      chunk_size,
    )


def _stacked(rows: Sequence) -> Any:
  """Strings as they are; lists of ints as int32 `[B, longest]`, filled up with zeros.

  Example:
    >>> _stacked([[1], [2, 3]]).tolist()
    [[1, 0], [2, 3]]
  """
  if isinstance(rows[0], str):
    return rows
  stacked = np.zeros([len(rows), max(map(len, rows))], np.int32)
  for row, values in enumerate(rows):
    stacked[row, : len(values)] = values
  return stacked


# ---------------------------------------------------------------------------------------------
# Texts for SavedModels, and their answers.

# Two texts given as a pair: which is which.
_PAIRS = (("text_a", "text_b"), ("question", "context"))


def name_texts(item: str | tuple | Mapping[str, str], names: Sequence[str]) -> dict[str, str]:
  """An item as a dict of a model's inputs.

  Args:
    item: a text, a pair of texts, or such a dict.
    names: of the model's inputs.

  Raises:
    ValueError: it has other texts than the model takes.

  Example:
    >>> name_texts("Hi.", ["text_a", "text_b"])
    {'text_a': 'Hi.', 'text_b': ''}
    >>> name_texts(("Who?", "Me."), ["context", "question"])
    {'question': 'Who?', 'context': 'Me.'}
  """
  texts = item
  if isinstance(item, str):
    is_optional_pair = sorted(names) == ["text_a", "text_b"]
    texts = {"text_a": item, "text_b": ""} if is_optional_pair else dict.fromkeys(names[:1], item)
  elif isinstance(item, (tuple, list)):
    pair = next((pair for pair in _PAIRS if set(pair) == set(names)), ())
    texts = dict(zip(pair, item, strict=False)) if len(pair) == len(item) else {}
  if (
    not isinstance(texts, Mapping)
    or set(texts) != set(names)
    or not all(isinstance(text, str) for text in texts.values())
  ):
    raise ValueError(f"{item!r:.80} does not fit this model, whose inputs are {', '.join(names)}.")
  return dict(texts)


def _own_answers(outputs: Arrays) -> dict[str, Any]:
  """A text's row of the outputs; of words, as many as it has: rows are filled up to the longest."""
  num_words = outputs.get("num_words")
  return {
    name: _plain(value if num_words is None or np.ndim(value) == 0 else value[:num_words])
    for name, value in outputs.items()
  }


def _plain(value):
  """Bytes as text, numbers as Python's own; arrays of bytes as lists of text."""
  if isinstance(value, bytes):
    return value.decode("utf-8", "replace")
  if isinstance(value, np.ndarray):
    return [_plain(entry) for entry in value] if value.dtype.kind in "OS" else value
  return value.item() if isinstance(value, np.generic) else value


# ---------------------------------------------------------------------------------------------
# Texts to vectors.


def text_features(tokenizer, item: str | tuple[str, str], max_seq_length: int) -> dict[str, list]:
  """A text or a pair as a model reads it: `[CLS] a [SEP]`, then `b [SEP]` if there is a b.

  Args:
    tokenizer: a `tokenization.FullTokenizer`.
    item: the text, or two.
    max_seq_length: what is longer is cut, the longer text first.

  Returns:
    `tokens`, and `INPUTS`, all of the same length, without padding.

  Raises:
    ValueError: `item` is something else.
  """
  pair = (item, None) if isinstance(item, str) else item
  is_pair = isinstance(pair, (tuple, list)) and len(pair) == 2
  if not is_pair or not isinstance(pair[0], str) or not isinstance(pair[1], (str, type(None))):
    raise ValueError(f"A text or a pair of texts is needed, not {item!r:.80}.")
  tokens, segment_ids = join_texts(InputExample(None, *pair), max_seq_length, tokenizer)
  return {
    "tokens": tokens,
    "input_ids": tokenizer.convert_tokens_to_ids(tokens),
    "input_mask": [1] * len(tokens),
    "segment_ids": segment_ids,
  }


def layer_vectors(
  config,
  layer_indexes: Sequence[int],
  pooling: str = "none",
  dtype: str = "float32",
  use_one_hot_embeddings: bool = False,
) -> Callable[[Arrays], Arrays]:
  """A graph function that gives the vectors of some layers, for `load_graph`.

  Args:
    config: a `BertConfig`.
    layer_indexes: 0 is the first layer, -1 the last.
    pooling: `none` keeps a vector for each piece; `cls` takes that of [CLS]; `mean` and `max` go
      over all pieces, [CLS] and [SEP] included, and padding not.
    dtype: of the matrix products.
    use_one_hot_embeddings: look words up by a matrix product.

  Returns:
    `build(features)` -> `vectors`, float32 `[B, S, L, W]`, or `[B, L, W]` where pooled.

  Raises:
    ValueError: there is no such layer or pooling.
  """
  check_layers(layer_indexes, config.num_hidden_layers)
  if pooling not in POOLINGS:
    raise ValueError(f"pooling is {pooling!r}, but must be one of {', '.join(POOLINGS)}.")

  def build(features):
    import tensorflow as tf

    from modeling import BertModel

    model = BertModel(
      config,
      False,
      *(features[name] for name in INPUTS),
      use_one_hot_embeddings,
      dtype=tf.as_dtype(dtype),
      skip_padding=True,
    )
    layers = model.get_all_encoder_layers()
    chosen = tf.stack([layers[index] for index in layer_indexes], axis=2)  # [B, S, L, W]
    return {"vectors": _pool(chosen, features["input_mask"], pooling)}

  return build


def check_layers(layer_indexes: Sequence[int], num_layers: int) -> None:
  """Raises a ValueError for a layer that the model does not have."""
  for index in layer_indexes:
    if not -num_layers <= index < num_layers:
      raise ValueError(
        f"there is no layer {index}: the model has {num_layers}, 0 to {num_layers - 1} from the "
        f"first, or -1 to -{num_layers} from the last."
      )


def _pool(vectors, input_mask, pooling):
  """float32 `[B, S, L, W]` and int32 `[B, S]` to `[B, L, W]`."""
  import tensorflow as tf

  if pooling == "none":
    return vectors
  if pooling == "cls":
    return vectors[:, 0]
  is_piece = tf.cast(input_mask, tf.bool)[:, :, tf.newaxis, tf.newaxis]
  if pooling == "max":
    return tf.reduce_max(tf.where(is_piece, vectors, vectors.dtype.min), axis=1)
  total = tf.reduce_sum(tf.where(is_piece, vectors, 0.0), axis=1)
  return total / tf.reduce_sum(tf.cast(is_piece, tf.float32), axis=1)


def chunk_that_fits(
  config, num_layers: int, pooling: str, max_seq_length: int, batch_size: int
) -> int:
  """A `chunk_size` of 64 batches, or fewer where vectors that wait would take more than 256 MiB."""
  vectors_per_text = num_layers * (max_seq_length if pooling == "none" else 1)
  fitting = _CHUNK_BYTES // (4 * config.hidden_size * vectors_per_text)
  return max(batch_size, min(fitting, 64 * batch_size))


def own_vectors(features: Features, vectors: np.ndarray, pooling: str) -> np.ndarray:
  """A text's rows of `layer_vectors`, without padding, and apart from the batch's memory."""
  return np.array(vectors[: len(features["input_ids"])] if pooling == "none" else vectors)


def cosine_similarity(a: np.ndarray, b: np.ndarray) -> np.ndarray:
  """How much two vectors point the same way: 1 the same, 0 at right angles, -1 opposite.

  This says whether two texts mean the same only if the model was trained for that: one of sentence
  embeddings, or fine-tuned on pairs. Vectors of BERT as it comes from pre-training all share a few
  large components, so that any two texts score high, unrelated ones too; such scores order pairs
  of texts badly and their size means nothing (Reimers and Gurevych, arXiv:1908.10084, table 1).

  Args:
    a: float `[..., W]`.
    b: float `[..., W]`, any shape that goes with a's.

  Returns:
    float64 `[...]`; 0 where a vector is 0.

  Example:
    >>> float(cosine_similarity(np.array([1.0, 0.0]), np.array([3.0, 3.0])).round(4))
    0.7071
  """
  a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
  norms = np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1)
  return np.sum(a * b, axis=-1) / np.where(norms == 0, 1.0, norms)


# ---------------------------------------------------------------------------------------------
# The job: task models on lines of text.


def define_flags() -> None:
  """Defines this script's flags."""
  with command_line.flag_group("Prediction"):
    flags.DEFINE_string(
      "saved_model", None, "Folder of a fine-tuned model: OUTPUT_DIR/export of --do_export."
    )
    flags.DEFINE_string("input_file", "-", "Texts, one on each line; - is standard input.")
    flags.DEFINE_string("output_file", "-", "JSON objects, one for each line; - prints them.")
    flags.DEFINE_integer("batch_size", 32, "Texts computed at a time.")
  command_line.mark_required(["saved_model"])


def main(_) -> None:
  """Predicts as the flags say."""
  command_line.check_required()
  check_output_file(FLAGS.output_file)
  # Whoever types wants the answer before the next line.
  waits = FLAGS.input_file == STANDARD_STREAM and sys.stdin.isatty()
  predictor = Predictor.from_saved_model(
    FLAGS.saved_model, FLAGS.batch_size, chunk_size=1 if waits else 1024
  )
  with written_whole(FLAGS.output_file) as writer:
    for result in predictor.stream(map(_parse_line, read_lines(FLAGS.input_file))):
      writer.write(to_json(result))
      if waits:
        writer.flush()


def _parse_line(line: str) -> str | tuple[str, str] | dict:
  """The item on a line: a text, a pair, or a JSON object of inputs."""
  if line.startswith("{"):
    with contextlib.suppress(json.JSONDecodeError):
      return json.loads(line)
  text_a, text_b = split_pair(line)
  return text_a if text_b is None else (text_a, text_b)


if __name__ == "__main__":
  command_line.run(main, define_flags)
