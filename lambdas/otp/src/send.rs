//! `POST /api/auth/otp/send`: a code is made, charged on the route's limits and handed to the courier.
//!
//! Who is suspected is looked up beside the directory; then comes a CAPTCHA, if one is needed; of whoever was known on his device before, no
//! more than that is asked. Then the account's item: while its cooldown
//! lasts nothing is charged, or one account that asks again and again would use up the budget of its whole country. Then the limits, as the
//! policy's route has them, at the message's price and with what only the directory knows in the request context: `context.otp.number`,
//! `context.otp.block`, `context.otp.country` and, while few messages go to it, `context.otp.suspect`. At last the courier has it, and it
//! is counted.
//!
//! Invariants: no message goes out that the limits of the route have not counted on the table, whatever `on_store_failure` says; an
//! account that nothing can be sent to is counted by itself where others are by number, block and country.

use crate::Service;
use crate::answer::{self, Answer};
use crate::caller::{Addressed, Caller};
use crate::factor::Unproven;
use crate::suspicion::{self, charged_as};
use futures_util::future::{join, try_join};
use lambda_http::Request;
use lambda_http::http::StatusCode;
use lambda_http::service_fn;
use lambda_http::tower::{Layer, ServiceExt};
use serde::Deserialize;
use std::sync::Arc;
use tollgate::http::{Facts, preferred_languages};
use tollgate::tollgate_core::LimitName;
use tollgate::tollgate_policy::PumpingRules;
use tollgate::{Decision, Policy, Store};
use tollgate_otp::pumping::{Counted, Guard, Shown, Suspicion};
use tollgate_otp::{Courier, Denied, Directory, Errand, Issuance, Issued, Message, Otp};

/// What is asked for.
#[derive(Deserialize)]
struct Wish {
    purpose: String,
    captcha: Option<String>,
}

/// Why no code is made.
enum Unmade {
    /// It is too soon for one.
    Denied(Denied),
    /// That is suspected.
    Suspected(Suspicion),
    /// It would be no second factor, or nobody knows.
    Unproven(Unproven),
    /// Nobody knows.
    Failed(tollgate_otp::Error),
}

impl From<tollgate_otp::Error> for Unmade {
    fn from(error: tollgate_otp::Error) -> Self {
        Self::Failed(error)
    }
}

impl Unmade {
    fn answer(self) -> Answer {
        match self {
            Self::Denied(denied) => answer::denied(denied),
            Self::Suspected(suspicion) => suspicion::refusal(&suspicion),
            Self::Unproven(unproven) => unproven.answer(),
            Self::Failed(error) => answer::failed(&error),
        }
    }
}

impl<S: Store + 'static, D: Directory, C: Courier + 'static> Service<S, D, C> {
    pub(crate) async fn send(&self, mut request: Request) -> Answer {
        let policy = self.policy.current();
        let caller = match Caller::of(&policy, &request) {
            Ok(Some(caller)) => caller,
            Ok(None) => return answer::unauthenticated(),
            Err(error) => return answer::failed(&error.into()),
        };
        let Ok(wish) = serde_json::from_slice::<Wish>(request.body()) else {
            return answer::bad_request(r#"write {"purpose":"login"}"#);
        };
        let (Addressed { to, recipient }, suspicion, issued) = match self.make(&policy, &caller, &wish, &request).await
        {
            Ok(made) => made,
            Err(unmade) => return unmade.answer(),
        };
        let facts = Facts::of(request.extensions()).into_owned();
        let facts = charged_as(&policy, &caller.account, to.as_ref(), &suspicion, facts);
        request.extensions_mut().insert(facts);
        let languages = preferred_languages(request.headers());
        let message = match policy.otp() {
            Some(rules) => Message::new(rules, to.clone(), &recipient, &issued, &languages),
            None => return answer::nothing_here(),
        };
        let sending = Sending {
            courier: Arc::clone(&self.courier),
            otp: Arc::clone(&self.otp),
            guard: Arc::clone(&self.guard),
            suspicion: suspicion.clone(),
            policy,
            message,
            issued,
        };
        let hand_over = service_fn(move |request: Request| {
            let sending = sending.clone();
            async move { sending.deliver(&request).await }
        });
        // Boxed, since the SDK's futures nest deeper than the compiler follows by itself.
        let answer = Box::pin(self.layer.layer(hand_over).oneshot(request)).await?;
        // Who is refused for the reduced rate is a part of the attack, for all that is known.
        if let (Suspicion::Reduced(_), StatusCode::TOO_MANY_REQUESTS, Some(to)) = (&suspicion, answer.status(), &to) {
            self.refused(to).await;
        }
        Ok(answer)
    }

    /// Makes a code for the caller; tells what is suspected of where it goes.
    async fn make(
        &self,
        policy: &Policy,
        caller: &Caller,
        wish: &Wish,
        request: &Request,
    ) -> Result<(Addressed, Suspicion, Issued), Unmade> {
        let (rules, purpose) = policy.otp_for(&wish.purpose).map_err(tollgate_otp::Error::from)?;
        let addressed = caller.addressed(policy, purpose, &self.directory);
        let (addressed, ladder) = try_join(addressed, self.ladder(policy)).await?;
        // Nothing is sent that would be no second factor.
        let begun = self.begin(policy, request, (rules, purpose), addressed.to.as_ref(), false).await;
        begun.map_err(Unmade::Unproven)?;
        let now = self.otp.items().now();
        let known_since = self.known_since(policy, caller, request);
        let suspicion = |is_human| match (&addressed.to, &ladder) {
            (Some(to), Some(ladder)) => Suspicion::of(ladder, to, Shown { is_human, known_since }, now),
            _ => Suspicion::None,
        };
        let mut found = suspicion(false);
        if found == Suspicion::Captcha || (rules.captcha && !found.refuses()) {
            if self.is_captcha_solved(request, wish.captcha.as_deref()).await? {
                found = suspicion(true);
            } else if found == Suspicion::None {
                return Err(Unmade::Suspected(Suspicion::Captcha));
            }
        }
        if let (true, Some(to)) = (found.refuses(), &addressed.to) {
            self.refused(to).await;
            return Err(Unmade::Suspected(found));
        }
        match self.otp.issue(policy, &addressed.recipient).await? {
            Issuance::Issued(issued) => Ok((addressed, found, issued)),
            Issuance::Denied(denied) => Err(Unmade::Denied(denied)),
        }
    }
}

/// A message that its limits have counted.
struct Sending<C> {
    courier: Arc<C>,
    otp: Arc<Otp>,
    guard: Arc<Guard>,
    policy: Arc<Policy>,
    suspicion: Suspicion,
    message: Message,
    issued: Issued,
}

impl<C> Clone for Sending<C> {
    fn clone(&self) -> Self {
        let (courier, otp, guard) = (Arc::clone(&self.courier), Arc::clone(&self.otp), Arc::clone(&self.guard));
        let (policy, suspicion) = (Arc::clone(&self.policy), self.suspicion.clone());
        Self { courier, otp, guard, policy, suspicion, message: self.message.clone(), issued: self.issued.clone() }
    }
}

impl<C: Courier> Sending<C> {
    async fn deliver(self, request: &Request) -> Answer {
        let rules = suspicion::rules(&self.policy);
        if !request.extensions().get::<Decision>().is_some_and(|decision| is_counted(decision, rules, &self.suspicion))
        {
            tracing::error!(
                "nothing is sent: the policy's route lacks limits, `spend`, `reduced`, or `on_store_failure = closed`"
            );
            return answer::unavailable();
        }
        let to = self.message.to.clone();
        let count = async {
            let to = to.as_ref().map_or_else(Counted::as_nowhere, Counted::as_destination);
            let counted =
                async { self.guard.sent(self.otp.items(), self.policy.secrets(), to, self.issued.made_at).await };
            // The limits have counted it. One that is not counted here is one less that may look as if nobody had wanted it.
            if rules.is_some()
                && let Err(error) = counted.await
            {
                tracing::warn!(%error, "a message is not counted");
            }
        };
        match join(self.courier.take(Errand::Deliver(Box::new(self.message))), count).await {
            (Ok(()), ()) => answer::sent(&self.issued),
            (Err(error), ()) => answer::failed(&error.into()),
        }
    }
}

/// Whether every limit has counted the message where all processes count, all that it costs, and that few are sent to such a number.
fn is_counted(decision: &Decision, rules: Option<&PumpingRules>, suspicion: &Suspicion) -> bool {
    let is_there = |name: &LimitName| decision.limits.iter().any(|limit| limit.limit == *name);
    let is_reduced = matches!(suspicion, Suspicion::Reduced(_));
    let of_rules =
        |rules: &PumpingRules| rules.spend().iter().all(is_there) && (!is_reduced || is_there(rules.reduced()));
    decision.is_counted() && rules.is_none_or(of_rules)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use lambda_http::http::{Method, Uri};
    use lambda_http::{Body, Error, Response};
    use tollgate::testing::{ManualClock, MemoryStore};
    use tollgate::tollgate_policy::Channel;
    use tollgate::{KeySecrets, Limiter};
    use tollgate::{Timestamp, http::TollgateLayer};
    use tollgate_otp::Destination;

    /// Whether a message counts as counted where the route charges these limits.
    async fn is_counted_by(charge: &str, suspicion: Suspicion) -> bool {
        let text = format!(
            "version = 1\n[identity]\ncountry = 'context.otp.country'\nsuspect = 'context.otp.suspect'\n\
             [limits.spend]\nkey = ['country']\nrate = '1000/h'\n[limits.few]\nkey = ['suspect']\nrate = '6/h'\n\
             [otp]\npurposes = ['login']\ncountries = ['RO']\n\
             pumping = {{ prices = {{ RO = 1 }}, spend = ['spend'], reduced = 'few' }}\n\
             [[routes]]\nmatch = 'POST {}'\ncharge = {charge}\non_store_failure = 'closed'\n",
            crate::SEND
        );
        let policy = Policy::parse(&text).unwrap().policy.with_secrets(KeySecrets::development());
        let to = Destination::phone("+40721234567", Channel::Sms, policy.otp().unwrap()).unwrap();
        let account = "user:alice".parse().unwrap();
        let mut request = Request::new(Body::Empty);
        *request.method_mut() = Method::POST;
        *request.uri_mut() = Uri::from_static(crate::SEND);
        request.extensions_mut().insert(charged_as(&policy, &account, Some(&to), &suspicion, Facts::default()));
        let store = MemoryStore::new(ManualClock::new(Timestamp::from_secs(1_767_225_600)));
        let layer = TollgateLayer::new(policy.clone(), Arc::new(Limiter::new(store)));
        let tell = service_fn(move |request: Request| {
            let decision = request.extensions().get::<Decision>();
            let is_counted = decision.is_some_and(|d| is_counted(d, suspicion::rules(&policy), &suspicion));
            async move { Ok::<_, Error>(Response::new(Body::from(is_counted.to_string()))) }
        });
        let answer = layer.layer(tell).oneshot(request).await.unwrap();
        answer.body().as_ref() == b"true"
    }

    #[tokio::test]
    async fn nothing_is_sent_that_a_limit_of_pumping_has_not_counted() {
        let few = || Suspicion::Reduced("+40721".to_owned());
        let (both, price_alone, rate_alone) = ("['spend', 'few']", "['spend']", "['few']");
        assert!(is_counted_by(both, Suspicion::None).await && is_counted_by(both, few()).await);
        assert!(is_counted_by(price_alone, Suspicion::None).await, "nobody is to be sent few");
        assert!(!is_counted_by(price_alone, few()).await, "nobody counts how few are sent");
        assert!(!is_counted_by(rate_alone, few()).await && !is_counted_by(rate_alone, Suspicion::None).await);
    }
}
