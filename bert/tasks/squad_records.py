"""SQuAD's windows as TFRecord files."""

import os

from bert.io import record_files
from bert.tasks import squad_features
from bert.tasks.squad_features import InputFeatures


def write_features(path: str, features, is_training: bool) -> int:
  """Writes windows, with answers in training, as a TFRecord file; returns their number.

  The file appears when it is complete. An OSError says that it cannot be written.
  """
  records = (squad_features.record_of(feature, is_training) for feature in features)
  return record_files.write_records(path, records)


class FeatureWriter:
  """Writes windows one by one, as the original's users do; `write_features` takes all at once.

  Attributes:
    filename: the TFRecord file.
    is_training: whether to write the answer's place.
    num_features: windows written so far.
  """

  def __init__(self, filename, is_training):
    import tensorflow as tf

    self.filename = filename
    self.is_training = is_training
    self.num_features = 0
    self._writer = tf.io.TFRecordWriter(os.fsdecode(filename))

  def process_feature(self, feature: InputFeatures) -> None:
    """Writes one window."""
    self.num_features += 1
    record = squad_features.record_of(feature, self.is_training)
    self._writer.write(record_files.serialize_example(record))

  def close(self) -> None:
    """Completes the file."""
    self._writer.close()
