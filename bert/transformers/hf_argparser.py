"""Command lines into dataclasses, as in transformers' scripts: a flag for each field.

parser = HfArgumentParser((ModelArguments, TFTrainingArguments))
model_args, training_args = parser.parse_args_into_dataclasses()
"""

import argparse
import dataclasses
import enum
import json
import pathlib
import sys
import types
import typing
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Literal, Union

_YES = ("yes", "true", "t", "y", "1")
_NO = ("no", "false", "f", "n", "0")


def HfArg(  # noqa: N802
  *,
  aliases: str | Sequence[str] | None = None,
  help: str | None = None,
  default: Any = dataclasses.MISSING,
  default_factory: Any = dataclasses.MISSING,
  metadata: Mapping[str, Any] | None = None,
  **kwargs,
) -> Any:
  """Makes a field of a dataclass with the help and further names of its flag.

  Args:
    aliases: further names, such as "-e".
    help: of the flag.
    default: its value; a field without one is required.
    default_factory: makes it, instead.
    metadata: further arguments of `ArgumentParser.add_argument`.
    **kwargs: of `dataclasses.field`.
  """
  options = {"aliases": aliases, "help": help}
  given = {key: value for key, value in options.items() if value is not None}
  kwargs |= {"default": default, "default_factory": default_factory}
  return dataclasses.field(metadata={**(metadata or {}), **given}, **kwargs)


class HfArgumentParser(argparse.ArgumentParser):
  """A parser whose flags are the fields of dataclasses; others may be added as usual."""

  def __init__(self, dataclass_types: Any = None, **kwargs):
    """Adds the flags.

    Args:
      dataclass_types: a dataclass, or several.
      **kwargs: of `argparse.ArgumentParser`.

    Raises:
      ValueError: the type of a field is none that a word can be made to.
    """
    kwargs.setdefault("formatter_class", argparse.ArgumentDefaultsHelpFormatter)
    super().__init__(**kwargs)
    is_one = dataclasses.is_dataclass(dataclass_types)
    found = [dataclass_types] if is_one else list(dataclass_types or ())
    self.dataclass_types: list[Any] = found
    for each in found:
      title = getattr(each, "_argument_group_name", None)
      group = self.add_argument_group(title) if title else self
      hints = typing.get_type_hints(each)
      for field in dataclasses.fields(each):
        if field.init:
          _add_field(group, field, hints[field.name])

  def parse_args_into_dataclasses(
    self,
    args: Sequence[str] | None = None,
    return_remaining_strings: bool = False,
    look_for_args_file: bool = True,
    args_filename: str | None = None,
    args_file_flag: str | None = None,
  ) -> tuple[Any, ...]:
    """Parses a command line.

    Args:
      args: its words; by default those of this process.
      return_remaining_strings: return the words that are no flags, too, instead of an error.
      look_for_args_file: begin with the words of `SCRIPT.args` beside the script, if it exists.
      args_filename: of another such file.
      args_file_flag: a flag that names such files.

    Returns:
      An object of each dataclass; then the values of other flags, if any; then the rest.

    Raises:
      ValueError: there are words that are no flags.
    """
    words = list(sys.argv[1:] if args is None else args)
    files = [pathlib.Path(args_filename)] if args_filename else []
    if not files and look_for_args_file and sys.argv and sys.argv[0]:
      files = [pathlib.Path(sys.argv[0]).with_suffix(".args")]
    if args_file_flag:
      flags = argparse.ArgumentParser(add_help=False)
      flags.add_argument(args_file_flag, dest="files", action="append", default=[])
      named, words = flags.parse_known_args(words)
      files += map(pathlib.Path, named.files)
    first = [word for file in files if file.exists() for word in file.read_text("utf-8").split()]
    namespace, rest = self.parse_known_args([*first, *words])
    values = vars(namespace)
    made: list[Any] = [
      each(**{name: values.pop(name) for name in _names(each)}) for each in self.dataclass_types
    ]
    made += [namespace] if values else []
    if rest and not return_remaining_strings:
      raise ValueError(f"These arguments are no flags of this script: {' '.join(rest)}")
    return (*made, rest) if return_remaining_strings else tuple(made)

  def parse_dict(self, args: Mapping[str, Any], allow_extra_keys: bool = False) -> tuple[Any, ...]:
    """Makes the objects of values by name, which are taken as they are.

    Args:
      args: the values.
      allow_extra_keys: whether to ignore names that no dataclass has.

    Raises:
      ValueError: there are such names.
    """
    names = [_names(each) for each in self.dataclass_types]
    if not allow_extra_keys and (unknown := sorted(set(args) - {n for own in names for n in own})):
      raise ValueError(f"These keys are no arguments of this script: {', '.join(unknown)}")
    return tuple(
      each(**{name: args[name] for name in own if name in args})
      for each, own in zip(self.dataclass_types, names, strict=True)
    )

  def parse_json_file(self, json_file: Any, allow_extra_keys: bool = False) -> tuple[Any, ...]:
    """Makes the objects of a JSON file; see `parse_dict`."""
    content = json.loads(pathlib.Path(json_file).read_text("utf-8"))
    return self.parse_dict(content, allow_extra_keys)

  def parse_yaml_file(self, yaml_file: Any, allow_extra_keys: bool = False) -> tuple[Any, ...]:
    """Makes the objects of a YAML file, for which PyYAML is needed; see `parse_dict`."""
    import yaml

    content = yaml.safe_load(pathlib.Path(yaml_file).read_text("utf-8"))
    return self.parse_dict(content, allow_extra_keys)


def string_to_bool(value: Any) -> bool:
  """Reads "yes", "true", "t", "y", "1" and their opposites.

  Raises:
    ArgumentTypeError: it is none of these.

  Example:
    >>> string_to_bool("Yes"), string_to_bool("0")
    (True, False)
  """
  if isinstance(value, bool):
    return value
  if value.lower() in _YES + _NO:
    return value.lower() in _YES
  raise argparse.ArgumentTypeError(f"{value!r} is none of {', '.join(_YES + _NO)}.")


def _names(dataclass_type: Any) -> list[str]:
  return [field.name for field in dataclasses.fields(dataclass_type) if field.init]


def _add_field(parser: Any, field: dataclasses.Field, annotation: Any) -> None:
  """Adds the flag of a field, in both spellings: `--a_flag` and `--a-flag`."""
  options = dict(field.metadata)
  aliases = options.pop("aliases", [])
  names = _spellings(field.name) + ([aliases] if isinstance(aliases, str) else list(aliases))
  kind = _without_union(annotation, field.name)
  if kind is bool:
    _add_switch(parser, field, names, options, is_optional=annotation is not bool)
    return
  options.update(_default(field))
  origin = typing.get_origin(kind)
  if origin is Literal or (isinstance(kind, type) and issubclass(kind, enum.Enum)):
    values = typing.get_args(kind) if origin is Literal else [each.value for each in kind]
    options.update(choices=list(values), type=_chosen(values))
  elif kind is list or origin is list:
    options.update(type=(typing.get_args(kind) or (str,))[0], nargs="+")
  else:
    options["type"] = kind
  parser.add_argument(*names, **options)


def _add_switch(parser, field, names: list[str], options: dict, is_optional: bool) -> None:
  """Adds `--flag`, `--flag true` and `--flag false`; and `--no_flag` where it is on by default."""
  others = dict(options)
  has_default = field.default is not dataclasses.MISSING
  default = field.default if has_default else False
  options["type"] = string_to_bool
  if not (is_optional and default is None) and (has_default or not is_optional):
    options.update(default=default, nargs="?", const=True)
  parser.add_argument(*names, **options)
  if default is True:
    others["default"] = True
    opposite = _spellings("no_" + field.name)
    parser.add_argument(*opposite, action="store_false", dest=field.name, **others)


def _spellings(name: str) -> list[str]:
  return [f"--{name}", *([f"--{name.replace('_', '-')}"] if "_" in name else [])]


def _default(field: dataclasses.Field) -> dict[str, Any]:
  if field.default is not dataclasses.MISSING:
    return {"default": field.default}
  if field.default_factory is not dataclasses.MISSING:
    return {"default": field.default_factory()}
  return {"required": True}


def _without_union(annotation: Any, name: str) -> Any:
  """Chooses the type that words are made to: of X or None it is X, of X or text likewise.

  Raises:
    ValueError: there are several.
  """
  if typing.get_origin(annotation) not in (Union, types.UnionType):
    return annotation
  kinds = [kind for kind in typing.get_args(annotation) if kind is not type(None)]
  others = [kind for kind in kinds if kind is not str]
  if len(kinds) == 1:
    return kinds[0]
  if len(kinds) == len(others):
    raise ValueError(f"{name}: {annotation} is several types; a flag is of one.")
  # Where None is possible, too, the text may stand for anything.
  return others[0] if len(kinds) == len(typing.get_args(annotation)) else str


def _chosen(values: Iterable[Any]) -> Callable[[str], Any]:
  named = {str(value): value for value in values}
  return lambda word: named.get(word, word)
