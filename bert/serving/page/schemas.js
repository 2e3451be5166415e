// What OpenAPI's schemas say, in words and as examples. References are followed within the document.

/** A reader of the schemas of one document. */
export class Schemas {
  constructor(document) {
    this.document = document;
  }

  /** The schema, or what it refers to. */
  resolved(schema) {
    for (let count = 0; schema?.$ref && count < 10; count++) {
      const path = schema.$ref.replace(/^#\//, "").split("/");
      const at = (found, name) => found?.[name.replaceAll("~1", "/").replaceAll("~0", "~")];
      schema = path.reduce(at, this.document);
    }
    return schema ?? {};
  }

  /** `text`, `list of numbers`, `text or list of texts`. */
  typeOf(given, depth = 0) {
    const schema = this.resolved(given);
    if (depth > 4) return "…";
    const several = schema.anyOf ?? schema.oneOf;
    if (several) return unique(several.map((each) => this.typeOf(each, depth + 1))).join(" or ");
    if (schema.allOf?.length === 1) return this.typeOf(schema.allOf[0], depth + 1);
    if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" or ");
    if ("const" in schema) return JSON.stringify(schema.const);
    if (Array.isArray(schema.type)) return schema.type.map(nameOf).join(" or ");
    if (schema.type === "array") {
      return `list of ${schema.items ? this.typeOf(schema.items, depth + 1) : "anything"}`;
    }
    return nameOf(schema.type ?? (schema.properties ? "object" : "anything"));
  }

  /** `[name, schema, isRequired]` of an object's properties; of lists, those of their members. */
  propertiesOf(given) {
    const schema = this.resolved(given);
    const inner = schema.properties ? schema : this.inner(schema);
    const required = inner?.required ?? [];
    return Object.entries(inner?.properties ?? {}).map(([name, each]) => [
      name,
      this.resolved(each),
      required.includes(name),
    ]);
  }

  inner(schema) {
    if (schema.type === "array" && schema.items) return this.resolved(schema.items);
    const objects = (schema.anyOf ?? schema.oneOf ?? schema.allOf ?? []).map((each) =>
      this.resolved(each),
    );
    return objects.find((each) => each.properties);
  }

  /**
   * The example that a media type or a schema has, else one made of what the schema requires.
   *
   * None, undefined, where the schema does not say enough.
   */
  exampleOf({ example, examples, schema }) {
    if (example !== undefined) return example;
    const named = Object.values(examples ?? {})[0];
    if (named?.value !== undefined) return named.value;
    const made = schema ? this.made(schema, 0) : undefined;
    return isWhole(made) ? made : undefined;
  }

  made(given, depth) {
    const schema = this.resolved(given);
    if (schema.example !== undefined) return schema.example;
    if (Array.isArray(schema.examples) && schema.examples.length) return schema.examples[0];
    if (schema.default !== undefined && schema.default !== null) return schema.default;
    if ("const" in schema) return schema.const;
    if (schema.enum) return schema.enum[0];
    if (depth > 5) return undefined;
    const choice = (schema.anyOf ?? schema.oneOf ?? schema.allOf)?.[0];
    if (choice) return this.made(choice, depth + 1);
    if (schema.properties) {
      const all = Object.entries(schema.properties);
      const required = all.filter(([name]) => schema.required?.includes(name));
      const pairs = required.length ? required : all;
      return Object.fromEntries(pairs.map(([name, each]) => [name, this.made(each, depth + 1)]));
    }
    if (schema.type === "array") return schema.items ? [this.made(schema.items, depth + 1)] : [];
    return { string: "text", integer: 0, number: 0.5, boolean: true, object: {} }[schema.type];
  }
}

function isWhole(value) {
  if (typeof value !== "object" || value === null) return value !== undefined;
  return Object.values(value).every(isWhole);
}

function nameOf(type) {
  return { string: "text", array: "list", integer: "whole number", null: "null" }[type] ?? type;
}

function unique(values) {
  return [...new Set(values)];
}
