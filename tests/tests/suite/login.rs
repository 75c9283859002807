//! Logins under the sample policy: guessers lock an account, and its owner still gets in by a device that is known.

use crate::dev::Dev;
use crate::harness::{json, run_at_root, stderr};
use serde_json::{Value, json};

const PASSWORD: &str = "correct horse";
const QUARTER_MS: u64 = 15 * 60_000;

/// Status, head and body of a login from an address, with lines of headers.
fn attempt(dev: &Dev, from: &str, headers: &str, body: &str) -> (u16, String, Value) {
    dev.ask_with("POST", "/api/auth/login", &format!("x-dev-source-ip: {from}\r\n{headers}"), body)
}

fn login(dev: &Dev, from: &str, cookie: Option<&str>, account: &str, password: &str) -> (u16, String, Value) {
    let cookie = cookie.map(|cookie| format!("cookie: {cookie}\r\n")).unwrap_or_default();
    attempt(dev, from, &cookie, &json!({ "username": account, "password": password }).to_string())
}

/// The cookie of a device on which the owner of `account` has signed in, once that has left no trace in any bucket.
fn known_device(dev: &Dev, account: &str) -> String {
    let mut answer = Vec::new();
    let body = json!({ "username": account, "password": PASSWORD }).to_string();
    // As it was sent: the harness lowers the case of a head, and a token has both.
    let mut stream = std::net::TcpStream::connect(dev.addr()).unwrap();
    let length = body.len();
    std::io::Write::write_all(
        &mut stream,
        format!(
            "POST /api/auth/login HTTP/1.1\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}"
        )
        .as_bytes(),
    )
    .unwrap();
    std::io::Read::read_to_end(&mut stream, &mut answer).unwrap();
    let answer = String::from_utf8(answer).unwrap();
    assert!(answer.starts_with("HTTP/1.1 200 ") && answer.contains(r#"{"authenticated":true}"#), "{answer}");
    assert!(answer.contains("cache-control: no-store"), "{answer}");
    let set = answer.lines().find_map(|line| line.strip_prefix("set-cookie: ")).expect("a cookie");
    let (cookie, attributes) = set.split_once("; ").unwrap();
    assert_eq!(attributes, "Max-Age=7776000; Path=/; Secure; HttpOnly; SameSite=Strict");
    dev.advance_ms(QUARTER_MS);
    cookie.to_owned()
}

fn tried(dev: &Dev) -> u64 {
    dev.stats()["passwords_tried"].as_u64().unwrap()
}

/// Five wrong passwords, each from another address.
fn lock(dev: &Dev, account: &str) {
    for i in 1..=5 {
        let (status, _, body) = login(dev, &format!("198.51.100.{i}"), None, account, "battery staple");
        assert_eq!((status, &body["error"]), (401, &"wrong_credentials".into()));
    }
}

#[test]
fn strangers_lock_an_account_and_its_owner_gets_in_by_a_known_device() {
    let dev = Dev::start(&["--clock", "manual"]);
    let (mine, eves) = (known_device(&dev, "Admin@x.org"), known_device(&dev, "eve@x.org"));
    let before = tried(&dev);
    lock(&dev, "admin@x.org");
    let locked = |cookie: Option<&str>, password: &str| {
        let (status, head, body) = login(&dev, "203.0.113.7", cookie, "ADMIN@x.org", password);
        assert_eq!(status, 429, "{cookie:?}: {head}");
        assert!(
            head.contains("retry-after: 900") && !head.contains("ratelimit") && !head.contains("set-cookie"),
            "{head}"
        );
        let told = body.to_string();
        assert!(["login", "15min", "violated", "scope", "\"limit\""].iter().all(|name| !told.contains(name)), "{told}");
    };
    locked(None, "battery staple");
    locked(None, PASSWORD);
    assert_eq!(tried(&dev) - before, 5, "what is refused is not tried");
    let forged = [
        format!("{mine}A"),
        mine.replacen("dev.", "k1.", 1),
        mine.replacen("tollgate-device", "tollgate-Device", 1),
        mine.replacen("AAAA", "AAAB", 1),
        eves.clone(),
        "tollgate-device=".to_owned(),
    ];
    for cookie in &forged {
        locked(Some(cookie), PASSWORD);
    }
    let enter = |cookie: &str| login(&dev, "203.0.113.7", Some(cookie), "admin@X.org", PASSWORD).0;
    assert_eq!(enter(&mine), 200);
    assert_eq!(enter(&format!("a=b; {eves}; {mine}; c=d")), 200, "what a subdomain has planted is no hindrance");
    assert_eq!(enter(&format!("x=\u{e9}; {mine}")), 200, "nor is a cookie that is no ASCII");
    let two_lines = format!("cookie: {eves}\r\ncookie: {mine}\r\n");
    let body = json!({ "username": "admin@x.org", "password": PASSWORD }).to_string();
    assert_eq!(attempt(&dev, "203.0.113.7", &two_lines, &body).0, 200);
    locked(None, PASSWORD);
}

#[test]
fn a_known_device_has_as_many_tries_as_an_account_and_leaves_others_theirs() {
    let dev = Dev::start(&["--clock", "manual"]);
    let mine = known_device(&dev, "a@x.org");
    let wrong = |cookie| login(&dev, "203.0.113.7", cookie, "a@x.org", "battery staple").0;
    assert_eq!([(); 7].map(|()| wrong(Some(&mine))), [401, 401, 401, 401, 401, 429, 429]);
    assert_eq!(wrong(None), 401, "the account has not been tried by a stranger yet");
}

#[test]
fn a_device_is_a_stranger_again_when_its_token_has_expired() {
    let dev = Dev::start(&["--clock", "manual"]);
    let mine = known_device(&dev, "a@x.org");
    dev.advance_ms(90 * 86_400_000 - QUARTER_MS - 1000);
    lock(&dev, "a@x.org");
    assert_eq!(login(&dev, "203.0.113.7", Some(&mine), "a@x.org", PASSWORD).0, 200);
    dev.advance_ms(1000);
    assert_eq!(login(&dev, "203.0.113.7", Some(&mine), "a@x.org", PASSWORD).0, 429);
}

#[test]
fn one_address_has_thirty_tries_whatever_accounts_it_guesses_at() {
    let dev = Dev::start(&["--clock", "manual"]);
    let guess = |i: usize| login(&dev, "203.0.113.7", None, &format!("user{i}@x.org"), "battery staple").0;
    assert_eq!((0..40).filter(|i| guess(*i) == 401).count(), 30);
    assert_eq!(login(&dev, "203.0.113.8", None, "user40@x.org", "battery staple").0, 401);
}

#[test]
fn the_right_password_clears_what_failed_before_it_but_not_for_the_address() {
    let dev = Dev::start(&["--clock", "manual"]);
    let wrong = |account: &str| login(&dev, "203.0.113.7", None, account, "battery staple").0;
    for round in 0..7 {
        assert_eq!([(); 4].map(|()| wrong("a@x.org")), [401; 4], "{round}");
        assert_eq!(login(&dev, "203.0.113.7", None, "a@x.org", PASSWORD).0, 200, "{round}");
    }
    // 28 of the address's 30 tries have failed: an account of one's own does not clear those on others.
    let eve = || login(&dev, "203.0.113.7", None, "eve@x.org", PASSWORD).0;
    assert_eq!([wrong("b@x.org"), eve(), wrong("c@x.org"), eve(), wrong("d@x.org")], [401, 200, 401, 429, 429]);
}

/// What comes of logins at once; `from` gives the address of each.
fn at_once(
    dev: &Dev,
    n: usize,
    from: impl Fn(usize) -> String + Sync,
    account: impl Fn(usize) -> String + Sync,
    password: &str,
) -> Vec<u16> {
    let mut statuses: Vec<u16> = std::thread::scope(|scope| {
        let (from, account) = (&from, &account);
        let calls: Vec<_> =
            (0..n).map(|i| scope.spawn(move || login(dev, &from(i), None, &account(i), password).0)).collect();
        calls.into_iter().map(|call| call.join().unwrap()).collect()
    });
    statuses.sort_unstable();
    statuses
}

/// Reserved before it is tried: what is under way counts. From one address the limits of account and of both have room for five
/// each, and must not choose different ones.
#[test]
fn fifty_wrong_passwords_at_once_are_tried_five_times() {
    let dev = Dev::start(&["--clock", "manual"]);
    for round in 0..6 {
        let before = tried(&dev);
        let from = |i| format!("198.51.{round}.{}", if round % 2 == 0 { 1 } else { i });
        let statuses = at_once(&dev, 50, from, |_| format!("user{round}@x.org"), "battery staple");
        assert_eq!((&statuses[..5], &statuses[5..]), (&[401; 5][..], &[429; 45][..]), "{round}");
        assert_eq!(tried(&dev) - before, 5);
    }
}

/// What succeeds takes nothing of what all strangers have together, however many come at once.
#[test]
fn right_passwords_at_once_leave_everybody_elses_tries_alone() {
    let dev = Dev::start(&["--clock", "manual"]);
    let address = |i| format!("198.51.100.{i}");
    let statuses = at_once(&dev, 60, address, |i| format!("user{i}@x.org"), PASSWORD);
    assert_eq!(statuses, [200; 60]);
    assert_eq!(dev.stats()["settlements_lost"], 0);
    let left = dev.decide(&json!({ "limit": "login-everyone", "key": { "everyone": "all" }, "cost": 0 })).1;
    assert_eq!(left["remaining"], 1000);
}

/// Whoever has had the password once cannot guess the next one from as many devices as he has made known.
#[test]
fn known_devices_of_an_account_have_so_many_tries_together_and_none_is_given_a_second_token() {
    let dev = Dev::start(&["--clock", "manual"]);
    let devices: Vec<_> = (0..12).map(|_| known_device(&dev, "a@x.org")).collect();
    let again = login(&dev, "203.0.113.7", Some(&devices[0]), "a@x.org", PASSWORD);
    assert!(again.0 == 200 && !again.1.contains("set-cookie"), "{}", again.1);
    let wrong = |cookie: &String| login(&dev, "203.0.113.7", Some(cookie), "a@x.org", "battery staple").0;
    let tried: usize = devices.iter().map(|cookie| (0..6).filter(|_| wrong(cookie) == 401).count()).sum();
    assert_eq!(tried, 50);
}

/// One password on many accounts, from many addresses: all strangers together have so many tries, and a known device its own.
#[test]
fn one_password_sprayed_over_many_accounts_from_many_addresses_stops_and_known_devices_get_in() {
    let sample = std::fs::read_to_string(format!("{}/../infra/tollgate.toml", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let policy = dir.path().join("policy.toml");
    std::fs::write(&policy, sample.replace("\"1000/15min\"", "\"20/15min\"")).unwrap();
    let dev = Dev::start(&["--clock", "manual", "--policy", policy.to_str().unwrap()]);
    let mine = known_device(&dev, "a@x.org");
    let spray = |i: usize| login(&dev, &format!("198.51.100.{i}"), None, &format!("user{i}@x.org"), "battery staple").0;
    assert_eq!((0..30).filter(|i| spray(*i) == 401).count(), 20);
    assert_eq!(login(&dev, "203.0.113.7", None, "b@x.org", PASSWORD).0, 429, "strangers wait");
    assert_eq!(login(&dev, "203.0.113.7", Some(&mine), "a@x.org", PASSWORD).0, 200);
}

#[test]
fn who_is_counted_is_who_is_tried_and_any_other_body_is_400() {
    let dev = Dev::start(&["--clock", "manual"]);
    let before = tried(&dev);
    let wrong = [
        "",
        "{}",
        "[]",
        r#"{"username":"a@x.org"}"#,
        r#"{"password":"correct horse"}"#,
        r#"{"username":" ","password":"correct horse"}"#,
        r#"{"username":"a@x.org","username":"b@x.org","password":"correct horse"}"#,
        r#"{"username":"a@x.org","Username":"b@x.org","password":"correct horse"}"#,
        r#"{"username":"a@x.org","password":["correct horse"]}"#,
        "username=a@x.org&username=b@x.org&password=correct+horse",
    ];
    let long = json!({ "username": "x".repeat(3000), "password": PASSWORD }).to_string();
    for (i, body) in wrong.into_iter().chain([long.as_str()]).enumerate() {
        let (status, _, answer) = attempt(&dev, &format!("198.51.100.{i}"), "", body);
        let says = answer["message"].as_str().unwrap_or_default();
        assert!(status == 400 && says.contains("username"), "{body}: {status} {answer}");
        // Whoever names no account shares one bucket with all who do not.
        dev.advance_ms(QUARTER_MS);
    }
    assert_eq!(tried(&dev), before);
    let form = attempt(&dev, "203.0.113.7", "", "username=a%40x.org&password=correct+horse");
    assert_eq!((form.0, form.2), (200, json!({ "authenticated": true })));
    assert_eq!(tried(&dev), before + 1);
    assert_eq!(dev.ask("GET", "/api/auth/login", "").0, 405);
}

#[test]
fn operators_name_a_device_and_everyone_and_so_does_json() {
    let dev = Dev::start(&["--clock", "manual"]);
    let mine = known_device(&dev, "a@x.org");
    let stats = dev.stats();
    let endpoint = stats["dynamodb_endpoint"].as_str().unwrap();
    let tool = |args: &[&str]| json(&run_at_root(&[args, &["--endpoint-url", endpoint, "--json"]].concat()));
    let header = format!("Cookie: {mine}");
    let body = json!({ "username": "A@x.org", "password": PASSWORD }).to_string();
    for gateway in ["http", "rest", "url", "alb", "none"] {
        let explain = |header: &str| {
            let what =
                ["explain", "--method", "POST", "--path", "/api/auth/login", "--body", &body, "--header", header];
            let by = ["--gateway", gateway, "--source-ip", "203.0.113.7", "--json"];
            json(&run_at_root(&[&what[..], &by].concat()))
        };
        // The command goes by the time that it is, and the server's clock is a quarter of an hour ahead.
        let keys = |explained: &Value| {
            let charges = explained["charges"].as_array().unwrap().iter();
            charges.map(|charge| charge["key"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
        };
        let known = keys(&explain(&header));
        assert!(
            known[0].starts_with("device:") && known[1].ends_with(&format!(",{}", known[0])),
            "{gateway}: {known:?}"
        );
        assert!(known[3].starts_with("account:"), "all known devices of an account: {known:?}");
        assert_eq!([&known[2], &known[4]], [&known[0], &known[0]]);
        let stranger = explain("Cookie: tollgate-device=dev.x");
        let strangers = keys(&stranger);
        assert_eq!([&strangers[2], &strangers[4]], ["client_ip:203.0.113.7", "everyone:all"]);
        let device = &stranger["dimensions"][0];
        assert_eq!(
            (&device["name"], &device["value"], &device["from"]),
            (&"device".into(), &Value::Null, &"cookie.tollgate-device".into())
        );
    }
    assert_eq!(login(&dev, "203.0.113.7", Some(&mine), "a@x.org", PASSWORD).0, 200);
    let explained = json(&run_at_root(&[
        "explain",
        "--method",
        "POST",
        "--path",
        "/api/auth/login",
        "--body",
        &body,
        "--header",
        &header,
        "--json",
    ]));
    let key = explained["charges"][0]["key"].as_str().unwrap().to_owned();
    let left =
        |key: Value| dev.decide(&json!({ "limit": "login-everyone", "key": key, "cost": 0 })).1["remaining"].clone();
    assert_eq!(left(json!({ "device": key.strip_prefix("device:").unwrap() })), 1000, "a success does not count");
    assert_eq!(tool(&["ban", &key])["key"], *key);
    assert_eq!(login(&dev, "203.0.113.7", Some(&mine), "a@x.org", PASSWORD).0, 429);
    assert_eq!(login(&dev, "203.0.113.7", None, "a@x.org", PASSWORD).0, 200, "a stranger is not banned");
    tool(&["allow", &key]);
    assert_eq!((left(json!({ "everyone": "me" })), left(json!({ "everyone": "all" }))), (1000.into(), 1000.into()));
    for spelling in ["everyone:all", "everyone:whoever"] {
        assert_eq!(tool(&["inspect", spelling])["key"], "everyone:all");
    }
    // The table tells its time in whole seconds, so the tools know it to within one.
    dev.advance_ms(1000);
    assert_eq!(tool(&["inspect", &key])["limits"]["login-account"]["remaining"], 5);
}

/// Keys that are made under another secret than the table's are nobody's, so it must be known whose table it is.
#[test]
fn the_development_secret_is_for_tables_that_the_server_has_created_itself() {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let embedded = runtime.block_on(tollgate_cli::embedded::Embedded::start(None)).unwrap();
    let at = ["--endpoint-url", embedded.endpoint()];
    for _ in 0..2 {
        let dev = Dev::start(&at);
        assert_eq!(
            login(&dev, "203.0.113.7", None, "a@x.org", PASSWORD).0,
            200,
            "the first server's table is the second's"
        );
    }
    let other = [&at[..], &["--table", "other"]].concat();
    assert!(run_at_root(&[&["table", "create"][..], &other].concat()).status.success());
    for command in [&["dev", "--addr", "127.0.0.1:0"][..], &["inspect", "account:a@x.org"]] {
        let refused = run_at_root(&[command, &other].concat());
        let says = stderr(&refused);
        assert!(refused.status.code() == Some(1) && says.contains("TOLLGATE_KEY_SECRETS"), "{command:?}: {says}");
    }
}

#[test]
fn explain_tells_what_counts() {
    let at_login = ["explain", "--method", "POST", "--path", "/api/auth/login", "--body", r#"{"username":"a@x.org"}"#];
    let told = crate::harness::stdout(&run_at_root(&[&at_login[..], &["--source-ip", "203.0.113.7"]].concat()));
    for says in [
        "5/15min, sliding-log, failures only, and a success clears them",
        "30/15min, sliding-window, failures only, closed",
    ] {
        assert!(told.contains(says), "{says}: {told}");
    }
    let policy = crate::holds::policy(
        "version = 1\n[limits.a]\nkey = ['user']\nrate = '10/h'\ndebt = 5\nrefund_on = '5xx'\n[[routes]]\nmatch = 'GET /'\n\
         charge = [{ limit = 'a', cost = 2, settle_within = '1min' }]\n",
    );
    let explained = run_at_root(&[
        "explain",
        "--method",
        "GET",
        "--path",
        "/",
        "--user",
        "a",
        "--policy",
        policy.path().to_str().unwrap(),
        "--json",
    ]);
    let charge = &json(&explained)["charges"][0];
    assert_eq!(
        (&charge["debt"], &charge["refund_on"], &charge["settle_within_ms"]),
        (&5.into(), &"5xx".into(), &60_000.into())
    );
}
