//! `POST /api/auth/otp/verify`: a code is counted, compared, used. And the cookie of a known device for whoever has it right.
//!
//! Invariant: the code is compared with what was stored for this account, purpose and destination only, whatever challenge is named.

use crate::Service;
use crate::answer::{self, Answer};
use crate::caller::{Addressed, Caller};
use lambda_http::Request;
use lambda_http::http::header;
use serde::Deserialize;
use tollgate::mfa::GrantId;
use tollgate::tollgate_policy::{self, Source};
use tollgate::{Policy, Store, Timestamp};
use tollgate_otp::pumping::Counted;
use tollgate_otp::{Checked, Courier, Destination, Directory, Errand, Verification};

/// The dimension by which a device is known whose owner has verified a code on it, if the policy has it.
const DEVICE: &str = "verified_device";

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
        let factor = match self.begin(&policy, request, action.as_ref()).await {
            Ok(factor) => factor,
            Err(error) => return answer::unknown(&error),
        };
        let (to, checked) = match self.compare(&policy, &caller, &typed).await {
            Ok(compared) => compared,
            Err(error) => return answer::failed(&error),
        };
        if checked.verification != Verification::Verified {
            return answer::verified(checked.verification);
        }
        self.credit(&policy, to.as_ref(), checked.made_at).await;
        if let Some(receipt) = checked.receipt {
            let taken = self.courier.take(Errand::Arrived(receipt)).await;
            // Whoever has the right code has verified it; the provider is told nothing.
            taken.unwrap_or_else(|error| tracing::warn!(%error, "the provider is not told of a read message"));
        }
        match factor.prove(action).await {
            Ok(grant) => self.verified(&policy, &caller, grant),
            Err(error) => answer::unknown(&error),
        }
    }

    /// What is said of the code, and where it was sent.
    async fn compare(
        &self,
        policy: &Policy,
        caller: &Caller,
        typed: &Wish,
    ) -> Result<(Option<Destination>, Checked), tollgate_otp::Error> {
        let purpose = match policy.otp_for(&typed.purpose) {
            Ok((_, purpose)) => purpose,
            // Nobody was ever sent one for it.
            Err(tollgate_policy::Error::UnknownPurpose { .. }) => return Ok((None, Verification::NoActive.into())),
            Err(error) => return Err(error.into()),
        };
        let Addressed { to, recipient } = caller.addressed(policy, purpose, &self.directory).await?;
        Ok((to, self.otp.verify(policy, &recipient, &typed.challenge, &typed.code).await?))
    }

    /// Counts that the message was one that somebody wanted.
    async fn credit(&self, policy: &Policy, to: Option<&Destination>, made_at: Option<Timestamp>) {
        let is_watched = policy.otp().is_some_and(|rules| rules.pumping.is_some());
        let (Some(to), Some(made_at), true) = (to, made_at, is_watched) else { return };
        if let Err(error) = self.guard.verified(self.otp.items(), Counted::as_destination(to), made_at).await {
            // The code is used. One that is not counted is one more that looks as if nobody had wanted it.
            tracing::warn!(%error, "a verified code is not counted");
        }
    }

    fn verified(&self, policy: &Policy, caller: &Caller, grant: Option<GrantId>) -> Answer {
        let mut answer = match grant {
            Some(grant) => answer::granted(grant)?,
            None => answer::verified(Verification::Verified)?,
        };
        if matches!(policy.identity().source(DEVICE), Some(Source::Device(_))) {
            match policy.device_cookie(DEVICE, &caller.user, self.limiter.store().moment().now) {
                Ok(cookie) => drop(answer.headers_mut().append(header::SET_COOKIE, cookie.set_cookie().parse()?)),
                // Whoever has the right code has verified it; the device stays a stranger.
                Err(error) => tracing::warn!(%error, "no cookie for a known device"),
            }
        }
        Ok(answer)
    }
}
