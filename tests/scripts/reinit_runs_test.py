"""`--reinit_layers` in every other script of fine-tuning: which variables start anew.

Alone: python -m pytest -m ci tests/scripts/reinit_runs_test.py

run_classifier.py is in tests/run_classifier/recipes_test.py.
"""

import numpy as np
import pytest

from bert import run_ner, run_similarity, run_squad, run_swag
from bert.checkpoints import load_report
from tests.kit import tiny_bert, tiny_choices, tiny_entities, tiny_pairs, tiny_questions
from tests.kit.script_runs import Script, tensors

pytestmark = pytest.mark.ci


def ner(folder):
  tiny_entities.write_conll(folder / "train.conll", tiny_entities.sentences(16, 1))
  return run_ner, tiny_entities.VOCAB, {"data_dir": folder}


def swag(folder):
  tiny_choices.write_csv(folder / "train.csv", tiny_choices.questions(16, 1))
  return run_swag, tiny_choices.VOCAB, {"data_dir": folder, "dtype": "bfloat16"}


def similarity(folder):
  tiny_pairs.write(folder / "train.csv", tiny_pairs.pairs(16, 1))
  return run_similarity, tiny_pairs.VOCAB, {"data_dir": folder}


def squad(folder):
  tiny_questions.write_squad(folder / "train.json", tiny_questions.contexts(16, 1))
  flags = {"train_file": folder / "train.json", "max_query_length": 4, "doc_stride": 8}
  return run_squad, tiny_questions.VOCAB, flags


@pytest.mark.parametrize("prepare", [ner, swag, similarity, squad], ids=lambda f: f.__name__)
def test_the_top_layer_and_the_pooler_start_anew_and_nothing_else(prepare, tmp_path):
  module, vocabulary, flags = prepare(tmp_path)
  script = Script(module)
  model = tiny_bert.write(tmp_path / "model", vocabulary, num_hidden_layers=2)
  flags = {**model, **flags, "max_seq_length": 24, "train_batch_size": 8, "do_train": True}
  flags |= {"num_train_epochs": 0.5, "learning_rate": 0.01}
  script.run_well(**flags, output_dir=tmp_path / "source", seed=7)
  source = tmp_path / "source" / "model.ckpt-1"
  values = {**flags, "init_checkpoint": source, "recipe": "reinit", "min_train_steps": 2}
  done = script.run_well(**values, output_dir=tmp_path / "run")
  assert "drawn anew, as asked for (" in done.err
  assert "  Num steps = 2" in done.err

  before, start = tensors(source), tensors(tmp_path / "run" / "model.ckpt-0")
  assert tensors(tmp_path / "run" / "model.ckpt-2")["global_step"] == 2
  names = [name for name in start if not load_report.is_training_state(name)]
  changed = {name for name in names if not np.array_equal(before[name], start[name])}
  drawn = {name for name in names if name.startswith(("bert/encoder/layer_1/", "bert/pooler/"))}
  # What the source's one step has not trained is still as it was drawn, zeros and ones.
  untrained = {name for name in drawn if not start[name].any() or (start[name] == 1).all()}
  assert drawn - untrained <= changed <= drawn
  assert len(drawn - untrained) >= 6, "the matrices of the layer"
