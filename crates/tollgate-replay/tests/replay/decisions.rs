//! How a log is decided: order, all-or-nothing, keys, and what is counted where.

use crate::support::{TestRules, everywhere, limit, line, run};
use std::io::{self, BufReader, Read};
use std::time::Duration;
use tollgate_core::PenaltyRule;
use tollgate_replay::{Error, LimitReport, Options, Report, replay};

fn counts(report: &Report, name: &str) -> (u64, u64, u64, u64) {
    let LimitReport { allowed, denied, not_charged, missing_dimension, .. } = &report.limits[name];
    (*allowed, *denied, *not_charged, *missing_dimension)
}

fn keys(report: &Report, name: &str) -> Vec<(String, u64, u64)> {
    report.limits[name].top_denied.iter().map(|key| (key.key.clone(), key.denied, key.allowed)).collect()
}

#[test]
fn requests_are_decided_in_the_order_of_their_times() {
    // Burst 2 at 1/min. In file order the third line would empty the bucket for the first minute.
    let log = [10, 11, 90, 12, 70].map(|secs| line("192.0.2.1", "-", secs, "/")).concat();
    let report = run(log.as_bytes(), &everywhere(limit("per-ip", "client_ip", 1, 60, 2)));
    // 10 and 11 pass, 12 does not, 70 finds the token of that minute, 90 finds none.
    assert_eq!(counts(&report, "per-ip"), (3, 2, 0, 0));
    assert_eq!(report.limits["per-ip"].top_denied[0].max_wait_ms, Some(58_000));
}

#[test]
fn who_is_denied_is_locked_and_for_longer_the_next_time() {
    let secs = Duration::from_secs;
    let rule = PenaltyRule::new(secs(60), 2, secs(3600), secs(100)).unwrap();
    let once = everywhere(limit("per-ip", "client_ip", 1, 10, 1).locking(rule));
    let told = |times: &[u64]| {
        let log: String = times.iter().map(|secs| line("192.0.2.1", "-", *secs, "/")).collect();
        let report = run(log.as_bytes(), &once);
        (counts(&report, "per-ip"), report.limits["per-ip"].top_denied[0].max_wait_ms)
    };
    assert_eq!(told(&[0, 1, 30, 60]), ((1, 3, 0, 0), Some(60_000)), "locked from 1 to 61");
    assert_eq!(told(&[0, 1, 61, 62, 181]), ((2, 3, 0, 0), Some(120_000)), "and from 62 to 182");
    assert_eq!(told(&[0, 1, 61, 62, 182]), ((3, 2, 0, 0), Some(120_000)));
    assert_eq!(told(&[0, 1, 159, 160]), ((2, 2, 0, 0), Some(120_000)));
    assert_eq!(told(&[0, 1, 160, 161]), ((2, 2, 0, 0), Some(60_000)), "after 100 s it is forgotten");
}

#[test]
fn requests_of_one_second_keep_the_order_of_the_log() {
    let rules = TestRules {
        limits: vec![limit("units", "client_ip", 1, 3600, 3)],
        routes: vec![("/big", vec![(0, 3)]), ("/small", vec![(0, 1)])],
    };
    let denied = |paths: [&str; 2]| {
        let log = paths.map(|path| line("192.0.2.1", "-", 5, path)).concat();
        run(log.as_bytes(), &rules).limits["units"].top_denied[0].max_wait_ms
    };
    assert_eq!(denied(["/big", "/small"]), Some(3_600_000));
    assert_eq!(denied(["/small", "/big"]), Some(3_600_000));
    let log = ["/small", "/big", "/small", "/small"].map(|path| line("192.0.2.1", "-", 5, path)).concat();
    assert_eq!(counts(&run(log.as_bytes(), &rules), "units"), (3, 1, 0, 0));
}

#[test]
fn a_denied_request_is_charged_nowhere() {
    let rules = TestRules {
        limits: vec![limit("per-ip", "client_ip", 1, 3600, 1), limit("per-user", "user", 1, 3600, 2)],
        routes: vec![("/both", vec![(0, 1), (1, 1)]), ("/user", vec![(1, 1)])],
    };
    let log = [
        line("192.0.2.1", "alice", 1, "/both"),
        line("192.0.2.1", "alice", 2, "/both"), // denied by the address, so alice keeps her second token
        line("192.0.2.2", "alice", 3, "/user"),
        line("192.0.2.3", "alice", 4, "/user"),
    ];
    let report = run(log.concat().as_bytes(), &rules);
    assert_eq!(counts(&report, "per-ip"), (1, 1, 0, 0));
    assert_eq!(counts(&report, "per-user"), (2, 1, 1, 0));
    assert_eq!((report.requests, report.denied), (4, 2));
}

#[test]
fn a_dimension_without_a_value_is_counted_and_not_guessed() {
    let rules = TestRules {
        limits: vec![limit("per-ip", "client_ip", 1, 3600, 9), limit("per-tenant", "tenant", 1, 3600, 1)],
        routes: vec![("", vec![(0, 1), (1, 1)])],
    };
    let log = [line("192.0.2.1", "-", 1, "/"), line("host.example", "-", 2, "/"), line("192.0.2.1", "-", 3, "/")];
    let report = run(log.concat().as_bytes(), &rules);
    assert_eq!(counts(&report, "per-ip"), (2, 0, 0, 1));
    assert_eq!(counts(&report, "per-tenant"), (0, 0, 0, 3));
    assert_eq!(report.denied, 0);
}

#[test]
fn ipv6_is_counted_by_prefix_and_mapped_ipv4_as_ipv4() {
    let clients = ["2001:db8::1", "2001:DB8:0:0:ffff::2", "2001:db8:0:1::1", "::ffff:192.0.2.1", "192.0.2.1"];
    let log: String = clients.iter().map(|client| line(client, "-", 1, "/")).collect();
    let report = run(log.as_bytes(), &everywhere(limit("per-ip", "client_ip", 1, 3600, 1)));
    assert_eq!(report.limits["per-ip"].keys, 3);
    let denied = keys(&report, "per-ip");
    assert_eq!(denied, [("client_ip:192.0.2.1".into(), 1, 1), ("client_ip:2001%3Adb8%3A%3A/64".into(), 1, 1)]);
}

#[test]
fn exempt_unmatched_blank_and_malformed_lines_are_counted_apart() {
    let rules = TestRules { limits: vec![limit("a", "client_ip", 1, 60, 1)], routes: vec![("/a", vec![(0, 1)])] };
    let empty = "192.0.2.1 - - [17/May/2015:09:00:00 +0000] \"-\" 408 0 \"-\" \"-\"\r\n";
    let log = [
        line("192.0.2.1", "-", 1, "/healthz"),
        "\n  \r\n".to_owned(),
        line("192.0.2.1", "-", 2, "/a?x=/healthz"),
        "\u{1b}[31mgarbage\r\n".to_owned(),
        line("192.0.2.1", "-", 3, "/b"),
        empty.to_owned(),
    ];
    let report = run(log.concat().as_bytes(), &rules);
    assert_eq!((report.requests, report.skipped, report.exempt, report.unmatched), (4, 1, 1, 2));
    assert_eq!(counts(&report, "a"), (1, 0, 0, 0));
    let malformed = &report.malformed[0];
    assert_eq!((malformed.line, malformed.column), (5, 13));
    assert_eq!(malformed.text, "\u{fffd}[31mgarbage");
    assert_eq!(malformed.why, "the line ends where the identity should be");
}

#[test]
fn the_json_shape_is_kept() {
    let log = [line("192.0.2.1", "-", 1, "/"), line("192.0.2.1", "-", 2, "/"), "cut".to_owned()].concat();
    let report = run(log.as_bytes(), &everywhere(limit("per-ip", "client_ip", 1, 60, 1)));
    let expected = serde_json::json!({
        "requests": 2, "skipped": 1, "denied": 1, "exempt": 0, "unmatched": 0,
        "first": "2015-05-17T10:00:01Z", "last": "2015-05-17T10:00:02Z",
        "limits": {"per-ip": {
            "allowed": 1, "denied": 1, "not_charged": 0, "missing_dimension": 0, "keys": 1,
            "top_denied": [{"key": "client_ip:192.0.2.1", "denied": 1, "allowed": 1, "max_wait_ms": 59000}],
        }},
        "malformed": [
            {"line": 3, "column": 4, "why": "the line ends where the identity should be", "text": "cut"},
        ],
    });
    assert_eq!(serde_json::to_value(report).unwrap(), expected);
    let nothing = serde_json::to_value(run(b"", &everywhere(limit("per-ip", "client_ip", 1, 60, 1)))).unwrap();
    assert_eq!((&nothing["first"], &nothing["limits"]["per-ip"]["keys"]), (&serde_json::Value::Null, &0.into()));
}

#[test]
fn the_top_is_by_count_then_key_and_as_long_as_asked() {
    let log: String = ["192.0.2.3", "192.0.2.1", "192.0.2.2", "192.0.2.4"]
        .iter()
        .flat_map(|client| {
            let times = if client.ends_with('2') { 4 } else { 2 };
            (0..times).map(|secs| line(client, "-", secs, "/"))
        })
        .collect();
    let rules = everywhere(limit("per-ip", "client_ip", 1, 3600, 1));
    let mut options = Options::default();
    options.top_denied = 3;
    let report = replay(log.as_bytes(), &rules, &options).unwrap();
    let names: Vec<_> = keys(&report, "per-ip").into_iter().map(|(key, denied, _)| (key, denied)).collect();
    let key = |last: u8| format!("client_ip:192.0.2.{last}");
    assert_eq!(names, [(key(2), 3), (key(1), 1), (key(3), 1)]);
}

#[test]
fn a_cost_above_the_burst_is_denied_without_a_wait() {
    let rules = TestRules { limits: vec![limit("u", "client_ip", 1, 1, 2)], routes: vec![("", vec![(0, 3)])] };
    let report = run(line("192.0.2.1", "-", 1, "/").as_bytes(), &rules);
    assert_eq!(counts(&report, "u"), (0, 1, 0, 0));
    assert_eq!(report.limits["u"].top_denied[0].max_wait_ms, None);
}

#[test]
fn a_line_too_long_is_passed_over_and_shown_in_part() {
    let fits = line("192.0.2.1", "-", 1, &format!("/{}", "a".repeat(60_000)));
    let long = line("192.0.2.1", "-", 2, &format!("/{}", "a".repeat(200_000)));
    let log = [fits, long, line("192.0.2.1", "-", 3, "/")].concat();
    let rules = everywhere(limit("per-ip", "client_ip", 1, 1, 9));
    let report = replay(log.as_bytes(), &rules, &Options::default()).unwrap();
    assert_eq!((report.requests, report.skipped), (2, 1));
    assert_eq!((report.malformed[0].line, report.malformed[0].column), (2, 65_537));
    assert_eq!(report.malformed[0].text.chars().count(), 161);
}

#[test]
fn a_log_that_cannot_be_read_on_says_at_which_line() {
    struct Broken;
    impl Read for Broken {
        fn read(&mut self, _: &mut [u8]) -> io::Result<usize> {
            Err(io::Error::other("disk on fire"))
        }
    }
    let start = [line("192.0.2.1", "-", 1, "/"), line("192.0.2.1", "-", 2, "/")].concat();
    let log = BufReader::new(start.as_bytes().chain(Broken));
    let rules = everywhere(limit("per-ip", "client_ip", 1, 1, 9));
    let error = replay(log, &rules, &Options::default()).unwrap_err();
    assert!(matches!(error, Error::Read { line: 3, .. }));
    assert_eq!(error.to_string(), "cannot read line 3 of the log: disk on fire");
}
