//! `GET /api/mfa/factors`, `DELETE /api/mfa/factors/{factor}` and `.../passkey/{id}`: the account's factors, listed and removed.
//!
//! Invariant: a factor is removed by whoever has stepped up: for this one removal where the policy's route says `bind`, else for his
//! session.

use crate::asker::Asker;
use crate::{Handlers, Removed};
use lambda_http::http::StatusCode;
use lambda_http::{Body, Request, Response};
use serde_json::{Value, json};
use tollgate::http::{Facts, reply};
use tollgate::{Policy, Store};
use tollgate_mfa::Result;
use tollgate_mfa::factors::{Kind, Passkey, PasskeyId, Vault};

impl<S: Store, V: Vault> Handlers<S, V> {
    pub(crate) async fn list(&self, asker: &Asker) -> Result<Response<Body>> {
        let found = self.factors.find(&asker.caller.subject).await?;
        let account = found.account();
        let app =
            account.totp.as_ref().map(|app| json!({ "factor": Kind::Totp.as_str(), "since": app.since.as_secs() }));
        let recovery = account.recovery.as_ref().map(|recovery| {
            let (since, left) = (recovery.since.as_secs(), recovery.codes.len());
            json!({ "factor": Kind::Recovery.as_str(), "since": since, "codes_left": left })
        });
        let passkeys = self.factors.passkeys(&asker.caller.subject, &found).await?;
        let factors: Vec<_> = app.into_iter().chain(passkeys.iter().map(passkey)).chain(recovery).collect();
        Ok(reply::json(StatusCode::OK, &json!({ "factors": factors })))
    }

    pub(crate) async fn remove(
        &self,
        policy: &Policy,
        asker: &Asker,
        removed: Option<Removed>,
        request: &Request,
    ) -> Result<Response<Body>> {
        let facts = Facts::of(request.extensions());
        let path = facts.path().unwrap_or(request.uri().path());
        let is_guarded = policy.route(request.method().as_str(), path).is_some_and(|at| at.route.step_up().is_some());
        // What the route asks for, the layer has asked.
        if !is_guarded && let Err(refused) = self.demand(policy, request, true).await? {
            return Ok(*refused);
        }
        let owner = &asker.caller.subject;
        let is_removed = match removed {
            None => return Ok(reply::nothing_here()),
            Some(Removed::All(kind)) => self.factors.remove(owner, kind).await?,
            Some(Removed::Passkey(id)) => self.factors.remove_passkey(owner, id).await?,
        };
        Ok(match is_removed {
            true => reply::json(StatusCode::OK, &json!({ "status": "removed" })),
            false => reply::error(StatusCode::NOT_FOUND, "not_enrolled", "there is no such factor"),
        })
    }
}

fn passkey(passkey: &Passkey) -> Value {
    json!({
        "factor": Kind::Passkey.as_str(),
        "id": PasskeyId::of(&passkey.credential).to_string(),
        "name": passkey.name,
        "since": passkey.since.as_secs(),
        "last_used": passkey.used.map(|used| used.as_secs()),
        "backed_up": passkey.state.is_backed_up,
    })
}
