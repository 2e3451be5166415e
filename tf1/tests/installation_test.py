"""The distribution as others install it, alone and beside bert-alive.

Alone: python -m pytest tf1/tests/installation_test.py (half a minute)
"""

import os
import pathlib
import subprocess
import sys
import sysconfig
import zipfile

import pytest

from tests.kit.paths import CHECKOUT, TF1

pytestmark = pytest.mark.ci
SCRIPT = """\
import tensorflow as tf
from bert import own
import modeling
print(own.VERSION, tf.contrib.layers.__name__, modeling.__name__)
"""


@pytest.fixture(scope="module")
def wheels(tmp_path_factory) -> list[pathlib.Path]:
  """The wheels of this distribution and of bert-alive."""
  folder = tmp_path_factory.mktemp("wheels")
  command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--disable-pip-version-check"]
  command += ["--no-index", "--no-deps", "--no-build-isolation", f"--wheel-dir={folder}"]
  subprocess.run([*command, str(TF1), str(CHECKOUT)], check=True)
  return sorted(folder.glob("*.whl"), reverse=True)


@pytest.fixture(scope="module", params=["alone", "beside bert-alive"])
def commands(request, wheels, tmp_path_factory) -> list[list[str]]:
  """The commands of a new environment that sees the packages of this one."""
  folder = tmp_path_factory.mktemp("environment")
  subprocess.run([sys.executable, "-m", "venv", "--without-pip", str(folder)], check=True)
  paths = {"base": str(folder), "platbase": str(folder)}
  site_packages = pathlib.Path(sysconfig.get_path("purelib", "venv", paths))
  (site_packages / "borrowed_packages.pth").write_text(sysconfig.get_path("purelib") + "\n")
  scripts = pathlib.Path(sysconfig.get_path("scripts", "venv", paths))
  is_alone = request.param == "alone"
  command = [sys.executable, "-m", "pip", f"--python={scripts / 'python'}", "install", "--quiet"]
  command += ["--disable-pip-version-check", "--no-index", "--no-deps"]
  subprocess.run([*command, *map(str, wheels[: 1 if is_alone else 2])], check=True)
  if is_alone:
    return [[str(scripts / "bert-tf1")]]
  return [[str(scripts / "python"), "-m", "bert_tf1"], [str(scripts / "bert"), "tf1"]]


def run(command, *arguments, folder, **variables) -> str:
  """Runs a command; returns what it printed."""
  environment = {name: value for name, value in os.environ.items() if name[:6] != "PYTHON"}
  done = subprocess.run(
    [*command, *arguments],
    cwd=folder,
    env=environment | variables,
    capture_output=True,
    text=True,
  )
  assert done.returncode == 0, done.stdout + done.stderr
  return done.stdout


def test_the_wheel_has_one_import_name(wheels):
  names = {name.partition("/")[0] for name in zipfile.ZipFile(wheels[0]).namelist()}
  assert sorted(name.partition("-")[0] for name in names) == ["bert_alive_tf1", "bert_tf1"]
  assert not [name for name in zipfile.ZipFile(wheels[1]).namelist() if "tf1/" in name]


def test_a_script_beside_its_own_package_bert(commands, tmp_path):
  (tmp_path / "bert").mkdir()
  (tmp_path / "bert" / "own.py").write_text("import tensorflow as tf\nVERSION = tf.VERSION\n")
  (tmp_path / "script.py").write_text(SCRIPT)
  assert "0 not there" in run(commands[0], "--check", "script.py", folder=tmp_path)
  for command in commands:
    printed = run(command, "script.py", folder=tmp_path)
    assert printed == "1.15.5 bert_tf1.contrib.layers bert_tf1.library.modeling\n"


def test_where_the_path_leads_to_another_bert(commands, tmp_path):
  (tmp_path / "bert").mkdir()
  (tmp_path / "bert" / "__init__.py").write_text("WHOSE = 'other'\n")
  (tmp_path / "script.py").write_text("import bert, tensorflow\nprint(bert.WHOSE)\n")
  printed = run(commands[0], "script.py", folder=tmp_path, PYTHONPATH=str(tmp_path))
  assert printed == "other\n"


def test_a_script_without_a_bert(commands, tmp_path):
  (tmp_path / "script.py").write_text(
    "from bert import modeling, tokenization\nimport optimization\n"
    "print(modeling.__name__, tokenization.__name__, optimization.__name__)\n"
  )
  checked = run(commands[0], "--check", "script.py", folder=tmp_path)
  assert "0 not there" in checked
  assert "needs, not installed" not in checked
  library = "bert_tf1.library"
  expected = f"{library}.modeling {library}.tokenization {library}.optimization\n"
  assert run(commands[-1], "script.py", folder=tmp_path) == expected


def test_a_seed(commands, tmp_path):
  (tmp_path / "script.py").write_text("import os\nprint(os.environ['PYTHONHASHSEED'])\n")
  assert run(commands[-1], "--seed=5", "script.py", folder=tmp_path) == "5\n"
