"""What a model with a head computes, by transformers' names of outputs."""

import tensorflow as tf

from bert.model import heads, replaced_tokens
from bert.modeling import BertModel


def outputs_of(config, head, ids, mask, types=None, *, num_labels=3, **options):
  """Builds a model with a head, a key of `transformers_heads.HEADS`, on int `[B, S]`.

  Variables come from the current store. Of choices, two sequences are one question; options are of
  `BertModel`.
  """
  model = BertModel(config, False, ids, mask, types, **options)
  sequence, pooled = model.get_sequence_output(), model.get_pooled_output()
  family = config.family

  def words():
    vectors = tf.reshape(sequence, [-1, config.hidden_size])
    logits = heads.masked_lm_logits(config, vectors, model.get_embedding_table())
    return tf.reshape(logits, [*ids.shape, -1])

  if head == "none":
    return {"last_hidden_state": sequence} | (
      {"pooler_output": pooled} if family.has_pooler else {}
    )
  if head == "pretraining" and family.name == "electra":
    return {"logits": replaced_tokens.discriminator_logits(config, sequence)}
  if head == "pretraining":
    order = heads.get_next_sentence_output(config, pooled, tf.zeros([len(ids)], tf.int32))[2]
    return {"prediction_logits": words(), "sop_logits": order}
  if head == "masked_words":
    return {"logits": words()}
  if head == "sentences":
    hidden = heads.hidden_of(config, "texts")
    return {"logits": heads.get_classifier_logits(pooled, num_labels, False, hidden=hidden)}
  if head == "ner":
    scope = heads.task_scope(config, "ner", is_tokens=True)
    return {"logits": heads.get_token_logits(sequence, num_labels, False, scope=scope)}
  if head == "squad":
    start, end = heads.get_span_logits(sequence)
    return {"start_logits": start, "end_logits": end}
  choices, hidden = tf.ones([len(ids) // 2, 2], tf.int32), heads.hidden_of(config, "choices")
  return {"logits": heads.get_choice_logits(pooled, choices, False, hidden=hidden)}
