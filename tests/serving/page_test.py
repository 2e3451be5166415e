"""The server's page in a browser, with canned answers: what it shows, and that all can use it.

Alone: python -m pytest tests/serving/page_test.py (half a minute; needs Chromium and playwright)
"""

import json
import os
import re
import subprocess
import sys
import time

import pytest

from bert.tasks import decoding, kinds
from tests.kit import browser as browsers
from tests.kit.paths import ROOT

pytestmark = pytest.mark.ci

PAGE = ROOT / "bert" / "serving" / "page"
# Model and mode -> what the answer shows of the example, by the class of the element.
SHOWN = {
  ("paraphrases", "answer"): {"verdict": "equivalent", "is-given": "equivalent (chosen)89.1%"},
  ("topics", "answer"): {"verdict": "weather, aviation", "more": "Show all 14"},
  ("stars", "answer"): {"figure-value": "4.322"},
  ("names", "answer"): {"legend": "PER 2LOC 1DATE 1", "entity": "Ada LovelacePER"},
  ("parts", "answer"): {"legend": "NOUN 3VERB 3ADP 3PUNCT 3"},
  ("reader", "answer"): {"verdict": "Ada Lovelace", "span": "Ada Lovelace"},
  ("ends", "answer"): {"verdict": "It begins to rain, so she opens an umbrella."},
  ("alike", "answer"): {"figure-unit": "cosine similarity"},
  ("own", "answer"): {"table": "novelty0.7342fieldshipbuilding"},
  ("newer", "answer"): {"table": "novelty0.7342fieldshipbuilding"},
  ("encoder", "similarity"): {"matrix": "1231The storm closed both runways.1.00"},
  ("encoder", "vectors"): {"is-first": "3 vectors of 48 dimensions.", "matrix": "123"},
  ("encoder", "masked_words"): {"text": "The capital of France is paris.", "bar-value": "62.0%"},
  ("encoder", "attention"): {"is-first": "14 word pieces, layer 3, head 0", "to": "[CLS]"},
}
COLOURFUL = [("topics", "answer"), ("names", "answer"), ("encoder", "attention")]
NAMED = {"model": "encoder"}
FAILED = "Failed to load resource"  # Chromium's words for each status from 400


@pytest.fixture(scope="module")
def browser():
  with browsers.chromium() as found:
    yield found


@pytest.fixture(scope="module")
def served(browser):
  from tests.serving import fake_page_server

  with fake_page_server.running() as found:
    yield found


@pytest.fixture
def server(served):
  served.reset()
  return served


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


def only(server, name):
  server.models = {name: server.models[name]}


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


def test_all_displays_of_the_tasks_have_a_view(page, server):
  visit(page, server)
  views = page.evaluate("import('/page/views.js').then(({VIEWS}) => Object.keys(VIEWS))")
  displays = {decoding.Decoder.display, "score", "classes"}  # of regression and classes: by run
  displays |= {kinds.find(each).decoder_class().display for each in ("ner", "squad", "swag")}
  assert displays | {kinds.find("similarity").decoder_class().display} <= set(views)


def test_an_answer_that_lacks_what_its_view_needs_is_a_table(page, server):
  about, _ = server.models["paraphrases"]
  server.models = {"odd": server.models["own"]._replace(about={**about, "display": "classes"})}
  server.models["odd"] = server.models["odd"]._replace(answer=lambda item: {"mood": "fine"})
  visit(page, server, "odd")
  run(page)
  assert page.locator("#answer table").text_content() == "moodfine"


def test_a_question_without_an_answer_says_so(page, server):
  visit(page, server, "reader")
  page.get_by_label("Question").fill("No question")
  run(page)
  assert page.locator("#answer .none").text_content() == "The text does not answer the question."


def test_masks_of_two_texts_are_filled(page, server):
  visit(page, server, "encoder", "masked_words")
  page.get_by_label("Text", exact=True).fill("In [MASK].")
  page.get_by_label("Second text").fill("[MASK] or [MASK]")
  run(page)
  assert page.locator("#answer .text").all_text_contents() == ["In paris.", "paris or paris"]
  assert page.locator("#answer h2").all_text_contents() == ["Mask 1", "Mask 2", "Mask 3"]
  assert page.get_by_text("Second text follows: 91.0%").is_visible()
  assert server.calls == [
    ("/masked_words", {"items": [["In [MASK].", "[MASK] or [MASK]"]], **NAMED})
  ]


def test_further_labels_are_shown_on_demand(page, server):
  visit(page, server, "topics")
  run(page)
  assert page.locator(".bars li").count() == 10
  page.get_by_role("button", name="Show all 14").click()
  assert page.locator(".bars li").count() == 14
  assert page.evaluate("document.activeElement.textContent").startswith("law")


def test_fields_are_those_of_the_model(page, server):
  visit(page, server, "ends")
  page.get_by_role("button", name="Add one").click()
  page.keyboard.type("sleeps.")
  page.get_by_role("button", name="Remove Choices 2").click()
  run(page)
  [(path, body)] = server.calls
  choices = ["opens an umbrella.", "is a Tuesday.", "sleeps."]
  assert path == "/answer"
  assert body["items"] == [{"context": "It begins to rain, so she", "choices": choices}]
  assert page.get_by_label("Text B").count() == 0
  visit(page, server, "paraphrases")
  assert "optional" in page.locator("label", has_text="Text B").text_content()


def test_another_head_is_asked_for_at_once(page, server):
  visit(page, server, "encoder", "attention")
  run(page)
  with page.expect_response("**/attention"):
    page.get_by_label("Head").select_option("2")
  page.get_by_text("layer 3, head 2").first.wait_for()
  assert [body["head"] for _, body in server.calls] == [0, 2]


def test_the_form_is_kept_while_other_modes_are_looked_at(page, server):
  visit(page, server, "encoder", "masked_words")
  page.get_by_label("Text", exact=True).fill("A [MASK].")
  page.get_by_role("link", name="Attention").click()
  page.get_by_label("Second text").wait_for()
  page.go_back()
  page.locator("#lead", has_text="[MASK]").wait_for()
  assert page.get_by_label("Text", exact=True).input_value() == "A [MASK]."


# -------------------------------------------------------------------------------------------------
# Texts are texts.


def test_markup_and_other_scripts_stay_text(page, server):
  only(server, "names")
  text = "<script>document.title='x'</script> <img src=x onerror=alert(1)> Ada Lovelace"
  visit(page, server, "names")
  page.get_by_label("Text", exact=True).fill(text)
  run(page)
  found = page.locator("#answer .text").text_content()
  assert re.sub("PER|DATE", "", found) == text  # the words, without the labels behind them
  assert page.locator("#answer script, #answer img").count() == 0
  assert page.title() == "names · model server"


def test_labels_that_are_markup_stay_text(page, server):
  model = server.models["paraphrases"]
  label = "<b onclick=alert(1)>no</b>"
  canned = {"label": label, "label_names": [label, "y"], "probabilities": [0.75, 0.25]}
  server.models = {"<i>odd</i>": model._replace(answer=lambda item: canned)}
  page.goto(server.url)
  page.locator("#bench").wait_for()
  run(page)
  assert page.locator(".verdict").text_content() == label
  assert page.locator("h1").text_content() == "<i>odd</i>"
  assert page.locator("main b, main i").count() == 0


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


@pytest.mark.parametrize("width", browsers.WIDTHS)
@pytest.mark.parametrize("scheme", browsers.SCHEMES)
def test_nobody_is_shut_out(browser, server, width, scheme):
  # Contrast depends on the scheme, the layout on the width: two of four see all displays.
  is_full = (width, scheme) in zip(browsers.WIDTHS, browsers.SCHEMES, strict=True)
  with browsers.watched_page(browser, width, scheme) as page:
    for model, mode in SHOWN if is_full else COLOURFUL:
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
  assert server.calls[-1][1]["items"][0]["text_a"] == "It rains."
  page.locator("#field-text_b").focus()
  with page.expect_response("**/answer"):
    page.keyboard.press("Control+Enter")


def test_arrow_keys_walk_through_the_attention(page, server):
  visit(page, server, "encoder", "attention")
  run(page)
  page.locator(".from").first.focus()
  page.keyboard.press("ArrowDown")
  page.keyboard.press("ArrowDown")
  assert page.locator(".attention-words").text_content().startswith("“cat” looks at “")
  page.keyboard.press("End")
  assert page.locator(".from.is-chosen").text_content() == "[SEP]"
  assert page.locator(".from[tabindex='0']").count() == 1


# -------------------------------------------------------------------------------------------------
# Calls.


TRICKY = 'It\'s "quoted" \\ $HOME `id` !\n\tnew line \U0001f600 é <b>'


@pytest.mark.parametrize("key", ["", "secret-1"])
def test_the_snippets_make_the_very_call(page, server, key, tmp_path):
  visit(page, server)
  page.get_by_label("Text A").fill(TRICKY)
  if key:
    server.key = key
    page.get_by_text("API key").click()
    page.get_by_label("Key of this server").fill(key)
    page.keyboard.press("Tab")
  run(page)
  [asked] = server.calls
  assert asked[1]["items"][0]["text_a"] == TRICKY
  curl, python = page.locator(".snippet pre").all_text_contents()
  assert "secret" not in curl + python
  file = tmp_path / "call.py"
  file.write_text(python)
  environment = {**os.environ, "API_KEY": key, "no_proxy": "127.0.0.1"}
  printed = [
    subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
    for command in (["bash", "-c", curl], [sys.executable, str(file)])
  ]
  assert server.calls == [asked] * 3
  assert json.loads(printed[0])["answers"][0]["label"] == "equivalent"
  assert "'label': 'equivalent'" in printed[1]


def test_snippets_are_copied(browser, server):
  options = {"permissions": ["clipboard-read", "clipboard-write"]}
  with browsers.watched_page(browser, **options) as page:
    visit(page, server)
    page.get_by_role("button", name="Copy the curl call").click()
    page.get_by_text("Copied").wait_for()
    copied = page.evaluate("navigator.clipboard.readText()")
    assert copied == page.locator(".snippet pre").first.text_content()


@pytest.mark.parametrize(
  ("status", "headers", "content", "sentence"),
  [
    (422, {}, {"error": "text_b is missing", "error_type": "Validation"}, "Text_b is missing."),
    (400, {}, {"error": {"message": "Empty.", "type": "Empty"}}, "Empty."),
    (413, {}, {"message": "Too large.", "code": 413}, "Too large."),
    (422, {}, {"detail": [{"msg": "Field required", "loc": []}]}, "Field required."),
    (429, {"Retry-After": "3"}, {"error": "Full."}, "Full. Try again in 3 s."),
    (500, {}, "oops", "The server answered with status 500."),
    (200, {}, {"unexpected": 1}, "The server's answer has an unexpected form."),
  ],
)
def test_an_error_is_one_sentence(page, server, status, headers, content, sentence):
  page.expected_errors += [FAILED, "TypeError"]
  visit(page, server)
  server.fault = status, headers, content
  page.locator("#send").click()
  page.locator("#problem .error").wait_for()
  assert page.locator("#problem").text_content() == sentence
  server.fault = None
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
  server.is_ready = False
  page.goto(server.url)
  page.get_by_text("Loading the model…").wait_for()
  assert not page.locator("#bench").is_visible()
  server.is_ready = True
  page.locator("#bench").wait_for()
  assert page.locator("#status").text_content() == "Ready"


def test_a_key_is_asked_for_and_kept_in_memory_alone(page, server):
  page.expected_errors.append(FAILED)
  server.key = "secret-1"
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


def test_a_key_can_be_changed_and_the_field_closed(page, server):
  page.expected_errors.append(FAILED)
  visit(page, server)
  server.key = "secret-1"
  page.locator("#send").click()
  page.get_by_text("The server asks for an API key.").wait_for()
  field = page.get_by_label("Key of this server")
  assert field.is_visible()
  page.keyboard.press("Escape")
  field.focus()
  page.keyboard.press("Escape")
  assert not field.is_visible()
  page.get_by_text("API key", exact=True).click()
  field.fill("secret-1")
  page.keyboard.press("Enter")
  field.wait_for(state="hidden")
  assert page.evaluate("document.activeElement.textContent") == "API key"
  run(page)
  assert page.locator("#problem").text_content() == ""


COVERED = """() => {
  const names = ["#key-box form", "#status", "#facts", "#modes", "#fields", "#send", "#model"];
  const [key, ...others] = names
    .map((each) => document.querySelector(each).getBoundingClientRect());
  return others.filter(({ top, bottom, left, right }) =>
    top < key.bottom && key.top < bottom && left < key.right && key.left < right).length;
}"""


@pytest.mark.parametrize("scheme", browsers.SCHEMES)
def test_the_key_covers_nothing_on_a_phone(browser, server, scheme):
  with browsers.watched_page(browser, 390, scheme) as page:
    visit(page, server, "encoder", "similarity")
    page.get_by_text("API key", exact=True).click()
    assert page.get_by_label("Key of this server").is_visible()
    assert page.evaluate(COVERED) == 0
    ends = "[...document.querySelectorAll('#modes a')].map((e) => e.getBoundingClientRect().right)"
    assert max(page.evaluate(ends)) <= 390
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    assert browsers.serious_findings(page) == []


def test_an_answer_that_comes_too_late_is_not_shown(page, server):
  visit(page, server, "encoder", "vectors")
  server.delay_s = 0.5
  page.locator("#send").click()
  page.locator("#progress").wait_for()
  assert page.locator("#result").get_attribute("aria-busy") == "true"
  page.get_by_role("link", name="Masked words").click()
  page.get_by_text("Write [MASK]").wait_for()
  time.sleep(0.8)
  assert page.locator("#answer").text_content() == "The answer will appear here."
  assert page.locator("#result").get_attribute("aria-busy") == "false"


# -------------------------------------------------------------------------------------------------
# Routes.


def described_routes():
  import fastapi
  import pydantic

  class Texts(pydantic.BaseModel):
    input: str | list[str] = pydantic.Field(description="One or more <b>texts</b>.")
    model: str | None = None
    encoding_format: str = pydantic.Field("float", examples=["base64"])

  app = fastapi.FastAPI(title="Models", description="Routes of `serve.py`.")

  @app.post("/v1/embeddings", tags=["OpenAI"], responses={429: {"description": "Too much."}})
  def embeddings(body: Texts) -> list[float]:
    """Makes vectors."""

  @app.get("/v1/models", tags=["OpenAI"])
  def models(limit: int = 3):
    """Lists the models."""

  return app.openapi()


@pytest.mark.parametrize("width", browsers.WIDTHS)
@pytest.mark.parametrize("scheme", browsers.SCHEMES)
def test_routes_are_described(browser, server, width, scheme):
  server.openapi = described_routes()
  with browsers.watched_page(browser, width, scheme) as page:
    page.goto(f"{server.url}docs")
    route = page.locator(".route").first
    route.wait_for()
    text = route.text_content()
    assert text.startswith("POST/v1/embeddingsMakes vectors.")
    assert "inputtext or list of text requiredOne or more <b>texts</b>." in text
    assert "429Too much." in text
    page.get_by_text("Example", exact=True).first.click()
    example = json.loads(page.locator(".example pre").first.text_content())
    assert example == {"input": "text"}
    page.get_by_text("Errors: 422, 429").click()
    assert browsers.serious_findings(page) == []
    assert page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_routes_ask_for_the_key_where_one_is_needed(page, server):
  page.expected_errors.append(FAILED)
  server.openapi, server.key = described_routes(), "secret-1"
  page.goto(f"{server.url}docs")
  page.get_by_text("The server asks for an API key.").wait_for()
  page.get_by_label("Key of this server").fill("secret-1")
  page.keyboard.press("Enter")
  page.locator(".route").first.wait_for()


def test_routes_can_be_tried(browser, server):
  server.openapi = described_routes()
  with browsers.watched_page(browser, 390) as page:
    page.expected_errors.append(FAILED)
    page.goto(f"{server.url}docs")
    route = page.locator(".route").first
    route.get_by_text("Try it").click()
    body = route.get_by_label("Body for /v1/embeddings")
    assert json.loads(body.input_value()) == {"input": "text"}
    body.fill('{"input": ["one", "two"]}')
    route.get_by_role("button", name="Send").click()
    response = route.get_by_label("Response of /v1/embeddings")
    response.wait_for()
    assert [each["index"] for each in json.loads(response.text_content())["data"]] == [0, 1]
    assert server.calls == [("/v1/embeddings", {"input": ["one", "two"]})]
    assert browsers.serious_findings(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    body.fill("{")
    route.get_by_role("button", name="Send").click()
    route.get_by_text("The body is not JSON: ").wait_for()
    server.fault = 422, {}, {"error": {"message": "`input` is missing.", "type": "Validation"}}
    body.fill("{}")
    route.get_by_role("button", name="Send").click()
    route.get_by_text("`input` is missing.").wait_for()
    assert not response.is_visible()
    server.fault, server.key = None, "secret-1"
    route.get_by_role("button", name="Send").click()
    page.get_by_label("Key of this server").wait_for()
