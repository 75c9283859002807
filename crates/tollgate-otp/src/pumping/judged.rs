//! What is judged of countries over days: honest ones, attacked ones, and those where both are.
#![allow(clippy::unwrap_used)]

use super::*;
use crate::pumping::cohort::{Change, Marks};
use proptest::prelude::*;

const TTL: Duration = Duration::from_secs(300);
const START: u64 = 1_767_225_600;

/// A country whose messages are made up, window by window, and judged every minute.
struct Country {
    ladder: Ladder,
    cohorts: Cohorts,
    now: Timestamp,
    random: fastrand::Rng,
    steps: Vec<(Timestamp, Step)>,
}

/// What is asked for in a window.
#[derive(Clone, Copy)]
struct Demand<'a> {
    block: &'a str,
    messages: u64,
    conversion: f64,
    /// Whether those who ask solve CAPTCHAs.
    human: bool,
}

impl Country {
    fn new(seed: u64) -> Self {
        let (ladder, cohorts, now) = (Ladder::default(), Cohorts::default(), Timestamp::from_secs(START));
        Self { ladder, cohorts, now, random: fastrand::Rng::with_seed(seed), steps: Vec::new() }
    }

    fn rung(&self, block: &str) -> Rung {
        self.ladder.over("RO", block).map_or(Rung::Observe, |(_, standing)| standing.rung)
    }

    /// A window in which all this is asked for.
    fn window(&mut self, demands: &[Demand<'_>]) {
        let window = Window::of(self.now);
        for demand in demands {
            for _ in 0..demand.messages {
                let rung = self.rung(demand.block);
                let tally = self.cohorts.entry(window).or_default().entry(demand.block.to_owned()).or_default();
                let mut add = |change: Change| {
                    let next = change.apply(Some(tally));
                    next.map(|next| *tally = next).is_some()
                };
                // Everybody asks once before he is told to solve one.
                if rung > Rung::Observe {
                    add(Change::Refused);
                }
                if rung == Rung::Block || (rung > Rung::Observe && !demand.human) {
                    continue;
                }
                let number = self.random.u32(..) & !1;
                assert!(add(Change::Sent(Marks { number, next: number + 1 })) || add(Change::SentOnly));
                if self.random.f64() < demand.conversion {
                    add(Change::Verified(1));
                }
            }
        }
        for _ in 0..5 {
            self.now = self.now + Duration::from_secs(60);
            let (ladder, steps) = judge(&self.ladder, "RO", &self.cohorts, TTL, self.now);
            self.steps.extend(steps.into_iter().map(|step| (self.now, step)));
            self.ladder = ladder;
        }
        let oldest = *windows(self.now, TTL).start();
        self.cohorts.retain(|window, _| window.0 >= oldest);
    }

    fn highest(&self) -> Rung {
        self.steps.iter().map(|(_, step)| step.to).max().unwrap_or_default()
    }
}

fn honest(block: &str, messages: u64, conversion: f64) -> Demand<'_> {
    Demand { block, messages, conversion, human: true }
}

fn robots(block: &str, messages: u64) -> Demand<'_> {
    Demand { block, messages, conversion: 0.0, human: false }
}

const HOMES: [&str; 6] = ["+4072100", "+4072155", "+4073211", "+4074590", "+4075001", "+4076999"];

fn usual(messages: u64) -> Vec<Demand<'static>> {
    HOMES.iter().map(|block| honest(block, messages, 0.8)).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8))]

    #[test]
    fn an_honest_country_is_left_alone(seed in 0_u64..1000, conversion in 0.55_f64..0.98, messages in 1_u64..12) {
        let mut country = Country::new(seed);
        let demands: Vec<_> = HOMES.iter().map(|block| honest(block, messages, conversion)).collect();
        (0..288).for_each(|_| country.window(&demands));
        prop_assert_eq!(country.highest(), Rung::Observe);
    }

    #[test]
    fn a_country_where_few_codes_are_verified_is_learned_and_never_blocked(seed in 0_u64..1000, conversion in 0.15_f64..0.4) {
        let mut country = Country::new(seed);
        let demands: Vec<_> = HOMES.iter().map(|block| honest(block, 5, conversion)).collect();
        (0..7 * 288).for_each(|_| country.window(&demands));
        prop_assert!(country.highest() <= Rung::Captcha);
        let last_day = Timestamp::from_secs(START + 6 * 86_400);
        let late = country.steps.iter().filter(|(at, step)| *at > last_day && step.to > step.from).count();
        prop_assert_eq!(late, 0, "it goes up again though its habits are known");
        prop_assert!(HOMES.iter().all(|block| country.rung(block) == Rung::Observe));
    }

    #[test]
    fn whatever_is_counted_no_block_lasts(seed in 0_u64..1000, messages in 1_u64..200) {
        // People who solve every CAPTCHA and verify nothing at all.
        let mut country = Country::new(seed);
        let demand = [honest("+4072100", messages, 0.0)];
        let mut blocked = 0;
        for _ in 0..4 * 288 {
            country.window(&demand);
            blocked = if country.rung("+4072100") == Rung::Block { blocked + 1 } else { 0 };
            prop_assert!(blocked <= 8 * 12 + 1, "longer than the longest hold");
        }
    }

    #[test]
    fn an_attack_is_found_in_two_cohorts_and_held_until_it_ends(seed in 0_u64..1000, messages in 40_u64..400) {
        let mut country = Country::new(seed);
        (0..24).for_each(|_| country.window(&usual(3)));
        let began = country.now;
        let attacked = || [usual(3), vec![robots("+4078111", messages)]].concat();
        (0..3).for_each(|_| country.window(&attacked()));
        let found = country.steps.iter().find(|(_, step)| step.to == Rung::Captcha).map(|(at, _)| *at);
        prop_assert!(found.is_some_and(|at| at.as_secs() - began.as_secs() <= 11 * 60), "{found:?} {began:?}");
        for _ in 0..48 {
            country.window(&attacked());
            prop_assert_eq!(country.rung("+4078111"), Rung::Captcha, "it steps down while it is attacked");
        }
        prop_assert!(HOMES.iter().all(|block| country.rung(block) == Rung::Observe), "{:?}", country.steps);
        // An hour until it is not seen any more, and at most half of one until somebody looks.
        (0..24).for_each(|_| country.window(&usual(3)));
        prop_assert_eq!(country.rung("+4078111"), Rung::Observe, "it does not step down");
    }
}

#[test]
fn who_solves_captchas_and_verifies_nothing_is_reduced_and_then_blocked() {
    let mut country = Country::new(1);
    (0..24).for_each(|_| country.window(&usual(3)));
    let demands = [usual(3), vec![honest("+4078111", 200, 0.0)]].concat();
    (0..12).for_each(|_| country.window(&demands));
    let to: Vec<_> = country.steps.iter().map(|(_, step)| (step.scope.to_string(), step.to)).collect();
    let expected = [Rung::Captcha, Rung::Reduced, Rung::Block].map(|rung| ("+4078111".to_owned(), rung));
    assert_eq!(to, expected);
    (0..24).for_each(|_| country.window(&usual(3)));
    assert!(country.rung("+4078111") < Rung::Block);
}

/// When a block was first suspected, of all scopes that it is in.
fn suspected(country: &Country, block: &str) -> Option<Timestamp> {
    let around = Scope::around("RO", block).filter_map(|scope| country.ladder.standings.get(&scope));
    around.map(|standing| standing.suspected).min()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(6))]

    #[test]
    fn while_a_block_is_remembered_nothing_makes_it_look_suspected_later(
        seed in 0_u64..1000,
        demand in prop::collection::vec((0_u64..120, any::<bool>()), 3..8),
    ) {
        // An attack that rests and begins anew, with a farm and without, and others beside it that make wider scopes the suspect.
        let blocks = ["+4078111", "+4078112", "+4078113", "+4078555"];
        let (mut country, mut first) = (Country::new(seed), [None; 4]);
        for (messages, is_human) in demand {
            for _ in 0..18 {
                let attack = |block| Demand { block, messages, conversion: 0.0, human: is_human };
                country.window(&[usual(3), blocks.map(attack).to_vec()].concat());
                for (first, block) in first.iter_mut().zip(blocks) {
                    let now = suspected(&country, block);
                    prop_assert!(now.is_none() || first.is_none() || now <= *first, "{block}: {first:?} {now:?}");
                    *first = now;
                }
            }
        }
    }
}

#[test]
fn runs_of_numbers_are_found_before_any_code_is_over() {
    let (mut cohorts, window) = (Cohorts::default(), Window::of(Timestamp::from_secs(START)));
    let mut tally = Tally::default();
    for n in 0..20 {
        tally = Change::Sent(Marks { number: n, next: n + 1 }).apply(Some(&tally)).unwrap();
    }
    cohorts.entry(window).or_default().insert("+4078111".to_owned(), tally);
    let now = window.start() + Duration::from_secs(60);
    let (ladder, steps) = judge(&Ladder::default(), "RO", &cohorts, TTL, now);
    assert_eq!(steps.iter().map(|step| (step.to, step.why)).collect::<Vec<_>>(), [(Rung::Captcha, Why::Consecutive)]);
    assert_eq!(ladder.on(Rung::Captcha), 1);
}

#[test]
fn a_thin_attack_on_a_wide_range_is_found_by_the_range() {
    let mut country = Country::new(3);
    (0..24).for_each(|_| country.window(&usual(3)));
    let blocks: Vec<String> = (0..100).map(|n| format!("+40799{n:02}")).collect();
    let thin: Vec<_> = blocks.iter().map(|block| robots(block, 1)).collect();
    (0..3).for_each(|_| country.window(&[usual(3), thin.clone()].concat()));
    assert!(blocks.iter().all(|block| country.rung(block) == Rung::Captcha), "{:?}", country.steps);
    assert!(country.steps.len() <= 10, "one by one: {:?}", country.steps);
    assert!(HOMES.iter().all(|block| country.rung(block) == Rung::Observe));
}

#[test]
fn an_attack_that_moves_on_has_the_whole_country_asked_for_captchas() {
    let mut country = Country::new(4);
    (0..24).for_each(|_| country.window(&usual(3)));
    for n in 0..6 {
        let block = format!("+407{n}888");
        (0..3).for_each(|_| country.window(&[usual(3), vec![robots(&block, 100)]].concat()));
    }
    assert_eq!(country.ladder.standings.get(&Scope::country("RO")).map(|standing| standing.rung), Some(Rung::Captcha));
    assert!(country.highest() == Rung::Captcha, "people are asked, not stopped");
}

#[test]
fn an_attack_that_is_over_makes_no_country_the_suspect() {
    // Each prefix comes down rung by rung over some hours: that is no news of an attack.
    let mut country = Country::new(5);
    (0..24).for_each(|_| country.window(&usual(3)));
    let blocks: Vec<String> = (2..8).map(|n| format!("+407{n}888")).collect();
    let farm: Vec<_> = blocks.iter().map(|block| honest(block, 150, 0.0)).collect();
    (0..18).for_each(|_| country.window(&[usual(3), farm.clone()].concat()));
    assert!(blocks.iter().any(|block| country.rung(block) == Rung::Block), "{:?}", country.steps);
    // Until its last codes are judged.
    (0..3).for_each(|_| country.window(&usual(3)));
    let over = country.now;
    (0..36 * 12).for_each(|_| country.window(&usual(3)));
    let up: Vec<_> = country.steps.iter().filter(|(at, step)| *at > over && step.to > step.from).collect();
    assert!(up.is_empty(), "{up:?}");
}

#[test]
fn where_many_prefixes_are_remembered_those_go_up_as_others_do() {
    let now = Timestamp::from_secs(START + 86_400);
    let window = Window(newest_matured(now, TTL));
    let country = |rung: Rung, remembered: usize| {
        let mut ladder = Ladder::default();
        for n in 0..remembered {
            let past = Timestamp::from_secs(START);
            let standing = Standing { rung, until: now + Standing::HOLD, ..Standing::raised("RO", rung, 1, past) };
            let scope = Scope::around("RO", &format!("+407{n:04}")).next().unwrap();
            ladder.standings.insert(scope, standing);
        }
        let tally = Tally { sent: 200, ..Tally::default() };
        let cohorts = Cohorts::from([(window, BTreeMap::from([("+4070000".to_owned(), tally)]))]);
        let (_, steps) = judge(&ladder, "RO", &cohorts, TTL, now);
        steps.into_iter().filter(|step| step.to > step.from).map(|step| (step.scope, step.to)).collect::<Vec<_>>()
    };
    for rung in [Rung::Observe, Rung::Captcha, Rung::Reduced] {
        assert_eq!(country(rung, MOST_STANDINGS), country(rung, 1), "{rung:?}");
    }
}

#[test]
fn twenty_messages_that_nobody_wanted_prove_nothing_and_nine_numbers_in_a_row_do() {
    let matured = Window(newest_matured(Timestamp::from_secs(START), TTL));
    let why = |sent: u64, in_a_row: bool, conversion: (u64, u64)| {
        let mut ladder = Ladder::default();
        ladder.baselines.entry("RO".to_owned()).or_default().learn(conversion.1, conversion.0);
        let mut tally = Tally::default();
        for n in 0..u32::try_from(sent).unwrap() {
            let number = if in_a_row { n } else { 10 * n };
            tally = Change::Sent(Marks { number, next: number + 1 }).apply(Some(&tally)).unwrap();
        }
        let cohorts = Cohorts::from([(matured, BTreeMap::from([("+4072100".to_owned(), tally)]))]);
        judge(&ladder, "RO", &cohorts, TTL, Timestamp::from_secs(START)).1.first().map(|step| step.why)
    };
    let all = (2000, 2000);
    assert_eq!((why(20, false, all), why(21, false, all)), (None, Some(Why::Conversion)));
    assert_eq!((why(8, true, all), why(9, true, all)), (None, Some(Why::Consecutive)));
}
