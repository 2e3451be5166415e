"""`run_classifier.py --long_text=windows`: runs that learn from what lies behind the first window.

Alone: python -m pytest tests/run_classifier/long_text_test.py (half a minute, most of it compiling)
"""

import json
import shutil

import numpy as np
import pytest
import tensorflow as tf

from bert import run_classifier
from bert.io import record_files
from bert.model import heads
from bert.predicting.predictor import Predictor
from tests.kit.long_texts import CONFIG, words, write_model_files
from tests.kit.script_runs import Script, Trained, results_in


@pytest.fixture(scope="module")
def model_files(tmp_path_factory):
  return write_model_files(tmp_path_factory.mktemp("model"))


# Documents of 12 to 16 pieces; a window holds 6 of them, and the first 6 do not show the label.

SIZES = {"train": 24, "dev": 8, "test": 6}


def document(index: int) -> tuple[int, str]:
  label = index % 2
  return label, words(6, index % 3) + (" good" if label else " bad") * (6 + index % 5)


script = Script(run_classifier)


@pytest.fixture(scope="module")
def trained(model_files, tmp_path_factory) -> Trained:
  """A run that trains, evaluates and predicts. Tests only read its folder."""
  data, out = tmp_path_factory.mktemp("data"), tmp_path_factory.mktemp("out") / "windows"
  for split, size in SIZES.items():
    rows = [("label", "text_a"), *(document(i) for i in range(size))]
    (data / f"{split}.tsv").write_text("".join("\t".join(map(str, row)) + "\n" for row in rows))
  values = {
    "task_name": "csv",
    "data_dir": data,
    "vocab_file": model_files / "vocab.txt",
    "bert_config_file": model_files / "bert_config.json",
    "output_dir": out,
    "max_seq_length": 8,
    "long_text": "windows",
    "train_batch_size": 8,
    "learning_rate": 0.01,
    "num_train_epochs": 4.0,
    "keep_checkpoint_max": 0,
  }
  done = script.run_well(**values, do_train=True, do_eval=True, do_predict=True)
  return Trained(values, out, done)


@pytest.mark.ci
def test_what_lies_behind_the_first_window_is_learned(trained):
  results = results_in(trained.out / "eval_results.txt")
  assert results["eval_accuracy"] == 1.0
  assert results["eval_loss"] < 0.3
  assert "24 of 24 examples need several windows; there are" in trained.done.err
  assert "their ends are not read" not in trained.done.err


@pytest.mark.ci
def test_truncation_does_not_learn_it(trained, tmp_path):
  values = {**trained.flags, "long_text": "truncate", "output_dir": tmp_path}
  script.run_well(**values, do_train=True, do_eval=True)
  assert results_in(tmp_path / "eval_results.txt")["eval_loss"] > 0.5


@pytest.mark.ci
def test_a_document_has_one_line(trained):
  for name, lines in (("test_results.tsv", 6), ("predictions.tsv", 7)):
    assert len((trained.out / name).read_text().splitlines()) == lines
  assert len(list(record_files.records_of(trained.out / "train.tf_record"))) == SIZES["train"]


@pytest.mark.slow
def test_the_exported_model_reads_windows_too(trained, tmp_path):
  script.run_well(**trained.flags, do_export=True, export_dir=tmp_path)
  answer = Predictor.load(str(tmp_path))
  texts = [document(i)[1] for i in range(SIZES["test"])]
  expected = np.loadtxt(trained.out / "test_results.tsv")
  found = [each["probabilities"] for each in answer(texts)]
  np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)
  beginnings = [" ".join(text.split(" ")[:6]) for text in texts]
  other = [each["probabilities"] for each in answer(beginnings)]
  assert np.abs(other - expected).max() > 0.1, "the rest tells"


def test_the_cap_is_told_and_may_differ_in_prediction(trained, tmp_path):
  shutil.copytree(trained.out, tmp_path / "out")
  values = {**trained.flags, "output_dir": tmp_path / "out", "max_windows": 2}
  err = script.run_well(**values, do_predict=True).err
  assert "6 of 6 examples are longer than --max_windows=2 windows" in err
  expected = np.loadtxt(trained.out / "test_results.tsv")
  assert np.abs(np.loadtxt(tmp_path / "out" / "test_results.tsv") - expected).max() > 1e-3


@pytest.mark.parametrize(
  ("change", "mode", "told"),
  [
    ({"long_text": "truncate"}, "do_eval", "long_text was 'windows', now 'truncate'"),
    ({"window_pooling": "max"}, "do_eval", "window_pooling was 'mean', now 'max'"),
    ({"max_windows": 4}, "do_train", "max_windows was 8, now 4"),
  ],
)
def test_a_run_with_other_windows_is_refused(trained, change, mode, told):
  message = script.error_of(**{**trained.flags, **change}, **{mode: True})
  assert f"was trained with other settings than this run: {told}." in message


@pytest.mark.parametrize(
  ("change", "told"),
  [
    ({"max_windows": 0}, "--max_windows=0: must be at least 1"),
    ({"max_seq_length": 4}, "--max_seq_length=4: must be at least 5 with --long_text=windows"),
    ({"window_pooling": "sum"}, 'takes one of mean, max, not "sum"'),
  ],
)
def test_a_bad_flag_is_told(trained, tmp_path, change, told):
  values = {**trained.flags, **change, "output_dir": tmp_path / "out"}
  assert told in script.error_of(**values, do_train=True)
  assert not (tmp_path / "out").exists()


def test_a_flag_without_effect_is_told(trained, tmp_path):
  values = {**trained.flags, "long_text": "truncate", "max_windows": 3}
  err = script.run_well(**{**values, "output_dir": tmp_path / "out"}, do_predict=True).err
  assert "Flag --max_windows has no effect: it is for --long_text=windows." in err
  assert "--window_pooling" not in err


@pytest.mark.ci
def test_parts_of_a_batch_make_the_whole(trained, tmp_path, monkeypatch):
  """Gradient accumulation splits a batch between documents and not between windows."""
  monkeypatch.setattr(heads, "dropout", lambda x, rate: x)
  no_dropout = {**CONFIG, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
  (tmp_path / "config.json").write_text(json.dumps(no_dropout))
  values = {**trained.flags, "init_checkpoint": trained.out / "model.ckpt-0"}
  values.update(bert_config_file=tmp_path / "config.json", num_train_epochs=0.34)
  gradients = []  # of one step, a tenth of them: Adam's own step would be that of signs
  for parts in (1, 2):
    values.update(output_dir=tmp_path / str(parts), gradient_accumulation_steps=parts)
    script.run_well(**values, do_train=True)
    name = "bert/pooler/dense/kernel/adam_m"
    gradients.append(tf.train.load_variable(str(tmp_path / str(parts)), name))
  assert np.abs(gradients[0]).max() > 1e-4
  np.testing.assert_allclose(*gradients, rtol=0, atol=1e-6)
