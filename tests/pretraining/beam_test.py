"""Records by Apache Beam: those that worker processes make."""

import pathlib

import pytest

from bert.pretraining import blocks, piece_tables, workers
from bert.pretraining.record_settings import RecordSettings
from bert.text import text_files
from tests.kit.paths import SAMPLE_TEXT, SAMPLE_VOCAB
from tests.kit.pretraining_records import framed_records, manifest_of, names

beam = pytest.importorskip("apache_beam")
SETTINGS = RecordSettings(str(SAMPLE_VOCAB), max_seq_length=64, dupe_factor=3)
FACTS = SETTINGS.facts(piece_tables.load_tables(SETTINGS).tokenizer.vocab)
LOCAL = "--runner=BundleBasedDirectRunner"


def test_the_records_of_the_workers(tmp_path, monkeypatch):
  from bert.pretraining import beam as pretraining_beam

  monkeypatch.setattr(blocks, "block_bytes", lambda total: 3000)
  monkeypatch.setattr(pretraining_beam, "_BUCKET_BYTES", 5000)
  text = tmp_path / "text"
  text.write_bytes((SAMPLE_TEXT.read_bytes() + b"\n") * 3)
  outputs = [tmp_path / name for name in ("out", "a", "b")]
  paths = list(map(str, outputs))
  workers.create_records([str(text)], paths[:1], SETTINGS, 1, FACTS)
  count = pretraining_beam.create_records([str(text)], paths[1:], SETTINGS, FACTS, LOCAL)
  by_workers, *by_beam = map(framed_records, outputs)
  assert count == len(by_workers)
  assert sorted(by_workers) == sorted(by_beam[0] + by_beam[1])
  assert abs(len(by_beam[0]) - len(by_beam[1])) < 5 * count**0.5
  assert by_beam[0] != sorted(by_beam[0])
  manifest = manifest_of(tmp_path / "a")
  assert manifest["records"] == len(by_beam[0])
  assert {name: manifest[name] for name in FACTS} == FACTS
  shares = [manifest_of(path)["padding_share"] * len(framed_records(path)) for path in outputs]
  assert shares[0] == pytest.approx(shares[1] + shares[2], abs=0.01 * count)
  assert not [name for name in names(tmp_path) if name.endswith(".tmp")]


def test_no_text(tmp_path):
  from bert.pretraining import beam as pretraining_beam

  (tmp_path / "text").write_text("\n \n")
  with pytest.raises(text_files.CorpusError, match="There is no text"):
    pretraining_beam.create_records(
      [str(tmp_path / "text")], [str(tmp_path / "out")], SETTINGS, FACTS, LOCAL
    )
  assert names(tmp_path) == ["text"]


@pytest.mark.parametrize(
  ("beam_args", "said"),
  [("--runner='unclosed", "cannot be read: No closing quotation"), (LOCAL, "failed .*: Lost it")],
)
def test_a_runner_that_fails_is_one_line(tmp_path, monkeypatch, beam_args, said):
  from bert.clusters import pipelines
  from bert.pretraining import beam as pretraining_beam

  def fail(*_):
    raise RuntimeError("Many lines\nLost it")

  monkeypatch.setattr(beam.Pipeline, "run", fail)
  output = [str(tmp_path / "out")]
  with pytest.raises(pipelines.RunnerError, match=said):
    pretraining_beam.create_records([str(SAMPLE_TEXT)], output, SETTINGS, FACTS, beam_args)


def test_remote_files_are_copied_when_they_are_complete(tmp_path, monkeypatch):
  from bert.clusters import attempts
  from bert.pretraining import beam as pretraining_beam

  copied = []

  def copy(local, remote):
    copied.append(remote)
    (tmp_path / remote.rsplit("/", 1)[1]).write_bytes(pathlib.Path(local).read_bytes())

  monkeypatch.setattr(attempts, "_copy", copy)
  writer = pretraining_beam.WriteFile(["gs://bucket/folder/out"], FACTS)
  writer.process((0, [[(b"a" * 20, 3)], [(b"b" * 20, 4)]]))
  assert copied == ["gs://bucket/folder/out", "gs://bucket/folder/.out.manifest.json"]
  assert (tmp_path / "out").read_bytes() == b"a" * 20 + b"b" * 20
  assert manifest_of(tmp_path / "out")["records"] == 2
