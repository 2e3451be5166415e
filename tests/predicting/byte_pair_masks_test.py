"""Masked words with RoBERTa's tokenizer. Alone: pytest tests/predicting/byte_pair_masks_test.py"""

import numpy as np
import pytest

from bert.predicting import masked_words
from bert.predicting.predictor import Predictor
from bert.text.byte_pairs import BytePairTokenizer
from tests.kit import byte_pairs


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
  processor = masked_words.MaskedWordsProcessor(tokenizer, 12, heads)
  compute.inputs = masked_words.INPUTS
  return Predictor(processor, compute, 4, 8)


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
