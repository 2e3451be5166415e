"""Files that are something else than their names say."""

import pytest

from bert.checkpoints import safetensors_file
from bert.io import json_files, other_formats, tables
from bert.text import vocabulary_file

POINTER = b"version https://git-lfs.github.com/spec/v1\noid sha256:4d7a\nsize 12345\n"
PAGE = b"<!DOCTYPE html>\n<html><head><title>404</title></head></html>\n"


@pytest.mark.parametrize(
  ("content", "said"),
  [
    (POINTER, "a pointer of git-lfs, not the file itself. Run git lfs pull."),
    (PAGE, "a web page. Download the file itself."),
  ],
)
@pytest.mark.parametrize(
  ("name", "read"),
  [
    ("train.tsv", lambda path: list(tables.read_lines(path))),
    ("bert_config.json", json_files.read_object),
    ("vocab.txt", vocabulary_file.read_tokens),
    ("model.safetensors", safetensors_file.open_weights),
  ],
)
def test_a_pointer_or_a_page_in_place_of_a_file(tmp_path, name, read, content, said):
  path = tmp_path / name
  path.write_bytes(content)
  with pytest.raises(ValueError, match=r"\A[^\n]*\Z") as caught:
    read(str(path))
  assert str(path) in str(caught.value)
  assert said in str(caught.value)


def test_texts_are_texts():
  for start in (b"", b"Quality\t#1 ID", b"[PAD]\n", b"{}", b"version of a sentence", b"<s>\n"):
    assert other_formats.find(start) is None
