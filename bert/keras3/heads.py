"""Heads in Keras 3: layers on top of `BERT`, one for each kind of task.

  outputs = bert(inputs)
  sentiment = TextClassificationHead(num_classes=2, name="sentiment")(outputs)    # [B, 2]
  tags = TokenClassificationHead(num_classes=9, name="ner")(outputs)              # [B, S, 9]

A head reads the encoder's dictionary of outputs. It returns probabilities, the input of
`loss="sparse_categorical_crossentropy"`; with `output="logits"` logits, with `output="dict"` both.
Its output is float32 under every policy of mixed precision. The heads of pre-training are in
`pretraining_heads.py`.

Output layers have the original's variables, `output_weights` `[C, W]` and `output_bias` `[C]`; in
families whose heads are dense layers `kernel` `[W, C]` and `bias` `[C]`.

Letters in shapes: B = batch size, S = sequence length, W = width, C = number of classes, N =
choices.
"""

from typing import ClassVar

import keras
from keras import ops

from bert import families
from bert.checkpoints import keras_model
from bert.checkpoints.loading import original_names
from bert.keras3.attention import HIDDEN_SCORE
from bert.keras3.building_blocks import (
  Dropout,
  SpecLayer,
  create_dense,
  create_initializer,
  register,
  require_one_of,
)
from bert.keras3.tasks import NLPTaskConfig, NLPTaskType

OUTPUTS = ("probabilities", "logits", "dict")
POOLING_TYPES = ("pooler", "cls", "mean", "max")
SIMILARITIES = ("cosine", "dot")


@register
class TaskHead(SpecLayer):
  """Base of the heads below: dropout and one output layer.

  Attributes:
    original: the class whose variables checkpoints have, see `keras_model`; None of other heads.
    reads_pooler: whether it reads `pooler_output`.
  """

  original: str | None = None
  reads_pooler = False
  retired: ClassVar = {
    "use_task_attention": False,
    "use_ffn": False,
    "ffn_type": "mlp",
    "ffn_expansion_factor": 4,
    "num_heads": 4,
    "use_intermediate": False,
    "intermediate_size": None,
    "activation_type": "gelu",
  }

  def __init__(
    self,
    num_outputs: int,
    dropout_rate: float = 0.1,
    initializer_range: float = 0.02,
    use_bias: bool = True,
    output: str = "probabilities",
    model_type: str = "bert",
    transformers_heads: bool = False,
    classifier_activation: str | None = None,
    **kwargs,
  ):
    """Creates the head.

    Args:
      num_outputs: rows of `output_weights`.
      dropout_rate: dropout before the output layer.
      initializer_range: standard deviation of the initial kernels.
      use_bias: whether the output layer has a bias.
      output: `probabilities`, `logits`, or `dict` for both.
      model_type: the encoder's family, which decides names and initial values.
      transformers_heads: that of the encoder.
      classifier_activation: that of the encoder.
      **kwargs: arguments of `keras.layers.Layer`.

    Raises:
      ValueError: `output` or `model_type` is unknown.
    """
    super().__init__(**kwargs)
    require_one_of("output", output, OUTPUTS)
    require_one_of("model_type", model_type, tuple(families.FAMILIES))
    self.keep(locals())
    self.family = keras_model.family_of(vars(self.spec))
    self.is_dense = self.original is not None and keras_model.is_dense(self.original, self.family)
    self.hidden: keras.layers.Layer | None = None
    self.hidden_layer = keras_model.hidden_layer(self.original, self.family)
    if self.hidden_layer is not None:
      self.input_dropout = Dropout(
        dropout_rate if self.hidden_layer.drops_input else 0.0, dtype=self.dtype_policy
      )
      if not self.hidden_layer.scope:  # as in `model.heads.hidden_of`
        dropout_rate = 0.0
    self.dropout = Dropout(dropout_rate, dtype=self.dtype_policy)

  def build(self, input_shape):
    """Creates the variables."""
    width = input_shape["last_hidden_state"][-1]
    if self.hidden_layer is not None and not self.hidden_layer.scope:
      self.hidden = keras.layers.Activation(
        self.hidden_layer.activation, name="hidden", dtype=self.dtype_policy
      )
    elif self.hidden_layer is not None:
      self.hidden = create_dense(
        width,
        "hidden",
        self.dtype_policy,
        self.spec.initializer_range,
        self.hidden_layer.activation,
      )
      self.hidden.build((None, width))
    self._build_output(width)
    self.built = True

  def _build_output(self, width: int):
    shape, initializer_range = (self.spec.num_outputs, width), self.spec.initializer_range
    names = "output_weights", "output_bias"
    if self.is_dense:
      shape, initializer_range, names = shape[::-1], None, ("kernel", "bias")
    self.output_weights = self.add_weight(
      shape=shape, initializer=create_initializer(initializer_range), name=names[0]
    )
    self.output_bias = None
    if self.spec.use_bias:
      self.output_bias = self.add_weight(
        shape=(self.spec.num_outputs,), initializer="zeros", name=names[1]
      )

  def call(self, inputs):
    """Computes the head's outputs from the encoder's."""
    features = self._features(inputs)
    if self.hidden is not None:
      features = self.hidden(self.input_dropout(features))
    return self._deliver(self._linear(self.dropout(features)))

  def _features(self, inputs):
    """Returns the input of the output layer."""
    return inputs["last_hidden_state"]

  def _linear(self, x):
    """Computes logits: float `[..., W]` to float32 `[..., num_outputs]`."""
    matrix = ops.convert_to_tensor(self.output_weights)
    logits = ops.matmul(x, matrix if self.is_dense else ops.transpose(matrix))
    if self.output_bias is not None:
      logits = logits + self.output_bias
    return ops.cast(logits, "float32")

  def _probabilities(self, logits):
    return ops.softmax(logits, axis=-1)

  def _deliver(self, logits):
    if self.spec.output == "logits":
      return logits
    probabilities = self._probabilities(logits)
    if self.spec.output == "probabilities":
      return probabilities
    return {"logits": logits, "probabilities": probabilities}

  def checkpoint_variables(self) -> dict[str, keras.Variable]:
    """Returns the variables by their names in the original's checkpoints."""
    scope = "" if self.original is None else keras_model.scope_of(self.original, self.family)
    variables = original_names(self, scope.removesuffix("/"))
    if self.hidden_layer is not None and self.hidden_layer.scope:
      for leaf in ("kernel", "bias"):
        variables[f"{self.hidden_layer.scope}/{leaf}"] = variables.pop(f"{scope}hidden/{leaf}")
    return variables


# ---------------------------------------------------------------------------------------------
# One prediction per text.


@register
class TextClassificationHead(TaskHead):
  """Predicts one class, several classes or a number for each text."""

  original = "TextClassificationHead"
  reads_pooler = True  # unless `pooling_type` says otherwise

  def __init__(
    self,
    num_classes: int = 2,
    pooling_type: str = "pooler",
    activation: str = "softmax",
    **kwargs,
  ):
    """Creates the head.

    Args:
      num_classes: C.
      pooling_type: the vector of a text: the `pooler` output, as in the original; the first vector
        (`cls`); or the `mean` or `max` of all vectors except padding.
      activation: `softmax` for one class of C, `sigmoid` for any number of classes, `linear` for
        regression.
      **kwargs: arguments of `TaskHead`.

    Raises:
      ValueError: a name is unknown.
    """
    kwargs.pop("num_outputs", None)  # in a saved config
    super().__init__(num_outputs=num_classes, **kwargs)
    require_one_of("pooling_type", pooling_type, POOLING_TYPES)
    require_one_of("activation", activation, ("softmax", "sigmoid", "linear"))
    self.keep(locals())
    self.reads_pooler = pooling_type == "pooler"

  def _features(self, inputs):
    return pool(inputs, self.spec.pooling_type)

  def _probabilities(self, logits):
    functions = {"softmax": ops.softmax, "sigmoid": ops.sigmoid, "linear": lambda x: x}
    return functions[self.spec.activation](logits)


def pool(outputs, pooling_type: str):
  """Computes one vector for each text: `[B, W]`.

  Args:
    outputs: the outputs of `BERT`.
    pooling_type: one of `POOLING_TYPES`.

  Raises:
    ValueError: `pooling_type` is `pooler`, but the encoder has none.
  """
  states = outputs["last_hidden_state"]
  if pooling_type == "pooler":
    if "pooler_output" not in outputs:
      raise ValueError("This BERT has no pooler (add_pooler=False); choose another pooling_type.")
    return outputs["pooler_output"]
  if pooling_type == "cls":
    return states[..., 0, :]
  mask = ops.cast(outputs["attention_mask"], states.dtype)[..., None]  # [B, S, 1]
  if pooling_type == "max":
    return ops.max(states + (1.0 - mask) * HIDDEN_SCORE, axis=-2)
  return ops.sum(states * mask, axis=-2) / ops.maximum(ops.sum(mask, axis=-2), 1.0)


@register
class MultipleChoiceHead(TaskHead):
  """Chooses one of N texts: one score per text, with a softmax over the texts of a question.

  Reads the encoder's outputs for B * N texts, the N texts of a question in succession.
  """

  original = "MultipleChoiceHead"
  reads_pooler = True

  def __init__(self, num_choices: int, **kwargs):
    """Creates the head.

    Args:
      num_choices: N.
      **kwargs: arguments of `TaskHead`.
    """
    kwargs.pop("num_outputs", None)
    # A bias would have no effect: all choices would share it.
    super().__init__(**{"num_outputs": 1, "use_bias": False, **kwargs})
    self.keep(locals())

  def _features(self, inputs):
    pooled = pool(inputs, "pooler" if "pooler_output" in inputs else "cls")
    return ops.reshape(pooled, (-1, self.spec.num_choices, pooled.shape[-1]))

  def _linear(self, x):
    return super()._linear(x)[..., 0]  # [B, N]

  def compute_output_spec(self, inputs):
    """Returns shape and type, which Keras would infer from batches that N does not divide."""
    del inputs
    scores = keras.KerasTensor((None, self.spec.num_choices), "float32")
    return {"logits": scores, "probabilities": scores} if self.spec.output == "dict" else scores


@register
class TextSimilarityHead(SpecLayer):
  """Computes the vector of a text, or the similarity of two texts.

  Reads the encoder's outputs for one batch of texts, or for two.
  """

  def __init__(self, pooling_type: str = "mean", similarity_function: str = "cosine", **kwargs):
    """Creates the head.

    Args:
      pooling_type: the vector of a text: `pooler`, `cls`, `mean` or `max`.
      similarity_function: `cosine` or `dot` product.
      **kwargs: arguments of `keras.layers.Layer`.

    Raises:
      ValueError: a name is unknown.
    """
    super().__init__(**kwargs)
    require_one_of("pooling_type", pooling_type, POOLING_TYPES)
    require_one_of("similarity_function", similarity_function, SIMILARITIES)
    self.keep(locals())
    self.reads_pooler = pooling_type == "pooler"

  def call(self, inputs):
    """Computes vectors, float32 `[B, W]`; for a pair its similarity, float32 `[B]`."""
    if isinstance(inputs, dict):
      return self._embed(inputs)
    first, second = (self._embed(outputs) for outputs in inputs)
    return ops.sum(first * second, axis=-1)

  def _embed(self, outputs):
    vectors = ops.cast(pool(outputs, self.spec.pooling_type), "float32")
    is_cosine = self.spec.similarity_function == "cosine"
    return ops.normalize(vectors, axis=-1) if is_cosine else vectors


# ---------------------------------------------------------------------------------------------
# Predictions for tokens.


@register
class TokenClassificationHead(TaskHead):
  """Predicts a class for each token: `[B, S, C]`."""

  original = "TokenClassificationHead"

  def __init__(self, num_classes: int = 2, **kwargs):
    kwargs.pop("num_outputs", None)
    super().__init__(num_outputs=num_classes, **kwargs)
    self.keep(locals())


@register
class QuestionAnsweringHead(TaskHead):
  """Scores each token as start and end position: `start_logits`, `end_logits`, `[B, S]`."""

  original = "QuestionAnsweringHead"

  def __init__(self, mask_padding: bool = True, **kwargs):
    """Creates the head.

    Args:
      mask_padding: exclude padding from the answers. In the original, padding competes with the
        text in the training loss.
      **kwargs: arguments of `TaskHead`.
    """
    super().__init__(**{"num_outputs": 2, "output": "logits", "dropout_rate": 0.0, **kwargs})
    self.keep(locals())

  def _deliver(self, logits):
    return {"start_logits": logits[..., 0], "end_logits": logits[..., 1]}

  def call(self, inputs):
    """Computes the two scores of each token from the encoder's outputs."""
    scores = super().call(inputs)
    if not self.spec.mask_padding:
      return scores
    seen = ops.cast(inputs["attention_mask"], "bool")
    return {part: ops.where(seen, logits, HIDDEN_SCORE) for part, logits in scores.items()}


# ---------------------------------------------------------------------------------------------
# The head of a task.


FAMILY_ARGUMENTS = ("model_type", "transformers_heads", "classifier_activation")
"""Arguments of a `TaskHead` that are those of its encoder."""


def create_nlp_head(config: NLPTaskConfig, **overrides) -> keras.layers.Layer:
  """Creates the head of a task, except masked language modeling, which needs the word embeddings.

  Args:
    config: the task.
    **overrides: arguments of the head's class; of an encoder of another family than BERT also its
      `FAMILY_ARGUMENTS`.

  Raises:
    ValueError: the task is masked language modeling; use `create_bert_with_head`.
  """
  kind, classes = config.kind, {"num_classes": config.num_classes}
  heads: dict[NLPTaskType, tuple[type[keras.layers.Layer], dict]] = {
    NLPTaskType.TEXT_CLASSIFICATION: (TextClassificationHead, classes),
    NLPTaskType.TEXT_REGRESSION: (TextClassificationHead, {**classes, "activation": "linear"}),
    NLPTaskType.TOKEN_CLASSIFICATION: (TokenClassificationHead, classes),
    NLPTaskType.QUESTION_ANSWERING: (QuestionAnsweringHead, {}),
    NLPTaskType.MULTIPLE_CHOICE: (MultipleChoiceHead, {"num_choices": config.num_classes}),
    NLPTaskType.TEXT_SIMILARITY: (TextSimilarityHead, {}),
  }
  if kind not in heads:
    raise ValueError("Masked words are scored with the word embeddings; use create_bert_with_head.")
  head_class, arguments = heads[kind]
  if kind is NLPTaskType.TEXT_SIMILARITY:  # the same in every family, without dropout
    overrides = {name: x for name, x in overrides.items() if name not in FAMILY_ARGUMENTS}
  else:
    arguments = {**arguments, "dropout_rate": config.dropout_rate}
  return head_class(**{"name": config.name, **arguments, **overrides})
