"""An estimator that does not train, for tests of flags, labels, messages and result files.

  def test_labels(fake_estimator, tmp_path):     # the fixture of tests/conftest.py
    script.run_well(do_train=True, do_eval=True, do_predict=True, ...)

Input functions, model and metrics are those of the script. Training reads one batch and leaves the
checkpoint of the last step, with the model's initial values; evaluation and prediction compute
batch after batch with these values, without a graph. A run takes a tenth of a second so, and one
that traces its training step takes a second and a half.
"""

import numpy as np
import tensorflow as tf

from bert.checkpoints import saving
from bert.model.variables import VariableStore, get_global_step, use_store
from bert.training.estimator import ModeKeys
from bert.training.resumption import RunState


class FakeEstimator:
  """Takes the place of `estimator.Estimator` within one process: it loads nothing from a disk."""

  def __init__(self, model_fn, config, params=None):
    self.config = config
    self.params = dict(params or {})
    self.store = VariableStore(config.seed)
    self.trained_steps = 0
    self._model_fn = model_fn
    with use_store(self.store):
      self._step = get_global_step()

  def train(self, input_fn, max_steps, eval_spec=None):
    """Saves the initial values as the checkpoint of `max_steps`."""
    del eval_spec
    [_] = self._specs(input_fn, "train", ModeKeys.EVAL, steps=1)
    self.trained_steps = max_steps
    self._step.assign(max_steps)
    examples = max_steps * self.params["train_batch_size"]
    state = {
      "fingerprint": self.config.fingerprint,
      "informative": self.config.informative,
      "run": vars(RunState(seed=self.config.seed, examples=examples)),
    }
    saving.save(self.config.model_dir, max_steps, self.store.variables, state)
    return self

  def evaluate(self, input_fn, steps=None, checkpoint_path=None, name=None, on_rows=None):
    """What the model's `metric_fn` makes of its outputs, `loss` and `global_step`."""
    del checkpoint_path, name, on_rows
    specs = list(self._specs(input_fn, "eval", ModeKeys.EVAL, steps))
    metric_fn = specs[0].eval_metrics[0]
    arrays = _joined([spec.eval_metrics[1] for spec in specs])
    losses = [float(spec.loss) for spec in specs]
    return {**metric_fn(**arrays), "loss": float(np.mean(losses)), "global_step": int(self._step)}

  def predict(self, input_fn, checkpoint_path=None):
    """Yields the predictions of one example after another."""
    del checkpoint_path
    for spec in self._specs(input_fn, "predict", ModeKeys.PREDICT):
      arrays = {name: tensor.numpy() for name, tensor in spec.predictions.items()}
      for i in range(len(next(iter(arrays.values())))):
        yield {name: array[i] for name, array in arrays.items()}

  def _specs(self, input_fn, phase, mode, steps=None):
    """What `model_fn` returns for each batch."""
    batch_size = self.params[f"{phase}_batch_size"]
    params = {**self.params, "batch_size": batch_size, "seed": self.config.seed}
    dataset = input_fn({**params, "skip_examples": 0})
    for features in dataset if steps is None else dataset.take(steps):
      with use_store(self.store):
        yield self._model_fn(features, None, mode, self.params)


def _joined(batches: list[dict[str, tf.Tensor]]) -> dict[str, np.ndarray]:
  """The arrays of all batches, end to end; other axes are padded with zeros to the longest."""
  joined = {}
  for name in batches[0]:
    arrays = [batch[name].numpy() for batch in batches]
    longest = np.max([array.shape[1:] for array in arrays], axis=0)
    padded = [
      np.pad(array, [(0, 0), *((0, n - m) for n, m in zip(longest, array.shape[1:], strict=True))])
      for array in arrays
    ]
    joined[name] = np.concatenate(padded)
  return joined
