"""What all tests share: where recorded outputs and real data lie, and a quiet TensorFlow."""

import collections
import functools
import gc
import json
import os
import pathlib

import hypothesis
import pytest

from tests.kit.paths import SAMPLE_VOCAB, SHARED

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")
if "PYTEST_XDIST_WORKER" in os.environ:
  # One thread for each worker: small models gain nothing from more, and workers share two cores.
  for name in ("TF_NUM_INTRAOP_THREADS", "TF_NUM_INTEROP_THREADS", "OMP_NUM_THREADS"):
    os.environ.setdefault(name, "1")

# No test depends on the machine's speed.
hypothesis.settings.register_profile("any machine", deadline=None)
hypothesis.settings.load_profile("any machine")

# A task of one's own: importing it registers it, which only its test may do.
collect_ignore = ["kit/stars.py"]


def _shared(folder: str) -> pathlib.Path:
  path = SHARED / folder
  if path.is_dir():
    return path
  message = f"{folder} of the original is not beside this checkout ({path})"
  if os.environ.get("BERT_REQUIRE_GOLDEN") == "1":
    pytest.fail(message)
  pytest.skip(message)


@pytest.fixture(scope="session")
def golden_dir() -> pathlib.Path:
  """Recorded outputs of the original; skips without them, fails if BERT_REQUIRE_GOLDEN=1."""
  return _shared("golden")


@pytest.fixture(scope="session")
def data_dir() -> pathlib.Path:
  """Real data and weights; skips without them, fails if BERT_REQUIRE_GOLDEN=1."""
  return _shared("data")


@pytest.fixture(scope="session")
def forked_python(tmp_path_factory):
  """A `python` whose commands are forks of one that has imported TensorFlow."""
  from tests.kit import forked_python, once, page_runs

  shared = once.session_folder(tmp_path_factory) / "python"
  with forked_python.started(shared, page_runs.environment()) as python:
    yield python


@pytest.fixture
def fake_estimator(monkeypatch) -> None:
  """Scripts do not train in this test, see `tests/kit/fake_estimator.py`."""
  from bert.training import estimator
  from tests.kit.fake_estimator import FakeEstimator

  monkeypatch.setattr(estimator, "Estimator", FakeEstimator)


@pytest.fixture(scope="module")
def one_tokenizer():
  """One graph of the tokenizer per vocabulary in a module: its tables take seconds to build."""
  from bert.exporting import hub_preprocess

  with pytest.MonkeyPatch.context() as patch:
    patch.setattr(hub_preprocess, "Preprocessor", functools.cache(hub_preprocess.Preprocessor))
    yield


@pytest.fixture
def warnings(monkeypatch) -> list[str]:
  """Texts of the warnings logged so far."""
  from absl import logging

  texts: list[str] = []
  monkeypatch.setattr(logging, "warning", lambda text, *args: texts.append(text % args))
  return texts


# ---------------------------------------------------------------------------------------------
# Vocabularies and tiny models. Tests only read them.


@pytest.fixture(scope="session")
def vocab_file(tmp_path_factory) -> pathlib.Path:
  """The vocabulary of `tokenizer_definition.PIECES`."""
  from tests.kit.tokenizer_definition import PIECES, write_vocab

  return write_vocab(tmp_path_factory.mktemp("vocab"), "\n".join(PIECES) + "\n")


@pytest.fixture(scope="session")
def tokenizer():
  """The tokenizer of the samples."""
  from bert.tokenization import FullTokenizer

  return FullTokenizer(SAMPLE_VOCAB)


@pytest.fixture(scope="session")
def trained(tmp_path_factory) -> str:
  """A folder with a checkpoint of a classifier, its config and its vocabulary."""
  from tests.kit import exports

  return exports.classifier(tmp_path_factory).trained


@pytest.fixture(scope="session")
def exported(tmp_path_factory) -> str:
  """A folder with the classifier's SavedModel."""
  from tests.kit import exports

  return exports.classifier(tmp_path_factory).exported


@pytest.fixture(scope="session")
def encode(trained):
  """The classifier's body as a predictor of vectors."""
  from bert.predicting.predictor import Predictor

  return Predictor.load(trained, task="vectors", max_seq_length=16)


@pytest.fixture(scope="session")
def answer(exported):
  """The classifier's SavedModel as a predictor of labels."""
  from bert.predicting.predictor import Predictor

  return Predictor.load(exported, batch_size=4)


@pytest.fixture(scope="session")
def pretrained(tmp_path_factory) -> str:
  """A folder with a checkpoint of pre-training."""
  from tests.kit import masked_lm

  return masked_lm.model(tmp_path_factory).trained


@pytest.fixture(scope="session")
def pretrained_encoder(tmp_path_factory) -> str:
  """Its exported encoder, with .mlm."""
  from tests.kit import masked_lm

  return f"{masked_lm.model(tmp_path_factory).exported}/encoder"


@pytest.fixture(scope="session")
def fill(pretrained):
  """It as a predictor of masked words."""
  from bert.predicting.predictor import Predictor

  return Predictor.load(pretrained, task="masked_words", top_k=3, max_seq_length=16)


@pytest.fixture(scope="session")
def released_vocab_file(data_dir) -> pathlib.Path:
  """The vocabulary of the released uncased models, 30,522 tokens."""
  return data_dir / "vocab" / "uncased_vocab.txt"


def pytest_make_parametrize_id(config, val, argname):
  """Bytes make no name: an archive holds the time it was made, and workers must agree on names."""
  del config
  return argname if isinstance(val, bytes) else None


def pytest_collection_finish():
  """What was imported and collected stays: the garbage collector need not look at it again."""
  gc.collect()
  gc.freeze()
  gc.set_threshold(50_000, 10, 10)


# ---------------------------------------------------------------------------------------------
# Order of the files: the longest first, so that the workers end together.

_DURATIONS = pathlib.Path(__file__).with_name("durations.json")  # file -> seconds, from 1 s on
_measured: collections.Counter[str] = collections.Counter()


def pytest_collection_modifyitems(items):
  """Sorts the files by their recorded durations."""
  recorded = json.loads(_DURATIONS.read_text()) if _DURATIONS.exists() else {}
  items.sort(key=lambda item: -recorded.get(_file_of(item.nodeid), 0))


def pytest_runtest_logreport(report):
  """Adds the time of set-up, call and tear-down to that of the file."""
  _measured[_file_of(report.nodeid)] += report.duration


def pytest_sessionfinish(session):
  """With BERT_RECORD_DURATIONS=1 writes what was measured (`make durations`)."""
  if os.environ.get("BERT_RECORD_DURATIONS") == "1" and not hasattr(session.config, "workerinput"):
    seconds = {file: round(value) for file, value in sorted(_measured.items()) if value >= 1}
    _DURATIONS.write_text(json.dumps(seconds, indent=0) + "\n")


def _file_of(nodeid: str) -> str:
  return nodeid.partition("::")[0]
