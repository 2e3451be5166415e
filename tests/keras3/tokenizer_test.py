"""Tokenizers of transformers for folders and names from which models are loaded."""

import json

import numpy as np
import pytest

from bert import tokenization
from bert.keras3 import BERT, AutoTokenizer, BertModel, BertTokenizer, get_tokenizer
from tests.kit.keras_models import TINY, numpy_of
from tests.kit.paths import SAMPLES

TEXTS = ["The Company said [MASK]!", "Profits, rose."]


@pytest.mark.parametrize(
  "from_pretrained", [BertTokenizer.from_pretrained, AutoTokenizer.from_pretrained, get_tokenizer]
)
def test_the_originals_folder(from_pretrained):
  special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
  full = tokenization.FullTokenizer(SAMPLES / "vocab.txt", special_tokens=special)
  expected = full.encode_batch(TEXTS, TEXTS[::-1], pad_to_longest=True)
  found = from_pretrained(SAMPLES)(TEXTS, TEXTS[::-1], padding=True, return_tensors="np")
  for name, here in (("input_ids", "input_ids"), ("token_type_ids", "segment_ids")):
    np.testing.assert_array_equal(found[name], expected[here])


def test_the_case_of_a_folder(tmp_path, vocab_file):
  vocabulary = vocab_file.read_text() + "The\nthe\n"
  for name, token in (("cased_L-2_H-16_A-2", "The"), ("something", "the")):
    folder = tmp_path / name
    folder.mkdir()
    (folder / "vocab.txt").write_text(vocabulary)
    (folder / "bert_config.json").write_text("{}")
    assert BertTokenizer.from_pretrained(folder).tokenize("The") == [token]
  (folder / "tokenizer_config.json").write_text(json.dumps({"do_lower_case": False}))
  tokenizer = BertTokenizer.from_pretrained(folder)
  assert tokenizer.tokenize("The") == ["The"]
  tokenizer.save_pretrained(tmp_path / "saved")
  assert AutoTokenizer.from_pretrained(tmp_path / "saved").tokenize("The") == ["The"]


def test_a_tokenizer_of_another_family(golden_dir):
  tokenizer = get_tokenizer(golden_dir / "roberta" / "tiny")
  assert tokenizer("It rains <mask>.", "No")["input_ids"][0] == 0
  assert "token_type_ids" not in tokenizer("No")


def test_models_read_encodings(tokenizer):
  model = BertModel(BERT(**{**TINY, "vocab_size": len(tokenizer)}))
  encoded = tokenizer(["w1 w2 w3", "w4"], padding=True, return_tensors="np")
  ids, mask = np.array([[2, 6, 7, 8, 3], [2, 9, 3, 0, 0]]), encoded["attention_mask"]
  np.testing.assert_array_equal(encoded["input_ids"], ids)
  expected = numpy_of(model(ids, attention_mask=mask).pooler_output)
  np.testing.assert_array_equal(numpy_of(model(**encoded).pooler_output), expected)
