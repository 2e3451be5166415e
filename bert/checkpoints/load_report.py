"""Which variables of a model were loaded from a checkpoint. Nothing here needs TensorFlow."""

import dataclasses
from collections.abc import Iterable
from typing import NamedTuple

from bert.families import FAMILIES
from bert.io.wording import counted

# The scope of an encoder's variables, each once: ALBERT has BERT's.
ENCODER_SCOPES = tuple(dict.fromkeys(f"{family.scope}/" for family in FAMILIES.values()))


def encoder_scope(names: Iterable[str]) -> str:
  """Finds the scope of the encoder among a model's variables.

  Example:
    >>> encoder_scope(["electra/embeddings/word_embeddings", "task_specific/mrpc/dense/bias"])
    'electra/'
  """
  names = list(names)
  found = (scope for scope in ENCODER_SCOPES if any(name.startswith(scope) for name in names))
  return next(found, ENCODER_SCOPES[0])


class Mismatch(NamedTuple):
  """A variable that differs in shape or type; the texts read like `float32 [2, 768]`."""

  name: str
  in_checkpoint: str
  in_model: str

  def __str__(self):
    return f"{self.name}: {self.in_checkpoint} in the checkpoint, {self.in_model} in the model"


@dataclasses.dataclass(frozen=True)
class LoadReport:
  """The result of loading, by the original's variable names."""

  source: str  # the checkpoint or file
  loaded: list[str]  # variables that took their value from it
  missing: list[str]  # variables it does not have; they keep their random values
  # Its tensors that are not in the model (training state, never read, not counted).
  unexpected: list[str]
  mismatched: list[Mismatch]  # variables not loaded because shapes differ
  # The part of the model that should have come from the checkpoint.
  required_scope: str = ENCODER_SCOPES[0]

  def summary(self) -> str:
    """Writes a few lines for people: counts and names, long lists cut short."""
    wanted = len(self.loaded) + len(self.missing) + len(self.mismatched)
    lines = [f"Initialised from {self.source}: {len(self.loaded)} of {wanted} variables loaded."]
    random_body = [name for name in self.missing if name.startswith(self.required_scope)]
    random_rest = [name for name in self.missing if not name.startswith(self.required_scope)]
    if random_body:
      lines.append(
        f"  WARNING: not in the checkpoint, so from random values: "
        f"{counted(len(random_body), 'variable')} of {self.required_scope}: "
        f"{abbreviate(random_body)}"
      )
    if random_rest:
      lines.append(f"  missing, start fresh ({len(random_rest)}): {abbreviate(random_rest)}")
    lines += [
      f"  other shape, so the head starts fresh: {mismatch}" for mismatch in self.mismatched
    ]
    if self.unexpected:
      lines.append(
        f"  unexpected, not used ({len(self.unexpected)}): {abbreviate(self.unexpected)}"
      )
    return "\n".join(lines)

  def skipped(self) -> list[str]:
    """Writes a line for each variable that keeps its random value."""
    return [
      *map(str, self.mismatched),
      *(f"{name}: not in the checkpoint" for name in self.missing),
    ]


def is_training_state(name: str) -> bool:
  """Tells names of a run (Adam slots, step, loss scale) from those of the model.

  Example:
    >>> is_training_state("bert/pooler/dense/kernel/adam_m"), is_training_state("global_step")
    (True, True)
    >>> is_training_state("loss_scale/scale"), is_training_state("bert/pooler/dense/kernel")
    (True, False)
  """
  return name == "global_step" or name.startswith("loss_scale/") or is_slot(name)


def is_slot(name: str) -> bool:
  """Tells whether a name belongs to the optimizer's memory of a variable."""
  return name.endswith(("/adam_m", "/adam_v"))


def abbreviate(names: list[str], limit: int = 4) -> str:
  """Joins names, at most `limit` of them.

  Example:
    >>> abbreviate(["a", "b", "c", "d"], limit=3)
    'a, b, c and 1 more'
  """
  rest = len(names) - limit
  return ", ".join(names[:limit]) + (f" and {rest} more" if rest > 0 else "")
