"""Ranges and lines of text files."""

import gzip

import pytest

from bert.text import text_files
from bert.text.text_files import LinePlace, TextRange


def test_ranges_do_not_depend_on_the_content(tmp_path):
  (tmp_path / "a").write_bytes(b"x" * 1000)
  (tmp_path / "b.gz").write_bytes(gzip.compress(b"text\n" * 1000))
  (tmp_path / "c").touch()
  a, b, c = (str(tmp_path / name) for name in ("a", "b.gz", "c"))
  assert text_files.text_ranges([a, b, c], 400) == [
    TextRange(a, 0, 333),
    TextRange(a, 333, 666),
    TextRange(a, 666, None),
    TextRange(b, 0, None),
    TextRange(c, 0, None),
  ]


def test_each_line_is_in_one_range(tmp_path):
  path = tmp_path / "text"
  lines = [b"x" * (number % 7) + b"\n" for number in range(100)] + [b"no end"]
  path.write_bytes(b"".join(lines))
  for target_bytes in (1, 2, 5, 1000):
    found = [
      located
      for part in text_files.text_ranges([str(path)], target_bytes)
      for located in text_files.read_lines(part)
    ]
    assert [line for _, line in found] == lines
    starts = [sum(map(len, lines[:number])) for number in range(len(lines))]
    assert [position for position, _ in found] == starts


def test_a_place_is_a_file_and_a_line(tmp_path):
  for name, content in (("a", b"1\n22\n333\n"), ("a.gz", gzip.compress(b"1\n22\n333\n"))):
    (tmp_path / name).write_bytes(content)
    places = [LinePlace(str(tmp_path / name), position) for position in (0, 2, 5)]
    expected = [f"{tmp_path / name}, line {number}" for number in (1, 2, 3)]
    assert [text_files.describe_place(place) for place in places] == expected


def test_a_compressed_file_is_closed_below(tmp_path):
  (tmp_path / "a.gz").write_bytes(gzip.compress(b"text"))
  with text_files.open_bytes(str(tmp_path / "a.gz")) as reader:
    below = reader._file_below
    assert reader.read() == b"text"
  assert below.closed


@pytest.mark.parametrize(
  ("content", "said"), [('{"text": "a b"}\n', 1), ("{sic} a text\n", 0), ("a text\n", 0)]
)
def test_json_that_is_read_as_text_is_said(tmp_path, caplog, content, said):
  (tmp_path / "a.jsonl").write_text(content)
  text_files.warn_of_json([str(tmp_path / "a.jsonl")], "Give --jsonl_field.")
  assert [message.partition(" holds JSON")[1] for message in caplog.messages] == [
    " holds JSON"
  ] * said
