//! What a decision is: limits, algorithms, decisions. Pure: no I/O, no async, no clock of its own.
//!
//! # Layout
//!
//! | module | what it is |
//! | --- | --- |
//! | [`token_bucket`] | the token bucket's arithmetic: one integer, exact ticks, no rounding |
//! | [`pacer`] | the token bucket as a leaky bucket: callers are told when to go |
//! | [`window`] | counting by windows: fixed ones, calendar quotas, the sliding counter; one integer, too |
//! | [`log`] | the sliding-window log: every charge with its instant |
//! | [`local`] | what a process admits by itself while the store gives no answer |
//! | [`entry`] | single charges that are remembered one by one |
//! | [`calendar`] | when the days and months of a time zone begin |
//! | [`figures`] | a limit's figures, whichever algorithm it counts by, and what the protocol asks of it |
//! | [`terms`] | which figures a bucket is kept under, and how its debt moves to other figures |
//! | [`key`] | who is charged: named dimensions, composed injectively |
//! | [`charge`] | what a call wants: costs on the limits of one key |
//! | [`item`] | what is remembered of a key |
//! | [`hold`] | what an operator has set for a key: a ban, other figures |
//! | [`penalty`] | locks for whoever a limit denies again and again |
//! | [`write`](mod@write) | the conditional writes, as data: what they require and what they leave behind |
//! | [`shard`] | a limit divided among several items, for keys that are called more often than one takes writes |
//! | [`take`] | the protocol: which write comes next, and when the answer is known |
//! | [`settle`] | settling a charge when the true cost is known: giving back, charging more, and by which write |
//! | [`decision`] | the answer; a denial is a value, never an error |
//! | [`time`] | timestamps, the [`Clock`] that callers inject, a manual one for tests |
//!
//! A store executes [`Write`]s and reports what it found; [`Take`] does all the thinking. The DynamoDB store, the
//! in-memory store and the protocol model run the same [`Take`] and the same [`Write`]s.

pub mod calendar;
pub mod charge;
pub mod decision;
pub mod entry;
mod error;
pub mod figures;
mod group;
pub mod hold;
pub mod item;
pub mod key;
pub mod lease;
pub mod local;
pub mod log;
pub mod pacer;
pub mod penalty;
pub mod settle;
pub mod shard;
pub mod take;
pub mod terms;
pub mod time;
pub mod token_bucket;
mod wide;
pub mod window;
pub mod write;

pub use calendar::{Period, Zone};
pub use charge::{Charge, Charges, LimitName, Mode, StoreFailure};
pub use decision::{Decision, Held, LimitDecision, Outcome, Source, Unasked};
pub use entry::{Entries, Entry};
pub use error::{Error, Result};
pub use figures::{Figures, State};
pub use hold::{Hold, Override};
pub use item::{Bucket, BusyPeriod, Item};
pub use key::{ItemKey, Key};
pub use local::Local;
pub use log::Log;
pub use pacer::Demand;
pub use penalty::{Penalty, PenaltyRule, PenaltyWrite};
pub use settle::{Actual, Charged, Settlement};
pub use shard::Shard;
pub use take::{Step, Take};
pub use terms::{OnChange, Terms};
pub use time::{Clock, ManualClock, Timestamp};
pub use token_bucket::{Ticks, TokenBucket, Verdict};
pub use window::{Span, Window};
pub use write::{Check, Entering, Expect, LimitWrite, Write};
