"""Models as they are served: results, refusals, reloads, the end. One process is real, in one test.

Alone: python -m pytest tests/serving/served_models_test.py (seconds; no TensorFlow)
"""

import asyncio
import contextlib
import importlib.util
import logging
import os
import threading
import time

import pytest

from bert.serving import served_models, worker_pool
from bert.serving.errors import (
  BackendError,
  EmptyInput,
  InvalidInput,
  NotReady,
  Overloaded,
  TooLarge,
  UnknownModel,
  WorkerDied,
)
from bert.serving.events import Events
from bert.serving.served_models import ServedModels, ServingOptions
from tests.kit import made_up_engines
from tests.kit.made_up_engines import DIES, RAISES, Channel


class Heard(Events):
  """Notes the reloads."""

  def __init__(self):
    self.reloads = []

  def reloaded(self, model, ok):
    self.reloads.append((model, ok))


@pytest.fixture
def folder(tmp_path):
  (tmp_path / "number").write_text("0")
  return tmp_path


def write(folder, text):
  """Replaces the model's file, as a run does."""
  (folder / "new").write_text(text)
  os.replace(folder / "new", folder / "number")


@contextlib.asynccontextmanager
async def serving(*folders, events=None, **options):
  names = {f"model {index}": str(folder) for index, folder in enumerate(folders)}
  options = ServingOptions(**{"reload": False, **options})
  models = ServedModels(names, options, events, find=made_up_engines.find)
  await models.start()
  try:
    yield models
  finally:
    await models.stop()


async def sums(models, *items, ability="answers"):
  computed = models.find().compute(ability, items)
  return (await asyncio.wait_for(computed, timeout=30)).results


async def until(condition):
  end = time.monotonic() + 20
  while not condition():
    assert time.monotonic() < end, "it did not happen"
    await asyncio.sleep(0.002)


async def settle():
  for _ in range(10):
    await asyncio.sleep(0)


# ---------------------------------------------------------------------------------------------
# Results.


def test_results_and_what_they_took(channels, folder):
  async def main():
    async with serving(folder) as models:
      assert models.is_ready
      found = await models.find().compute("answers", ["1 2 3", "4"])
      assert found.results == [6, 4]
      assert found.tokens == [3, 1]
      assert [rows[0]["input_ids"] for rows, _ in found.raw] == [[1, 2, 3], [4]]
      assert [int(outputs[0]["sum"]) for _, outputs in found.raw] == [6, 4]
      assert min(found.queue_s, found.tokenization_s) >= 0
      assert found.inference_s == 0.001
      # Abilities of one engine are computed together: it is loaded once.
      assert await sums(models, "5", ability="vectors") == [5]
      assert len(Channel.all[0].engines) == 1

  asyncio.run(main())


def test_a_long_text_does_not_stop_the_loop(channels, folder, monkeypatch):
  loop_goes_on = threading.Event()

  def slow(self, item):
    assert loop_goes_on.wait(10), "the loop waits for the text"
    return made_up_engines.ItemRows(item, [{"input_ids": [1]}])

  async def main():
    async with serving(folder) as models:
      monkeypatch.setattr(made_up_engines.Numbers, "featurize", slow)
      task = asyncio.create_task(sums(models, "1 " * 5000))
      await settle()
      loop_goes_on.set()
      assert await task == [1]

  asyncio.run(main())


def test_what_is_lazy_has_a_process_of_its_own_from_the_first_request_on(channels, folder):
  async def main():
    async with serving(folder, workers=2) as models:
      assert len(Channel.all) == 2
      found = await asyncio.gather(*(sums(models, "1 2", ability="attention") for _ in range(3)))
      assert found == [[3]] * 3
      assert len(Channel.all) == 3
      assert Channel.all[2].works == [[[1, 2]] * 3]
    assert all(channel.is_killed for channel in Channel.all)

  asyncio.run(main())


def test_models_by_name(channels, folder):
  async def main():
    async with serving(folder) as models:
      assert models.find("whatever") is models.find() is models.find("model 0")
    async with serving(folder, folder) as models:
      assert models.names == ["model 0", "model 1"]
      assert models.find("model 1").name == "model 1"
      assert models.find().name == "model 0"
      with pytest.raises(UnknownModel, match="no model 'other', but model 0, model 1"):
        models.find("other")
      with pytest.raises(UnknownModel, match="has no masked_words, but answers, vectors"):
        await models.find().compute("masked_words", ["1"])

  asyncio.run(main())


# ---------------------------------------------------------------------------------------------
# Refusals.


def test_bad_items_are_refused_by_their_place(channels, folder):
  async def main():
    async with serving(folder) as models:
      with pytest.raises(InvalidInput, match="invalid literal") as caught:
        await sums(models, "1", "2", "three")
      assert (caught.value.index, caught.value.status) == (2, 422)
      with pytest.raises(EmptyInput):
        await sums(models)
      with pytest.raises(BackendError):
        await sums(models, f"{RAISES}")
      assert await sums(models, "1") == [1]

  asyncio.run(main())


@pytest.mark.parametrize(
  "items",
  [["1 " * 50, "1"], [{"context": "1 " * 20, "choices": ["1", "2", "3"]}]],
  ids=["one text", "a context with many ends"],
)
def test_what_would_be_read_for_ever_is_refused(channels, folder, monkeypatch, items):
  async def main():
    async with serving(folder, max_characters=100) as models:
      monkeypatch.setattr(made_up_engines.Numbers, "featurize", None)
      with pytest.raises(TooLarge, match=r"would read 1\d\d characters, .* but at most 100 in a"):
        await sums(models, *items)

  asyncio.run(main())


def test_too_many_requests_are_refused(channels, folder):
  async def main():
    async with serving(folder, max_concurrent_requests=2) as models:
      Channel.gate = asyncio.Event()
      tasks = [asyncio.create_task(sums(models, "1")) for _ in range(2)]
      await settle()
      with pytest.raises(Overloaded) as caught:
        await sums(models, "1")
      assert (caught.value.status, caught.value.retry_after_s) == (429, 1)
      Channel.gate.set()
      assert await asyncio.gather(*tasks) == [[1], [1]]
      assert await sums(models, "1") == [1]

  asyncio.run(main())


@pytest.mark.parametrize("items", [["1 " * 200], ["1"] * 200], ids=["one text", "many"])
def test_a_request_that_would_wait_too_long_is_refused(channels, folder, items):
  async def main():
    # 1,000 tokens a second: 100 tokens may wait.
    async with serving(folder, max_wait_s=0.1, max_batch_tokens=200) as models:
      Channel.gate = asyncio.Event()
      tasks = []
      for _ in range(2):  # one is computed, one waits
        tasks.append(asyncio.create_task(sums(models, "1 " * 200)))
        await settle()
      with pytest.raises(Overloaded, match="would wait 0 s, which is more than 0") as caught:
        await sums(models, *items)
      assert caught.value.retry_after_s == 1
      with pytest.raises(Overloaded):
        await sums(models, "1 1")  # what came before it is long, and computed in one piece
      Channel.gate.set()
      assert [await task for task in tasks] == [[200], [200]]
      assert await sums(models, "1 1") == [2]

  asyncio.run(main())


def test_a_request_that_takes_longer_than_anybody_waits_is_refused_at_once(channels, folder):
  async def main():
    # 1,000 tokens a second: 100 tokens may be computed.
    async with serving(folder, max_batch_tokens=200) as models:
      model, items = models.find(), ["1"] * 200
      with pytest.raises(TooLarge, match=r"200 tokens, .* but an answer may take 0\.1 \(--timeout"):
        await model.compute("answers", items, timeout_s=0.1)
      assert (await model.compute("answers", items, timeout_s=0.3)).tokens
      assert (await model.compute("answers", items)).tokens  # where no time is set

  asyncio.run(main())


def test_a_batch_must_hold_the_longest_text(channels, folder):
  async def main():
    with pytest.raises(ValueError, match=r"max_batch_tokens is 15, but .* max_seq_length = 16"):
      async with serving(folder, max_batch_tokens=15):
        pass

  asyncio.run(main())


def test_a_model_that_cannot_be_loaded_is_an_error_at_the_start(channels, tmp_path, folder):
  async def main():
    with pytest.raises(ValueError, match="holds no number"):
      async with serving(tmp_path / "nothing"):
        pass
    Channel.start_error = NotReady("no memory")
    with pytest.raises(ValueError, match="model 0: no memory"):
      async with serving(folder):
        pass
    assert all(channel.is_killed for channel in Channel.all)

  asyncio.run(main())


def test_who_cancels_leaves_nothing(channels, folder):
  async def main():
    async with serving(folder) as models:
      Channel.gate = asyncio.Event()
      tasks = [asyncio.create_task(sums(models, "1 2", "3")) for _ in range(3)]
      await settle()
      for task in tasks:
        task.cancel()
      await asyncio.gather(*tasks, return_exceptions=True)
      Channel.gate.set()
      await settle()
      assert len(Channel.all[0].works) == 1

  asyncio.run(main())


# ---------------------------------------------------------------------------------------------
# Reloads, and the end.


def test_a_new_model_takes_the_place_of_the_old_one_and_no_request_is_lost(channels, folder):
  async def main():
    heard = Heard()
    async with serving(folder, events=heard, reload=True, reload_s=0.01) as models:
      Channel.gate = asyncio.Event()
      early = asyncio.create_task(sums(models, "1"))
      await settle()
      write(folder, "100")
      await until(lambda: models.find().version == 2)
      late = asyncio.create_task(sums(models, "1"))
      await settle()
      assert [channel.is_killed for channel in Channel.all] == [False, False]
      Channel.gate.set()
      assert (await early, await late) == ([1], [101])
      await until(lambda: Channel.all[0].is_killed)
      assert heard.reloads == [("model 0", True)]
      assert models.is_ready

  asyncio.run(main())


@pytest.mark.parametrize("error", [NotReady("damaged"), RuntimeError("odd")])
def test_a_bad_new_model_is_not_served_but_tried_again(channels, folder, caplog, error):
  async def main():
    heard = Heard()
    async with serving(folder, events=heard, reload=True, reload_s=0.005) as models:
      Channel.start_error = error
      write(folder, "100")
      await until(lambda: len(heard.reloads) == 2)
      assert heard.reloads == [("model 0", False)] * 2
      assert models.find().version == 1
      assert await sums(models, "1") == [1]
      Channel.start_error = None
      await until(lambda: models.find().version == 2)
      assert await sums(models, "1") == [101]
      assert [channel.is_killed for channel in Channel.all[1:-1]] == [True] * 2

  with caplog.at_level(logging.ERROR, "absl"):
    asyncio.run(main())
  assert caplog.text.count("cannot be served, which is tried again") == 2
  assert str(error) in caplog.text


def test_a_process_that_is_killed_while_it_finds_a_model_is_one_message(monkeypatch, tmp_path):
  monkeypatch.setattr(served_models, "_found_or_reason", made_up_engines.die)
  with pytest.raises(WorkerDied, match=f"reads {tmp_path} was killed"):
    served_models.found_apart(tmp_path)


def test_a_pointer_to_the_same_model_reloads_nothing(channels, folder, monkeypatch):
  pointer = folder / "checkpoint"

  def find(path):
    return made_up_engines.find(path)._replace(pointers=(str(pointer),))

  async def main():
    finds = []
    options = ServingOptions(reload_s=0.005)
    models = ServedModels(
      {"sums": str(folder)}, options, find=lambda path: finds.append(path) or find(path)
    )
    await models.start()
    pointer.write_text("another line")
    await until(lambda: len(finds) == 2)
    await asyncio.sleep(0.05)
    assert (models.find().version, len(finds), len(Channel.all)) == (1, 2, 1)
    await models.stop()

  asyncio.run(main())


def test_a_real_process_is_killed_and_comes_back(folder, monkeypatch):
  monkeypatch.setattr(worker_pool, "_FIRST_PAUSE_S", 0.001)
  monkeypatch.setattr(worker_pool, "_SOON_S", 0.0)

  async def main():
    async with serving(folder, max_batch_tokens=16) as models:
      (pid,) = models.find().pids
      found = await asyncio.gather(
        sums(models, f"{DIES} " * 16),
        *(sums(models, f"{number} " * 16) for number in range(3)),
        return_exceptions=True,
      )
      assert isinstance(found[0], WorkerDied)  # alone in its batch
      assert found[1:] == [[0], [16], [32]]
      assert models.is_ready
      assert models.find().pids != [pid]

  asyncio.run(main())


def test_what_needs_tensorflow_is_one_message_without_it(monkeypatch, tmp_path):
  monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
  with pytest.raises(ValueError, match=rf"^{tmp_path} is no export\. Without TensorFlow, which"):
    served_models.found_apart(tmp_path)
