"""ALBERT's tokenizer."""

import shutil
import sys

import pytest

from bert import tokenization
from bert.io import installation
from bert.text.sentence_pieces import SentencePieceTokenizer, preprocess_text
from bert.text.vocabulary_file import VocabularyError
from tests.kit import piece_model
from tests.kit.recorded_pieces import recorded_pieces
from tests.kit.tokenizer_definition import write_vocab

MODELS = ("tiny", "commas")


@pytest.fixture(scope="module")
def albert_dir(golden_dir):
  return golden_dir / "albert"


@pytest.fixture(scope="module")
def own_model(tmp_path_factory):
  """Trained here: these tests run without the recorded ones, too."""
  return piece_model.write(tmp_path_factory.mktemp("pieces"))


@pytest.fixture(scope="module")
def commas_model(albert_dir):
  return albert_dir / "commas_spm.model"


# ---------------------------------------------------------------------------------------------
# What ALBERT recorded.


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
  ("suffix", "settings"),
  [
    ("", {"preprocess": False}),
    ("_lower", {"do_lower_case": True}),
    ("_cased", {"do_lower_case": False}),
  ],
  ids=["as it is", "lower", "cased"],
)
def test_recorded_texts(golden_dir, albert_dir, name, suffix, settings):
  cases = recorded_pieces(golden_dir, name)
  tokenizer = SentencePieceTokenizer(albert_dir / f"{name}_spm.model", **settings)
  # What preprocessing left unchanged was not recorded once more.
  expected = [
    (c.get("pieces" + suffix, c["pieces"]), c.get("ids" + suffix, c["ids"])) for c in cases
  ]
  texts = [case["text"] for case in cases]
  assert [tokenizer.tokenize(text) for text in texts] == [pieces for pieces, _ in expected]
  assert tokenizer.texts_to_ids(texts) == [ids for _, ids in expected]
  if suffix:
    prepared = [case.get("text" + suffix, case["text"]) for case in cases]
    assert [tokenizer.prepared(text) for text in texts] == prepared


# ---------------------------------------------------------------------------------------------
# Numbers with commas.


def test_a_number_before_a_comma(own_model):
  tokenizer = SentencePieceTokenizer(own_model)
  assert tokenizer.tokenize("2008, of") == ["▁200", "▁", "8", ",", "▁of"]
  for text in ("2008, of", "2008, ζ"):
    ids = tokenizer.convert_tokens_to_ids(tokenizer.tokenize(text))
    assert tokenizer.texts_to_ids([text]) == [tokenizer.text_to_ids(text)] == [ids]


# ---------------------------------------------------------------------------------------------
# preprocess_text.


def test_a_pile_of_accents_takes_linear_time():
  text = preprocess_text("e" + "\u0301\u0323" * 500_000)  # hours, if accents were sorted
  assert (len(text), text[:1]) == (1, "e")


# ---------------------------------------------------------------------------------------------
# The interface of FullTokenizer.


def test_special_tokens_stay_whole(own_model):
  tokenizer = SentencePieceTokenizer(own_model, special_tokens=("[MASK]",))
  assert tokenizer.tokenize("of [MASK] of film") == ["▁of", "[MASK]", "▁of", "▁film"]
  ids = [tokenizer.vocab[piece] for piece in ("▁of", "[MASK]", "▁of", "▁film")]
  assert tokenizer.text_to_ids("of [MASK] of film") == ids
  assert "[MASK]" not in SentencePieceTokenizer(own_model).tokenize("of [MASK] of film")
  with pytest.raises(VocabularyError, match=r"lacks the special tokens \['\[X\]'\]"):
    SentencePieceTokenizer(own_model, special_tokens=("[X]",))


@pytest.mark.parametrize("text", ["", " ", b"the \xff of", "a\ud800b", "a\0b", "▁", "[CLS]"])
def test_odd_texts(own_model, text):
  tokenizer = SentencePieceTokenizer(own_model)
  pieces = tokenizer.tokenize(text)
  assert tokenizer.text_to_ids(text) == tokenizer.convert_tokens_to_ids(pieces)


def test_the_names_of_albert(golden_dir, commas_model):
  [case] = [c for c in recorded_pieces(golden_dir, "commas") if c["text"] != c["text_lower"]][:1]
  tokenizer = tokenization.FullTokenizer.from_scratch(None, True, spm_model_file=commas_model)
  assert tokenizer.tokenize(case["text"]) == case["pieces"]
  prepared = preprocess_text(case["text"], lower=True)
  assert tokenizer.tokenize(prepared) == case["pieces_lower"]


def test_a_tokenizer_of_word_pieces_refuses_a_model(own_model):
  with pytest.raises(VocabularyError, match=r"spiece\.model is a sentencepiece model, not a voc"):
    tokenization.FullTokenizer(own_model)


def test_the_content_of_the_file_chooses_the_tokenizer(tmp_path, own_model):
  vocab_file = write_vocab(tmp_path, "[UNK]\n[CLS]\n[SEP]\nthe\n")
  assert type(tokenization.load_tokenizer(vocab_file, False)) is tokenization.FullTokenizer
  shutil.copy(own_model, vocab_file)
  tokenizer = tokenization.load_tokenizer(vocab_file, False, ("[MASK]",))
  assert type(tokenizer) is SentencePieceTokenizer
  assert (tokenizer.do_lower_case, tokenizer.special_tokens) == (False, {"[MASK]"})
  assert tokenization.load_vocab(vocab_file) == tokenizer.vocab
  assert list(tokenizer.vocab)[:5] == ["<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]"]


# ---------------------------------------------------------------------------------------------
# Bad files.


def test_a_missing_model(tmp_path):
  with pytest.raises(
    VocabularyError, match=r"Cannot read sentencepiece model .*no\.model: No such"
  ):
    SentencePieceTokenizer(tmp_path / "no.model")


@pytest.mark.parametrize(
  ("content", "message"),
  [
    (lambda model: b"", r"m\.model is not a sentencepiece model"),
    (lambda model: b"[PAD]\n[UNK]\n", r"m\.model is not a sentencepiece model"),
    (lambda model: model[:100], r"m\.model is damaged: its 100 bytes"),
    (lambda model: model.replace(b"[SEP]", b"[XXX]"), r"lacks the pieces \['\[SEP\]'\]"),
  ],
  ids=["empty", "a vocab.txt", "cut", "another kind of model"],
)
def test_a_bad_model(tmp_path, own_model, content, message):
  path = tmp_path / "m.model"
  path.write_bytes(content(own_model.read_bytes()))
  with pytest.raises(VocabularyError, match=message):
    SentencePieceTokenizer(path)


def test_without_the_library_the_extra_is_named(own_model, monkeypatch):
  monkeypatch.setitem(sys.modules, "sentencepiece", None)
  with pytest.raises(installation.MissingExtraError, match=r'pip install "bert-alive\[albert\]"'):
    SentencePieceTokenizer(own_model)
