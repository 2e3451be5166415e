"""The class of transformers for a model with its head, and the tensors that such a class has.

No file is touched here.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bert.checkpoints.families import FILES

# --head of convert_checkpoint.py -> the end of the class's name.
HEADS = {
  "none": "Model",
  "pretraining": "ForPreTraining",
  "masked_words": "ForMaskedLM",
  "next_sentence": "ForNextSentencePrediction",
  "sentences": "ForSequenceClassification",
  "squad": "ForQuestionAnswering",
  "ner": "ForTokenClassification",
  "swag": "ForMultipleChoice",
}


def class_of(head: str, family: str, variables: Iterable[str] | None = None) -> str:
  """transformers' class.

  Args:
    head: key of `HEADS`.
    family: `model_type`.
    variables: names of the model's; without them only `head` is looked at.

  Raises:
    ValueError: it has none that computes the same.

  Example:
    >>> class_of("ner", "electra")
    'ElectraForTokenClassification'
  """
  theirs = FILES[family].transformers
  reason = theirs.missing_heads.get(head)
  if head in theirs.marked_heads and variables is not None:
    mark, its_reason = theirs.marked_heads[head]
    reason = None if mark in variables else its_reason
  if reason:
    raise ValueError(
      f"transformers has no class that computes what this {head} head of {theirs.class_prefix} "
      f"computes: {reason}. Give --head=none to convert the encoder alone."
    )
  return theirs.class_prefix + HEADS[head]


def head_of(architecture: str | None) -> str | None:
  """The key of `HEADS` for the name of a class; None for others."""
  for files in FILES.values():
    for head, ending in HEADS.items():
      if architecture == files.transformers.class_prefix + ending:
        return head
  return None


class Head(NamedTuple):
  """The head of a model: what the names of its variables do not show.

  Attributes:
    name: a key of `HEADS`.
    labels: names of its outputs, if known.
    problem_type: one of `heads.PROBLEM_TYPES`, of a head for sentences.
  """

  name: str
  labels: Sequence[str] | None = None
  problem_type: str | None = None


def guess_head(names: Iterable[str], facts: Mapping[str, Any]) -> Head:
  """The head of a checkpoint.

  Args:
    names: of its variables. Sentence and token classifiers have the same names.
    facts: the `fingerprint` in the state of a run of this project's scripts, if any; else {}.

  Example:
    >>> guess_head(["cls/squad/output_weights", "bert/pooler/dense/bias"], {}).name
    'squad'
    >>> guess_head(["output_weights", "output_bias"], {"task_name": "ner", "labels": ["O"]}).name
    'ner'
  """
  names = set(names)
  word_bias = _marks_of(names)["masked_words"]
  problem_type, labels = facts.get("problem_type"), facts.get("labels")
  if any(name.startswith(("electra/", "discriminator_predictions/")) for name in names):
    return _guess_head_of_electra(names, facts)
  if "cls/squad/output_weights" in names:
    return Head("squad")
  if "output_weights" in names:
    if "output_bias" not in names:
      return Head("swag")
    if facts.get("task_name") == "ner":
      return Head("ner", labels)
    return Head("sentences", labels, problem_type)
  has_words, has_next = word_bias in names, "cls/seq_relationship/output_bias" in names
  if has_words and has_next:
    return Head("pretraining")
  return Head("masked_words" if has_words else "next_sentence" if has_next else "none")


def _guess_head_of_electra(names: set[str], facts: Mapping[str, Any]) -> Head:
  if "discriminator_predictions/dense_1/bias" in names:
    return Head("pretraining")
  if "output_bias" in names:  # of transformers' class
    return Head("sentences", facts.get("labels"), facts.get("problem_type"))
  tasks = {name.split("/")[1] for name in names if name.startswith("task_specific/")}
  # A run without ELECTRA's recipe has BERT's head for questions; that for choices is BERT's always.
  if "squad" in tasks or "cls/squad/output_weights" in names:
    return Head("squad")
  if "output_weights" in names:
    return Head("swag")
  if tasks:
    name = "ner" if facts.get("task_name") == "ner" else "sentences"
    return Head(name, facts.get("labels"), facts.get("problem_type"))
  return Head("masked_words" if "generator_predictions/output_bias" in names else "none")


# A variable of each head. Classifiers of sentences and of tokens have the same ones.
_MARKS = {
  "pretraining": "cls/seq_relationship/output_bias",
  "masked_words": "cls/predictions/output_bias",
  "next_sentence": "cls/seq_relationship/output_bias",
  "sentences": "output_bias",
  "ner": "output_bias",
  "squad": "cls/squad/output_bias",
  "swag": "output_weights",
}


# Those of other names, by the scope of the encoder.
_OTHER_MARKS = {
  "electra/": {
    "pretraining": "discriminator_predictions/dense_1/bias",
    "next_sentence": "discriminator_predictions/dense_1/bias",
    "masked_words": "generator_predictions/output_bias",
    "ner": "",  # its name has that of the task
  },
  "roberta/": {"masked_words": "lm_head/output_bias"},
  "distilbert/": {"masked_words": "vocab_projector/output_bias"},
}


def _marks_of(variables: Iterable[str]) -> dict[str, str]:
  """A variable of each head that a model with these variables can have."""
  variables = list(variables)
  for scope, marks in _OTHER_MARKS.items():
    if any(name.startswith(scope) for name in variables):
      return {**_MARKS, **marks}
  return _MARKS


def check_head(name: str, variables: Iterable[str]) -> None:
  """Checks that a model has a head, so that transformers does not start one from random values.

  Args:
    name: a key of `HEADS`.
    variables: names of the model's.

  Raises:
    ValueError: it does not.
  """
  variables = set(variables)
  mark = _marks_of(variables).get(name)
  if mark and mark not in variables:
    raise ValueError(f"--head={name}: the checkpoint has no such head (no variable {mark}).")


def tensors_of_head(
  tensors: Mapping[str, np.ndarray], head: Head, family: str
) -> Mapping[str, np.ndarray]:
  """The tensors that transformers' class has. ELECTRA's checkpoints hold two models."""
  if family != "electra":
    return tensors
  if head.name == "masked_words" and any(name.startswith("generator/") for name in tensors):
    shared = [name for name in tensors if name.startswith(("electra/embeddings/", "generator_p"))]
    own = {name: "electra/" + name.removeprefix("generator/") for name in tensors}
    generator = {own[name]: tensors[name] for name in own if name.startswith("generator/")}
    return {**{name: tensors[name] for name in shared}, **generator}
  others = ["generator/", "generator_predictions/", "discriminator_predictions/", "task_specific/"]
  others = [scope for scope in others if scope != _SCOPES_OF_ELECTRA.get(head.name)]
  kept = {name: tensors[name] for name in tensors if not name.startswith(tuple(others))}
  # The name of a task is free; transformers has one name for all heads of tokens.
  return {re.sub("^task_specific/[^/]+/", "task_specific/ner/", n): v for n, v in kept.items()}


_SCOPES_OF_ELECTRA = {
  "pretraining": "discriminator_predictions/",
  "masked_words": "generator_predictions/",
  "ner": "task_specific/",
}
