"""The share of unknown tokens among records."""

import numpy as np
import pytest

from bert import tokenization
from bert.text.unknown_tokens import UnknownTokens, unknown_words
from tests.kit.tokenizer_definition import write_vocab

# [CLS] the [UNK] [SEP] [UNK] [SEP] [PAD] [PAD]: two of three tokens are unknown.
IDS = [2, 4, 1, 3, 1, 3, 0, 0]


@pytest.fixture
def tokenizer(tmp_path):
  return tokenization.FullTokenizer(write_vocab(tmp_path, "[PAD]\n[UNK]\n[CLS]\n[SEP]\nthe\n"))


@pytest.mark.parametrize(
  "record",
  [
    {"input_ids": IDS, "input_mask": [1] * 8, "label_ids": 1},
    {"input_ids": np.array([IDS, IDS])},
    {"input_ids": [IDS, [0] * 8]},
    {"input_ids_a": IDS, "input_ids_b": np.zeros(8, np.int32)},
  ],
)
def test_tokens_of_texts_are_counted(tokenizer, record):
  unknown = UnknownTokens(tokenizer)
  assert list(unknown.counted([record])) == [record]
  assert unknown.warning("dev", [("The кот", "кит"), None, ("пёс",)]) == (
    "67% of the tokens of dev are [UNK]: this vocabulary does not suit these texts. Words such as "
    "кот, кит, пёс are unknown. Check --do_lower_case, or take the vocabulary of a model for this "
    "language."
  )


@pytest.mark.parametrize(("known", "warns"), [(94, True), (95, False)])
def test_few_unknown_tokens_are_usual(tokenizer, known, warns):
  unknown = UnknownTokens(tokenizer)
  list(unknown.counted([{"input_ids": [4] * known + [1] * 5}]))
  assert bool(unknown.warning("train", [])) == warns


def test_words_that_are_unknown(tokenizer):
  assert unknown_words(tokenizer, "the кот the кот, a b c") == ["кот", "кот,", "a"]
