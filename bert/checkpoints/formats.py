"""The names of files in which other programs keep weights.

  is_file_of_others("bert/model.safetensors")     # True
  is_file_of_others("bert/model.ckpt-20")         # False: a bundle of TensorFlow's

`reading.open_checkpoint` opens them.
"""

import os
from collections.abc import Collection
from typing import NoReturn

from bert.checkpoints.bundle_files import INDEX_SUFFIX, KERAS_SUFFIX, CheckpointError

SAFETENSORS_SUFFIX = ".safetensors"
SHARDS_SUFFIX = ".safetensors.index.json"  # of the index of several safetensors files
# Transformers' other files of weights, each with the index of several such files.
H5_NAMES = ("tf_model.h5", "tf_model.h5.index.json")
TORCH_NAMES = ("pytorch_model.bin", "pytorch_model.bin.index.json")
H5_SUFFIXES = (".h5", ".h5.index.json")
TORCH_SUFFIXES = (".bin", ".pt", ".pth", ".bin.index.json")


def is_file_of_others(path: str | os.PathLike) -> bool:
  """Tells whether a file has the name of another program's weights.

  Example:
    >>> is_file_of_others("bert/model.safetensors"), is_file_of_others("bert/model.ckpt-20")
    (True, False)
  """
  endings = (KERAS_SUFFIX, SAFETENSORS_SUFFIX, SHARDS_SUFFIX, *H5_SUFFIXES, *TORCH_SUFFIXES)
  return os.fsdecode(path).endswith(endings)


def is_folder_of_others(names: Collection[str]) -> bool:
  """Tells whether files of these names are a folder that transformers saved."""
  endings = (SAFETENSORS_SUFFIX, SHARDS_SUFFIX)
  return any(name.endswith(endings) or name in (*H5_NAMES, *TORCH_NAMES) for name in names)


def is_older_weights(name: str) -> bool:
  """Tells whether a file has transformers' weights of the time before safetensors, by its name.

  Example:
    >>> is_older_weights("tf_model-00001-of-00002.h5"), is_older_weights("training_args.bin")
    (True, False)
  """
  return name.startswith(("tf_model", "pytorch_model")) and is_file_of_others(name)


def describes_model(path: str | os.PathLike) -> bool:
  """Tells whether weights may be their own configuration, by the name of a file."""
  return os.fsdecode(path).endswith((KERAS_SUFFIX, INDEX_SUFFIX))


def refuse_keras(path: str) -> NoReturn:
  """Raises a CheckpointError about a `.keras` file, which Keras alone reads."""
  raise CheckpointError(
    f"{path} is a whole model of Keras. Make a checkpoint of it first: "
    f"python convert_checkpoint.py from_keras --init_checkpoint={path} --output_dir=NEW_FOLDER"
  )
