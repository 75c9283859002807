//! A limiter that cannot decide is not a caller who is limited.

use crate::support::{App, Failure, SAMPLE};
use serde_json::json;
use std::time::Duration;
use tollgate_dynamodb::Error;

const FAILURES: [Failure; 6] = [
    || Error::Ambiguous("secret-endpoint timed out".to_owned()),
    || Error::Unreachable { endpoint: "http://secret-endpoint".to_owned(), cause: "refused".to_owned() },
    || Error::Deadline(Duration::from_millis(50)),
    || Error::TableMissing { table: "secret-table".to_owned(), endpoint: "http://secret-endpoint".to_owned() },
    || Error::AccessDenied { action: "dynamodb:UpdateItem", message: "secret-role".to_owned() },
    || Error::Contended(8),
];

#[tokio::test]
async fn a_closed_route_is_503_with_nothing_of_the_store_in_it() {
    for failure in FAILURES {
        let app = App::new(SAMPLE);
        app.fail_with(failure);
        let failed = app.ask("GET", "/api/export", "alice", &[]).await;
        assert_eq!((failed.status, failed.header("retry-after")), (503, Some("1")));
        assert_eq!(failed.header("cache-control"), Some("no-store"));
        assert_eq!(failed.json()["error"], json!("limiter_unavailable"));
        let everything = format!("{:?} {}", failed.headers, failed.text).to_lowercase();
        for leak in ["secret", "dynamo", "table", "units", "ratelimit"] {
            assert!(!everything.contains(leak), "{leak} in {everything}");
        }
    }
}

#[tokio::test]
async fn an_open_route_passes_without_figures() {
    for failure in FAILURES {
        let app = App::new(SAMPLE);
        app.fail_with(failure);
        let passed = app.ask("POST", "/api/orders", "alice", &[]).await;
        assert_eq!((passed.status, passed.text.as_str()), (201, "decided: true"));
        assert_eq!((passed.header("ratelimit"), passed.header("ratelimit-policy")), (None, None));
    }
}
