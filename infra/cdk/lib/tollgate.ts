import * as apigwv2 from "aws-cdk-lib/aws-apigatewayv2";
import { HttpLambdaIntegration } from "aws-cdk-lib/aws-apigatewayv2-integrations";
import type * as dynamodb from "aws-cdk-lib/aws-dynamodb";
import * as iam from "aws-cdk-lib/aws-iam";
import * as lambda from "aws-cdk-lib/aws-lambda";
import * as logs from "aws-cdk-lib/aws-logs";
import { Construct } from "constructs";
import { Alarms } from "./alarms";
import { makeDashboard } from "./dashboard";
import { type Common, makeFunction } from "./functions";
import type { MetricsOptions, MfaOptions, TollgateProps } from "./options";
import { Codes } from "./otp";
import { makeSentinel } from "./sentinel";
import { decide, leaveAuditLog, useUpFactors, useUpGrants } from "./permissions";
import { policyPlace, readParameter, secretsPlace } from "./policy";
import { LimitsTable } from "./table";
import { Webhooks } from "./webhook";

const { POST, OPTIONS, ANY } = apigwv2.HttpMethod;

/** What alarms say; a test compares them with those of the SAM template. */
const says = {
  degraded:
    "The table gave no answer in time to parts of decisions, which on_store_failure has decided. Look at the table's throttling, its health and DeadlineMs.",
  unavailable:
    "Calls were refused with 503 since no decision could be made, or nobody knew whether the caller had proved who he is. Callers are not limited, they are turned away.",
  rejected: "A newer policy cannot be read or has mistakes, so the one in force stays. The log says what is wrong with it.",
  pumping:
    "Somebody has messages sent and nobody types the codes. CAPTCHAs are asked for already; the sentinel's log says of which prefixes, and why.",
  sentinelFailed: "The sentinel has failed for five minutes, so that nobody new is suspected or kept out. Its log says why.",
  sentinelSilent: "The sentinel was not started for five minutes. Look at its schedule and at the account's concurrency.",
  undelivered: "Codes were not delivered in five tries, or could not be opened. The courier's log says why.",
  notQueued:
    "Webhooks were answered with 503 since the queue did not take them; senders try again for hours or days. The receiver's log says why.",
  waiting: "Webhooks wait for longer than fifteen minutes. Whoever takes them from the queue is gone or too slow.",
  unprocessed: "Webhooks failed in five tries and are in the dead-letter queue. Mend what takes them, then start a redrive.",
};

/** A function of yours that decides on the table, beside {@link Tollgate}'s own. */
export interface DecidingFunctionProps {
  /** The folder under `artifacts` with its `bootstrap`. */
  readonly binary: string;
  /** What it does. */
  readonly description: string;
  /** Variables beside those that all functions have. @default none */
  readonly environment?: Record<string, string>;
  /** Names of parameters of SSM that it reads. @default none */
  readonly parameters?: string[];
  /** Reserved concurrency. @default none */
  readonly reservedConcurrency?: number;
}

/** The table, the limiter behind a function URL, and as asked for one-time codes, second factors and a receiver of webhooks. */
export class Tollgate extends Construct {
  /** What is in force on each key. */
  readonly table: dynamodb.Table;
  /** Decisions for callers in any language. */
  readonly limiter: lambda.Function;
  /** Where the limiter is asked, signed. */
  readonly limiterUrl: lambda.FunctionUrl;
  /** To attach to whoever asks the limiter. */
  readonly limiterCallers: iam.ManagedPolicy;
  /** One-time codes. */
  readonly codes: Codes | undefined;
  /** What runs every minute, with one-time codes or `keepOut`. */
  readonly sentinel: lambda.Function | undefined;
  /** Second factors. */
  readonly mfa: lambda.Function | undefined;
  /** Webhooks, and their queue. */
  readonly webhooks: Webhooks | undefined;

  private readonly common: Common;
  private readonly deciding: lambda.Function[] = [];
  private readonly readers: lambda.Function[] = [];
  private readonly stepsUp: lambda.Function[] = [];
  private httpApi: apigwv2.IHttpApi | undefined;
  private restApiName: string | undefined;

  constructor(scope: Construct, id: string, props: TollgateProps) {
    super(scope, id);
    if (props.otp && !props.keySecrets) {
      throw new Error("otp needs keySecrets: codes are hashed and sealed under them");
    }
    const { table, keyUse } = new LimitsTable(this, props.table ?? {});
    this.table = table;
    const metrics = props.metrics === false ? undefined : { namespace: "Tollgate", webAcl: "tollgate", ...props.metrics };
    this.common = this.shared(props, metrics, keyUse);
    this.limiter = this.addFunction("Limiter", {
      binary: "limiter",
      description: "Decisions for callers in any language",
      reservedConcurrency: props.limiterConcurrency,
    });
    this.limiterUrl = this.limiter.addFunctionUrl({ authType: lambda.FunctionUrlAuthType.AWS_IAM });
    this.limiterCallers = new iam.ManagedPolicy(this, "LimiterCallers", {
      description: "May ask the limiter for decisions",
      statements: [
        new iam.PolicyStatement({
          actions: ["lambda:InvokeFunctionUrl", "lambda:InvokeFunction"],
          resources: [this.limiter.functionArn],
        }),
      ],
    });
    if (props.otp) {
      this.codes = new Codes(this, this.common, table.tableArn, props.otp);
      this.deciding.push(this.codes.otp);
      this.readers.push(this.codes.otp, this.codes.courier);
    }
    if (props.otp || props.keepOut) {
      this.sentinel = makeSentinel(this, this.common, table.tableArn, props.keepOut ?? false);
    }
    if (props.mfa) {
      this.mfa = this.factors(props.mfa);
      this.deciding.push(this.mfa);
      this.readers.push(this.mfa);
      this.stepsUp.push(this.mfa);
    }
    if (props.webhook) {
      this.webhooks = new Webhooks(this, this.common, props.webhook);
    }
    if (metrics) {
      this.watch(metrics);
    }
  }

  /** Adds a function that decides: the limiter's own kind, a handler behind the layer, an authorizer. */
  addFunction(id: string, props: DecidingFunctionProps): lambda.Function {
    const { parameters, ...spec } = props;
    const table = this.table.tableArn;
    const statements = [decide(table), leaveAuditLog(table), useUpGrants(table), ...(parameters ?? []).map(readParameter)];
    const made = makeFunction(this, id, this.common, { ...spec, statements });
    this.deciding.push(made);
    this.readers.push(made);
    return made;
  }

  /** The same, behind the layer, which asks for step-up as well. */
  addHandler(id: string, props: DecidingFunctionProps): lambda.Function {
    const made = this.addFunction(id, props);
    this.stepsUp.push(made);
    return made;
  }

  /** Routes an HTTP API to the functions that there are; `authorizer` lets in who has signed in. */
  addRoutes(api: apigwv2.HttpApi, authorizer: apigwv2.IHttpRouteAuthorizer): void {
    this.httpApi = api;
    const route = (of: lambda.Function, path: string, method: apigwv2.HttpMethod, signedIn: boolean) => {
      const integration = new HttpLambdaIntegration(`${of.node.id}Integration`, of);
      const open = new apigwv2.HttpNoneAuthorizer();
      api.addRoutes({ path, methods: [method], integration, authorizer: signedIn ? authorizer : open });
    };
    if (this.codes) {
      route(this.codes.otp, "/api/auth/otp/send", POST, true);
      route(this.codes.otp, "/api/auth/otp/verify", POST, true);
      route(this.codes.otp, "/api/auth/otp/{proxy+}", OPTIONS, false);
    }
    if (this.mfa) {
      route(this.mfa, "/api/mfa/{proxy+}", ANY, true);
      route(this.mfa, "/api/mfa/{proxy+}", OPTIONS, false);
      // Whoever has the link of a notice has no session.
      route(this.mfa, "/api/mfa/changes/cancel", POST, false);
    }
    if (this.webhooks) {
      route(this.webhooks.receiver, "/webhooks/payments", POST, false);
    }
  }

  /** Has the dashboard show a REST API, by its name. */
  showRestApi(name: string): void {
    this.restApiName = name;
  }

  /** Alarms and the dashboard. What is added after this is in them, too. */
  private watch(metrics: MetricsOptions & { namespace: string; webAcl: string }): void {
    const { namespace, webAcl } = metrics;
    const alarms = new Alarms(this, metrics.alarmTopic, namespace);
    alarms.ofDecisions("LimiterDegradedAlarm", says.degraded, "LimiterDegraded", () =>
      this.deciding.map((of) => ["LimiterDegraded", of]),
    );
    alarms.ofDecisions("UnavailableAlarm", says.unavailable, "Unavailable", () => [
      ...this.deciding.map((of): [string, lambda.IFunction] => ["Unavailable", of]),
      ...this.stepsUp.map((of): [string, lambda.IFunction] => ["StepUpUnavailable", of]),
    ]);
    alarms.ofPolicy("PolicyRejectedAlarm", says.rejected, "PolicyRejected", () => this.readers.map((of) => ["PolicyRejected", of]));
    if (this.sentinel) {
      alarms.ofErrors("SentinelFailedAlarm", says.sentinelFailed, this.sentinel);
      alarms.ofSilence("SentinelSilentAlarm", says.sentinelSilent, this.sentinel);
    }
    if (this.codes && this.sentinel) {
      alarms.ofService("PumpingSuspectedAlarm", says.pumping, "PumpingSuspected", this.sentinel, "Maximum");
      alarms.ofQueue("OtpUndeliveredAlarm", says.undelivered, this.codes.deadLetters, "ApproximateNumberOfMessagesVisible", 0);
    }
    if (this.webhooks) {
      const { receiver, queue, deadLetters } = this.webhooks;
      this.webhooks.count(this, namespace);
      alarms.ofService("WebhookNotQueuedAlarm", says.notQueued, "WebhookNotQueued", receiver, "Sum");
      alarms.ofQueue("WebhookAgeAlarm", says.waiting, queue, "ApproximateAgeOfOldestMessage", 900);
      alarms.ofQueue("WebhookUnprocessedAlarm", says.unprocessed, deadLetters, "ApproximateNumberOfMessagesVisible", 0);
    }
    makeDashboard(this, {
      namespace,
      webAcl,
      table: this.table.tableName,
      memoryMb: this.common.memoryMb,
      functions: () => this.node.children.filter((child) => child instanceof lambda.Function),
      httpApi: () => this.httpApi?.apiId,
      restApi: () => this.restApiName,
    });
  }

  private shared(props: TollgateProps, metrics: MetricsOptions | undefined, keyUse: iam.PolicyStatement | undefined): Common {
    const decrypt = props.policyKey && [
      new iam.PolicyStatement({ actions: ["kms:Decrypt"], resources: [props.policyKey.keyArn] }),
    ];
    return {
      artifacts: props.artifacts,
      environment: {
        TOLLGATE_TABLE: this.table.tableName,
        TOLLGATE_POLICY_REFRESH_S: String(props.policyRefreshSeconds ?? 60),
        TOLLGATE_DEADLINE_MS: String(props.deadlineMs ?? 50),
        TOLLGATE_INSTANCES: props.instances === undefined ? "" : String(props.instances),
        TOLLGATE_METRICS: metrics ? "on" : "off",
        TOLLGATE_METRICS_NAMESPACE: metrics?.namespace ?? "Tollgate",
      },
      places: [
        policyPlace(this, props.policy),
        secretsPlace(props.keySecrets),
        { environment: {}, statements: decrypt ?? [], layers: [] },
      ],
      table: keyUse ? [keyUse] : [],
      memoryMb: props.memoryMb ?? 256,
      logRetention: props.logRetention ?? logs.RetentionDays.ONE_MONTH,
    };
  }

  /** Alone may open secrets of factors, each for its account and kind. */
  private factors(options: MfaOptions): lambda.Function {
    const table = this.table.tableArn;
    const seal = (actions: string[], key: string) =>
      new iam.PolicyStatement({
        actions,
        resources: [key],
        conditions: { StringEquals: { "kms:EncryptionContext:tollgate:factor": "totp" } },
      });
    return makeFunction(this, "Mfa", this.common, {
      binary: "mfa",
      description: "Enrols and verifies second factors",
      environment: {
        TOLLGATE_MFA_KEY_ARN: options.key.keyArn,
        TOLLGATE_USER_POOL_ID: this.codes?.userPoolId ?? "",
        TOLLGATE_OTP_QUEUE_URL: this.codes?.queue.queueUrl ?? "",
      },
      statements: [
        decide(table),
        useUpFactors(table),
        // Whoever changes his factors is told, where his profile says.
        ...(this.codes?.tell() ?? []),
        seal(["kms:Encrypt", "kms:Decrypt"], options.key.keyArn),
        ...(options.retiringKey ? [seal(["kms:Decrypt"], options.retiringKey.keyArn)] : []),
      ],
    });
  }
}
