"""The order of reading and counting the global step within one training step.

A model_fn of 1.x reads the step for its learning rate and adds 1 to it in the same `session.run`,
with nothing that says which comes first. In 1.15 it was a race: the same script took the rate of
this step or of the next one, and one of them nearly always on a given machine; and a run whose
input ended could count a step that never was. Here the count comes after the loss and after every
reader, so step k always uses the rate of step k.
"""

from collections.abc import Iterable

from tensorflow.python.training import training_util

from bert_tf1.real import tf

_COUNTS = ("Assign", "AssignAdd", "AssignVariableOp", "AssignAddVariableOp")
# These hand a value on without copying it: what matters is when *their* readers run.
_ALIASES = ("Identity", "Switch", "RefSwitch", "Merge", "RefMerge", "Enter", "RefEnter", "Exit")


def count_after_readers(graph: tf.Graph, loss: tf.Tensor | None = None) -> None:
  """Makes the ops that change the global step wait for the loss and for all that read the step."""
  variable = tf.train.get_global_step(graph)
  if variable is None:
    return
  training_util._get_or_create_global_step_read(graph)  # What hooks will read it by.
  handle = variable.handle.op if hasattr(variable, "handle") else variable.op
  users = [op for output in handle.outputs for op in output.consumers()]
  # The initializer assigns too, and belongs to no step.
  counts = [op for op in users if op.type in _COUNTS and op is not variable.initializer]
  readers = {op for op in _readers(handle) if op.type not in _COUNTS and not _acts(op)}
  if loss is not None:
    readers.add(loss.op)
  for count in counts:
    later = _descendants(count)
    count._add_control_inputs([op for op in readers if op not in later and op not in counts])


def _acts(op: tf.Operation) -> bool:
  """Tells whether running `op` does more than compute: a Saver's op writes a file, a print a line.

  Such an op is no part of each step, and what the count waits for always runs.
  """
  return op.op_def.is_stateful and not op.type.endswith("ReadVariableOp")


def _readers(source: tf.Operation) -> Iterable[tf.Operation]:
  """Returns the ops that use the value of `source`, followed through aliases and out of conditions.

  An op within a condition may never run, and what waits for it would not run either; so its
  consumers outside the condition stand for it.
  """
  found, waiting, seen = [], [source], set()
  while waiting:
    op = waiting.pop()
    for consumer in (c for output in op.outputs for c in output.consumers()):
      if consumer in seen:
        continue
      seen.add(consumer)
      inside = consumer._get_control_flow_context() is not None
      if inside or consumer.type in _ALIASES or consumer.type.endswith("ReadVariableOp"):
        waiting.append(consumer)
      if not inside and consumer.type not in _ALIASES:
        found.append(consumer)
  return found


def _descendants(op: tf.Operation) -> set[tf.Operation]:
  """`op` and all that runs after it."""
  found, waiting = {op}, [op]
  while waiting:
    current = waiting.pop()
    nexts = [c for output in current.outputs for c in output.consumers()]
    for follower in (*nexts, *current._control_outputs):
      if follower not in found:
        found.add(follower)
        waiting.append(follower)
  return found
