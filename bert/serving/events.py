"""What the core tells whoever counts: metrics and logs override the methods of `Events`."""


class Events:
  """Hears what happens to models; this one does nothing.

  Methods are called in the event loop, and must not wait.
  """

  def batch(self, model: str, rows: int, tokens: int, seconds: float) -> None:
    """A batch with a number of rows and of tokens was computed, in a number of seconds."""

  def queue(self, model: str, requests: int, tokens: int) -> None:
    """The queue has this number of requests and of tokens now."""

  def worker_restarted(self, model: str) -> None:
    """A process that computes was lost, and another one is started."""

  def reloaded(self, model: str, ok: bool) -> None:
    """The files of a model have changed; `ok` says whether the new model is served."""
