"""The command line of every script: tolerant parsing, plain errors, exit codes.

  def main(_):
    command_line.check_required()
    ...

  if __name__ == "__main__":
    command_line.run(main, define_flags)

`define_flags` defines absl flags in groups (flag_groups.py). Command lines written for the
original in 2018 keep working. TensorFlow 1 parsed "known flags only", so a misspelt flag
(`--do_lower=False`, from the original's own README) was silently ignored. Here it is still not
fatal, but a warning names it together with the flag that was probably meant.

Importing this module defines no flag. It needs absl and the standard library alone, because
`--help` has to answer at once and TensorFlow takes seconds to import.
"""

import collections
import contextlib
import dataclasses
import io
import itertools
import linecache
import logging as std_logging
import os
import re
import shlex
import sys
import time
import traceback
import types
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NoReturn

from absl import flags, logging

from bert.io import installation
from bert.io.wording import in_one_message
from bert.model import out_of_memory
from bert.scripts import flag_groups, on_request, path_flags
from bert.scripts.settings import Rule, UsageError, at_least
from bert.tasks import kinds

FLAGS = flags.FLAGS

# Spellings that people's scripts contain -> the flag they mean. `--do_lower` is in the original's
# README, where it never had an effect. `plots.py` draws a run's --output_dir, its model_dir.
# The last one is google-research/albert's.
_ALIASES = {
  **{"do_lower": "do_lower_case", "output_dir": "model_dir", "ngram": "ngram_max"},
  "albert_config_file": "bert_config_file",
}

# These print something and exit. They are no absl flags: absl's own exit with code 1.
_REQUESTS = {
  "help": "help",
  "helpshort": "help",
  "h": "help",
  "?": "help",
  "helpfull": "helpfull",
  "helpxml": "helpfull",
  "version": "version",
  "only_check_args": "only_check_args",
}


# ---------------------------------------------------------------------------------------------
# Values that were given.


def check_required(values: Mapping[str, Any] = types.MappingProxyType({})) -> None:
  """Checks the flags marked by `mark_required`.

  Args:
    values: flag -> value, where it is not the flag's own, such as a file that was found.

  Raises:
    UsageError: names all that have no value, in the original's words.
  """
  required = filter(flag_groups.is_required, flag_groups.script_flags())
  missing = [flag.name for flag in required if values.get(flag.name, flag.value) is None]
  if missing:
    raise UsageError(
      "\n".join(f"Flag --{name} must have a value other than None." for name in missing)
    )


def flag_was_given(name: str) -> bool:
  """Whether `name` stood on the command line (or in a flag file), whatever its value."""
  return FLAGS[name].present > 0


def explain_ignored_flags(reasons: dict[str, str]) -> None:
  """Logs one line for each flag that was given and changes nothing, with the reason.

  Args:
    reasons: flag name -> why it has no effect. Flags that the script lacks are skipped.
  """
  for name, reason in reasons.items():
    if name in FLAGS and flag_was_given(name):
      logging.info("Flag --%s has no effect: %s.", name, reason)


def check_values(rule: Rule, *names: str) -> None:
  """Raises a UsageError for the first of these flags that has a value which breaks a rule."""
  for name in names:
    value = FLAGS[name].value
    if value is not None and not rule.is_good(value):
      raise UsageError(f"--{name}={value}: must be {rule.needed}.")


def check_at_least(least: float, *names: str) -> None:
  """Raises a UsageError for the first of these flags whose value is smaller."""
  check_values(at_least(least), *names)


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
  takes_arguments: bool = False


def parse(
  argv: Sequence[str],
  doc: str | None = None,
  program: str | None = None,
  takes_arguments: bool = False,
) -> list[str]:
  """Sets `flags.FLAGS` from a command line, with a warning for each word it cannot use.

  Spellings are absl's: `--name=value`, `--name value`, one dash or two; a switch is `--do_train`,
  `--do_train=true|t|1|false|f|0` in any case, or `--nodo_train`; `--flagfile=FILE` inserts the
  flags of a file, `--undefok=a,b` silences the warning about unknown flags, `--` ends the flags,
  and the last of several values wins.

  Args:
    argv: the program's name and its arguments, as `sys.argv`.
    doc: what `--help` says about the script.
    program: the words that start the script, by default `python` and its file name.
    takes_arguments: whether words that belong to no flag mean something to the script.

  Returns:
    The program's name and the arguments that are neither flags nor values of flags.

  Raises:
    UsageError: a flag has no value or one it cannot have.
    SystemExit: with code 0, after `--help`, `--version` and `--only_check_args`.
  """
  return [argv[0], *_read(argv, doc, program, takes_arguments).positional]


def _read(argv: Sequence[str], doc: str | None, program: str | None, takes_arguments: bool):
  """The words of the command line, when the flags have their values; as `parse`."""
  words = _Words(takes_arguments=takes_arguments)
  _sort_words(_insert_flag_files(argv[1:]), words)
  if words.request and words.request != "only_check_args":
    _answer(words.request, program or _program(argv), doc)
  _set_flags(words)
  if words.request:
    sys.exit(0)
  return words


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


def _sort_words(arguments: Iterable[str], words: _Words) -> None:
  """Separates flags, their values and other words. Sets nothing."""
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


def _sort_flag(word: str, queue: collections.deque[str], words: _Words) -> None:
  """Sorts one word that starts with a dash, with its value from the queue if it has one there."""
  name, equals, value = word[2 if word.startswith("--") else 1 :].partition("=")
  name = _without_alias(name, words)
  flag, negated = _find_flag(name)
  if name.removeprefix("no") in _REQUESTS:
    if name in _REQUESTS and value.lower() not in ("false", "f", "0"):
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
  """Writes the warning about an argument that no flag takes; `previous` is the word before it."""
  name = previous.lstrip("-")
  if previous.startswith("-") and name in words.unknown:
    words.unknown[name] = f"{previous} {word}"
  elif previous.startswith("-") and word.lower() in ("true", "false", "0", "1"):
    words.warnings.append(
      f'Ignoring "{word}" after {previous}: a switch takes its value with "=". '
      f"Write {previous}={word}."
    )
  elif not words.takes_arguments:
    # A flag without its dashes, or with one long dash, into which some programs turn two.
    meant = word.lstrip("-\u2010\u2011\u2012\u2013\u2014\u2212")
    is_flag = meant and _find_flag(meant.partition("=")[0])[0] is not None
    question = f" Did you mean --{meant}?" if is_flag else ""
    words.warnings.append(f'Ignoring the argument "{word}": it belongs to no flag.{question}')


def _set_flags(words: _Words) -> None:
  """Gives the flags their values, then logs the warnings."""
  for name, written in words.unknown.items():
    # Ignoring it would train something else than was asked for.
    if name not in words.undefok and (remedy := on_request.module("unknown").removed(name)):
      raise UsageError(f"{written}: this flag was removed. {remedy}")
  for flag, value in words.settings:
    if not value and path_flags.is_path(flag):
      _note_empty_path(flag, words)
      continue
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


def _note_empty_path(flag: flags.Flag, words: _Words) -> None:
  """Notes a path that is empty, most often because of a variable of the shell that is not set."""
  if flag_groups.is_required(flag):
    raise UsageError(f"--{flag.name}= is empty: give a path, or set the variable that it is from.")
  words.warnings.append(f"--{flag.name}= is empty, and counts as not given.")


def _bad_value(flag: flags.Flag, value: str, error: Exception) -> str:
  """Says which flag got which value and what it takes instead."""
  parser = flag.parser
  if hasattr(parser, "enum_values"):
    expected = "one of " + ", ".join(parser.enum_values)
  elif flag.boolean:
    expected = "true or false"
  else:
    expected = parser.syntactic_help
  if not expected:
    return f"{error}.".removeprefix("flag ")
  return f'Flag --{flag.name} takes {expected}, not "{value}".{_about_value(parser, value)}'


def _about_value(parser: flags.ArgumentParser, value: str) -> str:
  """What was probably meant by a value that a flag cannot have."""
  if isinstance(parser, flags.FloatParser) and re.fullmatch(r"\d+,\d+", value):
    return f" Write a decimal point: {value.replace(',', '.')}."
  import difflib  # Rarely needed, and not free to import.

  near = difflib.get_close_matches(value, getattr(parser, "enum_values", ()), n=1, cutoff=0.5)
  return f" Did you mean {near[0]}?" if near else ""


def _about_unknown(words: _Words, start: str = "Ignoring") -> Iterator[str]:
  for name, written in words.unknown.items():
    if name in words.undefok or name.removeprefix("no") in words.undefok:
      continue
    yield f"{start} the unknown flag {written}. {_suggestion(name)}".rstrip()


def _suggestion(name: str) -> str:
  switches = [known for known in FLAGS if FLAGS[known].boolean]
  return on_request.module("unknown").suggestion(name, [*FLAGS, *_REQUESTS], switches)


def _answer(request: str, program: str, doc: str | None) -> NoReturn:
  """Prints what `--help`, `--version` and the like asked for, and exits with code 0."""
  if request == "version":
    print(installation.version_line())
  else:
    print(on_request.module("help").format_help(program, doc, full=request == "helpfull"))
  sys.stdout.flush()
  sys.exit(0)


def _program(argv: Sequence[str], script: types.ModuleType | None = None) -> str:
  """The words that start a script, for its usage line and hints.

  Args:
    argv: the command line.
    script: the module of `main`. The command `bert` leaves these words there; a module
      started by `python -m` knows its full name.
  """
  if name := getattr(script, installation.PROGRAM_NAME, None):
    return name
  spec = getattr(script, "__spec__", None)
  if script is not None and script.__name__ == "__main__" and spec:
    return f"python -m {spec.name}"
  return f"python {os.path.basename(argv[0])}"


# ---------------------------------------------------------------------------------------------
# Running a script.


def run(
  main: Callable[[list[str]], Any],
  define_flags: Callable[[], None],
  argv: Sequence[str] | None = None,
  doc: str | None = None,
  takes_arguments: bool = False,
) -> NoReturn:
  """Runs a script: defines its flags, parses the command line, calls `main`, and exits.

  Exit codes: what `main` returns (None is 0); 0 after `--help`; 1 after a wrong command line or an
  error in the input, or the error's own `exit_code` (75: another worker of this job was lost); 130
  after Ctrl-C; 141 when the reader of stdout has left.

  A ValueError or OSError counts as an error in the input and ends in one message on stderr, and so
  does missing memory. Any other exception is a bug. Its traceback, and that of a ValueError that a
  library raised, is added to `OUTPUT_DIR/error.log`, which the message names; without such a
  directory a bug keeps its traceback on stderr. `--verbose_errors` or BERT_TRACEBACK=1 shows the
  traceback of every error.

  Args:
    main: the script; receives the program's name and the arguments that are not flags.
    define_flags: defines the script's flags, see flag_groups.py.
    argv: the command line, by default `sys.argv`.
    doc: what `--help` says first, by default the docstring of `main`'s module.
    takes_arguments: whether `main` reads the arguments that are not flags; else a warning names
      each.

  Raises:
    SystemExit: always, unless a traceback is to be shown.
  """
  argv = list(sys.argv if argv is None else argv)
  script = sys.modules[main.__module__]
  doc = script.__doc__ if doc is None else doc
  # TensorFlow's C++ side reads it when it is imported, later; 2 leaves its errors. The few lines
  # TensorFlow 2.21 writes before its log is set up (oneDNN, CUDA not found) come at any level.
  os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
  program = _program(argv, script)
  _print_any_character()
  with _logging_to_stderr():
    if code := _exit_code(lambda: _load_plugins(argv), program):
      sys.exit(code)
  with _logging_to_stderr(), flag_groups.defined_flags(define_flags), _typed_as(program, argv):

    def parse_and_run():
      words = _read(argv, doc, program, takes_arguments)
      code = main([argv[0], *words.positional])
      for warning in _about_unknown(words, "This run ignored"):  # The first time scrolled away.
        logging.warning("%s", warning)
      return code

    sys.exit(_exit_code(parse_and_run, program))


# The words of the command line that runs, the program first; none outside of `run`.
_typed: list[str] = []


@contextlib.contextmanager
def _typed_as(program: str, argv: Sequence[str]) -> Iterator[None]:
  earlier = list(_typed)
  _typed[:] = [*program.split(), *argv[1:]]
  try:
    yield
  finally:
    _typed[:] = earlier


def typed() -> str:
  """Returns the command line that runs, as a shell takes it, a flag in a line; "" outside of `run`.

  Example:
    >>> with _typed_as("python a.py", ["a.py", "--text=a b"]):
    ...   print(typed())
    python a.py \\
      '--text=a b'
  """
  lines: list[str] = []
  for word in _typed:
    quoted = shlex.quote(word)
    if word.startswith("-") or not lines:
      lines.append(quoted)
    else:
      lines[-1] += f" {quoted}"
  return " \\\n  ".join(lines)


def value_in(words: Sequence[str], name: str) -> str | None:
  """Returns the last value of a flag in a command line that is not parsed yet.

  What flags a script has may depend on it.

  Example:
    >>> value_in(["run.py", "--teacher=a", "--teacher", "b"], "teacher")
    'b'
  """
  words = list(words[1:])
  with contextlib.suppress(flags.Error, UnicodeDecodeError):  # reported when it is parsed
    words = FLAGS.read_flags_from_files(words, force_gnu=False)
  found = None
  for word, following in itertools.pairwise([*words, None]):
    flag, equals, value = word.partition("=")
    if flag in (f"--{name}", f"-{name}"):
      found = value if equals else following
  return found


def _print_any_character() -> None:
  """Lets stdout escape characters that its encoding lacks, as stderr does: Windows' pipes do."""
  if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
    sys.stdout.reconfigure(errors="backslashreplace")


def _load_plugins(argv: Sequence[str]) -> None:
  """Imports the files of `--plugin`: flags of a script may be those of a task in them."""
  if files := value_in(argv, "plugin"):
    kinds.load_plugins(*(os.path.expanduser(file) for file in files.split(",")))


_WHERE = "(--verbose_errors shows where in the program this happened.)"


def _exit_code(parse_and_run: Callable[[], Any], program: str) -> Any:
  try:
    code = parse_and_run()
    sys.stdout.flush()  # Here a reader that has left, as in `| head`, can still be handled.
    return code
  except KeyboardInterrupt:
    print("\nInterrupted.", file=sys.stderr)
    return 130
  except BrokenPipeError:
    # Nobody reads stdout any more, but the interpreter flushes it once more when it exits.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 141
  except UsageError as error:
    return _report(error, f"Run `{program} --help` to see every flag.")
  except (ValueError, OSError) as error:
    return _report(error, _WHERE, log_traceback(error))
  except Exception as error:
    log = log_traceback(error)
    if not (log or out_of_memory.is_out_of_memory(error)):
      raise
    return _report(error, _WHERE, log)


def _report(error: Exception, hint: str, log: str = "") -> int:
  if wants_traceback():
    raise error
  text = f"{_message(error)}\n{hint}"
  if log:
    reason = " ".join(_message(error).split()).rstrip(".")
    text = f"{type(error).__name__}: {reason:.500}.{log}"
  print(f"ERROR: {text}", file=sys.stderr)
  return getattr(error, "exit_code", 1)


def _is_raised_here(error: Exception) -> bool:
  """Tells whether this project, or the script, raised an error, and no library that it calls."""
  *_, (frame, line) = traceback.walk_tb(error.__traceback__)
  name, file = frame.f_globals.get("__name__", ""), frame.f_code.co_filename
  is_of_root = os.path.dirname(os.path.abspath(file)) == str(installation.PACKAGE.parent)
  is_here = name.startswith(("bert.", "__main__")) or is_of_root
  # Functions in C have no frame: a line of this project that calls one may be at fault itself.
  return is_here and linecache.getline(file, line).lstrip().startswith("raise")


def log_traceback(error: Exception) -> str:
  """Adds the traceback of an unexpected error to `OUTPUT_DIR/error.log`.

  Expected are OSErrors, ValueErrors that this project raises, and missing memory. For a ValueError
  of a library, which may be about the input, no directory is made.

  Returns:
    A sentence that names the file; "" if nothing was written.
  """
  is_value_error = isinstance(error, ValueError)
  if (
    isinstance(error, OSError)
    or (is_value_error and _is_raised_here(error))
    or out_of_memory.is_out_of_memory(error)
  ):
    return ""
  folder = FLAGS["output_dir"].value if "output_dir" in FLAGS else None
  is_made = "do_train" in FLAGS and not is_value_error
  if not folder or not (is_made or os.path.isdir(folder)):
    return ""
  path = os.path.join(folder, "error.log")
  try:
    os.makedirs(folder, exist_ok=True)
    with open(path, "a", encoding="utf-8", errors="backslashreplace") as file:
      lines = "".join(traceback.format_exception(error))
      file.write(f"{time.strftime('%Y-%m-%d %H:%M:%S')}\n{typed()}\n{lines}\n")
  except OSError:
    return ""
  return f" Its traceback is in {path}."


def wants_traceback() -> bool:
  """Whether errors are to be shown with the place in the program where they happened."""
  is_on = "verbose_errors" in FLAGS and FLAGS["verbose_errors"].value
  return is_on or os.environ.get("BERT_TRACEBACK", "") not in ("", "0")


def _message(error: Exception) -> str:
  """The message alone, as `in_one_message`; that of missing memory with what to lower."""
  if isinstance(error, out_of_memory.OutOfMemoryError):
    return str(error)
  if out_of_memory.is_out_of_memory(error):
    asked = out_of_memory.what_was_asked(error)
    return f"{asked} Lower the batch size or the sequence length, or end other programs."
  return in_one_message(error)


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
