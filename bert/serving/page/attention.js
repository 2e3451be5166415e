// Attention of one head: word pieces with lines to what they look at, and the whole as a matrix.

import { counted, decimals, drawn, element, percent, scrolled } from "./dom.js";
import { canvas, colours } from "./drawings.js";

const LINE_HEIGHT = 30; // of a word piece, in pixels, as in the style sheet
const LINES_WIDTH = 100; // of the picture between both columns, in its own units
const FAINTEST = 0.04; // lines of less are left out: hundreds of them would hide the others
const CELL = 8;

/** Both pictures, and in words where the chosen piece looks. */
export function attentionView({ tokens, map }, item) {
  if (!tokens.every((_, row) => map[row].length === tokens.length)) throw new TypeError("No map.");
  const words = element("p", { class: "attention-words" });
  const [lines, choose] = linesOf(tokens, map, (piece) => {
    words.textContent = piece === null ? HOW : sentence(tokens, map, piece);
  });
  words.textContent = HOW;
  const place = `layer ${item.layer}, head ${item.head}`;
  return {
    nodes: [
      element("p", { class: "sure is-first" }, `${counted(tokens.length, "word piece")}, ${place}`),
      words,
      lines,
      element("h2", { class: "minor" }, "As a matrix"),
      matrixOf(tokens, map, choose),
    ],
    summary: `Attention of ${counted(tokens.length, "word piece")}, ${place}.`,
  };
}

const HOW = "Point at a word piece, or choose one with the arrow keys.";

function sentence(tokens, map, piece) {
  const order = map[piece].map((_, index) => index).sort((a, b) => map[piece][b] - map[piece][a]);
  const most = order.slice(0, 3).map((index) => `“${tokens[index]}” ${percent(map[piece][index])}`);
  return `“${tokens[piece]}” looks at ${most.join(", ")}`;
}

// -------------------------------------------------------------------------------------------------
// Lines.

/** The lines, and what chooses a piece in them: its number, or null for none. */
function linesOf(tokens, map, onChoice) {
  const height = tokens.length * LINE_HEIGHT;
  const svg = drawn("svg", {
    class: "attention-lines",
    viewBox: `0 0 ${LINES_WIDTH} ${height}`,
    preserveAspectRatio: "none",
    "aria-hidden": "true",
  });
  svg.style.setProperty("height", `${height}px`);
  const drawnLines = tokens.map((_, from) => {
    const group = drawn("g", {});
    map[from].forEach((weight, to) => {
      if (weight >= FAINTEST) group.append(line(from, to, weight));
    });
    svg.append(group);
    return group;
  });
  const targets = tokens.map((token) => element("li", { class: "to", dir: "auto" }, token));
  const buttons = tokens.map((token, index) =>
    element("button", { type: "button", class: "from", dir: "auto", tabindex: index ? -1 : 0 }, token),
  );
  const choose = (piece) => {
    svg.classList.toggle("is-chosen", piece !== null);
    drawnLines.forEach((group, index) => group.classList.toggle("is-chosen", index === piece));
    buttons.forEach((button, index) => button.classList.toggle("is-chosen", index === piece));
    targets.forEach((target, index) => {
      target.style.setProperty("--heat", piece === null ? "0%" : `${map[piece][index] * 100}%`);
    });
    onChoice(piece);
  };
  buttons.forEach((button, index) => {
    button.addEventListener("pointerenter", () => choose(index));
    button.addEventListener("focus", () => choose(index));
    button.addEventListener("click", () => choose(index));
  });
  const from = element(
    "div",
    { class: "attention-from", role: "toolbar", "aria-label": "Word pieces", "aria-orientation": "vertical" },
    buttons,
  );
  from.addEventListener("keydown", (event) => moveFocus(event, buttons));
  const to = element("ul", { class: "attention-to", "aria-label": "Looked at" }, targets);
  const whole = element("div", { class: "attention" }, from, svg, to);
  whole.addEventListener("pointerleave", () => {
    const focused = buttons.indexOf(document.activeElement);
    choose(focused >= 0 ? focused : null);
  });
  return [whole, choose];
}

function line(from, to, weight) {
  const middle = (row) => (row + 0.5) * LINE_HEIGHT;
  const [start, end] = [middle(from), middle(to)];
  const half = LINES_WIDTH / 2;
  const made = drawn("path", {
    d: `M0 ${start} C${half} ${start} ${half} ${end} ${LINES_WIDTH} ${end}`,
  });
  made.style.setProperty("--weight", Math.sqrt(weight).toFixed(3));
  return made;
}

/** Arrow keys, Home and End move among the pieces, of which Tab reaches one. */
function moveFocus(event, buttons) {
  const here = buttons.indexOf(document.activeElement);
  const last = buttons.length - 1;
  const places = { ArrowDown: here + 1, ArrowUp: here - 1, Home: 0, End: last };
  const place = places[event.key];
  if (here < 0 || place === undefined || !buttons[place]) return;
  event.preventDefault();
  buttons[here].tabIndex = -1;
  buttons[place].tabIndex = 0;
  buttons[place].focus();
}

// -------------------------------------------------------------------------------------------------
// The matrix.

function matrixOf(tokens, map, choose) {
  const size = tokens.length * CELL;
  const label = `Attention of ${tokens.length} word pieces, a row each, to each other`;
  const made = canvas(size, size, label, "attention-matrix", (context) => {
    const { accent } = colours();
    context.fillStyle = accent;
    map.forEach((row, y) =>
      row.forEach((weight, x) => {
        context.globalAlpha = Math.min(1, 0.03 + weight);
        context.fillRect(x * CELL, y * CELL, CELL - 1, CELL - 1);
      }),
    );
  });
  const said = element("p", { class: "attention-cell hint" }, "Rows look at columns.");
  made.addEventListener("pointermove", (event) => {
    const box = made.getBoundingClientRect();
    const placeOf = (offset, length) =>
      Math.min(tokens.length - 1, Math.max(0, Math.floor((offset / length) * tokens.length)));
    const row = placeOf(event.clientY - box.top, box.height);
    const column = placeOf(event.clientX - box.left, box.width);
    said.textContent = `${tokens[row]} → ${tokens[column]}: ${decimals(map[row][column], 3)}`;
    choose(row);
  });
  return element("div", {}, scrolled(made, "Attention as a matrix"), said);
}
