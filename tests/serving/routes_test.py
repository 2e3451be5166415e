"""Routes of each dialect, with models that make up their scores (fake_models.py).

Alone: python -m pytest tests/serving/routes_test.py (seconds)
"""

import base64
import json
import pathlib
import re

import numpy as np
import pytest
from starlette.testclient import TestClient

from bert.serving import app
from bert.serving.errors import BackendError, Overloaded, WorkerDied
from bert.serving.metrics import Metrics
from bert.serving.service import Settings
from bert.tokenization import BasicTokenizer
from tests.serving import fake_models

PAGE = pathlib.Path(app.__file__).parent / "page"
TEXT, OTHER = "The storm closed both runways.", "No aircraft could land."


@pytest.fixture(scope="module")
def models():
  return fake_models.all_kinds()


@pytest.fixture(scope="module")
def client(models):
  with TestClient(app.create(models, Settings(), Metrics())) as client:
    yield client


def post(client, path, body, status=200):
  response = client.post(path, json=body)
  assert response.status_code == status, response.text
  return response.json()


def vector(models, item):
  """The vector of an item, as the model has it."""
  ability = models.models["encoder"].servable.abilities["vectors"]
  rows = ability.processor.featurize(item)
  return ability.processor.finish(rows, [ability.scores(rows[0])])


def unit(values):
  return values / np.linalg.norm(values)


def answer(models, name, item):
  """The answer to an item, as `Predictor` gives it; and its scores."""
  ability = models.models[name].servable.abilities["answers"]
  rows = ability.processor.featurize(item)
  scores = [ability.scores(row) for row in rows]
  return ability.processor.finish(rows, scores), scores


def as_json(value):
  return json.loads(json.dumps(value, default=np.ndarray.tolist))


# ---------------------------------------------------------------------------------------------
# OpenAI.


class TestOpenAI:
  def embed(self, client, **body):
    return post(client, "/v1/embeddings", {"model": "encoder", **body})

  def test_texts(self, client, models):
    found = self.embed(client, input=[TEXT, OTHER])
    assert (found["object"], found["model"]) == ("list", "encoder")
    assert [(each["object"], each["index"]) for each in found["data"]] == [
      ("embedding", 0),
      ("embedding", 1),
    ]
    for each, text in zip(found["data"], [TEXT, OTHER], strict=True):
      np.testing.assert_allclose(each["embedding"], unit(vector(models, text)), atol=1e-6)
    assert self.embed(client, input=TEXT)["usage"] == {"prompt_tokens": 14, "total_tokens": 14}

  def test_base64_is_little_endian_float32(self, client, models):
    [entry] = self.embed(client, input=TEXT, encoding_format="base64")["data"]
    found = np.frombuffer(base64.b64decode(entry["embedding"]), "<f4")
    np.testing.assert_allclose(found, unit(vector(models, TEXT)), atol=1e-6)

  def test_token_ids(self, client, models):
    one, other = (fake_models.tokenizer().text_to_ids(text) for text in (TEXT, OTHER))
    cls, sep = fake_models.tokenizer().convert_tokens_to_ids(["[CLS]", "[SEP]"])
    whole = [cls, *one, sep]
    for given, texts in ((one, [TEXT]), ([one, other], [TEXT, OTHER]), ([whole, one], [TEXT] * 2)):
      found = self.embed(client, input=given)["data"]
      assert len(found) == len(texts)
      for each, text in zip(found, texts, strict=True):
        np.testing.assert_allclose(each["embedding"], unit(vector(models, text)), atol=1e-6)

  def test_the_only_model_with_vectors_needs_no_name(self, client):
    assert post(client, "/v1/embeddings", {"input": TEXT})["model"] == "encoder"

  def test_models_are_listed(self, client, models):
    listed = client.get("/v1/models").json()
    assert [each["id"] for each in listed["data"]] == models.names
    assert client.get("/v1/models/ner").json()["id"] == "ner"


# ---------------------------------------------------------------------------------------------
# text-embeddings-inference.


class TestTextEmbeddingsInference:
  @pytest.mark.parametrize(
    ("inputs", "items"),
    [
      (TEXT, TEXT),
      ([TEXT, OTHER], (TEXT, OTHER)),
      ({"text_a": TEXT, "text_b": OTHER}, (TEXT, OTHER)),
      ([[TEXT], [TEXT, OTHER]], [TEXT, (TEXT, OTHER)]),
    ],
  )
  def test_predict(self, client, models, inputs, items):
    found = post(client, "/predict", {"inputs": inputs, "model": "mrpc"})
    for its, item in zip(
      found if isinstance(items, list) else [found],
      items if isinstance(items, list) else [items],
      strict=True,
    ):
      expected = answer(models, "mrpc", item)[0]["probabilities"]
      assert {each["label"]: each["score"] for each in its} == pytest.approx(
        dict(zip("01", expected.tolist(), strict=True))
      )
      assert its[0]["score"] >= its[1]["score"]

  def test_raw_scores(self, client, models):
    found = post(client, "/predict", {"inputs": TEXT, "model": "mrpc", "raw_scores": True})
    [scores] = answer(models, "mrpc", TEXT)[1]
    assert sorted(each["score"] for each in found) == pytest.approx(sorted(scores["logits"]))

  def test_entities_answers_and_scores(self, client, models):
    found = post(client, "/predict", {"inputs": "Ada met Bob", "model": "ner"})
    expected = answer(models, "ner", "Ada met Bob")[0]["entities"]
    assert [each["word"] for each in found] == [each["text"] for each in expected]
    item = {"question": "Who?", "context": "It was me."}
    [found] = post(client, "/predict", {"inputs": item, "model": "squad"})
    assert found["label"] == answer(models, "squad", item)[0]["answer"]
    [found] = post(client, "/predict", {"inputs": [TEXT, OTHER], "model": "sts"})
    assert found["score"] == pytest.approx(answer(models, "sts", (TEXT, OTHER))[0]["score"])

  def test_rerank_by_vectors(self, client, models):
    texts = ["one", "two", OTHER]
    found = post(
      client, "/rerank", {"query": TEXT, "texts": texts, "return_text": True, "model": "encoder"}
    )
    query = unit(vector(models, TEXT))
    expected = [float(query @ unit(vector(models, text))) for text in texts]
    assert [each["score"] for each in found] == pytest.approx(sorted(expected, reverse=True))
    assert all(texts[each["index"]] == each["text"] for each in found)

  def test_rerank_by_pairs(self, client, models):
    body = {"query": TEXT, "texts": ["one", "two"]}
    for each in post(client, "/rerank", {**body, "model": "mrpc"}):
      pair = (TEXT, body["texts"][each["index"]])
      assert each["score"] == pytest.approx(answer(models, "mrpc", pair)[0]["probabilities"][1])
    body["raw_scores"] = True
    for name in ("mrpc", "sts"):
      found = post(client, "/rerank", {**body, "model": name})
      for each in found:
        logits = answer(models, name, (TEXT, body["texts"][each["index"]]))[1][0]["logits"]
        expected = logits[-1] - (logits[0] if name == "mrpc" else 0)
        assert each["score"] == pytest.approx(expected, abs=1e-6)
    message = post(client, "/rerank", {**body, "model": "encoder"}, 422)["error"]
    assert "leave out `raw_scores`" in message

  @pytest.mark.parametrize(
    ("name", "item", "is_refused"),
    [
      ("mrpc", "word " * 40, True),
      ("mrpc", [TEXT, OTHER], False),
      ("swag", {"context": TEXT, "choices": ["a", "word " * 40]}, True),
      ("squad", {"question": "Who?", "context": TEXT * 9}, False),
    ],
  )
  def test_predict_without_truncating(self, client, name, item, is_refused):
    body = {"inputs": item, "model": name}
    expected = post(client, "/predict", body)
    found = post(client, "/predict", {**body, "truncate": False}, 422 if is_refused else 200)
    assert "not to be truncated" in found["error"] if is_refused else found == expected

  def test_rerank_as_cohere(self, client):
    body = {"query": TEXT, "documents": ["one", {"text": "two"}], "top_n": 1, "model": "encoder"}
    for path in ("/rerank", "/v1/rerank", "/v2/rerank"):
      [found] = post(client, path, {**body, "return_documents": True})["results"]
      assert found["document"]["text"] == ["one", "two"][found["index"]]
      assert set(found) == {"index", "relevance_score", "document"}

  def test_embed_all(self, client, models):
    processor = models.models["encoder"].servable.abilities["token_vectors"].processor
    found = post(client, "/embed_all", {"inputs": [TEXT, OTHER]})
    for each, text in zip(found, [TEXT, OTHER], strict=True):
      [row] = processor.featurize(text)
      expected = fake_models._random(row, len(row["input_ids"]) + 3, fake_models.WIDTH)[:-3]
      np.testing.assert_allclose(each, expected, atol=1e-6)

  @pytest.mark.parametrize(
    ("model", "kind", "labels"),
    [
      (fake_models.classifier(), "classifier", ["0", "1"]),
      (fake_models.classifier(["score"], "regression"), "reranker", ["score"]),
    ],
  )
  def test_info_says_what_kind_of_model_it_is(self, model, kind, labels):
    one = fake_models.FakeModels({"only": model})
    with TestClient(app.create(one, Settings(), Metrics())) as client:
      found = client.get("/info").json()
    names = {str(index): label for index, label in enumerate(labels)}
    ids = {label: index for index, label in enumerate(labels)}
    assert found["model_type"] == {kind: {"id2label": names, "label2id": ids}}
    assert (found["model_id"], found["model_dtype"]) == ("only", "int8")
    assert [(each["engine"], each["precision"]) for each in found["models"]] == [("fake", "int8")]

  def test_headers_say_times(self, client):
    headers = client.post("/embed", json={"inputs": [TEXT, OTHER]}).headers
    assert headers["x-compute-type"] == "gpu"
    assert headers["x-queue-time"] == "1.000"
    assert headers["x-tokenization-time"] == "2.000"
    assert headers["x-inference-time"] == "3.000"
    assert float(headers["x-total-time"]) > 0
    assert int(headers["x-compute-tokens"]) == 32


class TestPipelines:
  """`POST /`, as huggingface_hub's client asks."""

  def test_sentence_similarity(self, client, models):
    inputs = {"source_sentence": TEXT, "sentences": [OTHER, TEXT]}
    found = post(client, "/", {"inputs": inputs, "model": "encoder"})
    expected = float(unit(vector(models, TEXT)) @ unit(vector(models, OTHER)))
    assert found == pytest.approx([expected, 1.0])

  @pytest.mark.parametrize(
    ("name", "inputs", "keys"),
    [
      ("mrpc", TEXT, {"label", "score"}),
      ("ner", "Ada met Bob", {"entity_group", "score", "word", "start", "end"}),
      ("squad", {"question": "Who?", "context": "It was me."}, {"answer", "score", "start", "end"}),
    ],
  )
  def test_answers_of_tasks(self, client, name, inputs, keys):
    body = {"inputs": inputs, "model": name, "parameters": {"top_k": 1}}
    found = post(client, "/", body)
    while isinstance(found, list):
      [found] = found
    assert set(found) >= keys

  def test_fill_mask(self, client):
    found = post(client, "/", {"inputs": "In [MASK].", "model": "encoder"})
    assert found[0] == {
      **{"score": 0.75, "token": 7, "token_str": "paris"},
      "sequence": "In paris.",
    }
    body = {"inputs": "[MASK] or [MASK].", "model": "encoder", "parameters": {"top_k": 1}}
    first, second = post(client, "/", body)
    assert [first[0]["sequence"], second[0]["sequence"]] == ["paris or [MASK].", "[MASK] or paris."]
    assert [len(first), len(second)] == [1, 1]

  def test_one_of_several_models(self, client):
    """The client names no model, but its address may."""
    [found] = post(client, "/models/mrpc", {"inputs": TEXT})
    assert {each["label"] for each in found} == {"0", "1"}
    assert len(post(client, "/models/encoder", {"inputs": TEXT})[0]) == fake_models.WIDTH
    assert "is served" in post(client, "/models/nobody", {"inputs": TEXT}, 404)["error"]
    assert "Say which" in post(client, "/", {"inputs": TEXT}, 404)["error"]


class TestSavedModels:
  """Graphs from texts to answers, whose scores stay inside."""

  @staticmethod
  def classes(row):
    second = np.float32(len(row["text_b"]) / 100)
    labels = np.array([b"0", b"1"], object)
    return {"label": b"0", "label_names": labels, "probabilities": np.array([1 - second, second])}

  @staticmethod
  def client(scores):
    outputs = scores({"text_a": "a", "text_b": "b"})
    models = fake_models.FakeModels({"saved": fake_models.saved_model(outputs, scores)})
    return TestClient(app.create(models, Settings(), Metrics()))

  def test_classes_have_scores(self):
    with self.client(self.classes) as client:
      found = post(client, "/predict", {"inputs": [["a", "b" * 70], ["a"]]})
      assert [[each["label"] for each in its] for its in found] == [["1", "0"], ["0", "1"]]
      assert [each["score"] for each in found[0]] == pytest.approx([0.7, 0.3])
      message = post(client, "/predict", {"inputs": "a", "raw_scores": True}, 422)["error"]
      assert "leave out `raw_scores`" in message

  def test_what_no_task_of_ours_answers_stays_as_it_is(self):
    with self.client(lambda row: {"stars": np.float32(4.5)}) as client:
      assert post(client, "/predict", {"inputs": "a"}) == [{"stars": 4.5}]
      assert "cannot rank" in post(client, "/rerank", {"query": "a", "texts": ["b"]}, 422)["error"]
      assert client.get("/info").json()["models"][0]["display"] == "values"


# ---------------------------------------------------------------------------------------------
# TensorFlow Serving.


class TestTensorFlowServing:
  def test_rows(self, client, models):
    rows = [TEXT, [TEXT, OTHER], {"text_a": TEXT, "text_b": OTHER}]
    found = post(client, "/v1/models/mrpc:predict", {"instances": rows})["predictions"]
    pair = as_json(answer(models, "mrpc", (TEXT, OTHER))[0])
    assert found == [as_json(answer(models, "mrpc", TEXT)[0]), pair, pair]

  def test_columns(self, client, models):
    body = {"inputs": {"text_a": [TEXT, OTHER], "text_b": [OTHER, TEXT]}}
    found = post(client, "/v1/models/mrpc/versions/1:predict", body)["outputs"]
    expected = [as_json(answer(models, "mrpc", p)[0]) for p in ((TEXT, OTHER), (OTHER, TEXT))]
    assert found == {name: [each[name] for each in expected] for name in expected[0]}

  def test_one_output_has_no_name(self, client, models):
    expected = as_json([vector(models, TEXT)])
    path = "/v1/models/encoder/versions/1:predict"
    assert post(client, path, {"instances": [TEXT]}) == {"predictions": expected}
    assert post(client, path, {"inputs": [TEXT]}) == {"outputs": expected}

  def test_texts_in_base64(self, client, models):
    coded = {"b64": base64.b64encode(TEXT.encode()).decode()}
    for given in (coded, {"text": coded}):
      found = post(client, "/v1/models/ner:predict", {"instances": [given]})
      assert found["predictions"][0]["words"] == BasicTokenizer(False).tokenize(TEXT)

  def test_status(self, client):
    [version] = client.get("/v1/models/mrpc").json()["model_version_status"]
    assert (version["version"], version["state"]) == ("1", "AVAILABLE")


# ---------------------------------------------------------------------------------------------
# Our own.


class TestOwnRoutes:
  @pytest.mark.parametrize(
    ("name", "item"),
    [
      ("mrpc", (TEXT, OTHER)),
      ("ner", "Ada met Bob"),
      ("squad", {"question": "Who?", "context": "It was me."}),
      ("swag", ("She", ["runs.", "sits."])),
    ],
  )
  def test_answers_are_those_of_predict(self, client, models, name, item):
    found = post(client, "/answer", {"items": [item], "model": name})
    assert found["answers"] == [as_json(answer(models, name, item)[0])]
    assert found["model"] == name
    assert found["time_ms"] > 0

  def test_similarity(self, client, models):
    found = post(client, "/similarity", {"texts": [TEXT, OTHER, "x"]})["similarities"]
    vectors = [unit(vector(models, text)) for text in (TEXT, OTHER, "x")]
    np.testing.assert_allclose(found, np.inner(vectors, vectors), atol=1e-6)

  def test_masked_words(self, client):
    [found] = post(client, "/masked_words", {"items": ["In [MASK]."]})["masked_words"]
    assert found["masks"][0][0]["token"] == "paris"

  def test_attention(self, client):
    body = {"text": "a b", "text_pair": "c", "layer": 1, "head": 1}
    found = post(client, "/attention", body)
    assert found["tokens"] == ["[CLS]", "a", "b", "c", "[SEP]"]
    assert np.shape(found["map"]) == (5, 5)


class TestGeneral:
  def test_info_has_what_the_page_needs(self, client, models):
    found = client.get("/info").json()
    assert [each["name"] for each in found["models"]] == models.names
    for each in found["models"]:
      if "answers" in each["abilities"]:
        body = {"items": [each["example"]], "model": each["name"]}
        assert len(post(client, "/answer", body)["answers"]) == 1
        assert each["display"]
    assert found["limits"]["max_inputs"] == 2048

  def test_one_model_takes_any_name(self):
    one = fake_models.FakeModels({"only": fake_models.encoder()})
    with TestClient(app.create(one, Settings(), Metrics())) as client:
      body = {"input": TEXT, "model": "text-embedding-3-small"}
      assert post(client, "/v1/embeddings", body)["model"] == "text-embedding-3-small"

  def test_health_waits_for_the_models(self, client, models):
    assert client.get("/health").json() == {"status": "ready"}
    models.is_ready = False
    try:
      response = client.get("/health")
      assert client.get("/live").json() == {"status": "live"}
    finally:
      models.is_ready = True
    assert response.status_code == 503
    assert response.json()["error_type"] == "Unhealthy"
    assert response.headers["retry-after"] == "2"

  def test_the_document_s_examples_are_answered(self, client):
    document = client.get("/openapi.json")
    assert "$defs" not in document.text  # what refers to them would lead nowhere
    for path, operations in document.json()["paths"].items():
      if "post" not in operations:
        continue
      body = operations["post"]["requestBody"]["content"]["application/json"]["schema"]
      for example in body["examples"]:
        model = {} if "{name}" in path else {"model": "encoder"}
        if path in ("/answer", "/predict"):
          model = {"model": "mrpc"}
        place = path.replace("{name}", "mrpc").replace("{version}", "1")
        post(client, place, {**example, **model})

  def test_the_page_and_its_files_are_served(self, client):
    for path in ("/", "/docs"):
      response = client.get(path)
      assert response.headers["content-type"] == "text/html; charset=utf-8"
      linked = re.findall(r'(?:src|href)="(page/[^"]+)"', response.text)
      assert linked
      for name in [*linked, *(f"page/{each.name}" for each in PAGE.iterdir())]:
        assert client.get(f"/{name}").status_code == 200, name
    assert client.get("/page/page.js").headers["content-type"].startswith("text/javascript")

  def test_metrics_name_models_and_routes(self, client):
    post(client, "/embed", {"inputs": TEXT})
    post(client, "/embed", {"inputs": ""}, 422)
    text = client.get("/metrics").text
    assert 'te_request_count{path="/embed",status="200"}' in text
    assert 'te_request_success{model="encoder"}' in text
    assert 'te_request_failure{err="validation"}' in text
    assert 'te_embed_count{model="encoder"}' in text
    assert 'te_request_duration_bucket{le="0.1",path="/embed"}' in text
    assert "# TYPE te_request_count counter" in text

  @pytest.mark.parametrize(
    ("error", "status"),
    [
      (Overloaded("Full.", retry_after_s=3), 429),
      (WorkerDied("Gone."), 503),
      (BackendError("Broken."), 424),
      (ValueError("/secret/path"), 500),
    ],
  )
  def test_errors_of_the_models(self, client, models, error, status):
    models.models["encoder"].trouble = error
    try:
      response = client.post("/embed", json={"inputs": TEXT})
    finally:
      models.models["encoder"].trouble = None
    assert response.status_code == status
    assert response.headers.get("retry-after") == ("3" if status == 429 else None)
    assert response.json()["error"] == (
      str(error) if status != 500 else "The server made a mistake; its log says which."
    )
