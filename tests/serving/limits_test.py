"""Who may ask, how much and how slowly; what a client that goes away leaves; what the log says.

Alone: python -m pytest tests/serving/limits_test.py (a second)
"""

import asyncio
import gzip
import io
import json
import logging
import re
import tracemalloc
import zlib

import pytest

from bert.serving import app, key_file, limits
from bert.serving.metrics import Metrics
from bert.serving.request_log import RequestLog
from bert.serving.service import Settings
from tests.serving import fake_models
from tests.serving.asgi_client import ask

EMBED = json.dumps({"inputs": "secret text"}).encode()
KEYS = ("first-key", "second-key")


class Site:
  """An application, with its models and its log."""

  def __init__(self, form: str = "json", **settings):
    self.models = fake_models.FakeModels({"encoder": fake_models.encoder()})
    self.model = self.models.models["encoder"]
    self.lines = io.StringIO()
    self.metrics = Metrics()
    log = RequestLog(form, self.lines)
    self.app = app.create(self.models, Settings(**settings), self.metrics, log)

  def ask(self, method="POST", path="/embed", body=EMBED, **options):
    return asyncio.run(ask(self.app, method, path, body, **options))

  def facts(self) -> dict:
    """The last line of the log."""
    return json.loads(self.lines.getvalue().splitlines()[-1])


# ---------------------------------------------------------------------------------------------
# Size and time.


@pytest.mark.parametrize("form", ["with a length", "in parts, and without an end"])
def test_a_large_body_is_refused(form, monkeypatch):
  monkeypatch.setattr(limits, "_DRAIN_S", 0.05)
  site = Site(max_body_bytes=100)
  if form == "with a length":
    found = site.ask(body=b"x" * 101, headers={"content-length": "101"})
  else:
    found = site.ask(body=[b"x" * 60, b"y" * 60], is_complete="without" not in form)
  assert found.status == 413
  assert found.json() == {
    "error": "The body is larger than 100 bytes (--max_body_bytes).",
    "error_type": "Validation",
  }
  assert found.headers["connection"] == "close"
  assert site.model.calls == []


def test_a_body_of_the_limit_is_taken():
  body = EMBED.ljust(100)
  site = Site(max_body_bytes=100)
  assert site.ask(body=[body[:50], body[50:]]).status == 200
  assert site.ask(body=body, headers={"content-length": "100"}).status == 200


def test_a_length_of_5000_digits_is_too_large():
  assert Site().ask(headers={"content-length": "9" * 5000}).status == 413


def test_a_slow_body_is_refused():
  site = Site(body_timeout_s=0.05)
  found = site.ask(body=[b'{"inputs"'], is_complete=False)
  assert (found.status, found.json()["error_type"]) == (408, "Timeout")
  assert "within 0.05 seconds" in found.json()["error"]
  assert found.headers["connection"] == "close"


def test_bodies_on_their_way_are_counted():
  site = Site(max_concurrent_requests=2)

  async def many():
    gone = asyncio.Event()
    slow = [
      asyncio.ensure_future(ask(site.app, "POST", "/embed", [b"{"], is_complete=False, gone=gone))
      for _ in range(2)
    ]
    await asyncio.sleep(0.02)
    refused = await ask(site.app, "POST", "/embed", EMBED)
    gone.set()
    await asyncio.gather(*slow)
    return refused, await ask(site.app, "POST", "/embed", EMBED)

  refused, taken = asyncio.run(many())
  assert (refused.status, refused.headers["retry-after"]) == (429, "1")
  assert taken.status == 200


def test_a_slow_answer_is_given_up():
  site = Site(timeout_s=0.05)
  site.model.wait = asyncio.Event().wait
  found = site.ask()
  assert (found.status, found.json()["error_type"]) == (503, "Unhealthy")
  assert site.model.cancelled == 1


@pytest.mark.parametrize("when", ["during the body", "during the answer"])
def test_a_client_that_goes_away_leaves_nothing(when):
  site = Site()
  site.model.wait = asyncio.Event().wait

  async def go_away():
    gone = asyncio.Event()
    is_complete = when == "during the answer"
    request = asyncio.ensure_future(
      ask(site.app, "POST", "/embed", [EMBED], is_complete=is_complete, gone=gone)
    )
    await asyncio.sleep(0.02)
    gone.set()
    return await asyncio.wait_for(request, 5), asyncio.all_tasks()

  found, tasks = asyncio.run(go_away())
  assert found.status == 0
  assert len(tasks) == 1
  assert site.model.cancelled == (when == "during the answer")
  assert site.facts()["status"] == limits.CLIENT_IS_GONE


def test_many_texts_are_refused():
  site = Site(max_inputs=3)
  bodies = [
    ("/embed", {"inputs": ["a"] * 4}),
    ("/rerank", {"query": "a", "texts": ["a"] * 3}),
  ]
  for path, body in bodies:
    found = site.ask(path=path, body=json.dumps(body).encode())
    assert found.status == 413, path
    assert "4 texts, but may have 3" in found.content.decode(), path
  assert site.model.calls == []


def test_choices_are_texts_too():
  site = Site(max_inputs=3)
  site.model.servable = fake_models.chooser()
  item = {"context": "It rains.", "choices": ["a"] * 4}
  for path, body in (("/answer", {"items": [item]}), ("/predict", {"inputs": item})):
    found = site.ask(path=path, body=json.dumps(body).encode())
    assert found.status == 413
    assert "4 texts, but may have 3" in found.json()["error"]
  assert site.model.calls == []


# ---------------------------------------------------------------------------------------------
# Compressed bodies.


def test_gzip_is_unpacked():
  halves = gzip.compress(EMBED[:9]) + gzip.compress(EMBED[9:])
  for body, encoding in ((gzip.compress(EMBED), "GZIP"), (halves, "x-gzip"), (EMBED, "identity")):
    found = Site().ask(body=body, headers={"content-encoding": encoding})
    assert found.json() == Site().ask().json()


def test_no_more_is_unpacked_than_may_come():
  """A body of some kilobytes could fill the memory."""
  body = gzip.compress(b" " * 1_000_000) * 40
  site = Site(max_body_bytes=100_000)
  site.ask()
  tracemalloc.start()
  try:
    status = site.ask(body=body, headers={"content-encoding": "gzip"}).status
    _, most = tracemalloc.get_traced_memory()
  finally:
    tracemalloc.stop()
  assert status == 413
  assert most < 2_000_000


@pytest.mark.parametrize(
  ("body", "encoding", "status", "words"),
  [
    (gzip.compress(b" " * 5_000_000), "gzip", 413, "The body, unpacked, is larger than 10,000 by"),
    (gzip.compress(EMBED)[:-9], "gzip", 400, "is not gzip, as its Content-Encoding says: "),
    (zlib.compress(EMBED), "deflate", 415, "has the Content-Encoding 'deflate', but must be gzip"),
  ],
)
def test_other_compressed_bodies_are_refused(body, encoding, status, words):
  site = Site(max_body_bytes=10_000)
  found = site.ask(body=body, headers={"content-encoding": encoding})
  assert (found.status, words in found.json()["error"]) == (status, True), found
  assert site.model.calls == []


# ---------------------------------------------------------------------------------------------
# Keys and sites.


@pytest.mark.parametrize(
  "headers",
  [
    {"authorization": "bearer second-key"},
    {"api-key": "second-key"},
    {"x-api-key": "first-key"},
  ],
)
def test_a_key_opens(headers):
  assert Site(api_keys=KEYS).ask(headers=headers).status == 200


@pytest.mark.parametrize(
  "headers",
  [
    {},
    {"authorization": "Bearer first-keyy"},
    {"authorization": "Basic first-key"},
    {"x-api-key": ""},
    {"x-api-key": "b\xfcb"},
  ],
)
def test_without_a_key_it_is_closed(headers):
  site = Site(api_keys=KEYS)
  for path in ("/embed", "/info", "/metrics", "/v1/models", "/openapi.json", "/x"):
    found = site.ask("POST" if path == "/embed" else "GET", path, headers=headers)
    assert (found.status, found.headers["www-authenticate"]) == (401, "Bearer")
  assert site.model.calls == []


def test_a_key_file_is_read_again_when_it_changes(tmp_path, caplog):
  path = tmp_path / "keys"
  path.write_text("first-key")
  site = Site(api_keys=key_file.KeyFile(str(path)))

  def opens(key):
    return site.ask(headers={"x-api-key": key}).status == 200

  assert [opens("first-key"), opens("new-key")] == [True, False]
  path.write_text("new-key\nother-key")
  assert [opens("first-key"), opens("new-key"), opens("other-key")] == [False, True, True]
  for break_it in (lambda: path.write_text(""), path.unlink):
    break_it()
    with caplog.at_level(logging.ERROR, "absl"):
      assert [opens("new-key"), opens("")] == [True, False]
    assert caplog.text.count("the former ones stay valid") == 1
    caplog.clear()
  path.write_text("first-key")
  assert [opens("first-key"), opens("new-key")] == [True, False]


@pytest.mark.parametrize("path", ["/", "/health", "/live"])
def test_page_and_health_need_no_key(path):
  site = Site(api_keys=KEYS)
  assert site.ask("GET", path).status == 200
  assert site.ask("POST", path).status == 401


def test_every_key_is_compared_in_constant_time(monkeypatch):
  compared = []

  def compare(one, other):
    compared.append((one, other))
    return one == other

  monkeypatch.setattr(limits.hmac, "compare_digest", compare)
  Site(api_keys=KEYS).ask(headers={"x-api-key": "first-key"})
  assert compared == [(b"first-key", b"first-key"), (b"first-key", b"second-key")]


@pytest.mark.parametrize("site", ["cross-site", "same-site"])
def test_pages_of_other_sites_may_not_ask(site):
  headers = {"sec-fetch-site": site, "origin": "https://other.example"}
  assert Site().ask(headers=headers).status == 403
  assert Site(cors_origins=("https://other.example",)).ask(headers=headers).status == 200
  assert Site(cors_origins=("https://third.example",)).ask(headers=headers).status == 403
  assert Site().ask(headers={"sec-fetch-site": "same-origin"}).status == 200


@pytest.mark.parametrize(
  ("origin", "host", "status"),
  [
    ("https://bert.example", "Bert.example", 200),
    ("http://192.0.2.7:3000", "192.0.2.7:8080", 403),
    ("null", "", 403),
  ],
)
def test_the_origin_is_compared_where_a_browser_says_no_more(origin, host, status):
  headers = {"origin": origin, "host": host}
  assert Site().ask(headers=headers).status == status
  assert Site(cors_origins=(origin,)).ask(headers=headers).status == 200


LOCAL = ["localhost", "LocalHost:8080", "localhost.:80", "app.localhost", "127.0.0.1:8080"]
LOCAL += ["127.1.2.3", "[::1]", "[::1]:8080"]
STRANGE = ["evil.example", "evil.example:8080", "localhost.evil.example", "127.0.0.1.evil.example"]
STRANGE += ["", ":80", "192.0.2.7", "[2001:db8::1]:80", "localhost:x", "a@localhost", "[::1"]


def test_on_loopback_only_local_hosts_are_answered():
  closed, named, opened = Site(allowed_hosts=()), Site(allowed_hosts=("evil.example",)), Site()
  for host in (*LOCAL, *STRANGE):
    headers = {"host": host}
    found = closed.ask(headers=headers)
    assert found.status == (200 if host in LOCAL else 403), host
    assert host in LOCAL or "--allowed_host" in found.json()["error"]
    assert closed.ask("GET", "/health", headers=headers).status == found.status
    is_known = host in LOCAL or host.split(":")[0] == "evil.example"
    assert named.ask(headers=headers).status == (200 if is_known else 403), host
    assert opened.ask(headers=headers).status == 200
  # As a probe in HTTP/1.0 has none; browsers always send it, and pages cannot change it.
  assert closed.ask().status == 200


def test_cors_for_a_site():
  origin = {"origin": "https://other.example"}
  assert not any("access-control" in name for name in Site().ask(headers=origin).headers)
  site = Site(cors_origins=("https://other.example",), api_keys=KEYS)
  headers = {"origin": "https://other.example", "access-control-request-method": "POST"}
  found = site.ask("OPTIONS", headers=headers)
  assert found.status == 200
  assert found.headers["access-control-allow-origin"] == "https://other.example"
  other = site.ask("OPTIONS", headers={**headers, "origin": "https://third.example"})
  assert "access-control-allow-origin" not in other.headers


def test_all_answers_have_safe_headers():
  site = Site()
  for found in (site.ask(), site.ask(body=b"{"), site.ask("GET", "/"), site.ask("GET", "/nix")):
    assert found.headers["x-content-type-options"] == "nosniff"
    assert found.headers["referrer-policy"] == "no-referrer"
    assert "default-src 'self'" in found.headers["content-security-policy"]
    assert "frame-ancestors 'none'" in found.headers["content-security-policy"]
  assert site.ask().headers["cache-control"] == "no-store"
  assert site.ask("GET", "/").headers["cache-control"] == "no-cache"


# ---------------------------------------------------------------------------------------------
# Methods.


def test_head_is_get_and_options_lists_methods():
  site = Site()
  for path in ("/", "/health", "/info"):
    assert site.ask("HEAD", path, b"").status == 200
  assert site.ask("HEAD", "/embed", b"").status == 405
  found = site.ask("OPTIONS", "/", b"")
  assert (found.status, found.headers["allow"]) == (204, "GET, HEAD, POST, OPTIONS")
  assert site.ask("OPTIONS", "/nix", b"").status == 404


@pytest.mark.parametrize("method", ["PUT", "GET", "FOO"])
def test_other_methods_are_named(method):
  found = Site().ask(method, "/embed")
  assert (found.status, found.headers["allow"]) == (405, "POST, OPTIONS")
  assert found.json()["error"] == f"/embed takes POST, OPTIONS, not {method}."


# ---------------------------------------------------------------------------------------------
# The log.


def test_the_log_has_neither_texts_nor_keys():
  site = Site(api_keys=KEYS)
  for key in ("first-key", "wrong-key"):
    for body in (EMBED, b'{"inputs": ["secret text", 5]}', b'"secret text"'):
      site.ask(body=body, headers={"authorization": f"Bearer {key}", "x-api-key": key})
  lines = site.lines.getvalue()
  assert len(lines.splitlines()) == 6
  assert "secret" not in lines
  assert "key" not in lines
  facts = json.loads(lines.splitlines()[0])
  assert facts["ms"] > 0
  assert {name: facts[name] for name in ("method", "path", "status", "model", "items")} == {
    **{"method": "POST", "path": "/embed", "status": 200, "model": "encoder", "items": 1}
  }
  assert (facts["tokens"], facts["client"]) == (9, "192.0.2.1")


def test_ids_of_requests_and_traces_are_in_the_log_and_the_answer(caplog):
  site, trace = Site(), "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
  found = site.ask(headers={"x-request-id": "order-17", "traceparent": trace})
  assert found.headers["x-request-id"] == "order-17"
  assert (site.facts()["request_id"], site.facts()["traceparent"]) == ("order-17", trace)
  made = {site.ask(headers=headers).headers["x-request-id"] for headers in ({}, {})}
  assert len(made) == 2
  assert site.facts()["request_id"] in made
  bad = {"x-request-id": "a b\u00fc", "traceparent": trace.replace("4bf92f3577b34da6", "x")}
  assert re.fullmatch("[0-9a-f]{32}", site.ask(headers=bad).headers["x-request-id"])
  assert "traceparent" not in site.facts()
  site.model.trouble = ZeroDivisionError()
  with caplog.at_level(logging.ERROR, "absl"):
    site.ask(headers={"x-request-id": "order-18"})
  assert "order-18" in caplog.text


def test_a_path_cannot_write_a_line_of_its_own():
  site = Site("text")
  site.ask("GET", "/a\nstatus=200 \u2028b\x1b[2J")
  [line] = site.lines.getvalue().splitlines()
  assert line.isprintable()


def test_a_mistake_of_ours_is_logged_and_not_shown(caplog):
  site = Site()
  site.model.trouble = ZeroDivisionError("/secret/path")
  with caplog.at_level(logging.ERROR, "absl"):
    found = site.ask()
  assert found.status == 500
  assert b"secret" not in found.content
  assert "Traceback" not in found.content.decode()
  assert "ZeroDivisionError" in caplog.text
  assert site.facts()["status"] == 500
