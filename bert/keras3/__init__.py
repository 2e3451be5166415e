"""BERT in Keras 3, on TensorFlow, JAX or PyTorch: the encoder, heads, tasks, training.

  config = NLPTaskConfig("sentiment", NLPTaskType.SENTIMENT_ANALYSIS, num_classes=3)
  model = create_bert_with_head("base", config, pretrained=True)
  model.compile(AdamWeightDecay(2e-5), "sparse_categorical_crossentropy", metrics=["accuracy"])
  model.fit({"input_ids": ids, "attention_mask": mask, "token_type_ids": segments}, labels)

This module is the door: everything public of the Keras side can be imported from here, and once it
is, `keras.models.load_model` needs no `custom_objects`. The backend is Keras's to choose, by the
environment variable KERAS_BACKEND.

  python __init__.py --count_params base large uncased_L-2_H-128_A-2

prints exact numbers of parameters, without making the models.
"""

import argparse
import os
from collections.abc import Mapping, Sequence

import keras
from keras import ops

from bert.keras3 import weights
from bert.keras3.data import ClassificationDataset, MLMDataset, NSPDataset
from bert.keras3.encoder import BERT, WEIGHTS_DATASETS, released_name, variant_arguments
from bert.keras3.evaluation import (
  compute_confusion_matrix,
  compute_precision_recall_f1,
  evaluate_classification_metrics,
)
from bert.keras3.feed_forward import FeedForward
from bert.keras3.heads import (
  MaskedLMHead,
  MultipleChoiceHead,
  NextSentenceHead,
  QuestionAnsweringHead,
  TaskHead,
  TextClassificationHead,
  TextSimilarityHead,
  TokenClassificationHead,
  create_nlp_head,
)
from bert.keras3.kit import (
  GELU,
  BERTForMaskedLM,
  BERTForSequenceClassification,
  BERTModel,
  LayerNorm,
  MultiHeadAttention,
  TransformerEncoderBlock,
  create_model_config,
  get_tokenizer,
)
from bert.keras3.layers import BertEmbeddings, TransformerLayer
from bert.keras3.loaders import (
  TextLoader,
  create_classification_dataloader,
  create_mlm_dataloader,
  create_nsp_dataloader,
)
from bert.keras3.models import (
  BertForMaskedLM,
  BertForMultipleChoice,
  BertForNextSentencePrediction,
  BertForPreTraining,
  BertForQuestionAnswering,
  BertForSequenceClassification,
  BertForTokenClassification,
  BertModel,
)
from bert.keras3.optimizer import AdamWeightDecay, WarmUpLinearDecay
from bert.keras3.parts import register
from bert.keras3.schedules import (
  AdamW,
  ConstantWithWarmup,
  CosineRestartsWithWarmup,
  CosineWithWarmup,
  InverseSqrtWithWarmup,
  LinearWithWarmup,
  PolynomialWithWarmup,
  get_constant_schedule_with_warmup,
  get_cosine_schedule_with_warmup,
  get_cosine_with_hard_restarts_schedule_with_warmup,
  get_inverse_sqrt_schedule,
  get_linear_schedule_with_warmup,
  get_polynomial_decay_schedule_with_warmup,
  get_scheduler,
)
from bert.keras3.tasks import (
  SIMILARITY_TASKS,
  LabelledAccuracy,
  NLPTaskConfig,
  NLPTaskType,
  SparseCrossentropy,
  compile_for_tasks,
  task_loss,
  task_metrics,
)
from bert.keras3.tokenizer import BertTokenizer
from bert.keras3.training import (
  AMPTrainer,
  compute_classification_loss,
  compute_mlm_loader_loss,
  compute_mlm_loss,
)
from bert.keras3.weights import LoadReport
from bert.model.configuration import RELEASED_SIZES, BertConfig

__all__ = [
  "BERT",
  "GELU",
  "RELEASED_SIZES",
  "WEIGHTS_DATASETS",
  "AMPTrainer",
  "AdamW",
  "AdamWeightDecay",
  "BERTForMaskedLM",
  "BERTForSequenceClassification",
  "BERTModel",
  "BertEmbeddings",
  "BertForMaskedLM",
  "BertForMultipleChoice",
  "BertForNextSentencePrediction",
  "BertForPreTraining",
  "BertForQuestionAnswering",
  "BertForSequenceClassification",
  "BertForTokenClassification",
  "BertModel",
  "BertTokenizer",
  "ClassificationDataset",
  "ConstantWithWarmup",
  "CosineRestartsWithWarmup",
  "CosineWithWarmup",
  "FeedForward",
  "InverseSqrtWithWarmup",
  "LabelledAccuracy",
  "LayerNorm",
  "LinearWithWarmup",
  "LoadReport",
  "MLMDataset",
  "MaskedLMHead",
  "MaskedLanguageModel",
  "MultiHeadAttention",
  "MultipleChoiceHead",
  "NLPTaskConfig",
  "NLPTaskType",
  "NSPDataset",
  "NextSentenceHead",
  "PolynomialWithWarmup",
  "QuestionAnsweringHead",
  "SparseCrossentropy",
  "TaskHead",
  "TextClassificationHead",
  "TextLoader",
  "TextSimilarityHead",
  "TokenClassificationHead",
  "TransformerEncoderBlock",
  "TransformerLayer",
  "WarmUpLinearDecay",
  "compile_for_tasks",
  "compute_classification_loss",
  "compute_confusion_matrix",
  "compute_mlm_loader_loss",
  "compute_mlm_loss",
  "compute_precision_recall_f1",
  "count_parameters",
  "create_bert_with_head",
  "create_classification_dataloader",
  "create_mlm_dataloader",
  "create_model_config",
  "create_multi_task_bert",
  "create_nlp_head",
  "create_nsp_dataloader",
  "evaluate_classification_metrics",
  "get_constant_schedule_with_warmup",
  "get_cosine_schedule_with_warmup",
  "get_cosine_with_hard_restarts_schedule_with_warmup",
  "get_inverse_sqrt_schedule",
  "get_linear_schedule_with_warmup",
  "get_polynomial_decay_schedule_with_warmup",
  "get_scheduler",
  "get_tokenizer",
  "released_name",
  "task_loss",
  "task_metrics",
  "variant_arguments",
]

_INPUTS = ("input_ids", "attention_mask", "token_type_ids")


def create_inputs(*axes: int | None, prefix: str = "") -> dict[str, keras.KerasTensor]:
  """The three inputs of a BERT, for functional models: int32 `[B, *axes]`.

  Args:
    *axes: sizes of the axes after the batch's; one axis of any length by default.
    prefix: before each input's name.
  """
  shape = axes or (None,)
  return {name: keras.Input(shape, dtype="int32", name=prefix + name) for name in _INPUTS}


def create_bert_with_head(
  bert_variant: str,
  task_config: NLPTaskConfig,
  pretrained: bool | str | os.PathLike = False,
  weights_dataset: str = "uncased",
  cache_dir: str | os.PathLike | None = None,
  bert_config_overrides: Mapping | None = None,
  head_config_overrides: Mapping | None = None,
) -> keras.Model:
  """An encoder with the head of a task, as one model.

  Its inputs are a dictionary of `input_ids`, `attention_mask` and `token_type_ids`, int `[B, S]`;
  for multiple choice `[B, N, S]`. With the head's argument `pair=True` a similarity task takes the
  inputs of two texts, the second's with `second_` before their names, and gives a score.

  Args:
    bert_variant: see `BERT.from_variant`.
    task_config: the task.
    pretrained: see `BERT.from_variant`.
    weights_dataset: see `BERT.from_variant`.
    cache_dir: see `BERT.from_variant`.
    bert_config_overrides: arguments of `BERT`.
    head_config_overrides: arguments of the head.

  Returns:
    A `keras.Model` that is not compiled yet.

  Raises:
    ValueError: the task has no head, or a name is unknown.
  """
  bert = BERT.from_variant(
    bert_variant, pretrained, weights_dataset, cache_dir, **(bert_config_overrides or {})
  )
  overrides = dict(head_config_overrides or {})
  if task_config.task_type is NLPTaskType.MASKED_LANGUAGE_MODELING:
    return MaskedLanguageModel(bert, **overrides)
  if task_config.task_type is NLPTaskType.MULTIPLE_CHOICE:
    return _multiple_choice_model(bert, create_nlp_head(task_config, **overrides))
  if task_config.task_type in SIMILARITY_TASKS and overrides.pop("pair", False):
    first, second = create_inputs(), create_inputs(prefix="second_")
    inputs = {**first, **{f"second_{name}": tensor for name, tensor in second.items()}}
    score = create_nlp_head(task_config, **overrides)([bert(first), bert(second)])
    return keras.Model(inputs, score, name=f"bert_{task_config.name}")
  inputs = create_inputs()
  head = create_nlp_head(task_config, **overrides)
  return keras.Model(inputs, head(bert(inputs)), name=f"bert_{task_config.name}")


def _multiple_choice_model(bert: BERT, head: MultipleChoiceHead) -> keras.Model:
  inputs = create_inputs(head.spec.num_choices, None)
  flat = {name: FlattenChoices(name=f"flat_{name}")(tensor) for name, tensor in inputs.items()}
  return keras.Model(inputs, head(bert(flat)), name=f"bert_{head.name}")


@register
class FlattenChoices(keras.layers.Layer):
  """`[B, N, S]` to `[B * N, S]`."""

  def call(self, inputs):
    """Puts the choices of a question one after the other."""
    return ops.reshape(inputs, (-1, ops.shape(inputs)[2]))

  def compute_output_spec(self, inputs):
    """Shape and type of the output."""
    return keras.KerasTensor((None, inputs.shape[2]), inputs.dtype)


def create_multi_task_bert(
  encoder: BERT | str, task_configs: Sequence[NLPTaskConfig], **kwargs
) -> keras.Model:
  """One encoder shared by the heads of several tasks; the outputs are a dictionary by task.

  Args:
    encoder: a `BERT`, or the name of a variant.
    task_configs: the tasks, with different names.
    **kwargs: of `BERT.from_variant`.

  Raises:
    ValueError: two tasks have one name.
  """
  names = [config.name for config in task_configs]
  if len(set(names)) < len(names):
    raise ValueError(f"Tasks need different names, not {', '.join(names)}.")
  bert = BERT.from_variant(encoder, **kwargs) if isinstance(encoder, str) else encoder
  inputs = create_inputs()
  outputs = bert(inputs)
  heads = {config.name: create_nlp_head(config)(outputs) for config in task_configs}
  return keras.Model(inputs, heads, name="bert_multi_task")


@register
class MaskedLanguageModel(keras.Model):
  """A BERT that scores every word of the vocabulary for each token: float32 `[B, S, V]`.

  No functional model, since the word embeddings, which are inside of the encoder, serve twice.

  Attributes:
    bert: the encoder.
    mlm: `MaskedLMHead`.
  """

  def __init__(self, bert: BERT, mlm: MaskedLMHead | None = None, **kwargs):
    super().__init__(**kwargs)
    self.bert = bert
    self.mlm = mlm or MaskedLMHead(
      bert.vocab_size, bert.hidden_act, bert.initializer_range, name="predictions"
    )
    self.build()

  def build(self, input_shape=None):
    """Creates the head's variables."""
    del input_shape
    if not self.mlm.built:
      self.mlm.build((None, None, self.bert.hidden_size))
    self.built = True

  def call(self, inputs, training=None):
    """Inputs as of `BERT`; also `masked_lm_positions`, int `[B, P]`, to score only those."""
    inputs = dict(inputs) if isinstance(inputs, dict) else {"input_ids": inputs}
    positions = inputs.pop("masked_lm_positions", None)
    states = self.bert(inputs, training=training)["last_hidden_state"]
    return self.mlm(states, self.bert.embeddings.word_embeddings, positions)

  def load_pretrained_weights(
    self, path: str | os.PathLike, skip_mismatch: bool = True
  ) -> LoadReport:
    """Gives encoder and head their values in a file; see `BERT.load_pretrained_weights`."""
    variables = {**self.bert.checkpoint_variables(), **self.mlm.checkpoint_variables()}
    return weights.load(variables, path, skip_mismatch)

  def get_config(self):
    """The constructor's arguments."""
    serialize = keras.saving.serialize_keras_object
    return {**super().get_config(), "bert": serialize(self.bert), "mlm": serialize(self.mlm)}

  @classmethod
  def from_config(cls, config, custom_objects=None):
    """The model of a config."""
    config = dict(config)
    for part in ("bert", "mlm"):
      config[part] = keras.saving.deserialize_keras_object(config[part], custom_objects)
    return cls(**config)


# ---------------------------------------------------------------------------------------------
# Counting.


def count_parameters(variant: str, weights_dataset: str = "uncased") -> int:
  """Number of floats of a variant, with its pooler; nothing of the model is made.

  Example:
    >>> count_parameters("base"), count_parameters("large")
    (109482240, 335141888)
  """
  sizes = variant_arguments(variant, weights_dataset)
  return BertConfig(
    vocab_size=sizes["vocab_size"],
    hidden_size=sizes["hidden_size"],
    num_hidden_layers=sizes["num_layers"],
    num_attention_heads=sizes["num_heads"],
    intermediate_size=sizes["intermediate_size"],
    type_vocab_size=sizes.get("type_vocab_size", 2),
  ).count_parameters()


def main(argv: Sequence[str] | None = None) -> None:
  """Prints what --count_params asks for."""
  parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
  parser.add_argument(
    "--count_params",
    nargs="+",
    required=True,
    metavar="NAME",
    help=f"{', '.join(BERT.MODEL_VARIANTS)}, or a released model such as uncased_L-2_H-128_A-2",
  )
  for name in parser.parse_args(argv).count_params:
    try:
      print(f"{name}: {count_parameters(name):,} parameters")
    except ValueError as error:
      parser.error(str(error))


if __name__ == "__main__":
  main()
