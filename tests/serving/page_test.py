"""The server's page in a browser, of models with chosen scores: what it shows, and to whom.

Alone: python -m pytest tests/serving/page_test.py (half a minute; needs Chromium and playwright)
"""

import json
import os
import re
import subprocess
import sys

import pytest

from tests.kit import browser as browsers
from tests.kit.paths import ROOT
from tests.serving import page_models, running_server

pytestmark = pytest.mark.ci

PAGE = ROOT / "bert" / "serving" / "page"
# Model and mode -> what the answer shows of the example, by the class of the element.
SHOWN = {
  ("paraphrases", "answer"): {"verdict": "equivalent", "is-given": "equivalent (chosen)89.1%"},
  ("topics", "answer"): {"verdict": "weather, aviation", "more": "Show all 14"},
  ("stars", "answer"): {"figure-value": "4.322"},
  ("names", "answer"): {"legend": "PER 4LOC 1", "entity": "Ada LovelacePER"},
  ("reader", "answer"): {"verdict": "The Analytical", "span": "The Analytical"},
  ("ends", "answer"): {"verdict": "It begins to rain, so she opens an umbrella."},
  ("encoder", "similarity"): {"matrix": "1231The storm closed both runways.1.00"},
  ("encoder", "vectors"): {"is-first": "3 vectors of 16 dimensions.", "matrix": "123"},
  ("encoder", "masked_words"): {"text": "The capital of France is paris.", "bar-value": "75.0%"},
  ("encoder", "attention"): {"is-first": "14 word pieces, layer 1, head 0", "to": "[CLS]"},
}
FAILED = "Failed to load resource"  # Chromium's words for each status from 400
KEYS: list[str] = []  # of the server, read at each request


@pytest.fixture(scope="module")
def browser():
  with browsers.chromium() as found:
    yield found


@pytest.fixture(scope="module")
def served(browser):
  with running_server.started(page_models.models(), api_keys=KEYS) as found:
    found.url = "http://{}:{}/".format(*found.address)
    yield found


@pytest.fixture
def server(served):
  yield served
  KEYS.clear()
  served.models.is_ready = True
  for model in served.models.models.values():
    model.calls.clear()


@pytest.fixture
def page(browser, server):
  with browsers.watched_page(browser) as found:
    yield found


def visit(page, server, model="paraphrases", mode="answer"):
  page.goto(f"{server.url}#{model}/{mode}")
  page.locator("#bench").wait_for()
  page.locator(f"#modes [aria-current][href='#{model}/{mode}']").wait_for(state="attached")


def run(page):
  with page.expect_response(lambda response: response.request.method == "POST"):
    page.locator("#send").click()
  page.locator("#latency").wait_for()
  page.locator("#result[aria-busy=false]").wait_for()


def calls_of(server, name):
  return server.models.models[name].calls


# -------------------------------------------------------------------------------------------------
# Views.


def test_each_display_has_its_view(page, server):
  for (model, mode), parts in SHOWN.items():
    visit(page, server, model, mode)
    run(page)
    for name, text in parts.items():
      shown = page.locator(f"#answer .{name}").first.text_content()
      assert shown.startswith(text), (model, mode, name, shown)
    assert page.locator("#said").text_content(), (model, mode)


def test_fields_are_those_of_the_model(page, server):
  visit(page, server, "ends")
  page.get_by_role("button", name="Add one").click()
  page.keyboard.type("sleeps.")
  page.get_by_role("button", name="Remove Choices 2").click()
  run(page)
  choices = ["opens an umbrella.", "is a Tuesday.", "sleeps."]
  item = {"context": "It begins to rain, so she", "choices": choices}
  assert calls_of(server, "ends") == [("answers", [item])]
  assert page.get_by_label("Text B").count() == 0
  visit(page, server, "paraphrases")
  assert "optional" in page.locator("label", has_text="Text B").text_content()


# -------------------------------------------------------------------------------------------------
# Texts are texts.


def test_markup_and_other_scripts_stay_text(page, server):
  text = "<script>document.title='x'</script> <img src=x onerror=alert(1)> Ada Lovelace"
  visit(page, server, "names")
  page.get_by_label("Text", exact=True).fill(text)
  run(page)
  found = page.locator("#answer .text").text_content()
  assert re.sub("PER|LOC", "", found) == text  # the words, without the labels behind them
  assert page.locator("#answer script, #answer img").count() == 0
  assert page.title() == "names · model server"


def test_no_file_of_the_page_writes_html_or_leads_elsewhere():
  forbidden = re.compile(
    r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|eval\(|new Function|localStorage"
    r"|sessionStorage|document\.cookie|@import|\burl\("
  )
  for file in PAGE.iterdir():
    text = file.read_text()
    assert not forbidden.search(text), file
    links = set(re.findall(r"https?://[^\s\"'`]+", text))
    assert links <= {"http://www.w3.org/2000/svg"}, file


# -------------------------------------------------------------------------------------------------
# Everyone.


@pytest.mark.parametrize(("width", "scheme"), zip(browsers.WIDTHS, browsers.SCHEMES, strict=True))
def test_nobody_is_shut_out(browser, server, width, scheme):
  with browsers.watched_page(browser, width, scheme) as page:
    for model, mode in SHOWN:
      visit(page, server, model, mode)
      run(page)
      if mode == "attention":
        page.locator(".from").nth(5).focus()
      assert browsers.serious_findings(page) == [], (model, mode)
      excess = page.evaluate("document.documentElement.scrollWidth - innerWidth")
      assert excess <= 0, (model, mode)


def test_long_texts_and_many_do_not_widen_a_phone(browser, server):
  with browsers.watched_page(browser, 375) as page:
    for (model, mode), field, text in (
      (("names", "answer"), "Text", "Ada" + "x" * 300),
      (("encoder", "similarity"), "Texts", "\n".join("x" * 90 + str(n) for n in range(9))),
      (("encoder", "attention"), "Text", "x" * 90 + " and" * 40),
      (("encoder", "masked_words"), "Text", "x" * 300 + "[MASK]"),
    ):
      visit(page, server, model, mode)
      page.get_by_label(field, exact=True).fill(text)
      run(page)
      assert page.evaluate("document.documentElement.scrollWidth") == 375, (model, mode)


def test_the_keyboard_alone_will_do(page, server):
  visit(page, server)
  page.locator("#model").focus()
  page.keyboard.press("Tab")
  assert page.evaluate("document.activeElement.id") == "field-text_a"
  page.keyboard.press("Control+A")
  page.keyboard.type("It rains.")
  page.keyboard.press("Tab")
  page.keyboard.press("Tab")
  assert page.evaluate("document.activeElement.id") == "send"
  outline = "getComputedStyle(document.activeElement).outlineStyle"
  assert page.evaluate(outline) == "solid"
  page.keyboard.press("Enter")
  page.locator("#latency").wait_for()
  assert calls_of(server, "paraphrases")[-1][1][0]["text_a"] == "It rains."
  page.locator("#field-text_b").focus()
  with page.expect_response("**/answer"):
    page.keyboard.press("Control+Enter")


# -------------------------------------------------------------------------------------------------
# Calls.


TRICKY = 'It\'s "quoted" \\ $HOME `id` !\n\tnew line \U0001f600 é <b>'


@pytest.mark.parametrize("key", ["", "secret-1"])
def test_the_snippets_make_the_very_call(page, server, key, tmp_path):
  visit(page, server)
  page.get_by_label("Text A").fill(TRICKY)
  if key:
    KEYS.append(key)
    page.get_by_text("API key").click()
    page.get_by_label("Key of this server").fill(key)
    page.keyboard.press("Tab")
  run(page)
  calls = calls_of(server, "paraphrases")
  [asked] = calls
  assert asked[1][0]["text_a"] == TRICKY
  curl, python = page.locator(".snippet pre").all_text_contents()
  assert "secret" not in curl + python
  file = tmp_path / "call.py"
  file.write_text(python)
  environment = {**os.environ, "API_KEY": key, "no_proxy": "127.0.0.1"}
  printed = [
    subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    for command in (["bash", "-c", curl], [sys.executable, str(file)])
  ]
  assert calls == [asked] * 3
  assert json.loads(printed[0])["answers"][0]["label"] == "equivalent"
  assert "'label': 'equivalent'" in printed[1]


@pytest.mark.parametrize(
  ("status", "headers", "content", "sentence"),
  [
    (422, {}, {"error": "text_b is missing", "error_type": "Validation"}, "Text_b is missing."),
    (400, {}, {"error": {"message": "Empty.", "type": "Empty"}}, "Empty."),
    (429, {"Retry-After": "3"}, {"error": "Full."}, "Full. Try again in 3 s."),
    (500, {}, "oops", "The server answered with status 500."),
    (200, {}, {"unexpected": 1}, "The server's answer has an unexpected form."),
  ],
)
def test_an_error_is_one_sentence(page, server, status, headers, content, sentence):
  page.expected_errors += [FAILED, "TypeError"]
  visit(page, server)
  answer = {"status": status, "headers": headers, "body": json.dumps(content)}
  page.route("**/answer", lambda route: route.fulfill(**answer))
  page.locator("#send").click()
  page.locator("#problem .error").wait_for()
  assert page.locator("#problem").text_content() == sentence
  page.unroute("**/answer")
  run(page)
  assert page.locator("#problem").text_content() == ""


def test_a_server_that_is_gone_is_an_error_and_comes_back(page, server):
  page.expected_errors.append(FAILED)
  visit(page, server)
  page.route("**/*", lambda route: route.abort())
  page.locator("#send").click()
  page.get_by_text("The server did not answer. Is it still running?").wait_for()
  page.get_by_text("No answer from the server").wait_for()
  page.unroute("**/*")
  page.get_by_text("Ready", exact=True).wait_for()
  run(page)


def test_the_page_waits_for_the_model(page, server):
  page.expected_errors.append(FAILED)
  server.models.is_ready = False
  page.goto(server.url)
  page.get_by_text("Loading the model…").wait_for()
  assert not page.locator("#bench").is_visible()
  server.models.is_ready = True
  page.locator("#bench").wait_for()
  assert page.locator("#status").text_content() == "Ready"


def test_a_key_is_asked_for_and_kept_in_memory_alone(page, server):
  page.expected_errors.append(FAILED)
  KEYS.append("secret-1")
  page.goto(server.url)
  page.get_by_text("The server asks for an API key.").wait_for()
  page.get_by_label("Key of this server").fill("wrong")
  page.keyboard.press("Enter")
  page.get_by_text("The server does not accept this API key.").wait_for()
  assert page.get_by_label("Key of this server").is_visible()
  page.get_by_label("Key of this server").fill("secret-1")
  page.get_by_role("button", name="Use this key").click()
  page.locator("#bench").wait_for()
  page.get_by_label("Key of this server").wait_for(state="hidden")
  run(page)
  stored = "JSON.stringify([{...localStorage}, {...sessionStorage}, document.cookie])"
  assert "secret" not in page.evaluate(stored)
  assert "secret" not in page.content()


# -------------------------------------------------------------------------------------------------
# Routes.


@pytest.mark.parametrize(("width", "scheme"), zip(browsers.WIDTHS, browsers.SCHEMES, strict=True))
def test_routes_are_described(browser, server, width, scheme):
  with browsers.watched_page(browser, width, scheme) as page:
    page.goto(f"{server.url}docs")
    route = page.locator(".route", has_text="POST/v1/embeddings")
    route.wait_for()
    text = route.text_content()
    assert "Returns a vector of length 1 for each text." in text
    assert "input" in text
    assert "429Too much is queued" in text
    route.get_by_text("Example", exact=True).first.click()
    example = json.loads(route.locator(".example pre").first.text_content())
    assert list(example) == ["input"]
    route.get_by_text("Errors: 400").click()
    assert browsers.serious_findings(page) == []
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_routes_can_be_tried(browser, server):
  with browsers.watched_page(browser, 390) as page:
    page.expected_errors.append(FAILED)
    page.goto(f"{server.url}docs")
    route = page.locator(".route", has_text="POST/v1/embeddings")
    route.get_by_text("Try it").click()
    body = route.get_by_label("Body for /v1/embeddings")
    assert list(json.loads(body.input_value())) == ["input"]
    body.fill('{"input": ["one", "two"]}')
    route.get_by_role("button", name="Send").click()
    response = route.get_by_label("Response of /v1/embeddings")
    response.wait_for()
    assert [each["index"] for each in json.loads(response.text_content())["data"]] == [0, 1]
    assert browsers.serious_findings(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    body.fill("{")
    route.get_by_role("button", name="Send").click()
    route.get_by_text("The body is not JSON: ").wait_for()
    body.fill("{}")
    route.get_by_role("button", name="Send").click()
    route.get_by_text("`input` is missing.").wait_for()
    assert not response.is_visible()
    KEYS.append("secret-1")
    route.get_by_role("button", name="Send").click()
    page.get_by_label("Key of this server").wait_for()
