"""How transformers' models may be called, made one: a dictionary of tensors by name.

model(ids, mask)   model([ids, mask])   model({"input_ids": ids})   model(input_ids=ids)
"""

from collections.abc import Mapping, Sequence
from typing import Any

from bert.keras3.input_checks import holds_tensors

ENCODER_INPUTS = (
  "input_ids",
  "attention_mask",
  "token_type_ids",
  "position_ids",
  "head_mask",
  "inputs_embeds",
)
ON_REQUEST = ("output_attentions", "output_hidden_states", "return_dict")


def encoder_inputs(config_class: Any) -> tuple[str, ...]:
  """Lists the inputs of a family's encoder, in order; DistilBERT has no segments and positions."""
  has_segments = hasattr(config_class, "type_vocab_size") or not config_class.model_type
  left_out = () if has_segments else ("token_type_ids", "position_ids")
  return tuple(name for name in ENCODER_INPUTS if name not in left_out)


def by_name(names: Sequence[str], first, rest: Sequence, named: Mapping):
  """Names the arguments of a call.

  Args:
    names: of all arguments, in order.
    first: the first one; or several, in a list or tuple of tensors; or a dictionary of some.
    rest: those after it.
    named: those given by name.

  Returns:
    The dictionary, of `input_ids` alone if `first` is none, and the others by name; without None.

  Raises:
    TypeError: an argument is given twice.
  """
  first = without_labels(first)
  if isinstance(first, (list, tuple)) and holds_tensors(first):
    first, rest = first[0], (*first[1:], *rest)
  given = dict(zip(names[1:], rest, strict=False))
  if twice := sorted(set(given) & set(named)):
    raise TypeError(f"{', '.join(twice)} is given twice.")
  first = first if isinstance(first, Mapping) else {"input_ids": first}
  return _without_none(first), _without_none({**given, **named})


def _without_none(values: Mapping) -> dict:
  return {name: value for name, value in values.items() if value is not None}


def without_labels(batch):
  """Returns the inputs of a batch that is a pair of them, in a dictionary, and of labels."""
  is_pair = isinstance(batch, (list, tuple)) and batch and isinstance(batch[0], Mapping)
  return batch[0] if is_pair else batch
