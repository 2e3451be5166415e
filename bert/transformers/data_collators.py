"""transformers' data collators, which also return TensorFlow's tensors, and do so by default.

  collate = DataCollatorWithPadding(tokenizer)
  batch = collate([tokenizer("One."), tokenizer("And another one.")])     # [2, S]

The batches are those of NumPy: which words a seed masks, `return_tensors="np"` decides, too.
"""

import dataclasses
from collections.abc import Sequence

import numpy as np

from bert.transformers.library import transformers
from bert.transformers.tokenization import as_arrays, to_tensorflow

__all__ = [
  "DataCollatorForLanguageModeling",
  "DataCollatorForMultipleChoice",
  "DataCollatorForSeq2Seq",
  "DataCollatorForTokenClassification",
  "DataCollatorWithPadding",
  "DefaultDataCollator",
  "default_data_collator",
  "tf_default_data_collator",
]

_LABELS = ("label", "label_ids", "labels")


def default_data_collator(features: Sequence, return_tensors: str = "tf") -> dict:
  """Stacks examples of one length; `label` or `label_ids` becomes `labels`.

  Args:
    features: dictionaries, or objects with attributes; texts and None are left out.
    return_tensors: "tf", "np" or "pt".

  Returns:
    name -> tensor `[B, ...]`; whole numbers of labels are int64, others float32.
  """
  if return_tensors != "tf":
    return transformers.default_data_collator(features, return_tensors)
  return to_tensorflow(transformers.default_data_collator(as_arrays(list(features)), "np"))


tf_default_data_collator = default_data_collator


class _TensorFlowBatches:
  """What is added to a class of transformers."""

  return_tensors: str

  def __call__(self, features, return_tensors=None):
    """Makes a batch; see transformers."""
    kind = return_tensors or self.return_tensors
    if kind != "tf":
      return super().__call__(features, return_tensors=kind)
    batch = to_tensorflow(super().__call__(as_arrays(list(features)), return_tensors="np"))
    return {"labels" if name == "label" else name: value for name, value in batch.items()}


@dataclasses.dataclass
class DefaultDataCollator(_TensorFlowBatches, transformers.DefaultDataCollator):
  """Does what `default_data_collator` does."""

  return_tensors: str = "tf"


@dataclasses.dataclass
class DataCollatorWithPadding(transformers.DataCollatorWithPadding):
  """Pads examples with `tokenizer.pad`; `label` or `label_ids` becomes `labels`."""

  return_tensors: str = "tf"

  def __call__(self, features):
    """Makes a batch, a `BatchEncoding`."""
    if self.return_tensors != "tf":
      return super().__call__(features)
    batch = dataclasses.replace(self, return_tensors="np")(as_arrays(list(features)))
    batch.data = to_tensorflow(batch.data, "int32")
    return batch


@dataclasses.dataclass
class DataCollatorForTokenClassification(
  _TensorFlowBatches, transformers.DataCollatorForTokenClassification
):
  """Pads examples and their labels, one per token."""

  return_tensors: str = "tf"


@dataclasses.dataclass
class DataCollatorForSeq2Seq(_TensorFlowBatches, transformers.DataCollatorForSeq2Seq):
  """Pads examples and labels of any length."""

  return_tensors: str = "tf"


@dataclasses.dataclass
class DataCollatorForLanguageModeling(
  _TensorFlowBatches, transformers.DataCollatorForLanguageModeling
):
  """Pads examples, and masks random tokens of them, which become `labels`."""

  return_tensors: str = "tf"


@dataclasses.dataclass
class DataCollatorForMultipleChoice(_TensorFlowBatches, transformers.DataCollatorForMultipleChoice):
  """Pads the choices of examples, which have a list for each, to one length."""

  return_tensors: str = "tf"

  def numpy_call(self, features):
    """Makes a batch: `[B, N, S]` for N choices, and int64 `labels` `[B]`, of `label` or `labels`.

    Raises:
      ValueError: examples have different numbers of choices.
    """
    numbers = {len(example["input_ids"]) for example in features}
    if len(numbers) != 1:
      raise ValueError(f"Examples have different numbers of choices: {sorted(numbers)}.")
    (count,) = numbers
    choices = [
      {name: values[i] for name, values in example.items() if name not in _LABELS}
      for example in features
      for i in range(count)
    ]
    padded = self.tokenizer.pad(
      choices,
      padding=self.padding,
      max_length=self.max_length,
      pad_to_multiple_of=self.pad_to_multiple_of,
      return_tensors="np",
    )
    batch = {name: value.reshape(len(features), count, -1) for name, value in padded.items()}
    label = next((name for name in _LABELS if name in features[0]), None)
    if label:
      batch["labels"] = np.array([example[label] for example in features], np.int64)
    return batch
