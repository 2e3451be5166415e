"""Examples and TFRecord frames made from arrays: the bytes that TensorFlow writes."""

import io
import struct

import hypothesis.extra.numpy as arrays_of
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bert.io import record_files, tfrecord_bytes

INTEGERS = st.one_of(
  st.integers(-(2**63), 2**63 - 1), st.integers(0, 127), st.integers(0, 2**15), st.just(0)
)


@st.composite
def feature_arrays(draw):
  """1 to 4 arrays with the same number of rows."""
  rows = draw(st.integers(1, 4))
  shape = st.tuples(st.just(rows), st.integers(0, 40))
  array = st.one_of(
    shape.flatmap(lambda s: arrays_of.arrays(np.int64, s, elements=INTEGERS)),
    shape.flatmap(lambda s: arrays_of.arrays(np.int32, s)),
    shape.flatmap(lambda s: arrays_of.arrays(bool, s)),
    shape.flatmap(lambda s: arrays_of.arrays(np.float32, s)),
  )
  return draw(st.dictionaries(st.text(max_size=30), array, min_size=1, max_size=4))


def is_encodable(name):
  return not any(0xD800 <= ord(char) < 0xE000 for char in name)


@settings(max_examples=80, deadline=None)
@given(feature_arrays())
def test_examples_have_the_bytes_of_protobuf(features):
  features = {name: array for name, array in features.items() if is_encodable(name)}
  records = list(tfrecord_bytes.encode_examples(features)) if features else []
  for row, record in enumerate(records):
    expected = {name: array[row] for name, array in features.items()}
    assert record == record_files.serialize_example(expected)


def test_features_of_unequal_numbers_of_rows_are_refused():
  features = {"a": np.zeros((2, 1), np.int64), "b": np.zeros((3, 1), np.int64)}
  with pytest.raises(ValueError, match=r"shorter|longer"):
    list(tfrecord_bytes.encode_examples(features))


@settings(max_examples=30, deadline=None)
@given(st.lists(st.binary(max_size=300), max_size=6))
def test_frames_are_those_of_tensorflow(tmp_path_factory, records):
  import tensorflow as tf

  path = tmp_path_factory.mktemp("records") / "file"
  with tf.io.TFRecordWriter(str(path)) as writer:
    for record in records:
      writer.write(record)
  frames = [tfrecord_bytes.framed(record) for record in records]
  assert path.read_bytes() == b"".join(frames)
  assert [tfrecord_bytes.framed_size(frame) for frame in frames] == list(map(len, frames))


def test_every_cut_and_every_flipped_byte_is_noticed():
  frames = [tfrecord_bytes.framed(record) for record in (b"one", b"", b"three" * 9)]
  data = b"".join(frames)
  bounds = {0, len(frames[0]), len(frames[0] + frames[1]), len(data)}
  for cut in set(range(len(data))) - bounds:
    with pytest.raises(tfrecord_bytes.FrameError):
      list(tfrecord_bytes.unframed(io.BytesIO(data[:cut])))
  for place in range(len(data)):
    flipped = data[:place] + bytes([data[place] ^ 4]) + data[place + 1 :]
    with pytest.raises(tfrecord_bytes.FrameError, match="checksum"):
      list(tfrecord_bytes.unframed(io.BytesIO(flipped)))


def test_a_length_costs_no_more_than_the_bytes_that_are_there(tmp_path):
  head = struct.pack("<Q", 1 << 62)
  head += struct.pack("<I", tfrecord_bytes.masked_crc32c(head))
  (tmp_path / "bomb").write_bytes(head + b"a few bytes")
  with open(tmp_path / "bomb", "rb") as reader:
    with pytest.raises(tfrecord_bytes.FrameError, match="the file ends"):
      list(tfrecord_bytes.unframed(reader))
