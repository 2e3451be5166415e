"""The flags that scripts which predict share, in the group that is being defined.

Those of models and of training runs are typed settings (run_settings.py).
"""

from typing import Any

from absl import flags

from bert.scripts import command_line, path_flags


def define_skip_bad_rows_flag() -> None:
  """`--skip_bad_rows`, of scripts that read tables."""
  flags.DEFINE_bool("skip_bad_rows", False, "Leave malformed rows out and count them.")


def define_spm_model_file() -> None:
  """The flag of ALBERT's vocabulary."""
  path_flags.define(
    "spm_model_file",
    None,
    "ALBERT: its sentencepiece model, instead of --vocab_file. Default: 30k-clean.model or "
    "spiece.model beside --init_checkpoint.",
  )


def define_prediction_dtype_flag() -> None:
  """The data type of scripts that only predict."""
  flags.DEFINE_enum(
    "dtype",
    "float32",
    ["float32", "bfloat16", "float16"],
    "Data type of a checkpoint's matrix products. Results are float32.",
  )


def model_options(*names: str) -> dict[str, Any]:
  """Returns options of `Predictor.load`: the flags of these names, and what was given of a model.

  Those settings of `ModelFiles` that were not given are left to the model.
  """
  flags_ = flags.FLAGS
  options = {name: flags_[name].value for name in names}
  options["vocab_file"] = flags_.spm_model_file or flags_.vocab_file
  options["bert_config_file"] = flags_.bert_config_file
  for name in ("max_seq_length", "do_lower_case"):
    options[name] = flags_[name].value if command_line.flag_was_given(name) else None
  return options


def define_engine_flags() -> None:
  """What computes the model."""
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
  """Whether results have the same bits in every batch."""
  flags.DEFINE_bool(
    "batch_invariant",
    False,
    "The result of a text has the same bits whatever texts are around it, in whatever order, and "
    "whatever --batch_size is: texts are computed in batches of fixed shapes, or, of a fine-tuned "
    "model, one by one.",
  )


def define_report_flag(when: str) -> None:
  """`--report`, which says when the report is written, and what it shows."""
  flags.DEFINE_bool("report", True, f"Write OUTPUT_DIR/report.html when {when}.")
