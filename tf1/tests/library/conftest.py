"""A graph for each test, and the values that a model's variables start with."""

import builtins
import importlib

import numpy as np
import pytest

import bert_tf1
from bert_tf1.real import tf


@pytest.fixture(autouse=True)
def _in_a_graph(graph):
  """Each test builds into a graph of its own."""


@pytest.fixture
def started():
  """Opens a session in which variables have the values of a checkpoint, or ones made by a rule."""
  with tf.Session() as session:

    def start(checkpoint=None):
      session.run(tf.global_variables_initializer())
      variables = sorted(tf.trainable_variables(), key=lambda variable: variable.name)
      if checkpoint:
        present = {name for name, _ in tf.train.list_variables(str(checkpoint))}
        variables = [variable for variable in variables if variable.op.name in present]
        tf.train.Saver(variables).restore(session, str(checkpoint))
      else:
        # In one run: each run of a graph that has grown costs as much as a hundred others.
        values = {v.initial_value: waves(i, v.shape.as_list()) for i, v in enumerate(variables)}
        session.run([variable.initializer for variable in variables], values)
      return session

    yield start


@pytest.fixture
def cell(monkeypatch, tmp_path):
  """Runs code as a notebook's cell does; returns its names."""
  monkeypatch.setattr(builtins, "__import__", builtins.__import__)
  monkeypatch.setattr(importlib, "import_module", importlib.import_module)
  bert_tf1.install(str(tmp_path))

  def run(code):
    names = {"__name__": "__main__"}
    exec(code, names)
    return names

  return run


def waves(index, shape):
  """The values by which numbers of TensorFlow 1.15.5 were made too."""
  values = 0.5 * np.sin(0.37 * np.arange(np.prod(shape)) + index)
  return values.reshape(shape).astype(np.float32)
