import { Duration, RemovalPolicy } from "aws-cdk-lib";
import * as iam from "aws-cdk-lib/aws-iam";
import type * as lambda from "aws-cdk-lib/aws-lambda";
import * as logs from "aws-cdk-lib/aws-logs";
import * as sqs from "aws-cdk-lib/aws-sqs";
import type { Construct } from "constructs";
import { type Common, makeFunction } from "./functions";
import type { WebhookOptions } from "./options";
import { readSecret } from "./policy";

/** The receiver of webhooks, which knows neither policy nor table, and its queue. What is in that was paid for: it outlives the stack. */
export class Webhooks {
  readonly receiver: lambda.Function;
  readonly queue: sqs.Queue;
  readonly deadLetters: sqs.Queue;
  /** To attach to whoever takes webhooks from the queue. */
  readonly consumers: iam.ManagedPolicy;

  constructor(scope: Construct, common: Common, options: WebhookOptions) {
    const fifo = {
      fifo: true,
      encryption: sqs.QueueEncryption.SQS_MANAGED,
      retentionPeriod: Duration.days(14),
      removalPolicy: RemovalPolicy.RETAIN,
    };
    this.deadLetters = new sqs.Queue(scope, "WebhookDeadLetters", fifo);
    // An event that is sent again within five minutes is there once; each is a group of its own, so nothing waits for anything else.
    this.queue = new sqs.Queue(scope, "WebhookQueue", {
      ...fifo,
      deduplicationScope: sqs.DeduplicationScope.MESSAGE_GROUP,
      fifoThroughputLimit: sqs.FifoThroughputLimit.PER_MESSAGE_GROUP_ID,
      visibilityTimeout: Duration.minutes(3),
      deadLetterQueue: { queue: this.deadLetters, maxReceiveCount: 5 },
    });
    this.receiver = makeFunction(scope, "Webhook", common, {
      binary: "webhook",
      description: "Verifies signed webhooks and queues them",
      environment: {
        TOLLGATE_WEBHOOK_SECRET: `secretsmanager:${options.secretArn}`,
        TOLLGATE_WEBHOOK_QUEUE_URL: this.queue.queueUrl,
        TOLLGATE_WEBHOOK_HEADER: options.signatureHeader ?? "stripe-signature",
        TOLLGATE_WEBHOOK_TOLERANCE_S: String(options.toleranceSeconds ?? 300),
      },
      statements: [
        readSecret(options.secretArn),
        new iam.PolicyStatement({ actions: ["sqs:SendMessage"], resources: [this.queue.queueArn] }),
      ],
      reads: false,
      reservedConcurrency: options.concurrency,
    });
    this.consumers = new iam.ManagedPolicy(scope, "WebhookConsumers", {
      description: "May take webhooks from the queue",
      statements: [
        new iam.PolicyStatement({
          actions: ["sqs:ReceiveMessage", "sqs:DeleteMessage", "sqs:ChangeMessageVisibility", "sqs:GetQueueAttributes"],
          resources: [this.queue.queueArn],
        }),
      ],
    });
  }

  /** Metrics of what the receiver logs, by the function's name as all others are. */
  count(scope: Construct, namespace: string): void {
    for (const [name, level] of [["WebhookNotQueued", "ERROR"], ["WebhookRefused", "WARN"]] as const) {
      new logs.MetricFilter(scope, name, {
        logGroup: this.receiver.logGroup,
        filterPattern: logs.FilterPattern.literal(`{ ($.target = "webhook") && ($.level = "${level}") }`),
        metricNamespace: namespace,
        metricName: name,
        metricValue: "1",
        dimensions: { Service: "$.service" },
      });
    }
  }
}
