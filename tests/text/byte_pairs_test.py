"""RoBERTa's tokenizer."""

import itertools
import json
import pathlib
import shutil
import sys

import pytest
from hypothesis import given

from bert import tokenization
from bert.io import installation, vocabulary_kind
from bert.text import tokenizer_kinds
from bert.text.byte_pairs import BytePairTokenizer
from bert.text.vocabulary_file import VocabularyError
from tests.kit import byte_pairs
from tests.kit.tokenizer_definition import any_text


@pytest.fixture(scope="module")
def vocab_file(tmp_path_factory):
  return byte_pairs.write(tmp_path_factory.mktemp("pairs"))


@pytest.fixture(scope="module")
def tokenizer(vocab_file):
  return BytePairTokenizer(vocab_file)


@pytest.fixture(
  scope="module", params=["vocab.json", pytest.param("tokenizer.json", marks=pytest.mark.ci)]
)
def recorded_file(request, golden_dir, tmp_path_factory):
  """Of a folder with one kind of files alone."""
  folder = tmp_path_factory.mktemp("roberta")
  names = [request.param, *(["merges.txt"] if request.param == "vocab.json" else [])]
  for name in names:
    shutil.copy(golden_dir / "roberta" / "tiny" / name, folder)
  return str(folder / request.param)


# ---------------------------------------------------------------------------------------------
# What transformers recorded.


def test_recorded_tokens_and_offsets(recorded_file, golden_dir):
  """Ids and places of single texts and pairs; and of special tokens read as text."""
  tokenizer = BytePairTokenizer(recorded_file)
  plain = BytePairTokenizer(recorded_file, plain=True)
  lines = byte_pairs.recorded(golden_dir, "tokenization.jsonl.gz")
  assert len(lines) == 1999
  for line in lines:
    texts = [line[name] for name in "ab" if name in line]
    spans = [tokenizer.tokenize_with_offsets(text) for text in texts]
    tokens = [[span.token for span in each] for each in spans]
    assert tokens == [tokenizer.tokenize(text) for text in texts]
    ids = tokenizer.convert_tokens_to_ids(tokenizer.layout.join(*tokens)[0])
    assert ids == line["ids"], line
    places = [(span.start, span.end) for each in spans for span in each]
    end = 1 + line["len_a"]
    second = line["offsets"][end + 2 : -1]
    assert places == list(map(tuple, line["offsets"][1:end] + second)), line
    for name in "ab":
      if f"plain_{name}" in line:
        assert plain.text_to_ids(line[name]) == line[f"plain_{name}"], line


def test_recorded_texts_with_a_space_before_them(recorded_file, golden_dir, tmp_path):
  tokenizer = BytePairTokenizer(recorded_file)
  stated = tokenizer.pairs._replace(add_prefix_space=True)
  (tmp_path / "tokenizer.json").write_text(stated.to_json(), encoding="utf-8")
  prefixing = BytePairTokenizer(tmp_path / "tokenizer.json")
  lines = byte_pairs.recorded(golden_dir, "prefix_space.jsonl.gz")
  assert len(lines) == 104
  for line in lines:
    if line["mode"] == "text":
      assert prefixing.text_to_ids(line["a"]) == line["ids"][1:-1], line
      spans = prefixing.tokenize_with_offsets(line["a"])
      places = [(span.start, span.end) for span in spans]
      assert places == list(map(tuple, line["offsets"][1:-1])), line
    else:
      for each in (tokenizer, prefixing):
        words = list(map(each.tokenize_word, line["words"]))
        ids = [each.convert_tokens_to_ids(tokens) for tokens in words]
        assert list(itertools.chain(*ids)) == line["ids"][1:-1], line
        numbers = [number for number, tokens in enumerate(words) for _ in tokens]
        assert numbers == line["word_ids"][1:-1], line


def test_recorded_texts_of_ids(recorded_file, golden_dir):
  tokenizer = BytePairTokenizer(recorded_file)
  for line in byte_pairs.recorded(golden_dir, "decode.jsonl"):
    assert tokenizer.decode(line["ids"]) == line["text"]
    assert tokenizer.decode(line["ids"], skip_special_tokens=True) == line["text_skip_special"]


# ---------------------------------------------------------------------------------------------
# A small vocabulary.


def test_tokens(tokenizer):
  assert tokenizer.tokenize("Hello the... (and\u00a0é)") == [
    *["Hello", "Ġthe", "...", "Ġ(", "a", "nd", "Â", "ł", "Ã©", ")"]
  ]
  assert tokenizer.tokenize("the") == ["t", "he"]
  assert tokenizer.tokenize_word("the") == tokenizer.tokenize_word(" the") == ["Ġthe"]
  assert tokenizer.tokenize("half \ud800") == tokenizer.tokenize("half \ufffd")


def test_special_tokens_stay_whole_and_the_mask_takes_the_space_on_its_left(vocab_file):
  text = "the \t <mask> <s>"
  tokenizer = BytePairTokenizer(vocab_file)
  assert tokenizer.tokenize(text) == ["t", "he", "<mask>", "Ġ", "<s>"]
  plain = BytePairTokenizer(vocab_file, plain=True)
  assert plain.special_tokens == frozenset()
  assert plain.tokenize("<s>") == ["<", "s", ">"]


def test_berts_names_of_special_tokens_are_taken(vocab_file):
  tokenizer = tokenization.load_tokenizer(vocab_file, True, ("[MASK]", "[CLS]"))
  assert isinstance(tokenizer, BytePairTokenizer)
  with pytest.raises(VocabularyError, match="lacks the special tokens"):
    tokenization.load_tokenizer(vocab_file, True, ("[EXTRA]",))


@given(any_text)
def test_any_text_is_restored_and_has_places(tokenizer, text):
  valid = "".join("\ufffd" if "\ud800" <= char <= "\udfff" else char for char in text)
  spans = tokenizer.tokenize_with_offsets(text)
  assert [span.token for span in spans] == tokenizer.tokenize(text)
  ids = tokenizer.text_to_ids(text)
  assert ids == tokenizer.convert_tokens_to_ids(tokenizer.tokenize(text))
  if not tokenizer.special_tokens & {span.token for span in spans}:
    assert tokenizer.decode(ids) == valid
  # Every character but blanks belongs to a token.
  covered = {place for span in spans for place in range(span.start, span.end)}
  assert all(char.isspace() or place in covered for place, char in enumerate(valid))


def test_word_numbers_are_those_of_split(tokenizer):
  spans = tokenizer.tokenize_with_offsets(" the Hello(and) ")
  numbers = [(span.token, span.word_id) for span in spans]
  assert numbers == [
    *[("Ġthe", 0), ("Ġ", 1), ("Hello", 1), ("(", 1), ("a", 1), ("nd", 1), (")", 1), ("Ġ", 1)]
  ]


def test_tokens_as_text(tokenizer):
  shown = [tokenizer.shown(token) for token in ("Ġthe", "Ã©", "<mask>", "Ã")]
  assert shown == [" the", "é", "<mask>", "\ufffd"]


# ---------------------------------------------------------------------------------------------
# Files.


def test_the_copy_of_a_run_is_one_file(vocab_file, tokenizer, tmp_path):
  assert vocabulary_kind.saved_vocabulary_name(vocab_file) == "tokenizer.json"
  copy = tmp_path / "tokenizer.json"
  copy.write_bytes(tokenizer_kinds.kept_content(vocab_file))
  again = tokenization.load_tokenizer(copy)
  assert again.tokenize("Hello <mask>") == ["Hello", "<mask>"]
  assert again.vocab == tokenizer.vocab == tokenization.load_vocab(vocab_file)
  # And its parts are those files again.
  assert json.loads(again.pairs.vocab_json()) == tokenizer.vocab
  merges = pathlib.Path(vocab_file).with_name("merges.txt").read_text()
  assert again.pairs.merges_txt() == merges


def _without_merges(folder):
  (folder / "merges.txt").unlink()


def _broken(folder):
  (folder / "vocab.json").write_text('{"<s>": 0,')


def _list(folder):
  (folder / "vocab.json").write_text("[1]")


def _of_gpt2(folder):
  vocab = {token: i for token, i in byte_pairs.vocabulary().items() if token[0] != "<" or i > 3}
  (folder / "vocab.json").write_text(json.dumps(vocab))


def _same_id(folder):
  (folder / "vocab.json").write_text(json.dumps({**byte_pairs.vocabulary(), "twice": 7}))


def _without_bytes(folder):
  vocab = {token: i for token, i in byte_pairs.vocabulary().items() if i < 4 or i > 9}
  (folder / "vocab.json").write_text(json.dumps(vocab))


@pytest.mark.parametrize(
  ("damage", "message"),
  [
    (_without_merges, r"vocab\.json needs merges\.txt beside it, which is missing"),
    (_broken, r"vocab\.json is not valid JSON: .*\. Fetch it again\."),
    (_list, r"vocab\.json: a JSON object is needed, not list\. Fetch it again"),
    (_of_gpt2, "lacks the tokens <s>, <pad>, </s>, <unk>: it is no vocabulary of RoBERTa's"),
    (_same_id, "have the same id, 7"),
    (_without_bytes, "lacks 6 of the 256 bytes"),
  ],
)
def test_a_bad_file_is_one_line(tmp_path, damage, message):
  path = byte_pairs.write(tmp_path)
  damage(tmp_path)
  with pytest.raises(VocabularyError, match=message) as caught:
    tokenization.load_tokenizer(path)
  assert "\n" not in str(caught.value)


def test_a_vocabulary_may_hold_the_words_of_a_tokenizers_file(tmp_path):
  """roberta-base has the token "model", which is a key of a tokenizer.json, too."""
  merges = [*byte_pairs.MERGES, ("m", "o"), ("mo", "d"), ("mod", "e"), ("mode", "l")]
  tokenizer = BytePairTokenizer(byte_pairs.write(tmp_path, merges))
  assert tokenizer.tokenize("model") == ["model"]


def test_bad_tokenizer_files(tmp_path):
  path = tmp_path / "tokenizer.json"
  for content, message in [
    ({"model": {"type": "WordPiece"}, "pre_tokenizer": None}, "another kind of tokenizer"),
    ({"model": {"type": "BPE"}, "pre_tokenizer": {"type": "ByteLevel"}}, "not a complete"),
  ]:
    path.write_text(json.dumps(content))
    with pytest.raises(VocabularyError, match=message):
      BytePairTokenizer(path)
  with pytest.raises(VocabularyError, match="Cannot read vocabulary"):
    BytePairTokenizer(tmp_path / "vocab.json")
  with pytest.raises(VocabularyError, match=r"has no ids: give the vocab\.json"):
    BytePairTokenizer(tmp_path / "merges.txt")


def test_without_the_library(vocab_file, monkeypatch):
  monkeypatch.setitem(sys.modules, "tokenizers", None)
  with pytest.raises(installation.MissingExtraError, match=r'pip install "bert-alive\[roberta\]"'):
    BytePairTokenizer(vocab_file)
