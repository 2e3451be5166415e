"""Offsets of sentencepiece's pieces."""

import pytest

from bert.text.sentence_pieces import SentencePieceTokenizer


@pytest.fixture(scope="module")
def commas_model(golden_dir):
  return golden_dir / "albert" / "commas_spm.model"


@pytest.fixture(scope="module")
def tiny_model(golden_dir):
  return golden_dir / "albert" / "tiny_spm.model"


@pytest.mark.parametrize(
  ("text", "expected"),
  [
    ("", []),
    ("the of", [("▁the", 0, 3, 0), ("▁of", 4, 6, 1)]),
    ("  thé\u0301\t ÓF ", [("▁the", 2, 6, 0), ("▁of", 8, 10, 1)]),
    ("the-ﬁ", [("▁the", 0, 3, 0), ("-", 3, 4, 0), ("f", 4, 5, 0), ("i", 4, 5, 0)]),
    ("the…", [("▁the", 0, 3, 0), (".", 3, 4, 0), (".", 3, 4, 0), (".", 3, 4, 0)]),
    ("\u1de2 the \u0301of", [("▁the", 2, 5, 1), ("▁of", 7, 9, 2)]),  # words of accents, or with one
    ("of\x1cthe", [("▁of", 0, 2, 0), ("▁the", 3, 6, 1)]),
  ],
)
def test_offsets_point_into_the_original_text(tiny_model, text, expected):
  tokenizer = SentencePieceTokenizer(tiny_model)
  assert tokenizer.tokenize_with_offsets(text) == expected


def test_a_piece_of_a_space_has_an_empty_span(tiny_model):
  spans = SentencePieceTokenizer(tiny_model).tokenize_with_offsets(" Z ζ")
  assert [tuple(span) for span in spans] == [
    *[("▁", 1, 1, 0), ("z", 1, 2, 0)],
    *[("▁", 3, 3, 1), ("ζ", 3, 4, 1)],
  ]


def test_offsets_of_special_tokens(tiny_model):
  tokenizer = SentencePieceTokenizer(tiny_model, special_tokens=["[MASK]"])
  expected = [("▁the", 0, 3, 0), ("[MASK]", 4, 10, 1), ("▁of", 10, 12, 1)]
  assert tokenizer.tokenize_with_offsets("the [MASK]of") == expected


def test_offsets_in_a_number_before_a_comma(commas_model):
  spans = SentencePieceTokenizer(commas_model).tokenize_with_offsets("2008,")
  assert spans == [("▁200", 0, 3, 0), ("▁8", 3, 4, 0), (",", 4, 5, 0)]
