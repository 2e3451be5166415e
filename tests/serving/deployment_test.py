"""deployment/: the unit and the container file start what is there, with what it needs.

Alone: python -m pytest tests/serving/deployment_test.py (seconds)
"""

import importlib.metadata
import json
import re
import shlex
import subprocess
import sys

import pytest
import yaml

from bert import __main__ as bert_command
from bert import serve
from bert.scripts import flag_groups
from bert.serving.metrics import Metrics
from tests.kit.paths import ROOT

FOLDER = ROOT / "deployment"
PACKAGES = [
  line
  for line in (FOLDER / "without_tensorflow.txt").read_text().splitlines()
  if not line.startswith("#")
]


def text_of(name: str) -> str:
  """A file, its continued lines joined."""
  return (FOLDER / name).read_text(encoding="utf-8").replace("\\\n", " ")


def instruction(name: str) -> list[str]:
  """The words of the last instruction of that name in the container file."""
  found = re.findall(rf"^{name} (.*)$", text_of("Containerfile"), re.MULTILINE)
  return json.loads(re.sub(r"^[^\[]*", "", found[-1]))


def command_of_unit() -> list[str]:
  [line] = re.findall(r"^ExecStart=(.*)$", text_of("bert-serve.service"), re.MULTILINE)
  return shlex.split(line)


def container_of_pod() -> dict:
  deployment, _ = yaml.safe_load_all(text_of("kubernetes.yaml"))
  [container] = deployment["spec"]["template"]["spec"]["containers"]
  return container


COMMANDS = {
  "bert-serve.service": command_of_unit,
  "Containerfile": lambda: [*instruction("ENTRYPOINT"), *instruction("CMD")],
  "kubernetes.yaml": lambda: [*instruction("ENTRYPOINT"), *container_of_pod()["args"]],
}


@pytest.mark.parametrize("file", COMMANDS)
def test_the_command_is_one_of_the_project(file):
  program, word, *flags = COMMANDS[file]()
  assert program.rpartition("/")[2] == "bert"
  assert bert_command.words()[word].module == "bert.serve"
  with flag_groups.defined_flags(serve.define_flags):
    known = {each["name"] for each in flag_groups.describe()}
  assert {re.fullmatch(r"--(\w+)=.+", each)[1] for each in flags} <= known
  assert set(re.findall(r"--(\w+_\w+)", text_of(file))) <= known


def test_the_pod_has_the_probes_and_the_time_to_drain():
  container = container_of_pod()
  assert container["readinessProbe"]["httpGet"]["path"] == "/health"
  assert container["livenessProbe"]["httpGet"]["path"] == "/live"
  deployment, service = yaml.safe_load_all(text_of("kubernetes.yaml"))
  pod = deployment["spec"]["template"]["spec"]
  [drain] = [flag for flag in container["args"] if flag.startswith("--drain_s=")]
  assert pod["terminationGracePeriodSeconds"] > float(drain.partition("=")[2])
  [port] = container["ports"]
  assert service["spec"]["ports"][0]["targetPort"] == port["containerPort"]


def test_alerts_use_metrics_that_the_server_exports():
  exported = Metrics().text().decode()
  names = set(re.findall(r"^# TYPE (\w+) ", exported, re.MULTILINE))
  [group] = yaml.safe_load(text_of("alerts.yaml"))["groups"]
  used = {
    name for rule in group["rules"] for name in re.findall(r"\b(?:te|bert)_\w+", rule["expr"])
  }
  assert len(used) >= 5
  assert {name.removesuffix("_bucket") for name in used} <= names


def test_packages_are_those_of_the_project():
  tomllib = pytest.importorskip("tomllib", reason="Python 3.10 reads no TOML")
  project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
  extras = project["optional-dependencies"]
  assert set(PACKAGES) - {*project["dependencies"], *extras["onnx"]} == set(extras["serve"])
  assert [each for each in PACKAGES if each.startswith("tensorflow")] == []


# ---------------------------------------------------------------------------------------------
# What is really imported.

_IMPORTS = """
import importlib, pkgutil, sys

class Hidden:
  def find_spec(self, name, path=None, target=None):
    if name.partition(".")[0] in hidden:
      raise ModuleNotFoundError(f"No module named {name!r}", name=name)

hidden = set(sys.argv[1].split())
sys.meta_path.insert(0, Hidden())
import bert.serve, bert.serving, bert.predicting.engines.onnxruntime, bert.predicting.servable
for found in pkgutil.iter_modules(bert.serving.__path__, "bert.serving."):
  importlib.import_module(found.name)
import httptools, uvloop
"""


def test_a_server_needs_no_other_packages():
  brought = closure([re.match(r"[\w.-]+", each)[0] for each in PACKAGES])
  assert [each for each in brought if each.startswith("tensorflow")] == []
  owners = importlib.metadata.packages_distributions()
  others = {
    name
    for name, packages in owners.items()
    if not {_normal(each) for each in packages} & {*brought, "bert-alive"}
  }
  assert "tensorflow" in others
  command = [sys.executable, "-c", _IMPORTS, " ".join(others)]
  done = subprocess.run(command, cwd=ROOT, stderr=subprocess.PIPE, text=True, check=False)
  assert done.returncode == 0, done.stderr


def closure(names) -> set[str]:
  """The packages, and those that they need without extras."""
  found, waiting = set(), [*names]
  while waiting:
    if (name := _normal(waiting.pop())) in found:
      continue
    try:
      needed = importlib.metadata.requires(name) or ()
    except importlib.metadata.PackageNotFoundError:  # of another Python or system
      continue
    found.add(name)
    waiting += [re.match(r"[\w.-]+", each)[0] for each in needed if "extra ==" not in each]
  return found


def _normal(name: str) -> str:
  return re.sub(r"[-_.]+", "-", name).lower()
