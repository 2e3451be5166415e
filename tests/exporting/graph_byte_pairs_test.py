"""RoBERTa's tokenizer in graphs."""

import random

import numpy as np
import pytest
import tensorflow as tf

from bert.exporting import graph_text, hub_preprocess
from bert.exporting.graph_byte_pairs import BytePairGraph
from bert.text.byte_pairs import BytePairTokenizer
from bert.text.vocabulary_file import VocabularyError
from tests.kit import byte_pairs as small

# What GPT-2's pattern and special tokens make difficult, one beside the other.
PARTS = [
  *[
    "a",
    "ab",
    "the",
    "Hello",
    "s",
    "t",
    "re",
    "ve",
    "m",
    "ll",
    "d",
    "S",
    "1",
    "23",
    "½",
    "é",
    "博",
  ],
  *["'", "''", "'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "’s", "!", "...", "(", "_", "😀"],
  *[
    " ",
    "  ",
    "   ",
    "\n",
    " \n",
    "\n ",
    "\t",
    "\u00a0",
    "\u3000",
    "\u2028",
    "\x85",
    "\x1c",
    "\r\n",
  ],
  *["<s>", "</s>", "<mask>", "<pad>", "<unk>", "<", "<mask", "mask>", " <mask>", "\0", "\u0301"],
]


@pytest.fixture(scope="module")
def vocab_file(tmp_path_factory):
  return small.write(tmp_path_factory.mktemp("pairs"))


@pytest.fixture(scope="module")
def preprocessor(vocab_file):
  return hub_preprocess.Preprocessor(vocab_file, seq_length=12)


def random_texts(number):
  stream = random.Random(number)
  texts = ["".join(stream.choices(PARTS, k=stream.randrange(12))) for _ in range(number)]
  return ["", *texts, "a" * 70 + "(" * 33]


def as_bytes(texts):
  return tf.constant([text.encode() for text in texts], tf.string)


def expected_places(tokenizer, text):
  """First and last byte of each token."""
  ends = [0, *np.cumsum([len(char.encode()) for char in text])]
  return [(ends[span.start], ends[span.end]) for span in tokenizer.tokenize_with_offsets(text)]


def check(tokenizer, graph, texts):
  ids, starts, limits = (
    each.merge_dims(1, 2).to_list() for each in graph.tokenize_with_offsets(as_bytes(texts))
  )
  assert graph.tokenize(as_bytes(texts)).merge_dims(1, 2).to_list() == ids
  for text, row, *places in zip(texts, ids, starts, limits, strict=True):
    assert row == tokenizer.text_to_ids(text), text
    assert list(zip(*places, strict=True)) == expected_places(tokenizer, text), text


@pytest.fixture(scope="module")
def tokenizer(vocab_file):
  return BytePairTokenizer(vocab_file)


def test_tokens_and_places_of_difficult_texts(tokenizer, preprocessor):
  check(tokenizer, preprocessor.tokenizer, random_texts(100))


@pytest.mark.ci
def test_recorded_tokens(golden_dir):
  """All that transformers recorded, places included."""
  tokenizer = BytePairTokenizer(golden_dir / "roberta" / "tiny" / "tokenizer.json")
  graph = BytePairGraph(tokenizer)
  lines = small.recorded(golden_dir, "tokenization.jsonl.gz")
  texts = [line[name] for line in lines for name in "ab" if name in line]
  check(tokenizer, graph, [*texts, *random_texts(5000)])
  framed = graph_text.join(
    graph.tokenize(as_bytes([line["a"] for line in lines])).merge_dims(1, 2),
    graph.tokenize(as_bytes([line.get("b", "") for line in lines])).merge_dims(1, 2),
    tf.constant(["b" in line for line in lines]),
    graph_text.Frame.of(tokenizer.vocab, tokenizer.layout),
  )
  for line, ids, mask in zip(lines, *map(np.array, list(framed.values())[:2]), strict=True):
    assert ids[mask > 0].tolist() == line["ids"]
    assert (ids[mask == 0] == 1).all()


@pytest.mark.ci
def test_words_and_texts_with_a_space_before_them(vocab_file, tokenizer, preprocessor):
  texts = random_texts(200)
  graph = preprocessor.tokenizer
  found = graph.tokenize_words(as_bytes(texts)).to_list()
  words = [tokenizer.convert_tokens_to_ids(tokenizer.tokenize_word(text)) for text in texts]
  assert found == words


@pytest.mark.ci
def test_without_special_tokens(vocab_file):
  plain = BytePairTokenizer(vocab_file, plain=True)
  check(plain, BytePairGraph(plain), random_texts(50))


@pytest.mark.ci
def test_invalid_bytes_are_skipped(tokenizer, preprocessor):
  texts = [b"the \xff\xfe", b"\xc3", b"a\xe2\x82"]
  ids = preprocessor.tokenize(tf.constant(texts)).merge_dims(1, 2).to_list()
  assert ids == tokenizer.texts_to_ids(texts)


@pytest.mark.ci
def test_no_text_at_all(preprocessor):
  for texts in ([], [""], ["", ""]):
    assert preprocessor.tokenize(tf.constant(texts, tf.string)).to_list() == [[]] * len(texts)


@pytest.mark.ci
def test_packed_as_in_training(tokenizer, preprocessor):
  """`<s> a </s></s> b </s>`; of equally long texts the second stays longer."""
  texts = random_texts(100)
  pairs = [*texts[50:], *texts[:50]]
  pieces = [preprocessor.tokenize(as_bytes(each)).merge_dims(1, 2) for each in (texts, pairs)]
  frame = graph_text.Frame.of(tokenizer.vocab, tokenizer.layout)
  packed = graph_text.pack(*pieces, frame, 12)
  expected = tokenizer.encode_batch(texts, pairs, max_seq_length=12)
  assert packed["input_word_ids"].numpy().tolist() == expected["input_ids"].tolist()
  assert packed["input_mask"].numpy().tolist() == expected["input_mask"].tolist()
  assert not packed["input_type_ids"].numpy().any()


@pytest.mark.slow
def test_a_saved_preprocess_model(tokenizer, preprocessor, vocab_file, tmp_path):
  hub_preprocess.export_preprocess(str(tmp_path / "model"), vocab_file, seq_length=12)
  loaded = tf.saved_model.load(str(tmp_path / "model"))
  texts = random_texts(20)
  inputs = loaded(as_bytes(texts))
  expected = tokenizer.encode_batch(texts, max_seq_length=12)
  assert inputs["input_word_ids"].numpy().tolist() == expected["input_ids"].tolist()
  pieces = loaded.tokenize(as_bytes(texts))
  pairs = loaded.bert_pack_inputs([pieces, pieces], seq_length=60)["input_word_ids"].numpy()
  longer = tokenizer.encode_batch(texts[1:2], texts[1:2], max_seq_length=60)["input_ids"]
  assert pairs[1].tolist() == longer[0].tolist()
  # Its asset is the whole tokenizer, whatever it was made of.
  again = BytePairTokenizer(loaded.vocab_file.asset_path.numpy().decode())
  assert again.texts_to_ids(texts) == tokenizer.texts_to_ids(texts)
  special = {name: int(value) for name, value in loaded.tokenize.get_special_tokens_dict().items()}
  mask = tokenizer.vocab["<mask>"]
  assert special == {
    **{"vocab_size": mask + 1, "start_of_sequence_id": 0, "end_of_segment_id": 2},
    **{"padding_id": 1, "mask_id": mask},
  }


def test_the_other_tokenizer_is_refused(vocab_file):
  with pytest.raises(ValueError, match="byte-level BPE"):
    hub_preprocess.Preprocessor(vocab_file, tf_text_tokenizer=True)


@pytest.mark.mutation("bert.exporting.graph_byte_pairs:_special_tokens", "guard")
@pytest.mark.parametrize(
  ("change", "message"),
  [({"rstrip": True}, "it has rstrip"), ({"content": "<s"}, "'<s>' may overlap it")],
)
def test_special_tokens_with_unknown_rules_are_refused(vocab_file, change, message):
  tokenizer = BytePairTokenizer(vocab_file)
  tokenizer.pairs.special[3].update(change)
  with pytest.raises(VocabularyError, match=message):
    BytePairGraph(tokenizer)
