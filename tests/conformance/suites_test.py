"""Outcomes of cases, the runner and its report, on miniature suites made up here.

Alone: python -m pytest tests/conformance/suites_test.py (a second; needs no clone)
"""

import json
import sys
import types

import numpy as np
import pytest

from bert import tokenization
from conformance import __main__ as runner
from conformance import (
  bert_unit_tests,
  evaluate_metrics,
  report,
  seqeval_cases,
  transformers_examples,
  transformers_js,
  transformers_tests,
)
from conformance import text_embeddings_inference as vectors
from conformance.cases import (
  FAILED,
  LISTED,
  PASSED,
  SKIPPED,
  Case,
  Context,
  SuiteError,
  compare,
  read_with,
)


def outcomes(cases) -> list[str]:
  return [case.outcome for case in cases]


# ---------------------------------------------------------------------------------------------
# Outcomes.


@pytest.mark.parametrize(
  ("theirs", "ours", "original", "outcome"),
  [
    (1, 1, 1, PASSED),
    (1, 1, None, PASSED),
    (1, 2, 2, LISTED),
    (1, 2, None, FAILED),
    (1, 2, 1, FAILED),
    (1, 1, 2, FAILED),  # also if the suite agrees with us: the original is what we promise
    (1, 2, 3, FAILED),
  ],
)
def test_the_original_is_the_judge(theirs, ours, original, outcome):
  assert compare("a", theirs, ours, original).outcome == outcome


def test_a_file_of_another_shape_is_failed_and_never_passed(tmp_path):
  path = tmp_path / "a.txt"
  path.touch()

  def read(path):
    yield Case("first", PASSED)
    raise KeyError("gone")

  for reader in (read, lambda path: iter(())):
    case = list(read_with(path, reader))[-1]
    assert case.outcome == FAILED
    assert str(path) in case.detail
  assert "not there" in next(iter(read_with(tmp_path / "b.py", seqeval_cases._file_cases))).detail


# ---------------------------------------------------------------------------------------------
# Suites.


@pytest.fixture
def context(tmp_path):
  suites, scratch = tmp_path / "suites", tmp_path / "scratch"
  suites.mkdir()
  scratch.mkdir()
  return Context(suites, scratch=scratch)


def test_tokens_of_a_model_without_its_vocabulary(context):
  folder = context.suites / "transformers.js" / transformers_js._TESTS
  (folder / "bert").mkdir(parents=True)
  (folder / "distilbert").mkdir()
  (folder / "test_strings.js").write_text('export const T = { A: "Ein Übermut!" };')
  (folder / "bert" / "test_tokenization_bert.js").write_text(
    """export const TEST_CONFIG = {
      "Xenova/bge-base-zh-v1.5": {
        RIGHT: { text: T.A, tokens: ["ein", "uber", "##mut", "!"], ids: [1, 2, 3, 4, 5, 6] },
        WRONG: { text: T.A, tokens: ["ein", "!"], ids: [1, 2, 6] },
      },
      "Xenova/kobert": { ANY: { text: "a", tokens: ["a"], ids: [1] } },
      "Xenova/bert-base-uncased": { ANY: { text: "a", tokens: ["a"], ids: [1] } },
    };"""
  )
  (folder / "distilbert" / "test_tokenization_distilbert.js").write_text("const OTHER = {};")
  cases = list(transformers_js.cases(context))
  assert outcomes(cases) == [PASSED, FAILED, SKIPPED, SKIPPED, FAILED]
  assert "WEIGHTS" in cases[3].reason
  assert "TEST_CONFIG was expected" in cases[4].detail


def test_strict_entities_are_listed_where_the_default_mode_agrees_with_ours(monkeypatch):
  default = types.SimpleNamespace(get_entities=lambda labels: [("X", 0, 0)])
  monkeypatch.setitem(sys.modules, "seqeval.metrics.sequence_labeling", default)
  case = seqeval_cases._strict_entities("a", {"tokens": ["B-X"], "expected": [("X", 0, 1)]}, "bio")
  assert case.outcome == PASSED
  case = seqeval_cases._strict_entities("a", {"tokens": ["I-X"], "expected": []}, "bio")
  assert case.outcome == LISTED
  case = seqeval_cases._strict_entities("a", {"tokens": ["B-Y"], "expected": []}, "bio")
  assert case.outcome == FAILED


def test_examples_of_metrics_are_read_not_run(tmp_path, monkeypatch):
  shares = {(1, 1, 0): 0.8, (1, 1, 1): 1.0}  # no library is imported for two numbers
  score = lambda labels, predictions, average: shares[tuple(predictions[1:].tolist())]  # noqa: E731
  monkeypatch.setattr(evaluate_metrics.metrics, "f1", score)
  path = tmp_path / "f1.py"
  path.write_text(
    '''_TEXT = """
    >>> metric = evaluate.load("f1")
    >>> refs = [0, 1, 1, 1]
    >>> results = metric.compute(references=refs, predictions=[0, 1, 1, 0])
    >>> print(results)
    {'f1': 0.8}
    >>> print(round(results["f1"], 1))
    0.7
    >>> results = metric.compute(references=refs, predictions=refs, sample_weight=[1, 2, 1, 1])
    >>> print(results["f1"])
    1.0
    """
'''
  )
  cases = list(evaluate_metrics._file_cases(path))
  assert outcomes(cases) == [PASSED, FAILED, SKIPPED]
  assert "weights" in cases[2].reason


def test_exact_vectors_judge_between_snapshot_and_ours():
  exact = np.array([[1.0, 2.0]])
  failed = Case("a", FAILED, "differs")
  assert vectors._judged(failed, exact + 1e-3, exact + 1e-6, exact).outcome == LISTED
  assert vectors._judged(failed, exact + 1e-6, exact + 1e-3, exact).outcome == FAILED
  assert vectors._compared("a", exact, exact + 1e-6, 2e-5).outcome == PASSED
  assert vectors._compared("a", exact, exact[:, :1], 2e-5).outcome == FAILED
  assert vectors._compared("a", exact, exact * np.nan, 2e-5).outcome == FAILED


def test_lines_of_absltest_become_cases():
  lines = "[       OK ] A.test_a\n[  SKIPPED ] A.test_b - Later.\n"
  cases = list(bert_unit_tests.results("t", lines, 0))
  assert outcomes(cases) == [PASSED, SKIPPED]
  assert "Later" not in cases[1].reason  # words of a suite stay out of reports
  failed = bert_unit_tests.results("t", lines + "[  FAILED  ] A.test_c\n", 1)
  assert outcomes(failed) == [PASSED, SKIPPED, FAILED]
  for output, returncode in (("ImportError", 1), (lines, 1)):
    with pytest.raises(SuiteError, match="the run ended with 1"):
      list(bert_unit_tests.results("t", output, returncode))


# ---------------------------------------------------------------------------------------------
# The runner.


def test_parts_of_a_test_of_transformers_are_one_case():
  lines = [
    ["tests/a.py::A::test_two", "failed", "AssertionError: 1 != 2\nlong"],
    ["tests/a.py::A::test_two", "passed", ""],
    ["tests/a.py::A::test_network", "failed", "OSError: no connection; check the network."],
    ["tests/a.py::A::test_network", "passed", ""],
    ["tests/a.py::A::test_tokenizer_mismatch_warning", "failed", "AssertionError"],
    ["tests/a.py::A::test_chat_template", "passed", ""],
  ]
  cases = list(transformers_tests.results("a.py", "\n".join(map(json.dumps, lines))))
  assert [(case.name, case.outcome, case.reason) for case in cases] == [
    ("a.py: A.test_two", FAILED, "AssertionError: 1 != 2"),
    ("a.py: A.test_network", SKIPPED, "needs a network"),
    ("a.py: A.test_tokenizer_mismatch_warning", FAILED, "the words of a warning"),
    ("a.py: A.test_chat_template", PASSED, ""),
  ]


def test_without_a_folder_it_says_what_to_clone(capsys):
  assert runner.main([]) == 0
  printed = capsys.readouterr().out
  for repository, commit in runner.CLONES.values():
    assert f"https://github.com/{repository} " in printed
    assert commit[:12] in printed


@pytest.mark.parametrize(
  ("flags", "message"),
  [
    (["--suites=nowhere"], "--suites=nowhere is no folder"),
    (["--suites=.", "--only=seqevil"], "no seqevil among"),
    (["--suites=.", "--weights=."], "has no bert_config.json and no vocab.txt"),
  ],
)
def test_bad_flags_are_one_line(flags, message, tmp_path, monkeypatch, capsys):
  monkeypatch.chdir(tmp_path)
  with pytest.raises(SystemExit) as stop:
    runner.main(flags)
  assert stop.value.code == 2
  assert message in capsys.readouterr().err


def test_what_is_not_cloned_is_skipped(tmp_path, capsys):
  assert runner.main([f"--suites={tmp_path}"]) == 0
  printed = capsys.readouterr().out
  assert "not cloned: stsb-multi-mt, dataset-sts" in printed
  assert printed.splitlines()[-1].split() == ["all", "0", "0", "0", str(len(runner.SUITES))]


def test_failures_set_the_exit_status_and_nothing_of_a_suite_gets_into_the_document(
  tmp_path, monkeypatch, capsys
):
  def cases(context):
    yield Case("good", PASSED, "ours 0.5", difference=1e-6)
    yield Case("a_test: b[3]", LISTED, "as in 2018", "a secret text")
    yield Case("c", SKIPPED, "no such option")
    raise RuntimeError("it\nbroke")

  module = types.SimpleNamespace(FOLDERS=(), cases=cases)
  monkeypatch.setattr(runner.importlib, "import_module", lambda name: module)
  page, output = tmp_path / "page.md", tmp_path / "all.json"
  page.write_text(f"By hand.\n{report.BEGIN}\nold\n{report.END}\nBelow.\n")
  flags = [f"--suites={tmp_path}", "--only=mteb_figures", f"--document={page}"]
  assert runner.main([*flags, f"--output={output}"]) == 1
  printed = capsys.readouterr().out
  assert "failed: the rest: the suite stopped. RuntimeError: it broke" in printed
  assert "a secret text" in printed
  text = page.read_text()
  assert text.startswith("By hand.\n")
  assert text.endswith("\nBelow.\n")
  assert "| 1 | 1 | 1 | 1 |" in text
  assert "as in 2018: `a_test: b`" in text
  assert "| good | ours 0.5 | 1.0e-06 |" in text
  assert "secret" not in text
  assert "old" not in text
  [suite] = json.loads(output.read_text())["suites"]
  assert [case["outcome"] for case in suite["cases"]] == [PASSED, LISTED, SKIPPED, FAILED]
  # Another suite's run keeps these results.
  module.cases = lambda context: iter([Case("x", PASSED)])
  flags = [f"--suites={tmp_path}", "--only=seqeval_cases", f"--output={output}"]
  assert runner.main(flags) == 1
  assert capsys.readouterr().out.splitlines()[-1].split() == ["all", "2", "1", "1", "1"]
  output.write_text("{}")
  with pytest.raises(SystemExit, match="holds no results"):
    runner.main(flags)


def test_every_suite_names_clones_that_are_listed():
  for name in runner.SUITES:
    folders = runner.importlib.import_module(f"conformance.{name}").FOLDERS
    assert set(folders) <= set(runner.CLONES)


def test_a_suite_with_marks_of_its_own_is_shown_by_file():
  begin = "<!-- Results of s: written by make conformance -->"
  page = f"{report.BEGIN}\nold\n{report.END}\n{begin}\nold\n{report.END}\n"
  cases = [Case("a.py: b", PASSED), Case("c.py: d", FAILED, "why"), Case("c.py: e", SKIPPED, "no")]
  text = report.document(page, [report.Result("s", "suite", cases, 60.0)], [])
  assert text.startswith(f"{report.BEGIN}\nold\n{report.END}\n{begin}\nRun of ")
  assert "| a.py | 1 | 0 | 0 |\n| c.py | 0 | 1 | 1 |\n| all | 1 | 1 | 1 |" in text
  assert "50.0% of what was not skipped passed." in text
  assert "| suite | 1 | why: `c.py: d` |" in text


def test_a_document_without_the_marks_is_not_touched():
  with pytest.raises(ValueError, match="lacks the line"):
    report.document("# Mine\n", [], [])


def test_our_tokenizer_is_used_as_it_is(context):
  from conformance.tokenizers_beside import full_tokenizer, step_by_step, with_special_pieces

  pieces = with_special_pieces(["ein", "##s"])
  assert full_tokenizer(context, pieces, True).tokenize("Eins") == ["ein", "##s"]
  assert step_by_step(tokenization, pieces, True)("Eins!") == ["ein", "##s", "[UNK]"]


# ---------------------------------------------------------------------------------------------
# transformers' example scripts.


def test_the_import_lines_of_a_script_are_changed():
  script = "import transformers\nfrom transformers.utils import x\ntransformers.utils.y()\n"
  keras = "try:\n    import tf_keras as keras\n"
  assert transformers_examples.with_imports(script + keras, "bert.transformers") == (
    "import bert.transformers as transformers\nfrom bert.transformers.utils import x\n"
    "transformers.utils.y()\ntry:\n    import keras\n"
  )
  renamed = (script + keras).replace("transformers", "myTransformers")
  assert transformers_examples.with_imports(renamed, "transformers") == (
    "import transformers as myTransformers\nfrom transformers.utils import x\n"
    "myTransformers.utils.y()\n" + keras
  )


@pytest.mark.parametrize(
  ("ours", "expected"),
  [
    ({"a.json": '{"f1": 0.50001, "best": ["x"]}', "b.txt": "1"}, [PASSED, PASSED]),
    ({"a.json": '{"f1": 0.6, "best": ["x"]}', "b.txt": "2"}, [FAILED, FAILED]),
    ({"a.json": '{"f1": 0.5, "best": ["y"]}'}, [FAILED, FAILED]),
  ],
)
def test_what_scripts_write_is_compared(tmp_path, ours, expected):
  written = {"theirs": {"a.json": '{"f1": 0.5, "best": ["x"]}', "b.txt": "1"}, "ours": ours}
  for who, files in written.items():
    (tmp_path / who / "result").mkdir(parents=True)
    for name, text in files.items():
      (tmp_path / who / "result" / name).write_text(text)
  assert outcomes(transformers_examples.compared("script", 1e-3, tmp_path)) == expected
