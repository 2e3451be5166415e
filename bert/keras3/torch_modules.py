"""On PyTorch a Keras layer is a `torch.nn.Module`; this makes one that PyTorch's users expect.

  model = BertForSequenceClassification.from_pretrained("bert-base-uncased")
  model.train()                                      # dropout, where `training` is not given
  optimizer = torch.optim.AdamW(model.parameters())  # weights only
  torch.save(model.state_dict(), "weights.pt")       # bert.encoder.layer.0.output.LayerNorm.weight

On TensorFlow and JAX the class only has `parameters()`, the variables that train.
"""

import re

import keras


def on_torch() -> bool:
  """Checks whether Keras computes on PyTorch."""
  return keras.backend.backend() == "torch"


class TorchModule:
  """First base of the project's layers and models, before Keras's own base.

  On PyTorch:

  * A call without `training` follows `train()` and `eval()`. Modules start in evaluation mode, as
    calls of Keras do on every backend, and as models from `from_pretrained` of transformers do.
  * `named_parameters()` and `state_dict()` have each weight once, under its name in transformers;
    `kernel` instead of `weight` marks matrices that are transposed there. No name depends on what
    was created before, so a `state_dict` loads into another model of the same sizes.
  """

  def __init__(self, *args, **kwargs):
    super().__init__(*args, **kwargs)
    if on_torch():
      self.training = False
      self._track_variables()  # a functional model is complete already, and never built

  def train(self, mode=True):
    """Sets, on PyTorch, the mode of this layer and of all layers in it, also in lists."""
    import torch

    torch.nn.Module.train(self, mode)
    for layer in self._flatten_layers(include_self=False):
      torch.nn.Module.train(layer, mode)
    return self

  def parameters(self, *args, **kwargs):
    """Yields the weights to train: PyTorch's parameters there, elsewhere variables."""
    if on_torch():
      return super().parameters(*args, **kwargs)
    return iter(self.trainable_variables)

  def _track_variables(self):
    """Registers the parameters; Keras calls this on PyTorch after `build`."""
    import torch

    # The layers inside stay attributes. As modules they would register each weight once more.
    for name in list(self._modules):
      module = self._modules.pop(name)
      if isinstance(module, keras.layers.Layer):
        self.__dict__[name] = module
    self._parameters.clear()
    for variable in self.weights:
      *scopes, name = parameter_name(variable.path, self.path or "").split(".")
      module = self
      for scope in scopes:
        module = module._modules.setdefault(scope, torch.nn.Module())
      variable.value.keras_path = variable.path  # by which optimizers know what decays
      module._parameters[name] = variable.value


def register_parameters(layer: keras.layers.Layer) -> None:
  """Registers, on PyTorch, the parameters of a layer again, one of whose variables was replaced."""
  if on_torch():
    layer._track_variables()


def parameter_name(path: str, scope: str = "") -> str:
  """Returns the name of a variable as a parameter on PyTorch.

  Args:
    path: the variable's path.
    scope: the path of the module that has the variable.

  Example:
    >>> parameter_name("bert/encoder/layer_0/output/LayerNorm/gamma", "bert")
    'encoder.layer.0.output.LayerNorm.weight'
    >>> parameter_name("bert/embeddings/word_embeddings")
    'bert.embeddings.word_embeddings.weight'
  """
  path = path.removeprefix(scope + "/")
  path = re.sub(r"(^|/)layer_(\d+)/", r"\1layer/\2/", path)
  path = re.sub(r"_embeddings$", r"\g<0>/weight", path)
  path = re.sub(r"/(gamma|scale)$", "/weight", path)
  return re.sub(r"/beta$", "/bias", path).replace("/", ".")
