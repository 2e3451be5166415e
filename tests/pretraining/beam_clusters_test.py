"""Records by Apache Beam on several processes, Beam's own workers.

Alone: python -m pytest -m ci tests/pretraining/beam_clusters_test.py (a minute)
"""

import pytest

from bert.pretraining import blocks, piece_tables, workers
from bert.pretraining.record_settings import RecordSettings
from tests.kit.paths import SAMPLE_TEXT, SAMPLE_VOCAB
from tests.kit.pretraining_records import framed_records, manifest_of

pytest.importorskip("apache_beam")

from bert.pretraining import beam

pytestmark = pytest.mark.ci

SETTINGS = RecordSettings(str(SAMPLE_VOCAB), max_seq_length=64, dupe_factor=3)
FACTS = SETTINGS.facts(piece_tables.load_tables(SETTINGS).tokenizer.vocab)


@pytest.fixture
def corpus(tmp_path, monkeypatch):
  """A text of several ranges, and the records that one worker process makes of it."""
  monkeypatch.setattr(blocks, "block_bytes", lambda total: 3000)
  text = tmp_path / "text"
  text.write_bytes((SAMPLE_TEXT.read_bytes() + b"\n") * 3)
  workers.create_records([str(text)], [str(tmp_path / "expected")], SETTINGS, 1, FACTS)
  return text, sorted(framed_records(tmp_path / "expected"))


def records_by_beam(text, folder, runner: str) -> list[bytes]:
  """Makes two files of records with Beam; returns all records, sorted."""
  outputs = [folder / "a", folder / "b"]
  count = beam.create_records([str(text)], list(map(str, outputs)), SETTINGS, FACTS, runner)
  found = [framed_records(path) for path in outputs]
  assert [manifest_of(path)["records"] for path in outputs] == list(map(len, found))
  assert count == sum(map(len, found))
  return sorted(found[0] + found[1])


def test_several_processes_of_beam_make_the_same_records(corpus, tmp_path):
  text, expected = corpus
  runner = "--runner=DirectRunner --direct_running_mode=multi_processing --direct_num_workers=2"
  assert records_by_beam(text, tmp_path, runner) == expected
