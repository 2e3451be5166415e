"""Clients with many packages of their own: LangChain's and LlamaIndex's.

Alone: make test-clients, which installs them into an environment of their own; its interpreter is
CLIENTS_PYTHON. Without it those that are installed here are tried.
"""

import importlib.util
import json
import os
import subprocess
import sys

import numpy as np
import pytest

from bert.predicting.predictor import Predictor
from tests.kit.paths import ROOT
from tests.kit.server_program import Program
from tests.serving import client_models
from tests.serving.client_models import TEXTS, units

pytestmark = pytest.mark.ci

ELSEWHERE = os.environ.get("CLIENTS_PYTHON")
PACKAGES = {  # which a client, a function of more_clients.py, imports
  "langchain": "langchain_openai",
  "llamaindex": "llama_index.embeddings.openai_like",
}


def needs(client: str):
  try:
    is_here = ELSEWHERE or importlib.util.find_spec(PACKAGES[client])
  except ModuleNotFoundError:  # not even the package around it
    is_here = False
  reason = f"{PACKAGES[client]} is not installed: make test-clients"
  return pytest.param(client, marks=pytest.mark.skipif(not is_here, reason=reason))


@pytest.fixture(scope="module", params=["encoder", "minilm"])
def folder(request, tmp_path_factory):
  if request.param == "minilm" and not client_models.MINILM.is_dir():
    request.getfixturevalue("data_dir")
  return client_models.write(tmp_path_factory.mktemp("models"), request.param)[request.param]


@pytest.fixture(scope="module")
def server(folder, tmp_path_factory):
  found = Program(tmp_path_factory.mktemp("program"), f"--model={folder}")
  yield found
  found.kill()


@pytest.fixture(scope="module")
def encode(folder):
  return Predictor.load(folder)


def asked(client: str, address: str) -> dict:
  program = ROOT / "tests" / "serving" / "more_clients.py"
  run = subprocess.run(
    [ELSEWHERE or sys.executable, program, client, address, "any"],
    input=json.dumps(TEXTS),
    capture_output=True,
    text=True,
    timeout=300,
  )
  assert run.returncode == 0, run.stderr[-3000:]
  return json.loads(run.stdout.splitlines()[-1])


def assert_close(found, expected):
  np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5)


@pytest.mark.parametrize("client", [needs("langchain"), needs("llamaindex")])
def test_clients_of_openai(server, encode, client):
  expected = units(encode(TEXTS))
  found = asked(client, server.address)
  assert_close(found["texts"], expected)
  assert_close(found["query"], expected[0])
