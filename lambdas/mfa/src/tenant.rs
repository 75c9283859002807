//! `GET /api/mfa/tenant` and `PUT /api/mfa/tenant`: what a tenant asks of its people's second factors, shown to each of them and put by
//! its admins.
//!
//! Invariants: who is an admin is what the authorizer vouches for, and he has stepped up; of two who change one version one does.

use crate::asker::{Asker, Needs};
use crate::recovery::is_admin;
use crate::{Handlers, answer};
use lambda_http::http::{StatusCode, header};
use lambda_http::{Body, Request, Response};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;
use tollgate::http::{Facts, reply};
use tollgate::tollgate_policy::{FactorKind, FactorRules};
use tollgate::{Policy, Store, Timestamp};
use tollgate_mfa::Result;
use tollgate_mfa::factors::Vault;
use tollgate_mfa::tenant::{self, Held, Refusal, Tenant, Wish};

/// A field of the body that is not what it has to be, and what it has to be.
type Wrong = (String, String);

impl<S: Store, V: Vault> Handlers<S, V> {
    pub(crate) async fn show(&self, policy: &Policy, asker: &Asker) -> Result<Response<Body>> {
        let Some(key) = tenant::tenant_of(&asker.caller.subject) else { return Ok(answer::no_tenant()) };
        let file = &policy.mfa()?.tenants;
        let tenant = tenant::find(self.factors.items(), &key, &file.rules).await?;
        Ok(shown(&tenant, &file.rules, self.factors.items().now()))
    }

    pub(crate) async fn put(&self, policy: &Policy, asker: &Asker, request: &Request) -> Result<Response<Body>> {
        let Some(key) = tenant::tenant_of(&asker.caller.subject) else { return Ok(answer::no_tenant()) };
        let file = &policy.mfa()?.tenants;
        if !is_admin(policy, &Facts::of(request.extensions())) {
            let message = "only an admin of the tenant changes what it asks of second factors";
            return Ok(reply::error(StatusCode::FORBIDDEN, "not_admin", message));
        }
        if let Err(refused) = self.demand_unless_guarded(policy, request, Needs::Everything).await? {
            return Ok(*refused);
        }
        let Some(seen) = request.headers().get(header::IF_MATCH) else {
            let message = "send the ETag of `GET /api/mfa/tenant` as `If-Match`";
            return Ok(reply::error(StatusCode::PRECONDITION_REQUIRED, "version_required", message));
        };
        let wish = match wish(request.body()) {
            Ok(wish) => wish,
            Err((field, why)) => return Ok(answer::bad_field(&field, &why)),
        };
        let items = self.factors.items();
        let found = tenant::find(items, &key, &file.rules).await?;
        if seen.as_bytes() != etag(&found).as_bytes() {
            return Ok(answer::changed_meanwhile());
        }
        let held = Held::of(self.factors.find(&asker.caller.subject).await?.account(), items.now());
        let next = match found.put(&wish, file, &held, items.now()) {
            Ok(next) => next,
            Err(Refusal::Unfit(unfit)) => return Ok(answer::bad_field(unfit.field, &unfit.why)),
            Err(_) => {
                let message = "none of your own factors would be allowed; enrol one that is first";
                return Ok(answer::conflict("locks_you_out", message));
            }
        };
        Ok(match tenant::put(items, &key, found.version, &next, &asker.admin(policy)).await? {
            true => shown(&next, &file.rules, items.now()),
            false => answer::changed_meanwhile(),
        })
    }
}

/// The version, as `ETag` and `If-Match` have it.
fn etag(tenant: &Tenant) -> String {
    format!("\"{}\"", tenant.version)
}

/// 200: the rules that were put last, when they come, and what is in force.
fn shown(tenant: &Tenant, file: &FactorRules, now: Timestamp) -> Response<Body> {
    let mut body = of_rules(tenant.put_last());
    body.insert("version".to_owned(), tenant.version.into());
    body.insert("required_from".to_owned(), tenant.coming(now).map(|next| seconds(next.from)).into());
    body.insert("in_force".to_owned(), of_rules(&tenant.in_force(file, now)).into());
    let mut answer = reply::json(StatusCode::OK, &body.into());
    if let Ok(etag) = etag(tenant).parse() {
        answer.headers_mut().insert(header::ETAG, etag);
    }
    answer
}

/// The second in which something comes, not before.
pub(crate) fn seconds(at: Timestamp) -> u64 {
    at.as_nanos().div_ceil(1_000_000_000)
}

pub(crate) fn names(kinds: &BTreeSet<FactorKind>) -> Value {
    kinds.iter().map(|kind| kind.as_str()).collect::<Vec<_>>().into()
}

fn of_rules(rules: &FactorRules) -> Map<String, Value> {
    let rules =
        [("allowed", names(&rules.allowed)), ("required", names(&rules.required)), ("minimum", json!(rules.minimum))];
    rules.into_iter().map(|(name, value)| (name.to_owned(), value)).collect()
}

/// What is put: `{"allowed":["totp"],"required":[],"minimum":1,"required_from":1796061600}`, the last one if it is needed.
fn wish(body: &[u8]) -> std::result::Result<Wish, Wrong> {
    let wrong = |field: &str, why: &str| Err((field.to_owned(), why.to_owned()));
    let Ok(Value::Object(body)) = serde_json::from_slice(body) else {
        return wrong("body", r#"is to be like {"allowed":["totp"],"required":[],"minimum":1}"#);
    };
    // What `GET` shows can be put back as it is.
    let known = ["allowed", "required", "minimum", "required_from", "version", "in_force"];
    if let Some(field) = body.keys().find(|field| !known.contains(&field.as_str())) {
        return wrong(field, "is nothing that can be put");
    }
    let Some(minimum) = body.get("minimum").and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok()) else {
        return wrong("minimum", "is to be a whole number");
    };
    let required_from = match body.get("required_from") {
        None | Some(Value::Null) => None,
        Some(at) => match at.as_u64().filter(|secs| *secs <= u64::from(u32::MAX)) {
            Some(secs) => Some(Timestamp::from_secs(secs)),
            None => return wrong("required_from", "is to be in seconds since 1970"),
        },
    };
    let rules = FactorRules { allowed: kinds(&body, "allowed")?, required: kinds(&body, "required")?, minimum };
    Ok(Wish { rules, required_from })
}

fn kinds(body: &Map<String, Value>, field: &str) -> std::result::Result<BTreeSet<FactorKind>, Wrong> {
    let names = FactorKind::ALL.map(FactorKind::as_str).join(", ");
    let wrong = || (field.to_owned(), format!("is to be a list of some of {names}"));
    let list = body.get(field).and_then(Value::as_array).ok_or_else(wrong)?;
    list.iter().map(|name| name.as_str().and_then(|name| name.parse().ok()).ok_or_else(wrong)).collect()
}
