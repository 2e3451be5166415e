"""Tests of what runs share and what is averaged over them."""

import json
import math
import threading

import numpy as np
import pytest

from bert.scripts import run_outputs
from bert.tasks.classification import InputExample
from bert.tasks.squad import SquadExample
from bert.tasks.squad_answers import averaged_answers


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


def answers(**probabilities):
  return [{"text": text, "probability": p} for text, p in probabilities.items()]


QUESTION = SquadExample("q", "when ?", ["in", "1997"])


def test_answers_by_hand():
  runs = [{"q": answers(a=0.6, b=0.4)}, {"q": answers(b=0.7, c=0.3)}]
  [found] = averaged_answers([QUESTION], runs, n_best_size=2)
  assert [answer.text for answer in found.nbest] == ["b", "a"]
  assert found.prediction.text == "b"
  assert found.null_odds is None
  # 0.55 and 0.3 of what is kept.
  assert found.probabilities == pytest.approx([0.55 / 0.85, 0.3 / 0.85])


@pytest.mark.parametrize(("threshold", "text"), [(0.0, ""), (1.0, "b")])
def test_no_answer_by_hand(threshold, text):
  runs = [
    {"q": [*answers(b=0.6), {"text": "", "probability": 0.4}]},
    {"q": [*answers(a=0.3), {"text": "", "probability": 0.7}]},
  ]
  [found] = averaged_answers(
    [QUESTION],
    runs,
    n_best_size=1,
    version_2_with_negative=True,
    null_score_diff_threshold=threshold,
  )
  # "" has 0.55 and "b" 0.3; the best answer is kept beside it, whatever `n_best_size` says.
  assert found.prediction.text == text
  assert found.null_odds == pytest.approx(math.log(0.55 / 0.3))


def test_other_questions_are_refused(tmp_path):
  (tmp_path / "nbest_predictions.json").write_text(json.dumps({"other": []}))
  with pytest.raises(ValueError, match="has other questions"):
    run_outputs.mean_answers([str(tmp_path)], [QUESTION], n_best_size=1)
