"""Tests of bert/scripts/run_files.py: the files that make the folder of a run complete."""

import json

import pytest

from bert.checkpoints import finding, label_map
from bert.model.configuration import BertConfig
from bert.scripts import command_line, run_files
from bert.scripts.run_settings import FineTuningSettings
from bert.training import resumption

CONFIG = BertConfig(vocab_size=3, hidden_size=4, num_attention_heads=2)
FILES = {"bert_config.json", "vocab.txt", "label_map.json", "flags.json", "versions.json"}


def settings_of(tmp_path, **values):
  vocab_file = tmp_path / "words.txt"
  vocab_file.write_bytes(b"[PAD]\r\na\r\nb\r\n")
  defaults = {"do_train": True, "num_train_steps": 20, "learning_rate": 0.5, "init_folder": "x"}
  folder = tmp_path / "out"
  folder.mkdir(exist_ok=True)
  values = {"output_dir": str(folder), "vocab_file": str(vocab_file), **defaults, **values}
  return FineTuningSettings(**values)


def contents(tmp_path) -> dict[str, bytes]:
  paths = (tmp_path / "out").iterdir()
  return {path.name: path.read_bytes() for path in paths if not path.name.startswith("model")}


@pytest.fixture
def newest(monkeypatch):
  """`newest(step)` makes a folder look as if it had a checkpoint of that step."""

  def set_step(step):
    prefix = None if step is None else f"model.ckpt-{step}"
    monkeypatch.setattr(finding, "latest", lambda folder: prefix)
    monkeypatch.setattr(resumption, "step_of", lambda found: step)

  set_step(None)
  return set_step


def test_the_files_of_a_run(tmp_path, newest):
  run_files.write(settings_of(tmp_path), CONFIG, ["no", "yes"])
  found = contents(tmp_path)
  assert set(found) == FILES
  assert BertConfig.from_dict(json.loads(found["bert_config.json"])).to_dict() == CONFIG.to_dict()
  assert found["vocab.txt"] == b"[PAD]\r\na\r\nb\r\n", "byte for byte"
  assert json.loads(found["label_map.json"]) == {"no": 0, "yes": 1}
  flags = json.loads(found["flags.json"])
  assert flags["learning_rate"] == 0.5
  assert "init_folder" not in flags, "no flag has this name"
  versions = json.loads(found["versions.json"])
  assert {"bert-alive", "python", "tensorflow", "numpy"} <= set(versions)


def test_the_configuration_is_that_of_the_user_byte_for_byte(tmp_path, newest):
  own, theirs = tmp_path / "own.json", tmp_path / "config.json"
  own.write_text(json.dumps({"vocab_size": 3, "directionality": "bidi"}))
  theirs.write_text(json.dumps({"vocab_size": 3, "model_type": "bert"}))
  run_files.write(settings_of(tmp_path, bert_config_file=str(own)), CONFIG)
  assert contents(tmp_path)["bert_config.json"] == own.read_bytes()
  run_files.write(settings_of(tmp_path, bert_config_file=str(theirs)), CONFIG)
  assert contents(tmp_path)["bert_config.json"] == CONFIG.to_json_string().encode(), "our form"
  own.write_bytes(b"anything else")
  run_files.write(settings_of(tmp_path, bert_config_file="model.keras"), CONFIG)  # contains its own
  assert contents(tmp_path)["bert_config.json"] == CONFIG.to_json_string().encode()


def test_a_run_without_vocabulary_and_labels(tmp_path, newest):
  run_files.write(settings_of(tmp_path, vocab_file=None), CONFIG)
  assert set(contents(tmp_path)) == FILES - {"vocab.txt", "label_map.json"}


def test_a_run_that_resumes_writes_what_it_trains_with(tmp_path, newest):
  run_files.write(settings_of(tmp_path), CONFIG, ["a"])
  newest(10)
  run_files.write(settings_of(tmp_path, learning_rate=0.25), CONFIG, ["a"])
  assert json.loads(contents(tmp_path)["flags.json"])["learning_rate"] == 0.25


@pytest.mark.parametrize(("values", "step"), [({"do_train": False}, 10), ({}, 20), ({}, 30)])
def test_a_run_that_trains_nothing_leaves_the_files_of_the_training(tmp_path, newest, values, step):
  run_files.write(settings_of(tmp_path), CONFIG, ["a"])
  before = contents(tmp_path)
  newest(step)
  run_files.write(settings_of(tmp_path, learning_rate=0.25, **values), CONFIG, ["a"])
  assert contents(tmp_path) == before


def test_an_old_folder_gets_the_files_of_its_model_when_it_is_evaluated(tmp_path, newest):
  newest(20)
  run_files.write(settings_of(tmp_path, do_train=False), CONFIG, ["a"])
  assert set(contents(tmp_path)) == FILES - {"flags.json", "versions.json"}


@pytest.mark.parametrize(("step", "left"), [(None, {"vocab.txt"}), (0, FILES)])
def test_a_run_that_fails_before_its_first_checkpoint_leaves_nothing_new(
  tmp_path, newest, step, left
):
  settings = settings_of(tmp_path)
  (tmp_path / "out" / "vocab.txt").write_text("mine")

  def make_run():
    with run_files.written(settings, CONFIG, ["a"]):
      assert set(contents(tmp_path)) == FILES
      newest(step)
      raise ValueError("the weights do not fit")

  with pytest.raises(ValueError, match="weights"):
    make_run()
  assert set(contents(tmp_path)) == left


def test_files_that_are_equal_are_not_written_again(tmp_path, newest):
  run_files.write(settings_of(tmp_path), CONFIG, ["a"])
  before = {path: path.stat().st_ino for path in (tmp_path / "out").iterdir()}
  run_files.write(settings_of(tmp_path), CONFIG, ["a"])
  assert {path: path.stat().st_ino for path in (tmp_path / "out").iterdir()} == before


# ---------------------------------------------------------------------------------------------
# Labels.


def test_label_map_there_and_back(tmp_path):
  labels = ["neutral", "10", "9", 'ä"\t']
  label_map.write(str(tmp_path), labels)
  text = (tmp_path / "label_map.json").read_text(encoding="utf-8")
  assert json.loads(text) == {"neutral": 0, "10": 1, "9": 2, 'ä"\t': 3}
  assert "ä" in text
  assert label_map.read(str(tmp_path)) == labels


def test_no_label_map(tmp_path):
  assert label_map.read(str(tmp_path)) is None
  assert label_map.read(None) is None


@pytest.mark.parametrize(
  "text",
  [
    *("", "{", "[]", '["a"]', "3", "null"),
    *('{"a": 1}', '{"a": "0"}', '{"a": null}', '{"a": 0, "b": 0}', '{"a": 0, "b": "1"}'),
  ],
)
def test_a_label_map_that_is_none(tmp_path, text):
  (tmp_path / "label_map.json").write_text(text)
  with pytest.raises(ValueError, match=r"label_map\.json is no label map .*Remove it"):
    label_map.read(str(tmp_path))


def test_a_label_map_that_is_not_utf8(tmp_path):
  (tmp_path / "label_map.json").write_bytes(b'{"\xff": 0}')
  with pytest.raises(ValueError, match="is no label map"):
    label_map.read(str(tmp_path))


@pytest.mark.parametrize(("value", "resumes"), [(False, True), (None, True), (True, False)])
def test_a_training_with_a_removed_flag_is_not_resumed(tmp_path, newest, value, resumes):
  settings = settings_of(tmp_path)
  flags = tmp_path / "out" / "flags.json"
  flags.write_text(json.dumps({"pack_sequences": value, "average_runs": "a,b"}))
  newest(10)
  if resumes:
    run_files.write(settings, CONFIG)
  else:
    with pytest.raises(command_line.UsageError, match=r"out .*--pack_sequences=True: .*--group_by"):
      run_files.write(settings, CONFIG)
    assert "pack_sequences" in flags.read_text(), "nothing was overwritten"


def test_a_model_trained_with_a_removed_flag_can_be_used(tmp_path, newest):
  settings = settings_of(tmp_path, do_train=False)
  (tmp_path / "out" / "flags.json").write_text(json.dumps({"pack_sequences": True}))
  newest(20)
  run_files.write(settings, CONFIG)
