"""The files of a tokenizer in the folder of a model: read and written.

  load(BertTokenizer, "bert-base-uncased")      # what BertTokenizer.from_pretrained does
  save(tokenizer, "/tmp/model", None, None)     # what its save_pretrained does

A folder has a vocabulary (vocab.txt, vocab.json and merges.txt, or spiece.model) or a
tokenizer.json or both; settings in tokenizer_config.json; and, from older versions, tokens in
special_tokens_map.json and added_tokens.json.
"""

import json
import os
from collections.abc import Mapping
from typing import Any

from bert.checkpoints import model_files, model_source
from bert.io import atomic_files, filesystem, json_files, tokenizer_settings
from bert.text.vocabulary_file import VocabularyError
from bert.transformers.added_tokens import AddedToken
from bert.transformers.tokenization_options import LOGGER

CONFIG = tokenizer_settings.CONFIG
TOKENIZER = tokenizer_settings.TOKENIZER
_SPECIAL = "special_tokens_map.json"
_ADDED = "added_tokens.json"
_MORE = "additional_special_tokens"

# Of `from_pretrained`, for which nothing is to be done here.
_WITHOUT_EFFECT = (
  *("force_download", "local_files_only", "token", "use_auth_token", "revision", "proxies"),
  *("resume_download", "trust_remote_code", "from_pt", "_from_auto", "_commit_hash", "mirror"),
)
_CASED_NAMES = ("cased_L-", "multi_cased_L-", "wwm_cased_L-")
_LENGTH_OF_RELEASED = 512  # of every released model here, in tokens


# ---------------------------------------------------------------------------------------------
# Reading.


def load(cls: type[Any], name_or_path: str | os.PathLike, *init_inputs: Any, **kwargs: Any) -> Any:
  """See `PreTrainedTokenizerBase.from_pretrained`."""
  for name in _WITHOUT_EFFECT:
    kwargs.pop(name, None)
  cache_dir, subfolder = kwargs.pop("cache_dir", None), kwargs.pop("subfolder", None) or ""
  path = os.fsdecode(name_or_path)
  if os.path.isfile(path):
    return cls(*_of_single_file(cls, path), *init_inputs, **kwargs)
  is_local = os.path.isdir(path)
  folder = path if is_local else folder_of_released(path, cache_dir)
  folder = os.path.join(folder, subfolder) if subfolder else folder
  config = read_json(folder, CONFIG)
  if not is_local and not config:
    config["model_max_length"] = _LENGTH_OF_RELEASED
  if not config and os.path.basename(os.path.abspath(folder)).startswith(_CASED_NAMES):
    config["do_lower_case"] = False
  arguments = _arguments(cls, folder, config, kwargs)
  arguments["name_or_path"] = path
  init_inputs = init_inputs or tuple(config.get("init_inputs", ()))
  return cls(*init_inputs, **arguments)


def _of_single_file(cls: type[Any], path: str) -> tuple[str]:
  if len(cls.vocab_files_names) > 1:
    raise ValueError(
      f"{cls.__name__}.from_pretrained takes a folder or a name, not the file {path}: pass the "
      f"file to the class itself, as {cls.__name__}({next(iter(cls.vocab_files_names))}=...)."
    )
  return (path,)


def folder_of_released(name: str, cache_dir: str | os.PathLike | None = None) -> str:
  """Returns the folder of a released model, downloaded if necessary.

  Raises:
    OSError: there is no model of this name, or it cannot be fetched.
  """
  try:
    return model_files.folder_of(model_source.local_path(name, cache_dir))
  except ValueError as error:
    raise OSError(f"No tokenizer is found at {name!r}: {error}") from error


def read_json(folder: str, name: str) -> dict[str, Any]:
  """Reads a JSON object of a folder; empty if there is no such file, ValueError if it is bad."""
  path = os.path.join(folder, name)
  return json_files.read_object(path) if filesystem.is_file(path) else {}


def _arguments(
  cls: type[Any], folder: str, config: dict[str, Any], kwargs: Mapping[str, Any]
) -> dict[str, Any]:
  """Collects the arguments of the constructor: `kwargs` go before the files."""
  _warn_of_other_class(cls, config.get("tokenizer_class"))
  left_out = ("tokenizer_class", "init_inputs", "tokenizer_file", "name_or_path", "auto_map")
  arguments = {name: value for name, value in config.items() if name not in left_out}
  if isinstance(arguments.get("extra_special_tokens"), list):  # what transformers 5 calls them
    arguments[_MORE] = [*(arguments.get(_MORE) or ()), *arguments.pop("extra_special_tokens")]
  arguments.update(kwargs)
  files = _files(cls, folder)
  for name, path in files.items():
    arguments.setdefault(name, path)
  content = read_json(folder, TOKENIZER)
  stated = tokenizer_settings.of_content(content)
  if stated and not stated.refusal and cls.__name__ != "PreTrainedTokenizerFast":
    arguments = {"do_lower_case": stated.do_lower_case, **stated.splitting, **arguments}
  added: dict[int, AddedToken] = {}
  if "added_tokens_decoder" in arguments:
    added = {int(i): AddedToken.of(each) for i, each in arguments["added_tokens_decoder"].items()}
  else:
    _take_special_tokens(arguments, read_json(folder, _SPECIAL), kwargs)
    special = _special_in(cls, arguments)
    for token, index in read_json(folder, _ADDED).items():
      is_special = token in special
      added[index] = AddedToken(token, normalized=not is_special, special=is_special)
    for token in content.get("added_tokens", []):
      added[token["id"]] = AddedToken.of(token)
  arguments = _with_tokens(arguments)
  arguments["added_tokens_decoder"] = added
  by_content = {token.content: token for token in added.values()}
  for name in cls.SPECIAL_TOKENS_ATTRIBUTES:
    value = arguments.get(name)
    if value is not None and name != _MORE:
      arguments[name] = by_content.get(str(value), value)
  return arguments


def _files(cls: type[Any], folder: str) -> dict[str, str]:
  """Returns the paths of the files of a class that a folder has, by argument.

  Raises:
    OSError: it has no vocabulary.
  """
  files = {}
  for argument, name in cls.vocab_files_names.items():
    path = os.path.join(folder, name)
    if filesystem.is_file(path):
      files[argument] = path
  needed = {name for name in cls.vocab_files_names if name != "tokenizer_file"}
  if not needed <= files.keys() and cls.reads_tokenizer_json:
    path = os.path.join(folder, TOKENIZER)  # all that transformers 5 writes
    if filesystem.is_file(path):
      files.update(dict.fromkeys(needed, path))
  if "tokenizer_file" not in files and not needed <= files.keys():
    other = model_files.find(folder).vocabulary  # a released ALBERT's 30k-clean.model
    ending = os.path.splitext(cls.vocab_files_names["vocab_file"])[1]
    if needed != {"vocab_file"} or not other or not other.endswith(ending):
      raise OSError(
        f"{folder} has no tokenizer of the class {cls.__name__}: "
        f"{' or '.join(cls.vocab_files_names.values())} is missing."
      )
    files["vocab_file"] = other
  return files


def vocabulary_in(path: str | os.PathLike, kind: str) -> dict[str, Any]:
  """Returns the `model` of a tokenizer.json; a `VocabularyError` if it is of another kind."""
  model = json_files.read_object(os.fsdecode(path)).get("model") or {}
  if model.get("type", kind) != kind or not isinstance(model.get("vocab"), dict):
    raise VocabularyError(f"{path} has a model of the kind {model.get('type')!r}, not {kind!r}.")
  return model


def _warn_of_other_class(cls: type[Any], other: Any) -> None:
  name = cls.__name__
  if not isinstance(other, str) or name == "PreTrainedTokenizerFast":
    return
  stem = other.removesuffix("Fast").removesuffix("Tokenizer")
  if stem in tokenizer_settings.SAME_AS_BERT:
    other = "BertTokenizer"
  if other.removesuffix("Fast") != name.removesuffix("Fast"):
    LOGGER.warning(
      "The folder says that its tokenizer is a %s; a %s may split texts in another way.",
      other,
      name,
    )


def _take_special_tokens(
  arguments: dict[str, Any], tokens: Mapping[str, Any], kwargs: Mapping[str, Any]
) -> None:
  """Takes over what special_tokens_map.json says, unless it was given."""
  for name, value in tokens.items():
    if kwargs.get(name):
      continue
    if isinstance(value, Mapping):
      value = AddedToken.of({**value, "special": True})
    elif name == _MORE and isinstance(value, list):
      found = [_token(each) for each in arguments.get(_MORE) or ()]
      for each in value:
        token = AddedToken.of({**each, "special": True}) if isinstance(each, Mapping) else each
        if token not in found:
          found.append(token)
      value = found
    arguments[name] = value


def _special_in(cls: type[Any], arguments: Mapping[str, Any]) -> set[str]:
  found: set[str] = set()
  for name in cls.SPECIAL_TOKENS_ATTRIBUTES:
    value = arguments.get(name)
    if value is not None:
      found.update(map(str, value if name == _MORE else [value]))
  return found


def _token(value: Any) -> Any:
  is_token = isinstance(value, Mapping) and value.get("__type") == "AddedToken"
  return AddedToken.of(value) if is_token else value


def _with_tokens(value: Any) -> Any:
  """Makes `AddedToken`s of the dictionaries that say so."""
  token = _token(value)
  if token is not value:
    return token
  if isinstance(value, list | tuple):
    return [_with_tokens(each) for each in value]
  if isinstance(value, Mapping):
    return {name: _with_tokens(each) for name, each in value.items()}
  return value


# ---------------------------------------------------------------------------------------------
# Writing.


def save(
  tokenizer: Any,
  folder: str | os.PathLike,
  legacy_format: bool | None = None,
  filename_prefix: str | None = None,
) -> tuple[str, ...]:
  """See `PreTrainedTokenizerBase.save_pretrained`."""
  folder = os.fsdecode(folder)
  if os.path.isfile(folder):
    raise ValueError(f"{folder} is a file; save_pretrained writes into a folder.")
  os.makedirs(folder, exist_ok=True)
  prefix = f"{filename_prefix}-" if filename_prefix else ""
  paths = tuple(os.path.join(folder, f"{prefix}{name}") for name in (CONFIG, _SPECIAL))
  _write_json(paths[0], _config_of(tokenizer))
  _write_json(paths[1], _as_settings(tokenizer.special_tokens_map_extended, is_typed=False))
  return paths + tokenizer._save_files(folder, prefix, legacy_format)


def _config_of(tokenizer: Any) -> dict[str, Any]:
  config = dict(tokenizer.init_kwargs)
  for name in (*config, "model_max_length", "clean_up_tokenization_spaces"):
    if hasattr(tokenizer, name):
      config[name] = getattr(tokenizer, name)
  config.update(tokenizer.special_tokens_map)
  config.setdefault("extra_special_tokens", tokenizer.extra_special_tokens)
  if tokenizer.init_inputs:
    config["init_inputs"] = list(tokenizer.init_inputs)
  for name in (*tokenizer.vocab_files_names, "name_or_path", "tokenizer_file"):
    config.pop(name, None)
  config = _as_settings(config, is_typed=True)
  config["added_tokens_decoder"] = {
    str(index): token.settings() for index, token in tokenizer.added_tokens_decoder.items()
  }
  name = type(tokenizer).__name__
  if getattr(tokenizer, "can_save_slow_tokenizer", False):
    name = name.removesuffix("Fast")
  config["tokenizer_class"] = name
  return config


def _as_settings(value: Any, is_typed: bool) -> Any:
  """Makes dictionaries of `AddedToken`s, with their type, or without what is special."""
  if isinstance(value, AddedToken):
    settings = value.settings()
    if is_typed:
      return {**settings, "__type": "AddedToken"}
    settings.pop("special")
    return settings
  if isinstance(value, list | tuple | set):
    return [_as_settings(each, is_typed) for each in value]
  if isinstance(value, Mapping):
    return {name: _as_settings(each, is_typed) for name, each in value.items()}
  return value


def write_added_tokens(tokenizer: Any, folder: str, prefix: str) -> str:
  """Writes added_tokens.json if there are tokens beyond the vocabulary; returns its path."""
  path = os.path.join(folder, f"{prefix}{_ADDED}")
  size = tokenizer.vocab_size
  added = {token: i for token, i in tokenizer.added_tokens_encoder.items() if i >= size}
  if added:
    _write_json(path, added)
  return path


def _write_json(path: str, content: Mapping[str, Any]) -> None:
  text = json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False, default=str)
  atomic_files.write_text(path, text + "\n")
