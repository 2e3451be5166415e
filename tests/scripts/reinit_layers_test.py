"""Tests of bert/scripts/reinit_layers.py: which layers start anew, and what does not fit.

Alone: python -m pytest tests/scripts/reinit_layers_test.py

Whole runs are in tests/run_classifier/recipes_test.py.
"""

import doctest

import pytest

from bert import run_classifier
from bert.model import variable_shapes
from bert.model.configuration import BertConfig
from bert.scripts import command_line, flag_groups, reinit_layers, run_settings
from bert.scripts.command_line import UsageError

CONFIG = BertConfig(vocab_size=10, num_hidden_layers=12, hidden_size=12)


def check(**values):
  with flag_groups.defined_flags(run_classifier.define_flags):
    words = [f"--{name}={value}" for name, value in values.items()]
    command_line.parse(["run_classifier.py", *words])
    reinit_layers.check(run_settings.from_flags().values, CONFIG)


def test_worked_examples():
  assert doctest.testmod(reinit_layers).failed == 0


@pytest.mark.parametrize(("count", "layers"), [(0, 0), (1, 1), (3, 3), (12, 12)])
def test_names_of_whole_layers_from_the_top(count, layers):
  names = variable_shapes.encoder_shapes(CONFIG)
  drawn = [name for name in names if name.startswith(reinit_layers.prefixes(CONFIG, count))]
  of_layer = [name for name in names if "/layer_11/" in name]
  assert len(drawn) == layers * len(of_layer) + 2 * bool(count), "and kernel and bias of the pooler"
  assert all(f"/layer_{11 - i}/" in " ".join(drawn) for i in range(layers))
  assert not any("/embeddings/" in name for name in drawn)
  assert count == 12 or not any("/layer_0/" in name for name in drawn)


def test_more_layers_than_there_are():
  check(reinit_layers=12)
  with pytest.raises(UsageError, match=r"^--reinit_layers=13: the model has 12 layers\.$"):
    check(reinit_layers=13)


@pytest.mark.parametrize("freeze", ["encoder", "layers:11", "layer_10/", "^bert/pooler"])
def test_what_is_drawn_anew_must_train(freeze):
  with pytest.raises(UsageError, match="--reinit_layers=2"):
    check(reinit_layers=2, freeze=freeze)


@pytest.mark.parametrize("freeze", ["embeddings", "layers:10", "embeddings,layers:3"])
def test_what_lies_below_may_be_frozen(freeze):
  check(reinit_layers=2, freeze=freeze)
  check(freeze="encoder")


def test_what_has_no_effect_is_said(caplog):
  def said(**values):
    caplog.clear()
    with caplog.at_level("INFO", logger="absl"):
      check(**values)
    return caplog.messages

  effect = "Flag --reinit_layers has no effect: "
  assert said(reinit_layers=1) == [effect + "it is for --do_train."]
  assert said(reinit_layers=1, do_train=True) == [
    effect + "without --init_checkpoint all layers start from random values."
  ]
  assert said(reinit_layers=1, do_train=True, init_checkpoint="x") == []
  assert said(reinit_layers=0) == []
