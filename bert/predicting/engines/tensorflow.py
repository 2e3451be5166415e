"""TensorFlow as an engine: a run's checkpoint, traced from tokens.

engine = load("out/model.ckpt-343", config, head=head)
"""

from bert.exporting import token_graph
from bert.model.task_head import Head
from bert.modeling import BertConfig


class TensorFlowEngine:
  """A `TokenGraph` as an `engine.Engine`."""

  name = "tensorflow"

  def __init__(self, graph: token_graph.TokenGraph):
    self.inputs = graph.inputs
    self._graph = graph

  def __call__(self, batch):
    """See `engine.Engine`."""
    return {name: value.numpy() for name, value in self._graph(batch).items()}


def load(path: str, config: BertConfig, head: Head, dtype: str = "float32") -> TensorFlowEngine:
  """Loads a task's model.

  Args:
    path: prefix of its checkpoint.
    config: of the model.
    head: of the task.
    dtype: of matrix products.

  Raises:
    CheckpointError: the checkpoint lacks a variable, or has it in another shape.
  """
  graph = token_graph.of_task(config, head, dtype, skip_padding=True, for_engine=True)
  graph.load(path)
  return TensorFlowEngine(graph)
