"""What a fine-tuned teacher adds to a run of its task.

  teacher = distillation.find_teacher("output/mrpc")
  settings = distillation.settings_of(teacher)
  engine.start(teacher.kind.task_class(), settings, TaskDistillation(teacher))

Data, evaluation, results, exports and resumption are those of the task, and so is the folder that a
run leaves.
"""

import dataclasses
import json
import os
import random
from collections.abc import Callable, Mapping
from typing import Any

from absl import logging

from bert import tokenization
from bert.io import json_files
from bert.predicting import load_run
from bert.scripts import distillation_settings, flag_groups, run_distillation, run_files
from bert.scripts.run_distillation import RunDistillation
from bert.scripts.settings import UsageError
from bert.tasks import kinds


def find_teacher(path: str | None) -> load_run.Run:
  """Finds the run of `--teacher`.

  Raises:
    UsageError: the flag is missing.
    ValueError: see `load_run.find_run`.
  """
  if not path:
    raise UsageError(
      "--teacher is missing: give the folder of a run that trained, --output_dir of "
      f"{kinds.scripts_in_words()}."
    )
  return load_run.find_run(path)


def settings_of(teacher: load_run.Run) -> Any:
  """Returns the settings of the command line, with the task that the teacher was trained for.

  Raises:
    UsageError: a flag is missing, or has a value that it cannot have.
  """
  script = teacher.kind.script
  settings = flag_groups.read(distillation_settings.settings_class(script))
  if settings.script not in (None, script):
    raise UsageError(
      f"--script={settings.script}, but --teacher={settings.teacher} is a run of {script}."
    )
  of_task = _task_of(teacher, settings)
  taken = [
    f"--{name}={value}" for name, value in of_task.items() if getattr(settings, name) != value
  ]
  if taken:
    logging.info("From the teacher's run: %s", " ".join(taken))
  settings = settings.replace(**of_task)
  distillation_settings.check(settings)
  run_distillation.check_folder(settings, teacher)
  files: dict[str, Any] = {}
  if not settings.init_checkpoint and not settings.bert_config_file:
    files["init_checkpoint"] = settings.teacher
  if not settings.vocab_file and not settings.init_checkpoint:
    files["vocab_file"] = teacher.vocab_file
  settings = settings.replace(**files)
  distillation_settings.check_tinybert(settings)
  return settings


def _task_of(teacher: load_run.Run, settings: Any) -> dict[str, Any]:
  """Returns the settings of the teacher's run that describe its task, and that were not given."""
  path = os.path.join(run_distillation.run_folder(teacher), run_files.FLAGS)
  known = json_files.read_if_there(path, "Remove it.") if os.path.isfile(path) else {}
  known |= {**teacher.settings}
  found = teacher.kind.task_class().teacher_flags(known, teacher.facts)
  found["max_seq_length"] = teacher.max_seq_length
  if "do_lower_case" in teacher.facts:
    found["do_lower_case"] = teacher.facts["do_lower_case"]
  known_here = settings.values
  return {n: v for n, v in found.items() if n in known_here and n not in settings.given}


class TaskDistillation(RunDistillation):
  """A teacher's part in an `engine.FineTuning`: the student learns its outputs."""

  def check(self, run: Any) -> None:
    """Refuses a student that does not read what the teacher reads."""
    super().check(run)
    settings, teacher = run.settings, self.teacher
    vocab = tokenization.load_vocab(teacher.vocab_file)
    if tokenization.vocabulary_hash(run.tokenizer.vocab) != tokenization.vocabulary_hash(vocab):
      raise UsageError(
        f"The student's vocabulary, {settings.vocab_file}, is not the teacher's, "
        f"{teacher.vocab_file}: both read the same batches. Choose a student with the teacher's."
      )
    lower_case = teacher.facts.get("do_lower_case", settings.do_lower_case)
    if lower_case != settings.do_lower_case:
      raise UsageError(
        f"--do_lower_case={settings.do_lower_case}, but the teacher was trained with {lower_case}."
      )
    if settings.max_seq_length > teacher.config.longest_sequence:
      raise UsageError(
        f"--max_seq_length={settings.max_seq_length}: the teacher reads at most "
        f"{teacher.config.longest_sequence} word pieces."
      )

  def after_reading(self, run: Any) -> None:
    """Refuses a student of other labels, and adds the texts of `--unlabelled_file`."""
    _check_answers(run.task, self.teacher)
    run.task.check_teacher(self.teacher)
    if _has_unlabelled(run.settings):
      _read_unlabelled(run.settings, run.train)

  # -------------------------------------------------------------------------------------------
  # In each step.

  def model_options(self, run: Any) -> dict[str, Any]:
    """Adds the loss on the teacher's outputs."""
    from bert.distillation import logits
    from bert.distillation.methods import Distillation

    adapt = [logits.with_places_for_labels] if _has_unlabelled(run.settings) else []
    return {**super().model_options(run), "distillation": Distillation(self.method(run), *adapt)}

  def method(self, run: Any) -> Any:
    """Returns the `methods.Method` of the run, by default that of `--method=logits`."""
    return self.logits_method(run, run.settings.label_weight)

  def logits_method(self, run: Any, label_weight: float) -> Any:
    """Returns the method that learns outputs, and labels with that weight."""
    from bert.distillation import logits

    loss = run.task.distillation_loss
    return logits.LogitsMethod(self.answers(run), run.settings.temperature, label_weight, loss)

  def answers(self, run: Any) -> Callable[[Any], Mapping[str, Any]]:
    """Returns the function from a step to the teacher's outputs, in the order of the student's."""
    import tensorflow as tf

    from bert.distillation import logits
    from bert.distillation.teachers import Teacher

    facts, labels = self.teacher.facts, run.labels or ()
    teacher = Teacher(self.teacher.config, self.teacher.prefix)
    columns = list(range(len(labels)))
    if labels and "labels" in facts:
      columns = logits.columns_of(facts["labels"], labels)

    def fitted(value):
      return tf.gather(value, columns, axis=-1) if columns != sorted(columns) else value

    return lambda step: {n: fitted(v) for n, v in teacher.outputs(step.forward).items()}


def _has_unlabelled(settings: Any) -> bool:
  return bool(settings.get("unlabelled_file") and settings.do_train)


def _read_unlabelled(settings, train) -> None:
  """Adds the texts of `--unlabelled_file` to the training set."""
  from bert.tasks import unlabelled_texts

  labelled = train.examples
  has_pairs = any(example.text_b for example in labelled)
  columns = settings.text_a_column, settings.text_b_column
  texts = unlabelled_texts.read(settings.unlabelled_file, has_pairs, *columns)
  logging.info("%d texts without labels, %d examples with.", len(texts), len(labelled))
  train.examples = [*labelled, *texts]
  # The shuffle buffer alone would leave them at the end.
  random.Random(12345).shuffle(train.examples)


def _check_answers(task, teacher) -> None:
  """Refuses a student whose outputs do not mean what the teacher's mean."""
  facts, path = teacher.facts, task.settings.teacher
  problem_type = task.facts().get("problem_type")
  if problem_type != facts.get("problem_type"):
    raise UsageError(
      f"--teacher={path} learned {facts.get('problem_type')}, but this task is {problem_type}."
    )
  if "head" in facts:  # of a task of one's own
    own = json.loads(json.dumps(dataclasses.asdict(task.head())))
    if own != facts["head"]:
      raise UsageError(f"--teacher={path} has the head {facts['head']}, the student {own}.")
  if task.labels and "labels" in facts:
    from bert.distillation import logits

    try:
      logits.columns_of(facts["labels"], task.labels)
    except ValueError as error:
      raise UsageError(f"--teacher={path}: {error}. Both need the same.") from None
