//! What fails init, and how Lambda is told.
//!
//! Invariant: whatever failed is told in one line, in the log and to the Runtime API, so that the console shows it.

use lambda_runtime_api_client::body::Body;
use lambda_runtime_api_client::{BoxError, Client, build_request};
use std::io::ErrorKind;

/// A result of init.
pub type Result<T> = std::result::Result<T, InitError>;

/// Why a function cannot start; only a new deployment mends these.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum InitError {
    /// The program was started by something else.
    #[error("{0} is not set; this program is an AWS Lambda function and is started by Lambda")]
    NotLambda(&'static str),
    /// A variable is missing.
    #[error("{name} is not set; give it {give}")]
    Missing {
        /// The variable.
        name: &'static str,
        /// What it should have.
        give: &'static str,
    },
    /// A variable has a value that cannot be used.
    #[error("{name} is {value:?}; give it {give}")]
    Invalid {
        /// The variable.
        name: &'static str,
        /// What it has.
        value: String,
        /// What it should have.
        give: String,
    },
    /// The policy cannot be read or has mistakes.
    #[error(transparent)]
    Policy(#[from] crate::source::Error),
    /// The secrets that personal values are hashed under cannot be read.
    #[error(transparent)]
    Secrets(#[from] crate::source::SecretsError),
    /// CloudWatch would not take the metrics under these names.
    #[error("TOLLGATE_METRICS_NAMESPACE, or the function's name: {0}")]
    Metrics(#[from] crate::metrics::BadName),
    /// A secret of the function's own cannot be read.
    #[error("{name}: {cause}")]
    Secret {
        /// The variable that says where it is.
        name: &'static str,
        /// Why.
        cause: Box<crate::source::Error>,
    },
    /// There is no Region, or the endpoint is none.
    #[error(transparent)]
    Connection(#[from] tollgate_dynamodb::Error),
}

impl InitError {
    /// A name for it, as the Runtime API wants one: a category and a reason.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::NotLambda(_) | Self::Missing { .. } | Self::Invalid { .. } | Self::Metrics(_) => {
                "Tollgate.Environment"
            }
            Self::Policy(_) => "Tollgate.Policy",
            Self::Secrets(_) | Self::Secret { .. } => "Tollgate.Secrets",
            Self::Connection(_) => "Tollgate.Connection",
        }
    }

    /// All of it in one line: the mistakes of a policy are many, a log event is one.
    #[must_use]
    pub fn line(&self) -> String {
        let text = self.to_string();
        let lines: Vec<_> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        lines.join("; ")
    }

    /// Logs it, and reports it to the Runtime API ("Initialization error",
    /// <https://docs.aws.amazon.com/lambda/latest/dg/runtimes-api.html>).
    pub async fn report(&self) {
        let line = self.line();
        tracing::error!(kind = self.kind(), "init failed: {line}");
        if let Err(error) = self.post(&line).await {
            tracing::error!(%error, "the Runtime API did not take the report");
        }
    }

    async fn post(&self, line: &str) -> std::result::Result<(), BoxError> {
        let Ok(api) = std::env::var("AWS_LAMBDA_RUNTIME_API") else { return Ok(()) };
        let client = Client::builder().with_endpoint(api.parse()?).build()?;
        let body = serde_json::json!({ "errorType": self.kind(), "errorMessage": line, "stackTrace": [] });
        let request = build_request()
            .method("POST")
            .uri("/2018-06-01/runtime/init/error")
            .header("lambda-runtime-function-error-type", self.kind())
            .body(Body::from(body.to_string()))?;
        let status = client.call(request).await?.status();
        if status.is_success() {
            return Ok(());
        }
        Err(std::io::Error::new(ErrorKind::InvalidData, format!("it answered {status}")).into())
    }
}
