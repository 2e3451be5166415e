"""Which classes there are, as dictionaries by transformers' names.

  TF_MODEL_FOR_MASKED_LM_MAPPING[BertConfig] is TFBertForMaskedLM

These are the tables of `configurations.py` and `task_models.py` by the class of the configuration.
"""

from bert.families import form
from bert.transformers.configurations import CONFIGS, PretrainedConfig
from bert.transformers.models import TFPreTrainedModel
from bert.transformers.task_models import CLASSES, class_with

_Mapping = dict[type[PretrainedConfig], type[TFPreTrainedModel]]


def _models_with(head: str) -> _Mapping:
  found = {CONFIGS[name]: class_with(head, name) for name in CLASSES}
  return {config: made for config, made in found.items() if made is not None}


TF_MODEL_MAPPING = _models_with(form.ENCODER)
TF_MODEL_FOR_PRETRAINING_MAPPING = _models_with(form.PRETRAINING)
TF_MODEL_FOR_MASKED_LM_MAPPING = _models_with(form.MASKED_TOKENS)
TF_MODEL_FOR_NEXT_SENTENCE_PREDICTION_MAPPING = _models_with(form.NEXT_SENTENCE)
TF_MODEL_FOR_SEQUENCE_CLASSIFICATION_MAPPING = _models_with(form.TEXTS)
TF_MODEL_FOR_TOKEN_CLASSIFICATION_MAPPING = _models_with(form.TOKENS)
TF_MODEL_FOR_QUESTION_ANSWERING_MAPPING = _models_with(form.SPANS)
TF_MODEL_FOR_MULTIPLE_CHOICE_MAPPING = _models_with(form.CHOICES)
__all__ = [name for name in dir() if name.endswith("_MAPPING")]
