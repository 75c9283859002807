import { Duration, RemovalPolicy } from "aws-cdk-lib";
import * as iam from "aws-cdk-lib/aws-iam";
import * as lambda from "aws-cdk-lib/aws-lambda";
import * as logs from "aws-cdk-lib/aws-logs";
import type { Construct } from "constructs";
import * as path from "node:path";
import type { Place } from "./policy";

/** A function of the workspace. */
export interface FunctionSpec {
  /** The folder under `artifacts`, named as the binary is. */
  readonly binary: string;
  readonly description: string;
  /** Beside what all have. */
  readonly environment?: Record<string, string>;
  /** Beside its log group, X-Ray and `places`. */
  readonly statements: iam.PolicyStatement[];
  /** Whether it has the policy and the secrets, too. @default true */
  readonly reads?: boolean;
  readonly reservedConcurrency?: number;
  /** No second try of an event, and none that is older than a minute. */
  readonly once?: boolean;
}

/** What all functions have in common. */
export interface Common {
  readonly artifacts: string;
  readonly environment: Record<string, string>;
  readonly places: Place[];
  /** What whoever reads or writes the table also needs. */
  readonly table: iam.PolicyStatement[];
  readonly memoryMb: number;
  readonly logRetention: logs.RetentionDays;
}

/** Makes a function, its role and its log group. Each has a role of its own, and named actions only. */
export function makeFunction(scope: Construct, id: string, common: Common, spec: FunctionSpec): lambda.Function {
  const group = new logs.LogGroup(scope, `${id}Logs`, {
    retention: common.logRetention,
    removalPolicy: RemovalPolicy.DESTROY,
  });
  const role = new iam.Role(scope, `${id}Role`, {
    description: `What this function may do: ${spec.description}`,
    assumedBy: new iam.ServicePrincipal("lambda.amazonaws.com"),
  });
  const places = spec.reads ?? true ? common.places : [];
  const statements = [
    ...spec.statements,
    ...places.flatMap((place) => place.statements),
    ...(spec.reads ?? true ? common.table : []),
    new iam.PolicyStatement({ actions: ["logs:CreateLogStream", "logs:PutLogEvents"], resources: [group.logGroupArn] }),
  ];
  statements.forEach((statement) => role.addToPrincipalPolicy(statement));
  const made = new lambda.Function(scope, `${id}Function`, {
    description: spec.description,
    runtime: lambda.Runtime.PROVIDED_AL2023,
    handler: "bootstrap",
    architecture: lambda.Architecture.ARM_64,
    code: lambda.Code.fromAsset(path.join(common.artifacts, spec.binary)),
    memorySize: common.memoryMb,
    timeout: Duration.seconds(10),
    tracing: lambda.Tracing.ACTIVE,
    layers: places.flatMap((place) => place.layers),
    environment: { ...common.environment, ...Object.assign({}, ...common.places.map((place) => place.environment)), ...spec.environment },
    loggingFormat: lambda.LoggingFormat.JSON,
    logGroup: group,
    role,
    reservedConcurrentExecutions: spec.reservedConcurrency,
    ...(spec.once && { retryAttempts: 0, maxEventAge: Duration.minutes(1) }),
  });
  return made;
}
