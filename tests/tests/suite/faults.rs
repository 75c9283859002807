//! Answers that are none: what may be sent again is, what may have been applied is not, and each is told apart.

use crate::harness::{SECOND, TABLE, connected, endpoint, key, one};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tollgate::{Connection, Counters, DynamoStore, Limiter, Store, SystemClock};
use tollgate_core::{Charges, StoreFailure};
use tollgate_dynamodb::{Error, Fate};

/// Answers every request with a DynamoDB error; counts them.
#[derive(Clone)]
struct Says {
    status: u16,
    code: &'static str,
    /// More fields of the body.
    more: &'static str,
    requests: Arc<AtomicU64>,
}

async fn says(status: u16, code: &'static str) -> (String, Arc<AtomicU64>) {
    says_more(status, code, "").await
}

async fn says_more(status: u16, code: &'static str, more: &'static str) -> (String, Arc<AtomicU64>) {
    async fn answer(State(says): State<Says>, _body: Bytes) -> Response {
        says.requests.fetch_add(1, Ordering::SeqCst);
        let Says { code, more, .. } = says;
        let body = format!(r#"{{"__type":"com.amazonaws.dynamodb.v20120810#{code}","message":"because"{more}}}"#);
        let status = StatusCode::from_u16(says.status).unwrap();
        (status, [("content-type", "application/x-amz-json-1.0")], body).into_response()
    }
    let requests = Arc::new(AtomicU64::new(0));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let router = Router::new().fallback(answer).with_state(Says { status, code, more, requests: requests.clone() });
    tokio::spawn(async move { axum::serve(listener, router).await });
    (url, requests)
}

async fn limiter(url: &str, deadline: Duration) -> (Limiter<DynamoStore>, Arc<Counters>) {
    let counters = Arc::new(Counters::default());
    let store = DynamoStore::new(&connected(url).await, TABLE, Arc::new(SystemClock), counters.clone());
    (Limiter::new(store).with_deadline(deadline), counters)
}

/// A charge that a failing store refuses.
fn closed() -> Charges {
    one(&key(), 1, SECOND, 1).with_store_failure(StoreFailure::Closed)
}

#[tokio::test(flavor = "multi_thread")]
async fn throttling_says_not_applied_and_is_retried_within_the_deadline() {
    // rate-limiter-flexible: a throttling error read as a denial.
    let (url, requests) = says(400, "ProvisionedThroughputExceededException").await;
    let (limiter, counters) = limiter(&url, Duration::from_millis(400)).await;
    let error = limiter.take(&[closed()]).await.unwrap_err();
    assert!(matches!(error, Error::Throttled(_)), "{error:?}");
    assert_eq!(error.fate(), Fate::NotApplied);
    let sent = requests.load(Ordering::SeqCst);
    assert!(sent >= 2, "sent {sent} times");
    assert_eq!((counters.counts().throttled, counters.counts().store_failures), (sent, 1));
}

/// As DynamoDB tells why (API Reference, "ThrottlingReason").
#[tokio::test(flavor = "multi_thread")]
async fn a_hot_key_is_told_apart_from_a_table_that_throttles() {
    let reason = |kind: &str| format!(r#"{{"reason":"{kind}","resource":"arn:aws:dynamodb:eu-west-1:1:table/t"}}"#);
    let (hot, table) = (reason("TableWriteKeyRangeThroughputExceeded"), reason("TableWriteAccountLimitExceeded"));
    let cases = [
        (vec![&hot], true),
        (vec![&hot, &hot], true),
        (vec![&hot, &table], false),
        (vec![&table], false),
        (vec![], false),
    ];
    for code in ["ThrottlingException", "ProvisionedThroughputExceededException"] {
        for (reasons, is_hot) in &cases {
            let all: Vec<_> = reasons.iter().map(|reason| reason.as_str()).collect();
            let field = if code == "ThrottlingException" { "throttlingReasons" } else { "ThrottlingReasons" };
            let more: &'static str = format!(r#","{field}":[{}]"#, all.join(",")).leak();
            let (url, requests) = says_more(400, code, more).await;
            let (limiter, counters) = limiter(&url, Duration::from_millis(200)).await;
            let error = limiter.take(&[closed()]).await.unwrap_err();
            assert_eq!(
                (matches!(error, Error::HotKey(_)), error.is_outage()),
                (*is_hot, !is_hot),
                "{code} {more}: {error:?}"
            );
            assert_eq!(error.fate(), Fate::NotApplied);
            assert!(requests.load(Ordering::SeqCst) >= 2, "sent again within the deadline");
            assert_eq!(counters.counts().hot_keys, u64::from(*is_hot));
        }
    }
}

/// Answers the first request of each connection with an empty item, and nothing after that, as what is between a frozen function and
/// the table does with a connection that it has forgotten.
async fn forgetful() -> (String, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let connections = Arc::new(AtomicU64::new(0));
    let count = connections.clone();
    tokio::spawn(async move {
        while let Ok((mut socket, _)) = listener.accept().await {
            count.fetch_add(1, Ordering::SeqCst);
            tokio::spawn(async move {
                let mut buffer = [0; 8192];
                let _ = socket.read(&mut buffer).await;
                let head = "HTTP/1.1 200 OK\r\ncontent-type: application/x-amz-json-1.0\r\ncontent-length: 2\r\n\r\n{}";
                let _ = socket.write_all(head.as_bytes()).await;
                std::future::pending::<()>().await;
            });
        }
    });
    (url, connections)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_that_has_been_idle_for_long_is_not_waited_for() {
    let (url, connections) = forgetful().await;
    let connection = Connection::from_environment().endpoint_url(&url).idle_at_most(Duration::from_millis(100));
    let connected = tollgate::connect(&connection).await.unwrap();
    let store = DynamoStore::new(&connected, TABLE, Arc::new(SystemClock), Arc::new(Counters::default()));
    for opened in 1..=3 {
        store.warm_up().await.expect("an answer, on a new connection");
        assert_eq!(connections.load(Ordering::SeqCst), opened);
        tokio::time::sleep(Duration::from_millis(150)).await;
    }
}

/// Answers each connection once and closes it 20 ms later, from a thread of its own.
fn closing() -> (String, Arc<AtomicU64>) {
    use std::io::{Read, Write};
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let connections = Arc::new(AtomicU64::new(0));
    let count = connections.clone();
    std::thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            count.fetch_add(1, Ordering::SeqCst);
            let _ = socket.read(&mut [0; 8192]);
            let head = "HTTP/1.1 200 OK\r\ncontent-type: application/x-amz-json-1.0\r\ncontent-length: 2\r\n\r\n{}";
            let _ = socket.write_all(head.as_bytes());
            std::thread::sleep(Duration::from_millis(20));
        }
    });
    (url, connections)
}

/// A frozen function: nothing of the process runs while the server closes the connection, and the next decision comes first.
#[tokio::test]
async fn a_connection_that_the_server_closed_during_a_freeze_is_not_used() {
    let (url, connections) = closing();
    let store = DynamoStore::new(&connected(&url).await, TABLE, Arc::new(SystemClock), Arc::new(Counters::default()));
    for opened in 1..=5 {
        store.warm_up().await.expect("an answer, on a new connection");
        assert_eq!(connections.load(Ordering::SeqCst), opened);
        std::thread::sleep(Duration::from_millis(150));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_error_may_have_been_applied_and_is_not_repeated() {
    let (url, requests) = says(500, "InternalServerError").await;
    let (limiter, _) = limiter(&url, Duration::from_secs(5)).await;
    let error = limiter.take(&[closed()]).await.unwrap_err();
    assert_eq!((error.fate(), requests.load(Ordering::SeqCst)), (Fate::Unknown, 1), "{error:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn refusals_of_aws_are_told_apart() {
    type IsRight = fn(&Error) -> bool;
    let cases: [(&str, IsRight); 5] = [
        ("ResourceNotFoundException", |e| matches!(e, Error::TableMissing { .. })),
        ("AccessDeniedException", |e| matches!(e, Error::AccessDenied { action: "dynamodb:UpdateItem", .. })),
        ("ExpiredTokenException", |e| matches!(e, Error::BadCredentials(_))),
        ("UnrecognizedClientException", |e| matches!(e, Error::BadCredentials(_))),
        ("ValidationException", |e| matches!(e, Error::Refused { .. })),
    ];
    for (code, is_right) in cases {
        let (url, requests) = says(400, code).await;
        let (limiter, _) = limiter(&url, Duration::from_secs(5)).await;
        let error = limiter.take(&[closed()]).await.unwrap_err();
        assert!(is_right(&error), "{code}: {error:?}");
        assert_eq!((error.fate(), requests.load(Ordering::SeqCst)), (Fate::NotApplied, 1), "{code}");
    }
}

/// Contention is no outage, so it must not be hidden by what else was wrong.
#[tokio::test(flavor = "multi_thread")]
async fn a_transaction_that_another_was_in_the_way_of_is_contended_whatever_else_it_was() {
    let reasons = r#","CancellationReasons":[{"Code":"ThrottlingError"},{"Code":"TransactionConflict"}]"#;
    let (url, requests) = says_more(400, "TransactionCanceledException", reasons).await;
    let (limiter, counters) = limiter(&url, Duration::from_millis(400)).await;
    let open = || one(&key(), 1, SECOND, 1).with_store_failure(StoreFailure::Open).atomically(true);
    let error = limiter.take(&[open(), open()]).await.unwrap_err();
    assert!(matches!(error, Error::Contended { fate: Fate::NotApplied, .. }), "{error:?}");
    assert!(requests.load(Ordering::SeqCst) >= 2, "it is tried again");
    assert_eq!((counters.counts().contended, counters.counts().throttled), (1, 0));
}

/// As with transactions: whoever writes from two Regions at once must not get past the limit by it.
#[tokio::test(flavor = "multi_thread")]
async fn a_write_that_a_transaction_or_another_region_was_in_the_way_of_is_tried_again_and_no_outage() {
    for code in ["TransactionConflictException", "ReplicatedWriteConflictException"] {
        let (url, requests) = says(400, code).await;
        let (limiter, counters) = limiter(&url, Duration::from_millis(400)).await;
        let open = one(&key(), 1, SECOND, 1).with_store_failure(StoreFailure::Open);
        let error = limiter.take(&[open]).await.unwrap_err();
        assert!(matches!(error, Error::Contended { fate: Fate::NotApplied, .. }), "{code}: {error:?}");
        assert!(requests.load(Ordering::SeqCst) >= 2, "{code}: it is tried again");
        assert_eq!((counters.counts().contended, counters.counts().store_failures), (1, 0), "{code}");
    }
}

/// Accepts connections, reads, and then does as told.
async fn silent(closes: bool) -> (String, Arc<AtomicU64>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let requests = Arc::new(AtomicU64::new(0));
    let count = requests.clone();
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((mut socket, _)) = listener.accept().await {
            let mut buffer = [0; 4096];
            let _ = socket.read(&mut buffer).await;
            count.fetch_add(1, Ordering::SeqCst);
            if !closes {
                open.push(socket);
            }
        }
    });
    (url, requests)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_lost_answer_is_ambiguous_and_not_repeated() {
    for closes in [true, false] {
        let (url, requests) = silent(closes).await;
        let (limiter, _) = limiter(&url, Duration::from_millis(300)).await;
        let error = limiter.take(&[closed()]).await.unwrap_err();
        assert_eq!((error.fate(), requests.load(Ordering::SeqCst)), (Fate::Unknown, 1), "{error:?}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_stopped_server_is_known_not_to_have_applied_anything() {
    let (limiter, _) = limiter("http://127.0.0.1:9", Duration::from_secs(5)).await;
    let error = limiter.take(&[closed()]).await.unwrap_err();
    assert!(matches!(&error, Error::Unreachable { endpoint, .. } if endpoint == "http://127.0.0.1:9"), "{error:?}");
    assert_eq!(error.fate(), Fate::NotApplied);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_lost_after_the_write_was_applied_is_charged_once() {
    // rate-limiter-flexible: what failed is not written twice. The table itself is fine; only the way back is cut.
    let upstream = endpoint().await;
    let cut = cut_replies(&upstream).await;
    let key = key();
    let charges = one(&key, 1, 86_400 * SECOND, 5).with_store_failure(StoreFailure::Closed);
    let (lossy, _) = limiter(&cut, Duration::from_secs(2)).await;
    let error = lossy.take(std::slice::from_ref(&charges)).await.unwrap_err();
    assert_eq!(error.fate(), Fate::Unknown, "{error:?}");
    let (sound, _) = limiter(&upstream, Duration::from_secs(10)).await;
    let mut left = Vec::new();
    for _ in 0..5 {
        let decision = sound.take(std::slice::from_ref(&charges)).await.unwrap();
        left.push((decision.is_allowed(), decision.limits[0].remaining));
    }
    assert_eq!(left, [(true, 3), (true, 2), (true, 1), (true, 0), (false, 0)]);
}

/// Forwards each request and hangs up instead of answering, once the answer is there.
async fn cut_replies(upstream: &str) -> String {
    let upstream = upstream.strip_prefix("http://").unwrap().trim_end_matches('/').to_owned();
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((mut client, _)) = listener.accept().await {
            let mut server = tokio::net::TcpStream::connect(&upstream).await.unwrap();
            let (mut from_client, _to_client) = client.split();
            let (mut from_server, mut to_server) = server.split();
            let mut first = [0; 1];
            tokio::select! {
                _ = tokio::io::copy(&mut from_client, &mut to_server) => {}
                _ = from_server.read(&mut first) => {}
            }
        }
    });
    url
}

#[tokio::test(flavor = "multi_thread")]
async fn a_clock_that_is_off_is_corrected_before_the_first_decision() {
    use tollgate::testing::ManualClock;
    use tollgate::{Clock, Timestamp};
    let url = endpoint().await;
    for skew_ms in [-3_600_000_i64, 3_600_000] {
        let now = SystemClock.now();
        let wrong = ManualClock::new(Timestamp::from_millis(now.as_millis().checked_add_signed(skew_ms).unwrap()));
        let counters = Arc::new(Counters::default());
        let store = DynamoStore::new(&connected(&url).await, TABLE, Arc::new(wrong), counters.clone());
        assert!(!store.moment().clock_agrees);
        store.warm_up().await.unwrap();
        let moment = store.moment();
        assert!(moment.clock_agrees);
        assert!(moment.now.as_millis().abs_diff(SystemClock.now().as_millis()) < 10_000, "{skew_ms}");
        assert_eq!(counters.counts().clock_skews, 1);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn bad_connections_are_refused_in_words() {
    let refused = tollgate::connect(&Connection::from_environment().endpoint_url("127.0.0.1:8000")).await.unwrap_err();
    assert!(refused.to_string().contains("must start with http"), "{refused}");
}
