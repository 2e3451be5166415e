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


def test_a_place_is_a_file_and_a_line(tmp_path):
  for name, content in (("a", b"1\n22\n333\n"), ("a.gz", gzip.compress(b"1\n22\n333\n"))):
    (tmp_path / name).write_bytes(content)
    places = [LinePlace(str(tmp_path / name), position) for position in (0, 2, 5)]
    expected = [f"{tmp_path / name}, line {number}" for number in (1, 2, 3)]
    assert [text_files.describe_place(place) for place in places] == expected


@pytest.mark.parametrize(
  ("content", "said"), [('{"text": "a b"}\n', 1), ("{sic} a text\n", 0), ("a text\n", 0)]
)
def test_json_that_is_read_as_text_is_said(tmp_path, caplog, content, said):
  (tmp_path / "a.jsonl").write_text(content)
  text_files.warn_of_json([str(tmp_path / "a.jsonl")], "Give --jsonl_field.")
  assert [message.partition(" holds JSON")[1] for message in caplog.messages] == [
    " holds JSON"
  ] * said


WIKI = '<doc id="1" url="https://w/?curid=1" title="A">\nA\n\nIt is a text.\n\n</doc>\n'


@pytest.mark.parametrize(
  ("content", "said"), [(WIKI, "WikiExtractor"), ("<mediawiki xml:lang='en'>\n", "dump")]
)
def test_tags_that_are_read_as_words_are_said_once(tmp_path, caplog, content, said):
  for name, text in (("0", "a text\n"), ("1", content), ("2", content), ("3", "a <doc id=\n")):
    (tmp_path / name).write_text(text)
  text_files.find_input_files(f"{tmp_path}/*")
  (message,) = caplog.messages
  assert message.startswith(f"{tmp_path}/1 holds ")
  assert said in message
  assert "(2 of 4 files)" in message


# One record of the five bytes "bytes": its length, both checksums as TensorFlow writes them.
RECORD = bytes.fromhex("0500000000000000 eab2043e 6279746573")


@pytest.mark.parametrize(
  ("name", "content", "said"),
  [
    ("a.tfrecord", RECORD, "is a TFRecord file"),
    ("a.gz", gzip.compress(RECORD), "is a TFRecord file"),
    ("model.ckpt.index", b"\0\0\x02\x08\x01\x1a\x02\x08\x01", "byte 1 is NUL"),
    ("model.ckpt.data-00000-of-00001", b"x" * 999 + b"\x3f\0\0\x80", "byte 1001 is NUL"),
    ("text.gz", gzip.compress(b"a\0b\n"), "byte 2 is NUL"),
    ("b.gz", b"no gzip\n", "is not a gzip file"),
  ],
)
def test_a_binary_file_is_refused_by_its_start(tmp_path, name, content, said):
  (tmp_path / "a").write_text("a text\n")
  (tmp_path / name).write_bytes(content)
  with pytest.raises(text_files.CorpusError, match=said) as caught:
    text_files.find_input_files(f"{tmp_path}/*")
  assert f"{tmp_path / name} is" in str(caught.value)
  if said == "is a TFRecord file":
    assert len(text_files.find_input_files(f"{tmp_path}/*", takes_records=True)) == 2
