"""BERT on today's TensorFlow: `from bert import modeling, tokenization, optimization`.

The modules that a user of 2018 knows (`modeling`, `run_classifier`, ...) lie at the root of the
project, beside this package. A wheel puts them into the package. In a checkout the finder below
makes the same names work: `bert.modeling` is then the module `modeling`, one object under two
names, unless that name leads to somebody else's file. Importing `bert` imports none of them.
"""

import importlib
import importlib.machinery
import importlib.util
import os
import sys

TYPE_CHECKING = (
  False  # Type checkers take a variable of this name as true; `typing` costs an import.
)

if TYPE_CHECKING:  # what type checkers and editors see
  import attention_maps as attention_maps
  import convert_checkpoint as convert_checkpoint
  import create_pretraining_data as create_pretraining_data
  import create_vocab as create_vocab
  import distill as distill
  import doctor as doctor
  import export_hub as export_hub
  import extract_features as extract_features
  import modeling as modeling
  import optimization as optimization
  import plots as plots
  import predict as predict
  import predict_masked as predict_masked
  import report as report
  import run_classifier as run_classifier
  import run_glue as run_glue
  import run_ner as run_ner
  import run_pretraining as run_pretraining
  import run_similarity as run_similarity
  import run_squad as run_squad
  import run_swag as run_swag
  import serve as serve
  import tokenization as tokenization

__version__ = "0.2.0"

_PACKAGE = os.path.dirname(os.path.realpath(__file__))
_ROOT = os.path.dirname(_PACKAGE)

# Libraries that scripts import first.
_FIRST_LIBRARIES = ("absl", "numpy", "tensorflow")

# Distributions of others that install an import package `bert`, in metadata's spelling.
_NAMESAKES = ("bert_tensorflow", "bert_for_tf2", "bert")


class _TwoNames(importlib.machinery.SourceFileLoader):
  """Loads a file that may be asked for as `modeling` and as `bert.modeling`, as `runpy` does."""

  def get_filename(self, name=None):
    """Returns the file, whatever the name."""
    return self.path


class _SharedModule(_TwoNames):
  """Gives `bert.modeling` the module that `import modeling` gives."""

  def create_module(self, spec):
    """Returns the flat module, imported now if it was not before."""
    module = importlib.import_module(spec.name.rpartition(".")[2])
    self._own_spec = module.__spec__
    return module

  def exec_module(self, module):
    """Runs nothing: the module ran under its own name. It gets back the spec of that name."""
    module.__spec__ = self._own_spec
    module.__spec__.loader = _TwoNames(self._own_spec.name, self.path)


class _RootModules:
  """Finds `bert.NAME` as `NAME.py` beside this package."""

  @staticmethod
  def find_spec(fullname, path=None, target=None):
    """See importlib.abc.MetaPathFinder."""
    package, _, name = fullname.rpartition(".")
    file = os.path.join(_ROOT, f"{name}.py")
    if package != __name__ or not os.path.isfile(file):
      return None
    loader = _SharedModule(fullname, file) if _leads_to(name, file) else None
    return importlib.util.spec_from_file_location(fullname, file, loader=loader)


def _leads_to(name: str, file: str) -> bool:
  """Tells whether `import name` gives the module in `file`, and not a caller's own of that name."""
  if name in sys.modules:
    origin = getattr(sys.modules[name], "__file__", None)
  else:
    spec = importlib.util.find_spec(name)
    origin = spec.origin if spec else None
  return bool(origin) and os.path.realpath(origin) == file


def _warn_of_namesakes() -> None:
  """Names other distributions that wrote an import package `bert` into this same folder."""
  found = [
    entry
    for entry in sorted(os.listdir(_ROOT))
    if entry.endswith((".dist-info", ".egg-info")) and entry.partition("-")[0] in _NAMESAKES
  ]
  if found:
    import warnings

    names = " ".join(entry.partition("-")[0].replace("_", "-") for entry in found)
    warnings.warn(
      f"{_PACKAGE} belongs to bert-alive and to {', '.join(found)} at once, so files of one were "
      f"overwritten by the other. Run: pip uninstall {names} bert-alive; pip install bert-alive",
      RuntimeWarning,
      stacklevel=2,
    )


def _is_main_program() -> bool:
  """Tells whether Python was started to run a script of ours, and not a program that imports us."""
  if sys.argv[:1] == ["-m"]:  # The package is imported before `__main__` becomes the script.
    words = iter(sys.orig_argv)
    found = any(word.startswith("-") and word.endswith("m") for word in words)  # -m, or -um
    return found and next(words).partition(".")[0] == __name__
  main_file = getattr(sys.modules.get("__main__"), "__file__", None) or ""
  if os.path.basename(sys.argv[0] if sys.argv else "") in ("bert", "bert.exe"):  # made by pip
    return True
  return os.path.dirname(os.path.realpath(main_file)) == _ROOT and main_file.endswith(".py")


def _interrupt_without_traceback() -> None:
  """Lets Ctrl-C end a script of ours in one line while it is still importing, too.

  So does a Python without the libraries, such as the system's in place of that of `.venv`.
  """
  show = sys.excepthook

  def show_unless_interrupted(kind, error, trace):
    if issubclass(kind, KeyboardInterrupt):
      print("\nInterrupted.", file=sys.stderr)
    elif issubclass(kind, ModuleNotFoundError) and error.name in _FIRST_LIBRARIES:
      print(
        f"ERROR: {sys.executable} has no {error.name}, which this project needs. Is it the Python "
        "for which it was installed? In a checkout: . .venv/bin/activate",
        file=sys.stderr,
      )
    else:
      show(kind, error, trace)

  sys.excepthook = show_unless_interrupted


if _is_main_program():
  _interrupt_without_traceback()
if os.path.isfile(os.path.join(_ROOT, "modeling.py")):  # A checkout, or an editable install of one.
  sys.meta_path.append(_RootModules)
else:
  _warn_of_namesakes()
