// Scenarios that a person can play: requests over the routes that everybody has, and what they have added to the figures.
//
// What is measured is what `/dev/stats` has grown by between the first request and the last; nothing is counted here.

import { ask, count, find, make, principalOf } from "./server.js";

const MINUTE = 60_000;
const HOUR = 60 * MINUTE;

/** Requests of one run, its clock, and how to stop it. */
class Run {
  constructor(stats, signal) {
    this.isManual = stats.clock === "manual";
    this.signal = signal;
    this.id = crypto.randomUUID().slice(0, 8);
    this.done = 0;
  }

  async ask(method, path, more) {
    const answer = await ask(method, path, { ...more, signal: this.signal });
    find("#progress").value = ++this.done;
    return answer;
  }

  decide(limit, cost = 1) {
    return this.ask("POST", "/v1/decisions", { body: { limit, key: { user: `run-${this.id}` }, cost } });
  }

  async now() {
    return (await ask("GET", "/dev/stats", { signal: this.signal })).body.now_ms;
  }

  /** Lets time pass: at once on a manual clock. */
  async wait(ms) {
    this.signal.throwIfAborted();
    if (this.isManual) return ask("POST", "/dev/clock", { body: { advance_ms: ms }, signal: this.signal });
    return new Promise((pass, stop) => {
      const timer = setTimeout(pass, ms);
      this.signal.addEventListener("abort", () => (clearTimeout(timer), stop(this.signal.reason)), { once: true });
    });
  }

  /** What earlier runs have left is over; a clock that is not manual waits for nobody. */
  async rest(ms) {
    if (this.isManual) await this.wait(ms);
  }

  /** Someone who signed in so many seconds ago, in a session of his own. */
  async person(user, secondsAgo = 0, more = {}) {
    const auth_time = Math.floor((await this.now()) / 1000) - secondsAgo;
    return principalOf({ user, tenant: "acme", origin_jti: `run-${this.id}-${this.done}`, auth_time, ...more });
  }

  /** The code that was sent last. */
  async code() {
    return (await ask("GET", "/dev/outbox", { signal: this.signal })).body.at(-1)?.code ?? "";
  }
}

/** What the figures have grown by. */
class Growth {
  constructor(before, after) {
    const grown = (name, keys) =>
      after[name]
        .map(({ n, ...of }) => ({ ...of, n: n - (before[name].find((old) => keys.every((key) => old[key] === of[key]))?.n ?? 0) }))
        .filter(({ n }) => n > 0);
    this.limits = grown("limits", ["layer", "limit", "outcome", "source"]);
    this.answers = grown("answers", ["layer", "status"]);
    this.of = (name) => after[name] - before[name];
  }

  said(limit, outcome) {
    return this.limits.filter((word) => word.limit === limit && word.outcome === outcome).reduce((sum, { n }) => sum + n, 0);
  }

  answered(layer, status) {
    return this.answers.find((answer) => answer.layer === layer && answer.status === status)?.n ?? 0;
  }
}

const SCENARIOS = [
  {
    name: "boundary",
    title: "Burst at the boundary",
    about: "100 requests in the last second of a minute and 100 in the first of the next, on 100/min: by a fixed window and by a sliding one.",
    requests: 400,
    async play(run) {
      const now = await run.now();
      await run.wait((2 * MINUTE - 1000 - (now % MINUTE)) % MINUTE);
      for (let n = 0; n < 200; n++) {
        await Promise.all([run.decide("scenario-fixed"), run.decide("scenario-sliding")]);
        await run.wait(10);
      }
    },
    verdict(grown) {
      const [fixed, sliding] = [grown.said("scenario-fixed", "allowed"), grown.said("scenario-sliding", "allowed")];
      return [fixed === 200 && sliding === 101, `Of 200, the fixed window let ${fixed} pass, twice its limit; the sliding one ${sliding}.`];
    },
  },
  {
    name: "steady",
    title: "Steady, one each 900 ms",
    about: "An emptied bucket of 1/s, then 90 s of requests a little faster than it fills: it gives what it has, to the last.",
    requests: 101,
    async play(run) {
      await run.decide("scenario-bucket", 10);
      for (let n = 0; n < 100; n++) {
        await run.wait(900);
        await run.decide("scenario-bucket");
      }
    },
    verdict(grown) {
      const passed = grown.said("scenario-bucket", "allowed") - 1;
      return [passed === 90, `${passed} of 100 passed in 90 s at 1/s.`];
    },
  },
  {
    name: "at-once",
    title: "40 at once",
    about: "40 callers at the same moment on a new key of 10. Read, then write, and all would pass.",
    requests: 40,
    play: (run) => Promise.all(Array.from({ length: 40 }, () => run.decide("scenario-bucket"))),
    verdict(grown) {
      const passed = grown.said("scenario-bucket", "allowed");
      return [passed === 10, `${passed} of 40 passed, in ${count(grown.of("round_trips"))} round trips.`];
    },
  },
  {
    name: "paused",
    title: "The table says nothing",
    about: "Searches go on by this process's share, exports and logins are refused with 503, the breaker spares everybody the wait; then the table is back.",
    requests: 30,
    async play(run) {
      const principal = await run.person(`run-${run.id}`);
      const login = { username: `${run.id}@x.org`, password: "guess" };
      await ask("POST", "/dev/faults", { body: { store: "pause" }, signal: run.signal });
      try {
        for (let n = 0; n < 12; n++) await run.ask("GET", "/api/search", { principal });
        for (let n = 0; n < 5; n++) await run.ask("GET", "/api/export", { principal });
        for (let n = 0; n < 3; n++) await run.ask("POST", "/api/auth/login", { body: login });
      } finally {
        // Also of a run that was stopped.
        await ask("POST", "/dev/faults", { body: { store: "ok" } });
      }
      for (let n = 0; n < 10; n++) {
        await run.ask("GET", "/api/search", { principal });
        if ((await ask("GET", "/dev/stats")).body.breaker === "closed") return;
        await new Promise((wait) => setTimeout(wait, 1000));
      }
    },
    verdict(grown) {
      const [refused, local] = [grown.answered("api", 503), grown.of("local")];
      const holds = refused === 8 && local > 0 && grown.of("breaker_opened") === 1 && grown.of("breaker_closed") === 1;
      return [holds, `${refused} of 8 were refused with 503, ${local} decided by this process; the breaker opened and closed again.`];
    },
  },
  {
    name: "otp",
    title: "OTP brute force",
    about: "Somebody guesses Alice's code. Five tries, and not even the right one is taken any more.",
    requests: 7,
    async play(run) {
      await run.rest(2 * HOUR);
      const principal = await run.person("alice");
      const sent = await run.ask("POST", "/api/auth/otp/send", { principal, body: { purpose: "login" } });
      const { challenge } = sent.body;
      const right = await run.code();
      const verify = (code) => run.ask("POST", "/api/auth/otp/verify", { principal, body: { challenge, purpose: "login", code } });
      for (let n = 1; n <= 5; n++) await verify(String((Number(right) + n) % 1_000_000).padStart(6, "0"));
      await verify(right);
    },
    verdict(grown) {
      const [wrong, locked, right] = [401, 429, 200].map((status) => grown.answered("otp", status));
      return [wrong === 5 && locked === 1 && right === 0, `${wrong} guesses were looked at; then ${locked} was refused, the right one.`];
    },
  },
  {
    name: "pumping",
    title: "SMS pumping",
    about: "Twelve accounts with numbers in a row ask for codes that nobody types, each from its own address. The sentinel judges; twelve more come.",
    requests: 24,
    async play(run) {
      await run.rest(24 * HOUR);
      const send = (n) => {
        const headers = { "x-dev-source-ip": `198.51.100.${n}` };
        return run.ask("POST", "/api/auth/otp/send", { principal: `user=crowd-${n}`, headers, body: { purpose: "login" } });
      };
      for (let n = 1; n <= 12; n++) await send(n);
      await run.rest(6 * MINUTE);
      await ask("POST", "/dev/sentinel", { signal: run.signal });
      // What others have just read of the ladder is a second old at most.
      await new Promise((wait) => setTimeout(wait, 1100));
      for (let n = 13; n <= 24; n++) await send(n);
    },
    verdict(grown) {
      const [sent, asked] = [grown.answered("otp", 202), grown.answered("otp", 403)];
      return [sent === 12 && asked === 12, `${sent} messages went out before the sentinel looked; ${asked} of those after were asked for a CAPTCHA.`];
    },
  },
  {
    name: "step-up",
    title: "Step-up",
    about: "Alice changes her payout account: by a password alone, by an old second factor, and by a code of just now; and five minutes later.",
    requests: 7,
    async play(run) {
      await run.rest(2 * HOUR);
      const [principal, old] = [await run.person("alice"), await run.person("alice", 600, { acr: "mfa", origin_jti: `old-${run.id}` })];
      const change = (as) => run.ask("PUT", "/api/payout-account", { principal: as, body: { iban: "RO49AAAA1B31007593840000" } });
      await change(principal);
      await change(old);
      const { body } = await run.ask("POST", "/api/auth/otp/send", { principal, body: { purpose: "payout" } });
      const typed = { challenge: body.challenge, purpose: "payout", code: await run.code() };
      await run.ask("POST", "/api/auth/otp/verify", { principal, body: typed });
      await change(principal);
      await run.rest(5 * MINUTE + 1000);
      if (run.isManual) await change(principal);
    },
    verdict(grown) {
      const [asked, passed] = [grown.answered("api", 401), grown.answered("api", 200)];
      return [asked >= 2 && passed === 1, `${passed} change passed, by the code; ${asked} were asked who it is.`];
    },
  },
];

const MEASURED = ["decisions", "round_trips", "write_units"];

/** The rows of what a run has added. */
function measured(grown) {
  const row = (what, name, n) => make("tr", {}, make("td", {}, what), make("td", { "data-run": name }, count(n)));
  return [
    ...MEASURED.map((name) => row(name.replace("_", " "), name, grown.of(name))),
    ...grown.limits.map(({ layer, limit, outcome, source, n }) =>
      row(`${limit}: ${outcome.replaceAll("_", " ")}, by ${source} (${layer})`, `${layer}/${limit}/${outcome}/${source}`, n),
    ),
    ...grown.answers.map(({ layer, status, n }) => row(`answered ${status} (${layer})`, `${layer}/${status}`, n)),
  ];
}

const stats = async () => (await ask("GET", "/dev/stats")).body;

async function play(scenario, begin) {
  const [panel, verdict, stopping] = [find("#run"), find("#verdict"), new AbortController()];
  const buttons = document.querySelectorAll("[data-play]");
  const before = await stats();
  begin(before);
  panel.hidden = false;
  panel.dataset.state = "playing";
  find("#run-title").textContent = scenario.title;
  find("#progress").max = scenario.requests;
  find("#progress").value = 0;
  find("#measured tbody").replaceChildren();
  find("#stop").onclick = () => stopping.abort();
  verdict.textContent = "Playing …";
  verdict.classList.remove("denied");
  for (const button of [...buttons, find("#stop")]) button.disabled = button !== find("#stop");
  let state = "done";
  try {
    await scenario.play(new Run(before, stopping.signal));
  } catch (error) {
    state = stopping.signal.aborted ? "stopped" : "failed";
    if (state === "failed") console.error(error);
  }
  const grown = new Growth(before, await stats());
  const [holds, told] = scenario.verdict(grown);
  verdict.textContent = state === "done" ? `${holds ? "✓" : "✗ Not as expected:"} ${told}` : `It was ${state}. ${told}`;
  verdict.classList.toggle("denied", !holds || state !== "done");
  find("#measured tbody").replaceChildren(...measured(grown));
  for (const button of [...buttons, find("#stop")]) button.disabled = button === find("#stop");
  find("#progress").value = find("#progress").max;
  panel.dataset.state = state;
  panel.dataset.holds = holds;
}

/** Lists the scenarios; `begin` is called before the first request of one, with the figures at that time. */
export function offer(place, begin) {
  const listed = SCENARIOS.map((scenario) => {
    const button = make("button", { type: "button", class: "plain", "data-play": scenario.name, "aria-label": `Play: ${scenario.title}`, onclick: () => play(scenario, begin) }, "Play");
    return make("li", {}, make("div", {}, make("h3", {}, scenario.title), make("p", {}, scenario.about)), button);
  });
  place.replaceChildren(...listed);
}
