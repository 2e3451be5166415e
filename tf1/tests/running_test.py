"""`python -m bert_tf1`: which TensorFlow a script gets, how it ends, kill and resume."""

import json
import os
import pathlib
import signal
import subprocess
import sys

import pytest

from tests.kit.paths import CHECKOUT, MINIATURE, TF1

SCRIPT = MINIATURE / "mini_classifier.py"
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(TF1)}


def run_tf1(*arguments, folder=TF1, **environment):
  """Runs `python -m bert_tf1`; returns the finished process."""
  return subprocess.run(
    [sys.executable, "-m", "bert_tf1", *map(str, arguments)],
    cwd=folder,
    env={**ENVIRONMENT, **environment},
    capture_output=True,
    text=True,
    timeout=300,
    # A shell's job in the background ignores Ctrl-C, and what it starts inherits that.
    preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
  )


IMPORTS = """
import importlib, json, sys
import tensorflow as tf
import tensorflow.compat.v1 as tf_v1
import tensorflow.compat.v2 as tf_v2
import tensorflow.contrib.layers as deep_layers
from tensorflow.contrib import crf, tpu as contrib_tpu
from tensorflow.contrib.crf.python.ops import crf as crf_file
from tensorflow.python.ops import math_ops
from tensorflow.python import control_flow_ops, math_ops as by_folder, ops
import tensorflow.python.ops.state_ops as state_ops
from tensorflow import flags
import modeling
from bert import optimization
import tensorflow_hub


def message(statement):
  try:
    exec(statement, globals())
  except (ImportError, AttributeError) as error:
    return str(error)


facts = {
  "version": tf.__version__,
  "one face": tf is tf_v1 is tf.compat.v1 is importlib.import_module("tensorflow"),
  "v2": [tf_v2.estimator is tf.estimator, tf_v2.compat.v1 is tf, tf.compat.v2 is tf_v2],
  "contrib": [deep_layers is tf.contrib.layers, crf is tf.contrib.crf,
              crf_file.crf_decode is crf.crf_decode, contrib_tpu is tf.contrib.tpu],
  "inside": [math_ops.__name__, math_ops is by_folder, control_flow_ops.__name__,
             ops.convert_to_tensor.__name__, state_ops.__name__],
  "flags": flags is tf.flags,
  "beside": [modeling.WHOSE, modeling.VERSION],
  "own bert": optimization.WHOSE,
  "packages": sys.modules["tensorflow"].__version__.startswith("2."),
  "argv": sys.argv[1:],
  "name": __name__,
  "errors": [message(s) for s in (
    "tf.contrib.crf.crf_decod", "tf.contrib.boosted_trees", "from tensorflow.contrib import nnn",
    "from tensorflow.contrib.crf import crf_decod", "tf.truncated_normal_initialiser",
    "import tensorflow.python.nothing", "from tensorflow.python.ops import nothing",
    "from tensorflow.python import nothing",
    "import tensorflow.nothing",
  )],
}
print(json.dumps(facts))
"""


@pytest.mark.ci
def test_what_imports_give(tmp_path):
  (tmp_path / "bert").mkdir()
  (tmp_path / "bert" / "__init__.py").write_text("")
  (tmp_path / "bert" / "optimization.py").write_text("WHOSE = 'own'\n")
  beside = "import tensorflow as tf\nWHOSE = 'own'\nVERSION = tf.__version__\n"
  (tmp_path / "modeling.py").write_text(beside)
  (tmp_path / "script.py").write_text(IMPORTS)
  done = run_tf1(tmp_path / "script.py", "--some=flag", "-m")
  assert done.returncode == 0, done.stderr
  facts = json.loads(done.stdout)
  errors = facts.pop("errors")
  assert facts == {
    "version": "1.15.5",
    "one face": True,
    "v2": [True] * 3,
    "contrib": [True] * 4,
    "inside": [
      "tensorflow.python.ops.math_ops",
      True,
      "tensorflow.python.ops.control_flow_ops",
      "convert_to_tensor",
      "tensorflow.python.ops.state_ops",
    ],
    "flags": True,
    "beside": ["own", "1.15.5"],
    "own bert": "own",
    "packages": True,
    "argv": ["--some=flag", "-m"],
    "name": "__main__",
  }
  assert "did you mean tf.contrib.crf.crf_decode?" in errors[0]
  assert "tf.contrib.boosted_trees is not available" in errors[1]
  assert "tf.contrib has: " in errors[1]
  assert "tf.contrib.nnn is not available" in errors[2]
  assert "did you mean tf.contrib.crf.crf_decode?" in errors[3]
  assert "did you mean tf.truncated_normal_initializer?" in errors[4]
  assert all("is not available on this TensorFlow" in error for error in errors), errors


@pytest.mark.parametrize(
  ("arguments", "message"),
  [
    ([], "Run a script of TensorFlow 1.x"),
    (["--chek", "x.py"], "--chek is no option of `bert-tf1`. It knows --cwd, --seed and --check"),
    (["-v", "x.py"], "-v is no option of `bert-tf1`. It knows --cwd, --seed and --check"),
    (["--seed=one", "x.py"], "--seed=one: a whole number"),
    (["--seed", "x.py"], "--seed=x.py: a whole number"),
    ([""], "which script? bert-tf1"),
    (["-m"], "which script? bert-tf1"),
    (["-m", "no_such.module"], "-m no_such.module: no module no_such in "),
    (["tests"], "tests is a folder: give a script in it, or -m MODULE"),
    (["--cwd=/no/such/folder", "x.py"], "--cwd=/no/such/folder: no such folder"),
    (["nothing.py"], "nothing.py: no such script in "),
    ([str(CHECKOUT / "run_squad.py")], "is a script of bert-alive and needs no 1.x"),
  ],
)
def test_a_wrong_command_line_is_refused_at_once(arguments, message, capsys, monkeypatch):
  from bert_tf1.__main__ import main

  monkeypatch.chdir(TF1)
  assert main(arguments) in (0, 2)
  out, err = capsys.readouterr()
  assert message in out + err


def test_a_notebook_is_refused_at_once(tmp_path, capsys):
  from bert_tf1.__main__ import main

  (tmp_path / "a.ipynb").write_text("{}")
  for arguments in (["a.ipynb"], ["--check", "a.ipynb"]):
    assert main([f"--cwd={tmp_path}", *arguments]) == 2
    assert "a.ipynb is a notebook. Run it where notebooks run" in capsys.readouterr().err


@pytest.mark.ci
def test_kill_and_resume(tmp_path):
  flags = [f"--output_dir={tmp_path}", "--do_train", "--num_train_steps=20"]
  killed = run_tf1(SCRIPT, *flags, "--train_until=12")
  assert killed.returncode == -9
  assert (tmp_path / "model.ckpt-10.index").exists()
  assert not (tmp_path / "model.ckpt-15.index").exists()
  done = run_tf1(SCRIPT, *flags, "--do_eval", "--do_predict", "--do_export")
  assert done.returncode == 0, done.stderr
  assert "Restoring parameters from" in done.stderr
  assert "model.ckpt-10" in done.stderr
  results = dict(
    line.split(" = ") for line in (tmp_path / "eval_results.txt").read_text().splitlines()
  )
  assert sorted(results) == ["eval_accuracy", "eval_loss", "global_step", "loss"]
  assert results["global_step"] == "20"
  assert len((tmp_path / "test_results.tsv").read_text().splitlines()) == 30
  assert done.stdout.startswith("exported")
  for line in ("loss = ", "examples/sec: ", "global_step/sec: "):
    assert f"INFO:tensorflow:{line}" in done.stderr
  assert done.stderr.count("Saving checkpoints for 20 into") == 1  # Each line once, not twice.
  assert "is deprecated" not in done.stderr  # No advice to move to 2.x.


@pytest.mark.ci
def test_ctrl_c_ends_training_in_one_line(tmp_path):
  flags = [f"--output_dir={tmp_path}", "--do_train", "--train_until=12", "--signal=2"]
  done = run_tf1(SCRIPT, *flags)
  assert done.returncode == 130
  assert done.stderr.endswith("\nInterrupted.\n")
  assert "Traceback" not in done.stderr
  state = (tmp_path / "checkpoint").read_text().splitlines()
  assert state[0] == 'model_checkpoint_path: "model.ckpt-10"'


@pytest.mark.ci
def test_a_seed_makes_a_run_repeatable(tmp_path):
  flags = ["--do_train", "--do_predict", "--num_train_steps=12"]
  outputs = {}
  for name, seed in (("one", 1), ("again", 1), ("two", 2)):
    done = run_tf1(f"--seed={seed}", SCRIPT, f"--output_dir={tmp_path / name}", *flags)
    assert done.returncode == 0, done.stderr
    outputs[name] = (tmp_path / name / "test_results.tsv").read_text()
  assert outputs["one"] == outputs["again"] != outputs["two"]


@pytest.mark.ci
@pytest.mark.parametrize(
  ("source", "status", "message"),
  [
    ("import tensorflow as tf\n\ntf.contrib.nothing\n", 1, "script.py:3: tf.contrib.nothing"),
    ("print 'Python 2'\n", 1, "script.py:1: Missing parentheses"),
    ("import sys\nsys.exit(7)\n", 7, ""),
    ("raise KeyboardInterrupt\n", 130, "Interrupted."),
    ("def f():\n  return 1 / 0\n\nf()\n", 1, "ZeroDivisionError: division by zero"),
  ],
)
def test_how_a_script_ends(tmp_path, source, status, message):
  (tmp_path / "script.py").write_text(source)
  done = run_tf1(tmp_path / "script.py")
  assert done.returncode == status
  assert message in done.stderr
  for ours in ("bert_tf1", "runpy"):
    assert ours not in done.stderr  # Nobody needs to see how it was started.
  assert done.stderr.count("Traceback") == (1 if "Zero" in message else 0)


GRAPH_ERROR = """
import os
import tensorflow as tf
OPTIMIZER = b"E0000 00:00:1.5  77 meta_optimizer.cc:9] layout failed: INVALID_ARGUMENT: a\\n"
os.write(2, OPTIMIZER.replace(b"layout failed", b"Iteration = 0, topological sort failed"))
os.write(2, OPTIMIZER + b"E0000 00:00:1.5  77 gpu.cc:9] real\\n50%")
def rows(ids):
  return tf.gather(tf.get_variable("table", [3, 2]), ids, name="rows")
with tf.variable_scope("bert"):
  ids = tf.placeholder(tf.int32, [None])
  found = rows(ids)
with tf.Session() as session:
  session.run(tf.global_variables_initializer())
  session.run([found, tf.reduce_sum(found)], {ids: [1, 7]})
"""


@pytest.mark.ci
def test_a_graph_error_ends_with_its_cause(tmp_path):
  (tmp_path / "script.py").write_text(GRAPH_ERROR)
  done = run_tf1("script.py", folder=tmp_path)
  assert done.returncode == 1
  assert done.stderr.endswith("\nscript.py:8: bert/rows: indices[1] = 7 is not in [0, 3)\n")
  assert "script.py" in done.stderr.partition("Traceback")[2]
  assert " failed: " not in done.stderr  # The optimizer's lines are of good runs.
  assert "gpu.cc:9] real\n50%" in done.stderr


@pytest.mark.parametrize(
  ("message", "cause"),
  [
    ("Graph execution error:\n\nKey: ids. Too few.\n\t [[{{node Parse}}]]", "Key: ids. Too few."),
    (
      "2 root error(s) found.\n  (0) INVALID_ARGUMENT: Shapes differ\n\t [[{{node a}}]]\n  (1) x",
      "Shapes differ",
    ),
    ("Node: 'a'\nToo large\n\nOriginal stack trace for 'a':\n  File \"x.py\", line 1", "Too large"),
    ("", "InvalidArgumentError"),
  ],
)
def test_the_cause_in_a_message(message, cause):
  from bert_tf1 import running
  from bert_tf1.real import tf

  error = tf.errors.InvalidArgumentError(None, None, f"\n{message}")
  assert running._cause(error, "script.py:3: ") == f"script.py:3: {cause}"


@pytest.mark.ci
def test_the_last_words_of_a_process_that_is_aborted(tmp_path):
  (tmp_path / "script.py").write_text("import os\nos.write(2, b'F0000 why\\n')\nos.abort()\n")
  done = run_tf1("script.py", folder=tmp_path)
  assert (done.returncode, done.stderr) == (-signal.SIGABRT, "F0000 why\n")


PRINT = "import tensorflow as tf\nprint(tf.VERSION)\n"
ODD_SCRIPTS = {
  # file -> bytes, exit status, what it writes at last
  "Straße 1.py": (PRINT.encode(), 0, "1.15.5\n"),
  "dos.py": (PRINT.replace("\n", "\r\n").encode(), 0, "1.15.5\n"),
  "bom.py": (PRINT.encode("utf-8-sig"), 0, "1.15.5\n"),
  "latin.py": ("# coding: latin-1\nprint('\xe9')\n".encode("latin-1"), 0, "\xe9\n"),
  "link.py": (None, 0, "1.15.5\n"),
  "empty.py": (b"", 0, ""),
  "tabs.py": (b"if 1:\n\tx = 1\n        x = 2\n", 1, "tabs.py:3: inconsistent use of tabs and "),
  "nul.py": (b"x = 1\n\0\n", 1, "source code string cannot contain null bytes"),
  "no_file.py": (b"\nopen('/no/such')\n", 1, "no_file.py:2: FileNotFoundError: [Errno 2] No such "),
  "no_folder.py": (
    b"import tensorflow as tf\n\ntf.gfile.MakeDirs('empty.py/x')\n",
    1,
    "no_folder.py:3: FailedPreconditionError: empty.py is not a directory\n",
  ),
  "flags.py": (
    b"import tensorflow as tf\ntf.flags.DEFINE_string('name', None, '')\n"
    b"tf.flags.mark_flag_as_required('name')\ntf.app.run(main=print)\n",
    1,
    "flags.py: flag --name=None: Flag --name must have a value other than None.\n",
  ),
  "missing.py": (
    b"try:\n  1 / 0\nexcept ZeroDivisionError:\n  import no_such\n",
    1,
    "\nDuring handling of the above exception, another exception occurred:\n\n"
    'Traceback (most recent call last):\n  File "missing.py", line 4, in <module>\n'
    "    import no_such\nModuleNotFoundError: No module named 'no_such'\n",
  ),
}
ONE_AFTER_ANOTHER = """
import contextlib, io, json, sys
from bert_tf1.__main__ import main
for name in sys.argv[1:]:
  text = io.StringIO()
  with contextlib.redirect_stdout(text), contextlib.redirect_stderr(text):
    try:
      status = main([name])
    except SystemExit as exit:
      status = exit.code
  print(json.dumps([name, status, text.getvalue()]))
"""


@pytest.mark.ci
def test_odd_scripts_run_or_are_refused_in_one_line(tmp_path):
  (tmp_path / "real").mkdir()
  (tmp_path / "real" / "s.py").write_text("from beside import VERSION\nprint(VERSION)\n")
  (tmp_path / "real" / "beside.py").write_text("import tensorflow as tf\nVERSION = tf.VERSION\n")
  (tmp_path / "link.py").symlink_to(pathlib.Path("real") / "s.py")
  for name, (source, _, _) in ODD_SCRIPTS.items():
    if source is not None:
      (tmp_path / name).write_bytes(source)
  done = subprocess.run(
    [sys.executable, "-c", ONE_AFTER_ANOTHER, *ODD_SCRIPTS],
    cwd=tmp_path,
    env=ENVIRONMENT,
    stdin=subprocess.DEVNULL,
    capture_output=True,
    text=True,
  )
  assert done.returncode == 0, done.stderr
  results = [json.loads(line) for line in done.stdout.splitlines()]
  assert len(results) == len(ODD_SCRIPTS)
  for name, status, text in results:
    _, wanted_status, wanted = ODD_SCRIPTS[name]
    assert (name, status) == (name, wanted_status), text
    assert wanted in text
    assert text.count("\n") == 1 or name in ("missing.py", "empty.py"), text
    assert text.startswith("Traceback" if name == "missing.py" else name) or status == 0
    assert "bert_tf1" not in text
    assert "runpy" not in text


@pytest.mark.ci
def test_a_seed_in_a_folder_with_its_own_bert(tmp_path):
  (tmp_path / "bert").mkdir()
  (tmp_path / "bert" / "__init__.py").write_text("WHOSE = 'own'\n")
  source = "import os, bert, tensorflow as tf\nprint(bert.WHOSE, os.environ['PYTHONHASHSEED'])\n"
  (tmp_path / "script.py").write_text(source + "print(tf.get_default_graph().seed)\n")
  command = pathlib.Path(sys.executable).parent / "bert-tf1"
  if not command.exists():
    pytest.skip("the command `bert-tf1` is not installed in this environment")
  environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
  done = subprocess.run(
    [command, "--seed=5", "script.py"],
    cwd=tmp_path,
    env=environment,
    capture_output=True,
    text=True,
  )
  assert done.stdout == "own 5\n5\n", done.stderr


@pytest.mark.ci
def test_module_in_another_folder(tmp_path):
  package = tmp_path / "fork"
  package.mkdir()
  (package / "__init__.py").write_text("")
  (package / "part.py").write_text("import tensorflow as tf\nVERSION = tf.__version__\n")
  main = "import sys\nfrom fork import part\nprint(part.VERSION, sys.argv[1:], __name__)\n"
  (package / "main.py").write_text(main)
  done = run_tf1(f"--cwd={tmp_path}", "-m", "fork.main", "--x=1")
  assert done.stdout == "1.15.5 ['--x=1'] __main__\n", done.stderr


@pytest.mark.ci
def test_install_in_a_notebook_and_under_pytest(tmp_path):
  (tmp_path / "conftest.py").write_text("import bert_tf1\n\nbert_tf1.install()\n")
  test = "import tensorflow as tf\n\n\ndef test_it():\n  assert tf.__version__ == '1.15.5'\n"
  (tmp_path / "it_test.py").write_text(test)
  cell = (
    "import bert_tf1; bert_tf1.install(); import tensorflow as tf; "
    "print(tf.estimator.ModeKeys.EVAL)"
  )
  for command in (["-m", "pytest", "-q", "-p", "no:cacheprovider", "it_test.py"], ["-c", cell]):
    done = subprocess.run(
      [sys.executable, *command], cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert "1 passed" in done.stdout or done.stdout == "eval\n"
