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

import json
import os
import random
import time

from absl import flags, logging

from bert.io import atomic_files, record_files
from bert.scripts import command_line, flag_groups, result_files, runner
from bert.tasks import conll_files
from bert.training import distribution

FLAGS = flags.FLAGS

# In --data_dir, the first of these names that is there.
_NAMES = {"train": ("train",), "dev": ("dev", "valid", "validation"), "test": ("test",)}
_ENDINGS = ("conll", "txt", "tsv", "bio")

_SEQUENCES = ("input_ids", "input_mask", "segment_ids", "label_ids", "word_mask")


def define_flags() -> None:
  """Defines this script's flags; those it shares with the original's scripts are theirs."""
  with flag_groups.flag_group("Task and data"):
    flags.DEFINE_string(
      "data_dir", None, "Folder with train, dev and test, each .conll, .txt, .tsv or .bio."
    )
    flags.DEFINE_string("train_file", None, "File to train on. [in --data_dir]")
    flags.DEFINE_string("dev_file", None, "File to evaluate on. [in --data_dir]")
    flags.DEFINE_string(
      "test_file", None, "File to predict, with labels or without. [in --data_dir]"
    )
    flags.DEFINE_string("output_dir", None, "Folder for checkpoints and results.")
    flags.DEFINE_bool("do_train", False, "Whether to train.")
    flags.DEFINE_bool("do_eval", False, "Whether to evaluate on the dev file.")
    flags.DEFINE_bool("do_predict", False, "Whether to predict the test file.")
    flags.DEFINE_integer("eval_batch_size", 8, "Sequences in an evaluation batch.")
    flags.DEFINE_integer("predict_batch_size", 8, "Sequences in a prediction batch.")
  with flag_groups.flag_group("CoNLL files"):
    flags.DEFINE_string(
      "separator", "whitespace", "What separates columns: whitespace, tab, space, comma, or itself."
    )
    flags.DEFINE_integer("token_column", 0, "Column of the word, from 0; -1 is the last.")
    flags.DEFINE_integer("label_column", -1, "Column of the label.")
    flags.DEFINE_enum(
      "label_scheme",
      "bio",
      conll_files.SCHEMES,
      "How labels spell entities. plain: labels are tags.",
    )
    flags.DEFINE_enum(
      "model_scheme",
      None,
      conll_files.SCHEMES,
      "How the model spells them; files are converted. [as --label_scheme; bio for iob1]",
    )
    flags.DEFINE_string("comment_prefix", "", "Lines that begin so are no words.")
    flags.DEFINE_list(
      "labels", None, "The model's labels in order. [of all types in the training file]"
    )
  with flag_groups.flag_group("Windows"):
    flags.DEFINE_integer(
      "doc_stride",
      None,
      "Each window of a long sentence begins so many pieces behind the last. [half a window]",
    )
  runner.define_model_flags()
  runner.define_training_flags()
  runner.define_eval_in_training_flags()
  runner.define_export_flags()
  flag_groups.define_tpu_flags()
  flag_groups.mark_required(["vocab_file", "bert_config_file", "output_dir"])


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


def input_fn_builder(
  input_file,
  seq_length,
  is_training,
  drop_remainder,
  **reading,
):
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
  return heads.get_token_logits(model.get_sequence_output(), num_labels, is_training)


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
  """

  def model_fn(features, labels, mode, params):
    import tensorflow as tf

    from bert.model import heads
    from bert.optimization import create_optimizer
    from bert.training.estimator import EstimatorSpec, ModeKeys

    del labels  # they travel in features
    logits = create_model(
      bert_config,
      mode == ModeKeys.TRAIN,
      features["input_ids"],
      features["input_mask"],
      features["segment_ids"],
      num_labels,
      use_one_hot_embeddings,
      dtype=dtype,
    )
    word_mask = features["word_mask"]
    parts = params.get("gradient_accumulation_steps", 1)
    loss, token_losses = heads.get_token_loss(logits, features["label_ids"], parts=parts)
    spec = EstimatorSpec(mode=mode, loss=loss, init_checkpoint=init_checkpoint)
    if mode == ModeKeys.TRAIN:
      spec.train_op = create_optimizer(
        loss,
        learning_rate,
        num_train_steps,
        num_warmup_steps,
        use_tpu,
        **(optimizer_options or {}),
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


def main(_) -> None:
  """Trains, evaluates, predicts and exports as the flags say."""
  check_flags()
  runner.resolve_model_files()
  command_line.check_required()
  command_line.explain_ignored_flags()
  bert_config, tokenizer = runner.load_config_and_tokenizer()
  with runner.held_output_dir():
    Tagging(bert_config, tokenizer).run()


def check_flags() -> None:
  """Checks what flags alone tell, before gigabytes are fetched for a run that cannot start.

  Raises:
    UsageError: a flag is missing or has a value that it cannot have.
    ValueError: nothing is to be done.
  """
  # A released model brings its config and vocabulary, hence the second check in `main`.
  if not FLAGS.init_checkpoint or FLAGS.output_dir is None:
    command_line.check_required()
  if not (FLAGS.do_train or FLAGS.do_eval or FLAGS.do_predict or FLAGS.do_export):
    raise ValueError("At least one of `do_train`, `do_eval` or `do_predict' must be True.")
  runner.check_training_flags()
  runner.check_flag("max_seq_length", lambda value: value >= 3, "at least 3")
  runner.check_flag(
    "doc_stride",
    lambda value: 1 <= value <= FLAGS.max_seq_length - 2,
    "at least 1 and at most --max_seq_length less 2",
  )
  if not FLAGS.separator:
    raise command_line.UsageError("--separator is empty: columns need something between them.")
  if (FLAGS.label_scheme == "plain") != (_model_scheme() == "plain"):
    raise command_line.UsageError(
      f"--label_scheme={FLAGS.label_scheme} --model_scheme={_model_scheme()}: plain labels have no "
      "entities, so there is nothing to convert."
    )
  runner.check_split_flags()


def _model_scheme() -> str:
  # How a word's label is spelt in iob1 depends on the entity before it, which is hard to learn.
  default = "bio" if FLAGS.label_scheme == "iob1" else FLAGS.label_scheme
  return FLAGS.model_scheme or default


class Tagging:
  """One run: a model, its files, and the folder of its results."""

  def __init__(self, bert_config, tokenizer):
    self.bert_config = bert_config
    self.tokenizer = tokenizer
    self.scheme = _model_scheme()
    self.labels: list[str] = []
    self.scored: conll_files.ConllFile | None = None  # whose figures `_metric_fn` computes

  def run(self) -> None:
    """Trains, evaluates, predicts, exports."""
    # All are read before training: a bad line of the test file is told now and not in an hour.
    train = self._read("train") if FLAGS.do_train else None
    self.labels = self._model_labels(train)
    is_evaluated = FLAGS.do_eval or (FLAGS.do_train and FLAGS.eval_every_steps)
    dev = self._read("dev") if is_evaluated else None
    test = self._read("test", needs_labels=False) if FLAGS.do_predict else None
    self._check_labels(train, dev, test)
    fingerprint = runner.model_fingerprint(
      self.bert_config, self.tokenizer, task_name="ner", labels=self.labels
    )
    runner.check_same_model(fingerprint)
    result_files.write_label_map(FLAGS.output_dir, self.labels)
    num_windows, num_train_steps = 0, 1
    if train:
      num_windows = self._write(train, "train")
      num_train_steps = runner.num_train_steps(num_windows, "windows")
    estimator = self._create_estimator(num_train_steps, fingerprint)
    self.scored = dev
    if train:
      self._train(estimator, train, num_windows, num_train_steps, dev)
    checkpoint_path = runner.best_checkpoint()
    if FLAGS.do_eval:
      self._evaluate(estimator, dev, checkpoint_path)
    if test:
      self._predict(estimator, test, checkpoint_path)
    if FLAGS.do_export:
      distribution.on_chief(self._export, checkpoint_path)
    result_files.draw_plots()

  # -------------------------------------------------------------------------------------------
  # Files and labels.

  def _read(self, split, needs_labels=True):
    conll_format = conll_files.ConllFormat(
      FLAGS.separator,
      FLAGS.token_column,
      FLAGS.label_column,
      FLAGS.label_scheme,
      FLAGS.comment_prefix,
    )
    path = runner.split_file(split, _NAMES[split], _ENDINGS)
    return conll_files.read_conll(path, conll_format, split, needs_labels)

  def _model_labels(self, train) -> list[str]:
    """`--labels`, else those of the training file, else those of the run that trained."""
    labels = FLAGS.labels
    if not labels and train:
      labels = conll_files.model_labels(train.types(), self.scheme)
    if not labels:
      labels = result_files.read_label_map(FLAGS.output_dir) or result_files.read_label_map(
        runner.folder_of_init_checkpoint()
      )
    if not labels:
      raise command_line.UsageError(
        "Which labels does the model have? Neither --output_dir nor --init_checkpoint has a "
        "label_map.json. Train with --do_train, or name them: --labels=O,B-PER,I-PER."
      )
    for label in labels:
      try:
        conll_files.split_label(label, self.scheme)
      except ValueError as error:
        raise command_line.UsageError(f"--labels, --model_scheme={self.scheme}: {error}.") from None
    return labels

  def _check_labels(self, train, *others) -> None:
    """Labels that the model lacks: an error in training, where they can be added."""
    for conll_file in filter(None, (train, *others)):
      if not conll_file.has_labels:
        continue
      missing = ", ".join(sorted(conll_file.labels(self.scheme) - set(self.labels)))
      if missing and conll_file is train:
        raise conll_files.DataError(f"--labels lacks {missing}.", train.path, advice="Add them.")
      if missing:
        logging.warning(
          "%s: the model does not know, and cannot find, %s.", conll_file.path, missing
        )

  def _features(self, conll_file):
    from bert.tasks import tagging

    return tagging.convert_examples_to_features(
      conll_file.examples,
      self.labels,
      self.scheme,
      FLAGS.max_seq_length,
      self.tokenizer,
      FLAGS.doc_stride,
      FLAGS.label_scheme,
    )

  def _path(self, name):
    return os.path.join(FLAGS.output_dir, name)

  def _write(self, conll_file, name, batch_size=0) -> int:
    """Writes `OUTPUT_DIR/<name>.tf_record`; returns the number of windows."""
    if name == "train":
      # Beside the shuffle buffer, which alone would keep a document's sentences together.
      random.Random(12345).shuffle(conll_file.examples)
    features = self._features(conll_file)
    if FLAGS.use_tpu and batch_size:
      features = _filled_up(features, batch_size)
    return distribution.on_chief(write_features, self._path(f"{name}.tf_record"), features)

  def _input_fn(self, name, is_training=False):
    return input_fn_builder(
      self._path(f"{name}.tf_record"),
      FLAGS.max_seq_length,
      is_training,
      drop_remainder=is_training or FLAGS.use_tpu,
      **runner.reading_options(),
    )

  # -------------------------------------------------------------------------------------------
  # Training.

  def _create_estimator(self, num_train_steps, fingerprint):
    self.num_warmup_steps = int(num_train_steps * FLAGS.warmup_proportion)
    model_fn = model_fn_builder(
      bert_config=self.bert_config,
      num_labels=len(self.labels),
      init_checkpoint=FLAGS.init_checkpoint,
      learning_rate=FLAGS.learning_rate,
      num_train_steps=num_train_steps,
      num_warmup_steps=self.num_warmup_steps,
      use_tpu=FLAGS.use_tpu,
      use_one_hot_embeddings=FLAGS.use_tpu,
      metric_fn=self._metric_fn,
      optimizer_options=runner.optimizer_options(),
      dtype=FLAGS.dtype,
    )
    informative = [
      "train_batch_size",
      "learning_rate",
      "num_train_epochs",
      "warmup_proportion",
      "max_seq_length",
      "doc_stride",
      "dtype",
      "group_by_length",
    ]
    return runner.create_estimator(model_fn, fingerprint, informative)

  def _train(self, estimator, train, num_windows, num_train_steps, dev):
    eval_spec = self._eval_spec(dev)
    logging.info("***** Running training *****")
    logging.info("  Num sentences = %d", len(train.examples))
    logging.info("  Num windows = %d", num_windows)
    logging.info("  Batch size = %d", FLAGS.train_batch_size)
    logging.info("  Num steps = %d", num_train_steps)
    logging.info("  Num warm-up steps = %d", self.num_warmup_steps)
    start = time.monotonic()
    estimator.train(self._input_fn("train", True), max_steps=num_train_steps, eval_spec=eval_spec)
    logging.info("Training took %.1f s.", time.monotonic() - start)

  def _eval_spec(self, dev):
    if not FLAGS.eval_every_steps:
      return None
    self._write(dev, "eval", FLAGS.eval_batch_size)
    return runner.eval_spec(self._input_fn("eval"), "eval_f1")

  # -------------------------------------------------------------------------------------------
  # Results.

  def _metric_fn(self, predictions, token_losses, label_ids, word_mask):
    """The scores of `self.scored`."""
    from bert.tasks import tagging

    # In order of windows and of places in them, these are the file's words in their order.
    words = tagging.by_sentence(predictions[word_mask > 0], self.scored.examples)
    scores = self._score(self.scored, [[self.labels[i] for i in ids] for ids in words])
    has_label = label_ids >= 0
    scores["eval_loss"] = float(token_losses[has_label].mean()) if has_label.any() else 0.0
    return scores

  def _score(self, conll_file, predicted):
    """`eval_` scores of labels in the model's scheme, and a table of them."""
    from bert.tasks import tagging

    gold = [example.labels for example in conll_file.examples]
    scores = tagging.score(gold, predicted, FLAGS.label_scheme, self.scheme)
    table = tagging.format_scores(scores)
    return {**{f"eval_{name}": value for name, value in scores.items()}, "scores": table}

  def _evaluate(self, estimator, dev, checkpoint_path):
    num_windows = self._write(dev, "eval", FLAGS.eval_batch_size)
    logging.info("***** Running evaluation *****")
    _log_sizes(dev, num_windows, FLAGS.eval_batch_size)
    results = estimator.evaluate(self._input_fn("eval"), checkpoint_path=checkpoint_path)
    self._write_results("eval_results.txt", results)

  def _write_results(self, name, results):
    first = [f"eval_{key}" for key in ("f1", "precision", "recall", "accuracy", "loss")]
    result_files.write_eval_results(self._path(name), results, [*first, "global_step", "loss"])

  def _predict(self, estimator, test, checkpoint_path):
    import numpy as np

    from bert.tasks import tagging

    num_windows = self._write(test, "predict", FLAGS.predict_batch_size)
    logging.info("***** Running prediction *****")
    _log_sizes(test, num_windows, FLAGS.predict_batch_size)
    start = time.monotonic()
    predictions = estimator.predict(self._input_fn("predict"), checkpoint_path)
    probabilities = np.concatenate([p["probabilities"][p["word_mask"] > 0] for p in predictions])
    logging.info("Prediction took %.1f s.", time.monotonic() - start)
    sentences = tagging.by_sentence(probabilities, test.examples)  # float32 [words, C] each
    predicted = [[self.labels[i] for i in p.argmax(axis=-1)] for p in sentences]
    self._write_predictions(test, predicted, [p.max(axis=-1) for p in sentences])
    if test.has_labels:
      self._write_results("test_results.txt", self._score(test, predicted))

  def _write_predictions(self, test, predicted, probabilities):
    from bert.tasks import tagging

    spelt, lines, num_misspelt = [], [], 0
    for example, labels, certainties in zip(test.examples, predicted, probabilities, strict=True):
      entities = conll_files.entities_of(labels, self.scheme)
      num_misspelt += labels != conll_files.labels_of(entities, len(labels), self.scheme)
      spelt.append(conll_files.labels_of(entities, len(labels), FLAGS.label_scheme))
      described = tagging.describe_entities(example, entities, certainties)
      lines.append(json.dumps(described, ensure_ascii=False) + "\n")
    distribution.on_chief(conll_files.write_conll, self._path("predictions.conll"), test, spelt)
    distribution.on_chief(atomic_files.write_text, self._path("predictions.jsonl"), "".join(lines))
    logging.info("Wrote %d sentences to %s.", len(lines), self._path("predictions.conll"))
    if num_misspelt:
      logging.info(
        "In %d of them the model's labels did not follow the scheme %s; a label that continues "
        "nothing was taken to begin an entity.",
        num_misspelt,
        self.scheme,
      )

  def _export(self, checkpoint_path) -> None:
    from bert.exporting import tag_model

    export_dir, checkpoint_path = runner.where_to_export(checkpoint_path)
    tag_model.export_tag_model(
      os.path.join(export_dir, "task"),
      self.bert_config,
      checkpoint_path,
      FLAGS.vocab_file,
      FLAGS.do_lower_case,
      FLAGS.max_seq_length,
      self.labels,
      FLAGS.doc_stride,
    )
    runner.export_hub_models(export_dir, self.bert_config, checkpoint_path)


def _filled_up(features, batch_size):
  """On a TPU every batch has to be full: windows without a word fill the last one."""
  from bert.tasks import tagging

  count = 0
  for feature in features:
    yield feature
    count += 1
  for _ in range(-count % batch_size):
    yield tagging.padding_features(FLAGS.max_seq_length)


def _log_sizes(conll_file, num_windows, batch_size):
  logging.info("  Num sentences = %d", len(conll_file.examples))
  logging.info("  Num windows = %d", num_windows)
  logging.info("  Batch size = %d", batch_size)


if __name__ == "__main__":
  command_line.run(main, define_flags)
