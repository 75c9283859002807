//! Who judges whether a person has solved a CAPTCHA.
//!
//! Invariant: what nobody could judge is an error, and no error lets anybody pass.

mod waf;

pub use waf::WafCaptcha;

use std::fmt;
use std::future::Future;
use std::pin::Pin;

/// What a request has to show for a CAPTCHA. A stranger has sent it.
#[derive(Clone, Copy, Default)]
#[non_exhaustive]
pub struct Proof<'a> {
    /// The token that the page got of the CAPTCHA.
    pub token: Option<&'a str>,
    /// What AWS WAF has inserted, as the request's header says.
    pub inserted: Option<&'a str>,
}

impl<'a> Proof<'a> {
    /// The header that a rule of AWS WAF inserts with the name `captcha` (Developer Guide, "Inserting custom request headers").
    pub const HEADER: &'static str = "x-amzn-waf-captcha";

    /// Of a request with these.
    #[must_use]
    pub fn new(token: Option<&'a str>, inserted: Option<&'a str>) -> Self {
        Self { token, inserted }
    }
}

/// Without the values.
impl fmt::Debug for Proof<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (has_token, has_inserted) = (self.token.is_some(), self.inserted.is_some());
        f.debug_struct("Proof").field("has_token", &has_token).field("has_inserted", &has_inserted).finish()
    }
}

/// Nobody has judged it. No message has a token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the CAPTCHA could not be judged: {0}")]
pub struct CaptchaError(pub String);

/// The answer of a judge.
pub type Judged<'a> = Pin<Box<dyn Future<Output = Result<bool, CaptchaError>> + Send + 'a>>;

/// Judges CAPTCHAs.
pub trait Captcha: fmt::Debug + Send + Sync {
    /// Whether `proof` is of somebody who has solved one: not used before, or as late as the judge lets it be used again.
    fn is_solved<'a>(&'a self, proof: Proof<'a>) -> Judged<'a>;
}
