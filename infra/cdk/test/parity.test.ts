/** Whoever deploys with the CDK gets what the SAM template deploys; what differs on purpose is told here. */
import { Template } from "aws-cdk-lib/assertions";
import * as assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import * as path from "node:path";
import { test } from "node:test";
import { parse } from "yaml";
import { apiStack, edgeStack } from "../example/app";
import { dashboard } from "../lib/generated.json";
import { type Fields, readTemplate, type Resources, samResources } from "./sam";
import { alarms, all, functions, managed, queues, table } from "./shape";
import { artifacts, resources, strictApp, tollgate } from "./support";

/** What the example is deployed with, as parameters. */
const PARAMETERS = {
  KeySecretsParameter: "/tollgate/keys",
  UserPoolId: "eu-central-1_AbCdEf",
  SmsOriginationIdentity: "pool-0123",
  SmsProtectConfigurationId: "protect-0123",
  EmailFrom: "codes@example.com",
  JwtIssuer: "https://cognito-idp.eu-central-1.amazonaws.com/eu-central-1_AbCdEf",
  JwtAudience: "client",
  RestApi: "on",
  UsagePlans: "on",
  MfaKeyArn: "arn:aws:kms:eu-central-1:123456789012:key/0",
  KeepOut: "on",
  WebhookSecretArn: "arn:aws:secretsmanager:eu-central-1:123456789012:secret:webhook",
};

const app = strictApp();
const cdk = resources(Template.fromStack(apiStack(app, artifacts())));
const sam = samResources(PARAMETERS);

/** The sample's password, which the example has no parameter for. */
const SAMPLE_ONLY = "SAMPLE_API_PASSWORD_PARAMETER";

test("functions have the same settings, variables and permissions", () => {
  const expected = functions(sam) as Record<string, { variables: string[]; constants: Record<string, string> }>;
  for (const { variables, constants } of Object.values(expected)) {
    variables.splice(0, variables.length, ...variables.filter((name) => name !== SAMPLE_ONLY));
    delete constants[SAMPLE_ONLY];
  }
  assert.equal(Object.keys(expected).length, 8);
  assert.deepEqual(functions(cdk), expected);
});

test("the table is the same, also with each of its options", () => {
  assert.deepEqual(table(cdk), table(sam));
  const options = { recoveryDays: 7, deletionProtection: false, encryption: "created", warm: { readUnits: 20_000, writeUnits: 9_000 } } as const;
  const policy = { PolicyFrom: "ssm", PolicyParameter: "/tollgate/policy" };
  const parameters = { ...policy, TableRecoveryDays: 7, TableDeletionProtection: "false", TableEncryption: "created", WarmReadUnits: 20_000, WarmWriteUnits: 9_000 };
  const [ours, theirs] = [resources(tollgate({ table: options })), samResources(parameters)];
  assert.deepEqual(table(ours), table(theirs));
  assert.equal(table(theirs).encryption, "AWS::KMS::Key");
  const limiter = (of: Resources) => (functions(of)["Decisions for callers in any language"] as { may: string[] }).may;
  assert.deepEqual(limiter(ours), limiter(theirs));
  assert.ok(limiter(ours).some((may) => may.includes("kms:Decrypt") && may.includes("kms:ViaService")));
  const unprotected = [tollgate({ table: { recoveryDays: 0 } }), samResources({ TablePointInTimeRecovery: "false" })] as const;
  assert.deepEqual(table(resources(unprotected[0])), table(unprotected[1]));
});

test("alarms watch the same, and the dashboard is the same text", () => {
  assert.equal(Object.keys(alarms(sam)).length, 11);
  assert.deepEqual(alarms(cdk), alarms(sam));
  const body = (of: Resources) => {
    const shown = Object.values(of).find(({ Type }) => Type === "AWS::CloudWatch::Dashboard");
    return (shown?.Properties.DashboardBody as Fields)["Fn::Sub"] as [string, Fields];
  };
  const [[ours, values], [theirs]] = [body(cdk), body(sam)];
  assert.equal(ours, theirs);
  assert.equal(ours, dashboard);
  // Every name in it has a value.
  const names = [...ours.matchAll(/\$\{(\w+)\}/g)].map(([, name]) => name as string);
  assert.deepEqual([...new Set(names)].filter((name) => !(name in values)), []);
  // And it is JSON, whatever is put in.
  JSON.parse(ours.replaceAll(/\$\{[\w:]+\}/g, "1"));
});

test("whether a REST API wants keys is in force as soon as it is deployed", () => {
  // A deployment is a snapshot: one that stays the same resource would leave the stage as it was.
  const deployed = (UsagePlans: string) => {
    const of = samResources({ ...PARAMETERS, UsagePlans });
    const [id, ...others] = Object.keys(of).filter((id) => of[id]?.Type === "AWS::ApiGateway::Deployment");
    const [method] = Object.values(of).filter(({ Type }) => Type === "AWS::ApiGateway::Method");
    assert.deepEqual(others, []);
    assert.deepEqual(of.SampleRestStage?.Properties.DeploymentId, { Ref: id });
    return { id, keys: method?.Properties.ApiKeyRequired };
  };
  const [without, with_] = [deployed("off"), deployed("on")];
  assert.deepEqual([without.keys, with_.keys], [false, true]);
  assert.notEqual(without.id, with_.id);
});

test("queues, metric filters, schedules and what callers are given are the same", () => {
  assert.deepEqual(Object.values(queues(cdk)).sort(), Object.values(queues(sam)).sort());
  for (const [type, fields] of [
    ["AWS::Logs::MetricFilter", ["FilterPattern", "MetricTransformations"]],
    ["AWS::Logs::QueryDefinition", ["Name", "QueryString"]],
    ["AWS::ApiGateway::UsagePlan", ["Throttle"]],
    ["AWS::ApiGateway::GatewayResponse", ["ResponseType", "StatusCode", "ResponseParameters"]],
  ] as const) {
    assert.notEqual(all(cdk, type, ...fields).length, 0);
    assert.deepEqual(all(cdk, type, ...fields), all(resolved(sam), type, ...fields), type);
  }
  // SAM's shorthand for these is on the function.
  assert.deepEqual(all(cdk, "AWS::Lambda::Url", "AuthType"), ['"AWS_IAM"']);
  assert.deepEqual(sam.LimiterFunction?.Properties.FunctionUrlConfig, { AuthType: "AWS_IAM" });
  assert.deepEqual(managed(cdk), managed(sam));
  assert.deepEqual(all(cdk, "AWS::Events::Rule", "ScheduleExpression"), ['"rate(1 minute)"']);
  const [event] = Object.values((sam.SentinelFunction?.Properties.Events ?? {}) as Record<string, Fields>);
  assert.equal((event?.Properties as Fields).Schedule, "rate(1 minute)");
});

/** With the figures of mappings in place. */
function resolved(of: Resources): Resources {
  const { Mappings } = readTemplate();
  const find = (value: unknown): unknown => {
    if (Array.isArray(value)) {
      return value.map(find);
    }
    if (typeof value === "object" && value !== null) {
      const path = (value as Fields)["Fn::FindInMap"] as string[] | undefined;
      return path
        ? path.reduce((at: unknown, key) => (at as Fields)[key], Mappings)
        : Object.fromEntries(Object.entries(value).map(([key, one]) => [key, find(one)]));
    }
    return value;
  };
  return find(of) as Resources;
}

test("paths go to the same functions, and the same of them without a token", () => {
  const routes = (of: Resources) => all(of, "AWS::ApiGatewayV2::Route", "RouteKey", "AuthorizationType");
  assert.deepEqual(routes(cdk), routes(sam));
});

test("the edge is that of infra/edge.yaml", () => {
  const ours = resources(Template.fromStack(edgeStack(strictApp())));
  const file = path.join(__dirname, "../../../edge.yaml");
  const theirs = (parse(readFileSync(file, "utf8")) as { Resources: Resources }).Resources;
  const types = (of: Resources) => Object.values(of).map(({ Type }) => Type).sort();
  assert.deepEqual(types(ours), types(theirs));
  for (const type of types(theirs)) {
    const only = (of: Resources) => neutral(Object.values(of).find(({ Type }) => Type === type)?.Properties);
    assert.deepEqual(only(ours), only(theirs), type);
  }
});

/** Without what is a parameter in one, and without the names that references go by. */
function neutral(value: unknown): unknown {
  if (Array.isArray(value)) {
    return value.map(neutral);
  }
  if (typeof value === "object" && value !== null) {
    const fields = value as Fields;
    if ("Ref" in fields || "Fn::GetAtt" in fields || "Fn::Sub" in fields || "Fn::Join" in fields) {
      return "a reference";
    }
    const put = Object.entries(fields).map(([key, one]) => [key, GIVEN.includes(key) ? "given" : neutral(one)]);
    return Object.fromEntries(put);
  }
  return value;
}
const GIVEN = ["RetentionInDays", "DomainName"];
