"""The model in the output folder of a `run_*` script: its files, its task, and what answers texts.

  run = find_run("/tmp/mrpc_output")
  decoder, head = decoder_of(run)     # what is around an engine, and what the engine computes

The sidecar of a checkpoint holds the task, the sizes of the model, the labels, the hash of the
vocabulary and the lengths; the vocabulary lies beside it. Of a fine-tuned model that transformers
saved, or that was converted from such a folder, the configuration says the task and the labels.
`Predictor.load` puts an engine to it: a folder and its `--do_export` give the same answers.
"""

import os
from collections.abc import Mapping
from typing import Any, NamedTuple

from bert.checkpoints import model_files, model_source
from bert.model.configuration import BertConfig
from bert.model.task_head import Head
from bert.predicting.load_model import check_length
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
    return self.settings.get("max_seq_length", min(self.kind.max_seq_length, longest))


def decoder_of(run: Run, **options: Any) -> tuple[Decoder, Head]:
  """Makes what is around the engine of a run, and the head that the engine computes.

  Args:
    run: of `find_run`.
    **options: settings to change: `max_seq_length`, and what `Decoder.of_run` of the kind takes.

  Raises:
    ValueError: an option is unknown, or a length cannot be.
  """
  from bert import tokenization

  decoder_class = run.kind.decoder_class()
  max_seq_length = options.pop("max_seq_length", run.max_seq_length)
  check_options(decoder_class, options)
  check_length(max_seq_length, run.config.longest_sequence)
  settings = {**run.settings, **decoder_class.head_settings(options)}
  head = run.kind.head_class().of_run(run.facts, settings)
  tokenizer = tokenization.load_tokenizer(run.vocab_file, run.facts.get("do_lower_case", True))
  made = decoder_class.of_run(run.facts, run.settings, tokenizer, max_seq_length, **options)
  made.own_example = run.settings.get("example")
  return made, head


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
      "beside it. Any checkpoint gives "
      "vectors and masked words: Predictor.from_checkpoint, masked_words.from_checkpoint."
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
