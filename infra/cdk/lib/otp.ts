import { Aws, Duration, RemovalPolicy } from "aws-cdk-lib";
import * as iam from "aws-cdk-lib/aws-iam";
import * as lambda from "aws-cdk-lib/aws-lambda";
import * as sqs from "aws-cdk-lib/aws-sqs";
import type { Construct } from "constructs";
import { type Common, makeFunction } from "./functions";
import type { OtpOptions } from "./options";
import { decide, items, leaveAuditLog } from "./permissions";
import { readParameter } from "./policy";

/**
 * One-time codes: what answers knows who has which number and can send nothing; what delivers sends and knows nobody.
 */
export class Codes {
  readonly otp: lambda.Function;
  readonly courier: lambda.Function;
  readonly deadLetters: sqs.Queue;
  readonly queue: sqs.Queue;
  readonly userPoolId: string;

  constructor(scope: Construct, common: Common, table: string, options: OtpOptions) {
    this.deadLetters = new sqs.Queue(scope, "OtpDeadLetters", {
      encryption: sqs.QueueEncryption.SQS_MANAGED,
      retentionPeriod: Duration.days(1),
      removalPolicy: RemovalPolicy.DESTROY,
    });
    // Sealed. A code is good for ten minutes at most, a notice of a change of factors for as long as it is there.
    const queue = new sqs.Queue(scope, "OtpQueue", {
      encryption: sqs.QueueEncryption.SQS_MANAGED,
      retentionPeriod: Duration.days(1),
      visibilityTimeout: Duration.seconds(20),
      deadLetterQueue: { queue: this.deadLetters, maxReceiveCount: 5 },
      removalPolicy: RemovalPolicy.DESTROY,
    });
    this.queue = queue;
    this.userPoolId = options.userPoolId;
    this.otp = makeFunction(scope, "Otp", common, {
      binary: "otp",
      description: "Sends and verifies one-time codes",
      environment: {
        TOLLGATE_USER_POOL_ID: options.userPoolId,
        TOLLGATE_OTP_QUEUE_URL: queue.queueUrl,
        TOLLGATE_TURNSTILE_SECRET: options.turnstileParameter ? `ssm:${options.turnstileParameter}` : "",
        TOLLGATE_WAF_CAPTCHA_SECRET: options.wafCaptchaParameter ? `ssm:${options.wafCaptchaParameter}` : "",
      },
      statements: [
        decide(table),
        leaveAuditLog(table),
        ...this.tell(),
        ...[options.turnstileParameter, options.wafCaptchaParameter].flatMap((name) => (name ? [readParameter(name)] : [])),
      ],
    });
    this.courier = this.deliver(scope, common, table, options, queue);
  }

  /** What it takes to know where somebody is told something, and to have it told. */
  tell(): iam.PolicyStatement[] {
    return [
      allow(["cognito-idp:AdminGetUser"], arn("cognito-idp", `userpool/${this.userPoolId}`)),
      allow(["sqs:SendMessage"], this.queue.queueArn),
    ];
  }

  private deliver(scope: Construct, common: Common, table: string, options: OtpOptions, queue: sqs.Queue): lambda.Function {
    const { sms, email, eventBus } = options;
    const courier = makeFunction(scope, "Courier", common, {
      binary: "courier",
      description: "Delivers one-time codes",
      environment: {
        TOLLGATE_SMS_ORIGINATION_IDENTITY: sms?.originationIdentity ?? "",
        TOLLGATE_SMS_CONFIGURATION_SET: sms?.configurationSet ?? "",
        TOLLGATE_SMS_PROTECT_CONFIGURATION: sms?.protectConfiguration ?? "",
        TOLLGATE_EMAIL_FROM: email?.from ?? "",
        TOLLGATE_EMAIL_CONFIGURATION_SET: email?.configurationSet ?? "",
        TOLLGATE_EVENT_BUS: eventBus ?? "",
      },
      statements: [
        items(table, ["GetItem"], { are: ["1/warm-up"] }),
        items(table, ["UpdateItem"], { like: ["1/otp/*", "1/sha/*", "1/pumping/??/*", "1/pumping/email/*"] }),
        allow(["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:GetQueueAttributes"], queue.queueArn),
        // Which of its resources a request names depends on what it says of the origin.
        ...(sms ? [allow(["sms-voice:SendTextMessage", "sms-voice:PutMessageFeedback"], arn("sms-voice", "*"))] : []),
        ...(email ? [sendEmail(email.from)] : []),
        ...(eventBus ? [allow(["events:PutEvents"], arn("events", `event-bus/${eventBus}`))] : []),
      ],
    });
    new lambda.EventSourceMapping(scope, "CourierQueue", {
      target: courier,
      eventSourceArn: queue.queueArn,
      batchSize: 10,
      reportBatchItemFailures: true,
      maxConcurrency: options.courierConcurrency ?? 5,
    });
    return courier;
  }
}

function allow(actions: string[], resource: string): iam.PolicyStatement {
  return new iam.PolicyStatement({ actions, resources: [resource] });
}

function arn(service: string, resource: string): string {
  return `arn:${Aws.PARTITION}:${service}:${Aws.REGION}:${Aws.ACCOUNT_ID}:${resource}`;
}

function sendEmail(from: string): iam.PolicyStatement {
  return new iam.PolicyStatement({
    actions: ["ses:SendEmail"],
    resources: [arn("ses", "identity/*"), arn("ses", "configuration-set/*")],
    conditions: { StringEquals: { "ses:FromAddress": from } },
  });
}
