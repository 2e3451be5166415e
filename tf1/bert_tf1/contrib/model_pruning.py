"""`tf.contrib.model_pruning`: weights are masked, the smallest ones first, while a model trains.

  weights = tf.get_variable("kernel", [8, 4])
  outputs = tf.matmul(inputs, model_pruning.apply_mask(weights, "dense"))
  pruning = model_pruning.Pruning(get_pruning_hparams().parse("target_sparsity=0.9"))
  update_op = pruning.conditional_mask_update_op()  # to be run after each step

Zhu and Gupta, "To prune, or not to prune" (arXiv:1710.01878).
"""

import re

from bert_tf1.contrib.training import HParams
from bert_tf1.errors import unknown_name
from bert_tf1.real import tf

MASK_COLLECTION = "masks"
THRESHOLD_COLLECTION = "thresholds"
MASKED_WEIGHT_COLLECTION = "masked_weights"
WEIGHT_COLLECTION = "kernel"


def apply_mask(x, scope="") -> tf.Tensor:
  """Returns weights times their mask.

  The variables `mask`, of ones, and `threshold`, 0, are made; `Pruning` sets them.

  Args:
    x: a variable.
    scope: the scope of both variables.
  """
  dtype = x.dtype.base_dtype
  with tf.variable_scope(scope):
    mask = tf.get_variable("mask", x.shape, dtype, tf.ones_initializer(), trainable=False)
    threshold = tf.get_variable("threshold", [], dtype, tf.zeros_initializer(), trainable=False)
  masked = tf.multiply(mask, x, "weights/masked_weight")
  if not any(mask is other for other in get_masks()):  # Weights of a cell are masked repeatedly.
    tf.add_to_collection(THRESHOLD_COLLECTION, threshold)
    tf.add_to_collection(MASK_COLLECTION, mask)
    tf.add_to_collection(MASKED_WEIGHT_COLLECTION, masked)
    tf.add_to_collection(WEIGHT_COLLECTION, x)
  return masked


def get_masked_weights() -> list[tf.Tensor]:
  """Returns the products of weights and masks."""
  return tf.get_collection(MASKED_WEIGHT_COLLECTION)


def get_masks() -> list[tf.Variable]:
  """Returns the masks, of ones and zeros."""
  return tf.get_collection(MASK_COLLECTION)


def get_thresholds() -> list[tf.Variable]:
  """Returns the smallest magnitude that each mask keeps."""
  return tf.get_collection(THRESHOLD_COLLECTION)


def get_weights() -> list[tf.Variable]:
  """Returns the weights that have masks."""
  return tf.get_collection(WEIGHT_COLLECTION)


def get_weight_sparsity() -> list[tf.Tensor]:
  """Returns the share of zeros in each mask."""
  return [tf.nn.zero_fraction(mask) for mask in get_masks()]


def get_pruning_hparams() -> HParams:
  """Returns the settings of `Pruning` with their defaults.

  name: the scope of operations and summaries.
  begin_pruning_step, end_pruning_step: the first and last step at which masks change; -1: no last.
  pruning_frequency: the steps between two changes.
  initial_sparsity, target_sparsity: the share of masked weights at the first and the last of
  sparsity_function_begin_step, sparsity_function_end_step: between both it is
    target + (initial - target) * (1 - progress) ** sparsity_function_exponent.
  weight_sparsity_map: `expression:sparsity`, another target for weights with such a name.
  threshold_decay: the weight of the threshold before, from 0 to below 1.
  block_height, block_width: rows and columns of a matrix that are masked together; -1: all.
  block_dims_map: `expression:HEIGHTxWIDTH`, other blocks for weights with such a name.
  block_pooling_function: a block is as large as the "AVG" or the "MAX" of its magnitudes.
  nbins, use_tpu: are taken and not used.
  """
  return HParams(
    name="model_pruning",
    begin_pruning_step=0,
    end_pruning_step=-1,
    weight_sparsity_map=[""],
    block_dims_map=[""],
    threshold_decay=0.0,
    pruning_frequency=10,
    nbins=256,
    block_height=1,
    block_width=1,
    block_pooling_function="AVG",
    initial_sparsity=0.0,
    target_sparsity=0.5,
    sparsity_function_begin_step=0,
    sparsity_function_end_step=100,
    sparsity_function_exponent=3.0,
    use_tpu=False,
  )


class Pruning:
  """Sets the masks that `apply_mask` has made.

  Args:
    spec: the settings, by default those of `get_pruning_hparams`.
    global_step: the step, by default the graph's.
    sparsity: the share of masked weights, a float tensor; by default it grows as the settings say.

  Raises:
    ValueError: a setting out of its range.
  """

  def __init__(self, spec: HParams | None = None, global_step=None, sparsity=None):
    self._spec = spec or get_pruning_hparams()
    _check(self._spec)
    step = tf.train.get_global_step() if global_step is None else global_step
    self._global_step = tf.cast(step, tf.int32)
    self._sparsity = self._scheduled_sparsity() if sparsity is None else sparsity
    with tf.variable_scope(self._spec.name, reuse=tf.AUTO_REUSE):
      self._last_update_step = tf.get_variable(
        "last_mask_update_step", [], tf.int32, tf.zeros_initializer(), trainable=False
      )
    self._assign_ops: list[tf.Operation] = []

  def _scheduled_sparsity(self) -> tf.Tensor:
    spec = self._spec
    begin, end = spec.sparsity_function_begin_step, spec.sparsity_function_end_step
    with tf.name_scope(spec.name):
      progress = tf.div(tf.cast(self._global_step - begin, tf.float32), end - begin)
      progress = tf.minimum(1.0, tf.maximum(0.0, progress))
      missing = spec.initial_sparsity - spec.target_sparsity
      missing *= tf.pow(1 - progress, spec.sparsity_function_exponent)
      return tf.add(missing, spec.target_sparsity, name="sparsity")

  def mask_update_op(self) -> tf.Operation:
    """Returns the operation that sets all masks and thresholds."""
    with tf.name_scope(self._spec.name):
      if not self._assign_ops:
        for weights, mask, threshold in zip(
          get_weights(), get_masks(), get_thresholds(), strict=True
        ):
          new_threshold, new_mask = self._new_mask(weights, threshold)
          self._assign_ops += [tf.assign(threshold, new_threshold), tf.assign(mask, new_mask)]
      last = tf.assign(self._last_update_step, self._global_step)
      with tf.control_dependencies([last, *self._assign_ops]):
        tf.logging.info("Updating masks.")
        return tf.no_op("mask_update")

  def conditional_mask_update_op(self) -> tf.Operation:
    """Returns the operation that does so at the steps at which it is time."""
    spec = self._spec
    with tf.name_scope(spec.name):
      is_time = self._global_step >= self._last_update_step + spec.pruning_frequency
      is_time &= self._global_step >= spec.begin_pruning_step
      if spec.end_pruning_step >= 0:
        is_time &= self._global_step <= spec.end_pruning_step
    return tf.cond(is_time, self.mask_update_op, tf.no_op)

  def add_pruning_summaries(self) -> None:
    """Adds summaries of the sparsity, the thresholds and the last step with a change."""
    with tf.name_scope(f"{self._spec.name}_summaries"):
      tf.summary.scalar("sparsity", self._sparsity)
      tf.summary.scalar("last_mask_update_step", self._last_update_step)
      for mask, threshold in zip(get_masks(), get_thresholds(), strict=True):
        tf.summary.scalar(f"{mask.op.name}/sparsity", tf.nn.zero_fraction(mask))
        tf.summary.scalar(f"{threshold.op.name}/threshold", threshold)

  def print_hparams(self) -> None:
    """Logs the settings."""
    tf.logging.info(self._spec.to_json())

  def _new_mask(self, weights, threshold) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the new threshold, [], and the new mask, of the weights' shape."""
    name = weights.op.name
    with tf.name_scope(f"{name}_pruning_ops"):
      sizes = tf.abs(weights)
      matrix = tf.squeeze(sizes)
      height, width = self._block(name)
      if matrix.shape.ndims != 2 or (height, width) == (1, 1):
        return self._threshold_and_mask(name, sizes, threshold)
      rows, columns = matrix.shape.as_list()
      block = [rows if height == -1 else height, columns if width == -1 else width]
      pooled = tf.nn.pool(
        matrix[tf.newaxis, :, :, tf.newaxis],
        block,
        self._spec.block_pooling_function,
        "SAME",
        strides=block,
      )
      threshold, mask = self._threshold_and_mask(name, pooled[0, :, :, 0], threshold)
      mask = tf.repeat(tf.repeat(mask, block[0], axis=0), block[1], axis=1)
      return threshold, tf.reshape(mask[:rows, :columns], tf.shape(weights))

  def _threshold_and_mask(self, name: str, sizes, threshold) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns the threshold that leaves as many as are wanted, and where sizes reach it."""
    share = 1 - self._wanted_sparsity(name)
    kept = tf.cast(tf.round(tf.cast(tf.size(sizes), tf.float32) * share), tf.int32)
    sorted_sizes = tf.nn.top_k(tf.reshape(sizes, [-1]), tf.size(sizes)).values
    decay = self._spec.threshold_decay
    threshold = tf.gather(sorted_sizes, kept - 1) * (1 - decay) + threshold * decay
    return threshold, tf.cast(sizes >= threshold, tf.float32)

  def _wanted_sparsity(self, name: str):
    own = _entry(self._spec.weight_sparsity_map, name, "weight_sparsity_map")
    return self._sparsity * (float(own) / self._spec.target_sparsity) if own else self._sparsity

  def _block(self, name: str) -> tuple[int, int]:
    own = _entry(self._spec.block_dims_map, name, "block_dims_map")
    if not own:
      return self._spec.block_height, self._spec.block_width
    height, width = own.split("x")
    return int(height), int(width)


def _entry(entries: list[str], name: str, setting: str) -> str:
  """Returns what `expression:value` entries have for a name; empty for none.

  Raises:
    ValueError: more than one fits.
  """
  pairs = [entry.split(":") for entry in entries if entry]
  found = [value for expression, value in pairs if re.search(expression, name)]
  if len(found) > 1:
    raise ValueError(f"Multiple matches in {setting} for weight {name}")
  return found[0] if found else ""


def _check(spec: HParams) -> None:
  """Checks the settings.

  Raises:
    ValueError: one is out of its range.
  """
  if spec.begin_pruning_step < 0:
    raise ValueError("Illegal value for begin_pruning_step")
  if spec.end_pruning_step != -1 and spec.begin_pruning_step >= spec.end_pruning_step:
    raise ValueError(
      f"Pruning must begin before it can end. begin_step={spec.begin_pruning_step}, "
      f"end_step={spec.end_pruning_step}. Set end_pruning_step to -1 for no end."
    )
  if spec.sparsity_function_begin_step < 0:
    raise ValueError("Illegal value for sparsity_function_begin_step")
  if spec.sparsity_function_begin_step >= spec.sparsity_function_end_step:
    raise ValueError("Sparsity function requires begin_step < end_step")
  for name in ("threshold_decay", "initial_sparsity", "target_sparsity"):
    if not 0.0 <= getattr(spec, name) < 1.0:
      raise ValueError(f"{name} must be in range [0,1)")
  if spec.block_pooling_function not in ("AVG", "MAX"):
    raise ValueError(f"Unknown pooling function for block sparsity: {spec.block_pooling_function}")
  for entry in filter(None, spec.weight_sparsity_map):
    if float(entry.split(":")[1]) >= 1.0:
      raise ValueError("Weight sparsity can not exceed 1.0")
  for entry in filter(None, spec.block_dims_map):
    if len(entry.split(":")[1].split("x")) != 2:
      raise ValueError(f"Expected 2 values for block dim for {entry}")


_MASK_THEM = "make the weights by tf.get_variable and multiply by apply_mask(weights, scope)."
__getattr__ = unknown_name(
  __name__,
  {
    "MaskedBasicLSTMCell": "use tf.nn.rnn_cell.BasicLSTMCell; its weights are not masked.",
    "MaskedLSTMCell": "use tf.nn.rnn_cell.LSTMCell; its weights are not masked.",
    "graph_def_from_checkpoint": "multiply the checkpoint's weights by its masks, with NumPy.",
    "masked_conv2d": _MASK_THEM,
    "masked_convolution": _MASK_THEM,
    "masked_fully_connected": _MASK_THEM,
    "strip_pruning_vars_fn": "multiply the checkpoint's weights by its masks, with NumPy.",
    "train": "use tf.train.MonitoredTrainingSession, and run the mask update op after each step.",
  },
)
