//! Which shard of a divided limit a call is counted on.
//!
//! Invariants: a call is charged on one shard at most, since a second one is asked only after the first has denied; no more than two are
//! asked, within the one deadline; a denial without a request follows only from all shards, or from a ban, which is on all of them
//! alike; a cost never fits only if the largest shard says so.

use super::coalesce::Failure;
use super::{Driven, Limiter};
use crate::meter::Event;
use crate::partition_key;
use crate::patience::Patience;
use crate::store::Store;
use std::borrow::Cow;
use std::num::NonZeroU16;
use std::sync::Arc;
use std::time::Duration;
use tollgate_core::take::Moment;
use tollgate_core::{Charges, Decision, Held, Item, LimitDecision, Outcome, Shard, Take};

impl Driven {
    /// The charges of the item that was asked: those on a shard, if it was one.
    pub(super) fn asked<'c>(&self, charges: &'c Charges) -> Cow<'c, Charges> {
        self.shard.map_or(Cow::Borrowed(charges), |index| Cow::Owned(charges.on_shard(index)))
    }

    /// Whether any limit said this. Limits that only report deny like others here.
    fn says(&self, outcome: Outcome) -> bool {
        self.decision.limits.iter().any(|limit| limit.outcome == outcome)
    }

    /// The better answer of two shards: an admission, else the denial that ends first.
    fn or(self, other: Self) -> Self {
        if wait(&other.decision.limits) < wait(&self.decision.limits) { other } else { self }
    }
}

fn is_banned(limits: &[LimitDecision]) -> bool {
    limits.iter().any(|limit| matches!(limit.held, Some(Held::Ban { .. })))
}

/// How long to wait for all of the limits, without end if the cost never fits.
fn wait(limits: &[LimitDecision]) -> Duration {
    let wait = |limit: &LimitDecision| match limit.outcome {
        Outcome::NeverFits => Duration::MAX,
        _ => limit.retry_after.unwrap_or_default(),
    };
    limits.iter().map(wait).max().unwrap_or_default()
}

/// What to do about a divided limit.
enum Choice {
    /// To ask this shard.
    Ask(u16),
    /// Nothing: all that are left are known to deny, one of them for no longer than this.
    Known(Driven),
    /// Nothing: all that are left are known to have no room, which denies nobody.
    Full,
}

impl<S: Store> Limiter<S> {
    /// Decides on one item, or on a shard of it.
    pub(super) async fn drive(&self, charges: &Charges) -> Result<Driven, Failure> {
        let patience = Arc::new(self.patience());
        match charges.shards() {
            None => self.drive_item(charges, &patience).await,
            // In a box, so that the futures of limits that are not divided are no larger for it.
            Some(shards) => Box::pin(self.drive_shards(charges, shards, &patience)).await,
        }
    }

    /// Decides on a shard at random of those that this process does not know to have no room, and if that has none, on one more.
    async fn drive_shards(
        &self,
        charges: &Charges,
        shards: NonZeroU16,
        patience: &Arc<Patience>,
    ) -> Result<Driven, Failure> {
        let first = match self.choose(charges, shards, None) {
            Choice::Ask(index) => index,
            // What is known to deny has been told before; here others have just been told so.
            Choice::Known(_) | Choice::Full => fastrand::u16(0..shards.get()),
        };
        let answer = self.drive_shard(charges, first, patience).await?;
        let second = match first {
            _ if is_banned(&answer.decision.limits) => {
                self.remember_ban(charges, first);
                return Ok(answer);
            }
            // None is larger than the first, so what does not fit that never fits.
            1.. if answer.says(Outcome::NeverFits) => Choice::Ask(0),
            _ if answer.says(Outcome::Denied) => self.choose(charges, shards, Some(first)),
            _ => return Ok(answer),
        };
        match second {
            Choice::Ask(index) => match self.drive_shard(charges, index, patience).await {
                Ok(other) => Ok(answer.or(other)),
                Err(Failure { error, .. }) => {
                    self.parts.store.meter().record(Event::StoreFailure(&error));
                    tracing::warn!(%error, "another shard gave no answer; the denial of the first stands");
                    Ok(answer)
                }
            },
            Choice::Known(other) => Ok(answer.or(other)),
            Choice::Full => Ok(answer),
        }
    }

    /// Remembers of all shards what one has told: one lookup finds it, and not each shard has to be asked.
    fn remember_ban(&self, charges: &Charges, index: u16) {
        if let Some(seen) = self.parts.memory.last(&partition_key::of(charges.on_shard(index).item())) {
            let banned = Item { hold: seen.item.hold.clone(), ..Item::default() };
            self.parts.memory.remember(&partition_key::of(charges.item()), Some(seen.with(Arc::new(banned))));
        }
    }

    async fn drive_shard(&self, charges: &Charges, index: u16, patience: &Arc<Patience>) -> Result<Driven, Failure> {
        let driven = self.drive_item(&charges.on_shard(index), patience).await?;
        Ok(Driven { shard: Some(index), ..driven })
    }

    /// A shard at random that this process does not know to have no room, but for the one that was asked.
    fn choose(&self, charges: &Charges, shards: NonZeroU16, but_for: Option<u16>) -> Choice {
        let mut order: Vec<_> = Shard::all(shards).map(Shard::index).filter(|index| Some(*index) != but_for).collect();
        fastrand::shuffle(&mut order);
        let any = order.first().copied();
        let (mut soonest, moment): (Option<Driven>, _) = (None, self.parts.store.moment());
        for index in order {
            let known = self.recall(&charges.on_shard(index), moment);
            let Some((limits, denies)) = known.filter(|(limits, _)| !wait(limits).is_zero()) else {
                return Choice::Ask(index);
            };
            if denies {
                let known = Driven::uncharged(Decision::new(limits));
                soonest = Some(match soonest {
                    Some(soonest) => soonest.or(known),
                    None => known,
                });
            }
        }
        match soonest {
            Some(known) => Choice::Known(known),
            // Of a limit that does not deny from memory that says where to ask rather, and no more.
            None if charges.charges().iter().any(|charge| !charge.deny_cache) => any.map_or(Choice::Full, Choice::Ask),
            None => Choice::Full,
        }
    }

    /// What each limit of an item says by what this process saw of it a moment ago, and whether one denies; of a divided limit all
    /// shards must deny, and the one that does so for the shortest time speaks for them, unless a ban does.
    pub(super) fn recall(&self, charges: &Charges, moment: Moment) -> Option<(Vec<LimitDecision>, bool)> {
        let seen = self.parts.memory.fresh(&partition_key::of(charges.item()));
        let known = seen.and_then(|seen| Take::recall(charges, &seen, moment));
        let Some(shards) = charges.shards().filter(|_| charges.shard().is_none()) else { return known };
        if let Some(banned) = known.filter(|(limits, _)| is_banned(limits)) {
            // Told with what is left on a shard that has said so.
            let on = |shard: Shard| self.recall(&charges.on_shard(shard.index()), moment);
            let told = Shard::all(shards).find_map(|shard| on(shard).filter(|(limits, _)| is_banned(limits)));
            return Some(told.unwrap_or(banned));
        }
        let mut soonest: Option<Vec<LimitDecision>> = None;
        // While the key has room the first that is looked at mostly ends this.
        let from = fastrand::u16(0..shards.get());
        for i in 0..shards.get() {
            let on = charges.on_shard((from + i) % shards);
            let (limits, _) = self.recall(&on, moment).filter(|(_, denies)| *denies)?;
            if soonest.as_ref().is_none_or(|soonest| wait(&limits) < wait(soonest)) {
                soonest = Some(limits);
            }
        }
        soonest.map(|limits| (limits, true))
    }
}
