//! Requests that count as what they have come to: failures alone, not what the server failed, the true cost told by the handler.

use crate::support::{App, facts, request};
use axum::body::Body;
use axum::routing::any;
use futures_util::future::join_all;
use http::{Request, StatusCode};
use serde_json::json;
use tollgate::Decision;
use tollgate::http::Costs;

/// A policy with the limit `a`, of whose user a request is charged 4 of.
fn policy(limit: &str, charge: &str) -> String {
    format!(
        "version = 1\n[limits.a]\nkey = [\"user\"]\n{limit}\n[[routes]]\nmatch = \"* /\"\n\
         charge = [{{ limit = \"a\"{charge} }}]\n"
    )
}

const FAILURES: &str = "rate = \"5/15min\"\nalgorithm = \"sliding-log\"\ncount = \"failures\"";

/// Answers with the status in the header `x-status`, and tells the cost in `x-cost` if there is one.
fn app(policy: &str) -> App {
    let handler = any(async |request: Request<Body>| {
        let asked = |name: &str| request.headers().get(name).and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
        if let Some(cost) = asked("x-cost") {
            let costs = request.extensions().get::<Costs>().expect("costs to tell");
            costs.settle("a", cost).expect("a limit that is settled");
            let wrong = costs.settle("orders", 1).expect_err("another limit").to_string();
            assert!(wrong.contains("\"orders\"") && wrong.contains("on: a"), "{wrong}");
        }
        let left = request.extensions().get::<Decision>().map(|decision| decision.limits[0].remaining);
        let status = StatusCode::from_u16(u16::try_from(asked("x-status").unwrap_or(200)).expect("a status"));
        (status.expect("a status"), format!("{left:?}"))
    });
    App::with_handler(policy, handler)
}

/// Status and what the handler saw left of requests of alice with these headers, in turn.
async fn in_turn(app: &App, headers: &[(&str, &str)]) -> (u16, String) {
    let answered = app.ask("POST", "/", "alice", headers).await;
    (answered.status, answered.text)
}

#[tokio::test]
async fn failures_count_and_a_success_clears_those_before_it() {
    let app = app(&policy(FAILURES, ""));
    let ask = async |status| in_turn(&app, &[("x-status", status)]).await;
    for left in [4, 3, 2, 1] {
        assert_eq!(ask("401").await, (401, format!("Some({left})")));
    }
    assert_eq!(ask("200").await, (200, "Some(0)".to_owned()), "the fifth is tried");
    for left in [4, 3, 2, 1, 0] {
        assert_eq!(ask("401").await, (401, format!("Some({left})")), "all is forgotten");
    }
    assert_eq!(ask("200").await.0, 429, "a right one is not tried either");
    let answered = app.ask("POST", "/", "alice", &[]).await;
    assert_eq!(answered.header("retry-after"), Some("900"));
    app.clock.advance(std::time::Duration::from_secs(900));
    assert_eq!(ask("302").await.0, 302);
}

#[tokio::test]
async fn an_address_keeps_its_failures_when_one_of_its_calls_succeeds() {
    let app = app(&policy(&format!("{FAILURES}\non_success = \"keep\""), ""));
    let mut statuses = Vec::new();
    for status in ["401", "401", "200", "401", "401", "200", "401", "200"] {
        statuses.push(in_turn(&app, &[("x-status", status)]).await.0);
    }
    assert_eq!(statuses, [401, 401, 200, 401, 401, 200, 401, 429]);
}

/// DESIGN's promise of logins: what is under way counts, so that fifty guesses at once are five.
#[tokio::test]
async fn fifty_failures_at_once_are_tried_five_times() {
    for algorithm in ["sliding-log", "sliding-window", "fixed-window", "token-bucket"] {
        let limit = format!("rate = \"5/15min\"\nalgorithm = \"{algorithm}\"\ncount = \"failures\"");
        let app = app(&policy(&limit, ""));
        let at_once = join_all((0..50).map(|_| in_turn(&app, &[("x-status", "401")]))).await;
        assert_eq!(at_once.iter().filter(|(status, _)| *status == 401).count(), 5, "{algorithm}");
        assert_eq!(at_once.iter().filter(|(status, _)| *status == 429).count(), 45, "{algorithm}");
    }
}

#[tokio::test]
async fn what_the_server_failed_does_not_count_where_the_policy_says_so() {
    for (rule, left) in [("", "Some(2)"), ("refund_on = \"5xx\"", "Some(4)")] {
        let app = app(&policy(&format!("rate = \"5/h\"\n{rule}"), ""));
        for status in ["500", "503"] {
            in_turn(&app, &[("x-status", status)]).await;
        }
        assert_eq!(in_turn(&app, &[]).await, (200, left.to_owned()), "{rule:?}");
        assert_eq!(in_turn(&app, &[("x-status", "404")]).await.0, 404, "a caller's mistake counts");
    }
    // Of a guess nobody knows whether it was tried.
    let app = app(&policy(FAILURES, ""));
    in_turn(&app, &[("x-status", "500")]).await;
    assert_eq!(in_turn(&app, &[]).await.1, "Some(3)");
}

#[tokio::test]
async fn a_handler_tells_what_a_request_has_cost() {
    let reserving = ", cost = 4, settle_within = \"1min\"";
    let app = app(&policy("rate = \"10/h\"\ndebt = 5", reserving));
    let ask = async |cost| in_turn(&app, &[("x-cost", cost)]).await;
    assert_eq!(ask("1").await, (200, "Some(6)".to_owned()));
    assert_eq!(ask("6").await, (200, "Some(5)".to_owned()), "one was charged before it");
    // Three are left, and it costs more than they and the debt.
    assert_eq!(ask("0").await.0, 429, "an estimate is charged before it is known to be wrong");
    app.clock.advance(std::time::Duration::from_secs(360));
    assert_eq!(ask("12").await, (200, "Some(0)".to_owned()), "four are left, and it costs eight more");
    let answered = app.ask("POST", "/", "alice", &[]).await;
    assert_eq!((answered.status, answered.header("retry-after")), (429, Some("3240")), "five of debt, and four");
    // A handler that says nothing has cost what was charged, and leaves no reservation.
    let bob = app.ask("POST", "/", "bob", &[]).await;
    assert_eq!(bob.text, "Some(6)");
    let bob = app.send(request("POST", "/", &facts(&json!({ "sub": "bob" })), &[("x-cost", "4")])).await;
    assert_eq!(bob.text, "Some(2)");
}

/// What an answer says is left is what is left once it counts as what it is.
#[tokio::test]
async fn the_fields_of_an_answer_tell_what_is_left_after_it() {
    let failing = app(&policy(FAILURES, ""));
    let left = async |app: &App, headers: &[(&str, &str)]| {
        app.ask("POST", "/", "alice", headers).await.header("ratelimit").map(str::to_owned)
    };
    assert_eq!(left(&failing, &[("x-status", "401")]).await.as_deref(), Some("\"a\";r=4;t=900"));
    assert_eq!(left(&failing, &[]).await.as_deref(), Some("\"a\";r=5;t=0"), "a success has cleared it");
    let settling = app(&policy("rate = \"10/h\"", ", cost = 4, settle_within = \"1min\""));
    assert_eq!(left(&settling, &[("x-cost", "1")]).await.as_deref(), Some("\"a\";r=9;t=360"));
}

/// A body that is streamed comes after the answer's head, and so after the settlement: whoever tells then learns that.
#[tokio::test]
async fn a_cost_that_is_told_after_the_answer_is_refused() {
    let (keep, kept) = std::sync::mpsc::channel();
    let handler = any(move |request: Request<Body>| {
        let keep = keep.clone();
        async move {
            keep.send(request.extensions().get::<Costs>().cloned()).expect("the test listens");
            StatusCode::OK
        }
    });
    let app = App::with_handler(&policy("rate = \"10/h\"", ", cost = 4, settle_within = \"1min\""), handler);
    app.ask("POST", "/", "alice", &[]).await;
    let costs = kept.recv().expect("a request").expect("costs");
    assert_eq!(costs.settle("a", 1), Err(tollgate::http::NotSettled::TooLate));
}

#[tokio::test]
async fn a_route_that_settles_nothing_has_no_costs_to_tell() {
    let handler = any(async |request: Request<Body>| request.extensions().get::<Costs>().is_some().to_string());
    let app = App::with_handler(&policy("rate = \"10/h\"", ""), handler);
    assert_eq!(app.ask("POST", "/", "alice", &[]).await.text, "false");
}
