import { Aws } from "aws-cdk-lib";
import * as iam from "aws-cdk-lib/aws-iam";
import * as lambda from "aws-cdk-lib/aws-lambda";
import type { Construct } from "constructs";
import * as path from "node:path";
import type { PolicyOptions, SecretsOptions } from "./options";

/** A place that functions read in init and later: how they are told, and what they may. */
export interface Place {
  readonly environment: Record<string, string>;
  readonly statements: iam.PolicyStatement[];
  readonly layers: lambda.ILayerVersion[];
}

/** The policy's place. */
export function policyPlace(scope: Construct, policy: PolicyOptions): Place {
  const place = (url: string, statements: iam.PolicyStatement[], layers: lambda.ILayerVersion[] = []) => ({
    environment: { TOLLGATE_POLICY: url },
    statements,
    layers,
  });
  if ("file" in policy) {
    const name = path.basename(policy.file);
    const layer = new lambda.LayerVersion(scope, "PolicyLayer", {
      description: "The policy file",
      code: lambda.Code.fromAsset(path.dirname(policy.file), { exclude: ["*", `!${name}`] }),
      compatibleArchitectures: [lambda.Architecture.ARM_64],
      compatibleRuntimes: [lambda.Runtime.PROVIDED_AL2023],
    });
    return place(`/opt/${name}`, [], [layer]);
  }
  if ("parameter" in policy) {
    return place(`ssm:${policy.parameter}`, [readParameter(policy.parameter)]);
  }
  if ("bucket" in policy) {
    const resource = `arn:${Aws.PARTITION}:s3:::${policy.bucket}/${policy.key}`;
    const read = new iam.PolicyStatement({ actions: ["s3:GetObject"], resources: [resource] });
    return place(`s3://${policy.bucket}/${policy.key}`, [read]);
  }
  const { application, environment, profile } = policy;
  const resource =
    `arn:${Aws.PARTITION}:appconfig:${Aws.REGION}:${Aws.ACCOUNT_ID}:application/${application}` +
    `/environment/${environment}/configuration/${profile}`;
  const actions = ["appconfig:StartConfigurationSession", "appconfig:GetLatestConfiguration"];
  const read = new iam.PolicyStatement({ actions, resources: [resource] });
  return place(`appconfig://${application}/${environment}/${profile}`, [read]);
}

/** The place of secrets. */
export function secretsPlace(secrets: SecretsOptions | undefined): Place {
  const variables = (parameter: string, secret: string) => ({
    TOLLGATE_KEY_SECRETS_PARAMETER: parameter,
    TOLLGATE_KEY_SECRETS_SECRET: secret,
  });
  if (!secrets) {
    return { environment: variables("", ""), statements: [], layers: [] };
  }
  if ("parameter" in secrets) {
    const { parameter } = secrets;
    return { environment: variables(parameter, ""), statements: [readParameter(parameter)], layers: [] };
  }
  return { environment: variables("", secrets.secretArn), statements: [readSecret(secrets.secretArn)], layers: [] };
}

/** May read that parameter. */
export function readParameter(name: string): iam.PolicyStatement {
  const resource = `arn:${Aws.PARTITION}:ssm:${Aws.REGION}:${Aws.ACCOUNT_ID}:parameter${name}`;
  return new iam.PolicyStatement({ actions: ["ssm:GetParameter"], resources: [resource] });
}

/** May read that secret. */
export function readSecret(arn: string): iam.PolicyStatement {
  return new iam.PolicyStatement({ actions: ["secretsmanager:GetSecretValue"], resources: [arn] });
}
