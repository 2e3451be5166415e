"""Records for pre-training: the original's instances, whole files, little memory, clear errors.

Alone: python -m pytest tests/create_pretraining_data_test.py
"""

import contextlib
import gzip
import hashlib
import io
import json
import os
import pathlib
import random
import subprocess
import sys
import tracemalloc

import pytest
from absl import flags

import bert.pretraining
from bert import create_pretraining_data as script
from bert import tokenization
from bert.io import record_files, tfrecord_bytes
from bert.pretraining import instances as pretraining_data
from bert.scripts import command_line, flag_groups
from bert.text import corpus, corpus_statistics, text_files
from tests.kit.paths import ROOT

TEXT = ROOT / "samples" / "sample_text.txt"
VOCAB = ROOT / "samples" / "vocab.txt"
FEATURES = (
  "input_ids",
  "input_mask",
  "segment_ids",
  "masked_lm_positions",
  "masked_lm_ids",
  "masked_lm_weights",
  "next_sentence_labels",
)


def run(*arguments):
  """Runs the script in this process; returns its exit code and what it wrote to stderr."""
  output = io.StringIO()
  with contextlib.redirect_stderr(output), pytest.raises(SystemExit) as caught:
    command_line.run(script.main, script.define_flags, ["create_pretraining_data.py", *arguments])
  return caught.value.code or 0, output.getvalue()


def create(output, text=TEXT, vocab=VOCAB, **settings):
  """Runs the script on `text` and fails if it does."""
  settings = {"input_file": text, "output_file": output, "vocab_file": vocab, **settings}
  code, errors = run(*(f"--{name}={value}" for name, value in settings.items()))
  assert code == 0, errors
  return errors


def parse(path):
  """The records of a file as `{feature: list}`."""
  import tensorflow as tf

  records = []
  is_gzip = pathlib.Path(path).read_bytes()[:2] == b"\x1f\x8b"
  for record in tf.data.TFRecordDataset(str(path), "GZIP" if is_gzip else ""):
    feature = tf.train.Example.FromString(record.numpy()).features.feature
    records.append(
      {
        name: list(getattr(feature[name], feature[name].WhichOneof("kind")).value)
        for name in feature
      }
    )
  return records


def sha256(path):
  return hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()


def manifest_of(path):
  return json.loads((path.parent / f".{path.name}.manifest.json").read_text())


def in_memory(tokenizer, text=TEXT, seed=12345, dupe_factor=3, **options):
  return script.create_training_instances(
    [str(text)], tokenizer, 64, dupe_factor, 0.2, 0.15, 10, random.Random(seed), **options
  )


@pytest.fixture(scope="module")
def tokenizer():
  return tokenization.FullTokenizer(VOCAB)


# ---------------------------------------------------------------------------------------------
# The original's flags and instances.


def test_flags_of_the_original(golden_dir):
  recorded = json.loads((golden_dir / "flags.json").read_text())["create_pretraining_data"]
  with flag_groups.defined_flags(script.define_flags):
    ours = {flag["name"]: flag for flag in flag_groups.describe(flags.FLAGS)}
  for flag in recorded:
    assert ours[flag["name"]] == flag


GOLDEN = {
  "sample_default": {"dupe_factor": 5},
  "wiki_128": {"dupe_factor": 2, "random_seed": 12345},
  "wiki_64_wwm": {
    "dupe_factor": 1,
    "max_seq_length": 64,
    "max_predictions_per_seq": 10,
    "do_whole_word_mask": True,
    "random_seed": 7,
    "short_seq_prob": 0.3,
  },
}


@pytest.mark.parametrize("name", GOLDEN)
def test_records_of_the_original(name, golden_dir, data_dir, tmp_path):
  folder = golden_dir / "pretraining_data"
  text = data_dir / "corpus/sample_text.txt" if name == "sample_default" else folder / "corpus.txt"
  create(tmp_path / "out", text, data_dir / "vocab/uncased_vocab.txt", **GOLDEN[name])
  with gzip.open(folder / f"{name}.jsonl.gz", "rt") as lines:
    expected = [json.loads(line) for line in lines]
  found = parse(tmp_path / "out")
  assert len(found) == len(expected)
  for ours, original in zip(found, expected, strict=True):
    assert ours == original


def test_the_stream_is_pinned(tmp_path):
  """Without the recordings: what this program drew when it was equal to the original."""
  words = [f"{'##' * (n % 3 == 1)}w{n}" for n in range(60)]
  documents = [
    [
      [words[(7 * d + 5 * s + t * t) % 60] for t in range(3 + (d + s) % 9)]
      for s in range(1 + d * 2)
    ]
    for d in range(5)
  ]
  rng = random.Random(12345)
  lines = []
  for whole_words in (False, True):
    for index in range(5):
      for instance in script.create_instances_from_document(
        documents, index, 32, 0.3, 0.15, 5, words, rng, do_whole_word_mask=whole_words
      ):
        lines.append(f"{instance.tokens} {instance.masked_lm_positions} {instance.segment_ids}")
  assert hashlib.sha256("\n".join(lines).encode()).hexdigest()[:16] == "3e44e793598a05a1"


# ---------------------------------------------------------------------------------------------
# Instances.


def same(one, other):
  return list(map(repr, one)) == list(map(repr, other))


@pytest.mark.parametrize("do_whole_word_mask", [False, True])
def test_on_disk_as_in_memory(tokenizer, tmp_path, do_whole_word_mask):
  expected = in_memory(tokenizer, do_whole_word_mask=do_whole_word_mask)
  with pretraining_data.Workspace(str(tmp_path), tokenizer) as workspace:
    stored = in_memory(tokenizer, do_whole_word_mask=do_whole_word_mask, workspace=workspace)
    assert isinstance(stored, pretraining_data.StoredInstances)
    assert same(expected, stored)
  assert not list(tmp_path.iterdir())


def test_seeds_differ(tokenizer):
  assert not same(in_memory(tokenizer, seed=1), in_memory(tokenizer, seed=2))


def test_documents_are_plain_lists_for_those_who_call_the_functions():
  documents = [[["a"], ["b", "c"]], [["d"]], [["e", "f"], ["g"]]]
  instances = script.create_instances_from_document(
    documents, 1, 16, 0.0, 0.15, 2, list("abcdefg"), random.Random(0)
  )
  assert len(instances) == 1
  instance = instances[0]
  assert instance.is_random_next  # the document has one sentence
  assert instance.tokens.count("[SEP]") == 2
  assert instance.tokens[0] == "[CLS]"
  assert len(instance.segment_ids) == len(instance.tokens)
  assert instance.segment_ids[:3] == [0, 0, 0]
  assert set(instance.segment_ids[3:]) == {1}


def test_one_document_gives_its_own_text_as_random(tokenizer, tmp_path):
  text = tmp_path / "text"
  text.write_text("one the of and\n")
  instances = in_memory(tokenizer, text, dupe_factor=2)
  assert len(instances) == 2
  assert all(instance.is_random_next for instance in instances)


def slow_truncate(tokens_a, tokens_b, limit, rng):
  """Token by token, as the paper's authors describe it."""
  while len(tokens_a) + len(tokens_b) > limit:
    longer = tokens_a if len(tokens_a) > len(tokens_b) else tokens_b
    longer.pop(0 if rng.random() < 0.5 else -1)


@pytest.mark.parametrize("lengths", [(9, 3), (3, 9), (7, 7), (2, 2), (30, 29), (1, 50)])
def test_truncation_is_that_of_one_token_after_the_other(lengths):
  pairs = [[list(range(n)) for n in lengths] for _ in range(2)]
  generators = random.Random(5), random.Random(5)
  script.truncate_seq_pair(*pairs[0], 7, generators[0])
  slow_truncate(*pairs[1], 7, generators[1])
  assert pairs[0] == pairs[1]
  assert generators[0].random() == generators[1].random()


def test_shares_of_masks():
  rng = random.Random(3)
  words = [f"word{n}" for n in range(1000)]
  tokens = ["[CLS]", *["own"] * 126, "[SEP]"]
  chosen = masked = kept = 0
  for _ in range(800):
    output, positions, labels = script.create_masked_lm_predictions(tokens, 0.15, 99, words, rng)
    assert labels == ["own"] * len(positions)
    assert [i for i, token in enumerate(output) if token != tokens[i]] == [
      i for i in positions if output[i] != "own"
    ]
    chosen += len(positions)
    masked += sum(output[i] == "[MASK]" for i in positions)
    kept += sum(output[i] == "own" for i in positions)
  assert chosen / (800 * 128) == pytest.approx(0.15, abs=0.003)
  assert masked / chosen == pytest.approx(0.8, abs=0.01)
  assert kept / chosen == pytest.approx(0.1, abs=0.01)


def test_next_sentences_are_random_in_half_of_the_cases():
  rng = random.Random(1)
  documents = [[["word"] * rng.randint(3, 8) for _ in range(300)] for _ in range(90)]
  labels = [
    instance.is_random_next
    for index in range(90)
    for instance in script.create_instances_from_document(
      documents, index, 64, 0.0, 0.15, 10, ["word"], rng
    )
  ]
  assert len(labels) > 2500
  assert sum(labels) / len(labels) == pytest.approx(0.5, abs=0.02)


def test_whole_words_are_masked_whole():
  tokens = ["[CLS]", "un", "##aff", "##able", "to", "be", "##come", "[SEP]"]
  for seed in range(50):
    _, positions, _ = script.create_masked_lm_predictions(
      tokens, 0.4, 20, ["x"], random.Random(seed), do_whole_word_mask=True
    )
    assert len(positions) <= 3
    for word in ([1, 2, 3], [5, 6]):
      assert len(set(word) & set(positions)) in (0, len(word))


# ---------------------------------------------------------------------------------------------
# Files.


def test_two_runs_write_the_same_bytes(tmp_path):
  # In processes of their own, since hashes of strings change from process to process.
  hashes = set()
  for name in ("a", "b"):
    subprocess.run(
      [
        sys.executable,
        ROOT / "create_pretraining_data.py",
        f"--input_file={TEXT}",
        f"--output_file={tmp_path / name}",
        f"--vocab_file={VOCAB}",
        "--dupe_factor=2",
      ],
      check=True,
      capture_output=True,
    )
    hashes.add(sha256(tmp_path / name))
  assert len(hashes) == 1


def test_records_are_dealt_in_turn(tmp_path):
  create(tmp_path / "all", dupe_factor=2)
  create(f"{tmp_path / 'x'},{tmp_path / 'y'},{tmp_path / 'z'}", dupe_factor=2)
  everything = parse(tmp_path / "all")
  assert set(everything[0]) == set(FEATURES)
  for number, name in enumerate("xyz"):
    assert parse(tmp_path / name) == everything[number::3]


def test_manifest(tmp_path):
  path = tmp_path / "out"
  create(path, max_seq_length=64, max_predictions_per_seq=10, random_seed=5)
  records = parse(path)
  used = sum(sum(record["input_mask"]) for record in records)
  vocab = tokenization.load_vocab(VOCAB)
  assert manifest_of(path) == {
    "records": len(records),
    "bytes": path.stat().st_size,
    "sha256": sha256(path),
    "vocabulary": tokenization.vocabulary_hash(vocab),
    "max_seq_length": 64,
    "max_predictions_per_seq": 10,
    "vocab_size": len(vocab),
    "do_lower_case": True,
    "dupe_factor": 10,
    "short_seq_prob": 0.1,
    "masked_lm_prob": 0.15,
    "random_seed": 5,
    "padding_share": round(1 - used / (64 * len(records)), 4),
  }


def test_readers_notice_a_file_cut_between_records(tmp_path):
  import tensorflow as tf

  from bert.training import input_pipeline

  path = tmp_path / "out"
  create(path)
  features = {"input_ids": tf.io.FixedLenFeature([128], tf.int64)}
  input_pipeline.record_input_fn(str(path), features, is_training=False, drop_remainder=False)
  first = len(next(iter(tf.data.TFRecordDataset(str(path)))).numpy()) + 16
  os.truncate(path, first)
  with pytest.raises(record_files.RecordError, match="cut short"):
    input_pipeline.record_input_fn(str(path), features, is_training=False, drop_remainder=False)


class StopError(Exception):
  pass


def test_an_interrupted_job_leaves_no_file(tokenizer, tmp_path):
  outputs = [tmp_path / "a", tmp_path / "b"]

  class Interrupted(list):
    def __iter__(self):
      yield from list(super().__iter__())[:5]
      raise StopError

  instances = Interrupted(in_memory(tokenizer))
  with pytest.raises(StopError):
    script.write_instance_to_example_files(instances, tokenizer, 64, 10, outputs)
  assert not list(tmp_path.iterdir())


def test_a_killed_job_leaves_no_final_name_and_the_next_one_cleans_up(tmp_path):
  program = (
    "import os, sys\n"
    "from bert import create_pretraining_data\n"
    "from bert.pretraining import instances\n"
    "from bert.scripts import command_line\n"
    "write = instances.RecordFiles.write\n"
    "def stop(self, record, num_tokens):\n"
    "  write(self, record, num_tokens)\n"
    "  if self.count == 7: os._exit(9)\n"
    "instances.RecordFiles.write = stop\n"
    "command_line.run(create_pretraining_data.main, create_pretraining_data.define_flags)\n"
  )
  path = tmp_path / "out"
  arguments = [f"--input_file={TEXT}", f"--output_file={path}", f"--vocab_file={VOCAB}"]
  killed = subprocess.run(
    [sys.executable, "-c", program, *arguments], cwd=ROOT, capture_output=True, check=False
  )
  assert killed.returncode == 9
  assert not path.exists()
  create(path)
  assert {p.name for p in tmp_path.iterdir()} == {"out", ".out.manifest.json"}


def test_a_failing_rename_leaves_the_old_file_readable(tokenizer, tmp_path, monkeypatch):
  path = tmp_path / "out"
  path.write_bytes(b"old")

  def refuse(*_):
    raise OSError("no")

  monkeypatch.setattr(pretraining_data.os, "replace", refuse)
  with pytest.raises(OSError, match="no"):
    script.write_instance_to_example_files(in_memory(tokenizer), tokenizer, 64, 10, [path])
  assert path.read_bytes() == b"old"
  assert [p.name for p in tmp_path.iterdir()] == ["out"]


@pytest.mark.skipif(sys.platform == "win32", reason="no limits of file sizes")
@pytest.mark.parametrize("what", ["temporary files", "out"])
def test_a_full_disk_is_named_and_leaves_nothing(what, tmp_path):
  create(tmp_path / "whole", dupe_factor=2)
  # The records are the largest file of a run: with a bit less than they need, only they fail.
  limit = 500 if what == "temporary files" else (tmp_path / "whole").stat().st_size - 100
  program = (
    "import resource\n"
    "from bert import create_pretraining_data; from bert.scripts import command_line\n"
    f"resource.setrlimit(resource.RLIMIT_FSIZE, ({limit}, {limit}))\n"
    "command_line.run(create_pretraining_data.main, create_pretraining_data.define_flags)\n"
  )
  folder = tmp_path / "full"
  arguments = [f"--input_file={TEXT}", f"--output_file={folder}/out", f"--vocab_file={VOCAB}"]
  result = subprocess.run(
    [sys.executable, "-c", program, *arguments, "--dupe_factor=2"],
    cwd=ROOT,
    capture_output=True,
    check=False,
    text=True,
  )
  assert result.returncode == 1
  error = next(line for line in result.stderr.splitlines() if line.startswith("ERROR"))
  assert str(folder) in error
  assert what in error
  assert not list(folder.iterdir())


def test_an_instance_that_is_too_long_is_refused(tokenizer, tmp_path):
  with pytest.raises(ValueError, match="max_seq_length is 32"):
    script.write_instance_to_example_files(
      in_memory(tokenizer), tokenizer, 32, 10, [tmp_path / "out"]
    )
  assert not list(tmp_path.iterdir())


def test_gzip_holds_the_same_records(tmp_path):
  create(tmp_path / "plain", dupe_factor=2)
  for name in ("a", "b"):
    create(tmp_path / name, dupe_factor=2, gzip=True)
  assert gzip.decompress((tmp_path / "a").read_bytes()) == (tmp_path / "plain").read_bytes()
  assert sha256(tmp_path / "a") == sha256(tmp_path / "b") == manifest_of(tmp_path / "a")["sha256"]
  assert manifest_of(tmp_path / "a")["compression"] == "GZIP"
  # What the records hold is what TensorFlow's own serialization would write.
  features = parse(tmp_path / "plain")[0]
  features["masked_lm_weights"] = [float(weight) for weight in features["masked_lm_weights"]]
  expected = tfrecord_bytes.framed(record_files.serialize_example(features))
  assert (tmp_path / "plain").read_bytes().startswith(expected)


@pytest.mark.parametrize("settings", [{}, {"num_workers": 1}])
def test_forms_of_text(settings, tmp_path):
  """Plain lines, JSON lines, compressed files and paragraphs give the same records."""
  documents = [["The one.", "Of the and!", "In 2 to."], ["To the.", "And of one?"]]
  plain = "\n\n".join("\n".join(document) for document in documents) + "\n"
  jsonl = "".join(json.dumps({"text": "\n".join(document)}) + "\n" for document in documents)
  paragraphs = "\n\n".join(" ".join(document) for document in documents) + "\n"
  forms = {
    "plain": (plain.encode(), {}),
    "a.gz": (gzip.compress(plain.encode()), {}),
    "jsonl": (jsonl.encode(), {"jsonl_field": "text"}),
    "paragraphs": (paragraphs.encode(), {"split_sentences": True}),
  }
  hashes = set()
  for name, (data, options) in forms.items():
    (tmp_path / name).write_bytes(data)
    create(tmp_path / "out", tmp_path / name, max_seq_length=16, **settings, **options)
    hashes.add(sha256(tmp_path / "out"))
    used = {key: manifest_of(tmp_path / "out").get(key) for key in options}
    assert used == options
  assert len(hashes) == 1


# ---------------------------------------------------------------------------------------------
# The other engines.


@pytest.mark.parametrize(
  "option",
  [{"ngram_max": 2}, {"dynamic_masking": True}, {"no_next_sentence": True}],
)
def test_an_option_of_the_workers_uses_one(option, tmp_path):
  log = create(tmp_path / "a", dupe_factor=1, **option)
  [name] = option
  assert f"--{name} is an option of --num_workers" in log
  create(tmp_path / "b", dupe_factor=1, num_workers=1, **option)
  assert sha256(tmp_path / "a") == sha256(tmp_path / "b")


def test_dynamic_masking_needs_one_pass(tmp_path):
  log = create(tmp_path / "out", dynamic_masking=True, dupe_factor=3)
  assert "--dupe_factor=1 takes less room" in log


def test_beam_through_the_command_line(tmp_path):
  pytest.importorskip("apache_beam")
  arguments = "--runner=BundleBasedDirectRunner"
  create(tmp_path / "a", engine="beam", beam_args=arguments, gzip=True, max_seq_length=64)
  create(tmp_path / "b", num_workers=1, max_seq_length=64)
  found, expected = (
    [json.dumps(record) for record in parse(tmp_path / name)] for name in ("a", "b")
  )
  assert sorted(found) == sorted(expected)
  assert manifest_of(tmp_path / "a")["compression"] == "GZIP"


def test_beam_that_is_not_installed(tmp_path, monkeypatch):
  monkeypatch.setitem(sys.modules, "apache_beam", None)
  monkeypatch.delitem(sys.modules, "bert.pretraining.beam", raising=False)
  monkeypatch.delattr(bert.pretraining, "beam", raising=False)
  code, errors = run(
    f"--input_file={TEXT}",
    f"--output_file={tmp_path}/out",
    f"--vocab_file={VOCAB}",
    "--engine=beam",
  )
  assert code == 1
  assert 'pip install "bert-alive[beam]"' in errors
  assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------------------------------------
# What is stored on disk.


def test_integers_on_disk(tmp_path):
  file = pretraining_data.IntegerFile(str(tmp_path), "q")
  numbers = [3, -1, 1 << 40] * 50_000  # more than are buffered
  for start in range(0, len(numbers), 70_000):
    file.extend(numbers[start : start + 70_000])
  file.freeze()
  assert file.view.tolist() == numbers
  assert not list(tmp_path.iterdir())  # nameless: it cannot be left behind
  file.close()


@pytest.mark.parametrize("count", [0, 1, 2, 3, 64, 65, 1000])
def test_shuffling_is_that_of_python(count):
  class Other(random.Random):
    pass

  for kind in (random.Random, Other):
    rng, expected_rng = kind(count), random.Random(count)
    items, expected = list(range(count)), list(range(count))
    pretraining_data.shuffle(items, rng)
    expected_rng.shuffle(expected)
    assert items == expected
    assert rng.random() == expected_rng.random()


def test_shuffling_on_disk_draws_what_a_list_draws(tmp_path, tokenizer):
  sentences = [["the"], None, None, ["of"], ["and"], None, ["one"], None]
  listed = corpus.split_documents(sentences)
  with pretraining_data.Workspace(str(tmp_path), tokenizer) as workspace:
    stored = workspace.store_documents(sentences)
    assert [list(document) for document in stored] == listed
    pretraining_data.shuffle(listed, random.Random(4))
    pretraining_data.shuffle(stored, random.Random(4))
    assert [list(document) for document in stored] == listed
    with pytest.raises(IndexError):
      stored[0][9]


def peak_bytes(tokenizer, text, folder):
  """Most Python memory in use at a time while instances are created on disk."""
  tracemalloc.start()
  try:
    with pretraining_data.Workspace(str(folder), tokenizer) as workspace:
      instances = in_memory(tokenizer, text, dupe_factor=1, workspace=workspace)
      for _ in instances:
        pass
    return tracemalloc.get_traced_memory()[1]
  finally:
    tracemalloc.stop()


@pytest.mark.parametrize("separator", ["\n", ""])
def test_memory_does_not_grow_with_the_corpus(tokenizer, tmp_path, monkeypatch, separator):
  """Neither with many documents nor with one that is long."""
  monkeypatch.setattr(pretraining_data, "_BUFFERED", 1 << 10)
  lines = "".join(line + "\n" for line in TEXT.read_text().splitlines() if line)
  text = tmp_path / "text"
  peaks = []
  for copies in (5, 5, 30):  # the first run fills the caches
    text.write_text((lines + separator) * copies)
    peaks.append(peak_bytes(tokenizer, text, tmp_path))
  # In lists, the larger text takes a megabyte more.
  assert peaks[2] < peaks[1] + 100_000


# ---------------------------------------------------------------------------------------------
# Text that is not as it should be.


@pytest.mark.filterwarnings("ignore::tokenization.VocabularyWarning")
@pytest.mark.parametrize(
  ("change", "message"),
  [
    ({"input_file": "{tmp}/none*"}, "matches no file"),
    ({"input_file": "{tmp}"}, "is a folder"),
    ({"input_file": "{tmp}/empty"}, "all files are empty"),
    ({"input_file": "{tmp}/blank"}, "There is no text"),
    ({"input_file": "{tmp}/utf16"}, "UTF-16"),
    ({"output_file": "{tmp}"}, "is a folder"),
    ({"output_file": "{tmp}/a,{tmp}/./a"}, "stands there twice"),
    ({"output_file": "{tmp}/empty/out"}, "cannot write"),
    ({"output_file": "{tmp}/text", "input_file": "{tmp}/text"}, "also an input file"),
    ({"output_file": "gs://bucket/out"}, "is remote"),
    ({"vocab_file": "{tmp}/text"}, "lacks [CLS]"),
    ({"max_seq_length": "4"}, "5 is the smallest"),
    ({"dupe_factor": "0"}, "1 is the smallest"),
    ({"masked_lm_prob": "15"}, "from 0 to 1"),
    ({"num_workers": "-1"}, "0 is the smallest"),
    ({"num_workers": "2", "input_file": "{tmp}/blank"}, "There is no text"),
    ({"ngram_max": "0"}, "1 is the smallest"),
    ({"ngram_max": "2", "dynamic_masking": "true"}, "choose one"),
    ({"whole_words_by_space": "true"}, "add --do_whole_word_mask"),
    ({"engine": "spark"}, "one of local, beam"),
    ({"beam_args": "--runner=X"}, "needs --engine=beam"),
    ({"engine": "beam", "num_workers": "2"}, "leave --num_workers out"),
    ({"jsonl_field": "text"}, "sample_text.txt, line 1: not JSON"),
    ({"jsonl_field": "text", "num_workers": "2"}, "sample_text.txt, line 1: not JSON"),
    ({"strict_utf8": "true", "input_file": "{tmp}/latin1"}, "latin1, line 3: byte 4"),
    (
      {"strict_utf8": "true", "input_file": "{tmp}/latin1", "num_workers": "2"},
      "latin1, line 3: byte 4",
    ),
    ({"input_file": "{tmp}/text.gz"}, "text.gz is not a gzip file"),
  ],
)
def test_errors_before_the_work(change, message, tmp_path):
  (tmp_path / "empty").touch()
  (tmp_path / "blank").write_text("\n \n")
  (tmp_path / "utf16").write_text("the", encoding="utf-16")
  (tmp_path / "text").write_text("the\n")
  (tmp_path / "text.gz").write_text("the\n")
  (tmp_path / "latin1").write_bytes(b"the\n\ncaf\xe9\n")
  before = sorted(tmp_path.iterdir())
  settings = {"input_file": TEXT, "output_file": tmp_path / "out", "vocab_file": VOCAB, **change}
  code, errors = run(*(f"--{k}={v}".replace("{tmp}", str(tmp_path)) for k, v in settings.items()))
  assert code == 1
  assert message in errors
  assert "Traceback" not in errors
  assert sorted(tmp_path.iterdir()) == before


def test_required_flags():
  code, errors = run()
  assert code == 1
  for name in ("input_file", "output_file", "vocab_file"):
    assert f"--{name} must have a value" in errors


def test_an_empty_file_among_others_is_only_a_warning(tmp_path):
  (tmp_path / "a.txt").write_text(TEXT.read_text())
  (tmp_path / "b.txt").touch()
  errors = create(tmp_path / "out", f"{tmp_path}/*.txt")
  assert "1 of 2 input files are empty" in errors


def test_logs_what_the_original_logs(tmp_path):
  errors = create(tmp_path / "out", dupe_factor=1)
  for line in ("*** Reading from input files ***", "*** Example ***", "total instances"):
    assert line in errors
