//! Whose code it is, and where one goes.
//!
//! Invariant: an account is what the authorizer vouches for, a destination what the directory does; no part of either is the
//! request's own.

use lambda_http::Request;
use tollgate::http::{Facts, vouched};
use tollgate::tollgate_policy::{Error, Purpose};
use tollgate::{Key, Policy};
use tollgate_otp::{Destination, Directory, Recipient};

/// The dimensions that are an account, as the policy's `[identity]` has them.
const USER: &str = "user";
const TENANT: &str = "tenant";

/// What a code is bound to where it goes nowhere. No number is spelt like this.
const NOWHERE: &str = "nowhere";

/// Who asks, once an authorizer has let him in.
pub(crate) struct Caller {
    /// The user, in its one spelling.
    pub(crate) user: String,
    /// The account; personal values as hashes.
    pub(crate) account: Key,
    /// The account as the directory knows it.
    profile: Key,
}

/// Who a code is for.
pub(crate) struct Addressed {
    /// Where it goes; `None` if the account has no verified number or address, or one that codes are not sent to.
    pub(crate) to: Option<Destination>,
    /// Whose it is.
    pub(crate) recipient: Recipient,
}

impl Caller {
    /// The caller of a request; `None` if nobody vouches for one.
    pub(crate) fn of(policy: &Policy, request: &Request) -> Result<Option<Self>, Error> {
        let facts = Facts::of(request.extensions());
        // Whoever could choose his own account would be sent others' codes.
        let vouched = |dimension: &str| vouched(policy, &facts, dimension);
        let Some(user) = policy.value(USER, vouched)? else { return Ok(None) };
        let mut pairs = vec![(USER, user.clone())];
        pairs.extend(policy.value(TENANT, vouched)?.map(|tenant| (TENANT, tenant)));
        let profile = Key::new(pairs.clone())?;
        // Under the active secret: codes of an account that is known by a hash end when that rotates.
        let account = policy.keys(&pairs)?.into_iter().next();
        Ok(account.map(|account| Self { user, account, profile }))
    }

    /// Who its code for `purpose` is for.
    pub(crate) async fn addressed<D: Directory>(
        &self,
        policy: &Policy,
        purpose: &Purpose,
        directory: &D,
    ) -> tollgate_otp::Result<Addressed> {
        let (rules, _) = policy.otp_for(purpose.as_str())?;
        let profile = directory.profile(&self.profile).await?;
        let to = Destination::of(&profile.unwrap_or_default(), rules);
        let address = to.as_ref().map_or(NOWHERE, Destination::address);
        let recipient = Recipient::new(self.account.clone(), purpose.clone(), address)?;
        Ok(Addressed { to, recipient })
    }
}
