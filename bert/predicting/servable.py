"""What a folder can do, found without loading weights: for whoever computes in other processes.

  servable = find("/tmp/mrpc_output")
  ability = servable.abilities["answers"]              # or "vectors", "masked_words", "attention"
  rows = ability.processor.featurize(("It rains.", "It is wet."))
  engine = ability.load_engine(threads=2)              # a `functools.partial`, for another process

A fine-tuned model has `answers`, and `vectors` where it was trained for those, from the same
engine; any other model has `vectors`. Where the tokens of these have vectors, `token_vectors` are
theirs. A checkpoint has `attention`, too, and `masked_words` if it has that head. What is lazy is
loaded when somebody asks for it.

The results are those of `predictor.Predictor`, `masked_words.py` and `attention.py`, which are made
of the same processors and engines.
"""

import functools
import os
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from bert.checkpoints import (
  bundle_files,
  label_map,
  model_files,
  model_source,
  sentence_pooling,
)
from bert.exporting import model_folder
from bert.io import start_lines
from bert.model.configuration import BertConfig
from bert.predicting import (
  attention,
  load_export,
  load_model,
  load_run,
  masked_words,
  saved_texts,
  sentence_vectors,
)
from bert.predicting.engines import registry
from bert.predicting.processors import AnswerProcessor, Processor, TextProcessor, VectorProcessor
from bert.tasks import kinds
from bert.tasks.decoding import Decoder, of_saved_model

ANSWERS, VECTORS, MASKED_WORDS, ATTENTION = "answers", "vectors", "masked_words", "attention"
ABILITIES = (ANSWERS, VECTORS, MASKED_WORDS, ATTENTION)
"""Those that a model can be reduced to."""
TOKEN_VECTORS = "token_vectors"  # come with VECTORS


class Ability(NamedTuple):
  """One thing that a model does."""

  name: str
  processor: Processor
  # Called with `threads`, in the process that computes, it returns the engine. Abilities with the
  # same object share an engine. It holds plain values alone, to be sent to other processes.
  load_engine: functools.partial
  is_lazy: bool = False  # whether it is rarely asked for, and slow to load


class Servable(NamedTuple):
  """A model, without its weights."""

  folder: str
  abilities: Mapping[str, Ability]
  kind: kinds.Kind | None  # of its task; None without one
  config: BertConfig | None  # None where a SavedModel does not say it
  engine: str  # its name
  precision: str
  files: tuple[str, ...]  # of the model
  pointers: tuple[str, ...] = ()  # which, once they change or appear, may name another model

  def signature(self) -> tuple:
    """Returns what changes as soon as one of the files or pointers does."""
    return (*self.contents(), *map(_state_of, self.pointers))

  def contents(self) -> tuple:
    """Returns what is another one if and only if the model is another one."""
    return tuple((path, _state_of(path)) for path in self.files)


def _state_of(path: str) -> tuple[int, int, int] | None:
  try:
    state = os.stat(path)
  except OSError:
    return None
  return state.st_ino, state.st_size, state.st_mtime_ns


class Options(NamedTuple):
  """How a model is served."""

  task: str = "auto"  # one of `ABILITIES`: that alone; auto for all that the model can do
  engine: str = "auto"
  precision: str = "float32"  # of an export's weights
  max_seq_length: int | None = None  # by default that of the run, or as in `Predictor`
  vocab_file: str | None = None  # by default that in the folder
  dtype: str = "float32"  # of TensorFlow's matrix products


def find(folder: str | os.PathLike, **options: Any) -> Servable:
  """Finds what a folder can do.

  Args:
    folder: of a run that fine-tuned, of transformers, of an export by `export_hub.py` or
      `--do_export`; or the prefix of a checkpoint, or the name of a released model.
    **options: see `Options`.

  Returns:
    The abilities, in the order of their importance.

  Raises:
    MissingExtraError: the engine's package is not installed.
    ValueError: the folder holds no model, a file is missing or belongs to another one, or the model
      does not have the task.
    OSError: a file cannot be read.
  """
  chosen = Options(**options)
  _check(chosen)
  path = os.path.expanduser(os.fsdecode(folder))
  exported = path if load_export.is_export(path) else load_export.task_folder(path)
  if exported:
    found = _of_export(exported, chosen)
  else:
    path = model_source.local_path(path)
    registry.check_not_of_export(path, chosen.engine, chosen.precision)
    found = _of_saved_texts(path, chosen) or _of_checkpoint(path, chosen)
  if chosen.task == "auto":
    return found
  if chosen.task not in found.abilities:
    raise ValueError(
      f"{path} cannot do task={chosen.task}: it has {', '.join(found.abilities)}. See the other "
      "values of task, or train or export another model."
    )
  kept = (VECTORS, TOKEN_VECTORS) if chosen.task == VECTORS else (chosen.task,)
  able = {name: each for name, each in found.abilities.items() if name in kept}
  return found._replace(abilities=able)


def needs_tensorflow(folder: str | os.PathLike) -> bool:
  """Tells whether `find` imports TensorFlow: it does to read a checkpoint."""
  path = os.path.expanduser(os.fsdecode(folder))
  return load_export.task_folder(path) is None and saved_texts.folder_of(path) is None


def _check(options: Options) -> None:
  if options.task not in ("auto", *ABILITIES):
    raise ValueError(f"task is {options.task!r}, but must be auto or one of {ABILITIES}.")
  registry.check_name(options.engine, ("auto", *registry.NAMES))


# ---------------------------------------------------------------------------------------------
# Exports for other engines.


def _of_export(folder: str, options: Options) -> Servable:
  model = load_export.read(folder, options.vocab_file)
  engine = load_export.choose_engine(folder, options.engine, options.precision)
  file = registry.model_file(engine, folder, options.precision)
  if not registry.is_installed(engine):
    registry.module_of(engine)  # raises a message that says what to install
  load = functools.partial(_export_engine, folder, options.vocab_file, engine, options.precision)
  found = {}
  if model.kind is not None:
    lengths = {"max_seq_length": options.max_seq_length} if options.max_seq_length else {}
    decoder = load_export.decoder_of(model, **lengths)
    found[ANSWERS] = Ability(ANSWERS, AnswerProcessor(decoder), load)
  if model.is_encoder:
    make = functools.partial(
      _vector_processor, model, options.max_seq_length or model.max_seq_length
    )
    found[VECTORS] = Ability(VECTORS, make(), load)
    of_tokens = functools.partial(load, pooling="none")
    found[TOKEN_VECTORS] = Ability(TOKEN_VECTORS, make(pooling="none"), of_tokens, is_lazy=True)
  files = (os.path.join(folder, model_folder.RUN), file, model.vocab_file)
  return Servable(folder, found, model.kind, model.config, engine, options.precision, files)


def _vector_processor(model: Any, max_seq_length: int, **options: Any) -> VectorProcessor:
  """Makes that of a model with `vocab_file`, `do_lower_case` and `config`."""
  from bert import tokenization

  load_model.check_length(max_seq_length, model.config.longest_sequence)
  tokenizer = tokenization.load_tokenizer(model.vocab_file, model.do_lower_case)
  return VectorProcessor(tokenizer, max_seq_length, **options)


def _export_engine(folder, vocab_file, engine, precision, threads=None, pooling=None):
  model = load_export.read(folder, vocab_file)
  return load_export.load(folder, model, engine, precision, threads, pooling, shares_cores=True)


# ---------------------------------------------------------------------------------------------
# SavedModels of tasks.


def _of_saved_texts(path: str, options: Options) -> Servable | None:
  """Returns what such a model can do; None where the folder holds no such one."""
  folder = saved_texts.folder_of(path)
  signature = saved_texts.signature(folder) if folder else None
  if folder is None or signature is None or options.task not in ("auto", ANSWERS):
    return None
  saved_texts.check_is_current(folder, signature)
  decoder = _meaning(folder, signature)
  processor = TextProcessor(signature.inputs, signature.needs_pairs, decoder)
  load = functools.partial(_texts_engine, folder)
  found = {ANSWERS: Ability(ANSWERS, processor, load)}
  file = os.path.join(folder, "assets.extra", model_folder.CONFIG)
  config = BertConfig.from_json_file(file) if os.path.isfile(file) else None
  files = tuple(
    os.path.join(folder, name)
    for name in ("saved_model.pb", bundle_files.IN_SAVED_MODEL + ".index")
  )
  return Servable(folder, found, None, config, "tensorflow", "float32", files)


def _meaning(folder: str, signature: saved_texts.Signature) -> Decoder | None:
  """Returns what the answers mean; None where no task of ours gives them."""
  from bert import tokenization

  try:
    tokenizer = tokenization.load_tokenizer(model_files.need_vocabulary(folder), True)
  except (ValueError, OSError):  # another program's model
    return None
  labels = label_map.read(os.path.join(folder, "assets.extra")) or ()
  return of_saved_model(signature.inputs, signature.outputs, labels, tokenizer)


def _texts_engine(folder, threads=None):
  start_lines.start_tensorflow(threads=threads)
  return _Named(load_model.load_signature(folder))


class _Named:
  """A `LoadedFunction` as an engine: its outputs are arrays."""

  name = "tensorflow"

  def __init__(self, function: load_model.LoadedFunction):
    self.inputs = function.inputs
    self._function = function

  def __call__(self, batch):
    return {name: np.asarray(value) for name, value in self._function(batch).items()}


# ---------------------------------------------------------------------------------------------
# Checkpoints.


class _Weights(NamedTuple):
  """A checkpoint, and how it is computed."""

  prefix: str
  config: BertConfig
  dtype: str  # of matrix products


def _of_checkpoint(path: str, options: Options) -> Servable:
  from bert.checkpoints import finding, reading

  facts = reading.read_facts(finding.find_checkpoint(path))
  kind = kinds.of_facts(facts)
  run = load_run.find_run(path, options.vocab_file) if kind else None
  if run and options.task != VECTORS:
    weights = _Weights(run.prefix, run.config, options.dtype)
    found, vocab_file = _task_abilities(run, weights, options), run.vocab_file
  else:
    weights, found, vocab_file = _pretrained(path, options)
  files = (weights.prefix, f"{weights.prefix}.index", vocab_file)
  pointers = tuple(os.path.join(path, place) for place in _POINTERS)
  return Servable(path, found, kind, weights.config, "tensorflow", options.dtype, files, pointers)


# Of a run: which checkpoint is its newest, and which its best.
_POINTERS = ("checkpoint", os.path.join(bundle_files.BEST, "checkpoint"))


def _task_abilities(run: load_run.Run, weights: _Weights, options: Options) -> dict[str, Ability]:
  lengths = {"max_seq_length": options.max_seq_length} if options.max_seq_length else {}
  decoder, _ = load_run.decoder_of(run, **lengths)
  load = functools.partial(_task_engine, run.prefix, run.vocab_file, options.dtype)
  found = {ANSWERS: Ability(ANSWERS, AnswerProcessor(decoder), load)}
  if run.facts.get("pooling"):  # its rows are texts, and its scores are their vectors
    processor = VectorProcessor(decoder.tokenizer, decoder.max_seq_length)
    found[VECTORS] = Ability(VECTORS, processor, load)
  found[ATTENTION] = _attention(weights, decoder.tokenizer, decoder.max_seq_length)
  if VECTORS in found:
    found[TOKEN_VECTORS] = _token_vectors(weights, decoder.tokenizer, decoder.max_seq_length)
  return found


def _pretrained(path: str, options: Options) -> tuple[_Weights, dict[str, Ability], str]:
  from bert.checkpoints import reading

  config, tokenizer, prefix = load_model.load_model(
    path, vocab_file=options.vocab_file, max_seq_length=options.max_seq_length
  )
  weights = _Weights(prefix, config, options.dtype)
  length = load_model.readable_length(options.max_seq_length, config.longest_sequence)
  pooling = sentence_pooling.choose(None, prefix, "mean")
  load = functools.partial(_vector_engine, weights, pooling)
  processor = VectorProcessor(tokenizer, length, is_of_layers=True)
  found = {VECTORS: Ability(VECTORS, processor, load)}
  heads = masked_words.heads_of(config, reading.names_and_shapes(prefix))
  if heads.words:
    found[MASKED_WORDS] = _masked_words(path, weights, heads, length, options)
  found[ATTENTION] = _attention(weights, tokenizer, length)
  found[TOKEN_VECTORS] = _token_vectors(weights, tokenizer, length)
  return weights, found, tokenizer.vocab_file


def _masked_words(path, weights, heads, length, options) -> Ability:
  # Another tokenizer, which keeps [MASK] whole.
  _, tokenizer, _ = load_model.load_model(
    path,
    vocab_file=options.vocab_file,
    max_seq_length=length,
    special_tokens=masked_words.SPECIAL_TOKENS,
  )
  processor = masked_words.MaskedWordsProcessor(tokenizer, length, heads)
  load = functools.partial(_masked_words_engine, weights, heads)
  return Ability(MASKED_WORDS, processor, load)


def _token_vectors(weights: _Weights, tokenizer: Any, length: int) -> Ability:
  processor = VectorProcessor(tokenizer, length, pooling="none", is_of_layers=True)
  load = functools.partial(_vector_engine, weights, "none")
  return Ability(TOKEN_VECTORS, processor, load, is_lazy=True)


def _attention(weights: _Weights, tokenizer: Any, length: int) -> Ability:
  sizes = (weights.config.num_hidden_layers, weights.config.num_attention_heads)
  length = min(length, attention.SERVED_LENGTH)
  processor = attention.MapProcessor(tokenizer, length, *sizes)
  load = functools.partial(_attention_engine, weights)
  return Ability(ATTENTION, processor, load, is_lazy=True)


def _task_engine(prefix, vocab_file, dtype, threads=None):
  start_lines.start_tensorflow(threads=threads)
  run = load_run.find_run(prefix, vocab_file)
  _, head = load_run.decoder_of(run)
  from bert.predicting.engines.tensorflow import load_checkpoint

  return load_checkpoint(run.prefix, run.config, head, dtype)


def _vector_engine(weights, pooling, threads=None):
  start_lines.start_tensorflow(threads=threads)
  build = sentence_vectors.layer_vectors(weights.config, [-1], pooling, weights.dtype)
  inputs, optional = sentence_vectors.INPUTS, ("bert/pooler/",)
  return _Named(load_model.load_graph(build, inputs, weights.prefix, optional))


def _masked_words_engine(weights, heads, threads=None):
  start_lines.start_tensorflow(threads=threads)
  return _Named(masked_words.load_engine(weights.config, weights.prefix, heads, weights.dtype))


def _attention_engine(weights, threads=None):
  start_lines.start_tensorflow(threads=threads)
  return attention.OneMap(_Named(attention.load_engine(weights.config, weights.prefix)))
