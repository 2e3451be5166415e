"""The folder of a run: one training at a time, of one model, its best and newest checkpoint."""

import contextlib
import os
import shutil
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, TypeVar

from absl import logging

from bert import tokenization
from bert.checkpoints import model_files
from bert.checkpoints.bundle_files import STEP_NAME
from bert.io import atomic_files
from bert.io.wording import counted
from bert.model.configuration import BertConfig
from bert.scripts import run_states
from bert.scripts.run_settings import RunSettings
from bert.scripts.settings import UsageError
from bert.training import distribution

Run = TypeVar("Run", bound=RunSettings)


def prepare(output_dir: str) -> None:
  """Makes `--output_dir`; the OSError of one that cannot be written to comes before the work."""
  if os.path.islink(output_dir) and not os.path.exists(output_dir):
    target = os.readlink(output_dir)
    raise OSError(
      f"--output_dir={output_dir} is a link to {target}, which does not exist. Make it."
    )
  try:
    os.makedirs(output_dir, exist_ok=True)
    atomic_files.check_writable(output_dir)
  except OSError as error:
    raise OSError(f"--output_dir={output_dir} cannot be written to: {error}") from None


# A run that trains, and one that does not, may use a folder together: checkpoints and results
# appear whole, and the one that comes second keeps its features apart.
_TRAINING_LOCK = atomic_files.LOCK_NAME
_EVALUATION_LOCK = ".lock.evaluation"
_OWN_FEATURES = {_TRAINING_LOCK: ".features.training", _EVALUATION_LOCK: ".features.evaluation"}


@contextlib.contextmanager
def locked_output_dir(settings: Run) -> Iterator[Run]:
  """Prepares `--output_dir`, and keeps other runs of its kind out of it until the block ends.

  One run that trains and one that only evaluates or predicts may share a folder, as scripts of 2018
  do. Then the second one has its features in a folder of its own, which the block removes: the
  first reads its own again for each evaluation. The chief holds the folder for all workers. It
  yields the settings, which know where features are written.

  Raises:
    FolderInUseError: another run of this kind holds it.
    OSError: it cannot be written to.
    UsageError: it holds many runs.
  """
  _check_single(settings.output_dir)
  prepare(settings.output_dir)
  with contextlib.ExitStack() as stack:
    own = distribution.on_chief(_hold, settings, stack)
    yield settings.replace(features_folder=own) if own else settings


def _check_single(output_dir: str) -> None:
  """Refuses the folder of `--num_runs`, whose runs have folders of their own."""
  if made := run_states.seeds_of(output_dir):
    raise UsageError(
      f"--output_dir={output_dir} holds {counted(len(made), 'run')} of --num_runs. To go on with "
      f"one of them, give its folder, such as {os.path.join(output_dir, f'seed_{made[0]}')}; to "
      "report them again, --num_runs; else another --output_dir."
    )


def _hold(settings: RunSettings, stack: contextlib.ExitStack) -> str | None:
  """Locks the folder; returns the folder for features if another run uses the usual one."""
  lock = _TRAINING_LOCK if settings.do_train else _EVALUATION_LOCK
  try:
    stack.enter_context(atomic_files.hold_folder(settings.output_dir, lock))
  except atomic_files.FolderInUseError as error:
    raise _with_way_out(error, settings) from None
  [other] = {_TRAINING_LOCK, _EVALUATION_LOCK} - {lock}
  # Each run makes its lock before it looks for the other's: of two that start together, at least
  # one sees the other. The file of a killed run is seen, too, which does no harm.
  if not os.path.exists(settings.path(other)):
    return None
  logging.info("Another run uses %s: this one keeps its features apart.", settings.output_dir)
  own = settings.path(_OWN_FEATURES[lock])
  os.makedirs(own, exist_ok=True)
  stack.callback(shutil.rmtree, own, ignore_errors=True)
  return own


def _with_way_out(
  error: atomic_files.FolderInUseError, settings: RunSettings
) -> atomic_files.FolderInUseError:
  if settings.do_train:
    return error
  return atomic_files.FolderInUseError(
    f"{error} To use its newest checkpoint meanwhile, give "
    f"--init_checkpoint={settings.output_dir} and another --output_dir."
  )


def model_fingerprint(config: BertConfig, tokenizer: Any = None, **facts) -> dict[str, Any]:
  """Returns what must be equal for a run to be resumed: the model, the tokenizer, and the task.

  The facts are of the task; the tokenizer counts where the run reads text.
  """
  fingerprint = config.deciding_values()
  if tokenizer is not None:
    fingerprint["vocabulary"] = tokenization.vocabulary_hash(tokenizer.vocab)
  if words := getattr(tokenizer, "basic_tokenizer", None):
    fingerprint["strip_accents"] = words.strips
    fingerprint["tokenize_chinese_chars"] = words.tokenize_chinese_chars
  return {**fingerprint, **facts}


def check_same_model(output_dir: str, fingerprint: Mapping, ignored: Sequence[str] = ()) -> None:
  """Refuses a folder that holds a checkpoint of another model or task.

  Training does so itself. This comes before anything in the folder is overwritten, and guards
  evaluation and prediction, too: with other labels the model's answers would be wrong. Keys in
  `ignored` may differ.

  Raises:
    ResumeMismatchError: names the keys that differ, with both values.
  """
  from bert.checkpoints import finding
  from bert.training import resumption

  resumption.check_same_run(finding.latest(output_dir), fingerprint, ignored)


def check_same_task(settings: Any, config: BertConfig, tokenizer) -> None:
  """Refuses a folder of another model or task before any data are read (ResumeMismatchError)."""
  fingerprint = model_fingerprint(
    config,
    tokenizer,
    do_lower_case=settings.do_lower_case,
    task_name=settings.task_name.lower(),
  )
  # A model of MNLI may predict AX.
  ignored = () if settings.do_train else ("task_name",)
  check_same_model(settings.output_dir, fingerprint, ignored)


# Flags of a run that evaluation and prediction read, too.
_OF_RESULTS = frozenset(
  {
    *("max_seq_length", "dtype", "doc_stride", "max_query_length", "pad_to_longest"),
    *("null_score_diff_threshold", "beam_size", "start_n_top", "end_n_top"),
  }
)


def nothing_trained(settings: RunSettings, informative: Mapping) -> str:
  """The warning of a run that should train, where an earlier one has finished in its folder.

  `informative` has the flags whose change is logged, with their values now.
  """
  from bert.checkpoints import finding, reading
  from bert.training import resumption

  newest = finding.latest(settings.output_dir)
  saved = reading.read_state(newest).get("informative", {}) if newest else {}
  of_training = {name: value for name, value in informative.items() if name not in _OF_RESULTS}
  changed = resumption.differences(saved, of_training)
  without_effect = f" Without effect: {'; '.join(changed)}." if changed else ""
  of_results = {name: value for name, value in informative.items() if name in _OF_RESULTS}
  if used := resumption.differences(saved, of_results):
    without_effect += f" In the results, not in flags.json of the training: {'; '.join(used)}."
  length, patience = settings.length_name, settings.early_stopping_patience
  or_patience = f" and --early_stopping_patience={patience}" if patience else ""
  return (
    f"NOTHING WAS TRAINED: --output_dir={settings.output_dir} holds a finished run, {newest}, and "
    f"all results are those of its weights.{without_effect} To train anew, give another "
    f"--output_dir; to train this one for longer, raise "
    f"--{length}={getattr(settings, length):g}{or_patience}."
  )


def nothing_loaded(settings: RunSettings) -> str | None:
  """Returns the warning of a run that neither trains nor has weights from anywhere; else None."""
  from bert.checkpoints import finding

  if settings.do_train or settings.init_checkpoint or finding.latest(settings.output_dir):
    return None
  return (
    f"NO MODEL: --output_dir={settings.output_dir} has no checkpoint and there is no "
    "--init_checkpoint, so all results are those of RANDOM weights. Train with --do_train."
  )


def checkpoint_to_use(settings: RunSettings) -> str | None:
  """Finds the weights that evaluation, prediction and export use, as whoever loads the folder does.

  1. Where nothing is trained, the checkpoint in `--output_dir` that `--init_checkpoint` names;
  2. the best of evaluation during training, unless `--nokeep_best`;
  3. None: the newest, or those of `--init_checkpoint` where `--output_dir` has none.
  """
  from bert.checkpoints import finding

  named = settings.init_checkpoint or ""
  is_step = bool(STEP_NAME.match(os.path.basename(named)))
  places = model_files.run_folder_of(named), settings.output_dir
  if is_step and not settings.do_train and len(set(map(os.path.realpath, places))) == 1:
    logging.info("Using %s, which --init_checkpoint names.", named)
    return named
  best = finding.best(settings.output_dir) if settings.keep_best else None
  if not (best or settings.do_train) and (newest := finding.latest(settings.output_dir)):
    logging.info("Using the newest checkpoint, %s.", newest)
  return best


def checkpoint_to_export(settings: RunSettings, best: str | None = None) -> str:
  """Finds the best checkpoint, if the run keeps it, or the newest; a ValueError without any."""
  from bert.checkpoints import finding

  path = best or finding.latest(settings.output_dir)
  if not path:
    raise ValueError(
      f"--do_export: there is no checkpoint in --output_dir={settings.output_dir}; train with "
      "--do_train. A model that is not fine-tuned is exported by export_hub.py."
    )
  return path
