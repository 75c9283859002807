import * as apigateway from "aws-cdk-lib/aws-apigateway";
import { Duration } from "aws-cdk-lib";
import type * as lambda from "aws-cdk-lib/aws-lambda";
import { Construct } from "constructs";
import type { Tollgate } from "./tollgate";

/** What the gateway lets an API key of a plan do, loosely: a net beneath the policy's limits by API key. */
export interface UsagePlanOptions {
  readonly requestsPerSecond: number;
  readonly burst: number;
}

/** Properties of {@link TollgateAuthorizer}. */
export interface TollgateAuthorizerProps {
  /** Whose table and policy it charges. */
  readonly tollgate: Tollgate;
  /** The API, of which denials become 429. */
  readonly api: apigateway.RestApi;
  /** Issuer URL of the tokens. */
  readonly issuer: string;
  /** Who a token must be for. */
  readonly audience: string;
  /** Usage plans by the policy's names of plans; methods then also need `apiKeyRequired`. @default none */
  readonly usagePlans?: Record<string, UsagePlanOptions>;
}

const JSON_TYPE = "application/json";
const QUOTA = "https://iana.org/assignments/http-problem-types#quota-exceeded";

/** The authorizer of a REST API: whose token it is (401), and whether he is within his limits (429). */
export class TollgateAuthorizer extends Construct {
  /** The function. */
  readonly handler: lambda.Function;
  /** The usage plans, by name. */
  readonly usagePlans: Record<string, apigateway.UsagePlan> = {};
  /** What methods name. */
  readonly authorizer: apigateway.RequestAuthorizer;

  constructor(scope: Construct, id: string, props: TollgateAuthorizerProps) {
    super(scope, id);
    const { api, tollgate } = props;
    this.handler = tollgate.addFunction("Authorizer", {
      binary: "authorizer",
      description: "Whose token it is, and whether he is within his limits",
      environment: { TOLLGATE_ISSUER: props.issuer, TOLLGATE_AUDIENCE: props.audience },
      errorIsAnswer: true,
    });
    tollgate.showRestApi(api.restApiName);
    // Never cached: each result is a charge, and of one request.
    this.authorizer = new apigateway.RequestAuthorizer(this, "Authorizer", {
      handler: this.handler,
      identitySources: [apigateway.IdentitySource.header("Authorization")],
      resultsCacheTtl: Duration.seconds(0),
    });
    for (const [name, answer] of Object.entries(answers)) {
      const { type, statusCode, headers, body } = answer;
      const responseHeaders = { "Cache-Control": "'no-store'", ...headers };
      api.addGatewayResponse(name, { type, statusCode, responseHeaders, templates: { [JSON_TYPE]: body } });
    }
    for (const [name, { requestsPerSecond, burst }] of Object.entries(props.usagePlans ?? {})) {
      const throttle = { rateLimit: requestsPerSecond, burstLimit: burst };
      this.usagePlans[name] = api.addUsagePlan(`${name}UsagePlan`, { throttle, apiStages: [{ stage: api.deploymentStage }] });
    }
  }
}

const unavailable = JSON.stringify({
  type: "about:blank",
  title: "Service Unavailable",
  status: 503,
  error: "limiter_unavailable",
  message: "Try again shortly.",
});

/** A gateway response has one status for all denials. Nothing but a limit denies, so a denial is 429; what nobody knows is 503. */
const answers = {
  Denied: {
    type: apigateway.ResponseType.ACCESS_DENIED,
    statusCode: "429",
    headers: { "Retry-After": "context.authorizer.retryAfter" },
    // A number, so not in the quotes that JSON.stringify would give it.
    body:
      `{"type":"${QUOTA}","title":"Too Many Requests","status":429,` +
      '"error":"rate_limited","message":"Too many requests.","retryAfter":$context.authorizer.retryAfter}',
  },
  Unauthorized: {
    type: apigateway.ResponseType.UNAUTHORIZED,
    statusCode: "401",
    headers: { "WWW-Authenticate": "'Bearer'" },
    body: '{"type":"about:blank","title":"Unauthorized","status":401,"error":"unauthenticated","message":"Sign in first."}',
  },
  Undecided: {
    type: apigateway.ResponseType.AUTHORIZER_FAILURE,
    statusCode: "503",
    headers: { "Retry-After": "'1'" },
    body: unavailable,
  },
  Failed: {
    type: apigateway.ResponseType.AUTHORIZER_CONFIGURATION_ERROR,
    statusCode: "503",
    headers: { "Retry-After": "'1'" },
    body: unavailable,
  },
  Throttled: {
    type: apigateway.ResponseType.THROTTLED,
    statusCode: "429",
    headers: { "Retry-After": "'1'" },
    body: '{"type":"about:blank","title":"Too Many Requests","status":429,"error":"rate_limited","message":"Too many requests."}',
  },
};
