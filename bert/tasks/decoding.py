"""Between texts and tokens, and between scores and answers, in Python: what engines do not compute.

  decoder = of_run(facts, settings, tokenizer, max_seq_length=128)
  rows = decoder.rows({"text_a": "It rains.", "text_b": ""})      # sequences, without padding
  scores = [{"logits": ...}]                                        # of each, by any engine
  decoder.decode({"text_a": "It rains.", "text_b": ""}, rows, scores)["label"]

What a model computes of tokens is `model.task_head.Head.scores`; an engine (`predicting/engines`)
computes it. A task says here how an item becomes rows, and what their scores mean: a row of
`kinds.py` names its class. Graphs that take strings (`exporting/task_model.py`) give the same
answers. No TensorFlow is needed.

Letters in shapes: S = sequence length of a row, C = number of classes.
"""

import copy
import inspect
import sys
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bert.tasks import classification, kinds, shown
from bert.text.sequence_layout import layout_of

Item = Mapping[str, Any]  # name -> a text, or a list of texts
# `input_ids`, `input_mask` and `segment_ids` of one sequence, lists of one length; and what an
# `Decoder` wants to remember of it.
Row = Mapping[str, Any]
Scores = Mapping[str, np.ndarray]  # of a row: what is of tokens has the length of the row


class Explained(NamedTuple):
  """A number that follows from scores, of which tokens are asked what they contributed."""

  what: str  # in words, after "to": `“yes”`, `the score`
  # For each of the rows, by what its scores count in the number: name -> array of a score's shape.
  weights: Sequence[Mapping[str, np.ndarray]]
  rows: Sequence[int] | None = None  # whose weights these are; None: all


def check_length(length: int, reader: Any) -> None:
  """Raises a ValueError where a number of tokens exceeds the `max_seq_length` of a reader."""
  if length > reader.max_seq_length:
    raise ValueError(
      f"The text has {length} tokens, special ones included, but the model reads "
      f"{reader.max_seq_length}, and it is not to be truncated."
    )


_EXAMPLE_TEXTS = ("The storm closed both runways.", "No aircraft could land.")


class Decoder:
  """From items to rows, and from the scores of the rows to an answer.

  Attributes:
    title: of the task, for people; "" where that is its name.
    default_length: of a model that does not say with how many tokens it was trained.
    inputs: names of an item's texts, in their order.
    list_inputs: those of them that are lists of texts.
    needs_pairs: whether `text_b` cannot be empty, because the model compares it with `text_a`.
    display: how an answer is best shown.
    has_raw_scores: whether `predictions` can list scores that are not probabilities yet.
    label_names: of the classes; empty where answers are none.
    own_example: an item of the data of the run, see `usage.py`; None where none is known.
    tokenizer: of the model.
    max_seq_length: the number of tokens in a row, special ones included, at most.
  """

  title: ClassVar[str] = ""
  default_length: ClassVar[int] = 128
  inputs: Sequence[str] = ("text_a", "text_b")
  list_inputs: ClassVar[tuple[str, ...]] = ()
  needs_pairs: ClassVar[bool] = False
  has_raw_scores: ClassVar[bool] = False
  # How an answer is best shown, for pages and reports: `classes`, `score`, `similarity`,
  # `entities`, `answer` (a part of a text), `choices`, or a plain table of its `values`.
  display: str = "values"
  label_names: Sequence[str] = ()
  own_example: Item | None = None

  def __init__(self, kind: kinds.Kind, tokenizer: Any, max_seq_length: int):
    self.tokenizer = tokenizer
    self.max_seq_length = max_seq_length
    self._is_of_tokens = kind.head_class().is_of_tokens

  @classmethod
  def of_run(
    cls, facts: Mapping[str, Any], settings: Mapping[str, Any], tokenizer, max_seq_length: int
  ) -> "Decoder":
    """Makes that of a trained model; subclasses take options, each with a default.

    Args:
      facts: the fingerprint of the run.
      settings: its flags.
      tokenizer: of the model.
      max_seq_length: longer texts are cut.
    """
    del settings
    return cls(kind_of(facts), tokenizer, max_seq_length)

  @classmethod
  def facts_of_outputs(
    cls, outputs: Collection[str], label_names: Sequence[str]
  ) -> dict[str, Any] | None:
    """Returns facts of a run whose SavedModel gives some outputs; None if it is of another kind.

    Args:
      outputs: names of the answers in the graph.
      label_names: of its classes; empty where they are not known.
    """
    del outputs, label_names
    return None

  @classmethod
  def head_settings(cls, options: Mapping[str, Any]) -> dict[str, Any]:
    """Returns settings of the run that some options replace, because the head reads them, too."""
    del options
    return {}

  @property
  def padding(self) -> dict[str, int]:
    """What fills up shorter rows of a batch; 0 where nothing is said."""
    return {"input_ids": layout_of(self.tokenizer).pad_id}

  def is_of_tokens(self, name: str) -> bool:
    """Returns whether scores of that name are of tokens, `[S, ...]` of each row."""
    return self._is_of_tokens(name)

  def other_item(self, item: Any) -> Item | None:
    """Returns an item in another form than texts by name; None for one that has no such form.

    Raises:
      ValueError: it is malformed.
    """
    del item
    return None

  def rows(self, item: Item) -> list[Row]:
    """Makes the sequences that the model reads, none or more; by default one of all texts."""
    return [self._row(*(item[name] for name in self.inputs))]

  def check_not_truncated(self, item: Item) -> None:
    """Raises a ValueError for an item of which `rows` leaves something out."""
    whole = copy.copy(self)
    whole.max_seq_length = sys.maxsize
    check_length(max((len(row["input_ids"]) for row in whole.rows(item)), default=0), self)

  def decode(self, item: Item, rows: Sequence[Row], scores: Sequence[Scores]) -> dict[str, Any]:
    """Makes the answer to an item from the scores of its rows: plain values and arrays by name."""
    raise NotImplementedError

  def shown(self) -> shown.Shown:
    """Returns how examples and answers are shown in reports; by default all values of an answer."""
    return shown.Shown()

  def explained(
    self, item: Item, rows: Sequence[Row], answer: Mapping[str, Any], scores: Sequence[Scores]
  ) -> Explained | None:
    """Says which sum of scores made the answer; by default the logit, or score, of what is given.

    None where there is no such sum.
    """
    del item, answer
    if len(rows) != 1 or self._is_of_tokens("logits"):
      return None
    values = scores[0].get("logits")
    if values is None or values.ndim > 1:
      return None
    return Explained("what the model says", [{"logits": against_others(values)}])

  # -------------------------------------------------------------------------------------------
  # As JSON, for a server's clients. Answers themselves are JSON once arrays are lists.

  @property
  def example(self) -> dict[str, Any]:
    """An item to try, and to show what the model takes: of the run's data, or a synthetic one."""
    own = self.own_example
    if own and set(own) <= set(self.inputs):
      return dict(own)
    return {name: text for name, text in self.synthetic_example().items() if name in self.inputs}

  @classmethod
  def synthetic_example(cls) -> dict[str, Any]:
    """Returns an item for which no data are needed."""
    return dict(zip(cls.inputs, _EXAMPLE_TEXTS, strict=False))

  def predictions(
    self, answer: Mapping[str, Any], scores: Sequence[Scores], raw_scores: bool = False
  ) -> list[dict[str, Any]]:
    """Lists an answer as labels with scores, the highest first: what servers of classifiers return.

    Args:
      answer: of `answer`.
      scores: of the rows that it was made of; only raw scores need them.
      raw_scores: whether scores are the model's own instead of probabilities, where it has both.

    Returns:
      Dicts with `label` and `score`, and what else belongs to them. The answer itself, where it is
      no such thing.
    """
    del scores, raw_scores
    return [dict(answer)]

  def relevance(self, answer: Mapping[str, Any], scores: Sequence[Scores]) -> float | None:
    """Returns how well `text_b` answers `text_a`, from 0 to 1 or unbounded, for ranking texts.

    None where the model does not compare two texts.
    """
    del answer, scores
    return None

  def raw_relevance(self, scores: Sequence[Scores]) -> float | None:
    """Returns the score that `relevance` turns into a probability; None where it does not."""
    del scores
    return None

  def _row(self, text_a: str, text_b: str = "") -> Row:
    """Makes the row of a text or a pair, cut as in training; an empty `text_b` is no text."""
    example = classification.InputExample(None, text_a, text_b or None)
    return classification.unpadded(
      *classification.join_texts(example, self.max_seq_length, self.tokenizer), self.tokenizer
    )


class TextDecoder(Decoder):
  """A custom task: one text or two, and the answer of the task's `decode`."""

  def __init__(self, kind, tokenizer, max_seq_length, labels: Sequence[str] | None = None):
    super().__init__(kind, tokenizer, max_seq_length)
    self._task = kind.task_class()(None, None, tokenizer)
    self._task.labels = labels

  @classmethod
  def of_run(cls, facts, settings, tokenizer, max_seq_length):
    """Makes that of a run; its labels are those of the head."""
    return cls(kind_of(facts), tokenizer, max_seq_length, facts["head"].get("labels"))

  def decode(self, item, rows, scores):
    """Has the task decode what its head predicts."""
    tokens = [self.tokenizer.inv_vocab[each] for each in rows[0]["input_ids"]]
    return self._task.decode(scores[0], tokens)

  def shown(self):
    """Asks the task."""
    return self._task.shown()


def of_run(
  facts: Mapping[str, Any],
  settings: Mapping[str, Any],
  tokenizer: Any,
  max_seq_length: int,
  **options: Any,
) -> Decoder:
  """Makes what answers with a trained model; see `Decoder.of_run` of its kind for the options.

  Raises:
    ValueError: the facts are of no task that is known, or an option is unknown.
  """
  decoder_class = kind_of(facts).decoder_class()
  check_options(decoder_class, options)
  return decoder_class.of_run(facts, settings, tokenizer, max_seq_length, **options)


def of_saved_model(
  inputs: Collection[str], outputs: Collection[str], label_names: Sequence[str], tokenizer: Any
) -> Decoder | None:
  """Makes what says the meaning of a SavedModel's answers; the graph makes rows and answers itself.

  Args:
    inputs: names of its texts.
    outputs: names of its answers.
    label_names: of its classes; empty where they are not known.
    tokenizer: of the model.

  Returns:
    None where no kind of task has such outputs.
  """
  for kind in kinds.registered().values():
    facts = kind.decoder_class().facts_of_outputs(outputs, label_names)
    if facts is not None and set(inputs) <= set(kind.decoder_class().inputs):
      found = of_run({**kind.facts, **facts}, {}, tokenizer, kind.decoder_class().default_length)
      found.inputs = tuple(name for name in found.inputs if name in inputs)
      return found
  return None


def check_options(decoder_class: type[Decoder], options: Mapping[str, Any]) -> None:
  """Raises a ValueError for an option that is unknown."""
  known = list(inspect.signature(decoder_class.of_run).parameters)[3:]
  check_known(decoder_class.__name__, options, known)


def check_known(what: str, options: Mapping[str, Any], known: Sequence[str]) -> None:
  """Raises a ValueError for an option that is not known, which lists those that are."""
  if unknown := sorted(set(options) - set(known)):
    raise ValueError(f"{what} has no option {', '.join(unknown)}. Its options: {', '.join(known)}.")


def kind_of(facts: Mapping[str, Any]) -> kinds.Kind:
  """Returns the kind of a model; raises a ValueError where none is known of it."""
  kind = kinds.of_facts(facts)
  if kind is None:
    raise ValueError(f"No task is known of a model whose facts are {', '.join(facts) or 'none'}.")
  return kind


# ---------------------------------------------------------------------------------------------
# Values.


def against_others(logits: np.ndarray, given: int | None = None) -> np.ndarray:
  """Returns weights of logits `[C]`: one minus the mean of the others; of a single one, itself.

  Args:
    logits: of classes.
    given: the number of the one; by default the largest.

  Example:
    >>> against_others(np.array([0.1, 0.9, 0.0])).tolist()
    [-0.5, 1.0, -0.5]
  """
  count = logits.size
  weights = np.full(logits.shape, -1 / max(count - 1, 1), np.float32)
  weights.reshape(-1)[int(np.argmax(logits)) if given is None else given] = 1
  return weights


def softmax(logits: np.ndarray) -> np.ndarray:
  """Computes probabilities over the last axis, in the type of the logits.

  Example:
    >>> softmax(np.array([1000.0, 1000.0])).tolist()
    [0.5, 0.5]
  """
  shares = np.exp(logits - logits.max(axis=-1, keepdims=True))
  return shares / shares.sum(axis=-1, keepdims=True)


def sigmoid(logits: np.ndarray) -> np.ndarray:
  """Computes the probability of each logit by itself, in the type of the logits.

  Example:
    >>> sigmoid(np.array([-1000.0, 0.0])).tolist()
    [0.0, 0.5]
  """
  shares = np.exp(-np.abs(logits))  # of the smaller of both odds: never too large
  return np.where(logits < 0, shares, np.ones_like(shares)) / (1 + shares)


def plain(value: Any) -> Any:
  """Bytes as text, NumPy's numbers as Python's; arrays of bytes as lists of text."""
  if isinstance(value, bytes):
    return value.decode("utf-8", "replace")
  if isinstance(value, np.ndarray) and value.ndim:
    return [plain(entry) for entry in value] if value.dtype.kind in "OS" else value
  if isinstance(value, np.ndarray | np.generic):
    return plain(value.item()) if isinstance(value.item(), bytes) else value.item()
  return value
