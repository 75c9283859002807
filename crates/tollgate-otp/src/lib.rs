//! One-time passwords that cannot be guessed, raced or used twice, on the limiter's table.
//!
//! # Layout
//!
//! | module | what it is |
//! | --- | --- |
//! | [`code`] | the digits: drawn, typed |
//! | [`challenge`] | which code is meant, whose it is, and what is stored of it |
//! | [`item`] | what is remembered of an account and a purpose |
//! | [`write`](mod@write) | the conditional writes, as data: what they require and what they leave behind |
//! | [`issue`] | the protocol of sending: which write comes next, or why no code is sent |
//! | [`verify`] | the protocol of verifying: count, compare, use |
//! | [`storage`] | those writes as DynamoDB expressions, the item as attributes |
//! | [`otp`] | [`Otp`]: drives both against the table |
//! | [`destination`] | the number that a code goes to, or why none is sent |
//! | [`directory`] | who has verified which number |
//! | [`courier`] | who takes messages along |
//!
//! Everything but `storage` and `otp` is pure: no I/O and no clock. The protocol model runs the very same [`issue`], [`verify`] and
//! [`Write`]s.
//!
//! Sending is the caller's: [`Otp::issue`] hands out the code that is to be sent, and only once the table has it.

pub mod challenge;
pub mod code;
pub mod courier;
pub mod destination;
pub mod directory;
mod error;
pub mod issue;
pub mod item;
pub mod otp;
pub mod storage;
pub mod verify;
pub mod write;

pub use challenge::{ChallengeId, Digest, Recipient};
pub use code::Code;
pub use courier::{Courier, CourierError, Message};
pub use destination::{Destination, Refusal};
pub use directory::{Directory, DirectoryError, Profile};
pub use error::{Error, Result};
pub use issue::Denied;
pub use item::Item;
pub use otp::{Issuance, Issued, Otp};
pub use verify::Verification;
pub use write::Write;

/// Random bytes of the system's generator.
fn random(bytes: &mut [u8]) -> Result<()> {
    getrandom::getrandom(bytes).map_err(|error| Error::NoRandomness(error.to_string()))
}
