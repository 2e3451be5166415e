"""The student that `distill.py` cuts from a model: its files in OUTPUT_DIR/student."""

import json
import os
from typing import Any

from absl import logging

from bert import families
from bert.checkpoints import model_files, model_source, numpy_writer
from bert.io import atomic_files, json_files
from bert.model.configuration import BertConfig
from bert.scripts import distillation_settings, run_files, run_states
from bert.scripts.settings import UsageError

STUDENT = "student"


def write_student(settings: Any) -> Any:
  """Writes the student that `--num_hidden_layers` or `--student_layers` asks for.

  From a BERT, `--method=distilbert` makes a DistilBERT.

  Returns:
    The settings of a run that starts from it.

  Raises:
    UsageError: the model has no such layers.
    ValueError: there is no usable checkpoint at `--init_checkpoint`.
  """
  from bert.checkpoints import finding
  from bert.distillation import students

  path = model_source.local_path(settings.init_checkpoint)
  prefix = finding.find_checkpoint(path)
  config = BertConfig.from_json_file(model_files.need_config(path))
  layers = distillation_settings.layers_of(settings)
  count = settings.num_hidden_layers
  if layers is None and count > config.num_hidden_layers:
    raise UsageError(
      f"--num_hidden_layers={count}: {settings.init_checkpoint} has {config.num_hidden_layers} "
      "layers to choose from."
    )
  layers = layers or students.spread_layers(config.num_hidden_layers, count)
  folder = settings.path(STUDENT)
  student = os.path.join(folder, "bert_model.ckpt")
  config_file = os.path.join(folder, run_files.CONFIG)
  is_distilbert = settings.method == "distilbert" and config.family is families.BERT
  key = {"source": run_states.identity_of_weights(prefix), "layers": layers}
  key["family"] = "distilbert" if is_distilbert else config.family.name
  key_file = os.path.join(folder, "student.json")
  if not os.path.isfile(key_file) or json_files.read_if_there(key_file, "Remove it.") != key:
    try:
      smaller, tensors = students.cut(prefix, config, layers)
      if is_distilbert:
        smaller, tensors = students.as_distilbert(smaller, tensors)
    except ValueError as error:
      raise UsageError(f"--student_layers={','.join(map(str, layers))}: {error}.") from None
    os.makedirs(folder, exist_ok=True)
    numpy_writer.write(student, tensors)
    atomic_files.write_text(config_file, smaller.to_json_string())
    atomic_files.write_text(key_file, json.dumps(key) + "\n")
  named = "layer" if len(layers) == 1 else "layers"
  logging.info("The student has %s %s of %s.", named, ", ".join(map(str, layers)), prefix)
  vocab_file = settings.vocab_file or model_files.need_vocabulary(path)
  return settings.replace(
    init_checkpoint=student, bert_config_file=config_file, vocab_file=vocab_file
  )
