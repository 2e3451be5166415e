"""Every class of `bert.transformers` beside the class of the same name in transformers 4.

  python conformance/transformers_classes.py write FOLDER      # here
  python conformance/transformers_classes.py compare FOLDER    # where transformers 4.57 is

  python conformance/transformers_classes.py compare_torch FOLDER  # where transformers 5 is
  python conformance/transformers_classes.py read_torch FOLDER     # here

The third reads the folders with PyTorch's classes, compares their outputs alone, and saves models
with other weights; the fourth reads these, and compares their outputs.

With `--weights MODEL`, a folder of transformers, the first takes the classes of that model's family
and its weights, with random ones for the heads that it lacks.

The first makes a tiny model of each class, with random weights, saves it, and computes outputs, the
loss, and the gradient of the word embeddings. The second reads the folders with transformers and
TensorFlow (TF_USE_LEGACY_KERAS=1, tf-keras), computes the same, and prints a table of the largest
differences; with --record FILE it also writes what transformers computed, in sums, which
`tests/transformers/models_test.py` compares. The exit status is 1 if one is above 1e-5.
"""

import argparse
import json
import os
import pathlib
import sys
import zlib

import numpy as np

WIDTH, LAYERS, LENGTH, VOCABULARY, CLASSES = 16, 2, 7, 60, 3
TOLERANCE = 1e-5
# What transformers 4.57 does not compute: its class passes these arguments in the wrong order.
_LABELLED = ("ForSequenceClassification", "ForTokenClassification")
NOT_THERE = {"TFRobertaForMultipleChoice": ("hidden_states", "attentions")}


# ---------------------------------------------------------------------------------------------
# Here.


def model_with(weights: str, model_class):
  """Makes a model with the weights of a folder; those of other heads are random."""
  from bert.transformers import set_seed

  set_seed(1)
  labels = CLASSES if model_class.head in _LABELLED else 2
  return model_class.from_pretrained(weights, num_labels=labels)


def model_of(model_class):
  """Makes a tiny model with random weights, the same in every run."""
  sizes = {
    "vocab_size": VOCABULARY,
    "hidden_size": WIDTH,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 2,
    "intermediate_size": 24,
    "max_position_embeddings": 40,
  }
  config = model_class.config_class(num_labels=CLASSES if model_class.head in _LABELLED else 2)
  renamed = {"intermediate_size": "hidden_dim"} if hasattr(config, "hidden_dim") else {}
  for key, value in sizes.items():
    setattr(config, renamed.get(key, key), value)
  if hasattr(config, "embedding_size"):
    config.embedding_size = 8
  model = model_class(config)
  for name, variable in model.checkpoint_variables().items():
    random = np.random.default_rng(zlib.crc32(f"{model_class.__name__} {name}".encode()))
    variable.assign(0.3 * (random.random(variable.shape) - 0.5).astype(np.float32) + 0.05)
  return model


def inputs_of(model) -> dict[str, np.ndarray]:
  """Makes ids, masks and segments with padding, `[3, S]` or of three choices `[2, 3, S]`."""
  shape = (2, 3, LENGTH) if model.export_rank == 3 else (3, LENGTH)
  random = np.random.default_rng(1)
  mask = np.ones(shape, np.int32)
  mask[1:, ..., 5:] = 0
  ids = np.where(mask == 1, random.integers(4, model.config.vocab_size, shape), 1).astype(np.int32)
  found = {"input_ids": ids, "attention_mask": mask}
  if "token_type_ids" in model._parameters():
    second = np.arange(LENGTH) > 3
    found["token_type_ids"] = (second * mask * (model.config.type_vocab_size > 1)).astype(np.int32)
  return found


def labels_of(model) -> dict[str, np.ndarray]:
  """Makes labels of each kind that the model reads, some of which do not count."""
  random = np.random.default_rng(2)
  rows = 2 if model.export_rank == 3 else 3
  tokens = random.integers(0, CLASSES, (rows, LENGTH))
  tokens[:, ::3] = -100
  if model.head.startswith("ForToken") or "Masked" in model.head or "PreTraining" in model.head:
    first = tokens
  else:
    first = random.integers(0, 2, rows)
  return {
    name: first if index == 0 else random.integers(0, 2, rows)
    for index, name in enumerate(model.label_names)
  }


def computed(model, inputs, labels) -> dict[str, np.ndarray]:
  """Computes all outputs by name, `loss`, and `gradient`, that of the word embeddings."""
  import tensorflow as tf

  outputs = model(inputs, output_hidden_states=True, output_attentions=True)
  found = {}
  for name, values in outputs.items():
    several = values if isinstance(values, (tuple, list)) else [values]
    found |= {f"{name}.{index}": np.asarray(value) for index, value in enumerate(several)}
  with tf.GradientTape() as tape:
    given = {name: tf.constant(value) for name, value in labels.items()}
    outputs = model(**inputs, **given, training=False)
    loss = outputs["loss"] if "loss" in outputs else next(iter(outputs.values()))
    total = tf.reduce_mean(loss)
  [table] = [
    v for v in model.trainable_variables if "word_embeddings" in getattr(v, "path", v.name)
  ]
  table = getattr(table, "value", table) if hasattr(table, "path") else table
  found["gradient"] = tf.convert_to_tensor(tape.gradient(total, table)).numpy()
  if labels:
    found["loss"] = np.asarray(loss)
  return found


def sums_of(outputs) -> dict[str, list[float]]:
  """Sums up each output, as it is and without signs, with weights that tell its places apart."""
  found = {}
  for name, values in outputs.items():
    weights = np.cos(np.arange(values.size)).reshape(values.shape)
    found[name] = [float((values * weights).sum()), float(np.abs(values).sum())]
  return found


def all_classes() -> list[type]:
  """Lists the classes of all families and heads."""
  from bert.transformers import task_models

  made = [each for classes in task_models.CLASSES.values() for each in classes.items()]
  return [model_class for _, model_class in made if model_class.head]


def write(folder: pathlib.Path, weights: str | None) -> None:
  """Saves a model of each class, its inputs and its outputs."""
  from bert.transformers import AutoConfig

  family = AutoConfig.from_pretrained(weights).model_type if weights else None
  for model_class in all_classes():
    if family not in (None, model_class.config_class.model_type):
      continue
    model = model_with(weights, model_class) if weights else model_of(model_class)
    inputs, labels = inputs_of(model), labels_of(model)
    name = folder / model_class.__name__
    model.save_pretrained(name)
    outputs = computed(model, inputs, labels)
    for file, values in (("inputs", inputs), ("labels", labels), ("outputs", outputs)):
      np.savez(name / f"{file}.npz", **values)


def read_torch(folder: pathlib.Path) -> int:
  """Prints the largest difference of each class from what PyTorch's saved; the exit status."""
  from bert import transformers

  worst = 0.0
  for name in sorted(path.name for path in folder.iterdir()):
    saved = folder / name / "torch"
    inputs, theirs = np.load(folder / name / "inputs.npz"), np.load(saved / "outputs.npz")
    model_class = getattr(transformers, name)
    model, report = model_class.from_pretrained(saved, output_loading_info=True)
    if any(report.values()):
      raise SystemExit(f"{name}: {report}")
    ours = model(dict(inputs))
    compared = [key for key in theirs if key in ours]
    difference = max(np.abs(theirs[key] - np.asarray(ours[key])).max() for key in compared)
    print(f"| `{name}` | {', '.join(compared)} | {difference:.1e} |")
    worst = max(worst, float(difference))
  print(f"\nThe largest difference is {worst:.1e}.")
  return int(worst > TOLERANCE)


# ---------------------------------------------------------------------------------------------
# There.


def compare(folder: pathlib.Path, record: pathlib.Path | None) -> int:
  """Prints the table; the exit status."""
  os.environ["TF_USE_LEGACY_KERAS"] = "1"
  import transformers

  mend_reading()
  worst, recorded = 0.0, {}
  print("| class | outputs | hidden states, attentions | loss | gradient |\n|---|---|---|---|---|")
  for name in sorted(path.name for path in folder.iterdir()):
    files = [
      dict(np.load(folder / name / f"{each}.npz")) for each in ("inputs", "labels", "outputs")
    ]
    inputs, labels, ours = files
    model = getattr(transformers, name).from_pretrained(folder / name)
    theirs = computed(model, inputs, labels)
    recorded[name] = sums_of(theirs)
    missing = NOT_THERE.get(name, ())
    kept = [key for key in ours if key.partition(".")[0] not in missing]
    if sorted(kept) != sorted(theirs):
      raise SystemExit(f"{name}: outputs {sorted(kept)} and {sorted(theirs)}")
    differences = {"outputs": 0.0, "inner": 0.0, "loss": 0.0, "gradient": 0.0}
    for key in kept:
      if ours[key].shape != theirs[key].shape:
        raise SystemExit(f"{name}: {key} is {ours[key].shape} and {theirs[key].shape}")
      kind = "inner" if key.startswith(("hidden_states", "attentions")) else key
      kind = kind if kind in differences else "outputs"
      differences[kind] = max(differences[kind], float(np.abs(ours[key] - theirs[key]).max()))
    cells = [f"{value:.1e}" for value in differences.values()]
    print("|", " | ".join([f"`{name}`", *cells]), "|")
    worst = max(worst, *differences.values())
  print(f"\nThe largest difference is {worst:.1e}.")
  if record:
    record.write_text(json.dumps(recorded, indent=1) + "\n", encoding="utf-8")
  return int(worst > TOLERANCE)


def compare_torch(folder: pathlib.Path) -> int:
  """Prints the largest difference of each class from PyTorch's; the exit status."""
  import torch
  import transformers

  worst = 0.0
  for name in sorted(path.name for path in folder.iterdir()):
    inputs, ours = (dict(np.load(folder / name / f"{each}.npz")) for each in ("inputs", "outputs"))
    model_class = getattr(transformers, name.removeprefix("TF"))
    model, report = model_class.from_pretrained(folder / name, output_loading_info=True)
    if report["missing_keys"] or report["unexpected_keys"] or report["mismatched_keys"]:
      raise SystemExit(f"{name}: {report}")
    with torch.no_grad():
      theirs = model.eval()(**{each: torch.tensor(ids).long() for each, ids in inputs.items()})
    compared = {key: each.numpy() for key, each in theirs.items() if f"{key}.0" in ours}
    if not compared:
      raise SystemExit(f"{name}: outputs {sorted(ours)} and {sorted(theirs)}")
    difference = max(np.abs(each - ours[f"{key}.0"]).max() for key, each in compared.items())
    print(f"| `{name}` | {', '.join(compared)} | {difference:.1e} |")
    worst = max(worst, float(difference))
    save_torch(model, inputs, folder / name / "torch")
  print(f"\nThe largest difference is {worst:.1e}.")
  return int(worst > TOLERANCE)


def save_torch(model, inputs, folder: pathlib.Path) -> None:
  """Changes all weights of a model of PyTorch, and saves it and its outputs."""
  import torch

  with torch.no_grad():
    for parameter in model.parameters():
      parameter.mul_(1.5)
    outputs = model(**{name: torch.tensor(ids).long() for name, ids in inputs.items()})
  model.save_pretrained(folder)
  np.savez(folder / "outputs.npz", **{name: each.numpy() for name, each in outputs.items()})


def mend_reading() -> None:
  """4.57 iterates over the reader of a safetensors file, which cannot be iterated over."""
  from transformers import modeling_tf_pytorch_utils as reading

  original = reading.load_pytorch_state_dict_in_tf2_model

  def load(model, file, **options):
    return original(model, {name: file.get_tensor(name) for name in file.keys()}, **options)  # noqa: SIM118

  reading.load_pytorch_state_dict_in_tf2_model = load


def main() -> int:
  """Runs one half; the exit status."""
  parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
  parser.add_argument("half", choices=("write", "compare", "compare_torch", "read_torch"))
  parser.add_argument("folder", type=pathlib.Path)
  parser.add_argument("--weights", help="a model's folder, in the place of tiny random models")
  parser.add_argument("--record", type=pathlib.Path, help="write what transformers computed")
  args = parser.parse_args()
  if args.half == "compare":
    return compare(args.folder, args.record)
  if args.half == "compare_torch":
    return compare_torch(args.folder)
  sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent.parent))
  if args.half == "read_torch":
    return read_torch(args.folder)
  write(args.folder, args.weights)
  return 0


if __name__ == "__main__":
  sys.exit(main())
