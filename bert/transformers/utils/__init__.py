"""What transformers' scripts import from `transformers.utils`: names of files, checks, the log."""

import importlib.util
from typing import Any

from bert.checkpoints import transformers_folder
from bert.transformers.tokenization_options import ExplicitEnum, PaddingStrategy, TensorType
from bert.transformers.utils import logging, versions

CONFIG_NAME = transformers_folder.CONFIG
# What `save_pretrained` writes: by this name scripts find out whether to resume.
TF2_WEIGHTS_NAME = transformers_folder.WEIGHTS
WEIGHTS_NAME = "pytorch_model.bin"
WEIGHTS_INDEX_NAME = "pytorch_model.bin.index.json"
SAFE_WEIGHTS_NAME = "model.safetensors"
SAFE_WEIGHTS_INDEX_NAME = "model.safetensors.index.json"
TF2_WEIGHTS_INDEX_NAME = "tf_model.h5.index.json"
TF_WEIGHTS_NAME = "model.ckpt"
MODEL_CARD_NAME = "modelcard.json"

__all__ = [
  "CONFIG_NAME",
  "MODEL_CARD_NAME",
  "SAFE_WEIGHTS_INDEX_NAME",
  "SAFE_WEIGHTS_NAME",
  "TF2_WEIGHTS_INDEX_NAME",
  "TF2_WEIGHTS_NAME",
  "TF_WEIGHTS_NAME",
  "WEIGHTS_INDEX_NAME",
  "WEIGHTS_NAME",
  "ExplicitEnum",
  "PaddingStrategy",
  "TensorType",
  "check_min_version",
  "is_flax_available",
  "is_tf_available",
  "is_tokenizers_available",
  "is_torch_available",
  "logging",
  "send_example_telemetry",
  "versions",
]


def check_min_version(min_version: str) -> None:
  """Checks that a script is for this version of transformers' interface, or an earlier one.

  Raises:
    ImportError: it is for a later one.
  """
  if versions.is_newer(min_version, versions.TRANSFORMERS):
    raise ImportError(
      f"This script is for transformers {min_version} or later, but bert.transformers has the "
      f"classes of {versions.TRANSFORMERS}."
    )


def send_example_telemetry(example_name: str, *example_args: Any, framework: str = "tf") -> None:
  """Does nothing: transformers' own told its authors that an example is run; nothing is sent here.

  Args:
    example_name: not used, as all others.
    *example_args: not used.
    framework: not used.
  """
  del example_name, example_args, framework


def is_tf_available() -> bool:
  """Tells whether TensorFlow is installed."""
  return _is_installed("tensorflow")


def is_torch_available() -> bool:
  """Tells whether PyTorch is installed."""
  return _is_installed("torch")


def is_flax_available() -> bool:
  """Tells whether JAX and Flax are installed."""
  return _is_installed("jax") and _is_installed("flax")


def is_tokenizers_available() -> bool:
  """Tells whether fast tokenizers can be made: always, some by a library of their own."""
  return True


def _is_installed(name: str) -> bool:
  return importlib.util.find_spec(name) is not None
