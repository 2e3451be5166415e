"""The labels of a run's model: which output means what, where the model was trained elsewhere.

  model = of_settings(settings, "sentences")    # of --output_dir's run, else of --init_checkpoint
  labels = in_order(["bad", "good"], model)     # ["good", "bad"], if its outputs are these

`label_map.labels_of` reads them. A run that trains keeps the order of its data, as in the original.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from absl import logging

from bert.checkpoints import label_map, model_files
from bert.checkpoints.load_report import abbreviate
from bert.scripts.run_settings import RunSettings
from bert.scripts.settings import UsageError
from bert.tasks import kinds, label_counts


class ModelLabels(NamedTuple):
  """What is known of the outputs of a model that a run evaluates."""

  folder: str  # of the model
  labels: list[str] | None  # in the order of its outputs
  facts: Mapping[str, Any]  # see `reading.read_facts`
  # Whether it is the run in `--output_dir`, which refuses other labels by its fingerprint.
  is_own: bool = False


def of_settings(settings: RunSettings, kind: str | None = None) -> ModelLabels | None:
  """Reads the labels of the model that a run evaluates; None where it trains, or has no model.

  Args:
    settings: of the run; resolved, or with the folder of an export as `init_folder`.
    kind: the name of the run's kind of task, which the model must have.

  Raises:
    UsageError: the model is of another kind of task.
    ValueError: a file that names its labels is malformed.
  """
  from bert.checkpoints import finding, reading

  if settings.do_train:
    return None
  own = finding.latest(settings.output_dir) if settings.output_dir else None
  prefix = own or (settings.checkpoint.prefix if settings.checkpoint else None)
  if not prefix:  # an export, or no model at all
    folders = filter(None, (settings.init_folder, settings.output_dir))
    found = next(((each, labels) for each in folders if (labels := label_map.read(each))), None)
    return found and ModelLabels(*found, {})
  facts = reading.read_facts(prefix)
  theirs = kinds.of_facts(facts)
  if kind and theirs and theirs.name != kind:
    raise UsageError(
      f"{prefix} is a model of {_script(theirs)}, not of {_script(kinds.find(kind))}: its outputs "
      f"mean something else. Evaluate it with {_script(theirs)}, or train it with --do_train."
    )
  folder = model_files.run_folder_of(prefix)
  return ModelLabels(folder, label_map.labels_of(prefix), facts, bool(own))


def _script(kind: kinds.Kind) -> str:
  return os.path.basename(kind.file) or f"{kind.script}.py"


def in_order(
  labels: Sequence[str] | None, model: ModelLabels | None, are_given: bool = False
) -> list[str] | None:
  """Returns the labels of a run in the order of the model's outputs.

  Args:
    labels: all labels, of the task or `--labels`; None for the model's own.
    model: of `of_settings`.
    are_given: whether the user named them, in the order of outputs that nobody has named.

  Returns:
    `labels` themselves, with one warning, where they are others than the model's.

  Raises:
    UsageError: the model has more of them, or fewer, so that its head does not fit.
  """
  if not model or not model.labels:
    return list(labels) if labels else None
  labels = list(labels or model.labels)
  fits = len(labels) == len(model.labels)
  ordered = label_counts.in_order_of(labels, model.labels) if fits else None
  is_unnamed = fits and are_given and model.labels[0] == "LABEL_0"
  if ordered is None and (model.is_own or is_unnamed):
    return labels
  both = f"the labels {abbreviate(model.labels, 20)}, this run {abbreviate(labels, 20)}"
  if not fits:
    raise UsageError(
      f"The model in {model.folder} has {both}, so its head does not fit. Evaluate data with the "
      "model's labels, or train it with --do_train."
    )
  if ordered is None:
    logging.warning(
      "The model in %s has %s. They are taken in this order: %s. If that is wrong, correct "
      "id2label in its config.json, or give --labels in the order of its outputs.",
      *(model.folder, both),
      abbreviate([f"{a} is {b}" for a, b in zip(model.labels, labels, strict=True)], 20),
    )
    return labels
  logging.info("Labels of the trained model: %s.", abbreviate(ordered, 20))
  return ordered
