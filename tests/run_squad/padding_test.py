"""Tests of run_squad.py --pad_to_longest, and of the order in which windows are predicted."""

import numpy as np
import pytest
import tensorflow as tf

from bert import run_squad
from bert.tasks import squad_features
from tests.kit.script_runs import Script, json_in, results_in, values_in
from tests.kit.tiny_questions import NUM_DEV, contexts, train_and_predict, windows_of, write_squad

script = Script(run_squad)
run, run_well, error_of = script.run, script.run_well, script.error_of


@pytest.mark.parametrize(("pad_to_longest", "lengths"), [(False, {24}), (True, {16, 24})])
def test_batches(v1, pad_to_longest, lengths):
  """Windows of 12 to 24 pieces, cut to multiples of 8 or not at all."""
  for name, is_training in (("train", True), ("eval", False)):
    input_fn = run_squad.input_fn_builder(
      str(v1.out / f"{name}.tf_record"), 24, is_training, False, pad_to_longest=pad_to_longest
    )
    batches = list(input_fn({"batch_size": 1, "seed": 1}).take(20))
    assert {batch["input_ids"].shape[1] for batch in batches} == lengths
    assert ("start_positions" in batches[0]) == is_training
    assert {value.dtype for value in batches[0].values()} == {tf.int32}


def assert_equal_nbest(found, expected) -> None:
  assert [a["text"] for a in found] == [a["text"] for a in expected]
  for key in ("probability", "start_logit", "end_logit"):
    np.testing.assert_allclose(
      [a[key] for a in found], [a[key] for a in expected], rtol=0, atol=1e-5
    )


@pytest.mark.ci
def test_with_pad_to_longest_neither_batch_nor_length_changes_an_answer(v1, tmp_path):
  """With weights that are not trained: trained ones are so sure that little can move them."""
  values = {**v1.flags, "output_dir": tmp_path / "out", "init_checkpoint": v1.out / "model.ckpt-0"}
  values.update(pad_to_longest=True, do_predict=True, doc_stride=16)
  write_squad(tmp_path / "short.json", [c for c in contexts(NUM_DEV, 2) if len(c.split()) < 17])
  values["predict_file"] = tmp_path / "short.json"

  def nbest(**more):
    run_well(**{**values, **more})
    return json_in(tmp_path / "out" / "nbest_predictions.json")

  expected = nbest()
  for options in ({"predict_batch_size": 1}, {"max_seq_length": 32, "predict_batch_size": 3}):
    for qid, answers in nbest(**options).items():
      assert_equal_nbest(answers, expected[qid])
  # The original's way: padding takes part, so its amount shows.
  padded = [nbest(pad_to_longest=False, max_seq_length=n, n_best_size=8) for n in (24, 32)]
  assert padded[0] != padded[1]


@pytest.mark.ci
def test_windows_of_like_length_are_predicted_together(v1, tmp_path, monkeypatch):
  """In chunks, and no file of answers shows it. Weights are not trained, as above."""
  values = {**v1.flags, "init_checkpoint": v1.out / "model.ckpt-0", "predict_batch_size": 3}
  nbest, lengths, orders = [], [], []
  answer = run_squad.answer_questions

  def answer_and_note(examples, windows, *args, **options):
    orders.append([window.unique_id for window in windows])
    return answer(examples, windows, *args, **options)

  monkeypatch.setattr(run_squad, "answer_questions", answer_and_note)
  for chunk_size in (1, 10):
    monkeypatch.setattr(squad_features, "_SORTED_WINDOWS", chunk_size)
    out = values["output_dir"] = tmp_path / str(chunk_size)
    run_well(**values, do_predict=True, pad_to_longest=True)
    nbest.append(json_in(out / "nbest_predictions.json"))
    lengths.append([sum(record["input_mask"]) for record in values_in(out / "eval.tf_record")])
  windows = windows_of(v1, "predict_file", False)
  assert lengths[0] == [len(window.tokens) for window in windows]
  chunks = [lengths[0][i : i + 10] for i in range(0, len(windows), 10)]
  assert lengths[1] == [length for chunk in chunks for length in sorted(chunk)] != lengths[0]
  # Of equal scores the first found counts, so the order of windows is part of the answers.
  assert orders == [[window.unique_id for window in windows]] * 2
  assert list(nbest[0]) == list(nbest[1])
  for qid, answers in nbest[0].items():
    assert_equal_nbest(nbest[1][qid], answers)


def test_pad_to_longest_is_the_default_without_its_padding(v1, tmp_path, monkeypatch):
  """That padding competes with the text is the whole difference."""
  values = {**v1.flags, "init_checkpoint": v1.out / "model.ckpt-0", "do_predict": True}
  run_well(**{**values, "output_dir": tmp_path / "longest", "pad_to_longest": True})
  answer = run_squad.answer_questions

  def answer_without_padding(examples, windows, results, *args, **options):
    cut = [
      run_squad.RawResult(unique_id, start[: len(window.tokens)], end[: len(window.tokens)])
      for window, (unique_id, start, end) in zip(windows, results, strict=True)
    ]
    return answer(examples, windows, cut, *args, **options)

  monkeypatch.setattr(run_squad, "answer_questions", answer_without_padding)
  run_well(**{**values, "output_dir": tmp_path / "default"})
  expected = json_in(tmp_path / "default" / "nbest_predictions.json")
  for qid, answers in json_in(tmp_path / "longest" / "nbest_predictions.json").items():
    assert_equal_nbest(answers, expected.pop(qid))
  assert not expected


@pytest.mark.ci
def test_training_with_pad_to_longest_learns(model, tmp_path):
  trained = train_and_predict(model, tmp_path, False, pad_to_longest=True)
  assert results_in(trained.out / "eval_results.txt")["exact_match"] > 90
