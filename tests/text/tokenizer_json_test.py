"""tokenizer.json of vocabularies: the library makes of it the tokens of this project.

Alone: python -m pytest tests/text/tokenizer_json_test.py (a second; tokenizers, sentencepiece)
"""

import json

import pytest
import sentencepiece

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


@pytest.fixture(scope="module")
def model(tmp_path_factory):
  return piece_model.write(tmp_path_factory.mktemp("model"))


def test_pieces_are_those_of_the_library(model):
  content = tokenizer_json.whole(model, do_lower_case=True)
  library = sentencepiece.SentencePieceProcessor(model_file=str(model))
  ids = range(library.get_piece_size())
  pieces = content["model"]["vocab"]
  assert [text for text, _ in pieces] == list(map(library.id_to_piece, ids))
  assert [score for text, score in pieces if text != "8,"] == [
    library.get_score(index) for index in ids if library.id_to_piece(index) != "8,"
  ]
  special = [token["id"] for token in content["added_tokens"] if token["special"]]
  assert special == list(filter(library.is_control, ids))
  whole = [token["content"] for token in content["added_tokens"] if not token["special"]]
  assert sorted(whole) == sorted(piece_model.SYMBOLS)
  assert content["model"]["unk_id"] == library.unk_id()
  assert len(content["normalizer"]["normalizers"][-2]["precompiled_charsmap"]) > 100_000


@pytest.mark.parametrize("damage", [lambda data: data[:80], lambda data: data[:-1] + b"\xff\xff"])
def test_a_damaged_model_is_refused(model, tmp_path, damage):
  path = tmp_path / "spiece.model"
  path.write_bytes(damage(model.read_bytes()))
  with pytest.raises(tokenization.VocabularyError, match="is damaged"):
    tokenizer_json.whole(path, True)
