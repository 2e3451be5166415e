"""Saves models as transformers' TensorFlow classes do, for tests/checkpoints/older_weights_test.py.

It runs with transformers 4, tf-keras and TF_USE_LEGACY_KERAS=1, without PyTorch:

  python tools/tensorflow_classes_peer.py FOLDER

Of each folder of FOLDER with a `model.safetensors`, `h5` in FOLDER gets one with a `tf_model.h5`,
and `h5_sharded` one with several.
"""

import json
import pathlib
import sys

import transformers
from safetensors.numpy import load_file
from transformers.modeling_tf_pytorch_utils import load_pytorch_state_dict_in_tf2_model


class Tensors(dict):
  """What the function that loads expects of an open file."""

  get_tensor = dict.__getitem__


def save(source: pathlib.Path, folder: pathlib.Path) -> None:
  """Saves one model in both ways."""
  [class_name] = json.loads((source / "config.json").read_text())["architectures"]
  config = transformers.AutoConfig.from_pretrained(source)
  model = getattr(transformers, f"TF{class_name}")(config)
  model.build_in_name_scope()
  tensors = Tensors(load_file(source / "model.safetensors"))
  load_pytorch_state_dict_in_tf2_model(model, tensors, tf_inputs=False, allow_missing_keys=True)
  if hasattr(model, "predictions"):  # ALBERT's, which a safetensors file has once
    model.predictions.decoder_bias.assign(tensors["predictions.bias"])
  model.save_pretrained(folder / "h5" / source.name)
  model.save_pretrained(folder / "h5_sharded" / source.name, max_shard_size="5KB")
  for form, size in {"tf": "5GB", "tf_sharded": "5KB"}.items():
    model.save_pretrained(folder / form / source.name, max_shard_size=size, safe_serialization=True)


if __name__ == "__main__":
  for path in sorted(pathlib.Path(sys.argv[1]).glob("*/model.safetensors")):
    save(path.parent, pathlib.Path(sys.argv[1]))
