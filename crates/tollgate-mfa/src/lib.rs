//! Step-up: who has proved of late who he is, by a verified token, a factor's record or a grant for one action.
//!
//! # Layout
//!
//! | module | what it is |
//! | --- | --- |
//! | [`auth_time`] | when somebody has proved who he is, as a token says it |
//! | [`authentication`] | what an authentication is, and whether it is what a route demands |
//! | [`record`] | what is remembered of a subject and a session, and the conditional writes on it, as data |
//! | [`grant`] | an authentication that is good for one action, once |
//! | [`distinct`](mod@distinct) | whether two factors are two |
//! | [`judge`] | whether a caller may go on |
//! | `storage` | those writes as DynamoDB expressions, items as attributes |
//! | [`sessions`] | [`Sessions`]: drives them against the table |
//! | [`audit`] | who has changed which factor, tenant rule or session, and when: a log that is only appended to |
//! | `factors` (feature `factors`) | second factors: authenticator apps, passkeys, recovery codes |
//! | `tenant` (feature `factors`) | what a tenant asks of factors, and what one proves by that |
//! | `token` (feature `jwt`) | whether a token is an issuer's, and what it says |
//!
//! Everything but `storage`, `sessions`, `audit` and `token` is pure: no I/O and no clock.
//!
//! # What counts
//!
//! A route's `step_up` ([`StepUp`](tollgate_policy::StepUp)) is met by any one of these, if it is fresh and of the right class:
//!
//! - **The token's `auth_time`**, with its `acr` and `amr`. When the token was made (`iat`) does not matter, since a refresh makes one
//!   without anybody proving anything; for the same reason the earliest `auth_time` that was seen of a sign-in is remembered, whether it
//!   was good enough or not, and a later one in the same sign-in counts as that.
//! - **A record** that a verified factor has written for this subject and session. Cognito lets nobody set `acr`, `amr` or `auth_time`
//!   of a token; so this is how a factor of one's own freshens a session.
//! - **A grant**, and nothing else, where the route says `bind`.
//!
//! All of them end with [`Sessions::revoke`]: records and grants by the subject's epoch, which they must have been begun in; tokens,
//! which know no epoch, by the instant. A token counts again if its `auth_time` is later by more than [`LEEWAY`].

pub mod audit;
pub mod auth_time;
pub mod authentication;
pub mod distinct;
mod error;
#[cfg(feature = "factors")]
pub mod factors;
pub mod grant;
pub mod judge;
pub mod record;
pub mod sessions;
#[doc(hidden)]
pub mod storage;
#[cfg(feature = "factors")]
pub mod tenant;
#[cfg(feature = "jwt")]
pub mod token;

pub use authentication::{Authentication, LEEWAY, Shortcoming};
pub use distinct::{distinct, first_factor};
pub use error::{Error, Result};
pub use grant::{Action, Grant, GrantId};
pub use judge::Evidence;
pub use record::{Revoke, Session, SessionWrite, Spared, Subject, Verified, session_digest};
pub use sessions::{Begun, Caller, Sessions, Usable};
