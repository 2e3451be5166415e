"""The text of `--help`: usage, what the script does, and its flags by group."""

import shutil
import textwrap

from absl import flags

from bert.scripts import flag_groups
from bert.scripts.flag_groups import FLAGS, GENERAL_GROUP

_HOW_TO_WRITE_FLAGS = """\
Flags are written --name=value or --name value. A switch is turned on by --name or --name=true, off
by --noname or --name=false. The last of several values wins. An unknown flag is named in a warning
and ignored."""

# Understood on every command line, but no absl flags of a script.
_SPECIAL_WORDS = {
  "--help, -h, -?": "Show the script's flags and exit. --helpfull adds those of the absl library.",
  "--version": "Show the version and exit.",
  "--flagfile=FILE": "Insert flags from a file, one on each line; # starts a comment.",
  "--undefok=NAME,...": "Do not warn when these flags are unknown.",
  "--only_check_args": "Read the command line, report what is wrong with it, and exit.",
  "--verbosity=INT": "1 shows debug messages, 0 information, -1 warnings, -2 errors (default 0).",
}


def format_help(program: str, doc: str | None = None, full: bool = False) -> str:
  """Returns the text of `--help`, wrapped to the terminal's width.

  Indented lines of `doc` stay as they are; `full` lists the flags of the absl library, too.
  """
  width = min(max(shutil.get_terminal_size((80, 24)).columns, 40), 100)
  sections = [f"usage: {program} [--flag=value ...]"]
  if doc:
    sections.append(_wrap_doc(doc.strip(), width))
  sections.append(_wrap_doc(_HOW_TO_WRITE_FLAGS, width))
  groups = flag_groups.grouped_flags()
  general = groups.pop(GENERAL_GROUP, [])
  for title, members in groups.items():
    sections.append("\n".join([f"{title}:", *(_flag_help(flag, width) for flag in members)]))
  special = [_entry(word, text, width) for word, text in _SPECIAL_WORDS.items()]
  general_flags = [_flag_help(flag, width) for flag in general]
  sections.append("\n".join([f"{GENERAL_GROUP}:", *general_flags, *special]))
  if full:
    title = "The absl library (its log files are not used here):"
    sections.append("\n".join([title, *_absl_help(width)]))
  return "\n\n".join(sections)


def _absl_help(width: int) -> list[str]:
  own = set(flag_groups.own_names())
  shown = {*own, "verbosity"}  # the latter under General, with the default that it has here
  names = sorted(name for name in FLAGS if name not in shown and name == FLAGS[name].name)
  return [_flag_help(FLAGS[name], width) for name in names]


def _flag_help(flag: flags.Flag, width: int) -> str:
  name = f"--[no]{flag.name}" if flag.boolean else f"--{flag.name}"
  default = "required" if flag_groups.is_required(flag) else f"default {_default_text(flag)}"
  return _entry(f"{name} ({flag_groups.type_name(flag)}, {default})", flag.help, width)


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
    break_long_words=False,
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
    else textwrap.fill(paragraph, width, break_long_words=False, break_on_hyphens=False)
    for paragraph in paragraphs
  )
