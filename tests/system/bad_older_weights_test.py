"""`pytorch_model.bin` and `tf_model.h5` that are hostile, damaged, or something else.

Alone: python -m pytest tests/system/bad_older_weights_test.py (half a minute)

What each row has to fulfil is in tests/kit/bad_inputs.py: one message, and no file that was not
there before. The hostile pickles would write one, if anything in them were run.
"""

import io
import json
import struct
import zipfile

import h5py
import numpy as np
import pytest

from bert.checkpoints import finding
from tests.kit import older_weights
from tests.kit.bad_inputs import FOLDER, Family, case, check, loading, rows_of
from tests.kit.older_weights import (
  Call,
  Name,
  Reference,
  opcodes,
  pickled,
  pickles_of,
  storage,
  tensor,
  torch_bytes,
  zip_of,
)

VALUES = np.arange(4, dtype=np.float32)
COMMAND = "echo > ran"
PYTHON = "open('ran', 'w').close()"
LFS = b"version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 5\n"
PAGE = b"<!DOCTYPE html><html>Not found</html>"
FIND = loading(lambda folder: finding.find_checkpoint(folder))


def _read(folder) -> None:
  checkpoint = finding.find(folder)
  for name in checkpoint.contents:
    checkpoint.read(name)


def _proto(body: bytes) -> bytes:
  return b"\x80\x04" + body + b"."


# ---------------------------------------------------------------------------------------------
# Pickles that run something when `pickle.load` reads them.

_EVAL = Name("builtins", "eval")
_GETATTR = Name("builtins", "getattr")
_IMPORT = Call(Name("builtins", "__import__"), ("os",))
_SYSTEM = opcodes("os") + opcodes("system") + b"\x93"
HOSTILE = {
  "os.system": (pickled(Call(Name("os", "system"), (COMMAND,))), "'os.system'"),
  "eval": (pickled(Call(_EVAL, (PYTHON,))), "'builtins.eval'"),
  "a chain of getattr": (
    pickled(Call(Call(_GETATTR, (_IMPORT, "system")), (COMMAND,))),
    "'builtins.getattr'",
  ),
  "names from the stack": (_proto(_SYSTEM + opcodes((COMMAND,)) + b"R"), "'os.system'"),
  "INST": (b"\x80\x02(" + opcodes(COMMAND) + b"ios\nsystem\n.", "INST ('os system')"),
}


# ---------------------------------------------------------------------------------------------
# Pickles of something else than tensors in a state dictionary.

_OF = storage("FloatStorage", "0", 4)
_CALL_OF = Name("torch._utils", "_rebuild_tensor_v2")


def _tensor(shape=(4,), strides=(1,), offset=0, of=_OF) -> bytes:
  return pickled({"a": tensor(of, shape, strides, offset)})


def _referring(value) -> bytes:
  return pickled({"a": tensor(Reference(value), (4,), (1,))})


_DEEP = b"\x80\x02" + b"](" * 300_000 + b"e" * 300_000 + b"."
_WIDE = b"\x80\x02)q\0" + b"h\0h\0\x86q\0" * 100_000 + b"."
ODD = {
  # What no file of weights has.
  "arguments of a training": (
    pickled(Name("transformers.training_args", "TrainingArguments")),
    "'transformers.training_args.TrainingArguments'",
  ),
  "a state for a tensor": (
    pickled({"a": tensor(_OF, (4,), (1,))})[:-2] + opcodes(tensor(_OF, (4,), (1,))) + b"}b.",
    "its pickle is damaged: 'StoredTensor'",
  ),
  # What names a storage.
  "a part of a storage": (
    _referring(("storage", _OF.value[1], "0", "cpu", 4, ("1", 0, 4))),
    "is a part of another one",
  ),
  "a storage in two ways": (
    pickled([_OF, storage("HalfStorage", "0", 8)]),
    "the storage '0' in two ways",
  ),
  "a way out for a key": (
    _tensor(of=storage("FloatStorage", "../../../../etc/passwd", 4)),
    "its storage '../../../../etc/passwd' is missing",
  ),
  # Tensors.
  "no storage": (_tensor(of=None), "a tensor has no storage"),
  "a negative offset": (_tensor(offset=-1), "offset is not a size"),
  "a size behind its storage": (_tensor(shape=(5,)), "lies outside of its storage"),
  "one element a billion times": (_tensor((10**9,), (0,)), "lies outside of its storage"),
  "a parameter of nothing": (
    pickled(Call(Name("torch._utils", "_rebuild_parameter"), (None, True, None))),
    "a parameter is no tensor",
  ),
  # Other content.
  "a number": (pickled(5), "no dictionary of tensors"),
  # Damaged or made to take long.
  "nested 300,000 deep": (_DEEP, "no dictionary of tensors"),
  "a tuple of 2 to the power of 100,000": (_WIDE, "a tuple of 4,194,303 values"),
  "a key that takes an eternity to hash": (
    b"\x80\x02})q\0" + b"h\0h\0\x86q\0" * 64 + b"Ns.",
    "a tuple of 4,194,303 values",
  ),
  "a value stored under 4 billion": (b"\x80\x02}r\xff\xff\xff\xff.", "the number 4,294,967,295"),
  "a number of 8 million bits": (
    b"\x80\x02\x8b" + struct.pack("<i", 10**6) + b"\1" * 10**6 + b".",
    "it has a number of 7,999,993 bits",
  ),
  "a text of exabytes": (_proto(b"\x8d" + b"\xff" * 7 + b"\x0f"), "is damaged"),
  "5 million bytes": (b"\x80\x02" + b"N" * 5_000_000 + b".", "more than 4,000,000 bytes"),
}

# ---------------------------------------------------------------------------------------------
# The files around them.

_GOOD = {"bert.pooler.dense.bias": VALUES}
_MACHINE = {"protocol_version": 1001, "little_endian": True}


def _zip(change) -> bytes:
  """A good archive, whose only storage is written by a function of the archive."""
  file = io.BytesIO()
  with zipfile.ZipFile(file, "w") as archive:
    archive.writestr("archive/data.pkl", _tensor())
    change(archive)
  return file.getvalue()


def _entry(offset: int, data: bytes):
  """A change of the last entry in the list of an archive."""

  def changed(good: bytes) -> bytes:
    start = good.rindex(b"PK\1\2") + offset
    return good[:start] + data + good[start + len(data) :]

  return changed


def _overlapping(good: bytes) -> bytes:
  """The last member begins where the one before does."""
  before = good.rindex(b"PK\1\2", 0, good.rindex(b"PK\1\2"))
  return _entry(42, good[before + 42 : before + 46])(good)


def _bomb() -> bytes:
  return zip_of(
    _tensor(of=storage("FloatStorage", "0", 1 << 22)), {"0": np.zeros(1 << 22, "f4")}, 8
  )


def _row(*parts: bytes) -> bytes:
  """The pickles before the values, each of them other than it should be."""
  good = [pickled(older_weights.MAGIC), pickled(1001), pickled(_MACHINE), _tensor_before_1_6()]
  return b"".join([*parts, *good[len(parts) :]])


def _tensor_before_1_6() -> bytes:
  return _tensor(of=storage("FloatStorage", "0", 4, "pickles"))


def _values(count: int) -> bytes:
  return struct.pack("<q", count) + VALUES.tobytes()


_BEFORE = [pickled(value) for value in (older_weights.MAGIC, 1001, _MACHINE)]
_KEYS = pickled(["0"])
ZIPS = [
  case("compressed", _bomb(), "is compressed, which PyTorch never does"),
  case("cut in half", lambda good: good[: len(good) // 2], "its archive is damaged"),
  case("no storage", _zip(lambda archive: None), "its storage '0' is missing"),
  case("a short storage", _zip(lambda a: a.writestr("archive/data/0", b"1234")), "but 4 are there"),
  case("no pickle", zip_of(b"", {}).replace(b"data.pkl", b"date.pkl"), "0 files data.pkl"),
  case("two pickles", _zip(lambda a: a.writestr("b/data.pkl", b"")), "2 files data.pkl"),
  case(
    "a name twice",
    _zip(lambda a: [a.writestr(f"archive/data/{i}", b"1") for i in range(2)]).replace(
      b"archive/data/1", b"archive/data/0"
    ),
    "has a name twice",
  ),
  case("encrypted", _entry(8, b"\1"), "is encrypted"),
  case(
    "a size of 4 GB",
    _entry(20, b"\xfe\xff\xff\xff" * 2),
    "but 4,294,967,294 are there",
  ),
  case("two sizes", _entry(24, b"\xfe\xff\xff\xff"), "is compressed"),
  case("a place of its own", _entry(42, b"\5\0\0\0"), "cannot be read"),
  case("a place behind the end", _entry(42, b"\xff\xff\xff\x7f"), "cannot be read"),
  case("a place before the beginning", lambda good: good[:10] + good[30:], "is damaged"),
  case("members in each other", _overlapping, "cannot be read"),
  case(
    "of a big-endian machine",
    _zip(lambda archive: archive.writestr("archive/byteorder", b"big")),
    "big-endian",
  ),
]
ROWS = [
  case("another number", _row(pickled(5)), "a pickle, but not one of PyTorch"),
  case("another version", _row(pickled(older_weights.MAGIC), pickled(7)), "an unknown version"),
  case(
    "of a big-endian machine",
    pickles_of(_tensor_before_1_6(), {"0": VALUES}, {"little_endian": False}),
    "big-endian machine",
  ),
  case("no list of storages", _row() + pickled({}), "its list of storages is none"),
  case("other storages", _row() + pickled(["1"]), "is not that of its tensors"),
  case("no values", _row() + _KEYS, "is not where it should be"),
  case("another count", _row() + _KEYS + _values(5), "is not where it should be"),
  case("a byte too few", _row() + _KEYS + _values(4)[:-1], "its storages end at"),
  case(
    "a count of exabytes",
    _row(
      *_BEFORE,
      _tensor(of=storage("FloatStorage", "0", 1 << 60, "pickles")),
    )
    + _KEYS
    + struct.pack("<q", 1 << 60),
    "its storages end at",
  ),
]
OTHERS = [
  case("text", b"no weights\n", "which none of them does"),
  case("a folder", FOLDER, "has no checkpoint"),
  case("a pointer of git-lfs", LFS, "a pointer of git-lfs", "git lfs pull"),
  case("a web page", PAGE, "a web page"),
  case("an archive of tar", b"\0" * 257 + b"ustar" + b"\0" * 250, "archive of tar"),
]


def _index(weight_map) -> bytes:
  return json.dumps({"weight_map": weight_map}).encode()


def _index_cases(file: str):
  return [
    case("a way out", _index({"a": "../../etc/passwd"}), "is not the name of a file"),
    case("no map", b"{}", "it has no weight_map"),
    case("a pointer of git-lfs", LFS, "a pointer of git-lfs"),
    case("a file missing", _index({"a": "b.bin"}), "b.bin cannot be read: No such file"),
    case("another tensor", _index({"x/y/z": file}), f"{file} has no tensor"),
  ]


# ---------------------------------------------------------------------------------------------
# HDF5.


def _h5(fill) -> bytes:
  """A file that a function fills."""
  file = io.BytesIO()
  with h5py.File(file, "w") as h5:
    fill(h5)
  return file.getvalue()


_PATH = "bert/tf_bert_model/bert/pooler/dense/bias:0"


def _array(**options):
  return lambda h5: h5.create_dataset(_PATH, **options)


def _linked(link):
  def fill(h5):
    h5[_PATH] = VALUES
    h5["bert/tf_bert_model/bert/pooler/dense/kernel:0"] = link

  return fill


def _circle(h5):
  h5[_PATH] = VALUES
  h5["bert/again"] = h5["bert"]
  h5["bert/once_more"] = h5["bert"]


def _two(h5):
  for layer, size in (("a", 3), ("b", 4)):
    h5[f"{layer}/m/bert/pooler/dense/bias:0"] = np.zeros(size)


def _virtual(h5):
  layout = h5py.VirtualLayout((4,), "f4")
  layout[:] = h5py.VirtualSource("/etc/passwd", "a", (4,))
  h5.create_virtual_dataset(_PATH, layout)


_TEXTS = h5py.string_dtype()
_PAIR = np.dtype([("a", "f4"), ("b", "f4")])
_LINK = h5py.ExternalLink("/etc/passwd", "/")
_ELSEWHERE = {"shape": (4,), "dtype": "f4", "external": [("/etc/passwd", 0, 16)]}
H5 = [
  case("text", b"no weights\n", "not as HDF5 does"),
  case("a pointer of git-lfs", LFS, "a pointer of git-lfs", "git lfs pull"),
  case("a web page", PAGE, "a web page"),
  case(
    "cut in half",
    lambda good: good[: len(good) // 2],
    "is not a whole file of weights",
    "truncated",
  ),
  case("a soft link", _h5(_linked(h5py.SoftLink("/x"))), "is a link to elsewhere"),
  case("a link to a file", _h5(_linked(_LINK)), "link to elsewhere"),
  case("values in a file", _h5(_array(**_ELSEWHERE)), "in one piece"),
  case("a virtual array", _h5(_virtual), "does not lie in the file in one piece"),
  case("texts", _h5(_array(data=["a"], dtype=_TEXTS)), "of type object, not of numbers"),
  case("no array", _h5(_array(data=h5py.Empty("f4"))), "has no shape"),
  case(
    "a compressed terabyte",
    _h5(_array(shape=(1 << 38,), dtype="f4", chunks=(1 << 20,), compression="gzip")),
    "in one piece, uncompressed",
  ),
  case("an unwritten terabyte", _h5(_array(shape=(1 << 38,), dtype="f4")), "was never written"),
  case("a circle", _h5(_circle), "nested too deeply, or are too many"),
  case("1000 groups deep", _h5(lambda h5: h5.create_group("a/" * 1000)), "nested too deeply"),
  case("no weights", _h5(lambda h5: None), "has no weights of a bert", "Its names: none"),
  case("other weights", _h5(lambda h5: h5.update({"layers/dense/vars/0": VALUES})), "vars.0"),
  case("two arrays for one weight", _h5(_two), "are both bert.pooler.dense.bias"),
]
_GOOD_H5 = _h5(_array(data=VALUES))

_BIN, _H5 = "pytorch_model.bin", "tf_model.h5"
FAMILIES = [
  *(
    Family(
      f"{title} pickle in {form}",
      _BIN,
      FIND,
      [case(name, make(content), words) for name, (content, words) in cases.items()],
    )
    for title, cases in (("hostile", HOSTILE), ("odd", ODD))
    for form, make in (
      ("zip", lambda content: zip_of(content, {"0": VALUES})),
      (
        "a row",
        lambda content: _row(*map(pickled, (older_weights.MAGIC, 1001, _MACHINE)), content),
      ),
    )
    if form == "zip" or title == "hostile"
  ),
  Family("zip", _BIN, loading(_read), ZIPS, {_BIN: torch_bytes(_GOOD)}),
  Family("row of pickles", _BIN, FIND, ROWS),
  Family("no file of PyTorch", _BIN, FIND, OTHERS, named=""),
  Family(
    "index", f"{_BIN}.index.json", FIND, _index_cases("c.bin"), {"c.bin": torch_bytes(_GOOD)}, ""
  ),
  Family("HDF5", _H5, FIND, H5, {_H5: _GOOD_H5}),
  Family("index of HDF5", f"{_H5}.index.json", FIND, _index_cases("c.h5"), {"c.h5": _GOOD_H5}, ""),
]


@pytest.mark.parametrize(("family", "row"), rows_of(FAMILIES))
def test_a_bad_file_is_refused(family, row, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  check(family, row, tmp_path)


def test_the_good_files_are_used(tmp_path):
  """Or the tables above would prove little."""
  for name, content in (
    (_BIN, torch_bytes(_GOOD)),
    (_BIN, torch_bytes(_GOOD, "pickles")),
    (_H5, _GOOD_H5),
  ):
    (tmp_path / name).write_bytes(content)
    found = finding.find(tmp_path)
    assert found.prefix == str(tmp_path / name)
    assert found.read("bert/pooler/dense/bias").tobytes() == VALUES.tobytes()
