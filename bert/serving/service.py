"""What the routes of all dialects share: a model for a request, its results, headers and counts."""

import asyncio
import dataclasses
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np
from fastapi import Request, Response

from bert.serving import json_bodies
from bert.serving.errors import (
  BackendError,
  EmptyInput,
  InvalidInput,
  TooLarge,
  UnknownModel,
)
from bert.serving.metrics import Metrics

STARTED = "bert.started"
"""Key of a request's scope: when it began, of `time.perf_counter`."""
FACTS = "bert.facts"
"""Key of a request's scope: what the log says of it."""

# Characters of JSON that are made in one go: the event loop serves others between two such parts.
_NUMBERS_IN_A_PART = 8192


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


class Service:
  """The models behind the routes.

  Attributes:
    models: a `ServedModels`.
    settings: limits.
    metrics: counts.
  """

  def __init__(self, models: Any, settings: Settings, metrics: Metrics):
    self.models = models
    self.settings = settings
    self.metrics = metrics

  async def body(self, request: Request, body_class: type[json_bodies.AnyBody]):
    """Reads and checks the body of a request; see `json_bodies.parse`."""
    return json_bodies.parse(body_class, await request.body())

  def model(self, name: str | None, ability: str) -> Any:
    """Finds the model that a request means, which has to have an ability, such as `vectors`.

    Raises:
      UnknownModel: none or several are meant.
      InvalidInput: the model cannot do it.
    """
    model = self.any_model(name, lambda able: ability in able)
    if ability not in model.servable.abilities:
      raise InvalidInput(
        f"{model.name} has no {ability.replace('_', ' ')}, but "
        f"{', '.join(each.replace('_', ' ') for each in model.servable.abilities)}."
      )
    return model

  def any_model(self, name: str | None, is_able: Callable[[Mapping[str, Any]], Any]) -> Any:
    """Finds the model that a request means.

    Args:
      name: as the request says it.
      is_able: of the abilities of a model, tells whether it is meant where there is no name.

    Raises:
      UnknownModel: none or several are meant.
    """
    names = self.models.names
    if name is None and len(names) > 1:
      able = [each for each in names if is_able(self.models.find(each).servable.abilities)]
      if len(able) != 1:
        raise UnknownModel(f"Say which `model` is meant: {', '.join(able or names)}.")
      name = able[0]
    return self.models.find(name)

  def check_dimensions(self, dimensions: int | None, model: Any) -> None:
    """Raises an `InvalidInput` where vectors have fewer numbers than are asked for."""
    width = model.servable.config.hidden_size
    if dimensions is not None and not 1 <= dimensions <= width:
      raise InvalidInput(
        f"`dimensions` is {dimensions}, but vectors of {model.name} have {width}: ask for 1 to "
        f"{width}."
      )

  def check_count(self, count: int) -> None:
    """Raises a `TooLarge` for a request of so many texts."""
    if count > self.settings.max_inputs:
      raise TooLarge(
        f"The request has {count} texts, but may have {self.settings.max_inputs} "
        "(--max_inputs). Send them in several requests."
      )

  async def compute(self, request: Request, model: Any, ability: str, items: Sequence[Any]) -> Any:
    """Computes items; returns a `Computed`, and notes it for log and headers.

    Raises:
      EmptyInput: there is no item.
      TooLarge: there are too many.
      ServingError: of the model.
    """
    if not items:
      raise EmptyInput("There is no text to compute.")
    processor = model.servable.abilities[ability].processor
    self.check_count(sum(_num_texts(processor, item) for item in items))
    facts = request.scope.setdefault(FACTS, {})
    facts |= {"model": model.name, "items": len(items)}
    self.metrics.asked(model.name, ability, len(items))
    computed = await model.compute(ability, items, self.settings.timeout_s)
    facts["tokens"] = sum(computed.tokens)
    self.metrics.computed(model.name, ability, computed)
    return computed


def _num_texts(processor: Any, item: Any) -> int:
  """Counts the texts that an item is computed for: each choice of a list is one."""
  if not processor.list_inputs:
    return 1
  values = item.values() if isinstance(item, Mapping) else item
  lists = [each for each in values if isinstance(each, list | tuple)]
  return max([1, *map(len, lists)])


# ---------------------------------------------------------------------------------------------
# Answers.


def headers_of(request: Request, computed: Any) -> dict[str, str]:
  """Returns the times of a request in milliseconds, and its tokens, as TEI's headers."""
  return {
    "x-compute-type": computed.device,
    "x-compute-tokens": str(sum(computed.tokens)),
    "x-queue-time": _ms(computed.queue_s),
    "x-tokenization-time": _ms(computed.tokenization_s),
    "x-inference-time": _ms(computed.inference_s),
    "x-total-time": _ms(seconds_since_start(request)),
  }


def seconds_since_start(request: Request) -> float:
  """Returns how long a request has been here."""
  now = time.perf_counter()
  return now - request.scope.get(STARTED, now)


def _ms(seconds: float) -> str:
  return f"{1000 * seconds:.3f}"


def to_json(value: Any) -> bytes:
  """Writes JSON in UTF-8, arrays as lists.

  Raises:
    BackendError: a number of the model is not finite.
  """
  try:
    return json.dumps(
      value, ensure_ascii=False, default=_plain, allow_nan=False, separators=(",", ":")
    ).encode()
  except ValueError:
    raise BackendError("The model's answer has numbers that are not finite.") from None


def _plain(value: Any) -> Any:
  if isinstance(value, np.ndarray | np.generic):
    return value.tolist()
  raise TypeError(f"{type(value).__name__} is no value of JSON.")


async def vectors_json(vectors: Sequence[np.ndarray], before: bytes = b"", after: bytes = b""):
  """Writes each vector as JSON between two texts; others are served in between.

  Returns:
    A list of bytes.
  """
  written, numbers = [], 0
  for vector in vectors:
    written.append(before + to_json(vector) + after)
    numbers += vector.size
    if numbers > _NUMBERS_IN_A_PART:
      numbers = 0
      await asyncio.sleep(0)
  return written


def json_answer(request: Request, content: bytes, computed: Any = None) -> Response:
  """Makes the answer of a route of JSON."""
  headers = headers_of(request, computed) if computed is not None else {}
  return Response(content, media_type="application/json", headers=headers)


def normalized(vector: np.ndarray) -> np.ndarray:
  """Returns a vector of length 1; that of zeros stays."""
  length = np.linalg.norm(vector)
  return vector / length if length else vector
