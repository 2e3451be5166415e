"""Flags that the files of a model answer: configuration, vocabulary, case.

  settings = with_model_files(settings)      # a released model is downloaded; paths of its files
  settings = with_stored_case(settings)      # --do_lower_case, as the model was trained
  settings = with_readable_length(settings)  # --max_seq_length, where nothing is trained
  settings = with_lengths_of_run(settings)   # likewise, of a model that is fine-tuned

`run_settings.resolve` takes the first two steps.
"""

import os
from typing import TYPE_CHECKING

from absl import logging

from bert.checkpoints import model_files, model_source
from bert.io import filesystem, tokenizer_settings
from bert.model.configuration import BertConfig

if TYPE_CHECKING:
  from bert.scripts.run_settings import RunSettings


# What decides how much of a text the model reads.
_LENGTHS = ("max_seq_length", "doc_stride", "max_query_length")


def about_vocabulary(settings: "RunSettings") -> str:
  """Returns a line where no vocabulary was found: the tokenizer's, or the flag of another kind."""
  if settings.get("vocab_file", "") is not None:
    return ""
  folder, path = settings.get("init_folder"), settings.get("bert_config_file")
  if folder and (refusal := model_files.tokenizer_refusal(folder)):
    return f"\n{refusal}"
  if not path:
    return ""
  family = BertConfig.from_json_file(path).family
  flag = model_files.vocabulary_flag(family.name)
  about = f"{path} is of {family.title}, and no vocabulary lies beside the model"
  return f"\n{about}: give {flag}." if flag else ""


def with_model_files(settings: "RunSettings") -> "RunSettings":
  """Downloads a released model, and finds configuration and vocabulary beside the weights."""
  model = model_of(settings)
  if not model:
    return settings
  path = model_source.local_path(model)
  values = {}
  if settings.init_checkpoint:
    values = {"init_checkpoint": path, "init_folder": model_files.folder_of(path)}
  files = model_files.find(path)
  for flag, file in (("bert_config_file", files.config), ("vocab_file", files.vocabulary)):
    if flag in settings and settings.values[flag] is None and file:
      logging.info("--%s=%s, found with the model.", flag, file)
      values[flag] = file
  return settings.replace(**values)


def with_stored_case(settings: "RunSettings") -> "RunSettings":
  """Sets `--do_lower_case`, if it was not given, as the model was trained.

  Runs, exports and folders of transformers store it; other checkpoints do not. Without any, the
  files beside the vocabulary may state it.

  Raises:
    CheckpointError: the checkpoint is damaged.
  """
  model = model_of(settings)
  if "do_lower_case" not in settings or "do_lower_case" in settings.given:
    return settings
  from bert.checkpoints import finding, reading

  stored = None
  if settings.init_checkpoint:
    stored = (settings.checkpoint or finding.find(model)).do_lower_case
  elif model and (prefix := finding.latest(model)):
    stored = reading.open_checkpoint(prefix).do_lower_case
  vocab_file = settings.get("vocab_file")
  if stored is None and vocab_file:
    model, stored = vocab_file, tokenizer_settings.beside(vocab_file).do_lower_case
  if stored in (None, settings.do_lower_case):
    return settings
  logging.info("--do_lower_case=%s, as stored with %s.", stored, model)
  return settings.replace(do_lower_case=stored)


def with_readable_length(settings: "RunSettings", as_trained: bool = False) -> "RunSettings":
  """Sets `--max_seq_length`, if it was not given, to one that the model can read.

  For scripts that train nothing. A training run's length is a choice, and longer texts than it are
  cut, so there the default is refused instead (`run_settings.load_config`).

  Args:
    settings: as `run_settings.resolve` returns them.
    as_trained: whether the length of the run that trained comes before the default.
  """
  if "max_seq_length" in settings.given:
    return settings
  config = BertConfig.from_json_file(settings.bert_config_file)
  state = settings.checkpoint.state if as_trained and settings.checkpoint else {}
  trained = state.get("informative", {}).get("max_seq_length")
  length = min(trained or settings.max_seq_length, config.longest_sequence)
  if length == settings.max_seq_length:
    return settings
  reason = "as in training" if length == trained else "the most that the model can read"
  logging.info("--max_seq_length=%d, %s.", length, reason)
  return settings.replace(max_seq_length=length)


def with_lengths_of_run(settings: "RunSettings") -> "RunSettings":
  """Sets lengths that were not given as in the run that fine-tuned the model, if one did.

  For runs that train nothing: with other lengths the same model gives other answers. Checkpoints of
  the original, and of pre-training, say nothing about a task, and change nothing here.
  """
  from bert.checkpoints import finding, reading

  if not settings.output_dir:
    return settings
  if prefix := finding.latest(settings.output_dir):  # comes before --init_checkpoint
    state = reading.read_state(prefix)
  else:
    state = settings.checkpoint.state if settings.checkpoint else {}
  if "task_name" not in state.get("fingerprint", {}):
    return settings
  trained = state.get("informative", {})
  changed = {
    name: trained[name]
    for name in _LENGTHS
    if name in settings
    and name not in settings.given
    and trained.get(name) not in (None, settings.values[name])
  }
  if not changed:
    return settings
  words = " ".join(f"--{name}={value}" for name, value in changed.items())
  logging.info("%s, as in the run that trained the model.", words)
  return settings.replace(**changed)


def model_of(settings: "RunSettings") -> str | None:
  """`--init_checkpoint`; without it, `--output_dir` if a run resumes there."""
  folder = settings.get("output_dir")
  if settings.init_checkpoint or not folder or filesystem.is_remote(folder):
    return settings.init_checkpoint
  is_run = os.path.isdir(folder) and model_source.identify(folder).kind is model_source.Kind.RUN
  return folder if is_run else None
