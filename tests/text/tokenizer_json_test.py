"""tokenizer.json of vocabularies: the library makes of it the tokens of this project.

Alone: python -m pytest tests/text/tokenizer_json_test.py (a second; tokenizers, sentencepiece)
"""

import json

import pytest

from bert import tokenization
from bert.tasks.classification import InputExample, join_texts
from bert.text import tokenizer_json
from tests.kit import piece_model
from tests.kit.paths import SAMPLE_VOCAB

tokenizers = pytest.importorskip("tokenizers")
TEXTS = ["The quake was felt.", "Où est-il, 10,000 km?  中文", "[MASK] it"]


@pytest.mark.parametrize("lower", [True, False])
def test_word_pieces(lower):
  check(str(SAMPLE_VOCAB), lower)


def test_sentence_pieces(tmp_path):
  check(str(piece_model.write(tmp_path)), True)


def check(vocab_file, lower):
  """Compares texts, and a pair, which has segments."""
  content = tokenizer_json.whole(vocab_file, lower)
  library = tokenizers.Tokenizer.from_str(json.dumps(content))
  tokenizer = tokenization.load_tokenizer(vocab_file, lower)
  for text in TEXTS[:2]:
    found = library.encode(text, TEXTS[0])
    tokens, segments = join_texts(InputExample(None, text, TEXTS[0]), 128, tokenizer)
    assert found.ids == tokenizer.convert_tokens_to_ids(tokens)
    assert found.type_ids == segments
  mask = tokenizer.convert_tokens_to_ids(["[MASK]"])[0]
  assert mask in library.encode(TEXTS[2]).ids
