"""The files of a checkpoint: those of a run, with its task, or those of a model without a task.

  run = find_run("/tmp/mrpc_output")
  decoder = decoder_of(run)       # what is around an engine
  head = head_of(run)                 # what the engine computes

  config, tokenizer, prefix = load_model("uncased_L-12_H-768_A-12")

The sidecar of a checkpoint holds the task, the sizes of the model, the labels, the hash of the
vocabulary and the lengths; the vocabulary lies beside it. Of a fine-tuned model that transformers
saved, or that was converted from such a folder, the configuration says the task and the labels.
"""

import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from absl import logging

from bert.checkpoints import model_files, model_source
from bert.io import tokenizer_settings
from bert.model.configuration import BertConfig
from bert.model.task_head import Head
from bert.tasks import kinds, usage
from bert.tasks.decoding import Decoder, check_options


class Run(NamedTuple):
  """A run that has trained."""

  prefix: str  # of its best checkpoint, if it kept that (`--eval_every_steps`), else of its newest
  vocab_file: str  # its vocabulary
  # Its fingerprint: sizes, task, labels; see `output_folder.model_fingerprint`. That of a model of
  # transformers has no sizes.
  facts: Mapping[str, Any]
  # Values of flags, such as `max_seq_length`, and an `example`, see `usage.py`; empty for a model
  # of transformers.
  settings: Mapping[str, Any]
  config: BertConfig  # of the model

  @property
  def kind(self) -> kinds.Kind:
    """The kind of task, whatever the data."""
    kind = kinds.of_facts(self.facts)
    assert kind is not None, "find_run refuses other facts"
    return kind

  @property
  def max_seq_length(self) -> int:
    """That of the run; else the default of the kind, or what the model can read."""
    longest = self.config.longest_sequence
    return self.settings.get(
      "max_seq_length", min(self.kind.decoder_class().default_length, longest)
    )


def decoder_of(run: Any, **options: Any) -> Decoder:
  """Makes what is around the engine of a run.

  Args:
    run: of `find_run`, or the `Described` model of an export.
    **options: settings to change: `max_seq_length`, and what `Decoder.of_run` of the kind takes.

  Raises:
    ValueError: an option is unknown, or a length cannot be.
  """
  from bert import tokenization

  decoder_class = run.kind.decoder_class()
  max_seq_length = options.pop("max_seq_length", run.max_seq_length)
  check_options(decoder_class, options)
  check_length(max_seq_length, run.config.longest_sequence)
  tokenizer = tokenization.load_tokenizer(run.vocab_file, run.facts.get("do_lower_case", True))
  made = decoder_class.of_run(run.facts, run.settings, tokenizer, max_seq_length, **options)
  made.own_example = run.settings.get("example")
  return made


def head_of(run: Run, **options: Any) -> Head:
  """Makes what the engine of a run computes; the arguments are those of `decoder_of`."""
  options.pop("max_seq_length", None)
  settings = {**run.settings, **run.kind.decoder_class().head_settings(options)}
  return run.kind.head_class().of_run(run.facts, settings)


def find_run(output_dir: str | os.PathLike, vocab_file: str | None = None) -> Run:
  """Finds a fine-tuned model.

  Args:
    output_dir: `--output_dir` of a run that fine-tuned; or the prefix of a checkpoint there; or a
      folder of transformers.
    vocab_file: by default that in the folder, or in its export.

  Raises:
    ValueError: the folder holds no checkpoint of such a run, or a file is missing or belongs to
      another run.
  """
  from bert import tokenization
  from bert.checkpoints import finding, reading

  path = model_source.local_path(output_dir)
  prefix = finding.find_checkpoint(path)
  facts = reading.read_facts(prefix)
  if kinds.of_facts(facts) is None:
    raise ValueError(
      f"{prefix} is not a fine-tuned model of {kinds.scripts_in_words()}: its task is not stored "
      "beside it. Any checkpoint gives vectors, and those of pre-training guess masked words: "
      "task=vectors, task=masked_words."
    )
  vocab_file = vocab_file or model_files.need_vocabulary(path)
  found = tokenization.vocabulary_hash(tokenization.load_vocab(vocab_file))
  if facts.get("vocabulary", found) != found:
    raise ValueError(f"{vocab_file} is not the vocabulary that {prefix} was trained with.")
  settings = reading.read_state(prefix).get("informative", {})
  if example := usage.read(model_files.folder_of(path)):
    settings = {**settings, "example": example}
  return Run(prefix, vocab_file, facts, settings, _config_of(path, facts))


def _config_of(path: str, facts: Mapping[str, Any]) -> BertConfig:
  """The configuration, which old folders of runs lack: the facts have the sizes, too."""
  sizes = {name: facts[name] for name in BertConfig(None).to_dict() if name in facts}
  file = model_files.find(path).config if sizes else model_files.need_config(path)
  content = BertConfig.from_json_file(file).to_dict() if file else {}
  return BertConfig.from_dict({**content, **sizes})


# ---------------------------------------------------------------------------------------------
# Models without a task.


def load_model(
  init_checkpoint: str,
  bert_config_file: str | None = None,
  vocab_file: str | None = None,
  do_lower_case: bool | None = None,
  max_seq_length: int | None = 128,
  special_tokens: Sequence[str] = (),
):
  """Finds the files that belong to a checkpoint, and checks that they are consistent.

  Args:
    init_checkpoint: a checkpoint's prefix, a folder with one, an exported encoder, or the name of a
      released model, which is then downloaded.
    bert_config_file: by default bert_config.json beside the checkpoint.
    vocab_file: by default vocab.txt or a sentencepiece model beside the checkpoint.
    do_lower_case: True for uncased models; by default as stored with the checkpoint, else True.
    max_seq_length: the longest sequence to predict; None for `readable_length`.
    special_tokens: see `tokenization.FullTokenizer`.

  Returns:
    `(configuration.BertConfig, the tokenizer, prefix of the checkpoint)`.

  Raises:
    ValueError: a file is missing or bad, or they do not belong together.
  """
  from bert import tokenization
  from bert.checkpoints import finding
  from bert.model.configuration import BertConfig

  path = model_source.local_path(init_checkpoint)
  checkpoint = finding.find(path)
  prefix = checkpoint.prefix
  config_file = bert_config_file or model_files.need_config(path)
  config = BertConfig.from_json_file(config_file)
  vocab_file = vocab_file or model_files.need_vocabulary(path)
  if do_lower_case is None:
    stated = tokenizer_settings.beside(vocab_file).do_lower_case
    stored = checkpoint.do_lower_case
    do_lower_case = (stated if stored is None else stored) is not False
  tokenization.validate_case_matches_checkpoint(do_lower_case, prefix)
  model_files.check_case(do_lower_case, checkpoint)
  tokenizer = tokenization.load_tokenizer(vocab_file, do_lower_case, special_tokens)
  model_files.check_vocabulary_size(
    tokenizer.vocab, tokenizer.vocab_file, config.vocab_size, config_file, config.family.name
  )
  trained_with = checkpoint.facts.get("vocabulary")
  if trained_with not in (None, tokenization.vocabulary_hash(tokenizer.vocab)):
    # Not an error: an unused token may have been given a name.
    logging.warning(
      "%s is not the vocabulary that %s was trained with.", tokenizer.vocab_file, prefix
    )
  if max_seq_length is not None:
    check_length(max_seq_length, config.longest_sequence)
  return config, tokenizer, prefix


def readable_length(max_seq_length: int | None, longest: int, default: int = 128) -> int:
  """Returns a length; where it is None, the default, as far as the model can read it."""
  return min(default, longest) if max_seq_length is None else max_seq_length


def check_length(max_seq_length: int, max_position_embeddings: int) -> None:
  """Raises a ValueError for a length that is too large for the model, or below 3."""
  if not 3 <= max_seq_length <= max_position_embeddings:
    raise ValueError(
      f"max_seq_length is {max_seq_length}, but must be from 3 to {max_position_embeddings}, the "
      "number of positions of the model."
    )
