//! Giving back what a part of a refused call was charged. Invariant: a refund whose fate is unknown is not sent again; what
//! is not given back comes back as the bucket refills.

use super::{Driven, Limiter, Met, Taken};
use crate::error::{Fate, Result};
use crate::meter::Event;
use crate::partition_key;
use crate::patience::{Backoff, Patience};
use crate::store::Store;
use futures_util::future::join_all;
use std::sync::Arc;
use tollgate_core::refund::{Refund, Step};
use tollgate_core::{Charged, Charges, Decision, Item, Take};

impl<S: Store> Limiter<S> {
    /// Gives back what a call that does not take place was charged on `charges`, as far as that can be: the part of its slots
    /// in the future, and of a pacer's only what nobody waits behind. What the store does not answer is counted as lost.
    pub async fn cancel(&self, charges: &[Charges], taken: Taken) {
        let parts = charges.iter().zip(taken.0);
        let give_back = async |(charges, part): (&Charges, Option<Driven>)| {
            if let Some(mut part) = part {
                self.give_back(charges, &mut part).await;
            }
        };
        join_all(parts.map(give_back)).await;
    }

    /// Gives back what a part of a refused call was charged, and tells its limits as they are then.
    pub(super) async fn give_back(&self, charges: &Charges, part: &mut Driven) {
        let (Some(left), false) = (part.item.take(), part.charged.is_empty()) else { return };
        let charged = std::mem::take(&mut part.charged);
        match self.refund(charges, charged, left).await {
            Ok((item, gave)) => {
                if gave {
                    self.store.meter().record(Event::Refunded);
                }
                part.decision = Decision::new(Take::tell(charges, &item, self.store.moment()));
            }
            Err(error) => {
                self.store.meter().record(Event::RefundLost);
                tracing::warn!(%error, "a charge could not be given back");
            }
        }
    }

    /// The item after the refund, and whether there was anything left to give back.
    async fn refund(&self, charges: &Charges, charged: Vec<Charged>, left: Arc<Item>) -> Result<(Arc<Item>, bool)> {
        let pk = partition_key::of(charges.item());
        let patience = Patience::new(self.deadline);
        let mut backoff = Backoff::new(Self::FIRST_PAUSE);
        let (refund, mut step) = Refund::start(charged, &left, self.store.moment().now);
        let mut item = left;
        for _ in 0..Self::MOST_WRITES {
            let write = match step {
                Step::Done => return Ok((item, false)),
                Step::Write(write) => write,
            };
            match self.write(charges, &pk, &write, &patience).await? {
                Met::Applied(left) => return Ok((left, true)),
                Met::Refused(found) => {
                    patience.make_way(&mut backoff).await?;
                    step = refund.refused(found.as_deref(), self.store.moment().now);
                    item = found.unwrap_or_default();
                }
            }
        }
        Err(patience.contended(Fate::NotApplied))
    }
}
