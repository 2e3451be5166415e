"""The folder of a run: one run at a time, of one model, with its best and newest checkpoint."""

import contextlib
import os
from collections.abc import Iterator, Mapping, Sequence

from bert import tokenization
from bert.io import atomic_files
from bert.model.configuration import BertConfig
from bert.scripts.run_settings import RunSettings
from bert.training import distribution

# The part of a BertConfig that determines which function the weights compute. Dropout may change
# during a run.
_SHAPE_KEYS = (
  "vocab_size",
  "hidden_size",
  "num_hidden_layers",
  "num_attention_heads",
  "intermediate_size",
  "hidden_act",
  "max_position_embeddings",
  "type_vocab_size",
)


def prepare(output_dir: str) -> None:
  """Makes `--output_dir`, and checks that it can be written to, before hours of work.

  Raises:
    OSError: it cannot; the message names it.
  """
  try:
    os.makedirs(output_dir, exist_ok=True)
    atomic_files.check_writable(output_dir)
  except OSError as error:
    raise OSError(f"--output_dir={output_dir} cannot be written to: {error}") from None


@contextlib.contextmanager
def held(settings: RunSettings) -> Iterator[None]:
  """Prepares `--output_dir`, and keeps other runs out of it until the block ends.

  Not only training writes there: a run that evaluates would replace the features another one reads.
  The chief holds the folder for all workers.

  Raises:
    FolderInUseError: another run holds it.
    OSError: it cannot be written to.
  """
  prepare(settings.output_dir)
  with contextlib.ExitStack() as stack:
    if distribution.is_chief():
      try:
        stack.enter_context(atomic_files.hold_folder(settings.output_dir))
      except atomic_files.FolderInUseError as error:
        raise _with_way_out(error, settings) from None
    yield


def _with_way_out(
  error: atomic_files.FolderInUseError, settings: RunSettings
) -> atomic_files.FolderInUseError:
  if settings.do_train:
    return error
  return atomic_files.FolderInUseError(
    f"{error} To use its newest checkpoint meanwhile, give "
    f"--init_checkpoint={settings.output_dir} and another --output_dir."
  )


def model_fingerprint(config: BertConfig, vocab: Mapping[str, int] | None = None, **facts) -> dict:
  """What must be equal for a run to be resumed: the model's shape, the vocabulary, and the task.

  Args:
    config: of the model.
    vocab: token -> id, where the run reads text.
    **facts: of the task.
  """
  fingerprint = {key: config.to_dict()[key] for key in _SHAPE_KEYS}
  if vocab is not None:
    fingerprint["vocabulary"] = tokenization.vocabulary_hash(vocab)
  return {**fingerprint, **facts}


def check_same_model(output_dir: str, fingerprint: Mapping, ignored: Sequence[str] = ()) -> None:
  """Refuses a folder that holds a checkpoint of another model or task.

  Training does so itself. This comes before anything in the folder is overwritten, and guards
  evaluation and prediction, too: with other labels the model's answers would be wrong.

  Args:
    output_dir: the folder.
    fingerprint: of this run, see `model_fingerprint`.
    ignored: keys that may differ.

  Raises:
    ResumeMismatchError: names the keys that differ, with both values.
  """
  from bert.checkpoints import finding
  from bert.training import resumption

  resumption.check_same_run(finding.latest(output_dir), fingerprint, ignored)


def best_checkpoint(settings: RunSettings) -> str | None:
  """The best weights of evaluation during training, if this run keeps them."""
  if not (settings.eval_every_steps and settings.keep_best):
    return None
  from bert.checkpoints import finding

  return finding.best(settings.output_dir)


def checkpoint_to_export(settings: RunSettings, best: str | None = None) -> str:
  """The best checkpoint, if the run keeps it; else the newest of `--output_dir`.

  Raises:
    ValueError: there is nothing to export.
  """
  from bert.checkpoints import finding

  path = best or finding.latest(settings.output_dir)
  if not path:
    raise ValueError(
      f"--do_export: there is no checkpoint in --output_dir={settings.output_dir}; train with "
      "--do_train. A model that is not fine-tuned is exported by export_hub.py."
    )
  return path
