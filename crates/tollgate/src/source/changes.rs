//! What the log says of a policy that replaces another. Invariant: nothing here keeps a policy from coming into force.

use tollgate_policy::{Limit, Policy};

/// How a policy stands to the one that it replaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Change {
    /// A higher revision, or the same without other figures.
    Forward,
    /// A lower revision.
    Back,
    /// The same revision with other figures for these limits.
    ForgottenBump(String),
}

pub(super) fn between(old: &Policy, new: &Policy) -> Change {
    match new.revision().cmp(&old.revision()) {
        std::cmp::Ordering::Greater => Change::Forward,
        std::cmp::Ordering::Less => Change::Back,
        std::cmp::Ordering::Equal => {
            let differs = |limit: &&Limit| old.limit(limit.name().as_str()).is_ok_and(|was| !same_figures(was, limit));
            let names: Vec<_> = new.limits().iter().filter(differs).map(|limit| limit.name().as_str()).collect();
            if names.is_empty() { Change::Forward } else { Change::ForgottenBump(names.join(", ")) }
        }
    }
}

/// Whether every caller is counted the same; how a rate is written does not matter.
fn same_figures(a: &Limit, b: &Limit) -> bool {
    let plans = |limit: &Limit| limit.plans().map(|(plan, f)| (plan.to_owned(), f.core())).collect::<Vec<_>>();
    a.figures(None).core() == b.figures(None).core() && plans(a) == plans(b)
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::{Change, between};
    use tollgate_policy::Policy;

    fn policy(revision: u64, rate: &str, pro: &str) -> Policy {
        let text = format!(
            "version = 1\nrevision = {revision}\n[plans]\nnames = ['free', 'pro']\n\
             [limits.orders]\nkey = ['user']\nrate = '{rate}'\nburst = 9\nplans.pro = {{ rate = '{pro}', burst = 9 }}\n"
        );
        Policy::parse(&text).unwrap().policy
    }

    #[test]
    fn a_lower_revision_and_a_forgotten_bump_are_seen() {
        let old = policy(3, "60/min", "9/s");
        let orders = || Change::ForgottenBump("orders".to_owned());
        assert_eq!(between(&old, &policy(4, "5/s", "9/s")), Change::Forward);
        assert_eq!(between(&old, &policy(2, "60/min", "9/s")), Change::Back);
        assert_eq!(between(&old, &policy(3, "1/s", "9/s")), Change::Forward, "60/min is 1/s");
        assert_eq!(between(&old, &policy(3, "2/s", "9/s")), orders());
        assert_eq!(between(&old, &policy(3, "60/min", "8/s")), orders());
    }
}
