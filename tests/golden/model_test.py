"""Outputs, losses, training steps and checkpoints are the original's. See README.md."""

import functools
import pathlib
import shutil

import numpy as np
import pytest
import tensorflow as tf

from bert import modeling, optimization, run_classifier, run_pretraining, run_squad
from bert.training.estimator import Estimator, EstimatorSpec, RunConfig
from tests.golden.record import BATCH, OPTIMIZATION, STEPS, STEPS_AFTER_RESUMING
from tests.kit import event_files, script_runs, tiny_pretraining

FOLDER = pathlib.Path(__file__).parent
INITIAL = str(FOLDER / "initial.ckpt")
SEQUENCES = ("input_ids", "input_mask", "segment_ids")
END = STEPS + STEPS_AFTER_RESUMING


def load_config(**changes) -> modeling.BertConfig:
  config = modeling.BertConfig.from_json_file(FOLDER / "inputs" / "bert_config.json")
  vars(config).update(changes)
  return config


# ---------------------------------------------------------------------------------------------
# One batch.


@pytest.fixture(scope="module")
def golden():
  with np.load(FOLDER / "forward.npz") as arrays:
    return dict(arrays)


def outputs_of(compute, golden, folder) -> dict[str, np.ndarray]:
  """Loads the initial weights; returns what `compute(features)` makes of the recorded batch."""

  def model_fn(features, labels, mode, params):
    return EstimatorSpec(mode, predictions=compute(features), init_checkpoint=INITIAL)

  features = {name: values for name, values in golden.items() if "/" not in name}
  estimator = Estimator(model_fn, RunConfig(str(folder)))
  predictions = estimator.predict(
    lambda params: tf.data.Dataset.from_tensor_slices(features).batch(BATCH)
  )
  rows = list(predictions)
  return {name: np.stack([row[name] for row in rows]) for name in rows[0]}


def assert_close(found, golden, prefix):
  assert found
  for name, values in found.items():
    expected = golden[f"{prefix}/{name}"]
    np.testing.assert_allclose(values, expected, rtol=0, atol=1e-5, err_msg=name)


@pytest.mark.parametrize("inputs", ["padded", "holes", "ids_only", "relu", "tanh", "linear"])
def test_forward_pass(inputs, golden, tmp_path):
  config = load_config(**({"hidden_act": inputs} if inputs in ("relu", "tanh", "linear") else {}))

  def compute(features):
    mask = features["holes_mask" if inputs == "holes" else "input_mask"]
    others = [] if inputs == "ids_only" else [mask, features["segment_ids"]]
    model = modeling.BertModel(config, False, features["input_ids"], *others)
    return {
      "embedding_output": model.get_embedding_output(),
      "layers": tf.stack(model.get_all_encoder_layers(), axis=1),
      "sequence_output": model.get_sequence_output(),
      "pooled_output": model.get_pooled_output(),
    }

  found = outputs_of(compute, golden, tmp_path)
  found["layers"] = np.swapaxes(found["layers"], 0, 1)
  assert_close(found, golden, inputs)


def in_rows(loss) -> tf.Tensor:
  return tf.fill([BATCH], loss)


def test_classifier(golden, tmp_path):
  def compute(features):
    loss, each, logits, probabilities = run_classifier.create_model(
      load_config(), False, *(features[n] for n in SEQUENCES), features["label_ids"], 3, False
    )
    outputs = {"per_example_loss": each, "logits": logits, "probabilities": probabilities}
    return {"loss": in_rows(loss), **outputs}

  assert_close(outputs_of(compute, golden, tmp_path), golden, "run_classifier")


def test_question_answering(golden, tmp_path):
  def compute(features):
    starts, ends = run_squad.create_model(
      load_config(), False, *(features[name] for name in SEQUENCES), False
    )
    return {"start_logits": starts, "end_logits": ends}

  assert_close(outputs_of(compute, golden, tmp_path), golden, "run_squad")


def test_pretraining_heads(golden, tmp_path):
  def compute(features):
    config = load_config()
    model = modeling.BertModel(config, False, *(features[name] for name in SEQUENCES))
    masked, following = tiny_pretraining.outputs_of_heads(config, model, features)
    return {
      "loss": in_rows(masked[0] + following[0]),
      "masked_lm_example_loss": tf.reshape(masked[1], [BATCH, -1]),
      "masked_lm_log_probs": tf.reshape(masked[2], [BATCH, -1, config.vocab_size]),
      "next_sentence_example_loss": following[1],
      "next_sentence_log_probs": following[2],
    }

  found = outputs_of(compute, golden, tmp_path)
  for name in ("masked_lm_example_loss", "masked_lm_log_probs"):
    found[name] = np.concatenate(found[name])
  assert_close(found, golden, "run_pretraining")


# ---------------------------------------------------------------------------------------------
# Training.


def classifier_model_fn(features, labels, mode, params):
  """That of `run_classifier` has a dropout which is no setting."""
  loss, *_ = run_classifier.create_model(
    load_config(), False, *(features[n] for n in SEQUENCES), features["label_ids"], 3, False
  )
  train_op = optimization.create_optimizer(loss, *OPTIMIZATION)
  return EstimatorSpec(mode, loss=loss, train_op=train_op, init_checkpoint=INITIAL)


def model_fn_of(script):
  if script == "run_classifier":
    return classifier_model_fn
  module = {"run_pretraining": run_pretraining, "run_squad": run_squad}[script]
  return module.model_fn_builder(load_config(), INITIAL, *OPTIMIZATION, False, False)


@functools.cache
def training_data() -> dict[str, np.ndarray]:
  with np.load(FOLDER / "training.npz") as arrays:
    return dict(arrays)


def input_fn(params):
  """The recorded batches, in their order, from where a run continues."""
  batches = {name: values for name, values in training_data().items() if "/" not in name}
  return tf.data.Dataset.from_tensor_slices(batches).skip(params["skip_examples"] // BATCH)


def train(script, folder, max_steps):
  """Trains, or goes on, in `folder`; compares losses and learning rates of all steps made here."""
  config = RunConfig(str(folder), save_checkpoints_steps=STEPS_AFTER_RESUMING, save_summary_steps=1)
  estimator = Estimator(model_fn_of(script), config, {"train_batch_size": BATCH})
  estimator.train(input_fn, max_steps)
  curves = event_files.series_in(folder)
  for name, recorded, rtol in (("loss", "losses", 1e-5), ("learning_rate", "learning_rates", 1e-6)):
    found, expected = curves[name], training_data()[f"{script}/{recorded}"]
    steps = sorted(found)
    assert steps == list(range(max_steps - estimator.trained_steps + 1, max_steps + 1))
    np.testing.assert_allclose(
      [found[step] for step in steps],
      [expected[step - 1] for step in steps],  # Step 1 is the first.
      rtol=rtol,
      atol=1e-12,
      err_msg=name,
    )
  return estimator


# Their true gradient is zero, and they hold only rounding: they add the same to all logits of a
# softmax, which for SQuAD is over positions.
CHANGES_NOTHING = {
  "run_pretraining": ("attention/self/key/bias",),
  "run_classifier": ("attention/self/key/bias",),
  "run_squad": (
    "attention/self/key/bias",
    "layer_1/output/LayerNorm/beta",
    "cls/squad/output_bias",
  ),
}


def assert_same_checkpoint(script, folder, step):
  """Weights and slots agree to 1e-4 of the largest entry.

  Rows of the word table are allowed 1e-3: Adam magnifies their small gradients.
  """
  found, expected = folder / f"model.ckpt-{step}", FOLDER / f"{script}.ckpt-{step}"
  ours, original = script_runs.tensors(found), script_runs.tensors(expected)
  assert ours.keys() == original.keys()
  for name, values in original.items():
    assert (ours[name].dtype, ours[name].shape) == (values.dtype, values.shape), name
    if not any(part in name for part in CHANGES_NOTHING[script]):
      tolerance = 1e-3 if "word_embeddings" in name else 1e-4
      atol = tolerance * np.abs(values).max()
      np.testing.assert_allclose(ours[name], values, rtol=0, atol=atol, err_msg=name)


@pytest.mark.parametrize(
  "script",
  ["run_pretraining", "run_classifier", pytest.param("run_squad", marks=pytest.mark.ci)],
)
def test_training_steps(script, tmp_path):
  end = END if script == "run_pretraining" else STEPS
  train(script, tmp_path, end)
  for step in {STEPS, end}:
    assert_same_checkpoint(script, tmp_path, step)


@pytest.mark.ci
def test_a_checkpoint_of_tensorflow_1_is_resumed(tmp_path):
  for path in FOLDER.glob(f"run_pretraining.ckpt-{STEPS}.*"):
    shutil.copy(path, tmp_path / path.name.replace("run_pretraining", "model"))
  (tmp_path / "checkpoint").write_text(f'model_checkpoint_path: "model.ckpt-{STEPS}"\n')
  estimator = train("run_pretraining", tmp_path, END)
  assert estimator.trained_steps == STEPS_AFTER_RESUMING
  assert_same_checkpoint("run_pretraining", tmp_path, END)
