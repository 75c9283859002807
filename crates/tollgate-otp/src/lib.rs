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
//! | `storage` | those writes as DynamoDB expressions, the item as attributes |
//! | [`otp`] | [`Otp`]: drives both against the table |
//! | [`destination`] | the number or address that a code goes to, or why none is sent |
//! | [`directory`] | who has verified which number and address |
//! | [`courier`] | the message with a code, and who takes it along |
//! | [`sealed`] | what is in a queue of it: nothing that can be read without the secrets |
//! | [`delivery`] | how far the message has come, and the writes that say so |
//! | [`carrier`] | who delivers it |
//! | [`captcha`] | who judges whether a person has solved a CAPTCHA |
//! | [`dispatch`] | [`Dispatcher`]: from the queue to the carrier, once |
//! | [`pumping`] | defence against those who have messages sent and never type a code |
//!
//! Everything but `storage`, `otp`, `dispatch` and parts of `pumping` is pure: no I/O and no clock. The protocol model runs the very same
//! [`issue`], [`verify`] and
//! [`Write`]s.
//!
//! Sending is the caller's: [`Otp::issue`] hands out the code that is to be sent, and only once the table has it.

pub mod captcha;
pub mod carrier;
pub mod challenge;
pub mod code;
pub mod courier;
pub mod delivery;
pub mod destination;
pub mod directory;
pub mod dispatch;
mod error;
pub mod issue;
pub mod item;
pub mod otp;
pub mod pumping;
pub mod sealed;
#[doc(hidden)]
pub mod storage;
pub mod verify;
pub mod write;

pub use captcha::{Captcha, CaptchaError, Judged, Proof, WafCaptcha};
pub use carrier::{Carrier, Undelivered};
pub use challenge::{ChallengeId, Digest, Recipient};
pub use code::Code;
pub use courier::{Courier, CourierError, Errand, Message, Notice};
pub use delivery::{Delivery, Receipt};
pub use destination::{Destination, Refusal};
pub use directory::{Directory, DirectoryError, Profile};
pub use dispatch::{Dispatched, Dispatcher};
pub use error::{Error, Result};
pub use issue::Denied;
pub use item::Item;
pub use otp::{Checked, Issuance, Issued, Otp};
pub use verify::Verification;
pub use write::Write;

/// Random bytes of the system's generator.
fn random(bytes: &mut [u8]) -> Result<()> {
    getrandom::getrandom(bytes).map_err(|error| Error::NoRandomness(error.to_string()))
}
