//! Where the secrets are kept that personal values are hashed under.
//!
//! Invariant: they are read once, in init, and no message or debug text has a part of them.

use super::{Error, PolicySource, Reader, ReaderOptions};
use tollgate_policy::{KeySecrets, KeySecretsError};

const TEXT: &str = "TOLLGATE_KEY_SECRETS";
const PARAMETER: &str = "TOLLGATE_KEY_SECRETS_PARAMETER";
const SECRET: &str = "TOLLGATE_KEY_SECRETS_SECRET";

/// Where [`KeySecrets`] are kept.
#[derive(Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub enum SecretsSource {
    /// Nowhere: there are none.
    #[default]
    Nowhere,
    /// In the text itself (`TOLLGATE_KEY_SECRETS`).
    Text(String),
    /// In a parameter of Systems Manager, a `SecureString` (`TOLLGATE_KEY_SECRETS_PARAMETER`): its name, or an ARN.
    Parameter(String),
    /// In a secret of Secrets Manager (`TOLLGATE_KEY_SECRETS_SECRET`): its name, or an ARN.
    Secret(String),
}

/// The secrets cannot be had.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SecretsError {
    /// Several places are named.
    #[error("more than one of {TEXT}, {PARAMETER} and {SECRET} is set; keep one of them")]
    Twice,
    /// The parameter cannot be read.
    #[error("the key secrets cannot be read: {0}")]
    Unreadable(#[from] Error),
    /// The text is no list of secrets.
    #[error("{place}: {problem}")]
    Invalid {
        /// Which variable, or parameter.
        place: String,
        /// What is wrong.
        problem: KeySecretsError,
    },
}

impl SecretsSource {
    /// As `lookup` tells the environment's variables; one that is set to nothing counts as not set.
    ///
    /// # Errors
    ///
    /// [`SecretsError::Twice`].
    pub fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Self, SecretsError> {
        let set = |name| lookup(name).filter(|text| !text.trim().is_empty());
        match (set(TEXT), set(PARAMETER), set(SECRET)) {
            (None, None, None) => Ok(Self::Nowhere),
            (Some(text), None, None) => Ok(Self::Text(text)),
            (None, Some(name), None) => Ok(Self::Parameter(name)),
            (None, None, Some(id)) => Ok(Self::Secret(id)),
            _ => Err(SecretsError::Twice),
        }
    }

    /// Reads the secrets; empty if there are none.
    ///
    /// # Errors
    ///
    /// [`SecretsError::Unreadable`] or [`SecretsError::Invalid`].
    pub async fn read(&self, options: &ReaderOptions) -> Result<KeySecrets, SecretsError> {
        let (text, place) = match self {
            Self::Nowhere => return Ok(KeySecrets::default()),
            Self::Text(text) => (text.clone(), TEXT.to_owned()),
            Self::Parameter(name) => read(PolicySource::Ssm { name: name.clone() }, options).await?,
            Self::Secret(id) => read(PolicySource::Secret { id: id.clone() }, options).await?,
        };
        text.trim().parse().map_err(|problem| SecretsError::Invalid { place, problem })
    }
}

/// The text in a place, and how that is shown.
async fn read(place: PolicySource, options: &ReaderOptions) -> Result<(String, String), Error> {
    let shown = place.to_string();
    let loaded = Reader::open(place, options).await?.load().await?;
    Ok((loaded.text.unwrap_or_default(), shown))
}

/// Without the text.
impl std::fmt::Debug for SecretsSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Nowhere => f.write_str("Nowhere"),
            Self::Text(_) => f.write_str("Text(..)"),
            Self::Parameter(name) => f.debug_tuple("Parameter").field(name).finish(),
            Self::Secret(id) => f.debug_tuple("Secret").field(id).finish(),
        }
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    const K1: &str = "k1=AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";

    fn of(variables: &[(&str, &str)]) -> Result<SecretsSource, SecretsError> {
        SecretsSource::from_lookup(|name| variables.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned()))
    }

    #[tokio::test]
    async fn secrets_are_in_one_variable_or_in_the_parameter_that_another_names() {
        let options = ReaderOptions::default();
        assert_eq!(of(&[(TEXT, ""), (PARAMETER, " ")]).unwrap(), SecretsSource::Nowhere);
        assert!(SecretsSource::Nowhere.read(&options).await.unwrap().is_empty());
        let text = of(&[(TEXT, K1)]).unwrap();
        assert_eq!(text.read(&options).await.unwrap().ids().collect::<Vec<_>>(), ["k1"]);
        assert_eq!(format!("{text:?}"), "Text(..)");
        let parameter = of(&[(PARAMETER, "/tollgate/keys")]).unwrap();
        assert_eq!(parameter, SecretsSource::Parameter("/tollgate/keys".to_owned()));
        assert_eq!(of(&[(SECRET, "tollgate/keys")]).unwrap(), SecretsSource::Secret("tollgate/keys".to_owned()));
        for twice in [[(TEXT, K1), (PARAMETER, "/p")], [(TEXT, K1), (SECRET, "s")], [(PARAMETER, "/p"), (SECRET, "s")]]
        {
            assert!(matches!(of(&twice), Err(SecretsError::Twice)));
        }
        let error = of(&[(TEXT, "k1=sekret")]).unwrap().read(&options).await.unwrap_err().to_string();
        assert!(error.starts_with("TOLLGATE_KEY_SECRETS: key secret 1: ") && !error.contains("sekret"), "{error}");
    }
}
