"""Reads the pickles in PyTorch's files: they can call nothing but functions of this module.

  pickled = load(stream)
  pickled.value["bert.pooler.dense.bias"]   # StoredTensor(storage=..., offset=0, shape=(768,), ...)

A pickle is a program for a small stack machine, and one of its opcodes calls any function by name:
whoever runs a hostile one runs its code. Python's documented remedy is an allow-list in
`Unpickler.find_class`; here it has the names by which PyTorch describes tensors, and gives
functions of this module for them. Two dangers are left, against which the opcodes are read before
(`pickletools`): those that allocate what a number in the pickle says, and tuples that contain each
other so often that hashing one would not end.

Formats: https://docs.python.org/3/library/pickletools.html, and `torch/serialization.py`.
"""

import io
import pickle  # noqa: TID251 - with an allow-list
import pickletools
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from bert.checkpoints import tensor_files

MAX_BYTES = 4_000_000  # of the pickles of a file: a large BERT has 200 kB
_MAX_SIZE = 1 << 62
_MAX_INTEGER_BITS = 80  # of the magic number of the older form; others have 64

# Class of a storage -> NumPy's name of its type. All are little-endian.
STORAGES = {
  "HalfStorage": "<f2",
  "FloatStorage": "<f4",
  "DoubleStorage": "<f8",
  "BFloat16Storage": "bfloat16",
  "BoolStorage": "?",
  "ByteStorage": "u1",
  "CharStorage": "i1",
  "ShortStorage": "<i2",
  "IntStorage": "<i4",
  "LongStorage": "<i8",
}


class PickleError(ValueError):
  """A pickle is damaged, or asks for something else than tensors; one sentence says what."""


class Storage(NamedTuple):
  """Values in a row, somewhere in the file."""

  kind: str  # a key of `STORAGES`
  key: str  # its name in the file
  length: int  # how many elements it has


class StoredTensor(NamedTuple):
  """A tensor: which elements of a storage it consists of."""

  storage: Storage
  offset: int  # of its first element
  shape: tuple[int, ...]
  strides: tuple[int, ...]  # from one element to the next along each dimension, in elements


class Pickled(NamedTuple):
  """What a pickle holds."""

  # Numbers, texts, None, lists, tuples and dictionaries of them, `StoredTensor`s.
  value: Any
  storages: Mapping[str, Storage]  # key -> storage, of all that it names


def load(stream: io.BytesIO) -> Pickled:
  """Reads one pickle from the first `MAX_BYTES` of a file; what follows it stays there.

  Raises:
    PickleError: it is damaged, or is to do something that no file of weights needs.
  """
  start = stream.tell()
  try:
    _check_opcodes(stream)
    unpickler = _Unpickler(io.BytesIO(stream.getvalue()[start : stream.tell()]))
    return Pickled(unpickler.load(), unpickler.storages)
  except PickleError:
    raise
  # Any exception can be raised by what is no sound pickle.
  except Exception as error:
    if stream.tell() >= MAX_BYTES:
      raise PickleError(f"its pickle has more than {MAX_BYTES:,} bytes.") from None
    raise PickleError(f"its pickle is damaged: {error!s:.80}.") from None


# ---------------------------------------------------------------------------------------------
# What a pickle may name. Everything that arrives here may be of any type.


class _Dictionary(dict):
  """A dictionary; PyTorch sets the versions of its modules beside the content."""

  __slots__ = ()

  def __setstate__(self, state):
    """Leaves them out."""


def _build_tensor(storage, offset, shape, strides, *_) -> StoredTensor:
  """Describes a tensor; gradients and hooks are left out."""
  if not isinstance(storage, Storage):
    raise PickleError("a tensor has no storage.")
  if not _is_size(offset):
    raise PickleError("a tensor's offset is not a size.")
  for sizes in (shape, strides):
    if not (type(sizes) is tuple and tensor_files.is_shape(sizes) and all(map(_is_size, sizes))):
      raise PickleError("a tensor's shape or strides are not tuples of sizes.")
  if len(shape) != len(strides):
    raise PickleError(f"a tensor has {len(shape)} sizes and {len(strides)} strides.")
  return StoredTensor(storage, offset, shape, strides)


def _build_parameter(tensor, *_) -> StoredTensor:
  if not isinstance(tensor, StoredTensor):
    raise PickleError("a parameter is no tensor.")
  return tensor


class _Function(NamedTuple):
  """A function that a pickle names; being a tuple, it has no attributes that a pickle could set."""

  build: Callable[..., Any]

  def __call__(self, *arguments):
    return self.build(*arguments)


class _StorageClass(NamedTuple):
  """A class that a pickle names; it is not called."""

  kind: str


_NAMES: dict[str, _Function | _StorageClass] = {
  "collections.OrderedDict": _Function(_Dictionary),
  "torch._utils._rebuild_tensor": _Function(_build_tensor),
  "torch._utils._rebuild_tensor_v2": _Function(_build_tensor),
  "torch._utils._rebuild_parameter": _Function(_build_parameter),
  "torch._utils._rebuild_parameter_with_state": _Function(_build_parameter),
  **{f"torch.{kind}": _StorageClass(kind) for kind in STORAGES},
}


def _is_size(value) -> bool:
  return tensor_files.is_size(value) and value < _MAX_SIZE


class _Unpickler(pickle.Unpickler):
  """Builds what a pickle describes.

  Attributes:
    storages: see `Pickled`.
  """

  def __init__(self, stream: io.BytesIO):
    super().__init__(stream)
    self.storages: dict[str, Storage] = {}

  def find_class(self, module: str, name: str) -> Any:
    """Returns what stands for a name of the allow-list."""
    full_name = f"{module}.{name}"
    if full_name not in _NAMES:
      raise PickleError(f"it asks for {full_name!r:.120}, which no file of weights needs.")
    return _NAMES[full_name]

  def persistent_load(self, pid: Any) -> Storage:
    """Notes a storage: ("storage", class, key, device, elements), in the older form None behind."""
    if type(pid) is not tuple or len(pid) not in (5, 6) or type(pid[0]) is not str:
      raise PickleError("it refers to something else than a storage.")
    if pid[0] != "storage":
      raise PickleError("it refers to something else than a storage.")
    kind, key, length = pid[1], pid[2], pid[4]
    if len(pid) == 6 and pid[5] is not None:
      raise PickleError("a storage is a part of another one, as in files of PyTorch before 0.4.")
    if type(kind) is not _StorageClass or type(key) is not str or not _is_size(length):
      raise PickleError("a storage is not described by its class, key and size.")
    storage = Storage(kind.kind, key, length)
    if self.storages.setdefault(key, storage) != storage:
      raise PickleError(f"it describes the storage {key!r:.80} in two ways.")
    return storage


# ---------------------------------------------------------------------------------------------
# Opcodes.

_TUPLES = {"TUPLE", "TUPLE1", "TUPLE2", "TUPLE3"}
_PUTS, _GETS = {"BINPUT", "LONG_BINPUT", "MEMOIZE"}, {"BINGET", "LONG_BINGET"}
_OPCODES = {
  *("PROTO", "FRAME", "STOP", "MARK", "NONE", "NEWTRUE", "NEWFALSE"),
  *("EMPTY_LIST", "EMPTY_DICT", "EMPTY_TUPLE", "APPEND", "APPENDS", "SETITEM", "SETITEMS"),
  *("BININT", "BININT1", "BININT2", "LONG1", "LONG4", "BINFLOAT"),
  *("BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "BINSTRING", "SHORT_BINSTRING"),
  *("GLOBAL", "STACK_GLOBAL", "REDUCE", "BUILD", "BINPERSID"),
  *_TUPLES,
  *_PUTS,
  *_GETS,
}


def _check_opcodes(stream: io.BytesIO) -> None:
  """Checks each opcode of a pickle, and how many values each tuple has with those inside.

  The stack and the memory hold these counts alone.
  """
  stack: list[int | None] = []  # None for a mark
  memory: dict[int, int | None] = {}
  for opcode, argument, _ in pickletools.genops(stream):
    name = opcode.name
    if name not in _OPCODES:
      detail = f" ({argument!r:.80})" if isinstance(argument, str) else ""
      raise PickleError(f"it has the opcode {name}{detail}, which no file of weights needs.")
    if isinstance(argument, int) and argument.bit_length() > _MAX_INTEGER_BITS:
      raise PickleError(f"it has a number of {argument.bit_length():,} bits.")
    if name in _PUTS:
      index = len(memory) if argument is None else argument
      if index > MAX_BYTES:  # a table of this length would be allocated
        raise PickleError(f"it stores a value under the number {index:,}.")
      memory[index] = stack[-1]
    elif name in _GETS:
      stack.append(memory.get(argument, 1))
    elif name == "MARK":
      stack.append(None)
    else:
      count = 1 + sum(_taken(stack, opcode.stack_before))
      if name in _TUPLES and count > MAX_BYTES:
        raise PickleError(f"it has a tuple of {count:,} values.")
      stack += [count if name in _TUPLES else 1] * len(opcode.stack_after)


def _taken(stack: list[int | None], wanted) -> list[int]:
  """Takes what an opcode takes from the stack."""
  taken = []
  if pickletools.markobject in wanted:
    while (count := stack.pop()) is not None:
      taken.append(count)
    wanted = wanted[: wanted.index(pickletools.markobject)]
  return taken + [stack.pop() or 0 for _ in wanted]
