"""The command line of every script: flags in groups, help, tolerant parsing, plain errors.

A script defines its flags with plain `absl.flags`, inside a function that `run` calls:

  def define_flags():
    with command_line.flag_group("Input and output"):
      flags.DEFINE_string("data_dir", None, "The folder that holds train.tsv and dev.tsv.")
    command_line.mark_required(["data_dir"])

  def main(_):
    command_line.check_required()
    ...

  if __name__ == "__main__":
    command_line.run(main, define_flags)

Command lines written for the original in 2018 keep working. TensorFlow 1 parsed "known flags
only", so a misspelt flag (`--do_lower=False`, from the original's own README) was silently ignored.
Here it is still not fatal, but a warning names it together with the flag that was probably meant.

Importing this module defines no flag. It needs absl and the standard library alone, because
`--help` has to answer at once and TensorFlow takes seconds to import.
"""

import collections
import contextlib
import dataclasses
import logging as std_logging
import os
import shutil
import sys
import textwrap
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, NoReturn

from absl import flags, logging

FLAGS = flags.FLAGS

# Spellings that people's scripts contain -> the flag they mean. `--do_lower` is in the original's
# README, where it never had an effect.
_ALIASES = {"do_lower": "do_lower_case"}

# These print something and leave. They are no absl flags: absl's own exit with code 1.
_REQUESTS = {
  "help": "help",
  "helpshort": "help",
  "h": "help",
  "?": "help",
  "helpfull": "helpfull",
  "version": "version",
}

_OTHER_GROUP = "Other"
_GENERAL_GROUP = "General"

# What absl's Flag objects have no field for. Keyed by the object, so it goes when the flag goes.
_group_of: weakref.WeakKeyDictionary[flags.Flag, str] = weakref.WeakKeyDictionary()
_required: weakref.WeakSet[flags.Flag] = weakref.WeakSet()


class UsageError(ValueError):
  """The command line is wrong. `run` prints the message and points to `--help`."""


# ---------------------------------------------------------------------------------------------
# Defining flags.


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
  earlier = _take_out(_own_names())
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
  back with its values. `run` lives in such a block, and a test can:

    with command_line.defined_flags(run_classifier.define_flags) as flag_values:
      command_line.parse(["run_classifier.py", "--do_train"])

  Args:
    define_flags: defines flags with `flags.DEFINE_*`, in a `flag_group` or not.

  Yields:
    `flags.FLAGS`.
  """
  earlier = _take_out(_own_names())
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
      _group_of.setdefault(FLAGS[name], _OTHER_GROUP)
    yield FLAGS
  finally:
    _take_out(own)
    _put_back(earlier)


def _define_general_flags() -> None:
  with flag_group(_GENERAL_GROUP):
    flags.DEFINE_bool(
      "verbose_errors",
      False,
      "Show the traceback of errors in the input, too. BERT_TRACEBACK=1 in the environment does "
      "the same.",
    )


def _own_names(flag_values: flags.FlagValues = FLAGS) -> list[str]:
  """All flag names but those that absl itself defines (`--verbosity` and the like), in order."""
  of_absl = {
    name
    for module, module_flags in flag_values.flags_by_module_dict().items()
    if module.split(".")[0] == "absl"
    for flag in module_flags
    for name in (flag.name, flag.short_name)
  }
  return [name for name in flag_values if name not in of_absl]


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
  """Says that these flags, defined already, must be given. `check_required` checks it.

  Unlike absl's `mark_flag_as_required` nothing is checked while parsing, because a script may have
  a way to run without any flag.
  """
  for name in names:
    _required.add(FLAGS[name])


def check_required() -> None:
  """Checks the flags marked by `mark_required`.

  Raises:
    UsageError: names all that have no value, in the words of the original.
  """
  missing = [flag.name for flag in _script_flags() if flag in _required and flag.value is None]
  if missing:
    raise UsageError(
      "\n".join(f"Flag --{name} must have a value other than None." for name in missing)
    )


def flag_was_given(name: str) -> bool:
  """Whether `name` stood on the command line (or in a flag file), whatever its value."""
  return FLAGS[name].present > 0


def describe(flag_values: flags.FlagValues = FLAGS) -> list[dict[str, Any]]:
  """Lists flags, sorted by name, each as `{"name", "type", "default"}`.

  Types are `string`, `int`, `float` and `bool`; an enumeration counts as a string.
  """
  return [
    {"name": flag.name, "type": _type_name(flag), "default": flag.default}
    for flag in sorted(_script_flags(flag_values), key=lambda flag: flag.name)
  ]


def _type_name(flag: flags.Flag) -> str:
  kind = flag.flag_type()
  return "string" if kind.startswith("string") else kind


def _script_flags(flag_values: flags.FlagValues = FLAGS) -> list[flags.Flag]:
  """The script's own flags in order of definition; one with a short name stands there once."""
  return [flag_values[name] for name in _own_names(flag_values) if name == flag_values[name].name]


# ---------------------------------------------------------------------------------------------
# The flags of the original that speak of TPUs.

_WITHOUT_EFFECT = {
  "master": "a TPU is named by --tpu_name, several machines by TF_CONFIG in the environment",
  "num_tpu_cores": "all cores of the TPU are used",
}
_WITHOUT_EFFECT_UNLESS_TPU = dict.fromkeys(
  ("tpu_name", "tpu_zone", "gcp_project"), "it is about a TPU, and --use_tpu is off"
)


def define_tpu_flags(cluster: bool = True) -> None:
  """Defines the original's TPU flags, in a group of their own.

  Args:
    cluster: also define `tpu_name`, `tpu_zone` and `gcp_project`, which `extract_features.py`
      does not have.
  """
  with flag_group("TPU"):
    flags.DEFINE_bool("use_tpu", False, "Run on a TPU instead of this machine's GPUs or CPU.")
    if cluster:
      flags.DEFINE_string(
        "tpu_name",
        None,
        "With --use_tpu: which TPU, by its name or by a grpc:// address. Without a name the TPU "
        "of this machine is taken.",
      )
      flags.DEFINE_string(
        "tpu_zone", None, "With --use_tpu: the zone of --tpu_name, if it is not the default one."
      )
      flags.DEFINE_string(
        "gcp_project",
        None,
        "With --use_tpu: the Google Cloud project of --tpu_name, if it is not the default one.",
      )
    flags.DEFINE_string("master", None, f"Accepted, without effect: {_WITHOUT_EFFECT['master']}.")
    flags.DEFINE_integer(
      "num_tpu_cores", 8, f"Accepted, without effect: {_WITHOUT_EFFECT['num_tpu_cores']}."
    )


def explain_ignored_flags(reasons: dict[str, str] | None = None) -> None:
  """Logs one line for each flag that was given and changes nothing, with the reason.

  Args:
    reasons: flag name -> why it has no effect. Flags that the script lacks are skipped. By default
      the TPU flags that mean nothing in this run.
  """
  if reasons is None:
    reasons = dict(_WITHOUT_EFFECT)
    if not ("use_tpu" in FLAGS and FLAGS.use_tpu):
      reasons.update(_WITHOUT_EFFECT_UNLESS_TPU)
  for name, reason in reasons.items():
    if name in FLAGS and flag_was_given(name):
      logging.info("Flag --%s has no effect: %s.", name, reason)


# ---------------------------------------------------------------------------------------------
# Parsing.


@dataclasses.dataclass
class _Words:
  """The words of a command line, sorted by what they are."""

  settings: list[tuple[flags.Flag, str]] = dataclasses.field(default_factory=list)
  positional: list[str] = dataclasses.field(default_factory=list)
  # Name -> how it was written, with the word after it that may have been its value.
  unknown: dict[str, str] = dataclasses.field(default_factory=dict)
  undefok: set[str] = dataclasses.field(default_factory=set)
  warnings: list[str] = dataclasses.field(default_factory=list)
  request: str | None = None


def parse(argv: Sequence[str], doc: str | None = None) -> list[str]:
  """Sets `flags.FLAGS` from a command line, with a warning for each word that makes no sense.

  Spellings are absl's: `--name=value`, `--name value`, one dash or two; a switch is `--do_train`,
  `--do_train=true|t|1|false|f|0` in any case, or `--nodo_train`; `--flagfile=FILE` inserts the
  flags of a file, `--undefok=a,b` silences the warning about unknown flags, `--` ends the flags,
  and the last of several values wins.

  Args:
    argv: the program's name and its arguments, as `sys.argv`.
    doc: what `--help` says about the script.

  Returns:
    The program's name and the arguments that are neither flags nor values of flags.

  Raises:
    UsageError: a flag has no value or one it cannot have.
    SystemExit: with code 0, after `--help` or `--version`.
  """
  words = _sort_words(_insert_flag_files(argv[1:]))
  if words.request:
    _answer(words.request, argv[0], doc)
  _set_flags(words)
  return [argv[0], *words.positional]


def _insert_flag_files(arguments: Sequence[str]) -> list[str]:
  try:
    return FLAGS.read_flags_from_files(list(arguments), force_gnu=False)
  except flags.CantOpenFlagFileError as error:
    raise UsageError(f"Cannot read the flag file: {error.__context__ or error}") from error
  except flags.Error as error:
    raise UsageError(f"{error}.") from error
  except UnicodeDecodeError as error:
    named = " ".join(word for word in arguments if "flagfile" in word)
    raise UsageError(f"{named}: a flag file is not UTF-8 ({error}).") from None


def _sort_words(arguments: Iterable[str]) -> _Words:
  """Tells flags, values and other words apart. Sets nothing."""
  words = _Words()
  queue = collections.deque(arguments)
  previous = ""
  while queue:
    word = queue.popleft()
    if word == "--":
      words.positional += queue
      for rest in queue:
        _note_positional(rest, "", words)
      break
    if word.startswith("-") and word.strip("-"):
      _sort_flag(word, queue, words)
    else:
      words.positional.append(word)
      _note_positional(word, previous, words)
    previous = word
  return words


def _sort_flag(word: str, queue: collections.deque[str], words: _Words) -> None:
  """Files one word that starts with a dash, taking its value from the queue where it has one."""
  name, equals, value = word[2 if word.startswith("--") else 1 :].partition("=")
  name = _without_alias(name, words)
  flag, negated = _find_flag(name)
  if name in _REQUESTS:
    words.request = words.request or _REQUESTS[name]
  elif name == "undefok":
    allowed = value if equals else _next_value(word, queue, words)
    words.undefok.update(each.strip() for each in allowed.split(","))
  elif flag is None:
    words.unknown.setdefault(name, word)
  elif negated and equals:
    raise UsageError(
      f"{word}: --{name} takes no value. Write --{flag.name}=true or --{flag.name}=false."
    )
  elif flag.boolean and not equals:
    words.settings.append((flag, "false" if negated else "true"))
  else:
    words.settings.append((flag, value if equals else _next_value(word, queue, words)))


def _without_alias(name: str, words: _Words) -> str:
  for prefix in ("", "no"):
    alias = name.removeprefix(prefix)
    meant = _ALIASES.get(alias)
    if name == prefix + alias and name not in FLAGS and meant in FLAGS:
      words.warnings.append(f"--{name} is read as --{prefix}{meant}, the flag's real name.")
      return prefix + meant
  return name


def _find_flag(name: str) -> tuple[flags.Flag | None, bool]:
  """Returns the flag and whether `name` is its negation, such as `nodo_train`."""
  if name in FLAGS:
    return FLAGS[name], False
  positive = name.removeprefix("no")
  if positive in FLAGS and FLAGS[positive].boolean:
    return FLAGS[positive], True
  return None, False


def _next_value(word: str, queue: collections.deque[str], words: _Words) -> str:
  """Takes the value of `--name value` from the words that follow."""
  if not queue:
    raise UsageError(f"Flag {word} needs a value: {word}=VALUE.")
  value = queue.popleft()
  # What remains of `--data_dir $UNSET --do_train`. absl takes it this way, and -1 is a fair value.
  if value.startswith("--") and _find_flag(value[2:].partition("=")[0])[0] is not None:
    words.warnings.append(
      f"{word} takes the word after it, {value}, as its value. If it should not, write "
      f"{word}=VALUE {value}."
    )
  return value


def _note_positional(word: str, previous: str, words: _Words) -> None:
  """Words the warning about an argument that no flag takes; `previous` stood before it."""
  name = previous.lstrip("-")
  if previous.startswith("-") and name in words.unknown:
    words.unknown[name] = f"{previous} {word}"
  elif previous.startswith("-") and word.lower() in ("true", "false", "0", "1"):
    words.warnings.append(
      f'Ignoring "{word}" after {previous}: a switch takes its value with "=". '
      f"Write {previous}={word}."
    )
  else:
    words.warnings.append(f'Ignoring the argument "{word}": it belongs to no flag.')


def _set_flags(words: _Words) -> None:
  """Gives the flags their values, then logs what there is to warn about."""
  for flag, value in words.settings:
    try:
      flag.parse(value)
    except flags.IllegalFlagValueError as error:
      raise UsageError(_bad_value(flag, value, error)) from error
    flag.using_default_value = False
  FLAGS.mark_as_parsed()
  try:
    FLAGS.validate_all_flags()
  except flags.IllegalFlagValueError as error:
    raise UsageError(str(error)) from error
  for warning in [*_about_unknown(words), *words.warnings]:
    logging.warning("%s", warning)


def _bad_value(flag: flags.Flag, value: str, error: Exception) -> str:
  """Says which flag got which value and what it takes instead."""
  parser = flag.parser
  if flag.boolean:
    expected = "true or false"
  elif hasattr(parser, "enum_values"):
    expected = "one of " + ", ".join(parser.enum_values)
  else:
    expected = parser.syntactic_help
  if not expected:
    return f"{error}."
  return f'Flag --{flag.name} takes {expected}, not "{value}".'


def _about_unknown(words: _Words) -> Iterator[str]:
  for name, written in words.unknown.items():
    if name in words.undefok or name.removeprefix("no") in words.undefok:
      continue
    nearest = _nearest_name(name)
    question = f" Did you mean --{nearest}?" if nearest else ""
    yield f"Ignoring the unknown flag {written}.{question}"


def _nearest_name(name: str) -> str | None:
  import difflib  # Rarely needed, and not free to import.

  candidates = [*FLAGS, *_REQUESTS]
  if name.startswith("no"):
    candidates += [f"no{known}" for known in FLAGS if FLAGS[known].boolean]
  matches = difflib.get_close_matches(name, candidates, n=1)
  return matches[0] if matches else None


# ---------------------------------------------------------------------------------------------
# Help.

_HOW_TO_WRITE_FLAGS = """\
Flags are written --name=value or --name value. A switch is turned on by --name or --name=true, off
by --noname or --name=false. The last of several values wins. An unknown flag is named in a warning
and ignored."""

# Words that are understood on every command line, but are no flags with a value to read.
_SPECIAL_WORDS = {
  "--help, -h, -?": "Show the script's flags and leave. --helpfull adds those of the absl library.",
  "--version": "Show the version and leave.",
  "--flagfile=FILE": "Insert flags from a file, one on each line; # starts a comment.",
  "--undefok=NAME,...": "Do not warn when these flags are unknown.",
  "--verbosity=INT": "1 shows debug messages, 0 information, -1 warnings, -2 errors (default 0).",
}


def format_help(program: str, doc: str | None = None, full: bool = False) -> str:
  """Returns the text of `--help`, wrapped to the terminal's width.

  Args:
    program: how the script is called, for the first line.
    doc: what the script does, with examples. Indented lines stay as they are.
    full: also list the flags of the absl library.
  """
  width = min(max(shutil.get_terminal_size((80, 24)).columns, 40), 100)
  sections = [f"usage: python {os.path.basename(program)} [--flag=value ...]"]
  if doc:
    sections.append(_wrap_doc(doc.strip(), width))
  sections.append(_wrap_doc(_HOW_TO_WRITE_FLAGS, width))
  groups = _grouped_flags()
  general = groups.pop(_GENERAL_GROUP, [])
  for title, members in groups.items():
    sections.append("\n".join([f"{title}:", *(_flag_help(flag, width) for flag in members)]))
  special = [_entry(word, text, width) for word, text in _SPECIAL_WORDS.items()]
  general_flags = [_flag_help(flag, width) for flag in general]
  sections.append("\n".join([f"{_GENERAL_GROUP}:", *general_flags, *special]))
  if full:
    title = "The absl library (its log files are not used here):"
    sections.append("\n".join([title, *_absl_help(width)]))
  return "\n\n".join(sections)


def _grouped_flags() -> dict[str, list[flags.Flag]]:
  groups: dict[str, list[flags.Flag]] = {}
  for flag in _script_flags():
    groups.setdefault(_group_of.get(flag, _OTHER_GROUP), []).append(flag)
  return groups


def _absl_help(width: int) -> list[str]:
  own = set(_own_names())
  names = sorted(name for name in FLAGS if name not in own and name == FLAGS[name].name)
  return [_flag_help(FLAGS[name], width) for name in names]


def _flag_help(flag: flags.Flag, width: int) -> str:
  name = f"--[no]{flag.name}" if flag.boolean else f"--{flag.name}"
  default = "required" if flag in _required else f"default {_default_text(flag)}"
  return _entry(f"{name} ({_type_name(flag)}, {default})", flag.help, width)


def _default_text(flag: flags.Flag) -> str:
  if flag.default is None:
    return "none"
  if flag.boolean:
    return "true" if flag.default else "false"
  return f'"{flag.default}"' if isinstance(flag.default, str) else str(flag.default)


def _entry(heading: str, text: str, width: int) -> str:
  body = textwrap.fill(
    " ".join(text.split()),
    width,
    initial_indent=" " * 6,
    subsequent_indent=" " * 6,
    break_on_hyphens=False,  # So that a --flag or a file-name stays in one piece.
  )
  return f"  {heading}\n{body}"


def _wrap_doc(text: str, width: int) -> str:
  """Wraps the paragraphs of plain prose; a paragraph with indented lines is an example.

  Example:
    >>> print(_wrap_doc("One two three.\\n\\n  python run.py --flag=value", 10))
    One two
    three.
    <BLANKLINE>
      python run.py --flag=value
  """
  paragraphs = text.split("\n\n")
  return "\n\n".join(
    paragraph
    if any(line.startswith((" ", "-", "*")) for line in paragraph.splitlines())
    else textwrap.fill(paragraph, width, break_on_hyphens=False)
    for paragraph in paragraphs
  )


def _version() -> str:
  """The version in pyproject.toml beside this file, else that of the installed package."""
  import importlib.metadata
  import re

  try:
    path = os.path.join(os.path.dirname(os.path.abspath(__file__)), "pyproject.toml")
    with open(path, encoding="utf-8") as f:
      return re.search(r'^version = "(.+)"$', f.read(), re.MULTILINE).group(1)
  except (OSError, AttributeError):
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
      return importlib.metadata.version("bert-alive")
  return "of unknown version"


def _answer(request: str, program: str, doc: str | None) -> NoReturn:
  """Prints what `--help`, `--helpfull` or `--version` asked for, and leaves with code 0."""
  if request == "version":
    print(f"bert-alive {_version()} (Python {sys.version.split()[0]})")
  else:
    print(format_help(program, doc, full=request == "helpfull"))
  sys.stdout.flush()
  sys.exit(0)


# ---------------------------------------------------------------------------------------------
# Running a script.


def run(
  main: Callable[[list[str]], Any],
  define_flags: Callable[[], None],
  argv: Sequence[str] | None = None,
  doc: str | None = None,
) -> NoReturn:
  """Runs a script: defines its flags, parses the command line, calls `main`, and exits.

  Exit codes: what `main` returns (None is 0); 0 after `--help`; 1 after a wrong command line or an
  error in the input, or the error's own `exit_code` (75: another worker of this job was lost); 130
  after Ctrl-C; 141 when the reader of stdout has left.

  A ValueError or OSError is taken for an error in what the user gave and ends in one message on
  stderr. Any other exception is a bug and keeps its traceback. `--verbose_errors` or
  BERT_TRACEBACK=1 shows the traceback of every error.

  Args:
    main: the script; gets the program's name and the arguments that are no flags.
    define_flags: defines the script's flags, see `flag_group`.
    argv: the command line, by default `sys.argv`.
    doc: what `--help` says first, by default the docstring of `main`'s module.

  Raises:
    SystemExit: always, unless a traceback is called for.
  """
  argv = list(sys.argv if argv is None else argv)
  doc = sys.modules[main.__module__].__doc__ if doc is None else doc
  # TensorFlow's C++ side reads it when it is imported, later; 2 leaves its errors. The few lines
  # TensorFlow 2.21 writes before its log is set up (oneDNN, CUDA not found) come at any level.
  os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
  with _logging_to_stderr(), defined_flags(define_flags):
    sys.exit(_exit_code(main, argv, doc))


def _exit_code(main: Callable[[list[str]], Any], argv: list[str], doc: str | None) -> Any:
  try:
    code = main(parse(argv, doc))
    sys.stdout.flush()  # Here a reader that has left, as in `| head`, can still be handled.
    return code
  except KeyboardInterrupt:
    print("\nInterrupted.", file=sys.stderr)
    return 130
  except BrokenPipeError:
    # Nobody reads stdout any more, and the interpreter would flush it once more at its end.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 141
  except UsageError as error:
    return _report(error, f"Run `python {os.path.basename(argv[0])} --help` to see every flag.")
  except (ValueError, OSError) as error:
    return _report(error, "(--verbose_errors shows where in the program this happened.)")


def _report(error: ValueError | OSError, hint: str) -> int:
  if _wants_traceback():
    raise error
  print(f"ERROR: {_message(error)}\n{hint}", file=sys.stderr)
  return getattr(error, "exit_code", 1)


def _wants_traceback() -> bool:
  return FLAGS["verbose_errors"].value or os.environ.get("BERT_TRACEBACK", "") not in ("", "0")


def _message(error: ValueError | OSError) -> str:
  """The message alone: an OSError's own text starts with a number, and its path comes last."""
  if isinstance(error, OSError) and error.filename is not None and error.strerror:
    return f"{error.filename}: {error.strerror}"
  return str(error) or type(error).__name__


class _TensorFlowFormatter(std_logging.Formatter):
  """Writes `INFO:tensorflow:message`, as TensorFlow 1 did, so that old log scrapers find theirs."""

  def __init__(self):
    super().__init__("%(levelname)s:%(origin)s:%(message)s")

  def format(self, record: std_logging.LogRecord) -> str:
    """See base class."""
    record.origin = "tensorflow" if record.name == "absl" else record.name
    return super().format(record)


@contextlib.contextmanager
def _logging_to_stderr() -> Iterator[None]:
  """Within the block, log messages go to stderr, from level INFO on."""
  handler = std_logging.StreamHandler(sys.stderr)
  handler.setFormatter(_TensorFlowFormatter())
  # On the root logger: TensorFlow's own logger then adds no second handler, so no line comes twice.
  std_logging.getLogger().addHandler(handler)
  verbosity = FLAGS["verbosity"].value
  FLAGS["verbosity"].value = logging.INFO
  try:
    yield
  finally:
    FLAGS["verbosity"].value = verbosity
    std_logging.getLogger().removeHandler(handler)
