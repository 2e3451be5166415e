r"""Question answering as a SavedModel: from a question and a paragraph to the answer and its place.

  model = SpanModel(config, "vocab.txt", do_lower_case=True, max_seq_length=384, doc_stride=128)
  model.export("out/export/task", "out/model.ckpt-343")

  import tensorflow_text                                # its ops are needed wherever it is loaded
  model = tf.saved_model.load("out/export/task")
  model(tf.constant(["Who?"]), tf.constant(["It was me."]))["answer"]

The graph implements `squad_features` and `squad_answers`: the question is cut, the paragraph is
divided into windows, and of all spans of all windows the best is chosen, with the same scores
and the same rules. So a file's questions have the answers of predictions.json, and their places and
probabilities are those of predictions_detailed.jsonl, but for these cases:

* In a word that repeats a text, such as `US-us`, predictions.json has the first occurrence, as in
  the original, which may differ in case and accents; predictions_detailed.jsonl has the chosen one.
* Within one answer, a word whose normalisation has lost a letter (an accent typed on its own) and
  one that has gained a letter (Hangul) balance each other in run_squad's count of letters.
* A word of more than 200 characters that merely touches an answer: `(` before it, say.
* With a sentencepiece model, run_squad leaves questions out whose paragraph cannot be aligned with
  its tokens; and a character that becomes several, such as `ﬁ`, may be missing at an answer's ends.
* If no span is valid, or a paragraph has no word, run_squad answers "empty" or stops, unless
  questions may have no answer; here the answer is "" with probability 0. (With ELECTRA's head,
  `--answer_head=electra`, run_squad answers "empty" in either case.)

`Predictor.load` answers as run_squad.py does, see `tasks/span_answers.py`.

(With synthetic scores for the windows of 1,678 questions, twice, the first case came up three times
and the second and third not at all; all texts were equal.)

Letters in shapes: B = batch size, S = sequence length, W = words of all paragraphs, P = their
tokens, R = windows, M = valid spans, K = best beginnings, and best ends, of a window.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

import tensorflow as tf

from bert.exporting import graph_text
from bert.exporting.graph_byte_pairs import BytePairGraph
from bert.exporting.graph_pieces import PieceTokenizer
from bert.exporting.graph_text import Windows
from bert.exporting.task_model import Outputs, TaskModel, string_signature, strings
from bert.model import heads, span_heads
from bert.model.answer_heads import AnswerHead
from bert.modeling import BertConfig
from bert.tasks import squad_answers

# The characters that separate words of a paragraph, as in `squad.split_words`.
_BLANKS = " \t\r\n\u202f"
# What `str.strip` drops.
_BLANKS_BEFORE = r"^[\p{Z}\t-\r\x1c-\x1f\x{85}]+"
_BLANKS_AFTER = r"[\p{Z}\t-\r\x1c-\x1f\x{85}]+$"

# As in `squad_features`: 100 tokens more in a window count as one token of context.
_BONUS_OF_LENGTH = 0.01


class _Paragraphs(NamedTuple):
  """Paragraphs in tokens.

  Attributes:
    texts: string `[B]`.
    tokens: int32 `[B, (tokens)]`.
    words: int64 `[P]`, the word of each token, counted over all paragraphs.
    piece_starts: int64 `[P]`, the first byte of each token.
    piece_limits: int64 `[P]`, the byte after its last.
    word_starts: int64 `[W]`, likewise of words.
    word_limits: int64 `[W]`.
    num_odd: int64 `[W + 1]`, the letters that normalisation removed from the words before each.
  """

  texts: tf.Tensor
  pieces: tf.RaggedTensor
  words: tf.Tensor
  piece_starts: tf.Tensor
  piece_limits: tf.Tensor
  word_starts: tf.Tensor
  word_limits: tf.Tensor
  num_odd: tf.Tensor


class _Spans(NamedTuple):
  """Valid spans; of one question, the best first."""

  questions: tf.Tensor  # int64 `[M]`, the question of each
  first: tf.Tensor  # int64 `[M]`, its first token among those of all paragraphs
  last: tf.Tensor  # int64 `[M]`
  scores: tf.Tensor  # float64 `[M]`, the sums of both logits, which run_squad adds in float64, too

  def select(self, indices: tf.Tensor) -> "_Spans":
    """Returns those at `indices`."""
    return _Spans(*(tf.gather(values, indices) for values in self))


class SpanModel(TaskModel):
  """Answers questions about paragraphs."""

  def __init__(
    self,
    config: BertConfig,
    vocab_file: str,
    do_lower_case: bool,
    max_seq_length: int = 384,
    doc_stride: int = 128,
    max_query_length: int = 64,
    n_best_size: int = 20,
    max_answer_length: int = 30,
    version_2_with_negative: bool = False,
    null_score_diff_threshold: float = 0.0,
    mask_padding: bool = False,
    head: Mapping[str, Any] | None = None,
  ):
    """Builds the graph, with random weights; arguments as the flags of run_squad.py.

    The other arguments are those of `TaskModel`.

    Args:
      max_seq_length: S, tokens in a window.
      doc_stride: number of tokens between the starts of two windows.
      max_query_length: longer questions are cut to this number of tokens.
      n_best_size: number of answers over which probabilities sum to 1.
      max_answer_length: in tokens.
      version_2_with_negative: whether a question may have no answer.
      null_score_diff_threshold: the answer is "" if the null odds are greater than this.
      mask_padding: as `--pad_to_longest`: faster. By default every window is padded to S, and
        padding competes with the text, as in the original.
      head: fields of an `AnswerHead`; BERT's by default. With others padding never competes.
    """
    super().__init__(config, vocab_file, do_lower_case)
    self._has_pieces = isinstance(self._tokenizer, (PieceTokenizer, BytePairGraph))
    self._seq_length, self._stride = max_seq_length, doc_stride
    self._max_query_length, self._max_answer_length = max_query_length, max_answer_length
    self._n_best_size, self._mask_padding = n_best_size, mask_padding
    self._may_have_no_answer = version_2_with_negative
    self._threshold = null_score_diff_threshold
    self._head = AnswerHead(**(head or {}))
    self._mask_padding |= self._head.has_beam
    # Whether no answer is one of the answers, with a share of their probability.
    self._null_competes = version_2_with_negative and self._head.kind == "bert"
    texts = tf.TensorSpec([None], tf.string)
    self.__call__.get_concrete_function(texts, texts)
    self._list_variables()

  @classmethod
  def options_of_run(cls, run):
    """Returns how paragraphs are cut into windows, and what the head is."""
    facts, settings, length = run.facts, run.settings, run.max_seq_length
    head = AnswerHead.of_run(facts, settings)
    options = {
      "doc_stride": settings.get("doc_stride", min(128, length // 3)),
      "max_query_length": settings.get("max_query_length", min(64, length // 4)),
      "mask_padding": settings.get("pad_to_longest", False),
      # The configuration of transformers does not say it; an option does.
      "version_2_with_negative": facts.get("version_2_with_negative", False),
    }
    if head.kind != "bert":
      options["head"] = dataclasses.asdict(head)
      options["null_score_diff_threshold"] = settings.get("null_score_diff_threshold", 0.0)
    return options

  @tf.function(autograph=False)
  def __call__(self, question, context) -> Outputs:
    """Answers the questions.

    Args:
      question: string `[B]`.
      context: string `[B]`, the paragraphs; of any length.

    Returns:
      `answer` string `[B]`, the paragraph's text with one space for each row of blanks, or "";
      `start` and `end` int32 `[B]`, its first character in the paragraph and the one after its
      last, -1 for no answer; `probability` float32 `[B]`, among the `n_best_size` best answers;
      `score` float32 `[B]`, the sum of its logits. With `version_2_with_negative` also `null_odds`
      float32 `[B]`, the score of no answer less that of the best answer.
    """
    paragraphs = self._split(context)
    # As in training: a space before the question would be a part of RoBERTa's first token.
    queries = self._pieces(tf.strings.regex_replace(question, _BLANKS_BEFORE, ""))
    queries = graph_text.first_pieces(
      queries, tf.minimum(queries.row_lengths(), self._max_query_length)
    )
    layout = self._frame.layout
    sizes = self._seq_length - layout.num_special(True) - queries.row_lengths()
    windows = graph_text.all_windows(
      paragraphs.pieces.row_lengths(), sizes, tf.minimum(sizes, self._stride)
    )
    queries = tf.gather(queries, windows.rows)
    logits = self._logits(queries, windows.cut(paragraphs.pieces))
    starts = layout.start_of_second(queries.row_lengths())
    spans = self._spans(logits, windows, starts, paragraphs.pieces)
    nulls = self._null_scores(logits, windows, tf.size(question))
    return self._answers(spans, nulls, paragraphs)

  def signature(self) -> tf.types.experimental.ConcreteFunction:
    """Returns the serving signature: strings `question` and `context` to the answers."""
    return string_signature(self, strings("question"), strings("context"))

  # -------------------------------------------------------------------------------------------
  # Texts to logits.

  def _split(self, texts) -> _Paragraphs:
    if self._has_pieces:
      return _split_into_pieces(self._tokenizer, texts)
    words = graph_text.split_words(texts, _BLANKS)
    # Word by word, as in training: [W, (words of BasicTokenizer), (tokens)], then [W, (tokens)].
    pieces, starts, limits = (
      ragged.merge_dims(1, 2) for ragged in self._tokenizer.tokenize_with_offsets(words.strings)
    )
    piece_words = pieces.value_rowids()
    offsets = tf.gather(words.byte_starts, piece_words)
    tokenizer: Any = self._tokenizer  # An `ExactTokenizer`.
    letters = tokenizer.words(words.strings)
    letters = tf.reduce_sum(letters.with_values(_num_chars(letters.values)), axis=1)  # [W]
    return _Paragraphs(
      texts=texts,
      pieces=words.by_text(pieces).merge_dims(1, 2),
      words=piece_words,
      piece_starts=starts.values + offsets,
      piece_limits=limits.values + offsets,
      word_starts=words.byte_starts,
      word_limits=words.byte_starts + tf.cast(tf.strings.length(words.strings), tf.int64),
      num_odd=_counts_before(words.num_chars - letters),
    )

  def _logits(self, queries, parts) -> Any:
    """Scores start and end positions, float32 `[R, S]`; `SpanScores` of other heads than BERT's."""
    inputs = graph_text.join(
      queries,
      parts,
      tf.ones_like(parts.row_lengths(), tf.bool),
      self._frame,
      None if self._mask_padding else self._seq_length,
    )
    with self._building():
      model = self._bert(inputs, skip_padding=self._mask_padding)
      output = model.get_sequence_output()
      if self._head.kind != "bert":
        masks = inputs["input_mask"], inputs["input_type_ids"]
        deviation = self._config.initializer_range
        return span_heads.get_span_scores(self._head, output, *masks, deviation, with_beam=True)
      mask = inputs["input_mask"] if self._mask_padding else None
      return heads.get_span_logits(output, mask)

  # -------------------------------------------------------------------------------------------
  # Logits to spans.

  def _best_positions(self, logits):
    """Computes scores and positions of beginnings, `[R, K]`, and of ends, `[R, K or 1, E]`."""
    if self._head.has_beam:
      beam = logits.beam
      return beam.start_log_probs, beam.start_index, beam.end_log_probs, beam.end_index
    num_best = tf.minimum(self._n_best_size, tf.shape(logits[0])[1])
    # Positions in padding and the question may be among the best, as in the original.
    (start_logits, starts), (end_logits, ends) = (tf.math.top_k(x, num_best) for x in logits[:2])
    return start_logits, starts, end_logits[:, tf.newaxis], ends[:, tf.newaxis]

  def _spans(self, logits, windows: Windows, offsets, pieces) -> _Spans:
    """Lists the spans of all windows; a window's paragraph begins at `offsets`, `[R]`."""
    start_logits, starts, end_logits, ends = self._best_positions(logits)
    starts = tf.cast(starts, tf.int64) - offsets[:, tf.newaxis]
    ends = tf.cast(ends, tf.int64) - offsets[:, tf.newaxis, tf.newaxis]
    lengths = windows.lengths[:, tf.newaxis]
    can_end = (ends >= 0) & (ends < lengths[..., tf.newaxis])
    can_start = (starts >= 0) & (starts < lengths)
    # Only the window with most context around an answer's first token may give the answer.
    shows_most = graph_text.shows_most(
      windows, pieces.row_starts(), tf.size(pieces.values), _BONUS_OF_LENGTH
    )
    places = shows_most.row_starts()[:, tf.newaxis] + tf.where(can_start, starts, 0)
    can_start &= tf.gather(shows_most.values, places)
    lengths = ends - starts[..., tf.newaxis]  # [R, K, E]
    makes_sense = can_start[..., tf.newaxis] & can_end
    makes_sense &= (lengths >= 0) & (lengths < self._max_answer_length)
    rows, i, j = tf.unstack(tf.where(makes_sense), axis=1)  # [M] each
    own = i if self._head.has_beam else tf.zeros_like(i)  # which beginning the ends belong to
    i, j = tf.stack([rows, i], axis=1), tf.stack([rows, own, j], axis=1)
    questions = tf.gather(windows.rows, rows)
    first_pieces = tf.gather(pieces.row_starts(), questions) + tf.gather(windows.starts, rows)
    scores = tf.cast(tf.gather_nd(start_logits, i), tf.float64)
    scores += tf.cast(tf.gather_nd(end_logits, j), tf.float64)
    spans = _Spans(
      questions,
      first_pieces + tf.gather_nd(starts, i),
      first_pieces + tf.gather_nd(ends, j),
      scores,
    )
    # Of equal scores, the first found stays first: by window, rank of beginning, rank of end.
    spans = spans.select(tf.argsort(-scores, stable=True))
    return spans.select(tf.argsort(spans.questions, stable=True))

  def _null_scores(self, logits, windows: Windows, num_questions):
    """Computes the score of no answer, the smallest of all windows: float64 `[B]`.

    Of a window it is the sum of the logits of [CLS], or the score that the head has for it.
    """
    if self._head.kind != "bert" and logits.null_logit is not None:
      scores = tf.cast(logits.null_logit, tf.float64)
    else:
      of_first = [x[:, 0] for x in logits[:2] if x is not None]
      scores = tf.add_n([tf.cast(x, tf.float64) for x in of_first])
    least = tf.math.unsorted_segment_min(scores, windows.rows, num_questions)
    return tf.where(least < squad_answers.NO_ANSWER_ODDS, least, 0.0)

  # -------------------------------------------------------------------------------------------
  # Spans to answers.

  def _answers(self, spans: _Spans, nulls, paragraphs: _Paragraphs) -> Outputs:
    num_questions = tf.size(nulls, tf.int64)
    starts, limits = self._bytes_of(spans, paragraphs)
    contexts = tf.gather(paragraphs.texts, spans.questions)
    texts = tf.strings.substr(contexts, starts, tf.maximum(limits - starts, 0))
    if self._has_pieces:  # with which answers are cut out of the paragraph
      starts += _num_bytes(texts) - _num_bytes(tf.strings.regex_replace(texts, _BLANKS_BEFORE, ""))
      texts = tf.strings.regex_replace(texts, _BLANKS_BEFORE, "")
      texts = tf.strings.regex_replace(texts, _BLANKS_AFTER, "")
      limits = starts + _num_bytes(texts)
    else:
      texts = tf.strings.regex_replace(texts, f"[{_BLANKS}]+", " ")
    is_among_best, is_first = self._best_texts(spans, texts, nulls, num_questions)
    totals = self._total(spans, nulls, is_among_best, num_questions)

    best = tf.where(is_first & is_among_best)[:, 0]  # the best span of each question that has one
    chosen = spans.select(best)
    contexts, starts, limits = (tf.gather(x, best) for x in (contexts, starts, limits))
    is_text = limits > starts  # the token "▁" alone is none
    scores = _scattered(chosen.scores, chosen.questions, tf.fill([num_questions], -tf.float64.max))
    has_null_score = self._head.kind != "bert" and self._head.answerable_classifier
    odds = nulls if has_null_score else nulls - scores
    odds = tf.minimum(odds, squad_answers.NO_ANSWER_ODDS)
    has_answer = scores > -tf.float64.max
    if self._may_have_no_answer:
      is_null = odds >= self._threshold if self._head.threshold_is_null else odds > self._threshold
      has_answer &= ~is_null
    scores = tf.where(has_answer, scores, nulls if self._null_competes else 0.0)

    def where_answered(values, default):
      default = tf.fill([num_questions], tf.constant(default, values.dtype))
      return tf.where(has_answer, _scattered(values, chosen.questions, default), default)

    is_among_best = has_answer | self._null_competes
    probability = tf.where(is_among_best, tf.exp(scores - totals), 0.0)
    outputs = {
      "answer": where_answered(tf.gather(texts, best), ""),
      "start": where_answered(tf.where(is_text, _num_chars_before(contexts, starts), -1), -1),
      "end": where_answered(tf.where(is_text, _num_chars_before(contexts, limits), -1), -1),
      "probability": tf.cast(probability, tf.float32),
      "score": tf.cast(scores, tf.float32),
    }
    if self._may_have_no_answer:
      outputs["null_odds"] = tf.cast(odds, tf.float32)
    return outputs

  def _bytes_of(self, spans: _Spans, paragraphs: _Paragraphs):
    """Finds the first byte of each span, and the one after its last, int64 `[M]`.

    Whole words if run_squad cannot find an answer's letters in them: a token is [UNK], or
    normalisation has changed the number of letters.
    """
    first_words = tf.gather(paragraphs.words, spans.first)
    last_words = tf.gather(paragraphs.words, spans.last)
    is_unknown = paragraphs.pieces.values == self._unk_id
    is_whole = _counted(_counts_before(is_unknown), spans.first, spans.last) != 0
    is_whole |= _counted(paragraphs.num_odd, first_words, last_words) != 0
    return (
      tf.where(
        is_whole,
        tf.gather(paragraphs.word_starts, first_words),
        tf.gather(paragraphs.piece_starts, spans.first),
      ),
      tf.where(
        is_whole,
        tf.gather(paragraphs.word_limits, last_words),
        tf.gather(paragraphs.piece_limits, spans.last),
      ),
    )

  def _best_texts(self, spans: _Spans, texts, nulls, num_questions):
    """Marks, bool `[M]`, the `n_best_size` best spans with different texts, and the best of all."""
    keys = tf.strings.join([tf.strings.as_string(spans.questions), texts], " ")
    numbers = tf.unique(keys).idx
    indices = tf.range(tf.size(numbers))
    # In this order the first span with a text is its best.
    is_new = tf.gather(tf.math.unsorted_segment_min(indices, numbers, tf.size(numbers)), numbers)
    is_new = is_new == indices
    firsts = tf.searchsorted(spans.questions, tf.range(num_questions))  # [B]
    firsts = tf.gather(firsts, spans.questions)  # [M], the first span of the same question
    before = _counts_before(is_new)
    ranks = before[:-1] - tf.gather(before, firsts)
    if self._null_competes:  # the null answer is one of the n best
      ranks += tf.cast(tf.gather(nulls, spans.questions) > spans.scores, tf.int64)
    return is_new & (ranks < self._n_best_size), firsts == indices

  def _total(self, spans: _Spans, nulls, is_among_best, num_questions):
    """Computes the log of the softmax's denominator over the best answers: float64 `[B]`."""
    best = spans.select(tf.where(is_among_best)[:, 0])
    largest = tf.math.unsorted_segment_max(best.scores, best.questions, num_questions)
    if self._null_competes:
      largest = tf.maximum(largest, nulls)
    shares = tf.exp(best.scores - tf.gather(largest, best.questions))
    total = tf.math.unsorted_segment_sum(shares, best.questions, num_questions)
    if self._null_competes:
      total += tf.exp(nulls - largest)
    return largest + tf.math.log(total)


def _split_into_pieces(tokenizer: Any, texts) -> _Paragraphs:
  """Splits paragraphs into tokens of a sentencepiece model, each of which counts as a word.

  "▁" alone, which has no character, ends where the token before it does.
  """
  pieces, starts, limits = (x.merge_dims(1, 2) for x in tokenizer.tokenize_with_offsets(texts))
  starts, limits = starts.values, limits.values
  is_full = limits > starts
  num_full = tf.cumsum(tf.cast(is_full, tf.int32))
  full_limits = tf.concat([[0], tf.boolean_mask(limits, is_full)], 0)
  # Of a "▁" that begins a paragraph this is the end of another one, but nothing can end there.
  limits = tf.gather(full_limits, num_full)
  indices = tf.range(tf.size(starts, tf.int64))
  num_odd = tf.zeros([tf.size(starts) + 1], tf.int64)
  return _Paragraphs(texts, pieces, indices, starts, limits, starts, limits, num_odd)


def _num_bytes(strings):
  return tf.cast(tf.strings.length(strings), tf.int64)


def _num_chars(strings):
  return tf.strings.length(strings, "UTF8_CHAR")


def _num_chars_before(strings, num_bytes):
  return _num_chars(tf.strings.substr(strings, tf.zeros_like(num_bytes), num_bytes))


def _counts_before(values):
  """Sums the values before each index, and all: int64 `[X + 1]`."""
  return tf.concat([[0], tf.cumsum(tf.cast(values, tf.int64))], 0)


def _counted(counts_before, first, last):
  """Sums the values from `first` to `last`."""
  return tf.gather(counts_before, last + 1) - tf.gather(counts_before, first)


def _scattered(values, places, default):
  return tf.tensor_scatter_nd_update(default, places[:, tf.newaxis], values)
