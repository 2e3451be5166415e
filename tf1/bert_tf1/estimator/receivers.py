"""What a model receives where it serves: placeholders, and the features that come of them.

  def serving_input_receiver_fn():
    ids = tf.placeholder(tf.int32, [None, 128], name="input_ids")
    return tf.estimator.export.ServingInputReceiver({"input_ids": ids}, {"input_ids": ids})

Names, checks and messages are those of `tf.estimator.export` in TensorFlow 1.15.5.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from tensorflow.python.saved_model.model_utils import export_utils

from bert_tf1.parsing import parse_example
from bert_tf1.real import tf

FEATURE_NAME = export_utils.SINGLE_FEATURE_DEFAULT_NAME
INPUT_NAME = export_utils.SINGLE_RECEIVER_DEFAULT_NAME
LABEL_NAME = export_utils.SINGLE_LABEL_DEFAULT_NAME


class _Received(NamedTuple):
  features: Any
  receiver_tensors: Any
  receiver_tensors_alternatives: Any


class _Supervised(NamedTuple):
  features: Any
  labels: Any
  receiver_tensors: Any


def _check_tensor(tensor: Any, label: str) -> None:
  if isinstance(tensor, tf.Tensor | tf.SparseTensor):
    return
  if hasattr(tensor, "tensor"):  # A labeled tensor of 1.x wraps one.
    try:
      tf.convert_to_tensor(tensor)
      return
    except TypeError:
      pass
  raise ValueError(f"{label} must be a Tensor or SparseTensor.")


def _named_tensors(tensors: Any, field: str, sole_name: str, int_keys: bool = False) -> dict:
  """Returns a dictionary of tensors; one without a name gets `sole_name`.

  Raises:
    ValueError: if there are none, a name is no string, or a value is no tensor.
  """
  if tensors is None:
    raise ValueError(f"{field}s must be defined.")
  if not isinstance(tensors, dict):
    tensors = {sole_name: tensors}
  for name, tensor in tensors.items():
    if not isinstance(name, (str, int) if int_keys else str):
      kinds = "strings or ints" if int_keys else "strings"
      raise ValueError(f"{field} keys must be {kinds}: {name}.")
    _check_tensor(tensor, f"{field} {name}" if name else field)
  return tensors


class ServingInputReceiver(_Received):
  """Features as a dictionary, and the tensors that are fed for them.

  A single tensor is wrapped: `{"feature": tensor}` as features, `{"input": tensor}` as receivers.
  Each of `receiver_tensors_alternatives` (name to tensors) gives one more signature per output.
  """

  __slots__ = ()

  def __new__(
    cls, features, receiver_tensors, receiver_tensors_alternatives=None
  ) -> "ServingInputReceiver":
    """Raises: ValueError for a value that is no tensor, or a name that is no string."""
    features = _named_tensors(features, "feature", FEATURE_NAME, int_keys=True)
    receiver_tensors = _named_tensors(receiver_tensors, "receiver_tensor", INPUT_NAME)
    if receiver_tensors_alternatives is not None:
      if not isinstance(receiver_tensors_alternatives, dict):
        raise ValueError(
          f"receiver_tensors_alternatives must be a dict: {receiver_tensors_alternatives}."
        )
      for name, tensors in receiver_tensors_alternatives.items():
        receiver_tensors_alternatives[name] = _named_tensors(
          tensors, "receiver_tensors_alternative", INPUT_NAME
        )
    return super().__new__(cls, features, receiver_tensors, receiver_tensors_alternatives)


class TensorServingInputReceiver(_Received):
  """The same for a model whose features are one tensor, which it gets without a dictionary."""

  __slots__ = ()

  def __new__(
    cls, features, receiver_tensors, receiver_tensors_alternatives=None
  ) -> "TensorServingInputReceiver":
    """Raises: ValueError, as above."""
    if features is None:
      raise ValueError("features must be defined.")
    _check_tensor(features, "feature")
    wrapped = ServingInputReceiver(features, receiver_tensors, receiver_tensors_alternatives)
    return super().__new__(cls, features, *wrapped[1:])


class UnsupervisedInputReceiver(ServingInputReceiver):
  """Features without labels, for a graph that trains or evaluates."""

  __slots__ = ()

  def __new__(cls, features, receiver_tensors) -> Any:
    """Raises: ValueError, as above."""
    return super().__new__(cls, features, receiver_tensors)


class SupervisedInputReceiver(_Supervised):
  """Features and labels, each a tensor or a dictionary, for a graph that trains or evaluates."""

  __slots__ = ()

  def __new__(cls, features, labels, receiver_tensors) -> "SupervisedInputReceiver":
    """Raises: ValueError, as above."""
    _named_tensors(features, "feature", FEATURE_NAME, int_keys=True)
    _named_tensors(labels, "label", LABEL_NAME, int_keys=True)
    receiver_tensors = _named_tensors(receiver_tensors, "receiver_tensor", INPUT_NAME)
    return super().__new__(cls, features, labels, receiver_tensors)


def build_parsing_serving_input_receiver_fn(
  feature_spec: Mapping[str, Any], default_batch_size: int | None = None
) -> Callable[[], ServingInputReceiver]:
  """Returns a receiver of serialized `tf.Example`s, fed under the name `examples`.

  Args:
    feature_spec: name to `tf.FixedLenFeature` or `tf.VarLenFeature`.
    default_batch_size: number of examples in a batch; None for any.
  """

  def serving_input_receiver_fn() -> ServingInputReceiver:
    examples = tf.placeholder(tf.string, [default_batch_size], name="input_example_tensor")
    features = parse_example(examples, feature_spec)
    return ServingInputReceiver(features, {"examples": examples})

  return serving_input_receiver_fn


def _placeholder_like(tensor: tf.Tensor, batch_size: int | None) -> tf.Tensor:
  """Returns a placeholder of the tensor's dtype, name and shape but for the first dimension."""
  shape = tf.TensorShape([batch_size]).concatenate(tensor.shape[1:])
  return tf.placeholder(tensor.dtype, shape, name=tensor.op.name)


def _placeholders_like(tensors: Any, batch_size: int | None) -> Any:
  if not isinstance(tensors, dict):
    return _placeholder_like(tensors, batch_size)
  return {name: _placeholder_like(tensor, batch_size) for name, tensor in tensors.items()}


def build_raw_serving_input_receiver_fn(
  features: Mapping[str, tf.Tensor], default_batch_size: int | None = None
) -> Callable[[], ServingInputReceiver]:
  """Returns a receiver of the features themselves, one placeholder like each of `features`.

  Args:
    features: name to tensor, whose dtype, shape and name the placeholder takes.
    default_batch_size: size of the first dimension; None for any.
  """

  def serving_input_receiver_fn() -> ServingInputReceiver:
    placeholders = _placeholders_like(dict(features), default_batch_size)
    return ServingInputReceiver(placeholders, placeholders)

  return serving_input_receiver_fn


def build_raw_supervised_input_receiver_fn(
  features: Any, labels: Any, default_batch_size: int | None = None
) -> Callable[[], SupervisedInputReceiver]:
  """Returns a receiver of features and labels, one placeholder like each.

  Args:
    features: a tensor, or name to tensor.
    labels: likewise.
    default_batch_size: size of the first dimension; None for any.

  Raises:
    ValueError: if a name is in both.
  """

  def named(tensors: Any, sole_name: str) -> dict:
    return tensors if isinstance(tensors, dict) else {sole_name: tensors}

  overlap = set(named(features, INPUT_NAME)) & set(named(labels, LABEL_NAME))
  if overlap:
    raise ValueError(
      f"Features and labels must have distinct keys. Found overlapping keys: {overlap}"
    )

  def supervised_input_receiver_fn() -> SupervisedInputReceiver:
    fed_features = _placeholders_like(features, default_batch_size)
    fed_labels = _placeholders_like(labels, default_batch_size)
    receivers = {**named(fed_features, INPUT_NAME), **named(fed_labels, LABEL_NAME)}
    return SupervisedInputReceiver(fed_features, fed_labels, receivers)

  return supervised_input_receiver_fn
