// Elements, numbers and pieces of text. Whatever comes from a server or a user becomes a text node:
// nothing in this folder writes HTML.

/**
 * Makes an element.
 *
 * `properties` are attributes, but for `on` (listeners by event) and `vars` (CSS variables, which
 * the page's security policy allows where it forbids style attributes). An attribute that is false,
 * null or undefined is left out; one that is true is empty. Children are elements or texts.
 */
export function element(tag, properties = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name === "on") {
      for (const [event, listener] of Object.entries(value)) made.addEventListener(event, listener);
    } else if (name === "vars") {
      for (const [key, each] of Object.entries(value)) made.style.setProperty(`--${key}`, each);
    } else if (value !== false && value !== null && value !== undefined) {
      made.setAttribute(name, value === true ? "" : String(value));
    }
  }
  made.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return made;
}

/** Makes an element of SVG, from attributes alone. */
export function drawn(tag, attributes) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, String(value));
  return made;
}

/** Text that screen readers say and the page does not show. */
export function unseen(text) {
  return element("span", { class: "unseen" }, text);
}

/** A region that scrolls sideways, by keyboard too. */
export function scrolled(content, label) {
  return element(
    "div",
    { class: "scrolled", tabindex: "0", role: "region", "aria-label": label },
    content,
  );
}

// -------------------------------------------------------------------------------------------------
// Numbers.

/** A probability in per cent. One that is not quite 0 or 1 never looks as if it were. */
export function percent(probability) {
  if (!Number.isFinite(probability)) return "no number";
  if (probability > 0 && probability < 0.001) return "< 0.1%";
  if (probability < 1 && probability > 0.999) return "> 99.9%";
  return `${(probability * 100).toFixed(1)}%`;
}

/** A number with four digits that count, or all if it is whole; its minus is as long as a plus. */
export function number(value) {
  if (Number.isInteger(value)) return String(value).replace(/^-/, "−");
  const short = Number(value.toPrecision(4));
  const text = Math.abs(short) < 1e-4 || Math.abs(short) >= 1e7 ? short.toExponential() : `${short}`;
  return text.replace(/^-/, "−");
}

/** A number with two decimals, for tables whose columns should line up. */
export function decimals(value, count = 2) {
  const text = value.toFixed(count);
  return /^-0\.?0*$/.test(text) ? text.slice(1) : text.replace(/^-/, "−");
}

/** A time, in milliseconds below ten seconds. */
export function milliseconds(value) {
  if (value >= 10_000) return `${(value / 1000).toFixed(1)} s`;
  return `${value.toFixed(value < 10 ? 1 : 0)} ms`;
}

/** `1 word`, `2 words`. */
export function counted(count, noun) {
  return `${count.toLocaleString("en")} ${noun}${count === 1 ? "" : "s"}`;
}

// -------------------------------------------------------------------------------------------------
// Texts.

/**
 * The characters of a text as the server counts them.
 *
 * Python counts code points, a JavaScript string units of UTF-16, of which an emoji has two.
 */
export function characters(text) {
  return Array.from(text);
}

/** `text_a` as `Text A`, `question` as `Question`. */
export function titled(name) {
  const words = name.replaceAll("_", " ").replace(/ ([a-z])$/, (_, letter) => ` ${letter.toUpperCase()}`);
  return words.charAt(0).toUpperCase() + words.slice(1);
}

/** JSON over several lines; long ones by their beginning. */
export function jsonText(data) {
  const most = 20_000;
  const text = JSON.stringify(data, null, 2);
  return text.length > most ? `${text.slice(0, most)}\n…` : text;
}

/** A text of at most `length` characters. */
export function shortened(text, length) {
  const found = characters(text);
  return found.length <= length ? text : `${found.slice(0, length - 1).join("")}…`;
}
