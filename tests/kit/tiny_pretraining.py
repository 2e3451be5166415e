"""Records of pre-training that a model of one layer learns in sixty steps."""

import json
import pathlib

import numpy as np
import tensorflow as tf

from bert.io.record_files import write_records
from bert.model import heads
from bert.model.variables import use_store
from bert.modeling import BertModel
from tests.kit import tiny_bert

VOCAB_SIZE = 40

CONFIG = tiny_bert.config(VOCAB_SIZE, type_vocab_size=2)

MASKED = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")


def make_records(
  count, seq_length=16, predictions=3, seed=0, masked_each=None, longest=None
) -> list[dict]:
  """Sequences of different lengths, padded; some have fewer masked words than there is room for.

  Both answers are there to be learned: a word follows from its position, the label from the second
  piece.
  """
  rng = np.random.default_rng(seed)
  made = []
  for i in range(count):
    length = int(rng.integers(8, (longest or seq_length - 2) + 1))
    masked = masked_each or int(rng.integers(1, predictions + 1))
    positions = np.sort(rng.choice(np.arange(2, length), masked, replace=False))
    ids = rng.integers(10, VOCAB_SIZE, seq_length)
    ids[:2] = [2, 5 + i % 2]
    ids[positions] = 4
    mask = np.arange(seq_length) < length

    def padded(values):
      return np.pad(values, (0, predictions - len(values)))

    made.append(
      {
        "input_ids": ids * mask,
        "input_mask": mask.astype(int),
        "segment_ids": mask * (np.arange(seq_length) > length // 2),
        "masked_lm_positions": padded(positions),
        "masked_lm_ids": padded(10 + positions),
        "masked_lm_weights": padded(np.ones(masked)),
        "next_sentence_labels": [i % 2],
      }
    )
  return made


def write_with_facts(path, records, /, **facts):
  """Records with more facts in the manifest beside them."""
  write_records(path, records)
  manifest = path.parent / f".{path.name}.manifest.json"
  manifest.write_text(json.dumps({**json.loads(manifest.read_text()), **facts}))


def write_vocabulary(path):
  tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
  tokens += [f"word{i}" for i in range(VOCAB_SIZE - len(tokens))]
  path.write_text("".join(f"{token}\n" for token in tokens))
  return path


def make_unmasked(count, word_starts=False, **options):
  """Each word follows from its position, and the second half of them are pieces."""
  made = []
  for record in make_records(count, **options):
    length = sum(record["input_mask"])
    ids = np.where(np.arange(16) < length, 10 + np.arange(16), 0)
    ids[:2] = record["input_ids"][:2]
    ids[length - 1] = 3
    record = {name: record[name] for name in ("input_mask", "segment_ids", "next_sentence_labels")}
    record["input_ids"] = ids
    if word_starts:
      record["word_starts"] = (np.arange(16) < length) * (np.arange(16) % 2)
    made.append(record)
  return made


def flags_of_model(folder: pathlib.Path) -> dict:
  """Writes a tiny model's configuration and records; the flags that every run shares."""
  (folder / "bert_config.json").write_text(json.dumps(CONFIG))
  write_records(folder / "train.tfrecord", make_records(22))
  return {
    "input_file": folder / "train.tfrecord",
    "bert_config_file": folder / "bert_config.json",
    "max_seq_length": 16,
    "max_predictions_per_seq": 3,
    "train_batch_size": 8,
    "learning_rate": 0.01,
    "num_train_steps": 3,  # A test that wants more says so; one that fails should not take hours.
    "num_warmup_steps": 2,
  }


def batch_of(records) -> dict[str, tf.Tensor]:
  columns = {name: np.array([record[name] for record in records]) for name in records[0]}
  return {
    name: tf.constant(value, tf.float32 if name == "masked_lm_weights" else tf.int32)
    for name, value in columns.items()
  }


def forward(config, store, batch):
  """Losses and log-probabilities of both heads, without dropout and with all padding computed."""
  with use_store(store):
    model = BertModel(config, False, batch["input_ids"], batch["input_mask"], batch["segment_ids"])
    return outputs_of_heads(config, model, batch)


def outputs_of_heads(config, model, batch):
  """What each head gives: its loss, the losses of the examples, and log-probabilities."""
  masked = heads.get_masked_lm_output(
    config,
    model.get_sequence_output(),
    model.get_embedding_table(),
    *(batch[name] for name in MASKED),
  )
  following = heads.get_next_sentence_output(
    config, model.get_pooled_output(), batch["next_sentence_labels"]
  )
  return masked, following
