"""The heads of tasks that classify; `task_head.py` says what a head is.

`span_head.py` has that of questions, `vector_head.py` that of similar texts. Their functions lie in
`heads.py`. Importing this module imports no TensorFlow.

Letters in shapes: B = batch size, S = sequence length, N = texts of an example, C = classes,
W = hidden size.
"""

import dataclasses

from bert.model.task_head import SEQUENCES, Head, check_retired


@dataclasses.dataclass(frozen=True)
class SequenceHead(Head):
  """Classes of a sequence, or a number."""

  num_labels: int  # C
  problem_type: str = "classification"  # see `heads.PROBLEM_TYPES`
  task_name: str | None = None  # part of the names of an ELECTRA head's variables
  # How the logits of windows become one, see `long_documents.pool_logits`.
  window_pooling: str = "mean"

  @classmethod
  def of_run(cls, facts, settings):
    """Makes the head of a run: the labels are its facts."""
    check_retired(facts)
    return cls(
      len(facts["labels"]),
      facts["problem_type"],
      facts.get("task_name"),
      facts.get("window_pooling", "mean"),
    )

  def logits_of(self, batch, vectors):
    """float32 `[B, W]`, the pooled output, to `[B, C]`."""
    from bert.model import heads

    return heads.get_classifier_logits(
      vectors,
      self.num_labels,
      batch.is_training,
      scope=heads.task_scope(batch.config, self.task_name),
      hidden=heads.hidden_of(batch.config, "texts"),
    )

  def outputs(self, batch):
    """Computes `logits`, float32 `[B, C]`, over the windows of each document."""
    import tensorflow as tf

    from bert.model import long_documents

    features = batch.features
    num_windows = features.get("num_windows")  # int `[B]`; sequences are then `[B, S, windows]`
    inputs = tuple(features[name] for name in SEQUENCES)
    if num_windows is not None:
      is_tpu = batch.options.get("use_one_hot_embeddings", False)
      inputs, documents = long_documents.split_batch(*inputs, num_windows, keep_all=is_tpu)
    # The head reads one vector for each sequence: nothing else needs to be computed.
    model = batch.bert(*inputs, only_pooled_output=True)
    logits = self.logits_of(batch, model.get_pooled_output())
    if num_windows is not None:
      count = tf.shape(num_windows)[0]
      logits = long_documents.pool_logits(logits, documents, count, self.window_pooling)
    return {"logits": logits}

  def _losses(self, batch, outputs):
    from bert.model import heads

    return heads.get_classifier_loss(
      outputs["logits"], batch.features["label_ids"], self.problem_type
    )

  def loss(self, batch, outputs):
    """Computes the cross-entropy, or the squared error of a regression."""
    return self._losses(batch, outputs)[:2]

  def predictions(self, batch, outputs):
    """Computes `probabilities`, float32 `[B, C]`, or scores `[B, 1]`."""
    return {"probabilities": self._losses(batch, outputs)[2]}

  def eval_tensors(self, batch, outputs, losses):
    """Selects logits of classes, and predictions of the other problem types."""
    is_class = self.problem_type == "classification"
    scores = outputs["logits"] if is_class else self.predictions(batch, outputs)["probabilities"]
    features = {name: batch.features[name] for name in ("label_ids", "is_real_example")}
    return {"outputs": scores, "losses": losses, **features}

  def row_scores(self, batch, outputs):
    """Selects `logits`, float32 `[R, C]`, where they are not of several windows."""
    return {} if "num_windows" in batch.features else outputs


@dataclasses.dataclass(frozen=True)
class TokenHead(Head):
  """A label for each token."""

  num_labels: int  # C

  token_outputs = ("logits",)

  @classmethod
  def of_run(cls, facts, settings):
    """Makes the head of a run: the labels are its facts."""
    check_retired(settings)
    return cls(len(facts["labels"]))

  def outputs(self, batch):
    """Computes `logits`, float32 `[B, S, C]`."""
    from bert.model import heads

    vectors = batch.bert().get_sequence_output()
    scope = heads.task_scope(batch.config, "ner", is_tokens=True)
    logits = heads.get_token_logits(vectors, self.num_labels, batch.is_training, scope=scope)
    return {"logits": logits}

  def loss(self, batch, outputs):
    """Computes the mean over tokens with a label: the first ones of words."""
    from bert.model import heads

    return heads.get_token_loss(outputs["logits"], batch.features["label_ids"], parts=batch.parts)

  def predictions(self, batch, outputs):
    """Computes `probabilities` `[B, S, C]`, and selects `word_mask` `[B, S]`."""
    return {**super().predictions(batch, outputs), "word_mask": batch.features["word_mask"]}

  def eval_tensors(self, batch, outputs, losses):
    """Selects the best labels alone: probabilities of a whole set would fill the memory."""
    import tensorflow as tf

    best = tf.argmax(outputs["logits"], axis=-1, output_type=tf.int32)
    features = {name: batch.features[name] for name in ("label_ids", "word_mask")}
    return {"predictions": best, "losses": losses, **features}

  def row_scores(self, batch, outputs):
    """Selects `logits`, float32 `[R, S, C]`."""
    return outputs


@dataclasses.dataclass(frozen=True)
class ChoiceHead(Head):
  """A score for each of N choices, of which one is right."""

  @classmethod
  def of_run(cls, facts, settings):
    """Makes the head, which is the same in all runs."""
    return cls()

  def outputs(self, batch):
    """Computes `logits`, float32 `[B, N]`; `choice_mask` is 0 for a choice that is padding."""
    from bert.model import heads

    pooled_output = batch.bert(only_pooled_output=True).get_pooled_output()  # [B*N, W]
    logits = heads.get_choice_logits(
      pooled_output,
      batch.features["choice_mask"],
      batch.is_training,
      hidden=heads.hidden_of(batch.config, "choices"),
    )
    return {"logits": logits}

  def loss(self, batch, outputs):
    """Computes the cross-entropy over the choices.

    To choose one of N sequences is to give one of N labels to their row of scores.
    """
    from bert.model import heads

    labels = batch.features["label_ids"]
    return heads.get_classifier_loss(outputs["logits"], labels, "classification")[:2]

  def row_scores(self, batch, outputs):
    """Selects `logits`, float32 `[R, 1]`: a row is one choice with its context."""
    import tensorflow as tf

    return {"logits": tf.reshape(outputs["logits"], [-1, 1])}

  def scores(self, batch):
    """Computes `logits`, float32 `[R, 1]`, of rows that are not `[B, N, S]` yet."""
    import tensorflow as tf

    alone = {name: tf.expand_dims(batch.features[name], 1) for name in SEQUENCES}  # [R, 1, S]
    mask = tf.ones_like(alone["input_ids"][:, :, 0])
    return self.outputs(dataclasses.replace(batch, features={**alone, "choice_mask": mask}))
