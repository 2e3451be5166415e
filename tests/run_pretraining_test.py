"""Tests of run_pretraining.py: whole runs on made-up records and a tiny model.

Alone: python -m pytest tests/run_pretraining_test.py (about a minute, most of it compiling graphs)
"""

import gzip
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
from typing import NamedTuple

import numpy as np
import pytest
import tensorflow as tf

from bert import run_pretraining, tokenization
from bert.checkpoints import checkpoint
from bert.io.record_files import write_records
from bert.model import heads
from bert.model.configuration import BertConfig
from bert.model.variables import VariableStore, use_store
from bert.modeling import BertModel
from bert.pretraining import dynamic_masking
from bert.scripts import flag_groups
from bert.training.estimator import ModeKeys
from tests.kit.paths import ROOT
from tests.kit.script_runs import Done, Script, results_in, tensors

VOCAB_SIZE = 40
CONFIG = {
  "vocab_size": VOCAB_SIZE,
  "hidden_size": 16,
  "num_hidden_layers": 1,
  "num_attention_heads": 2,
  "intermediate_size": 16,
  "max_position_embeddings": 32,
  "type_vocab_size": 2,
  "initializer_range": 0.2,  # As small as this model is, 0.02 would take it long to learn.
  "hidden_dropout_prob": 0.1,
  "attention_probs_dropout_prob": 0.1,
}
EVAL_KEYS = [
  "global_step",
  "loss",
  "masked_lm_accuracy",
  "masked_lm_loss",
  "next_sentence_accuracy",
  "next_sentence_loss",
]
MASKED = ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights")


script = Script(run_pretraining)
run, run_well, error_of = script.run, script.run_well, script.error_of


def make_records(
  count, seq_length=16, predictions=3, seed=0, masked_each=None, longest=None
) -> list[dict]:
  """Sequences of different lengths, padded; some have fewer masked words than there is room for.

  Both answers are there to be learned: a word follows from its position, the label from the second
  piece.
  """
  rng = np.random.default_rng(seed)
  made = []
  for i in range(count):
    length = int(rng.integers(8, (longest or seq_length - 2) + 1))
    masked = masked_each or int(rng.integers(1, predictions + 1))
    positions = np.sort(rng.choice(np.arange(2, length), masked, replace=False))
    ids = rng.integers(10, VOCAB_SIZE, seq_length)
    ids[:2] = [2, 5 + i % 2]
    ids[positions] = 4
    mask = np.arange(seq_length) < length

    def padded(values):
      return np.pad(values, (0, predictions - len(values)))

    made.append(
      {
        "input_ids": ids * mask,
        "input_mask": mask.astype(int),
        "segment_ids": mask * (np.arange(seq_length) > length // 2),
        "masked_lm_positions": padded(positions),
        "masked_lm_ids": padded(10 + positions),
        "masked_lm_weights": padded(np.ones(masked)),
        "next_sentence_labels": [i % 2],
      }
    )
  return made


@pytest.fixture(scope="module")
def model(tmp_path_factory) -> dict:
  return flags_of_model(tmp_path_factory.mktemp("model"))


def flags_of_model(folder: pathlib.Path) -> dict:
  """Writes a tiny model's configuration and records; the flags that every run shares."""
  (folder / "bert_config.json").write_text(json.dumps(CONFIG))
  write_records(folder / "train.tfrecord", make_records(22))
  return {
    "input_file": folder / "train.tfrecord",
    "bert_config_file": folder / "bert_config.json",
    "max_seq_length": 16,
    "max_predictions_per_seq": 3,
    "train_batch_size": 8,
    "learning_rate": 0.01,
    "num_train_steps": 3,  # A test that wants more says so; one that fails should not take hours.
    "num_warmup_steps": 2,
  }


class Trained(NamedTuple):
  flags: dict  # of the run, without do_*
  out: pathlib.Path
  done: Done


@pytest.fixture(scope="module")
def trained(model, tmp_path_factory) -> Trained:
  """One run that trains and evaluates. Tests only read its folder."""
  out = tmp_path_factory.mktemp("out") / "pretraining"
  values = {**model, "output_dir": out, "num_train_steps": 60, "max_eval_steps": 5}
  return Trained(values, out, run_well(**values, do_train=True, do_eval=True, save_summary_steps=5))


def scalars_in(folder) -> dict[str, dict[int, float]]:
  """Name -> step -> value, of the event files in a folder."""
  found: dict[str, dict[int, float]] = {}
  for path in sorted(folder.glob("events.out.tfevents.*")):
    for record in tf.data.TFRecordDataset(str(path)):
      event = tf.compat.v1.Event.FromString(record.numpy())
      for value in event.summary.value:
        found.setdefault(value.tag, {})[event.step] = float(tf.make_ndarray(value.tensor))
  return found


# ---------------------------------------------------------------------------------------------
# One run, and every file it leaves.


def test_it_learns(trained):
  results = results_in(trained.out / "eval_results.txt")
  assert results["masked_lm_accuracy"] > 0.9
  assert results["next_sentence_accuracy"] > 0.9
  assert results["loss"] < 1.0 < np.log(VOCAB_SIZE)


def test_eval_results_are_the_originals_keys_sorted(trained):
  lines = (trained.out / "eval_results.txt").read_text().splitlines()
  assert [line.split(" = ")[0] for line in lines] == EVAL_KEYS
  assert lines[0] == "global_step = 60"


def test_log_lines_of_the_original(trained):
  for line in (
    "*** Input Files ***",
    f"  {trained.flags['input_file']}",
    "***** Running training *****",
    "  Batch size = 8",
    "***** Running evaluation *****",
    "***** Eval results *****",
    "  global_step = 60",
  ):
    assert f"INFO:tensorflow:{line}\n" in trained.done.err


def test_summaries_of_training(trained):
  scalars = scalars_in(trained.out)
  for step in (5, 60):
    parts = scalars["masked_lm_loss"][step] + scalars["next_sentence_loss"][step]
    np.testing.assert_allclose(scalars["loss"][step], parts, rtol=1e-6)
    assert 8 <= scalars["tokens_per_example"][step] <= 15
  assert scalars["masked_lm_loss"][60] < scalars["masked_lm_loss"][5]
  assert scalars["masked_lm_accuracy"][5] < 0.5 < scalars["masked_lm_accuracy"][60]
  assert 0 <= scalars["next_sentence_accuracy"][5] <= 1
  assert {"learning_rate", "examples/sec"} <= set(scalars)
  tokens = scalars["tokens/sec"][60] / scalars["examples/sec"][60]
  assert 8 <= tokens <= 14


def test_a_line_of_progress(trained):
  [line] = [line for line in trained.done.err.splitlines() if "step 60/60, " in line]
  assert re.fullmatch(
    r".*step 60/60, loss [\d.]+, masked_lm_loss [\d.]+, next_sentence_loss [\de.-]+, "
    r"masked_lm_accuracy [\d.]+, next_sentence_accuracy [\d.]+, learning_rate [\de.-]+, "
    r"[\d.]+ examples/s, [\d.]+ tokens/s, [\d:]+ left",
    line,
  )


@pytest.mark.parametrize("parts", [1, 2])
def test_accuracies_in_training_are_those_of_the_batch(trained, tmp_path, parts):
  """With a rate of 0 and without dropout, a batch is trained on as it is evaluated."""
  config = {**CONFIG, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
  (tmp_path / "config.json").write_text(json.dumps(config))
  # Of the words some are known after 60 steps, some not: labels of every other record are wrong.
  records = make_records(8, seed=5, masked_each=2)
  for record in records[::2]:
    record["masked_lm_ids"] = 39 - np.array(record["masked_lm_ids"])
    record["next_sentence_labels"] = [1 - record["next_sentence_labels"][0]]
  write_records(tmp_path / "train.tfrecord", records)
  values = {**trained.flags, "bert_config_file": tmp_path / "config.json", "learning_rate": 0.0}
  values |= {"input_file": tmp_path / "train.tfrecord", "init_checkpoint": trained.out}
  values |= {"output_dir": tmp_path / "out", "num_train_steps": 1, "num_warmup_steps": 0}
  values |= {"gradient_accumulation_steps": parts, "shuffle_buffer_size": 1, "max_eval_steps": 1}
  run_well(**values, do_train=True, do_eval=True)
  results, scalars = results_in(tmp_path / "out/eval_results.txt"), scalars_in(tmp_path / "out")
  for name in ("masked_lm_accuracy", "next_sentence_accuracy", "masked_lm_loss"):
    assert scalars[name][1] == pytest.approx(results[name], rel=1e-5), name
  assert 0.2 < results["masked_lm_accuracy"] < 0.8
  assert 0.2 < results["next_sentence_accuracy"] < 0.8


def test_evaluation_on_training_records_is_warned_of(trained, tmp_path):
  assert "--eval_input_file=FILES evaluates on others" in trained.done.err
  others = tmp_path / "others.tfrecord"
  write_records(others, make_records(6, seed=1))
  shutil.copytree(trained.out, tmp_path / "out")
  values = {**trained.flags, "output_dir": tmp_path / "out", "eval_input_file": others}
  # Without training the records of --input_file are not read, so that they need not be there.
  done = run_well(**{**values, "input_file": "gone"}, do_eval=True)
  assert "evaluates on others" not in done.err
  assert (
    results_in(tmp_path / "out/eval_results.txt")["loss"]
    != results_in(trained.out / "eval_results.txt")["loss"]
  )


def test_checkpoint_has_the_originals_names(trained):
  names = set(tensors(trained.out / "model.ckpt-60"))
  weights = {n for n in names if not n.endswith(("/adam_m", "/adam_v"))} - {"global_step"}
  assert {n for n in weights if n.startswith("cls/")} == {
    "cls/predictions/output_bias",
    "cls/predictions/transform/LayerNorm/beta",
    "cls/predictions/transform/LayerNorm/gamma",
    "cls/predictions/transform/dense/bias",
    "cls/predictions/transform/dense/kernel",
    "cls/seq_relationship/output_bias",
    "cls/seq_relationship/output_weights",
  }
  assert len(weights) == 5 + 16 + 2 + 7  # embeddings, one layer, pooler, heads
  assert names == {f"{n}{slot}" for n in weights for slot in ("", "/adam_m", "/adam_v")} | {
    "global_step"
  }


def test_evaluation_during_training_leaves_a_curve_and_the_best(trained, tmp_path):
  write_records(tmp_path / "others.tfrecord", make_records(12, seed=9))
  values = {**trained.flags, "eval_input_file": tmp_path / "others.tfrecord", "num_train_steps": 8}
  values |= {"output_dir": tmp_path / "out", "eval_batch_size": 4, "max_eval_steps": 3}
  done = run_well(**values, eval_every_steps=3, do_train=True, do_eval=True, plots=True)
  assert (tmp_path / "out/plots/training.png").is_file()
  curve = scalars_in(tmp_path / "out/eval")["loss"]
  assert sorted(curve) == [3, 6, 8]
  best = min(curve, key=curve.get)
  assert tensors(tmp_path / "out/best")["global_step"] == best
  results = results_in(tmp_path / "out/eval_results.txt")
  assert results["global_step"] == best
  assert results["loss"] == pytest.approx(curve[best], rel=1e-5)
  assert "evaluates on others" not in done.err
  # The steps between are those of a run without evaluation.
  run_well(**{**values, "output_dir": tmp_path / "plain"}, do_train=True)
  plain, ours = (tensors(tmp_path / name / "model.ckpt-8") for name in ("plain", "out"))
  for name, value in plain.items():
    np.testing.assert_array_equal(ours[name], value, err_msg=name)


def test_evaluation_during_training_on_training_records_is_warned_of(model, tmp_path):
  values = {**model, "output_dir": tmp_path, "num_train_steps": 1, "num_warmup_steps": 0}
  done = run_well(**values, eval_every_steps=1, max_eval_steps=1, do_train=True)
  assert "--eval_input_file=FILES evaluates on others" in done.err


# ---------------------------------------------------------------------------------------------
# Evaluation by hand.


def forward(config, store, batch):
  """Losses and log-probabilities of both heads, without dropout and with all padding computed."""
  with use_store(store):
    model = BertModel(config, False, batch["input_ids"], batch["input_mask"], batch["segment_ids"])
    masked = heads.get_masked_lm_output(
      config,
      model.get_sequence_output(),
      model.get_embedding_table(),
      *(batch[name] for name in MASKED),
    )
    following = heads.get_next_sentence_output(
      config, model.get_pooled_output(), batch["next_sentence_labels"]
    )
  return masked, following


def batch_of(records) -> dict[str, tf.Tensor]:
  columns = {name: np.array([record[name] for record in records]) for name in records[0]}
  return {
    name: tf.constant(value, tf.float32 if name == "masked_lm_weights" else tf.int32)
    for name, value in columns.items()
  }


def test_metrics_are_those_of_all_evaluated_words(trained, tmp_path):
  """Four batches of 3 out of 10 records: the last starts over, and words weigh the same."""
  made = make_records(10, seed=2)
  write_records(tmp_path / "eval.tfrecord", made)
  start = trained.out / "model.ckpt-0"  # Untrained weights make losses that differ.
  values = {**trained.flags, "init_checkpoint": start, "output_dir": tmp_path / "out"}
  values |= {"eval_input_file": tmp_path / "eval.tfrecord", "max_eval_steps": 4}
  run_well(**values, eval_batch_size=3, do_eval=True)
  results = results_in(tmp_path / "out/eval_results.txt")

  config, store = BertConfig.from_dict(CONFIG), VariableStore()
  order = [*made, *made[:2]]
  forward(config, store, batch_of(order))
  checkpoint.restore(str(start), store.variables)
  masked, following = forward(config, store, batch_of(order))
  weights = np.concatenate([r["masked_lm_weights"] for r in order])
  right = np.argmax(masked[2], -1) == np.concatenate([r["masked_lm_ids"] for r in order])
  labels = np.concatenate([r["next_sentence_labels"] for r in order])
  batches = [forward(config, store, batch_of(order[i : i + 3])) for i in range(0, 12, 3)]
  expected = {
    "global_step": 0,
    "loss": np.mean([m[0] + f[0] for m, f in batches]),
    "masked_lm_accuracy": np.average(right, weights=weights),
    "masked_lm_loss": np.average(masked[1], weights=weights),
    "next_sentence_accuracy": np.mean(np.argmax(following[2], -1) == labels),
    "next_sentence_loss": np.mean(following[1]),
  }
  assert weights.reshape(4, -1).sum(1).std() > 0, "equal batches would prove nothing"
  assert list(results) == list(expected)
  for key, value in expected.items():
    np.testing.assert_allclose(results[key], value, rtol=2e-6, err_msg=key)

  values["output_dir"] = tmp_path / "padded"
  run_well(**values, eval_batch_size=3, do_eval=True, pad_to_max_length=True)
  padded = results_in(tmp_path / "padded/eval_results.txt")
  np.testing.assert_allclose(list(padded.values()), list(results.values()), rtol=2e-6)


def test_nothing_masked_is_zero_and_not_nan():
  nothing = np.zeros(2, np.float32)
  results = run_pretraining.metric_fn(
    nothing + 1, nothing, nothing, nothing, nothing, nothing, nothing
  )
  assert results["masked_lm_loss"] == results["masked_lm_accuracy"] == 0.0


# ---------------------------------------------------------------------------------------------
# What must not change a result.


def test_the_loss_without_next_sentences(model, tmp_path):
  """What the label is makes no difference then, and its head and the pooler stay as they are."""
  path = tmp_path / "train.tfrecord"
  write_with_facts(path, make_records(16), no_next_sentence=True)
  values = {**model, "input_file": path, "num_train_steps": 2, "do_train": True}
  warned = run_well(**values, output_dir=tmp_path / "with").err
  assert f"{path}: written with --no_next_sentence, so its next_sentence_labels are all 0" in warned
  values["next_sentence_loss"] = False
  done = run_well(**values, output_dir=tmp_path / "without", do_eval=True, max_eval_steps=2)
  assert "--no_next_sentence" not in done.err
  before, after = (tensors(tmp_path / f"without/model.ckpt-{step}") for step in (0, 2))
  assert before.keys() == after.keys()
  for name in ("cls/seq_relationship/output_weights", "bert/pooler/dense/kernel"):
    assert np.array_equal(before[name], after[name])
    assert not np.array_equal(tensors(tmp_path / "with/model.ckpt-2")[name], after[name])
  results = results_in(tmp_path / "without/eval_results.txt")
  # The mean of batches, and the mean of masked words.
  assert results["loss"] == pytest.approx(results["masked_lm_loss"], abs=0.05)


def test_skipping_padding_changes_neither_loss_nor_gradients():
  config = BertConfig.from_dict(
    {**CONFIG, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
  )
  batch = batch_of(make_records(8, seed=3))
  store = VariableStore()
  model_fn = run_pretraining.model_fn_builder(config, None, 1e-3, 10, 0, False, False)

  @tf.function(autograph=False)
  def both(batch):
    with use_store(store):
      spec = model_fn(batch, None, ModeKeys.TRAIN, {})
    masked, following = forward(config, store, batch)
    plain = tf.gradients(masked[0] + following[0], spec.train_op.variables)
    gradients = [tf.convert_to_tensor(g) for g in spec.train_op.gradients]
    return (spec.loss, gradients), (masked[0] + following[0], plain)

  (loss, gradients), (plain_loss, plain_gradients) = both(batch)
  assert tf.reduce_any(batch["input_mask"][:, :12] == 0), "without padding nothing is proved"
  np.testing.assert_allclose(loss, plain_loss, rtol=1e-6)
  for name, ours, plain in zip(store.trainable_variables, gradients, plain_gradients, strict=True):
    scale = max(np.abs(plain).max(), 1e-3)  # of a key's bias only rounding is there
    np.testing.assert_allclose(ours / scale, plain / scale, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("is_masked", [True, False], ids=["masked", "dynamic"])
def test_packed_rows_train_as_plain_ones(unmasked, model, tmp_path, is_masked):
  """Without dropout, whose bits belong to places in rows."""
  config = tmp_path / "bert_config.json"
  no_dropout = {"hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
  config.write_text(json.dumps({**CONFIG, **no_dropout}))
  values = {**(model if is_masked else unmasked), "bert_config_file": config, "do_train": True}
  values |= {"num_train_steps": 4, "num_warmup_steps": 0}
  weights, told = {}, {}
  for packed in (False, True):
    out = tmp_path / str(packed)
    run_well(**values, output_dir=out, pack_sequences=packed, save_summary_steps=1)
    weights[packed], told[packed] = tensors(out / "model.ckpt-4"), scalars_in(out)
  for name in ("loss", "masked_lm_loss", "masked_lm_accuracy", "tokens_per_example"):
    plain = list(told[False][name].values())
    assert list(told[True][name].values()) == pytest.approx(plain, abs=1e-5), name
  for name, plain in weights[False].items():
    np.testing.assert_allclose(weights[True][name], plain, rtol=0, atol=5e-5, err_msg=name)


def test_a_masked_position_without_weight_may_be_anything(trained, tmp_path):
  """Other programs fill up with other positions than 0, and batches are cut shorter than those."""
  odd = make_records(8, masked_each=2, longest=8)
  for record in odd:
    record["masked_lm_positions"][2] = 15
  write_records(tmp_path / "odd.tfrecord", odd)
  write_records(tmp_path / "plain.tfrecord", make_records(8, masked_each=2, longest=8))
  losses = []
  for name in ("odd", "plain"):
    values = {**trained.flags, "init_checkpoint": trained.out, "output_dir": tmp_path / name}
    run_well(**values, eval_input_file=tmp_path / f"{name}.tfrecord", do_eval=True)
    losses.append(results_in(tmp_path / name / "eval_results.txt"))
  assert losses[0] == losses[1]


def test_accumulated_gradients_are_those_of_the_batch(model, tmp_path):
  """To rounding, where every part has as many masked words: each part is a mean of its own."""
  config = {**CONFIG, "hidden_dropout_prob": 0.0, "attention_probs_dropout_prob": 0.0}
  (tmp_path / "config.json").write_text(json.dumps(config))
  write_records(tmp_path / "train.tfrecord", make_records(16, masked_each=2))
  ends = []
  for parts in (1, 4):
    values = {**model, "bert_config_file": tmp_path / "config.json"}
    values |= {"input_file": tmp_path / "train.tfrecord", "output_dir": tmp_path / f"{parts}"}
    run_well(**values, gradient_accumulation_steps=parts, do_train=True)
    ends.append(tensors(tmp_path / f"{parts}" / "model.ckpt-3"))
  for name, value in ends[0].items():
    if name.endswith("/adam_m"):
      scale = max(np.abs(value).max(), 1e-3)
      np.testing.assert_allclose(ends[1][name] / scale, value / scale, atol=1e-4, err_msg=name)


# ---------------------------------------------------------------------------------------------
# Going on: a stopped run, another checkpoint, a second phase.


def test_five_and_five_steps_are_ten_bit_for_bit(model, tmp_path, monkeypatch):
  """With dropout, shuffling and several files, and a second start that knows only the folder."""
  for i in range(3):
    write_records(tmp_path / f"part-{i}.tfrecord", make_records(11, seed=i))
  values = {**model, "input_file": tmp_path / "part-*.tfrecord", "num_train_steps": 10}
  values |= {"save_checkpoints_steps": 5, "do_train": True}
  run_well(**values, output_dir=tmp_path / "straight")

  save = checkpoint.save

  def save_and_stop(directory, step, *args, **kwargs):
    save(directory, step, *args, **kwargs)
    if step == 5:
      raise KeyboardInterrupt

  with monkeypatch.context() as patch:
    patch.setattr(checkpoint, "save", save_and_stop)
    assert run(**values, output_dir=tmp_path / "parts").code == 130
  assert not (tmp_path / "parts" / "model.ckpt-10.index").exists()
  assert "Resumed from" in run_well(**values, output_dir=tmp_path / "parts").err

  straight, parts = (tensors(tmp_path / name / "model.ckpt-10") for name in ("straight", "parts"))
  assert straight.keys() == parts.keys()
  assert "cls/predictions/output_bias/adam_v" in straight
  for name, value in straight.items():
    np.testing.assert_array_equal(value, parts[name], err_msg=name)


def test_an_encoder_alone_gets_new_heads_and_it_is_said(trained, tmp_path):
  encoder = {
    name: tf.Variable(value)
    for name, value in tensors(trained.out).items()
    if name.startswith("bert/") and "adam" not in name
  }
  checkpoint.save(str(tmp_path / "encoder"), 0, encoder, {}, keep=1)
  values = {**trained.flags, "init_checkpoint": tmp_path / "encoder", "num_train_steps": 1}
  done = run_well(**{**values, "output_dir": tmp_path / "out"}, do_train=True)
  [said] = [line for line in done.err.splitlines() if "hence RANDOM" in line]
  assert "cls/predictions/transform/dense/kernel" in said
  assert "bert/" not in said.split("hence RANDOM")[1]
  first = tensors(tmp_path / "out/model.ckpt-0")
  for name, variable in encoder.items():
    np.testing.assert_array_equal(first[name], variable.numpy(), err_msg=name)
  assert first["cls/predictions/transform/dense/kernel"].std() > 0.1


def test_export_of_what_was_pretrained(trained, tmp_path):
  values = {**trained.flags, "do_export": True, "export_dir": tmp_path / "export"}
  assert "--do_export needs --vocab_file" in error_of(**values)
  special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
  words = [f"w{i}" for i in range(len(special), VOCAB_SIZE)]
  (tmp_path / "vocab.txt").write_text("\n".join(special + words) + "\n")
  run_well(**values, vocab_file=tmp_path / "vocab.txt")
  assert sorted(os.listdir(tmp_path / "export")) == ["encoder", "preprocess"]
  encoder = tf.saved_model.load(str(tmp_path / "export" / "encoder"))
  saved = tensors(trained.out / "model.ckpt-60")
  for variable in encoder.mlm.variables:
    np.testing.assert_array_equal(variable, saved[variable.name.split(":")[0]])


def test_a_second_phase_with_longer_sequences_starts_from_the_first(trained, tmp_path):
  write_records(tmp_path / "long.tfrecord", make_records(8, seq_length=32, predictions=6))
  values = {**trained.flags, "init_checkpoint": trained.out, "output_dir": tmp_path / "out"}
  values |= {"input_file": tmp_path / "long.tfrecord", "num_train_steps": 2}
  values |= {"max_seq_length": 32, "max_predictions_per_seq": 6}
  done = run_well(**values, do_train=True)
  assert "RANDOM" not in done.err
  before, first = tensors(trained.out / "model.ckpt-60"), tensors(tmp_path / "out/model.ckpt-0")
  assert first["global_step"] == 0
  for name, value in first.items():
    if "/adam_" in name:
      assert not value.any(), name
    elif name != "global_step":
      np.testing.assert_array_equal(value, before[name], err_msg=name)
  assert tensors(tmp_path / "out")["global_step"] == 2


def test_another_model_in_the_folder_is_refused(trained, tmp_path):
  shutil.copytree(trained.out, tmp_path / "out")
  (tmp_path / "config.json").write_text(json.dumps({**CONFIG, "num_attention_heads": 4}))
  values = {**trained.flags, "output_dir": tmp_path / "out"}
  message = error_of(**{**values, "bert_config_file": tmp_path / "config.json"}, do_eval=True)
  assert "num_attention_heads was 2, now 4" in message


def test_a_folder_of_another_script_is_refused(trained, tmp_path):
  start = tensors(trained.out / "model.ckpt-0")
  state = {"fingerprint": {"task_name": "mrpc"}}
  checkpoint.save(str(tmp_path), 3, {n: tf.Variable(v) for n, v in start.items()}, state, keep=1)
  message = error_of(**{**trained.flags, "output_dir": tmp_path}, do_train=True)
  assert "task_name was 'mrpc', now 'pretraining'" in message


# ---------------------------------------------------------------------------------------------
# Against the original.


def test_flags_of_the_original(golden_dir):
  golden = json.loads((golden_dir / "flags.json").read_text())["run_pretraining"]
  with flag_groups.defined_flags(run_pretraining.define_flags):
    ours = {flag["name"]: flag for flag in flag_groups.describe()}
  assert len(golden) == 22
  for flag in golden:
    assert ours[flag["name"]] == flag


@pytest.fixture(scope="module")
def golden_flags(golden_dir, tmp_path_factory) -> dict:
  """The flags of the original's 20 recorded steps, its batches written as records."""
  data = np.load(golden_dir / "tiny_pretrain.npz")
  names = [n for n in data.files if data[n].shape[:2] == (20, 4) and n != "label_ids"]
  path = tmp_path_factory.mktemp("golden") / "batches.tfrecord"
  write_records(path, ({n: data[n][i, j] for n in names} for i in range(20) for j in range(4)))
  return {
    "input_file": path,
    "bert_config_file": golden_dir / "tiny" / "bert_config.json",
    "max_seq_length": 32,
    "max_predictions_per_seq": 5,
    "train_batch_size": 4,
    "shuffle_buffer_size": 1,  # The order of the file.
    "learning_rate": 1e-2,
    "num_train_steps": 20,
    "num_warmup_steps": 5,
    "do_train": True,
  }


def test_20_steps_equal_the_original(golden_dir, golden_flags, tmp_path):
  """Losses show the clip norm too: the tied output makes the gradient of the word table dense."""
  golden = np.load(golden_dir / "tiny_pretrain.npz")
  start = golden_dir / "tiny" / "bert_model.ckpt"
  values = {**golden_flags, "init_checkpoint": start, "output_dir": tmp_path}
  run_well(**values, save_summary_steps=1)
  scalars = scalars_in(tmp_path)
  for i, name in enumerate(("masked_lm_loss", "next_sentence_loss")):
    losses = [scalars[name][step] for step in range(1, 21)]
    np.testing.assert_allclose(losses, golden["losses"][:, i], rtol=1e-5, err_msg=name)
  rates = [scalars["learning_rate"][step] for step in range(1, 21)]
  np.testing.assert_allclose(rates, golden["learning_rate"][:20], rtol=1e-6, atol=1e-12)

  actual = tensors(tmp_path / "model.ckpt-20")
  expected = tensors(golden_dir / "tiny_pretrain_20steps.ckpt")
  assert actual.keys() == expected.keys()
  for name, value in expected.items():
    assert (actual[name].dtype, actual[name].shape) == (value.dtype, value.shape), name
    if "attention/self/key/bias" in name:
      continue  # the true gradient is zero: only rounding is there to compare
    tolerance = 1e-3 if "word_embeddings" in name else 1e-4
    assert np.abs(actual[name] - value).max() <= tolerance * np.abs(value).max(), name


def test_a_checkpoint_of_the_original_resumes(golden_dir, golden_flags, tmp_path):
  """Slots included: the same step from weights alone would start Adam anew and go elsewhere."""
  for path in golden_dir.glob("tiny_pretrain_20steps.ckpt.*"):
    ending = path.name.removeprefix("tiny_pretrain_20steps.ckpt")
    shutil.copyfile(path, tmp_path / f"model.ckpt-20{ending}")
  (tmp_path / "checkpoint").write_text('model_checkpoint_path: "model.ckpt-20"\n')
  done = run_well(**{**golden_flags, "num_train_steps": 21}, output_dir=tmp_path)
  assert f"Resumed from {tmp_path}/model.ckpt-20." in done.err
  assert "Adam starts anew" not in done.err
  before, after = (tensors(tmp_path / f"model.ckpt-{step}") for step in (20, 21))
  assert after["global_step"] == 21
  assert {n: (v.dtype, v.shape) for n, v in after.items()} == {
    n: (v.dtype, v.shape) for n, v in before.items()
  }
  # A decay of 0.999 and squares: the second moment cannot fall further than that.
  name = "cls/predictions/transform/dense/kernel/adam_v"
  assert before[name].max() > 0
  assert (after[name] >= before[name] * 0.998).all()


# ---------------------------------------------------------------------------------------------
# Records and patterns.


def test_patterns_and_lists_name_files(tmp_path):
  for name in ("b-1", "b-0", "a"):
    write_records(tmp_path / name, [{"x": 1}])  # and a hidden manifest beside each
  with flag_groups.defined_flags(run_pretraining.define_flags) as values:
    values.input_file = f"{tmp_path}/b*, {tmp_path}/a,"
    values.mark_as_parsed()
    found = run_pretraining.find_files("input_file")
    values.input_file = f"{tmp_path}/*"
    everything = run_pretraining.find_files("input_file")
  assert [os.path.basename(path) for path in found] == ["b-0", "b-1", "a"]
  assert [os.path.basename(path) for path in everything] == ["a", "b-0", "b-1"]


def with_value(name, value):
  [record] = make_records(1, masked_each=2)
  record[name] = np.array(record[name])
  record[name][0] = value
  return record


def without(name):
  [record] = make_records(1)
  del record[name]
  return record


BAD_RECORDS = {
  "length": (
    make_records(1, seq_length=24)[0],
    ["input_ids has 24 values, but --max_seq_length is 16", "Give --max_seq_length=24"],
  ),
  "predictions": (
    make_records(1, predictions=5)[0],
    ["has 5 values, but --max_predictions_per_seq is 3", "Give --max_predictions_per_seq=5"],
  ),
  "word": (
    with_value("input_ids", VOCAB_SIZE),
    [f"input_ids holds {VOCAB_SIZE}, but the vocab_size of --bert_config_file="],
  ),
  "negative word": (with_value("input_ids", -1), ["input_ids holds -1, but the vocab_size"]),
  "masked word": (
    with_value("masked_lm_ids", 30000),
    ["masked_lm_ids holds 30000, but the vocab_size of --bert_config_file=", "is 40"],
  ),
  "position": (with_value("masked_lm_positions", 16), ["masked_lm_positions holds 16"]),
  "position of padding": (
    with_value("masked_lm_positions", 15),
    ["masked_lm_positions holds 15, where input_mask shows no token"],
  ),
  "other file": (without("masked_lm_ids"), ["no int64_list 'masked_lm_ids'", "input_ids"]),
  "other type": (
    {**make_records(1)[0], "masked_lm_weights": [1, 1, 1]},
    ["no float_list 'masked_lm_weights'"],
  ),
}


@pytest.mark.parametrize("case", BAD_RECORDS)
def test_records_that_do_not_fit_are_refused_at_once(model, tmp_path, case):
  record, parts = BAD_RECORDS[case]
  path = tmp_path / "bad.tfrecord"
  write_records(path, [*make_records(2), record])
  values = {**model, "input_file": path, "output_dir": tmp_path / "out"}
  message = error_of(**values, do_train=True)
  assert message.startswith(f"ERROR: {path}, record {1 if len(parts) == 0 else 3}: ")
  for part in parts:
    assert part in message
  assert not (tmp_path / "out").exists()


def write_with_facts(path, records, /, **facts):
  """Records with more facts in the manifest beside them."""
  write_records(path, records)
  manifest = path.parent / f".{path.name}.manifest.json"
  manifest.write_text(json.dumps({**json.loads(manifest.read_text()), **facts}))


UNFIT_MANIFESTS = {
  "length": (
    {"max_seq_length": 24},
    "max_seq_length is 24, but --max_seq_length is 16. Give --max_seq_length=24, or",
  ),
  "predictions": (
    {"max_predictions_per_seq": 5},
    "max_predictions_per_seq is 5, but --max_predictions_per_seq is 3. Give "
    "--max_predictions_per_seq=5, or",
  ),
  "vocabulary size": (
    {"vocab_size": 41},
    "made with a vocabulary of 41 tokens; the vocab_size of --bert_config_file=",
  ),
  "unmasked": (
    {"dynamic_masking": True},
    "its sequences have no masks, which were left to the training. Give --dynamic_masking and",
  ),
  "no record": ({"records": 0}, "it holds no record"),
}


@pytest.mark.parametrize("case", UNFIT_MANIFESTS)
def test_records_whose_manifest_does_not_fit_are_refused(model, tmp_path, case):
  """Even where the records look right: those of the model, with other facts beside them."""
  facts, said = UNFIT_MANIFESTS[case]
  path = tmp_path / "train.tfrecord"
  write_with_facts(path, make_records(4), **facts)
  values = {**model, "input_file": path, "output_dir": tmp_path / "out"}
  message = error_of(**values, do_train=True)
  assert message.startswith(f"ERROR: {path}, by its manifest: {said}")
  assert not (tmp_path / "out").exists()


def test_a_fitting_manifest_and_a_smaller_vocabulary_train(model, tmp_path):
  path = tmp_path / "train.tfrecord"
  facts = {"max_seq_length": 16, "max_predictions_per_seq": 3, "dynamic_masking": False}
  write_with_facts(path, make_records(8), **facts, vocab_size=39, vocabulary="ab" * 32)
  values = {**model, "input_file": path, "output_dir": tmp_path / "out", "num_train_steps": 1}
  done = run_well(**values, do_train=True)
  assert "made with a vocabulary of 39 tokens" in done.err
  state = checkpoint.read_state(str(tmp_path / "out/model.ckpt-1"))
  assert state["fingerprint"]["vocabulary"] == "ab" * 32

  # Records of another vocabulary do not go on with this model.
  write_with_facts(path, make_records(8), **facts, vocab_size=40, vocabulary="cd" * 32)
  assert "vocabulary was 'abab" in error_of(**{**values, "num_train_steps": 2}, do_train=True)


def test_files_of_two_vocabularies_are_refused(model, tmp_path):
  for name in "ab":
    write_with_facts(tmp_path / name, make_records(4), vocabulary=name * 64)
  values = {**model, "output_dir": tmp_path / "out"}
  said = (
    f"ERROR: {tmp_path}/b, by its manifest: the hash of its vocabulary begins with bbbbbbbbbbbb, "
    f"but that of {tmp_path}/a with aaaaaaaaaaaa."
  )
  assert error_of(**values | {"input_file": f"{tmp_path}/*"}, do_train=True).startswith(said)
  files = {"input_file": tmp_path / "a", "eval_input_file": tmp_path / "b"}
  assert error_of(**values | files, do_train=True, do_eval=True).startswith(said)
  # What is not read is not compared.
  run_well(**values | files, do_train=True)


def test_another_vocabulary_than_the_one_at_hand_is_refused(model, tmp_path):
  vocab_file = write_vocabulary(tmp_path / "vocab.txt")
  path = tmp_path / "train.tfrecord"
  write_with_facts(path, make_records(8), vocabulary="ab" * 32)
  values = {**model, "input_file": path, "output_dir": tmp_path / "out", "vocab_file": vocab_file}
  assert f"but that of --vocab_file={vocab_file} with" in error_of(**values, do_train=True)
  made_with = tokenization.vocabulary_hash(tokenization.load_vocab(vocab_file))
  write_with_facts(path, make_records(8), vocabulary=made_with)
  run_well(**values, do_train=True)


def test_compressed_records_train_alike(model, tmp_path):
  """Among plain ones, too: by the manifest, or by the first bytes."""
  for folder in ("plain", "gzip"):
    (tmp_path / folder).mkdir()
    for i in range(3):
      write_records(tmp_path / folder / f"{i}", make_records(8, seed=i))
  for i, facts in ((0, None), (2, {"compression": "GZIP"})):
    path = tmp_path / "gzip" / f"{i}"
    path.write_bytes(gzip.compress(path.read_bytes()))
    manifest = tmp_path / "gzip" / f".{i}.manifest.json"
    manifest.write_text(json.dumps(facts)) if facts else manifest.unlink()
  for folder in ("plain", "gzip"):
    files = tmp_path / folder / "*"
    run_well(
      **model | {"input_file": files, "output_dir": tmp_path / f"{folder}-out"}, do_train=True
    )
  plain, ours = (tensors(tmp_path / f"{name}-out/model.ckpt-3") for name in ("plain", "gzip"))
  for name, value in plain.items():
    np.testing.assert_array_equal(ours[name], value, err_msg=name)


# ---------------------------------------------------------------------------------------------
# Masks that are drawn while reading.


def write_vocabulary(path):
  tokens = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]
  tokens += [f"word{i}" for i in range(VOCAB_SIZE - len(tokens))]
  path.write_text("".join(f"{token}\n" for token in tokens))
  return path


def make_unmasked(count, word_starts=False, **options):
  """Each word follows from its position, and the second half of them are pieces."""
  made = []
  for record in make_records(count, **options):
    length = sum(record["input_mask"])
    ids = np.where(np.arange(16) < length, 10 + np.arange(16), 0)
    ids[:2] = record["input_ids"][:2]
    ids[length - 1] = 3
    record = {name: record[name] for name in ("input_mask", "segment_ids", "next_sentence_labels")}
    record["input_ids"] = ids
    if word_starts:
      record["word_starts"] = (np.arange(16) < length) * (np.arange(16) % 2)
    made.append(record)
  return made


@pytest.fixture(scope="module")
def unmasked(model, tmp_path_factory) -> dict:
  """The flags of a run on unmasked records."""
  folder = tmp_path_factory.mktemp("unmasked")
  write_with_facts(folder / "train.tfrecord", make_unmasked(22), dynamic_masking=True)
  return {
    **model,
    "input_file": folder / "train.tfrecord",
    "vocab_file": write_vocabulary(folder / "vocab.txt"),
    "dynamic_masking": True,
  }


def test_it_learns_from_masks_drawn_while_reading(unmasked, tmp_path):
  # So small a model learns in so few steps what the next sentence is from some seeds only.
  values = {**unmasked, "output_dir": tmp_path, "num_train_steps": 150, "seed": 3}
  run_well(**values, max_eval_steps=20, do_train=True, do_eval=True)
  results = results_in(tmp_path / "eval_results.txt")
  assert results["masked_lm_accuracy"] > 0.7
  assert results["next_sentence_accuracy"] > 0.7  # The piece that tells may be masked itself.


def dynamic_batches(is_training, batches, path, whole_words=False, **params):
  masking = dynamic_masking.Masking(VOCAB_SIZE, 4, (2, 3), 3, 0.15, whole_words)
  input_fn = run_pretraining.input_fn_builder(path, 16, 3, is_training, masking=masking)
  dataset = input_fn({"batch_size": 4, "seed": 1, "skip_examples": 0, **params})
  return [{n: v.numpy() for n, v in batch.items()} for batch in dataset.take(batches)]


def assert_same_batches(first, second):
  for one, other in zip(first, second, strict=True):
    assert one.keys() == other.keys()
    for name, value in one.items():
      np.testing.assert_array_equal(other[name], value, err_msg=name)


def test_masks_change_with_each_pass_and_are_the_same_after_a_resumption(unmasked):
  path = unmasked["input_file"]
  straight = dynamic_batches(True, 20, path)
  assert_same_batches(dynamic_batches(True, 13, path, skip_examples=28), straight[7:])
  # Batches of another size hold the same examples with the same masks.
  wide = dynamic_batches(True, 10, path, batch_size=8)
  for name in ("masked_lm_positions", "masked_lm_ids", "masked_lm_weights"):
    both = [np.concatenate([batch[name] for batch in made]) for made in (straight, wide)]
    np.testing.assert_array_equal(*both, err_msg=name)
  # 80 examples of 22 records: each comes back three or four times.
  masks: dict[tuple, set] = {}
  for batch in straight:
    for i in range(4):
      ids, positions = batch["input_ids"][i].copy(), batch["masked_lm_positions"][i]
      there = positions[batch["masked_lm_weights"][i] > 0]
      ids[there] = batch["masked_lm_ids"][i][: len(there)]
      masks.setdefault(tuple(ids.tolist()), set()).add(tuple(there.tolist()))
  assert np.mean([len(drawn) for drawn in masks.values()]) > 2


def test_masks_of_evaluation_are_fixed(unmasked):
  path = unmasked["input_file"]
  first = dynamic_batches(False, 11, path)
  assert_same_batches(dynamic_batches(False, 11, path, seed=99), first)
  flat = [np.concatenate([b["masked_lm_positions"] for b in first])[i : i + 22] for i in (0, 22)]
  np.testing.assert_array_equal(*flat)  # The second pass.
  assert len(np.unique(flat[0], axis=0)) > 10


def test_whole_words_need_their_starts(unmasked, tmp_path):
  values = {**unmasked, "output_dir": tmp_path / "out", "do_whole_word_mask": True}
  message = error_of(**values, do_train=True)
  assert "record 1: it does not say where words begin (word_starts). Leave out" in message
  path = tmp_path / "words.tfrecord"
  write_records(path, make_unmasked(12, word_starts=True))
  run_well(**{**values, "input_file": path}, do_train=True)
  # Words are pieces 1 and 2, 3 and 4, ...; the first is [CLS], and P is 3.
  for batch in dynamic_batches(True, 10, path, whole_words=True):
    for positions, weights in zip(
      batch["masked_lm_positions"], batch["masked_lm_weights"], strict=True
    ):
      there = positions[weights > 0]
      assert len(there) in (0, 1, 2)
      assert len(there) < 2 or (there[0] % 2 == 1 and there[1] == there[0] + 1)


def test_masks_where_none_should_be_and_the_other_way_round(model, unmasked, tmp_path):
  out = {"output_dir": tmp_path / "out", "do_train": True}
  masked = {**unmasked, "input_file": model["input_file"]}
  message = error_of(**masked, **out)
  assert f"{model['input_file']}, record 1: its sequences have masks already" in message
  assert "Leave out --dynamic_masking, or" in message
  plain = tmp_path / "plain.tfrecord"
  write_records(plain, make_unmasked(3))  # A manifest that does not tell.
  message = error_of(**{**model, "input_file": plain}, **out)
  assert f"{plain}, record 1: its sequences have no masks" in message
  assert "Give --dynamic_masking and --vocab_file, or" in message
  told = tmp_path / "told.tfrecord"
  write_with_facts(told, make_records(3), dynamic_masking=False)
  message = error_of(**{**unmasked, "input_file": told}, **out)
  assert f"{told}, by its manifest: its sequences have masks already" in message


@pytest.mark.filterwarnings("ignore::tokenization.VocabularyWarning")
def test_bad_flags_of_masking(unmasked, model, tmp_path):
  out = {"output_dir": tmp_path / "out", "do_train": True}
  without = {name: value for name, value in unmasked.items() if name != "vocab_file"}
  assert "--dynamic_masking needs --vocab_file" in error_of(**without, **out)
  assert "--masked_lm_prob=0.0: above 0" in error_of(**unmasked, masked_lm_prob=0, **out)
  message = error_of(**model, do_whole_word_mask=True, **out)
  assert "--do_whole_word_mask is about masks that are drawn while reading" in message
  short = tmp_path / "short.txt"
  short.write_text("[PAD]\n[CLS]\n[SEP]\n")
  message = error_of(**{**unmasked, "vocab_file": short}, **out)
  assert f"--vocab_file={short}: The vocabulary lacks [MASK]" in message
  long = write_vocabulary(tmp_path / "long.txt")
  long.write_text(long.read_text() + "one more\n")
  message = error_of(**{**unmasked, "vocab_file": long}, **out)
  assert f"--vocab_file={long} has 41 tokens, but the vocab_size" in message


# ---------------------------------------------------------------------------------------------
# Records that do not fit.


def test_a_bad_word_deep_in_a_file_is_found_when_it_stops_the_training(model, tmp_path):
  path = tmp_path / "bad.tfrecord"
  write_records(path, [*make_records(40), with_value("input_ids", VOCAB_SIZE)])
  values = {**model, "input_file": path, "output_dir": tmp_path / "out", "num_train_steps": 9}
  message = error_of(**values, do_train=True)
  assert message.startswith(f"ERROR: {path}, record 41: input_ids holds {VOCAB_SIZE}, ")


def test_a_file_that_is_no_file_of_records(model, tmp_path):
  path = tmp_path / "records"
  for content, said in (
    (b"", "holds no record"),
    (b"Once upon a time. " * 9, ", record 1: the file is damaged or cut short there"),
  ):
    path.write_bytes(content)
    values = {**model, "input_file": path, "output_dir": tmp_path / "out"}
    assert f"ERROR: {path}{said if said[0] == ',' else ' ' + said}" in error_of(
      **values, do_train=True
    )


@pytest.mark.parametrize(
  ("change", "said"),
  [
    ({"do_train": False}, "At least one of `do_train` or `do_eval` must be True."),
    ({"input_file": "nowhere/*.tfrecord"}, "--input_file: nowhere/*.tfrecord matches no file."),
    ({"input_file": ","}, "--input_file=, names no file."),
    ({"num_train_steps": 0}, "--num_train_steps=0: at least 1 is needed."),
    ({"num_warmup_steps": -1}, "--num_warmup_steps=-1: at least 0 is needed."),
    ({"max_eval_steps": 0}, "--max_eval_steps=0: at least 1 is needed."),
    ({"max_predictions_per_seq": 0}, "--max_predictions_per_seq=0: at least 1 is needed."),
    (
      {"max_seq_length": 33},
      "Cannot use sequence length 33 because the BERT model was only trained up to sequence "
      "length 32",
    ),
    ({"gradient_accumulation_steps": 3}, "does not divide into"),
    ({"init_checkpoint": "nowhere/bert.ckpt"}, "the folder nowhere does not exist"),
  ],
)
def test_one_message_before_any_work(model, tmp_path, change, said):
  values = {**model, "output_dir": tmp_path / "out", "do_train": True, **change}
  assert said in error_of(**values)
  assert not (tmp_path / "out").exists()


def test_a_warmup_as_long_as_the_run_is_warned_of(model, tmp_path):
  values = {**model, "output_dir": tmp_path, "num_train_steps": 1, "num_warmup_steps": 1}
  assert "the learning rate never reaches its peak" in run_well(**values, do_train=True).err


def test_the_cheap_part_of_the_doctor_is_done_at_the_start(model, tmp_path):
  (tmp_path / "config.json").write_text(json.dumps({**CONFIG, "vocab_size": 200}))
  tokens = write_vocabulary(tmp_path / "vocab.txt").read_text().upper()
  (tmp_path / "vocab.txt").write_text(tokens)
  (tmp_path / "out").write_text("No folder.")
  files = {"bert_config_file": tmp_path / "config.json", "vocab_file": tmp_path / "vocab.txt"}
  done = run(**{**model, **files}, output_dir=tmp_path / "out", do_train=True)
  assert done.code == 1  # the folder; what comes before it has been told
  assert done.err.count("is it the model's own?") == 1
  assert "--output_dir is a file" in done.err
  # No text is read here, so its case is nobody's.
  assert "do_lower_case" not in done.err


def test_without_flags_the_required_ones_are_named():
  message = error_of()
  for name in ("input_file", "bert_config_file", "output_dir"):
    assert f"Flag --{name} must have a value other than None." in message


# ---------------------------------------------------------------------------------------------
# As a module and as a program.


def test_the_originals_functions_are_found_here():
  for name in ("get_masked_lm_output", "get_next_sentence_output", "gather_indexes"):
    assert getattr(run_pretraining, name) is getattr(heads, name)
  with pytest.raises(AttributeError, match="get_nothing"):
    run_pretraining.get_nothing  # noqa: B018


def test_importing_defines_no_flag_and_loads_no_tensorflow(tmp_path):
  program = (
    "import sys; from bert import run_pretraining; from absl import flags; "
    "print('tensorflow' in sys.modules, 'input_file' in flags.FLAGS)"
  )
  done = subprocess.run(
    [sys.executable, "-c", program],
    env={**os.environ, "PYTHONPATH": str(ROOT)},
    capture_output=True,
    text=True,
    cwd=tmp_path,
    timeout=120,
    check=False,
  )
  assert done.stdout.split() == ["False", "False"], done.stderr
