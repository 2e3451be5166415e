"""Pairs of texts and how similar they are: examples, features, and scores of rankings.

  reader = PairReader(max_score=5.0)                 # columns text_a, text_b, score
  examples = reader.read("dev.csv", "dev")
  examples[0].texts, examples[0].score               # ("It rains.", "It is wet."), 0.8

A third text, in the column `negative`, is one that the first is not similar to. Each text is a
sequence of its own, `[CLS] text [SEP]`. Pure Python and NumPy, no TensorFlow.
"""

import dataclasses
from collections.abc import Iterable, Iterator, Sequence

import numpy as np
from absl import logging

from bert.io.table_columns import Column, TableReader
from bert.io.tables import DataError, Row
from bert.tasks import classification, user_tables
from bert.tasks.processors import Columns, parse_score, text_of
from bert.tasks.sequence_lengths import SequenceLengths
from bert.text.sequence_layout import layout_of

# Task name in lower case -> what `PairReader` takes.
TASKS = {
  "csv": {},
  "sts-b": {"text_a_column": "sentence1", "text_b_column": "sentence2", "max_score": 5.0},
}

# Two candidates this close have the same rank: batches of other lengths round otherwise.
_SAME_COSINE = 1e-6
_ROWS_AT_ONCE = 1024  # of the matrix of cosines


class PairExample(classification.InputExample):
  """Two texts and their similarity, or three: a text, a similar one, and one that is not.

  Attributes:
    texts: two, or three.
    score: on the scale 0 to 1; None if unknown.
  """

  def __init__(self, guid, texts, score, source=None):
    super().__init__(guid, texts[0], texts[1], score, source)
    self.texts = tuple(texts)
    self.score = score


class PairReader:
  """Reads pairs of texts from tables; the formats are those of `user_tables.CsvProcessor`."""

  def __init__(
    self,
    text_a_column: Column = "text_a",
    text_b_column: Column = "text_b",
    label_column: Column | None = None,
    negative_column: Column | None = None,
    id_column: Column | None = None,
    min_score: float = 0.0,
    max_score: float = 1.0,
    header: bool = True,
    skip_bad_rows: bool = False,
  ):
    """Describes the tables.

    Args:
      text_a_column: the text, by name or by number from 0.
      text_b_column: a second text.
      label_column: their similarity; by default `score` if that column exists.
      negative_column: a third text; by default `negative` if that column exists.
      id_column: identifies a pair in predictions; by default `id` if that column exists.
      min_score: the score of texts that have nothing in common.
      max_score: the score of texts of the same meaning.
      header: whether the first row of a TSV or CSV file names the columns.
      skip_bad_rows: whether malformed rows are skipped instead of raised.
    """
    self._reader = TableReader(skip_bad_rows)
    self._columns = Columns(
      text_a_column, text_b_column, label_column, id_column, header, negative_column, by_flags=True
    )
    self._scale = (min_score, max_score)
    self.texts_in: dict = {}  # the columns of the last file's texts, see `Columns.texts`

  def read(
    self, path: str, set_type: str, needs_scores: bool = False, takes_negatives: bool = True
  ) -> list[PairExample]:
    """Reads the pairs of a file.

    Args:
      path: `.csv`, `.tsv` or `.jsonl`.
      set_type: the beginning of each example's guid; in `test`, scores are not read.
      needs_scores: whether a file without scores is an error.
      takes_negatives: whether to read third texts.

    Raises:
      DataError: names file, line and reason.
    """
    rows = user_tables.read_rows(path, self._reader)
    columns = self._columns_in(rows[0], set_type, takes_negatives)
    self.texts_in = columns.texts()
    examples = self._reader.convert(
      rows,
      lambda row: self._example(row, set_type, columns),
      f"{set_type} examples",
      columns.header,
    )
    if needs_scores and examples[0].score is None:
      raise DataError(
        f"there is no column of scores; the header has {', '.join(map(str, rows[0]))}.",
        path,
        advice="Name it: --label_column.",
      )
    return examples

  def _columns_in(self, first_row: Row, set_type: str, takes_negatives: bool) -> Columns:
    given, defaults = self._columns, {}
    if set_type == "test":
      given = dataclasses.replace(given, label=None)
    else:
      defaults["label"] = "score"
    if takes_negatives:
      defaults["negative"] = "negative"
    else:
      given = dataclasses.replace(given, negative=None)
    columns = user_tables.resolve_columns(given, first_row, **defaults)
    if columns.text_a == columns.text_b:
      raise first_row.error(
        f"{columns.describe(columns.text_a)} is given as both texts.", "Correct --text_b_column."
      )
    return columns

  def _example(self, row: Row, set_type: str, columns: Columns) -> PairExample:
    texts = [text_of(row, columns, columns.text_a), text_of(row, columns, columns.text_b, True)]
    score = None if columns.label is None else self._score(row[columns.label], row)
    if columns.negative is not None:
      negative = row[columns.negative]
      if not isinstance(negative, str | None):
        raise row.error(f"the negative is {negative!r:.80}, not text.")
      texts.append((negative or "").strip())
      if negative == texts[1]:
        raise row.error("the negative is the second text again.")
    for name, text in zip(("first", "second"), texts, strict=False):
      if not text or not text.strip():
        raise row.error(f"the {name} text is empty.")
    guid = user_tables.guid_of(row, set_type, columns)
    return PairExample(guid, texts, score, row.source)

  def _score(self, value, row: Row) -> float:
    score, (low, high) = parse_score(value, row), self._scale
    if not low <= score <= high:
      raise row.error(
        f"the score {value!r:.80} is outside the scale from {low:g} to {high:g}.",
        "Give the ends of the scale, --min_score and --max_score, or skip such rows with "
        "--skip_bad_rows.",
      )
    return self.on_unit_scale(score)

  def on_unit_scale(self, score: float) -> float:
    """Converts a score of the tables to the scale from 0 to 1."""
    low, high = self._scale
    return (score - low) / (high - low)


# ---------------------------------------------------------------------------------------------
# Features.


@dataclasses.dataclass(frozen=True)
class PairFeatures:
  """The texts of a row as inputs of the model, each a sequence of its own."""

  # N lists of `max_seq_length` ints; zeros for a text that only fills the row.
  input_ids: Sequence[Sequence[int]]
  input_mask: Sequence[Sequence[int]]  # likewise, 1 for a token, 0 for padding
  score: float  # on the scale 0 to 1; 0 if unknown
  is_real_example: bool = True  # False for padding of a batch


def convert_examples_to_features(
  examples: Iterable[PairExample], max_seq_length: int, tokenizer, shown: int = 1
) -> Iterator[PairFeatures]:
  """Yields the features of each example; longer texts are cut, and counted in the log.

  All have the same number of texts; `max_seq_length` is of each, [CLS] and [SEP] included.
  """
  lengths = SequenceLengths()
  for index, example in enumerate(examples):
    texts = [classification.InputExample(example.guid, text) for text in example.texts]
    sequences = [
      classification.join_texts(text, max_seq_length, tokenizer, lengths)[0] if text.text_a else []
      for text in texts
    ]
    if index < shown:
      _log_example(example, sequences)
    padding = [layout_of(tokenizer).padding(tokens, max_seq_length) for tokens in sequences]
    ids = map(tokenizer.convert_tokens_to_ids, sequences)
    yield PairFeatures(
      [each + pad_ids for each, (pad_ids, _) in zip(ids, padding, strict=True)],
      [[1] * len(tokens) + zeros for tokens, (_, zeros) in zip(sequences, padding, strict=True)],
      float(example.score or 0.0),
    )
  lengths.log(max_seq_length)


def _log_example(example: PairExample, sequences: Sequence[Sequence[str]]) -> None:
  logging.info("*** Example ***")
  logging.info("guid: %s", example.guid)
  for tokens in sequences:
    logging.info("tokens: %s", " ".join(tokens))
  if example.score is not None:
    logging.info("score: %g", example.score)


# ---------------------------------------------------------------------------------------------
# Scores.


def ranking_scores(vectors: np.ndarray, is_text: np.ndarray) -> dict[str, float]:
  """Measures how well each text finds its partner among the second and third texts of all rows.

  Args:
    vectors: float `[M, N, W]` of all M rows.
    is_text: `[M, N]`, 0 for a text that only fills its row.

  Returns:
    `accuracy`: the share of rows whose partner is nearest. `mrr`: the mean of 1 / (place of the
    partner). Candidates as near as the partner, such as equal texts, do not come before it.

  Example:
    >>> a, b = [1.0, 0.0], [0.6, 0.8]
    >>> ranking_scores(np.array([[a, b], [b, b], [a, a]]), np.ones([3, 2]))["accuracy"]
    0.6666666666666666
  """
  return _scores_of_places([_places(rows) for rows in _cosines_by_rows(vectors, is_text)])


def _cosines_by_rows(vectors, is_text):
  """Yields float64 `[R, 1 + C]` of some rows at a time."""
  is_text = np.asarray(is_text, bool)
  vectors = np.asarray(vectors, np.float64)[is_text[:, 0]]
  is_text = is_text[is_text[:, 0]]
  norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
  vectors = vectors / np.where(norms == 0, 1.0, norms)
  candidates = np.concatenate(
    [vectors[is_text[:, column], column] for column in range(1, vectors.shape[1])]
  )
  for start in range(0, len(vectors), _ROWS_AT_ONCE):
    part = vectors[start : start + _ROWS_AT_ONCE]
    own = np.sum(part[:, 0] * part[:, 1], axis=-1, keepdims=True)  # [R, 1]
    yield np.concatenate([own, part[:, 0] @ candidates.T], axis=-1)


def _places(cosines):
  """Returns the place of the partner among the candidates of each row, from 1."""
  return 1 + np.sum(cosines[:, 1:] > cosines[:, :1] + _SAME_COSINE, axis=1)


def _scores_of_places(places):
  place = np.concatenate(places)
  return {"accuracy": float(np.mean(place == 1)), "mrr": float(np.mean(1.0 / place))}
