"""What transformers itself makes and computes, for `tests/checkpoints/transformers_folder_test.py`.

It runs in an interpreter with PyTorch and transformers, and without TensorFlow:

  python tools/transformers_peer.py make FOLDER     # a model with each head, and its logits
  python tools/transformers_peer.py make_families FOLDER  # the same of ELECTRA and ALBERT
  python tools/transformers_peer.py compute FOLDER  # logits of every model in FOLDER
  python tools/transformers_peer.py save_older FOLDER  # each model in FOLDER as .bin, too

Each model is a folder in FOLDER. `inputs.npz` in FOLDER is what all of them read; a model's logits
are written into its own folder, as `logits.npz`.
"""

import json
import pathlib
import shutil
import sys

import numpy as np
import torch
import transformers

SIZES = {
  "vocab_size": 23,
  "hidden_size": 16,
  "num_hidden_layers": 2,
  "num_attention_heads": 2,
  "intermediate_size": 24,
  "max_position_embeddings": 12,
}
CLASSES = (
  "BertModel",
  "BertForPreTraining",
  "BertForMaskedLM",
  "BertForNextSentencePrediction",
  "BertForSequenceClassification",
  "BertForTokenClassification",
  "BertForQuestionAnswering",
  "BertForMultipleChoice",
)


# Classes of other families that compute what the originals' heads compute.
FAMILIES = {
  "Electra": (
    *("Model", "ForPreTraining", "ForMaskedLM", "ForSequenceClassification"),
    *("ForTokenClassification", "ForQuestionAnswering", "ForMultipleChoice"),
  ),
  "Albert": (
    *("Model", "ForPreTraining", "ForMaskedLM", "ForSequenceClassification"),
    *("ForTokenClassification", "ForQuestionAnswering", "ForMultipleChoice"),
  ),
  **dict.fromkeys(
    ("Roberta", "DistilBert"),
    (
      *("Model", "ForMaskedLM", "ForSequenceClassification"),
      *("ForTokenClassification", "ForQuestionAnswering", "ForMultipleChoice"),
    ),
  ),
}
SIZES_OF_FAMILIES = {
  "Electra": {"embedding_size": 8},
  "Albert": {"embedding_size": 8, "num_hidden_groups": 2, "inner_group_num": 2},
  "Roberta": {"type_vocab_size": 1, "layer_norm_eps": 1e-3},
  "DistilBert": {"hidden_dim": 24},
}


def make_families(folder: pathlib.Path) -> None:
  """Saves a random model of each class of the other families."""
  for family, classes in FAMILIES.items():
    for ending in classes:
      class_name = family + ending
      save(random_model(class_name, **SIZES_OF_FAMILIES[family]), folder / class_name)
  compute(folder)


def make(folder: pathlib.Path) -> None:
  """Saves a random model of each class, and some in other types, or in several files."""
  for class_name in CLASSES:
    save(random_model(class_name), folder / class_name)
  save(random_model("BertForPreTraining", hidden_act="gelu_new"), folder / "tanh")
  save(random_model("BertForPreTraining", hidden_act="relu"), folder / "relu")
  save(random_model("BertForPreTraining").half(), folder / "float16")
  save(random_model("BertForPreTraining").bfloat16(), folder / "bfloat16")
  save(random_model("BertForPreTraining"), folder / "sharded", max_shard_size="5KB")
  compute(folder)


def random_model(class_name: str, **settings):
  """A model none of whose parameters is as an untrained model's, biases included."""
  torch.manual_seed(len(class_name))
  # Beginning and end; ALBERT's order of sentences has as many classes as the configuration.
  is_two = class_name.endswith(("ForQuestionAnswering", "ForPreTraining"))
  num_labels = 2 if is_two else 3
  family = next(name for name in ("Bert", *FAMILIES) if class_name.startswith(name))
  config_class = getattr(transformers, f"{family}Config")
  config = config_class(**{**SIZES, **settings}, num_labels=num_labels)
  model = getattr(transformers, class_name)(config)
  with torch.no_grad():
    for name, parameter in model.named_parameters():
      is_scale = name.endswith(("LayerNorm.weight", "layer_norm.weight"))
      parameter.normal_(1.0 if is_scale else 0.0, 0.3)
  return model


def save(model, folder: pathlib.Path, **options) -> None:
  """Saves a model."""
  model.save_pretrained(folder, **options)


def save_older(folder: pathlib.Path) -> None:
  """Writes `pytorch_model.bin` of each model in a folder, in folders for the forms."""
  for config in sorted(folder.glob("*/config.json")):
    [class_name] = transformers.AutoConfig.from_pretrained(config.parent).architectures
    tensors = getattr(transformers, class_name).from_pretrained(config.parent).state_dict()
    for form in ("zip", "pickles", "sharded"):
      target = folder / form / config.parent.name
      target.mkdir(parents=True)
      shutil.copy(config, target)
      path = target / "pytorch_model.bin"
      if form == "sharded":
        _save_in_parts(tensors, path)
      else:
        torch.save(tensors, path, _use_new_zipfile_serialization=form == "zip")


def _save_in_parts(tensors, path: pathlib.Path) -> None:
  weight_map = {}
  for start in range(3):
    part = {name: tensors[name] for name in list(tensors)[start::3]}
    name = f"pytorch_model-{start + 1:05}-of-00003.bin"
    torch.save(part, path.parent / name)
    weight_map |= dict.fromkeys(part, name)
  index = path.with_name("pytorch_model.bin.index.json")
  index.write_text(json.dumps({"metadata": {}, "weight_map": weight_map}))


def compute(folder: pathlib.Path) -> None:
  """Writes the logits of each model in a folder, in float32."""
  with np.load(folder / "inputs.npz") as file:
    inputs = {name: torch.from_numpy(file[name].astype(np.int64)) for name in file.files}
  for config in sorted(folder.glob("*/config.json")):
    np.savez(config.parent / "logits.npz", **logits_of(config.parent, inputs))


def logits_of(folder: pathlib.Path, inputs) -> dict[str, np.ndarray]:
  """Everything a model puts out, by transformers' names."""
  [class_name] = transformers.AutoConfig.from_pretrained(folder).architectures
  model_class = getattr(transformers, class_name)
  model, report = model_class.from_pretrained(
    folder, dtype=torch.float32, output_loading_info=True, attn_implementation="eager"
  )
  random = [name for name in report["missing_keys"] if "pooler" not in name]
  if random or report["mismatched_keys"]:
    sys.exit(f"{folder}: transformers starts {random} {report['mismatched_keys']} at random.")
  if class_name.startswith(("Roberta", "DistilBert")):  # without segments
    inputs = {name: value for name, value in inputs.items() if name != "token_type_ids"}
  if class_name.endswith("ForMultipleChoice"):  # two choices a question
    inputs = {name: value.reshape(-1, 2, value.shape[-1]) for name, value in inputs.items()}
  with torch.no_grad():
    outputs = model.eval()(**inputs)
  return {name: value.numpy() for name, value in outputs.items() if torch.is_tensor(value)}


if __name__ == "__main__":
  programs = (make, make_families, compute, save_older)
  {program.__name__: program for program in programs}[sys.argv[1]](pathlib.Path(sys.argv[2]))
