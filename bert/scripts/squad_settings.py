"""The settings of `run_squad.py`, and the head for answers that they choose."""

from absl import logging

from bert.families import ALBERT
from bert.model.answer_heads import KINDS, AnswerHead
from bert.model.configuration import BertConfig
from bert.scripts.run_settings import FineTuningSettings
from bert.scripts.settings import Path, Rule, Settings, UsageError, at_least, changed, setting
from bert.tasks.squad_scores import RULES

_OF_ELECTRA = (
  *("joint_prediction", "answerable_classifier", "answerable_uses_start_logits"),
  *("answerable_weight", "beam_size"),
)
_OF_ALBERT = ("start_n_top", "end_n_top", "dropout_prob")


class ElectraAnswers(Settings, title="Answers: --answer_head=electra"):
  """The head of ELECTRA."""

  joint_prediction: bool = setting(True, "Score ends given the beginning.")
  beam_size: int = setting(20, "Beginnings to search, and ends for each of them.", at_least(1))
  answerable_classifier: bool = setting(True, "Score whether there is an answer.")
  answerable_uses_start_logits: bool = setting(
    True, "That score sees the likely beginnings, through a hidden layer."
  )
  answerable_weight: float = setting(0.5, "Weight of its loss.", at_least(0.0))


class AlbertAnswers(Settings, title="Answers: --answer_head=albert"):
  """The head of ALBERT."""

  start_n_top: int = setting(5, "Beginnings to search.", at_least(1))
  end_n_top: int = setting(5, "Ends for each beginning.", at_least(1))
  dropout_prob: float = setting(
    0.1,
    "Dropout in the score of no answer, in training.",
    Rule(lambda value: 0 <= value < 1, "at least 0 and below 1"),
  )


class AnswerSettings(ElectraAnswers, AlbertAnswers, title="Answers"):
  """Which answers are found, and by which head."""

  n_best_size: int = setting(
    20, "Maximum number of answers to a question in nbest_predictions.json.", at_least(1)
  )
  max_answer_length: int = setting(30, "Maximum length of an answer in word pieces.", at_least(1))
  null_score_diff_threshold: float = setting(
    0.0,
    "SQuAD 2.0: predict no answer where its logit exceeds the best answer's by more than this. "
    "With --do_eval, eval_results.txt has the value for the best F1: "
    "best_f1_null_score_diff_threshold.",
  )
  verbose_logging: bool = setting(
    False, "Log each answer whose place in the text is not found exactly."
  )
  answer_scores: str = setting(
    "squad",
    "The script whose exact match and F1 to compute. squad: over words between spaces. For "
    "languages without spaces: cmrc2018, over the longest common run of Chinese characters and "
    "words, or drcd, over characters.",
    choices=RULES,
  )
  answer_head: str = setting(
    "auto",
    "bert: beginnings and ends apart. electra, albert: the family's own head, which scores ends "
    "given the beginning, and whether there is an answer. auto: that of the trained model; of a "
    "new one bert's, and albert's for ALBERT with --version_2_with_negative.",
    choices=["auto", *KINDS],
  )


class WindowSettings(Settings, title="Windows"):
  """How long paragraphs are read."""

  doc_stride: int = setting(
    128, "Word pieces from the start of a window to that of the next.", at_least(1)
  )
  max_query_length: int = setting(
    64, "Maximum length of a question in word pieces; longer ones are cut.", at_least(1)
  )
  pad_to_longest: bool = setting(
    False,
    "Predict windows of similar lengths together, pad each batch to its own longest, and let no "
    "answer begin or end in padding. Faster; the results differ a little, because in the "
    "original padding competes with the text.",
  )


class SquadSettings(WindowSettings, AnswerSettings, FineTuningSettings, title="Task and data"):
  """A run of `run_squad.py`."""

  train_file: str | None = setting(
    None, "SQuAD's JSON to train on, such as train-v1.1.json, or JSON Lines.", path=Path()
  )
  predict_file: str | None = setting(
    None,
    "SQuAD's JSON to answer, such as dev-v1.1.json, or JSON Lines; answers may be missing.",
    path=Path(),
  )
  version_2_with_negative: bool = setting(
    False, "Whether some questions have no answer, as in SQuAD 2.0."
  )
  do_eval: bool = changed(
    FineTuningSettings,
    "do_eval",
    help="As --do_predict, but an error where --predict_file has no correct answers.",
  )
  do_predict: bool = changed(
    FineTuningSettings,
    "do_predict",
    help="Whether to answer the questions of --predict_file.",
  )
  max_seq_length: int = changed(FineTuningSettings, "max_seq_length", default=384)

  eval_batch_size: int | None = None
  # Padding less changes results here: see `pad_to_longest`.
  pad_to_max_length: bool = False

  nothing_to_do = "At least one of `do_train` or `do_predict` must be True."

  def check(self):
    """See base class; also checks the files and the windows.

    Raises:
      ValueError: also where a file is not named, or the windows have no room.
    """
    super().check()
    for job, needed in (
      ("do_train", "train_file"),
      ("do_predict", "predict_file"),
      ("do_eval", "predict_file"),
    ):
      if getattr(self, job) and not getattr(self, needed):
        raise ValueError(f"If `{job}` is True, then `{needed}` must be specified.")
    if self.eval_every_steps and not self.predict_file:
      raise UsageError("--eval_every_steps evaluates on --predict_file: name one.")
    if self.max_seq_length <= self.max_query_length + 3:
      raise ValueError(
        f"The max_seq_length ({self.max_seq_length}) must be greater than max_query_length "
        f"({self.max_query_length}) + 3"
      )


def head_of(settings: SquadSettings, config: BertConfig) -> AnswerHead:
  """The head of a run: the one asked for, else that of the trained model, else the family's."""
  kind, trained = settings.answer_head, {}
  if kind == "auto" and not settings.do_train:
    trained = _facts_of_model(settings)
    kind = trained.get("answer_head", kind)
  if kind == "auto":
    is_albert = settings.version_2_with_negative and config.family is ALBERT
    kind = "albert" if is_albert else "bert"
  for others, of in ((_OF_ELECTRA, "electra"), (_OF_ALBERT, "albert")):
    if kind != of:
      settings.explain_ignored(dict.fromkeys(others, f"it is for --answer_head={of}"))
  if kind == "bert":
    return AnswerHead()
  if kind == "albert":
    return AnswerHead(
      kind,
      num_starts=settings.start_n_top,
      num_ends=settings.end_n_top,
      dropout_prob=settings.dropout_prob,
    )
  parts = {name: trained.get(name, getattr(settings, name)) for name in _OF_ELECTRA[:3]}
  name = "squad" if settings.version_2_with_negative else "squadv1"
  return AnswerHead(
    kind,
    trained.get("answer_scope", f"task_specific/{name}"),
    **parts,
    num_starts=settings.beam_size,
    num_ends=settings.beam_size,
    null_weight=settings.answerable_weight,
  )


def threshold_of(settings: SquadSettings, head: AnswerHead) -> float | None:
  """The threshold on null odds; None where the evaluated questions give it, as in ALBERT."""
  if head.kind == "albert" and "null_score_diff_threshold" not in settings.given:
    return None
  return settings.null_score_diff_threshold


def _facts_of_model(settings: SquadSettings) -> dict:
  """Returns what a run that answers with a trained model knows of it; {} of a released one."""
  from bert.checkpoints import finding, reading

  prefix, folder = settings.init_checkpoint, settings.output_dir
  if not prefix and folder:
    prefix = finding.latest(folder)
  facts = reading.read_facts(prefix) if prefix else {}
  if facts.get("answer_head", "bert") != "bert":
    logging.info("--answer_head=%s, as %s was trained.", facts["answer_head"], prefix)
  return facts
