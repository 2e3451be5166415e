"""A run of each script on tiny files: its flags and its data.

every_script.write_files(folder)
every_script.script("predict").run(**every_script.flags("predict", folder, tmp_path))
"""

import importlib
import pathlib
from collections.abc import Mapping
from typing import Any

import numpy as np

from bert import __main__ as bert_command
from tests.kit import healthy_run, teachers
from tests.kit.script_runs import Script

MODEL = {"bert_config_file": "{}/bert_config.json", "vocab_file": "{}/vocab.txt"}
_WEIGHTS = {"init_checkpoint": "{}/model"}
_RUN = {**MODEL, **_WEIGHTS, "output_dir": "<>/out", "max_seq_length": 16}
_ONE_STEP = {"train_batch_size": 40, "num_train_epochs": 1}

# Script -> its words and flags: `{}` is where the files are, `<>` a local folder to write to.
RUNS = {
  "run_classifier": {
    **_RUN,
    **_ONE_STEP,
    **{"task_name": "csv", "data_dir": "{}/tables", "do_train": True, "do_eval": True},
  },
  "run_ner": {
    **_RUN,
    **_ONE_STEP,
    **{"train_file": "{}/conll/train.conll", "dev_file": "{}/conll/dev.conll"},
    **{"test_file": "{}/conll/dev.conll"},
    **{"do_train": True, "do_eval": True, "do_predict": True},
  },
  "run_swag": {
    **_RUN,
    **_ONE_STEP,
    **{"train_file": "{}/swag.csv", "dev_file": "{}/swag.csv", "test_file": "{}/swag.csv"},
    **{"do_train": True, "do_eval": True, "do_predict": True},
  },
  "run_similarity": {
    **_RUN,
    **_ONE_STEP,
    **{"train_file": "{}/swag.csv", "dev_file": "{}/swag.csv", "test_file": "{}/swag.csv"},
    **{"text_a_column": "sent1", "text_b_column": "sent2", "label_column": "label", "max_score": 3},
    **{"do_train": True, "do_eval": True, "do_predict": True},
  },
  "run_squad": {
    **_RUN,
    **_ONE_STEP,
    **{"train_file": "{}/squad/train.json", "predict_file": "{}/squad/train.json"},
    **{"do_train": True, "do_predict": True, "max_query_length": 8, "doc_stride": 4},
  },
  "run_pretraining": {
    **_RUN,
    **{"input_file": "{}/records/*.tfrecord", "eval_input_file": "{}/records/a.tfrecord"},
    **{"max_predictions_per_seq": 3, "do_train": True, "do_eval": True},
    **{"num_train_steps": 1, "num_warmup_steps": 1, "max_eval_steps": 1, "train_batch_size": 4},
  },
  "distill": {
    **_ONE_STEP,
    **{"teacher": "{}/teacher", "data_dir": "{}/tables", "unlabelled_file": "{}/corpus.txt"},
    **{"num_hidden_layers": 1, "do_train": True, "do_eval": True, "output_dir": "<>/out"},
  },
  "extract_features": {
    **MODEL,
    **_WEIGHTS,
    **{"input_file": "{}/corpus.txt", "output_file": "{}/vectors.jsonl", "layers": "-1"},
    "max_seq_length": 16,
  },
  "predict": {
    **MODEL,
    **_WEIGHTS,
    **{"task": "vectors", "input_file": "{}/corpus.txt", "output_file": "{}/predicted.jsonl"},
    "max_seq_length": 16,
  },
  "predict_masked": {
    **MODEL,
    **_WEIGHTS,
    **{"input_file": "{}/masked.txt", "output_file": "{}/masked.jsonl", "max_seq_length": 16},
  },
  "attention_maps": {**MODEL, **_WEIGHTS, "text": "ada bob.", "output_file": "<>/a.png"},
  "export_hub": {**MODEL, **_WEIGHTS, "export_dir": "<>/export", "max_seq_length": 16},
  "convert_checkpoint": {"command": "strip", **MODEL, **_WEIGHTS, "output_dir": "<>/small"},
  "doctor": {
    **MODEL,
    **_WEIGHTS,
    **{"data_dir": "{}/tables", "task_name": "csv", "max_seq_length": 16},
  },
  "create_pretraining_data": {
    **{"input_file": "{}/corpus.txt,{}/c*.txt", "vocab_file": "{}/vocab.txt"},
    "output_file": "<>/a.tfrecord",
  },
  "create_vocab": {
    **{"input_file": "{}/corpus.txt", "extend": "{}/vocab.txt", "output_file": "<>/vocab.txt"},
    **{"extend_by": "append", "num_new": 2},
  },
}


def _add_heads(tensors) -> None:
  """Those of pre-training, so that masked words can be predicted."""
  width, words = healthy_run.CONFIG["hidden_size"], healthy_run.CONFIG["vocab_size"]
  rng = np.random.default_rng(2)
  shapes = {
    "cls/predictions/output_bias": [words],
    "cls/predictions/transform/dense/kernel": [width, width],
    "cls/predictions/transform/dense/bias": [width],
    "cls/predictions/transform/LayerNorm/beta": [width],
    "cls/predictions/transform/LayerNorm/gamma": [width],
    "cls/seq_relationship/output_weights": [2, width],
    "cls/seq_relationship/output_bias": [2],
  }
  tensors |= {name: rng.normal(size=shape).astype(np.float32) for name, shape in shapes.items()}


def write_files(folder: pathlib.Path) -> pathlib.Path:
  """Writes a healthy run, with more for some scripts; returns the folder."""
  healthy_run.write(folder)
  healthy_run.save_checkpoint(folder, _add_heads)
  task = {"task_name": "csv", "labels": ["0", "1"], "problem_type": "classification"}
  heads = {"output_weights": (2, 16), "output_bias": (2,)}
  teachers.write(folder / "teacher", healthy_run.VOCAB, task, heads, {"max_seq_length": 16})
  (folder / "masked.txt").write_text("ada [MASK] cat.\n")
  (folder / "CoLA").mkdir()
  healthy_run.write_lines(folder / "CoLA/train.tsv", ["a\t1\t\tada bob", "b\t0\t*\tcat dog"])
  header = "sent1,sent2,ending0,ending1,ending2,ending3,label"
  rows = [f"{text},ada,bob,cat,dog,elk,{i % 4}" for i, text in enumerate(healthy_run.TEXTS[:8])]
  healthy_run.write_lines(folder / "swag.csv", [header, *rows])
  return folder


def flags(name: str, files, folder: pathlib.Path, **changed) -> dict:
  """Returns the flags of a script's run, a key of `RUNS`; `changed` have other values.

  The files are the folder of `write_files`, or its address; the run writes to `folder`.
  """
  filled = {
    flag: value.replace("{}", str(files)).replace("<>", str(folder))
    if isinstance(value, str)
    else value
    for flag, value in RUNS[name].items()
  }
  return {**filled, **changed}


def without_model_files(given: Mapping[str, Any]) -> dict[str, Any]:
  """The flags but those of the files that are found with a model."""
  return {flag: value for flag, value in given.items() if flag not in MODEL}


def module(name: str):
  """The script that a word of the command runs."""
  return importlib.import_module(bert_command.words()[name].module)


def script(name: str) -> Script:
  """The script, to be run in this process."""
  return Script(module(name))
