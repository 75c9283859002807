/** The limiter's JSON, and what it stands for. `exchanges.json` holds both sides to it. */
import { BadRequest, OutcomeUnknown } from "./errors.js";

export const SOURCES = ["table", "cache", "lease", "local", "open", "closed"] as const;
export const OUTCOMES = ["allowed", "denied", "never_fits"] as const;
export const HOLDS = ["ban", "override", "penalty"] as const;

/**
 * Who decided: the table; this limiter's memory of a denial; tokens that it has taken ahead; and while the table is gone, its share of
 * the limit, or the policy alone.
 */
export type Source = (typeof SOURCES)[number];
/** What a limit says by itself. */
export type Outcome = (typeof OUTCOMES)[number];
/** What was in force for the key. */
export type Held = (typeof HOLDS)[number];

/** One limit to be charged. */
export interface Wanted {
  /** Its name in the policy. */
  readonly limit: string;
  /** Who is charged: each dimension of the limit's key, and its value. */
  readonly key: Readonly<Record<string, string>>;
  /** Tokens, 0 to 1,000,000,000,000; 1 by default. 0 asks how it stands, and charges nothing. */
  readonly cost?: number | undefined;
  /** The caller's plan; the policy's default without. */
  readonly plan?: string | undefined;
}

/** The answer about one limit, with the names that JSON has. Times are in milliseconds from now. */
export interface Decision {
  /** Whether the call may go. Of several limits, it is the same in each answer. */
  readonly allowed: boolean;
  /** The limit's name. */
  readonly limit: string;
  /** Tokens left; `null` where the limit was not asked. */
  readonly remaining: number | null;
  /** The wait that this limit asks for; 0 where it is not in the way, `null` for a cost that never fits. */
  readonly retry_after_ms: number | null;
  /** Until all tokens are back; `null` where the limit was not asked. */
  readonly reset_ms: number | null;
  /** Who decided. */
  readonly source: Source;
  /** The cost is above what the limit ever has. */
  readonly never_fits?: boolean;
  /** Of a pacer: the call may go that much later. */
  readonly wait_ms?: number;
  /** Of a limit that only reports: what it says. */
  readonly shadow?: Outcome;
  /** Of a limit that only reports: the wait that it would ask for. */
  readonly shadow_retry_after_ms?: number;
  /** Of a pacer that only reports: how long it would have the call wait. */
  readonly shadow_wait_ms?: number;
  /** What was in force for the key that it was decided by. */
  readonly held?: Held;
}

/** One question as JSON has it. */
export interface Question {
  limit: string;
  key: Readonly<Record<string, string>>;
  cost: number;
  plan?: string;
}

const MOST_COST = 1_000_000_000_000;

/** One question; throws `BadRequest` for what the limiter could not read. */
export function encode({ limit, key, cost = 1, plan }: Wanted): Question {
  if (typeof limit !== "string" || limit === "") throw new BadRequest("name a limit of the policy", "limit");
  const pairs = typeof key === "object" && key !== null ? Object.entries(key) : [];
  if (pairs.length === 0) throw new BadRequest('name whom to charge, like { user: "alice" }', "key");
  for (const [name, value] of pairs) {
    if (typeof value !== "string" || value === "") throw new BadRequest("the value must be a string, and not empty", `key.${name}`);
  }
  if (!Number.isInteger(cost) || cost < 0 || cost > MOST_COST) {
    throw new BadRequest("must be a whole number from 0 to 1,000,000,000,000", "cost");
  }
  if (plan !== undefined && typeof plan !== "string") throw new BadRequest("must be the name of a plan", "plan");
  return { limit, key: Object.fromEntries(pairs), cost, ...(plan === undefined ? {} : { plan }) };
}

/** The questions of one all-or-nothing decision. */
export function encodeAll(wanted: readonly Wanted[]): Question[] {
  if (wanted.length === 0) throw new BadRequest("name at least one limit", "wanted");
  return wanted.map(encode);
}

const isWhole = (value: unknown): value is number => Number.isInteger(value);
const isAbsent = (value: unknown): value is undefined => value === undefined;

/** One answer. What this version does not know of is left as it is; what is missing is no decision. */
export function decode(answer: unknown): Decision {
  const fields = (typeof answer === "object" && answer !== null ? answer : {}) as Record<string, unknown>;
  const must = (name: keyof Decision, ...kinds: ((value: unknown) => boolean)[]): void => {
    if (!kinds.some((is) => is(fields[name]))) throw noDecision(`${JSON.stringify(name)} is missing, or of another type`);
  };
  const isNull = (value: unknown): boolean => value === null;
  const isText = (value: unknown): boolean => typeof value === "string";
  const isFlag = (value: unknown): boolean => typeof value === "boolean";
  must("allowed", isFlag);
  must("limit", isText);
  must("source", isText);
  for (const name of ["remaining", "retry_after_ms", "reset_ms"] as const) must(name, isWhole, isNull);
  for (const name of ["wait_ms", "shadow_retry_after_ms", "shadow_wait_ms"] as const) must(name, isWhole, isAbsent);
  for (const name of ["shadow", "held"] as const) must(name, isText, isAbsent);
  must("never_fits", isFlag, isAbsent);
  return fields as unknown as Decision;
}

/** The answers to `count` questions, in their order. */
export function decodeAll(answers: unknown, count: number): Decision[] {
  if (!Array.isArray(answers) || answers.length !== count) throw noDecision(`not the answers to ${count} questions`);
  return answers.map(decode);
}

/** JSON, or `OutcomeUnknown`: whoever answered was not the limiter. */
export function parse(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (cause) {
    throw new OutcomeUnknown("this is no answer of the limiter: the answer is not JSON", { cause });
  }
}

function noDecision(what: string): OutcomeUnknown {
  return new OutcomeUnknown(`this is no answer of the limiter: ${what}`);
}
