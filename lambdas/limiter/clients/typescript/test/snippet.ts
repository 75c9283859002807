import { InvokeCommand, LambdaClient } from "@aws-sdk/client-lambda";
import { direct, TollgateError } from "tollgate-client";

// The SDK must not send a charge again by itself; what was throttled, the limiter's client does.
const limiter = direct(new LambdaClient({ maxAttempts: 1 }), InvokeCommand, { functionName: "limiter" });
try {
  const decision = await limiter.decide({ limit: "orders", key: { user: "alice" }, cost: 1, plan: "free" });
  if (!decision.allowed) console.log(`come back in ${decision.retry_after_ms} ms`);
} catch (error) {
  if (!(error instanceof TollgateError)) throw error;
  console.log(`nobody decided; alice ${error.mayHaveCharged ? "may have been" : "was not"} charged: ${error.message}`);
}
