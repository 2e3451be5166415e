"""Tests of bert/scripts/runner.py. Alone: python -m pytest tests/scripts/runner_test.py (seconds)

What a whole run does with these pieces is in tests/run_classifier_test.py.
"""

import doctest
import json
import os
import subprocess
import sys

import numpy as np
import pytest
from absl import flags

from bert.checkpoints import checkpoint, released_models
from bert.io import atomic_files
from bert.scripts import command_line, flag_groups, runner
from bert.scripts.command_line import UsageError
from bert.training import distribution
from tests.kit.paths import ROOT

VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c"]
CONFIG = {
  "vocab_size": len(VOCAB),
  "hidden_size": 4,
  "num_hidden_layers": 1,
  "num_attention_heads": 2,
  "intermediate_size": 4,
  "max_position_embeddings": 16,
}


def define_flags():
  flags.DEFINE_string("output_dir", None, "Where results go.")
  flags.DEFINE_integer("eval_batch_size", 8, "As in every script.")
  flags.DEFINE_bool("do_train", False, "As in every script.")
  runner.define_model_flags()
  runner.define_training_flags()
  runner.define_eval_in_training_flags()
  flag_groups.define_tpu_flags()


@pytest.fixture
def given(tmp_path):
  """Parses a command line: `given(seed=1)` is `--seed=1`."""
  vocab, config = tmp_path / "vocab.txt", tmp_path / "bert_config.json"
  vocab.write_text("".join(token + "\n" for token in VOCAB))
  config.write_text(json.dumps(CONFIG))

  def parse(**values):
    defaults = {"output_dir": tmp_path / "out", "max_seq_length": 16}
    values = {**defaults, **values}
    command_line.parse(["script.py", *(f"--{name}={value}" for name, value in values.items())])
    return flags.FLAGS

  with flag_groups.defined_flags(define_flags):
    yield parse


@pytest.fixture
def load(given, tmp_path):
  """Loads the tiny config and vocabulary, or those that flags name."""

  def load_from_flags(**values):
    given(
      **{
        "vocab_file": tmp_path / "vocab.txt",
        "bert_config_file": tmp_path / "bert_config.json",
        **values,
      }
    )
    return runner.load_config_and_tokenizer()

  return load_from_flags


def test_doctests():
  assert doctest.testmod(runner).failed == 0


# ---------------------------------------------------------------------------------------------
# Flags.


def test_defaults_train_as_the_original(given):
  given()
  assert runner.optimizer_options() == {
    "optimizer": "adamw",
    "bias_correction": False,
    "schedule": "original",
    "layerwise_lr_decay": 1.0,
    "head_learning_rate": None,
    "freeze": (),
    "scale_loss": False,
  }


def test_optimizer_flags_reach_the_optimizer(given):
  given(
    optimizer="lamb",
    adam_bias_correction=True,
    lr_schedule="continuous",
    layerwise_lr_decay=0.5,
    head_learning_rate=0.1,
    freeze="embeddings,layers:2",
    dtype="float16",
  )
  options = runner.optimizer_options()
  assert options == {
    "optimizer": "lamb",
    "bias_correction": True,
    "schedule": "continuous",
    "layerwise_lr_decay": 0.5,
    "head_learning_rate": 0.1,
    "freeze": ("embeddings", "layers:2"),
    "scale_loss": True,
  }
  import inspect

  from bert import optimization

  assert set(options) <= set(inspect.signature(optimization.create_optimizer).parameters)


def test_run_config(given, tmp_path):
  given(
    seed=3,
    save_checkpoints_steps=4,
    keep_checkpoint_max=5,
    save_summary_steps=6,
    log_every_steps=7,
    gradient_accumulation_steps=8,
  )
  config = runner.run_config({"labels": ["0"]}, {"learning_rate": 1.0})
  assert config.model_dir == str(tmp_path / "out")
  assert (config.seed, config.save_checkpoints_steps, config.keep_checkpoint_max) == (3, 4, 5)
  assert (config.save_summary_steps, config.log_every_steps) == (6, 7)
  assert config.gradient_accumulation_steps == 8
  assert config.strategy is None
  assert config.fingerprint == {"labels": ["0"]}
  assert config.informative == {"learning_rate": 1.0}


def test_iterations_per_loop_counts_only_if_given(given):
  """Its default of 1000 would silence the progress of every run on a CPU."""
  given()
  assert runner.run_config({}, {}).steps_per_loop == 1
  given(iterations_per_loop=20)
  assert runner.run_config({}, {}).steps_per_loop == 20


def test_a_device_in_use_already_is_no_error(given, monkeypatch):
  import tensorflow as tf

  def in_use(gpu, enable):
    raise RuntimeError("Physical devices cannot be modified after being initialized")

  monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [kind])
  monkeypatch.setattr(tf.config.experimental, "set_memory_growth", in_use)
  given()
  assert runner.create_strategy() is None


def test_both_ways_to_ask_for_a_tpu_are_one(given, monkeypatch):
  asked = []
  monkeypatch.setattr(distribution, "create_strategy", lambda name, **tpu: asked.append(name))
  for way in ({"use_tpu": True}, {"use_tpu": False, "distribution_strategy": "tpu"}):
    values = given(**way)
    runner.check_training_flags()
    runner.create_strategy()
    assert values.use_tpu
  given(use_tpu=False, distribution_strategy="mirrored")
  runner.check_training_flags()
  runner.create_strategy()
  assert asked == ["tpu", "tpu", "mirrored"]
  given(use_tpu=True, distribution_strategy="mirrored")
  with pytest.raises(UsageError, match="--use_tpu and --distribution_strategy=mirrored exclude"):
    runner.check_training_flags()


HOLDER = """
import sys; from bert.io import atomic_files
with atomic_files.hold_folder(sys.argv[1]):
  print("held", flush=True)
  sys.stdin.read()
"""


def test_a_folder_of_another_run_is_refused_at_once(given, tmp_path):
  folder = tmp_path / "out"
  folder.mkdir()
  process = subprocess.Popen(
    [sys.executable, "-c", HOLDER, str(folder)],
    cwd=ROOT,
    stdin=subprocess.PIPE,
    stdout=subprocess.PIPE,
  )
  assert process.stdout.readline() == b"held\n"
  for do_train, advice in ((True, r"output_dir\.$"), (False, f"--init_checkpoint={folder} and")):
    given(output_dir=folder, do_train=do_train)
    held = runner.held_output_dir()
    with (
      pytest.raises(atomic_files.FolderInUseError, match=f"process {process.pid} on.*{advice}"),
      held,
    ):
      pass
  assert os.listdir(folder) == [".lock"]
  process.communicate(b"")
  with runner.held_output_dir():
    assert os.listdir(folder) == [".lock"]
  assert os.listdir(folder) == []


@pytest.mark.parametrize(
  ("flag", "value", "needed"),
  [
    ("train_batch_size", -1, "at least 1"),
    ("train_batch_size", 0, "at least 1"),
    ("eval_batch_size", -8, "at least 1"),
    ("save_checkpoints_steps", 0, "at least 1"),
    ("iterations_per_loop", 0, "at least 1"),
    ("keep_checkpoint_max", 0, "at least 1"),
    ("save_summary_steps", 0, "at least 1"),
    ("log_every_steps", 0, "at least 1"),
    ("gradient_accumulation_steps", 0, "at least 1"),
    ("shuffle_buffer_size", 0, "at least 1"),
    ("early_stopping_patience", 0, "at least 1"),
    ("learning_rate", -1e-5, "a number of at least 0"),
    ("learning_rate", "nan", "a number of at least 0"),
    ("learning_rate", "inf", "a number of at least 0"),
    ("head_learning_rate", -1.0, "a number of at least 0"),
    ("num_train_epochs", 0.0, "a positive number"),
    ("num_train_epochs", "inf", "a positive number"),
    ("warmup_proportion", 1.5, "between 0 and 1"),
    ("warmup_proportion", -0.1, "between 0 and 1"),
    ("layerwise_lr_decay", 0.0, "above 0 and at most 1"),
    ("layerwise_lr_decay", 1.1, "above 0 and at most 1"),
    ("eval_every_steps", -1, "at least 0"),
  ],
)
def test_numbers_that_cannot_be_meant(given, flag, value, needed):
  given(**{flag: value})
  with pytest.raises(UsageError, match=rf"^--{flag}={value}: {needed} is needed\.$"):
    runner.check_training_flags()


def test_numbers_at_the_edge_are_fine(given):
  given(
    train_batch_size=1,
    learning_rate=0.0,
    warmup_proportion=1.0,
    layerwise_lr_decay=1.0,
    num_train_epochs=0.01,
  )
  runner.check_training_flags()


def test_a_batch_divides_into_its_parts(given):
  given(train_batch_size=8, gradient_accumulation_steps=4)
  runner.check_training_flags()
  given(train_batch_size=8, gradient_accumulation_steps=3)
  with pytest.raises(UsageError, match="--train_batch_size=8 does not divide"):
    runner.check_training_flags()


# ---------------------------------------------------------------------------------------------
# Config, vocabulary, checkpoint.


def test_config_and_vocabulary_beside_the_checkpoint(given, tmp_path):
  for path in (tmp_path, tmp_path / "bert_model.ckpt"):
    values = given(init_checkpoint=path)
    values.vocab_file = values.bert_config_file = None
    runner.resolve_model_files()
    assert values.vocab_file == str(tmp_path / "vocab.txt")
    assert values.bert_config_file == str(tmp_path / "bert_config.json")
    assert runner.folder_of_init_checkpoint() == str(tmp_path)


def test_a_prefix_in_the_current_folder(given, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  values = given(init_checkpoint="bert_model.ckpt")
  runner.resolve_model_files()
  assert os.path.samefile(values.vocab_file, tmp_path / "vocab.txt")


def test_files_that_were_named_stay(given):
  values = given(init_checkpoint="", vocab_file="mine.txt", bert_config_file="mine.json")
  runner.resolve_model_files()
  assert (values.vocab_file, values.bert_config_file) == ("mine.txt", "mine.json")
  assert not runner.folder_of_init_checkpoint()


def test_a_released_name_is_fetched_unless_there_is_such_a_folder(given, tmp_path, monkeypatch):
  name, fetched = "uncased_L-2_H-128_A-2", []

  def download_model(wanted):
    fetched.append(wanted)
    return str(tmp_path)

  monkeypatch.setattr(released_models, "download_model", download_model)
  monkeypatch.chdir(tmp_path)
  values = given(init_checkpoint=name)
  runner.resolve_model_files()
  assert fetched == [name]
  assert values.init_checkpoint == str(tmp_path)
  assert values.vocab_file == str(tmp_path / "vocab.txt")

  (tmp_path / name).mkdir()
  values = given(init_checkpoint=name)
  runner.resolve_model_files()
  assert fetched == [name], "the unpacked folder of 2018 is what is meant"
  assert values.init_checkpoint == name


def test_config_and_tokenizer(load):
  config, tokenizer = load()
  assert config.hidden_size == 4
  assert tokenizer.tokenize("A b") == ["a", "b"]
  assert load(do_lower_case=False)[1].tokenize("A b") == ["[UNK]", "b"]


def test_a_length_past_the_positions(load):
  message = (
    r"Cannot use sequence length 17 because the BERT model was only trained up to sequence length "
    r"16\. Lower --max_seq_length"
  )
  with pytest.raises(ValueError, match=message):
    load(max_seq_length=17)


def test_a_vocabulary_larger_than_the_model(load, tmp_path):
  large = tmp_path / "large.txt"
  large.write_text("".join(token + "\n" for token in [*VOCAB, "d"]))
  with pytest.raises(ValueError, match=r"large\.txt numbers its tokens up to 8, .*vocab_size 8"):
    load(vocab_file=large)


def test_a_vocabulary_far_smaller_than_the_model_is_told_once(load, tmp_path, caplog):
  load()
  assert "vocab_size" not in caplog.text
  config = json.loads((tmp_path / "bert_config.json").read_text())
  (tmp_path / "large.json").write_text(json.dumps({**config, "vocab_size": 200}))
  load(bert_config_file=tmp_path / "large.json")
  [told] = [r.getMessage() for r in caplog.records if "vocab_size" in r.getMessage()]
  assert f"8 lines, and vocab_size of {tmp_path}/large.json is 200: is it the model's own?" in told


def test_a_checkpoint_that_is_missing_is_never_a_fresh_start(load, tmp_path):
  with pytest.raises(checkpoint.CheckpointError, match=r"model\.ckpt-7\.index does not exist"):
    load(init_checkpoint=tmp_path / "model.ckpt-7")


def test_the_case_of_a_released_model_is_checked(load, tmp_path):
  folder = tmp_path / "cased_L-12_H-768_A-12"
  saved = checkpoint.save(str(folder), 1, {"v": np.zeros(2)}, {})
  for suffix in (".index", ".data-00000-of-00001"):
    os.rename(saved + suffix, folder / f"bert_model.ckpt{suffix}")
  (folder / "checkpoint").unlink()
  with pytest.raises(ValueError, match="do_lower_case"):
    load(init_checkpoint=folder)
  load(init_checkpoint=folder, do_lower_case=False)


# ---------------------------------------------------------------------------------------------
# The output folder.


def test_the_output_folder_is_made(given, tmp_path):
  given(output_dir=tmp_path / "a" / "b")
  runner.prepare_output_dir()
  runner.prepare_output_dir()
  assert os.listdir(tmp_path / "a" / "b") == []


def test_an_output_folder_that_is_a_file(given, tmp_path):
  (tmp_path / "file").write_text("mine")
  for path in (tmp_path / "file", tmp_path / "file" / "below"):
    given(output_dir=path)
    with pytest.raises(OSError, match=f"--output_dir={path} cannot be written to"):
      runner.prepare_output_dir()
  assert (tmp_path / "file").read_text() == "mine"


def test_an_output_folder_that_is_read_only(given, tmp_path, monkeypatch):
  # Simulated, since tests may run as root, who may write everywhere.
  def refuse(path):
    raise PermissionError(13, "Permission denied", path)

  monkeypatch.setattr(atomic_files, "check_writable", refuse)
  given()
  with pytest.raises(OSError, match=f"--output_dir={tmp_path}/out cannot be written to.*denied"):
    runner.prepare_output_dir()


def fingerprint(load, **task):
  config, tokenizer = load()
  return runner.model_fingerprint(config, tokenizer, **task)


def test_the_fingerprint_is_of_shape_vocabulary_case_and_task(load, tmp_path):
  first = fingerprint(load, labels=("0", "1"))
  assert first["hidden_size"] == 4
  assert first["labels"] == ("0", "1")
  assert first["do_lower_case"] is True
  json.dumps(first)

  def changed(**config):
    (tmp_path / "bert_config.json").write_text(json.dumps({**CONFIG, **config}))
    second = fingerprint(load, labels=("0", "1"))
    return {key for key in first if first[key] != second[key]}

  assert changed() == set()
  assert changed(hidden_dropout_prob=0.3, initializer_range=0.5) == set()
  assert changed(hidden_size=8) == {"hidden_size"}
  assert changed(hidden_act="relu") == {"hidden_act"}
  assert changed(num_hidden_layers=2) == {"num_hidden_layers"}
  assert changed(vocab_size=9) == {"vocab_size"}
  (tmp_path / "vocab.txt").write_text("".join(t + "\n" for t in [*VOCAB[:-2], "c", "b"]))
  assert changed() == {"vocabulary"}, "the same tokens in another order are another vocabulary"


def test_another_model_in_the_output_folder_is_refused_by_key(given, tmp_path):
  given()
  runner.check_same_model({"labels": ["0"]})  # nothing there yet
  state = {"fingerprint": {"labels": ["0", "1"], "task_name": "mnli", "of_a_later_version": 1}}
  checkpoint.save(str(tmp_path / "out"), 5, {"v": np.zeros(2)}, state)
  runner.check_same_model({"labels": ("0", "1"), "task_name": "mnli", "new": 2})
  runner.check_same_model({"labels": ["0", "1"], "task_name": "ax"}, ignored=["task_name"])
  with pytest.raises(ValueError, match=r"model\.ckpt-5 .*labels was \['0', '1'\], now \['1'\]\."):
    runner.check_same_model({"labels": ["1"], "task_name": "mnli"})
  with pytest.raises(ValueError, match="task_name was 'mnli', now 'ax'"):
    runner.check_same_model({"labels": ["0", "1"], "task_name": "ax"})


def test_a_checkpoint_of_the_original_has_no_fingerprint(given, tmp_path):
  given()
  prefix = checkpoint.save(str(tmp_path / "out"), 5, {"v": np.zeros(2)}, {"fingerprint": {"a": 1}})
  os.remove(prefix + ".state.json")
  runner.check_same_model({"a": 2})
