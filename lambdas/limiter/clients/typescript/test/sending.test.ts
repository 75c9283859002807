/** What is sent, how often, and what each failure is told as; against real sockets and the SDK's own classes. */
import assert from "node:assert/strict";
import { createServer } from "node:http";
import { createServer as createSocket, type AddressInfo } from "node:net";
import { test } from "node:test";
import { InvokeCommand, LambdaClient } from "@aws-sdk/client-lambda";
import {
  BadRequest, direct, http, OutcomeUnknown, Refused, Throttled, TollgateError, Unavailable, Unreachable, type Limiter,
} from "../src/index.js";

const ALLOWED = { allowed: true, limit: "a", remaining: 1, retry_after_ms: 0, reset_ms: 5, source: "table" };
const WANTED = { limit: "a", key: { user: "alice" } };

interface Seen {
  path: string;
  body: string;
  headers: NodeJS.Dict<string | string[]>;
}
type Answer = [status: number, body: unknown, headers?: Record<string, string>];

/** A server that answers so, one request after the other; status 0 hangs up. */
async function serving(script: Answer[], use: (url: string, seen: Seen[]) => Promise<void>): Promise<void> {
  const seen: Seen[] = [];
  const server = createServer((request, response) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      seen.push({ path: request.url ?? "", body: Buffer.concat(chunks).toString(), headers: request.headers });
      const [status, body, headers = {}] = script.shift() ?? [500, "more requests than answers"];
      if (status === 0) return void request.socket.destroy();
      response.writeHead(status, { "content-type": "application/json", ...headers }).end(JSON.stringify(body));
    });
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  try {
    await use(`http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen);
  } finally {
    server.closeAllConnections();
    server.close();
  }
}

/** An address that nobody listens at. */
async function nobody(): Promise<string> {
  let url = "";
  await serving([], async (at) => void (url = at));
  return url;
}

const credentials = { accessKeyId: "local", secretAccessKey: "local" };
const invoking = (url: string, timeoutMs?: number): Limiter =>
  direct(new LambdaClient({ endpoint: url, region: "us-east-1", credentials, maxAttempts: 1 }), InvokeCommand, {
    functionName: "limiter",
    ...(timeoutMs === undefined ? {} : { timeoutMs }),
  });

async function fails(limiter: Limiter, kind: new (...args: never[]) => Error): Promise<Error> {
  try {
    await limiter.decide(WANTED);
  } catch (error) {
    assert.ok(error instanceof Error && error.constructor === kind, String(error));
    return error;
  }
  throw new assert.AssertionError({ message: "a decision" });
}

const failed = { "x-amz-function-error": "Unhandled" };
const thrown = (type: string): Record<string, string> => ({ "x-amzn-errortype": type });

test("the SDK's client sends the question", async () => {
  await serving([[200, ALLOWED], [200, [ALLOWED]]], async (url, seen) => {
    const limiter = invoking(url);
    assert.equal((await limiter.decide({ ...WANTED, cost: 2, plan: "pro" })).allowed, true);
    assert.equal((await limiter.decideAll([WANTED])).length, 1);
    assert.equal(seen[0]?.path, "/2015-03-31/functions/limiter/invocations");
    assert.deepEqual(JSON.parse(seen[0]?.body ?? ""), { ...WANTED, cost: 2, plan: "pro" });
    assert.deepEqual(JSON.parse(seen[1]?.body ?? ""), [{ ...WANTED, cost: 1 }]);
  });
});

test("by invocation, each answer that is no decision has its error and is asked once", async () => {
  const cases: [Answer, new (...args: never[]) => Error][] = [
    [[200, { errorType: "BadRequest", errorMessage: "unknown limit" }, failed], BadRequest],
    [[200, { errorType: "LimiterUnavailable", errorMessage: "x" }, failed], Unavailable],
    [[200, { errorType: "Sandbox.Timedout", errorMessage: "Task timed out" }, failed], OutcomeUnknown],
    [[200, { errorType: "Runtime.ExitError", errorMessage: "exit status 1" }, failed], OutcomeUnknown],
    [[200, "no decision"], OutcomeUnknown],
    [[500, { message: "x" }, thrown("ServiceException")], OutcomeUnknown],
    [[0, ""], OutcomeUnknown],
  ];
  for (const [answer, kind] of cases) {
    await serving([answer], async (url, seen) => {
      const error = await fails(invoking(url), kind);
      assert.equal(error instanceof TollgateError && error.mayHaveCharged, kind !== BadRequest);
      assert.equal(seen.length, 1);
    });
  }
});

test("the SDK's own errors pass as they are", async () => {
  await serving([[403, { message: "not authorized" }, thrown("AccessDeniedException")]], async (url) => {
    await assert.rejects(invoking(url).decide(WANTED), { name: "AccessDeniedException" });
  });
  const unsigned = Object.assign(new Error("no credentials"), { name: "CredentialsProviderError" });
  const client = new LambdaClient({ region: "us-east-1", maxAttempts: 1, credentials: () => Promise.reject(unsigned) });
  await assert.rejects(direct(client, InvokeCommand, { functionName: "limiter" }).decide(WANTED), unsigned);
});

test("what was throttled is asked again a few times", async () => {
  const throttled: Answer = [429, { message: "Rate Exceeded." }, thrown("TooManyRequestsException")];
  await serving([throttled, throttled, throttled], async (url, seen) => {
    const error = await fails(invoking(url), Throttled);
    assert.equal((error as Throttled).mayHaveCharged, false);
    assert.equal(seen.length, 3);
  });
  await serving([[429, { message: "Too Many Requests" }], [200, ALLOWED]], async (url, seen) => {
    assert.equal((await http({ url }).decide(WANTED)).allowed, true);
    assert.equal(seen[0]?.body, seen[1]?.body);
  });
  await serving([throttled], async (url, seen) => {
    await fails(http({ url, throttleRetries: 0 }), Throttled);
    assert.equal(seen.length, 1);
  });
});

test("nobody there is unreachable", async () => {
  const url = await nobody();
  for (const limiter of [http({ url }), invoking(url)]) {
    assert.equal(((await fails(limiter, Unreachable)) as Unreachable).mayHaveCharged, false);
  }
});

test("a timeout may have been charged", async () => {
  const silent = createSocket();
  await new Promise<void>((resolve) => silent.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(silent.address() as AddressInfo).port}`;
  const sockets: { destroy(): void }[] = [];
  silent.on("connection", (socket) => sockets.push(socket));
  for (const limiter of [http({ url, timeoutMs: 100 }), invoking(url, 100)]) {
    assert.equal(((await fails(limiter, OutcomeUnknown)) as OutcomeUnknown).mayHaveCharged, true);
  }
  sockets.forEach((socket) => socket.destroy());
  silent.close();
});

test("over HTTP, each answer that is no decision has its error and is asked once", async () => {
  const cases: [Answer, new (...args: never[]) => Error][] = [
    [[400, { error: "bad_request", message: "unknown limit" }], BadRequest],
    [[403, { error: "forbidden", message: "sign it" }], Refused],
    [[403, { Message: "Forbidden" }], Refused],
    [[404, null], Refused],
    [[500, { message: "Internal Server Error" }], OutcomeUnknown],
    [[502, { message: "Bad Gateway" }], OutcomeUnknown],
    [[503, { error: "limiter_unavailable", message: "x" }], Unavailable],
    [[503, { message: "Service Unavailable" }], OutcomeUnknown],
    [[200, { hello: "world" }], OutcomeUnknown],
    [[307, "", { location: "/elsewhere" }], OutcomeUnknown],
    [[0, ""], OutcomeUnknown],
  ];
  for (const [answer, kind] of cases) {
    await serving([answer], async (url, seen) => {
      await fails(http({ url }), kind);
      assert.equal(seen.length, 1, JSON.stringify(answer));
    });
  }
});

test("it is signed by who can", async () => {
  await serving([[200, ALLOWED]], async (url, seen) => {
    const limiter = http({ url: `${url}/`, sign: async (request) => ({ ...request.headers, authorization: `signed ${request.url}` }) });
    await limiter.decide(WANTED);
    assert.equal(seen[0]?.path, "/v1/decisions");
    assert.equal(seen[0]?.headers["authorization"], `signed ${url}/v1/decisions`);
    assert.equal(seen[0]?.headers["content-type"], "application/json");
  });
});
