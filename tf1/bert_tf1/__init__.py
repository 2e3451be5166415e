"""TensorFlow 1.15's face on today's TensorFlow: scripts of 2018 to 2021 run unedited.

  bert-tf1 run_ner.py --do_train=true ...     a script, nothing changed in it
  import bert_tf1; bert_tf1.install()         notebooks, pytest: before other imports
  import bert_tf1 as tf                       in new code

This module is what a script gets from `import tensorflow as tf`. The folders below it are the
namespaces that TensorFlow lost: `tf.estimator`, `tf.contrib`. Asking for the first name switches
TensorFlow to graphs and sessions for the whole process. The guide is docs/forks.md of this
distribution.
"""

import os
import sys
from typing import Any

__version__ = "1.15.5"  # of `tf`
_DISTRIBUTION_VERSION = "0.2.0"

_face: Any = None
# Files of this folder: names of this project, not of TensorFlow (but for those it has, too).
_OWN = {file.removesuffix(".py") for file in os.listdir(os.path.dirname(__file__))} - {
  *("contrib", "estimator", "errors", "real")
}


def _loaded() -> Any:
  """Returns the names, read once.

  None while they are being read, when `from bert_tf1 import contrib` asks here first.
  """
  global _face
  if _face is None:
    import bert_tf1.face  # noqa: F401  (while it loads, this does nothing)

    face = sys.modules["bert_tf1.face"]
    _face = face if hasattr(face, "lookup") else None
    if _face:  # From now on `tf.errors` and `tf.real` are TensorFlow's.
      for name in ("errors", "real"):
        globals().pop(name, None)
  return _face


def install(folder: str | None = None) -> None:
  """Gives the scripts in this process TensorFlow 1.15's face for `import tensorflow`.

  Modules that TensorFlow itself and other installed packages are made of keep the real one. A
  package `bert` or a `modeling.py` in the script's folder, by default the current one, or on its
  `sys.path` is the script's own and wins over this project's.
  """
  from bert_tf1 import importing

  _loaded()
  importing.install(sys.modules[__name__], folder)


def __getattr__(name: str) -> Any:
  if name.startswith("__") or name in _OWN or not _loaded():
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
  return _loaded().lookup(name)


def __dir__() -> list[str]:
  return sorted({*(name for name in globals() if not name.startswith("_")), *_loaded().names()})
