"""What a report says of a run of pre-training, and of any other that learned no task."""

import os
from collections.abc import Mapping
from typing import Any

from absl import logging

from bert import tokenization
from bert.checkpoints import model_files
from bert.io.wording import in_one_message
from bert.model.configuration import BertConfig
from bert.reports import masked_words
from bert.reports.subject import Subject
from bert.scripts import answered_examples, pretraining_data
from bert.tasks import kinds

_MOST_RECORDS = 200
# The result that counts, of those that a run has: of words, or ELECTRA's of all tokens.
_HEADLINES = ("masked_lm_accuracy", "disc_accuracy", "loss")


def complete(
  subject: Subject,
  prefix: str,
  config: BertConfig,
  facts: Mapping[str, Any],
  is_answered: bool,
  run_passes: int | None = None,
) -> None:
  """Adds what a run of pre-training has.

  Args:
    subject: of the run, with its flags and results.
    prefix: of its checkpoint.
    config: of the model.
    facts: of the run.
    is_answered: whether masked words are guessed.
    run_passes: see `answered_examples.Budget`.
  """
  subject.task = "Pre-training"
  found = [name for name in _HEADLINES if name in subject.results]
  subject.headline = found[0] if found else _HEADLINES[0]
  subject.usage = _usage(subject.folder)
  if objective := facts.get("objective") or subject.flags.get("objective"):
    subject.facts = {**subject.facts, "objective": str(objective)}
  if not is_answered:
    return
  try:
    tokens = int(subject.flags.get("max_seq_length") or config.max_position_embeddings)
    possible = answered_examples.affordable(config, tokens, run_passes)
    if not possible:
      raise ValueError("to guess words would take a large part of this run's time: report.py does.")
    most = min(possible, _MOST_RECORDS)
    subject.examples = _examples(subject, prefix, config, facts, most)
    if subject.examples is None:
      why = "the records have no masks, or the model has no head for masked words"
      subject.missing = [*subject.missing, f"There are no examples: {why}."]
  except (ValueError, OSError) as error:
    subject.missing = [*subject.missing, f"There are no examples: {in_one_message(error)}"]
    logging.warning("The report has no examples: %s", in_one_message(error))


def _examples(
  subject: Subject, prefix: str, config: BertConfig, facts: Mapping[str, Any], most_records: int
):
  flag = "eval_input_file" if subject.flags.get("eval_input_file") else "input_file"
  files = pretraining_data.find_files(flag, subject.flags.get(flag) or "")
  vocab_file = model_files.need_vocabulary(os.path.dirname(prefix))
  tokenizer = tokenization.load_tokenizer(vocab_file, facts.get("do_lower_case", True))
  return masked_words.examples_of(config, prefix, tokenizer, files, most_records)


def _usage(folder: str) -> dict[str, str]:
  script = next(iter(kinds.registered().values())).script
  return {
    "Fine-tune it": f"python {script}.py --do_train --do_eval --data_dir=DATA \\\n"
    f"  --init_checkpoint={folder} --output_dir=OUTPUT",
    "Guess masked words": f"python predict_masked.py --init_checkpoint={folder} < texts.txt",
    "Vectors of texts": f"python predict.py --task=vectors --init_checkpoint={folder} < texts.txt",
  }
