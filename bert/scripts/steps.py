"""One run of a `run_*` script, step by step: what all of them share.

A subclass of `Run` says what its data are, which facts make it the same run when it is resumed, and
what its results look like: `fine_tuning.engine.FineTuning` for all tasks, and that of
`run_pretraining.py`. The order of the steps is that of `Run.run`. A teacher takes part in a run as
its `Teaching`.
"""

import difflib
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from absl import logging

from bert.io import installation
from bert.model.configuration import BertConfig
from bert.predicting.known_rows import KnownRows
from bert.scripts import on_request, output_folder, result_files, run_files
from bert.scripts.run_settings import RunSettings
from bert.scripts.settings import UsageError
from bert.training import distribution, hardware


class Teaching:
  """Takes part in a run at these places; by itself it changes nothing.

  Attributes:
    script: that makes such runs, where it is not the task's own.
    informative: further flags that may have another value when the run is resumed.
    ignored_in_eval: further facts that may differ in a run that does not train.
  """

  script = ""
  informative: tuple[str, ...] = ()
  ignored_in_eval: tuple[str, ...] = ()

  def resolve(self, settings: Any) -> Any:
    """Returns the settings with the files of the model that learns."""
    return settings

  def check(self, run: "Run") -> None:
    """Checks that the run's model can learn so, before anything is read."""

  def facts(self, settings: RunSettings) -> dict[str, Any]:
    """Returns what must be equal to resume, beside the run's own facts."""
    return {}

  def after_reading(self, run: Any) -> None:
    """Checks the data, or adds to them, once all are read."""

  def objective(self, run: Any) -> Any:
    """Returns what a run of pre-training learns; None for what its flags say."""
    return None

  def model_options(self, run: Any) -> dict[str, Any]:
    """Returns the arguments that the `model_fn_builder` of every script has."""
    return run.settings.model_options


class Run:
  """One run: its settings, its model, its data, and the folder of its results.

  Attributes:
    settings: of the run; with steps and warm-up once `plan` has returned.
    bert_config: of the model.
    tokenizer: None where no text is read.
    teaching: what takes part in the run.
    labels: of the model's outputs, in their order, where the task has some. `read` sets them.
    example: an item of the data, to try the model with. `read` sets it.
    estimator: trains, evaluates and predicts, once `run` has created it.
    informative: flags whose change, when the run is resumed, is only logged.
    ignored_in_eval: facts that may differ in a run that does not train.
    result_keys: of `eval_results.txt`, which are written first.
    exports_task: whether `--do_export` also writes `task/`; pre-training has no task.
    known_rows: what the model gave for the main set that was evaluated, for the report.
  """

  exports_task = False

  informative: tuple[str, ...] = (
    *("train_batch_size", "learning_rate", "num_train_epochs", "warmup_proportion"),
    *("max_seq_length", "dtype", "group_by_length"),
  )
  result_keys: tuple[str, ...] = result_files.ORIGINAL_KEYS

  def __init__(
    self,
    settings: Any,
    bert_config: BertConfig,
    tokenizer: Any = None,
    teaching: Teaching | None = None,
  ):
    self.settings: Any = settings
    self.bert_config = bert_config
    self.tokenizer = tokenizer
    self.teaching = teaching or Teaching()
    self.labels: list[str] | None = None
    self.example: dict[str, Any] | None = None
    self.estimator: Any = None
    self.informative = (*type(self).informative, *self.teaching.informative)
    self.ignored_in_eval = self.teaching.ignored_in_eval
    self.known_rows: KnownRows = KnownRows()
    self._skipped_training: str | None = None

  def run(self) -> None:
    """Trains, evaluates, predicts, exports."""
    # A folder of another task is refused before its data, or its labels, are found to be wrong.
    self.checked_fingerprint()
    # All data are read before training: a bad row of the test set is an error now, not in hours.
    self.read()
    self.teaching.after_reading(self)
    self._check_best_metric()
    fingerprint = self.checked_fingerprint()
    planned = self.plan() if self.settings.do_train else self.settings.without_training()
    self.settings = planned.with_summaries()
    logging.info("Settings: %s", self.settings.in_words())
    with run_files.written(self.settings, self.bert_config, self.labels, self.example):
      self.estimator = self._create_estimator(fingerprint)
      if self.settings.do_train:
        self._train()
      checkpoint_path = output_folder.checkpoint_to_use(self.settings)
      self.use(checkpoint_path)
    if self.settings.do_export:
      distribution.on_chief(self._export, checkpoint_path)
    if self.settings.report and self.is_reported:
      write = on_request.module("report").write_at_end
      distribution.on_chief(write, self.settings, self.example_passes(), self.known_rows)
    # At the end, where it is read; what was logged meanwhile has scrolled away.
    if warning := self._skipped_training or output_folder.nothing_loaded(self.settings):
      logging.warning("%s", warning)

  # -------------------------------------------------------------------------------------------
  # What a script says.

  def read(self) -> None:
    """Reads all data that the run needs."""

  def facts(self) -> dict[str, Any]:
    """Returns what must be equal to resume, beside the model's shape and vocabulary.

    Before `read`, those that are known then.
    """
    raise NotImplementedError

  def plan(self) -> RunSettings:
    """Returns the settings with steps and warm-up."""
    raise NotImplementedError

  def model_fn(self) -> Callable:
    """Returns the `model_fn` of the estimator."""
    raise NotImplementedError

  def training_data(self) -> tuple[Callable, dict[str, int]]:
    """Returns the input_fn of the training data, and their numbers to log."""
    raise NotImplementedError

  def dev_data(self) -> tuple[Callable, str]:
    """Returns the input_fn of evaluation during training, and the metric that selects weights."""
    raise NotImplementedError

  def metric_names(self) -> Iterable[str]:
    """Returns the results that `--best_metric` may name, once the data are read."""
    return [name for name in self.result_keys if name != "global_step"]

  def use(self, checkpoint_path: str | None) -> None:
    """Evaluates and predicts with the best weights, or, where it is None, with the newest."""
    raise NotImplementedError

  def example_passes(self) -> int:
    """Counts the examples that were computed: three times in training, forward and backward."""
    return 3 * self.estimator.trained_steps * self.settings.train_batch_size

  @property
  def is_reported(self) -> bool:
    """Whether the run did something that a report shows."""
    return bool(self.settings.do_train or self.settings.do_eval)

  # -------------------------------------------------------------------------------------------
  # The steps.

  def _check_best_metric(self) -> None:
    """Raises a UsageError where the first evaluation would not find the metric."""
    metric, names = self.settings.best_metric, list(self.metric_names())
    if metric is None or metric in names or not self.settings.eval_every_steps:
      return
    near = difflib.get_close_matches(metric, names, n=1, cutoff=0.5)
    question = f" Did you mean {near[0]}?" if near else ""
    raise UsageError(
      f"--best_metric={metric} is no result of this task.{question} Results: {', '.join(names)}."
    )

  def checked_fingerprint(self) -> dict[str, Any]:
    """Returns the fingerprint, as far as it is known; refuses a folder of another run."""
    fingerprint = self.fingerprint()
    ignored = () if self.settings.do_train else self.ignored_in_eval
    output_folder.check_same_model(self.settings.output_dir, fingerprint, ignored)
    return fingerprint

  def fingerprint(self) -> dict[str, Any]:
    """Returns what must be equal for the run to be resumed."""
    facts = {**self.facts(), **self.teaching.facts(self.settings)}
    if self.tokenizer is None:
      return output_folder.model_fingerprint(self.bert_config, **facts)
    return output_folder.model_fingerprint(
      self.bert_config, self.tokenizer, do_lower_case=self.settings.do_lower_case, **facts
    )

  def _informative(self) -> dict[str, Any]:
    return {name: getattr(self.settings, name) for name in self.informative}

  def _create_estimator(self, fingerprint: Mapping):
    from bert.training.estimator import Estimator

    sizes = [f"{mode}_batch_size" for mode in ("train", "eval", "predict")]
    params = {name: size for name in sizes if (size := getattr(self.settings, name)) is not None}
    config = self.settings.run_config(fingerprint, self._informative())
    return Estimator(self.model_fn(), config, params)

  def _train(self) -> None:
    settings = self.settings
    input_fn, sizes = self.training_data()
    eval_spec = self._eval_spec() if settings.eval_every_steps else None
    logging.info("***** Running training *****")
    log_sizes(sizes, settings.train_batch_size)
    max_steps = settings.num_train_steps
    logging.info("  Num steps = %d", max_steps)
    logging.info("  Num warm-up steps = %s", settings.num_warmup_steps)
    logging.info("  Device = %s", hardware.devices_of(self.estimator.config.strategy))
    start = time.monotonic()
    self.estimator.train(input_fn=input_fn, max_steps=max_steps, eval_spec=eval_spec)
    logging.info("Training took %.1f s.", time.monotonic() - start)
    if not self.estimator.trained_steps:
      self._skipped_training = output_folder.nothing_trained(settings, self._informative())
      logging.warning("%s", self._skipped_training)

  def _eval_spec(self):
    from bert.training.estimator import EvalSpec

    input_fn, metric = self.dev_data()
    metric = self.settings.best_metric or metric
    return EvalSpec(
      input_fn,
      every_steps=self.settings.eval_every_steps,
      metric=metric,
      higher_is_better=not result_files.is_error(metric),
      patience=self.settings.early_stopping_patience,
      keep_best=self.settings.keep_best,
      steps=self.settings.max_eval_steps,
    )

  def evaluate_on(
    self,
    input_fn: Callable,
    sizes: Mapping[str, Any],
    checkpoint_path: str | None,
    name: str | None = None,
    on_rows: Callable[..., None] | None = None,
  ) -> Mapping[str, Any]:
    """Evaluates, writes `eval_results.txt`, or that of a further set; returns the results.

    See `Estimator.evaluate` for `on_rows`.
    """
    logging.info("***** Running evaluation *****")
    log_sizes(sizes, self.settings.eval_batch_size)
    results = self.estimator.evaluate(
      input_fn=input_fn,
      steps=self.settings.max_eval_steps,
      checkpoint_path=checkpoint_path,
      name=name,
      on_rows=on_rows,
    )
    self.write_results(f"eval_results_{name}.txt" if name else "eval_results.txt", results)
    return results

  def write_results(self, name: str, results: Mapping, keys: Iterable[str] | None = None) -> None:
    """Writes results as `OUTPUT_DIR/<name>`."""
    path = self.settings.path(name)
    result_files.write_eval_results(path, results, self.result_keys if keys is None else keys)

  def _export(self, checkpoint_path: str | None) -> None:
    """Exports in a process of its own: what is exported does not depend on how it was trained."""
    settings = self.settings
    exit_code = start_script(
      "export_hub",
      f"--export_dir={settings.export_dir}",
      f"--init_checkpoint={output_folder.checkpoint_to_export(settings, checkpoint_path)}",
      f"--bert_config_file={settings.bert_config_file}",
      f"--vocab_file={settings.vocab_file}",
      f"--do_lower_case={settings.do_lower_case}",
      f"--max_seq_length={settings.max_seq_length}",
      f"--task_model={self.exports_task}",
    )
    if exit_code:
      sys.exit(exit_code)  # the other process has said why


def start_script(name: str, *flags: str) -> int:
  """Runs another script in a process of its own, on the CPU, and passes on what it logs.

  Args:
    name: of the script.
    *flags: its command line.

  Returns:
    Its exit code.
  """
  environment = {**installation.importable_environment(), "CUDA_VISIBLE_DEVICES": "-1"}
  environment.pop("TF_CONFIG", None)  # It takes no part in a job of several workers.
  command = [sys.executable, "-m", f"bert.{name}", *flags]
  with subprocess.Popen(
    command, env=environment, stderr=subprocess.PIPE, text=True, encoding="utf-8"
  ) as process:
    for line in process.stderr:
      sys.stderr.write(line)
  return process.returncode


def log_sizes(sizes: Mapping[str, Any], batch_size: int) -> None:
  """Logs how much data there is, in the original's lines."""
  for name, size in {**sizes, "Batch size": batch_size}.items():
    logging.info("  %s = %s", name, size)
