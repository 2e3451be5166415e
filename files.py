"""Files that appear whole or not at all."""

import contextlib
import errno
import os


def write_text(path: str | os.PathLike, text: str) -> None:
  """Writes a text file aside, forces it to disk, and renames it into place.

  Whenever the program is stopped, `path` holds all of the old text or all of the new.

  Args:
    path: final name; its folder has to be there.
    text: written as UTF-8, line ends as they are.

  Raises:
    OSError: it cannot be written; nothing has changed then.
  """
  path = os.fspath(path)
  temporary = path + ".tmp"  # always the same, so that the next write clears what a crash left
  try:
    with open(temporary, "w", encoding="utf-8", newline="") as writer:
      writer.write(text)
      writer.flush()
      os.fsync(writer.fileno())
    os.replace(temporary, path)
  finally:
    with contextlib.suppress(OSError):
      os.remove(temporary)
  force_to_disk(os.path.dirname(path) or ".")


def force_to_disk(path: str | os.PathLike) -> None:
  """Forces a file's content, or the names in a folder, to disk."""
  is_folder = os.path.isdir(path)
  if is_folder and os.name == "nt":  # Windows cannot open a folder
    return
  descriptor = os.open(path, os.O_RDONLY)
  try:
    os.fsync(descriptor)
  except OSError as error:
    # Some network file systems cannot sync a folder; they have no way to promise more.
    if not (is_folder and error.errno in (errno.EINVAL, errno.ENOTSUP)):
      raise
  finally:
    os.close(descriptor)


def hidden_beside(path: str, suffix: str) -> str:
  """A hidden file of the same folder, which patterns such as `train*` do not match.

  Example:
    >>> hidden_beside("data/train.tf_record", "manifest.json")
    'data/.train.tf_record.manifest.json'
  """
  folder, name = os.path.split(path)
  return os.path.join(folder, f".{name}.{suffix}")
