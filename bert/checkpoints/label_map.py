"""The labels of a model, in the order of its outputs: of its run, its `config.json` or its file.

  labels_of("out/model.ckpt-20")                   # ["no", "yes"]
  labels_of("transformers/model.safetensors")      # those of `id2label` in its config.json
  write("out", ["no", "yes"])                      # out/label_map.json: {"no": 0, "yes": 1}

Whoever asks for the labels of a model gets them here: task scripts, exports and the server.
"""

import json
import os
from collections.abc import Sequence

from bert.checkpoints import model_files
from bert.io import atomic_files

NAME = "label_map.json"


def to_json(labels: Sequence[str]) -> str:
  """Numbers labels, in the form of `label_map.json`."""
  label_map = {label: index for index, label in enumerate(labels)}
  return json.dumps(label_map, indent=2, ensure_ascii=False) + "\n"


def write(folder: str, labels: Sequence[str]) -> None:
  """Writes `label_map.json`: label -> index of the model's output."""
  atomic_files.write_text(os.path.join(folder, NAME), to_json(labels))


def read(folder: str | None) -> list[str] | None:
  """Reads the `label_map.json` of a folder; None without one, a ValueError if it is malformed."""
  path = os.path.join(folder or "", NAME)
  if not folder or not os.path.isfile(path):
    return None
  with open(path, encoding="utf-8") as reader:
    try:
      label_map = json.load(reader)
      labels = sorted(label_map, key=label_map.get)
      if [label_map[label] for label in labels] != list(range(len(labels))):
        raise ValueError("its values are not 0, 1, 2, ...")
    except (ValueError, TypeError, AttributeError, RecursionError) as error:
      raise ValueError(f"{path} is no label map ({error}). Remove it.") from None
  return labels


def labels_of(prefix: str) -> list[str] | None:
  """Returns the labels of a checkpoint, or of another program's file of weights.

  1. those that its run stored with it, or that transformers' `config.json` beside it names;
  2. those of the `label_map.json` in its folder; 3. None: nothing is known of them.

  Raises:
    ValueError: what names them is malformed.
  """
  from bert.checkpoints import reading

  return reading.read_facts(prefix).get("labels") or read(model_files.run_folder_of(prefix))
