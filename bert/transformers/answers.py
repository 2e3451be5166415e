"""Answers of the models' outputs, as transformers' pipelines give them.

Letters in shapes: S = sequence length, C = number of classes, V = vocabulary size.
"""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from bert.tasks.answering import sigmoid, softmax

STRATEGIES = ("none", "simple", "first", "average", "max")
FUNCTIONS = ("softmax", "sigmoid", "none")


def of_texts(logits: np.ndarray, config, function: str | None = None) -> list[dict[str, Any]]:
  """Scores the labels of a text, the likeliest first.

  Args:
    logits: `[C]`.
    config: of the model, with `id2label`.
    function: one of `FUNCTIONS`; by default what the configuration means.

  Raises:
    ValueError: there is no such function.
  """
  if function is None:
    several = config.problem_type == "multi_label_classification" or config.num_labels == 1
    function = "sigmoid" if several else "softmax"
    function = "none" if config.problem_type == "regression" else function
  if function not in FUNCTIONS:
    raise ValueError(f"function_to_apply is {function!r}; known: {', '.join(FUNCTIONS)}.")
  scores = softmax(logits) if function == "softmax" else logits
  scores = sigmoid(logits) if function == "sigmoid" else scores
  found = [{"label": config.id2label[i], "score": float(s)} for i, s in enumerate(scores)]
  return sorted(found, key=lambda each: -each["score"])


# ---------------------------------------------------------------------------------------------
# Entities.


class Token(NamedTuple):
  """A token with its scores."""

  place: int  # in the sequence
  word: str  # the token itself
  scores: np.ndarray  # `[C]`, probabilities
  start: int | None  # in the text
  end: int | None
  is_subword: bool  # whether it goes on with the word before it


def tokens_of(text: str, encoded, logits: np.ndarray, tokenizer) -> list[Token]:
  """Lists the tokens of a text that are not special, with their scores.

  Args:
    text: the text.
    encoded: of one text, with `special_tokens_mask` and, of a fast tokenizer, `offset_mapping`.
    logits: `[S, C]`.
    tokenizer: that made `encoded`.
  """
  probabilities, found = softmax(logits), []
  ids, special = np.asarray(encoded["input_ids"])[0], np.asarray(encoded["special_tokens_mask"])[0]
  offsets = np.asarray(encoded["offset_mapping"])[0] if "offset_mapping" in encoded else None
  for index, (number, hidden) in enumerate(zip(ids, special, strict=True)):
    if hidden:
      continue
    word = tokenizer.convert_ids_to_tokens(int(number))
    start, end = (None, None) if offsets is None else map(int, offsets[index])
    continues = word.startswith("##")
    if start is not None and end is not None and not continues:
      # Other vocabularies mark beginnings: a token without a space before it goes on.
      continues = start > 0 and not text[start - 1 : start].isspace() and not text[start].isspace()
      continues = continues and end - start != len(word)
    if number == tokenizer.unk_token_id and start is not None:
      word, continues = text[start:end], False
    found.append(Token(index, word, probabilities[index], start, end, continues))
  return found


def of_tokens(
  text: str,
  tokens: Sequence[Token],
  config,
  tokenizer,
  strategy: str = "none",
  ignored: Sequence[str] = ("O",),
) -> list[dict[str, Any]]:
  """Finds the entities of a text.

  Args:
    text: the text.
    tokens: of `tokens_of`.
    config: of the model, with `id2label`.
    tokenizer: of the model.
    strategy: one of `STRATEGIES`.
    ignored: labels, or types of entities, that are left out.

  Raises:
    ValueError: there is no such strategy, or it needs a fast tokenizer.
  """
  if strategy not in STRATEGIES:
    raise ValueError(f"aggregation_strategy is {strategy!r}; known: {', '.join(STRATEGIES)}.")
  if strategy not in ("none", "simple") and any(token.start is None for token in tokens):
    raise ValueError(f"aggregation_strategy={strategy!r} needs a fast tokenizer: use_fast=True.")
  if strategy in ("none", "simple"):
    entities = [_entity(token, token.scores, config) for token in tokens]
  else:
    entities = [_of_word(word, text, config, tokenizer, strategy) for word in _words(tokens)]
  if strategy != "none":
    entities = _grouped(entities, tokenizer)
  return [
    each
    for each in entities
    if each.get("entity") not in ignored and each.get("entity_group") not in ignored
  ]


def _entity(token: Token, scores: np.ndarray, config) -> dict[str, Any]:
  best = int(scores.argmax())
  return {
    "entity": config.id2label[best],
    "score": scores[best],
    "index": token.place,
    "word": token.word,
    "start": token.start,
    "end": token.end,
  }


def _words(tokens: Sequence[Token]) -> list[list[Token]]:
  words: list[list[Token]] = []
  for token in tokens:
    if token.is_subword and words:
      words[-1].append(token)
    else:
      words.append([token])
  return words


def _of_word(word: Sequence[Token], text: str, config, tokenizer, strategy: str) -> dict[str, Any]:
  del text
  scores = word[0].scores
  if strategy == "average":
    scores = np.mean([token.scores for token in word], axis=0)
  elif strategy == "max":
    scores = max((token.scores for token in word), key=lambda values: values.max())
  entity = _entity(word[0], scores, config)
  entity["word"] = tokenizer.convert_tokens_to_string([token.word for token in word])
  return {**entity, "end": word[-1].end}


def _grouped(entities: list[dict[str, Any]], tokenizer) -> list[dict[str, Any]]:
  """Joins neighbours of one type; `B-` begins a new entity."""
  groups: list[list[dict[str, Any]]] = []
  for entity in entities:
    prefix, kind = _parts(entity["entity"])
    if groups and _parts(groups[-1][-1]["entity"])[1] == kind and prefix != "B":
      groups[-1].append(entity)
    else:
      groups.append([entity])
  return [
    {
      "entity_group": _parts(group[0]["entity"])[1],
      "score": np.mean([each["score"] for each in group]),
      "word": tokenizer.convert_tokens_to_string([each["word"] for each in group]),
      "start": group[0]["start"],
      "end": group[-1]["end"],
    }
    for group in groups
  ]


def _parts(label: str) -> tuple[str, str]:
  """Splits `B-PER`; a label without a prefix counts as inside."""
  return (label[0], label[2:]) if label[:2] in ("B-", "I-") else ("I", label)


# ---------------------------------------------------------------------------------------------
# Masked words.


def of_mask(
  text: str, ids: np.ndarray, logits: np.ndarray, tokenizer, top_k: int, targets=None
) -> list:
  """Finds words for the mask; a list for each of several masks.

  Args:
    text: the text, for messages.
    ids: `[S]`.
    logits: `[S, V]`.
    tokenizer: of the model.
    top_k: number of words.
    targets: words to choose from, or None for all.

  Raises:
    ValueError: the text has no mask, or no target is in the vocabulary.
  """
  places = np.flatnonzero(ids == tokenizer.mask_token_id)
  if not len(places):
    raise ValueError(f"There is no {tokenizer.mask_token} in {text!r:.80}.")
  allowed = None if targets is None else _targets(targets, tokenizer)
  rows = []
  for place in places:
    probabilities = softmax(logits[place])
    order = np.argsort(-probabilities, kind="stable") if allowed is None else np.array(allowed)
    order = order[np.argsort(-probabilities[order], kind="stable")][:top_k]
    row = []
    for word in order:
      filled = ids.copy()
      filled[place] = word
      kept = (
        filled[filled != tokenizer.pad_token_id] if tokenizer.pad_token_id is not None else filled
      )
      row.append(
        {
          "score": float(probabilities[word]),
          "token": int(word),
          "token_str": tokenizer.decode([int(word)]),
          "sequence": tokenizer.decode(
            [int(each) for each in kept], skip_special_tokens=len(places) == 1
          ),
        }
      )
    rows.append(row)
  return rows[0] if len(rows) == 1 else rows


def _targets(targets, tokenizer) -> list[int]:
  targets = [targets] if isinstance(targets, str) else list(targets)
  vocab = tokenizer.get_vocab()
  found = []
  for target in targets:
    number = vocab.get(target)
    if number is None:
      pieces = tokenizer(target, add_special_tokens=False)["input_ids"]
      number = pieces[0] if pieces else None
    if number is not None:
      found.append(int(number))
  if not found:
    raise ValueError("At least one target must be provided that the vocabulary has.")
  return list(dict.fromkeys(found))


# ---------------------------------------------------------------------------------------------
# Questions.


def of_question(
  question: str,
  context: str,
  pipe,
  top_k: int = 1,
  doc_stride: int | None = None,
  max_answer_len: int = 15,
  max_seq_len: int | None = None,
  max_question_len: int = 64,
  handle_impossible_answer: bool = False,
  align_to_words: bool = True,
  **others,
) -> list[dict[str, Any]]:
  """Finds the likeliest answers in a context.

  Args:
    question: the question.
    context: where the answer is.
    pipe: with `model`, `tokenizer` (a fast one) and `_predict`.
    top_k: number of answers.
    doc_stride: tokens that two windows share; at most half a window, 128 by default.
    max_answer_len: of an answer, in tokens.
    max_seq_len: of a window, in tokens; 384 by default, or the model's if that is less.
    max_question_len: of the question, in tokens.
    handle_impossible_answer: whether "" is a possible answer.
    align_to_words: whether answers are whole words.
    **others: refused.

  Raises:
    ValueError: an argument is out of range or unknown.
  """
  del max_question_len
  if others:
    raise ValueError(f"Unknown arguments: {', '.join(others)}.")
  if top_k < 1 or max_answer_len < 1:
    raise ValueError(f"top_k is {top_k} and max_answer_len {max_answer_len}; at least 1 is needed.")
  tokenizer = pipe.tokenizer
  longest = min(tokenizer.model_max_length, 384) if max_seq_len is None else max_seq_len
  stride = min(longest // 2, 128) if doc_stride is None else doc_stride
  if stride >= longest:
    raise ValueError(f"doc_stride ({stride}) is not below max_seq_len ({longest}).")
  encoded = tokenizer(
    question,
    context,
    truncation="only_second",
    max_length=longest,
    stride=stride,
    return_overflowing_tokens=True,
    return_offsets_mapping=True,
    padding=True,
    return_tensors="np",
  )
  outputs, found, impossible = pipe._predict(encoded), [], 1.0
  for window in range(len(encoded["input_ids"])):
    allowed = np.array([part == 1 for part in encoded.sequence_ids(window)])
    allowed[0] = True  # [CLS], which takes a share where no answer is likely
    start, end = (
      softmax(np.where(allowed, outputs[name][window], -10000.0))
      for name in ("start_logits", "end_logits")
    )
    impossible = min(impossible, float(start[0] * end[0]))
    start[0] = end[0] = 0.0
    # Several spans may be parts of the same words.
    count = 2 * top_k + 10 if align_to_words else top_k
    found += _spans(start, end, max_answer_len, count, window)
  by_text: dict[str, dict[str, Any]] = {}
  for score, first, last, window in found:
    begins, ends = _characters(encoded, window, first, last, align_to_words)
    text = context[begins:ends]
    new = {"score": 0.0, "start": begins, "end": ends, "answer": text}
    by_text.setdefault(text.lower(), new)["score"] += score  # windows overlap
  answers = list(by_text.values())
  if handle_impossible_answer:
    answers.append({"score": impossible, "start": 0, "end": 0, "answer": ""})
  return sorted(answers, key=lambda each: -each["score"])[:top_k]


def _spans(start, end, longest: int, count: int, window: int) -> list[tuple]:
  """Lists the likeliest spans of at most `longest` tokens: (score, first, last, window)."""
  scores = np.tril(np.triu(np.outer(start, end)), longest - 1)
  best = np.argsort(-scores, axis=None, kind="stable")[:count]
  places = np.stack(np.unravel_index(best, scores.shape), axis=1)
  return [(float(scores[i, j]), int(i), int(j), window) for i, j in places if scores[i, j] > 0]


def _characters(encoded, window: int, first: int, last: int, whole_words: bool) -> tuple[int, int]:
  if whole_words:
    begins = encoded.token_to_word(window, first)
    ends = encoded.token_to_word(window, last)
    if begins is not None and ends is not None:
      return (
        encoded.word_to_chars(window, begins, sequence_index=1)[0],
        encoded.word_to_chars(window, ends, sequence_index=1)[1],
      )
  offsets = encoded["offset_mapping"][window]
  return int(offsets[first][0]), int(offsets[last][1])
