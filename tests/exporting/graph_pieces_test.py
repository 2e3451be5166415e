"""ALBERT's tokenizer in graphs: the ids and offsets of the one in Python."""

import itertools
import json
import random
import shutil

import numpy as np
import pytest
import tensorflow as tf

from bert.checkpoints import finding, loading, model_files
from bert.exporting import graph_pieces, graph_text, hub_preprocess
from bert.exporting.sentence_model import SentenceModel
from bert.model import heads
from bert.model.variables import VariableStore, use_store
from bert.modeling import BertConfig, BertModel
from bert.tasks.classification import InputExample, convert_single_example
from bert.text.sentence_pieces import SentencePieceTokenizer
from bert.text.vocabulary_file import VocabularyError
from tests.kit import exports, piece_model
from tests.kit.recorded_pieces import recorded_pieces
from tests.kit.script_runs import run_elsewhere
from tests.kit.tokenizer_definition import TRAPS


def tokenizer_of(golden_dir, name, do_lower_case=True, **settings):
  path = golden_dir / "albert" / f"{name}_spm.model"
  return SentencePieceTokenizer(path, do_lower_case, **settings)


def as_lists(ragged):
  """[B, 1, (pieces)] to a list for each text."""
  values = ragged.flat_values.numpy().tolist()
  splits = ragged.values.row_splits.numpy().tolist()
  return [values[start:end] for start, end in itertools.pairwise(splits)]


def spans_in_bytes(tokenizer, text):
  places = np.cumsum([0, *(len(char.encode()) for char in text)]).tolist()
  return [(places[t.start], places[t.end]) for t in tokenizer.tokenize_with_offsets(text)]


def check(tokenizer, texts, expected=None, graph=None):
  graph = graph or graph_pieces.PieceTokenizer(tokenizer)
  ids = as_lists(graph.tokenize(tf.constant(texts)))
  assert ids == (expected or tokenizer.texts_to_ids(texts))
  again, starts, limits = map(as_lists, graph.tokenize_with_offsets(tf.constant(texts)))
  assert again == ids
  for text, first, last in zip(texts, starts, limits, strict=True):
    assert list(zip(first, last, strict=True)) == spans_in_bytes(tokenizer, text), text


def test_ids_and_offsets_are_those_of_the_tokenizer(tmp_path):
  texts = [
    *("", " ", "the", "  The film \t of the\u00a0game.", "2008, 1,028,", "8,8,", "[CLS] 1"),
    *("Ὀδυσσεύς ΣΑΣ ΑΣ", "\u1de2 e\u0301\u0301 \u0301a", "ﷺ…½ ﬁlm", "한글 \0 博士"),
  ]
  check(SentencePieceTokenizer(piece_model.write(tmp_path)), texts)


@pytest.mark.ci
@pytest.mark.parametrize("name", ["tiny", "commas"])
@pytest.mark.parametrize(("case", "do_lower_case"), [("lower", True), ("cased", False)])
def test_all_recorded_texts(golden_dir, name, case, do_lower_case):
  cases = recorded_pieces(golden_dir, name)
  expected = [case_.get(f"ids_{case}", case_["ids"]) for case_ in cases]
  check(tokenizer_of(golden_dir, name, do_lower_case), [c["text"] for c in cases], expected)


@pytest.mark.ci
def test_numbers_as_they_were_meant(golden_dir):
  texts = [case["text"] for case in recorded_pieces(golden_dir, "commas")]
  check(tokenizer_of(golden_dir, "commas", intended_numbers=True), texts)


@pytest.mark.ci
@pytest.mark.parametrize("do_lower_case", [True, False])
def test_any_text(golden_dir, do_lower_case):
  rng = random.Random(1)
  known = [char for char in TRAPS if not "\ud800" <= char <= "\udfff"]

  def any_char():
    code = rng.randrange(0x110000)
    return rng.choice(known) if rng.random() < 0.7 or 0xD800 <= code < 0xE000 else chr(code)

  texts = ["".join(any_char() for _ in range(rng.randrange(40))) for _ in range(3000)]
  check(tokenizer_of(golden_dir, "tiny", do_lower_case), texts)


@pytest.mark.ci
def test_invalid_bytes_are_skipped(golden_dir):
  tokenizer = tokenizer_of(golden_dir, "tiny")
  texts = [b"the \xff of", b"\xed\xa0\x80the", b"the\xe2\x96"]
  ids = as_lists(graph_pieces.PieceTokenizer(tokenizer).tokenize(tf.constant(texts)))
  assert ids == tokenizer.texts_to_ids(texts)


def test_a_model_without_a_comma_is_refused(tmp_path):
  tokenizer = SentencePieceTokenizer(piece_model.write(tmp_path))
  del tokenizer.vocab[","]
  with pytest.raises(VocabularyError, match=r"spiece\.model has no piece for a comma"):
    graph_pieces.PieceTokenizer(tokenizer)


# ---------------------------------------------------------------------------------------------
# In exports.


@pytest.mark.ci
def test_pairs_are_cut_as_in_training(golden_dir):
  tokenizer = tokenizer_of(golden_dir, "tiny")
  cases = [case["text"] for case in recorded_pieces(golden_dir, "tiny")[:200]]
  texts, pairs = cases[::2], cases[1::2]
  graph = graph_pieces.PieceTokenizer(tokenizer)
  pieces = (graph.tokenize(tf.constant(each)).merge_dims(1, 2) for each in (texts, pairs))
  for length in (4, 17, 64):
    packed = graph_text.pack(*pieces, graph_text.Frame(2, 3), length)
    expected = tokenizer.encode_batch(texts, pairs, length, pad_to_longest=True)
    for ours, name in zip(packed.values(), ("input_ids", "input_mask", "segment_ids"), strict=True):
      np.testing.assert_array_equal(ours, expected[name])
    pieces = (graph.tokenize(tf.constant(each)).merge_dims(1, 2) for each in (texts, pairs))


@pytest.mark.slow
def test_a_preprocess_model_elsewhere(golden_dir, tmp_path):
  """Its model file is inside; it is saved once more, as part of a user's own model."""
  path = tmp_path / "30k-clean.model"
  shutil.copy(golden_dir / "albert" / "commas_spm.model", path)
  hub_preprocess.export_preprocess(str(tmp_path / "export"), path, seq_length=16)
  path.unlink()
  assert model_files.find(tmp_path / "export").vocabulary.endswith("assets/30k-clean.model")
  shutil.move(tmp_path / "export", tmp_path / "moved")
  loaded = tf.saved_model.load(str(tmp_path / "moved"))
  tf.saved_model.save(loaded, str(tmp_path / "again"))
  shutil.rmtree(tmp_path / "moved")
  again = tf.saved_model.load(str(tmp_path / "again"))
  text = "The 2008, of"
  tokenizer = tokenizer_of(golden_dir, "commas")
  expected = tokenizer.encode_batch([text], None, 16)
  features = again([text])
  assert features["input_word_ids"].numpy().tolist() == expected["input_ids"].tolist()
  assert features["input_mask"].numpy().tolist() == expected["input_mask"].tolist()
  special = {name: int(i) for name, i in again.tokenize.get_special_tokens_dict().items()}
  assert special == {
    "vocab_size": 400,
    "padding_id": 0,
    "start_of_sequence_id": 2,
    "end_of_segment_id": 3,
    "mask_id": 4,
  }


def test_it_has_one_tokenizer_alone(tmp_path):
  path = piece_model.write(tmp_path)
  with pytest.raises(ValueError, match="--tf_text_tokenizer means nothing"):
    hub_preprocess.Preprocessor(path, tf_text_tokenizer=True)


@pytest.mark.slow
def test_texts_to_probabilities_in_another_process(golden_dir, tmp_path):
  albert = golden_dir / "albert"
  config = BertConfig.from_dict(
    {**json.loads((albert / "config_A.json").read_text()), "model_type": "albert"}
  )
  tokenizer = tokenizer_of(golden_dir, "tiny")
  texts = [case["text"] for case in recorded_pieces(golden_dir, "tiny")[:24]]
  examples = [InputExample("x", a, b, "0") for a, b in zip(texts[::2], texts[1::2], strict=True)]
  features = [convert_single_example(9, e, ["0", "1"], 32, tokenizer) for e in examples]
  names = ("input_ids", "input_mask", "segment_ids")
  inputs = [tf.constant([getattr(f, name) for f in features]) for name in names]
  with use_store(VariableStore(seed=3)) as store:

    def forward():
      model = BertModel(config, False, *inputs, only_pooled_output=True)
      return tf.nn.softmax(heads.get_classifier_logits(model.get_pooled_output(), 2, False))

    forward()
    encoder = {n: v for n, v in store.variables.items() if n.startswith("bert/")}
    loading.restore(finding.find_checkpoint(str(albert / "model_A.ckpt")), encoder)
    expected = forward().numpy()
  trained = exports.write_model(tmp_path / "trained", config, ["[UNK]"], store.variables)
  model = SentenceModel(config, str(albert / "tiny_spm.model"), True, 32, ["0", "1"])
  model.export(str(tmp_path / "task"), trained)
  code = (
    "import json, sys, tensorflow as tf, tensorflow_text\n"
    "model, texts = tf.saved_model.load(sys.argv[1]), json.loads(sys.argv[2])\n"
    "found = model(tf.constant(texts[::2]), tf.constant(texts[1::2]))\n"
    "print(json.dumps(found['probabilities'].numpy().tolist()))"
  )
  found = run_elsewhere(code, str(tmp_path / "task"), json.dumps(texts), cwd=tmp_path)
  np.testing.assert_allclose(json.loads(found), expected, atol=1e-5)
