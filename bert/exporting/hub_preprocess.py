"""Text to model inputs as a SavedModel with exactly `tokenization.FullTokenizer`'s tokens.

  export_preprocess("out/preprocess", "vocab.txt", do_lower_case=True)

  import tensorflow_text                                # its ops are needed wherever it is loaded
  preprocess = tf.saved_model.load("out/preprocess")
  preprocess(["Hello!"])                                # input_word_ids, input_mask, input_type_ids
  tokens = preprocess.tokenize(["Hello!"])              # [batch, (words), (tokens)]
  preprocess.bert_pack_inputs([tokens, tokens], seq_length=64)

It is used as the published preprocess models are (https://github.com/tensorflow/hub,
docs/common_saved_model_apis/text.md). Those have a tokenizer of their own, which differs from the
one that made BERT's training data, for instance in `½`, a no-break space and words of 100 bytes.

Letters in shapes: B = batch size, S = sequence length.
"""

import os
import shutil
import tempfile
import weakref

import tensorflow as tf

from bert import tokenization
from bert.exporting import saved_models
from bert.exporting.graph_tokenizer import ExactTokenizer
from bert.io import atomic_files, filesystem, installation, vocabulary_kind
from bert.text import vocabulary_file

Features = dict[str, tf.Tensor]


# ---------------------------------------------------------------------------------------------
# Vocabulary.


class _Vocabulary:
  """The vocabulary file for the asset, and its tokens by id.

  TensorFlow reads lines unchanged; `tokenization.load_vocab` strips them and uses the later of two
  equal lines. If that makes a difference, the asset is a rewritten copy.
  """

  def __init__(self, vocab_file: str | os.PathLike):
    ids = tokenization.load_vocab(vocab_file)
    if not vocabulary_kind.is_of_word_pieces(ids):
      raise tokenization.VocabularyError(
        f"{vocab_file} is not a WordPiece vocabulary, and only that has a graph from strings to "
        "tokens. Tokenize in Python: tokenization.load_tokenizer, or transformers' AutoTokenizer."
      )
    if vocabulary_kind.unknown_token(ids) not in ids:
      raise tokenization.VocabularyError(
        f"{vocab_file} lacks [UNK], the token of unknown words. Add that line."
      )
    ends = vocabulary_kind.ends_and_mask(ids)[:2]
    missing = [token for token in ends if token not in ids]
    if missing:
      raise tokenization.VocabularyError(
        f"{vocab_file} lacks {missing}, which mark the ends of texts. Add these lines."
      )
    # Repeated lines still take an id. No word contains a blank.
    self.tokens = [f"[line {index + 1}]" for index in range(max(ids.values()) + 1)]
    for token, index in ids.items():
      if token:
        self.tokens[index] = token
    self.ids = ids
    self.path = os.fsdecode(vocab_file)
    self._rewrite_if_needed()

  def _rewrite_if_needed(self):
    text = "\n".join(self.tokens) + "\n"
    if filesystem.read_bytes(self.path).removesuffix(b"\n") + b"\n" == text.encode():
      return
    folder = tempfile.mkdtemp()
    weakref.finalize(self, shutil.rmtree, folder, ignore_errors=True)
    name = os.path.basename(self.path)
    name = vocabulary_kind.VOCABULARY if name.endswith(".json") else name
    self.path = os.path.join(folder, name)
    atomic_files.write_text(self.path, text)

  def special_tokens(self) -> dict[str, int]:
    """Returns ids by the names of the Hub's text API; a token not there has no entry."""
    first, last, mask = vocabulary_kind.ends_and_mask(self.ids)
    names = {
      "start_of_sequence_id": first,
      "end_of_segment_id": last,
      "padding_id": vocabulary_kind.padding_token(self.ids),
      "mask_id": mask,
    }
    found = {name: self.ids[token] for name, token in names.items() if token in self.ids}
    return {"vocab_size": len(self.tokens), **found}


# ---------------------------------------------------------------------------------------------
# The objects that users call.

_SENTENCES = tf.TensorSpec([None], tf.string, "sentences")
_SEQ_LENGTH = tf.TensorSpec([], tf.int32, "seq_length")


class _SpecialTokens(tf.train.Checkpoint):
  """`tokenize.get_special_tokens_dict()`."""

  def __init__(self, ids: dict[str, int]):
    super().__init__()
    self._ids = ids

  @tf.function(input_signature=[], autograph=False)
  def __call__(self) -> Features:
    return {name: tf.constant(index, tf.int32) for name, index in self._ids.items()}


class _Tokenize(tf.train.Checkpoint):
  """`tokenize(text)` or `tokenize_with_offsets(text)`."""

  def __init__(self, function, get_special_tokens_dict: _SpecialTokens):
    super().__init__()
    self._function = function
    self.get_special_tokens_dict = get_special_tokens_dict

  @tf.function(input_signature=[_SENTENCES], autograph=False)
  def __call__(self, text):
    return self._function(text)


class _PackInputs(tf.train.Checkpoint):
  """`bert_pack_inputs(segments, seq_length=...)`."""

  def __init__(self, ids: dict[str, int], default_seq_length: int):
    super().__init__()
    self._ids = ids
    self._default_seq_length = default_seq_length

  @tf.function(autograph=False)
  def __call__(self, segments, seq_length=None) -> Features:
    """Packs one or two segments, `[CLS] a [SEP]` or `[CLS] a [SEP] b [SEP]`, and pads.

    Segments are int32 RaggedTensors, [B, (tokens)] or [B, (words), (tokens)]. What is longer than
    `seq_length`, S, is cut, the longer segment first.

    Returns:
      int32 [B, S]: `input_word_ids`, `input_mask`, `input_type_ids`.
    """
    operations = installation.text_operations("An export that reads text")
    if seq_length is None:
      seq_length = self._default_seq_length
    flat = [segment.merge_dims(1, -1) for segment in segments]
    special = len(segments) + 1
    trimmed = operations.RoundRobinTrimmer(tf.maximum(seq_length - special, 0)).trim(flat)
    ids, types = operations.combine_segments(
      trimmed, self._ids["start_of_sequence_id"], self._ids["end_of_segment_id"]
    )
    # Without a [PAD], 0 as in the original, which does not use the vocabulary for it.
    padding = self._ids.get("padding_id", 0)
    ids, mask = operations.pad_model_inputs(ids, seq_length, padding)
    types, _ = operations.pad_model_inputs(types, seq_length)
    return {"input_word_ids": ids, "input_mask": mask, "input_type_ids": types}

  def trace(self):
    """Builds the graphs for all kinds of arguments that a loaded model accepts."""
    for num_segments in (1, 2):
      for ragged_rank in (1, 2):
        shape = [None] * (ragged_rank + 1)
        segments = [tf.RaggedTensorSpec(shape, tf.int32, ragged_rank)] * num_segments
        self.__call__.get_concrete_function(segments)
        self.__call__.get_concrete_function(segments, seq_length=_SEQ_LENGTH)


class Preprocessor(tf.train.Checkpoint):
  """Converts strings to the inputs of a BERT encoder; it can be called, and exported.

  Attributes:
    tokenize: string [B] -> int32 RaggedTensor [B, (words), (tokens)].
    tokenize_with_offsets: string [B] -> the same, and two int64 RaggedTensors: where each token
      begins and ends (exclusive) in the text, in bytes.
    bert_pack_inputs: see `_PackInputs`.
    vocab_file: the vocabulary, a `tf.saved_model.Asset`.
  """

  def __init__(
    self,
    vocab_file: str | os.PathLike,
    do_lower_case: bool = True,
    seq_length: int = 128,
  ):
    """Builds the graphs' tables, which takes seconds.

    Args:
      vocab_file: a WordPiece vocabulary, one token per line.
      do_lower_case: True for uncased models.
      seq_length: S, unless a call says otherwise.

    Raises:
      VocabularyError: the vocabulary cannot be used, is not WordPiece, or lacks [UNK], [CLS] or
        [SEP].
      ValueError: `seq_length` leaves no room for a text.
    """
    super().__init__()
    if seq_length < 3:
      raise ValueError(f"seq_length is {seq_length}: [CLS], a piece and [SEP] take 3.")
    stated = vocabulary_file.supported_settings(vocab_file)
    self._vocabulary = _Vocabulary(vocab_file)
    self.vocab_file = saved_models.vocabulary_asset(self._vocabulary.path, self)
    tokenizer = ExactTokenizer(self._vocabulary.tokens, do_lower_case, **stated.splitting)
    self.tokenizer = tokenizer
    ids = self._vocabulary.special_tokens()
    special_tokens = _SpecialTokens(ids)
    self.tokenize = _Tokenize(tokenizer.tokenize, special_tokens)
    self.tokenize_with_offsets = _Tokenize(tokenizer.tokenize_with_offsets, special_tokens)
    self.bert_pack_inputs = _PackInputs(ids, seq_length)

  @tf.function(autograph=False)
  def __call__(self, sentences, seq_length=None, training=False) -> Features:
    """Tokenizes and packs.

    Args:
      sentences: string [B].
      seq_length: S; int or int32 scalar.
      training: without effect; Keras layers pass it, and published models accept it.

    Returns:
      int32 [B, S]: `input_word_ids`, `input_mask`, `input_type_ids`.
    """
    del training
    return self.bert_pack_inputs([self.tokenize(sentences)], seq_length=seq_length)

  @tf.function(input_signature=[_SENTENCES], autograph=False)
  def serve(self, sentences):
    """Calls `self(sentences)`: the default endpoint of `keras.layers.TFSMLayer`, the signature."""
    return self(sentences)

  def trace(self) -> dict[str, tf.types.experimental.ConcreteFunction]:
    """Builds all graphs of a loaded model, and returns its signatures."""
    with saved_models.traced_to_save():
      for training in (False, True, None):
        self.__call__.get_concrete_function(_SENTENCES, training=training)
        self.__call__.get_concrete_function(_SENTENCES, seq_length=_SEQ_LENGTH, training=training)
      self.bert_pack_inputs.trace()
      return {"serving_default": self.serve.get_concrete_function()}


def export_preprocess(
  export_dir: str,
  vocab_file: str | os.PathLike,
  do_lower_case: bool = True,
  seq_length: int = 128,
) -> None:
  """Writes a `Preprocessor` as a SavedModel, whole or not at all.

  Args:
    export_dir: the folder; an existing SavedModel is replaced.
    vocab_file: see `Preprocessor`, also for the rest.
    do_lower_case: True for uncased models.
    seq_length: S, unless a call says otherwise.

  Raises:
    VocabularyError: the vocabulary cannot be used.
    OSError: it cannot be written, or `export_dir` holds something else.
  """
  preprocessor = Preprocessor(vocab_file, do_lower_case, seq_length)
  with saved_models.written_aside(export_dir) as folder:
    saved_models.save(preprocessor, folder, preprocessor.trace(), {})
