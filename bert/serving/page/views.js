// How answers look. `VIEWS` says which view shows which `display`; there is no other such rule.
//
// A view takes the answer, the values of the form and the model, and returns the nodes to show and
// `summary`, the sentence that screen readers say.

import { attentionView } from "./attention.js";
import { counted, decimals, element, number, percent, unseen } from "./dom.js";
import { entitiesView, spanView } from "./marks.js";
import { maskedWordsView } from "./masked_words.js";
import { similaritiesView, vectorsView } from "./vectors.js";
import { valuesView } from "./values.js";

export const VIEWS = {
  classes: classesView,
  score: scoreView,
  similarity: similarityView,
  entities: entitiesView,
  answer: spanView,
  choices: choicesView,
  values: valuesView,
  similarities: similaritiesView,
  vectors: vectorsView,
  masked_words: maskedWordsView,
  attention: attentionView,
};

const SHOWN_AT_FIRST = 10;

/**
 * Shows an answer.
 *
 * A display that is unknown here, or an answer that lacks what its view needs, is shown as a table.
 */
export function show(display, answer, item, model) {
  const view = Object.hasOwn(VIEWS, display) ? VIEWS[display] : valuesView;
  try {
    return view(answer, item, model);
  } catch (error) {
    if (view === valuesView) throw error;
    return valuesView(answer, item, model);
  }
}

// -------------------------------------------------------------------------------------------------
// Classes and choices: bars.

function classesView(answer) {
  const { label, label_names: names, labels: given, probabilities } = answer;
  const rows = names.map((name, index) => ({
    name,
    share: probabilities[index],
    isGiven: given ? given[index] : name === label,
  }));
  rows.sort((one, other) => other.share - one.share);
  const found = rows.filter((row) => row.isGiven);
  const verdict = given && !found.length ? "No label" : found.map((row) => row.name).join(", ");
  const sure = given ? counted(found.length, "label") : `${percent(found[0].share)} probable`;
  return {
    nodes: [verdictOf(verdict, sure), bars(rows)],
    summary: given ? `${verdict}.` : `${verdict}, ${sure}.`,
  };
}

function choicesView(answer, item, model) {
  const name = model.list_inputs[0];
  const rows = item[name].map((text, index) => ({
    name: text,
    share: answer.probabilities[index],
    isGiven: index === answer.choice,
  }));
  const best = rows[answer.choice];
  const context = model.inputs.find((each) => !model.list_inputs.includes(each));
  rows.sort((one, other) => other.share - one.share);
  return {
    nodes: [
      element(
        "p",
        { class: "verdict is-text", dir: "auto" },
        context ? element("span", { class: "soft" }, `${item[context]} `) : null,
        best.name,
      ),
      element("p", { class: "sure" }, `${percent(best.share)} probable`),
      bars(rows),
    ],
    summary: `${best.name}, ${percent(best.share)} probable.`,
  };
}

/** A big line, and what it says of itself below. */
function verdictOf(text, detail) {
  return element(
    "div",
    { class: "verdicts" },
    element("p", { class: "verdict", dir: "auto" }, text),
    element("p", { class: "sure" }, detail),
  );
}

/** Names with bars, the first ones; a button shows the rest. */
function bars(rows) {
  const list = element("ol", { class: "bars" }, rows.slice(0, SHOWN_AT_FIRST).map(bar));
  const rest = rows.slice(SHOWN_AT_FIRST);
  if (!rest.length) return list;
  const more = element("button", { type: "button", class: "more" }, `Show all ${rows.length}`);
  more.addEventListener("click", () => {
    const added = rest.map(bar);
    list.append(...added);
    added[0].tabIndex = -1; // the button goes, and with it the focus
    added[0].focus();
    more.remove();
  });
  return element("div", {}, list, more);
}

function bar({ name, share, isGiven }) {
  return element(
    "li",
    { class: isGiven ? "is-given" : "" },
    element("span", { class: "bar-name", dir: "auto" }, name, isGiven ? unseen(" (chosen)") : null),
    element("span", { class: "bar-value" }, percent(share)),
    element("span", { class: "bar", vars: { share: `${share * 100}%` }, "aria-hidden": "true" }),
  );
}

// -------------------------------------------------------------------------------------------------
// Numbers.

function scoreView(answer) {
  const text = number(needed(answer.score));
  return { nodes: [figure(text, "score")], summary: `Score ${text}.` };
}

function similarityView(answer) {
  const value = needed(answer.similarity);
  const place = Math.min(1, Math.max(-1, value)) / 2 + 0.5;
  const ends = ["−1", "0", "1"].map((text) => element("span", {}, text));
  const scale = element(
    "div",
    { class: "scale", vars: { place: `${place * 100}%` }, "aria-hidden": "true" },
    element("div", { class: "scale-line" }, element("span", { class: "scale-mark" })),
    element("div", { class: "scale-ends" }, ends),
  );
  const text = decimals(value, 3);
  return { nodes: [figure(text, "cosine similarity"), scale], summary: `Similarity ${text}.` };
}

function figure(text, unit) {
  return element(
    "p",
    { class: "figure" },
    element("span", { class: "figure-value" }, text),
    " ",
    element("span", { class: "figure-unit" }, unit),
  );
}

function needed(value) {
  if (typeof value !== "number") throw new TypeError("The answer has no such number.");
  return value;
}

