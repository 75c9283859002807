//! The device on which a user has typed a right code before, if the policy knows such devices.
//!
//! Invariant: a device keeps the token that it was given first, for as long as that is good; so it tells since when the user has been
//! known there.

use tollgate::http::known_device;
use tollgate::tollgate_policy::{DeviceCookie, Result, Source};
use tollgate::{Policy, Timestamp};

/// The dimension, as the policy's `[identity]` has it.
const DIMENSION: &str = "verified_device";

/// Since when `user` has been known on the device that sends these headers; `None` for a stranger.
#[must_use]
pub fn known_since(
    policy: &Policy,
    user: &str,
    headers: &lambda_http::http::HeaderMap,
    now: Timestamp,
) -> Option<Timestamp> {
    known_device(policy, DIMENSION, user, headers, now).map(|device| device.issued)
}

/// The cookie of a device on which `user` has just typed a right code; `None` if the policy knows no such devices.
///
/// # Errors
///
/// Those of [`Policy::device_cookie`].
pub fn cookie(policy: &Policy, user: &str, now: Timestamp) -> Result<Option<DeviceCookie>> {
    let is_device = matches!(policy.identity().source(DIMENSION), Some(Source::Device(_)));
    is_device.then(|| policy.device_cookie(DIMENSION, user, now)).transpose()
}
