//! What the functions print: metrics and logs, whole and at once, and nothing of their callers.

use crate::emf;
use crate::events::{Sender, load_balancer, signed, unsigned};
use crate::harness::{Function, LIMITER, SAMPLE_API, TABLE, TaskRoot, endpoint, unique};
use crate::sample_api::by;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use tollgate::{Clock, SystemClock};

/// In every value that a caller sends; nothing that a function prints may have it.
const MARK: &str = "marked7f3a";

async fn function(program: &str, policy: &str, variables: &[(&str, &str)]) -> Function {
    let url = endpoint().await;
    let table = [("TOLLGATE_TABLE", TABLE), ("TOLLGATE_ENDPOINT_URL", url.as_str())];
    Function::printing(program, TaskRoot::with_policy(policy), &[&table, variables].concat()).await
}

/// The lines that are logs; whatever is neither a log nor a metric fails the test.
fn logs(printed: &str) -> Vec<Value> {
    assert!(printed.is_empty() || printed.ends_with('\n'), "half a line: {printed}");
    let lines =
        printed.lines().map(|line| serde_json::from_str::<Value>(line).unwrap_or_else(|e| panic!("{e}: {line}")));
    let logs: Vec<_> = lines.filter(|line| line.get("_aws").is_none()).collect();
    for line in &logs {
        let given = |name: &str| line[name].as_str().is_some_and(|text| !text.is_empty());
        assert!(["timestamp", "level", "target", "message"].into_iter().all(given), "{line}");
    }
    logs
}

fn denials(printed: &str) -> Vec<Value> {
    logs(printed).into_iter().filter(|line| line["target"] == "tollgate::denials").collect()
}

/// The sum of a metric with exactly these dimensions, beside the service's.
pub fn sum(sums: &BTreeMap<emf::Series, f64>, name: &str, more: &[&str]) -> u64 {
    let mut dimensions: Vec<_> =
        more.iter().map(|text| (*text).to_owned()).chain(["Service=function".to_owned()]).collect();
    dimensions.sort();
    let found = sums.get(&(name.to_owned(), dimensions)).copied().unwrap_or_default();
    found.to_string().parse().expect("a whole number")
}

const THREE_A_YEAR: &str = "version = 1\nrevision = 7\n[plans]\nnames = ['free']\ndefault = 'free'\n\
    [limits.orders]\nkey = ['user', 'tenant']\nrate = '9/year'\nplans.free = { rate = '3/year' }\n\
    [limits.watched]\nkey = ['user']\nrate = '1/year'\nmode = 'shadow'\n";

#[tokio::test(flavor = "multi_thread")]
async fn metrics_add_up_to_what_happened_and_are_there_when_the_answer_is() {
    let mut limiter = function(LIMITER, THREE_A_YEAR, &[]).await;
    let (user, tenant) = (unique(MARK), unique(MARK));
    let ask = |cost: u64| {
        json!([
            { "limit": "orders", "key": { "user": user, "tenant": tenant }, "cost": cost },
            { "limit": "watched", "key": { "user": user }, "cost": 1 },
        ])
    };
    let mut before = String::new();
    for (n, allowed) in [true, true, true, false, false].into_iter().enumerate() {
        assert_eq!(limiter.invoke(&ask(1)).await.unwrap()[0]["allowed"], allowed, "{n}");
        let printed = limiter.printed();
        let sums = emf::sums(&printed);
        assert_eq!(sum(&sums, "Decisions", &[]), n as u64 + 1, "nothing is left for later: {printed}");
        before = printed;
    }
    assert_eq!(limiter.invoke(&ask(4)).await.unwrap()[0]["never_fits"], true);
    let printed = limiter.printed();
    assert!(printed.starts_with(&before));
    let sums = emf::sums(&printed);
    let whole = |name| sum(&sums, name, &[]);
    assert_eq!(["Allowed", "Denied", "NeverFits", "Unavailable"].map(whole), [3, 2, 1, 0]);
    assert_eq!(["PolicyLoaded", "LimiterDegraded", "MissingDimension"].map(whole), [1, 0, 0]);
    assert!(whole("RoundTrips") >= 6 && whole("WriteUnits") >= 6, "{sums:?}");
    assert_eq!(emf::samples(&printed, "DecisionLatency"), 6);
    let said = |limit: &str, outcome: &str, source: &str| {
        let dimensions = [format!("Limit={limit}"), format!("Outcome={outcome}"), format!("Source={source}")];
        sum(&sums, "LimitDecisions", &dimensions.each_ref().map(String::as_str))
    };
    assert_eq!(said("orders", "allowed", "table"), 3);
    // What the process has just seen it need not ask for, if it is asked soon enough.
    let of_both = |outcome| said("orders", outcome, "table") + said("orders", outcome, "cache");
    assert_eq!([of_both("denied"), of_both("never_fits")], [2, 1]);
    let from_memory = said("orders", "denied", "cache") + said("orders", "never_fits", "cache");
    assert_eq!(whole("DeniedFromMemory"), from_memory);
    assert_eq!(said("watched", "allowed", "table"), 1);
    assert!(said("watched", "shadow_denied", "table") >= 2, "{sums:?}");
    assert_no_mark(&printed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denial_is_one_line_that_says_why() {
    let mut limiter = function(LIMITER, THREE_A_YEAR, &[]).await;
    let (user, tenant) = (unique(MARK), unique(MARK));
    let order =
        |cost| json!({ "limit": "orders", "key": { "user": user, "tenant": tenant }, "plan": "free", "cost": cost });
    for cost in [3, 1, 4] {
        limiter.invoke(&order(cost)).await.unwrap();
    }
    let event = signed(Sender::HttpApi, "POST", "/v1/decisions", &order(2).to_string());
    let event = with_request_id(event);
    assert_eq!(limiter.respond(&event).await.body["allowed"], false);
    let printed = limiter.printed();
    let denials = denials(&printed);
    let [denied, never, over_http] = &denials[..] else { panic!("{printed}") };
    let same =
        [("limit", json!("orders")), ("key", json!("tenant,user")), ("plan", json!("free")), ("revision", json!(7))];
    for (line, outcome, cost) in [(denied, "denied", 1), (never, "never_fits", 4), (over_http, "denied", 2)] {
        assert!(same.iter().all(|(name, value)| line[*name] == *value), "{line}");
        assert_eq!((&line["outcome"], &line["cost"]), (&json!(outcome), &json!(cost)), "{line}");
        assert_eq!(
            (&line["remaining"], &line["level"], &line["message"]),
            (&json!(0), &json!("INFO"), &json!("denied"))
        );
        assert!(line["key_ref"].as_str().unwrap().starts_with("k1.") && line["key_ref"] == denied["key_ref"], "{line}");
        assert!(line["store_time_ms"].as_u64().unwrap() > 1_700_000_000_000 && line["held"].is_null(), "{line}");
        assert!(line["xrayTraceId"].as_str().unwrap().contains("Root=1-5759e988-bd862e3fe1be46a994272793"), "{line}");
        assert!(["table", "cache"].contains(&line["source"].as_str().unwrap()), "{line}");
    }
    assert!(denied["retry_after_ms"].as_u64().unwrap() > 0 && never["retry_after_ms"].is_null());
    assert_eq!(denied["requestId"], "00000000-0000-0000-0000-000000000002");
    assert_eq!(over_http["apiRequestId"], "api-request-1");
    assert_no_mark(&printed);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_denied_request_names_its_route_and_the_reference_is_the_one_that_secrets_give_its_key() {
    let policy = "version = 1\n[limits.orders]\nkey = ['user']\nrate = '1/year'\n\
        [[routes]]\nmatch = 'GET /api/{thing}'\ncharge = ['orders']\n";
    let mut api = function(SAMPLE_API, policy, &[]).await;
    let user = unique(MARK);
    let mut event = with_request_id(unsigned(Sender::HttpApi, "GET", "/api/search", ""));
    event["requestContext"]["authorizer"] = json!({ "jwt": { "claims": { "sub": user }, "scopes": null } });
    for status in [200, 429] {
        assert_eq!(api.respond(&event).await.status, status);
    }
    let denials = denials(&api.printed());
    let [denied] = &denials[..] else { panic!("{denials:?}") };
    assert_eq!((&denied["route"], &denied["apiRequestId"]), (&json!("GET /api/{thing}"), &json!("api-request-1")));
    let secrets: tollgate::KeySecrets = crate::harness::SECRETS.1.parse().unwrap();
    let key = tollgate::Key::new([("user", user)]).unwrap();
    assert_eq!(denied["key_ref"].as_str(), secrets.reference(&key).as_deref());
    let readme = std::fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/../README.md")).unwrap();
    let shown = readme.split("```json log\n").nth(1).and_then(|block| block.split("```").next()).unwrap();
    let shown: Value = serde_json::from_str(shown).unwrap();
    let names = |line: &Value| line.as_object().unwrap().keys().cloned().collect::<std::collections::BTreeSet<_>>();
    let mut told = names(&shown);
    // Of a caller who names a plan, and of a decision on several keys.
    assert!(told.remove("plan") && told.remove("items"));
    assert_eq!(told, names(denied), "README shows a line that has these");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_flood_of_denials_is_told_in_few_lines_and_counted_in_full() {
    let mut limiter = function(LIMITER, "version = 1\n[limits.a]\nkey = ['user']\nrate = '1/year'\n", &[]).await;
    let event = json!({ "limit": "a", "key": { "user": unique(MARK) } });
    let (began, flood) = (std::time::Instant::now(), 400);
    for _ in 0..=flood {
        limiter.invoke(&event).await.unwrap();
    }
    let seconds = began.elapsed().as_secs() + 1;
    let printed = limiter.printed();
    let lines = denials(&printed);
    let bound = (seconds + 1) * u64::from(tollgate::logs::LINES_PER_SECOND);
    assert!((1..=bound.min(flood)).contains(&(lines.len() as u64)), "{} lines in {seconds} s", lines.len());
    assert_eq!(sum(&emf::sums(&printed), "Denied", &[]), flood);
    let told: u64 = lines.iter().map(|line| 1 + line["kept_back"].as_u64().unwrap_or_default()).sum();
    assert!(told <= flood, "what was kept back is counted once");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_limiter_that_fails_is_told_from_one_that_limits() {
    let policy = "version = 1\n[limits.open]\nkey = ['user']\nrate = '5/day'\non_store_failure = 'open'\n\
        [limits.closed]\nkey = ['user']\nrate = '5/day'\non_store_failure = 'closed'\n";
    let url = endpoint().await;
    let variables = [("TOLLGATE_TABLE", "no-such-table"), ("TOLLGATE_ENDPOINT_URL", url.as_str())];
    let mut limiter = Function::printing(LIMITER, TaskRoot::with_policy(policy), &variables).await;
    let ask = |limit: &str| json!({ "limit": limit, "key": { "user": unique(MARK) } });
    assert_eq!(limiter.invoke(&ask("open")).await.unwrap()["source"], "open");
    assert_eq!(limiter.invoke(&ask("closed")).await.unwrap_err().0, "LimiterUnavailable");
    let printed = limiter.printed();
    let sums = emf::sums(&printed);
    let whole = |name| sum(&sums, name, &[]);
    assert_eq!(["LimiterDegraded", "Unavailable", "Denied", "Allowed"].map(whole), [2, 1, 0, 1]);
    assert_eq!(sum(&sums, "LimitDecisions", &["Limit=open", "Outcome=open", "Source=open"]), 1);
    assert_eq!(sum(&sums, "LimitDecisions", &["Limit=closed", "Outcome=closed", "Source=closed"]), 1);
    let warned = logs(&printed).into_iter().filter(|line| line["level"] == "WARN" && line.get("requestId").is_some());
    assert_eq!(warned.count(), 2, "one line each: {printed}");
    assert!(denials(&printed).is_empty());
    assert_no_mark(&printed);
}

/// Everything that a caller can write, on every kind of gateway, in good and bad shape.
#[tokio::test(flavor = "multi_thread")]
async fn nothing_of_a_caller_is_printed() {
    let sample = std::fs::read_to_string(format!("{}/../infra/tollgate.toml", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let mut api = function(SAMPLE_API, &sample, &[]).await;
    let mut denied = 0;
    for sender in [Sender::RestApi, Sender::HttpApi, Sender::FunctionUrl] {
        for (method, path) in
            [("POST", "/api/orders"), ("GET", "/api/export"), ("POST", "/api/auth/login"), ("GET", "/nowhere")]
        {
            for n in 0..12 {
                let event = marked(sender, method, path, n);
                denied += u64::from(api.respond(&event).await.status == 429);
            }
        }
    }
    let mut balanced = load_balancer("POST", &format!("/api/orders/{MARK}"), MARK);
    balanced["headers"]["x-forwarded-for"] = MARK.into();
    api.respond(&balanced).await;
    // What no gateway writes fails, and is told without what it was.
    let _ = api.invoke(&json!({ "requestContext": { "http": { "method": MARK } }, "headers": MARK })).await;
    let _ = api.invoke(&json!(MARK)).await;
    let printed = api.printed();
    assert!(denied > 0 && !denials(&printed).is_empty(), "{denied} denied");
    assert_no_mark(&printed);

    let mut limiter = function(LIMITER, THREE_A_YEAR, &[]).await;
    for event in [
        json!({ "limit": MARK, "key": { "user": MARK } }),
        json!({ "limit": "orders", "key": { "user": MARK, "tenant": MARK }, "plan": MARK }),
        json!({ "limit": "orders", "key": { (MARK): MARK } }),
        json!({ "limit": "watched", "key": { "user": MARK }, "cost": MARK }),
        json!({ (MARK): MARK }),
        json!(MARK),
        signed(Sender::HttpApi, "POST", &format!("/{MARK}"), MARK),
        signed(Sender::RestApi, "POST", "/v1/decisions", MARK),
        unsigned(Sender::HttpApi, "POST", "/v1/decisions", MARK),
    ] {
        let _ = limiter.invoke(&event).await;
    }
    let printed = limiter.printed();
    assert!(!printed.is_empty());
    logs(&printed);
    assert_no_mark(&printed);
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_can_be_off_or_elsewhere_and_denials_quiet() {
    let policy = "version = 1\n[limits.a]\nkey = ['user']\nrate = '1/year'\n";
    let event = |user: &str| json!({ "limit": "a", "key": { "user": user } });
    for (variables, namespace, denials_told) in [
        (&[("TOLLGATE_METRICS", "off")][..], None, 1),
        (&[("TOLLGATE_METRICS_NAMESPACE", "Shop/Limits"), ("RUST_LOG", "warn")], Some("Shop/Limits"), 0),
    ] {
        let mut limiter = function(LIMITER, policy, variables).await;
        let user = unique(MARK);
        for _ in 0..2 {
            limiter.invoke(&event(&user)).await.unwrap();
        }
        let printed = limiter.printed();
        assert_eq!(emf::lines(&printed).next().is_some(), namespace.is_some(), "{printed}");
        assert!(emf::lines(&printed).all(|line| line.contains(&format!("{:?}", namespace.unwrap_or_default()))));
        assert_eq!(denials(&printed).len(), denials_told, "{printed}");
    }
}

fn with_request_id(mut event: Value) -> Value {
    event["requestContext"]["requestId"] = "api-request-1".into();
    event
}

/// An event in which everything that a caller chooses is marked.
fn marked(sender: Sender, method: &str, path: &str, n: usize) -> Value {
    let body = match n % 3 {
        0 => {
            json!({ "username": format!("{MARK}@x.org"), "password": MARK, "phone": format!("+40{MARK}") }).to_string()
        }
        1 => format!("username={MARK}%40x.org&password={MARK}"),
        _ => MARK.repeat(3),
    };
    let mut event = unsigned(sender, method, path, &body);
    let claims =
        json!({ "sub": MARK, "plan": MARK, "email": format!("{MARK}@x.org"), "phone_number": MARK, "api_key": MARK });
    for name in
        ["user-agent", "authorization", "referer", "x-forwarded-for", "x-tenant", "x-api-key", "accept-language"]
    {
        event["headers"][name] = MARK.into();
    }
    let cookie = format!("device={MARK}; session={MARK}");
    event["headers"]["cookie"] = cookie.as_str().into();
    event["requestContext"]["identity"]["apiKey"] = MARK.into();
    if sender == Sender::RestApi {
        event["requestContext"]["authorizer"] = json!({ "claims": claims });
        event["queryStringParameters"] = json!({ (MARK): MARK });
    } else {
        event["requestContext"].as_object_mut().unwrap().remove("identity");
        event["requestContext"]["authorizer"] = json!({ "jwt": { "claims": claims, "scopes": null } });
        event["requestContext"]["http"]["userAgent"] = MARK.into();
        event["rawQueryString"] = format!("{MARK}={MARK}").into();
        event["cookies"] = json!([cookie]);
    }
    event
}

/// The address that all events of these tests come from, and the name of who signs them, are as personal as the mark.
fn assert_no_mark(printed: &str) {
    for value in [MARK, "192.0.2.1", "ASIAEXAMPLE", "user/caller", "x.org"] {
        let found = printed.lines().find(|line| line.contains(value));
        assert_eq!(found, None, "{value} was printed");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_of_a_route_with_step_up_are_a_metric_by_route_and_reason() {
    let policy = "version = 1\n[limits.units]\nkey = ['user']\nrate = '1000/min'\n\
        [[routes]]\nmatch = 'PUT /api/payout-account'\ncharge = ['units']\nstep_up = { max_age = '5min', acr = ['mfa'] }\n";
    let mut api = function(SAMPLE_API, policy, &[]).await;
    let now = SystemClock.now().as_secs();
    let (user, at) = (unique(MARK), |seconds: u64| seconds.to_string());
    let ask = |claims: &Value| {
        let mut claims = claims.clone();
        claims["sub"] = user.as_str().into();
        by(Sender::HttpApi, "PUT", "/api/payout-account", &claims)
    };
    let refused = [
        (json!({}), "missing"),
        (json!({ "auth_time": at(now * 1000), "acr": "mfa" }), "missing"),
        (json!({ "auth_time": at(now - 400), "acr": "mfa" }), "too_old"),
        (json!({ "auth_time": at(now + 400), "acr": "mfa" }), "from_future"),
        (json!({ "auth_time": at(now), "acr": MARK }), "insufficient"),
    ];
    for (claims, reason) in &refused {
        assert_eq!(api.respond(&ask(claims)).await.status, 401, "{reason}");
    }
    assert_eq!(api.respond(&ask(&json!({ "auth_time": at(now), "acr": "mfa" }))).await.status, 200);
    let printed = api.printed();
    let sums = emf::sums(&printed);
    assert_eq!(sum(&sums, "StepUpRequired", &[]), 5);
    for (reason, n) in [("missing", 2), ("too_old", 1), ("from_future", 1), ("insufficient", 1), ("revoked", 0)] {
        let of = ["Route=PUT /api/payout-account".to_owned(), format!("Reason={reason}")];
        assert_eq!(sum(&sums, "StepUpRequired", &of.each_ref().map(String::as_str)), n, "{reason}");
    }
    assert_eq!(sum(&sums, "StepUpUnavailable", &[]), 0);
    assert!(!printed.contains(MARK), "{printed}");
}
