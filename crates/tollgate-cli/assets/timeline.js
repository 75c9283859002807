// Two charts over the server's time: what requests, or one limit, came to; and what that cost.

import { clockTime, count } from "./server.js";

/** Widths of a bar, in milliseconds, and how many bars there are at most. */
const STEPS = [10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 3e4, 6e4, 3e5, 9e5, 36e5, 144e5, 864e5];
const MOST_BARS = 90;
/** Most points of a line. */
const MOST_POINTS = 2000;

const colour = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

const PLACES = { allowed: 0, denied: 1, never_fits: 1, open: 2, closed: 2 };

/**
 * What a request came to, or what one limit said of it: its place among allowed, denied, and without the table; -1 for nothing.
 * A limiter's denial is an answer with status 200; who only reports denies nothing.
 */
function placeOf({ layer, status, limits }, of) {
  if (!of) return Math.max(status < 400 ? 0 : status < 500 ? 1 : 2, ...limits.map(({ outcome }) => PLACES[outcome] ?? 0));
  const said = limits.find(({ limit, source }) => `${source === "waf" ? "edge" : layer} · ${limit}` === of);
  return said ? (PLACES[said.outcome] ?? 1) : -1;
}

/** Axes, size and legend that both have. */
class Chart {
  constructor(place) {
    this.place = place;
    this.step = 1000;
    new ResizeObserver(() => this.plot?.setSize(this.size())).observe(place);
  }

  size() {
    // The legend stands below.
    return { width: this.place.clientWidth, height: this.place.clientHeight - 28 };
  }

  show(data) {
    this.data = data;
    if (this.plot) return this.plot.setData(data);
    const grid = { stroke: colour("--line"), width: 1 };
    const axis = { stroke: colour("--soft"), grid, ticks: grid, font: "11px system-ui, sans-serif" };
    const times = (_, at) => at.map((x) => clockTime(x * 1000, this.step < 100 ? 2 : this.step < 1000 ? 1 : 0));
    const range = (_, min, max) => [min - this.step / 500, max + this.step / 500];
    this.plot = new window.uPlot(
      {
        ...this.size(),
        series: [{ label: "time", value: (_, x) => (x === null ? "–" : clockTime(x * 1000, 2)) }, ...this.series()],
        scales: { x: { range }, y: { range: (_, min, max) => [0, Math.max(max, 1) * 1.05] } },
        axes: [
          { ...axis, values: times, space: 78, size: 30 },
          { ...axis, values: (_, at) => at.map(count), incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 1e4, 1e5], size: 46 },
        ],
        cursor: { drag: { x: false, y: false } },
      },
      data,
      this.place,
    );
  }

  /** Draws anew, in the colours that the page has now. */
  restyle() {
    this.plot?.destroy();
    this.plot = null;
    if (this.data) this.show(this.data);
  }
}

/** Bars of allowed, denied, and what was passed or refused without the table. */
export class Timeline extends Chart {
  series() {
    const paths = window.uPlot.paths.bars({ size: [0.86, 26] });
    const bar = (label, place, name) => ({
      label,
      paths,
      fill: colour(name),
      stroke: colour(name),
      width: 0,
      points: { show: false },
      value: (_, __, ___, at) => (at === null ? "–" : count(this.bars[at].n[place])),
    });
    // Stacked: the tallest is drawn first.
    return [bar("without the table", 2, "--failed"), bar("denied", 1, "--denied"), bar("allowed", 0, "--allowed")];
  }

  draw(requests, of) {
    const counted = requests.map((request) => [request.at_ms, placeOf(request, of)]).filter(([, place]) => place >= 0);
    const times = counted.map(([at]) => at);
    const [first, last] = [Math.min(...times), Math.max(...times)];
    this.step = STEPS.find((step) => (last - first) / step <= MOST_BARS) ?? STEPS.at(-1);
    const bars = new Map();
    for (const [at, place] of counted) {
      const x = Math.floor(at / this.step) * this.step;
      if (!bars.has(x)) bars.set(x, { x, n: [0, 0, 0] });
      bars.get(x).n[place] += 1;
    }
    this.bars = [...bars.values()].sort((a, b) => a.x - b.x);
    const [x, ...stacks] = [
      this.bars.map((bar) => bar.x / 1000),
      this.bars.map(({ n }) => n[0] + n[1] + n[2]),
      this.bars.map(({ n }) => n[0] + n[1]),
      this.bars.map(({ n }) => n[0]),
    ];
    const sum = (place) => count(this.bars.reduce((sum, { n }) => sum + n[place], 0));
    this.place.setAttribute("aria-label", `${of || "All requests"}: ${sum(0)} allowed, ${sum(1)} denied, ${sum(2)} without the table`);
    this.show([x, ...stacks]);
  }
}

/** Lines of round trips and write units, as they have summed up. */
export class Costs extends Chart {
  points = [];

  series() {
    const line = (label, name, dash) => ({ label, stroke: colour(name), width: 2, dash, points: { show: false }, value: (_, y) => (y === null ? "–" : count(y)) });
    return [line("round trips", "--allowed"), line("write units", "--denied", [6, 4])];
  }

  add({ now_ms, round_trips, write_units }) {
    const last = this.points.at(-1);
    // A clock that is set back begins a new line; one that stands has one point.
    if (last && last.now_ms > now_ms) this.points = [];
    else if (last?.now_ms === now_ms) this.points.pop();
    this.points = this.points.concat({ now_ms, round_trips, write_units }).slice(-MOST_POINTS);
    const of = (name) => this.points.map((point) => point[name]);
    this.place.setAttribute("aria-label", `${count(round_trips)} round trips, ${count(write_units)} write units`);
    this.show([of("now_ms").map((ms) => ms / 1000), of("round_trips"), of("write_units")]);
  }
}
