// Words in the place of masks, and what else a model of pre-training says.

import { counted, element, percent, shortened } from "./dom.js";

/** The text with the first guess at each mask, and the guesses of each. */
export function maskedWordsView({ masks, next_sentence: next, tokens }, item, model) {
  if (!masks.length) {
    const sentence = `There is no ${model.mask_token} in this text.`;
    return { nodes: [element("p", { class: "none" }, sentence)], summary: sentence };
  }
  const best = masks.map((guesses) => guesses[0].token.trim());
  const words = [...best]; // those of the second text come last
  const texts = [item.text, item.text_pair].filter(Boolean);
  const nodes = [...texts.map((text) => filled(text, words, model.mask_token)), ...masks.map(ranking)];
  if (typeof next === "number") {
    nodes.push(element("p", { class: "sure" }, `Second text follows: ${percent(next)}`));
  }
  if (tokens?.length) nodes.push(replacedTokens(tokens));
  return { nodes, summary: `${counted(masks.length, "mask")}: ${best.join(", ")}.` };
}

/** The text with its masks filled from `words`; a piece `##s` joins the word before it. */
function filled(text, words, mask) {
  const parts = text.split(mask);
  const nodes = [parts[0]];
  parts.slice(1).forEach((part) => {
    const word = words.shift(); // a text that was cut has masks that the model did not see
    const isPiece = word?.startsWith("##");
    if (isPiece) nodes.push(nodes.pop().trimEnd());
    nodes.push(element("mark", { class: "span" }, isPiece ? word.slice(2) : (word ?? mask)), part);
  });
  return element("p", { class: "text", dir: "auto" }, nodes);
}

function ranking(guesses, index, masks) {
  const rows = guesses.map(({ token, probability }, place) =>
    element(
      "li",
      { class: place === 0 ? "is-given" : "" },
      element("span", { class: "bar-name is-token", dir: "auto" }, token),
      element("span", { class: "bar-value" }, percent(probability)),
      element("span", {
        class: "bar",
        vars: { share: `${probability * 100}%` },
        "aria-hidden": "true",
      }),
    ),
  );
  const title = masks.length > 1 ? `Mask ${index + 1}` : "Guesses";
  return element(
    "div",
    { class: "mask" },
    element("h2", { class: "minor" }, title),
    element("ol", { class: "bars" }, rows),
  );
}

/** Of ELECTRA: how probably each word piece was replaced. */
function replacedTokens(tokens) {
  const pieces = tokens.map(({ token, replaced }) =>
    element(
      "li",
      { class: "piece", vars: { heat: `${replaced * 100}%` }, title: percent(replaced) },
      shortened(token, 40),
      element("span", { class: "piece-value" }, percent(replaced)),
    ),
  );
  return element(
    "div",
    { class: "mask" },
    element("h2", { class: "minor" }, "Replaced, by the discriminator"),
    element("ol", { class: "pieces" }, pieces),
  );
}
