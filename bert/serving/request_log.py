"""A line for each request: what was asked, how it ended, how long it took; never a text or a key.

log = RequestLog("json", sys.stderr)
log.request({"method": "POST", "path": "/embed", "status": 200, "ms": 3.1, "items": 2})
"""

import datetime
import json
import logging
import sys
from collections.abc import Mapping
from typing import Any, TextIO

FORMATS = ("text", "json")


class RequestLog:
  """Writes lines; see this module's docstring."""

  def __init__(self, form: str = "text", stream: TextIO | None = None):
    """Takes one of `FORMATS`, and where to write, by default standard error."""
    self._form = form
    self._stream = stream

  def request(self, facts: Mapping[str, Any]) -> None:
    """Writes the line of a request."""
    now = datetime.datetime.now(datetime.timezone.utc).isoformat(timespec="milliseconds")
    facts = {"event": "request", **facts}
    if self._form == "json":
      line = json.dumps({"time": now, **facts})
    else:
      line = " ".join([now, *(f"{name}={_shown(value)}" for name, value in facts.items())])
    print(line, file=self._stream or sys.stderr, flush=True)


def _shown(value: Any) -> str:
  """Writes a value in one word: what clients send cannot begin a line of its own."""
  text = str(value)
  return text if text.isprintable() and " " not in text else json.dumps(text)


def use_format(form: str) -> None:
  """Has messages of other loggers come in the same form, as far as it is JSON."""
  if form == "json":
    for handler in logging.getLogger().handlers:
      handler.setFormatter(JsonFormatter())


class JsonFormatter(logging.Formatter):
  """Writes the messages of other loggers as lines of JSON, too."""

  def format(self, record: logging.LogRecord) -> str:
    """See base class."""
    now = datetime.datetime.fromtimestamp(record.created, datetime.timezone.utc)
    facts = {
      "time": now.isoformat(timespec="milliseconds"),
      "event": "message",
      "level": record.levelname.lower(),
      "message": record.getMessage(),
    }
    if record.exc_info:
      facts["traceback"] = self.formatException(record.exc_info)
    return json.dumps(facts)
