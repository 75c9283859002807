/** What two templates must agree on, whoever wrote them: told by what names in both, which are descriptions. */
import type { Fields, Json, Resource, Resources } from "./sam";

const of = (resources: Resources, ...types: string[]) => Object.entries(resources).filter(([, { Type }]) => types.includes(Type));
const list = (value: Json | undefined): Json[] => (Array.isArray(value) ? value : value === undefined ? [] : [value]);
const target = (value: Json | undefined): string | undefined => {
  const fields = value as Fields | undefined;
  return (fields?.Ref ?? (fields?.["Fn::GetAtt"] as Json[] | undefined)?.[0]) as string | undefined;
};

/** Functions by their descriptions: settings, names of variables, and what their roles may do. */
export function functions(resources: Resources): Record<string, unknown> {
  const all = of(resources, "AWS::Lambda::Function", "AWS::Serverless::Function");
  return Object.fromEntries(all.map(([id, { Properties: has }]) => [has.Description, shapeOf(resources, id, has)]));
}

function shapeOf(resources: Resources, id: string, has: Fields): unknown {
  const variables = (has.Environment as Fields).Variables as Fields;
  const constant = Object.entries(variables).filter(([, value]) => typeof value !== "object");
  const invoked = of(resources, "AWS::Lambda::EventInvokeConfig").find(([, { Properties }]) => target(Properties.FunctionName) === id);
  const { MaximumRetryAttempts, MaximumEventAgeInSeconds } = (has.EventInvokeConfig ?? invoked?.[1].Properties ?? {}) as Fields;
  const tracing = (has.TracingConfig as Fields | undefined)?.Mode ?? has.Tracing;
  return {
    runtime: has.Runtime,
    handler: has.Handler,
    architectures: has.Architectures,
    memory: has.MemorySize,
    timeout: has.Timeout,
    tracing,
    logFormat: (has.LoggingConfig as Fields).LogFormat,
    concurrency: has.ReservedConcurrentExecutions ?? null,
    retries: MaximumRetryAttempts ?? null,
    age: MaximumEventAgeInSeconds ?? null,
    variables: Object.keys(variables).sort(),
    constants: Object.fromEntries(constant.filter(([name]) => !UNLIKE.includes(name)).map(([name, value]) => [name, String(value)])),
    may: permissions(resources, target(has.Role) as string),
  };
}

/** A secret's ARN is a value in one and put together in the other. */
const UNLIKE = ["TOLLGATE_WEBHOOK_SECRET", "TOLLGATE_MFA_KEY_ARN"];

/** Actions of a role, each with its condition. Log groups and secrets are told by no name that both have. */
function permissions(resources: Resources, role: string): string[] {
  const attached = of(resources, "AWS::IAM::Policy", "AWS::IAM::RolePolicy").filter(([, { Properties }]) =>
    [...list(Properties.Roles), Properties.RoleName].some((one) => target(one) === role),
  );
  const inline = list(resources[role]?.Properties.Policies);
  const documents = [...inline, ...attached.map(([, { Properties }]) => Properties)].map((policy) => (policy as Fields).PolicyDocument as Fields);
  const statements = documents.flatMap((document) => list(document.Statement)) as Fields[];
  const told = statements.flatMap(({ Effect, Action, Condition }) =>
    list(Action).map((action) => `${Effect} ${action} ${canonical(Condition ?? null)}`),
  );
  return [...new Set(told)].sort();
}

/** JSON with sorted keys, and text of CloudFormation without the function around it. */
function canonical(value: Json): string {
  if (Array.isArray(value)) {
    return value.length === 1 ? canonical(value[0] as Json) : `[${value.map(canonical).join()}]`;
  }
  if (typeof value === "object" && value !== null) {
    if ("Fn::Sub" in value) {
      return JSON.stringify(value["Fn::Sub"]);
    }
    if ("Fn::Join" in value) {
      const [, parts] = value["Fn::Join"] as [string, Json[]];
      return JSON.stringify(parts.map((part) => (typeof part === "string" ? part : `\${${target(part)}}`)).join(""));
    }
    return `{${Object.keys(value).sort().map((key) => `${key}:${canonical(value[key] as Json)}`).join()}}`;
  }
  return JSON.stringify(value);
}

/** The table. */
export function table(resources: Resources): Fields {
  const [[, { Properties: has }]] = of(resources, "AWS::DynamoDB::Table") as [[string, Resource]];
  const recovery = has.PointInTimeRecoverySpecification as Fields;
  const sse = has.SSESpecification as Fields | undefined;
  return {
    attributes: has.AttributeDefinitions as Json,
    keys: has.KeySchema as Json,
    billing: has.BillingMode as Json,
    ttl: has.TimeToLiveSpecification as Json,
    recovers: String(recovery.PointInTimeRecoveryEnabled),
    recoveryDays: recovery.RecoveryPeriodInDays ?? null,
    isProtected: String(has.DeletionProtectionEnabled),
    warm: (has.WarmThroughput ?? null) as Json,
    encryption: sse ? (resources[target(sse.KMSMasterKeyId) as string]?.Type ?? "another's") : null,
  };
}

/** Alarms by their descriptions. */
export function alarms(resources: Resources): Record<string, unknown> {
  const sums = (has: Fields) =>
    (list(has.Metrics) as Fields[])
      .flatMap(({ MetricStat }) => (MetricStat ? [MetricStat as Fields] : []))
      .map(({ Metric, Period, Stat }) => {
        const { Namespace, MetricName, Dimensions } = Metric as Fields;
        return `${Namespace} ${MetricName} ${Stat} ${Period} ${whose(resources, Dimensions as Json)}`;
      });
  const one = (has: Fields) => (has.MetricName ? [`${has.Namespace} ${has.MetricName} ${has.Statistic} ${has.Period} ${whose(resources, has.Dimensions as Json)}`] : []);
  return Object.fromEntries(
    of(resources, "AWS::CloudWatch::Alarm").map(([, { Properties: has }]) => [
      has.AlarmDescription,
      {
        is: has.ComparisonOperator,
        threshold: has.Threshold,
        periods: has.EvaluationPeriods,
        of: has.DatapointsToAlarm ?? null,
        missing: has.TreatMissingData,
        metrics: [...sums(has), ...one(has)].sort(),
      },
    ]),
  );
}

/** A function is told by its description, a queue by whether it is another's dead-letter queue. */
function whose(resources: Resources, dimensions: Json): string {
  const [dimension] = list(dimensions) as [Fields];
  const id = target(dimension.Value as Json) as string;
  return `${dimension.Name as string}=${(resources[id]?.Properties.Description as string | undefined) ?? queueOf(resources, id)}`;
}

function queueOf(resources: Resources, id: string): string {
  return queues(resources)[id] ?? id;
}

/** Queues by their logical IDs. */
export function queues(resources: Resources): Record<string, string> {
  return Object.fromEntries(
    of(resources, "AWS::SQS::Queue").map(([id, { Properties: has }]) => {
      const { RedrivePolicy, ...rest } = has;
      const { deadLetterTargetArn, maxReceiveCount } = (RedrivePolicy ?? {}) as Fields;
      const behind = deadLetterTargetArn ? resources[target(deadLetterTargetArn) as string]?.Properties : undefined;
      return [id, canonical({ ...rest, maxReceiveCount: maxReceiveCount ?? null, behind: behind ?? null })];
    }),
  );
}

/** All of a type, without their references. */
export function all(resources: Resources, type: string, ...fields: string[]): string[] {
  const told = of(resources, type).map(([, { Properties: has }]) => canonical(fields.map((field) => (has[field] ?? null) as Json)));
  return told.sort();
}

/** Managed policies by their descriptions: actions. */
export function managed(resources: Resources): Record<string, Json> {
  return Object.fromEntries(
    of(resources, "AWS::IAM::ManagedPolicy").map(([, { Properties: has }]) => {
      const statements = list((has.PolicyDocument as Fields).Statement) as Fields[];
      return [has.Description as string, statements.flatMap(({ Action }) => list(Action))];
    }),
  );
}
