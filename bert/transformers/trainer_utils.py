"""What transformers' scripts import beside models: results of evaluations, checkpoints, choices."""

import os
import re
from collections.abc import Iterator
from typing import Any

from bert.transformers.backend import use_tensorflow
from bert.transformers.tokenization_options import ExplicitEnum

PREFIX_CHECKPOINT_DIR = "checkpoint"


def __getattr__(name: str) -> Any:
  """Finds `set_seed`, which imports TensorFlow, where transformers has it, too."""
  if name == "set_seed":
    use_tensorflow()
    from bert.transformers.seeds import set_seed

    return set_seed
  raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


class IntervalStrategy(ExplicitEnum):
  """When something is done."""

  NO = "no"
  STEPS = "steps"
  EPOCH = "epoch"


class SaveStrategy(ExplicitEnum):
  """When a checkpoint is saved."""

  NO = "no"
  STEPS = "steps"
  EPOCH = "epoch"
  BEST = "best"


class HubStrategy(ExplicitEnum):
  """What is sent to the Hub."""

  END = "end"
  EVERY_SAVE = "every_save"
  CHECKPOINT = "checkpoint"
  ALL_CHECKPOINTS = "all_checkpoints"


class SchedulerType(ExplicitEnum):
  """How the learning rate changes."""

  LINEAR = "linear"
  COSINE = "cosine"
  COSINE_WITH_RESTARTS = "cosine_with_restarts"
  POLYNOMIAL = "polynomial"
  CONSTANT = "constant"
  CONSTANT_WITH_WARMUP = "constant_with_warmup"
  INVERSE_SQRT = "inverse_sqrt"
  REDUCE_ON_PLATEAU = "reduce_lr_on_plateau"
  COSINE_WITH_MIN_LR = "cosine_with_min_lr"
  COSINE_WARMUP_WITH_MIN_LR = "cosine_warmup_with_min_lr"
  WARMUP_STABLE_DECAY = "warmup_stable_decay"


class EvalPrediction:
  """Predictions and labels of an evaluation, by name or as a pair."""

  def __init__(self, predictions: Any, label_ids: Any, inputs: Any = None, losses: Any = None):
    """Holds them.

    Args:
      predictions: of the model.
      label_ids: what is right.
      inputs: of the model, where they are wanted, too.
      losses: likewise.
    """
    self.predictions = predictions
    self.label_ids = label_ids
    self.inputs = inputs
    self.losses = losses
    self.elements = (predictions, label_ids, *(x for x in (inputs, losses) if x is not None))

  def __iter__(self) -> Iterator[Any]:
    return iter(self.elements)

  def __getitem__(self, index: int) -> Any:
    """Returns an element by its number.

    Raises:
      IndexError: there are fewer, or the number is negative.
    """
    if index < 0:
      raise IndexError(f"{index}: EvalPrediction counts from 0.")
    return self.elements[index]


def get_last_checkpoint(folder: str | os.PathLike) -> str | None:
  """Finds the folder `checkpoint-N` with the highest number; None if there is none."""
  found = {
    int(match[1]): name
    for name in os.listdir(folder)
    if (match := re.match(rf"^{PREFIX_CHECKPOINT_DIR}\-(\d+)$", name))
    and os.path.isdir(os.path.join(folder, name))
  }
  return os.path.join(folder, found[max(found)]) if found else None


def is_main_process(local_rank: int) -> bool:
  """Tells whether this process, by its number on the machine, is the first; -1 if there is one."""
  return local_rank in (-1, 0)
