import { Aws, CfnOutput, RemovalPolicy, Stack, Token } from "aws-cdk-lib";
import * as cloudfront from "aws-cdk-lib/aws-cloudfront";
import * as logs from "aws-cdk-lib/aws-logs";
import * as wafv2 from "aws-cdk-lib/aws-wafv2";
import { Construct } from "constructs";

/** What `tollgate waf render --format cdk` prints: the policy is the one source of rules. */
export interface EdgeRules {
  readonly webAcl: wafv2.CfnWebACLProps;
  /** By the names that the rules refer to them by, like `${TollgateHqIpv4.Arn}`. */
  readonly ipSets: Record<string, wafv2.CfnIPSetProps>;
  /** Where the policy has requests logged; `null` if it says nothing of it. */
  readonly logging: Omit<wafv2.CfnLoggingConfigurationProps, "resourceArn"> | null;
}

/** Properties of {@link TollgateEdge}. */
export interface TollgateEdgeProps {
  /** The rules. */
  readonly rules: EdgeRules;
  /** How long requests that a rule has caught are kept, where the policy has no `logging`. @default they are not */
  readonly logRetention?: logs.RetentionDays;
  /** Scope `regional`: ARN of the REST API's stage or load balancer that the ACL is put on. @default none */
  readonly resourceArn?: string;
  /** Scope `cloudfront`: domain name of the API that a distribution is put in front of. @default none is made */
  readonly origin?: string;
}

/** Managed policies of CloudFront: `CachingDisabled`, and `AllViewerExceptHostHeader`, since an API answers to its own name. */
const { CACHING_DISABLED } = cloudfront.CachePolicy;
const { ALL_VIEWER_EXCEPT_HOST_HEADER } = cloudfront.OriginRequestPolicy;
const REDACTED = [...["authorization", "cookie", "x-api-key"].map((Name) => ({ singleHeader: { Name } })), { queryString: {} }];

/** The rules of AWS WAF of a policy, on a stage or in a distribution. */
export class TollgateEdge extends Construct {
  /** The ACL. */
  readonly webAcl: wafv2.CfnWebACL;
  /** The distribution, if an origin is given. */
  readonly distribution: cloudfront.CfnDistribution | undefined;

  constructor(scope: Construct, id: string, props: TollgateEdgeProps) {
    super(scope, id);
    const { rules } = props;
    const isGlobal = rules.webAcl.scope === "CLOUDFRONT";
    const { region } = Stack.of(this);
    if (isGlobal && !Token.isUnresolved(region) && region !== "us-east-1") {
      throw new Error(`rules of scope cloudfront are in us-east-1; the stack is in ${region}`);
    }
    if (isGlobal ? props.resourceArn : props.origin) {
      throw new Error(isGlobal ? "a distribution names the ACL itself; give origin, not resourceArn" : "origin needs rules of scope cloudfront");
    }
    const arns: Record<string, string> = {};
    for (const [name, set] of Object.entries(rules.ipSets)) {
      arns[name] = new wafv2.CfnIPSet(this, name, set).attrArn;
    }
    this.webAcl = new wafv2.CfnWebACL(this, "WebAcl", referring(rules.webAcl, arns) as wafv2.CfnWebACLProps);
    this.log(props);
    if (props.resourceArn) {
      const association = { resourceArn: props.resourceArn, webAclArn: this.webAcl.attrArn };
      new wafv2.CfnWebACLAssociation(this, "Association", association);
    }
    this.distribution = props.origin ? this.distribute(props.origin) : undefined;
  }

  private log({ rules, logRetention }: TollgateEdgeProps): void {
    const resourceArn = this.webAcl.attrArn;
    if (rules.logging) {
      new wafv2.CfnLoggingConfiguration(this, "Logging", { ...rules.logging, resourceArn });
    } else if (logRetention) {
      // WAF takes no other names, and the ARN without `:*` at its end.
      const group = new logs.LogGroup(this, "Logs", {
        logGroupName: `aws-waf-logs-${Aws.STACK_NAME}`,
        retention: logRetention,
        removalPolicy: RemovalPolicy.DESTROY,
      });
      const arn = `arn:${Aws.PARTITION}:logs:${Aws.REGION}:${Aws.ACCOUNT_ID}:log-group:${group.logGroupName}`;
      const caught = ["BLOCK", "COUNT", "CAPTCHA", "CHALLENGE"].map((action) => ({ ActionCondition: { Action: action } }));
      new wafv2.CfnLoggingConfiguration(this, "Logging", {
        resourceArn,
        logDestinationConfigs: [arn],
        redactedFields: REDACTED,
        loggingFilter: {
          DefaultBehavior: "DROP",
          Filters: [{ Behavior: "KEEP", Requirement: "MEETS_ANY", Conditions: caught }],
        },
      });
    }
  }

  /** It caches nothing by itself, and repeats no error to others. */
  private distribute(origin: string): cloudfront.CfnDistribution {
    const made = new cloudfront.CfnDistribution(this, "Distribution", {
      distributionConfig: {
        enabled: true,
        comment: "An API behind the limits of tollgate",
        httpVersion: "http2and3",
        ipv6Enabled: true,
        webAclId: this.webAcl.attrArn,
        origins: [
          {
            id: "api",
            domainName: origin,
            customOriginConfig: { originProtocolPolicy: "https-only", originSslProtocols: ["TLSv1.2"] },
          },
        ],
        defaultCacheBehavior: {
          targetOriginId: "api",
          viewerProtocolPolicy: "https-only",
          allowedMethods: ["GET", "HEAD", "OPTIONS", "PUT", "PATCH", "POST", "DELETE"],
          cachePolicyId: CACHING_DISABLED.cachePolicyId,
          originRequestPolicyId: ALL_VIEWER_EXCEPT_HOST_HEADER.originRequestPolicyId,
          compress: true,
        },
        customErrorResponses: CACHED_ERRORS.map((errorCode) => ({ errorCode, errorCachingMinTtl: 0 })),
      },
    });
    new CfnOutput(this, "DomainName", { description: "Where the API is now reached.", value: made.attrDomainName });
    return made;
  }
}

/** Errors that CloudFront would repeat for ten seconds. 429 is not among them, and not one that it takes a time for. */
const CACHED_ERRORS = [400, 403, 404, 405, 414, 500, 501, 502, 503, 504];

/** The value with the ARNs of IP sets where they are referred to; constructs check that those are text. */
function referring(value: unknown, arns: Record<string, string>): unknown {
  if (Array.isArray(value)) {
    return value.map((one) => referring(one, arns));
  }
  if (typeof value !== "object" || value === null) {
    return value;
  }
  return Object.fromEntries(
    Object.entries(value).map(([key, one]) => {
      const name = key === "arn" && typeof one === "string" ? /^\$\{(\w+)\.Arn\}$/.exec(one)?.[1] : undefined;
      return [key, name === undefined ? referring(one, arns) : arns[name]];
    }),
  );
}
