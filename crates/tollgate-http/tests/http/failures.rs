//! A limiter that cannot decide is not a caller who is limited.

use crate::support::{App, Failure, SAMPLE};
use serde_json::json;
use std::time::Duration;
use tollgate_dynamodb::Error;

/// The store is gone.
const OUTAGES: [Failure; 5] = [
    || Error::Ambiguous("secret-endpoint timed out".to_owned()),
    || Error::Unreachable { endpoint: "http://secret-endpoint".to_owned(), cause: "refused".to_owned() },
    || Error::Deadline(Duration::from_millis(50)),
    || Error::TableMissing { table: "secret-table".to_owned(), endpoint: "http://secret-endpoint".to_owned() },
    || Error::AccessDenied { action: "dynamodb:UpdateItem", message: "secret-role".to_owned() },
];

/// The store is there; contention and bad requests must not become a way past the limit.
const OTHERS: [Failure; 2] = [
    || Error::Contended { writes: 16, fate: tollgate_dynamodb::Fate::NotApplied },
    || Error::Refused { action: "dynamodb:UpdateItem", message: "secret-schema".to_owned() },
];

#[tokio::test]
async fn a_closed_route_is_503_with_nothing_of_the_store_in_it() {
    for failure in OUTAGES.into_iter().chain(OTHERS) {
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

/// The store is gone, and each process decides by its share: who has used it up is limited, and nobody else.
#[tokio::test]
async fn a_route_that_says_nothing_is_decided_by_a_share_of_its_limits() {
    for failure in OUTAGES {
        let app = App::new(&SAMPLE.replacen("version  = 1", "version = 1\ninstances = 5", 1));
        app.fail_with(failure);
        for left in (0..10).rev() {
            let passed = app.ask("POST", "/api/orders", "alice", &[]).await;
            let told = format!("\"orders\";r={left};");
            assert!(passed.status == 201 && passed.header("ratelimit").unwrap().contains(&told), "{passed:?}");
            let declared = passed.header("ratelimit-policy").unwrap();
            assert!(declared.starts_with("\"orders\";q=50;w=3600"), "{declared}");
        }
        let denied = app.ask("POST", "/api/orders", "alice", &[]).await;
        assert_eq!((denied.status, denied.header("retry-after")), (429, Some("360")));
        assert_eq!(denied.json()["error"], json!("rate_limited"));
        assert_eq!(app.ask("POST", "/api/orders", "bob", &[]).await.status, 201);
    }
}

#[tokio::test]
async fn an_open_route_passes_without_figures() {
    let policy = "version = 1\n[limits.orders]\nkey = ['user']\nrate = '5/h'\n\
        [[routes]]\nmatch = 'POST /api/orders'\ncharge = ['orders']\non_store_failure = 'open'\n";
    for failure in OUTAGES {
        let app = App::new(policy);
        app.fail_with(failure);
        let passed = app.ask("POST", "/api/orders", "alice", &[]).await;
        assert_eq!((passed.status, passed.text.as_str()), (201, "decided: true"));
        assert_eq!((passed.header("ratelimit"), passed.header("ratelimit-policy")), (None, None));
    }
}

#[tokio::test]
async fn what_is_no_outage_is_503_on_a_route_that_is_not_closed_too() {
    for failure in OTHERS {
        let app = App::new(SAMPLE);
        app.fail_with(failure);
        assert_eq!(app.ask("POST", "/api/orders", "alice", &[]).await.status, 503);
    }
}

#[tokio::test]
async fn a_head_request_costs_what_its_get_costs() {
    let app = App::new(SAMPLE);
    for _ in 0..20 {
        assert_eq!(app.ask("HEAD", "/api/search", "alice", &[]).await.status, 201);
    }
    assert_eq!(app.ask("HEAD", "/api/search", "alice", &[]).await.status, 429, "100 units at 5 each");
    assert_eq!(app.ask("HEAD", "/healthz", "alice", &[]).await.header("ratelimit"), None);
}
