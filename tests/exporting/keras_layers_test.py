"""Preprocessing and task models as layers of Keras 3 (the encoder: hub_encoder_test.py)."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from bert.exporting.hub_preprocess import export_preprocess
from tests.kit import exports

pytestmark = pytest.mark.ci
TEXTS = tf.constant(["The film was good.", "bad"])


@pytest.fixture(scope="module")
def preprocess_dir(trained, tmp_path_factory) -> str:
  folder = str(tmp_path_factory.mktemp("export") / "preprocess")
  export_preprocess(folder, f"{trained}/vocab.txt", seq_length=12)
  return folder


def assert_same(found, expected):
  assert sorted(found) == sorted(expected)
  for name in expected:
    np.testing.assert_array_equal(found[name], expected[name])


def test_training_makes_no_difference_to_preprocessing(preprocess_dir):
  preprocess = tf.saved_model.load(preprocess_dir)
  for training in (False, True, None):
    assert_same(preprocess(TEXTS, training=training), preprocess(TEXTS))
    cut = preprocess(TEXTS, seq_length=4, training=training)
    assert_same(cut, preprocess(TEXTS, seq_length=4))
    assert cut["input_word_ids"].shape == [2, 4]


@pytest.mark.parametrize("endpoint", ["serve", "serving_default", "__call__"])
def test_preprocessing(preprocess_dir, endpoint):
  layer = keras.layers.TFSMLayer(preprocess_dir, call_endpoint=endpoint)
  text = keras.Input([], dtype="string")
  model = keras.Model(text, layer(text))
  assert_same(model(TEXTS), tf.saved_model.load(preprocess_dir)(TEXTS))


def test_a_task_of_pairs(tmp_path_factory):
  folder = f"{exports.classifier(tmp_path_factory).exported}/task"
  pairs = {"text_a": TEXTS, "text_b": TEXTS[::-1]}
  expected = tf.saved_model.load(folder).signatures["serving_default"](**pairs)
  assert_same(keras.layers.TFSMLayer(folder)(pairs), expected)
