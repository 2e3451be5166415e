"""The fast checks of `doctor.py`, which every `run_*` script makes when it starts.

  cheap_checks.model_is_read(settings.values, config, tokenizer.vocab, settings.checkpoint)

Versions, configuration, vocabulary, names and shapes in the checkpoint, memory and disk; neither
data nor values are read.
"""

from collections.abc import Mapping
from typing import Any

from absl import logging

from bert.checks import machine_checks, model_checks
from bert.checks.findings import Check, Finding, RunUnderCheck, examine
from bert.model.configuration import BertConfig


def cheap_findings(subject: RunUnderCheck, trains: bool = True) -> list[Finding]:
  """Checks what a run can afford at its start: all but data and the checkpoint's values.

  They take a fraction of a second once TensorFlow is loaded. The configuration and vocabulary of
  `subject` may be given, so that no file is read twice. Memory and disk matter if the run trains.
  """
  checks: list[Check] = [machine_checks.check_versions, model_checks.check_config]
  if trains:
    checks += [machine_checks.check_memory, machine_checks.check_disk]
  if subject.vocab or subject.vocab_file:
    checks.append(model_checks.check_vocabulary)
  if subject.init_checkpoint:
    checks.append(model_checks.check_checkpoint)
  return list(examine(checks, subject))


def model_is_read(
  values: Mapping[str, Any],
  config: BertConfig,
  vocab: Mapping[str, int] | None = None,
  checkpoint: Any = None,
) -> None:
  """Logs the warnings and errors among `cheap_findings`. The run continues.

  Of the flags' `values` those that the script lacks are not checked; vocabulary and checkpoint are
  given where they were read.
  """
  subject = RunUnderCheck.of(values, config=config, vocab=vocab, checkpoint=checkpoint)
  for finding in cheap_findings(subject, bool(values.get("do_train"))):
    if finding.level in ("warning", "error"):
      logging.warning("%s", finding)
