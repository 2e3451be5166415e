"""BERT on today's TensorFlow: `from bert import modeling, tokenization, optimization`.

The modules that a user of 2018 knows (`modeling`, `run_classifier`, ...) lie at the root of the
project, beside this package. A wheel puts them into the package. In a checkout the finder below
makes the same names work: `bert.modeling` is then the module `modeling`, one object under two
names, unless that name leads to somebody else's file. Importing `bert` imports none of them.
"""

import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import pathlib
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:  # what type checkers and editors see
  import attention_maps as attention_maps
  import convert_checkpoint as convert_checkpoint
  import create_pretraining_data as create_pretraining_data
  import create_vocab as create_vocab
  import doctor as doctor
  import export_hub as export_hub
  import extract_features as extract_features
  import modeling as modeling
  import optimization as optimization
  import plots as plots
  import predict_masked as predict_masked
  import run_classifier as run_classifier
  import run_glue as run_glue
  import run_ner as run_ner
  import run_pretraining as run_pretraining
  import run_squad as run_squad
  import run_swag as run_swag
  import tokenization as tokenization

__version__ = "0.2.0"

_ROOT = pathlib.Path(__file__).resolve().parent.parent


class _SharedModule(importlib.machinery.SourceFileLoader):
  """Gives `bert.modeling` the module that `import modeling` gives."""

  def create_module(self, spec):
    """Returns the flat module, imported if it was not."""
    module = importlib.import_module(spec.name.rpartition(".")[2])
    self._own_spec = module.__spec__
    return module

  def exec_module(self, module):
    """Runs nothing: the module has run under its own name, whose spec it gets back."""
    module.__spec__ = self._own_spec


class _RootModules(importlib.abc.MetaPathFinder):
  """Finds `bert.NAME` as `NAME.py` beside this package."""

  def find_spec(self, fullname, path=None, target=None):
    """See base class."""
    package, _, name = fullname.rpartition(".")
    file = _ROOT / f"{name}.py"
    if package != __name__ or not file.is_file():
      return None
    shared = _leads_to(name, file)
    loader = _SharedModule(fullname, str(file)) if shared else None
    return importlib.util.spec_from_file_location(fullname, file, loader=loader)


def _leads_to(name: str, file: pathlib.Path) -> bool:
  """Whether `import name` gives the module in `file`, and not a caller's own of that name."""
  module = sys.modules.get(name)
  spec = module.__spec__ if module else importlib.machinery.PathFinder.find_spec(name)
  origin = spec.origin if spec else None
  return bool(origin) and pathlib.Path(origin).resolve() == file


if (_ROOT / "modeling.py").is_file():  # a checkout, or an editable install of one
  sys.meta_path.append(_RootModules())
