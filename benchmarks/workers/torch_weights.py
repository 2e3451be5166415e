"""A checkpoint of the original's, written as `.npz`, as the weights of transformers' models."""

import re

import numpy as np
import torch
import transformers


def config_of(sizes: dict, **changes) -> transformers.BertConfig:
  """The same model: the original's GELU is the one that is approximated with a tanh."""
  return transformers.BertConfig(**{**sizes, "hidden_act": "gelu_new", **changes})


def torch_name(name: str) -> str:
  """Name of a variable of `bert/` in transformers' `BertModel`.

  Example:
    >>> torch_name("bert/encoder/layer_3/attention/output/LayerNorm/gamma")
    'encoder.layer.3.attention.output.LayerNorm.weight'
    >>> torch_name("bert/embeddings/word_embeddings")
    'embeddings.word_embeddings.weight'
  """
  name = re.sub(r"layer_(\d+)", r"layer.\1", name.removeprefix("bert/")).replace("/", ".")
  name = re.sub(r"\.(gamma|kernel)$", ".weight", re.sub(r"\.beta$", ".bias", name))
  return name + ".weight" if name.endswith("_embeddings") else name


def load_encoder(bert: transformers.BertModel, npz: str) -> None:
  """Fills a `BertModel` from an `.npz` of the checkpoint's variables; all of it, or an error."""
  state = {}
  with np.load(npz) as tensors:
    for name in tensors.files:
      value = torch.from_numpy(tensors[name])
      state[torch_name(name)] = value.T.contiguous() if name.endswith("/kernel") else value
  bert.load_state_dict(state)
