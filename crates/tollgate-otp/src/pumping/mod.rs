//! Defence against SMS pumping: whoever shares in what a message costs has messages sent to numbers of his own, and never types a code.
//!
//! # Layout
//!
//! | module | what it is |
//! | --- | --- |
//! | [`cohort`] | what became of the messages of the same five minutes |
//! | [`evidence`] | how strongly counts speak against what is normal |
//! | [`ladder`] | what a prefix or a country is suspected of, what follows, and for how long |
//! | [`judge`](mod@judge) | from the one to the other |
//! | [`suspicion`] | what it asks of one who wants a message now |
//! | [`credit`] | that codes were verified, summed |
//! | `storage` | both as items of the table |
//! | [`guard`] | what whoever sends reads and counts |
//! | [`watch`](mod@watch) | what judges, every minute |
//!
//! Everything but `storage`, `guard` and `watch` is pure.
//!
//! What messages may cost is no part of this: the price of each is charged on limits of the policy, by tenant and country, together with
//! its other limits.

pub mod cohort;
pub mod credit;
pub mod evidence;
pub mod guard;
pub mod judge;
pub mod ladder;
#[doc(hidden)]
pub mod storage;
pub mod suspicion;
pub mod watch;

pub use cohort::{Change, CohortKey, Cohorts, Marks, Tally, Window};
pub use credit::{Credit, Credits};
pub use guard::{Counted, Guard};
pub use judge::{Step, Why, judge};
pub use ladder::{Ladder, Rung, Scope, Standing};
pub use suspicion::{Shown, Suspicion};
pub use watch::{Watched, watch};
