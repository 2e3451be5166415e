"""One run of a `run_*` script, step by step: what all of them share.

A script makes a subclass of `Run`, which says what its data are, which facts make it the same run
when it is resumed, and what its results look like:

  with output_folder.locked_output_dir(settings) as settings:
    Tagging(settings, config, tokenizer).run()

The order of the steps is that of `Run.run`.
"""

import difflib
import json
import os
import subprocess
import sys
import time
import types
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from absl import logging

from bert.io import installation
from bert.model.configuration import BertConfig
from bert.scripts import (
  command_line,
  on_request,
  output_folder,
  reinit_layers,
  result_files,
  run_files,
  run_outputs,
  run_settings,
)
from bert.scripts.run_settings import RunSettings
from bert.training import distribution

# When a run resumes with another value of one of these flags, that is only logged.
INFORMATIVE = (
  "recipe",
  "train_batch_size",
  "learning_rate",
  "num_train_epochs",
  "min_train_steps",
  "warmup_proportion",
  "max_seq_length",
  "dtype",
  "group_by_length",
  "reinit_layers",
)

# Settings in every digest of examples, None where a script has no such flag, and others only where
# they are set: so runs of earlier versions find their records.
_IN_EVERY_KEY = ("max_seq_length", "doc_stride", "max_query_length", "label_scheme")


class Run:
  """One run: its settings, its model, its data, and the folder of its results.

  Attributes:
    script: the name of its script's module.
    settings: of the run; with steps and warm-up once `_plan` has returned.
    bert_config: of the model.
    tokenizer: None where no text is read.
    labels: of the model's outputs, in their order, where the task has some. `_read` sets them.
    estimator: trains, evaluates and predicts, once `run` has created it.
    informative: flags that may have another value when the run is resumed.
    may_differ: facts that may differ in a run that does not train.
    feature_settings: the settings that decide the features of an example, besides its facts.
    result_keys: of `eval_results.txt`, which are written first.
  """

  script = ""
  informative: tuple[str, ...] = INFORMATIVE
  may_differ: tuple[str, ...] = ()
  feature_settings: tuple[str, ...] = ("max_seq_length",)
  result_keys: tuple[str, ...] = result_files.ORIGINAL_KEYS

  def __init__(self, settings: RunSettings, bert_config: BertConfig, tokenizer=None):
    self.settings = settings
    self.bert_config = bert_config
    self.tokenizer = tokenizer
    self.labels: list[str] | None = None
    self.estimator: Any = None
    self._has_shown = False
    self._skipped_training: str | None = None

  def run(self) -> None:
    """Trains, evaluates, predicts, exports."""
    # A folder of another task is refused before its data, or its labels, are found to be wrong.
    self._check_same_run()
    # All data are read before training: a bad row of the test set is an error now, not in hours.
    self._read()
    self._check_best_metric()
    if self.settings.get("average_runs"):
      self._use(None)
      return
    fingerprint = self._check_same_run()
    self.settings = self._plan() if self.settings.do_train else self.settings.without_training()
    run_files.write(self.settings, self.bert_config, self.labels)
    self.estimator = self._create_estimator(fingerprint)
    if self.settings.do_train:
      self._train()
    checkpoint_path = output_folder.best_checkpoint(self.settings)
    self._use(checkpoint_path)
    if self.settings.do_export:
      distribution.on_chief(self._export, checkpoint_path)
    if self.settings.plots:
      distribution.on_chief(_draw, self.settings.output_dir)
    # At the end, where it is read; what was logged meanwhile has scrolled away.
    if warning := self._skipped_training or output_folder.nothing_loaded(self.settings):
      logging.warning("%s", warning)

  @classmethod
  def resolve(cls, settings: RunSettings) -> RunSettings:
    """The settings with the files of the model, see `run_settings.resolve`."""
    return run_settings.resolve(settings)

  # -------------------------------------------------------------------------------------------
  # What a script says.

  def _read(self) -> None:
    """Reads all data that the run needs."""

  def _facts(self) -> dict[str, Any]:
    """What must be equal to resume, beside the model's shape and vocabulary.

    Before `_read`, those that are known then.
    """
    raise NotImplementedError

  def _plan(self) -> RunSettings:
    """The settings with steps and warm-up."""
    raise NotImplementedError

  def _create_model_fn(self) -> Callable:
    """The `model_fn` of the estimator."""
    raise NotImplementedError

  def _model_options(self) -> dict[str, Any]:
    """The arguments of the script's `model_fn_builder` that all of them have."""
    return self.settings.model_options

  def _training_data(self) -> tuple[Callable, dict[str, int]]:
    """The input_fn of the training data, and their numbers to log."""
    raise NotImplementedError

  def _dev_data(self) -> tuple[Callable, str]:
    """The input_fn of evaluation during training, and the metric that selects the best weights."""
    raise NotImplementedError

  def _metric_names(self) -> Iterable[str]:
    """The results of an evaluation that `--best_metric` may name, once the data are read."""
    return [name for name in self.result_keys if name != "global_step"]

  def _use(self, checkpoint_path: str | None) -> None:
    """Evaluates and predicts with the best weights, or, where it is None, with the newest."""
    if self.settings.do_eval and not self.settings.get("average_runs"):
      self._evaluate(checkpoint_path)
    if self.settings.do_eval and self.is_one_of_many:
      self._compare(checkpoint_path)
    if self.settings.get("do_predict"):
      self._predict(checkpoint_path)

  def _evaluate(self, checkpoint_path: str | None) -> None:
    """Writes the figures of `--do_eval`."""
    raise NotImplementedError

  def _compare(self, checkpoint_path: str | None) -> None:
    """Keeps what the model says of the dev set, or scores the mean of what several have said."""
    raise NotImplementedError

  def _predict(self, checkpoint_path: str | None) -> None:
    """Writes the answers of `--do_predict`."""
    raise NotImplementedError

  def _task_model(self) -> dict[str, Any] | None:
    """What `exports.export_task_model` exports; pre-training has no task."""
    return None

  # -------------------------------------------------------------------------------------------
  # The steps.

  def _check_best_metric(self) -> None:
    """Raises a UsageError where the first evaluation would not find the metric."""
    metric, names = self.settings.get("best_metric"), list(self._metric_names())
    if metric is None or metric in names or not self.settings.eval_every_steps:
      return
    near = difflib.get_close_matches(metric, names, n=1, cutoff=0.5)
    question = f" Did you mean {near[0]}?" if near else ""
    raise command_line.UsageError(
      f"--best_metric={metric} is no result of this task.{question} Results: {', '.join(names)}."
    )

  def _shown_examples(self) -> int:
    """How many examples' features to log: one of the first data that are written.

    It shows whether the columns are the right ones; `--verbosity=1` shows more, and of all data.
    """
    is_first, self._has_shown = not self._has_shown, True
    return int(is_first and self.settings.shows_examples)

  def _check_same_run(self) -> dict[str, Any]:
    """The run's fingerprint, as far as it is known; refuses a folder of another one."""
    fingerprint = self._fingerprint()
    may_differ = () if self.settings.do_train else self.may_differ
    output_folder.check_same_model(self.settings.output_dir, fingerprint, may_differ)
    return fingerprint

  def _fingerprint(self) -> dict[str, Any]:
    if self.tokenizer is None:
      return output_folder.model_fingerprint(self.bert_config, **self._facts())
    return output_folder.model_fingerprint(
      self.bert_config,
      self.tokenizer.vocab,
      do_lower_case=self.settings.do_lower_case,
      **self._facts(),
    )

  def _informative(self) -> dict[str, Any]:
    return {name: self.settings.values[name] for name in self.informative}

  def _create_estimator(self, fingerprint: Mapping):
    from bert.training.estimator import Estimator

    sizes = [f"{mode}_batch_size" for mode in ("train", "eval", "predict")]
    params = {name: self.settings.values[name] for name in sizes if name in self.settings}
    config = self.settings.run_config(fingerprint, self._informative(), **self._more_of_config())
    return Estimator(self._create_model_fn(), config, params)

  def _more_of_config(self) -> dict[str, Any]:
    """Attributes of the `RunConfig` that only some scripts have flags for."""
    count = self.settings.get("reinit_layers") or 0
    return {"reinitialized": reinit_layers.prefixes(self.bert_config, count)}

  # -------------------------------------------------------------------------------------------
  # One of many runs, or their mean: see run_outputs.py.

  @property
  def is_one_of_many(self) -> bool:
    """Whether other runs are to be compared with this one, or averaged by it."""
    return bool(self.settings.get("save_outputs") or self.settings.get("average_runs"))

  def _key_of(self, examples) -> str:
    """Returns a digest of examples, and of all that decides their features."""
    settings = self.settings
    flags = dict.fromkeys(_IN_EVERY_KEY)
    flags |= {name: value for name in self.feature_settings if (value := settings.get(name))}
    if settings.use_tpu:  # for padding
      flags |= {name: settings.get(name) for name in ("eval_batch_size", "predict_batch_size")}
    # Of the configuration, only what the digests of unfinished runs of earlier versions have: it
    # decides no feature.
    later = self.bert_config.deciding_values().keys() - vars(BertConfig(None)).keys()
    facts = {name: value for name, value in self._fingerprint().items() if name not in later}
    return run_outputs.key_of(facts, flags, examples)

  def _write_once(self, name: str, examples, write: Callable[[str], Any]) -> Any:
    """Writes the records of a set, if no other run with this `--features_dir` has."""
    path = self.settings.features_path(name)
    if not self.settings.get("features_dir"):
      return distribution.on_chief(write, path)
    return distribution.on_chief(run_outputs.write_once, path, self._key_of(examples), write)

  def _outputs(self, name: str, examples, compute: Callable[[], Any]):
    """What the model says of each example: computed, or the mean of `--average_runs`.

    Args:
      name: of the set, as of its features.
      examples: of the set.
      compute: returns float `[N, ...]`.
    """
    settings = self.settings
    if not self.is_one_of_many:
      return compute()
    key = self._key_of(examples)
    if folders := settings.get("average_runs"):
      return run_outputs.mean_outputs(folders.split(","), name, key)
    outputs = compute()
    distribution.on_chief(run_outputs.write_outputs, settings.output_dir, name, key, outputs)
    return outputs

  def _compare_classes(
    self, suffix, labels, outputs, names, metric_names, problem_type="classification"
  ) -> None:
    """What `_compare` does with a dev set of classes, or of numbers.

    Args:
      suffix: of its result file.
      labels: see `metrics.compute_metrics`.
      outputs: `[N, C]`, of `_outputs`.
      names: of the C classes.
      metric_names: `eval_` and a name of `metrics.METRICS`; the one to compare runs by first.
      problem_type: see `metrics.compute_metrics`.
    """
    from bert.tasks import constant_answers, metrics

    if self.settings.average_runs:
      known = [name.removeprefix("eval_") for name in dict.fromkeys(metric_names)]
      scores = metrics.compute_metrics(known, labels, outputs, problem_type=problem_type)
      self.write_results(f"eval_results{suffix}.txt", scores)
    if not suffix:  # The main set.
      failure = constant_answers.failure_of_classes(labels, outputs, names, problem_type)
      shown = dict.fromkeys((*metric_names, "eval_loss"))
      self.summarize(metric_names[0], shown, failure, len(labels))

  def summarize(
    self, headline: str, metrics: Iterable[str], failure: str | None, examples: int
  ) -> None:
    """Writes `dev_summary.json`, see `run_outputs.write_summary`."""
    folder = self.settings.output_dir
    distribution.on_chief(
      run_outputs.write_summary, folder, headline, list(metrics), failure, examples
    )

  def _train(self) -> None:
    settings = self.settings
    input_fn, sizes = self._training_data()
    eval_spec = self._eval_spec() if settings.eval_every_steps else None
    logging.info("***** Running training *****")
    log_sizes(sizes, settings.train_batch_size)
    max_steps = None if settings.get("train_minutes") else settings.num_train_steps
    if max_steps is None:
      logging.info("  Num minutes = %g", settings.train_minutes)
    else:
      logging.info("  Num steps = %d", max_steps)
      logging.info("  Num warm-up steps = %s", settings.num_warmup_steps)
    start = time.monotonic()
    self.estimator.train(input_fn=input_fn, max_steps=max_steps, eval_spec=eval_spec)
    logging.info("Training took %.1f s.", time.monotonic() - start)
    if not self.estimator.trained_steps:
      self._skipped_training = output_folder.nothing_trained(settings, self._informative())
      logging.warning("%s", self._skipped_training)

  def _eval_spec(self):
    from bert.training.estimator import EvalSpec

    input_fn, metric = self._dev_data()
    metric = self.settings.best_metric or metric
    return EvalSpec(
      input_fn,
      every_steps=self.settings.eval_every_steps,
      metric=metric,
      higher_is_better=not result_files.is_error(metric),
      patience=self.settings.early_stopping_patience,
      keep_best=self.settings.keep_best,
      steps=self.settings.get("max_eval_steps"),
    )

  def _evaluate_on(
    self,
    input_fn: Callable,
    sizes: Mapping[str, Any],
    checkpoint_path: str | None,
    name: str | None = None,
  ) -> None:
    """Evaluates, and writes `eval_results.txt`, or `eval_results_<name>.txt`."""
    logging.info("***** Running evaluation *****")
    log_sizes(sizes, self.settings.eval_batch_size)
    results = self.estimator.evaluate(
      input_fn=input_fn,
      steps=self.settings.get("max_eval_steps"),
      checkpoint_path=checkpoint_path,
      name=name,
    )
    self.write_results(f"eval_results_{name}.txt" if name else "eval_results.txt", results)

  def write_results(self, name: str, results: Mapping, keys: Iterable[str] | None = None) -> None:
    """Writes results as `OUTPUT_DIR/<name>`, and their values for `--plots`."""
    path = self.settings.path(name)
    result_files.write_eval_results(path, results, self.result_keys if keys is None else keys)
    if self.settings.plots:
      result_files.write_values(os.path.splitext(path)[0] + ".json", results)

  def _export(self, checkpoint_path: str | None) -> None:
    """Exports in a process of its own: what is exported does not depend on how it was trained."""
    settings = self.settings
    task_model = self._task_model()
    exit_code = start_script(
      "export_hub",
      f"--export_dir={settings.export_dir}",
      f"--init_checkpoint={output_folder.checkpoint_to_export(settings, checkpoint_path)}",
      f"--bert_config_file={settings.bert_config_file}",
      f"--vocab_file={settings.vocab_file}",
      f"--do_lower_case={settings.do_lower_case}",
      f"--max_seq_length={settings.max_seq_length}",
      *([f"--task_model={json.dumps(task_model)}"] if task_model else []),
    )
    if exit_code:
      sys.exit(exit_code)  # the other process has said why


def start_many(
  script: str, settings: RunSettings, defaults: Mapping[str, Any] = types.MappingProxyType({})
) -> int:
  """Makes the runs of `--num_runs` or `--seeds`; see `many_runs.main`."""
  return on_request.module("num_runs").main(script, settings, defaults)


def _draw(output_dir: str) -> None:
  """Draws what a run trained and scored. Without pictures the run is as good: errors are logged."""
  exit_code = start_script("plots", f"--model_dir={output_dir}")
  if exit_code:
    logging.warning("--plots: no pictures, exit code %d.", exit_code)


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


def filled_up(rows: Iterable, batch_size: int, padding: Callable[[], Any]) -> Iterator:
  """The rows, and padding up to a multiple of the batch size: on a TPU every batch must be full.

  Example:
    >>> list(filled_up("abc", 2, lambda: "-"))
    ['a', 'b', 'c', '-']
  """
  count = 0
  for row in rows:
    yield row
    count += 1
  for _ in range(-count % batch_size):
    yield padding()
