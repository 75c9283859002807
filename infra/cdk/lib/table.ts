import { Aws, RemovalPolicy } from "aws-cdk-lib";
import * as dynamodb from "aws-cdk-lib/aws-dynamodb";
import * as iam from "aws-cdk-lib/aws-iam";
import * as kms from "aws-cdk-lib/aws-kms";
import type { Construct } from "constructs";
import type { TableOptions } from "./options";

const WARM_FROM_THE_START = { readUnits: 12_000, writeUnits: 4_000 };

/** The table, and what whoever uses it may do with its key. */
export class LimitsTable {
  readonly table: dynamodb.Table;
  readonly keyUse: iam.PolicyStatement | undefined;

  constructor(scope: Construct, options: TableOptions) {
    const days = options.recoveryDays ?? 35;
    const warm = options.warm;
    if (warm && (warm.readUnits < WARM_FROM_THE_START.readUnits || warm.writeUnits < WARM_FROM_THE_START.writeUnits)) {
      throw new Error("table.warm: give 12000 read units and 4000 write units at least, which each table has from the start");
    }
    const key = options.encryption === "created" ? ownKey(scope) : options.encryption;
    this.table = new dynamodb.Table(scope, "Table", {
      partitionKey: { name: "pk", type: dynamodb.AttributeType.STRING },
      billingMode: dynamodb.BillingMode.PAY_PER_REQUEST,
      timeToLiveAttribute: "expires_at",
      pointInTimeRecoverySpecification:
        days > 0 ? { pointInTimeRecoveryEnabled: true, recoveryPeriodInDays: days } : { pointInTimeRecoveryEnabled: false },
      deletionProtection: options.deletionProtection ?? true,
      removalPolicy: RemovalPolicy.RETAIN,
      ...(key && { encryption: dynamodb.TableEncryption.CUSTOMER_MANAGED, encryptionKey: key }),
      ...(warm && { warmThroughput: { readUnitsPerSecond: warm.readUnits, writeUnitsPerSecond: warm.writeUnits } }),
    });
    this.keyUse =
      key &&
      new iam.PolicyStatement({
        actions: ["kms:Encrypt", "kms:Decrypt", "kms:GenerateDataKey", "kms:DescribeKey"],
        resources: [key.keyArn],
        conditions: { StringEquals: { "kms:ViaService": `dynamodb.${Aws.REGION}.${Aws.URL_SUFFIX}` } },
      });
  }
}

/** Whoever may use the table uses its key through DynamoDB, and in no other way. */
function ownKey(scope: Construct): kms.Key {
  const policy = new iam.PolicyDocument({
    statements: [
      new iam.PolicyStatement({
        sid: "Administration",
        principals: [new iam.AccountRootPrincipal()],
        actions: ["kms:*"],
        resources: ["*"],
      }),
      new iam.PolicyStatement({
        sid: "ThroughDynamoDb",
        principals: [new iam.AnyPrincipal()],
        actions: [
          "kms:Encrypt",
          "kms:Decrypt",
          "kms:ReEncryptFrom",
          "kms:ReEncryptTo",
          "kms:GenerateDataKey",
          "kms:DescribeKey",
          "kms:CreateGrant",
        ],
        resources: ["*"],
        conditions: {
          StringEquals: {
            "kms:CallerAccount": Aws.ACCOUNT_ID,
            "kms:ViaService": `dynamodb.${Aws.REGION}.${Aws.URL_SUFFIX}`,
          },
        },
      }),
    ],
  });
  return new kms.Key(scope, "TableKey", {
    description: "Encrypts the table of limits",
    enableKeyRotation: true,
    policy,
    removalPolicy: RemovalPolicy.RETAIN,
  });
}
