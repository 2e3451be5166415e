"""`tf.contrib.lookup`: tables between strings and ids. `tf.tables_initializer()` fills them.

Ids of words outside a vocabulary are as in 1.15: `default_value`, or with `num_oov_buckets=N` one
of N ids after the vocabulary's, by the word's hash.
"""

from tensorflow.python.ops import lookup_ops

from bert_tf1.errors import unknown_name
from bert_tf1.real import tf

FastHashSpec = lookup_ops.FastHashSpec
HasherSpec = lookup_ops.HasherSpec
IdTableWithHashBuckets = lookup_ops.IdTableWithHashBuckets
KeyValueTensorInitializer = tf.lookup.KeyValueTensorInitializer
LookupInterface = lookup_ops.LookupInterface
StrongHashSpec = lookup_ops.StrongHashSpec
TextFileIdTableInitializer = lookup_ops.TextFileIdTableInitializer
TextFileIndex = tf.lookup.TextFileIndex
TextFileInitializer = tf.lookup.TextFileInitializer
TextFileStringTableInitializer = lookup_ops.TextFileStringTableInitializer
index_table_from_file = lookup_ops.index_table_from_file
index_to_string_table_from_file = lookup_ops.index_to_string_table_from_file


class HashTable(lookup_ops.StaticHashTableV1):
  """A table that does not change once it is filled.

  Args:
    initializer: the keys and values.
    default_value: of keys that are not in the table.
    shared_name: not used: sessions in one process share no tables.
    name: of the operation.
  """

  def __init__(self, initializer, default_value, shared_name=None, name=None):
    super().__init__(initializer, default_value, name=name)

  @property
  def init(self):
    """The op that fills the table."""
    return self.initializer


class MutableHashTable(lookup_ops.MutableHashTable):
  """A table that `insert` changes."""

  def __init__(
    self, key_dtype, value_dtype, default_value, name="MutableHashTable", checkpoint=True
  ):
    super().__init__(key_dtype, value_dtype, default_value, name, checkpoint)


def index_table_from_tensor(
  mapping, num_oov_buckets=0, default_value=-1, hasher_spec=FastHashSpec, dtype=tf.string, name=None
):
  """Returns a table from the values of `mapping`, a 1-D tensor, to their positions in it."""
  return lookup_ops.index_table_from_tensor(
    mapping, num_oov_buckets, default_value, hasher_spec, dtype, name
  )


def index_to_string_table_from_tensor(mapping, default_value="UNK", name=None):
  """Returns a table from positions in `mapping`, a 1-D tensor, to its strings."""
  return lookup_ops.index_to_string_table_from_tensor(mapping, default_value, name)


def string_to_index_table_from_file(
  vocabulary_file=None,
  num_oov_buckets=0,
  vocab_size=None,
  default_value=-1,
  hasher_spec=FastHashSpec,
  name=None,
):
  """Returns a table from the lines of a file to their numbers, from 0."""
  return index_table_from_file(
    vocabulary_file, num_oov_buckets, vocab_size, default_value, hasher_spec, name=name
  )


def string_to_index_table_from_tensor(
  mapping, num_oov_buckets=0, default_value=-1, hasher_spec=FastHashSpec, name=None
):
  """`index_table_from_tensor` of strings."""
  return index_table_from_tensor(
    mapping, num_oov_buckets, default_value, hasher_spec, tf.string, name
  )


def string_to_index(tensor, mapping, default_value=-1, name=None):
  """Returns the positions in `mapping` of the tensor's strings."""
  return index_table_from_tensor(mapping, default_value=default_value, name=name).lookup(tensor)


def index_to_string(tensor, mapping, default_value="UNK", name=None):
  """Returns the strings of `mapping` at the tensor's positions."""
  return index_to_string_table_from_tensor(mapping, default_value, name).lookup(tensor)


__getattr__ = unknown_name(__name__)
