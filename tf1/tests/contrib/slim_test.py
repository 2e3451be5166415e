"""`tf.contrib.slim`: names of other parts, and lists of data files as in TensorFlow 1.15.5."""

import pytest

from bert_tf1.contrib import framework, layers, losses, metrics, slim
from bert_tf1.real import tf


def test_data_files(tmp_path):
  for name in ("a", "b", "c"):
    (tmp_path / f"{name}.tfr").touch()
  a, b, c = (f"{tmp_path}/{name}.tfr" for name in ("a", "b", "c"))
  files = slim.parallel_reader.get_data_files
  assert files(f"{tmp_path}/*.tfr") == files((f"{tmp_path}/?.tfr",)) == [a, b, c]
  assert files([a, f"{tmp_path}/[bc].tfr"]) == [a, b, c]
  assert files(f"{tmp_path}/not_there") == [f"{tmp_path}/not_there"]
  for nothing in (f"{tmp_path}/z*", []):
    with pytest.raises(ValueError, match="No data files found in"):
      files(nothing)


def test_names_of_layers_and_framework():
  assert slim.fully_connected is layers.fully_connected
  assert slim.arg_scope is framework.arg_scope
  assert (slim.losses, slim.metrics) == (losses, metrics)
  with pytest.raises(AttributeError, match=r"tf\.contrib\.slim\.nets is not available"):
    slim.nets  # noqa: B018


def test_sizes_of_variables(graph, capsys):
  tf.get_variable("a", [2, 3])
  tf.get_variable("s/b", [4], "float16", use_resource=True)
  assert slim.model_analyzer.analyze_vars(tf.global_variables()) == (10, 32)
  assert not capsys.readouterr().out
  assert slim.model_analyzer.tensor_description(tf.ones([2, 3])) == "(float32 2x3)"

  slim.model_analyzer.analyze_vars(tf.global_variables(), print_info=True)

  assert capsys.readouterr().out.split("\n") == [
    "---------",
    "Variables: name (type shape) [size]",
    "---------",
    "a:0 (float32_ref 2x3) [6, bytes: 24]",
    "s/b:0 (float16 4) [4, bytes: 8]",
    "Total size of variables: 10",
    "Total bytes of variables: 32",
    "",
  ]


def test_sizes_of_operations(graph, capsys):
  tf.split(tf.placeholder("float32", [2, 3], "x"), 3, 1, name="y")
  tf.placeholder("float32", [None, 3], "q")
  tf.placeholder("float32", None, "z")

  assert slim.model_analyzer.analyze_ops(tf.get_default_graph(), print_info=True) == 13

  assert capsys.readouterr().out.split("\n")[3:-1] == [
    "x \t-> (float32 2x3) [6]",
    "y/split_dim \t-> (int32 ) [1]",
    "y \t-> (float32 2x1), (float32 2x1), (float32 2x1) [6]",
    "q \t-> (float32 ?x3) [0]",
    "z \t->  [0]",
  ]
