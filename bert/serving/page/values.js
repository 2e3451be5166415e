// Whatever an answer is: its values in a table.

import { counted, element, number, scrolled } from "./dom.js";

const MOST_VALUES = 24;
const MOST_ROWS = 512;

/**
 * The values by name; what is of tokens, lists as long as `tokens`, in a table of the tokens.
 */
export function valuesView(answer) {
  const values = isPlain(answer) ? answer : { answer };
  const columns = tokenColumns(values);
  const names = Object.keys(values).filter((name) => !columns.includes(name));
  const nodes = [];
  if (names.length) nodes.push(scrolled(namedValues(names, values), "Values"));
  if (columns.length) nodes.push(scrolled(tokenTable(columns, values), "Values of the tokens"));
  return { nodes, summary: `${counted(Object.keys(values).length, "value")}: ${said(values)}` };
}

function isPlain(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function tokenColumns({ tokens, ...others }) {
  if (!Array.isArray(tokens)) return [];
  const isOfTokens = (value) => Array.isArray(value) && value.length === tokens.length;
  return ["tokens", ...Object.keys(others).filter((name) => isOfTokens(others[name]))];
}

function namedValues(names, values) {
  const rows = names.map((name) =>
    element(
      "tr",
      {},
      element("th", { scope: "row" }, name),
      element("td", { dir: "auto" }, written(values[name])),
    ),
  );
  return element("table", { class: "table" }, element("tbody", {}, rows));
}

function tokenTable(columns, values) {
  const head = columns.map((name) => element("th", { scope: "col" }, name));
  const rows = values.tokens.slice(0, MOST_ROWS).map((_, index) =>
    element(
      "tr",
      {},
      columns.map((name) => element("td", { dir: "auto" }, written(values[name][index]))),
    ),
  );
  return element(
    "table",
    { class: "table" },
    element("thead", {}, element("tr", {}, head)),
    element("tbody", {}, rows),
  );
}

/** A value as text, long lists by their beginning. */
function written(value) {
  if (typeof value === "number") return number(value);
  if (typeof value === "string") return value;
  if (Array.isArray(value)) {
    const areTexts = value.every((each) => typeof each === "string");
    const first = value.slice(0, MOST_VALUES).map(written).join(areTexts ? "\n" : ", ");
    const rest = value.length - MOST_VALUES;
    const isNested = Array.isArray(value[0]);
    const text = isNested ? `[${first}]` : first;
    return rest > 0 ? `${text} … and ${rest.toLocaleString("en")} more` : text;
  }
  if (isPlain(value)) {
    return Object.entries(value)
      .map(([name, each]) => `${name}: ${written(each)}`)
      .join(", ");
  }
  return String(value);
}

function said(values) {
  return Object.entries(values)
    .slice(0, 3)
    .map(([name, value]) => `${name} ${written(value).slice(0, 60)}`)
    .join("; ");
}
