//! The function as it is deployed: its vault is KMS.
//!
//! | variable | value | default |
//! | --- | --- | --- |
//! | `TOLLGATE_MFA_KEY_ARN` | the ARN of the KMS key that new secrets of factors are sealed under | required |

use crate::Service;
use lambda_http::{Error, Request};
use std::process::ExitCode;
use std::sync::Arc;
use tollgate::http::event;
use tollgate::lambda::{Function, InitError};
use tollgate_dynamodb::Items;
use tollgate_mfa::factors::Factors;
use tollgate_mfa_aws::{KmsVault, config};

/// The variable that names the key.
const KEY: &str = "TOLLGATE_MFA_KEY_ARN";

/// Runs the function until its sandbox ends.
pub fn main() -> ExitCode {
    tollgate::lambda::main(serve)
}

async fn serve(function: Function) -> Result<(), Error> {
    let vault = vault().await?;
    let items = Items::new(function.limiter.store().clone());
    let factors = Factors::new(items.with_deadline(Items::DEADLINE.max(function.deadline())), vault);
    let (live, limiter) = (function.live().clone(), Arc::clone(&function.limiter));
    let service = Service::new(live, limiter, factors, function.sessions());
    let (function, service) = (&function, &service);
    let answer = move |request: Request| async move {
        // Looks for a newer policy if it is time; the layer asks for the one in force.
        let _invocation = function.begin().await;
        service.call(request).await
    };
    event::run(answer).await
}

async fn vault() -> Result<KmsVault, InitError> {
    let give = "the ARN of a KMS key, like arn:aws:kms:eu-central-1:123456789012:key/ID";
    let key = std::env::var(KEY).ok().filter(|key| !key.is_empty());
    let key = key.ok_or(InitError::Missing { name: KEY, give })?;
    let vault = KmsVault::new(&config().await, &key);
    vault.map_err(|_| InitError::Invalid { name: KEY, value: key, give: give.to_owned() })
}
