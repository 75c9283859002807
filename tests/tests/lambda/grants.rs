//! A grant for one action, used by many sandboxes at once.

use crate::events::{Sender, unsigned};
use crate::harness::{Function, SAMPLE_API, TaskRoot, store, unique};
use crate::sample_api::by;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Barrier;
use tollgate::mfa::{Action, Caller, Sessions};
use tollgate_core::Key;
use tollgate_dynamodb::Items;

/// Nobody is in the way of it but the grant.
const POLICY: &str = "version = 1
[limits.units]
key = ['user']
rate = '1000/min'
[[routes]]
match = 'POST /api/keys'
charge = ['units']
step_up = { max_age = '5min', acr = ['mfa'], bind = [] }
";

#[tokio::test(flavor = "multi_thread")]
async fn of_thirty_processes_that_use_a_grant_at_once_one_does() {
    const PROCESSES: usize = 30;
    let (user, session) = (unique("user"), unique("session"));
    let claims = json!({ "sub": user, "origin_jti": session });
    let make = |grant: &str| {
        let mut event = by(Sender::HttpApi, "POST", "/api/keys", &claims);
        event["headers"]["tollgate-grant"] = grant.into();
        event
    };
    let mut functions = Vec::new();
    for _ in 0..PROCESSES {
        let mut function = Function::start(SAMPLE_API, TaskRoot::with_policy(POLICY)).await;
        // Its connection is there, so that the race is one of uses.
        assert_eq!(function.respond(&unsigned(Sender::HttpApi, "GET", "/healthz", "")).await.status, 200);
        functions.push(function);
    }
    let refused = functions[0].respond(&make("")).await;
    assert_eq!(refused.status, 401, "{refused:?}");
    let action: Action = refused.body["action"].as_str().unwrap().parse().unwrap();
    let caller = Caller { subject: Key::new([("user", user.as_str())]).unwrap(), session: Some(session.clone()) };
    // Whoever looks at factors, beside the functions.
    let sessions = Sessions::new(Items::new(store().await).with_deadline(Duration::from_secs(60)));
    let begun = sessions.begin(caller).await.unwrap();
    let event = make(&sessions.grant(&begun, action, "mfa", &["otp"]).await.unwrap().to_string());
    let start = Arc::new(Barrier::new(PROCESSES));
    let racing = functions.into_iter().map(|mut function| {
        let (start, event) = (Arc::clone(&start), event.clone());
        tokio::spawn(async move {
            start.wait().await;
            function.respond(&event).await.status
        })
    });
    let racing: Vec<_> = racing.collect();
    let mut statuses = Vec::new();
    for one in racing {
        statuses.push(one.await.unwrap());
    }
    statuses.sort_unstable();
    assert_eq!((statuses[0], &statuses[1..]), (201, &[401; PROCESSES - 1][..]));
}
