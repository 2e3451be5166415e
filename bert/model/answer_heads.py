"""The head that a model of questions has, and its settings. No TensorFlow is needed here.

`bert` scores starts and ends independently (`heads.get_span_logits`). `electra` and `albert`
score ends given the start, and whether there is an answer (`span_heads.py`).
"""

import dataclasses
from collections.abc import Mapping
from typing import Any

KINDS = ("bert", "electra", "albert")

# What changes the names or shapes of variables, so that a checkpoint fits only the same.
_FACTS_OF_ELECTRA = ("joint_prediction", "answerable_classifier", "answerable_uses_start_logits")


@dataclasses.dataclass(frozen=True)
class AnswerHead:
  """A head for questions."""

  kind: str = "bert"  # one of `KINDS`
  scope: str = "task_specific/squad"  # of ELECTRA's variables, as `heads.task_scope` gives it
  joint_prediction: bool = True  # ELECTRA: score ends given the start
  answerable_classifier: bool = True  # ELECTRA: score whether there is an answer
  # ELECTRA: with a hidden layer that sees the likely starts.
  answerable_uses_start_logits: bool = True
  num_starts: int = 20  # K, the starts in a beam
  num_ends: int = 20  # E, the ends for each of them
  null_weight: float = 0.5  # of the loss of the score of no answer
  dropout_prob: float = 0.0  # ALBERT: of the hidden layer of that score, in training

  @property
  def has_beam(self) -> bool:
    """Whether it predicts spans, and not two rows of logits."""
    return self.kind == "albert" or (self.kind == "electra" and self.joint_prediction)

  @property
  def reads_impossible(self) -> bool:
    """Whether its loss reads `is_impossible`, and not that a window is without the answer."""
    return self.kind == "electra"

  @property
  def threshold_is_null(self) -> bool:
    """Whether odds that equal the threshold mean no answer."""
    return self.kind == "albert"

  @classmethod
  def of_run(cls, facts: Mapping[str, Any], settings: Mapping[str, Any]) -> "AnswerHead":
    """Makes the head of a trained run from its facts and flags (the beam's sizes, if there)."""
    kind = facts.get("answer_head", "bert")
    parts = {name: facts[name] for name in _FACTS_OF_ELECTRA if name in facts}
    if "answer_scope" in facts:
      parts["scope"] = facts["answer_scope"]
    sizes = {"electra": ("beam_size", "beam_size"), "albert": ("start_n_top", "end_n_top")}
    for field, flag in zip(("num_starts", "num_ends"), sizes.get(kind, ()), strict=False):
      if flag in settings:
        parts[field] = settings[flag]
    return cls(kind, **parts)

  def facts(self) -> dict[str, Any]:
    """Lists what must be equal for a run to be resumed.

    Example:
      >>> AnswerHead("albert").facts()
      {'answer_head': 'albert'}
    """
    facts: dict[str, Any] = {"answer_head": self.kind}
    if self.kind == "electra":
      facts |= {name: getattr(self, name) for name in _FACTS_OF_ELECTRA}
      facts["answer_scope"] = self.scope
    return facts
