"""ELECTRA's generator and discriminator against the original's outputs."""

import numpy as np
import pytest
import tensorflow as tf

from bert.model import heads, replaced_tokens
from bert.model.variables import VariableStore, use_store
from bert.modeling import BertModel
from bert.pretraining import dynamic_masking
from bert.pretraining.dynamic_masking import Masking
from tests.kit.families import load_variables
from tests.kit.recorded_configs import electra_config

PREDICTIONS = {"b0": 7, "b1": 7, "b2": 7, "b3": 3}


def assert_close(actual, expected, name):
  np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-5, err_msg=name)


@pytest.fixture(scope="module")
def golden(golden_dir):
  return np.load(golden_dir / "electra" / "forward.npz")


@pytest.fixture(scope="module")
def vocab(golden_dir):
  lines = (golden_dir / "electra" / "tiny_vocab.txt").read_text().splitlines()
  return {token: number for number, token in enumerate(lines)}


def masked_batch(golden, vocab, batch):
  masking = Masking.from_vocabulary(vocab, max_predictions_per_seq=PREDICTIONS[batch])
  inputs = {
    name: golden[f"{batch}_in_{name}"] for name in ("input_ids", "input_mask", "segment_ids")
  }
  positions = golden[f"{batch}_in_drawn_positions"]
  return dynamic_masking.mask_positions(
    inputs, positions, golden[f"{batch}_in_mask_uniform"], masking
  )


def outputs_of(golden, config, batch, masked):
  inputs = masked["input_mask"], masked["segment_ids"]
  generator = BertModel(
    *(config.generator_config(), False, masked["input_ids"], *inputs),
    scope="generator",
    embedding_scope="electra",
  )
  loss, per_example, log_probs = heads.get_masked_lm_output(
    config.generator_config(),
    generator.get_sequence_output(),
    generator.get_embedding_table(),
    *(masked["masked_lm_positions"], masked["masked_lm_ids"], masked["masked_lm_weights"]),
  )
  words = golden[f"{batch}_sampled_tokids"]
  replaced = replaced_tokens.replace(
    masked["input_ids"], masked["masked_lm_positions"], masked["masked_lm_ids"], words
  )
  discriminator = BertModel(config, False, replaced.input_ids, *inputs)
  logits = replaced_tokens.discriminator_logits(config, discriminator.get_sequence_output())
  disc_loss, disc_losses = replaced_tokens.detection_loss(
    logits, replaced.is_replaced, masked["input_mask"]
  )
  return {
    "mlm_loss": loss,
    "mlm_per_example_loss": tf.reshape(per_example, words.shape),
    "fake_input_ids": replaced.input_ids,
    "is_fake_tokens": replaced.is_replaced,
    "disc_logits": logits,
    "disc_loss": disc_loss,
    "disc_per_example_loss": disc_losses,
    "total_loss": loss + 50.0 * disc_loss,
    "log_probs": log_probs,
  }


@pytest.mark.parametrize("batch", ["b0", "b1", "b3"])
def test_masks_equal_the_original(golden, vocab, batch):
  masked = masked_batch(golden, vocab, batch)
  np.testing.assert_array_equal(masked["input_ids"], golden[f"{batch}_masked_input_ids"])
  for name in ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights"):
    np.testing.assert_array_equal(masked[name], golden[f"{batch}_{name}"], err_msg=name)


def test_losses_and_replaced_tokens_equal_the_original(golden, vocab, golden_dir):
  config = electra_config(golden_dir)
  with use_store(VariableStore()) as store:
    for batch in ("b0", "b1", "b3"):
      masked = masked_batch(golden, vocab, batch)
      outputs_of(golden, config, batch, masked)
      load_variables(store, golden_dir / "electra" / "model.ckpt")
      outputs = outputs_of(golden, config, batch, masked)
      log_probs = outputs.pop("log_probs")
      expected = tf.nn.log_softmax(golden[f"{batch}_mlm_logits"])
      assert_close(log_probs, tf.reshape(expected, log_probs.shape), f"{batch} log_probs")
      for name, value in outputs.items():
        scale = 50 if name == "total_loss" else 1
        assert_close(value / scale, golden[f"{batch}_{name}"] / scale, f"{batch} {name}")


@pytest.mark.parametrize("batch", ["b1", "b2"])
def test_words_drawn_with_the_original_s_noise_are_its_words(golden, batch):
  options = {}
  if batch == "b2":
    options = dict(temperature=0.5, disallowed=golden["b1_masked_lm_ids"])
  logits = golden["b1_mlm_logits"]
  noise = golden["b1_in_sampling_uniform"]
  words = replaced_tokens.draw_words(logits, noise, **options)
  np.testing.assert_array_equal(words, golden[f"{batch}_sampled_tokids"])
  replaced = replaced_tokens.replace(
    golden["b1_masked_input_ids"],
    *(golden["b1_masked_lm_positions"], golden["b1_masked_lm_ids"], words),
  )
  np.testing.assert_array_equal(replaced.input_ids, golden[f"{batch}_fake_input_ids"])
  np.testing.assert_array_equal(replaced.is_replaced, golden[f"{batch}_is_fake_tokens"])


# ---------------------------------------------------------------------------------------------
# Masks drawn while reading.

VOCAB = {"[PAD]": 0, "[CLS]": 1, "[SEP]": 2, "[MASK]": 3} | {f"w{i}": i for i in range(4, 60)}


def draw(lengths, numbers, seed=7, length=40, predictions=6):
  masking = Masking.from_vocabulary(VOCAB, max_predictions_per_seq=predictions, electra=True)
  input_mask = (np.arange(length) < np.array(lengths)[:, None]).astype(np.int32)
  ids = np.random.RandomState(0).randint(4, 60, input_mask.shape)
  ids[:, 0] = 1
  ids[np.arange(len(lengths)), np.array(lengths) - 1] = 2
  features = {"input_ids": tf.constant(ids * input_mask, tf.int32), "input_mask": input_mask}
  masked = dynamic_masking.draw_masks(features, tf.constant(numbers, tf.int64), seed, masking)
  return {name: np.array(value) for name, value in masked.items()}, ids * input_mask


def test_drawn_positions_are_words_and_their_number_is_the_original_s():
  lengths = [40, 30, 10, 3]
  masked, ids = draw(lengths, range(4))
  counts = masked["masked_lm_weights"].sum(axis=1)
  assert counts.tolist() == [6, 4, 2, 1]  # 4.5 is rounded to 4, and 1.5 to 2
  for row, count in enumerate(counts.astype(int)):
    positions = masked["masked_lm_positions"][row, :count]
    assert ((positions > 0) & (positions < lengths[row] - 1)).all()
    np.testing.assert_array_equal(masked["masked_lm_ids"][row, :count], ids[row, positions])
    assert not masked["masked_lm_positions"][row, count:].any()
  changed = masked["input_ids"] != ids
  assert (masked["input_ids"][changed] == 3).all()


def test_a_sequence_without_words_has_no_mask():
  masked, ids = draw([2, 40], [0, 1])
  assert masked["masked_lm_weights"][0].sum() == 0
  np.testing.assert_array_equal(masked["input_ids"][0], ids[0])


def test_a_position_drawn_twice_gets_the_mean_of_its_words():
  replaced = replaced_tokens.replace(
    tf.constant([[1, 3, 9, 2]]), tf.constant([[1, 1, 0]]), tf.constant([[7, 7, 0]]), [[4, 9, 5]]
  )
  assert replaced.input_ids.numpy().tolist() == [[1, 6, 9, 2]]
  assert replaced.is_replaced.numpy().tolist() == [[0, 1, 0, 0]]
