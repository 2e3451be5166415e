"""A `.keras` file, which Keras alone reads: scripts get the command that converts it."""

import os
from typing import NoReturn

from bert.checkpoints.bundle_files import CheckpointError


def _refuse(path: str | os.PathLike) -> NoReturn:
  """Raises a CheckpointError that names the command."""
  path = os.fsdecode(path)
  raise CheckpointError(
    f"{path} is a whole model of Keras. Make a checkpoint of it first: "
    f"python convert_checkpoint.py from_keras --init_checkpoint={path} --output_dir=NEW_FOLDER"
  )


# The functions of a format (`formats.py`), and of what describes a model (`config_files.py`).
open_weights = read_facts = read_config = _refuse
