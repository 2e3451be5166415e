"""Learning rates of layers, and what `--freeze` selects, for the names of every family."""

import json

import pytest

from bert.training.variable_groups import check_frozen, frozen_pattern, learning_rate_multipliers

LAYER_OF_ALBERT = "bert/encoder/transformer/group_{}/inner_group_0/LayerNorm/beta"
ALBERT = [
  "bert/embeddings/word_embeddings",
  "bert/encoder/embedding_hidden_mapping_in/kernel",
  LAYER_OF_ALBERT.format(0),
  LAYER_OF_ALBERT.format(1),
  "bert/pooler/dense/kernel",
  "start_logits/dense/kernel",
]
ELECTRA = [
  "electra/embeddings/word_embeddings",
  "electra/embeddings_project/kernel",
  "electra/encoder/layer_0/x",
  "electra/encoder/layer_1/x",
  "electra/encoder/layer_11/x",
  "task_specific/mrpc/dense/kernel",
]


def test_layer_rates_equal_electra(golden_dir):
  golden = json.loads((golden_dir / "electra" / "layer_rates.json").read_text(encoding="utf-8"))
  rates = golden["variables"]
  multipliers = learning_rate_multipliers(rates, golden["layer_decay"], top_power=2)
  assert len(rates) > 50
  for name, rate in rates.items():
    assert golden["learning_rate"] * multipliers[name] == pytest.approx(rate, rel=1e-12), name


@pytest.mark.parametrize(
  ("keys", "rate", "decay"),
  [("keys_of_12_layers", 1e-4, 0.8), ("keys_of_24_layers_large", 5e-5, 0.9)],
)
def test_layer_rates_of_large_models_equal_electra(golden_dir, keys, rate, decay):
  golden = json.loads((golden_dir / "electra" / "layer_rates.json").read_text(encoding="utf-8"))
  name_of = {key: f"electra{'' if key[0] == '/' else '/'}{key}x" for key in golden[keys]}
  name_of["task_specific/"] = "task_specific/mrpc/x"
  multipliers = learning_rate_multipliers(name_of.values(), decay, top_power=2)
  for key, expected in golden[keys].items():
    assert rate * multipliers[name_of[key]] == pytest.approx(expected, rel=1e-12), key


def test_rates_of_albert_decay_from_group_to_group():
  multipliers = learning_rate_multipliers(ALBERT, 0.5, head_multiplier=3.0)
  assert list(multipliers.values()) == [0.25, 0.25, 0.5, 1.0, 1.0, 3.0]


@pytest.mark.parametrize(
  ("names", "what", "selected"),
  [
    (ALBERT, "embeddings", 2),
    (ALBERT, "layers:1", 3),
    (ALBERT, "layers:2", 4),
    (ALBERT, "encoder", 5),
    (ELECTRA, "embeddings", 2),
    (ELECTRA, "layers:2", 4),
    (ELECTRA, "encoder", 5),
    (["generator/embeddings_project/bias"], "embeddings", 1),
    (["generator/encoder/layer_0/x"], "layers:1", 1),
  ],
)
def test_what_freezes_starts_at_the_input(names, what, selected):
  pattern = frozen_pattern(what)
  assert [bool(pattern.search(name)) for name in names] == [i < selected for i in range(len(names))]


def test_layers_that_the_model_does_not_have():
  message = "--freeze=layers:3: the model has 2 layers of weights of their own"
  with pytest.raises(ValueError, match=message):
    check_frozen(["layers:3"], ALBERT)
  with pytest.raises(ValueError, match="names such as electra/encoder/layer_0/x"):
    check_frozen(["bert/"], ELECTRA)
