"""Tests of bert/scripts/settings.py, run_settings.py and resolution.py.

Alone: python -m pytest tests/scripts/run_settings_test.py (seconds)

What a whole run does with these pieces is in tests/run_classifier/.
"""

import dataclasses
import inspect
import json
import os

import numpy as np
import pytest

from bert import optimization
from bert.checkpoints import bundle_files, reading, released_models, saving
from bert.scripts import command_line, flag_groups, resolution
from bert.scripts.run_settings import FineTuningSettings
from bert.scripts.settings import UsageError
from bert.training import distribution, hardware
from tests.kit import tiny_bert

VOCAB = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c"]
CONFIG = tiny_bert.sizes(len(VOCAB), 4, 1, 4, 16)


@pytest.fixture
def given(tmp_path):
  """Makes settings of Python, beside files of a tiny model."""
  vocab, config = tmp_path / "vocab.txt", tmp_path / "bert_config.json"
  vocab.write_text("".join(token + "\n" for token in VOCAB))
  config.write_text(json.dumps(CONFIG))

  def make(**values):
    return FineTuningSettings.of(**{"output_dir": tmp_path / "out", "max_seq_length": 16, **values})

  return make


@pytest.fixture
def load(given, tmp_path):
  """Loads the tiny config and vocabulary, or those that settings name."""
  files = {"vocab_file": tmp_path / "vocab.txt", "bert_config_file": tmp_path / "bert_config.json"}

  def load_from(**values):
    settings = resolution.resolve(given(**{**files, **values}))
    return resolution.load_config_and_tokenizer(settings)

  return load_from


# ---------------------------------------------------------------------------------------------
# Flags.


def test_optimizer_settings_reach_the_optimizer(given):
  options = given().optimizer_options(scale_loss=False)
  parameters = inspect.signature(optimization.create_optimizer).parameters
  assert options == {name: parameters[name].default for name in options}
  settings = given(
    adam_bias_correction=True,
    adam_beta_2=0.98,
    weight_decay=0.1,
    lr_schedule="continuous",
    layerwise_lr_decay=0.5,
    head_learning_rate=0,
    freeze=("embeddings", "layers:2"),
    dtype="float16",
  )
  assert settings.model_options["optimizer_options"] == {
    "optimizer": "adamw",
    "bias_correction": True,
    "beta_2": 0.98,
    "weight_decay": 0.1,
    "schedule": "continuous",
    "layerwise_lr_decay": 0.5,
    "head_learning_rate": 0.0,
    "freeze": ("embeddings", "layers:2"),
    "scale_loss": True,
  }


def test_run_config(given, tmp_path):
  settings = given(
    seed=3,
    save_checkpoints_steps=4,
    keep_checkpoint_max=5,
    save_summary_steps=6,
    log_every_steps=7,
    gradient_accumulation_steps=8,
  )
  config = settings.run_config({"labels": ["0"]}, {"learning_rate": 1.0})
  assert config.model_dir == str(tmp_path / "out")
  assert (config.seed, config.save_checkpoints_steps, config.keep_checkpoint_max) == (3, 4, 5)
  assert (config.save_summary_steps, config.log_every_steps) == (6, 7)
  assert config.gradient_accumulation_steps == 8
  assert config.strategy is None
  assert config.fingerprint == {"labels": ["0"]}
  assert config.informative == {"learning_rate": 1.0}


def test_iterations_per_loop_counts_only_if_given(given):
  """Its default of 1000 would silence the progress of every run on a CPU."""
  assert given().run_config({}, {}).steps_per_loop == 1
  assert given(iterations_per_loop=20).run_config({}, {}).steps_per_loop == 20


@pytest.mark.parametrize(
  "error",
  [
    RuntimeError("Physical devices cannot be modified after being initialized"),
    ValueError("Cannot set memory growth on device when virtual devices configured"),
  ],
  ids=["used", "divided"],
)
def test_a_device_that_is_used_or_divided_already_is_no_error(given, monkeypatch, error):
  import tensorflow as tf

  def in_use(gpu, enable):
    raise error

  monkeypatch.setattr(tf.config, "list_physical_devices", lambda kind: [kind])
  monkeypatch.setattr(tf.config.experimental, "set_memory_growth", in_use)
  assert given().create_strategy() is None


def test_both_ways_to_ask_for_a_tpu_are_one(given, monkeypatch):
  asked = []
  monkeypatch.setattr(distribution, "create_strategy", lambda name, **tpu: asked.append(name))
  by_name = [{"distribution_strategy": name} for name in ("tpu", "mirrored")]
  for way in ({"use_tpu": True}, *by_name):
    settings = given(**way)
    settings.check_training()
    settings.create_strategy()
    assert settings.use_tpu == ("mirrored" not in way.values())
  assert asked == ["tpu", "tpu", "mirrored"]
  with pytest.raises(UsageError, match="--use_tpu and --distribution_strategy=mirrored"):
    given(use_tpu=True, distribution_strategy="mirrored").check_training()


def test_numbers_at_the_edge_are_fine(given):
  settings = given(
    train_batch_size=1,
    learning_rate=0.0,
    warmup_proportion=1.0,
    layerwise_lr_decay=1.0,
    num_train_epochs=0.01,
  )
  settings.check_training()


def test_a_batch_divides_into_its_parts(given):
  given(train_batch_size=8, gradient_accumulation_steps=4).check_training()
  settings = given(train_batch_size=8, gradient_accumulation_steps=3)
  with pytest.raises(UsageError, match="--train_batch_size=8 does not divide"):
    settings.check_training()


# ---------------------------------------------------------------------------------------------
# Settings.


def test_settings_are_frozen(given):
  settings = given(fast=True, use_tpu=True)
  with pytest.raises(dataclasses.FrozenInstanceError):
    settings.seed = 2
  assert (settings.dtype, settings.distribution_strategy) == ("auto", "tpu")
  assert (settings.given, given().given) == (
    {"output_dir", "max_seq_length", "fast", "use_tpu"},
    {"output_dir", "max_seq_length"},
  )


def test_what_stands_on_a_command_line_is_given_and_defaults_are_not():
  with flag_groups.defined_flags(lambda: flag_groups.define(FineTuningSettings)):
    command_line.parse(["script.py", "--seed=1", "--freeze=embeddings,encoder"])
    settings = flag_groups.read(FineTuningSettings, {"seed": 2, "train_batch_size": 3})
  assert (settings.seed, settings.train_batch_size) == (1, 3)
  assert settings.freeze == ["embeddings", "encoder"]
  assert settings.given == {"seed", "freeze"}


@pytest.mark.parametrize(
  ("values", "message"),
  [
    ({"learning_rat": 1.0}, "has no setting learning_rat. Did you mean learning_rate?"),
    ({"learning_rate": "high"}, "learning_rate='high': must be of type float"),
    ({"seed": True}, "seed=True: must be of type int"),
    ({"dtype": "float64"}, "dtype=float64: must be one of float32, bfloat16"),
    ({"output_dir": "gs://bucket/out"}, "output_dir=gs://bucket/out: this path is remote"),
    ({"do_train": True, "log_every_steps": 0}, "--log_every_steps=0: must be at least 1"),
  ],
)
def test_values_of_python_are_checked_as_those_of_a_command_line(given, values, message):
  files = {"vocab_file": "v", "bert_config_file": "c"}
  with pytest.raises(UsageError) as error:
    given(**files, **values).check()
  assert message in str(error.value)


def test_steps_and_warm_up(given, caplog):
  settings = given(train_batch_size=16, num_train_epochs=3.0, warmup_proportion=0.1)
  planned = settings.planned(1000)
  assert (planned.num_train_steps, planned.num_warmup_steps) == (187, 18)
  assert not caplog.records
  planned = given(num_train_epochs=0.01).planned(5, "questions")
  assert (planned.num_train_steps, planned.num_warmup_steps) == (1, 0)
  assert "5 questions, a batch of 32 and 0.01 epochs make less than one step" in caplog.text


@pytest.mark.parametrize(
  ("flags_given", "steps", "groups"),
  [
    ({}, 500, False),
    ({"fast": True}, 499, False),
    ({"fast": True}, 500, True),
    ({"fast": True, "group_by_length": False}, 500, False),
    ({"fast": True, "group_by_length": True}, 1, True),
  ],
)
def test_fast_groups_long_runs_by_length(given, flags_given, steps, groups):
  assert given(**flags_given).with_steps(steps, 0).group_by_length is groups


def test_settings_of_a_run_without_training_have_steps_for_the_model(given):
  settings = given(fast=True, warmup_proportion=1.0).without_training()
  assert (settings.num_train_steps, settings.num_warmup_steps) == (1, 1)
  assert settings.group_by_length is False


@pytest.mark.parametrize(
  ("steps", "values", "expected"),
  [
    (1999, {}, 10),
    (2000, {}, 100),
    (1999, {"report": False}, 100),
    (2000, {"save_summary_steps": 500}, 500),
  ],
)
def test_curves_of_a_short_run_with_a_report_have_more_points(given, steps, values, expected):
  settings = given(**values).with_steps(steps, 0)
  assert settings.with_summaries().save_summary_steps == expected


def test_more_steps_than_can_be_counted_are_refused(given):
  with pytest.raises(UsageError, match=r"--num_train_epochs=1e\+300 makes 9.22e\+18 steps"):
    given(num_train_epochs=1e300).planned(64)


# ---------------------------------------------------------------------------------------------
# Config, vocabulary, checkpoint.


def test_config_and_vocabulary_beside_the_checkpoint(given, tmp_path):
  (tmp_path / "bert_model.ckpt.index").touch()
  for path in (tmp_path, tmp_path / "bert_model.ckpt"):
    settings = resolution.with_model_files(given(init_checkpoint=path))
    assert settings.vocab_file == str(tmp_path / "vocab.txt")
    assert settings.bert_config_file == str(tmp_path / "bert_config.json")
    assert settings.init_folder == str(tmp_path)


def test_a_prefix_in_the_current_folder(given, tmp_path, monkeypatch):
  monkeypatch.chdir(tmp_path)
  (tmp_path / "bert_model.ckpt.index").touch()
  settings = resolution.with_model_files(given(init_checkpoint="bert_model.ckpt"))
  assert os.path.samefile(settings.vocab_file, tmp_path / "vocab.txt")


def test_files_that_were_named_stay(given, tmp_path):
  named = {"vocab_file": "mine.txt", "bert_config_file": "mine.json"}
  for init_checkpoint in (None, tmp_path):
    settings = resolution.with_model_files(given(init_checkpoint=init_checkpoint, **named))
    assert (settings.vocab_file, settings.bert_config_file) == ("mine.txt", "mine.json")
    assert settings.init_folder == (init_checkpoint and str(init_checkpoint))


def test_a_released_name_is_fetched_unless_there_is_such_a_folder(given, tmp_path, monkeypatch):
  name, fetched = "uncased_L-2_H-128_A-2", []

  def download_model(wanted, cache_dir):
    fetched.append(wanted)
    return str(tmp_path)

  monkeypatch.setattr(released_models, "download_model", download_model)
  monkeypatch.chdir(tmp_path)
  settings = resolution.with_model_files(given(init_checkpoint=name))
  assert fetched == [name]
  assert settings.init_checkpoint == str(tmp_path)
  assert settings.vocab_file == str(tmp_path / "vocab.txt")

  (tmp_path / name).mkdir()
  settings = resolution.with_model_files(given(init_checkpoint=name))
  assert fetched == [name], "the unpacked folder of 2018 is what is meant"
  assert settings.init_checkpoint == name


def run_folder(tmp_path, name="out", **facts):
  """A folder in which a run of a cased model has trained, and that is complete."""
  saved = saving.save(
    str(tmp_path / name), 1, {"v": np.zeros(2)}, {"fingerprint": {"do_lower_case": False, **facts}}
  )
  for file in ("vocab.txt", "bert_config.json"):
    (tmp_path / name / file).write_bytes((tmp_path / file).read_bytes())
  return saved


@pytest.mark.parametrize("resumes", [False, True])
def test_the_folder_of_a_run_brings_all_that_belongs_to_its_model(given, tmp_path, resumes):
  flag = "output_dir" if resumes else "init_checkpoint"
  saved = run_folder(tmp_path, "run")
  settings = given(**{flag: tmp_path / "run", "do_train": True})
  settings.check()
  settings = resolution.resolve(settings)
  assert settings.bert_config_file == str(tmp_path / "run" / "bert_config.json")
  assert settings.vocab_file == str(tmp_path / "run" / "vocab.txt")
  assert settings.do_lower_case is False, "as the run"
  assert settings.init_checkpoint == (None if resumes else saved)
  _, tokenizer = resolution.load_config_and_tokenizer(settings)
  assert tokenizer.tokenize("A b") == ["[UNK]", "b"]


@pytest.mark.parametrize("is_tpu", [False, True])
def test_each_run_warns_of_gpus_that_tensorflow_does_not_see(given, monkeypatch, caplog, is_tpu):
  monkeypatch.delenv("CUDA_VISIBLE_DEVICES", raising=False)
  monkeypatch.setattr(hardware, "gpu_memory", lambda: [hardware.Memory(1, 1)])
  with pytest.raises(UsageError, match="--vocab_file must have a value"):
    resolution.resolve(given(use_tpu=is_tpu))
  assert ("TensorFlow sees none: this run uses the CPU" in caplog.text) != is_tpu


def test_a_case_other_than_that_of_the_run_is_refused(load, given, tmp_path):
  run_folder(tmp_path)
  with pytest.raises(ValueError, match=r"do_lower_case False\..* --do_lower_case=F"):
    load(init_checkpoint=tmp_path / "out", do_lower_case=True)


def test_a_checkpoint_is_found_and_opened_once(load, tmp_path, monkeypatch):
  """`--init_checkpoint` decides the case of texts, and is checked, before it is loaded."""
  prefix = run_folder(tmp_path)
  opened = []
  whole = reading.CheckpointReader.__init__

  def open_and_count(bundle, prefix):
    opened.append(prefix)
    whole(bundle, prefix)

  monkeypatch.setattr(reading.CheckpointReader, "__init__", open_and_count)
  load(init_checkpoint=tmp_path / "out")
  assert opened == [prefix]


def test_another_checkpoint_is_not_taken_for_the_one_that_was_found(given, tmp_path):
  settings = resolution.resolve(given(init_checkpoint=run_folder(tmp_path)))
  assert settings.checkpoint.prefix == settings.init_checkpoint
  assert settings.replace(seed=7).checkpoint is settings.checkpoint
  assert settings.replace(init_checkpoint="other").checkpoint is None


def test_a_folder_without_a_checkpoint_brings_nothing(given, tmp_path):
  settings = given(output_dir=tmp_path)
  assert resolution.with_model_files(settings) is settings


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
  assert (
    f"8 lines, and vocab_size of {tmp_path}/large.json is 200: it may be another model's." in told
  )


def test_a_checkpoint_that_is_missing_is_never_a_fresh_start(load, tmp_path):
  with pytest.raises(bundle_files.CheckpointError, match=r"model\.ckpt-7\.index does not exist"):
    load(init_checkpoint=tmp_path / "model.ckpt-7")
  (tmp_path / "empty").mkdir()
  with pytest.raises(bundle_files.CheckpointError, match="empty"):
    load(init_checkpoint=tmp_path / "empty", do_lower_case=True)


def test_the_case_of_a_released_model_is_checked(load, tmp_path):
  folder = tmp_path / "cased_L-12_H-768_A-12"
  saved = saving.save(str(folder), 1, {"v": np.zeros(2)}, {})
  for suffix in (".index", ".data-00000-of-00001"):
    os.rename(saved + suffix, folder / f"bert_model.ckpt{suffix}")
  (folder / "checkpoint").unlink()
  with pytest.raises(ValueError, match="do_lower_case"):
    load(init_checkpoint=folder)
  load(init_checkpoint=folder, do_lower_case=False)
