"""Tests of averaged weights: the greedy choice, and the mean against NumPy."""

import numpy as np
import pytest

from bert.checkpoints import bundle_files, numpy_reader, numpy_writer
from bert.sweeps import weight_soup
from bert.sweeps.sweep import Outcome, Run


def make_run(folder, value, score, seed):
  """A run whose weights are all `value`."""
  folder.mkdir()
  tensors = {
    "bert/pooler/dense/bias": np.full([3], value, np.float32),
    "bert/pooler/dense/bias/adam_m": np.ones([3], np.float32),
    "global_step": np.array(9, np.int64),
  }
  prefix = str(folder / "model.ckpt-9")
  numpy_writer.write(prefix, tensors)
  bundle_files.write_sidecar(prefix, {"fingerprint": {"task_name": "x"}})
  (folder / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-9"\n')
  (folder / "vocab.txt").write_text("[PAD]\n")
  return outcome_of(seed, str(folder), score)


def outcome_of(seed, folder, score):
  name = "eval_accuracy"
  return Outcome(Run(seed, folder), {name: score}, headline=(name,), metrics=(name,))


@pytest.fixture
def runs(tmp_path):
  """Three runs with the weights 1, 2 and 6; the second is the best."""
  scores = {1.0: 0.7, 2.0: 0.8, 6.0: 0.75}
  return [make_run(tmp_path / f"seed_{v:g}", v, s, int(v)) for v, s in scores.items()]


def evaluator(score_of_mean):
  """Scores a folder by the value of its weights."""

  def evaluate(folder):
    value = read(folder)["bert/pooler/dense/bias"][0]
    return outcome_of(None, folder, score_of_mean(value))

  return evaluate


def read(folder):
  reader = numpy_reader.CheckpointReader(numpy_reader.find_prefix(folder))
  return {name: reader.read(name) for name in reader.shapes}


def test_a_run_joins_if_the_score_does_not_fall(tmp_path, runs):
  scores = {4.0: 0.79, 1.5: 0.81}  # 2 and 6: worse than the best; 2 and 1: better
  result = weight_soup.make(str(tmp_path / "soup"), runs, evaluator(lambda v: scores[float(v)]))
  assert (result.members, result.score, result.median) == ([2, 1], 0.81, 0.75)
  assert result.is_kept
  found = read(tmp_path / "soup")
  np.testing.assert_array_equal(found["bert/pooler/dense/bias"], np.full([3], 1.5, np.float32))
  assert found["global_step"] == 9
  assert not any(name.endswith("adam_m") for name in found)
  assert (tmp_path / "soup" / "vocab.txt").is_file()
  bundle_files.check_sidecar(str(tmp_path / "soup" / "model.ckpt-9"))
  assert not [path for path in tmp_path.iterdir() if path.name.startswith(".soup")]


def test_all_of_equal_scores_join(tmp_path, runs):
  result = weight_soup.make(str(tmp_path / "soup"), runs, evaluator(lambda v: 0.8))
  assert result.members == [2, 6, 1]
  np.testing.assert_array_equal(read(tmp_path / "soup")["bert/pooler/dense/bias"], [3, 3, 3])


def test_a_mean_that_does_not_beat_the_median_is_not_written(tmp_path, runs):
  for run in runs:
    run.results = {"eval_accuracy": 0.8}
  (tmp_path / "soup").mkdir()  # of an earlier time, with fewer seeds
  result = weight_soup.make(str(tmp_path / "soup"), runs, evaluator(lambda v: 0.8))
  assert not result.is_kept
  assert not (tmp_path / "soup").exists()


def test_no_member_but_the_best(tmp_path, runs):
  result = weight_soup.make(str(tmp_path / "soup"), runs, evaluator(lambda v: 0.1))
  assert (result.members, result.is_kept, result.score) == ([2], False, 0.8)


def test_a_stop_leaves_nothing(tmp_path, runs):
  assert weight_soup.make(str(tmp_path / "soup"), runs, lambda folder: None) is None
  assert {path.name for path in tmp_path.iterdir()} == {"seed_1", "seed_2", "seed_6"}


def test_models_of_other_shapes_are_refused(tmp_path, runs):
  numpy_writer.write(f"{runs[0].run.folder}/model.ckpt-9", {"bert/pooler/dense/bias": np.ones([2])})
  with pytest.raises(ValueError, match="differ in the shape of bert/pooler/dense/bias"):
    weight_soup.write_mean(str(tmp_path / "soup"), runs)
