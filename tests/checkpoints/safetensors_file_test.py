"""The safetensors format: what another program wrote, what we write, and files that are broken."""

import json
import os
import struct

import ml_dtypes
import numpy as np
import pytest

from bert.checkpoints import safetensors_file
from bert.checkpoints.bundle_files import CheckpointError
from bert.checkpoints.safetensors_file import open_weights, write

# Written by the package `safetensors` 0.8.0.
FOREIGN = (
  b"\x90\0\0\0\0\0\0\0"
  b'{"__metadata__":{"format":"pt"},"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},'
  b'"b":{"dtype":"BF16","shape":[2,2],"data_offsets":[8,16]}}  '
  b"\0\0\0?\0\0\0@\xc0?\0\xc0\0\0@@"
)
ENTRY = {"dtype": "F32", "shape": [2], "data_offsets": [0, 8]}


def file_with(path, header, values=b"\0" * 8):
  """Writes a file whose header is an object, or bytes."""
  encoded = header if isinstance(header, bytes) else json.dumps(header).encode()
  path.write_bytes(struct.pack("<Q", len(encoded)) + encoded + values)
  return path


def error_of(path):
  with pytest.raises(CheckpointError) as caught:
    open_weights(path)
  assert str(path) in str(caught.value)
  return str(caught.value)


# ---------------------------------------------------------------------------------------------
# Whole files.


def test_a_file_of_another_program(tmp_path):
  (tmp_path / "a.safetensors").write_bytes(FOREIGN)
  file = open_weights(tmp_path / "a.safetensors")
  assert list(file.tensors) == ["a", "b"]
  assert file.read("a").tolist() == [0.5, 2.0]
  assert file.read("b").dtype == ml_dtypes.bfloat16
  assert file.read("b").tolist() == [[1.5, -2.0], [0.0, 3.0]]


def test_we_write_what_the_other_program_writes(tmp_path):
  tensors = {
    "b": np.array([[1.5, -2.0], [0.0, 3.0]], ml_dtypes.bfloat16),
    "a": np.array([0.5, 2.0], np.float32),
  }
  write(tmp_path / "a.safetensors", tensors, {"format": "pt"})
  assert (tmp_path / "a.safetensors").read_bytes() == FOREIGN
  assert os.listdir(tmp_path) == ["a.safetensors"]


@pytest.mark.parametrize("dtype", [*safetensors_file._DTYPES.values(), ml_dtypes.bfloat16])
@pytest.mark.parametrize("shape", [(), (0, 3)])
def test_there_and_back(tmp_path, dtype, shape):
  values = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
  tensors = {"x": values, "y/ä": np.asfortranarray(values), "z": np.zeros(7, np.uint8)}
  write(tmp_path / "a.safetensors", tensors)
  file = open_weights(tmp_path / "a.safetensors")
  assert set(file.tensors) == set(tensors)
  for name, expected in tensors.items():
    found = file.read(name)
    assert (found.dtype, found.shape) == (expected.dtype, expected.shape)
    assert found.tobytes() == expected.tobytes()


def test_big_endian_arrays_are_turned(tmp_path):
  write(tmp_path / "a.safetensors", {"x": np.array([1.0, 2.0], ">f4")})
  assert open_weights(tmp_path / "a.safetensors").read("x").tolist() == [1.0, 2.0]


def test_what_cannot_be_written_leaves_no_file(tmp_path):
  with pytest.raises(CheckpointError, match=r"a\.safetensors cannot be written: .*complex128"):
    write(tmp_path / "a.safetensors", {"x": np.zeros(2, np.complex128)})
  assert os.listdir(tmp_path) == []


# ---------------------------------------------------------------------------------------------
# Broken ones.


def test_cut_off_anywhere(tmp_path):
  path = tmp_path / "a.safetensors"
  for length in range(len(FOREIGN)):
    path.write_bytes(FOREIGN[:length])
    assert "is not a whole safetensors file" in error_of(path)
  path.write_bytes(FOREIGN + b"\0")
  assert "file not fully covered" in error_of(path)


# What the library refuses is its own; these are what it lets pass, and one of each of its errors.
@pytest.mark.parametrize(
  ("header", "message"),
  [
    ({"a": {**ENTRY, "dtype": "F64"}}, "is not a whole safetensors file"),
    ({"a": {**ENTRY, "data_offsets": [4, 12]}}, "invalid offset"),
    ({"a\nb\n": {**ENTRY, "data_offsets": [4, 12]}}, "`a b `"),
    (json.dumps({"a": ENTRY, "b": ENTRY}).replace('"b"', '"a"').encode(), "its JSON has 'a' twice"),
    ({"a": {**ENTRY, "dtype": "C64", "shape": [1]}}, "'a' is of type C64; known: BOOL, "),
    ({"a": ENTRY, "b": {**ENTRY, "shape": [0, 2**62], "data_offsets": [8, 8]}}, "than any array"),
    ({"a": {**ENTRY, "shape": [2] + [1] * 100}}, "than any array"),
  ],
)
def test_headers_that_make_no_sense(tmp_path, header, message):
  assert message in error_of(file_with(tmp_path / "a.safetensors", header))
  assert "\n" not in error_of(tmp_path / "a.safetensors")


def test_a_file_that_shrinks_between_opening_and_reading(tmp_path):
  path = file_with(tmp_path / "a.safetensors", {"a": ENTRY})
  file = open_weights(path)
  path.write_bytes(path.read_bytes()[:-1])
  with pytest.raises(CheckpointError, match="not a whole"):
    file.read("a")
  with pytest.raises(CheckpointError, match="has no tensor 'b'"):
    file.read("b")


# ---------------------------------------------------------------------------------------------
# Several files.


def sharded(folder, weight_map, **tensors):
  """An index, and a file for each tensor."""
  for name, values in tensors.items():
    write(folder / f"{name}.safetensors", {name: values})
  index = folder / "model.safetensors.index.json"
  index.write_text(json.dumps({"metadata": {"total_size": 16}, "weight_map": weight_map}))
  return index


def test_several_files(tmp_path):
  weight_map = {"a": "a.safetensors", "b": "b.safetensors"}
  file = open_weights(sharded(tmp_path, weight_map, a=np.arange(2), b=np.arange(3.0)))
  assert {name: info.shape for name, info in file.tensors.items()} == {"a": (2,), "b": (3,)}
  assert file.read("b").tolist() == [0, 1, 2]
  with pytest.raises(CheckpointError, match="has no tensor 'c'"):
    file.read("c")


@pytest.mark.parametrize(
  ("weight_map", "message"),
  [
    ({"b": "a.safetensors"}, "a.safetensors has no tensor 'b', but"),
    ("a", "it has no weight_map"),
    ({"a": "../a.safetensors"}, "'a' would be in '../a.safetensors', which is not the name"),
    ({"a": ".."}, "which is not the name of a file"),
  ],
)
def test_an_index_that_makes_no_sense(tmp_path, weight_map, message):
  assert message in error_of(sharded(tmp_path, weight_map, a=np.arange(2)))
