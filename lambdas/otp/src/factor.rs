//! What follows from a right code: somebody has signed in by it, or it is a second factor, and proves something.
//!
//! A second factor by SMS or email is a fallback: it is none where the tenant does not allow it, where the account has an app or a passkey
//! that is not locked for good, or in a session that may have been opened by the same channel. That is asked before a message is sent, and
//! again before its code is looked at.
//!
//! Invariants: what is proved is dated by when the verification began; nothing is proved unless the policy says what a code is, and the table
//! what the tenant and the account are.

use crate::Service;
use crate::answer::{self, Answer};
use lambda_http::Request;
use tollgate::http::{self, Facts};
use tollgate::mfa::{self, Action, Begun, Caller, GrantId, Sessions, first_factor};
use tollgate::tollgate_policy::{FactorKind, OtpRules, OtpUse, Purpose};
use tollgate::{Policy, Store};
use tollgate_mfa::tenant::{self, Proves, Refused};
use tollgate_otp::{Courier, Destination, Directory};

/// How a code that was sent so proves something, after another factor. RFC 8176 has `sms` and nothing for email; `otp` is a code of an
/// app there, and were it said of these, they would pass where an app is asked for.
fn methods(kind: FactorKind) -> &'static [&'static str] {
    if kind == FactorKind::Email { &["mfa", "email"] } else { &["mfa", "sms"] }
}

/// A verification under way, and what its code will prove.
pub(crate) enum Factor<'s> {
    /// Nothing but itself.
    Itself,
    /// That somebody has signed in by it.
    SignIn { sessions: &'s Sessions, caller: Caller, kind: FactorKind },
    /// A second factor, as a class.
    Second { sessions: &'s Sessions, begun: Begun, kind: FactorKind, acr: String },
}

/// Why a code is none that is looked at, or sent.
pub(crate) enum Unproven {
    /// It would be no second factor.
    Refused(Refused),
    /// Nobody knows.
    Unknown(mfa::Error),
}

impl From<mfa::Error> for Unproven {
    fn from(error: mfa::Error) -> Self {
        Self::Unknown(error)
    }
}

impl Unproven {
    pub(crate) fn answer(&self) -> Answer {
        match self {
            Self::Refused(refused) => answer::not_accepted(*refused),
            Self::Unknown(error) => answer::unknown(error),
        }
    }
}

impl<S: Store + 'static, D: Directory, C: Courier + 'static> Service<S, D, C> {
    /// What a right code for `purpose` will prove, for an action or for the session. A factor has no other use for who is in no session.
    pub(crate) async fn begin(
        &self,
        policy: &Policy,
        request: &Request,
        (rules, purpose): (&OtpRules, &Purpose),
        to: Option<&Destination>,
        is_for_action: bool,
    ) -> Result<Factor<'_>, Unproven> {
        let Some(sessions) = self.sessions.as_deref() else { return Ok(Factor::Itself) };
        let facts = Facts::of(request.extensions());
        let Some(caller) = http::caller(policy, &facts).map_err(mfa::Error::from)? else { return Ok(Factor::Itself) };
        let kind = kind(rules, to);
        match (rules.use_of(purpose), &rules.acr) {
            (OtpUse::SignIn, _) => Ok(Factor::SignIn { sessions, caller, kind }),
            (OtpUse::Factor, Some(acr)) if is_for_action || caller.session.is_some() => {
                let begun = sessions.begin(caller.clone()).await?;
                let acr = match self.judge(policy, &facts, sessions, &caller, kind).await? {
                    Proves::Everything => acr.clone(),
                    Proves::Enrolment => policy.mfa().map_err(mfa::Error::from)?.enrol_acr.clone(),
                };
                Ok(Factor::Second { sessions, begun, kind, acr })
            }
            _ => Ok(Factor::Itself),
        }
    }

    /// What a code of that kind proves for the caller, whose token says `facts`.
    async fn judge(
        &self,
        policy: &Policy,
        facts: &Facts,
        sessions: &Sessions,
        caller: &Caller,
        kind: FactorKind,
    ) -> Result<Proves, Unproven> {
        let codes = sessions.codes(caller).await?;
        let said = http::authentication(facts).map_or_else(Vec::new, |said| said.amr);
        // Of who is in no session nobody knows what he has signed in by, unless his token says it.
        let assumed = if codes.is_some() { policy.first_factor() } else { Vec::new() };
        let codes = codes.unwrap_or_default();
        let first = first_factor(said.iter().map(String::as_str), codes.iter().map(String::as_str), &assumed);
        let (rules, held) = match policy.mfa() {
            Ok(rules) => {
                let (items, account) = (self.otp.items(), &caller.subject);
                (tenant::of_account(items, account, &rules.tenants).await?, tenant::held(items, account).await?)
            }
            // Without second factors of an account's own there is nothing to fall back from.
            Err(_) => Default::default(),
        };
        tenant::judge(&rules, &held, kind, &first, methods(kind)).map_err(Unproven::Refused)
    }
}

/// The kind of factor that a code is. Where there is nowhere to send one to, that of the first channel, so that it is answered alike.
fn kind(rules: &OtpRules, to: Option<&Destination>) -> FactorKind {
    match to {
        Some(to) => to.factor(),
        None => rules.channels().next().map_or(FactorKind::Sms, |channel| channel.factor()),
    }
}

impl Factor<'_> {
    /// The code was right: that somebody has signed in by it is remembered, or the session is fresh, or whoever has the grant may do
    /// `action` once.
    pub(crate) async fn prove(&self, action: Option<Action>) -> Result<Option<GrantId>, mfa::Error> {
        match (self, action) {
            (Self::Itself, _) => Ok(None),
            (Self::SignIn { sessions, caller, kind }, _) => {
                // What comes after `mfa` is how the code was sent.
                let method = methods(*kind).last().copied().unwrap_or_default();
                sessions.signed_in_by(caller, method).await.map(|_| None)
            }
            (Self::Second { sessions, begun, kind, acr }, Some(action)) => {
                sessions.grant(begun, action, acr, methods(*kind)).await.map(Some)
            }
            (Self::Second { sessions, begun, kind, acr }, None) => {
                sessions.record(begun, acr, methods(*kind)).await.map(|_| None)
            }
        }
    }
}
