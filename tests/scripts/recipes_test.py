"""Tests of bert/scripts/recipes.py: `--recipe`, a list of flags under one name.

Alone: python -m pytest tests/scripts/recipes_test.py (seconds)

That `--reinit_layers` draws anew is in tests/run_classifier/recipes_test.py.
"""

import importlib

import pytest
from absl import flags

from bert import doctor, run_classifier, run_pretraining
from bert.model.configuration import BertConfig
from bert.scripts import command_line, flag_groups, recipes, run_settings
from bert.scripts.command_line import UsageError
from bert.scripts.recipes import FINE_TUNING, PRE_TRAINING, Recipe

SCRIPTS = {
  FINE_TUNING: ("run_classifier", "run_squad", "run_ner", "run_swag", "run_similarity"),
  PRE_TRAINING: ("run_pretraining",),
}


def settings_of(script, *words):
  with flag_groups.defined_flags(script.define_flags):
    command_line.parse(["script.py", *words])
    return run_settings.from_flags()


@pytest.mark.parametrize("stage", SCRIPTS)
def test_a_recipe_is_the_same_as_its_flags_in_every_script(stage):
  for script in map(importlib.import_module, (f"bert.{name}" for name in SCRIPTS[stage])):
    plain = settings_of(script)
    for name in recipes.names(stage):
      words = recipes.RECIPES[name].flags
      by_name, by_hand = settings_of(script, f"--recipe={name}"), settings_of(script, *words)
      assert by_name.replace(recipe=plain.recipe).values == by_hand.values
      assert by_name.given == by_hand.given | {"recipe"}
      changed = {flag for flag in plain.values if plain.values[flag] != by_hand.values[flag]}
      assert len(changed) >= len(words) - 1, "flags that repeat a default need a reason"


def test_what_the_user_gives_wins_and_is_said(caplog):
  with caplog.at_level("INFO", logger="absl"):
    settings = settings_of(run_classifier, "--recipe=stable", "--min_train_steps=7")
  assert settings.min_train_steps == 7
  assert settings.adam_bias_correction
  [line] = caplog.messages
  assert line.startswith("--recipe=stable sets: --adam_bias_correction ")
  assert line.endswith("; given by you and kept: --min_train_steps=7.")


def test_2018_is_the_default_sets_nothing_and_says_nothing(caplog):
  with caplog.at_level("INFO", logger="absl"):
    plain = settings_of(run_classifier)
    named = settings_of(run_classifier, "--recipe=2018")
  assert plain.recipe == "2018"
  assert plain.values == named.values
  assert not caplog.messages
  with flag_groups.defined_flags(run_classifier.define_flags) as flag_values:
    defaults = {flag.name: flag.default for flag in flag_groups.script_flags(flag_values)}
  assert {name: plain.values[name] for name in defaults if name != "freeze"} == {
    name: value for name, value in defaults.items() if name != "freeze"
  }


def test_a_demonstration_gives_way_to_a_recipe():
  with flag_groups.defined_flags(run_classifier.define_flags):
    command_line.parse(["script.py", "--recipe=stable"])
    settings = run_settings.from_flags({"min_train_steps": 1, "learning_rate": 1.0})
  assert (settings.min_train_steps, settings.learning_rate) == (600, 1.0)


@pytest.fixture
def more_recipes(monkeypatch):
  monkeypatch.setitem(
    recipes.RECIPES,
    "quick",
    Recipe(("--objective=mlm", "--num_train_steps=5"), (PRE_TRAINING,), "few steps"),
  )
  monkeypatch.setitem(
    recipes.RECIPES,
    "electra",
    Recipe(("--layerwise_lr_decay=0.8",), (FINE_TUNING,), "of ELECTRA", families=("electra",)),
  )


def test_switches_are_turned_off_and_numbers_are_numbers(more_recipes):
  settings = settings_of(run_pretraining, "--recipe=quick")
  assert settings.objective == "mlm"
  assert settings.num_train_steps == 5
  assert {"objective", "num_train_steps", "recipe"} == settings.given


@pytest.mark.parametrize(
  ("script", "recipe", "message"),
  [
    (
      run_classifier,
      "stabel",
      r'^Flag --recipe takes one of 2018, stable, .*, not "stabel"\. Did you mean stable\?$',
    ),
    (
      run_classifier,
      "quick",
      r"^--recipe=quick is for pre-training \(run_pretraining\.py\)\. Recipes for fine-tuning: "
      r"2018, stable, .*electra\.$",
    ),
    (
      run_pretraining,
      "electra",
      r"^--recipe=electra is for fine-tuning \(run_classifier\.py, [^)]*\)\. Recipes for "
      r"pre-training: 2018, .*quick\.$",
    ),
  ],
)
def test_a_recipe_that_is_not_for_this_script_is_one_line(more_recipes, script, recipe, message):
  with pytest.raises(UsageError, match=message):
    settings_of(script, f"--recipe={recipe}")


def test_a_recipe_for_another_family_is_one_line(more_recipes):
  config = BertConfig(vocab_size=10)
  values = settings_of(run_classifier, "--recipe=electra").values
  with pytest.raises(
    UsageError,
    match=r"^--recipe=electra is for models of the family electra, this one is of bert\. "
    r"Recipes for it: 2018, stable, [^\n]*\.$",
  ):
    recipes.check_family(values, config)
  config.model_type = "electra"
  recipes.check_family(values, config)
  with pytest.raises(UsageError, match=r"this one is of electra\. Recipes for it: 2018, electra\."):
    recipes.check_family({**values, "recipe": "stable"}, config)
  recipes.check_family({**values, "recipe": "2018"}, config)


def test_help_describes_the_recipes_of_the_script(more_recipes):
  helps = {}
  for script in (run_classifier, run_pretraining):
    with flag_groups.defined_flags(script.define_flags) as flag_values:
      helps[script] = flag_values["recipe"].help
  assert f"stable: {recipes.RECIPES['stable'].description};" in helps[run_classifier]
  assert "quick: " not in helps[run_classifier]
  assert "quick: few steps." in helps[run_pretraining]


def test_doctor_takes_the_command_line_of_a_run(more_recipes):
  settings = settings_of(
    doctor, "--recipe=stable", "--min_train_steps=600", "--reinit_layers=2", "--do_train"
  )
  assert settings.recipe == "stable"
  assert "adam_bias_correction" not in settings
  settings_of(doctor, "--recipe=quick")


def test_flags_are_not_changed():
  with flag_groups.defined_flags(run_classifier.define_flags):
    command_line.parse(["script.py", "--recipe=reinit"])
    run_settings.from_flags()
    assert flags.FLAGS.reinit_layers == 0
