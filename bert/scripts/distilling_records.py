"""Runs of `distill.py` on records of a corpus: a pre-trained model teaches, as in DistilBERT.

  teacher = distilling_records.find_teacher("uncased_L-12_H-768_A-12")
  settings = distilling_records.settings_of(teacher)
  run_pretraining.start(settings, distilling.class_of(PreTraining, teacher, OnRecords))

TinyBERT's general stage is the other method.
"""

from typing import Any

from bert import tokenization
from bert.checkpoints import model_files, model_source
from bert.model.configuration import BertConfig
from bert.predicting import load_run
from bert.scripts import distill_flags, distilling, run_settings
from bert.scripts.command_line import UsageError
from bert.scripts.run_settings import RunSettings


def find_teacher(path: str | None) -> load_run.Run:
  """The model of `--teacher`, of any kind.

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


def settings_of(teacher: load_run.Run) -> RunSettings:
  """The settings of the command line.

  Raises:
    UsageError: a flag is missing, or has a value that it cannot have.
  """
  settings = run_settings.from_flags()
  distill_flags.check(settings)
  distilling.check_folder(settings, teacher)
  distill_flags.layers_of(settings)
  if settings.cache_teacher:
    raise UsageError(
      "--cache_teacher is for --method=logits: of records, the teacher's answers would take more "
      "room than the corpus."
    )
  # `--temperature` is not that of ELECTRA's generator here.
  settings = RunSettings(settings.values, settings.given - {"temperature"})
  values: dict[str, Any] = {}
  if not settings.init_checkpoint and not settings.bert_config_file:
    values["init_checkpoint"] = settings.teacher
  return settings.replace(**values)


class OnRecords(distilling.Taught):
  """Such a run, always together with `run_pretraining.PreTraining`."""

  def __init__(self, settings, bert_config, records):
    super().__init__(settings, bert_config, records)
    self._check_records()
    if settings.method == "distilbert":
      records.mask_rare_tokens(settings.mlm_smoothing)
    self._objective = self._objective_of_method()
    self.result_keys = ("global_step", "loss", *self._objective.result_keys)

  def _check_records(self) -> None:
    """Refuses records of other words than the teacher's."""
    vocab = tokenization.load_vocab(self.teacher.vocab_file)
    known = self._known.get("vocabulary")  # type: ignore[attr-defined]
    if known not in (None, tokenization.vocabulary_hash(vocab)):
      raise UsageError(
        f"--input_file was made with another vocabulary than the teacher's, "
        f"{self.teacher.vocab_file}. Make the records with that one."
      )
    sizes = self.bert_config.vocab_size, self.teacher.config.vocab_size
    if self.settings.method == "distilbert" and sizes[0] != sizes[1]:
      raise UsageError(
        f"The student has {sizes[0]} words, the teacher {sizes[1]}: DistilBERT's losses compare "
        "what both say of each word."
      )

  def _objective_of_method(self):
    from bert.distillation import distilbert, tinybert
    from bert.distillation.teachers import Teacher

    settings = self.settings
    teacher = Teacher(self.teacher.config, self.teacher.prefix)
    if settings.method == "tinybert":
      return tinybert.general_objective(tinybert.Layers(teacher, settings.teacher_dropout))
    names = ("alpha_ce", "alpha_mlm", "alpha_mse", "alpha_cos", "temperature")
    weights = {name: settings.values[name] for name in (*names, "restrict_ce_to_mask")}
    return distilbert.objective(teacher, distilbert.Weights(**weights))

  def _model_options(self):
    options = super()._model_options()
    return {**options, "optimizer_options": self._optimizer_options(options["optimizer_options"])}

  def _optimizer_options(self, by_flags):
    """Those of the method, but for what the user gave."""
    from bert.distillation import distilbert, tinybert

    is_tinybert = self.settings.method == "tinybert"
    of_method = tinybert.OPTIMIZER if is_tinybert else distilbert.OPTIMIZER
    flags_of = {
      **{"bias_correction": "adam_bias_correction", "schedule": "lr_schedule"},
      **{"beta_2": "adam_beta_2", "weight_decay": "weight_decay"},
    }
    kept = [name for name, flag in flags_of.items() if flag in self.settings.given]
    return {**by_flags, **{n: v for n, v in of_method.items() if n not in kept}}
