"""`tf.contrib.data`: what became `tf.data.experimental`, and the few that did not.

`map_and_batch` is one fused operation that maps `batch_size` elements at once.
`parallel_interleave` reads its files in threads of its own. What is made to be applied
(`dataset.apply(...)`) takes the arguments of 1.15.
"""

from collections.abc import Callable

from bert_tf1.errors import unknown_name
from bert_tf1.real import tf

AUTOTUNE = tf.data.experimental.AUTOTUNE
Counter = tf.data.experimental.Counter
CsvDataset = tf.data.experimental.CsvDataset
Optional = tf.data.experimental.Optional
RandomDataset = tf.data.experimental.RandomDataset
Reducer = tf.data.experimental.Reducer
SqlDataset = tf.data.experimental.SqlDataset
TFRecordWriter = tf.data.experimental.TFRecordWriter
bucket_by_sequence_length = tf.data.experimental.bucket_by_sequence_length
choose_from_datasets = tf.data.experimental.choose_from_datasets
copy_to_device = tf.data.experimental.copy_to_device
dense_to_sparse_batch = tf.data.experimental.dense_to_sparse_batch
enumerate_dataset = tf.data.experimental.enumerate_dataset
get_next_as_optional = tf.data.experimental.get_next_as_optional
get_single_element = tf.data.experimental.get_single_element
group_by_reducer = tf.data.experimental.group_by_reducer
group_by_window = tf.data.experimental.group_by_window
ignore_errors = tf.data.experimental.ignore_errors
make_batched_features_dataset = tf.data.experimental.make_batched_features_dataset
make_csv_dataset = tf.data.experimental.make_csv_dataset
make_saveable_from_iterator = tf.data.experimental.make_saveable_from_iterator
map_and_batch = tf.data.experimental.map_and_batch
parallel_interleave = tf.data.experimental.parallel_interleave
parse_example_dataset = tf.data.experimental.parse_example_dataset
prefetch_to_device = tf.data.experimental.prefetch_to_device
rejection_resample = tf.data.experimental.rejection_resample
sample_from_datasets = tf.data.experimental.sample_from_datasets
scan = tf.data.experimental.scan
shuffle_and_repeat = tf.data.experimental.shuffle_and_repeat
unbatch = tf.data.experimental.unbatch
unique = tf.data.experimental.unique


def batch_and_drop_remainder(batch_size) -> Callable:
  """Returns what applies `dataset.batch(batch_size, drop_remainder=True)`."""
  return lambda dataset: dataset.batch(batch_size, drop_remainder=True)


def padded_batch_and_drop_remainder(batch_size, padded_shapes, padding_values=None) -> Callable:
  """Returns what applies `dataset.padded_batch(..., drop_remainder=True)`."""
  return lambda dataset: dataset.padded_batch(
    batch_size, padded_shapes, padding_values=padding_values, drop_remainder=True
  )


def sloppy_interleave(map_func, cycle_length, block_length=1) -> Callable:
  """Returns what applies `parallel_interleave` in whatever order the elements come first."""
  return parallel_interleave(map_func, cycle_length, block_length, sloppy=True)


__getattr__ = unknown_name(__name__)
