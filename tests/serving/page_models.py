"""Models for the server's page: one of each display, whose scores are chosen and not computed.

By hand: python -m tests.serving.page_models [PORT]
"""

import sys

import numpy as np

from bert.serving import app, http_server
from bert.serving.metrics import Metrics
from bert.serving.service import Settings
from tests.serving import fake_models
from tests.serving.fake_models import FakeModels, task

TOPICS = (
  *("weather", "aviation", "sport", "politics", "health", "music", "science", "travel", "food"),
  *("business", "law", "education", "fashion", "gardening"),
)
_TAGS = ["O", "B-PER", "I-PER", "B-LOC"]
_OF_WORDS = ("B-PER", "I-PER", "O", "B-PER", "I-PER", "O", "B-LOC")  # of a window


def models() -> FakeModels:
  """The models by name."""
  topics = {"task_name": "csv", "labels": list(TOPICS), "problem_type": "multi_label"}
  scores = np.array([2.6, 1.2, *np.linspace(-0.4, -6, len(TOPICS) - 2)], np.float32)
  return FakeModels(
    {
      "paraphrases": _constant(["not_equivalent", "equivalent"], "classification", [0.0, 2.1]),
      "topics": task(topics, lambda row: {"logits": scores}),
      "stars": _constant([], "regression", [4.3217]),
      "names": task({"task_name": "ner", "labels": _TAGS}, _tag_scores),
      "reader": task({"task_name": "squad", "version_2_with_negative": True}, _span_scores),
      "ends": fake_models.chooser(),
      "encoder": fake_models.encoder(),
    }
  )


def _constant(labels, problem_type, logits):
  facts = {"task_name": "mrpc", "labels": labels, "problem_type": problem_type}
  return task(facts, lambda row: {"logits": np.array(logits, np.float32)})


def _tag_scores(row):
  scores = np.zeros([len(row["input_ids"]), len(_TAGS)], np.float32)
  for place, tag in zip(row["places"], _OF_WORDS, strict=False):
    scores[place, _TAGS.index(tag)] = 5.0
  return {"logits": scores}


def _span_scores(row):
  """Finds the first two words of the text."""
  start, end = (np.zeros(len(row["input_ids"]), np.float32) for _ in range(2))
  words = row["window"].token_to_orig_map  # place of a token -> number of its word
  places = [place for place, word in words.items() if word < 2]
  if places:  # a later window has none of them
    start[min(places)] = end[max(places)] = 7.0
  return {"start_logits": start, "end_logits": end}


if __name__ == "__main__":
  with http_server.open_port("127.0.0.1", int(sys.argv[1]) if len(sys.argv) > 1 else 8080) as taken:
    http_server.run(http_server.make(app.create(models(), Settings(), Metrics()), 5), taken)
