"""What the routes and their limits need to know of the command line."""

import dataclasses
from collections.abc import Iterable


@dataclasses.dataclass(frozen=True)
class Settings:
  """Limits of requests, and who may ask."""

  api_keys: Iterable[str] = ()
  """Any of them opens the routes; an empty tuple opens them to everybody. Read at each request."""
  allowed_hosts: tuple[str, ...] | None = None
  """Names that requests may have as `Host`, beside those of the loopback; None for any."""
  max_inputs: int = 2048
  """Items of one request."""
  max_body_bytes: int = 2_000_000
  """Of a request's body."""
  body_timeout_s: float = 30.0
  """From a request's headers to the end of its body."""
  timeout_s: float = 60.0
  """From the end of a request's body to its answer."""
  cors_origins: tuple[str, ...] = ()
  """Other sites whose pages may ask; `*` for all."""
  max_batch_tokens: int = 2048
  """As the models have it; the routes only tell."""
  max_concurrent_requests: int = 512
  """As the models have it; the routes only tell."""
