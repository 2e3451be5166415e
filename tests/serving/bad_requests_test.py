"""Requests with which something is wrong: each gets one sentence in the form of its dialect.

Alone: python -m pytest tests/serving/bad_requests_test.py (seconds)
"""

import asyncio
import json
import re

import pytest

from bert.serving import app
from bert.serving.metrics import Metrics
from bert.serving.service import Settings
from tests.serving import fake_models
from tests.serving.asgi_client import ask

EMBED, OPENAI, PREDICT = "/embed", "/v1/embeddings", "/predict"
RERANK, ANSWER = "/rerank", "/answer"
SIMILARITY, MASKED, ATTENTION, PIPELINE = "/similarity", "/masked_words", "/attention", "/"
TF, TF_VECTORS = "/v1/models/mrpc:predict", "/v1/models/encoder:predict"
MRPC, SQUAD, SWAG, NER = ({"model": name} for name in ("mrpc", "squad", "swag", "ner"))
POSTS = (EMBED, OPENAI, PREDICT, RERANK, ANSWER, SIMILARITY, MASKED, ATTENTION, PIPELINE, TF)
HUGE = 10**30

# ---------------------------------------------------------------------------------------------
# Bodies that are no JSON, of every route.

NO_JSON = {
  b"": "The body is empty",
  b"{": "not JSON: Expecting property name",
  b"inputs=a&normalize=true": "not JSON: Expecting value (line 1, column 1)",
  b"\x00": "not JSON",
  b"\xff\xfe{\x00}\x00": "not UTF-8: byte 0xff at 0",
  b'{"inputs": "a", "inputs": "b"}': 'the name "inputs" is there twice',
  b'{"inputs": NaN}': "NaN is not a number",
  b'{"inputs": "\\ud800"}': "half of a surrogate pair, \\ud800",
  b"[" * 100_000: "lists or objects inside each other",
  b'{"inputs": [' + b"[" * 50_000 + b"]" * 50_000 + b"]}": "lists or objects inside each other",
  b'{"inputs": ' + b"1" * 5000 + b"}": "Exceeds the limit (4300 digits)",
}

# ---------------------------------------------------------------------------------------------
# Bodies that are JSON: route, body, status, words of the message.

ROWS = [
  # Vectors, TEI.
  (EMBED, {}, 422, "`inputs` is missing."),
  (EMBED, {"inputs": None}, 422, "`inputs` is null, but a text, a list of texts, or token ids"),
  (EMBED, {"inputs": ""}, 422, "`inputs` is an empty text."),
  (EMBED, {"inputs": []}, 400, "There is no text to compute."),
  (EMBED, {"inputs": ["a", ""]}, 422, "`inputs`[1] is an empty text."),
  (EMBED, {"inputs": [[]]}, 422, "`inputs`[0] is an empty list."),
  (EMBED, {"inputs": [-1]}, 422, "-1 is not a token id of this model"),
  (EMBED, {"inputs": "a", "normalize": "yes"}, 422, '`normalize` is "yes", but true or false'),
  (EMBED, {"inputs": "a b " * 99, "truncate": False}, 422, "it is not to be truncated"),
  (EMBED, {"inputs": "a", "model": "mrpc"}, 422, "mrpc has no vectors, but answers."),
  # Vectors, OpenAI.
  (OPENAI, {"input": [100257]}, 422, "check_embedding_ctx_length=False"),
  (OPENAI, {"input": "a", "dimensions": 17}, 422, "vectors of encoder have 16: ask for 1 to 16."),
  (OPENAI, {"input": "a", "encoding_format": "hex"}, 422, "'float' or 'base64' is needed."),
  (OPENAI, {"input": "a", "model": "gpt"}, 404, "No model 'gpt' is served"),
  # Answers.
  (PREDICT, {"inputs": "a"}, 404, "Say which `model` is meant: mrpc, ner, squad, swag, sts."),
  (PREDICT, {"inputs": ["a", "b", "c"], **MRPC}, 422, "`inputs` has 3 texts. One text or a pair"),
  (PREDICT, {"inputs": [[]], **MRPC}, 422, "`inputs`[0] has 0 values"),
  (PREDICT, {"inputs": {"question": "a"}, **SQUAD}, 422, "whose inputs are question, context."),
  (PREDICT, {"inputs": {"context": "a", "choices": [""]}, **SWAG}, 422, "choices (a list)."),
  # Ranking.
  (RERANK, {"query": "a", "texts": ["b"]}, 404, "Say which `model` is meant: mrpc, encoder, sts."),
  (RERANK, {"query": "a"}, 422, "Either `texts` or `documents` is needed"),
  (RERANK, {"query": "a", "texts": "b"}, 422, '`texts` is "b", but a list of texts is needed.'),
  (RERANK, {"query": "a", "documents": [{"txt": "b"}]}, 422, "`documents`[0] is an object"),
  (RERANK, {"query": "a", "documents": ["b"], "top_n": 0}, 422, "`top_n` is 0, but must be"),
  (RERANK, {"query": "a", "texts": ["b"], "truncation_direction": "left"}, 422, '"left", but'),
  (RERANK, {"query": "a", "texts": ["b"], **NER}, 422, "so it cannot rank"),
  (PREDICT, {"inputs": "a", "raw_scores": True, **NER}, 422, "leave out `raw_scores`"),
  ("/embed_all", {"inputs": "a", **MRPC}, 422, "mrpc has no token vectors, but answers."),
  (SIMILARITY, {"texts": ["a"], "inputs": {}}, 422, "`inputs` is no name that this route knows"),
  # TensorFlow Serving.
  (TF, {}, 400, "Either `instances` or `inputs` is needed."),
  (TF, {"instances": ["a"], "inputs": ["a"]}, 400, "Either `instances` or `inputs` is needed."),
  (TF, {"instances": [{"b64": "?"}]}, 400, '"?" is no text of UTF-8 in base64.'),
  (TF, {"inputs": "a"}, 400, '`inputs` is "a", but lists are needed.'),
  (TF, {"inputs": {}}, 400, "`inputs` is empty, but text_a, text_b is needed."),
  (TF, {"inputs": {"text_a": ["a"], "text_b": []}}, 400, "have different lengths."),
  (TF, {"instances": ["a"], "signature_name": "other"}, 400, 'There is no signature "other"'),
  ("/v1/models/mrpc/versions/9:predict", {"instances": ["a"]}, 404, 'no version "9"'),
  # Our own.
  (ANSWER, {"items": ["a", ["b", "c", "d"]], **MRPC}, 422, "`items`[1] has 3 values"),
  (ANSWER, {"items": ["a"], "modle": "mrpc"}, 422, "`modle` is no name that this route knows"),
  (ATTENTION, {"text": "a", "layer": 2}, 422, "layer is 2, but must be from 0 to 1."),
  # Pipelines.
  (PIPELINE, {"inputs": "a", "parameters": 5, **MRPC}, 422, "`parameters` is 5, but an object"),
  (PIPELINE, {"inputs": {"source_sentence": ""}, "model": "encoder"}, 422, "is an empty text."),
]
PATHS = ["/nix", "/v1/", "//embed", "/page/nix", "/../etc/passwd", "/page/..%2f..%2fserve.py"]
PATHS += ["/page/../app.py", "/v1/models/mrpc:classify", "/\x00", "/é"]


@pytest.fixture(scope="module")
def models():
  return fake_models.all_kinds()


@pytest.fixture(scope="module")
def answer_to(models):
  """A function that asks, and checks the form of the error."""
  served = app.create(models, Settings(), Metrics())

  def answer(method, path, body):
    found = asyncio.run(ask(served, method, path, body))
    message = check_form(path, found)
    assert "\n" not in message
    assert len(message) < 500
    assert not any(word in message for word in ("Traceback", "pydantic", "Error:", "/work"))
    return found.status, message

  return answer


def check_form(path, found):
  """Checks that an error has the form of its dialect; returns the message."""
  assert found.headers["content-type"] == "application/json"
  content = found.json()
  if re.match(r"/v1/models/.+(:|/versions/)", path):
    assert set(content) == {"error"}
    return content["error"]
  if path.startswith(("/v1/", "/v2/")):
    assert set(content["error"]) == {"message", "type", "code", "param"}
    assert content["code"] == found.status
    return content["error"]["message"]
  assert set(content) == {"error", "error_type"}
  return content["error"]


@pytest.mark.parametrize("body", NO_JSON)
def test_no_json(answer_to, body):
  status, message = answer_to("POST", EMBED, body)
  assert status == 400
  assert NO_JSON[body] in message


@pytest.mark.parametrize("path", POSTS)
def test_no_object(answer_to, path):
  status, message = answer_to("POST", path, b"null")
  assert status == (400 if path == TF else 422)
  assert message == "The body is null, but a JSON object is needed."


@pytest.mark.parametrize(
  ("path", "body", "status", "words"), ROWS, ids=[f"{row[0]}-{i}" for i, row in enumerate(ROWS)]
)
def test_it_is_refused_with_one_sentence(answer_to, models, path, body, status, words):
  found, message = answer_to("POST", path, json.dumps(body).encode())
  assert (found, words in message) == (status, True), message
  refused = json.dumps(body)
  computed = [call for each in models.models.values() for call in each.calls]
  assert len(refused) < 20 or refused not in map(json.dumps, computed)


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_paths_that_lead_nowhere(answer_to, path, method):
  status, message = answer_to(method, path, b"{}" if method == "POST" else b"")
  assert status in (404, 405)
  assert path[:5] in message or "no page" in message or "No model" in message


# ---------------------------------------------------------------------------------------------
# What is odd, but right.


@pytest.mark.parametrize(
  ("path", "body"),
  [
    (EMBED, {"inputs": "\u0000\u200b"}),
    (EMBED, {"inputs": "a" * 1_000_000}),
    (EMBED, {"inputs": "a", "prompt_name": None, "unknown": [1]}),
    (EMBED, {"inputs": "a", "normalize": None, "truncate": None, "dimensions": None}),
    (ANSWER, {"items": [{"question": "", "context": ""}], **SQUAD}),
    (RERANK, {"query": "a", "documents": ["b"], "top_n": HUGE, **MRPC}),
    (OPENAI, {"input": [20.0, 21], "dimensions": 4.0}),
  ],
)
def test_it_is_taken(models, path, body):
  served = app.create(models, Settings(max_body_bytes=4_000_000), Metrics())
  content = json.dumps(body, ensure_ascii=False).encode()
  found = asyncio.run(ask(served, "POST", path, content))
  assert found.status == 200, found.content
  assert found.json() is not None


def test_content_type_and_byte_order_mark_do_not_matter(models):
  """What `curl -d` sends is called a form."""
  served = app.create(models, Settings(), Metrics())
  headers = {"content-type": "application/x-www-form-urlencoded"}
  body = b'\xef\xbb\xbf{"inputs": "a"}'
  assert asyncio.run(ask(served, "POST", EMBED, body, headers=headers)).status == 200
