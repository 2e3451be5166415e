"""What every `run_*` script does the same way: shared flags and early checks.

A script defines its flags from the sets here, checks them, builds a tokenizer, examples and a
`model_fn`, and hands the rest back: `run_config`, `eval_spec` and `optimizer_options` read the
flags, and `result_files.py` writes what a run leaves in `--output_dir`.

Where the values of a model come from is decided in one place and one order
(`bert/training/estimator.py`): 1. a checkpoint in `--output_dir` is resumed; 2. else
`--init_checkpoint` initialises by name; 3. else the model is random.
"""

import contextlib
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from absl import flags, logging

from bert import tokenization
from bert.checkpoints import model_files, released_models
from bert.io import atomic_files
from bert.io.tables import DataError
from bert.model.configuration import BertConfig
from bert.scripts import command_line, flag_groups
from bert.training import distribution, hardware

FLAGS = flags.FLAGS

# ---------------------------------------------------------------------------------------------
# Flags. Names, types and defaults of the original come first in each group.


def define_model_flags(
  max_seq_length: int = 128, reads_text: bool = True, runs_model: bool = True
) -> None:
  """The flags that say which model, vocabulary and checkpoint.

  Args:
    max_seq_length: the default.
    reads_text: whether the script needs a vocabulary; one that reads finished records does not.
    runs_model: whether the script computes with the model, so that --dtype means something.
  """
  with flag_groups.flag_group("Model"):
    flags.DEFINE_string(
      "bert_config_file",
      None,
      "JSON file with the sizes of the model. Default: bert_config.json beside --init_checkpoint.",
    )
    if reads_text:
      flags.DEFINE_string(
        "vocab_file",
        None,
        "The vocabulary the model was trained on. Default: vocab.txt beside --init_checkpoint.",
      )
      flags.DEFINE_bool(
        "do_lower_case", True, "Whether to lower the case: True for uncased models, else False."
      )
    flags.DEFINE_string(
      "init_checkpoint",
      None,
      "Where the weights start: a checkpoint's prefix, a folder with one, an exported encoder, or "
      "the name of a released model such as uncased_L-12_H-768_A-12, which is then downloaded."
      + (" A checkpoint in --output_dir wins over it." if runs_model else ""),
    )
    flags.DEFINE_integer(
      "max_seq_length",
      max_seq_length,
      "Longest sequence in word pieces, [CLS] and [SEP] included. "
      + ("Longer ones are cut." if reads_text else "The records must be of that length."),
    )
    if runs_model:
      flags.DEFINE_enum(
        "dtype",
        "float32",
        ["float32", "bfloat16", "float16", "auto"],
        "Type of the matrix products; auto: bfloat16 where this machine multiplies in it. "
        "Variables, softmax, LayerNorm and the loss stay float32.",
      )


def define_training_flags(epochs: bool = True) -> None:
  """The flags that say how to train, evaluate in between, and save."""
  with flag_groups.flag_group("Training"):
    flags.DEFINE_integer("train_batch_size", 32, "Sequences in a training batch, over all devices.")
    flags.DEFINE_float("learning_rate", 5e-5, "Peak learning rate of Adam.")
    if epochs:
      flags.DEFINE_float("num_train_epochs", 3.0, "How often to go through the training data.")
      flags.DEFINE_float(
        "warmup_proportion", 0.1, "Share of the steps in which the rate grows linearly from 0."
      )
    flags.DEFINE_integer(
      "gradient_accumulation_steps",
      1,
      "Take each batch in so many parts, one after another, to save memory.",
    )
    flags.DEFINE_integer(
      "seed", 12345, "Governs initial values, dropout and the order of the data."
    )
    flags.DEFINE_integer(
      "shuffle_buffer_size", 100, "Records among which the next one is drawn. The original's 100."
    )
    flags.DEFINE_bool(
      "pad_to_max_length",
      False,
      "Pad every batch to --max_seq_length, as the original, and not to its own longest example. "
      "Slower, same results.",
    )

  with flag_groups.flag_group("Speed"):
    flags.DEFINE_bool(
      "fast",
      False,
      "Stands for --dtype=auto and, in runs of 500 steps or more, --group_by_length, unless given. "
      "Results differ from the default's as those of another seed do.",
    )
    flags.DEFINE_bool(
      "group_by_length",
      False,
      "Train on batches of similar lengths: the same examples and as many steps, less padding.",
    )

  with flag_groups.flag_group("Several devices and machines"):
    flags.DEFINE_enum(
      "distribution_strategy",
      "one_device",
      list(distribution.NAMES),
      "one_device; mirrored: all GPUs of this machine; multi_worker: this command on each machine "
      "of TF_CONFIG, with one --output_dir that all of them share; tpu: as --use_tpu. Batch sizes "
      "are those of all devices together.",
    )

  with flag_groups.flag_group("Optimizer (defaults are the original's)"):
    flags.DEFINE_enum("optimizer", "adamw", ["adamw", "lamb"], "AdamW, or LAMB for large batches.")
    flags.DEFINE_bool("adam_bias_correction", False, "Correct Adam's bias, which BERT never did.")
    flags.DEFINE_enum(
      "lr_schedule",
      "original",
      ["original", "continuous"],
      "original: the rate drops where the warm-up ends. continuous: it decays from its peak.",
    )
    flags.DEFINE_float(
      "layerwise_lr_decay", 1.0, "Each layer learns at this factor of the layer above it."
    )
    flags.DEFINE_float(
      "head_learning_rate", None, "Peak rate of the variables outside bert/. Default: the same."
    )
    flags.DEFINE_list(
      "freeze",
      [],
      "What not to train: embeddings, encoder, layers:N (embeddings and the first N layers), or a "
      "regular expression on variable names. Several with commas.",
    )

  with flag_groups.flag_group("Checkpoints and progress"):
    flags.DEFINE_integer("save_checkpoints_steps", 1000, "Save a checkpoint each so many steps.")
    flags.DEFINE_integer(
      "iterations_per_loop",
      1000,
      "Steps between two returns to Python on a TPU, or elsewhere if given: less overhead, same "
      "results, but progress shows only that often.",
    )
    flags.DEFINE_integer("keep_checkpoint_max", 5, "How many of the newest checkpoints to keep.")
    flags.DEFINE_integer("save_summary_steps", 100, "TensorBoard scalars each so many steps.")
    flags.DEFINE_integer(
      "log_every_steps", 100, "A line of progress each so many steps, where there is no bar."
    )
    flags.DEFINE_bool(
      "plots",
      False,
      "Draw training curves and scores into OUTPUT_DIR/plots. Scalars are then written each 10 "
      "steps, unless --save_summary_steps is given.",
    )


def define_packing_flag() -> None:
  """The flag of scripts whose model reads packed rows."""
  with flag_groups.flag_group("Speed"):
    flags.DEFINE_bool(
      "pack_sequences",
      False,
      "Put several short sequences into one row of --max_seq_length. They do not see each other; "
      "results are the same. For devices that do not skip padding.",
    )


def reading_options() -> dict:
  """The keywords of `input_pipeline.record_input_fn` that flags set."""
  return {
    "shuffle_buffer": FLAGS.shuffle_buffer_size,
    "pad_to_max_length": FLAGS.pad_to_max_length or FLAGS.use_tpu,
    "group_by_length": FLAGS.group_by_length,
  }


def define_eval_in_training_flags() -> None:
  """The flags of evaluation during training."""
  with flag_groups.flag_group("Evaluation during training"):
    flags.DEFINE_integer(
      "eval_every_steps", 0, "Evaluate on the dev set each so many training steps; 0: never."
    )
    flags.DEFINE_string(
      "best_metric", None, "The result that tells the best checkpoint. Default: the task's own."
    )
    flags.DEFINE_bool(
      "keep_best",
      True,
      "With --eval_every_steps: keep the best weights in OUTPUT_DIR/best, and use them for "
      "--do_eval and --do_predict.",
    )
    flags.DEFINE_integer(
      "early_stopping_patience",
      None,
      "With --eval_every_steps: stop after so many evaluations in a row without improvement.",
    )


def define_export_flags() -> None:
  """The flags that say whether and where to leave SavedModels."""
  with flag_groups.flag_group("Export"):
    flags.DEFINE_bool(
      "do_export",
      False,
      "Whether to write SavedModels of the best or newest checkpoint: preprocess, encoder, task.",
    )
    flags.DEFINE_string("export_dir", None, "Where to. Default: OUTPUT_DIR/export.")


def optimizer_options() -> dict:
  """The keywords of `optimization.create_optimizer` that flags set."""
  return {
    "optimizer": FLAGS.optimizer,
    "bias_correction": FLAGS.adam_bias_correction,
    "schedule": FLAGS.lr_schedule,
    "layerwise_lr_decay": FLAGS.layerwise_lr_decay,
    "head_learning_rate": FLAGS.head_learning_rate,
    "freeze": tuple(FLAGS.freeze),
    "scale_loss": FLAGS.dtype == "float16",
  }


def run_config(fingerprint: Mapping, informative: Mapping):
  """The `estimator.RunConfig` that flags describe.

  Args:
    fingerprint: what has to be equal to resume: see `model_fingerprint`.
    informative: what is only told when it differs.
  """
  from bert.training.estimator import RunConfig

  steps_per_loop = 1
  if FLAGS.use_tpu or command_line.flag_was_given("iterations_per_loop"):
    steps_per_loop = FLAGS.iterations_per_loop
  return RunConfig(
    model_dir=FLAGS.output_dir,
    seed=FLAGS.seed,
    save_checkpoints_steps=FLAGS.save_checkpoints_steps,
    keep_checkpoint_max=FLAGS.keep_checkpoint_max,
    save_summary_steps=FLAGS.save_summary_steps,
    log_every_steps=FLAGS.log_every_steps,
    steps_per_loop=steps_per_loop,
    gradient_accumulation_steps=FLAGS.gradient_accumulation_steps,
    strategy=create_strategy(),
    fingerprint=dict(fingerprint),
    informative=dict(informative),
  )


def create_estimator(model_fn, fingerprint: Mapping, informative_flags: Iterable[str]):
  """The `estimator.Estimator` that flags describe.

  Args:
    model_fn: what it runs.
    fingerprint: what has to be equal to resume: see `model_fingerprint`.
    informative_flags: names of flags; when a run resumes with another value, that is only told.
  """
  from bert.training.estimator import Estimator

  informative = {name: FLAGS[name].value for name in informative_flags}
  batch_sizes = [f"{mode}_batch_size" for mode in ("train", "eval", "predict")]
  params = {name: FLAGS[name].value for name in batch_sizes if name in FLAGS}
  return Estimator(model_fn, run_config(fingerprint, informative), params)


def eval_spec(input_fn: Callable, metric: str, steps: int | None = None):
  """The `estimator.EvalSpec` of `--eval_every_steps`.

  Args:
    input_fn: the evaluation data.
    metric: decides which checkpoint is best, where `--best_metric` names no other.
    steps: at most so many batches each time; None for all.
  """
  from bert.training.estimator import EvalSpec

  metric = FLAGS.best_metric or metric
  return EvalSpec(
    input_fn,
    every_steps=FLAGS.eval_every_steps,
    metric=metric,
    higher_is_better=not metric.endswith(("loss", "mse")),
    patience=FLAGS.early_stopping_patience,
    keep_best=FLAGS.keep_best,
    steps=steps,
  )


def create_strategy():
  """The strategy of `--distribution_strategy`; None for one device."""
  return distribution.create_strategy(
    "tpu" if FLAGS.use_tpu else FLAGS.distribution_strategy,
    tpu_name=FLAGS.tpu_name,
    tpu_zone=FLAGS.tpu_zone,
    gcp_project=FLAGS.gcp_project,
  )


def num_train_steps(count: int, unit: str = "examples") -> int:
  """Steps that `--num_train_epochs` make: at least one, where the original died of none.

  Settles with it whether `--fast` groups by length.

  Args:
    count: of what an epoch consists of.
    unit: its name, for the warning.
  """
  steps = int(count / FLAGS.train_batch_size * FLAGS.num_train_epochs)
  group_long_run(steps)
  if steps >= 1:
    return steps
  logging.warning(
    "%d %s, a batch of %d and %g epochs make less than one step: training for one.",
    count,
    unit,
    FLAGS.train_batch_size,
    FLAGS.num_train_epochs,
  )
  return 1


def group_long_run(num_train_steps: int) -> None:
  """Sets `--group_by_length` for `--fast`, if the run is long enough for it to pay."""
  is_packed = "pack_sequences" in FLAGS and FLAGS.pack_sequences
  if FLAGS.fast and not is_packed and not command_line.flag_was_given("group_by_length"):
    FLAGS.group_by_length = num_train_steps >= _MIN_STEPS_TO_GROUP


def best_checkpoint() -> str | None:
  """The best weights of evaluation during training, if this run keeps them."""
  if not (FLAGS.eval_every_steps and FLAGS.keep_best):
    return None
  from bert.checkpoints import checkpoint

  path = checkpoint.latest(os.path.join(FLAGS.output_dir, "best"))
  if path:
    logging.info("Using the best checkpoint, %s.", path)
  return path


# ---------------------------------------------------------------------------------------------
# Checks, before anything takes long.


def wants_released_model() -> bool:
  """Whether `--init_checkpoint` names a released model, and no folder here of the same name."""
  return released_models.is_wanted(FLAGS.init_checkpoint)


def resolve_model_files() -> None:
  """Downloads a released `--init_checkpoint`, and finds config and vocabulary beside it."""
  if not FLAGS.init_checkpoint:
    return
  FLAGS.init_checkpoint = released_models.local_path(FLAGS.init_checkpoint)
  files = model_files.find(FLAGS.init_checkpoint)
  for flag, path in (("bert_config_file", files.config), ("vocab_file", files.vocabulary)):
    if flag in FLAGS and FLAGS[flag].value is None and path:
      setattr(FLAGS, flag, path)
      logging.info("--%s=%s, found with --init_checkpoint.", flag, path)


def folder_of_init_checkpoint() -> str | None:
  """Where `--init_checkpoint`, a folder or a prefix, lies; None without one."""
  return model_files.folder_of(FLAGS.init_checkpoint) if FLAGS.init_checkpoint else None


# Batches of similar lengths save a fifth of a step and cost the compilation for some twenty more
# shapes: on MRPC's 343 steps that is as much (docs/benchmarks.md).
_MIN_STEPS_TO_GROUP = 500


def check_training_flags() -> None:
  """Checks numbers that would otherwise fail much later, and chooses a dtype for `--fast`.

  Raises:
    UsageError: names the flag, its value and what it may be.
  """
  if FLAGS.fast and not command_line.flag_was_given("dtype"):
    FLAGS.dtype = "auto"
  if FLAGS.plots and not command_line.flag_was_given("save_summary_steps"):
    # A fine-tuning run has some hundred steps: one point each 100 makes no curve.
    FLAGS.save_summary_steps = 10
  at_least_one = [
    "train_batch_size",
    "eval_batch_size",
    "predict_batch_size",
    "save_checkpoints_steps",
    "iterations_per_loop",
    "keep_checkpoint_max",
    "save_summary_steps",
    "log_every_steps",
    "gradient_accumulation_steps",
    "shuffle_buffer_size",
    "early_stopping_patience",
    "num_train_steps",
    "max_eval_steps",
    "max_seq_length",
    "max_predictions_per_seq",
  ]
  for name in at_least_one:
    check_flag(name, lambda value: value >= 1, "at least 1")
  check_flag("learning_rate", lambda value: 0 <= value < math.inf, "a number of at least 0")
  check_flag("num_train_epochs", lambda value: 0 < value < math.inf, "a positive number")
  check_flag("num_warmup_steps", lambda value: value >= 0, "at least 0")
  check_flag("warmup_proportion", lambda value: 0 <= value <= 1, "between 0 and 1")
  check_flag("layerwise_lr_decay", lambda value: 0 < value <= 1, "above 0 and at most 1")
  check_flag("head_learning_rate", lambda value: 0 <= value < math.inf, "a number of at least 0")
  check_flag("eval_every_steps", lambda value: value >= 0, "at least 0")
  _agree_on_tpu()
  _check_packing()
  if FLAGS.train_batch_size % FLAGS.gradient_accumulation_steps:
    raise command_line.UsageError(
      f"--train_batch_size={FLAGS.train_batch_size} does not divide into "
      f"--gradient_accumulation_steps={FLAGS.gradient_accumulation_steps} equal parts."
    )


def _agree_on_tpu() -> None:
  """Makes `--use_tpu`, the original's flag, and `--distribution_strategy=tpu` say the same."""
  if FLAGS.distribution_strategy == "tpu":
    FLAGS.use_tpu = True
  elif FLAGS.use_tpu:
    if command_line.flag_was_given("distribution_strategy"):
      raise command_line.UsageError(
        f"--use_tpu and --distribution_strategy={FLAGS.distribution_strategy} exclude each other."
      )
    FLAGS.distribution_strategy = "tpu"


def _check_packing() -> None:
  """Refuses what rows with several sequences do not go with."""
  if "pack_sequences" not in FLAGS or not FLAGS.pack_sequences:
    return
  others = {
    "group_by_length": FLAGS.group_by_length,
    "gradient_accumulation_steps": FLAGS.gradient_accumulation_steps > 1,
    "distribution_strategy": FLAGS.distribution_strategy != "one_device",
    "long_text": "long_text" in FLAGS and FLAGS.long_text != "truncate",
  }
  for name, is_set in others.items():
    if is_set:
      raise command_line.UsageError(
        f"--pack_sequences does not go with --{name}={FLAGS[name].value}: leave one of them out."
      )


def check_split_flags() -> None:
  """Checks that each file that the run reads is named, or a folder to look for it.

  Raises:
    UsageError: names the flag.
  """
  for split, is_used in (
    ("train", FLAGS.do_train),
    ("dev", FLAGS.do_eval or (FLAGS.do_train and FLAGS.eval_every_steps)),
    ("test", FLAGS.do_predict),
  ):
    if is_used and not FLAGS[f"{split}_file"].value and not FLAGS.data_dir:
      raise command_line.UsageError(f"--{split}_file is needed, or --data_dir that holds one.")


def split_file(split: str, stems: Iterable[str], endings: Iterable[str]) -> str:
  """The file that flags give for `train`, `dev` or `test`.

  Args:
    split: which; `--<split>_file` names it.
    stems: of its name in `--data_dir`, the first that is there counts.
    endings: of its name, without the dot.

  Raises:
    DataError: `--data_dir` has none.
  """
  if FLAGS[f"{split}_file"].value:
    return FLAGS[f"{split}_file"].value
  names = [f"{stem}.{ending}" for stem in stems for ending in endings]
  paths = (os.path.join(FLAGS.data_dir, name) for name in names)
  found = next(filter(os.path.isfile, paths), None)
  if found is None:
    reason = f"there is none of {', '.join(names)}."
    raise DataError(reason, FLAGS.data_dir, advice=f"Name it: --{split}_file.")
  return found


def check_flag(name: str, is_good: Callable[[float], bool], needed: str) -> None:
  """Raises a UsageError if the flag is there and has a value that is not good."""
  value = FLAGS[name].value if name in FLAGS else None
  if value is not None and not is_good(value):
    raise command_line.UsageError(f"--{name}={value}: {needed} is needed.")


def join_workers() -> None:
  """Meets the other workers of `multi_worker`; from here on each knows whether it is the chief."""
  if "distribution_strategy" in FLAGS and FLAGS.distribution_strategy == "multi_worker":
    create_strategy()


def load_config() -> BertConfig:
  """Finds `--init_checkpoint`, reads `--bert_config_file`, checks its length, chooses `--dtype`.

  Joins the workers of the job first, since all that follows may compute with TensorFlow.

  Raises:
    ValueError: a file is bad or missing, or `--max_seq_length` is too long for the model.
  """
  join_workers()
  if FLAGS.init_checkpoint:
    from bert.checkpoints import checkpoint

    FLAGS.init_checkpoint = checkpoint.find_checkpoint(FLAGS.init_checkpoint)
  config = BertConfig.from_json_file(FLAGS.bert_config_file)
  if FLAGS.max_seq_length > config.max_position_embeddings:
    raise ValueError(
      f"Cannot use sequence length {FLAGS.max_seq_length} because the BERT model was only trained "
      f"up to sequence length {config.max_position_embeddings}. Lower --max_seq_length."
    )
  if "dtype" in FLAGS:
    FLAGS.dtype = hardware.choose_dtype(FLAGS.dtype, "use_tpu" in FLAGS and FLAGS.use_tpu)
  return config


def load_config_and_tokenizer():
  """Reads `--bert_config_file` and `--vocab_file`, and checks that they fit.

  Returns:
    `(configuration.BertConfig, tokenization.FullTokenizer)`.

  Raises:
    ValueError: a file is bad, or they do not belong together or to the other flags.
  """
  config = load_config()
  tokenization.validate_case_matches_checkpoint(FLAGS.do_lower_case, FLAGS.init_checkpoint)
  if FLAGS.init_checkpoint:
    model_files.check_case(FLAGS.do_lower_case, FLAGS.init_checkpoint)
  tokenizer = tokenization.FullTokenizer(
    vocab_file=FLAGS.vocab_file, do_lower_case=FLAGS.do_lower_case
  )
  model_files.check_vocabulary_size(
    tokenizer.vocab, FLAGS.vocab_file, config.vocab_size, FLAGS.bert_config_file
  )
  from bert.checks import start_checks

  start_checks.log_cheap_findings(config, tokenizer.vocab)
  return config, tokenizer


def prepare_output_dir() -> None:
  """Makes `--output_dir`, and checks that it can be written to, before hours of work.

  Raises:
    OSError: it cannot; the message names it.
  """
  try:
    os.makedirs(FLAGS.output_dir, exist_ok=True)
    atomic_files.check_writable(FLAGS.output_dir)
  except OSError as error:
    raise OSError(f"--output_dir={FLAGS.output_dir} cannot be written to: {error}") from None


@contextlib.contextmanager
def held_output_dir() -> Iterator[None]:
  """Prepares `--output_dir`, and keeps a second run out of it until the block ends.

  Not only training writes there: a run that evaluates would replace the features another one reads.
  The chief holds the folder for all workers.

  Raises:
    FolderInUseError: another run holds it.
    OSError: it cannot be written to.
  """
  prepare_output_dir()
  with contextlib.ExitStack() as stack:
    if distribution.is_chief():
      try:
        stack.enter_context(atomic_files.hold_folder(FLAGS.output_dir))
      except atomic_files.FolderInUseError as error:
        raise _with_way_out(error) from None
    yield


def _with_way_out(error: atomic_files.FolderInUseError) -> atomic_files.FolderInUseError:
  if FLAGS.do_train:
    return error
  return atomic_files.FolderInUseError(
    f"{error} To use its newest checkpoint meanwhile, give --init_checkpoint={FLAGS.output_dir} "
    "and another --output_dir."
  )


# What of a BertConfig decides which function the weights are of. Dropout may change on the way.
_SHAPE_KEYS = (
  "vocab_size",
  "hidden_size",
  "num_hidden_layers",
  "num_attention_heads",
  "intermediate_size",
  "hidden_act",
  "max_position_embeddings",
  "type_vocab_size",
)


def model_fingerprint(config, tokenizer=None, **task) -> dict:
  """What makes a run the same run: the model's shape, the vocabulary, and facts of the task."""
  shape = {key: config.to_dict()[key] for key in _SHAPE_KEYS}
  if tokenizer is None:
    return {**shape, **task}
  return {
    **shape,
    "vocabulary": tokenization.vocabulary_hash(tokenizer.vocab),
    "do_lower_case": FLAGS.do_lower_case,
    **task,
  }


def check_same_model(fingerprint: Mapping, ignored: Sequence[str] = ()) -> None:
  """Refuses an `--output_dir` that holds a checkpoint of another model or task.

  Training does so itself. This comes before anything in the folder is overwritten, and guards
  evaluation and prediction, too: with other labels the model would answer, and wrongly.

  Args:
    fingerprint: of this run, see `model_fingerprint`.
    ignored: keys that may differ.

  Raises:
    ResumeMismatchError: names the keys that differ, with both values.
  """
  from bert.checkpoints import checkpoint
  from bert.training import resumption

  resumption.check_same_run(checkpoint.latest(FLAGS.output_dir), fingerprint, ignored)


# ---------------------------------------------------------------------------------------------
# Export.


def where_to_export(checkpoint_path: str | None = None) -> tuple[str, str]:
  """The folder that `--export_dir` means, and the checkpoint to export.

  Args:
    checkpoint_path: the best one, if the run keeps it; else the newest of `--output_dir` is taken.

  Raises:
    ValueError: there is nothing to export.
  """
  from bert.checkpoints import checkpoint

  checkpoint_path = checkpoint_path or checkpoint.latest(FLAGS.output_dir)
  if not checkpoint_path:
    raise ValueError(
      f"--do_export: there is no checkpoint in --output_dir={FLAGS.output_dir}; train with "
      "--do_train. A model that is not fine-tuned is exported by export_hub.py."
    )
  return FLAGS.export_dir or os.path.join(FLAGS.output_dir, "export"), checkpoint_path


def export_hub_models(
  export_dir: str, config: BertConfig, checkpoint_path: str, tf_text_tokenizer: bool = False
) -> None:
  """Writes `encoder/` and `preprocess/` into `export_dir`.

  Args:
    export_dir: made if it is not there.
    config: of the model.
    checkpoint_path: a checkpoint that holds the whole encoder.
    tf_text_tokenizer: see `hub_preprocess.Preprocessor`.
  """
  from bert.exporting import hub_encoder, hub_preprocess

  hub_encoder.export_encoder(
    os.path.join(export_dir, "encoder"),
    config,
    checkpoint_path,
    FLAGS.vocab_file,
    FLAGS.do_lower_case,
  )
  hub_preprocess.export_preprocess(
    os.path.join(export_dir, "preprocess"),
    FLAGS.vocab_file,
    FLAGS.do_lower_case,
    FLAGS.max_seq_length,
    tf_text_tokenizer,
  )
  logging.info("Exported the encoder and its preprocessing to %s.", export_dir)
