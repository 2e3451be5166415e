"""Tests of bert/model/variables.py. Alone: pytest tests/model/variables_test.py (seconds)"""

import threading

import numpy as np
import pytest
import tensorflow as tf

from bert.model import variables as vs
from bert.model.variables import (
  VariableStore,
  get_variable,
  next_random_seed,
  random_stream,
  use_store,
  variable_scope,
)

NORMAL = vs.truncated_normal_initializer(0.02)


@pytest.fixture(autouse=True)
def fresh_default_store():
  yield vs.reset_default_store()
  vs.reset_default_store()


# ---------------------------------------------------------------------------------------------
# Names and stores.


def test_scopes_make_names():
  with use_store(VariableStore()) as store:
    with variable_scope("bert") as outer:
      with variable_scope("embeddings") as inner:
        table = get_variable("word_embeddings", [3, 2])
      bias = get_variable("bias", [2])
    top = get_variable("output_bias", [2])
  assert (outer, inner) == ("bert", "bert/embeddings")
  assert list(store.variables.items()) == [
    ("bert/embeddings/word_embeddings", table),
    ("bert/bias", bias),
    ("output_bias", top),
  ]
  assert [v.name for v in store.variables.values()] == [f"{n}:0" for n in store.variables]


def test_another_shape_is_refused_with_both():
  with use_store(VariableStore()), variable_scope("a"):
    get_variable("v", [2, 3])
    message = r"Variable a/v exists with shape \[2, 3\], but shape \[3, 2\] was requested"
    with pytest.raises(ValueError, match=message):
      get_variable("v", [3, 2])


def test_a_variable_without_a_shape_cannot_be_created():
  with use_store(VariableStore()) as store:
    with pytest.raises(ValueError, match="Variable v does not exist yet"):
      get_variable("v")
  assert store.variables == {}


# ---------------------------------------------------------------------------------------------
# Initial values.


def large_variables(store, *names):
  with use_store(store):
    return [get_variable(name, [128, 128], NORMAL) for name in names]


def test_values_drawn_later_are_those_that_would_have_been_drawn_at_once():
  at_once = large_variables(VariableStore(7), "a")[0].numpy()
  store = VariableStore(7)
  with store.drawing_later():
    [late] = large_variables(store, "a")
    with use_store(store):
      small = get_variable("small", [2, 2], NORMAL)
      ones = get_variable("ones", [128, 128], vs.ones_initializer)
  assert not late.numpy().any()
  assert small.numpy().all()
  assert ones.numpy().all()
  store.draw()
  np.testing.assert_array_equal(late, at_once)
  assert large_variables(store, "b")[0].numpy().any()  # after the block


def test_types_and_trainability():
  with use_store(VariableStore()) as store:
    get_variable("weights", [2], vs.ones_initializer, dtype=tf.float16)
    get_variable("slot", [2], trainable=False)
    step = vs.get_global_step()
    with variable_scope("deep"):
      assert vs.get_global_step() is step, "the step has one name whatever the scope"
  assert (step.dtype, step.shape.as_list(), int(step)) == (tf.int64, [], 0)
  assert list(store.variables) == ["weights", "slot", "global_step"]
  assert list(store.trainable_variables) == ["weights"]
  assert store.variables["weights"].dtype == tf.float16
  np.testing.assert_array_equal(store.variables["weights"], [1.0, 1.0])
  np.testing.assert_array_equal(store.variables["slot"], [0.0, 0.0])


# ---------------------------------------------------------------------------------------------
# Initial values.


def values(names, seed=1):
  with use_store(VariableStore(seed)) as store:
    for name in names:
      get_variable(name, [50, 4], NORMAL)
  return {name: variable.numpy() for name, variable in store.variables.items()}


def test_initial_values_depend_on_seed_and_name_alone():
  straight, reverse = values(["a", "b", "c"]), values(["c", "x", "a"])
  np.testing.assert_array_equal(straight["a"], reverse["a"])
  np.testing.assert_array_equal(straight["c"], reverse["c"])
  assert not np.array_equal(straight["a"], straight["b"])
  assert not np.array_equal(straight["a"], values(["a"], seed=2)["a"])


def test_truncated_normal():
  value = NORMAL([200, 200], seed=[1, 2]).numpy()
  assert np.abs(value).max() <= 0.04
  assert abs(value.mean()) < 3e-4
  # A normal cut at two standard deviations keeps 0.8796 of its own.
  assert value.std() == pytest.approx(0.02 * 0.8796, rel=0.02)


# ---------------------------------------------------------------------------------------------
# Inside traced functions.


def test_tracing_creates_variables_once_and_outside():
  store = VariableStore()

  def build(x):
    with use_store(store), tf.name_scope("step"), variable_scope("layer"):
      return x * get_variable("kernel", [1], vs.ones_initializer)

  function = tf.function(build)
  assert function(tf.constant([3.0])).numpy() == [3.0]
  kernel = store.variables["layer/kernel"]
  kernel.assign([2.0])
  assert function(tf.constant([3.0])).numpy() == [6.0]
  assert build(tf.constant([3.0])).numpy() == [6.0], "eager code finds the same variable"
  assert function(tf.constant([[3.0]])).numpy() == [[6.0]], "another trace, too"
  assert list(store.variables.values()) == [kernel]


def test_tracing_alone_fills_variables_and_runs_nothing():
  """So the estimator can restore a checkpoint between the trace and the first step."""
  store = VariableStore()

  def build(x):
    with use_store(store):
      return x * get_variable("kernel", [1], vs.ones_initializer)

  def as_it_is(next_creator, **kwargs):
    return next_creator(**{**kwargs, "experimental_enable_variable_lifting": False})

  with tf.variable_creator_scope(as_it_is):
    traced = tf.function(build).get_concrete_function(tf.TensorSpec([1]))
  assert store.variables["kernel"].numpy() == [1.0]
  store.variables["kernel"].assign([2.0])
  assert traced(tf.constant([3.0])).numpy() == [6.0]


# ---------------------------------------------------------------------------------------------
# Random bits.


def draws(seed, step, count=3):
  with random_stream(seed, step):
    return [tuple(next_random_seed().numpy().tolist()) for _ in range(count)]


def test_a_stream_repeats_itself():
  assert draws(1, 5) == draws(1, 5)


def test_no_two_calls_steps_or_seeds_draw_the_same():
  every = [d for seed in (1, 2, 1_000_004) for step in range(20) for d in draws(seed, step, 30)]
  assert len(set(every)) == len(every) == 3 * 20 * 30


def test_a_traced_stream_follows_the_step():
  """The step is a tensor in training: one trace has to draw anew in each step."""

  @tf.function
  def traced(step):
    with random_stream(1, step):
      return next_random_seed(), next_random_seed()

  for step in (0, 7):
    drawn = [tuple(seed.numpy().tolist()) for seed in traced(tf.constant(step, tf.int64))]
    assert drawn == draws(1, step, 2)


# ---------------------------------------------------------------------------------------------
# Threads: the replicas of a strategy are threads.


def in_thread(function):
  result = []
  thread = threading.Thread(target=lambda: result.append(function()))
  thread.start()
  thread.join(timeout=60)
  return result[0]


def test_threads_see_their_own_scopes_stores_and_streams():
  store = VariableStore()

  def build():
    with use_store(store):
      get_variable("v", [1])
    return vs.current_store(), vs._context.random

  with use_store(VariableStore()) as other, variable_scope("main"), random_stream(1, 1):
    seen_store, seen_stream = in_thread(build)
    assert vs.current_store() is other
  assert list(store.variables) == ["v"], "the scope of another thread is in the name"
  assert seen_store is not other
  assert seen_stream is None


def test_two_threads_that_ask_for_one_variable_get_the_same():
  store, barrier, found = VariableStore(), threading.Barrier(8), []

  def build():
    barrier.wait(timeout=60)
    with use_store(store):
      found.append(get_variable("v", [100], NORMAL))

  threads = [threading.Thread(target=build) for _ in range(8)]
  for thread in threads:
    thread.start()
  for thread in threads:
    thread.join(timeout=60)
  assert len(found) == 8
  assert len({id(variable) for variable in found}) == 1
