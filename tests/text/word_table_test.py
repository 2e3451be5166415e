"""Tests of bert/text/word_table.py."""

import collections
import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bert import tokenization
from bert.text import word_table
from bert.text.word_table import WordTable
from tests.kit.tokenizer_definition import mixed_text, write_vocab

VOCABULARY = (
  "[UNK] [CLS] [SEP] [MASK] the un want ##want ##ed wa runn ##ing , . ! ' [ ] mask a ##a b ##b X "
  "##X 1 ##2 博 士 e ##e i ##i σ ##σ ##ς \u1112 ##\u1161 # $ - _ é ##é 中"
)
PIECES = VOCABULARY.split()


@pytest.fixture(scope="module")
def vocab_file(tmp_path_factory):
  return write_vocab(tmp_path_factory.mktemp("vocab"), "\n".join(PIECES) + "\n")


@pytest.fixture
def tokenizer(vocab_file):
  return tokenization.FullTokenizer(vocab_file)


class StepByStep:
  """The definition: both tokenizers one after the other, nothing looked up."""

  def __init__(self, vocab, do_lower_case=True, special_tokens=()):
    self.vocab = vocab
    self.basic = tokenization.BasicTokenizer(do_lower_case)
    self.wordpiece = tokenization.WordpieceTokenizer(vocab)
    self.special_tokens = special_tokens

  def tokens(self, text):
    for special in self.special_tokens:
      if special in text:
        before, after = text.split(special, 1)
        return [*self.tokens(before), special, *self.tokens(after)]
    words = self.basic.tokenize(text)
    return list(itertools.chain.from_iterable(map(self.wordpiece.tokenize, words)))

  def ids(self, text):
    return [self.vocab[token] for token in self.tokens(text)]


def check_equal(tokenizer, steps, texts):
  """Tokens and ids of `texts`, asked twice: first they are split, then remembered."""
  expected = [steps.tokens(text) for text in texts]
  ids = [[steps.vocab[token] for token in tokens] for tokens in expected]
  for _ in range(2):
    for text, tokens, found in zip(texts, expected, tokenizer.texts_to_ids(texts), strict=True):
      assert tokenizer.tokenize(text) == tokens, ascii(text)
      assert found == [steps.vocab[token] for token in tokens], ascii(text)
    assert [tokenizer.text_to_ids(text) for text in texts[:9]] == ids[:9]


# ---------------------------------------------------------------------------------------------
# The same as step by step.


@pytest.mark.parametrize("do_lower_case", [True, False])
@pytest.mark.parametrize("max_words", [1, 5, word_table.MAX_WORDS])
def test_any_text(vocab_file, monkeypatch, do_lower_case, max_words):
  """One tokenizer for all examples: what it remembers, or forgets, must not matter."""
  monkeypatch.setattr(tokenization, "MAX_WORDS", max_words)
  tokenizer = tokenization.FullTokenizer(vocab_file, do_lower_case)
  steps = StepByStep(tokenizer.vocab, do_lower_case)

  @settings(max_examples=100, deadline=None)
  @given(mixed_text)
  def check(text):
    check_equal(tokenizer, steps, [text])

  check()


@pytest.mark.parametrize("do_lower_case", [True, False])
@pytest.mark.parametrize("every", [211, pytest.param(1, marks=pytest.mark.slow)])
def test_code_points(vocab_file, do_lower_case, every):
  """Alone, between letters, at a word's end and beside themselves."""
  tokenizer = tokenization.FullTokenizer(vocab_file, do_lower_case)
  steps = StepByStep(tokenizer.vocab, do_lower_case)
  codes = sorted({*range(0x250), *range(0x2000, 0x2070), *range(0, 0x110000, every)})
  for code in codes:
    char = chr(code)
    texts = [char, f"a{char}B", f"X {char}Σ{char} {char}{char}"]
    expected = [steps.ids(text) for text in texts]
    assert tokenizer.texts_to_ids(texts) == expected, f"U+{code:04X}"
    assert tokenizer.texts_to_ids(texts) == expected, f"U+{code:04X}, remembered"


# ---------------------------------------------------------------------------------------------
# What is remembered.


def table_of(vocab, **options):
  """A table of ids that counts what is asked of `plain`."""
  steps = StepByStep(vocab)
  asked = collections.Counter()

  def plain(word):
    asked[word] += 1
    return steps.ids(word)

  vocabulary = {piece: index for index, piece in enumerate(PIECES)}
  table = WordTable(vocabulary, plain, do_lower_case=True, max_chars=200, **options)
  return table, asked


@pytest.fixture
def vocab():
  return {piece: index for index, piece in enumerate(PIECES)}


def test_few_and_short_words_are_remembered(vocab):
  table, _ = table_of(vocab, max_words=8)
  for number in range(100):
    table.look_up(f"a{number} {number * 'b'}, {'-' * number} {number * 'é'}")
    assert len(table) <= 8
    assert max(map(len, table)) <= word_table.MAX_WORD_CHARS


# ---------------------------------------------------------------------------------------------
# Tokenizers that were changed.


def test_changed_settings_are_not_answered_from_memory(tokenizer):
  def both(text):
    tokens = tokenizer.tokenize(text)
    assert tokenizer.text_to_ids(text) == [tokenizer.vocab[token] for token in tokens]
    return tokens

  assert both("Unrunn new X") == ["[UNK]", "[UNK]", "[UNK]"]
  tokenizer.vocab["new"] = 200
  assert both("Unrunn new X") == ["[UNK]", "new", "[UNK]"]
  tokenizer.basic_tokenizer.do_lower_case = False
  assert both("Unwant new X") == ["[UNK]", "new", "X"]
  tokenizer.wordpiece_tokenizer.max_input_chars_per_word = 2
  assert both("un new X") == ["un", "[UNK]", "X"]
  tokenizer.wordpiece_tokenizer.unk_token = "[MASK]"
  assert both("un new X") == ["un", "[MASK]", "X"]
  tokenizer.vocab = {"X": 3, "[MASK]": 4}
  tokenizer.wordpiece_tokenizer.vocab = tokenizer.vocab
  assert both("un new X") == ["[MASK]", "[MASK]", "X"]


def test_methods_replaced_on_one_object_are_used(vocab_file):
  tokenizer = tokenization.FullTokenizer(vocab_file)
  assert tokenizer.tokenize("wa-wa") == ["wa", "-", "wa"]
  tokenizer.basic_tokenizer._run_split_on_punc = lambda word: word.split("-")
  assert tokenizer.tokenize("wa-wa") == ["wa", "wa"]
  assert tokenizer.text_to_ids("wa-wa") == [PIECES.index("wa")] * 2
  tokenizer = tokenization.FullTokenizer(vocab_file)
  tokenizer.wordpiece_tokenizer.tokenize = lambda word: ["the"]
  assert tokenizer.text_to_ids("wa wa") == [PIECES.index("the")] * 2
  tokenizer.tokenize = lambda text: ["un"]
  assert tokenizer.text_to_ids("wa-wa") == [PIECES.index("un")]


def test_overridden_methods_of_the_whole_are_followed(vocab_file):
  class Reversed(tokenization.FullTokenizer):
    def tokenize(self, text):
      return super().tokenize(text)[::-1]

  class Shifted(tokenization.FullTokenizer):
    def convert_tokens_to_ids(self, tokens):
      return [1 + index for index in super().convert_tokens_to_ids(tokens)]

  ids = [PIECES.index("un"), PIECES.index("wa")]
  assert Reversed(vocab_file).text_to_ids("un wa") == ids[::-1]
  assert Shifted(vocab_file).text_to_ids("un wa") == [1 + index for index in ids]


@settings(deadline=None)
@given(
  st.lists(st.text("abc", min_size=1, max_size=7), max_size=30),
  st.lists(st.text("abc", max_size=7), max_size=30),
  st.lists(st.text("abc", min_size=1, max_size=12), min_size=1, max_size=20),
)
def test_the_longest_piece_wins_whatever_the_vocabulary_has(first, rest, words):
  """Pieces that share their first letters, with gaps in the lengths, and a blank one."""
  letters = list("ab")  # most words can be spelled; those with a "c" that no piece has cannot
  marked = (f"##{piece}" for piece in [*letters, *rest])
  pieces = dict.fromkeys(["[UNK]", "", *letters, *first, *marked])
  steps = tokenization.WordpieceTokenizer(pieces)
  table = WordTable({piece: piece for piece in pieces}, steps.tokenize, True, max_chars=9)
  steps.max_input_chars_per_word = 9
  for word in words:
    assert list(table[word]) == steps.tokenize(word), word
