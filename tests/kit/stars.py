"""A task of one's own: the stars of a review, one text and a number from 1 to 5.

python stars.py --data_dir=reviews --do_train --do_eval --init_checkpoint=... --output_dir=...
"""

import dataclasses

from bert.fine_tuning.engine import main, register
from bert.fine_tuning.task import Task
from bert.io.tables import DataError
from bert.model.task_head import Head
from bert.scripts import result_files
from bert.tasks import classification, user_tables


@dataclasses.dataclass(frozen=True)
class StarsHead(Head):
  """A number of each text."""

  middle: float = 3.0

  def outputs(self, batch):
    from bert.model import heads

    vectors = batch.bert(only_pooled_output=True).get_pooled_output()
    return {"logits": self.middle + heads.get_classifier_logits(vectors, 1, batch.is_training)}

  def loss(self, batch, outputs):
    import tensorflow as tf

    losses = tf.square(outputs["logits"][:, 0] - batch.features["label_ids"])
    return tf.reduce_mean(losses), losses

  def predictions(self, batch, outputs):
    return {"stars": outputs["logits"][:, 0]}


@register
class Stars(Task):
  """Texts and their stars."""

  name = "stars"
  head_class = StarsHead
  headline = "eval_mae"
  result_keys = ("eval_mae", "eval_loss", "global_step", "loss")
  problem_type = "regression"

  def read(self, split):
    reader = user_tables.CsvProcessor(str(self.settings.data_dir), problem_type="regression")
    examples = getattr(reader, f"get_{split}_examples")(str(self.settings.data_dir))
    for each in examples if split != "test" else ():
      if not 1 <= each.label <= 5:
        raise DataError(f"{each.source}: {each.label:g} is no number of stars, from 1 to 5.")
    return examples

  def record_spec(self, data):
    return {**super().record_spec(data), "label_ids": ([], "float32")}

  def records(self, data, num_shown):
    for index, each in enumerate(data.examples):
      feature = classification.convert_single_example(
        index, each, (), self.length, self.tokenizer, "regression", num_shown
      )
      yield {n: getattr(feature, n, feature.label_id) for n in self.record_spec(data)}

  def head(self):
    return StarsHead()

  def metrics(self, logits, label_ids, losses):
    away = abs(logits[:, 0] - label_ids).mean()
    return {"eval_mae": float(away), "eval_loss": float(losses.mean())}

  def collect(self, predictions, data):
    return [[each["stars"]] for each in predictions]

  def score(self, data, outputs):
    away = [abs(row[0] - each.label) for row, each in zip(outputs, data.examples, strict=True)]
    return {"eval_mae": float(sum(away) / len(away))}

  def write_predictions(self, data, outputs):
    folder, guids = self.settings.output_dir, [each.guid for each in data.examples]
    result_files.write_predictions(folder, "", guids, outputs, ["stars"], "regression")


if __name__ == "__main__":
  main(Stars)
