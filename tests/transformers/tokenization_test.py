"""Tokenizers, slow and fast: each recorded call, and what else they can do.

Alone: python -m pytest tests/transformers/tokenization_test.py (seconds; no TensorFlow)
"""

import copy
import functools
import json
import logging
import pickle
import types

import numpy as np
import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

from bert.transformers import (
  tokenization_albert,
  tokenization_auto,
  tokenization_bert,
  tokenization_roberta,
)
from bert.transformers.added_tokens import AddedToken
from bert.transformers.tokenization_auto import AutoTokenizer
from bert.transformers.tokenization_fast import PreTrainedTokenizerFast
from tests.kit import transformers_calls

MODULES = (tokenization_albert, tokenization_bert, tokenization_roberta)
NAMES = [name for name, arguments in transformers_calls.classes() if not arguments]
FACE = types.SimpleNamespace(
  AddedToken=AddedToken,
  **{
    name: getattr(module, name)
    for module in MODULES
    for name in dir(module)
    if name.endswith(("Tokenizer", "TokenizerFast"))
  },
)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
  return transformers_calls.write_vocabularies(tmp_path_factory.mktemp("vocabularies"))


@pytest.fixture(scope="module")
def make(files):
  def made(name, **arguments):
    return transformers_calls.make(FACE, name, arguments, files)

  return made


@pytest.fixture(scope="module")
def bert(make):
  return make("BertTokenizerFast")


@pytest.fixture(scope="module")
def slow(make):
  return make("BertTokenizer")


@pytest.mark.filterwarnings("ignore:max_length")
def test_recorded_calls(make):
  made = functools.cache(lambda name, arguments: make(name, **json.loads(arguments)))
  count = 0
  for line in transformers_calls.RECORDED.read_text().splitlines():
    name, arguments, texts, options, expected = json.loads(line)
    found = transformers_calls.answer(made(name, json.dumps(arguments)), texts, options)
    assert found == expected, (name, arguments, texts, options)
    assert [*found] == [*expected]
    count += 1
  assert count > 100


@pytest.mark.parametrize("name", [*NAMES, "ElectraTokenizerFast", "ElectraTokenizer"])
def test_a_saved_tokenizer_is_the_same(make, name, tmp_path):
  tokenizer = make(name, model_max_length=64, padding_side="left")
  tokenizer.add_special_tokens({"additional_special_tokens": ["<sp>"], "bos_token": "<b>"})
  tokenizer.save_pretrained(tmp_path)
  read = AutoTokenizer.from_pretrained(tmp_path, use_fast=name.endswith("Fast"))
  assert type(read) is type(tokenizer)
  shown = repr(read).replace(repr(str(tmp_path)), "''")
  assert shown == repr(tokenizer)
  texts = list(transformers_calls.TEXTS)
  assert read(texts).data == tokenizer(texts).data
  for other in (pickle.loads(pickle.dumps(tokenizer)), copy.deepcopy(tokenizer)):
    assert other(texts).data == tokenizer(texts).data
  assert len(other) == len(tokenizer)
  other.add_tokens("one more")
  assert len(other) == len(tokenizer) + 1


def test_a_folder_without_a_tokenizer_json(make, tmp_path):
  make("BertTokenizer", do_lower_case=False).save_pretrained(tmp_path)
  read = AutoTokenizer.from_pretrained(tmp_path)
  assert type(read) is FACE.BertTokenizerFast
  assert read.tokenize("Où newtok") == ["Où", "newtok"]


def test_a_family_chooses_the_class(files, tmp_path):
  (tmp_path / "vocab.txt").write_text("".join(f"{word}\n" for word in transformers_calls.WORDS))
  assert type(AutoTokenizer.from_pretrained(tmp_path)) is FACE.BertTokenizerFast
  (tmp_path / "config.json").write_text('{"model_type": "distilbert"}')
  found = AutoTokenizer.from_pretrained(tmp_path, use_fast=False, do_lower_case=False)
  assert type(found) is FACE.DistilBertTokenizer
  assert not found.do_lower_case
  (tmp_path / "tokenizer_config.json").write_text('{"tokenizer_class": "T5Tokenizer"}')
  with pytest.raises(ValueError, match="T5Tokenizer; this tokenizer is not supported"):
    AutoTokenizer.from_pretrained(tmp_path)


@pytest.mark.parametrize("name", ["BertTokenizer", "RobertaTokenizer"])
def test_a_folder_of_transformers_5_is_read(make, name, tmp_path):
  tokenizer = make(f"{name}Fast")
  tokenizer.add_special_tokens({"additional_special_tokens": ["<sp>"]})
  tokenizer.save_pretrained(tmp_path)
  for path in tmp_path.iterdir():  # it writes two files
    if path.name not in ("tokenizer.json", "tokenizer_config.json"):
      path.unlink()
  config = {"tokenizer_class": name, "extra_special_tokens": ["<sp>"], "model_max_length": 9}
  (tmp_path / "tokenizer_config.json").write_text(json.dumps(config))
  for use_fast in (True, False):
    read = AutoTokenizer.from_pretrained(tmp_path, use_fast=use_fast)
    assert read.is_fast == use_fast
    assert read("The film <sp>")["input_ids"] == tokenizer("The film <sp>")["input_ids"]
    assert (read.additional_special_tokens, read.model_max_length) == (["<sp>"], 9)


def test_any_tokenizer_json_is_read(make, tmp_path):
  make("AlbertTokenizerFast").save_pretrained(tmp_path)
  path = str(tmp_path / "tokenizer.json")
  ids = PreTrainedTokenizerFast(tokenizer_file=path)("the film <x>")["input_ids"]
  assert ids == make("AlbertTokenizerFast")("the film <x>")["input_ids"]


def test_special_tokens_are_attributes(make):
  tokenizer = make("BertTokenizerFast")
  assert (tokenizer.cls_token, tokenizer.cls_token_id, tokenizer.bos_token) == ("[CLS]", 2, None)
  assert tokenizer.all_special_ids == [1, 3, 0, 2, 4]
  tokenizer.cls_token_id = 5
  assert tokenizer.cls_token == "the"
  tokenizer.additional_special_tokens = ["film"]
  assert tokenizer.additional_special_tokens_ids == [6]
  assert "film" in tokenizer.special_tokens_map["additional_special_tokens"]
  with pytest.raises(ValueError, match="cls_token must be str"):
    tokenizer.cls_token = 5
  with pytest.raises(AttributeError, match="no_such"):
    tokenizer.no_such  # noqa: B018


def test_words_and_characters_of_tokens(bert):
  batch = bert("unwanted films", "the end")
  assert batch.tokens()[:4] == ["[CLS]", "un", "##want", "##ed"]
  assert batch.word_ids() == [None, 0, 0, 0, 1, 1, None, 0, 1, None]
  assert batch.word_to_tokens(0) == (1, 4)
  assert batch.word_to_tokens(0, sequence_index=1) == (7, 8)
  assert batch.token_to_chars(2) == (2, 6)
  assert batch.char_to_token(3) == 2
  assert batch.char_to_token(8) is None
  assert batch.char_to_word(9) == 1
  assert batch[0].offsets[3] == (6, 8)
  assert batch.input_ids == batch["input_ids"]
  assert pickle.loads(pickle.dumps(batch)).tokens() == batch.tokens()


def test_a_slow_tokenizer_knows_no_words(slow):
  with pytest.raises(TypeError, match="ends in Fast"):
    slow.tokenize("a", "b", add_special_tokens=True)
  with pytest.raises(ValueError, match="end in Fast"):
    slow("a").word_ids()
  with pytest.raises(NotImplementedError, match="return_offsets_mapping"):
    slow("a", return_offsets_mapping=True)


@pytest.mark.parametrize("kind", ["np", "tf"])
def test_tensors(bert, kind):
  batch = bert(["a", "the film"], padding=True, return_tensors=kind)
  assert tuple(batch["input_ids"].shape) == (2, 4)
  assert "int" in str(batch["input_ids"].dtype)
  assert bert.batch_decode(batch["input_ids"], skip_special_tokens=True) == ["a", "the film"]


@pytest.mark.parametrize(
  "name", ["BertTokenizerFast", "RobertaTokenizerFast", "AlbertTokenizerFast"]
)
def test_a_new_vocabulary_is_learned(make, name):
  tokenizer = make(name)
  texts = [["this is a first sentence.", "this is a second one."]] * 20
  new = tokenizer.train_new_from_iterator(
    texts, 300, new_special_tokens=["<new>"], special_tokens_map={tokenizer.cls_token: "<c>"}
  )
  assert type(new) is type(tokenizer)
  assert new.cls_token == "<c>"
  assert new.convert_ids_to_tokens(new("a first <new>")["input_ids"])[0] == "<c>"
  ids = new.encode("this is a first sentence")
  assert new.decode(ids, skip_special_tokens=True) == "this is a first sentence"
  assert "<new>" in new.additional_special_tokens
  assert len(new) < 320
  assert new.num_special_tokens_to_add(True) == tokenizer.num_special_tokens_to_add(True)


def test_an_object_of_the_library_is_taken(make, tmp_path):
  tokenizer = make("BertTokenizerFast")
  tokenizer.save_pretrained(tmp_path)
  made = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
  wrapped = PreTrainedTokenizerFast(tokenizer_object=made, unk_token="[UNK]")
  assert wrapped("Un<x> film")["input_ids"] == tokenizer("Un<x> film")["input_ids"]


def test_parts_of_a_fast_tokenizer_have_the_librarys_names(make, tmp_path):
  bert, roberta = make("BertTokenizerFast"), make("RobertaTokenizerFast", trim_offsets=False)
  words = bert.backend_tokenizer.pre_tokenizer.pre_tokenize_str("it rains.")
  assert words == tokenizers.pre_tokenizers.BertPreTokenizer().pre_tokenize_str("it rains.")
  assert not roberta.backend_tokenizer.pre_tokenizer.add_prefix_space
  assert not json.loads(roberta.backend_tokenizer.post_processor.__getstate__())["trim_offsets"]
  for each in (bert, roberta):
    each.backend_tokenizer.save(str(tmp_path / "tokenizer.json"))
    read = PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json"))
    assert read("a b", "a").input_ids == each("a b", "a").input_ids
  roberta.backend_tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel()
  assert roberta.tokenize("a") == ["Ġa"]


def test_attributes_of_slow_tokenizers(make):
  roberta, albert = make("RobertaTokenizer"), make("AlbertTokenizer")
  assert roberta.byte_encoder[ord(" ")] == "Ġ"
  assert roberta.byte_decoder["Ġ"] == ord(" ")
  copied = copy.copy(albert)
  copied.sp_model = albert.sp_model
  assert copied.tokenize("a b") == albert.tokenize("a b")


def test_tokens_by_name_are_special_ones(make):
  tokenizer = make("BertTokenizerFast", mask_token=AddedToken("[MASK]", lstrip=True))
  [mask] = [each for each in tokenizer.all_special_tokens_extended if str(each) == "[MASK]"]
  assert mask.special
  assert mask.lstrip


@pytest.mark.parametrize("error", [AssertionError, ValueError])
def test_what_is_no_special_token_is_refused_as_in_transformers(bert, error):
  with pytest.raises(error, match="must be a list of tokens"):
    bert.add_special_tokens({"additional_special_tokens": "<a>"})


def test_names_of_old_versions_are_taken(bert, slow):
  for tokenizer in (bert, slow):
    with pytest.warns(FutureWarning, match="pass padding='max_length'"):
      padded = tokenizer.encode_plus("a", max_length=5, truncation=True, pad_to_max_length=True)
    assert padded["input_ids"] == [2, 25, 3, 0, 0]
    with pytest.warns(FutureWarning, match="pass truncation='only_first'"):
      cut = tokenizer("a a a", "a", max_length=6, truncation_strategy="only_first")
    assert cut["input_ids"] == [2, 25, 25, 3, 25, 3]


def test_of_two_spelled_alike_the_first_is_found(make):
  tokenizer = make("BertTokenizerFast")
  tokenizer.add_tokens(["NEWTOK", "Other", "other"])
  ids = tokenizer.convert_tokens_to_ids(["newtok", "Other"])
  assert tokenizer.encode("NEWTOK other", add_special_tokens=False) == ids


def test_target_texts_are_labels(bert):
  assert bert("a", text_target="the end")["labels"] == [2, 5, 9, 3]


def test_padding_takes_what_calls_return(bert, slow):
  for tokenizer in (bert, slow):
    rows = [tokenizer("a"), tokenizer("the film")]
    padded = tokenizer.pad(rows, return_tensors="np", pad_to_multiple_of=8)
    assert padded["input_ids"].shape == padded["attention_mask"].shape == (2, 8)
    again = tokenizer.pad({"input_ids": [np.array([5, 6]), np.array([5])]})
    assert isinstance(again["input_ids"], np.ndarray)


def test_a_long_row_is_warned_of_once(make, caplog):
  tokenizer = make("BertTokenizer", model_max_length=4)
  with caplog.at_level(logging.WARNING, logger="transformers"):
    for _ in range(2):
      tokenizer("a a a a")
    tokenizer.deprecation_warnings = {}  # warn once more
    tokenizer("a a a a")
  found = [record.message[:33] for record in caplog.records]
  assert found == ["A row has 6 tokens, more than the"] * 2


def _without_padding(tokenizer):
  tokenizer.pad_token = None
  return tokenizer("a", padding=True)


BAD = {
  "a number": (lambda t: t(5), "must be a text"),
  "a number among texts": (lambda t: t(["a", 5]), "must be"),
  "bytes": (lambda t: t(b"a"), "must be a text"),
  "none": (lambda t: t(), "neither text nor text_target"),
  "three texts": (lambda t: t([["a", "b", "c"]]), "pair"),
  "other counts": (lambda t: t(["a"], ["b", "c"]), "1 texts, but 2"),
  "one pair of many": (lambda t: t(["a"], "b"), "single"),
  "unknown truncation": (lambda t: t("a", truncation="longest"), "not a valid TruncationStrategy"),
  "unknown padding": (lambda t: t("a", padding="all"), "not a valid PaddingStrategy"),
  "unknown tensors": (lambda t: t("a", return_tensors="xy"), "not a valid TensorType"),
  "jax": (lambda t: t("a", return_tensors="jax"), "not supported"),
  "negative length": (lambda t: t("a", max_length=-1, truncation=True), "at least 0"),
  "a length of text": (lambda t: t("a", max_length="8", truncation=True), "whole number"),
  "no multiple": (lambda t: t("a", padding=True, pad_to_multiple_of=0), "at least 1"),
  "other multiple": (
    lambda t: t("a", padding=True, truncation=True, max_length=9, pad_to_multiple_of=4),
    "no multiple",
  ),
  "negative stride": (lambda t: t("a", stride=-1), "at least 0"),
  "no side": (lambda t: t("a", padding_side="top"), "'left' or 'right'"),
  "ragged": (lambda t: t(["a", "a a"], return_tensors="tf"), "padding=True"),
  "no token": (lambda t: t.add_tokens([5]), "must be str or AddedToken"),
  "no special name": (lambda t: t.add_special_tokens({"x_token": "a"}), "not the name"),
  "nothing to pad": (lambda t: t.pad({"labels": [1]}), "no 'input_ids'"),
  "counts to pad": (lambda t: t.pad({"input_ids": [[1], [2]], "x": [1]}), "numbers of rows"),
  "no pad token": (_without_padding, "no pad_token"),
  "the hub": (lambda t: t.save_pretrained("x", push_to_hub=True), "push_to_hub"),
}


@pytest.mark.parametrize("name", ["BertTokenizer", "BertTokenizerFast"])
@pytest.mark.parametrize("case", BAD)
def test_bad_input_gives_one_line(make, name, case):
  call, expected = BAD[case]
  with pytest.raises((ValueError, TypeError), match=expected):
    call(make(name))


@pytest.mark.parametrize(
  ("options", "expected"),
  [
    ({"truncation": "only_second", "max_length": 4}, "second text"),
    ({"truncation": "only_first", "max_length": 4, "text_pair": "a a a a"}, "Choose another"),
    ({"truncation": True, "max_length": 4, "stride": 3}, "stride"),
    ({"is_split_into_words": True}, "list of words"),
  ],
)
def test_bad_options_of_fast_tokenizers(bert, options, expected):
  with pytest.raises((ValueError, TypeError), match=expected):
    bert("a a a", **options)


def test_words_of_roberta_need_spaces(make):
  with pytest.raises(ValueError, match="add_prefix_space=True"):
    make("RobertaTokenizerFast")(["a", "b"], is_split_into_words=True)


@pytest.mark.parametrize("name", NAMES)
def test_missing_files_are_named(name, tmp_path):
  with pytest.raises(OSError, match="has no tokenizer of the class"):
    getattr(FACE, name).from_pretrained(tmp_path)
  with pytest.raises(ValueError, match=r"vocab|No |model"):
    getattr(FACE, name)(*[str(tmp_path / "none")] * (2 if "Roberta" in name else 1))


@settings(max_examples=60, deadline=None)
@given(text=st.text(), pair=st.none() | st.text(min_size=1), length=st.integers(3, 20))
def test_rows_are_consistent(bert, text, pair, length):
  options = {"truncation": True, "max_length": length, "padding": "max_length"}
  overflows = pair is None
  batch = bert([text], pair and [pair], return_overflowing_tokens=overflows, **options)
  assert {len(row) for row in batch["input_ids"]} == {length}
  for row, ids in zip(batch.encodings, batch["input_ids"], strict=True):
    assert row.ids == ids
    for values in (row.tokens, row.offsets, row.word_ids, row.sequence_ids, row.type_ids):
      assert len(values) == len(ids)
    for (start, end), sequence in zip(row.offsets, row.sequence_ids, strict=True):
      assert 0 <= start <= end <= len((text, pair)[sequence] if sequence is not None else "")
  whole = bert.encode(text, add_special_tokens=False)
  if overflows:
    kept = [
      index
      for row in batch.encodings
      for index, of in zip(row.ids, row.sequence_ids, strict=True)
      if of is not None
    ]
    assert kept == whole  # nothing is lost without a stride


def test_names_of_auto_tokenizers():
  assert set(tokenization_auto.TOKENIZER_MAPPING_NAMES) >= {"bert", "roberta", "albert"}
  with pytest.raises(OSError, match="from_pretrained"):
    AutoTokenizer()
