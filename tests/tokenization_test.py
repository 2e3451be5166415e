"""Tests of tokenization.py."""

import json
import pickle
import unicodedata

import numpy as np
import pytest
from hypothesis import given, settings

from bert import tokenization
from bert.text import characters
from tests.kit.tokenizer_definition import (
  PIECES,
  OneCharacterPieces,
  any_text,
  defined_basic_tokens,
  defined_tokens,
  write_vocab,
)

# ---------------------------------------------------------------------------------------------
# The original's own test subjects.


def test_full_tokenizer(vocab_file):
  tokenizer = tokenization.FullTokenizer(vocab_file)
  tokens = tokenizer.tokenize("UNwant\u00c9d, running")
  assert tokens == ["un", "##want", "##ed", ",", "runn", "##ing"]
  ids = tokenizer.convert_tokens_to_ids(tokens)
  assert ids == [PIECES.index(token) for token in tokens]
  assert tokenizer.convert_ids_to_tokens(ids) == tokens


def test_chinese_characters_are_words():
  assert tokenization.BasicTokenizer().tokenize("ah博推zz") == ["ah", "博", "推", "zz"]


def test_basic_tokenizer_lower_cases_and_strips_accents():
  tokenizer = tokenization.BasicTokenizer(do_lower_case=True)
  assert tokenizer.tokenize(" \tHeLLo!how  \n Are yoU?  ") == [
    "hello",
    "!",
    "how",
    "are",
    "you",
    "?",
  ]
  assert tokenizer.tokenize("H\u00e9llo") == ["hello"]


def test_basic_tokenizer_keeps_case_and_accents():
  tokenizer = tokenization.BasicTokenizer(do_lower_case=False)
  assert tokenizer.tokenize(" \tHeLLo!how  \n Are yoU?  ") == [
    "HeLLo",
    "!",
    "how",
    "Are",
    "yoU",
    "?",
  ]
  assert tokenizer.tokenize("H\u00e9llo") == ["H\u00e9llo"]


def test_wordpiece_tokenizer():
  tokenizer = tokenization.WordpieceTokenizer({token: i for i, token in enumerate(PIECES)})
  assert tokenizer.tokenize("") == []
  assert tokenizer.tokenize("unwanted running") == ["un", "##want", "##ed", "runn", "##ing"]
  assert tokenizer.tokenize("unwantedX running") == ["[UNK]", "runn", "##ing"]


def test_convert_tokens_to_ids():
  vocab = {token: i for i, token in enumerate(PIECES)}
  assert tokenization.convert_tokens_to_ids(vocab, ["un", "##want"]) == [8, 5]
  assert tokenization.convert_ids_to_tokens({8: "un", 5: "##want"}, [5, 8]) == ["##want", "un"]


def test_whitespace_predicate():
  assert all(map(tokenization._is_whitespace, " \t\r\n\u00a0\u3000"))
  assert not any(map(tokenization._is_whitespace, "A-\u200b\u2028\x0b"))


def test_control_predicate():
  assert all(map(tokenization._is_control, "\x05\u200d\u00ad\ufeff"))
  assert not any(map(tokenization._is_control, "A \t\r\n\U0001f4a9\ue000\ud800"))


def test_punctuation_predicate():
  assert all(map(tokenization._is_punctuation, "-$`.^~\u3002\u00bf"))
  assert not any(map(tokenization._is_punctuation, "A1 \x7f\u20ac\u00a9"))


# ---------------------------------------------------------------------------------------------
# Equality with the original.


@pytest.mark.parametrize("case", ["uncased", "cased"])
def test_tokens_are_the_originals(golden_dir, released_vocab_file, case):
  tokenizer = tokenization.FullTokenizer(released_vocab_file, do_lower_case=case == "uncased")
  records = [
    json.loads(line) for line in (golden_dir / "tokenization.jsonl").read_text().splitlines()
  ]
  assert len(records) == 5920
  for record in records:
    assert tokenizer.tokenize(record["text"]) == record[case], repr(record["text"])
    located = tokenizer.tokenize_with_offsets(record["text"])
    assert [span.token for span in located] == record[case], repr(record["text"])


@pytest.mark.parametrize("do_lower_case", [True, False])
@pytest.mark.parametrize(
  "every", [97, pytest.param(7, marks=pytest.mark.ci), pytest.param(1, marks=pytest.mark.slow)]
)
def test_code_points_are_treated_as_defined(do_lower_case, every):
  """Alone, and after a letter: every script, edges of ranges, and one in `every` of the others."""

  def is_chosen(code):
    at_an_edge = code < 0x30000 and code % 16 in (0, 15)  # where ranges begin and end
    assigned = unicodedata.category(chr(code)) not in ("Cn", "Co", "Cs")
    ideograph = unicodedata.category(chr(code)) == "Lo" and code > 0x3400 and every > 7
    return (assigned and not ideograph) or at_an_edge or code % every == 0

  codes = list(filter(is_chosen, range(0x110000)))
  assert len(codes) > (50_000 if every > 7 else 130_000)
  tokenizer = tokenization.BasicTokenizer(do_lower_case)
  for start in range(0, len(codes), 256):
    words = [f"{chr(code)} b{chr(code)}" for code in codes[start : start + 256]]
    text = " ".join(words)
    if tokenizer.tokenize(text) != defined_basic_tokens(text, do_lower_case):
      for word in words:
        assert tokenizer.tokenize(word) == defined_basic_tokens(word, do_lower_case), ascii(word)
      pytest.fail(f"differs from the definition somewhere from U+{codes[start]:04X} on")


@pytest.mark.parametrize("do_lower_case", [True, False])
def test_any_text_is_treated_as_defined_and_offsets_agree(vocab_file, do_lower_case):
  """One tokenizer for all examples: what it remembers of earlier ones must not matter."""
  tokenizer = tokenization.FullTokenizer(vocab_file, do_lower_case)

  @settings(max_examples=400, deadline=None)
  @given(any_text)
  def check(text):
    expected = defined_tokens(text, do_lower_case, tokenizer.vocab)
    assert tokenizer.tokenize(text) == expected
    assert [span.token for span in tokenizer.tokenize_with_offsets(text)] == expected

  check()


def test_a_pile_of_accents_is_not_left_to_quadratic_normalization(monkeypatch):
  """`unicodedata.normalize` sorts accents by insertion: these would take it 5 * 10^9 swaps."""
  normalized_lengths = []
  normalize = unicodedata.normalize

  def spy(form, text):
    normalized_lengths.append(len(text))
    return normalize(form, text[: characters.LONG_WORD])

  monkeypatch.setattr(unicodedata, "normalize", spy)
  text = "e" + "\u0301\u0323" * 100_000 + " a"
  assert tokenization.BasicTokenizer().tokenize(text) == ["e", "a"]
  assert max(normalized_lengths) < characters.LONG_WORD


def test_words_longer_than_200_characters_are_unknown(vocab_file):
  tokenizer = tokenization.FullTokenizer(vocab_file)
  assert tokenizer.tokenize("a" * 200) == ["a"] + ["##a"] * 199
  assert tokenizer.tokenize("a" * 201) == ["[UNK]"]
  assert tokenizer.tokenize("a" * 1_000_000 + " a") == ["[UNK]", "a"]
  assert tokenizer.tokenize("a\u0301" * 200) == ["a"] + ["##a"] * 199  # counted without accents


# ---------------------------------------------------------------------------------------------
# Special tokens.


def test_special_tokens_stay_whole_only_on_request(vocab_file):
  text = "un[MASK]want, [mask] [CLS]"
  plain = tokenization.FullTokenizer(vocab_file)
  assert plain.tokenize("[MASK]") == ["[", "mask", "]"]
  tokenizer = tokenization.FullTokenizer(vocab_file, special_tokens=("[MASK]", "[CLS]"))
  assert tokenizer.tokenize(text) == ["un", "[MASK]", "want", ",", "[", "mask", "]", "[CLS]"]
  located = tokenizer.tokenize_with_offsets(text)
  assert located[:4] == [("un", 0, 2, 0), ("[MASK]", 2, 8, 0), ("want", 8, 12, 0), (",", 12, 13, 0)]
  assert located[-1] == ("[CLS]", 21, 26, 2)
  assert tokenizer.tokenize("") == []
  assert tokenizer.tokenize("[CLS]") == ["[CLS]"]


def test_the_longest_special_token_wins(tmp_path):
  path = write_vocab(tmp_path, "[UNK]\n[CLS]\n[SEP]\n<a>\n<a><b>\nx\n")
  tokenizer = tokenization.FullTokenizer(path, special_tokens=["<a>", "<a><b>"])
  assert tokenizer.tokenize("x<a><b><a>x") == ["x", "<a><b>", "<a>", "x"]


def test_special_tokens_must_be_in_the_vocabulary(vocab_file):
  with pytest.raises(tokenization.VocabularyError, match=r"vocab\.txt lacks .*\[ENT\]"):
    tokenization.FullTokenizer(vocab_file, special_tokens=["[MASK]", "[ENT]"])
  with pytest.raises(ValueError, match="not one: '\\[MASK\\]'"):
    tokenization.FullTokenizer(vocab_file, special_tokens="[MASK]")


# ---------------------------------------------------------------------------------------------
# Conversions, released models, overriding, remembering.


@pytest.mark.filterwarnings("ignore::tokenization.VocabularyWarning")
def test_conversion_names_what_is_unknown(tmp_path):
  tokenizer = tokenization.FullTokenizer(write_vocab(tmp_path, "a\n##b\n"))
  assert tokenizer.tokenize("q") == ["[UNK]"]
  with pytest.raises(tokenization.VocabularyError, match=r"vocab\.txt: '\[UNK\]' is not in .* 2 "):
    tokenizer.convert_tokens_to_ids(tokenizer.tokenize("ab q"))
  with pytest.raises(KeyError):  # as code written for the original expects
    tokenizer.convert_ids_to_tokens([1, 2])


def test_convert_to_unicode():
  for convert in (tokenization.convert_to_unicode, tokenization.printable_text):
    assert convert("é\ud800") == "é\ud800"
    assert convert("é".encode() + b"\xff\x80!") == "é!"
    with pytest.raises(ValueError, match="not NoneType: None"):
      convert(None)
    with pytest.raises(ValueError, match=r"not list: \['a'\]"):
      convert(["a"])


def test_bytes_are_tokenized_like_their_text(vocab_file):
  tokenizer = tokenization.FullTokenizer(vocab_file)
  assert tokenizer.tokenize("UNwantÉd".encode() + b"\xff") == ["un", "##want", "##ed"]
  assert tokenizer.tokenize_with_offsets("É x".encode())[1] == ("x", 2, 3, 1)
  assert tokenizer.wordpiece_tokenizer.tokenize(b"unwant") == ["un", "##want"]


UNCASED = (
  *("uncased_L-2_H-128_A-2", "uncased_L-12_H-768_A-12", "wwm_uncased_L-24_H-1024_A-16"),
  *("multilingual_L-12_H-768_A-12", "chinese_L-12_H-768_A-12"),
)
CASED = ("cased_L-12_H-768_A-12", "multi_cased_L-12_H-768_A-12", "wwm_cased_L-24_H-1024_A-16")


@pytest.mark.parametrize(
  "place", ["gs://bert/{}/bert_model.ckpt", "{}/bert_model.ckpt", "/a/{}/", "{}"]
)
def test_casing_is_checked_for_released_models(place):
  for lower, right, wrong in [(True, UNCASED, CASED), (False, CASED, UNCASED)]:
    for name in right:
      tokenization.validate_case_matches_checkpoint(lower, place.format(name))
    for name in wrong:
      with pytest.raises(ValueError, match=f"{name} was trained.*--do_lower_case={not lower}"):
        tokenization.validate_case_matches_checkpoint(lower, place.format(name))


@pytest.mark.parametrize("path", [None, "", "/my/model.ckpt-1000", "uncased_mine/bert_model.ckpt"])
@pytest.mark.parametrize("do_lower_case", [True, False])
def test_casing_is_not_checked_for_other_models(path, do_lower_case):
  tokenization.validate_case_matches_checkpoint(do_lower_case, path)


def test_steps_can_be_overridden(vocab_file):
  class WholeChineseWords(tokenization.BasicTokenizer):
    def _is_chinese_char(self, cp):
      return False

  class Umlauts(tokenization.BasicTokenizer):
    def _run_strip_accents(self, text):
      return super()._run_strip_accents(text.replace("ä", "ae"))

  class KeepAccents(tokenization.BasicTokenizer):
    def _run_strip_accents(self, text):
      return text

  class NoCjkSpacing(tokenization.BasicTokenizer):
    def _tokenize_chinese_chars(self, text):
      return text

  assert WholeChineseWords().tokenize("博士 ah") == ["博士", "ah"]
  assert NoCjkSpacing().tokenize("博士 ah") == ["博士", "ah"]
  tokenizer = tokenization.FullTokenizer(vocab_file)
  tokenizer.basic_tokenizer = Umlauts()
  expected = [("a", 0, 1, 0), ("##e", 0, 1, 0), ("##x", 1, 2, 0)]
  assert tokenizer.tokenize_with_offsets("Äx") == expected
  tokenizer.basic_tokenizer = KeepAccents()
  tokenizer.wordpiece_tokenizer = tokenization.WordpieceTokenizer(OneCharacterPieces())
  expected = [("i", 0, 1, 0), ("##\u0307", 0, 1, 0), ("##x", 1, 2, 0)]
  assert tokenizer.tokenize_with_offsets("\u0130x") == expected


def test_changed_settings_are_not_answered_from_memory():
  tokenizer = tokenization.WordpieceTokenizer({"a": 0, "##b": 1})
  assert tokenizer.tokenize("ab abc") == ["a", "##b", "[UNK]"]
  tokenizer.vocab["abc"] = 2
  assert tokenizer.tokenize("ab abc") == ["a", "##b", "abc"]
  tokenizer.unk_token = "?"
  assert tokenizer.tokenize("q") == ["?"]
  tokenizer.max_input_chars_per_word = 2
  assert tokenizer.tokenize("ab abc") == ["a", "##b", "?"]
  tokenizer.vocab = {"ab": 0, "##b": 1, "x": 2}
  assert tokenizer.tokenize("ab") == ["ab"]


def test_memory_of_words_is_bounded(monkeypatch):
  monkeypatch.setattr(tokenization, "MAX_WORDS", 3)
  tokenizer = tokenization.WordpieceTokenizer({"a": 0, "##a": 1})
  for length in list(range(1, 9)) * 2:
    assert tokenizer.tokenize("a" * length) == ["a"] + ["##a"] * (length - 1)
    assert len(tokenizer._pieces_of) <= 3


def test_tokenizer_survives_pickling(vocab_file):
  tokenizer = tokenization.FullTokenizer(vocab_file, special_tokens=["[MASK]"])
  tokenizer.tokenize("博 un")
  copy = pickle.loads(pickle.dumps(tokenizer))
  assert copy.tokenize("UN[MASK]博want 士") == tokenizer.tokenize("UN[MASK]博want 士")


# ---------------------------------------------------------------------------------------------
# ELECTRA's options.


@given(any_text)
@settings(max_examples=60)
def test_unassigned_characters_are_dropped_as_if_they_were_not_there(vocab_file, text):
  tokenizer = tokenization.FullTokenizer(vocab_file, drop_unassigned=True)
  kept = "".join(char for char in text if unicodedata.category(char) not in ("Cn", "Co", "Cs"))
  assert tokenizer.tokenize(text) == tokenization.FullTokenizer(vocab_file).tokenize(kept)
  assert tokenizer.text_to_ids(text) == tokenizer.convert_tokens_to_ids(tokenizer.tokenize(text))


def test_accents_are_kept():
  keeping = tokenization.BasicTokenizer(strip_accents=False)
  assert keeping.tokenize("Où E\u0301te\u0301") == ["où", "e\u0301te\u0301"]
  for strip, expected in ((None, "Où"), (True, "Ou")):
    cased = tokenization.BasicTokenizer(do_lower_case=False, strip_accents=strip)
    assert cased.tokenize("Où") == [expected]


def test_paths_may_be_bytes(tmp_path):
  # As TF Hub notebooks pass them: `vocab_file.asset_path.numpy()`, which NumPy may have wrapped.
  path = write_vocab(tmp_path, "[UNK]\n[CLS]\n[SEP]\nthe\n")
  for vocab_file in (bytes(path), np.bytes_(bytes(path))):
    assert tokenization.load_vocab(vocab_file) == tokenization.load_vocab(path)
    for tokenizer in (
      tokenization.FullTokenizer(vocab_file=vocab_file, do_lower_case=np.True_),
      tokenization.load_tokenizer(vocab_file),
      tokenization.FullTokenizer.from_scratch(vocab_file, True, None),
    ):
      assert tokenizer.vocab_file == str(path)
      assert tokenizer.tokenize("The") == ["the"]
  with pytest.raises(tokenization.VocabularyError, match=r"Cannot read vocabulary none/vocab.txt:"):
    tokenization.FullTokenizer(b"none/vocab.txt")
  with pytest.raises(ValueError, match="contradicts"):
    tokenization.validate_case_matches_checkpoint(True, b"/cased_L-12_H-768_A-12/bert_model.ckpt")
