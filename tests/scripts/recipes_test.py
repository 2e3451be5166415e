"""Tests of bert/scripts/recipes.py: `--recipe`, a list of flags under one name.

Alone: python -m pytest tests/scripts/recipes_test.py (seconds)

That `--reinit_layers` draws anew is in tests/run_classifier/recipes_test.py.
"""

import importlib
import json

import pytest
from absl import flags

from bert import doctor, run_classifier, run_pretraining, run_squad
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
    with flag_groups.defined_flags(script.define_flags):
      known = {flag.name: flag for flag in flag_groups.script_flags()}
    for name in recipes.names(stage):
      words = recipes.flags_of(name, known, plain.values)
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
  monkeypatch.delitem(recipes.RECIPES, "albert")
  monkeypatch.delitem(recipes.RECIPES, "roberta")


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
  with pytest.raises(UsageError, match=r"electra\. .*: 2018, electra\."):
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


# ---------------------------------------------------------------------------------------------
# Recipes of other families: values of a task, and of a model's size.


@pytest.mark.parametrize(
  ("task", "expected"),
  [
    (
      "MRPC",
      {"learning_rate": 2e-5, "train_batch_size": 32, "train_step": 800, "warmup_step": 200},
    ),
    ("STS-B", {"learning_rate": 2e-5, "train_batch_size": 16, "train_step": 3598}),
    ("sst_2", {"learning_rate": 1e-5, "train_step": 20935, "max_seq_length": 512}),
    ("csv", {"learning_rate": 5e-5, "train_step": None, "max_seq_length": 128}),
  ],
)
def test_alberts_values_of_a_task(task, expected):
  settings = settings_of(run_classifier, "--recipe=albert", f"--task_name={task}")
  assert {name: settings.values[name] for name in expected} == expected
  planned = settings.planned(10**6)
  steps = expected["train_step"] or 93750
  assert (planned.num_train_steps, planned.num_warmup_steps) == (
    steps,
    expected.get("warmup_step") or settings.warmup_step or steps // 10,
  )


def test_albert_is_known_by_its_keys():
  """Its released configurations have no `model_type`."""
  config = BertConfig.from_dict({"vocab_size": 9, "num_hidden_groups": 1})
  recipes.check_family({"recipe": "albert"}, config)
  with pytest.raises(UsageError, match=r"albert\. .*: 2018, albert\."):
    recipes.check_family({"recipe": "electra", "num_train_epochs": 3.0}, config)


def test_who_gives_epochs_does_not_want_alberts_steps(caplog):
  with caplog.at_level("INFO", logger="absl"):
    settings = settings_of(
      run_classifier, "--recipe=albert", "--task_name=MRPC", "--num_train_epochs=2"
    )
  assert settings.train_step is None
  assert settings.warmup_step == 200
  assert "kept: --num_train_epochs=2.0." in caplog.text
  settings = settings_of(run_squad, "--recipe=albert", "--train_step=7")
  run_settings.check_training(settings)
  assert settings.planned(100).num_train_steps == 7


def test_two_flags_that_say_the_same():
  settings = settings_of(run_classifier, "--train_step=7", "--num_train_epochs=2")
  with pytest.raises(UsageError, match=r"^--train_step and --num_train_epochs "):
    run_settings.check_training(settings)


@pytest.mark.parametrize(
  ("script", "words", "expected"),
  [
    (run_classifier, ["--task_name=RTE"], {"num_train_epochs": 10.0, "double_unordered": True}),
    (run_classifier, ["--task_name=CoLA"], {"num_train_epochs": 3.0, "lr_schedule": "product"}),
    (run_squad, [], {"max_seq_length": 512, "num_train_epochs": 2.0, "answer_head": "electra"}),
    (run_squad, ["--version_2_with_negative"], {"null_score_diff_threshold": -2.75}),
  ],
)
def test_electras_values_of_a_task(script, words, expected):
  settings = settings_of(script, "--recipe=electra", *words)
  assert {name: settings.values[name] for name in expected} == expected
  options = settings.optimizer_options
  assert (options["layerwise_lr_decay"], options["layerwise_lr_top_power"]) == (0.8, 2)
  assert options["loss_factor"] == 32.0


@pytest.mark.parametrize(
  ("width", "rate", "decay"), [(256, 3e-4, 0.8), (768, 1e-4, 0.8), (1024, 5e-5, 0.9)]
)
def test_electras_values_of_a_size(tmp_path, width, rate, decay):
  config = tmp_path / "config.json"
  config.write_text(
    json.dumps(
      {"model_type": "electra", "vocab_size": 9, "hidden_size": width, "num_attention_heads": 4}
    )
  )
  with flag_groups.defined_flags(run_classifier.define_flags):
    command_line.parse(["script.py", "--recipe=electra", f"--bert_config_file={config}"])
    settings = run_settings.from_flags()
    values = recipes.values_for_model(settings.values)
  found = {**settings.values, **values}
  assert (found["learning_rate"], found["layerwise_lr_decay"]) == (rate, decay)


def test_a_rate_of_ones_own_for_electra(tmp_path):
  config = tmp_path / "config.json"
  config.write_text('{"model_type": "electra", "vocab_size": 9, "hidden_size": 768}')
  words = ["--recipe=electra", f"--bert_config_file={config}", "--learning_rate=7e-5"]
  with flag_groups.defined_flags(run_classifier.define_flags):
    command_line.parse(["script.py", *words])
    assert recipes.values_for_model(run_settings.from_flags().values) == {}


def test_flags_are_not_changed():
  with flag_groups.defined_flags(run_classifier.define_flags):
    command_line.parse(["script.py", "--recipe=reinit"])
    run_settings.from_flags()
    assert flags.FLAGS.reinit_layers == 0


def test_robertas_values_are_those_of_the_paper_s_table_10():
  mrpc = settings_of(run_classifier, "--recipe=roberta", "--task_name=MRPC")
  assert (mrpc.adam_beta_2, mrpc.weight_decay, mrpc.warmup_proportion) == (0.98, 0.1, 0.06)
  assert (mrpc.learning_rate, mrpc.train_batch_size, mrpc.num_train_epochs) == (1e-5, 16, 10.0)
  squad = settings_of(run_squad, "--recipe=roberta")
  assert (squad.adam_beta_2, squad.weight_decay, squad.learning_rate) == (0.98, 0.01, 1.5e-5)
