//! The text form of terms, which conditions compare byte by byte, and what moving a debt does to it.

use crate::store::{SECOND, at, bucket, plan};
use proptest::prelude::*;
use tollgate_core::terms::Standing;
use tollgate_core::{OnChange, Terms, Ticks, TokenBucket};

fn any_terms() -> impl Strategy<Value = Terms> {
    let figures = (1..=TokenBucket::MAX_TOKENS, 1..=TokenBucket::MAX_PERIOD_NS, 1..=1000u64);
    let figures = figures.prop_filter_map("too slow", |(n, p, b)| TokenBucket::new(n, p, b).ok());
    let policy = (any::<u64>(), ".{0,12}", figures.clone());
    (policy, prop::option::of(figures)).prop_map(|((revision, name, figures), overridden_by)| {
        let policy = plan(revision, &name, figures);
        overridden_by.map_or_else(|| policy.clone(), |bucket| policy.overridden_by(bucket))
    })
}

/// Terms in the range where products fit 128 bits, so that the test can multiply.
fn small_terms() -> impl Strategy<Value = Terms> {
    (1..3u64, "[ab]", 1..2000u64, 1..100 * SECOND, 1..1000u64)
        .prop_map(|(revision, name, n, period, burst)| plan(revision, &name, bucket(n, period, burst)))
}

#[test]
fn an_override_is_written_before_the_terms_in_whose_place_it_stands() {
    let policy = plan(3, "a/b!c", bucket(7, 60 * SECOND, 7));
    let terms = policy.overridden_by(bucket(1, SECOND, 2));
    assert_eq!(terms.to_string(), "1/1000000000/2!3/7/60000000000/7/a/b!c");
    assert_eq!(terms.to_string().parse::<Terms>().unwrap(), terms);
    assert_eq!((terms.policy(), terms.figures.token_bucket().unwrap()), (policy.clone(), bucket(1, SECOND, 2)));
    assert_eq!(terms.overridden_by(bucket(2, SECOND, 2)).policy(), policy, "one override in place of another");
    for text in ["!3/7/60000000000/7/", "1/1000000000/2!", "1/1000000000/2!1/1000000000/2!3/7/60000000000/7/"] {
        assert!(text.parse::<Terms>().is_err(), "{text:?}");
    }
}

#[test]
fn when_an_override_ends_a_bucket_goes_to_its_callers_terms_or_to_newer_ones() {
    let (old, new, pro) =
        (plan(1, "", bucket(1, SECOND, 4)), plan(2, "", bucket(1, SECOND, 2)), plan(2, "pro", bucket(9, SECOND, 9)));
    let figures = bucket(5, SECOND, 5);
    let held = new.overridden_by(figures);
    for caller in [&old, &new, &pro] {
        assert_eq!(caller.beside(Some(&new), Some(figures.into())), held);
        assert_eq!(caller.beside(Some(&held), Some(figures.into())), held, "all agree, whoever came first");
        assert_eq!(caller.beside(None, Some(figures.into())), caller.overridden_by(figures));
        assert_eq!(&caller.beside(Some(&held), None), if caller == &old { &new } else { caller });
        assert_eq!(&caller.beside(Some(&new), None), caller);
    }
}

#[test]
fn only_the_canonical_text_is_read() {
    let terms = plan(3, "pro", bucket(7, 60 * SECOND, 7));
    assert_eq!(terms.to_string(), "3/7/60000000000/7/pro");
    for text in [
        "",
        "3/7/60000000000/7",
        "03/7/60000000000/7/pro",
        "+3/7/60000000000/7/pro",
        "3/14/120000000000/7/pro",
        "3/7/60000000000/0/pro",
        "3/0/60000000000/7/pro",
        "-3/7/60000000000/7/pro",
        " 3/7/60000000000/7/pro",
        "3/7/6e10/7/pro",
    ] {
        assert!(text.parse::<Terms>().is_err(), "{text:?}");
    }
}

proptest! {
    #[test]
    fn text_goes_both_ways(terms in any_terms()) {
        prop_assert_eq!(terms.to_string().parse::<Terms>().unwrap(), terms);
    }

    #[test]
    fn equal_text_is_equal_terms(a in small_terms(), b in small_terms()) {
        prop_assert_eq!(a.to_string() == b.to_string(), a == b);
        prop_assert_eq!(a.standing(&b) == Standing::Same, a == b);
    }

    /// In tokens, rounded up by less than a tick, whatever the rates.
    #[test]
    fn debt_moves_between_plans_in_tokens_rounded_up(old in small_terms(), new in small_terms(), debt in 0..10_i128.pow(18)) {
        let new = Terms { revision: old.revision, plan: "other".into(), ..new };
        let tat = old.figures.token_bucket().unwrap().at(at(0)) + Ticks(debt);
        for rule in [OnChange::Proportional, OnChange::Reset, OnChange::Keep] {
            let carried = (new.carry(&old, tat, at(0), rule).tat - new.figures.token_bucket().unwrap().at(at(0))).0;
            let (from, to) = (i128::from(old.figures.token_bucket().unwrap().period()), i128::from(new.figures.token_bucket().unwrap().period()));
            prop_assert!(carried * from >= debt * to);
            prop_assert!((carried - 1) * from < debt * to);
        }
    }

    #[test]
    fn a_newer_revision_moves_debt_by_its_rule(old in small_terms(), new in small_terms(), share in 0..=1000i128) {
        let new = Terms { revision: old.revision + 1, ..new };
        let (w, debt) = (new.figures.token_bucket().unwrap().window().0, old.figures.token_bucket().unwrap().window().0 / 1000 * share);
        let tat = old.figures.token_bucket().unwrap().at(at(0)) + Ticks(debt);
        let carried = |rule| (new.carry(&old, tat, at(0), rule).tat - new.figures.token_bucket().unwrap().at(at(0))).0;
        prop_assert_eq!(carried(OnChange::Reset), 0);
        prop_assert!(carried(OnChange::Keep) <= w);
        prop_assert!(carried(OnChange::Proportional) <= w);
    }
}
