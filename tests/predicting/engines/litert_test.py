"""LiteRT as an engine: bad files. What it computes is in tests/exporting/litert_test.py.

Alone: python -m pytest tests/predicting/engines/litert_test.py (seconds; ai-edge-litert)
"""

import pytest

from bert.predicting.engines import litert


def test_a_file_that_is_no_model(tmp_path):
  path = tmp_path / "model.tflite"
  with pytest.raises(FileNotFoundError, match=r"model\.tflite does not exist"):
    litert.load(path)
  for content in (b"", b"version https://git-lfs.github.com/spec/v1\n"):
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"model\.tflite cannot be read by LiteRT") as error:
      litert.load(path)
    assert "\n" not in str(error.value)
    assert "Export it anew" in str(error.value)
