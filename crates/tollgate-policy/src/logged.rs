//! What lines about denials have of a caller beside the reference to its key: who buys, where the policy says so.
//!
//! Invariant: what is not said to be logged is not; nothing personal and no API key itself is told but as a keyed hash; without
//! secrets there is no hash, and then nothing.

use crate::identity::Logged;
use crate::policy::Policy;
use std::borrow::Cow;
use tollgate_core::Key;

/// Bytes of a value that is told in plain; of a longer one a hash says as much.
const LONGEST: usize = 128;

impl Policy {
    /// How a line about a denial tells that `dimension` is `value`: as it is, or by the reference of the key that has it alone
    /// ([`KeySecrets::reference`](crate::KeySecrets::reference), which `tollgate inspect tenant:acme` tells, too). `None` if the policy
    /// does not say that it is logged, or there is no secret to hash it under. What `is_secret` is never told as it is.
    #[must_use]
    pub fn logged<'a>(&self, dimension: &str, value: &'a str, is_secret: bool) -> Option<Cow<'a, str>> {
        let declared = self.identity().dimension(dimension)?;
        let hidden = is_secret || declared.personal || value.len() > LONGEST;
        match declared.log? {
            Logged::Plain if !hidden => Some(Cow::Borrowed(value)),
            _ => {
                // A personal value is a hash in the key already, under the active secret first.
                let spelled = self.one_spelling(dimension, value).ok()?;
                let key: Key = self.keys(&[(dimension, spelled)]).ok()?.into_iter().next()?;
                self.secrets().reference(&key).map(Cow::Owned)
            }
        }
    }
}
