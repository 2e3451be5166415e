"""The originals' stream of instances: one random generator for all of a corpus.

  documents = split_documents(read_sentences(files, tokenizer))
  masking = Masking(0.15, 20, list(vocab), rng)
  for instance in instances_of_document(documents, 0, 128, 0.1, masking):
    ...

BERT's and ALBERT's scripts draw from one generator, instance after instance, and shuffle documents
before and instances after that. The draws here and their order are theirs, so the instances cannot
be made by several processes; `blocks.py` is for those.
"""

import random
from collections.abc import Callable, Container, Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from bert.pretraining.instances import TrainingInstance, Workspace, shuffle
from bert.text import corpus, corpus_statistics, text_files


class Pair(NamedTuple):
  """Two segments without special tokens."""

  tokens_a: list[str]  # the first segment
  tokens_b: list[str]  # the second one
  is_random_next: bool  # whether the second is from another place, or both are in the wrong order

  def with_special_tokens(self) -> tuple[list[str], list[int]]:
    """Returns all tokens with [CLS] and [SEP], and the segment of each."""
    tokens = ["[CLS]", *self.tokens_a, "[SEP]", *self.tokens_b, "[SEP]"]
    return tokens, [0] * (len(self.tokens_a) + 2) + [1] * (len(self.tokens_b) + 1)


class Masking(NamedTuple):
  """How to mask, and the generators to draw from."""

  masked_lm_prob: float  # fraction of the tokens to predict, special ones counted
  max_predictions_per_seq: int  # the maximum number of tokens to predict
  vocab_words: Sequence[str]  # random tokens are taken from all of these, special ones included
  rng: random.Random  # of all draws but `draw_size`
  # Whether a token begins what is masked as a whole; None: each token is masked by itself.
  begins_unit: Callable[[str], bool] | None = None
  draw_size: Callable[[], int] | None = None  # ALBERT's number of words of an n-gram
  # ALBERT: exchange as many further tokens among each other, and predict them too.
  do_permutation: bool = False


def instances_of_corpus(
  input_files: Sequence[str],
  tokenizer: Any,
  make: Callable[[Sequence, int], Iterable[TrainingInstance]],
  statistics: corpus_statistics.TextStatistics,
  dupe_factor: int,
  rng: random.Random,
  *,
  text_format: corpus.TextFormat = corpus.PLAIN_TEXT,
  ends_document: Callable[[str], bool] | None = None,
  workspace: Workspace | None = None,
) -> Sequence[TrainingInstance]:
  """Reads a corpus and creates its instances, in random order.

  The other arguments, the result and the errors are those of
  `create_pretraining_data.create_training_instances`.

  Args:
    tokenizer: of their sentences.
    make: from all documents and the index of one, the instances of that one.
    statistics: counts and logs documents, sentences and tokens.
    rng: the random number generator, which `make` uses too.
    ends_document: see `corpus.read_sentences`.
  """
  sentences = corpus.read_sentences(input_files, tokenizer, statistics, text_format, ends_document)
  documents: Any
  instances: Any
  if workspace is None:
    documents, instances = corpus.split_documents(sentences), []
  else:
    documents, instances = workspace.store_documents(sentences), workspace.new_instances()
  statistics.log()
  if not documents:
    raise text_files.CorpusError(f"There is no text in {', '.join(input_files)}.")
  shuffle(documents, rng)
  progress = corpus_statistics.Progress("Creating", dupe_factor * len(documents), "documents")
  for number in range(dupe_factor * len(documents)):
    instances.extend(make(documents, number % len(documents)))
    progress.update(number + 1)
  shuffle(instances, rng)
  return instances


def instances_of_document(
  all_documents: Sequence[Sequence[list[str]]],
  document_index: int,
  max_seq_length: int,
  short_seq_prob: float,
  masking: Masking,
  *,
  sentence_order: bool = False,
  word_starts: Container[str] | None = None,
) -> Iterator[TrainingInstance]:
  """Yields the instances of one document, in its order.

  One at a time: a corpus may be one document of a gigabyte. The first arguments are those of
  `create_pretraining_data.create_instances_from_document`.

  Args:
    masking: how to mask.
    sentence_order: see `pairs_of_document`.
    word_starts: the tokens that begin a word, which ALBERT's records mark.
  """
  pairs = pairs_of_document(
    all_documents, document_index, max_seq_length, short_seq_prob, masking.rng, sentence_order
  )
  for pair in pairs:
    tokens, segment_ids = pair.with_special_tokens()
    boundary = [int(token in word_starts) for token in tokens] if word_starts else None
    masked, positions, labels = mask(tokens, masking)
    yield TrainingInstance(masked, segment_ids, positions, labels, pair.is_random_next, boundary)


def pairs_of_document(
  all_documents: Sequence[Sequence[list[str]]],
  document_index: int,
  max_seq_length: int,
  short_seq_prob: float,
  rng: random.Random,
  sentence_order: bool = False,
) -> Iterator[Pair]:
  """Yields the pairs of segments of one document, in its order.

  Sentences are gathered until they are long enough, then divided in two between sentences. In half
  of the cases the second part is replaced by text of a random document, and its sentences are used
  for the next pair. Whoever takes a pair may draw from `rng` before the next one. The other
  arguments are those of `create_pretraining_data.create_instances_from_document`.

  Args:
    max_seq_length: the maximum number of tokens, three special ones included.
    sentence_order: in half of the cases the parts change places (ALBERT), instead of a random
      second one. A single sentence still gets a random one, as in the original.
  """
  max_num_tokens = max_seq_length - 3  # [CLS], [SEP], [SEP]
  target = max_num_tokens
  if rng.random() < short_seq_prob:
    target = rng.randint(2, max_num_tokens)

  document = all_documents[document_index]
  position = 0
  while position < len(document):
    chunk = _gather(document, position, target)
    position += len(chunk)
    a_end = rng.randint(1, len(chunk) - 1) if len(chunk) >= 2 else 1
    tokens_a, tokens_b = joined(chunk[:a_end]), joined(chunk[a_end:])
    is_random_next = len(chunk) == 1 or rng.random() < 0.5
    if is_random_next and sentence_order and len(chunk) > 1:
      tokens_a, tokens_b = tokens_b, tokens_a
    elif is_random_next:
      position -= len(chunk) - a_end  # the replaced sentences are used for the next pair
      tokens_b = _random_text(all_documents, document_index, target - len(tokens_a), rng)
    truncate_seq_pair(tokens_a, tokens_b, max_num_tokens, rng)
    yield Pair(tokens_a, tokens_b, is_random_next)


def _gather(document, start: int, target: int) -> list[list[str]]:
  """Sentences from `start` on until they have `target` tokens or the document ends."""
  chunk, length = [], 0
  for index in range(start, len(document)):
    chunk.append(document[index])
    length += len(chunk[-1])
    if length >= target:
      break
  return chunk


def joined(sentences: Iterable[Sequence]) -> list:
  """Returns the elements of all of them.

  Example:
    >>> joined([["a", "b"], ["c"]])
    ['a', 'b', 'c']
  """
  return [token for sentence in sentences for token in sentence]


def _random_text(all_documents, document_index: int, target: int, rng) -> list[str]:
  """At least `target` tokens, if possible, starting at a random sentence of a random document."""
  for _ in range(10):  # a different document if possible; rarely, all ten draws give the same one
    random_index = rng.randint(0, len(all_documents) - 1)
    if random_index != document_index:
      break
  document = all_documents[random_index]
  return joined(_gather(document, rng.randint(0, len(document) - 1), target))


def truncate_seq_pair(
  tokens_a: list[str], tokens_b: list[str], max_num_tokens: int, rng: random.Random
) -> None:
  """Shortens both lists in place to `max_num_tokens` in all.

  Tokens are removed one by one from the list that is then the longer one (the second if they are
  equal), at its front or its end at random.

  Example:
    >>> a, b = list("abcdef"), list("xy")
    >>> truncate_seq_pair(a, b, 5, random.Random(1))
    >>> "".join(a), "".join(b)
    ('bcd', 'xy')
  """
  length_a, length_b = len(tokens_a), len(tokens_b)
  # Counted first and cut at once: deleting token by token from the front is quadratic.
  front_a = front_b = 0
  while length_a + length_b > max_num_tokens:
    from_front = rng.random() < 0.5
    if length_a > length_b:
      length_a -= 1
      front_a += from_front
    else:
      length_b -= 1
      front_b += from_front
  tokens_a[:] = tokens_a[front_a : front_a + length_a]
  tokens_b[:] = tokens_b[front_b : front_b + length_b]


def word_positions(tokens: Sequence[str], begins_word: Callable[[str], bool]) -> list[list[int]]:
  """Returns the positions of each word; [CLS] and [SEP] are none.

  The rest of a word that was cut joins the word before it, even across [SEP], as in the originals.

  Example:
    >>> tokens = ["[CLS]", "un", "##able", "to", "[SEP]", "##ed", "[SEP]"]
    >>> word_positions(tokens, lambda token: not token.startswith("##"))
    [[1, 2], [3, 5]]
  """
  words: list[list[int]] = []
  for position, token in enumerate(tokens):
    if token in ("[CLS]", "[SEP]"):
      continue
    if words and not begins_word(token):
      words[-1].append(position)
    else:
      words.append([position])
  return words


def mask(tokens: Sequence[str], masking: Masking) -> tuple[list[str], list[int], list[str]]:
  """Chooses tokens to predict; 80% of them become [MASK], 10% a random token, 10% stay.

  [CLS] and [SEP] are never chosen, but count in the fraction. Each token of a unit is replaced by
  itself.

  Returns:
    `(tokens, positions, labels)`: the tokens with masks, the chosen positions in ascending order,
    and the original tokens at these positions.
  """
  output, rng = list(tokens), masking.rng
  if masking.draw_size and not masking.masked_lm_prob:
    return output, [], []  # BERT masks one token at least, ALBERT none where the fraction is 0
  share = max(1, round(len(tokens) * masking.masked_lm_prob))
  limit = min(masking.max_predictions_per_seq, share)
  if masking.begins_unit is None:  # most of a run's time is spent here
    chosen = [i for i, token in enumerate(tokens) if token not in ("[CLS]", "[SEP]")]
    shuffle(chosen, rng)
    del chosen[limit:]
  else:
    words = word_positions(tokens, masking.begins_unit)
    starts = list(range(len(words)))
    shuffle(starts, rng)
    chosen = _choose(words, starts, limit, set(), masking.draw_size)
  for position in chosen:
    output[position] = _replaced(tokens[position], masking.vocab_words, rng)
  if masking.draw_size:
    shuffle(starts, rng)  # ALBERT always draws it, and rarely uses it
  if masking.do_permutation:
    exchanged = sorted(_choose(words, starts, limit, set(chosen), masking.draw_size))
    sources = list(exchanged)
    shuffle(sources, rng)
    for position, source in zip(exchanged, sources, strict=True):
      output[position] = tokens[source]
    chosen += exchanged
  chosen.sort()
  return output, chosen, [tokens[position] for position in chosen]


def _choose(
  words: list[list[int]],
  starts: list[int],
  limit: int,
  taken: set[int],
  draw_size: Callable[[], int] | None,
) -> list[int]:
  """Positions of words, or n-grams, that begin at words `starts`; at most `limit`, none `taken`.

  An n-gram that is too long gives way to a shorter one, a word that is too long to the next one; an
  n-gram that overlaps another is skipped.

  Example:
    >>> _choose([[3, 4], [7, 8], [5], [1]], [0, 1, 2, 3], 3, set(), None)
    [3, 4, 5]
  """
  chosen: list[int] = []
  for start in starts:
    if len(chosen) >= limit:
      break
    for size in range(draw_size() if draw_size else 1, 0, -1):
      positions = joined(words[start : start + size])
      if len(chosen) + len(positions) <= limit:
        if taken.isdisjoint(positions):
          chosen += positions
          taken.update(positions)
        break
  return chosen


def _replaced(token: str, vocab_words: Sequence[str], rng: random.Random) -> str:
  """[MASK] in 80% of the cases, a random token in 10%, else the token itself."""
  if rng.random() < 0.8:
    return "[MASK]"
  if rng.random() < 0.5:
    return token
  return vocab_words[rng.randint(0, len(vocab_words) - 1)]
