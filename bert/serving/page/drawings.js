// Canvases: pictures of many values, drawn again when the colour scheme changes.

import { element } from "./dom.js";

const drawings = new Set();

/** A canvas of `width` times `height` pixels that CSS stretches; `draw` takes its context. */
export function canvas(width, height, label, name, draw) {
  const made = element("canvas", { width, height, class: name, role: "img", "aria-label": label });
  const drawing = () => {
    const context = made.getContext("2d");
    context.clearRect(0, 0, width, height);
    draw(context);
  };
  drawings.add({ made, drawing });
  drawing();
  return made;
}

/** The colours of the scheme that is on. */
export function colours() {
  const style = getComputedStyle(document.documentElement);
  const named = (name) => style.getPropertyValue(`--${name}`).trim();
  return { accent: named("accent"), ink: named("ink"), surface: named("surface") };
}

matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  for (const each of drawings) {
    if (each.made.isConnected) each.drawing();
    else drawings.delete(each);
  }
});
