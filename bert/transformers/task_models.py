"""A class for each family and head: `TFBertForSequenceClassification` and so on.

What a family has, `bert/families` says; what a head computes, `bert/keras3/models.py`.
"""

from typing import Any

from bert.families import FAMILIES, form
from bert.families.files import FILES, files_of
from bert.keras3 import models as keras_models
from bert.transformers import losses, outputs
from bert.transformers.configurations import CONFIGS, AutoConfig, PretrainedConfig
from bert.transformers.main_layers import registered
from bert.transformers.models import TFPreTrainedModel

_SUMMARY = {"summary_type": "first", "summary_activation": "gelu", "summary_use_proj": True}


class TFEncoderModel(TFPreTrainedModel):
  """The encoder without a head."""

  head = form.ENCODER

  @property
  def output_type(self):
    """With or without a pooler."""
    pooled = self.bert.pooler is not None
    return outputs.TFBaseModelOutputWithPooling if pooled else outputs.TFBaseModelOutput

  def _values(self, encoded):
    return {
      name: encoded[name] for name in ("last_hidden_state", "pooler_output") if name in encoded
    }


class TFForSequenceClassification(TFPreTrainedModel, keras_models.BertForSequenceClassification):
  """Scores for each text."""

  head = form.TEXTS
  label_names = ("labels",)
  output_type = outputs.TFSequenceClassifierOutput
  loss_of = staticmethod(losses.of_texts)


class TFForTokenClassification(TFPreTrainedModel, keras_models.BertForTokenClassification):
  """Scores for each token."""

  head = form.TOKENS
  label_names = ("labels",)
  output_type = outputs.TFTokenClassifierOutput
  loss_of = staticmethod(losses.of_tokens)


class TFForQuestionAnswering(TFPreTrainedModel, keras_models.BertForQuestionAnswering):
  """Scores each token as start and end of an answer."""

  head = form.SPANS
  label_names = ("start_positions", "end_positions")
  output_type = outputs.TFQuestionAnsweringModelOutput
  loss_of = staticmethod(losses.of_spans)


class TFForMultipleChoice(TFPreTrainedModel, keras_models.BertForMultipleChoice):
  """Scores for each of N texts: inputs `[B, N, S]`."""

  head = form.CHOICES
  label_names = ("labels",)
  output_type = outputs.TFMultipleChoiceModelOutput
  loss_of = staticmethod(losses.of_texts)

  def create_head(self) -> None:
    """Creates the layers behind the encoder.

    Raises:
      ValueError: ELECTRA's keys `summary_...` say something else than those of its models.
    """
    for key, value in _SUMMARY.items():
      if (found := getattr(self.config, key, value)) != value:
        raise ValueError(f"{key} is {found!r}; ELECTRA chooses with {value!r} alone here.")
    super().create_head()

  def dropout_rate(self, kind: str = "") -> float:
    """Returns the rate of dropout before the scores; ELECTRA has a key of its own for it."""
    rate = getattr(self.config, "summary_last_dropout", None)
    return super().dropout_rate(kind) if rate is None else rate


class TFForMaskedLM(TFPreTrainedModel, keras_models.BertForMaskedLM):
  """Scores the vocabulary for each token."""

  head = form.MASKED_TOKENS
  label_names = ("labels",)
  output_type = outputs.TFMaskedLMOutput
  loss_of = staticmethod(losses.of_masked_words)


class TFForNextSentencePrediction(TFPreTrainedModel, keras_models.BertForNextSentencePrediction):
  """Scores whether the second text follows the first."""

  head = form.NEXT_SENTENCE
  label_names = ("next_sentence_label",)
  output_type = outputs.TFNextSentencePredictorOutput
  loss_of = staticmethod(losses.of_sentences)


class TFForPreTraining(TFPreTrainedModel, keras_models.BertForPreTraining):
  """Both heads of pre-training."""

  head = form.PRETRAINING
  label_names = ("labels", "next_sentence_label")
  output_type: type[outputs.ModelOutput] = outputs.TFBertForPreTrainingOutput
  loss_of = staticmethod(losses.of_words_and_sentences)


class TFForSentenceOrder(TFForPreTraining):
  """Both heads of ALBERT's pre-training: as many orders of segments as there are labels."""

  label_names = ("labels", "sentence_order_label")
  output_type = outputs.TFAlbertForPreTrainingOutput

  def create_head(self) -> None:
    """Creates `predictions` and `sop_classifier`."""
    self.sentence_classes = self.num_labels
    super().create_head()


class TFForReplacedTokens(TFPreTrainedModel, keras_models.BertForReplacedTokens):
  """Scores which tokens were replaced: the discriminator of ELECTRA's pre-training."""

  head = form.PRETRAINING
  output_type = outputs.TFElectraForPreTrainingOutput


_MODELS = {
  form.ENCODER: TFEncoderModel,
  form.PRETRAINING: TFForPreTraining,
  form.MASKED_TOKENS: TFForMaskedLM,
  form.NEXT_SENTENCE: TFForNextSentencePrediction,
  form.TEXTS: TFForSequenceClassification,
  form.TOKENS: TFForTokenClassification,
  form.SPANS: TFForQuestionAnswering,
  form.CHOICES: TFForMultipleChoice,
}

_PRETRAINING = {"mlm_sop": TFForSentenceOrder, "electra": TFForReplacedTokens}
"""Objective of a family -> class of its pre-training, where that is not `TFForPreTraining`."""


def _classes_of(files) -> dict[str, type[TFPreTrainedModel]]:
  """Makes the classes of a family: its base, and one for each head that it has."""
  family, prefix = FAMILIES[files.name], f"TF{files.transformers.class_prefix}"
  common = {"config_class": CONFIGS[files.name], "base_model_prefix": files.name}
  base = _class(f"{prefix}PreTrainedModel", (TFPreTrainedModel,), common)
  made = {"PreTrainedModel": base}
  for head, model_class in _MODELS.items():
    if head in files.transformers.missing_heads:
      continue
    if head == form.PRETRAINING:
      model_class = _PRETRAINING.get(family.objective, model_class)
    made[head] = registered(_class(prefix + head, (model_class, base), common))
  return made


def _class(name: str, bases: tuple[type, ...], values) -> Any:
  text = (bases[0].__doc__ or "").partition("\n")[0]
  return type(name, bases, {**values, "__doc__": text, "__module__": __name__})


CLASSES = {name: _classes_of(files) for name, files in FILES.items()}
"""`model_type` -> end of the name of a class -> class."""

globals().update({each.__name__: each for made in CLASSES.values() for each in made.values()})


def class_with(head: str, family: str) -> type[TFPreTrainedModel] | None:
  """Finds the class of a family with a head; None if there is none.

  A family whose pre-training has nothing but masked words is pre-trained by the class for these.
  """
  made = CLASSES[family]
  return made.get(head) or (made[form.MASKED_TOKENS] if head == form.PRETRAINING else None)


class AutoModelClass:
  """The base of `TFAutoModel...`: finds the class of a model's family."""

  head = ""

  def __init__(self, *args, **kwargs):
    raise OSError(
      f"{type(self).__name__} is made by {type(self).__name__}.from_pretrained(name or folder) or "
      f"{type(self).__name__}.from_config(config)."
    )

  @classmethod
  def class_of(cls, config: PretrainedConfig) -> type[TFPreTrainedModel]:
    """Returns the class for a configuration.

    Raises:
      ValueError: the family has no such head.
    """
    found = class_with(cls.head, files_of(config.model_type).name)
    if found is None:
      reason = files_of(config.model_type).transformers.missing_heads[cls.head]
      raise ValueError(f"{type(config).__name__} is of a model without {cls.__name__}: {reason}.")
    return found

  @classmethod
  def from_config(cls, config: PretrainedConfig, **kwargs) -> TFPreTrainedModel:
    """Creates a model with random weights."""
    return cls.class_of(config)(config, **kwargs)

  @classmethod
  def from_pretrained(cls, pretrained_model_name_or_path, *args, **kwargs) -> TFPreTrainedModel:
    """Creates a model with the weights of a checkpoint; see `TFPreTrainedModel.from_pretrained`."""
    config = kwargs.get("config")
    if not isinstance(config, PretrainedConfig):
      config = AutoConfig.from_pretrained(
        config or pretrained_model_name_or_path, kwargs.get("cache_dir")
      )
    return cls.class_of(config).from_pretrained(pretrained_model_name_or_path, *args, **kwargs)


def _auto(head: str) -> type[AutoModelClass]:
  name = "TFAutoModel" + head.removeprefix(form.ENCODER)
  values = {"head": head, "__module__": __name__}
  return type(name, (AutoModelClass,), {**values, "__doc__": f"Finds the class `TF...{head}`."})


AUTO_CLASSES = {each.__name__: each for each in map(_auto, _MODELS)}
"""Name -> class."""

globals().update(AUTO_CLASSES)


def _models_with(head: str) -> dict[type[PretrainedConfig], type[TFPreTrainedModel]]:
  """Maps the class of a configuration to that of a model with a head."""
  found = {CONFIGS[name]: class_with(head, name) for name in CLASSES}
  return {config: made for config, made in found.items() if made is not None}


# As transformers names them: TF_MODEL_FOR_MASKED_LM_MAPPING[BertConfig] is TFBertForMaskedLM.
TF_MODEL_MAPPING = _models_with(form.ENCODER)
TF_MODEL_FOR_PRETRAINING_MAPPING = _models_with(form.PRETRAINING)
TF_MODEL_FOR_MASKED_LM_MAPPING = _models_with(form.MASKED_TOKENS)
TF_MODEL_FOR_NEXT_SENTENCE_PREDICTION_MAPPING = _models_with(form.NEXT_SENTENCE)
TF_MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING = _models_with(form.TEXTS)
TF_MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING = _models_with(form.TOKENS)
TF_MODEL_FOR_QUESTION_ANSWERING_MAPPING = _models_with(form.SPANS)
TF_MODEL_FOR_MULTIPLE_CHOICE_MAPPING = _models_with(form.CHOICES)
__all__ = [name for name in dir() if name.endswith("_MAPPING")]
