//! How a decision is remembered: each algorithm as conditional writes on a DynamoDB table.
//!
//! # Layout
//!
//! | module | what it is |
//! | --- | --- |
//! | [`limiter`] | [`Limiter`]: drives the core's protocol against a [`Store`] within a deadline |
//! | `memory` | what this process last saw of a key |
//! | `locals` | what this process decides by itself where the store gives no answer |
//! | [`breaker`] | whether decisions go to the table at all |
//! | `patience` | how long a decision waits, and what the end of its time means |
//! | `setting` | a time that is set anew while others go by it |
//! | [`since`] | how long something is ago, freezes included |
//! | `thaw` | what became of connections while the process was frozen |
//! | [`store`] | the [`Store`] trait, and [`DynamoStore`], one table of the real thing |
//! | [`items`] | [`Items`]: conditional writes of others than the limiter, such as one-time codes |
//! | [`kept_out`] | addresses that are to be kept out in front |
//! | `expression` (of our own crates) | a core `Write` as `UpdateExpression` and `ConditionExpression` |
//! | `attributes` (of our own crates) | the item as DynamoDB attributes, both ways; what it costs to write |
//! | [`partition_key`] | an item's key as the table's `pk` |
//! | [`clock`] | the system clock, and its offset from the table's, told from `Date` headers |
//! | [`admin`] | what an operator does to a key: look, reset, ban, override, forget |
//! | [`table`] | creating the table, and checking one that exists |
//! | [`connect`](mod@connect) | the SDK client: one TLS stack, no retries, no hidden waits |
//! | [`meter`] | what is counted; exporters come in from outside |
//!
//! Whatever has types of the SDK in its signature is hidden from these pages and not covered by the version: our own crates share it.
//!
//! # One table
//!
//! `pk` (string) is the partition key; there is no sort key. Per limit an item keeps `<limit>.tat`, `.f`, `.b` and
//! `.g`, and `.p` once it has locked the key; per item `h` (horizon), `expires_at` (TTL, epoch seconds) and, when an operator has set something, `hold`.

pub mod admin;
#[doc(hidden)]
pub mod attributes;
pub mod breaker;
#[doc(hidden)]
pub mod cause;
pub mod clock;
pub mod connect;
mod error;
#[doc(hidden)]
pub mod expression;
pub mod items;
pub mod kept_out;
pub mod limiter;
mod locals;
mod memory;
pub mod meter;
pub mod partition_key;
mod patience;
mod setting;
pub mod since;
pub mod store;
pub mod table;
mod thaw;
mod wire;

pub use breaker::BreakerState;
pub use clock::SystemClock;
pub use connect::{Connection, connect};
pub use error::{Error, Fate, Result};
pub use items::Items;
pub use limiter::{Limiter, Settled, Taken};
pub use meter::{Counters, Event, Meter};
pub use since::Since;
pub use store::{DynamoStore, Store, Transacted, Written};
#[doc(hidden)]
pub use store::{Together, Updated};
