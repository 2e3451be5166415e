"""`--objective` of `run_pretraining.py`, and the flags of ELECTRA's generator.

What is computed lies in `bert/training/pretraining_objectives.py`.
"""

import copy
import functools
import math
import re
from collections.abc import Callable
from typing import Any

from absl import flags

from bert.model import families
from bert.model.configuration import BertConfig
from bert.pretraining.record_checks import max_predictions_of
from bert.scripts import flag_groups, pretraining_data
from bert.scripts.command_line import UsageError
from bert.scripts.run_settings import RunSettings

# Flags that the objectives electra and electric alone read.
_ELECTRA = (
  *("gen_weight", "disc_weight", "temperature", "disallow_correct", "generator"),
  *("untied_generator_embeddings", "generator_hidden_size", "generator_layers"),
)
_WITH_GENERATOR = ("electra", "electric")


def define_flags(temperature: bool = True) -> None:
  """Defines the flags of what is learned; `--temperature` only where it is the generator's."""
  with flag_groups.flag_group("Objective"):
    flags.DEFINE_enum(
      "objective",
      None,
      families.OBJECTIVES,
      "What to learn: mlm_nsp, masked words and next sentences; mlm, masked words; mlm_sop, masked "
      "words and the order of sentences; electra, which words a generator has replaced; electric, "
      "the same with a generator of two towers, as an energy of words. [that of the model's "
      "family: BERT mlm_nsp, ALBERT mlm_sop, ELECTRA electra, RoBERTa and DistilBERT mlm]",
    )
  with flag_groups.flag_group("ELECTRA's generator"):
    flags.DEFINE_float("gen_weight", 1.0, "Weight of the generator's loss.")
    flags.DEFINE_float("disc_weight", 50.0, "Weight of the discriminator's loss.")
    if temperature:
      flags.DEFINE_float(
        "temperature", 1.0, "Of the distribution from which the generator's words are drawn."
      )
    flags.DEFINE_bool(
      "disallow_correct", False, "Never draw the word that stands in the text from the generator."
    )
    flags.DEFINE_enum(
      "generator",
      "small",
      families.GENERATORS,
      "small, a model of its own; tied, the discriminator itself; uniform, no model: every word is "
      "as likely as any other; two_tower, two models that read what stands before and after a "
      "word, and learn all words. --objective=electric has two_tower.",
    )
    flags.DEFINE_bool(
      "untied_generator_embeddings",
      False,
      "Give the generator embeddings of its own, as wide as its hidden size.",
    )
    flags.DEFINE_float(
      "generator_hidden_size",
      None,
      "Hidden size of the generator as a fraction of the discriminator's. [that of "
      "--bert_config_file, else 0.25]",
    )
    flags.DEFINE_float(
      "generator_layers",
      None,
      "Number of the generator's layers as a fraction of the discriminator's. [that of "
      "--bert_config_file, else 1.0]",
    )
  with flag_groups.flag_group("ALBERT"):
    flags.DEFINE_bool(
      "init_from_group0",
      False,
      "Groups of layers that --init_checkpoint lacks start with the weights of its group 0.",
    )
    flags.DEFINE_float(
      "masked_lm_budget",
      0,
      "Must be 0: the code behind it was not published; the records have masks.",
    )


def check(settings: RunSettings) -> None:
  """Refuses values that these flags cannot have; the UsageError says what to do."""
  if settings.masked_lm_budget:
    raise UsageError(
      f"--masked_lm_budget={settings.masked_lm_budget}: ALBERT's published code does not draw such "
      "masks, either. Leave it out; the masks of the records are used."
    )
  if settings.init_from_group0 and not settings.init_checkpoint:
    raise UsageError("--init_from_group0 needs --init_checkpoint, whose group 0 is meant.")
  for name in ("gen_weight", "disc_weight"):
    settings.check(name, lambda value: 0 <= value < math.inf, "at least 0")
  for name in ("temperature", "generator_hidden_size", "generator_layers"):
    settings.check(name, lambda value: 0 < value < math.inf, "a positive number")


def resolved(settings: RunSettings, config: BertConfig) -> RunSettings:
  """The settings with the objective, by default that of the model's family.

  Raises:
    UsageError: the objective is not for this family, or flags of ELECTRA are given without it.
  """
  family = config.family
  name = settings.objective or family.objective
  if name in _WITH_GENERATOR and not family.has_generator:
    raise UsageError(
      f"--objective={name} trains models of ELECTRA, and {settings.bert_config_file} is of "
      f"{family.title}. Give another objective, or, to train from random weights, add "
      '"model_type": "electra" to the file.'
    )
  if family.has_generator and name in ("mlm_nsp", "mlm_sop"):
    raise UsageError(
      f"--objective={name} needs a pooler for pairs of sentences, which ELECTRA's models do not "
      "have. Give --objective=electra or --objective=mlm."
    )
  if settings.init_from_group0 and not family.shares_layers:
    raise UsageError(
      f"--init_from_group0 is for ALBERT's groups of layers, and {settings.bert_config_file} is of "
      f"{family.title}. Leave it out."
    )
  unused = [flag for flag in _ELECTRA if flag in settings.given]
  if unused and name not in _WITH_GENERATOR:
    raise UsageError(f"--{unused[0]} has no effect with --objective={name}. Leave it out.")
  settings = settings.replace(objective=name)
  if name == "electric":
    if "generator" in settings.given and settings.generator != "two_tower":
      raise UsageError("--objective=electric needs --generator=two_tower. Leave --generator out.")
    settings = settings.replace(generator="two_tower")
  if settings.generator == "two_tower":
    # The first and the last word read a vector beside the text, as long as the original's.
    settings = settings.replace(pad_to_max_length=True)
  return _with_own_masks(settings) if family.has_generator else _check_masks(settings)


def _with_own_masks(settings: RunSettings) -> RunSettings:
  """Makes the settings of a model whose records never have masks."""
  for name in ("do_whole_word_mask", "always_mask"):
    if settings.get(name):
      raise UsageError(f"--{name} is not supported for models of ELECTRA. Leave it out.")
  if settings.mask_rules != "bert":
    raise UsageError("--mask_rules: models of ELECTRA have rules of their own. Leave it out.")
  predictions = settings.max_predictions_per_seq
  if "max_predictions_per_seq" not in settings.given:
    predictions = max_predictions_of(settings.masked_lm_prob, settings.max_seq_length)
  return settings.replace(dynamic_masking=True, max_predictions_per_seq=predictions)


def _check_masks(settings: RunSettings) -> RunSettings:
  for name in ("do_whole_word_mask", "masked_lm_prob", "always_mask", "mask_rules"):
    if name in settings.given and not settings.dynamic_masking:
      other = name if name != "mask_rules" else "dynamic_masking"
      raise UsageError(
        f"--{name} is about masks that are drawn while reading. Give --dynamic_masking, too, or "
        f"give --{other} to create_pretraining_data.py."
      )
  if settings.mask_rules == "fairseq":
    needed = pretraining_data.room_of(settings)
    if settings.max_predictions_per_seq < needed:
      raise UsageError(
        f"--max_predictions_per_seq={settings.max_predictions_per_seq}: --mask_rules=fairseq may "
        f"mask {needed} tokens of --max_seq_length={settings.max_seq_length}. Give at least "
        f"{needed}."
      )
  return settings


def with_generator(settings: RunSettings, config: BertConfig) -> BertConfig:
  """The configuration with the sizes of the generator that the flags give."""
  if settings.objective not in _WITH_GENERATOR:
    return config
  config = copy.deepcopy(config)
  for name in ("generator_hidden_size", "generator_layers"):
    if (value := settings.get(name)) is not None:
      setattr(config, name, value)
  if settings.generator in ("small", "two_tower"):
    generator = config.generator_config()
    try:
      generator.validate()
    except ValueError as error:
      raise UsageError(
        f"The generator of --generator_hidden_size={config.generator_hidden_size} and "
        f"--generator_layers={config.generator_layers} is impossible: {error}"
      ) from None
  return config


def facts(settings: RunSettings, config: BertConfig) -> dict[str, Any]:
  """What decides which variables a model of ELECTRA has, and must be equal for a run to resume.

  The settings are those of `resolved`, the configuration that of `with_generator`.
  """
  if not config.family.has_generator:
    return {}
  known = {"objective": settings.objective}
  if settings.objective in _WITH_GENERATOR:
    known |= {name: settings.values[name] for name in ("generator", "untied_generator_embeddings")}
    known |= {name: getattr(config, name) for name in ("generator_hidden_size", "generator_layers")}
  return known


def fallback_name(settings: RunSettings) -> Callable[[str], str] | None:
  """Which variable of the checkpoint a missing one takes its value from; see `RunConfig`.

  The original's `--init_from_group0` leaves attention and feed-forward weights of all groups but
  the last random: all of them are looked up as belonging to group 1, where the last one wins.
  """
  if not settings.init_from_group0:
    return None
  return functools.partial(re.sub, r"/group_\d+/", "/group_0/")


def objective_of(settings: RunSettings):
  """The `pretraining_objectives.Objective` of settings from `resolved`."""
  from bert.training import pretraining_objectives

  return pretraining_objectives.objective_of(
    settings.objective,
    pretraining_objectives.ElectraOptions(
      gen_weight=settings.gen_weight,
      disc_weight=settings.disc_weight,
      temperature=settings.temperature,
      disallow_correct=settings.disallow_correct,
      generator=settings.generator,
      untied_generator_embeddings=settings.untied_generator_embeddings,
      masked_lm_prob=settings.masked_lm_prob,
    ),
  )
