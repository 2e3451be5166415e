"""Tests of distill.py: students of the four scripts, as a user starts them.

Alone: python -m pytest tests/distill_test.py (a minute with -m "", most of it compiling graphs)
"""

import math
import re
import shutil
import sys
from unittest import mock

import numpy as np
import pytest

from bert import distill, run_classifier
from bert.predicting import load_run
from bert.predicting.predictor import Predictor
from bert.scripts import distillation_settings
from tests.kit import teachers, tiny_bert, tiny_choices, tiny_entities, tiny_pairs, tiny_questions
from tests.kit.event_files import series_in
from tests.kit.script_runs import (
  Script,
  assert_same_tensors,
  json_in,
  results_in,
  stopped_after,
  tensors,
  values_in,
)
from tests.kit.tiny_sentences import VOCAB, write_mrpc, write_rows

HEAD = {"output_weights": (2, 16), "output_bias": (2,)}
CLASSES = {"task_name": "mrpc", "labels": ["0", "1"], "problem_type": "classification"}
LENGTH = {"max_seq_length": 16}


def run(*arguments, **values):
  """Runs distill.py, which looks for the teacher among the words of the command line."""
  script = Script(distill)
  argv = ["distill.py", *arguments, *(f"--{name}={value}" for name, value in values.items())]
  with mock.patch.object(sys, "argv", argv):
    return script.run(*arguments, **values)


def run_well(*arguments, **values):
  done = run(*arguments, **values)
  assert done.code is None, done.err
  return done


def error_of(*arguments, **values) -> str:
  done = run(*arguments, **values)
  assert done.code == 1, done.err
  assert "Traceback" not in done.err
  return done.err[done.err.index("ERROR: ") :].splitlines()[0]


@pytest.fixture(scope="session")
def classes(tmp_path_factory):
  """A teacher of MRPC."""
  folder = tmp_path_factory.mktemp("teacher") / "mrpc"
  return teachers.write(folder, VOCAB, CLASSES, HEAD, LENGTH)


@pytest.fixture(scope="session")
def mrpc(tmp_path_factory, classes) -> dict:
  """Flags of a student of that teacher."""
  data = tmp_path_factory.mktemp("MRPC")
  write_mrpc(data)
  return {
    **{"teacher": classes, "data_dir": data, "num_hidden_layers": 1, "train_batch_size": 8},
    **{"do_train": True, "learning_rate": 0.01, "num_train_epochs": 1.0},
  }


# ---------------------------------------------------------------------------------------------
# A student.


@pytest.fixture(scope="session")
def student(mrpc, tmp_path_factory):
  """Two steps, with evaluation. Tests only read its folder."""
  out = tmp_path_factory.mktemp("student") / "out"
  return out, run_well(**mrpc, output_dir=out, do_eval=True, save_summary_steps=1)


@pytest.mark.ci
def test_a_student_of_a_classifier(student, classes):
  out, done = student
  assert "From the teacher's run: --task_name=mrpc --max_seq_length=16" in done.err
  assert "The student has layer 0 of " in done.err
  found = tensors(out / "model.ckpt-2")
  assert not any("layer_1" in name for name in found)
  parts = series_in(out)
  assert set(parts["soft_loss"]) == set(parts["label_loss"]) == {1, 2}
  for step, loss in parts["loss"].items():
    expected = (parts["soft_loss"][step] + parts["label_loss"][step]) / 2
    assert math.isclose(loss, expected, rel_tol=1e-5)
  assert results_in(out / "eval_results.txt")["global_step"] == 2
  assert json_in(out / "bert_config.json")["num_hidden_layers"] == 1
  started = tensors(out / "student" / "bert_model.ckpt")
  for name, value in tensors(classes / "model.ckpt-1").items():
    if name != "global_step" and "layer_1" not in name:
      np.testing.assert_array_equal(started[name], value)


@pytest.mark.ci
def test_its_folder_is_one_of_run_classifier(student, mrpc, tmp_path):
  out, _ = student
  flags = {"data_dir": mrpc["data_dir"], "task_name": "MRPC", "max_seq_length": 16}
  script = Script(run_classifier)
  script.run_well(**flags, init_checkpoint=out, output_dir=tmp_path / "out", do_predict=True)
  copied = shutil.copytree(out, tmp_path / "copied")
  script.run_well(**flags, output_dir=copied, do_eval=True)
  [answer] = Predictor.load(out)([("the film was good", "the film")])
  assert answer["label"] in ("0", "1")


@pytest.mark.ci
def test_one_and_one_step_are_two_bit_for_bit(student, mrpc, tmp_path):
  flags = {**mrpc, "output_dir": tmp_path / "out", "save_checkpoints_steps": 1}
  with stopped_after(1):
    assert run(**flags).code == 130
  assert "Resumed from" in run_well(**flags).err
  assert_same_tensors(student[0] / "model.ckpt-2", tmp_path / "out" / "model.ckpt-2")


def test_another_teacher_is_refused(student, mrpc, tmp_path):
  other = teachers.write(tmp_path / "teacher", VOCAB, CLASSES, HEAD, LENGTH, seed=6)
  copied = shutil.copytree(student[0], tmp_path / "out")
  found = error_of(**{**mrpc, "teacher": other, "output_dir": copied})
  assert re.search(r": teacher was '\w+', now '\w+'. Choose", found)


@pytest.mark.ci
def test_texts_without_labels(mrpc, tmp_path):
  (tmp_path / "more.txt").write_text("the film was good\tthe film\n\nthe film was bad\tgood\n" * 6)
  flags = {**mrpc, "unlabelled_file": tmp_path / "more.txt", "save_summary_steps": 1}
  done = run_well(**flags, output_dir=tmp_path / "out", label_weight=1.0)
  assert "12 texts without labels, 20 examples with." in done.err
  labels = [r["label_ids"][0] for r in values_in(tmp_path / "out" / "train.tf_record")]
  assert labels.count(-1) == 12
  parts = series_in(tmp_path / "out")
  assert len(parts["loss"]) == 4
  assert parts["loss"] == pytest.approx(parts["label_loss"])

  (tmp_path / "one.txt").write_text("the film was good\n")
  wrong = {**flags, "unlabelled_file": tmp_path / "one.txt", "output_dir": tmp_path / "other"}
  assert f"{tmp_path}/one.txt, line 1: one text, but the examples of the task" in error_of(**wrong)


# ---------------------------------------------------------------------------------------------
# Other tasks.


def _numbers(folder):
  write_rows(folder, "train.tsv", ("text_a", "label"), *((f"the {i % 3}", i) for i in range(12)))
  write_rows(folder, "dev.tsv", ("text_a", "label"), *((f"the {i % 3}", i) for i in range(6)))
  facts = {"task_name": "csv", "labels": ["score"], "problem_type": "regression"}
  heads = {"output_weights": (1, 16), "output_bias": (1,)}
  return VOCAB, facts, heads, LENGTH, {"data_dir": folder, "task_name": "csv"}


def _topics(folder):
  rows = [("the good" if i % 2 else "the bad", "a,b" if i % 3 else "") for i in range(12)]
  for name in ("train.tsv", "dev.tsv"):
    write_rows(folder, name, ("text_a", "label"), *rows)
  facts = {"task_name": "csv", "labels": ["b", "a"], "problem_type": "multi_label"}
  return VOCAB, facts, HEAD, LENGTH, {"data_dir": folder, "labels": "a,b"}


def _tags(folder):
  tiny_entities.write_conll(folder / "train.conll", tiny_entities.sentences(16, 1))
  tiny_entities.write_conll(folder / "dev.conll", tiny_entities.sentences(8, 2))
  labels = ["O", "B-LOC", "I-LOC", "B-PER", "I-PER"]
  heads = {"output_weights": (5, 16), "output_bias": (5,)}
  facts = {"task_name": "ner", "labels": labels}
  return tiny_entities.VOCAB, facts, heads, LENGTH, {"data_dir": folder}


def _spans(folder):
  files = {"train_file": folder / "train.json", "predict_file": folder / "dev.json"}
  for seed, path in enumerate(files.values()):
    tiny_questions.write_squad(path, tiny_questions.contexts(12, seed))
  facts = {"task_name": "squad", "version_2_with_negative": False, "answer_head": "bert"}
  heads = {"cls/squad/output_weights": (2, 16), "cls/squad/output_bias": (2,)}
  settings = {"max_seq_length": 24, "doc_stride": 8, "max_query_length": 4}
  return tiny_questions.VOCAB, facts, heads, settings, files


def _choices(folder):
  tiny_choices.write_csv(folder / "train.csv", tiny_choices.questions(12, 1, fewer=True))
  tiny_choices.write_csv(folder / "val.csv", tiny_choices.questions(8, 2))
  heads = {"output_weights": (1, 16)}
  settings = {"max_seq_length": 24}
  return tiny_choices.VOCAB, {"task_name": "swag"}, heads, settings, {"data_dir": folder}


@pytest.mark.ci
@pytest.mark.parametrize(
  "task",
  [
    _numbers,
    _tags,
    *(pytest.param(t, marks=pytest.mark.slow) for t in (_topics, _spans, _choices)),
  ],
)
def test_students_of_other_tasks(task, tmp_path):
  vocabulary, facts, heads, settings, flags = task(tmp_path / "data")
  teacher = teachers.write(tmp_path / "teacher", vocabulary, facts, heads, settings)
  flags = {**flags, "teacher": teacher, "num_hidden_layers": 1, "train_batch_size": 4}
  flags |= {"do_train": True, "do_eval": True, "num_train_epochs": 1.0, "save_summary_steps": 1}
  run_well(**flags, output_dir=tmp_path / "out")
  parts = series_in(tmp_path / "out")
  assert len(parts["soft_loss"]) == len(parts["label_loss"]) >= 3
  assert load_run.find_run(tmp_path / "out").kind == load_run.find_run(teacher).kind


@pytest.mark.slow
@pytest.mark.parametrize("task", [_tags, _spans, _choices])
def test_tinybert_of_other_tasks(task, tmp_path):
  """Layers, then predictions; both halves leave runs of the task."""
  vocabulary, facts, heads, settings, flags = task(tmp_path / "data")
  teacher = teachers.write(tmp_path / "teacher", vocabulary, facts, heads, settings)
  flags = {**flags, "teacher": teacher, "num_hidden_layers": 1, "train_batch_size": 4}
  flags |= {"method": "tinybert", "stage": "task", "do_train": True, "num_train_epochs": 1.0}
  out = tmp_path / "out"
  run_well(**flags, output_dir=out, save_summary_steps=1)
  layers, predictions = series_in(out / "layers"), series_in(out)
  assert {"att_loss", "rep_loss"} <= layers.keys()
  assert predictions["loss"] == predictions["soft_loss"]
  for folder in (out / "layers", out):
    assert load_run.find_run(folder).kind == load_run.find_run(teacher).kind


@pytest.mark.ci
def test_a_student_that_is_its_teacher_has_nothing_to_learn_from_it(tmp_path):
  """Of questions, whose head drops nothing out; another student has much to learn."""
  vocabulary, facts, heads, settings, flags = _spans(tmp_path / "data")
  teacher = teachers.write(tmp_path / "teacher", vocabulary, facts, heads, settings)
  no_dropout = tiny_bert.write_config(
    tmp_path / "bert_config.json", len(vocabulary), num_hidden_layers=2, **tiny_bert.NO_DROPOUT
  )
  flags |= {"teacher": teacher, "train_batch_size": 4, "do_train": True, "learning_rate": 0.0}
  flags |= {"num_train_epochs": 1.0, "save_summary_steps": 1}
  same = {"init_checkpoint": teacher, "bert_config_file": no_dropout}
  run_well(**flags, **same, output_dir=tmp_path / "same")
  run_well(**flags, num_hidden_layers=1, output_dir=tmp_path / "other")
  losses = {
    name: list(series_in(tmp_path / name)["soft_loss"].values()) for name in ("same", "other")
  }
  assert max(losses["same"]) < 1e-6
  assert min(losses["other"]) > 1e-3


# ---------------------------------------------------------------------------------------------
# Messages.


@pytest.mark.parametrize(
  ("changes", "message"),
  [
    ({"teacher": None}, "--teacher is missing: give the folder of a run that trained"),
    ({"teacher": "/nowhere"}, "/nowhere"),
    ({"method": "logit"}, 'Flag --method takes one of .*, not "logit". Did you mean logits'),
    ({"script": "run_ner"}, "--script=run_ner, but --teacher=.* is a run of run_classifier"),
    ({"num_hidden_layers": None}, "Which student\\? --num_hidden_layers=3 takes three of"),
    ({"num_hidden_layers": 3}, "--num_hidden_layers=3: .* has 2 layers to choose from"),
    ({"num_hidden_layers": 0}, "--num_hidden_layers=0: must be at least 1"),
    ({"student_layers": "0,1"}, "names 2 layers, --num_hidden_layers=1: leave the latter out"),
    ({"student_layers": "2"}, "--student_layers=2: the model has no layer 2: its 2 layers are"),
    ({"student_layers": "x"}, "--student_layers=x: give numbers of layers, such as 0,2,5"),
    ({"temperature": 0}, "--temperature=0.0: must be a positive number"),
    ({"label_weight": 2}, "--label_weight=2.0: must be between 0 and 1"),
    ({"bert_config_file": "x.json"}, "--num_hidden_layers cuts the student from a checkpoint, and"),
    ({"max_seq_length": 64}, "sequence length 64"),
  ],
)
def test_messages(mrpc, tmp_path, changes, message):
  flags = {**mrpc, "output_dir": tmp_path / "out", **changes}
  flags = {name: value for name, value in flags.items() if value is not None}
  assert len(found := error_of(**flags)) < 500
  assert re.search(message, found), found


def test_the_teachers_own_folder(mrpc, classes):
  before = sorted(classes.iterdir())
  assert "is the teacher's folder. Give the student another one." in error_of(
    **{**mrpc, "output_dir": classes}
  )
  assert sorted(classes.iterdir()) == before


def test_a_student_of_another_vocabulary(mrpc, tmp_path):
  model = tiny_bert.write(tmp_path, [*VOCAB, "more"])
  flags = {**mrpc, **model, "output_dir": tmp_path / "out"}
  flags.pop("num_hidden_layers")
  found = error_of(**flags)
  assert f"The student's vocabulary, {tmp_path}/vocab.txt, is not the teacher's" in found


def test_a_teacher_of_other_labels(mrpc, tmp_path):
  facts = {**CLASSES, "labels": ["no", "yes"]}
  teacher = teachers.write(tmp_path / "teacher", VOCAB, facts, HEAD, LENGTH)
  found = error_of(**{**mrpc, "teacher": teacher}, output_dir=tmp_path / "out")
  assert "the teacher has the labels no, yes, the student 0, 1. Both need the same." in found


@pytest.fixture(scope="module")
def pairs(tmp_path_factory) -> dict:
  """Flags of a student of vectors, and of its teacher."""
  folder = tmp_path_factory.mktemp("pairs")
  facts = {"task_name": "similarity", "pooling": "max"}
  teacher = teachers.write(folder / "teacher", tiny_pairs.VOCAB, facts, {}, LENGTH)
  tiny_pairs.write(folder / "train.csv", tiny_pairs.pairs(16, 1))
  return {
    **{"teacher": teacher, "train_file": folder / "train.csv", "num_hidden_layers": 1},
    **{"do_train": True, "train_batch_size": 8, "learning_rate": 0.01, "num_train_epochs": 1.0},
  }


@pytest.mark.ci
def test_a_student_of_vectors(pairs, tmp_path):
  done = run_well(**pairs, output_dir=tmp_path, save_summary_steps=1)
  assert "From the teacher's run: --pooling=max --max_seq_length=16" in done.err
  parts = series_in(tmp_path)
  assert 0 < parts["soft_loss"][2] < parts["soft_loss"][1]
  assert load_run.find_run(tmp_path).facts["pooling"] == "max"


def test_vectors_of_another_width_are_refused(pairs, tmp_path):
  wider = tiny_bert.write(tmp_path, tiny_pairs.VOCAB, hidden_size=32)
  values = {**pairs, **wider, "num_hidden_layers": None, "output_dir": tmp_path / "out"}
  found = error_of(**{name: value for name, value in values.items() if value is not None})
  assert "makes vectors of 16 numbers, the student of 32" in found


@pytest.mark.parametrize(
  ("words", "script"),
  [
    (["--script=run_squad"], "run_squad"),
    (["--teacher=/nowhere", "--script", "run_ner"], "run_ner"),
    (["--teacher=/nowhere"], "run_classifier"),
    ([], "run_classifier"),
  ],
)
def test_flags_are_those_of_the_script(words, script):
  assert distillation_settings.script_of(["distill.py", *words]) == script


def test_the_teacher_says_which_script(classes):
  assert (
    distillation_settings.script_of(["distill.py", "--teacher", str(classes)]) == "run_classifier"
  )
