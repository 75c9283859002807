//! Whose tokens are good, by the environment.
//!
//! | variable | value | default |
//! | --- | --- | --- |
//! | `TOLLGATE_ISSUER` | the issuer's URL, as `iss` has it; `https`, or on this machine at `127.0.0.1` | required |
//! | `TOLLGATE_AUDIENCE` | who tokens are for, commas between: `aud`, or Cognito's `client_id` | required |
//! | `TOLLGATE_ALGORITHMS` | the algorithms that are pinned, commas between; none with shared secrets | `RS256` |

use http::Uri;
use std::str::FromStr;
use tollgate::lambda::InitError;
use tollgate_mfa::token::{Algorithm, AlgorithmFamily, Issuer};

const ISSUER: &str = "TOLLGATE_ISSUER";
const AUDIENCE: &str = "TOLLGATE_AUDIENCE";
const ALGORITHMS: &str = "TOLLGATE_ALGORITHMS";

/// The issuer that the environment names.
///
/// # Errors
///
/// [`InitError::Missing`] or [`InitError::Invalid`] for the first variable that is wrong.
pub fn from_environment() -> Result<Issuer, Box<InitError>> {
    from_lookup(|name| std::env::var(name).ok())
}

/// The issuer that `lookup` names; a variable that is set to nothing counts as not set.
///
/// # Errors
///
/// As [`from_environment`].
pub fn from_lookup(lookup: impl Fn(&str) -> Option<String>) -> Result<Issuer, Box<InitError>> {
    let value = |name| lookup(name).filter(|value: &String| !value.is_empty());
    let missing = |name, give| Box::new(InitError::Missing { name, give });
    let url = value(ISSUER).ok_or_else(|| missing(ISSUER, "the URL of whoever issues the tokens"))?;
    if !is_trustworthy(&url) {
        let give = "a URL that begins with https://".to_owned();
        return Err(Box::new(InitError::Invalid { name: ISSUER, value: url, give }));
    }
    let audiences = value(AUDIENCE).ok_or_else(|| missing(AUDIENCE, "who the tokens are for"))?;
    let names: Vec<_> = audiences.split(',').map(|audience| audience.trim().to_owned()).collect();
    if names.iter().any(String::is_empty) {
        let give = "names with one comma between".to_owned();
        return Err(Box::new(InitError::Invalid { name: AUDIENCE, value: audiences, give }));
    }
    let mut issuer = Issuer::new(url, names);
    if let Some(names) = value(ALGORITHMS) {
        issuer.algorithms = names.split(',').map(|name| algorithm(name.trim())).collect::<Result<_, _>>()?;
    }
    Ok(issuer)
}

/// Whether nobody on the way can answer for who is at that URL.
fn is_trustworthy(url: &str) -> bool {
    let Ok(url) = url.parse::<Uri>() else { return false };
    match url.scheme_str() {
        Some("https") => url.host().is_some_and(|host| !host.is_empty()),
        Some("http") => url.host() == Some("127.0.0.1"),
        _ => false,
    }
}

/// An algorithm whose keys the issuer alone has.
///
/// # Errors
///
/// [`InitError::Invalid`].
pub fn algorithm(name: &str) -> Result<Algorithm, Box<InitError>> {
    let found = Algorithm::from_str(name).ok().filter(|algorithm| algorithm.family() != AlgorithmFamily::Hmac);
    let give = || "RS256, ES256, EdDSA or another one with public keys".to_owned();
    found.ok_or_else(|| Box::new(InitError::Invalid { name: ALGORITHMS, value: name.to_owned(), give: give() }))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    fn of(variables: &[(&str, &str)]) -> Result<Issuer, String> {
        let find = |name: &str| variables.iter().find(|(n, _)| *n == name).map(|(_, value)| (*value).to_owned());
        from_lookup(find).map_err(|error| error.to_string())
    }

    #[test]
    fn issuer_and_audience_must_be_named_and_algorithms_are_pinned() {
        let both = [(ISSUER, "https://a.example"), (AUDIENCE, "app, web")];
        let issuer = of(&both).unwrap();
        assert_eq!(
            (issuer.audiences, issuer.algorithms),
            (vec!["app".to_owned(), "web".to_owned()], vec![Algorithm::RS256])
        );
        let pinned = of(&[both[0], both[1], (ALGORITHMS, "ES256,EdDSA")]).unwrap().algorithms;
        assert_eq!(pinned, [Algorithm::ES256, Algorithm::EdDSA]);
        for wrong in ["HS256", "none", "ES256,", "rs256"] {
            assert!(of(&[both[0], both[1], (ALGORITHMS, wrong)]).unwrap_err().contains("RS256"), "{wrong}");
        }
        assert!(of(&both[..1]).unwrap_err().contains(AUDIENCE) && of(&both[1..]).unwrap_err().contains(ISSUER));
        for wrong in [",", "app,", "app,,web"] {
            assert!(of(&[both[0], (AUDIENCE, wrong)]).unwrap_err().contains(AUDIENCE), "{wrong}");
        }
    }

    #[test]
    fn an_issuer_is_asked_over_tls_unless_it_is_on_this_machine() {
        let of = |url| of(&[(ISSUER, url), (AUDIENCE, "app")]);
        for url in ["https://a.example", "https://a.example/pool", "http://127.0.0.1:9000", "http://127.0.0.1/a"] {
            assert_eq!(of(url).unwrap().url, url);
        }
        for url in [
            "http://a.example",
            "http://127.0.0.1.evil.example",
            "http://127.0.0.1@evil.example",
            "http://127.0.0.12",
            "https://",
            "a.example",
            "ftp://a.example",
        ] {
            assert!(of(url).unwrap_err().contains("https://"), "{url}");
        }
    }
}
