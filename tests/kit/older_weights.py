"""Writes `pytorch_model.bin` in both forms, `tf_model.h5` and what transformers' TensorFlow classes
write into `model.safetensors`, without PyTorch and transformers.

  write_torch("pytorch_model.bin", {"bert.pooler.dense.bias": np.zeros(8, np.float32)}, "zip")
  write_h5("tf_model.h5", {"bert.pooler.dense.bias": np.zeros(8, np.float32)}, "tf_bert_model")

The pickles are put together from opcodes, so that hostile ones can be, too.
"""

import io
import itertools
import pathlib
import re
import shutil
import struct
import zipfile
from collections.abc import Mapping
from typing import Any, NamedTuple

import h5py
import numpy as np

from bert.checkpoints import safetensors_file

FORMS = ("zip", "pickles")
MAGIC = 0x1950A86A20F9469CFC6C
CLASSES = {
  **{"float16": "HalfStorage", "float32": "FloatStorage", "float64": "DoubleStorage"},
  **{"bfloat16": "BFloat16Storage", "bool": "BoolStorage", "uint8": "ByteStorage"},
  **{"int8": "CharStorage", "int16": "ShortStorage", "int32": "IntStorage", "int64": "LongStorage"},
}

# ---------------------------------------------------------------------------------------------
# Pickles.


class Name(NamedTuple):
  """Something that a pickle names."""

  module: str
  name: str


class Call(NamedTuple):
  """A call of a function."""

  function: Any
  arguments: Any


class Reference(NamedTuple):
  """What a file keeps outside of its pickle."""

  value: Any


class Filled(NamedTuple):
  """A dictionary that a call makes, with what it gets then, and its attributes."""

  made: Call
  items: Mapping[str, Any]
  state: Any = None


ORDERED = Call(Name("collections", "OrderedDict"), ())


def pickled(value) -> bytes:
  """A whole pickle of protocol 2."""
  return b"\x80\x02" + opcodes(value) + b"."


def opcodes(value) -> bytes:
  """What leaves a value on the stack; bytes are opcodes already."""
  if isinstance(value, bytes):
    return value
  if isinstance(value, Name):
    return b"c" + f"{value.module}\n{value.name}\n".encode()
  if isinstance(value, Call):
    return opcodes(value.function) + opcodes(value.arguments) + b"R"
  if isinstance(value, Reference):
    return opcodes(value.value) + b"Q"
  if isinstance(value, Filled):
    state = b"" if value.state is None else opcodes(value.state) + b"b"
    return opcodes(value.made) + _items(value.items) + state
  if isinstance(value, dict):
    return b"}" + _items(value)
  if isinstance(value, list):
    return b"](" + b"".join(map(opcodes, value)) + b"e"
  if isinstance(value, tuple):
    return b"(" + b"".join(map(opcodes, value)) + b"t"
  if isinstance(value, str):
    return b"X" + struct.pack("<I", len(value.encode())) + value.encode()
  if value is None or isinstance(value, bool):
    return {None: b"N", True: b"\x88", False: b"\x89"}[value]
  data = value.to_bytes(value.bit_length() // 8 + 1, "little", signed=True)
  return b"\x8a" + bytes([len(data)]) + data


def _items(items: Mapping[str, Any]) -> bytes:
  pairs = b"".join(opcodes(key) + opcodes(value) for key, value in items.items())
  return b"(" + pairs + b"u"


def storage(kind: str, key: str, length: int, form: str = "zip") -> Reference:
  """What names a storage."""
  behind = () if form == "zip" else (None,)
  return Reference(("storage", Name("torch", kind), key, "cpu", length, *behind))


def tensor(of: Any, shape, strides, offset=0) -> Call:
  """A tensor as PyTorch pickles it."""
  rebuild = Name("torch._utils", "_rebuild_tensor_v2")
  return Call(rebuild, (of, offset, tuple(shape), tuple(strides), False, ORDERED))


# ---------------------------------------------------------------------------------------------
# PyTorch's files.


def write_torch(path: pathlib.Path, tensors: Mapping[str, np.ndarray], form: str = "zip") -> None:
  """Writes a state dictionary. Views of one array share its storage, whatever their strides."""
  path.write_bytes(torch_bytes(tensors, form))


def torch_bytes(tensors: Mapping[str, np.ndarray], form: str = "zip") -> bytes:
  """The content of such a file."""
  storages: dict[int, tuple[str, np.ndarray]] = {}
  items = {}
  for name, array in tensors.items():
    base = array if array.base is None else array.base
    key = storages.setdefault(id(base), (str(len(storages)), base))[0]
    place = array.__array_interface__["data"][0] - base.__array_interface__["data"][0]
    kind = CLASSES[base.dtype.name]
    strides = [step // array.itemsize for step in array.strides]
    of = storage(kind, key, base.size, form)
    items[name] = tensor(of, array.shape, strides, place // array.itemsize)
  state = {"_metadata": Filled(ORDERED, {"": {"version": 1}})}
  value = pickled(Filled(ORDERED, items, state))
  return FILES[form](value, dict(storages.values()))


def zip_of(pickle: bytes, storages: Mapping[str, np.ndarray], method=zipfile.ZIP_STORED) -> bytes:
  """The form since PyTorch 1.6."""
  contents = {"data.pkl": pickle, "byteorder": b"little", "version": b"3\n"}
  contents |= {f"data/{key}": array.tobytes() for key, array in storages.items()}
  file = io.BytesIO()
  with zipfile.ZipFile(file, "w", method) as archive:
    for name, content in contents.items():
      info = zipfile.ZipInfo(f"archive/{name}")  # without the time
      archive.writestr(info, content, method)
  return file.getvalue()


def pickles_of(pickle: bytes, storages: Mapping[str, np.ndarray], machine=None) -> bytes:
  """The form before PyTorch 1.6."""
  machine = machine or {"protocol_version": 1001, "little_endian": True, "type_sizes": {"int": 4}}
  parts = [pickled(MAGIC), pickled(1001), pickled(machine), pickle, pickled(list(storages))]
  for array in storages.values():
    parts += [struct.pack("<q", array.size), array.tobytes()]
  return b"".join(parts)


FILES = {"zip": zip_of, "pickles": pickles_of}


# ---------------------------------------------------------------------------------------------
# HDF5.


def write_h5(path: pathlib.Path, tensors: Mapping[str, np.ndarray], model: str) -> None:
  """Writes what a TensorFlow class of transformers saves of a PyTorch twin's tensors.

  Args:
    path: of the file.
    tensors: PyTorch's name -> array.
    model: the name that Keras gives to the model, after its class: `tf_bert_model`.
  """
  with h5py.File(path, "w") as h5:
    for name, array in tensors.items():
      weight, values = weight_of(name, array)
      layer = weight.split("/")[0]
      h5[f"{layer}/{model}/{weight}"] = values


def weight_of(name: str, array: np.ndarray) -> tuple[str, np.ndarray]:
  """TensorFlow's name and layout of a tensor."""
  module, leaf = name.rsplit(".", 1)
  is_norm = re.search(r"(LayerNorm|layer_?norm)$", module, re.IGNORECASE)
  if leaf == "weight" and is_norm:
    leaf = "gamma"
  elif leaf == "bias" and is_norm:
    leaf = "beta"
  elif leaf == "weight" and "embeddings." in module:
    leaf = "weight" if module.endswith("word_embeddings") else "embeddings"
  elif leaf == "weight":
    leaf, array = "kernel", array.T
  for head, layer in {"cls.predictions": "mlm___", "cls.seq_relationship": "nsp___"}.items():
    module = module.replace(head, layer + head)
  return re.sub(r"/(\d+)", r"_._\1", f"{module}.{leaf}:0".replace(".", "/")), array


def parts_of(tensors: Mapping[str, Any], count: int) -> list[dict[str, Any]]:
  """Deals tensors out to several files."""
  names = list(tensors)
  parts = [list(itertools.islice(names, start, None, count)) for start in range(count)]
  return [{name: tensors[name] for name in part} for part in parts]


# ---------------------------------------------------------------------------------------------
# Folders.

FILES_OF_FORMS = {
  **{"zip": "pytorch_model.bin", "pickles": "pytorch_model.bin", "h5": "tf_model.h5"},
  "safetensors_of_tensorflow": "model.safetensors",
}


def copy_folder(source: pathlib.Path, target: pathlib.Path, form: str) -> pathlib.Path:
  """Copies a folder of transformers with its `model.safetensors` in one of `FILES_OF_FORMS`."""
  shutil.copytree(source, target, ignore=shutil.ignore_patterns("*.safetensors"))
  weights = safetensors_file.open_weights(source / "model.safetensors")
  tensors = {name: weights.read(name) for name in weights.tensors}
  if form == "h5":
    write_h5(target / FILES_OF_FORMS[form], tensors, "tf_model")
  elif form == "safetensors_of_tensorflow":
    of_keras = dict(weight_of(name, array) for name, array in tensors.items())
    safetensors_file.write(target / FILES_OF_FORMS[form], of_keras, {"format": "tf"})
  else:
    write_torch(target / FILES_OF_FORMS[form], tensors, form)
  return target
