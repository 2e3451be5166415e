"""Resolves settings: which files are meant, where they are, and what the model says.

  settings = resolve(settings)               # files found or downloaded, workers met, dtype chosen
  config, tokenizer = load_config_and_tokenizer(settings)

Its steps, for scripts that need a part:

  settings = with_model_files(settings)      # a released model is downloaded; paths of its files
  settings = with_stored_case(settings)      # do_lower_case, as the model was trained
  settings = with_readable_length(settings)  # max_seq_length, where nothing is trained
  settings = with_lengths_of_run(settings)   # likewise, of a model that is fine-tuned
"""

from typing import TypeVar

from absl import logging

from bert import tokenization
from bert.checkpoints import model_files, model_source
from bert.checks import at_start
from bert.io import tokenizer_settings
from bert.model import variable_shapes
from bert.model.configuration import BertConfig
from bert.scripts.run_settings import (
  ModelFiles,
  ModelSettings,
  OptimizerSettings,
  RunSettings,
  TpuSwitch,
)
from bert.scripts.settings import UsageError
from bert.text.tokenizer import Tokenizer
from bert.training import hardware, variable_groups

Model = TypeVar("Model", bound=ModelFiles)
Run = TypeVar("Run", bound=RunSettings)


def resolve(settings: Model) -> Model:
  """Finds or downloads the files of the model, meets the other workers, and chooses the dtype.

  Workers meet first, since all that follows may compute with TensorFlow.

  Raises:
    UsageError: a required setting has no value.
    ValueError: there is no usable checkpoint at `init_checkpoint`.
  """
  settings = with_model_files(settings)
  is_tpu = isinstance(settings, TpuSwitch) and settings.use_tpu
  if isinstance(settings, TpuSwitch):
    settings.explain_ignored_of_tpu()
  hardware.start_tensorflow(isinstance(settings, ModelSettings) and settings.allow_tf32)
  if not is_tpu:
    hardware.warn_of_unseen_gpus()
  if isinstance(settings, RunSettings) and settings.distribution_strategy == "multi_worker":
    settings.create_strategy()  # from here on each process knows whether it is the chief
  if settings.init_checkpoint:
    from bert.checkpoints import finding

    # Where it does not exist, neither do the files beside it, which may be required.
    checkpoint = finding.find(settings.init_checkpoint)
    settings = settings.replace(init_checkpoint=checkpoint.prefix, checkpoint=checkpoint)
  try:
    settings.check_required()
  except UsageError as error:
    raise UsageError(f"{error}{about_vocabulary(settings)}") from None
  settings = with_stored_case(settings)
  if isinstance(settings, ModelSettings):
    settings = settings.replace(dtype=hardware.choose_dtype(settings.dtype, is_tpu))
  return settings


def load_config(settings: ModelFiles) -> BertConfig:
  """Reads `--bert_config_file`, and checks the sequence length.

  Raises:
    ValueError: the file is bad or missing, or `--max_seq_length` or `--freeze` does not fit it.
  """
  config = BertConfig.from_json_file(settings.bert_config_file)
  if settings.max_seq_length > config.longest_sequence:
    raise ValueError(
      f"Cannot use sequence length {settings.max_seq_length} because the BERT model was only "
      f"trained up to sequence length {config.longest_sequence}. Lower --max_seq_length."
    )
  if isinstance(settings, OptimizerSettings) and settings.freeze:  # and selects no variable
    names = [*variable_shapes.encoder_shapes(config), *variable_shapes.head_names(config)]
    variable_groups.check_frozen(settings.freeze, names)
  return config


def load_config_and_tokenizer(settings: ModelFiles) -> tuple[BertConfig, Tokenizer]:
  """Reads `--bert_config_file` and `--vocab_file` or `--spm_model_file`; checks that they fit.

  Raises:
    ValueError: a file is bad, or they do not belong together or to the other flags.
  """
  from bert.checkpoints import finding

  config = load_config(settings)
  tokenization.validate_case_matches_checkpoint(settings.do_lower_case, settings.init_checkpoint)
  if settings.init_checkpoint:
    checkpoint = settings.checkpoint or finding.find(settings.init_checkpoint)
    model_files.check_case(settings.do_lower_case, checkpoint)
  if settings.spm_model_file:
    from bert.text import sentence_pieces

    sentence_pieces.read_model(settings.spm_model_file)  # or it is no such file
  tokenizer = tokenization.load_tokenizer(settings.vocab_file, settings.do_lower_case)
  model_files.check_vocabulary_size(
    *(tokenizer.vocab, settings.vocab_file, config.vocab_size, settings.bert_config_file),
    family=config.family.name,
  )
  at_start.model_is_read(settings.values, config, tokenizer.vocab, settings.checkpoint)
  return config, tokenizer


# What decides how much of a text the model reads.
_LENGTHS = ("max_seq_length", "doc_stride", "max_query_length")


def about_vocabulary(settings: ModelFiles) -> str:
  """Returns a line where no vocabulary was found: the tokenizer's, or the flag of another kind."""
  if settings.vocab_file is not None:
    return ""
  folder, path = settings.init_folder, settings.bert_config_file
  if folder and (refusal := model_files.tokenizer_refusal(folder)):
    return f"\n{refusal}"
  if not path:
    return ""
  family = BertConfig.from_json_file(path).family
  flag = model_files.vocabulary_flag(family.name)
  about = f"{path} is of {family.title}, and no vocabulary lies beside the model"
  return f"\n{about}: give {flag}." if flag else ""


def with_model_files(settings: Model) -> Model:
  """Downloads a released model, and finds configuration and vocabulary beside the weights."""
  model = settings.model
  if not model:
    return settings
  path = model_source.local_path(model)
  values = {}
  if settings.init_checkpoint:
    values = {"init_checkpoint": path, "init_folder": model_files.folder_of(path)}
  files = model_files.find(path)
  for flag, file in (("bert_config_file", files.config), ("vocab_file", files.vocabulary)):
    if getattr(settings, flag) is None and file:
      logging.info("--%s=%s, found with the model.", flag, file)
      values[flag] = file
  return settings.replace(**values)


def with_stored_case(settings: Model) -> Model:
  """Sets `--do_lower_case`, if it was not given, as the model was trained.

  Runs, exports and folders of transformers store it; other checkpoints do not. Without any, the
  files beside the vocabulary may state it.

  Raises:
    CheckpointError: the checkpoint is damaged.
  """
  model = settings.model
  if "do_lower_case" in settings.given:
    return settings
  from bert.checkpoints import finding, reading

  stored = None
  if settings.init_checkpoint:
    stored = (settings.checkpoint or finding.find(model)).do_lower_case
  elif model and (prefix := finding.latest(model)):
    stored = reading.open_checkpoint(prefix).do_lower_case
  vocab_file = settings.vocab_file
  if stored is None and vocab_file:
    model, stored = vocab_file, tokenizer_settings.beside(vocab_file).do_lower_case
  if stored in (None, settings.do_lower_case):
    return settings
  logging.info("--do_lower_case=%s, as stored with %s.", stored, model)
  return settings.replace(do_lower_case=stored)


def with_readable_length(settings: Model, as_trained: bool = False) -> Model:
  """Sets `--max_seq_length`, if it was not given, to one that the model can read.

  For scripts that train nothing. A training run's length is a choice, and longer texts than it are
  cut, so there the default is refused instead (`load_config`).

  Args:
    settings: as `resolve` returns them.
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


def with_lengths_of_run(settings: Run) -> Run:
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
    if name not in settings.given
    and hasattr(settings, name)
    and trained.get(name) not in (None, getattr(settings, name))
  }
  if not changed:
    return settings
  words = " ".join(f"--{name}={value}" for name, value in changed.items())
  logging.info("%s, as in the run that trained the model.", words)
  return settings.replace(**changed)
