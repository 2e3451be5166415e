"""One row of a batch as fast tokenizers make it: ids, with all that is known of each.

  row = Encoding([Run(cls), Run(pieces, sequence=0), Run(sep)])
  row.ids, row.tokens, row.offsets, row.word_ids        # of equal length

A row is a few runs of tokens. Tokens, offsets and words of a run are computed when they are asked
for: most training never does. Cutting a row takes slices of its runs, so nothing is copied.
"""

import functools
import itertools
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from bert.transformers import templates
from bert.transformers.templates import Special, Text

# White space, and what stands for a space in the tokens of a byte-level BPE.
_SPACES = "Ġ\t\n\x0b\x0c\r \x85\xa0\u1680" + "".join(map(chr, range(0x2000, 0x200B)))
_SPACES += "\u2028\u2029\u202f\u205f\u3000"

Offsets = tuple[int, int]  # start and end (exclusive) of a token, in characters of its text
Details = tuple[list[str], list[Offsets], list[int | None]]  # tokens, offsets, words


class Pieces:
  """The tokens of a text, or special ones.

  Attributes:
    ids: their ids.
  """

  def __init__(self, ids: list[int], locate: Callable[[], Details]):
    """`locate` computes the rest."""
    self.ids = ids
    self._locate: Callable[[], Details] | None = locate
    self._details: Details | None = None

  @classmethod
  def special(cls, ids: Sequence[int], tokens: Sequence[str]) -> "Pieces":
    """Makes pieces that come from no text."""
    return cls(list(ids), lambda: (list(tokens), [(0, 0)] * len(ids), [None] * len(ids)))

  @property
  def details(self) -> Details:
    """Tokens, offsets and numbers of words."""
    if self._details is None:
      assert self._locate is not None
      self._details, self._locate = self._locate(), None
    return self._details

  def __getstate__(self):
    return {"ids": self.ids, "_details": self.details, "_locate": None}

  def __setstate__(self, state):
    vars(self).update(state)


class Run(NamedTuple):
  """A part of a row: `pieces[start:end]`."""

  pieces: Pieces
  start: int
  end: int
  sequence: int | None  # 0 or 1, of a text; None for special tokens
  type_id: int = 0
  special: int = 0  # 1 for special tokens
  attention: int = 1  # 0 for padding

  @classmethod
  def whole(cls, pieces: Pieces, sequence: int | None, **values: int) -> "Run":
    """All of `pieces`."""
    return cls(pieces, 0, len(pieces.ids), sequence, **values)

  @property
  def size(self) -> int:
    """Number of tokens."""
    return self.end - self.start


class Encoding:
  """A row. Its attributes, all of one length, are those of the library's class of this name.

  Attributes:
    overflowing: the rows of what was cut off.
    sequences: the numbers of its texts.
  """

  def __init__(
    self,
    runs: Sequence[Run],
    overflowing: Sequence["Encoding"] = (),
    sequences: Iterable[int] = (),
  ):
    """See the module; `sequences` are texts that the row has even if they have no token."""
    self.runs = [run for run in runs if run.size]
    self.overflowing = list(overflowing)
    self.sequences = {*sequences, *(run.sequence for run in runs)} - {None}

  @property
  def n_sequences(self) -> int:
    """Number of texts."""
    return len(self.sequences) or 1

  def __len__(self):
    return sum(run.size for run in self.runs)

  def __repr__(self):
    return (
      f"Encoding(num_tokens={len(self)}, attributes=[ids, type_ids, tokens, offsets, "
      "attention_mask, special_tokens_mask, overflowing])"
    )

  def _of_runs(self, value: str) -> list[Any]:
    values = ([getattr(run, value)] * run.size for run in self.runs)
    return list(itertools.chain.from_iterable(values))

  def _of_pieces(self, detail: int) -> list[Any]:
    return [value for run in self.runs for value in run.pieces.details[detail][run.start : run.end]]

  @property
  def ids(self) -> list[int]:
    """Ids of the tokens."""
    return [index for run in self.runs for index in run.pieces.ids[run.start : run.end]]

  @property
  def type_ids(self) -> list[int]:
    """Segment of each token."""
    return self._of_runs("type_id")

  @property
  def attention_mask(self) -> list[int]:
    """1 for a token, 0 for padding."""
    return self._of_runs("attention")

  @property
  def special_tokens_mask(self) -> list[int]:
    """1 for a token that was added, 0 for one of a text."""
    return self._of_runs("special")

  @property
  def sequence_ids(self) -> list[int | None]:
    """The text of each token, 0 or 1; None for added ones."""
    return self._of_runs("sequence")

  @property
  def tokens(self) -> list[str]:
    """The tokens."""
    return self._of_pieces(0)

  @property
  def offsets(self) -> list[Offsets]:
    """Start and end of each token in its text; (0, 0) for added ones."""
    return self._of_pieces(1)

  @property
  def word_ids(self) -> list[int | None]:
    """The number of each token's word in its text; None for added ones."""
    return self._of_pieces(2)

  @property
  def words(self) -> list[int | None]:
    """As `word_ids`."""
    return self.word_ids

  # -------------------------------------------------------------------------------------------
  # From one of token, word, character to another.

  def token_to_sequence(self, token: int) -> int | None:
    """Returns the text of a token; None for an added one, or if there is no such token."""
    return self.sequence_ids[token] if 0 <= token < len(self) else None

  def token_to_word(self, token: int) -> int | None:
    """Returns the number of a token's word."""
    return self.word_ids[token] if self.token_to_sequence(token) is not None else None

  def token_to_chars(self, token: int) -> Offsets | None:
    """Returns start and end of a token in its text."""
    return self.offsets[token] if self.token_to_sequence(token) is not None else None

  def word_to_tokens(self, word: int, sequence: int = 0) -> Offsets | None:
    """Returns the first token of a word, and the one after its last."""
    found = [index for index, each in enumerate(self.word_ids) if each == word]
    if sequence in self.sequences:  # else any text will do
      of = self.sequence_ids
      found = [index for index in found if of[index] == sequence]
    return (found[0], found[-1] + 1) if found else None

  def word_to_chars(self, word: int, sequence: int = 0) -> Offsets | None:
    """Returns start and end of a word in its text."""
    tokens = self.word_to_tokens(word, sequence)
    if tokens is None:
      return None
    offsets = self.offsets
    return offsets[tokens[0]][0], offsets[tokens[1] - 1][1]

  def char_to_token(self, char: int, sequence: int = 0) -> int | None:
    """Returns the token that covers a character; None for a blank between tokens."""
    places = zip(self.offsets, self.sequence_ids, strict=True)
    is_any = sequence not in self.sequences
    for index, ((start, end), of) in enumerate(places):
      if (is_any or of == sequence) and start <= char < end:
        return index
    return None

  def char_to_word(self, char: int, sequence: int = 0) -> int | None:
    """Returns the number of the word that covers a character."""
    token = self.char_to_token(char, sequence)
    return None if token is None else self.word_ids[token]

  # -------------------------------------------------------------------------------------------
  # Rows of rows.

  def truncated(self, length: int, stride: int, side: str) -> "Encoding":
    """Cuts to `length` tokens; what is cut off overflows in rows that overlap by `stride`.

    Raises:
      ValueError: `stride` leaves no room for new tokens in a row.
    """
    total = len(self)
    if length >= total:
      return self
    if length == 0:
      return Encoding([], [*self.overflowing, self], self.sequences)
    if stride >= length:
      raise ValueError(
        f"stride is {stride}, but each row has room for {length} tokens of the text beside special "
        "tokens and the other text; stride must be smaller."
      )
    spans: list[Offsets] = []
    for first in range(0, total, length - stride):
      span = (first, min(first + length, total))
      spans.append(span if side == "right" else (total - span[1], total - span[0]))
      if span[1] == total:
        break
    rows = [self._sliced(start, end) for start, end in spans]
    rows[0].overflowing = rows[1:]
    return rows[0]

  def _sliced(self, start: int, end: int) -> "Encoding":
    runs, done = [], 0
    for run in self.runs:
      first, last = max(start - done, 0), min(end - done, run.size)
      if first < last:
        runs.append(run._replace(start=run.start + first, end=run.start + last))
      done += run.size
    return Encoding(runs, (), self.sequences)

  def joined(self, other: "Encoding") -> "Encoding":
    """Appends another row; each combination of what overflows is a row that overflows."""
    after = [other, *other.overflowing]
    overflowing = [a + b for a in self.overflowing for b in after]
    overflowing += [self + b for b in other.overflowing]
    joined = self + other
    joined.overflowing = overflowing
    return joined

  def __add__(self, other: "Encoding") -> "Encoding":
    return Encoding([*self.runs, *other.runs], (), self.sequences | other.sequences)

  def padded(self, length: int, side: str, pad: Pieces, type_id: int) -> "Encoding":
    """Pads this row and those that overflow to `length` tokens; `pad` is one token."""
    overflowing = [each.padded(length, side, pad, type_id) for each in self.overflowing]
    missing = length - len(self)
    runs = self.runs
    if missing > 0:
      tokens = Pieces.special(pad.ids * missing, pad.details[0] * missing)
      padding = Run.whole(tokens, None, type_id=type_id, special=1, attention=0)
      runs = [padding, *runs] if side == "left" else [*runs, padding]
    return Encoding(runs, overflowing, self.sequences)


# ---------------------------------------------------------------------------------------------
# How texts become a row.


class Spaces(NamedTuple):
  """What becomes of the offsets of a byte-level BPE, whose tokens begin with spaces."""

  trim_offsets: bool = True  # whether spaces belong to no token
  add_prefix_space: bool = False  # whether a space was put before a text, which is not in it


class Template(NamedTuple):
  """Where the texts and the special tokens of a row stand."""

  single: tuple[Special | Text, ...] = (Text(0, 0),)
  pair: tuple[Special | Text, ...] = (Text(0, 0), Text(1, 1))
  spaces: Spaces | None = None  # of a byte-level BPE

  def num_special(self, is_pair: bool) -> int:
    """Counts the special tokens of a row."""
    places = self.pair if is_pair else self.single
    return sum(len(place.ids) for place in places if isinstance(place, Special))

  def join(self, texts: Sequence[Encoding], add_special_tokens: bool) -> Encoding:
    """Joins the rows of one or two texts, which may overflow, to one."""
    if self.spaces and self.spaces.trim_offsets:
      texts = [_changed(text, self._without_spaces) for text in texts]
    joined = Encoding([])
    for place in self.pair if len(texts) > 1 else self.single:
      if isinstance(place, Text):
        text = _changed(texts[place.sequence], functools.partial(_with_type, place.type_id))
        if self.spaces and not add_special_tokens:  # as in the library: only the first row changes
          text.overflowing = [
            _changed(each, functools.partial(_with_type, place.sequence))
            for each in text.overflowing
          ]
        joined = joined.joined(text)
      elif add_special_tokens:
        pieces = Pieces.special(place.ids, place.tokens)
        run = Run.whole(pieces, None, type_id=place.type_id, special=1)
        joined = joined.joined(Encoding([run]))
    return joined

  def _without_spaces(self, run: Run) -> Run:
    """Takes the spaces that its tokens begin and end with out of their offsets."""
    start, end = run.start, run.end
    add_prefix_space = self.spaces is not None and self.spaces.add_prefix_space

    def trimmed() -> Details:
      tokens, offsets, words = run.pieces.details
      tokens, offsets, words = tokens[start:end], offsets[start:end], words[start:end]
      places = [
        _trimmed(token, place, add_prefix_space and (number == 0 or place[0] == 0))
        for number, (token, place) in enumerate(zip(tokens, offsets, strict=True))
      ]
      return tokens, places, words

    return run._replace(pieces=Pieces(run.pieces.ids[start:end], trimmed), start=0, end=run.size)

  def content(self) -> dict[str, Any]:
    """Returns the `post_processor` of a tokenizer.json."""
    if self.spaces:
      first, _, end = self.single
      assert isinstance(first, Special)
      assert isinstance(end, Special)
      ends = {"sep": [end.tokens[0], end.ids[0]], "cls": [first.tokens[0], first.ids[0]]}
      return {"type": "RobertaProcessing", **ends, **self.spaces._asdict()}
    return templates.template(self.single, self.pair)

  @classmethod
  def of(cls, content: Any) -> "Template":
    """Reads the `post_processor` of a tokenizer.json.

    Raises:
      ValueError: it is of another kind.
    """
    kind = (content or {}).get("type")
    if kind is None or kind == "ByteLevel":
      return cls()
    if kind == "TemplateProcessing":
      return cls(_places(content, "single"), _places(content, "pair"))
    if kind == "BertProcessing":
      return cls.of_ends(content["cls"], content["sep"])
    if kind == "RobertaProcessing":
      spaces = Spaces(content.get("trim_offsets", True), content.get("add_prefix_space", True))
      return cls.of_ends(content["cls"], content["sep"], is_roberta=True, spaces=spaces)
    raise ValueError(f"tokenizer.json has the post_processor {kind!r}, which is not supported.")

  @classmethod
  def of_ends(
    cls,
    cls_token: Sequence,
    sep_token: Sequence,
    is_roberta: bool = False,
    spaces: Spaces | None = None,
  ) -> "Template":
    """Makes that of BERT or RoBERTa; each token comes with its id."""
    if not is_roberta:
      single, pair = templates.places_of_ends(cls_token, sep_token)
      return cls(single, pair, spaces)
    first, end = (Special((token,), (index,), 0) for token, index in (cls_token, sep_token))
    places = (first, Text(0, 0), end)
    return cls(places, (*places, end, Text(1, 0), end), spaces)


def _changed(row: Encoding, change: Callable[[Run], Run]) -> Encoding:
  """Changes the runs of a row and of those that overflow."""
  first, *others = (
    Encoding(list(map(change, each.runs)), (), each.sequences) for each in (row, *row.overflowing)
  )
  first.overflowing = others
  return first


def _with_type(type_id: int, run: Run) -> Run:
  return run._replace(type_id=type_id)


def _trimmed(token: str, place: Offsets, has_prefix: bool) -> Offsets:
  """Takes spaces out of a token's place; of a text's first token one of them is not in the text.

  Example:
    >>> _trimmed("ĠĠa", (4, 7), False), _trimmed("Ġa", (0, 1), True)
    ((6, 7), (0, 1))
  """
  start, end = place
  before, after = (
    len(token) - len(rest) for rest in (token.lstrip(_SPACES), token.rstrip(_SPACES))
  )
  start = min(start + max(before - has_prefix, 0), end)
  return start, max(end - after, start) if end >= after else end


def _places(content: Any, name: str) -> tuple[Special | Text, ...]:
  places: list[Special | Text] = []
  for place in content[name]:
    [(kind, value)] = place.items()
    if kind == "Sequence":
      places.append(Text("AB".index(value["id"]), value["type_id"]))
    else:
      special = content["special_tokens"][value["id"]]
      places.append(Special(tuple(special["tokens"]), tuple(special["ids"]), value["type_id"]))
  return tuple(places)
