//! Devices that are known: who has signed in on a device before is told from strangers by a signed token in its cookie, so
//! that a lockout which others have caused does not reach him.
//!
//! Invariant: a device has a value only if one of the policy's secrets has signed its token for this dimension and for what
//! it is bound to in the same request, `max_age` ago at most. A token tells when it was issued and a random number, and
//! nobody's name. Whatever else a cookie has is no value, and no error: its sender is a stranger.

use crate::error::{Error, Result};
use crate::identity::Source;
use crate::policy::Policy;
use crate::suggest;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use std::fmt;
use std::time::Duration;
use tollgate_core::Timestamp;

const HOUR: u64 = 3600;
const DAY: u64 = 24 * HOUR;

/// How a device is known: `{ cookie = "tollgate-device", bound_to = "account" }`.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Device {
    /// The name of the cookie that has the token, a token of RFC 9110.
    pub cookie: String,
    /// The dimension that a token is for: it is genuine only beside the same value of that.
    pub bound_to: String,
    /// For how long a token is good, [`Device::LEAST_AGE`] to [`Device::MOST_AGE`].
    pub max_age: Duration,
}

impl Device {
    /// For how long a token is good unless the policy says otherwise: 90 days.
    pub const DEFAULT_AGE: Duration = Duration::from_secs(90 * DAY);

    /// The shortest that a token can be good for: an hour.
    pub const LEAST_AGE: Duration = Duration::from_secs(HOUR);

    /// The longest: 400 days, after which browsers drop a cookie whatever it says (RFC 6265bis section 5.5).
    pub const MOST_AGE: Duration = Duration::from_secs(400 * DAY);

    /// By how much the clock that issued a token may be ahead. More would let a clock that was once wrong prolong it.
    const AHEAD: Duration = Duration::from_secs(HOUR);

    fn is_fresh(&self, issued: u64, now: Timestamp) -> bool {
        let now = now.as_secs();
        now.saturating_sub(issued) < self.max_age.as_secs() && issued.saturating_sub(now) <= Self::AHEAD.as_secs()
    }
}

/// A token, and the cookie that a device is to keep it in.
#[derive(Clone, PartialEq, Eq)]
pub struct DeviceCookie {
    name: String,
    token: String,
    max_age: Duration,
}

impl DeviceCookie {
    /// The token: the cookie's value.
    #[must_use]
    pub fn token(&self) -> &str {
        &self.token
    }

    /// The value of a `Set-Cookie` field. No script reads the cookie, it goes over TLS only, and with no request that another
    /// site has caused: nobody signs in by one.
    #[must_use]
    pub fn set_cookie(&self) -> String {
        let Self { name, token, max_age } = self;
        format!("{name}={token}; Max-Age={}; Path=/; Secure; HttpOnly; SameSite=Strict", max_age.as_secs())
    }
}

/// Without the token.
impl fmt::Debug for DeviceCookie {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DeviceCookie").field("name", &self.name).field("max_age", &self.max_age).finish_non_exhaustive()
    }
}

/// A device that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct KnownDevice {
    /// The random number of its token, of 22 characters.
    pub id: String,
    /// When the token was issued, in whole seconds.
    pub issued: Timestamp,
}

/// What is signed beside a token's own bytes; no dimension can have the name.
const PURPOSE: &[u8] = b"device token 1";

const ISSUED_BYTES: usize = 8;
const ID_BYTES: usize = 16;
const CLAIM_BYTES: usize = ISSUED_BYTES + ID_BYTES;

impl Policy {
    /// A new device of whoever has just proved to be `bound_value` of the dimension that the device `dimension` is bound to;
    /// in any spelling. `now` is the store's time, as of `Store::moment`.
    ///
    /// ```
    /// # use tollgate_policy::{KeySecrets, Policy};
    /// let text = "version = 1\nlimits = {}\n[identity]\naccount = { body = 'username', fold = 'email' }\n\
    ///             device = { cookie = '__Host-device', bound_to = 'account' }\n";
    /// let policy = Policy::parse(text).map_err(|findings| findings.render("policy"))?.policy;
    /// let policy = policy.with_secrets(KeySecrets::development());
    /// let now = tollgate_core::Timestamp::from_secs(1_767_225_600);
    /// let cookie = policy.device_cookie("device", "Admin@x.org", now).map_err(|error| error.to_string())?;
    /// assert!(cookie.set_cookie().starts_with("__Host-device=dev."));
    /// assert!(policy.known_device("device", "admin@X.org", [cookie.token()], now).is_some());
    /// # Ok::<(), String>(())
    /// ```
    ///
    /// # Errors
    ///
    /// [`Error::NoDevice`] if the dimension is none, [`Error::EmptyDevice`] if nothing of `bound_value` counts,
    /// [`Error::NoSecrets`], [`Error::NoRandomness`], or [`Error::Core`] for a value over 2 KB.
    pub fn device_cookie(&self, dimension: &str, bound_value: &str, now: Timestamp) -> Result<DeviceCookie> {
        let device = self.device(dimension).ok_or_else(|| {
            let devices = self.identity().dimensions().filter(|(_, d)| matches!(d.source, Source::Device(_)));
            let help = suggest::help(dimension, "device", devices.map(|(name, _)| name));
            Error::NoDevice { dimension: dimension.to_owned(), help }
        })?;
        let bound = self.one_spelling(&device.bound_to, bound_value)?;
        if bound.is_empty() {
            return Err(Error::EmptyDevice { bound_to: device.bound_to.clone() });
        }
        let mut random = [0; ID_BYTES];
        getrandom::getrandom(&mut random).map_err(|error| Error::NoRandomness(error.to_string()))?;
        let claim = [now.as_secs().to_be_bytes().as_slice(), &random].concat();
        let signed = self.secrets().sign(&parts(dimension, device, &bound, &claim));
        let (id, mac) = signed.ok_or_else(|| Error::NoSecrets { what: suggest::quoted([dimension]) })?;
        let token = format!("{id}.{}", URL_SAFE_NO_PAD.encode([claim.as_slice(), &mac].concat()));
        Ok(DeviceCookie { name: device.cookie.clone(), token, max_age: device.max_age })
    }

    /// The device `dimension` in a request whose dimension that it is bound to has `bound_value`: that of the first of `tokens`
    /// that is genuine; its value is its `id`. `None` if none is.
    #[must_use]
    pub fn known_device<'a>(
        &self,
        dimension: &str,
        bound_value: &str,
        tokens: impl IntoIterator<Item = &'a str>,
        now: Timestamp,
    ) -> Option<KnownDevice> {
        let device = self.device(dimension)?;
        let mut tokens = tokens.into_iter().peekable();
        // Folding takes time, which most requests need not spend.
        tokens.peek()?;
        let bound = self.one_spelling(&device.bound_to, bound_value).ok().filter(|bound| !bound.is_empty())?;
        tokens.find_map(|token| self.genuine(dimension, device, &bound, token, now))
    }

    fn genuine(
        &self,
        dimension: &str,
        device: &Device,
        bound: &str,
        token: &str,
        now: Timestamp,
    ) -> Option<KnownDevice> {
        let (id, bytes) = token.split_once('.')?;
        if bytes.len() > LONGEST_BASE64 {
            return None;
        }
        let bytes = URL_SAFE_NO_PAD.decode(bytes).ok()?;
        let (claim, mac) = bytes.split_at_checked(CLAIM_BYTES)?;
        let (issued, random) = claim.split_at_checked(ISSUED_BYTES)?;
        let issued = u64::from_be_bytes(issued.try_into().ok()?);
        let genuine =
            device.is_fresh(issued, now) && self.secrets().has_signed(id, &parts(dimension, device, bound, claim), mac);
        genuine.then(|| KnownDevice { id: URL_SAFE_NO_PAD.encode(random), issued: Timestamp::from_secs(issued) })
    }

    fn device(&self, dimension: &str) -> Option<&Device> {
        match self.identity().source(dimension)? {
            Source::Device(device) => Some(device),
            _ => None,
        }
    }
}

/// Characters of base64 that a token can have at most; more is not worth decoding.
const LONGEST_BASE64: usize = 128;

fn parts<'a>(dimension: &'a str, device: &'a Device, bound: &'a str, claim: &'a [u8]) -> [&'a [u8]; 5] {
    [PURPOSE, dimension.as_bytes(), device.bound_to.as_bytes(), bound.as_bytes(), claim]
}
