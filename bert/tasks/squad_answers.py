"""SQuAD: from the model's outputs to answers.

For each piece of each window the model gives scores that an answer begins and that it ends there.
The best valid pairs of a beginning and an end are mapped to words of the paragraph:
`write_predictions` does this for a whole file, `find_answers` for one question.

Results equal the original's, number by number, except that a question without any valid span does
not end the program, see `NO_ANSWER_ODDS`. Pure Python and NumPy, no TensorFlow.
"""

import collections
import dataclasses
import functools
import itertools
import json
import math
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from absl import logging

from bert.io import atomic_files
from bert.tokenization import BasicTokenizer

ANSWER_FILES = (
  *("predictions.json", "nbest_predictions.json", "null_odds.json"),
  "predictions_detailed.jsonl",
)
"""The files of a run: see `write_predictions`."""

# The null odds of a question without a valid span: above every threshold, so the answer is "".
# Finite, because JSON has no infinity; the original's "large and positive".
NO_ANSWER_ODDS = 1000000.0
_NO_PROBABILITY = 5e-324  # in the place of a probability that is too small for a float


class Answer(NamedTuple):
  """A possible answer to a question.

  Attributes:
    text: as in the paragraph; "" for "no answer".
    start_logit: the model's score of its beginning.
    end_logit: the model's score of its end.
    doc_span_index: the window in which it was found; None if in no window.
    start: its first character in the paragraph's words joined by spaces, starting at word
      `first_word`; None if it is not text of the paragraph.
    first_word: index of a word of the paragraph.
  """

  text: str
  start_logit: float
  end_logit: float
  doc_span_index: int | None = None
  start: int | None = None
  first_word: int | None = None

  @property
  def score(self) -> float:
    """The logarithm of its probability, up to a constant."""
    return self.start_logit + self.end_logit


@dataclasses.dataclass
class QuestionAnswers:
  """The answers to one question.

  Attributes:
    example: the `squad.SquadExample`.
    nbest: the best answers, best first; a null answer may be last regardless of its score.
    probabilities: the probability of each; their sum is 1.
    best_answer: the best answer with a text, or None.
    null_odds: the score of no answer less that of `best_answer`; None if every question has an
      answer.
    prediction: the selected answer.
  """

  example: Any
  nbest: list[Answer]
  probabilities: list[float]
  best_answer: Answer | None
  null_odds: float | None
  prediction: Answer

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
  null_score_diff_threshold: float = 0.0,
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
  logging.info("Writing predictions to: %s", output_prediction_file)
  logging.info("Writing nbest to: %s", output_nbest_file)
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
  answers: Sequence[QuestionAnswers],
  paths: Sequence[str | None],
  version_2_with_negative: bool,
) -> None:
  """Writes the files of `write_predictions`, in the order of `ANSWER_FILES`."""
  predictions, nbest, null_odds, detailed = paths
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
  do_lower_case: bool,
  *,
  version_2_with_negative: bool = False,
  null_score_diff_threshold: float = 0.0,
  verbose_logging: bool = False,
) -> QuestionAnswers:
  """Answers one question from all its windows.

  Args:
    example: the question.
    features: its windows.
    results: unique id of a window -> its result.
    n_best_size: see `write_predictions`, like all that follow.
    max_answer_length: in pieces.
    do_lower_case: the tokenizer's.
    version_2_with_negative: whether it may have no answer.
    null_score_diff_threshold: for the null odds.
    verbose_logging: whether to log failures.

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
  null = _null_answer(features, results) if version_2_with_negative else None
  if null is not None:
    candidates.append(_Candidate(None, 0, 0, null.start_logit, null.end_logit))
  # Stable, as in the original: of equal scores, the first found stays first.
  candidates.sort(key=lambda c: c.start_logit + c.end_logit, reverse=True)
  nbest = _nbest(example, candidates, null, n_best_size, do_lower_case, verbose_logging)
  best = next((answer for answer in nbest if answer.text), None)
  prediction, null_odds = nbest[0], None
  if version_2_with_negative:
    null_odds = NO_ANSWER_ODDS
    if best is not None:
      null_odds = null.score - best.start_logit - best.end_logit
    has_answer = best is not None and not null_odds > null_score_diff_threshold
    prediction = best if has_answer else null
  probabilities = _compute_softmax([answer.score for answer in nbest])
  return QuestionAnswers(example, nbest, probabilities, best, null_odds, prediction)


def averaged_answers(
  examples: Sequence,
  runs: Sequence[Mapping[str, Sequence[Mapping[str, Any]]]],
  *,
  n_best_size: int,
  version_2_with_negative: bool = False,
  null_score_diff_threshold: float = 0.0,
) -> list[QuestionAnswers]:
  """The answers of several models together: each text has the mean of its probabilities.

  The probabilities are those of each model's n-best answers; a text that is not among them has
  none. Texts count as they are written. In 2.0 the null odds are the logarithm of the probability
  of no answer over that of the best answer, which for one model is the original's difference.

  Args:
    examples: of `squad.read_squad_examples`.
    runs: of each model, id -> its answers, as in `nbest_predictions.json`.
    n_best_size: the number of answers to keep for each question.
    version_2_with_negative: whether a question may have no answer.
    null_score_diff_threshold: the answer is "" if the null odds are greater than this.

  Returns:
    The answers to each question; both logits of an answer are half the logarithm of its
    probability, so that their sum is its score. Where an answer is in the context is not known.
  """
  return [
    _averaged(
      example,
      [run[example.qas_id] for run in runs],
      n_best_size,
      version_2_with_negative,
      null_score_diff_threshold,
    )
    for example in examples
  ]


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
    has_answer = best is not None and not null_odds > threshold
    prediction = best if has_answer else null
  return QuestionAnswers(example, nbest, probabilities, best, null_odds, prediction)


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
  """The valid spans of one window, by the rank of their beginning, then of their end."""
  words, is_max_context = feature.token_to_orig_map, feature.token_is_max_context
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
  """The null answer: the scores of [CLS], in the window where their sum is smallest."""
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


def _nbest(example, candidates, null, n_best_size, do_lower_case, verbose) -> list[Answer]:
  """The best answers with different texts."""
  nbest: list[Answer] = []
  seen = set()
  for candidate in candidates:
    if len(nbest) >= n_best_size:
      break
    if candidate.feature is None:
      nbest.append(null)
      continue
    answer = _in_words(example, candidate, do_lower_case, verbose)
    if answer.text not in seen:
      seen.add(answer.text)
      nbest.append(answer)
  if null is not None and null not in nbest:
    nbest.append(null)
  return nbest or [Answer("empty", 0.0, 0.0)]  # As in the original; each question needs an answer.


def _get_best_indexes(logits: Sequence[float], n_best_size: int) -> list[int]:
  """Indexes of the `n_best_size` largest, largest first, of equal ones the first.

  Example:
    >>> _get_best_indexes([0.5, 2.0, -1.0, 2.0], 3)
    [1, 3, 0]
  """
  return np.argsort(-np.asarray(logits), kind="stable")[:n_best_size].tolist()


def _compute_softmax(scores: Sequence[float]) -> list[float]:
  """Probabilities of raw scores.

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


def _in_words(example, candidate, do_lower_case, verbose) -> Answer:
  """The candidate as written in the paragraph."""
  feature, start, end, start_logit, end_logit = candidate
  pieces = " ".join(feature.tokens[start : end + 1])
  pieces = " ".join(pieces.replace(" ##", "").replace("##", "").split())
  first_word = feature.token_to_orig_map[start]
  words = " ".join(example.doc_tokens[first_word : feature.token_to_orig_map[end] + 1])
  begin, stop = _align(pieces, words, do_lower_case, verbose)
  return Answer(
    words[begin:stop], start_logit, end_logit, feature.doc_span_index, begin, first_word
  )


def get_final_text(
  pred_text: str, orig_text: str, do_lower_case: bool, verbose_logging: bool = False
) -> str:
  """The part of `orig_text` that was tokenized into `pred_text`.

  The words that contain an answer are often longer, and its pieces have lost case and accents. Both
  texts are compared letter by letter without spaces. If tokenization changed the number of letters,
  this fails, and all of `orig_text` is the answer.

  Args:
    pred_text: joined pieces.
    orig_text: the paragraph's words that contain them.
    do_lower_case: the tokenizer's.
    verbose_logging: whether to log a failure.

  Example:
    >>> get_final_text("steve smith", "Steve Smith's", do_lower_case=True)
    'Steve Smith'
  """
  start, end = _align(pred_text, orig_text, do_lower_case, verbose_logging)
  return orig_text[start:end]


def _align(pred_text, orig_text, do_lower_case, verbose) -> tuple[int, int]:
  """Start and end (exclusive) of that part in `orig_text`, see `get_final_text`."""
  everything = 0, len(orig_text)
  # Tokenization never looks beyond a space, and words are often repeated: look them up.
  words = (_tokenize_word(word, do_lower_case) for word in orig_text.split(" "))
  tokenized = " ".join(itertools.chain.from_iterable(words))
  start = tokenized.find(pred_text)
  if start == -1:
    _explain(verbose, "Unable to find text: '%s' in '%s'", pred_text, orig_text)
    return everything
  letters, tokenized_letters = orig_text.replace(" ", ""), tokenized.replace(" ", "")
  if len(letters) != len(tokenized_letters):
    _explain(
      verbose,
      "Length not equal after stripping spaces: '%s' vs '%s'",
      letters,
      tokenized_letters,
    )
    return everything
  count = len(pred_text.replace(" ", ""))
  if not count or pred_text[0] == " " or pred_text[-1] == " ":
    _explain(verbose, "Couldn't map '%s'", pred_text)
    return everything
  first = start - tokenized.count(" ", 0, start)  # letters before it
  places = [i for i, char in enumerate(orig_text) if char != " "]
  return places[first], places[first + count - 1] + 1


@functools.lru_cache(maxsize=1 << 18)
def _tokenize_word(word: str, do_lower_case: bool) -> tuple[str, ...]:
  return tuple(_basic_tokenizer(do_lower_case).tokenize(word))


@functools.cache
def _basic_tokenizer(do_lower_case: bool) -> BasicTokenizer:
  return BasicTokenizer(do_lower_case=do_lower_case)


def _explain(verbose: bool, message: str, *texts: str) -> None:
  if verbose:
    logging.info(message, *texts)


def context_span(example, answer: Answer) -> tuple[int, int] | None:
  """Start and end (exclusive) of an answer in the context; None if it is not from the context.

  The text between them is the answer, except that the answer has one space between two words.
  """
  if answer.start is None or not answer.text or example.word_starts is None:
    return None
  start = _context_offset(example, answer.first_word, answer.start)
  last = _context_offset(example, answer.first_word, answer.start + len(answer.text) - 1)
  return start, last + 1


def _context_offset(example, word: int, index: int) -> int:
  """The position in the context of character `index` of the joined words from `word` on."""
  while index > len(example.doc_tokens[word]):
    index -= len(example.doc_tokens[word]) + 1
    word += 1
  return example.word_starts[word] + index


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
  start, end = context_span(answers.example, prediction) or (None, None)
  return {
    "id": answers.example.qas_id,
    "text": prediction.text,
    "start": start,
    "end": end,
    "probability": answers.probability,
    "window": prediction.doc_span_index,
    "null_odds": answers.null_odds,
  }


def _write_json(path: str | os.PathLike, value) -> None:
  atomic_files.write_text(path, json.dumps(value, indent=4) + "\n")
