"""The log below the 1.x face."""

import logging
import os
import subprocess
import sys

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


def test_the_last_words_of_a_process_that_dies_at_the_start_are_shown():
  code = (
    "import os\nfrom bert_tf1 import start_lines\nwith start_lines.hidden():\n"
    "  os.write(2, b'F0000 This machine has no AVX instructions')\n  os.abort()"
  )
  environment = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2"}
  done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True)
  assert done.stderr == b"F0000 This machine has no AVX instructions"
