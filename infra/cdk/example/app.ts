/** The sample API with everything on, and its edge in front: what the SAM template and `infra/edge.yaml` deploy. */
import { App, Stack } from "aws-cdk-lib";
import * as apigateway from "aws-cdk-lib/aws-apigateway";
import * as apigwv2 from "aws-cdk-lib/aws-apigatewayv2";
import { HttpJwtAuthorizer } from "aws-cdk-lib/aws-apigatewayv2-authorizers";
import { HttpLambdaIntegration } from "aws-cdk-lib/aws-apigatewayv2-integrations";
import * as kms from "aws-cdk-lib/aws-kms";
import { readFileSync } from "node:fs";
import * as path from "node:path";
import { type EdgeRules, Tollgate, TollgateAuthorizer, TollgateEdge } from "../lib";

/** The top of the repository, from `dist/example`. */
const TOP = path.join(__dirname, "../../../..");
const ISSUER = "https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_AbCdEf";
const AUDIENCE = "client";
const OPEN: [string, apigwv2.HttpMethod][] = [
  ["/api/{proxy+}", apigwv2.HttpMethod.OPTIONS],
  ["/api/auth/login", apigwv2.HttpMethod.POST],
  ["/healthz", apigwv2.HttpMethod.GET],
];

/** The stack of the API. `artifacts` is where the functions are. */
export function apiStack(app: App, artifacts: string): Stack {
  const stack = new Stack(app, "tollgate", { env: { region: "eu-central-1" } });
  const account = `arn:${stack.partition}:secretsmanager:${stack.region}:${stack.account}:secret:`;
  const key = kms.Key.fromKeyArn(stack, "MfaKey", `arn:aws:kms:eu-central-1:123456789012:key/${"0".repeat(8)}-0000-0000-0000-${"0".repeat(12)}`);
  const tollgate = new Tollgate(stack, "Tollgate", {
    artifacts,
    policy: { file: path.join(TOP, "infra/tollgate.toml") },
    keySecrets: { parameter: "/tollgate/keys" },
    keepOut: true,
    otp: {
      userPoolId: "eu-central-1_AbCdEf",
      sms: { originationIdentity: "pool-0123", protectConfiguration: "protect-0123" },
      email: { from: "codes@example.com" },
    },
    mfa: { key },
    webhook: { secretArn: `${account}tollgate/webhook-AbCdEf` },
  });
  const sampleApi = tollgate.addHandler("SampleApi", {
    binary: "sample-api",
    description: "An API that limits its own callers",
  });

  const api = new apigwv2.HttpApi(stack, "Api");
  const authorizer = new HttpJwtAuthorizer("Jwt", ISSUER, { jwtAudience: [AUDIENCE] });
  tollgate.addRoutes(api, authorizer);
  const integration = new HttpLambdaIntegration("SampleApi", sampleApi);
  api.addRoutes({ path: "/api/{proxy+}", methods: [apigwv2.HttpMethod.ANY], integration, authorizer });
  for (const [open, method] of OPEN) {
    api.addRoutes({ path: open, methods: [method], integration });
  }

  const restApi = new apigateway.RestApi(stack, "RestApi", { cloudWatchRole: false, deployOptions: { stageName: "live" } });
  const usagePlans = { free: { requestsPerSecond: 3.4, burst: 40 }, pro: { requestsPerSecond: 3.4, burst: 40 } };
  const charging = new TollgateAuthorizer(stack, "Authorizer", { tollgate, api: restApi, issuer: ISSUER, audience: AUDIENCE, usagePlans });
  const proxy = restApi.root.addResource("api").addResource("{proxy+}");
  proxy.addMethod("ANY", new apigateway.LambdaIntegration(sampleApi), { authorizer: charging.authorizer, apiKeyRequired: true });
  return stack;
}

/** The stack of the edge, with the rules of `tollgate waf render --scope cloudfront --format cdk`. */
export function edgeStack(app: App): Stack {
  const stack = new Stack(app, "tollgate-edge", { env: { region: "us-east-1" } });
  const rules = JSON.parse(readFileSync(path.join(TOP, "infra/cdk/example/edge.json"), "utf8")) as EdgeRules;
  new TollgateEdge(stack, "Edge", { rules, logRetention: 30, origin: "api.example.com" });
  return stack;
}

if (require.main === module) {
  const app = new App({ context: { "@aws-cdk/core:validateAgainstDefaultRules": true } });
  apiStack(app, process.env.TOLLGATE_ARTIFACTS ?? path.join(TOP, "target/lambda"));
  edgeStack(app);
  app.synth();
}
