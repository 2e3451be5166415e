"""Offsets of tokens and word ids."""

import unicodedata

import pytest
from hypothesis import given, settings

from bert import tokenization
from tests.kit.tokenizer_definition import OneCharacterPieces, any_text, defined_basic_tokens


def test_readme_recipe_for_word_level_tasks(vocab_file):
  orig_tokens = ["John", "Johanson", "'s", "house"]
  tokenizer = tokenization.FullTokenizer(vocab_file)
  bert_tokens, orig_to_tok_map = ["[CLS]"], []
  for orig_token in orig_tokens:
    orig_to_tok_map.append(len(bert_tokens))
    bert_tokens.extend(tokenizer.tokenize(orig_token))
  bert_tokens.append("[SEP]")
  assert bert_tokens == ["[CLS]", "john", "johan", "##son", "'", "s", "house", "[SEP]"]
  assert orig_to_tok_map == [1, 2, 4, 6]
  # Word ids give the same map in one go.
  word_ids = [span.word_id for span in tokenizer.tokenize_with_offsets(" ".join(orig_tokens))]
  assert [1 + word_ids.index(word_id) for word_id in range(4)] == orig_to_tok_map


@pytest.mark.parametrize(
  ("text", "expected"),
  [
    ("", []),
    ("un, wa", [("un", 0, 2, 0), (",", 2, 3, 0), ("wa", 4, 6, 1)]),
    ("\u00a0UN\u00adwant\u00c9d", [("un", 1, 3, 0), ("##want", 4, 8, 0), ("##ed", 8, 10, 0)]),
    ("e\u0301e x", [("e", 0, 2, 0), ("##e", 2, 3, 0), ("x", 4, 5, 1)]),  # accent goes with its e
    ("\u0130i", [("i", 0, 1, 0), ("##i", 1, 2, 0)]),  # lower() gives i and a dot, which vanishes
    ("한", [("\u1112", 0, 1, 0), ("##\u1161", 0, 1, 0), ("##\u11ab", 0, 1, 0)]),
    ("x博x", [("x", 0, 1, 0), ("博", 1, 2, 0), ("x", 2, 3, 0)]),
    ("ΣΣ", [("σ", 0, 1, 0), ("##ς", 1, 2, 0)]),  # the sigma at the end of a word
    ("a \0 a", [("a", 0, 1, 0), ("a", 4, 5, 2)]),  # word 1 vanished, and yet was a word
    ("xQQQQQQQx wa", [("[UNK]", 0, 9, 0), ("wa", 10, 12, 1)]),
    ("wa\u2028un\x0be", [("wa", 0, 2, 0), ("un", 3, 5, 1), ("##e", 6, 7, 1)]),  # U+2028 splits
  ],
)
def test_offsets_point_into_the_original_text(vocab_file, text, expected):
  tokenizer = tokenization.FullTokenizer(vocab_file)
  assert tokenizer.tokenize_with_offsets(text) == expected
  assert [token for token, *_ in expected] == tokenizer.tokenize(text)


@pytest.mark.parametrize("do_lower_case", [True, False])
def test_offsets_cover_what_is_kept_and_nothing_else(vocab_file, do_lower_case):
  tokenizer = tokenization.FullTokenizer(vocab_file, do_lower_case)
  tokenizer.wordpiece_tokenizer = tokenization.WordpieceTokenizer(OneCharacterPieces())

  def kept(text):
    return "".join(defined_basic_tokens(text, do_lower_case)).replace("ς", "σ")

  @settings(max_examples=400, deadline=None)
  @given(any_text)
  def check(text):
    covered = set()
    for token, start, end, _ in tokenizer.tokenize_with_offsets(text):
      assert token[-1].replace("ς", "σ") in kept(text[start])
      assert kept(text[start + 1 : end]) == "", "only vanished accents may follow"
      covered.update(range(start, end))
    assert all(kept(char) == "" for i, char in enumerate(text) if i not in covered)

  check()


def test_reordered_combining_characters_keep_their_own_place(vocab_file):
  """Of the Mc that have a combining class, U+302E (224) is sorted after U+1B44 (9)."""
  tokenizer = tokenization.FullTokenizer(vocab_file)
  tokenizer.wordpiece_tokenizer = tokenization.WordpieceTokenizer(OneCharacterPieces())
  assert tokenizer.tokenize_with_offsets("é\u302e\u1b44") == [
    ("e", 0, 1, 0),
    ("##\u1b44", 2, 3, 0),
    ("##\u302e", 1, 2, 0),
  ]


@given(any_text)
@settings(deadline=None)
def test_word_ids_index_the_whitespace_words(vocab_file, text):
  text = "".join(char for char in text if char not in "\x0b\x0c\x1c\x1d\x1e\x1f\x85")
  tokenizer = tokenization.FullTokenizer(vocab_file)
  located = tokenizer.tokenize_with_offsets(text)
  for word_id, word in enumerate(text.split()):
    assert [t.token for t in located if t.word_id == word_id] == tokenizer.tokenize(word)


def test_offsets_that_cannot_be_followed_are_refused(vocab_file):
  class Composing(tokenization.BasicTokenizer):
    def _clean_text(self, text):
      return super()._clean_text(unicodedata.normalize("NFC", text))

  class Ligatures(tokenization.BasicTokenizer):
    def _run_strip_accents(self, text):
      return text.replace("ae", "æ")

  class Backwards(tokenization.BasicTokenizer):
    def _run_split_on_punc(self, text):
      return super()._run_split_on_punc(text[::-1])

  class Characters:
    def tokenize(self, text):
      return ["", *text]

  tokenizer = tokenization.FullTokenizer(vocab_file, do_lower_case=False)
  tokenizer.wordpiece_tokenizer = tokenization.WordpieceTokenizer(OneCharacterPieces())
  tokenizer.basic_tokenizer = Composing(do_lower_case=False)
  with pytest.raises(ValueError, match="other tokens"):
    tokenizer.tokenize_with_offsets("e\u0301")
  tokenizer.basic_tokenizer = Ligatures()
  with pytest.raises(ValueError, match="'éae' became 'éæ'"):
    tokenizer.tokenize_with_offsets("éae")
  tokenizer.basic_tokenizer = Backwards()
  with pytest.raises(ValueError, match="'ab' was split into 'ba'"):
    tokenizer.tokenize_with_offsets("ab")
  tokenizer.basic_tokenizer = tokenization.BasicTokenizer()
  tokenizer.wordpiece_tokenizer = Characters()
  with pytest.raises(ValueError, match="'ab' does not consist of"):
    tokenizer.tokenize_with_offsets("ab")
