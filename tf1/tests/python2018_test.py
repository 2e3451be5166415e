"""Names of old Python and NumPy: python -m pytest tf1/tests/python2018_test.py

The expected values were printed by Python 3.7.16 with NumPy 1.18.5 and scikit-learn 0.22.2.
"""

import base64
import builtins
import collections
import configparser
import fractions
import html.parser
import importlib
import inspect
import json
import random
import sys
import threading
import time
import warnings

import numpy as np
import pytest

from bert_tf1 import python2018


@pytest.fixture(autouse=True)
def supplied():
  """What is supplied here; NumPy prints again as before."""
  before = np.get_printoptions()
  yield python2018.supply()
  np.set_printoptions(**before)


def test_numpy_has_its_old_names(supplied):
  assert (np.int, np.float, np.object, np.str, np.unicode) == (int, float, object, str, str)
  assert np.float_ is np.float64
  assert np.NaN != np.NaN
  assert np.Inf == np.infty == float("inf")
  assert np.asscalar(np.array([3])) == 3
  assert np.in1d([1, 2], [2]).tolist() == [False, True]
  assert np.asfarray([1]).dtype == np.float64
  assert np.product([2, 3]) == 6
  assert "numpy.int" in supplied


def test_names_that_are_there_keep_their_meaning(supplied):
  assert np.bool is (bool if "numpy.bool" in supplied else np.bool_)


def test_numbers_are_written_as_numpy_1_wrote_them():
  values = [np.float32(0.5), np.int64(3), np.bool_(True), {"a": np.float64(1 / 3)}]
  assert str(values) == "[0.5, 3, True, {'a': 0.3333333333333333}]"
  assert repr(np.zeros((2, 3), np.float32)) == (
    "array([[0., 0., 0.],\n       [0., 0., 0.]], dtype=float32)"
  )
  assert repr(np.zeros(2000)) == "array([0., 0., 0., ..., 0., 0., 0.])"


def test_rows_of_different_lengths_make_an_array_of_lists(tmp_path):
  file = str(tmp_path / "rows.npy")
  np.save(file, [[1], [1, 2]])
  saved = np.load(file, allow_pickle=True)
  for rows in (np.array([[1], [1, 2]]), np.asarray([[1], [1, 2]]), saved):
    assert repr(rows) == "array([list([1]), list([1, 2])], dtype=object)"
  with pytest.raises(ValueError, match="inhomogeneous"):
    np.array([[1], [1, 2]], dtype=np.int32)
  with pytest.raises(ValueError, match="inhomogeneous"):
    np.array([[1], [1, 2]], np.int32)


def test_copy_false_copies_where_it_must():
  assert np.array([1, 2], copy=False).tolist() == [1, 2]
  there = np.zeros(3)
  assert np.array(there, copy=False) is there


def test_a_generator_has_a_sum():
  assert np.sum(x for x in (1, 2)) == 3
  assert np.sum([[1, 2], [3, 4]], axis=0).tolist() == [4, 6]


def test_random_draws_as_python_3_7_did():
  assert random.Random(3).sample(set(range(10)), 4) == [3, 8, 2, 7]
  random.seed(4)
  values = list(range(8))
  random.shuffle(values)
  assert values == [1, 6, 5, 4, 7, 0, 2, 3]
  random.shuffle(values, random.Random(5).random)
  assert values == [6, 1, 4, 5, 2, 3, 0, 7]
  assert random.sample(range(9), 3) == [1, 0, 3]


def test_python_has_its_old_names():
  assert collections.Iterable is collections.abc.Iterable
  assert fractions.gcd(4, 6) == 2
  assert base64.encodestring(b"x") == b"eA==\n"
  assert threading.Thread().isAlive() is False
  assert html.parser.HTMLParser().unescape("&lt;") == "<"
  assert time.clock() <= time.clock()
  assert json.loads('{"a": 1}', encoding="utf-8") == {"a": 1}
  spec = inspect.getargspec(lambda a, b=1, *c, **d: 0)
  assert spec == (["a", "b"], "c", "d", (1,))
  assert repr(spec) == "ArgSpec(args=['a', 'b'], varargs='c', keywords='d', defaults=(1,))"


def test_python_has_its_old_modules(tmp_path):
  imp, pipes, element_tree = map(
    importlib.import_module, ("imp", "pipes", "xml.etree.cElementTree")
  )
  assert element_tree.fromstring("<a><b/></a>").find("b").tag == "b"
  assert pipes.quote("a b") == "'a b'"
  (tmp_path / "part.py").write_text("X = 3\n")
  assert imp.load_source("part_of_a_test", str(tmp_path / "part.py")).X == 3
  assert sys.modules.pop("part_of_a_test").X == 3
  parser = configparser.SafeConfigParser()
  parser.readfp(["[a]", "b = 1"])
  assert parser.getint("a", "b") == 1


def test_scikit_learn_pairs_as_it_did():
  pairs = importlib.import_module("sklearn.utils.linear_assignment_").linear_assignment
  assert pairs([[4.0, 1, 3], [2, 0, 5]]).tolist() == [[0, 1], [1, 0]]
  assert pairs(-np.array([[4.0, 1], [2, 0], [3, 9]])).tolist() == [[0, 0], [2, 1]]


def test_an_escape_of_old_draws_no_warning():
  with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("default", SyntaxWarning)
    python2018.supply()
    assert eval(compile(r"'\W'", "a_script.py", "eval")) == r"\W"
  assert not [warning for warning in seen if warning.category is SyntaxWarning]


def test_python_has_the_names_of_2_7():
  assert builtins.unicode is str
  assert isinstance("x", builtins.basestring)
  assert list(builtins.xrange(2)) == [0, 1]
  sys.setdefaultencoding("utf-8")


def test_a_second_call_changes_nothing(supplied):
  array = np.array
  assert python2018.supply() == supplied
  assert np.array is array


def test_libraries_keep_their_errors():
  """Where a library asks for an array of rows of different lengths, it may rely on the error."""
  with pytest.raises(ValueError, match="inhomogeneous"):
    np.ma.array([[1], [1, 2]])
