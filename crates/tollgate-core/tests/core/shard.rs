//! A limit divided among several items: the parts add up to it, and whoever chooses among them, they never admit more.

use crate::store::{HOUR, MS, SECOND, Store, at, bucket, charge, plan};
use proptest::prelude::*;
use std::num::NonZeroU16;
use std::time::Duration;
use tollgate_core::{
    Charges, Decision, Figures, Held, Hold, ItemKey, Key, LimitName, Log, Outcome, Override, Shard, Span, Terms,
    Timestamp, TokenBucket, Window,
};

fn shards(n: u16) -> NonZeroU16 {
    NonZeroU16::new(n).unwrap()
}

/// The figures of all parts.
fn parts(whole: impl Into<Figures>, n: u16) -> Vec<Figures> {
    let whole = whole.into();
    assert!(whole.can_be_divided(shards(n)), "{whole:?} among {n}");
    Shard::all(shards(n)).map(|shard| whole.shard(shard)).collect()
}

fn divided(terms: &Terms, cost: u64, n: u16) -> Charges {
    let limit = LimitName::new("l").unwrap();
    let own = ItemKey::own(Key::new([("user", "alice")]).unwrap(), limit);
    Charges::new(own, vec![charge("l", terms, cost)]).unwrap().sharded(Some(shards(n)))
}

/// The items of all shards, each with its own.
struct Shards(Vec<Store>);

impl Shards {
    fn new(n: u16) -> Self {
        Self((0..n).map(|_| Store::default()).collect())
    }

    fn ask(&mut self, charges: &Charges, index: u16, now: Timestamp) -> Decision {
        self.0[usize::from(index)].ask(&charges.on_shard(index), now).decision
    }

    /// How many calls of one token pass at one instant, on all of them.
    fn at_once(&mut self, charges: &Charges, now: Timestamp) -> usize {
        let all = 0..u16::try_from(self.0.len()).unwrap();
        all.map(|index| (0..1000).take_while(|_| self.ask(charges, index, now).is_allowed()).count()).sum()
    }
}

#[test]
fn the_parts_of_a_limit_are_its_figures_divided_and_the_first_have_what_is_over() {
    assert_eq!(parts(bucket(10, SECOND, 8), 4), [bucket(10, 4 * SECOND, 2).into(); 4]);
    let eleven = [3, 3, 3, 2].map(|burst| bucket(10, 4 * SECOND, burst).into());
    assert_eq!(parts(bucket(10, SECOND, 11), 4), eleven);
    let owing = bucket(10, SECOND, 9).with_debt(3).unwrap();
    let parted = [(5, 2), (4, 1)].map(|(burst, debt)| bucket(10, 2 * SECOND, burst).with_debt(debt).unwrap().into());
    assert_eq!(parts(owing, 2), parted);
    for sliding in [false, true] {
        let window = |most| Window::new(most, Span::Every(HOUR), sliding).unwrap();
        assert_eq!(parts(window(100), 3), [34, 33, 33].map(|most| window(most).into()));
    }
}

#[test]
fn what_cannot_be_divided_is_told_before() {
    let can = |figures: Figures, n| figures.can_be_divided(shards(n));
    assert!(can(bucket(10, SECOND, 4).into(), 4) && !can(bucket(10, SECOND, 3).into(), 4), "one at once for each");
    assert!(!can(bucket(10, SECOND, 10).paced(3).into(), 2));
    assert!(!can(Log::new(10, HOUR).unwrap().into(), 2));
    let slowest = bucket(1, TokenBucket::MAX_PERIOD_NS, 50);
    assert!(!can(slowest.into(), 2), "a part would be slower than a rate can be");
    assert!(can(bucket(100, TokenBucket::MAX_PERIOD_NS, 50).into(), 50), "as 2 in that time");
    let window = |most| Window::new(most, Span::Every(HOUR), true).unwrap();
    assert!(can(window(4).into(), 4) && !can(window(3).into(), 4));
}

fn figures() -> impl Strategy<Value = Figures> {
    let tokens = prop_oneof![1..200u64, Just(TokenBucket::MAX_TOKENS), 1..=TokenBucket::MAX_TOKENS];
    let period = prop_oneof![1..100 * SECOND, 1..=TokenBucket::MAX_PERIOD_NS];
    let buckets = (tokens.clone(), period, tokens, 0..50u64).prop_filter_map("in range", |(n, period, burst, debt)| {
        Some(TokenBucket::new(n, period, burst).ok()?.with_debt(debt).ok()?.into())
    });
    let windows = (1..=999_999_000u64, SECOND..1000 * HOUR, any::<bool>(), 0..50u64);
    let windows = windows.prop_filter_map("in range", |(most, length, sliding, debt)| {
        Some(Window::new(most, Span::Every(length), sliding).ok()?.with_debt(debt).ok()?.into())
    });
    prop_oneof![buckets, windows]
}

proptest! {
    #[test]
    fn the_parts_add_up_to_the_whole(whole in figures(), n in 2..=Shard::MOST) {
        prop_assume!(whole.can_be_divided(shards(n)));
        let parts = parts(whole, n);
        prop_assert_eq!(parts.iter().map(Figures::most).sum::<u64>(), whole.most());
        prop_assert_eq!(parts.iter().map(Figures::debt).sum::<u64>(), whole.debt());
        prop_assert_eq!(parts.iter().map(Figures::most).min(), Some(whole.least_of_shards(shards(n))));
        for part in &parts {
            if let (Some(part), Some(whole)) = (part.token_bucket(), whole.token_bucket()) {
                // `n` of them are as fast as the whole, exactly.
                let (a, b) = (u128::from(part.n()) * u128::from(n), u128::from(part.period()));
                prop_assert_eq!(a * u128::from(whole.period()), u128::from(whole.n()) * b);
            } else {
                prop_assert!(part.shares_state_with(&whole), "the same windows");
            }
        }
    }

    /// Whoever chooses, and however: in any interval no more than `B + rate * length`, as of an item that is not divided.
    #[test]
    fn all_shards_together_never_over_admit(
        (n, period, n_shards, more) in (1..20u64, 1..20u64, 2..6u16, 0..9u64),
        calls in prop::collection::vec((0..6u16, 1..4u64, 0..3000u64), 1..80),
    ) {
        let (period, burst) = (period * SECOND, u64::from(n_shards) + more);
        let terms = Terms::new(1, bucket(n, period, burst));
        let (mut items, mut now, mut admitted) = (Shards::new(n_shards), 0, Vec::new());
        for (index, cost, pause_ms) in calls {
            now += pause_ms * MS;
            if items.ask(&divided(&terms, cost, n_shards), index % n_shards, at(now)).is_allowed() {
                admitted.push((now, cost));
            }
        }
        for (i, (from, _)) in admitted.iter().enumerate() {
            let mut cost = 0;
            for (to, c) in &admitted[i..] {
                cost += c;
                let over = u128::from(cost.saturating_sub(burst)) * u128::from(period);
                prop_assert!(over <= u128::from(n) * u128::from(to - from), "{} in {} ns", cost, to - from);
            }
        }
    }
}

#[test]
fn full_shards_admit_the_burst_exactly() {
    let terms = Terms::new(1, bucket(1, HOUR, 11));
    assert_eq!(Shards::new(4).at_once(&divided(&terms, 1, 4), at(0)), 11);
    let window = Terms::new(1, Window::new(11, Span::Every(HOUR), false).unwrap());
    assert_eq!(Shards::new(4).at_once(&divided(&window, 1, 4), at(0)), 11);
}

#[test]
fn a_shard_is_told_as_the_whole_limit_of_which_its_part_is_left() {
    let terms = plan(3, "pro", bucket(8, SECOND, 8));
    let decision = Shards::new(4).ask(&divided(&terms, 1, 4), 2, at(0));
    assert_eq!((&decision.limits[0].terms, decision.limits[0].remaining), (&terms, 1));
}

#[test]
fn what_an_operator_sets_is_of_the_whole_limit() {
    let terms = Terms::new(1, bucket(1, HOUR, 8));
    let (charges, until) = (divided(&terms, 1, 4), at(HOUR));
    let over = Override { figures: bucket(1, HOUR, 21).into(), until };
    let overrides = std::collections::BTreeMap::from([(LimitName::new("l").unwrap(), over)]);
    let mut items = Shards::new(4);
    for item in &mut items.0 {
        let hold = Hold { id: 7, banned_until: None, overrides: overrides.clone() };
        item.item = Some(tollgate_core::Item { hold: Some(hold), ..Default::default() });
    }
    let told = items.ask(&charges, 0, at(0)).limits.remove(0);
    assert_eq!((told.terms.figures, told.held), (bucket(1, HOUR, 21).into(), Some(Held::Override { until })));
    assert_eq!(items.at_once(&charges, at(0)), 20);
    // Each shard is again what the policy says, and owes what it admitted beyond that.
    assert!(!items.ask(&charges, 0, until).is_allowed());
}

/// All shards deny a call while fewer whole calls than shards are left among them: each has less than the call costs.
#[test]
fn what_is_left_where_all_shards_deny_is_less_than_the_cost_in_each() {
    let terms = Terms::new(1, bucket(1, HOUR, 20));
    let (dear, cheap) = (divided(&terms, 3, 4), divided(&terms, 1, 4));
    let mut items = Shards::new(4);
    for index in 0..4 {
        assert!(items.ask(&dear, index, at(0)).is_allowed());
        assert_eq!(items.ask(&dear, index, at(0)).outcome(), Outcome::Denied);
    }
    assert_eq!(items.at_once(&cheap, at(0)), 4 * 2, "n * (cost - 1) at most");
    let never = divided(&terms, 6, 4);
    assert_eq!(items.ask(&never, 0, at(0)).outcome(), Outcome::NeverFits, "a shard has five");
    // A shard fills at the n-th part of the rate.
    assert_eq!(items.ask(&cheap, 0, at(0)).retry_after(), Some(Duration::from_secs(4 * 3600)));
}

#[test]
fn a_divided_limit_is_leased_by_nobody() {
    let charges = divided(&Terms::new(1, bucket(100, SECOND, 100)), 1, 4);
    let leased = charges.charges().iter().map(|charge| charge.clone().leased(10)).collect();
    let leased = Charges::new(charges.item().clone(), leased).unwrap();
    assert!(leased.can_be_leased(), "in one item");
    assert!(!leased.sharded(Some(shards(4))).can_be_leased());
}

#[test]
fn only_a_limit_with_its_own_item_is_divided() {
    let list = vec![charge("l", &Terms::new(1, bucket(1, SECOND, 4)), 1)];
    let shared = Charges::new(ItemKey::shared(Key::new([("user", "alice")]).unwrap()), list).unwrap();
    let charges = shared.clone().sharded(Some(shards(2)));
    assert_eq!((charges.shards(), charges.on_shard(1).item()), (None, shared.item()));
}
