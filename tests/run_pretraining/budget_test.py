"""Tests of run_pretraining.py within a budget: --train_minutes, its companions, --recipe=budget."""

import pytest

from bert import run_pretraining
from bert.checkpoints import finding, reading
from bert.io.record_files import write_records
from bert.model.configuration import BertConfig
from bert.model.training_flops import pretraining_flops
from bert.scripts import time_budget
from bert.scripts.run_settings import RunSettings
from tests.kit.event_files import scalars_in
from tests.kit.made_up_clock import MadeUpClock, MadeUpTime
from tests.kit.script_runs import Script, results_in
from tests.kit.tiny_pretraining import CONFIG, make_records

script = Script(run_pretraining)
run_well, error_of = script.run_well, script.error_of


@pytest.fixture
def by_the_clock(model):
  """The flags of a run without those that count steps."""
  return {name: value for name, value in model.items() if not name.startswith("num_")}


@pytest.fixture
def made_up_time(monkeypatch):
  """A minute has 25 steps: the first takes 5 s, others 2, and both checkpoints 3."""
  monkeypatch.setattr(
    time_budget,
    "clock_of",
    lambda settings: (
      settings.train_minutes and MadeUpClock(60 * settings.train_minutes, MadeUpTime(first=5.0))
    ),
  )


@pytest.mark.ci
def test_a_minute_then_one_more(by_the_clock, made_up_time, tmp_path):
  values = {**by_the_clock, "output_dir": tmp_path, "do_train": True, "warmup_proportion": 0.5}
  done = run_well(**values, train_minutes=1, do_eval=True, max_eval_steps=2, save_summary_steps=1)
  assert "  Num minutes = 1" in done.err
  assert "Num steps" not in done.err
  assert finding.latest(str(tmp_path)).endswith("-25")
  assert results_in(tmp_path / "eval_results.txt")["global_step"] == 25
  rates = {step: scalars["learning_rate"] for step, scalars in scalars_in(tmp_path).items()}
  # The last checkpoint's 3 s are no steps: step 12 begins after 28 of 57 s, half of it is warm-up.
  assert max(rates, key=rates.get) == 12
  assert rates[12] == pytest.approx(0.01 * 28 / 57 / 0.5)
  assert rates[25] == pytest.approx(0.01 * (1 - 54 / 57), rel=1e-4)

  assert "its time was used up" in run_well(**values, train_minutes=1).err
  done = run_well(**values, train_minutes=2)
  assert "train_minutes was 1.0, now 2.0" in done.err
  assert reading.read_state(finding.latest(str(tmp_path)))["run"]["trained_seconds"] == 120


@pytest.mark.parametrize(
  ("change", "said"),
  [
    ({"train_minutes": 0}, "--train_minutes=0.0: must be a positive number."),
    ({"train_minutes": -5}, "--train_minutes=-5.0: must be a positive number."),
    (
      {"train_minutes": 5, "num_train_steps": 9},
      "--num_train_steps cannot be combined with --train_minutes: both say when training ends.",
    ),
    (
      {"train_minutes": 5, "num_warmup_steps": 9},
      "--num_warmup_steps cannot be combined with --train_minutes: how many steps there will be is "
      "not known. Give --warmup_proportion.",
    ),
    (
      {"train_minutes": 5, "distribution_strategy": "mirrored"},
      "--train_minutes works on one device, not with --distribution_strategy=mirrored.",
    ),
    (
      {"train_minutes": 5, "iterations_per_loop": 10},
      "--iterations_per_loop=10 cannot be combined with --train_minutes: the clock is read",
    ),
    ({"warmup_proportion": 1.5}, "--warmup_proportion=1.5: must be between 0 and 1."),
    (
      {"warmup_proportion": 0.1, "num_warmup_steps": 1},
      "--num_warmup_steps and --warmup_proportion say the same: give one of them.",
    ),
    ({"initializer_range": 0}, "--initializer_range=0.0: must be a positive number."),
    ({"dropout": 1}, "--dropout=1.0: must be at least 0 and below 1."),
    (
      {"first_batch_size": 3},
      "--first_batch_size=3 must be at least 1 and divide --train_batch_size=8.",
    ),
    (
      {"first_batch_size": 2, "gradient_accumulation_steps": 2},
      "--first_batch_size works on one device",
    ),
  ],
)
def test_one_message_before_any_work(by_the_clock, tmp_path, change, said):
  values = {**by_the_clock, "output_dir": tmp_path / "out", "do_train": True, **change}
  assert said in error_of(**values)
  assert not (tmp_path / "out").exists()


def test_the_recipe_needs_records_without_masks_and_says_so(model, unmasked, tmp_path):
  files = {"output_dir": tmp_path / "out", "vocab_file": unmasked["vocab_file"]}
  values = {**model, **files, "recipe": "budget", "do_train": True, "train_batch_size": 32}
  message = error_of(**values)
  said = (
    "its sequences have masks already, but --recipe=budget draws them while reading. Write the "
    "records with create_pretraining_data.py --dynamic_masking, or give --nodynamic_masking "
  )
  assert said in message


@pytest.mark.ci
def test_flops_and_tokens_are_counted_over_all_starts(model, tmp_path):
  records = tmp_path / "equal.tfrecord"
  write_records(records, make_records(16, masked_each=2, longest=8))
  values = {**model, "input_file": records, "output_dir": tmp_path / "out", "do_train": True}
  for steps in (1, 3):
    done = run_well(**{**values, "num_train_steps": steps}, save_summary_steps=1)
  config = BertConfig(**CONFIG)
  flops = [pretraining_flops(config, 64 * n, 512 * n, 16 * n, 8 * n) for n in (1, 2, 3)]
  found = scalars_in(tmp_path / "out")
  assert [found[step]["total_GFLOP"] for step in (1, 2, 3)] == pytest.approx(
    [1e-9 * each for each in flops], rel=1e-5
  )
  assert [found[step]["total_tokens"] for step in (1, 2, 3)] == [64, 128, 192]
  assert "total_tokens: 192 in 3 steps." in done.err


@pytest.mark.usefixtures("fake_estimator")
def test_held_out_records_keep_their_masks(unmasked, tmp_path):
  held_out = tmp_path / "held_out.tfrecord"
  write_records(held_out, make_records(12, predictions=5))
  values = {**unmasked, "eval_input_file": held_out, "output_dir": tmp_path / "out"}
  values |= {"do_train": True, "do_eval": True, "max_eval_steps": 1, "masked_lm_prob": 0.4}
  run_well(**values)
  plain = {name: value for name, value in unmasked.items() if "mask" not in name}
  plain |= {"max_predictions_per_seq": 5, "init_checkpoint": tmp_path / "out"}
  plain |= {"input_file": held_out, "output_dir": tmp_path / "plain"}
  run_well(**plain, do_eval=True, max_eval_steps=1)
  found, expected = (results_in(tmp_path / x / "eval_results.txt") for x in ("out", "plain"))
  assert found["masked_lm_loss"] == expected["masked_lm_loss"]


def test_dropout_and_initial_weights_are_those_of_the_training_alone():
  config = BertConfig(vocab_size=10)
  settings = RunSettings({"dropout": 0.25, "initializer_range": 0.05})
  trained = time_budget.trained_config(settings, config)
  assert (trained.hidden_dropout_prob, trained.attention_probs_dropout_prob) == (0.25, 0.25)
  assert trained.initializer_range == 0.05
  assert (config.hidden_dropout_prob, config.initializer_range) == (0.1, 0.02)
  unset = settings.replace(dropout=None, initializer_range=None)
  assert vars(time_budget.trained_config(unset, config)) == vars(config)
