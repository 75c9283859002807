//! Whether a CAPTCHA is needed to be sent a code, and solved.
//!
//! It comes before the account's item and the limits, so that whoever has not solved one leaves no trace in them, and has the
//! cooldown before him that he had.
//!
//! Invariant: where one is needed nothing is sent without the judge's yes.

use crate::Service;
use lambda_http::Request;
use tollgate::{Policy, Store};
use tollgate_otp::{CaptchaError, Courier, Directory, Error, Proof};

impl<S: Store + 'static, D: Directory, C: Courier + 'static> Service<S, D, C> {
    /// Whether a code may be sent for all that is known of a CAPTCHA; `token` is what the client says that it got of one.
    pub(crate) async fn is_past_captcha(
        &self,
        policy: &Policy,
        request: &Request,
        token: Option<&str>,
    ) -> Result<bool, Error> {
        if !policy.otp().is_some_and(|rules| rules.captcha) {
            return Ok(true);
        }
        let judge = self
            .captcha
            .as_ref()
            .ok_or_else(|| CaptchaError("the policy demands one, and nobody judges it".to_owned()))?;
        let inserted = request.headers().get(Proof::HEADER).and_then(|value| value.to_str().ok());
        Ok(judge.is_solved(Proof::new(token, inserted)).await?)
    }
}
