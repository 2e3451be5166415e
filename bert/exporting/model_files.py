"""The files of an export's models, by format and precision; `model_folder.py` has the others.

model_file("out/export", "onnx", "int8")     # out/export/onnx/model_quantized.onnx
"""

import os
from collections.abc import Mapping

from bert.io import filesystem

SAVED_MODEL = "saved_model"

FILES: Mapping[str, Mapping[str, str]] = {
  "onnx": {"float32": "onnx/model.onnx", "int8": "onnx/model_quantized.onnx"},
  "litert": {
    "float32": "litert/model.tflite",
    "float16": "litert/model_float16.tflite",
    "int8": "litert/model_int8.tflite",
  },
  SAVED_MODEL: {"float32": "saved_model.pb"},  # of token ids: a task's, by --do_export
}
"""Format -> precision -> file of the model."""


def formats_in(folder: str | os.PathLike) -> list[str]:
  """Lists the formats of `FILES` that a folder has, in which it may be without a `bert_run.json`.

  A SavedModel can be anything, without that file.
  """
  own = (name for name in FILES if name != SAVED_MODEL)
  return [name for name in own if filesystem.is_file(os.path.join(folder, FILES[name]["float32"]))]


def model_file(folder: str | os.PathLike, format_name: str, precision: str = "float32") -> str:
  """Returns the path of a model in a folder.

  Raises:
    ValueError: the folder does not have it; says what it has.
  """
  name = FILES[format_name].get(precision)
  path = os.path.join(folder, name or "")
  if name and filesystem.is_file(path):
    return path
  present = [
    file
    for files in FILES.values()
    for file in files.values()
    if filesystem.is_file(os.path.join(folder, file))
  ]
  flags = {"float32": "", "int8": " --int8", "float16": " --float16"}.get(precision)
  known = ", ".join(FILES[format_name])
  remedy = (
    f"Export it: export_hub.py --format={format_name}{flags}."
    if name and flags is not None
    else f"The precisions of {format_name} are {known}."
  )
  raise ValueError(
    f"{os.fsdecode(folder)} has no model of {format_name} in {precision}, but "
    f"{', '.join(present) or 'none at all'}. {remedy}"
  )
