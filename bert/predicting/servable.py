"""What a model can do, found without loading weights: for this process or for others.

  servable = find("/tmp/mrpc_output")
  ability = servable.abilities["answers"]              # or another one of `TASKS`
  rows = ability.processor.featurize(("It rains.", "It is wet."))
  engine = ability.load_engine(threads=2)              # a `functools.partial`, for any process

`predictor.Predictor` puts the processor and the engine of one ability together; a server has them
in two processes. What is lazy is loaded when somebody asks for it.
"""

import functools
import os
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from absl import logging

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
  load_run,
  masked_words,
  saved_texts,
  sentence_vectors,
)
from bert.predicting.engines import registry
from bert.predicting.fixed_batch_shapes import FixedBatchShapes
from bert.predicting.processors import (
  AnswerProcessor,
  FeatureProcessor,
  Processor,
  TextProcessor,
  VectorProcessor,
)
from bert.tasks import kinds
from bert.tasks.decoding import Decoder, check_known, of_saved_model

ANSWERS, VECTORS, MASKED_WORDS, ATTENTION = "answers", "vectors", "masked_words", "attention"
FEATURES, ATTENTION_MAPS = "features", "attention_maps"
TASKS = {
  ANSWERS: "of the task that the model was fine-tuned for, see `predictor.py`",
  VECTORS: "of texts, or of pairs of texts: float32 `[W]`, or `[L, W]` of several layers",
  FEATURES: "`vector_files.TextVectors`: pieces and their vectors",
  MASKED_WORDS: "see `masked_words.MaskedWordsProcessor`",
  ATTENTION: "the map of one layer and head, see `attention.MapProcessor`",
  ATTENTION_MAPS: "pieces, and the maps of all layers and heads, see `attention.MapsProcessor`",
}
"""What a model can be asked for -> the results."""
ABILITIES = (ANSWERS, VECTORS, MASKED_WORDS, ATTENTION)
"""Those that are found without being asked for."""
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
  """How a model is loaded.

  Attributes:
    task: one of `TASKS`: that alone. `auto`: all of `ABILITIES` that the model has, that of a
      fine-tuned model first.
    engine: see `Predictor.load`.
    precision: of an export: float32, float16 or int8, as far as it has such weights, or bfloat16,
      which openvino computes from those of float32.
    max_seq_length: longer texts are truncated. By default that of the run or export, else 128, and
      64 of attention maps, or fewer where the model can read no more.
    vocab_file: by default that in the folder, or in its export.
    bert_config_file: of a checkpoint without a task; by default that beside it.
    do_lower_case: of such a checkpoint; by default as stored with it, else True.
    dtype: of TensorFlow's matrix products.
    layers: of vectors: the number of a layer, -1 for the last; or several. Exports have the last.
    pooling: of vectors, see `sentence_vectors.layer_vectors`: with `none`, they are `[S, W]` and
      `[S, L, W]`, where S is the number of the text's pieces. By default that of the model, if
      `run_similarity.py` or sentence-transformers trained it, else `mean`; `none` of the features
      of a checkpoint.
    top_k: number of pieces for each mask.
    batch_invariant: see `Predictor.load`.
    shares_cores: see `engines/onnxruntime.py`.
  """

  task: str = "auto"
  engine: str = "auto"
  precision: str = "float32"
  max_seq_length: int | None = None
  vocab_file: str | None = None
  bert_config_file: str | None = None
  do_lower_case: bool | None = None
  dtype: str = "float32"
  layers: int | Sequence[int] = -1
  pooling: str | None = None
  top_k: int = 5
  batch_invariant: bool = False
  shares_cores: bool = False


def find(folder: str | os.PathLike, **options: Any) -> Servable:
  """Finds what a model can do.

  Args:
    folder: see `Predictor.load`.
    **options: see `Options`; others are settings of the task, which `of_run` of its `Decoder`
      takes.

  Returns:
    The abilities, in the order of their importance.

  Raises:
    MissingExtraError: the engine's package is not installed.
    ValueError: the folder holds no model, a file is missing or belongs to another one, or the model
      does not have the task.
    OSError: a file cannot be read.
  """
  known = {name: value for name, value in options.items() if name in Options._fields}
  settings = {name: value for name, value in options.items() if name not in known}
  chosen = Options(**known)
  if chosen.task not in ("auto", *TASKS):
    raise ValueError(f"task is {chosen.task!r}, but must be auto or one of {', '.join(TASKS)}.")
  registry.check_name(chosen.engine, ("auto", *registry.NAMES))
  path = os.path.expanduser(os.fsdecode(folder))
  answers = chosen.task in ("auto", ANSWERS)
  exported = path if load_export.is_export(path) else answers and load_export.task_folder(path)
  if exported:
    found = _of_export(exported, chosen, settings)
  else:
    path = model_source.local_path(path)
    registry.check_not_of_export(path, chosen.engine, chosen.precision)
    texts = _of_saved_texts(path) if answers else None
    found = texts or _of_checkpoint(path, chosen, settings)
  if chosen.task == "auto":
    return found
  if chosen.task not in found.abilities:
    raise ValueError(
      f"{path} cannot do task={chosen.task}: it has {', '.join(found.abilities)}. See the other "
      "values of task, or train or export another model."
    )
  kept = (VECTORS, TOKEN_VECTORS) if chosen.task == VECTORS else (chosen.task,)
  return found._replace(
    abilities={name: each for name, each in found.abilities.items() if name in kept}
  )


def needs_tensorflow(folder: str | os.PathLike) -> bool:
  """Tells whether `find` imports TensorFlow: it does to read a checkpoint."""
  path = os.path.expanduser(os.fsdecode(folder))
  return load_export.task_folder(path) is None and saved_texts.folder_of(path) is None


# What the model of a task is not asked for.
_OF_OTHERS = ("bert_config_file", "do_lower_case", "layers", "pooling", "top_k")


def _task_settings(options: Options, settings: Mapping[str, Any]) -> dict[str, Any]:
  """Returns what the `Decoder` of a task is made with, which refuses options of other tasks."""
  names = ("max_seq_length", *_OF_OTHERS)
  values = {name: getattr(options, name) for name in names}
  given = {name: each for name, each in values.items() if each != getattr(Options(), name)}
  return {**given, **settings}


# ---------------------------------------------------------------------------------------------
# Exports for other engines.


def _of_export(folder: str, options: Options, settings: Mapping[str, Any]) -> Servable:
  model = load_export.read(folder, options.vocab_file)
  found: dict[str, Ability] = {}
  decoder = None
  if model.kind is not None and options.task in ("auto", ANSWERS):
    decoder = load_export.decoder_of(model, **_task_settings(options, settings))
  else:
    check_known("An encoder", settings, Options._fields)
  if options.task in (VECTORS, FEATURES):
    load_export.check_vectors(folder, model, options.layers)
  engine = load_export.choose_engine(folder, options.engine, options.precision)
  file = registry.model_file(engine, folder, options.precision)
  if not registry.is_installed(engine):
    registry.module_of(engine)  # raises a message that says what to install
  longest = model.config.longest_sequence
  load_with = functools.partial(
    load_export.load,
    engine,
    file,
    precision=options.precision,
    max_length=longest,
    shares_cores=options.shares_cores,
  )
  pooling = options.pooling or model.pooling or "mean"
  load = functools.partial(load_with, pooling=pooling) if model.is_encoder else load_with
  if decoder is not None:
    found[ANSWERS] = Ability(ANSWERS, AnswerProcessor(decoder), load)
    found[ANSWERS].processor.texts_in = model.settings.get("texts_in", {})
  if model.is_encoder:
    from bert import tokenization

    length = options.max_seq_length or model.max_seq_length
    load_run.check_length(length, longest)
    tokenizer = tokenization.load_tokenizer(model.vocab_file, model.do_lower_case)
    given_texts = (tokenizer, length, model.config)
    name, processor_class = _vectors_or_features(options)
    found[name] = Ability(name, processor_class(*given_texts, pooling, options.layers), load)
    of_tokens = functools.partial(load_with, pooling="none")
    processor = VectorProcessor(*given_texts, "none")
    found[TOKEN_VECTORS] = Ability(TOKEN_VECTORS, processor, of_tokens, is_lazy=True)
  files = (os.path.join(folder, model_folder.RUN), file, model.vocab_file)
  return Servable(folder, found, model.kind, model.config, engine, options.precision, files)


# ---------------------------------------------------------------------------------------------
# SavedModels that read strings.


def _of_saved_texts(path: str) -> Servable | None:
  """Returns what such a model can do; None where the folder holds no such one."""
  folder = saved_texts.folder_of(path)
  signature = saved_texts.signature(folder) if folder else None
  if folder is None or signature is None:
    return None
  saved_texts.check_is_current(folder, signature)
  decoder = _meaning(folder, signature)
  processor = TextProcessor(signature.inputs, signature.needs_pairs, decoder)
  load = functools.partial(_texts_engine, folder, signature.inputs)
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


def _texts_engine(folder, inputs, threads=None):
  return _tensorflow(threads).load_texts(folder, inputs)


def _tensorflow(threads: int | None) -> Any:
  """Imports TensorFlow's engine, and sets the number of threads if there is one."""
  if threads:
    try:
      start_lines.start_tensorflow(threads=threads)
    except RuntimeError:
      logging.warning("TensorFlow runs already: threads=%d has no effect.", threads)
  from bert.predicting.engines import tensorflow

  return tensorflow


# ---------------------------------------------------------------------------------------------
# Checkpoints.

# Of a run: which checkpoint is its newest, and which its best.
_POINTERS = ("checkpoint", os.path.join(bundle_files.BEST, "checkpoint"))


def _of_checkpoint(path: str, options: Options, settings: Mapping[str, Any]) -> Servable:
  from bert.checkpoints import finding, reading

  prefix = finding.find_checkpoint(path)
  kind = kinds.of_facts(reading.read_facts(prefix)) if options.task == "auto" else None
  if kind or options.task == ANSWERS:
    run = load_run.find_run(path, options.vocab_file)
    kind, config, vocab_file = run.kind, run.config, run.vocab_file
    found = _of_run(run, options, _task_settings(options, settings))
  else:
    check_known("A model without a task", settings, Options._fields)
    given = (options.bert_config_file, options.vocab_file, options.do_lower_case)
    load_model = functools.partial(load_run.load_model, path, *given, options.max_seq_length)
    config, tokenizer, prefix = load_model()
    vocab_file = tokenizer.vocab_file
    weights = _Weights(prefix, config, options)
    found = _of_pretrained(weights, tokenizer, load_model)
  files = (prefix, f"{prefix}.index", vocab_file)
  pointers = tuple(os.path.join(path, place) for place in _POINTERS)
  return Servable(path, found, kind, config, "tensorflow", options.dtype, files, pointers)


class _Weights(NamedTuple):
  """A checkpoint, and how it is computed."""

  prefix: str
  config: BertConfig
  options: Options

  def length(self, default: int = 128) -> int:
    """Returns the length that was asked for; else the default, as far as the model can read it."""
    longest = self.config.longest_sequence
    return load_run.readable_length(self.options.max_seq_length, longest, default)


def _of_run(run: load_run.Run, options: Options, settings: dict[str, Any]) -> dict[str, Ability]:
  decoder = load_run.decoder_of(run, **settings)
  tokenizer, length = decoder.tokenizer, decoder.max_seq_length
  processor = AnswerProcessor(decoder)
  processor.texts_in = run.settings.get("texts_in", {})
  load = functools.partial(_run_engine, run, settings, options.dtype)
  found = {ANSWERS: Ability(ANSWERS, processor, load)}
  weights = _Weights(run.prefix, run.config, options)
  if run.facts.get("pooling"):  # its rows are texts, and its scores are their vectors
    found[VECTORS] = Ability(VECTORS, VectorProcessor(tokenizer, length, run.config), load)
  found[ATTENTION] = _attention(weights, tokenizer, length)
  if VECTORS in found:
    found[TOKEN_VECTORS] = _token_vectors(weights, tokenizer, length)
  return found


def _of_pretrained(
  weights: _Weights, tokenizer: Any, load_model: functools.partial
) -> dict[str, Ability]:
  from bert.checkpoints import reading

  options, prefix, length = weights.options, weights.prefix, weights.length()
  if options.task == ATTENTION_MAPS:
    maps = attention.MapsProcessor(tokenizer, weights.length(attention.DEFAULT_LENGTH))
    load = functools.partial(_maps_engine, weights)
    return {ATTENTION_MAPS: Ability(ATTENTION_MAPS, maps, load)}
  name, processor_class = _vectors_or_features(options)
  default = "none" if name == FEATURES else "mean"
  pooling = sentence_pooling.choose(options.pooling, prefix, default)
  given_texts = (tokenizer, length, weights.config)
  processor = processor_class(*given_texts, pooling, options.layers, is_of_layers=True)
  processor.texts_in = reading.read_state(prefix).get("informative", {}).get("texts_in", {})
  load = functools.partial(_vector_engine, weights, processor.layer_indexes, pooling, length)
  found = {name: Ability(name, processor, load)}
  heads = masked_words.heads_of(weights.config, reading.names_and_shapes(prefix))
  if heads.words:
    # Another tokenizer, which keeps [MASK] whole.
    _, tokenizer_of_masks, _ = load_model(special_tokens=masked_words.SPECIAL_TOKENS)
    guesses = masked_words.MaskedWordsProcessor(tokenizer_of_masks, length, heads)
    load = functools.partial(_masked_words_engine, weights, heads)
    found[MASKED_WORDS] = Ability(MASKED_WORDS, guesses, load)
  elif options.task == MASKED_WORDS:
    raise bundle_files.CheckpointError(
      f"{prefix} has no head for masked words (no variable {weights.config.family.masked_lm}/...): "
      "it is a fine-tuned model, or one of sentence embeddings. Checkpoints of pre-training have "
      "it, and so do the released models."
    )
  found[ATTENTION] = _attention(weights, tokenizer, length)
  found[TOKEN_VECTORS] = _token_vectors(weights, tokenizer, length)
  return found


def _vectors_or_features(options: Options) -> tuple[str, type[VectorProcessor]]:
  is_features = options.task == FEATURES
  return (FEATURES, FeatureProcessor) if is_features else (VECTORS, VectorProcessor)


def _token_vectors(weights: _Weights, tokenizer: Any, length: int) -> Ability:
  processor = VectorProcessor(tokenizer, length, weights.config, "none", is_of_layers=True)
  load = functools.partial(_vector_engine, weights, [-1], "none", length)
  return Ability(TOKEN_VECTORS, processor, load, is_lazy=True)


def _attention(weights: _Weights, tokenizer: Any, length: int) -> Ability:
  sizes = (weights.config.num_hidden_layers, weights.config.num_attention_heads)
  length = min(length, attention.SERVED_LENGTH)
  processor = attention.MapProcessor(tokenizer, length, *sizes)
  load = functools.partial(_map_engine, weights)
  return Ability(ATTENTION, processor, load, is_lazy=True)


# The engines, in whatever process computes.


def _run_engine(run, settings, dtype, threads=None):
  engine = _tensorflow(threads)
  head = load_run.head_of(run, **settings)
  return engine.load_checkpoint(run.prefix, run.config, head, dtype)


def _vector_engine(weights, layers, pooling, length, threads=None):
  engine = _tensorflow(threads)
  config, options = weights.config, weights.options
  shapes = FixedBatchShapes(length, config.longest_sequence) if options.batch_invariant else None
  build = sentence_vectors.layer_vectors(config, layers, pooling, options.dtype, shapes)
  return engine.load_graph(build, sentence_vectors.INPUTS, weights.prefix, ("bert/pooler/",))


def _masked_words_engine(weights, heads, threads=None):
  engine = _tensorflow(threads)
  build = masked_words.graph(weights.config, heads, weights.options.top_k, weights.options.dtype)
  # Not computed for a checkpoint without the next-sentence head: the pooler.
  optional = () if heads.next_sentence else ("bert/pooler/",)
  return engine.load_graph(build, masked_words.INPUTS, weights.prefix, optional)


def _maps_engine(weights, threads=None):
  engine = _tensorflow(threads)
  build = attention.graph(weights.config)
  # No map depends on the pooler, which some checkpoints lack.
  return engine.load_graph(build, sentence_vectors.INPUTS, weights.prefix, ("bert/pooler/",))


def _map_engine(weights, threads=None):
  return attention.OneMap(_maps_engine(weights, threads))
