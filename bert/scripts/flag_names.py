"""Which flag was meant by a name that no flag has.

  suggestion("lr", ["learning_rate", ...])     # "Did you mean --learning_rate?"
  removed("pack_sequences")                    # "Use --group_by_length, ..."

Other programs call the same things otherwise: their usual names are in a table, misspelt ones are
found by likeness. Flags of earlier versions of this project are in a table with what replaces them.
"""

import difflib
from collections.abc import Collection, Container, Mapping
from typing import Any, NamedTuple

# The names of other programs, in lower case without "_" -> flags of ours that mean it. The first
# that the script has is suggested.
_TRAIN_BATCH = ("train_batch_size", "batch_size")
_LENGTH = ("max_seq_length",)
_MODEL = ("init_checkpoint",)
_DATA = ("data_dir", "input_file", "train_file", "glue_dir")
_OUTPUT = ("output_dir", "output_file", "export_dir")
_EPOCHS = ("num_train_epochs", "epochs", "num_train_steps")
_STEPS = ("num_train_steps", "num_train_epochs")
_WARM_UP = ("num_warmup_steps", "warmup_proportion")
_ACCUMULATION = ("gradient_accumulation_steps",)
_DTYPE = ("dtype",)
_DEVICES = ("distribution_strategy", "gpus")
_USUAL_NAMES = {
  "lr": ("learning_rate", "learning_rates"),
  **dict.fromkeys(("epochs", "epoch", "numepochs"), _EPOCHS),
  **dict.fromkeys(("bs", "batch", "batchsize", "trainbs", "perdevicetrainbatchsize"), _TRAIN_BATCH),
  "pergputrainbatchsize": _TRAIN_BATCH,
  "perdeviceevalbatchsize": ("eval_batch_size",),
  **dict.fromkeys(("maxlen", "maxlength", "seqlen", "seqlength"), _LENGTH),
  **dict.fromkeys(("model", "modelname", "modelnameorpath", "modelpath", "bertmodel"), _MODEL),
  **dict.fromkeys(("checkpoint", "ckpt", "pretrained", "weights", "pretrainedmodel"), _MODEL),
  **dict.fromkeys(("data", "dataset", "input", "corpus", "text"), _DATA),
  **dict.fromkeys(("out", "output", "modeldir"), _OUTPUT),
  **dict.fromkeys(("warmup", "warmupratio", "warmupsteps"), _WARM_UP),
  **dict.fromkeys(("steps", "maxsteps", "iterations"), _STEPS),
  **dict.fromkeys(("gradaccum", "accumulationsteps"), _ACCUMULATION),
  **dict.fromkeys(("train", "training"), ("do_train",)),
  **dict.fromkeys(("eval", "evaluate", "dev"), ("do_eval",)),
  **dict.fromkeys(("predict", "test", "inference"), ("do_predict",)),
  **dict.fromkeys(("export", "save", "savemodel"), ("do_export",)),
  **dict.fromkeys(("lower", "lowercase", "uncased"), ("do_lower_case",)),
  **dict.fromkeys(("task", "taskname", "datasetname"), ("task_name", "tasks")),
  **dict.fromkeys(("vocab", "vocabulary", "tokenizer", "tokenizername"), ("vocab_file",)),
  **dict.fromkeys(("config", "configfile", "bertconfig", "configname"), ("bert_config_file",)),
  **dict.fromkeys(("fp16", "bf16", "amp", "half", "mixedprecision", "precision"), _DTYPE),
  **dict.fromkeys(("usefp16", "useamp", "xla", "usexla"), ("dtype", "fast")),
  **dict.fromkeys(("numgpus", "ngpu", "gpu", "devices"), _DEVICES),
  **dict.fromkeys(("savesteps", "saveevery"), ("save_checkpoints_steps",)),
  "savetotallimit": ("keep_checkpoint_max",),
  **dict.fromkeys(("evalsteps", "evalevery"), ("eval_every_steps",)),
  **dict.fromkeys(("loggingsteps", "logevery"), ("log_every_steps",)),
  **dict.fromkeys(("patience", "earlystopping"), ("early_stopping_patience",)),
  **dict.fromkeys(("metricforbestmodel", "metric", "monitor"), ("best_metric",)),
  "randomseed": ("seed", "random_seed", "seeds"),
  **dict.fromkeys(("textcolumn", "sentence1key"), ("text_a_column",)),
  **dict.fromkeys(("labelcol", "target"), ("label_column",)),
  **dict.fromkeys(("stride", "docstride", "overlap"), ("doc_stride",)),
  **dict.fromkeys(("workers", "numproc", "processes", "threads"), ("num_workers",)),
  **dict.fromkeys(("engine", "usebeam"), ("runner",)),
  **dict.fromkeys(("wd", "weightdecayrate", "l2"), ("weight_decay",)),
  **dict.fromkeys(("beta2", "adambeta2"), ("adam_beta_2",)),
  **dict.fromkeys(("topk", "numpredictions"), ("top_k",)),
  **dict.fromkeys(("maskprob", "mlmprobability", "maskedlmprobability"), ("masked_lm_prob",)),
}

# What is set elsewhere, or not at all.
_WITHOUT_FLAG = {
  **dict.fromkeys(
    ("dropout", "hiddendropoutprob", "dropoutrate", "attentionprobsdropoutprob"),
    "Dropout is in bert_config.json: hidden_dropout_prob and attention_probs_dropout_prob.",
  ),
  **dict.fromkeys(
    ("device", "cuda", "nocuda", "cpu", "usecpu", "usegpu"),
    "The GPU is used where TensorFlow sees one; CUDA_VISIBLE_DEVICES=-1 hides it.",
  ),
  **dict.fromkeys(
    ("overwriteoutputdir", "overwrite", "overwritecache", "fromscratch"),
    "To start again, give another --output_dir.",
  ),
  **dict.fromkeys(
    ("resume", "resumefromcheckpoint", "continue"),
    "A run resumes by itself from the checkpoint in --output_dir.",
  ),
  **dict.fromkeys(
    ("runwithpdb", "pdb", "pdbpostmortem"), "To debug, run python -m pdb before the script's name."
  ),
  "inputfilemode": "Text is read as UTF-8, as in every mode of the original.",
  **dict.fromkeys(("verbose", "debug", "quiet", "loglevel"), "The log: --verbosity=1 or -1."),
}


class _Removed(NamedTuple):
  """A flag of an earlier version.

  Attributes:
    remedy: what to do instead, a sentence.
    off: the value with which the flag changed nothing, beside None.
    decides_training: whether a run that used it cannot be resumed without it.
  """

  remedy: str
  off: Any = None
  decides_training: bool = False


_NUM_RUNS = "--num_runs trains several seeds and reports their mean and spread."
_CREATE_OPTIMIZER = "Use optimization.create_optimizer in a training loop of your own."
_CONFIG = "Set it in bert_config.json."
_NO_SUCCESSOR = "It has no successor."
_REMOVED = {
  # Several runs.
  "average_runs": _Removed(_NUM_RUNS),
  "average_weights": _Removed(_NUM_RUNS),
  "dry_run": _Removed("Each run keeps its command in its directory.", False),
  "features_dir": _Removed("Each run keeps its features in --output_dir."),
  "keep_checkpoints": _Removed("Use --keep_checkpoint_max; run_glue.py keeps the best.", "best"),
  "redo": _Removed("Remove the runs, or give another --output_dir.", False),
  "save_outputs": _Removed("--do_predict writes predictions.", False),
  "seeds": _Removed("Use --num_runs=N, with --seed as the first seed."),
  # Steps and batches.
  "double_unordered": _Removed("Write each pair twice into the training file.", False, True),
  "first_batch_size": _Removed("Use --train_batch_size.", None, True),
  "min_train_steps": _Removed("Use a larger --num_train_epochs.", 0, True),
  "pack_sequences": _Removed("Use --group_by_length, which also saves padding.", False, True),
  "train_minutes": _Removed("Use --num_train_steps.", None, True),
  "train_step": _Removed("Use --num_train_epochs.", None, True),
  "warmup_proportion": _Removed("Use --num_warmup_steps."),
  "warmup_step": _Removed("Use --warmup_proportion.", None, True),
  "window_stride": _Removed("Windows always overlap by half.", None, True),
  # Optimizer.
  "decay_all_variables": _Removed(_CREATE_OPTIMIZER, False, True),
  "layerwise_lr_top_power": _Removed(_CREATE_OPTIMIZER, 0, True),
  "max_grad_norm": _Removed(_CREATE_OPTIMIZER, 1.0, True),
  "optimizer": _Removed("Fine-tuning uses AdamW, pre-training has the flag.", "adamw", True),
  "poly_power": _Removed(_CREATE_OPTIMIZER, 1.0, True),
  "recipe": _Removed("docs/recipes.md lists the flags to give instead.", "2018"),
  "reinit_layers": _Removed(_NO_SUCCESSOR, 0),
  "start_warmup_step": _Removed(_CREATE_OPTIMIZER, 0, True),
  "sum_loss": _Removed(_NO_SUCCESSOR, False, True),
  # Tasks and models.
  "cache_teacher": _Removed("The teacher answers in each step, with the same losses.", False),
  "calibration_file": _Removed("--int8 finds the range of activations in each call."),
  "dropout": _Removed(_CONFIG, None, True),
  "initializer_range": _Removed(_CONFIG),
  "label_scale": _Removed("Scale the labels in the data.", 1.0, True),
  "merge_labels": _Removed("Correct the labels that the warning names.", False),
  "new_rows": _Removed("New rows are the mean of their old pieces.", "mean"),
  "plot": _Removed("Draw the arrays of --output_format=npz."),
  "plot_method": _Removed("Draw the arrays of --output_format=npz.", "pca"),
  "plots": _Removed("The report has the curves; plots.py draws them as pictures.", False),
  "reference": _Removed(_NO_SUCCESSOR),
  "saved_model": _Removed("--init_checkpoint also takes an export."),
  "scale_each_map": _Removed("Draw each map alone, with --layer and --head.", False),
  "segment_id": _Removed("Token types are 0, as in the original.", 0, True),
  "tf_text_tokenizer": _Removed("The published preprocess models have that tokenizer.", False),
  "teacher_dropout": _Removed(_NO_SUCCESSOR, False, True),
  "x_axis": _Removed("The horizontal axis is the training step."),
  "xnli_train_language": _Removed("Train with --xnli_language, evaluate with another.", None, True),
  "zmq_port": _Removed("Use the HTTP routes, see docs/serving.md."),
  # Vocabularies and pre-training.
  "always_mask": _Removed(_NO_SUCCESSOR, False, True),
  "cross_documents": _Removed("--format=roberta does it.", None),
  "disallow_correct": _Removed(_NO_SUCCESSOR, False, True),
  "generator": _Removed("The generator has the sizes in bert_config.json.", "small", True),
  "generator_hidden_size": _Removed(_CONFIG, None, True),
  "generator_layers": _Removed(_CONFIG, None, True),
  "hparams": _Removed("Give each of its keys as a flag."),
  "init_from_group0": _Removed(_NO_SUCCESSOR, False),
  "mask_rules": _Removed("Masks follow BERT's rules.", "bert", True),
  "max_input_words": _Removed(_NO_SUCCESSOR, 500_000),
  "max_words": _Removed(_NO_SUCCESSOR, 2_000_000),
  "masked_lm_budget": _Removed(_NO_SUCCESSOR, 0, True),
  "reserved_tokens": _Removed("Rename [unusedN] lines, of which --num_unused makes more."),
  "skip_long_lines": _Removed("Long lines continue in the next sequence.", False),
  "temperature": _Removed(_NO_SUCCESSOR, 1.0, True),
  "untied_generator_embeddings": _Removed(_NO_SUCCESSOR, False, True),
  "whole_words_by_space": _Removed("Use --do_whole_word_mask.", False),
}


def removed(name: str) -> str:
  """Returns what replaces a flag of an earlier version; empty for any other name.

  Example:
    >>> removed("train_minutes")
    'Use --num_train_steps.'
  """
  entry = _REMOVED.get(name) or _REMOVED.get(name.removeprefix("no"))
  return entry.remedy if entry else ""


def removed_names() -> list[str]:
  """Returns the names of all removed flags."""
  return list(_REMOVED)


def removed_from_training(values: Mapping[str, Any], known: Container[str]) -> list[str]:
  """Returns the removed flags without which a run cannot be resumed, as `--name=value: remedy`.

  Args:
    values: flag -> value, of the run that trained.
    known: the flags that the script has today; another script may have lost them.

  Example:
    >>> values = {"pack_sequences": False, "train_minutes": 3.0, "temperature": 2.0}
    >>> removed_from_training(values, known=["temperature"])
    ['--train_minutes=3.0: Use --num_train_steps.']
  """
  return [
    f"--{name}={values[name]}: {entry.remedy}"
    for name, entry in _REMOVED.items()
    if entry.decides_training
    and name not in known
    and values.get(name, entry.off) not in (entry.off, None)
  ]


def suggestion(name: str, known: Collection[str], booleans: Collection[str] = ()) -> str:
  """Returns what to write instead of a flag that does not exist; empty where nothing is near.

  The name comes without dashes and value; `no` may precede the flags in `booleans`.

  Example:
    >>> suggestion("--max-len".lstrip("-"), ["max_seq_length", "learning_rate"])
    'Did you mean --max_seq_length?'
    >>> suggestion("fp32", ["learning_rate"])
    ''
  """
  if meant := _meant(name, known, booleans):
    return f"Did you mean --{meant}?"
  return _WITHOUT_FLAG.get(_plain(name), "")


def _meant(name: str, known: Collection[str], booleans: Collection[str]) -> str | None:
  plain = _plain(name)
  names = {_plain(each): each for each in (*known, *(f"no{each}" for each in booleans))}
  if plain in names:
    return names[plain]
  for usual in _USUAL_NAMES.get(plain, ()):
    if usual in known:
      return usual
  if plain in _WITHOUT_FLAG:
    return None
  near = difflib.get_close_matches(plain, names, n=1)
  return names[near[0]] if near else None


def _plain(name: str) -> str:
  return name.lower().replace("-", "").replace("_", "")
