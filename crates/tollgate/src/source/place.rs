//! Where a policy is kept, as text and as a value. Invariant: what is shown can be parsed again, to the same place.

use super::{Error, Result};
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

/// Where a policy is kept: the value of `TOLLGATE_POLICY`.
///
/// ```
/// use tollgate::source::PolicySource;
///
/// let source: PolicySource = "s3://config-bucket/tollgate/tollgate.toml".parse()?;
/// assert_eq!(source, PolicySource::S3 { bucket: "config-bucket".into(), key: "tollgate/tollgate.toml".into() });
/// # Ok::<(), tollgate::source::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum PolicySource {
    /// `PATH`: a file, for instance one that was deployed with the function.
    File(PathBuf),
    /// `ssm:NAME`: a parameter of Systems Manager, String or `SecureString`, up to 4 KB (8 KB as an advanced parameter).
    Ssm {
        /// The name, like `/tollgate/policy`, or an ARN.
        name: String,
    },
    /// `secretsmanager:ID`: the text of a secret of Secrets Manager.
    Secret {
        /// The name, or an ARN.
        id: String,
    },
    /// `s3://BUCKET/KEY`: an object, in a bucket of the function's Region.
    S3 {
        /// The bucket.
        bucket: String,
        /// The key, not percent-encoded.
        key: String,
    },
    /// `appconfig://APPLICATION/ENVIRONMENT/PROFILE`: a configuration profile of AppConfig, by names or ids.
    AppConfig {
        /// The application.
        application: String,
        /// The environment.
        environment: String,
        /// The configuration profile.
        profile: String,
    },
}

impl FromStr for PolicySource {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let wrong = |help| Error::NoPlace { given: text.to_owned(), help };
        if let Some(name) = text.strip_prefix("ssm:") {
            let name = name.to_owned();
            return if name.is_empty() { Err(wrong("write ssm:/tollgate/policy")) } else { Ok(Self::Ssm { name }) };
        }
        if let Some(id) = text.strip_prefix("secretsmanager:") {
            let id = id.to_owned();
            return if id.is_empty() {
                Err(wrong("write secretsmanager:tollgate/keys"))
            } else {
                Ok(Self::Secret { id })
            };
        }
        if let Some(rest) = text.strip_prefix("s3://") {
            return match rest.split_once('/') {
                Some((bucket, key)) if !bucket.is_empty() && !key.is_empty() => {
                    Ok(Self::S3 { bucket: bucket.to_owned(), key: key.to_owned() })
                }
                _ => Err(wrong("write s3://bucket/key")),
            };
        }
        if let Some(rest) = text.strip_prefix("appconfig://") {
            let parts: Vec<&str> = rest.split('/').collect();
            return match parts[..] {
                [a, e, p] if ![a, e, p].contains(&"") => {
                    Ok(Self::AppConfig { application: a.to_owned(), environment: e.to_owned(), profile: p.to_owned() })
                }
                _ => Err(wrong("write appconfig://application/environment/profile")),
            };
        }
        if text.is_empty() || text.contains("://") {
            return Err(wrong(
                "write a path, ssm:NAME, secretsmanager:ID, s3://BUCKET/KEY or appconfig://APPLICATION/ENVIRONMENT/PROFILE",
            ));
        }
        Ok(Self::File(PathBuf::from(text)))
    }
}

impl fmt::Display for PolicySource {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => path.display().fmt(f),
            Self::Ssm { name } => write!(f, "ssm:{name}"),
            Self::Secret { id } => write!(f, "secretsmanager:{id}"),
            Self::S3 { bucket, key } => write!(f, "s3://{bucket}/{key}"),
            Self::AppConfig { application, environment, profile } => {
                write!(f, "appconfig://{application}/{environment}/{profile}")
            }
        }
    }
}
