//! tollgate as its README tells a Rust service to use it.
//!
//! Invariant: a decision that the table did not make is a failure, not an answer: it would be fast.

use crate::driver::Limit;
use crate::error::{Error, Result};
use crate::settings::{SETTINGS, Setting};
use std::sync::Arc;
use std::time::Duration;
use tollgate::tollgate_dynamodb::table;
use tollgate::{Connection, Counters, DynamoStore, Limiter, Policy, Source, SystemClock, Wanted, connect};

const TABLE: &str = "tollgate";

/// The peers have no deadline of their own, and a slow answer is to be seen as one.
const DEADLINE: Duration = Duration::from_secs(30);

/// A limiter with a connection of its own.
#[derive(Debug)]
pub(crate) struct Ours {
    policy: Policy,
    limiter: Limiter<DynamoStore>,
}

impl Ours {
    pub(crate) async fn open(endpoint: &str, setting: &str) -> Result<Self> {
        let named = |s: &&Setting| s.id == setting;
        let setting = SETTINGS.iter().find(named).ok_or_else(|| Error::bare(format!("no setting {setting:?}")))?;
        let connected = connect(&Connection::from_environment().endpoint_url(endpoint)).await?;
        if !table::exists(&connected, TABLE).await? {
            // Of several clients that come first, one creates it.
            let created = table::create(&connected, TABLE, table::CreateOptions::default()).await;
            if !table::exists(&connected, TABLE).await? {
                created?;
            }
        }
        let store = DynamoStore::new(&connected, TABLE, Arc::new(SystemClock), Arc::new(Counters::default()));
        store.warm_up().await?;
        let policy = Policy::parse(setting.policy).map_err(Error::bare)?.policy;
        Ok(Self { policy, limiter: (setting.build)(Limiter::new(store).with_deadline(DEADLINE)) })
    }

    pub(crate) async fn decide(&self, limit: Limit, key: &str) -> Result<bool> {
        let limit = match limit {
            Limit::Scarce => "scarce",
            Limit::Plenty => "plenty",
        };
        let charges = self.policy.charges(&[Wanted { limit, key: &[("user", key)], plan: None, cost: 1 }])?;
        let decision = self.limiter.take(&charges).await?;
        match decision.unasked.first() {
            Some(unasked) if !matches!(unasked.source, Source::Table | Source::Cache) => {
                Err(Error::bare(format!("not decided by the table: {:?}", unasked.source)))
            }
            _ => Ok(decision.is_allowed()),
        }
    }
}
