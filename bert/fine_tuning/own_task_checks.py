"""Checks a custom task on its first examples, before a run writes records or trains.

  check_methods(task)                 # before its data are read
  check_examples(task, train_set)     # once they are

The head is only traced, so that no product is computed: shapes and names are known then.

Letters in shapes: B = batch size, S = sequence length.
"""

import contextlib
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from absl import logging

from bert.fine_tuning.task import DataSet, Task, shapes
from bert.model.task_head import Batch, Head, model_options
from bert.scripts import command_line, result_files, trained_task
from bert.tasks import kinds

_EXAMPLES = 2
_HELP = "docs/extending.md lists what each method gets and returns."
# What has to be written -> the methods of which one is enough.
_OF_TASK = {"read": ("read",), "encode": ("encode", "records"), "metrics": ("metrics", "evaluate")}
_OF_HEAD = {"outputs": ("outputs",), "loss": ("loss",)}
# Methods of earlier versions -> what takes their place.
_RENAMED = {
  "record": "`encode(example)`, of the same form",
  "measure": "`metrics(outputs, labels)`, of the same form",
  "texts": "`view(example)`, which returns the texts by name, and the gold label",
  "item": "`view(example)`, which returns the texts by name, and the gold label",
  "gold": "`view(example)`, which returns the texts by name, and the gold label",
  "collect": "`decode(outputs, tokens)`, which makes the answer to one example",
  "score_answers": "`score(data, answers)`, of the same form",
  "answers": "`decode(outputs, tokens)` of the task, which makes the answer to one example",
  "define_task_flags": (
    "`settings_class`, a subclass of fine_tuning.SplitSettings, with a field such as "
    '`column: str = fine_tuning.setting("stars", "Column of the number.")` for each flag'
  ),
  "check_settings": "`check(self)` of the `settings_class`",
}


def check_is_current(task_class: type[Task]) -> None:
  """Raises a ValueError that names what takes the place of a method of an earlier version."""
  for owner in (task_class, task_class.head_class):
    for name, instead in _RENAMED.items():
      if hasattr(owner, name):
        raise ValueError(
          f"{owner.__name__}.{name} is of an earlier version: write {instead}. {_HELP}"
        )


def check_methods(task: Task) -> None:
  """Raises a UsageError that names a method which the task or its head lacks."""
  for owner, base, needed in (
    (type(task), Task, _OF_TASK),
    (task.head_class, Head, _OF_HEAD),
  ):
    for name, methods in needed.items():
      if all(getattr(owner, each) is getattr(base, each) for each in methods):
        where = "head_class" if owner is Head else owner.__name__
        what = "a subclass of fine_tuning.Head" if owner is Head else f"the method `{name}`"
        raise command_line.UsageError(
          f"The task {task.name}: {where} {'is not' if owner is Head else 'lacks'} {what}. {_HELP}"
        )


def check_examples(task: Task, data: DataSet) -> None:
  """Checks the records, the head and the results of a task.

  Args:
    task: whose labels are known.
    data: its training set.

  Raises:
    UsageError: names the method and what it should return.
    DataError: an example has no record.
  """
  if not data.examples or task.keeps_records:
    return
  some = DataSet(data.split, data.examples[:_EXAMPLES])
  spec = shapes(task.record_spec(some), task.length)
  records = list(task.records(some, 0))
  for record in records:
    _check_record(task, record, spec)
  _check_head(task, some, _stacked(records, spec))
  try:
    item = trained_task.item_of(task, some.examples[0])
    if unknown := [name for name in item if name not in ("text_a", "text_b")]:
      what = f"names the texts {', '.join(map(str, unknown))}: a model reads text_a and text_b."
      raise _fail(type(task), "view", what)
  except trained_task.NoItemError as error:
    if task.settings.report:
      logging.warning("The report will have no examples: %s.", error)


def _fail(owner: Any, method: str, what: str) -> command_line.UsageError:
  return command_line.UsageError(f"{owner.__name__}.{method} {what} {_HELP}")


# ---------------------------------------------------------------------------------------------
# Records.


def _check_record(task: Task, record: Any, spec: Mapping[str, tuple[list[int], str]]) -> None:
  import numpy as np

  method = "encode" if type(task).encode is not Task.encode else "records"
  if not isinstance(record, Mapping):
    raise _fail(type(task), method, f"returns {_kind(record)}: return a dict, name -> numbers.")
  if missing := [name for name in spec if name not in record]:
    raise _fail(
      type(task), method, f"returns no {', '.join(missing)}, which `record_spec` promises."
    )
  for name, (shape, kind) in spec.items():
    try:
      value = np.asarray(record[name])
    except ValueError:  # rows of different lengths
      value = np.asarray(None)
    kinds_of_values = "f" if kind == "float32" else "iub"
    if list(value.shape) != shape or value.dtype.kind not in kinds_of_values:
      given = f"{value.dtype} of shape {list(value.shape)}"
      raise _fail(
        type(task),
        method,
        f"gives {name} as {given}; `record_spec` says {kind} of shape {shape}. Change one of "
        f"them: ([fine_tuning.LENGTH], {kind!r}) has a value for each token, ([], {kind!r}) is a "
        "single number.",
      )


def _stacked(records: list[Any], spec: Mapping[str, tuple[list[int], str]]) -> dict[str, Any]:
  """Stacks records as `input_fn` does: integers are int32."""
  import numpy as np

  return {
    name: np.asarray([record[name] for record in records], "int32" if kind == "int64" else kind)
    for name, (_, kind) in spec.items()
  }


# ---------------------------------------------------------------------------------------------
# The head and the results.


def _check_head(task: Task, data: DataSet, features: Mapping[str, Any]) -> None:
  """Traces the head, and checks what its methods return."""
  import numpy as np
  import tensorflow as tf

  from bert.model import variables

  head, count = task.head(), len(data.examples)
  found: dict[str, Any] = {}

  def step(batch_features):
    batch = Batch(task.config, batch_features, options=model_options())
    outputs = _called(task, head, "outputs", batch)
    rank = 2 if head.per_token else 1
    _check_tensors(head, "outputs", outputs, count, rank)
    losses = _called(task, head, "loss", batch, outputs)
    if not isinstance(losses, tuple | list) or len(losses) != 2:
      what = f"returns {_kind(losses)}: return two, the loss [] and that of each example [B]."
      raise _fail(type(head), "loss", what)
    shape = getattr(losses[0], "shape", None)
    if shape is not None and shape.rank:
      what = f"returns a loss of shape {shape.as_list()}: the first of both is one number, []."
      raise _fail(type(head), "loss", what)
    if losses[1] is not None:
      _check_tensors(head, "loss", {"the losses of examples": losses[1]}, count)
    predictions = _called(task, head, "predictions", batch, outputs)
    _check_tensors(head, "predictions", predictions, count, rank)
    if task.answer not in predictions:
      name = type(task).__name__
      raise command_line.UsageError(
        f"{name}.answer is {task.answer!r}, which is not among what the head predicts: "
        f"{', '.join(predictions)}. Set `answer` of {name} to one of them, or return "
        f"{task.answer!r} in {type(head).__name__}.predictions."
      )
    found.update(head.eval_tensors(batch, outputs, losses[1]))

  specs = {name: tf.TensorSpec(each.shape, each.dtype) for name, each in features.items()}
  store = variables.VariableStore()
  with variables.use_store(store), store.drawing_later(), variables.traced_once():
    tf.function(step, autograph=False).get_concrete_function(specs)
  sizes = [count, task.length]  # of axes whose size only a batch shows
  zeros = {
    name: np.zeros([size or sizes[: n + 1][-1] for n, size in enumerate(each.shape.as_list())])
    for name, each in found.items()
    if each is not None and each.shape.rank is not None
  }
  _check_results(task, {**zeros, **{name: features[name] for name in zeros if name in features}})


def _called(task: Task, head: Head, method: str, *arguments: Any) -> Any:
  """Calls a method of the head; an error names it, and the line of the task's file."""
  try:
    return getattr(head, method)(*arguments)
  except command_line.UsageError:
    raise
  except Exception as error:
    file = kinds.find(task.name).file
    line = kinds.line_of(error, file)
    reason = str(error).strip().partition("\n")[0]
    raise command_line.UsageError(
      f"{file}{f', line {line}' if line else ''}: {type(head).__name__}.{method} fails for the "
      f"first examples: {type(error).__name__}: {reason}"
    ) from error


def _check_tensors(head: Head, method: str, tensors: Any, count: int, rank: int = 1) -> None:
  """Checks a dict of tensors of at least a rank, whose first axis is that of the examples."""
  if not isinstance(tensors, Mapping):
    what = f"returns {_kind(tensors)}: return a dict, name -> tensor [B, ...]."
    raise _fail(type(head), method, what)
  for name, tensor in tensors.items():
    shape = getattr(tensor, "shape", None)
    if shape is None or shape.rank is None:
      continue
    if shape.rank == 0 or shape[0] not in (count, None):
      what = f"gives {name} the shape {shape.as_list()} for {count} examples: its first axis is B."
      raise _fail(type(head), method, what)
    if shape.rank < rank:
      what = f"gives {name} the shape {shape.as_list()}; with `per_token` it is [B, S, ...]."
      raise _fail(type(head), method, what)


def _check_results(task: Task, tensors: Mapping[str, Any]) -> None:
  """Measures zeros, which shows the names of the results; that may fail where real ones do not."""
  name = type(task).__name__
  try:
    with _quiet():
      results = task.evaluate(**tensors)
  except command_line.UsageError:
    raise
  except Exception as error:
    logging.debug("%s.metrics cannot be tried on zeros: %s", name, error)
    return
  if task.headline not in results:
    scores = [each for each in results if not result_files.is_error(each)]
    raise command_line.UsageError(
      f"{name}.headline is {task.headline!r}, which is not among the scores of `metrics`: "
      f"{', '.join(scores) or 'none'}. Set `headline` to one of them; `eval_` precedes each name."
    )


@contextlib.contextmanager
def _quiet() -> Iterator[None]:
  import numpy as np

  with warnings.catch_warnings(), np.errstate(all="ignore"):
    warnings.simplefilter("ignore")
    yield


def _kind(value: Any) -> str:
  """Names the type of a value.

  Example:
    >>> _kind(3), _kind([])
    ('a value of type int', 'a value of type list')
  """
  return f"a value of type {type(value).__name__}"
