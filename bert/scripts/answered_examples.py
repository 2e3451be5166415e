"""The labelled set of a run, answered by its model: the examples of a report.

At the end of a run they cost at most a twentieth of its operations, or what takes about three
seconds on two cores, so that a short evaluation of a large model is not made twice. Operations are
estimated, so that the same examples are answered on any machine.
"""

import collections
import random
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from absl import logging

from bert.io import vocabulary_kind
from bert.io.wording import in_one_message
from bert.model.configuration import BertConfig
from bert.model.task_head import Head
from bert.predicting import load_run
from bert.predicting.contributions import Contributions
from bert.predicting.predictor import Predictor
from bert.predicting.processors import AnswerProcessor
from bert.reports import statistics, words
from bert.reports.subject import Examples
from bert.scripts import command_line, trained_task
from bert.tasks import shown as shown_module
from bert.tasks.answering import Answering, Row, Scores
from bert.tasks.shown import Shown

_CHUNK = 1024  # rows that are sorted by length together
_EXPLAINED_WORST, _EXPLAINED_TYPICAL = 10, 3
# Operations: for contributions, some ten seconds on two cores; for all that a run may always do.
_MOST_FLOPS, _FREE_FLOPS = 2e12, 3e11
_SHARE_OF_RUN = 0.05
# What it takes to load and compile a layer of the model, and one of its gradients, in operations.
_FLOPS_OF_LAYER, _FLOPS_OF_GRADIENT = 2e10, 4e10
_FEWEST = 20  # of fewer examples a report would say nothing
_MEASURED = 20  # examples by whose lengths operations are estimated


class Budget(NamedTuple):
  """What may be answered.

  Attributes:
    max_examples: of a larger set, a random sample of N examples is taken.
    run_passes: examples that the run computed, forward or backward, by which the operations are
      limited; None for no limit.
    is_explained: whether it is computed what words contributed to some answers.
  """

  max_examples: int = 2000
  run_passes: int | None = None
  is_explained: bool = True


class TooLongError(ValueError):
  """To answer examples would take too large a part of the run's time."""


class Answered(NamedTuple):
  """An answer, and what it was made of."""

  answer: Mapping[str, Any]
  rows: Sequence[Row]
  scores: Sequence[Scores]


class _Remembering(AnswerProcessor):
  """Passes on the rows of an item and their scores, too."""

  def finish(self, rows, outputs):
    """See `Processor`."""
    scores = self.own_outputs(rows, outputs)
    return Answered(self.answering.answer(rows.item, rows, scores), list(rows), scores)


def examples_of(
  task: Any,
  run: load_run.Run,
  answering: Answering,
  head: Head,
  budget: Budget,
  batch_size: int,
) -> Examples:
  """Answers the labelled set of a task, or a sample of it.

  Args:
    task: of the run, ready to read its data.
    run: the model.
    answering: of the run.
    head: of the run.
    budget: what may be answered.
    batch_size: sequences in a batch.

  Raises:
    TooLongError: the budget is not enough.
  """
  from bert.predicting.engines.tensorflow import load_checkpoint

  data = task.data_sets(task.scored_split)[0]
  count, most_flops = _planned(task, run, answering, data, budget)
  places = sample(len(data.examples), count)
  examples = [data.examples[n] for n in places]
  items = trained_task.items_of(task, examples)
  # As the run evaluated: in bfloat16 an answer that is a close call may be another one.
  dtype = task.settings.get("dtype") or "float32"
  engine = load_checkpoint(run.prefix, run.config, head, dtype)
  found = Predictor.of_halves(_Remembering(answering), engine, batch_size, _CHUNK)(items)
  answers = [each.answer for each in found]
  shown = task.shown(answering)
  gold = [task.gold(example) for example in examples]
  cases = [shown.case(*three) for three in zip(items, gold, answers, strict=True)]
  shown_module.drop_unused(cases)
  is_whole = len(places) == len(data.examples)
  why = "the report has none of its own"
  return Examples(
    shown,
    gold,
    cases,
    numbers=[n + 1 for n in places],
    lengths=[max((len(row["input_ids"]) for row in each.rows), default=0) for each in found],
    unknown=list(_unknown_shares(answering, found)),
    total=len(data.examples),
    source=data.split + data.suffix,
    scores=trained_task.scores_of(task, data, answers, why) if is_whole else {},
    contributions=_explained(
      Contributions(run.prefix, run.config, head),
      answering,
      {n: (items[n], found[n]) for n in _to_explain(cases) if most_flops},
      most_flops,
    ),
    label_counts=_label_counts(shown, [task.gold(example) for example in data.examples]),
  )


def affordable(config: BertConfig, tokens: float, run_passes: int | None) -> int:
  """Returns how many examples may be answered; 0 where it is not worth loading the model.

  Args:
    config: of the model.
    tokens: of an example.
    run_passes: see `Budget`.
  """
  if run_passes is None:
    return sys.maxsize
  of_one = max(_flops(config, tokens), 1.0)
  possible = int(_left(config, of_one, run_passes) / of_one)
  return possible if possible >= _FEWEST else 0


def _flops(config: BertConfig, tokens: float) -> float:
  """Returns the operations of the products with weights: two for each, in all layers."""
  width, inner = config.hidden_size, config.intermediate_size
  return config.num_hidden_layers * tokens * (8.0 * width**2 + 4.0 * width * inner)


def _left(config: BertConfig, of_one: float, run_passes: int) -> float:
  """Returns the operations that are left to answer, once the model is loaded."""
  allowed = max(_FREE_FLOPS, _SHARE_OF_RUN * run_passes * of_one)
  return allowed - config.num_hidden_layers * _FLOPS_OF_LAYER


def _planned(
  task: Any, run: load_run.Run, answering: Answering, data: Any, budget: Budget
) -> tuple[int, float]:
  """Returns how many examples are answered, and the operations left to explain some."""
  most_flops = _MOST_FLOPS if budget.is_explained else 0.0
  count = min(len(data.examples), budget.max_examples)
  if budget.run_passes is None or not count:
    return count, most_flops
  some = trained_task.items_of(task, data.examples[:_MEASURED])
  rows = [row for item in some for row in answering.rows(item)]
  tokens = sum(len(row["input_ids"]) for row in rows) / len(some)
  count = min(count, affordable(run.config, tokens, budget.run_passes))
  if not count:
    raise TooLongError("to answer them would take a large part of this run's time.")
  of_one = _flops(run.config, tokens)
  left = _left(run.config, of_one, budget.run_passes) - count * of_one
  left -= run.config.num_hidden_layers * _FLOPS_OF_GRADIENT
  return count, max(0.0, min(most_flops, left))


def _label_counts(shown: Shown, gold: Sequence[Any]) -> dict[str, int]:
  """Counts the examples of each class; empty where a case is grouped by something else."""
  counts = collections.Counter(str(each) for each in gold if each is not None)
  is_grouped = shown.classes and shown.group_name == "label"
  return {name: counts[name] for name in shown.classes} if is_grouped and counts else {}


def sample(total: int, most: int) -> list[int]:
  """Chooses examples, the same each time, in their order.

  Example:
    >>> sample(3, 5), len(sample(100, 5))
    ([0, 1, 2], 5)
  """
  if total <= most:
    return list(range(total))
  return sorted(random.Random(12345).sample(range(total), most))


def _unknown_shares(answering: Answering, found: Sequence[Answered]) -> Iterator[float]:
  """Yields the share of unknown tokens of each example."""
  vocab = answering.tokenizer.vocab
  unknown = vocab.get(vocabulary_kind.unknown_token(vocab), -1)
  for each in found:
    yield float(np.mean([i == unknown for row in each.rows for i in row["input_ids"]] or [0]))


# ---------------------------------------------------------------------------------------------
# What words contributed.


def _to_explain(cases: Sequence[Any]) -> list[int]:
  """Chooses the most wrong examples, and some that are neither good nor bad."""
  worst = statistics.most_wrong(cases)[:_EXPLAINED_WORST]
  return [*worst, *(n for n in statistics.typical(cases, _EXPLAINED_TYPICAL) if n not in worst)]


def _explained(
  contributions: Contributions,
  answering: Answering,
  chosen: Mapping[int, tuple[Any, Answered]],
  most_flops: float,
) -> dict[int, words.Contribution]:
  """Explains as many answers as the budget allows; none, and a warning, where that fails."""
  asked, spent = {}, 0.0
  try:
    for n, (item, each) in chosen.items():
      explained = answering.explained(item, each.rows, each.answer, each.scores)
      if explained is None:
        continue
      rows = [each.rows[k] for k in explained.rows or range(len(each.rows))]
      spent += contributions.flops(rows)
      if spent > most_flops and (asked or most_flops < _MOST_FLOPS):
        break
      asked[n] = (explained, rows)
    if not asked:
      return {}
    every_row = [row for _, rows in asked.values() for row in rows]
    weights = [each for explained, _ in asked.values() for each in explained.weights]
    shares = iter(contributions(every_row, weights))
    return {
      n: words.Contribution(explained.what, [_words(answering, row, next(shares)) for row in rows])
      for n, (explained, rows) in asked.items()
    }
  except Exception as error:
    # Methods of a user's own task and head among them; the rest of the report needs none of it.
    why, log = in_one_message(error), command_line.log_traceback(error)
    logging.warning("The report does not say what words contributed: %s%s", why, log)
    return {}


def _words(answering: Answering, row: Row, shares: np.ndarray) -> list[words.Word]:
  """Joins the tokens of a row, without padding, to words with their shares."""
  count = int(np.sum(row["input_mask"]))
  tokens = [answering.tokenizer.inv_vocab.get(i, "?") for i in row["input_ids"][:count]]
  return words.words_of(answering.tokenizer, tokens, shares[:count])
