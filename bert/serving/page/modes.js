// What can be asked of a model: a mode each, by the abilities that `/info` says it has. Tasks do not
// appear here: a model's own inputs, example and display come from the server.

const SENTENCES = [
  "The storm closed both runways.",
  "No aircraft could land in the gale.",
  "She bakes bread for her neighbours.",
];
const ATTENTIVE = "The cat did not cross the street because it was too tired.";

/**
 * The modes, in the order of the page's tabs.
 *
 *   id        in the address
 *   ability   that a model must have
 *   lead      what to do, a sentence
 *   fields    of a model: what the form asks for
 *   request   of the form's values: route and body
 *   answer    of the server's JSON: what is shown
 *   display   of a model: which view shows it, see `views.js`
 */
export const MODES = [
  {
    id: "answer",
    ability: "answers",
    title: "Answer",
    lead: () => "Ask the model what it was fine-tuned for.",
    fields: (model) => model.inputs.map((name) => taskField(model, name)),
    request: (item) => ({ path: "/answer", body: { items: [item] } }),
    answer: (data) => data.answers[0],
    display: (model) => model.display,
  },
  {
    id: "similarity",
    ability: "vectors",
    title: "Similarity",
    lead: () => "Compare texts with each other, one on each line.",
    fields: () => [{ kind: "lines", name: "texts", label: "Texts", value: SENTENCES }],
    request: (item) => ({ path: "/similarity", body: { texts: item.texts } }),
    answer: (data) => data.similarities,
    display: () => "similarities",
  },
  {
    id: "vectors",
    ability: "vectors",
    title: "Vectors",
    lead: () => "Turn texts into vectors, one on each line.",
    fields: () => [{ kind: "lines", name: "texts", label: "Texts", value: SENTENCES }],
    // The route that names a model in its body: a server may have several.
    request: (item) => ({ path: "/v1/embeddings", body: { input: item.texts } }),
    names_model: true,
    answer: (data) => data.data.map((each) => each.embedding),
    display: () => "vectors",
  },
  {
    id: "masked_words",
    ability: "masked_words",
    title: "Masked words",
    lead: (model) => `Write ${model.mask_token} where the model should guess a word.`,
    fields: (model) => [
      {
        kind: "text",
        name: "text",
        label: "Text",
        value: `The capital of France is ${model.mask_token}.`,
      },
      { kind: "text", name: "text_pair", label: "Second text", value: "", isOptional: true },
    ],
    request: ({ text, text_pair: other }) => ({
      path: "/masked_words",
      body: { items: [other ? [text, other] : text] },
    }),
    answer: (data) => data.masked_words[0],
    display: () => "masked_words",
  },
  {
    id: "attention",
    ability: "attention",
    title: "Attention",
    lead: () => "See what each word piece looks at, in one head of one layer.",
    fields: attentionFields,
    request: (item) => {
      const { layer, head } = item;
      const text_pair = item.text_pair ? { text_pair: item.text_pair } : {};
      return { path: "/attention", body: { text: item.text, ...text_pair, layer, head } };
    },
    answer: (data) => data,
    display: () => "attention",
  },
];

/** The modes of a model. */
export function modesOf(model) {
  return MODES.filter((mode) => model.abilities.includes(mode.ability));
}

/** The route and the body of a call; the model is named where there are several. */
export function requestOf(mode, model, values, isAlone) {
  const { path, body } = mode.request(values);
  return { path, body: isAlone && !mode.names_model ? body : { ...body, model: model.name } };
}

function taskField(model, name) {
  const isList = model.list_inputs.includes(name);
  const value = model.example?.[name] ?? (isList ? [""] : "");
  const isOptional = !model.required.includes(name);
  return { kind: isList ? "list" : "text", name, value, isOptional };
}

function attentionFields(model) {
  const texts = Object.values(model.example ?? {}).filter((value) => typeof value === "string");
  const value = texts.length === 1 ? texts[0] : ATTENTIVE;
  const layers = Math.max(1, model.layers ?? 1);
  return [
    { kind: "text", name: "text", label: "Text", value },
    { kind: "text", name: "text_pair", label: "Second text", value: "", isOptional: true },
    { kind: "number", name: "layer", label: "Layer", count: layers, value: layers - 1 },
    { kind: "number", name: "head", label: "Head", count: Math.max(1, model.heads ?? 1), value: 0 },
  ];
}

/** The models of `/info`, with defaults for what it may leave out. */
export function modelsOf(info) {
  return (info.models ?? []).map((model) => ({
    ...model,
    abilities: model.abilities ?? [],
    inputs: model.inputs ?? [],
    list_inputs: model.list_inputs ?? [],
    required: (model.inputs ?? []).filter((each) => each !== "text_b" || model.needs_pairs),
    mask_token: model.mask_token ?? "[MASK]",
  }));
}
