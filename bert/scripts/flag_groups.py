"""Flags in groups: what a script defines before its command line is read.

  def define_flags():
    with flag_groups.flag_group("Input and output"):
      flags.DEFINE_string("data_dir", None, "The folder that holds train.tsv and dev.tsv.")
    flag_groups.mark_required(["data_dir"])

Flags are plain absl flags. Their groups are the headings of `--help` (help_text.py), and a set that
two scripts share may be defined twice. Scripts that have typed settings (settings.py) define them
by `define(SettingsClass)`, and get their values by `read`. Importing this module defines no flag.
"""

import contextlib
import dataclasses
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, TypeVar

from absl import flags

from bert.scripts import path_flags
from bert.scripts.settings import Setting, Settings, kind_of

FLAGS = flags.FLAGS

_LIBRARIES = ("absl", "keras", "tensorflow")  # packages whose modules define flags

OTHER_GROUP = "Other"
GENERAL_GROUP = "General"

# What absl's Flag objects have no field for. Keyed by the object, so it goes when the flag goes.
_group_of: weakref.WeakKeyDictionary[flags.Flag, str] = weakref.WeakKeyDictionary()
_required: weakref.WeakSet[flags.Flag] = weakref.WeakSet()


@contextlib.contextmanager
def flag_group(title: str) -> Iterator[None]:
  """Flags defined within the block are listed under `title` by `--help`.

  The block is also idempotent: a flag that exists already is accepted when its type, default and
  help are the same, so that two scripts, or a script and a test, may define a shared set twice.

  Args:
    title: the heading, without a colon.

  Raises:
    flags.DuplicateFlagError: a flag exists already with another definition.
  """
  earlier = _take_out(own_names())
  others = set(FLAGS)
  try:
    yield
  finally:
    new = _take_out(set(FLAGS) - others)
    _put_back(earlier)
  for name, flag in new.items():
    if name not in earlier:
      _group_of.setdefault(flag, title)
      FLAGS[name] = flag
    elif not _same_definition(flag, earlier[name]):
      raise flags.DuplicateFlagError(
        f"Flag --{name} is defined twice: {_signature(earlier[name])} and {_signature(flag)}."
      )


@contextlib.contextmanager
def defined_flags(define_flags: Callable[[], None]) -> Iterator[flags.FlagValues]:
  """Within the block, `flags.FLAGS` holds the flags of `define_flags` and no other script's.

  All of them are at their defaults on entry. On exit they are gone, and what was defined before is
  back with its values. `command_line.run` uses such a block, and so can a test:

    with flag_groups.defined_flags(run_classifier.define_flags) as flag_values:
      command_line.parse(["run_classifier.py", "--do_train"])

  Args:
    define_flags: defines flags with `flags.DEFINE_*`, in a `flag_group` or not.

  Yields:
    `flags.FLAGS`.
  """
  earlier = _take_out(own_names())
  others = set(FLAGS)
  own: set[str] = set()
  try:
    try:
      define_flags()
      _define_general_flags()
    finally:
      # Noted now and not on exit: a library that is imported meanwhile may define flags to stay.
      own = set(FLAGS) - others
    for name in own:
      _group_of.setdefault(FLAGS[name], OTHER_GROUP)
    yield FLAGS
  finally:
    _take_out(own)
    _put_back(earlier)


def with_flags(define_flags: Callable[[], None]) -> flags.FlagValues:
  """`flags.FLAGS` with the flags of `define_flags`, for good; those that are there keep values."""
  define_flags()
  _define_general_flags()
  return FLAGS


def _define_general_flags() -> None:
  with flag_group(GENERAL_GROUP):
    flags.DEFINE_bool(
      "verbose_errors",
      False,
      "Also show the traceback of errors in the input, as BERT_TRACEBACK=1 in the environment "
      "does.",
    )
    flags.DEFINE_string(
      "plugin",
      None,
      "Python files with tasks of your own, joined by commas; see docs/extending.md.",
    )


def own_names(flag_values: flags.FlagValues = FLAGS) -> list[str]:
  """All flag names but those of libraries, in order.

  absl defines some (`--verbosity` and the like), and so do modules of TensorFlow when they are
  imported, which may be before or after this is asked.
  """
  of_libraries = {
    name
    for module, module_flags in flag_values.flags_by_module_dict().items()
    if module.split(".")[0] in _LIBRARIES
    for flag in module_flags
    for name in (flag.name, flag.short_name)
  }
  return [name for name in flag_values if name not in of_libraries]


def _take_out(names: Iterable[str]) -> dict[str, flags.Flag]:
  """Removes flags from FLAGS and returns them by long name, in order of definition."""
  wanted = set(names)
  taken = {name: FLAGS[name] for name in list(FLAGS) if name in wanted}
  FLAGS.remove_flag_values(taken)
  return {name: flag for name, flag in taken.items() if name == flag.name}


def _put_back(taken: dict[str, flags.Flag]) -> None:
  for name, flag in taken.items():
    FLAGS[name] = flag


def _same_definition(a: flags.Flag, b: flags.Flag) -> bool:
  return _signature(a) == _signature(b) and a.help == b.help


def _signature(flag: flags.Flag) -> str:
  return f"{flag.flag_type()} with default {flag.default!r}"


def mark_required(names: Iterable[str]) -> None:
  """Marks defined flags as required; `command_line.check_required` checks them.

  Unlike absl's `mark_flag_as_required`, nothing is checked while parsing, because a script may have
  a way to run without any flag.
  """
  for name in names:
    _required.add(FLAGS[name])


def is_required(flag: flags.Flag) -> bool:
  """Whether `mark_required` named the flag."""
  return flag in _required


def grouped_flags() -> dict[str, list[flags.Flag]]:
  """The script's own flags by the title of their group, in order of definition."""
  groups: dict[str, list[flags.Flag]] = {}
  for flag in script_flags():
    groups.setdefault(_group_of.get(flag, OTHER_GROUP), []).append(flag)
  return groups


def describe(flag_values: flags.FlagValues = FLAGS) -> list[dict[str, Any]]:
  """Lists flags, sorted by name, each as `{"name", "type", "default"}`.

  Types are `string`, `int`, `float` and `bool`; an enumeration counts as a string.
  """
  return [
    {"name": flag.name, "type": type_name(flag), "default": flag.default}
    for flag in sorted(script_flags(flag_values), key=lambda flag: flag.name)
  ]


def type_name(flag: flags.Flag) -> str:
  """`string`, `int`, `float` or `bool`."""
  kind = flag.flag_type()
  return "string" if kind.startswith("string") else kind


def script_flags(flag_values: flags.FlagValues = FLAGS) -> list[flags.Flag]:
  """The script's own flags in order of definition; one with a short name stands there once."""
  return [flag_values[name] for name in own_names(flag_values) if name == flag_values[name].name]


# ---------------------------------------------------------------------------------------------
# Flags of typed settings.

Made = TypeVar("Made", bound=Settings)


_DEFINE: dict[type, Callable[..., Any]] = {
  bool: flags.DEFINE_bool,
  int: flags.DEFINE_integer,
  float: flags.DEFINE_float,
  str: flags.DEFINE_string,
  list: flags.DEFINE_list,
}


def define(*classes: type[Settings]) -> None:
  """Defines the flags of classes of settings, under their titles."""
  for settings_class in classes:
    fields = {field.name: field for field in dataclasses.fields(settings_class)}
    declared = settings_class.declared()
    for title, names in settings_class.by_title().items():
      with flag_group(title):
        for name in names:
          _define(name, fields[name], declared[name], kind_of(settings_class, name))
    mark_required(settings_class.required)


def _define(name: str, field: dataclasses.Field, declared: Setting, kind: type) -> None:
  make = field.default_factory
  default: Any = field.default if make is dataclasses.MISSING else make()
  if declared.path:
    path_flags.define(name, default, declared.help, **dataclasses.asdict(declared.path))
  elif declared.choices:
    flags.DEFINE_enum(name, default, list(declared.choices), declared.help)
  else:
    _DEFINE[kind](name, default, declared.help)


def word_of(name: str, value: Any) -> str:
  """Returns the word of a command line that gives a setting its value.

  Example:
    >>> word_of("labels", ["a", "b"]), word_of("do_train", False)
    ('--labels=a,b', '--do_train=false')
  """
  if isinstance(value, bool):
    value = str(value).lower()
  return f"--{name}={','.join(value) if isinstance(value, list) else value}"


def read(settings_class: type[Made], defaults: Mapping[str, Any] | None = None) -> Made:
  """Returns the settings of the command line.

  Args:
    settings_class: whose flags are defined.
    defaults: name -> value, in the place of the flags' own defaults.
  """
  names = [name for name in settings_class.declared() if name in FLAGS]
  given = {name: FLAGS[name].value for name in names if FLAGS[name].present}
  return settings_class.made(given, defaults)
