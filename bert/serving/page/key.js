// The field of the API key, which both pages have.

import { setKey } from "./calls.js";

/**
 * Wires the field in a `details` element.
 *
 * `changed` is called when the key has changed. `accepted` is called when it is sent, and returns
 * whether the server accepts it: the field closes then.
 */
export function keyField(box, { changed = () => {}, accepted }) {
  const form = box.querySelector("form");
  const close = () => {
    box.open = false;
    box.querySelector("summary").focus();
  };
  const read = () => {
    setKey(form.querySelector("input").value);
    changed();
  };
  form.addEventListener("change", read);
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    read();
    if (await accepted()) close();
  });
  box.addEventListener("keydown", (event) => {
    if (event.key === "Escape") close();
  });
}
