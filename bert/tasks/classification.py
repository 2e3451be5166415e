"""Examples and features: texts to classify, before and after tokenization.

  example = InputExample("train-1", "Is it late?", "It is.", label="1")
  features = convert_single_example(0, example, ["0", "1"], 128, tokenizer)
  features.input_ids     # [CLS] is it late ? [SEP] it is . [SEP], then zeros: 128 numbers
  features.label_id      # 1

A label's type follows the problem's: a class name (classification), a float (regression), a tuple
of class names (multi_label). Pure Python, no TensorFlow.
"""

import math
from collections.abc import Sequence

from absl import logging

from bert.io.tables import DataError
from bert.tasks.label_counts import unknown_label
from bert.tasks.sequence_lengths import SequenceLengths
from bert.text import sequence_layout
from bert.text.sequence_layout import layout_of

# Examples whose features are logged, as in the original.
_LOGGED = 5


class InputExample:
  """One text, or pair of texts, to classify.

  Attributes:
    guid: identifies the example in logs and predictions.
    text_a: the first text, not yet tokenized.
    text_b: the second text of a pair, or None.
    label: a class name; a float for regression; a tuple of class names for multi-label.
    source: "FILE, line N" if known, for error messages.
    is_labelled: False where `label` only fills the place of one, as in a test set, or is None.
  """

  def __init__(self, guid, text_a, text_b=None, label=None, source=None, is_labelled=True):
    self.guid = guid
    self.text_a = text_a
    self.text_b = text_b
    self.label = label
    self.source = source
    self.is_labelled = is_labelled

  def __repr__(self):
    return f"InputExample({self.guid!r}, {self.text_a!r}, {self.text_b!r}, {self.label!r})"


class PaddingInputExample:
  """Pads a batch to a fixed size, as TPUs need; it has no weight in any result."""


class InputFeatures:
  """One example as input of the model.

  Attributes:
    input_ids: `max_seq_length` ints: [CLS] text_a [SEP], then text_b [SEP] if any, then zeros; or
      as the tokenizer's layout has it.
    input_mask: 1 for a token, 0 for padding.
    segment_ids: 0 for the first text, 1 for the second, 0 for padding.
    label_id: the class's number; a float for regression; a 0 or 1 per class for multi-label.
    is_real_example: False for padding of a batch.
  """

  def __init__(self, input_ids, input_mask, segment_ids, label_id, is_real_example=True):
    self.input_ids = input_ids
    self.input_mask = input_mask
    self.segment_ids = segment_ids
    self.label_id = label_id
    self.is_real_example = is_real_example


def convert_single_example(
  ex_index: int,
  example: InputExample | PaddingInputExample,
  label_list: Sequence[str],
  max_seq_length: int,
  tokenizer,
  problem_type: str = "classification",
  shown: int = _LOGGED,
  lengths: SequenceLengths | None = None,
) -> InputFeatures:
  """Turns one example into features; the first ones are logged.

  Args:
    ex_index: the example's place in its set, counted from 0.
    example: what to convert.
    label_list: names of the classes, in the order of the model's outputs.
    max_seq_length: length of the features, special tokens included.
    tokenizer: a `tokenization.FullTokenizer`.
    problem_type: "classification", "multi_label" or "regression".
    shown: how many examples are logged; the rest of the first five are debug messages
      (`--verbosity=1`).
    lengths: counts the sequence by its length before it is cut.

  Raises:
    DataError: the label is unknown or missing.
    ValueError: `max_seq_length` leaves no room for the special tokens.
  """
  if isinstance(example, PaddingInputExample):
    blank = {"regression": 0.0, "multi_label": [0] * len(label_list)}.get(problem_type, 0)
    zeros = [0] * max_seq_length
    return InputFeatures(zeros, list(zeros), list(zeros), blank, is_real_example=False)
  tokens, segment_ids = join_texts(example, max_seq_length, tokenizer, lengths)
  features = InputFeatures(
    **padded(tokens, segment_ids, max_seq_length, tokenizer),
    label_id=label_id(example, label_list, problem_type),
  )
  if ex_index < _LOGGED:
    level = logging.INFO if ex_index < shown else logging.DEBUG
    _log_example(example, tokens, features, level)
  return features


def padded(tokens: list[str], segment_ids: list[int], length: int, tokenizer) -> dict[str, list]:
  """Returns `input_ids`, `input_mask` and `segment_ids` of tokens, padded to a length."""
  pad_ids, padding = layout_of(tokenizer).padding(tokens, length)
  return {
    "input_ids": tokenizer.convert_tokens_to_ids(tokens) + pad_ids,
    "input_mask": [1] * len(tokens) + padding,
    "segment_ids": segment_ids + padding,
  }


def unpadded(tokens: list[str], segment_ids: list[int], tokenizer) -> dict[str, list]:
  """Returns the same of tokens alone."""
  return padded(tokens, segment_ids, len(tokens), tokenizer)


def join_texts(
  example, max_seq_length, tokenizer, lengths: SequenceLengths | None = None
) -> tuple[list[str], list[int]]:
  """Returns tokens with [CLS] and [SEP], at most `max_seq_length`, and the segment of each."""
  tokens_a = tokenizer.tokenize(example.text_a)
  # A second text without any token, such as spaces, makes no second segment.
  tokens_b = tokenizer.tokenize(example.text_b) if example.text_b else []
  layout = layout_of(tokenizer)
  special = layout.num_special(bool(tokens_b))
  if max_seq_length < special:
    raise ValueError(f"max_seq_length is {max_seq_length}, but must be at least {special}.")
  if lengths is not None:
    lengths.add(special + len(tokens_a) + len(tokens_b))
  is_pair = bool(tokens_b)  # also if the second text is cut to nothing: it keeps its [SEP]
  _truncate_seq_pair(tokens_a, tokens_b, max_seq_length - special, layout)
  return layout.join(tokens_a, tokens_b if is_pair else None)


def _truncate_seq_pair(
  tokens_a: list[str],
  tokens_b: list[str],
  max_length: int,
  layout: sequence_layout.Layout = sequence_layout.BERT,
) -> None:
  """Shortens two lists in place until both together hold at most `max_length` tokens.

  The longer one loses its last token, repeatedly; of two equally long ones, the second.

  Example:
    >>> a, b = list("abcdef"), list("uvwxyz")
    >>> _truncate_seq_pair(a, b, 5)
    >>> "".join(a), "".join(b)
    ('abc', 'uv')
    >>> a, b = list("abcdef"), list("u")
    >>> _truncate_seq_pair(a, b, 5)
    >>> "".join(a), "".join(b)
    ('abcd', 'u')
  """
  keep_a, keep_b = layout.kept_lengths(len(tokens_a), len(tokens_b), max_length)
  del tokens_a[keep_a:]
  del tokens_b[keep_b:]


def label_id(
  example: InputExample, label_list: Sequence[str], problem_type: str = "classification"
) -> int | float | list[int]:
  """Returns the `InputFeatures.label_id` of an example; see `convert_single_example`.

  -1, or NaN for a number, if it has none and is not meant to have one.

  Raises:
    DataError: the label is unknown or missing.
  """
  label = example.label
  if label is None and not getattr(example, "is_labelled", True):
    missing: dict = {"regression": math.nan, "multi_label": [-1] * len(label_list)}
    return missing.get(problem_type, -1)
  if label is None:
    raise _label_error(example, "the example has no label.")
  if problem_type == "regression":
    try:
      return float(label)
    except (TypeError, ValueError, OverflowError):
      raise _label_error(example, f"the label {label!r:.80} is not a number.") from None
  names = label if isinstance(label, tuple | list) else [label]
  for name in names:
    if name not in label_list:
      raise _label_error(example, unknown_label(name, label_list))
  if problem_type == "multi_label":
    return [int(name in names) for name in label_list]
  return list(label_list).index(label)


def texts_of(examples: Sequence[InputExample]) -> dict[str, list[str]]:
  """Collects the texts of all examples, by column; the second where any has one."""
  texts = {name: [getattr(each, name) or "" for each in examples] for name in ("text_a", "text_b")}
  return texts if any(texts["text_b"]) else {"text_a": texts["text_a"]}


def _label_error(example: InputExample, reason: str) -> DataError:
  # Examples of a user's processor have no source; the guid then identifies the row.
  source = getattr(example, "source", None)
  return DataError(f"{source or 'example ' + str(example.guid)}: {reason}")


def _log_example(
  example: InputExample, tokens: list[str], features: InputFeatures, level: int
) -> None:
  logging.log(level, "*** Example ***")
  logging.log(level, "guid: %s", example.guid)
  logging.log(level, "tokens: %s", " ".join(tokens))
  for name in ("input_ids", "input_mask", "segment_ids"):
    logging.log(level, "%s: %s", name, " ".join(map(str, getattr(features, name))))
  # Examples of a user's processor do not say whether they have one.
  if getattr(example, "is_labelled", True):
    logging.log(level, "label: %s (id = %s)", example.label, features.label_id)
  else:
    logging.log(level, "label: none (stored as id %s)", features.label_id)


def convert_examples_to_features(
  examples: Sequence[InputExample | PaddingInputExample],
  label_list: Sequence[str],
  max_seq_length: int,
  tokenizer,
  problem_type: str = "classification",
) -> list[InputFeatures]:
  """Converts all examples, see `convert_single_example`."""
  features = []
  for index, example in enumerate(examples):
    if index % 10000 == 0:
      logging.info("Writing example %d of %d", index, len(examples))
    features.append(
      convert_single_example(index, example, label_list, max_seq_length, tokenizer, problem_type)
    )
  return features
