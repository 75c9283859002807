import { Lazy } from "aws-cdk-lib";
import * as cloudwatch from "aws-cdk-lib/aws-cloudwatch";
import type { IFunction } from "aws-cdk-lib/aws-lambda";
import type { IQueue } from "aws-cdk-lib/aws-sqs";
import type { ITopic } from "aws-cdk-lib/aws-sns";
import type { Construct } from "constructs";

type Condition = Pick<cloudwatch.CfnAlarmProps, "threshold" | "evaluationPeriods" | "datapointsToAlarm" | "comparisonOperator" | "treatMissingData">;
type Metric = Required<Pick<cloudwatch.CfnAlarmProps, "namespace" | "metricName" | "dimensions" | "period" | "statistic">>;

/** What is summed: names of metrics, and whose they are. */
type Summed = () => [string, IFunction][];

/** Where metrics of a function are, and the dimension that says whose. */
type Place = { readonly namespace: string; readonly dimension: string };

/** More than this, in one period; no data is no trouble. */
const above = (threshold: number): Condition => ({
  comparisonOperator: "GreaterThanThreshold",
  threshold,
  evaluationPeriods: 1,
  treatMissingData: "notBreaching",
});

/** What a metric of a function or a queue says. */
const metric = (namespace: string, metricName: string, name: string, value: string, period: number, statistic: string): Metric => ({
  namespace,
  metricName,
  dimensions: [{ name, value }],
  period,
  statistic,
});

/** Makes alarms, which all go to one topic. */
export class Alarms {
  constructor(
    private readonly scope: Construct,
    private readonly topic: ITopic | undefined,
    private readonly namespace: string,
  ) {}

  /** Two minutes of three, since logs become metrics with some delay; the sum of `metrics`, each a name and its function. */
  ofDecisions(id: string, description: string, label: string, metrics: Summed): void {
    this.ofSum(id, description, label, this.ours, metrics, 60, { ...above(0), evaluationPeriods: 3, datapointsToAlarm: 2 });
  }

  /** Once in five minutes. */
  ofPolicy(id: string, description: string, label: string, metrics: Summed): void {
    this.ofSum(id, description, label, this.ours, metrics, 300, above(0));
  }

  /** Functions that could not start, ended or took too long: once in five minutes. */
  ofFunctions(id: string, description: string, functions: () => IFunction[]): void {
    const lambda = { namespace: "AWS/Lambda", dimension: "FunctionName" };
    this.ofSum(id, description, "Errors", lambda, () => functions().map((of) => ["Errors", of]), 300, above(0));
  }

  /** A metric of our own of one function. */
  ofService(id: string, description: string, metricName: string, of: IFunction, statistic: string): void {
    this.make(id, description, { ...above(0), ...metric(this.namespace, metricName, "Service", of.functionName, 60, statistic) });
  }

  /** Errors of a function: five in five minutes. */
  ofErrors(id: string, description: string, of: IFunction): void {
    const five: Condition = { ...above(5), comparisonOperator: "GreaterThanOrEqualToThreshold" };
    this.make(id, description, { ...five, ...metric("AWS/Lambda", "Errors", "FunctionName", of.functionName, 300, "Sum") });
  }

  /** A function that was not started for five minutes. */
  ofSilence(id: string, description: string, of: IFunction): void {
    const none: Condition = { comparisonOperator: "LessThanThreshold", threshold: 1, evaluationPeriods: 1, treatMissingData: "breaching" };
    this.make(id, description, { ...none, ...metric("AWS/Lambda", "Invocations", "FunctionName", of.functionName, 300, "Sum") });
  }

  /** A queue: its messages, or their age in seconds. */
  ofQueue(id: string, description: string, of: IQueue, metricName: string, threshold: number): void {
    this.make(id, description, { ...above(threshold), ...metric("AWS/SQS", metricName, "QueueName", of.queueName, 60, "Maximum") });
  }

  private get ours(): Place {
    return { namespace: this.namespace, dimension: "Service" };
  }

  private ofSum(id: string, description: string, label: string, place: Place, metrics: Summed, period: number, condition: Condition): void {
    const one = ([metricName, of]: [string, IFunction], index: number) => {
      const dimensions = [{ name: place.dimension, value: of.functionName }];
      const metric = { namespace: place.namespace, metricName, dimensions };
      return { id: `m${index}`, returnData: false, metricStat: { period, stat: "Sum", metric } };
    };
    const all = { id: "all", expression: "SUM(METRICS())", label, returnData: true };
    // Later, since functions are added.
    this.make(id, description, { ...condition, metrics: Lazy.any({ produce: () => [all, ...metrics().map(one)] }) });
  }

  private make(id: string, alarmDescription: string, props: cloudwatch.CfnAlarmProps): void {
    const actions = this.topic ? [this.topic.topicArn] : undefined;
    new cloudwatch.CfnAlarm(this.scope, id, { alarmDescription, ...props, alarmActions: actions, okActions: actions });
  }
}
