"""The families but BERT in folders of transformers: names, there and back, and equal outputs.

Alone: python -m pytest tests/checkpoints/transformers_families_test.py
With transformers itself (some minutes):
  BERT_PEER_PYTHON=/path/to/python \\
    python -m pytest -m slow tests/checkpoints/transformers_families_test.py
"""

import json

import numpy as np
import pytest
import tensorflow as tf

from bert.checkpoints import finding, loading, reading, saving, transformers_heads
from bert.checkpoints.transformers_heads import HEADS as ENDINGS
from bert.model.variables import VariableStore, use_store
from bert.modeling import BertConfig
from tests.kit.conversions import run_well
from tests.kit.head_outputs import outputs_of
from tests.kit.peer_runs import largest_difference, run_peer, save_inputs

SIZES = {
  **dict(vocab_size=23, hidden_size=16, num_hidden_layers=2, num_attention_heads=2),
  **dict(intermediate_size=24, max_position_embeddings=12, type_vocab_size=2, embedding_size=8),
}
CONFIGS = {
  "electra": {**SIZES, "model_type": "electra", "generator_hidden_size": 0.5},
  "albert": {**SIZES, "num_hidden_groups": 2, "inner_group_num": 2},
  "roberta": {
    **{key: value for key, value in SIZES.items() if key != "embedding_size"},
    **dict(model_type="roberta", type_vocab_size=1, layer_norm_eps=1e-3),
  },
  "distilbert": {
    **{key: value for key, value in SIZES.items() if key != "embedding_size"},
    **dict(model_type="distilbert", type_vocab_size=0),
  },
}
HEADS = {
  "electra": ("none", "pretraining", "masked_words", "sentences", "ner", "squad", "swag"),
  "albert": ("none", "pretraining", "masked_words", "sentences", "ner", "squad", "swag"),
  **dict.fromkeys(
    ("roberta", "distilbert"), ("none", "masked_words", "sentences", "ner", "squad", "swag")
  ),
}
OF_HEADS = {("electra", head): {"transformers_heads": True} for head in ("sentences", "swag")}
ALL = [(family, head) for family, its_heads in HEADS.items() for head in its_heads]


def computed(folder, head, inputs, config=None, **scopes):
  name = "config.json" if (folder / "config.json").exists() else "bert_config.json"
  config = config or BertConfig.from_json_file(folder / name)
  inputs = [tf.constant(array, tf.int32) for array in inputs]
  with use_store(VariableStore()) as store:
    outputs_of(config, head, *inputs, **scopes)
    report = loading.init_from_checkpoint(finding.find_checkpoint(folder), store.variables)
    assert not report.mismatched
    assert {name for name in report.missing if "/pooler/" not in name} == set()
    return {n: v.numpy() for n, v in outputs_of(config, head, *inputs, **scopes).items()}


def save_model(folder, family, head):
  """A random checkpoint as this project writes it; ELECTRA's in pre-training with both models."""
  content = {**CONFIGS[family], **OF_HEADS.get((family, head), {})}
  config = BertConfig.from_dict(content)
  ids = tf.constant([[1, 0], [1, 1]])
  with use_store(VariableStore()) as store:
    if family == "electra" and head in ("pretraining", "masked_words"):
      generator = {"scope": "generator", "embedding_scope": "electra"}
      outputs_of(config.generator_config(), "masked_words", ids, ids, ids, **generator)
      head = "pretraining"
    outputs_of(config, head, ids, ids, ids)
  rng = np.random.default_rng(5)
  tensors = {
    name: rng.normal(1.0 if name.endswith("gamma") else 0.0, 0.3, variable.shape).astype("float32")
    for name, variable in store.variables.items()
  }
  facts = {"task_name": "ner", "labels": ["O", "B", "I"]} if head == "ner" else {}
  state = {"fingerprint": facts} if facts else {}
  saving.save(folder, 5, {**tensors, "global_step": np.int64(5)}, state)
  (folder / "bert_config.json").write_text(json.dumps(content))
  words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", *(f"w{i}" for i in range(18))]
  (folder / "vocab.txt").write_text("\n".join(words) + "\n")
  return tensors


def convert_to_transformers(source, target, head):
  values = {"init_checkpoint": source, "output_dir": target, "head": head}
  run_well("to_transformers", **values)


@pytest.mark.parametrize(("family", "head"), ALL)
def test_there_and_back_again(tmp_path, family, head):
  (tmp_path / "model").mkdir()
  tensors = save_model(tmp_path / "model", family, head)
  convert_to_transformers(tmp_path / "model", tmp_path / "there", head)
  config = json.loads((tmp_path / "there/config.json").read_text())
  assert config["architectures"] == [transformers_heads.class_of(ENDINGS[head], family)]
  assert config["model_type"] == family
  values = {"init_checkpoint": tmp_path / "there", "output_dir": tmp_path / "back"}
  run_well("from_transformers", **values)
  prefix = finding.find_checkpoint(tmp_path / "back")
  back = reading.read_tensors(prefix, reading.names_and_shapes(prefix))
  assert len(back) > 20
  for name, value in back.items():
    ours = name.replace("electra/", "generator/", 1)
    if head != "masked_words" or ours not in tensors:
      ours = name
    np.testing.assert_array_equal(value, tensors[ours], err_msg=name)


@pytest.mark.parametrize(
  ("head", "variables"),
  [
    ("sentences", ["task_specific/mrpc/dense/kernel", "task_specific/mrpc/dense/bias"]),
    ("squad", ["task_specific/squad/start/kernel"]),
    ("swag", ["output_weights"]),
  ],
)
def test_heads_that_transformers_computes_otherwise_are_refused(head, variables):
  variables = ["electra/embeddings/word_embeddings", *variables]
  assert transformers_heads.guess_head(variables, {}).name == ENDINGS[head]
  with pytest.raises(ValueError, match="--head=none"):
    transformers_heads.class_of(ENDINGS[head], "electra", variables)


# ---------------------------------------------------------------------------------------------
# transformers itself.


@pytest.mark.slow
def test_models_that_transformers_saved(tmp_path):
  inputs = save_inputs(tmp_path)
  run_peer("make_families", tmp_path)
  folders = sorted(path.parent for path in tmp_path.glob("*/config.json"))
  assert len(folders) == len(ALL)
  for folder in folders:
    found = transformers_heads.head_of(folder.name)
    [head] = [word for word, each in ENDINGS.items() if each == found]
    difference = largest_difference(folder, computed(folder, head, inputs))
    print(f"{folder.name}: {difference:.1e}")
    assert difference < 1e-5, folder.name


@pytest.mark.slow
def test_models_that_we_saved(tmp_path):
  inputs = save_inputs(tmp_path)
  for family, head in ALL:
    source = tmp_path / "sources" / f"{family}_{head}"
    source.mkdir(parents=True)
    save_model(source, family, head)
    convert_to_transformers(source, tmp_path / f"{family}_{head}", head)
  run_peer("compute", tmp_path)
  for family, head in ALL:
    source, options = tmp_path / "sources" / f"{family}_{head}", {}
    if (family, head) == ("electra", "masked_words"):
      config = BertConfig.from_dict(CONFIGS[family]).generator_config()
      options = {"config": config, "scope": "generator", "embedding_scope": "electra"}
    ours = computed(source, head, inputs, **options)
    difference = largest_difference(tmp_path / f"{family}_{head}", ours)
    print(f"{family} {head}: {difference:.1e}")
    assert difference < 1e-5, (family, head)
