"""What decides features is in the key under which runs share their records (`--features_dir`)."""

import typing

import pytest

from bert.fine_tuning import engine
from bert.scripts import run_outputs, run_settings
from tests.kit import every_script
from tests.kit.script_runs import values_in

pytestmark = pytest.mark.usefixtures("fake_estimator")

SCRIPTS = ("run_classifier", "run_ner", "run_squad", "run_swag")
# Where features are written, what is logged of them, and whether sizes of batches are in the key.
NO_CONTENT = {"output_dir", "features_dir", "features_folder", "shows_examples", "use_tpu"}


class NotedValues(dict):
  """The values of settings; notes which of them are read."""

  read: typing.ClassVar[set[str]] = set()

  def __getitem__(self, name):
    self.read.add(name)
    return super().__getitem__(name)

  def get(self, name, default=None):
    self.read.add(name)
    return super().get(name, default)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
  return every_script.write_files(tmp_path_factory.mktemp("files"))


@pytest.fixture
def train(files, tmp_path, monkeypatch):
  """Trains with a script; returns the run, its training examples, and settings of its features."""
  found, init = [], run_settings.RunSettings.__init__
  write_once, key_of = engine.FineTuning.write_once, engine.FineTuning.key_of

  def note(self, values, *others, **named):
    init(self, NotedValues(values), *others, **named)

  def write_and_keep(self, name, examples, write):
    result = write_once(self, name, examples, write)
    found.append((self, examples, NotedValues.read - NO_CONTENT))
    return result

  def key_without_notes(self, examples):
    before = set(NotedValues.read)
    key = key_of(self, examples)
    NotedValues.read = before
    return key

  def start_notes(step):
    def started(self):
      NotedValues.read = set()
      return step(self)

    return started

  monkeypatch.setattr(run_settings.RunSettings, "__init__", note)
  monkeypatch.setattr(engine.FineTuning, "write_once", write_and_keep)
  monkeypatch.setattr(engine.FineTuning, "key_of", key_without_notes)

  def run(name, **changed):
    for step in ("plan", "training_data"):
      patched = start_notes(getattr(engine.FineTuning, step))
      monkeypatch.setattr(engine.FineTuning, step, patched)
    only_training = {"do_eval": False, "do_predict": False, "features_dir": tmp_path / "features"}
    flags = every_script.flags(name, files, tmp_path, **only_training, **changed)
    every_script.script(name).run_well(**flags)
    return found[0]

  return run


@pytest.mark.parametrize("name", SCRIPTS)
def test_every_setting_that_is_read_for_features_is_in_their_key(train, name):
  run, examples, read = train(name)
  assert read
  assert read <= set(run.task.feature_settings)
  key = run.key_of(examples)
  settings = run.settings
  for flag in run.task.feature_settings:
    changed = {"int": 7, "NoneType": 7, "bool": True, "str": "other"}
    value = changed[type(settings.values[flag]).__name__]
    run.settings = settings.replace(**{flag: value})
    assert run.key_of(examples) != key, flag


def test_records_of_other_windows_are_not_shared(files, tmp_path):
  flags = every_script.flags("run_ner", files, tmp_path, features_dir=tmp_path / "features")
  script = every_script.script("run_ner")
  script.run_well(**flags)
  values_in(tmp_path / "features/train.tf_record")
  message = script.error_of(**{**flags, "output_dir": tmp_path / "other", "doc_stride": 1})
  assert "train.tf_record was made from other data or with other settings" in message


def test_keys_are_those_of_earlier_versions(train):
  """A run of many that was stopped before an update finds its records after it."""
  run, examples, _ = train("run_ner")
  sizes = ("vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads")
  sizes += ("intermediate_size", "hidden_act", "max_position_embeddings", "type_vocab_size")
  fingerprint = run.fingerprint()
  known = (*sizes, "vocabulary", "do_lower_case", "task_name", "labels")
  before = {"max_seq_length": 16, "doc_stride": None, "max_query_length": None}
  before["label_scheme"] = "bio"
  facts = {name: fingerprint[name] for name in known}
  assert run.key_of(examples) == run_outputs.key_of(facts, before, examples)
