"""Parts of a text: every line once and in order, its place, and whose files are there."""

import os
import pathlib
import tempfile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bert.io import tables, text_lines
from bert.predicting import text_shards
from bert.predicting.text_shards import ShardLines
from bert.text.text_files import TextRange


def write(path, content) -> str:
  path.write_bytes(content)
  return str(path)


@given(
  st.lists(st.sampled_from([b"", b"a", b" b c ", b"\xc3\xa4" * 9, b"\r"]), max_size=12),
  st.booleans(),
  st.booleans(),
  st.integers(1, 20),
)
def test_the_lines_of_all_parts_are_those_of_the_file(lines, has_mark, has_end, num_shards):
  content = b"\xef\xbb\xbf" * has_mark + b"\n".join(lines) + b"\n" * has_end
  with tempfile.TemporaryDirectory() as folder:
    path = write(pathlib.Path(folder) / "text", content)
    shards = text_shards.plan("out", [path], num_shards)
    found = [list(ShardLines(shard.text)) for shard in shards]
    assert [line for part in found for line in part] == list(text_lines.read_lines(path))
    assert list(map(len, found)) == [text_shards.count_lines(shard.text) for shard in shards]
    places = []
    for shard in shards:
      part = ShardLines(shard.text)
      places += [part.place(number) for number, _ in enumerate(part, start=1)]
    assert places == [f"{path}, line {number + 1}" for number in range(len(places))]


def test_a_line_that_is_not_utf8_is_named_in_its_file(tmp_path):
  path = write(tmp_path / "text", b"a\nb\n\xff\nc\n")
  said = "text, line 3: byte 0xff is not UTF-8"
  for part in (TextRange(path, 0, None), TextRange(path, 2, None), TextRange(path, 3, None)):
    with pytest.raises(tables.DataError, match=said):
      list(ShardLines(part))


def test_files_and_parts_have_names_in_order(tmp_path):
  paths = [write(tmp_path / name, b"line\n" * 100) for name in ("a", "b")]
  paths.append(write(tmp_path / "c.gz", b"not read"))
  shards = text_shards.plan("out/x.jsonl", paths, 4)
  assert [shard.output for shard in shards] == [
    f"out/x.jsonl-{number:05d}-of-{len(shards):05d}" for number in range(len(shards))
  ]
  assert [shard.text.path for shard in shards] == [*paths[:1] * 2, *paths[1:2] * 2, paths[2]]
  assert len(text_shards.plan("out", paths)) == 3, "a small text is not cut"


FACTS = {"model": [["m", 1, 2]], "settings": {"layers": (-1,)}}


def claimed(folder, count=3, facts=FACTS):
  output = str(folder / "out")
  path = write(folder / "text", b"line\n" * 30)
  shards = text_shards.plan(output, [path], count)
  assert len(shards) == count
  return [shard.output for shard in text_shards.claim(shards, output, facts)]


def test_the_same_run_goes_on_and_another_is_refused(tmp_path):
  names = claimed(tmp_path)
  assert len(names) == 3
  pathlib.Path(names[1]).write_text("done")
  assert claimed(tmp_path) == [names[0], names[2]]
  with pytest.raises(text_shards.ShardError, match=r"out-00001-of-00003 is there .*other shards"):
    claimed(tmp_path, count=2)
  other = {**FACTS, "settings": {"layers": (-2,)}}
  with pytest.raises(text_shards.ShardError, match=r"other settings.*Remove .*out-\*-of-\*, or"):
    claimed(tmp_path, facts=other)
  assert claimed(tmp_path) == [names[0], names[2]], "a refused run changes nothing"
  os.remove(names[1])
  assert claimed(tmp_path, facts=other) == names


def test_a_file_that_is_missing_at_the_end_is_named(tmp_path):
  names = claimed(tmp_path)
  shards = text_shards.plan(str(tmp_path / "out"), [str(tmp_path / "text")], 3)
  for name in names[:2]:
    pathlib.Path(name).touch()
  with pytest.raises(text_shards.ShardError, match="out-00002-of-00003 is not here at the end"):
    text_shards.check_complete(shards, str(tmp_path / "out"))
  pathlib.Path(names[2]).touch()
  text_shards.check_complete(shards, str(tmp_path / "out"))


def test_what_has_changed_has_another_identity(tmp_path):
  folder = tmp_path / "model"
  folder.mkdir()
  for name in ("m.ckpt-1.index", "m.ckpt-1.data", "m.ckpt-10.index", "vocab.txt"):
    (folder / name).write_text("a")
  prefix = text_shards.identity(str(folder / "m.ckpt-1"))
  assert [os.path.basename(name) for name, *_ in prefix] == ["m.ckpt-1.data", "m.ckpt-1.index"]
  whole = text_shards.identity(str(folder))
  assert len(whole) == 4
  assert text_shards.identity(str(folder / "vocab.txt")) == whole[3:]
  (folder / "vocab.txt").write_text("ab")
  assert text_shards.identity(str(folder)) != whole
  assert text_shards.identity("gs://bucket/model") == [["gs://bucket/model"]]
