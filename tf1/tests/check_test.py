"""What `bert-tf1 --check` says: python -m pytest tf1/tests/check_test.py"""

import importlib.machinery
import pathlib

import numpy as np
import pytest

from bert_tf1 import check
from bert_tf1.checking import differences, verdicts
from bert_tf1.checking.verdicts import Verdict
from bert_tf1.errors import public_names
from bert_tf1.library import modeling, tokenization
from tests.kit.paths import CHECKOUT

_FORK = """\
import collections
import modeling
import tensorflow as tf
from tensorflow.contrib import tpu as contrib_tpu
from tensorflow.python.ops import math_ops

flags = tf.flags
FLAGS = flags.FLAGS
flags.DEFINE_string("data_dir", None, "Data.")


def model_fn(features, labels, mode, params):
  loss = tf.reduce_mean(modeling.logits(features), keep_dims=True)
  return contrib_tpu.TPUEstimatorSpec(mode=mode, loss=loss, train_op=math_ops.cast(loss, tf.int32))


def main(_):
  config = contrib_tpu.RunConfig(tpu_config=contrib_tpu.TPUConfig(iterations_per_loop=1000))
  estimator = tf.estimator.Estimator(model_fn, FLAGS.data_dir, config)
  estimator.train(input_fn=None, max_steps=3)


if __name__ == "__main__":
  tf.app.run()
"""
_MODELING = """\
import tensorflow as tf


def logits(features):
  return tf.nn.dropout(tf.layers.dense(features["x"], 2), keep_prob=0.9)
"""


@pytest.fixture(autouse=True)
def printing():
  """NumPy prints as before; a check supplies what a run would."""
  before = np.get_printoptions()
  yield
  np.set_printoptions(**before)


def report(folder: pathlib.Path, script: str, **others: str) -> tuple[str, int]:
  """What is said of a script beside other modules."""
  for name, text in {"script": script, **others}.items():
    (folder / f"{name}.py").write_text(text)
  return check.report(str(folder / "script.py"), False, [str(folder)])


def finding(script: str, folder: pathlib.Path, name: str) -> verdicts.Finding:
  """The only finding of a name in a script that begins with the import of TensorFlow."""
  (folder / "script.py").write_text("import tensorflow as tf\n" + script)
  program = check.uses.read(str(folder / "script.py"), False, [str(folder)])
  return next(line.found for line in check.judge(program) if line.found.name == name)


def test_a_fork_that_runs(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  text, failures = report(tmp_path, _FORK, modeling=_MODELING)
  assert failures == 0, text
  assert text.startswith("there, with a difference (")
  assert "  tf.nn.dropout " in text
  assert "modeling.py:5\n" in text
  assert text.splitlines()[-1] == (
    "script.py and 1 module beside it: 15 names, 12 there, 3 with a difference, 0 not there."
  )


def test_a_fork_that_does_not(tmp_path):
  script = _FORK.replace(
    "import collections", "import tensorflow.contrib.nowhere as no\nno.f(no.g)"
  )
  text, failures = report(tmp_path, script, modeling=_MODELING.replace("keep_prob", "kept"))
  assert failures == 2, text
  assert text.startswith(f"Files are named from {tmp_path}.\n\nnot there (2)\n  tf.contrib.nowhere")
  assert "  3 uses  script.py:1, at the script's start\n" in text
  assert "  1 use   modeling.py:5\n" in text
  assert "without the argument kept. It takes x, keep_prob," in text
  assert text.endswith(" 3 with a difference, 2 not there.")


@pytest.mark.parametrize(
  ("script", "name", "note"),
  [
    ("tf.nowhere(1)", "tf.nowhere", ""),
    ("tf.nowhere.f(tf.nowhere.g)", "tf.nowhere", ""),
    ("tf.contrib.nowhere", "tf.contrib.nowhere", "tf.contrib has: "),
    ("tf.contrib.nn.alpha_dropout(x, 0.5)", "tf.contrib.nn", "use tf.nn."),
    ("tf.contrib.tensor_forest", "tf.contrib.tensor_forest", "no other part has its names."),
    ("tf.nn.relu6x(1)", "tf.nn.relu6x", "relu6"),
    ("tf.estimator.ModeKeys.TRIAN", "tf.estimator.ModeKeys.TRIAN", "TRAIN"),
    ("tf.cast(x)", "tf.cast", "missing a required argument: 'dtype'"),
    ("tf.cast(1, 2, 3, 4)", "tf.cast", "too many positional arguments"),
    ("tf.cast(1, 2, nome=3)", "tf.cast", "without the argument nome"),
    (
      "e = tf.estimator.Estimator(f)\ne.train(g, stepz=1)",
      "tf.estimator.Estimator.train",
      "without the argument stepz",
    ),
    ("tf.estimator.Estimator(f).tarin(g)", "tf.estimator.Estimator.tarin", "train"),
    ("import bert.nowhere", "bert.nowhere", "modeling"),
    ("from bert import run_squad", "bert.run_squad", "beside your script"),
    ("from tensorflow.python.ops import no_ops", "tf.python.ops.no_ops", "gone from"),
    (
      "from tensorflow.contrib.crf.python.ops.crf import crf_x",
      "tf.contrib.crf.python.ops.crf.crf_x",
      "tf.contrib.crf",
    ),
    (
      "tf.contrib.crf.python.ops.crf.crf_x(1)",
      "tf.contrib.crf.python.ops.crf.crf_x",
      "tf.contrib.crf",
    ),
    ("tf.contrib.crf.python.ops.Crf(1)", "tf.contrib.crf.python.ops.Crf", "no function"),
    ("import os\nos.path.nowhere(1)", "os.path.nowhere", "has no such name"),
    ("import numpy as np\nnp.nowhere(1)", "np.nowhere", "nowhere"),
    ("cmp(1, 2)", "cmp", "2to3"),
    ("import keras\nkeras.layers.Dens(2)", "keras.layers.Dens", "did you mean keras.layers.Dense?"),
    ("from keras.layers.core import Dens", "keras.layers.core.Dens", "keras.layers.Dense?"),
    ("from keras.legacy import interfaces", "keras.legacy", "Leave its decorators out"),
    ("import tokenization\ntokenization.Toknizer", "tokenization.Toknizer", "PYTHONPATH"),
    ("import modeling\nmodeling.BertModl()", "modeling.BertModl", "mean modeling.BertModel?"),
    ("from bert.nowhere import x", "bert.nowhere", "PYTHONPATH"),
    ("tf.contrib.graph_editor.bypass(x)", "tf.contrib.graph_editor.bypass", "use reroute_ts"),
    (
      "from tensorflow.contrib.model_pruning.python.layers import layers\nlayers.masked_conv2d(x)",
      "tf.contrib.model_pruning.python.layers.layers.masked_conv2d",
      "apply_mask",
    ),
  ],
)
def test_names_that_are_not_there(tmp_path, script, name, note):
  found = finding(script, tmp_path, name)
  assert found.verdict == Verdict.NOT_THERE
  assert note in found.note


@pytest.mark.parametrize(
  ("script", "name"),
  [
    ("tf.cast(x, tf.int32)", "tf.cast"),
    ("tf.cast(*a, **k)", "tf.cast"),
    ("tf.cast(dtype=y, **k)", "tf.cast"),
    ("tf.compat.v1.cast(x, y)", "tf.cast"),
    ("import bert_tf1 as tf1\ntf1.cast(x, y)", "tf.cast"),
    ("tf.flags.FLAGS.of_the_script.split(',')", "tf.flags.FLAGS"),
    ("tf.float32.as_numpy_dtype", "tf.float32"),
    ("tf.train.Example(features=f)", "tf.train.Example"),
    ("from tensorflow.python.ops import math_ops\nmath_ops.cast(x, y)", "tf.python.ops.math_ops"),
    ("from tensorflow.python import math_ops\nmath_ops.cast(x, y)", "tf.python.math_ops"),
    (
      "from tensorflow.python import ops\nops.convert_to_tensor(x)",
      "tf.python.ops.convert_to_tensor",
    ),
    (
      "from tensorflow.contrib.crf.python.ops import crf\ncrf.crf_decode(1, 2, 3)",
      "tf.contrib.crf.python.ops.crf.crf_decode",
    ),
    ("from bert import modeling\nmodeling.get_shape_list(x)", "bert.modeling.get_shape_list"),
    ("import modeling\nmodeling.BertConfig(vocab_size=3)", "modeling.BertConfig"),
    ("tf.errors.OutOfRangeError", "tf.errors.OutOfRangeError"),
  ],
)
def test_names_that_are_there(tmp_path, script, name):
  (tmp_path / "script.py").write_text("import tensorflow as tf\n" + script)
  lines = check.judge(check.uses.read(str(tmp_path / "script.py"), False, [str(tmp_path)]))
  assert name in [line.found.name for line in lines]
  assert {line.found.verdict for line in lines} == {Verdict.THERE}


@pytest.mark.parametrize(
  ("script", "listed"),
  [
    ("tokenization.x", set()),  # too many to be listed
    ("tf.contrib.compiler.x", {"jit", "xla"}),
    ("tf.contrib.util.x", {"constant_value", "make_ndarray", "make_tensor_proto"}),
  ],
)
def test_hints_do_not_list_what_a_module_imports(tmp_path, script, listed):
  note = finding("import tokenization\n" + script, tmp_path, script).note
  assert set(filter(None, note.partition(" has: ")[2].rstrip(".").split(", "))) == listed


def test_names_of_modules_without_their_imports():
  assert {"BasicTokenizer", "FullTokenizer"} <= set(public_names(tokenization))
  assert {"BertConfig", "gelu"} <= set(public_names(modeling))
  for module in (modeling, tokenization):
    imports = {"Any", "Callable", "Iterable", "Mapping", "dataclasses", "layers", "re", "tf"}
    assert imports.isdisjoint(public_names(module))


def test_keras_is_looked_at(tmp_path):
  found = finding("import keras", tmp_path, "keras")
  assert found.verdict == Verdict.DIFFERENT
  assert "Keras 2" in found.note
  script = "from keras.engine.topology import Layer\nimport keras.backend.tensorflow_backend as K\n"
  text, failures = report(tmp_path, script + "K.set_session(None)\nLayer(name='a')\n")
  assert failures == 0, text
  assert "keras.backend.tensorflow_backend.set_session" in text
  assert "not installed" not in text
  (tmp_path / "keras").mkdir()
  (tmp_path / "keras" / "__init__.py").write_text("own = 1\n")
  text, failures = report(tmp_path, "import keras\nkeras.own\nkeras.layers.Dense\n")
  assert "Keras 2" not in text


def test_what_is_said_to_be_at_the_start(tmp_path):
  script = (
    "import tensorflow as tf\nimport used\n"
    "def f():\n  import late\n  tf.in_function\n"
    "if tf.nothing:\n  import chosen\nelse:\n  tf.in_branch\n"
    "if __name__ == '__main__':\n  tf.in_main\n"
  )
  module = "import tensorflow as tf\ntf.in_{0}\n"
  modules = {name: module.format(name) for name in ("late", "chosen", "deep")}
  modules["used"] = (
    "import deep\n" + module.format("used") + "if __name__ == '__main__':\n  tf.no\n"
  )
  text, failures = report(tmp_path, script, **modules)
  assert failures == 9, text
  at_start = {line.split()[0] for line in text.splitlines() if "at the script's start" in line}
  assert at_start == {"tf.nothing", "tf.in_main", "tf.in_used", "tf.in_deep"}


def test_what_never_runs_need_not_be_there(tmp_path):
  script = (
    "import tensorflow as tf\nimport typing\nfrom typing import TYPE_CHECKING\n"
    "if TYPE_CHECKING:\n  import tensorflow.contrib.nowhere\n  import other\n  tf.never\n"
    "else:\n  tf.always\n"
    "if typing.TYPE_CHECKING:\n  import other\n"
    "def f():\n  x: tf.local = 1\n"
    "hasattr(tf, 'perhaps') and tf.perhaps\n"
    "typing and tf.second\n"
  )
  text, failures = report(tmp_path, script, other="import tensorflow as tf\ntf.in_other\n")
  assert failures == 2, text
  missing = text.partition("not there, in a try")[0]
  assert "tf.always" in missing
  assert [line.split()[0] for line in missing.splitlines() if "1 use" in line] == [
    *("tf.always", "tf.second")
  ]
  assert "tf.second  1 use   script.py:15\n" in text, "it is not said to be at the start"


@pytest.mark.parametrize("is_future", [False, True])
def test_annotations_run_at_the_start(tmp_path, is_future):
  script = "import tensorflow as tf\n"
  script += "def f(x: tf.a_1, *, y: tf.a_2 = 0) -> tf.a_3:\n  pass\nz: tf.a_4\n"
  text, failures = report(tmp_path, "from __future__ import annotations\n" * is_future + script)
  assert failures == text.count(", at the script's start") == 4 * (not is_future), text


def test_a_module_that_is_on_no_path_is_named_with_its_place(tmp_path):
  for name in ("tasks", "model"):
    (tmp_path / name).mkdir()
  (tmp_path / "model" / "modeling.py").write_text("def own():\n  pass\n")
  text, failures = report(tmp_path / "tasks", "import modeling\nmodeling.own()\nmodeling.other\n")
  assert failures == 2
  assert text.count("this is the original's modeling, as no other was found beside the script") == 1
  assert f"modeling.py  run with PYTHONPATH={tmp_path}/model\n" in text


def test_a_name_in_a_try_does_not_count(tmp_path):
  script = "import tensorflow as tf\ntry:\n  tf.nowhere\nexcept AttributeError:\n  pass\n"
  text, failures = report(tmp_path, script)
  assert failures == 0
  assert text.endswith(
    "1 name, 0 there, 0 with a difference, 1 not there, but in a try, 0 not there."
  )
  text, failures = report(tmp_path, script + "tf.nowhere\n")
  assert failures == 1


def test_a_name_that_the_script_assigns_need_not_be_there(tmp_path):
  script = "from tensorflow.python.util import deprecation\nimport tensorflow as tf\n"
  assigned = "deprecation._PER_MODULE_WARNING_LIMIT = 0\ntf.own = 1\nprint(tf.own + tf.own.imag)\n"
  assert report(tmp_path, script + assigned)[1] == 0
  text, failures = report(tmp_path, script + "tf.nowhere += 1\ntf.nothing.at_all = 2\n")
  assert failures == 2, text


def test_a_library_of_operations_needs_its_file(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  script = "import tensorflow as tf\nNAME = './x' + '.so'\ntf.load_op_library(NAME)\n"
  text, failures = report(tmp_path, script)
  assert failures == 1
  assert f"the file ./x.so is not in {tmp_path}" in " ".join(text.split())
  (tmp_path / "x.so").write_bytes(b"")
  text, failures = report(tmp_path, script)
  assert failures == 0
  assert "built for 1.15 does not load" in " ".join(text.split())


def test_what_a_local_package_lacks(tmp_path):
  (tmp_path / "plain").mkdir()
  (tmp_path / "plain" / "inner.py").write_text("from . import gone\n")
  (tmp_path / "whole").mkdir()
  (tmp_path / "whole" / "__init__.py").write_text("x: int = 1\n")
  (tmp_path / "open").mkdir()
  (tmp_path / "open" / "__init__.py").write_text("from os import *\n")
  there = "from whole import x\nfrom plain import inner\nfrom open import path\n"
  guarded = "try:\n  import whole.more\nexcept ImportError: pass\n"
  text, failures = report(tmp_path, there + "import plain.inner\n" + guarded)
  assert failures == 1, text
  assert "  plain.gone " in text
  missing = (
    "from whole import y\nimport plain.no\nfrom whole.deep.er import z\nfrom modul import a\n"
  )
  text, failures = report(tmp_path, there + missing, modul="b = 1\n")
  assert failures == 5, text
  for name in ("whole.y", "plain.no", "whole.deep", "modul.a"):
    assert f"  {name} " in text
  said = " ".join(text.split())
  assert f"{tmp_path}/whole/__init__.py has no such module or name." in said


def test_parts_of_a_local_package_that_no_text_tells(tmp_path):
  spread = "__path__ = __import__('pkgutil').extend_path(__path__, __name__)\n"
  for package, text in {"fast": "from fast.inner import g\n", "spread": spread}.items():
    (tmp_path / package).mkdir()
    (tmp_path / package / "__init__.py").write_text(text)
  (tmp_path / "fast" / f"inner{importlib.machinery.EXTENSION_SUFFIXES[0]}").write_bytes(b"")
  script = "from fast.inner import f\nfrom spread.elsewhere import x\nimport fast.gone\n"
  text, failures = report(tmp_path, script)
  assert failures == 1, text
  assert "  fast.gone " in text


def test_names_of_python_and_numpy_that_are_supplied(tmp_path):
  text, failures = report(
    tmp_path, "import numpy as np, collections\nnp.int\ncollections.Iterable\n"
  )
  assert failures == 0
  assert "supplied here (" in text
  assert "  np.int " in text


def test_python_2_is_named_with_the_remedy(tmp_path):
  text, failures = report(tmp_path, "import old, cPickle", old="print 'x'\n")
  assert failures == 1
  assert "not read: no Python 3 (1)\n  old.py:1  Missing parentheses" in text
  assert "2to3 -w" in text
  assert "cPickle  script.py:1  (of Python 2;" in text
  assert text.endswith("0 not there, 1 of the files not read.")


def test_packages_that_are_not_installed_are_named(tmp_path):
  folder = tmp_path / "albert"
  folder.mkdir()
  script = (
    "from albert import modeling\nimport of_nobody\ntry:\n  import or_not\nexcept ImportError: pass"
  )
  text, failures = report(folder, script)
  assert failures == 0
  remedy = f"(the script lies in it; run it so: --cwd={tmp_path} -m albert.script)"
  assert f"needs, not installed here (3)\n  albert  script.py:1  {remedy}\n" in text
  assert "  of_nobody  script.py:2\n" in text
  assert "  or_not  script.py:4  (the script has another way)" in text


def test_scripts_of_the_checkout_are_not_the_script_s_own(tmp_path, monkeypatch):
  monkeypatch.syspath_prepend(CHECKOUT)
  text, failures = report(tmp_path, "import run_squad\nimport sys, pathlib\n")
  assert failures == 0
  assert "needs, not installed here (1)\n  run_squad  script.py:1" in text
  (tmp_path / "run_squad.py").write_text("")
  assert "not installed" not in report(tmp_path, "import run_squad\n")[0]


def test_hub_modules_are_refused_with_what_to_do(tmp_path):
  found = finding("import tensorflow_hub as hub\nhub.Module(x)", tmp_path, "hub.Module")
  assert found.verdict == Verdict.NOT_THERE
  assert "init_from_checkpoint" in found.note


@pytest.mark.parametrize("name", sorted(differences.DIFFERENCES))
def test_each_difference_is_of_a_name_that_is_there(tmp_path, name):
  assert finding(f"import keras\n{name}", tmp_path, name).verdict == Verdict.DIFFERENT


def test_a_difference_is_told_by_all_names_of_a_thing(tmp_path):
  by_contrib = finding("tf.contrib.tpu.TPUConfig(3)", tmp_path, "tf.contrib.tpu.TPUConfig")
  by_estimator = finding("tf.estimator.tpu.TPUConfig(3)", tmp_path, "tf.estimator.tpu.TPUConfig")
  assert by_contrib.note == by_estimator.note
