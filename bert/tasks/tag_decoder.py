"""The words of a text with their tags, from the scores of all tokens.

Letters in shapes: N = words of the text, S = sequence length, C = number of labels.
"""

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np

from bert.tasks import label_schemes, tagging
from bert.tasks.decoding import Decoder, Explained, against_others, kind_of, softmax
from bert.tasks.shown import Baseline, Case, Mark, Passage, Shown
from bert.text.offsets import words_with_spans
from bert.tokenization import BasicTokenizer

WORDS = "words"  # what an item of words that are split already has


def text_of(item: Mapping[str, Any]) -> str:
  """Returns the text of an item, whose words may be split already."""
  return " ".join(item[WORDS]) if WORDS in item else next(iter(item.values()))


class _Word(NamedTuple):
  text: str
  start: int  # its first character in the text
  end: int  # and the one after its last


class TagDecoder(Decoder):
  """A row for each window of the text.

  A text is split as BERT's basic tokenizer does: at blanks, and before and after each punctuation
  and each Chinese character, as in the files that taggers learn from. An item may be
  `{"words": [...]}` instead, for words that are split in another way; then the text is these with a
  space between them.

  Answers have `words` and `tags`; `starts` and `ends`, int32 `[N]`, each word's first character and
  the one after its last; `probabilities`, float32 `[N]`, of the tags; `num_words`, N; and
  `entities`, see `tagging.entity_records`.
  """

  title: ClassVar = "Named entities"
  inputs = ("text",)
  display = "entities"

  def __init__(
    self,
    kind,
    tokenizer,
    max_seq_length: int,
    label_names: Sequence[str],
    doc_stride: int | None = None,
  ):
    """Takes what a run says.

    The other arguments are those of `Decoder`.

    Args:
      label_names: C names, in the order of the logits.
      doc_stride: number of tokens between the starts of two windows; by default half a window.

    Raises:
      ValueError: a length cannot be.
    """
    super().__init__(kind, tokenizer, max_seq_length)
    self._labels = list(label_names)
    self.label_names = self._labels
    self._stride = tagging.check_lengths(max_seq_length, doc_stride)
    basic = getattr(tokenizer, "basic_tokenizer", None)
    chinese = getattr(basic, "tokenize_chinese_chars", True)
    self._basic = BasicTokenizer(do_lower_case=False, tokenize_chinese_chars=chinese)

  @classmethod
  def of_run(cls, facts, settings, tokenizer, max_seq_length, *, doc_stride=None):
    """Makes that of a run, whose stride it has where the option is None."""
    # None, the default of the flag, is half a window; so is one that a shorter window has not.
    trained_with = settings.get("doc_stride")
    if doc_stride is None and trained_with is not None and trained_with <= max_seq_length - 2:
      doc_stride = trained_with
    return cls(kind_of(facts), tokenizer, max_seq_length, facts["labels"], doc_stride)

  def rows(self, item):
    """Makes the windows; none of a text without a word. Each remembers the places of its words."""
    words = [word.text for word in self._words(item)]
    if not words:
      return []
    made = tagging.windows_of_words(words, self.tokenizer, self.max_seq_length, self._stride)
    return [
      {
        "input_ids": self.tokenizer.convert_tokens_to_ids(tokens),
        "input_mask": [1] * len(tokens),
        "segment_ids": [0] * len(tokens),
        "places": list(places),
      }
      for tokens, places in made
    ]

  def check_not_truncated(self, item):
    """See base class; windows read all of the text."""

  def decode(self, item, rows, scores):
    """Tags each word by its first token, in the window that shows most around it."""
    text, words = text_of(item), self._words(item)
    logits = [each["logits"][row["places"]] for row, each in zip(rows, scores, strict=True)]
    of_words = softmax(np.concatenate([np.zeros([0, len(self._labels)], np.float32), *logits]))
    tags = [self._labels[index] for index in of_words.argmax(axis=1)]
    answer = {
      "ends": np.array([word.end for word in words], np.int32),
      "num_words": len(words),
      "probabilities": of_words.max(axis=1),
      "starts": np.array([word.start for word in words], np.int32),
      "tags": tags,
      "words": [word.text for word in words],
    }
    places = answer["starts"], answer["ends"], answer["probabilities"]
    return {**answer, "entities": tagging.entities_of_tags(text, tags, *places, self._labels)}

  def _words(self, item) -> list[_Word]:
    text = text_of(item)
    if WORDS in item:
      ends = itertools.accumulate(len(word) + 1 for word in item[WORDS])
      places = [(end - 1 - len(word), end - 1) for word, end in zip(item[WORDS], ends, strict=True)]
    else:
      found = [spans for _, spans in words_with_spans(self._basic, text)]
      places = [(spans[0][0], spans[-1][1]) for spans in found]
    return [_Word(text[start:end], start, end) for start, end in places]

  def other_item(self, item):
    """Takes words."""
    if not isinstance(item, Mapping) or WORDS not in item:
      return None
    words = item[WORDS]
    is_list = isinstance(words, list | tuple) and words
    if len(item) > 1 or not is_list or not all(isinstance(each, str) and each for each in words):
      raise ValueError(f'{item!r:.80} is not {{"words": [...]}} with a list of texts.')
    return {WORDS: list(words)}

  def shown(self):
    """Marks entities."""
    return Tags(label_schemes.recognise(self._labels))

  def explained(self, item, rows, answer, scores):
    """Explains the tag of the word of which the model is least sure."""
    if not rows:
      return None
    word = int(np.argmin(answer["probabilities"]))
    places = [(n, place) for n, row in enumerate(rows) for place in row["places"]]
    window, place = places[word]
    weights = {"logits": np.zeros_like(scores[window]["logits"])}
    weights["logits"][place] = against_others(scores[window]["logits"][place])
    what = f"the tag {answer['tags'][word]} of “{answer['words'][word]}”"
    return Explained(what, [weights], [window])

  @classmethod
  def synthetic_example(cls):
    """Returns a sentence with names."""
    return {"text": "Ada Lovelace met Charles Babbage in London on 5 June 1833 ."}

  def predictions(self, answer, scores, raw_scores=False):
    """Lists the entities in the order of the text, by the names that transformers has for them.

    Where tags are no entities, parts of speech say, it lists the words.
    """
    found = answer["entities"]
    if label_schemes.recognise(self._labels) == "plain":
      columns = (answer[name] for name in ("words", "tags", "starts", "ends", "probabilities"))
      names = ("text", "type", "start", "end", "probability")
      found = [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]
    return [
      {
        "label": each["type"],
        "entity_group": each["type"],
        "score": float(each["probability"]),
        "word": each["text"],
        "start": int(each["start"]),
        "end": int(each["end"]),
      }
      for each in found
    ]


# ---------------------------------------------------------------------------------------------
# In reports: marked in the text. Tags that are not entities are one for each word.

NOTHING = "no entity"


class Tags(Shown):
  """Entities in a text."""

  loss_name = "wrong entities"
  loss_help = (
    "Ordered by the number of entities that are missing or wrong, and among equals by how sure "
    "the model was of its tags."
  )
  part_name = "entities"

  def __init__(self, scheme: str = "bio"):
    """Takes the scheme of the model's labels."""
    self._scheme = scheme

  def case(self, item, gold, answer):
    """Marks both in the text; `gold` are the labels of its words."""
    text = " ".join(item["words"]) if "words" in item else item["text"]
    places = list(zip(map(int, answer["starts"]), map(int, answer["ends"]), strict=True))
    predicted = self._parts(answer["tags"])
    found = Case([Passage("predicted", text, _marks(predicted, places))], None, _listed(predicted))
    sure = [float(each) for each in answer["probabilities"]]
    found.confidence = math.prod(sure) if sure else None  # words are labelled independently
    found.predicted_parts = frozenset(predicted)
    if gold is None or len(gold) != len(places):
      return found
    right = self._parts(gold)
    found.passages = [Passage("gold", text, _marks(right, places)), *found.passages]
    found.gold, found.gold_parts = _listed(right), frozenset(right)
    found.is_right = found.gold_parts == found.predicted_parts
    found.loss = float(len(found.gold_parts ^ found.predicted_parts))
    found.pairs = _pairs(right, predicted)
    return found

  def _parts(self, tags: Sequence[str]) -> list[tuple[str, int, int]]:
    """Returns type, first word and the one after the last of each entity."""
    if self._scheme == "plain":
      return [(tag, n, n + 1) for n, tag in enumerate(tags) if tag != "O"]
    return [(e.type, e.start, e.end) for e in label_schemes.entities_of(tags, self._scheme)]

  def baseline(self, gold):
    """Says what marking nothing would score."""
    tags = [tag for each in gold if each is not None for tag in each]
    if not tags:
      return None
    what = "Marking nothing has an F1 of 0, and the right label for words in"
    return Baseline(what, sum(tag == "O" for tag in tags) / len(tags), is_of_examples=False)


def _marks(parts, places) -> tuple[Mark, ...]:
  return tuple(Mark(places[first][0], places[end - 1][1], kind) for kind, first, end in parts)


def _listed(parts) -> str:
  return ", ".join(kind for kind, _, _ in parts) or NOTHING


def _pairs(right, predicted) -> list[tuple[str, str]]:
  """Pairs the types of the same words; what the other side has not is `NOTHING`."""
  of_right = {each[1:]: each[0] for each in right}
  of_predicted = {each[1:]: each[0] for each in predicted}
  return [
    (of_right.get(place, NOTHING), of_predicted.get(place, NOTHING))
    for place in sorted({*of_right, *of_predicted})
  ]
