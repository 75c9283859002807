//! Events of Lambda functions: what AWS writes of a stranger's request, and anything else that is JSON.
//!
//! Lines: choices (kind of event, whether IAM has signed it), path, query, body, and headers as `name: value`. For the last
//! kind the rest is the event itself.

use crate::app::{limiter, run};
use crate::input::Input;
use lambda_http::http::{HeaderName, HeaderValue};
use lambda_http::request::LambdaRequest;
use lambda_http::{Request, RequestExt};
use sample_api::passwords::OneForAll;
use serde_json::{Map, Value, json};
use std::sync::LazyLock;
use tollgate::http::Facts;
use tollgate::{LivePolicy, Policy};

static POLICY: LazyLock<Policy> = LazyLock::new(|| {
    let text = include_str!("../../../infra/tollgate.toml");
    Policy::parse(text).expect(text).policy.with_secrets(tollgate::KeySecrets::development())
});

/// Checks that every event is answered, that no stranger reaches a decision, and that nobody vouches for himself.
///
/// # Panics
///
/// If one of these does not hold.
pub fn check(bytes: &[u8]) {
    let mut input = Input::new(bytes);
    let kind = KINDS.get(input.choice(KINDS.len() + 1));
    let signed = input.choice(2) == 1;
    let Some(kind) = kind else { return any_json(&String::from_utf8_lossy(input.rest())) };
    let sent = Sent {
        path: format!("/{}", target(&input.text()).trim_start_matches('/')),
        query: target(&input.text()),
        body: input.text().into_owned(),
        headers: input.lines().filter_map(header).collect(),
    };
    let event = kind.event(&sent, signed);
    let status = decided(&event, *kind != Kind::Balancer && signed).expect("an HTTP event is answered with a response");
    assert!([200, 400, 403, 404, 405, 413].contains(&status), "{status}: {event}");
    served(*kind, &event);
}

/// What a client chooses.
#[derive(Debug, Default)]
struct Sent {
    path: String,
    query: String,
    body: String,
    headers: Vec<(String, String)>,
}

/// A part of the request line as it gets through a gateway. Load balancers pass 16 KB of it on, API Gateway less.
fn target(text: &str) -> String {
    text.chars().take(LONGEST_TARGET).collect()
}

/// A header as it gets through a gateway.
fn header(line: &[u8]) -> Option<(String, String)> {
    let text = std::str::from_utf8(line).ok()?;
    let (name, value) = text.split_once(':')?;
    let value = value.trim();
    let name = HeaderName::from_bytes(name.as_bytes()).ok()?;
    HeaderValue::from_str(value).ok().map(|_| (name.as_str().to_owned(), value.to_owned()))
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Rest,
    Http,
    Balancer,
    Lists,
}

const KINDS: [Kind; 4] = [Kind::Rest, Kind::Http, Kind::Balancer, Kind::Lists];

impl Kind {
    fn event(self, sent: &Sent, signed: bool) -> Value {
        let one: Map<String, Value> = sent.headers.iter().map(|(n, v)| (n.clone(), json!(v))).collect();
        let lists: Map<String, Value> = sent.headers.iter().map(|(n, v)| (n.clone(), json!([v]))).collect();
        let cookies: Vec<&str> = sent.headers.iter().filter(|(n, _)| n == "cookie").map(|(_, v)| v.as_str()).collect();
        let iam = if signed { json!({ "userArn": "arn:aws:iam::1:user/x", "accessKey": "A" }) } else { Value::Null };
        let Sent { path, query, body, .. } = sent;
        let parameters: Map<String, Value> =
            form_urlencoded::parse(query.as_bytes()).map(|(n, v)| (n.into_owned(), json!(v))).collect();
        match self {
            Self::Rest => {
                let mut identity = iam.as_object().cloned().unwrap_or_default();
                identity.insert("sourceIp".into(), json!(SOURCE));
                json!({
                    "resource": "/{proxy+}", "path": path, "httpMethod": "POST", "headers": one,
                    "multiValueHeaders": lists, "queryStringParameters": parameters, "body": body,
                    "isBase64Encoded": false,
                    "requestContext": { "accountId": "1", "stage": "prod", "httpMethod": "POST", "requestId": "r",
                        "path": format!("/prod{path}"), "apiId": "a", "identity": identity }
                })
            }
            Self::Http => json!({
                "version": "2.0", "routeKey": "$default", "rawPath": path, "rawQueryString": query, "headers": one,
                "cookies": cookies, "body": body, "isBase64Encoded": false,
                "requestContext": { "accountId": "1", "apiId": "a", "domainName": "d", "requestId": "r",
                    "stage": "$default", "timeEpoch": 1,
                    "authorizer": if signed { json!({ "iam": iam }) } else { Value::Null },
                    "http": { "method": "POST", "path": path, "protocol": "HTTP/1.1", "sourceIp": SOURCE, "userAgent": "u" } }
            }),
            Self::Balancer | Self::Lists => {
                let (name, headers) = if self == Self::Lists { ("multiValueHeaders", lists) } else { ("headers", one) };
                json!({
                    "path": path, "httpMethod": "POST", name: headers, "queryStringParameters": parameters,
                    "body": body, "isBase64Encoded": false,
                    "requestContext": { "elb": { "targetGroupArn": "arn:aws:elasticloadbalancing:x" } }
                })
            }
        }
    }
}

/// Characters of a path or a query, of four bytes at most.
const LONGEST_TARGET: usize = 2048;
const SOURCE: &str = "192.0.2.1";

/// The limiter function's status, if it took the event for HTTP. Only who is authorised by AWS gets to the table.
fn decided(event: &Value, signed: bool) -> Option<u16> {
    let (limiter, store) = limiter();
    let answered = run(limiter::handler::answer(&POLICY, &limiter, &event.to_string()));
    let asked = store.counters().counts().round_trips;
    if !limiter_takes_for_http(event) {
        return None;
    }
    let answered = answered.expect("an HTTP event is answered with a response");
    let status = answered["statusCode"].as_u64().and_then(|status| u16::try_from(status).ok()).expect("a status");
    assert!(signed || (asked == 0 && status == 403), "{status} after {asked} requests: {event}");
    Some(status)
}

/// Whether anything of HTTP is in the event.
fn limiter_takes_for_http(event: &Value) -> bool {
    let marks = ["requestContext", "httpMethod", "rawPath", "routeKey", "headers", "multiValueHeaders"];
    marks.iter().any(|mark| event.get(mark).is_some())
}

/// The sample API answers, and the facts are those of the gateway, whatever was sent.
fn served(kind: Kind, event: &Value) {
    let request = request(event.clone()).unwrap_or_else(|error| panic!("{error}: {event}"));
    let facts = Facts::of(request.extensions()).into_owned();
    let blank = Sent { path: request.raw_http_path().to_owned(), ..Sent::default() };
    let untouched = self::request(kind.event(&blank, event_is_signed(event))).expect("a request");
    assert_eq!(facts, *Facts::of(untouched.extensions()), "{event}");
    assert_eq!(facts.claim("sub"), None);
    assert_eq!(facts.api_key(), None);
    let (limiter, _) = limiter();
    let api = sample_api::Api::new(LivePolicy::from(POLICY.clone()), limiter, OneForAll::new(None));
    let response = run(api.call(request)).expect("a response");
    assert!(response.status().as_u16() < 500, "{}: {event}", response.status());
}

fn request(event: Value) -> Result<Request, serde_json::Error> {
    serde_json::from_value::<LambdaRequest>(tollgate::http::event::addressable(event)).map(Request::from)
}

fn event_is_signed(event: &Value) -> bool {
    ["/requestContext/identity", "/requestContext/authorizer/iam"].iter().filter_map(|at| event.pointer(at)).any(
        |identity| ["userArn", "accessKey"].iter().any(|name| identity[name].as_str().is_some_and(|s| !s.is_empty())),
    )
}

/// An event that nobody has written as AWS does.
fn any_json(text: &str) {
    let Ok(event) = serde_json::from_str::<Value>(text) else {
        let (limiter, store) = limiter();
        let _ = run(limiter::handler::answer(&POLICY, &limiter, text));
        return assert_eq!(store.counters().counts().round_trips, 0, "{text:?} is no JSON");
    };
    decided(&event, event_is_signed(&event));
    // `lambda_http` is given what AWS writes only: it takes the path of an event on trust.
    if let Value::Object(context) = event {
        let facts = Facts::from_request_context(context.clone());
        assert_eq!(facts, Facts::from_request_context(context));
        let _ = (facts.claim("sub"), facts.context("identity.sourceIp"));
    }
}
