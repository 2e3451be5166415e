// Texts with marks: entities, and the answer in its paragraph.

import { characters, counted, decimals, element, percent, scrolled } from "./dom.js";

/** The entities of a text, marked and listed; where tags are no entities, each word with its tag. */
export function entitiesView(answer, item, model) {
  const text = item[model.inputs[0]];
  const found = answer.entities.length ? answer.entities : taggedWords(answer);
  const kinds = countsOf(found.map((each) => each.type));
  const said = kinds.map(([type, count]) => `${count} ${type}`).join(", ");
  if (!found.length) {
    const sentence = "The model marks nothing in this text.";
    return { nodes: [element("p", { class: "none" }, sentence), plainText(text)], summary: sentence };
  }
  return {
    nodes: [marked(text, found), legend(kinds), entityTable(found)],
    summary: `${counted(found.length, "mark")}: ${said}.`,
  };
}

/** Words whose tags are of no scheme of entities: parts of speech, say. */
function taggedWords({ words, tags, starts, ends, probabilities }) {
  return words
    .map((text, index) => ({
      text,
      type: tags[index],
      start: starts[index],
      end: ends[index],
      probability: probabilities[index],
    }))
    .filter((word) => word.type !== "O");
}

function marked(text, entities) {
  const letters = characters(text);
  const nodes = [];
  let place = 0;
  for (const entity of [...entities].sort((one, other) => one.start - other.start)) {
    if (entity.start < place) continue; // within the one before: the list below has it
    nodes.push(letters.slice(place, entity.start).join(""), entityMark(letters, entity));
    place = entity.end;
  }
  nodes.push(letters.slice(place).join(""));
  return element("p", { class: "text", dir: "auto" }, nodes);
}

function entityMark(letters, { start, end, type, probability }) {
  return element(
    "mark",
    { class: "entity", dir: "auto", title: percent(probability) },
    letters.slice(start, end).join(""),
    element("span", { class: "entity-type" }, type),
  );
}

function legend(kinds) {
  const parts = kinds.map(([type, count]) =>
    element("li", {}, element("strong", {}, type), ` ${count}`),
  );
  return element("ul", { class: "legend", "aria-label": "Marks of each kind" }, parts);
}

function entityTable(entities) {
  const head = ["Text", "Kind", "Probability", "Characters"].map((name) =>
    element("th", { scope: "col" }, name),
  );
  const rows = entities.map(({ text, type, probability, start, end }) =>
    element(
      "tr",
      {},
      element("td", { dir: "auto" }, text),
      element("td", {}, type),
      element("td", { class: "figures" }, percent(probability)),
      element("td", { class: "figures" }, `${start} to ${end}`),
    ),
  );
  const table = element(
    "table",
    { class: "table" },
    element("thead", {}, element("tr", {}, head)),
    element("tbody", {}, rows),
  );
  return scrolled(table, "Marks");
}

function countsOf(values) {
  const counts = new Map();
  for (const value of values) counts.set(value, (counts.get(value) ?? 0) + 1);
  return [...counts].sort((one, other) => other[1] - one[1]);
}

function plainText(text) {
  return element("p", { class: "text", dir: "auto" }, text);
}

// -------------------------------------------------------------------------------------------------
// An answer that is a part of a text.

/** The answer, and where it stands in its paragraph: the last text of the item. */
export function spanView({ answer, start, end, probability, null_odds: odds }, item, model) {
  if (typeof answer !== "string") throw new TypeError("There is no answer.");
  const paragraph = item[model.inputs.at(-1)];
  if (!answer || !(start >= 0 && end > start)) {
    const sentence = "The text does not answer the question.";
    return { nodes: [element("p", { class: "none" }, sentence), plainText(paragraph)], summary: sentence };
  }
  const letters = characters(paragraph);
  const text = element(
    "p",
    { class: "text", dir: "auto" },
    letters.slice(0, start).join(""),
    element("mark", { class: "span" }, letters.slice(start, end).join("")),
    letters.slice(end).join(""),
  );
  const sure = `${percent(probability)} probable${against(odds)}`;
  return {
    nodes: [
      element("p", { class: "verdict", dir: "auto" }, answer),
      element("p", { class: "sure" }, sure),
      text,
    ],
    summary: `${answer}, ${percent(probability)} probable.`,
  };
}

/** How far "no answer" is behind, where the model can say that. */
function against(odds) {
  if (!Number.isFinite(odds)) return "";
  return `, no answer ${odds < 0 ? "behind" : "ahead"} by ${decimals(Math.abs(odds), 1)}`;
}
