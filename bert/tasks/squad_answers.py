"""SQuAD: from the model's outputs to answers.

For each piece of each window the model gives scores that an answer begins and that it ends there.
The best valid pairs of a beginning and an end are mapped to words of the paragraph:
`write_predictions` does this for a whole file, `find_answers` for one question.

Results equal the original's, number by number, except that a question without any valid span does
not end the program, see `NO_ANSWER_ODDS`. Pure Python and NumPy, no TensorFlow.
"""

import collections
import dataclasses
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from absl import logging

from bert.io import atomic_files
from bert.tasks import answer_texts

ANSWER_FILES = (
  *("predictions.json", "nbest_predictions.json", "null_odds.json"),
  "predictions_detailed.jsonl",
)
"""The files of a run: see `write_predictions`."""

NULL_RULES = ("bert", "electra", "albert")
"""How the model decides that there is no answer: see `find_answers`."""

# The null odds of a question without a valid span: above every threshold, so the answer is "".
# Finite, because JSON has no infinity; the original's "large and positive".
NO_ANSWER_ODDS = 1000000.0


class Answer(NamedTuple):
  """A possible answer to a question."""

  text: str  # as in the paragraph; "" for "no answer"
  start_logit: float  # the model's score of its beginning
  end_logit: float  # the model's score of its end
  doc_span_index: int | None = None  # the window in which it was found; None if in no window
  # Its first character in the paragraph's words joined by spaces, starting at word `first_word`; in
  # the paragraph itself without `first_word`; None if it is not text of the paragraph.
  start: int | None = None
  first_word: int | None = None  # index of a word of the paragraph
  # The text at `start`, where `text` is that of an earlier occurrence in the same words, which the
  # original takes; they differ at most in case, accents and spaces.
  chosen_text: str | None = None

  @property
  def text_at_start(self) -> str:
    """The text at `start`."""
    return self.text if self.chosen_text is None else self.chosen_text

  @property
  def score(self) -> float:
    """The logarithm of its probability, up to a constant."""
    return self.start_logit + self.end_logit


class WindowScores(NamedTuple):
  """What the model says of a window; `WindowScores(id, start_logits, end_logits)` of BERT's."""

  unique_id: int  # of the window
  start_logits: Any = None  # `[S]`
  end_logits: Any = None  # `[S]`; None where ends depend on beginnings
  null_logit: float | None = None  # the score of no answer, if the model has one of its own
  # Four arrays as in `span_heads.Beam`, of one sequence: the log-probabilities and the positions of
  # K beginnings, `[K]`, and those of E ends for each, `[K, E]`.
  beam: tuple | None = None


_NO_ANSWER = Answer("", 0.0, 0.0)


def scores_of(
  unique_id,
  start_logits=None,
  end_logits=None,
  *,
  null_logit=None,
  first_logit=None,
  start_log_probs=None,
  start_index=None,
  end_log_probs=None,
  end_index=None,
) -> WindowScores:
  """`WindowScores` of the arrays that the model gives, by name.

  `first_logit` is the score of an answer that begins at [CLS], if `null_logit` is missing.
  """
  beam = None
  if start_index is not None:
    beam = start_log_probs, start_index, end_log_probs, end_index
  if first_logit is not None:
    start_logits, end_logits = [first_logit], [0.0]
  null_logit = None if null_logit is None else float(null_logit)
  return WindowScores(int(unique_id), start_logits, end_logits, null_logit, beam)


@dataclasses.dataclass
class QuestionAnswers:
  """The answers to one question."""

  example: Any  # the `squad.SquadExample`
  # The best answers, best first; a null answer may be last regardless of its score.
  nbest: list[Answer]
  probabilities: list[float]  # the probability of each; their sum is 1
  best_answer: Answer | None  # the best answer with a text, or None
  # The score of no answer less that of `best_answer`; None if every question has an answer.
  null_odds: float | None
  prediction: Answer  # the selected answer

  @property
  def probability(self) -> float:
    """The probability of `prediction` among `nbest`; 0 if it is not among them."""
    return sum(
      probability
      for answer, probability in zip(self.nbest, self.probabilities, strict=True)
      if answer.text == self.prediction.text
    )


def write_predictions(
  all_examples: Sequence,
  all_features: Iterable,
  all_results: Iterable,
  n_best_size: int,
  max_answer_length: int,
  do_lower_case: bool,
  output_prediction_file: str,
  output_nbest_file: str,
  output_null_log_odds_file: str | None,
  *,
  version_2_with_negative: bool = False,
  null_score_diff_threshold: float | None = 0.0,
  verbose_logging: bool = False,
  output_detailed_file: str | None = None,
) -> list[QuestionAnswers]:
  """Answers all questions and writes the original's files, `null_odds` for 2.0 only.

  Args:
    all_examples: of `squad.read_squad_examples`.
    all_features: their windows.
    all_results: for each window an object with `unique_id`, `start_logits` and `end_logits`.
    n_best_size: the number of answers to give for each question.
    max_answer_length: the maximum length of an answer in pieces.
    do_lower_case: the tokenizer's.
    output_prediction_file: id -> text.
    output_nbest_file: id -> the best answers with their probabilities.
    output_null_log_odds_file: id -> the score of no answer less that of the best answer.
    version_2_with_negative: whether a question may have no answer.
    null_score_diff_threshold: the answer is "" if the null odds are greater than this.
    verbose_logging: whether to log answers that could not be mapped to the paragraph.
    output_detailed_file: JSON Lines: each answer, its place and its probability.

  Returns:
    The answers to each question, in the order of `all_examples`.

  Raises:
    ValueError: a window has no result.
    OSError: a file cannot be written.
  """
  answers = answer_questions(
    all_examples,
    all_features,
    all_results,
    n_best_size,
    max_answer_length,
    do_lower_case,
    version_2_with_negative=version_2_with_negative,
    null_score_diff_threshold=null_score_diff_threshold,
    verbose_logging=verbose_logging,
  )
  files = output_prediction_file, output_nbest_file, output_null_log_odds_file, output_detailed_file
  write_answers(answers, files, version_2_with_negative)
  return answers


def write_answers(
  answers: Sequence[QuestionAnswers], paths: Sequence[str | None], version_2_with_negative: bool
) -> None:
  """Writes the files of `write_predictions`, in the order of `ANSWER_FILES`."""
  predictions, nbest, null_odds, detailed = paths
  logging.info("Writing predictions to: %s", predictions)
  logging.info("Writing nbest to: %s", nbest)
  _write_json(predictions, {a.example.qas_id: a.prediction.text for a in answers})
  _write_json(nbest, {a.example.qas_id: _nbest_json(a) for a in answers})
  if version_2_with_negative:
    _write_json(null_odds, {a.example.qas_id: a.null_odds for a in answers})
  if detailed:
    lines = (json.dumps(_detailed_json(a), ensure_ascii=False) + "\n" for a in answers)
    atomic_files.write_text(detailed, "".join(lines).translate(_LINE_ENDS_IN_TEXT))


def answer_questions(
  all_examples: Sequence, all_features: Iterable, all_results: Iterable, *args, **options
) -> list[QuestionAnswers]:
  """`find_answers` for each of `all_examples`; further arguments are passed on."""
  windows = collections.defaultdict(list)
  for feature in all_features:
    windows[feature.example_index].append(feature)
  results = {result.unique_id: result for result in all_results}
  return [
    find_answers(example, windows[index], results, *args, **options)
    for index, example in enumerate(all_examples)
  ]


def find_answers(
  example,
  features: Sequence,
  results: Mapping[int, Any],
  n_best_size: int,
  max_answer_length: int,
  splitting: answer_texts.Splitting,
  *,
  version_2_with_negative: bool = False,
  null_score_diff_threshold: float | None = 0.0,
  null_rule: str = "bert",
  verbose_logging: bool = False,
) -> QuestionAnswers:
  """Answers one question from all its windows.

  The null odds and the prediction follow one of `NULL_RULES`. `bert`: no answer is one of the
  answers, with the scores of [CLS], and the odds are its score less that of the best text. With
  `electra` and `albert` the odds are the model's `null_logit`, the lowest of all windows, and no
  answer is not among the n best; without that score, ELECTRA's odds are BERT's. Odds at the
  threshold itself mean an answer, with `albert` none. The other arguments are those of
  `write_predictions`; a threshold of None gives a text in any case.

  Args:
    example: the question.
    features: its windows.
    results: unique id of a window -> its result.

  Raises:
    ValueError: a window has no result.
  """
  candidates = [
    candidate
    for feature in features
    for candidate in _candidates(
      feature, _result_of(feature, results), n_best_size, max_answer_length
    )
  ]
  is_v2 = version_2_with_negative
  null = _null_answer(features, results) if is_v2 and null_rule == "bert" else None
  if null is not None:
    candidates.append(_Candidate(None, 0, 0, null.start_logit, null.end_logit))
  # Stable, as in the original: of equal scores, the first found stays first.
  candidates.sort(key=lambda c: c.start_logit + c.end_logit, reverse=True)
  nbest = _nbest(example, candidates, null, n_best_size, splitting, verbose_logging)
  if is_v2 and null_rule == "albert" and not candidates:
    nbest = [Answer("", -1e6, -1e6)]
  best = next((answer for answer in nbest if answer.text or null_rule == "albert"), None)
  prediction, null_odds = nbest[0], None
  if is_v2:
    null_odds = NO_ANSWER_ODDS
    found = (_result_of(feature, results) for feature in features)
    null_logits = [getattr(result, "null_logit", None) for result in found]
    if null_rule != "bert" and None not in null_logits:
      null_odds = min(map(float, null_logits), default=NO_ANSWER_ODDS)
    elif best is not None:
      null = null or _null_answer(features, results)
      null_odds = null.score - best.start_logit - best.end_logit
    has_answer = best is not None and not is_null(null_odds, null_score_diff_threshold, null_rule)
    prediction = best if has_answer else null or _NO_ANSWER
  probabilities = _compute_softmax([answer.score for answer in nbest])
  return QuestionAnswers(example, nbest, probabilities, best, null_odds, prediction)


def is_null(null_odds: float, threshold: float | None, null_rule: str) -> bool:
  """Tells whether null odds mean no answer; see `find_answers` for the rules."""
  if threshold is None:
    return False
  return null_odds >= threshold if null_rule == "albert" else null_odds > threshold


def with_threshold(
  answers: QuestionAnswers, threshold: float | None, null_rule: str
) -> QuestionAnswers:
  """Returns the same answers to a question of 2.0 with the prediction of another threshold."""
  has_answer = answers.best_answer and not is_null(answers.null_odds, threshold, null_rule)
  prediction = answers.best_answer if has_answer else _NO_ANSWER
  return dataclasses.replace(answers, prediction=prediction)


# ---------------------------------------------------------------------------------------------
# Spans of pieces.


class _Candidate(NamedTuple):
  """From one piece of a window to another; without a window, the null answer."""

  feature: Any
  start: int
  end: int
  start_logit: float
  end_logit: float


def _result_of(feature, results):
  try:
    return results[feature.unique_id]
  except KeyError:
    raise ValueError(
      f"The window with unique_id {feature.unique_id} has no result: predict all windows of a file "
      "first."
    ) from None


def _candidates(feature, result, n_best_size, max_answer_length) -> list[_Candidate]:
  """Returns the valid spans of one window, by the rank of their beginning, then of their end."""
  words, is_max_context = feature.token_to_orig_map, feature.token_is_max_context
  if (beam := getattr(result, "beam", None)) is not None:
    start_log_probs, start_index, end_log_probs, end_index = beam
    return [
      _Candidate(feature, int(i), int(j), float(start_log_probs[k]), float(end_log_probs[k][e]))
      for k, i in enumerate(start_index)
      for e, j in enumerate(end_index[k])
      if i in words
      and j in words
      and is_max_context.get(i, False)
      and 0 <= j - i < max_answer_length
    ]
  # Positions in padding and the question may be among the best, as in the original.
  starts = _get_best_indexes(result.start_logits, n_best_size)
  ends = _get_best_indexes(result.end_logits, n_best_size)
  # Only the window with most context around its first piece may give an answer.
  starts = [i for i in starts if i in words and is_max_context.get(i, False)]
  ends = [i for i in ends if i in words]
  return [
    _Candidate(feature, i, j, float(result.start_logits[i]), float(result.end_logits[j]))
    for i in starts
    for j in ends
    if 0 <= j - i < max_answer_length
  ]


def _null_answer(features, results) -> Answer:
  """Returns the null answer: the scores of [CLS], in the window where their sum is smallest."""
  best = Answer("", 0.0, 0.0)
  lowest = NO_ANSWER_ODDS
  for feature in features:
    result = _result_of(feature, results)
    answer = Answer(
      "", float(result.start_logits[0]), float(result.end_logits[0]), feature.doc_span_index
    )
    if answer.score < lowest:
      best, lowest = answer, answer.score
  return best


def _nbest(example, candidates, null, n_best_size, splitting, verbose) -> list[Answer]:
  """Returns the best answers with different texts."""
  nbest: list[Answer] = []
  seen = set()
  for candidate in candidates:
    if len(nbest) >= n_best_size:
      break
    if candidate.feature is None:
      nbest.append(null)
      continue
    answer = _in_words(example, candidate, splitting, verbose)
    if answer.text not in seen:
      seen.add(answer.text)
      nbest.append(answer)
  if null is not None and null not in nbest:
    nbest.append(null)
  return nbest or [Answer("empty", 0.0, 0.0)]  # As in the original; each question needs an answer.


def _get_best_indexes(logits: Sequence[float], n_best_size: int) -> list[int]:
  """Returns indexes of the `n_best_size` largest, largest first, of equal ones the first.

  Example:
    >>> _get_best_indexes([0.5, 2.0, -1.0, 2.0], 3)
    [1, 3, 0]
  """
  return np.argsort(-np.asarray(logits), kind="stable")[:n_best_size].tolist()


def _compute_softmax(scores: Sequence[float]) -> list[float]:
  """Computes probabilities of raw scores.

  Example:
    >>> _compute_softmax([1000.0, 1000.0])
    [0.5, 0.5]
  """
  if not scores:
    return []
  largest = max(scores)
  exponentials = [math.exp(score - largest) for score in scores]
  total = sum(exponentials)
  return [exponential / total for exponential in exponentials]


# ---------------------------------------------------------------------------------------------
# Pieces -> text of the paragraph.


def _in_words(example, candidate, splitting, verbose) -> Answer:
  """Returns the candidate as written in the paragraph."""
  feature, start, end, start_logit, end_logit = candidate
  if feature.char_spans is not None:
    return _in_context(example, candidate)
  pieces = " ".join(feature.tokens[start : end + 1])
  pieces = " ".join(pieces.replace(" ##", "").replace("##", "").split())
  first_word = feature.token_to_orig_map[start]
  words = " ".join(example.doc_tokens[first_word : feature.token_to_orig_map[end] + 1])
  (first, last), (begin, stop) = answer_texts.align(
    pieces, words, splitting, verbose, lambda: _pieces_of_word_to(feature, start)
  )
  text, chosen = words[first:last], words[begin:stop]
  return Answer(text, start_logit, end_logit, feature.doc_span_index, begin, first_word, chosen)


def _pieces_of_word_to(feature, position: int) -> list[str]:
  """Lists the pieces of the word at a position up to it, also those before the window."""
  words, first = feature.token_to_orig_map, position
  while words.get(first - 1) == words[position]:
    first -= 1
  before = () if first - 1 in words else getattr(words, "before", ())
  return [*before, *feature.tokens[first : position + 1]]


def _in_context(example, candidate) -> Answer:
  """Returns the candidate as its characters in the paragraph, of a sentencepiece model."""
  feature, start, end, start_logit, end_logit = candidate
  first, last = feature.char_spans[start][0], feature.char_spans[end][1]
  text = example.context[first : last + 1]
  place = first + len(text) - len(text.lstrip())
  return Answer(text.strip(), start_logit, end_logit, feature.doc_span_index, place)


# ---------------------------------------------------------------------------------------------
# Files.

# JSON keeps these line ends unescaped, but `str.splitlines` would split at them.
_LINE_ENDS_IN_TEXT = {ord(c): f"\\u{ord(c):04x}" for c in "\x85\u2028\u2029"}


def _nbest_json(answers: QuestionAnswers) -> list[dict]:
  return [
    {
      "text": answer.text,
      "probability": probability,
      "start_logit": answer.start_logit,
      "end_logit": answer.end_logit,
    }
    for answer, probability in zip(answers.nbest, answers.probabilities, strict=True)
  ]


def _detailed_json(answers: QuestionAnswers) -> dict:
  prediction = answers.prediction
  start, end = answer_texts.context_span(answers.example, prediction) or (None, None)
  return {
    "id": answers.example.qas_id,
    "text": prediction.text_at_start,
    "start": start,
    "end": end,
    "probability": answers.probability,
    "window": prediction.doc_span_index,
    "null_odds": answers.null_odds,
  }


def _write_json(path: str | os.PathLike, value) -> None:
  atomic_files.write_text(path, json.dumps(value, indent=4) + "\n")
