//! Writes of passkeys and challenges as DynamoDB expressions, word for word, and items as attributes.
//!
//! ```text
//! add      attribute_not_exists(#credential) OR #expires_at <= :now
//!          SET #credential = :credential, #key = :key, #count = :count, … REMOVE #expires_at
//! retire   attribute_exists(#credential)
//!          SET #expires_at = :until (revive: REMOVE #expires_at)
//! pass     #count < :count, or of one that does not count #count = :count
//!          SET #count = :count, #eligible = …, #backed_up = …, #used = :used
//! put      attribute_not_exists(#ceremony)
//!          SET #ceremony = :ceremony, #until = :until, #state = :state, …, #expires_at = :expires_at
//! use      #ceremony = :ceremony AND #until > :now AND #epoch = :epoch AND #session = :session AND attribute_not_exists(#action)      (a delete)
//! ```
//!
//! Invariant: the expression says what [`PasskeyWrite::apply`] and [`Use::fits`] do, no more and no less; tests compare them.

use super::challenge::{Ceremony, Challenge, ChallengeId, Use};
use super::{Passkey, PasskeyId, PasskeyWrite, Signed};
use crate::grant::Action;
use tollgate_core::{Error, Key, Result, Timestamp};
use tollgate_dynamodb::attributes::{self, AttributeValue, Attributes, EXPIRES_AT, binary, number, string};
use tollgate_dynamodb::expression::Expressions;
use tollgate_dynamodb::partition_key;

const CREDENTIAL: &str = "credential";
const KEY: &str = "key";
const VERIFIED: &str = "verified";
const TRANSPORTS: &str = "transports";
const NAME: &str = "name";
const SINCE: &str = "since";
const USED: &str = "used";
const COUNT: &str = "count";
const ELIGIBLE: &str = "eligible";
const BACKED_UP: &str = "backed_up";

const CEREMONY: &str = "ceremony";
const FIRST: &str = "first";
const SESSION: &str = "session";
const EPOCH: &str = "epoch";
const ACTION: &str = "action";
const AT: &str = "at";
const UNTIL: &str = "until";
const STATE: &str = "state";

/// Transports are written in one text, with this between: none has a blank.
const BETWEEN: char = ' ';

/// The partition key of an account's passkey.
#[must_use]
pub fn passkey_key(account: &Key, id: PasskeyId) -> String {
    partition_key::mfa(&format!("passkey.{id}"), account)
}

/// The partition key of an account's challenge.
#[must_use]
pub fn challenge_key(account: &Key, id: &ChallengeId) -> String {
    partition_key::mfa(&format!("challenge.{}", id.stored()), account)
}

/// Renders a write of a passkey. The table never deletes what it leaves.
#[must_use]
pub fn render(write: &PasskeyWrite) -> Expressions {
    let mut out = Expressions::default();
    match write {
        PasskeyWrite::Add(passkey) => {
            // One that was removed may be put back, and must be what it was.
            let (expires, now) = (out.name("#x", EXPIRES_AT), out.value(":x", number(passkey.since.as_secs())));
            let credential = name(&mut out, CREDENTIAL);
            let condition = format!("attribute_not_exists({credential}) OR {expires} <= {now}");
            let mut set = vec![
                (CREDENTIAL, binary(&passkey.credential)),
                (KEY, string(&passkey.key)),
                (VERIFIED, flag(passkey.is_verified)),
                (TRANSPORTS, string(passkey.transports.join(&BETWEEN.to_string()))),
                (NAME, string(&passkey.name)),
                (SINCE, number(passkey.since.as_nanos())),
            ];
            set.extend(passkey.used.map(|used| (USED, number(used.as_nanos()))));
            set.extend(state(&passkey.state));
            let update = format!("{} REMOVE {expires}", assign(&mut out, set));
            Expressions { condition, update, ..out }
        }
        PasskeyWrite::Pass(signed, at) => {
            let operator = if signed.count == 0 { "=" } else { "<" };
            let condition = format!("{} {operator} :{COUNT}", name(&mut out, COUNT));
            let set = state(signed).into_iter().chain([(USED, number(at.as_nanos()))]);
            Expressions { condition, update: assign(&mut out, set), ..out }
        }
    }
}

/// Renders a new challenge, which the table may delete once it is over.
#[must_use]
pub fn put(challenge: &Challenge) -> Expressions {
    let mut out = Expressions::default();
    let condition = format!("attribute_not_exists({})", name(&mut out, CEREMONY));
    let is_first = matches!(challenge.ceremony, Ceremony::Register { is_first: true });
    let mut set = vec![
        (CEREMONY, string(challenge.ceremony.as_str())),
        (FIRST, flag(is_first)),
        (EPOCH, number(challenge.epoch)),
        (AT, number(challenge.at.as_nanos())),
        (UNTIL, number(challenge.until.as_nanos())),
        (STATE, string(&challenge.state)),
    ];
    set.extend(challenge.session.as_ref().map(|session| (SESSION, string(session))));
    set.extend(challenge.action.map(|action| (ACTION, string(action))));
    set.push((EXPIRES_AT, number(challenge.until.as_secs() + 1)));
    Expressions { condition, update: assign(&mut out, set), ..out }
}

/// Renders the use of a challenge, a delete: its item is immutable, so what is deleted is what was read.
#[must_use]
pub fn using(of: &Use<'_>) -> Expressions {
    let mut out = Expressions::default();
    let same = [
        (CEREMONY, Some(string(of.ceremony.as_str()))),
        (EPOCH, Some(number(of.epoch))),
        (SESSION, of.session.map(string)),
        (ACTION, of.action.map(string)),
    ];
    let mut all: Vec<_> = same
        .into_iter()
        .map(|(attribute, value)| {
            let name = name(&mut out, attribute);
            match value {
                Some(value) => format!("{name} = {}", out.value(&format!(":{attribute}"), value)),
                None => format!("attribute_not_exists({name})"),
            }
        })
        .collect();
    let (until, now) = (name(&mut out, UNTIL), out.value(":now", number(of.now.as_nanos())));
    all.push(format!("{until} > {now}"));
    Expressions { condition: all.join(" AND "), ..out }
}

/// Renders that the table may delete the item of a passkey after `until`.
#[must_use]
pub fn retiring(until: Timestamp) -> Expressions {
    let mut out = Expressions::default();
    let condition = format!("attribute_exists({})", name(&mut out, CREDENTIAL));
    // A while after it: whoever cancels at the last moment finds it.
    let update = format!("SET {} = {}", out.name("#x", EXPIRES_AT), out.value(":x", number(until.as_secs() + 60)));
    Expressions { condition, update, ..out }
}

/// Renders that it is kept after all.
#[must_use]
pub fn reviving() -> Expressions {
    let mut out = Expressions::default();
    let condition = format!("attribute_exists({})", name(&mut out, CREDENTIAL));
    let update = format!("REMOVE {}", out.name("#x", EXPIRES_AT));
    Expressions { condition, update, ..out }
}

/// Renders the removal of a passkey's item, a delete.
#[must_use]
pub fn removing() -> Expressions {
    let mut out = Expressions::default();
    let condition = format!("attribute_exists({})", name(&mut out, CREDENTIAL));
    Expressions { condition, ..out }
}

/// Reads a passkey.
///
/// # Errors
///
/// [`Error::Stored`] for what this version does not write.
pub fn to_passkey(found: &Attributes) -> Result<Passkey> {
    let credential = found.get(CREDENTIAL).and_then(|value| value.as_b().ok()).map(|bytes| bytes.as_ref().to_vec());
    let missing = || Error::Stored { attribute: CREDENTIAL.to_owned(), found: "no bytes".to_owned() };
    let is = |name| Ok::<_, Error>(attributes::required::<u8>(found, name)? == 1);
    let transports = attributes::text(found, TRANSPORTS)?;
    Ok(Passkey {
        credential: credential.ok_or_else(missing)?,
        key: attributes::text(found, KEY)?.to_owned(),
        is_verified: is(VERIFIED)?,
        transports: transports.split(BETWEEN).filter(|one| !one.is_empty()).map(str::to_owned).collect(),
        name: attributes::text(found, NAME)?.to_owned(),
        since: Timestamp::from_nanos(attributes::required(found, SINCE)?),
        used: attributes::optional(found, USED)?.map(Timestamp::from_nanos),
        state: Signed {
            count: attributes::required(found, COUNT)?,
            can_be_backed_up: is(ELIGIBLE)?,
            is_backed_up: is(BACKED_UP)?,
        },
    })
}

/// Reads a challenge.
///
/// # Errors
///
/// [`Error::Stored`] for what this version does not write.
pub fn to_challenge(found: &Attributes) -> Result<Challenge> {
    let wrong = |attribute: &str, text: &str| Error::Stored { attribute: attribute.to_owned(), found: text.to_owned() };
    let ceremony = match attributes::text(found, CEREMONY)? {
        "register" => Ceremony::Register { is_first: attributes::required::<u8>(found, FIRST)? == 1 },
        "assert" => Ceremony::Assert,
        other => return Err(wrong(CEREMONY, other)),
    };
    let optional = |name| found.get(name).map(|_| attributes::text(found, name)).transpose();
    let action = |text: &str| text.parse::<Action>().map_err(|_| wrong(ACTION, text));
    Ok(Challenge {
        ceremony,
        session: optional(SESSION)?.map(str::to_owned),
        epoch: attributes::required(found, EPOCH)?,
        action: optional(ACTION)?.map(action).transpose()?,
        at: Timestamp::from_nanos(attributes::required(found, AT)?),
        until: Timestamp::from_nanos(attributes::required(found, UNTIL)?),
        state: attributes::text(found, STATE)?.to_owned(),
    })
}

fn state(signed: &Signed) -> [(&'static str, AttributeValue); 3] {
    let Signed { count, can_be_backed_up, is_backed_up } = signed;
    [(COUNT, number(count)), (ELIGIBLE, flag(*can_be_backed_up)), (BACKED_UP, flag(*is_backed_up))]
}

fn flag(is: bool) -> AttributeValue {
    number(u8::from(is))
}

fn name(out: &mut Expressions, attribute: &str) -> String {
    out.name(&format!("#{attribute}"), attribute)
}

fn assign(out: &mut Expressions, set: impl IntoIterator<Item = (&'static str, AttributeValue)>) -> String {
    let mut one =
        |(attribute, value)| format!("{} = {}", name(out, attribute), out.value(&format!(":{attribute}"), value));
    format!("SET {}", set.into_iter().map(&mut one).collect::<Vec<_>>().join(", "))
}
