"""Folders that `from_pretrained` refuses with one error that says why, running nothing in them.

Alone: python -m pytest tests/transformers/bad_weights_test.py (seconds)
All that such files can be is in tests/system/bad_older_weights_test.py and bad_weights_test.py.
"""

import numpy as np
import pytest

from bert.transformers import BertConfig, TFAutoModel
from tests.kit.older_weights import Call, Name, pickled, torch_bytes, zip_of

CONFIG = BertConfig(
  vocab_size=9, hidden_size=4, num_hidden_layers=1, num_attention_heads=1, intermediate_size=4
)

BAD = {
  "os.system": (
    "pytorch_model.bin",
    zip_of(pickled(Call(Name("os", "system"), ("echo > ran",))), {}),
  ),
  "other names": ("pytorch_model.bin", torch_bytes({"conv1.weight": np.ones((3, 3), "f4")})),
  "another family": (
    "pytorch_model.bin",
    torch_bytes({"roberta.embeddings.word_embeddings.weight": np.ones((9, 4), "f4")}),
  ),
  "other shapes": (
    "pytorch_model.bin",
    torch_bytes(
      {
        "bert.embeddings.word_embeddings.weight": np.ones((9, 8), "f4"),
        "bert.pooler.dense.bias": np.ones(4, "f4"),
      }
    ),
  ),
  "a web page": ("tf_model.h5", b"<!DOCTYPE html><html>Not found</html>"),
  "a pointer of git-lfs": ("model.safetensors", b"version https://git-lfs.github.com/spec/v1\n"),
  "no weights": ("README.md", b"-"),
}


@pytest.mark.parametrize("row", BAD)
def test_a_bad_folder_is_refused(tmp_path, monkeypatch, row):
  folder = tmp_path / "model"
  CONFIG.save_pretrained(folder)
  name, content = BAD[row]
  (folder / name).write_bytes(content)
  monkeypatch.chdir(tmp_path)
  with pytest.raises((ValueError, OSError)) as caught:
    TFAutoModel.from_pretrained(folder)
  assert str(folder) in str(caught.value)
  assert len(str(caught.value)) < 900
  assert not (tmp_path / "ran").exists()
