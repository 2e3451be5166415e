"""Tasks for a BERT with a head: types and settings; loss and accuracy of what has a label.

  config = NLPTaskConfig("ner", NLPTaskType.NAMED_ENTITY_RECOGNITION, num_classes=9)
  model = create_bert_with_head("base", config)            # task_models.py
  model.compile("adam", SparseCrossentropy(), [LabelledAccuracy()])

Letters in shapes: B = batch size, S = sequence length, C = number of classes.
"""

import dataclasses
import enum

import keras
from keras import ops

from bert.keras3.building_blocks import register, without_retired


class NLPTaskType(str, enum.Enum):
  """Types of tasks; values are the names in lower case.

  Attributes:
    kind: the type that stands for all with its head.
  """

  _kind: str
  # One label for a text, or for a pair of texts in one sequence.
  TEXT_CLASSIFICATION = "text_classification"
  SENTIMENT_ANALYSIS = "sentiment_analysis", TEXT_CLASSIFICATION
  EMOTION_DETECTION = "emotion_detection", TEXT_CLASSIFICATION
  INTENT_CLASSIFICATION = "intent_classification", TEXT_CLASSIFICATION
  TOPIC_CLASSIFICATION = "topic_classification", TEXT_CLASSIFICATION
  SPAM_DETECTION = "spam_detection", TEXT_CLASSIFICATION
  NATURAL_LANGUAGE_INFERENCE = "natural_language_inference", TEXT_CLASSIFICATION
  # One number for a text.
  TEXT_REGRESSION = "text_regression"
  READABILITY_SCORING = "readability_scoring", TEXT_REGRESSION
  QUALITY_SCORING = "quality_scoring", TEXT_REGRESSION
  # One label for each token.
  TOKEN_CLASSIFICATION = "token_classification"
  NAMED_ENTITY_RECOGNITION = "named_entity_recognition", TOKEN_CLASSIFICATION
  PART_OF_SPEECH_TAGGING = "part_of_speech_tagging", TOKEN_CLASSIFICATION
  SEQUENCE_LABELING = "sequence_labeling", TOKEN_CLASSIFICATION
  # A span of the text.
  QUESTION_ANSWERING = "question_answering"
  SPAN_EXTRACTION = "span_extraction", QUESTION_ANSWERING
  # One of several texts.
  MULTIPLE_CHOICE = "multiple_choice"
  # Similarity of two texts.
  TEXT_SIMILARITY = "text_similarity"
  PARAPHRASE_DETECTION = "paraphrase_detection", TEXT_SIMILARITY
  DUPLICATE_DETECTION = "duplicate_detection", TEXT_SIMILARITY
  # Words.
  MASKED_LANGUAGE_MODELING = "masked_language_modeling"

  def __new__(cls, value: str, kind: str = ""):
    """Makes a type of its value, and the value of its kind if that is another."""
    made = str.__new__(cls, value)
    made._value_ = value
    made._kind = kind or value
    return made

  @property
  def kind(self) -> "NLPTaskType":
    return NLPTaskType(self._kind)

  @classmethod
  def _missing_(cls, value):
    known = ", ".join(task.value for task in cls)
    raise ValueError(f"Unknown task {value!r}; known: {known}.")


_WITH_CLASSES = (
  NLPTaskType.TEXT_CLASSIFICATION,
  NLPTaskType.TOKEN_CLASSIFICATION,
  NLPTaskType.MULTIPLE_CHOICE,
)


@dataclasses.dataclass
class NLPTaskConfig:
  """Settings of a task and its head.

  Attributes:
    name: name of the head's layer and of its output.
    task_type: an `NLPTaskType`, or its value.
    num_classes: C; for multiple choice the number of choices. Regression has 1.
    dropout_rate: dropout before the output layer.
  """

  name: str
  task_type: NLPTaskType | str
  num_classes: int | None = None
  dropout_rate: float = 0.1

  def __post_init__(self):
    """Checks the values.

    Raises:
      ValueError: the type is unknown, or a value is missing or out of range.
    """
    self.task_type = NLPTaskType(self.task_type)
    if self.kind is NLPTaskType.TEXT_REGRESSION:
      self.num_classes = self.num_classes or 1
    count = self.num_classes
    if self.kind in _WITH_CLASSES and not (isinstance(count, int) and count > 1):
      raise ValueError(
        f"{self.name}: {self.task_type.value} needs num_classes of at least 2, not {count!r}."
      )
    if not 0 <= self.dropout_rate < 1:
      raise ValueError(
        f"{self.name}: dropout_rate is {self.dropout_rate}; it must be at least 0 and below 1."
      )

  @property
  def kind(self) -> NLPTaskType:
    """The kind of the task."""
    return NLPTaskType(self.task_type).kind


# ---------------------------------------------------------------------------------------------
# Losses and metrics.


@register
class SparseCrossentropy(keras.losses.Loss):
  """Cross-entropy of integer labels; a negative label means no label.

  The mean is over labelled examples.
  """

  def __init__(self, from_logits: bool = False, name: str = "sparse_crossentropy", **kwargs):
    super().__init__(name=name, **kwargs)
    self.from_logits = from_logits

  def call(self, y_true, y_pred):
    """Computes the loss of each label.

    Args:
      y_true: int `[...]` or `[..., 1]`.
      y_pred: float `[..., C]`.

    Returns:
      float32 `[...]`.
    """
    if len(y_true.shape) == len(y_pred.shape):
      y_true = ops.squeeze(y_true, -1)
    y_true, y_pred = ops.cast(y_true, "int32"), ops.cast(y_pred, "float32")
    labelled = ops.cast(y_true >= 0, "float32")
    if self.from_logits:
      log_probs = ops.log_softmax(y_pred, axis=-1)
    else:
      log_probs = ops.log(ops.clip(y_pred, keras.config.epsilon(), 1.0))
    picked = ops.take_along_axis(log_probs, ops.maximum(y_true, 0)[..., None], axis=-1)[..., 0]
    # Keras divides by the number of all labels; this corrects it to the number of valid ones.
    return -picked * labelled / ops.maximum(ops.mean(labelled), 1e-9)

  def get_config(self):
    """Returns the constructor's arguments."""
    return {**super().get_config(), "from_logits": self.from_logits}

  @classmethod
  def from_config(cls, config):
    """Creates the loss of a config, perhaps one that was written before."""
    return cls(**without_retired(config, {"label_smoothing": 0.0}))


@register
class LabelledAccuracy(keras.metrics.SparseCategoricalAccuracy):
  """The share of correct predictions among labelled examples; a negative label means no label."""

  def __init__(self, name: str = "accuracy", dtype=None):
    super().__init__(name=name, dtype=dtype)

  def update_state(self, y_true, y_pred, sample_weight=None):
    """Counts the correct predictions of a batch: labels int `[...]`, scores float `[..., C]`."""
    weights = ops.cast(y_true >= 0, "float32")
    if len(weights.shape) == len(y_pred.shape):
      weights = ops.squeeze(weights, -1)
    if sample_weight is not None:
      weights = weights * ops.cast(sample_weight, "float32")
    return super().update_state(ops.maximum(y_true, 0), y_pred, sample_weight=weights)
