"""Vectors by Apache Beam on several processes, Beam's own workers.

Alone: python -m pytest -m slow tests/predicting/beam_clusters_test.py (a minute)
"""

import pytest

from bert import extract_features
from tests.kit import many_texts
from tests.kit.filters import run_filter

pytest.importorskip("apache_beam")


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
def test_several_processes_of_beam_write_the_same(trained, tmp_path):
  runner = "--runner=DirectRunner --direct_running_mode=multi_processing --direct_num_workers=2"
  flags = {"init_checkpoint": trained, "max_seq_length": 16, "layers": "-1"}
  one, many = both(extract_features, tmp_path, runner, 4, **flags)
  assert one == many
