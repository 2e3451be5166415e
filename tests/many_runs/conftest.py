"""What the tests of many runs share: tiny data, tiny models, and runs that do not train."""

import pytest

from bert import run_classifier, run_ner, run_squad, run_swag
from tests.kit import many_runs, tiny_bert, tiny_choices, tiny_entities, tiny_questions
from tests.kit.many_runs import ManyRuns


@pytest.fixture
def classifier(fake_estimator, monkeypatch) -> ManyRuns:
  return ManyRuns(run_classifier, monkeypatch)


@pytest.fixture
def processes(monkeypatch) -> ManyRuns:
  """Runs of run_classifier.py that leave an accuracy of 0.7, and do nothing."""
  return ManyRuns(run_classifier, monkeypatch, results=lambda flags: 0.7)


@pytest.fixture
def mrpc(tmp_path) -> dict:
  """The flags of runs on MRPC, without the number of runs."""
  return many_runs.flags_on_mrpc(tmp_path)


def _flags(tmp_path, data, **flags) -> dict:
  """The flags of a run on `tmp_path/data`; `data` is the module of the kit that wrote it."""
  return {
    **tiny_bert.write(tmp_path / "model", data.VOCAB, **data.SIZES),
    "data_dir": tmp_path / "data",
    "output_dir": tmp_path / "out",
    **dict.fromkeys(("do_train", "do_eval", "do_predict"), True),
    **flags,
  }


@pytest.fixture
def ner(tmp_path) -> dict:
  for number, name in enumerate(("train.conll", "valid.txt", "test.conll")):
    tiny_entities.write_conll(tmp_path / "data" / name, tiny_entities.sentences(6, number))
  return _flags(tmp_path, tiny_entities, max_seq_length=16)


@pytest.fixture
def swag(tmp_path) -> dict:
  for number, name in enumerate(("train.csv", "val.csv", "test.csv")):
    tiny_choices.write_csv(tmp_path / "data" / name, tiny_choices.questions(8, number))
  return _flags(tmp_path, tiny_choices, max_seq_length=24)


@pytest.fixture
def squad(tmp_path) -> dict:
  """Questions of version 2.0."""
  data = tmp_path / "data"
  for number, name in enumerate(("train.json", "dev.json")):
    contexts = tiny_questions.contexts(6, number, impossible=True)
    tiny_questions.write_squad(data / name, contexts, version_2=True)
  return {
    **tiny_bert.write(tmp_path / "model", tiny_questions.VOCAB),
    "train_file": data / "train.json",
    "predict_file": data / "dev.json",
    "output_dir": tmp_path / "out",
    "version_2_with_negative": True,
    **{"max_seq_length": 24, "doc_stride": 8, "max_query_length": 4},
    **dict.fromkeys(("do_train", "do_eval", "do_predict"), True),
  }


@pytest.fixture
def runs_of(fake_estimator, monkeypatch):
  """Many runs of a script, by its name."""
  scripts = {"run_ner": run_ner, "run_swag": run_swag, "run_squad": run_squad}
  return lambda name: ManyRuns(scripts[name], monkeypatch)
