"""The settings of training runs: their flags, by subject, and what follows from them alone.

  settings = flag_groups.read(FineTuningSettings)     # of the command line
  settings = FineTuningSettings.of(output_dir="out")  # of Python
  settings.check()                                    # changes nothing
  settings = resolution.resolve(settings)             # files found, workers met, dtype chosen
  settings = settings.planned(len(examples))          # what depends on the data: steps, warm-up

Where a value follows from others, as `dtype` from `fast`, it is the resulting value. Each step
returns a new object. Names, types and defaults of the original's flags are unchanged.

Where the weights of a model come from is decided in one place and one order
(`bert/training/estimator.py`): 1. a checkpoint in `output_dir` is resumed; 2. else
`init_checkpoint` initialises by name; 3. else the weights are random.
"""

import os
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from absl import logging

from bert.checkpoints import model_source
from bert.io import filesystem, installation
from bert.io.tables import DataError, folder_listing
from bert.scripts.settings import (
  Path,
  Rule,
  Settings,
  UsageError,
  above_zero,
  at_least,
  changed,
  setting,
  share,
)
from bert.tasks import user_tables
from bert.tasks.windows import POOLINGS
from bert.training import distribution

if TYPE_CHECKING:
  from typing_extensions import Self

# Batches of similar lengths save a fifth of a step and cost the compilation for some twenty more
# shapes: on MRPC's 343 steps the two are equal (docs/results/tried.md).
_MIN_STEPS_TO_GROUP = 500

# Steps and word pieces are counted in int32, as in the original.
_TOO_MANY = 2**31

# A fine-tuning run has some hundred steps: one point every 100 makes no curve.
_SUMMARY_STEPS_OF_CURVES = 10
_LONG_RUN = 2000  # steps, from which one point every 100 is enough

_MOST_RUNS = 1000  # of `num_runs`
_BELOW_2_63 = Rule(lambda value: abs(value) < 1 << 63, "below 2^63")
_RATE = Rule(lambda value: 0 <= value < float("inf"), "a number of at least 0")

IGNORED_OF_TPU = {
  "master": "a TPU is named by --tpu_name, several machines by TF_CONFIG in the environment",
  "num_tpu_cores": "all cores of the TPU are used",
}
"""Flags of the original that have no effect: name -> why."""

_IGNORED_WITHOUT_TPU = dict.fromkeys(
  ("tpu_name", "tpu_zone", "gcp_project"), "it describes a TPU, and --use_tpu is off"
)


# ---------------------------------------------------------------------------------------------
# By subject.


class ModelFiles(Settings, title="Model"):
  """Which model, and how it reads text.

  Attributes:
    init_folder: of the model of `init_checkpoint`, once it is resolved.
    checkpoint: the open `reading.Checkpoint` of `init_checkpoint`, once it is resolved.
  """

  bert_config_file: str = setting(
    None,
    "JSON file with the sizes of the model. Default: bert_config.json beside --init_checkpoint.",
    path=Path(),
  )
  vocab_file: str = setting(
    None,
    "The vocabulary the model was trained on. Default: vocab.txt beside --init_checkpoint.",
    path=Path(),
  )
  spm_model_file: str | None = setting(
    None,
    "ALBERT: its sentencepiece model, instead of --vocab_file. Default: 30k-clean.model or "
    "spiece.model beside --init_checkpoint.",
    path=Path(),
  )
  do_lower_case: bool = setting(
    True, "Whether to lower-case the text: True for uncased models, else False."
  )
  init_checkpoint: str | None = setting(
    None,
    "Initial weights: the prefix of a checkpoint, a folder with one, an exported encoder, or the "
    "name of a released model such as uncased_L-12_H-768_A-12, which is then downloaded.",
    path=Path(is_model=True),
  )
  max_seq_length: int = setting(
    128,
    "Maximum sequence length in word pieces, [CLS] and [SEP] included. Longer sequences are "
    "truncated. Without it, fewer where the model can read no more.",
    at_least(3),
  )

  init_folder: str | None = None
  checkpoint: Any = None

  def derived(self) -> "Self":
    """ALBERT's command lines give both files; their vocabulary lists the pieces of the model."""
    made = super().derived()
    return made.replace(vocab_file=made.spm_model_file) if made.spm_model_file else made

  def replace(self, **values: Any) -> "Self":
    """See base class; an open checkpoint goes with its name."""
    if "init_checkpoint" in values:
      values.setdefault("checkpoint", None)
    return super().replace(**values)

  @property
  def model(self) -> str | None:
    """`init_checkpoint`; without it, `output_dir` if a run resumes there."""
    folder = self.get("output_dir")
    if self.init_checkpoint or not folder or filesystem.is_remote(folder):
      return self.init_checkpoint
    is_run = os.path.isdir(folder) and model_source.identify(folder).kind is model_source.Kind.RUN
    return folder if is_run else None


class ModelSettings(ModelFiles):
  """A model that the script computes with."""

  init_checkpoint: str | None = changed(
    ModelFiles,
    "init_checkpoint",
    help=ModelFiles.declared()["init_checkpoint"].help
    + " A checkpoint in --output_dir takes precedence.",
  )
  max_seq_length: int = changed(
    ModelFiles,
    "max_seq_length",
    help="Maximum sequence length in word pieces, [CLS] and [SEP] included. Longer sequences are "
    "truncated.",
  )
  dtype: str = setting(
    "float32",
    "Data type of matrix products; auto: bfloat16 where this machine has instructions for it. "
    "Variables, softmax, LayerNorm and the loss stay float32.",
    choices=["float32", "bfloat16", "float16", "auto"],
  )
  allow_tf32: bool = setting(
    False,
    "On NVIDIA GPUs since Ampere: round the factors of float32 products to TF32 (10 bits), which "
    "is faster.",
  )


class TrainingSettings(Settings, title="Training"):
  """Batches and rate."""

  train_batch_size: int = setting(
    32, "Examples in a training batch, over all devices.", at_least(1)
  )
  learning_rate: float = setting(5e-5, "Peak learning rate of Adam.", _RATE)
  gradient_accumulation_steps: int = setting(
    1, "Take each batch in N parts, one after another, to save memory.", at_least(1)
  )
  seed: int = setting(
    12345, "Seed of initial values, dropout and the order of the data.", _BELOW_2_63
  )
  shuffle_buffer_size: int = setting(
    100, "Size of the shuffle buffer in records. The original's is 100.", at_least(1)
  )
  pad_to_max_length: bool = setting(
    False,
    "Pad every batch to --max_seq_length, as the original does, instead of to its own longest "
    "example. Slower, same results.",
  )

  # Known once the run is planned.
  num_train_steps: int | None = None
  num_warmup_steps: int | None = None


class SpeedSettings(Settings, title="Speed"):
  """What makes training faster."""

  fast: bool = setting(
    False,
    "Sets --dtype=auto and, in runs of 500 steps or more, --group_by_length, unless these are "
    "given. Results then differ as they do between seeds.",
  )
  group_by_length: bool = setting(
    False,
    "Train on batches of similar lengths: the same examples and number of steps, less padding.",
  )


class DeviceSettings(Settings, title="Several devices and machines"):
  """Where the run computes."""

  distribution_strategy: str = setting(
    "one_device",
    "one_device; mirrored: all GPUs of this machine; multi_worker: this command on each machine "
    "of TF_CONFIG, with one --output_dir that all of them share; tpu: as --use_tpu. Batch sizes "
    "are those of all devices together.",
    choices=distribution.NAMES,
  )


class OptimizerSettings(Settings, title="Optimizer (defaults are the original's)"):
  """How variables change."""

  adam_bias_correction: bool = setting(
    False, "Apply Adam's bias correction, which the original omits."
  )
  adam_beta_2: float = setting(0.999, "Decay of Adam's second moment; RoBERTa has 0.98.", share())
  weight_decay: float = setting(
    0.01, "Share of each weight that a step takes away, times its rate.", at_least(0)
  )
  lr_schedule: str = setting(
    "original",
    "original: the learning rate drops at the end of warm-up. continuous: it decays from its "
    "peak. constant: it stays at its peak.",
    choices=["original", "continuous", "constant"],
  )
  layerwise_lr_decay: float = setting(
    1.0,
    "The learning rate of each layer is that of the layer above it times this factor.",
    Rule(lambda value: 0 < value <= 1, "above 0 and at most 1"),
  )
  head_learning_rate: float | None = setting(
    None,
    "Peak learning rate of the variables outside the encoder. Default: --learning_rate.",
    _RATE,
  )
  freeze: list[str] = setting(
    [],
    "What not to train: embeddings, encoder, layers:N (embeddings and the first N layers), or a "
    "regular expression on variable names. Several with commas.",
  )

  optimizer: str = "adamw"

  def optimizer_options(self, scale_loss: bool) -> dict[str, Any]:
    """Returns keywords of `optimization.create_optimizer`; float16 needs a scaled loss."""
    return {
      "optimizer": self.optimizer,
      "bias_correction": self.adam_bias_correction,
      "beta_2": self.adam_beta_2,
      "weight_decay": self.weight_decay,
      "schedule": self.lr_schedule,
      "layerwise_lr_decay": self.layerwise_lr_decay,
      "head_learning_rate": self.head_learning_rate,
      "freeze": tuple(self.freeze),
      "scale_loss": scale_loss,
    }


class CheckpointSettings(Settings, title="Checkpoints and progress"):
  """What a run leaves on its way."""

  save_checkpoints_steps: int = setting(1000, "Save a checkpoint every N steps.", at_least(1))
  iterations_per_loop: int = setting(
    1000,
    "Return to Python every N steps: on a TPU always, elsewhere only if given. Less overhead, "
    "same results, but progress is shown only that often.",
    at_least(1),
  )
  keep_checkpoint_max: int = setting(
    5,
    "Keep the N newest checkpoints; 0 keeps all, also the one before the first step.",
    at_least(0),
  )
  save_summary_steps: int | None = setting(
    None,
    "Write TensorBoard scalars every N steps, and at the end. Default: 10 in a run of fewer than "
    "2,000 steps whose report draws curves, and in each of --num_runs; else 100.",
    at_least(1),
  )
  log_every_steps: int = setting(
    100,
    "Log progress every N steps where standard error is no terminal and shows no progress bar.",
    at_least(1),
  )
  report: bool = setting(
    True,
    "Write OUTPUT_DIR/report.html when the run ends: results, curves, the most wrong examples.",
  )


class EvaluationSettings(Settings, title="Evaluation during training"):
  """Which weights are the best."""

  eval_every_steps: int = setting(
    0, "Evaluate on the dev set every N training steps; 0: never.", at_least(0)
  )
  best_metric: str | None = setting(
    None,
    "The metric that selects the best checkpoint; of equal values, the earliest. Default: the "
    "task's own; in pre-training masked_lm_loss.",
  )
  keep_best: bool = setting(
    True,
    "With --eval_every_steps: keep the best weights in OUTPUT_DIR/best, and use them for "
    "--do_eval, --do_predict and --do_export, later as well. Without --do_train, "
    "--init_checkpoint=OUTPUT_DIR/model.ckpt-N chooses others.",
  )
  early_stopping_patience: int | None = setting(
    None,
    "With --eval_every_steps: stop after N consecutive evaluations without improvement.",
    at_least(1),
  )

  max_eval_steps: int | None = None


class ExportSettings(Settings, title="Export"):
  """SavedModels of a run."""

  do_export: bool = setting(
    False,
    "Whether to export the best or newest checkpoint as SavedModels: preprocess, encoder, task.",
  )
  export_dir: str = setting(
    None, "Folder for them. Default: OUTPUT_DIR/export.", path=Path(local=True)
  )


class TpuSwitch(Settings, title="TPU"):
  """The original's TPU flags of `extract_features.py`."""

  use_tpu: bool = setting(False, "Run on a TPU instead of this machine's GPUs or CPU.")
  master: str | None = setting(None, f"Accepted, without effect: {IGNORED_OF_TPU['master']}.")
  num_tpu_cores: int = setting(8, f"Accepted, without effect: {IGNORED_OF_TPU['num_tpu_cores']}.")

  def explain_ignored_of_tpu(self) -> None:
    """Logs which of these flags were given and have no effect."""
    self.explain_ignored({**IGNORED_OF_TPU, **({} if self.use_tpu else _IGNORED_WITHOUT_TPU)})


class TpuSettings(TpuSwitch, title="TPU"):
  """The original's TPU flags."""

  tpu_name: str | None = setting(
    None,
    "With --use_tpu: the TPU, by its name or by a grpc:// address. By default the TPU of this "
    "machine.",
  )
  tpu_zone: str | None = setting(
    None, "With --use_tpu: the zone of --tpu_name, if not the default zone."
  )
  gcp_project: str | None = setting(
    None,
    "With --use_tpu: the Google Cloud project of --tpu_name, if not the default project.",
  )


class TableSettings(
  Settings, title="Your own data (--task_name=csv: train, dev, test .tsv .csv .jsonl)"
):
  """Tables of the user's own."""

  text_a_column: str | None = setting(
    None, "Column of the text: name or number from 0. [text_a, or text]"
  )
  text_b_column: str | None = setting(None, "Column of a second text. [text_b, if it exists]")
  label_column: str | None = setting(None, "Column of the label. [label]")
  id_column: str | None = setting(None, "Column that identifies a row. [id, if it exists]")
  labels: list[str] | None = setting(
    None, "All labels of the model, in order. [those of the training file, sorted]"
  )
  problem_type: str | None = setting(
    None,
    "What the label is: a class, a number, or several classes. [classification]",
    choices=["classification", "regression", "multi_label"],
  )
  label_separator: str | None = setting(
    None,
    "Separator between the labels of a row. [,]",
    Rule(bool, "what stands between two labels, not empty"),
  )
  header: bool | None = setting(None, "Whether the first row names the columns. [true]")
  skip_bad_rows: bool | None = setting(None, "Leave malformed rows out and count them.")


class LongTextSettings(Settings, title="Long documents"):
  """Documents longer than one sequence."""

  long_text: str = setting(
    "truncate",
    "truncate: cut texts longer than --max_seq_length. windows: read them in several windows of "
    "that length, each half a window after the one before, whose logits are pooled.",
    choices=["truncate", "windows"],
  )
  window_pooling: str = setting(
    "mean", "How the logits of windows become those of the document.", choices=POOLINGS
  )
  max_windows: int = setting(
    8, "Maximum number of windows of a document. A batch needs the memory of all its windows."
  )


# ---------------------------------------------------------------------------------------------
# Of a run.


class RunSettings(
  ModelSettings,
  TrainingSettings,
  SpeedSettings,
  DeviceSettings,
  OptimizerSettings,
  CheckpointSettings,
  EvaluationSettings,
  ExportSettings,
  TpuSettings,
  title="Task and data",
):
  """A run that trains, evaluates or exports, and what its steps are.

  Attributes:
    features_folder: of the records, where another run uses the usual one.
    shows_examples: whether the features of an example are logged.
    nothing_to_do: the error where no step of the run is wanted, in the original's words.
    needed: required settings that a model does not bring.
    length_name: the setting that says how long the run is.
  """

  output_dir: str = setting(None, "Folder for checkpoints and results.", path=Path(local=True))
  do_train: bool = setting(False, "Whether to train.")
  do_eval: bool = setting(False, "Whether to evaluate on the dev set.")
  eval_batch_size: int | None = setting(8, "Examples in an evaluation batch.", at_least(1))

  do_predict: bool = False
  predict_batch_size: int | None = None
  data_dir: str | None = None
  features_folder: str | None = None
  shows_examples: bool = True

  nothing_to_do: ClassVar[str] = (
    "At least one of `do_train`, `do_eval` or `do_predict' must be True."
  )
  needed: ClassVar[tuple[str, ...]] = ("output_dir",)
  length_name: ClassVar[str] = "num_train_steps"

  def derived(self) -> "Self":
    """Fills in values that others decide."""
    made = super().derived()
    values: dict[str, Any] = {}
    if made.fast and "dtype" not in made.given:
      values["dtype"] = "auto"
    # `use_tpu` is the original's; a `distribution_strategy` of tpu says the same.
    if made.distribution_strategy == "tpu":
      values["use_tpu"] = True
    elif made.use_tpu and "distribution_strategy" not in made.given:
      values["distribution_strategy"] = "tpu"
    if made.do_export and not made.export_dir and made.output_dir:
      values["export_dir"] = made.path("export")
    return made.replace(**values)

  @property
  def recorded(self) -> dict[str, Any]:
    """What `flags.json` and the state of a sweep hold: all settings with a flag, and the steps."""
    steps = {name: getattr(self, name) for name in ("num_train_steps", "num_warmup_steps")}
    return {**self.values, **{name: count for name, count in steps.items() if count is not None}}

  # -------------------------------------------------------------------------------------------
  # Checks, before anything takes long.

  def check(self) -> None:
    """Checks what settings alone show, before gigabytes are fetched for a run that cannot start.

    Raises:
      UsageError: a setting is missing, or has a value that it cannot have.
      ValueError: no step of the run is wanted.
    """
    # A model brings its configuration and vocabulary: `resolve` checks these later.
    if not self.model or None in map(self.get, self.needed):
      self.check_required()
    if not (self.do_train or self.do_eval or self.do_predict or self.do_export):
      raise ValueError(self.nothing_to_do)
    if self.do_export:
      installation.check_text_operations("--do_export")
    if self.data_dir and filesystem.is_file(self.data_dir):
      self._check_table()
    self.check_training()

  def _check_table(self) -> None:
    if not user_tables.is_table(self.data_dir):
      raise UsageError(
        f"--data_dir={self.data_dir} is a file. Give the folder that holds it, in which the files "
        "have the names of the task, such as train.csv and dev.csv with --task_name=csv; or one "
        "table, which ends in .csv, .tsv or .jsonl."
      )

  def check_training(self) -> None:
    """Checks numbers that would otherwise fail much later."""
    super().check()
    if self.use_tpu and self.distribution_strategy != "tpu":
      raise UsageError(
        f"--use_tpu and --distribution_strategy={self.distribution_strategy} exclude each other."
      )
    if not self.eval_every_steps:
      reason = "--eval_every_steps=0 evaluates after the training alone"
      self.explain_ignored(dict.fromkeys(("best_metric", "early_stopping_patience"), reason))
    if self.train_batch_size % self.gradient_accumulation_steps:
      raise UsageError(
        f"--train_batch_size={self.train_batch_size} does not divide into "
        f"--gradient_accumulation_steps={self.gradient_accumulation_steps} equal parts."
      )
    part = self.train_batch_size // self.gradient_accumulation_steps
    if self.do_train and part * self.max_seq_length >= _TOO_MANY:
      raise UsageError(
        f"--train_batch_size={self.train_batch_size}: times --max_seq_length, a batch must have "
        f"fewer than {_TOO_MANY:,} word pieces. --gradient_accumulation_steps=N divides it."
      )

  # -------------------------------------------------------------------------------------------
  # Steps.

  def with_steps(self, num_train_steps: int, num_warmup_steps: int) -> "Self":
    """Returns the settings of a run of that many steps; `fast` groups by length if that pays.

    Raises:
      UsageError: there are more than the rate's formula can count.
    """
    if num_train_steps >= _TOO_MANY:
      name = self.length_name
      raise UsageError(
        f"--{name}={getattr(self, name):g} makes {num_train_steps:.3g} steps: must be fewer than "
        f"{_TOO_MANY:,}."
      )
    group_by_length = self.group_by_length
    if self.fast and "group_by_length" not in self.given:
      group_by_length = num_train_steps >= _MIN_STEPS_TO_GROUP
    return self.replace(
      num_train_steps=max(num_train_steps, 1),
      num_warmup_steps=num_warmup_steps,
      group_by_length=group_by_length,
    )

  def without_training(self) -> "Self":
    """Returns those of a run that does not train: the model needs numbers of steps nevertheless."""
    return self.with_steps(1, int(self.get("warmup_proportion") or 0))

  def with_summaries(self) -> "Self":
    """Returns the settings with the default of `save_summary_steps`, which its help states."""
    if self.save_summary_steps is not None:
      return self
    has_curves = self.report and (self.num_train_steps or 0) < _LONG_RUN
    return self.replace(save_summary_steps=_SUMMARY_STEPS_OF_CURVES if has_curves else 100)

  @property
  def reads_dev_set(self) -> bool:
    """Whether the run evaluates, after training or in between."""
    return bool(self.do_eval or (self.do_train and self.eval_every_steps))

  # -------------------------------------------------------------------------------------------
  # What other parts take of them.

  @property
  def steps_per_loop(self) -> int:
    """How many steps are made before Python is asked again."""
    is_loop = self.use_tpu or "iterations_per_loop" in self.given
    return self.iterations_per_loop if is_loop else 1

  @property
  def reading_options(self) -> dict[str, Any]:
    """The keywords of `input_pipeline.record_input_fn`."""
    return {
      "shuffle_buffer": self.shuffle_buffer_size,
      "pad_to_max_length": self.pad_to_max_length or self.use_tpu,
      "group_by_length": self.group_by_length,
    }

  @property
  def model_options(self) -> dict[str, Any]:
    """The arguments that the `model_fn_builder` of every script has, in the original's names."""
    return {
      "init_checkpoint": self.init_checkpoint,
      "learning_rate": self.learning_rate,
      "num_train_steps": self.num_train_steps,
      "num_warmup_steps": self.num_warmup_steps,
      "use_tpu": self.use_tpu,
      "use_one_hot_embeddings": self.use_tpu,
      "optimizer_options": self.optimizer_options(scale_loss=self.dtype == "float16"),
      "dtype": self.dtype,
    }

  def run_config(self, fingerprint: Mapping, informative: Mapping):
    """Returns the `estimator.RunConfig`.

    Args:
      fingerprint: what must be equal to resume: see `output_folder.model_fingerprint`.
      informative: what is only logged when it differs.
    """
    from bert.training.estimator import RunConfig

    return RunConfig(
      model_dir=self.output_dir,
      seed=self.seed,
      save_checkpoints_steps=self.save_checkpoints_steps,
      keep_checkpoint_max=self.keep_checkpoint_max,
      save_summary_steps=self.save_summary_steps,
      log_every_steps=self.log_every_steps,
      steps_per_loop=self.steps_per_loop,
      gradient_accumulation_steps=self.gradient_accumulation_steps,
      strategy=self.create_strategy(),
      fingerprint=dict(fingerprint),
      informative=dict(informative),
    )

  def create_strategy(self):
    """Makes the strategy of `distribution_strategy`; None for one device."""
    return distribution.create_strategy(
      self.distribution_strategy,
      tpu_name=self.tpu_name,
      tpu_zone=self.tpu_zone,
      gcp_project=self.gcp_project,
    )

  def path(self, name: str) -> str:
    """Returns a file in `output_dir`."""
    return os.path.join(self.output_dir, name)


class EpochSettings(Settings, title="Training"):
  """How long a run over the same examples takes."""

  num_train_epochs: float = setting(3.0, "Number of passes over the training data.", above_zero())
  warmup_proportion: float = setting(
    0.1, "Fraction of the steps in which the learning rate rises linearly from 0.", share()
  )


class ManyRunsSettings(Settings, title="Many seeds"):
  """Several runs that differ in their seed, see `sweeps/many_runs.py`."""

  num_runs: int | None = setting(
    None,
    "Make N runs, with the seeds --seed, --seed + 1, ..., each in a folder of its own below "
    "--output_dir, and report them together: mean, spread, failed runs.",
    Rule(lambda value: 1 <= value <= _MOST_RUNS, f"from 1 to {_MOST_RUNS:,}"),
  )
  parallel_runs: int = setting(1, "Number of these runs side by side.")
  gpus: list[str] = setting(
    [], "Numbers of the GPUs to spread these runs over, such as 0,1. [all for each run]"
  )


class FineTuningSettings(RunSettings, EpochSettings, ManyRunsSettings):
  """A run of a task."""

  do_predict: bool = setting(False, "Whether to predict the test set.")
  predict_batch_size: int | None = setting(8, "Examples in a prediction batch.", at_least(1))

  labels: list[str] | None = None
  skip_bad_rows: bool | None = None
  label_separator: str | None = None

  required: ClassVar[tuple[str, ...]] = ("vocab_file", "bert_config_file", "output_dir")
  length_name = "num_train_epochs"

  def derived(self) -> "Self":
    """See base class; runs to compare have curves."""
    made = super().derived()
    if made.is_many_runs and made.save_summary_steps is None:
      return made.replace(save_summary_steps=_SUMMARY_STEPS_OF_CURVES)
    return made

  @property
  def is_many_runs(self) -> bool:
    """Whether several runs are wanted."""
    return self.num_runs is not None

  def check(self) -> None:
    """See base class; also checks the labels and what cannot be combined with many runs."""
    super().check()
    if self.is_many_runs:
      self._check_many_runs()

  def check_training(self) -> None:
    """See base class."""
    super().check_training()
    labels = self.labels or ()
    twice = next((label for label in labels if labels.count(label) > 1), None)
    if twice is not None or "" in labels:
      what = "an empty label" if "" in labels else f"{twice} twice"
      raise UsageError(f"--labels={','.join(labels)} has {what}.")

  def _check_many_runs(self) -> None:
    self.check_value("parallel_runs", at_least(1))
    if not self.do_eval:
      raise UsageError("--num_runs compares runs by their dev scores: add --do_eval.")
    if self.distribution_strategy == "multi_worker":
      raise UsageError(
        "--num_runs starts its runs on this machine alone: --distribution_strategy=multi_worker "
        "cannot be combined with it."
      )
    if (last := self.seeds[-1]) >= 1 << 63:
      raise UsageError(
        f"--num_runs={self.num_runs}: with --seed={self.seed} the last seed would be {last}; it "
        "must be below 2^63."
      )

  @property
  def seeds(self) -> range:
    """The seeds of many runs."""
    return range(self.seed, self.seed + (self.num_runs or 1))

  def planned(self, count: int, unit: str = "examples") -> "Self":
    """Returns the settings of a run over its epochs: steps, warm-up, and grouping by length.

    A run has at least one step, where the original failed with zero.

    Args:
      count: of the items of an epoch.
      unit: the name of the items, for the warning.
    """
    steps = int(min(count / self.train_batch_size * self.num_train_epochs, 2.0**63))
    if steps < 1:
      logging.warning(
        "%d %s, a batch of %d and %g epochs make less than one step: training for one.",
        *(count, unit, self.train_batch_size, self.num_train_epochs),
      )
    return self.with_steps(steps, int(max(steps, 1) * self.warmup_proportion))

  def features_path(self, name: str) -> str:
    """Returns the file of a set's features: `OUTPUT_DIR/<name>.tf_record`; see `output_folder`."""
    return os.path.join(self.features_folder or self.output_dir, f"{name}.tf_record")


class SplitSettings(FineTuningSettings):
  """A run of a task whose files 2018 did not have: each is named, or in `data_dir`."""

  data_dir: str = setting(
    None, "Folder with train, dev and test: .tsv, .csv or .jsonl.", path=Path()
  )
  train_file: str | None = setting(None, "File to train on. [in --data_dir]", path=Path())
  dev_file: str | None = setting(None, "File to evaluate on. [in --data_dir]", path=Path())
  test_file: str | None = setting(
    None, "File to predict, with labels or without. [in --data_dir]", path=Path()
  )
  do_eval: bool = changed(RunSettings, "do_eval", help="Whether to evaluate on the dev file.")
  do_predict: bool = changed(
    FineTuningSettings, "do_predict", help="Whether to predict the test file."
  )
  skip_bad_rows: bool | None = setting(False, "Leave malformed rows out and count them.")

  def check(self) -> None:
    """See base class; also checks that each file that the run reads is named, or a folder."""
    super().check()
    for split, is_used in (
      ("train", self.do_train),
      ("dev", self.reads_dev_set),
      ("test", self.do_predict),
    ):
      if is_used and not getattr(self, f"{split}_file") and not self.data_dir:
        raise UsageError(f"--{split}_file is missing: give it, or --data_dir with such a file.")

  def split_file(self, split: str, stems: Iterable[str], endings: Iterable[str]) -> str:
    """Returns the file of `train`, `dev` or `test`.

    Args:
      split: which; the setting of its name names it. Where `data_dir` is a table, it is all of
        them.
      stems: names without ending to look for in `data_dir`; the first that exists is taken.
      endings: of these names, without the dot.

    Raises:
      DataError: `data_dir` has none of them.
    """
    if named := getattr(self, f"{split}_file"):
      return named
    if user_tables.is_table(self.data_dir):
      return self.data_dir
    names = [f"{stem}.{ending}" for stem in stems for ending in endings]
    paths = (os.path.join(self.data_dir, name) for name in names)
    found = next(filter(filesystem.is_file, paths), None)
    if found is None:
      reason = f"has none of {', '.join(names)}."
      advice = f"{folder_listing(self.data_dir)} Name the file: --{split}_file."
      raise DataError(reason, self.data_dir, advice=advice)
    return found
