// The console: what `/dev/events` tells, drawn. Every figure is one of `/dev/stats`; nothing is counted here.

import { ask, clockTime, count, find, make, span } from "./server.js";
import { Buckets } from "./buckets.js";
import { Costs, Timeline } from "./timeline.js";
import { offer } from "./scenarios.js";

/** Most requests that are drawn, and most that are listed. */
const MOST_DRAWN = 3000;
const MOST_LISTED = 80;

const FIGURES = [
  ["decisions", "decisions"],
  ["allowed", "allowed", "allowed"],
  ["denied", "denied", "denied"],
  ["never_fits", "never fit", "denied"],
  ["unavailable", "refused, no table", "failed"],
  ["local", "by this process", "failed"],
  ["from_memory", "denied from memory"],
  ["step_ups_required", "asked to step up"],
  ["round_trips", "round trips"],
  ["write_units", "write units"],
  ["read_units", "read units"],
  ["breaker_opened", "breaker opened"],
];
const OUTCOMES = [["allowed"], ["denied"], ["never_fits"], ["shadow_denied", "shadow_never_fits"], ["open"], ["closed"]];
const TABLE = { ok: "works", pause: "says nothing", error: "fails", slow: "is late" };

let requests = [];
let stats = null;
let since = 0;

const timeline = new Timeline(find("#timeline"));
const costs = new Costs(find("#costs"));
const buckets = new Buckets(find("#buckets"));

for (const [name, label, tone] of FIGURES) {
  find("#figures").append(make("div", { class: tone }, make("dt", {}, label), make("dd", { "data-figure": name }, "0")));
}

/** The kind of an answer, as colours tell it. */
const kindOf = (status) => (status < 400 ? "allowed" : status < 500 ? "denied" : "failed");

function tag(status) {
  return make("span", { class: `tag ${kindOf(status)}` }, `${status}`);
}

function drawState() {
  find("#clock").textContent = clockTime(stats.now_ms);
  find("#clock-kind").textContent = stats.clock === "manual" ? "Manual clock" : "Clock";
  const isClosed = stats.breaker === "closed";
  find("#breaker").textContent = isClosed ? "closed" : stats.breaker.replace("_", " ");
  find("#breaker").className = `tag ${isClosed ? "allowed" : "failed"}`;
  const { store, ms } = stats.fault;
  find("#table").textContent = TABLE[store] + (store === "slow" ? ` by ${ms} ms` : "");
  find("#table").className = `tag ${store === "ok" ? "allowed" : "failed"}`;
  find(`#faults [value=${store}]`).checked = true;
  for (const button of document.querySelectorAll("[data-advance]")) button.disabled = stats.clock !== "manual";
}

function drawFigures() {
  for (const figure of document.querySelectorAll("[data-figure]")) figure.textContent = count(stats[figure.dataset.figure]);
}

function drawLimits() {
  const rows = new Map();
  for (const { layer, limit, outcome, n } of stats.limits) {
    const name = `${layer} · ${limit}`;
    if (!rows.has(name)) rows.set(name, { layer, limit, said: {} });
    const { said } = rows.get(name);
    said[outcome] = (said[outcome] ?? 0) + n;
  }
  const drawn = [...rows.values()].map(({ layer, limit, said }) => {
    const cells = OUTCOMES.map((names) => {
      const n = names.reduce((sum, name) => sum + (said[name] ?? 0), 0);
      const isDenied = n > 0 && names[0] === "denied";
      return make("td", { "data-said": `${layer}/${limit}/${names[0]}`, class: isDenied && "some-denied" }, count(n));
    });
    return make("tr", {}, make("td", {}, layer), make("th", { scope: "row" }, limit), ...cells);
  });
  find("#limits").replaceChildren(...drawn);
  const known = new Set([...find("#of").options].map((option) => option.value));
  for (const name of rows.keys()) if (!known.has(name)) find("#of").append(make("option", { value: name }, name));
  const layers = Map.groupBy(stats.answers, ({ layer }) => layer);
  const answers = [...layers].map(([layer, all]) =>
    make("li", {}, layer, ...all.map(({ status, n }) => make("span", { class: `tag ${kindOf(status)}`, "data-answer": `${layer}/${status}` }, `${status} × ${count(n)}`))),
  );
  find("#answers").replaceChildren(...answers);
}

/** A limit's word on a request, in a few. */
function brief({ limit, outcome, source, remaining, most, retry_after_ms, held }) {
  const left = most === undefined ? "" : ` ${count(remaining)}/${count(most)}`;
  const wait = retry_after_ms ? ` wait ${span(retry_after_ms)}` : "";
  const why = [outcome === "allowed" ? "" : outcome.replaceAll("_", " "), source === "table" ? "" : `by ${source}`, held];
  return `${limit}${left}${wait}${why.filter(Boolean).map((word) => ` ${word}`).join("")}`;
}

function list(news) {
  const rows = news.map(({ number, at_ms, layer, method, path, status, limits, step_up }) => {
    const time = make("time", { class: "mono" }, clockTime(at_ms));
    const what = make("span", { class: "what" }, `${method} ${path} `, make("span", { class: "soft" }, layer));
    const why = [...(step_up ? [`step up: ${step_up.replaceAll("_", " ")}`] : []), ...limits.map(brief)].join(" · ");
    return make("li", { "data-number": number }, time, tag(status), what, why && make("span", { class: "why" }, why));
  });
  find("#live").prepend(...rows.reverse());
  [...find("#live").children].slice(MOST_LISTED).forEach((old) => old.remove());
}

function drawTimeline() {
  const shown = find("#range").value === "run" ? requests.filter(({ number }) => number > since) : requests;
  timeline.draw(shown, find("#of").value);
}

function take({ data }) {
  const message = JSON.parse(data);
  find("#link").hidden = true;
  stats = message.stats;
  drawState();
  drawFigures();
  costs.add(stats);
  if (message.missed) find("#missed").textContent = `${count(message.missed)} came too fast to be listed`;
  if (message.requests.length) {
    requests = requests.concat(message.requests).slice(-MOST_DRAWN);
    list(message.requests);
    buckets.see(message.requests);
    drawTimeline();
  }
  drawLimits();
}

async function control(path, body) {
  const { status, body: said } = await ask("POST", path, { body });
  find("#controls-said").textContent = status < 400 ? "" : `${status}: ${said.message}`;
}

find("#faults").addEventListener("change", () => {
  const store = find("#faults :checked").value;
  control("/dev/faults", store === "slow" ? { store, ms: Number(find("#late").value) } : { store });
});
for (const button of document.querySelectorAll("[data-advance]")) {
  button.addEventListener("click", () => control("/dev/clock", { advance_ms: Number(button.dataset.advance) }));
}
for (const select of ["#of", "#range"]) find(select).addEventListener("change", drawTimeline);
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => {
  timeline.restyle();
  costs.restyle();
});
offer(find("#scenarios"), ({ answers }) => {
  // Requests are numbered by their answers.
  since = answers.reduce((sum, { n }) => sum + n, 0);
  find("#range").value = "run";
});

const events = new EventSource("/dev/events");
events.addEventListener("message", take);
events.addEventListener("error", () => (find("#link").hidden = false));
