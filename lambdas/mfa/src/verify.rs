//! `POST /api/mfa/verify`: a code of a factor or a passkey's answer, and what it proves.
//!
//! Invariant: what is proved is dated by when the verification began.

use crate::asker::Asker;
use crate::passkeys::Proof;
use crate::{Handlers, answer};
use lambda_http::{Body, Request, Response};
use serde::Deserialize;
use tollgate::mfa::{Action, Begun};
use tollgate::{Policy, Store};
use tollgate_mfa::Result;
use tollgate_mfa::factors::{Kind, Vault, Verification};

/// What is typed.
#[derive(Deserialize)]
struct Typed {
    factor: String,
    #[serde(flatten)]
    what: What,
    /// The action that it is typed for, as the 401 of a route told it; without one it is for the session.
    #[serde(default)]
    action: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum What {
    Code { code: String },
    Passkey(Box<Proof>),
}

impl<S: Store, V: Vault> Handlers<S, V> {
    pub(crate) async fn verify(&self, policy: &Policy, asker: &Asker, request: &Request) -> Result<Response<Body>> {
        let Ok(typed) = serde_json::from_slice::<Typed>(request.body()) else {
            return Ok(answer::bad_request(
                r#"write {"factor":"totp","code":"012345"}, or {"factor":"passkey","challenge":"...","credential":{...}}"#,
            ));
        };
        let Ok(kind) = typed.factor.parse::<Kind>() else {
            return Ok(answer::bad_request(r#"`factor` is "totp", "passkey" or "recovery""#));
        };
        let Ok(action) = typed.action.as_deref().map(str::parse).transpose() else {
            return Ok(answer::bad_request("`action` is what the 401 of a route told"));
        };
        let (code, of_codes) = match (typed.what, kind.of_codes()) {
            (What::Code { code }, Some(of_codes)) => (code, of_codes),
            (What::Passkey(proof), None) => return self.assert(policy, asker, &proof, action).await,
            (What::Code { .. }, None) => {
                return Ok(answer::bad_request("a passkey has a `challenge` and a `credential`"));
            }
            (What::Passkey(_), Some(_)) => return Ok(answer::bad_request("this factor has a `code`")),
        };
        // Before the code is looked at, so that what is revoked meanwhile is revoked of it, too.
        let begun = self.sessions.begin(asker.caller.clone()).await?;
        match self.factors.verify(&asker.caller.subject, of_codes, &code).await? {
            Verification::Verified => self.prove(policy, &begun, kind, action).await,
            other => Ok(answer::refused(other)),
        }
    }

    /// A factor of `kind` has proved itself: the session is fresh, or whoever has the grant may do `action` once.
    pub(crate) async fn prove(
        &self,
        policy: &Policy,
        begun: &Begun,
        kind: Kind,
        action: Option<Action>,
    ) -> Result<Response<Body>> {
        let acr = &policy.mfa()?.acr;
        let grant = match action {
            Some(action) => Some(self.sessions.grant(begun, action, acr, kind.methods()).await?),
            None => {
                self.sessions.record(begun, acr, kind.methods()).await?;
                None
            }
        };
        Ok(answer::verified(grant))
    }
}
