// The page: chooses a model and a mode, sends the form, shows the answer.
//
// `modes.js` says what can be asked, `views.js` how answers look. The address of the page holds the
// model and the mode (`#NAME/MODE`), so that both can be linked to and Back works.

import * as calls from "./calls.js";
import { element, jsonText } from "./dom.js";
import { fill } from "./form.js";
import { keyField } from "./key.js";
import { noted } from "./latency.js";
import { modelsOf, modesOf, requestOf } from "./modes.js";
import { snippets } from "./snippets.js";
import { show } from "./views.js";

const POLL_MS = 1500; // between two questions whether the server is ready, at first
const MOST_POLL_MS = 10_000;
const SLOW_MS = 3000; // what is slower is said in words

const at = (id) => document.getElementById(id);

let models = [];
let model = null;
let mode = null;
let readValues = () => ({});
let running = null; // the `AbortController` of the call in flight
let slowTimer = 0;
let isPolling = false; // whether `/health` is being asked
let isAnswered = false; // whether an answer of this mode is shown
const written = new Map(); // what was in the form, by model and mode

// -------------------------------------------------------------------------------------------------
// Until the server is ready.

/** Waits until the server says that it is ready, then reads what it serves if that is unknown. */
async function connect() {
  if (isPolling) return;
  isPolling = true;
  for (let wait = POLL_MS; ; wait = Math.min(wait * 1.3, MOST_POLL_MS)) {
    const isHealthy = await calls.isHealthy();
    if (isHealthy) break;
    setStatus("waiting", isHealthy === null ? "No answer from the server" : "Loading the model…");
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
  isPolling = false;
  if (models.length) setStatus("ready", "Ready");
  else await readInfo();
}

/** Reads what the server serves; returns whether it answers. */
async function readInfo() {
  let found;
  try {
    found = modelsOf(await calls.get("/info"));
  } catch (error) {
    if (error.status === 401) at("key-box").open = true;
    setStatus("problem", error.message);
    return false;
  }
  if (!found.length) {
    setStatus("problem", "The server has no models.");
    return true;
  }
  setStatus("ready", "Ready");
  if (models.length) return true; // it was only asked whether the key is right
  models = found;
  at("waiting").hidden = true;
  fillModelChoice();
  followAddress();
  return true;
}

function setStatus(state, words) {
  const status = at("status");
  status.dataset.state = state;
  if (status.textContent !== words) status.textContent = words; // said once, not at each poll
}

// -------------------------------------------------------------------------------------------------
// Model and mode.

function fillModelChoice() {
  const options = models.map(({ name }) => element("option", { value: name }, name));
  at("model").replaceChildren(...options);
  at("model-choice").hidden = models.length === 1;
  at("model-name").classList.toggle("unseen", models.length > 1); // the choice stands for it
}

/** Shows the model and the mode of the page's address, or the first ones. */
function followAddress() {
  if (!models.length) return;
  const [name, id] = location.hash.slice(1).split("/").map(decoded);
  model = models.find((each) => each.name === name) ?? models[0];
  const modes = modesOf(model);
  mode = modes.find((each) => each.id === id) ?? modes[0] ?? null;
  showModel(modes);
  showForm();
}

function decoded(part) {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

function addressOf(name, id) {
  return `#${encodeURIComponent(name)}/${id}`;
}

function showModel(modes) {
  document.title = `${model.name} · model server`;
  at("model").value = model.name;
  at("model-name").textContent = model.name;
  at("facts").replaceChildren(...factsOf(model).map((fact) => element("li", {}, fact)));
  const links = modes.map((each) =>
    element(
      "a",
      { href: addressOf(model.name, each.id), "aria-current": each === mode ? "page" : null },
      each.title,
    ),
  );
  at("modes").replaceChildren(...links);
  at("modes").hidden = modes.length < 2;
  at("modes").querySelector("[aria-current]")?.scrollIntoView({ block: "nearest" });
}

function factsOf({ engine, precision, max_seq_length, dimensions, layers, heads, labels, version }) {
  const facts = [
    [engine, [engine, precision].filter(Boolean).join(", ")],
    [max_seq_length, `up to ${max_seq_length} tokens`],
    [layers, `${layers} layers, ${heads} heads`],
    [dimensions, `${dimensions} dimensions`],
    [labels?.length, `${labels?.length} labels`],
    [version, `version ${version}`],
  ];
  return facts.filter(([value]) => value).map(([, text]) => text);
}

// -------------------------------------------------------------------------------------------------
// The form.

function showForm() {
  running?.abort();
  clearAnswer();
  at("bench").hidden = at("code").hidden = mode === null;
  if (mode === null) {
    setStatus("problem", "This page has nothing to ask of this model.");
    return;
  }
  at("lead").textContent = mode.lead(model);
  const before = written.get(placeOfForm()) ?? {};
  const fields = mode.fields(model).map((field) => ({
    ...field,
    value: before[field.name] ?? field.value,
  }));
  readValues = fill(at("fields"), fields, () => isAnswered && send());
  showSnippets();
}

function placeOfForm() {
  return addressOf(model.name, mode.id);
}

function requestNow() {
  return requestOf(mode, model, readValues(), models.length === 1);
}

/** The snippets of the call that the form would make now. */
function showSnippets() {
  if (mode === null) return;
  const { path, body } = requestNow();
  at("snippets").replaceChildren(...snippets(path, body, calls.hasKey()));
}

// -------------------------------------------------------------------------------------------------
// The call.

async function send() {
  running?.abort();
  const call = (running = new AbortController());
  const [asked, of, values] = [mode, model, readValues()];
  const { path, body } = requestNow();
  setBusy(true);
  try {
    const found = await calls.post(path, body, call.signal);
    if (running === call) showAnswer(asked, of, values, found);
  } catch (error) {
    if (running === call) showProblem(error);
  } finally {
    if (running === call) setBusy(false);
  }
}

const SLOW = "Still computing. A first call may have to load the model.";

function setBusy(isBusy) {
  at("result").setAttribute("aria-busy", String(isBusy));
  at("progress").hidden = !isBusy;
  clearTimeout(slowTimer);
  at("slow").textContent = "";
  if (isBusy) slowTimer = setTimeout(() => (at("slow").textContent = SLOW), SLOW_MS);
  at("send").classList.toggle("is-busy", isBusy);
}

function showAnswer(asked, of, values, found) {
  const { nodes, summary } = show(asked.display(of), asked.answer(found.data), values, of);
  at("problem").replaceChildren();
  at("answer").replaceChildren(...nodes, json(found.data));
  at("latency").replaceChildren(...noted(found));
  at("latency").hidden = false;
  at("said").textContent = summary;
  isAnswered = true;
  bringIntoView();
}

/** On a phone the answer is below the form. */
function bringIntoView() {
  const isCalm = matchMedia("(prefers-reduced-motion: reduce)").matches;
  const isBelow = at("result").getBoundingClientRect().top > innerHeight - 160;
  if (isBelow) at("result").scrollIntoView({ behavior: isCalm ? "auto" : "smooth" });
}

function showProblem(error) {
  if (error.name === "AbortError") return;
  const isCallError = error instanceof calls.CallError;
  const words = isCallError ? error.message : "The server's answer has an unexpected form.";
  if (!isCallError) console.warn(error);
  clearAnswer();
  at("answer").replaceChildren();
  at("problem").replaceChildren(element("p", { class: "error" }, words));
  if (error.status === 401) at("key-box").open = true;
  if (isCallError && (error.status === 0 || error.status === 503)) connect();
}

function clearAnswer() {
  running = null;
  isAnswered = false;
  setBusy(false);
  for (const id of ["answer", "problem", "latency"]) at(id).replaceChildren();
  at("latency").hidden = true;
  at("said").textContent = "";
  const words = "The answer will appear here.";
  at("answer").append(element("p", { class: "none" }, words));
}

/** The server's answer as it came. */
function json(data) {
  const properties = { tabindex: "0", dir: "ltr", "aria-label": "The answer as JSON" };
  const pre = element("pre", properties, jsonText(data));
  return element("details", { class: "json" }, element("summary", {}, "As JSON"), pre);
}

// -------------------------------------------------------------------------------------------------
// Events.

at("form").addEventListener("submit", (event) => {
  event.preventDefault();
  send();
});

at("form").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
    event.preventDefault();
    send();
  }
});

// The form as a whole: fields of lists come and go.
for (const event of ["input", "click"]) {
  at("form").addEventListener(event, () => {
    if (mode === null) return;
    written.set(placeOfForm(), readValues());
    showSnippets();
  });
}

at("model").addEventListener("change", () => {
  location.hash = addressOf(at("model").value, mode?.id ?? "");
});

keyField(at("key-box"), { changed: showSnippets, accepted: readInfo });

addEventListener("hashchange", followAddress);

connect();
