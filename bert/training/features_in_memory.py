"""An `input_fn` over features in memory, where scripts read them from records."""


def input_fn_builder(features, seq_length, is_training, drop_remainder):
  """Creates an input_fn over `InputFeatures` in memory, as the original's notebooks use it.

  Args:
    features: list of `InputFeatures` of a classification task.
    seq_length: their `max_seq_length`.
    is_training: repeat and shuffle.
    drop_remainder: leave out a last batch that is short.

  Returns:
    `input_fn(params)` -> `tf.data.Dataset` of name -> int32 `[B, seq_length]` or `[B]`.
  """
  import tensorflow as tf

  from bert.training import input_pipeline

  columns = {
    name: tf.constant(
      [getattr(feature, name) for feature in features], tf.int32, [len(features), seq_length]
    )
    for name in ("input_ids", "input_mask", "segment_ids")
  }
  columns["label_ids"] = tf.constant([feature.label_id for feature in features], tf.int32)
  columns["is_real_example"] = tf.constant([int(f.is_real_example) for f in features], tf.int32)

  def input_fn(params):
    dataset = tf.data.Dataset.from_tensor_slices(columns)
    if is_training:
      seed = params.get("seed", 12345)
      dataset = input_pipeline.shuffled(dataset.repeat(), 100, seed)
      dataset = dataset.skip(params.get("skip_examples", 0))
    return dataset.batch(params["batch_size"], drop_remainder=drop_remainder)

  return input_fn
