// The server's routes, and what both pages say and build in the same way.

/** Asks the server: `{status, headers, body}`, where `body` is what its JSON says. */
export async function ask(method, path, { principal, headers, body, signal } = {}) {
  const init = { method, headers: { ...headers }, signal, cache: "no-store" };
  if (principal) init.headers["x-dev-principal"] = principal;
  if (body !== undefined) {
    init.headers["content-type"] = "application/json";
    init.body = JSON.stringify(body);
  }
  const response = await fetch(path, init);
  const text = await response.text();
  let parsed = null;
  try {
    parsed = text ? JSON.parse(text) : null;
  } catch {
    parsed = { message: text };
  }
  return { status: response.status, headers: response.headers, body: parsed };
}

/** `user=alice,plan=free`, as `x-dev-principal` has it. */
export const principalOf = (claims) => Object.entries(claims).map((pair) => pair.join("=")).join(",");

/** The element that a selector names. */
export const find = (selector, within = document) => within.querySelector(selector);

/** An element with attributes (`on...` are listeners) and children. */
export function make(name, attributes = {}, ...children) {
  const element = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (value === undefined || value === null || value === false) continue;
    if (key.startsWith("on")) element.addEventListener(key.slice(2), value);
    else element.setAttribute(key, value === true ? "" : value);
  }
  element.append(...children.filter((child) => child !== undefined && child !== null && child !== false));
  return element;
}

const numbers = new Intl.NumberFormat("en");

/** A whole number with its thousands apart. */
export const count = (n) => numbers.format(n);

/** A time of the server's clock, in UTC. */
export const clockTime = (ms, digits = 3) => new Date(ms).toISOString().slice(11, digits ? 20 + digits : 19);

/** How long something takes, in words that are short. */
export function span(ms) {
  if (ms < 1000) return `${Math.ceil(ms)} ms`;
  const seconds = Math.ceil(ms / 1000);
  if (seconds < 120) return `${seconds} s`;
  if (seconds < 7200) return `${Math.ceil(seconds / 60)} min`;
  return seconds < 172800 ? `${Math.ceil(seconds / 3600)} h` : `${Math.ceil(seconds / 86400)} d`;
}
