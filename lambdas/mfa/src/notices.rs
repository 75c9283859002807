//! Who is told that his factors change: every number and address of his verified profile, by the queue that codes go through.
//!
//! Invariants: a notice is queued before what it tells of is done; where it goes, the profile says, never a request; no log has it.

use futures_util::future::try_join_all;
use std::fmt;
use std::pin::Pin;
use std::sync::Arc;
use tollgate::{Key, Policy};
use tollgate_otp::{Courier, Destination, Directory, Errand, Notice};

/// What is told, and the link that undoes it.
#[derive(Clone)]
pub struct Telling {
    /// What happens, a sentence without its full stop.
    pub what: String,
    /// What whoever did not want it follows.
    pub link: Option<String>,
}

/// Without the link.
impl fmt::Debug for Telling {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Telling").field("what", &self.what).finish_non_exhaustive()
    }
}

/// Nobody can be told. No text has a number or an address.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Untold(String);

impl fmt::Display for Untold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// What a telling becomes.
pub type Told<'a> = Pin<Box<dyn Future<Output = Result<(), Untold>> + Send + 'a>>;

/// Tells people.
pub trait Tell: fmt::Debug + Send + Sync {
    /// Tells whoever owns an account, wherever he can be reached.
    fn tell<'a>(&'a self, policy: &'a Policy, account: &'a Key, telling: &'a Telling) -> Told<'a>;
}

/// Notices by the courier of codes, to whom the directory says.
pub struct Notices<D, C> {
    directory: D,
    courier: Arc<C>,
}

impl<D, C> Notices<D, C> {
    /// By these two.
    pub fn new(directory: D, courier: Arc<C>) -> Self {
        Self { directory, courier }
    }
}

impl<D, C> fmt::Debug for Notices<D, C> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notices").finish_non_exhaustive()
    }
}

impl<D: Directory, C: Courier> Tell for Notices<D, C> {
    fn tell<'a>(&'a self, policy: &'a Policy, account: &'a Key, telling: &'a Telling) -> Told<'a> {
        Box::pin(async move {
            let Some(rules) = policy.otp() else { return Ok(()) };
            let profile = self.directory.profile(account).await.map_err(|error| Untold(error.to_string()))?;
            let all = profile.map(|profile| Destination::all(&profile, rules)).unwrap_or_default();
            if all.is_empty() {
                tracing::warn!("nobody is told of a change of factors, since the profile has nothing verified");
            }
            let issuer = policy.mfa().map_or("", |rules| rules.issuer.as_str());
            let rest = match &telling.link {
                Some(link) => format!("If this was not you, cancel it: {link}"),
                None => "If this was not you, tell us at once.".to_owned(),
            };
            let text = format!("{issuer}: {}. {rest}", telling.what);
            let take = |to| {
                let subject = format!("{issuer}: your second factors");
                let notice = Notice { to, text: text.clone().into(), subject };
                self.courier.take(Errand::Notify(Box::new(notice)))
            };
            try_join_all(all.into_iter().map(take)).await.map(drop).map_err(|error| Untold(error.to_string()))
        })
    }
}
