"""A tiny pre-trained model with both heads, and its exported encoder with `.mlm`."""

import numpy as np
import tensorflow as tf

from bert.exporting import hub_encoder
from bert.model import heads
from bert.model.variables import VariableStore, use_store
from bert.modeling import BertModel
from tests.kit import exports

WORDS = ["the", "cat", "sat", "on", "mat", "##s", ".", "[", "]", "mask"]
VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
# One word more than the vocabulary has, as in models with padded tables.
CONFIG = exports.config(len(VOCAB) + 1)
TEXTS = [
  "The [MASK] sat on the [MASK][MASK].",
  "[MASK]",
  ("the cat sat .", "on the [MASK] ."),
  ("the cat", "sat ."),
]


def pretraining_graph(input_ids, segment_ids, positions):
  """Probabilities of the words `[P, V]`, and that the second text follows, by the heads alone."""
  model = BertModel(CONFIG, False, input_ids, None, segment_ids)
  table, zeros = model.get_embedding_table(), tf.zeros_like(positions)
  _, _, words = heads.get_masked_lm_output(
    CONFIG, model.get_sequence_output(), table, positions, zeros, tf.zeros(positions.shape)
  )
  _, _, sentences = heads.get_next_sentence_output(CONFIG, model.get_pooled_output(), zeros[:, 0])
  return np.exp(words), float(tf.exp(sentences[0, 0]))


def variables() -> VariableStore:
  """The variables of the model, the same each time."""
  with use_store(VariableStore(seed=9)) as store:
    pretraining_graph(tf.constant([[2, 3]]), tf.zeros([1, 2], tf.int32), tf.constant([[0]]))
  for variable in store.variables.values():
    variable.assign_add(tf.random.stateless_normal(variable.shape, [1, 2], stddev=0.1))
  return store


def model(tmp_path_factory) -> exports.Model:
  """The trained model, and `encoder` in its export."""
  return exports.made_once(tmp_path_factory, "masked_lm", _make)


def _make(folder):
  trained = exports.write_model(folder / "trained", CONFIG, VOCAB, variables().variables)
  encoder = str(folder / "export" / "encoder")
  hub_encoder.export_encoder(encoder, CONFIG, trained, f"{trained}/vocab.txt", True)


def tokens_of(result: dict) -> list[list[str]]:
  """The guessed pieces of each mask."""
  return [[piece["token"] for piece in pieces] for pieces in result["masks"]]
