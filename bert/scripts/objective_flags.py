"""`--objective` of `run_pretraining.py`, and the flags of ELECTRA's generator.

What is computed lies in `bert/training/pretraining_objectives.py`.
"""

import math
from typing import Any

from absl import flags

from bert import families
from bert.model.configuration import BertConfig
from bert.pretraining.record_checks import max_predictions_of
from bert.scripts import flag_groups
from bert.scripts.command_line import UsageError
from bert.scripts.run_settings import RunSettings

# Flags that the objective electra alone reads.
_ELECTRA = ("gen_weight", "disc_weight")


def define_flags() -> None:
  """Defines the flags of what is learned."""
  with flag_groups.flag_group("Objective"):
    flags.DEFINE_enum(
      "objective",
      None,
      families.OBJECTIVES,
      "What to learn: mlm_nsp, masked words and next sentences; mlm, masked words; mlm_sop, masked "
      "words and the order of sentences; electra, which words a generator has replaced. [that of "
      "the model's family: BERT mlm_nsp, ALBERT mlm_sop, ELECTRA electra, RoBERTa and DistilBERT "
      "mlm]",
    )
  with flag_groups.flag_group("ELECTRA's generator"):
    flags.DEFINE_float("gen_weight", 1.0, "Weight of the generator's loss.")
    flags.DEFINE_float("disc_weight", 50.0, "Weight of the discriminator's loss.")


def check(settings: RunSettings) -> None:
  """Refuses values that these flags cannot have; the UsageError says what to do."""
  for name in ("gen_weight", "disc_weight"):
    settings.check(name, lambda value: 0 <= value < math.inf, "at least 0")


def resolved(settings: RunSettings, config: BertConfig) -> RunSettings:
  """The settings with the objective, by default that of the model's family.

  Raises:
    UsageError: the objective is not for this family, or flags of ELECTRA are given without it.
  """
  family = config.family
  name = settings.objective or family.objective
  if name == "electra" and not family.has_generator:
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
  unused = [flag for flag in _ELECTRA if flag in settings.given]
  if unused and name != "electra":
    raise UsageError(f"--{unused[0]} has no effect with --objective={name}. Leave it out.")
  settings = settings.replace(objective=name)
  if name == "electra":
    _check_generator(config)
  return _with_own_masks(settings) if family.has_generator else _check_masks(settings)


def _with_own_masks(settings: RunSettings) -> RunSettings:
  """Makes the settings of a model whose records never have masks."""
  if settings.do_whole_word_mask:
    raise UsageError("--do_whole_word_mask is not supported for models of ELECTRA. Leave it out.")
  predictions = settings.max_predictions_per_seq
  if "max_predictions_per_seq" not in settings.given:
    predictions = max_predictions_of(settings.masked_lm_prob, settings.max_seq_length)
  return settings.replace(dynamic_masking=True, max_predictions_per_seq=predictions)


def _check_masks(settings: RunSettings) -> RunSettings:
  for name in ("do_whole_word_mask", "masked_lm_prob"):
    if name in settings.given and not settings.dynamic_masking:
      raise UsageError(
        f"--{name} is about masks that are drawn while reading. Give --dynamic_masking, too, or "
        f"give --{name} to create_pretraining_data.py."
      )
  return settings


def _check_generator(config: BertConfig) -> None:
  try:
    config.generator_config().validate()
  except ValueError as error:
    raise UsageError(
      f"The generator of generator_hidden_size={config.generator_hidden_size} and "
      f"generator_layers={config.generator_layers} in --bert_config_file is impossible: {error}"
    ) from None


def facts(settings: RunSettings, config: BertConfig) -> dict[str, Any]:
  """What decides which variables a model of ELECTRA has, and must be equal for a run to resume.

  The settings are those of `resolved`.
  """
  if not config.family.has_generator:
    return {}
  known = {"objective": settings.objective}
  if settings.objective == "electra":
    # Earlier versions had flags for other generators.
    known |= {"generator": "small", "untied_generator_embeddings": False}
    known |= {name: getattr(config, name) for name in ("generator_hidden_size", "generator_layers")}
  return known


def objective_of(settings: RunSettings):
  """The `pretraining_objectives.Objective` of settings from `resolved`."""
  from bert.training import pretraining_objectives

  return pretraining_objectives.objective_of(
    settings.objective, settings.gen_weight, settings.disc_weight
  )
