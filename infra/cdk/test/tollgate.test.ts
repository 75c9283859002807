/** What the constructs promise beside what the SAM template has. */
import { App, Stack } from "aws-cdk-lib";
import { Match, Template } from "aws-cdk-lib/assertions";
import * as assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import * as path from "node:path";
import { test } from "node:test";
import { type EdgeRules, TollgateEdge } from "../lib";
import { apiStack, edgeStack } from "../example/app";
import { artifacts, resources, strictApp, tollgate } from "./support";

const RULES = JSON.parse(readFileSync(path.join(__dirname, "../../example/edge.json"), "utf8")) as EdgeRules;

test("the example passes the CDK's own rules, which are errors", () => {
  const app = strictApp();
  apiStack(app, artifacts());
  edgeStack(app);
  app.synth();
});

test("those rules find what is wrong", () => {
  const app = strictApp();
  const stack = new Stack(app, "wrong", { env: { region: "us-east-1" } });
  new TollgateEdge(stack, "Edge", { rules: RULES }).webAcl.addPropertyOverride("Nonsense", 1);
  assert.throws(() => app.synth(), /[Vv]alidation failed/);
});

test("without options there are a table and a limiter, and no permission on more than these", () => {
  const template = tollgate({});
  template.resourceCountIs("AWS::Lambda::Function", 1);
  template.resourceCountIs("AWS::SQS::Queue", 0);
  template.resourceCountIs("AWS::CloudWatch::Alarm", 4);
  template.hasResource("AWS::DynamoDB::Table", { DeletionPolicy: "Retain", Properties: { DeletionProtectionEnabled: true } });
  for (const [id, { Type, Properties }] of Object.entries(resources(template))) {
    const actions = JSON.stringify(Type === "AWS::IAM::Policy" ? Properties : {}).match(/"[a-z0-9-]+:\*"|"\*:\*"|"Action":"\*"/g);
    assert.equal(actions, null, id);
  }
});

test("each place of a policy is read by the permission for that place alone", () => {
  const reads = (policy: Parameters<typeof tollgate>[0]["policy"], action: string | string[], resource: RegExp, url: string) => {
    const template = tollgate({ policy });
    template.hasResourceProperties("AWS::Lambda::Function", { Environment: { Variables: { TOLLGATE_POLICY: url } } });
    const statement = { Action: action, Effect: "Allow", Resource: Match.anyValue() };
    const [found] = Object.values(
      template.findResources("AWS::IAM::Policy", { Properties: { PolicyDocument: { Statement: Match.arrayWith([statement]) } } }),
    );
    assert.match(JSON.stringify(found), resource);
  };
  reads({ parameter: "/a/b" }, "ssm:GetParameter", /:parameter\/a\/b/, "ssm:/a/b");
  reads({ bucket: "b", key: "k.toml" }, "s3:GetObject", /:s3:::b\/k\.toml/, "s3://b/k.toml");
  const actions = ["appconfig:StartConfigurationSession", "appconfig:GetLatestConfiguration"];
  reads({ application: "a", environment: "e", profile: "p" }, actions, /application\/a\/environment\/e\/configuration\/p/, "appconfig://a/e/p");
});

test("what cannot be is told before anything is deployed", () => {
  assert.throws(() => tollgate({ otp: { userPoolId: "p" } }), /keySecrets/);
  assert.throws(() => tollgate({ table: { warm: { readUnits: 1, writeUnits: 1 } } }), /12000/);
  const edge = (region: string, props: object) => {
    const stack = new Stack(new App(), "edge", { env: { region } });
    return new TollgateEdge(stack, "Edge", { rules: RULES, ...props });
  };
  assert.throws(() => edge("eu-central-1", {}), /us-east-1/);
  assert.throws(() => edge("us-east-1", { resourceArn: "arn" }), /origin, not resourceArn/);
  const regional = { ...RULES, webAcl: { ...RULES.webAcl, scope: "REGIONAL" } };
  assert.throws(() => edge("eu-central-1", { rules: regional, origin: "a.example" }), /scope cloudfront/);
});

test("metrics that are off leave no alarms and no dashboard", () => {
  const template = tollgate({ metrics: false });
  template.resourceCountIs("AWS::CloudWatch::Alarm", 0);
  template.resourceCountIs("AWS::CloudWatch::Dashboard", 0);
  template.hasResourceProperties("AWS::Lambda::Function", { Environment: { Variables: { TOLLGATE_METRICS: "off" } } });
});

test("rules of a policy are taken as they are, with its IP sets in place", () => {
  const stack = new Stack(strictApp(), "edge", { env: { region: "us-east-1" } });
  new TollgateEdge(stack, "Edge", { rules: RULES });
  const template = Template.fromStack(stack);
  const [set] = Object.keys(template.findResources("AWS::WAFv2::IPSet"));
  assert.ok(JSON.stringify(template.toJSON()).includes(`"Arn":{"Fn::GetAtt":["${set}","Arn"]}`));
  assert.ok(!JSON.stringify(template.toJSON()).includes("${Tollgate"));
  template.resourceCountIs("AWS::CloudFront::Distribution", 0);
});
