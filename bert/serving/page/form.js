// The form: fields of the kinds that modes ask for, and what they hold.

import { element, titled } from "./dom.js";

/**
 * Makes the fields of a form and puts them into `place`.
 *
 *   kind     text: a text; lines: texts, one on each line; list: texts, each a field of its own;
 *            number: below `count`
 *   name     of the value
 *   label    by default made of the name
 *   value    to begin with
 *
 * Returns a function that reads the values, by name. `onNumber` is called when a number changes.
 */
export function fill(place, fields, onNumber) {
  const made = fields.map((field) => FIELDS[field.kind](field, onNumber));
  const numbers = made.filter((_, index) => fields[index].kind === "number");
  const others = made.filter((_, index) => fields[index].kind !== "number");
  place.replaceChildren(...others.map(({ node }) => node));
  if (numbers.length) {
    place.append(element("div", { class: "numbers" }, numbers.map(({ node }) => node)));
  }
  return () => Object.fromEntries(made.map(({ read }, index) => [fields[index].name, read()]));
}

const FIELDS = { text: textField, lines: linesField, list: listField, number: numberField };

function textField({ name, label, value, isOptional }) {
  const area = textArea(`field-${name}`, value, 3);
  return { node: labelled(area, label ?? titled(name), isOptional), read: () => area.value };
}

function linesField({ name, label, value }) {
  const area = textArea(`field-${name}`, value.join("\n"), 6);
  const read = () => area.value.split("\n").filter((line) => line.trim());
  return { node: labelled(area, label ?? titled(name)), read };
}

function numberField({ name, label, value, count }, onNumber) {
  const select = element(
    "select",
    { id: `field-${name}`, on: { change: onNumber } },
    Array.from({ length: count }, (_, index) =>
      element("option", { value: index, selected: index === value }, String(index)),
    ),
  );
  return { node: labelled(select, label ?? titled(name)), read: () => Number(select.value) };
}

/** Texts that can be added and taken away; the last one stays. */
function listField({ name, label, value }) {
  const title = label ?? titled(name);
  const rows = element("ol", { class: "list-rows" });
  const areas = () => [...rows.querySelectorAll("textarea")];
  const renumber = () => {
    areas().forEach((area, index) => area.setAttribute("aria-label", `${title} ${index + 1}`));
    const removers = [...rows.querySelectorAll("button")];
    removers.forEach((button, index) => {
      button.setAttribute("aria-label", `Remove ${title} ${index + 1}`);
      button.hidden = removers.length === 1;
    });
  };
  const add = (text) => {
    const area = textArea(null, text, 1);
    const remover = element("button", { type: "button", class: "remove" }, "×");
    const row = element("li", {}, area, remover);
    remover.addEventListener("click", () => {
      const neighbour = row.nextElementSibling ?? row.previousElementSibling;
      row.remove();
      renumber();
      neighbour.querySelector("textarea").focus();
    });
    rows.append(row);
    renumber();
    return area;
  };
  value.forEach(add);
  const button = element("button", { type: "button", class: "more" }, "Add one");
  button.addEventListener("click", () => add("").focus());
  const node = element("fieldset", {}, element("legend", {}, title), rows, button);
  return { node, read: () => areas().map((area) => area.value) };
}

function textArea(id, value, rows) {
  const area = element("textarea", { id, rows, dir: "auto", spellcheck: "false" });
  area.value = value;
  return area;
}

function labelled(control, title, isOptional = false) {
  const optional = isOptional ? element("span", { class: "soft" }, " (optional)") : null;
  const label = element("label", { for: control.id }, title, optional);
  return element("div", { class: "field" }, label, control);
}
