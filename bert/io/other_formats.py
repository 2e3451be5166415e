"""What a file is instead of what was asked for, by its first bytes: for messages.

other_formats.find(b"PAR1...")     # ("a Parquet file", "Write it as CSV or JSON Lines.")
"""

_KNOWN = {
  b"\xff\xfe": ("UTF-16", "Save it as UTF-8."),
  b"\xfe\xff": ("UTF-16", "Save it as UTF-8."),
  b"PK\x03\x04": ("an Excel workbook or a zip archive", "Save the sheet as CSV in UTF-8."),
  b"\xd0\xcf\x11\xe0": ("an Excel workbook", "Save the sheet as CSV in UTF-8."),
  b"\x1f\x8b": ("compressed with gzip", "Unpack it: gunzip."),
  b"PAR1": ("a Parquet file", "Write it as CSV or JSON Lines."),
  # What a clone has without git-lfs, and what a download saves of a page that says "not found".
  b"version https://git-lfs": ("a pointer of git-lfs, not the file itself", "Run git lfs pull."),
  b"<!doctype html": ("a web page", "Download the file itself."),
  b"<html": ("a web page", "Download the file itself."),
}
# Those that mean the same for files of any kind, and not only for tables.
_POINTER_OR_PAGE = tuple(start for start in _KNOWN if start.startswith((b"version", b"<")))
LONGEST = max(map(len, _KNOWN))


def find(start: bytes, pages_alone: bool = False) -> tuple[str, str] | None:
  """Returns what a file is, and what to do; None for a text.

  Args:
    start: its first `LONGEST` bytes, or more.
    pages_alone: look for pointers of git-lfs and web pages only, as in place of a binary file.

  Example:
    >>> find(b"<!DOCTYPE html><html>")
    ('a web page', 'Download the file itself.')
  """
  start = start[:LONGEST]
  for known in _POINTER_OR_PAGE if pages_alone else _KNOWN:
    if start.startswith(known) or start.lower().startswith(known):
      return _KNOWN[known]
  return None
