"""The class of transformers for a model with its head, and the tensors that such a class has.

No file is touched here.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from bert.checkpoints.load_report import encoder_scope
from bert.families import FAMILIES, form
from bert.families.files import FILES
from bert.tasks import kinds

HEADS = {
  "none": form.ENCODER,
  "pretraining": form.PRETRAINING,
  "masked_words": form.MASKED_TOKENS,
  "next_sentence": form.NEXT_SENTENCE,
  **{kind.name: kind.transformers for kind in kinds.in_transformers()},
}
"""`--head` of convert_checkpoint.py -> a head, by the end of the name of its classes."""


def class_of(
  head: str,
  family: str,
  variables: Iterable[str] | None = None,
  config: Mapping[str, Any] | None = None,
) -> str:
  """Names transformers' class.

  Args:
    head: a value of `HEADS`.
    family: `model_type`.
    variables: names of the model's; without them only `head` is looked at.
    config: content of the model's `bert_config.json`, if known.

  Raises:
    ValueError: it has none that computes the same.

  Example:
    >>> class_of("ForTokenClassification", "electra")
    'ElectraForTokenClassification'
  """
  theirs = FILES[family].transformers
  reason = theirs.missing_heads.get(head)
  if head in theirs.marked_heads and variables is not None:
    mark, its_reason = theirs.marked_heads[head]
    reason = None if mark in variables else its_reason
  if head == form.TEXTS and (config or {}).get("classifier_activation"):
    reason = "its class for sequences has no activation between pooler and classifier"
  if reason:
    word = next(word for word, each in HEADS.items() if each == head)
    raise ValueError(
      f"transformers has no class that computes what this {word} head of {theirs.class_prefix} "
      f"computes: {reason}. Give --head=none to convert the encoder alone."
    )
  return theirs.class_prefix + head


def head_of(architecture: str | None) -> str | None:
  """Finds the head of a class, a value of `HEADS`; None for other classes."""
  return next((head for name, head in _classes() if name == architecture), None)


def class_named(model: str) -> str | None:
  """Finds the class of a model by the name that Keras gives to one of its TensorFlow twin.

  Example:
    >>> class_named("tf_distil_bert_for_masked_lm_1"), class_named("bert")
    ('DistilBertForMaskedLM', None)
  """
  words = re.sub(r"_\d+$", "", model).replace("_", "")
  return next((name for name, _ in _classes() if f"tf{name}".lower() == words), None)


def _classes() -> Iterator[tuple[str, str]]:
  """All classes, and their heads."""
  for files in FILES.values():
    for head in HEADS.values():
      yield files.transformers.class_prefix + head, head


class Head(NamedTuple):
  """The head of a model: what the names of its variables do not show."""

  name: str  # a value of `HEADS`
  labels: Sequence[str] | None = None  # names of its outputs, if known
  problem_type: str | None = None  # one of `heads.PROBLEM_TYPES`, of a head for texts


def guess_head(names: Iterable[str], facts: Mapping[str, Any]) -> Head:
  """Guesses the head of a checkpoint.

  Args:
    names: of its variables. Classifiers of texts and of tokens have the same names.
    facts: the `fingerprint` in the state of a run of this project's scripts, if any; else {}.

  Example:
    >>> guess_head(["cls/squad/output_weights", "bert/pooler/dense/bias"], {}).name
    'ForQuestionAnswering'
    >>> guess_head(["output_weights", "output_bias"], {"problem_type": "regression"}).name
    'ForSequenceClassification'
  """
  names = set(names)
  word_bias = _marks_of(names)[form.MASKED_TOKENS]
  if any(name.startswith(("electra/", "discriminator_predictions/")) for name in names):
    return _guess_head_of_electra(names, facts)
  if "cls/squad/output_weights" in names:
    return Head(form.SPANS)
  if "output_weights" in names:
    return _classifier(facts) if "output_bias" in names else Head(form.CHOICES)
  has_words, has_next = word_bias in names, "cls/seq_relationship/output_bias" in names
  if has_words and has_next:
    return Head(form.PRETRAINING)
  return Head(form.MASKED_TOKENS if has_words else form.NEXT_SENTENCE if has_next else form.ENCODER)


def _classifier(facts: Mapping[str, Any]) -> Head:
  """Returns the head for tokens, if a run says so, else that for texts."""
  of_tokens = kinds.of_class(form.TOKENS)
  if of_tokens and of_tokens.facts.items() <= facts.items():
    return Head(form.TOKENS, facts.get("labels"))
  return Head(form.TEXTS, facts.get("labels"), facts.get("problem_type"))


def _guess_head_of_electra(names: set[str], facts: Mapping[str, Any]) -> Head:
  if "discriminator_predictions/dense_1/bias" in names:
    return Head(form.PRETRAINING)
  if "output_bias" in names:  # of transformers' class
    return Head(form.TEXTS, facts.get("labels"), facts.get("problem_type"))
  tasks = {name.split("/")[1] for name in names if name.startswith("task_specific/")}
  # Without --answer_head=electra a run has BERT's head for questions; that for choices is always
  # BERT's.
  if "squad" in tasks or "cls/squad/output_weights" in names:
    return Head(form.SPANS)
  if "output_weights" in names:
    return Head(form.CHOICES)
  if tasks:
    return _classifier(facts)
  return Head(form.MASKED_TOKENS if "generator_predictions/output_bias" in names else form.ENCODER)


# A variable of each head. Classifiers of texts and of tokens have the same ones.
_MARKS = {
  form.PRETRAINING: "cls/seq_relationship/output_bias",
  form.NEXT_SENTENCE: "cls/seq_relationship/output_bias",
  **{kind.transformers: kind.mark for kind in kinds.in_transformers()},
}


def _marks_of(variables: Iterable[str]) -> dict[str, str]:
  """Lists a variable of each head that a model with these variables can have."""
  scope = encoder_scope(variables)
  family = next(each for each in FAMILIES.values() if f"{each.scope}/" == scope)
  words = {form.MASKED_TOKENS: f"{family.masked_lm}/output_bias"}
  return {**_MARKS, **words, **FILES[family.name].transformers.marks}


def check_head(word: str, variables: Iterable[str]) -> None:
  """Checks that a model has a head, so that transformers does not start one from random values.

  Args:
    word: a key of `HEADS`.
    variables: names of the model's.

  Raises:
    ValueError: it does not.
  """
  variables = set(variables)
  mark = _marks_of(variables).get(HEADS[word])
  if mark and mark not in variables:
    raise ValueError(f"--head={word}: the checkpoint has no such head (no variable {mark}).")


def tensors_of_head(
  tensors: Mapping[str, np.ndarray], head: Head, family: str
) -> Mapping[str, np.ndarray]:
  """The tensors that transformers' class has. ELECTRA's checkpoints hold two models."""
  if family != "electra":
    return tensors
  if head.name == form.MASKED_TOKENS and any(name.startswith("generator/") for name in tensors):
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
  form.PRETRAINING: "discriminator_predictions/",
  form.MASKED_TOKENS: "generator_predictions/",
  form.TOKENS: "task_specific/",
}
