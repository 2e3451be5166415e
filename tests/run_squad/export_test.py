"""Tests of run_squad.py --do_export: questions and paragraphs as strings, answered elsewhere."""

import json
import os

import numpy as np
import pytest

from bert import run_squad
from tests.kit.script_runs import Script, json_in, run_elsewhere
from tests.kit.tiny_questions import NUM_DEV, contexts, details_in

script = Script(run_squad)
run, run_well, error_of = script.run, script.run_well, script.error_of

_ELSEWHERE = """
import json, sys
import tensorflow as tf
import tensorflow_text
model = tf.saved_model.load(sys.argv[1])
question, context = map(tf.constant, json.load(sys.stdin))
outputs = model.signatures["serving_default"](question=question, context=context)
outputs = {name: values.numpy().tolist() for name, values in outputs.items()}
outputs["answer"] = [answer.decode() for answer in outputs["answer"]]
print(json.dumps(outputs))
"""


def answers_elsewhere(folder, dev) -> dict[str, list]:
  texts = json.dumps([["when was it ?"] * len(dev), dev])
  return json.loads(run_elsewhere(_ELSEWHERE, folder, cwd=folder, stdin=texts))


def assert_answers_are_those_of_the_run(found, folder):
  details = details_in(folder)
  assert found["answer"] == [detail["text"] for detail in details]
  for place in ("start", "end"):
    assert found[place] == [-1 if d[place] is None else d[place] for d in details]
  probabilities = [detail["probability"] for detail in details]
  np.testing.assert_allclose(found["probability"], probabilities, rtol=0, atol=1e-5)


@pytest.mark.slow
def test_an_exported_model_has_the_answers_of_its_run(v1, tmp_path):
  done = run_well(**v1.copied_to(tmp_path), do_export=True)
  exported = tmp_path / "out" / "export"
  assert sorted(os.listdir(exported)) == ["encoder", "preprocess", "task"]
  assert f"Exported the fine-tuned model of {tmp_path / 'out' / 'model.ckpt-60'}" in done.err
  found = answers_elsewhere(exported / "task", contexts(NUM_DEV, 2))
  assert sorted(found) == ["answer", "end", "probability", "score", "start"]
  assert_answers_are_those_of_the_run(found, v1.out)


@pytest.mark.slow
def test_an_exported_model_of_2_0_without_padding(v2, tmp_path):
  """With other settings, that all of them reach it."""
  values = {
    **v2.copied_to(tmp_path),
    **dict(n_best_size=3, max_answer_length=2, doc_stride=5, max_query_length=2),
    **dict(null_score_diff_threshold=-1.5, pad_to_longest=True),
  }
  run_well(**values, do_predict=True, do_export=True, export_dir=tmp_path / "elsewhere")
  found = answers_elsewhere(tmp_path / "elsewhere" / "task", contexts(NUM_DEV, 2, True))
  assert_answers_are_those_of_the_run(found, tmp_path / "out")
  odds = json_in(tmp_path / "out" / "null_odds.json")
  np.testing.assert_allclose(found["null_odds"], list(odds.values()), rtol=0, atol=1e-4)


def test_nothing_to_export(v1, tmp_path):
  message = error_of(**{**v1.flags, "output_dir": tmp_path}, do_export=True)
  assert "--do_export: there is no checkpoint in --output_dir" in message
