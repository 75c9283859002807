//! A [`Write`] as DynamoDB expressions, word for word, and the item as attributes.
//!
//! ```text
//! first   (attribute_not_exists(#challenge) OR (#window <= :now AND #cooldown < :by))
//!         SET #challenge = :challenge, #digest = :digest, …, #window = :window, #guesses = :zero REMOVE #used, #receipt
//! again   #challenge = :seen AND #guesses < :budget
//!         SET #challenge = :challenge, #digest = :digest, … REMOVE #used, #receipt
//! count   #challenge = :seen AND #valid_until > :valid AND attribute_not_exists(#used) AND #attempts < :most AND #guesses < :budget
//!         SET #attempts = #attempts + :one, #guesses = #guesses + :one
//! use     #challenge = :seen AND #valid_until > :valid AND attribute_not_exists(#used)
//!         SET #used = :at, #guesses = #guesses - :one
//! claim   #challenge = :seen AND #valid_until > :valid AND attribute_not_exists(#used) AND #delivery = :is
//!         SET #delivery = :delivery
//! mark    #challenge = :seen AND #delivery = :is
//!         SET #delivery = :delivery, #receipt = :receipt
//! ```
//!
//! Invariant: the expression says what [`Write::apply`] does, no more and no less; the conformance tests compare them.

use crate::challenge::Recipient;
use crate::delivery::{Delivery, Receipt};
use crate::item::Item;
use crate::write::{Change, Check, Expect, Sending, Write};
use tollgate_core::{Error, Penalty, Result, Timestamp};
use tollgate_dynamodb::attributes::{self, AttributeValue, Attributes, EXPIRES_AT, number, string};
use tollgate_dynamodb::expression::Expressions;
use tollgate_dynamodb::partition_key;

const CHALLENGE: &str = "challenge";
const DIGEST: &str = "digest";
const VALID_UNTIL: &str = "valid_until";
const ATTEMPTS: &str = "attempts";
const USED: &str = "used";
const DELIVERY: &str = "delivery";
const RECEIPT: &str = "receipt";
const GUESSES: &str = "guesses";
const WINDOW: &str = "window";
const COOLDOWN: &str = "cooldown";

/// The partition key of a recipient's item: one for each account and purpose, so that nobody reaches another's by naming
/// its challenge.
#[must_use]
pub fn partition_key(recipient: &Recipient) -> String {
    partition_key::otp(recipient.purpose().as_str(), recipient.account())
}

/// Renders a write.
#[must_use]
pub fn render(write: &Write) -> Expressions {
    let mut out = Expressions::default();
    let mut all = |checks: &[Check]| checks.iter().map(|c| check(&mut out, c)).collect::<Vec<_>>().join(" AND ");
    let condition = match &write.expect {
        Expect::Present(checks) => all(checks),
        Expect::AbsentOr(checks) => {
            let checks = all(checks);
            format!("(attribute_not_exists({}) OR ({checks}))", name(&mut out, CHALLENGE))
        }
    };
    let update = change(&mut out, &write.change);
    Expressions { condition, update, ..out }
}

fn name(out: &mut Expressions, attribute: &str) -> String {
    out.name(&format!("#{attribute}"), attribute)
}

fn check(out: &mut Expressions, check: &Check) -> String {
    let (attribute, operator, placeholder, value) = match check {
        Check::Unused => return format!("attribute_not_exists({})", name(out, USED)),
        Check::ChallengeIs(challenge) => (CHALLENGE, "=", ":seen", string(challenge)),
        Check::ValidAt(now) => (VALID_UNTIL, ">", ":valid", number(now.as_nanos())),
        Check::DeliveryIs(delivery) => (DELIVERY, "=", ":is", string(delivery)),
        Check::AttemptsBelow(most) => (ATTEMPTS, "<", ":most", number(most)),
        Check::GuessesBelow(budget) => (GUESSES, "<", ":budget", number(budget)),
        Check::WindowOver(now) => (WINDOW, "<=", ":now", number(now.as_nanos())),
        Check::CooldownOver(by) => (COOLDOWN, "<", ":by", number(Penalty::in_force_from(*by))),
    };
    format!("{} {operator} {}", name(out, attribute), out.value(placeholder, value))
}

fn change(out: &mut Expressions, change: &Change) -> String {
    match change {
        Change::Send(sending) => send(out, sending),
        Change::Count => {
            let (attempts, guesses) = (name(out, ATTEMPTS), name(out, GUESSES));
            let one = out.value(":one", number(1));
            format!("SET {attempts} = {attempts} + {one}, {guesses} = {guesses} + {one}")
        }
        Change::Deliver(delivery, receipt) => {
            let mut set = vec![assign(out, DELIVERY, string(delivery))];
            set.extend(receipt.as_ref().map(|receipt| assign(out, RECEIPT, string(receipt))));
            format!("SET {}", set.join(", "))
        }
        Change::Use(now) => {
            let (used, guesses) = (name(out, USED), name(out, GUESSES));
            let (at, one) = (out.value(":at", number(now.as_nanos())), out.value(":one", number(1)));
            format!("SET {used} = {at}, {guesses} = {guesses} - {one}")
        }
    }
}

/// `#attribute = :attribute`.
fn assign(out: &mut Expressions, attribute: &str, value: AttributeValue) -> String {
    format!("{} = {}", name(out, attribute), out.value(&format!(":{attribute}"), value))
}

fn send(out: &mut Expressions, sending: &Sending) -> String {
    let mut values = vec![
        (CHALLENGE, string(sending.challenge)),
        (DIGEST, string(&sending.digest)),
        (VALID_UNTIL, number(sending.valid_until.as_nanos())),
        (DELIVERY, string(Delivery::Pending)),
        (ATTEMPTS, number(0)),
        (COOLDOWN, number(sending.cooldown)),
        (EXPIRES_AT, number(sending.expires_at)),
    ];
    if let Some(window) = sending.window {
        values.extend([(WINDOW, number(window.as_nanos())), (GUESSES, number(0))]);
    }
    let set: Vec<_> = values.into_iter().map(|(attribute, value)| assign(out, attribute, value)).collect();
    format!("SET {} REMOVE {}, {}", set.join(", "), name(out, USED), name(out, RECEIPT))
}

/// Reads an item.
///
/// # Errors
///
/// [`Error::Stored`] if an attribute is missing or is not what [`render`] has written.
pub fn to_item(found: &Attributes) -> Result<Item> {
    let instant = |name| Ok::<_, Error>(Timestamp::from_nanos(attributes::required(found, name)?));
    let challenge = attributes::text(found, CHALLENGE)?;
    let no_challenge = |_| Error::Stored { attribute: CHALLENGE.to_owned(), found: challenge.to_owned() };
    Ok(Item {
        challenge: challenge.parse().map_err(no_challenge)?,
        digest: attributes::text(found, DIGEST)?.parse()?,
        valid_until: instant(VALID_UNTIL)?,
        delivery: Delivery::of(attributes::text(found, DELIVERY)?)?,
        receipt: found.get(RECEIPT).map(|_| attributes::text(found, RECEIPT).map(Receipt::new)).transpose()?,
        attempts: attributes::required(found, ATTEMPTS)?,
        used: attributes::optional(found, USED)?.map(Timestamp::from_nanos),
        guesses: attributes::required(found, GUESSES)?,
        window: instant(WINDOW)?,
        cooldown: attributes::required(found, COOLDOWN)?,
        expires_at: attributes::required(found, EXPIRES_AT)?,
    })
}
