"""SQuAD: questions about a paragraph, read from JSON files in SQuAD's form or JSON Lines.

  examples = read_squad_examples("dev-v1.1.json", is_training=False)

In 1.1 every question has an answer in its paragraph; in 2.0 some have none. Unreadable data is a
`DataError` with file, question and reason.

Questions are read here and cut into windows (`squad_features.py`) for the model. Its outputs become
answers (`squad_answers.py`), which are scored (`squad_scores.py`). Pure Python, no TensorFlow.
"""

import bisect
import itertools
import json
import os
import re
import zlib
from collections.abc import Iterator
from typing import Any, NamedTuple

from absl import logging

from bert.io import other_formats
from bert.io.tables import DataError, reasons_of
from bert.text.text_files import open_bytes
from bert.tokenization import printable_text, whitespace_tokenize

# The original's blanks, narrower than `str.split`'s: a no-break space, say, is part of a word.
_WORD = re.compile(r"[^ \t\r\n\u202f]+")


class SquadExample:
  """One question.

  Attributes:
    qas_id: the question's id.
    question_text: the question.
    doc_tokens: the paragraph's words. Questions of one paragraph share the list.
    orig_answer_text: the answer to train on; "" if the question has none; None in prediction.
    start_position: index of the answer's first word; -1 without an answer; None in prediction.
    end_position: index of its last word, likewise.
    is_impossible: whether the paragraph does not answer the question (2.0 only).
    answers: all correct answers, [] if the question has none, None if the file has no answers.
    word_starts: where each of `doc_tokens` begins in the paragraph, in characters.
    context: the paragraph, which its questions share.
    answer_start: the first character of `orig_answer_text` in it, in training.
  """

  def __init__(
    self,
    qas_id,
    question_text,
    doc_tokens,
    orig_answer_text=None,
    start_position=None,
    end_position=None,
    is_impossible=False,
    *,
    answers=None,
    word_starts=None,
    context=None,
    answer_start=None,
  ):
    self.qas_id = qas_id
    self.question_text = question_text
    self.doc_tokens = doc_tokens
    self.orig_answer_text = orig_answer_text
    self.start_position = start_position
    self.end_position = end_position
    self.is_impossible = is_impossible
    self.answers = answers
    self.word_starts = word_starts
    self.context = context
    self.answer_start = answer_start

  def __repr__(self):
    shown = [
      f"qas_id: {printable_text(str(self.qas_id))}",
      f"question_text: {printable_text(self.question_text)}",
      f"doc_tokens: [{' '.join(self.doc_tokens)}]",
    ]
    # Compared with None: an answer may begin at word 0, which the original does not show.
    for name in ("start_position", "end_position"):
      if getattr(self, name) is not None:
        shown.append(f"{name}: {getattr(self, name)}")
    if self.is_impossible:
      shown.append(f"is_impossible: {self.is_impossible}")
    return ", ".join(shown)


# ---------------------------------------------------------------------------------------------
# Reading.


class _Paragraph(NamedTuple):
  context: str
  words: list[str]
  starts: list[int]


def read_squad_examples(
  input_file: str | os.PathLike, is_training: bool, version_2_with_negative: bool = False
) -> list[SquadExample]:
  """Reads a JSON file of SQuAD, or JSON Lines with `context`, `question` and `answers` in each.

  JSON Lines, or a list of such objects, are what `datasets` writes: `answers` has a list of `text`
  and one of `answer_start`. There a question is impossible if the lists are empty; with
  `version_2_with_negative` one whose answers have no text is impossible in either form.

  In training, a question whose answer is not at the position given in the file is skipped with a
  warning, and the first of several answers is used; the numbers of both are logged, and that of
  answers whose words are there, but not at exactly that character.

  Args:
    input_file: path of a JSON file, which may be compressed as `.gz`.
    is_training: whether every question needs an answer. Otherwise answers may be missing.
    version_2_with_negative: whether questions may have no answer, as marked by `is_impossible`.

  Raises:
    DataError: the file is missing, not JSON, or not SQuAD; two questions to predict have the same
      id; a paragraph is empty. The message names file, question and reason.
  """
  return _Reader(input_file, is_training, version_2_with_negative).read()


def split_words(text: str) -> tuple[list[str], list[int]]:
  r"""Splits a text at spaces, tabs, line ends and U+202F; returns words, and where each begins.

  Example:
    >>> split_words(" In 1997,\nit was")
    (['In', '1997,', 'it', 'was'], [1, 4, 10, 13])
  """
  matches = list(_WORD.finditer(text))
  return [match.group() for match in matches], [match.start() for match in matches]


class _Reader:
  """Reads one file and counts unusual questions."""

  def __init__(self, path, is_training, version_2):
    self._path, self._is_training, self._version_2 = os.fsdecode(path), is_training, version_2
    self._seen: set[str] = set()
    self._questions_read = self._repeated = self._several = self._not_found = self._beside = 0
    self._without_text = self._derived = 0
    self._errors: list[DataError] = []

  def read(self) -> list[SquadExample]:
    """Reads all examples of the file."""
    examples = []
    for paragraph, qa, place in self._questions():
      self._questions_read += 1
      try:
        example = self._example(paragraph, qa, place)
      except DataError as error:
        self._errors.append(error)
        continue
      if example is not None:
        examples.append(example)
    if self._errors:
      raise self._all_errors()
    if not self._is_training and examples and self._derived == len(examples):
      logging.warning(
        "%s: all lists of answers are empty, so the answers are not known.", self._path
      )
      for example in examples:
        example.answers = None
    self._report(len(examples))
    return examples

  def _all_errors(self) -> DataError:
    """Returns the first error; of several questions their number, and the faults of all kinds."""
    first, *others = self._errors
    if not others:
      return first
    more = reasons_of(others)
    reason = f"{first.reason} {len(others)} other question(s) cannot be read: {more}."
    return DataError(reason, first.file, first.line, first.advice)

  def _questions(self) -> Iterator[tuple[_Paragraph, dict, str]]:
    shared = None
    for paragraph, place in self._paragraphs():
      context = self._get(paragraph, "context", str, place)
      if shared is None or shared.context != context:  # JSON Lines repeat it
        shared = _Paragraph(context, *split_words(context))
      if _is_question(paragraph):
        yield shared, self._with_list(paragraph, place), place
        continue
      for k, qa in enumerate(self._get(paragraph, "qas", list, place)):
        yield shared, qa, f"{place}.qas[{k}]"

  def _paragraphs(self) -> Iterator[tuple[Any, str]]:
    for entry, place in self._entries():
      if _is_question(entry):
        yield entry, place
        continue
      for j, paragraph in enumerate(self._get(entry, "paragraphs", list, place)):
        yield paragraph, f"{place}.paragraphs[{j}]"

  def _entries(self) -> Iterator[tuple[Any, str]]:
    for value, place in self._load():
      if isinstance(value, list):
        yield from ((entry, f"[{i}]") for i, entry in enumerate(value))
      elif _is_question(value):
        yield value, place
      else:
        for i, entry in enumerate(self._get(value, "data", list, place)):
          yield entry, f"data[{i}]"

  def _with_list(self, qa, place) -> dict:
    """Returns a line's question with `answers` and `is_impossible` in SQuAD's form."""
    answers = qa.get("answers")
    if isinstance(answers, dict):
      texts, starts = (
        [] if value is None else value if isinstance(value, list) else [value]
        for value in (answers.get("text"), answers.get("answer_start"))
      )
      if len(starts) != len(texts) and (starts or self._is_training):
        reason = f"{place}: 'answers' has {len(texts)} text(s) and {len(starts)} answer_start(s)."
        raise DataError(reason, self._path, advice=_ANSWERS)
      answers = [
        {"text": text} if start is None else {"text": text, "answer_start": start}
        for text, start in itertools.zip_longest(texts, starts)
      ]
    if "is_impossible" not in qa:
      qa = {**qa, "is_impossible": answers == []}
      self._derived += answers == []
    return {**qa, "answers": answers}

  def _load(self) -> list[tuple[Any, str]]:
    """Reads what the file holds, and the name of its place: one value, or one a line."""
    try:
      with open_bytes(self._path) as reader:
        content = reader.read()
      if other := other_formats.find(content):
        raise DataError(f"the file is {other[0]}.", self._path, advice=other[1])
      return self._parse(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
      raise DataError(f"byte {error.start} is not UTF-8.", self._path) from None
    except json.JSONDecodeError as error:
      reason = f"the file is not JSON ({error.msg})."
      raise DataError(reason, self._path, error.lineno, _FORM) from None
    except DataError:
      raise
    except ValueError as error:  # an integer with more digits than Python converts
      raise DataError(f"the file is not JSON ({error}).", self._path) from None
    except (EOFError, zlib.error) as error:
      raise DataError(f"the file is not a complete gzip file ({error}).", self._path) from None
    except RecursionError:
      raise DataError("the brackets are nested too deeply for SQuAD.", self._path) from None
    except OSError as error:
      raise DataError(f"the file cannot be read ({error.strerror or error}).", self._path) from None

  def _parse(self, text: str) -> list[tuple[Any, str]]:
    try:
      return [(json.loads(text), "the file")]
    except json.JSONDecodeError as error:
      lines = [(line, n) for n, line in enumerate(text.split("\n"), 1) if line.strip()]
      values = []
      for line, number in lines if error.msg == "Extra data" else ():
        try:
          values.append((json.loads(line), f"line {number}"))
        except json.JSONDecodeError as of_line:
          if not values:
            raise error from None  # not JSON Lines
          reason = f"the line is not JSON ({of_line.msg}, character {of_line.pos + 1})."
          raise DataError(reason, self._path, number) from None
      if not values:
        raise
      return values

  def _get(self, record, key: str, kind: type | tuple[type, ...], place: str):
    """Returns `record[key]`, which must be a `kind`."""
    if not isinstance(record, dict):
      reason = f"{place} is {_shown(record)}, not an object {{...}}."
      raise DataError(reason, self._path, advice=_FORMS.get(key, ""))
    if key not in record:
      present = ", ".join(sorted(record)) or "nothing"
      reason = f"{place}: {key!r} is missing; found {present}."
      raise DataError(reason, self._path, advice=_FORMS.get(key, ""))
    value = record[key]
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
      what = _KIND_NAMES[kind]
      reason = f"{place}: {key!r} is {_shown(value)}, not {what}."
      raise DataError(reason, self._path, advice=_FORMS.get(key, ""))
    return value

  def _example(self, paragraph, qa, place) -> SquadExample | None:
    qas_id = self._get(qa, "id", (str, int), place)
    place = f"question {qas_id!r}"
    qa = self._without_empty_texts(qa)
    self._check_new(qas_id, place)
    if not paragraph.words:
      raise DataError(f"{place}: its context is empty.", self._path)
    example = SquadExample(
      qas_id,
      self._get(qa, "question", str, place),
      paragraph.words,
      answers=self._answers(qa, place),
      word_starts=paragraph.starts,
      context=paragraph.context,
    )
    if self._is_training and not self._add_target(example, paragraph, qa, place):
      return None
    return example

  def _check_new(self, qas_id, place) -> None:
    # As strings, as in the files of answers, where 7 and "7" are the same key.
    if str(qas_id) in self._seen:
      if not self._is_training:
        # Results are stored by id: of two questions with one id, one would be lost.
        raise DataError(f"{place}: this id is used by an earlier question.", self._path)
      self._repeated += 1
    self._seen.add(str(qas_id))

  def _without_empty_texts(self, qa) -> dict:
    """Removes answers without text; in 2.0 a question that has no others is impossible."""
    answers = qa.get("answers")
    if not isinstance(answers, list) or not any(map(_has_no_text, answers)):
      return qa
    rest = [answer for answer in answers if not _has_no_text(answer)]
    self._without_text += not rest
    if rest:
      return {**qa, "answers": rest}
    return {**qa, "answers": rest, "is_impossible": True} if self._version_2 else qa

  def _answers(self, qa, place) -> list[str] | None:
    """Reads the texts of the correct answers; None if the file has no answers."""
    if qa.get("answers") is None:
      return [] if self._version_2 and qa.get("is_impossible") is True else None
    answers = self._get(qa, "answers", list, place)
    texts = [self._get(answer, "text", str, f"{place}, an answer") for answer in answers]
    # Without `is_impossible` an empty list means the same as a missing one.
    return texts if texts or (self._version_2 and "is_impossible" in qa) else None

  def _add_target(self, example, paragraph, qa, place) -> bool:
    """Sets the answer to train on; False if it is not found in the context."""
    if self._version_2 and self._is_impossible(qa, place):
      example.is_impossible, example.orig_answer_text = True, ""
      example.start_position = example.end_position = -1
      return True
    if not example.answers:
      advice = "Use --version_2_with_negative where a paragraph does not answer some questions."
      if not qa.get("is_impossible"):
        advice = (
          'Remove the question, or mark it by "is_impossible": true (and all others by false) and '
          "use --version_2_with_negative."
        )
      raise DataError(
        f"{place}: training needs an answer to each question, and this one has none.",
        self._path,
        advice=advice,
      )
    self._several += len(example.answers) > 1
    answer = qa["answers"][0]
    if _has_no_text(answer):
      return False
    start = self._get(answer, "answer_start", int, f"{place}, an answer")
    found = _find_words(paragraph, answer["text"], start)
    if found is None:
      self._not_found += 1
      logging.warning(
        "Could not find answer: '%s' at character %d of the context of %s. Skipped.",
        answer["text"],
        start,
        place,
      )
      return False
    self._beside += paragraph.context[start : start + len(answer["text"])] != answer["text"]
    example.orig_answer_text, example.answer_start = answer["text"], start
    example.start_position, example.end_position = found
    return True

  def _is_impossible(self, qa, place) -> bool:
    if "is_impossible" not in qa:
      raise DataError(
        f"{place}: 'is_impossible' is missing.",
        self._path,
        advice="Is this a file of SQuAD 1.1? Train without --version_2_with_negative.",
      )
    return self._get(qa, "is_impossible", bool, place)

  def _report(self, num_examples) -> None:
    if not num_examples and self._not_found:
      raise DataError(
        f"no answer to its {self._questions_read} questions is at the given position.", self._path
      )
    without_text = "have an answer without text: "
    if self._version_2:
      without_text += "they count as questions without an answer"
    else:
      without_text += "if the paragraph does not answer them, use --version_2_with_negative"
    if not num_examples and self._without_text:
      raise DataError(f"all its questions {without_text}.", self._path)
    if not num_examples:
      raise DataError("the file contains no question.", self._path)
    for count, what in (
      (self._not_found, "were skipped: their answer is not at the given position"),
      (
        self._beside,
        "have an answer that is not exactly at its answer_start: its words are the answer",
      ),
      (self._without_text, without_text),
      (self._several, "have several answers: the first one is used for training"),
      (self._repeated, "have the id of an earlier question"),
    ):
      if count:
        logging.warning("%s: %d of %d questions %s.", self._path, count, self._questions_read, what)


_FORM = (
  'SQuAD\'s form is {"data": [{"paragraphs": [{"context": "...", "qas": [{"id": "...", '
  '"question": "...", "answers": [...]}]}]}]}. A line of JSON Lines is {"id": "...", '
  '"context": "...", "question": "...", "answers": {"text": ["..."], "answer_start": [12]}}.'
)
_ANSWERS = 'Its form is "answers": [{"text": "...", "answer_start": 12}].'
# Key -> what its place should look like.
_FORMS = {
  **dict.fromkeys(("data", "paragraphs", "context", "qas", "id", "question"), _FORM),
  **dict.fromkeys(("answers", "text", "answer_start"), _ANSWERS),
}
_KIND_NAMES = {
  list: "a list [...]",
  str: "text",
  int: "an integer",
  bool: "true or false",
  (str, int): "text",
}


def _is_question(record) -> bool:
  """Tells whether an object is a question with its paragraph, as in JSON Lines."""
  return isinstance(record, dict) and "question" in record and "context" in record


def _has_no_text(answer) -> bool:
  text = answer.get("text") if isinstance(answer, dict) else None
  return isinstance(text, str) and not text.strip()


def _shown(value) -> str:
  try:
    return f"{json.dumps(value):.60}"
  except RecursionError:  # a deeply nested value that can be read may be too deep to write
    return "a deeply nested value"


def _find_words(paragraph: _Paragraph, answer: str, start: int) -> tuple[int, int] | None:
  """Finds first and last word of an answer that begins at character `start`; None if it does not.

  Example:
    >>> paragraph = _Paragraph("Built in 1887-89.", ["Built", "in", "1887-89."], [0, 6, 9])
    >>> _find_words(paragraph, "1887", 9)
    (2, 2)
    >>> _find_words(paragraph, "1889", 9) is None
    True
  """
  end = start + len(answer) - 1
  if not answer.strip() or start < 0 or end >= len(paragraph.context):
    return None
  first, last = (bisect.bisect_right(paragraph.starts, i) - 1 for i in (start, end))
  found = " ".join(paragraph.words[first : last + 1])
  return (first, last) if " ".join(whitespace_tokenize(answer)) in found else None
