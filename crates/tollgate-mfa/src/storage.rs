//! Writes as DynamoDB expressions, word for word, and items as attributes.
//!
//! ```text
//! sign in   attribute_not_exists(#signed_in) OR #signed_in > :at
//!           SET #signed_in = :at, #x = :x
//! verify    attribute_not_exists(#at) OR #at <= :at
//!           SET #at = :at, #acr = :acr, #amr = :amr, #epoch = :epoch, #x = :x
//! code      NOT contains(#codes, :code)
//!           SET #x = :x ADD #codes :added
//! revoke    attribute_not_exists(#revoked) OR #revoked <= :now
//!           SET #epoch = if_not_exists(#epoch, :zero) + :one, #revoked = :now
//!           REMOVE #spared, …
//! beside    #revoked = :now
//!           SET #epoch = if_not_exists(#epoch, :zero) + :one REMOVE #spared, …
//! sparing   #epoch = :seen, or attribute_not_exists(#epoch)
//!           SET #epoch = :epoch, #revoked = :revoked, #spared = :spared, #spared_epoch = … (or REMOVE #spared_revoked)
//! grant     attribute_not_exists(#action)
//!           SET #action = :action, #session = :session, #at = :at, #acr = :acr, #amr = :amr, #epoch = :epoch, #x = :x
//! use       #action = :action AND #at = :at AND #epoch = :epoch      (a delete)
//! ```
//!
//! Invariant: the expression says what [`SessionWrite::apply`] and [`Revoke::apply`] do, no more and no less; tests compare them.

use crate::authentication::Authentication;
use crate::grant::{Grant, hashed};
use crate::record::{Revoke, Session, SessionWrite, Spared, Subject, Verified};
use tollgate_core::{Error, Key, Result, Timestamp};
use tollgate_dynamodb::attributes::{self, AttributeValue, Attributes, EXPIRES_AT, binary, number, string, strings};
use tollgate_dynamodb::expression::Expressions;
use tollgate_dynamodb::partition_key;

const SIGNED_IN: &str = "signed_in";
const AT: &str = "at";
const ACR: &str = "acr";
const AMR: &str = "amr";
const EPOCH: &str = "epoch";
const REVOKED: &str = "revoked";
const ACTION: &str = "action";
const SESSION: &str = "session";
const SPARED: &str = "spared";
const SPARED_EPOCH: &str = "spared_epoch";
const SPARED_REVOKED: &str = "spared_revoked";
const CODES: &str = "codes";

/// Methods are written in one text, with this between: no method has a blank.
const BETWEEN: char = ' ';

/// The partition key of what is remembered of a subject.
#[must_use]
pub fn subject_key(subject: &Key) -> String {
    partition_key::mfa("subject", subject)
}

/// The partition key of a subject's session; its name is somebody else's text, and kept as a hash.
#[must_use]
pub fn session_key(subject: &Key, session: &str) -> String {
    partition_key::mfa(&format!("session.{}", hashed(session.as_bytes())), subject)
}

/// The partition key of a subject's grant, by [`GrantId::stored`](crate::GrantId::stored).
#[must_use]
pub fn grant_key(subject: &Key, stored: &str) -> String {
    partition_key::mfa(&format!("grant.{stored}"), subject)
}

/// Renders a write of a session, which the table may delete at `expires_at`, epoch seconds.
#[must_use]
pub fn session(write: &SessionWrite, expires_at: u64) -> Expressions {
    let mut out = Expressions::default();
    let (condition, set) = match write {
        SessionWrite::SignIn(at) => {
            let (name, at) = (name(&mut out, SIGNED_IN), value(&mut out, "at", number(at.as_nanos())));
            (format!("attribute_not_exists({name}) OR {name} > {at}"), format!("{name} = {at}"))
        }
        SessionWrite::Verify(verified) => {
            let set = verification(&mut out, verified);
            if verified.authentication.acr.is_none() {
                name(&mut out, ACR);
            }
            (format!("attribute_not_exists(#{AT}) OR #{AT} <= :{AT}"), set)
        }
        SessionWrite::Code(method) => return code(out, method, expires_at),
    };
    let expiry = expiry(&mut out, expires_at);
    Expressions { condition, update: update(&set, &expiry, without_acr(write)), ..out }
}

fn code(mut out: Expressions, method: &str, expires_at: u64) -> Expressions {
    let codes = name(&mut out, CODES);
    let (code, added) = (value(&mut out, "code", string(method)), value(&mut out, "added", strings([method])));
    let condition = format!("NOT contains({codes}, {code})");
    Expressions { condition, update: format!("SET {} ADD {codes} {added}", expiry(&mut out, expires_at)), ..out }
}

/// Renders a revocation. What it leaves is never deleted by the table: it would be as if nothing had been revoked.
#[must_use]
pub fn revoke(write: Revoke) -> Expressions {
    let mut out = Expressions::default();
    if let (Revoke::Sparing { seen, .. }, Some(after)) = (write, write.sparing()) {
        return sparing(out, seen, &after);
    }
    let (epoch, revoked) = (name(&mut out, EPOCH), name(&mut out, REVOKED));
    let (zero, one) = (value(&mut out, "zero", number(0)), value(&mut out, "one", number(1)));
    let next = format!("SET {epoch} = if_not_exists({epoch}, {zero}) + {one}");
    let (condition, update) = match write {
        Revoke::Now(now) => {
            let now = value(&mut out, "now", number(now.as_nanos()));
            (format!("attribute_not_exists({revoked}) OR {revoked} <= {now}"), format!("{next}, {revoked} = {now}"))
        }
        Revoke::Beside(seen) => {
            let seen = value(&mut out, "now", number(seen.as_nanos()));
            (format!("{revoked} = {seen}"), next)
        }
        Revoke::Sparing { .. } => return out,
    };
    let all = [SPARED, SPARED_EPOCH, SPARED_REVOKED].map(|attribute| name(&mut out, attribute)).join(", ");
    Expressions { condition, update: format!("{update} REMOVE {all}"), ..out }
}

fn sparing(mut out: Expressions, seen: Subject, after: &Subject) -> Expressions {
    let epoch = name(&mut out, EPOCH);
    let condition = match seen.epoch {
        0 => format!("attribute_not_exists({epoch})"),
        seen => format!("{epoch} = {}", value(&mut out, "seen", number(seen))),
    };
    let mut set = vec![(EPOCH, number(after.epoch))];
    set.extend(after.revoked.map(|revoked| (REVOKED, number(revoked.as_nanos()))));
    let mut rest = String::new();
    if let Some(spared) = after.spared {
        set.extend([(SPARED, binary(&spared.session)), (SPARED_EPOCH, number(spared.epoch))]);
        match spared.revoked {
            Some(revoked) => set.push((SPARED_REVOKED, number(revoked.as_nanos()))),
            None => rest = format!(" REMOVE {}", name(&mut out, SPARED_REVOKED)),
        }
    }
    let mut assign = |(attribute, to)| format!("{} = {}", name(&mut out, attribute), value(&mut out, attribute, to));
    let set = set.into_iter().map(&mut assign).collect::<Vec<_>>().join(", ");
    Expressions { condition, update: format!("SET {set}{rest}"), ..out }
}

/// Renders a new grant.
#[must_use]
pub fn grant(grant: &Grant, expires_at: u64) -> Expressions {
    let mut out = Expressions::default();
    let (action, given) = (name(&mut out, ACTION), value(&mut out, ACTION, string(grant.action)));
    let mut set = format!("{action} = {given}, {}", verification(&mut out, &grant.verified));
    if let Some(session) = &grant.session {
        let (name, value) = (name(&mut out, SESSION), value(&mut out, SESSION, string(session)));
        set = format!("{set}, {name} = {value}");
    }
    let condition = format!("attribute_not_exists({action})");
    let expiry = expiry(&mut out, expires_at);
    Expressions { condition, update: update(&set, &expiry, false), ..out }
}

/// Renders the use of a grant, a delete: it must be there, and be the one that was seen.
#[must_use]
pub fn using(grant: &Grant) -> Expressions {
    let mut out = Expressions::default();
    let at = grant.verified.authentication.at;
    let seen = [(ACTION, string(grant.action)), (AT, number(at.as_nanos())), (EPOCH, number(grant.verified.epoch))];
    let mut same = |(attribute, seen)| format!("{} = {}", name(&mut out, attribute), value(&mut out, attribute, seen));
    let condition = seen.into_iter().map(&mut same).collect::<Vec<_>>().join(" AND ");
    Expressions { condition, ..out }
}

/// Reads a subject.
///
/// # Errors
///
/// [`Error::Stored`] for what this version does not write.
pub fn to_subject(found: Option<&Attributes>) -> Result<Subject> {
    let Some(found) = found else { return Ok(Subject::default()) };
    let revoked = attributes::optional(found, REVOKED)?.map(Timestamp::from_nanos);
    let spared = found.get(SPARED).map(|value| {
        let wrong = || Error::Stored { attribute: SPARED.to_owned(), found: "no digest".to_owned() };
        let session = value.as_b().ok().and_then(|bytes| bytes.as_ref().try_into().ok()).ok_or_else(wrong)?;
        let revoked = attributes::optional(found, SPARED_REVOKED)?.map(Timestamp::from_nanos);
        Ok::<_, Error>(Spared { session, epoch: attributes::required(found, SPARED_EPOCH)?, revoked })
    });
    Ok(Subject { epoch: attributes::required(found, EPOCH)?, revoked, spared: spared.transpose()? })
}

/// Reads a session.
///
/// # Errors
///
/// [`Error::Stored`] for what this version does not write.
pub fn to_session(found: &Attributes) -> Result<Session> {
    let signed_in = attributes::optional(found, SIGNED_IN)?.map(Timestamp::from_nanos);
    let verified = found.contains_key(AT).then(|| to_verified(found)).transpose()?;
    let codes = attributes::texts(found, CODES)?.into_iter().collect();
    Ok(Session { signed_in, verified, codes })
}

/// Reads a grant.
///
/// # Errors
///
/// [`Error::Stored`] for what this version does not write.
pub fn to_grant(found: &Attributes) -> Result<Grant> {
    let text = attributes::text(found, ACTION)?;
    let wrong = |_| Error::Stored { attribute: ACTION.to_owned(), found: text.to_owned() };
    let session = optional_text(found, SESSION)?;
    Ok(Grant { action: text.parse().map_err(wrong)?, session, verified: to_verified(found)? })
}

fn to_verified(found: &Attributes) -> Result<Verified> {
    let methods = optional_text(found, AMR)?.unwrap_or_default();
    let authentication = Authentication {
        at: Timestamp::from_nanos(attributes::required(found, AT)?),
        acr: optional_text(found, ACR)?,
        amr: methods.split(BETWEEN).filter(|method| !method.is_empty()).map(str::to_owned).collect(),
    };
    Ok(Verified { authentication, epoch: attributes::required(found, EPOCH)? })
}

fn optional_text(found: &Attributes, name: &str) -> Result<Option<String>> {
    found.get(name).map(|_| attributes::text(found, name).map(str::to_owned)).transpose()
}

/// The assignments of what was verified.
fn verification(out: &mut Expressions, verified: &Verified) -> String {
    let Authentication { at, acr, amr } = &verified.authentication;
    let mut assign = vec![(AT, number(at.as_nanos())), (EPOCH, number(verified.epoch))];
    assign.extend(acr.as_ref().map(|acr| (ACR, string(acr))));
    assign.push((AMR, string(amr.join(&BETWEEN.to_string()))));
    let mut set = |(attribute, to)| format!("{} = {}", name(out, attribute), value(out, attribute, to));
    assign.into_iter().map(&mut set).collect::<Vec<_>>().join(", ")
}

/// Whether an earlier record's class must go, since this one has none.
fn without_acr(write: &SessionWrite) -> bool {
    matches!(write, SessionWrite::Verify(verified) if verified.authentication.acr.is_none())
}

fn update(set: &str, expiry: &str, without_acr: bool) -> String {
    let rest = if without_acr { format!(" REMOVE #{ACR}") } else { String::new() };
    format!("SET {set}, {expiry}{rest}")
}

fn expiry(out: &mut Expressions, expires_at: u64) -> String {
    format!("{} = {}", out.name("#x", EXPIRES_AT), out.value(":x", number(expires_at)))
}

fn name(out: &mut Expressions, attribute: &str) -> String {
    out.name(&format!("#{attribute}"), attribute)
}

fn value(out: &mut Expressions, placeholder: &str, value: AttributeValue) -> String {
    out.value(&format!(":{placeholder}"), value)
}
