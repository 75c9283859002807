//! The function as it is deployed: its vault is KMS.
//!
//! | variable | value | default |
//! | --- | --- | --- |
//! | `TOLLGATE_MFA_KEY_ARN` | the ARN of the KMS key that new secrets of factors are sealed under | required |
//! | `TOLLGATE_OTP_QUEUE_URL` | the queue of messages, for notices of changes | nobody is told of a change |
//! | `TOLLGATE_USER_POOL_ID` | the Cognito user pool with the profiles | required with the queue |

use crate::Service;
use crate::notices::{Notices, Tell};
use lambda_http::{Error, Request};
use std::process::ExitCode;
use std::sync::Arc;
use tollgate::http::event;
use tollgate::lambda::{Function, InitError};
use tollgate_dynamodb::Items;
use tollgate_mfa::factors::Factors;
use tollgate_mfa_aws::{KmsVault, config};
use tollgate_otp_aws::{Cognito, Queue};

/// The variable that names the key.
const KEY: &str = "TOLLGATE_MFA_KEY_ARN";

/// The variables that say how people are told.
const QUEUE: &str = "TOLLGATE_OTP_QUEUE_URL";
const POOL: &str = "TOLLGATE_USER_POOL_ID";

/// Runs the function until its sandbox ends.
pub fn main() -> ExitCode {
    tollgate::lambda::main(serve)
}

async fn serve(function: Function) -> Result<(), Error> {
    let vault = vault().await?;
    let items = Items::new(function.limiter.store().clone());
    let factors = Factors::new(items.with_deadline(Items::DEADLINE.max(function.deadline())), vault);
    let notices = notices(&function).await?;
    let (live, limiter) = (function.live().clone(), Arc::clone(&function.limiter));
    let service = Service::new(live, limiter, factors, function.sessions(), notices);
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

/// Who is told of changes: nobody, where there is no queue of messages.
async fn notices(function: &Function) -> Result<Option<Arc<dyn Tell>>, InitError> {
    let value = |name: &str| std::env::var(name).ok().filter(|value| !value.is_empty());
    let Some(queue) = value(QUEUE) else {
        tracing::warn!("without {QUEUE} nobody is told of changes of his factors, and none can be cancelled");
        return Ok(None);
    };
    let give = "the id of the user pool that has the verified numbers and addresses";
    let pool = value(POOL).ok_or(InitError::Missing { name: POOL, give })?;
    let sdk = tollgate_otp_aws::config().await;
    let secrets = function.live().current().secrets().clone();
    Ok(Some(Arc::new(Notices::new(Cognito::new(&sdk, pool), Arc::new(Queue::new(&sdk, queue, secrets))))))
}
