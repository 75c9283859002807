/** Direct invocation of the limiter function. Nothing of the AWS SDK is imported: its client and command are handed in. */
import { parse } from "./codec.js";
import { BadRequest, isUnreachable, OutcomeUnknown, textOf, Throttled, TollgateError, Unavailable, Unreachable } from "./errors.js";
import { Limiter, type Options } from "./limiter.js";

/** What is used of an invocation's answer. */
export interface InvokeAnswer {
  readonly Payload?: Uint8Array | undefined;
  readonly FunctionError?: string | undefined;
}

/** What is used of `LambdaClient` of `@aws-sdk/client-lambda`. */
export interface LambdaLike<Command> {
  send(command: Command, options?: { abortSignal?: AbortSignal }): Promise<InvokeAnswer>;
}

/** `InvokeCommand` of `@aws-sdk/client-lambda`. */
export type InvokeCommandClass<Command> = new (input: { FunctionName: string; Payload: Uint8Array }) => Command;

export interface DirectOptions extends Options {
  /** Name or ARN of the limiter function. */
  readonly functionName: string;
  /** How long an answer is waited for, in milliseconds; 3,000 by default. */
  readonly timeoutMs?: number;
}

/**
 * The limiter function, invoked by `client`. The client must not send again by itself: `new LambdaClient({ maxAttempts: 1 })`. Its own
 * errors, such as missing credentials or permissions, pass as they are.
 */
export function direct<Command>(
  client: LambdaLike<NoInfer<Command>>,
  InvokeCommand: InvokeCommandClass<Command>,
  { functionName, timeoutMs = 3000, ...options }: DirectOptions,
): Limiter {
  return new Limiter(async (payload) => {
    let answer: InvokeAnswer;
    try {
      const command = new InvokeCommand({ FunctionName: functionName, Payload: payload });
      answer = await client.send(command, { abortSignal: AbortSignal.timeout(timeoutMs) });
    } catch (cause) {
      throw told(cause);
    }
    const body = answer.Payload ?? new Uint8Array();
    if (answer.FunctionError) throw failure(parse(new TextDecoder().decode(body)));
    return body;
  }, options);
}

/** What a client's error says of the charge: by its name, status or code. */
function told(cause: unknown): unknown {
  const { name, $metadata } = (cause ?? {}) as { name?: unknown; $metadata?: { httpStatusCode?: number } };
  if (name === "TooManyRequestsException" || name === "ThrottlingException") return new Throttled(textOf(cause), { cause });
  if (isUnreachable(cause)) return new Unreachable(textOf(cause), { cause });
  const status = $metadata?.httpStatusCode;
  if (status !== undefined && status < 500) return cause;
  // Without a status, what was sent got no answer, or nothing was sent since the client could not sign.
  const unsent = name === "CredentialsProviderError" || name === "TokenProviderError";
  return unsent ? cause : new OutcomeUnknown(textOf(cause), { cause });
}

/** What a function error says; one that is not the limiter's own is a function that ended or ran out of time. */
function failure(report: unknown): TollgateError {
  const { errorType, errorMessage = "the function failed" } = (report ?? {}) as { errorType?: unknown; errorMessage?: unknown };
  if (errorType === "BadRequest") return new BadRequest(String(errorMessage));
  if (errorType === "LimiterUnavailable") return new Unavailable(String(errorMessage));
  return new OutcomeUnknown(`${String(errorType)}: ${String(errorMessage)}`);
}
