import { Aws, Duration } from "aws-cdk-lib";
import * as events from "aws-cdk-lib/aws-events";
import * as targets from "aws-cdk-lib/aws-events-targets";
import * as iam from "aws-cdk-lib/aws-iam";
import * as lambda from "aws-cdk-lib/aws-lambda";
import type { Construct } from "constructs";
import { type Common, makeFunction } from "./functions";
import { items } from "./permissions";

/** What runs every minute: it judges who has messages sent and sees what was counted of that, and keeps addresses out in front. */
export function makeSentinel(scope: Construct, common: Common, table: string, keepsOut: boolean): lambda.Function {
  const sentinel = makeFunction(scope, "Sentinel", common, {
    binary: "sentinel",
    description: "Judges every minute who has messages sent and never types a code, and keeps addresses out in front",
    statements: [
      items(table, ["GetItem", "BatchGetItem"], { like: ["1/pumping/*", "1/warm-up"] }),
      items(table, ["UpdateItem"], { are: ["1/pumping/ladder"] }),
      ...(keepsOut ? keepOut(table) : []),
    ],
    once: true,
  });
  new events.Rule(scope, "SentinelSchedule", {
    description: "The sentinel",
    schedule: events.Schedule.rate(Duration.minutes(1)),
    targets: [new targets.LambdaFunction(sentinel)],
  });
  return sentinel;
}

/** Who is listed, and the IP sets of any prefix; those of CloudFront are in us-east-1. A list has no resource to name. */
function keepOut(table: string): iam.PolicyStatement[] {
  return [
    items(table, ["BatchGetItem", "UpdateItem"], { like: ["1/edge/kept-out.*"] }),
    new iam.PolicyStatement({ actions: ["wafv2:ListIPSets"], resources: ["*"] }),
    new iam.PolicyStatement({
      actions: ["wafv2:GetIPSet", "wafv2:UpdateIPSet", "wafv2:ListTagsForResource"],
      resources: [`arn:${Aws.PARTITION}:wafv2:*:${Aws.ACCOUNT_ID}:*/ipset/*kept-out-ipv*`],
    }),
  ];
}
