//! `tollgate waf` as it is run: rendered without anybody to ask, and on moto (`TOLLGATE_MOTO_ENDPOINT`) brought to the policy and back.

use crate::harness::{json, repository, run, run_at_root, stderr, stdout, tollgate};
use std::process::Output;
use tempfile::NamedTempFile;

/// The sample with an ACL and a prefix of its own.
fn policy(name: &str, change: (&str, &str)) -> NamedTempFile {
    let text = std::fs::read_to_string(repository("infra/tollgate.toml")).unwrap();
    let name = format!("{name}-{}", std::process::id());
    let own = format!("web_acl = \"{name}\"\nprefix = \"{name}-\"");
    let file = NamedTempFile::new().unwrap();
    let text = text.replace("web_acl = \"tollgate\"", &own).replace(change.0, change.1);
    std::fs::write(file.path(), text).unwrap();
    file
}

fn code(output: &Output) -> Option<i32> {
    output.status.code()
}

#[test]
fn rules_are_rendered_for_each_tool_without_credentials_or_a_region() {
    let rendered = |format: &str| run_at_root(&["waf", "render", "--format", format]);
    let template = json(&rendered("cloudformation"));
    assert_eq!(template["Resources"]["EdgeWebAcl"]["Type"], "AWS::WAFv2::WebACL");
    assert_eq!(template, json(&run_at_root(&["waf", "render", "--json"])));
    assert!(stdout(&rendered("yaml")).contains("AWS::WAFv2::WebACL"));
    assert_eq!(json(&rendered("cdk"))["webAcl"]["rules"].as_array().map(Vec::len), Some(2));
    assert_eq!(json(&rendered("api"))[1]["operation"], "CreateWebACL");
}

#[test]
fn what_is_deployed_at_the_edge_is_rendered_of_the_sample_policy() {
    for (format, file) in [("yaml", "infra/edge.yaml"), ("cdk", "infra/cdk/example/edge.json")] {
        let rendered = run_at_root(&["waf", "render", "--scope", "cloudfront", "--format", format]);
        let kept = std::fs::read_to_string(repository(file)).unwrap();
        assert_eq!(stdout(&rendered), kept, "tollgate waf render --scope cloudfront --format {format} > {file}");
    }
    let template = json(&run_at_root(&["waf", "render", "--scope", "cloudfront"]));
    let distribution = &template["Resources"]["EdgeDistribution"]["Properties"]["DistributionConfig"];
    let errors = distribution["CustomErrorResponses"].as_array().unwrap();
    assert!(
        errors.iter().any(|error| error["ErrorCode"] == 503)
            && errors.iter().all(|error| error["ErrorCachingMinTTL"] == 0)
    );
    assert_eq!(
        template["Resources"]["EdgeLogs"]["Properties"]["LogGroupName"]["Fn::Sub"],
        "aws-waf-logs-${AWS::StackName}"
    );
    assert_eq!(json(&run_at_root(&["waf", "render", "--scope", "regional"])), json(&run_at_root(&["waf", "render"])));
}

#[test]
fn what_cannot_be_is_told_before_anybody_is_asked() {
    let without = NamedTempFile::new().unwrap();
    std::fs::write(without.path(), "version = 1\n").unwrap();
    let file = without.path().to_str().unwrap().to_owned();
    let output = run(&["waf", "render", "--policy", &file]);
    assert!(code(&output) == Some(1) && stderr(&output).contains("has no [edge]"), "{output:?}");
    let output = run_at_root(&["waf", "plan"]);
    assert!(code(&output) == Some(3) && stderr(&output).contains("--region"), "{output:?}");
    let output = run_at_root(&["waf", "destroy"]);
    assert!(code(&output) == Some(1) && stderr(&output).contains("--yes"), "{output:?}");
    let front = policy("front", ("\"regional\"", "\"cloudfront\""));
    let output = run(&["waf", "plan", "--region", "eu-west-1", "--policy", front.path().to_str().unwrap()]);
    assert!(code(&output) == Some(1) && stderr(&output).contains("us-east-1"), "{output:?}");
    let nobody = ["waf", "plan", "--endpoint-url", "http://127.0.0.1:1"];
    let output = run_at_root(&nobody);
    assert!(code(&output) == Some(3) && stderr(&output).contains("wafv2:ListWebACLs"), "{output:?}");
    let http_api = "arn:aws:apigateway:us-east-1::/apis/x/stages/y";

    let Some(moto) = moto() else { return };
    let output = run_at_root(&["waf", "plan", "--endpoint-url", &moto, "--associate", http_api]);
    assert!(code(&output) == Some(1) && stderr(&output).contains("HTTP APIs"), "{output:?}");
}

fn moto() -> Option<String> {
    let moto = std::env::var("TOLLGATE_MOTO_ENDPOINT").ok();
    if moto.is_none() {
        println!("skipped: TOLLGATE_MOTO_ENDPOINT names no moto server (pip install 'moto[server]'; moto_server)");
    }
    moto
}

#[test]
fn an_acl_is_brought_to_the_policy_and_taken_away() {
    let Some(moto) = moto() else { return };
    let counting = policy("suite", ("", ""));
    let blocking = policy("suite", ("stage   = \"count\"", "stage   = \"block\""));
    let waf = |of: &NamedTempFile, args: &[&str]| {
        let file = of.path().to_str().unwrap();
        let to = ["--policy", file, "--endpoint-url", &moto, "--json"];
        tollgate().arg("waf").args(args).args(to).output().expect("the command runs")
    };
    let plan = waf(&counting, &["plan"]);
    assert_eq!((code(&plan), json(&plan)["drift"].as_bool()), (Some(2), Some(true)), "{plan:?}");
    let unconfirmed = waf(&counting, &["apply"]);
    assert_eq!((code(&unconfirmed), code(&waf(&counting, &["status"]))), (Some(1), Some(1)), "{unconfirmed:?}");
    let applied = waf(&counting, &["apply", "--yes"]);
    assert_eq!((code(&applied), json(&applied)["writes"].as_u64()), (Some(0), Some(2)), "{applied:?}");
    let plan = waf(&counting, &["plan"]);
    assert_eq!((code(&plan), json(&plan)["drift"].as_bool()), (Some(0), Some(false)), "{plan:?}");
    assert_eq!(json(&waf(&counting, &["apply", "--yes"]))["writes"], 0);
    let changes = json(&waf(&blocking, &["plan"]))["changes"].clone();
    assert_eq!(
        (changes[0]["change"].as_str(), changes[0]["resets_counts"].as_bool()),
        (Some("change-rule"), Some(false))
    );
    assert_eq!(json(&waf(&blocking, &["apply", "--yes"]))["writes"], 1);
    let status = json(&waf(&blocking, &["status"]));
    assert_eq!(
        (status["rules"][1]["action"].as_str(), status["rules"].as_array().map(Vec::len)),
        (Some("Block"), Some(2))
    );
    assert_eq!(code(&waf(&blocking, &["destroy", "--yes"])), Some(0));
    assert_eq!(code(&waf(&blocking, &["status"])), Some(1));
}

#[test]
fn explain_tells_which_rules_in_front_count_a_request() {
    let explain = |path: &str, from: &[&str]| {
        let request = ["explain", "--method", "POST", "--path", path, "--json"];
        let edge = json(&run_at_root(&[&request[..], from].concat()))["edge"].clone();
        [0, 1].map(|i| edge[i]["counts"].as_bool())
    };
    let client = ["--source-ip", "198.51.100.7"];
    assert_eq!(explain("/webhooks/../api/auth/x", &client), [Some(true); 2]);
    assert_eq!(explain("/api/x", &client), [Some(true), Some(false)]);
    assert_eq!(explain("/webhooks/payments", &client), [Some(false); 2]);
    assert_eq!(explain("/api/auth/x", &["--source-ip", "203.0.113.9"]), [Some(false); 2]);
    assert_eq!(explain("/api/auth/x", &[]), [None, None], "nobody knows from where");
}

#[test]
fn replay_tells_what_the_rules_in_front_would_have_caught() {
    // 102 sign-ins in 102 s by one address, spelled in two ways, and one from the office that is left out.
    let line = |second: u64, address: &str, target: &str| {
        let (minute, second) = (second / 60, second % 60);
        format!("{address} - - [17/May/2015:10:{minute:02}:{second:02} +0000] \"POST {target} HTTP/1.1\" 401 12\n")
    };
    let target = |i: u64| if i.is_multiple_of(2) { "/api/auth/login" } else { "//API/%61uth/login" };
    let log: String = (0..102).map(|i| line(i, "198.51.100.7", target(i))).collect();
    let file = NamedTempFile::new().unwrap();
    std::fs::write(file.path(), log + &line(5, "203.0.113.9", "/api/auth/login")).unwrap();
    let log = file.path().to_str().unwrap();
    let secrets = ("TOLLGATE_KEY_SECRETS", "k1=AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8");
    let replayed = |args: &[&str]| {
        let mut command = tollgate();
        command.current_dir(repository(".")).env(secrets.0, secrets.1).args(["replay", log]).args(args);
        command.output().expect("the command runs")
    };
    let report = json(&replayed(&["--json"]));
    assert_eq!(report["requests"], 103);
    let auth = &report["edge"][1];
    let figures = ["counted", "over", "over_surely", "addresses"].map(|key| auth[key].as_u64());
    assert_eq!((auth["rule"].as_str(), figures), (Some("tollgate-rate-auth"), [Some(102), Some(2), Some(0), Some(1)]));
    assert_eq!(auth["top_over"][0]["address"], "198.51.100.7");
    assert!(stdout(&replayed(&[])).contains("102 counted, 2 over the limit of 1 address(es)"));
}
