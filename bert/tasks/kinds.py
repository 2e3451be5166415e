"""The kinds of tasks, a row each: what the rooms below fine-tuning ask of a fine-tuned model.

A row is names alone, so that the lowest packages read it without an import: which class trains such
a model, which head it has, which classes answer texts, how transformers calls it. What a task does
is a class, `fine_tuning.task.Task`, which its row names and which is imported where it is needed.

  kind = kinds.of_facts(facts)            # of a run's fingerprint
  decoder_class = kind.decoder_class()   # from texts to answers, around an engine

A task of one's own enters the table when its file is imported by whoever wants it: the file itself
(`engine.main`), the variable BERT_PLUGINS, which child processes inherit, or an installed package
with an entry point in the group `bert.plugins`. What a run's folder says is looked up here and
never imported: a folder names no Python to execute.
"""

import functools
import importlib
import importlib.metadata
import importlib.util
import os
import sys
import traceback
from collections.abc import Mapping
from typing import Any, NamedTuple

PLUGINS = "BERT_PLUGINS"
"""The variable with files of tasks of one's own, joined by `os.pathsep`."""

_ENTRY_POINTS = "bert.plugins"


class Kind(NamedTuple):
  """A kind of task, by names."""

  name: str  # of the kind, and `task_name` in the facts of its runs
  task: str  # `module:Class`, a `fine_tuning.task.Task`
  head: str  # `module:Class`, a `model.task_head.Head`
  decoder: str  # `module:Class`, a `tasks.decoding.Decoder`: what is around an engine
  # `module:Class`, an `exporting.task_model.TaskModel`: a graph from texts to answers; "" where
  # graphs read token ids.
  model: str = ""
  transformers: str = ""  # the end of the name of its class in transformers; "" where it has none
  mark: str = ""  # a variable that a checkpoint with such a head has
  keras: tuple[str, ...] = ()  # its heads in `bert.keras3`
  file: str = ""  # the Python file of a task of one's own, `__main__` in a notebook; "" of ours

  @property
  def script(self) -> str:
    """The module of the script, such as `run_swag`; of a task of one's own its file."""
    return self.file or self.task.partition(":")[0].removeprefix("bert.")

  @property
  def facts(self) -> dict[str, str]:
    """What the facts of its runs say of the kind, see `of_facts`."""
    return {} if self.name == _WITH_PROBLEM_TYPE else {"task_name": self.name}

  def task_class(self) -> Any:
    """Imports the task."""
    return _load(self.task)

  def head_class(self) -> Any:
    """Imports the head."""
    return _load(self.head)

  def model_class(self) -> Any:
    """Imports the graph from texts to answers, and TensorFlow with it."""
    return _load(self.model)

  def decoder_class(self) -> Any:
    """Imports what is between texts and an engine."""
    return _load(self.decoder)


# The kind whose facts have a `problem_type`: the names of its tasks are the user's.
_WITH_PROBLEM_TYPE = "sentences"

_KINDS = {
  kind.name: kind
  for kind in (
    Kind(
      _WITH_PROBLEM_TYPE,
      task="bert.run_classifier:Classification",
      head="bert.model.task_heads:SequenceHead",
      model="bert.exporting.sentence_model:SentenceModel",
      decoder="bert.tasks.sentence_decoder:SentenceDecoder",
      transformers="ForSequenceClassification",
      mark="output_bias",
      keras=("TextClassificationHead",),
    ),
    Kind(
      "squad",
      task="bert.run_squad:QuestionAnswering",
      head="bert.model.span_head:SpanHead",
      decoder="bert.tasks.span_decoder:SpanDecoder",
      transformers="ForQuestionAnswering",
      mark="cls/squad/output_bias",
      keras=("QuestionAnsweringHead",),
    ),
    Kind(
      "ner",
      task="bert.run_ner:Tagging",
      head="bert.model.task_heads:TokenHead",
      decoder="bert.tasks.tag_decoder:TagDecoder",
      transformers="ForTokenClassification",
      mark="output_bias",
      keras=("TokenClassificationHead",),
    ),
    Kind(
      "swag",
      task="bert.run_swag:MultipleChoice",
      head="bert.model.task_heads:ChoiceHead",
      decoder="bert.tasks.choice_decoder:ChoiceDecoder",
      transformers="ForMultipleChoice",
      mark="output_weights",
      keras=("MultipleChoiceHead",),
    ),
    Kind(
      "similarity",
      task="bert.run_similarity:Similarity",
      head="bert.model.vector_head:VectorHead",
      model="bert.exporting.vector_model:VectorModel",
      decoder="bert.tasks.pair_decoder:PairDecoder",
    ),
  )
}


# ---------------------------------------------------------------------------------------------
# Looking a kind up.


def registered() -> dict[str, Kind]:
  """Returns all rows by name, plug-ins among them."""
  _load_entry_points()
  load_plugins(*filter(None, os.environ.get(PLUGINS, "").split(os.pathsep)))
  return dict(_KINDS)


def find(name: str) -> Kind:
  """Returns a row.

  Raises:
    ValueError: there is none of that name; says how to load a task of one's own.
  """
  kind = _KINDS.get(name) or registered().get(name)
  if kind is None:
    raise ValueError(
      f"The task {name!r} is not known here. Known are {', '.join(_KINDS)}. For a task of your "
      "own, name its file: --plugin=the_task.py; in Python, import it first."
    )
  return kind


def in_transformers() -> list[Kind]:
  """Returns the rows that have a class in transformers."""
  return [kind for kind in _KINDS.values() if kind.transformers]


def of_class(name: str) -> Kind | None:
  """Returns the row with a head of `bert.keras3`, or an end of names of transformers' classes."""
  known = (kind for kind in _KINDS.values() if name in (kind.transformers, *kind.keras))
  return next(known, None) if name else None


def of_script(script: str) -> Kind:
  """Returns the row whose script it is: the name of a module, or the file of a plug-in.

  Raises:
    ValueError: there is none.
  """
  kind = known_script(script)
  if kind is None:
    raise ValueError(f"{script} is not the script of a task.")
  return kind


def known_script(script: str) -> Kind | None:
  """Returns what `of_script` does; None of another script."""
  return next((kind for kind in registered().values() if kind.script == script), None)


def scripts_in_words() -> str:
  """Lists the scripts that fine-tune, for messages.

  Example:
    >>> scripts_in_words()
    'run_classifier.py, run_squad.py, run_ner.py, run_swag.py or run_similarity.py'
  """
  files = [os.path.basename(kind.file) or f"{kind.script}.py" for kind in _KINDS.values()]
  return f"{', '.join(files[:-1])} or {files[-1]}"


def of_facts(facts: Mapping[str, Any]) -> Kind | None:
  """Returns the row of a run.

  Args:
    facts: the fingerprint of the run.

  Returns:
    None where the facts are of no run that was fine-tuned.

  Raises:
    ValueError: they are of a task of one's own that is not loaded.
  """
  if "problem_type" in facts:
    return _KINDS[_WITH_PROBLEM_TYPE]
  name = facts.get("task_name")
  if name in _KINDS:
    return _KINDS[name]
  # Facts of a task of one's own hold the values of its head.
  return find(name) if "head" in facts else None


# ---------------------------------------------------------------------------------------------
# Plug-ins: tasks of one's own.

_FILES: dict[str, str] = {}  # module -> its file


def register(kind: Kind) -> None:
  """Adds the row of a task of one's own; processes that this one starts load its file, too.

  Raises:
    ValueError: the name is that of another task.
  """
  earlier = _KINDS.get(kind.name)
  if earlier and _real(earlier.file) != _real(kind.file):
    raise ValueError(
      f"The task of {kind.file} is called {kind.name!r}, as is that of "
      f"{earlier.file or earlier.script + '.py'}: give it another name."
    )
  _KINDS[kind.name] = kind
  _FILES[kind.task.partition(":")[0]] = kind.file
  files = os.environ.get(PLUGINS, "").split(os.pathsep)
  if os.path.isfile(kind.file) and kind.file not in files:
    os.environ[PLUGINS] = os.pathsep.join([*filter(None, files), kind.file])


def load_plugins(*files: str) -> None:
  """Imports files of tasks of one's own, which register them; each once.

  Raises:
    ValueError: a file does not exist, is no Python file, fails, or registers no task.
  """
  for file in files:
    if _real(file) in map(_real, _FILES.values()):
      continue
    before = set(_KINDS)
    module = _import_file(file)
    if set(_KINDS) == before:
      del sys.modules[module]
      raise ValueError(f"{file} registers no task: put @fine_tuning.register before its class.")


def _import_file(file: str) -> str:
  """Imports a file as a module of its own name; returns that name."""
  name = os.path.splitext(os.path.basename(file))[0]
  if not (file.endswith(".py") and os.path.isfile(file)):
    raise ValueError(f"{file} is no Python file of a task: it does not exist, or is no .py.")
  known = getattr(sys.modules.get(name), "__file__", None)
  if name in sys.modules and _real(known or "") != _real(file):
    raise ValueError(f"{file}: a module {name} is loaded already; give the file another name.")
  spec = importlib.util.spec_from_file_location(name, os.path.abspath(file))
  assert spec is not None
  module = importlib.util.module_from_spec(spec)
  sys.modules[name] = module
  try:
    spec.loader.exec_module(module)
  except BaseException as error:
    del sys.modules[name]
    if not isinstance(error, Exception):
      raise
    reason = getattr(error, "msg", None) or str(error).partition("\n")[0]
    line = line_of(error, os.path.abspath(file))
    raise ValueError(f"{file}, line {line}: {type(error).__name__}: {reason}") from error
  return name


def line_of(error: Exception, path: str) -> int | None:
  """Returns the last line of a file among those in which an error arose; None if there is none."""
  if isinstance(error, SyntaxError) and error.filename == path:
    return error.lineno
  lines = [
    each.lineno for each in traceback.extract_tb(error.__traceback__) if each.filename == path
  ]
  return lines[-1] if lines else None


@functools.cache
def _load_entry_points() -> None:
  """Imports the tasks that installed packages offer."""
  for point in importlib.metadata.entry_points(group=_ENTRY_POINTS):
    if point.module not in _FILES:
      point.load()


def _real(file: str) -> str:
  return os.path.realpath(file) if file else ""


def _load(name: str) -> Any:
  module, _, attribute = name.partition(":")
  return getattr(importlib.import_module(module), attribute)
