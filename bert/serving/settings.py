"""What the routes and their limits need to know of the command line."""

import dataclasses


@dataclasses.dataclass(frozen=True)
class Settings:
  """Limits of requests, and who may ask."""

  api_keys: tuple[str, ...] = ()
  """Any of them opens the routes; without one all are open."""
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
