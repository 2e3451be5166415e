"""`tf.contrib.lookup`: the ids that TensorFlow 1.15.5 gave, hashed ones too."""

import numpy as np
import pytest

from bert_tf1.contrib import lookup
from bert_tf1.real import tf


def value_of(make):
  with tf.Graph().as_default(), tf.Session() as session:
    tensor = make()
    session.run(tf.tables_initializer())
    return session.run(tensor).tolist()


@pytest.fixture(scope="module")
def vocabulary(tmp_path_factory) -> str:
  path = tmp_path_factory.mktemp("vocabulary") / "words.txt"
  path.write_text("a\nb\nc\n")
  return str(path)


def test_ids_of_the_lines_of_a_file(vocabulary, tmp_path):
  from_file = lookup.index_table_from_file
  words = lambda *w: tf.constant(list(w))  # noqa: E731
  assert value_of(lambda: from_file(vocabulary).lookup(words("b", "z", "a"))) == [1, -1, 0]
  hashed = lambda: from_file(vocabulary, 3).lookup(words("b", "z", "y", "x", "a"))  # noqa: E731
  assert value_of(hashed) == [1, 4, 5, 5, 0]
  first_two = lambda: from_file(vocabulary, vocab_size=2, default_value=9)  # noqa: E731
  assert value_of(lambda: first_two().lookup(words("c", "b"))) == [9, 1]
  columns = tmp_path / "columns.txt"
  columns.write_text("5\ta\n7\tb\n")
  by_column = lambda: from_file(str(columns), key_column_index=1, value_column_index=0)  # noqa: E731
  assert value_of(lambda: by_column().lookup(words("a", "b"))) == [5, 7]
  older = lambda: lookup.string_to_index_table_from_file(vocabulary, 1)  # noqa: E731
  assert value_of(lambda: older().lookup(words("b", "q"))) == [1, 3]


def test_ids_of_a_tensor():
  table = lambda *more: lookup.index_table_from_tensor(tf.constant(["x", "y"]), *more)  # noqa: E731
  assert value_of(lambda: table(1).lookup(tf.constant(["x", "q"]))) == [0, 2]
  strong = lookup.StrongHashSpec((1, 2))
  assert value_of(lambda: table(2, -1, strong).lookup(tf.constant(["x", "q", "r"]))) == [0, 3, 3]
  numbers = lambda: lookup.index_table_from_tensor(np.int64([10, 20]), dtype=tf.int64)  # noqa: E731
  assert value_of(lambda: numbers().lookup(tf.constant([20, 1], tf.int64))) == [1, -1]
  assert value_of(lambda: lookup.string_to_index(tf.constant(["y"]), ["x", "y"])) == [1]
  older = lambda: lookup.string_to_index_table_from_tensor(["x", "y"])  # noqa: E731
  assert value_of(lambda: older().lookup(tf.constant(["y"]))) == [1]


def test_words_of_ids(vocabulary):
  ids = lambda *i: tf.constant(list(i), tf.int64)  # noqa: E731
  from_file = lambda: lookup.index_to_string_table_from_file(vocabulary)  # noqa: E731
  assert value_of(lambda: from_file().lookup(ids(0, 7))) == [b"a", b"UNK"]
  words = ["x", "y"]
  from_tensor = lambda: lookup.index_to_string_table_from_tensor(words, default_value="?")  # noqa: E731
  assert value_of(lambda: from_tensor().lookup(ids(1, 7))) == [b"y", b"?"]
  assert value_of(lambda: lookup.index_to_string(ids(1), words)) == [b"y"]


def test_tables_of_keys_and_values(vocabulary):
  keys = lambda: lookup.KeyValueTensorInitializer(["a", "b"], [1, 2])  # noqa: E731
  table = lambda: lookup.HashTable(keys(), -1, shared_name="shared", name="name")  # noqa: E731
  assert value_of(lambda: table().lookup(tf.constant(["b", "c"]))) == [2, -1]
  assert value_of(lambda: table().size()) == 2
  with tf.Graph().as_default():
    assert table().init.type == "LookupTableImportV2"
  lines = lambda: lookup.TextFileIdTableInitializer(vocabulary)  # noqa: E731
  assert value_of(lambda: lookup.HashTable(lines(), -1).lookup(tf.constant(["b"]))) == [1]

  def changed():
    table = lookup.MutableHashTable(tf.string, tf.int64, -1)
    with tf.control_dependencies([table.insert(tf.constant(["a"]), tf.constant([3], tf.int64))]):
      return table.lookup(tf.constant(["a", "b"]))

  assert value_of(changed) == [3, -1]
