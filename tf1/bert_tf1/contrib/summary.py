"""`tf.contrib.summary`: summaries that are ops of the graph, as the host calls of TPUs write them.

An op is recorded in the writer that is the default where it is made (`with writer.as_default()`),
for steps that `always_record_summaries` or `record_summaries_every_n_global_steps` ask for. A
session runs `summary_writer_initializer_op()` once, then `all_summary_ops()` with each step.
"""

from tensorflow.python.ops import summary_ops_v2

from bert_tf1.errors import unknown_name
from bert_tf1.real import tf

all_summary_ops = tf.summary.all_v2_summary_ops
always_record_summaries = summary_ops_v2.always_record_summaries
audio = summary_ops_v2.audio
create_file_writer = summary_ops_v2.create_file_writer
create_summary_file_writer = summary_ops_v2.create_summary_file_writer
eval_dir = summary_ops_v2.eval_dir
flush = summary_ops_v2.flush
generic = summary_ops_v2.generic
graph = summary_ops_v2.graph
histogram = summary_ops_v2.histogram
image = summary_ops_v2.image
import_event = summary_ops_v2.import_event
initialize = tf.summary.initialize
never_record_summaries = summary_ops_v2.never_record_summaries
record_summaries_every_n_global_steps = summary_ops_v2.record_summaries_every_n_global_steps
scalar = summary_ops_v2.scalar
should_record_summaries = summary_ops_v2.should_record_summaries
summary_writer_initializer_op = summary_ops_v2.summary_writer_initializer_op

__getattr__ = unknown_name(__name__, {"create_db_writer": "use create_file_writer."})
