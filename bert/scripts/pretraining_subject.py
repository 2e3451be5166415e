"""What a report says of a run of pre-training, and of any other that learned no task."""

from collections.abc import Mapping
from typing import Any

from bert.reports.subject import Subject
from bert.tasks import kinds

# The result that counts, of those that a run has: of words, or ELECTRA's of all tokens.
_HEADLINES = ("masked_lm_accuracy", "disc_accuracy", "loss")


def complete(subject: Subject, facts: Mapping[str, Any]) -> None:
  """Adds what a run of pre-training has to the subject, which has its flags and results."""
  subject.task = "Pre-training"
  found = [name for name in _HEADLINES if name in subject.results]
  subject.headline = found[0] if found else _HEADLINES[0]
  subject.usage = _usage(subject.folder)
  if objective := facts.get("objective") or subject.flags.get("objective"):
    subject.facts = {**subject.facts, "objective": str(objective)}


def _usage(folder: str) -> dict[str, str]:
  script = next(iter(kinds.registered().values())).script
  return {
    "Fine-tune it": f"python {script}.py --do_train --do_eval --data_dir=DATA \\\n"
    f"  --init_checkpoint={folder} --output_dir=OUTPUT",
    "Guess masked words": f"python predict_masked.py --init_checkpoint={folder} < texts.txt",
    "Vectors of texts": f"python predict.py --task=vectors --init_checkpoint={folder} < texts.txt",
  }
