"""Named entities, and other tags of words: features of sentences, and scores.

  train = conll_files.read_conll("train.conll")
  labels = label_schemes.model_labels(train.types(), "bio")
  features = convert_examples_to_features(train.examples, labels, "bio", 128, tokenizer)

Words have labels, but the model sees sub-word tokens: the first one of a word represents it, the
others are neither trained nor predicted (Devlin et al. 2018, arXiv:1810.04805, section 5.3). A
sentence too long for the model is read in overlapping windows, and each word is predicted in the
window with most context around it. So every word of a file has exactly one prediction.

Pure Python and NumPy, no TensorFlow; seqeval computes the scores.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

import numpy as np
from absl import logging

from bert.tasks.conll_files import TaggedSentence
from bert.tasks.label_schemes import Entity, convert_labels, entities_of, recognise, split_label
from bert.tasks.windows import windows
from bert.text.sequence_layout import layout_of

# ---------------------------------------------------------------------------------------------
# From sentences to windows.

NO_LABEL = -1

# Sentences whose first window is logged.
_LOGGED = 5


class TagFeatures:
  """One window of one sentence.

  Attributes:
    input_ids: `max_seq_length` ints: [CLS], tokens, [SEP], then zeros.
    input_mask: 1 for a token, 0 for padding.
    segment_ids: 0, or another number for all tokens.
    label_ids: the label's number at the first token of each word that is predicted in this window;
      `NO_LABEL` elsewhere, which has no weight in the loss.
    word_mask: 1 at the first tokens of these words, also if their labels are unknown.
  """

  def __init__(self, input_ids, input_mask, segment_ids, label_ids, word_mask):
    self.input_ids = input_ids
    self.input_mask = input_mask
    self.segment_ids = segment_ids
    self.label_ids = label_ids
    self.word_mask = word_mask


def owners(spans: Sequence[tuple[int, int]], num_pieces: int) -> np.ndarray:
  """Returns each token's window with most context on the side where it has less: int `[N]`.

  Example:
    >>> owners(windows(10, 6, 3), 10).tolist()
    [0, 0, 0, 0, 0, 1, 1, 2, 2, 2]
  """
  best = np.full(num_pieces, -1)
  owner = np.zeros(num_pieces, np.int64)
  for index, (start, end) in enumerate(spans):
    left = np.arange(end - start)
    context = np.minimum(left, left[::-1])
    is_better = context > best[start:end]
    best[start:end][is_better] = context[is_better]
    owner[start:end][is_better] = index
  return owner


def convert_examples_to_features(
  examples: Iterable[TaggedSentence],
  label_list: Sequence[str],
  scheme: str,
  max_seq_length: int,
  tokenizer,
  stride: int | None = None,
  label_scheme: str | None = None,
  shown: int = _LOGGED,
) -> Iterator[TagFeatures]:
  """Yields the windows of all sentences; in order, the words predicted in them are all words.

  Args:
    examples: sentences, with labels or without.
    label_list: the model's labels. Other labels have no weight in the loss.
    scheme: the scheme of these labels.
    max_seq_length: the number of tokens in a window, [CLS] and [SEP] included.
    tokenizer: a `tokenization.FullTokenizer`.
    stride: the distance between the beginnings of two windows; by default half a window.
    label_scheme: the scheme of the sentences' labels; by default `scheme`.
    shown: of how many sentences the first window is logged; those of the rest of the first five
      are debug messages.

  Raises:
    ValueError: `max_seq_length` leaves no room, or `stride` would skip tokens.
  """
  stride = check_lengths(max_seq_length, stride)
  label_ids = {label: i for i, label in enumerate(label_list)}
  for index, example in enumerate(examples):
    ids = [NO_LABEL] * len(example.words)
    if example.labels is not None:
      labels = convert_labels(example.labels, label_scheme or scheme, scheme)
      ids = [label_ids.get(label, NO_LABEL) for label in labels]
    windows_of_example = _windows_of(example, ids, tokenizer, max_seq_length, stride)
    for number, (feature, tokens) in enumerate(windows_of_example):
      if index < _LOGGED and not number:
        level = logging.INFO if index < shown else logging.DEBUG
        _log_window(example, tokens, feature, level)
      yield feature


def _windows_of(example, label_ids, tokenizer, max_seq_length, stride):
  """Yields a sentence's windows, and the tokens of each."""
  layout = layout_of(tokenizer)
  for tokens, places in windows_of_words(example.words, tokenizer, max_seq_length, stride):
    labels, is_word = [NO_LABEL] * max_seq_length, [0] * max_seq_length
    for place, word in places.items():
      labels[place] = label_ids[word]
      is_word[place] = 1
    pad_ids, padding = layout.padding(tokens, max_seq_length)
    feature = TagFeatures(
      input_ids=tokenizer.convert_tokens_to_ids(tokens) + pad_ids,
      input_mask=[1] * len(tokens) + padding,
      segment_ids=[0] * max_seq_length,
      label_ids=labels,
      word_mask=is_word,
    )
    yield feature, tokens


def windows_of_words(
  words: Iterable[str], tokenizer, max_seq_length: int, stride: int
) -> Iterator[tuple[list[str], dict[int, int]]]:
  """Yields the windows of a sentence: its tokens, [CLS] and [SEP] included, and its words.

  These are the places of the first tokens of words that are predicted in this window, each with the
  number of its word; all windows together have each word once, in order.
  """
  pieces, word_of_first_piece = [], {}
  layout = layout_of(tokenizer)
  tokenize_word = getattr(tokenizer, "tokenize_word", tokenizer.tokenize)
  for index, word in enumerate(words):
    word_of_first_piece[len(pieces)] = index
    # A word of control characters only has no token, but needs a position for its prediction.
    pieces += tokenize_word(word) or [layout.unk]
  spans = windows(len(pieces), max_seq_length - 2, stride)
  owner = owners(spans, len(pieces)).tolist()
  for index, (start, end) in enumerate(spans):
    tokens, _ = layout.join(pieces[start:end])
    yield (
      tokens,
      {
        piece - start + 1: word_of_first_piece[piece]
        for piece in range(start, end)
        if piece in word_of_first_piece and owner[piece] == index
      },
    )


def check_lengths(max_seq_length: int, stride: int | None) -> int:
  """Returns the stride, by default half a window.

  Raises:
    ValueError: `max_seq_length` leaves no room, or the stride would skip tokens.
  """
  capacity = max_seq_length - 2
  if capacity < 1:
    raise ValueError(f"max_seq_length is {max_seq_length}, but must be at least 3.")
  stride = stride or max(capacity // 2, 1)
  if not 0 < stride <= capacity:
    raise ValueError(f"The stride is {stride}, but must be between 1 and max_seq_length - 2.")
  return stride


def padding_features(max_seq_length: int) -> TagFeatures:
  """Pads a batch to a fixed size, as TPUs need: no token, no word."""
  zeros = [0] * max_seq_length
  return TagFeatures(zeros, zeros, zeros, [NO_LABEL] * max_seq_length, zeros)


def _log_window(example, tokens, feature, level) -> None:
  logging.log(level, "*** Example ***")
  logging.log(level, "guid: %s", example.guid)
  logging.log(level, "tokens: %s", " ".join(tokens))
  for name in ("input_ids", "input_mask", "segment_ids", "label_ids"):
    logging.log(level, "%s: %s", name, " ".join(map(str, getattr(feature, name))))


def by_sentence(values: np.ndarray, examples: Sequence[TaggedSentence]) -> list[np.ndarray]:
  """Splits values, `[words, ...]`, into sentences; a ValueError if there are more or fewer."""
  lengths = [len(example.words) for example in examples]
  if len(values) != sum(lengths):
    raise ValueError(f"There are {len(values)} predictions for {sum(lengths)} words.")
  return np.split(values, np.cumsum(lengths)[:-1])


# ---------------------------------------------------------------------------------------------
# Scores, and entities as text.


def score(
  gold: Sequence[Sequence[str]],
  predicted: Sequence[Sequence[str]],
  gold_scheme: str = "bio",
  predicted_scheme: str = "bio",
) -> dict[str, float]:
  """Computes precision, recall and F1 of entities: right are those of right type and words.

  Args:
    gold: for each sentence, the labels of its words.
    predicted: the same, as predicted.
    gold_scheme: the scheme of `gold`.
    predicted_scheme: the scheme of `predicted`.

  Returns:
    `precision`, `recall`, `f1` over all entities, as conlleval gives them; `accuracy` over words,
    once malformed labels are those of the entities that they stand for (conlleval compares them as
    they are); and `precision_TYPE`, `recall_TYPE`, `f1_TYPE`, `support_TYPE` (the number of
    entities) for each type. A quotient with denominator 0 is 0.

  Example:
    >>> scores = score([["B-PER", "I-PER", "O", "B-LOC"]], [["B-PER", "O", "O", "B-LOC"]])
    >>> scores["f1"], scores["f1_LOC"], scores["f1_PER"], scores["accuracy"]
    (0.5, 1.0, 0.0, 0.75)
  """
  from seqeval.metrics.sequence_labeling import accuracy_score, precision_recall_fscore_support

  gold = [convert_labels(labels, gold_scheme, "bio") for labels in gold]
  predicted = [convert_labels(labels, predicted_scheme, "bio") for labels in predicted]
  scores = {"accuracy": float(accuracy_score(gold, predicted))}
  pooled = precision_recall_fscore_support(gold, predicted, average="micro", zero_division=0)
  scores.update(zip(("precision", "recall", "f1"), map(float, pooled[:3]), strict=True))
  every = {split_label(label, "bio")[1] for each in (*gold, *predicted) for label in each} - {""}
  by_type = precision_recall_fscore_support(gold, predicted, average=None, zero_division=0)
  names = ("precision", "recall", "f1", "support")
  for name, values in zip(names, by_type, strict=True):
    kind = int if name == "support" else float
    scores.update({f"{name}_{t}": kind(v) for t, v in zip(sorted(every), values, strict=True)})
  return scores


def format_scores(scores: Mapping[str, float]) -> str:
  """Writes the scores as a table, one line for each type and one for all."""
  names = ("precision", "recall", "f1")
  types = [key.removeprefix("support_") for key in scores if key.startswith("support_")]
  rows: list[tuple] = [
    (t, *(scores[f"{n}_{t}"] for n in names), scores[f"support_{t}"]) for t in types
  ]
  rows.append(("all", *(scores[n] for n in names), sum(row[-1] for row in rows)))
  width = max(len(row[0]) for row in rows)
  lines = [f"{'':{width}}" + "".join(f"{name:>11}" for name in (*names, "entities"))]
  lines += [
    f"{row[0]:>{width}}" + "".join(f"{value:11.4f}" for value in row[1:-1]) + f"{row[-1]:11d}"
    for row in rows
  ]
  return "\n".join(lines)


def describe_entities(
  example: TaggedSentence, entities: Iterable[Entity], probabilities: Sequence[float]
) -> dict:
  """Describes a sentence and its entities, for JSON, from the probability of each word's label.

  Returns:
    `id`; `text`, the words with a space between them; `entities`, each with `type`, `text`, `start`
    and `end` (exclusive, in characters of the text), `first_word`, `last_word`, and `probability`,
    that all of its words have these labels: the product, because the model labels each word
    independently.
  """
  starts = np.cumsum([0, *(len(word) + 1 for word in example.words)]).tolist()
  ends = [start - 1 for start in starts[1:]]
  text = " ".join(example.words)
  found = entity_records(text, starts[:-1], ends, entities, probabilities)
  return {"id": example.guid, "text": text, "entities": found}


def entities_of_tags(
  text: str,
  tags: Sequence[str],
  starts: Sequence[int],
  ends: Sequence[int],
  probabilities: Sequence[float],
  labels: Sequence[str] = (),
) -> list[dict]:
  """Makes the records of the entities that tags mean; none if the model's labels are plain tags.

  Without `labels`, all those of the model, the scheme is that of `tags`.
  """
  scheme = recognise(labels or tags)
  found = [] if scheme == "plain" else entities_of(tags, scheme)
  return entity_records(text, starts, ends, found, probabilities)


def entity_records(
  text: str,
  starts: Sequence[int],
  ends: Sequence[int],
  entities: Iterable[Entity],
  probabilities: Sequence[float],
) -> list[dict]:
  """Makes the `entities` of `describe_entities`, for words anywhere in a text.

  Starts are the first characters of words, ends the ones after their last; probabilities are of the
  predicted labels.
  """
  found = []
  for entity_type, first, end in entities:
    start, stop = int(starts[first]), int(ends[end - 1])
    found.append(
      {
        "type": entity_type,
        "text": text[start:stop],
        "start": start,
        "end": stop,
        "first_word": first,
        "last_word": end - 1,
        "probability": float(np.prod(probabilities[first:end], dtype=np.float64)),
      }
    )
  return found
