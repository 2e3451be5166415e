// How long calls took: the last one in words, the last ones as bars.

import { counted, element, milliseconds } from "./dom.js";

const MOST_CALLS = 40;
const times = [];

/** Notes a call; see `calls.post` for the two times. Returns the nodes that show it. */
export function noted({ roundTrip, inServer }) {
  times.push(roundTrip);
  if (times.length > MOST_CALLS) times.shift();
  const server = inServer === null ? "" : `, of which the server took ${milliseconds(inServer)}`;
  const nodes = [element("p", {}, element("strong", {}, milliseconds(roundTrip)), server)];
  if (times.length > 1) nodes.push(history());
  return nodes;
}

function history() {
  const longest = Math.max(...times);
  const median = [...times].sort((a, b) => a - b)[Math.floor(times.length / 2)];
  const bars = times.map((time) => element("span", { vars: { share: `${(time / longest) * 100}%` } }));
  const words = `${counted(times.length, "call")}, median ${milliseconds(median)}`;
  return element(
    "p",
    { class: "calls" },
    element("span", { class: "calls-bars", "aria-hidden": "true" }, bars),
    element("span", {}, words),
  );
}
