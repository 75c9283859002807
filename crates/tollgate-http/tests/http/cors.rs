//! CORS on refusals and on what passes.

use crate::support::{App, SAMPLE};
use tollgate_dynamodb::Error;

const ORIGIN: (&str, &str) = ("origin", "https://app.example.com");

fn with(http: &str) -> App {
    App::new(&format!("{SAMPLE}\n[http]\n{http}\n"))
}

/// agentgateway#926.
#[tokio::test]
async fn a_denial_and_a_failure_can_be_read_by_an_allowed_page() {
    let app = with("cors = { origins = [\"https://app.example.com\"], credentials = true }");
    let admitted = app.ask("POST", "/api/orders", "alice", &[ORIGIN]).await;
    assert_eq!(
        admitted.list("access-control-expose-headers"),
        "Retry-After, RateLimit, RateLimit-Policy, WWW-Authenticate"
    );
    assert_eq!(admitted.header("access-control-allow-origin"), None, "who may read it is the handler's to say");
    let denied = app.ask_exhausted("alice", &[ORIGIN]).await;
    app.fail_with(|| Error::NoRegion);
    let failed = app.ask("GET", "/api/export", "alice", &[ORIGIN]).await;
    assert_eq!((denied.status, failed.status), (429, 503));
    for answered in [denied, failed] {
        assert_eq!(answered.header("access-control-allow-origin"), Some("https://app.example.com"));
        assert_eq!(answered.header("access-control-allow-credentials"), Some("true"));
        assert_eq!(
            answered.list("access-control-expose-headers"),
            "Retry-After, RateLimit, RateLimit-Policy, WWW-Authenticate"
        );
        assert!(answered.list("vary").contains("Origin"), "{}", answered.list("vary"));
    }
}

#[tokio::test]
async fn other_origins_and_routes_that_opt_out_get_nothing() {
    let app = with("cors = { origins = [\"https://app.example.com\"] }");
    let denied = app.ask_exhausted("alice", &[("origin", "https://evil.example")]).await;
    assert_eq!((denied.status, denied.header("access-control-allow-origin")), (429, None));
    assert!(denied.list("vary").contains("Origin"));
    let off = SAMPLE.replacen("[[routes]]", "[[routes]]\ncors = false", 1);
    let app = App::new(&format!("{off}\n[http]\ncors = {{ origins = [\"*\"] }}\n"));
    let denied = app.ask_exhausted("alice", &[ORIGIN]).await;
    assert!(denied.headers.keys().all(|name| !name.as_str().starts_with("access-control")));
}

#[tokio::test]
async fn any_origin_is_a_star_and_legacy_fields_are_exposed_with_the_others() {
    let app = with("cors = { origins = [\"*\"] }\nlegacy_headers = [\"X-RateLimit\"]");
    let denied = app.ask_exhausted("alice", &[ORIGIN]).await;
    assert_eq!(denied.header("access-control-allow-origin"), Some("*"));
    assert_eq!(denied.header("access-control-allow-credentials"), None);
    assert!(!denied.list("vary").contains("Origin"));
    assert!(
        denied
            .list("access-control-expose-headers")
            .ends_with("x-ratelimit-limit, x-ratelimit-remaining, x-ratelimit-reset")
    );
}
