"""Tests of tokenization.py. Alone: python -m pytest tests/tokenization_test.py"""

import doctest
import json
import pickle
import subprocess
import sys
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bert import tokenization
from tests.kit.paths import ROOT

VOCABULARY = (
  "[UNK] [CLS] [SEP] [MASK] want ##want ##ed wa un runn ##ing , ##n e ##e i ##i a ##a . ' [ ] mask "
  "博 σ ##ς john johan ##son s house \u1112 ##\u1161 ##\u11ab ##σ x ##x"
)
PIECES = VOCABULARY.split()

# Characters at which an implementation may slip: blanks of all kinds, controls, accents with
# several combining classes (also ones that are no accents), expanding and contextual lower case,
# decompositions (into punctuation too), Chinese and its neighbours, lone surrogates.
TRAPS = (
  "aAeEiInx.,'-_$#[]~^ \t\n\r\0\x0b\x0c\x1c\x1f\x7f\x85\xa0\xad\u1680\u180e\u200b\u200d\u2028\u2029"
  "\u202f\u205f\u3000\ufeff\ufffd\u0301\u0323\u0307\u0903\u093c\u0902\u302e\u1b44\u1baa\U0001d165"
  "éÅ\u0130\u0131ßΣσςΆ\u1fef\u037e\u0344\u0f73\u1e9b\u0323가한\u1100\u1161\u11a8"
  "博士㐀\u4dc0\u9fff\ua000\uf900\ufb00\U00020000\U0002b820\U0002ceb0\U0002f800\u3042アﾊ"
  "१Ⅷ²½\U0001f600\ufe0f\U000e0041\U00010400\ue000\ud800\udfff\U0010ffff«»\u2014\u166d\u1734\ua9bd"
)
any_text = st.text(
  st.one_of(st.sampled_from(TRAPS), st.characters(exclude_categories=[])), max_size=60
)


class OneCharacterPieces(dict):
  """A vocabulary that has every single character, so that tokens show what steps 1 to 5 made."""

  def __init__(self):
    super().__init__({"##x": 0})  # tells the length of the longest piece

  def __contains__(self, piece):
    return len(piece) == 1 or (len(piece) == 3 and piece.startswith("##"))


def write_vocab(folder, content):
  path = folder / "vocab.txt"
  path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
  return path


@pytest.fixture(scope="module")
def vocab_file(tmp_path_factory):
  return write_vocab(tmp_path_factory.mktemp("vocab"), "\n".join(PIECES) + "\n")


@pytest.fixture(scope="module")
def real_vocab_file(data_dir):
  return data_dir / "vocab" / "uncased_vocab.txt"


# ---------------------------------------------------------------------------------------------
# A second, slow and literal implementation of the definition to compare with.


def defined_basic_tokens(text, do_lower_case):
  cleaned = ""
  for char in text:
    category, code = unicodedata.category(char), ord(char)
    if char in "\t\n\r" or category == "Zs":
      cleaned += " "
    elif code in (0, 0xFFFD) or category in ("Cc", "Cf"):
      continue
    elif (
      0x4E00 <= code <= 0x9FFF
      or 0x3400 <= code <= 0x4DBF
      or 0x20000 <= code <= 0x2A6DF
      or 0x2A700 <= code <= 0x2B73F
      or 0x2B740 <= code <= 0x2B81F
      or 0x2B820 <= code <= 0x2CEAF
      or 0xF900 <= code <= 0xFAFF
      or 0x2F800 <= code <= 0x2FA1F
    ):
      cleaned += " " + char + " "
    else:
      cleaned += char
  tokens = []
  for word in cleaned.split():
    if do_lower_case:
      word = unicodedata.normalize("NFD", word.lower())
      word = "".join(char for char in word if unicodedata.category(char) != "Mn")
    spaced = ""
    for char in word:
      is_symbol = char in "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"
      is_punctuation = is_symbol or unicodedata.category(char)[0] == "P"
      spaced += f" {char} " if is_punctuation else char
    tokens += spaced.split()
  return tokens


def defined_wordpiece_tokens(word, vocab):
  if len(word) > 200:
    return ["[UNK]"]
  tokens, rest = [], word
  while rest:
    candidates = [rest[:end] for end in range(len(rest), 0, -1)]
    known = [part for part in candidates if ("##" if tokens else "") + part in vocab]
    if not known:
      return ["[UNK]"]
    tokens.append(("##" if tokens else "") + known[0])
    rest = rest[len(known[0]) :]
  return tokens


def defined_tokens(text, do_lower_case, vocab):
  words = defined_basic_tokens(text, do_lower_case)
  return [piece for word in words for piece in defined_wordpiece_tokens(word, vocab)]


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
def test_tokens_are_the_originals(golden_dir, real_vocab_file, case):
  tokenizer = tokenization.FullTokenizer(real_vocab_file, do_lower_case=case == "uncased")
  records = [
    json.loads(line) for line in (golden_dir / "tokenization.jsonl").read_text().splitlines()
  ]
  assert len(records) == 5920
  for record in records:
    assert tokenizer.tokenize(record["text"]) == record[case], repr(record["text"])
    located = tokenizer.tokenize_with_offsets(record["text"])
    assert [span.token for span in located] == record[case], repr(record["text"])


@pytest.mark.parametrize("do_lower_case", [True, False])
@pytest.mark.parametrize("every", [97, pytest.param(1, marks=pytest.mark.slow)])
def test_code_points_are_treated_as_defined(do_lower_case, every):
  """Alone, and after a letter: all assigned ones, and `every` so many of the other 960,000."""

  def is_chosen(code):
    at_an_edge = code < 0x30000 and code % 16 in (0, 15)  # where ranges begin and end
    assigned = unicodedata.category(chr(code)) not in ("Cn", "Co", "Cs")
    return assigned or at_an_edge or code % every == 0

  codes = list(filter(is_chosen, range(0x110000)))
  assert len(codes) > 130_000
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


COMBINING = "\u0301\u0323\u0307\u0344\u0903\u0902\u302e\u1b44aé가\u0f73"


@given(st.text(COMBINING, max_size=80))
@settings(deadline=None)
def test_own_decomposition_of_long_words_is_nfd(text):
  long_word = text + "b" * tokenization._LONG_WORD
  assert tokenization._decompose(long_word) == unicodedata.normalize("NFD", long_word)


def test_a_pile_of_accents_is_not_left_to_quadratic_normalization(monkeypatch):
  """`unicodedata.normalize` sorts accents by insertion: these would take it 5 * 10^9 swaps."""
  normalized_lengths = []
  normalize = unicodedata.normalize

  def spy(form, text):
    normalized_lengths.append(len(text))
    return normalize(form, text[: tokenization._LONG_WORD])

  monkeypatch.setattr(unicodedata, "normalize", spy)
  text = "e" + "\u0301\u0323" * 100_000 + " a"
  assert tokenization.BasicTokenizer().tokenize(text) == ["e", "a"]
  assert max(normalized_lengths) < tokenization._LONG_WORD


def test_words_longer_than_200_characters_are_unknown(vocab_file):
  tokenizer = tokenization.FullTokenizer(vocab_file)
  assert tokenizer.tokenize("a" * 200) == ["a"] + ["##a"] * 199
  assert tokenizer.tokenize("a" * 201) == ["[UNK]"]
  assert tokenizer.tokenize("a" * 1_000_000 + " a") == ["[UNK]", "a"]
  assert tokenizer.tokenize("a\u0301" * 200) == ["a"] + ["##a"] * 199  # counted without accents


# ---------------------------------------------------------------------------------------------
# Offsets and word ids.


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


@given(st.lists(st.one_of(st.sampled_from(["[MASK]", "[CLS]"]), any_text), max_size=5).map("".join))
@settings(deadline=None)
def test_special_tokens_and_offsets_agree(vocab_file, text):
  tokenizer = tokenization.FullTokenizer(vocab_file, special_tokens=("[MASK]", "[CLS]"))
  located = tokenizer.tokenize_with_offsets(text)
  assert [span.token for span in located] == tokenizer.tokenize(text)
  masks = [text[span.start : span.end] for span in located if span.token in ("[MASK]", "[CLS]")]
  assert len(masks) == text.count("[MASK]") + text.count("[CLS]")
  assert set(masks) <= {"[MASK]", "[CLS]"}


def test_special_tokens_must_be_in_the_vocabulary(vocab_file):
  with pytest.raises(tokenization.VocabularyError, match=r"vocab\.txt lacks .*\[ENT\]"):
    tokenization.FullTokenizer(vocab_file, special_tokens=["[MASK]", "[ENT]"])
  with pytest.raises(ValueError, match="not one: '\\[MASK\\]'"):
    tokenization.FullTokenizer(vocab_file, special_tokens="[MASK]")


# ---------------------------------------------------------------------------------------------
# Vocabulary files.


def test_vocabulary_of_a_plain_file(tmp_path, recwarn):
  vocab = tokenization.load_vocab(write_vocab(tmp_path, "[UNK]\n[CLS]\n[SEP]\nthe"))
  assert list(vocab.items()) == [("[UNK]", 0), ("[CLS]", 1), ("[SEP]", 2), ("the", 3)]
  assert not recwarn.list


def test_vocabulary_of_a_released_model(real_vocab_file, recwarn):
  vocab = tokenization.load_vocab(str(real_vocab_file))
  assert len(vocab) == 30522
  assert (vocab["[PAD]"], vocab["[UNK]"], vocab["[CLS]"], vocab["[SEP]"]) == (0, 100, 101, 102)
  assert not recwarn.list


SPECIALS = {"[UNK]": 0, "[CLS]": 1, "[SEP]": 2}


@pytest.mark.parametrize(
  ("content", "expected"),
  [
    ("[UNK]\r\n[CLS]\r\n[SEP]\r\n", SPECIALS),
    (" [UNK]\t\n[CLS]  \n\u00a0[SEP]\n", SPECIALS),
    ("[UNK]\n[CLS]\n[SEP]\na\u2028b\n\x85\x1cc", {**SPECIALS, "a\u2028b": 3, "c": 4}),
    ("[UNK]\n[CLS]\n[SEP]\na\0b\n", {**SPECIALS, "a\0b": 3}),
    ("[UNK]\n[CLS]\n[SEP]\na\rb\n", {**SPECIALS, "ab": 3}),
  ],
  ids=["CRLF", "surrounding blanks", "only newline separates", "NUL", "inner CR"],
)
def test_vocabulary_oddities_the_original_took_silently(tmp_path, recwarn, content, expected):
  assert tokenization.load_vocab(write_vocab(tmp_path, content)) == expected
  assert not recwarn.list


@pytest.mark.parametrize(
  ("content", "expected", "warning"),
  [
    ("\ufeff[UNK]\n[CLS]\n[SEP]\n", SPECIALS, r"byte order mark.*\(line 1\)"),
    ("[UNK]\n\n[CLS]\n[SEP]\n", {"[UNK]": 0, "": 1, "[CLS]": 2, "[SEP]": 3}, r"blank.*\(line 2\)"),
    ("[UNK]\n[CLS]\n[SEP]\n\n", {**SPECIALS, "": 3}, r"blank.*\(line 4\)"),
    ("[UNK]\n[CLS]\n[SEP]\na\n a\n", {**SPECIALS, "a": 4}, r"\(line 5 repeats 'a' of line 4\)"),
    ("[CLS]\na\n", {"[CLS]": 0, "a": 1}, r"missing.*\('\[UNK\]', '\[SEP\]'\)"),
    ("[UNK]\n[CLS]\n[SEP]" + "\n" * 9, {**SPECIALS, "": 10}, r"4, .* line 8 and 3 more\)"),
  ],
  ids=["BOM", "blank line", "blank last line", "duplicate", "no [UNK], [SEP]", "many"],
)
def test_vocabulary_oddities_that_warn(tmp_path, content, expected, warning):
  with pytest.warns(tokenization.VocabularyWarning, match=r"vocab\.txt: .*" + warning) as caught:
    assert tokenization.load_vocab(write_vocab(tmp_path, content)) == expected
  assert len(caught) == 1


@pytest.mark.parametrize(
  ("content", "message"),
  [
    (b"", "vocab.txt is empty"),
    (b"\n \n\n", "vocab.txt is empty"),
    (b"[UNK]\n[CLS]\ncaf\xe9\n", r"vocab.txt, line 3: byte 0xe9 is not valid UTF-8"),
    ("[UNK]\n".encode("utf-16"), r"vocab.txt, line 1: byte 0x"),
  ],
  ids=["empty", "only blank lines", "Latin-1", "UTF-16"],
)
def test_unusable_vocabulary(tmp_path, content, message):
  with pytest.raises(tokenization.VocabularyError, match=message):
    tokenization.FullTokenizer(write_vocab(tmp_path, content))


def test_vocabulary_that_cannot_be_opened(tmp_path):
  with pytest.raises(tokenization.VocabularyError, match=r"nowhere\.txt: No such file"):
    tokenization.load_vocab(tmp_path / "nowhere.txt")
  with pytest.raises(tokenization.VocabularyError, match=r"is a directory.*vocab\.txt"):
    tokenization.load_vocab(tmp_path)


def test_vocabulary_of_absurd_size(tmp_path, monkeypatch):
  monkeypatch.setattr(tokenization, "_MAX_VOCAB_BYTES", 20)
  with pytest.raises(tokenization.VocabularyError, match="larger than 20 bytes"):
    tokenization.load_vocab(write_vocab(tmp_path, "x" * 21))


def test_vocabulary_on_a_remote_file_system(vocab_file):
  pytest.importorskip("tensorflow")
  assert tokenization.load_vocab(f"file://{vocab_file}") == tokenization.load_vocab(vocab_file)
  with pytest.raises(tokenization.VocabularyError, match=r"file://.*none: No such file"):
    tokenization.load_vocab(f"file://{vocab_file}.none")


@pytest.mark.filterwarnings("ignore::tokenization.VocabularyWarning")
def test_conversion_names_what_is_unknown(tmp_path):
  tokenizer = tokenization.FullTokenizer(write_vocab(tmp_path, "a\n##b\n"))
  assert tokenizer.tokenize("q") == ["[UNK]"]
  with pytest.raises(tokenization.VocabularyError, match=r"vocab\.txt: '\[UNK\]' is not in .* 2 "):
    tokenizer.convert_tokens_to_ids(tokenizer.tokenize("ab q"))
  with pytest.raises(KeyError):  # as code written for the original expects
    tokenizer.convert_ids_to_tokens([1, 2])


# ---------------------------------------------------------------------------------------------
# Conversions, released models, overriding, remembering.


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


SMALL_SIZES = [(layers, heads) for layers in (2, 4, 6, 8, 10, 12) for heads in (2, 4, 8, 12)]
UNCASED = [
  *(f"uncased_L-{layers}_H-{heads * 64}_A-{heads}" for layers, heads in SMALL_SIZES),
  "uncased_L-24_H-1024_A-16",
  "wwm_uncased_L-24_H-1024_A-16",
  "multilingual_L-12_H-768_A-12",
  "chinese_L-12_H-768_A-12",
]
CASED = [
  "cased_L-12_H-768_A-12",
  "cased_L-24_H-1024_A-16",
  "multi_cased_L-12_H-768_A-12",
  "wwm_cased_L-24_H-1024_A-16",
]


@pytest.mark.parametrize(
  "place", ["gs://bert/{}/bert_model.ckpt", "{}/bert_model.ckpt", "/a/{}/", "{}"]
)
def test_casing_is_checked_for_every_released_model(place):
  assert len(UNCASED) == 28
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
  monkeypatch.setattr(tokenization, "_MAX_CACHED_WORDS", 3)
  tokenizer = tokenization.WordpieceTokenizer({"a": 0, "##a": 1})
  for length in list(range(1, 9)) * 2:
    assert tokenizer.tokenize("a" * length) == ["a"] + ["##a"] * (length - 1)
    assert len(tokenizer._pieces_of) <= 3


def test_tokenizer_survives_pickling(vocab_file):
  tokenizer = tokenization.FullTokenizer(vocab_file, special_tokens=["[MASK]"])
  tokenizer.tokenize("博 un")
  copy = pickle.loads(pickle.dumps(tokenizer))
  assert copy.tokenize("UN[MASK]博want 士") == tokenizer.tokenize("UN[MASK]博want 士")


def test_import_needs_neither_tensorflow_nor_numpy():
  code = """import sys; from bert import tokenization
print(sorted({'tensorflow', 'numpy'} & set(sys.modules)))"""
  done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
  assert (done.stdout, done.stderr) == ("[]\n", "")


def test_examples_in_docstrings():
  assert doctest.testmod(tokenization).failed == 0
  assert doctest.testmod(tokenization).attempted > 5
