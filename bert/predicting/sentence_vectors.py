"""Texts to vectors: outputs of BERT's layers for each word piece, or pooled per text.

`servable.py` combines these functions; `extract_features.py` writes files.

Letters in shapes: B = batch size, S = sequence length, L = number of requested layers, W = hidden
size.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bert.checkpoints import sentence_pooling
from bert.predicting.fixed_batch_shapes import FixedBatchShapes
from bert.tasks.classification import InputExample, join_texts, unpadded

# The inputs of `BertModel`, by the names of `classification.InputFeatures` and of records.
INPUTS = ("input_ids", "input_mask", "segment_ids")
POOLINGS = ("none", *sentence_pooling.POOLINGS)

# Limit of the vectors in memory until all texts of their chunk are done.
_CHUNK_BYTES = 1 << 28

# Batches of short texts have more texts, up to this number of tokens: each operation has a fixed
# cost. The gain is small, and much larger batches do not fit into caches.
_BATCH_TOKENS = 2048

# Where fixed shapes decide about batches, it decides about chunks alone: the last batch of each
# length is not full, and larger chunks have fewer of them.
_INVARIANT_BATCH_SIZE = 128

Features = Mapping[str, Any]  # name -> list of ints, or a string


# Names of texts in a dictionary: our own, and those of transformers.
_TEXT_NAMES = {"text_a": 0, "text": 0, "text_b": 1, "text_pair": 1}


def text_pair(item: str | Sequence | Mapping) -> tuple[str, str | None]:
  """Returns the first text of an item, and the second if it has one; dicts name one or two.

  Raises:
    ValueError: `item` is something else.

  Example:
    >>> text_pair("a"), text_pair(("a", "b")), text_pair({"text_a": "a", "text_b": "b"})
    (('a', None), ('a', 'b'), ('a', 'b'))
  """
  pair = item
  if isinstance(item, str):
    pair = (item, None)
  elif isinstance(item, Mapping):
    places = {_TEXT_NAMES.get(name): text for name, text in item.items()}
    is_known = len(places) == len(item) and None not in places
    pair = (places.get(0), places.get(1)) if is_known else None
  is_pair = isinstance(pair, (tuple, list)) and len(pair) == 2
  if not is_pair or not isinstance(pair[0], str) or not isinstance(pair[1], (str, type(None))):
    raise ValueError(f"Expected a text or a pair of texts, not {item!r:.80}.")
  return pair[0], pair[1]


def text_features(tokenizer, item: str | tuple[str, str], max_seq_length: int) -> dict[str, list]:
  """Makes `tokens` and `INPUTS` of a text or a pair: `[CLS] a [SEP]`, then `b [SEP]`; no padding.

  Longer inputs are truncated, the longer text first.

  Raises:
    ValueError: `item` is not a text or a pair.
  """
  tokens, segment_ids = join_texts(InputExample(None, *text_pair(item)), max_seq_length, tokenizer)
  return {"tokens": tokens, **unpadded(tokens, segment_ids, tokenizer)}


def layer_vectors(
  config,
  layer_indexes: Sequence[int],
  pooling: str = "none",
  dtype: str = "float32",
  batch_shapes: FixedBatchShapes | None = None,
) -> Callable[[Features], Features]:
  """Returns a graph function of the vectors of some layers, for `engines.tensorflow.load_graph`.

  Args:
    config: a `BertConfig`.
    layer_indexes: 0 is the first layer, -1 the last.
    pooling: `none`: a vector for each piece; `cls`: that of [CLS]; `mean` and `max`: over all
      pieces, [CLS] and [SEP] included, without padding.
    dtype: of matrix products.
    batch_shapes: of the batches that will be given, see `Batching`.

  Returns:
    `build(features)` -> `vectors`, float32 `[B, S, L, W]`, or `[B, L, W]` where pooled.

  Raises:
    ValueError: the model does not have a layer, or `pooling` is unknown.
  """
  check_layers(layer_indexes, config.num_hidden_layers)
  if pooling not in POOLINGS:
    raise ValueError(f"pooling is {pooling!r}, but must be one of {', '.join(POOLINGS)}.")

  def build(features):
    import tensorflow as tf

    from bert.model import similarity
    from bert.modeling import BertModel

    model = BertModel(
      config,
      False,
      *(features[name] for name in INPUTS),
      dtype=tf.as_dtype(dtype),
      skip_padding=True,
      row_multiple=batch_shapes.tokens if batch_shapes else 128,
    )
    layers = model.get_all_encoder_layers()
    chosen = tf.stack([layers[index] for index in layer_indexes], axis=2)  # [B, S, L, W]
    if pooling == "none":
      return {"vectors": chosen}
    return {"vectors": similarity.pool(chosen, features["input_mask"], pooling)}

  return build


def check_layers(layer_indexes: Sequence[int], num_layers: int) -> None:
  """Raises a ValueError for a layer that the model does not have."""
  for index in layer_indexes:
    if not -num_layers <= index < num_layers:
      raise ValueError(
        f"there is no layer {index}: the model has {num_layers}, 0 to {num_layers - 1} from the "
        f"first, or -1 to -{num_layers} from the last."
      )


class Batching(NamedTuple):
  """How texts become batches: arguments of a `predictor.Predictor`."""

  batch_size: int  # texts in a batch
  chunk_size: int  # texts that are sorted by length and returned together
  batch_tokens: int  # a batch of short texts may have more texts, up to this number of tokens
  # The shapes of all batches, for vectors that do not depend on the batch.
  batch_shapes: FixedBatchShapes | None


def batching(
  config,
  num_layers: int,
  pooling: str,
  max_seq_length: int,
  batch_size: int,
  batch_invariant: bool = False,
) -> Batching:
  """Returns the batches of texts whose vectors are computed.

  Args:
    config: a `BertConfig`.
    num_layers: L.
    pooling: see `layer_vectors`.
    max_seq_length: longer texts are truncated.
    batch_size: texts in a batch; more of short ones, see `_BATCH_TOKENS`.
    batch_invariant: whether a text's vectors have the same bits in every batch, see
      `fixed_batch_shapes.py`. `batch_size` has no effect then.
  """
  if batch_invariant:
    batch_size = _INVARIANT_BATCH_SIZE
  vectors_per_text = num_layers * (max_seq_length if pooling == "none" else 1)
  fitting = _CHUNK_BYTES // (4 * config.hidden_size * vectors_per_text)
  return Batching(
    batch_size,
    max(batch_size, min(fitting, 64 * batch_size)),
    min(_BATCH_TOKENS, batch_size * max_seq_length),  # at most that of the longest texts
    FixedBatchShapes(max_seq_length, config.longest_sequence) if batch_invariant else None,
  )


def own_vectors(features: Features, vectors: np.ndarray, pooling: str) -> np.ndarray:
  """Returns a copy of the vectors of one text, without padding."""
  return np.array(vectors[: len(features["input_ids"])] if pooling == "none" else vectors)


def cosine_similarity(a: np.ndarray, b: np.ndarray) -> np.ndarray:
  """The cosine of the angle between two vectors: 1 same direction, 0 right angle, -1 opposite.

  It measures the similarity of texts only for a model that was trained to do so, such as one of
  `run_similarity.py`. Vectors of pre-trained BERT all share a few large components,
  so that any two texts score high, unrelated ones too; such scores rank pairs of texts badly, and
  their absolute value means nothing (Reimers and Gurevych, arXiv:1908.10084, table 1).

  Args:
    a: float `[..., W]`.
    b: float `[..., W]`, of a shape that broadcasts with a's.

  Returns:
    float64 `[...]`; 0 where a vector is 0.

  Example:
    >>> float(cosine_similarity(np.array([1.0, 0.0]), np.array([3.0, 3.0])).round(4))
    0.7071
  """
  a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
  norms = np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1)
  return np.sum(a * b, axis=-1) / np.where(norms == 0, 1.0, norms)
