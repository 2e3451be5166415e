"""Examples of GLUE as transformers 2 and 3 had them, for code of 2019 and 2020.

  examples = glue_processors["mrpc"]().get_train_examples("glue_data/MRPC")
  dataset = glue_convert_examples_to_features(data["train"], tokenizer, 128, "mrpc")  # of tf.data

The files are read by `bert.tasks.glue`.
"""

import dataclasses
from collections.abc import Sequence
from typing import Any, ClassVar

import tensorflow as tf

from bert.tasks import glue

__all__ = (
  *("glue_convert_examples_to_features", "glue_output_modes", "glue_processors"),
  "glue_tasks_num_labels",
)


@dataclasses.dataclass
class InputExample:
  """A text, or a pair of them, with its label."""

  guid: str
  text_a: str
  text_b: str | None = None
  label: str | None = None


@dataclasses.dataclass(frozen=True)
class InputFeatures:
  """A tokenized example: ids, what is no padding, segments, and the number of its label."""

  input_ids: list[int]
  attention_mask: list[int] | None = None
  token_type_ids: list[int] | None = None
  label: int | float | None = None


class DataProcessor:
  """The base of a task's processor: reads its examples and names its labels.

  Attributes:
    task: the task's name in `bert.tasks.glue`, for those of GLUE.
    columns: names of the texts in `tensorflow_datasets`.
  """

  task: ClassVar[str] = ""
  columns: ClassVar[tuple[str, ...]] = ()

  def get_example_from_tensor_dict(self, tensor_dict) -> InputExample:
    """Makes an example of a row of `tensorflow_datasets`."""
    texts = [tensor_dict[name].numpy().decode("utf-8") for name in self.columns]
    idx, label = (tensor_dict[name].numpy() for name in ("idx", "label"))
    return InputExample(idx, texts[0], texts[1] if texts[1:] else None, str(label))

  def get_train_examples(self, data_dir: str) -> list[InputExample]:
    """Reads the examples to train on from the folder of a task."""
    return self._examples(self._reader().get_train_examples(data_dir))

  def get_dev_examples(self, data_dir: str) -> list[InputExample]:
    """Reads those to evaluate on."""
    return self._examples(self._reader().get_dev_examples(data_dir))

  def get_test_examples(self, data_dir: str) -> list[InputExample]:
    """Reads those to predict."""
    return self._examples(self._reader().get_test_examples(data_dir))

  def get_labels(self) -> list[str | None]:
    """Names the labels; `[None]` for a number."""
    labels: list[str | None] = list(self._reader().get_labels())
    return [None] if labels == ["score"] else labels

  def tfds_map(self, example: InputExample) -> InputExample:
    """Replaces the number of a label by its name."""
    if example.label is not None and len(self.get_labels()) > 1:
      example.label = self.get_labels()[int(example.label)]
    return example

  def _reader(self):
    if not self.task:
      raise NotImplementedError(f"{type(self).__name__} has no examples of its own.")
    return glue.create_processor(self.task)

  @staticmethod
  def _examples(read) -> list[InputExample]:
    return [InputExample(each.guid, each.text_a, each.text_b, str(each.label)) for each in read]


_SENTENCES = ("sentence1", "sentence2")
# Task -> the texts in `tensorflow_datasets`.
_TASKS: dict[str, tuple[str, ...]] = {
  "cola": ("sentence",),
  "mnli": ("premise", "hypothesis"),
  "mnli-mm": ("premise", "hypothesis"),
  "mrpc": _SENTENCES,
  "sst-2": ("sentence",),
  "sts-b": _SENTENCES,
  "qqp": ("question1", "question2"),
  "qnli": ("question", "sentence"),
  "rte": _SENTENCES,
  "wnli": _SENTENCES,
}

glue_processors = {
  task: type(f"{task.title()}Processor", (DataProcessor,), {"task": task, "columns": columns})
  for task, columns in _TASKS.items()
}
glue_output_modes = {name: "regression" if name == "sts-b" else "classification" for name in _TASKS}
glue_tasks_num_labels = {name: len(each().get_labels()) for name, each in glue_processors.items()}


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
  if not isinstance(examples, tf.data.Dataset):
    return _features(examples, tokenizer, max_length, task, label_list, output_mode)
  if task is None:
    raise ValueError("A tf.data.Dataset is of a task: give task=, such as 'mrpc'.")
  processor = glue_processors[task]()
  rows = [processor.tfds_map(processor.get_example_from_tensor_dict(each)) for each in examples]
  features = _features(rows, tokenizer, max_length, task, label_list, output_mode)
  names = [name for name in tokenizer.model_input_names if name != "label"]
  kind = tf.float32 if (output_mode or glue_output_modes[task]) == "regression" else tf.int64
  inputs = {name: tf.constant([getattr(f, name) for f in features], tf.int32) for name in names}
  labels = tf.constant([feature.label for feature in features], kind)
  return tf.data.Dataset.from_tensor_slices((inputs, labels))


def _features(examples, tokenizer, max_length, task, label_list, output_mode):
  examples = list(examples)
  if label_list is None and task is not None:
    label_list = glue_processors[task]().get_labels()
  mode = output_mode or glue_output_modes.get(task, "classification")
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
