"""What a request can fail with, and what a client gets to know of it: a status, a kind, a message.

Routes say them in the form of their dialect; the kinds are those of text-embeddings-inference.
"""

from typing import ClassVar

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
