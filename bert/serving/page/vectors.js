// Vectors of texts, and how similar they are.

import { counted, decimals, element, scrolled, shortened } from "./dom.js";
import { canvas, colours } from "./drawings.js";

const MOST_TEXTS = 24;
const FIRST_VALUES = 5;
const STRIP_HEIGHT = 28;

/** A matrix of similarities, and the two texts that are most alike. */
export function similaritiesView(similarities, item) {
  const texts = item.texts.slice(0, MOST_TEXTS);
  const [first, second, value] = mostAlike(similarities, texts.length);
  const nodes = [];
  let summary = counted(texts.length, "text");
  if (second !== undefined) {
    summary = `Texts ${first + 1} and ${second + 1} are most alike: ${decimals(value)}.`;
    nodes.push(element("p", { class: "sure is-first" }, summary));
  }
  nodes.push(matrix(similarities, texts));
  if (texts.length < item.texts.length) nodes.push(cut(item.texts.length));
  return { nodes, summary };
}

/** Each text's vector: its size, its first values, all of them as a strip; and the cosines. */
export function vectorsView(vectors, item) {
  const shown = vectors.slice(0, MOST_TEXTS);
  const summary = `${counted(vectors.length, "vector")} of ${counted(vectors[0].length, "dimension")}.`;
  const list = element(
    "ol",
    { class: "vectors" },
    shown.map((vector, index) => vectorItem(vector, item.texts[index])),
  );
  const nodes = [element("p", { class: "sure is-first" }, summary), list];
  if (shown.length > 1) {
    const cosines = shown.map((one) => shown.map((other) => cosine(one, other)));
    nodes.push(element("h2", { class: "minor" }, "Cosines"), matrix(cosines, item.texts.slice(0, MOST_TEXTS)));
  }
  if (shown.length < vectors.length) nodes.push(cut(vectors.length));
  return { nodes, summary };
}

function cut(count) {
  return element("p", { class: "hint" }, `The first ${MOST_TEXTS} of ${counted(count, "text")}.`);
}

// -------------------------------------------------------------------------------------------------
// The matrix.

function matrix(values, texts) {
  const numbers = texts.map((_, index) => element("th", { scope: "col" }, String(index + 1)));
  const rows = texts.map((text, row) =>
    element(
      "tr",
      {},
      element("th", { scope: "row", title: text }, rowName(row + 1, text)),
      texts.map((_, column) => cell(values[row][column])),
    ),
  );
  const corner = element("td", {});
  const table = element(
    "table",
    { class: "matrix" },
    element("thead", {}, element("tr", {}, corner, numbers)),
    element("tbody", {}, rows),
  );
  return scrolled(table, "Similarities");
}

function rowName(count, text) {
  return element(
    "div",
    { class: "matrix-name" },
    element("span", { class: "matrix-number" }, String(count)),
    element("span", { class: "matrix-text", dir: "auto" }, shortened(text, 80)),
  );
}

function cell(value) {
  const heat = `${Math.round(Math.max(0, Math.min(1, value)) * 100)}%`;
  return element("td", { class: "heat", vars: { heat } }, decimals(value));
}

function mostAlike(similarities, count) {
  let best = [0, undefined, -Infinity];
  for (let row = 0; row < count; row++) {
    for (let column = row + 1; column < count; column++) {
      const value = similarities[row][column];
      if (value > best[2]) best = [row, column, value];
    }
  }
  return best;
}

function cosine(one, other) {
  const dot = (a, b) => a.reduce((sum, value, index) => sum + value * b[index], 0);
  return dot(one, other) / (Math.sqrt(dot(one, one) * dot(other, other)) || 1);
}

// -------------------------------------------------------------------------------------------------
// A vector.

function vectorItem(vector, text) {
  const first = vector.slice(0, FIRST_VALUES).map((value) => decimals(value, 3));
  return element(
    "li",
    {},
    element("p", { class: "vector-text", dir: "auto" }, shortened(text, 160)),
    strip(vector),
    element("p", { class: "vector-values" }, `${first.join(" ")} …`),
  );
}

/** All values side by side: the accent for those above 0, ink for those below. */
function strip(vector) {
  const largest = Math.max(...vector.map(Math.abs)) || 1;
  const label = `${vector.length} values, the largest ${decimals(largest, 3)}`;
  return canvas(vector.length, STRIP_HEIGHT, label, "strip", (context) => {
    const { accent, ink } = colours();
    vector.forEach((value, index) => {
      context.globalAlpha = Math.abs(value) / largest;
      context.fillStyle = value > 0 ? accent : ink;
      context.fillRect(index, 0, 1, STRIP_HEIGHT);
    });
  });
}
