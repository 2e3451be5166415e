"""A server for the page without a model: real tasks answer from made-up scores, one display each.

  with fake_page_server.running() as server:
    browser_page.goto(server.url)

By hand: python -m tests.serving.fake_page_server [PORT]
"""

import asyncio
import contextlib
import json
import sys
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.routing import Route

from bert import tokenization
from bert.tasks import decoding
from tests.kit.paths import ROOT

PAGE = ROOT / "bert" / "serving" / "page"
HEADERS = {
  "Content-Security-Policy": "default-src 'self'; frame-ancestors 'none'; base-uri 'none'",
  "X-Content-Type-Options": "nosniff",
  "Referrer-Policy": "no-referrer",
}
MAX_SEQ_LENGTH = 128
ENCODER = {"dimensions": 48, "layers": 4, "heads": 3}
TOPICS = (
  *("weather", "aviation", "sport", "politics", "health", "music", "science", "travel", "food"),
  *("business", "law", "education", "fashion", "gardening"),
)
_TAGS = {"Ada": "B-PER", "Lovelace": "I-PER", "Charles": "B-PER", "Babbage": "I-PER"}
_TAGS |= {"London": "B-LOC", "5": "B-DATE", "June": "I-DATE", "1833": "I-DATE"}
_PARTS = ("NOUN", "VERB", "ADP", "PUNCT")


class FakeModel(NamedTuple):
  """What `/info` says of a model, and what answers an item."""

  about: Mapping[str, Any]
  answer: Callable[[Mapping[str, Any]], Mapping[str, Any]]


# -------------------------------------------------------------------------------------------------
# Models.


def models() -> dict[str, FakeModel]:
  """One model of each display, by name."""
  topics = {"labels": TOPICS, "problem_type": "multi_label"}
  return {
    "paraphrases": _task(
      _pair_scores, labels=["not_equivalent", "equivalent"], problem_type="classification"
    ),
    "topics": _task(_topic_scores, **topics),
    "stars": _task(_star_score, labels=[], problem_type="regression"),
    "names": _task(_tag_scores, task_name="ner", labels=sorted({"O", *_TAGS.values()})),
    "parts": _task(_part_scores, task_name="ner", labels=_PARTS),
    "reader": _task(_span_scores, task_name="squad", version_2_with_negative=True),
    "ends": _task(_choice_score, task_name="swag"),
    "alike": _task(_vector, task_name="similarity"),
    "own": FakeModel(_own_task("values"), _own_answer),
    "newer": FakeModel(_own_task("hologram"), _own_answer),
    "encoder": FakeModel(
      {"abilities": ["vectors", "masked_words", "attention"], **ENCODER}, lambda item: {}
    ),
  }


def _task(scores_of, **facts) -> FakeModel:
  tokenizer = tokenization.load_tokenizer(str(ROOT / "samples" / "vocab.txt"), True)
  task = decoding.of_run(facts, {}, tokenizer, MAX_SEQ_LENGTH)

  def answer(item):
    item = dict.fromkeys(task.inputs, "") | dict(item)
    rows = task.rows(item)
    return task.decode(item, rows, [scores_of(item, row) for row in rows])

  about = {
    "abilities": ["answers"],
    "display": task.display,
    "inputs": list(task.inputs),
    "list_inputs": list(task.list_inputs),
    "example": task.example,
    "needs_pairs": task.needs_pairs,
    "labels": list(task.label_names),
  }
  return FakeModel(about, answer)


def _own_task(display: str) -> dict[str, Any]:
  names = ["title", "claims"]
  example = {"title": "A boat of glass", "claims": ["It floats.", "It sings."]}
  about = {"abilities": ["answers"], "display": display, "inputs": names, "labels": []}
  return about | {"list_inputs": ["claims"], "example": example}


def _own_answer(item) -> dict[str, Any]:
  tokens = ["[CLS]", *item["title"].split(), "[SEP]"]
  return {
    "novelty": 0.734218,
    "field": "shipbuilding",
    "is_complete": True,
    "claims": item["claims"],
    "spectrum": np.linspace(-1, 1, 60),
    "tokens": tokens,
    "weights": np.linspace(0, 1, len(tokens)),
  }


def _logits(values) -> dict[str, np.ndarray]:
  return {"logits": np.asarray(values, np.float32)}


def _pair_scores(item, row):
  return _logits([0.0, 2.1] if item["text_b"] else [1.0, 0.5])


def _topic_scores(item, row):
  return _logits([2.6, 1.2, *np.linspace(-0.4, -6, len(TOPICS) - 2)])


def _star_score(item, row):
  return _logits([4.3217])


def _choice_score(item, row):
  return _logits([float(sum(row["input_ids"]) % 7) / 2])


def _vector(item, row):
  return {"vectors": _vector_of(len(row["input_ids"]))}


def _tag_scores(item, row):
  labels = sorted({"O", *_TAGS.values()})
  wanted = [labels.index(_TAGS.get(word, "O")) for word in item["text"].split()]
  return _logits(_one_of_each(row, wanted, len(labels)))


def _part_scores(item, row):
  wanted = [index % len(_PARTS) for index, _ in enumerate(item["text"].split())]
  return _logits(_one_of_each(row, wanted, len(_PARTS)))


def _one_of_each(row, wanted, num_labels):
  """Scores `[S, C]` that are highest for the wanted label of each word."""
  scores = np.zeros([len(row["input_ids"]), num_labels])
  for place, label in zip(row["places"], wanted, strict=False):
    scores[place, label] = 5.0
  return scores


def _span_scores(item, row):
  """Finds the last two words without their full stop; no answer where the question has no `?`."""
  start, end = (np.zeros(len(row["input_ids"]), np.float32) for _ in range(2))
  words = row["window"].token_to_orig_map  # place of a token -> number of its word
  last = max(words.values())
  places = [p for p, word in words.items() if word >= last - 1 and row["window"].tokens[p] != "."]
  is_found = "?" in item["question"]
  start[min(places) if is_found else 0] = end[max(places) if is_found else 0] = 7.0
  return {"start_logits": start, "end_logits": end}


def _vector_of(seed: int) -> np.ndarray:
  """A vector of its own for each number, all of them somewhat alike."""
  places = np.arange(ENCODER["dimensions"])
  return np.sin(places * (1.3 + seed % 5 / 4) + seed) + 0.6 * np.cos(places * 0.7)


# -------------------------------------------------------------------------------------------------
# The server.


class FakeServer:
  """The page's files, canned answers, and faults as they are asked for.

  Attributes:
    url: of the page.
    models: those that it serves, by name.
    is_ready: what `/health` says.
    key: that requests must have; none by default.
    delay_s: before each answer.
    fault: status, headers and content of the next answers instead.
    calls: route and body of each call.
  """

  def __init__(self):
    self.url = ""
    self.openapi: dict[str, Any] = {"openapi": "3.1.0", "info": {"title": "", "version": ""}}
    self.reset()

  def reset(self):
    """Forgets faults and calls."""
    self.models, self.is_ready, self.key, self.delay_s = dict(_MODELS), True, "", 0.0
    self.fault: tuple[int, Mapping[str, str], Any] | None = None
    self.calls: list[tuple[str, Any]] = []

  def app(self) -> Starlette:
    """The application."""
    answers = {
      "/answer": self._answers,
      "/similarity": self._similarities,
      "/v1/embeddings": self._embeddings,
      "/masked_words": self._masked_words,
      "/attention": self._attention,
    }
    return Starlette(
      routes=[
        Route("/", lambda request: _file("index.html")),
        Route("/docs", lambda request: _file("docs.html")),
        Route("/page/{name}", lambda request: _file(request.path_params["name"])),
        Route("/health", lambda request: Response(status_code=200 if self.is_ready else 503)),
        Route("/info", self._info),
        Route("/openapi.json", self._openapi),
        *(Route(path, self._call(call), methods=["POST"]) for path, call in answers.items()),
      ]
    )

  def _refused(self, request: Request) -> Response | None:
    if self.key and request.headers.get("Authorization") != f"Bearer {self.key}":
      return _json({"error": "No or wrong key", "error_type": "Unauthorized"}, 401)
    if self.fault:
      status, headers, content = self.fault
      return _json(content, status, headers)
    return None

  async def _info(self, request: Request) -> Response:
    common = {"engine": "onnxruntime", "max_seq_length": MAX_SEQ_LENGTH, "version": 1}
    listed = [{"name": name, **common, **each.about} for name, each in self.models.items()]
    return self._refused(request) or _json({"models": listed})

  async def _openapi(self, request: Request) -> Response:
    return self._refused(request) or _json(self.openapi)

  def _call(self, answer):
    async def call(request: Request) -> Response:
      body = await request.json()
      self.calls.append((request.url.path, body))
      await asyncio.sleep(self.delay_s)
      return self._refused(request) or _json({**answer(body), "time_ms": 4.2})

    return call

  def _answers(self, body):
    name = body.get("model") or next(iter(self.models))
    return {"answers": [self.models[name].answer(item) for item in body["items"]], "model": name}

  def _similarities(self, body):
    vectors = np.stack([_vector_of(len(text)) for text in body["texts"]])
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    return {"similarities": vectors @ vectors.T}

  def _embeddings(self, body):
    found = [_vector_of(len(text)) for text in body["input"]]
    return {"data": [{"index": place, "embedding": each} for place, each in enumerate(found)]}

  def _masked_words(self, body):
    words = [("paris", 0.62), ("lyon", 0.2), ("lille", 0.07), ("##s", 0.04), ("nice", 0.0004)]
    guesses = [{"token": token, "probability": share} for token, share in words]
    found = []
    for item in body["items"]:
      texts = [item] if isinstance(item, str) else item
      masks = [guesses] * " ".join(texts).count("[MASK]")
      pair = {"text_b": texts[1], "next_sentence": 0.91} if len(texts) > 1 else {}
      found.append({"text": texts[0], "masks": masks, **pair})
    return {"masked_words": found}

  def _attention(self, body):
    texts = [body["text"], *([body["text_pair"]] if body.get("text_pair") else [])]
    tokens = ["[CLS]", *(piece for text in texts for piece in [*text.lower().split(), "[SEP]"])]
    places = np.arange(len(tokens))
    sharpness = 0.4 + 0.3 * body["head"] + 0.1 * body["layer"]
    scores = -np.abs(places[:, None] - places[None, :] - 1) * sharpness + 2 * (places == 0)
    return {"tokens": tokens, "map": decoding.softmax(scores)}


_MODELS = models()


def _file(name: str) -> Response:
  return FileResponse(PAGE / name, headers={**HEADERS, "Cache-Control": "no-cache"})


def _json(content: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
  text = json.dumps(content, default=lambda value: value.tolist())
  return Response(text, status, {**(headers or {})}, media_type="application/json")


@contextlib.contextmanager
def running(port: int = 0):
  """Serves in a thread on a free port of this machine; gives the `FakeServer`."""
  fake = FakeServer()
  server = uvicorn.Server(uvicorn.Config(fake.app(), port=port, log_level="warning"))
  thread = threading.Thread(target=server.run, daemon=True)
  thread.start()
  while not server.started:
    if not thread.is_alive():
      raise OSError("The fake server did not start.")
    time.sleep(0.01)
  fake.url = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}/"
  try:
    yield fake
  finally:
    server.should_exit = True
    thread.join()


if __name__ == "__main__":
  with running(int(sys.argv[1]) if len(sys.argv) > 1 else 0) as made:
    print(made.url)
    with contextlib.suppress(KeyboardInterrupt):
      threading.Event().wait()
