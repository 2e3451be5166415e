"""A task of one's own: the stars of a review, one text or two and a number from 1 to 5."""

import collections
import dataclasses

from bert import fine_tuning

Review = collections.namedtuple("Review", "id text_a text_b stars")


@dataclasses.dataclass(frozen=True)
class StarsHead(fine_tuning.Head):
  """A number of each text."""

  middle: float = 3.0

  def outputs(self, batch):
    from bert.model import heads

    vectors = batch.bert(only_pooled_output=True).get_pooled_output()
    logits = heads.get_classifier_logits(vectors, 1, batch.is_training)
    return {"stars": self.middle + logits[:, 0]}

  def loss(self, batch, outputs):
    import tensorflow as tf

    losses = tf.square(outputs["stars"] - batch.features["label_ids"])
    return tf.reduce_mean(losses), losses


@fine_tuning.register
class Stars(fine_tuning.Task):
  """Texts and their stars."""

  name = "stars"
  head_class = StarsHead
  answer = "stars"
  headline = "eval_close"
  reported = ("eval_mae",)
  problem_type = "regression"

  def read(self, split):
    columns = ["id", "text_a", "text_b", "stars"]
    return self.read_table(split, columns, _review, labels=["stars"])

  def record_spec(self, data):
    return {**super().record_spec(data), "label_ids": ([], "float32")}

  def encode(self, example):
    sequence = self.sequence(example.text_a, example.text_b)
    return {**sequence, "label_ids": example.stars or 0.0}

  def view(self, example):
    return {"text_a": example.text_a, "text_b": example.text_b}, example.stars

  def metrics(self, outputs, labels):
    away = abs(outputs - labels)
    return {"close": float((away < 0.5).mean()), "mae": float(away.mean())}


def _review(row):
  stars = row["stars"]
  if stars is not None:
    stars = float(stars) if stars.isdecimal() else 0.0
    if not 1 <= stars <= 5:
      raise row.error(f"{row['stars']} is no number of stars, from 1 to 5.")
  return Review(row["id"], row.text("text_a"), row["text_b"], stars)


if __name__ == "__main__":
  fine_tuning.main(Stars)
