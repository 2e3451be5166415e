"""An encoder and the head of a task as one Keras model.

  config = NLPTaskConfig("sentiment", NLPTaskType.SENTIMENT_ANALYSIS, num_classes=3)
  model = create_bert_with_head("base", config, pretrained=True)

Letters in shapes: B = batch size, S = sequence length, N = number of choices.
"""

import os
from collections.abc import Mapping, Sequence

import keras
from keras import ops

from bert.keras3.building_blocks import register
from bert.keras3.encoder import BERT
from bert.keras3.heads import FAMILY_ARGUMENTS, create_nlp_head
from bert.keras3.input_checks import CheckedInputs
from bert.keras3.models import MaskedLanguageModel
from bert.keras3.saving import INPUTS, Savable
from bert.keras3.sizes import variant_arguments
from bert.keras3.tasks import NLPTaskConfig, NLPTaskType
from bert.keras3.torch_modules import TorchModule


@register
class TaskModel(TorchModule, CheckedInputs, Savable, keras.Model):
  """A functional model of an encoder and heads; of the inputs only `input_ids` must be given.

  As in the encoder, all tokens are visible without `attention_mask`, and of segment 0 without
  `token_type_ids`. On PyTorch `train()` and `eval()` reach all layers.
  """

  def __call__(self, inputs, *args, **kwargs):
    """Calls the model; `inputs` is a dictionary, or the ids alone.

    Raises:
      ValueError: ids are missing or out of range, or an input is unknown.
    """
    self.check_inputs(inputs)
    return super().__call__(complete_inputs(inputs, tuple(self.input)), *args, **kwargs)

  def call(self, inputs, training=None, mask=None):
    """Computes the outputs; on JAX `fit` and `predict` come here without `__call__`."""
    return super().call(complete_inputs(inputs, tuple(self.input)), training=training, mask=mask)

  @property
  def bert(self) -> BERT:
    """The encoder."""
    return next(layer for layer in self.layers if isinstance(layer, BERT))

  def export_signature(self) -> list:
    """Returns the signature of `export`; see `Savable`."""
    tensors = self.input.items()
    return [{n: keras.InputSpec(shape=t.shape, dtype="int32", name=n) for n, t in tensors}]


def complete_inputs(inputs, names: Sequence[str]) -> dict:
  """Adds the inputs that may be left out.

  Args:
    inputs: a dictionary, or `input_ids`.
    names: of the model's inputs; a second text's have a prefix.

  Raises:
    ValueError: ids are missing, or an input is unknown.
  """
  inputs = inputs if isinstance(inputs, Mapping) else {"input_ids": inputs}
  given = {name: _as_tensor(value) for name, value in inputs.items() if value is not None}
  needed = [name for name in names if name.endswith("input_ids")]
  if set(given) - set(names) or set(needed) - set(given):
    raise ValueError(
      f"The model needs {' and '.join(needed)} and also reads "
      f"{', '.join(name for name in names if name not in needed)}; got "
      f"{', '.join(map(str, inputs)) or 'none'}."
    )
  for ids in needed:
    prefix = ids.removesuffix("input_ids")
    given.setdefault(f"{prefix}attention_mask", ops.ones_like(given[ids], "int32"))
    given.setdefault(f"{prefix}token_type_ids", ops.zeros_like(given[ids], "int32"))
  return {name: given[name] for name in names}


def _as_tensor(ids):
  return ids if keras.utils.is_keras_tensor(ids) else ops.convert_to_tensor(ids, "int32")


def create_inputs(*axes: int | None, prefix: str = "") -> dict[str, keras.KerasTensor]:
  """Creates the three inputs of a BERT, for functional models: int32 `[B, *axes]`.

  Args:
    *axes: sizes of the axes after the batch axis; by default one axis of any length.
    prefix: put before each input's name.
  """
  shape = axes or (None,)
  return {name: keras.Input(shape, dtype="int32", name=prefix + name) for name in INPUTS}


def create_bert_with_head(
  bert_variant: str,
  task_config: NLPTaskConfig,
  pretrained: bool | str | os.PathLike = False,
  weights_dataset: str = "uncased",
  cache_dir: str | os.PathLike | None = None,
  bert_config_overrides: Mapping | None = None,
  head_config_overrides: Mapping | None = None,
) -> keras.Model:
  """Creates an encoder with the head of a task, as one model.

  Its inputs are a dictionary of `input_ids` and, optionally, `attention_mask` and
  `token_type_ids`, int `[B, S]`; for multiple choice `[B, N, S]`. With the head argument
  `pair=True`, a similarity task reads the inputs of two texts, the second with the prefix
  `second_`, and returns a score. The encoder has a pooler only if the head reads it.

  Args:
    bert_variant: see `BERT.from_variant`.
    task_config: the task.
    pretrained: see `BERT.from_variant`.
    weights_dataset: see `BERT.from_variant`.
    cache_dir: see `BERT.from_variant`.
    bert_config_overrides: arguments of `BERT` that replace the variant's.
    head_config_overrides: arguments of the head.

  Returns:
    A `TaskModel`, or a `MaskedLanguageModel`; not compiled.

  Raises:
    ValueError: the task has no head, or a name is unknown.
  """
  arguments = {
    "pretrained": pretrained,
    "weights_dataset": weights_dataset,
    "cache_dir": cache_dir,
    **(bert_config_overrides or {}),
  }
  overrides = dict(head_config_overrides or {})
  if task_config.kind is NLPTaskType.MASKED_LANGUAGE_MODELING:
    bert = BERT.from_variant(bert_variant, **{"add_pooler": False, **arguments})
    return MaskedLanguageModel(bert, **overrides)
  pair = task_config.kind is NLPTaskType.TEXT_SIMILARITY and overrides.pop("pair", False)
  sizes = {**variant_arguments(bert_variant), **arguments}
  family = {name: sizes[name] for name in FAMILY_ARGUMENTS if name in sizes}
  head = create_nlp_head(task_config, **{**family, **overrides})
  bert = BERT.from_variant(bert_variant, **{"add_pooler": head.reads_pooler, **arguments})
  name = f"bert_{task_config.name}"
  if task_config.kind is NLPTaskType.MULTIPLE_CHOICE:
    inputs = create_inputs(head.spec.num_choices, None)
    flat = {key: FlattenChoices(name=f"flat_{key}")(tensor) for key, tensor in inputs.items()}
    return TaskModel(inputs, head(bert(flat)), name=name)
  inputs = create_inputs()
  if not pair:
    return TaskModel(inputs, head(bert(inputs)), name=name)
  second = create_inputs(prefix="second_")
  inputs_of_both = {**inputs, **{f"second_{key}": tensor for key, tensor in second.items()}}
  return TaskModel(inputs_of_both, head([bert(inputs), bert(second)]), name=name)


@register
class FlattenChoices(TorchModule, keras.layers.Layer):
  """Merges the axes of questions and choices: `[B, N, S]` to `[B * N, S]`."""

  def call(self, inputs):
    """Reshapes one of the inputs."""
    return ops.reshape(inputs, (-1, ops.shape(inputs)[2]))
