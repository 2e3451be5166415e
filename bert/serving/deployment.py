"""A model as it is served: what its folder can do, and the processes that compute it.

  deployment = Deployment("mrpc", servable, PoolOptions(workers=2))
  await deployment.start()
  pool, engine = await deployment.pool_of("answers")

When the files of a model change, a new deployment takes the place of the old one.

What is rarely asked for has a process of its own, which the first request starts: loading it must
not hold up the others.
"""

import asyncio
from collections.abc import Sequence

from absl import logging

from bert.predicting.servable import Ability, Servable
from bert.serving.events import Events
from bert.serving.worker import EngineLoad
from bert.serving.worker_pool import PoolOptions, WorkerPool


class Deployment:
  """The processes of one version of a model.

  Attributes:
    servable: what it can do.
    users: requests that are in it now.
  """

  def __init__(
    self, name: str, servable: Servable, options: PoolOptions, events: Events | None = None
  ):
    """Takes a model.

    Raises:
      ValueError: a batch is too small for the longest text.
    """
    _check_budget(name, servable, options)
    self.servable = servable
    self.users = 0
    self._name, self._options, self._events = name, options, events
    self._usual = [each for each in servable.abilities.values() if not each.is_lazy]
    self._loads = list({id(each.load_engine): each.load_engine for each in self._usual}.values())
    self._pool = self._pool_of(self._usual, options)
    self._lazy: dict[str, asyncio.Task[WorkerPool]] = {}
    self._left = asyncio.Event()

  @property
  def is_ready(self) -> bool:
    """Whether it can compute now; what is lazy does not count, unless there is nothing else."""
    return self._pool.is_ready or not self._usual

  @property
  def pids(self) -> list[int]:
    """The numbers of the processes, those of lazy abilities not among them."""
    return self._pool.pids

  async def start(self) -> None:
    """Starts the processes; see `WorkerPool.start`."""
    if self._usual:
      await self._pool.start()

  def usual_pool(self, ability: str) -> WorkerPool | None:
    """Returns the processes of an ability that are always there; None of a lazy one."""
    return None if self.servable.abilities[ability].is_lazy else self._pool

  async def pool_of(self, ability: str) -> tuple[WorkerPool, int]:
    """Returns the processes of an ability, and the place of its engine there.

    Raises:
      NotReady, WorkerDied: the process of a lazy ability cannot start.
    """
    found = self.servable.abilities[ability]
    if found.is_lazy:
      return await self._lazy_pool(found), 0
    places = [index for index, each in enumerate(self._loads) if each is found.load_engine]
    return self._pool, places[0]

  async def stop(self) -> None:
    """Waits for the requests that are in it, and ends its processes."""
    while self.users:
      self._left.clear()
      await self._left.wait()
    await self.kill()

  async def kill(self) -> None:
    """Ends the processes; requests in it fail."""
    await self._pool.stop()
    for task in self._lazy.values():
      task.cancel()
      pool = (await asyncio.gather(task, return_exceptions=True))[0]
      if isinstance(pool, WorkerPool):
        await pool.stop()

  def leave(self) -> None:
    """Says that a request has left."""
    self.users -= 1
    if not self.users:
      self._left.set()

  async def _lazy_pool(self, ability: Ability) -> WorkerPool:
    """Returns the pool of an ability; all first requests wait for the same one."""
    task = self._lazy.get(ability.name)
    if task is None or (task.done() and (task.cancelled() or task.exception())):
      task = asyncio.create_task(self._started(ability))
      self._lazy[ability.name] = task
    return await asyncio.shield(task)

  async def _started(self, ability: Ability) -> WorkerPool:
    pool = self._pool_of([ability], self._options._replace(workers=1))
    await pool.start()
    return pool

  def _pool_of(self, abilities: Sequence[Ability], options: PoolOptions) -> WorkerPool:
    loads: dict[int, EngineLoad] = {}
    for each in abilities:
      loads.setdefault(id(each.load_engine), _engine_load(each))
    return WorkerPool(self._name, list(loads.values()), options, self._events)


def _check_budget(name: str, servable: Servable, options: PoolOptions) -> None:
  lengths = (each.processor.max_seq_length or 0 for each in servable.abilities.values())
  longest = max(lengths, default=0)
  if options.max_batch_tokens < longest:
    raise ValueError(
      f"{name}: max_batch_tokens is {options.max_batch_tokens}, but a text of this model may have "
      f"max_seq_length = {longest} tokens. Raise the one, or lower the other."
    )


def _engine_load(ability: Ability) -> EngineLoad:
  """Adds the first rows that the process computes: a short one and a long one."""
  processor, trials = ability.processor, []
  try:
    for item in processor.trial_items():
      row = max(processor.featurize(item), key=processor.num_tokens)
      trials.append((row, processor.num_tokens(row)))
  except ValueError as error:  # a task of one's own that takes other texts
    logging.info("%s is not tried before its first request: %s", ability.name, error)
  return EngineLoad(ability.load_engine, processor.padding, trials)
