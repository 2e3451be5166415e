"""The labelled set of a run, answered by its model: the examples of a report.

At the end of a run they are made of what its evaluation has computed: the model is not loaded once
more. What words contributed has to be computed; then that is a small part of the run's own work.
"""

import collections
import random
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from absl import logging

from bert.io import vocabulary_kind
from bert.io.wording import in_one_message
from bert.model.task_head import Head
from bert.predicting import load_run
from bert.predicting.contributions import Contributions
from bert.predicting.known_rows import KnownRows
from bert.predicting.predictor import Predictor
from bert.predicting.processors import AnswerProcessor
from bert.reports import statistics, words
from bert.reports.subject import Examples
from bert.scripts import command_line, trained_task
from bert.tasks import shown as shown_module
from bert.tasks.decoding import Decoder, Row, Scores
from bert.tasks.shown import Shown

_EXPLAINED_WORST, _EXPLAINED_TYPICAL = 10, 3
_MOST_FLOPS = 2e12  # for contributions: some ten seconds on two cores
_SHARE_OF_RUN = 0.05  # of what it computed, for contributions


class Budget(NamedTuple):
  """What may be answered.

  Attributes:
    max_examples: of a larger set, a random sample of N examples is taken.
    is_explained: whether it is computed what words contributed to some answers.
    run_passes: examples that the run computed, forward or backward, which limit that; None for no
      limit.
    known_rows: what the run has computed, of which alone answers are made; None to compute them.
  """

  max_examples: int = 2000
  is_explained: bool = True
  run_passes: int | None = None
  known_rows: KnownRows | None = None


class NotKnownError(ValueError):
  """Of no example it is known what the model gives for it."""


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
    return Answered(self.decoder.decode(rows.item, rows, scores), list(rows), scores)


def examples_of(
  task: Any,
  run: load_run.Run,
  decoder: Decoder,
  head: Head,
  budget: Budget,
  batch_size: int,
) -> Examples:
  """Answers the labelled set of a task, or a sample of it.

  Args:
    task: of the run, ready to read its data.
    run: the model.
    decoder: of the run.
    head: of the run.
    budget: what may be answered.
    batch_size: sequences in a batch.

  Raises:
    NotKnownError: there is nothing in `budget.known_rows` of which an answer could be made.
  """
  data = trained_task.labelled_set(task)
  places = sample(len(data.examples), budget.max_examples)
  items = trained_task.items_of(task, [data.examples[n] for n in places])
  if budget.known_rows is None:
    from bert.predicting.engines.tensorflow import load_checkpoint

    # As the run evaluated: in bfloat16 an answer that is a close call may be another one.
    dtype = task.settings.get("dtype") or "float32"
    engine = load_checkpoint(run.prefix, run.config, head, dtype)
    found = Predictor(_Remembering(decoder), engine, batch_size)(items)
  else:
    known = list(_made_of(budget.known_rows, decoder, items))
    if not any(known):
      raise NotKnownError("the run has not evaluated their sequences one by one.")
    places = [n for n, each in zip(places, known, strict=True) if each]
    items = [item for item, each in zip(items, known, strict=True) if each]
    found = [each for each in known if each]
  examples = [data.examples[n] for n in places]
  answers = [each.answer for each in found]
  shown = decoder.shown()
  gold = [task.view(example)[1] for example in examples]
  cases = [shown.case(*three) for three in zip(items, gold, answers, strict=True)]
  shown_module.drop_unused(cases)
  is_whole = len(places) == len(data.examples)
  explain = Contributions(run.prefix, run.config, head)
  why = "the report has none of its own"
  return Examples(
    shown,
    gold,
    cases,
    numbers=[n + 1 for n in places],
    lengths=[max((len(row["input_ids"]) for row in each.rows), default=0) for each in found],
    unknown=list(_unknown_shares(decoder, found)),
    total=len(data.examples),
    source=data.split + data.suffix,
    scores=trained_task.scores_of(task, data, answers, why) if is_whole else {},
    contributions=_explained(
      explain,
      decoder,
      {n: (items[n], found[n]) for n in _to_explain(cases)[: _num_explained(explain, budget)]},
    ),
    label_counts=_label_counts(shown, [task.view(example)[1] for example in data.examples]),
  )


def _made_of(known: KnownRows, decoder: Decoder, items: Sequence[Any]) -> Iterator[Answered | None]:
  """Yields the answer to each item; None where a row of it is not known."""
  processor = _Remembering(decoder)
  for item in items:
    rows = processor.featurize(item)
    scores = [known.scores_of(row) for row in rows]
    yield None if None in scores else processor.finish(rows, scores)


def _num_explained(explain: Contributions, budget: Budget) -> int:
  """Returns how many answers may be explained, if all are equally long."""
  most = _EXPLAINED_WORST + _EXPLAINED_TYPICAL if budget.is_explained else 0
  if budget.run_passes is None:
    return most
  return min(most, int(_SHARE_OF_RUN * budget.run_passes / explain.passes))


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


def _unknown_shares(decoder: Decoder, found: Sequence[Answered]) -> Iterator[float]:
  """Yields the share of unknown tokens of each example."""
  vocab = decoder.tokenizer.vocab
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
  decoder: Decoder,
  chosen: Mapping[int, tuple[Any, Answered]],
) -> dict[int, words.Contribution]:
  """Explains answers, as many as do not take long; none, and a warning, where that fails."""
  asked, spent = {}, 0.0
  try:
    for n, (item, each) in chosen.items():
      explained = decoder.explained(item, each.rows, each.answer, each.scores)
      if explained is None:
        continue
      rows = [each.rows[k] for k in explained.rows or range(len(each.rows))]
      spent += contributions.flops(rows)
      if spent > _MOST_FLOPS and asked:
        break
      asked[n] = (explained, rows)
    if not asked:
      return {}
    every_row = [row for _, rows in asked.values() for row in rows]
    weights = [each for explained, _ in asked.values() for each in explained.weights]
    shares = iter(contributions(every_row, weights))
    return {
      n: words.Contribution(explained.what, [_words(decoder, row, next(shares)) for row in rows])
      for n, (explained, rows) in asked.items()
    }
  except Exception as error:
    # Methods of a user's own task and head among them; the rest of the report needs none of it.
    why, log = in_one_message(error), command_line.log_traceback(error)
    logging.warning("The report does not say what words contributed: %s%s", why, log)
    return {}


def _words(decoder: Decoder, row: Row, shares: np.ndarray) -> list[words.Word]:
  """Joins the tokens of a row, without padding, to words with their shares."""
  count = int(np.sum(row["input_mask"]))
  tokens = [decoder.tokenizer.inv_vocab.get(i, "?") for i in row["input_ids"][:count]]
  return words.words_of(decoder.tokenizer, tokens, shares[:count])
