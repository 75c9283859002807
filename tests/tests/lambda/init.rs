//! The start of a function: what fails it, and what does not.

use crate::events::{Sender, signed};
use crate::harness::{Function, LIMITER, SECRETS, TABLE, TaskRoot, endpoint, unique};
use serde_json::json;
use tollgate_cli::runtime_api::Init;

/// The report of an init that fails: its type and its message.
async fn failure(root: TaskRoot, variables: &[(&str, &str)]) -> (String, String) {
    failure_of(LIMITER, root, variables).await
}

/// The same of the function at `program`.
pub async fn failure_of(program: &str, root: TaskRoot, variables: &[(&str, &str)]) -> (String, String) {
    let mut function = Function::with(program, root, variables).await;
    let Init::Failed(report) = function.sandbox().init().await.unwrap() else { panic!("init did not fail") };
    let status = function.sandbox().ended().await.unwrap();
    assert_eq!(status.code(), Some(1));
    assert_eq!(report.error_message.lines().count(), 1, "{}", report.error_message);
    (report.error_type, report.error_message)
}

#[tokio::test(flavor = "multi_thread")]
async fn what_only_a_deployment_can_mend_fails_init_in_one_line() {
    let url = endpoint().await;
    let table = [("TOLLGATE_TABLE", TABLE), ("TOLLGATE_ENDPOINT_URL", &url)];
    let personal = "version = 1\n[identity]\naccount = { body = 'u', fold = 'email' }\n[limits.a]\nkey = ['account']\nrate = '5/h'\n";
    let bad = "version = 1\n[limits.orders]\nkey = ['usr']\nrate = '0/h'\n";
    let cases = [
        (TaskRoot::with_sample_policy(), vec![], "Tollgate.Environment", vec!["TOLLGATE_TABLE is not set"]),
        (TaskRoot::empty(), table.to_vec(), "Tollgate.Policy", vec!["cannot read the policy", "tollgate.toml"]),
        (
            TaskRoot::with_policy(bad),
            table.to_vec(),
            "Tollgate.Policy",
            vec!["tollgate.toml", "3:8: error: key dimension `usr`", "4:8: error: rate"],
        ),
        (
            TaskRoot::with_sample_policy(),
            [&table[..], &[("TOLLGATE_POLICY", "other.toml")]].concat(),
            "Tollgate.Policy",
            vec!["other.toml"],
        ),
        (
            TaskRoot::with_policy(personal),
            table.to_vec(),
            "Tollgate.Policy",
            vec!["`account`", "set TOLLGATE_KEY_SECRETS to"],
        ),
        (
            TaskRoot::with_sample_policy(),
            table.to_vec(),
            "Tollgate.Policy",
            vec!["`device`, `account`", "set TOLLGATE_KEY_SECRETS to"],
        ),
        (
            TaskRoot::with_policy(personal),
            [&table[..], &[("TOLLGATE_KEY_SECRETS", "k1=short")]].concat(),
            "Tollgate.Secrets",
            vec!["TOLLGATE_KEY_SECRETS: key secret 1: it is"],
        ),
        (
            TaskRoot::with_sample_policy(),
            [&table[..], &[("TOLLGATE_DEADLINE_MS", "soon")]].concat(),
            "Tollgate.Environment",
            vec!["TOLLGATE_DEADLINE_MS is \"soon\"", "from 1 to 60000"],
        ),
        (
            TaskRoot::with_sample_policy(),
            vec![("TOLLGATE_TABLE", TABLE), ("TOLLGATE_ENDPOINT_URL", "127.0.0.1:8000"), SECRETS],
            "Tollgate.Connection",
            vec!["must start with http"],
        ),
    ];
    for (root, variables, kind, says) in cases {
        let (is, message) = failure(root, &variables).await;
        assert!(is == kind && says.iter().all(|says| message.contains(says)), "{is}: {message}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn without_a_table_the_function_lives_and_follows_on_store_failure() {
    let policy = "version = 1\n\
        [limits.open]\nkey = ['user']\nrate = '5/day'\non_store_failure = 'open'\n\
        [limits.closed]\nkey = ['user']\nrate = '5/day'\non_store_failure = 'closed'\n";
    let url = endpoint().await;
    for (table, url) in [("no-such-table", url.as_str()), (TABLE, "http://127.0.0.1:9")] {
        let variables = [("TOLLGATE_TABLE", table), ("TOLLGATE_ENDPOINT_URL", url)];
        let mut limiter = Function::with(LIMITER, TaskRoot::with_policy(policy), &variables).await;
        assert_eq!(limiter.sandbox().init().await.unwrap(), Init::Ready, "{table} at {url}");
        let ask = |limit: &str| json!({ "limit": limit, "key": { "user": unique("alice") } });
        for _ in 0..2 {
            let (kind, message) = limiter.invoke(&ask("closed")).await.unwrap_err();
            assert!(kind == "LimiterUnavailable" && !message.is_empty(), "{kind}: {message}");
            let answer = limiter.invoke(&ask("open")).await.unwrap();
            assert_eq!((&answer["allowed"], &answer["source"]), (&true.into(), &"open".into()));
            let event = signed(Sender::HttpApi, "POST", "/v1/decisions", &ask("closed").to_string());
            let response = limiter.respond(&event).await;
            assert_eq!((response.status, response.header("retry-after")), (503, Some("1")));
            assert_eq!(response.body["error"], "limiter_unavailable");
        }
    }
}
