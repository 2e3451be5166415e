"""Tests of bert/tasks/windows.py and of `run_classifier.py --long_text=windows`.

Alone: python -m pytest tests/tasks/windows_test.py (about a minute, most of it compiling graphs)
"""

import functools
import json
import pathlib
import shutil
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from bert import modeling, run_classifier, tokenization
from bert.exporting import hub_preprocess
from bert.io import record_files
from bert.model import heads
from bert.model.variables import VariableStore, get_variable, use_store
from bert.tasks import windows as long_text
from bert.tasks.classification import InputExample, PaddingInputExample, convert_single_example
from bert.tasks.windows import WindowOptions, WindowReader
from tests.kit.script_runs import Done, Script, results_in

LETTERS = "abcdefghijklmnopqrstuvwxyz"
VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *LETTERS, "good", "bad"]
CLS, SEP, A = VOCAB.index("[CLS]"), VOCAB.index("[SEP]"), VOCAB.index("a")
CONFIG = {
  "vocab_size": len(VOCAB),
  "hidden_size": 16,
  "num_hidden_layers": 1,
  "num_attention_heads": 2,
  "intermediate_size": 16,
  "max_position_embeddings": 16,
  "initializer_range": 0.5,  # so that logits differ
  "hidden_dropout_prob": 0.1,
  "attention_probs_dropout_prob": 0.1,
}


@pytest.fixture(scope="module")
def model_files(tmp_path_factory) -> pathlib.Path:
  folder = tmp_path_factory.mktemp("model")
  (folder / "vocab.txt").write_text("\n".join(VOCAB) + "\n")
  (folder / "bert_config.json").write_text(json.dumps(CONFIG))
  return folder


@pytest.fixture(scope="module")
def tokenizer(model_files):
  return tokenization.FullTokenizer(str(model_files / "vocab.txt"))


def words(count: int, first: int = 0) -> str:
  """Words of a piece each, from the letter with that number on."""
  return " ".join(LETTERS[(first + i) % 26] for i in range(count))


def windows_of(tokenizer, text_a, text_b=None, length=8, stride=3, max_windows=4):
  """The first window's features, and what `windows_of` makes of the example."""
  reader = WindowReader(tokenizer, WindowOptions(stride, max_windows))
  example = InputExample("x", text_a, text_b, "0")
  first = convert_single_example(9, example, ["0"], length, reader)
  return first, reader.windows_of(example, first), reader


def letters_of(rows) -> list[str]:
  """Windows as text: `.` for padding, `|` for [SEP], without [CLS]."""
  shown = {0: ".", SEP: "|"}
  assert all(row[0] == CLS for row in rows)
  return ["".join(shown.get(i, VOCAB[i][0]) for i in row[1:]) for row in rows.tolist()]


# ---------------------------------------------------------------------------------------------
# Windows of a document.


def test_a_text_in_windows(tokenizer):
  first, found, _ = windows_of(tokenizer, words(13))
  assert found["num_windows"] == 4
  # The last one begins at h and not at j, so as to be full.
  assert letters_of(found["input_ids"]) == ["abcdef|", "defghi|", "ghijkl|", "hijklm|"]
  assert first.input_mask == [1] * 8
  assert first.segment_ids == [0] * 8


def test_the_end_of_a_very_long_text_is_not_read(tokenizer):
  _, found, reader = windows_of(tokenizer, words(16), max_windows=3)
  assert letters_of(found["input_ids"]) == ["abcdef|", "defghi|", "ghijkl|"]
  assert reader._counts["cut"] == 1
  _, _, reader = windows_of(tokenizer, words(12), max_windows=3)
  assert reader._counts["cut"] == 0


def test_a_stride_longer_than_a_window_skips_nothing(tokenizer):
  _, found, _ = windows_of(tokenizer, words(18), stride=50)
  assert letters_of(found["input_ids"][:3]) == ["abcdef|", "ghijkl|", "mnopqr|"]
  assert found["num_windows"] == 3


def test_of_a_pair_the_longer_text_is_shown_in_windows(tokenizer):
  first, found, _ = windows_of(tokenizer, "x y", words(8), length=9, stride=2)
  assert letters_of(found["input_ids"][:3]) == ["xy|abcd|", "xy|cdef|", "xy|efgh|"]
  assert found["num_windows"] == 3
  assert first.segment_ids == [0, 0, 0, 0, 1, 1, 1, 1, 1]

  first, found, _ = windows_of(tokenizer, words(8), "x y", length=9, stride=2)
  assert letters_of(found["input_ids"][:3]) == ["abcd|xy|", "cdef|xy|", "efgh|xy|"]
  assert first.segment_ids == [0, 0, 0, 0, 0, 0, 1, 1, 1]


def test_of_two_long_texts_the_shorter_one_is_cut(tokenizer):
  _, found, reader = windows_of(tokenizer, words(5), words(7, 10), length=9, stride=3)
  assert letters_of(found["input_ids"][:3]) == ["abc|klm|", "abc|nop|", "abc|opq|"]
  assert found["num_windows"] == 3
  assert reader._counts["other cut"] == 1
  assert reader._counts["cut"] == 0


@pytest.mark.parametrize(
  ("text_a", "text_b"),
  [(words(3), None), (words(6), None), (words(2), words(3)), ("", None), ("", words(2)), ("a", "")],
)
def test_a_document_that_fits_has_the_features_of_today(tokenizer, text_a, text_b):
  first, found, reader = windows_of(tokenizer, text_a, text_b)
  plain = convert_single_example(9, InputExample("x", text_a, text_b, "0"), ["0"], 8, tokenizer)
  assert vars(first) == vars(plain)
  assert found["num_windows"] == 1
  np.testing.assert_array_equal(found["input_ids"], [plain.input_ids, *[[0] * 8] * 3])
  assert reader._counts["cut"] == reader._counts["other cut"] == 0


def random_pairs(count: int):
  rng = np.random.default_rng(4)
  for _ in range(count):
    length_a, length_b = rng.integers(0, 30, 2)
    yield words(length_a), words(length_b, 7) if rng.random() < 0.7 else None


def test_properties_of_all_windows(tokenizer):
  """The first is what truncation reads; each has the same mask; together they show every piece."""
  for text_a, text_b in random_pairs(200):
    example = InputExample("x", text_a, text_b, "0")
    plain = convert_single_example(9, example, ["0"], 10, tokenizer)
    first, found, reader = windows_of(tokenizer, text_a, text_b, 10, 4, max_windows=30)
    assert vars(first) == vars(plain)
    rows = found["input_ids"][: found["num_windows"]]
    assert rows[0].tolist() == plain.input_ids
    assert not found["input_ids"][found["num_windows"] :].any()
    assert ((rows > 0) == plain.input_mask).all()
    assert ((rows == SEP) == (rows[0] == SEP)).all()
    longer = max(text_a.split(), (text_b or "").split(), key=len)
    seen = {VOCAB[i] for i in np.unique(rows)}
    assert seen >= set(longer)
    assert reader._counts["cut"] == 0


def test_each_text_is_tokenized_once(tokenizer):
  class Counting:
    convert_tokens_to_ids = tokenizer.convert_tokens_to_ids

    def tokenize(self, text):
      tokenized.append(text)
      return tokenizer.tokenize(text)

  tokenized = []
  windows_of(Counting(), words(20), "x")
  assert tokenized == [words(20), "x"]


def test_an_example_that_fills_a_batch_has_one_window(tokenizer):
  reader = WindowReader(tokenizer, WindowOptions(3, 4))
  first = convert_single_example(0, PaddingInputExample(), ["0"], 8, reader)
  found = reader.windows_of(PaddingInputExample(), first)
  assert found["num_windows"] == 1
  assert not found["input_ids"].any()


# ---------------------------------------------------------------------------------------------
# Records and batches.


@pytest.fixture
def record_file(tokenizer, tmp_path):
  """Documents of 1, 3 and 2 windows of 6 pieces."""
  texts = [words(4), words(12), words(8)]
  examples = [InputExample(str(i), text, None, str(i % 2)) for i, text in enumerate(texts)]
  path = str(tmp_path / "long.tf_record")
  run_classifier.file_based_convert_examples_to_features(
    examples, ["0", "1"], 8, tokenizer, path, windows=WindowOptions(3, 5)
  )
  return path


def batches(path, batch_size, pad=False):
  input_fn = run_classifier.file_based_input_fn_builder(
    path, 8, False, False, pad_to_max_length=pad, windows=WindowOptions(3, 5)
  )
  return list(input_fn({"batch_size": batch_size}))


def test_a_batch_is_as_wide_as_its_longest_document(record_file):
  shapes = [tuple(batch["input_ids"].shape) for batch in batches(record_file, 1)]
  assert shapes == [(1, 8, 1), (1, 8, 3), (1, 8, 2)]
  (batch,) = batches(record_file, 3, pad=True)
  assert batch["input_ids"].shape == (3, 8, 5)
  assert batch["num_windows"].numpy().tolist() == [1, 3, 2]
  assert batch["input_mask"].shape == batch["segment_ids"].shape == (3, 8)


def test_batches_are_cut_to_the_longest_window(tokenizer, tmp_path):
  path, windows = str(tmp_path / "short.tf_record"), WindowOptions(3, 5)
  examples = [InputExample("0", words(4), None, "0"), InputExample("1", words(20), None, "0")]
  run_classifier.file_based_convert_examples_to_features(
    examples, ["0"], 16, tokenizer, path, windows=windows
  )
  input_fn = run_classifier.file_based_input_fn_builder(path, 16, False, False, windows=windows)
  shapes = [tuple(batch["input_ids"].shape) for batch in input_fn({"batch_size": 1})]
  assert shapes == [(1, 8, 1), (1, 16, 3)]


def test_records_without_windows_are_refused(tokenizer, tmp_path):
  path, example = str(tmp_path / "plain.tf_record"), InputExample("0", "a", None, "0")
  run_classifier.file_based_convert_examples_to_features([example], ["0"], 8, tokenizer, path)
  with pytest.raises(record_files.RecordError, match=r"plain.tf_record, record 1: "):
    batches(path, 1)


# ---------------------------------------------------------------------------------------------
# The model.


@pytest.fixture(scope="module")
def logits_of():
  """`logits_of(batch, pooling, is_tpu)` of one model with random weights, float32 `[B, 3]`."""
  store = VariableStore(7)
  weights = np.random.default_rng(7).normal(size=[3, CONFIG["hidden_size"]])
  with use_store(store):  # in their usual size all logits would be near 0
    get_variable("output_weights", weights.shape, lambda shape, **_: tf.cast(weights, tf.float32))

  def compute(batch, pooling="mean", is_tpu=False):
    names = ("input_ids", "input_mask", "segment_ids")
    inputs = [tf.constant(batch[name]) for name in names]
    options = {}
    if "num_windows" in batch:
      options = dict(num_windows=tf.constant(batch["num_windows"]), window_pooling=pooling)
    with use_store(store):
      return run_classifier.create_model(
        modeling.BertConfig.from_dict(CONFIG),
        False,
        *inputs,
        tf.zeros([len(inputs[0])], tf.int32),
        3,
        is_tpu,
        **options,
      )[2].numpy()

  return compute


def window(batch, document, index):
  """One window as a batch of its own."""
  return {
    "input_ids": batch["input_ids"][document : document + 1, :, index],
    "input_mask": batch["input_mask"][document : document + 1],
    "segment_ids": batch["segment_ids"][document : document + 1],
  }


@pytest.mark.parametrize(("pooling", "pool"), [("mean", np.mean), ("max", np.max)])
def test_logits_of_a_document_are_those_of_its_windows_pooled(
  record_file, logits_of, pooling, pool
):
  (batch,) = batches(record_file, 3)
  expected = []
  for document, count in enumerate(batch["num_windows"].numpy()):
    rows = [logits_of(window(batch, document, i))[0] for i in range(count)]
    expected.append(pool(rows, axis=0))
  assert np.ptp(expected, axis=0).min() > 1e-2, "logits that are all alike would prove nothing"
  found = logits_of(batch, pooling)
  np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
  assert np.abs(found[1:] - [logits_of(window(batch, i, 0))[0] for i in (1, 2)]).max() > 1e-2


@pytest.mark.parametrize("pooling", long_text.POOLINGS)
def test_one_window_is_plain_truncation(record_file, logits_of, pooling):
  batch = batches(record_file, 1)[0]
  np.testing.assert_array_equal(logits_of(batch, pooling), logits_of(window(batch, 0, 0)))


@pytest.mark.parametrize("is_tpu", [False, True])
@pytest.mark.parametrize("pooling", long_text.POOLINGS)
def test_windows_that_only_fill_up_change_nothing(record_file, logits_of, pooling, is_tpu):
  (batch,) = batches(record_file, 3)
  expected = logits_of(batch, pooling)
  (padded,) = batches(record_file, 3, pad=True)
  np.testing.assert_allclose(logits_of(padded, pooling, is_tpu), expected, rtol=0, atol=1e-5)

  is_window = np.arange(5) < padded["num_windows"].numpy()[:, np.newaxis, np.newaxis]
  garbage = np.random.default_rng(3).integers(0, len(VOCAB), padded["input_ids"].shape)
  ids = np.where(is_window, padded["input_ids"], garbage).astype(np.int32)
  found = logits_of({**padded, "input_ids": ids}, pooling, is_tpu)
  np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


# ---------------------------------------------------------------------------------------------
# Whole runs. Documents of 12 to 16 pieces; a window shows 6 of them, and the first 6 tell nothing.

SIZES = {"train": 24, "dev": 8, "test": 6}


def document(index: int) -> tuple[int, str]:
  label = index % 2
  return label, words(6, index % 3) + (" good" if label else " bad") * (6 + index % 5)


script = Script(run_classifier)


class Trained(NamedTuple):
  flags: dict
  out: pathlib.Path
  done: Done


@pytest.fixture(scope="module", autouse=True)
def one_tokenizer():
  """That of the exports: its tables take seconds to build, once is enough."""
  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(hub_preprocess, "Preprocessor", functools.cache(hub_preprocess.Preprocessor))
    yield


@pytest.fixture(scope="module")
def trained(model_files, tmp_path_factory) -> Trained:
  """A run that trains, evaluates, predicts and exports. Tests only read its folder."""
  data, out = tmp_path_factory.mktemp("data"), tmp_path_factory.mktemp("out") / "windows"
  for split, size in SIZES.items():
    rows = [("label", "text_a"), *(document(i) for i in range(size))]
    (data / f"{split}.tsv").write_text("".join("\t".join(map(str, row)) + "\n" for row in rows))
  values = {
    "task_name": "csv",
    "data_dir": data,
    "vocab_file": model_files / "vocab.txt",
    "bert_config_file": model_files / "bert_config.json",
    "output_dir": out,
    "max_seq_length": 8,
    "long_text": "windows",
    "train_batch_size": 8,
    "learning_rate": 0.01,
    "num_train_epochs": 4.0,
  }
  done = script.run_well(**values, do_train=True, do_eval=True, do_predict=True, do_export=True)
  return Trained(values, out, done)


def test_what_lies_behind_the_first_window_is_learned(trained):
  results = results_in(trained.out / "eval_results.txt")
  assert results["eval_accuracy"] == 1.0
  assert results["eval_loss"] < 0.3
  assert "24 of 24 examples need several windows; there are" in trained.done.err
  assert "their ends are not read" not in trained.done.err


def test_truncation_does_not_learn_it(trained, tmp_path):
  values = {**trained.flags, "long_text": "truncate", "output_dir": tmp_path}
  script.run_well(**values, do_train=True, do_eval=True)
  assert results_in(tmp_path / "eval_results.txt")["eval_loss"] > 0.5


def test_a_document_has_one_line(trained):
  for name, lines in (("test_results.tsv", 6), ("predictions.tsv", 7)):
    assert len((trained.out / name).read_text().splitlines()) == lines
  assert len(list(record_files.records_of(trained.out / "train.tf_record"))) == SIZES["train"]


def test_the_exported_model_reads_windows_too(trained):
  model = tf.saved_model.load(str(trained.out / "export" / "task"))
  texts = [document(i)[1] for i in range(SIZES["test"])]
  expected = np.loadtxt(trained.out / "test_results.tsv")
  found = model(tf.constant(texts))["probabilities"]
  np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
  assert model(tf.constant([], tf.string))["probabilities"].shape == [0, 2]
  beginnings = [" ".join(text.split(" ")[:6]) for text in texts]
  other = model(tf.constant(beginnings))
  assert np.abs(other["probabilities"] - expected).max() > 0.1, "the rest tells"


def test_the_cap_is_told_and_may_differ_in_prediction(trained, tmp_path):
  shutil.copytree(trained.out, tmp_path / "out")
  values = {**trained.flags, "output_dir": tmp_path / "out", "max_windows": 2}
  err = script.run_well(**values, do_predict=True).err
  assert "6 of 6 examples are longer than --max_windows=2 windows" in err
  expected = np.loadtxt(trained.out / "test_results.tsv")
  assert np.abs(np.loadtxt(tmp_path / "out" / "test_results.tsv") - expected).max() > 1e-3


@pytest.mark.parametrize(
  ("change", "mode", "told"),
  [
    ({"long_text": "truncate"}, "do_eval", "long_text was 'windows', now 'truncate'"),
    ({"window_pooling": "max"}, "do_eval", "window_pooling was 'mean', now 'max'"),
    ({"window_stride": 2}, "do_train", "window_stride was 3, now 2"),
    ({"max_windows": 4}, "do_train", "max_windows was 8, now 4"),
  ],
)
def test_a_run_with_other_windows_is_refused(trained, change, mode, told):
  message = script.error_of(**{**trained.flags, **change}, **{mode: True})
  assert f"was trained with other settings than this run: {told}." in message


@pytest.mark.parametrize(
  ("change", "told"),
  [
    ({"window_stride": 0}, "--window_stride=0: must be at least 1"),
    ({"max_windows": 0}, "--max_windows=0: must be at least 1"),
    ({"max_seq_length": 4}, "--max_seq_length=4: must be at least 5 with --long_text=windows"),
    ({"window_pooling": "sum"}, 'takes one of mean, max, not "sum"'),
  ],
)
def test_a_bad_flag_is_told(trained, tmp_path, change, told):
  values = {**trained.flags, **change, "output_dir": tmp_path / "out"}
  assert told in script.error_of(**values, do_train=True)
  assert not (tmp_path / "out").exists()


def test_a_flag_without_effect_is_told(trained, tmp_path):
  values = {**trained.flags, "long_text": "truncate", "window_stride": 3}
  err = script.run_well(**{**values, "output_dir": tmp_path / "out"}, do_predict=True).err
  assert "Flag --window_stride has no effect: it is for --long_text=windows." in err
  assert "--max_windows" not in err


def test_parts_of_a_batch_make_the_whole(trained, tmp_path, monkeypatch):
  """Gradient accumulation splits a batch between documents and not between windows."""
  monkeypatch.setattr(heads, "dropout", lambda x, rate: x)
  no_dropout = {**CONFIG, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
  (tmp_path / "config.json").write_text(json.dumps(no_dropout))
  values = {**trained.flags, "init_checkpoint": trained.out / "model.ckpt-0"}
  values.update(bert_config_file=tmp_path / "config.json", num_train_epochs=0.34)
  gradients = []  # of one step, a tenth of them: Adam's own step would be that of signs
  for parts in (1, 2):
    values.update(output_dir=tmp_path / str(parts), gradient_accumulation_steps=parts)
    script.run_well(**values, do_train=True)
    name = "bert/pooler/dense/kernel/adam_m"
    gradients.append(tf.train.load_variable(str(tmp_path / str(parts)), name))
  assert np.abs(gradients[0]).max() > 1e-4
  np.testing.assert_allclose(*gradients, rtol=0, atol=1e-6)


# ---------------------------------------------------------------------------------------------
# The graph of exports against Python.


@pytest.mark.parametrize(("stride", "max_windows"), [(4, 30), (3, 2), (9, 3)])
def test_windows_of_the_graph_are_those_of_python(tokenizer, stride, max_windows):
  pairs = list(random_pairs(60))
  rows, documents = [], []
  for number, (text_a, text_b) in enumerate(pairs):
    first, found, _ = windows_of(tokenizer, text_a, text_b, 10, stride, max_windows)
    rows += [
      (ids.tolist(), first.input_mask, first.segment_ids)
      for ids in found["input_ids"][: found["num_windows"]]
    ]
    documents += [number] * found["num_windows"]

  pieces = [
    tf.ragged.constant(
      [tokenizer.convert_tokens_to_ids(tokenizer.tokenize(pair[i] or "")) for pair in pairs],
      tf.int32,
      row_splits_dtype=tf.int64,
    )
    for i in (0, 1)
  ]
  options = WindowOptions(stride, max_windows)
  inputs, found_documents = long_text.pack_windows(*pieces, CLS, SEP, 10, options)
  assert found_documents.numpy().tolist() == documents
  names = ("input_word_ids", "input_mask", "input_type_ids")
  found = zip(*(inputs[name].numpy().tolist() for name in names), strict=True)
  assert list(found) == rows
