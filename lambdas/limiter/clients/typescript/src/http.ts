/** `POST /v1/decisions`, at a function URL, behind an API, or at `tollgate dev`. */
import { parse } from "./codec.js";
import { BadRequest, isUnreachable, OutcomeUnknown, Refused, textOf, Throttled, TollgateError, Unavailable, Unreachable } from "./errors.js";
import { Limiter, type Options } from "./limiter.js";

/** The headers to send instead: AWS asks for SigV4. */
export type Sign = (request: { method: "POST"; url: string; headers: Record<string, string>; body: Uint8Array }) =>
  Record<string, string> | Promise<Record<string, string>>;

export interface HttpOptions extends Options {
  /** Where the limiter is; `/v1/decisions` is appended. */
  readonly url: string;
  /** Signs a request; without, it is not signed. */
  readonly sign?: Sign;
  /** How long an answer is waited for, in milliseconds; 3,000 by default. */
  readonly timeoutMs?: number;
  /** In place of the global `fetch`. */
  readonly fetch?: typeof fetch;
}

/** The limiter at a URL. */
export function http({ url, sign, timeoutMs = 3000, fetch = globalThis.fetch, ...options }: HttpOptions): Limiter {
  const at = new URL(url.replace(/\/+$/, "") + "/v1/decisions").href;
  return new Limiter(async (body) => {
    let headers: Record<string, string> = { "content-type": "application/json" };
    if (sign) headers = await sign({ method: "POST", url: at, headers, body });
    let status: number, answer: Uint8Array;
    try {
      const signal = AbortSignal.timeout(timeoutMs);
      const response = await fetch(at, { method: "POST", headers, body: body as Uint8Array<ArrayBuffer>, signal, redirect: "error" });
      status = response.status;
      answer = new Uint8Array(await response.arrayBuffer());
    } catch (cause) {
      const text = `${at}: no answer: ${textOf(cause)}`;
      throw isUnreachable(cause) ? new Unreachable(text, { cause }) : new OutcomeUnknown(text, { cause });
    }
    if (status !== 200) throw failure(status, new TextDecoder().decode(answer));
    return answer;
  }, options);
}

function failure(status: number, text: string): TollgateError {
  let fields: { error?: unknown; message?: unknown } = {};
  try {
    fields = Object(parse(text));
  } catch {
    // Said by who is in between, in its own words.
  }
  const message = typeof fields.message === "string" ? fields.message : text.slice(0, 200);
  if (status === 429) return new Throttled(message);
  if (fields.error === "bad_request") return new BadRequest(message);
  if (fields.error === "limiter_unavailable") return new Unavailable(message);
  if (status >= 400 && status < 500) return new Refused(status, message);
  return new OutcomeUnknown(`${status}: ${message}`);
}
