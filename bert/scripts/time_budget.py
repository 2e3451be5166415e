"""Pre-training within a budget: `--train_minutes`, and what else makes it cheaper.

`run_pretraining.py` defines these flags beside those of 2018; each is off by default.
"""

import copy
import math

from absl import flags

from bert.model.configuration import BertConfig
from bert.scripts import flag_groups
from bert.scripts.command_line import UsageError, flag_was_given
from bert.scripts.run_settings import RunSettings

# The shares of a run by the clock are counted in parts of its time, as others in steps.
_PARTS_OF_TIME = 1_000_000
_WARMUP_BY_CLOCK = 0.1


def define_flags() -> None:
  """Defines the flags of a budget."""
  with flag_groups.flag_group("Budget"):
    flags.DEFINE_float(
      "train_minutes",
      None,
      "Train for this time instead of --num_train_steps; the learning rate goes by the clock. "
      "Counted from the start of training, with compiling and checkpoints, over all starts of a "
      "run; without evaluations.",
    )
    flags.DEFINE_float(
      "warmup_proportion",
      None,
      "Fraction of the run in which the learning rate rises, in the place of --num_warmup_steps. "
      "[with --train_minutes 0.1]",
    )
    flags.DEFINE_integer(
      "first_batch_size",
      None,
      "Begin with batches of N examples and let them grow to --train_batch_size, by N at a time. "
      "[all have --train_batch_size]",
    )
    flags.DEFINE_float(
      "dropout",
      None,
      "Dropout in this training, of hidden states and of attention. [of --bert_config_file]",
    )
    flags.DEFINE_float(
      "initializer_range",
      None,
      "Standard deviation of random initial weights. Narrow models learn sooner from larger ones "
      "than 0.02, which suits a width of 768. [of --bert_config_file]",
    )


def check(settings: RunSettings) -> None:
  """Refuses values that these flags cannot have, and what cannot be combined with them.

  The UsageError says what to do.
  """
  settings.check("train_minutes", lambda value: 0 < value < math.inf, "a positive number")
  settings.check("warmup_proportion", lambda value: 0 <= value <= 1, "between 0 and 1")
  settings.check("dropout", lambda value: 0 <= value < 1, "at least 0 and below 1")
  settings.check("initializer_range", lambda value: 0 < value < math.inf, "a positive number")
  if settings.train_minutes:
    _check_clock(settings)
  if settings.first_batch_size is not None:
    _check_ramp(settings)
  if "num_warmup_steps" in settings.given and flag_was_given("warmup_proportion"):
    raise UsageError("--num_warmup_steps and --warmup_proportion say the same: give one of them.")


def _check_clock(settings: RunSettings) -> None:
  reasons = {
    "num_train_steps": "both say when training ends. Give one of them",
    "num_warmup_steps": "how many steps there will be is not known. Give --warmup_proportion",
  }
  for name, reason in reasons.items():
    if name in settings.given:
      raise UsageError(f"--{name} cannot be combined with --train_minutes: {reason}.")
  if settings.distribution_strategy != "one_device":
    raise UsageError(
      "--train_minutes works on one device, not with --distribution_strategy="
      f"{settings.distribution_strategy}. Give --num_train_steps."
    )
  if settings.steps_per_loop > 1:
    raise UsageError(
      f"--iterations_per_loop={settings.steps_per_loop} cannot be combined with --train_minutes: "
      "the clock is read after each step. Leave it out."
    )


def _check_ramp(settings: RunSettings) -> None:
  first, last = settings.first_batch_size, settings.train_batch_size
  if first < 1 or last % first:
    raise UsageError(
      f"--first_batch_size={first} must be at least 1 and divide --train_batch_size={last}."
    )
  if settings.gradient_accumulation_steps > 1 or settings.distribution_strategy != "one_device":
    raise UsageError(
      "--first_batch_size works on one device, and its batches come in parts of that size: leave "
      "out --gradient_accumulation_steps and --distribution_strategy."
    )


def planned(settings: RunSettings) -> RunSettings:
  """Returns the settings with steps and warm-up; with `--train_minutes`, in parts of the time."""
  num_steps, proportion = settings.num_train_steps, settings.warmup_proportion
  if settings.train_minutes:
    num_steps = _PARTS_OF_TIME
    proportion = _WARMUP_BY_CLOCK if proportion is None else proportion
  # A recipe's proportion gives way to the user's number.
  if proportion is None or "num_warmup_steps" in settings.given:
    return settings.with_steps(num_steps, settings.num_warmup_steps)
  return settings.with_steps(num_steps, settings.warmup_steps_of(num_steps, proportion))


def clock_of(settings: RunSettings):
  """Returns the `clock.Clock` of `--train_minutes`; None for a number of steps."""
  if not settings.do_train or not settings.train_minutes:
    return None
  from bert.training.clock import Clock

  return Clock(60 * settings.train_minutes)


def ramp_of(settings: RunSettings):
  """Returns the `batch_ramp.BatchRamp` of `--first_batch_size`; None for batches of one size."""
  if not settings.do_train or settings.first_batch_size in (None, settings.train_batch_size):
    return None
  from bert.training.batch_ramp import BatchRamp

  parts = settings.train_batch_size // settings.first_batch_size
  return BatchRamp(parts, settings.num_train_steps)


def trained_config(settings: RunSettings, config: BertConfig) -> BertConfig:
  """Returns the configuration to train with; that of the checkpoint stays as it is."""
  config = copy.deepcopy(config)
  if settings.dropout is not None:
    config.hidden_dropout_prob = config.attention_probs_dropout_prob = settings.dropout
  if settings.initializer_range is not None:
    config.initializer_range = settings.initializer_range
  return config
