"""What a file is instead of what was asked for, by its first bytes: for messages.

other_formats.find(b"PAR1...")     # ("a Parquet file", "Write it as text: CSV or JSON Lines.")
"""

import re

_SHEET = "Unpack it, or save the sheet as CSV in UTF-8."
_KNOWN = {
  b"\xff\xfe\0\0": ("UTF-32", "Save it as UTF-8."),
  b"\xff\xfe": ("UTF-16", "Save it as UTF-8."),
  b"\xfe\xff": ("UTF-16", "Save it as UTF-8."),
  b"PK\x03\x04": ("an Excel workbook or a zip archive", _SHEET),
  b"\xd0\xcf\x11\xe0": ("an Excel workbook", "Save the sheet as CSV in UTF-8."),
  b"\x1f\x8b": ("compressed with gzip", "Unpack it: gunzip."),
  b"BZh91AY&SY": ("compressed with bzip2", "Unpack it: bunzip2."),
  b"\xfd7zXZ\0": ("compressed with xz", "Unpack it: unxz."),
  b"\x28\xb5\x2f\xfd": ("compressed with zstd", "Unpack it: unzstd."),
  b"PAR1": ("a Parquet file", "Write it as text: CSV or JSON Lines."),
  b"%PDF-": ("a PDF", "Save its text as UTF-8."),
  # What a clone has without git-lfs, and what a download saves of a page that says "not found".
  b"version https://git-lfs": ("a pointer of git-lfs, not the file itself", "Run git lfs pull."),
  b"<!doctype html": ("a web page", "Download the file itself."),
  b"<html": ("a web page", "Download the file itself."),
}
_POINTERS = tuple(start for start in _KNOWN if start.startswith(b"version"))
_PAGES = tuple(start for start in _KNOWN if start.startswith(b"<"))
# Letters with a NUL byte before or after each: text in two bytes a character, without its mark.
_TWO_BYTES = re.compile(rb"(?:[\t -~]\0){4}|(?:\0[\t -~]){4}")
_JSON = re.compile(r"""\s*(?:\{\s*["'}]|\[\s*[{\["'])""")
LONGEST = 64


def find(start: bytes, pages: bool = True, pages_alone: bool = False) -> tuple[str, str] | None:
  """Returns what a file is, and what to do; None for a text.

  Args:
    start: its first `LONGEST` bytes, or more.
    pages: look for web pages, too, which can be meant where a file is any text.
    pages_alone: look for pointers of git-lfs and web pages only, as in place of a binary file.

  Example:
    >>> find(b"<!DOCTYPE html><html>")
    ('a web page', 'Download the file itself.')
  """
  start = start[:LONGEST]
  for known in (*_POINTERS, *_PAGES) if pages_alone else _KNOWN:
    if start.startswith(known) or start.lower().startswith(known):
      return _KNOWN[known] if pages or known not in _PAGES else None
  if pages_alone:
    return None
  if are_records(start):
    return "a TFRecord file", "Give the file of the text."
  return _KNOWN[b"\xff\xfe"] if _TWO_BYTES.match(start) else None


def are_records(start: bytes) -> bool:
  """Tells whether a file begins as TFRecord files do, with a length and its checksum.

  Example:
    >>> are_records(bytes.fromhex("05 00 00 00 00 00 00 00 ea b2 04 3e")), are_records(b"text")
    (True, False)
  """
  if len(start) < 12 or start[5:8] != bytes(3):  # far above the length of any record
    return False
  from bert.io.tfrecord_bytes import masked_crc32c  # here, as few files need NumPy

  return int.from_bytes(start[8:12], "little") == masked_crc32c(start[:8])


def looks_like_json(text: str) -> bool:
  """Tells whether a text begins as an object or a list of JSON, or of Python, does.

  Example:
    >>> looks_like_json('{"text": "x"}'), looks_like_json("[CLS]"), looks_like_json("{sic} a text")
    (True, False, False)
  """
  return _JSON.match(text) is not None
