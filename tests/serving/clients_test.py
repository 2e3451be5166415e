"""Clients that others have written ask a server; its answers are those of `Predictor`.

Alone: python -m pytest tests/serving/clients_test.py (a minute); clients in an environment of their
own: tests/serving/more_clients_test.py
"""

import base64

import huggingface_hub
import numpy as np
import openai
import pytest
import requests

from bert import tokenization
from bert.exporting import model_folder
from bert.predicting.predictor import Predictor
from tests.kit.server_program import Program
from tests.serving import client_models
from tests.serving.client_models import MASKED, PAIRS, QUESTION, SENTENCE, TEXTS, units

pytestmark = pytest.mark.ci

VECTORS = ("encoder", "minilm")


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
  return client_models.write(tmp_path_factory.mktemp("models"))


@pytest.fixture(scope="module")
def program(folders, tmp_path_factory):
  found = Program(tmp_path_factory.mktemp("program"), *client_models.flags(folders))
  yield found
  found.kill()


@pytest.fixture(scope="module")
def predictors(folders):
  found = {name: Predictor.load(path) for name, path in folders.items() if name != "words"}
  return {
    **found,
    "words": Predictor.load(folders["words"], task="masked_words", max_seq_length=None),
  }


@pytest.fixture(params=VECTORS)
def name(request, folders):
  """A model of vectors."""
  if request.param not in folders:
    request.getfixturevalue("data_dir")  # it skips, or fails where the data have to be there
  return request.param


def assert_close(found, expected):
  np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


def probabilities(predictor, items):
  """The probabilities of each item by label."""
  return [
    dict(zip(each["label_names"], each["probabilities"], strict=True)) for each in predictor(items)
  ]


def assert_labels(found, expected):
  """Compares labels with scores, sorted, with probabilities by label."""
  assert {each["label"] for each in found} == set(expected)
  assert_close([each["score"] for each in found], [expected[each["label"]] for each in found])
  assert_close([each["score"] for each in found], sorted(expected.values(), reverse=True))


# ---------------------------------------------------------------------------------------------
# openai.


class TestOpenAI:
  @pytest.fixture(scope="class")
  def embeddings(self, program):
    client = openai.OpenAI(base_url=f"{program.address}/v1", api_key="none", max_retries=0)
    return client.embeddings

  @pytest.mark.parametrize("options", [{}, {"encoding_format": "float"}], ids=["default", "float"])
  def test_texts(self, embeddings, predictors, name, options):
    found = embeddings.create(input=TEXTS, model=name, **options)
    assert_close([each.embedding for each in found.data], units(predictors[name](TEXTS)))
    [alone] = embeddings.create(input=TEXTS[0], model=name, **options).data
    assert_close(alone.embedding, units(predictors[name](TEXTS[:1]))[0])

  def test_ids(self, embeddings, predictors, folders, name):
    tokenizer = tokenization.load_tokenizer(model_folder.read(folders[name]).vocab_file)
    ids = [tokenizer.text_to_ids(text) for text in TEXTS]
    expected = units(predictors[name](TEXTS))
    found = embeddings.create(input=ids, model=name).data
    assert_close([each.embedding for each in found], expected)
    [alone] = embeddings.create(input=ids[0], model=name).data
    assert_close(alone.embedding, expected[0])

  def test_it_reads_our_errors(self, embeddings):
    with pytest.raises(openai.UnprocessableEntityError, match="check_embedding_ctx_length=False"):
      embeddings.create(input=[[100257]], model="encoder")
    with pytest.raises(openai.NotFoundError, match="There is no model 'nobody'"):
      embeddings.create(input="a", model="nobody")

  def test_models(self, program, folders):
    client = openai.OpenAI(base_url=f"{program.address}/v1", api_key="none")
    assert {each.id for each in client.models.list()} == set(folders)
    assert client.models.retrieve("pairs").id == "pairs"


# ---------------------------------------------------------------------------------------------
# huggingface_hub.


class TestHuggingFace:
  @pytest.fixture(scope="class")
  def client(self, program):
    return lambda name: huggingface_hub.InferenceClient(f"{program.address}/models/{name}")

  def test_feature_extraction(self, client, predictors, name):
    expected = predictors[name](TEXTS)
    for text, vector in zip(TEXTS, expected, strict=True):
      assert_close(client(name).feature_extraction(text), units([vector]))
      found = client(name).feature_extraction(text, normalize=False, truncation_direction="right")
      assert_close(found, [vector])
    assert_close(client(name).feature_extraction(TEXTS), units(expected))

  def test_sentence_similarity(self, client, predictors, name):
    vectors = units(predictors[name](TEXTS))
    found = client(name).sentence_similarity(TEXTS[0], TEXTS[1:])
    assert_close(found, vectors[1:] @ vectors[0])

  def test_text_classification(self, client, predictors):
    for text, expected in zip(TEXTS, probabilities(predictors["pairs"], TEXTS), strict=True):
      assert_labels(client("pairs").text_classification(text), expected)
      [best] = client("pairs").text_classification(text, top_k=1)
      assert best.score == pytest.approx(max(expected.values()), abs=1e-5)
    pair = {"text": PAIRS[0][0], "text_pair": PAIRS[0][1]}
    found = client("pairs").text_classification(pair)
    assert_labels(found, probabilities(predictors["pairs"], PAIRS[:1])[0])

  def test_token_classification(self, client, predictors):
    found = client("entities").token_classification(SENTENCE)
    [expected] = predictors["entities"]([SENTENCE])
    expected = expected["entities"]
    assert expected
    assert [(each.entity_group, each.word, each.start, each.end) for each in found] == [
      (each["type"], each["text"], each["start"], each["end"]) for each in expected
    ]
    assert_close([each.score for each in found], [each["probability"] for each in expected])

  def test_question_answering(self, client, predictors):
    found = client("questions").question_answering(**QUESTION)
    [expected] = predictors["questions"]([QUESTION])
    assert (found.answer, found.start, found.end) == tuple(
      expected[each] for each in ("answer", "start", "end")
    )
    assert found.score == pytest.approx(expected["probability"], abs=1e-5)

  def test_fill_mask(self, client, predictors, folders):
    found = client("words").fill_mask(MASKED)
    [[expected]] = (each["masks"] for each in predictors["words"]([MASKED]))
    vocab = (folders["words"] / "vocab.txt").read_text().split()
    assert [vocab[each.token] for each in found] == [each["token"] for each in expected]
    assert [each.token_str for each in found] == [each["token"] for each in expected]
    assert_close([each.score for each in found], [each["probability"] for each in expected])
    assert found[0].sequence == MASKED.replace("[MASK]", expected[0]["token"])
    assert len(client("words").fill_mask(MASKED, top_k=2)) == 2


# ---------------------------------------------------------------------------------------------
# requests.


@pytest.fixture(scope="module")
def session():
  with requests.Session() as session:
    yield session


class TestRequests:
  def post(self, session, program, path, body):
    response = session.post(f"{program.address}{path}", json=body, timeout=60)
    response.raise_for_status()
    return response.json()

  def test_tensorflow_serving(self, session, program, predictors):
    path = "/v1/models/pairs:predict"
    rows = [dict(zip(("text_a", "text_b"), pair, strict=True)) for pair in PAIRS]
    expected = [each["probabilities"] for each in predictors["pairs"](PAIRS)]
    coded = {name: {"b64": base64.b64encode(t.encode()).decode()} for name, t in rows[0].items()}
    for instances, wanted in ((rows, expected), (PAIRS, expected), ([coded], expected[:1])):
      found = self.post(session, program, path, {"instances": instances})["predictions"]
      assert_close([each["probabilities"] for each in found], wanted)
    columns = {name: [row[name] for row in rows] for name in rows[0]}
    found = self.post(session, program, path, {"inputs": columns})["outputs"]
    assert_close(found["probabilities"], expected)
    assert found["label"] == [each["label"] for each in predictors["pairs"](PAIRS)]
