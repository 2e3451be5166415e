"""Masked words with RoBERTa's tokenizer. Alone: pytest tests/predicting/byte_pair_masks_test.py"""

import json
import types

import numpy as np
import pytest
import tensorflow as tf

from bert.checkpoints import bundle_files
from bert.exporting import saved_models
from bert.predicting import masked_words
from bert.text.byte_pairs import BytePairTokenizer
from tests.kit import byte_pairs, tiny_bert


@pytest.fixture
def fill(tmp_path):
  """A predictor of a model that says " the", then "é"."""
  tokenizer = BytePairTokenizer(byte_pairs.write(tmp_path), False, masked_words.SPECIAL_TOKENS)
  guesses = tokenizer.convert_tokens_to_ids(["Ġthe", "Ã©"])

  def compute(batch):
    shape = (*np.shape(batch["masked_lm_positions"]), 2)
    ids, probabilities = np.broadcast_to(guesses, shape), np.broadcast_to([0.75, 0.25], shape)
    return {"ids": ids, "probabilities": probabilities}

  heads = masked_words.Heads(words=True)
  return masked_words._predictor(compute, tokenizer, 12, heads, 4, 8)


def test_guesses_are_text(fill):
  (result,) = fill(["Hello <mask>..."])
  assert result["masks"] == [
    [{"token": " the", "probability": 0.75}, {"token": "é", "probability": 0.25}]
  ]


@pytest.mark.parametrize(
  ("text", "message"),
  [
    ("Hello [MASK].", r"no <mask> in .*Write <mask>, exactly so, for \[MASK\]"),
    ("((((((((((((((( <mask>", r"1 of 1 <mask> in .* beyond max_seq_length 12"),
  ],
)
def test_a_text_without_a_mask_that_is_read(fill, text, message):
  with pytest.raises(ValueError, match=message):
    fill([text])


def test_positions_of_padding_are_not_for_tokens(tmp_path, monkeypatch):
  for folder in ("assets", "assets.extra"):
    (tmp_path / folder).mkdir()
  vocab_file = byte_pairs.write(tmp_path / "assets")
  config = tiny_bert.sizes(
    len(byte_pairs.vocabulary()), 8, 1, 8, 14, model_type="roberta", type_vocab_size=1
  )
  (tmp_path / "assets.extra" / "bert_config.json").write_text(json.dumps(config))
  asset = types.SimpleNamespace(asset_path=tf.constant(str(vocab_file)))
  encoder = types.SimpleNamespace(mlm=None, vocab_file=asset, do_lower_case=tf.constant(False))
  monkeypatch.setattr(bundle_files, "is_saved_model", lambda path: True)
  monkeypatch.setattr(saved_models, "load", lambda path: encoder)
  with pytest.raises(ValueError, match="max_seq_length is 13, but must be from 3 to 12"):
    masked_words.from_saved_model(str(tmp_path), max_seq_length=13)
