"""Reads the pickles in PyTorch's files without `pickle`: nothing that they name is ever called.

  pickled = load(stream)
  pickled.value["bert.pooler.dense.bias"]   # StoredTensor(storage=..., offset=0, shape=(768,), ...)

A pickle is a program for a small stack machine, and one of its opcodes calls any function by name:
whoever runs a hostile one runs its code. This machine has the opcodes that build numbers, texts,
lists, tuples and dictionaries; it has no function but those of `_FUNCTIONS`, which describe tensors
by tuples of this module. Any other name, opcode or call is an error, and the end of reading.
`pickletools.genops` only splits the bytes into opcodes and their arguments; it is meant for that,
and builds nothing but numbers and texts.

Formats: https://docs.python.org/3/library/pickletools.html, and `torch/serialization.py`.
"""

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

  value: Any  # numbers, texts, None, lists, tuples and dictionaries of them, `StoredTensor`s
  storages: Mapping[str, Storage]  # key -> storage, of all that it names


class BoundedReader:
  """The part of a file's interface that `genops` needs; reads no more than `MAX_BYTES`."""

  def __init__(self, file):
    """Takes an open file."""
    self._file, self._left = file, MAX_BYTES

  def read(self, count: int) -> bytes:
    """Reads as a file."""
    return self._counted(self._file.read(min(count, self._left + 1)))

  def readline(self) -> bytes:
    """Reads as a file."""
    return self._counted(self._file.readline(self._left + 1))

  def _counted(self, content: bytes) -> bytes:
    self._left -= len(content)
    if self._left < 0:
      raise PickleError(f"its pickle has more than {MAX_BYTES:,} bytes.")
    return content


def load(stream: Any) -> Pickled:
  """Reads one pickle from a file in memory, or from a `BoundedReader`; what follows it stays there.

  Raises:
    PickleError: it is damaged, or is to do something that no file of weights needs.
  """
  machine = _Machine()
  try:
    for opcode, argument, _ in pickletools.genops(stream):
      machine.step(opcode.name, argument)
    return Pickled(machine.pop(), machine.storages)
  except PickleError:
    raise
  except (ValueError, OverflowError) as error:  # of genops: cut short, no opcode, no UTF-8
    raise PickleError(f"its pickle is damaged: {error!s:.80}.") from None
  except IndexError:
    raise PickleError(
      "its pickle is damaged: it takes more from its stack than is there."
    ) from None


# ---------------------------------------------------------------------------------------------
# What a pickle may call. Everything that arrives here may be of any type.


class _Function(NamedTuple):
  """A function that a pickle names, by what stands for it here."""

  name: str
  build: Callable[..., Any]


class _StorageClass(NamedTuple):
  """A class that a pickle names; it is not called."""

  kind: str


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


def _build_dictionary(pairs=()) -> dict:
  """Makes a dictionary; Python 2 gives its content at once."""
  found: dict[str, Any] = {}
  for pair in _checked(pairs, (list, tuple)):
    if not isinstance(pair, (list, tuple)) or len(pair) != 2:
      raise PickleError("a dictionary is made of something else than pairs.")
    found[_checked(pair[0], (str,))] = pair[1]
  return found


_FUNCTIONS: dict[str, Callable[..., Any]] = {
  "collections.OrderedDict": _build_dictionary,
  "torch._utils._rebuild_tensor": _build_tensor,
  "torch._utils._rebuild_tensor_v2": _build_tensor,
  "torch._utils._rebuild_parameter": _build_parameter,
  "torch._utils._rebuild_parameter_with_state": _build_parameter,
}
_NAMES: dict[str, _Function | _StorageClass] = {
  **{name: _Function(name, build) for name, build in _FUNCTIONS.items()},
  **{f"torch.{kind}": _StorageClass(kind) for kind in STORAGES},
}


def _is_size(value) -> bool:
  return tensor_files.is_size(value) and value < _MAX_SIZE


def _checked(value, types: tuple[type, ...]) -> Any:
  """Returns the value if it is of one of these types, and not of one derived from them."""
  if type(value) not in types:
    wanted = " or ".join(each.__name__ for each in types)
    raise PickleError(f"it has {type(value).__name__.lstrip('_')} where {wanted} belongs.")
  return value


# ---------------------------------------------------------------------------------------------
# The machine. Values are never printed, compared or hashed, apart from texts: those of a hostile
# pickle can contain each other so often that this would not end.

_CONSTANTS = {"NONE": None, "NEWTRUE": True, "NEWFALSE": False}
_EMPTY = {"EMPTY_LIST": list, "EMPTY_DICT": dict, "EMPTY_TUPLE": tuple}
_TUPLES = {"TUPLE1": 1, "TUPLE2": 2, "TUPLE3": 3}
_LITERALS = {
  *("BININT", "BININT1", "BININT2", "LONG1", "LONG4", "BINFLOAT"),
  *("BINUNICODE", "SHORT_BINUNICODE", "BINUNICODE8", "BINSTRING", "SHORT_BINSTRING"),
}
_IGNORED = {"PROTO", "FRAME", "STOP"}
_PUTS, _GETS = {"BINPUT", "LONG_BINPUT"}, {"BINGET", "LONG_BINGET"}


class _Machine:
  """The stack, the memory, and a method for each opcode of `_STEPS`.

  Attributes:
    storages: see `Pickled`.
  """

  def __init__(self):
    self.storages: dict[str, Storage] = {}
    self._stack: list[Any] = []
    self._below: list[list[Any]] = []  # the stacks below the marks
    self._memory: dict[int, Any] = {}

  def step(self, opcode: str, argument) -> None:
    """Does what one opcode says; one that is not known is a PickleError."""
    if opcode in _IGNORED:
      return
    if opcode in _LITERALS:
      self._push_literal(argument)
    elif opcode in _CONSTANTS:
      self._stack.append(_CONSTANTS[opcode])
    elif opcode in _EMPTY:
      self._stack.append(_EMPTY[opcode]())
    elif opcode in _TUPLES:
      items = [self.pop() for _ in range(_TUPLES[opcode])]
      self._stack.append(tuple(reversed(items)))
    elif opcode in _PUTS:
      self._memory[argument] = self._top()
    elif opcode in _GETS:
      self._get(argument)
    elif opcode in _STEPS:
      _STEPS[opcode](self, argument)
    else:
      detail = f" ({argument!r:.80})" if isinstance(argument, str) else ""
      raise PickleError(f"it has the opcode {opcode}{detail}, which no file of weights needs.")

  def pop(self) -> Any:
    """Takes the value on top; an IndexError without one."""
    return self._stack.pop()

  def _top(self) -> Any:
    return self._stack[-1]

  def _push_literal(self, value) -> None:
    if isinstance(value, int) and value.bit_length() > _MAX_INTEGER_BITS:
      raise PickleError(f"it has a number of {value.bit_length():,} bits.")
    self._stack.append(value)

  def _get(self, key) -> None:
    if key not in self._memory:
      raise PickleError("its pickle is damaged: it uses what it has not stored.")
    self._stack.append(self._memory[key])

  def _memoize(self, _) -> None:
    self._memory[len(self._memory)] = self._top()

  def _mark(self, _) -> None:
    self._below.append(self._stack)
    self._stack = []

  def _from_mark(self) -> list[Any]:
    items, self._stack = self._stack, self._below.pop()
    return items

  def _tuple(self, _) -> None:
    items = self._from_mark()
    self._stack.append(tuple(items))

  def _append(self, _) -> None:
    value = self.pop()
    _checked(self._top(), (list,)).append(value)

  def _appends(self, _) -> None:
    items = self._from_mark()
    _checked(self._top(), (list,)).extend(items)

  def _setitem(self, _) -> None:
    value = self.pop()
    self._set([self.pop(), value])

  def _setitems(self, _) -> None:
    self._set(self._from_mark())

  def _set(self, items: list[Any]) -> None:
    target = _checked(self._top(), (dict,))
    if len(items) % 2:
      raise PickleError("its pickle is damaged: a key has no value.")
    for key, value in zip(items[::2], items[1::2], strict=True):
      target[_checked(key, (str,))] = value

  def _global(self, name: str) -> None:
    self._stack.append(_named(name.replace(" ", ".", 1)))

  def _stack_global(self, _) -> None:
    name, module = self.pop(), self.pop()
    self._stack.append(_named(f"{_checked(module, (str,))}.{_checked(name, (str,))}"))

  def _reduce(self, _) -> None:
    arguments, function = self.pop(), self.pop()
    if type(function) is not _Function:
      raise PickleError("it calls what is no function.")
    try:
      self._stack.append(function.build(*_checked(arguments, (tuple,))))
    except TypeError:  # too few or too many arguments: the functions check their types themselves
      raise PickleError(f"{function.name} has other arguments than PyTorch gives it.") from None

  def _build(self, _) -> None:
    """Leaves out what is set beside the content of a dictionary: versions of PyTorch's modules."""
    state = self.pop()
    if type(self._top()) is not dict or type(state) is not dict:
      raise PickleError("it sets the state of an object, which no file of weights needs.")

  def _binpersid(self, _) -> None:
    """Notes a storage: ("storage", class, key, device, elements), in the older form None behind."""
    found = _checked(self.pop(), (tuple,))
    if len(found) not in (5, 6) or type(found[0]) is not str or found[0] != "storage":
      raise PickleError("it refers to something else than a storage.")
    kind, key, length = found[1], found[2], found[4]
    if len(found) == 6 and found[5] is not None:
      raise PickleError("a storage is a part of another one, as in files of PyTorch before 0.4.")
    if type(kind) is not _StorageClass or type(key) is not str or not _is_size(length):
      raise PickleError("a storage is not described by its class, key and size.")
    storage = Storage(kind.kind, key, length)
    if self.storages.setdefault(key, storage) != storage:
      raise PickleError(f"it describes the storage {key!r:.80} in two ways.")
    self._stack.append(storage)


def _named(name: str) -> _Function | _StorageClass:
  if name not in _NAMES:
    raise PickleError(f"it asks for {name!r:.120}, which no file of weights needs.")
  return _NAMES[name]


_STEPS: dict[str, Callable[[_Machine, Any], None]] = {
  "MEMOIZE": _Machine._memoize,
  "MARK": _Machine._mark,
  "TUPLE": _Machine._tuple,
  "APPEND": _Machine._append,
  "APPENDS": _Machine._appends,
  "SETITEM": _Machine._setitem,
  "SETITEMS": _Machine._setitems,
  "GLOBAL": _Machine._global,
  "STACK_GLOBAL": _Machine._stack_global,
  "REDUCE": _Machine._reduce,
  "BUILD": _Machine._build,
  "BINPERSID": _Machine._binpersid,
}
