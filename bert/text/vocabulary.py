"""WordPiece vocabularies: learned from counted words, measured, extended.

  counts = word_counts.count_words(["books.txt"], num_workers=2)
  tokens = learn_vocabulary(counts, vocab_size=8000)
  print(measure(counts, tokens))

Pieces are learned by byte-pair encoding: the two neighbouring pieces that occur most often become
one piece, repeatedly. The trainer of the library `tokenizers`, the extra `roberta`, does this. It
starts from the pieces into which a vocabulary splits the words: a new one has the characters, an
extended one also has its old tokens. Of the learned pieces those are kept that the tokenizer, which
takes the longest piece, uses most.

Every character of the alphabet is a token, alone and as `##` continuation, so a word without a rare
character never becomes [UNK]. Characters that are separate words (punctuation, Chinese) are
never continuations, and have the first form only.
"""

import collections
import itertools
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from absl import logging

from bert.io import installation
from bert.text.vocabulary_file import VocabularyError
from bert.text.word_counts import WordCounts
from bert.tokenization import BasicTokenizer, WordpieceTokenizer

_MAX_WORDS = 500_000  # to learn from: 1.2 GB
_MAX_PIECE_CHARS = 50  # longer pieces occur only in tables and addresses
_MAX_OCCURRENCES = 1 << 26  # of all words, given to the trainer one by one: about a minute
_AT_ONCE = 1000  # occurrences of a word
_MORE_PIECES = 100  # than needed; see `learn_pieces`

# The trainer sees words as text, each piece as one character: from here on none is a blank.
_FIRST_SYMBOL = 0x10000

_UNUSED = re.compile(r"\[unused(\d+)\]")
_FIRST_UNUSED = 99  # the number before [UNK], whose id is 100, in released vocabularies


# ---------------------------------------------------------------------------------------------
# Words -> pieces.


def learn_vocabulary(
  counts: WordCounts,
  vocab_size: int,
  num_unused: int = 0,
  min_count: int = 2,
  max_unique_chars: int = 1000,
) -> list[str]:
  """Learns a vocabulary of exactly `vocab_size` tokens, in the order of their ids.

  In this order: reserved and unused tokens; characters; characters as continuations; learned
  pieces, the most useful first; more unused tokens if there are too few pieces.

  Args:
    counts: of the words to learn from.
    vocab_size: number of tokens.
    num_unused: see `reserved_lines`.
    min_count: pieces (except characters) and words that occur less often are not learned.
    max_unique_chars: the number of characters to keep, the most frequent ones.

  Raises:
    VocabularyError: `vocab_size` is too small for the characters; the message gives the minimum.
    MissingExtraError: the library is not installed.
  """
  lines = reserved_lines(num_unused)
  alphabet = _most_frequent(counts.characters, max_unique_chars)
  lines += [token for token in _character_tokens(alphabet) if token not in lines]
  room = vocab_size - len(lines)
  if room < 0:
    raise VocabularyError(
      f"--vocab_size={vocab_size} is too small: reserved tokens and the {len(alphabet)} characters "
      f"of the text take {len(lines)}. Use at least that, or keep fewer characters with "
      "--max_unique_chars."
    )
  pieces = list(learn_pieces(counts.words, lines, room, min_count))[:room]
  if len(pieces) < room:
    logging.warning(
      "Only %d pieces were found in the text: %d [unused] tokens fill up --vocab_size=%d.",
      len(pieces),
      room - len(pieces),
      vocab_size,
    )
  missing = range(num_unused, num_unused + room - len(pieces))
  return lines + pieces + [f"[unused{number}]" for number in missing]


def reserved_lines(num_unused: int) -> list[str]:
  """Lists the first lines of a vocabulary, at the places where released vocabularies have them.

  [PAD] has id 0. Up to 99 unused tokens follow (with 99, [UNK], [CLS] and [SEP] get their familiar
  100, 101 and 102), then the other reserved ones, then the other unused.

  Example:
    >>> reserved_lines(num_unused=1)
    ['[PAD]', '[unused0]', '[UNK]', '[CLS]', '[SEP]', '[MASK]']
    >>> reserved_lines(num_unused=994).index("[UNK]")
    100
  """
  unused = [f"[unused{number}]" for number in range(num_unused)]
  others = ["[UNK]", "[CLS]", "[SEP]", "[MASK]"]
  return ["[PAD]", *unused[:_FIRST_UNUSED], *others, *unused[_FIRST_UNUSED:]]


def _most_frequent(counts: Mapping[str, int], limit: int) -> list[str]:
  """Keys by falling count, then alphabetically, so that the order is always the same."""
  return sorted(counts, key=lambda key: (-counts[key], key))[:limit]


def _character_tokens(alphabet: Iterable[str]) -> list[str]:
  """Lists the tokens that spell every word over an alphabet.

  Example:
    >>> _character_tokens("ba-")
    ['-', 'a', 'b', '##a', '##b']
  """
  characters = sorted(alphabet)
  return characters + [f"##{character}" for character in characters if not _stands_alone(character)]


def _stands_alone(character: str) -> bool:
  """Tells whether the tokenizer makes a character a separate word."""
  return BasicTokenizer(do_lower_case=False).tokenize("a" + character) == ["a", character]


def learn_pieces(
  words: Mapping[str, int], vocab: Sequence[str], number: int, min_count: int
) -> dict[str, int]:
  """Learns pieces that are not in a vocabulary; the same ones in each run.

  Args:
    words: word -> occurrences.
    vocab: the tokens to start from; words that they cannot spell are not used.
    number: of pieces that are needed. Somewhat more are learned, because those inside others turn
      out to be rarely used.
    min_count: see `learn_vocabulary`.

  Returns:
    Piece -> how many pieces fewer the words have with it, the largest numbers first.
  """
  known = dict.fromkeys(vocab, 0)
  split = {
    word: count
    for word, count in words.items()
    if count >= min_count and len(word) <= _MAX_PIECE_CHARS and word not in known
  }
  tokenizer = WordpieceTokenizer(known)
  pieces_of = {word: tokenizer.tokenize(word) for word in _most_frequent(split, _MAX_WORDS)}
  pieces_of = {word: pieces for word, pieces in pieces_of.items() if len(pieces) > 1}
  if number <= 0 or not pieces_of:
    return {}
  logging.info("Learning %d pieces from %d words.", number, len(pieces_of))
  # In a fixed order, by which the trainer breaks ties.
  used = dict.fromkeys(itertools.chain.from_iterable(pieces_of.values()))
  symbols = {piece: chr(_FIRST_SYMBOL + index) for index, piece in enumerate(used)}
  spelled = {
    "".join(map(symbols.__getitem__, pieces)): words[word] for word, pieces in pieces_of.items()
  }
  spelling = {symbol: piece for piece, symbol in symbols.items()}
  saved = {}  # by each use of a piece
  size = len(symbols) + number + number // 4 + _MORE_PIECES
  for joined in _merged(spelled, size, min_count)[len(symbols) :]:
    first, *rest = map(spelling.__getitem__, joined)
    saved[first + "".join(map(without_joiner, rest))] = len(rest)
  return _gains({piece: each for piece, each in saved.items() if piece not in known}, words, vocab)


def _gains(
  saved: Mapping[str, int], words: Mapping[str, int], vocab: Sequence[str]
) -> dict[str, int]:
  """Counts what pieces save in words if all are added to a vocabulary, the largest numbers first.

  `saved` is piece -> the number of pieces that each of its uses saves.
  """
  tokenizer = WordpieceTokenizer(dict.fromkeys([*vocab, *saved], 0))
  gains = dict.fromkeys(saved, 0)
  for word, count in words.items():
    for piece in tokenizer.tokenize(word):
      if piece in gains:
        gains[piece] += count * saved[piece]
  return dict(sorted(gains.items(), key=lambda item: -item[1]))


def trainer_library() -> Any:
  """Imports `tokenizers`; raises a MissingExtraError if it is not installed."""
  with installation.extra("roberta", "Learning a vocabulary"):
    import tokenizers
  return tokenizers


def _merged(words: Mapping[str, int], size: int, min_count: int) -> list[str]:
  """Returns the characters of words, and what byte-pair encoding joins, up to `size` in all.

  Example:
    >>> _merged({"low": 5, "lot": 3, "ow": 1}, size=6, min_count=2)
    ['l', 'o', 't', 'w', 'lo', 'low']
  """
  library = trainer_library()
  scale = min(1, _MAX_OCCURRENCES / sum(words.values()))
  trainer = library.trainers.BpeTrainer(
    vocab_size=size, min_frequency=max(1, round(min_count * scale)), show_progress=False
  )
  tokenizer = library.Tokenizer(library.models.BPE())
  tokenizer.pre_tokenizer = library.pre_tokenizers.CharDelimiterSplit(" ")
  counts = ((word, max(1, round(count * scale))) for word, count in words.items())
  tokenizer.train_from_iterator(_repeated(counts), trainer)
  ids = tokenizer.get_vocab()
  return sorted(ids, key=ids.__getitem__)


def _repeated(counts: Iterable[tuple[str, int]]) -> Iterator[str]:
  """Writes each word as often as it occurs, as the trainer takes no counts."""
  for word, count in counts:
    for done in range(0, count, _AT_ONCE):
      yield " ".join([word] * min(count - done, _AT_ONCE))


def without_joiner(token: str) -> str:
  """Returns a piece of a word without the "##" of those that continue one."""
  # "##" alone is not a continuation: the tokenizer makes each "#" a word.
  return token[2:] if token.startswith("##") and len(token) > 2 else token


# ---------------------------------------------------------------------------------------------
# Fit of a vocabulary to a text.


class Coverage(NamedTuple):
  """How a vocabulary splits counted words."""

  words: int  # the number of words, with repetitions
  pieces: int  # the number of their pieces; an [UNK] counts as one
  unknown: int  # the number of words that became [UNK]
  examples: list[str]  # the most frequent of these

  def __str__(self):
    text = f"{self.pieces / max(self.words, 1):.3f} pieces per word, "
    text += f"{self.unknown} of {self.words} words are [UNK]"
    text += f" ({self.unknown / max(self.words, 1):.4%})"
    return text + (f", such as {' '.join(self.examples)}" if self.examples else "")


def measure(counts: WordCounts, vocab: Collection[str]) -> Coverage:
  """Tokenizes the counted words; words too long for any vocabulary are not among them."""
  tokenizer = WordpieceTokenizer(dict.fromkeys(vocab, 0))
  pieces = 0
  unknown: dict[str, int] = {}
  for word, count in counts.words.items():
    tokens = tokenizer.tokenize(word)
    pieces += count * len(tokens)
    if tokens == [tokenizer.unk_token]:
      unknown[word] = count
  return Coverage(
    sum(counts.words.values()), pieces, sum(unknown.values()), _most_frequent(unknown, 5)
  )


class TokenSplitter:
  """Splits tokens, continuations such as "##ing" too, into the pieces of a vocabulary.

  Example:
    >>> splitter = TokenSplitter(["un", "##a", "##ble", "##ff"])
    >>> splitter.split("unaffable"), splitter.split("##able"), splitter.split("able")
    (['un', '##a', '##ff', '##a', '##ble'], ['##a', '##ble'], [])
  """

  def __init__(self, vocab: Collection[str]):
    self._whole = WordpieceTokenizer(dict.fromkeys(vocab, 0))
    continuations = [token for token in vocab if without_joiner(token) != token]
    # Continuations without their "##" are looked up as beginnings of words.
    beginnings = map(without_joiner, continuations)
    self._rest = WordpieceTokenizer(dict.fromkeys([*continuations, *beginnings], 0))

  def split(self, token: str) -> list[str]:
    """Splits `token` into others; empty if it cannot be split."""
    body = without_joiner(token)
    pieces = (self._whole if body == token else self._rest).tokenize(body)
    if pieces == ["[UNK]"]:
      return []
    return pieces if body == token else [f"##{pieces[0]}", *pieces[1:]]


# ---------------------------------------------------------------------------------------------
# Extending a vocabulary.


def find_new_pieces(
  counts: WordCounts, vocab: Sequence[str], number: int, min_count: int = 2
) -> list[str]:
  """Finds tokens whose addition to a vocabulary makes a text shorter.

  Half of the places are for characters without which words are [UNK]. The others are for pieces
  learned from words that the vocabulary splits, ordered by what they save: how often a piece would
  be used, times what it saves each time. If there are too few of one kind, the other gets more.

  Args:
    number: of new tokens.
    min_count: see `learn_vocabulary`, as the rest; here it applies to characters too.

  Returns:
    At most `number` tokens: characters, then pieces.
  """
  missing = _missing_characters(counts, vocab)
  missing = {token: count for token, count in missing.items() if count >= min_count}
  characters = _most_frequent(missing, (number + 1) // 2)
  gains = learn_pieces(counts.words, [*vocab, *characters], number - len(characters), min_count)
  pieces = [piece for piece, gain in gains.items() if gain > 0][: number - len(characters)]
  return _most_frequent(missing, number - len(pieces)) + pieces


def _missing_characters(counts: WordCounts, vocab: Collection[str]) -> dict[str, int]:
  """Occurrences of character tokens without which words are [UNK]."""
  known = set(vocab)
  tokenizer = WordpieceTokenizer(dict.fromkeys(known, 0))
  missing: collections.Counter[str] = collections.Counter()
  for word, count in counts.words.items():
    if tokenizer.tokenize(word) == [tokenizer.unk_token]:
      for token in [word[0], *(f"##{character}" for character in word[1:])]:
        missing[token] += count * (token not in known)
  return dict(missing)


def unused_ids(tokens: Sequence[str]) -> list[int]:
  """Ids of the tokens that are reserved for new ones.

  Example:
    >>> unused_ids(["[PAD]", "[unused0]", "a", "[unused1]"])
    [1, 3]
  """
  return [index for index, token in enumerate(tokens) if _UNUSED.fullmatch(token)]


def replace_unused(tokens: Sequence[str], new: Sequence[str]) -> list[str]:
  """Replaces unused tokens by new ones (VocabularyError: too few); all others keep their ids.

  Example:
    >>> replace_unused(["[PAD]", "[unused0]", "a", "[unused1]"], ["b"])
    ['[PAD]', 'b', 'a', '[unused1]']
  """
  free = unused_ids(tokens)
  if len(new) > len(free):
    raise VocabularyError(
      f"{len(new)} new tokens do not fit: the vocabulary has {len(free)} [unusedN] lines."
    )
  replaced = list(tokens)
  for index, token in zip(free, new, strict=False):
    replaced[index] = token
  return replaced
