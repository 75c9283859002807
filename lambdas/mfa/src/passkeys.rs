//! `/api/mfa/passkeys/*`: passkeys are registered, and asked to prove themselves. Options and credentials have WebAuthn's own JSON.
//!
//! Invariant: what it takes to register one is what it takes to enrol any factor; a challenge is answered in the session that it was made in.

use crate::asker::{Asker, Needs};
use crate::changes::changing;
use crate::{Handlers, answer};
use lambda_http::http::StatusCode;
use lambda_http::{Body, Request, Response};
use serde::Deserialize;
use serde_json::json;
use tollgate::http::reply;
use tollgate::mfa::Action;
use tollgate::{Policy, Store};
use tollgate_mfa::Result;
use tollgate_mfa::factors::passkey::{Assertion, ChallengeId, Registration};
use tollgate_mfa::factors::{
    Altered, Asked, Asserted, Factor, Kind, PasskeyId, Registered, RelyingParty, Standing, Vault,
};
use tollgate_mfa::tenant::Refused;

/// The domain that browsers take for this machine.
pub(crate) const LOCAL: &str = "localhost";

/// What is sent to register one.
#[derive(Deserialize)]
struct Confirmed {
    challenge: String,
    credential: Registration,
    #[serde(default)]
    name: String,
}

/// What is sent to be asked.
#[derive(Default, Deserialize)]
struct Wanted {
    #[serde(default)]
    action: Option<String>,
}

/// What is sent to prove something.
#[derive(Deserialize)]
pub(crate) struct Answered {
    challenge: String,
    credential: Assertion,
}

impl<S: Store, V: Vault> Handlers<S, V> {
    /// Whose passkeys they are; `None` if the policy has none.
    pub(crate) fn party(&self, policy: &Policy) -> Result<Option<RelyingParty>> {
        let rules = policy.mfa()?;
        let Some(passkeys) = &rules.passkeys else { return Ok(None) };
        let mut passkeys = passkeys.clone();
        if passkeys.rp_id == LOCAL {
            passkeys.origins.extend(self.local.get().map(|port| local(*port)));
        }
        RelyingParty::new(&rules.issuer, &passkeys).map(Some)
    }

    /// `POST /api/mfa/passkeys/register`.
    pub(crate) async fn ask_to_register(
        &self,
        policy: &Policy,
        asker: &Asker,
        request: &Request,
    ) -> Result<Response<Body>> {
        let Some(party) = self.party(policy)? else { return Ok(reply::nothing_here()) };
        // Before what it rests on is judged, so that what is revoked meanwhile is revoked of it, too.
        let begun = self.sessions.begin(asker.caller.clone()).await?;
        let owner = &asker.caller.subject;
        let found = self.factors.find(owner).await?;
        let needs = if found.account().has_factor() { Needs::Enrolment } else { Needs::SignIn };
        if let Err(refused) = self.demand(policy, request, needs).await? {
            return Ok(*refused);
        }
        if !self.allows(policy, asker, Kind::Passkey).await? {
            return Ok(answer::not_accepted(Refused::NotAllowed));
        }
        Ok(asked(&party, &self.factors.ask_to_register(owner, &found, &begun, &party, &asker.label).await?))
    }

    /// `POST /api/mfa/passkeys/confirm`.
    pub(crate) async fn register(&self, policy: &Policy, asker: &Asker, request: &Request) -> Result<Response<Body>> {
        let Some(party) = self.party(policy)? else { return Ok(reply::nothing_here()) };
        let sent: Option<Confirmed> = serde_json::from_slice(request.body()).ok();
        let sent = sent.and_then(|sent| Some((sent.challenge.parse::<ChallengeId>().ok()?, sent)));
        let Some((challenge, Confirmed { credential, name, .. })) = sent else {
            return Ok(answer::bad_request(
                r#"write {"challenge":"...","credential":{...},"name":"..."}, `credential` as `toJSON` gives it"#,
            ));
        };
        let begun = self.sessions.begin(asker.caller.clone()).await?;
        let found = self.factors.find(&asker.caller.subject).await?;
        let factor = Factor::Passkey(credential.id());
        let proof = match self.judge_new(policy, asker, request, found.account(), factor).await? {
            Ok(proof) => proof,
            Err(refused) => return Ok(answer::not_accepted(refused)),
        };
        let (author, announcer) = (asker.author(policy), self.announcer(policy, asker));
        let by = changing(policy, asker, &author, &announcer)?;
        let registered = self.factors.register(by, &begun, &party, &challenge, &credential, &name);
        Ok(match Box::pin(registered).await? {
            // It is no first one where somebody has changed the factors since it was judged.
            Registered::Added { altered: Altered::Added(_), .. } if proof.standing == Standing::Full => {
                answer::conflict(
                    "factors_changed",
                    "it is added, and the factors were changed meanwhile; use another one",
                )
            }
            Registered::Added { begun, .. } => return self.prove(policy, &begun, proof, None).await,
            Registered::TooManyChanges(wait) => answer::too_many_changes(wait),
            Registered::NoChallenge => no_challenge(),
            Registered::Refused => refused(),
            Registered::Known => answer::conflict("already_enrolled", "this passkey is registered already"),
            Registered::TooMany => too_many(),
            Registered::HasFactor => answer::conflict("factors_changed", "a factor was added meanwhile; ask again"),
            _ => answer::unavailable(),
        })
    }

    /// `POST /api/mfa/passkeys/challenge`.
    pub(crate) async fn ask_to_assert(
        &self,
        policy: &Policy,
        asker: &Asker,
        request: &Request,
    ) -> Result<Response<Body>> {
        let Some(party) = self.party(policy)? else { return Ok(reply::nothing_here()) };
        let body: &[u8] = request.body();
        let wanted = if body.is_empty() { Ok(Wanted::default()) } else { serde_json::from_slice(body) };
        let action = wanted.ok().and_then(|wanted| wanted.action.as_deref().map(str::parse).transpose().ok());
        let Some(action) = action else {
            return Ok(answer::bad_request(r#"write {"action":"..."} as the 401 of a route told it, or nothing"#));
        };
        let begun = self.sessions.begin(asker.caller.clone()).await?;
        Ok(asked(&party, &self.factors.ask_to_assert(&asker.caller.subject, &begun, &party, action).await?))
    }

    /// `POST /api/mfa/verify` with a passkey.
    pub(crate) async fn assert(
        &self,
        policy: &Policy,
        asker: &Asker,
        request: &Request,
        answered: &Answered,
        action: Option<Action>,
    ) -> Result<Response<Body>> {
        let Some(party) = self.party(policy)? else {
            return Ok(answer::conflict("not_enrolled", "there are no passkeys here"));
        };
        let Ok(challenge) = answered.challenge.parse() else { return Ok(no_challenge()) };
        let begun = self.sessions.begin(asker.caller.clone()).await?;
        let found = self.factors.find(&asker.caller.subject).await?;
        let factor = Factor::Passkey(PasskeyId::of(answered.credential.credential()));
        let proof = match self.judge_held(policy, asker, request, found.account(), factor).await? {
            Ok(proof) => proof,
            Err(refused) => return Ok(*refused),
        };
        let by = asker.author(policy);
        let asserted = self.factors.assert(&begun, &party, &challenge, &answered.credential, action, &by);
        Ok(match Box::pin(asserted).await? {
            Asserted::Verified(begun) => return self.prove(policy, &begun, proof, action).await,
            Asserted::NoChallenge => no_challenge(),
            Asserted::Refused => refused(),
            Asserted::Cloned => reply::error(
                StatusCode::FORBIDDEN,
                "passkey_cloned",
                "this passkey's counter went back, so somebody may have a copy of it; use another factor and remove it",
            ),
            _ => answer::unavailable(),
        })
    }
}

/// The origin of pages that this machine serves itself.
pub(crate) fn local(port: u16) -> String {
    format!("http://{LOCAL}:{port}")
}

/// 200: what a page hands to the browser, and which challenge it is that it will answer.
fn asked(party: &RelyingParty, asked: &Asked) -> Response<Body> {
    match asked {
        Asked::Request(request) => {
            let (id, expires_in) = (request.id.to_string(), party.timeout().as_secs());
            let body = json!({ "challenge": id, "expires_in": expires_in, "publicKey": request.options });
            reply::json(StatusCode::OK, &body)
        }
        Asked::NotEnrolled => answer::conflict("not_enrolled", "the account has no passkey"),
        Asked::TooMany => too_many(),
        _ => answer::unavailable(),
    }
}

/// 410.
fn no_challenge() -> Response<Body> {
    let message =
        "there is no such challenge: it was answered, is over, or was made for something else; ask for another";
    reply::error(StatusCode::GONE, "no_active_challenge", message)
}

/// 401.
fn refused() -> Response<Body> {
    reply::error(StatusCode::UNAUTHORIZED, "wrong_passkey", "this is no answer of a passkey that is good here")
}

/// 409.
fn too_many() -> Response<Body> {
    answer::conflict("too_many_passkeys", "the account has as many passkeys as it can have; remove one first")
}
