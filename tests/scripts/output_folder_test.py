"""Tests of bert/scripts/output_folder.py."""

import dataclasses
import json
import os

import numpy as np
import pytest

from bert import families
from bert.checkpoints import saving
from bert.io import atomic_files
from bert.model.configuration import BertConfig
from bert.scripts import output_folder, run_states
from bert.scripts.classifier_settings import ClassifierSettings
from bert.tokenization import FullTokenizer
from tests.kit import folder_holder, tiny_bert

CONFIG = tiny_bert.sizes(8, 4, 1, 4, 16)


def settings(folder, **values) -> ClassifierSettings:
  return ClassifierSettings(output_dir=str(folder), **values)


def test_the_output_folder_is_made(tmp_path):
  output_folder.prepare(str(tmp_path / "a" / "b"))
  output_folder.prepare(str(tmp_path / "a" / "b"))
  assert os.listdir(tmp_path / "a" / "b") == []


def test_an_output_folder_that_is_a_file(tmp_path):
  (tmp_path / "file").write_text("mine")
  for path in (tmp_path / "file", tmp_path / "file" / "below"):
    with pytest.raises(OSError, match=f"--output_dir={path} cannot be written to"):
      output_folder.prepare(str(path))
  assert (tmp_path / "file").read_text() == "mine"


def test_an_output_folder_that_is_a_link_to_nowhere(tmp_path):
  (tmp_path / "link").symlink_to(tmp_path / "gone")
  with pytest.raises(OSError, match=f"link is a link to {tmp_path}/gone, which does not exist"):
    output_folder.prepare(str(tmp_path / "link"))


def test_a_run_without_any_weights_says_so(tmp_path):
  run = settings(tmp_path, init_checkpoint=None)
  assert "NO MODEL" in output_folder.nothing_loaded(run)
  assert output_folder.nothing_loaded(run.replace(do_train=True)) is None
  assert output_folder.nothing_loaded(run.replace(init_checkpoint="model")) is None
  saving.save(str(tmp_path), 7, {"v": np.zeros(2)}, {})
  assert output_folder.nothing_loaded(run) is None


def test_flags_that_results_still_follow_are_not_without_effect(tmp_path):
  state = {"informative": {"learning_rate": 0.1, "max_seq_length": 64}}
  saving.save(str(tmp_path), 7, {"v": np.zeros(2)}, state)
  run = settings(tmp_path, num_train_epochs=1.0)
  text = output_folder.nothing_trained(run, {"learning_rate": 0.2, "max_seq_length": 32})
  assert "Without effect: learning_rate was 0.1, now 0.2. In the results, not in " in text
  assert "flags.json of the training: max_seq_length was 64, now 32." in text


def test_an_output_folder_that_is_read_only(tmp_path, monkeypatch):
  # Simulated, since tests may run as root, who may write everywhere.
  def refuse(path):
    raise PermissionError(13, "Permission denied", path)

  monkeypatch.setattr(atomic_files, "check_writable", refuse)
  with pytest.raises(OSError, match=f"--output_dir={tmp_path}/out cannot be written to.*denied"):
    output_folder.prepare(str(tmp_path / "out"))


def test_the_fingerprint_is_of_shape_tokenizer_and_task(tmp_path):
  def fingerprint(tokens="ab", splitting=(), **config):
    (tmp_path / "vocab.txt").write_text("\n".join([*tokens, "[UNK]", "[CLS]", "[SEP]"]))
    tokenizer = FullTokenizer(tmp_path / "vocab.txt", **dict(splitting))
    config = BertConfig.from_dict({**CONFIG, **config})
    return output_folder.model_fingerprint(config, tokenizer, labels=("0", "1"))

  first = fingerprint()
  assert first["hidden_size"] == 4
  assert first["labels"] == ("0", "1")
  json.dumps(first)

  def changed(*tokenizer, **config):
    second = fingerprint(*tokenizer, **config)
    return {key for key in first if first[key] != second[key]}

  assert changed() == set()
  assert changed(hidden_dropout_prob=0.3, initializer_range=0.5) == set()
  assert changed(hidden_size=8) == {"hidden_size"}
  assert changed(hidden_act="relu") == {"hidden_act"}
  assert changed(num_hidden_layers=2) == {"num_hidden_layers"}
  assert changed(vocab_size=9) == {"vocab_size"}
  assert changed("ba") == {"vocabulary"}, "the same tokens in another order are another vocabulary"
  assert changed("ab", [("strip_accents", True)]) == set()  # as it is when letters are lower-cased
  assert changed("ab", [("strip_accents", False)]) == {"strip_accents"}
  assert changed("ab", [("tokenize_chinese_chars", False)]) == {"tokenize_chinese_chars"}
  of_text = set(first) - set(output_folder.model_fingerprint(BertConfig.from_dict(CONFIG)))
  assert of_text == {"vocabulary", "labels", "strip_accents", "tokenize_chinese_chars"}


# What weights compute also depends on these, which once were no part of the fingerprint.
@pytest.mark.parametrize(
  ("family", "key", "value"),
  [
    ("bert", "classifier_activation", "relu"),
    ("roberta", "layer_norm_eps", 1e-12),
    ("roberta", "pad_token_id", 0),
    ("electra", "embedding_size", 2),
    ("electra", "transformers_heads", True),
    ("albert", "embedding_size", 2),
    ("albert", "num_hidden_groups", 2),
    ("albert", "inner_group_num", 2),
    ("distilbert", "model_type", "bert"),
  ],
)
def test_a_value_of_a_family_is_in_the_fingerprint(family, key, value):
  config = {**CONFIG, "model_type": family}
  before, after = map(_fingerprint_of, (config, {**config, key: value}))
  assert before[key] != after[key] == value


def _fingerprint_of(config):
  return output_folder.model_fingerprint(BertConfig.from_dict(config))


def test_a_new_key_of_a_configuration_is_in_the_fingerprint(monkeypatch):
  init, family = BertConfig.__init__, families.ROBERTA

  def with_new_key(self, *args, **kwargs):
    init(self, *args, **kwargs)
    self.attention_window = 512

  monkeypatch.setattr(BertConfig, "__init__", with_new_key)
  of_family = dataclasses.replace(family, keys={**family.keys, "rotary_base": 10000})
  monkeypatch.setitem(families.FAMILIES, family.name, of_family)
  config = {**CONFIG, "model_type": family.name}
  found = _fingerprint_of({**config, "attention_window": 8})
  assert (found["attention_window"], found["rotary_base"]) == (8, 10000)
  assert "rotary_base" not in _fingerprint_of(CONFIG)


def test_two_spellings_of_one_model_have_one_fingerprint():
  albert = {**CONFIG, "num_hidden_groups": 1}
  assert _fingerprint_of(albert) == _fingerprint_of({**albert, "model_type": "albert"})
  electra = {**CONFIG, "model_type": "electra"}
  assert _fingerprint_of(electra) == _fingerprint_of({**electra, "embedding_size": 4})
  sizes = {"generator_hidden_size": 0.5, "generator_layers": 0.5, "hidden_dropout_prob": 0.3}
  assert _fingerprint_of(electra) == _fingerprint_of({**electra, **sizes, "directionality": "bidi"})


def test_a_folder_of_an_earlier_version_is_known_by_its_configuration(tmp_path):
  config = {**CONFIG, "model_type": "roberta"}
  of_earlier = {"hidden_size": 4, "labels": ["0"]}
  saving.save(str(tmp_path), 5, {"v": np.zeros(2)}, {"fingerprint": of_earlier})
  same, other = (
    {**_fingerprint_of({**config, **changed}), "labels": ["0"]}
    for changed in ({}, {"layer_norm_eps": 1e-12})
  )
  output_folder.check_same_model(str(tmp_path), other)  # nothing is known of it
  (tmp_path / "bert_config.json").write_text(json.dumps(config))
  output_folder.check_same_model(str(tmp_path), same)
  with pytest.raises(ValueError, match="layer_norm_eps was 1e-05, now 1e-12"):
    output_folder.check_same_model(str(tmp_path), other)
  (tmp_path / "bert_config.json").write_text("{")
  output_folder.check_same_model(str(tmp_path), other)


def test_another_model_in_the_output_folder_is_refused_by_key(tmp_path):
  folder = str(tmp_path / "out")
  output_folder.check_same_model(folder, {"labels": ["0"]})  # nothing there yet
  state = {"fingerprint": {"labels": ["0", "1"], "task_name": "mnli", "of_a_later_version": 1}}
  saving.save(folder, 5, {"v": np.zeros(2)}, state)
  output_folder.check_same_model(folder, {"labels": ("0", "1"), "task_name": "mnli", "new": 2})
  output_folder.check_same_model(
    folder, {"labels": ["0", "1"], "task_name": "ax"}, ignored=["task_name"]
  )
  with pytest.raises(ValueError, match=r"model\.ckpt-5 .*labels was \['0', '1'\], now \['1'\]\."):
    output_folder.check_same_model(folder, {"labels": ["1"], "task_name": "mnli"})
  with pytest.raises(ValueError, match="task_name was 'mnli', now 'ax'"):
    output_folder.check_same_model(folder, {"labels": ["0", "1"], "task_name": "ax"})


def test_a_checkpoint_of_the_original_has_no_fingerprint(tmp_path):
  folder = str(tmp_path / "out")
  prefix = saving.save(folder, 5, {"v": np.zeros(2)}, {"fingerprint": {"a": 1}})
  os.remove(prefix + ".state.json")
  output_folder.check_same_model(folder, {"a": 2})


@pytest.mark.parametrize(
  ("do_train", "lock", "advice"),
  [
    (True, ".lock", r"output_dir\.$"),
    (False, ".lock.evaluation", r"--init_checkpoint={folder} and another --output_dir\.$"),
  ],
)
def test_a_folder_of_another_run_is_refused_at_once(tmp_path, do_train, lock, advice):
  folder = tmp_path / "out"
  folder.mkdir()
  run, advice = settings(folder, do_train=do_train), advice.format(folder=folder)
  with folder_holder.held(folder, lock) as process:
    with (
      pytest.raises(atomic_files.FolderInUseError, match=f"process {process.pid} on.*{advice}"),
      output_folder.locked_output_dir(run),
    ):
      pass
    assert os.listdir(folder) == [lock]
    process.communicate("")
  with output_folder.locked_output_dir(run) as same:
    assert os.listdir(folder) == [lock]
    assert same.features_path("eval") == str(folder / "eval.tf_record")
  assert os.listdir(folder) == []


@pytest.mark.parametrize(
  ("do_train", "lock", "own"),
  [(False, ".lock", ".features.evaluation"), (True, ".lock.evaluation", ".features.training")],
)
def test_evaluation_beside_training_has_features_of_its_own(tmp_path, do_train, lock, own):
  run = settings(tmp_path, do_train=do_train)
  with folder_holder.held(tmp_path, lock):
    with output_folder.locked_output_dir(run) as run:
      assert run.features_path("eval") == str(tmp_path / own / "eval.tf_record")
      (tmp_path / own / "eval.tf_record").write_bytes(b"features")
    assert os.listdir(tmp_path) == [lock]


def test_the_best_checkpoint_counts_where_it_is_kept(tmp_path):
  earlier, newest = (saving.save(str(tmp_path), n, {"v": np.zeros(2)}, {}) for n in (6, 7))
  run = settings(tmp_path, eval_every_steps=5)
  assert output_folder.checkpoint_to_use(run) is None
  assert output_folder.checkpoint_to_export(run) == newest
  best = saving.save(str(tmp_path / "best"), 5, {"v": np.zeros(2)}, {})
  assert output_folder.checkpoint_to_use(run) == best
  assert output_folder.checkpoint_to_export(run, best) == best
  elsewhere = saving.save(str(tmp_path / "other"), 9, {"v": np.zeros(2)}, {})
  for expected, values in [
    (None, {"keep_best": False}),
    (best, {"eval_every_steps": 0}),
    (best, {"do_train": False}),
    (best, {"do_train": False, "init_checkpoint": elsewhere}),
    (best, {"do_train": True, "init_checkpoint": earlier}),
    (earlier, {"do_train": False, "init_checkpoint": earlier}),
    (newest, {"do_train": False, "init_checkpoint": newest}),
    (best, {"do_train": False, "init_checkpoint": best}),
  ]:
    assert output_folder.checkpoint_to_use(settings(tmp_path, **values)) == expected, values


def test_the_checkpoint_that_is_used_is_said(tmp_path, caplog):
  caplog.set_level("INFO", logger="absl")
  earlier, newest = (saving.save(str(tmp_path), n, {"v": np.zeros(2)}, {}) for n in (6, 7))

  def said(**values):
    caplog.clear()
    output_folder.checkpoint_to_use(settings(tmp_path, **values))
    return [record.getMessage() for record in caplog.records]

  assert said() == [f"Using the newest checkpoint, {newest}."]
  best = saving.save(str(tmp_path / "best"), 5, {"v": np.zeros(2)}, {})
  assert said() == [f"Using the best checkpoint, {best}. The newest is {newest}."]
  assert said(keep_best=False) == [f"Using the newest checkpoint, {newest}."]
  named = f"Using {earlier}, which --init_checkpoint names."
  assert said(init_checkpoint=earlier) == [named]


def test_nothing_to_export(tmp_path):
  with pytest.raises(ValueError, match=f"no checkpoint in --output_dir={tmp_path}; train with"):
    output_folder.checkpoint_to_export(settings(tmp_path))


def test_a_state_of_another_program_is_no_obstacle(tmp_path):
  (tmp_path / "run.json").write_text("[1]")
  assert run_states.seeds_of(str(tmp_path)) == []
