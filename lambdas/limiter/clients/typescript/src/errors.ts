/** What is thrown instead of a decision. Each kind says whether the call may have been charged. */

/** No decision. Nothing of it says that the caller is over a limit. */
export class TollgateError extends Error {
  /** Whether a key may have been charged all the same, so that asking again may charge it twice. */
  readonly mayHaveCharged: boolean = false;

  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = new.target.name;
  }
}

/** What was asked for is nothing that can be decided. Asking again is of no use; nothing was charged. */
export class BadRequest extends TollgateError {
  /** The field that is wrong, such as `cost` or `key.user`, where it was found before anything was sent. */
  readonly field: string | undefined;

  constructor(message: string, field?: string) {
    super(field === undefined ? message : `${field}: ${message}`);
    this.field = field;
  }
}

/** The caller may not ask, or there is no limiter at that address (any other 4xx). Nothing was charged. */
export class Refused extends TollgateError {
  /** The HTTP status. */
  readonly status: number;

  constructor(status: number, message: string) {
    super(`${status}: ${message}`);
    this.status = status;
  }
}

/** Turned away before the limiter saw it, each time that it was tried. Nothing was charged. */
export class Throttled extends TollgateError {}

/** No connection, so nothing was sent and nothing charged. */
export class Unreachable extends TollgateError {}

/** The limiter cannot decide: its table gave no answer, and the limit is `closed`. */
export class Unavailable extends TollgateError {
  override readonly mayHaveCharged = true;
}

/** The question was sent and no answer came: a timeout, a lost connection, a function that ended. */
export class OutcomeUnknown extends TollgateError {
  override readonly mayHaveCharged = true;
}

/** Codes of Node.js for a connection that was never there; `EHOSTUNREACH` and the like may come while an answer is waited for. */
const NO_CONNECTION = ["ECONNREFUSED", "ENOTFOUND", "EAI_AGAIN", "UND_ERR_CONNECT_TIMEOUT"];

/** Whether `error`, or what it was caused by, says that there was no connection. */
export function isUnreachable(error: unknown): boolean {
  for (let cause = error, depth = 0; cause instanceof Error && depth < 5; cause = cause.cause, depth += 1) {
    if ("code" in cause && typeof cause.code === "string" && NO_CONNECTION.includes(cause.code)) return true;
  }
  return false;
}

/** The text of anything that was thrown. */
export function textOf(error: unknown): string {
  return error instanceof Error ? error.message || error.name : String(error);
}
