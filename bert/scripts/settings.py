"""Typed settings: frozen dataclasses whose fields are the flags of a script, and values of Python.

  class Speed(Settings, title="Speed"):
    steps: int = setting(100, "Number of steps.", at_least(1))
    name: str | None = setting(None, "Name of the run.")
    loops: int = 1                                 # a value without a flag

  settings = Speed.of(steps=20)                    # from Python; `flag_groups.read` of flags
  settings.steps, settings.given                   # 20, {"steps"}
  settings = settings.replace(loops=2)

A class with several bases has the fields of all of them, so that a function takes the narrowest
class that has what it reads. Subclasses of `Settings` become dataclasses by themselves. This module
knows nothing of absl's flags; `flag_groups.py` makes flags of these classes.
"""

import dataclasses
import difflib
import inspect
import os
import types
import typing
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

from absl import logging

from bert.io import filesystem

if TYPE_CHECKING:
  from typing_extensions import Self, dataclass_transform
else:

  def dataclass_transform(**_):
    """Tells type checkers that a class makes dataclasses; Python 3.10 lacks it."""
    return lambda made: made


class UsageError(ValueError):
  """The command line is wrong. `command_line.run` prints the message and points to `--help`."""


class Rule(NamedTuple):
  """Which values a setting can have; None, which stands for no value, is always possible."""

  is_good: Callable[[Any], bool]
  needed: str  # in words: `at least 1`


def at_least(least: float) -> Rule:
  """Returns the rule of numbers that are not smaller."""
  return Rule(lambda value: value >= least, f"at least {least}")


def above_zero(words: str = "a positive number") -> Rule:
  """Returns the rule of finite numbers above zero."""
  return Rule(lambda value: 0 < value < float("inf"), words)


def loss_weight() -> Rule:
  """Returns the rule of finite numbers that are not negative, by which a loss is multiplied."""
  return Rule(lambda value: 0 <= value < float("inf"), "at least 0")


def share(words: str = "between 0 and 1") -> Rule:
  """Returns the rule of numbers from 0 to 1."""
  return Rule(lambda value: 0 <= value <= 1, words)


# Settings of a model's files: which of `model_files.ModelFiles` a folder stands for.
_OF_MODEL = {
  "bert_config_file": "config",
  **dict.fromkeys(("vocab_file", "old_vocab_file", "spm_model_file"), "vocabulary"),
}


@dataclasses.dataclass(frozen=True)
class Path:
  """How a setting that is a path is read: `~` is the user's own folder.

  A setting of a model's file, such as `vocab_file`, takes the folder of the model, too. Which file
  systems a remote path can be on is decided where it is opened (`bert/io/filesystem.py`).
  """

  local: bool = False  # whether it must be local, as where locks and renames are needed
  several: bool = False  # whether there may be several, separated by commas
  is_model: bool = False  # whether it may be the name or the address of a model instead

  def read(self, name: str, value: str) -> str:
    """Returns the path of a setting, or the paths, as they are opened.

    Raises:
      ValueError: it is of no use; the message has no full stop.
    """
    if not self.several:
      return self._read_one(name, value)
    return ",".join(self._read_one(name, path) for path in value.split(","))

  def _read_one(self, name: str, path: str) -> str:
    path = os.path.expanduser(path)
    if meant := filesystem.meant_as_remote(path):
      raise ValueError(f"did you mean {meant}? If it is a local folder, write ./{path}")
    if self.local:
      path = path.removeprefix("file://")
      if filesystem.is_remote(path):
        raise ValueError("this path is remote, but must be local. Copy to or from a local disk")
    elif filesystem.is_web_address(path) and not self.is_model:
      raise ValueError("this is an address on the web. Download the file, and give its path")
    # A remote folder is found when it is opened: reading settings waits for no network.
    return _file_of_model(name, path) if name in _OF_MODEL and os.path.isdir(path) else path


def _file_of_model(name: str, folder: str) -> str:
  """Returns the file of a model in its folder; a ValueError where it has none."""
  from bert.checkpoints import model_files

  need = {"config": model_files.need_config, "vocabulary": model_files.need_vocabulary}
  try:
    return need[_OF_MODEL[name]](folder)
  except ValueError as error:
    raise ValueError(str(error).rstrip(".")) from None


class Setting(NamedTuple):
  """What a field is on a command line."""

  help: str
  rule: Rule | None = None
  choices: tuple[str, ...] = ()
  path: Path | None = None


def setting(
  default: Any,
  help: str,
  rule: Rule | None = None,
  *,
  choices: Iterable[str] = (),
  path: Path | None = None,
) -> Any:
  """Makes a field that has a flag.

  Args:
    default: of the flag. None stands for no value, also where the field's type lacks it: of what
      `required` names, or what is found with the model.
    help: for `--help`.
    rule: which values `check` accepts.
    choices: of words, the only possible ones.
    path: how to read a path; None for anything else.
  """
  metadata = {"setting": Setting(help, rule, tuple(choices), path)}
  if isinstance(default, list):
    return dataclasses.field(default_factory=lambda: list(default), metadata=metadata)
  return dataclasses.field(default=default, metadata=metadata)


@dataclass_transform(
  kw_only_default=True, frozen_default=True, field_specifiers=(setting, dataclasses.field)
)
class _Meta(type):
  """Makes each class of settings a frozen dataclass."""

  def __new__(mcs, name, bases, namespace, title=None):
    made: Any = super().__new__(mcs, name, bases, namespace)
    if title is not None:
      made.title = title
    return dataclasses.dataclass(frozen=True, kw_only=True, eq=False, repr=False)(made)

  def __init__(cls, name, bases, namespace, title=None):
    super().__init__(name, bases, namespace)


class Settings(metaclass=_Meta):
  """Settings of a script, or of a part of it.

  Attributes:
    given: the names of values that the user gave, on the command line or in Python. All others are
      defaults, or follow from other values.
    required: names of settings that must have a value once model files are found.
    title: heading of the class's own flags in `--help`; by default that of its base.
  """

  given: frozenset[str] = frozenset()
  required: ClassVar[tuple[str, ...]] = ()
  title: ClassVar[str] = "Other"

  # -------------------------------------------------------------------------------------------
  # Made once.

  @classmethod
  def of(cls, **values: Any) -> "Self":
    """Makes settings of Python values, checked as those of a command line are.

    Raises:
      UsageError: there is no such setting, or a value is none that it can have.
    """
    known = cls.declared()
    for name, value in values.items():
      if name not in known:
        near = difflib.get_close_matches(name, known, n=1)
        question = f" Did you mean {near[0]}?" if near else ""
        raise UsageError(f"{cls.__name__} has no setting {name}.{question}")
      values[name] = _checked_value(name, value, known[name], kind_of(cls, name))
    return cls.made(values)

  @classmethod
  def made(cls, given: Mapping[str, Any], defaults: Mapping[str, Any] | None = None) -> "Self":
    """Makes settings of values that were checked.

    Args:
      given: name -> value, of the user.
      defaults: name -> value, in the place of the settings' own defaults.
    """
    values = {**(defaults or {}), **given}
    return cls(**values, given=frozenset(given)).derived()

  def derived(self) -> "Self":
    """Returns the settings with those that follow from others. A subclass calls `super()`, too."""
    return self

  def replace(self, **values: Any) -> "Self":
    """Returns the same settings but for these values."""
    return dataclasses.replace(self, **values)

  # -------------------------------------------------------------------------------------------
  # All of them.

  @classmethod
  def declared(cls) -> dict[str, Setting]:
    """Returns name -> declaration of all settings that have a flag."""
    found = {field.name: field.metadata.get("setting") for field in dataclasses.fields(cls)}
    return {name: declared for name, declared in found.items() if declared}

  @classmethod
  def by_title(cls) -> dict[str, list[str]]:
    """Returns title -> names of settings, those of the class itself first, then of its bases.

    A setting is under the title of the class that has declared it first.
    """
    known = cls.declared()
    classes: list[Any] = [each for each in cls.__mro__ if dataclasses.is_dataclass(each)]
    groups: dict[str, list[str]] = {}
    homes: dict[str, type] = {}
    for each in classes:
      fields = {field.name: field for field in dataclasses.fields(each)}
      for name in known.keys() & inspect.get_annotations(each).keys():
        if "setting" in fields[name].metadata:
          homes[name] = each
          groups.setdefault(each.title, [])
    for each in classes:
      names = inspect.get_annotations(each)
      groups.get(each.title, []).extend(name for name in names if homes.get(name) is each)
    return groups

  @property
  def values(self) -> dict[str, Any]:
    """All settings that have a flag: name -> value."""
    return {name: getattr(self, name) for name in type(self).declared()}

  def in_words(self) -> str:
    """Returns the settings that have another value than by default, as on a command line."""
    defaults = type(self)()
    return " ".join(
      f"--{name}={value}" for name, value in self.values.items() if value != getattr(defaults, name)
    )

  def get(self, name: str, default: Any = None) -> Any:
    """Returns the value of a setting that other scripts have, and this one may lack."""
    return getattr(self, name, default)

  # -------------------------------------------------------------------------------------------
  # Checks.

  def check(self) -> None:
    """Raises a UsageError for the first value that breaks its rule; subclasses check more."""
    for name, declared in type(self).declared().items():
      if declared.rule:
        self.check_value(name, declared.rule)

  def check_value(self, name: str, rule: Rule) -> None:
    """Raises a UsageError if a setting has a value, which breaks a rule."""
    value = getattr(self, name)
    if value is not None and not rule.is_good(value):
      raise UsageError(f"--{name}={value}: must be {rule.needed}.")

  def check_required(self) -> None:
    """Raises a UsageError that names all required settings without a value, in 2018's words."""
    missing = [name for name in type(self).required if getattr(self, name) is None]
    if missing:
      raise UsageError(
        "\n".join(f"Flag --{name} must have a value other than None." for name in missing)
      )

  def explain_ignored(self, reasons: Mapping[str, str]) -> None:
    """Logs a line for each given setting that changes nothing: name -> why."""
    for name, reason in reasons.items():
      if name in self.given:
        logging.info("Flag --%s has no effect: %s.", name, reason)


def changed(base: type[Settings], name: str, **parts: Any) -> Any:
  """Makes the field of a base class's setting, with another `default`, `help` or `rule`."""
  field = next(each for each in dataclasses.fields(base) if each.name == name)
  declared: Setting = field.metadata["setting"]
  default = parts.pop("default", field.default)
  return dataclasses.field(default=default, metadata={"setting": declared._replace(**parts)})


def kind_of(settings_class: type[Settings], name: str) -> type:
  """Returns `bool`, `int`, `float`, `str` or `list`, what a setting is if it has a value."""
  hint: Any
  [hint] = [each.type for each in dataclasses.fields(settings_class) if each.name == name]
  if isinstance(hint, types.UnionType):
    [hint] = [each for each in typing.get_args(hint) if each is not type(None)]
  return typing.get_origin(hint) or hint


def _checked_value(name: str, value: Any, declared: Setting, kind: type) -> Any:
  """Returns a value of Python as its flag would have it; a UsageError for one of another type."""
  if value is None:
    return None
  if declared.path:
    try:
      return declared.path.read(name, os.fspath(value))
    except ValueError as error:
      raise UsageError(f"{name}={value}: {error}.") from None
  if declared.choices and value not in declared.choices:
    raise UsageError(f"{name}={value}: must be one of {', '.join(declared.choices)}.")
  if kind is float and isinstance(value, int) and not isinstance(value, bool):
    value = float(value)
  if kind is list and isinstance(value, tuple):
    value = list(value)
  if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
    raise UsageError(f"{name}={value!r}: must be of type {kind.__name__}.")
  return value
