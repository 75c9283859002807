import * as iam from "aws-cdk-lib/aws-iam";

/** What may be done with items of the table, all or those whose keys are like `keys`. */
export function items(table: string, actions: string[], keys?: { like: string[] } | { are: string[] }): iam.PolicyStatement {
  const conditions =
    keys &&
    ("like" in keys
      ? { "ForAllValues:StringLike": { "dynamodb:LeadingKeys": keys.like } }
      : { "ForAllValues:StringEquals": { "dynamodb:LeadingKeys": keys.are } });
  return new iam.PolicyStatement({ actions: actions.map((action) => `dynamodb:${action}`), resources: [table], conditions });
}

/** What deciding takes. */
export function decide(table: string): iam.PolicyStatement {
  return items(table, ["GetItem", "UpdateItem"]);
}

/** Of the audit log only the function of second factors writes anything. */
export function leaveAuditLog(table: string): iam.PolicyStatement {
  return new iam.PolicyStatement({
    effect: iam.Effect.DENY,
    actions: ["dynamodb:UpdateItem"],
    resources: [table],
    conditions: { "ForAnyValue:StringLike": { "dynamodb:LeadingKeys": ["1/audit/*"] } },
  });
}

/** Grants and challenges are used up by deleting them, passkeys and what was cancelled are removed; nothing else is ever deleted. */
export function useUpFactors(table: string): iam.PolicyStatement {
  return items(table, ["DeleteItem"], { like: ["1/mfa/grant.*", "1/mfa/challenge.*", "1/mfa/passkey.*", "1/mfa/change/*", "1/sha/*"] });
}

/** Grants of one action are used up by deleting them; nothing else is ever deleted. */
export function useUpGrants(table: string): iam.PolicyStatement {
  return items(table, ["DeleteItem"], { like: ["1/mfa/grant.*", "1/sha/*"] });
}
