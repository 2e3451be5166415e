"""Folders that `from_pretrained` refuses with one error that says why, running nothing in them.

Alone: python -m pytest tests/transformers/bad_weights_test.py (seconds)
All that such files can be is in tests/system/bad_older_weights_test.py and bad_weights_test.py.
"""

import json
import zipfile

import numpy as np
import pytest

from bert.transformers import BertConfig, TFAutoModel, TFBertModel
from tests.kit.older_weights import Call, Name, pickled, storage, tensor, torch_bytes, zip_of

CONFIG = BertConfig(
  vocab_size=9, hidden_size=4, num_hidden_layers=1, num_attention_heads=1, intermediate_size=4
)
TOUCH = "echo > ran"
_EVAL = Name("builtins", "eval")
_IMPORT = Call(Name("builtins", "__import__"), ("os",))
_NESTED = Call(Call(Name("builtins", "getattr"), (_IMPORT, "system")), (TOUCH,))
_LONG = tensor(storage("FloatStorage", "0", 1 << 22), (1 << 22,), (1,))
_WORDS = "bert.embeddings.word_embeddings.weight"


def _torch(**tensors: np.ndarray) -> bytes:
  return torch_bytes({name.replace("__", "."): each for name, each in tensors.items()})


BAD = {
  "os.system": ("pytorch_model.bin", zip_of(pickled(Call(Name("os", "system"), (TOUCH,))), {})),
  "eval": ("pytorch_model.bin", zip_of(pickled(Call(_EVAL, ("open('ran', 'w')",))), {})),
  "nested reduce": ("pytorch_model.bin", zip_of(pickled(_NESTED), {})),
  "before 1.6": ("pytorch_model.bin", pickled(_NESTED)),
  "among tensors": ("pytorch_model.bin", zip_of(pickled({_WORDS: _NESTED}), {})),
  "a zip bomb": (
    "pytorch_model.bin",
    zip_of(pickled({"a": _LONG}), {"0": np.zeros(1 << 22, "f4")}, zipfile.ZIP_DEFLATED),
  ),
  "cut short": ("pytorch_model.bin", _torch(a=np.ones(9))[:-40]),
  "other names": ("pytorch_model.bin", _torch(conv1__weight=np.ones((3, 3), "f4"))),
  "another family": (
    "pytorch_model.bin",
    _torch(roberta__embeddings__word_embeddings__weight=np.ones((9, 4), "f4")),
  ),
  "other shapes": (
    "pytorch_model.bin",
    _torch(
      bert__embeddings__word_embeddings__weight=np.ones((9, 8), "f4"),
      bert__pooler__dense__bias=np.ones(4, "f4"),
    ),
  ),
  "another type": (
    "pytorch_model.bin",
    zip_of(pickled({_WORDS: tensor(storage("QInt8Storage", "0", 36), (9, 4), (4, 1))}), {}),
  ),
  "a web page": ("tf_model.h5", b"<!DOCTYPE html><html>Not found</html>"),
  "a pointer of git-lfs": ("model.safetensors", b"version https://git-lfs.github.com/spec/v1\n"),
  "a long header": ("model.safetensors", b"\xff" * 8 + b"{}"),
  "a missing part": (
    "pytorch_model.bin.index.json",
    json.dumps({"weight_map": {_WORDS: "pytorch_model-1.bin"}}).encode(),
  ),
  "a part elsewhere": (
    "pytorch_model.bin.index.json",
    json.dumps({"weight_map": {_WORDS: "../../etc/passwd"}}).encode(),
  ),
  "no weights": ("README.md", b"-"),
}


@pytest.mark.parametrize("row", BAD)
@pytest.mark.parametrize("model_class", [TFBertModel, TFAutoModel])
def test_a_bad_folder_is_refused(tmp_path, monkeypatch, model_class, row):
  folder = tmp_path / "model"
  CONFIG.save_pretrained(folder)
  name, content = BAD[row]
  (folder / name).write_bytes(content)
  monkeypatch.chdir(tmp_path)
  with pytest.raises((ValueError, OSError)) as caught:
    model_class.from_pretrained(folder)
  assert str(folder) in str(caught.value)
  assert len(str(caught.value)) < 900
  assert not (tmp_path / "ran").exists()
