"""Ranges of text, JSON lines, gzip, sentences within lines, and counts that are added up."""

import gzip
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bert.text import corpus, corpus_statistics, text_files
from bert.text.corpus import TextFormat
from tests.kit.paths import SAMPLE_TEXT

JSONL = TextFormat(jsonl_field="text")


def documents_of(sentences):
  return corpus.split_documents([[s] if s is not None else None for s in sentences])


def documents_of_ranges(paths, target_bytes, text_format=corpus.PLAIN_TEXT):
  """The documents of each range."""
  return [
    documents_of(corpus.read_range(part, text_format, corpus_statistics.TextStatistics()))
    for part in text_files.text_ranges(map(str, paths), target_bytes)
  ]


# ---------------------------------------------------------------------------------------------
# Ranges.


LINES = st.lists(st.sampled_from(["", "a", "bc d", "def", " \t", "\r", "\u00a0", "é"]), max_size=30)


@settings(max_examples=200, deadline=None)
@given(LINES, st.integers(1, 40), st.booleans())
def test_each_document_belongs_to_one_range(tmp_path_factory, lines, target_bytes, last_newline):
  path = tmp_path_factory.mktemp("text") / "text"
  path.write_bytes("\n".join(lines).encode() + b"\n" * last_newline)
  [expected] = documents_of_ranges([path], 1 << 30)
  stripped = [line.strip() or None for line in lines]
  assert expected == documents_of(stripped)
  found = documents_of_ranges([path], target_bytes)
  assert [document for documents in found for document in documents] == expected


def test_a_document_ends_with_its_file(tmp_path):
  for name in "ab":
    (tmp_path / name).write_text(f"{name}1\n{name}2\n")
  found = documents_of_ranges([tmp_path / "a", tmp_path / "b"], 1 << 20)
  assert found == [[[["a1"], ["a2"]]], [[["b1"], ["b2"]]]]


# ---------------------------------------------------------------------------------------------
# Forms of text.


def test_gzip_reads_as_plain_text(tokenizer, tmp_path):
  text = SAMPLE_TEXT.read_bytes()
  (tmp_path / "a").write_bytes(text)
  (tmp_path / "a.gz").write_bytes(gzip.compress(text))
  plain = list(corpus.read_sentences([str(tmp_path / "a")], tokenizer))
  assert plain == list(corpus.read_sentences([str(tmp_path / "a.gz")], tokenizer))
  assert plain[0]
  assert documents_of_ranges([tmp_path / "a"], 300) != [[]]
  [of_gzip] = documents_of_ranges([tmp_path / "a.gz"], 300)
  assert of_gzip == [d for part in documents_of_ranges([tmp_path / "a"], 300) for d in part]


def test_json_lines(tokenizer, tmp_path):
  path = tmp_path / "text.jsonl"
  lines = [
    {"text": "the of\r\n\n and", "id": 1},
    {"text": "one\ud800 two"},
    {"text": ""},
    {"text": "in"},
  ]
  path.write_text("\n\n".join(json.dumps(line) for line in lines))
  statistics = corpus_statistics.TextStatistics()
  found = list(corpus.read_sentences([str(path)], tokenizer, statistics, JSONL))
  documents = corpus.split_documents(found)
  assert documents == [[["the", "of"], ["and"]], [tokenizer.tokenize("one? two")], [["in"]]]
  assert (statistics.documents, statistics.sentences) == (3, 4)


def test_paragraphs_are_split(tokenizer, tmp_path):
  path = tmp_path / "text"
  path.write_text("The one. Of Mr. In.\nAnd!\n\nTo.\n")
  text_format = TextFormat(split_sentences=True)
  found = list(corpus.read_sentences([str(path)], tokenizer, None, text_format))
  assert [len(d) for d in corpus.split_documents(found)] == [3, 1]
  [documents] = documents_of_ranges([path], 1 << 20, text_format)
  assert documents == [[["The one."], ["Of Mr. In."], ["And!"]], [["To."]]]


# ---------------------------------------------------------------------------------------------
# Lines.


def test_a_long_line_has_the_same_tokens_in_pieces(tokenizer):
  line = "The Σας one, two-three  " * 40
  parts = list(corpus.parts(line, limit=50))
  assert len(parts) > 10
  assert "".join(parts) == line
  assert [t for part in parts for t in tokenizer.tokenize(part)] == tokenizer.tokenize(line)


def read(path, tokenizer, **options):
  statistics = corpus_statistics.TextStatistics()
  sentences = corpus.read_sentences([str(path)], tokenizer, statistics, **options)
  return list(sentences), statistics


def test_lines_as_the_original_reads_them(tokenizer, tmp_path):
  path = tmp_path / "text"
  path.write_bytes("the\r\n\r\n\x00\n of \u2028and\n\u00a0\none".encode())
  sentences, statistics = read(path, tokenizer)
  assert sentences == [["the"], None, ["of", "and"], None, ["one"]]
  assert (statistics.documents, statistics.sentences, statistics.nul_lines) == (3, 3, 1)


def test_a_document_goes_on_in_the_next_file(tokenizer, tmp_path):
  paths = [tmp_path / "a", tmp_path / "b"]
  for path in paths:
    path.write_text("the\n")
  sentences = corpus.read_sentences(map(str, paths), tokenizer)
  assert corpus.split_documents(sentences) == [[["the"], ["the"]]]


def test_a_sentence_without_tokens_may_end_a_document(tokenizer, tmp_path):
  """In ALBERT's stream, where accents alone are an empty line after cleaning."""
  path = tmp_path / "text"
  path.write_text("the\n\u0301\nof\n\x01\nand\n", encoding="utf-8")
  statistics = corpus_statistics.TextStatistics()
  plain = corpus.read_sentences([str(path)], tokenizer, statistics)
  assert corpus.split_documents(plain) == [[["the"], ["of"], ["and"]]]
  assert statistics.documents == 1
  statistics = corpus_statistics.TextStatistics()
  cut = corpus.read_sentences(
    [str(path)], tokenizer, statistics, ends_document=lambda sentence: sentence == "\u0301"
  )
  assert corpus.split_documents(cut) == [[["the"]], [["of"], ["and"]]]
  assert statistics.documents == 2


def test_invalid_utf8_is_counted_or_refused(tokenizer, tmp_path):
  path = tmp_path / "text"
  path.write_bytes(b"the\n\xff of\n\nand\n")
  sentences, statistics = read(path, tokenizer)
  assert sentences == [["the"], ["of"], None, ["and"]]
  assert statistics.invalid_lines == 1
  assert any("line 2" in warning for warning in statistics.warnings())
  with pytest.raises(text_files.CorpusError, match=r"line 2: byte 1 .* 0xff"):
    read(path, tokenizer, text_format=corpus.TextFormat(strict_utf8=True))
