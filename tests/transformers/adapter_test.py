"""Tokenizers and data collators of transformers with TensorFlow's tensors; the original's folders.

Alone: python -m pytest tests/transformers/adapter_test.py (seconds)
"""

import json
import pickle
import shutil

import numpy as np
import pytest
import tensorflow as tf
import transformers

from bert import tokenization
from bert import transformers as room
from bert.checkpoints import model_files, saving
from bert.transformers import AutoConfig, AutoTokenizer, BertConfig, BertTokenizer
from tests.kit import byte_pairs, piece_model, tiny_bert

WORDS = [
  *tiny_bert.SPECIAL_TOKENS,
  "the",
  "film",
  "##s",
  "of",
  "end",
  "was",
  "good",
  ".",
  "Où",
  "ou",
]
TEXTS = ["The films of the end.", "Good", "Où was the film?"]
FAMILIES = ("Bert", "Roberta", "Albert")


@pytest.fixture(scope="module")
def files(tmp_path_factory):
  """Family -> the files of its vocabulary, as arguments."""
  folder = tmp_path_factory.mktemp("vocabularies")
  (folder / "vocab.txt").write_text("\n".join(WORDS) + "\n", encoding="utf-8")
  words = {"vocab_file": str(folder / "vocab.txt")}
  pairs = {"vocab_file": byte_pairs.write(folder), "merges_file": str(folder / "merges.txt")}
  pieces = {"vocab_file": str(piece_model.write(folder))}
  return dict(zip(FAMILIES, (words, pairs, pieces), strict=True))


@pytest.fixture(scope="module")
def tokenizer(files):
  return BertTokenizer(**files["Bert"])


@pytest.fixture
def rows(tokenizer):
  return [dict(tokenizer(text)) for text in ("the", "the film")]


def arrays(batch):
  return {name: np.asarray(value).tolist() for name, value in batch.items()}


# ---------------------------------------------------------------------------------------------
# Tokenizers.


@pytest.mark.parametrize("family", FAMILIES)
def test_tensors_have_the_numbers_of_numpy(files, family, tmp_path):
  ours = getattr(room, f"{family}TokenizerFast")(**files[family])
  assert isinstance(ours, getattr(transformers, f"{family}Tokenizer"))
  assert isinstance(ours, room.PreTrainedTokenizerFast)
  assert isinstance(ours, room.PreTrainedTokenizerBase)
  assert getattr(room, f"{family}Tokenizer") is type(ours)
  ours.save_pretrained(tmp_path)
  theirs = getattr(transformers, f"{family}Tokenizer").from_pretrained(tmp_path)
  assert ours.vocab_size == theirs.vocab_size > 10
  for given, options in (
    ((TEXTS,), {"padding": True}),
    ((TEXTS, TEXTS[::-1]), {"padding": "max_length", "truncation": True, "max_length": 7}),
    (("the film", "good"), {"return_offsets_mapping": True}),
    ((TEXTS[0],), {"truncation": True, "max_length": 4, "return_overflowing_tokens": True}),
  ):
    if "return_overflowing_tokens" in options:
      options = {**options, "padding": True}
    expected = theirs(*given, **options, return_tensors="np")
    found = ours(*given, **options, return_tensors="tf")
    assert arrays(found) == arrays(expected)
    assert {value.dtype for value in found.values()} == {tf.int32}
    assert isinstance(found, room.BatchEncoding)


@pytest.mark.parametrize("family", ["Bert", "Roberta", "Albert"])
def test_files_may_come_by_position(files, family):
  tokenizer_class = getattr(room, f"{family}Tokenizer")
  by_position = tokenizer_class(*files[family].values())
  assert by_position(TEXTS)["input_ids"] == tokenizer_class(**files[family])(TEXTS)["input_ids"]


def test_all_methods_that_return_tensors(tokenizer):
  expected = tokenizer(TEXTS, padding=True)["input_ids"]
  rows = [tokenizer(text, return_tensors="tf") for text in TEXTS]
  rows = [{name: value[0] for name, value in row.items()} for row in rows]
  for found in (
    tokenizer.batch_encode_plus(TEXTS, padding=True, return_tensors="tf"),
    tokenizer.pad([tokenizer(text) for text in TEXTS], return_tensors="tf"),
    tokenizer.pad(rows, return_tensors="tf"),
    tokenizer(TEXTS, padding=True).convert_to_tensors("tf"),
    room.BatchEncoding(tokenizer(TEXTS, padding=True).data, tensor_type="tf"),
  ):
    assert found["input_ids"].numpy().tolist() == expected
  ids = tokenizer.encode("The film", return_tensors="tf")
  assert ids.numpy().tolist() == [tokenizer.encode("The film")] == [[2, 5, 6, 3]]
  assert tokenizer.encode_plus("The film", "good", return_tensors="tf")["input_ids"].shape == (1, 6)
  assert tokenizer.decode(ids[0]) == tokenizer.batch_decode(ids)[0] == "[CLS] the film [SEP]"
  assert tokenizer.convert_ids_to_tokens(ids[0])[1] == tokenizer.convert_ids_to_tokens(5) == "the"
  with pytest.raises(ValueError, match=r"'input_ids' have different lengths.*padding=True"):
    tokenizer(TEXTS, return_tensors="tf")


def test_a_tokenizer_json_is_read_as_it_is(tokenizer, tmp_path):
  made = BertTokenizer(vocab=tokenizer.get_vocab(), do_lower_case=False)
  made.save_pretrained(tmp_path)
  (tmp_path / "tokenizer_config.json").unlink()
  for found in (
    room.PreTrainedTokenizerFast(tokenizer_file=str(tmp_path / "tokenizer.json")),
    room.PreTrainedTokenizerFast.from_pretrained(tmp_path),
    BertTokenizer.from_pretrained(tmp_path),
  ):
    assert found("Où the The", return_tensors="tf")["input_ids"].numpy().tolist() == [
      made("Où the The")["input_ids"]
    ]


def test_a_copy_and_a_saved_tokenizer_are_the_same(files, tmp_path):
  for family in FAMILIES:
    made = getattr(room, f"{family}Tokenizer")(**files[family], model_max_length=64)
    made.add_special_tokens({"additional_special_tokens": ["<sp>"]})
    folder = tmp_path / family
    made.save_pretrained(folder)
    for found in (
      pickle.loads(pickle.dumps(made)),
      AutoTokenizer.from_pretrained(folder),
      type(made).from_pretrained(folder),
      transformers.AutoTokenizer.from_pretrained(folder),
    ):
      assert found(TEXTS)["input_ids"] == made(TEXTS)["input_ids"]
      assert (found.model_max_length, type(found).__name__) == (64, f"{family}Tokenizer")
    assert json.loads((folder / "tokenizer_config.json").read_text())["tokenizer_class"] == (
      f"{family}Tokenizer"
    )
    scripts = tokenization.load_tokenizer(model_files.need_vocabulary(folder), True)
    assert scripts.text_to_ids(TEXTS[1]) == made(TEXTS[1], add_special_tokens=False)["input_ids"]


# ---------------------------------------------------------------------------------------------
# Folders of the original, and names.


@pytest.mark.parametrize(
  ("name", "vocabulary", "lower"),
  [
    ("any", "vocab.txt", True),
    ("cased_L-2_H-16_A-2", "vocab.txt", False),
    ("albert", "30k-clean.model", True),
    ("pairs", "vocab.json", False),
  ],
)
def test_a_folder_of_the_original(files, tmp_path, name, vocabulary, lower):
  family = {"albert": "Albert", "pairs": "Roberta"}.get(name, "Bert")
  folder = tmp_path / name
  folder.mkdir()
  shutil.copy(files[family]["vocab_file"], folder / vocabulary)
  if family == "Roberta":
    shutil.copy(files[family]["merges_file"], folder)
  config_file = folder / "bert_config.json"
  config_file.write_text(json.dumps(tiny_bert.config(len(WORDS), hidden_act="gelu")))
  ours = tokenization.load_tokenizer(folder / vocabulary, lower)
  for auto in (AutoTokenizer, getattr(room, f"{family}Tokenizer")):
    found = auto.from_pretrained(folder)
    assert type(found).__name__ == f"{family}Tokenizer"
    for text in TEXTS:
      assert found(text, add_special_tokens=False)["input_ids"] == ours.text_to_ids(text)
  assert AutoTokenizer.from_pretrained(folder, model_max_length=9).model_max_length == 9
  for config in (
    AutoConfig.from_pretrained(folder, num_labels=3),
    BertConfig.from_pretrained(folder),
  ):
    assert (type(config), config.vocab_size) == (BertConfig, len(WORDS))
    assert config.hidden_act == "gelu_new"  # what the original's "gelu" is
  assert AutoConfig.from_pretrained(folder, num_labels=3).num_labels == 3


@pytest.mark.parametrize(("family", "lower"), [("Bert", True), ("Bert", False), ("Albert", False)])
def test_a_run_keeps_the_case_it_was_trained_with(files, tmp_path, family, lower):
  folder = tmp_path / "run"
  folder.mkdir()
  shutil.copy(files[family]["vocab_file"], folder)
  (folder / "bert_config.json").write_text(json.dumps(tiny_bert.config(len(WORDS))))
  facts = {"fingerprint": {"do_lower_case": lower}}
  prefix = saving.save(str(folder), 3, {"bert/pooler/dense/bias": np.zeros(2)}, facts)
  scripts = tokenization.load_tokenizer(model_files.need_vocabulary(folder), lower)
  for auto in (AutoTokenizer, getattr(room, f"{family}Tokenizer")):
    for place in (folder, prefix):
      found = auto.from_pretrained(place)
      for text in TEXTS:
        assert found(text, add_special_tokens=False)["input_ids"] == scripts.text_to_ids(text)


def test_a_tokenizer_without_its_vocabulary_is_refused(tmp_path):
  (tmp_path / "config.json").write_text('{"model_type": "bert"}')
  for auto in (AutoTokenizer, BertTokenizer):
    with pytest.raises(ValueError, match="has no vocab"):
      auto.from_pretrained(tmp_path)


def test_a_configuration_of_another_family_is_refused(tmp_path):
  room.RobertaConfig(num_labels=4).save_pretrained(tmp_path)
  assert AutoConfig.from_pretrained(tmp_path, num_labels=5).num_labels == 5
  with pytest.raises(ValueError, match="a model of roberta; BertConfig is of bert"):
    BertConfig.from_pretrained(tmp_path)


@pytest.fixture
def hub_cache(files, tmp_path):
  """The Hub's cache with a repository."""
  repository = tmp_path / "models--someone--model"
  snapshot = repository / "snapshots" / ("0" * 40)
  snapshot.mkdir(parents=True)
  (repository / "refs").mkdir()
  (repository / "refs" / "main").write_text("0" * 40)
  shutil.copy(files["Bert"]["vocab_file"], snapshot)
  (snapshot / "config.json").write_text('{"model_type": "bert", "num_hidden_layers": 3}')
  (snapshot / "tokenizer_config.json").write_text('{"do_lower_case": false}')
  return tmp_path


def test_a_name_is_looked_for_on_the_hub(hub_cache):
  options = {"cache_dir": hub_cache, "local_files_only": True}
  found = AutoTokenizer.from_pretrained("someone/model", **options)
  assert (found.name_or_path, found.tokenize("Où the")) == ("someone/model", ["Où", "the"])
  assert BertConfig.from_pretrained("someone/model", **options).num_hidden_layers == 3
  assert AutoConfig.from_pretrained("someone/model", **options).name_or_path == "someone/model"
  for name in ("someone/other", "uncased_L-2_H-128_A"):
    for auto in (AutoTokenizer, BertTokenizer, AutoConfig, BertConfig):
      with pytest.raises(OSError, match=f"{name}.*Nor does the Hub give it") as caught:
        auto.from_pretrained(name, **options)
      assert "\n" not in str(caught.value)


# ---------------------------------------------------------------------------------------------
# Data collators.


@pytest.mark.parametrize(
  ("name", "labels", "options"),
  [
    ("DataCollatorWithPadding", {"label": 1}, {"pad_to_multiple_of": 8}),
    ("DataCollatorWithPadding", {"label_ids": 1}, {}),
    ("DataCollatorForTokenClassification", {"labels": [7, 7, 7]}, {}),
    ("DataCollatorForLanguageModeling", {}, {"seed": 3}),
  ],
)
def test_a_collator_makes_tensors_of_transformers_batch(tokenizer, rows, name, labels, options):
  if name == "DataCollatorForLanguageModeling":
    rows = [tokenizer("the films of the end was good. " * 20)] * 4
  features = [{**row, **labels} for row in rows]
  theirs = getattr(transformers, name)(tokenizer, **options, return_tensors="np")
  ours = getattr(room, name)(tokenizer, **options)
  expected, found = theirs(features), ours(features)
  assert ours.return_tensors == "tf"
  assert all(map(tf.is_tensor, found.values()))
  assert arrays(found) == arrays(expected)
  assert ("labels" in found) == (labels != {} or "seed" in options)


def test_rows_of_one_length_are_stacked(tokenizer):
  features = [{"x": [1, 2], "y": np.ones(2, np.int32), "label": 0.5, "text": "out", "n": None}] * 2
  theirs = transformers.DefaultDataCollator("np")(features)
  assert arrays(room.DefaultDataCollator()(features)) == arrays(theirs)
  batch = room.tf_default_data_collator([{**row, "label": tf.constant(3)} for row in features])
  assert (batch["labels"].dtype, batch["y"].dtype) == (tf.int64, tf.int32)
  assert room.default_data_collator(features)["labels"].dtype == tf.float32


def test_choices_are_padded_together(tokenizer, rows):
  one, two = ({name: [row[name]] * 2 for name in row} for row in rows)
  collate = room.DataCollatorForMultipleChoice(tokenizer)
  found = arrays(collate([{**one, "label": 1}, {**two, "label": 0}]))
  assert found["input_ids"] == [[[2, 5, 3, 0]] * 2, [[2, 5, 6, 3]] * 2]
  assert found["labels"] == [1, 0]
  with pytest.raises(ValueError, match="different numbers of choices"):
    collate([{name: values[:1] for name, values in one.items()}, two])
