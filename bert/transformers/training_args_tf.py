"""The arguments of a training, as flags of scripts by `HfArgumentParser`.

  arguments = TFTrainingArguments("a_folder", num_train_epochs=2, learning_rate=3e-5)
  with arguments.strategy.scope(): ...

Only the script reads them: nothing here trains. What v4's TensorFlow scripts read has help.
"""

# ruff: noqa: RUF009 - `_flag` makes a field.

import dataclasses
import enum
import functools
import json
import math
import os
import socket
import warnings
from datetime import datetime
from typing import Any, Literal

from bert.transformers.backend import use_tensorflow
from bert.transformers.trainer_utils import (
  HubStrategy,
  IntervalStrategy,
  SaveStrategy,
  SchedulerType,
)
from bert.transformers.utils import logging

_Level = Literal["detail", "debug", "info", "warning", "error", "critical", "passive"]


def _flag(default: Any, text: str, **options) -> Any:
  return dataclasses.field(default=default, metadata={"help": text, **options})


@dataclasses.dataclass
class _OfTheTrainer:
  """Arguments of PyTorch's `Trainer`: taken, so that command lines stay as they are, and not used.

  transformers' TensorFlow scripts do not use them, either.
  """

  prediction_loss_only: bool = False
  eval_accumulation_steps: int | None = None
  eval_delay: float = 0
  torch_empty_cache_steps: int | None = None
  lr_scheduler_kwargs: dict | str | None = None
  log_on_each_node: bool = True
  logging_nan_inf_filter: bool = True
  save_safetensors: bool = True
  save_on_each_node: bool = False
  save_only_model: bool = False
  restore_callback_states_from_checkpoint: bool = False
  use_mps_device: bool = False
  jit_mode_eval: bool = False
  fp16_opt_level: str = "O1"
  half_precision_backend: str = "auto"
  bf16_full_eval: bool = False
  fp16_full_eval: bool = False
  tf32: bool | None = None
  ddp_backend: str | None = None
  tpu_metrics_debug: bool = False
  debug: str = ""
  dataloader_drop_last: bool = False
  dataloader_num_workers: int = 0
  dataloader_prefetch_factor: int | None = None
  past_index: int = -1
  disable_tqdm: bool | None = None
  remove_unused_columns: bool = True
  label_names: list[str] | None = None
  ignore_data_skip: bool = False
  fsdp: str | None = None
  fsdp_min_num_params: int = 0
  fsdp_config: dict | str | None = None
  fsdp_transformer_layer_cls_to_wrap: str | None = None
  accelerator_config: dict | str | None = None
  parallelism_config: Any = None
  deepspeed: dict | str | None = None
  label_smoothing_factor: float = 0.0
  optim: str = "adamw_torch"
  optim_args: str | None = None
  adafactor: bool = False
  group_by_length: bool = False
  length_column_name: str = "length"
  project: str = "huggingface"
  trackio_space_id: str | None = "trackio"
  ddp_find_unused_parameters: bool | None = None
  ddp_bucket_cap_mb: int | None = None
  ddp_broadcast_buffers: bool | None = None
  dataloader_pin_memory: bool = True
  dataloader_persistent_workers: bool = False
  skip_memory_metrics: bool = True
  use_legacy_prediction_loop: bool = False
  gradient_checkpointing: bool = False
  gradient_checkpointing_kwargs: dict | str | None = None
  include_inputs_for_metrics: bool = False
  include_for_metrics: list[str] = dataclasses.field(default_factory=list)
  eval_do_concat_batches: bool = True
  fp16_backend: str = "auto"
  mp_parameters: str = ""
  auto_find_batch_size: bool = False
  full_determinism: bool = False
  torchdynamo: str | None = None
  ray_scope: str | None = "last"
  ddp_timeout: int = 1800
  torch_compile: bool = False
  torch_compile_backend: str | None = None
  torch_compile_mode: str | None = None
  include_tokens_per_second: bool = False
  include_num_input_tokens_seen: str = "no"
  neftune_noise_alpha: float | None = None
  optim_target_modules: str | None = None
  batch_eval_metrics: bool = False
  eval_on_start: bool = False
  use_liger_kernel: bool = False
  liger_kernel_config: dict | None = None
  eval_use_gather_object: bool = False
  average_tokens_across_devices: bool = True


@dataclasses.dataclass
class _OfScripts:
  """What scripts read, on any framework."""

  output_dir: str | None = _flag(None, "Folder of the results; trainer_output by default.")
  overwrite_output_dir: bool = _flag(False, "Take an output_dir that has files already.")
  do_train: bool = _flag(False, "Train.")
  do_eval: bool = _flag(False, "Evaluate; also set by eval_strategy.")
  do_predict: bool = _flag(False, "Predict for the test set.")
  eval_strategy: IntervalStrategy | str = _flag("no", "When to evaluate in a training.")
  per_device_train_batch_size: int = _flag(8, "Batch size for each device in training.")
  per_device_eval_batch_size: int = _flag(8, "Batch size for each device in evaluation.")
  per_gpu_train_batch_size: int | None = _flag(None, "Old name of per_device_train_batch_size.")
  per_gpu_eval_batch_size: int | None = _flag(None, "Old name of per_device_eval_batch_size.")
  gradient_accumulation_steps: int = _flag(1, "Batches of which a step sums the gradients.")
  learning_rate: float = _flag(5e-5, "Highest learning rate.")
  weight_decay: float = _flag(0.0, "Decay of weights, but not of normalizations and biases.")
  adam_beta1: float = _flag(0.9, "Decay of Adam's first moment.")
  adam_beta2: float = _flag(0.999, "Decay of Adam's second moment.")
  adam_epsilon: float = _flag(1e-8, "What keeps Adam's quotient finite.")
  max_grad_norm: float = _flag(1.0, "Global norm to which gradients are scaled down.")
  num_train_epochs: float = _flag(3.0, "Number of epochs.")
  max_steps: int = _flag(-1, "Number of steps instead of epochs, if above 0.")
  lr_scheduler_type: SchedulerType | str = _flag("linear", "How the learning rate changes.")
  warmup_ratio: float = _flag(0.0, "Share of the steps in which the learning rate rises.")
  warmup_steps: int = _flag(0, "Number of these steps, if above 0.")
  log_level: _Level = _flag("passive", "Level of log messages; passive changes nothing.")
  log_level_replica: _Level = _flag("warning", "The same for all processes but the first.")
  logging_dir: str | None = _flag(None, "Folder for TensorBoard; in output_dir by default.")
  logging_strategy: IntervalStrategy | str = _flag("steps", "When to log.")
  logging_first_step: bool = _flag(False, "Log the first step, too.")
  logging_steps: float = _flag(500, "Log every N steps; below 1 a share of all steps.")
  save_strategy: SaveStrategy | str = _flag("steps", "When to save a checkpoint.")
  save_steps: float = _flag(500, "Save a checkpoint every N steps; below 1 a share of all.")
  save_total_limit: int | None = _flag(None, "Number of checkpoints that are kept.")
  no_cuda: bool = _flag(False, "Use no GPU.")
  use_cpu: bool = _flag(False, "Use no GPU or TPU.")
  seed: int = _flag(42, "Seed of the training.")
  data_seed: int | None = _flag(None, "Seed of the order of the data.")
  bf16: bool = _flag(False, "Compute in bfloat16.")
  fp16: bool = _flag(False, "Compute in float16.")
  local_rank: int = _flag(-1, "Number of this process on its machine.")
  tpu_num_cores: int | None = _flag(None, "Number of TPU cores.")
  eval_steps: float | None = _flag(None, "Evaluate every N steps.")
  run_name: str | None = _flag(None, "Name of the run.")
  load_best_model_at_end: bool = _flag(False, "Take the best checkpoint in the end.")
  metric_for_best_model: str | None = _flag(None, "By which metric it is the best.")
  greater_is_better: bool | None = _flag(None, "Whether more of that is better.")
  report_to: str | list[str] | None = _flag(None, "Who is told about the run.")
  push_to_hub: bool = _flag(False, "Not here: nothing is sent to the Hub.")
  resume_from_checkpoint: str | None = _flag(None, "Checkpoint to go on from.")
  hub_model_id: str | None = _flag(None, "Name on the Hub.")
  hub_strategy: HubStrategy | str = _flag("every_save", "What is sent to the Hub.")
  hub_token: str | None = _flag(None, "Password of the Hub.")
  hub_private_repo: bool | None = _flag(None, "Whether it is private there.")
  hub_always_push: bool = _flag(False, "Send even if the last is not through.")
  hub_revision: str | None = _flag(None, "Branch on the Hub.")
  push_to_hub_model_id: str | None = _flag(None, "Old name of hub_model_id.")
  push_to_hub_organization: str | None = _flag(None, "Organization on the Hub.")
  push_to_hub_token: str | None = _flag(None, "Old name of hub_token.")


@dataclasses.dataclass(repr=False)
class TFTrainingArguments(_OfTheTrainer, _OfScripts):
  """The arguments, with v4's names, defaults and order; `_OfScripts` says what they are."""

  tpu_name: str | None = _flag(None, "Name of the TPU.")
  tpu_zone: str | None = _flag(None, "Its zone.")
  gcp_project: str | None = _flag(None, "Its project.")
  poly_power: float = _flag(1.0, "Power of the polynomial by which the learning rate falls.")
  xla: bool = _flag(False, "Compile the model with XLA.")

  def __post_init__(self):
    """Makes choices of texts, and derives what is not given.

    Raises:
      ValueError: arguments contradict each other.
    """
    self.output_dir = os.path.expanduser(self.output_dir or "trainer_output")
    self.logging_dir = os.path.expanduser(self.logging_dir or _default_logdir(self.output_dir))
    self.eval_strategy = IntervalStrategy(self.eval_strategy)
    self.logging_strategy = IntervalStrategy(self.logging_strategy)
    self.save_strategy = SaveStrategy(self.save_strategy)
    self.hub_strategy = HubStrategy(self.hub_strategy)
    self.lr_scheduler_type = SchedulerType(self.lr_scheduler_type)
    self.use_cpu = self.use_cpu or self.no_cuda
    self.do_eval = self.do_eval or self.eval_strategy != IntervalStrategy.NO
    self.run_name = self.run_name or None
    if self.eval_strategy == IntervalStrategy.STEPS:
      self.eval_steps = self.eval_steps or self.logging_steps
    self._check_steps()
    if self.fp16 and self.bf16:
      raise ValueError("fp16 and bf16 are two types to compute in; choose one.")
    if not 0 <= self.warmup_ratio <= 1:
      raise ValueError(f"warmup_ratio is {self.warmup_ratio}; it must be from 0 to 1.")
    is_judged = self.lr_scheduler_type == SchedulerType.REDUCE_ON_PLATEAU
    if (self.load_best_model_at_end or is_judged) and self.metric_for_best_model is None:
      self.metric_for_best_model = "loss"
    if self.greater_is_better is None and self.metric_for_best_model is not None:
      self.greater_is_better = not self.metric_for_best_model.endswith("loss")

  def _check_steps(self) -> None:
    for kind in ("eval", "logging", "save"):
      steps = getattr(self, f"{kind}_steps")
      if getattr(self, f"{kind}_strategy") != "steps":
        continue
      if not steps and kind != "save":
        raise ValueError(f"{kind}_strategy is steps: {kind}_steps must not be {steps}.")
      if steps > 1:
        if steps != int(steps):
          raise ValueError(f"{kind}_steps is {steps}; above 1 it must be a whole number.")
        setattr(self, f"{kind}_steps", int(steps))
    saves, evaluates = SaveStrategy(self.save_strategy), IntervalStrategy(self.eval_strategy)
    if self.load_best_model_at_end and saves.value not in ("best", evaluates.value):
      raise ValueError(
        "load_best_model_at_end needs checkpoints of the moments of evaluation, but save_strategy "
        f"is {saves.value} and eval_strategy {evaluates.value}."
      )

  # -------------------------------------------------------------------------------------------
  # Devices.

  @functools.cached_property
  def strategy(self) -> Any:
    """The `tf.distribute.Strategy`: a TPU that is named, all GPUs, one, or the CPU.

    With `fp16`, Keras computes in half precision from here on.
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

  @property
  def n_gpu(self) -> int:
    """The old name of `n_replicas`."""
    warnings.warn("n_gpu: its name is n_replicas now.", FutureWarning, stacklevel=2)
    return self.n_replicas

  @property
  def train_batch_size(self) -> int:
    """The batch size of a step on all devices."""
    return (self.per_gpu_train_batch_size or self.per_device_train_batch_size) * self.n_replicas

  @property
  def eval_batch_size(self) -> int:
    """The same for evaluation."""
    return (self.per_gpu_eval_batch_size or self.per_device_eval_batch_size) * self.n_replicas

  # -------------------------------------------------------------------------------------------
  # What scripts ask.

  @property
  def should_log(self) -> bool:
    """Always False, as in transformers: Keras shows how a training goes."""
    return False

  def get_process_log_level(self) -> int:
    """Returns the level of messages that `should_log` stands for, a number of `logging`."""
    name = self.log_level if self.should_log else self.log_level_replica
    return logging.get_verbosity() if name == "passive" else logging.LEVELS[name]

  def get_warmup_steps(self, num_training_steps: int) -> int:
    """Returns `warmup_steps`, or `warmup_ratio` of a number of steps."""
    ratio = math.ceil(num_training_steps * self.warmup_ratio)
    return self.warmup_steps if self.warmup_steps > 0 else ratio

  def to_dict(self) -> dict[str, Any]:
    """Returns the arguments by name, without passwords, as JSON can hold them."""
    values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
    values = {k: v.value if isinstance(v, enum.Enum) else v for k, v in values.items()}
    return {k: f"<{k.upper()}>" if k.endswith("_token") else v for k, v in values.items()}

  def to_json_string(self) -> str:
    """Returns `to_dict` as text."""
    return json.dumps(self.to_dict(), indent=2)

  def to_sanitized_dict(self) -> dict[str, Any]:
    """Returns `to_dict` as TensorBoard can show it: numbers, texts, and all else as text."""
    plain = (bool, int, float, str)
    return {k: v if type(v) in plain else str(v) for k, v in self.to_dict().items()}

  def __str__(self) -> str:
    """Returns an argument in each line, without passwords."""
    lines = [f"{name}={value},\n" for name, value in sorted(self.to_dict().items())]
    return f"{type(self).__name__}(\n{''.join(lines)})"

  __repr__ = __str__


def _default_logdir(output_dir: str) -> str:
  name = f"{datetime.now():%b%d_%H-%M-%S}_{socket.gethostname()}"
  return os.path.join(output_dir, "runs", name)
