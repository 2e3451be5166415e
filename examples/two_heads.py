"""A custom task with two heads: the class of a text, and a score.

  python examples/two_heads.py --data_dir=reviews --init_checkpoint=DIR --do_train --do_eval

train, dev and test, .tsv, .csv or .jsonl, have the columns `text`, `label` and `score`, a number.
Letters in shapes: B = batch size, N = examples, W = hidden size, C = classes.
"""

import collections
import dataclasses
from collections.abc import Sequence

from bert import fine_tuning

Example = collections.namedtuple("Example", "text_a label score source")


@dataclasses.dataclass(frozen=True)
class TwoHeads(fine_tuning.Head):
  labels: Sequence[str]

  def outputs(self, batch):
    import tensorflow as tf

    from bert.model import heads, variables

    vectors = batch.bert().get_pooled_output()  # [B, W]
    logits = heads.get_classifier_logits(vectors, len(self.labels), batch.is_training)
    with variables.variable_scope("score"):  # score/output_weights, score/output_bias
      score = heads.get_classifier_logits(vectors, 1, batch.is_training)  # [B, 1]
    return {"classes": logits, "both": tf.concat([tf.nn.softmax(logits), score], axis=1)}

  def loss(self, batch, outputs):
    import tensorflow as tf

    labels, scores = tf.unstack(batch.features["label_ids"], axis=1)  # [B] each
    right = tf.one_hot(tf.cast(labels, tf.int32), len(self.labels))
    losses = tf.nn.softmax_cross_entropy_with_logits(right, outputs["classes"])
    losses += tf.square(outputs["both"][:, -1] - scores)  # weigh the heads here
    return tf.reduce_mean(losses), losses


@fine_tuning.register
class ClassesAndScores(fine_tuning.Task):
  name, head_class, answer = "class_and_score", TwoHeads, "both"
  has_labels, reported = True, ("eval_mae",)

  def read(self, split):
    return self.read_table(split, ["text", "label", "score"], _example_of, ["label", "score"])

  def record_spec(self, data):
    return {**super().record_spec(data), "label_ids": ([2], "float32")}

  def encode(self, example):
    labels = [float(self.label_id(example)), float(example.score or 0)]
    return {**self.sequence(example.text_a), "label_ids": labels}

  def head(self):
    return TwoHeads(self.labels)

  def metrics(self, outputs, labels):  # [N, C + 1], [N, 2]
    right, away = outputs[:, :-1].argmax(1) == labels[:, 0], abs(outputs[:, -1] - labels[:, 1])
    return {"accuracy": float(right.mean()), "mae": float(away.mean())}

  def decode(self, outputs, tokens):
    both = outputs["both"]
    return {"label": self.labels[both[:-1].argmax()], "score": float(both[-1])}


def _example_of(row):
  if not str(row["score"] or 0).replace(".", "", 1).isdecimal():
    raise row.error(f"the score {row['score']!r} is not a number of at least 0.")
  return Example(row.text("text"), row["label"], row["score"], row.source)


if __name__ == "__main__":
  fine_tuning.main(ClassesAndScores)
