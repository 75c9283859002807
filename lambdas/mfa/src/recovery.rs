//! Recovery of an account whose owner has lost every factor: requested by him, approved by two admins of his tenant, completed by him.
//!
//! Invariants: whose account an admin acts on is one of his own tenant, whatever he sends; he is one by what the authorizer vouches for,
//! and has stepped up; whoever only knows a password can request, and end nothing that was requested.

use crate::asker::{Asker, Needs};
use crate::changes::changing;
use crate::{Handlers, answer};
use lambda_http::http::StatusCode;
use lambda_http::{Body, Request, Response};
use serde::Deserialize;
use serde_json::{Value, json};
use tollgate::http::{Facts, reply};
use tollgate::{Key, Policy, Store};
use tollgate_mfa::Result;
use tollgate_mfa::audit::Event;
use tollgate_mfa::factors::request::APPROVALS;
use tollgate_mfa::factors::{Approval, ChangeId, Completion, NotRequested, RecoveryRequest, RequestSecret, Vault};
use tollgate_mfa::tenant;

/// What an admin sends.
#[derive(Deserialize)]
struct Sent {
    user: String,
    request: String,
}

/// What completes a request.
#[derive(Deserialize)]
struct Secret {
    secret: String,
}

/// What a request is made of, or why there is none: an answer.
type Refused = Box<Response<Body>>;

impl<S: Store, V: Vault> Handlers<S, V> {
    /// `POST /api/mfa/recovery/request`.
    pub(crate) async fn request(&self, policy: &Policy, asker: &Asker, request: &Request) -> Result<Response<Body>> {
        if let Err(refused) = self.demand_unless_guarded(policy, request, Needs::SignIn).await? {
            return Ok(*refused);
        }
        let rules = policy.mfa()?;
        if tenant::tenant_of(&asker.caller.subject).is_none() || rules.tenants.admin.is_none() {
            let message = "nobody could approve it: whoever asks is in no tenant, or tenants have no admins";
            return Ok(answer::conflict("no_admins", message));
        }
        let (author, announcer) = (asker.author(policy), self.announcer(policy, asker));
        let by = changing(policy, asker, &author, &announcer)?;
        Ok(match self.factors.request_recovery(by, rules.recovery_wait).await? {
            Ok((request, secret)) => {
                let mut body = shown(&request);
                body["secret"] = secret.as_str().into();
                reply::json(StatusCode::OK, &body)
            }
            Err(NotRequested::Open(_)) => {
                let message =
                    "a recovery is open already; if you have not requested it, cancel it by the link of its notice";
                answer::conflict("recovery_open", message)
            }
            Err(_) => answer::conflict("nothing_to_recover", "the account has no factor: sign in and enrol one"),
        })
    }

    /// `GET /api/mfa/recovery`, with `?user=` by an admin for somebody else.
    pub(crate) async fn recovery(&self, policy: &Policy, asker: &Asker, request: &Request) -> Result<Response<Body>> {
        let query = request.uri().query().unwrap_or_default();
        let user = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "user").map(|(_, user)| user);
        let owner = match user {
            None => asker.caller.subject.clone(),
            Some(user) => match self.of_his_tenant(policy, asker, request, &user) {
                Ok(owner) => owner,
                Err(refused) => return Ok(*refused),
            },
        };
        let found = self.factors.find(&owner).await?;
        let open = found.account().open_request(self.factors.items().now());
        Ok(reply::json(StatusCode::OK, &open.map_or_else(|| json!({ "open": false }), shown)))
    }

    /// `POST /api/mfa/recovery/approve`.
    pub(crate) async fn approve(&self, policy: &Policy, asker: &Asker, request: &Request) -> Result<Response<Body>> {
        let (owner, id) = match self.named_by_admin(policy, asker, request).await? {
            Ok(named) => named,
            Err(refused) => return Ok(*refused),
        };
        let (admin, author) = (&asker.caller.subject, asker.admin(policy));
        Ok(match self.factors.approve_recovery(&owner, id, admin, &author).await? {
            Approval::Approved(request) => {
                let told = "an admin has approved that all second factors are removed from your account";
                self.tell_after(policy, &owner, told).await;
                recorded(&request)
            }
            Approval::Already(request) => recorded(&request),
            Approval::Enough => answer::conflict("enough_approvals", "two other admins have approved it already"),
            Approval::NotHis => {
                let message = "nobody approves the recovery of his own account, nor of one in another tenant";
                reply::error(StatusCode::FORBIDDEN, "own_account", message)
            }
            _ => no_such_request(),
        })
    }

    /// `POST /api/mfa/recovery/refuse`.
    pub(crate) async fn refuse(&self, policy: &Policy, asker: &Asker, request: &Request) -> Result<Response<Body>> {
        let (owner, id) = match self.named_by_admin(policy, asker, request).await? {
            Ok(named) => named,
            Err(refused) => return Ok(*refused),
        };
        if !self.factors.end_recovery(&owner, id, Event::RecoveryRefused, &asker.admin(policy)).await? {
            return Ok(no_such_request());
        }
        self.tell_after(policy, &owner, "an admin has refused to have your second factors removed").await;
        Ok(reply::json(StatusCode::OK, &json!({ "status": "refused" })))
    }

    /// `DELETE /api/mfa/recovery`.
    pub(crate) async fn withdraw(&self, policy: &Policy, asker: &Asker, request: &Request) -> Result<Response<Body>> {
        if let Err(refused) = self.demand_unless_guarded(policy, request, Needs::Everything).await? {
            return Ok(*refused);
        }
        let (owner, author) = (&asker.caller.subject, asker.author(policy));
        let found = self.factors.find(owner).await?;
        let Some(open) = found.account().open_request(self.factors.items().now()) else { return Ok(no_such_request()) };
        Ok(match self.factors.end_recovery(owner, open.id, Event::RecoveryCancelled, &author).await? {
            true => reply::json(StatusCode::OK, &json!({ "status": "cancelled" })),
            false => no_such_request(),
        })
    }

    /// `POST /api/mfa/recovery/complete`.
    pub(crate) async fn complete(&self, policy: &Policy, asker: &Asker, request: &Request) -> Result<Response<Body>> {
        if let Err(refused) = self.demand_unless_guarded(policy, request, Needs::SignIn).await? {
            return Ok(*refused);
        }
        let Ok(Secret { secret }) = serde_json::from_slice(request.body()) else {
            return Ok(answer::bad_request(r#"write {"secret":"..."}, as the answer to the request had it"#));
        };
        let Some(secret) = RequestSecret::parse(&secret) else { return Ok(no_such_request()) };
        let (author, announcer) = (asker.author(policy), self.announcer(policy, asker));
        let by = changing(policy, asker, &author, &announcer)?;
        Ok(match self.factors.complete_recovery(by, &secret).await? {
            Completion::Completed => reply::json(StatusCode::OK, &json!({ "status": "recovered" })),
            Completion::NotYet { approvals, ready_at } => {
                let message = "it takes two approvals, and its wait has to be over";
                let body = json!({
                    "error": "not_yet", "message": message,
                    "approvals": approvals, "needed": APPROVALS, "ready_at": ready_at.as_secs(),
                });
                reply::json(StatusCode::CONFLICT, &body)
            }
            Completion::TooMany(wait) => answer::too_many_changes(wait),
            _ => no_such_request(),
        })
    }

    /// The account and the request that an admin names, who has stepped up.
    async fn named_by_admin(
        &self,
        policy: &Policy,
        asker: &Asker,
        request: &Request,
    ) -> Result<std::result::Result<(Key, ChangeId), Refused>> {
        let Ok(Sent { user, request: id }) = serde_json::from_slice(request.body()) else {
            return Ok(Err(Box::new(answer::bad_request(r#"write {"user":"bob","request":"..."}"#))));
        };
        let owner = match self.of_his_tenant(policy, asker, request, &user) {
            Ok(owner) => owner,
            Err(refused) => return Ok(Err(refused)),
        };
        if let Err(refused) = self.demand_unless_guarded(policy, request, Needs::Everything).await? {
            return Ok(Err(refused));
        }
        Ok(id.parse().map(|id| (owner, id)).map_err(|_| Box::new(no_such_request())))
    }

    /// The account of `user` in the tenant of the admin who asks.
    fn of_his_tenant(
        &self,
        policy: &Policy,
        asker: &Asker,
        request: &Request,
        user: &str,
    ) -> std::result::Result<Key, Refused> {
        let Some(tenant) = tenant::tenant_of(&asker.caller.subject) else { return Err(Box::new(answer::no_tenant())) };
        if !is_admin(policy, &Facts::of(request.extensions())) {
            let message = "only an admin of the tenant sees and approves recoveries of its people";
            return Err(Box::new(reply::error(StatusCode::FORBIDDEN, "not_admin", message)));
        }
        let user = policy.value("user", |dimension| (dimension == "user").then(|| user.to_owned())).ok().flatten();
        let pairs = user.map(|user| {
            let tenant = tenant.dimensions().map(|(name, value)| (name, value.to_owned()));
            std::iter::once(("user", user)).chain(tenant).collect::<Vec<_>>()
        });
        let key = pairs.and_then(|pairs| policy.keys(&pairs).ok()?.into_iter().next());
        key.ok_or_else(|| Box::new(answer::bad_field("user", "is no account's id")))
    }
}

/// Whether whoever asks is an admin of his tenant.
pub(crate) fn is_admin(policy: &Policy, facts: &Facts) -> bool {
    let admin = policy.mfa().ok().and_then(|rules| rules.tenants.admin.as_ref());
    admin.is_some_and(|admin| facts.claims_of(&admin.claim).contains(&admin.value))
}

/// A request, without what completes it.
fn shown(request: &RecoveryRequest) -> Value {
    json!({
        "open": true,
        "request": request.id.to_string(),
        "at": request.at.as_secs(),
        "approvals": request.approvals.len(),
        "ready_at": request.ready_at.as_secs(),
        "until": request.until.as_secs(),
    })
}

/// 200: an approval is recorded.
fn recorded(request: &RecoveryRequest) -> Response<Body> {
    let mut body = shown(request);
    body["status"] = "approved".into();
    reply::json(StatusCode::OK, &body)
}

/// 410.
fn no_such_request() -> Response<Body> {
    let message =
        "no such request is open: it was completed, cancelled or refused, its time is over, or it was never made";
    reply::error(StatusCode::GONE, "no_such_request", message)
}
