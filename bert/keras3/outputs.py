"""Named tuples that the models of `models.py` return: `outputs.logits`, `outputs["logits"]`.

  outputs = model(**inputs, labels=labels, output_attentions=True)
  outputs.loss, outputs["logits"], outputs.attentions[-1]

Letters in shapes: B = batch size, S = sequence length, W = width, N = number of heads, V =
vocabulary size.
"""

import collections
import functools

ON_REQUEST = ("loss", "hidden_states", "attentions")


class Named:
  """Values by name or number; those `ON_REQUEST` that were not asked for are None.

  `loss` is float32 `[]`, if the call had labels; `hidden_states` the embeddings and each layer's
  output, `[B, S, W]` each; `attentions` each layer's attention probabilities, `[B, N, S, S]` each.
  """

  def __getattr__(self, name: str):
    if name in ON_REQUEST:
      return None
    raise AttributeError(f"{name!r}; this output has {', '.join(self._fields)}.")

  def __getitem__(self, key):
    """Returns the value with this name or number."""
    if isinstance(key, str):
      if key not in self._fields:
        raise KeyError(f"{key!r}; this output has {', '.join(self._fields)}.")
      return getattr(self, key)
    return super().__getitem__(key)

  def keys(self) -> tuple[str, ...]:
    """Returns the names of the values."""
    return self._fields


class BertOutput(
  Named, collections.namedtuple("_BertOutput", ["last_hidden_state", "pooler_output"])
):
  """The output of `BertModel`.

  Attributes:
    last_hidden_state: `[B, S, W]`.
    pooler_output: `[B, W]`, None if the encoder has no pooler.
  """


class LogitsOutput(Named, collections.namedtuple("_LogitsOutput", ["logits"])):
  """The output of models with one head.

  Attributes:
    logits: float32, scores before the softmax.
  """


class SpanOutput(Named, collections.namedtuple("_SpanOutput", ["start_logits", "end_logits"])):
  """The output of `BertForQuestionAnswering`.

  Attributes:
    start_logits: float32 `[B, S]`, scores as start position of the answer.
    end_logits: float32 `[B, S]`, scores as end position.
  """


class PreTrainingOutput(
  Named,
  collections.namedtuple("_PreTrainingOutput", ["prediction_logits", "seq_relationship_logits"]),
):
  """The output of `BertForPreTraining`.

  Attributes:
    prediction_logits: float32 `[B, S, V]`.
    seq_relationship_logits: float32 `[B, 2]`; class 0: the second segment follows the first.
  """


def with_extras(outputs, **extras):
  """Adds fields to outputs, None left out, in a class of its own: no field is None.

  Example:
    >>> with_extras(LogitsOutput([1.0]), loss=0.5, attentions=None)
    LogitsOutput(logits=[1.0], loss=0.5)
  """
  given = {name: value for name, value in extras.items() if value is not None}
  if not given:
    return outputs
  if not isinstance(outputs, Named):
    raise ValueError(
      f"This model returns one tensor, without {', '.join(given)}; use the class of models.py with "
      "the same name, such as BertModel for BERTModel."
    )
  values = {**outputs._asdict(), **given}
  return _output_class(type(outputs).__name__, tuple(values))(**values)


@functools.cache
def _output_class(name: str, fields: tuple[str, ...]) -> type:
  return type(name, (Named, collections.namedtuple(name, fields)), {})
