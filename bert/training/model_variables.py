"""The variables of a model in a run: initialisation, restoring and saving."""

import concurrent.futures
import contextlib
import dataclasses
import os
from collections.abc import Iterator, Mapping
from typing import Any

import tensorflow as tf
from absl import logging

from bert.checkpoints import finding, load_report, loading, reading, saving
from bert.checkpoints.bundle_files import CheckpointError
from bert.model.variables import VariableStore
from bert.training import distribution, loss_scaling, resumption
from bert.training.resumption import ResumeMismatchError, RunState
from bert.training.run_config import RunConfig


class ModelVariables:
  """All variables of a run: those of the model, of the optimizer, and `global_step`.

  Attributes:
    store: the variables by name; empty until a first graph is traced.
    is_filled: whether values were loaded or trained.
  """

  def __init__(self, config: RunConfig):
    self._config = config
    self.store = VariableStore(config.seed)
    self.is_filled = False

  def weights(self) -> dict[str, tf.Variable]:
    """Returns the model's own variables: neither optimizer slots nor the step."""
    return {
      name: variable
      for name, variable in self.store.variables.items()
      if not load_report.is_training_state(name)
    }

  @property
  def global_step(self) -> tf.Variable:
    """Returns the number of finished steps."""
    return self.store.variables["global_step"]

  def skipped_steps(self) -> int:
    """Counts steps of float16 that changed no weight; see `loss_scaling`."""
    skipped = self.store.variables.get(loss_scaling.SKIPPED_STEPS)
    return 0 if skipped is None else int(skipped.numpy())

  def resume(self, prefix: str) -> None:
    """Restores every variable; a checkpoint of weights alone gets new slots, with a warning."""
    variables = dict(self.store.variables)
    saved = reading.names_and_shapes(prefix)
    slots = [n for n in variables if load_report.is_slot(n)]
    missing = [name for name in slots if name not in saved]
    if missing and len(missing) < len(slots):
      raise ResumeMismatchError(
        f"{prefix} has optimizer slots for some variables only. Missing: "
        f"{load_report.abbreviate(missing)}. It was trained with other variables frozen, or is "
        "damaged. Choose another output_dir and give this checkpoint as init_checkpoint."
      )
    if missing:
      logging.warning("%s holds no optimizer slots: Adam starts from zero moments.", prefix)
    # A run that did not compute in float16 had no loss scale.
    missing += [n for n in loss_scaling.INITIAL_VALUES if n in variables and n not in saved]
    for name in missing:
      variable = variables.pop(name)
      value = tf.constant(loss_scaling.INITIAL_VALUES.get(name, 0), variable.dtype)
      variable.assign(tf.fill(variable.shape, value))
    loading.restore(prefix, variables)
    self.store.draw(loaded=self.store.variables)
    self.is_filled = True
    logging.info("Resumed from %s.", prefix)

  def initialise(self, init_checkpoint: str | None, is_training: bool = False) -> None:
    """Fills the variables of a new run by name from `init_checkpoint`, or leaves them random.

    A random head is as it should be if they are trained next.

    Raises:
      CheckpointError: the checkpoint has another head, and nothing is trained.
    """
    if not init_checkpoint:
      logging.warning(
        "NO CHECKPOINT in %s, and no init_checkpoint was given: all %d variables are RANDOM.",
        self._config.model_dir,
        len(self.weights()),
      )
      self.store.draw()
      return
    checkpoint = finding.find(init_checkpoint)
    prefix = checkpoint.prefix
    report = loading.init_from_checkpoint(checkpoint, self.weights())
    if report.mismatched:
      lines = "\n  ".join(map(str, report.mismatched))
      if not is_training:
        raise CheckpointError(
          f"{prefix} has a head of another shape, so all results would be those of RANDOM values. "
          f"Train first, or evaluate a model with this task's labels.\n  {lines}"
        )
      logging.warning("OF ANOTHER SHAPE IN %s, hence RANDOM:\n  %s", prefix, lines)
    self.store.draw(report.loaded)
    self.is_filled = True
    logging.info("%s", report.summary())
    if not (is_training or report.skipped()):  # the whole model is that checkpoint's
      self.global_step.assign(resumption.step_of(prefix))
    if report.missing:
      is_head = not any(name.startswith(report.required_scope) for name in report.missing)
      is_expected = is_training and is_head
      logging.log(
        logging.INFO if is_expected else logging.WARNING,
        "NOT IN %s, hence RANDOM%s: %s",
        prefix,
        " (expected: a new head)" if is_expected else "",
        ", ".join(report.missing),
      )

  def load(self, path: str | None, init_checkpoint: str | None) -> None:
    """Fills the variables for evaluation or prediction; as for a new run if `path` is None."""
    if path is None:
      self.initialise(init_checkpoint)
      return
    prefix = finding.find_checkpoint(path)
    # A checkpoint of this run must hold the whole model: a random head would go unnoticed.
    weights = self.weights()
    loading.restore(prefix, weights)
    self.store.draw(loaded=weights)
    self.is_filled = True
    self.global_step.assign(resumption.step_of(prefix))

  def save(self, step: int, state: RunState) -> None:
    """Saves all variables and `state` as the checkpoint of `step`."""
    self._save(step, self.store.variables, self._sidecar(state))

  @contextlib.contextmanager
  def saving_meanwhile(self, step: int, state: RunState) -> Iterator[None]:
    """Saves in a thread, while the block runs, what the variables hold now.

    The block may change them: TensorFlow writes to no buffer that somebody has read, so that the
    memory of what it changes is needed twice until the file is written. An error of the block comes
    before one of saving. Workers of a job meet where they save, and therefore do so first.
    """
    if distribution.is_collective():
      self.save(step, state)
      yield
      return
    values = {name: tf.convert_to_tensor(each) for name, each in self.store.variables.items()}
    with concurrent.futures.ThreadPoolExecutor(1, "bert-saving") as pool:
      saved = pool.submit(self._save, step, values, self._sidecar(state))
      del values
      yield
      saved.result()

  def _save(self, step: int, tensors: Mapping[str, Any], sidecar: Mapping[str, Any]) -> None:
    prefix = distribution.on_chief(
      saving.save,
      self._config.model_dir,
      step,
      tensors,
      sidecar,
      keep=self._config.keep_checkpoint_max,
    )
    logging.info("Saved %s.", prefix)

  def save_best(self, step: int, state: RunState) -> None:
    """Saves the weights, without optimizer slots, as the only checkpoint in `model_dir/best`."""
    tensors = {**self.weights(), "global_step": self.global_step}
    directory = os.path.join(self._config.model_dir, "best")
    prefix = distribution.on_chief(
      saving.save, directory, step, tensors, self._sidecar(state), keep=1
    )
    logging.info("Best so far: %s.", prefix)

  def _sidecar(self, state: RunState) -> dict[str, Any]:
    run = dataclasses.asdict(state)
    if not state.left_best:
      del run["left_best"]  # the sidecar is then that of earlier versions
    return {
      "run": run,
      "fingerprint": self._config.fingerprint,
      "informative": self._config.informative,
    }

  def clean(self, newest: str | None) -> None:
    """Removes incomplete files that a killed run of this folder has left."""
    if not distribution.is_chief():
      return
    best = finding.latest(os.path.join(self._config.model_dir, "best"))
    for prefix, keep in ((newest, self._config.keep_checkpoint_max), (best, 1)):
      if prefix:
        saving.clean(prefix, keep)
