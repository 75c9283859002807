//! `POST /api/mfa/verify`: a code of a factor or a passkey's answer, and what it proves.
//!
//! Invariants: what is proved is dated by when the verification began; how much that is, the tenant's rules say.

use crate::asker::Asker;
use crate::passkeys::Answered;
use crate::{Handlers, answer};
use lambda_http::{Body, Request, Response};
use serde::Deserialize;
use std::collections::BTreeSet;
use tollgate::http::{self, Facts};
use tollgate::mfa::{Action, Begun, first_factor};
use tollgate::tollgate_policy::FactorKind;
use tollgate::{Policy, Store};
use tollgate_mfa::Result;
use tollgate_mfa::factors::{Account, Factor, Kind, Standing, Vault, Verification};
use tollgate_mfa::tenant::{self, Held, Proves, Refused};

/// What is typed.
#[derive(Deserialize)]
struct Typed {
    factor: String,
    #[serde(flatten)]
    what: What,
    /// The action that it is typed for, as the 401 of a route told it; without one it is for the session.
    #[serde(default)]
    action: Option<String>,
}

/// A code, or what a passkey has answered.
#[derive(Deserialize)]
#[serde(untagged)]
enum What {
    Code { code: String },
    Passkey(Box<Answered>),
}

/// What a factor proves.
pub(crate) struct Proof {
    kind: Kind,
    /// How much.
    pub(crate) proves: Proves,
    /// What changes of late leave of that.
    pub(crate) standing: Standing,
    /// What the account lacks.
    pub(crate) missing: BTreeSet<FactorKind>,
}

impl<S: Store, V: Vault> Handlers<S, V> {
    pub(crate) async fn verify(&self, policy: &Policy, asker: &Asker, request: &Request) -> Result<Response<Body>> {
        let Ok(typed) = serde_json::from_slice::<Typed>(request.body()) else {
            return Ok(answer::bad_request(
                r#"write {"factor":"totp","code":"012345"}, or {"factor":"passkey","challenge":"...","credential":{...}}"#,
            ));
        };
        let Ok(kind) = typed.factor.parse::<Kind>() else {
            return Ok(answer::bad_request(r#"`factor` is "totp", "passkey" or "recovery""#));
        };
        let Ok(action) = typed.action.as_deref().map(str::parse).transpose() else {
            return Ok(answer::bad_request("`action` is what the 401 of a route told"));
        };
        let (code, of_codes) = match (typed.what, kind.of_codes()) {
            (What::Code { code }, Some(of_codes)) => (code, of_codes),
            (What::Passkey(answered), None) => return self.assert(policy, asker, request, &answered, action).await,
            (What::Code { .. }, None) => {
                return Ok(answer::bad_request("a passkey has a `challenge` and a `credential`"));
            }
            (What::Passkey(_), Some(_)) => return Ok(answer::bad_request("this factor has a `code`")),
        };
        // Before the code is looked at, so that what is revoked meanwhile is revoked of it, too.
        let begun = self.sessions.begin(asker.caller.clone()).await?;
        let found = self.factors.find(&asker.caller.subject).await?;
        let proof = match self.judge_held(policy, asker, request, found.account(), of_codes.into()).await? {
            Ok(proof) => proof,
            Err(refused) => return Ok(*refused),
        };
        match self.factors.verify(found, of_codes, &code, &asker.author(policy)).await? {
            Verification::Verified => self.prove(policy, &begun, proof, action).await,
            other => Ok(answer::refused(other)),
        }
    }

    /// What a factor of `kind` would prove for who asks, who has `held`; or why nothing. Before it is looked at, so that a code which
    /// proves nothing is not used up.
    pub(crate) async fn judge(
        &self,
        policy: &Policy,
        asker: &Asker,
        request: &Request,
        held: Held,
        (factor, standing): (Factor, Standing),
    ) -> Result<std::result::Result<Proof, Refused>> {
        let (items, account, kind) = (self.factors.items(), &asker.caller.subject, factor.kind());
        let rules = tenant::of_account(items, account, &policy.mfa()?.tenants).await?;
        let said = http::authentication(&Facts::of(request.extensions())).map_or_else(Vec::new, |said| said.amr);
        // The codes that a session was opened by are of no kind that is verified here.
        let first = first_factor(said.iter().map(String::as_str), [], &policy.first_factor());
        let proves = tenant::judge(&rules, &held, kind.into(), &first, kind.methods());
        // What is cooling proves enough to enrol and remove factors, where there is no other.
        let limited = |proves| if standing == Standing::Full { proves } else { Proves::Enrolment };
        let missing = tenant::missing(&rules, &held);
        Ok(proves.map(|proves| Proof { kind, proves: limited(proves), standing, missing }))
    }

    /// The same of a factor that the account has; the error is the answer.
    pub(crate) async fn judge_held(
        &self,
        policy: &Policy,
        asker: &Asker,
        request: &Request,
        account: &Account,
        factor: Factor,
    ) -> Result<std::result::Result<Proof, Box<Response<Body>>>> {
        let now = self.factors.items().now();
        let standing = account.standing(factor, now);
        if let Standing::Cooling(until) = standing {
            return Ok(Err(Box::new(answer::cooling(until))));
        }
        let proof = self.judge(policy, asker, request, Held::of(account, now), (factor, standing)).await?;
        Ok(proof.map_err(|refused| Box::new(answer::not_accepted(refused))))
    }

    /// What a factor that is to be enrolled now would prove.
    pub(crate) async fn judge_new(
        &self,
        policy: &Policy,
        asker: &Asker,
        request: &Request,
        account: &Account,
        factor: Factor,
    ) -> Result<std::result::Result<Proof, Refused>> {
        let now = self.factors.items().now();
        let standing = account.standing_of_new(factor, now, policy.mfa()?.cooldown);
        let held = Held::of(account, now).with(factor.kind().into());
        self.judge(policy, asker, request, held, (factor, standing)).await
    }

    /// A factor has proved itself: the session is fresh, or whoever has the grant may do `action` once.
    pub(crate) async fn prove(
        &self,
        policy: &Policy,
        begun: &Begun,
        proof: Proof,
        action: Option<Action>,
    ) -> Result<Response<Body>> {
        if let Standing::Cooling(_) = proof.standing {
            // It proves nothing yet, and takes nothing from what the session has proved.
            return Ok(answer::verified(None, &proof));
        }
        let rules = policy.mfa()?;
        let acr = match proof.proves {
            Proves::Everything => &rules.acr,
            Proves::Enrolment => &rules.enrol_acr,
        };
        let amr = proof.kind.methods();
        let grant = match action {
            Some(action) => Some(self.sessions.grant(begun, action, acr, amr).await?),
            None => {
                self.sessions.record(begun, acr, amr).await?;
                None
            }
        };
        Ok(answer::verified(grant, &proof))
    }
}
