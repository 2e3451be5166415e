"""The settings of `run_pretraining.py`: records, masks, and what is learned.

What is computed lies in `bert/training/pretraining_objectives.py`.
"""

from typing import Any

from absl import logging

from bert import families
from bert.model.configuration import BertConfig
from bert.pretraining.record_checks import max_predictions_of
from bert.scripts.run_settings import OptimizerSettings, RunSettings
from bert.scripts.settings import (
  Path,
  Rule,
  Settings,
  UsageError,
  at_least,
  changed,
  loss_weight,
  setting,
)

# Settings that the objective electra alone reads.
_ELECTRA = ("gen_weight", "disc_weight")


class MaskSettings(Settings, title="Masks drawn while reading"):
  """Masks of records that have none."""

  dynamic_masking: bool = setting(
    False,
    "Draw new masks each time an example is read, for records that were written with "
    "--dynamic_masking. [for models of RoBERTa and DistilBERT: if the first record has no masks]",
  )
  masked_lm_prob: float = setting(
    0.15,
    "Fraction of the tokens to mask.",
    Rule(lambda value: 0 < value <= 1, "above 0 and at most 1"),
  )
  do_whole_word_mask: bool = setting(False, "Mask all pieces of a word, or none.")


class ObjectiveSettings(Settings, title="Objective"):
  """What is learned."""

  objective: str | None = setting(
    None,
    "What to learn: mlm_nsp, masked words and next sentences; mlm, masked words; mlm_sop, masked "
    "words and the order of sentences; electra, which words a generator has replaced. [that of "
    "the model's family: BERT mlm_nsp, ALBERT mlm_sop, ELECTRA electra, RoBERTa and DistilBERT "
    "mlm]",
    choices=families.OBJECTIVES,
  )


class GeneratorSettings(Settings, title="ELECTRA's generator"):
  """The other model of ELECTRA."""

  gen_weight: float = setting(1.0, "Weight of the generator's loss.", loss_weight())
  disc_weight: float = setting(50.0, "Weight of the discriminator's loss.", loss_weight())


class PretrainingOptimizer(OptimizerSettings):
  """LAMB, too."""

  optimizer: str = setting("adamw", "AdamW, or LAMB for large batches.", choices=["adamw", "lamb"])


class PretrainingSettings(
  MaskSettings,
  ObjectiveSettings,
  GeneratorSettings,
  PretrainingOptimizer,
  RunSettings,
  title="Task and data",
):
  """A run of `run_pretraining.py`."""

  input_file: str = setting(
    None,
    "TFRecord files of create_pretraining_data.py: paths or patterns, joined by commas.",
    path=Path(several=True),
  )
  eval_input_file: str | None = setting(
    None,
    "The same for --do_eval and --eval_every_steps. Default: --input_file, whose words the model "
    "has seen.",
    path=Path(several=True),
  )
  do_eval: bool = changed(RunSettings, "do_eval", help="Whether to evaluate.")
  max_predictions_per_seq: int = setting(
    20,
    "Masked words of a sequence; must be that of the records. [for models of RoBERTa and "
    "DistilBERT: that of the first record, or --masked_lm_prob of --max_seq_length]",
    at_least(1),
  )
  num_train_steps: int = setting(100000, "Training steps of the whole run.", at_least(1))
  num_warmup_steps: int = setting(
    10000, "Steps in which the learning rate rises linearly from 0.", at_least(0)
  )
  max_eval_steps: int | None = setting(
    100, "Batches to evaluate; if there are fewer, they are repeated.", at_least(1)
  )
  max_seq_length: int = changed(
    RunSettings,
    "max_seq_length",
    help="Maximum sequence length in word pieces, [CLS] and [SEP] included. Must be that of the "
    "records.",
  )

  vocab_file: str | None = changed(
    RunSettings,
    "vocab_file",
    help="The vocabulary of the records; required with --dynamic_masking, else only compared. "
    "Default: vocab.txt beside --init_checkpoint, or that of the records beside them or beside "
    "--bert_config_file.",
  )
  do_lower_case: bool = changed(
    RunSettings,
    "do_lower_case",
    help="With --do_export: whether --vocab_file is that of an uncased model.",
  )

  required = ("input_file", "bert_config_file", "output_dir")
  needed = ("input_file", "output_dir")
  nothing_to_do = "At least one of `do_train` or `do_eval` must be True."

  def check(self):
    """See base class; also warns of a rate that never reaches its peak."""
    super().check()
    if self.do_train and self.num_warmup_steps >= self.num_train_steps:
      logging.warning(
        "--num_warmup_steps=%d is not less than --num_train_steps=%d: the learning rate never "
        "reaches its peak.",
        *(self.num_warmup_steps, self.num_train_steps),
      )


def resolved(settings: PretrainingSettings, config: BertConfig) -> PretrainingSettings:
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


def _with_own_masks(settings: PretrainingSettings) -> PretrainingSettings:
  """Makes the settings of a model whose records never have masks."""
  if settings.do_whole_word_mask:
    raise UsageError("--do_whole_word_mask is not supported for models of ELECTRA. Leave it out.")
  predictions = settings.max_predictions_per_seq
  if "max_predictions_per_seq" not in settings.given:
    predictions = max_predictions_of(settings.masked_lm_prob, settings.max_seq_length)
  return settings.replace(dynamic_masking=True, max_predictions_per_seq=predictions)


def _check_masks(settings: PretrainingSettings) -> PretrainingSettings:
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


def facts(settings: PretrainingSettings, config: BertConfig) -> dict[str, Any]:
  """What decides which variables a model of ELECTRA has, and must be equal for a run to resume.

  The settings are those of `resolved`.
  """
  if not config.family.has_generator:
    return {}
  known: dict[str, Any] = {"objective": settings.objective}
  if settings.objective == "electra":
    # Earlier versions had flags for other generators.
    known |= {"generator": "small", "untied_generator_embeddings": False}
    known |= {name: getattr(config, name) for name in ("generator_hidden_size", "generator_layers")}
  return known


def objective_of(settings: PretrainingSettings):
  """The `pretraining_objectives.Objective` of settings from `resolved`."""
  from bert.training import pretraining_objectives

  return pretraining_objectives.objective_of(
    settings.objective, settings.gen_weight, settings.disc_weight
  )
