"""The `run_*` scripts on several devices: tiny data for each, jobs of two processes, comparisons.

  python -m tools.several_devices mirrored FOLDER run_ner run_swag      two replicas
  python -m tools.several_devices one_replica FOLDER run_ner            one
  TF_CONFIG=... python -m tools.several_devices multi_worker FOLDER ...  one worker of a job

A script `NAME` reads `FOLDER/data_NAME` and leaves its files in `FOLDER/NAME`. Replicas draw other
dropout than one device does, so there is none here. Replicas are on GPUs where there are any, else
on the CPU; the last line of standard output says which.
"""

import contextlib
import json
import os
import pathlib
import subprocess
import sys

import numpy as np
import pytest

from benchmarks.http_load import free_ports
from bert import run_classifier, run_ner, run_pretraining, run_similarity, run_squad, run_swag
from bert.checkpoints import finding
from bert.io import record_files
from bert.model import heads
from bert.scripts import command_line
from tests.kit import (
  tiny_bert,
  tiny_choices,
  tiny_entities,
  tiny_pairs,
  tiny_pretraining,
  tiny_questions,
  tiny_sentences,
)
from tests.kit.event_files import scalars_in
from tests.kit.paths import ROOT
from tests.kit.script_runs import Script, results_in, table, tensors

SCRIPTS = {
  "run_classifier": run_classifier,
  "run_pretraining": run_pretraining,
  "run_squad": run_squad,
  "run_ner": run_ner,
  "run_swag": run_swag,
  "run_similarity": run_similarity,
}
KITS = {
  "run_classifier": tiny_sentences,
  "run_pretraining": tiny_pretraining,
  "run_squad": tiny_questions,
  "run_ner": tiny_entities,
  "run_swag": tiny_choices,
  "run_similarity": tiny_pairs,
}


# ---------------------------------------------------------------------------------------------
# Data and flags. The last batch of every evaluation and prediction is a short one.


def write_data(name: str, folder: pathlib.Path) -> None:
  """Writes what a script reads: a model without dropout, a vocabulary, files of its task."""
  folder = data_folder(name, folder)
  folder.mkdir()
  config = {**KITS[name].CONFIG, **tiny_bert.NO_DROPOUT}
  (folder / "bert_config.json").write_text(json.dumps(config))
  if name != "run_pretraining":
    (folder / "vocab.txt").write_text("".join(f"{token}\n" for token in KITS[name].VOCAB))
  _WRITERS[name](folder)


def data_folder(name, folder):
  return folder / f"data_{name}"


def _write_pairs(folder):
  tiny_sentences.write_mrpc(folder, {"train": 20, "dev": 9, "test": 6})


def _write_masked(folder):
  records = tiny_pretraining.make_records(22)  # with one to three masked words
  record_files.write_records(folder / "masked.tfrecord", records)


def _write_squad(folder):
  for split, count in (("train", 20), ("dev", 9)):
    tiny_questions.write_squad(folder / f"{split}.json", tiny_questions.contexts(count, count))


def _write_conll(folder):
  for split, count in (("train", 20), ("dev", 9), ("test", 5)):
    tiny_entities.write_conll(folder / f"{split}.conll", tiny_entities.sentences(count, count))


def _write_swag(folder):
  for split, count in (("train", 20), ("val", 9), ("test", 5)):
    rows = tiny_choices.questions(count, count)
    columns = [c for c in rows[0] if split != "test" or c != "label"]
    tiny_choices.write_csv(folder / f"{split}.csv", rows, columns)


def _write_scored_pairs(folder):
  for split, count in (("train", 20), ("dev", 9), ("test", 5)):
    tiny_pairs.write(folder / f"{split}.csv", tiny_pairs.pairs(count, count))


_WRITERS = {
  "run_classifier": _write_pairs,
  "run_pretraining": _write_masked,
  "run_squad": _write_squad,
  "run_ner": _write_conll,
  "run_swag": _write_swag,
  "run_similarity": _write_scored_pairs,
}


def flags_of(name: str, folder: pathlib.Path) -> dict:
  """Flags of a script, its output_dir included."""
  data = data_folder(name, folder)
  shared = {
    "bert_config_file": data / "bert_config.json",
    "output_dir": folder / name,
    "do_train": True,
    "do_eval": True,
    "max_seq_length": 16,
    "train_batch_size": 8,
    "learning_rate": 0.001,
    "save_summary_steps": 1,
    "report": False,
  }
  if name == "run_pretraining":
    records = {"input_file": data / "masked.tfrecord", "max_predictions_per_seq": 3}
    return {**shared, **records, "num_train_steps": 4, "num_warmup_steps": 2, "max_eval_steps": 2}
  shared |= {"vocab_file": data / "vocab.txt", "do_predict": True, "num_train_epochs": 2.0}
  if name == "run_squad":
    files = {"train_file": data / "train.json", "predict_file": data / "dev.json"}
    windows = {"max_seq_length": 24, "doc_stride": 8, "max_query_length": 4}
    return {**shared, **files, **windows}
  shared["data_dir"] = data
  return {**shared, "task_name": "MRPC"} if name == "run_classifier" else shared


# ---------------------------------------------------------------------------------------------
# Runs.


@contextlib.contextmanager
def heads_without_dropout():
  """The dropout of the heads is a constant of the original, and no flag."""
  original, heads.dropout = heads.dropout, lambda x, rate: x
  try:
    yield
  finally:
    heads.dropout = original


def run_on_one_device(name: str, folder: pathlib.Path, reads_from: pathlib.Path) -> None:
  """Runs a script in this process; its data are in `reads_from`, its files go into `folder`."""
  with heads_without_dropout():
    Script(SCRIPTS[name]).run_well(**{**flags_of(name, reads_from), "output_dir": folder / name})


def run_script(name: str, folder: pathlib.Path, strategy: str):
  """Runs a script in this process; returns its exit code."""
  argv = [name, *(f"--{flag}={value}" for flag, value in flags_of(name, folder).items())]
  script = SCRIPTS[name]
  try:
    with heads_without_dropout():
      command_line.run(
        script.main, script.define_flags, [*argv, f"--distribution_strategy={strategy}"]
      )
  except SystemExit as left:
    return left.code


def run_job(program: str, arguments: list, folder: pathlib.Path) -> list[tuple[int, str]]:
  """Runs a module as the two workers of a job; (exit code, stderr) of each."""
  addresses = [f"127.0.0.1:{port}" for port in free_ports(2)]
  workers, logs = [], [folder / f"{arguments[0]}-{index}.stderr" for index in range(2)]
  for index in range(2):
    config = {"cluster": {"worker": addresses}, "task": {"type": "worker", "index": index}}
    with logs[index].open("w") as log:
      workers.append(
        subprocess.Popen(
          [sys.executable, "-m", program, *arguments],
          env=environment(TF_CONFIG=json.dumps(config)),
          stderr=log,
        )
      )
  try:
    codes = [worker.wait(timeout=1200) for worker in workers]
  finally:
    for worker in workers:
      worker.kill()
  return [(code, log.read_text()) for code, log in zip(codes, logs, strict=True)]


def environment(**more) -> dict[str, str]:
  """Of a process that imports from this project and its tests."""
  return {**os.environ, "PYTHONPATH": str(ROOT), **more}


# ---------------------------------------------------------------------------------------------
# Comparisons of a folder that several devices wrote with one that a single device wrote.


# Added to all scores of a softmax, it changes none: its gradient is what rounding leaves of zero.
_WITHOUT_GRADIENT = "cls/squad/output_bias"


def last_values(folder) -> dict[str, np.ndarray]:
  """The newest checkpoint's tensors."""
  return tensors(finding.latest(str(folder)))


def assert_same_training(several: pathlib.Path, one: pathlib.Path) -> None:
  """The losses of all steps, and the variables at the end, agree to 1e-5."""
  losses = [
    {step: values["loss"] for step, values in scalars_in(folder).items()}
    for folder in (several, one)
  ]
  assert len(losses[0]) >= 4
  assert losses[0] == pytest.approx(losses[1], rel=1e-5)
  found, expected = last_values(several), last_values(one)
  assert found.keys() == expected.keys()
  for name in expected:
    atol = 1e-5 if name.startswith(_WITHOUT_GRADIENT) else 1e-6
    np.testing.assert_allclose(found[name], expected[name], 1e-5, atol, err_msg=name)


def assert_same_files(several: pathlib.Path, one: pathlib.Path) -> None:
  """Each file is there once; records and labels are equal byte by byte, scores to 1e-5."""
  files = [
    sorted(str(f.relative_to(folder)) for f in folder.rglob("*")) for folder in (several, one)
  ]
  events = [[f for f in names if "events.out." in f] for names in files]
  assert 1 <= len(events[0]) == len(events[1])  # of training, and mostly of evaluation
  assert set(files[0]) - set(events[0]) == set(files[1]) - set(events[1])
  results = [results_in(folder / "eval_results.txt") for folder in (several, one)]
  assert results[0] == pytest.approx(results[1], rel=1e-5)
  for name in ("label_map.json", "predictions.json", "predictions.conll"):
    if (one / name).exists():
      assert (several / name).read_bytes() == (one / name).read_bytes(), name
  for path in one.glob("*.tf_record"):
    assert (several / path.name).read_bytes() == path.read_bytes(), path.name
  if (one / "test_results.tsv").exists():
    scores = [np.array(table(f / "test_results.tsv"), np.float32) for f in (several, one)]
    np.testing.assert_allclose(*scores, rtol=1e-5)


# ---------------------------------------------------------------------------------------------
# A program that runs scripts.


# What the tests call `--distribution_strategy=mirrored` on so many devices.
MIRRORED = {"one_replica": 1, "mirrored": 2}
_MEGABYTES = 2048  # of a part of a GPU: enough for these models


def make_devices(count: int) -> str:
  """Leaves this process as many devices to compute on; returns what they are.

  GPUs if there are any: several, or else parts of the first, between which TensorFlow adds without
  NCCL; so it does if the process sees more GPUs than it uses (`visible_gpus`). Without a GPU,
  logical devices of the CPU.
  """
  import tensorflow as tf

  gpus = tf.config.list_physical_devices("GPU")
  if len(gpus) >= count:
    tf.config.set_visible_devices(gpus[:count], "GPU")
    return f"{count} GPU(s)"
  device = [*gpus, *tf.config.list_physical_devices("CPU")][0]
  limit = {"memory_limit": _MEGABYTES} if gpus else {}
  parts = [tf.config.LogicalDeviceConfiguration(**limit) for _ in range(count)]
  tf.config.set_logical_device_configuration(device, parts)
  return f"{count} parts of one GPU, without NCCL" if gpus else f"{count} logical CPU device(s)"


def visible_gpus(count: int) -> str:
  """CUDA_VISIBLE_DEVICES for a process that is to see no more than so many GPUs of this one's."""
  visible = os.environ.get("CUDA_VISIBLE_DEVICES")
  # CUDA stops at the first number without a GPU.
  numbers = map(str, range(count)) if visible is None else visible.split(",")
  return ",".join(list(numbers)[:count])


def main(strategy: str, folder: str, *names: str) -> int:
  """Runs the scripts one after the other; returns the first exit code that is not 0."""
  devices = make_devices(MIRRORED[strategy]) if strategy in MIRRORED else strategy
  for name in names:
    strategy_flag = "mirrored" if strategy in MIRRORED else strategy
    code = run_script(name, pathlib.Path(folder), strategy_flag)
    if code:
      return code
  print(devices)
  return 0


if __name__ == "__main__":
  sys.exit(main(*sys.argv[1:]))
