//! Properties over random logs and bytes.

use crate::support::{TestRules, limit, line, run};
use jiff::fmt::strtime;
use proptest::collection::vec;
use proptest::prelude::*;
use std::collections::HashMap;
use tollgate_policy::Network;
use tollgate_replay::{Entry, Options, replay};

/// One request of a random log.
#[derive(Debug, Clone)]
struct Asked {
    secs: u64,
    client: &'static str,
    user: &'static str,
    path: usize,
}

/// n, seconds and burst of a limit.
type Figures = (u64, u64, u64);

const PATHS: [&str; 4] = ["/ip", "/user", "/both", "/none"];

fn costs(path: usize) -> Vec<(usize, u64)> {
    [vec![(0, 1)], vec![(1, 1)], vec![(1, 1), (0, 2)]].get(path).cloned().unwrap_or_default()
}

fn asked() -> impl Strategy<Value = Asked> {
    let client = prop::sample::select(vec!["192.0.2.1", "192.0.2.2", "2001:db8::1", "2001:db8::2", "host.example"]);
    let user = prop::sample::select(vec!["-", "alice", "bob"]);
    (0_u64..90, client, user, 0..PATHS.len()).prop_map(|(secs, client, user, path)| Asked { secs, client, user, path })
}

fn figures() -> impl Strategy<Value = Figures> {
    (1_u64..9, 1_u64..40, 1_u64..6)
}

/// Allowed, denied, not charged and missing by limit, and requests denied: tokens are refilled one request at a time, as
/// a fraction of the limit's period, instead of a theoretical arrival time.
fn naive(log: &[Asked], limits: [Figures; 2]) -> ([[u64; 4]; 2], u64) {
    let mut order: Vec<&Asked> = log.iter().collect();
    order.sort_by_key(|asked| asked.secs);
    let mut levels: HashMap<(usize, String), (u64, u64)> = HashMap::new();
    let (mut counts, mut denied) = ([[0; 4]; 2], 0);
    for asked in order {
        let mut fits = Vec::new();
        for (place, cost) in costs(asked.path) {
            let key = match (place, asked.client, asked.user) {
                (0, "host.example", _) | (1, _, "-") => {
                    counts[place][3] += 1;
                    continue;
                }
                (0, client, _) => if client.contains(':') { "v6" } else { client }.to_owned(),
                (_, _, user) => user.to_owned(),
            };
            let (n, period, burst) = limits[place];
            let (level, seen) = levels.entry((place, key.clone())).or_insert((burst * period, asked.secs));
            *level = (*level + (asked.secs - *seen) * n).min(burst * period);
            *seen = asked.secs;
            fits.push((place, key, cost * period, *level >= cost * period));
        }
        let allowed = fits.iter().all(|(.., fits)| *fits);
        denied += u64::from(!allowed);
        for (place, key, cost, fits) in fits {
            if allowed {
                levels.get_mut(&(place, key)).unwrap().0 -= cost;
            }
            let outcome = if allowed {
                0
            } else if fits {
                2
            } else {
                1
            };
            counts[place][outcome] += 1;
        }
    }
    (counts, denied)
}

proptest! {
    #[test]
    fn the_engine_agrees_with_a_naive_limiter(log in vec(asked(), 0..80), ip in figures(), user in figures()) {
        let rules = TestRules {
            limits: vec![limit("ip", "client_ip", ip.0, ip.1, ip.2), limit("user", "user", user.0, user.1, user.2)],
            routes: PATHS.iter().enumerate().map(|(path, name)| (*name, costs(path))).collect(),
        };
        let text: String = log.iter().map(|a| line(a.client, a.user, a.secs, PATHS[a.path])).collect();
        let report = run(text.as_bytes(), &rules);
        let counts = ["ip", "user"].map(|name| {
            let limit = &report.limits[name];
            [limit.allowed, limit.denied, limit.not_charged, limit.missing_dimension]
        });
        prop_assert_eq!((counts, report.denied), naive(&log, [ip, user]));
        prop_assert_eq!(report.requests, log.len() as u64);
    }

    #[test]
    fn any_bytes_are_an_entry_or_a_flaw_within_the_line(line in vec(any::<u8>(), 0..300)) {
        if let Err(error) = Entry::parse(&line) {
            prop_assert!(error.column <= line.len() + 1);
        }
    }

    #[test]
    fn a_line_with_bytes_changed_is_an_entry_or_a_flaw(changes in vec((0_usize..200, any::<u8>()), 0..6), cut in 0_usize..200) {
        let mut text = line("192.0.2.1", "al\\x41ce", 7, "/a\\\"b?c=d").into_bytes();
        for (at, byte) in changes {
            let len = text.len();
            text[at % len] = byte;
        }
        text.truncate(cut);
        if let Err(error) = Entry::parse(&text) {
            prop_assert!(error.column <= text.len() + 1);
        }
    }

    #[test]
    fn any_bytes_are_a_log(log in vec(prop_oneof![3 => any::<u8>(), 1 => Just(b'\n')], 0..400)) {
        let rules = TestRules { limits: vec![], routes: vec![] };
        let report = replay(log.as_slice(), &rules, &Options::default()).unwrap();
        let lines = log.split(|b| *b == b'\n').filter(|line| !line.trim_ascii().is_empty()).count();
        prop_assert_eq!(report.requests + report.skipped, lines as u64);
        prop_assert!(report.to_string().chars().all(|c| c == '\n' || !c.is_control()));
    }

    #[test]
    fn times_agree_with_jiff(secs in 0_i64..18_446_744_073, zone in -1439_i32..1440) {
        let offset = jiff::tz::Offset::from_seconds(zone * 60).unwrap();
        let zoned = jiff::Timestamp::from_second(secs).unwrap().to_zoned_datetime(offset.to_time_zone());
        // West of Greenwich the first hours of 1970 are written as 1969, and are after the epoch all the same.
        let time = strtime::format("%d/%b/%Y:%H:%M:%S %z", &zoned).unwrap();
        let line = format!("192.0.2.1 - - [{time}] \"GET / HTTP/1.1\" 200 1");
        prop_assert_eq!(Entry::parse(line.as_bytes()).unwrap().time.as_secs(), secs.unsigned_abs(), "{}", time);
    }

    #[test]
    fn networks_are_equal_exactly_if_their_texts_are(a in any::<u128>(), shared in 0_u32..129, prefix in any::<u8>()) {
        let b = a ^ u128::MAX.checked_shr(shared).unwrap_or(0);
        let [a, b] = [a, b].map(|bits| Network::of(std::net::Ipv6Addr::from_bits(bits).into(), prefix));
        prop_assert_eq!(a == b, a.to_string() == b.to_string());
        prop_assert_eq!(a == b, u32::from(prefix.min(128)) <= shared);
    }
}
