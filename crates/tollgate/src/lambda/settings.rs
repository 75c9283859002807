//! The environment variables of a function.
//!
//! Invariant: settings are checked whole before anything is opened; a message names the variable and what to give it.

use super::error::{InitError, Result};
use crate::metrics::Metrics;
use crate::source::{PolicySource, SecretsSource};
use std::num::NonZeroU64;
use std::path::Path;
use std::time::Duration;
use tollgate_policy::Policy;

/// What Lambda itself sets ("Defined runtime environment variables"), and without which its runtime panics.
const SET_BY_LAMBDA: [&str; 4] = [
    "AWS_LAMBDA_RUNTIME_API",
    "AWS_LAMBDA_FUNCTION_NAME",
    "AWS_LAMBDA_FUNCTION_VERSION",
    "AWS_LAMBDA_FUNCTION_MEMORY_SIZE",
];

/// What the environment says.
///
/// | variable | value | default |
/// | --- | --- | --- |
/// | `TOLLGATE_TABLE` | the DynamoDB table | required |
/// | `TOLLGATE_POLICY` | the policy: a file (a relative path starts at the function's root), `ssm:`, `secretsmanager:`, `s3://` or `appconfig://` | `tollgate.toml` |
/// | `TOLLGATE_POLICY_REFRESH_S` | seconds after which an invocation looks for a newer policy, 1 to 86,400 | 60 |
/// | `TOLLGATE_DEADLINE_MS` | milliseconds that a decision may take, 1 to 60,000 | 50 |
/// | `TOLLGATE_INSTANCES` | how many environments share the limits where each decides by itself, 1 to 1,000,000, in place of the policy's `instances`: the reserved concurrency of all functions on the table | the policy's |
/// | `TOLLGATE_KEY_SECRETS` | secrets that personal values are hashed under, like `k2=SECRET,k1=SECRET` ([`KeySecrets`](tollgate_policy::KeySecrets)) | none |
/// | `TOLLGATE_KEY_SECRETS_PARAMETER` | or the name of an SSM parameter (`SecureString`) with that text | none |
/// | `TOLLGATE_KEY_SECRETS_SECRET` | or the name of a secret of Secrets Manager with that text | none |
/// | `TOLLGATE_METRICS` | `on`, or `off` for none | `on` |
/// | `TOLLGATE_METRICS_NAMESPACE` | the namespace that CloudWatch has them in | `Tollgate` |
/// | `TOLLGATE_ENDPOINT_URL` | another DynamoDB endpoint than the Region's | none |
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Settings {
    /// The table.
    pub table: String,
    /// Where the policy is.
    pub policy: PolicySource,
    /// The age at which an invocation looks for a newer policy.
    pub policy_refresh: Duration,
    /// What a decision may take, all its requests and waits included.
    pub deadline: Duration,
    /// How many environments share the limits where each decides by itself; `None` if the policy says.
    pub instances: Option<NonZeroU64>,
    /// Another DynamoDB endpoint than the Region's.
    pub endpoint_url: Option<String>,
    /// Where the secrets are that personal values are hashed under.
    pub key_secrets: SecretsSource,
    /// Where metrics go; `None` if they are off.
    pub metrics: Option<MetricsNames>,
}

/// Whether Lambda has started this process.
pub(super) fn check_lambda() -> Result<()> {
    let missing = SET_BY_LAMBDA.into_iter().find(|name| value(name, variable).is_none());
    missing.map_or(Ok(()), |name| Err(InitError::NotLambda(name)))
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// What metrics are found under.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct MetricsNames {
    /// The namespace in CloudWatch.
    pub namespace: String,
    /// The dimension `Service`: the function's name.
    pub service: String,
}

impl Settings {
    /// Default deadline of a decision, milliseconds. DynamoDB answers in single-digit milliseconds; what takes ten times as long is
    /// better decided by `on_store_failure`.
    pub const DEADLINE_MS: u64 = 50;

    /// Settings of this process.
    ///
    /// # Errors
    ///
    /// [`InitError::Missing`] or [`InitError::Invalid`] for the first variable that is wrong.
    pub fn from_environment() -> Result<Self> {
        check_lambda()?;
        Self::from_lookup(variable)
    }

    /// Settings as `lookup` tells them; a variable that is set to nothing counts as not set.
    ///
    /// # Errors
    ///
    /// As [`Settings::from_environment`], and [`InitError::Secrets`].
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Self> {
        let table = value("TOLLGATE_TABLE", &lookup);
        let table = table.ok_or(InitError::Missing { name: "TOLLGATE_TABLE", give: "the DynamoDB table's name" })?;
        let policy = value("TOLLGATE_POLICY", &lookup).unwrap_or_else(|| "tollgate.toml".to_owned());
        let root = value("LAMBDA_TASK_ROOT", &lookup).unwrap_or_default();
        let policy = match policy.parse()? {
            PolicySource::File(path) => PolicySource::File(Path::new(&root).join(path)),
            elsewhere => elsewhere,
        };
        let given = |name, most| value(name, &lookup).map(|text| whole(name, text, most)).transpose();
        let whole = |name, most, default| given(name, most).map(|given| given.unwrap_or(default));
        Ok(Self {
            table,
            policy,
            policy_refresh: Duration::from_secs(whole("TOLLGATE_POLICY_REFRESH_S", 86_400, 60)?),
            deadline: Duration::from_millis(whole("TOLLGATE_DEADLINE_MS", 60_000, Self::DEADLINE_MS)?),
            instances: given("TOLLGATE_INSTANCES", Policy::MOST_INSTANCES)?.and_then(NonZeroU64::new),
            endpoint_url: value("TOLLGATE_ENDPOINT_URL", &lookup),
            key_secrets: SecretsSource::from_lookup(&lookup)?,
            metrics: metrics(&lookup)?,
        })
    }
}

fn value(name: &str, lookup: impl Fn(&str) -> Option<String>) -> Option<String> {
    lookup(name).filter(|value| !value.is_empty())
}

fn metrics(lookup: &impl Fn(&str) -> Option<String>) -> Result<Option<MetricsNames>> {
    let or = |name, default: &str| value(name, lookup).unwrap_or_else(|| default.to_owned());
    match or("TOLLGATE_METRICS", "on").as_str() {
        "on" => Ok(Some(MetricsNames {
            namespace: or("TOLLGATE_METRICS_NAMESPACE", Metrics::NAMESPACE),
            service: or("AWS_LAMBDA_FUNCTION_NAME", "function"),
        })),
        "off" => Ok(None),
        other => {
            Err(InitError::Invalid { name: "TOLLGATE_METRICS", value: other.to_owned(), give: "on or off".to_owned() })
        }
    }
}

/// A whole number from 1 to `most`.
fn whole(name: &'static str, text: String, most: u64) -> Result<u64> {
    let number = text.parse().ok().filter(|number| (1..=most).contains(number));
    number.ok_or_else(|| InitError::Invalid { name, value: text, give: format!("a whole number from 1 to {most}") })
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Result<Settings> {
        let find = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
        Settings::from_lookup(find)
    }

    #[test]
    fn only_the_table_must_be_named() {
        let settings = of(&[("TOLLGATE_TABLE", "limits"), ("LAMBDA_TASK_ROOT", "/var/task")]).unwrap();
        assert_eq!((settings.table.as_str(), settings.deadline), ("limits", Duration::from_millis(50)));
        assert_eq!(
            (settings.policy, settings.endpoint_url),
            (PolicySource::File("/var/task/tollgate.toml".into()), None)
        );
        for variables in [&[][..], &[("TOLLGATE_TABLE", "")]] {
            assert_eq!(
                of(variables).unwrap_err().to_string(),
                "TOLLGATE_TABLE is not set; give it the DynamoDB table's name"
            );
        }
    }

    #[test]
    fn the_policy_is_looked_for_in_the_functions_root_unless_its_path_is_absolute() {
        let policy = |path| {
            let root = ("LAMBDA_TASK_ROOT", "/var/task");
            of(&[("TOLLGATE_TABLE", "t"), root, ("TOLLGATE_POLICY", path)]).unwrap().policy
        };
        let file = |path: &str| PolicySource::File(path.into());
        assert_eq!(policy("conf/limits.toml"), file("/var/task/conf/limits.toml"));
        assert_eq!(policy("/opt/limits.toml"), file("/opt/limits.toml"));
        assert_eq!(policy("ssm:/tollgate/policy"), "ssm:/tollgate/policy".parse().unwrap());
    }

    #[test]
    fn instances_are_the_policys_unless_they_are_told() {
        let instances = |text| of(&[("TOLLGATE_TABLE", "t"), ("TOLLGATE_INSTANCES", text)]).map(|s| s.instances);
        assert_eq!((instances("").unwrap(), instances("20").unwrap()), (None, NonZeroU64::new(20)));
        for bad in ["0", "1000001", "many"] {
            assert!(instances(bad).unwrap_err().to_string().contains("from 1 to 1000000"), "{bad}");
        }
    }

    #[test]
    fn metrics_are_on_unless_they_are_off() {
        let names =
            |more: &[(&str, &str)]| of(&[&[("TOLLGATE_TABLE", "t"), ("AWS_LAMBDA_FUNCTION_NAME", "f")], more].concat());
        let found = |more: &[(&str, &str)]| names(more).unwrap().metrics.map(|to| (to.namespace, to.service));
        let is = |namespace: &str| Some((namespace.to_owned(), "f".to_owned()));
        assert_eq!(found(&[]), is("Tollgate"));
        assert_eq!(
            found(&[("TOLLGATE_METRICS", "on"), ("TOLLGATE_METRICS_NAMESPACE", "Shop/Limits")]),
            is("Shop/Limits")
        );
        assert_eq!(found(&[("TOLLGATE_METRICS", "off")]), None);
        let message = names(&[("TOLLGATE_METRICS", "no")]).unwrap_err().to_string();
        assert_eq!(message, "TOLLGATE_METRICS is \"no\"; give it on or off");
    }

    #[test]
    fn a_deadline_is_whole_milliseconds_up_to_a_minute() {
        let deadline = |text| of(&[("TOLLGATE_TABLE", "t"), ("TOLLGATE_DEADLINE_MS", text)]);
        assert_eq!(deadline("1").unwrap().deadline, Duration::from_millis(1));
        assert_eq!(deadline("60000").unwrap().deadline, Duration::from_secs(60));
        for bad in ["0", "60001", "-1", "1.5", "50ms", "99999999999999999999999"] {
            let message = deadline(bad).unwrap_err().to_string();
            assert!(message.contains(bad) && message.contains("from 1 to 60000"), "{message}");
        }
    }
}
