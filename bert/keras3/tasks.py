"""Tasks for a BERT with a head: their types, settings, losses and metrics.

  config = NLPTaskConfig("ner", NLPTaskType.NAMED_ENTITY_RECOGNITION, num_classes=9)
  model = create_bert_with_head("base", config)            # task_models.py
  compile_for_tasks(model, [config], optimizer="adam")

Letters in shapes: B = batch size, S = sequence length, C = number of classes.
"""

import dataclasses
import enum
from collections.abc import Sequence

import keras
from keras import ops

from bert.keras3.building_blocks import register


class NLPTaskType(str, enum.Enum):
  """Types of tasks; values are the names in lower case. `TASKS_WITH_HEAD` have a head."""

  # One label for each token.
  TOKEN_CLASSIFICATION = "token_classification"
  NAMED_ENTITY_RECOGNITION = "named_entity_recognition"
  PART_OF_SPEECH_TAGGING = "part_of_speech_tagging"
  SEQUENCE_LABELING = "sequence_labeling"
  DEPENDENCY_PARSING = "dependency_parsing"
  SEMANTIC_ROLE_LABELING = "semantic_role_labeling"
  WORD_SENSE_DISAMBIGUATION = "word_sense_disambiguation"
  # One label for a text, or for a pair of texts in one sequence.
  TEXT_CLASSIFICATION = "text_classification"
  SENTIMENT_ANALYSIS = "sentiment_analysis"
  EMOTION_DETECTION = "emotion_detection"
  INTENT_CLASSIFICATION = "intent_classification"
  TOPIC_CLASSIFICATION = "topic_classification"
  SPAM_DETECTION = "spam_detection"
  NATURAL_LANGUAGE_INFERENCE = "natural_language_inference"
  # One number for a text.
  TEXT_REGRESSION = "text_regression"
  READABILITY_SCORING = "readability_scoring"
  QUALITY_SCORING = "quality_scoring"
  # A span of the text.
  QUESTION_ANSWERING = "question_answering"
  SPAN_EXTRACTION = "span_extraction"
  COREFERENCE_RESOLUTION = "coreference_resolution"
  EVENT_EXTRACTION = "event_extraction"
  RELATION_EXTRACTION = "relation_extraction"
  KEY_PHRASE_EXTRACTION = "key_phrase_extraction"
  FACT_EXTRACTION = "fact_extraction"
  OPINION_EXTRACTION = "opinion_extraction"
  # Similarity of two texts.
  TEXT_SIMILARITY = "text_similarity"
  PARAPHRASE_DETECTION = "paraphrase_detection"
  DUPLICATE_DETECTION = "duplicate_detection"
  TEXT_MATCHING = "text_matching"
  # One of several texts.
  MULTIPLE_CHOICE = "multiple_choice"
  RANKING = "ranking"
  # Words.
  MASKED_LANGUAGE_MODELING = "masked_language_modeling"
  TEXT_GENERATION = "text_generation"
  TEXT_SUMMARIZATION = "text_summarization"
  MACHINE_TRANSLATION = "machine_translation"
  TEXT_COMPLETION = "text_completion"
  DIALOGUE_GENERATION = "dialogue_generation"

  @classmethod
  def from_string(cls, name: str) -> "NLPTaskType":
    """Finds the type with this name, in upper or lower case.

    Raises:
      ValueError: the name is unknown.
    """
    try:
      return cls(str(name).lower())
    except ValueError:
      known = ", ".join(task.value for task in cls)
      raise ValueError(f"Unknown task {name!r}; known: {known}.") from None

  @classmethod
  def all_tasks(cls) -> list["NLPTaskType"]:
    """Returns every type."""
    return list(cls)


_T = NLPTaskType
_CLASSIFICATION = (
  _T.TEXT_CLASSIFICATION,
  _T.SENTIMENT_ANALYSIS,
  _T.EMOTION_DETECTION,
  _T.INTENT_CLASSIFICATION,
  _T.TOPIC_CLASSIFICATION,
  _T.SPAM_DETECTION,
  _T.NATURAL_LANGUAGE_INFERENCE,
)
_TAGGING = (
  _T.TOKEN_CLASSIFICATION,
  _T.NAMED_ENTITY_RECOGNITION,
  _T.PART_OF_SPEECH_TAGGING,
  _T.SEQUENCE_LABELING,
)
_ALIKE = (
  _CLASSIFICATION,
  (_T.TEXT_REGRESSION, _T.READABILITY_SCORING, _T.QUALITY_SCORING),
  _TAGGING,
  (_T.QUESTION_ANSWERING, _T.SPAN_EXTRACTION),
  (_T.MULTIPLE_CHOICE,),
  (_T.TEXT_SIMILARITY, _T.PARAPHRASE_DETECTION, _T.DUPLICATE_DETECTION),
  (_T.MASKED_LANGUAGE_MODELING,),
)
KINDS: dict[NLPTaskType, NLPTaskType] = {each: types[0] for types in _ALIKE for each in types}
"""Type of task -> the type that stands for all with its head, its loss and its metrics."""

_WITH_CLASSES = (_T.TEXT_CLASSIFICATION, _T.TOKEN_CLASSIFICATION, _T.MULTIPLE_CHOICE)
TASKS_WITH_HEAD = frozenset(KINDS)
_GENERATION_TASKS = frozenset(
  {
    _T.TEXT_GENERATION,
    _T.TEXT_SUMMARIZATION,
    _T.MACHINE_TRANSLATION,
    _T.TEXT_COMPLETION,
    _T.DIALOGUE_GENERATION,
  }
)


@dataclasses.dataclass
class NLPTaskConfig:
  """Settings of a task and its head.

  Attributes:
    name: name of the head's layer and of its output.
    task_type: an `NLPTaskType`, or its name.
    num_classes: C; for multiple choice the number of choices. Regression has 1.
    num_labels: synonym of `num_classes`.
    dropout_rate: dropout before the output layer.
    label_smoothing: share of the probability that the loss spreads over all classes.
    loss_weight: weight of this task's loss among several tasks.
  """

  name: str
  task_type: NLPTaskType | str
  num_classes: int | None = None
  num_labels: int | None = None
  dropout_rate: float = 0.1
  label_smoothing: float = 0.0
  loss_weight: float = 1.0

  def __post_init__(self):
    """Checks the values.

    Raises:
      ValueError: the type has no head, or a value is missing or out of range.
    """
    self.task_type = NLPTaskType.from_string(getattr(self.task_type, "value", self.task_type))
    _check_has_head(self.task_type)
    if None not in (self.num_classes, self.num_labels) and self.num_classes != self.num_labels:
      raise ValueError(
        f"{self.name}: num_classes {self.num_classes} and num_labels {self.num_labels} differ, but "
        "are synonyms; pass one of them."
      )
    self.num_classes = self.num_labels = self.num_classes or self.num_labels
    if not isinstance(self.num_classes or 0, int):
      raise ValueError(f"{self.name}: num_classes is {self.num_classes!r}; it must be a number.")
    if self.kind is _T.TEXT_REGRESSION:
      self.num_classes = self.num_labels = self.num_classes or 1
    needs_classes = self.kind in _WITH_CLASSES
    if needs_classes and not (self.num_classes and self.num_classes > 1):
      raise ValueError(
        f"{self.name}: {self.task_type.value} needs num_classes of at least 2, not "
        f"{self.num_classes}."
      )
    for key in ("dropout_rate", "label_smoothing"):
      value = getattr(self, key)
      if not 0 <= value < 1:
        raise ValueError(f"{self.name}: {key} is {value}; it must be at least 0 and below 1.")

  @property
  def kind(self) -> NLPTaskType:
    """The kind of the task, a value of `KINDS`."""
    return KINDS[NLPTaskType(self.task_type)]


def _check_has_head(task_type: NLPTaskType) -> None:
  if task_type in TASKS_WITH_HEAD:
    return
  reason = "it has no head"
  if task_type in _GENERATION_TASKS:
    reason = "an encoder cannot generate text"
  with_head = ", ".join(task.value for task in NLPTaskType if task in TASKS_WITH_HEAD)
  raise ValueError(f"{task_type.value} is not supported: {reason}. Supported are {with_head}.")


# ---------------------------------------------------------------------------------------------
# Losses and metrics.


@register
class SparseCrossentropy(keras.losses.Loss):
  """Cross-entropy of integer labels; a negative label means no label.

  The mean is over labelled examples. With label smoothing s, the probability of the label becomes
  1 - s, and s is spread over all C classes (arXiv:1512.00567).
  """

  def __init__(
    self,
    from_logits: bool = False,
    label_smoothing: float = 0.0,
    name: str = "sparse_crossentropy",
    **kwargs,
  ):
    super().__init__(name=name, **kwargs)
    self.from_logits = from_logits
    self.label_smoothing = label_smoothing

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
    smoothing = self.label_smoothing
    losses = -(1.0 - smoothing) * picked - smoothing * ops.mean(log_probs, axis=-1)
    # Keras divides by the number of all labels; this corrects it to the number of valid ones.
    return losses * labelled / ops.maximum(ops.mean(labelled), 1e-9)

  def get_config(self):
    """Returns the constructor's arguments."""
    return {
      **super().get_config(),
      "from_logits": self.from_logits,
      "label_smoothing": self.label_smoothing,
    }


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


def task_loss(config: NLPTaskConfig):
  """Creates the training loss of a task; for spans a dictionary with a loss for each end.

  Raises:
    ValueError: a similarity task has no default loss.
  """
  if config.kind is _T.TEXT_REGRESSION:
    return keras.losses.MeanSquaredError()
  if config.kind is _T.TEXT_SIMILARITY:
    raise ValueError(
      f"{config.name}: {_T(config.task_type).value} has no default loss; give one to model.compile."
    )
  has_spans = config.kind is _T.QUESTION_ANSWERING
  from_logits = has_spans or config.kind is _T.MASKED_LANGUAGE_MODELING
  loss = SparseCrossentropy(from_logits=from_logits, label_smoothing=config.label_smoothing)
  return {"start_logits": loss, "end_logits": loss} if has_spans else loss


def task_metrics(config: NLPTaskConfig):
  """Creates the metrics of a task: accuracy, or the root mean squared error of regression."""
  if config.kind is _T.TEXT_REGRESSION:
    return [keras.metrics.RootMeanSquaredError()]
  if config.kind is _T.QUESTION_ANSWERING:
    return {part: [LabelledAccuracy()] for part in ("start_logits", "end_logits")}
  return [LabelledAccuracy()]


def compile_for_tasks(
  model: keras.Model, configs: Sequence[NLPTaskConfig], optimizer="adam", **kwargs
) -> None:
  """Compiles a model with the losses, label smoothing, loss weights and metrics of its tasks.

  Args:
    model: result of `create_bert_with_head` for one task, `create_multi_task_bert` for several.
    configs: its tasks.
    optimizer: as in `compile`.
    **kwargs: further arguments of `compile`.
  """
  weights: list[float] | dict[str, float]
  if len(configs) == 1:
    [config] = configs
    loss, metrics, weights = task_loss(config), task_metrics(config), [config.loss_weight]
    if isinstance(loss, dict):
      weights = dict.fromkeys(loss, config.loss_weight)
  else:
    loss = {config.name: task_loss(config) for config in configs}
    metrics = {config.name: task_metrics(config) for config in configs}
    weights = {config.name: config.loss_weight for config in configs}
  model.compile(optimizer=optimizer, loss=loss, metrics=metrics, loss_weights=weights, **kwargs)
