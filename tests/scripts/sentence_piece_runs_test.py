"""Scripts with ALBERT's vocabulary: how it is found, kept, exported, and refused."""

import json
import shutil

import numpy as np
import pytest
import tensorflow as tf

from bert import doctor, predict, run_classifier
from bert.text.sentence_pieces import SentencePieceTokenizer
from tests.kit.script_runs import Script, json_lines, table, values_in

script = Script(run_classifier)
TEXTS = [("The film of the 2008, game", "a game"), ("It was thé end.", ""), ("of and", "the of")]


@pytest.fixture
def albert(golden_dir, tmp_path):
  """A folder as a released ALBERT's: checkpoint, configuration, sentencepiece model."""
  folder, golden = tmp_path / "albert_tiny", golden_dir / "albert"
  folder.mkdir()
  for path in golden.glob("model_A.ckpt.*"):
    shutil.copy(path, folder)
  shutil.copy(golden / "config_A.json", folder / "albert_config.json")
  shutil.copy(golden / "tiny_spm.model", folder / "30k-clean.model")
  return folder


@pytest.fixture
def flags(albert, tmp_path):
  rows = [{"text_a": a, "text_b": b, "label": str(i % 2)} for i, (a, b) in enumerate(TEXTS)]
  data = tmp_path / "data"
  data.mkdir()
  for split in ("train", "dev", "test"):
    lines = "".join(json.dumps(row) + "\n" for row in rows)
    (data / f"{split}.jsonl").write_text(lines, encoding="utf-8")
  columns = {"text_a_column": "text_a", "text_b_column": "text_b", "label_column": "label"}
  return {
    **{"task_name": "csv", "data_dir": data, "output_dir": tmp_path / "out", **columns},
    **{"init_checkpoint": albert / "model_A.ckpt", "max_seq_length": 32, "train_batch_size": 2},
  }


def test_a_model_beside_the_checkpoint_is_taken_and_kept(fake_estimator, flags, albert, tmp_path):
  script.run_well(do_train=True, **flags)
  out = tmp_path / "out"
  assert (out / "spiece.model").read_bytes() == (albert / "30k-clean.model").read_bytes()
  assert not (out / "vocab.txt").exists()
  tokenizer = SentencePieceTokenizer(out / "spiece.model")
  expected = tokenizer.encode_batch(*zip(*TEXTS, strict=True))["input_ids"].tolist()
  found = [record["input_ids"] for record in values_in(out / "train.tf_record")]
  assert [row[: len(ids)] for row, ids in zip(found, expected, strict=True)] == expected
  # As ALBERT's commands name both; its --vocab_file lists the pieces of the model.
  named = {"spm_model_file": albert / "30k-clean.model", "vocab_file": "30k-clean.vocab"}
  done = script.run_well(do_predict=True, **named, **{**flags, "output_dir": out})
  assert "another run" not in done.err


@pytest.mark.parametrize(
  ("values", "message"),
  [
    ({"vocab_file": "{tmp}/vocab.txt"}, "vocab.txt is a WordPiece vocabulary of 3 tokens, but "),
    ({"spm_model_file": "{tmp}/vocab.txt"}, "vocab.txt is not a sentencepiece model. Give the "),
    ({"spm_model_file": "{tmp}/no.model"}, "no.model: No such file or directory. Give the "),
    ({"spm_model_file": "{tmp}/cut.model"}, "cut.model is damaged: its 500 bytes are not "),
    ({"bert_config_file": "{tmp}/bert.json"}, "is a sentencepiece model of 2000 pieces, but "),
  ],
  ids=["a vocab.txt", "a vocab.txt as model", "missing", "damaged", "a BERT"],
)
def test_a_wrong_vocabulary_is_one_message(flags, albert, tmp_path, values, message):
  (tmp_path / "vocab.txt").write_text("[UNK]\n[CLS]\n[SEP]\n")
  (tmp_path / "cut.model").write_bytes((albert / "30k-clean.model").read_bytes()[:500])
  (tmp_path / "bert.json").write_text(json.dumps({"vocab_size": 2500}))
  values = {name: value.replace("{tmp}", str(tmp_path)) for name, value in values.items()}
  assert message in script.error_of(do_train=True, **{**flags, **values})


def test_a_model_without_its_vocabulary_says_which_one_it_needs(flags, albert, tmp_path):
  folder = tmp_path / "alone"
  kept = [path for path in albert.iterdir() if not path.name.endswith(".model")]
  folder.mkdir()
  for path in kept:
    shutil.copy(path, folder)
  error = script.error_of(do_train=True, **{**flags, "init_checkpoint": folder})
  assert "is of ALBERT, and no vocabulary lies beside the model: give --spm_model" in error


@pytest.mark.slow
def test_strings_to_the_predictions_of_the_run(flags, tmp_path):
  """The export, `predict.py` and the run itself say the same."""
  script.run_well(do_train=True, do_predict=True, do_export=True, **flags)
  header, *rows = table(tmp_path / "out" / "predictions.tsv")
  places = [header.index(name) for name in ("probability_0", "probability_1")]
  expected = np.array([[float(row[place]) for place in places] for row in rows])
  firsts, seconds = zip(*TEXTS, strict=True)
  model = tf.saved_model.load(str(tmp_path / "out" / "export" / "task"))
  found = model(tf.constant(firsts), tf.constant(seconds))
  np.testing.assert_allclose(found["probabilities"], expected, atol=1e-6)

  lines = [f"{a} ||| {b}" if b else a for a, b in TEXTS]
  (tmp_path / "texts.txt").write_text("\n".join(lines), encoding="utf-8")
  Script(predict).run_well(
    init_checkpoint=tmp_path / "out",
    input_file=tmp_path / "texts.txt",
    output_file=tmp_path / "answers.jsonl",
  )
  answers = json_lines(tmp_path / "answers.jsonl")
  found = np.array([answer["probabilities"] for answer in answers])
  np.testing.assert_allclose(found, expected, atol=1e-6)


@pytest.mark.ci
def test_doctor_knows_the_vocabulary(flags, albert):
  done = Script(doctor).run(
    init_checkpoint=albert / "model_A.ckpt", data_dir=flags["data_dir"], max_seq_length=32
  )
  [line] = [line for line in done.out.splitlines() if "different tokens" in line]
  assert line.startswith("ok")
  assert "2000 different tokens" in line
  assert "[UNK]" not in done.out
  assert "[PAD]" not in done.out
