"""A class for each family and head: `TFBertForSequenceClassification` and so on.

What a family has, `bert/checkpoints/families` says; what a head computes, `bert/keras3/models.py`.
"""

from typing import Any, ClassVar

from bert.checkpoints.families import FILES, files_of, form
from bert.keras3 import models as keras_models
from bert.keras3.heads import QuestionAnsweringHead
from bert.keras3.outputs import SpanOutput
from bert.keras3.pretraining_heads import NextSentenceHead
from bert.model.families import FAMILIES
from bert.transformers import losses, outputs
from bert.transformers.configurations import CONFIGS, AutoConfig, PretrainedConfig
from bert.transformers.head_settings import is_summarized, summarized
from bert.transformers.main_layers import registered
from bert.transformers.models import TFPreTrainedModel
from bert.transformers.own_models import OwnModel


class TFEncoderModel(TFPreTrainedModel):
  """The encoder without a head."""

  @property
  def output_type(self):
    """With or without a pooler."""
    pooled = self.bert.pooler is not None
    return outputs.TFBaseModelOutputWithPooling if pooled else outputs.TFBaseModelOutput

  def _values(self, encoded):
    return {
      name: encoded[name] for name in ("last_hidden_state", "pooler_output") if name in encoded
    }


class TFForSequenceClassification(TFPreTrainedModel):
  """Scores for each text."""

  head = form.TEXTS
  heads = keras_models.BertForSequenceClassification.heads
  label_names = ("labels",)
  output_type = outputs.TFSequenceClassifierOutput
  loss_of = staticmethod(losses.of_texts)


class TFForTokenClassification(TFPreTrainedModel):
  """Scores for each token."""

  head = form.TOKENS
  heads = keras_models.BertForTokenClassification.heads
  label_names = ("labels",)
  output_type = outputs.TFTokenClassifierOutput
  loss_of = staticmethod(losses.of_tokens)


class TFForQuestionAnswering(TFPreTrainedModel):
  """Scores each token as start and end of an answer."""

  head = form.SPANS
  heads: ClassVar = {"qa_outputs": QuestionAnsweringHead}
  label_names = ("start_positions", "end_positions")
  output_type = outputs.TFQuestionAnsweringModelOutput
  loss_of = staticmethod(losses.of_spans)

  def _outputs(self, outputs):
    return SpanOutput(**self.qa_outputs(outputs))


class TFForMultipleChoice(keras_models.BertForMultipleChoice, TFPreTrainedModel):
  """Scores for each of N texts: inputs `[B, N, S]`."""

  head = form.CHOICES
  label_names = ("labels",)
  output_type = outputs.TFMultipleChoiceModelOutput
  loss_of = staticmethod(losses.of_texts)

  def _outputs(self, outputs):
    if is_summarized(self.head, self.config):
      vectors = summarized(outputs["last_hidden_state"], self.config)
      outputs = {**outputs, "pooler_output": vectors}
    return super()._outputs(outputs)


class TFForMaskedLM(TFPreTrainedModel):
  """Scores the vocabulary for each token."""

  head = form.MASKED_TOKENS
  heads = keras_models.BertForMaskedLM.heads
  is_generator = True
  label_names = ("labels",)
  output_type = outputs.TFMaskedLMOutput
  loss_of = staticmethod(losses.of_masked_words)


class TFForNextSentencePrediction(TFPreTrainedModel):
  """Scores whether the second text follows the first."""

  head = form.NEXT_SENTENCE
  heads = keras_models.BertForNextSentencePrediction.heads
  label_names = ("next_sentence_label",)
  output_type = outputs.TFNextSentencePredictorOutput
  loss_of = staticmethod(losses.of_sentences)


class TFForPreTraining(TFPreTrainedModel):
  """Both heads of pre-training; of ELECTRA that of its discriminator."""

  head = form.PRETRAINING
  loss_of = staticmethod(losses.of_words_and_sentences)


@registered
class SentenceOrderHead(NextSentenceHead):
  """Scores the order of two segments, of ALBERT: as many numbers as there are labels."""

  @classmethod
  def _arguments_for(cls, bert, num_labels) -> dict:
    return {**super()._arguments_for(bert, num_labels), "num_outputs": num_labels}


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

# What the models of pre-training have, by the objective of their family.
_OF_TWO_HEADS = {
  "heads": keras_models.BertForPreTraining.heads,
  "output_class": keras_models.BertForPreTraining.output_class,
}
_OBJECTIVES: dict[str, dict[str, Any]] = {
  "mlm_nsp": {
    **_OF_TWO_HEADS,
    "label_names": ("labels", "next_sentence_label"),
    "output_type": outputs.TFBertForPreTrainingOutput,
  },
  "mlm_sop": {
    **_OF_TWO_HEADS,
    "heads": {**keras_models.BertForPreTraining.heads, "seq_relationship": SentenceOrderHead},
    "label_names": ("labels", "sentence_order_label"),
    "output_type": outputs.TFAlbertForPreTrainingOutput,
  },
}
_OF_REPLACED_TOKENS: dict[str, Any] = {
  "heads": keras_models.BertForReplacedTokens.heads,
  "output_type": outputs.TFElectraForPreTrainingOutput,
}


def _classes_of(files) -> dict[str, type[TFPreTrainedModel]]:
  """Makes the classes of a family: its base, and one for each head that it has."""
  family, prefix = FAMILIES[files.name], f"TF{files.transformers.class_prefix}"
  common = {"config_class": CONFIGS[files.name], "base_model_prefix": files.name}
  base = _class(f"{prefix}PreTrainedModel", (OwnModel,), common)
  made = {"PreTrainedModel": base}
  alias: dict[str, Any] = {}
  if files.name != "bert":
    alias[files.name] = property(lambda model: model.bert)  # as `model.roberta`
  for head, model_class in _MODELS.items():
    if head in files.transformers.missing_heads:
      continue
    values: dict[str, Any] = {**common, **alias}
    if head == form.PRETRAINING:
      values |= _OBJECTIVES.get(family.objective, _OF_REPLACED_TOKENS)
    made[head] = registered(_class(prefix + head, (model_class, base), values))
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

  head: ClassVar[str] = ""

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
