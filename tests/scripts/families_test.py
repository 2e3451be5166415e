"""run_ner.py and run_swag.py on tiny models of ELECTRA and ALBERT.

Alone: python -m pytest -m "" tests/scripts/families_test.py
"""

import pytest

from bert import run_ner, run_swag
from bert.checkpoints import finding
from bert.predicting.predictor import Predictor
from bert.tasks import conll_files, label_schemes
from tests.kit import tiny_bert, tiny_choices, tiny_entities
from tests.kit.script_runs import Script, results_in, tensors

FAMILIES = {
  "electra": {"model_type": "electra", "embedding_size": 8},
  "albert": {"model_type": "albert", "embedding_size": 8},
}
SIZES = {"max_seq_length": 16, "train_batch_size": 8, "learning_rate": 0.01}


@pytest.mark.parametrize(
  "family",
  [pytest.param("electra", marks=pytest.mark.ci), pytest.param("albert", marks=pytest.mark.slow)],
)
def test_tags(family, tmp_path):
  """A run learns, and its folder gives the labels of the script."""
  flags = tiny_bert.write(tmp_path, tiny_entities.VOCAB, **tiny_entities.SIZES, **FAMILIES[family])
  for name, count, seed in (("train", 64, 1), ("valid", 20, 2), ("test", 12, 3)):
    tiny_entities.write_conll(tmp_path / f"{name}.conll", tiny_entities.sentences(count, seed))
  scheme = "bioes" if family == "electra" else "bio"
  flags |= {**SIZES, "data_dir": tmp_path, "output_dir": tmp_path / "out", "model_scheme": scheme}
  Script(run_ner).run_well(
    **flags, num_train_epochs=12.0, do_train=True, do_eval=True, do_predict=True
  )
  assert results_in(tmp_path / "out" / "eval_results.txt")["eval_accuracy"] > 0.8
  read = conll_files.read_conll(tmp_path / "out" / "predictions.conll")
  texts = [" ".join(each.words) for each in read.examples]
  answers = Predictor.load(tmp_path / "out")(texts)
  for answer, example in zip(answers, read.examples, strict=True):
    tags = answer["tags"]
    entities = label_schemes.entities_of(tags, scheme)  # the script writes what they stand for
    assert label_schemes.labels_of(entities, len(tags), "bio") == example.labels
  names = tensors(finding.latest(str(tmp_path / "out")))
  head = "task_specific/ner/dense/kernel" if family == "electra" else "output_weights"
  assert head in names


@pytest.mark.parametrize(
  "family",
  [pytest.param("albert", marks=pytest.mark.ci), pytest.param("electra", marks=pytest.mark.slow)],
)
def test_choices(family, tmp_path):
  flags = tiny_bert.write(tmp_path, tiny_choices.VOCAB, **tiny_choices.SIZES, **FAMILIES[family])
  for name, count, seed in (("train", 32, 1), ("val", 8, 2)):
    tiny_choices.write_csv(tmp_path / f"{name}.csv", tiny_choices.questions(count, seed))
  flags |= {**SIZES, "data_dir": tmp_path, "output_dir": tmp_path / "out"}
  Script(run_swag).run_well(**flags, num_train_epochs=2.0, do_train=True, do_eval=True)
  assert results_in(tmp_path / "out" / "eval_results.txt")["eval_accuracy"] >= 0.0
