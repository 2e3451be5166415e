"""Classes or a score of a text or a pair, from the scores of its row, or of its windows.

Letters in shapes: C = number of labels.
"""

import types
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from bert.tasks import classification, shown
from bert.tasks.decoding import Decoder, Explained, against_others, kind_of, sigmoid, softmax
from bert.tasks.windows import WindowOptions, WindowReader

# As `windows.facts` calls the fields of `WindowOptions`.
_WINDOW_FACTS = ("window_stride", "max_windows", "window_pooling")


class SentenceDecoder(Decoder):
  """One answer for a text or a pair.

  Of classes it has `label`, `probabilities` float32 `[C]` and `label_names`; if several may be
  right also `labels` bool `[C]`, and `label` has those, joined by commas. Of a regression it has
  `score`.
  """

  title: ClassVar = "Text classification"
  has_raw_scores: ClassVar = True

  def __init__(
    self,
    kind,
    tokenizer,
    max_seq_length: int,
    label_names: Sequence[str],
    problem_type: str = "classification",
    windows: WindowOptions | None = None,
    threshold: float = 0.5,
  ):
    """Takes what is known of the labels.

    The other arguments are those of `Decoder`.

    Args:
      label_names: C names, in the order of the logits.
      problem_type: `classification`, `multi_label` or `regression`.
      windows: how longer texts are read; by default they are cut.
      threshold: for multi_label, the minimum probability of a predicted label.
    """
    super().__init__(kind, tokenizer, max_seq_length)
    self._labels = list(label_names)
    is_score = problem_type == "regression"
    self.label_names = () if is_score else self._labels
    self.display = "score" if is_score else "classes"
    self._problem_type = problem_type
    self._windows = windows
    self._threshold = threshold

  @classmethod
  def of_run(cls, facts, settings, tokenizer, max_seq_length, *, windows=None, threshold=0.5):
    """Makes that of a run; `windows` are the values of a `WindowOptions`, by default the run's."""
    del settings
    if windows is None and facts.get("long_text") == "windows":
      windows = [facts[name] for name in _WINDOW_FACTS]
    return cls(
      kind_of(facts),
      tokenizer,
      max_seq_length,
      facts["labels"],
      facts["problem_type"],
      WindowOptions(*windows) if windows else None,
      threshold,
    )

  @classmethod
  def facts_of_outputs(cls, outputs, label_names):
    """Recognises classes whose names are known, and a score alone."""
    if set(outputs) == {"score"}:
      return {"labels": ["score"], "problem_type": "regression"}
    if "label_names" not in outputs or not label_names:
      return None
    problem_type = "multi_label" if "labels" in outputs else "classification"
    return {"labels": list(label_names), "problem_type": problem_type}

  def rows(self, item):
    """Makes one row, or one of each window."""
    return super().rows(item) if self._windows is None else self._windows_of(item)[0]

  def check_not_truncated(self, item):
    """See base class; windows may leave out the end of a text."""
    if self._windows is None:
      super().check_not_truncated(item)
    elif self._windows_of(item)[1]:
      raise ValueError(
        f"The text is longer than {self._windows.max_windows} windows of {self.max_seq_length} "
        "tokens, and it is not to be truncated."
      )

  def _windows_of(self, item) -> tuple[list[dict[str, Any]], bool]:
    """Returns the windows of an item, and whether they leave something out."""
    text_a, text_b = (item[name] for name in self.inputs)
    example = classification.InputExample(None, text_a, text_b or None)
    reader = WindowReader(self.tokenizer, self._windows)
    first = classification.unpadded(
      *classification.join_texts(example, self.max_seq_length, reader), reader
    )
    found = reader.windows_of(example, types.SimpleNamespace(**first))
    ids = found["input_ids"][: found["num_windows"]].tolist()
    return [{**first, "input_ids": each} for each in ids], reader.has_truncated

  def decode(self, item, rows, scores):
    """Pools the logits of windows, and names the label that they say."""
    return self._answer(self._pooled(scores))

  def predictions(self, answer, scores, raw_scores=False):
    """Lists all classes, or the score alone, which is called so."""
    if self._problem_type == "regression":
      score = float(self._pooled(scores)[0]) if raw_scores else answer["score"]
      return [{"label": "score", "score": score}]
    values = self._pooled(scores) if raw_scores else answer["probabilities"]
    found = zip(self._labels, values, strict=True)
    ranked = sorted(found, key=lambda pair: -pair[1])
    return [{"label": label, "score": float(value)} for label, value in ranked]

  def relevance(self, answer, scores):
    """Returns the score, or the probability of the last of two classes, as in MRPC, QQP and QNLI.

    Rankers of transformers have one class alone, whose logit is the score.
    """
    if self._problem_type == "regression":
      return answer["score"]
    if len(self._labels) == 1:  # softmax made it 1
      return float(sigmoid(self._pooled(scores))[0])
    return float(answer["probabilities"][1]) if len(self._labels) == 2 else None

  def raw_relevance(self, scores):
    """Returns the logit of the score that `relevance` returns."""
    logits = self._pooled(scores)
    if self._problem_type != "regression" and len(self._labels) == 2:
      return float(logits[1] - logits[0])
    return float(logits[0]) if len(logits) == 1 else None

  def shown(self):
    """Shows classes, labels or a score."""
    if self._problem_type == "regression":
      return shown.Numbers("score")
    is_many = self._problem_type == "multi_label"
    return (shown.ManyLabels if is_many else shown.Classes)(self._labels)

  def explained(self, item, rows, answer, scores):
    """Explains the score, or the label: of several the likeliest. Windows count alike."""
    logits = self._pooled(scores)
    if self._problem_type == "multi_label":
      weights = np.float32(np.arange(logits.size) == np.argmax(logits))
    else:
      weights = against_others(logits)
    label = "" if self._problem_type == "regression" else self._labels[int(np.argmax(logits))]
    each = {"logits": weights / len(rows)}
    return Explained(f"“{label}”" if label else "the score", [each] * len(rows))

  def _pooled(self, scores) -> np.ndarray:
    """The logits of a text, `[C]`, from those of its windows."""
    logits = np.stack([each["logits"] for each in scores])
    is_max = self._windows is not None and self._windows.pooling == "max"
    return logits.max(axis=0) if is_max else logits.mean(axis=0)

  def _answer(self, logits: np.ndarray) -> dict[str, Any]:
    if self._problem_type == "regression":
      return {"score": float(logits[0])}
    answer: Mapping[str, Any]
    if self._problem_type == "multi_label":
      probabilities = sigmoid(logits)
      given = probabilities >= self._threshold
      names = [name for name, is_given in zip(self._labels, given, strict=True) if is_given]
      answer = {"label": ",".join(names), "labels": given}
    else:
      probabilities = softmax(logits)
      answer = {"label": self._labels[int(np.argmax(logits))]}
    answer = {**answer, "probabilities": probabilities, "label_names": list(self._labels)}
    return dict(sorted(answer.items()))
