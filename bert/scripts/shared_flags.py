"""The flags that several `run_*` scripts have, each defined here once.

A script calls the functions it needs in its own `define_flags`. Names, types and defaults of the
original come first in each group. What follows from the flags is in run_settings.py.
"""

from typing import Any

from absl import flags

from bert.scripts import command_line, path_flags
from bert.scripts.flag_groups import define_tpu_flags, flag_group, mark_required
from bert.training import distribution


def define_run_flags(
  do_eval: str = "Whether to evaluate on the dev set.",
  do_predict: str | None = "Whether to predict the test set.",
  eval_batches: bool = True,
) -> None:
  """The flags that say where results go and which steps a run takes.

  Args:
    do_eval: help of `--do_eval`.
    do_predict: help of `--do_predict`; None for a script that predicts nothing.
    eval_batches: whether `--do_eval` has batches of its own size.
  """
  path_flags.define("output_dir", None, "Folder for checkpoints and results.", local=True)
  flags.DEFINE_bool("do_train", False, "Whether to train.")
  flags.DEFINE_bool("do_eval", False, do_eval)
  if eval_batches:
    flags.DEFINE_integer("eval_batch_size", 8, "Examples in an evaluation batch.")
  if do_predict:
    flags.DEFINE_bool("do_predict", False, do_predict)
    flags.DEFINE_integer("predict_batch_size", 8, "Examples in a prediction batch.")


def define_split_flags(data_dir: str) -> None:
  """The flags that name the files of scripts that 2018 did not have; see `RunSettings.split_file`.

  Args:
    data_dir: help of `--data_dir`.
  """
  path_flags.define("data_dir", None, data_dir)
  path_flags.define("train_file", None, "File to train on. [in --data_dir]")
  path_flags.define("dev_file", None, "File to evaluate on. [in --data_dir]")
  path_flags.define("test_file", None, "File to predict, with labels or without. [in --data_dir]")


def define_labels_flag(default: str) -> None:
  """`--labels`; `default` says which labels the model has without it."""
  flags.DEFINE_list("labels", None, f"All labels of the model, in order. [{default}]")


def define_table_flags() -> None:
  """The flags that describe `--task_name=csv`: tables of the user's own."""
  with flag_group("Your own data (--task_name=csv: train, dev, test .tsv .csv .jsonl)"):
    flags.DEFINE_string(
      "text_a_column", None, "Column of the text: name or number from 0. [text_a, or text]"
    )
    flags.DEFINE_string("text_b_column", None, "Column of a second text. [text_b, if it exists]")
    flags.DEFINE_string("label_column", None, "Column of the label. [label]")
    flags.DEFINE_string("id_column", None, "Column that identifies a row. [id, if it exists]")
    define_labels_flag("those of the training file, sorted")
    flags.DEFINE_enum(
      "problem_type",
      None,
      ["classification", "regression", "multi_label"],
      "What the label is: a class, a number, or several classes. [classification]",
    )
    flags.DEFINE_string("label_separator", None, "Separator between the labels of a row. [,]")
    flags.DEFINE_bool("header", None, "Whether the first row names the columns. [true]")
    define_skip_bad_rows_flag()


def define_skip_bad_rows_flag(default: bool | None = None) -> None:
  """`--skip_bad_rows`, of scripts that read tables."""
  flags.DEFINE_bool("skip_bad_rows", default, "Leave malformed rows out and count them.")


def define_doc_stride_flag(default: int | None, note: str = "") -> None:
  """`--doc_stride`, of scripts that read long texts in overlapping windows."""
  flags.DEFINE_integer(
    "doc_stride", default, f"Word pieces from the start of a window to that of the next.{note}"
  )


def define_spm_model_file() -> None:
  """The flag of ALBERT's vocabulary; `run_settings.from_flags` gives it as `vocab_file`."""
  path_flags.define(
    "spm_model_file",
    None,
    "ALBERT: its sentencepiece model, instead of --vocab_file. Default: 30k-clean.model or "
    "spiece.model beside --init_checkpoint.",
  )


def define_model_flags(
  max_seq_length: int = 128, reads_text: bool = True, runs_model: bool = True
) -> None:
  """The flags that choose model, vocabulary and checkpoint.

  Args:
    max_seq_length: the default.
    reads_text: whether the script needs a vocabulary; one that reads finished records does not.
    runs_model: whether the script computes with the model, so that --dtype means something.
  """
  with flag_group("Model"):
    path_flags.define(
      "bert_config_file",
      None,
      "JSON file with the sizes of the model. Default: bert_config.json beside --init_checkpoint.",
    )
    if reads_text:
      path_flags.define(
        "vocab_file",
        None,
        "The vocabulary the model was trained on. Default: vocab.txt beside --init_checkpoint.",
      )
      define_spm_model_file()
      flags.DEFINE_bool(
        "do_lower_case",
        True,
        "Whether to lower-case the text: True for uncased models, else False.",
      )
    path_flags.define(
      "init_checkpoint",
      None,
      "Initial weights: the prefix of a checkpoint, a folder with one, an exported encoder, or "
      "the name of a released model such as uncased_L-12_H-768_A-12, which is then downloaded."
      + (" A checkpoint in --output_dir takes precedence." if runs_model else ""),
      is_model=True,
    )
    flags.DEFINE_integer(
      "max_seq_length",
      max_seq_length,
      "Maximum sequence length in word pieces, [CLS] and [SEP] included. "
      + ("Longer sequences are truncated." if reads_text else "Must be that of the records.")
      + ("" if runs_model else " Without it, fewer where the model can read no more."),
    )
    if runs_model:
      flags.DEFINE_enum(
        "dtype",
        "float32",
        ["float32", "bfloat16", "float16", "auto"],
        "Data type of matrix products; auto: bfloat16 where this machine has instructions for it. "
        "Variables, softmax, LayerNorm and the loss stay float32.",
      )
      flags.DEFINE_bool(
        "allow_tf32",
        False,
        "On NVIDIA GPUs since Ampere: round the factors of float32 products to TF32 (10 bits), "
        "which is faster.",
      )


def define_prediction_dtype_flag() -> None:
  """The data type of scripts that only predict, in the group that is being defined."""
  flags.DEFINE_enum(
    "dtype",
    "float32",
    ["float32", "bfloat16", "float16"],
    "Data type of a checkpoint's matrix products. Results are float32.",
  )


def model_options(*names: str) -> dict[str, Any]:
  """Returns options of `Predictor.load`: the flags of these names, and what was given of a model.

  Those flags of `define_model_flags` that were not given are left to the model.
  """
  flags_ = flags.FLAGS
  options = {name: flags_[name].value for name in names}
  options["vocab_file"] = flags_.spm_model_file or flags_.vocab_file
  options["bert_config_file"] = flags_.bert_config_file
  for name in ("max_seq_length", "do_lower_case"):
    options[name] = flags_[name].value if command_line.flag_was_given(name) else None
  return options


def define_engine_flags() -> None:
  """What computes the model, in the group that is being defined."""
  from bert.predicting.engines import registry

  flags.DEFINE_enum(
    "engine",
    "auto",
    ["auto", *registry.NAMES],
    "What computes the model. onnxruntime and openvino read what export_hub.py --format=onnx "
    "wrote, litert what --format=litert wrote; they need no TensorFlow. auto: TensorFlow for a "
    "checkpoint; for such an export the first of these engines that is installed.",
  )
  flags.DEFINE_enum(
    "precision",
    "float32",
    list(registry.PRECISIONS),
    "Which of an export's models to take, if it has several. bfloat16 is computed by openvino from "
    "the model of float32.",
  )


def define_batch_invariant_flag() -> None:
  """Whether results have the same bits in every batch, in the group that is being defined."""
  flags.DEFINE_bool(
    "batch_invariant",
    False,
    "The result of a text has the same bits whatever texts are around it, in whatever order, and "
    "whatever --batch_size is: texts are computed in batches of fixed shapes, or, of a fine-tuned "
    "model, one by one.",
  )


def define_long_text_flags() -> None:
  """The flags for documents longer than one sequence."""
  from bert.tasks.windows import POOLINGS

  with flag_group("Long documents"):
    flags.DEFINE_enum(
      "long_text",
      "truncate",
      ["truncate", "windows"],
      "truncate: cut texts longer than --max_seq_length. windows: read them in several windows of "
      "that length, each half a window after the one before, whose logits are pooled.",
    )
    flags.DEFINE_enum(
      "window_pooling", "mean", POOLINGS, "How the logits of windows become those of the document."
    )
    flags.DEFINE_integer(
      "max_windows",
      8,
      "Maximum number of windows of a document. A batch needs the memory of all its windows.",
    )


def define_training_flags(epochs: bool = True, pad_to_max_length: bool = True) -> None:
  """The flags of training, optimizer, devices, checkpoints and progress.

  Args:
    epochs: whether the script counts epochs; else it has numbers of steps of its own.
    pad_to_max_length: whether batches may be padded to their own longest sequence with the same
      results, so that a flag turns this off.
  """
  with flag_group("Training"):
    flags.DEFINE_integer("train_batch_size", 32, "Examples in a training batch, over all devices.")
    flags.DEFINE_float("learning_rate", 5e-5, "Peak learning rate of Adam.")
    if epochs:
      flags.DEFINE_float("num_train_epochs", 3.0, "Number of passes over the training data.")
      flags.DEFINE_float(
        "warmup_proportion",
        0.1,
        "Fraction of the steps in which the learning rate rises linearly from 0.",
      )
    flags.DEFINE_integer(
      "gradient_accumulation_steps",
      1,
      "Take each batch in N parts, one after another, to save memory.",
    )
    flags.DEFINE_integer(
      "seed", 12345, "Seed of initial values, dropout and the order of the data."
    )
    flags.DEFINE_integer(
      "shuffle_buffer_size", 100, "Size of the shuffle buffer in records. The original's is 100."
    )
    if pad_to_max_length:
      flags.DEFINE_bool(
        "pad_to_max_length",
        False,
        "Pad every batch to --max_seq_length, as the original does, instead of to its own longest "
        "example. Slower, same results.",
      )

  with flag_group("Speed"):
    flags.DEFINE_bool(
      "fast",
      False,
      "Sets --dtype=auto and, in runs of 500 steps or more, --group_by_length, unless these are "
      "given. Results then differ as they do between seeds.",
    )
    flags.DEFINE_bool(
      "group_by_length",
      False,
      "Train on batches of similar lengths: the same examples and number of steps, less padding.",
    )

  with flag_group("Several devices and machines"):
    flags.DEFINE_enum(
      "distribution_strategy",
      "one_device",
      list(distribution.NAMES),
      "one_device; mirrored: all GPUs of this machine; multi_worker: this command on each machine "
      "of TF_CONFIG, with one --output_dir that all of them share; tpu: as --use_tpu. Batch sizes "
      "are those of all devices together.",
    )

  with flag_group("Optimizer (defaults are the original's)"):
    if not epochs:
      flags.DEFINE_enum(
        "optimizer", "adamw", ["adamw", "lamb"], "AdamW, or LAMB for large batches."
      )
    flags.DEFINE_bool(
      "adam_bias_correction", False, "Apply Adam's bias correction, which the original omits."
    )
    flags.DEFINE_float(
      *("adam_beta_2", 0.999, "Decay of Adam's second moment; RoBERTa has 0.98."),
      lower_bound=0.0,
      upper_bound=1.0,
    )
    flags.DEFINE_float(
      *("weight_decay", 0.01, "Share of each weight that a step takes away, times its rate."),
      lower_bound=0.0,
    )
    flags.DEFINE_enum(
      "lr_schedule",
      "original",
      ["original", "continuous", "constant"],
      "original: the learning rate drops at the end of warm-up. continuous: it decays from its "
      "peak. constant: it stays at its peak.",
    )
    flags.DEFINE_float(
      "layerwise_lr_decay",
      1.0,
      "The learning rate of each layer is that of the layer above it times this factor.",
    )
    flags.DEFINE_float(
      "head_learning_rate",
      None,
      "Peak learning rate of the variables outside the encoder. Default: --learning_rate.",
    )
    flags.DEFINE_list(
      "freeze",
      [],
      "What not to train: embeddings, encoder, layers:N (embeddings and the first N layers), or a "
      "regular expression on variable names. Several with commas.",
    )

  with flag_group("Checkpoints and progress"):
    flags.DEFINE_integer("save_checkpoints_steps", 1000, "Save a checkpoint every N steps.")
    flags.DEFINE_integer(
      "iterations_per_loop",
      1000,
      "Return to Python every N steps: on a TPU always, elsewhere only if given. Less overhead, "
      "same results, but progress is shown only that often.",
    )
    flags.DEFINE_integer(
      "keep_checkpoint_max",
      5,
      "Keep the N newest checkpoints; 0 keeps all, also the one before the first step.",
    )
    flags.DEFINE_integer(
      "save_summary_steps",
      None,
      "Write TensorBoard scalars every N steps, and at the end. Default: 10 in a run of fewer than "
      "2,000 steps whose report draws curves, and in each of --num_runs; else 100.",
    )
    flags.DEFINE_integer(
      "log_every_steps",
      100,
      "Log progress every N steps where standard error is no terminal and shows no progress bar.",
    )
    define_report_flag("the run ends: results, curves, the most wrong examples")


def define_report_flag(when: str) -> None:
  """Defines `--report`, which says when the report is written, and what it shows."""
  flags.DEFINE_bool("report", True, f"Write OUTPUT_DIR/report.html when {when}.")


def define_eval_in_training_flags() -> None:
  """The flags of evaluation during training."""
  with flag_group("Evaluation during training"):
    flags.DEFINE_integer(
      "eval_every_steps", 0, "Evaluate on the dev set every N training steps; 0: never."
    )
    flags.DEFINE_string(
      "best_metric",
      None,
      "The metric that selects the best checkpoint; of equal values, the earliest. Default: the "
      "task's own; in pre-training masked_lm_loss.",
    )
    flags.DEFINE_bool(
      "keep_best",
      True,
      "With --eval_every_steps: keep the best weights in OUTPUT_DIR/best, and use them for "
      "--do_eval, --do_predict and --do_export, later as well. Without --do_train, "
      "--init_checkpoint=OUTPUT_DIR/model.ckpt-N chooses others.",
    )
    flags.DEFINE_integer(
      "early_stopping_patience",
      None,
      "With --eval_every_steps: stop after N consecutive evaluations without improvement.",
    )


def define_many_seeds_flags() -> None:
  """The flags of several runs that differ in their seed, see many_runs.py."""
  with flag_group("Many seeds"):
    flags.DEFINE_integer(
      "num_runs",
      None,
      "Make N runs, with the seeds --seed, --seed + 1, ..., each in a folder of its own below "
      "--output_dir, and report them together: mean, spread, failed runs.",
    )
    flags.DEFINE_integer("parallel_runs", 1, "Number of these runs side by side.")
    flags.DEFINE_list(
      "gpus", [], "Numbers of the GPUs to spread these runs over, such as 0,1. [all for each run]"
    )


def define_export_flags() -> None:
  """The flags that say whether and where to leave SavedModels."""
  with flag_group("Export"):
    flags.DEFINE_bool(
      "do_export",
      False,
      "Whether to export the best or newest checkpoint as SavedModels: preprocess, encoder, task.",
    )
    path_flags.define(
      "export_dir", None, "Folder for them. Default: OUTPUT_DIR/export.", local=True
    )


def define_fine_tuning_flags() -> None:
  """All flags of a script beyond the original's, except those of its task and data."""
  define_model_flags()
  define_training_flags()
  define_eval_in_training_flags()
  define_export_flags()
  define_tpu_flags()
  mark_required(["vocab_file", "bert_config_file", "output_dir"])
