"""Which file is of which format of checkpoints."""

import os

from bert.checkpoints import finding, formats, transformers_folder
from tests.kit.small_checkpoints import save, values_of


def test_formats_are_known_by_endings():
  names = ("model.safetensors", "tf_model.h5", "pytorch_model.bin")
  for name in (*names, *(f"{name}.index.json" for name in names), "a.keras", "a.pt", "a.pth"):
    assert formats.is_file_of_others(name)
  for name in ("model.ckpt-20", "model.ckpt-20.index", "tokenizer.json", "keras/model"):
    assert not formats.is_file_of_others(name)


def test_a_checkpoint_may_be_called_as_other_formats_are(tmp_path):
  saved = save(tmp_path, 1)
  for suffix in (".index", ".data-00000-of-00001"):
    os.rename(saved + suffix, tmp_path / f"model.bin{suffix}")
  found = finding.find(tmp_path / "model.bin")
  assert set(found.contents) == set(values_of(1))


def test_folders_of_others_are_known_by_their_names(tmp_path):
  assert transformers_folder.find_weights(tmp_path) is None
  (tmp_path / "training_args.bin").touch()
  assert transformers_folder.find_weights(tmp_path) is None
  for name in (  # each comes before those that are there already
    *("pytorch_model.bin.index.json", "pytorch_model.bin", "tf_model.h5.index.json", "tf_model.h5"),
    *("model.safetensors.index.json", "model.safetensors"),
  ):
    (tmp_path / name).touch()
    assert transformers_folder.find_weights(tmp_path) == str(tmp_path / name)
