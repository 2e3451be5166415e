// The call that the page makes, as text to paste: for a shell, and for Python.

import { addressOf } from "./calls.js";
import { element } from "./dom.js";

const KEY_VARIABLE = "API_KEY";

/** curl, for a POSIX shell. */
export function curl(path, body, hasKey) {
  const key = hasKey ? [`-H "Authorization: Bearer $${KEY_VARIABLE}"`] : [];
  const parts = [
    `curl ${quoted(addressOf(path))}`,
    ...key,
    "-H 'Content-Type: application/json'",
    `-d ${quoted(JSON.stringify(body))}`,
  ];
  return parts.join(" \\\n  ");
}

/** Python, with the package `requests`. */
export function python(path, body, hasKey) {
  const key = `headers={"Authorization": "Bearer " + os.environ["${KEY_VARIABLE}"]},`;
  return [
    ...(hasKey ? ["import os", ""] : []),
    "import requests",
    "",
    "response = requests.post(",
    `  ${JSON.stringify(addressOf(path))},`,
    `  json=${pythonValue(body, "  ")},`,
    ...(hasKey ? [`  ${key}`] : []),
    "  timeout=60,",
    ")",
    "response.raise_for_status()",
    "print(response.json())",
  ].join("\n");
}

function quoted(text) {
  return /^[\w:/.@-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}

/** A value in Python, over several lines where one would be long. JSON's texts are Python's, too. */
function pythonValue(value, indent) {
  if (value === null) return "None";
  if (typeof value === "boolean") return value ? "True" : "False";
  if (typeof value !== "object") return JSON.stringify(value);
  const isList = Array.isArray(value);
  const [open, close] = isList ? "[]" : "{}";
  const inner = `${indent}  `;
  const parts = Object.entries(value).map(([key, each]) =>
    isList ? pythonValue(each, inner) : `${JSON.stringify(key)}: ${pythonValue(each, inner)}`,
  );
  const line = open + parts.join(", ") + close;
  if (line.length < 64 && !line.includes("\n")) return line;
  return `${open}\n${parts.map((part) => `${inner}${part},\n`).join("")}${indent}${close}`;
}

// -------------------------------------------------------------------------------------------------
// On the page.

/** Both snippets of a call, each with a button that copies it. */
export function snippets(path, body, hasKey) {
  return [
    snippet("curl", curl(path, body, hasKey)),
    snippet("Python", python(path, body, hasKey)),
  ];
}

function snippet(title, text) {
  const pre = element("pre", { tabindex: "0", dir: "ltr", "aria-label": `${title} call` }, text);
  const button = element("button", { type: "button", class: "copy" }, "Copy");
  button.setAttribute("aria-label", `Copy the ${title} call`);
  button.addEventListener("click", async () => {
    const isDone = await copied(text, pre);
    button.textContent = isDone ? "Copied" : "Press Ctrl C";
    setTimeout(() => (button.textContent = "Copy"), 2000);
  });
  const head = element("div", { class: "snippet-head" }, element("h3", {}, title), button);
  return element("div", { class: "snippet" }, head, pre);
}

/** Copies a text; where the browser refuses, as on plain HTTP from afar, it is selected instead. */
async function copied(text, pre) {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    getSelection().selectAllChildren(pre);
    return false;
  }
}
