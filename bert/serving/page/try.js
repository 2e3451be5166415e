// "Try it" at a route: sends its example, or what a reader makes of it, and shows the response.

import { CallError, get, post } from "./calls.js";
import { element, jsonText, milliseconds } from "./dom.js";

/** A form that calls a route; `onError` is told of what the server refuses. */
export function tryIt({ path, method }, example, onError) {
  const body = method === "post" ? bodyField(path, example) : null;
  const said = element("p", { class: "hint", role: "status" });
  const shown = element("pre", { tabindex: "0", dir: "ltr", "aria-label": `Response of ${path}` });
  shown.hidden = true;
  const show = (words, data) => {
    said.textContent = words;
    shown.hidden = data === undefined;
    shown.textContent = data === undefined ? "" : jsonText(data);
  };
  const call = async () => {
    if (!body) return { data: await get(path) };
    return post(path, JSON.parse(body.value));
  };
  const send = async (event) => {
    event.preventDefault();
    show("Waiting for the server…");
    try {
      const { data, roundTrip } = await call();
      show(roundTrip === undefined ? "" : `In ${milliseconds(roundTrip)}:`, data);
    } catch (error) {
      show(error instanceof SyntaxError ? `The body is not JSON: ${error.message}.` : error.message);
      if (error instanceof CallError) onError(error);
    }
  };
  const button = element("button", { class: "button", type: "submit" }, "Send");
  const form = element("form", { class: "try", on: { submit: send } }, body, button, said, shown);
  return element("details", { class: "example" }, element("summary", {}, "Try it"), form);
}

function bodyField(path, example) {
  const area = element("textarea", { rows: 4, dir: "ltr", spellcheck: "false" });
  area.setAttribute("aria-label", `Body for ${path}`);
  area.value = JSON.stringify(example ?? {}, null, 2);
  return area;
}
