"""Lines that TensorFlow's C++ libraries write to stderr when they start."""

import contextlib
import os
import re
import tempfile
from collections.abc import Iterator

# Written whatever TF_CPP_MIN_LOG_LEVEL says, and of no use to users.
_START_LINE = re.compile(
  rb"WARNING: All log messages before absl::InitializeLog|"
  rb"[IWE]0000 .*(oneDNN custom operations|Could not find cuda drivers|failed call to cuInit)"
)


@contextlib.contextmanager
def hidden() -> Iterator[None]:
  """Leaves those lines out of what is written to stderr within; the rest follows at the end.

  TF_CPP_MIN_LOG_LEVEL=0 or 1 in the environment shows them all.
  """
  if os.environ.get("TF_CPP_MIN_LOG_LEVEL", "0") in ("0", "1"):
    yield
    return
  with tempfile.TemporaryFile() as written:
    stderr = os.dup(2)
    os.dup2(written.fileno(), 2)
    try:
      yield
    finally:
      os.dup2(stderr, 2)
      os.close(stderr)
      written.seek(0)
      for line in written:
        if not _START_LINE.match(line):
          os.write(2, line)
