//! A real log, and how fast it is decided. The log is named by the environment variable `TOLLGATE_SAMPLE_LOG`.

use std::time::Instant;
use tollgate_policy::Policy;
use tollgate_replay::{Applied, Options, Report, replay};

const POLICY: &str = "version = 1\n[limits.per-ip]\nkey = [\"client_ip\"]\nrate = \"10/min\"\nburst = 5\n";

/// Routes that take every request, so that each is matched against all of them.
const ROUTES: &str = "
[[routes]]
match = \"POST /api/orders\"
charge = [\"per-ip\"]
[[routes]]
match = \"GET /api/orders/{id}\"
charge = [\"per-ip\"]
[[routes]]
match = \"GET /images/*\"
charge = [\"per-ip\"]
[[routes]]
match = \"*\"
charge = [\"per-ip\"]
[[exempt]]
match = \"GET /healthz\"
why = \"a rate-limited health check lies\"
";

fn run(log: &[u8], policy: &str) -> Report {
    let policy = Policy::parse(policy).unwrap_or_else(|findings| panic!("{findings:?}")).policy;
    replay(log, &Applied::new(&policy), &Options::default()).unwrap()
}

fn sample() -> Option<Vec<u8>> {
    let Some(path) = std::env::var_os("TOLLGATE_SAMPLE_LOG") else {
        println!("skipped: TOLLGATE_SAMPLE_LOG does not name a log");
        return None;
    };
    Some(std::fs::read(path).unwrap())
}

#[test]
fn four_days_of_a_web_server_at_ten_a_minute() {
    let Some(log) = sample() else { return };
    let report = run(&log, POLICY);
    println!("{report}");
    assert_eq!(run(&log, &format!("{POLICY}{ROUTES}")), report);
    let per_ip = &report.limits["per-ip"];
    assert_eq!((report.requests, report.skipped), (9_999, 1));
    assert_eq!((per_ip.allowed, per_ip.denied, per_ip.not_charged), (8_604, 1_395, 0));
    assert_eq!((report.exempt, report.unmatched, report.denied), (0, 0, 1_395));
    assert_eq!(report.malformed[0].line, 8_899);
}

/// A measurement: run it alone, in release mode, with `--ignored --nocapture`.
#[test]
#[ignore = "measures"]
fn lines_a_second() {
    let Some(log) = sample() else { return };
    let log = log.repeat(100);
    for (name, policy) in [("no routes", POLICY.to_owned()), ("routes", format!("{POLICY}{ROUTES}"))] {
        for _ in 0..3 {
            let start = Instant::now();
            let report = run(&log, &policy);
            let lines = (report.requests + report.skipped) as f64;
            println!("{name}: {:.0} lines/s", lines / start.elapsed().as_secs_f64());
        }
    }
}
