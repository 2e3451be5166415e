"""`tf.contrib.summary` writes the events that TensorFlow 1.15.5 wrote for the same calls."""

import glob

import pytest

from bert_tf1.contrib import summary
from bert_tf1.real import tf


def events(folder) -> list:
  """Step, tag and kind of each value; the order within a step is that of threads."""
  found = []
  for path in glob.glob(f"{folder}/*"):
    for event in tf.train.summary_iterator(path):
      for value in event.summary.value:
        found.append((event.step, value.tag, value.WhichOneof("value"), value.simple_value))
  return sorted(found)


def test_a_host_call(tmp_path):
  with tf.Graph().as_default(), tf.Session() as session:
    global_step = tf.train.get_or_create_global_step()
    step = tf.constant(7, tf.int64)
    with summary.create_file_writer(str(tmp_path), max_queue=1000).as_default() as writer:
      with summary.always_record_summaries():
        summary.scalar("training/loss", tf.constant(2.5), step=step)
        summary.scalar("lr", tf.constant(0.5), family="fam", step=step)
        summary.histogram("h", tf.constant([1.0, 2.0]), step=step)
        with tf.name_scope("ns"):
          summary.scalar("a", tf.constant(1.0))
      with summary.record_summaries_every_n_global_steps(2, global_step=global_step):
        summary.scalar("every2", tf.constant(3.0))
      with summary.never_record_summaries():
        summary.scalar("never", tf.constant(1.0))
      operations = summary.all_summary_ops()
      close = writer.close()
    session.run(tf.global_variables_initializer())
    session.run(summary.summary_writer_initializer_op())
    for _ in range(3):
      session.run(operations)
      session.run(tf.assign_add(global_step, 1))
    session.run(close)
  host = [
    (7, "fam/fam/lr", "simple_value", 0.5),
    (7, "h", "histo", 0.0),
    (7, "training/loss", "simple_value", 2.5),
  ]
  scoped = [(step, "ns/a", "simple_value", 1.0) for step in (0, 1, 2)]
  every_second = [(step, "every2", "simple_value", 3.0) for step in (0, 2)]
  assert events(tmp_path) == sorted(host * 3 + scoped + every_second)


def test_a_database_is_not_there():
  with pytest.raises(AttributeError, match="use create_file_writer"):
    summary.create_db_writer  # noqa: B018
