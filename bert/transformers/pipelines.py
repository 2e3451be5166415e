"""From texts to answers in one call, as in transformers: `pipeline("text-classification", folder)`.

  classify = pipeline("text-classification", model="a_folder")
  classify(["Good film.", "Bad film."])     # [{"label": "good", "score": 0.98}, ...]

A pipeline is a model, its tokenizer, and what makes answers of outputs: `of_texts`, `of_tokens`,
`of_questions` and the other functions of this room's `answers` module.
"""

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import numpy as np

from bert.checkpoints.families import form
from bert.transformers import answers
from bert.transformers.models import TFPreTrainedModel
from bert.transformers.task_models import AUTO_CLASSES
from bert.transformers.tokenization import AutoTokenizer


class Pipeline:
  """The base of all: a model and its tokenizer.

  Attributes:
    task: its name.
    model: a model of `bert.transformers`.
    tokenizer: of that model.
  """

  task: ClassVar[str] = ""
  head: ClassVar[str] = ""  # the end of the name of its models' classes

  def __init__(
    self, model, tokenizer, batch_size: int = 1, framework: str | None = None, **defaults
  ):
    """Creates the pipeline.

    Args:
      model: a model with the head of the task.
      tokenizer: of that model.
      batch_size: texts that are computed at a time.
      framework: "tf", if anything.
      **defaults: arguments of the calls. `device` and the like make no difference.

    Raises:
      ValueError: the model has another head.
    """
    _check_framework(framework)
    defaults = {name: value for name, value in defaults.items() if name not in _PLACES}
    if getattr(model, "head", None) != self.head:
      raise ValueError(
        f"The task {self.task!r} needs a model TF...{self.head}, not {type(model).__name__}."
      )
    self.model, self.tokenizer = model, tokenizer
    self.batch_size, self.defaults = batch_size, defaults

  def __call__(self, inputs, **arguments) -> Any:
    """Answers a text, or a list of them; see the class."""
    arguments = {**self.defaults, **arguments}
    batch_size = arguments.pop("batch_size", None) or self.batch_size
    if _is_one(inputs):
      return self._one(inputs, next(iter(self._answers([inputs], 1, arguments))))
    return list(self._answers(list(inputs), batch_size, arguments))

  def _answers(self, inputs: list, batch_size: int, arguments: Mapping[str, Any]) -> Iterable[Any]:
    """Answers texts, some at a time."""
    raise NotImplementedError

  def _one(self, given: Any, answer: Any) -> Any:
    """Returns what a single text is answered with."""
    del given
    return answer

  def _predict(self, encoded) -> dict[str, np.ndarray]:
    """Computes the outputs of tokenized texts."""
    known = set(self.model._parameters())
    given = {name: np.asarray(value) for name, value in encoded.items() if name in known}
    return {name: np.asarray(value) for name, value in self.model(given, training=False).items()}

  def _cut(self) -> dict[str, Any]:
    """Returns the tokenizer's arguments by which no text is longer than the model can read."""
    longest = min(self.tokenizer.model_max_length, self.model.bert.longest_sequence)
    return {"truncation": True, "max_length": longest}

  @property
  def device(self) -> str:
    """Where TensorFlow computes."""
    return "GPU" if _has_gpu() else "CPU"


# Arguments about where a model lies and where it is computed.
_PLACES = (
  *("device", "device_map", "torch_dtype", "dtype", "revision", "token", "model_kwargs"),
  *("feature_extractor", "modelcard", "task", "num_workers"),
)


def _check_framework(framework: str | None) -> None:
  if framework not in (None, "tf"):
    raise ValueError(f"framework is {framework!r}; bert.transformers has TensorFlow alone.")


def _has_gpu() -> bool:
  import tensorflow as tf

  return bool(tf.config.list_logical_devices("GPU"))


def _is_one(inputs: Any) -> bool:
  return isinstance(inputs, (str, Mapping)) or not isinstance(inputs, Iterable)


def _check_text(text: Any) -> None:
  if not isinstance(text, str):
    raise ValueError(f"A text is needed, or a list of texts, not {text!r:.80}.")


class TextClassificationPipeline(Pipeline):
  """Labels and their scores for a text, or for a pair `{"text": ..., "text_pair": ...}`.

  Arguments of a call: `top_k` (labels for each text; None for all; 1 and no list by default),
  `function_to_apply` ("softmax", "sigmoid" or "none"), and those of the tokenizer.
  """

  task = "text-classification"
  head = form.TEXTS

  def _answers(self, inputs, batch_size, arguments):
    options = dict(arguments)
    top_k = options.pop("top_k", "")
    if options.pop("return_all_scores", None) is not None and top_k == "":
      top_k = None if arguments["return_all_scores"] else 1
    function = options.pop("function_to_apply", None)
    for first in range(0, len(inputs), batch_size):
      batch = [self._parts(each) for each in inputs[first : first + batch_size]]
      pairs = [pair for _, pair in batch]
      encoded = self.tokenizer(
        [text for text, _ in batch],
        pairs if any(pair is not None for pair in pairs) else None,
        padding=True,
        return_tensors="np",
        **{**self._cut(), **options},
      )
      for logits in self._predict(encoded)["logits"]:
        scored = answers.of_texts(logits, self.model.config, function)
        yield scored[0] if top_k == "" else scored[:top_k]

  def _one(self, given, answer):
    return [answer] if isinstance(given, str) and isinstance(answer, dict) else answer

  @staticmethod
  def _parts(given):
    if isinstance(given, Mapping):
      text, pair = given.get("text"), given.get("text_pair")
      _check_text(text)
      return text, pair
    _check_text(given)
    return given, None


class TokenClassificationPipeline(Pipeline):
  """The entities of a text.

  Arguments of a call: `aggregation_strategy` ("none", "simple", "first", "average", "max") and
  `ignore_labels` (["O"] by default).
  """

  task = "token-classification"
  head = form.TOKENS

  def _answers(self, inputs, batch_size, arguments):
    del batch_size  # each text has its own length; padding would change nothing else
    strategy = arguments.get("aggregation_strategy") or "none"
    ignored = arguments.get("ignore_labels")
    ignored = ["O"] if ignored is None else ignored
    for text in inputs:
      _check_text(text)
      encoded = self.tokenizer(
        text,
        return_tensors="np",
        **self._cut(),
        return_special_tokens_mask=True,
        return_offsets_mapping=self.tokenizer.is_fast,
      )
      [logits] = self._predict(encoded)["logits"]
      tokens = answers.tokens_of(text, encoded, logits, self.tokenizer)
      yield answers.of_tokens(text, tokens, self.model.config, self.tokenizer, strategy, ignored)


class QuestionAnsweringPipeline(Pipeline):
  """The part of a context that answers a question.

  Called with `question=` and `context=`, or dictionaries of both. Further arguments: `top_k`,
  `doc_stride` (128), `max_answer_len` (15), `max_seq_len` (384), `max_question_len` (64),
  `handle_impossible_answer`, `align_to_words`.
  """

  task = "question-answering"
  head = form.SPANS

  def __call__(self, *args, **kwargs):
    """Answers one question or several; see the class."""
    found = {name: kwargs.pop(name) for name in ("question", "context") if name in kwargs}
    inputs = args[0] if args else found
    if args and not isinstance(inputs, (Mapping, list, tuple)):
      raise ValueError("Give question= and context=, or dictionaries with both.")
    if not args and isinstance(found.get("question"), (list, tuple)):
      contexts = found.get("context")
      contexts = [contexts] * len(found["question"]) if isinstance(contexts, str) else contexts
      pairs = zip(found["question"], contexts, strict=True)
      inputs = [{"question": question, "context": context} for question, context in pairs]
    return super().__call__(inputs, **kwargs)

  def _answers(self, inputs, batch_size, arguments):
    del batch_size
    for given in inputs:
      for part in ("question", "context"):
        if not isinstance(given.get(part), str) or not given[part].strip():
          raise ValueError(f"`{part}` is {given.get(part)!r:.80}; a text is needed.")
      found = answers.of_question(given["question"], given["context"], self, **arguments)
      yield found[0] if arguments.get("top_k", 1) == 1 else found


class FillMaskPipeline(Pipeline):
  """The likeliest words for the mask in a text.

  Arguments of a call: `top_k` (5) and `targets`, words to choose from.
  """

  task = "fill-mask"
  head = form.MASKED_TOKENS

  def _answers(self, inputs, batch_size, arguments):
    del batch_size
    for text in inputs:
      _check_text(text)
      encoded = self.tokenizer(text, return_tensors="np", **self._cut())
      [logits] = self._predict(encoded)["logits"]
      yield answers.of_mask(
        text,
        encoded["input_ids"][0],
        logits,
        self.tokenizer,
        arguments.get("top_k") or 5,
        arguments.get("targets"),
      )


class FeatureExtractionPipeline(Pipeline):
  """The vectors of a text's tokens, `[1, S, W]` as lists, or arrays with `return_tensors=True`."""

  task = "feature-extraction"
  head = form.ENCODER

  def _answers(self, inputs, batch_size, arguments):
    del batch_size
    for text in inputs:
      _check_text(text)
      encoded = self.tokenizer(text, return_tensors="np", **self._cut())
      states = self._predict(encoded)["last_hidden_state"]
      yield states if arguments.get("return_tensors") else states.tolist()


PIPELINES = {
  each.task: each
  for each in (
    TextClassificationPipeline,
    TokenClassificationPipeline,
    QuestionAnsweringPipeline,
    FillMaskPipeline,
    FeatureExtractionPipeline,
  )
}
_OTHER_NAMES = {"sentiment-analysis": "text-classification", "ner": "token-classification"}


def pipeline(
  task: str | None = None,
  model: Any = None,
  config: Any = None,
  tokenizer: Any = None,
  framework: str | None = None,
  **kwargs,
) -> Pipeline:
  """Creates the pipeline of a task.

  Args:
    task: "text-classification" ("sentiment-analysis"), "token-classification" ("ner"),
      "question-answering", "fill-mask" or "feature-extraction"; by default that of the model.
    model: a model, or where `from_pretrained` finds one.
    config: of the model, where it is to be loaded.
    tokenizer: likewise; by default that beside the model.
    framework: "tf", if anything.
    **kwargs: `batch_size`, and default arguments of the calls. `device` makes no difference.

  Raises:
    ValueError: the task is not here, or there is no model for it.
  """
  _check_framework(framework)
  if kwargs.pop("grouped_entities", None):
    kwargs["aggregation_strategy"] = "simple"
  if task is None and isinstance(model, TFPreTrainedModel):
    task = next((name for name, each in PIPELINES.items() if each.head == model.head), None)
  task = _OTHER_NAMES.get(task or "", task)
  if task not in PIPELINES:
    raise ValueError(f"The task is {task!r}; here are {', '.join([*PIPELINES, *_OTHER_NAMES])}.")
  if model is None:
    raise ValueError(f"Name the model for {task!r}: nothing is downloaded by default.")
  made = PIPELINES[task]
  source = model if not isinstance(model, TFPreTrainedModel) else model.name_or_path
  if not isinstance(model, TFPreTrainedModel):
    auto = AUTO_CLASSES["TFAutoModel" + made.head.removeprefix(form.ENCODER)]
    model = auto.from_pretrained(model, **({"config": config} if config is not None else {}))
  if tokenizer is None or isinstance(tokenizer, str):
    if not (tokenizer or source):
      raise ValueError("The model was not loaded from a folder: give its tokenizer, too.")
    tokenizer = AutoTokenizer.from_pretrained(tokenizer or source)
  return made(model, tokenizer, **kwargs)
