"""`tf.contrib.graph_editor`: what memory-saving gradients need of it.

They compute a model's forward part a second time within the backward one, instead of keeping its
activations: they walk a graph from operation to operation, copy a part of it and have the copies
read other tensors. A loop (`tf.while_loop`) cannot be copied.
"""

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from tensorflow.python.framework import ops as tf_ops
from tensorflow.python.ops.op_selector import (
  get_consuming_ops,
  get_generating_ops,
  get_tensors,
  get_unique_graph,
  make_list_of_op,
  make_list_of_t,
)

from bert_tf1.errors import unknown_name
from bert_tf1.real import tf

__all__ = [
  "ControlOutputs",
  "SubGraphView",
  "TransformerInfo",
  "add_control_inputs",
  "compute_boundary_ts",
  "copy_with_input_replacements",
  "filter_ops",
  "filter_ops_from_regex",
  "filter_ts",
  "filter_ts_from_regex",
  "get_backward_walk_ops",
  "get_consuming_ops",
  "get_forward_walk_ops",
  "get_generating_ops",
  "get_name_scope_ops",
  "get_tensors",
  "get_walks_intersection_ops",
  "graph_replace",
  "make_list_of_op",
  "make_list_of_t",
  "make_view",
  "make_view_from_scope",
  "reroute_ts",
  "select_ops",
  "select_ts",
  "sgv",
  "sgv_scope",
]

# The copy of what is in one of these is in the same one.
_KNOWN_COLLECTIONS = {name for name in vars(tf.GraphKeys).values() if isinstance(name, str)}
_Operations = Any  # a graph, an operation or several
_Tensors = Any  # a graph, a tensor or several


class ControlOutputs:
  """The operations that wait for another one of a graph.

  Args:
    graph: `tf.Graph`, as it is now.
  """

  def __init__(self, graph: tf.Graph):
    self._waiting: dict[tf.Operation, list[tf.Operation]] = {}
    for op in graph.get_operations():
      for one in op.control_inputs:
        self._waiting.setdefault(one, []).append(op)

  def get(self, op: tf.Operation) -> list[tf.Operation]:
    """Returns the operations that have `op` as a control input."""
    return self._waiting.get(op, [])


def filter_ts(ops: _Operations, positive_filter: Any) -> list[tf.Tensor]:
  """Returns the inputs and outputs of operations that a function approves, or of all with True."""
  ops = make_list_of_op(ops)
  tensors = dict.fromkeys([*(t for op in ops for t in op.inputs), *_outputs(ops)])
  return [t for t in tensors if positive_filter is True or positive_filter(t)]


def filter_ts_from_regex(ops: _Operations, regex: str | re.Pattern) -> list[tf.Tensor]:
  """Returns the inputs and outputs of operations in whose names an expression is found."""
  return filter_ts(ops, lambda tensor: re.search(regex, tensor.name))


def filter_ops(ops: _Operations, positive_filter: Any) -> list[tf.Operation]:
  """Returns the operations that a function approves, or of all with True."""
  return [op for op in make_list_of_op(ops) if positive_filter is True or positive_filter(op)]


def filter_ops_from_regex(ops: _Operations, regex: str | re.Pattern) -> list[tf.Operation]:
  """Returns the operations in whose names an expression is found."""
  return filter_ops(ops, lambda op: re.search(regex, op.name))


def get_name_scope_ops(ops: _Operations, scope: str) -> list[tf.Operation]:
  """Returns the operations in a name scope."""
  return filter_ops_from_regex(ops, f"^{scope.removesuffix('/')}(/.*)?$")


def select_ops(
  *args, graph=None, positive_filter=None, restrict_ops_regex=False, restrict_ts_regex=False
) -> list[tf.Operation]:
  """Returns the operations that the arguments name, each once.

  Args:
    *args: operations, lists of them, or regular expressions, which are searched in the names of
      `graph`. Tensors are ignored, and so are expressions that begin with `(?#ts)`.
    graph: is needed for expressions.
    positive_filter: a function that approves an operation.
    restrict_ops_regex: ignore expressions that do not begin with `(?#ops)`.
    restrict_ts_regex: of `select_ts`.

  Raises:
    ValueError: a regular expression without a graph.
  """
  return _select(
    args, graph, positive_filter, "ops" if restrict_ops_regex else "", "ts", filter_ops_from_regex
  )


def select_ts(
  *args, graph=None, positive_filter=None, restrict_ts_regex=False, restrict_ops_regex=False
) -> list[tf.Tensor]:
  """Returns the tensors that the arguments name; see `select_ops`."""
  return _select(
    args, graph, positive_filter, "ts" if restrict_ts_regex else "", "ops", filter_ts_from_regex
  )


def _select(args, graph, positive_filter, only: str, not_these: str, by_name: Callable) -> list:
  found: dict[Any, None] = {}
  for arg in args:
    if isinstance(arg, (str, re.Pattern)):
      if graph is None:
        raise ValueError("Use the keyword argument 'graph' to use regex.")
      pattern = re.compile(arg).pattern
      if pattern.startswith(f"(?#{not_these})") or not pattern.startswith(only and f"(?#{only})"):
        continue
      found.update(dict.fromkeys(by_name(graph, arg)))
    elif by_name is filter_ops_from_regex:
      found.update(dict.fromkeys(make_list_of_op(arg, ignore_ts=True)))
    else:
      found.update(dict.fromkeys(make_list_of_t(arg, ignore_ops=True)))
  return [each for each in found if positive_filter is None or positive_filter(each)]


def get_forward_walk_ops(
  seed_ops: _Operations,
  inclusive: bool = True,
  within_ops: Iterable[tf.Operation] | None = None,
  within_ops_fn: Callable[[tf.Operation], bool] | None = None,
  stop_at_ts: _Tensors = (),
  control_outputs: ControlOutputs | None = None,
) -> list[tf.Operation]:
  """Returns the operations that operations lead to.

  Args:
    seed_ops: where the walk begins; tensors stand for the operations that read them.
    inclusive: return these, too.
    within_ops: the walk stays within these.
    within_ops_fn: the walk stays within those that it approves.
    stop_at_ts: the walk does not go along these tensors.
    control_outputs: walk along control inputs, too.
  """
  stops = set(make_list_of_t(stop_at_ts))

  def following(op):
    yield from (reader for t in op.outputs if t not in stops for reader in t.consumers())
    yield from control_outputs.get(op) if control_outputs else ()

  return _walk(seed_ops, get_consuming_ops, following, inclusive, within_ops, within_ops_fn)


def get_backward_walk_ops(
  seed_ops: _Operations,
  inclusive: bool = True,
  within_ops: Iterable[tf.Operation] | None = None,
  within_ops_fn: Callable[[tf.Operation], bool] | None = None,
  stop_at_ts: _Tensors = (),
  control_inputs: bool = False,
) -> list[tf.Operation]:
  """Returns the operations that lead to operations.

  The other arguments are as in `get_forward_walk_ops`.

  Args:
    seed_ops: where the walk begins; tensors stand for the operations that make them.
    control_inputs: walk along control inputs, too.
  """
  stops = set(make_list_of_t(stop_at_ts))

  def preceding(op):
    yield from (t.op for t in op.inputs if t not in stops)
    yield from op.control_inputs if control_inputs else ()

  return _walk(seed_ops, get_generating_ops, preceding, inclusive, within_ops, within_ops_fn)


def _walk(seeds, ops_of_tensors, neighbours, inclusive, within_ops, within_ops_fn):
  """Returns the operations on all ways from the seeds, nearest first."""
  seeds = [seeds] if isinstance(seeds, (tf.Tensor, tf.Operation)) else list(seeds)
  of_tensors = bool(seeds) and isinstance(seeds[0], tf.Tensor)
  seeds = ops_of_tensors(seeds) if of_tensors else make_list_of_op(seeds, allow_graph=False)
  within = None if within_ops is None else set(make_list_of_op(within_ops, allow_graph=False))
  if within:
    seeds = [op for op in seeds if op in within]
  first = dict.fromkeys(seeds)
  found = dict(first)
  wave = list(first)
  while wave:
    further = dict.fromkeys(
      near
      for op in wave
      for near in neighbours(op)
      if near not in found
      and (within is None or near in within)
      and (within_ops_fn is None or within_ops_fn(near))
    )
    found.update(further)
    wave = list(further)
  return [op for op in found if inclusive or op not in first]


def get_walks_intersection_ops(
  forward_seed_ops: _Operations,
  backward_seed_ops: _Operations,
  forward_inclusive: bool = True,
  backward_inclusive: bool = True,
  within_ops: Iterable[tf.Operation] | None = None,
  within_ops_fn: Callable[[tf.Operation], bool] | None = None,
  control_inputs: bool = False,
  control_outputs: ControlOutputs | None = None,
  control_ios: ControlOutputs | None = None,
) -> list[tf.Operation]:
  """Returns the operations on a way from the first operations to the second ones.

  `control_ios` stands for both `control_inputs` and `control_outputs`.
  """
  forward = get_forward_walk_ops(
    forward_seed_ops,
    forward_inclusive,
    within_ops,
    within_ops_fn,
    control_outputs=control_ios or control_outputs,
  )
  backward = get_backward_walk_ops(
    backward_seed_ops,
    backward_inclusive,
    within_ops,
    within_ops_fn,
    control_inputs=bool(control_ios) or control_inputs,
  )
  behind = set(backward)
  return [op for op in forward if op in behind]


def compute_boundary_ts(ops: _Operations) -> tuple[list, list, list]:
  """Returns the tensors that operations read of others, make for others, and pass among them.

  A tensor that both some of them and others read is in the last two lists. One that nobody reads is
  made for others.
  """
  ops = make_list_of_op(ops)
  members, made = set(ops), set(_outputs(ops))
  read = list(dict.fromkeys(t for op in ops for t in op.inputs))
  inside = [t for t in read if t in made]
  hidden = {t for t in inside if members.issuperset(t.consumers())}
  return [t for t in read if t not in made], [t for t in _outputs(ops) if t not in hidden], inside


def _outputs(ops: Iterable[tf.Operation]) -> list[tf.Tensor]:
  return [t for op in ops for t in op.outputs]


class SubGraphView:
  """Some operations of a graph.

  Attributes:
    graph: the graph; None without operations.
    ops: the operations.
    inputs: the tensors that they read of others.
    outputs: the tensors that they make for others, or for nobody.
  """

  def __init__(self, inside_ops: _Operations = ()):
    self.ops = list(dict.fromkeys(make_list_of_op(inside_ops)))
    self.graph = self.ops[0].graph if self.ops else None
    self.inputs, self.outputs, _ = compute_boundary_ts(self.ops)


def make_view(*args, **kwargs) -> SubGraphView:
  """Returns a view of a view, or of the operations that `select_ops` takes."""
  if len(args) == 1 and isinstance(args[0], SubGraphView):
    return args[0]
  return SubGraphView(select_ops(*args, **kwargs))


def make_view_from_scope(scope: str, graph: tf.Graph) -> SubGraphView:
  """Returns a view of the operations in a name scope."""
  return SubGraphView(get_name_scope_ops(graph, scope))


sgv, sgv_scope = make_view, make_view_from_scope


class TransformerInfo:
  """What is the copy of an operation or a tensor."""

  def __init__(self):
    self._transformed_ops: dict[tf.Operation, tf.Operation] = {}
    self._transformed_ts: dict[tf.Tensor, tf.Tensor] = {}

  def transformed(self, original: Any, missing_fn: Callable[[Any], Any] | None = None) -> Any:
    """Returns the copy of an operation or tensor, or of each in a list or dict.

    For one without a copy it returns `missing_fn` of it, or None.
    """
    copies = {**self._transformed_ops, **self._transformed_ts}
    missing_fn = missing_fn or (lambda one: None)
    return tf.nest.map_structure(
      lambda one: copies[one] if one in copies else missing_fn(one), original
    )


def copy_with_input_replacements(
  sgv: Any,
  replacement_ts: Mapping[tf.Tensor, tf.Tensor],
  dst_graph: tf.Graph | None = None,
  dst_scope: str = "",
  src_scope: str = "",
  reuse_dst_scope: bool = False,
) -> tuple[SubGraphView, TransformerInfo]:
  """Copies operations. A copy reads the copies' tensors, and others as its original does.

  Args:
    sgv: a view, or what `make_view` takes.
    replacement_ts: what copies read instead of a tensor of another operation.
    dst_graph: the operations' own graph.
    dst_scope: the copies' name scope.
    src_scope: a scope that all are in, which is left out of the copies' names.
    reuse_dst_scope: copy into a scope that there is, instead of one with a number.

  Returns:
    A view of the copies, and what is a copy of what.

  Raises:
    ValueError: another graph, an operation of a loop or one outside `src_scope`.
  """
  view = make_view(sgv)
  graph = view.graph
  if dst_graph not in (None, graph):
    raise ValueError("A copy into another graph is not supported: use tf.import_graph_def.")
  scope, prefix = _ending_in_slash(dst_scope), _ending_in_slash(src_scope)
  if scope and not reuse_dst_scope:
    scope = _ending_in_slash(graph.unique_name(scope[:-1]))
  members = {
    key: {id(one) for one in graph.get_collection(key)} for key in graph.get_all_collection_keys()
  }
  info = TransformerInfo()
  for op in sorted(view.ops, key=lambda op: op._id):
    if not op.name.startswith(prefix):
      raise ValueError(f"{op.name} does not belong to source scope: {prefix}.")
    inputs = [info._transformed_ts.get(t, replacement_ts.get(t, t)) for t in op.inputs]
    copied = _copy(op, graph.unique_name(scope + op.name.removeprefix(prefix)), inputs)
    info._transformed_ops[op] = copied
    info._transformed_ts.update(zip(op.outputs, copied.outputs, strict=True))
    for one, other in ((op, copied), *zip(op.outputs, copied.outputs, strict=True)):
      for key in [key for key, ids in members.items() if id(one) in ids]:
        graph.add_to_collection(key if key in _KNOWN_COLLECTIONS else scope + key, other)
  for op, copied in info._transformed_ops.items():
    add_control_inputs(copied, [info._transformed_ops.get(one, one) for one in op.control_inputs])
  copies = SubGraphView(info._transformed_ops.values())
  copies.outputs = [info._transformed_ts[t] for t in view.outputs]
  return copies, info


def _ending_in_slash(scope: str) -> str:
  return f"{scope.removesuffix('/')}/" if scope else ""


def _copy(op: tf.Operation, name: str, inputs: list[tf.Tensor]) -> tf.Operation:
  """Returns an operation with another name and other inputs."""
  if op.type in ("Enter", "Exit", "LoopCond", "NextIteration"):
    raise ValueError(f"{op.name} belongs to a loop, and loops cannot be copied.")
  definition = op.node_def
  definition.name = name
  with op.graph._mutation_lock():
    copied = tf_ops.Operation.from_node_def(
      definition, op.graph, inputs, input_types=op._input_types, op_def=op.op_def
    )
  copied._original_op = op._original_op
  return copied


def graph_replace(
  target_ts: Any,
  replacement_ts: Mapping[tf.Tensor, tf.Tensor],
  dst_scope: str = "",
  src_scope: str = "",
  reuse_dst_scope: bool = False,
) -> Any:
  """Returns tensors as they are with other tensors in place of some that they come from.

  The other arguments are as in `copy_with_input_replacements`.

  Args:
    target_ts: a tensor, or a list or dict of them.
    replacement_ts: what is put in place of each tensor.

  Raises:
    ValueError: the targets come from none of these tensors.
  """
  targets = tf.nest.flatten(target_ts)
  control_ios = ControlOutputs(get_unique_graph(targets))
  ops = get_walks_intersection_ops(list(replacement_ts), targets, control_ios=control_ios)
  if not ops:
    raise ValueError("Targets and replacements are not connected!")
  _, info = copy_with_input_replacements(
    ops, replacement_ts, None, dst_scope, src_scope, reuse_dst_scope
  )
  return info.transformed(target_ts, lambda target: target)


def reroute_ts(
  ts0: _Tensors,
  ts1: _Tensors,
  can_modify: _Operations = None,
  cannot_modify: _Operations = None,
) -> int:
  """Has the operations that read the second tensors read the first ones, each its own.

  Args:
    ts0: the tensors to read.
    ts1: the tensors that are read now.
    can_modify: only these operations are changed.
    cannot_modify: these operations are not changed.

  Returns:
    The number of inputs that were changed.

  Raises:
    ValueError: not the same number of tensors, or a type or shape that does not fit.
  """
  ts0, ts1 = make_list_of_t(ts0), make_list_of_t(ts1)
  if len(ts0) != len(ts1):
    raise ValueError(f"ts0 and ts1 have different sizes: {len(ts0)} != {len(ts1)}")
  for new, old in zip(ts0, ts1, strict=True):
    if not new.dtype.is_compatible_with(old.dtype):
      raise ValueError(f"Dtypes {new.dtype} and {old.dtype} are not compatible.")
    if not new.shape.is_compatible_with(old.shape):
      raise ValueError(f"Shapes {new.shape} and {old.shape} are not compatible.")
  only = None if can_modify is None else set(make_list_of_op(can_modify))
  never = set() if cannot_modify is None else set(make_list_of_op(cannot_modify))
  places = [
    (reader, place, new)
    for new, old in zip(ts0, ts1, strict=True)
    for reader in dict.fromkeys(old.consumers() if new is not old else ())
    for place, tensor in enumerate(reader.inputs)
    if tensor is old and reader not in never and (only is None or reader in only)
  ]
  for reader, place, new in places:
    reader._update_input(place, new)
  return len(places)


def add_control_inputs(op: tf.Operation, cops: _Operations) -> None:
  """Has an operation wait for others.

  Raises:
    ValueError: it waits for one of them already.
  """
  before = op.control_inputs
  cops = make_list_of_op(cops, allow_graph=False)
  for one in cops:
    if one in before:
      raise ValueError(f"{one.name} is already a control_input of {op.name}")
  op._add_control_inputs(cops)


reroute = select = subgraph = transform = util = sys.modules[__name__]  # 1.15's files


def _let_private_names_be() -> None:
  """Gives operations the names that memory-saving gradients read, which 2.21 has without a dash."""
  tf.Operation._inputs = property(lambda op: op.inputs)
  tf.Operation._outputs = property(lambda op: op.outputs)


_let_private_names_be()
__getattr__ = unknown_name(
  __name__,
  {
    "copy": "use copy_with_input_replacements(sgv, {}).",
    "ph": "use tf.placeholder.",
    "swap_ts": "use reroute_ts in both directions, each with can_modify.",
    **dict.fromkeys(
      (
        *("bypass", "connect", "detach", "detach_inputs", "detach_outputs", "reroute_inputs"),
        *("reroute_ios", "reroute_outputs", "swap_inputs", "swap_ios", "swap_outputs"),
      ),
      "use reroute_ts with the inputs or outputs of the views.",
    ),
  },
)
