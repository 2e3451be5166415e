"""`tf.contrib.slim`: names of other parts, and lists of data files as in TensorFlow 1.15.5."""

import pytest

from bert.tf1.contrib import framework, layers, slim


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
  with pytest.raises(AttributeError, match=r"tf\.contrib\.slim\.nets is not available"):
    slim.nets  # noqa: B018
