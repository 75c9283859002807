//! What the gateway vouches for: facts about a request that its sender cannot choose.
//!
//! Invariant: nothing in here comes from the request's own headers, path or body.

use crate::scalar::scalar;
use http::Extensions;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::net::IpAddr;
use tollgate_policy::parse_address;

/// What the gateway and its authorizer say about a request. An extension of the request: a function on Lambda gets it
/// from the event (feature `lambda`), elsewhere a layer in front inserts it.
///
/// ```
/// use tollgate_http::Facts;
/// let mut request = http::Request::new(());
/// let peer: std::net::SocketAddr = "192.0.2.1:5123".parse()?;
/// let claims = serde_json::json!({ "sub": "alice", "plan": "pro" });
/// let facts = Facts::default().with_source_address(&peer.to_string());
/// request.extensions_mut().insert(facts.with_claims(claims.as_object().cloned().unwrap_or_default()));
/// # Ok::<(), std::net::AddrParseError>(())
/// ```
#[derive(Debug, Clone, PartialEq, Default)]
#[non_exhaustive]
pub struct Facts {
    claims: Map<String, Value>,
    context: Map<String, Value>,
    api_key: Option<String>,
    source_address: Option<IpAddr>,
    gateway: Gateway,
    path: Option<String>,
    costs: BTreeMap<String, u64>,
}

/// Who handed the request over, as far as it matters to what its headers can be believed for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Gateway {
    /// A REST API of API Gateway, or an HTTP API with events of format 1.0.
    RestApi,
    /// An HTTP API of API Gateway.
    HttpApi,
    /// A function URL of Lambda.
    FunctionUrl,
    /// An Application Load Balancer.
    LoadBalancer,
    /// A server of one's own.
    #[default]
    Other,
}

impl Gateway {
    fn of(context: &Map<String, Value>) -> Self {
        let domain = context.get("domainName").and_then(Value::as_str).unwrap_or_default();
        if context.contains_key("elb") {
            Self::LoadBalancer
        } else if context.contains_key("identity") {
            Self::RestApi
        } else if !context.contains_key("http") {
            Self::Other
        } else if domain.contains(".lambda-url.") {
            // The event is an HTTP API's in all but the name.
            Self::FunctionUrl
        } else {
            Self::HttpApi
        }
    }
}

impl Facts {
    /// Facts from the `requestContext` of an event, with the names that the event has.
    ///
    /// | fact | from |
    /// | --- | --- |
    /// | claims | `authorizer`: its `jwt.claims` (HTTP API), `claims` (REST API with Cognito), `lambda` (HTTP API with a Lambda authorizer), `iam` (also function URLs), else itself (REST API with a Lambda authorizer); without any, `identity` of a REST API whose caller IAM has authorised, also under the names that `iam` has |
    /// | API key | `identity.apiKeyId`, else `identity.apiKey`, else the claim `api_key` (an HTTP API has no keys of its own). The id goes first: it is no secret, and the table remembers it |
    /// | source address | `identity.sourceIp` (REST API), `http.sourceIp` (HTTP API, function URL); a load balancer tells none |
    #[must_use]
    pub fn from_request_context(context: Map<String, Value>) -> Self {
        let object = |path: &str| nested(&context, path).and_then(Value::as_object);
        let text = |path: &str| nested(&context, path).and_then(Value::as_str).filter(|text| !text.is_empty());
        let authorizers =
            ["authorizer.jwt.claims", "authorizer.claims", "authorizer.lambda", "authorizer.iam", "authorizer"];
        let given = authorizers.into_iter().filter_map(object).find(|claims| !claims.is_empty());
        let claims = given.cloned().or_else(|| object("identity").and_then(iam_claims)).unwrap_or_default();
        let api_key = text("identity.apiKeyId").or_else(|| text("identity.apiKey")).map(str::to_owned);
        let source_address = text("identity.sourceIp").or_else(|| text("http.sourceIp")).and_then(parse_address);
        let api_key = api_key.or_else(|| claims.get("api_key").and_then(scalar));
        Self { claims, api_key, source_address, gateway: Gateway::of(&context), context, ..Self::default() }
    }

    /// Replaces the claims of the caller's verified token.
    #[must_use]
    pub fn with_claims(mut self, claims: Map<String, Value>) -> Self {
        self.claims = claims;
        self
    }

    /// Replaces the gateway's request context.
    #[must_use]
    pub fn with_context(mut self, context: Map<String, Value>) -> Self {
        self.context = context;
        self
    }

    /// Adds a field to the gateway's request context: what somebody in front of the layer has found out by himself, for dimensions
    /// from `context.NAME`.
    #[must_use]
    pub fn with_context_field(mut self, name: impl Into<String>, value: Value) -> Self {
        self.context.insert(name.into(), value);
        self
    }

    /// What the request costs on a limit, where somebody in front of the layer knows better than the route: in its place, and
    /// nothing at all for 0. It counts only where the route charges that limit.
    #[must_use]
    pub fn with_cost(mut self, limit: impl Into<String>, cost: u64) -> Self {
        self.costs.insert(limit.into(), cost);
        self
    }

    /// What the request costs on a limit, if that was told.
    #[must_use]
    pub fn cost(&self, limit: &str) -> Option<u64> {
        self.costs.get(limit).copied()
    }

    /// Replaces the API key that the gateway accepted.
    #[must_use]
    pub fn with_api_key(mut self, api_key: impl Into<String>) -> Self {
        self.api_key = Some(api_key.into());
        self
    }

    /// Replaces the address that the request came from. Port, brackets and zone id are stripped; what is no address is
    /// none.
    #[must_use]
    pub fn with_source_address(mut self, text: &str) -> Self {
        self.source_address = parse_address(text);
        self
    }

    /// Replaces the path that routes are looked up by, where the request's own has a prefix of the gateway's.
    #[must_use]
    pub fn with_path(mut self, path: impl Into<String>) -> Self {
        self.path = Some(path.into());
        self
    }

    /// A claim of the caller's verified token: a whole name goes first (`custom:tenant`, `https://example.com/tenant`),
    /// then nested ones by dots (`address.country`). Only text, numbers and booleans are values; a list is one where the
    /// authorizer writes it as text (`[admin users]` of an HTTP API, `admin,users` of Cognito on a REST API).
    #[must_use]
    pub fn claim(&self, name: &str) -> Option<String> {
        nested(&self.claims, name).and_then(scalar)
    }

    /// The same as it is.
    #[must_use]
    pub fn raw_claim(&self, name: &str) -> Option<&Value> {
        nested(&self.claims, name)
    }

    /// A claim that is a list: one in JSON, or as gateways write it as text (`[otp pwd]`, `otp,pwd`, `otp pwd`).
    #[must_use]
    pub fn claims_of(&self, name: &str) -> Vec<String> {
        match self.raw_claim(name) {
            Some(Value::Array(list)) => list.iter().filter_map(scalar).collect(),
            Some(value) => {
                let text = scalar(value).unwrap_or_default();
                let text = text.strip_prefix('[').and_then(|text| text.strip_suffix(']')).unwrap_or(&text);
                text.split([' ', ',']).filter(|value| !value.is_empty()).map(str::to_owned).collect()
            }
            None => Vec::new(),
        }
    }

    /// A field of the gateway's request context, nested ones by dots.
    #[must_use]
    pub fn context(&self, name: &str) -> Option<String> {
        nested(&self.context, name).and_then(scalar)
    }

    /// The API key that the gateway accepted.
    #[must_use]
    pub fn api_key(&self) -> Option<&str> {
        self.api_key.as_deref()
    }

    /// The address that the request came from; an IPv4 address is never in its IPv6-mapped form.
    #[must_use]
    pub fn source_address(&self) -> Option<IpAddr> {
        self.source_address
    }

    pub(crate) fn gateway(&self) -> Gateway {
        self.gateway
    }

    /// The path that routes are looked up by, if it is not the request's own.
    #[must_use]
    pub fn path(&self) -> Option<&str> {
        self.path.as_deref()
    }

    /// The facts about a request with these extensions: those inserted by hand, else those of the event (feature
    /// `lambda`), else none.
    #[must_use]
    pub fn of(extensions: &Extensions) -> Cow<'_, Self> {
        let given = extensions.get::<Self>().map(Cow::Borrowed);
        #[cfg(feature = "lambda")]
        let given = given.or_else(|| crate::lambda::facts(extensions).map(Cow::Owned));
        given.unwrap_or_default()
    }
}

/// Who signed a request of a REST API, under the names there and under those of an HTTP API; `None` if nobody did.
fn iam_claims(identity: &Map<String, Value>) -> Option<Map<String, Value>> {
    identity.get("userArn").and_then(Value::as_str).filter(|arn| !arn.is_empty())?;
    // What a client says of itself, and what other fields of the policy name, is no claim.
    let others = ["sourceIp", "userAgent", "apiKey", "apiKeyId"];
    let mut claims: Map<String, Value> = identity.clone();
    claims.retain(|name, value| !others.contains(&name.as_str()) && scalar(value).is_some());
    let aliases = [("caller", "callerId"), ("user", "userId")];
    for (name, alias) in aliases {
        if let Some(value) = claims.get(name).cloned() {
            claims.insert(alias.to_owned(), value);
        }
    }
    let cognito = [("cognitoIdentityId", "identityId"), ("cognitoIdentityPoolId", "identityPoolId")];
    let cognito: Map<String, Value> =
        cognito.into_iter().filter_map(|(name, alias)| Some((alias.to_owned(), claims.get(name)?.clone()))).collect();
    if !cognito.is_empty() {
        claims.insert("cognitoIdentity".to_owned(), Value::Object(cognito));
    }
    Some(claims)
}

fn nested<'a>(map: &'a Map<String, Value>, name: &str) -> Option<&'a Value> {
    let below = |(at, _): (usize, &str)| nested(map.get(name.get(..at)?)?.as_object()?, name.get(at + 1..)?);
    map.get(name).or_else(|| name.match_indices('.').find_map(below))
}
