"""Masked words and next sentences, predicted by a pre-trained model.

  fill = from_checkpoint("uncased_L-12_H-768_A-12")     # or from_saved_model, with an export
  fill(["The capital of France is [MASK]."])[0]["masks"][0][0]["token"]
  fill([("It rains.", "The street is wet.")])[0]["next_sentence"]

Letters in shapes: B = batch size, S = sequence length, P = masks, K = pieces for each mask, V =
vocabulary size.
"""

import re
from typing import NamedTuple

from bert.predicting import load_model, sentence_vectors
from bert.predicting.predictor import Predictor
from bert.predicting.processors import ItemRows, Processor
from bert.text.sequence_layout import layout_of

# Kept whole in a text if written exactly like this; any other bracket is punctuation. A tokenizer
# with other names has those.
SPECIAL_TOKENS = ("[MASK]", "[CLS]", "[SEP]", "[UNK]")

_INPUTS = (*sentence_vectors.INPUTS, "masked_lm_positions")
# Not computed for a checkpoint without the next-sentence head: the pooler.
_WITHOUT_NEXT_SENTENCE = ("bert/pooler/",)


# ---------------------------------------------------------------------------------------------
# Models.


def from_checkpoint(
  init_checkpoint: str,
  *,
  top_k: int = 5,
  bert_config_file: str | None = None,
  vocab_file: str | None = None,
  do_lower_case: bool | None = None,
  max_seq_length: int | None = 128,
  batch_size: int = 32,
  chunk_size: int = 1024,
  dtype: str = "float32",
  batch_invariant: bool = False,
) -> Predictor:
  """Guesses masked words with a pre-trained checkpoint.

  Of ELECTRA the generator guesses; and the discriminator, if the checkpoint has it, says of each
  token how probably it was replaced, with the first guess at each mask. The other arguments are
  those of `load_model.load_model`.

  Args:
    top_k: number of pieces for each mask.
    max_seq_length: longer texts are truncated; a mask must not be cut off. None for 128, or fewer
      where the model can read no more.
    batch_size: texts in a batch.
    chunk_size: see `Predictor`.
    dtype: of the encoder's matrix products.
    batch_invariant: whether a result has the same bits whatever texts are around it: each text is
      then computed alone.

  Returns:
    A predictor. Its items are texts or pairs of texts, its results `{"text", "masks"}`: for each
    mask a list of `{"token", "probability"}`, the most probable first; RoBERTa's tokens as text,
    with the space that they begin with. Pairs also have `text_b`, and `next_sentence`, the
    probability that it follows, if the checkpoint has that head. With a discriminator, results have
    `tokens`, a list of `{"token", "replaced"}`.

  Raises:
    CheckpointError: the checkpoint lacks the masked language model.
    ValueError: a file is missing or bad.
  """
  from bert.checkpoints import bundle_files, reading

  config, tokenizer, prefix = load_model.load_model(
    init_checkpoint, bert_config_file, vocab_file, do_lower_case, max_seq_length, SPECIAL_TOKENS
  )
  max_seq_length = load_model.readable_length(max_seq_length, config.longest_sequence)
  heads = heads_of(config, reading.names_and_shapes(prefix))
  if not heads.words:
    raise bundle_files.CheckpointError(
      f"{prefix} has no head for masked words (no variable {config.family.masked_lm}/...): it is a "
      "fine-tuned model, or one of sentence embeddings. Checkpoints of pre-training have it, "
      "and so do the released models."
    )
  function = load_engine(config, prefix, heads, dtype, top_k)
  batch_size = 1 if batch_invariant else batch_size
  return _predictor(function, tokenizer, max_seq_length, heads, batch_size, chunk_size)


def load_engine(config, prefix: str, heads: "Heads", dtype: str = "float32", top_k: int = 5):
  """Loads what computes the guesses: a `load_model.LoadedFunction`, for `MaskedWordsProcessor`.

  The other arguments are those of `from_checkpoint`.

  Args:
    config: of the model, a `BertConfig`.
    prefix: of its checkpoint.
    heads: of `heads_of`.
  """
  return load_model.load_graph(
    _graph(config, min(top_k, config.vocab_size), heads, dtype),
    _INPUTS,
    prefix,
    () if heads.next_sentence else _WITHOUT_NEXT_SENTENCE,
  )


class Heads(NamedTuple):
  """What a checkpoint can say: of masked words, of pairs, of replaced tokens."""

  words: bool
  next_sentence: bool = False
  generator: bool = False  # whether it, and not the encoder, has the head for masked words
  replaced: bool = False


def heads_of(config, names) -> Heads:
  """Returns which heads a checkpoint has, from the names of its variables."""
  return Heads(
    any(name.startswith(f"{config.family.masked_lm}/") for name in names),
    "cls/seq_relationship/output_weights" in names,
    any(name.startswith("generator/") for name in names),
    "discriminator_predictions/dense_1/kernel" in names,
  )


def from_saved_model(
  saved_model: str,
  *,
  top_k: int = 5,
  max_seq_length: int | None = 128,
  batch_size: int = 32,
  chunk_size: int = 1024,
  batch_invariant: bool = False,
) -> Predictor:
  """Guesses masked words with an exported encoder that has `.mlm`.

  The other arguments, and the results, are those of `from_checkpoint`.

  Args:
    saved_model: the folder of the encoder, which has its vocabulary.

  Raises:
    ValueError: it is not an encoder, or has no `.mlm`.
    OSError: the folder holds no SavedModel.
  """
  import tensorflow as tf

  from bert import tokenization
  from bert.checkpoints import bundle_files, model_files
  from bert.exporting import saved_models
  from bert.model.configuration import BertConfig

  if not bundle_files.is_saved_model(saved_model):
    raise FileNotFoundError(f"{saved_model} holds no SavedModel.")
  encoder = saved_models.load(saved_model)
  if not hasattr(encoder, "mlm"):
    raise ValueError(
      f"{saved_model} has no .mlm: only an encoder that export_hub.py made of a checkpoint of "
      "pre-training has it."
    )
  tokenizer = tokenization.load_tokenizer(
    encoder.vocab_file.asset_path.numpy().decode(),
    bool(encoder.do_lower_case.numpy()),
    SPECIAL_TOKENS,
  )
  longest = BertConfig.from_json_file(model_files.need_config(saved_model)).longest_sequence
  max_seq_length = load_model.readable_length(max_seq_length, longest)
  load_model.check_length(max_seq_length, longest)

  @tf.function(autograph=False)
  def run(input_ids, input_mask, segment_ids, masked_lm_positions):
    outputs = encoder.mlm(
      {
        "input_word_ids": input_ids,
        "input_mask": input_mask,
        "input_type_ids": segment_ids,
        "masked_lm_positions": masked_lm_positions,
      }
    )
    return _likeliest(outputs["mlm_logits"], min(top_k, max(tokenizer.inv_vocab) + 1))

  specs = [tf.TensorSpec([None, None], tf.int32, name) for name in _INPUTS]
  function = load_model.LoadedFunction(run.get_concrete_function(*specs), _INPUTS, owner=encoder)
  batch_size = 1 if batch_invariant else batch_size
  heads = Heads(words=True)
  return _predictor(function, tokenizer, max_seq_length, heads, batch_size, chunk_size)


def _graph(config, top_k, its_heads: Heads, dtype="float32"):
  """Returns a graph function for `load_model.load_graph`."""
  guesser, scopes = config, {}
  if its_heads.generator:
    guesser = config.generator_config()
    scopes = {"scope": "generator", "embedding_scope": config.family.scope}

  def build(features):
    import tensorflow as tf

    from bert.model import heads, replaced_tokens
    from bert.modeling import BertModel

    options = {"dtype": tf.as_dtype(dtype), "skip_padding": True}
    ids, *others = (features[name] for name in sentence_vectors.INPUTS)
    model = BertModel(guesser, False, ids, *others, **options, **scopes)
    positions = features["masked_lm_positions"]  # [B, P]
    vectors = heads.gather_indexes(model.get_sequence_output(), positions)  # [B*P, W]
    logits = heads.masked_lm_logits(guesser, vectors, model.get_embedding_table())  # [B*P, V]
    logits = tf.reshape(logits, [*tf.unstack(tf.shape(positions)), -1])  # [B, P, V]
    outputs = _likeliest(logits, top_k)
    if its_heads.replaced:
      # At 0, which padded positions name, nothing is put.
      filled = replaced_tokens.put(ids, positions, outputs["ids"][:, :, 0])
      discriminator = BertModel(config, False, filled, *others, **options)
      scores = replaced_tokens.discriminator_logits(config, discriminator.get_sequence_output())
      outputs |= {"filled": filled, "replaced": tf.sigmoid(scores)}  # [B, S] each
    if its_heads.next_sentence:
      nobody_knows = tf.zeros_like(positions[:, 0])
      pooled = model.get_pooled_output()
      _, _, log_probs = heads.get_next_sentence_output(config, pooled, nobody_knows)
      outputs["next_sentence"] = tf.exp(log_probs[:, 0])
    return outputs

  return build


def _likeliest(logits, top_k):
  """float32 `[B, P, V]` to `probabilities` and `ids`, `[B, P, K]`, the most probable first."""
  import tensorflow as tf

  best, ids = tf.math.top_k(logits, top_k)
  total = tf.reduce_logsumexp(logits, axis=-1, keepdims=True)
  return {"probabilities": tf.exp(best - total), "ids": ids}


# ---------------------------------------------------------------------------------------------
# Texts in, answers out.


class Question(NamedTuple):
  """One or two texts, and their source for messages."""

  text_a: str
  text_b: str | None = None
  source: str | None = None


class MaskedWordsProcessor(Processor):
  """Texts with masks, or pairs of texts, to guesses; see `from_checkpoint`."""

  def __init__(self, tokenizer, max_seq_length: int, heads: Heads):
    """Takes a tokenizer that keeps `SPECIAL_TOKENS` whole, and the heads of the checkpoint."""
    self.max_seq_length = max_seq_length
    self._tokenizer = tokenizer
    self._heads = heads
    self.mask_token = layout_of(tokenizer).mask

  def featurize(self, item):
    """See `Processor`; an item may also be a `Question`."""
    question = item if isinstance(item, Question) else Question(*sentence_vectors.text_pair(item))
    features = sentence_vectors.text_features(self._tokenizer, question[:2], self.max_seq_length)
    places = [i for i, token in enumerate(features["tokens"]) if token == self.mask_token]
    _check_question(question, self.mask_token, len(places), self._heads, self.max_seq_length)
    # A text without a mask has one position as padding; its output is not used.
    row = {**features, "places": places, "masked_lm_positions": places or [0]}
    return ItemRows(question, [row])

  def finish(self, rows, outputs):
    """See `Processor`; the result is a dict."""
    question, (features,), (outputs,) = rows.item, rows, outputs
    result = {"text": question.text_a}
    if question.text_b is not None:
      result["text_b"] = question.text_b
    result["masks"] = [
      _pieces(self._tokenizer, outputs["ids"][i], outputs["probabilities"][i])
      for i in range(len(features["places"]))
    ]
    if self._heads.replaced:
      result["tokens"] = _verdicts(self._tokenizer, features, outputs)
    if self._heads.next_sentence and question.text_b is not None:
      result["next_sentence"] = float(outputs["next_sentence"])
    return result

  def trial_items(self):
    """See `Processor`."""
    few = self.max_seq_length - 3
    return [self.mask_token, f"{self.mask_token} {'a ' * few}"]


def _predictor(function, tokenizer, max_seq_length, heads: Heads, batch_size, chunk_size):
  processor = MaskedWordsProcessor(tokenizer, max_seq_length, heads)
  return Predictor(processor.featurize, function, _INPUTS, processor.finish, batch_size, chunk_size)


def _pieces(tokenizer, ids, probabilities) -> list[dict]:
  return [
    {"token": tokenizer.shown(token), "probability": probability}
    for token, probability in zip(_tokens(tokenizer, ids), probabilities.tolist(), strict=True)
  ]


def _tokens(tokenizer, ids) -> list[str]:
  # A model may have more ids than its vocabulary has lines: tables are padded to a round size.
  return [tokenizer.inv_vocab.get(i, f"[id {i}]") for i in ids.tolist()]


def _verdicts(tokenizer, features, outputs) -> list[dict]:
  """For each token but [CLS] and [SEP], with guesses at masks, how probably it was replaced."""
  layout = layout_of(tokenizer)
  tokens = _tokens(tokenizer, outputs["filled"])[: len(features["tokens"])]
  return [
    {"token": token, "replaced": float(probability)}
    for token, probability in zip(tokens, outputs["replaced"], strict=False)
    if token not in (layout.cls, layout.sep)
  ]


def _check_question(question: Question, mask: str, num_places: int, heads, max_seq_length) -> None:
  """Raises a ValueError if the model cannot answer the question."""
  texts = " ||| ".join(filter(None, question[:2]))
  where = f"{question.source}: " if question.source else ""
  asked = texts.count(mask)
  if num_places < asked:
    raise ValueError(
      f"{where}{asked - num_places} of {asked} {mask} in {texts!r:.60} are beyond max_seq_length "
      f"{max_seq_length}. Raise --max_seq_length, or shorten the text."
    )
  # What other programs and typists write.
  like_mask = re.search(r"\[ ?mask ?\]|<mask>|\{mask\}|_{3,}", texts, re.IGNORECASE)
  how = "in capitals" if mask.isupper() else "exactly so"
  hint = f" Write {mask}, {how}, for {like_mask[0]}." if like_mask else ""
  if heads.replaced:
    return
  if not asked and question.text_b is None:
    raise ValueError(f"{where}no {mask} in {texts!r:.60}.{hint}")
  if not asked and not heads.next_sentence:
    raise ValueError(
      f"{where}no {mask} in {texts!r:.60}.{hint} The checkpoint has no next-sentence head "
      "(no variable cls/seq_relationship/...) to say whether the second text follows the first."
    )
