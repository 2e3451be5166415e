"""Tests of the files and the log that a run of run_classifier.py leaves."""

import gzip
import json
import os

import numpy as np
import pytest
import tensorflow as tf

from bert import convert_checkpoint, run_classifier, tokenization
from bert.checkpoints import load_report
from bert.predicting import load_run
from bert.scripts import flag_groups
from bert.tasks import glue
from bert.training import hardware
from tests.kit.script_runs import OF_TRAINING, Script, json_in, records, results_in, table
from tests.kit.tiny_sentences import SIZES, texts

script = Script(run_classifier)
run, run_well, error_of = script.run, script.run_well, script.error_of


def test_it_learns(mrpc):
  results = results_in(mrpc.out / "eval_results.txt")
  assert results["eval_accuracy"] == 1.0
  assert results["eval_f1"] == 1.0
  assert results["eval_loss"] < 0.3
  assert results["global_step"] == 20
  labels = [row[1] for row in table(mrpc.out / "predictions.tsv")[1:]]
  assert labels == [str(label) for label, _, _ in texts(SIZES["test"])]


def test_files_of_a_run(mrpc):
  names = {path.name for path in mrpc.out.iterdir() if "tfevents" not in path.name}
  checkpoints = {
    f"model.ckpt-{step}.{suffix}"
    for step in (0, 20)
    for suffix in ("index", "data-00000-of-00001", "state.json")
  }
  record_files = {"train.tf_record", "eval.tf_record", "predict.tf_record"}
  manifests = {f".{name}.manifest.json" for name in record_files}
  results = {"eval_results.txt", "test_results.tsv", "predictions.tsv"}
  of_model = {"bert_config.json", "vocab.txt", "example.json", "label_map.json", *OF_TRAINING}
  own = {*checkpoints, *record_files, *manifests, *results, *of_model}
  assert names == {*own, "checkpoint", "dev_summary.json", "eval"}


def test_the_folder_is_a_model_that_needs_no_other_flag(mrpc, tmp_path):
  """The command of convert_checkpoint.py --help, and what Predictor.load reads."""
  converter = Script(convert_checkpoint)
  values = {"init_checkpoint": mrpc.out, "output_dir": tmp_path / "mrpc"}
  converter.run_well("--command=to_transformers", **values)
  config = json.loads((tmp_path / "mrpc" / "config.json").read_text())
  assert config["id2label"] == {"0": "0", "1": "1"}
  found = load_run.find_run(mrpc.out)
  example = json_in(mrpc.out / "example.json")
  dev = (mrpc.flags["data_dir"] / "dev.tsv").read_text(encoding="utf-8").splitlines()
  assert list(example.values()) == dev[1].split("\t")[3:]
  assert load_run.decoder_of(found).example == example
  assert found.vocab_file == str(mrpc.out / "vocab.txt")
  assert found.config.to_dict().items() >= json_in(mrpc.flags["bert_config_file"]).items()
  assert load_run.load_model(str(mrpc.out), max_seq_length=16)[2] == found.prefix


def test_log_lines_of_the_original(mrpc):
  for line in (
    "***** Running training *****",
    "  Num examples = 20",
    "  Batch size = 8",
    "  Num steps = 20",
    f"  Device = {hardware.devices_of()}",
    "***** Running evaluation *****",
    "  Num examples = 10 (10 actual, 0 padding)",
    "***** Eval results *****",
    "  eval_accuracy = 1.0",
    "  global_step = 20",
    "***** Running prediction*****",
  ):
    assert f"INFO:tensorflow:{line}\n" in mrpc.done.err
  assert "WARNING:tensorflow:NO CHECKPOINT in" in mrpc.done.err, "random weights are said loudly"
  assert "true \\ predicted    0    1\n" in mrpc.done.err
  assert mrpc.done.out == ""


def test_eval_results_begin_with_the_originals_keys(mrpc):
  lines = (mrpc.out / "eval_results.txt").read_text().splitlines()
  keys = [line.split(" = ")[0] for line in lines]
  assert keys == [
    *("eval_accuracy", "eval_loss", "global_step", "loss"),
    *("eval_f1", "eval_precision", "eval_recall"),
  ]
  for line in lines:
    value = line.split(" = ")[1]
    assert value in (str(np.float32(value)), "20"), "not as float32 prints"


def test_test_results_are_the_originals(mrpc):
  """One line for each example, its probabilities as float32 prints them, and nothing else."""
  text = (mrpc.out / "test_results.tsv").read_bytes().decode()
  assert text.endswith("\n")
  lines = text[:-1].split("\n")
  assert len(lines) == SIZES["test"]
  for line in lines:
    fields = line.split("\t")
    assert len(fields) == 2
    assert fields == [str(np.float32(field)) for field in fields]
    assert sum(map(float, fields)) == pytest.approx(1.0, abs=1e-6)


def test_predictions_hold_id_label_probabilities_and_texts(mrpc):
  header, *rows = table(mrpc.out / "predictions.tsv")
  assert header == ["id", "label", "probability_0", "probability_1", "text_a", "text_b"]
  assert [tuple(row[4:]) for row in rows] == [(a, b) for _, a, b in texts(SIZES["test"])]
  assert [row[0] for row in rows] == [f"test-{i}" for i in range(1, SIZES["test"] + 1)]
  assert [row[2:4] for row in rows] == table(mrpc.out / "test_results.tsv")
  assert [row[1] for row in rows] == [str(np.argmax(np.float32(row[2:4]))) for row in rows]
  assert json.loads((mrpc.out / "label_map.json").read_text()) == {"0": 0, "1": 1}


def test_records_have_the_originals_features(mrpc, model):
  tokenizer = tokenization.FullTokenizer(str(model["vocab_file"]))
  for name, split in (("train", "train"), ("eval", "dev"), ("predict", "test")):
    found = records(mrpc.out / f"{name}.tf_record")
    assert len(found) == SIZES[split]
    for record, (label, a, b) in zip(found, texts(SIZES[split]), strict=True):
      tokens = ["[CLS]", *tokenizer.tokenize(a), "[SEP]", *tokenizer.tokenize(b), "[SEP]"]
      padding = [0] * (16 - len(tokens))
      first = 2 + len(tokenizer.tokenize(a))
      assert record == {
        "input_ids": ("int64_list", tokenizer.convert_tokens_to_ids(tokens) + padding),
        "input_mask": ("int64_list", [1] * len(tokens) + padding),
        "segment_ids": ("int64_list", [0] * first + [1] * (len(tokens) - first) + padding),
        "label_ids": ("int64_list", [label if split != "test" else 0]),
        "is_real_example": ("int64_list", [1]),
      }


@pytest.mark.parametrize("is_training", [False, True])
def test_features_in_memory_give_the_batches_of_the_file(mrpc, model, is_training):
  tokenizer = tokenization.FullTokenizer(model["vocab_file"])
  examples = run_classifier.MrpcProcessor().get_train_examples(mrpc.flags["data_dir"])
  features = run_classifier.convert_examples_to_features(examples, ["0", "1"], 16, tokenizer)
  in_memory = run_classifier.input_fn_builder(features, 16, is_training, drop_remainder=True)
  from_file = run_classifier.file_based_input_fn_builder(
    os.path.join(mrpc.flags["output_dir"], "train.tf_record"),
    16,
    is_training,
    drop_remainder=True,
    pad_to_max_length=True,
  )
  params = {"batch_size": 3, "seed": 5, "skip_examples": 4}
  for one, other in zip(in_memory(params).take(5), from_file(params).take(5), strict=True):
    assert one.keys() == other.keys()
    for name in one:
      assert one[name].dtype == other[name].dtype
      np.testing.assert_array_equal(one[name], other[name])


def test_checkpoint_has_the_originals_names(mrpc):
  names = {name for name, _ in tf.train.list_variables(str(mrpc.out / "model.ckpt-20"))}
  model_names = {name for name in names if not load_report.is_training_state(name)}
  assert "bert/encoder/layer_0/attention/self/query/kernel" in model_names
  assert {name for name in model_names if not name.startswith("bert/")} == {
    "output_weights",
    "output_bias",
  }
  slots = {f"{name}/{slot}" for name in model_names for slot in ("adam_m", "adam_v")}
  assert names == model_names | slots | {"global_step"}


# ---------------------------------------------------------------------------------------------
# Against the original.


def test_flags_of_the_original(golden_dir):
  golden = json.loads((golden_dir / "flags.json").read_text())["run_classifier"]
  with flag_groups.defined_flags(run_classifier.define_flags):
    ours = {flag["name"]: flag for flag in flag_groups.describe()}
  assert len(golden) == 25
  for flag in golden:
    assert ours[flag["name"]] == flag


@pytest.mark.parametrize("task", ["MRPC", "CoLA"])
def test_records_of_real_data_hold_the_originals_features(golden_dir, data_dir, tmp_path, task):
  with gzip.open(golden_dir / "classifier" / f"{task}.jsonl.gz", "rt", encoding="utf-8") as file:
    lines = [json.loads(line) for line in file]
  goldens = [golden for golden in lines if golden["max_seq_length"] == 40][::3]
  assert len(goldens) > 40
  processor = glue.create_processor(task)
  folder = str(data_dir / "glue" / task)
  sets = {split: getattr(processor, f"get_{split}_examples")(folder) for split in SIZES}
  tokenizer = tokenization.FullTokenizer(str(data_dir / "vocab" / "uncased_vocab.txt"))
  examples = [sets[golden["split"]][golden["index"]] for golden in goldens]
  path = tmp_path / "golden.tf_record"
  run_classifier.file_based_convert_examples_to_features(
    examples, processor.get_labels(), 40, tokenizer, str(path)
  )
  for record, golden in zip(records(path), goldens, strict=True):
    padding = [0] * (40 - len(golden["input_ids"]))
    assert {name: values for name, (_, values) in record.items()} == {
      "input_ids": golden["input_ids"] + padding,
      "input_mask": [1] * len(golden["input_ids"]) + padding,
      "segment_ids": golden["segment_ids"] + padding,
      "label_ids": [golden["label_id"]],
      "is_real_example": [1],
    }
