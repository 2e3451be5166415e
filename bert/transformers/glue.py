"""Examples of GLUE as transformers 2 and 3 had them, for code of 2019 and 2020.

  examples = glue_processors["mrpc"]().get_train_examples("glue_data/MRPC")
  dataset = glue_convert_examples_to_features(data["train"], tokenizer, 128, "mrpc")  # of tf.data

The files are read by `bert.tasks.glue`.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any

import tensorflow as tf

from bert.tasks import glue
from bert.tasks.classification import InputExample
from bert.tasks.processors import DataProcessor

__all__ = [
  "DataProcessor",
  "InputExample",
  "glue_convert_examples_to_features",
  "glue_output_modes",
  "glue_processors",
  "glue_tasks_num_labels",
]


@dataclasses.dataclass(frozen=True)
class InputFeatures:
  """A tokenized example: ids, what is no padding, segments, and the number of its label."""

  input_ids: list[int]
  attention_mask: list[int] | None = None
  token_type_ids: list[int] | None = None
  label: int | float | None = None


class _ReadsDatasets(glue.GlueProcessor):
  """What a processor of GLUE has beside its own, for rows of `tensorflow_datasets`."""

  def get_example_from_tensor_dict(self, tensor_dict) -> InputExample:
    """Makes an example of a row."""
    columns = self.hub_columns or self.columns
    text_a, text_b = (
      tensor_dict[name].numpy().decode("utf-8") if name else None
      for name in (columns.text_a, columns.text_b)
    )
    idx, label = (tensor_dict[name].numpy() for name in ("idx", "label"))
    return InputExample(idx, text_a, text_b, str(label))

  def get_labels(self) -> list[str | None]:
    """Names the labels; `[None]` for a number."""
    return [None] if self.problem_type == "regression" else [*super().get_labels()]

  def tfds_map(self, example: InputExample) -> InputExample:
    """Replaces the number of a label by its name."""
    if len(self.get_labels()) > 1:
      example.label = self.get_labels()[int(example.label)]
    return example


glue_processors: dict[str, Any] = {
  task: type(processor.__name__, (_ReadsDatasets, processor), {})
  for task, processor in glue.PROCESSORS.items()
  if issubclass(processor, glue.GlueProcessor) and task != "ax"  # which has no training set
}
glue_output_modes = {task: made.problem_type for task, made in glue_processors.items()}
glue_tasks_num_labels = {task: len(made.labels) for task, made in glue_processors.items()}


def glue_convert_examples_to_features(
  examples,
  tokenizer,
  max_length: int | None = None,
  task: str | None = None,
  label_list: Sequence[str] | None = None,
  output_mode: str | None = None,
):
  """Tokenizes examples, padded to `max_length`.

  Args:
    examples: `InputExample`s; or a `tf.data.Dataset` of a task, as of `tensorflow_datasets`.
    tokenizer: of the model.
    max_length: number of tokens; by default as many as the model reads.
    task: a key of `glue_processors`, needed for a data set.
    label_list: names of the labels; by default those of the task.
    output_mode: "classification" or "regression"; likewise.

  Returns:
    `InputFeatures`; of a data set, one of pairs of inputs and label.

  Raises:
    ValueError: the task is missing or unknown.
  """
  if task is not None and task not in glue_processors:
    raise ValueError(f"There is no task {task!r}: {', '.join(glue_processors)}.")
  mode = output_mode or glue_output_modes.get(task or "", "classification")
  if isinstance(examples, tf.data.Dataset):
    if task is None:
      raise ValueError("A tf.data.Dataset is of a task: give task=, such as 'mrpc'.")
    processor = glue_processors[task]()
    rows = [processor.tfds_map(processor.get_example_from_tensor_dict(each)) for each in examples]
    features = glue_convert_examples_to_features(
      rows, tokenizer, max_length, task, label_list, output_mode
    )
    names = [name for name in tokenizer.model_input_names if name != "label"]
    inputs = {name: tf.constant([getattr(f, name) for f in features], tf.int32) for name in names}
    kind = tf.float32 if mode == "regression" else tf.int64
    labels = tf.constant([feature.label for feature in features], kind)
    return tf.data.Dataset.from_tensor_slices((inputs, labels))
  examples = list(examples)
  if label_list is None and task is not None:
    label_list = glue_processors[task]().get_labels()
  number_of = {label: number for number, label in enumerate(label_list or ())}

  def label_of(example) -> Any:
    if example.label is None:
      return None
    return float(example.label) if mode == "regression" else number_of[example.label]

  encoded = tokenizer(
    [example.text_a for example in examples],
    [example.text_b for example in examples] if any(e.text_b for e in examples) else None,
    max_length=max_length or tokenizer.model_max_length,
    padding="max_length",
    truncation=True,
  )
  return [
    InputFeatures(
      **{name: values[number] for name, values in encoded.items()}, label=label_of(each)
    )
    for number, each in enumerate(examples)
  ]
