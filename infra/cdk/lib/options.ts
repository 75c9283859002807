import type { RetentionDays } from "aws-cdk-lib/aws-logs";
import type { IKey } from "aws-cdk-lib/aws-kms";
import type { ITopic } from "aws-cdk-lib/aws-sns";

/** Where the functions read the policy. */
export type PolicyOptions =
  /** A file that is deployed with them, as a layer. */
  | { readonly file: string }
  /** The name of an SSM parameter, like `/tollgate/policy`. */
  | { readonly parameter: string }
  /** An object of S3. */
  | { readonly bucket: string; readonly key: string }
  /** A configuration profile of AppConfig, by ids: permissions name ids, so that names do not do. */
  | { readonly application: string; readonly environment: string; readonly profile: string };

/** Where the secrets are that personal values are hashed under and tokens of devices signed by. */
export type SecretsOptions =
  /** The name of a `SecureString` of SSM, like `/tollgate/keys`. */
  | { readonly parameter: string }
  /** The ARN of a secret of Secrets Manager. */
  | { readonly secretArn: string };

/** The table. */
export interface TableOptions {
  /** Whether it refuses to be deleted. @default true */
  readonly deletionProtection?: boolean;
  /** Days, 1 to 35, that it can be restored to any second of; 0 for none. @default 35 */
  readonly recoveryDays?: number;
  /** The key that it is encrypted under: `created` for one of the stack's own. @default one that AWS owns */
  readonly encryption?: "created" | IKey;
  /** Units a second that it takes at once: 12,000 reads and 4,000 writes at least. @default what DynamoDB gives a new table */
  readonly warm?: { readonly readUnits: number; readonly writeUnits: number };
}

/** Metrics, alarms and the dashboard. */
export interface MetricsOptions {
  /** The namespace in CloudWatch. @default "Tollgate" */
  readonly namespace?: string;
  /** Where alarms are sent. @default nowhere; they are seen in CloudWatch */
  readonly alarmTopic?: ITopic;
  /** The web ACL whose metrics the dashboard shows, as the policy's `[edge]` names it. @default "tollgate" */
  readonly webAcl?: string;
}

/** One-time codes. They need {@link TollgateProps.keySecrets}. */
export interface OtpOptions {
  /** The Cognito user pool whose verified numbers and addresses codes go to, the one that issues the tokens. */
  readonly userPoolId: string;
  /** Text messages of AWS End User Messaging. @default none are sent */
  readonly sms?: {
    /** The number, sender id or pool that they come from: its id or ARN. */
    readonly originationIdentity: string;
    /** @default none */
    readonly configurationSet?: string;
    /** @default the account's */
    readonly protectConfiguration?: string;
  };
  /** Email of SES. @default none is sent */
  readonly email?: {
    /** The verified identity that it comes from. */
    readonly from: string;
    /** @default none */
    readonly configurationSet?: string;
  };
  /** The name of the event bus for codes that go out in another way. Its events have codes in plain. @default none go out */
  readonly eventBus?: string;
  /** Name of a `SecureString` with the secret key of Cloudflare Turnstile. @default Turnstile is not asked */
  readonly turnstileParameter?: string;
  /** Or of one with the value that a WAF rule with the action CAPTCHA inserts. @default such a header is not looked at */
  readonly wafCaptchaParameter?: string;
  /** Most environments that deliver at once, 2 to 1,000. @default 5 */
  readonly courierConcurrency?: number;
}

/** Second factors. */
export interface MfaOptions {
  /** The symmetric key that their secrets are sealed under. */
  readonly key: IKey;
  /** The key before it, for as long as secrets are sealed under it. @default none */
  readonly retiringKey?: IKey;
}

/** The receiver of signed webhooks. */
export interface WebhookOptions {
  /** ARN of the secret of Secrets Manager with what they are signed with; with two, a comma between, while it changes. */
  readonly secretArn: string;
  /** Header with the signature, which is like `t=SECONDS,v1=DIGITS`. @default "stripe-signature" */
  readonly signatureHeader?: string;
  /** Seconds that its time may be from the present, 1 to 86,400. @default 300 */
  readonly toleranceSeconds?: number;
  /** Reserved concurrency of what anybody can call. @default none */
  readonly concurrency?: number;
}

/** Properties of {@link Tollgate}. */
export interface TollgateProps {
  /** The folder with one folder a function, each with its `bootstrap`: `target/lambda` of `cargo lambda build --release --arm64`. */
  readonly artifacts: string;
  /** Where the policy is. */
  readonly policy: PolicyOptions;
  /** Age in seconds at which a newer policy is looked for, 1 to 86,400. @default 60 */
  readonly policyRefreshSeconds?: number;
  /** Your own key that policy and parameters are encrypted with. @default keys that AWS manages */
  readonly policyKey?: IKey;
  /** Where the secrets are that personal values are hashed under. @default none, for policies that need none */
  readonly keySecrets?: SecretsOptions;
  /** The table. @default see there */
  readonly table?: TableOptions;
  /** Metrics, alarms and the dashboard; `false` for none. @default see there */
  readonly metrics?: MetricsOptions | false;
  /** One-time codes. @default none */
  readonly otp?: OtpOptions;
  /** Whether the sentinel keeps addresses out in front, as `keep_out` of the policy's `[edge]` says. @default false */
  readonly keepOut?: boolean;
  /** Second factors. @default none */
  readonly mfa?: MfaOptions;
  /** The receiver of webhooks. @default none */
  readonly webhook?: WebhookOptions;
  /** Milliseconds that a decision may take, retries included, 10 to 5,000. @default 50 */
  readonly deadlineMs?: number;
  /** Memory of each function in MB. @default 256 */
  readonly memoryMb?: number;
  /** Reserved concurrency of the limiter. @default none */
  readonly limiterConcurrency?: number;
  /** Environments that share the limits while the table gives no answer. @default the policy says */
  readonly instances?: number;
  /** How long logs are kept. @default 30 days */
  readonly logRetention?: RetentionDays;
}
