"""The log below the 1.x face."""

import logging

from bert_tf1.real import tf


def test_a_saved_checkpoint_is_one_line_of_the_log(tmp_path):
  logged = []

  class Keep(logging.Handler):
    def emit(self, record):
      logged.append(record.getMessage())

  handler = Keep()
  logging.getLogger("tensorflow").addHandler(handler)
  tf.logging.set_verbosity(tf.logging.INFO)
  try:
    with tf.Graph().as_default():
      step = tf.train.create_global_step()
      hook = tf.train.CheckpointSaverHook(str(tmp_path), save_steps=10)
      with tf.train.MonitoredSession(hooks=[hook]) as session:
        session.run(step)
  finally:
    logging.getLogger("tensorflow").removeHandler(handler)
  of_saving = [line for line in logged if "checkpoint" in line]
  assert of_saving == [f"Saving checkpoints for 0 into {tmp_path}/model.ckpt."]
