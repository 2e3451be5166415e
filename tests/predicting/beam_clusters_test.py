"""Answers by Apache Beam on several processes: Beam's own workers, and a Dask cluster.

Alone: python -m pytest -m "ci or slow" tests/predicting/beam_clusters_test.py (two minutes)
"""

import pytest

from bert import extract_features, predict
from tests.kit import many_texts
from tests.kit.filters import run_filter

pytest.importorskip("apache_beam")

from bert.predicting import beam
from tests.kit import dask_clusters, dying_worker


@pytest.fixture
def dask(tmp_path):
  """Arguments of Beam for a cluster of two workers."""
  with dask_clusters.two_workers(tmp_path) as beam_args:
    yield beam_args


def run_well(script, **values) -> str:
  code, out, err = run_filter(script, **values)
  assert (code, out) == (None, ""), err
  return err


def both(script, folder, beam_args, num_shards, **values):
  """The bytes that one process writes, and those of the workers' shards, one after the other."""
  values |= {"input_file": many_texts.write(folder / "in.txt"), "batch_invariant": True}
  run_well(script, **values, output_file=folder / "one")
  many = {"runner": "beam", "beam_args": beam_args, "num_shards": num_shards}
  run_well(script, **values, **many, output_file=folder / "many")
  assert len(list(folder.glob("many-*"))) == num_shards
  return (folder / "one").read_bytes(), many_texts.joined(folder / "many")


@pytest.mark.slow
def test_a_worker_that_dies_costs_no_vector(trained, tmp_path, monkeypatch, dask):
  monkeypatch.setattr(beam, "WriteShard", dying_worker.WriteShardAndDie)
  flags = {"init_checkpoint": trained, "max_seq_length": 16, "layers": "-1"}
  one, many = both(extract_features, tmp_path, dask, 8, **flags)
  assert (tmp_path / "died").exists()
  assert one == many
  written = (tmp_path / "written").read_text().split()
  assert sorted(written) == sorted(path.name for path in tmp_path.glob("many-*")), (
    "each was computed once, those of the dead worker too"
  )
  assert not list(tmp_path.glob("*.attempt-*"))


@pytest.mark.slow
def test_a_worker_that_dies_costs_no_answer(exported, tmp_path, monkeypatch, dask):
  monkeypatch.setattr(beam, "WriteShard", dying_worker.WriteShardAndDie)
  one, many = both(predict, tmp_path, dask, 8, saved_model=exported)
  assert (tmp_path / "died").exists()
  assert one == many
  assert len(one.splitlines()) == many_texts.COUNT


@pytest.mark.slow
def test_a_bad_line_on_a_cluster_is_named_in_its_file(trained, tmp_path, dask):
  path = many_texts.write(tmp_path / "in.txt")
  lines = path.read_bytes().splitlines()
  lines[90] = b"\xff"
  path.write_bytes(b"\n".join(lines))
  code, _, err = run_filter(
    predict,
    task="vectors",
    init_checkpoint=trained,
    input_file=path,
    output_file=tmp_path / "out",
    **{"runner": "beam", "beam_args": dask, "num_shards": 4, "max_seq_length": 16},
  )
  assert code == 1
  assert f"ERROR: {path}, line 91: byte 0xff is not UTF-8." in err


@pytest.mark.slow
def test_several_processes_of_beam_write_the_same(trained, tmp_path):
  runner = "--runner=DirectRunner --direct_running_mode=multi_processing --direct_num_workers=2"
  flags = {"init_checkpoint": trained, "max_seq_length": 16, "layers": "-1"}
  one, many = both(extract_features, tmp_path, runner, 4, **flags)
  assert one == many
