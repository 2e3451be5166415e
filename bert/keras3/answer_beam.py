"""ELECTRA's own head for questions: ends depend on their starts, and it may say "no answer".

  model = keras3.BertForAnswerBeam.from_pretrained("output/squad")  # of --answer_head=electra
  outputs = model(inputs)
  outputs.start_top_index[:, 0], outputs.end_top_index[:, 0, 0]     # the best span of each text

It computes what `bert/model/span_heads.py` computes; answers may lie at [CLS] and in segment 1.

Letters in shapes: B = batch size, S = sequence length, W = hidden size, K = starts in a beam and
ends for each of them.
"""

from collections.abc import Iterable
from types import SimpleNamespace

import keras
from keras import ops

from bert.keras3.building_blocks import register
from bert.keras3.heads import EncoderHead
from bert.keras3.outputs import AnswerBeamOutput
from bert.keras3.weights import original_names
from bert.model.answer_heads import AnswerHead

_HIDDEN_SIZE = 512  # whatever the model's is
_HIDDEN_SCORE = -1000.0
_MISSING = -1e30  # the log probability of what a short sequence lacks
_SCOPE = AnswerHead.scope


@register
class AnswerBeamHead(EncoderHead):
  """Scores starts, ends given a start, and whether there is an answer."""

  def __init__(
    self,
    joint_prediction: bool = True,
    answerable_classifier: bool = True,
    answerable_uses_start_logits: bool = True,
    beam_size: int = 20,
    **kwargs,
  ):
    """Creates the head; flags of `run_squad.py --answer_head=electra` have the same names.

    Args:
      joint_prediction: score ends given the start; without it there is no beam.
      answerable_classifier: score whether there is an answer.
      answerable_uses_start_logits: with a hidden layer that sees the likely starts.
      beam_size: K.
      **kwargs: arguments of `keras.layers.Layer`.
    """
    super().__init__(**kwargs)
    self.spec = SimpleNamespace(
      joint_prediction=joint_prediction,
      answerable_classifier=answerable_classifier,
      answerable_uses_start_logits=answerable_uses_start_logits,
      beam_size=beam_size,
    )
    for layer, units in self._units().items():
      setattr(self, layer, keras.layers.Dense(units, name=layer, dtype="float32"))

  @classmethod
  def for_encoder(cls, bert, num_labels: int | None = None) -> "AnswerBeamHead":
    """Creates the head `squad` with all its parts; see `EncoderHead`."""
    del num_labels
    if not bert.family.has_task_scopes:
      raise ValueError(f"{bert.family.title} has no such head for questions; ELECTRA has.")
    return cls(name="squad")

  @classmethod
  def of_variables(cls, names: Iterable[str]) -> "AnswerBeamHead":
    """Creates the head `squad` with the parts that a checkpoint has, whatever its scope.

    Raises:
      ValueError: it has none of them.
    """
    layers = {name.split("/")[2] for name in names if name.startswith("task_specific/")}
    if "dense_1" not in layers:
      raise ValueError(
        "the model has no head of ELECTRA's own for questions, which fine-tuning makes with "
        "--answer_head=electra. BertForQuestionAnswering has the other kind."
      )
    return cls(
      joint_prediction="qa_hidden" in layers,
      answerable_classifier="dense_2" in layers,
      answerable_uses_start_logits="dense_3" in layers,
      name="squad",
    )

  def _units(self) -> dict[str, int]:
    """Names the layers, as ELECTRA's checkpoints do, in order of creation."""
    units = {"dense": 1}
    if self.spec.joint_prediction:
      units["qa_hidden"] = _HIDDEN_SIZE
    units["dense_1"] = 1
    if self.spec.answerable_classifier:
      hidden = self.spec.answerable_uses_start_logits
      units |= {"dense_2": _HIDDEN_SIZE, "dense_3": 1} if hidden else {"dense_2": 1}
    return units

  def build(self, input_shape):
    """Creates the variables."""
    width = input_shape["last_hidden_state"][-1]
    both = {"qa_hidden": 2 * width, "dense_3": _HIDDEN_SIZE}
    both["dense_1"] = _HIDDEN_SIZE if self.spec.joint_prediction else width
    both["dense_2"] = 2 * width if self.spec.answerable_uses_start_logits else width
    for name in self._units():
      getattr(self, name).build((None, both.get(name, width)))
    self.built = True

  def call(self, inputs):
    """Computes the head's outputs from the encoder's.

    Args:
      inputs: `last_hidden_state` `[B, S, W]`, `attention_mask` and `token_type_ids` `[B, S]`, and
        perhaps `start_positions`, int `[B]`, the right starts, which ends are then scored for.

    Returns:
      The values of an `AnswerBeamOutput` by name.
    """
    spec, states = self.spec, ops.cast(inputs["last_hidden_state"], "float32")
    allowed = ops.cast(inputs["attention_mask"], "float32")
    allowed = allowed * ops.cast(inputs["token_type_ids"], "float32")
    allowed = ops.concatenate([ops.ones_like(allowed[:, :1]), allowed[:, 1:]], axis=1)
    hidden = _HIDDEN_SCORE * (1.0 - allowed)  # [B, S]
    start_logits = self.dense(states)[..., 0] + hidden
    found = {**dict.fromkeys(AnswerBeamOutput._fields), "start_logits": start_logits}
    if not spec.joint_prediction:
      found["end_logits"] = self.dense_1(states)[..., 0] + hidden
    elif (positions := inputs.get("start_positions")) is not None:
      found["end_logits"] = self._ends(states, ops.reshape(positions, (-1, 1)), hidden)[:, 0]
    if spec.joint_prediction:
      starts, start_index = _best(ops.log_softmax(start_logits), spec.beam_size)
      ends = ops.log_softmax(self._ends(states, start_index, hidden))  # [B, K, S]
      found |= {"start_top_log_probs": starts, "start_top_index": start_index}
      best_ends = _best(ends, spec.beam_size)
      found["end_top_log_probs"], found["end_top_index"] = best_ends
    if spec.answerable_classifier:
      found["null_logit"] = self._null(states, start_logits)
    return found

  def _ends(self, states, starts, hidden):
    """Scores ends given starts, int `[B, K]`: float32 `[B, K, S]`."""
    width = states.shape[-1]
    kernel = ops.convert_to_tensor(self.qa_hidden.kernel)
    of_starts = ops.take_along_axis(states, ops.cast(starts, "int32")[..., None], axis=1)
    of_starts = ops.matmul(of_starts, kernel[:width]) + self.qa_hidden.bias
    of_positions = ops.matmul(states, kernel[width:])
    joined = _gelu(of_starts[:, :, None] + of_positions[:, None])
    return self.dense_1(joined)[..., 0] + hidden[:, None]

  def _null(self, states, start_logits):
    vectors = states[:, 0]
    if not self.spec.answerable_uses_start_logits:
      return self.dense_2(vectors)[:, 0]
    likely = ops.sum(ops.softmax(start_logits)[..., None] * states, axis=1)
    vectors = ops.concatenate([vectors, likely], axis=-1)
    return self.dense_3(_gelu(self.dense_2(vectors)))[:, 0]

  def checkpoint_variables(self) -> dict[str, keras.Variable]:
    """Returns the variables by their names in ELECTRA's checkpoints."""
    return original_names(self, _SCOPE)


def _gelu(values):
  return keras.activations.gelu(values, approximate=False)


def _best(log_probs, count: int):
  """Finds the largest `count` of `[..., S]` and their positions; short sequences repeat [CLS]."""
  missing = ops.full_like(log_probs[..., :1], _MISSING)
  padded = ops.concatenate([log_probs, *[missing] * count], axis=-1)
  values, index = ops.top_k(padded, count)
  return values, ops.where(values > _MISSING, index, 0)


def answer_losses(outputs, start_positions, end_positions, is_impossible):
  """Computes ELECTRA's loss of each text: the mean of both cross-entropies, and half the score's.

  Args:
    outputs: an `AnswerBeamOutput` of a call that was given `start_positions`.
    start_positions: int `[B]`; 0 without an answer.
    end_positions: int `[B]`.
    is_impossible: int `[B]`, 1 where there is no answer.

  Returns:
    float32 `[B]`.
  """

  def of_places(logits, places):
    places = ops.cast(ops.reshape(places, (-1,)), "int32")
    return keras.losses.sparse_categorical_crossentropy(places, logits, from_logits=True)

  losses = of_places(outputs.start_logits, start_positions)
  losses = 0.5 * (losses + of_places(outputs.end_logits, end_positions))
  if outputs.null_logit is not None:
    logits = outputs.null_logit
    missing = ops.cast(ops.reshape(is_impossible, (-1,)), "float32")
    losses = losses + 0.5 * (ops.softplus(logits) - missing * logits)
  return losses
