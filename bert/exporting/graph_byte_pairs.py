"""`byte_pairs.BytePairTokenizer` as TensorFlow ops, exactly.

Characters have one of four kinds, by a table: letter, number, white space, other. Where the words
of GPT-2's pattern begin follows from the kinds of neighbours; the pattern itself looks ahead, which
TensorFlow's regular expressions cannot. A word is its bytes, and in each step of a loop every word
of the batch makes the merge of lowest rank that it has. Words that are one token need no step: a
table knows them.

Letters in shapes: B = batch size, N = characters of a batch, K = those that are read, W = words of
all texts, T = tokens of all words.
"""

from typing import NamedTuple

import numpy as np
import tensorflow as tf

from bert.exporting import unicode_tables as tables
from bert.exporting.graph_characters import look_up, utf8_lengths
from bert.io.byte_pair_files import byte_characters
from bert.text import byte_pairs, vocabulary_file
from bert.text.byte_pairs import OTHER, SPACE

_BLANK, _APOSTROPHE = ord(" "), ord("'")
# Words with an apostrophe before them: 's, 't, 'm, 'd, and 're, 've, 'll.
_ONE_LETTER = np.array(list(map(ord, "stmd")), np.int32)
_TWO_LETTERS = np.array([list(map(ord, letters)) for letters in ("re", "ve", "ll")], np.int32)
_NO_MERGE = int(np.iinfo(np.int32).max)


class _SpecialTokens(NamedTuple):
  """Tokens that stay whole: L of them, of at most M characters."""

  codes: np.ndarray  # int32 `[L, M]`, code points; -1 after the last
  ids: np.ndarray  # int32 `[L]`
  takes_space: np.ndarray  # bool `[L]`, whether it takes the white space on its left


class _Characters(NamedTuple):
  """Characters that are read: all but white space that a special token takes."""

  codes: tf.Tensor  # int32 `[K]`, code points
  # int64 `[K]`, numbers: a special token and the text between two of them are a part each.
  parts: tf.Tensor
  special: tf.Tensor  # int32 `[K]`, the id of a special token; -1 in text
  origins: tf.Tensor  # int64 `[K]`, the decoded character of each
  is_own: tf.Tensor  # bool `[K]`, False for a space that was put before a word

  def select(self, indices: tf.Tensor) -> "_Characters":
    return _Characters(*(tf.gather(values, indices) for values in self))


class _Words(NamedTuple):
  """Words of all texts."""

  characters: _Characters  # of which they consist
  strings: tf.Tensor  # string `[W]`
  special: tf.Tensor  # int32 `[W]`, the id of a special token; -1 for a word of text
  row_splits: tf.Tensor  # int64 `[B + 1]`, boundaries of texts, in words


class _Tokens(NamedTuple):
  """Tokens of all words, in order."""

  ids: tf.Tensor  # int32 `[T]`
  words: tf.Tensor  # int64 `[T]`, the word of each
  starts: tf.Tensor  # int64 `[T]`, its first byte among the bytes of all words


class BytePairGraph:
  """`BytePairTokenizer` as graph functions.

  Attributes:
    tracked: resources of the SavedModel.
  """

  def __init__(self, tokenizer: byte_pairs.BytePairTokenizer):
    """Takes a tokenizer with its special tokens; VocabularyError for one with an unknown rule."""
    vocab = tokenizer.vocab
    self._kinds = tables.word_kinds()
    self._has_prefix = tokenizer.add_prefix_space
    self._special = _special_tokens(tokenizer)
    self._byte_ids = np.array([vocab[char] for char in byte_characters()], np.int32)
    merges = [(vocab[a] << 32 | vocab[b], vocab[a + b]) for a, b in tokenizer.pairs.merges]
    # Of a pair that is listed twice the later rank counts.
    ranks = {key: rank for rank, (key, _) in enumerate(merges)} or {-2: 0}
    self._merged = np.array([*(merged for _, merged in merges), 0], np.int32)
    whole = tokenizer.whole_words()
    self._ranks, of_ranks = _table(ranks, tf.int64, _NO_MERGE)
    self._whole, of_whole = _table(whole, tf.string, -1)
    self.tracked = [of_ranks, self._ranks, of_whole, self._whole]

  def tokenize(self, text: tf.Tensor) -> tf.RaggedTensor:
    """Returns ids of tokens, int32 [B, (words), (tokens)]."""
    decoded = tf.strings.unicode_decode(text, "UTF-8", "ignore")
    words = self._words(decoded, self._has_prefix)
    tokens = self._tokens(words)
    return _by_text(tokens.ids, tokens, words)

  def tokenize_words(self, words: tf.Tensor) -> tf.RaggedTensor:
    """Returns ids of words that stand alone, int32 [B, (tokens)]; see `Tokenizer.tokenize_word`."""
    decoded = tf.strings.unicode_decode(words, "UTF-8", "ignore")
    parts = self._words(decoded, True)
    tokens = self._tokens(parts)
    return _by_text(tokens.ids, tokens, parts).merge_dims(1, 2)

  def tokenize_with_offsets(self, text: tf.Tensor) -> tuple[tf.RaggedTensor, ...]:
    """Returns ids as `tokenize` does; first byte, and byte after the last, int64 of that shape.

    They are those of `BytePairTokenizer.tokenize_with_offsets`, in bytes: without spaces at the
    ends, and whole characters.
    """
    decoded, first_bytes = tf.strings.unicode_decode_with_offsets(text, "UTF-8", "ignore")
    words = self._words(decoded, self._has_prefix)
    tokens = self._tokens(words)
    starts, limits = _in_text(tokens, words.characters, first_bytes.values)
    return tuple(_by_text(values, tokens, words) for values in (tokens.ids, starts, limits))

  # -------------------------------------------------------------------------------------------
  # Words.

  def _words(self, decoded: tf.RaggedTensor, has_prefix: bool) -> _Words:
    characters = self._characters(decoded)
    if has_prefix:
      characters = _with_prefixes(characters)
    kinds = look_up(self._kinds, characters.codes)
    starts = tf.where(_begins_word(characters, kinds))[:, 0]
    word_splits = tf.concat([starts, tf.size(kinds, tf.int64)[tf.newaxis]], 0)
    codes = tf.RaggedTensor.from_row_splits(characters.codes, word_splits, validate=False)
    texts = tf.searchsorted(characters.origins, decoded.row_splits, out_type=tf.int64)
    return _Words(
      characters,
      tf.strings.unicode_encode(codes, "UTF-8"),
      tf.gather(characters.special, starts),
      tf.searchsorted(starts, texts, out_type=tf.int64),
    )

  def _characters(self, decoded: tf.RaggedTensor) -> _Characters:
    """Finds special tokens, and drops the white space that they take."""
    codes, rows = decoded.values, decoded.value_rowids()
    size = tf.size(codes, tf.int64)
    begins_text = tf.concat([[True], rows[1:] != rows[:-1]], 0)[:size]
    special, begins_special, takes_space = _find(self._special, codes, begins_text)
    in_special = special >= 0
    follows_special = _shifted(in_special) & ~in_special
    parts = tf.cumsum(tf.cast(begins_text | begins_special | follows_special, tf.int64))

    # A run of white space ends before a token that takes it.
    is_space = (look_up(self._kinds, codes) == SPACE) & ~in_special
    begins_run = ~(is_space & _shifted(is_space)) | begins_text
    runs = tf.cumsum(tf.cast(begins_run, tf.int64))
    precedes = tf.concat([takes_space[1:] & ~begins_text[1:], [False]], 0)[:size]
    is_taken = tf.math.unsorted_segment_max(tf.cast(precedes, tf.int32), runs, size + 1)
    dropped = is_space & (tf.gather(is_taken, runs) > 0)
    all_of_them = _Characters(codes, parts, special, tf.range(size), tf.fill([size], True))
    return tf.cond(
      tf.reduce_any(dropped),
      lambda: all_of_them.select(tf.where(~dropped)[:, 0]),
      lambda: all_of_them,
    )

  # -------------------------------------------------------------------------------------------
  # Tokens.

  def _tokens(self, words: _Words) -> _Tokens:
    known = tf.where(words.special >= 0, words.special, self._whole.lookup(words.strings))  # [W]
    is_known = known >= 0
    byte_strings = tf.strings.bytes_split(tf.where(is_known, "", words.strings))  # [W, (bytes)]
    codes = tf.reshape(tf.io.decode_raw(byte_strings.values, tf.uint8), [-1])
    byte_ids = tf.concat([tf.gather(self._byte_ids, tf.cast(codes, tf.int32)), [0]], 0)
    counts = tf.where(is_known, tf.constant(1, tf.int64), byte_strings.row_lengths())
    owners = tf.repeat(tf.range(tf.size(known, tf.int64)), counts)
    places = tf.range(tf.size(owners, tf.int64)) - tf.gather(
      tf.cumsum(counts, exclusive=True), owners
    )
    of_bytes = tf.minimum(
      tf.gather(byte_strings.row_starts(), owners) + places, tf.size(codes, tf.int64)
    )
    ids = tf.where(
      tf.gather(is_known, owners), tf.gather(known, owners), tf.gather(byte_ids, of_bytes)
    )
    num_bytes = tf.strings.length(words.strings)
    word_starts = tf.cumsum(tf.cast(num_bytes, tf.int64), exclusive=True)
    return self._merge(_Tokens(ids, owners, tf.gather(word_starts, owners) + places))

  def _merge(self, tokens: _Tokens) -> _Tokens:
    """Merges pairs until no word has one that is in the table."""
    num_words = tf.reduce_max(tf.concat([tokens.words, [-1]], 0)) + 1

    def step(ids, words, starts, _):
      left, right = tf.cast(ids[:-1], tf.int64), tf.cast(ids[1:], tf.int64)
      keys = tf.where(words[1:] == words[:-1], tf.bitwise.left_shift(left, 32) | right, -1)
      ranks = self._ranks.lookup(keys)  # [T - 1]
      best = tf.math.unsorted_segment_min(ranks, words[:-1], num_words)
      chosen = (ranks < _NO_MERGE) & (ranks == tf.gather(best, words[:-1]))
      chosen &= _is_at_even_place(chosen)  # of three equal tokens, the first two
      merged = tf.gather(self._merged, tf.minimum(ranks, len(self._merged) - 1))
      ids = tf.concat([tf.where(chosen, merged, ids[:-1]), ids[-1:]], 0)
      kept = tf.concat([[True], ~chosen], 0)[: tf.size(ids)]
      tokens = (tf.boolean_mask(values, kept) for values in (ids, words, starts))
      return (*tokens, tf.reduce_any(chosen))

    *merged, _ = tf.while_loop(
      lambda ids, words, starts, has_changed: has_changed,
      step,
      (*tokens, tf.constant(True)),
      shape_invariants=(*[tf.TensorShape([None])] * 3, tf.TensorShape([])),
    )
    return _Tokens(*merged)


def _table(content: dict, key_type: tf.DType, default: int):
  """Creates a table from `content` to int32, and its initializer."""
  initializer = tf.lookup.KeyValueTensorInitializer(
    list(content), list(content.values()), key_type, tf.int32
  )
  table = tf.lookup.StaticHashTable(initializer, default, experimental_is_anonymous=True)
  return table, initializer


def _special_tokens(tokenizer: byte_pairs.BytePairTokenizer) -> _SpecialTokens:
  rules = [] if tokenizer.plain else tokenizer.pairs.special
  tokens = [rule["content"] for rule in rules]
  for token, rule in zip(tokens, rules, strict=True):
    others = [
      other for other in tokens if token[0] in other[1:] or (other != token and token in other)
    ]
    if rule.get("rstrip") or rule.get("single_word") or others:
      reason = f"{others[0]!r} may overlap it" if others else "it has rstrip or single_word"
      raise vocabulary_file.VocabularyError(
        f"{tokenizer.vocab_file}: the special token {token!r} cannot be exported: {reason}."
      )
  codes = np.full([len(tokens), max(map(len, tokens), default=1)], -1, np.int32)
  for row, token in zip(codes, tokens, strict=True):
    row[: len(token)] = list(map(ord, token))
  ids = np.array([rule["id"] for rule in rules], np.int32)
  return _SpecialTokens(codes, ids, np.array([bool(rule.get("lstrip")) for rule in rules], bool))


def _find(special: _SpecialTokens, codes: tf.Tensor, begins_text: tf.Tensor):
  """Finds special tokens in texts: three tensors `[N]`, of characters.

  They are the id of the token that a character belongs to, or -1; whether it begins one; and
  whether that one takes the white space on its left.
  """
  size, longest = tf.size(codes), special.codes.shape[1]
  if not len(special.ids):
    nowhere = tf.zeros([size], tf.bool)
    return tf.fill([size], -1), nowhere, nowhere
  # The next M characters of each; those of other texts are no character.
  texts = tf.pad(tf.cumsum(tf.cast(begins_text, tf.int32)), [[0, longest - 1]])
  codes = tf.pad(codes, [[0, longest - 1]])
  places = tf.range(size)[:, tf.newaxis] + tf.range(longest)  # [N, M]
  is_same = tf.gather(texts, places) == texts[:size, tf.newaxis]
  following = tf.where(is_same, tf.gather(codes, places), -2)
  is_equal = (following[:, tf.newaxis] == special.codes) | (special.codes < 0)
  is_token = tf.reduce_all(is_equal, axis=2)  # [N, L]
  begins = tf.reduce_any(is_token, axis=1)
  which = tf.argmax(is_token, axis=1, output_type=tf.int32)  # tokens cannot overlap
  # The last one that has begun, if it reaches that far.
  first = tf.concat([[0], tf.cast(tf.where(begins)[:, 0], tf.int32)], 0)
  first = tf.gather(first, tf.cumsum(tf.cast(begins, tf.int32)))
  which_began = tf.gather(which, first)
  lengths = np.sum(special.codes >= 0, axis=1).astype(np.int32)
  is_covered = tf.range(size) - first < tf.gather(lengths, which_began)
  is_covered &= tf.gather(begins, first)
  ids = tf.where(is_covered, tf.gather(special.ids, which_began), -1)
  return ids, begins, begins & tf.gather(special.takes_space, which)


def _shifted(values: tf.Tensor) -> tf.Tensor:
  """Shifts bool `[N]` by one: False, and then all but the last."""
  return tf.concat([[False], values], 0)[:-1]


def _with_prefixes(characters: _Characters) -> _Characters:
  """Puts a space before each part of text that does not begin with one."""
  begins_part = ~_is_in_same_part(characters)
  needed = begins_part & (characters.special < 0) & (characters.codes != _BLANK)
  indices = tf.repeat(tf.range(tf.size(needed)), 1 + tf.cast(needed, tf.int32))
  is_first = tf.concat([[True], indices[1:] != indices[:-1]], 0)[: tf.size(indices)]
  is_new = is_first & tf.gather(needed, indices)
  more = characters.select(indices)
  return more._replace(codes=tf.where(is_new, _BLANK, more.codes), is_own=~is_new)


def _is_in_same_part(characters: _Characters) -> tf.Tensor:
  """Checks whether the character before belongs to the same part: bool `[K]`."""
  parts = characters.parts
  return tf.concat([[False], parts[1:] == parts[:-1]], 0)[: tf.size(parts)]


def _begins_word(characters: _Characters, kinds: tf.Tensor) -> tf.Tensor:
  """Finds where matches of GPT-2's pattern, and special tokens, begin: bool `[K]`.

  's|'t|'re|'ve|'m|'ll|'d| ?\\p{L}+| ?\\p{N}+| ?[^\\s\\p{L}\\p{N}]+|\\s+(?!\\S)|\\s+
  """
  size = tf.size(kinds)
  codes, in_text = characters.codes, characters.special < 0
  has_before = _is_in_same_part(characters)
  has_after = tf.concat([has_before[1:], [False]], 0)[:size]
  kinds_before = tf.concat([[OTHER], kinds], 0)[:-1]
  is_space, follows_space = kinds == SPACE, has_before & (kinds_before == SPACE)
  follows_blank = follows_space & (tf.concat([[0], codes], 0)[:-1] == _BLANK)
  precedes_space = has_after & tf.concat([is_space[1:], [False]], 0)[:size]
  # The last of several spaces goes with what follows, or stays alone.
  begins = tf.where(
    is_space,
    ~follows_space | (has_after & ~precedes_space),
    tf.where(follows_space, ~follows_blank, kinds != kinds_before),
  )
  begins = tf.where(in_text, begins, False) | ~has_before
  may_contract = begins & in_text & (codes == _APOSTROPHE)

  return tf.cond(
    tf.reduce_any(may_contract),
    lambda: _with_contractions(begins, may_contract, codes, has_before),
    lambda: begins,
  )


def _with_contractions(begins, may_contract, codes, has_before):
  """Removes the letters of 's, 't, 're, ... from `begins`, and adds what comes after them."""
  size = tf.size(codes)
  codes = tf.pad(tf.where(has_before, codes, -1), [[0, 2]], constant_values=-1)
  first, second = codes[1 : size + 1], codes[2 : size + 2]
  has_one = may_contract & tf.reduce_any(first[:, tf.newaxis] == _ONE_LETTER, axis=1)
  pairs = tf.stack([first, second], axis=1)[:, tf.newaxis]  # [K, 1, 2]
  has_two = may_contract & tf.reduce_any(tf.reduce_all(pairs == _TWO_LETTERS, axis=2), axis=1)
  after_one, after_two = _shifted(_shifted(has_one)), _shifted(_shifted(_shifted(has_two)))
  return (begins & ~_shifted(has_one | has_two)) | ((after_one | after_two) & has_before)


def _is_at_even_place(chosen: tf.Tensor) -> tf.Tensor:
  """Checks whether an even number of chosen ones stands directly before: bool `[T]`."""
  others = tf.concat([[-1], tf.cast(tf.where(~chosen)[:, 0], tf.int32)], 0)
  last = tf.gather(others, tf.cumsum(tf.cast(~chosen, tf.int32)))
  return tf.bitwise.bitwise_and(tf.range(tf.size(chosen)) - last, 1) == 1


def _by_text(values: tf.Tensor, tokens: _Tokens, words: _Words) -> tf.RaggedTensor:
  """Groups [T] to [B, (words), (tokens)]."""
  num_words = tf.size(words.strings, tf.int64)
  splits = tf.searchsorted(tokens.words, tf.range(num_words + 1), out_type=tf.int64)
  of_words = tf.RaggedTensor.from_row_splits(values, splits, validate=False)
  return tf.RaggedTensor.from_row_splits(of_words, words.row_splits, validate=False)


def _in_text(tokens: _Tokens, characters: _Characters, first_bytes: tf.Tensor):
  """Computes first byte of each token in its text, and byte after its last, int64 `[T]`.

  Tokens are in bytes of all words, without gaps; `first_bytes` int64 `[N]`, of decoded characters.
  """
  lengths = utf8_lengths(characters.codes)  # [K]
  char_starts = tf.cumsum(lengths, exclusive=True)
  limits = tf.concat([tokens.starts[1:], tf.reduce_sum(lengths)[tf.newaxis]], 0)
  limits = limits[: tf.size(tokens.starts)]
  first, last = (
    tf.searchsorted(char_starts, bytes_, side="right", out_type=tf.int64) - 1
    for bytes_ in (tokens.starts, limits - 1)
  )
  own_starts = tf.gather(first_bytes, characters.origins)  # [K]
  own_limits = own_starts + tf.where(characters.is_own, lengths, 0)
  # Without spaces at the ends; a token of spaces alone is empty, and lies after them.
  letters = tf.where(characters.codes != _BLANK)[:, 0]
  begin = tf.searchsorted(letters, first)
  end = tf.searchsorted(letters, last, side="right")  # exclusive
  is_empty = begin >= end
  letters = tf.concat([letters, [0]], 0)
  own_limits = tf.concat([own_limits, [0]], 0)
  after = tf.gather(own_limits, last)
  starts = tf.gather(tf.concat([own_starts, [0]], 0), tf.gather(letters, begin))
  limits = tf.gather(own_limits, tf.gather(letters, tf.maximum(end - 1, 0)))
  return tf.where(is_empty, after, starts), tf.where(is_empty, after, limits)
