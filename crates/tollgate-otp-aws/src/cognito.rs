//! Verified numbers and addresses of a Cognito user pool.
//!
//! Invariant: an attribute that the pool does not say is verified is none, and a user that is disabled has none.

use crate::failure::told;
use crate::once_more;
use aws_config::SdkConfig;
use aws_sdk_cognitoidentityprovider::Client;
use aws_sdk_cognitoidentityprovider::types::AttributeType;
use aws_smithy_types::timeout::TimeoutConfig;
use std::time::Duration;
use tollgate_core::Key;
use tollgate_otp::{Directory, DirectoryError, Profile};

/// What a look-up may take: somebody waits for it.
const LONGEST: Duration = Duration::from_secs(2);

/// The users of a pool, by `sub` or name (`AdminGetUser`).
#[derive(Debug)]
pub struct Cognito {
    client: Client,
    pool: String,
}

impl Cognito {
    /// The pool of this id.
    #[must_use]
    pub fn new(config: &SdkConfig, pool: impl Into<String>) -> Self {
        let timeouts =
            TimeoutConfig::builder().operation_timeout(LONGEST).operation_attempt_timeout(LONGEST / 2).build();
        let config = aws_sdk_cognitoidentityprovider::config::Builder::from(config).retry_config(once_more());
        Self { client: Client::from_conf(config.timeout_config(timeouts).build()), pool: pool.into() }
    }
}

impl Directory for Cognito {
    async fn profile(&self, account: &Key) -> Result<Option<Profile>, DirectoryError> {
        let Some((_, user)) = account.dimensions().find(|(name, _)| *name == "user") else { return Ok(None) };
        match self.client.admin_get_user().user_pool_id(&self.pool).username(user).send().await {
            Ok(found) if found.enabled => Ok(Some(verified(found.user_attributes()))),
            Ok(_) => Ok(None),
            Err(error) if error.as_service_error().is_some_and(|e| e.is_user_not_found_exception()) => Ok(None),
            Err(error) => Err(DirectoryError(told(&error))),
        }
    }
}

fn verified(attributes: &[AttributeType]) -> Profile {
    let value = |name: &str| attributes.iter().find(|found| found.name() == name).and_then(AttributeType::value);
    let verified = |name: &str| value(name).filter(|_| value(&format!("{name}_verified")) == Some("true"));
    let mut profile = Profile::default();
    profile.verified_phone = verified("phone_number").map(str::to_owned);
    profile.verified_email = verified("email").map(str::to_owned);
    profile
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_verified_is_of_a_profile() {
        let of = |attributes: &[(&str, &str)]| {
            let attribute =
                |(name, value): &(&str, &str)| AttributeType::builder().name(*name).value(*value).build().unwrap();
            verified(&attributes.iter().map(attribute).collect::<Vec<_>>())
        };
        let phone = ("phone_number", "+40721234567");
        let with_phone = Profile::default().with_phone("+40721234567");
        assert_eq!(of(&[phone, ("phone_number_verified", "true")]), with_phone);
        assert_eq!(of(&[phone, ("phone_number_verified", "true"), ("email", "a@x.org")]), with_phone);
        assert_eq!(of(&[("email", "a@x.org"), ("email_verified", "true")]), Profile::default().with_email("a@x.org"));
        for unverified in
            [&[phone][..], &[phone, ("phone_number_verified", "false")], &[phone, ("email_verified", "true")]]
        {
            assert_eq!(of(unverified), Profile::default());
        }
    }
}
