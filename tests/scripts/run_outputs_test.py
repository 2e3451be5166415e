"""Tests of what runs share and what is averaged over them."""

import threading

import numpy as np
import pytest

from bert.scripts import run_outputs
from bert.tasks.classification import InputExample


def test_keys_depend_on_content_alone():
  one = InputExample("a", "x", "y", label="1", source="data/dev.tsv:1")
  same = InputExample("a", "x", "y", label="1", source="copy/dev.tsv:1")
  other = InputExample("a", "x", "y", label="0")
  key = run_outputs.key_of({"length": 8}, [one])
  assert key == run_outputs.key_of({"length": 8}, [same])
  assert len({key, run_outputs.key_of({"length": 9}, [one]), run_outputs.key_of({}, [other])}) == 3


def test_only_one_of_several_writes(tmp_path):
  path, calls = tmp_path / "features" / "train.tf_record", []

  def write(name):
    calls.append(name)
    path.write_text("records")
    return 7

  threads = [
    threading.Thread(target=run_outputs.write_once, args=(str(path), "key", write))
    for _ in range(3)
  ]
  for thread in threads:
    thread.start()
    thread.join()
  assert calls == [str(path)]
  assert run_outputs.write_once(str(path), "key", write) == 7
  with pytest.raises(ValueError, match=r"train\.tf_record was made from other data"):
    run_outputs.write_once(str(path), "other", write)


def test_a_write_that_was_killed_is_repeated(tmp_path):
  path = tmp_path / "train.tf_record"
  path.write_text("whole, but its key is missing")
  assert run_outputs.write_once(str(path), "key", lambda name: 3) == 3


def test_the_mean_of_outputs(tmp_path):
  arrays = [np.random.default_rng(seed).random([5, 2]).astype(np.float32) for seed in (1, 2, 3)]
  folders = []
  for number, array in enumerate(arrays):
    folders.append(str(tmp_path / str(number)))
    (tmp_path / str(number)).mkdir()
    run_outputs.write_outputs(folders[-1], "eval", "key", array)
  found = run_outputs.mean_outputs(folders, "eval", "key")
  np.testing.assert_allclose(found, np.mean(arrays, axis=0), rtol=1e-6)
  # The mean of one is itself, bit for bit.
  one = run_outputs.mean_outputs(folders[:1], "eval", "key")
  assert one.dtype == np.float32
  assert one.tobytes() == arrays[0].tobytes()
  with pytest.raises(ValueError, match="of other examples than those that are read now"):
    run_outputs.mean_outputs(folders, "eval", "other")
  with pytest.raises(ValueError, match=r"outputs_predict\.npz does not exist"):
    run_outputs.mean_outputs(folders, "predict", "key")
  (tmp_path / "0" / "outputs_eval.npz").write_bytes(b"PK damaged")
  with pytest.raises(ValueError, match="is damaged"):
    run_outputs.mean_outputs(folders, "eval", "key")
