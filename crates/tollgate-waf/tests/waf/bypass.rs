//! Ways around a rule, made by the hundred thousand: whatever an origin takes for the limited path is counted, and no exemption
//! reaches further than its own spelling.

use crate::origins::{self, routes_to};
use crate::{SAMPLE, client, edge, rules};
use fastrand::Rng;
use tollgate_policy::Policy;
use tollgate_waf::evaluate::{Assumptions, Request, Rules, Truth};

const AUTH: [&str; 2] = ["api", "auth"];
const RULE: &str = "tollgate-rate-auth";

/// How many paths are made for each property.
const MANY: usize = 30_000;

fn is_counted(rules: &Rules, rule: &str, method: &str, path: &str) -> bool {
    match rules.counts(rule, &Request::new(method, path, client())) {
        Some(Truth::Yes) => true,
        Some(Truth::No) => false,
        other => panic!("{rule}: {other:?} of {path}"),
    }
}

/// A letter in one of the spellings that somebody decodes.
fn letter(rng: &mut Rng, c: char) -> String {
    let c = if rng.bool() { c } else { c.to_ascii_uppercase() };
    let code = u32::from(c);
    match rng.u8(0..12) {
        0 => format!("%{code:02x}"),
        1 => format!("%{code:02X}"),
        2 => format!("%25{code:02x}"),
        3 => format!("%u{code:04x}"),
        4 => format!("%uff{:02x}", code - 0x20),
        _ => c.to_string(),
    }
}

/// A segment, spelled in one way for all its letters or in another for each.
fn segment(rng: &mut Rng, text: &str) -> String {
    if rng.u8(0..3) == 0 { text.to_owned() } else { text.chars().map(|c| letter(rng, c)).collect() }
}

fn pick<'a>(rng: &mut Rng, of: &[&'a str]) -> &'a str {
    of[rng.usize(0..of.len())]
}

const SLASHES: [&str; 9] = ["/", "/", "/", "//", "\\", "%2f", "%5c", "%252F", "/;v=1/"];
const DOTS: [&str; 9] = [".", "..", "%2e", "%2E.", "..;", ".;a=b", "%252e%252e", "..;x", ".%2e"];
const WORDS: [&str; 8] = ["webhooks", "payments", "x", "healthz", "api", "auth", "%00", ";a"];
const TAILS: [&str; 14] = [
    "",
    "",
    "/",
    "//",
    ";v=1",
    ".json",
    "%00",
    "%20",
    "/login",
    "/../auth/login",
    "%2flogin",
    "\\login",
    "?next=/x",
    "/%252e%252e/",
];

/// The limited path with noise before, within and behind it.
fn crooked(rng: &mut Rng) -> String {
    if rng.u8(0..6) == 0 {
        return format!("/api/auth{}{}", pick(rng, &["", "/"]), noise(rng));
    }
    let mut path = String::new();
    for wanted in AUTH {
        for _ in 0..rng.u8(0..3) {
            path += &noise(rng);
        }
        path += pick(rng, &SLASHES);
        path += &segment(rng, wanted);
        if rng.u8(0..6) == 0 {
            path += pick(rng, &[";", ";v=1", ";a;b", "%3bx"]);
        }
    }
    path += pick(rng, &TAILS);
    for _ in 0..rng.u8(0..3) {
        path += &noise(rng);
    }
    if path.starts_with('/') { path } else { format!("/{path}") }
}

fn noise(rng: &mut Rng) -> String {
    let words = if rng.bool() { &DOTS[..] } else { &WORDS[..] };
    format!("{}{}", pick(rng, &SLASHES), pick(rng, words))
}

/// Pieces of paths in any order.
fn jumbled(rng: &mut Rng) -> String {
    let mut path = "/".to_owned();
    for _ in 0..rng.u8(1..9) {
        path += match rng.u8(0..5) {
            0 => pick(rng, &SLASHES),
            1 => pick(rng, &DOTS),
            2 => pick(rng, &WORDS),
            3 => pick(rng, &["/api/", "api", "%61pi", "API", "%2561pi"]),
            _ => pick(rng, &["auth", "/auth", "aut%68", "AUTH/", "auth;"]),
        };
    }
    path
}

/// Spellings that were reported, or that are known of an origin.
const RECORD: &[&str] = &[
    "/api/auth",
    "/api/auth/",
    "/api/auth/login",
    "//api//auth/login",
    "//api/auth",
    "/./api/auth",
    "/API/AUTH",
    "/%61pi/auth",
    "/webhooks/../api/auth",
    "/webhooks/../api/auth/login",
    "/webhooks/payments/../../api/auth/login",
    "/healthz/..;/api/auth/login",
    "/x/y/..;/../api/auth",
    "/api;v=1/auth/login",
    "/api\\auth\\login",
    "/api%2fauth",
    "/%2561pi/auth/login",
    "/%u0061pi/auth",
    "/api/auth.json",
    "/api/x/%2e%2e/auth",
    "/../api/auth",
    "/api/auth?x=/healthz",
];

/// Nothing of the record, and nothing that an origin takes for the limited path, gets past these rules.
pub(crate) fn nothing_gets_past(rules: &[Rules], many: usize) -> [usize; origins::ALL.len()] {
    for (path, rules) in RECORD.iter().flat_map(|path| rules.iter().map(move |rules| (path, rules))) {
        assert!(is_counted(rules, RULE, "POST", path), "{path}");
    }
    let mut rng = Rng::with_seed(53);
    let mut taken = [0_usize; origins::ALL.len()];
    for i in 0..many {
        let path = if i % 3 == 0 { jumbled(&mut rng) } else { crooked(&mut rng) };
        let sent = path.split('?').next().unwrap();
        let mut takes = None;
        for (origin, taken) in origins::ALL.iter().zip(&mut taken) {
            if routes_to(*origin, sent, &AUTH) {
                *taken += 1;
                takes = Some(origin.0);
            }
        }
        for rules in rules.iter().filter(|_| takes.is_some()) {
            assert!(is_counted(rules, RULE, "POST", &path), "{path}\n{takes:?}");
        }
    }
    taken
}

#[test]
fn a_limit_of_a_path_is_not_one_of_its_neighbours() {
    let rules = rules(SAMPLE);
    for path in [
        "/",
        "/api",
        "/api/orders",
        "/api/authors",
        "/api/auth-x",
        "/api/auth_x",
        "/apis/auth",
        "/api/aut",
        "/api-auth",
        "/x/api/auth",
        "/docs/auth/api",
        "/api/orders/../search",
        "/api.auth",
        "/apiauth",
        "/auth/api/auth",
    ] {
        assert!(!is_counted(&rules, RULE, "GET", path), "{path}");
        assert!(is_counted(&rules, "tollgate-rate-all", "GET", path), "{path}");
    }
}

/// Bike4Mind#1959, traceroot#2035: `//api//auth/login`, `/./api/auth`, `/API/AUTH`, `/%61pi/auth`, `/webhooks/../api/auth`.
#[test]
fn no_spelling_that_an_origin_takes_for_the_path_gets_past_its_limit() {
    let rules = Assumptions::ALL.map(|assumptions| rules(SAMPLE).assuming(assumptions));
    let taken = nothing_gets_past(&rules, MANY);
    // Each origin has had something to say.
    for ((name, _), taken) in origins::ALL.iter().zip(taken) {
        assert!(taken > 300, "{name}: {taken}");
    }
}

/// Two exemptions as people write them, and a parameter.
const EXEMPT: &str = r#"
[[exempt]]
match = "POST,PUT /webhooks/payments"
why = "signed"
[[exempt]]
match = "GET /files/{id}"
why = "public"
[[exempt]]
match = "* /public/*"
why = "public"
[edge]
rules = [{ name = "rate-all", rate = "2000/5min" }]
"#;

#[test]
fn an_exemption_is_its_own_spelling_and_no_other() {
    let rules = rules(&edge(EXEMPT));
    let counted = |method: &str, path: &str| is_counted(&rules, "tollgate-rate-all", method, path);
    for (method, path) in [
        ("POST", "/webhooks/payments"),
        ("PUT", "/webhooks/payments?retry=1"),
        ("GET", "/files/a.b-c_d~1"),
        ("PATCH", "/public/css/x.css"),
    ] {
        assert!(!counted(method, path), "{method} {path}");
    }
    for (method, path) in [
        ("GET", "/webhooks/payments"),
        ("post", "/webhooks/payments"),
        ("POST", "/webhooks/payments/"),
        ("POST", "/webhooks/payments/../../api/auth/login"),
        ("POST", "/webhooks/payments/..;/..;/api/auth/login"),
        ("POST", "/Webhooks/payments"),
        ("POST", "//webhooks/payments"),
        ("POST", "/webhooks/payments;x"),
        ("POST", "/webhooks/payment%73"),
        ("POST", "/webhooks/payments%2f..%2f..%2fapi"),
        ("GET", "/files/"),
        ("GET", "/files/.."),
        ("GET", "/files/..;x"),
        ("GET", "/files/%2e%2e%2fapi"),
        ("GET", "/files/a/b"),
        ("GET", "/files/a\\..\\..\\api"),
        ("GET", "/public/../api/auth"),
        ("GET", "/public/a/%2e%2e/x"),
        ("GET", "/public/.."),
        ("GET", "/public/a/..;/x"),
    ] {
        assert!(counted(method, path), "{method} {path}");
    }
}

#[test]
fn no_spelling_stretches_an_exemption() {
    let mut rng = Rng::with_seed(54);
    let text = edge(EXEMPT);
    let policy = Policy::parse(&text).unwrap().policy;
    let rules: Vec<Rules> = Assumptions::ALL.map(|assumptions| rules(&text).assuming(assumptions)).into();
    let mut exempt = 0;
    for _ in 0..MANY {
        let start = pick(
            &mut rng,
            &["/webhooks/payments", "/files/x", "/files", "/public/a", "/public", "/%77ebhooks/payments", "/PUBLIC/x"],
        );
        let mut path = start.to_owned();
        for _ in 0..rng.u8(0..4) {
            path += &if rng.bool() { noise(&mut rng) } else { format!("/{}", pick(&mut rng, &["a", "b.css", "1~2"])) };
        }
        let method = pick(&mut rng, &["GET", "POST", "PUT", "DELETE"]);
        for rules in &rules {
            if is_counted(rules, "tollgate-rate-all", method, &path) {
                continue;
            }
            exempt += 1;
            assert!(policy.exemption(method, &path).is_some(), "{method} {path} is counted by the application");
            // However an origin reads it, it stays below where it seems to be.
            let below: Vec<&str> = path.split('/').skip(1).take(1).collect();
            for origin in origins::ALL {
                assert!(routes_to(origin, &path, &below), "{method} {path}\n{}", origin.0);
            }
        }
    }
    assert!(exempt > 1000, "{exempt}");
}
