"""extract_features.py: equal to the original's output, in two formats, pooled, similarities.

Alone: python -m pytest tests/extract_features_test.py (about half a minute)
"""

import functools
import json
import os
import subprocess
import sys
import zipfile

import numpy as np
import pytest
import tensorflow as tf
from hypothesis import given, settings
from hypothesis import strategies as st

from bert import extract_features, tokenization
from bert.checkpoints import finding
from bert.exporting import hub_encoder
from bert.model.configuration import BertConfig
from bert.model.variables import VariableStore, use_store
from bert.modeling import BertModel
from bert.predicting import sentence_vectors
from bert.predicting.predictor import Predictor
from bert.predicting.vector_files import WRITERS, format_rows
from bert.scripts import flag_groups
from bert.training import estimator
from tests.kit import exports
from tests.kit.filters import run_filter
from tests.kit.paths import ROOT
from tests.kit.script_runs import check_help, json_lines

WORDS = ["the", "cat", "sat", "on", "mat", "##s", ".", "|", "ä"]
VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *WORDS]
CONFIG = exports.config(len(VOCAB), num_hidden_layers=4)
LINES = [
  "The cat sat on the mats.",
  "the cat ||| on the mat",
  "",
  "dogs",
  "the " * 40,
  "cat ||| " + "mat " * 40,
  "a ||| b ||| c",
  "the cat |||",
]


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> dict:
  """The flags of a tiny model."""
  folder = tmp_path_factory.mktemp("model")
  with use_store(VariableStore(seed=3)) as store:
    BertModel(CONFIG, False, tf.zeros([1, 1], tf.int32))
  exports.write_model(folder, CONFIG, VOCAB, store.variables)
  (folder / "in.txt").write_text("\n".join(LINES) + "\n", encoding="utf-8")
  return {
    "init_checkpoint": folder,
    "input_file": folder / "in.txt",
    "max_seq_length": 16,
    "batch_size": 3,
  }


run = functools.partial(run_filter, extract_features)


def run_well(**values) -> str:
  code, out, err = run(**values)
  assert code is None, err
  return out


def error_of(**values) -> str:
  code, out, err = run(**values)
  assert (code, out) == (1, "")
  assert "Traceback" not in err
  return err[err.index("ERROR: ") :]


@pytest.fixture(scope="module")
def original_way(model, tmp_path_factory) -> list[dict]:
  """The lines of a run with nothing but the original's flags."""
  path = tmp_path_factory.mktemp("out") / "out.jsonl"
  run_well(**model, output_file=path, layers="-1,0")
  return json_lines(path)


# ---------------------------------------------------------------------------------------------
# As the original.


def test_output_equals_the_originals(golden_dir, data_dir, tmp_path):
  run_well(
    input_file=golden_dir / "extract_features" / "input.txt",
    output_file=tmp_path / "out.jsonl",
    vocab_file=data_dir / "vocab" / "uncased_vocab.txt",
    bert_config_file=golden_dir / "tiny" / "bert_config.json",
    init_checkpoint=golden_dir / "tiny" / "bert_model.ckpt",
    layers="-1,-2",
    max_seq_length=24,
    batch_size=2,
  )
  lines = json_lines(tmp_path / "out.jsonl")
  expected = json_lines(golden_dir / "extract_features" / "output.jsonl")
  assert list(map(without_values, lines)) == list(map(without_values, expected))
  np.testing.assert_allclose(values_of(lines), values_of(expected), rtol=0, atol=1e-5)
  assert [list(line) for line in lines] == [list(line) for line in expected], "order of keys"


def values_of(lines) -> np.ndarray:
  pieces = [piece for line in lines for piece in line["features"]]
  return np.array([layer["values"] for piece in pieces for layer in piece["layers"]])


def without_values(line):
  features = [
    {**f, "layers": [[*layer, layer["index"], len(layer["values"])] for layer in f["layers"]]}
    for f in line["features"]
  ]
  return {**line, "features": features}


def test_flags_of_the_original(golden_dir):
  with flag_groups.defined_flags(extract_features.define_flags):
    ours = {flag["name"]: flag for flag in flag_groups.describe()}
  for flag in json.loads((golden_dir / "flags.json").read_text())["extract_features"]:
    assert ours[flag["name"]] == flag


def test_texts_are_cut_and_joined_as_in_the_original(original_way):
  tokens = [[feature["token"] for feature in line["features"]] for line in original_way]
  assert [line["linex_index"] for line in original_way] == list(range(len(LINES)))
  assert tokens[0] == ["[CLS]", "the", "cat", "sat", "on", "the", "mat", "##s", ".", "[SEP]"]
  assert tokens[1] == ["[CLS]", "the", "cat", "[SEP]", "on", "the", "mat", "[SEP]"]
  assert tokens[2] == ["[CLS]", "[SEP]"]
  assert tokens[3] == ["[CLS]", "[UNK]", "[SEP]"]
  assert tokens[4] == ["[CLS]", *["the"] * 14, "[SEP]"]
  assert tokens[5] == ["[CLS]", "cat", "[SEP]", *["mat"] * 12, "[SEP]"]
  # The last separator counts, and the text before it may hold others.
  assert tokens[6] == ["[CLS]", "[UNK]", "|", "|", "|", "[UNK]", "[SEP]", "[UNK]", "[SEP]"]
  assert tokens[7] == ["[CLS]", "the", "cat", "|", "|", "|", "[SEP]"]


def test_the_originals_functions_with_an_estimator(model, original_way, tmp_path):
  """What a script that imports them does: everything padded, in the order of the file."""
  tokenizer = tokenization.FullTokenizer(str(model["init_checkpoint"] / "vocab.txt"))
  examples = extract_features.read_examples(str(model["input_file"]))
  features = extract_features.convert_examples_to_features(examples, 16, tokenizer)
  assert all(len(f.input_ids) == len(f.input_mask) == len(f.input_type_ids) == 16 for f in features)
  model_fn = extract_features.model_fn_builder(
    bert_config=CONFIG,
    init_checkpoint=finding.find_checkpoint(model["init_checkpoint"]),
    layer_indexes=[-1, 0],
    use_tpu=False,
    use_one_hot_embeddings=False,
  )
  config = estimator.RunConfig(model_dir=str(tmp_path))
  runner = estimator.Estimator(model_fn, config, {"predict_batch_size": 3})
  input_fn = extract_features.input_fn_builder(features=features, seq_length=16)
  count = 0
  for result, line, feature in zip(runner.predict(input_fn), original_way, features, strict=True):
    assert int(result["unique_id"]) == feature.unique_id == line["linex_index"]
    for i, piece in enumerate(line["features"]):
      for j in range(2):
        np.testing.assert_allclose(
          result[f"layer_output_{j}"][i], piece["layers"][j]["values"], atol=1e-5
        )
        count += 1
  assert count == 2 * sum(len(line["features"]) for line in original_way)
  with pytest.raises(ValueError, match="Only PREDICT modes are supported: train"):
    model_fn({}, None, "train", {})


floats = st.one_of(
  st.floats(-3, 3, width=32, allow_subnormal=False),
  st.floats(-(2.0**100), 2.0**100, width=32, allow_subnormal=False),
  st.sampled_from([0.0, -0.0, 1e-7, 5e-7, -4e-6, 0.5, 1.0, 9.9999999, 1999.9, -2000.0, 0.0625]),
)


@given(
  st.integers(1, 3).flatmap(
    lambda n: st.lists(st.lists(floats, min_size=n, max_size=n), min_size=1)
  )
)
@settings(max_examples=300, deadline=None)
def test_numbers_are_rounded_as_python_does(rows):
  vectors = np.array(rows, np.float32)
  texts = format_rows(vectors)
  found = [json.loads(f"[{text}]") for text in texts]
  expected = [[round(float(x), 6) for x in row] for row in vectors]
  assert found == expected
  assert np.signbit(found).tolist() == np.signbit(expected).tolist()
  if "e" not in repr(expected):  # JSON may write 0.00001 as 1e-05, too
    assert [f"[{text}]" for text in texts] == [json.dumps(row) for row in expected]


def test_numbers_that_are_none():
  assert format_rows(np.array([[np.nan, np.inf, 1]], np.float32)) == ["NaN, Infinity, 1.0"]


# ---------------------------------------------------------------------------------------------
# Other formats, pooling.


def test_npz_holds_the_same_vectors(model, original_way, tmp_path):
  run_well(**model, output_file=tmp_path / "out.npz", output_format="npz", layers="-1,0")
  with np.load(tmp_path / "out.npz") as arrays:  # nothing in it is pickled
    assert sorted(arrays) == ["input_ids", "layers", "row_splits", "tokens", "vectors"]
    found = dict(arrays)
  assert found["layers"].tolist() == [-1, 0]
  assert found["vectors"].dtype == np.float32
  splits = found["row_splits"]
  assert splits[0] == 0
  assert len(splits) == len(LINES) + 1
  for i, line in enumerate(original_way):
    rows = slice(splits[i], splits[i + 1])
    assert found["tokens"][rows].tolist() == [f["token"] for f in line["features"]]
    expected = [[layer["values"] for layer in f["layers"]] for f in line["features"]]
    np.testing.assert_allclose(found["vectors"][rows], expected, atol=1e-5)
  assert [VOCAB[i] for i in found["input_ids"]] == found["tokens"].tolist()


POOL = {"cls": lambda v: v[0], "mean": lambda v: v.mean(axis=0), "max": lambda v: v.max(axis=0)}


@pytest.mark.parametrize(
  "pooling",
  ["mean", *(pytest.param(name, marks=pytest.mark.ci) for name in POOL if name != "mean")],
)
def test_one_vector_for_each_text(model, original_way, tmp_path, pooling):
  flags = {**model, "pooling": pooling, "layers": "-1,0"}
  run_well(**flags, output_file=tmp_path / "out.jsonl")
  run_well(**flags, output_file=tmp_path / "out.npz", output_format="npz")
  with np.load(tmp_path / "out.npz") as arrays:
    assert sorted(arrays) == ["layers", "vectors"]
    vectors = arrays["vectors"]
  assert vectors.shape == (len(LINES), 2, 16)
  for i, line in enumerate(json_lines(tmp_path / "out.jsonl")):
    assert list(line) == ["linex_index", "layers"]
    pieces = np.array(
      [[layer["values"] for layer in f["layers"]] for f in original_way[i]["features"]]
    )
    expected = POOL[pooling](pieces)
    np.testing.assert_allclose([layer["values"] for layer in line["layers"]], expected, atol=2e-6)
    np.testing.assert_allclose(vectors[i], expected, atol=1e-5)


@pytest.mark.ci
def test_equal_runs_make_equal_files(model, tmp_path):
  for name in ("a.npz", "b.npz"):
    run_well(**model, output_file=tmp_path / name, output_format="npz", layers="-1")
  assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()
  assert sorted(os.listdir(tmp_path)) == ["a.npz", "b.npz"], "nothing is left beside them"


def test_chunks_are_small_where_vectors_are_large(model, tmp_path, monkeypatch):
  """Order and values do not depend on it; the sizes asked for are those that fit."""
  monkeypatch.setattr(sentence_vectors, "_CHUNK_BYTES", 0)
  sizes = []
  stream = Predictor.stream
  monkeypatch.setattr(
    Predictor, "stream", lambda self, items: sizes.append(self.chunk_size) or stream(self, items)
  )
  run_well(**model, output_file=tmp_path / "small.npz", output_format="npz", layers="-1")
  monkeypatch.undo()
  run_well(**model, output_file=tmp_path / "large.npz", output_format="npz", layers="-1")
  assert sizes == [3]
  with np.load(tmp_path / "small.npz") as small, np.load(tmp_path / "large.npz") as large:
    assert small["tokens"].tolist() == large["tokens"].tolist()
    np.testing.assert_allclose(small["vectors"], large["vectors"], atol=1e-5)


@pytest.mark.parametrize("output_format", ["jsonl", pytest.param("npz", marks=pytest.mark.ci)])
def test_the_same_bits_for_every_batch_size(model, original_way, tmp_path, output_format):
  flags = {**model, "layers": "-1,0", "output_format": output_format, "batch_invariant": True}
  files = [tmp_path / f"{batch_size}" for batch_size in (1, 7)]
  for file in files:
    run_well(**{**flags, "batch_size": int(file.name)}, output_file=file)
  assert files[0].read_bytes() == files[1].read_bytes()
  if output_format == "jsonl":
    lines = json_lines(files[0])
    assert list(map(without_values, lines)) == list(map(without_values, original_way))
    np.testing.assert_allclose(values_of(lines), values_of(original_way), atol=1e-5)


def test_chunks_fit_into_memory():
  base = BertConfig(vocab_size=30522)
  for sizes, expected in (
    ((4, "none", 128, 32), 170),  # 1.5 MiB for each text
    ((4, "none", 512, 64), 64),  # a batch at least
    ((1, "mean", 512, 32), 2048),
  ):
    assert sentence_vectors.batching(base, *sizes).chunk_size == expected


@pytest.mark.slow
def test_memory_does_not_grow_with_the_input(model, tmp_path):
  """The lines of an endless pipe are answered as they come."""
  reading, writing = os.pipe()
  argv = [sys.executable, "extract_features.py", "--input_file=-", "--output_file=-"]
  flags = {**model, "layers": -1, "pooling": "cls", "batch_size": 1}
  del flags["input_file"]
  argv += [f"--{name}={value}" for name, value in flags.items()]
  with subprocess.Popen(
    argv, cwd=ROOT, stdin=reading, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL
  ) as process:
    os.close(reading)
    with os.fdopen(writing, "wb") as writer:
      writer.write(b"the cat\n" * 128)  # two chunks of 64; the pipe stays open
      writer.flush()
      lines = [json.loads(process.stdout.readline()) for _ in range(64)]
    assert [line["linex_index"] for line in lines] == list(range(64))
    assert len(process.stdout.readlines()) == 64
  assert process.returncode == 0


def test_standard_input_and_output(model, original_way):
  flags = {**model, "input_file": "-", "output_file": "-", "layers": "-1,0"}
  out = run_well(**flags, stdin="\n".join(LINES).encode())
  assert list(map(json.loads, out.splitlines())) == original_way


@pytest.mark.parametrize("output_format", WRITERS)
@pytest.mark.parametrize("pooling", ["none", pytest.param("mean", marks=pytest.mark.ci)])
def test_no_text_makes_an_empty_file(model, tmp_path, output_format, pooling):
  flags = {**model, "input_file": "-", "output_format": output_format, "pooling": pooling}
  run_well(**flags, output_file=tmp_path / "out")
  if output_format == "npz":
    with np.load(tmp_path / "out") as arrays:
      assert arrays["vectors"].shape == (0, 4, 16)
  else:
    assert (tmp_path / "out").read_bytes() == b""


@pytest.mark.ci
def test_bfloat16_is_near_and_one_hot_the_same(model, original_way, tmp_path):
  expected = values_of(original_way)
  run_well(**model, output_file=tmp_path / "a", layers="-1,0", use_one_hot_embeddings=True)
  np.testing.assert_allclose(values_of(json_lines(tmp_path / "a")), expected, atol=1e-5)
  run_well(**model, output_file=tmp_path / "b", layers="-1,0", dtype="bfloat16")
  found = values_of(json_lines(tmp_path / "b"))
  np.testing.assert_allclose(found, expected, atol=0.1)
  assert np.abs(found - expected).max() > 1e-4


@pytest.mark.ci
def test_an_export_brings_its_own_vocabulary(model, original_way, tmp_path):
  vocab = str(model["init_checkpoint"] / "vocab.txt")
  hub_encoder.export_encoder(
    str(tmp_path / "export" / "encoder"), CONFIG, str(model["init_checkpoint"]), vocab, True
  )
  for folder in (tmp_path / "export", tmp_path / "export" / "encoder"):
    flags = {**model, "init_checkpoint": folder, "layers": "-1,0"}
    run_well(**flags, output_file=tmp_path / "out")
    lines = json_lines(tmp_path / "out")
    assert list(map(without_values, lines)) == list(map(without_values, original_way))
    np.testing.assert_allclose(values_of(lines), values_of(original_way), atol=1e-5)


# ---------------------------------------------------------------------------------------------
# Similarity.


def test_similarity_of_the_texts_of_a_line(model, tmp_path):
  pairs = [("the cat", "The CAT"), ("the cat", "on the mat ."), ("sat", "mats")]
  stdin = "\n".join(f"{a} ||| {b}" for a, b in pairs).encode()
  flags = {**model, "input_file": "-", "layers": "-1", "similarity": True}
  out = run_well(**flags, output_file="-", stdin=stdin)
  encode = Predictor.load(str(model["init_checkpoint"]), task="vectors", max_seq_length=16)
  lines = list(map(json.loads, out.splitlines()))
  assert [line["linex_index"] for line in lines] == [0, 1, 2]
  for line, pair in zip(lines, pairs, strict=True):
    expected = sentence_vectors.cosine_similarity(*encode(pair))
    assert line["similarity"] == pytest.approx(float(expected), abs=1e-5)
  assert lines[0]["similarity"] == 1.0
  assert max(lines[1]["similarity"], lines[2]["similarity"]) < 0.999
  flags = {**flags, "output_file": tmp_path / "out"}
  assert "-, line 2: --similarity needs two texts" in error_of(**flags, stdin=b"a ||| b\nalone\n")
  assert os.listdir(tmp_path) == []


# ---------------------------------------------------------------------------------------------
# What goes wrong.


@pytest.mark.parametrize(
  ("flags", "message"),
  [
    ({"layers": "-1,top"}, "--layers=-1,top: whole numbers with commas"),
    ({"layers": ""}, "--layers=: whole numbers"),
    ({"layers": "-5"}, "there is no layer -5: the model has 4"),
    ({"layers": "1,4"}, "there is no layer 4"),
    ({"batch_size": 0}, "--batch_size=0: must be at least 1"),
    ({"max_seq_length": 2}, "--max_seq_length=2: must be at least 3"),
    ({"max_seq_length": 33}, "max_seq_length is 33, but must be from 3 to 32"),
    ({"use_tpu": True}, "--use_tpu: features are extracted on this machine's GPU or CPU"),
    ({"output_file": "-", "output_format": "npz"}, "--output_format=npz needs an --output_file"),
    ({"output_file": "gs://x/y", "output_format": "npz"}, "npz is written to a local disk only"),
    ({"similarity": True, "output_format": "npz"}, "--similarity writes JSON lines"),
    ({"output_file": "no/such/out"}, "there is no folder no/such"),
    ({"input_file": "no.txt"}, "no.txt: No such file"),
    ({"output_format": "csv"}, "one of jsonl, npz"),
  ],
)
def test_what_cannot_be_is_told(model, tmp_path, monkeypatch, flags, message):
  monkeypatch.chdir(tmp_path)
  assert message in error_of(**{**model, "output_file": "out", **flags})
  assert os.listdir(tmp_path) == []


def test_flags_that_must_be_given(model):
  missing = error_of()
  for name in ("input_file", "vocab_file", "bert_config_file", "init_checkpoint", "output_file"):
    assert f"Flag --{name} must have a value other than None." in missing


def test_bytes_that_are_no_text(model, tmp_path):
  (tmp_path / "out").write_text("old")
  flags = {**model, "input_file": "-", "output_file": tmp_path / "out"}
  for output_format in WRITERS:
    message = error_of(**flags, output_format=output_format, stdin=b"ok\n\xff\n")
    assert "standard input, line 2: byte 0xff is not UTF-8" in message
  assert (tmp_path / "out").read_text() == "old"
  assert os.listdir(tmp_path) == ["out"]


def test_a_checkpoint_of_another_size(model, tmp_path):
  wider = BertConfig.from_dict({**CONFIG.to_dict(), "hidden_size": 32})
  (tmp_path / "wider.json").write_text(wider.to_json_string())
  flags = {**model, "bert_config_file": tmp_path / "wider.json", "output_file": tmp_path / "out"}
  assert "the file has hidden size 16, the model 32: " in error_of(**flags)


def test_a_text_file_of_npz_is_a_zip_of_arrays(model, tmp_path):
  run_well(**model, output_file=tmp_path / "out.npz", output_format="npz")
  with zipfile.ZipFile(tmp_path / "out.npz") as archive:
    assert archive.testzip() is None
    assert archive.namelist() == [
      f"{name}.npy" for name in ("vectors", "input_ids", "tokens", "row_splits", "layers")
    ]


def test_help_is_quick_and_complete(tmp_path):
  check_help(extract_features, tmp_path, {"Texts and vectors", "Model", "TPU"})


def test_without_a_length_the_model_reads_what_it_can(model, tmp_path):
  flags = {name: value for name, value in model.items() if name != "max_seq_length"}
  lines = run_well(**flags, layers="-1", output_file="-").splitlines()
  assert max(len(json.loads(line)["features"]) for line in lines) == 32
