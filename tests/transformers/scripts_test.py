"""What transformers' example scripts import beside models: arguments, checks, the log.

The arguments of a training without any given are in `training_arguments.json`, which
`conformance/transformers_examples.py` wrote where transformers 4.57 is.
"""

import dataclasses
import importlib.metadata
import json
import logging
import pathlib
from typing import Literal, Optional

import pytest
from absl import logging as absl_logging

from bert import transformers as room
from bert.transformers import (
  CONFIG_MAPPING,
  TF_MODEL_FOR_MASKED_LM_MAPPING,
  BertConfig,
  EvalPrediction,
  HfArgumentParser,
  PushToHubCallback,
  TFBertForMaskedLM,
  TFTrainingArguments,
  hf_argparser,
)
from bert.transformers.trainer_utils import (
  IntervalStrategy,
  get_last_checkpoint,
  is_main_process,
  set_seed,
)
from bert.transformers.utils import (
  CONFIG_NAME,
  TF2_WEIGHTS_NAME,
  check_min_version,
  send_example_telemetry,
)
from bert.transformers.utils.versions import require_version

THERE = json.loads((pathlib.Path(__file__).parent / "training_arguments.json").read_text("utf-8"))
# What is derived there for PyTorch's trainer alone.
NOT_COMPARED = ("report_to", "debug", "fsdp", "fsdp_config", "disable_tqdm")


@dataclasses.dataclass
class Arguments:
  name: str
  count: Optional[int] = None  # noqa: UP045 - as scripts have it
  off: bool = False
  on: bool = True
  unknown: bool | None = None
  sizes: list[int] = dataclasses.field(default_factory=lambda: [1])
  colour: Literal["red", "green"] = "red"
  when: IntervalStrategy | str = "no"
  long_name: float = hf_argparser.HfArg(default=0.5, aliases=["-l"], help="a number")


@pytest.mark.parametrize(
  ("line", "changed"),
  [
    ("", {}),
    ("--count 3 --off --sizes 4 5", {"count": 3, "off": True, "sizes": [4, 5]}),
    ("--off false --on no --unknown YES", {"off": False, "on": False, "unknown": True}),
    ("--no_on --colour green --when epoch", {"on": False, "colour": "green", "when": "epoch"}),
    ("--no-on --long-name 2", {"on": False, "long_name": 2.0}),
    ("-l 1e-3 --long_name=3", {"long_name": 3.0}),
  ],
)
def test_words_become_the_fields_of_a_dataclass(line, changed):
  (found,) = HfArgumentParser(Arguments).parse_args_into_dataclasses(["--name=a", *line.split()])
  assert found == Arguments("a", **changed)


@pytest.mark.parametrize("line", ["", "--name a --count b", "--name a --colour blue --off maybe"])
def test_words_that_do_not_fit_end_the_script(line, capsys):
  with pytest.raises(SystemExit):
    HfArgumentParser(Arguments).parse_args_into_dataclasses(line.split())
  assert "error: " in capsys.readouterr().err


def test_what_a_parser_reads_and_returns(tmp_path):
  file = tmp_path / "script.args"
  file.write_text("--name file --count 1")
  parser = HfArgumentParser([Arguments, TFTrainingArguments])
  parser.add_argument("--other", default="x")
  found = parser.parse_args_into_dataclasses(
    ["--seed", "3", "--count", "2", "rest"], return_remaining_strings=True, args_filename=str(file)
  )
  assert (found[0], found[1].seed) == (Arguments("file", count=2), 3)
  assert (vars(found[2]), found[3]) == ({"other": "x"}, ["rest"])
  with pytest.raises(ValueError, match="rest"):
    parser.parse_args_into_dataclasses(["--name", "a", "rest"])
  file.write_text(json.dumps({"name": "json", "learning_rate": 0.1}))
  own, training = parser.parse_json_file(file)
  assert (own.name, training.learning_rate) == ("json", 0.1)
  with pytest.raises(ValueError, match="nothing"):
    parser.parse_dict({"name": "a", "nothing": 1})


def test_a_training_has_the_arguments_of_transformers():
  found = TFTrainingArguments("out").to_dict()
  assert found.pop("logging_dir").startswith("out/runs/")
  assert set(found) == set(THERE)
  assert {k: v for k, v in found.items() if k not in NOT_COMPARED} == {
    k: v for k, v in THERE.items() if k not in NOT_COMPARED
  }


def test_what_is_derived_of_arguments():
  found = TFTrainingArguments(
    "~/out", eval_strategy="steps", warmup_ratio=0.1, load_best_model_at_end=True, hub_token="me"
  )
  assert (found.do_eval, found.eval_steps, found.greater_is_better) == (True, 500, False)
  assert not found.output_dir.startswith("~")
  assert (found.get_warmup_steps(105), found.n_replicas, found.train_batch_size) == (11, 1, 8)
  assert found.strategy is found.strategy
  assert found.get_process_log_level() == logging.WARNING
  assert "eval_steps=500,\n" in str(found)
  assert "'me'" not in str(found)
  assert "me" not in json.loads(found.to_json_string()).values()


@pytest.mark.parametrize(
  ("given", "message"),
  [
    ({"eval_strategy": "sometimes"}, "sometimes"),
    ({"fp16": True, "bf16": True}, "fp16 and bf16"),
    ({"warmup_ratio": 2}, "warmup_ratio"),
    ({"logging_steps": 0}, "logging_steps"),
    ({"save_steps": 1.5}, "save_steps"),
    ({"load_best_model_at_end": True}, "load_best_model_at_end"),
  ],
)
def test_arguments_that_contradict_each_other(given, message):
  with pytest.raises(ValueError, match=message):
    TFTrainingArguments("out", **given)


def test_names_by_the_modules_of_transformers():
  assert (CONFIG_NAME, room.TF2_WEIGHTS_NAME) == ("config.json", TF2_WEIGHTS_NAME)
  assert CONFIG_MAPPING["bert"] is BertConfig
  assert TF_MODEL_FOR_MASKED_LM_MAPPING[BertConfig] is TFBertForMaskedLM
  assert "distilbert" in [config.model_type for config in TF_MODEL_FOR_MASKED_LM_MAPPING]
  assert (set_seed, room.__version__) == (room.set_seed, "4.57.6")
  assert send_example_telemetry("run_glue", object(), framework="tensorflow") is None


def test_versions():
  check_min_version("4.52.0.dev0")
  require_version("numpy>=1.20,<99", "a hint")
  require_version("python>=3.9")
  with pytest.raises(ImportError, match=r"5\.1"):
    check_min_version("5.1")
  with pytest.raises(ImportError, match=r"numpy>=99 is needed.*a hint"):
    require_version("numpy>=99", "a hint")
  with pytest.raises(importlib.metadata.PackageNotFoundError):
    require_version("no-such-package")
  with pytest.raises(ValueError, match="=="):
    require_version("numpy==")


def test_checkpoints_and_processes(tmp_path):
  assert get_last_checkpoint(tmp_path) is None
  for name in ("checkpoint-9", "checkpoint-10", "my-checkpoint-11", "checkpoint-x"):
    (tmp_path / name).mkdir()
  (tmp_path / "checkpoint-12").touch()
  assert get_last_checkpoint(tmp_path) == str(tmp_path / "checkpoint-10")
  assert [is_main_process(rank) for rank in (-1, 0, 1)] == [True, True, False]
  predictions, labels = EvalPrediction(predictions=[1], label_ids=[2])
  assert (predictions, labels) == ([1], [2])


def test_nothing_is_sent_to_the_hub():
  with pytest.raises(ValueError, match="nothing is sent"):
    PushToHubCallback(output_dir="out", tokenizer=None)


def test_the_log_by_the_names_of_transformers(monkeypatch):
  log = room.utils.logging
  loggers = [log.get_logger(), absl_logging.get_absl_logger()]
  before = [(logger.level, logger.propagate, list(logger.handlers)) for logger in loggers]
  lines = []
  handler = logging.Handler()
  monkeypatch.setattr(handler, "emit", lambda record: lines.append(record.getMessage()))
  try:
    log.set_verbosity_info()
    log.disable_default_handler()
    log.add_handler(handler)
    absl_logging.info("shown")
    log.set_verbosity_error()
    absl_logging.warning("not shown")
    logging.getLogger("transformers.tokenization").error("shown, too")
    assert (lines, log.get_verbosity()) == (["shown", "shown, too"], logging.ERROR)
  finally:
    absl_logging.set_verbosity(absl_logging.WARNING)
    for logger, (level, propagate, handlers) in zip(loggers, before, strict=True):
      logger.setLevel(level)
      logger.propagate, logger.handlers[:] = propagate, handlers


def test_where_masked_words_are_all_of_pre_training():
  made = room.TF_MODEL_FOR_PRETRAINING_MAPPING
  for family in ("Roberta", "DistilBert"):
    config = getattr(room, f"{family}Config")
    expected = getattr(room, f"TF{family}ForMaskedLM")
    assert made[config] is expected
    assert room.TFAutoModelForPreTraining.class_of(config()) is expected
