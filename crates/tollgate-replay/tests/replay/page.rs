//! The page for a person.

use crate::support::{TestRules, everywhere, limit, line, run};
use tollgate_replay::text;

#[test]
fn the_page_is_aligned_and_names_who_was_denied() {
    let rules = TestRules {
        limits: vec![limit("per-ip", "client_ip", 1, 60, 1), limit("per-user", "user", 1, 86_400, 1)],
        routes: vec![("/a", vec![(0, 1)]), ("/b", vec![(1, 2)])],
    };
    let mut log: String = (0..2000).map(|secs| line("192.0.2.1", "-", secs, "/a")).collect();
    log += &line("192.0.2.22", "bo\\x1bb", 1, "/b");
    log += &line("192.0.2.1", "-", 1, "/c");
    log += "192.0.2.1 - - cut\n";
    let expected = "\
2015-05-17T10:00:00Z to 2015-05-17T10:33:19Z
2,002  requests
1,967  would have been denied  98.25%
    0  exempt                  0.00%
    1  on no route             0.05%
    1  lines skipped

limit     allowed         denied           not charged  no value  keys
per-ip         34  1.70%   1,966   98.30%            0         0     1
per-user        0  0.00%       1  100.00%            0         0     1

most denied by per-ip
  key                  denied  allowed  longest wait
  client_ip:192.0.2.1   1,966       34        59.0 s

most denied by per-user
  key        denied  allowed  longest wait
  user:bo\u{fffd}b       1        0    never fits

skipped lines
  line 2,003, column 15: the time should begin with `[`
    192.0.2.1 - - cut
";
    let report = run(log.as_bytes(), &rules);
    assert_eq!(text::render(&report), expected);
    assert_eq!(report.to_string(), expected);
}

#[test]
fn an_empty_log_has_a_page() {
    let page = run(b"", &everywhere(limit("per-ip", "client_ip", 1, 60, 1))).to_string();
    assert!(page.starts_with("0  requests\n"), "{page}");
}

#[test]
fn more_flaws_than_are_shown_are_counted() {
    let page = run(&b"cut\n".repeat(1200), &everywhere(limit("per-ip", "client_ip", 1, 60, 1))).to_string();
    assert!(page.contains("\nskipped lines, 10 of 1,200\n"), "{page}");
}
