"""From text to predictions in one call, as in transformers 4: `pipeline("ner", "a_folder")`.

  classify = pipeline("text-classification", model="a_folder")
  classify(["Good film.", "Bad film."])     # [{"label": "good", "score": 0.98}, ...]

A pipeline is a model and its tokenizer. Spans and entities are decoded by transformers.

Letters in shapes: S = sequence length, W = width.
"""

from collections.abc import Iterable, Mapping

import numpy as np
from transformers.pipelines import document_question_answering as span_decoding
from transformers.pipelines import fill_mask
from transformers.pipelines import token_classification as tag_decoding

from bert.families import form
from bert.tasks.decoding import sigmoid, softmax
from bert.transformers.models import TFPreTrainedModel
from bert.transformers.task_models import AUTO_CLASSES
from bert.transformers.tokenization import AutoTokenizer

# Arguments about where a model is stored and computed, which make no difference here.
_PLACES = (
  "device",
  "device_map",
  "torch_dtype",
  "dtype",
  "revision",
  "token",
  "model_kwargs",
  "feature_extractor",
  "framework",
  "modelcard",
  "task",
  "num_workers",
)
_FUNCTIONS = {"softmax": softmax, "sigmoid": sigmoid, "none": np.asarray}


class Pipeline:
  """The base of all: a model and its tokenizer.

  Attributes:
    task: its name.
    head: the end of the name of its models' classes.
    model: a model of `bert.transformers`.
    tokenizer: of that model.
  """

  task = ""
  head = ""

  def __init__(self, model, tokenizer, batch_size: int = 1, **defaults):
    """Creates the pipeline.

    Args:
      model: a model with the head of the task.
      tokenizer: of that model.
      batch_size: texts that are computed at a time.
      **defaults: arguments of the calls. `device` and the like make no difference.

    Raises:
      ValueError: the model has another head.
    """
    if getattr(model, "head", None) != self.head:
      raise ValueError(
        f"The task {self.task!r} needs a model TF...{self.head}, not {type(model).__name__}."
      )
    self.model, self.tokenizer, self.batch_size = model, tokenizer, batch_size
    self.defaults = {name: value for name, value in defaults.items() if name not in _PLACES}

  def __call__(self, inputs, **arguments):
    """Predicts for a text, or for each of several; see the class."""
    arguments = {**self.defaults, **arguments}
    batch_size = arguments.pop("batch_size", None) or self.batch_size
    is_one = isinstance(inputs, (str, Mapping)) or not isinstance(inputs, Iterable)
    texts, found = [inputs] if is_one else list(inputs), []
    for first in range(0, len(texts), batch_size):
      found += self._predictions(texts[first : first + batch_size], **arguments)
    return found[0] if is_one else found

  def _predictions(self, texts: list, **arguments) -> list:
    """Predicts for the texts of a batch."""
    return [self._prediction(text, **arguments) for text in texts]

  def _prediction(self, text, *args, **kwargs):
    raise NotImplementedError

  def _outputs(self, encoded) -> dict[str, np.ndarray]:
    """Computes the outputs of tokenized texts."""
    known = self.model._parameters()
    given = {name: np.asarray(value) for name, value in encoded.items() if name in known}
    outputs = self.model(given, training=False)
    return {name: np.asarray(value, np.float32) for name, value in outputs.items()}

  def _encoded(self, text, pair=None, **arguments):
    """Tokenizes, by default into no more tokens than the model reads."""
    for each in text if isinstance(text, list) else [text]:
      if not isinstance(each, str):
        raise ValueError(f"A text is needed, or a list of texts, not {each!r:.80}.")
    limit = min(self.tokenizer.model_max_length, self.model.bert.longest_sequence)
    limits = {"truncation": True, "max_length": limit, "return_tensors": "np"}
    return self.tokenizer(text, pair, **{**limits, **arguments})


class TextClassificationPipeline(Pipeline):
  """Labels and their scores for a text, or for a pair `{"text": ..., "text_pair": ...}`.

  Arguments of a call: `top_k` (labels for each text; None for all; 1 and no list by default),
  `function_to_apply` ("softmax", "sigmoid" or "none"), and those of the tokenizer.
  """

  task = "text-classification"
  head = form.TEXTS

  def __call__(self, inputs, **arguments):
    """Predicts; a single text has a list of its one label."""
    found = super().__call__(inputs, **arguments)
    return [found] if isinstance(inputs, str) and isinstance(found, dict) else found

  def _predictions(
    self, texts, top_k="", return_all_scores=None, function_to_apply=None, **options
  ):
    if return_all_scores is not None and top_k == "":
      top_k = None if return_all_scores else 1
    pairs = [text if isinstance(text, Mapping) else {"text": text} for text in texts]
    second = [pair.get("text_pair") for pair in pairs]
    encoded = self._encoded(
      [pair.get("text") for pair in pairs], second if any(second) else None, padding=True, **options
    )
    config = self.model.config
    labels, usual = config.id2label, "softmax"
    if config.problem_type == "regression":
      usual = "none"
    elif config.problem_type == "multi_label_classification" or config.num_labels == 1:
      usual = "sigmoid"
    function = function_to_apply or usual
    if function not in _FUNCTIONS:
      raise ValueError(f"function_to_apply is {function!r}; known: {', '.join(_FUNCTIONS)}.")
    found = []
    for scores in _FUNCTIONS[function](self._outputs(encoded)["logits"]):
      scored = [{"label": labels[i], "score": float(score)} for i, score in enumerate(scores)]
      scored.sort(key=lambda each: -each["score"])
      found.append(scored[0] if top_k == "" else scored[:top_k])
    return found


class TokenClassificationPipeline(  # type: ignore[misc]
  Pipeline, tag_decoding.TokenClassificationPipeline
):
  """The entities of a text.

  Arguments of a call: `aggregation_strategy` ("none", "simple", "first", "average", "max"),
  `ignore_labels` (["O"] by default), and `stride`, the tokens that two windows of a long text
  share; without it a text is truncated to what the model reads.
  """

  task = "token-classification"
  head = form.TOKENS

  def _prediction(self, text, aggregation_strategy="none", ignore_labels=("O",), stride=None):
    strategy = tag_decoding.AggregationStrategy(aggregation_strategy)
    windows = {} if stride is None else {"stride": stride, "padding": True}
    encoded = self._encoded(
      [text],
      return_special_tokens_mask=True,
      return_offsets_mapping=True,
      return_overflowing_tokens=stride is not None,
      **windows,
    )
    rows = (encoded[name] for name in ("input_ids", "offset_mapping", "special_tokens_mask"))
    scores, found = softmax(self._outputs(encoded)["logits"]), []
    for ids, offsets, special, scored in zip(*rows, scores, strict=True):
      tokens = self.gather_pre_entities(text, ids, scored, offsets, special, strategy)
      found += self.aggregate(tokens, strategy)
    found = [x for x in found if not {x.get("entity"), x.get("entity_group")} & set(ignore_labels)]
    return self.aggregate_overlapping_entities(found) if len(scores) > 1 else found


class QuestionAnsweringPipeline(Pipeline):
  """The part of a context that answers a question.

  Called with `question=` and `context=`, or dictionaries of both. Further arguments: `top_k`,
  `doc_stride` (128), `max_answer_len` (15), `max_seq_len` (384), `handle_impossible_answer`,
  `align_to_words`.
  """

  task = "question-answering"
  head = form.SPANS

  def __call__(self, inputs=None, question=None, context=None, **arguments):
    """Answers one question or several; see the class."""
    if isinstance(question, list):
      contexts = [context] * len(question) if isinstance(context, str) else context
      pairs = zip(question, contexts, strict=True)
      inputs = [{"question": each, "context": its_context} for each, its_context in pairs]
    return super().__call__(inputs or {"question": question, "context": context}, **arguments)

  def _prediction(
    self,
    item,
    top_k: int = 1,
    doc_stride: int | None = None,
    max_answer_len: int = 15,
    max_seq_len: int | None = None,
    max_question_len: int = 64,
    handle_impossible_answer: bool = False,
    align_to_words: bool = True,
  ):
    del max_question_len
    for part in ("question", "context"):
      text = item.get(part) if isinstance(item, Mapping) else None
      if not isinstance(text, str) or not text.strip():
        raise ValueError(f"`{part}` is {text!r:.80}; a text is needed: question=, context=.")
    if top_k < 1 or max_answer_len < 1:
      raise ValueError(
        f"top_k is {top_k} and max_answer_len {max_answer_len}; at least 1 is needed."
      )
    longest = min(self.tokenizer.model_max_length, 384) if max_seq_len is None else max_seq_len
    stride = min(longest // 2, 128) if doc_stride is None else doc_stride
    if stride >= longest:
      raise ValueError(f"doc_stride ({stride}) is not below max_seq_len ({longest}).")
    encoded = self._encoded(
      item["question"],
      item["context"],
      truncation="only_second",
      max_length=longest,
      stride=stride,
      return_overflowing_tokens=True,
      return_offsets_mapping=True,
      padding=True,
    )
    spans, impossible = self._spans(
      encoded,
      top_k=2 * top_k + 10 if align_to_words else top_k,  # some may be parts of the same words
      handle_impossible_answer=handle_impossible_answer,
      max_answer_len=max_answer_len,
    )
    answers = {}
    for window, first, last, score in spans:
      start, end = _characters(encoded, window, first, last, align_to_words)
      text = item["context"][start:end]
      new = {"score": 0.0, "start": start, "end": end, "answer": text}
      answers.setdefault(text.lower(), new)["score"] += float(score)  # windows overlap
    found = list(answers.values())
    if handle_impossible_answer:
      found.append({"score": impossible, "start": 0, "end": 0, "answer": ""})
    found = sorted(found, key=lambda each: -each["score"])[:top_k]
    return found[0] if len(found) == 1 else found

  def _spans(self, encoded, **options) -> tuple[list[tuple], float]:
    """Lists (window, first token, last token, score), and scores the absence of an answer."""
    outputs, found, impossible = self._outputs(encoded), [], 1000000.0
    for window, ids in enumerate(encoded["input_ids"]):
      outside = np.array([part != 1 for part in encoded.sequence_ids(window)])
      outside &= ids != self.tokenizer.cls_token_id  # which takes a share where there is no answer
      *spans, impossible = span_decoding.select_starts_ends(
        outputs["start_logits"][window][None],
        outputs["end_logits"][window][None],
        outside[None],
        encoded["attention_mask"][window][None],
        impossible,
        **options,
      )
      found += [(window, int(i), int(j), score) for i, j, score in zip(*spans, strict=True)]
    return found, impossible


def _characters(encoded, window: int, first: int, last: int, whole_words: bool) -> tuple[int, int]:
  if whole_words:
    begins, ends = (encoded.token_to_word(window, token) for token in (first, last))
    if begins is not None and ends is not None:
      start, _ = encoded.word_to_chars(window, begins, sequence_index=1)
      return start, encoded.word_to_chars(window, ends, sequence_index=1)[1]
  offsets = encoded["offset_mapping"][window]
  return int(offsets[first][0]), int(offsets[last][1])


class FillMaskPipeline(Pipeline, fill_mask.FillMaskPipeline):  # type: ignore[misc]
  """The likeliest words for the mask in a text; a list for each of several masks.

  Arguments of a call: `top_k` (5) and `targets`, words to choose from.
  """

  task = "fill-mask"
  head = form.MASKED_TOKENS

  def _prediction(self, text, top_k: int = 5, targets=None, tokenizer_kwargs=None):
    encoded = self._encoded(text, **(tokenizer_kwargs or {}))
    ids = encoded["input_ids"][0]
    masks = np.flatnonzero(ids == self.tokenizer.mask_token_id)
    if not len(masks):
      raise ValueError(f"There is no {self.tokenizer.mask_token} in {text!r:.80}.")
    [probabilities] = softmax(self._outputs(encoded)["logits"])
    every = np.arange(probabilities.shape[-1])
    allowed = every if targets is None else self.get_target_ids(targets)
    found = []
    for mask in masks:
      best = allowed[np.argsort(-probabilities[mask][allowed], kind="stable")][:top_k].tolist()
      found.append([self._word(ids, mask, word, probabilities[mask][word], masks) for word in best])
    return found[0] if len(found) == 1 else found

  def _word(self, ids, mask, word, score, masks):
    filled = ids.copy()
    filled[mask] = word
    kept = filled[filled != self.tokenizer.pad_token_id]
    text = self.tokenizer.decode(kept, skip_special_tokens=len(masks) == 1)
    token = self.tokenizer.decode([word])
    return {"score": float(score), "token": word, "token_str": token, "sequence": text}


class FeatureExtractionPipeline(Pipeline):
  """The vectors of a text's tokens, `[1, S, W]` as lists, or arrays with `return_tensors=True`."""

  task = "feature-extraction"
  head = form.ENCODER

  def _prediction(self, text, return_tensors: bool = False, **options):
    states = self._outputs(self._encoded([text], **options))["last_hidden_state"]
    return states if return_tensors else states.tolist()


PIPELINES: dict[str, type[Pipeline]] = {
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
  model=None,
  config=None,
  tokenizer=None,
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
  if framework not in (None, "tf"):
    raise ValueError(f"framework is {framework!r}; bert.transformers has TensorFlow alone.")
  if kwargs.pop("grouped_entities", None):
    kwargs["aggregation_strategy"] = "simple"
  is_loaded = isinstance(model, TFPreTrainedModel)
  if task is None and is_loaded:
    task = next((name for name, each in PIPELINES.items() if each.head == model.head), None)
  task = _OTHER_NAMES.get(task or "", task)
  if task not in PIPELINES:
    known = ", ".join([*PIPELINES, *_OTHER_NAMES])
    raise ValueError(f"The task {task!r} is not supported. Available: {known}.")
  if model is None:
    raise ValueError(f"Name the model for {task!r}: nothing is downloaded by default.")
  made = PIPELINES[task]
  source = model.name_or_path if is_loaded else model
  if not is_loaded:
    auto = AUTO_CLASSES["TFAutoModel" + made.head.removeprefix(form.ENCODER)]
    model = auto.from_pretrained(model, **({} if config is None else {"config": config}))
  if tokenizer is None or isinstance(tokenizer, str):
    if not (tokenizer or source):
      raise ValueError("The model was not loaded from a folder: give its tokenizer, too.")
    tokenizer = AutoTokenizer.from_pretrained(tokenizer or source)
  return made(model, tokenizer, **kwargs)
