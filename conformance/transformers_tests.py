"""huggingface/transformers 4: its tests of TensorFlow models and of tokenizers, imports redirected.

The tests are copied, `transformers` in their import lines becomes that of
`transformers_redirect.py`, released tokenizers become folders of `_vocabularies`, and pytest runs
them. They need more than this project: transformers 4.57 itself (for decorators and such),
`datasets` and `parameterized`; name the folders in which they are installed as TRANSFORMERS4_PATH.
Without them everything is skipped; so is, without `--weights`, what needs the uncased vocabulary.
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
from collections.abc import Iterator

from conformance.cases import FAILED, PASSED, SKIPPED, Case, Context, SuiteError, read_with

FOLDERS = ("transformers",)
ROOT = pathlib.Path(__file__).resolve().parent.parent
FAMILIES = ("bert", "roberta", "distilbert", "albert", "electra")
SECONDS = 3600  # of a file, at most
_IMPORT = re.compile(r"^(\s*(?:from|import) )(?:transformers|myTransformers)\b", re.MULTILINE)
_LOGGER = re.compile(r'"myTransformers\b')  # their loggers are ours
# Released names in the tests of tokenizers -> class.
_RELEASED = {
  '"google-bert/bert-base-uncased"': "BertTokenizer",
  '"distilbert/distilbert-base-uncased"': "DistilBertTokenizer",
  '"google/electra-small-generator"': "ElectraTokenizer",
  '"FacebookAI/roberta-base"': "RobertaTokenizer",
  '"albert/albert-base-v1"': "AlbertTokenizer",
}
_CONFTEST = """
import json, os


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
  "decoders are not here": "a decoder",
  "a class that is not here": "a class of a decoder, or of PyTorch",
  "chat_template": "chat templates, which are for decoders",
  "continue_final_message": "chat templates, which are for decoders",
  "test_jinja": "chat templates, which are for decoders",
  "on the Hugging Face Hub": "needs a network",
  "couldn't connect": "needs a network",
  "check the network": "needs a network",
  "RobertaTokenizationTest.test_embeded_special_tokens": "needs the released vocabulary",
  # With the model among the tests' files, v4's own slow and fast classes differ in it, too.
  "AlbertTokenizationTest.test_tokenization_python_rust_equals": "needs the released vocabulary",
  "start to fail after": "v4 itself skips it",
  "unconditional skip": "v4 itself skips it",
  "always passes on CPU": "v4 itself skips it",
  "requires PyTorch": "needs PyTorch",
  "test_sentencepiece": "of sentencepiece models, and this family has none",
  "onnx": "v4 itself skips it",
  "Onnx": "v4 itself skips it",
}
# A part of such a test that fails, and why.
_KNOWN = {
  "test_maximum_encoding_length_": "the words of a warning",
  "test_tokenizer_mismatch_warning": "the words of a warning",
  "test_saved_model_creation_extended": "Keras 3 does not read a SavedModel by `load_model`",
  "test_compile_tf_model": "Keras 3 does not write a SavedModel by `save`",
  "test_padding_warning_message": "a warning that `pad` is slow, which it is not here",
}


def cases(context: Context) -> Iterator[Case]:
  """Each test function."""
  paths = os.environ.get("TRANSFORMERS4_PATH", "")
  if not paths:
    yield Case("all", SKIPPED, "TRANSFORMERS4_PATH does not say where transformers 4 is")
    return
  folder = _copied(context)
  files = [
    folder / "tests" / "models" / family / f"{kind}_{family}.py"
    for family in FAMILIES
    for kind in ("test_modeling_tf", "test_tokenization")
  ]
  with concurrent.futures.ThreadPoolExecutor(2) as pool:
    yield from itertools.chain.from_iterable(
      pool.map(lambda file: list(read_with(file, lambda path: _run(folder, path, paths))), files)
    )


def _copied(context: Context) -> pathlib.Path:
  """Copies what the tests need, with other import lines and names of models."""
  clone, folder = context.folder("transformers"), context.scratch / "transformers_tests"
  for name in ("tests", "utils/test_module"):
    shutil.copytree(clone / name, folder / name)
  released = _vocabularies(context, folder)
  for path in folder.rglob("*.py"):
    text = _IMPORT.sub(r"\1conformance.transformers_redirect", path.read_text(encoding="utf-8"))
    text = _LOGGER.sub('"transformers', text)
    for name, its_class in _RELEASED.items():
      if its_class in released and path.name.startswith("test_tokenization_"):
        text = text.replace(name, json.dumps(str(released[its_class])))
    path.write_text(text, encoding="utf-8")
  (folder / "tests" / "test_pipeline_mixin.py").write_text("class PipelineTesterMixin:\n  pass\n")
  (folder / "conftest.py").write_text(_CONFTEST)
  return folder


def _vocabularies(context: Context, folder: pathlib.Path) -> dict[str, pathlib.Path]:
  """Makes folders that stand for released tokenizers: class -> folder.

  The uncased vocabulary is that of the weights, ALBERT's is among the tests' own files. Byte pairs
  are learned from their sample text, because RoBERTa's are in no clone.
  """
  fixtures = folder / "tests" / "fixtures"
  of_pieces = {"AlbertTokenizer", "RobertaTokenizer"}
  made = {}
  for name in _RELEASED.values():
    if name not in of_pieces and context.vocab is None:
      continue
    made[name] = folder / "vocabularies" / name
    made[name].mkdir(parents=True)
    (made[name] / "tokenizer_config.json").write_text(json.dumps({"tokenizer_class": name}))
    if name not in of_pieces:
      shutil.copy(context.vocab, made[name] / "vocab.txt")
  shutil.copy(fixtures / "spiece.model", made["AlbertTokenizer"])
  import tokenizers

  learned = tokenizers.ByteLevelBPETokenizer()
  special = ["<s>", "<pad>", "</s>", "<unk>", "<mask>"]
  texts = [(fixtures / "sample_text.txt").read_text("utf-8"), *(["hello hello"] * 9)]
  learned.train_from_iterator(texts, vocab_size=5000, special_tokens=special)
  learned.save_model(str(made["RobertaTokenizer"]))
  return made


def _run(folder: pathlib.Path, path: pathlib.Path, paths: str) -> Iterator[Case]:
  environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1", "TF_CPP_MIN_LOG_LEVEL": "3"}
  environment["KERAS_BACKEND"] = "tensorflow"
  environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), paths])
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
