"""The files that make the folder of a run complete: with them it is a model that any script reads.

  bert_config.json  sizes of the model
  vocab.txt         its vocabulary, where the run has one; spiece.model for a sentencepiece model
  label_map.json    label -> index of the model's output, where the task has labels
  flags.json        every flag of the run that trained, with its value
  versions.json     of this project, Python and the libraries
  command.txt       the command line, as it was typed
  example.json      a text of the run's data, with which reports and servers show how it is used

They are written when a run starts, and removed if it ends without a checkpoint. A resumed run must
fit them: its fingerprint, which
the checkpoint holds, is compared with that of the checkpoint (`resumption.check_same_run`). A
folder of an earlier version, which lacks them, gets them at the next run.
"""

import contextlib
import importlib.metadata
import json
import os
import platform
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import bert
from bert.checkpoints import config_files, formats, label_map
from bert.io import atomic_files, filesystem, installation, json_files
from bert.model.configuration import BertConfig
from bert.scripts import command_line, on_request
from bert.scripts.run_settings import RunSettings
from bert.tasks import usage
from bert.text import tokenizer_kinds
from bert.training import distribution

CONFIG = "bert_config.json"
FLAGS = "flags.json"
VERSIONS = "versions.json"
COMMAND = "command.txt"

_LIBRARIES = ("tensorflow", "keras", "numpy", "absl-py")


def write(
  settings: RunSettings,
  config: BertConfig,
  labels: Sequence[str] | None = None,
  example: Mapping[str, Any] | None = None,
) -> list[str]:
  """Writes the files of a run that starts or resumes in `--output_dir`; the chief does.

  A run that trains writes all of them. One that does not, in a folder with a checkpoint, adds
  those of the model that are missing: flags and versions are those of the training.

  Returns:
    The paths of those that were not there.

  Raises:
    OSError: a file cannot be read or written.
    UsageError: the training in the folder used a flag that was removed.
  """
  return distribution.on_chief(_write, settings, config, labels, example)


@contextlib.contextmanager
def written(
  settings: RunSettings,
  config: BertConfig,
  labels: Sequence[str] | None = None,
  example: Mapping[str, Any] | None = None,
) -> Iterator[None]:
  """Writes the files of a run that the block makes; removes them if it fails without a checkpoint.

  Labels and sizes of a model that was never loaded would count for the next run in the folder.
  """
  from bert.checkpoints import finding

  new = write(settings, config, labels, example)
  try:
    yield
  except BaseException:
    if distribution.is_chief() and not finding.latest(settings.output_dir):
      for path in new:
        with contextlib.suppress(OSError):  # The error of the run is the one to report.
          os.remove(path)
    raise


def _write(settings, config, labels, example) -> list[str]:
  has_checkpoint, trains = _state_of(settings)
  if has_checkpoint and trains:
    _check_removed_flags(settings)
  contents = _of_model(settings, config, labels)
  if example:
    contents[usage.FILE] = _json(example)
  if trains or not has_checkpoint:
    contents |= {FLAGS: _json(settings.recorded), VERSIONS: _json(versions())}
    if typed := command_line.typed():
      contents[COMMAND] = f"{typed}\n".encode()
  new = [path for name in contents if not os.path.lexists(path := settings.path(name))]
  for name, content in contents.items():
    path = settings.path(name)
    if trains or not has_checkpoint or not os.path.exists(path):
      _write_changed(path, content)
  return new


def _state_of(settings: RunSettings) -> tuple[bool, bool]:
  """Tells whether `--output_dir` has a checkpoint, and whether the run will add steps to it."""
  from bert.checkpoints import finding
  from bert.training import resumption

  newest = finding.latest(settings.output_dir)
  if not newest:
    return False, bool(settings.do_train)
  return True, bool(settings.do_train) and resumption.step_of(newest) < settings.num_train_steps


def _check_removed_flags(settings: RunSettings) -> None:
  """Refuses to resume a training that used a flag of an earlier version which decided its steps."""
  values = json_files.read_if_there(settings.path(FLAGS), "Remove it.")
  if used := on_request.module("unknown").removed_from_training(values, settings.recorded):
    raise command_line.UsageError(
      f"{settings.output_dir} was trained with flags that were removed since, so its training "
      f"cannot continue. Its model can still be evaluated, used and exported. {' '.join(used)}"
    )


def _of_model(settings, config, labels) -> dict[str, bytes]:
  contents = {CONFIG: _config(settings, config)}
  if vocab_file := settings.vocab_file:
    contents |= tokenizer_kinds.kept_files(vocab_file)
  if labels:
    contents[label_map.NAME] = label_map.to_json(labels).encode()
  return contents


def _config(settings, config) -> bytes:
  """The user's file as it is, since `--output_dir` may be its folder; of transformers' our form."""
  path = settings.bert_config_file
  if not path or formats.describes_model(path):
    return config.to_json_string().encode()
  content = filesystem.read_bytes(path)
  is_original = config_files.is_original(json_files.object_in(content, path))
  return content if is_original else config.to_json_string().encode()


def _write_changed(path: str, content: bytes) -> None:
  if not os.path.isfile(path) or filesystem.read_bytes(path) != content:
    atomic_files.write_bytes(path, content)


def _json(content: Mapping[str, Any]) -> bytes:
  return (json.dumps(content, indent=2, ensure_ascii=False) + "\n").encode()


def versions() -> dict[str, str]:
  """Returns name -> version of this project, Python and the libraries that compute."""
  found = {installation.DISTRIBUTION: bert.__version__, "python": platform.python_version()}
  for library in _LIBRARIES:
    try:
      found[library] = importlib.metadata.version(library)
    except importlib.metadata.PackageNotFoundError:
      continue  # installed without metadata, as some builds of TensorFlow are
  return found
