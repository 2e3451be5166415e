// The page of routes: `openapi.json` as text, tables and examples.

import { get } from "./calls.js";
import { element, scrolled } from "./dom.js";
import { keyField } from "./key.js";
import { Schemas } from "./schemas.js";
import { tryIt } from "./try.js";

const METHODS = ["get", "post", "put", "patch", "delete"];

const UNSAID = "Successful Response"; // FastAPI's words for an answer of which nothing is said

const at = (id) => document.getElementById(id);

/** Shows the routes; returns whether the server lists them. */
async function start() {
  let description;
  try {
    description = await get("/openapi.json");
  } catch (error) {
    at("about").textContent = error.message;
    askForKey(error);
    return false;
  }
  const { title = "", description: text = "", version = "" } = description.info ?? {};
  at("about").replaceChildren(...coded(text || [title, version].filter(Boolean).join(" ")));
  const groups = groupsOf(description);
  const schemas = new Schemas(description);
  const words = new Map((description.tags ?? []).map((tag) => [tag.name, tag.description]));
  at("contents").replaceChildren(...[...groups].flatMap(([name, routes]) => contents(name, routes)));
  at("routes").replaceChildren(
    ...[...groups].map(([name, routes]) => groupOf(name, words.get(name), routes, schemas)),
  );
  document.getElementById(decodeURIComponent(location.hash.slice(1)))?.scrollIntoView();
  return true;
}

function askForKey(error) {
  if (error.status === 401) at("key-box").hidden = !(at("key-box").open = true);
}

/** Name of each group -> its routes, in the order of the document. */
function groupsOf({ paths = {} }) {
  const groups = new Map();
  for (const [path, operations] of Object.entries(paths)) {
    for (const method of METHODS.filter((each) => operations[each])) {
      const operation = operations[method];
      const name = operation.tags?.[0] ?? "Routes";
      const route = { path, method, operation, id: `${method}-${path}` };
      groups.set(name, [...(groups.get(name) ?? []), route]);
    }
  }
  return groups;
}

function contents(name, routes) {
  const links = routes.map(({ path, id }) =>
    element("li", {}, element("a", { href: `#${encodeURIComponent(id)}` }, path)),
  );
  return [element("h2", {}, name), element("ul", {}, links)];
}

function groupOf(name, words, routes, schemas) {
  return element(
    "section",
    { class: "group", "aria-label": name },
    element("h2", {}, name),
    words ? element("p", { class: "hint" }, words) : null,
    routes.map((route) => routeOf(route, schemas)),
  );
}

function routeOf({ path, method, operation, id }, schemas) {
  const { summary, description, parameters = [], requestBody, responses = {} } = operation;
  const media = mediaOf(schemas.resolved(requestBody));
  return element(
    "article",
    { class: "route", id },
    element(
      "h3",
      { class: "route-name" },
      element("span", { class: "method" }, method.toUpperCase()),
      element("span", {}, path),
    ),
    summary || description ? element("p", { class: "route-text" }, coded(description || summary)) : null,
    parameters.length ? parametersOf(parameters, schemas) : null,
    media ? bodyOf("Body", media, schemas) : null,
    responsesOf(responses, schemas),
    canTry(path, responses, schemas)
      ? tryIt({ path, method }, media && schemas.exampleOf(media), askForKey)
      : null,
  );
}

/** Whether a route returns JSON, and its path is whole. */
function canTry(path, responses, schemas) {
  const returned = schemas.resolved(responses[200]).content ?? {};
  return !path.includes("{") && "application/json" in returned;
}

function isEmpty({ schema = {}, example, examples }) {
  return !Object.keys(schema).length && example === undefined && !examples;
}

function mediaOf({ content = {} }) {
  return content["application/json"] ?? Object.values(content)[0];
}

function parametersOf(parameters, schemas) {
  const rows = parameters
    .map((each) => schemas.resolved(each))
    .map(({ name, schema = {}, required, description }) =>
      fieldRow(name, { ...schemas.resolved(schema), description }, required, schemas),
    );
  return part("In the address", fieldTable(rows, "Parameters"));
}

function bodyOf(title, media, schemas) {
  const properties = media.schema ? schemas.propertiesOf(media.schema) : [];
  const rows = properties.map(([name, schema, required]) => fieldRow(name, schema, required, schemas));
  const shape = rows.length
    ? fieldTable(rows, title)
    : media.schema
      ? element("p", { class: "hint" }, schemas.typeOf(media.schema))
      : null;
  return part(title, shape, exampleOf(media, schemas, title));
}

function exampleOf(media, schemas, title) {
  const example = schemas.exampleOf(media);
  if (example === undefined) return null;
  const text = typeof example === "string" ? example : JSON.stringify(example, null, 2);
  const pre = element("pre", { tabindex: "0", dir: "ltr", "aria-label": `Example: ${title}` }, text);
  return element("details", { class: "example" }, element("summary", {}, "Example"), pre);
}

function responsesOf(responses, schemas) {
  const all = Object.entries(responses).map(([status, each]) => [status, schemas.resolved(each)]);
  const [good, bad] = [true, false].map((is) => all.filter(([status]) => /^2/.test(status) === is));
  const parts = good.map(([status, each]) => {
    const media = mediaOf(each);
    const title = `Answer, ${status}`;
    if (media && !isEmpty(media)) return bodyOf(title, media, schemas);
    const words = each.description ?? "";
    return words === UNSAID ? null : part(title, element("p", { class: "hint" }, words));
  });
  if (bad.length) {
    const rows = bad.map(([status, each]) =>
      element(
        "tr",
        {},
        element("th", { scope: "row" }, status),
        element("td", {}, coded(each.description ?? "")),
      ),
    );
    const table = element("table", { class: "table" }, element("tbody", {}, rows));
    const title = `Errors: ${bad.map(([status]) => status).join(", ")}`;
    const head = element("summary", {}, title);
    parts.push(element("details", { class: "example" }, head, scrolled(table, "Errors")));
  }
  return parts;
}

/** A text in whose `marks` code stands. */
function coded(text) {
  return text.split("`").map((each, index) => (index % 2 ? element("code", {}, each) : each));
}

function part(title, ...nodes) {
  return element("div", { class: "part" }, element("h4", { class: "soft" }, title), nodes);
}

function fieldTable(rows, label) {
  return scrolled(element("table", { class: "table" }, element("tbody", {}, rows)), label);
}

function fieldRow(name, schema, isRequired, schemas) {
  const { description, default: value } = schema;
  const byDefault = value === undefined || value === null ? "" : `Default ${JSON.stringify(value)}.`;
  return element(
    "tr",
    {},
    element("th", { scope: "row" }, element("code", {}, name)),
    element(
      "td",
      { class: "type" },
      schemas.typeOf(schema),
      isRequired ? element("span", { class: "needed" }, " required") : null,
    ),
    element("td", {}, coded([description, byDefault].filter(Boolean).join(" "))),
  );
}

keyField(at("key-box"), { accepted: start });

start();
