"""huggingface/transformers 4: its tests of TensorFlow models, imports redirected.

The tests are copied, `transformers` in their import lines becomes that of
`transformers_redirect.py`, and pytest runs them. They need more than this project: `datasets` and
`parameterized`; name the folders in which they are installed as TRANSFORMERS4_PATH. Without them
everything is skipped.
"""

import concurrent.futures
import itertools
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Iterator

from conformance.cases import FAILED, PASSED, SKIPPED, Case, Context, SuiteError, read_with

FOLDERS = ("transformers",)
ROOT = pathlib.Path(__file__).resolve().parent.parent
FAMILIES = ("bert", "roberta", "distilbert", "albert", "electra")
SECONDS = 3600  # of a file, at most
_IMPORT = re.compile(r"^(\s*(?:from|import) )(?:transformers|myTransformers)\b", re.MULTILINE)
_LOGGER = re.compile(r'"myTransformers\b')  # their loggers are ours
_CONFTEST = """
import json, os
import huggingface_hub

huggingface_hub.HfFolder = object  # imported for tests of uploads; version 1 has none

from tests.utils import test_configuration_utils
from transformers import GenerationConfig, PretrainedConfig

# Configurations are those of transformers 5, which refuse a decoder's options of generation.
PretrainedConfig.has_no_defaults_at_init = False
for key in GenerationConfig._get_default_generation_params():
  test_configuration_utils.config_common_kwargs.pop(key, None)


def pytest_collection_modifyitems(items):
  for item in items:
    if getattr(item.cls, "all_model_classes", None):
      kept = [c for c in item.cls.all_model_classes if c.__module__.startswith("bert.")]
      item.cls.all_model_classes, item.cls.all_generative_model_classes = tuple(kept), ()


def pytest_runtest_logreport(report):
  if report.when == "call" or report.outcome != "passed":
    crash = getattr(report.longrepr, "reprcrash", None)
    skipped = report.longrepr[2] if isinstance(report.longrepr, tuple) else ""
    skipped = "unconditional skip" if skipped == "Skipped" else skipped
    why = crash.message if crash else skipped or str(report.longrepr or "")
    with open(os.environ["CONFORMANCE_REPORTS"], "a") as stream:
      stream.write(json.dumps([report.nodeid, report.outcome, why]) + "\\n")
"""
_OUTCOMES = {"passed": PASSED, "failed": FAILED, "skipped": SKIPPED}
# What a test is called, or its error says -> why it is no case for this project.
_NO_CASES = {
  "decoders are not supported": "a decoder",
  "Cannot download https": "needs a network",
  "a class that is not here": "a class of a decoder, or of PyTorch",
  "on the Hugging Face Hub": "needs a network",
  "couldn't connect": "needs a network",
  "check the network": "needs a network",
  "start to fail after": "v4 itself skips it",
  "unconditional skip": "v4 itself skips it",
  "always passes on CPU": "v4 itself skips it",
  "requires PyTorch": "needs PyTorch",
  "onnx": "v4 itself skips it",
  "Onnx": "v4 itself skips it",
}
# A part of such a test that fails, and why.
_KNOWN = {
  "ModelTest.test_config": "configurations are transformers 5's, without v4's defaults of decoders",
  "test_saved_model_creation_extended": "Keras 3 does not read a SavedModel by `load_model`",
  "test_compile_tf_model": "Keras 3 does not write a SavedModel by `save`",
}


def cases(context: Context) -> Iterator[Case]:
  """Each test function."""
  paths = os.environ.get("TRANSFORMERS4_PATH", "")
  if not paths:
    yield Case(
      "all", SKIPPED, "TRANSFORMERS4_PATH does not say where datasets and parameterized are"
    )
    return
  folder = _copied(context)
  files = [folder / "tests" / "models" / each / f"test_modeling_tf_{each}.py" for each in FAMILIES]
  with concurrent.futures.ThreadPoolExecutor(2) as pool:
    yield from itertools.chain.from_iterable(
      pool.map(lambda file: list(read_with(file, lambda path: _run(folder, path, paths))), files)
    )


def _copied(context: Context) -> pathlib.Path:
  """Copies what the tests need, with other import lines and names of models."""
  clone, folder = context.folder("transformers"), context.scratch / "transformers_tests"
  for name in ("tests", "utils/test_module"):
    shutil.copytree(clone / name, folder / name)
  for path in folder.rglob("*.py"):
    text = _IMPORT.sub(r"\1conformance.transformers_redirect", path.read_text(encoding="utf-8"))
    text = _LOGGER.sub('"transformers', text)
    path.write_text(text, encoding="utf-8")
  (folder / "tests" / "test_pipeline_mixin.py").write_text("class PipelineTesterMixin:\n  pass\n")
  (folder / "conftest.py").write_text(_CONFTEST)
  return folder


def _run(folder: pathlib.Path, path: pathlib.Path, paths: str) -> Iterator[Case]:
  environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
  environment["KERAS_BACKEND"] = "tensorflow"
  # This environment's transformers 5 before transformers 4.
  environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), sysconfig.get_path("purelib"), paths])
  reports = folder / f"{path.stem}.jsonl"
  environment["RUN_SLOW"] = "1"
  environment["CONFORMANCE_REPORTS"] = str(reports)
  options = ("-q", "-p", "no:cacheprovider", "--tb=line", "--color=no")
  try:
    done = subprocess.run(
      [sys.executable, "-m", "pytest", *options, str(path.relative_to(folder))],
      cwd=folder,
      env=environment,
      capture_output=True,
      text=True,
      timeout=SECONDS,
    )
  except subprocess.TimeoutExpired:
    raise SuiteError(f"{path.name}: not done after {SECONDS} seconds.") from None
  if not reports.exists():
    raise SuiteError(f"{path.name}: no test ran: {done.stdout[-800:]}")
  yield from results(path.name, reports.read_text("utf-8"))


def results(title: str, reports: str) -> Iterator[Case]:
  """Yields a case for each test; one that has several parts failed if any part did.

  Args:
    title: what was run.
    reports: a line for each part of a test: its name, its outcome, and why.
  """
  found: dict[str, list[tuple[str, str]]] = {}
  for line in reports.splitlines():
    name, outcome, why = json.loads(line)
    name = name.partition("::")[2].replace("::", ".")
    parts = found.setdefault(name, [])
    reason = "" if outcome == "passed" else _reason(_NO_CASES, f"{name} {why}")
    parts.append(("skipped", reason) if reason else (outcome, why))
  for name, parts in found.items():
    outcome = next((o for o in ("failed", "skipped") if o in dict(parts)), "passed")
    why = dict(reversed(parts)).get(outcome, "")
    first_line = why.partition("\n")[0]
    detail = why if outcome == "failed" else ""
    reason = _reason(_KNOWN, name) or first_line[:100] if outcome == "failed" else first_line
    yield Case(f"{title}: {name}", _OUTCOMES[outcome], reason, detail)


def _reason(known: dict[str, str], text: str) -> str:
  return next((reason for words, reason in known.items() if words in text), "")
