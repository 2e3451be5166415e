"""What the core tells whoever counts: metrics and logs override the methods of `Events`."""


class Events:
  """Hears what happens to models; this one does nothing.

  Methods are called in the event loop, and must not wait.
  """

  def batch(self, model: str, tokens: int, seconds: float) -> None:
    """A batch of so many tokens was computed, within so many seconds."""

  def queue(self, model: str, requests: int, tokens: int) -> None:
    """The queue has so many requests and tokens now."""

  def worker_restarted(self, model: str) -> None:
    """A process that computes was lost, and another one is started."""

  def reloaded(self, model: str, ok: bool) -> None:
    """The files of a model have changed; `ok` says whether the new model is served."""
