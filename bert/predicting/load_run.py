"""The model in the output folder of a `run_*` script, as a function from texts to answers.

  function = load_run("/tmp/mrpc_output")
  function({"text_a": ["It rains."], "text_b": ["It is wet."]})["label"]

The sidecar of a checkpoint holds the task, the sizes of the model, the labels, the hash of the
vocabulary and the lengths; the vocabulary lies beside it. Of a fine-tuned model that transformers
saved, or that was converted from such a folder, the configuration says the task and the labels. The
graphs are those of the exports (`exporting/task_model.py` and its subclasses, where inputs and
outputs are described): a folder and its `--do_export` give the same answers.
"""

import inspect
import os
from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

from bert.checkpoints import model_files, model_source
from bert.model.configuration import BertConfig
from bert.predicting.load_model import LoadedFunction, check_length
from bert.tasks import kinds


class Run(NamedTuple):
  """A run that has trained."""

  prefix: str  # of its best checkpoint, if it kept that (`--eval_every_steps`), else of its newest
  vocab_file: str  # its vocabulary
  # Its fingerprint: sizes, task, labels; see `output_folder.model_fingerprint`. That of a model of
  # transformers has no sizes.
  facts: Mapping[str, Any]
  # Values of flags, such as `max_seq_length`; empty for a model of transformers.
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


def load_run(
  output_dir: str | os.PathLike, vocab_file: str | None = None, dtype: str = "float32", **options
) -> LoadedFunction:
  """Loads a fine-tuned model.

  Args:
    output_dir: `--output_dir` of a run that fine-tuned; or the prefix of a checkpoint there; or a
      folder of transformers.
    vocab_file: by default vocab.txt in that folder, or in its export.
    dtype: of matrix products.
    **options: settings to change, arguments of the task's model: `max_seq_length` of any,
      `doc_stride`, `null_score_diff_threshold` and so on of `span_model.SpanModel`.

  Raises:
    ValueError: the folder holds no checkpoint of such a run, a file is missing or belongs to
      another run, or an option is unknown.
  """
  import tensorflow as tf

  run = find_run(output_dir, vocab_file)
  model_class = run.kind.model_class()
  settings = model_class.options_of_run(run)
  known = inspect.signature(model_class.__init__).parameters
  if unknown := sorted(set(options) - set(known)):
    raise ValueError(f"{model_class.__name__} has no {', '.join(unknown)}, but {', '.join(known)}.")
  settings = {"max_seq_length": run.max_seq_length, **settings, **options}
  check_length(settings["max_seq_length"], run.config.longest_sequence)
  model = _typed(model_class, tf.as_dtype(dtype))(
    run.config, run.vocab_file, run.facts.get("do_lower_case", True), **settings
  )
  model.load(run.prefix)
  return LoadedFunction.of_strings(model.signature(), owner=model)


def find_run(output_dir: str | os.PathLike, vocab_file: str | None = None) -> Run:
  """Finds what `load_run` loads; its errors, too."""
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
  return Run(prefix, vocab_file, facts, settings, _config_of(path, facts))


def _config_of(path: str, facts: Mapping[str, Any]) -> BertConfig:
  """The configuration, which old folders of runs lack: the facts have the sizes, too."""
  sizes = {name: facts[name] for name in BertConfig(None).to_dict() if name in facts}
  file = model_files.find(path).config if sizes else model_files.need_config(path)
  content = BertConfig.from_json_file(file).to_dict() if file else {}
  return BertConfig.from_dict({**content, **sizes})


def _typed(model_class, dtype):
  """The class with matrix products in `dtype`; exports are always float32."""

  class Typed(model_class):
    _bert_options: ClassVar = {"dtype": dtype}

  return Typed
