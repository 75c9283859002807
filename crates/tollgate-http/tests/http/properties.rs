//! Whatever comes in: no panic, no 5xx, and a `Retry-After` that is neither 0 nor too short.

use crate::support::{App, SAMPLE, facts, request};
use axum::body::Body;
use http::{HeaderName, HeaderValue, Request};
use proptest::prelude::*;
use serde_json::json;
use std::time::Duration;
use tollgate::http::Facts;

fn run<F: Future>(future: F) -> F::Output {
    tokio::runtime::Builder::new_current_thread().enable_time().build().expect("a runtime").block_on(future)
}

fn policy(n: u64, period_ms: u64, burst: u64) -> String {
    format!(
        "version = 1\n[limits.a]\nkey = [\"user\"]\nrate = \"{n}/{period_ms}ms\"\nburst = {burst}\n\
         [[routes]]\nmatch = \"POST /api/orders\"\ncharge = [\"a\"]\n"
    )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// floe#469, AspNetCoreRateLimit#415: a header was an exception and a 500.
    #[test]
    fn any_request_is_answered_without_a_server_error(
        path in "(/api/search|/api/orders|/api/export|/[ -~]{0,20}|/%[0-9a-f]{2})([?][!-~]{0,40})?",
        names in prop::collection::vec("(accept-language|origin|x-forwarded-for|forwarded|x-[a-z]{1,8})", 0..5),
        values in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..60), 5),
        sub in ".{0,40}",
        plan in ".{0,20}",
        address in "(.{0,60}|[0-9a-f:.%\\[\\]]{0,50})",
        method in "(GET|POST|OPTIONS|[A-Z]{1,8})",
    ) {
        // Behind a layer without sessions a route with step-up has no other answer than 503.
        let sample: Vec<_> = SAMPLE.lines().filter(|line| !line.starts_with("step_up")).collect();
        let sample = sample.join("\n");
        let app = App::new(&format!("{sample}\n[http]\ncors = {{ origins = [\"*\"] }}\nlegacy_headers = [\"RateLimit\"]\n"));
        let facts = facts(&json!({ "sub": sub, "plan": plan })).with_source_address(&address);
        let Ok(mut request) = Request::builder().method(method.as_str()).uri(&path).extension(facts).body(Body::empty())
        else { return Ok(()) };
        for (name, value) in names.iter().zip(&values) {
            if let Ok(value) = HeaderValue::from_bytes(value) {
                request.headers_mut().append(HeaderName::try_from(name).expect("a name"), value);
            }
        }
        let answered = run(app.send(request));
        prop_assert!(answered.status < 500, "{answered:?}");
    }

    #[test]
    fn any_request_context_gives_facts(text in "[ -~]{0,200}", address in ".{0,80}") {
        let context = json!({ "authorizer": { "jwt": text, "claims": [text] }, "identity": { "sourceIp": address } });
        let facts = Facts::from_request_context(context.as_object().cloned().unwrap_or_default());
        let _ = (facts.claim(&text), facts.context(&text), facts.source_address());
    }

    /// flask-limiter#62, kubevuln PR#755: 0, or truncated.
    #[test]
    fn retry_after_is_at_least_one_second_and_never_below_the_true_wait(
        n in 1_u64..2000, period_ms in 1_u64..10_000_000, burst in 1_u64..20, pause_ms in 0_u64..100_000,
    ) {
        let app = App::new(&policy(n, period_ms, burst));
        let ask = || run(app.send(request("POST", "/api/orders", &facts(&json!({ "sub": "alice" })), &[])));
        for _ in 0..burst {
            prop_assert_eq!(ask().status, 201);
        }
        app.clock.advance(Duration::from_millis(pause_ms));
        let denied = (0..=burst).map(|_| ask()).find(|answered| answered.status == 429);
        let denied = denied.expect("a bucket that is empty in the end");
        let seconds: u64 = denied.header("retry-after").expect("a field").parse().expect("an integer");
        prop_assert!(seconds >= 1);
        prop_assert_eq!(&denied.json()["retryAfter"], &json!(seconds));
        app.clock.advance(Duration::from_secs(seconds));
        prop_assert_eq!(ask().status, 201);
    }
}
