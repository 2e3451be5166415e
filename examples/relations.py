"""A custom task: the relation between two entities that are marked in a sentence.

  python examples/relations.py --data_dir=relations --init_checkpoint=uncased_L-12_H-768_A-12 \\
    --do_train --do_eval --do_predict --output_dir=output/relations

train, dev and test, .tsv, .csv or .jsonl, have the columns `text` and `label`:

  The <e1>author</e1> of a keygen uses a <e2>disassembler</e2>.     Instrument-Agency

The tags, SemEval-2010 task 8's, become the words @ and #, which vocabularies have. The head reads
the vectors of the first @ and the first # (Zhou and Chen 2021, arXiv:2102.01373).

Letters in shapes: B = batch size, S = sequence length, W = hidden size, C = relations.
"""

import collections
import dataclasses
import re
from collections.abc import Sequence

from bert import fine_tuning

Example = collections.namedtuple("Example", "text_a label source")
MARKERS = ("@", "#")


@dataclasses.dataclass(frozen=True)
class RelationHead(fine_tuning.Head):
  """A relation of two entities. `marker_ids` are those of the words before them."""

  labels: Sequence[str]
  marker_ids: Sequence[int]

  def outputs(self, batch):
    """Computes `logits`, `[B, C]`, of the vectors of both markers."""
    import tensorflow as tf

    from bert.model import heads

    vectors = batch.bert().get_sequence_output()  # [B, S, W]
    found = []
    for marker_id in self.marker_ids:
      is_marker = tf.cast(tf.equal(batch.features["input_ids"], marker_id), tf.int32)
      found.append(tf.gather(vectors, tf.argmax(is_marker, axis=1), batch_dims=1))  # [B, W]
    entities = tf.concat(found, axis=1)  # [B, 2 * W]
    return {"logits": heads.get_classifier_logits(entities, len(self.labels), batch.is_training)}

  def loss(self, batch, outputs):
    from bert.model import heads

    scores, labels = outputs["logits"], batch.features["label_ids"]
    return heads.get_classifier_loss(scores, labels, "classification")[:2]


@fine_tuning.register
class Relations(fine_tuning.Task):
  name = "relations"
  head_class = RelationHead
  has_labels = True

  def read(self, split):
    return self.read_table(split, ["text", "label"], _example_of_row)

  def encode(self, example):
    record = self.sequence(example.text_a)
    if not set(self.head().marker_ids) <= set(record["input_ids"]):
      raise fine_tuning.DataError(f"{example.source}: an entity is past --max_seq_length.")
    return {**record, "label_ids": self.label_id(example)}

  def head(self):
    return RelationHead(self.labels, self.tokenizer.convert_tokens_to_ids(list(MARKERS)))

  def decode(self, outputs, tokens):
    probabilities = outputs["probabilities"]
    return {"relation": self.labels[probabilities.argmax()], "probabilities": probabilities}

  def metrics(self, outputs, labels):
    return {"accuracy": float((outputs.argmax(axis=1) == labels).mean())}


def _example_of_row(row):
  text = re.sub("[@#]", " ", row.text("text"))
  for number, marker in enumerate(MARKERS, start=1):
    text, count = re.subn(f"</?e{number}>", f" {marker} ", text)
    if count != 2:
      raise row.error(f"it has {count} tags of entity {number}: give <e{number}> and </e{number}>.")
  return Example(text, row["label"], row.source)


if __name__ == "__main__":
  fine_tuning.main(Relations)
