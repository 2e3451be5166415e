"""`tf.contrib.framework`: what TensorFlow 1.15.5 gave for the same lines."""

import re

import numpy as np
import pytest

from bert_tf1.contrib import framework
from bert_tf1.real import tf

pytestmark = pytest.mark.usefixtures("graph")


@framework.add_arg_scope
def first(a, b=2, c=3, **more):
  return a, b, c, more


@framework.add_arg_scope
def second(a=1, b=2):
  return a, b


def undecorated(a):
  return a


def test_a_scope_gives_arguments_and_the_call_wins():
  with framework.arg_scope([first], b=5, z=1):
    assert first(1) == (1, 5, 3, {"z": 1})
    assert first(1, b=6, c=4) == (1, 6, 4, {"z": 1})
    with framework.arg_scope([first, second], b=7):
      assert first(1)[1] == second()[1] == 7
    assert first(1)[1] == 5
    assert second() == (1, 2)
  assert first(1) == (1, 2, 3, {})


def test_a_scope_is_used_again():
  with framework.arg_scope((first, second), b=7) as scope:
    pass
  with framework.arg_scope(scope):
    assert (first(1)[1], second()) == (7, (1, 7))
    with framework.arg_scope([second], a=4) as inner:
      assert second() == (4, 7)
  with framework.arg_scope(inner):
    assert second() == (4, 7)
  assert second() == (1, 2)


def test_a_scope_ends_where_its_body_fails():
  with pytest.raises(KeyError), framework.arg_scope([first], b=5):
    raise KeyError("x")
  assert first(1) == (1, 2, 3, {})
  assert framework.current_arg_scope() == {}


def test_scopes_refuse():
  list_or_scope = "list_ops_or_scope must either be a list/tuple or reused scope"
  with pytest.raises(TypeError, match=list_or_scope), framework.arg_scope(first, b=4):
    pass
  not_decorated = "undecorated is not decorated with @add_arg_scope"
  with pytest.raises(ValueError, match=not_decorated), framework.arg_scope([undecorated], a=1):
    pass
  with pytest.raises(ValueError, match="takes no arguments"), framework.arg_scope({}, b=1):
    pass


def test_what_is_decorated():
  assert framework.has_arg_scope(first)
  assert not framework.has_arg_scope(undecorated)
  assert framework.arg_scoped_arguments(second) == ("a", "b")
  assert second.__name__ == "second"


def names(variables) -> list[str]:
  return [variable.name for variable in variables]


def test_variables_by_name_and_collection():
  with tf.variable_scope("s"):
    ones = tf.ones_initializer()
    framework.model_variable("a", [2], initializer=ones, regularizer=tf.reduce_sum)
    framework.variable("b", [3], trainable=False)
    framework.local_variable(tf.zeros([2]), name="c")
    framework.global_variable(1.0, name="d")
  framework.variable("e", [1], collections=["mine"])
  assert names(framework.get_variables()) == ["s/a:0", "s/b:0", "s/d:0"]
  assert names(framework.get_variables(suffix="b")) == ["s/b:0"]
  assert names(framework.get_model_variables()) == ["s/a:0"]
  assert names(framework.get_trainable_variables()) == ["s/a:0", "e:0"]
  assert names(framework.get_local_variables()) == ["s/c:0"]
  assert names(framework.get_variables_by_name("a", "s")) == ["s/a:0"]
  assert names(framework.get_variables_by_name("a")) == ["s/a:0"]
  assert names(framework.get_variables_by_suffix("d")) == ["s/d:0"]
  assert names(framework.get_variables_to_restore()) == ["s/a:0", "s/b:0", "s/d:0"]
  assert names(framework.get_variables_to_restore(["s/a", "s/b"], ["s/b"])) == ["s/a:0"]
  assert framework.get_unique_variable("s/a").name == "s/a:0"
  assert framework.get_variable_full_name(tf.global_variables()[0]) == "s/a"
  assert names(tf.get_collection("mine")) == ["e:0"]
  assert names(tf.get_collection(tf.GraphKeys.REGULARIZATION_LOSSES)) == ["s/a/Regularizer/Sum:0"]
  with pytest.raises(ValueError, match="Couldn't find variable zz"):
    framework.get_unique_variable("zz")


def test_filter_variables():
  for name in ("s/a", "s/b"):
    tf.get_variable(name, [1])
  every = tf.global_variables()
  assert names(framework.filter_variables(every)) == ["s/a:0", "s/b:0"]
  assert framework.filter_variables(every, ["a$"]) == []  # The names end in ":0".
  assert framework.filter_variables(every, ["a"], reg_search=False) == []
  assert names(framework.filter_variables(every, ["s/a"], reg_search=False)) == ["s/a:0"]
  assert names(framework.filter_variables(every, exclude_patterns=["a"])) == ["s/b:0"]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory) -> str:
  with tf.Graph().as_default(), tf.Session() as session:
    tf.get_variable("a", initializer=[1.0, 2.0])
    tf.get_variable("x/b", initializer=[[3.0]])
    session.run(tf.global_variables_initializer())
    return tf.train.Saver().save(session, str(tmp_path_factory.mktemp("saved") / "model.ckpt"))


def test_assign_from_checkpoint(checkpoint):
  a = tf.get_variable("n", [2])
  op, feeds = framework.assign_from_checkpoint(checkpoint, {"a": a})
  with tf.Session() as session:
    session.run(op, feeds)
    assert session.run(a).tolist() == [1.0, 2.0]
  with pytest.raises(ValueError, match=re.escape("Checkpoint is missing variable [zz]")):
    framework.assign_from_checkpoint(checkpoint, [tf.get_variable("zz", [1])])
  size = "Total size of new array must be unchanged for a lh_shape: [(2,)], rh_shape: [(3,)]"
  with pytest.raises(ValueError, match=re.escape(size)):
    framework.assign_from_checkpoint(checkpoint, {"a": tf.get_variable("three", [3])})


def test_assign_from_checkpoint_fn(checkpoint):
  variables = [tf.get_variable("a", [2]), tf.get_variable("x/b", [1, 1])]
  more = tf.get_variable("z", [2], initializer=tf.zeros_initializer())
  column = tf.get_variable("column", [2, 1])
  assign = framework.assign_from_checkpoint_fn
  with tf.Session() as session:
    session.run(more.initializer)
    assign(checkpoint, [*variables, more], ignore_missing_vars=True)(session)
    assign(checkpoint, {"a": column}, reshape_variables=True)(session)
    found = session.run([*variables, more, column])
  assert [value.tolist() for value in found] == [[1, 2], [[3]], [0, 0], [[1], [2]]]
  assert assign(checkpoint, [more], ignore_missing_vars=True) is None


def test_assign_from_values():
  a = tf.get_variable("a", [2])
  with tf.Session() as session:
    framework.assign_from_values_fn({"a": np.float32([7, 8])})(session)
    assert session.run(a).tolist() == [7.0, 8.0]


def test_what_checkpoints_hold(checkpoint):
  assert framework.list_variables(checkpoint) == [("a", [2]), ("x/b", [1, 1])]
  assert framework.load_variable(checkpoint, "a").tolist() == [1.0, 2.0]
  assert framework.load_checkpoint(checkpoint).has_tensor("x/b")


def test_names_from_elsewhere():
  assert framework.get_or_create_global_step().name == "global_step:0"
  assert framework.nest.map_structure(lambda x: x + 1, [1, (2,)]) == [2, (3,)]
  assert framework.nest.is_sequence((1,))
  assert not framework.nest.is_sequence("a")
  assert framework.smart_constant_value(True) is True
  shapes = framework.remove_squeezable_dimensions(tf.zeros([2, 1]), tf.zeros([2]))
  assert [tensor.shape.as_list() for tensor in shapes] == [[2], [2]]
