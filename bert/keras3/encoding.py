"""The result of a `BertTokenizer`: a dictionary that behaves like that of transformers."""

from bert.keras3.torch_modules import on_torch


class Encoding(dict):
  """Arrays by name, also as attributes.

  Keras, TensorFlow and JAX read it like any dictionary, in calls, `fit` and `predict`.

  Example:
    >>> Encoding(input_ids=[2, 7, 3]).input_ids
    [2, 7, 3]
  """

  def __getattr__(self, name: str):
    try:
      return self[name]
    except KeyError:
      raise AttributeError(f"{name!r}; this encoding has {', '.join(self)}.") from None

  def to(self, device) -> "Encoding":
    """Moves PyTorch's tensors to a device, in place; Keras moves other arrays itself."""
    for name, value in self.items():
      if hasattr(value, "to"):
        self[name] = value.to(device)
    return self


def _flatten(encoding: Encoding) -> tuple[list, list]:
  return list(encoding.values()), list(encoding)


def _unflatten(values, names) -> dict:
  return dict(zip(names, values, strict=True))


def _register() -> None:
  """Tells Keras that an encoding is a dictionary of arrays; it would take it for one array."""
  import optree

  optree.register_pytree_node(
    Encoding,
    lambda encoding: (tuple(encoding.values()), tuple(encoding)),  # type: ignore[attr-defined]
    lambda names, values: _unflatten(values, names),
    namespace="keras",
  )
  if on_torch():  # newer versions of Keras flatten with PyTorch's own functions there
    from torch.utils import _pytree

    _pytree.register_pytree_node(Encoding, _flatten, _unflatten)


_register()
