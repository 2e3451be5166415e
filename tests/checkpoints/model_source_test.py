"""What a path or a name stands for, in the one place that decides it."""

import os

import pytest

from bert.checkpoints import model_source, released_models
from bert.checkpoints.bundle_files import CheckpointError
from bert.checkpoints.model_source import Kind, ModelSource, identify

BASE = "uncased_L-12_H-768_A-12"
FILES = {
  "released": ("bert_model.ckpt.index", "bert_config.json"),
  "run": ("model.ckpt-20.index", "checkpoint", "export/encoder/saved_model.pb"),
  "encoder": ("saved_model.pb", "variables/variables.index"),
  "export": ("encoder/saved_model.pb", "preprocess/saved_model.pb"),
  "transformers": ("config.json", "model.safetensors", "vocab.txt"),
  "sharded": ("model.safetensors.index.json",),
  "pickled": ("pytorch_model.bin",),
  "keras": ("model.keras", "other.h5"),
  "empty": (),
  "owner/name": ("model.ckpt-3.index",),
}


@pytest.fixture(autouse=True)
def place(tmp_path, monkeypatch):
  """The current folder, with one folder of each kind."""
  for folder, names in FILES.items():
    (tmp_path / folder).mkdir(parents=True)
    for name in names:
      path = tmp_path / folder / name
      path.parent.mkdir(parents=True, exist_ok=True)
      path.touch()
  monkeypatch.chdir(tmp_path)
  monkeypatch.setenv("HOME", str(tmp_path))
  return tmp_path


@pytest.mark.parametrize(
  ("model", "kind", "path"),
  [
    ("released", Kind.FOLDER, "released"),
    ("released/bert_model.ckpt", Kind.CHECKPOINT, "released/bert_model.ckpt"),
    ("released/bert_model.ckpt.index", Kind.CHECKPOINT, "released/bert_model.ckpt"),
    (
      "released/bert_model.ckpt.data-00000-of-00001",
      *(Kind.CHECKPOINT, "released/bert_model.ckpt"),
    ),
    ("run", Kind.RUN, "run"),
    ("run/model.ckpt-20.meta", Kind.CHECKPOINT, "run/model.ckpt-20"),
    ("run/export", Kind.FOLDER, "run/export"),
    ("encoder", Kind.FOLDER, "encoder"),
    ("encoder/variables/variables", Kind.CHECKPOINT, "encoder/variables/variables"),
    ("export/", Kind.FOLDER, "export/"),
    ("transformers", Kind.FOLDER, "transformers"),
    ("transformers/model.safetensors", Kind.FILE, "transformers/model.safetensors"),
    ("sharded", Kind.FOLDER, "sharded"),
    ("pickled", Kind.FOLDER, "pickled"),
    ("pickled/pytorch_model.bin", Kind.FILE, "pickled/pytorch_model.bin"),
    ("keras/model.keras", Kind.FILE, "keras/model.keras"),
    ("keras/other.h5", Kind.FILE, "keras/other.h5"),
    ("empty", Kind.FOLDER, "empty"),
    (".", Kind.FOLDER, "."),
    ("owner/name", Kind.RUN, "owner/name"),
    (BASE, Kind.RELEASED, BASE),
    ("bert-base-uncased", Kind.RELEASED, BASE),
    (f"https://tfhub.dev/google/bert_{BASE}/1", Kind.RELEASED, BASE),
  ],
)
def test_kinds(model, kind, path):
  assert identify(model) == ModelSource(kind, path)


def test_the_users_own_folder(place):
  assert identify("~/run/model.ckpt-20").path == str(place / "run" / "model.ckpt-20")
  assert identify(place / "run").kind is Kind.RUN


def test_remote_paths(place):
  assert identify(f"file://{place}/run/model.ckpt-20").kind is Kind.CHECKPOINT
  assert identify(f"file://{place}/released").kind is Kind.FOLDER


def test_what_a_folder_without_a_checkpoint_has(place):
  (place / "empty" / "encoder.safetensors").touch()
  assert model_source.nearby("empty") == " Name a file in it: encoder.safetensors."


def test_a_folder_here_comes_before_a_name(place):
  (place / BASE).mkdir()
  assert model_source.local_path(BASE) == BASE
  os.rename(place / "run", place / "bert-base-uncased")
  assert identify("bert-base-uncased").kind is Kind.RUN


def test_a_released_model_is_downloaded(monkeypatch):
  monkeypatch.setattr(released_models, "download_model", lambda name, cache: f"{cache}/{name}")
  assert model_source.located("bert-base-uncased", "cache") == ModelSource(
    Kind.FOLDER, f"cache/{BASE}"
  )


@pytest.mark.parametrize(
  ("model", "words"),
  [
    ("", ("is empty", "BERT_BASE_DIR")),
    # Names.
    ("uncased_L12_H-768_A-12", ("neither a file or folder here nor the name", f"mean {BASE}?")),
    ("bert-base-uncase", ("neither", f"mean {BASE}?", "bert download --list")),
    ("model", ("neither", "bert download --list")),
    ("xlm-roberta-base", ("neither", "like XLM-RoBERTa, another family")),
    ("dslim/bert-base-NER", ("folder dslim does not exist", "hf download dslim/bert-base-NER")),
    ("xlnet/xlnet-base", ("like XLNet",)),
    # Addresses.
    ("https://tfhub.dev/google/elmo/3", ("is an address", "give its folder")),
    ("https://tfhub.dev/google/bert_uncased_L-12_H-768_A-13/1", ("is an address", f"mean {BASE}")),
    ("http://example.org/bert_model.ckpt", ("is an address", "give its folder")),
    # Paths.
    ("/bert_model.ckpt", ("BERT_BASE_DIR, set?",)),
    ("relased/bert_model.ckpt", ("folder relased does not exist",)),
    ("released/model.ckpt", ("released/model.ckpt.index does not exist", "Nearby: released/bert_")),
    ("bert_model.ckpt", ("bert_model.ckpt.index does not exist", "Nearby: ")),
    (f"{BASE}/bert_model.ckpt", (f"{BASE} alone is the name of a released model",)),
    ("bert-base-uncase/", ("neither a file or folder here nor", f"mean {BASE}?")),
    ("$BERT_BASE_DIR/bert_model.ckpt", ("the folder $BERT_BASE_DIR does not", "single quotes")),
    ("encoder/saved_model.pb", ("is an exported graph",)),
    ("owner/nam", ("nor a folder of this name. Nearby: owner/name/model.ckpt-3",)),
    ("gs:/bucket/model.ckpt", ("Did you mean gs://bucket/model.ckpt?",)),
    (f"/nowhere/{BASE}", (f"{BASE} alone is the name of a released model",)),
    # Files of other kinds.
    ("model.zip", ("There is no", "unpack it")),
    ("released/bert_config.json", ("has a file released/bert_config.json.index beside it",)),
  ],
)
def test_what_is_not_a_model(model, words):
  with pytest.raises(CheckpointError) as caught:
    identify(model)
  message = str(caught.value)
  assert model in message
  for each in words:
    assert each in message, message
