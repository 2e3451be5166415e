"""Tests of bert/exporting/hub_preprocess.py. Alone: python -m pytest
tests/exporting/hub_preprocess_test.py

P1 to P15 in the comments number what users of published preprocess models rely on.
"""

import codecs
import itertools
import json
import pathlib
import random
import shutil
import subprocess
import sys

import pytest

tf = pytest.importorskip("tensorflow")
tf_keras = pytest.importorskip("tf_keras")
hub = pytest.importorskip("tensorflow_hub")
text = pytest.importorskip("tensorflow_text")

from bert import tokenization  # noqa: E402
from bert.exporting import hub_preprocess  # noqa: E402
from tests.kit import byte_pairs, piece_model  # noqa: E402

KEYS = ["input_word_ids", "input_mask", "input_type_ids"]
PIECES = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "d", "ef", "abc", "xy"]

# As in tests/tokenization_test.py: characters at which an implementation may slip.
TRAPS = (
  "aAeEiInx.,'-_$#[]~^ \t\n\r\0\x0b\x0c\x1c\x1f\x7f\x85\xa0\xad\u1680\u180e\u200b\u200d\u2028\u2029"
  "\u202f\u205f\u3000\ufeff\ufffd\u0301\u0323\u0307\u0903\u093c\u0902\u302e\u1b44\u1baa\U0001d165"
  "éÅ\u0130\u0131ßΣσςΆ\u1fef\u037e\u0344\u0f73\u1e9b\u0323가한\u1100\u1161\u11a8\U0001d15e\u09cb"
  "博士㐀\u4dc0\u9fff\ua000\uf900\ufb00\U00020000\U0002b820\U0002ceb0\U0002f800\u3042アﾊ\u2329"
  "१Ⅷ²½\U0001f600\ufe0f\U000e0041\U00010400\ue000\ud800\udfff\U0010ffff\ufffe«»\u2014\u166d\u1734"
)


def write_vocab(folder, tokens, newline="\n"):
  path = folder / "vocab.txt"
  path.write_text(newline.join(tokens) + newline, encoding="utf-8", newline="")
  return path


def build(folder, tokens, **kwargs):
  """Not exported, which takes seconds."""
  folder.mkdir(exist_ok=True)
  return hub_preprocess.Preprocessor(write_vocab(folder, tokens), **kwargs)


def export(folder, tokens, **kwargs):
  folder.mkdir(parents=True, exist_ok=True)
  hub_preprocess.export_preprocess(str(folder / "export"), write_vocab(folder, tokens), **kwargs)
  return str(folder / "export")


@pytest.fixture(scope="module")
def exported(tmp_path_factory):
  """A folder; its vocabulary is deleted, as it may be with users."""
  folder = tmp_path_factory.mktemp("a_telling_name")
  path = export(folder, PIECES)
  (folder / "vocab.txt").unlink()
  return path


@pytest.fixture(scope="module")
def preprocess(exported):
  return hub.load(exported)


def as_lists(ragged):
  """`ragged.to_list()`, which takes seconds for a thousand texts."""
  values = ragged.flat_values.numpy().tolist()
  for splits in reversed(ragged.nested_row_splits):
    values = [values[start:end] for start, end in itertools.pairwise(splits.numpy().tolist())]
  return values


def lists(features):
  return {key: value.numpy().tolist() for key, value in features.items()}


# ---------------------------------------------------------------------------------------------
# The contract.


@pytest.mark.ci
def test_root_call(preprocess):  # P1, P2
  features = preprocess(tf.constant(["abc d ef", "ABC D EF d"]))
  assert sorted(features) == sorted(KEYS)
  assert {(value.dtype, tuple(value.shape)) for value in features.values()} == {
    (tf.int32, (2, 128))
  }
  found = lists(features)
  assert found["input_word_ids"] == [[2, 6, 4, 5, 3] + [0] * 123, [2, 6, 4, 5, 4, 3] + [0] * 122]
  assert found["input_mask"] == [[1] * 5 + [0] * 123, [1] * 6 + [0] * 122]
  assert found["input_type_ids"] == [[0] * 128] * 2


@pytest.mark.ci
def test_tokenize(preprocess):  # P2, P3
  pieces = preprocess.tokenize(tf.constant(["abc d ef", "ABC D EF d"]))
  assert pieces.dtype == tf.int32
  assert pieces.shape.as_list() == [2, None, None]
  assert pieces.to_list() == [[[6], [4], [5]], [[6], [4], [5], [4]]]


@pytest.mark.ci
def test_tokenize_with_offsets(preprocess):  # P8
  pieces, starts, limits = preprocess.tokenize_with_offsets(tf.constant(["abc d ef", "ABC D EF d"]))
  assert [ragged.dtype for ragged in (pieces, starts, limits)] == [tf.int32, tf.int64, tf.int64]
  assert pieces.merge_dims(1, 2).to_list() == [[6, 4, 5], [6, 4, 5, 4]]
  assert starts.merge_dims(1, 2).to_list() == [[0, 4, 6], [0, 4, 6, 9]]
  assert limits.merge_dims(1, 2).to_list() == [[3, 5, 8], [3, 5, 8, 10]]


def test_cased(tmp_path):  # P2
  tokens = [*PIECES[:4], "d", "##ef", "abc", "ABC"]
  preprocess = build(tmp_path, tokens, do_lower_case=False, seq_length=10)
  assert preprocess.tokenize(tf.constant(["abc def", "ABC DEF"])).to_list() == [
    [[6], [4, 5]],
    [[7], [1]],
  ]
  found = lists(preprocess(tf.constant(["abc def", "ABC DEF"])))
  assert found["input_word_ids"] == [[2, 6, 4, 5, 3] + [0] * 5, [2, 7, 1, 3] + [0] * 6]


@pytest.mark.ci
def test_special_tokens(preprocess):  # P4: what the vocabulary lacks is left out
  special = preprocess.tokenize.get_special_tokens_dict()
  assert {(value.dtype, tuple(value.shape)) for value in special.values()} == {(tf.int32, ())}
  assert {name: int(value) for name, value in special.items()} == {
    "vocab_size": 8,
    "padding_id": 0,
    "start_of_sequence_id": 2,
    "end_of_segment_id": 3,
  }
  same = preprocess.tokenize_with_offsets.get_special_tokens_dict
  assert same is preprocess.tokenize.get_special_tokens_dict


@pytest.mark.ci
def test_special_tokens_in_a_session(exported):  # P14
  with tf.Graph().as_default():
    special = hub.load(exported).tokenize.get_special_tokens_dict()
    with tf.compat.v1.Session() as session:
      session.run(tf.compat.v1.initialize_all_tables())
      found = session.run(special)
  assert found["vocab_size"] == 8
  assert found["end_of_segment_id"] == 3


FIRST = [[[6], [4, 5]], [[6, 4], [5], [4]]]
SECOND = [[[4], [7]], [[7], [6]]]


@pytest.mark.ci
@pytest.mark.parametrize("flat", [True, False], ids=["rank 2", "rank 3"])
@pytest.mark.parametrize("length", [None, tf.constant(10)], ids=["default", "tensor"])
@pytest.mark.parametrize("segments", [[FIRST], [FIRST, SECOND]], ids=["one", "two"])
def test_packing(preprocess, segments, length, flat):  # P5, P7
  ragged = [tf.ragged.constant(segment, tf.int32) for segment in segments]
  if flat:
    ragged = [segment.merge_dims(1, 2) for segment in ragged]
  options = {} if length is None else {"seq_length": length}
  found = lists(preprocess.bert_pack_inputs(ragged, **options))
  padding = [0] * (118 if length is None else 0)
  if len(segments) == 1:
    assert found["input_word_ids"] == [
      [2, 6, 4, 5, 3, 0, 0, 0, 0, 0, *padding],
      [2, 6, 4, 5, 4, 3, 0, 0, 0, 0, *padding],
    ]
    assert found["input_type_ids"] == [[0] * 10 + padding] * 2
  else:
    assert found["input_word_ids"] == [
      [2, 6, 4, 5, 3, 4, 7, 3, 0, 0, *padding],
      [2, 6, 4, 5, 4, 3, 7, 6, 3, 0, *padding],
    ]
    assert found["input_type_ids"] == [
      [0, 0, 0, 0, 0, 1, 1, 1, 0, 0, *padding],
      [0, 0, 0, 0, 0, 0, 1, 1, 1, 0, *padding],
    ]
  filled = [sum(ids > 0 for ids in row) for row in found["input_word_ids"]]
  assert [sum(row) for row in found["input_mask"]] == filled


@pytest.mark.ci
@pytest.mark.parametrize(
  ("lengths", "seq_length", "kept"),
  [
    ((9, 9), 10, (4, 3)),
    ((9, 2), 10, (5, 2)),
    ((1, 9), 10, (1, 6)),
    ((3, 4), 10, (3, 4)),
    ((3, 4), 9, (3, 3)),
    ((9,), 10, (8,)),
    ((9,), 3, (1,)),
  ],
)
def test_what_is_too_long_is_shortened_to_fit(preprocess, lengths, seq_length, kept):  # P6
  segments = [tf.ragged.constant([[4 + i] * n], tf.int32) for i, n in enumerate(lengths)]
  found = lists(preprocess.bert_pack_inputs(segments, seq_length=seq_length))
  expected = [2]
  for i, n in enumerate(kept):
    expected += [4 + i] * n + [3]
  assert found["input_word_ids"] == [expected + [0] * (seq_length - len(expected))]


def test_padding_takes_the_id_of_the_vocabulary(tmp_path):  # P7
  with pytest.warns(tokenization.VocabularyWarning):
    preprocess = build(tmp_path, ["[UNK]", "", "[CLS]", "[SEP]", "a", "[PAD]"])
  found = lists(preprocess(tf.constant(["a"]), seq_length=6))
  assert found["input_word_ids"] == [[2, 4, 3, 5, 5, 5]]
  assert found["input_mask"] == [[1, 1, 1, 0, 0, 0]]
  assert found["input_type_ids"] == [[0] * 6]


@pytest.mark.ci
def test_no_path_leaks(exported):  # P9
  files = [path for path in pathlib.Path(exported).rglob("*") if path.is_file()]
  assert [path.name for path in files if path.parent.name == "assets"] == ["vocab.txt"]
  assert not any(b"a_telling_name" in path.read_bytes() for path in files)


@pytest.mark.ci
def test_a_loaded_model_can_be_saved_elsewhere(exported, tmp_path):  # P10
  first, second = str(tmp_path / "first"), str(tmp_path / "second")
  shutil.copytree(exported, first)
  tf.saved_model.save(hub.load(first), second)
  shutil.rmtree(first)
  preprocess = hub.load(second)
  found = lists(preprocess(tf.constant(["abc q"]), seq_length=5))
  assert found["input_word_ids"] == [[2, 6, 1, 3, 0]]
  asset = preprocess.vocab_file.asset_path.numpy().decode()
  assert asset == str(pathlib.Path(second) / "assets" / "vocab.txt")


def pair_model(preprocess, seq_length):
  """What the guides of TensorFlow Hub show."""
  inputs = [tf_keras.layers.Input(shape=(), dtype=tf.string) for _ in range(2)]
  tokenize = hub.KerasLayer(preprocess.tokenize)
  pack = hub.KerasLayer(preprocess.bert_pack_inputs, arguments=dict(seq_length=seq_length))
  return tf_keras.Model(inputs, pack([tokenize(sentences) for sentences in inputs]))


@pytest.mark.ci
def test_keras_model_survives_the_export_it_was_made_from(exported, tmp_path):  # P10, P13
  first, second = str(tmp_path / "first"), str(tmp_path / "second")
  shutil.copytree(exported, first)
  pair_model(hub.load(first), 10).save(second, save_format="tf")
  shutil.rmtree(first)
  model = tf_keras.models.load_model(second)
  found = lists(model([tf.constant(["abc d ef"]), tf.constant(["d xy"])]))
  assert found["input_word_ids"] == [[2, 6, 4, 5, 3, 4, 7, 3, 0, 0]]


@pytest.mark.ci
def test_root_as_keras_layer(exported):  # P1, P13
  sentences = tf_keras.layers.Input(shape=(), dtype=tf.string, name="sentences")
  layer = hub.KerasLayer(exported)
  model = tf_keras.Model(sentences, layer(sentences))
  assert [tuple(model.output[key].shape) for key in KEYS] == [(None, 128)] * 3
  assert not layer.trainable_weights
  assert lists(model(tf.constant(["xy"])))["input_word_ids"] == [[2, 7, 3] + [0] * 125]


@pytest.mark.ci
@pytest.mark.parametrize("batch_size", [None, 7])
def test_static_shapes(preprocess, batch_size):  # P3, P11
  @tf.function(input_signature=[tf.TensorSpec([batch_size], tf.string)], autograph=False)
  def check(sentences):
    pieces = preprocess.tokenize(sentences)
    assert pieces.shape.as_list()[0] in (None, batch_size)
    assert pieces.shape.as_list()[1:] == [None, None]
    packed = preprocess.bert_pack_inputs([pieces, pieces], seq_length=256)
    for features, length in [(packed, 256), (preprocess(sentences), 128)]:
      for value in features.values():
        assert value.shape.as_list()[0] in (None, batch_size)
        assert value.shape.as_list()[1] == length
    return packed

  assert check.get_concrete_function()


@pytest.mark.ci
def test_in_a_data_pipeline(preprocess):  # P12
  data = tf.data.Dataset.from_tensor_slices(["abc", "d ef", "xy"]).batch(2)
  batches = [lists(features) for features in data.map(lambda x: preprocess(x, seq_length=4))]
  assert batches[0]["input_word_ids"] == [[2, 6, 3, 0], [2, 4, 5, 3]]
  assert batches[1]["input_word_ids"] == [[2, 7, 3, 0]]


@pytest.mark.ci
def test_edges(preprocess):  # P15
  empty = tf.constant([], tf.string)
  assert preprocess(empty)["input_word_ids"].shape == [0, 128]
  assert preprocess.tokenize(empty).to_list() == []
  assert [ragged.to_list() for ragged in preprocess.tokenize_with_offsets(empty)] == [[], [], []]
  assert preprocess.tokenize(tf.constant(["", " ", ""])).to_list() == [[], [], []]
  offsets = preprocess.tokenize_with_offsets(tf.constant(["", " "]))
  assert [ragged.to_list() for ragged in offsets] == [[[], []]] * 3
  found = lists(preprocess(tf.constant([b"", b"\xff\xfe", b"abc \xe2\x82"]), seq_length=4))
  assert found["input_word_ids"][0] == [2, 3, 0, 0]
  assert found["input_word_ids"][2][:2] == [2, 6]


@pytest.mark.ci
def test_signature(preprocess):
  serve = preprocess.signatures["serving_default"]
  found = lists(serve(sentences=tf.constant(["abc"])))
  assert sorted(found) == sorted(KEYS)
  assert found["input_word_ids"] == [[2, 6, 3] + [0] * 125]


@pytest.mark.ci
def test_loading_needs_tensorflow_and_tensorflow_text_alone(exported, tmp_path):
  code = f"""
import sys, tensorflow as tf, tensorflow_text
preprocess = tf.saved_model.load({exported!r})
print(preprocess(tf.constant(["abc"]), seq_length=4)["input_word_ids"].numpy().tolist())
print(sorted({{"bert", "tokenization", "tensorflow_hub"}} & set(sys.modules)))
"""
  done = subprocess.run(
    [sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False
  )
  assert done.stdout == "[[2, 6, 3, 0]]\n[]\n", done.stderr[-2000:]


# ---------------------------------------------------------------------------------------------
# Equality with our tokenizer.


class Pair:
  """A `FullTokenizer` and its graph, with a vocabulary that shows each character they yield."""

  def __init__(self, vocab_file, do_lower_case):
    self.python = tokenization.load_tokenizer(vocab_file, do_lower_case)
    self.graph = hub_preprocess.Preprocessor(vocab_file, do_lower_case)

  def check(self, texts):
    """Ids, words, and where the pieces are, of texts given as bytes."""
    sentences = tf.constant(texts, tf.string)
    pieces, *offsets = self.graph.tokenize_with_offsets(sentences)
    found = as_lists(pieces)
    assert as_lists(self.graph.tokenize(sentences)) == found
    starts, limits = (as_lists(ragged.merge_dims(1, 2)) for ragged in offsets)
    for index, data in enumerate(texts):
      assert found[index] == self.ids_by_word(data), data
      assert list(zip(starts[index], limits[index], strict=True)) == self.places(data), data

  def ids_by_word(self, data):
    words = self.python.basic_tokenizer.tokenize(data)
    pieces = map(self.python.wordpiece_tokenizer.tokenize, words)
    return list(map(self.python.convert_tokens_to_ids, pieces))

  def places(self, data):
    spans = bytes_of_characters(data)
    located = self.python.tokenize_with_offsets(data)
    return [(spans[token.start][0], spans[token.end - 1][1]) for token in located]


def bytes_of_characters(data):
  """For each character of `data.decode("utf-8", "ignore")`, its first byte and the one after it."""
  invalid = set()

  def note(error):
    invalid.update(range(error.start, error.end))
    return "", error.end

  codecs.register_error("note", note)
  spans, place = [], 0
  for char in data.decode("utf-8", "note"):
    while place in invalid:
      place += 1
    spans.append((place, place + len(char.encode())))
    place = spans[-1][1]
  return spans


_SPLITTING = {
  "uncased": (True, {}),
  "cased": (False, {}),
  "accents": (True, {"strip_accents": False, "tokenize_chinese_chars": False}),
  "stripped": (False, {"strip_accents": True}),
}


@pytest.fixture(
  scope="module",
  params=["uncased", "cased", "accents", pytest.param("stripped", marks=pytest.mark.ci)],
)
def trap_pair(request, tmp_path_factory):
  """Each character that the traps become is a piece; so are a few longer ones."""
  lower, splitting = _SPLITTING[request.param]
  basic = tokenization.BasicTokenizer(lower, **splitting)
  chars = {char for trap in TRAPS for word in basic.tokenize(trap) for char in word} | set("ςσ")
  chars = sorted(char for char in chars if not 0xD800 <= ord(char) < 0xE000)
  pieces = [*chars, "ae", "é́", "aaa"]
  tokens = [*PIECES[:4], *pieces, *("##" + piece for piece in pieces)]
  folder = tmp_path_factory.mktemp("traps")
  (folder / "tokenizer_config.json").write_text(json.dumps(splitting))
  return Pair(write_vocab(folder, tokens), lower)


def random_traps(draw):
  return "".join(draw.choices(TRAPS, k=draw.randrange(40)))


def random_characters(draw):
  chars = [draw.choice(TRAPS) if draw.random() < 0.7 else chr(draw.randrange(0x110000))]
  return "".join(chars * draw.randrange(1, 3) + [chr(draw.randrange(0x3000)) for _ in range(9)])


def random_sigmas(draw):
  return "".join(draw.choices("ΣΣΣaA'.:\u0301\u00ad -博\u1b44\u2028ªⅧ\u02b0", k=draw.randrange(12)))


def random_marks(draw):
  chars = "a\u1b44\u302e\u0301\u0902\u093c\u0323\U0001d165\U0001d15eé가\xad 博."
  return "".join(draw.choices(chars, k=draw.randrange(14)))


def random_long_words(draw):
  char = draw.choice(["a", "é", "a\u0301", "한", "\U0001d15e", "博", "İ", "\U00010400"])
  count = draw.choice([66, 67, 100, 101, 199, 200, 201, 202])
  return char * count + draw.choice(["", "a", " a", ".", "\u0301"])


def random_bytes(draw):
  bounds = b"A \x00\x80\x8f\x90\x9f\xa0\xbf\xc0\xc2\xdf\xe0\xed\xef\xf0\xf4\xf5\xff"
  return bytes(draw.choice([*bounds, draw.randrange(256)]) for _ in range(draw.randrange(20)))


KINDS = [
  *[random_traps] * 4,
  *[random_characters, random_sigmas, random_marks, random_bytes] * 2,
  random_long_words,
]


def random_text(draw):
  made = draw.choice(KINDS)(draw)
  # Surrogates, which no valid UTF-8 has, become bytes that both sides have to skip.
  return made if isinstance(made, bytes) else made.encode("utf-8", "surrogatepass")


@pytest.mark.parametrize("count", [3_000, pytest.param(100_000, marks=pytest.mark.slow)])
def test_random_texts(trap_pair, count):
  draw = random.Random(count)
  while count > 0:
    texts = [random_text(draw) for _ in range(draw.choice([1, 20, 300, 1000]))]
    trap_pair.check(texts)
    count -= len(texts)


def test_known_traps(trap_pair):
  texts = ["ΑΣ", "ΑΣ.", "ΑΣ'α", "Σ", "ΑΣ 博", "ΑΣ博α", "Α\u00adΣ\u0301"]
  texts += ["한\u0301a", "博\u0301", "-\u0301a", "\u0301a", "a \u0301", "İ\u0307", "\u2028a\u0301"]
  texts += ["a\u0301\u0323é\u302e\u1b44", "\0", "\ufeffa", "##a", "[UNK]"]
  texts += ["a" * 200, "a" * 201, "\u0301" * 500 + "a", "İ" * 201 + " a"]
  trap_pair.check([text.encode() for text in texts])
  for text in texts:  # and with no other text in the batch
    trap_pair.check([text.encode()])


@pytest.mark.parametrize("do_lower_case", [True, False], ids=["uncased", "cased"])
@pytest.mark.parametrize("every", [41, pytest.param(1, marks=pytest.mark.slow)])
def test_every_code_point_alone_and_in_a_word(tmp_path, do_lower_case, every):
  """Words, for no vocabulary holds a piece for each character."""
  preprocessor = hub_preprocess.Preprocessor(write_vocab(tmp_path, PIECES), do_lower_case)
  words = tf.function(preprocessor.tokenizer.words, autograph=False)
  basic = tokenization.BasicTokenizer(do_lower_case)
  chars = [chr(code) for code in range(0, 0x110000, every) if not 0xD800 <= code < 0xE000]
  for start in range(0, len(chars), 5000):
    chunk = chars[start : start + 5000]
    texts = [form for char in chunk for form in (char, f"b{char}c")]
    found = as_lists(words(tf.constant(texts)))
    for text_, tokens in zip(texts, found, strict=True):
      assert [token.decode() for token in tokens] == basic.tokenize(text_), ascii(text_)


@pytest.mark.parametrize("case", ["uncased", "cased"])
def test_tokens_are_the_originals(golden_dir, data_dir, case):
  pair = Pair(data_dir / "vocab" / "uncased_vocab.txt", case == "uncased")
  records = list(map(json.loads, (golden_dir / "tokenization.jsonl").read_text().splitlines()))
  texts = [record["text"].encode("utf-8", "surrogatepass") for record in records]
  assert len(texts) == 5920
  found = as_lists(pair.graph.tokenize(tf.constant(texts)).merge_dims(1, 2))
  assert found == [pair.python.convert_tokens_to_ids(record[case]) for record in records]
  pair.check(texts)


# ---------------------------------------------------------------------------------------------
# Vocabularies.


def test_vocabulary_file_of_windows_with_blanks_and_repetitions(tmp_path):
  tokens = ["[PAD]", "[UNK] ", "[CLS]", "", "[SEP]", "a", "\u2028b", "a", "##a", "", "c d"]
  vocab_file = write_vocab(tmp_path, tokens, newline="\r\n")
  with pytest.warns(tokenization.VocabularyWarning):
    pair = Pair(vocab_file, do_lower_case=True)
  pair.check([b"a", b"aa a", b"b", b"c d", b"[line 4]"])
  assert pair.graph.tokenize(tf.constant(["aa"])).to_list() == [[[7, 8]]]
  assert int(pair.graph.tokenize.get_special_tokens_dict()["vocab_size"]) == 11
  asset = pathlib.Path(pair.graph.vocab_file.asset_path.numpy().decode())
  assert asset.name == "vocab.txt"
  assert len(asset.read_text(encoding="utf-8").split("\n")) == 12
  del pair
  assert not asset.exists()  # the rewritten copy goes with its object


@pytest.mark.ci
def test_plain_vocabulary_is_the_asset_byte_for_byte(tmp_path):
  vocab_file = write_vocab(tmp_path, PIECES)
  hub_preprocess.export_preprocess(str(tmp_path / "export"), vocab_file)
  asset = tmp_path / "export" / "assets" / "vocab.txt"
  assert asset.read_bytes() == vocab_file.read_bytes()


@pytest.mark.parametrize("missing", ["[UNK]", "[CLS]", "[SEP]"])
@pytest.mark.filterwarnings("ignore::tokenization.VocabularyWarning")
def test_vocabulary_without_needed_tokens(tmp_path, missing):
  tokens = [token for token in PIECES if token != missing]
  with pytest.raises(tokenization.VocabularyError, match=r"vocab\.txt lacks .*" + missing[1:4]):
    hub_preprocess.Preprocessor(write_vocab(tmp_path, tokens))


def test_length_without_room(tmp_path):
  with pytest.raises(ValueError, match="seq_length is 2"):
    hub_preprocess.Preprocessor(write_vocab(tmp_path, PIECES), seq_length=2)


@pytest.mark.parametrize("write", [piece_model.write, byte_pairs.write])
def test_other_vocabularies_have_no_graph(write, tmp_path):
  vocab_file = str(write(tmp_path))
  with pytest.raises(tokenization.VocabularyError, match="is not a WordPiece vocabulary"):
    hub_preprocess.Preprocessor(vocab_file)
