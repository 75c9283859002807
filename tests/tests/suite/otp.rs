//! One-time codes as clients see them: `POST /api/auth/otp/send` and `/verify` of a running server.

use crate::dev::{Dev, cookie};
use crate::harness::{repository, tollgate};
use serde_json::{Value, json};
use std::io::Write;
use std::process::Stdio;
use std::time::Instant;

const ALICE: &str = "user=alice,tenant=acme";
const OLD: &str = "k1=AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8";
const NEW: &str = "k2=__79_Pv6-fj39vX08_Lx8O_u7ezr6uno5-bl5OPi4eA";

fn principal(who: &str, from: &str) -> String {
    format!("x-dev-principal: {who}\r\nx-dev-source-ip: {from}\r\n")
}

fn send_from(dev: &Dev, who: &str, from: &str) -> (u16, String, Value) {
    dev.ask_with("POST", "/api/auth/otp/send", &principal(who, from), r#"{"purpose":"login"}"#)
}

fn send(dev: &Dev, who: &str) -> (u16, String, Value) {
    send_from(dev, who, "203.0.113.7")
}

/// The challenge of a code that is sent.
fn challenge(dev: &Dev, who: &str) -> String {
    let (status, head, body) = send(dev, who);
    assert_eq!(status, 202, "{head}");
    body["challenge"].as_str().unwrap().to_owned()
}

fn outbox(dev: &Dev) -> Vec<Value> {
    dev.ask("GET", "/dev/outbox", "").2.as_array().unwrap().clone()
}

/// The code of the last message.
fn code(dev: &Dev) -> String {
    outbox(dev).last().unwrap()["code"].as_str().unwrap().to_owned()
}

fn wrong(code: &str) -> String {
    format!("{:06}", (code.parse::<u32>().unwrap() + 1) % 1_000_000)
}

fn types(dev: &Dev, who: &str, challenge: &str, purpose: &str, code: &Value) -> (u16, Value) {
    let body = json!({ "challenge": challenge, "purpose": purpose, "code": code }).to_string();
    let (status, _, body) = dev.ask_with("POST", "/api/auth/otp/verify", &principal(who, "203.0.113.7"), &body);
    (status, body)
}

fn verify(dev: &Dev, who: &str, challenge: &str, code: &str) -> (u16, Value) {
    types(dev, who, challenge, "login", &code.into())
}

/// Round trips and write units of what is done, but for the reads of who is suspected: one a second in a process, whoever asks.
fn costs<T>(dev: &Dev, what: impl FnOnce() -> T) -> (T, u64, u64) {
    let figures = |stats: &Value| {
        let of = |name: &str| stats[name].as_u64().unwrap();
        (of("round_trips") - of("read_units"), of("write_units"))
    };
    let before = figures(&dev.stats());
    let done = what();
    let after = figures(&dev.stats());
    (done, after.0 - before.0, after.1 - before.1)
}

fn file(suffix: &str, text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::Builder::new().suffix(suffix).tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

/// A server of these profiles, under a policy if it is given.
fn with_profiles(profiles: &Value, policy: Option<&str>) -> (Dev, Vec<tempfile::NamedTempFile>) {
    let mut files = vec![file(".json", &profiles.to_string())];
    files.extend(policy.map(|text| file(".toml", text)));
    let path = |i: usize| files[i].path().to_str().unwrap();
    let mut args = vec!["--clock", "manual", "--profiles", path(0)];
    if policy.is_some() {
        args.extend(["--policy", path(1)]);
    }
    (Dev::start(&args), files)
}

fn verified(phone: &str) -> Value {
    json!({ "phone": phone, "verified": true })
}

#[test]
fn a_code_goes_to_the_verified_number_and_verifies_once() {
    let dev = Dev::start(&["--clock", "manual"]);
    // Whatever a request says of where to.
    let body = r#"{"purpose":"login","to":"+40700000000","phone":"+40700000000","destination":"+40700000000"}"#;
    let headers = principal(ALICE, "203.0.113.7") + "x-phone: +40700000000\r\n";
    let ((status, head, body), round_trips, units) =
        costs(&dev, || dev.ask_with("POST", "/api/auth/otp/send", &headers, body));
    assert_eq!((status, &body["expires_in"], &body["resend_after"]), (202, &300.into(), &60.into()), "{head}");
    assert!(head.contains("cache-control: no-store"), "{head}");
    // The account's item, the limits of seven items at once, and the count of messages.
    assert_eq!((round_trips, units), (9, 9));
    let challenge = body["challenge"].as_str().unwrap();
    let messages = outbox(&dev);
    let [message] = &messages[..] else { panic!("{messages:?}") };
    let code = message["code"].as_str().unwrap();
    assert_eq!(message["to"], "+40721234567");
    assert!(code.len() == 6 && message["body"].as_str().unwrap().contains(code), "{message}");
    let ((status, body), round_trips, units) = costs(&dev, || verify(&dev, ALICE, challenge, &wrong(code)));
    assert_eq!((status, &body["error"], &body["attempts_left"]), (401, &"wrong_code".into(), &4.into()));
    assert_eq!((round_trips, units), (1, 1));
    let (said, round_trips, units) = costs(&dev, || verify(&dev, ALICE, challenge, code));
    assert_eq!(said, (200, json!({ "verified": true })));
    // That somebody wanted the message is counted later, together with others.
    assert_eq!((round_trips, units), (2, 2));
    let (status, body) = verify(&dev, ALICE, challenge, code);
    assert_eq!((status, &body["error"]), (410, &"no_active_otp".into()));
}

#[test]
fn nobody_is_sent_a_code_before_he_has_signed_in() {
    let dev = Dev::start(&[]);
    let ((), round_trips, _) = costs(&dev, || {
        for (path, body) in [
            ("/api/auth/otp/send", r#"{"purpose":"login"}"#),
            ("/api/auth/otp/send", r#"{"purpose":"login","user":"alice","sub":"alice"}"#),
            ("/api/auth/otp/verify", r#"{"challenge":"x","purpose":"login","code":"012345"}"#),
        ] {
            let (status, head, body) = dev.ask("POST", path, body);
            assert_eq!((status, &body["error"]), (401, &"unauthenticated".into()));
            assert!(head.contains("www-authenticate: bearer"), "{head}");
        }
    });
    assert_eq!(round_trips, 0);
    assert!(outbox(&dev).is_empty());
}

#[test]
fn what_asks_for_no_code_is_told_what_to_write() {
    let dev = Dev::start(&[]);
    let ask = |method: &str, path: &str, body: &str| {
        let (status, _, body) = dev.ask_with(method, path, &principal(ALICE, "203.0.113.7"), body);
        (status, body["message"].as_str().unwrap_or_default().to_owned())
    };
    for body in ["", "{}", "[]", r#"{"purpose":5}"#, "purpose=login"] {
        let (status, message) = ask("POST", "/api/auth/otp/send", body);
        assert!(status == 400 && message.contains(r#"{"purpose":"login"}"#), "{body}: {message}");
    }
    let (status, message) = ask("POST", "/api/auth/otp/send", r#"{"purpose":"log-in"}"#);
    assert!(status == 400 && message.contains("did you mean `login`?"), "{message}");
    assert_eq!(ask("POST", "/api/auth/otp/verify", r#"{"purpose":"login"}"#).0, 400);
    assert_eq!(ask("GET", "/api/auth/otp/send", "").0, 405);
    assert_eq!(dev.ask("OPTIONS", "/api/auth/otp/send", "").0, 204);
}

#[test]
fn the_next_code_waits_longer_each_time_and_takes_the_place_of_the_last() {
    let dev = Dev::start(&["--clock", "manual"]);
    let first = (challenge(&dev, ALICE), code(&dev));
    let (status, head, body) = send(&dev, ALICE);
    assert_eq!((status, &body["error"], &body["retryAfter"]), (429, &"cooldown".into(), &60.into()));
    assert!(head.contains("retry-after: 60"), "{head}");
    dev.advance_ms(59_999);
    let ((status, ..), _, units) = costs(&dev, || send(&dev, ALICE));
    assert_eq!((status, units), (429, 1), "who asks too often uses up nothing of anybody's limits");
    dev.advance_ms(1);
    let (status, _, body) = send(&dev, ALICE);
    assert_eq!((status, &body["resend_after"]), (202, &120.into()));
    // rollupid#1973
    assert_eq!(verify(&dev, ALICE, &first.0, &first.1).0, 410);
    assert_eq!(verify(&dev, ALICE, body["challenge"].as_str().unwrap(), &code(&dev)).0, 200);
}

#[test]
fn five_wrong_codes_lock_a_code_and_ten_an_account() {
    // dcms#50
    let dev = Dev::start(&["--clock", "manual"]);
    for _ in 0..2 {
        let challenge = challenge(&dev, ALICE);
        let code = code(&dev);
        let said: Vec<_> = (0..5).map(|_| verify(&dev, ALICE, &challenge, &wrong(&code)).0).collect();
        assert_eq!(said, [401; 5]);
        let (status, body) = verify(&dev, ALICE, &challenge, &code);
        assert_eq!((status, &body["error"]), (429, &"locked".into()), "the right one comes too late");
        dev.advance_ms(120_000);
    }
    let (status, _, body) = send(&dev, ALICE);
    assert_eq!((status, &body["error"]), (429, &"locked".into()));
    assert_eq!(send(&dev, "user=bob,tenant=acme").0, 202, "others are sent theirs");
    assert_eq!(send(&dev, "user=alice,tenant=other").0, 202, "an account is one tenant's");
}

#[test]
fn what_is_no_code_is_refused_and_costs_no_attempt() {
    // GoogleAuth#37, commons-validator#380
    let dev = Dev::start(&["--clock", "manual"]);
    let (challenge, code) = (challenge(&dev, ALICE), code(&dev));
    let full_width: String = code.chars().map(|c| char::from_u32(u32::from(c) + 0xfee0).unwrap()).collect();
    let arabic: String = code.chars().map(|c| char::from_u32(u32::from(c) + 0x630).unwrap()).collect();
    let forms =
        [json!(code[1..]), json!(format!(" {code}")), json!(full_width), json!(arabic), json!(123_456), json!(null)];
    for form in forms {
        assert_eq!(types(&dev, ALICE, &challenge, "login", &form).0, 400, "{form}");
    }
    assert_eq!(verify(&dev, ALICE, &challenge, &wrong(&code)).1["attempts_left"], 4);
}

#[test]
fn another_users_or_purposes_code_is_none_and_costs_its_owner_no_attempt() {
    // django-rest-passwordreset#194
    let dev = Dev::start(&["--clock", "manual"]);
    let (challenge, code) = (challenge(&dev, ALICE), code(&dev));
    for _ in 0..6 {
        assert_eq!(verify(&dev, "user=bob,tenant=acme", &challenge, &code).0, 410);
        assert_eq!(verify(&dev, "user=alice,tenant=other", &challenge, &code).0, 410);
        for purpose in ["change-phone", "no-such"] {
            assert_eq!(types(&dev, ALICE, &challenge, purpose, &code.as_str().into()).0, 410);
        }
    }
    assert_eq!(verify(&dev, ALICE, &challenge, &wrong(&code)).1["attempts_left"], 4);
    assert_eq!(verify(&dev, ALICE, &challenge, &code).0, 200);
}

/// What the servers say to so many at once, spread over them.
fn at_once(servers: &[Dev], n: usize, challenge: &str, code: &str) -> Vec<u16> {
    let mut statuses: Vec<u16> = std::thread::scope(|scope| {
        let calls: Vec<_> = (0..n)
            .map(|i| scope.spawn(move || verify(&servers[i % servers.len()], ALICE, challenge, code).0))
            .collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    statuses.sort_unstable();
    statuses
}

/// So many servers on one table, as sandboxes of one function, under these secrets each.
fn servers(secrets: &[&str]) -> Vec<Dev> {
    let first = Dev::start_under(secrets[0], &[]);
    let stats = first.stats();
    let of = |name: &str| stats[name].as_str().unwrap().to_owned();
    let (endpoint, table) = (of("dynamodb_endpoint"), of("table"));
    let others =
        secrets[1..].iter().map(|secrets| Dev::start_under(secrets, &["--endpoint-url", &endpoint, "--table", &table]));
    let others: Vec<_> = others.collect();
    std::iter::once(first).chain(others).collect()
}

#[test]
fn of_fifty_right_codes_at_once_at_four_processes_one_is_verified() {
    // better-auth#8067
    let servers = servers(&[OLD; 4]);
    let (challenge, code) = (challenge(&servers[0], ALICE), code(&servers[0]));
    let statuses = at_once(&servers, 50, &challenge, &code);
    assert_eq!(statuses.iter().filter(|status| **status == 200).count(), 1, "{statuses:?}");
    assert!(statuses.iter().all(|status| [200, 410, 429].contains(status)), "{statuses:?}");
}

#[test]
fn of_fifty_wrong_codes_at_once_at_four_processes_five_are_counted() {
    // better-auth#8067
    let servers = servers(&[OLD; 4]);
    let (challenge, code) = (challenge(&servers[0], ALICE), code(&servers[0]));
    let statuses = at_once(&servers, 50, &challenge, &wrong(&code));
    assert_eq!(statuses, [vec![401; 5], vec![429; 45]].concat());
    assert_eq!(verify(&servers[1], ALICE, &challenge, &code).0, 429);
}

#[test]
fn codes_verify_while_their_secret_is_being_retired() {
    // blot#1856
    let both = format!("{NEW},{OLD}");
    let servers = servers(&[OLD, &both, NEW]);
    let (challenge, code) = (challenge(&servers[0], ALICE), code(&servers[0]));
    assert_eq!(verify(&servers[2], ALICE, &challenge, &code).0, 410, "nobody can compare without the secret");
    assert_eq!(verify(&servers[1], ALICE, &challenge, &code).0, 200);
}

#[test]
fn an_account_that_nothing_can_be_sent_to_is_answered_like_any_other() {
    // SkillsSphere#1484
    let dev = Dev::start(&["--clock", "manual"]);
    let shape = |head: &str| {
        let names = head.lines().skip(1).filter_map(|line| line.split(':').next()).map(str::to_owned);
        names.collect::<Vec<_>>()
    };
    let story = |who: &str| {
        let mut told = Vec::new();
        let ((status, head, body), round_trips, units) = costs(&dev, || send(&dev, who));
        told.push(json!([status, shape(&head), body["expires_in"], body["resend_after"], round_trips, units]));
        let challenge = body["challenge"].as_str().unwrap().to_owned();
        assert_eq!(challenge.len(), 22);
        let (status, head, body) = send(&dev, who);
        told.push(json!([status, shape(&head), body]));
        for _ in 0..6 {
            let ((status, body), round_trips, units) = costs(&dev, || verify(&dev, who, &challenge, "000000"));
            told.push(json!([status, body, round_trips, units]));
        }
        told
    };
    let known = story(ALICE);
    assert_eq!(story("user=nobody,tenant=acme"), known);
    assert_eq!(outbox(&dev).len(), 1, "nobody is sent nothing");
}

/// In so many pairs of calls each of the two must be the faster one at least in a quarter: by chance that fails once in a million times.
#[test]
fn an_account_that_nothing_can_be_sent_to_is_answered_in_the_same_time() {
    // SkillsSphere#1484
    const PAIRS: usize = 120;
    let dev = Dev::start(&[]);
    let of = |who: &str| (who.to_owned(), challenge(&dev, who));
    let (known, unknown) = (of(ALICE), of("user=nobody,tenant=acme"));
    let time = |(who, _): &(String, String), again: bool| {
        let begun = Instant::now();
        if again {
            assert_eq!(send(&dev, who).0, 429);
        } else {
            assert_eq!(verify(&dev, who, &"A".repeat(22), "000000").0, 410);
        }
        begun.elapsed()
    };
    for again in [true, false] {
        let mut faster = 0;
        for i in 0..PAIRS {
            // Whoever goes first is colder.
            let [known, unknown] = if i % 2 == 0 {
                let known = time(&known, again);
                [known, time(&unknown, again)]
            } else {
                let unknown = time(&unknown, again);
                [time(&known, again), unknown]
            };
            faster += usize::from(unknown < known);
        }
        assert!((PAIRS / 4..=PAIRS * 3 / 4).contains(&faster), "unknown is faster in {faster} of {PAIRS}");
    }
}

#[test]
fn numbers_that_cost_or_are_none_or_are_elsewhere_get_no_code() {
    let numbers = [
        ("premium", verified("+40906123456")),
        ("premium-us", verified("+19002345678")),
        ("satellite", verified("+882161234567")),
        ("shared-cost", verified("+491801234567")),
        ("short", verified("+4072123456")),
        ("national", verified("0721234567")),
        ("elsewhere", verified("+33612345678")),
        ("nothing", verified("")),
        ("unverified", json!({ "phone": "+40721234567", "verified": false })),
    ];
    let profiles: Value = numbers
        .iter()
        .map(|(user, profile)| ((*user).to_owned(), profile.clone()))
        .collect::<serde_json::Map<_, _>>()
        .into();
    let (dev, _files) = with_profiles(&profiles, None);
    for (user, _) in &numbers {
        assert_eq!(send(&dev, &format!("user={user}")).0, 202, "{user}");
    }
    assert_eq!(outbox(&dev), Vec::<Value>::new());
}

#[test]
fn one_number_has_one_budget_however_it_is_spelt() {
    // Truxify#1253
    let spellings = ["+40721234567", " +40 721 234 567 ", "0040721234567", "+40-721-234-567", "+40 (721) 234567"];
    let user = |i: usize| format!("u{i}");
    let profiles: serde_json::Map<_, _> = (0..9).map(|i| (user(i), verified(spellings[i % spellings.len()]))).collect();
    let (dev, _files) = with_profiles(&profiles.into(), None);
    let said: Vec<_> = (0..9).map(|i| send(&dev, &format!("user={}", user(i)))).collect();
    assert_eq!(said.iter().map(|(status, ..)| *status).collect::<Vec<_>>(), [vec![202; 8], vec![429]].concat());
    let (_, head, body) = &said[8];
    assert!(body["error"] == "rate_limited" && head.contains("retry-after: 450"), "{head}");
    assert!(!head.contains("ratelimit") && !body.to_string().contains("number"), "{head}{body}");
    assert!(outbox(&dev).iter().all(|message| message["to"] == "+40721234567") && outbox(&dev).len() == 8);
}

/// The sample's dimensions, and one limit of two sends by `key`.
fn by(key: &str) -> String {
    format!(
        "version = 1\n[identity]\nnumber = {{ from = 'context.otp.number', personal = true }}\nblock = 'context.otp.block'\n\
         country = 'context.otp.country'\nverified_device = {{ cookie = 'd', bound_to = 'user' }}\n\
         [otp]\npurposes = ['login']\ncountries = ['RO', 'VN']\n[limits.sends]\nkey = ['{key}']\nrate = '2/h'\n\
         [[routes]]\nmatch = 'POST /api/auth/otp/send'\ncharge = ['sends']\non_store_failure = 'closed'\n"
    )
}

#[test]
fn sends_are_counted_by_address_number_block_and_country() {
    let numbers = ["+40721234567", "+40721234568", "+40721234569", "+40721300000", "+84912345678"];
    let profiles: serde_json::Map<_, _> =
        numbers.iter().enumerate().map(|(i, number)| (format!("u{i}"), verified(number))).collect();
    let twice = |said: &[u16]| said == [202, 202, 429];
    for (key, same, other) in [
        ("client_ip", ["u0", "u3", "u4"], "u1"),
        ("verified_device ?? client_ip", ["u0", "u3", "u4"], "u1"),
        ("block", ["u0", "u1", "u2"], "u3"),
        ("country", ["u0", "u1", "u3"], "u4"),
    ] {
        let (dev, _files) = with_profiles(&profiles.clone().into(), Some(&by(key)));
        let by_address = key.contains("client_ip");
        let from = |i: usize| if by_address { "203.0.113.7".to_owned() } else { format!("203.0.113.{i}") };
        let said: Vec<_> =
            same.iter().enumerate().map(|(i, user)| send_from(&dev, &format!("user={user}"), &from(i)).0).collect();
        assert!(twice(&said), "{key}: {said:?}");
        assert_eq!(send_from(&dev, &format!("user={other}"), "198.51.100.1").0, 202, "{key}");
        // Nobody that nothing is sent to shares a block or a country, or he would be told apart.
        let nobodies: Vec<_> =
            (0..4).map(|i| send_from(&dev, &format!("user=nobody{i}"), &format!("192.0.2.{i}")).0).collect();
        assert_eq!(nobodies, [202; 4], "{key}");
    }
}

#[test]
fn a_device_on_which_a_code_was_verified_has_a_budget_of_its_own() {
    let (dev, _files) = with_profiles(
        &json!({ "alice": verified("+40721234567"), "bob": verified("+84912345678"), "carol": verified("+40721234568") }),
        Some(&by("verified_device ?? client_ip")),
    );
    let (challenge, code) = (challenge(&dev, "user=alice"), code(&dev));
    let body = json!({ "challenge": challenge, "purpose": "login", "code": code }).to_string();
    let answer = dev.answer("POST", "/api/auth/otp/verify", &principal("user=alice", "203.0.113.7"), &body);
    let cookie = cookie(&answer).expect("a cookie");
    assert_eq!((send(&dev, "user=bob").0, send(&dev, "user=carol").0), (202, 429), "the address has no more");
    dev.advance_ms(60_000);
    let by_device = |who: &str| {
        let headers = principal(who, "203.0.113.7") + &cookie;
        dev.ask_with("POST", "/api/auth/otp/send", &headers, r#"{"purpose":"login"}"#).0
    };
    assert_eq!(by_device("user=alice"), 202);
    dev.advance_ms(60_000);
    assert_eq!(by_device("user=carol"), 429, "it is alice's device");
}

#[test]
fn nothing_is_sent_or_verified_while_the_table_is_gone() {
    let dev = Dev::start(&[]);
    let (challenge, code) = (challenge(&dev, ALICE), code(&dev));
    for store in ["error", "pause"] {
        assert_eq!(dev.ask("POST", "/dev/faults", &json!({ "store": store }).to_string()).0, 200);
        let (status, head, body) = send(&dev, "user=bob,tenant=acme");
        assert_eq!((status, &body["error"]), (503, &"otp_unavailable".into()), "{store}");
        assert!(head.contains("retry-after: 1"), "{head}");
        assert_eq!(verify(&dev, ALICE, &challenge, &code).0, 503, "{store}");
    }
    assert_eq!(outbox(&dev).len(), 1);
}

#[test]
fn nothing_is_sent_that_no_limit_counts() {
    let without_route = "version = 1\n[otp]\npurposes = ['login']\ncountries = ['RO']\n";
    let (dev, _files) = with_profiles(&json!({ "alice": verified("+40721234567") }), Some(without_route));
    assert_eq!(send(&dev, ALICE).0, 503);
    assert!(outbox(&dev).is_empty());
    let (dev, _files) = with_profiles(&json!({}), Some("version = 1\n"));
    assert_eq!(send(&dev, ALICE).0, 404, "a policy without codes has no such path");
}

#[test]
fn forgetting_a_person_erases_what_is_kept_of_its_codes() {
    let dev = Dev::start(&[]);
    let (challenge, code) = (challenge(&dev, ALICE), code(&dev));
    let stats = dev.stats();
    let at = |name: &str| stats[name].as_str().unwrap().to_owned();
    let output = tollgate()
        .current_dir(repository("."))
        .args(["forget", "user:alice", "--endpoint-url", &at("dynamodb_endpoint"), "--table", &at("table")])
        .output()
        .unwrap();
    assert!(output.status.success(), "{output:?}");
    assert_eq!(verify(&dev, ALICE, &challenge, &code).0, 410);
}

#[test]
fn no_code_and_no_number_is_in_any_log_or_in_the_table() {
    let mut command = tollgate();
    command.env("RUST_LOG", "debug");
    let log = tempfile::NamedTempFile::new().unwrap();
    command.stderr(Stdio::from(log.reopen().unwrap()));
    let dev = Dev::spawn(command, &[]);
    let (challenge, code) = (challenge(&dev, ALICE), code(&dev));
    assert_eq!(verify(&dev, ALICE, &challenge, &wrong(&code)).0, 401);
    assert_eq!(verify(&dev, ALICE, &challenge, &code).0, 200);
    let endpoint = dev.stats()["dynamodb_endpoint"].as_str().unwrap().to_owned();
    let table = dev.stats()["table"].as_str().unwrap().to_owned();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let items = runtime.block_on(async {
        let client = crate::harness::raw(&endpoint);
        client.scan().table_name(table).send().await.unwrap().items.unwrap_or_default()
    });
    let stored = format!("{items:?}");
    assert!(stored.contains("1/otp/login/tenant:acme,user:alice"), "{stored}");
    assert_eq!(dev.ask("POST", "/dev/faults", r#"{"store":"error"}"#).0, 200);
    assert_eq!(send(&dev, "user=bob").0, 503);
    let logged = std::fs::read_to_string(log.path()).unwrap();
    assert!(logged.contains("no code is sent or verified"), "{logged}");
    for secret in [code.as_str(), "721234567", "912345678"] {
        assert!(!logged.contains(secret) && !stored.contains(secret), "{secret}");
    }
}
