//! Whether a CAPTCHA is solved.
//!
//! It comes before the account's item and the limits, so that whoever has not solved one leaves no trace in them, and has the
//! cooldown before him that he had.
//!
//! Invariant: where one is needed nothing is sent without the judge's yes.

use crate::Service;
use lambda_http::Request;
use tollgate::Store;
use tollgate_otp::{CaptchaError, Courier, Directory, Error, Proof};

impl<S: Store + 'static, D: Directory, C: Courier + 'static> Service<S, D, C> {
    /// Whether whoever asks has solved one; `token` is what the client says that it got of it.
    pub(crate) async fn is_captcha_solved(&self, request: &Request, token: Option<&str>) -> Result<bool, Error> {
        let judge =
            self.captcha.as_ref().ok_or_else(|| CaptchaError("one is needed, and nobody judges it".to_owned()))?;
        let inserted = request.headers().get(Proof::HEADER).and_then(|value| value.to_str().ok());
        Ok(judge.is_solved(Proof::new(token, inserted)).await?)
    }
}
