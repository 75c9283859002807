//! The policy in production: where it is read from, and how a newer one comes into force without a deployment.
//!
//! Invariant: whatever happens to the source, the last policy that was good stays in force. Nothing runs between
//! invocations: a Lambda execution environment is frozen then, so [`Refresher::refresh_if_due`] is called at the start
//! of each.
//!
//! | module | what it is |
//! | --- | --- |
//! | `place` | [`PolicySource`], as `TOLLGATE_POLICY` writes it |
//! | `reader` | one place, read again and again: what changed, one retry, a deadline |
//! | `file`, `ssm`, `secretsmanager`, `s3`, `appconfig` | one module a service |
//! | `aws` | a signed request and its answer, within bounds |
//! | `refresher` | [`Refresher`]: the policy in force, as old as it may be |
//! | `secrets` | [`SecretsSource`]: where the secrets are that personal values are hashed under |
//! | `changes` | what the log says of a policy that replaces another |
//! | `age` | a clock for ages, which counts frozen time |
//!
//! ```no_run
//! use std::sync::Arc;
//! use tollgate::source::{PolicySource, RefreshOptions, Refresher};
//! use tollgate::Counters;
//!
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let source: PolicySource = "ssm:/tollgate/policy".parse()?;
//! // In init: without a good policy there is nothing to serve.
//! let refresher = Refresher::start(source, Arc::new(Counters::default()), RefreshOptions::default()).await?;
//! // In each invocation:
//! refresher.refresh_if_due().await;
//! let policy = refresher.live().current();
//! # Ok(())
//! # }
//! ```

mod age;
mod appconfig;
mod aws;
mod changes;
mod error;
mod file;
mod place;
mod reader;
mod refresher;
mod s3;
mod secrets;
mod secretsmanager;
mod ssm;

pub use error::{Error, Result};
pub use place::PolicySource;
pub use reader::{Loaded, Reader, ReaderOptions};
pub use refresher::{RefreshOptions, Refreshed, Refresher};
pub use secrets::{SecretsError, SecretsSource};

/// Bytes that a policy may have. Lambda's own limits are far above, a policy's needs far below.
pub const MAX_BYTES: usize = 1 << 20;
