//! Which layer gave an answer, from its fields and its body alone.
//!
//! Invariant: the bodies that are ours are told by members that the code and templates of this repository write, and tests take those
//! from there; what is AWS's is told as its documentation says it.

use super::message::{Body, Message};
use super::others;
use super::printable::printable;
use super::report::{Confidence, Layer, Outcome};
use Confidence::{Certain, Guess, Likely};
use serde_json::Value;
use tollgate_policy::Policy;
use tollgate_waf::{Action, render};

/// Who gave an answer, and how that is known.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Verdict {
    pub(super) layer: Layer,
    pub(super) by: String,
    pub(super) confidence: Confidence,
    pub(super) outcome: Outcome,
    /// What tells it.
    pub(super) evidence: Vec<String>,
    /// Where to look further.
    pub(super) look: Vec<String>,
    /// Whom of the counters it may be where it is not a limit of ours: rules of WAF.
    pub(super) candidates: Vec<String>,
    /// Who counts apart there.
    pub(super) apart: Option<String>,
}

impl Verdict {
    fn new(layer: Layer, by: &str, confidence: Confidence, outcome: Outcome, evidence: impl Into<String>) -> Self {
        let (by, evidence) = (by.to_owned(), vec![evidence.into()]);
        let (look, candidates, apart) = (Vec::new(), Vec::new(), None);
        Self { layer, by, confidence, outcome, evidence, look, candidates, apart }
    }

    fn look(mut self, text: impl Into<String>) -> Self {
        self.look.push(text.into());
        self
    }

    fn apart(mut self, text: &str) -> Self {
        self.apart = Some(text.to_owned());
        self
    }
}

/// The first reading that fits, those that only one sender has first.
pub(super) fn of(message: &Message, policy: Option<&Policy>) -> Verdict {
    let readings = [waf, ours, api_gateway, lambda, cloudfront, load_balancer];
    let mut verdict = readings
        .iter()
        .find_map(|reading| reading(message, policy))
        .or_else(|| elsewhere(message))
        .unwrap_or_else(|| unknown(message));
    verdict.evidence.extend(way(message));
    verdict
}

/// AWS WAF: the custom response of a rule of ours; the marks of CAPTCHA and Challenge (Developer Guide, "CAPTCHA and Challenge action
/// behavior"); its default 403 (Developer Guide, "Rule action options"), which a load balancer and CloudFront word each in its own way.
fn waf(message: &Message, policy: Option<&Policy>) -> Option<Verdict> {
    let told =
        |outcome, evidence: &str| Verdict::new(Layer::Waf, "AWS WAF", Certain, outcome, evidence).apart(WAF_APART);
    let sampled = "`tollgate waf status`, and sampled requests and the log of the web ACL (`terminatingRuleId`), say which rule it was";
    if let Some(action) = message.field("x-amzn-waf-action") {
        let evidence = format!("`x-amzn-waf-action: {}`", printable(&action));
        let text = "who has no browser cannot solve this: programs need a rule that does not ask them";
        return Some(told(Outcome::Challenged, &evidence).look(text).look(sampled));
    }
    if let Some((body, rules)) = custom_body(message, policy) {
        let mut verdict =
            told(Outcome::Limited, &format!("the body is the one that rules of `[edge]` answer with, {body:?}"));
        if rules.is_empty() && policy.is_some() {
            verdict = verdict.look("no rule of this policy blocks with it: another stage or revision is deployed; compare by `tollgate waf plan`");
        }
        verdict.candidates = rules;
        return Some(verdict.look(sampled));
    }
    let is_default = message.says("Request blocked") && message.says("request could not be satisfied");
    if message.status.is_none_or(|status| status == 403) && is_default {
        let mut verdict =
            told(Outcome::Blocked, "CloudFront's page \"Request blocked\", which is what it makes of a block by WAF");
        verdict.confidence = Likely;
        return Some(
            verdict
                .look(
                    "a rule without a custom response blocks with 403 and no Retry-After; give it 429 as `[edge]` does",
                )
                .look(sampled),
        );
    }
    None
}

const WAF_APART: &str = "WAF counts each address by itself, estimates over its window, and may act or let go half a minute late, or some minutes (Developer Guide, \"Rate-based rule caveats\")";

/// The name of a body of `[edge]`, or of ours, that this is, and what may have answered with it.
fn custom_body(message: &Message, policy: Option<&Policy>) -> Option<(String, Vec<String>)> {
    let is = |content: &str| match (&message.body, serde_json::from_str::<Value>(content)) {
        (Body::Json(body), Ok(content)) => *body == content,
        (Body::Text(body), _) => body.trim() == content.trim(),
        _ => false,
    };
    let edge = policy.and_then(Policy::edge);
    let named =
        edge.and_then(|edge| edge.bodies.iter().find(|(_, body)| is(&body.content)).map(|(name, _)| name.clone()));
    let name = named.or_else(|| is(render::OUR_CONTENT).then(|| render::OUR_BODY.to_owned()))?;
    let acl = policy.and_then(render::web_acl);
    let key = edge.map(|edge| format!("{}{name}", edge.prefix)).unwrap_or_default();
    let answers = |action: &Action| matches!(action, Action::Block { body, .. } if *body == key);
    let rules = acl.into_iter().flat_map(|acl| acl.rules).filter(|rule| answers(&rule.action)).map(|rule| rule.name);
    Some((name, rules.collect()))
}

/// What this repository answers: the layer, its authorizer's and usage plans' gateway responses, codes and factors, the JSON API.
fn ours(message: &Message, _: Option<&Policy>) -> Option<Verdict> {
    if let Some(verdict) = decision(message) {
        return Some(verdict);
    }
    let error = message.text_of("error")?;
    let kind = message.text_of("type").unwrap_or_default();
    let is_problem = message.field("content-type").is_some_and(|of| of.starts_with("application/problem+json"));
    let has = |member: &str| message.json().is_some_and(|body| body.contains_key(member));
    // What a gateway response cannot know.
    let names_limit = has("detail") || has("limit") || has("violated-policies");
    let app = |outcome, by: &str, evidence: String| Verdict::new(Layer::Application, by, Certain, outcome, evidence);
    let layer = "tollgate in front of the handler";
    let said = format!("the body has `error: {error:?}`");
    Some(match error {
        "rate_limited" if names_limit && kind.ends_with("#quota-exceeded") => app(
            Outcome::Limited,
            layer,
            format!("{said} and the problem type of a quota (draft-ietf-httpapi-ratelimit-headers-11)"),
        ),
        "rate_limited" if kind.ends_with("#quota-exceeded") && has("retryAfter") => {
            let by = "tollgate's authorizer at the REST API";
            let evidence = format!("{said} in the words of the template's gateway response ACCESS_DENIED");
            Verdict::new(Layer::Authorizer, by, Certain, Outcome::Limited, evidence)
                .look("a gateway response cannot name the limit; the authorizer's log does, by `apiRequestId`")
        }
        "rate_limited" if kind == "about:blank" && !has("retryAfter") => {
            let evidence = format!("{said} in the words of the template's gateway response THROTTLED");
            Verdict::new(
                Layer::Gateway,
                "API Gateway, by a usage plan, a stage or the account",
                Certain,
                Outcome::Limited,
                evidence,
            )
            .look(GATEWAY_LOOK)
            .apart(GATEWAY_APART)
        }
        "cost_never_fits" => app(Outcome::NeverFits, layer, said),
        "limiter_unavailable" if kind == "about:blank" && !has("detail") => {
            let evidence =
                format!("{said} in the words of the template's gateway responses for an authorizer that failed");
            Verdict::new(
                Layer::Authorizer,
                "tollgate's authorizer at the REST API",
                Certain,
                Outcome::Unavailable,
                evidence,
            )
        }
        "limiter_unavailable" | "step_up_unavailable" => app(Outcome::Unavailable, layer, said),
        "otp_unavailable" => app(Outcome::Unavailable, "tollgate's one-time codes", said),
        "mfa_unavailable" => app(Outcome::Unavailable, "tollgate's second factors", said),
        "insufficient_user_authentication" => app(Outcome::Challenged, layer, format!("{said} (RFC 9470)")),
        "captcha_required" => app(Outcome::Challenged, "tollgate's one-time codes", said),
        "locked" if has("retryAfter") || message.status == Some(403) => {
            app(Outcome::Locked, "tollgate's one-time codes or second factors", said)
        }
        "cooldown" if has("retryAfter") => app(Outcome::Cooldown, "tollgate's one-time codes", said),
        "sending_paused" => app(Outcome::SendingPaused, "tollgate's one-time codes", said),
        "rate_limited" if is_problem => {
            let mut verdict = app(Outcome::Limited, "tollgate in front of a handler, perhaps another service's", said);
            verdict.confidence = Likely;
            verdict
        }
        _ => return None,
    })
}

/// An answer of `POST /v1/decisions`, which is 200 whatever it says.
fn decision(message: &Message) -> Option<Verdict> {
    let answers = message.decisions();
    if answers.is_empty() {
        return None;
    }
    let said = |name: &str, value: bool| answers.iter().any(|of| of.get(name) == Some(&Value::Bool(value)));
    let outcome = if said("never_fits", true) {
        Outcome::NeverFits
    } else if said("allowed", false) {
        Outcome::Limited
    } else {
        Outcome::Passed
    };
    let evidence = "a decision of POST /v1/decisions: the status is 200 either way, and a 429 is what its caller makes of `allowed: false`";
    Some(Verdict::new(Layer::Application, "tollgate's limiter function", Certain, outcome, evidence))
}

const GATEWAY_LOOK: &str = "the stage's execution log says which: `Key throttle limit exceeded for Usage Plan ID`, or `Key quota exhausted` \
    (re:Post, \"How do I troubleshoot 429 errors in API Gateway?\"); `aws apigateway get-usage` tells what a key has used";
const GATEWAY_APART: &str = "the account's bucket is one for all APIs of a Region; usage plans are applied on a best-effort basis (Developer Guide, \"Throttle requests to your REST APIs\")";

/// API Gateway by itself (Developer Guide, "Gateway response types": THROTTLED `Too Many Requests`, QUOTA_EXCEEDED `Limit Exceeded`,
/// WAF_FILTERED `Forbidden`); a gateway response has `x-amzn-ErrorType`, which an integration's answer has not.
fn api_gateway(message: &Message, _: Option<&Policy>) -> Option<Verdict> {
    let told = message.field("x-amzn-errortype").unwrap_or_default();
    let kind = told.to_ascii_lowercase();
    let is_alone = message.json().is_some_and(|body| body.len() == 1);
    let text = message.text_of("message").filter(|_| is_alone).map(str::to_ascii_lowercase);
    // Without it an application may have said the same.
    let (sure, marks) = match told.as_str() {
        "" => (Likely, String::new()),
        told => (Certain, format!(", and `x-amzn-ErrorType: {}`", printable(told))),
    };
    let gateway = |by: &str, evidence: &str| {
        Verdict::new(Layer::Gateway, by, sure, Outcome::Limited, format!("{evidence}{marks}"))
            .look(GATEWAY_LOOK)
            .apart(GATEWAY_APART)
    };
    let outcome = match (text.as_deref(), message.status) {
        (Some("limit exceeded"), None | Some(429)) => {
            gateway("API Gateway, by the quota of a usage plan", "the body of the gateway response QUOTA_EXCEEDED")
                .look("a quota of a day, week or month: no wait of seconds helps; `aws apigateway update-usage` extends it for a key")
        }
        (Some("too many requests"), None | Some(429)) => {
            gateway("API Gateway, by the rate of a usage plan, a method, a stage or the account", "the body of the gateway response THROTTLED")
        }
        (Some("forbidden"), Some(403)) if kind.starts_with("forbiddenexception") => {
            let mut verdict = gateway("API Gateway: a missing or wrong API key, or a block by WAF", "the body of INVALID_API_KEY and of WAF_FILTERED");
            (verdict.confidence, verdict.outcome) = (Likely, Outcome::Blocked);
            verdict.look("the log of the web ACL, and whether the method asks for an API key that the call has")
        }
        (_, Some(429)) if kind.starts_with("limitexceeded") => gateway("API Gateway, by the quota of a usage plan", "429"),
        _ => return None,
    };
    Some(outcome)
}

/// Lambda itself (API Reference, `TooManyRequestsException`), as a function URL or a call of `Invoke` gets it: a REST API makes 500 of
/// it, and an HTTP API 503.
fn lambda(message: &Message, _: Option<&Policy>) -> Option<Verdict> {
    let kind = message.field("x-amzn-errortype").is_some_and(|kind| kind.starts_with("TooManyRequestsException"));
    let reason = message.text_of("Reason");
    let says = message.text_of("message").or_else(|| message.text_of("Message"));
    let is_rate = says.is_some_and(|text| text.to_ascii_lowercase().starts_with("rate exceeded"));
    if !(is_rate && (kind || reason.is_some())) {
        return None;
    }
    let why = match reason {
        Some("ReservedFunctionConcurrentInvocationLimitExceeded" | "ReservedFunctionInvocationRateLimitExceeded") => {
            "the function's reserved concurrency is used up: raise it, or see why invocations take so long"
        }
        Some("ConcurrentInvocationLimitExceeded" | "FunctionInvocationRateLimitExceeded") => {
            "the account's concurrency in the Region is used up: look at ConcurrentExecutions, reserve some, or ask for more"
        }
        Some("CallerRateLimitExceeded") => {
            "too many calls of Lambda's API by this account, not too many requests to the function"
        }
        _ => "look at the function's Throttles and ConcurrentExecutions, and at its reserved concurrency",
    };
    let reason = reason.map(|reason| format!(", with the reason {:?}", printable(reason))).unwrap_or_default();
    let evidence = format!("Lambda's `Rate Exceeded`{reason}: the function was not started");
    let verdict = Verdict::new(
        Layer::Lambda,
        "Lambda, which had no room for the invocation",
        Certain,
        Outcome::Unavailable,
        evidence,
    );
    Some(
        verdict
            .look(why)
            .apart("concurrency is one for all functions of an account in a Region, less what is reserved"),
    )
}

/// CloudFront by itself (Developer Guide, "HTTP 503 status code": functions at the edge that are throttled).
fn cloudfront(message: &Message, _: Option<&Policy>) -> Option<Verdict> {
    let is_its = message.says("Generated by cloudfront") || message.says("request could not be satisfied");
    let outcome = if message.status == Some(403) { Outcome::Blocked } else { Outcome::Unavailable };
    let verdict =
        Verdict::new(Layer::Cloudfront, "CloudFront by itself", Certain, outcome, "CloudFront's own error page");
    is_its.then(|| verdict.look("`x-edge-detailed-result-type` in its access log, by `x-amz-cf-id`; it has no rate limit of its own but WAF's"))
}

/// An Application Load Balancer by itself (User Guide, "Troubleshoot your Application Load Balancers").
fn load_balancer(message: &Message, _: Option<&Policy>) -> Option<Verdict> {
    let is_its = message.field("server").is_some_and(|server| server.starts_with("awselb/"));
    let outcome = match message.status {
        Some(403) => Outcome::Blocked,
        Some(429) => Outcome::Limited,
        _ => Outcome::Unavailable,
    };
    let verdict = Verdict::new(
        Layer::LoadBalancer,
        "an Application Load Balancer by itself",
        Certain,
        outcome,
        "`server: awselb/…`",
    );
    is_its.then(|| {
        verdict.look("403 is WAF's default block, 429 a fixed response of a listener rule, 502 also a throttled function behind it, 503 no target; `actions_executed` and `error_reason` in its access log say which")
    })
}

fn elsewhere(message: &Message) -> Option<Verdict> {
    let other = others::find(message)?;
    let limited = message.status.is_none_or(|status| matches!(status, 403 | 429 | 503));
    let outcome = if limited { Outcome::Limited } else { Outcome::Passed };
    Some(
        Verdict::new(Layer::Elsewhere, other.name, other.confidence, outcome, other.evidence)
            .look(other.look)
            .apart(other.apart),
    )
}

fn unknown(message: &Message) -> Verdict {
    let (outcome, evidence) = match message.status {
        Some(429) => (Outcome::Limited, "429 in nobody's words that are known"),
        Some(status) if status < 400 => (Outcome::Passed, "this is no refusal"),
        Some(401 | 407 | 511) => (Outcome::Challenged, "its caller has to say who he is"),
        Some(500..) => (Outcome::Unavailable, "a server failed; that says nothing of a limit"),
        _ => (Outcome::Unknown, "nobody's words that are known"),
    };
    let verdict = Verdict::new(Layer::Unknown, "nobody that is known", Guess, outcome, evidence);
    verdict.look("paste the whole answer, as `curl -i` prints it: header fields tell more than the body")
}

/// What the answer has passed on its way, whoever gave it: these add fields to answers of others.
fn way(message: &Message) -> Vec<String> {
    let mut way = Vec::new();
    if message.has("apigw-requestid") {
        way.push("it came through an HTTP API of API Gateway (`apigw-requestid`)".to_owned());
    } else if message.has("x-amz-apigw-id") {
        way.push("it came through a REST API of API Gateway (`x-amz-apigw-id`)".to_owned());
    } else if message.has("x-amzn-trace-id") || message.has("x-amzn-requestid") {
        way.push("it came through a service of AWS (`x-amzn-requestid`)".to_owned());
    }
    if message.has("x-amz-cf-id") {
        let cache = message.field("x-cache").unwrap_or_default();
        way.push(match cache.to_ascii_lowercase().starts_with("hit") {
            true => "CloudFront had it in its cache (`x-cache: Hit`): it was made for another call".to_owned(),
            false => "it came through CloudFront (`x-amz-cf-id`)".to_owned(),
        });
    }
    if message.has("cf-ray") {
        way.push("it came through Cloudflare (`cf-ray`)".to_owned());
    }
    way
}
