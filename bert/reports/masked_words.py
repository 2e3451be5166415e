"""Masked words of records and a model's guesses, as examples of a report of pre-training.

Letters in shapes: B = records, S = sequence length, P = masked positions of a record, K = pieces.
"""

import itertools
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from bert.io import record_files
from bert.io.wording import counted
from bert.predicting import masked_words
from bert.reports import words
from bert.reports.subject import Examples
from bert.tasks.shown import Baseline, Case, Mark, Option, Passage, Shown

_AROUND = 40  # tokens on either side of a word
_BATCH = 8  # records
_FIELDS = ("input_ids", "input_mask", "segment_ids", "masked_lm_positions", "masked_lm_ids")


class MaskedWords(Shown):
  """A guess at each masked word, among all pieces of the vocabulary."""

  loss_name = "loss"
  loss_help = "The loss of a word is −ln of the probability of the original one."
  group_name = "in its place"
  item_name = "masked words"
  labels_may_err = False

  def case(self, item, gold, answer):
    """Shows a word in its sentence, and the likeliest pieces."""
    ranked: Sequence[tuple[str, float]] = answer["ranked"]
    predicted, confidence = ranked[0]
    options = [Option(name, p, name == gold, n == 0) for n, (name, p) in enumerate(ranked)]
    chance = answer["probability"]
    if gold not in (name for name, _ in ranked):
      options.append(Option(gold, chance, True))
    return Case(
      [item["passage"]],
      gold,
      predicted,
      is_right=predicted == gold,
      loss=-math.log(max(chance, float(np.finfo(np.float32).tiny))),
      confidence=confidence,
      group=item["in_its_place"],
      options=options,
    )

  def baseline(self, gold):
    """Names the most frequent word."""
    known = list(gold)
    if not known:
      return None
    most = max(sorted(set(known)), key=known.count)
    what = f"Of the masked words below: always “{most}”, the most frequent, would be right for"
    return Baseline(what, known.count(most) / len(known))


def examples_of(
  config: Any, prefix: str, tokenizer: Any, files: Sequence[str], most_records: int
) -> Examples | None:
  """Guesses the masked words of the first records.

  Args:
    config: of the model, a `BertConfig`.
    prefix: of its checkpoint.
    tokenizer: of the records.
    files: with records.
    most_records: that are read.

  Returns:
    None where the records have no masks, or the checkpoint no head for them.
  """
  from bert.checkpoints import reading

  heads = masked_words.heads_of(config, reading.names_and_shapes(prefix))
  records = list(itertools.islice(_records(files), most_records))
  if not records or not heads.words:
    return None
  heads = masked_words.Heads(words=True, generator=heads.generator)
  guess = masked_words.load_engine(config, prefix, heads, is_labelled=True)
  shown, cases, gold, lengths = MaskedWords(), [], [], []
  for batch in _batches(records):
    outputs = {name: np.asarray(value) for name, value in guess(_stacked(batch)).items()}
    for row, record in enumerate(batch):
      for item, right, answer in _words(record, outputs, row, tokenizer):
        cases.append(shown.case(item, right, answer))
        gold.append(right)
        lengths.append(int(record["input_mask"].sum()))
  unknown = [0.0] * len(cases)
  numbers = list(range(1, len(cases) + 1))
  source = counted(len(records), "record")
  return Examples(shown, gold, cases, numbers, lengths, unknown, len(cases), source)


def _records(files: Iterable[str]) -> Iterator[dict[str, np.ndarray]]:
  """Reads records that have masks: name -> int64 `[S]` or `[P]`."""
  from tensorflow.core.example import example_pb2

  for data in itertools.chain.from_iterable(map(record_files.records_of, files)):
    features = example_pb2.Example.FromString(data).features.feature
    found = {name: np.array(features[name].int64_list.value, np.int64) for name in _FIELDS}
    if not len(found["masked_lm_positions"]):
      return
    found["weights"] = np.array(features["masked_lm_weights"].float_list.value)
    yield found


def _batches(records: Sequence) -> Iterator[Sequence]:
  for start in range(0, len(records), _BATCH):
    yield records[start : start + _BATCH]


def _stacked(batch: Sequence[Mapping[str, np.ndarray]]) -> dict[str, np.ndarray]:
  return {name: np.stack([each[name] for each in batch]).astype(np.int32) for name in _FIELDS}


def _words(record, outputs, row: int, tokenizer) -> Iterator[tuple[dict, str, dict]]:
  """Yields the words of a record: its item, what is right, the guesses."""
  tokens = [tokenizer.inv_vocab.get(int(each), "?") for each in record["input_ids"]]
  seen = list(tokens)
  chosen = np.flatnonzero(record["weights"] > 0)
  for n in chosen:
    tokens[record["masked_lm_positions"][n]] = _token(tokenizer, record["masked_lm_ids"][n])
  for n in chosen:
    place = int(record["masked_lm_positions"][n])
    guesses = zip(outputs["ids"][row, n], outputs["probabilities"][row, n], strict=True)
    ranked = [(_token(tokenizer, number), float(share)) for number, share in guesses]
    chance = float(outputs["label_probabilities"][row, n])
    if seen[place] == tokens[place]:
      in_its_place = "the word itself"
    else:
      in_its_place = seen[place] if seen[place] in ("[MASK]", "<mask>") else "another word"
    length = int(record["input_mask"].sum())
    passage = passage_of(tokenizer, tokens[:length], place)
    item = {"passage": passage, "in_its_place": in_its_place}
    yield item, tokens[place], {"ranked": ranked, "probability": chance}


def _token(tokenizer, number) -> str:
  return tokenizer.inv_vocab.get(int(number), f"[id {number}]")


def passage_of(tokenizer: Any, tokens: Sequence[str], place: int) -> Passage:
  """Writes the tokens around one as a text in which it is marked."""
  first = max(0, place - _AROUND)
  text, mark = "", Mark(0, 0)
  pieces = words.pieces_of(tokenizer, tokens[first : place + _AROUND + 1])
  for n, piece in enumerate(pieces, start=first):
    text += f" {piece.text}" if piece.starts_word and text else piece.text
    if n == place:
      mark = Mark(len(text) - len(piece.text), len(text))
  return Passage("text", text, (mark,))
