"""The models of a server: items in, results out, whatever happens to their processes.

  models = ServedModels({"mrpc": "/tmp/mrpc_output"}, ServingOptions(workers=2))
  await models.start()
  found = await models.find("mrpc").compute("answers", [("It rains.", "It is wet.")])
  found.results[0]["label"]
  await models.stop()

Texts become tokens here and scores become answers; the processes compute what lies between. All of
it belongs to one event loop. Long texts are read in a thread, so that the loop goes on.
"""

import asyncio
import concurrent.futures
import functools
import importlib.util
import math
import multiprocessing
import os
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from concurrent.futures.process import BrokenProcessPool
from typing import Any, NamedTuple

from absl import logging

from bert.io import installation, start_lines
from bert.predicting import servable
from bert.predicting.processors import ItemRows, Outputs, Processor
from bert.predicting.servable import Servable
from bert.serving import worker
from bert.serving.deployment import Deployment
from bert.serving.errors import (
  EmptyInput,
  InvalidInput,
  NotReady,
  Overloaded,
  ServingError,
  TooLarge,
  UnknownModel,
  WorkerDied,
)
from bert.serving.events import Events
from bert.serving.worker_pool import PoolOptions, WorkerPool
from bert.tasks import kinds

# Texts of this number of characters take about 2 ms to become tokens: more is done in a thread.
_FEW_CHARACTERS = 4000
_FEW_ROWS = 64  # whose answers are made at once
_LONGEST_RETRY_S = 300.0  # between two attempts to serve files that could not be served


class ServingOptions(NamedTuple):
  """How models are served."""

  workers: int = 1  # processes of each model
  max_batch_tokens: int = 2048
  max_concurrent_requests: int = 512  # of all models together
  max_wait_s: float = 10.0  # a request that would wait longer is refused, and one that has
  max_characters: int = 8_000_000  # of a request, as often as they are made tokens
  batch_timeout_s: float = 60.0  # a process that computes longer is killed
  start_timeout_s: float = 600.0
  reload: bool = True  # whether files are watched
  reload_s: float = 2.0  # how often


class Computed(NamedTuple):
  """What became of items, in their order."""

  results: list[Any]
  raw: list[tuple[ItemRows, list[Outputs]]]  # rows, and their outputs without padding
  tokens: list[int]  # special ones included
  queue_s: float
  tokenization_s: float
  inference_s: float
  device: str = "cpu"  # or `gpu`


class _Seen(NamedTuple):
  """What a folder held, and the state that its files had then; they may change while it loads."""

  servable: Servable
  signature: tuple
  contents: tuple


class ServedModel:
  """One model, which may be replaced by a newer one while it is served.

  Attributes:
    name: by which requests name it.
    folder: which is watched.
    version: 1, and one more each time that it is replaced.
  """

  def __init__(
    self,
    name: str,
    folder: str,
    options: ServingOptions,
    find: Callable[[], Servable],
    admission: "Admission",
    events: Events,
  ):
    """Takes a function that finds what the folder can do, called in a thread."""
    self.name, self.folder, self.version = name, folder, 0
    self._options, self._find = options, find
    self._admission, self._events = admission, events
    self._deployment: Deployment | None = None
    self._seen: _Seen
    self._old: set[asyncio.Task] = set()  # which stop former deployments
    self._thread = concurrent.futures.ThreadPoolExecutor(1, f"bert-{name}")

  @property
  def servable(self) -> Servable:
    """What it can do now; a `NotReady` before it has been found."""
    return self._current().servable

  @property
  def is_ready(self) -> bool:
    """Whether it can compute now."""
    return self._deployment is not None and self._deployment.is_ready

  @property
  def pids(self) -> list[int]:
    """The numbers of the processes that compute."""
    return self._deployment.pids if self._deployment else []

  async def compute(
    self, ability: str, items: Sequence[Any], timeout_s: float = math.inf
  ) -> Computed:
    """Computes the results of items; if it is cancelled they leave the queue.

    Args:
      ability: one of `servable.abilities`.
      items: each as its processor takes it.
      timeout_s: after which nobody waits: what takes longer by itself is refused at once.

    Raises:
      ServingError: there is no result; see its classes.
    """
    deployment = self._current()
    if ability not in deployment.servable.abilities:
      known = ", ".join(deployment.servable.abilities)
      raise UnknownModel(f"The model {self.name} has no {ability}, but {known}.")
    if not items:
      raise EmptyInput("There is no input: give at least one text.")
    with self._admission.request():
      deployment.users += 1
      try:
        return await self._computed(deployment, ability, items, timeout_s)
      finally:
        deployment.leave()

  async def _computed(
    self, deployment: Deployment, ability: str, items: Sequence[Any], timeout_s: float
  ) -> Computed:
    processor = deployment.servable.abilities[ability].processor
    start = time.perf_counter()
    if usual := deployment.usual_pool(ability):  # before texts become tokens, which takes time
      self._admission.check_wait(usual, len(items))
    features = await self._featurize(processor, items)
    tokenized = time.perf_counter()
    rows = [row for its_rows in features for row in its_rows]
    lengths = [processor.num_tokens(row) for row in rows]
    pool, engine = await deployment.pool_of(ability)
    check_time(pool, sum(lengths), timeout_s)
    self._admission.check_wait(pool, sum(lengths))
    found = await pool.compute(engine, rows, lengths)
    outputs = iter(found.outputs)
    raw = [
      (its_rows, processor.own_outputs(its_rows, [next(outputs) for _ in its_rows]))
      for its_rows in features
    ]
    is_small = len(rows) <= _FEW_ROWS
    results = await self._here_or_in_thread(is_small, _finished, processor, raw)
    numbers = iter(lengths)
    tokens = [sum(next(numbers) for _ in its_rows) for its_rows in features]
    times = found.queue_s, tokenized - start, found.inference_s
    return Computed(results, raw, tokens, *times, pool.device_of(engine))

  async def _featurize(self, processor: Processor, items: Sequence[Any]) -> list[ItemRows]:
    """Makes rows; many texts, or long ones, in a thread, which nothing could stop on its way."""
    characters = sum(map(num_characters, items))
    if characters > self._options.max_characters:
      raise TooLarge(
        f"{self.name} would read {characters:,} characters, a query or a context once for each "
        f"text beside it, but at most {self._options.max_characters:,} in a request. Send them in "
        "several requests, or shorter ones."
      )
    is_small = characters <= _FEW_CHARACTERS
    return await self._here_or_in_thread(is_small, _featurized, processor, items)

  async def _here_or_in_thread(self, here: bool, function: Callable, *arguments: Any) -> Any:
    if here:
      return function(*arguments)
    return await asyncio.get_running_loop().run_in_executor(self._thread, function, *arguments)

  # -------------------------------------------------------------------------------------------
  # From start to end.

  async def start(self) -> None:
    """Finds the model, and starts its processes.

    Raises:
      ValueError, OSError: the folder holds no such model; the text says what is wrong.
      NotReady, WorkerDied: its processes cannot start.
    """
    await self._deploy(await asyncio.to_thread(self._look))

  async def watch(self) -> None:
    """Replaces the model when its files have changed and then stayed the same; for ever.

    What cannot be served is tried again, at growing intervals, and as soon as the files change.
    """
    failed = before = None
    pause_s, next_try = self._options.reload_s, 0.0
    while True:
      await asyncio.sleep(self._options.reload_s)
      now = await asyncio.to_thread(self.servable.signature)
      is_new = now == before and now != self._seen.signature
      before = now
      if not is_new or (now == failed and time.monotonic() < next_try):
        continue
      pause_s = min(2 * pause_s, _LONGEST_RETRY_S) if now == failed else self._options.reload_s
      failed = None if await self._reload() else now
      next_try = time.monotonic() + pause_s

  async def stop(self) -> None:
    """Ends all processes."""
    deployments = [self._deployment] if self._deployment else []
    self._deployment = None
    for task in self._old:
      task.cancel()
    await asyncio.gather(*self._old, *(each.kill() for each in deployments), return_exceptions=True)
    self._thread.shutdown(wait=False, cancel_futures=True)

  async def _reload(self) -> bool:
    """Returns whether what the folder holds now is served."""
    try:
      found = await asyncio.to_thread(self._look)
      if found.contents != self._seen.contents:
        await self._deploy(found)
        logging.info("%s: version %d is served.", self.name, self.version)
        self._events.reloaded(self.name, True)
      self._seen = found
      return True
    except Exception as error:  # whatever it is, the old model is served and watched on
      logging.error(
        "%s: the files have changed, but cannot be served, which is tried again: %s",
        self.name,
        worker.reason_of(error),
      )
      self._events.reloaded(self.name, False)
      return False

  def _look(self) -> "_Seen":
    """Finds what the folder holds; called in a thread."""
    found = self._find()
    return _Seen(found, found.signature(), found.contents())

  async def _deploy(self, seen: "_Seen") -> None:
    """Starts new processes beside the old ones, which then finish what they have."""
    cores = installation.num_cores()
    options = PoolOptions(
      workers=self._options.workers,
      threads=max(1, cores // self._options.workers),
      max_batch_tokens=self._options.max_batch_tokens,
      max_wait_s=self._options.max_wait_s,
      batch_timeout_s=self._options.batch_timeout_s,
      start_timeout_s=self._options.start_timeout_s,
    )
    new = Deployment(self.name, seen.servable, options, self._events)
    try:
      await new.start()
    except BaseException:
      await new.kill()
      raise
    old, self._deployment, self._seen = self._deployment, new, seen
    self.version += 1
    if old is not None:
      task = asyncio.create_task(_stopped(old))
      self._old.add(task)
      task.add_done_callback(self._old.discard)

  def _current(self) -> Deployment:
    if self._deployment is None:
      raise NotReady(f"The model {self.name} is being loaded.")
    return self._deployment


async def _stopped(deployment: Deployment) -> None:
  """Stops a deployment when its requests have left; at once if it is cancelled."""
  try:
    await deployment.stop()
  except asyncio.CancelledError:
    await deployment.kill()
    raise


def num_characters(item: Any) -> int:
  """Counts the characters of an item as often as they are made tokens; or its tokens, or words.

  Example:
    >>> num_characters("abc"), num_characters(("abc", "d")), num_characters(["ab", "c"])
    (3, 4, 3)
    >>> num_characters({"context": "abc", "choices": ["d", "e"]})  # each has the context before it
    8
  """
  if isinstance(item, str):
    return len(item)
  values = item.values() if isinstance(item, Mapping) else item
  if not isinstance(values, Collection):
    return 1
  lists = [each for each in values if isinstance(each, list | tuple)]
  texts = sum(num_characters(each) for each in values if not isinstance(each, list | tuple))
  return texts * max([1, *map(len, lists)]) + sum(map(num_characters, lists))


def _featurized(processor: Processor, items: Sequence[Any]) -> list[ItemRows]:
  found = []
  for index, item in enumerate(items):
    try:
      found.append(processor.featurize(item))
    except ValueError as error:
      raise InvalidInput(str(error), index=index) from None
  return found


def _finished(processor: Processor, raw: Sequence[tuple[ItemRows, list[Outputs]]]) -> list[Any]:
  return [processor.finish(rows, outputs) for rows, outputs in raw]


# ---------------------------------------------------------------------------------------------
# Whether a request is taken.


def check_time(pool: WorkerPool, tokens: int, timeout_s: float) -> None:
  """Raises a `TooLarge` where a request of N tokens takes too long though nothing else waits."""
  seconds = pool.compute_s(tokens)
  if seconds > timeout_s:
    raise TooLarge(
      f"The request has {tokens:,} tokens, which take about {seconds:.0f} s here, but an answer "
      f"may take {timeout_s:g} (--timeout_s). Send the texts in several requests."
    )


class Admission:
  """Which requests are taken: one rule for one text and for many.

  Attributes:
    requests: that are being answered now.
    is_open: False once the server stops.
  """

  def __init__(self, options: ServingOptions):
    """Takes the limits."""
    self.requests = 0
    self.is_open = True
    self._options = options

  def request(self) -> "Admission":
    """Takes a request, for a `with` block.

    Raises:
      Overloaded: there are too many.
      NotReady: the server stops.
    """
    if not self.is_open:
      raise NotReady("The server is stopping.")
    if self.requests >= self._options.max_concurrent_requests:
      raise Overloaded(
        f"{self.requests} requests are being answered, which is the limit.", retry_after_s=1
      )
    return self

  def __enter__(self) -> None:
    self.requests += 1

  def __exit__(self, *_: object) -> None:
    self.requests -= 1

  def check_wait(self, pool: WorkerPool, tokens: int) -> None:
    """Raises an `Overloaded` where a request of N tokens would wait too long."""
    wait_s = pool.wait_s(tokens)
    if wait_s > self._options.max_wait_s:
      raise Overloaded(
        f"The request would wait {wait_s:.0f} s, which is more than {self._options.max_wait_s:g}.",
        retry_after_s=max(1, math.ceil(wait_s - self._options.max_wait_s)),
      )


# ---------------------------------------------------------------------------------------------
# All models.


class ServedModels:
  """The models by name, in the order in which they were given."""

  def __init__(
    self,
    folders: Mapping[str, str],
    options: ServingOptions | None = None,
    events: Events | None = None,
    find: Callable[..., Servable] | None = None,
    options_by_name: Mapping[str, Mapping[str, Any]] | None = None,
    **model_options: Any,
  ):
    """Takes the models, which `start` loads.

    Args:
      folders: name -> folder.
      options: how they are served.
      events: hears of batches, queues, restarts and reloads.
      find: what finds a model, by default `found_apart`.
      options_by_name: name -> `servable.Options` of this model alone.
      **model_options: see `servable.Options`; of all models.
    """
    options, own = options or ServingOptions(), options_by_name or {}
    finder: Callable[..., Servable] = found_apart if find is None else find
    self._options = options
    self._admission = Admission(options)
    self._models = {
      name: ServedModel(
        name,
        folder,
        options,
        functools.partial(finder, folder, **{**model_options, **own.get(name, {})}),
        self._admission,
        events or Events(),
      )
      for name, folder in folders.items()
    }
    self._watchers: list[asyncio.Task] = []

  @property
  def names(self) -> list[str]:
    """The names of the models."""
    return list(self._models)

  @property
  def is_ready(self) -> bool:
    """Whether each model can compute, and requests are taken."""
    return self._admission.is_open and all(each.is_ready for each in self._models.values())

  def find(self, name: str | None = None) -> ServedModel:
    """Returns a model; where there is one, any name is right, and None is the first.

    Raises:
      UnknownModel: there is none of that name.
    """
    if name is None or len(self._models) == 1:
      return next(iter(self._models.values()))
    if name not in self._models:
      raise UnknownModel(f"There is no model {name!r:.80}, but {', '.join(self._models)}.")
    return self._models[name]

  async def start(self) -> None:
    """Loads all models, and watches their files.

    Raises:
      ValueError, OSError: a folder holds no such model, or its processes cannot start.
    """
    try:
      for model in self._models.values():
        await model.start()
    except ServingError as error:
      await self.stop()
      raise ValueError(f"{model.name}: {error}") from None
    except BaseException:
      await self.stop()
      raise
    if self._options.reload:
      self._watchers = [asyncio.create_task(each.watch()) for each in self._models.values()]

  async def stop(self) -> None:
    """Ends everything; requests that are left fail."""
    self._admission.is_open = False
    for watcher in self._watchers:
      watcher.cancel()
    await asyncio.gather(*self._watchers, return_exceptions=True)
    await asyncio.gather(*(each.stop() for each in self._models.values()))


def found_apart(folder: str | os.PathLike, **options: Any) -> Servable:
  """Finds a model as `servable.find`, in another process where that needs TensorFlow.

  Raises:
    ValueError, OSError: the folder holds no such model, or TensorFlow is needed and missing.
    WorkerDied: the process that reads it was killed.
  """
  options["shares_cores"] = True
  if not servable.needs_tensorflow(folder):
    return servable.find(folder, **options)
  if importlib.util.find_spec("tensorflow") is None:
    raise ValueError(
      f"{folder} {'is no export' if os.path.exists(folder) else 'does not exist'}. Without "
      "TensorFlow, which is not installed here, only exports are served: export_hub.py "
      "--format=onnx."
    )
  kinds.registered()  # whose classes come back
  context = multiprocessing.get_context("spawn")
  with concurrent.futures.ProcessPoolExecutor(1, context) as processes:
    try:
      found = processes.submit(_found_or_reason, os.fsdecode(folder), options).result()
    except BrokenProcessPool:
      raise WorkerDied(
        f"The process that reads {os.fsdecode(folder)} was killed; was there too little memory?"
      ) from None
  if isinstance(found, str):
    raise ValueError(found)
  return found


def _found_or_reason(folder: str, options: Mapping[str, Any]) -> Servable | str:
  """Returns the text of an error, because not every error can be sent to another process."""
  start_lines.start_tensorflow()
  try:
    return servable.find(folder, **options)
  except (ValueError, OSError, ImportError) as error:
    return str(error)
