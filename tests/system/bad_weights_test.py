"""Binary files that are not as they should be: checkpoints, records, safetensors, SavedModels.

Each row is refused as tests/kit/bad_inputs.py says: code 1, one message with file and place,
nothing written, nothing changed. Text files are in tests/system/bad_inputs_test.py.

Alone: python -m pytest tests/system/bad_weights_test.py (seconds, mostly to start TensorFlow)
"""

import functools
import gzip
import json
import pathlib
import shutil
import struct

import numpy as np
import pytest
import tensorflow as tf

from bert import tokenization
from bert.checkpoints import (
  finding,
  model_files,
  reading,
  transformers_folder,
)
from bert.io import record_files, tfrecord_bytes
from bert.io.tfrecord_bytes import framed, varint
from bert.predicting import load_run, predictor
from bert.training import input_pipeline
from tests.kit.bad_inputs import FOLDER, Family, case, check, loading, message_of, rows_of
from tests.kit.fuzz_targets import HEADER, TENSOR, VALUES, entry, index_of

DEEP = "[" * 100_000


def cut(count: int):
  """Good content without its last bytes."""
  return lambda good: good[:-count]


def flipped(place: int):
  """Good content with one bit changed."""
  return lambda good: good[:place] + bytes([good[place] ^ 1]) + good[place:][1:]


def _crc(data: bytes) -> bytes:
  return framed(data)[-4:]


# ---------------------------------------------------------------------------------------------
# Checkpoints. The good one has a single tensor, float32 [2, 2].


def _tensor(*dims: int, size=16, dtype=1, offset=0, values=VALUES) -> bytes:
  """The description of a tensor in an index."""
  shape = b"".join(b"\x12" + varint(len(varint(d)) + 1) + b"\x08" + varint(d) for d in dims)
  fields = b"\x08" + varint(dtype) + b"\x12" + varint(len(shape)) + shape
  return fields + b"\x20" + varint(offset) + b"\x28" + varint(size) + b"\x35" + _crc(values)


GOOD = index_of(HEADER + entry(b"a", TENSOR))
CHECKPOINT = {
  "model.ckpt-1.index": GOOD,
  "model.ckpt-1.data-00000-of-00001": VALUES,
  "checkpoint": b'model_checkpoint_path: "model.ckpt-1"\n',
}


def _index(*entries: bytes) -> bytes:
  return index_of(b"".join(entries))


def _read_checkpoint(folder):
  prefix = finding.find_checkpoint(folder / "model.ckpt-1")
  return reading.read_tensors(prefix, reading.names_and_shapes(prefix))


_ONE = VALUES[:4]
_INDEX = [
  case("missing", None),
  case("text", b"no checkpoint\n" * 9),
  case("cut by a byte", cut(1)),
  case("its first bit", flipped(0)),
  case("a bit of the description", flipped(20)),
  case("a huge shape", _index(HEADER, entry(b"a", _tensor(1 << 40, 1 << 22)))),
  case("more values than bytes", _index(HEADER, entry(b"a", _tensor(8, size=32)))),
  case("a place behind the end", _index(HEADER, entry(b"a", _tensor(4, offset=1 << 40)))),
  case("no header", _index(entry(b"a", TENSOR))),
  case("100 dimensions", _index(HEADER, entry(b"a", _tensor(*[1] * 100, size=4, values=_ONE)))),
  case("an unknown type", _index(HEADER, entry(b"a", _tensor(4, dtype=7))), "type 7"),
  case("a number for the shape", _index(HEADER, entry(b"a", b"\x10\x05")), "damaged"),
  case("a text for the type", _index(HEADER, entry(b"a", b"\x0a\x01\x05")), "not a size"),
  case("a number without end", _index(HEADER, entry(b"a", b"\x08" + b"\xff" * 20)), "no end"),
  case("a key behind the end", _index(HEADER, b"\0\x7f\0a"), "after its block"),
  case("a slice", _index(HEADER, entry(b"a", TENSOR + b"\x3a\0")), "a partitioned variable"),
  case("more data files than there are", _index(entry(b"", bytes([8, 2])), entry(b"a", TENSOR))),
  case("a big-endian machine", _index(entry(b"", bytes([8, 1, 16, 1])), entry(b"a", TENSOR))),
]
_DATA = [
  case("missing", None),
  case("empty", b""),
  case("cut by a byte", cut(1)),
  case("a bit", flipped(7)),
]


def _checkpoints(title, run, file, cases):
  named = "model.ckpt-1"  # either of the two files, or both
  return Family(f"{title} {file}", file, run, cases, CHECKPOINT, named)


_DATA_FILE = "model.ckpt-1.data-00000-of-00001"
CHECKPOINTS = [
  _checkpoints("checkpoint", loading(_read_checkpoint), "model.ckpt-1.index", _INDEX),
  _checkpoints("checkpoint", loading(_read_checkpoint), _DATA_FILE, _DATA),
  Family(
    "a folder's checkpoint",
    "model.ckpt-1.index",
    loading(lambda folder: finding.find(folder)),
    [case("missing", None, "has no checkpoint (no *.index file)")],
    CHECKPOINT,
    named="",
  ),
  Family(
    "a sidecar",
    "model.ckpt-1.state.json",
    loading(lambda folder: reading.read_state(str(folder / "model.ckpt-1"))),
    [
      case("empty", b"", "is damaged"),
      case("of no checksum", b'{"state": {}}', "is damaged"),
      case("a list", b"[]", "is damaged"),
      case("nested too deeply", DEEP, "is damaged"),
    ],
    CHECKPOINT,
  ),
]

# ---------------------------------------------------------------------------------------------
# Records.


def _record(length=4, **features) -> bytes:
  """A classifier's record, some of whose features are others; None leaves one out."""
  rows = dict.fromkeys(("input_ids", "input_mask", "segment_ids"), [1] * length)
  rows |= {"label_ids": [1], "is_real_example": [1], **features}
  return _example(rows)


def _example(rows) -> bytes:
  arrays = {name: np.array([row]) for name, row in rows.items() if row is not None}
  return next(tfrecord_bytes.encode_examples(arrays))


GOOD_RECORDS = framed(_record()) * 3
_SIZE = len(GOOD_RECORDS) // 3
_MANIFEST = ".train.tf_record.manifest.json"


def _read_all(folder):
  path = folder / "train.tf_record"
  input_pipeline.record_input_fn(path, input_pipeline.classifier_features(4), False, False)
  list(record_files.records_of(path))


def _records(title, run, cases, **others):
  file = "train.tf_record"
  return Family(title, file, run, cases, {file: GOOD_RECORDS, **others})


def _huge(length: int) -> bytes:
  """A record that claims to be so long, with the right checksum of that."""
  head = struct.pack("<Q", length)
  return head + _crc(head) + b"few"


RECORDS = [
  _records(
    "records",
    loading(_read_all),
    [
      case("missing", None, "does not exist"),
      case("a folder", FOLDER, "is a folder"),
      case("empty", b"", "holds no record"),
      case("text", b"no record\n" * 9, "record 1"),
      case("cut in the head", lambda good: good[: 2 * _SIZE + 5], "record 3", "cut short"),
      case("cut in the record", lambda good: good[: _SIZE + 40], "record 2", "the file ends"),
      case("cut in the checksum", cut(2), "record 3", "cut short"),
      case("a bit of a length", flipped(_SIZE + 1), "record 2", "length"),
      case("a bit of a record", flipped(2 * _SIZE + 20), "record 3", "checksum"),
      case("a length of 60 GB", GOOD_RECORDS + _huge(60 << 30), "record 4", "cut short"),
      case("no example", framed(b"\xff\xff\xff"), "record 1", "not a tf.train.Example"),
      case(
        "an example of nothing", framed(b""), "record 1", "'input_ids' is missing", "no features"
      ),
      case("another length", framed(_record(8)), "record 1", "8 values, but 4 are expected"),
      case("a feature missing", framed(_record(segment_ids=None)), "'segment_ids' is missing"),
      case("a feature of floats", framed(_record(label_ids=[0.5])), "a float_list", "int64_list"),
      case("two labels", framed(_record(label_ids=[1, 2])), "'label_ids' has 2 values"),
      case("gzip cut short", gzip.compress(GOOD_RECORDS, mtime=0)[:-9], "record ", "cut short"),
      case("gzip damaged", gzip.compress(GOOD_RECORDS)[:30] + b"\xff" * 30, "record 1"),
    ],
  ),
  _records(
    "records with a manifest",
    loading(_read_all),
    [
      case("cut between records", lambda good: good[:_SIZE], "was written with", "3 records"),
      case("with records added", lambda good: good * 2, "cut short or changed"),
    ],
    **{_MANIFEST: json.dumps({"records": 3, "bytes": len(GOOD_RECORDS)}).encode()},
  ),
  _records(
    "records said to be compressed",
    loading(_read_all),
    [case("plain", GOOD_RECORDS, "record 1", "gzip")],
    **{_MANIFEST: b'{"compression": "gzip"}'},
  ),
]

# ---------------------------------------------------------------------------------------------
# Weights of other programs.


def _safetensors(header, values=VALUES) -> bytes:
  data = header if isinstance(header, bytes) else json.dumps(header).encode()
  return struct.pack("<Q", len(data)) + data + values


def _info(shape=(2, 2), dtype="F32", offsets=(0, 16)) -> dict:
  return {"a": {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}}


def _read_weights(folder):
  weights = transformers_folder.open_weights(folder / "model.safetensors")
  return {name: weights.read(name) for name in weights.contents}


SAFETENSORS = [
  Family(
    "safetensors",
    "model.safetensors",
    loading(_read_weights),
    [
      case("missing", None, "No such file"),
      case("empty", b"", "too small"),
      case("cut by a byte", cut(1), "not fully covered"),
      case("a byte too many", lambda good: good + b"\0", "not fully covered"),
      case("a header of exabytes", b"\xff" * 8 + b"{}", "header too large"),
      case("nested too deeply", _safetensors(DEEP.encode()), "invalid JSON"),
      case("a negative size", _safetensors(_info([-2, -2])), "`-2`"),
      case("a zero beside 4 EB", _safetensors(_info([1 << 61, 0], offsets=[0, 0]), b""), "larger"),
    ],
    {"model.safetensors": _safetensors(_info())},
  ),
]

_TOKENIZER = '{"model": {"type": "WordPiece", "vocab": {"a": 0, "b": 1}}, "added_tokens": %s}'
TRANSFORMERS = [
  Family(
    "transformers' tokenizer",
    "tokenizer.json",
    loading(lambda folder: tokenization.load_vocab(model_files.need_vocabulary(folder))),
    [
      case("cut short", '{"model": ', "not valid JSON"),
      case("of words", '{"model": {"type": "WordLevel", "vocab": {}}}', "of the type WordLevel"),
      case("a gap", '{"model": {"type": "WordPiece", "vocab": {"a": 0, "b": 2}}}', "0, 1, 2"),
      case("a number for a token", _TOKENIZER % "[5]", "0, 1, 2"),
    ],
  ),
]

# ---------------------------------------------------------------------------------------------
# SavedModels, folders of runs, and other file systems.


@pytest.fixture(scope="module")
def other_models(tmp_path_factory) -> pathlib.Path:
  """SavedModels that are not ours: without a signature, and of the lengths of texts."""

  class Multiplying(tf.Module):
    def __init__(self):
      self.factor = tf.Variable(2)

    @tf.function(input_signature=[tf.TensorSpec([None], tf.string, name="x")], autograph=False)
    def multiply(self, x):
      return {"y": self.factor * tf.strings.length(x)}

  folder, module = tmp_path_factory.mktemp("models"), Multiplying()
  signatures = {"serving_default": module.multiply}
  tf.saved_model.save(module, str(folder / "lengths"), signatures)
  tf.saved_model.save(tf.Module(), str(folder / "no_signature"))
  return folder


def _load_saved_model(folder):
  return predictor.Predictor.load(str(folder / "model"))


SAVED_MODELS = [
  Family(
    "SavedModel",
    "model/saved_model.pb",
    loading(_load_saved_model),
    [
      case("missing", None, "has no checkpoint"),
      case("a folder", FOLDER, "model"),
      case("text", b"no protocol buffer\n" * 9, "is damaged"),
      case("empty", b"", "do not have BERT's names"),
    ],
    named="model",
  ),
  Family(
    "a run's folder",
    "run/model.ckpt-1.index",
    loading(lambda folder: load_run.find_run(folder / "run")),
    [
      case("no checkpoint", None, "has no checkpoint"),
      case("no run", GOOD, "is not a fine-tuned model", "masked_words"),
    ],
    {"run/model.ckpt-1.data-00000-of-00001": VALUES, "run/other": b""},
    named="run",
  ),
]

FAMILIES = [*CHECKPOINTS, *RECORDS, *SAFETENSORS, *TRANSFORMERS, *SAVED_MODELS]


@pytest.mark.parametrize(("family", "row"), rows_of(FAMILIES))
def test_a_bad_file_is_refused(family, row, tmp_path):
  check(family, row, tmp_path)


def _damage(model, file, change):
  path = model / file
  content = change(path.read_bytes())
  path.unlink()
  if content is not None:
    path.write_bytes(content)


_VARIABLES = "variables/variables.data-00000-of-00001"
_ANSWERS, _VECTORS = (
  functools.partial(predictor.Predictor.load, task=task) for task in ("answers", "vectors")
)


@pytest.mark.parametrize(
  ("name", "load", "file", "change", "words"),
  [
    ("no_signature", _ANSWERS, None, None, "do not have BERT's names"),
    ("lengths", _VECTORS, None, None, "do not have BERT's names"),
    ("lengths", load_run.find_run, None, None, "do not have BERT's names"),
    ("lengths", _ANSWERS, "saved_model.pb", cut(9), "is damaged"),
    ("lengths", _ANSWERS, "variables/variables.index", cut(9), "is damaged"),
    ("lengths", _ANSWERS, _VARIABLES, cut(1), "is damaged"),
    ("lengths", _ANSWERS, _VARIABLES, flipped(1), "is damaged"),
  ],
)
def test_another_or_a_damaged_saved_model(other_models, name, load, file, change, words, tmp_path):
  """The damage of one that would otherwise be loaded, and refused for what it computes."""
  shutil.copytree(other_models / name, tmp_path / "model")
  if file:
    _damage(tmp_path / "model", file, change)
  message = message_of(loading(lambda folder: load(str(folder / "model"))), tmp_path)
  assert str(tmp_path / "model") in message
  assert words in message


def test_the_good_files_are_used(tmp_path):
  """Or the tables above would prove little."""
  for name, content in CHECKPOINT.items():
    (tmp_path / name).write_bytes(content)
  (tmp_path / "train.tf_record").write_bytes(GOOD_RECORDS)
  (tmp_path / "model.safetensors").write_bytes(_safetensors(_info()))
  assert _read_checkpoint(tmp_path)["a"].tobytes() == VALUES
  assert _read_weights(tmp_path)["a"].tobytes() == VALUES
  _read_all(tmp_path)
  (tmp_path / "checkpoint").write_bytes(b"\xff")  # names no other one, and this is the only one
  assert finding.find_checkpoint(tmp_path) == str(tmp_path / "model.ckpt-1")
