/** Against the limiter itself: `TOLLGATE_URL` is a `tollgate dev`, `TOLLGATE_LAMBDA_URL` has Lambda's API with the function `limiter`. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { InvokeCommand, LambdaClient } from "@aws-sdk/client-lambda";
import { BadRequest, direct, http, type Limiter } from "../src/index.js";

async function speaks(limiter: Limiter, user: string): Promise<void> {
  const few = { limit: "few", key: { user } };
  const first = await limiter.decide(few);
  assert.deepEqual([first.allowed, first.remaining, first.retry_after_ms], [true, 1, 0]);
  assert.equal((await limiter.decide(few)).allowed, true);
  const denied = await limiter.decide(few);
  assert.ok(!denied.allowed && (denied.retry_after_ms ?? 0) > 0);
  const never = await limiter.decide({ ...few, cost: 3 });
  assert.deepEqual([never.allowed, never.never_fits, never.retry_after_ms], [false, true, null]);
  const orders = { limit: "orders", key: { user }, plan: "pro" };
  const [order, other] = await limiter.decideAll([orders, few]);
  assert.deepEqual([order?.allowed, other?.allowed, order?.retry_after_ms], [false, false, 0]);
  assert.equal((await limiter.decide(orders)).remaining, 99, "nothing was charged");
  await assert.rejects(limiter.decide({ ...few, limit: "order" }), (error) => error instanceof BadRequest && /`orders`/.test(error.message));
}

const { TOLLGATE_URL, TOLLGATE_LAMBDA_URL, TOLLGATE_USER } = process.env;
const skip = (url: string | undefined): string | false => url === undefined && "its variable is not set";

test("over HTTP", { skip: skip(TOLLGATE_URL) }, () => speaks(http({ url: TOLLGATE_URL ?? "", timeoutMs: 60_000 }), "typescript-http"));

test("by direct invocation", { skip: skip(TOLLGATE_LAMBDA_URL) }, () => {
  const credentials = { accessKeyId: "local", secretAccessKey: "local" };
  const client = new LambdaClient({ endpoint: TOLLGATE_LAMBDA_URL ?? "", region: "us-east-1", credentials, maxAttempts: 1 });
  // The test that starts the function tells a name that nobody else has.
  return speaks(direct(client, InvokeCommand, { functionName: "limiter", timeoutMs: 60_000 }), TOLLGATE_USER ?? "");
});

test("what the documentation shows", { skip: skip(TOLLGATE_LAMBDA_URL) }, async (context) => {
  const local = { AWS_ACCESS_KEY_ID: "local", AWS_SECRET_ACCESS_KEY: "local", AWS_REGION: "us-east-1" };
  Object.assign(process.env, local, { AWS_ENDPOINT_URL_LAMBDA: TOLLGATE_LAMBDA_URL });
  const said = context.mock.method(console, "log", () => undefined);
  await import("./snippet.js");
  const lines = said.mock.calls.map((call) => String(call.arguments[0]));
  assert.ok(lines.every((line) => !line.startsWith("nobody decided")), lines.join("\n"));
});
