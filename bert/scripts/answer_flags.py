"""The flags of run_squad.py's answers, and the head that they choose."""

from absl import flags, logging

from bert.families import ALBERT
from bert.model.answer_heads import KINDS, AnswerHead
from bert.model.configuration import BertConfig
from bert.scripts import command_line, flag_groups
from bert.scripts.run_settings import RunSettings
from bert.tasks.squad_scores import RULES

_OF_ELECTRA = (
  *("joint_prediction", "answerable_classifier", "answerable_uses_start_logits"),
  *("answerable_weight", "beam_size"),
)
_OF_ALBERT = ("start_n_top", "end_n_top", "dropout_prob")


def define_answer_flags() -> None:
  """Defines the flags of answers; names, types and defaults of 2018 are unchanged."""
  with flag_groups.flag_group("Answers"):
    flags.DEFINE_integer(
      "n_best_size", 20, "Maximum number of answers to a question in nbest_predictions.json."
    )
    flags.DEFINE_integer("max_answer_length", 30, "Maximum length of an answer in word pieces.")
    flags.DEFINE_float(
      "null_score_diff_threshold",
      0.0,
      "SQuAD 2.0: predict no answer where its logit exceeds the best answer's by more than this. "
      "With --do_eval, eval_results.txt has the value for the best F1: "
      "best_f1_null_score_diff_threshold.",
    )
    flags.DEFINE_bool(
      "verbose_logging", False, "Log each answer whose place in the text is not found exactly."
    )
    flags.DEFINE_enum(
      "answer_scores",
      "squad",
      list(RULES),
      "The script whose exact match and F1 to compute. squad: over words between spaces. For "
      "languages without spaces: cmrc2018, over the longest common run of Chinese characters and "
      "words, or drcd, over characters.",
    )
    flags.DEFINE_enum(
      "answer_head",
      "auto",
      ["auto", *KINDS],
      "bert: beginnings and ends apart. electra, albert: the family's own head, which scores ends "
      "given the beginning, and whether there is an answer. auto: that of the trained model; of a "
      "new one bert's, and albert's for ALBERT with --version_2_with_negative.",
    )
  with flag_groups.flag_group("Answers: --answer_head=electra"):
    flags.DEFINE_bool("joint_prediction", True, "Score ends given the beginning.")
    flags.DEFINE_integer("beam_size", 20, "Beginnings to search, and ends for each of them.")
    flags.DEFINE_bool("answerable_classifier", True, "Score whether there is an answer.")
    flags.DEFINE_bool(
      "answerable_uses_start_logits",
      True,
      "That score sees the likely beginnings, through a hidden layer.",
    )
    flags.DEFINE_float("answerable_weight", 0.5, "Weight of its loss.")
  with flag_groups.flag_group("Answers: --answer_head=albert"):
    flags.DEFINE_integer("start_n_top", 5, "Beginnings to search.")
    flags.DEFINE_integer("end_n_top", 5, "Ends for each beginning.")
    flags.DEFINE_float("dropout_prob", 0.1, "Dropout in the score of no answer, in training.")


def check(settings: RunSettings) -> None:
  """Checks the values of these flags (UsageError)."""
  settings.check_at_least(1, "n_best_size", "max_answer_length")
  settings.check_at_least(1, "beam_size", "start_n_top", "end_n_top")
  settings.check("dropout_prob", lambda value: 0 <= value < 1, "at least 0 and below 1")
  settings.check_at_least(0.0, "answerable_weight")


def head_of(settings: RunSettings, config: BertConfig) -> AnswerHead:
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
      command_line.explain_ignored_flags(dict.fromkeys(others, f"it is for --answer_head={of}"))
  if kind == "bert":
    return AnswerHead()
  if kind == "albert":
    return AnswerHead(
      kind,
      num_starts=settings.start_n_top,
      num_ends=settings.end_n_top,
      dropout_prob=settings.dropout_prob,
    )
  parts = {name: trained.get(name, settings.values[name]) for name in _OF_ELECTRA[:3]}
  name = "squad" if settings.version_2_with_negative else "squadv1"
  return AnswerHead(
    kind,
    trained.get("answer_scope", f"task_specific/{name}"),
    **parts,
    num_starts=settings.beam_size,
    num_ends=settings.beam_size,
    null_weight=settings.answerable_weight,
  )


def threshold_of(settings: RunSettings, head: AnswerHead) -> float | None:
  """The threshold on null odds; None where the evaluated questions give it, as in ALBERT."""
  if head.kind == "albert" and "null_score_diff_threshold" not in settings.given:
    return None
  return settings.null_score_diff_threshold


def _facts_of_model(settings: RunSettings) -> dict:
  """Returns what a run that answers with a trained model knows of it; {} of a released one."""
  from bert.checkpoints import finding, reading

  prefix, folder = settings.init_checkpoint, settings.output_dir
  if not prefix and folder:
    prefix = finding.latest(folder)
  facts = reading.read_facts(prefix) if prefix else {}
  if facts.get("answer_head", "bert") != "bert":
    logging.info("--answer_head=%s, as %s was trained.", facts["answer_head"], prefix)
  return facts
