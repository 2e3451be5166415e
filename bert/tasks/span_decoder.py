"""Answers to questions about a paragraph, from the scores of its windows.

Windows are made by `squad_features`, answers chosen by `squad_answers`: they are those that
run_squad.py writes into its files. Where run_squad.py answers "empty", or leaves a paragraph out
because it cannot be aligned with its tokens (control characters alone, say), the answer here is "",
and its null odds are `NO_ANSWER_ODDS`.
"""

import functools
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from bert.tasks import answer_texts, squad, squad_answers, squad_features, squad_scores
from bert.tasks.decoding import Decoder, Explained, against_others, kind_of
from bert.tasks.shown import Baseline, Case, Mark, Passage, Shown


class SpanDecoder(Decoder):
  """A row for each window of the paragraph.

  Answers have `answer`, the paragraph's text with one space for each row of blanks, or "" for none;
  `start` and `end`, its first character in the paragraph and the one after its last, -1 for no
  answer; `probability` among the `n_best_size` best answers; `score`, the sum of its logits; and,
  where questions may have no answer, `null_odds`: the score of no answer less that of the best.
  """

  title: ClassVar = "Question answering"
  default_length: ClassVar = 384
  inputs = ("question", "context")
  has_raw_scores: ClassVar = True
  display = "answer"

  def __init__(
    self,
    kind,
    tokenizer,
    max_seq_length: int,
    doc_stride: int,
    max_query_length: int,
    null_rule: str,
    *,
    n_best_size: int = 20,
    max_answer_length: int = 30,
    version_2_with_negative: bool = False,
    null_score_diff_threshold: float = 0.0,
    mask_padding: bool = False,
    answer_scores: str = "squad",
  ):
    """Takes the flags of run_squad.py.

    The other arguments are those of `Decoder`.

    Args:
      doc_stride: number of tokens between the starts of two windows.
      max_query_length: longer questions are cut to this number of tokens.
      null_rule: how the model says that there is no answer: of `squad_answers.NULL_RULES`.
      n_best_size: number of answers over which probabilities sum to 1.
      max_answer_length: in tokens.
      version_2_with_negative: whether a question may have no answer.
      null_score_diff_threshold: the answer is "" if the null odds are greater than this.
      mask_padding: whether the model gives no score to padding. If it does, all rows have
        `max_seq_length` tokens, since padding competes with the text, as in the original.
      answer_scores: how reports compare answers: of `squad_scores.RULES`.

    Raises:
      ValueError: the lengths leave no room.
    """
    super().__init__(kind, tokenizer, max_seq_length)
    self._lengths = (max_seq_length, doc_stride, max_query_length)
    squad_features.check_lengths(tokenizer, *self._lengths)
    self._max_query_length = max_query_length
    self._mask_padding = mask_padding
    self._rules = answer_scores
    # Whether no answer is one of the answers, with a share of their probability.
    self._null_competes = version_2_with_negative and null_rule == "bert"
    self._sizes = (n_best_size, max_answer_length, answer_texts.splitting_of(tokenizer))
    self._options = {
      "version_2_with_negative": version_2_with_negative,
      "null_score_diff_threshold": null_score_diff_threshold,
      "null_rule": null_rule,
    }

  @classmethod
  def of_run(
    cls,
    facts,
    settings,
    tokenizer,
    max_seq_length,
    *,
    doc_stride=None,
    max_query_length=None,
    n_best_size=20,
    max_answer_length=30,
    version_2_with_negative=None,
    null_score_diff_threshold=None,
    mask_padding=None,
  ):
    """Makes that of a run, which has the options' values where they are None."""
    kind = kind_of(facts)
    given = {
      "doc_stride": doc_stride,
      "max_query_length": max_query_length,
      "version_2_with_negative": version_2_with_negative,
      "null_score_diff_threshold": null_score_diff_threshold,
    }
    changed = cls.head_settings({"mask_padding": mask_padding})
    head = kind.head_class().of_run(facts, {**settings, **changed})
    null_rule = head.answer_head.kind
    values = {
      "doc_stride": settings.get("doc_stride", min(128, max_seq_length // 3)),
      "max_query_length": settings.get("max_query_length", min(64, max_seq_length // 4)),
      # The configuration of transformers does not say it; an option does.
      "version_2_with_negative": facts.get("version_2_with_negative", False),
      "null_score_diff_threshold": 0.0,
    }
    if null_rule != "bert":
      values["null_score_diff_threshold"] = settings.get("null_score_diff_threshold", 0.0)
    values |= {name: value for name, value in given.items() if value is not None}
    return cls(
      kind,
      tokenizer,
      max_seq_length,
      null_rule=null_rule,
      n_best_size=n_best_size,
      max_answer_length=max_answer_length,
      mask_padding=head.mask_padding or null_rule != "bert",
      answer_scores=settings.get("answer_scores") or "squad",
      **values,
    )

  @classmethod
  def synthetic_example(cls):
    """Returns a question that the paragraph answers."""
    return {
      "question": "Who was its first programmer?",
      "context": "The Analytical Engine was designed by Charles Babbage. Its first programmer was "
      "Ada Lovelace.",
    }

  def predictions(self, answer, scores, raw_scores=False):
    """Lists the answer, which is its own label; of no answer the label is empty."""
    score = answer["score" if raw_scores else "probability"]
    places = {"start": answer["start"], "end": answer["end"]}
    return [{"label": answer["answer"], "score": float(score), **places}]

  @classmethod
  def head_settings(cls, options):
    """Returns how padding is treated."""
    mask_padding = options.get("mask_padding")
    return {} if mask_padding is None else {"pad_to_longest": mask_padding}

  @functools.cached_property
  def _windows_of(self):
    return squad_features.window_reader(self.tokenizer, *self._lengths)

  def __getstate__(self):
    """Returns what is sent to another process, such as a server's."""
    return {name: value for name, value in vars(self).items() if name != "_windows_of"}

  def rows(self, item):
    """Makes the windows, which remember what their tokens are."""
    example = _example(item)
    return [self._row_of(window) | {"window": window} for window in self._windows_of(example)]

  def check_not_truncated(self, item):
    """See base class; windows read all of the paragraph."""
    length = len(self.tokenizer.tokenize(item["question"]))
    if length > self._max_query_length:
      raise ValueError(
        f"The question has {length} tokens, but the model reads {self._max_query_length} "
        "(max_query_length), and it is not to be truncated."
      )

  def _row_of(self, window: squad_features.InputFeatures) -> dict[str, Any]:
    length = len(window.tokens) if self._mask_padding else self.max_seq_length
    names = ("input_ids", "input_mask", "segment_ids")
    return {name: getattr(window, name)[:length] for name in names}

  def decode(self, item, rows, scores):
    """Chooses the best span of all windows."""
    example, windows = _example(item), [row["window"] for row in rows]
    results = {
      window.unique_id: squad_answers.scores_of(window.unique_id, **each)
      for window, each in zip(windows, scores, strict=True)
    }
    return self._answer(
      squad_answers.find_answers(example, windows, results, *self._sizes, **self._options)
    )

  def explained(self, item, rows, answer, scores):
    """Explains the likeliest first and last word of all windows; not of a beam of ends."""
    names = ("start_logits", "end_logits")
    if not scores or any(name not in scores[0] for name in names):
      return None
    best = [sum(float(each[name].max()) for name in names) for each in scores]
    window = int(np.argmax(best))
    weights = {name: against_others(scores[window][name]) for name in names}
    return Explained("the first and the last word of the answer", [weights], [window])

  def shown(self):
    """Marks the answer in the paragraph."""
    return Spans(self._rules)

  def _answer(self, found: squad_answers.QuestionAnswers) -> dict[str, Any]:
    prediction = found.prediction
    is_span = prediction.start is not None
    start, end = answer_texts.context_span(found.example, prediction) or (-1, -1)
    is_scored = is_span or self._null_competes
    answer = {
      "answer": prediction.text_at_start if is_span else "",
      "end": end,
      "probability": found.probability if is_scored else 0.0,
      "score": prediction.score if is_scored else 0.0,
      "start": start,
    }
    if self._options["version_2_with_negative"]:
      answer["null_odds"] = found.null_odds
    return dict(sorted(answer.items()))


def _example(item: Mapping[str, str]) -> squad.SquadExample:
  words, starts = squad.split_words(item["context"])
  return squad.SquadExample(
    "", item["question"], words, word_starts=starts, context=item["context"]
  )


# ---------------------------------------------------------------------------------------------
# In reports: the paragraph with the answer marked.

NO_ANSWER = "no answer"
# Words that questions begin with.
_KINDS = ("who", "what", "when", "where", "which", "why", "how")


class Spans(Shown):
  """A part of a text that answers a question."""

  loss_name = "1 − F1"
  loss_help = (
    "Ordered by the words that answer and gold answer do not share, 1 − F1, and among equals by "
    "how sure the model was."
  )
  group_name = "question word"

  def __init__(self, rules: str = "squad"):
    """Compares answers by one of `squad_scores.RULES`."""
    self._rules = rules

  def case(self, item, gold, answer):
    """Marks the answer; `gold` are the right answers, none where there is none."""
    predicted = answer["answer"] or NO_ANSWER
    sure = float(answer["probability"])
    found = Case(_passages(item, answer), None, predicted, confidence=sure)
    if gold is None:
      return found
    right = list(dict.fromkeys(gold)) or [""]
    both = [(text, answer["answer"], self._rules) for text in right]
    best = max(itertools.starmap(squad_scores.compute_f1, both))
    found.gold = " / ".join(text or NO_ANSWER for text in right)
    found.is_right = any(itertools.starmap(squad_scores.compute_exact, both))
    found.loss = 1 - best
    found.group = _kind_of(str(item["question"]))
    return found

  def baseline(self, gold):
    """Says what never answering would score, where questions may have no answer."""
    known = [each for each in gold if each is not None]
    never = [not any(each) for each in known]
    if not any(never):
      return None
    return Baseline("Never answering would be right for", sum(never) / len(never))


def _passages(item: Mapping[str, Any], answer: Mapping[str, Any]) -> list[Passage]:
  start, end = int(answer["start"]), int(answer["end"])
  marks = (Mark(start, end),) if 0 <= start < end else ()
  return [Passage("question", item["question"]), Passage("context", item["context"], marks)]


def _kind_of(question: str) -> str:
  words: Sequence[str] = question.lower().split()
  return next((word for word in words if word in _KINDS), "other")
