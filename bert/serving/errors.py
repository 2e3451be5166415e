"""What a request can fail with, and what its client gets to know: a status, a kind, a message.

Clients of OpenAI, TensorFlow Serving and text-embeddings-inference read errors of their own form.
Which one it is follows from the path, so that a request that never reaches its route, because its
body is too large, say, is refused in the same form. The kinds are text-embeddings-inference's.
"""

import json
import math
import re
from collections.abc import Mapping
from typing import Any, ClassVar

# The names say what happened, as the kinds do.
# ruff: noqa: N818


class ServingError(Exception):
  """A request that has no answer; its text is for the client.

  Attributes:
    status: of HTTP.
    kind: one word, for a client's program.
    index: of the item that was refused, where it is one.
    retry_after_s: when the same request may succeed; None where that is not known.
  """

  status: ClassVar[int] = 500
  kind: ClassVar[str] = "Backend"

  def __init__(
    self, message: str, *, index: int | None = None, retry_after_s: int | None = None
  ) -> None:
    super().__init__(message)
    self.index = index
    self.retry_after_s = retry_after_s

  @property
  def message(self) -> str:
    """The text."""
    return str(self)


class InvalidInput(ServingError):
  """The model does not take an item."""

  status = 422
  kind = "Validation"


class EmptyInput(ServingError):
  """There is nothing to compute."""

  status = 400
  kind = "Empty"


class TooLarge(ServingError):
  """The request has too many items, or too many bytes."""

  status = 413
  kind = "Validation"


class Overloaded(ServingError):
  """Too much is queued; `retry_after_s` says when there may be room."""

  status = 429
  kind = "Overloaded"


class BackendError(ServingError):
  """The model failed at the items of the request alone."""

  status = 424
  kind = "Backend"


class UnknownModel(ServingError):
  """No model of that name is served, or the model has no such ability."""

  status = 404
  kind = "Validation"


class NotReady(ServingError):
  """No process can compute now: they start, or cannot start, or the server stops."""

  status = 503
  kind = "Unhealthy"


class WorkerDied(ServingError):
  """The process that computed the request is gone, or was stopped because it hung."""

  status = 503
  kind = "Unhealthy"


class TimedOut(ServingError):
  """The request was not answered in time."""

  status = 503
  kind = "Unhealthy"


# ---------------------------------------------------------------------------------------------
# Of HTTP alone.


class BadJson(ServingError):
  """The body is not what JSON is."""

  status = 400
  kind = "Validation"


class NoKey(ServingError):
  """The key is missing, or none of those that are known."""

  status = 401
  kind = "Unauthorized"


class Forbidden(ServingError):
  """A page of another site asks, or the server is called by a name that is not its own."""

  status = 403
  kind = "Forbidden"


class NoRoute(ServingError):
  """Nothing has that path."""

  status = 404
  kind = "NotFound"


class WrongMethod(ServingError):
  """The path takes other methods."""

  status = 405
  kind = "NotAllowed"


class TooSlow(ServingError):
  """The body did not come in time."""

  status = 408
  kind = "Timeout"


class UnknownEncoding(ServingError):
  """The body is compressed in a way that is not supported."""

  status = 415
  kind = "Validation"


class InternalError(ServingError):
  """A mistake of the server; the log has it."""

  status = 500
  kind = "Internal"


# ---------------------------------------------------------------------------------------------
# As each dialect has them.


def is_of_tensorflow_serving(path: str) -> bool:
  """Tells whether a path is one of TensorFlow Serving's; `/v1/models/NAME` is OpenAI's, too.

  Example:
    >>> list(map(is_of_tensorflow_serving, ["/v1/models/mrpc:predict", "/v1/models/mrpc"]))
    [True, False]
  """
  return bool(re.match("/v1/models/[^/]*(:|/(versions|labels|metadata)(/|$))", path))


def status_of(path: str, error: ServingError) -> int:
  """Returns the status of an error; TensorFlow Serving has 400 for all that is wrong in a body."""
  return 400 if is_of_tensorflow_serving(path) and error.status == 422 else error.status


def content_of(path: str, error: ServingError) -> dict[str, Any]:
  """Returns the JSON of an error in the form that the clients of a path read."""
  message = error.message
  if is_of_tensorflow_serving(path):
    return {"error": message}
  if path.startswith(("/v1/", "/v2/")):
    # OpenAI's own form, and that of text-embeddings-inference and Cohere on these routes.
    said = {"message": message, "type": error.kind, "code": error.status}
    return {"error": {**said, "param": None}, **said}
  return {"error": message, "error_type": error.kind}


def answer_of(path: str, error: ServingError) -> tuple[int, dict[str, str], bytes]:
  """Returns status, headers and body."""
  headers = {"content-type": "application/json"}
  if error.retry_after_s is not None:
    headers["retry-after"] = str(max(1, math.ceil(error.retry_after_s)))
  if isinstance(error, NoKey):
    headers["www-authenticate"] = "Bearer"
  headers.update(_headers_of(error))
  content = json.dumps(content_of(path, error), ensure_ascii=False)
  return status_of(path, error), headers, content.encode("utf-8", "backslashreplace")


def _headers_of(error: ServingError) -> Mapping[str, str]:
  return getattr(error, "headers", {})
