//! Limiters that are wrong on purpose, each by one mistake that others have made. The same schedules have to find each of them out.

use std::sync::Arc;
use tollgate::{Counters, DynamoStore, ItemKey, Meter, Store};
use tollgate_core::settle::Step;
use tollgate_core::take::Moment;
use tollgate_core::{Charged, Item, LimitName, Settlement, Write};
use tollgate_dynamodb::{Error, Event, Fate, Result, Transacted, Written};

/// What it does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mistake {
    /// None: it is the limiter.
    None,
    /// Sends a write again whose reply was lost.
    SendsAgain,
    /// Takes a write whose reply was lost for applied.
    TakesForApplied,
    /// Takes a write whose reply was lost for applied and gives it back.
    GivesBack,
    /// Does not count what the table throttles.
    LeavesUncounted,
}

impl Mistake {
    pub const ALL: [Self; 5] =
        [Self::None, Self::SendsAgain, Self::TakesForApplied, Self::GivesBack, Self::LeavesUncounted];

    /// What it must be found out by: what it does to the limits, and not only that it sends what it should not.
    pub fn shows(self) -> &'static str {
        match self {
            Self::None => "",
            Self::SendsAgain => "charged 2 times",
            Self::TakesForApplied | Self::GivesBack => "within a time that has room for",
            Self::LeavesUncounted => "throttled of",
        }
    }
}

/// A store with a mistake.
#[derive(Debug)]
pub struct Naive {
    inner: DynamoStore,
    mistake: Mistake,
    meter: Uncounted,
}

#[derive(Debug)]
struct Uncounted(Arc<Counters>);

impl Meter for Uncounted {
    fn record(&self, event: Event<'_>) {
        if !matches!(event, Event::Throttled) {
            self.0.record(event);
        }
    }
}

impl Naive {
    pub fn new(inner: DynamoStore, counters: Arc<Counters>, mistake: Mistake) -> Self {
        Self { inner, mistake, meter: Uncounted(counters) }
    }

    /// What it makes of a write whose fate nobody knows.
    async fn guess(&self, key: &ItemKey, write: &Write, lost: Error) -> Result<Written> {
        match self.mistake {
            Mistake::SendsAgain => Err(Error::Throttled(lost.to_string())),
            Mistake::TakesForApplied => {
                let names: Vec<_> = write.names().collect();
                Ok(Written::Applied(self.inner.read(key, &names).await?.unwrap_or_default()))
            }
            Mistake::GivesBack => {
                self.give_back(key, write).await?;
                Err(lost)
            }
            Mistake::None | Mistake::LeavesUncounted => Err(lost),
        }
    }

    async fn give_back(&self, key: &ItemKey, write: &Write) -> Result<()> {
        let names: Vec<_> = write.names().collect();
        let Some(found) = self.inner.read(key, &names).await? else { return Ok(()) };
        let now = self.inner.moment().now;
        let charged = |name: &&LimitName| Some(Charged::new((*name).clone(), 1, found.buckets.get(*name)?, now));
        let (_, step) = Settlement::giving_back(names.iter().filter_map(charged).collect(), &found, now);
        if let Step::Write(write) = step {
            self.inner.write(key, &write).await?;
        }
        Ok(())
    }
}

impl Store for Naive {
    fn moment(&self) -> Moment {
        self.inner.moment()
    }

    fn meter(&self) -> &dyn Meter {
        if self.mistake == Mistake::LeavesUncounted { &self.meter } else { self.inner.meter() }
    }

    async fn read(&self, item: &ItemKey, limits: &[&LimitName]) -> Result<Option<Item>> {
        self.inner.read(item, limits).await
    }

    async fn write(&self, item: &ItemKey, write: &Write) -> Result<Written> {
        match self.inner.write(item, write).await {
            Err(lost) if lost.fate() == Fate::Unknown => self.guess(item, write, lost).await,
            answer => answer,
        }
    }

    async fn transact(&self, writes: &[(&ItemKey, &Write)]) -> Result<Transacted> {
        self.inner.transact(writes).await
    }
}
