"""Fine-tunes BERT to find named entities, or to tag words otherwise, on CoNLL files.

  python run_ner.py --do_train --do_eval --do_predict --train_file=train.conll \\
    --dev_file=dev.conll --test_file=test.conll --init_checkpoint=cased_L-12_H-768_A-12 \\
    --do_lower_case=False --max_seq_length=128 --train_batch_size=32 --learning_rate=5e-5 \\
    --num_train_epochs=3 --output_dir=/tmp/ner_output/

A line of a file holds a word and its label, among other columns maybe; a blank line ends a
sentence. Entities and their scores are in:

  eval_results.txt       precision, recall and F1 of the dev file's entities, over all and by type
  predictions.conll      the test file, line by line, with one more column: the predicted label
  predictions.jsonl      its sentences with their entities: text, place in characters, probability
  test_results.txt       the scores of the test file, if it has labels

--do_export leaves a SavedModel that takes texts and gives words, their places and labels.
"""

import functools
import json
import random
import time

from absl import flags, logging

from bert.io import atomic_files, record_files
from bert.io.tables import DataError
from bert.scripts import (
  command_line,
  flag_groups,
  output_folder,
  run_files,
  run_settings,
  shared_flags,
)
from bert.scripts.steps import INFORMATIVE, Run, filled_up, log_sizes, start_many
from bert.tasks import conll_files, constant_answers, label_counts, label_schemes
from bert.training import distribution

# In --data_dir, the first of these names that exists.
_NAMES = {"train": ("train",), "dev": ("dev", "valid", "validation"), "test": ("test",)}
_ENDINGS = ("conll", "txt", "tsv", "bio")

_SEQUENCES = ("input_ids", "input_mask", "segment_ids", "label_ids", "word_mask")


def define_flags() -> None:
  """Defines this script's flags; those it shares with the original's scripts are theirs."""
  with flag_groups.flag_group("Task and data"):
    shared_flags.define_split_flags("Folder with train, dev and test, .conll, .txt, .tsv or .bio.")
    shared_flags.define_run_flags(
      "Whether to evaluate on the dev file.", "Whether to predict the test file."
    )
  with flag_groups.flag_group("CoNLL files"):
    flags.DEFINE_string(
      "separator", "whitespace", "Column separator: whitespace, tab, space, comma, or itself."
    )
    flags.DEFINE_integer("token_column", 0, "Column of the word, from 0; -1 is the last.")
    flags.DEFINE_integer("label_column", -1, "Column of the label.")
    flags.DEFINE_enum(
      "label_scheme",
      "bio",
      label_schemes.SCHEMES,
      "How labels encode entities. plain: labels are tags.",
    )
    flags.DEFINE_enum(
      "model_scheme",
      None,
      label_schemes.SCHEMES,
      "How the model encodes them; files are converted. [as --label_scheme; bio for iob1]",
    )
    flags.DEFINE_string("comment_prefix", "", "Lines with this prefix are comments.")
    shared_flags.define_labels_flag("of all types in the training file")
  with flag_groups.flag_group("Windows"):
    shared_flags.define_doc_stride_flag(None, " [half a window]")
    flags.DEFINE_integer("segment_id", 0, "Segment of all pieces: 0, or 1 as in ELECTRA.")
  shared_flags.define_fine_tuning_flags()
  shared_flags.define_many_seeds_flags()


# ---------------------------------------------------------------------------------------------
# Windows -> records -> batches.


def write_features(path: str, features) -> int:
  """Writes windows as a TFRecord file, which appears when it is complete.

  Args:
    path: the file.
    features: an iterable of `tagging.InputFeatures`, taken one by one.

  Returns:
    How many windows were written.

  Raises:
    OSError: the file cannot be written.
  """
  records = ({name: getattr(feature, name) for name in _SEQUENCES} for feature in features)
  return record_files.write_records(path, records)


def input_fn_builder(input_file, seq_length, is_training, drop_remainder, **reading):
  """An input_fn over a file of `write_features`.

  Args:
    input_file: the TFRecord file.
    seq_length: `max_seq_length` it was written with.
    is_training: repeat and shuffle.
    drop_remainder: leave out a last batch that is short.
    **reading: further keywords of `input_pipeline.record_input_fn`.

  Returns:
    `input_fn(params)` -> `tf.data.Dataset` of name -> int32 `[B, S]`.
  """
  import tensorflow as tf

  from bert.training import input_pipeline

  return input_pipeline.record_input_fn(
    input_file,
    {name: tf.io.FixedLenFeature([seq_length], tf.int64) for name in _SEQUENCES},
    is_training,
    drop_remainder,
    length_features=_SEQUENCES,
    **reading,
  )


# ---------------------------------------------------------------------------------------------
# The model.


def create_model(
  bert_config,
  is_training,
  input_ids,
  input_mask,
  segment_ids,
  num_labels,
  use_one_hot_embeddings,
  *,
  dtype="float32",
):
  """BERT with a token head.

  Args:
    bert_config: a `modeling.BertConfig`.
    is_training: whether to drop out.
    input_ids: int `[B, S]`.
    input_mask: int `[B, S]`.
    segment_ids: int `[B, S]`.
    num_labels: C.
    use_one_hot_embeddings: look words up by a matrix product (for TPUs).
    dtype: of the matrix products.

  Returns:
    Logits, float32 `[B, S, C]`.
  """
  import tensorflow as tf

  from bert import modeling
  from bert.model import heads

  model = modeling.BertModel(
    config=bert_config,
    is_training=is_training,
    input_ids=input_ids,
    input_mask=input_mask,
    token_type_ids=segment_ids,
    use_one_hot_embeddings=use_one_hot_embeddings,
    dtype=tf.as_dtype(dtype),
    # TPUs compile for fixed shapes, which skipping padding does not have.
    skip_padding=not use_one_hot_embeddings,
  )
  scope = heads.task_scope(bert_config, "ner")
  return heads.get_token_logits(model.get_sequence_output(), num_labels, is_training, scope=scope)


def model_fn_builder(
  bert_config,
  num_labels,
  init_checkpoint,
  learning_rate,
  num_train_steps,
  num_warmup_steps,
  use_tpu,
  use_one_hot_embeddings,
  *,
  metric_fn=None,
  optimizer_options=None,
  dtype="float32",
  distillation=None,
):
  """Returns the `model_fn` of an `estimator.Estimator`; arguments as of `create_model`.

  Args:
    bert_config: a `modeling.BertConfig`.
    num_labels: C.
    init_checkpoint: where variables start, or None.
    learning_rate: peak rate.
    num_train_steps: steps of the whole run.
    num_warmup_steps: steps of warm-up.
    use_tpu: whether this runs on a TPU.
    use_one_hot_embeddings: look words up by a matrix product.
    metric_fn: `metric_fn(predictions, token_losses, label_ids, word_mask)` of everything that was
      evaluated, all `[M, S]`, -> name -> number. Without it there is only the loss.
    optimizer_options: further keywords of `optimization.create_optimizer`.
    dtype: of the matrix products.
    distillation: a `methods.Distillation`, which makes the loss of training; else the task does.
  """

  def model_fn(features, labels, mode, params):
    import tensorflow as tf

    from bert.model import heads
    from bert.optimization import create_optimizer
    from bert.training.estimator import EstimatorSpec, ModeKeys

    del labels  # they travel in features

    def logits_of(config, is_training):
      return create_model(
        config,
        is_training,
        features["input_ids"],
        features["input_mask"],
        features["segment_ids"],
        num_labels,
        use_one_hot_embeddings,
        dtype=dtype,
      )

    logits = logits_of(bert_config, mode == ModeKeys.TRAIN)
    word_mask = features["word_mask"]
    parts = params.get("gradient_accumulation_steps", 1)
    loss, token_losses = heads.get_token_loss(logits, features["label_ids"], parts=parts)
    spec = EstimatorSpec(mode=mode, loss=loss, init_checkpoint=init_checkpoint)
    if mode == ModeKeys.TRAIN:
      if distillation:
        loss = distillation.teach(
          *(spec, features, {"logits": logits}, loss),
          lambda config: {"logits": logits_of(config, False)},
          parts=parts,
        )
      spec.train_op = create_optimizer(
        loss, learning_rate, num_train_steps, num_warmup_steps, use_tpu, **(optimizer_options or {})
      )
    elif mode == ModeKeys.PREDICT:
      spec.predictions = {"probabilities": tf.nn.softmax(logits), "word_mask": word_mask}
    elif metric_fn:
      tensors = {
        "predictions": tf.argmax(logits, axis=-1, output_type=tf.int32),
        "token_losses": token_losses,
        "label_ids": features["label_ids"],
        "word_mask": word_mask,
      }
      spec.eval_metrics = (metric_fn, tensors)
    return spec

  return model_fn


# ---------------------------------------------------------------------------------------------
# The job.


def main(_) -> int | None:
  """Trains, evaluates, predicts and exports as the flags say."""
  return start(run_settings.from_flags())


def start(settings: run_settings.RunSettings, run_class=None) -> int | None:
  """Makes a run of a class, by default this script's, or many; returns the exit code of many."""
  run_class = run_class or Tagging
  check_settings(settings)
  if settings.is_many_runs:
    return start_many(run_class.script, settings)
  settings = run_class.resolve(settings)
  config, tokenizer = run_settings.load_config_and_tokenizer(settings)
  with output_folder.held(settings) as settings:
    run_class(settings, config, tokenizer).run()
  return None


def check_settings(settings: run_settings.RunSettings) -> None:
  """Checks what flags alone show; see `run_settings.check_run`."""
  run_settings.check_run(settings)
  settings.check_at_least(3, "max_seq_length")
  settings.check(
    "doc_stride",
    lambda value: 1 <= value <= settings.max_seq_length - 2,
    "at least 1 and at most --max_seq_length less 2",
  )
  if not settings.separator:
    raise command_line.UsageError("--separator is empty: columns need something between them.")
  scheme = _model_scheme(settings)
  if (settings.label_scheme == "plain") != (scheme == "plain"):
    raise command_line.UsageError(
      f"--label_scheme={settings.label_scheme} --model_scheme={scheme}: plain labels have no "
      "entities, so there is nothing to convert."
    )
  run_settings.check_split_files(settings)


def _model_scheme(settings: run_settings.RunSettings) -> str:
  return settings.model_scheme or label_schemes.scheme_to_learn(settings.label_scheme)


class Tagging(Run):
  """One run: a model, its files, and the folder of its results."""

  script = "run_ner"
  informative = (*INFORMATIVE, "doc_stride", "segment_id")
  result_keys = (
    *(f"eval_{key}" for key in ("f1", "precision", "recall", "accuracy", "loss")),
    *("global_step", "loss"),
  )

  # -------------------------------------------------------------------------------------------
  # Files and labels.

  def _read(self) -> None:
    settings = self.settings
    self.scheme = _model_scheme(settings)
    self.train = self._read_file("train") if settings.do_train else None
    self.labels = self._model_labels()
    self._check_same_run()
    self.dev = self._read_file("dev") if settings.reads_dev_set else None
    self.test = self._read_file("test", needs_labels=False) if settings.do_predict else None
    self._check_labels()
    types = sorted({kind for file in (self.train, self.dev) if file for kind in file.types()})
    for warning in label_counts.about_nearly_equal(types, "types"):
      logging.warning("%s", warning)

  def _read_file(self, split, needs_labels=True) -> conll_files.ConllFile:
    settings = self.settings
    conll_format = conll_files.ConllFormat(
      settings.separator,
      settings.token_column,
      settings.label_column,
      settings.label_scheme,
      settings.comment_prefix,
    )
    path = settings.split_file(split, _NAMES[split], _ENDINGS)
    return conll_files.read_conll(path, conll_format, split, needs_labels)

  def _model_labels(self) -> list[str]:
    """`--labels`, else those of the training file, else those of the run that trained."""
    labels = self.settings.labels
    if not labels and self.train:
      labels = label_schemes.model_labels(self.train.types(), self.scheme)
    source = "--labels"
    if not labels:
      source = "label_map.json of the model, which is probably not one of run_ner.py"
      averaged = (self.settings.average_runs or "").split(",")
      folders = (self.settings.output_dir, self.settings.init_folder, *averaged)
      labels = run_files.labels_of_earlier_run(*folders)
    if not labels:
      raise command_line.UsageError(
        "The labels of the model are unknown: neither --output_dir nor --init_checkpoint has a "
        "label_map.json. Train with --do_train, or name them: --labels=O,B-PER,I-PER."
      )
    for label in labels:
      try:
        label_schemes.split_label(label, self.scheme)
      except ValueError as error:
        raise command_line.UsageError(f"{source}, --model_scheme={self.scheme}: {error}.") from None
    return labels

  def _check_labels(self) -> None:
    """Labels that the model lacks: an error in training, where they can be added."""
    for conll_file in filter(None, (self.train, self.dev, self.test)):
      if not conll_file.has_labels:
        continue
      missing = ", ".join(sorted(conll_file.labels(self.scheme) - set(self.labels)))
      if missing and conll_file is self.train:
        raise DataError(f"--labels lacks {missing}.", conll_file.path, advice="Add them.")
      if missing:
        logging.warning("%s: the model has no label for %s.", conll_file.path, missing)

  def _facts(self):
    known = {"labels": self.labels} if self.labels else {}  # `_read` finds them
    return {"task_name": "ner", **known}

  # -------------------------------------------------------------------------------------------
  # Windows and the model.

  def _plan(self):
    # The shuffle buffer alone would leave the sentences of one document together.
    random.Random(12345).shuffle(self.train.examples)
    self.num_windows = self._write(self.train, "train")
    return self.settings.planned(self.num_windows, "windows")

  def _write(self, conll_file, name, batch_size=0) -> int:
    """Writes `OUTPUT_DIR/<name>.tf_record`; returns the number of windows."""
    from bert.tasks import tagging

    length = self.settings.max_seq_length
    features = tagging.convert_examples_to_features(
      conll_file.examples,
      self.labels,
      self.scheme,
      length,
      self.tokenizer,
      self.settings.doc_stride,
      self.settings.label_scheme,
      self._shown_examples(),
      self.settings.segment_id,
    )
    if self.settings.use_tpu and batch_size:
      padding = functools.partial(tagging.padding_features, length)
      features = filled_up(features, batch_size, padding)
    return self._write_once(name, conll_file.examples, lambda path: write_features(path, features))

  def _input_fn(self, name, is_training=False):
    return input_fn_builder(
      self.settings.features_path(name),
      self.settings.max_seq_length,
      is_training,
      drop_remainder=is_training or self.settings.use_tpu,
      **self.settings.reading_options,
    )

  def _create_model_fn(self):
    return model_fn_builder(
      bert_config=self.bert_config,
      num_labels=len(self.labels),
      metric_fn=self._metric_fn,
      **self._model_options(),
    )

  def _training_data(self):
    sizes = {"Num sentences": len(self.train.examples), "Num windows": self.num_windows}
    return self._input_fn("train", is_training=True), sizes

  def _dev_data(self):
    self._write(self.dev, "eval", self.settings.eval_batch_size)
    return self._input_fn("eval"), "eval_f1"

  # -------------------------------------------------------------------------------------------
  # Results.

  def _metric_names(self):
    types = sorted({label[2:] for label in self.labels if label[1:2] == "-"})
    scores = [f"eval_{score}_{kind}" for kind in types for score in ("f1", "precision", "recall")]
    return [*super()._metric_names(), *scores]

  def _metric_fn(self, predictions, token_losses, label_ids, word_mask):
    """The scores of the dev file."""
    from bert.tasks import tagging

    # In order of windows and of places in them, these are the file's words in their order.
    words = tagging.by_sentence(predictions[word_mask > 0], self.dev.examples)
    scores = self._score(self.dev, [[self.labels[i] for i in ids] for ids in words])
    has_label = label_ids >= 0
    scores["eval_loss"] = float(token_losses[has_label].mean()) if has_label.any() else 0.0
    return scores

  def _score(self, conll_file, predicted):
    """`eval_` scores of labels in the model's scheme, and a table of them."""
    from bert.tasks import tagging

    gold = [example.labels for example in conll_file.examples]
    scores = tagging.score(gold, predicted, self.settings.label_scheme, self.scheme)
    table = tagging.format_scores(scores)
    return {**{f"eval_{name}": value for name, value in scores.items()}, "scores": table}

  def _evaluate(self, checkpoint_path):
    num_windows = self._write(self.dev, "eval", self.settings.eval_batch_size)
    sizes = {"Num sentences": len(self.dev.examples), "Num windows": num_windows}
    self._evaluate_on(self._input_fn("eval"), sizes, checkpoint_path)

  def _probabilities(self, name, conll_file, checkpoint_path):
    """What the model says of each word: of each sentence float32 `[words, C]`."""
    import numpy as np

    from bert.tasks import tagging

    batch_size, examples = self.settings.predict_batch_size, conll_file.examples

    def compute():
      # The set of evaluation has the windows of `_evaluate`.
      size = batch_size if name == "predict" else self.settings.eval_batch_size
      num_windows = self._write(conll_file, name, size)
      logging.info("***** Running prediction *****")
      log_sizes({"Num sentences": len(examples), "Num windows": num_windows}, batch_size)
      start = time.monotonic()
      predictions = self.estimator.predict(self._input_fn(name), checkpoint_path)
      words = np.concatenate([p["probabilities"][p["word_mask"] > 0] for p in predictions])
      logging.info("Prediction took %.1f s.", time.monotonic() - start)
      return words

    return tagging.by_sentence(self._outputs(name, examples, compute), examples)

  def _labels_of(self, sentences):
    """The most probable label of each word."""
    return [[self.labels[i] for i in p.argmax(axis=-1)] for p in sentences]

  def _compare(self, checkpoint_path):
    predicted = self._labels_of(self._probabilities("eval", self.dev, checkpoint_path))
    scores = self._score(self.dev, predicted)
    if self.settings.average_runs:
      self._write_results("eval_results.txt", scores)
    failure = constant_answers.failure_of_tags(scores)
    shown = [key for key in self.result_keys if key.startswith("eval_")]
    self._summarize("eval_f1", shown, failure, len(self.dev.examples))

  def _predict(self, checkpoint_path):
    test = self.test
    sentences = self._probabilities("predict", test, checkpoint_path)
    predicted = self._labels_of(sentences)
    self._write_predictions(predicted, [p.max(axis=-1) for p in sentences])
    if test.has_labels:
      self._write_results("test_results.txt", self._score(test, predicted))

  def _write_predictions(self, predicted, probabilities):
    from bert.tasks import tagging

    encoded, lines, num_odd = [], [], 0
    examples = self.test.examples
    for example, labels, certainties in zip(examples, predicted, probabilities, strict=True):
      entities = label_schemes.entities_of(labels, self.scheme)
      num_odd += labels != label_schemes.labels_of(entities, len(labels), self.scheme)
      encoded.append(label_schemes.labels_of(entities, len(labels), self.settings.label_scheme))
      described = tagging.describe_entities(example, entities, certainties)
      lines.append(json.dumps(described, ensure_ascii=False) + "\n")
    path = self.settings.path("predictions.conll")
    distribution.on_chief(conll_files.write_conll, path, self.test, encoded)
    jsonl = self.settings.path("predictions.jsonl")
    distribution.on_chief(atomic_files.write_text, jsonl, "".join(lines))
    logging.info("Wrote %d sentences to %s.", len(lines), path)
    if num_odd:
      logging.info(
        "In %d of them the model's labels did not follow the scheme %s; a label that continues "
        "nothing was taken as the start of an entity.",
        num_odd,
        self.scheme,
      )

  def _task_model(self):
    return {
      "model": "TagModel",
      "max_seq_length": self.settings.max_seq_length,
      "label_names": self.labels,
      "doc_stride": self.settings.doc_stride,
      "segment_id": self.settings.segment_id,
    }


if __name__ == "__main__":
  command_line.run(main, define_flags)
