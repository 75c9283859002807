//! What a Lambda function does in init: read its environment, load the policy, start its logs and metrics, warm its connection.
//!
//! Invariants: what only a new deployment can mend (a missing variable, a bad policy) fails init and says so in one
//! line; a table that gives no answer does not, since a limiter without its table still has to answer, by
//! `on_store_failure`. By the first invocation, client, credentials, connection, TLS and clock offset are warm.
//!
//! ```no_run
//! use tollgate::lambda::{self, Function};
//!
//! fn main() -> std::process::ExitCode {
//!     lambda::main(async |function: Function| {
//!         let function = &function;
//!         lambda_runtime::run(lambda_runtime::service_fn(async move |event: lambda_runtime::LambdaEvent<String>| {
//!             let policy = function.begin().await;
//!             Ok::<_, lambda_runtime::Error>(format!("{} has {} limits", event.payload, policy.limits().len()))
//!         }))
//!         .await
//!     })
//! }
//! ```
//!
//! # Layout
//!
//! | module | what it is |
//! | --- | --- |
//! | [`settings`] | the environment variables |
//! | [`function`] | a function's parts, ready for invocations; its metrics are written at the end of each |
//! | [`error`] | what fails init, and how Lambda is told |

pub mod error;
pub mod function;
pub mod settings;

pub use error::InitError;
pub use function::{Function, Invocation};
pub use settings::Settings;

use crate::logs;
use std::error::Error as StdError;
use std::process::ExitCode;

/// What ends a function: an [`InitError`], or an error of the Runtime API.
pub type Failure = Box<dyn StdError + Send + Sync>;

/// The whole of the `main` of a function that decides: [`run`], with the function's parts.
pub fn main<S>(serve: S) -> ExitCode
where
    S: AsyncFnOnce(Function) -> Result<(), Failure>,
{
    run(async || serve(Function::from_environment().await?).await)
}

/// The whole of a function's `main`: logs, and `serve`, which does init and then runs until the sandbox ends. An [`InitError`] of it is
/// reported to Lambda.
///
/// One thread runs everything: a sandbox has one invocation at a time and below 1,769 MB less than one core, where more
/// threads only take turns and cost start-up time.
///
/// The exit code is 1 if init fails, which Lambda has then been told, or if the Runtime API does.
pub fn run<S>(serve: S) -> ExitCode
where
    S: AsyncFnOnce() -> Result<(), Failure>,
{
    logs::init();
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!(%error, "the async runtime cannot start");
            return ExitCode::FAILURE;
        }
    };
    runtime.block_on(async {
        let served = async {
            settings::check_lambda()?;
            serve().await
        };
        match served.await {
            Ok(()) => ExitCode::SUCCESS,
            Err(error) => {
                match error.downcast_ref::<InitError>() {
                    Some(error) => error.report().await,
                    None => tracing::error!(%error, "the Runtime API failed"),
                }
                ExitCode::FAILURE
            }
        }
    })
}
