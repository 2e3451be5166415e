"""The SavedModels of a checkpoint: encoder and preprocessing of any BERT, and models of tasks."""

import os
from collections.abc import Mapping
from typing import Any

from absl import logging

from bert.model.configuration import BertConfig
from bert.tasks import kinds


def export_hub_models(
  export_dir: str,
  config: BertConfig,
  checkpoint_path: str,
  vocab_file: str,
  do_lower_case: bool,
  max_seq_length: int,
  tf_text_tokenizer: bool = False,
) -> None:
  """Writes `encoder/` and `preprocess/` into `export_dir`.

  Args:
    export_dir: made if it does not exist.
    config: of the model.
    checkpoint_path: a checkpoint that holds the whole encoder.
    vocab_file: of the model.
    do_lower_case: whether the model is uncased.
    max_seq_length: the default of the preprocessing.
    tf_text_tokenizer: see `hub_preprocess.Preprocessor`.
  """
  from bert.exporting import hub_encoder, hub_preprocess

  hub_encoder.export_encoder(
    os.path.join(export_dir, "encoder"), config, checkpoint_path, vocab_file, do_lower_case
  )
  hub_preprocess.export_preprocess(
    os.path.join(export_dir, "preprocess"),
    vocab_file,
    do_lower_case,
    max_seq_length,
    tf_text_tokenizer,
  )
  logging.info("Exported the encoder and its preprocessing to %s.", export_dir)


def export_task_model(
  export_dir: str,
  config: BertConfig,
  checkpoint_path: str,
  vocab_file: str,
  do_lower_case: bool,
  description: Mapping[str, Any],
) -> None:
  """Writes `task/` into `export_dir`.

  The other arguments are those of `export_hub_models`.

  Args:
    description: `kind`, a name in `tasks/kinds.py`, and further arguments of its `model`.
  """
  options = dict(description)
  model_class = kinds.find(options.pop("kind")).model_class()
  model = model_class(config, vocab_file, do_lower_case, **options)
  model.export(os.path.join(export_dir, "task"), checkpoint_path)
