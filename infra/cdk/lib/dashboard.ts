import { Aws, Fn, Lazy, Stack } from "aws-cdk-lib";
import * as cloudwatch from "aws-cdk-lib/aws-cloudwatch";
import type { IFunction } from "aws-cdk-lib/aws-lambda";
import type { ILogGroup } from "aws-cdk-lib/aws-logs";
import type { Construct } from "constructs";
import { dashboard, prices } from "./generated.json";

/** What the dashboard shows. */
export interface Shown {
  readonly namespace: string;
  readonly webAcl: string;
  readonly table: string;
  readonly memoryMb: number;
  readonly functions: () => IFunction[];
  /** Log groups of the functions that decide. */
  readonly logGroups: () => ILogGroup[];
  readonly httpApi: () => string | undefined;
  readonly restApi: () => string | undefined;
}

/** What each layer has caught, above what it has cost; word for word that of the SAM template. */
export function makeDashboard(scope: Construct, shown: Shown): void {
  // Later, since functions and APIs are added.
  const lazy = (produce: () => string) => Lazy.string({ produce });
  const million = prices.PerMillion;
  // A name that no API has is no data.
  const none = "none";
  const values = {
    MetricsNamespace: shown.namespace,
    EdgeWebAcl: shown.webAcl,
    Table: shown.table,
    MemoryMb: String(shown.memoryMb),
    HttpApi: lazy(() => shown.httpApi() ?? none),
    RestApiName: lazy(() => shown.restApi() ?? none),
    Functions: lazy(() => shown.functions().map((of) => of.functionName).join('\\" OR \\"')),
    LogSources: lazy(() => shown.logGroups().map((of) => `SOURCE '${of.logGroupName}'`).join(" | ")),
    WriteUnitPrice: million.WriteUnits,
    ReadUnitPrice: million.ReadUnits,
    InvocationPrice: million.Invocations,
    HttpRequestPrice: million.HttpRequests,
    RestRequestPrice: million.RestRequests,
    WafRequestPrice: million.WafRequests,
    GigabyteSecondPrice: prices.PerGigabyteSecond.Arm64,
  };
  new cloudwatch.CfnDashboard(scope, "Dashboard", {
    dashboardName: `${Stack.of(scope).stackName}-${Aws.REGION}`,
    dashboardBody: Fn.sub(dashboard as string, values),
  });
}
