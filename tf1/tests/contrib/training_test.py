"""HParams of `tf.contrib.training`; every result and message is what TensorFlow 1.15.5 gave."""

import copy
import pickle
import re

import pytest

from bert_tf1.contrib import training
from bert_tf1.contrib.training import HParams, parse_values
from bert_tf1.real import tf

LISTS = dict(e=[1, 2], f=[1.5, 2.0], g=["p", "q"], i=[True, False])


def hparams(**more) -> HParams:
  return HParams(a=1, b=2.5, c="x", d=True, h=None, **LISTS, **more)


def changed(after: HParams) -> dict:
  """What differs from the values of `hparams()`."""
  before = hparams().values()
  return {
    name: value
    for name, value in after.values().items()
    if name not in before or before[name] != value or type(before[name]) is not type(value)
  }


@pytest.mark.parametrize(
  ("text", "expected"),
  [
    ("a=3,b=1", {"a": 3, "b": 1.0}),
    ("b=1e-3", {"b": 0.001}),
    ("c=hello world", {"c": "hello world"}),
    ("c=", {"c": ""}),
    ("c=a=b", {"c": "a=b"}),
    ("c='q'", {"c": "'q'"}),
    ("d=false", {"d": False}),
    ("d=0", {"d": False}),
    ("a=2,d=True", {"a": 2}),
    ("e=[3,4,5]", {"e": [3, 4, 5]}),
    ("e=[]", {"e": []}),
    ("e=[1,]", {"e": [1]}),
    ("f=[1,2]", {"f": [1.0, 2.0]}),
    ("g=[u,v w, x,,y]", {"g": ["u", "v", "w", "x", "y"]}),
    ('g=["x"]', {"g": ['"x"']}),
    ("i=[false,2]", {"i": [False, True]}),
    ("a=4,", {"a": 4}),
    ("a = 3 , b=2", {"a": 3, "b": 2.0}),
    ("a=-1,b=-.5", {"a": -1, "b": -0.5}),
    ("a=1_0", {"a": 10}),
    ("", {}),
  ],
)
def test_parse(text, expected):
  before = hparams()
  assert before.parse(text) is before
  assert changed(before) == expected


NOT_PARSED = "Could not parse hparam"


@pytest.mark.parametrize(
  ("text", "message"),
  [
    ("d=FALSE", f"{NOT_PARSED} 'd' of type 'bool' with value 'FALSE' in d=FALSE"),
    ("a=2.5", f"{NOT_PARSED} 'a' of type 'int' with value '2.5' in a=2.5"),
    ("a=1,b=x", f"{NOT_PARSED} 'b' of type 'float' with value 'x' in a=1,b=x"),
    ("f=[a]", f"{NOT_PARSED} 'f' of type 'float' with value 'a' in f=[a]"),
    ("e=1]", f"{NOT_PARSED} 'e' of type 'int' with value '1]' in e=1]"),
    ("a=1;b=2", f"{NOT_PARSED} 'a' of type 'int' with value '1;b=2' in a=1;b=2"),
    ("e=3", "Must pass a list for multi-valued parameter: e."),
    ("e[1]=9", "Must pass a list for multi-valued parameter: e."),
    ("a=[1]", "Must not pass a list for single-valued parameter: a"),
    ("a[0]=1", "Could not cast hparam 'a' of type '<class 'int'>' from value {0: 1}"),
    ("z=1", "Unknown hyperparameter type for z"),
    ("a", "Malformed hyperparameter value: a"),
    (" a=1", "Malformed hyperparameter value:  a=1"),
    ("a=1,=3", "Malformed hyperparameter value: =3"),
    ("c=x,y", "Malformed hyperparameter value: y"),
    ("e=[1,[2]]", "Malformed hyperparameter value: e=[1,[2]]"),
    ("e[a]=2", "Malformed hyperparameter value: e[a]=2"),
    ("a=1,a=2", "Multiple assignments to variable 'a' in a=1,a=2"),
  ],
)
def test_parse_refuses(text, message):
  with pytest.raises(ValueError, match="^" + re.escape(message) + "$"):
    hparams().parse(text)


def test_parse_values_of_a_map_of_types():
  assert parse_values("a=1,b=x", {"a": int, "b": str}) == {"a": 1, "b": "x"}
  assert parse_values("a[1]=3,a[0]=1", {"a": int}) == {"a": {1: 3, 0: 1}}
  assert parse_values("a=1,z=2", {"a": int}, ignore_unknown=True) == {"a": 1}
  assert parse_values("a=x", {"a": lambda text: text + "!"}) == {"a": "x!"}
  for text, name in [("a[1]=3,a[1]=1", "a[1]"), ("a[0]=3,a=[1]", "a")]:
    with pytest.raises(ValueError, match=re.escape(f"variable '{name}' in {text}")):
      parse_values(text, {"a": int})


@pytest.mark.parametrize(
  ("name", "value", "expected"),
  [
    ("a", 3, 3),
    ("b", 3, 3.0),
    ("c", b"z", "b'z'"),
    ("d", False, False),
    ("e", [], []),
    ("f", [1], [1.0]),
    ("h", "anything", "anything"),
  ],
)
def test_set_hparam(name, value, expected):
  one = hparams()
  one.set_hparam(name, value)
  assert changed(one) == {name: expected}
  assert type(one.values()[name]) is type(expected)
  assert changed(hparams().override_from_dict({name: value})) == {name: expected}


@pytest.mark.parametrize(
  ("name", "value"),
  [("a", "3"), ("a", 2.0), ("a", True), ("a", None), ("b", "x"), ("b", True), ("c", 3), ("d", 1)],
)
def test_set_hparam_refuses_another_type(name, value):
  kind = type(hparams().values()[name])
  message = f"Could not cast hparam '{name}' of type '{kind}' from value {value!r}"
  with pytest.raises(ValueError, match=re.escape(message)):
    hparams().set_hparam(name, value)


def test_set_hparam_refuses_one_for_many_and_unknown_names():
  with pytest.raises(ValueError, match="Must pass a list for multi-valued parameter: e"):
    hparams().set_hparam("e", (5, 6))
  with pytest.raises(ValueError, match="Must not pass a list for single-valued parameter: a"):
    hparams().set_hparam("a", [1])
  with pytest.raises(KeyError, match="z"):
    hparams().set_hparam("z", 1)


def test_names_are_added_and_removed():
  assert changed(hparams(n=(1, 2))) == {"n": (1, 2)}
  for name in ("a", "values"):
    with pytest.raises(ValueError, match=f"^Hyperparameter name is reserved: {name}$"):
      hparams().add_hparam(name, 1)
  with pytest.raises(ValueError, match=r"^Multi-valued hyperparameters cannot be empty: n$"):
    hparams().add_hparam("n", [])
  less = hparams()
  less.del_hparam("a")
  less.del_hparam("zz")
  assert "a" not in less
  assert "b" in less
  assert not hasattr(less, "a")


def test_get():
  one = hparams()
  assert [one.get("a"), one.get("a", 7), one.get("z"), one.get("z", 3)] == [1, 1, None, 3]
  assert [one.get("e", [3]), one.get("b", 1)] == [[1, 2], 2.5]
  fault = "Hparam 'a' of type '<class 'int'>' is incompatible with default=x. "
  cause = "Could not cast hparam 'a' of type '<class 'int'>' from value 'x'"
  with pytest.raises(ValueError, match="^" + re.escape(fault + cause) + "$"):
    one.get("a", "x")
  fault = "Hparam 'e' of type 'list<<class 'int'>>' is incompatible with default=3"
  with pytest.raises(ValueError, match="^" + re.escape(fault) + "$"):
    one.get("e", 3)


def test_as_text():
  assert str(HParams(b=[1, 2], a="x")) == "a=x,b=[1, 2]"
  assert repr(HParams(b=[1], a=2)) == "HParams([('a', 2), ('b', [1])])"
  assert HParams(a=1, b=[2]).to_json() == '{"a": 1, "b": [2]}'
  sorted_json = HParams(b=1, a="x").to_json(indent=1, separators=(",", ":"), sort_keys=True)
  assert sorted_json == '{\n "a":"x",\n "b":1\n}'
  assert changed(hparams().parse_json('{"a":5,"e":[7]}')) == {"a": 5, "e": [7]}


def test_copies_and_model_structure():
  one = HParams(model_structure="beside", a=1)
  assert one.get_model_structure() == "beside"
  assert copy.deepcopy(one).values() == pickle.loads(pickle.dumps(one)).values() == {"a": 1}
  with pytest.raises(ValueError, match="pass names and values"):
    HParams(object())


def test_an_unknown_name():
  with pytest.raises(AttributeError, match=r"tf\.contrib\.training\.Hparams is not available"):
    training.Hparams  # noqa: B018


def trained(loss=lambda v, w: tf.square(v) + w, **options) -> tuple[list, list]:
  """The train op's values in two steps; then v, an updated count, w and the global step."""
  with tf.Graph().as_default(), tf.Session() as session:
    v, w = tf.get_variable("v", initializer=2.0), tf.get_variable("w", initializer=1.0)
    count = tf.get_variable("count", initializer=1.0, trainable=False)
    tf.add_to_collection(tf.GraphKeys.UPDATE_OPS, tf.assign_add(count, 1.0))
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    if options.pop("only_v", False):
      options["variables_to_train"] = [v]
    train_op = training.create_train_op(loss(v, w), optimizer, **options)
    assert tf.get_collection(tf.GraphKeys.TRAIN_OP)[-1] is train_op
    step = tf.train.get_global_step()
    session.run(tf.global_variables_initializer())
    losses = [session.run(train_op) for _ in range(2)]
    counted = [] if step is None else [step]
    return losses, session.run([v, count, w, *counted])


@pytest.mark.parametrize(
  ("options", "losses", "variables"),
  [
    ({}, [5.0, 3.46], [1.28, 3.0, 0.8, 2]),
    ({"global_step": None}, [5.0, 3.46], [1.28, 3.0, 0.8]),
    ({"update_ops": []}, [5.0, 3.46], [1.28, 1.0, 0.8, 2]),
    ({"only_v": True}, [5.0, 3.56], [1.28, 3.0, 1.0, 2]),
    (
      {"transform_grads_fn": lambda pairs: [(grad * 2, var) for grad, var in pairs]},
      [5.0, 2.24],
      [0.72, 3.0, 0.6, 2],
    ),
  ],
)
def test_create_train_op(options, losses, variables):
  found = trained(**options)
  assert found[0] == pytest.approx(losses, rel=1e-6)
  assert found[1] == pytest.approx(variables, rel=1e-6)


def test_create_train_op_of_a_loss_that_is_not_finite():
  with pytest.raises(tf.errors.InvalidArgumentError, match="LossTensor is inf or nan"):
    trained(lambda v, w: tf.log(v - 3.0))
  with pytest.raises(ValueError, match="there is nothing to train"):
    trained(variables_to_train=[])


def test_gradients_in_summaries():
  with tf.Graph().as_default():
    v = tf.get_variable("s/v", initializer=2.0)
    optimizer = tf.train.GradientDescentOptimizer(0.1)
    training.create_train_op(tf.square(v), optimizer, summarize_gradients=True)
    assert [tensor.op.name for tensor in tf.get_collection(tf.GraphKeys.SUMMARIES)] == [
      "summarize_grads/s/v_gradient",
      "summarize_grads/s/v_gradient_norm",
    ]
