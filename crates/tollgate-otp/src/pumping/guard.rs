//! What whoever sends reads of the ladder, and what he counts.
//!
//! Invariants: nothing is sent while nobody knows what the ladder says; it is read once a second in a process, in one small item that
//! does not depend on who asks, so that it can be read beside the directory.

use super::cohort::{Change, CohortKey, Marks, Window};
use super::credit::{Credit, Credits};
use super::ladder::Ladder;
use super::storage;
use crate::destination::Destination;
use crate::error::{Error, Result};
use futures_util::future::join_all;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tollgate_core::Timestamp;
use tollgate_dynamodb::since::Since;
use tollgate_dynamodb::{Items, Updated};
use tollgate_policy::KeySecrets;

/// For how long a process goes by what it has read.
const FRESH: Duration = Duration::from_secs(1);

/// What numbers are marked under; nobody else signs under that name.
const MARKED: &[u8] = b"neighbour 1";

/// Whose messages are counted together.
#[derive(Clone, Copy)]
pub struct Counted<'a> {
    country: &'a str,
    block: &'a str,
    number: &'a str,
}

/// Without the number.
impl fmt::Debug for Counted<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Counted").field("country", &self.country).finish_non_exhaustive()
    }
}

impl<'a> Counted<'a> {
    /// As the number that a message goes to.
    #[must_use]
    pub fn as_destination(to: &'a Destination) -> Self {
        Self { country: to.country(), block: to.block(), number: to.spelling() }
    }

    /// As an account to which no message goes: what is written is as much, and nobody judges it. All of them have one mark, or there
    /// would soon be as many as are kept, and each further account would cost a second write.
    #[must_use]
    pub const fn as_nowhere() -> Self {
        Self { country: "nowhere", block: "nowhere", number: "nowhere" }
    }
}

/// Reads the ladder and counts messages. One a process.
#[derive(Debug, Default)]
pub struct Guard(Mutex<Option<(Since, Arc<Ladder>)>>);

impl Guard {
    /// The ladder, as it was a second ago at most. One read if it is older.
    ///
    /// # Errors
    ///
    /// See [`Error`]: then nothing is to be sent.
    pub async fn ladder(&self, items: &Items) -> Result<Arc<Ladder>> {
        let seen = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        if let Some((_, ladder)) = seen.filter(|(at, _)| at.is_within(FRESH)) {
            return Ok(ladder);
        }
        let found = items.begin().read(&storage::ladder_key()).await?;
        let stored = storage::to_ladder(found.as_ref()).map_err(tollgate_dynamodb::Error::from)?;
        Ok(self.learn(stored.ladder))
    }

    /// Goes by this ladder from now on, which was just read or written.
    pub fn learn(&self, ladder: Ladder) -> Arc<Ladder> {
        let ladder = Arc::new(ladder);
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some((Since::now(), Arc::clone(&ladder)));
        ladder
    }

    /// Counts a message that goes out, whose code was made at `at`. One write; two for the few blocks to which very many go.
    ///
    /// # Errors
    ///
    /// See [`Error`]: it may or may not have been counted.
    pub async fn sent(&self, items: &Items, secrets: &KeySecrets, to: Counted<'_>, at: Timestamp) -> Result<()> {
        let marks = marks(secrets, to.number)?;
        let (country, block, window) = (to.country, to.block, Window::of(at));
        if !count(items, country, block, window, Change::Sent(marks)).await? {
            count(items, country, block, window, Change::SentOnly).await?;
        }
        Ok(())
    }

    /// Counts a message that is refused now. One write.
    ///
    /// # Errors
    ///
    /// See [`Error`]: it may or may not have been counted.
    pub async fn refused(&self, items: &Items, to: Counted<'_>) -> Result<()> {
        let window = Window::of(items.now());
        Ok(count(items, to.country, to.block, window, Change::Refused).await.map(drop)?)
    }
}

/// Counts that codes were verified: one write for each that differs, however often it is given. What could not be counted, and why; it may
/// have been all the same, so whoever gives it again may count it twice.
pub async fn credit(items: &Items, credits: &Credits) -> BTreeMap<Credit, tollgate_dynamodb::Error> {
    let each = credits.iter().map(|(credit, n)| async move {
        let Credit { window, country, block } = credit;
        let counted = count(items, country, block, *window, Change::Verified(n)).await;
        counted.err().map(|error| (credit.clone(), error))
    });
    join_all(each).await.into_iter().flatten().collect()
}

async fn count(
    items: &Items,
    country: &str,
    block: &str,
    window: Window,
    change: Change,
) -> std::result::Result<bool, tollgate_dynamodb::Error> {
    let key = CohortKey::of(country, block, window);
    let rendered = storage::render(&key, block, change);
    let updated = items.begin().update(&storage::partition_key(&key), &rendered).await?;
    Ok(matches!(updated, Updated::Applied(_)))
}

/// The marks of a number in E.164.
///
/// # Errors
///
/// [`Error::Policy`] without secrets: plain marks would be the number, for whoever tries them all.
pub fn marks(secrets: &KeySecrets, number: &str) -> Result<Marks> {
    let mark = |number: &str| {
        let signed = secrets.sign(&[MARKED, number.as_bytes()]);
        let no_secrets = || tollgate_policy::Error::NoSecrets { what: "`otp`".to_owned() };
        let (_, [a, b, c, d, ..]) = signed.ok_or_else(no_secrets)?;
        Ok::<_, Error>(u32::from_le_bytes([a, b, c, d]))
    };
    let digits = number.trim_start_matches('+');
    let next = digits.parse::<u64>().map_or_else(|_| number.to_owned(), |n| format!("+{}", n.saturating_add(1)));
    Ok(Marks { number: mark(number)?, next: mark(&next)? })
}

#[cfg(test)]
#[allow(clippy::unwrap_used, clippy::panic)]
mod tests {
    use super::super::cohort::Tally;
    use super::*;

    #[test]
    fn however_many_accounts_have_no_number_each_is_counted_by_one_write() {
        let secrets: KeySecrets = "k1=AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8".parse().unwrap();
        let sent = Change::Sent(marks(&secrets, Counted::as_nowhere().number).unwrap());
        let mut tally = Tally::default();
        for n in 0..3 * Tally::MOST_MARKS {
            tally = sent.apply(Some(&tally)).unwrap_or_else(|| panic!("the write after {n} is refused"));
        }
    }

    #[test]
    fn the_mark_of_the_next_number_is_what_it_is_marked_by() {
        let secrets: KeySecrets = "k1=AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8".parse().unwrap();
        let of = |number| marks(&secrets, number).unwrap();
        assert_eq!(of("+40721234999").next, of("+40721235000").number);
        assert_ne!(of("+40721234999").next, of("+40721234998").number);
        assert!(marks(&KeySecrets::default(), "+40721234567").is_err());
    }
}
