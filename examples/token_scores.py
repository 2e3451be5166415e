"""A custom task: a number for each word, such as how much a reader stresses it.

  python examples/token_scores.py --data_dir=stress --init_checkpoint=uncased_L-12_H-768_A-12 \\
    --do_train --do_eval --do_predict --output_dir=output/stress

train, dev and test.jsonl have the words of a sentence and, but for the test file, their scores:

  {"words": ["Never", "say", "never"], "scores": [1.8, 0.2, 2.5]}

The first token of a word stands for it, as in Talman et al. 2019, arXiv:1908.02262.

Letters in shapes: B = batch size, S = sequence length.
"""

import collections
import math

from bert import fine_tuning

Example = collections.namedtuple("Example", "words scores source")


class ScoreHead(fine_tuning.Head):
  """A number for each token."""

  per_token = True

  def outputs(self, batch):
    from bert.model import heads

    vectors = batch.bert().get_sequence_output()  # [B, S, W]
    return {"scores": heads.get_token_logits(vectors, 1, batch.is_training)[..., 0]}

  def loss(self, batch, outputs):
    import tensorflow as tf

    labels = batch.features["label_ids"]  # [B, S], not a number where no word begins
    is_word = tf.math.is_finite(labels)
    errors = tf.where(is_word, outputs["scores"] - labels, 0.0)
    counts = tf.reduce_sum(tf.cast(is_word, tf.float32), axis=1)
    losses = tf.math.divide_no_nan(tf.reduce_sum(tf.square(errors), axis=1), counts)
    return tf.reduce_mean(losses), losses  # of the batch, and of each sentence


@fine_tuning.register
class TokenScores(fine_tuning.Task):
  name = "token_scores"
  head_class = ScoreHead
  answer = "scores"
  headline = "eval_pearson"
  problem_type = "regression"

  def read(self, split):
    return self.read_table(split, ["words", "scores"], _example_of_row, labels=["scores"])

  def record_spec(self, data):
    return {**super().record_spec(data), "label_ids": ([fine_tuning.LENGTH], "float32")}

  def encode(self, example):  # the score of a word is at its first token
    record, places = self.sequence_of_words(example.words)
    labels = [math.nan] * self.length
    for place, score in zip(places, example.scores or [], strict=False):
      labels[place] = score
    return {**record, "label_ids": labels}

  def metrics(self, outputs, labels):
    """Computes Pearson's correlation over all words."""
    import numpy as np

    is_word = np.isfinite(labels)
    return {"pearson": float(np.corrcoef(outputs[is_word], labels[is_word])[0, 1])}

  def decode(self, outputs, tokens):
    """Gives each word the score of its first token; [CLS] and [SEP] have none."""
    words, scores = [], []
    for token, score in zip(tokens[1:-1], outputs["scores"][1:-1], strict=True):
      if token.startswith("##"):
        words[-1] += token.removeprefix("##")
      else:
        words.append(token)
        scores.append(float(score))
    return {"words": words, "scores": scores}

  def view(self, example):
    return {"text_a": " ".join(example.words)}, example.scores


def _example_of_row(row):
  words, scores = row["words"], row["scores"]
  if not isinstance(words, list) or not all(isinstance(word, str) for word in words):
    raise row.error("words is no list of words.")
  numbers = [isinstance(score, int | float) for score in scores or []]
  if scores is not None and numbers != [True] * len(words):
    raise row.error("scores is no list of numbers, one for each word.")
  return Example(words, scores, row.source)


if __name__ == "__main__":
  fine_tuning.main(TokenScores)
