//! `GET /api/mfa/factors`, `DELETE /api/mfa/factors/{factor}` and `.../passkey/{id}`: the account's factors, listed and removed.
//!
//! What the tenant asks for, and what the account lacks of it, is listed as well, so that a sign-in can have it enrolled.
//!
//! Invariant: a factor is removed by whoever has stepped up: for this one removal where the policy's route says `bind`, else for his
//! session.

use crate::asker::{Asker, Needs};
use crate::changes::changing;
use crate::tenant::{names, seconds};
use crate::{Handlers, Removed, answer};
use lambda_http::http::StatusCode;
use lambda_http::{Body, Request, Response};
use serde_json::{Value, json};
use tollgate::http::reply;
use tollgate::{Policy, Store, Timestamp};
use tollgate_mfa::Result;
use tollgate_mfa::factors::{Account, Factor, Kind, Passkey, PasskeyId, Removal, Vault};
use tollgate_mfa::tenant::{self, Held, Tenant};

impl<S: Store, V: Vault> Handlers<S, V> {
    pub(crate) async fn list(&self, policy: &Policy, asker: &Asker) -> Result<Response<Body>> {
        let (items, file) = (self.factors.items(), &policy.mfa()?.tenants.rules);
        let found = self.factors.find(&asker.caller.subject).await?;
        let account = found.account();
        let app =
            account.totp.as_ref().map(|app| json!({ "factor": Kind::Totp.as_str(), "since": app.since.as_secs() }));
        let recovery = account.recovery.as_ref().map(|recovery| {
            let (since, left) = (recovery.since.as_secs(), recovery.codes.len());
            json!({ "factor": Kind::Recovery.as_str(), "since": since, "codes_left": left })
        });
        let passkeys = self.factors.passkeys(&asker.caller.subject, &found).await?;
        let now = items.now();
        let app = app.map(|app| cooling(account, app, Factor::Totp, now));
        let recovery = recovery.map(|recovery| cooling(account, recovery, Factor::Recovery, now));
        let of = |one: &Passkey| cooling(account, passkey(one), Factor::Passkey(PasskeyId::of(&one.credential)), now);
        let factors: Vec<_> = app.into_iter().chain(passkeys.iter().map(of)).chain(recovery).collect();
        let tenant = match tenant::tenant_of(&asker.caller.subject) {
            Some(key) => tenant::find(items, &key, file).await?,
            None => Tenant::of_file(file),
        };
        // What is announced is shown at once, so that there is time to enrol.
        let (rules, coming) = (tenant.put_last().and(file), tenant.coming(items.now()));
        let is_required = rules.demand_something();
        let body = json!({
            "factors": factors,
            "allowed": names(&tenant.in_force(file, items.now()).allowed),
            "required": is_required,
            "required_from": coming.filter(|_| is_required).map(|next| seconds(next.from)),
            "missing": names(&tenant::missing(&rules, &Held::of(account, now))),
        });
        Ok(reply::json(StatusCode::OK, &body))
    }

    pub(crate) async fn remove(
        &self,
        policy: &Policy,
        asker: &Asker,
        removed: Option<Removed>,
        request: &Request,
    ) -> Result<Response<Body>> {
        if let Err(refused) = self.demand_unless_guarded(policy, request, Needs::Enrolment).await? {
            return Ok(*refused);
        }
        let (author, announcer) = (asker.author(policy), self.announcer(policy, asker));
        let by = changing(policy, asker, &author, &announcer)?;
        let removal = match removed {
            None => return Ok(reply::nothing_here()),
            Some(Removed::All(kind)) => self.factors.remove(kind, by).await?,
            Some(Removed::Passkey(id)) => self.factors.remove_passkey(id, by).await?,
        };
        Ok(match removal {
            Removal::Removed => reply::json(StatusCode::OK, &json!({ "status": "removed" })),
            Removal::TooMany(wait) => answer::too_many_changes(wait),
            _ => reply::error(StatusCode::NOT_FOUND, "not_enrolled", "there is no such factor"),
        })
    }
}

/// With until when it is cooling, if it is.
fn cooling(account: &Account, mut shown: Value, factor: Factor, now: Timestamp) -> Value {
    if let Some(until) = account.cooling(factor, now) {
        shown["cooldown_until"] = seconds(until).into();
    }
    shown
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
