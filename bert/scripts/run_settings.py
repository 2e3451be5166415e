"""The settings of a run: one frozen object, resolved from the flags once and never changed.

  settings = run_settings.from_flags()            # every flag, and what follows from flags alone
  check_settings(settings)                        # the script's own checks; they change nothing
  settings = run_settings.resolve(settings)       # files found or downloaded, workers met, dtype
  config, tokenizer = run_settings.load_config_and_tokenizer(settings)
  settings = settings.planned(len(examples))      # what depends on the data: steps, warm-up

`settings.learning_rate` is `--learning_rate`; where a value follows from others, as `dtype` from
`--fast`, it is the resulting value. Each step returns a new object.

Where the weights of a model come from is decided in one place and one order
(`bert/training/estimator.py`): 1. a checkpoint in `--output_dir` is resumed; 2. else
`--init_checkpoint` initialises by name; 3. else the weights are random.
"""

import dataclasses
import math
import os
import types
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from absl import logging

from bert import tokenization
from bert.checkpoints import model_files
from bert.checks import at_start
from bert.io import filesystem, installation
from bert.io.tables import DataError, folder_listing
from bert.model import variable_shapes
from bert.model.configuration import BertConfig
from bert.scripts import command_line, flag_groups, seeds
from bert.scripts.model_flags import about_vocabulary, model_of, with_model_files, with_stored_case
from bert.tasks import user_tables
from bert.text.tokenizer import Tokenizer
from bert.training import distribution, hardware, variable_groups

# Batches of similar lengths save a fifth of a step and cost the compilation for some twenty more
# shapes: on MRPC's 343 steps the two are equal (docs/results/tried.md).
_MIN_STEPS_TO_GROUP = 500

# Steps and word pieces are counted in int32, as in the original.
_TOO_MANY = 2**31

# A fine-tuning run has some hundred steps: one point every 100 makes no curve.
_SUMMARY_STEPS_OF_CURVES = 10
_LONG_RUN = 2000  # steps, from which one point every 100 is enough

# Values that `_derived` adds and that no flag has.
_NO_FLAGS = ("init_folder", "features_folder", "shows_examples", "steps_per_loop")


@dataclasses.dataclass(frozen=True)
class RunSettings:
  """The value of every flag of a script, derived values in the place of given ones.

  Attributes:
    values: flag -> value; `settings.seed` is short for `settings.values["seed"]`.
    given: the flags that were on the command line.
    checkpoint: the open `reading.Checkpoint` of `--init_checkpoint`, once `resolve` has found it.
  """

  values: Mapping[str, Any]
  given: frozenset[str] = frozenset()
  checkpoint: Any = None

  def __getattr__(self, name: str) -> Any:
    try:
      return self.__dict__["values"][name]
    except KeyError:
      raise AttributeError(f"This script has no flag --{name}.") from None

  def __contains__(self, name: str) -> bool:
    return name in self.values

  def get(self, name: str, default: Any = None) -> Any:
    """The value of a flag that the script may not have."""
    return self.values.get(name, default)

  def replace(self, **values: Any) -> "RunSettings":
    """The same settings but for these values."""
    checkpoint = None if "init_checkpoint" in values else self.checkpoint
    return RunSettings(types.MappingProxyType({**self.values, **values}), self.given, checkpoint)

  @property
  def flag_values(self) -> dict[str, Any]:
    """The values of flags, and the steps that follow from them, for the record of a run."""
    return {name: value for name, value in self.values.items() if name not in _NO_FLAGS}

  # -------------------------------------------------------------------------------------------
  # Checks.

  def check(self, name: str, is_good: Callable[[Any], bool], needed: str) -> None:
    """Raises a UsageError if the flag exists and its value is set and not good.

    Args:
      name: the flag.
      is_good: whether it can have a value.
      needed: the condition in words: `at least 1`.
    """
    value = self.get(name)
    if value is not None and not is_good(value):
      raise command_line.UsageError(f"--{name}={value}: must be {needed}.")

  def check_at_least(self, least: float, *names: str) -> None:
    """Raises a UsageError for the first of these flags whose value is smaller."""
    for name in names:
      self.check(name, lambda value: value >= least, f"at least {least}")

  # -------------------------------------------------------------------------------------------
  # What follows from them.

  def planned(self, count: int, unit: str = "examples") -> "RunSettings":
    """The settings of a run over `--num_train_epochs`: steps, warm-up, and grouping by length.

    A run has at least one step, where the original failed with zero.

    Args:
      count: of the items of an epoch.
      unit: the name of the items, for the warning.
    """
    steps = int(min(count / self.train_batch_size * self.num_train_epochs, 2.0**63))
    if steps < 1:
      logging.warning(
        "%d %s, a batch of %d and %g epochs make less than one step: training for one.",
        count,
        unit,
        self.train_batch_size,
        self.num_train_epochs,
      )
    return self.with_steps(steps, int(max(steps, 1) * self.warmup_proportion))

  def with_steps(self, num_train_steps: int, num_warmup_steps: int) -> "RunSettings":
    """The settings of a run of that many steps; `--fast` groups by length if that pays.

    Raises:
      UsageError: there are more than the rate's formula can count.
    """
    if num_train_steps >= _TOO_MANY:
      name = "num_train_epochs" if "num_train_epochs" in self else "num_train_steps"
      raise command_line.UsageError(
        f"--{name}={self.values[name]:g} makes {num_train_steps:.3g} steps: must be fewer than "
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

  def with_summaries(self) -> "RunSettings":
    """Returns the settings with the default of `--save_summary_steps`, which its help states."""
    if self.save_summary_steps is not None:
      return self
    has_curves = self.get("report") and (self.num_train_steps or 0) < _LONG_RUN
    return self.replace(save_summary_steps=_SUMMARY_STEPS_OF_CURVES if has_curves else 100)

  def without_training(self) -> "RunSettings":
    """The settings of a run that does not train: the model needs numbers of steps nevertheless."""
    return self.with_steps(1, int(self.get("warmup_proportion") or 0))

  @property
  def is_many_runs(self) -> bool:
    """Whether `--num_runs` asks for several runs."""
    return self.get("num_runs") is not None

  @property
  def reads_dev_set(self) -> bool:
    """Whether the run evaluates, after training or in between."""
    return bool(self.do_eval or (self.do_train and self.eval_every_steps))

  @property
  def reading_options(self) -> dict[str, Any]:
    """The keywords of `input_pipeline.record_input_fn` that flags set."""
    return {
      "shuffle_buffer": self.shuffle_buffer_size,
      "pad_to_max_length": self.pad_to_max_length or self.use_tpu,
      "group_by_length": self.group_by_length,
    }

  @property
  def optimizer_options(self) -> dict[str, Any]:
    """The keywords of `optimization.create_optimizer` that flags set."""
    return {
      "optimizer": self.get("optimizer", "adamw"),
      "bias_correction": self.adam_bias_correction,
      "beta_2": self.adam_beta_2,
      "weight_decay": self.weight_decay,
      "schedule": self.lr_schedule,
      "layerwise_lr_decay": self.layerwise_lr_decay,
      "head_learning_rate": self.head_learning_rate,
      "freeze": tuple(self.freeze),
      "scale_loss": self.dtype == "float16",
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
      "optimizer_options": self.optimizer_options,
      "dtype": self.dtype,
    }

  def run_config(self, fingerprint: Mapping, informative: Mapping):
    """The `estimator.RunConfig` of these settings.

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
    """The strategy of `--distribution_strategy`; None for one device."""
    return distribution.create_strategy(
      self.distribution_strategy,
      tpu_name=self.tpu_name,
      tpu_zone=self.tpu_zone,
      gcp_project=self.gcp_project,
    )

  # -------------------------------------------------------------------------------------------
  # Files.

  def path(self, name: str) -> str:
    """A file in `--output_dir`."""
    return os.path.join(self.output_dir, name)

  def features_path(self, name: str) -> str:
    """The file of a set's features: `OUTPUT_DIR/<name>.tf_record`; see `output_folder`."""
    folder = self.get("features_folder") or self.output_dir
    return os.path.join(folder, f"{name}.tf_record")

  def split_file(self, split: str, stems: Iterable[str], endings: Iterable[str]) -> str:
    """The file of `train`, `dev` or `test`.

    Args:
      split: which; `--<split>_file` names it. Where `--data_dir` is a table, it is all of them.
      stems: names without ending to look for in `--data_dir`; the first that exists is taken.
      endings: of these names, without the dot.

    Raises:
      DataError: `--data_dir` has none of them.
    """
    if self.values[f"{split}_file"]:
      return self.values[f"{split}_file"]
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


# ---------------------------------------------------------------------------------------------
# From flags to settings.


def from_flags(defaults: Mapping[str, Any] | None = None) -> RunSettings:
  """The settings that follow from the flags alone.

  Args:
    defaults: flag -> value, for flags that were not given, in the place of their own defaults.
  """
  known = {flag.name: flag for flag in flag_groups.script_flags()}
  flag_values = {name: flag.value for name, flag in known.items()}
  given = frozenset(name for name in flag_values if command_line.flag_was_given(name))
  flag_values |= {name: value for name, value in (defaults or {}).items() if name not in given}
  settings = RunSettings(flag_values, given)
  return settings.replace(**_derived(settings))


def _derived(settings: RunSettings) -> dict[str, Any]:
  """Values that other flags decide, and those that have no flag."""
  values: dict[str, Any] = {
    "init_folder": None,
    "shows_examples": settings.get("shows_examples", True),
  }
  if settings.get("fast") and "dtype" not in settings.given:
    values["dtype"] = "auto"
  if settings.is_many_runs and settings.get("save_summary_steps") is None:
    values["save_summary_steps"] = _SUMMARY_STEPS_OF_CURVES
  # `--use_tpu` is the original's flag; `--distribution_strategy=tpu` says the same.
  if settings.get("distribution_strategy") == "tpu":
    values["use_tpu"] = True
  elif settings.get("use_tpu") and "distribution_strategy" not in settings.given:
    values["distribution_strategy"] = "tpu"
  if "iterations_per_loop" in settings:
    is_loop = settings.use_tpu or "iterations_per_loop" in settings.given
    values["steps_per_loop"] = settings.iterations_per_loop if is_loop else 1
  if settings.get("spm_model_file"):
    # ALBERT's command lines give both; its --vocab_file lists the pieces of the model.
    values["vocab_file"] = settings.spm_model_file
  if settings.get("do_export") and not settings.export_dir and settings.output_dir:
    values["export_dir"] = settings.path("export")
  return values


def resolve(settings: RunSettings) -> RunSettings:
  """Finds or downloads the files of the model, meets the other workers, and chooses the dtype.

  Workers meet first, since all that follows may compute with TensorFlow.

  Raises:
    UsageError: a required flag has no value.
    ValueError: there is no usable checkpoint at `--init_checkpoint`.
  """
  settings = with_model_files(settings)
  is_tpu = bool(settings.get("use_tpu"))
  unused = {} if is_tpu else flag_groups.IGNORED_WITHOUT_TPU
  command_line.explain_ignored_flags({**flag_groups.IGNORED, **unused})
  hardware.start_tensorflow(bool(settings.get("allow_tf32")))
  if not is_tpu:
    hardware.warn_of_unseen_gpus()
  if settings.get("distribution_strategy") == "multi_worker":
    settings.create_strategy()  # from here on each process knows whether it is the chief
  if settings.init_checkpoint:
    from bert.checkpoints import finding

    # Where it does not exist, neither do the files beside it, which may be required.
    checkpoint = finding.find(settings.init_checkpoint)
    settings = settings.replace(init_checkpoint=checkpoint.prefix)
    settings = dataclasses.replace(settings, checkpoint=checkpoint)
  try:
    command_line.check_required(settings.values)
  except command_line.UsageError as error:
    raise type(error)(f"{error}{about_vocabulary(settings)}") from None
  settings = with_stored_case(settings)
  if "dtype" in settings:
    settings = settings.replace(dtype=hardware.choose_dtype(settings.dtype, is_tpu))
  return settings


def load_config(settings: RunSettings) -> BertConfig:
  """Reads `--bert_config_file`, and checks the sequence length.

  Raises:
    ValueError: the file is bad or missing, or `--max_seq_length` or `--freeze` does not fit it.
  """
  config = BertConfig.from_json_file(settings.bert_config_file)
  if settings.max_seq_length > config.longest_sequence:
    raise ValueError(
      f"Cannot use sequence length {settings.max_seq_length} because the BERT model was only "
      f"trained up to sequence length {config.longest_sequence}. Lower --max_seq_length."
    )
  if settings.get("freeze"):  # and selects no variable
    names = [*variable_shapes.encoder_shapes(config), *variable_shapes.head_names(config)]
    variable_groups.check_frozen(settings.freeze, names)
  return config


def load_config_and_tokenizer(settings: RunSettings) -> tuple[BertConfig, Tokenizer]:
  """Reads `--bert_config_file` and `--vocab_file` or `--spm_model_file`; checks that they fit.

  Raises:
    ValueError: a file is bad, or they do not belong together or to the other flags.
  """
  from bert.checkpoints import finding

  config = load_config(settings)
  tokenization.validate_case_matches_checkpoint(settings.do_lower_case, settings.init_checkpoint)
  if settings.init_checkpoint:
    checkpoint = settings.checkpoint or finding.find(settings.init_checkpoint)
    model_files.check_case(settings.do_lower_case, checkpoint)
  if settings.get("spm_model_file"):
    from bert.text import sentence_pieces

    sentence_pieces.read_model(settings.spm_model_file)  # or it is no such file
  tokenizer = tokenization.load_tokenizer(settings.vocab_file, settings.do_lower_case)
  model_files.check_vocabulary_size(
    *(tokenizer.vocab, settings.vocab_file, config.vocab_size, settings.bert_config_file),
    family=config.family.name,
  )
  at_start.model_is_read(settings.values, config, tokenizer.vocab, settings.checkpoint)
  return config, tokenizer


# ---------------------------------------------------------------------------------------------
# Checks, before anything takes long.


def check_run(
  settings: RunSettings,
  needed: Iterable[str] = ("output_dir",),
  nothing_to_do: str = "At least one of `do_train`, `do_eval` or `do_predict' must be True.",
) -> None:
  """Checks what flags alone show, before gigabytes are fetched for a run that cannot start.

  Args:
    settings: as `from_flags` returns them.
    needed: the required flags that a released model does not bring.
    nothing_to_do: the message where no step is asked for, in the original's words.

  Raises:
    UsageError: a flag is missing, or has a value that it cannot have.
    ValueError: no step of the run is asked for.
  """
  # A model brings its configuration and vocabulary: `resolve` checks these later.
  if not model_of(settings) or None in map(settings.get, needed):
    command_line.check_required(settings.values)
  if not any(map(settings.get, ("do_train", "do_eval", "do_predict", "do_export"))):
    raise ValueError(nothing_to_do)
  if settings.get("do_export"):
    installation.check_text_operations("--do_export")
  folder = settings.get("data_dir")
  if folder and filesystem.is_file(folder) and not user_tables.is_table(folder):
    raise command_line.UsageError(
      f"--data_dir={folder} is a file. Give the folder that holds it, in which the files have the "
      "names of the task, such as train.csv and dev.csv with --task_name=csv; or one table, which "
      "ends in .csv, .tsv or .jsonl."
    )
  check_training(settings)
  seeds.check(settings)


def check_training(settings: RunSettings) -> None:
  """Checks numbers that would otherwise fail much later."""
  settings.check_at_least(
    1,
    *("train_batch_size", "eval_batch_size", "predict_batch_size", "gradient_accumulation_steps"),
    *("save_checkpoints_steps", "iterations_per_loop"),
    *("save_summary_steps", "log_every_steps", "shuffle_buffer_size", "early_stopping_patience"),
    *("num_train_steps", "max_eval_steps", "max_seq_length", "max_predictions_per_seq"),
  )
  settings.check_at_least(0, "num_warmup_steps", "eval_every_steps", "keep_checkpoint_max")
  settings.check("seed", lambda value: abs(value) < 1 << 63, "below 2^63")
  settings.check("label_separator", bool, "what stands between two labels, not empty")
  for name in ("learning_rate", "head_learning_rate"):
    settings.check(name, lambda value: 0 <= value < math.inf, "a number of at least 0")
  settings.check("num_train_epochs", lambda value: 0 < value < math.inf, "a positive number")
  settings.check("warmup_proportion", lambda value: 0 <= value <= 1, "between 0 and 1")
  settings.check("layerwise_lr_decay", lambda value: 0 < value <= 1, "above 0 and at most 1")
  if settings.use_tpu and settings.distribution_strategy != "tpu":
    raise command_line.UsageError(
      f"--use_tpu and --distribution_strategy={settings.distribution_strategy} exclude each other."
    )
  _check_labels(settings)
  if not settings.get("eval_every_steps"):
    reason = "--eval_every_steps=0 evaluates after the training alone"
    command_line.explain_ignored_flags(
      dict.fromkeys(("best_metric", "early_stopping_patience"), reason)
    )
  if settings.train_batch_size % settings.gradient_accumulation_steps:
    raise command_line.UsageError(
      f"--train_batch_size={settings.train_batch_size} does not divide into "
      f"--gradient_accumulation_steps={settings.gradient_accumulation_steps} equal parts."
    )
  part = settings.train_batch_size // settings.gradient_accumulation_steps
  if settings.do_train and part * settings.max_seq_length >= _TOO_MANY:
    raise command_line.UsageError(
      f"--train_batch_size={settings.train_batch_size}: times --max_seq_length, a batch must have "
      f"fewer than {_TOO_MANY:,} word pieces. --gradient_accumulation_steps=N divides it."
    )


def _check_labels(settings: RunSettings) -> None:
  labels = settings.get("labels") or ()
  twice = next((label for label in labels if labels.count(label) > 1), None)
  if twice is not None or "" in labels:
    what = "an empty label" if "" in labels else f"{twice} twice"
    raise command_line.UsageError(f"--labels={','.join(labels)} has {what}.")


def check_split_files(settings: RunSettings) -> None:
  """Checks that each file that the run reads is named, or a folder to look for it.

  Raises:
    UsageError: names the flag.
  """
  for split, is_used in (
    ("train", settings.do_train),
    ("dev", settings.reads_dev_set),
    ("test", settings.do_predict),
  ):
    if is_used and not settings.values[f"{split}_file"] and not settings.data_dir:
      raise command_line.UsageError(
        f"--{split}_file is missing: give it, or --data_dir with such a file."
      )
