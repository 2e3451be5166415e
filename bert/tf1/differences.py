"""What is there, but not as TensorFlow 1.15 had it: one sentence for each name."""

DIFFERENCES: dict[str, str] = {
  "tf.contrib.tpu.TPUConfig": "The fields about TPU hardware are taken and not used.",
}
