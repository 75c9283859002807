//! A policy file, applied to a log.

use crate::support::line;
use tollgate_policy::{KeySecrets, Policy};
use tollgate_replay::{Applied, Options, Report, replay};

const POLICY: &str = r#"
version = 1
revision = 3

[identity]
client_ip = { trusted_hops = 0, ipv6_prefix = 48 }

[plans]
names = ["free", "pro"]
default = "free"

[limits.orders]
key = ["user"]
rate = "100/h"
plans.free = { rate = "2/h" }

[limits.units]
key = ["user ?? client_ip"]
rate = "10/h"

[limits.tenants]
key = ["tenant"]
rate = "1/h"
"#;

const ROUTES: &str = r#"
[[routes]]
match = "GET /api/orders/{id}"
charge = ["orders"]

[[routes]]
match = "GET /api/tenant"
charge = ["tenants"]

[[routes]]
match = "GET /api/export"
charge = [{ limit = "units", cost = 4 }]

[[exempt]]
match = "GET /healthz"
why = "a rate-limited health check lies"
"#;

fn run(policy: &str, log: &[String]) -> Report {
    let policy = Policy::parse(policy).unwrap_or_else(|findings| panic!("{findings:?}")).policy;
    let policy = policy.with_secrets(KeySecrets::development());
    replay(log.concat().as_bytes(), &Applied::new(&policy), &Options::default()).unwrap()
}

fn counts(report: &Report, name: &str) -> [u64; 4] {
    let limit = &report.limits[name];
    [limit.allowed, limit.denied, limit.missing_dimension, limit.keys]
}

#[test]
fn routes_costs_exemptions_and_the_default_plan_count() {
    let log = [
        line("192.0.2.1", "alice", 1, "/api/orders/1?full=1"),
        line("192.0.2.1", "alice", 2, "/api/orders/2"),
        line("192.0.2.1", "alice", 3, "/api/orders/3"), // the third in the default plan's 2 an hour
        line("192.0.2.1", "bob", 4, "/api/orders/3"),
        line("192.0.2.1", "-", 5, "/api/orders/3"), // nobody to count
        line("192.0.2.1", "-", 6, "/api/export"),
        line("192.0.2.1", "alice", 7, "http://api.example.com/api/export"),
        line("2001:db8:0:1::1", "-", 8, "/api/export"),
        line("2001:db8:0:2::1", "-", 9, "/api/export"),
        line("2001:db8:0:3::1", "-", 10, "/api/export"), // the third of one /48
        line("192.0.2.1", "-", 11, "/healthz"),
        line("192.0.2.1", "-", 12, "/elsewhere"),
        line("192.0.2.1", "alice", 13, "/api/tenant"),
    ];
    let report = run(&format!("{POLICY}{ROUTES}"), &log);
    assert_eq!(counts(&report, "orders"), [3, 1, 1, 2]);
    assert_eq!(counts(&report, "tenants"), [0, 0, 1, 0]);
    assert_eq!(counts(&report, "units"), [4, 1, 0, 3]);
    assert_eq!(report.limits["units"].top_denied[0].key, "client_ip:2001%3Adb8%3A%3A/48");
    assert_eq!((report.requests, report.denied, report.exempt, report.unmatched), (13, 2, 1, 1));
}

#[test]
fn a_policy_without_routes_charges_every_limit_on_every_request() {
    let log = [
        line("192.0.2.1", "alice", 1, "/a"),
        line("192.0.2.1", "-", 2, "/b"),
        "192.0.2.1 - - [17/May/2015:10:00:03 +0000] \"-\" 408 0\n".to_owned(),
    ];
    let report = run(POLICY, &log);
    assert_eq!(counts(&report, "orders"), [1, 0, 1, 1]);
    assert_eq!(counts(&report, "units"), [2, 0, 0, 2]);
    assert_eq!(counts(&report, "tenants"), [0, 0, 2, 0]);
    assert_eq!((report.exempt, report.unmatched), (0, 1));
}

#[test]
fn a_limit_with_shards_counts_as_one() {
    let log: Vec<_> = (0..8).map(|second| line("192.0.2.1", "alice", second, "/")).collect();
    let whole = "version = 1\n[limits.all]\nkey = [\"user\"]\nrate = \"5/h\"\n";
    let report = run(&format!("{whole}shards = 4\n"), &log);
    assert_eq!((counts(&report, "all"), &report), ([5, 3, 0, 1], &run(whole, &log)));
}

#[test]
fn a_value_that_no_key_can_carry_takes_no_other_limit_with_it() {
    let per_ip = "version = 1\n[limits.ip]\nkey = [\"client_ip\"]\nrate = \"1/h\"\n[limits.user]\nkey = [\"user\"]\nrate = \"1/h\"\n";
    let report = run(per_ip, &[line("192.0.2.1", &"x".repeat(3000), 1, "/")]);
    assert_eq!(counts(&report, "ip"), [1, 0, 0, 1]);
    assert_eq!(counts(&report, "user"), [0, 0, 1, 0]);
}

#[test]
fn a_log_knows_no_devices_and_everyone_in_it_is_one() {
    let policy = "version = 1\n[identity]\ndevice = { cookie = \"d\", bound_to = \"user\" }\n\
        [limits.all]\nkey = [\"device ?? everyone\"]\nrate = \"2/h\"\n[limits.known]\nkey = [\"device\"]\nrate = \"2/h\"\n";
    let log = [line("192.0.2.1", "alice", 1, "/a"), line("192.0.2.2", "-", 2, "/b"), line("192.0.2.3", "bob", 3, "/c")];
    let report = run(policy, &log);
    assert_eq!(counts(&report, "all"), [2, 1, 0, 1]);
    assert_eq!(report.limits["all"].top_denied[0].key, "everyone:all");
    assert_eq!(counts(&report, "known"), [0, 0, 3, 0]);
}

/// Only failures count, by the status that the log has, and a success clears a log.
#[test]
fn failures_count_by_the_status_in_the_log() {
    let policy = |limit: &str| {
        format!(
            "version = 1\n[limits.login]\nkey = [\"client_ip\"]\nrate = \"3/15min\"\ncount = \"failures\"\n{limit}\n"
        )
    };
    let log: Vec<String> = [401, 401, 200, 401, 401, 401, 200, 401]
        .iter()
        .zip(0..)
        .map(|(status, secs)| line("192.0.2.1", "-", secs, "/").replacen("\" 200 ", &format!("\" {status} "), 1))
        .collect();
    let clearing = "algorithm = \"sliding-log\"\non_success = \"clear\"";
    assert_eq!(counts(&run(&policy(clearing), &log), "login"), [6, 2, 0, 1], "three more after the success");
    let keeping = "algorithm = \"sliding-log\"\non_success = \"keep\"";
    assert_eq!(counts(&run(&policy(keeping), &log), "login"), [4, 4, 0, 1], "one more");
    assert_eq!(counts(&run(&policy("algorithm = \"fixed-window\""), &log), "login"), [4, 4, 0, 1]);
    assert_eq!(
        counts(
            &run(&policy(keeping).replace("\ncount = \"failures\"", "").replace("\non_success = \"keep\"", ""), &log),
            "login"
        ),
        [3, 5, 0, 1]
    );
}

#[test]
fn parameters_of_path_and_query_are_values_as_they_are_when_they_are_served() {
    let policy = "version = 1\n[identity]\norder = \"path.id\"\nregion = \"query.region\"\n\
        [limits.order]\nkey = [\"order\", \"region\"]\nrate = \"1/h\"\n\
        [[routes]]\nmatch = \"GET /orders/{id}\"\ncharge = [\"order\"]\n";
    let log = ["/orders/a%20b?region=e%75", "/orders/a%20b?x=1&region=eu", "/orders/c?region=eu", "/orders/c"];
    let log: Vec<_> = log.iter().zip(1..).map(|(path, secs)| line("192.0.2.1", "-", secs, path)).collect();
    let report = run(policy, &log);
    assert_eq!(counts(&report, "order"), [2, 1, 1, 2]);
    assert_eq!(report.limits["order"].top_denied[0].key, "order:a b,region:eu");
    assert_eq!(report.limits["order"].missing["region"], 1);
}

/// The access log of the sample API, as the template has it written, with these values of variables and `-` for all others.
fn logged_by_the_template(values: &[(&str, &str)]) -> String {
    let template = include_str!("../../../../infra/template.yaml");
    let stage = template.split_once("\n  SampleApiStage:\n").unwrap().1;
    let format = stage.split_once("Format: >-\n").unwrap().1.split_once("\n\n").unwrap().0;
    let format = format.lines().map(str::trim).collect::<Vec<_>>().join(" ");
    let format: serde_json::Map<String, serde_json::Value> = serde_json::from_str(&format).unwrap();
    let value = |variable: &str| {
        let variable = variable.strip_prefix("$context.").unwrap();
        values.iter().find(|(name, _)| *name == variable).map_or("-", |(_, value)| *value)
    };
    let line = format.iter().map(|(name, variable)| (name.clone(), value(variable.as_str().unwrap()).into()));
    format!("{}\n", serde_json::Value::Object(line.collect()))
}

#[test]
fn the_templates_access_log_is_decided_by_the_sample_policys_limits_of_users_tenants_and_addresses() {
    let logged = |path, values: &[(&str, &str)]| {
        let request = [("requestTime", "17/May/2015:10:05:03 +0000"), ("httpMethod", "POST"), ("path", path)];
        logged_by_the_template(&[&request[..], &[("status", "200")], values].concat())
    };
    let claims =
        [("authorizer.claims.sub", "alice"), ("authorizer.claims.tenant", "acme"), ("authorizer.claims.plan", "pro")];
    let log = [logged("/api/orders", &claims), logged("/api/auth/login", &[("identity.sourceIp", "192.0.2.1")])];
    let report = run(include_str!("../../../../infra/tollgate.toml"), &log);
    assert_eq!((report.requests, report.skipped, report.unmatched), (2, 0, 0));
    for limit in ["orders", "tenant-orders", "login-address"] {
        assert_eq!(counts(&report, limit), [1, 0, 0, 1], "{limit}: {report}");
    }
}
