"""Recipes: lists of flags with one name, `--recipe=NAME`.

  --recipe=stable      # the same as --adam_bias_correction --lr_schedule=continuous ...

A recipe changes nothing but the values of flags: what it sets is logged once in full, and a flag
that the user gives wins over the recipe's. `--recipe=2018` is the default and sets none. What each
recipe gains is in docs/recipes.md, measured by benchmarks/recipes.py.

`--help` lists the recipes, so this module imports nothing that takes long.
"""

import dataclasses
from collections.abc import Collection, Mapping
from typing import Any

from absl import flags, logging

from bert.model.configuration import BertConfig
from bert.scripts.command_line import UsageError

FINE_TUNING = "fine-tuning"
PRE_TRAINING = "pre-training"
_SCRIPTS = {
  FINE_TUNING: "run_classifier.py, run_squad.py, run_ner.py, run_swag.py, run_similarity.py",
  PRE_TRAINING: "run_pretraining.py",
}

DEFAULT = "2018"


@dataclasses.dataclass(frozen=True)
class Recipe:
  """A list of flags.

  Attributes:
    flags: as on a command line, each in one word: `--name=value`, `--name` or `--noname`.
    stages: what it is for: `FINE_TUNING`, `PRE_TRAINING` or both.
    description: for `--help`, a line.
    sources: where it comes from.
    families: of models that it is for: values of `model_type` in a configuration; None: all.
  """

  flags: tuple[str, ...]
  stages: tuple[str, ...]
  description: str
  sources: tuple[str, ...] = ()
  families: tuple[str, ...] | None = ("bert",)

  def suits(self, family: str) -> bool:
    """Whether it is for models of a family."""
    return self.families is None or family in self.families


_MOSBACH = "Mosbach et al. 2020, On the Stability of Fine-tuning BERT, arXiv:2006.04884"
_ZHANG = "Zhang et al. 2020, Revisiting Few-sample BERT Fine-tuning, arXiv:2006.05987"
_GEIPING = "Geiping & Goldstein 2022, Cramming, arXiv:2212.14034"
_ROBERTA = "Liu et al. 2019, RoBERTa, arXiv:1907.11692"

_STABLE_FLAGS = (
  "--adam_bias_correction",
  "--lr_schedule=continuous",
  "--warmup_proportion=0.1",
  "--min_train_steps=600",
)

RECIPES: dict[str, Recipe] = {
  DEFAULT: Recipe((), (FINE_TUNING, PRE_TRAINING), "the original's defaults", families=None),
  "stable": Recipe(
    _STABLE_FLAGS,
    (FINE_TUNING,),
    "Adam with bias correction, warm-up over a tenth of the steps, enough steps on small data",
    (_MOSBACH, _ZHANG),
  ),
  "reinit": Recipe(
    (*_STABLE_FLAGS, "--reinit_layers=1"),
    (FINE_TUNING,),
    "stable, and the top layer and the pooler start from new random values",
    (_ZHANG,),
  ),
  "budget": Recipe(
    (
      "--adam_bias_correction",
      "--dropout=0",
      "--dynamic_masking",
      "--initializer_range=0.04",
      "--lr_schedule=continuous",
      "--objective=mlm",
      "--train_batch_size=8",
      "--warmup_proportion=0.1",
    ),
    (PRE_TRAINING,),
    "for widths up to 256: small batches, bias correction, larger initial weights, new masks in "
    "each pass, no dropout, no next sentences",
    (_GEIPING, _ROBERTA),
  ),
}


def names(stage: str) -> list[str]:
  """The recipes for a stage, in the order of the table."""
  return [name for name, recipe in RECIPES.items() if stage in recipe.stages]


def help_of(stage: str) -> str:
  """What `--help` says of `--recipe` in scripts of a stage."""
  known = "; ".join(f"{name}: {RECIPES[name].description}" for name in names(stage))
  return f"A list of flags under one name; what you give yourself wins over it. {known}."


def values_of_flags(known: Mapping[str, flags.Flag], given: Collection[str]) -> dict[str, Any]:
  """The values of the flags that `--recipe` sets; logs them, and those that are the user's own.

  Args:
    known: name -> flag, of the script. A flag that it lacks, as `doctor.py` does, is left out.
    given: the flags on the command line.

  Returns:
    Flag -> value; empty for a script without `--recipe`.

  Raises:
    UsageError: the recipe is for another kind of script.
  """
  if "recipe" not in known:
    return {}
  name = known["recipe"].value
  _check_stage(name, _stage(known))
  values, kept = {}, []
  for word in RECIPES[name].flags:
    flag, text = _find(word, known)
    if flag is not None and flag.name in given:
      kept.append(f"--{flag.name}={flag.value}")
    elif flag is not None:
      values[flag.name] = flag.parser.parse(text)
  if RECIPES[name].flags:
    own = f"; given by you and kept: {' '.join(kept)}" if kept else ""
    logging.info("--recipe=%s sets: %s%s.", name, " ".join(RECIPES[name].flags), own)
  return values


def _find(word: str, known: Mapping[str, flags.Flag]) -> tuple[flags.Flag | None, str]:
  """The flag of one word of a recipe, None if the script lacks it, and the text of its value."""
  name, equals, text = word.removeprefix("--").partition("=")
  if equals:
    return known.get(name), text
  if name not in known and name.removeprefix("no") in known:
    return known[name.removeprefix("no")], "false"
  return known.get(name), "true"


def _stage(names: Collection[str]) -> str | None:
  """What a script with these flags does; None for `doctor.py`, which has those of all."""
  stages = {"num_train_epochs": FINE_TUNING, "num_train_steps": PRE_TRAINING}
  found = [stage for name, stage in stages.items() if name in names]
  return found[0] if len(found) == 1 else None


def _check_stage(name: str, stage: str | None) -> None:
  """Refuses a recipe of pre-training in fine-tuning, and the reverse."""
  stages = RECIPES[name].stages
  if stage and stage not in stages:
    raise UsageError(
      f"--recipe={name} is for {' and '.join(stages)} ({', '.join(map(_SCRIPTS.get, stages))}). "
      f"Recipes for {stage}: {', '.join(names(stage))}."
    )


def check_family(values: Mapping[str, Any], config: BertConfig) -> None:
  """Refuses a recipe for models of another family.

  Args:
    values: flag -> value, of the script.
    config: of the model; its `model_type`, if it has one, is the family.

  Raises:
    UsageError: names the recipes for this family.
  """
  recipe = RECIPES[values.get("recipe") or DEFAULT]
  family = getattr(config, "model_type", "bert")
  if not recipe.suits(family):
    stage = _stage(values)
    fitting = [name for name in names(stage) if RECIPES[name].suits(family)]
    raise UsageError(
      f"--recipe={values['recipe']} is for models of the family {' and '.join(recipe.families)}, "
      f"this one is of {family}. Recipes for it: {', '.join(fitting)}."
    )
