//! An app is set up and confirmed; recovery codes are made.
//!
//! Invariant: for the first factor of an account one has to have signed in of late, for whatever comes after to have stepped up;
//! nothing is enrolled that the tenant does not allow.

use crate::asker::{Asker, Needs};
use crate::changes::changing;
use crate::{Handlers, answer};
use lambda_http::{Body, Request, Response};
use serde::Deserialize;
use tollgate::{Policy, Store};
use tollgate_mfa::Result;
use tollgate_mfa::factors::{Enrolment, Factor, Generated, Kind, Vault, Verification};
use tollgate_mfa::tenant::{self, Refused};

/// What is typed.
#[derive(Deserialize)]
struct Typed {
    code: String,
}

impl<S: Store, V: Vault> Handlers<S, V> {
    /// `POST /api/mfa/totp/enroll`.
    pub(crate) async fn enrol(&self, policy: &Policy, asker: &Asker, request: &Request) -> Result<Response<Body>> {
        // Before what it rests on is judged, so that what is revoked meanwhile is revoked of it, too.
        let begun = self.sessions.begin(asker.caller.clone()).await?;
        let found = self.factors.find(&asker.caller.subject).await?;
        let needs = if found.account().has_factor() { Needs::Enrolment } else { Needs::SignIn };
        if let Err(refused) = self.demand(policy, request, needs).await? {
            return Ok(*refused);
        }
        if !self.allows(policy, asker, Kind::Totp).await? {
            return Ok(answer::not_accepted(Refused::NotAllowed));
        }
        let issuer = &policy.mfa()?.issuer;
        Ok(match self.factors.enrol(&found, &begun, issuer, &asker.label).await? {
            Enrolment::Begun(setup) => answer::setup(&setup),
            Enrolment::HasApp => answer::conflict("already_enrolled", "there is an authenticator app; remove it first"),
            Enrolment::HasFactor => answer::conflict("factors_changed", "a factor was added meanwhile; ask again"),
            _ => answer::unavailable(),
        })
    }

    /// `POST /api/mfa/totp/confirm`.
    pub(crate) async fn confirm(&self, policy: &Policy, asker: &Asker, request: &Request) -> Result<Response<Body>> {
        let Ok(Typed { code }) = serde_json::from_slice(request.body()) else {
            return Ok(answer::bad_request(r#"write {"code":"012345"}"#));
        };
        let begun = self.sessions.begin(asker.caller.clone()).await?;
        let found = self.factors.find(&asker.caller.subject).await?;
        let proof = match self.judge_new(policy, asker, request, found.account(), Factor::Totp).await? {
            Ok(proof) => proof,
            Err(refused) => return Ok(answer::not_accepted(refused)),
        };
        let (author, announcer) = (asker.author(policy), self.announcer(policy, asker));
        let by = changing(policy, asker, &author, &announcer)?;
        match self.factors.confirm(&found, &begun, &code, by).await? {
            Verification::Verified => self.prove(policy, &begun, proof, None).await,
            other => Ok(answer::refused(other)),
        }
    }

    /// `POST /api/mfa/recovery/generate`.
    pub(crate) async fn generate(&self, policy: &Policy, asker: &Asker, request: &Request) -> Result<Response<Body>> {
        if let Err(refused) = self.demand(policy, request, Needs::Everything).await? {
            return Ok(*refused);
        }
        if !self.allows(policy, asker, Kind::Recovery).await? {
            return Ok(answer::not_accepted(Refused::NotAllowed));
        }
        let (author, announcer) = (asker.author(policy), self.announcer(policy, asker));
        let by = changing(policy, asker, &author, &announcer)?;
        Ok(match self.factors.generate(by).await? {
            Generated::Codes(codes) => answer::codes(&codes),
            Generated::TooMany(wait) => answer::too_many_changes(wait),
            _ => answer::conflict("factors_changed", "the factors were changed meanwhile; ask again"),
        })
    }

    /// Whether the tenant of who asks lets a kind be enrolled.
    pub(crate) async fn allows(&self, policy: &Policy, asker: &Asker, kind: Kind) -> Result<bool> {
        let tenants = &policy.mfa()?.tenants;
        let rules = tenant::of_account(self.factors.items(), &asker.caller.subject, tenants).await?;
        Ok(rules.allowed.contains(&kind.into()))
    }
}
