"""Adapts a model to another vocabulary: selects or creates the embedding row of each token.

tensors = resize_vocabulary(tensors, old_tokens, new_tokens, 0.02, seed=1, split=splitter.split)
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from absl import logging

from bert.checkpoints.bundle_files import CheckpointError
from bert.checkpoints.load_report import abbreviate
from bert.families import FAMILIES

# Of every family, and of the generator of an ELECTRA with embeddings of its own.
_EMBEDDINGS = "embeddings/word_embeddings"
_OUTPUT_BIASES = {f"{family.masked_lm}/output_bias" for family in FAMILIES.values()}


def resize_vocabulary(
  tensors: Mapping[str, np.ndarray],
  old_tokens: Sequence[str],
  new_tokens: Sequence[str],
  initializer_range: float,
  seed: int,
  split: Callable[[str], list[str]],
) -> dict[str, np.ndarray]:
  """Selects or creates the row of each new token in the embeddings and the output bias.

  A token of the old vocabulary keeps its rows, slots included. A new one starts as the mean of
  its pieces in the old vocabulary, in both tensors: as logits are linear in them, its logit is then
  the mean of its pieces' logits in any context. A token without pieces ([ENTITY], an unknown
  character) starts as in an untrained model, with the lowest bias of all, so that it is not
  predicted before it is learned. The optimizer's slots of new rows are zeros.

  Args:
    tensors: name -> array, of the whole checkpoint.
    old_tokens: in the order of their ids.
    new_tokens: in the order of their ids.
    initializer_range: standard deviation of rows that are drawn.
    seed: decides those rows.
    split: token -> its pieces in the old vocabulary.

  Returns:
    The same names and types; all other tensors are unchanged.

  Raises:
    CheckpointError: there are no embeddings, or fewer than `old_tokens`.
  """
  tables = _tables(tensors)
  _check_rows(tensors, tables, old_tokens)
  rows = _Rows.of(old_tokens, new_tokens, split)
  drawn = [index for index, pieces in rows.pieces_of.items() if not pieces]
  _log_rows(rows, drawn, old_tokens, new_tokens)
  resized = dict(tensors)
  for name in tables:
    table = tensors[name]
    resized[name] = rows.moved(table)
    for index, pieces in rows.pieces_of.items():
      if pieces:
        resized[name][index] = table[pieces].astype(np.float32).mean(axis=0)
    if name.endswith(_EMBEDDINGS):
      resized[name][drawn] = _truncated_normal(len(drawn), table, initializer_range, seed)
    else:
      resized[name][drawn] = table.min()
    for slot in (f"{name}/adam_m", f"{name}/adam_v"):
      if slot in tensors:
        resized[slot] = rows.moved(tensors[slot])
  return resized


class _Rows(NamedTuple):
  """Where the rows of a new vocabulary come from."""

  source: np.ndarray  # int `[V]`, the old id of each token, -1 for a new one
  pieces_of: dict[int, list[int]]  # new id -> old ids of the pieces, for the new tokens

  @classmethod
  def of(cls, old_tokens, new_tokens, split):
    id_of = {token: index for index, token in enumerate(old_tokens)}
    source = np.array([id_of.get(token, -1) for token in new_tokens])
    pieces_of: dict[int, list[int]] = {}
    for index in np.flatnonzero(source < 0).tolist():
      token = new_tokens[index]
      # A name in brackets, which the tokenizer never splits.
      named = len(token) > 1 and token.startswith("[") and token.endswith("]")
      pieces = [] if named else split(token)
      pieces_of[index] = [id_of[piece] for piece in pieces]
    return cls(source, pieces_of)

  def moved(self, table: np.ndarray) -> np.ndarray:
    """Returns the table's rows in their new order; zeros for new tokens."""
    result = np.zeros((len(self.source), *table.shape[1:]), table.dtype)
    result[self.source >= 0] = table[self.source[self.source >= 0]]
    return result


def _tables(tensors) -> list[str]:
  """Returns the tensors with a row for each token, but for their slots."""
  return [name for name in tensors if name.endswith(_EMBEDDINGS) or name in _OUTPUT_BIASES]


def _check_rows(tensors, tables, old_tokens):
  if not any(name.endswith(_EMBEDDINGS) for name in tables):
    raise CheckpointError(
      f"The checkpoint has no bert/{_EMBEDDINGS}, nor those of another family: it is no model of "
      "words."
    )
  for name in tables:
    count = len(tensors[name])
    if count < len(old_tokens):
      raise CheckpointError(
        f"{name} has {count} rows, the old vocabulary {len(old_tokens)} tokens: they do not belong "
        "together. Give the vocabulary of the checkpoint as --old_vocab_file."
      )
    if count > len(old_tokens):
      logging.warning(
        "%s has %d more rows than the old vocabulary has tokens: they are dropped.",
        name,
        count - len(old_tokens),
      )


def _truncated_normal(count: int, table: np.ndarray, stddev: float, seed: int) -> np.ndarray:
  import tensorflow as tf

  shape = [count, *table.shape[1:]]
  return tf.random.stateless_truncated_normal(shape, [seed, 0], stddev=stddev).numpy()


def _log_rows(rows, drawn, old_tokens, new_tokens):
  logging.info(
    "%d tokens keep their rows, %d start as the mean of their pieces, %d at random (%s).",
    len(new_tokens) - len(rows.pieces_of),
    len(rows.pieces_of) - len(drawn),
    len(drawn),
    abbreviate([new_tokens[index] for index in drawn]) or "none",
  )
  known = set(new_tokens)
  gone = [token for token in old_tokens if token not in known]
  if gone:
    logging.info("%d tokens are not in the new vocabulary: %s.", len(gone), abbreviate(gone))
