"""Recipes: lists of flags with one name, `--recipe=NAME`.

  --recipe=stable      # the same as --adam_bias_correction --lr_schedule=continuous ...

A recipe changes nothing but the values of flags: what it sets is logged in full, and a flag that
the user gives wins over the recipe's. Some values depend on the task, some on the size of the
model, known once its configuration is read. `--recipe=2018` is the default and sets none. What the
recipes gain is in docs/results/scores.md, measured by benchmarks/recipes.py.

`--help` lists the recipes, so this module imports nothing that takes long.
"""

import dataclasses
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Any

from absl import flags, logging

from bert.model.configuration import BertConfig
from bert.scripts import command_line, flag_groups
from bert.scripts.command_line import UsageError
from bert.tasks import kinds

FINE_TUNING = "fine-tuning"
PRE_TRAINING = "pre-training"

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
    tasks: task -> further flags. A task of run_classifier.py is its name without "-" and "_";
      run_squad.py has `squad1` and `squad2`, run_ner.py `ner`, with `--label_scheme=plain` `tags`.
    of_model: further flags for a configuration.
  """

  flags: tuple[str, ...]
  stages: tuple[str, ...]
  description: str
  sources: tuple[str, ...] = ()
  families: tuple[str, ...] | None = ("bert",)
  tasks: Mapping[str, tuple[str, ...]] = dataclasses.field(default_factory=dict)
  of_model: Callable[[BertConfig], tuple[str, ...]] | None = None

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

# Flags of ALBERT that say the same as ours: who gives one does not want the recipe's other.
SAME = {"train_step": "num_train_epochs", "warmup_step": "warmup_proportion"}

_CLARK = "Clark et al. 2020, ELECTRA, arXiv:2003.10555, and configure_finetuning.py of its code"
_LAN = "Lan et al. 2019, ALBERT, arXiv:1909.11942, and run_glue.sh and README.md of its code"


def _electra_of_size(config: BertConfig) -> tuple[str, ...]:
  """ELECTRA's learning rates.

  Those of table 7 of the paper: 3e-4 for Small (width 256), 1e-4 for Base (768), 5e-5 for Large
  (1024), and layers that differ less in Large. `configure_finetuning.py` has 1e-4 for Small, too.
  """
  if config.hidden_size >= 1024:
    return "--learning_rate=5e-5", "--layerwise_lr_decay=0.9"
  return (f"--learning_rate={'3e-4' if config.hidden_size <= 256 else '1e-4'}",)


def _albert_task(rate: str, batch: int, steps: int, warmup: int) -> tuple[str, ...]:
  """A line of ALBERT's run_glue.sh, which are those of the paper's table of hyperparameters."""
  flags = f"--learning_rate={rate} --train_batch_size={batch} --train_step={steps}"
  return *flags.split(), f"--warmup_step={warmup}", "--max_seq_length=512"


def _roberta_task(rate: str, batch: int) -> tuple[str, ...]:
  """A line of fairseq's table for GLUE; ten epochs are those of the paper's table 10."""
  return f"--learning_rate={rate}", f"--train_batch_size={batch}", "--num_train_epochs=10"


# Table 10 of the paper.
_ROBERTA_SQUAD = (
  *("--learning_rate=1.5e-5", "--train_batch_size=48", "--num_train_epochs=2"),
  "--weight_decay=0.01",
)

# README.md of ALBERT has the same command for both versions.
_ALBERT_SQUAD = ("--learning_rate=5e-5", "--train_batch_size=48", "--num_train_epochs=2")

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
  "electra": Recipe(
    (
      "--answer_head=electra",
      "--double_unordered",
      "--layerwise_lr_decay=0.8",
      "--layerwise_lr_top_power=2",
      "--lr_schedule=product",
      "--sum_loss",
    ),
    (FINE_TUNING,),
    "ELECTRA's fine-tuning: its schedule, the rates of its layers, its head for questions",
    (_CLARK,),
    families=("electra",),
    tasks={
      "rte": ("--num_train_epochs=10",),
      "stsb": ("--num_train_epochs=10", "--label_scale=5"),
      "ner": ("--model_scheme=bioes", "--segment_id=1"),
      "tags": ("--segment_id=1",),
      "squad1": ("--max_seq_length=512", "--num_train_epochs=2"),
      "squad2": (
        *("--max_seq_length=512", "--num_train_epochs=2"),
        "--null_score_diff_threshold=-2.75",
      ),
    },
    of_model=_electra_of_size,
  ),
  "roberta": Recipe(
    (
      "--adam_beta_2=0.98",
      "--adam_bias_correction",
      "--lr_schedule=continuous",
      "--warmup_proportion=0.06",
      "--weight_decay=0.1",
    ),
    (FINE_TUNING,),
    "RoBERTa's fine-tuning: a shorter memory of the second moment, more decay, 6% of warm-up",
    (_ROBERTA, "examples/roberta/README.glue.md of fairseq"),
    families=("roberta",),
    tasks={
      **dict.fromkeys(("mnli", "qnli", "qqp", "sst2"), _roberta_task("1e-5", 32)),
      **dict.fromkeys(("mrpc", "cola"), _roberta_task("1e-5", 16)),
      **dict.fromkeys(("rte", "stsb"), _roberta_task("2e-5", 16)),
      **dict.fromkeys(("squad1", "squad2"), _ROBERTA_SQUAD),
    },
  ),
  "fairseq": Recipe(
    (
      *("--mask_rules=fairseq", "--adam_beta_2=0.98", "--adam_bias_correction"),
      *("--weight_decay=0.01", "--decay_all_variables", "--max_grad_norm=0"),
      "--lr_schedule=continuous",
    ),
    (PRE_TRAINING,),
    "RoBERTa's pre-training as its original code does it: masks, decay, no clipping of gradients",
    (_ROBERTA, "examples/roberta/config/pretraining/base.yaml of fairseq"),
    families=("roberta",),
  ),
  "albert": Recipe(
    (),
    (FINE_TUNING,),
    "ALBERT's fine-tuning: rate, batch, steps and length of each task",
    (_LAN,),
    families=("albert",),
    tasks={
      "sst2": _albert_task("1e-5", 32, 20935, 1256),
      "mnli": _albert_task("3e-5", 128, 10000, 1000),
      "cola": _albert_task("1e-5", 16, 5336, 320),
      "qnli": _albert_task("1e-5", 32, 33112, 1986),
      "qqp": _albert_task("5e-5", 128, 14000, 1000),
      "rte": _albert_task("3e-5", 32, 800, 200),
      "stsb": _albert_task("2e-5", 16, 3598, 214),
      "mrpc": _albert_task("2e-5", 32, 800, 200),
      **dict.fromkeys(("squad1", "squad2"), _ALBERT_SQUAD),
    },
  ),
}


def names(stage: str) -> list[str]:
  """The recipes for a stage, in the order of the table."""
  return [name for name, recipe in RECIPES.items() if stage in recipe.stages]


def help_of(stage: str) -> str:
  """What `--help` says of `--recipe` in scripts of a stage."""
  known = "; ".join(f"{name}: {RECIPES[name].description}" for name in names(stage))
  return f"A list of flags under one name; what you give yourself wins over it. {known}."


def values_of_flags(
  known: Mapping[str, flags.Flag], values: Mapping[str, Any], given: Collection[str]
) -> dict[str, Any]:
  """The values of the flags that `--recipe` sets; logs them, and those that are the user's own.

  Args:
    known: name -> flag, of the script. A flag that it lacks, as `doctor.py` does, is left out.
    values: flag -> value.
    given: the flags on the command line.

  Returns:
    Flag -> value; empty for a script without `--recipe`.

  Raises:
    UsageError: the recipe is for another kind of script.
  """
  if "recipe" not in known:
    return {}
  name = values["recipe"]
  _check_stage(name, _stage(known))
  words = flags_of(name, known, values)
  if name != DEFAULT and not words:
    logging.info("--recipe=%s sets nothing for this task.", name)
  return _values(name, words, known, given)


def flags_of(name: str, known: Mapping[str, flags.Flag], values: Mapping) -> tuple[str, ...]:
  """The flags of a recipe for a script and its task, of those that the script has."""
  recipe = RECIPES[name]
  words = (*recipe.flags, *recipe.tasks.get(_task_of(values) or "", ()))
  words = tuple({word.partition("=")[0]: word for word in words}.values())  # the task's wins
  return tuple(word for word in words if _find(word, known)[0] is not None)


def values_for_model(values: Mapping[str, Any]) -> dict[str, Any]:
  """As `values_of_flags`, of what `--recipe` sets for the size of the model.

  Args:
    values: flag -> value, of the script; its configuration is read if the recipe depends on it.

  Raises:
    UsageError: the recipe is for another family.
    ValueError: the configuration is bad or missing.
  """
  name = values.get("recipe") or DEFAULT
  of_model = RECIPES[name].of_model
  if of_model is None:
    return {}
  config = BertConfig.from_json_file(values["bert_config_file"])
  check_family(values, config)
  known = {flag.name: flag for flag in flag_groups.script_flags()}
  given = list(filter(command_line.flag_was_given, known))
  return _values(name, of_model(config), known, given)


def _values(
  name: str, words: Iterable[str], known: Mapping[str, flags.Flag], given: Collection[str]
) -> dict[str, Any]:
  """Flag -> value of the words of a recipe, but for what the user gave; logs both."""
  values, kept = {}, []
  same = {**SAME, **{ours: theirs for theirs, ours in SAME.items()}}
  for word in words:
    flag, text = _find(word, known)
    if flag is None:
      continue
    own = next((other for other in (flag.name, same.get(flag.name)) if other in given), None)
    if own:
      kept.append(f"--{own}={known[own].value}")
    else:
      values[flag.name] = flag.parser.parse(text)
  if words:
    own_words = f"; given by you and kept: {' '.join(kept)}" if kept else ""
    logging.info("--recipe=%s sets: %s%s.", name, " ".join(words), own_words)
  return values


def _task_of(values: Mapping[str, Any]) -> str | None:
  """The task that a script is given: see `Recipe.tasks`."""
  if "task_name" in values:
    return (values["task_name"] or "").lower().replace("-", "").replace("_", "")
  if "label_scheme" in values:
    return "tags" if values["label_scheme"] == "plain" else "ner"
  if "version_2_with_negative" in values:
    return f"squad{2 if values['version_2_with_negative'] else 1}"
  return None


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
    scripts = {FINE_TUNING: kinds.scripts_in_words(), PRE_TRAINING: "run_pretraining.py"}
    raise UsageError(
      f"--recipe={name} is for {' and '.join(stages)} ({', '.join(map(scripts.get, stages))}). "
      f"Recipes for {stage}: {', '.join(names(stage))}."
    )


def check_family(values: Mapping[str, Any], config: BertConfig) -> None:
  """Refuses a recipe for models of another family.

  Args:
    values: flag -> value, of the script.
    config: of the model.

  Raises:
    UsageError: names the recipes for this family.
  """
  recipe = RECIPES[values.get("recipe") or DEFAULT]
  family = config.family.name
  if not recipe.suits(family):
    stage = _stage(values)
    fitting = [name for name in names(stage) if RECIPES[name].suits(family)]
    raise UsageError(
      f"--recipe={values['recipe']} is for models of the family {' and '.join(recipe.families)}, "
      f"this one is of {family}. Recipes for it: {', '.join(fitting)}."
    )
