"""The variable store: `tf.get_variable`'s names on today's TensorFlow.

A checkpoint name such as `bert/encoder/layer_0/attention/self/query/kernel` is the public interface
of this project. Graph functions ask for variables by name inside nested scopes, and a store keeps
them: the first build creates each variable, every later build or trace finds it again.

  store = VariableStore(seed=1)
  with use_store(store):
    with variable_scope("bert"):
      with variable_scope("embeddings"):
        table = get_variable("word_embeddings", [30522, 768], create_initializer(0.02))
  store.variables["bert/embeddings/word_embeddings"]

Creation happens outside any function that is being traced (`tf.init_scope`), so one trace of a
training step both builds the model and compiles it. Initial values depend on the store's seed and
the variable's name alone, never on the order of creation.

The same context also provides the random bits of dropout: see `random_stream`.
"""

import collections
import contextlib
import math
import threading
import zlib
from collections.abc import Callable, Collection, Iterator, Sequence

import tensorflow as tf

from bert.model import tf1_variables

Initializer = Callable[..., tf.Tensor]

# Smaller variables are drawn sooner than they are remembered.
_MIN_SIZE_TO_WAIT = 1 << 14


class VariableStore:
  """Variables by their full name, in order of creation.

  Attributes:
    seed: determines all initial values, together with each variable's name.
    variables: name -> `tf.Variable`, names as in the original's checkpoints.
  """

  def __init__(self, seed: int = 12345):
    self.seed = seed
    self.variables: dict[str, tf.Variable] = {}
    self._lock = threading.Lock()
    self._draws_later = False
    self._to_draw: dict[str, Initializer] = {}  # name of a variable -> what it lacks

  @property
  def trainable_variables(self) -> dict[str, tf.Variable]:
    """The variables that training may change, by name, in order of creation."""
    return {name: v for name, v in self.variables.items() if v.trainable}

  def get_variable(self, name, shape, initializer, dtype, trainable) -> tf.Variable:
    """Returns the variable called `name`, creating it if this is the first request for it."""
    with self._lock:
      if name not in self.variables:
        self.variables[name] = self._create(name, shape, initializer, dtype, trainable)
      variable = self.variables[name]
    if shape is not None and variable.shape.as_list() != list(shape):
      raise ValueError(
        f"Variable {name} exists with shape {variable.shape.as_list()}, "
        f"but shape {list(shape)} was requested."
      )
    return variable

  def _create(self, name, shape, initializer, dtype, trainable):
    if shape is None:
      raise ValueError(f"Variable {name} does not exist yet, and no shape was given to create it.")
    # Outside any traced function: the variable outlives the trace, and is created just once.
    # The empty name scope keeps the trace's own scope out of the variable's name.
    with tf.init_scope(), tf.name_scope(""):
      value = self._initial_value(name, list(shape), initializer, dtype)
      variable = tf.Variable(value, trainable=trainable, name=name, dtype=dtype)
    return variable

  def _initial_value(self, name, shape, initializer, dtype):
    if self._draws_later and initializer not in _CONSTANT and math.prod(shape) >= _MIN_SIZE_TO_WAIT:
      self._to_draw[name] = initializer
      return tf.zeros(shape, dtype)
    return self._draw(name, shape, initializer, dtype)

  def _draw(self, name, shape, initializer, dtype):
    seed = [self.seed, zlib.crc32(name.encode())]
    return tf1_variables.initial_value(initializer, shape, dtype, seed)

  @contextlib.contextmanager
  def drawing_later(self) -> Iterator[None]:
    """Leaves large random variables that are created within at zero, until `draw` is called.

    Most of them take their values from a checkpoint: drawing them before takes longer than that.
    """
    outer, self._draws_later = self._draws_later, True
    try:
      yield
    finally:
      self._draws_later = outer

  def draw(self, loaded: Collection[str] = ()) -> None:
    """Gives variables that were created within `drawing_later` the initial values they lack.

    Not those whose values are no longer zero: a model function may have set them itself.

    Args:
      loaded: names of those that have their values from elsewhere.
    """
    for name, initializer in self._to_draw.items():
      variable = self.variables[name]
      if name not in loaded and not tf.reduce_any(variable != 0):
        variable.assign(self._draw(name, variable.shape.as_list(), initializer, variable.dtype))
    self._to_draw = {}

  def derived(self, function: Callable[..., tf.Tensor], *sources) -> tf.Tensor | tf.Variable:
    """Returns `function(*sources)`, of variables: computed wherever it is asked for."""
    return function(*sources)


class FilledStore(VariableStore):
  """Variables that a checkpoint fills once, after which they stay as they are.

  So initial values are zeros: to draw what is replaced would take longer than to load it. And what
  follows from variables alone is computed by `finish`, not by each call of a traced function.

  Example:
    >>> store = FilledStore()
    >>> half = store.get_variable("half", [2], ones_initializer, tf.float32, True)
    >>> both = store.derived(lambda x, y: tf.concat([x, y], 0), half, half)
    >>> _ = half.assign([1.0, 2.0])
    >>> store.finish()
    >>> both.numpy().tolist()
    [1.0, 2.0, 1.0, 2.0]
  """

  def __init__(self):
    super().__init__()
    self._derived: dict[tuple, tuple[tf.Variable, Callable]] = {}

  def _initial_value(self, name, shape, initializer, dtype):
    return tf.zeros(shape, dtype)

  def derived(self, function, *sources):
    """Returns a variable that `finish` fills; the same for the same sources, as in shared layers.

    No two functions may have the same sources and types of results.
    """
    with tf.init_scope():
      value = function(*sources)
      key = (value.dtype, *(source.ref() for source in sources))
      if key not in self._derived:
        self._derived[key] = tf.Variable(value, trainable=False), function
    return self._derived[key][0]

  def finish(self) -> None:
    """Computes what is derived, once all variables have their values."""
    for (_, *sources), (variable, function) in self._derived.items():
      variable.assign(function(*(source.deref() for source in sources)))


# ---------------------------------------------------------------------------------------------
# The current store of graph functions. Thread-local: replicas of a strategy run in threads.


class _Context(threading.local):
  def __init__(self):
    self.stores: list[VariableStore] = []
    self.scopes: list[str] = []
    self.random: _RandomStream | None = None


_context = _Context()
_default_store = VariableStore()


def current_store() -> VariableStore:
  """Returns the store of the innermost `use_store`, or the process-wide default."""
  return _context.stores[-1] if _context.stores else _default_store


def reset_default_store(seed: int = 12345) -> VariableStore:
  """Replaces the process-wide default store by an empty one, like `tf.reset_default_graph`."""
  global _default_store
  _default_store = VariableStore(seed)
  return _default_store


@contextlib.contextmanager
def use_store(store: VariableStore) -> Iterator[VariableStore]:
  """Within the block, graph functions find and create their variables in `store`.

  So does `tf.compat.v1.get_variable`.
  """
  outer_scopes, _context.scopes = _context.scopes, []
  _context.stores.append(store)
  try:
    with tf1_variables.served_by(_get_from_current_store):
      yield store
  finally:
    _context.stores.pop()
    _context.scopes = outer_scopes


@contextlib.contextmanager
def variable_scope(name: str) -> Iterator[str]:
  """Prefixes the names of variables requested within the block with `name` and a slash."""
  _context.scopes.append(name)
  try:
    with tf.name_scope(name):
      yield "/".join(_context.scopes)
  finally:
    _context.scopes.pop()


def get_variable(
  name: str,
  shape: Sequence[int] | None = None,
  initializer: Initializer | None = None,
  dtype: tf.DType = tf.float32,
  trainable: bool = True,
) -> tf.Variable:
  """Finds or creates a variable in the current store, under the current scopes.

  Args:
    name: last part of the variable's name.
    shape: static shape; optional for a variable that exists.
    initializer: `initializer(shape, dtype=, seed=)`, `seed` two integers; zeros by default. Those
      of TensorFlow and Keras, without `seed=`, do as well.
    dtype: type of the variable.
    trainable: whether training may change it.

  Returns:
    The `tf.Variable`.

  Raises:
    ValueError: it exists with another shape, or does not exist and no shape was given.
  """
  name = "/".join(filter(None, [tf1_variables.scope_name(), *_context.scopes, name]))
  return current_store().get_variable(
    name, shape, initializer or zeros_initializer, dtype, trainable
  )


def _get_from_current_store(name, shape, initializer, dtype, trainable) -> tf.Variable:
  """Returns what `tf.compat.v1.get_variable` returns; its own scopes are in the name already."""
  full_name = "/".join([*_context.scopes, name])
  return current_store().get_variable(full_name, shape, initializer, dtype, trainable)


def get_global_step() -> tf.Variable:
  """Returns the number of finished training steps: int64 `[]`, named `global_step` as in TF 1."""
  return current_store().get_variable(
    "global_step", [], zeros_initializer, dtype=tf.int64, trainable=False
  )


def get_assignment_map_from_checkpoint(tvars, init_checkpoint: str):
  """Returns the variables that a checkpoint can initialise, by equal names.

  Args:
    tvars: the model's variables.
    init_checkpoint: prefix of a checkpoint.

  Returns:
    `(assignment_map, initialized_variable_names)`: an ordered dictionary from names in the
    checkpoint to names here, and a dictionary with the names here, as `name` and as `name:0`.
  """
  names = [variable.name.split(":")[0] for variable in tvars]
  in_checkpoint = {name for name, _ in tf.train.list_variables(init_checkpoint)}
  assignment_map = collections.OrderedDict((n, n) for n in names if n in in_checkpoint)
  initialized = {alias: 1 for n in assignment_map for alias in (n, f"{n}:0")}
  return assignment_map, initialized


def traced_once():
  """A scope for tracing functions that create variables: `tf.function` would trace them twice."""
  return tf.variable_creator_scope(_create_unlifted)


def _create_unlifted(next_creator, **kwargs):
  return next_creator(**{**kwargs, "experimental_enable_variable_lifting": False})


def zeros_initializer(shape, dtype=tf.float32, seed=None):
  """Zeros."""
  del seed
  return tf.zeros(shape, dtype)


def ones_initializer(shape, dtype=tf.float32, seed=None):
  """Ones."""
  del seed
  return tf.ones(shape, dtype)


_CONSTANT = (zeros_initializer, ones_initializer)


def truncated_normal_initializer(stddev: float) -> Initializer:
  """A normal distribution of mean 0 and `stddev`, redrawn beyond two standard deviations."""

  def initializer(shape, dtype=tf.float32, seed=None):
    return tf.random.stateless_truncated_normal(shape, seed, stddev=stddev, dtype=dtype)

  return initializer


def glorot_uniform_initializer(shape, dtype=tf.float32, seed=None):
  """Uniform within `sqrt(6 / (inputs + outputs))`: TensorFlow 1's own choice for kernels."""
  limit = math.sqrt(6.0 / (shape[0] + shape[-1]))
  return tf.random.stateless_uniform(shape, seed, -limit, limit, dtype)


# ---------------------------------------------------------------------------------------------
# Random bits for dropout.


class _RandomStream:
  """Seeds for one training step: the n-th request of a step gets the same seed in every run."""

  def __init__(self, seed, step):
    self._seed = tf.cast(seed, tf.int64)
    self._step = tf.cast(step, tf.int64)
    self._draws = 0

  def next_seed(self):
    self._draws += 1
    return tf.stack([self._seed * 65536 + self._draws, self._step])


@contextlib.contextmanager
def random_stream(seed, step) -> Iterator[None]:
  """Within the block, dropout's bits depend only on `seed`, `step` and the order of calls.

  A resumed run thus draws the same bits as one that never stopped, without a generator's state to
  save. Without a stream, every call draws from TensorFlow's own generator.

  Args:
    seed: int or int64 `[]`; give each replica and each micro-batch its own.
    step: int or int64 `[]`, normally the global step.
  """
  outer, _context.random = _context.random, _RandomStream(seed, step)
  try:
    yield
  finally:
    _context.random = outer


def next_random_seed() -> tf.Tensor:
  """The next seed of the current stream: int64 `[2]` for a `tf.random.stateless_*` function."""
  if _context.random is None:
    return tf.random.uniform([2], tf.int64.min, tf.int64.max, dtype=tf.int64)
  return _context.random.next_seed()
