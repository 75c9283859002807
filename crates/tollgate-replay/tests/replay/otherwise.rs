//! Another policy beside the first, and limits out of the traffic.

use crate::support::{TestRules, limit, line, run};
use proptest::collection::vec;
use proptest::prelude::*;
use tollgate_replay::{Options, Replay};

fn rules(figures: (u64, u64, u64), routes: &[&'static str]) -> TestRules {
    let limits = vec![limit("ip", "client_ip", figures.0, figures.1, figures.2)];
    TestRules { limits, routes: routes.iter().map(|route| (*route, vec![(0, 1)])).collect() }
}

fn log(asked: &[(u64, usize, bool)]) -> String {
    let one = |(secs, client, other): &(u64, usize, bool)| {
        line(["192.0.2.1", "192.0.2.2", "host.example"][*client], "-", *secs, if *other { "/b" } else { "/a" })
    };
    asked.iter().map(one).collect()
}

proptest! {
    #[test]
    fn what_is_compared_is_what_each_policy_does_alone(
        asked in vec((0_u64..90, 0_usize..3, any::<bool>()), 0..80),
        before in (1_u64..9, 1_u64..40, 1_u64..6),
        after in (1_u64..9, 1_u64..40, 1_u64..6),
    ) {
        let log = log(&asked);
        let (before, after) = (rules(before, &["/a"]), rules(after, &["/a", "/b"]));
        let mut replay = Replay::new(&before, Options::default()).compared_to(&after);
        replay.read(None, log.as_bytes(), |_| ()).unwrap();
        let mut report = replay.report().unwrap();
        prop_assert_eq!(&replay.report().unwrap(), &report, "asked again");
        let compare = report.compare.take().unwrap();
        let [alone, other] = [&before, &after].map(|rules| run(log.as_bytes(), rules));
        prop_assert_eq!(&report, &alone);
        prop_assert_eq!((compare.denied, compare.unmatched), (other.denied, other.unmatched));
        prop_assert_eq!(compare.newly_denied.requests + compare.same_denied, other.denied);
        prop_assert_eq!(compare.freed.requests + compare.same_denied, alone.denied);
        let all = compare.newly_denied.requests + compare.freed.requests + compare.same_allowed + compare.same_denied;
        prop_assert_eq!(all, asked.len() as u64, "each path is on a route of one of them");
        let limit = &compare.limits["ip"];
        prop_assert_eq!(limit.after.unwrap().denied, other.limits["ip"].denied);
        prop_assert_eq!(limit.before.unwrap().allowed, alone.limits["ip"].allowed);
        prop_assert_eq!(&limit.newly_denied.requests, &compare.newly_denied.requests, "there is one limit");
    }

    #[test]
    fn a_suggested_limit_denies_what_it_says_and_the_highest_denies_nothing(
        asked in vec((0_u64..200, 0_usize..2, any::<bool>()), 1..80)
    ) {
        let log = log(&asked);
        let anything = rules((1, 1, 1), &[""]);
        let mut replay = Replay::new(&anything, Options::default());
        replay.read(None, log.as_bytes(), |_| ()).unwrap();
        let suggestion = replay.suggest().unwrap().remove("ip").unwrap();
        prop_assert_eq!(suggestion.requests, asked.len() as u64);
        for row in &suggestion.rows {
            let report = run(log.as_bytes(), &rules((row.per_minute, 60, row.burst), &[""]));
            prop_assert_eq!(report.denied, row.requests_denied, "{:?}", row);
            prop_assert!(row.keys_denied <= suggestion.keys);
        }
        let highest = suggestion.rows.last().unwrap();
        prop_assert_eq!((highest.requests_denied, highest.keys_denied), (0, 0));
    }
}
