//! The evaluator by itself, on rules that others could have written.

use crate::{CLIENT, client};
use serde_json::{Value, json};
use std::net::IpAddr;
use std::time::Duration;
use tollgate_waf::evaluate::{Caught, Decided, Request, Rules, Traffic, Truth};

fn rule(name: &str, priority: u64, statement: Value, action: &str) -> Value {
    json!({ "Name": name, "Priority": priority, "Statement": statement, "Action": { action: {} }, "OverrideAction": null })
}

fn rate(limit: u64) -> Value {
    json!({ "RateBasedStatement": { "Limit": limit, "EvaluationWindowSec": 60, "AggregateKeyType": "IP" } })
}

fn acl(rules: &[Value]) -> Rules {
    Rules::of(&json!({ "Rules": rules, "DefaultAction": { "Allow": {} } }))
}

fn get(path: &str) -> Request {
    Request::new("GET", path, client())
}

#[test]
fn a_limit_catches_near_it_and_surely_only_when_waf_has_had_time_to_look() {
    let mut traffic = Traffic::new(acl(&[rule("r", 0, rate(10), "Block")]));
    let mut caught = Vec::new();
    // One a second: the eleventh is over ten a minute.
    for second in 0..120 {
        let outcome = traffic.take(&get("/"), Duration::from_secs(second));
        caught.push((outcome.rules[0].caught, outcome.decided));
    }
    let first = |what| caught.iter().position(|(caught, _)| *caught == what);
    assert_eq!((first(Caught::Perhaps), first(Caught::Surely)), (Some(10), Some(40)));
    assert_eq!((caught[10].1, caught[40].1), (Decided::Unknown, Decided::Stopped));
    // Silence for a minute and a half: what was counted is over.
    let outcome = traffic.take(&get("/"), Duration::from_secs(119 + 91));
    assert_eq!((outcome.rules[0].caught, outcome.decided), (Caught::No, Decided::Passes));
    assert_eq!(outcome.rules[0].counted.as_ref().map(|counted| (counted.in_window, counted.limit)), Some((1, 10)));
}

/// The caveats taken literally: at each instant of the last 30 s, how many requests were in the window that ended then.
fn by_definition(seen: &[u64], limit: usize, length: u64) -> Caught {
    let now = *seen.last().unwrap();
    let within = |end: u64| seen.iter().filter(|t| **t <= end && **t + length > end).count();
    let looks: Vec<bool> = (0..=30).map(|late| now.checked_sub(late).is_some_and(|end| within(end) > limit)).collect();
    match (looks.iter().all(|over| *over), looks.contains(&true)) {
        (true, _) => Caught::Surely,
        (_, true) => Caught::Perhaps,
        _ => Caught::No,
    }
}

#[test]
fn a_window_says_what_looking_at_each_instant_would() {
    let mut rng = fastrand::Rng::with_seed(9);
    let mut kinds = [0; 3];
    for _ in 0..300 {
        let (mut traffic, mut seen, mut at) = (Traffic::new(acl(&[rule("r", 0, rate(10), "Count")])), Vec::new(), 0);
        for _ in 0..80 {
            // Whole seconds, so that looking once a second is looking at each instant.
            at += if rng.u8(0..8) == 0 { rng.u64(0..70) } else { rng.u64(0..7) };
            seen.push(at);
            let outcome = traffic.take(&get("/"), Duration::from_secs(at));
            let caught = outcome.rules[0].caught;
            // The request itself is in the window from its own instant on; those of one second come one after another.
            let expected = by_definition(&seen, 10, 60);
            assert_eq!(caught, expected, "{seen:?}");
            kinds[caught as usize] += 1;
        }
    }
    assert!(kinds.iter().all(|n| *n > 500), "{kinds:?}");
}

#[test]
fn addresses_are_counted_by_themselves() {
    let mut traffic = Traffic::new(acl(&[rule("r", 0, rate(10), "Block")]));
    for i in 0..100 {
        let request = Request::new("GET", "/", format!("192.0.2.{i}").parse::<IpAddr>().unwrap());
        assert_eq!(traffic.take(&request, Duration::from_secs(31)).rules[0].caught, Caught::No);
    }
}

#[test]
fn a_rule_that_counts_lets_the_next_one_look_and_one_that_blocks_does_not() {
    let everything = json!({ "ByteMatchStatement": {
        "FieldToMatch": { "UriPath": {} }, "PositionalConstraint": "STARTS_WITH", "SearchString": "Lw==",
        "TextTransformations": [{ "Priority": 0, "Type": "NONE" }],
    } });
    let ask = |first: &str| {
        let rules = acl(&[rule("b", 2, everything.clone(), "Allow"), rule("a", 1, everything.clone(), first)]);
        let outcome = Traffic::new(rules).take(&get("/"), Duration::ZERO);
        (outcome.rules.iter().map(|rule| rule.rule.clone()).collect::<Vec<_>>().join(","), outcome.decided)
    };
    assert_eq!(ask("Count"), ("a,b".to_owned(), Decided::Passes));
    assert_eq!(ask("Block"), ("a".to_owned(), Decided::Stopped));
    assert_eq!(ask("Allow"), ("a".to_owned(), Decided::Passes));
}

#[test]
fn what_only_waf_knows_is_neither_a_match_nor_none() {
    let country = json!({ "GeoMatchStatement": { "CountryCodes": ["RO"] } });
    let not = json!({ "NotStatement": { "Statement": country } });
    let both = |kind: &str, other: Value| json!({ kind: { "Statements": [country, other] } });
    let here = json!({ "IPSetReferenceStatement": { "ARN": "set" } });
    for (statement, expected) in [
        (country.clone(), Truth::Unknown),
        (not, Truth::Unknown),
        (both("AndStatement", here.clone()), Truth::Unknown),
        (both("OrStatement", here.clone()), Truth::Yes),
        (both("AndStatement", json!({ "NotStatement": { "Statement": here } })), Truth::No),
        (json!({ "IPSetReferenceStatement": { "ARN": "another" } }), Truth::Unknown),
        (json!({ "ManagedRuleGroupStatement": { "Name": "x" } }), Truth::Unknown),
        (json!({}), Truth::Unknown),
    ] {
        let rules = acl(&[rule("r", 0, statement.clone(), "Block")]).with_ip_set("set", [format!("{CLIENT}/32")]);
        assert_eq!(rules.counts("r", &get("/")), Some(expected), "{statement}");
    }
    let keyed = json!({ "RateBasedStatement": { "Limit": 10, "AggregateKeyType": "CUSTOM_KEYS" } });
    assert_eq!(acl(&[rule("r", 0, keyed, "Block")]).counts("r", &get("/")), Some(Truth::Unknown));
    assert_eq!(acl(&[]).counts("r", &get("/")), None);
}

#[test]
fn addresses_are_in_blocks_of_their_version() {
    for (address, block, expected) in [
        ("203.0.113.9", "203.0.113.0/24", Truth::Yes),
        ("203.0.114.9", "203.0.113.0/24", Truth::No),
        ("203.0.113.9", "203.0.113.9/32", Truth::Yes),
        ("203.0.113.9", "::/1", Truth::No),
        ("2001:db8:1::9", "2001:db8:1::/48", Truth::Yes),
        ("2001:db8:2::9", "2001:db8:1::/48", Truth::No),
        ("203.0.113.9", "nonsense", Truth::Unknown),
    ] {
        let statement = json!({ "IPSetReferenceStatement": { "ARN": "set" } });
        let rules = acl(&[rule("r", 0, statement, "Block")]).with_ip_set("set", [block.to_owned()]);
        let request = Request::new("GET", "/", address.parse::<IpAddr>().unwrap());
        assert_eq!(rules.counts("r", &request), Some(expected), "{address} {block}");
    }
}

#[test]
fn a_forwarded_address_counts_and_the_lack_of_one_is_what_the_rule_says() {
    for (fallback, on_garbage) in [("MATCH", Truth::Yes), ("NO_MATCH", Truth::No)] {
        let statement = json!({ "RateBasedStatement": {
            "Limit": 10, "EvaluationWindowSec": 60, "AggregateKeyType": "FORWARDED_IP",
            "ForwardedIPConfig": { "HeaderName": "X-Real-IP", "FallbackBehavior": fallback },
        } });
        let rules = acl(&[rule("r", 0, statement, "Block")]);
        assert_eq!(rules.counts("r", &get("/")), Some(Truth::No), "a request without the header is not looked at");
        assert_eq!(rules.counts("r", &get("/").header("x-real-ip", "garbage")), Some(on_garbage));
        let mut traffic = Traffic::new(rules);
        let outcome = traffic.take(&get("/").header("x-real-ip", "192.0.2.1, 192.0.2.2"), Duration::ZERO);
        assert_eq!(outcome.rules[0].counted.as_ref().map(|counted| counted.key.as_str()), Some("192.0.2.1"));
    }
}
