"""ALBERT's tokenizer. Alone: python -m pytest tests/text/sentence_pieces_test.py"""

import pickle
import shutil
import sys
import unicodedata

import pytest
from hypothesis import given

from bert import tokenization
from bert.io import installation
from bert.text.sentence_pieces import SentencePieceTokenizer, preprocess_text
from bert.text.vocabulary_file import UnknownItemError, VocabularyError
from tests.kit.recorded_pieces import recorded_pieces
from tests.kit.tokenizer_definition import any_text, write_vocab

MODELS = ("tiny", "commas")


@pytest.fixture(scope="module")
def albert_dir(golden_dir):
  return golden_dir / "albert"


@pytest.fixture(scope="module")
def tiny_model(albert_dir):
  return albert_dir / "tiny_spm.model"


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


def test_ids_and_pieces_convert_as_recorded_pieces(golden_dir, commas_model):
  tokenizer = SentencePieceTokenizer(commas_model, preprocess=False)
  for case in recorded_pieces(golden_dir, "commas"):
    assert tokenizer.convert_tokens_to_ids(case["pieces"]) == case["ids"]
    known = [piece for piece, i in zip(case["pieces"], case["ids"], strict=True) if i != 1]
    assert tokenizer.convert_ids_to_tokens([i for i in case["ids"] if i != 1]) == known


# ---------------------------------------------------------------------------------------------
# Numbers with commas.


def test_a_number_before_a_comma(commas_model):
  as_recorded = SentencePieceTokenizer(commas_model)
  as_meant = SentencePieceTokenizer(commas_model, intended_numbers=True)
  assert as_recorded.tokenize("2008, 1,000")[:3] == ["▁200", "▁8", ","]
  assert as_meant.tokenize("2008, 1,000")[:3] == ["▁200", "8", ","]
  for tokenizer in (as_recorded, as_meant):
    ids = tokenizer.convert_tokens_to_ids(tokenizer.tokenize("2008, 1,000"))
    assert tokenizer.text_to_ids("2008, 1,000") == ids


# ---------------------------------------------------------------------------------------------
# preprocess_text.


@pytest.mark.parametrize("lower", [True, False])
def test_preprocess_text_is_its_definition(lower):
  @given(any_text)
  def check(text):
    defined = unicodedata.normalize("NFKD", " ".join(text.strip().split()))
    defined = "".join(char for char in defined if not unicodedata.combining(char))
    assert preprocess_text(text, lower=lower) == (defined.lower() if lower else defined)

  check()


def test_a_pile_of_accents_takes_linear_time():
  assert preprocess_text("e" + "\u0301\u0323" * 500_000) == "e"  # hours, if accents were sorted


# ---------------------------------------------------------------------------------------------
# The interface of FullTokenizer.


def test_special_tokens_stay_whole(tiny_model):
  tokenizer = SentencePieceTokenizer(tiny_model, special_tokens=("[MASK]",))
  assert tokenizer.tokenize("the [MASK] of the") == ["▁the", "[MASK]", "▁of", "▁the"]
  assert tokenizer.text_to_ids("the [MASK] of the") == [14, 4, 17, 14]
  assert "[MASK]" not in SentencePieceTokenizer(tiny_model).tokenize("the [MASK] of the")
  with pytest.raises(VocabularyError, match=r"lacks the special tokens \['\[X\]'\]"):
    SentencePieceTokenizer(tiny_model, special_tokens=("[X]",))


def test_special_tokens_by_the_names_of_bert(tiny_model):
  tokenizer = SentencePieceTokenizer(tiny_model, special_tokens=("[UNK]", "[PAD]"))
  assert tokenizer.special_tokens == {"<unk>", "<pad>"}


def test_batches(tiny_model):
  tokenizer = SentencePieceTokenizer(tiny_model)
  inputs = tokenizer.encode_batch(["the of", "of"], ["and", None], max_seq_length=6)
  assert inputs["input_ids"].tolist() == [[2, 14, 17, 3, 19, 3], [2, 17, 3, 0, 0, 0]]
  assert inputs["segment_ids"].tolist() == [[0, 0, 0, 0, 1, 1], [0] * 6]


def test_it_can_be_pickled(tiny_model):
  tokenizer = pickle.loads(pickle.dumps(SentencePieceTokenizer(tiny_model)))
  assert tokenizer.tokenize("the of") == ["▁the", "▁of"]


@pytest.mark.parametrize("text", ["", " ", b"the \xff of", "a\ud800b", "a\0b", "▁", "[CLS]"])
def test_odd_texts(tiny_model, text):
  tokenizer = SentencePieceTokenizer(tiny_model)
  pieces = tokenizer.tokenize(text)
  assert tokenizer.text_to_ids(text) == tokenizer.convert_tokens_to_ids(pieces)


def test_unknown_items(tiny_model):
  tokenizer = SentencePieceTokenizer(tiny_model)
  assert tokenizer.convert_tokens_to_ids(["no such piece"]) == [tokenizer.unk_id]
  with pytest.raises(UnknownItemError, match=r"tiny_spm.model: 2000 is not an id of its 2000"):
    tokenizer.convert_ids_to_tokens([2000])


def test_the_names_of_albert(golden_dir, commas_model):
  [case] = [c for c in recorded_pieces(golden_dir, "commas") if c["text"] != c["text_lower"]][:1]
  tokenizer = tokenization.FullTokenizer.from_scratch(None, True, spm_model_file=commas_model)
  assert tokenizer.tokenize(case["text"]) == case["pieces"]
  prepared = preprocess_text(case["text"], lower=True)
  assert tokenizer.tokenize(prepared) == case["pieces_lower"]


def test_a_tokenizer_of_word_pieces_refuses_a_model(tiny_model):
  with pytest.raises(VocabularyError, match=r"tiny_spm\.model is a sentencepiece model, not a voc"):
    tokenization.FullTokenizer(tiny_model)


def test_the_content_of_the_file_chooses_the_tokenizer(tmp_path, tiny_model):
  vocab_file = write_vocab(tmp_path, "[UNK]\n[CLS]\n[SEP]\nthe\n")
  assert type(tokenization.load_tokenizer(vocab_file, False)) is tokenization.FullTokenizer
  shutil.copy(tiny_model, vocab_file)
  tokenizer = tokenization.load_tokenizer(vocab_file, False, ("[MASK]",))
  assert type(tokenizer) is SentencePieceTokenizer
  assert (tokenizer.do_lower_case, tokenizer.special_tokens) == (False, {"[MASK]"})
  assert tokenization.load_vocab(vocab_file) == tokenizer.vocab
  assert len(tokenizer.vocab) == 2000


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
    (lambda model: model[:1000], r"m\.model is damaged: its 1000 bytes"),
    (lambda model: model.replace(b"[SEP]", b"[XXX]"), r"lacks the pieces \['\[SEP\]'\]"),
  ],
  ids=["empty", "a vocab.txt", "cut", "another kind of model"],
)
def test_a_bad_model(tmp_path, tiny_model, content, message):
  path = tmp_path / "m.model"
  path.write_bytes(content(tiny_model.read_bytes()))
  with pytest.raises(VocabularyError, match=message):
    SentencePieceTokenizer(path)


def test_without_the_library_the_extra_is_named(tiny_model, monkeypatch):
  monkeypatch.setitem(sys.modules, "sentencepiece", None)
  with pytest.raises(installation.MissingExtraError, match=r'pip install "bert-alive\[albert\]"'):
    SentencePieceTokenizer(tiny_model)
