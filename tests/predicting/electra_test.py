"""Predictions of an ELECTRA: words of the generator, and the discriminator's verdicts."""

import shutil

import numpy as np
import pytest
import tensorflow as tf

from bert import predict_masked, tokenization
from bert.model import heads, replaced_tokens
from bert.model.variables import VariableStore, use_store
from bert.modeling import BertModel
from bert.predicting.predictor import Predictor
from tests.kit.families import load_variables
from tests.kit.recorded_configs import electra_config

TEXT = "the [MASK] is in [MASK] ."


@pytest.fixture(scope="module")
def folder(golden_dir, tmp_path_factory):
  folder = tmp_path_factory.mktemp("electra")
  for path in (golden_dir / "electra").glob("model.ckpt.*"):
    shutil.copyfile(path, folder / path.name)
  shutil.copyfile(golden_dir / "electra" / "tiny_vocab.txt", folder / "vocab.txt")
  (folder / "bert_config.json").write_text(electra_config(golden_dir).to_json_string())
  return folder


@pytest.fixture(scope="module")
def predict(folder):
  return Predictor.load(str(folder), task="masked_words", top_k=3, max_seq_length=16)


def test_words_are_the_generator_s_and_verdicts_the_discriminator_s(golden_dir, folder, predict):
  [result] = predict([TEXT])
  config, vocab = electra_config(golden_dir), tokenization.load_vocab(folder / "vocab.txt")
  ids = [vocab[token] for token in f"[CLS] {TEXT} [SEP]".split()]
  inputs = tf.constant([ids]), tf.ones([1, len(ids)], tf.int32), tf.zeros([1, len(ids)], tf.int32)
  generator = config.generator_config()

  def forward(filled):
    small = BertModel(generator, False, *inputs, scope="generator", embedding_scope="electra")
    vectors = tf.gather(small.get_sequence_output()[0], [2, 5])
    words = heads.masked_lm_logits(generator, vectors, small.get_embedding_table())
    large = BertModel(config, False, filled, *inputs[1:])
    scores = replaced_tokens.discriminator_logits(config, large.get_sequence_output())
    return tf.nn.softmax(words).numpy(), tf.sigmoid(scores)[0].numpy()

  with use_store(VariableStore()) as store:
    forward(inputs[0])
    load_variables(store, folder / "model.ckpt")
    words, _ = forward(inputs[0])
    filled = np.array([ids])
    filled[0, [2, 5]] = words.argmax(axis=1)
    _, verdicts = forward(tf.constant(filled, tf.int32))
  for guesses, expected in zip(result["masks"], words, strict=True):
    assert vocab[guesses[0]["token"]] == expected.argmax()
    assert guesses[0]["probability"] == pytest.approx(expected.max(), abs=1e-6)
  assert [vocab[each["token"]] for each in result["tokens"]] == filled[0, 1:-1].tolist()
  found = [each["replaced"] for each in result["tokens"]]
  np.testing.assert_allclose(found, verdicts[1:-1], atol=1e-6)
  table = predict_masked.to_table(result)
  assert "  replaced       the " in table


def test_a_text_without_a_mask_has_verdicts_alone(predict):
  [result] = predict(["the house ."])
  assert result["masks"] == []
  assert [each["token"] for each in result["tokens"]][-1] == "."
