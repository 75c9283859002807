//! How far the message with a code has come: pending, sending, sent.
//!
//! ```text
//! claim    challenge = mine AND valid_until > now AND unused AND delivery = pending    delivery = sending
//! sent     challenge = mine AND delivery = sending                                     delivery = sent, receipt
//! refused  challenge = mine AND delivery = sending                                     delivery = refused
//! again    challenge = mine AND delivery = sending                                     delivery = pending
//! ```
//!
//! A queue hands a message out at least once, and providers of messages know no idempotency key, so who may ask one is settled
//! here: of any number of callers one claims a code, and only its own word that nothing was sent makes the code pending again. What
//! became of a request without an answer nobody knows; it stays `sending`, and is not sent a second time.
//!
//! Invariants: a provider is asked only by whoever has claimed the code and knows it; a code that was used, has expired or was followed by
//! another one is not sent.

use crate::challenge::ChallengeId;
use crate::write::{Change, Check, Expect, Write};
use std::fmt;
use tollgate_core::{Error, Timestamp};

/// How far the message with a code has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Delivery {
    /// Nobody has asked a provider.
    Pending,
    /// Somebody is asking one, or has and does not know the answer.
    Sending,
    /// The provider has taken it.
    Sent,
    /// The provider will not take it.
    Refused,
}

impl Delivery {
    const ALL: [Self; 4] = [Self::Pending, Self::Sending, Self::Sent, Self::Refused];

    /// As it is stored.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Sending => "sending",
            Self::Sent => "sent",
            Self::Refused => "refused",
        }
    }

    /// As it was stored.
    ///
    /// # Errors
    ///
    /// [`Error::Stored`] for any other word.
    pub fn of(text: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|delivery| delivery.as_str() == text);
        found.ok_or_else(|| Error::Stored { attribute: "delivery".to_owned(), found: text.to_owned() })
    }
}

impl fmt::Display for Delivery {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// What a provider calls a message that it has taken, where it wants to be told that it was read.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Receipt(String);

impl Receipt {
    /// A receipt.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// The provider's name for the message.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Receipt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// The write that claims the message of `challenge`.
#[must_use]
pub fn claim(challenge: ChallengeId, now: Timestamp) -> Write {
    let active = vec![Check::ChallengeIs(challenge), Check::ValidAt(now), Check::Unused];
    let checks = [active, vec![Check::DeliveryIs(Delivery::Pending)]].concat();
    Write { expect: Expect::Present(checks), change: Change::Deliver(Delivery::Sending, None) }
}

/// The write with which whoever has claimed it says what became of it: [`Delivery::Pending`] only where it is known that nothing was
/// sent.
#[must_use]
pub fn mark(challenge: ChallengeId, delivery: Delivery, receipt: Option<Receipt>) -> Write {
    let checks = vec![Check::ChallengeIs(challenge), Check::DeliveryIs(Delivery::Sending)];
    Write { expect: Expect::Present(checks), change: Change::Deliver(delivery, receipt) }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;
    use crate::item::Item;
    use tollgate_core::Penalty;

    const NOW: Timestamp = Timestamp::from_secs(1000);
    const MINE: ChallengeId = ChallengeId::new([1; 16]);

    fn item() -> Item {
        let later = Timestamp::from_secs(2000);
        Item {
            challenge: MINE,
            digest: "k1.lPOeIGhhllVXRgazVf_rQeKltStr6r6aaj4nHcMz9iM".parse().unwrap(),
            valid_until: later,
            delivery: Delivery::Pending,
            receipt: None,
            attempts: 0,
            used: None,
            guesses: 0,
            window: later,
            cooldown: Penalty { until: later, length_ms: 1000, level: 1 },
            expires_at: 3000,
        }
    }

    /// Where a copy of the queued message is in some process.
    #[derive(Debug, Clone, Copy, PartialEq)]
    enum Copy {
        Queued,
        Claimed,
        Told(Delivery),
        Done,
    }

    /// Everything that two copies of a message can meet: who goes next, which answer of the table is lost, what the provider does and says.
    fn explore(item: &Item, copies: [Copy; 2], sent: u32, redelivered: u32) {
        assert!(sent <= 1, "sent {sent} times: {item:?} {copies:?}");
        for at in 0..copies.len() {
            let next = |item: &Item, copy, sent, redelivered| {
                let mut copies = copies;
                copies[at] = copy;
                explore(item, copies, sent, redelivered);
            };
            match copies[at] {
                Copy::Queued => match claim(MINE, NOW).apply(Some(item)) {
                    // The answer may be lost; then the queue hands the message out again.
                    Some(claimed) => {
                        next(&claimed, Copy::Claimed, sent, redelivered);
                        if redelivered > 0 {
                            next(&claimed, Copy::Queued, sent, redelivered - 1);
                        }
                    }
                    None => next(item, Copy::Done, sent, redelivered),
                },
                Copy::Claimed => {
                    next(item, Copy::Told(Delivery::Sent), sent + 1, redelivered);
                    next(item, Copy::Told(Delivery::Refused), sent, redelivered);
                    next(item, Copy::Told(Delivery::Pending), sent, redelivered);
                    // It has no answer, whether it was sent or not; or the process ends here.
                    next(item, Copy::Done, sent + 1, redelivered);
                    next(item, Copy::Done, sent, redelivered);
                }
                Copy::Told(delivery) => {
                    let marked = mark(MINE, delivery, None).apply(Some(item));
                    let again =
                        if delivery == Delivery::Pending && redelivered > 0 { Copy::Queued } else { Copy::Done };
                    let left = redelivered - u32::from(again == Copy::Queued);
                    next(marked.as_ref().unwrap_or(item), again, sent, left);
                    // The write is lost.
                    next(item, again, sent, left);
                }
                Copy::Done => {}
            }
        }
    }

    #[test]
    fn a_message_is_sent_once_whatever_is_lost_and_however_often_it_is_handed_out() {
        explore(&item(), [Copy::Queued; 2], 0, 2);
    }

    #[test]
    fn what_is_good_no_longer_is_not_claimed() {
        assert!(claim(MINE, NOW).apply(Some(&item())).is_some());
        let others = [
            Item { challenge: ChallengeId::new([2; 16]), ..item() },
            Item { valid_until: NOW, ..item() },
            Item { used: Some(NOW), ..item() },
            Item { delivery: Delivery::Sending, ..item() },
            Item { delivery: Delivery::Sent, ..item() },
            Item { delivery: Delivery::Refused, ..item() },
        ];
        for item in others {
            assert_eq!(claim(MINE, NOW).apply(Some(&item)), None, "{item:?}");
        }
        assert_eq!(claim(MINE, NOW).apply(None), None);
    }

    #[test]
    fn a_new_code_is_not_marked_by_what_became_of_the_last_one() {
        let next = Item { challenge: ChallengeId::new([2; 16]), delivery: Delivery::Sending, ..item() };
        assert_eq!(mark(MINE, Delivery::Sent, Some(Receipt::new("x"))).apply(Some(&next)), None);
    }

    #[test]
    fn what_is_written_is_read_back_and_nothing_else() {
        for delivery in Delivery::ALL {
            assert_eq!(Delivery::of(delivery.as_str()), Ok(delivery));
        }
        assert!(Delivery::of("lost").is_err());
    }
}
