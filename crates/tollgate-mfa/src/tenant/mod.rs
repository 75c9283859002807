//! What a tenant asks of its people's second factors, and what a factor proves by that: one item a tenant.
//!
//! # Layout
//!
//! | module | what it is |
//! | --- | --- |
//! | [`judge`](mod@judge) | what a factor of an account proves, by rules; what the account lacks |
//! | [`document`] | a tenant's rules, those that are coming, and how one takes the place of another |
//! | `storage` | them as an item of the table, and the one write of it |
//! | [`driver`] | reads and writes them |
//!
//! `judge` and `document` are pure: no I/O and no clock.
//!
//! # What is promised
//!
//! - A tenant's rules are never looser than the file's, whatever its item says; they are read anew for every answer that depends on them.
//! - What people could not do without is neither asked of them nor taken away before it has been announced for the grace period, whatever
//!   order rules are put in; what only takes a fallback away (`sms`, `email`) and what loosens is in force at once.
//! - Of any number of admins who change the same version one does; the others are told so.
//! - A factor that is not allowed proves nothing. One that is weaker than what is required, or of an account that lacks something, proves
//!   enough to enrol and remove factors, and no more.

pub mod document;
pub mod driver;
pub mod judge;
#[doc(hidden)]
pub mod storage;

pub use document::{Next, Refusal, Tenant, Wish};
pub use driver::{find, held, of_account, put, tenant_of};
pub use judge::{Held, Proves, Refused, judge, missing};
