//! Second factors: authenticator apps (TOTP, RFC 6238), passkeys (WebAuthn) and recovery codes, one item an account and one a passkey.
//!
//! # Layout
//!
//! | module | what it is |
//! | --- | --- |
//! | [`totp`] | the secret of an app, its codes, and how an app is set up |
//! | [`passkey`](mod@passkey) | keys of authenticators, and how they prove themselves |
//! | [`recovery`] | codes for whoever has lost his app |
//! | [`tries`] | wrong codes in a row: what they cost in waiting, and where they end |
//! | [`account`] | what is remembered of an account |
//! | [`write`](mod@write) | the conditional writes on it, as data |
//! | [`attempt`] | the protocol of a code: count, compare, mark |
//! | [`changes`] | what was changed of late, how it is cancelled, and what factors prove meanwhile |
//! | [`cancel`] | changes against the table: told before they are made, and cancelled |
//! | [`request`](mod@request) | recovery of an account whose owner has lost every factor, by two admins |
//! | `storage` | those writes as DynamoDB expressions, the item as attributes |
//! | [`vault`] | who seals the secrets that have to be read again |
//! | [`driver`] | [`Factors`]: drives them against the table |
//!
//! Everything but `vault` and what is called `storage` or `driver` is pure: no I/O and no clock.
//!
//! # What is promised
//!
//! - A code of an app is accepted for one step at most, and never one of the last accepted step or before, whatever the order, the delays
//!   and the clocks: accepting is one conditional write on the step. Confirming an app takes its step, too.
//! - A recovery code is used by one conditional write that takes its hash away. Of any number of callers one is told so.
//! - A passkey's challenge is used by one conditional write that takes it away, before anything that answers it is looked at.
//! - What is compared was counted before: of any number of wrong codes at once no more are compared than [`Tries`] admits.
//! - A secret that cannot be opened is an error, never a wrong code, and costs no try.
//! - What is under enrolment ends with the first factor that is added or removed, with a revocation, and after ten minutes; it is
//!   confirmed in the session that it began in.

pub mod account;
pub mod attempt;
pub mod cancel;
pub mod changes;
pub mod driver;
pub mod passkey;
pub mod recovery;
pub mod request;
#[doc(hidden)]
pub mod storage;
pub mod totp;
pub mod tries;
pub mod vault;
pub mod write;

pub use account::{Account, CodeKind, Kind, Pending, Recovery, Totp};
pub use attempt::{Attempt, Verification};
pub use cancel::{Announce, Announcement, Cancellable, Changing, Removal};
pub use changes::{Altered, CancelToken, ChangeId, Changed, Factor, MOST_CHANGES, Standing, Taken};
pub use driver::{Enrolment, Factors, Found, Generated};
pub use passkey::{Asked, Asserted, MOST_PASSKEYS, Passkey, PasskeyId, Registered, RelyingParty};
pub use recovery::{CodeHash, RecoveryCode};
pub use request::{Approval, Approver, Completion, NotRequested, RecoveryRequest, RequestSecret};
pub use tries::{Tries, Turn};
pub use vault::{LocalVault, Vault, VaultContext, VaultError};
pub use write::{Change, Check, Write};

use crate::error::{Error, Result};

/// Random bytes of the system's generator.
fn random(bytes: &mut [u8]) -> Result<()> {
    getrandom::getrandom(bytes).map_err(|error| Error::NoRandomness(error.to_string()))
}
