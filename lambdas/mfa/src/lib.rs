//! Second factors over HTTP, for callers whom an authorizer has let in.
//!
//! | route | what it does |
//! | --- | --- |
//! | `POST /api/mfa/totp/enroll` | an authenticator app is set up |
//! | `POST /api/mfa/totp/confirm` | and confirmed by a code of it |
//! | `POST /api/mfa/passkeys/register` | a passkey is asked for |
//! | `POST /api/mfa/passkeys/confirm` | and registered |
//! | `POST /api/mfa/passkeys/challenge` | a passkey is asked to prove itself |
//! | `POST /api/mfa/verify` | a code of a factor, or a passkey's answer: the session is fresh, or one action may be done |
//! | `POST /api/mfa/recovery/generate` | new recovery codes |
//! | `GET /api/mfa/factors` | what the account has |
//! | `DELETE /api/mfa/factors/{factor}` | a factor is removed; of passkeys all are |
//! | `DELETE /api/mfa/factors/passkey/{id}` | one passkey is removed |
//! | `POST /api/mfa/changes/cancel` | a change is cancelled by the link of its notice, without a session |
//! | `POST /api/mfa/recovery/request` | whoever has lost every factor asks for them to be removed |
//! | `GET /api/mfa/recovery` | how far that is; of somebody else for an admin |
//! | `POST /api/mfa/recovery/approve`, `.../refuse` | an admin approves it, or refuses it |
//! | `POST /api/mfa/recovery/complete` | the factors are removed |
//! | `DELETE /api/mfa/recovery` | the request is cancelled |
//! | `GET /api/mfa/tenant` | what the tenant asks of its people's factors |
//! | `PUT /api/mfa/tenant` | and changed by its admins |
//!
//! | module | what it is |
//! | --- | --- |
//! | `asker` | who asks, and what he has to have proved |
//! | `enrol` | an app is set up and confirmed; recovery codes are made |
//! | `passkeys` | passkeys: registered, asked, verified |
//! | `verify` | a code of a factor, and what it proves |
//! | `factors` | the account's factors: listed, removed |
//! | `changes` | changes of factors: announced, cancelled |
//! | `notices` | who is told of them |
//! | `recovery` | an account whose owner has lost every factor: requested, approved by two admins, completed |
//! | `tenant` | what the tenant asks for: shown, put |
//! | `answer` | what is said, and with which status |
//! | `deployed` | the function with its vault on KMS (feature `aws`) |
//!
//! Invariants: whoever has passed no first factor gets 401 before anything is looked up; nothing is done that the limits of its route
//! have not counted on the table, whatever `on_store_failure` says; what a change of factors needs is told by the account's item, never
//! by the request; nothing is proved that the table has not said.

mod answer;
mod asker;
mod changes;
#[cfg(feature = "aws")]
mod deployed;
mod enrol;
mod factors;
pub mod notices;
mod passkeys;
mod recovery;
mod tenant;
mod verify;

#[cfg(feature = "aws")]
pub use deployed::main;

use crate::asker::Asker;
use crate::notices::Tell;
use lambda_http::http::Method;
use lambda_http::tower::{Layer, ServiceExt};
use lambda_http::{Body, Error, Request, Response, service_fn};
use std::sync::{Arc, OnceLock};
use tollgate::http::{Facts, TollgateLayer, reply};
use tollgate::mfa::Sessions;
use tollgate::tollgate_dynamodb::Event;
use tollgate::{Decision, Limiter, LivePolicy, Policy, Store};
use tollgate_mfa::factors::{Factors, Kind, PasskeyId, Vault};

const PREFIX: &str = "/api/mfa/";
const FACTORS: &str = "/api/mfa/factors/";
const PASSKEY: &str = "passkey/";
const PASSKEYS: &str = "/api/mfa/passkeys/";
const TENANT: &str = "/api/mfa/tenant";
const RECOVERY: &str = "/api/mfa/recovery";

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    Enrol,
    Confirm,
    Verify,
    Generate,
    List,
    AskToRegister,
    Register,
    AskToAssert,
    /// `None`: there is no such kind of factor, or no such passkey.
    Remove(Option<Removed>),
    Show,
    Put,
    Cancel,
    Recovery(Step),
}

/// What is done to a recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Step {
    Request,
    Show,
    Approve,
    Refuse,
    Complete,
    Withdraw,
}

/// What is removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Removed {
    All(Kind),
    Passkey(PasskeyId),
}

/// Whether a path is one that is answered here.
#[must_use]
pub fn serves(path: &str) -> bool {
    path.starts_with(PREFIX)
}

/// What a path is for, and the methods that it takes; without a wish if that is not among them.
fn wish(method: &Method, path: &str) -> Option<(&'static str, Option<Wish>)> {
    let only = |name: &'static str, wish| (name, (method.as_str() == name).then_some(wish));
    Some(match path {
        "/api/mfa/totp/enroll" => only("POST", Wish::Enrol),
        "/api/mfa/totp/confirm" => only("POST", Wish::Confirm),
        "/api/mfa/verify" => only("POST", Wish::Verify),
        "/api/mfa/recovery/generate" => only("POST", Wish::Generate),
        "/api/mfa/recovery/request" => only("POST", Wish::Recovery(Step::Request)),
        "/api/mfa/recovery/approve" => only("POST", Wish::Recovery(Step::Approve)),
        "/api/mfa/recovery/refuse" => only("POST", Wish::Recovery(Step::Refuse)),
        "/api/mfa/recovery/complete" => only("POST", Wish::Recovery(Step::Complete)),
        RECOVERY => match *method {
            Method::GET => ("GET, DELETE", Some(Wish::Recovery(Step::Show))),
            Method::DELETE => ("GET, DELETE", Some(Wish::Recovery(Step::Withdraw))),
            _ => ("GET, DELETE", None),
        },
        "/api/mfa/changes/cancel" => only("POST", Wish::Cancel),
        "/api/mfa/factors" => only("GET", Wish::List),
        "/api/mfa/passkeys/register" => only("POST", Wish::AskToRegister),
        "/api/mfa/passkeys/confirm" => only("POST", Wish::Register),
        "/api/mfa/passkeys/challenge" => only("POST", Wish::AskToAssert),
        TENANT => match *method {
            Method::GET => ("GET, PUT", Some(Wish::Show)),
            Method::PUT => ("GET, PUT", Some(Wish::Put)),
            _ => ("GET, PUT", None),
        },
        path => {
            let factor = path.strip_prefix(FACTORS)?;
            let (of_one, name) = factor.strip_prefix(PASSKEY).map_or((false, factor), |id| (true, id));
            if name.is_empty() || name.contains('/') {
                return None;
            }
            let passkey = || name.parse().map(Removed::Passkey).ok();
            only("DELETE", Wish::Remove(if of_one { passkey() } else { name.parse().map(Removed::All).ok() }))
        }
    })
}

/// The handlers, and what they work with.
#[derive(Debug)]
pub struct Service<S, V> {
    policy: LivePolicy,
    layer: TollgateLayer<S>,
    handlers: Arc<Handlers<S, V>>,
}

/// What the handlers work with.
#[derive(Debug)]
struct Handlers<S, V> {
    limiter: Arc<Limiter<S>>,
    factors: Factors<V>,
    sessions: Arc<Sessions>,
    notices: Option<Arc<dyn Tell>>,
    /// The port of this machine whose pages may use passkeys of `localhost`.
    local: OnceLock<u16>,
}

impl<S: Store + 'static, V: Vault + 'static> Service<S, V> {
    /// Factors of accounts by `policy`, whose routes are charged on `limiter`; what is proved goes to `sessions`. Without
    /// `notices` nobody is told of a change, and nobody has a link to cancel it.
    #[must_use]
    pub fn new(
        policy: LivePolicy,
        limiter: Arc<Limiter<S>>,
        factors: Factors<V>,
        sessions: Arc<Sessions>,
        notices: Option<Arc<dyn Tell>>,
    ) -> Self {
        let layer = TollgateLayer::new(policy.clone(), Arc::clone(&limiter)).with_sessions(Arc::clone(&sessions));
        Self {
            policy,
            layer,
            handlers: Arc::new(Handlers { limiter, factors, sessions, notices, local: OnceLock::new() }),
        }
    }

    /// Lets pages of `http://localhost` at that port use passkeys, too, if the policy's are of `localhost`: for a server on this machine
    /// whose port the policy cannot know. Elsewhere the policy's origins are all. The first call counts.
    pub fn let_pages_at(&self, port: u16) {
        self.handlers.local.get_or_init(|| port);
    }

    /// The origin of pages on this machine that may use passkeys, if there are any.
    #[must_use]
    pub fn local_origin(&self) -> Option<String> {
        let policy = self.policy.current();
        let party = self.handlers.party(&policy).ok().flatten();
        let is_of_this_machine = party.is_some_and(|party| party.id() == passkeys::LOCAL);
        self.handlers.local.get().filter(|_| is_of_this_machine).map(|port| passkeys::local(*port))
    }

    /// The factors.
    #[must_use]
    pub fn factors(&self) -> &Factors<V> {
        &self.handlers.factors
    }

    /// Answers one request.
    ///
    /// # Errors
    ///
    /// A response that cannot be built.
    pub async fn call(&self, mut request: Request) -> Result<Response<Body>, Error> {
        // Read once, for the layer and for the handlers.
        let facts = Facts::of(request.extensions()).into_owned();
        // The path without the stage that API Gateway puts in front of it.
        let path = facts.path().unwrap_or(request.uri().path());
        let Some((methods, wish)) = wish(request.method(), path) else { return Ok(reply::nothing_here()) };
        let policy = self.policy.current();
        let is_here = policy.mfa().is_ok_and(|rules| rules.passkeys.is_some() || !path.starts_with(PASSKEYS));
        if !is_here {
            return Ok(reply::nothing_here());
        }
        let Some(wish) = wish else {
            let is_preflight = request.method() == Method::OPTIONS;
            return Ok(if is_preflight { reply::preflight(methods) } else { reply::other_method(methods) });
        };
        // Whoever has the link of a notice has nobody vouch for him.
        let asker = match Asker::of(&policy, &facts) {
            Ok(_) if wish == Wish::Cancel => None,
            Ok(Some(asker)) => Some(asker),
            Ok(None) => return Ok(reply::unauthenticated()),
            Err(error) => return Ok(answer::failed(&error.into())),
        };
        request.extensions_mut().insert(facts);
        let handlers = Arc::clone(&self.handlers);
        let handle = service_fn(move |request: Request| {
            let (handlers, policy, asker) = (Arc::clone(&handlers), Arc::clone(&policy), asker.clone());
            async move { Ok(handlers.answer(wish, &policy, asker.as_ref(), &request).await) }
        });
        // Boxed, since the SDK's futures nest deeper than the compiler follows by itself.
        Box::pin(self.layer.layer(handle).oneshot(request)).await
    }
}

impl<S: Store, V: Vault> Handlers<S, V> {
    async fn answer(&self, wish: Wish, policy: &Policy, asker: Option<&Asker>, request: &Request) -> Response<Body> {
        if !request.extensions().get::<Decision>().is_some_and(Decision::is_counted) {
            tracing::error!(
                "nothing is done, since the policy has no route with limits for it, or one that is not closed"
            );
            return answer::unavailable();
        }
        let answered = match (wish, asker) {
            (Wish::Cancel, _) => Box::pin(self.cancel(policy, request)).await,
            (_, None) => return reply::unauthenticated(),
            (Wish::Enrol, Some(asker)) => Box::pin(self.enrol(policy, asker, request)).await,
            (Wish::Confirm, Some(asker)) => Box::pin(self.confirm(policy, asker, request)).await,
            (Wish::Verify, Some(asker)) => Box::pin(self.verify(policy, asker, request)).await,
            (Wish::Generate, Some(asker)) => Box::pin(self.generate(policy, asker, request)).await,
            (Wish::List, Some(asker)) => Box::pin(self.list(policy, asker)).await,
            (Wish::AskToRegister, Some(asker)) => Box::pin(self.ask_to_register(policy, asker, request)).await,
            (Wish::Register, Some(asker)) => Box::pin(self.register(policy, asker, request)).await,
            (Wish::AskToAssert, Some(asker)) => Box::pin(self.ask_to_assert(policy, asker, request)).await,
            (Wish::Remove(removed), Some(asker)) => Box::pin(self.remove(policy, asker, removed, request)).await,
            (Wish::Recovery(step), Some(asker)) => match step {
                Step::Request => Box::pin(self.request(policy, asker, request)).await,
                Step::Show => Box::pin(self.recovery(policy, asker, request)).await,
                Step::Approve => Box::pin(self.approve(policy, asker, request)).await,
                Step::Refuse => Box::pin(self.refuse(policy, asker, request)).await,
                Step::Complete => Box::pin(self.complete(policy, asker, request)).await,
                Step::Withdraw => Box::pin(self.withdraw(policy, asker, request)).await,
            },
            (Wish::Show, Some(asker)) => Box::pin(self.show(policy, asker)).await,
            (Wish::Put, Some(asker)) => Box::pin(self.put(policy, asker, request)).await,
        };
        answered.unwrap_or_else(|error| {
            let facts = Facts::of(request.extensions());
            let path = facts.path().unwrap_or(request.uri().path());
            let answer = answer::failed(&error);
            let matched = policy.route(request.method().as_str(), path).filter(|_| answer.status().is_server_error());
            if let Some(matched) = matched {
                let event = Event::StepUpUnavailable(matched.route.pattern().as_str());
                self.limiter.store().meter().record(event);
            }
            answer
        })
    }
}
