//! A directory in a file, for development: `{"alice": {"phone": "+40721234567", "email": "alice@x.org", "verified": true}}`, by
//! user, each of the two if there is one.
//!
//! Invariant: a number or address that is not said to be verified is none.

use serde::Deserialize;
use std::collections::BTreeMap;
use std::future::{Future, ready};
use tollgate::Key;
use tollgate_otp::{Directory, DirectoryError, Profile};

/// The profiles of development servers.
pub const DEVELOPMENT: &str = include_str!("../profiles.json");

/// Profiles by user, whatever the tenant.
#[derive(Debug, Clone, Default)]
pub struct Profiles(BTreeMap<String, Profile>);

/// A profile as it is written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Written {
    phone: Option<String>,
    email: Option<String>,
    verified: bool,
}

impl Profiles {
    /// The profiles of a file's text.
    ///
    /// # Errors
    ///
    /// It is no JSON of that shape; the message says where, and has no number.
    pub fn parse(text: &str) -> Result<Self, serde_json::Error> {
        let written: BTreeMap<String, Written> = serde_json::from_str(text)?;
        let profile = |Written { phone, email, verified }: Written| {
            let mut profile = Profile::default();
            profile.verified_phone = phone.filter(|_| verified);
            profile.verified_email = email.filter(|_| verified);
            profile
        };
        Ok(Self(written.into_iter().map(|(user, written)| (user, profile(written))).collect()))
    }
}

impl Directory for Profiles {
    fn profile(&self, account: &Key) -> impl Future<Output = Result<Option<Profile>, DirectoryError>> + Send {
        let user = account.dimensions().find(|(name, _)| *name == "user").map(|(_, user)| user);
        ready(Ok(user.and_then(|user| self.0.get(user)).cloned()))
    }
}
