"""Files that hold one JSON object."""

import pytest

from bert.io import json_files


def test_objects_are_read(tmp_path):
  (tmp_path / "a.json").write_bytes(b'\xef\xbb\xbf{"a": 1}')
  assert json_files.read_object(tmp_path / "a.json") == {"a": 1}
  assert json_files.object_in('{"b": [2]}', "a flag") == {"b": [2]}
  with pytest.raises(FileNotFoundError):
    json_files.read_object(tmp_path / "b.json")
