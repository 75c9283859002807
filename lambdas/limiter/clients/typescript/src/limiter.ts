/** What all ways to the limiter have in common: the questions, and when one is sent again. */
import { decode, decodeAll, encode, encodeAll, parse, type Decision, type Wanted } from "./codec.js";
import { Throttled } from "./errors.js";

/** Sends a payload once, and answers with what came back; throws a `TollgateError` for what is no decision. */
export type Ask = (payload: Uint8Array) => Promise<Uint8Array>;

export interface Options {
  /** How often a question that was throttled is sent again; 2 by default. */
  readonly throttleRetries?: number;
}

/**
 * Asks for decisions.
 *
 * A charge is not idempotent, so a question that may have been answered is never sent again. One that was throttled, before the limiter
 * saw it, is, after a random wait below 50 ms, 100 ms, 200 ms and so on.
 */
export class Limiter {
  readonly #ask: Ask;
  readonly #throttleRetries: number;

  constructor(ask: Ask, { throttleRetries = 2 }: Options = {}) {
    this.#ask = ask;
    this.#throttleRetries = throttleRetries;
  }

  /** Charges `wanted`. A denial is an answer: look at `allowed`. */
  async decide(wanted: Wanted): Promise<Decision> {
    return decode(await this.#answer(encode(wanted)));
  }

  /**
   * Charges all limits or none; the answers are in the same order, and `allowed` is the same in each. In the way are those with
   * `retry_after_ms` above 0 or `never_fits`.
   */
  async decideAll(wanted: readonly Wanted[]): Promise<Decision[]> {
    return decodeAll(await this.#answer(encodeAll(wanted)), wanted.length);
  }

  async #answer(question: unknown): Promise<unknown> {
    const payload = new TextEncoder().encode(JSON.stringify(question));
    for (let attempt = 0; ; attempt += 1) {
      try {
        return parse(new TextDecoder().decode(await this.#ask(payload)));
      } catch (error) {
        if (!(error instanceof Throttled) || attempt >= this.#throttleRetries) throw error;
        await new Promise((resolve) => setTimeout(resolve, Math.random() * 50 * 2 ** attempt));
      }
    }
  }
}
