//! CAPTCHAs of AWS WAF.
//!
//! Only WAF can read its token. A rule with the action CAPTCHA inserts a header into requests with a good one, and its value is a secret
//! that the rule and this function share: whoever reaches the function past the rule does not have it. A token is good for the rule's
//! immunity time (300 s unless it is set), and for all requests within it: who solves one is human for that long.
//!
//! Invariant: the two are compared in the same time wherever they differ.

use super::{Captcha, Judged, Proof};
use ring::hmac::{HMAC_SHA256, Key, Tag, sign, verify};
use std::fmt;
use std::future::ready;

/// What is signed by each of the two, so that neither's length or beginning shows in the time that it takes.
const SIGNED: &[u8] = b"AWS WAF CAPTCHA";

/// Compares what a rule has inserted.
pub struct WafCaptcha(Tag);

impl WafCaptcha {
    /// The rule inserts this value.
    #[must_use]
    pub fn new(value: &str) -> Self {
        Self(sign(&Key::new(HMAC_SHA256, value.as_bytes()), SIGNED))
    }
}

impl Captcha for WafCaptcha {
    fn is_solved<'a>(&'a self, proof: Proof<'a>) -> Judged<'a> {
        let is_same = |value: &str| verify(&Key::new(HMAC_SHA256, value.as_bytes()), SIGNED, self.0.as_ref()).is_ok();
        Box::pin(ready(Ok(proof.inserted.is_some_and(is_same))))
    }
}

/// Without the value.
impl fmt::Debug for WafCaptcha {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WafCaptcha").finish_non_exhaustive()
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_the_value_of_the_rule_is_one() {
        let captcha = WafCaptcha::new("s3cret");
        let is_solved = async |inserted| captcha.is_solved(Proof::new(Some("s3cret"), inserted)).await.unwrap();
        assert!(is_solved(Some("s3cret")).await);
        for wrong in [None, Some(""), Some("s3cre"), Some("s3crett"), Some("passed")] {
            assert!(!is_solved(wrong).await, "{wrong:?}");
        }
        assert_eq!(format!("{captcha:?}"), "WafCaptcha { .. }");
    }
}
