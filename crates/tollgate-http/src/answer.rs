//! What is answered: status, header fields and body, from a decision and a policy. Pure.
//!
//! Invariant: 429 means limited and nothing else, and always says when to come back; a cost that never fits is 403 (429
//! would invite to try again, and waiting does not help); who has to prove who he is gets 401; a limiter that cannot decide is 503.

use crate::cors::{self, Grant};
use crate::problem::{self, Challenge, Problem};
use crate::quota::Quota;
use crate::{fields, language, legacy, quota, wait};
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode, header};
use std::cmp::Reverse;
use tollgate_core::{Decision, Key, LimitDecision, Outcome};
use tollgate_mfa::{Action, Shortcoming};
use tollgate_policy::{IfMissing, Messages, Placeholder, Policy, Route, StepUp};

/// Seconds after which a caller may try again when the limiter could not decide.
const RETRY_AFTER_FAILURE: u64 = 1;

/// The language of texts that are ours, not the policy's.
const OUR_LANGUAGE: &str = "en";

/// The request that is answered.
#[derive(Debug, Clone, Copy)]
pub struct Exchange<'a> {
    /// The policy that it was decided by.
    pub policy: &'a Policy,
    /// Its route.
    pub route: &'a Route,
    /// Its header fields.
    pub headers: &'a HeaderMap,
}

/// A decision, and who it is about.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Decided {
    /// The decision.
    pub decision: Decision,
    /// The plan whose figures count.
    pub plan: Option<String>,
}

impl Decided {
    /// The same with these limits as they are now.
    pub(crate) fn updated(&mut self, now: Vec<LimitDecision>) {
        for limit in now {
            let same = |known: &&mut LimitDecision| known.limit == limit.limit && known.key == limit.key;
            if let Some(known) = self.decision.limits.iter_mut().find(same) {
                *known = limit;
            }
        }
    }
}

/// A refusal.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Answer {
    /// 429, 403, 503, 401 or 400.
    pub status: StatusCode,
    /// The header fields.
    pub headers: HeaderMap,
    /// Problem details in JSON.
    pub body: String,
}

/// Fields for the response of a handler that was let through.
#[derive(Debug, Clone, Default)]
pub struct Additions {
    fields: Vec<(HeaderName, HeaderValue)>,
    grant: Option<Grant>,
}

impl Additions {
    /// The fields of an allowed decision.
    #[must_use]
    pub fn of(decided: &Decided, exchange: &Exchange<'_>) -> Self {
        let fields = rate_limit_fields(decided, exchange.policy);
        let grant = exchange.grant().filter(|_| !fields.is_empty());
        Self { fields, grant }
    }

    /// The same once the request has been settled: what is left is told as it is then.
    pub(crate) fn settled(self, decided: &Decided, policy: &Policy) -> Self {
        Self { fields: rate_limit_fields(decided, policy), ..self }
    }

    /// Adds them to a response's.
    pub fn add_to(self, headers: &mut HeaderMap) {
        for (name, value) in self.fields {
            headers.append(name, value);
        }
        if let Some(grant) = self.grant {
            grant.expose(headers);
        }
    }
}

impl Answer {
    /// The answer to a decision that is not allowed: 429, or 403 where a cost never fits.
    #[must_use]
    pub fn refused(decided: &Decided, exchange: &Exchange<'_>) -> Self {
        let never_fits = decided.decision.outcome() == Outcome::NeverFits;
        let wait = (!never_fits).then(|| wait::retry_after(decided.decision.retry_after().unwrap_or_default()));
        let plan = decided.plan.as_deref();
        let violated = violated(&decided.decision);
        let winner = violated.first().and_then(|limit| Quota::of(limit, exchange.policy, plan));
        let quotas = Quota::each_once(violated, exchange.policy, plan);
        let told = told(winner.as_ref(), decided, wait, exchange.headers);
        let problem = Problem {
            kind: if never_fits { problem::BLANK } else { problem::QUOTA_EXCEEDED },
            title: if never_fits {
                "Forbidden"
            } else {
                "Request cannot be satisfied as assigned quota has been exceeded"
            },
            status: if never_fits { 403 } else { 429 },
            detail: &told.text,
            violated_policies: quotas.iter().map(Quota::name).collect(),
            error: if never_fits { "cost_never_fits" } else { "rate_limited" },
            message: &told.text,
            limit: winner.as_ref().map(Quota::name),
            scope: winner.as_ref().map(|quota| scope(quota.key())).unwrap_or_default(),
            retry_after: wait,
            upgrade_url: winner.as_ref().and_then(|quota| quota.limit.upgrade_url()),
            challenge: None,
        };
        let mut answer = Self::new(&problem, exchange, &told);
        for (name, value) in rate_limit_fields(decided, exchange.policy) {
            answer.headers.append(name, value);
        }
        answer
    }

    /// The answer where the limiter could not decide and the call must not pass: 503. It does not say why.
    #[must_use]
    pub fn unavailable(exchange: &Exchange<'_>) -> Self {
        let text = "The service cannot check its limits at the moment. Try again shortly.";
        Self::plain(StatusCode::SERVICE_UNAVAILABLE, "limiter_unavailable", text, None, exchange)
    }

    /// The answer where nobody knows whether the caller has proved who he is: 503.
    pub(crate) fn unproven(exchange: &Exchange<'_>) -> Self {
        let text = "The service cannot check who you are at the moment. Try again shortly.";
        Self::plain(StatusCode::SERVICE_UNAVAILABLE, "step_up_unavailable", text, None, exchange)
    }

    /// The answer to a request of which `field` must have one value, and has none: 400.
    pub(crate) fn unbound(exchange: &Exchange<'_>, field: &str) -> Self {
        let text = format!("The body must have the field {field:?} once, as text, a number or a boolean.");
        Self::plain(StatusCode::BAD_REQUEST, "bad_request", &text, None, exchange)
    }

    /// The answer to a caller who has to prove again who he is (RFC 9470 section 3), for `action` alone if it is given: 401. Who has not
    /// proved it at all is told the same, since it is the same that he has to do.
    pub(crate) fn step_up(
        exchange: &Exchange<'_>,
        required: &StepUp,
        shortcoming: Shortcoming,
        action: Option<&Action>,
    ) -> Self {
        let text = match shortcoming {
            Shortcoming::Insufficient => "A different authentication level is required.",
            _ => "More recent authentication is required.",
        };
        let (error, max_age) = ("insufficient_user_authentication", required.max_age.as_secs());
        let action = action.map(ToString::to_string);
        let challenge = Challenge { max_age, acr_values: &required.acr, amr_values: &required.amr, action };
        let mut answer = Self::plain(StatusCode::UNAUTHORIZED, error, text, Some(challenge), exchange);
        let classes = if required.acr.is_empty() {
            String::new()
        } else {
            format!(", acr_values=\"{}\"", required.acr.join(" "))
        };
        let value = format!("Bearer error=\"{error}\", error_description=\"{text}\"{classes}, max_age=\"{max_age}\"");
        // The policy has checked what stands in it.
        if let Ok(value) = HeaderValue::try_from(value) {
            answer.headers.insert(header::WWW_AUTHENTICATE, value);
        }
        answer
    }

    /// An answer that is about no limit.
    fn plain(
        status: StatusCode,
        error: &'static str,
        text: &str,
        challenge: Option<Challenge<'_>>,
        exchange: &Exchange<'_>,
    ) -> Self {
        let told = ours(text.to_owned());
        let problem = Problem {
            kind: problem::BLANK,
            title: status.canonical_reason().unwrap_or_default(),
            status: status.as_u16(),
            detail: &told.text,
            violated_policies: Vec::new(),
            error,
            message: &told.text,
            limit: None,
            scope: Vec::new(),
            retry_after: status.is_server_error().then_some(RETRY_AFTER_FAILURE),
            upgrade_url: None,
            challenge,
        };
        Self::new(&problem, exchange, &told)
    }

    fn new(problem: &Problem<'_>, exchange: &Exchange<'_>, told: &Told) -> Self {
        let mut headers = HeaderMap::new();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(problem::MEDIA_TYPE));
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Some(seconds) = problem.retry_after {
            headers.insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(language) = told.language.as_deref().and_then(|tag| HeaderValue::from_str(tag).ok()) {
            headers.insert(header::CONTENT_LANGUAGE, language);
        }
        if told.varies {
            headers.append(header::VARY, HeaderValue::from_static("Accept-Language"));
        }
        if cors::varies(exchange.policy.cors(exchange.route)) {
            headers.append(header::VARY, HeaderValue::from_static("Origin"));
        }
        if let Some(grant) = exchange.grant() {
            grant.allow(&mut headers);
        }
        let status = StatusCode::from_u16(problem.status).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
        Self { status, headers, body: problem.body() }
    }

    /// The answer as a response.
    #[must_use]
    pub fn into_response<B: From<String>>(self) -> Response<B> {
        let mut response = Response::new(B::from(self.body));
        *response.status_mut() = self.status;
        *response.headers_mut() = self.headers;
        response
    }
}

impl Exchange<'_> {
    fn grant(&self) -> Option<Grant> {
        Grant::of(self.policy.cors(self.route), self.policy.http(), self.headers)
    }
}

fn rate_limit_fields(decided: &Decided, policy: &Policy) -> Vec<(HeaderName, HeaderValue)> {
    let quotas = Quota::visible(&decided.decision, policy, decided.plan.as_deref());
    let mut all = fields::fields(&quotas);
    all.extend(legacy::fields(policy.http().legacy_headers(), &quotas));
    all
}

/// The limits that refuse, the one that a caller waits for longest first; none under a ban.
fn violated(decision: &Decision) -> Vec<&LimitDecision> {
    if quota::is_banned(decision) {
        return Vec::new();
    }
    let mut violated: Vec<_> = decision.limits.iter().filter(|limit| limit.is_in_the_way()).collect();
    violated.sort_by_key(|limit| Reverse(limit.urgency()));
    violated
}

/// The names of the dimensions that a key has; a shared key's are those that lacked a value.
fn scope(key: &Key) -> Vec<&str> {
    key.dimensions().map(|(name, _)| name.strip_prefix(IfMissing::MARK).unwrap_or(name)).collect()
}

/// What a person is told.
struct Told {
    text: String,
    language: Option<String>,
    /// Whether another `Accept-Language` would have been told something else.
    varies: bool,
}

fn told(winner: Option<&Quota<'_>>, decided: &Decided, wait: Option<u64>, headers: &HeaderMap) -> Told {
    let messages = winner.and_then(|quota| Some((quota, quota.limit.messages()?)));
    let picked = messages.and_then(|(quota, all)| Some((quota, all.pick(&language::preferred(headers))?)));
    // The policy's messages speak of waiting, which does not help where the cost never fits.
    match (picked, wait) {
        (Some((quota, (tag, message))), Some(wait)) => {
            let text = message.render(|placeholder| match placeholder {
                Placeholder::Rate => quota.rate_text(),
                Placeholder::Burst => quota.burst().to_string(),
                Placeholder::Limit => quota.name().to_owned(),
                Placeholder::Plan => decided.plan.clone().unwrap_or_default(),
                Placeholder::RetryAfter => wait::text(wait),
                _ => String::new(),
            });
            let language = (tag != Messages::ANY_LANGUAGE).then(|| tag.to_owned());
            Told { text, varies: language.is_some(), language }
        }
        (_, Some(wait)) => ours(format!("Too many requests. Try again in {}.", wait::text(wait))),
        (_, None) => {
            ours("This request costs more than the limit ever admits at once. Waiting does not help.".to_owned())
        }
    }
}

fn ours(text: String) -> Told {
    Told { text, language: Some(OUR_LANGUAGE.to_owned()), varies: false }
}
