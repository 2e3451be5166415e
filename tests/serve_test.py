"""serve.py: its flags, and the program with real models behind it.

Alone: python -m pytest tests/serve_test.py (seconds; `-m ci`: a minute)
"""

import base64
import contextlib
import http.client
import json
import os
import re
import subprocess
import time

import numpy as np
import pytest

from bert import export_hub, serve
from bert.serving import key_file
from tests.kit.script_runs import Script, check_help
from tests.kit.server_program import Program

SERVE = Script(serve)


def test_help_is_quick_and_complete(tmp_path):
  check_help(serve, tmp_path, {"Models", "Server", "Limits"})


@pytest.mark.parametrize(
  ("flags", "words"),
  [
    ({"workers": 0}, "--workers=0: must be at least 1"),
    ({"max_seq_length": 2}, "--max_seq_length=2: must be at least 3"),
    ({"port": 65536}, "--port=65536: must be from 0 to 65535"),
    ({"port": "http"}, "--port takes an integer"),
    ({"timeout_s": 0}, "--timeout_s=0.0: must be a positive number"),
    ({"model": "a="}, "--model=a= names no folder."),
    ({"model": "a", "api_key_file": "/no/such/file"}, "/no/such/file: No such file"),
    ({"model": "a", "host": "no.such.host.invalid"}, "is no address of this machine"),
  ],
)
def test_wrong_flags_are_one_message(flags, words):
  assert words in SERVE.error_of(**flags)


def test_two_models_of_one_name_are_one_message():
  message = SERVE.error_of("--model=/a/run", "--model=/b/run/")
  assert "Two models are called run. Give them names: --model=NAME=/b/run/" in message


@pytest.mark.ci
def test_a_batch_that_is_too_small_for_a_text_is_one_message(exports):
  message = SERVE.error_of(model=exports / "classifier", port=0, max_batch_tokens=15)
  assert "classifier: max_batch_tokens is 15, but a text of this model may have" in message


@pytest.mark.ci
def test_a_folder_that_is_none_is_one_message():
  assert "No checkpoint /no/such/folder" in SERVE.error_of(model="/no/such/folder", port=0)


@pytest.mark.parametrize(
  ("given", "found"),
  [
    (["a=/no/folder,y"], {"a": "/no/folder,y"}),
    (["/tmp/run/"], {"run": "/tmp/run/"}),
    (["a=/tmp/x", "b.c-1=/tmp/x"], {"a": "/tmp/x", "b.c-1": "/tmp/x"}),
    (["/tmp/a=b/run"], {"run": "/tmp/a=b/run"}),
    (["~/run"], {"run": os.path.expanduser("~/run")}),
    ([], {}),
  ],
)
def test_names_of_models(given, found):
  models = serve.named_models(given)
  assert {name: each.folder for name, each in models.items()} == found
  assert not any(each.options for each in models.values())


@pytest.mark.parametrize(
  ("given", "name", "options"),
  [
    ("a={},int8", "a", {"precision": "int8"}),
    ("a={},int8,onnxruntime", "a", {"engine": "onnxruntime", "precision": "int8"}),
    ("a={}x,int8", "a", {}),  # a folder of that name
  ],
)
def test_a_model_has_its_own_engine_and_precision(tmp_path, given, name, options):
  for folder in ("run", "runx,int8"):
    (tmp_path / folder).mkdir()
  found = serve.given_model(given.format(tmp_path / "run"))
  assert (found.name, found.options) == (name, options)
  assert os.path.isdir(found.folder)


@pytest.mark.parametrize(
  ("rest", "words"), [(",int9", "'int9' is not one of onnxruntime, "), (",int8,int8", "a second")]
)
def test_what_is_neither_is_one_message(tmp_path, rest, words):
  assert words in SERVE.error_of(model=f"a={tmp_path}{rest}")


@pytest.mark.parametrize(
  ("text", "words"),
  [
    ("# only this\n", "has no key"),
    ("a\nschlüssel\n", "line 2: a key has letters of ASCII alone"),
  ],
)
def test_files_without_keys(tmp_path, text, words):
  path = tmp_path / "keys"
  path.write_text(text, encoding="utf-8")
  with pytest.raises(ValueError, match=words):
    key_file.read_keys(str(path))


# ---------------------------------------------------------------------------------------------
# The program.

TEXTS = ["ada bob.", "cat dog, ada.", "elk"]


@pytest.fixture(scope="module")
def exports(tmp_path_factory):
  """Exports of a tiny classifier and of a tiny encoder, as ONNX, also with weights of 8 bits."""
  from tests.kit import every_script

  folder = every_script.write_files(tmp_path_factory.mktemp("files"))
  files = {flag: path.format(folder) for flag, path in every_script.MODEL.items()}
  for name, model in (("classifier", folder / "teacher"), ("encoder", folder / "model")):
    Script(export_hub).run_well(
      **files if name == "encoder" else {},
      init_checkpoint=model,
      export_dir=folder / name,
      format="onnx",
      int8=True,
      max_seq_length=16,
    )
  return folder


@pytest.fixture(scope="module")
def program(exports, tmp_path_factory):
  found = Program(
    tmp_path_factory.mktemp("program"),
    f"--model=tables={exports / 'classifier'},int8",
    f"--model=words={exports / 'encoder'}",
    "--log_format=json",
  )
  yield found
  found.kill()


def predictor(exports, name, precision="float32"):
  from bert.predicting.predictor import Predictor

  return Predictor.load(exports / name, precision=precision)


@pytest.mark.ci
def test_every_route_answers_as_a_predictor(program, exports):
  vectors = np.stack(predictor(exports, "encoder")(TEXTS))
  units = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
  answers = predictor(exports, "classifier", "int8")(TEXTS)
  close = {"rtol": 0, "atol": 1e-5}

  body = {"input": TEXTS, "model": "words"}
  found = program.ask("POST", "/v1/embeddings", body)["data"]
  np.testing.assert_allclose([each["embedding"] for each in found], units, **close)
  coded = program.ask("POST", "/v1/embeddings", {**body, "encoding_format": "base64"})["data"]
  decoded = [np.frombuffer(base64.b64decode(each["embedding"]), "<f4") for each in coded]
  np.testing.assert_allclose(decoded, units, **close)
  np.testing.assert_allclose(program.ask("POST", "/embed", {"inputs": TEXTS}), units, **close)
  of_tokens = program.ask("POST", "/embed_all", {"inputs": TEXTS})
  np.testing.assert_allclose([np.mean(each, axis=0) for each in of_tokens], vectors, **close)
  found = program.ask("POST", "/similarity", {"texts": TEXTS})["similarities"]
  np.testing.assert_allclose(found, units @ units.T, **close)
  ranked = program.ask("POST", "/rerank", {"query": TEXTS[0], "texts": TEXTS, "model": "words"})
  assert ranked[0]["index"] == 0

  def probabilities(found):
    return [[each[name] for name in ("0", "1")] for each in found]

  expected = [answer["probabilities"] for answer in answers]
  inputs = [[text] for text in TEXTS]
  found = program.ask("POST", "/predict", {"inputs": inputs, "model": "tables"})
  found = [{each["label"]: each["score"] for each in its} for its in found]
  np.testing.assert_allclose(probabilities(found), expected, **close)
  for path, name, own in (
    ("/answer", "items", "answers"),
    ("/v1/models/tables:predict", "instances", "predictions"),
  ):
    body = {name: TEXTS, **({"model": "tables"} if path == "/answer" else {})}
    found = program.ask("POST", path, body)[own]
    np.testing.assert_allclose([each["probabilities"] for each in found], expected, **close)
    assert [each["label"] for each in found] == [each["label"] for each in answers]


@pytest.mark.ci
def test_what_is_served_is_said(program):
  assert program.ask("GET", "/health") == {"status": "ready"}
  models = program.ask("GET", "/info")["models"]
  assert [each["abilities"] for each in models] == [["answers"], ["vectors", "token_vectors"]]
  assert {each["engine"] for each in models} == {"onnxruntime"}
  assert [each["precision"] for each in models] == ["int8", "float32"]
  assert b"te_request_count" in program.ask("GET", "/metrics")
  assert "/v1/models/{name}:predict" in program.ask("GET", "/openapi.json")["paths"]
  assert "tables (onnxruntime, int8): answers" in program.out.read_text()


@pytest.mark.ci
@pytest.mark.parametrize(
  ("host", "status"), [("localhost:8080", 200), ("[::1]", 200), ("other.example", 403)]
)
def test_a_page_whose_name_leads_here_gets_nothing(program, host, status):
  with contextlib.closing(http.client.HTTPConnection("127.0.0.1", program.port)) as connection:
    connection.request("GET", "/info", headers={"Host": host})
    assert connection.getresponse().status == status


@pytest.mark.ci
def test_the_command_that_it_prints_works(program):
  [path, body] = re.search(r"curl -s \S+?:\d+(\S+) -d '(.*)'", program.out.read_text()).groups()
  assert program.ask("POST", path, json.loads(body))


@pytest.mark.ci
def test_the_front_needs_no_tensorflow(program):
  maps = f"/proc/{program.process.pid}/maps"
  if not os.path.exists(maps):
    pytest.skip("this system has no /proc")
  with open(maps) as file:
    assert "tensorflow" not in file.read()


@pytest.mark.ci
def test_sigterm_ends_all_of_it(program):
  command = ["ps", "--ppid", str(program.process.pid), "-o", "pid="]
  children = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
  assert len(children) >= 2
  assert program.stop() == 0
  lines = [json.loads(line) for line in program.log.read_text().splitlines()]
  assert all(line["event"] in ("request", "message") for line in lines)
  deadline = time.monotonic() + 20
  while any(os.path.exists(f"/proc/{child}") for child in children):
    assert time.monotonic() < deadline, "a process that computes is left"
    time.sleep(0.05)
