"""Records read in the original's order, batches cut to their lengths, bad files named."""

import gzip
import os

import numpy as np
import pytest
import tensorflow as tf

from bert.io.record_files import RecordError, records_of, serialize_example, write_records
from bert.training.input_pipeline import classifier_features, record_input_fn

LENGTH = 32


def example(number, length, max_length=LENGTH):
  padding = [0] * (max_length - length)
  return {
    "input_ids": [number + 1] * length + padding,
    "input_mask": [1] * length + padding,
    "segment_ids": [0] * max_length,
    "label_ids": [number],
    "is_real_example": [1],
  }


def write(path, count=300, first=0, max_length=LENGTH):
  write_records(path, (example(n, 1 + n % 20, max_length) for n in range(first, first + count)))
  return str(path)


def labels(dataset, batches=None):
  return [batch["label_ids"].numpy().tolist() for batch in dataset.take(batches or -1)]


def params(**more):
  return {"batch_size": 4, "seed": 1, "skip_examples": 0, **more}


def train_fn(path, **more):
  return record_input_fn(path, classifier_features(LENGTH), True, True, **more)


def eval_fn(path, **more):
  return record_input_fn(path, classifier_features(LENGTH), False, False, **more)


# Order.


def test_evaluation_reads_in_file_order_with_a_short_last_batch(tmp_path):
  path = write(tmp_path / "a", count=10)
  dataset = eval_fn(path)(params())
  assert labels(dataset) == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9]]
  dropped = record_input_fn(path, classifier_features(LENGTH), False, True)(params())
  assert labels(dropped) == [[0, 1, 2, 3], [4, 5, 6, 7]]


def test_training_order_is_that_of_a_buffer_of_100_over_the_repeated_file(tmp_path):
  path = write(tmp_path / "a", count=300)
  seen = np.concatenate(labels(train_fn(path)(params(batch_size=30)), 100))
  # A record is drawn from the 100 that were read and not yet drawn: none can come too early.
  assert all(number <= position + 100 for position, number in enumerate(seen[:200]))
  assert sorted(seen[:300].tolist()) != list(range(300))  # Epochs blend.
  assert set(seen.tolist()) == set(range(300))
  assert labels(train_fn(path)(params()), 5) == labels(train_fn(path)(params()), 5)
  assert labels(train_fn(path)(params()), 5) != labels(train_fn(path)(params(seed=2)), 5)


@pytest.mark.parametrize("shards", [1, 5])
def test_training_goes_on_after_skipped_examples(tmp_path, shards):
  paths = [write(tmp_path / str(n), count=30, first=30 * n) for n in range(shards)]
  straight = labels(train_fn(paths)(params()), 60)
  assert labels(train_fn(paths)(params(skip_examples=128)), 28) == straight[32:]


def test_all_shards_are_read_in_training(tmp_path):
  paths = [write(tmp_path / str(n), count=5, first=5 * n) for n in range(7)]
  seen = np.concatenate(labels(train_fn(paths)(params(batch_size=35)), 10))
  assert set(seen.tolist()) == set(range(35))


# Numbers of examples, for what is drawn for each of them.


def numbered(path, is_training, **more):
  """An input_fn whose batches hold number and seed of each example."""

  def transform(features, numbers, seed):
    first_id = features["input_ids"][:, 0]
    seeds = tf.fill(tf.shape(numbers), seed)
    return {**features, "number": numbers, "seed": seeds, "first_id": first_id}

  features = classifier_features(LENGTH)
  return record_input_fn(path, features, is_training, False, transform=transform, **more)


def column(dataset, name, batches):
  return np.concatenate([batch[name].numpy() for batch in dataset.take(batches)]).tolist()


@pytest.mark.parametrize("shards", [1, 3])
def test_numbers_in_training_go_on_where_a_run_stopped(tmp_path, shards):
  paths = [write(tmp_path / str(n), count=7, first=7 * n) for n in range(shards)]
  straight = numbered(paths, True)(params())
  resumed = numbered(paths, True)(params(skip_examples=12))
  assert column(straight, "number", 8) == list(range(32))
  for name in ("number", "label_ids", "seed"):
    assert column(resumed, name, 5) == column(straight, name, 8)[12:]
  assert set(column(straight, "seed", 1)) == {1}


# Batches of similar lengths.


def write_mixed(path, count=400, first=0):
  """Lengths without order, so that sorting them matters."""
  lengths = np.random.RandomState(first).randint(1, LENGTH + 1, count)
  write_records(path, (example(first + n, int(length)) for n, length in enumerate(lengths)))
  return str(path)


def padding_share(dataset, batches):
  masks = [batch["input_mask"].numpy() for batch in dataset.take(batches)]
  return 1 - sum(mask.sum() for mask in masks) / sum(mask.size for mask in masks)


def test_grouping_by_length_leaves_less_padding(tmp_path):
  path = write_mixed(tmp_path / "a")
  plain, grouped = (
    train_fn(path, round_length_to=1, group_by_length=group)(params(batch_size=16))
    for group in (False, True)
  )
  assert padding_share(plain, 25) > 0.4
  assert padding_share(grouped, 25) < 0.15
  shapes = {tuple(batch["input_ids"].shape) for batch in grouped.take(50)}
  assert {batch_size for batch_size, _ in shapes} == {16}
  lengths = [batch["input_ids"].shape[1] for batch in grouped.take(25)]
  assert lengths != sorted(lengths)
  assert lengths != sorted(lengths, reverse=True)


@pytest.mark.parametrize("shards", [1, pytest.param(3, marks=pytest.mark.ci)])
def test_grouped_training_goes_on_after_skipped_examples(tmp_path, shards):
  """Whatever the step, also in the middle of a window and past the end of an epoch."""
  write_one = [write_mixed, write_gzip, write_mixed]
  paths = [write_one[n](tmp_path / str(n), count=60, first=60 * n) for n in range(shards)]
  input_fn = numbered(paths, True, group_by_length=True)

  def examples(step):
    batches = input_fn(params(skip_examples=4 * step)).take(70 - step)
    names = ("number", "label_ids", "first_id")
    return [tuple(batch[name].numpy().tolist() for name in names) for batch in batches]

  straight = examples(0)
  assert [number for numbers, _, _ in straight for number in numbers] == list(range(280))
  for step in (1, 3, 11, 15, 45, 60):  # A window has 3 batches of one file, 11 of three.
    assert examples(step) == straight[step:], step


def test_grouping_needs_lengths(tmp_path):
  path = write(tmp_path / "a", count=3)
  features = {"input_ids": tf.io.FixedLenFeature([LENGTH], tf.int64)}
  with pytest.raises(ValueError, match="input_mask"):
    record_input_fn(path, features, True, True, group_by_length=True)


# Compressed files.


def write_gzip(path, **more):
  """As `write`, compressed, without a manifest."""
  write(path, **more)
  os.remove(path.parent / f".{path.name}.manifest.json")
  path.write_bytes(gzip.compress(path.read_bytes()))
  return str(path)


@pytest.mark.parametrize("is_training", [True, False])
@pytest.mark.parametrize("compressed", [{0, 1, 2}, {1}, {0, 2}])
def test_compressed_and_plain_files_hold_the_same(tmp_path, compressed, is_training):
  plain = [write(tmp_path / f"plain-{n}", count=9, first=9 * n) for n in range(3)]
  mixed = [
    (write_gzip if n in compressed else write)(tmp_path / f"mixed-{n}", count=9, first=9 * n)
    for n in range(3)
  ]
  features = classifier_features(LENGTH)
  both = [
    labels(record_input_fn(f, features, is_training, False)(params()), 6) for f in (plain, mixed)
  ]
  assert both[0] == both[1]
  assert len(both[0]) == 6
  assert [len(list(records_of(path))) for path in mixed] == [9, 9, 9]


def read_all(path):
  input_fn = eval_fn(path)  # finds what is wrong with the first record
  try:
    return labels(input_fn(params()))
  except tf.errors.OpError as error:
    raise input_fn.explain_error(error) from None


@pytest.mark.parametrize("damage", ["cut", "flipped"])
def test_a_damaged_compressed_file_is_named(tmp_path, damage):
  path = tmp_path / "a"
  write_gzip(path, count=400)
  data = bytearray(path.read_bytes())
  data[len(data) // 2] ^= 255
  path.write_bytes(data if damage == "flipped" else data[: len(data) // 2])
  with pytest.raises(RecordError, match=r"a, record \d+: the file is damaged or cut short there"):
    list(records_of(path))
  with pytest.raises(RecordError, match="damaged or cut short"):
    read_all(path)


# Shapes and types.


def test_batches_are_cut_to_their_longest_example_rounded_up(tmp_path):
  path = tmp_path / "a"
  lengths = [3, 8, 9, 17, 25, 32]
  write_records(path, (example(n, length) for n, length in enumerate(lengths)))
  dataset = eval_fn(path)(params(batch_size=1))
  shapes = [batch["input_ids"].shape[1] for batch in dataset]
  assert shapes == [8, 8, 16, 24, 32, 32]
  for batch, length in zip(dataset, lengths, strict=True):
    assert batch["input_mask"].numpy().sum() == length
    assert batch["segment_ids"].shape == batch["input_ids"].shape
  assert dataset.element_spec["input_ids"].dtype == tf.int32
  assert dataset.element_spec["input_ids"].shape.as_list() == [None, None]
  assert dataset.element_spec["label_ids"].shape.as_list() == [None]


def test_a_cut_never_exceeds_the_records_nor_falls_into_a_hole_of_the_mask(tmp_path):
  path = tmp_path / "a"
  hole = example(0, 3, max_length=20)
  hole["input_mask"][18] = 1
  write_records(path, [hole])
  features = classifier_features(20)
  batch = next(iter(record_input_fn(path, features, False, False)(params())))
  assert batch["input_ids"].shape == [1, 20]


# Bad files.


def assert_refused(path, *parts, **more):
  with pytest.raises(RecordError) as caught:
    eval_fn(path, **more)
  for part in (str(path), *parts):
    assert part in str(caught.value)


def test_missing_empty_or_foreign_files_are_named(tmp_path):
  assert_refused(tmp_path / "missing", "does not exist")
  assert_refused(tmp_path, "is a folder")
  (tmp_path / "empty").write_bytes(b"")
  assert_refused(tmp_path / "empty", "holds no record")
  (tmp_path / "text").write_bytes(b"not a record file at all, " * 10)
  assert_refused(tmp_path / "text", "record 1", "damaged")
  with pytest.raises(RecordError, match="matches nothing"):
    eval_fn([])


def test_wrong_length_missing_feature_and_wrong_type_are_named(tmp_path):
  write(tmp_path / "long", count=2, max_length=64)
  assert_refused(tmp_path / "long", "record 1", "'input_ids' has 64 values, but 32")
  write_records(tmp_path / "less", [{"input_ids": [1] * LENGTH}])
  assert_refused(tmp_path / "less", "record 1", "'input_mask' is missing", "input_ids")
  wrong = {**example(0, 3), "label_ids": [0.5]}
  write_records(tmp_path / "wrong", [wrong])
  assert_refused(tmp_path / "wrong", "'label_ids' is a float_list")
  write_records(tmp_path / "garbage", [b"\xff\xff\xff"])
  assert_refused(tmp_path / "garbage", "record 1", "not a tf.train.Example")


def fourth_of_six(path):
  """Writes six records without a manifest; where the fourth begins, and where it ends."""
  write(path, count=6)
  os.remove(path.parent / f".{path.name}.manifest.json")
  sizes = [len(serialize_example(example(n, 1 + n % 20))) + 16 for n in range(6)]
  return sum(sizes[:3]), sum(sizes[:4])


@pytest.mark.parametrize("where", ["payload", "checksum", "flipped"])
def test_damage_further_on_is_explained_with_its_record(tmp_path, where):
  path = tmp_path / "a"
  begin, end = fourth_of_six(path)
  data = bytearray(path.read_bytes())
  data[begin + 40] ^= 1 if where == "flipped" else 0
  cut = {"payload": begin + 40, "checksum": end - 2, "flipped": len(data)}
  path.write_bytes(data[: cut[where]])
  input_fn = eval_fn(path)
  with pytest.raises(tf.errors.DataLossError) as caught:
    list(input_fn(params(batch_size=2)))
  clear = input_fn.explain_error(caught.value)
  assert isinstance(clear, RecordError)
  assert f"{path}, record 4" in str(clear)


def test_a_cut_between_records_is_seen_by_the_manifest(tmp_path):
  path = tmp_path / "a"
  begin, _ = fourth_of_six(path)
  data = path.read_bytes()
  path.write_bytes(data[:begin])
  assert len(labels(eval_fn(path)(params(batch_size=1)))) == 3  # TFRecord alone is none the wiser.
  write(path, count=6)
  path.write_bytes(data[:begin])
  assert_refused(path, f"has {begin} bytes", f"with {len(data)} (6 records)", ".a.manifest.json")


def test_the_order_depends_on_no_seed_but_its_own(tmp_path):
  path = write(tmp_path / "a.tf_record")
  paths = [path, write(tmp_path / "b.tf_record", first=300)]
  orders = [[labels(train_fn(files)(params()), 40) for files in (path, paths)]]
  tf.random.set_seed(7)
  try:
    orders.append([labels(train_fn(files)(params()), 40) for files in (path, paths)])
    tf.random.set_seed(7)
    drawn = [float(tf.random.uniform([])) for _ in range(2)]
    tf.random.set_seed(7)
    again = [float(tf.random.uniform([]))]
    train_fn(path)(params())
    assert [*again, float(tf.random.uniform([]))] == drawn  # nor does it touch those of others
  finally:
    tf.random.set_seed(None)
  assert orders[0] == orders[1]
