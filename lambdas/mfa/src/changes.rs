//! Changes of factors: announced before they are made; `POST /api/mfa/changes/cancel` cancels one by the link of its notice.
//!
//! Invariants: nothing is changed unless its notices are queued and all other sessions are revoked; whoever has the link needs no session,
//! and nobody is told by the answer whose change it was.

use crate::asker::Asker;
use crate::notices::{Tell, Telling};
use crate::{Handlers, answer};
use lambda_http::http::StatusCode;
use lambda_http::{Body, Request, Response};
use serde::Deserialize;
use serde_json::json;
use tollgate::http::reply;
use tollgate::mfa::{Caller, Sessions};
use tollgate::{Policy, Store};
use tollgate_mfa::audit::{Actor, Author};
use tollgate_mfa::factors::{Altered, Announce, Announcement, CancelToken, Changing, Kind, Vault};
use tollgate_mfa::{Error, Result};

/// What the page behind a link sends.
#[derive(Deserialize)]
struct Sent {
    token: String,
}

/// Who tells of the changes that a caller makes, and revokes all sessions but his.
pub(crate) struct Announcer<'a> {
    notices: Option<&'a dyn Tell>,
    sessions: &'a Sessions,
    policy: &'a Policy,
    caller: &'a Caller,
}

impl Announce for Announcer<'_> {
    async fn announce(&self, announcement: &Announcement) -> Result<()> {
        let Announcement { altered, token, .. } = announcement;
        if let Some(notices) = self.notices {
            let link = self.policy.mfa()?.cancel_link(token.as_str());
            let telling = Telling { what: told(*altered).to_owned(), link };
            notices.tell(self.policy, &self.caller.subject, &telling).await.map_err(Error::unannounced)?;
        }
        // Before the first factor nobody has proved anything that could be revoked; and whoever only asks for something must not end the
        // sessions of the owner by that.
        if !matches!(altered, Altered::First(_) | Altered::Requested) {
            self.sessions.revoke_others(self.caller).await?;
        }
        Ok(())
    }
}

/// What a notice says of a change.
fn told(altered: Altered) -> &'static str {
    match (altered, altered.kind()) {
        (Altered::Removed(_), Some(Kind::Totp)) => "the authenticator app is being removed from your account",
        (Altered::Removed(_), Some(Kind::Recovery)) => "the recovery codes of your account are being removed",
        (Altered::Removed(_), _) => "a passkey is being removed from your account",
        (Altered::RemovedPasskeys, _) => "all passkeys are being removed from your account",
        (Altered::Requested, _) => {
            "somebody who says that they are lost asks for all second factors to be removed from your account"
        }
        (Altered::Recovered, _) => {
            "all second factors are being removed from your account, since they were said to be lost"
        }
        (_, Some(Kind::Totp)) => "an authenticator app is being added to your account",
        (_, Some(Kind::Recovery)) => "new recovery codes are being made for your account",
        _ => "a passkey is being added to your account",
    }
}

impl<S: Store, V: Vault> Handlers<S, V> {
    /// Who tells of the changes of who asks.
    pub(crate) fn announcer<'a>(&'a self, policy: &'a Policy, asker: &'a Asker) -> Announcer<'a> {
        let notices = self.notices.as_deref();
        Announcer { notices, sessions: &self.sessions, policy, caller: &asker.caller }
    }

    /// `POST /api/mfa/changes/cancel`.
    pub(crate) async fn cancel(&self, policy: &Policy, request: &Request) -> Result<Response<Body>> {
        let Ok(Sent { token }) = serde_json::from_slice(request.body()) else {
            return Ok(answer::bad_request(r#"write {"token":"..."}, as the link has it"#));
        };
        let Some(token) = CancelToken::parse(&token) else { return Ok(nothing_to_cancel()) };
        let Some(open) = self.factors.cancellable(&token).await? else { return Ok(nothing_to_cancel()) };
        // Before it is undone, so that nobody whose session was stolen is there in between; and whatever becomes of it.
        self.sessions.revoke(&open.owner).await?;
        let author = Author { actor: Actor::User, session: None, retention: policy.audit_retention() };
        if !self.factors.cancel(&open, &author).await? {
            return Ok(nothing_to_cancel());
        }
        let told = match open.altered {
            Altered::Requested => "the recovery of your account was cancelled, and all sessions have ended",
            _ => "a change of your second factors was cancelled, and all sessions have ended",
        };
        self.tell_after(policy, &open.owner, told).await;
        let factor = open.altered.kind().map(Kind::as_str);
        let body = json!({ "status": "cancelled", "change": open.altered.as_str(), "factor": factor });
        Ok(reply::json(StatusCode::OK, &body))
    }

    /// Tells of what is done already: it stays done if nobody can be told.
    pub(crate) async fn tell_after(&self, policy: &Policy, account: &tollgate::Key, what: &str) {
        let telling = Telling { what: what.to_owned(), link: None };
        if let Some(notices) = &self.notices
            && let Err(error) = notices.tell(policy, account, &telling).await
        {
            tracing::error!(%error, "nobody is told of what was done already");
        }
    }
}

/// How whoever asks changes his own factors.
pub(crate) fn changing<'a>(
    policy: &Policy,
    asker: &'a Asker,
    author: &'a Author,
    announcer: &'a Announcer<'a>,
) -> Result<Changing<'a, Announcer<'a>>> {
    let cooldown = policy.mfa()?.cooldown;
    Ok(Changing { owner: &asker.caller.subject, cooldown, author, announce: announcer })
}

/// 410.
pub(crate) fn nothing_to_cancel() -> Response<Body> {
    let message = "there is nothing to cancel: it was cancelled, its time is over, or it was never done";
    reply::error(StatusCode::GONE, "no_such_change", message)
}
