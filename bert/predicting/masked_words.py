"""Masked words and next sentences, predicted by a pre-trained model.

  fill = Predictor.load("uncased_L-12_H-768_A-12", task="masked_words")
  fill(["The capital of France is [MASK]."])[0]["masks"][0][0]["token"]
  fill([("It rains.", "The street is wet.")])[0]["next_sentence"]

Letters in shapes: B = batch size, S = sequence length, P = masks, K = pieces for each mask, V =
vocabulary size.
"""

import re
from typing import NamedTuple

from bert.predicting import sentence_vectors
from bert.predicting.processors import ItemRows, Processor
from bert.text.sequence_layout import layout_of

# Kept whole in a text if written exactly like this; any other bracket is punctuation. A tokenizer
# with other names has those.
SPECIAL_TOKENS = ("[MASK]", "[CLS]", "[SEP]", "[UNK]")

INPUTS = (*sentence_vectors.INPUTS, "masked_lm_positions")


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


def graph(config, its_heads: Heads, top_k: int, dtype: str = "float32"):
  """Returns a graph function of `INPUTS`, for `engines.tensorflow.load_graph`.

  Of ELECTRA the generator guesses; and the discriminator, if the checkpoint has it, says of each
  token how probably it was replaced, with the first guess at each mask.
  """
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
    outputs = _likeliest(logits, min(top_k, config.vocab_size))
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


class MaskedWordsProcessor(Processor):
  """Texts with masks, or pairs of texts, to guesses.

  The results are `{"text", "masks"}`: for each mask a list of `{"token", "probability"}`, the most
  probable first; RoBERTa's tokens as text, with the space that they begin with. Pairs also have
  `text_b`, and `next_sentence`, the probability that it follows, if the checkpoint has that head.
  With a discriminator, results have `tokens`, a list of `{"token", "replaced"}`.
  """

  def __init__(self, tokenizer, max_seq_length: int, heads: Heads):
    """Takes a tokenizer that keeps `SPECIAL_TOKENS` whole, and the heads of the checkpoint.

    Longer texts than `max_seq_length` are truncated; a mask must not be cut off.
    """
    self.max_seq_length = max_seq_length
    self._tokenizer = tokenizer
    self._heads = heads
    self.mask_token = layout_of(tokenizer).mask

  def featurize(self, item):
    """See `Processor`."""
    texts = sentence_vectors.text_pair(item)
    features = sentence_vectors.text_features(self._tokenizer, texts, self.max_seq_length)
    places = [i for i, token in enumerate(features["tokens"]) if token == self.mask_token]
    self._check(texts, len(places))
    # A text without a mask has one position as padding; its output is not used.
    row = {**features, "places": places, "masked_lm_positions": places or [0]}
    return ItemRows(texts, [row])

  def finish(self, rows, outputs):
    """See `Processor`; the result is a dict."""
    (text_a, text_b), (features,), (outputs,) = rows.item, rows, outputs
    result = {"text": text_a}
    if text_b is not None:
      result["text_b"] = text_b
    result["masks"] = [
      _pieces(self._tokenizer, outputs["ids"][i], outputs["probabilities"][i])
      for i in range(len(features["places"]))
    ]
    if self._heads.replaced:
      result["tokens"] = _verdicts(self._tokenizer, features, outputs)
    if self._heads.next_sentence and text_b is not None:
      result["next_sentence"] = float(outputs["next_sentence"])
    return result

  def trial_items(self):
    """See `Processor`."""
    few = self.max_seq_length - 3
    return [self.mask_token, f"{self.mask_token} {'a ' * few}"]

  def _check(self, texts: tuple[str, str | None], num_places: int) -> None:
    """Raises a ValueError if the model cannot answer the question."""
    whole, mask = " ||| ".join(filter(None, texts)), self.mask_token
    asked = whole.count(mask)
    if num_places < asked:
      raise ValueError(
        f"{asked - num_places} of {asked} {mask} in {whole!r:.60} are beyond max_seq_length "
        f"{self.max_seq_length}. Raise --max_seq_length, or shorten the text."
      )
    if asked or self._heads.replaced or (self._heads.next_sentence and texts[1] is not None):
      return
    # What other programs and typists write.
    like_mask = re.search(r"\[ ?mask ?\]|<mask>|\{mask\}|_{3,}", whole, re.IGNORECASE)
    how = "in capitals" if mask.isupper() else "exactly so"
    hint = f" Write {mask}, {how}, for {like_mask[0]}." if like_mask else ""
    if texts[1] is not None:
      hint += (
        " The checkpoint has no next-sentence head (no variable cls/seq_relationship/...) to say "
        "whether the second text follows the first."
      )
    raise ValueError(f"no {mask} in {whole!r:.60}.{hint}")


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
