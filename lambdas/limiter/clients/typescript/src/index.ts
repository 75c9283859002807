/**
 * Asks the tollgate limiter for decisions.
 *
 * A denial is an answer, and what is no decision is an error. A charge is sent once: only what was turned away before the limiter saw
 * it is sent again.
 */
export type { Decision, Held, Outcome, Source, Wanted } from "./codec.js";
export { BadRequest, OutcomeUnknown, Refused, Throttled, TollgateError, Unavailable, Unreachable } from "./errors.js";
export { Limiter, type Ask, type Options } from "./limiter.js";
export { direct, type DirectOptions, type InvokeAnswer, type InvokeCommandClass, type LambdaLike } from "./direct.js";
export { http, type HttpOptions, type Sign } from "./http.js";
