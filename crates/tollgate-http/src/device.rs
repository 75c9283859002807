//! The device that the cookies of a request show.
//!
//! Invariant: whatever the cookies hold, whoever shows no genuine token is a stranger.

use crate::cookie;
use http::HeaderMap;
use tollgate_core::Timestamp;
use tollgate_policy::{KnownDevice, Policy, Source};

/// The device of `dimension` that a request with these headers comes from, where the dimension that it is bound to has
/// `bound_value`; `now` is the store's time. `None` for a stranger, and for a dimension that is no device.
#[must_use]
pub fn known_device(
    policy: &Policy,
    dimension: &str,
    bound_value: &str,
    headers: &HeaderMap,
    now: Timestamp,
) -> Option<KnownDevice> {
    let Source::Device(device) = policy.identity().source(dimension)? else { return None };
    policy.known_device(dimension, bound_value, cookie::values(headers, &device.cookie), now)
}
