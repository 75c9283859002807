//! The audit log of second factors: who has changed which factor, tenant rule or session, and when. One chain of items an account, and
//! one a tenant for its rules.
//!
//! # Layout
//!
//! | module | what it is |
//! | --- | --- |
//! | [`entry`] | what is said in the log |
//! | [`chain`] | whether what is there is all that was said, and as it was said |
//! | [`storage`] | entries as items of the table, and what each is known by |
//! | [`log`] | [`AuditLog`]: appends and reads |
//!
//! `entry` and `chain` are pure: no I/O and no clock.
//!
//! # What is promised
//!
//! - A change of an account's factors or a tenant's rules is in the log if and only if it took effect: both are one transaction. What
//!   has no write of its own (a lock, a copied passkey, a revocation) is said after it has been seen or done.
//! - Entries of a chain are numbered from 1 without a gap, whoever writes at once. One is written if its number is not there, and
//!   nothing of it is written again.
//! - Each entry has the SHA-256 of the one before it, and the head that of the last; so an entry that was edited or taken away
//!   shows, unless whoever did it has written all later ones and the head anew: no key goes into the hashes.
//! - The table deletes an entry once its retention is over, never before one that is older.

pub mod chain;
pub mod entry;
pub mod log;
pub mod storage;

pub use chain::{Break, Link};
pub use entry::{Actor, Author, Entry, Event, Recorded};
pub use log::{AuditLog, Logged, Read};
