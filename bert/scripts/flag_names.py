"""Which flag was meant by a name that no flag has.

  suggestion("lr", ["learning_rate", ...])     # "Did you mean --learning_rate?"

Other programs call the same things otherwise: their usual names are in a table, misspelt ones are
found by likeness.
"""

import difflib
from collections.abc import Collection

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
  **dict.fromkeys(("lr", "rate", "learningrates", "stepsize"), ("learning_rate", "learning_rates")),
  **dict.fromkeys(("headlr", "classifierlr"), ("head_learning_rate",)),
  **dict.fromkeys(("epochs", "epoch", "numepochs", "nepochs", "trainepochs", "maxepochs"), _EPOCHS),
  **dict.fromkeys(("bs", "batch", "batchsize", "trainbs", "perdevicetrainbatchsize"), _TRAIN_BATCH),
  "pergputrainbatchsize": _TRAIN_BATCH,
  **dict.fromkeys(("evalbs", "perdeviceevalbatchsize", "testbatchsize"), ("eval_batch_size",)),
  **dict.fromkeys(("maxlen", "maxlength", "maxseqlen", "seqlen", "seqlength", "length"), _LENGTH),
  **dict.fromkeys(("sequencelength", "maxsequencelength", "maxsourcelength"), _LENGTH),
  **dict.fromkeys(("model", "modelname", "modelnameorpath", "modelpath", "bertmodel"), _MODEL),
  **dict.fromkeys(("checkpoint", "ckpt", "checkpointpath", "pretrained", "weights"), _MODEL),
  **dict.fromkeys(("pretrainedmodel", "berthubmodulehandle", "hubmodule", "tfhubhandle"), _MODEL),
  **dict.fromkeys(("data", "dataset", "datapath", "inputdir", "input", "corpus", "text"), _DATA),
  **dict.fromkeys(("out", "output", "outdir", "savedir", "outputpath", "modeldir"), _OUTPUT),
  **dict.fromkeys(("warmup", "warmupratio", "warmupsteps"), _WARM_UP),
  **dict.fromkeys(("steps", "maxsteps", "numsteps", "trainsteps", "iterations"), _STEPS),
  **dict.fromkeys(("gradaccum", "accumsteps", "accumulationsteps", "gradaccsteps"), _ACCUMULATION),
  **dict.fromkeys(("train", "training", "dotraining"), ("do_train",)),
  **dict.fromkeys(("eval", "evaluate", "evaluation", "dev", "doevaluate"), ("do_eval",)),
  **dict.fromkeys(("predict", "predictions", "test", "dotest", "inference"), ("do_predict",)),
  **dict.fromkeys(("export", "save", "savemodel"), ("do_export",)),
  **dict.fromkeys(("lower", "lowercase", "uncased", "dolower"), ("do_lower_case",)),
  **dict.fromkeys(("task", "taskname", "datasetname"), ("task_name", "tasks")),
  **dict.fromkeys(("vocab", "vocabulary", "tokenizer", "tokenizername"), ("vocab_file",)),
  **dict.fromkeys(("config", "configfile", "bertconfig", "configname"), ("bert_config_file",)),
  **dict.fromkeys(("fp16", "bf16", "amp", "half", "mixedprecision", "precision"), _DTYPE),
  **dict.fromkeys(("usefp16", "useamp", "xla", "usexla"), ("dtype", "fast")),
  **dict.fromkeys(("numgpus", "ngpu", "ngpus", "gpu", "multigpu", "devices"), _DEVICES),
  **dict.fromkeys(("savesteps", "saveevery", "checkpointevery"), ("save_checkpoints_steps",)),
  **dict.fromkeys(("savetotallimit", "keepcheckpoints"), ("keep_checkpoint_max",)),
  **dict.fromkeys(("evalsteps", "evalevery", "validationsteps"), ("eval_every_steps",)),
  **dict.fromkeys(("loggingsteps", "logsteps", "logevery", "printevery"), ("log_every_steps",)),
  **dict.fromkeys(("patience", "earlystopping"), ("early_stopping_patience",)),
  **dict.fromkeys(("metricforbestmodel", "metric", "monitor"), ("best_metric",)),
  **dict.fromkeys(("randomseed", "randseed", "rngseed"), ("seed", "random_seed", "seeds")),
  **dict.fromkeys(("textcolumn", "textcol", "sentence1key"), ("text_a_column",)),
  **dict.fromkeys(("labelcol", "labelscolumn", "target", "targetcolumn"), ("label_column",)),
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
  **dict.fromkeys(
    ("runwithprofiling", "profilefile", "usecprofileforprofiling"),
    "To profile, run python -m cProfile before the script's name.",
  ),
  "inputfilemode": "Text is read as UTF-8, as in every mode of the original.",
  **dict.fromkeys(("verbose", "debug", "quiet", "loglevel"), "The log: --verbosity=1 or -1."),
}


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
