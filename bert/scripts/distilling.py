"""Runs of `distill.py`: a script's own run, whose training a teacher takes part in.

  teacher = distilling.find_teacher("output/mrpc")
  settings = distilling.settings_of(teacher)
  engine.start(Classification, settings, distilling.class_of(FineTuning, teacher))

Data, evaluation, results, exports and resumption are those of the script, and so is the folder that
a run leaves.
"""

import functools
import json
import os
import random
import time
from typing import Any

from absl import flags, logging

from bert import tokenization
from bert.checkpoints import model_files
from bert.checkpoints.bundle_files import BEST
from bert.io import atomic_files, json_files
from bert.io.wording import counted
from bert.model.answer_heads import AnswerHead
from bert.predicting import load_run
from bert.scripts import (
  distill_flags,
  run_files,
  run_outputs,
  run_settings,
  run_states,
  student_files,
)
from bert.scripts.command_line import UsageError
from bert.scripts.run_settings import RunSettings
from bert.scripts.steps import Run
from bert.tasks import kinds
from bert.training import distribution

TAUGHT = "train_taught"  # records of training with the teacher's outputs

# When a run resumes with another value of one of these flags, that is only logged.
_INFORMATIVE = ("temperature", "label_weight")


def find_teacher(path: str | None) -> load_run.Run:
  """The run of `--teacher`.

  Raises:
    UsageError: the flag is missing, or the run is not one that teaches.
    ValueError: see `load_run.find_run`.
  """
  if not path:
    raise UsageError(
      "--teacher is missing: give the folder of a run that trained, --output_dir of "
      f"{kinds.scripts_in_words()}."
    )
  teacher = load_run.find_run(path)
  if teacher.kind.name not in distill_flags.scripts():
    raise UsageError(
      f"--teacher={path} is a run of {teacher.kind.script}.py, which distill.py does not teach. It "
      f"teaches the work of {', '.join(distill_flags.scripts().values())}."
    )
  return teacher


def settings_of(teacher: load_run.Run) -> RunSettings:
  """The settings of the command line, with the task that the teacher was trained for.

  Raises:
    UsageError: a flag is missing, or has a value that it cannot have.
  """
  script = distill_flags.scripts()[teacher.kind.name]
  if flags.FLAGS.script not in (None, script):
    raise UsageError(
      f"--script={flags.FLAGS.script}, but --teacher={flags.FLAGS.teacher} is a run of {script}."
    )
  taken = []
  for name, value in _task_of(teacher).items():
    if name in flags.FLAGS and flags.FLAGS[name].using_default_value:
      if flags.FLAGS[name].value != value:
        taken.append(f"--{name}={value}")
      flags.FLAGS.set_default(name, value)
  if taken:
    logging.info("From the teacher's run: %s", " ".join(taken))
  settings = run_settings.from_flags()
  distill_flags.check(settings)
  check_folder(settings, teacher)
  distill_flags.layers_of(settings)
  values: dict[str, Any] = {}
  if not settings.init_checkpoint and not settings.bert_config_file:
    values["init_checkpoint"] = flags.FLAGS.teacher
  if not settings.vocab_file and not settings.init_checkpoint:
    values["vocab_file"] = teacher.vocab_file
  return settings.replace(**values)


def check_folder(settings: RunSettings, teacher: load_run.Run) -> None:
  """Refuses the teacher's own folder as `--output_dir`.

  Raises:
    UsageError: it is.
  """
  folders = [run_folder(teacher), settings.output_dir or ""]
  if len({os.path.realpath(folder) for folder in folders}) == 1:
    raise UsageError(
      f"--output_dir={settings.output_dir} is the teacher's folder. Give the student another one."
    )


def run_folder(teacher: load_run.Run) -> str:
  """The folder of the run, also where its best weights are meant."""
  folder = model_files.folder_of(teacher.prefix)
  return os.path.dirname(folder) if os.path.basename(folder) == BEST else folder


def _task_of(teacher: load_run.Run) -> dict[str, Any]:
  """Flags of the teacher's run that describe its task."""
  path = os.path.join(run_folder(teacher), run_files.FLAGS)
  known = json_files.read_if_there(path, "Remove it.") if os.path.isfile(path) else {}
  known |= {**teacher.settings}
  values = teacher.kind.task_class().teacher_flags(known, teacher.facts)
  values["max_seq_length"] = teacher.max_seq_length
  if "do_lower_case" in teacher.facts:
    values["do_lower_case"] = teacher.facts["do_lower_case"]
  return values


def class_of(
  run_class: type[Run], teacher: load_run.Run, how: "type[Taught] | None" = None
) -> type[Run]:
  """The class of runs of a script in which a teacher takes part, and how: its outputs' class."""
  attributes = {
    "teacher": teacher,
    "informative": (*run_class.informative, *_INFORMATIVE),
    # A run that only evaluates needs no teacher.
    "may_differ": (*run_class.may_differ, "teacher", "distillation"),
  }
  return type("Distilled", (how or Distilled, run_class), attributes)


class Taught(Run):
  """What sets such a run apart; always together with the class of a script.

  Attributes:
    teacher: the model that teaches.
  """

  script = "distill"
  teacher: load_run.Run

  @classmethod
  def resolve(cls, settings):
    """See base class; a student that is cut from a model is written into OUTPUT_DIR/student."""
    if settings.num_hidden_layers is not None or settings.student_layers is not None:
      settings = student_files.cut(settings)
    return super().resolve(settings)

  def __init__(self, *arguments):
    super().__init__(*arguments)
    sizes = [config.count_parameters() for config in (self.bert_config, self.teacher.config)]
    logging.info(
      "Student: %s, %s parameters. Teacher: %s, %s.",
      counted(self.bert_config.num_hidden_layers, "layer"),
      f"{sizes[0]:,}",
      counted(self.teacher.config.num_hidden_layers, "layer"),
      f"{sizes[1]:,}",
    )

  @functools.cached_property
  def _identity(self) -> str | None:
    """Of the teacher's weights, wherever they lie."""
    return run_states.identity_of_weights(self.teacher.prefix)

  def _facts(self):
    taught = {"distillation": self.settings.method, "teacher": self._identity}
    return {**super()._facts(), **taught}


class Distilled(Taught):
  """Such a run of a task: the student learns the teacher's outputs."""

  train: Any  # of `engine.FineTuning`
  task: Any
  _other_distillation: Any = None

  def __init__(self, *arguments):
    super().__init__(*arguments)
    self._check_texts()

  def _check_texts(self) -> None:
    """Refuses a student that does not read what the teacher reads."""
    settings, teacher = self.settings, self.teacher
    vocab = tokenization.load_vocab(teacher.vocab_file)
    if tokenization.vocabulary_hash(self.tokenizer.vocab) != tokenization.vocabulary_hash(vocab):
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

  def _read(self):
    super()._read()
    self._check_answers()
    if self._has_unlabelled:
      self._read_unlabelled()

  @property
  def _has_unlabelled(self) -> bool:
    return bool(self.settings.get("unlabelled_file") and self.settings.do_train)

  def _read_unlabelled(self) -> None:
    """Adds the texts of `--unlabelled_file` to the training set."""
    from bert.tasks import unlabelled_texts

    settings = self.settings
    labelled = self.train.examples
    has_pairs = any(example.text_b for example in labelled)
    columns = settings.text_a_column, settings.text_b_column
    texts = unlabelled_texts.read(settings.unlabelled_file, has_pairs, *columns)
    logging.info("%d texts without labels, %d examples with.", len(texts), len(labelled))
    self.train.examples = [*labelled, *texts]
    # The shuffle buffer alone would leave them at the end.
    random.Random(12345).shuffle(self.train.examples)

  def _check_answers(self) -> None:
    """Refuses a student whose outputs are not the teacher's."""
    facts, path = self.teacher.facts, self.settings.teacher
    problem_type = self.task.facts().get("problem_type")
    if problem_type != facts.get("problem_type"):
      raise UsageError(
        f"--teacher={path} learned {facts.get('problem_type')}, but this task is {problem_type}."
      )
    head = getattr(self.task, "answer_head", None)
    if head and head.facts() != AnswerHead.of_run(facts, {}).facts():
      raise UsageError(
        f"--teacher={path} has another head for answers than the student: the student must be of "
        "the same family, with the same --answer flags."
      )
    widths = self.bert_config.hidden_size, self.teacher.config.hidden_size
    if self.task.problem_type == "vectors" and widths[0] != widths[1]:
      raise UsageError(
        f"--teacher={path} makes vectors of {widths[1]} numbers, the student of {widths[0]}: it "
        "learns the teacher's vectors, so both must have the same hidden_size."
      )
    if self.labels and "labels" in facts:
      from bert.distillation import logits

      try:
        logits.columns_of(facts["labels"], self.labels)
      except ValueError as error:
        raise UsageError(f"--teacher={path}: {error}. Both need the same.") from None

  def _model_options(self):
    from bert.distillation.methods import Distillation

    distillation = self._other_distillation or Distillation(self._method())
    return {**super()._model_options(), "distillation": distillation}

  def _create_model_fn(self):
    model_fn = super()._create_model_fn()
    if not self._has_unlabelled:
      return model_fn
    from bert.distillation import logits
    from bert.training.estimator import ModeKeys

    def with_places_for_labels(features, labels, mode, params):
      if mode == ModeKeys.TRAIN:
        features = logits.with_places_for_labels(features)
      return model_fn(features, labels, mode, params)

    return with_places_for_labels

  def _training_data(self):
    input_fn, sizes = super()._training_data()
    return self._taught(input_fn) if self.settings.cache_teacher else input_fn, sizes

  def _taught(self, input_fn):
    """The training data with the teacher's outputs, computed unless they are there."""
    from bert.distillation import teacher_outputs

    path = self.settings.features_path(TAUGHT)
    key = self._key_of_outputs(input_fn)
    if self.settings.get("features_dir"):
      distribution.on_chief(run_outputs.write_once, path, key, self._writer(input_fn))
    else:
      distribution.on_chief(self._write_outputs, path, key, self._writer(input_fn))
    return teacher_outputs.with_outputs(input_fn, path)

  def _key_of_outputs(self, input_fn) -> str:
    """A digest of what decides the teacher's outputs."""
    names = ("dtype", "pad_to_max_length", "pad_to_longest", "label_scale", "window_pooling")
    flags_of_outputs = {name: self.settings.get(name) for name in names}
    data = run_states.identity(input_fn.files)
    return run_outputs.key_of(self._identity, data, self.labels, flags_of_outputs)

  def _write_outputs(self, path, key, write) -> None:
    key_file = os.path.splitext(path)[0] + ".key.json"
    known = json_files.read_if_there(key_file, "Remove it.") if os.path.isfile(key_file) else {}
    if known.get("key") == key and os.path.isfile(path):
      logging.info("Reading the teacher's outputs in %s.", path)
      return
    if known:
      logging.info("%s is of another teacher, other data or other flags.", path)
      os.remove(key_file)
    count = write(path)
    atomic_files.write_text(key_file, json.dumps({"key": key, "result": count}) + "\n")

  def _writer(self, input_fn):
    """The function from a path to the number of records that it writes there."""

    def write(path):
      from bert.distillation import teacher_outputs

      logging.info("Computing the teacher's outputs of the training data.")
      start = time.monotonic()
      count = teacher_outputs.write(
        *(path, input_fn, self.settings.train_batch_size),
        self._model_fn_of,
        self._outputs_of_teacher(),
      )
      logging.info("The teacher answered %d times in %.1f s.", count, time.monotonic() - start)
      return count

    return write

  def _model_fn_of(self, distillation):
    """The `model_fn` with another `methods.Distillation`."""
    self._other_distillation = distillation
    try:
      return self._create_model_fn()
    finally:
      self._other_distillation = None

  def _method(self):
    return self._logits_method(self.settings.label_weight)

  def _logits_method(self, label_weight: float):
    from bert.distillation import logits

    temperature, problem_type = self.settings.temperature, self.task.problem_type
    return logits.LogitsMethod(self._answers(), temperature, label_weight, problem_type)

  def _answers(self):
    """The function from a step to what the teacher says, stored or computed."""
    from bert.distillation import teacher_outputs

    taught = self._outputs_of_teacher()
    return lambda step: teacher_outputs.outputs_in(step) or taught(step)

  def _outputs_of_teacher(self):
    """The function from a step to what the teacher says, in the order and scale of the student."""
    import tensorflow as tf

    from bert.distillation import logits
    from bert.distillation.teachers import Teacher

    facts = self.teacher.facts
    teacher = Teacher(self.teacher.config, self.teacher.prefix)
    scale = facts.get("label_scale", 1.0) / self.settings.get("label_scale", 1.0)
    columns = list(range(len(self.labels or ())))
    if self.labels and "labels" in facts:
      columns = logits.columns_of(facts["labels"], self.labels)

    def fitted(value):
      if columns != sorted(columns):
        value = tf.gather(value, columns, axis=-1)
      return value * scale if scale != 1.0 else value

    return lambda step: {n: fitted(v) for n, v in teacher.outputs(step.forward).items()}
