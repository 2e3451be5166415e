"""Where a model's files are: a local folder, a released model, or a repository of the Hub.

located("uncased_L-12_H-768_A-12")                           # a folder, or the released model
located("google-bert/bert-base-cased", TOKENIZER_FILES)      # its folder in the Hub's cache
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from bert.checkpoints import model_source
from bert.checkpoints.transformers_folder import CONFIG
from bert.families.files import RELEASED

TOKENIZER_FILES = (
  "tokenizer_config.json",
  "tokenizer.json",
  "vocab.txt",
  "vocab.json",
  "merges.txt",
  "spiece.model",
  "special_tokens_map.json",
  "added_tokens.json",
)
WEIGHTS_FILES = ("model.safetensors", "tf_model.h5", "pytorch_model.bin")  # the first one there

# Arguments of `from_pretrained` with which files are looked for on the Hub, and those without
# effect here.
_HUB = (
  "cache_dir",
  "force_download",
  "proxies",
  "local_files_only",
  "token",
  "revision",
  "subfolder",
)
_WITHOUT_EFFECT = (
  "resume_download",
  "use_auth_token",
  "trust_remote_code",
  "mirror",
  "_from_auto",
  "_commit_hash",
  "_from_pipeline",
  "code_revision",
  "use_safetensors",
  "from_pt",
  "from_tf",
  "variant",
  "torch_dtype",
  "dtype",
)


class ModelNotFoundError(OSError, ValueError):
  """There is no model of a name, or no folder; an OSError, as in transformers."""


def located(name_or_path: str | os.PathLike, files: Sequence[str] = (), **options: Any) -> str:
  """Returns the local path of a model, which is downloaded if necessary.

  Args:
    name_or_path: a local path; the name of a released model, such as `uncased_L-12_H-768_A-12`; or
      the name of a repository of the Hub, such as `bert-base-uncased`.
    files: what is needed of a repository beside its `config.json`; the first of `WEIGHTS_FILES`
      that it has.
    **options: arguments of `from_pretrained`; `cache_dir`, `revision`, `subfolder` and the like
      count.

  Raises:
    ModelNotFoundError: there is no such model, or the Hub cannot be reached.
  """
  path = os.path.expanduser(os.fsdecode(name_or_path))
  if os.path.isfile(path) and model_source.on_disk(path) is None:
    return path  # such as a vocabulary
  try:
    source = model_source.identify(path)
    if source.kind is not model_source.Kind.RELEASED:
      return os.path.join(source.path, options.get("subfolder") or "").rstrip(os.sep)
    if source.path == path or model_source.is_address(path):
      return model_source.local_path(path, options.get("cache_dir"))
  except ValueError as error:
    missing = str(error)
    if path.startswith((".", os.sep)) or path.count("/") > 1 or os.path.exists(path) or not path:
      raise ModelNotFoundError(missing) from None
  else:
    missing = f"There is no local folder {path}."
  options = {name: value for name, value in options.items() if name in _HUB and value is not None}
  return _from_hub(path, files, options, missing)


def _from_hub(name: str, files: Sequence[str], options: Mapping, missing: str) -> str:
  from bert.transformers.library import transformers

  fetch = transformers.utils.cached_file
  try:
    folder = os.path.dirname(fetch(name, CONFIG, **options))
    for file in files:
      found = fetch(name, file, **options, _raise_exceptions_for_missing_entries=False)
      if found and file in WEIGHTS_FILES:
        break
  except OSError as error:
    reason = str(error).partition("\n")[0]
    raise ModelNotFoundError(f"{missing} Nor does the Hub give it: {reason}") from None
  return folder


def is_released(name: str | os.PathLike) -> bool:
  """Tells whether a name is that of a released model, and of no local folder."""
  return os.fsdecode(name) in RELEASED and not os.path.exists(name)


def without_options(arguments: Mapping) -> dict:
  """Leaves out the arguments about the Hub and the form of files."""
  left_out = (*_HUB, *_WITHOUT_EFFECT)
  return {name: value for name, value in arguments.items() if name not in left_out}


def refuse_upload(arguments: Mapping) -> None:
  """Raises a ValueError if a model is to be sent to the Hub."""
  if arguments.get("push_to_hub"):
    raise ValueError(
      "push_to_hub: nothing is sent from here. Send the folder with huggingface-cli."
    )
