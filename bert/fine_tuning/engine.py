"""The one run of all tasks: records, training, evaluation, prediction, export.

  if __name__ == "__main__":
    engine.main(MultipleChoice)

A task (`task.py`) says what its data, its head and its results are; the order of the steps is that
of `scripts/steps.py`, which pre-training shares.
"""

import collections
import dataclasses
import functools
import os
import random
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from absl import logging

from bert.fine_tuning import own_task_checks
from bert.fine_tuning.model_fn import model_fn_of
from bert.fine_tuning.task import DataSet, Task
from bert.io import record_files
from bert.io.tables import DataError
from bert.scripts import (
  command_line,
  flag_groups,
  on_request,
  output_folder,
  resolution,
  result_files,
  table_split,
  trained_task,
)
from bert.scripts.run_settings import FineTuningSettings
from bert.scripts.steps import Run, Teaching, log_sizes
from bert.tasks import constant_answers, kinds, shared_texts, usage
from bert.text import unknown_tokens
from bert.training import distribution

# The jobs whose batch size a split has.
_JOBS = {"dev": "eval", "test": "predict"}
_TRIED = 50  # examples, from which one is chosen to show how the model is used


class FineTuning(Run):
  """One run of a task.

  Attributes:
    task: what is learned.
    sets: split -> its data sets, of the splits that the run needs.
  """

  exports_task = True

  def __init__(self, task_class: type[Task], settings, bert_config, tokenizer, teaching=None):
    super().__init__(settings, bert_config, tokenizer, teaching)
    self.task = task_class(settings, bert_config, tokenizer)
    self.sets: dict[str, list[DataSet]] = {}
    self._num_records: dict[str, int] = {}
    self._is_prepared = False
    self._has_shown = False
    self.informative += tuple(self.task.informative_flags)
    self.ignored_in_eval += tuple(self.task.ignored_in_eval)
    self.result_keys = tuple(self.task.result_keys)
    self.teaching.check(self)

  # -------------------------------------------------------------------------------------------
  # Data.

  @property
  def train(self) -> DataSet:
    """The training set."""
    return self.sets["train"][0]

  def read(self):
    """Reads the training set first, which may say what the labels are.

    Raises:
      DataError: names what is malformed in each of the files.
    """
    task, splits = self.task, list(self.task.splits())
    faults: list[DataError] = []
    is_own = bool(kinds.find(task.name).file)
    if is_own:
      own_task_checks.check_methods(task)
    if "train" in splits:
      self._read_split("train", faults)
    if faults and not task.labels:
      raise faults[0]  # without labels, all of the other files would be wrong
    if not faults:
      task.prepare(self.train if "train" in splits else None)
      self._is_prepared = True
      self.labels = task.labels
      self.checked_fingerprint()
    for split in splits:
      if split != "train":
        self._read_split(split, faults)
    if faults[1:]:
      raise DataError("\n".join(map(str, faults)))
    if faults:
      raise faults[0]
    task.check_data(self.sets)
    self._check_shared_texts()
    if is_own and "train" in splits:
      own_task_checks.check_examples(task, self.train)
    self.example = self._first_example()

  def _first_example(self) -> dict[str, Any] | None:
    """Chooses an item of the dev set, or of another; none where the task does not say it."""
    sets = self.sets.get("dev") or self.sets.get("train") or self.sets.get("test") or []
    some = [example for data in sets for example in data.examples[:_TRIED]]
    try:
      return usage.choose(trained_task.items_of(self.task, some))
    except Exception as error:
      # The method is a user's own, and all that it is for here is an example of how it is used.
      logging.debug("No example of the data: %s", error)
      return None

  def _read_split(self, split: str, faults: list[DataError]) -> None:
    try:
      self.sets[split] = self.task.data_sets(split)
    except DataError as error:
      faults.append(error)

  def _check_shared_texts(self):
    """Warns where examples to evaluate are in the training set, too."""
    sets = [each for split, found in self.sets.items() if split != "train" for each in found]
    if "train" not in self.sets or not sets:
      return
    seen = {shared_texts.key(texts) for texts in self._texts_of(self.train) if texts}
    for data in sets:
      name = data.split + data.suffix
      shared_texts.warn_of_shared(seen, list(self._texts_of(data)), name)

  def _texts_of(self, data: DataSet) -> Iterator[Sequence[str] | None]:
    """Yields the texts of examples; None where the task does not tell them."""
    for example in data.examples:
      try:
        yield shared_texts.texts_of(trained_task.item_of(self.task, example))
      except command_line.UsageError:
        yield None

  def facts(self):
    """Returns those of the task, and the head of a task of one's own."""
    facts = self.task.facts()
    # Whoever loads the run builds the head anew.
    if self._is_prepared and kinds.find(self.task.name).file:
      facts["head"] = dataclasses.asdict(self.task.head())
    return facts

  def _informative(self):
    """Returns the columns of texts, too: `predict.py` finds them in other tables."""
    texts_in = dict(self.task.texts_in)
    return {**super()._informative(), **({"texts_in": texts_in} if texts_in else {})}

  def plan(self):
    """Plans the steps by examples, or by their records."""
    if self.task.shuffles:
      random.Random(12345).shuffle(self.train.examples)
    count = len(self.train)
    if self.task.plans_by_records:
      count = self._write(self.train)
    return self.settings.planned(count, self.task.unit)

  def _write(self, data: DataSet) -> int:
    """Writes `OUTPUT_DIR/<record_name>.tf_record`, once in a run.

    Returns:
      The number of records.
    """
    name, task = data.record_name, self.task
    if name not in self._num_records:
      unknown = unknown_tokens.UnknownTokens(self.tokenizer)
      records = unknown.counted(task.records(data, self._shown_examples()))
      is_filled = self.settings.use_tpu and not data.is_training
      if is_filled and task.padding_record(data) is not None:
        batch_size = getattr(self.settings, f"{_JOBS[data.split]}_batch_size")
        records = padded_to_batch(records, batch_size, functools.partial(task.padding_record, data))
      if task.keeps_records and not distribution.is_chief():
        collections.deque(records, maxlen=0)
      write = functools.partial(record_files.write_records, examples=records)
      path = self.settings.features_path(name)
      self._num_records[name] = distribution.on_chief(write, path)
      if warning := unknown.warning(data.split + data.suffix, self._texts_of(data)):
        logging.warning("%s", warning)
    return self._num_records[name]

  def batches(self, data: DataSet):
    """Returns the input_fn of a set, whose records are written now, and its sizes to log."""
    count = self._write(data)
    input_fn = self.task.input_fn(self.settings.features_path(data.record_name), data)
    return input_fn, self.task.sizes(data, count)

  def _shown_examples(self) -> int:
    """Returns how many examples' features to log: one of the first data that are written.

    It shows whether the columns are the right ones; `--verbosity=1` shows more, and of all data.
    """
    is_first, self._has_shown = not self._has_shown, True
    return int(is_first and self.settings.shows_examples)

  # -------------------------------------------------------------------------------------------
  # Training.

  def metric_names(self):
    """Returns those of the task."""
    return self.task.metric_names()

  def model_fn(self):
    """Returns that of the task's head."""
    return model_fn_of(
      self.task.head(),
      bert_config=self.bert_config,
      metric_fn=self.task.evaluate,
      **self.teaching.model_options(self),
    )

  def training_data(self):
    """Returns batches of the training set."""
    return self.batches(self.train)

  def dev_data(self):
    """Returns batches of the first dev set, and the task's headline."""
    return self.batches(self.sets["dev"][0])[0], self.task.headline

  # -------------------------------------------------------------------------------------------
  # Results.

  def use(self, checkpoint_path):
    """Does what the task does, by default `evaluate_and_predict`."""
    self.task.use(self, checkpoint_path)

  def example_passes(self):
    """Adds those that were evaluated and predicted."""
    jobs = {"dev": "do_eval", "test": "do_predict"}
    used = [self.sets.get(split, []) for split, job in jobs.items() if getattr(self.settings, job)]
    return super().example_passes() + sum(len(data) for sets in used for data in sets)

  def evaluate_and_predict(self, checkpoint_path: str | None) -> None:
    """Does what `--do_eval` and `--do_predict` say.

    Args:
      checkpoint_path: of the best weights; None for the newest.
    """
    if self.settings.do_eval:
      self._evaluate(checkpoint_path)
    if self.settings.do_predict:
      self._predict(checkpoint_path)

  def _evaluate(self, checkpoint_path):
    for data in self.sets["dev"]:
      input_fn, sizes = self.batches(data)
      name = data.suffix.strip("_") or None
      on_rows = None if data.suffix else self._know_rows
      results = self.evaluate_on(input_fn, sizes, checkpoint_path, name, on_rows)
      failure = results.get(constant_answers.FAILURE)
      constant_answers.warn_of(failure)
      if not data.suffix:  # the main set
        self.summarize(self.task.headline, self.task.report_keys, failure, len(data))

  def _know_rows(self, arrays: Mapping[str, Any]) -> None:
    scores = dict(arrays)
    ids, mask = scores.pop("input_ids"), scores.pop("input_mask")
    self.known_rows.add(ids, mask, scores)

  def summarize(
    self, headline: str, metrics: Iterable[str], failure: str | None, examples: int
  ) -> None:
    """Writes `dev_summary.json`, see `result_files.write_summary`."""
    folder = self.settings.output_dir
    distribution.on_chief(
      result_files.write_summary, folder, headline, list(metrics), failure, examples
    )

  def _predict(self, checkpoint_path):
    for data in self.sets["test"]:
      input_fn, sizes = self.batches(data)
      logging.info("***** Running prediction*****")
      log_sizes(sizes, self.settings.predict_batch_size)
      start = time.monotonic()
      predictions = self.estimator.predict(input_fn=input_fn, checkpoint_path=checkpoint_path)
      scores = self.task.write_predictions(data, predictions)
      logging.info("Prediction took %.1f s.", time.monotonic() - start)
      if scores:
        self.write_results(f"test_results{data.suffix}.txt", scores)


def padded_to_batch(rows: Iterable, batch_size: int, padding: Callable[[], Any]) -> Iterator:
  """Yields rows, and padding up to a multiple of the batch size: on a TPU batches must be full.

  Example:
    >>> list(padded_to_batch("abc", 2, lambda: "-"))
    ['a', 'b', 'c', '-']
  """
  count = 0
  for row in rows:
    yield row
    count += 1
  for _ in range(-count % batch_size):
    yield padding()


# ---------------------------------------------------------------------------------------------
# The script of a task.


def start(
  task_class: type[Task],
  settings: FineTuningSettings,
  teaching: Teaching | None = None,
  defaults: Mapping[str, Any] | None = None,
) -> int | None:
  """Makes a run of a task, or the many runs of `--num_runs`.

  Args:
    task_class: what is learned.
    settings: as they were given.
    teaching: what takes part in the run.
    defaults: settings of many runs that nobody has given.

  Returns:
    The exit code of many runs; None of one.
  """
  teaching = teaching or Teaching()
  settings.check()
  table_split.check(task_class, settings)
  if settings.is_many_runs:
    settings = table_split.with_split(task_class, settings)  # one for all
    script = teaching.script or kinds.find(task_class.name).script
    return on_request.module("num_runs").main(script, settings, defaults or {})
  settings = task_class.resolve(resolution.resolve(teaching.resolve(settings)))
  settings = _as_trained(settings)
  config, tokenizer = resolution.load_config_and_tokenizer(settings)
  with output_folder.locked_output_dir(settings) as settings:
    settings = table_split.with_split(task_class, settings, config, tokenizer)
    FineTuning(task_class, settings, config, tokenizer, teaching).run()
  return None


def _as_trained(settings: FineTuningSettings) -> FineTuningSettings:
  """Returns the settings; of a run that does not train, with the lengths of the one that did."""
  if settings.do_train:
    return settings
  inherited = resolution.with_lengths_of_run(settings)
  if inherited is not settings:
    inherited.check()  # together with lengths that were given
  return inherited


def flags_of(task_class: type[Task]) -> Callable[[], None]:
  """Returns the `define_flags` of a script."""
  return functools.partial(flag_groups.define, task_class.settings_class)


def main_of(task_class: type[Task]) -> Callable[[Any], int | None]:
  """Returns the `main` of a script."""

  def run_task(_) -> int | None:
    return start(task_class, flag_groups.read(task_class.settings_class))

  run_task.__module__ = task_class.__module__  # the script, whose docstring `--help` shows
  return run_task


def main(task_class: type[Task]) -> None:
  """Runs the script of a task: reads its flags, and does what they say."""
  doc = sys.modules[task_class.__module__].__doc__ or task_class.__doc__
  command_line.run(main_of(task_class), flags_of(task_class), doc=doc)


def register(task_class: type[Task]) -> type[Task]:
  """Makes a task of one's own known to `predict.py`, `distill.py` and the rest; a decorator.

  Its class needs `name`, and `head_class`; both lie in one Python file.

  Raises:
    ValueError: another task has its name; its headline is an error, of which less is better; or a
      method is of an earlier version.
  """
  if result_files.is_error(str(task_class.headline)):
    raise ValueError(
      f"{task_class.__name__}.headline is {task_class.headline}, of which less is better: name a "
      "score of which more is better, such as an accuracy or a correlation, to compare runs by."
    )
  own_task_checks.check_is_current(task_class)
  module = sys.modules[task_class.__module__]
  name = task_class.__module__
  file = getattr(module, "__file__", None)
  file = os.path.abspath(file) if file else name  # a notebook has none
  if name == "__main__" and file != name:  # others import it by the name of its file
    name = os.path.splitext(os.path.basename(file))[0]
    sys.modules.setdefault(name, module)
  kinds.register(
    kinds.Kind(
      task_class.name,
      task=f"{name}:{task_class.__name__}",
      head=f"{name}:{task_class.head_class.__name__}",
      decoder="bert.tasks.decoding:TextDecoder",
      model="bert.exporting.texts_model:TextsModel",
      file=file,
    )
  )
  return task_class
