"""What models return: values by attribute, name or number, as in transformers.

  outputs = model(**inputs, labels=labels)
  outputs.logits, outputs["logits"], outputs[0]      # outputs[0] is the loss where there is one

Letters in shapes: B = batch size, S = sequence length, W = width, C = number of classes, N =
number of heads, V = vocabulary size.
"""

from collections import OrderedDict
from collections.abc import Mapping
from typing import Any, ClassVar

import optree


class ModelOutput(OrderedDict):
  """Values that are there, in order; those that are not are None as attributes alone.

  TensorFlow, Keras and `tf.function` take it apart and put it together again.

  Attributes:
    fields: the names that an output of this class may have, in order.
  """

  fields: ClassVar[tuple[str, ...]] = ()

  def __init_subclass__(cls):
    """Tells Keras that these are structures, not single values."""
    super().__init_subclass__()
    optree.register_pytree_node(
      cls, _children, lambda names, values: cls(zip(names, values, strict=True)), namespace="keras"
    )

  def __init__(self, *args, **kwargs):
    """Takes the values as a dictionary does; in order without names is possible, too.

    Raises:
      TypeError: the class has no value of a name.
    """
    # A dictionary, or pairs from whoever puts a structure together; else values in order.
    if args and not (isinstance(args[0], dict) or hasattr(args[0], "__next__")):
      args = (dict(zip(self.fields, args, strict=False)),)
    given = dict(*args, **kwargs)
    if self.fields and (unknown := sorted(set(given) - set(self.fields))):
      raise TypeError(
        f"{type(self).__name__} has no {', '.join(unknown)}: {', '.join(self.fields)}."
      )
    names = self.fields or given
    super().__init__((name, given[name]) for name in names if given.get(name) is not None)

  def __getattr__(self, name: str) -> Any:
    if name in self.fields:
      return self.get(name)
    if not name.startswith("_") and name in self:
      return self[name]
    raise AttributeError(f"{type(self).__name__} has no {name}; it has {', '.join(self)}.")

  def __setattr__(self, name: str, value: Any) -> None:
    if name in self.fields:
      self[name] = value
    else:
      super().__setattr__(name, value)

  def __getitem__(self, key):
    """Returns the value of a name or number, or a tuple of several for a slice."""
    return super().__getitem__(key) if isinstance(key, str) else self.to_tuple()[key]

  def to_tuple(self) -> tuple:
    """Returns the values that are there."""
    return tuple(self.values())


def _children(output: ModelOutput):
  return tuple(output.values()), tuple(output)


_EXTRAS = ("hidden_states", "attentions")


class TFBaseModelOutput(ModelOutput):
  """Of an encoder without a pooler: `last_hidden_state` `[B, S, W]`.

  `hidden_states` are the embeddings and each layer's output, `[B, S, W]` each; `attentions` each
  layer's attention probabilities, `[B, N, S, S]` each.
  """

  fields = ("last_hidden_state", *_EXTRAS)


class TFBaseModelOutputWithPooling(ModelOutput):
  """The same with `pooler_output` `[B, W]`."""

  fields = ("last_hidden_state", "pooler_output", *_EXTRAS)


class _Scores(ModelOutput):
  fields = ("loss", "logits", *_EXTRAS)


class TFSequenceClassifierOutput(_Scores):
  """`loss` float32 `[B]` and `logits` `[B, C]`."""


class TFTokenClassifierOutput(_Scores):
  """`loss` float32 `[1]` and `logits` `[B, S, C]`."""


class TFMaskedLMOutput(_Scores):
  """`loss` float32 `[1]` and `logits` `[B, S, V]`."""


class TFMultipleChoiceModelOutput(_Scores):
  """`loss` float32 `[B]` and `logits`, a score for each choice."""


class TFNextSentencePredictorOutput(_Scores):
  """`loss` float32 `[B]` and `logits` `[B, 2]`, of which 0 means that the second text follows."""


class TFQuestionAnsweringModelOutput(ModelOutput):
  """`loss` float32 `[B]`, `start_logits` and `end_logits` `[B, S]`."""

  fields = ("loss", "start_logits", "end_logits", *_EXTRAS)


class TFBertForPreTrainingOutput(ModelOutput):
  """`loss` float32 `[1]`, `prediction_logits` `[B, S, V]`, `seq_relationship_logits` `[B, 2]`."""

  fields = ("loss", "prediction_logits", "seq_relationship_logits", *_EXTRAS)


class TFAlbertForPreTrainingOutput(ModelOutput):
  """`loss` float32 `[1]`, `prediction_logits` `[B, S, V]`, `sop_logits` `[B, 2]`."""

  fields = ("loss", "prediction_logits", "sop_logits", *_EXTRAS)


class TFElectraForPreTrainingOutput(ModelOutput):
  """`logits` `[B, S]`, above 0 where a token was replaced."""

  fields = ("logits", *_EXTRAS)


def logits_of(output_type: type[ModelOutput]) -> list[str]:
  """Lists the outputs of the heads."""
  return [n for n in output_type.fields if n not in ("loss", "hidden_states", "attentions")]


def matched(y, y_pred):
  """Pairs labels with outputs as Keras's losses want them: logits, or dictionaries of both."""
  if not isinstance(y_pred, ModelOutput):
    return y, y_pred
  names = logits_of(type(y_pred))
  outputs = {name: y_pred[name] for name in names if name in y_pred}
  if len(outputs) == 1:
    return y, next(iter(outputs.values()))
  labels = y.values() if isinstance(y, Mapping) else y or ()
  return dict(zip(outputs, labels, strict=False)), outputs
