"""Records for pre-training: the original's instances, whole files, clear errors."""

import gzip
import hashlib
import json
import random
import sys

import pytest
from absl import flags

from bert import create_pretraining_data as script
from bert import pretraining, tokenization
from bert.io import record_files, tfrecord_bytes
from bert.pretraining.record_settings import RecordSettings
from bert.scripts import command_line, flag_groups, record_flags
from tests.kit.paths import SAMPLE_VOCAB
from tests.kit.pretraining_records import (
  SCRIPT,
  assert_equal_to_recording,
  create,
  flags_for,
  manifest_of,
  sha256,
)
from tests.kit.script_runs import values_in

FEATURES = (
  "input_ids",
  "input_mask",
  "segment_ids",
  "masked_lm_positions",
  "masked_lm_ids",
  "masked_lm_weights",
  "next_sentence_labels",
)


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


@pytest.mark.parametrize(
  "name",
  ["sample_default", "wiki_64_wwm", pytest.param("wiki_128", marks=pytest.mark.ci)],
)
def test_records_of_the_original(name, golden_dir, data_dir, released_vocab_file, tmp_path):
  folder = golden_dir / "pretraining_data"
  text = data_dir / "corpus/sample_text.txt" if name == "sample_default" else folder / "corpus.txt"
  create(tmp_path / "out", text, vocab_file=released_vocab_file, **GOLDEN[name])
  assert_equal_to_recording(tmp_path / "out", folder / f"{name}.jsonl.gz")


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


# ---------------------------------------------------------------------------------------------
# Files.


def test_records_are_dealt_in_turn(tmp_path):
  create(tmp_path / "all", dupe_factor=2)
  create(f"{tmp_path / 'x'},{tmp_path / 'y'},{tmp_path / 'z'}", dupe_factor=2)
  everything = values_in(tmp_path / "all")
  assert set(everything[0]) == set(FEATURES)
  for number, name in enumerate("xyz"):
    assert values_in(tmp_path / name) == everything[number::3]


def test_manifest(tmp_path):
  path = tmp_path / "out"
  create(path, max_seq_length=64, max_predictions_per_seq=10, random_seed=5)
  records = values_in(path)
  used = sum(sum(record["input_mask"]) for record in records)
  vocab = tokenization.load_vocab(SAMPLE_VOCAB)
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


def test_gzip_holds_the_same_records(tmp_path):
  create(tmp_path / "plain", dupe_factor=2)
  for name in ("a", "b"):
    create(tmp_path / name, dupe_factor=2, gzip=True)
  assert gzip.decompress((tmp_path / "a").read_bytes()) == (tmp_path / "plain").read_bytes()
  assert sha256(tmp_path / "a") == sha256(tmp_path / "b") == manifest_of(tmp_path / "a")["sha256"]
  assert manifest_of(tmp_path / "a")["compression"] == "GZIP"
  # What the records hold is what TensorFlow's own serialization would write.
  features = values_in(tmp_path / "plain")[0]
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
  "option", [{"ngram_max": 2}, {"dynamic_masking": True}, {"no_next_sentence": True}]
)
def test_an_option_of_the_workers_uses_one(option, tmp_path):
  log = create(tmp_path / "a", dupe_factor=1, **option)
  [name] = option
  assert f"--{name} requires --num_workers" in log
  create(tmp_path / "b", dupe_factor=1, num_workers=1, **option)
  assert sha256(tmp_path / "a") == sha256(tmp_path / "b")


@pytest.mark.ci
def test_beam_through_the_command_line(tmp_path):
  pytest.importorskip("apache_beam")
  arguments = "--runner=BundleBasedDirectRunner"
  create(tmp_path / "a", runner="beam", beam_args=arguments, gzip=True, max_seq_length=64)
  create(tmp_path / "b", num_workers=1, max_seq_length=64)
  found, expected = (
    [json.dumps(record) for record in values_in(tmp_path / name)] for name in ("a", "b")
  )
  assert sorted(found) == sorted(expected)
  assert manifest_of(tmp_path / "a")["compression"] == "GZIP"


def test_beam_that_is_not_installed(tmp_path, monkeypatch):
  monkeypatch.setitem(sys.modules, "apache_beam", None)
  monkeypatch.delitem(sys.modules, "bert.pretraining.beam", raising=False)
  monkeypatch.delattr(pretraining, "beam", raising=False)
  errors = SCRIPT.error_of(**flags_for(tmp_path / "out", runner="beam"))
  assert "pip install" in errors
  assert not list(tmp_path.iterdir())


# ---------------------------------------------------------------------------------------------
# Unusable flags and text.


@pytest.mark.filterwarnings("ignore::tokenization.VocabularyWarning")
@pytest.mark.parametrize(
  ("change", "message"),
  [
    ({"output_file": "{tmp}"}, "is a folder"),
    ({"output_file": "{tmp}/a,{tmp}/./a"}, "is given twice"),
    ({"output_file": "{tmp}/empty/out"}, "cannot write"),
    ({"output_file": "{tmp}/text", "input_file": "{tmp}/text"}, "also an input file"),
    ({"output_file": "gs://bucket/out"}, "is remote"),
    ({"max_seq_length": "4"}, "must be at least 5"),
    ({"format": "albert", "no_next_sentence": "true"}, "only with bert"),
    ({"format": "electra", "vocab_file": "{tmp}/spm"}, "which only --format=albert takes"),
    ({"vocab_file": "{tmp}/spm"}, "is a sentencepiece model"),
    (
      {"format": "electra", "dupe_factor": "5"},
      "--dupe_factor means nothing with --format=electra",
    ),
    ({"format": "albert", "random_seed": "-1"}, "--random_seed=-1: must be between 0 and"),
    (
      {"strip_accents": "false", "do_permutation": "true"},
      "--do_permutation means --format=albert",
    ),
    ({"ngram_max": "2", "dynamic_masking": "true"}, "use only one"),
    ({"runner": "beam", "num_workers": "2"}, "omit --num_workers"),
    ({"do_permutation": "true", "num_workers": "2"}, "omit --num_workers and --runner"),
    ({"jsonl_field": "text", "num_workers": "2"}, "sample_text.txt, line 1: not JSON"),
    (
      {"strict_utf8": "true", "input_file": "{tmp}/latin1", "num_workers": "2"},
      "latin1, line 3: byte 4",
    ),
  ],
)
def test_errors_before_the_work(change, message, tmp_path):
  (tmp_path / "empty").touch()
  (tmp_path / "blank").write_text("\n \n")
  (tmp_path / "utf16").write_text("the", encoding="utf-16")
  (tmp_path / "text").write_text("the\n")
  (tmp_path / "text.gz").write_text("the\n")
  (tmp_path / "spm").write_bytes(b"\n\x0e\n\x05<unk>\x15\0\0\0\0\x18\x03" + bytes(50))
  (tmp_path / "latin1").write_bytes(b"the\n\ncaf\xe9\n")
  before = sorted(tmp_path.iterdir())
  values = flags_for(tmp_path / "out") | change
  values = {name: str(value).replace("{tmp}", str(tmp_path)) for name, value in values.items()}
  assert message in SCRIPT.error_of(**values)
  assert sorted(tmp_path.iterdir()) == before


# ---------------------------------------------------------------------------------------------
# Formats of other families.


def settings_of(*arguments):
  """The settings of a command line."""
  with flag_groups.defined_flags(script.define_flags):
    command_line.parse(["create_pretraining_data.py", "--vocab_file=v", *arguments])
    return record_flags.settings_of_flags()


def test_defaults_are_those_of_the_family():
  assert settings_of() == RecordSettings("v")
  albert = settings_of("--format=albert", "--dupe_factor=5")
  assert albert == RecordSettings(
    *("v", None, "albert"), max_seq_length=512, dupe_factor=5, do_whole_word_mask=True, ngram_max=3
  )
  electra = settings_of("--format=electra")
  assert electra == RecordSettings("v", format="electra", dupe_factor=1)


@pytest.mark.parametrize(
  ("flag", "format_name"),
  [
    ("--spm_model_file=a.model", "albert"),
    ("--do_permutation", "albert"),
    ("--nostrip_accents", "electra"),
    ("--do_whole_word_mask", "bert"),
  ],
)
def test_a_flag_of_one_family_is_enough(flag, format_name):
  assert settings_of(flag).format == format_name


def test_the_command_of_albert_needs_no_other_flag():
  """With only the script's name changed: its --ngram is our --ngram_max."""
  found = settings_of("--spm_model_file=a.model", "--ngram=2", "--input_file_mode=r")
  assert (found.format, found.ngram_max, found.dupe_factor) == ("albert", 2, 40)


def test_required_flags():
  errors = SCRIPT.error_of()
  for name in ("input_file", "output_file", "vocab_file"):
    assert f"--{name} must have a value" in errors
  assert "vocab_file" not in SCRIPT.error_of(spm_model_file="a.model")


def test_word_pieces_for_albert_are_only_a_warning(tmp_path):
  """The Chinese ALBERTs have them, all others a sentencepiece model."""
  errors = create(tmp_path / "out", format="albert", max_seq_length=32, dupe_factor=1)
  assert "vocab.txt is a WordPiece vocabulary, as the Chinese ALBERTs have" in errors


def test_logs_what_the_original_logs(tmp_path):
  errors = create(tmp_path / "out", dupe_factor=1)
  for line in ("*** Reading from input files ***", "*** Example ***", "total instances"):
    assert line in errors
