"""What is read of a script: python -m pytest tf1/tests/checking/uses_test.py"""

import pathlib

import pytest

from bert_tf1.checking import uses
from tests.kit.paths import CHECKOUT


def read(folder: pathlib.Path, script: str, **others: str) -> uses.Program:
  """Reads a script beside other modules; `inner_of_package` is package/inner.py."""
  for name, text in {"script": script, **others}.items():
    path = folder / "/".join(reversed(name.split("_of_")))
    path.parent.mkdir(exist_ok=True)
    path.with_name(path.name + ".py").write_text(text)
  return uses.read(str(folder / "script.py"), False, [str(folder)])


def names(program: uses.Program, root: str = "tensorflow") -> dict[str, int]:
  """The names below a root and the lines of their last uses."""
  return {use.name: use.line for use in program.uses if use.name.startswith(root + ".")}


@pytest.mark.parametrize(
  ("text", "expected"),
  [
    ("import tensorflow as tf\ntf.cast(x, tf.int32)", {"cast": 2, "int32": 2}),
    ("import tensorflow.compat.v1 as tf\ntf.cast", {"compat.v1": 1, "compat.v1.cast": 2}),
    ("import tensorflow\ntensorflow.nn.relu", {"nn.relu": 2}),
    (
      "import tensorflow.contrib.slim as slim\nslim.a.b",
      {"contrib.slim": 1, "contrib.slim.a.b": 2},
    ),
    ("import tensorflow.contrib.slim\ntensorflow.cast", {"contrib.slim": 1, "cast": 2}),
    ("from tensorflow.contrib import crf\ncrf.x()", {"contrib.crf": 1, "contrib.crf.x": 2}),
    ("from tensorflow.contrib.crf import x as f\n\nf()", {"contrib.crf.x": 3}),
    ("from tensorflow.contrib.crf import *", {"contrib.crf": 1}),
    (
      "import tensorflow as tf\nflags = tf.flags\nFLAGS = flags.FLAGS\nFLAGS.lr",
      {"flags": 2, "flags.FLAGS": 3, "flags.FLAGS.lr": 4},
    ),
    ("def f():\n  import tensorflow as tf\n  return lambda: tf.cast", {"cast": 3}),
    ("try:\n  import tensorflow as tf\nexcept ImportError:\n  pass\ntf.cast", {"cast": 5}),
    ("import tensorflow as tf\n[tf.cast(v) for v in w]", {"cast": 2}),
    # An object's attributes are those of its class.
    ("import tensorflow as tf\ne = tf.Est(f)\ne.train(g)", {"Est": 2, "Est().train": 3}),
    ("import tensorflow as tf\nd = tf.Data(f)\nd = d.map(g)\nd.more()", {"Data": 2}),
    (
      "import tensorflow as tf\ntf.Data(tf.x).map(tf.y)",
      {"Data": 2, "x": 2, "Data().map": 2, "y": 2},
    ),
    # Names that stand for something else where they are used.
    ("import tensorflow as tf\ndef f(tf):\n  return tf.cast", {}),
    ("import tensorflow as tf\n[tf.cast for tf in words]", {}),
    (
      "import tensorflow as tf\nlayers = tf.layers\ndef f():\n  for layers in x:\n    layers.y",
      {"layers": 2},
    ),
    (
      "import tensorflow as tf\nclass A:\n  cast = tf.cast\n  def f(self):\n    return cast.x",
      {"cast": 3},
    ),
    ("import tensorflow as tf\na = tf.x if c else tf.y\nif c:\n  a = 3\na.z", {"x": 2, "y": 2}),
    ("tf.cast", {}),
    ("from . import tensorflow as tf\ntf.cast", {}),
  ],
)
def test_names_of_a_script(tmp_path, text, expected):
  found = names(read(tmp_path, script=text))
  assert found == {f"tensorflow.{name}": line for name, line in expected.items()}


def test_modules_beside_a_script_are_followed_and_others_are_not(tmp_path):
  program = read(
    tmp_path,
    script="import a\nfrom package import inner\ndef f():\n  from late import x\nimport numpy\n",
    a="import a, unread_too\nimport tensorflow as tf\ntf.from_a",
    __init___of_package="from . import first\nfrom .second import x",
    first_of_package="import tensorflow as tf\ntf.first",
    second_of_package="from tensorflow import second",
    inner_of_package="from ..package.first import y\nfrom tensorflow import inner",
    unread_of_package="from tensorflow import unread",
    late="from tensorflow import late\nimport sqlite3, later",
    later="import tensorflow as tf\ntf.later",
    unread="import tensorflow as tf\ntf.unread",
  )
  assert sorted(pathlib.Path(path).name for path in program.modules) == [
    *("__init__.py", "a.py", "first.py", "inner.py", "late.py", "later.py", "script.py"),
    "second.py",
  ]
  assert {name.partition(".")[2] for name in names(program)} == {
    *("first", "from_a", "inner", "late", "later", "second")
  }
  assert set(program.imports) == {"numpy", "tensorflow", "unread_too", "sqlite3"}


def test_names_come_through_modules_of_the_script(tmp_path):
  program = read(
    tmp_path,
    script="from common import *\nfrom other import layers as la\ntf.cast\nla.dense",
    common="import tensorflow as tf",
    other="import tensorflow\nlayers = tensorflow.layers",
  )
  assert {"tensorflow.cast", "tensorflow.layers.dense"} <= set(names(program))


def test_a_folder_of_data_is_no_package(tmp_path):
  (tmp_path / "bert").mkdir()
  (tmp_path / "bert" / "vocab.txt").write_text("[PAD]")
  program = read(
    tmp_path, "from bert import modeling\nfrom other.inner import x", inner_of_other=""
  )
  assert set(program.imports) == {"bert"}


def test_this_package_is_none_of_the_script_s_modules(tmp_path):
  text = "from bert import modeling\nimport bert.tokenization, tokenization"
  (tmp_path / "script.py").write_text(text)
  program = uses.read(str(tmp_path / "script.py"), False, [str(tmp_path), str(CHECKOUT)])
  assert [pathlib.Path(path).name for path in program.modules] == ["script.py"]
  assert set(names(program, "bert")) == {"bert.modeling", "bert.tokenization"}


@pytest.mark.parametrize(
  "text",
  [
    "sys.path.append('inner')",
    "if 'inner' not in sys.path:\n  sys.path += ['inner']",
    "sys.path.extend(('other', 'inner'))",
    "sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), 'inner'))",
    "sys.path.insert(0, os.getcwd() + '/inner')",
    "here = os.path.abspath(__file__)\nsys.path.append(os.path.split(here)[0] + '/inner')",
  ],
)
def test_folders_that_a_script_adds_are_searched(tmp_path, monkeypatch, text):
  monkeypatch.chdir(tmp_path)
  found = read(tmp_path, f"import sys, os\n{text}\nimport late", late_of_inner="import torch")
  assert [pathlib.Path(path).name for path in found.modules] == ["script.py", "late.py"]


def test_folders_are_searched_in_the_order_of_a_run(tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  text = "import sys\nsys.path.insert(0, 'a')\nsys.path.append('b')\nsys.path.insert(0, 'c')"
  folders = [str(tmp_path / name) for name in ("c", "a", "", "b")]
  assert read(tmp_path, text).search == [folder.rstrip("/") for folder in folders]


def test_folders_that_only_a_run_tells_are_left_out(tmp_path):
  text = "import sys\nsys.path.append(FLAGS.x)\nsys.path.append(sys.argv[1])\nsys.path += x"
  assert read(tmp_path, text).search == [str(tmp_path)]


def test_lines_that_run_at_the_start(tmp_path):
  text = "import tensorflow as tf\ntf.a\nclass B:\n  tf.b\n  def f(self):\n    tf.c\nlambda: tf.d"
  starts = {use.name[-1]: use.at_start for use in read(tmp_path, text).uses}
  assert starts == {"w": True, "a": True, "b": True, "c": False, "d": False}


def test_a_module_is_found_by_its_dotted_name(tmp_path):
  read(tmp_path, script="", run_of_albert="from albert import modeling", modeling_of_albert="")
  program = uses.read("albert.run", True, [str(tmp_path)])
  assert [pathlib.Path(path).name for path in program.modules] == ["run.py", "modeling.py"]
  (tmp_path / "albert" / "__init__.py").write_text("import json")
  (tmp_path / "albert" / "__main__.py").write_text("from . import run")
  program = uses.read("albert", True, [str(tmp_path)])
  assert [pathlib.Path(path).name for path in program.modules] == [
    *("__main__.py", "__init__.py", "run.py", "modeling.py")
  ]


@pytest.mark.parametrize(
  "text",
  [
    "try:\n  tf.x\nexcept AttributeError:\n  pass",
    "try:\n  tf.x\nexcept:\n  pass",
    "try:\n  from tensorflow import x\nexcept (ImportError, KeyError):\n  x = None\nx.y",
    "if tf.__version__ > '2':\n  tf.x",
    "if hasattr(tf, 'x'):\n  tf.x",
    "y = tf.x if six.PY2 else 3",
  ],
)
def test_names_that_a_script_can_do_without(tmp_path, text):
  program = read(tmp_path, script="import tensorflow as tf\n" + text)
  guarded = {use.name: use.guarded for use in program.uses}
  assert guarded["tensorflow.x"]
  assert guarded.get("tensorflow.x.y", True)


def test_a_name_in_another_try_is_needed(tmp_path):
  text = "import tensorflow as tf\ntry:\n  tf.x\nexcept ValueError:\n  pass\nif a:\n  tf.x"
  assert not any(use.guarded for use in read(tmp_path, script=text).uses)


def test_files_that_do_not_parse_are_named(tmp_path):
  program = read(tmp_path, script="import old, null", old='import os\nprint "x"', null="a\0")
  found = {pathlib.Path(bad.path).name: bad.line for bad in program.unparsed}
  assert found == {"old.py": 2, "null.py": 1}


def test_functions_of_python_2(tmp_path):
  text = "for i in xrange(3): pass\nif six.PY2:\n  unicode\nlong = int\nlong(3)"
  assert names(read(tmp_path, script=text), "builtins") == {"builtins.xrange": 1}


def test_scripts_that_cannot_be_read(tmp_path):
  with pytest.raises(FileNotFoundError, match=r"No script .*script\.py"):
    uses.read(str(tmp_path / "script.py"), False, [str(tmp_path)])
  with pytest.raises(FileNotFoundError, match=r"No module a\.b in "):
    uses.read("a.b", True, [str(tmp_path)])
  (tmp_path / "a.ipynb").write_text("{}")
  with pytest.raises(ValueError, match=r"a notebook.*nbconvert"):
    uses.read(str(tmp_path / "a.ipynb"), False, [str(tmp_path)])
