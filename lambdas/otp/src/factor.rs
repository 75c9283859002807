//! What a right code proves: its session is fresh from now on, or one action may be done.
//!
//! Invariant: what is proved is dated by when the verification began, and nothing is proved unless the policy says what a code is.

use crate::Service;
use lambda_http::Request;
use tollgate::http::{self, Facts};
use tollgate::mfa::{Action, Begun, Caller, Error, GrantId, Sessions};
use tollgate::tollgate_policy::Channel;
use tollgate::{Policy, Store};
use tollgate_otp::{Courier, Directory};

/// How a code that was sent so proves something (RFC 8176), after another factor. Only of an SMS it is known that it went to a telephone.
fn methods(channel: Option<Channel>) -> &'static [&'static str] {
    match channel {
        Some(Channel::Sms) => &["mfa", "otp", "sms"],
        _ => &["mfa", "otp"],
    }
}

/// A verification under way; `None` inside: a right code proves nothing but itself.
pub(crate) struct Factor<'s>(Option<(&'s Sessions, Begun, String)>);

impl<S: Store + 'static, D: Directory, C: Courier + 'static> Service<S, D, C> {
    /// Begins before the code is looked at, which may be for an action. A caller in no session has nothing else to prove.
    pub(crate) async fn begin(
        &self,
        policy: &Policy,
        request: &Request,
        action: Option<&Action>,
    ) -> Result<Factor<'_>, Error> {
        let acr = policy.otp().and_then(|rules| rules.acr.clone());
        let (Some(sessions), Some(acr)) = (self.sessions.as_deref(), acr) else { return Ok(Factor(None)) };
        let caller = http::caller(policy, &Facts::of(request.extensions()))?;
        let has_use = |caller: &Caller| action.is_some() || caller.session.is_some();
        let Some(caller) = caller.filter(has_use) else { return Ok(Factor(None)) };
        Ok(Factor(Some((sessions, sessions.begin(caller).await?, acr))))
    }
}

impl Factor<'_> {
    /// Whether a right code proves something else than itself.
    pub(crate) fn proves(&self) -> bool {
        self.0.is_some()
    }

    /// The code was right that was sent by `channel`: the session is fresh, or whoever has the grant may do `action` once.
    pub(crate) async fn prove(
        &self,
        action: Option<Action>,
        channel: Option<Channel>,
    ) -> Result<Option<GrantId>, Error> {
        let Some((sessions, begun, acr)) = &self.0 else { return Ok(None) };
        match action {
            Some(action) => sessions.grant(begun, action, acr, methods(channel)).await.map(Some),
            None => sessions.record(begun, acr, methods(channel)).await.map(|_| None),
        }
    }
}
