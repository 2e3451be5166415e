"""Reading data from others' test files: Python, JavaScript, Rust, snapshots, tables.

Alone: python -m pytest tests/conformance/readers_test.py (a second; needs no clone)
"""

import doctest

import numpy as np
import pytest

from conformance import javascript_data, python_data, report, tensorflow_text
from conformance.cases import Context, SuiteError
from conformance.mteb_figures import _semeval, _sts_benchmark
from conformance.text_embeddings_inference import read_snapshot, read_tests

# ---------------------------------------------------------------------------------------------
# Python.

_PYTHON = """
from somewhere import Helper, kinds
def _utf8(x): return x.encode("utf-8")
_WORDS = [b"one", _utf8(u"zw\\u00f6lf")] + ["three"]
_OPAQUE = compute()

class Numbers(Base):
  @parameterized.parameters([dict(words=_WORDS, kind=kinds.int64), dict(words=[], size=-2)])
  def test_given(self, words, kind=None, size=7): pass
  def test_plain(self): pass

@pytest.mark.parametrize("a, b", [(1, {"x": (2,)}), (Helper(3), np.array([4]))])
def test_rows(a, b): pass
"""


def python_file(tmp_path, text):
  path = tmp_path / "made_up_test.py"
  path.write_text(text, encoding="utf-8")
  return python_data.PythonFile(path)


def test_parameters_of_python_tests_are_read(tmp_path):
  given, plain, rows = python_file(tmp_path, _PYTHON).tests()
  assert given.name == "Numbers.test_given"
  words = [b"one", "zwölf".encode(), "three"]
  assert given.parameters == [{"words": words, "kind": "kinds.int64"}, {"words": [], "size": -2}]
  assert given.defaults == {"kind": None, "size": 7}
  assert (plain.name, plain.parameters) == ("Numbers.test_plain", [])
  assert rows.parameters == [{"a": 1, "b": {"x": [2]}}, {"a": [3], "b": [4]}]


def test_python_is_never_run(tmp_path):
  flag = tmp_path / "was_run"
  file = python_file(tmp_path, f"open({str(flag)!r}, 'w')\nX = open({str(flag)!r}, 'w')\n")
  assert file.names == {}
  assert not flag.exists()


@pytest.mark.parametrize(
  ("text", "message"),
  [
    ("X = 1\n@parameterized.parameters([5])\ndef test_a(): pass\n", r"made_up_test.py:2: param"),
    ("@parameterized.parameters([dict(a=f())])\ndef test_a(): pass\n", r":1: a value was expected"),
    (
      "@parameterized.parameters([dict(a=B)])\ndef test_a(): pass\n",
      r":1: the name B has no value",
    ),
    ("@pytest.mark.parametrize('a, b', [(1,)])\ndef test_a(a, b): pass\n", r":1: 1 values"),
    ("\ndef :\n", r"made_up_test.py:2: not Python"),
  ],
)
def test_other_shapes_of_python_name_file_and_line(tmp_path, text, message):
  with pytest.raises(SuiteError, match=message):
    list(python_file(tmp_path, text).tests())


# ---------------------------------------------------------------------------------------------
# JavaScript.


def test_javascript_objects_are_read():
  text = r"""
    import x from "y";
    export const CONFIG = {  // a comment
      "a/b": { TEXT: WORDS.TWO, list: [1, -2.5, 1e3,], none: undefined, yes: true },
      'it\'s': `t\tn\n\u00e9\u{1F600}\x41`, /* another */
    };
    const halves = ["\uD83D\uDE00"];
    let other = 5;
  """
  found = javascript_data.javascript_constants(text, {"WORDS": {"TWO": "zwei"}})
  assert found == {
    "CONFIG": {
      "a/b": {"TEXT": "zwei", "list": [1, -2.5, 1000.0], "none": None, "yes": True},
      "it's": "t\tn\né😀A",
    },
    "halves": ["😀"],
  }


@pytest.mark.parametrize(
  ("text", "message"),
  [
    ("const A = {\n  a: f(1),\n};", r"x.js:2: the name f has no value"),
    ("const A = [\n1\n2];", r"x.js:3: ',' was expected"),
    ("const A = {\n\n'a", r"x.js:3: a string does not end"),
    ("const A = [;", r"x.js:1: a value was expected"),
    ("const A = {1: 2};", r"x.js:1: a key was expected"),
  ],
)
def test_other_shapes_of_javascript_name_file_and_line(text, message):
  with pytest.raises(SuiteError, match=message):
    javascript_data.javascript_constants(text, path="x.js")


# ---------------------------------------------------------------------------------------------
# Rust tests and snapshots.

_RUST = """
fn test_mine() -> Result<()> {
    let root = download("sentence-transformers/all-MiniLM-L6-v2", None)?;
    let backend = new(ModelType::Embedding(Pool::Cls));
    let input = batch(
        vec![t.encode("A made-up text.", true), t.encode("Say \\"no\\"", true)],
        [0].to_vec(),
        [1].to_vec(),
    );
    let (pooled_embeddings, raw_embeddings) = sort(embed(input)?);
    let first = SnapshotEmbeddings::from(pooled_embeddings);
    insta::assert_yaml_snapshot!("mine", first, &matcher);
    let pieces = SnapshotEmbeddings::from(raw_embeddings);
    insta::assert_yaml_snapshot!("mine_raw", pieces, &matcher);
}

fn test_of_another_model() {
    download("some/other-model", None)?;
}
"""


def test_rust_tests_say_what_a_snapshot_holds(tmp_path):
  path = tmp_path / "test_bert.rs"
  path.write_text(_RUST)
  pooled, raw = read_tests(path)
  assert pooled[:2] == ("mine", "cls")
  assert pooled.texts == raw.texts
  assert len(raw.texts) == 2
  assert (pooled.rows, pooled.is_raw, raw.rows, raw.is_raw) == ([0], False, [1], True)


def test_snapshots_are_lists_of_vectors(tmp_path):
  path = tmp_path / "a.snap"
  path.write_text("---\nsource: x.rs\n---\n- - 1\n  - -2.5e-3\n- - 0.5\n  - 4\n")
  np.testing.assert_array_equal(read_snapshot(path), [[1, -0.0025], [0.5, 4]])


@pytest.mark.parametrize(
  ("text", "message"),
  [
    ("- - 1\n", r"a.snap: a head"),
    ("---\nx\n---\n- - 1\n  - one\n", r"a.snap:5: a number was expected, not 'one'"),
    ("---\nx\n---\n- score: 1\n", r"a.snap:4: a vector's number"),
    ("---\nx\n---\n- - 1\n  - 2\n- - 1\n", r"2 vectors, of \[1, 2\] numbers"),
  ],
)
def test_other_shapes_of_snapshots_name_file_and_line(tmp_path, text, message):
  path = tmp_path / "a.snap"
  path.write_text(text)
  with pytest.raises(SuiteError, match=message):
    read_snapshot(path)


# ---------------------------------------------------------------------------------------------
# Pairs of texts with scores.


def test_pairs_without_a_score_are_left_out_and_bad_ones_are_named(tmp_path):
  folder = tmp_path / "dataset-sts/data/sts/semeval-sts/2016"
  folder.mkdir(parents=True)
  for part in ("answer-answer", "headlines", "plagiarism", "postediting", "question-question"):
    (folder / f"{part}.test.tsv").write_text("\tnot\tjudged\n4.5\tone\tother\n")
  context = Context(tmp_path)
  assert [pair.score for pair in _semeval(context, "2016")] == [4.5] * 5
  (folder / "headlines.test.tsv").write_text("\ta\tb\nhigh\ta\tb\n")
  with pytest.raises(SuiteError, match=r"headlines.test.tsv:2: two texts and a score"):
    _semeval(context, "2016")
  with pytest.raises(SuiteError, match=r"stsb-en-test.csv: not there"):
    _sts_benchmark(context)


@pytest.mark.parametrize("module", [report, tensorflow_text], ids=lambda module: module.__name__)
def test_worked_examples(module):
  failed, tried = doctest.testmod(module)
  assert tried
  assert not failed
