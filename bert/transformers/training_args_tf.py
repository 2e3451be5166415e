"""The arguments of a training, as flags of scripts by `HfArgumentParser`.

  arguments = TFTrainingArguments("a_folder", num_train_epochs=2, learning_rate=3e-5)
  with arguments.strategy.scope(): ...

Only the script reads them: nothing here trains. They are those of transformers 5's
`TrainingArguments`, and those that version 4 had for TensorFlow.
"""

import dataclasses
import functools
import math
import os
from typing import Any

from bert.transformers.backend import use_tensorflow
from bert.transformers.library import transformers

__all__ = ["TFTrainingArguments"]

_CHOICES = {
  "eval_strategy": transformers.trainer_utils.IntervalStrategy,
  "logging_strategy": transformers.trainer_utils.IntervalStrategy,
  "save_strategy": transformers.trainer_utils.SaveStrategy,
  "hub_strategy": transformers.trainer_utils.HubStrategy,
  "lr_scheduler_type": transformers.SchedulerType,
}


def _flag(default: Any, text: str) -> Any:
  return dataclasses.field(default=default, metadata={"help": text})


@dataclasses.dataclass(repr=False)
class TFTrainingArguments(transformers.TrainingArguments):
  """The arguments; those of PyTorch's `Trainer` have no effect, as in transformers 4."""

  overwrite_output_dir: bool = _flag(False, "Take an output_dir that has files already.")
  per_gpu_train_batch_size: int | None = _flag(None, "Old name of per_device_train_batch_size.")
  per_gpu_eval_batch_size: int | None = _flag(None, "Old name of per_device_eval_batch_size.")
  warmup_ratio: float = _flag(0.0, "Share of the steps in which the learning rate rises.")
  logging_dir: str | None = _flag(None, "Folder for TensorBoard; runs in output_dir by default.")
  no_cuda: bool = _flag(False, "Use no GPU.")
  tpu_name: str | None = _flag(None, "Name of the TPU.")
  tpu_zone: str | None = _flag(None, "Its zone.")
  gcp_project: str | None = _flag(None, "Its project.")
  poly_power: float = _flag(1.0, "Power of the polynomial by which the learning rate falls.")
  xla: bool = _flag(False, "Compile the model with XLA.")
  push_to_hub_model_id: str | None = _flag(None, "Old name of hub_model_id.")
  push_to_hub_token: str | None = _flag(None, "Old name of hub_token.")

  def __post_init__(self):
    """Makes choices of texts, and derives what is not given.

    Raises:
      ValueError: an argument has no such value.
    """
    self.output_dir = os.path.expanduser(self.output_dir or "trainer_output")
    self.logging_dir = os.path.expanduser(self.logging_dir or os.path.join(self.output_dir, "runs"))
    for name, choice in _CHOICES.items():
      setattr(self, name, choice(getattr(self, name)))
    self.use_cpu = self.use_cpu or self.no_cuda
    self.do_eval = self.do_eval or self.eval_strategy.value != "no"
    if self.eval_strategy.value == "steps":
      self.eval_steps = self.eval_steps or self.logging_steps
    if self.fp16 and self.bf16:
      raise ValueError("fp16 and bf16 are two types to compute in; choose one.")
    if not 0 <= self.warmup_ratio <= 1:
      raise ValueError(f"warmup_ratio is {self.warmup_ratio}; it must be from 0 to 1.")

  @functools.cached_property
  def strategy(self) -> Any:
    """The `tf.distribute.Strategy`: a TPU that is named, all GPUs, one, or the CPU.

    With `fp16` or `bf16`, Keras computes in half precision from here on.
    """
    use_tensorflow()
    import keras
    import tensorflow as tf

    if self.fp16 or self.bf16:
      is_float16 = self.fp16 and not self.tpu_name
      keras.mixed_precision.set_dtype_policy(f"mixed_{'float16' if is_float16 else 'bfloat16'}")
    gpus = [] if self.use_cpu else tf.config.list_physical_devices("GPU")
    if self.tpu_name and not self.use_cpu:
      tpu = tf.distribute.cluster_resolver.TPUClusterResolver(
        self.tpu_name, zone=self.tpu_zone, project=self.gcp_project
      )
      tf.config.experimental_connect_to_cluster(tpu)
      tf.tpu.experimental.initialize_tpu_system(tpu)
      return tf.distribute.TPUStrategy(tpu)
    if len(gpus) > 1:
      return tf.distribute.MirroredStrategy()
    return tf.distribute.OneDeviceStrategy("/gpu:0" if gpus else "/cpu:0")

  @property
  def n_replicas(self) -> int:
    """The number of devices that train."""
    return self.strategy.num_replicas_in_sync

  n_gpu = n_replicas

  @property
  def train_batch_size(self) -> int:
    """The batch size of a step on all devices."""
    return (self.per_gpu_train_batch_size or self.per_device_train_batch_size) * self.n_replicas

  @property
  def eval_batch_size(self) -> int:
    """The same for evaluation."""
    return (self.per_gpu_eval_batch_size or self.per_device_eval_batch_size) * self.n_replicas

  should_log = False  # as in transformers 4: Keras shows how a training goes

  def get_warmup_steps(self, num_training_steps: int) -> int:
    """Returns `warmup_steps`, or `warmup_ratio` of a number of steps."""
    ratio = math.ceil(num_training_steps * self.warmup_ratio)
    return int(self.warmup_steps) if self.warmup_steps > 0 else ratio
