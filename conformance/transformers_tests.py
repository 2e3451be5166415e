"""huggingface/transformers 4: its tests of TensorFlow models and of tokenizers, imports redirected.

The tests are copied, `transformers` in their import lines becomes that of
`transformers_redirect.py`, and pytest runs them. They need more than this project: transformers
4.57 itself (for decorators and such), `datasets` and `parameterized`; name the folders in which
they are installed as TRANSFORMERS4_PATH. Without them everything is skipped.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator

from conformance.cases import FAILED, PASSED, SKIPPED, Case, Context, SuiteError, read_with

FOLDERS = ("transformers",)
ROOT = pathlib.Path(__file__).resolve().parent.parent
FAMILIES = ("bert", "roberta", "distilbert", "albert", "electra")
_IMPORT = re.compile(r"^(\s*(?:from|import) )(?:transformers|myTransformers)\b", re.MULTILINE)
_RESULT = re.compile(r"^(PASSED|FAILED|SKIPPED|SUBFAIL\S*) (?:\[\d+\] )?(\S+)(?:: (.*)| - (.*))?$")
_ERROR = re.compile(r"^E +(.*)$")
_CONFTEST = """
def pytest_collection_modifyitems(items):
  for item in items:
    if getattr(item.cls, "all_model_classes", None):
      kept = [c for c in item.cls.all_model_classes if c.__module__.startswith("bert.")]
      item.cls.all_model_classes, item.cls.all_generative_model_classes = tuple(kept), ()
"""
# What an error says -> why the test is no case for this project.
_NO_CASES = {
  "decoders are not here": "a decoder",
  "a class that is not here": "a class of a decoder, or of PyTorch",
  "on the Hugging Face Hub": "needs a network",
  "couldn't connect": "needs a network",
}


def cases(context: Context) -> Iterator[Case]:
  """Each test function."""
  paths = os.environ.get("TRANSFORMERS4_PATH", "")
  if not paths:
    yield Case("all", SKIPPED, "TRANSFORMERS4_PATH does not say where transformers 4 is")
    return
  folder = _copied(context)
  for family in FAMILIES:
    for file in sorted((folder / "tests" / "models" / family).glob("test_*.py")):
      if file.stem in (f"test_modeling_tf_{family}", f"test_tokenization_{family}"):
        yield from read_with(file, lambda path: _run(folder, path, paths))


def _copied(context: Context) -> pathlib.Path:
  """Copies what the tests need, with other import lines."""
  clone, folder = context.folder("transformers"), context.scratch / "transformers_tests"
  for name in ("tests", "utils/test_module"):
    shutil.copytree(clone / name, folder / name)
  for path in folder.rglob("*.py"):
    text = path.read_text(encoding="utf-8")
    path.write_text(_IMPORT.sub(r"\1conformance.transformers_redirect", text), encoding="utf-8")
  (folder / "tests" / "test_pipeline_mixin.py").write_text("class PipelineTesterMixin:\n  pass\n")
  (folder / "conftest.py").write_text(_CONFTEST)
  return folder


def _run(folder: pathlib.Path, path: pathlib.Path, paths: str) -> Iterator[Case]:
  environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
  environment["KERAS_BACKEND"] = "tensorflow"
  environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), paths])
  options = ("-q", "-p", "no:cacheprovider", "--tb=line", "-rA", "--color=no")
  done = subprocess.run(
    [sys.executable, "-m", "pytest", *options, str(path.relative_to(folder))],
    cwd=folder,
    env=environment,
    capture_output=True,
    text=True,
    timeout=3600,
  )
  yield from results(path.name, done.stdout)


def results(title: str, output: str) -> Iterator[Case]:
  """The cases of a run of pytest with `-rA`.

  Args:
    title: what was run.
    output: of pytest.

  Raises:
    SuiteError: no test ran.
  """
  found = [match for match in map(_RESULT.match, output.splitlines()) if match]
  if not found:
    raise SuiteError(f"{title}: no test ran: {output[-800:]}")
  for match in found:
    word, name = match[1], match[2].rpartition("::")[2]
    why = match[3] or match[4] or ""
    no_case = next((reason for words, reason in _NO_CASES.items() if words in why), "")
    if word == "PASSED":
      yield Case(f"{title}: {name}", PASSED)
    elif word == "SKIPPED" or no_case:
      yield Case(f"{title}: {name}", SKIPPED, no_case or _in_short(why))
    else:
      yield Case(f"{title}: {name}", FAILED, _in_short(why), why)


def _in_short(why: str) -> str:
  return why[:100]
