"""run_squad.py with the heads of ELECTRA and ALBERT, on tiny models of both."""

import json

import numpy as np
import pytest
import tensorflow as tf

from bert import run_squad
from bert.predicting.predictor import Predictor
from tests.kit import tiny_bert
from tests.kit.script_runs import Script, json_in, results_in, tensors
from tests.kit.tiny_questions import VOCAB, YEARS, contexts, train_and_predict, write_squad

script = Script(run_squad)
run_well, error_of = script.run_well, script.error_of

ELECTRA = {"model_type": "electra", "embedding_size": 8, "hidden_act": "gelu"}
ALBERT = {"model_type": "albert", "embedding_size": 8, "num_hidden_groups": 1}
LENGTHS = {"max_seq_length": 24, "doc_stride": 8, "max_query_length": 4, "train_batch_size": 8}


@pytest.fixture(scope="module", params=["electra", pytest.param("albert", marks=pytest.mark.slow)])
def trained(request, tmp_path_factory):
  """A run that trains and answers questions of which half have no answer."""
  folder = tmp_path_factory.mktemp(request.param)
  config = {"electra": ELECTRA, "albert": ALBERT}[request.param]
  flags = tiny_bert.write(folder, VOCAB, **config, **tiny_bert.NO_DROPOUT)
  head = {"answer_head": "electra", "beam_size": 4} if request.param == "electra" else {}
  return train_and_predict(
    {**flags, **LENGTHS, **head, "learning_rate": 0.01}, folder, True, eval_every_steps=30
  )


@pytest.mark.ci
def test_it_learns_and_says_where_there_is_no_answer(trained):
  predictions = json_in(trained.out / "predictions.json")
  assert set(predictions.values()) <= {"", *YEARS}
  assert "" in predictions.values()
  scores = results_in(trained.out / "eval_results.txt")
  assert scores["best_f1"] > 80.0
  # Of the best checkpoint: evaluation in the middle of training works with this head, too.
  assert scores["global_step"] in (30, 60)


@pytest.mark.ci
def test_variables_are_the_familys(trained):
  names = {n for n in tensors(trained.out / "model.ckpt-60") if "adam" not in n}
  if trained.flags.get("answer_head"):
    expected = ["task_specific/squad/qa_hidden/kernel", "task_specific/squad/dense_3/bias"]
  else:
    expected = ["start_logits/dense/kernel", "end_logits/LayerNorm/beta"]
    expected += ["answer_class/dense_1/kernel"]
  assert names.issuperset(expected)
  assert not any(name.startswith("cls/squad") for name in names)


@pytest.mark.ci
def test_a_later_run_knows_the_head(trained, tmp_path):
  """And neither the batch nor its padding changes an answer."""
  flags = {name: value for name, value in trained.flags.items() if name != "answer_head"}
  flags |= {"init_checkpoint": trained.out / "best", "predict_batch_size": 1}
  run_well(**{**flags, "output_dir": tmp_path}, do_predict=True)
  for name in ("predictions.json", "null_odds.json"):
    found, expected = json_in(tmp_path / name), json_in(trained.out / name)
    assert list(found) == list(expected)
    for qid, value in expected.items():
      assert found[qid] == (value if isinstance(value, str) else pytest.approx(value, abs=1e-4))


@pytest.mark.slow
def test_export_and_folder_answer_alike(trained, tmp_path):
  """The export, and the folder, whose answers are made in Python."""
  flags = {**trained.flags, "init_checkpoint": trained.out / "best", "output_dir": tmp_path}
  run_well(**flags, do_predict=True, null_score_diff_threshold=0.0)
  run_well(**trained.flags, do_export=True, export_dir=tmp_path)
  questions = [
    (paragraph["qas"][0], paragraph["context"])
    for entry in json_in(trained.flags["predict_file"])["data"]
    for paragraph in entry["paragraphs"]
  ]
  items = [(qa["question"], context) for qa, context in questions]
  predictions, odds = (json_in(tmp_path / f"{name}.json") for name in ("predictions", "null_odds"))
  for predictor in (
    Predictor.load(str(tmp_path)),
    Predictor.load(trained.out),
  ):
    for (qa, context), answer in zip(questions, predictor(items), strict=True):
      assert answer["answer"] == predictions[qa["id"]]
      assert answer["null_odds"] == pytest.approx(odds[qa["id"]], abs=1e-4)
      start, end = answer["start"], answer["end"]
      assert not answer["answer"] or context[start:end] == answer["answer"]


@pytest.mark.ci
def test_another_head_cannot_resume(trained):
  flags = {**trained.flags, "answer_head": "bert", "num_train_epochs": 20.0}
  assert "answer_head was" in error_of(**flags, do_train=True)


def test_a_beam_of_nothing_says_so_before_anything_starts(tmp_path):
  flags = tiny_bert.write(tmp_path, VOCAB, **ALBERT)
  write_squad(tmp_path / "train.json", contexts(3, 1, True), version_2=True)
  flags |= {**LENGTHS, "train_file": tmp_path / "train.json", "output_dir": tmp_path / "out"}
  message = error_of(**flags, do_train=True, answer_head="electra", beam_size=0)
  assert "--beam_size=0: must be at least 1" in message


@pytest.mark.slow
def test_an_export_reads_with_a_sentencepiece_model(golden_dir, tmp_path):
  """Raw strings to the answers of the script, with ALBERT's head for SQuAD 2.0."""
  data = json_in(golden_dir / "squad" / "train_input-v2.0.json")["data"]
  paragraphs = [paragraph for article in data for paragraph in article["paragraphs"]]
  paragraphs = sorted(paragraphs, key=lambda paragraph: len(paragraph["context"]))[:2]
  path = tmp_path / "questions.json"
  path.write_text(json.dumps({"version": "v2.0", "data": [{"paragraphs": paragraphs}]}))
  model = golden_dir / "albert"
  run_well(
    albert_config_file=model / "config_A.json",
    spm_model_file=model / "tiny_spm.model",
    init_checkpoint=model / "model_A.ckpt",
    train_file=path,
    predict_file=path,
    output_dir=tmp_path / "out",
    do_train=True,
    do_predict=True,
    do_export=True,
    version_2_with_negative=True,
    null_score_diff_threshold=1000.0,
    max_seq_length=64,
    doc_stride=24,
    max_query_length=16,
    train_batch_size=8,
    learning_rate=5e-3,
    num_train_epochs=1,
  )
  asked = [(qa, each["context"]) for each in paragraphs for qa in each["qas"]]
  questions = tf.constant([qa["question"] for qa, _ in asked])
  contexts_asked = tf.constant([context for _, context in asked])
  answers = tf.saved_model.load(str(tmp_path / "out" / "export" / "task"))(
    questions, contexts_asked
  )
  predictions = json_in(tmp_path / "out" / "predictions.json")
  odds = json_in(tmp_path / "out" / "null_odds.json")
  assert len(set(predictions.values())) > 3
  assert [text.decode() for text in answers["answer"].numpy()] == [
    predictions[qa["id"]] for qa, _ in asked
  ]
  expected = [odds[qa["id"]] for qa, _ in asked]
  np.testing.assert_allclose(answers["null_odds"], expected, atol=1e-4)
