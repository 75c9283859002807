//! `POST /api/auth/otp/verify`: a code is counted, compared, used. And the cookie of a known device for whoever has it right and none yet.
//!
//! What else follows from a right code goes through the courier, and nobody waits for it: the provider is told, and the message counts as
//! one that somebody wanted.
//!
//! Invariant: the code is compared with what was stored for this account, purpose and destination only, whatever challenge is named.

use crate::Service;
use crate::answer::{self, Answer};
use crate::caller::{Addressed, Caller};
use crate::{device, suspicion};
use lambda_http::Request;
use lambda_http::http::header;
use serde::Deserialize;
use tollgate::mfa::GrantId;
use tollgate::tollgate_policy::{self, OtpUse};
use tollgate::{Policy, Store, Timestamp};
use tollgate_otp::pumping::Credit;
use tollgate_otp::{Checked, Courier, Destination, Directory, Errand, Verification};

/// What is typed.
#[derive(Deserialize)]
struct Wish {
    challenge: String,
    purpose: String,
    code: String,
    /// The action that it is typed for, as the 401 of a route told it; without one it is for the session.
    #[serde(default)]
    action: Option<String>,
}

impl<S: Store + 'static, D: Directory, C: Courier + 'static> Service<S, D, C> {
    pub(crate) async fn verify(&self, request: &Request) -> Answer {
        let policy = self.policy.current();
        let caller = match Caller::of(&policy, request) {
            Ok(Some(caller)) => caller,
            Ok(None) => return answer::unauthenticated(),
            Err(error) => return answer::failed(&error.into()),
        };
        let Ok(typed) = serde_json::from_slice::<Wish>(request.body()) else {
            return answer::bad_request(r#"write {"challenge":"...","purpose":"login","code":"012345"}"#);
        };
        let Ok(action) = typed.action.as_deref().map(str::parse).transpose() else {
            return answer::bad_request("`action` is what the 401 of a route told");
        };
        let (rules, purpose) = match policy.otp_for(&typed.purpose) {
            Ok(found) => found,
            // Nobody was ever sent one for it.
            Err(tollgate_policy::Error::UnknownPurpose { .. }) => return answer::no_active(),
            Err(error) => return answer::failed(&error.into()),
        };
        // Before the code is used up for a grant that there is none of.
        if action.is_some() && rules.use_of(purpose) != OtpUse::Factor {
            return answer::bad_request("a code for this purpose gives no grant; verify it without `action`");
        }
        let addressed = match caller.addressed(&policy, purpose, &self.directory).await {
            Ok(addressed) => addressed,
            Err(error) => return answer::failed(&error),
        };
        let factor = match self.begin(&policy, request, (rules, purpose), addressed.to.as_ref(), action.is_some()).await
        {
            Ok(factor) => factor,
            Err(unproven) => return unproven.answer(),
        };
        let Addressed { to, recipient } = addressed;
        let checked = match self.otp.verify(&policy, &recipient, &typed.challenge, &typed.code).await {
            Ok(checked) => checked,
            Err(error) => return answer::failed(&error),
        };
        if checked.verification != Verification::Verified {
            return answer::verified(checked.verification);
        }
        self.tell(&policy, to.as_ref(), checked).await;
        match factor.prove(action).await {
            Ok(grant) => self.verified(&policy, &caller, request, grant),
            Err(error) => answer::unknown(&error),
        }
    }

    /// Has it told that the message was one that somebody wanted: to its provider, and to who judges.
    async fn tell(&self, policy: &Policy, to: Option<&Destination>, Checked { made_at, receipt, .. }: Checked) {
        let credit = to.zip(made_at).filter(|_| suspicion::rules(policy).is_some());
        let credit = credit.map(|(to, made_at)| Credit::of(to, made_at));
        if receipt.is_none() && credit.is_none() {
            return;
        }
        if let Err(error) = self.courier.take(Errand::Verified { receipt, credit }).await {
            // Whoever has the right code has verified it. One that is not counted is one more that looks as if nobody had wanted it.
            tracing::warn!(%error, "nobody is told of a verified code");
        }
    }

    fn verified(&self, policy: &Policy, caller: &Caller, request: &Request, grant: Option<GrantId>) -> Answer {
        let mut answer = match grant {
            Some(grant) => answer::granted(grant)?,
            None => answer::verified(Verification::Verified)?,
        };
        if self.known_since(policy, caller, request).is_some() {
            return Ok(answer);
        }
        match device::cookie(policy, &caller.user, self.limiter.store().moment().now) {
            Ok(Some(cookie)) => drop(answer.headers_mut().append(header::SET_COOKIE, cookie.set_cookie().parse()?)),
            Ok(None) => {}
            // Whoever has the right code has verified it; the device stays a stranger.
            Err(error) => tracing::warn!(%error, "no cookie for a known device"),
        }
        Ok(answer)
    }

    /// Since when the caller has been known on the device that he asks with.
    pub(crate) fn known_since(&self, policy: &Policy, caller: &Caller, request: &Request) -> Option<Timestamp> {
        device::known_since(policy, &caller.user, request.headers(), self.limiter.store().moment().now)
    }
}
