"""TinyBERT's data augmentation: more training rows, in which words are replaced by likely ones.

Every word that is not a stop word gets candidates: a word of one piece those that a masked language
model prefers in its place, a word of several pieces its neighbours in GloVe. Then each of N
variants of the text replaces each such word with probability p by one of its M candidates
(arXiv:1909.10351, section 3.3).

  augmentor = Augmentor(tokenizer, best_words, neighbours, random.Random(1))
  augmentor.variants("A fine film.", count=20)        # the text itself comes first
"""

import itertools
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from bert import tokenization
from bert.io import text_lines
from bert.io.tables import DataError

# Those of NLTK; a word with an apostrophe is never replaced anyway.
_STOP_WORDS = re.findall(
  r"\w+",
  """
  i me my myself we our ours ourselves you your yours yourself yourselves he him his himself she
  her hers herself it its itself they them their theirs themselves this that these those am is are
  was were be been being have has had having do does did doing a an the and but if or because as
  until while of at by for with about against between into through during before after above below
  to from up down in out on off over under again further then once here there all any both each
  few more most other some such no nor not only own same so than too very s t can will just don
  should now d ll m o re ve y ain aren couldn didn doesn hadn hasn haven isn ma mightn mustn needn
  shan shouldn wasn weren won wouldn
""",
)
# In characters; longer ones are unknown. The 2018 original's limit is 200.
_LONGEST_WORD = 100
# Kept whole where they stand alone.
_SPECIAL = re.compile(r"(?<!\S)(\[(?:UNK|SEP|PAD|CLS|MASK)\])(?!\S)")


class Columns(NamedTuple):
  """Where the texts of a task are."""

  texts: tuple[int, ...]  # numbers of the columns of its `train.tsv`
  has_header: bool  # whether its first line names them
  variants: int  # of each text, that are drawn


TASKS = {
  "cola": Columns((3,), False, 30),
  "mnli": Columns((8, 9), True, 10),
  "mrpc": Columns((3, 4), True, 30),
  "qnli": Columns((1, 2), True, 20),
  "qqp": Columns((3, 4), True, 10),
  "rte": Columns((1, 2), True, 30),
  "sst-2": Columns((0,), True, 20),
  "sts-b": Columns((7, 8), True, 30),
}


class Masked(NamedTuple):
  """A text with a masked word, before the text itself."""

  tokens: list[str]  # word pieces of both
  segments: list[int]  # 0 for the masked text with its [SEP], then 1
  position: int  # of the mask


class Augmentor:
  """Draws variants of texts.

  Attributes:
    random: the generator of all draws.
    replace_prob: p, with which each word is replaced.
  """

  def __init__(
    self,
    tokenizer: tokenization.FullTokenizer,
    best_words: Callable[[Sequence[Masked]], Sequence[Sequence[str]]],
    neighbours: Callable[[str], list[str]],
    generator: random.Random,
    *,
    replace_prob: float = 0.4,
    max_length: int = 512,
  ):
    """Sets what variants are drawn with.

    Args:
      tokenizer: of word pieces, lower-casing.
      best_words: masked texts of one length -> for each the best pieces, the best first.
      neighbours: a word -> others like it, see `Neighbours`; empty for an unknown one.
      generator: of all draws.
      replace_prob: p, with which each word is replaced.
      max_length: of a masked text, in word pieces; longer ones are cut.
    """
    self._basic_tokenizer = tokenizer.basic_tokenizer
    self._piece_tokenizer = tokenization.WordpieceTokenizer(
      tokenizer.vocab, max_input_chars_per_word=_LONGEST_WORD
    )
    self._best_words = best_words
    self._neighbours = neighbours
    self.random = generator
    self.replace_prob = replace_prob
    self._max_length = max_length

  def variants(self, text: str, count: int) -> list[str]:
    """Returns the text, then those of `count` drawn variants that differ from all before them.

    Variants are lower-cased, with a space between any two words or marks of punctuation.
    """
    words = self._words(text)
    candidates = self._candidates(words)
    found = [text]
    for _ in range(count):
      variant = list(words)
      for index, others in candidates.items():
        # Drawn in this order, and both in any case, as in the original.
        other = self.random.choice(others)
        if self.random.random() < self.replace_prob:
          variant[index] = other
      joined = " ".join(variant)
      if joined not in found:
        found.append(joined)
    return found

  def candidates(self, text: str) -> dict[int, list[str]]:
    """Number of each word that may be replaced -> what may take its place."""
    return self._candidates(self._words(text))

  def _words(self, text: str) -> list[str]:
    """Returns words and punctuation; special tokens that stand alone are kept."""
    parts = _SPECIAL.split(text)
    split = self._basic_tokenizer.tokenize
    return [word for n, part in enumerate(parts) for word in ([part] if n % 2 else split(part))]

  def _candidates(self, words: list[str]) -> dict[int, list[str]]:
    pieces = [self._piece_tokenizer.tokenize(word) for word in words]
    starts = np.cumsum([1, *map(len, pieces)]).tolist()
    text = ["[CLS]", *(piece for word in pieces for piece in word)]
    found: dict[int, list[str]] = {}
    masked: dict[int, Masked] = {}
    for index, word in enumerate(words):
      if re.search("[^a-z]", word.lower()) or word.lower() in _STOP_WORDS:
        continue
      found[index] = []
      if len(pieces[index]) > 1:
        found[index] = list(self._neighbours(word))
      elif starts[index] < self._max_length:
        masked[index] = self._masked(text, starts[index])
    if masked:
      best = self._best_words(list(masked.values()))
      for index, others in zip(masked, best, strict=True):
        found[index] = [piece for piece in others if not piece.startswith("##")]
    return {index: others or [words[index]] for index, others in found.items()}

  def _masked(self, text: list[str], position: int) -> Masked:
    with_mask = [*text[:position], "[MASK]", *text[position + 1 :]]
    tokens = [*with_mask, "[SEP]", *text[1:], "[SEP]"][: self._max_length]
    first = min(len(text) + 1, len(tokens))
    return Masked(tokens, [0] * first + [1] * (len(tokens) - first), position)


def augmented_rows(
  rows: Sequence[Sequence[str]], columns: Columns, augmentor: Augmentor
) -> Iterator[list[str]]:
  """Yields the rows of a `train.tsv`, each with the variants of its texts behind it.

  Where a row has two texts, the first stays at its last variant while those of the second follow,
  as in the original.
  """
  for number, row in enumerate(rows):
    if number == 0 and columns.has_header:
      yield list(row)
      continue
    line = list(row)
    for column in columns.texts:
      for text in augmentor.variants(line[column], columns.variants):
        line[column] = text
        yield list(line)


# ---------------------------------------------------------------------------------------------
# Words like others.


class Neighbours:
  """Words that are near each other in GloVe's vectors."""

  def __init__(self, vectors: Mapping[str, Sequence[float]], count: int = 15):
    """Scales the vectors of all words but `<unk>` to length 1; `count` is M, words near another."""
    self._words = [word for word in vectors if word != "<unk>"]
    matrix = np.array([vectors[word] for word in self._words])
    with np.errstate(invalid="ignore"):  # a vector of zeros is near nothing
      self._units = (matrix.T / np.sum(matrix**2, 1) ** 0.5).T
    self._numbers = {word: number for number, word in enumerate(self._words)}
    self._count = count

  def __call__(self, word: str) -> list[str]:
    """Returns the nearest words, the nearest first; empty for one that has no vector.

    They have a capital letter where the word has.
    """
    number = self._numbers.get(word)
    if number is None:
      return []
    nearness = np.dot(self._units, self._units[number].T)
    nearness[number] = -np.inf
    near = [self._words[n] for n in np.argsort(-nearness)[: self._count]]
    return [other.title() for other in near] if word.istitle() else near


def read_vectors(path: str, max_words: int = 100_000) -> dict[str, list[float]]:
  """Returns the first words of a file in GloVe's format: a word and its numbers in each line.

  A "word" with blanks in it, of which GloVe has some, keeps them.

  Raises:
    DataError: names the line that has too few numbers.
    OSError: the file cannot be read.
  """
  vectors: dict[str, list[float]] = {}
  length = 0
  for number, line in enumerate(itertools.islice(text_lines.read_lines(path), max_words), 1):
    items = line.split()
    length = length or len(items) - 1
    try:
      if len(items) <= length or not length:
        raise ValueError
      vectors[" ".join(items[:-length])] = [float(item) for item in items[-length:]]
    except ValueError:
      what = f"a word and {length} numbers" if length else "a word and its numbers"
      raise DataError(f"{what} are needed, not {line!r:.60}", path, number) from None
  return vectors
