//! The service under attack, in this process: the very rules, writes, limits and judgements of the functions, on tables in memory and a
//! manual clock.
//!
//! Invariant: what is decided here is decided by the code that is deployed; only where items are kept differs.

use crate::error::{CliError, Result};
use ::otp::device;
use lambda_http::http::header::COOKIE;
use lambda_http::http::{HeaderMap, HeaderValue, Method, StatusCode};
use lambda_http::tower::{Layer, ServiceExt};
use lambda_http::{Body, Request, Response, service_fn};
use std::collections::{BTreeMap, HashMap};
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tollgate::http::{Facts, TollgateLayer};
use tollgate::testing::{ManualClock, MemoryStore};
use tollgate::{Clock, Key, Limiter, Policy, Timestamp};
use tollgate_otp::issue::{Issue, Next};
use tollgate_otp::pumping::guard::marks;
use tollgate_otp::pumping::judge::windows;
use tollgate_otp::pumping::{Change, Cohorts, Ladder, Shown, Step, Suspicion, Window, judge};
use tollgate_otp::{ChallengeId, Code, Destination, Item, Recipient};
use tollgate_policy::OtpRules;

/// Where a message is asked for.
const SEND: &str = "/api/auth/otp/send";

/// How often what has expired is deleted, seconds.
const HOUR: u64 = 3600;

/// Simulated time does not pass while this machine is busy.
const DEADLINE: Duration = Duration::from_secs(600);

/// What stands between a wish and a message, each with all before it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Defence {
    /// Nothing but an account's cooldown.
    None,
    /// The limits of the route.
    Limits,
    /// The ladder; nobody's device is known.
    Ladder,
    /// Devices are known.
    Devices,
}

/// What became of a wish.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Answer {
    /// A message is on its way, whose code was made then.
    Sent(Timestamp),
    /// A CAPTCHA is asked for.
    Captcha,
    /// Nothing is sent now.
    Refused,
}

/// Who asks.
#[derive(Debug, Clone)]
pub(super) struct Caller {
    pub(super) user: String,
    pub(super) address: String,
    pub(super) to: Destination,
    /// The cookie of a device that he is known on.
    pub(super) cookie: Option<String>,
}

pub(super) struct World {
    policy: Arc<Policy>,
    defence: Defence,
    clock: ManualClock,
    layer: TollgateLayer<MemoryStore>,
    store: MemoryStore,
    codes: HashMap<String, Item>,
    cohorts: BTreeMap<String, Cohorts>,
    ladder: Ladder,
}

impl World {
    pub(super) fn new(policy: Arc<Policy>, defence: Defence, start: Timestamp) -> Self {
        let clock = ManualClock::new(start);
        let store = MemoryStore::new(clock.clone());
        let limiter = Arc::new(Limiter::new(store.clone()).with_deadline(DEADLINE));
        let layer = TollgateLayer::new(Policy::clone(&policy), limiter);
        let (codes, cohorts, ladder) = (HashMap::new(), BTreeMap::new(), Ladder::default());
        Self { policy, defence, clock, layer, store, codes, cohorts, ladder }
    }

    pub(super) fn set(&self, now: Timestamp) {
        self.clock.set(now);
    }

    fn rules(&self) -> Result<&OtpRules> {
        self.policy.otp().ok_or_else(|| CliError::Input("the policy has no [otp]".to_owned()))
    }

    /// Somebody wants a message.
    pub(super) async fn send(&mut self, caller: &Caller, is_human: bool) -> Result<Answer> {
        let (now, to) = (self.clock.now(), &caller.to);
        let known_since = device::known_since(&self.policy, &caller.user, &self.headers(caller), now);
        let suspicion = if self.defence >= Defence::Ladder {
            Suspicion::of(&self.ladder, to, Shown { is_human, known_since }, now)
        } else {
            Suspicion::None
        };
        if suspicion.refuses() {
            self.count(to, now, Change::Refused);
            return Ok(if suspicion == Suspicion::Captcha { Answer::Captcha } else { Answer::Refused });
        }
        let account = Key::new([("user", caller.user.as_str())])?;
        if !self.issue(&account, to)? {
            return Ok(Answer::Refused);
        }
        if self.defence != Defence::None && !self.is_admitted(caller, &account, &suspicion).await? {
            if matches!(suspicion, Suspicion::Reduced(_)) {
                self.count(to, now, Change::Refused);
            }
            return Ok(Answer::Refused);
        }
        // Where nobody judges, nobody counts.
        if self.defence < Defence::Ladder {
            return Ok(Answer::Sent(now));
        }
        let marks = marks(self.policy.secrets(), to.address()).map_err(|e| CliError::Input(e.to_string()))?;
        if !self.count(to, now, Change::Sent(marks)) {
            self.count(to, now, Change::SentOnly);
        }
        Ok(Answer::Sent(now))
    }

    /// The code of a message that was made then is verified.
    pub(super) fn verified(&mut self, to: &Destination, made_at: Timestamp) {
        self.count(to, made_at, Change::Verified(1));
    }

    /// What the sentinel does every minute.
    pub(super) fn judge(&mut self) -> Result<Vec<Step>> {
        let (now, ttl) = (self.clock.now(), self.rules()?.ttl);
        let oldest = Window(*windows(now, ttl).start());
        let mut steps = Vec::new();
        let watched = if self.defence >= Defence::Ladder { Some(&mut self.cohorts) } else { None };
        for (country, cohorts) in watched.into_iter().flatten() {
            *cohorts = cohorts.split_off(&oldest);
            let (ladder, taken) = judge(&self.ladder, country, cohorts, ttl, now);
            self.ladder = ladder;
            steps.extend(taken);
        }
        if now.as_secs().is_multiple_of(HOUR) {
            self.codes.retain(|_, item| item.expires_at > now.as_secs());
            self.store.delete_expired();
        }
        Ok(steps)
    }

    /// What the caller's request shows of his device.
    fn headers(&self, caller: &Caller) -> HeaderMap {
        let cookie = caller.cookie.as_ref().filter(|_| self.defence >= Defence::Devices);
        cookie
            .and_then(|cookie| HeaderValue::from_str(cookie).ok())
            .map(|cookie| (COOKIE, cookie))
            .into_iter()
            .collect()
    }

    /// Whether the account gets a code.
    fn issue(&mut self, account: &Key, to: &Destination) -> Result<bool> {
        let input = |error: tollgate_otp::Error| CliError::Input(error.to_string());
        let rules = self.rules()?;
        let purpose = rules.purposes().next().ok_or_else(|| CliError::Input("[otp] has no purpose".to_owned()))?;
        let recipient = Recipient::new(account.clone(), purpose.clone(), to.address()).map_err(input)?;
        let (challenge, code) = (ChallengeId::random().map_err(input)?, Code::random(rules.digits).map_err(input)?);
        let digest = recipient.digest(self.policy.secrets(), challenge, &code);
        let digest = digest.ok_or_else(|| CliError::Input("the policy has no secrets".to_owned()))?;
        let (issue, now, name) = (Issue::new(rules, challenge, digest), self.clock.now(), account.to_string());
        let found = self.codes.get(&name);
        let next = match issue.first(now).apply(found) {
            Some(next) => next,
            None => match issue.refused(found, now) {
                Next::Denied(_) => return Ok(false),
                Next::Write(write) => match write.apply(found) {
                    Some(next) => next,
                    None => return Ok(false),
                },
            },
        };
        self.codes.insert(name, next);
        Ok(true)
    }

    /// Whether the limits of the route let the message go.
    async fn is_admitted(&self, caller: &Caller, account: &Key, suspicion: &Suspicion) -> Result<bool> {
        let claims = serde_json::json!({ "sub": caller.user });
        let facts = Facts::default().with_claims(claims.as_object().cloned().unwrap_or_default());
        let facts = facts.with_source_address(&caller.address);
        let facts = otp::suspicion::charged_as(&self.policy, account, Some(&caller.to), suspicion, facts);
        let mut request = Request::new(Body::Empty);
        *request.method_mut() = Method::POST;
        *request.uri_mut() = lambda_http::http::Uri::from_static(SEND);
        *request.headers_mut() = self.headers(caller);
        request.extensions_mut().insert(facts);
        let handler = service_fn(async |_: Request| Ok::<_, Infallible>(Response::new(Body::Empty)));
        let answer = Box::pin(self.layer.layer(handler).oneshot(request)).await;
        Ok(answer.is_ok_and(|answer| answer.status() == StatusCode::OK))
    }

    fn count(&mut self, to: &Destination, at: Timestamp, change: Change) -> bool {
        let cohorts = self.cohorts.entry(to.country().to_owned()).or_default();
        let blocks = cohorts.entry(Window::of(at)).or_default();
        let next = change.apply(blocks.get(to.block()));
        next.map(|next| blocks.insert(to.block().to_owned(), next)).is_some()
    }
}
