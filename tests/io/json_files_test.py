"""Files that hold one JSON object."""

import pytest

from bert.io import json_files


def test_objects_are_read(tmp_path):
  (tmp_path / "a.json").write_bytes(b'\xef\xbb\xbf{"a": 1}')
  assert json_files.read_object(tmp_path / "a.json") == {"a": 1}
  assert json_files.object_in('{"b": [2]}', "a flag") == {"b": [2]}
  with pytest.raises(FileNotFoundError):
    json_files.read_object(tmp_path / "b.json")


@pytest.mark.parametrize(
  ("content", "message"),
  [
    (b"", r"a\.json is not valid JSON: Expecting value: .*\(char 0\)$"),
    (b'{"a": \xe4}', "a.json is not valid JSON: .*0xe4"),
    (b"[" * 100_000, "a.json is not valid JSON: .*recursion"),
    (b'{"a": ' + b"9" * 5000 + b"}", "a.json is not valid JSON: .*digits"),
    (b"[]", r"a\.json: a JSON object is needed, not list\.$"),
    (b"null", "a.json: a JSON object is needed, not NoneType"),
  ],
)
def test_anything_else_is_named_in_one_line(tmp_path, content, message):
  path = tmp_path / "a.json"
  path.write_bytes(content)
  with pytest.raises(ValueError, match=message) as error:
    json_files.read_object(path)
  assert "\n" not in str(error.value)
  with pytest.raises(ValueError, match=r"\. Fetch it again\.$"):
    json_files.read_object(path, "Fetch it again.")
