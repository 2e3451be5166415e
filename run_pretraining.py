"""Pre-trains BERT on masked words and next sentences, or goes on from a released model.

ALBERT, ELECTRA and RoBERTa, too: their configurations choose the objective, see `--objective`.

The command of 2018 works as it was:

  python run_pretraining.py --input_file=/tmp/tf_examples.tfrecord \\
    --output_dir=/tmp/pretraining_output --do_train=True --do_eval=True \\
    --bert_config_file=$BERT_BASE_DIR/bert_config.json \\
    --init_checkpoint=$BERT_BASE_DIR/bert_model.ckpt --train_batch_size=32 \\
    --max_seq_length=128 --max_predictions_per_seq=20 --num_train_steps=20 \\
    --num_warmup_steps=10 --learning_rate=2e-5

The same command again resumes a run that was stopped. Long sequences are expensive, so the paper
trains most steps at length 128 and the last tenth at 512; the second phase starts from the first:

  python run_pretraining.py --do_train --input_file=records_512/*.tfrecord --max_seq_length=512 \\
    --max_predictions_per_seq=77 --init_checkpoint=/tmp/phase_1 --output_dir=/tmp/phase_2 ...

Records written with `create_pretraining_data.py --dynamic_masking` get their masks while they are
read, other ones in each epoch: `--dynamic_masking --vocab_file=...`.
"""

import bert  # isort: skip  # noqa: F401  from here on Ctrl-C is one line, also while importing

import functools

from absl import logging

from bert import tokenization
from bert.checks import at_start
from bert.pretraining import record_checks
from bert.pretraining.record_checks import pretraining_features
from bert.scripts import (
  command_line,
  flag_groups,
  output_folder,
  pretraining_data,
  pretraining_settings,
  resolution,
)
from bert.scripts.pretraining_settings import PretrainingSettings
from bert.scripts.settings import UsageError
from bert.scripts.steps import Run, Teaching

# Of `bert/model/heads.py`, which imports TensorFlow: found here by `__getattr__`, where the
# original has them.
_HEADS = ("gather_indexes", "get_masked_lm_output", "get_next_sentence_output")

__all__ = [  # noqa: F822
  "gather_indexes",
  "get_masked_lm_output",
  "get_next_sentence_output",
  "input_fn_builder",
  "main",
  "model_fn_builder",
  "pretraining_features",
]


def __getattr__(name: str):
  if name in _HEADS:
    from bert.model import heads

    return getattr(heads, name)
  if name == "FLAGS":  # for scripts of 2018 that import this one
    return flag_groups.with_flags(define_flags)
  raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


define_flags = functools.partial(flag_groups.define, PretrainingSettings)


# ---------------------------------------------------------------------------------------------
# Records -> batches.


def input_fn_builder(
  input_files,
  max_seq_length,
  max_predictions_per_seq,
  is_training,
  num_cpu_threads=4,
  *,
  masking=None,
  has_pairs=True,
  **reading,
):
  """An input_fn over files of `create_pretraining_data.py`, for an `estimator.Estimator`.

  Both kinds repeat without end and give full batches only, as the original: who evaluates says for
  how many batches.

  Args:
    input_files: paths.
    max_seq_length: S of the records.
    max_predictions_per_seq: P of the records.
    is_training: shuffle, and read several files at a time.
    num_cpu_threads: accepted for the original's signature; four files at a time are read.
    masking: a `dynamic_masking.Masking`, if the records have no masks.
    has_pairs: whether the records have `next_sentence_labels`.
    **reading: further keywords of `input_pipeline.record_input_fn`.

  Returns:
    `input_fn(params)` -> `tf.data.Dataset` of name -> int32 or float32 `[B, ...]`.
  """
  from bert.training import input_pipeline

  del num_cpu_threads
  features = pretraining_features(max_seq_length, max_predictions_per_seq, has_pairs=has_pairs)
  if masking is not None:
    features = pretraining_features(max_seq_length, None, masking.reads_word_starts, has_pairs)
  return input_pipeline.record_input_fn(
    input_files,
    features,
    is_training,
    drop_remainder=True,
    repeat=True,
    transform=_draw_masks(masking) if masking else None,
    **reading,
  )


def _draw_masks(masking):
  def transform(features, numbers, seed):
    from bert.pretraining import dynamic_masking

    return dynamic_masking.draw_masks(features, numbers, seed, masking)

  return transform


# ---------------------------------------------------------------------------------------------
# The model.


def model_fn_builder(
  bert_config,
  init_checkpoint,
  learning_rate,
  num_train_steps,
  num_warmup_steps,
  use_tpu,
  use_one_hot_embeddings,
  *,
  optimizer_options=None,
  dtype="float32",
  objective=None,
):
  """Returns the `model_fn` of an `estimator.Estimator`: BERT with both heads of pre-training.

  Args:
    bert_config: a `modeling.BertConfig`.
    init_checkpoint: where variables start, or None.
    learning_rate: peak rate.
    num_train_steps: steps of the whole run.
    num_warmup_steps: steps of warm-up.
    use_tpu: whether this runs on a TPU.
    use_one_hot_embeddings: look words up by a matrix product.
    optimizer_options: further keywords of `optimization.create_optimizer`.
    dtype: of the matrix products.
    objective: a `pretraining_objectives.Objective`; that of the family by default.
  """

  def model_fn(features, labels, mode, params):
    import tensorflow as tf

    from bert.optimization import create_optimizer
    from bert.training import pretraining_objectives
    from bert.training.estimator import EstimatorSpec, ModeKeys

    del labels  # they travel in features
    if mode not in (ModeKeys.TRAIN, ModeKeys.EVAL):
      raise ValueError(f"Only TRAIN and EVAL modes are supported: {mode}")
    learned = objective or pretraining_objectives.objective_of(bert_config.family.objective)
    setting = pretraining_objectives.Setting(
      mode == ModeKeys.TRAIN,
      use_one_hot_embeddings,
      tf.as_dtype(dtype),
      params.get("gradient_accumulation_steps", 1),
    )
    outputs = learned.outputs(bert_config, features, setting)
    spec = EstimatorSpec(mode=mode, loss=outputs.loss, init_checkpoint=init_checkpoint)
    if mode == ModeKeys.TRAIN:
      spec.train_op = create_optimizer(
        outputs.loss,
        learning_rate,
        num_train_steps,
        num_warmup_steps,
        use_tpu,
        **(optimizer_options or {}),
      )
      spec.summaries = outputs.summaries
      # A model without a pooler, or records without pairs, leave the pairs' figures out.
      spec.progress = (*(n for n in learned.progress if n in outputs.summaries), "learning_rate")
      spec.rates = {"tokens/sec": "tokens_per_example"}
    else:
      spec.eval_metrics = (learned.metric_fn, outputs.metric_tensors)
    return spec

  return model_fn


# ---------------------------------------------------------------------------------------------
# The job.


def main(_) -> None:
  """Trains and evaluates as the flags say."""
  start(flag_groups.read(PretrainingSettings))


def start(settings: PretrainingSettings, teaching: Teaching | None = None) -> None:
  """Makes a run, in which a teacher may take part."""
  teaching = teaching or Teaching()
  settings.check()
  train_files, eval_files = [], []
  if settings.do_train or not settings.eval_input_file:
    train_files = eval_files = pretraining_data.find_files("input_file", settings.input_file)
  if settings.eval_input_file:
    eval_files = pretraining_data.find_files("eval_input_file", settings.eval_input_file)
  settings = resolution.resolve(teaching.resolve(settings))
  settings = pretraining_data.with_vocabulary_of_records(settings, train_files or eval_files)
  if settings.do_export and not settings.vocab_file:
    raise UsageError(
      "--do_export needs --vocab_file, the vocabulary of the records: what is exported reads text."
    )
  config = resolution.load_config(settings)
  settings = pretraining_data.with_masks_of_records(settings, config, train_files or eval_files)
  settings = pretraining_settings.resolved(settings, config)
  vocab = tokenization.load_vocab(settings.vocab_file) if settings.vocab_file else None
  values = settings.values if settings.do_export else {**settings.values, "do_lower_case": None}
  at_start.model_is_read(values, config, vocab, settings.checkpoint)
  records = pretraining_data.Records(settings, config, vocab, train_files, eval_files)
  run = PreTraining(settings, config, records, teaching)
  with output_folder.locked_output_dir(settings):
    run.run()


class PreTraining(Run):
  """One run: a model, records, and the folder of its results.

  Attributes:
    records: to train on and to evaluate.
    known: what is known of them, see `Records.check`.
    objective: the `pretraining_objectives.Objective` that is learned.
  """

  informative = (
    *("input_file", "train_batch_size", "learning_rate", "num_train_steps", "num_warmup_steps"),
    *("max_seq_length", "max_predictions_per_seq", "dynamic_masking", "masked_lm_prob"),
    *("do_whole_word_mask", "objective", "dtype", "group_by_length", "lr_schedule"),
  )

  def __init__(self, settings, bert_config, records: pretraining_data.Records, teaching=None):
    super().__init__(settings, bert_config, teaching=teaching)
    self.records = records
    self.known = records.check()  # before the output folder is made
    self.teaching.check(self)
    self.objective = self.teaching.objective(self) or pretraining_settings.objective_of(settings)
    self.result_keys = ("global_step", "loss", *self.objective.result_keys)

  def facts(self):
    """Returns what is learned, and what the records are made of."""
    # The vocabulary and the case of the records, which a run that trains need not be given.
    known = {name: value for name, value in self.known.items() if value is not None}
    learned = pretraining_settings.facts(self.settings, self.bert_config)
    return {"task_name": "pretraining", **learned, **known}

  def read(self):
    """Warns of a missing vocabulary, and where the records to evaluate train the model."""
    settings = self.settings
    if settings.do_train and not settings.vocab_file:
      logging.warning(
        "--output_dir=%s gets no vocabulary, which scripts that read text look for beside the "
        "model. Give that of the records: --vocab_file.",
        settings.output_dir,
      )
    if settings.do_train and settings.reads_dev_set and not settings.eval_input_file:
      logging.warning(
        "Evaluating on --input_file, the records that train the model: the results say how well it "
        "knows these. --eval_input_file=FILES evaluates on others."
      )

  def plan(self):
    """Plans by the numbers of steps."""
    return self.settings.with_steps(self.settings.num_train_steps, self.settings.num_warmup_steps)

  def model_fn(self):
    """Returns that of both heads of pre-training, or of another objective."""
    return model_fn_builder(
      bert_config=self.bert_config,
      objective=self.objective,
      **self.teaching.model_options(self),
    )

  def training_data(self):
    """Returns batches without end."""
    return self._input_fn(*self.records.to_train(), is_training=True), {}

  def dev_data(self):
    """Returns batches to evaluate, and the objective's metric."""
    # Not the sum of both losses: next sentences are soon learned by heart, and would then decide.
    input_fn = self._input_fn(*self.records.to_evaluate(), is_training=False)
    return input_fn, self.objective.best_metric

  def use(self, checkpoint_path):
    """Evaluates, if that is asked for."""
    if self.settings.do_eval:
      input_fn = self._input_fn(*self.records.to_evaluate(), is_training=False)
      self.evaluate_on(input_fn, {}, checkpoint_path)

  def _input_fn(self, files, fmt, masking, is_training):
    logging.info("*** Input Files ***")
    for path in files:
      logging.info("  %s", path)
    return input_fn_builder(
      files,
      fmt.max_seq_length,
      fmt.max_predictions_per_seq,
      is_training,
      masking=masking,
      has_pairs=fmt.has_pairs,
      # Errors during training are explained in terms of flags.
      first_fault=functools.partial(record_checks.first_fault, files, fmt),
      **self.settings.reading_options,
    )


if __name__ == "__main__":
  command_line.run(main, define_flags)
