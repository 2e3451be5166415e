"""Offsets of sentencepiece's pieces."""

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert.text.sentence_pieces import SentencePieceTokenizer
from tests.kit import piece_model
from tests.kit.recorded_pieces import recorded_pieces
from tests.kit.tokenizer_definition import any_text


@pytest.fixture(scope="module")
def commas_model(golden_dir):
  return golden_dir / "albert" / "commas_spm.model"


@pytest.fixture(scope="module")
def tiny_model(golden_dir):
  return golden_dir / "albert" / "tiny_spm.model"


def letters(text):
  """What a piece keeps of a text: normalized, without spaces."""
  return "".join(unicodedata.normalize("NFKC", text).replace("▁", " ").split())


def check_spans(tokenizer, text):
  """Spans ascend, lie within the text, and number the words as `str.split` does."""
  spans = tokenizer.tokenize_with_offsets(text)
  assert [span.token for span in spans] == tokenizer.tokenize(text)
  assert all(0 <= span.start <= span.end <= len(text) for span in spans)
  assert [span.start for span in spans] == sorted(span.start for span in spans)
  assert [span.end for span in spans] == sorted(span.end for span in spans)
  for span in spans:
    surface = text[span.start : span.end]
    assert surface == surface.strip()
    if surface:
      assert surface in text.split()[span.word_id]
  return spans


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


@pytest.mark.parametrize("name", ["tiny", "commas"])
@pytest.mark.parametrize(
  "settings",
  [{"preprocess": False}, {"do_lower_case": True}, {"do_lower_case": False}],
  ids=["as it is", "lower", "cased"],
)
def test_surfaces_of_recorded_texts_are_the_pieces(golden_dir, name, settings):
  tokenizer = SentencePieceTokenizer(golden_dir / "albert" / f"{name}_spm.model", **settings)
  for case in recorded_pieces(golden_dir, name)[::21]:
    text = case["text"]
    for span in check_spans(tokenizer, text):
      surface = letters(tokenizer.prepared(text[span.start : span.end]))
      piece = letters(span.token)
      if unicodedata.is_normalized("NFKC", text) or settings.get("preprocess", True):
        # Pieces of one character have all of it; alone, a final sigma is one no more.
        assert piece.replace("ς", "σ") in surface.replace("ς", "σ"), (span, text)


@pytest.mark.parametrize("do_lower_case", [True, False])
def test_spans_of_any_text(tmp_path, do_lower_case):
  path = piece_model.write(tmp_path)
  tokenizer = SentencePieceTokenizer(path, do_lower_case, special_tokens=["[MASK]"])

  @given(st.one_of(any_text, st.lists(any_text, max_size=3).map("[MASK]".join)))
  def check(text):
    spans = tokenizer.tokenize_with_offsets(text)
    assert [span.token for span in spans] == tokenizer.tokenize(text)
    assert all(0 <= span.start <= span.end <= len(text) for span in spans)
    assert [span.start for span in spans] == sorted(span.start for span in spans)

  check()
