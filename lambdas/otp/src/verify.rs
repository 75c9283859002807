//! `POST /api/auth/otp/verify`: a code is counted, compared, used. And the cookie of a known device for whoever has it right.
//!
//! Invariant: the code is compared with what was stored for this account, purpose and destination only, whatever challenge is named.

use crate::Service;
use crate::answer::{self, Answer};
use crate::caller::Caller;
use lambda_http::Request;
use lambda_http::http::header;
use serde::Deserialize;
use tollgate::mfa::GrantId;
use tollgate::tollgate_policy::{self, Source};
use tollgate::{Policy, Store};
use tollgate_otp::{Courier, Directory, Verification};

/// The dimension by which a device is known whose owner has verified a code on it, if the policy has it.
const DEVICE: &str = "verified_device";

/// What is typed.
#[derive(Deserialize)]
struct Typed {
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
        let Ok(typed) = serde_json::from_slice::<Typed>(request.body()) else {
            return answer::bad_request(r#"write {"challenge":"...","purpose":"login","code":"012345"}"#);
        };
        let Ok(action) = typed.action.as_deref().map(str::parse).transpose() else {
            return answer::bad_request("`action` is what the 401 of a route told");
        };
        let factor = match self.begin(&policy, request, action.as_ref()).await {
            Ok(factor) => factor,
            Err(error) => return answer::unknown(&error),
        };
        match self.compare(&policy, &caller, &typed).await {
            Ok(Verification::Verified) => match factor.prove(action).await {
                Ok(grant) => self.verified(&policy, &caller, grant),
                Err(error) => answer::unknown(&error),
            },
            Ok(other) => answer::verified(other),
            Err(error) => answer::failed(&error),
        }
    }

    async fn compare(
        &self,
        policy: &Policy,
        caller: &Caller,
        typed: &Typed,
    ) -> Result<Verification, tollgate_otp::Error> {
        let purpose = match policy.otp_for(&typed.purpose) {
            Ok((_, purpose)) => purpose,
            // Nobody was ever sent one for it.
            Err(tollgate_policy::Error::UnknownPurpose { .. }) => return Ok(Verification::NoActive),
            Err(error) => return Err(error.into()),
        };
        let addressed = caller.addressed(policy, purpose, &self.directory).await?;
        self.otp.verify(policy, &addressed.recipient, &typed.challenge, &typed.code).await
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
