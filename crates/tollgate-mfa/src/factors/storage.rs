//! A [`Write`] as DynamoDB expressions, word for word, and the item as attributes.
//!
//! ```text
//! turn       (attribute_not_exists(#wrong) OR #wrong < :below0 OR (#wrong < :below1 AND #last <= :last1) OR …)
//! enrol      attribute_not_exists(#totp) AND attribute_not_exists(#passkeys) AND attribute_not_exists(#recovery)
//!            SET #pending = :pending, #pending_until = …, #pending_epoch = …, #pending_session = …
//! count      #totp = :totp AND turn
//!            SET #wrong = if_not_exists(#wrong, :zero) + :one, #last = :now
//! confirm    #pending = :pending AND #pending_until > :at AND attribute_not_exists(#totp)
//!            SET #totp = …, #totp_since = …, #totp_step = … REMOVE #pending, …, #wrong, #last
//! pass       #totp = :totp AND #totp_step < :step
//!            SET #totp_step = :step, #totp = … REMOVE #wrong, #last
//! use        contains(#recovery, :code)
//!            REMOVE #wrong, #last DELETE #recovery :codes
//! generate   #recovery_since = :seen
//!            SET #recovery = :codes, #recovery_since = … REMOVE #pending, …, #wrong, #last
//! passkey    NOT contains(#passkeys, :passkey) AND (attribute_not_exists(#passkeys) OR size(#passkeys) < :most)
//!            REMOVE #pending, … ADD #passkeys :passkeys
//! its end    contains(#passkeys, :passkey)
//!            REMOVE #pending, … DELETE #passkeys :passkeys
//! request    #request = :asked, or attribute_not_exists(#request)
//!            SET #request = …, or REMOVE #request                              (removed by what completes it as well)
//! changed    #changes = :were, or attribute_not_exists(#changes)                                (beside the checks of a change of factors)
//!            SET #changes = :changes, or REMOVE #changes                                        (beside what it does)
//! patch      SET #totp = …, … or REMOVE #totp, …; ADD or DELETE #passkeys :…                    (what is cancelled)
//! remove     attribute_exists(#totp)
//!            REMOVE #totp, …, #pending, …, #wrong, #last
//! ```
//!
//! The item is never deleted by the table: an account would be without the factors that protect it. Invariant: the expression says what
//! [`Write::apply`] does, no more and no less; tests compare them.

use super::account::{Account, CodeKind, Kind, Pending, Recovery, Totp};
use super::changes::{Changed, Part, PasskeysPart, Patch};
use super::passkey::{MOST_PASSKEYS, PasskeyId};
use super::recovery::CodeHash;
use super::tries::Tries;
use super::write::{Change, Check, Write};
use tollgate_core::{Key, Result, Timestamp};
use tollgate_dynamodb::attributes::{self, AttributeValue, Attributes, binaries, binary, number, string};
use tollgate_dynamodb::expression::Expressions;
use tollgate_dynamodb::partition_key;

const PENDING: &str = "pending";
const PENDING_UNTIL: &str = "pending_until";
const PENDING_EPOCH: &str = "pending_epoch";
const PENDING_SESSION: &str = "pending_session";
const TOTP: &str = "totp";
const TOTP_SINCE: &str = "totp_since";
const TOTP_STEP: &str = "totp_step";
const PASSKEYS: &str = "passkeys";
const RECOVERY: &str = "recovery";
const RECOVERY_SINCE: &str = "recovery_since";
const CHANGES: &str = "changes";
const REQUEST: &str = "request";

/// Changes are written in one text, with this between.
const BETWEEN: char = ' ';

/// The partition key of an account's item.
#[must_use]
pub fn partition_key(account: &Key) -> String {
    partition_key::mfa("factors", account)
}

/// The attributes of a factor's tries: how many, and when the last one was.
fn tries_of(kind: CodeKind) -> (&'static str, &'static str) {
    match kind {
        CodeKind::Totp => ("totp_wrong", "totp_last"),
        CodeKind::Recovery => ("recovery_wrong", "recovery_last"),
    }
}

/// The attributes that are a factor.
fn attributes_of(kind: Kind) -> &'static [&'static str] {
    match kind {
        Kind::Totp => &[TOTP, TOTP_SINCE, TOTP_STEP],
        Kind::Passkey => &[PASSKEYS],
        Kind::Recovery => &[RECOVERY, RECOVERY_SINCE],
    }
}

/// Renders a write.
#[must_use]
pub fn render(write: &Write) -> Expressions {
    let mut out = Expressions::default();
    let checks: Vec<_> = write.checks.iter().map(|c| check(&mut out, c)).collect();
    let mut update = change(&mut out, &write.change);
    match &write.changes {
        None => {}
        Some(changes) if changes.is_empty() => update.remove(&mut out, &[CHANGES]),
        Some(changes) => update.set(&mut out, CHANGES, string(written(changes))),
    }
    let update = update.text();
    Expressions { condition: checks.join(" AND "), update, ..out }
}

fn name(out: &mut Expressions, attribute: &str) -> String {
    out.name(&format!("#{attribute}"), attribute)
}

fn check(out: &mut Expressions, check: &Check) -> String {
    let (attribute, operator, placeholder, value) = match check {
        Check::ChangesAre(changes) if changes.is_empty() => {
            return format!("attribute_not_exists({})", name(out, CHANGES));
        }
        Check::ChangesAre(changes) => (CHANGES, "=", ":were", string(written(changes))),
        Check::RequestIs(None) => return format!("attribute_not_exists({})", name(out, REQUEST)),
        Check::RequestIs(Some(request)) => (REQUEST, "=", ":asked", string(request)),
        Check::NoApp => return format!("attribute_not_exists({})", name(out, TOTP)),
        // The table keeps no empty set.
        Check::NoFactor => {
            let none = [TOTP, PASSKEYS, RECOVERY].map(|kind| format!("attribute_not_exists({})", name(out, kind)));
            return none.join(" AND ");
        }
        Check::AnyCodes => return format!("attribute_exists({})", name(out, RECOVERY)),
        Check::CodesOf(None) => return format!("attribute_not_exists({})", name(out, RECOVERY_SINCE)),
        Check::CodesOf(Some(since)) => (RECOVERY_SINCE, "=", ":seen", number(since.as_nanos())),
        Check::Has(Kind::Totp) => return format!("attribute_exists({})", name(out, TOTP)),
        Check::Has(Kind::Recovery) => return format!("attribute_exists({})", name(out, RECOVERY_SINCE)),
        Check::Has(Kind::Passkey) => return format!("attribute_exists({})", name(out, PASSKEYS)),
        Check::HasPasskey(id) => return contains(out, PASSKEYS, ":passkey", &id.0),
        Check::LacksPasskey(id) => return format!("(NOT {})", contains(out, PASSKEYS, ":no_passkey", &id.0)),
        Check::RoomForPasskey => {
            let (passkeys, most) = (name(out, PASSKEYS), out.value(":most", number(MOST_PASSKEYS)));
            return format!("(attribute_not_exists({passkeys}) OR size({passkeys}) < {most})");
        }
        Check::HasCode(code) => return contains(out, RECOVERY, ":code", &code.0),
        Check::Turn(kind, now) => return turn(out, *kind, *now),
        Check::PendingIs(sealed) => (PENDING, "=", ":is_pending", string(sealed)),
        Check::PendingAt(now) => (PENDING_UNTIL, ">", ":at", number(now.as_nanos())),
        Check::AppIs(sealed) => (TOTP, "=", ":is_totp", string(sealed)),
        Check::StepBefore(step) => (TOTP_STEP, "<", ":before", number(step)),
    };
    format!("{} {operator} {}", name(out, attribute), out.value(placeholder, value))
}

fn contains(out: &mut Expressions, set: &str, placeholder: &str, bytes: &[u8]) -> String {
    format!("contains({}, {})", name(out, set), out.value(placeholder, binary(bytes)))
}

fn turn(out: &mut Expressions, kind: CodeKind, now: Timestamp) -> String {
    let (wrong, last) = tries_of(kind);
    let wrong = name(out, wrong);
    let mut any = vec![format!("attribute_not_exists({wrong})")];
    for (n, (below, wait)) in Tries::WAITS.into_iter().enumerate() {
        let fewer = format!("{wrong} < {}", out.value(&format!(":below{n}"), number(below)));
        if wait.is_zero() {
            any.push(fewer);
            continue;
        }
        let before = now.as_nanos().saturating_sub(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX));
        let (last, before) = (name(out, last), out.value(&format!(":last{n}"), number(before)));
        any.push(format!("({fewer} AND {last} <= {before})"));
    }
    format!("({})", any.join(" OR "))
}

/// The clauses of an update.
#[derive(Default)]
struct Update {
    set: Vec<String>,
    remove: Vec<String>,
    add: Vec<String>,
    delete: Vec<String>,
}

impl Update {
    fn set(&mut self, out: &mut Expressions, attribute: &str, value: AttributeValue) {
        let (name, value) = (name(out, attribute), out.value(&format!(":{attribute}"), value));
        self.set.push(format!("{name} = {value}"));
    }

    fn remove(&mut self, out: &mut Expressions, attributes: &[&str]) {
        self.remove.extend(attributes.iter().map(|attribute| name(out, attribute)));
    }

    fn text(&self) -> String {
        let clauses = [("SET", &self.set), ("REMOVE", &self.remove), ("ADD", &self.add), ("DELETE", &self.delete)];
        let some = clauses.iter().filter(|(_, actions)| !actions.is_empty());
        some.map(|(clause, actions)| format!("{clause} {}", actions.join(", "))).collect::<Vec<_>>().join(" ")
    }
}

fn written(changes: &[Changed]) -> String {
    changes.iter().map(Changed::to_string).collect::<Vec<_>>().join(&BETWEEN.to_string())
}

fn patch(out: &mut Expressions, update: &mut Update, patch: &Patch) {
    if patch.ends_request {
        update.remove(out, &[REQUEST]);
    }
    let tries = |out: &mut Expressions, update: &mut Update, kind| {
        let (wrong, last) = tries_of(kind);
        update.remove(out, &[wrong, last]);
    };
    match &patch.totp {
        Part::Keep => {}
        Part::Drop => update.remove(out, attributes_of(Kind::Totp)),
        Part::Put(app) => put_app(out, update, app),
    }
    if patch.totp != Part::Keep {
        tries(out, update, CodeKind::Totp);
    }
    match &patch.recovery {
        Part::Keep => {}
        Part::Drop => update.remove(out, attributes_of(Kind::Recovery)),
        Part::Put(recovery) => {
            // The table keeps no empty set.
            match recovery.codes.is_empty() {
                true => update.remove(out, &[RECOVERY]),
                false => update.set(out, RECOVERY, binaries(recovery.codes.iter().map(|code| &code.0))),
            }
            update.set(out, RECOVERY_SINCE, number(recovery.since.as_nanos()));
        }
    }
    if patch.recovery != Part::Keep {
        tries(out, update, CodeKind::Recovery);
    }
    match &patch.passkeys {
        PasskeysPart::Keep => {}
        PasskeysPart::Drop => update.remove(out, attributes_of(Kind::Passkey)),
        PasskeysPart::Add(ids) => {
            let (passkeys, added) = (name(out, PASSKEYS), out.value(":added", binaries(ids.iter().map(|id| &id.0))));
            update.add.push(format!("{passkeys} {added}"));
        }
        PasskeysPart::Remove(id) => {
            let (passkeys, removed) = (name(out, PASSKEYS), out.value(":removed", binaries([&id.0])));
            update.delete.push(format!("{passkeys} {removed}"));
        }
    }
}

fn put_app(out: &mut Expressions, update: &mut Update, app: &Totp) {
    update.set(out, TOTP, string(&app.sealed));
    update.set(out, TOTP_SINCE, number(app.since.as_nanos()));
    update.set(out, TOTP_STEP, number(app.step));
}

fn change(out: &mut Expressions, change: &Change) -> Update {
    let mut update = Update::default();
    match change {
        Change::Enrol(Pending { sealed, until, epoch, session }) => {
            update.set(out, PENDING, string(sealed));
            update.set(out, PENDING_UNTIL, number(until.as_nanos()));
            update.set(out, PENDING_EPOCH, number(epoch));
            match session {
                Some(session) => update.set(out, PENDING_SESSION, string(session)),
                None => update.remove(out, &[PENDING_SESSION]),
            }
        }
        Change::Count(kind, now) => {
            let (wrong, last) = tries_of(*kind);
            let (wrong, zero, one) = (name(out, wrong), out.value(":zero", number(0)), out.value(":one", number(1)));
            update.set.push(format!("{wrong} = if_not_exists({wrong}, {zero}) + {one}"));
            update.set(out, last, number(now.as_nanos()));
        }
        Change::Confirm(app) => put_app(out, &mut update, app),
        Change::Patch(of) => patch(out, &mut update, of),
        Change::Request(Some(request)) => update.set(out, REQUEST, string(request)),
        Change::Request(None) => update.remove(out, &[REQUEST]),
        Change::Pass { step, sealed } => {
            update.set(out, TOTP_STEP, number(step));
            update.set(out, TOTP, string(sealed));
        }
        Change::Use(code) => {
            let (codes, used) = (name(out, RECOVERY), out.value(":used", binaries([&code.0])));
            update.delete.push(format!("{codes} {used}"));
        }
        Change::Generate(codes, since) => {
            update.set(out, RECOVERY, binaries(codes.iter().map(|code| &code.0)));
            update.set(out, RECOVERY_SINCE, number(since.as_nanos()));
        }
        Change::AddPasskey(id) => {
            let (passkeys, added) = (name(out, PASSKEYS), out.value(":added", binaries([&id.0])));
            update.add.push(format!("{passkeys} {added}"));
        }
        Change::RemovePasskey(id) => {
            let (passkeys, removed) = (name(out, PASSKEYS), out.value(":removed", binaries([&id.0])));
            update.delete.push(format!("{passkeys} {removed}"));
        }
        Change::Remove(kind) => update.remove(out, attributes_of(*kind)),
    }
    let (tries, pending) = change.clears();
    if let Some(kind) = tries {
        let (wrong, last) = tries_of(kind);
        update.remove(out, &[wrong, last]);
    }
    if pending {
        update.remove(out, &[PENDING, PENDING_UNTIL, PENDING_EPOCH, PENDING_SESSION]);
    }
    update
}

/// Reads an item; none is an account without factors.
///
/// # Errors
///
/// [`tollgate_core::Error::Stored`] for what this version does not write.
pub fn to_account(found: Option<&Attributes>) -> Result<Account> {
    let Some(found) = found else { return Ok(Account::default()) };
    let instant = |name| Ok::<_, tollgate_core::Error>(Timestamp::from_nanos(attributes::required(found, name)?));
    let text = |name| attributes::text(found, name).map(str::to_owned);
    let has = |name: &str| found.contains_key(name);
    let pending = || {
        let session = has(PENDING_SESSION).then(|| text(PENDING_SESSION)).transpose()?;
        let epoch = attributes::required(found, PENDING_EPOCH)?;
        Ok::<_, tollgate_core::Error>(Pending {
            sealed: text(PENDING)?,
            until: instant(PENDING_UNTIL)?,
            epoch,
            session,
        })
    };
    let totp = || {
        let step = attributes::required(found, TOTP_STEP)?;
        Ok::<_, tollgate_core::Error>(Totp { sealed: text(TOTP)?, since: instant(TOTP_SINCE)?, step })
    };
    let recovery = || {
        let codes = attributes::byte_strings(found, RECOVERY)?.into_iter().map(CodeHash).collect();
        Ok::<_, tollgate_core::Error>(Recovery { since: instant(RECOVERY_SINCE)?, codes })
    };
    let changes = || {
        let text = attributes::text(found, CHANGES)?;
        let wrong = |_| tollgate_core::Error::Stored { attribute: CHANGES.to_owned(), found: text.to_owned() };
        text.split(BETWEEN).map(|change| change.parse().map_err(wrong)).collect::<Result<Vec<Changed>>>()
    };
    let request = || {
        let text = attributes::text(found, REQUEST)?;
        let wrong = |_| tollgate_core::Error::Stored { attribute: REQUEST.to_owned(), found: text.to_owned() };
        text.parse().map_err(wrong)
    };
    let tries = |kind| {
        let (wrong, last) = tries_of(kind);
        let last = attributes::optional(found, last)?.map(Timestamp::from_nanos).unwrap_or_default();
        Ok::<_, tollgate_core::Error>(Tries { wrong: attributes::optional(found, wrong)?.unwrap_or_default(), last })
    };
    Ok(Account {
        pending: has(PENDING).then(pending).transpose()?,
        totp: has(TOTP).then(totp).transpose()?,
        passkeys: attributes::byte_strings(found, PASSKEYS)?.into_iter().map(PasskeyId).collect(),
        recovery: has(RECOVERY_SINCE).then(recovery).transpose()?,
        changes: has(CHANGES).then(changes).transpose()?.unwrap_or_default(),
        request: has(REQUEST).then(request).transpose()?,
        totp_tries: tries(CodeKind::Totp)?,
        recovery_tries: tries(CodeKind::Recovery)?,
    })
}
