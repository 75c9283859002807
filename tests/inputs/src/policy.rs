//! The policy file, and requests under whatever was accepted.
//!
//! The whole input is the file.

use tollgate::tollgate_policy::{IfMissing, Limit};
use tollgate::{KeySecrets, Policy};

/// Requests that are tried on each policy, at most.
const REQUESTS: usize = 32;
const METHODS: [&str; 4] = ["GET", "POST", "OPTIONS", ""];

/// Checks that any text is a policy or has mistakes that lie in it, and that a policy decides about any request.
///
/// # Panics
///
/// If one of these does not hold.
pub fn check(bytes: &[u8]) {
    let text = String::from_utf8_lossy(bytes);
    match Policy::parse(&text) {
        Ok(parsed) => {
            assert!(!parsed.warnings.has_errors());
            lies_within(&parsed.warnings, &text);
            decides(&parsed.policy.with_secrets(KeySecrets::development()), &text);
        }
        Err(findings) => {
            assert!(findings.has_errors(), "refused without an error");
            lies_within(&findings, &text);
        }
    }
}

fn lies_within(findings: &tollgate::tollgate_policy::Diagnostics, text: &str) {
    let lines: Vec<&str> = text.split('\n').collect();
    let mut last = (0, 0);
    for finding in findings {
        let line = lines.get(finding.line - 1).expect("a line of the text");
        assert!((1..=line.chars().count() + 1).contains(&finding.column), "{finding:?}");
        assert!(last <= (finding.line, finding.column), "{finding:?} after {last:?}");
        assert!(!finding.message.is_empty() && !finding.help.is_empty(), "{finding:?}");
        last = (finding.line, finding.column);
    }
    assert_eq!(findings.render("f").matches("\n  help: ").count(), findings.len());
}

/// Nothing that is looked up while serving fails for reasons that lie in the file.
fn decides(policy: &Policy, text: &str) {
    let written = policy.routes().iter().map(|route| route.pattern().as_str());
    let paths = written.flat_map(|pattern| pattern.split_whitespace().last()).map(|path| path.replace(['{', '}'], ""));
    let targets = paths.chain(text.lines().map(str::to_owned)).chain(["/".to_owned(), "*".to_owned()]);
    let plans: Vec<Option<&str>> = policy.plans().names().map(Some).chain([None, Some("none of them")]).collect();
    for target in targets.take(REQUESTS) {
        for method in METHODS {
            let exempt = policy.exemption(method, &target);
            let Some(matched) = policy.route(method, &target) else { continue };
            assert!(exempt.is_none(), "{method} {target} is exempt and on a route");
            for plan in &plans {
                let Ok(plan) = policy.plans().resolve(*plan) else { continue };
                for value in [None, Some(target.clone()), Some("x".repeat(4096))] {
                    let lookup = |name: &str| matched.param(name).map(str::to_owned).or_else(|| value.clone());
                    let resolved = policy.resolve(matched.route.charges(), lookup, plan, IfMissing::Share);
                    let resolved = resolved.map(|resolution| resolution.on(matched.route));
                    let charges = resolved.unwrap_or_else(|error| panic!("{method} {target}: {error}")).charges;
                    assert!(!charges.is_empty(), "{method} {target} is charged nothing");
                }
            }
        }
    }
    for name in policy.limits().iter().map(Limit::name) {
        assert!(policy.limit(name.as_str()).is_ok_and(|limit| limit.name() == name));
    }
}
