"""What a pre-trained teacher adds to a run on records of a corpus, as in DistilBERT.

  teacher = corpus_distillation.find_teacher("uncased_L-12_H-768_A-12")
  settings = corpus_distillation.settings_of(teacher)
  run_pretraining.start(settings, CorpusDistillation(teacher))

TinyBERT's general stage is the other method.
"""

from typing import Any

from bert import tokenization
from bert.checkpoints import model_files, model_source
from bert.model.configuration import BertConfig
from bert.predicting import load_run
from bert.scripts import distillation_settings, flag_groups, run_distillation
from bert.scripts.distillation_settings import RecordDistillation
from bert.scripts.run_distillation import RunDistillation
from bert.scripts.settings import UsageError

# Option of the optimizer -> the flag by which the user chooses it.
_FLAGS = {
  "bias_correction": "adam_bias_correction",
  "schedule": "lr_schedule",
  "beta_2": "adam_beta_2",
  "weight_decay": "weight_decay",
}


def find_teacher(path: str | None) -> load_run.Run:
  """Finds the model of `--teacher`, of any kind.

  Raises:
    UsageError: the flag is missing.
    ValueError: there is no model.
  """
  if not path:
    raise UsageError("--teacher is missing: give a pre-trained model.")
  from bert.checkpoints import finding, reading

  path = model_source.local_path(path)
  prefix = finding.find_checkpoint(path)
  config = BertConfig.from_json_file(model_files.need_config(path))
  return load_run.Run(
    prefix, model_files.need_vocabulary(path), reading.read_facts(prefix), {}, config
  )


def settings_of(teacher: load_run.Run) -> RecordDistillation:
  """Returns the settings of the command line.

  Raises:
    UsageError: a flag is missing, or has a value that it cannot have.
  """
  settings = flag_groups.read(RecordDistillation)
  distillation_settings.check(settings)
  run_distillation.check_folder(settings, teacher)
  if not settings.init_checkpoint and not settings.bert_config_file:
    settings = settings.replace(init_checkpoint=settings.teacher)
  distillation_settings.check_tinybert(settings)
  return settings


class CorpusDistillation(RunDistillation):
  """A teacher's part in a `run_pretraining.PreTraining`."""

  def check(self, run: Any) -> None:
    """Refuses records of other tokens than the teacher's."""
    super().check(run)
    vocab = tokenization.load_vocab(self.teacher.vocab_file)
    if run.known.get("vocabulary") not in (None, tokenization.vocabulary_hash(vocab)):
      raise UsageError(
        f"--input_file was made with another vocabulary than the teacher's, "
        f"{self.teacher.vocab_file}. Make the records with that one."
      )
    sizes = run.bert_config.vocab_size, self.teacher.config.vocab_size
    if run.settings.method == "distilbert" and sizes[0] != sizes[1]:
      raise UsageError(
        f"The student has {sizes[0]} words, the teacher {sizes[1]}: DistilBERT's losses compare "
        "what both say of each word."
      )

  def after_reading(self, run: Any) -> None:
    """Masks rare tokens more often, as DistilBERT does."""
    if run.settings.method == "distilbert":
      run.records.mask_rare_tokens(run.settings.mlm_smoothing)

  def objective(self, run):
    """Returns that of the method."""
    from bert.distillation import distilbert, tinybert
    from bert.distillation.teachers import Teacher

    settings = run.settings
    teacher = Teacher(self.teacher.config, self.teacher.prefix)
    if settings.method == "tinybert":
      return tinybert.general_objective(tinybert.Layers(teacher))
    names = ("alpha_ce", "alpha_mlm", "alpha_mse", "alpha_cos", "temperature")
    weights = {name: getattr(settings, name) for name in (*names, "restrict_ce_to_mask")}
    return distilbert.objective(teacher, distilbert.Weights(**weights))

  def model_options(self, run):
    """Returns those of the method's optimizer, but for what the user gave."""
    from bert.distillation import distilbert, tinybert

    options = super().model_options(run)
    method = tinybert if run.settings.method == "tinybert" else distilbert
    kept = [name for name, flag in _FLAGS.items() if flag in run.settings.given]
    own = {name: value for name, value in method.OPTIMIZER.items() if name not in kept}
    return {**options, "optimizer_options": {**options["optimizer_options"], **own}}
