"""Whether a checkpoint fits a model, said before TensorFlow fails on it.

The commonest mistake with an Estimator is a `model_dir` that holds another model's checkpoint: a
task with more labels, a larger encoder. TensorFlow answers it with a page of text about ops.
"""

from bert_tf1.real import tf

_LISTED = 5


def check_fits(checkpoint_path: str) -> None:
  """Compares the variables of the current graph with those of the checkpoint to restore.

  Raises:
    tf.errors.NotFoundError: it lacks a variable of the graph.
    tf.errors.InvalidArgumentError: a variable has another shape there.
  """
  if not tf.train.checkpoint_exists(checkpoint_path):
    return  # Restoring says so.
  saved = tf.train.NewCheckpointReader(checkpoint_path).get_variable_to_shape_map()
  model = {
    variable.op.name: variable.shape.as_list()
    for variable in tf.global_variables()
    if variable.shape.is_fully_defined() and variable._get_save_slice_info() is None
  }
  missing = [f"{name} is not in it" for name in sorted(model) if name not in saved]
  others = [
    f"{name} is {saved[name]} there and {shape} in the model"
    for name, shape in sorted(model.items())
    if name in saved and saved[name] != shape
  ]
  if missing or others:
    problem = tf.errors.NotFoundError if missing else tf.errors.InvalidArgumentError
    raise problem(None, None, _message(checkpoint_path, missing + others))


def _message(checkpoint_path: str, reasons: list[str]) -> str:
  more = len(reasons) - _LISTED
  return (
    f"Restoring from checkpoint failed: {checkpoint_path} does not fit the model. "
    + "; ".join(reasons[:_LISTED])
    + (f"; and {more} more" if more > 0 else "")
    + ". Give another model_dir (scripts call it --output_dir), or the model of the checkpoint."
  )
