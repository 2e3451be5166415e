"""SQuAD: the answers of several runs together.

  answers = mean_answers(["out/seed_1", "out/seed_2"], examples, n_best_size=20)

Runs keep what they answered in `nbest_predictions.json`. Pure Python, no TensorFlow.
"""

import collections
import math
import os
from collections.abc import Mapping, Sequence
from typing import Any

from bert.io import json_files
from bert.tasks.squad_answers import (
  NO_ANSWER_ODDS,
  Answer,
  QuestionAnswers,
  is_null,
  with_threshold,
)

_NO_PROBABILITY = 5e-324  # in the place of a probability that is too small for a float


def mean_answers(
  folders: Sequence[str], examples: Sequence, **options: Any
) -> list[QuestionAnswers]:
  """Averages the answers of runs, see `averaged_answers`; a ValueError if one has not answered."""
  ids = [example.qas_id for example in examples]
  runs = [_answers_in(folder, "nbest_predictions.json", ids) for folder in folders]
  if options.get("version_2_with_negative") and options.get("null_rule", "bert") != "bert":
    options["null_odds"] = [_answers_in(folder, "null_odds.json", ids) for folder in folders]
  return averaged_answers(examples, runs, **options)


def _answers_in(folder: str, name: str, ids: Sequence[str]) -> dict[str, Any]:
  """The content of a file of answers, id -> value; a ValueError if these are of other questions."""
  path = os.path.join(folder, name)
  if not os.path.isfile(path):
    raise ValueError(f"{path} does not exist: run {folder} once more, with --do_predict.")
  answers = json_files.read_object(path, "Remove it.")
  if list(answers) != ids:
    raise ValueError(
      f"{path} has other questions than those that are read now: the data have changed since "
      "that run. Restore them, or repeat the run."
    )
  return answers


def averaged_answers(
  examples: Sequence,
  runs: Sequence[Mapping[str, Sequence[Mapping[str, Any]]]],
  *,
  n_best_size: int,
  version_2_with_negative: bool = False,
  null_score_diff_threshold: float | None = 0.0,
  null_rule: str = "bert",
  null_odds: Sequence[Mapping[str, float]] | None = None,
) -> list[QuestionAnswers]:
  """Returns the answers of several models together: each text has the mean of its probabilities.

  The probabilities are those of each model's n-best answers; a text that is not among them has
  none. Texts count as they are written. In 2.0 the null odds are the logarithm of the probability
  of no answer over that of the best answer, which for one model is the original's difference. The
  other arguments are those of `squad_answers.write_predictions` and, `null_rule`, `find_answers`.

  Args:
    runs: of each model, id -> its answers, as in `nbest_predictions.json`.
    null_odds: of each model, id -> its null odds, whose mean then counts, as in ALBERT.

  Returns:
    The answers to each question; both logits of an answer are half the logarithm of its
    probability, so that their sum is its score. Where an answer is in the context is not known.
  """
  all_answers = []
  for example in examples:
    answers = _averaged(
      example,
      [run[example.qas_id] for run in runs],
      n_best_size,
      version_2_with_negative,
      null_score_diff_threshold,
    )
    if version_2_with_negative and null_odds:
      answers.null_odds = sum(odds[example.qas_id] for odds in null_odds) / len(null_odds)
      answers = with_threshold(answers, null_score_diff_threshold, null_rule)
    all_answers.append(answers)
  return all_answers


def _averaged(example, runs, n_best_size, is_v2, threshold) -> QuestionAnswers:
  sums: dict[str, float] = collections.defaultdict(float)
  for answers in runs:
    for answer in answers:
      sums[answer["text"]] += answer["probability"] / len(runs)
  # Stable: of equal sums, the one that the first model ranks higher stays first.
  texts = sorted(sums, key=lambda text: -sums[text])
  kept = texts[:n_best_size]
  if is_v2:  # Both sides of the null odds, whatever their rank.
    best_text = next(filter(None, texts), "")
    kept += [text for text in (best_text, "") if text in sums and text not in kept]
  halves = [math.log(sums[text] or _NO_PROBABILITY) / 2 for text in kept]
  nbest = [Answer(text, half, half) for text, half in zip(kept, halves, strict=True)]
  total = sum(sums[text] for text in kept)
  probabilities = [sums[text] / total for text in kept]
  best = next((answer for answer in nbest if answer.text), None)
  prediction, null_odds = nbest[0], None
  if is_v2:
    null = next((answer for answer in nbest if not answer.text), Answer("", 0.0, 0.0))
    null_odds = null.score - best.score if best is not None else NO_ANSWER_ODDS
    has_answer = best is not None and not is_null(null_odds, threshold, "bert")
    prediction = best if has_answer else null
  return QuestionAnswers(example, nbest, probabilities, best, null_odds, prediction)
