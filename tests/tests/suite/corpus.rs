//! Faults that were reported in other systems: `corpus.toml` says which, what must hold instead, and which tests see to it.
//!
//! Invariant: each number occurs once, and each of its tests exists, is run, and cites a report of it; no report is left out.

use crate::harness::repository;
use serde::Deserialize;

/// How many there are. Whoever adds one counts it here, so that none is lost by accident.
const FAULTS: usize = 60;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Corpus {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    number: usize,
    behaviour: String,
    /// As tests cite them, like `kratos#4317`.
    reports: Vec<String>,
    /// `file::function`, from the root of the repository.
    tests: Vec<String>,
}

fn cases() -> Vec<Case> {
    toml::from_str::<Corpus>(include_str!("corpus.toml")).unwrap().cases
}

/// The test `name` with what stands over it; `None` if `source`, as rustfmt has it, has no such test or does not run it.
fn test_of(source: &str, name: &str) -> Option<String> {
    let lines: Vec<_> = source.lines().collect();
    let is_it = |line: &&str| {
        let line = line.trim_start();
        let name_on = line.strip_prefix("async ").unwrap_or(line).strip_prefix("fn ");
        name_on.and_then(|rest| rest.strip_prefix(name)).is_some_and(|rest| rest.starts_with('('))
    };
    let at = lines.iter().position(is_it)?;
    let is_over = |line: &&&str| ["#[", "//"].iter().any(|start| line.trim_start().starts_with(start));
    let from = at - lines[..at].iter().rev().take_while(is_over).count();
    let has = |start: &str| lines[from..at].iter().any(|line| line.trim_start().starts_with(start));
    if !(has("#[test]") || has("#[tokio::test")) || has("#[ignore") || has("#[cfg") {
        return None;
    }
    let indent = lines[at].len() - lines[at].trim_start().len();
    let last = format!("{:indent$}}}", "");
    let length = lines[at..].iter().position(|line| *line == last)?;
    Some(lines[from..=at + length].join("\n"))
}

/// Whether `text` has it, and not only a longer number that begins alike.
fn cites(text: &str, report: &str) -> bool {
    text.match_indices(report).any(|(at, _)| !text[at + report.len()..].starts_with(char::is_alphanumeric))
}

/// What is wrong with a case.
fn faults(case: &Case) -> Vec<String> {
    let mut faults = Vec::new();
    let mut cited = vec![false; case.reports.len()];
    for named in &case.tests {
        let (file, name) = named.split_once("::").unwrap();
        let source = std::fs::read_to_string(repository(file)).unwrap_or_default();
        let Some(text) = test_of(&source, name) else {
            faults.push(format!("{named} is no test that is run"));
            continue;
        };
        let here: Vec<_> = case.reports.iter().map(|report| cites(&text, report)).collect();
        if !here.contains(&true) {
            faults.push(format!("{named} cites none of {:?}", case.reports));
        }
        cited.iter_mut().zip(here).for_each(|(cited, here)| *cited |= here);
    }
    let left_out = case.reports.iter().zip(cited).filter(|(_, cited)| !cited);
    faults.extend(left_out.map(|(report, _)| format!("no test of it cites {report}")));
    if case.behaviour.is_empty() || case.reports.is_empty() {
        faults.push("it does not say what was reported".to_owned());
    }
    faults
}

#[test]
fn every_fault_that_was_reported_elsewhere_is_in_the_corpus_once() {
    let numbers: Vec<_> = cases().iter().map(|case| case.number).collect();
    assert_eq!(numbers, (0..FAULTS).collect::<Vec<_>>());
}

#[test]
fn every_fault_that_was_reported_elsewhere_has_tests_that_cite_its_reports() {
    let wrong: Vec<_> = cases()
        .iter()
        .flat_map(|case| faults(case).into_iter().map(|fault| format!("{}: {fault}", case.number)))
        .collect();
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn what_is_no_test_or_cites_nothing_is_found() {
    let source = "/// a#1\nfn helper() {\n}\n\n#[test]\n#[ignore]\nfn ignored() {\n    // a#1\n}\n\n    /// a#12\n    #[tokio::test(x)]\n    async fn runs() {\n        b();\n    }\n\n// a#1\n";
    assert_eq!(["helper", "ignored", "run", "absent"].map(|name| test_of(source, name)), [const { None }; 4]);
    let text = test_of(source, "runs").unwrap();
    assert!(text.contains("b();") && cites(&text, "a#12") && !cites(&text, "a#1"), "{text}");
    let case = |reports: &[&str], test: &str| Case {
        number: 0,
        behaviour: "b".to_owned(),
        reports: reports.iter().map(|report| (*report).to_owned()).collect(),
        tests: vec![test.to_owned()],
    };
    let regression = "tests/tests/suite/regressions.rs::a_denied_huge_cost_leaves_no_debt";
    for (case, wrong) in [
        (case(&["upstash#156"], regression), 0),
        (case(&["upstash#156", "upstash#15"], regression), 1),
        (case(&["upstash#15"], regression), 2),
        (case(&["upstash#156"], &regression.replace("debt", "dept")), 2),
        (case(&["upstash#156"], "tests/tests/suite/none.rs::a"), 2),
        (Case { tests: Vec::new(), ..case(&["upstash#156"], regression) }, 1),
        (case(&[], regression), 2),
    ] {
        assert_eq!(faults(&case).len(), wrong, "{:?}", faults(&case));
    }
}
