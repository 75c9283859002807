//! Answers of somebody else's limiters, told by what their own documentation says they send.
//!
//! Invariant: an entry names where its shape is from; the first that fits wins, so those that only one sender has go first.

use super::message::Message;
use super::report::Confidence;

/// Somebody else's limiter.
#[derive(Debug, Clone, Copy)]
pub(super) struct Other {
    /// Who.
    pub(super) name: &'static str,
    /// How sure a match is.
    pub(super) confidence: Confidence,
    /// What tells them.
    pub(super) evidence: &'static str,
    fits: fn(&Message) -> bool,
    /// Where it is configured, or who can say more.
    pub(super) look: &'static str,
    /// Who counts apart there.
    pub(super) apart: &'static str,
}

/// The first that fits.
pub(super) fn find(message: &Message) -> Option<&'static Other> {
    OTHERS.iter().find(|other| (other.fits)(message))
}

fn is(message: &Message, field: &str, begins: &str) -> bool {
    message.field(field).is_some_and(|value| value.to_ascii_lowercase().starts_with(begins))
}

const UNKNOWN_APART: &str = "each of its processes may count by itself, unless it has a store that all share";

const OTHERS: [Other; 13] = [
    // Cloudflare docs, "Error 1015: You are being rate limited"; as text `error code: 1015`.
    Other {
        name: "Cloudflare (error 1015)",
        confidence: Confidence::Certain,
        evidence: "the body says 1015, which is Cloudflare's number for a rate limiting rule",
        fits: |m| (m.has("cf-ray") || is(m, "server", "cloudflare")) && m.says("1015"),
        look: "Security > Events of the zone, by the Ray ID (`cf-ray`), names the rule",
        apart: "Cloudflare counts in each data centre by itself",
    },
    // docs.github.com, "Rate limits for the REST API": x-ratelimit-resource, x-github-request-id.
    Other {
        name: "GitHub's API",
        confidence: Confidence::Certain,
        evidence: "there is `x-github-request-id`",
        fits: |m| m.has("x-github-request-id"),
        look: "`x-ratelimit-resource` and `x-ratelimit-reset`; without them it is a secondary limit: wait `retry-after`, or a minute and longer each time",
        apart: "GitHub counts by token, or by address without one",
    },
    // docs.stripe.com, "Rate limits": Stripe-Rate-Limited-Reason.
    Other {
        name: "Stripe's API",
        confidence: Confidence::Certain,
        evidence: "there is `stripe-rate-limited-reason` or `request-id` with Stripe's version",
        fits: |m| m.has("stripe-rate-limited-reason") || m.has("stripe-version"),
        look: "`stripe-rate-limited-reason`; wait longer each time, with jitter",
        apart: "Stripe counts by account, test and live apart",
    },
    // platform.openai.com, "Rate limits": x-ratelimit-limit-requests and -tokens.
    Other {
        name: "a model's API (requests and tokens are limited apart)",
        confidence: Confidence::Likely,
        evidence: "there are `x-ratelimit-limit-tokens` and its kin",
        fits: |m| {
            m.names().any(|name| name.ends_with("ratelimit-limit-tokens") || name.ends_with("ratelimit-tokens-limit"))
        },
        look: "which of requests and tokens is at 0, and its reset",
        apart: "such services count by organisation and model",
    },
    // envoyproxy.io, "Rate limit" HTTP filter: x-envoy-ratelimited.
    Other {
        name: "Envoy (or Istio)",
        confidence: Confidence::Certain,
        evidence: "there is `x-envoy-ratelimited`, or the body is Envoy's `local_rate_limited`",
        fits: |m| m.has("x-envoy-ratelimited") || m.says("local_rate_limited"),
        look: "the rate limit filters of the route; `local_rate_limited` is a bucket of one process",
        apart: "a local rate limit is each Envoy's own",
    },
    // docs.konghq.com, plugin "Rate Limiting": X-RateLimit-Limit-Minute, body `API rate limit exceeded`.
    Other {
        name: "Kong",
        confidence: Confidence::Certain,
        evidence: "the body is Kong's, or there is `x-kong-*` or `x-ratelimit-limit-minute` and its kin",
        fits: |m| {
            let kin = ["second", "minute", "hour", "day"].map(|unit| format!("x-ratelimit-limit-{unit}"));
            m.says("API rate limit exceeded")
                || m.names().any(|name| name.starts_with("x-kong") || kin.iter().any(|k| k == name))
        },
        look: "the plugin `rate-limiting` of the service, route or consumer, and its `policy`",
        apart: "with `policy = local` each node counts by itself",
    },
    // docs.spring.io, Spring Cloud Gateway, RequestRateLimiter: X-RateLimit-Burst-Capacity and -Replenish-Rate.
    Other {
        name: "Spring Cloud Gateway",
        confidence: Confidence::Certain,
        evidence: "there is `x-ratelimit-burst-capacity` or `x-ratelimit-replenish-rate`",
        fits: |m| m.has("x-ratelimit-burst-capacity") || m.has("x-ratelimit-replenish-rate"),
        look: "`RequestRateLimiter` of the route, and its key resolver: by default the principal's name",
        apart: "its Redis is shared by the gateways that are configured with it",
    },
    // doc.traefik.io, middleware RateLimit: X-Retry-In.
    Other {
        name: "Traefik",
        confidence: Confidence::Likely,
        evidence: "there is `x-retry-in`",
        fits: |m| m.has("x-retry-in"),
        look: "the middleware `rateLimit` of the router, and its `sourceCriterion`",
        apart: "each Traefik counts by itself, unless it has a Redis",
    },
    // learn.microsoft.com, API Management, policy rate-limit: the body's text.
    Other {
        name: "Azure API Management",
        confidence: Confidence::Likely,
        evidence: "the body has the text of its `rate-limit` or `quota` policy",
        fits: |m| m.says("Rate limit is exceeded. Try again in") || m.says("Out of call volume quota."),
        look: "the policies `rate-limit`, `rate-limit-by-key` and `quota` of product, API and operation",
        apart: "each gateway of a Region counts by itself",
    },
    // docs.apigee.com, "Quota policy" and "SpikeArrest policy": fault codes.
    Other {
        name: "Apigee",
        confidence: Confidence::Certain,
        evidence: "the body has a fault `policies.ratelimit`",
        fits: |m| m.says("policies.ratelimit."),
        look: "`QuotaViolation` or `SpikeArrestViolation` in the body names the policy",
        apart: "a spike arrest is each message processor's own, unless `UseEffectiveCount` is on",
    },
    // npm, express-rate-limit: default body; `RateLimit-Policy` with a partition key (`pk`) is its draft 8.
    Other {
        name: "express-rate-limit (or a limiter that speaks like it)",
        confidence: Confidence::Likely,
        evidence: "the default body of express-rate-limit, or a `pk` in `ratelimit-policy`",
        fits: |m| {
            m.says("Too many requests, please try again later.")
                || m.field("ratelimit-policy").is_some_and(|p| p.contains("pk="))
        },
        look: "`limit`, `windowMs`, `keyGenerator` and `store` of the middleware, and `trust proxy` of the app",
        apart: "its default store is each process's own: behind n of them the limit is n times as high, and restarts forget",
    },
    // nginx.org, ngx_http_limit_req_module: the built-in error page; `limit_req_status` makes it 429.
    Other {
        name: "nginx",
        confidence: Confidence::Likely,
        evidence: "nginx's own error page",
        fits: |m| m.says("<center>nginx") || m.says("<center>openresty"),
        look: "`limit_req` and `limit_conn` of the location, their key (`$binary_remote_addr`), and `limiting requests` in the error log",
        apart: "each nginx counts by itself",
    },
    Other {
        name: "a limiter that is not tollgate's",
        confidence: Confidence::Guess,
        evidence: "quota fields from before the standard (`x-ratelimit-*`)",
        fits: |m| m.names().any(|name| name.starts_with("x-ratelimit-") || name.starts_with("x-rate-limit-")),
        look: "the documentation of whoever sends these fields: whether the reset is seconds or an instant, and what is counted",
        apart: UNKNOWN_APART,
    },
];
