"""WordPiece vocabularies: learned from counted words, measured, extended.

  counts = word_counts.count_words(["books.txt"], num_workers=2)
  tokens = learn_vocabulary(counts, vocab_size=8000)
  print(measure(counts, tokens))

The learner is that of `tensorflow_text.tools.wordpiece_vocab`: a piece is kept if it occurs often
enough in words that no longer piece covers. It takes a threshold, not an exact size, so
`learn_vocabulary` searches for the threshold that gives slightly too many pieces, and drops
the rarest of them.

Every character of the alphabet is a token, alone and as `##` continuation, so a word without a rare
character never becomes [UNK]. Characters that are separate words (punctuation, Chinese) are
never continuations, and have the first form only.
"""

import collections
import itertools
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import NamedTuple

from absl import logging

from bert.text import piece_learner
from bert.text.vocabulary_file import VocabularyError
from bert.text.word_counts import WordCounts
from bert.tokenization import BasicTokenizer, WordpieceTokenizer

RESERVED_TOKENS = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")

_MAX_INPUT_WORDS = 500_000
_MAX_PIECE_CHARS = 50  # longer pieces occur only in tables and addresses

_UNUSED = re.compile(r"\[unused(\d+)\]")
_FIRST_UNUSED = 99  # the number before [UNK], whose id is 100, in released vocabularies
_SLACK = 0.05  # share of pieces that may be cut off; the search takes longer with a smaller one


# ---------------------------------------------------------------------------------------------
# Words -> pieces.


def learn_vocabulary(
  counts: WordCounts,
  vocab_size: int,
  reserved_tokens: Sequence[str] = RESERVED_TOKENS,
  num_unused: int = 0,
  min_count: int = 2,
  max_unique_chars: int = 1000,
  max_input_words: int = _MAX_INPUT_WORDS,
) -> list[str]:
  """Learns a vocabulary of exactly `vocab_size` tokens, in the order of their ids.

  In this order: reserved and unused tokens; characters; characters as continuations; learned
  pieces, the most frequent first; more unused tokens if there are too few pieces.

  Args:
    counts: of the words to learn from.
    vocab_size: number of tokens.
    reserved_tokens: see `reserved_lines`.
    num_unused: see `reserved_lines`.
    min_count: pieces (except characters) and words that occur less often are not learned.
    max_unique_chars: the number of characters to keep, the most frequent ones.
    max_input_words: the number of words to learn from, the most frequent ones. With 500,000, each
      of the few thresholds that are tried takes two minutes and 0.4 GB.

  Raises:
    VocabularyError: `vocab_size` is too small for the characters; the message gives the minimum.
  """
  lines = reserved_lines(reserved_tokens, num_unused)
  alphabet = _most_frequent(counts.characters, max_unique_chars)
  lines += [token for token in _character_tokens(alphabet) if token not in lines]
  room = vocab_size - len(lines)
  if room < 0:
    raise VocabularyError(
      f"--vocab_size={vocab_size} is too small: reserved tokens and the {len(alphabet)} characters "
      f"of the text take {len(lines)}. Use at least that, or keep fewer characters with "
      "--max_unique_chars."
    )
  known = set(alphabet)
  words = {word: count for word, count in counts.words.items() if known.issuperset(word)}
  pieces = learn_pieces(words, room, min_count, max_input_words, set(lines))
  if len(pieces) < room:
    logging.warning(
      "Only %d pieces were found in the text: %d [unused] tokens fill up --vocab_size=%d.",
      len(pieces),
      room - len(pieces),
      vocab_size,
    )
  missing = range(num_unused, num_unused + room - len(pieces))
  return lines + pieces + [f"[unused{number}]" for number in missing]


def reserved_lines(reserved_tokens: Sequence[str], num_unused: int) -> list[str]:
  """Lists the first lines of a vocabulary, at the places where released vocabularies have them.

  The first token has id 0, that of padding. Up to 99 unused ones follow (with 99, [UNK], [CLS] and
  [SEP] get their familiar 100, 101 and 102), then the other reserved ones, then the other unused.

  Example:
    >>> reserved_lines(["[PAD]", "[UNK]"], num_unused=2)
    ['[PAD]', '[unused0]', '[unused1]', '[UNK]']
    >>> [(100, token) for token in reserved_lines(RESERVED_TOKENS, num_unused=994)[100:101]]
    [(100, '[UNK]')]
  """
  unused = [f"[unused{number}]" for number in range(num_unused)]
  first, *others = reserved_tokens
  return [first, *unused[:_FIRST_UNUSED], *others, *unused[_FIRST_UNUSED:]]


def _most_frequent(counts: Mapping[str, int], limit: int) -> list[str]:
  """Keys by falling count, then alphabetically, so that the order is always the same."""
  return sorted(counts, key=lambda key: (-counts[key], key))[:limit]


def characters_for_share(counts: Mapping[str, int], share: float) -> int:
  """Counts the most frequent characters that make up a share of a text.

  Example:
    >>> characters_for_share({"e": 90, "x": 9, "q": 1}, 0.95)
    2
  """
  left = (1 - share) * sum(counts.values())
  rarest_first = sorted(counts.values())
  return len(counts) - sum(total <= left for total in itertools.accumulate(rarest_first))


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
  words: Mapping[str, int],
  number: int,
  min_count: int,
  max_input_words: int,
  known: Collection[str] = (),
) -> list[str]:
  """Learns pieces of words: `number` of two or more characters, or all there are, by frequency.

  The other arguments are those of `learn_vocabulary`; `known` tokens need not be learned.
  """
  frequent = {
    word: count
    for word, count in words.items()
    if count >= min_count and len(word) <= _MAX_PIECE_CHARS
  }
  chosen = _most_frequent(frequent, max_input_words)
  if len(chosen) < len(frequent):
    logging.info("Learning from the %d most frequent of %d words.", len(chosen), len(frequent))
  if not chosen or number <= 0:
    return []
  # By falling count, as the threshold search needs it.
  return _search([(word, frequent[word]) for word in chosen], number, min_count, known)[:number]


def _search(
  word_counts: list[tuple[str, int]], number: int, min_count: int, known: Collection[str]
) -> list[str]:
  """Returns pieces of the highest threshold that gives at least `number`, or all there are.

  About as many pieces as words reach a threshold, and in any text their number is about inversely
  proportional to it: two or three attempts are enough.
  """
  found: list[str] = []
  low, high = min_count, word_counts[0][1]
  threshold = word_counts[min(number, len(word_counts)) - 1][1]
  while low <= high:
    threshold = min(high, max(low, threshold))
    pieces = _pieces_above(word_counts, threshold, known)
    logging.info("%d pieces occur at least %d times; needed: %d.", len(pieces), threshold, number)
    if len(pieces) < number:
      high = threshold - 1
      found = max(found, pieces, key=len)
    else:
      low = threshold + 1
      found = pieces
      if len(pieces) <= (1 + _SLACK) * number:
        break
    threshold = threshold * len(pieces) // number
  return found


def _pieces_above(
  word_counts: list[tuple[str, int]], threshold: int, known: Collection[str]
) -> list[str]:
  learned = piece_learner.learn_pieces(word_counts, threshold)
  return [piece for piece in learned if len(without_joiner(piece)) > 1 and piece not in known]


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
  spelled = [*vocab, *characters]
  tokenizer = WordpieceTokenizer(dict.fromkeys(spelled, 0))
  broken = {
    word: count
    for word, count in counts.words.items()
    if count >= min_count and len(tokenizer.tokenize(word)) > 1
  }
  # More than needed, because pieces that overlap with others turn out to be rarely used.
  candidates = learn_pieces(broken, 2 * number, min_count, _MAX_INPUT_WORDS, set(vocab))
  gains = _gains_of_pieces(candidates, broken, spelled)
  useful = {piece: gain for piece, gain in gains.items() if gain > 0}
  pieces = _most_frequent(useful, number - len(characters))
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


def _gains_of_pieces(
  candidates: Sequence[str], words: Mapping[str, int], vocab: Sequence[str]
) -> dict[str, int]:
  splitter = TokenSplitter(vocab)
  saved = {piece: len(splitter.split(piece)) - 1 for piece in candidates}
  tokenizer = WordpieceTokenizer(dict.fromkeys([*vocab, *candidates], 0))
  gains: dict[str, int] = {}
  for word, count in words.items():
    for piece in tokenizer.tokenize(word):
      if piece in saved:
        gains[piece] = gains.get(piece, 0) + count * saved[piece]
  return gains


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
