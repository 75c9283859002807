//! The request that the command line describes, as the gateway in front would hand it to the layer.
//!
//! Invariant: whatever a gateway appends, and whatever is believed of it, is settled by the layer's own reading of that
//! gateway's event.

use crate::args::{ExplainArgs, GatewayKind};
use crate::dev::event::{FORWARDED_FOR, cookies, joined};
use crate::error::{CliError, Result};
use axum::body::Bytes;
use axum::http::request::Parts;
use axum::http::{HeaderName, HeaderValue, Request};
use lambda_http::request::LambdaRequest;
use serde_json::{Map, Value, json};
use std::fmt::Display;
use tollgate::http::{Facts, MAX_BODY_BYTES, Peek};

/// A request, and its body as far as the layer reads it.
pub(super) struct Handed {
    pub(super) parts: Parts,
    pub(super) body: Option<Bytes>,
}

/// The request that the command line describes.
pub(super) async fn handed(args: &ExplainArgs) -> Result<Handed> {
    let (parts, mut body) = match &args.event {
        Some(file) => {
            let text = std::fs::read(file).map_err(|source| CliError::Read { path: file.clone(), source })?;
            let name = file.display();
            from_event(serde_json::from_slice(&text).map_err(|e| bad(&name, &format!("not JSON: {e}")))?, &name)?
        }
        None => match event(args)? {
            Some(event) => from_event(event, &"the request")?,
            None => served(args)?,
        },
    };
    let body = body.peek(MAX_BODY_BYTES).await;
    Ok(Handed { parts, body })
}

fn bad(what: &dyn Display, error: &dyn Display) -> CliError {
    CliError::Input(format!("{what}: {error}"))
}

/// The request as a server of one's own gets it.
fn served(args: &ExplainArgs) -> Result<(Parts, lambda_http::Body)> {
    let mut described = described(args)?;
    let mut facts = Facts::default().with_claims(claims(args)?);
    if let Some(address) = source_ip(args)? {
        facts = facts.with_source_address(address);
    }
    described.extensions.insert(facts);
    Ok((described, lambda_http::Body::from(args.body.clone().unwrap_or_default())))
}

/// What `lambda_http` makes of an event.
fn from_event(event: Value, name: &dyn Display) -> Result<(Parts, lambda_http::Body)> {
    let no_event = || {
        bad(name, &"not an event of a REST API, an HTTP API, a function URL or a load balancer, as a function gets it")
    };
    let event = tollgate::http::event::addressable(event);
    let fields = event.as_object().ok_or_else(no_event)?;
    let path = ["rawPath", "path"].into_iter().find_map(|field| fields.get(field)?.as_str()).unwrap_or("/");
    // It takes the path on trust.
    if !tollgate::http::event::has_an_address(fields, path) {
        return Err(bad(name, &format!("no address can be built with the path {path:?}")));
    }
    let request = serde_json::from_value::<LambdaRequest>(event).map_err(|_| no_event())?;
    Ok(lambda_http::Request::from(request).into_parts())
}

/// Method, path and headers.
fn described(args: &ExplainArgs) -> Result<Parts> {
    let path = args.path.as_deref().unwrap_or_default();
    if !path.starts_with('/') {
        return Err(bad(&"--path", &format!("{path:?} must begin with `/`, like /api/orders?region=eu")));
    }
    let mut request = Request::builder().method(args.method.as_deref().unwrap_or_default()).uri(path);
    for header in &args.headers {
        let (name, value) =
            header.split_once(':').ok_or_else(|| bad(&"--header", &format!("{header:?} is not NAME: VALUE")))?;
        request = request.header(name.trim(), value.trim());
    }
    Ok(request.body(()).map_err(|error| bad(&"the request", &error))?.into_parts().0)
}

fn source_ip(args: &ExplainArgs) -> Result<Option<&str>> {
    let Some(address) = args.source_ip.as_deref() else { return Ok(None) };
    if Facts::default().with_source_address(address).source_address().is_none() {
        return Err(bad(&"--source-ip", &format!("{address:?} is not an IP address; write 192.0.2.1")));
    }
    Ok(Some(address))
}

fn claims(args: &ExplainArgs) -> Result<Map<String, Value>> {
    let pairs = args.claims.iter().map(|claim| super::pair("--claim", claim, "sub=alice"));
    pairs.map(|pair| pair.map(|(name, value)| (name.to_owned(), value.into()))).collect()
}

/// The event of a request that a gateway was asked for; `None` if there is no gateway.
fn event(args: &ExplainArgs) -> Result<Option<Value>> {
    let gateway = args.gateway;
    let parts = described(args)?;
    let (source, claims) = (source_ip(args)?, claims(args)?);
    let vouches = matches!(gateway, GatewayKind::Rest | GatewayKind::Http | GatewayKind::None);
    if !claims.is_empty() && !vouches {
        let help = "function URLs and load balancers hand over no claims of a token; for a caller that IAM has authorised give \
                    the --event";
        return Err(bad(&"--claim", &help));
    }
    if gateway == GatewayKind::Alb && source.is_none() {
        // Without that entry the last one is the client's, who would be taken at his word.
        let help =
            "a load balancer appends the address that it saw to X-Forwarded-For; give it as --source-ip 192.0.2.1";
        return Err(bad(&"--gateway alb", &help));
    }
    let (path, query) = (parts.uri.path(), parts.uri.query().unwrap_or_default());
    let method = parts.method.as_str();
    let mut event = match gateway {
        GatewayKind::Http | GatewayKind::Url => json!({
            "version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": query,
            "headers": joined(&parts.headers, source.filter(|_| gateway == GatewayKind::Http)),
            "cookies": cookies(&parts.headers),
            "requestContext": {
                "accountId": "000000000000", "apiId": "explain", "requestId": "explain", "stage": "$default",
                "domainName": if gateway == GatewayKind::Url { "explain.lambda-url.local" } else { "explain.local" },
                "authorizer": vouched(json!({ "jwt": { "claims": claims } }), &claims),
                "http": { "method": method, "path": path, "protocol": "HTTP/1.1", "sourceIp": source, "userAgent": "" },
                "timeEpoch": 0,
            },
        }),
        GatewayKind::Rest => json!({
            "resource": "/{proxy+}", "path": path, "httpMethod": method,
            "requestContext": {
                "accountId": "000000000000", "apiId": "explain", "requestId": "explain", "stage": "explain",
                "httpMethod": method, "path": path, "authorizer": vouched(json!({ "claims": claims }), &claims),
                "identity": { "sourceIp": source },
            },
        }),
        GatewayKind::None => return Ok(None),
        GatewayKind::Alb => json!({
            "path": path, "httpMethod": method, "requestContext": { "elb": { "targetGroupArn": "explain" } },
        }),
    };
    if let Some(fields) = event.as_object_mut() {
        fields.insert("body".to_owned(), args.body.as_deref().into());
        fields.insert("isBase64Encoded".to_owned(), false.into());
        if !matches!(gateway, GatewayKind::Http | GatewayKind::Url) {
            fields.insert("multiValueHeaders".to_owned(), header_lists(&parts, source));
            fields.insert("multiValueQueryStringParameters".to_owned(), query_lists(gateway, query));
        }
    }
    Ok(Some(event))
}

/// What an authorizer says; `null` if none has run.
fn vouched(authorizer: Value, claims: &Map<String, Value>) -> Value {
    if claims.is_empty() { Value::Null } else { authorizer }
}

/// All lines of each header; the forwarding header is one, with what the gateway appends.
fn header_lists(parts: &Parts, source: Option<&str>) -> Value {
    let line = |(name, value): (&HeaderName, &HeaderValue)| {
        (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into())
    };
    let lines = parts.headers.iter().filter(|(name, _)| *name != FORWARDED_FOR).map(line);
    let forwarded = joined(&parts.headers, source).remove_entry(FORWARDED_FOR);
    lists(lines.chain(forwarded))
}

/// The parameters of a query. A load balancer does not decode them.
fn query_lists(gateway: GatewayKind, query: &str) -> Value {
    if gateway == GatewayKind::Rest {
        return lists(form_urlencoded::parse(query.as_bytes()).map(|(name, value)| (name.into_owned(), value.into())));
    }
    let pairs = query.split('&').filter(|pair| !pair.is_empty());
    lists(pairs.map(|pair| pair.split_once('=').unwrap_or((pair, ""))).map(|(name, value)| (name.into(), value.into())))
}

/// Each name with all its values.
fn lists(pairs: impl Iterator<Item = (String, Value)>) -> Value {
    let mut lists: Map<String, Value> = Map::new();
    for (name, value) in pairs {
        if let Value::Array(list) = lists.entry(name).or_insert_with(|| json!([])) {
            list.push(value);
        }
    }
    Value::Object(lists)
}
