// Requests to the server, and what goes wrong with them as one sentence each.

/** A call that failed; its message is a sentence for people. */
export class CallError extends Error {
  constructor(message, status = 0) {
    super(message);
    this.status = status;
  }
}

// Only in memory: neither stored nor written into the snippets.
let key = "";

export function setKey(value) {
  key = value.trim();
}

export function hasKey() {
  return key !== "";
}

/** The address of a route; the page may lie below a path, behind a proxy. */
export function addressOf(path) {
  return new URL(path.replace(/^\//, ""), document.baseURI).href;
}

/** Gets JSON. */
export async function get(path) {
  return (await send(path, { cache: "no-store" })).data;
}

/**
 * Posts JSON.
 *
 * Returns `data`, the answer, and in milliseconds `roundTrip`, as this page has measured it, and
 * `inServer`, as the server has, which is null if it does not say.
 */
export async function post(path, body, signal) {
  return send(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
    signal,
  });
}

/** Whether the server says that it is ready: true, false, or null if there is no server. */
export async function isHealthy() {
  try {
    return (await fetch(addressOf("/health"), { cache: "no-store" })).ok;
  } catch {
    return null;
  }
}

async function send(path, options) {
  const headers = { ...options.headers, ...(key ? { Authorization: `Bearer ${key}` } : {}) };
  const start = performance.now();
  let response, text;
  try {
    response = await fetch(addressOf(path), { ...options, headers });
    text = await response.text();
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new CallError("The server did not answer. Is it still running?");
  }
  const roundTrip = performance.now() - start;
  const data = parsed(text);
  if (!response.ok) throw new CallError(sentence(response, data), response.status);
  if (data === undefined) throw new CallError("The server's answer is not JSON.", response.status);
  return { data, roundTrip, inServer: serverTime(response, data) };
}

function parsed(text) {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function serverTime(response, data) {
  const header = response.headers.get("x-total-time");
  const value = data?.time_ms ?? (header === null ? NaN : Number(header));
  return Number.isFinite(value) ? value : null;
}

// -------------------------------------------------------------------------------------------------
// Messages.

function sentence(response, data) {
  const said = asSentence(messageIn(data)) || `The server answered with status ${response.status}.`;
  const seconds = Number(response.headers.get("Retry-After"));
  if (response.status === 401) {
    return key ? "The server does not accept this API key." : "The server asks for an API key.";
  }
  return seconds > 0 ? `${said} Try again in ${Math.ceil(seconds)} s.` : said;
}

/** The message of an error in any of the forms that the server's dialects have. */
function messageIn(data) {
  for (const found of [data?.error, data?.message, data?.detail]) {
    if (typeof found === "string") return found;
    if (typeof found?.message === "string") return found.message;
    if (Array.isArray(found) && typeof found[0]?.msg === "string") return found[0].msg;
  }
  return "";
}

function asSentence(message) {
  const text = message.trim();
  if (!text) return "";
  return text.charAt(0).toUpperCase() + text.slice(1) + (/[.!?]$/.test(text) ? "" : ".");
}
