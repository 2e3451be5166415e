"""Tests of what must not change a result of run_pretraining.py, and of the original's 20 steps."""

import gzip
import json
import shutil

import numpy as np
import pytest
import tensorflow as tf

from bert import run_pretraining
from bert.io.record_files import write_records
from bert.model.configuration import BertConfig
from bert.model.variables import VariableStore, use_store
from bert.training.estimator import ModeKeys
from tests.kit import tiny_bert
from tests.kit.event_files import series_in
from tests.kit.script_runs import Script, assert_same_values, results_in, tensors
from tests.kit.tiny_pretraining import CONFIG, batch_of, forward, make_records, write_with_facts

script = Script(run_pretraining)
run, run_well, error_of = script.run, script.run_well, script.error_of


@pytest.mark.ci
def test_the_loss_without_next_sentences(model, tmp_path):
  """What the label is makes no difference then, and its head and the pooler stay as they are."""
  path = tmp_path / "train.tfrecord"
  write_with_facts(path, make_records(16), no_next_sentence=True)
  values = {**model, "input_file": path, "num_train_steps": 2, "do_train": True}
  values["keep_checkpoint_max"] = 0
  warned = run_well(**values, output_dir=tmp_path / "with").err
  assert f"{path}: written with --no_next_sentence, so its next_sentence_labels are all 0" in warned
  values["objective"] = "mlm"
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
  config = BertConfig.from_dict({**CONFIG, **tiny_bert.NO_DROPOUT})
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
    values |= {"eval_input_file": tmp_path / f"{name}.tfrecord", "max_eval_steps": 1}
    run_well(**values, do_eval=True)
    losses.append(results_in(tmp_path / name / "eval_results.txt"))
  assert losses[0] == losses[1]


@pytest.mark.ci
def test_accumulated_gradients_are_those_of_the_batch(model, tmp_path):
  """To rounding, where every part has as many masked words: each part is a mean of its own."""
  config = {**CONFIG, **tiny_bert.NO_DROPOUT}
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


@pytest.mark.usefixtures("fake_estimator")
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
  batches = {}
  for folder in ("plain", "gzip"):
    files = sorted(str(path) for path in (tmp_path / folder).glob("[0-9]"))
    input_fn = run_pretraining.input_fn_builder(files, 16, 3, is_training=True)
    dataset = input_fn({"batch_size": 8, "seed": 1, "skip_examples": 0})
    batches[folder] = [batch for _, batch in zip(range(6), dataset, strict=False)]
    values = {**model, "input_file": tmp_path / folder / "*"}
    run_well(**values, output_dir=tmp_path / f"{folder}-out", do_train=True)
  for plain, ours in zip(batches["plain"], batches["gzip"], strict=True):
    assert_same_values(ours, plain)


# ---------------------------------------------------------------------------------------------
# Against the original.


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
  scalars = series_in(tmp_path)
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
  assert "Adam starts from zero moments" not in done.err
  before, after = (tensors(tmp_path / f"model.ckpt-{step}") for step in (20, 21))
  assert after["global_step"] == 21
  assert {n: (v.dtype, v.shape) for n, v in after.items()} == {
    n: (v.dtype, v.shape) for n, v in before.items()
  }
  # A decay of 0.999 and squares: the second moment cannot fall further than that.
  name = "cls/predictions/transform/dense/kernel/adam_v"
  assert before[name].max() > 0
  assert (after[name] >= before[name] * 0.998).all()
