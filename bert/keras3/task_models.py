"""An encoder and the heads of one or several tasks as one Keras model.

  config = NLPTaskConfig("sentiment", NLPTaskType.SENTIMENT_ANALYSIS, num_classes=3)
  model = create_bert_with_head("base", config, pretrained=True)

Letters in shapes: B = batch size, S = sequence length, N = number of choices, V = vocabulary size.
"""

import os
from collections.abc import Mapping, Sequence

import keras
from keras import ops

from bert.checkpoints.load_report import LoadReport
from bert.keras3 import weights
from bert.keras3.encoder import BERT
from bert.keras3.heads import (
  MultipleChoiceHead,
  create_nlp_head,
)
from bert.keras3.input_checks import CheckedInputs
from bert.keras3.parts import register
from bert.keras3.saving import INPUTS, Savable
from bert.keras3.sizes import family_arguments, variant_arguments
from bert.keras3.tasks import SIMILARITY_TASKS, NLPTaskConfig, NLPTaskType
from bert.keras3.torch_modules import TorchModule
from bert.keras3.word_head import MaskedLMHead, create_masked_lm_head


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

  @property
  def bert(self) -> BERT:
    """The encoder."""
    return next(layer for layer in self.layers if isinstance(layer, BERT))

  def export_signature(self) -> list:
    """See `Savable`."""
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
  """The three inputs of a BERT, for functional models: int32 `[B, *axes]`.

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
  """An encoder with the head of a task, as one model.

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
  overrides = dict(head_config_overrides or {})
  pair = task_config.task_type in SIMILARITY_TASKS and overrides.pop("pair", False)
  masked_words = task_config.task_type is NLPTaskType.MASKED_LANGUAGE_MODELING
  bert_overrides = dict(bert_config_overrides or {})
  sizes_of_variant = {**variant_arguments(bert_variant, weights_dataset), **bert_overrides}
  overrides_of_head = {**family_arguments(sizes_of_variant), **overrides}
  head = None if masked_words else create_nlp_head(task_config, **overrides_of_head)
  bert_arguments = {"add_pooler": bool(head and head.reads_pooler), **bert_overrides}
  bert = BERT.from_variant(bert_variant, pretrained, weights_dataset, cache_dir, **bert_arguments)
  if head is None:
    return MaskedLanguageModel(bert, **overrides)
  if task_config.task_type is NLPTaskType.MULTIPLE_CHOICE:
    return _multiple_choice_model(bert, head)
  if pair:
    first, second = create_inputs(), create_inputs(prefix="second_")
    inputs = {**first, **{f"second_{name}": tensor for name, tensor in second.items()}}
    score = head([bert(first), bert(second)])
    return TaskModel(inputs, score, name=f"bert_{task_config.name}")
  inputs = create_inputs()
  return TaskModel(inputs, head(bert(inputs)), name=f"bert_{task_config.name}")


def _multiple_choice_model(bert: BERT, head: MultipleChoiceHead) -> keras.Model:
  inputs = create_inputs(head.spec.num_choices, None)
  flat = {name: FlattenChoices(name=f"flat_{name}")(tensor) for name, tensor in inputs.items()}
  return TaskModel(inputs, head(bert(flat)), name=f"bert_{head.name}")


@register
class FlattenChoices(TorchModule, keras.layers.Layer):
  """`[B, N, S]` to `[B * N, S]`."""

  def call(self, inputs):
    """Merges the axes of questions and choices."""
    return ops.reshape(inputs, (-1, ops.shape(inputs)[2]))

  def compute_output_spec(self, inputs):
    """Shape and type of the output."""
    return keras.KerasTensor((None, inputs.shape[2]), inputs.dtype)


def create_multi_task_bert(
  encoder: BERT | str, task_configs: Sequence[NLPTaskConfig], **kwargs
) -> keras.Model:
  """One encoder with the heads of several tasks; the outputs are a dictionary by task name.

  Args:
    encoder: a `BERT`, or the name of a variant.
    task_configs: the tasks, with different names.
    **kwargs: arguments of `BERT.from_variant`.

  Raises:
    ValueError: two tasks have the same name.
  """
  names = [config.name for config in task_configs]
  if not names:
    raise ValueError("There is no task; give at least one NLPTaskConfig.")
  if len(set(names)) < len(names):
    raise ValueError(f"Tasks need different names; got {', '.join(names)}.")
  if isinstance(encoder, str):
    family = family_arguments({**variant_arguments(encoder), **kwargs})
  else:
    family = family_arguments(vars(encoder))
  heads = [create_nlp_head(config, **family) for config in task_configs]
  if isinstance(encoder, str):
    add_pooler = any(head.reads_pooler for head in heads)
    encoder = BERT.from_variant(encoder, **{"add_pooler": add_pooler, **kwargs})
  inputs = create_inputs()
  outputs = encoder(inputs)
  scores = {config.name: head(outputs) for config, head in zip(task_configs, heads, strict=True)}
  return TaskModel(inputs, scores, name="bert_multi_task")


@register
class MaskedLanguageModel(TorchModule, CheckedInputs, Savable, keras.Model):
  """A BERT that scores every word of the vocabulary for each token: float32 `[B, S, V]`.

  It is not a functional model, because its head reads the encoder's word embeddings.

  Attributes:
    bert: the encoder.
    mlm: `MaskedLMHead`.
  """

  def __init__(self, bert: BERT, mlm: MaskedLMHead | None = None, **kwargs):
    super().__init__(**kwargs)
    self.bert = bert
    self.mlm = mlm or create_masked_lm_head(bert)
    self.build()

  def build(self, input_shape=None):
    """Creates the head's variables."""
    del input_shape
    if not self.mlm.built:
      self.mlm.build((None, None, self.bert.hidden_size))
    self.built = True

  def call(self, inputs, training=None):
    """Inputs as in `BERT`; `masked_lm_positions`, int `[B, P]`, selects the tokens to score."""
    inputs = dict(inputs) if isinstance(inputs, dict) else {"input_ids": inputs}
    positions = inputs.pop("masked_lm_positions", None)
    states = self.bert(inputs, training=training)["last_hidden_state"]
    return self.mlm(states, self.bert.embeddings.word_embeddings, positions)

  def load_pretrained_weights(
    self, path: str | os.PathLike, skip_mismatch: bool = True
  ) -> LoadReport:
    """Loads encoder and head from a file; see `BERT.load_pretrained_weights`."""
    variables = {**self.bert.checkpoint_variables(), **self.mlm.checkpoint_variables()}
    return weights.load(variables, path, skip_mismatch)

  def get_config(self):
    """The constructor's arguments."""
    serialize = keras.saving.serialize_keras_object
    return {**super().get_config(), "bert": serialize(self.bert), "mlm": serialize(self.mlm)}

  @classmethod
  def from_config(cls, config, custom_objects=None):
    """Creates the model of a config."""
    config = dict(config)
    for part in ("bert", "mlm"):
      config[part] = keras.saving.deserialize_keras_object(config[part], custom_objects)
    return cls(**config)
