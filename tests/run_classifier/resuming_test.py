"""Tests of run_classifier.py in a folder that holds a run: a second call, a stop, other flags."""

import json
import pathlib
import shutil

import pytest
import tensorflow as tf

from bert import fine_tuning, run_classifier
from bert.checkpoints import bundle_files, finding, reading, saving
from bert.scripts.classifier_settings import ClassifierSettings
from tests.kit import byte_pairs, tiny_bert
from tests.kit.script_runs import (
  OF_TRAINING,
  Script,
  assert_same_tensors,
  results_in,
  stopped_after,
  tensors,
)
from tests.kit.tiny_sentences import VOCAB, write, write_rows

script = Script(run_classifier)
run, run_well, error_of = script.run, script.run_well, script.error_of


OF_MODEL = {"bert_config.json", "vocab.txt", "label_map.json"}


def make_old(folder) -> None:
  """Removes what earlier versions did not write."""
  for name in OF_MODEL | OF_TRAINING:
    (folder / name).unlink()


def test_prediction_in_a_second_call_and_from_another_folder(mrpc, tmp_path):
  values = mrpc.copied_to(tmp_path)
  out = tmp_path / "out"
  (out / "test_results.tsv").unlink()
  make_old(out)
  run_well(**values, do_predict=True)
  expected = (mrpc.out / "test_results.tsv").read_bytes()
  assert (out / "test_results.tsv").read_bytes() == expected
  for name in OF_MODEL:
    assert (out / name).read_bytes() == (mrpc.out / name).read_bytes()
  assert not any((out / name).exists() for name in OF_TRAINING), "this run did not train"

  # The folder of a run needs no other file of the model.
  values = {name: v for name, v in values.items() if name not in ("vocab_file", "bert_config_file")}
  for i, init_checkpoint in enumerate((mrpc.out, mrpc.out / "model.ckpt-20")):
    fresh = {**values, "output_dir": tmp_path / f"fresh{i}", "init_checkpoint": init_checkpoint}
    done = run_well(**fresh, do_predict=True)
    assert (tmp_path / f"fresh{i}" / "test_results.tsv").read_bytes() == expected
    assert "RANDOM" not in done.err


def test_a_run_that_only_predicts_has_the_length_of_the_training(mrpc, tmp_path):
  flags = {**mrpc.flags, "init_checkpoint": mrpc.out, "output_dir": tmp_path / "later"}
  del flags["max_seq_length"]
  done = run_well(**flags, do_predict=True)
  assert "--max_seq_length=16, as in the run that trained the model." in done.err
  results = (tmp_path / "later" / "test_results.tsv").read_bytes()
  assert results == (mrpc.out / "test_results.tsv").read_bytes()
  assert json.loads((tmp_path / "later" / "flags.json").read_text())["max_seq_length"] == 16

  given = {**flags, "output_dir": tmp_path / "given", "max_seq_length": 12}
  assert "as in the run" not in run_well(**given, do_predict=True).err
  # A checkpoint of the original says nothing of its run.
  original = pathlib.Path(shutil.copytree(mrpc.out, tmp_path / "original"))
  for sidecar in original.glob("*.state.json"):
    sidecar.unlink()
  flags |= {"init_checkpoint": original, "output_dir": tmp_path / "fresh"}
  assert "as in the run" not in run(**flags, do_predict=True).err


def test_five_and_five_steps_are_ten_bit_for_bit(mrpc, tmp_path):
  """With dropout and shuffling on, and a second process that knows nothing of the first."""
  values = {**mrpc.flags, "num_train_epochs": 4.0, "save_checkpoints_steps": 5, "do_train": True}
  run_well(**{**values, "output_dir": tmp_path / "straight"})

  with stopped_after(5):
    assert run(**{**values, "output_dir": tmp_path / "parts"}).code == 130
  assert not (tmp_path / "parts" / "model.ckpt-10.index").exists()
  make_old(tmp_path / "parts")
  done = run_well(**{**values, "output_dir": tmp_path / "parts"})
  assert "Resumed from" in done.err

  straight = tmp_path / "straight" / "model.ckpt-10"
  assert "output_weights/adam_v" in tensors(straight)
  assert_same_tensors(straight, tmp_path / "parts" / "model.ckpt-10")


def test_a_finished_run_is_skipped_and_more_epochs_only_inform(mrpc, tmp_path):
  values = mrpc.copied_to(tmp_path)
  before = (tmp_path / "out" / "model.ckpt-20.index").read_bytes()
  done = run_well(**values, do_train=True)
  assert "Skipping training since max_steps has already saved." in done.err
  assert (tmp_path / "out" / "model.ckpt-20.index").read_bytes() == before
  assert "Without effect" not in done.err

  done = run_well(**{**values, "learning_rate": 0.5}, do_train=True, do_predict=True)
  assert "Skipping training since max_steps has already saved." in done.err
  warning = (
    f"WARNING:tensorflow:NOTHING WAS TRAINED: --output_dir={tmp_path}/out holds a finished run, "
    f"{tmp_path}/out/model.ckpt-20, and all results are those of its weights. Without effect: "
    "learning_rate was 0.01, now 0.5. To train anew, give another --output_dir; to train this one "
    "for longer, raise --num_train_epochs=8."
  )
  lines = done.err.splitlines()
  assert lines[-1] == warning, "the end of the log, which is what people read"
  assert lines.count(warning) == 2

  changes = {"num_train_epochs": 9.0, "learning_rate": 0.001, "max_seq_length": 24}
  done = run_well(**{**values, **changes}, do_train=True)
  assert "NOTHING WAS TRAINED" not in done.err
  assert "num_train_epochs was 8.0, now 9.0" in done.err
  assert "learning_rate was 0.01, now 0.001" in done.err
  assert "max_seq_length was 16, now 24" in done.err
  assert int(tf.train.load_variable(str(tmp_path / "out"), "global_step")) == 22


@pytest.mark.ci
def test_the_best_checkpoint_of_evaluation_in_training_is_used(mrpc, tmp_path):
  """Accuracy is 1 after 10 of the 20 steps, so no later checkpoint is better."""
  out = tmp_path / "out"
  values = {**mrpc.flags, "output_dir": out, "eval_every_steps": 10}
  done = run_well(**values, do_train=True, do_eval=True)
  assert f"Using the best checkpoint, {out}/best/model.ckpt-10." in done.err
  assert results_in(out / "eval_results.txt")["global_step"] == 10
  with_head = {name for name, _ in tf.train.list_variables(str(out / "best"))}
  assert "output_weights" in with_head
  assert "output_weights/adam_m" not in with_head
  later = {**values, "eval_every_steps": 0}
  for step, more in [(10, {}), (20, {"init_checkpoint": out / "model.ckpt-20"})]:
    done = run_well(**later, **more, do_eval=True)
    assert f"model.ckpt-{step}" in done.err
    assert results_in(out / "eval_results.txt")["global_step"] == step
  run_well(**{**later, "num_train_epochs": 9.0}, do_train=True)
  assert finding.find_checkpoint(str(out)) == str(out / "model.ckpt-22"), "best/ is of step 10"


def test_a_checkpoint_without_the_head_is_not_evaluated_as_if_it_were_trained(mrpc, tmp_path):
  flags = mrpc.copied_to(tmp_path)
  prefix = finding.latest(flags["output_dir"])
  values = {name: v for name, v in tensors(prefix).items() if name != "output_weights"}
  for path in pathlib.Path(flags["output_dir"]).glob("model.ckpt*"):
    path.unlink()
  saving.save(flags["output_dir"], 9, values, {})
  assert "output_weights" in error_of(**flags, do_eval=True)


def test_a_checkpoint_of_another_size_names_both_shapes(mrpc, tmp_path):
  values = {**mrpc.flags, **other_config(tmp_path), "output_dir": tmp_path / "out"}
  message = error_of(**values, init_checkpoint=mrpc.out, do_eval=True)
  assert "the file has hidden size 16, the model 32" in message
  assert "model.ckpt-20 does not fit. Give the configuration that belongs to it" in message
  name = "bert/embeddings/word_embeddings"
  size = len(VOCAB)
  assert (
    f"{name}: float32 [{size}, 16] in the checkpoint, float32 [{size}, 32] in the model" in message
  )


def other_vocabulary(folder):
  write(folder, "vocab.txt", *VOCAB[:-2], VOCAB[-1], VOCAB[-2])
  return {"vocab_file": folder / "vocab.txt"}


def other_config(folder):
  path = tiny_bert.write_config(folder / "bert_config.json", len(VOCAB), hidden_size=32)
  return {"bert_config_file": path}


def other_task(folder):
  header = ("id", "qid1", "qid2", "question1", "question2", "is_duplicate")
  row = ("0", "0", "0", "the film", "the film", "1")
  write_rows(folder, "train.tsv", header, *[row] * 10)
  write_rows(folder, "dev.tsv", header, row)
  return {"task_name": "QQP", "data_dir": folder}


def other_labels(folder):
  write_rows(folder, "train.tsv", ("text_a", "label"), *[("the film", c) for c in "abc"] * 3)
  write_rows(folder, "dev.tsv", ("text_a", "label"), ("the film", "a"))
  return {"task_name": "csv", "data_dir": folder, "labels": "a,b,c"}


@pytest.mark.parametrize(
  ("change", "named", "modes"),
  [
    (other_vocabulary, ["vocabulary"], ["do_train", "do_eval"]),
    (other_config, ["hidden_size was 16, now 32"], ["do_train", "do_eval"]),
    (other_task, ["task_name was 'mrpc', now 'qqp'"], ["do_train"]),
    (other_labels, ["labels was ['0', '1'], now ['a', 'b', 'c']"], ["do_train", "do_eval"]),
    (lambda folder: {"do_lower_case": False}, ["do_lower_case was True, now False"], ["do_eval"]),
  ],
)
def test_another_model_or_task_is_refused_and_nothing_is_touched(
  mrpc, tmp_path, change, named, modes
):
  values = {**mrpc.copied_to(tmp_path), **change(tmp_path / "other")}
  before = {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")}
  for mode in modes:
    message = error_of(**values, **{mode: True})
    assert "model.ckpt-20 was trained with other settings than this run: " in message
    for text in named:
      assert text in message
  assert {path: path.stat().st_mtime_ns for path in (tmp_path / "out").rglob("*")} == before


def test_another_task_is_named_before_the_faults_of_its_data(mrpc, tmp_path):
  values = {**mrpc.copied_to(tmp_path), **other_task(tmp_path), "do_train": True}
  write_rows(tmp_path, "dev.tsv", ("0", "not", "a", "row", "of", "QQP"))
  write_rows(tmp_path, "train.tsv", ("text_a", "label"))
  assert "task_name was 'mrpc', now 'qqp'" in error_of(**values, do_eval=True)
  assert "task_name was 'mrpc', now 'csv'" in error_of(**{**values, "task_name": "csv"})
  write_rows(tmp_path, "train.tsv", ("Quality", "#1 String"), ("1", "the film"))
  assert "task_name was 'mrpc', now 'csv'" in error_of(**{**values, "task_name": "csv"})


@pytest.mark.usefixtures("fake_estimator")
def test_a_roberta_with_another_epsilon_is_another_model(mrpc, tmp_path):
  sizes = {"model_type": "roberta", "type_vocab_size": 1}
  config = tiny_bert.write_config(tmp_path / "a.json", len(byte_pairs.vocabulary()), **sizes)
  other = tmp_path / "b.json"
  other.write_text(json.dumps({**json.loads(config.read_text()), "layer_norm_eps": 1e-12}))
  flags = {**mrpc.flags, "vocab_file": byte_pairs.write(tmp_path), "output_dir": tmp_path / "out"}
  values = {**flags, "bert_config_file": config}
  run_well(**values, do_train=True)
  message = error_of(**{**values, "bert_config_file": other}, do_train=True)
  assert "layer_norm_eps was 1e-05, now 1e-12" in message
  for path in (tmp_path / "out").glob("*.state.json"):
    prefix = str(path).removesuffix(".state.json")
    state = reading.read_state(prefix)
    del state["fingerprint"]["layer_norm_eps"]  # as earlier versions wrote it
    bundle_files.write_sidecar(prefix, state)
  assert error_of(**{**values, "bert_config_file": other}, do_eval=True) == message
  run_well(**values, do_train=True)


def test_a_run_of_python_is_that_of_the_command_line(mrpc, tmp_path):
  values = {**mrpc.flags, "do_train": True, "report": False}
  settings = ClassifierSettings.of(**{**values, "output_dir": tmp_path / "out"})
  fine_tuning.start(run_classifier.Classification, settings)
  assert_same_tensors(tmp_path / "out" / "model.ckpt-20", mrpc.out / "model.ckpt-20")
