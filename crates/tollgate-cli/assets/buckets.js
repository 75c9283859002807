// The buckets of the keys that were asked about last, by what `/dev/items` tells of them, as `tollgate inspect` does.

import { ask, count, make, span } from "./server.js";

/** Most keys that are shown. */
const MOST = 6;
/** How long is waited between two looks, in milliseconds. */
const PAUSE = 1000;

export class Buckets {
  keys = [];
  open = new Set();

  constructor(place) {
    this.place = place;
  }

  /** Takes the keys of new requests, the last first. */
  see(requests) {
    const keys = requests.flatMap(({ limits }) => limits.filter(({ source }) => source !== "waf").map(({ key }) => key));
    this.keys = [...new Set([...keys.reverse(), ...this.keys])].slice(0, MOST);
    this.isStale = true;
    this.looking ??= this.look();
  }

  /** Looks as long as there is something new, or something that changes by itself. */
  async look() {
    while (this.isStale) {
      this.isStale = false;
      // Others may be seen meanwhile.
      const { keys } = this;
      const told = await Promise.all(keys.map((key) => ask("GET", `/dev/items?key=${encodeURIComponent(key)}`)));
      this.place.replaceChildren(...keys.map((key, at) => this.bucket(key, told[at])));
      await new Promise((wait) => setTimeout(wait, PAUSE));
      const fills = told.some(({ body }) => items(body).some(({ limits }) => Object.values(limits).some(({ reset_ms }) => reset_ms > 0)));
      this.isStale ||= fills;
    }
    this.looking = undefined;
  }

  bucket(key, { status, body }) {
    if (status !== 200) return make("section", { class: "bucket" }, make("h3", {}, key), make("p", { class: "note denied small" }, body?.message));
    const gauges = items(body).flatMap(({ limits }) => Object.entries(limits).map(([name, limit]) => gauge(key, name, limit)));
    return make(
      "section",
      { class: "bucket", "data-key": key },
      make("h3", {}, key),
      ...(gauges.length ? gauges : [make("p", { class: "soft small" }, "nothing remembered: every bucket is full")]),
      ...items(body).filter(({ exists }) => exists).map((item) => this.raw(item)),
    );
  }

  raw({ pk, raw }) {
    const attributes = Object.entries(raw).flatMap(([name, value]) => [make("dt", {}, name), make("dd", {}, value)]);
    const ontoggle = ({ target }) => (target.open ? this.open.add(pk) : this.open.delete(pk));
    return make("details", { open: this.open.has(pk), ontoggle }, make("summary", {}, "Raw item ", make("code", {}, pk)), make("dl", {}, ...attributes));
  }
}

/** The item that limits share, and those that they have for themselves. */
const items = (body) => (body?.pk ? [body, ...body.own_items] : []);

function gauge(key, name, { remaining, burst, rate, reset_ms, held, penalty }) {
  const most = Math.max(burst, remaining);
  const notes = [rate, reset_ms > 0 ? `full in ${span(reset_ms)}` : "full", held && `by ${held}`, penalty && "locked before"];
  return make(
    "div",
    { class: "gauge" },
    make("strong", {}, name),
    make("output", { "data-gauge": `${key}/${name}` }, `${count(remaining)} of ${count(most)}`),
    make("meter", { min: 0, max: most, low: most * 0.2, optimum: most, value: remaining, "aria-label": `${name} of ${key}: left` }),
    make("span", { class: "soft small" }, notes.filter(Boolean).join(", ")),
  );
}
