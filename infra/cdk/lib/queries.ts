import { Fn, Lazy } from "aws-cdk-lib";
import * as logs from "aws-cdk-lib/aws-logs";
import type { Construct } from "constructs";
import { queries } from "./generated.json";

/** Saved queries of Logs Insights on the log groups of the functions that decide; word for word those of the SAM template. */
export function makeQueries(scope: Construct, groups: () => logs.ILogGroup[]): void {
  for (const { id, name, query } of queries) {
    new logs.CfnQueryDefinition(scope, id, {
      name: Fn.sub(name),
      queryString: query,
      // Later, since functions are added.
      logGroupNames: Lazy.list({ produce: () => groups().map((of) => of.logGroupName) }),
    });
  }
}
