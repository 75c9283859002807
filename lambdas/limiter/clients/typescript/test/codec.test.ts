/** The codec against what the limiter really says, and against what it must not take for a decision. */
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { decode, decodeAll, encode, encodeAll, HOLDS, OUTCOMES, SOURCES, type Decision, type Wanted } from "../src/codec.js";
import { BadRequest, OutcomeUnknown } from "../src/index.js";

interface Exchange {
  name: string;
  request: Wanted | Wanted[];
  answer?: Decision | Decision[];
}
const file = JSON.parse(readFileSync(new URL("../../../exchanges.json", import.meta.url), "utf8")) as {
  sources: string[];
  outcomes: string[];
  holds: string[];
  exchanges: Exchange[];
};

/** Each field that this version has: a missing or surplus one does not compile. */
const NAMES: Record<keyof Required<Decision>, true> = {
  allowed: true, limit: true, remaining: true, retry_after_ms: true, reset_ms: true, source: true, never_fits: true,
  wait_ms: true, shadow: true, shadow_retry_after_ms: true, shadow_wait_ms: true, held: true,
};

test("each question is encoded as the limiter reads it", () => {
  for (const { name, request } of file.exchanges) {
    assert.deepEqual(Array.isArray(request) ? encodeAll(request) : encode(request), request, name);
  }
});

test("each answer is decoded whole, and each field of a decision is in an exchange", () => {
  const seen = new Set<string>();
  for (const { name, answer } of file.exchanges) {
    if (answer === undefined) continue;
    const decoded = Array.isArray(answer) ? decodeAll(answer, answer.length) : [decode(answer)];
    assert.deepEqual(decoded, [answer].flat(), name);
    for (const field of decoded.flatMap(Object.keys)) {
      assert.ok(field in NAMES, `${name}: ${field}`);
      seen.add(field);
    }
  }
  assert.deepEqual([...seen].sort(), Object.keys(NAMES).sort());
});

test("the words are the limiter's", () => {
  assert.deepEqual([[...SOURCES], [...OUTCOMES], [...HOLDS]], [file.sources, file.outcomes, file.holds]);
});

test("what cannot be decided is found before it is sent, and named", () => {
  const key = { user: "alice" };
  const bad: [unknown, string][] = [
    [{ limit: "", key }, "limit"],
    [{ limit: "orders", key: {} }, "key"],
    [{ limit: "orders", key: null }, "key"],
    [{ limit: "orders", key: { user: "" } }, "key.user"],
    [{ limit: "orders", key: { user: 7 } }, "key.user"],
    [{ limit: "orders", key, cost: -1 }, "cost"],
    [{ limit: "orders", key, cost: 1e12 + 1 }, "cost"],
    [{ limit: "orders", key, cost: 0.5 }, "cost"],
    [{ limit: "orders", key, cost: NaN }, "cost"],
    [{ limit: "orders", key, cost: "1" }, "cost"],
    [{ limit: "orders", key, plan: 1 }, "plan"],
  ];
  for (const [wanted, field] of bad) {
    assert.throws(
      () => encode(wanted as Wanted),
      (error) => error instanceof BadRequest && error.field === field && !error.mayHaveCharged,
      JSON.stringify(wanted),
    );
  }
  assert.throws(() => encodeAll([]), BadRequest);
});

test("what is no decision is not taken for one", () => {
  const answer = { allowed: true, limit: "a", remaining: 1, retry_after_ms: 0, reset_ms: 5, source: "table" };
  decode(answer);
  for (const name of Object.keys(answer)) {
    assert.throws(() => decode({ ...answer, [name]: undefined }), OutcomeUnknown, name);
  }
  const wrong = { allowed: 1, remaining: "1", retry_after_ms: 0.5, reset_ms: true, source: null, never_fits: "no", held: 1 };
  for (const [name, value] of Object.entries(wrong)) {
    assert.throws(() => decode({ ...answer, [name]: value }), OutcomeUnknown, name);
  }
  for (const other of [null, [], "allowed", { errorType: "BadRequest" }]) assert.throws(() => decode(other), OutcomeUnknown);
  for (const others of [[answer], answer]) assert.throws(() => decodeAll(others, 2), OutcomeUnknown);
});

test("a newer limiter may tell more", () => {
  const answer = { allowed: true, limit: "a", remaining: 1, retry_after_ms: 0, reset_ms: 5, source: "table", mood: "sunny" };
  assert.equal(decode(answer).allowed, true);
});

test("the documentation shows what is run", () => {
  const at = (path: string): string => readFileSync(new URL(`../../${path}`, import.meta.url), "utf8");
  assert.ok(at("README.md").includes(`\`\`\`ts\n${at("test/snippet.ts")}`));
});
