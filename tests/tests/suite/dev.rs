//! The development server as its users see it: the command, its line, its routes, its clock.

use crate::harness::{json, repository, run, run_at_root, tollgate};
use serde_json::{Value, json};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Child, Stdio};

/// A running `tollgate dev`.
pub struct Dev {
    child: Child,
    addr: String,
}

impl Dev {
    pub fn start(args: &[&str]) -> Self {
        Self::spawn(tollgate(), args)
    }

    /// The same with secrets that personal values are hashed under.
    pub fn start_under(secrets: &str, args: &[&str]) -> Self {
        let mut command = tollgate();
        command.env("TOLLGATE_KEY_SECRETS", secrets);
        Self::spawn(command, args)
    }

    pub fn spawn(mut command: std::process::Command, args: &[&str]) -> Self {
        command.args(["dev", "--addr", "127.0.0.1:0"]).args(args);
        // From the root of the repository, where the sample policy is found by itself.
        command.current_dir(repository("."));
        let mut child = command.stdout(Stdio::piped()).spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let addr = line
            .split("http://")
            .nth(1)
            .and_then(|rest| rest.split_whitespace().next())
            .expect("an address")
            .to_owned();
        Self { child, addr }
    }

    /// Where it listens.
    pub fn addr(&self) -> &str {
        &self.addr
    }

    /// The address of a page, by the name that browsers give this machine: passkeys are of a name.
    pub fn local(&self, path: &str) -> String {
        format!("http://localhost:{}{path}", self.addr.rsplit(':').next().unwrap())
    }

    /// Status, headers and body.
    pub fn ask(&self, method: &str, path: &str, body: &str) -> (u16, String, Value) {
        self.ask_with(method, path, "", body)
    }

    /// The same with more header lines.
    pub fn ask_with(&self, method: &str, path: &str, headers: &str, body: &str) -> (u16, String, Value) {
        let answer = self.answer(method, path, headers, body);
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        let status = head.split_whitespace().nth(1).unwrap().parse().unwrap();
        (status, head.to_lowercase(), serde_json::from_str(body).unwrap_or(Value::Null))
    }

    /// The answer as it is.
    pub fn answer(&self, method: &str, path: &str, headers: &str, body: &str) -> String {
        let mut stream = TcpStream::connect(&self.addr).unwrap();
        let length = body.len();
        let host = if headers.starts_with("host:") { "" } else { "host: x\r\n" };
        let head = format!("{method} {path} HTTP/1.1\r\n{host}connection: close\r\n{headers}content-length: {length}");
        write!(stream, "{head}\r\n\r\n{body}").unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }

    pub fn decide(&self, body: &Value) -> (u16, Value) {
        let (status, _, body) = self.ask("POST", "/v1/decisions", &body.to_string());
        (status, body)
    }

    pub fn advance_ms(&self, ms: u64) {
        assert_eq!(self.ask("POST", "/dev/clock", &json!({ "advance_ms": ms }).to_string()).0, 200);
    }

    pub fn stats(&self) -> Value {
        self.ask("GET", "/dev/stats", "").2
    }
}

/// The header line with which a browser sends back the cookie that an answer sets, if it sets one.
pub fn cookie(answer: &str) -> Option<String> {
    let set = answer.lines().find_map(|line| line.strip_prefix("set-cookie: "))?;
    Some(format!("cookie: {}\r\n", set.split("; ").next()?))
}

impl Drop for Dev {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
#[cfg(unix)]
fn a_request_that_never_ends_does_not_keep_the_server_from_ending() {
    let mut dev = Dev::start(&[]);
    let mut half = TcpStream::connect(&dev.addr).unwrap();
    half.write_all(b"POST /v1/decisions HTTP/1.1\r\nhost: x\r\ncontent-length: 100\r\n\r\n{").unwrap();
    let pid = dev.child.id().to_string();
    assert!(std::process::Command::new("kill").args(["-INT", &pid]).status().unwrap().success());
    assert!(dev.child.wait().unwrap().success());
}

#[test]
fn fifty_orders_pass_the_sample_api_and_the_fifty_first_waits_72_seconds_to_the_millisecond() {
    let dev = Dev::start(&["--clock", "manual"]);
    let order = |user: &str| {
        let principal = format!("x-dev-principal: user={user},tenant=acme,plan=free\r\n");
        dev.ask_with("POST", "/api/orders", &principal, "{}")
    };
    for left in (0..50).rev() {
        let (status, head, _) = order("alice");
        assert!(status == 201 && head.contains(&format!("ratelimit: \"orders\";r={left};")), "{head}");
    }
    let (status, head, body) = order("alice");
    assert_eq!(status, 429);
    for line in [
        "retry-after: 72",
        "ratelimit: \"orders\";r=0;t=72",
        "ratelimit-policy: \"orders\";q=50;w=3600",
        "cache-control: no-store",
    ] {
        assert!(head.contains(line), "{line}: {head}");
    }
    assert_eq!(
        (&body["error"], &body["limit"], &body["retryAfter"]),
        (&"rate_limited".into(), &"orders".into(), &72.into())
    );
    assert_eq!((&body["upgradeUrl"], &body["scope"]), (&"/billing".into(), &json!(["user"])));
    dev.advance_ms(71_999);
    let (status, head, _) = order("alice");
    assert!(status == 429 && head.contains("retry-after: 1\r\n"), "{status} {head}");
    dev.advance_ms(1);
    assert_eq!(order("alice").0, 201);
    assert_eq!(order("bob").0, 201, "another user is untouched");
    let (_, _, body) =
        dev.ask_with("POST", "/api/orders", "x-dev-principal: user=alice\r\naccept-language: ro\r\n", "");
    assert!(body["message"].as_str().unwrap().starts_with("Planul"), "{body}");
}

#[test]
fn what_is_never_counted_is_not_and_partners_have_buckets_of_their_own() {
    let dev = Dev::start(&["--clock", "manual"]);
    let before = dev.stats();
    for _ in 0..100 {
        assert_eq!(dev.ask("GET", "/healthz", "").0, 200);
        assert_eq!(dev.ask("POST", "/webhooks/payments", "{}").0, 200);
        assert_eq!(dev.ask("OPTIONS", "/api/orders", "").0, 204);
    }
    assert_eq!(dev.stats()["round_trips"], before["round_trips"]);
    let items =
        |key: &str| dev.ask_with("GET", "/api/partner/items", &format!("x-dev-principal: api_key={key}\r\n"), "").0;
    let passed = (0..25).filter(|_| items("k1") == 200).count();
    assert_eq!((passed, items("k2")), (20, 200));
    let search = |ip: &str| dev.ask_with("GET", "/api/search", &format!("x-dev-source-ip: {ip}\r\n"), "").0;
    let passed = (0..25).filter(|i| search(&format!("2001:db8::{i:x}")) == 200).count();
    assert_eq!((passed, search("2001:db8:0:1::1")), (20, 200), "100 units at 5 each for one /64, and another /64");
    for header in ["host: a b", "host: [::1", "x-forwarded-proto: ht tp", "x-forwarded-proto:"] {
        assert_eq!(dev.ask_with("GET", "/api/search", &format!("{header}\r\n"), "").0, 400, "{header}");
    }
    let (status, _, body) = dev.ask_with("GET", "/api/search", "x-dev-principal: alice\r\n", "");
    assert!(status == 400 && body["message"].as_str().unwrap().contains("NAME=VALUE"), "{body}");
}

/// A policy whose logins are counted by account.
const ACCOUNTS: &str = "version = 1\n[identity]\naccount = { body = 'username', fold = 'email' }\n\
    client_ip = { trusted_hops = 1 }\n[limits.logins]\nkey = ['account']\nrate = '3/day'\n\
    [limits.searches]\nkey = ['client_ip']\nrate = '2/day'\n\
    [[routes]]\nmatch = 'POST /api/orders'\ncharge = ['logins']\n[[routes]]\nmatch = 'GET /api/search'\ncharge = ['searches']\n";

#[test]
fn accounts_are_one_whatever_their_case_and_an_operator_names_them_as_people_do() {
    let dir = tempfile::tempdir().unwrap();
    let policy = dir.path().join("policy.toml");
    std::fs::write(&policy, ACCOUNTS).unwrap();
    let policy = policy.to_str().unwrap();
    let dev = Dev::start(&["--clock", "manual", "--policy", policy]);
    let order = |name: &str| dev.ask("POST", "/api/orders", &json!({ "username": name }).to_string()).0;
    assert_eq!(["ADMIN@x.org", "admin@x.org", "Admin@X.org", "admin@x.org"].map(order), [201, 201, 201, 429]);
    assert_eq!(order("bob+x@example.com"), 201);
    let by_json = dev.decide(&json!({ "limit": "logins", "key": { "account": "aDmin@x.org" } })).1;
    assert_eq!((&by_json["allowed"], &by_json["remaining"]), (&false.into(), &0.into()));

    let stats = dev.stats();
    let (endpoint, table) = (stats["dynamodb_endpoint"].as_str().unwrap(), stats["table"].as_str().unwrap());
    let at = ["--endpoint-url", endpoint, "--table", table, "--policy", policy, "--json"];
    let tool = |command: &str, key: &str| run(&[&[command, key][..], &at].concat());
    let output = tool("inspect", "account:Admin@x.org");
    assert!(String::from_utf8_lossy(&output.stderr).contains("development secret"));
    let shown = json(&output);
    let key = shown["key"].as_str().unwrap();
    assert!(
        key.starts_with("account:dev.") && !output.stdout.windows(5).any(|w| w.eq_ignore_ascii_case(b"admin")),
        "{shown}"
    );
    assert_eq!(shown["limits"]["logins"]["remaining"], 0);
    assert_eq!(json(&tool("inspect", key))["raw"], shown["raw"], "as it was shown");
    assert_eq!(json(&tool("reset", "account:ADMIN@X.ORG"))["reset"], json!(["logins"]));
    // What a process has just seen empty it may deny for a second more.
    std::thread::sleep(tollgate::Limiter::<tollgate::DynamoStore>::DENIES_FOR);
    assert_eq!(order("admin@x.org"), 201);
    let explain = [
        "explain",
        "--policy",
        policy,
        "--method",
        "POST",
        "--path",
        "/api/orders",
        "--dimension",
        "account=ADMIN@x.org",
        "--json",
    ];
    assert_eq!(json(&run(&explain))["charges"][0]["key"], key);
}

#[test]
fn the_servers_gateway_appends_who_asked_it_as_the_real_one_does() {
    let dir = tempfile::tempdir().unwrap();
    let policy = dir.path().join("policy.toml");
    std::fs::write(&policy, ACCOUNTS).unwrap();
    let dev = Dev::start(&["--clock", "manual", "--policy", policy.to_str().unwrap()]);
    let search = |forged: &str, client: &str| {
        let headers =
            format!("x-dev-source-ip: 130.176.1.1\r\nx-forwarded-for: {forged}\r\nx-forwarded-for: {client}\r\n");
        dev.ask_with("GET", "/api/search", &headers, "").0
    };
    assert_eq!(
        [search("6.6.6.1", "203.0.113.9"), search("6.6.6.2", "203.0.113.9:80"), search("6.6.6.3", "203.0.113.9")],
        [200, 200, 429]
    );
    assert_eq!(search("6.6.6.1", "203.0.113.10"), 200);
    assert_eq!(dev.stats()["unproven_addresses"], 0);
    assert_eq!(dev.ask_with("GET", "/api/search", "x-dev-source-ip: 203.0.113.9\r\n", "").0, 200);
    assert_eq!(dev.stats()["unproven_addresses"], 1, "nobody stands in front of that one");
}

#[test]
fn secrets_come_from_the_environment_and_a_rotation_is_seen_under_both() {
    let dir = tempfile::tempdir().unwrap();
    let policy = dir.path().join("policy.toml");
    std::fs::write(&policy, ACCOUNTS).unwrap();
    let policy = policy.to_str().unwrap();
    let dev = Dev::start(&["--clock", "manual"]);
    let stats = dev.stats();
    let endpoint = stats["dynamodb_endpoint"].as_str().unwrap().to_owned();
    let inspect = |secrets: &str, endpoint: &str| {
        let mut command = tollgate();
        command.args(["inspect", "account:a@x.org", "--policy", policy, "--endpoint-url", endpoint, "--json"]);
        command.env("TOLLGATE_KEY_SECRETS", secrets).output().unwrap()
    };
    let (old, new) =
        ("k1=AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8", "k2=__79_Pv6-fj39vX08_Lx8O_u7ezr6uno5-bl5OPi4eA");
    let (before, both) = (json(&inspect(old, &endpoint)), json(&inspect(&format!("{new},{old}"), &endpoint)));
    assert!(both["key"].as_str().unwrap().starts_with("account:k2."));
    assert_eq!(both["retiring"][0]["key"], before["key"]);
    // What stands for it in logs is under the active one, as the functions have it.
    let reference = |shown: &Value| shown["key_ref"].as_str().unwrap().to_owned();
    assert!(reference(&before).starts_with("k1.") && reference(&both).starts_with("k2."));
    assert_ne!(reference(&both), reference(&both["retiring"][0]));
    for (secrets, says) in [("k1=sekret", "it is not"), ("", "TOLLGATE_KEY_SECRETS")] {
        let output = inspect(secrets, if secrets.is_empty() { "http://192.0.2.1:8000" } else { &endpoint });
        let text = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(1) && text.contains(says) && !text.contains("sekret"), "{text}");
    }
}

fn order(user: &str) -> Value {
    json!({ "limit": "orders", "key": { "user": user }, "plan": "free", "cost": 1 })
}

#[test]
fn fifty_orders_an_hour_to_the_millisecond() {
    let dev = Dev::start(&["--clock", "manual"]);
    let first = dev.decide(&order("alice"));
    let expected = json!({ "allowed": true, "limit": "orders", "remaining": 49, "retry_after_ms": 0, "reset_ms": 72_000, "source": "table" });
    assert_eq!(first, (200, expected));
    for left in (0..49).rev() {
        assert_eq!(dev.decide(&order("alice")).1["remaining"], left);
    }
    let denied = dev.decide(&order("alice"));
    let expected = json!({ "allowed": false, "limit": "orders", "remaining": 0, "retry_after_ms": 72_000, "reset_ms": 3_600_000, "source": "cache" });
    assert_eq!(denied, (200, expected), "the process has just seen that nothing is left");
    dev.advance_ms(71_999);
    assert_eq!(dev.decide(&order("alice")).1["retry_after_ms"], 1);
    dev.advance_ms(1);
    assert_eq!(dev.decide(&order("alice")).1["allowed"], true);
    assert_eq!(dev.decide(&order("bob")).1["remaining"], 49, "another user is untouched");
    let pro = json!({ "limit": "orders", "key": { "user": "carol" }, "plan": "pro" });
    assert_eq!(dev.decide(&pro).1["remaining"], 99);
}

#[test]
fn a_decision_is_one_round_trip_and_one_write_unit_and_a_known_denial_none() {
    let dev = Dev::start(&["--clock", "manual"]);
    let before = dev.stats();
    for _ in 0..60 {
        dev.decide(&order("alice"));
    }
    let after = dev.stats();
    let grew = |name: &str| after[name].as_u64().unwrap() - before[name].as_u64().unwrap();
    assert_eq!((grew("decisions"), grew("round_trips"), grew("write_units")), (60, 50, 50));
    assert_eq!((grew("allowed"), grew("denied")), (50, 10));
}

#[test]
fn an_array_on_more_items_than_a_decision_can_have_is_bad_input_and_asks_no_table() {
    let dev = Dev::start(&["--clock", "manual"]);
    let all = |n: usize| Value::Array((0..n).map(|i| order(&format!("u{i}"))).collect());
    assert_eq!(dev.decide(&all(tollgate_core::Charges::MOST_ITEMS)).0, 200);
    let before = dev.stats();
    for n in [26, 1000] {
        let (status, body) = dev.decide(&all(n));
        let says = body["message"].as_str().unwrap();
        assert!(status == 400 && says.contains("more than 25 items") && says.contains("split it"), "{status} {body}");
    }
    assert_eq!(dev.stats()["round_trips"], before["round_trips"]);
}

#[test]
fn an_array_is_one_all_or_nothing_decision() {
    let dev = Dev::start(&["--clock", "manual"]);
    let both = |cost: u64| json!([{ "limit": "orders", "key": { "user": "alice" } }, { "limit": "units", "key": { "user": "alice" }, "cost": cost }]);
    let (status, answers) = dev.decide(&both(60));
    assert_eq!((status, &answers[0]["remaining"], &answers[1]["remaining"]), (200, &49.into(), &40.into()));
    let (_, answers) = dev.decide(&both(60));
    assert_eq!((&answers[0]["allowed"], &answers[0]["retry_after_ms"]), (&false.into(), &0.into()), "not in the way");
    assert_eq!(answers[0]["remaining"], 49, "charged nowhere");
    assert_eq!((&answers[1]["allowed"], &answers[1]["retry_after_ms"]), (&false.into(), &2000.into()));
}

const SHADOWS: &str = "version = 1
[limits.orders]
key = ['user']
rate = '50/h'
[limits.trial]
key = ['user']
rate = '1/h'
mode = 'shadow'
[limits.tight]
key = ['user']
rate = '2/h'
";

/// The contract: what is in the way is what has a wait above 0, or never fits.
#[test]
fn a_limit_that_only_reports_is_never_in_the_way_and_tells_its_wait_apart() {
    let dir = tempfile::tempdir().unwrap();
    let policy = dir.path().join("policy.toml");
    std::fs::write(&policy, SHADOWS).unwrap();
    let dev = Dev::start(&["--clock", "manual", "--policy", policy.to_str().unwrap()]);
    let ask = |limit: &str, cost: u64| json!({ "limit": limit, "key": { "user": "alice" }, "cost": cost });
    let decide = |cost: u64| dev.decide(&json!([ask("orders", 1), ask("trial", cost), ask("tight", 1)])).1;
    let part = |answer: &Value| {
        let of = |name: &str| answer[name].clone();
        json!([of("allowed"), of("retry_after_ms"), of("never_fits"), of("shadow"), of("shadow_retry_after_ms")])
    };
    let told = |answers: &Value| answers.as_array().unwrap().iter().map(part).collect::<Vec<_>>();
    let (free, null) = (json!([true, 0, null, null, null]), Value::Null);
    assert_eq!(told(&decide(1)), [free.clone(), json!([true, 0, null, "allowed", null]), free.clone()]);
    assert_eq!(told(&decide(1)), [free.clone(), json!([true, 0, null, "denied", 3_600_000]), free.clone()]);
    let denied = told(&decide(1));
    let tight = json!([false, 1_800_000, null, null, null]);
    assert_eq!((&denied[0][1], &denied[1][1], &denied[2]), (&0.into(), &0.into(), &tight), "{denied:?}");
    dev.advance_ms(3_600_000);
    assert_eq!(told(&decide(2)), [free.clone(), json!([true, 0, null, "never_fits", null]), free]);
    let alone = dev.decide(&ask("trial", 2)).1;
    assert_eq!((&alone["allowed"], &alone["retry_after_ms"], &alone["never_fits"]), (&true.into(), &0.into(), &null));
}

/// It goes to logs as well, and a client that mixes names and values up sends an address there.
#[test]
fn a_name_that_the_decisions_do_not_know_is_not_repeated() {
    let dev = Dev::start(&[]);
    for body in [
        r#"{"limit":"orders","key":{"user":"a"},"eve@example.org":1}"#,
        r#"{"eve@example.org, expected one of `x`":1}"#,
        r#"[{"limit":"orders","key":{"user":"a"}},{"eve@example.org":1}]"#,
        r#"{"limit":"orders","key":"eve@example.org"}"#,
    ] {
        let (status, _, answer) = dev.ask("POST", "/v1/decisions", body);
        let message = answer["message"].as_str().unwrap();
        assert!(
            status == 400 && !message.contains("eve@") && message.contains("at line 1 column"),
            "{body}: {message}"
        );
    }
    // The same wherever a name or figure of the policy's belongs.
    let (key, eve) = (json!({ "user": "a" }), "eve@example.org");
    for body in [
        json!({ "limit": eve, "key": key }),
        json!({ "limit": "orders", "key": key, "plan": eve }),
        json!({ "limit": "orders", "key": { eve: "a" } }),
        json!({ "limit": "orders", "key": { "user": "a", eve: "" } }),
        json!({ "limit": "orders", "key": { "user": "a", "tenant": eve } }),
        json!({ "limit": "orders", "key": key, "cost": eve }),
        json!({ "limit": "orders", "key": key, "cost": { eve: 1 } }),
        json!({ "limit": "orders", "key": key, "cost": 40_722_123_456_u64 * 1000 }),
        json!({ "limit": "orders", "key": key, "cost": -40_722_123_456_i64 }),
    ] {
        let (status, answer) = dev.decide(&body);
        let message = answer["message"].as_str().unwrap();
        assert!(status == 400 && !message.contains("eve@") && !message.contains("40722"), "{body}: {message}");
    }
    let near = dev.decide(&json!({ "limit": "order", "key": key })).1;
    assert_eq!(near["message"], "unknown limit: did you mean `orders`?");
    let (_, answer) = dev.decide(&json!({ "limit": "orders", "key": {}, "costs": 1 }));
    let message = answer["message"].as_str().unwrap();
    assert!(message.contains("unknown field, expected one of `limit`, `key`, `plan`, `cost` at line"), "{message}");
}

/// rate-limiter-flexible, zae-limiter: costs of -5, NaN and 0.5; zae-limiter: the limit `rpmm`, of which there is none.
#[test]
fn bad_input_is_400_and_says_what_to_write() {
    let dev = Dev::start(&["--clock", "manual"]);
    let key = json!({ "user": "alice" });
    let cases = [
        (json!({ "limit": "rpmm", "key": key }), "unknown limit"),
        (json!({ "limit": "orders", "key": key, "cost": -5 }), "whole number from 0 to 1,000,000,000,000"),
        (json!({ "limit": "orders", "key": key, "cost": 0.5 }), "whole number"),
        (json!({ "limit": "orders", "key": key, "cost": "1" }), "whole number"),
        (json!({ "limit": "orders", "key": key, "cost": 18_446_744_073_709_551_615_u64 }), "1,000,000,000,000"),
        (json!({ "limit": "orders", "key": {} }), "user"),
        (json!({ "limit": "orders", "key": { "user": "" } }), "empty"),
        (
            json!({ "limit": "orders", "key": { "tenant": "acme" } }),
            "not counted by one of the dimensions that are given; its key is: user",
        ),
        (json!({ "limit": "orders", "key": { "user": "k".repeat(3000) } }), "2048"),
        (json!({ "limit": "orders", "key": key, "plan": "gold" }), "unknown plan"),
        (json!({ "limit": "orders", "key": key, "costs": 1 }), "unknown field"),
        (json!([]), "empty"),
        (json!([order("a"), order("a")]), "twice"),
        (json!(7), "write {"),
        (json!([["orders", { "user": "alice" }, "free", 1]]), "wrong type"),
        (json!({ "limit": "orders", "key": "alice@example.org" }), "has the wrong type"),
    ];
    let before = dev.stats();
    for (body, says) in cases {
        let (status, answer) = dev.decide(&body);
        let message = answer["message"].as_str().unwrap_or_default();
        assert!(
            status == 400 && answer["error"] == "bad_request" && message.contains(says),
            "{body}: {status} {answer}"
        );
    }
    let (status, _, answer) = dev.ask("POST", "/v1/decisions", r#"{"limit":"orders","cost":NaN}"#);
    assert!(status == 400 && answer["message"].as_str().unwrap().contains("not JSON"), "{answer}");
    assert_eq!(dev.stats()["round_trips"], before["round_trips"], "all refused before any I/O");
    let never = dev.decide(&json!({ "limit": "orders", "key": key, "cost": 51 })).1;
    assert_eq!(
        (&never["allowed"], &never["never_fits"], &never["retry_after_ms"]),
        (&false.into(), &true.into(), &Value::Null)
    );
}

#[test]
fn other_routes_answer_in_json() {
    let dev = Dev::start(&[]);
    assert_eq!(dev.ask("GET", "/healthz", "").2, json!({ "status": "ok" }));
    let (status, _, body) = dev.ask("POST", "/dev/clock", r#"{"advance_ms":1}"#);
    assert!(status == 409 && body["message"].as_str().unwrap().contains("--clock manual"), "{body}");
    assert_eq!(dev.ask("GET", "/nothing/here", "").0, 404);
    let (status, head, _) = dev.ask("GET", "/v1/decisions", "");
    assert!(status == 405 && head.contains("allow: post"), "{head}");
    assert_eq!(dev.ask("POST", "/v1/decisions", &"x".repeat(70_000)).0, 413);
    let manual = Dev::start(&["--clock", "manual"]);
    for body in ["", "{}", r#"{"advance_ms":-1}"#, r#"{"advance_ms":1,"set_ms":2}"#, r#"{"hours":1}"#] {
        let (status, _, answer) = manual.ask("POST", "/dev/clock", body);
        assert!(status == 400 && answer["message"].as_str().unwrap().contains("set_ms"), "{body}: {answer}");
    }
    let (_, head, answer) = manual.ask("POST", "/dev/clock", r#"{"set_ms":1767225599000}"#);
    assert!(answer["now_ms"] == 1_767_225_599_000_u64 && head.contains("application/json"), "{answer}");
}

#[test]
fn the_tools_work_on_the_running_table_and_take_their_time_from_it() {
    let dev = Dev::start(&["--clock", "manual"]);
    for _ in 0..50 {
        dev.decide(&order("alice"));
    }
    let stats = dev.stats();
    let (endpoint, table) = (stats["dynamodb_endpoint"].as_str().unwrap(), stats["table"].as_str().unwrap());
    let at = ["--endpoint-url", endpoint, "--table", table, "--json"];
    let inspect = || json(&run_at_root(&[&["inspect", "user:alice"][..], &at].concat()));
    assert_eq!(inspect()["limits"]["orders"]["remaining"], 0);
    // The table tells its time in whole seconds, so the tools know it to within one.
    dev.advance_ms(30 * 60_000 + 1_000);
    assert_eq!(inspect()["limits"]["orders"]["remaining"], 25, "half an hour later, by the table's clock");
    assert_eq!(json(&run_at_root(&[&["reset", "user:alice"][..], &at].concat()))["reset"], json!(["orders"]));
    assert_eq!(inspect()["limits"]["orders"]["remaining"], 50);
    assert_eq!(dev.decide(&order("alice")).1["remaining"], 49, "in force at once in another process");
    dev.advance_ms(2 * 3_600_000);
    let gone = inspect();
    assert_eq!((&gone["exists"], &gone["limits"]), (&false.into(), &json!({})), "expired reads as absent");
}

#[test]
fn a_table_that_is_gone_is_503_or_open_as_the_policy_says_and_never_429() {
    use tollgate_cli::embedded::Embedded;
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let embedded = runtime.block_on(Embedded::start(None)).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let policy = dir.path().join("policy.toml");
    let limits = "version = 1\n[limits.a]\nkey = ['user']\nrate = '5/h'\non_store_failure = 'closed'\n\
                  [limits.b]\nkey = ['user']\nrate = '5/h'\non_store_failure = 'open'\n";
    std::fs::write(&policy, limits).unwrap();
    let dev = Dev::start(&["--endpoint-url", embedded.endpoint(), "--policy", policy.to_str().unwrap()]);
    let ask = |limit: &str| json!({ "limit": limit, "key": { "user": "alice" } });
    assert_eq!(dev.decide(&ask("a")).0, 200);
    drop(embedded);
    let (status, head, body) = dev.ask("POST", "/v1/decisions", &ask("a").to_string());
    assert!(
        status == 503 && head.contains("retry-after: 1") && body["error"] == "limiter_unavailable",
        "{status} {body}"
    );
    let (status, body) = dev.decide(&ask("b"));
    assert_eq!((status, &body["allowed"], &body["source"]), (200, &true.into(), &"open".into()));
    let (status, _) = dev.decide(&json!([ask("a"), ask("b")]));
    assert_eq!(status, 503, "the strictest counts");
    let mut huge = ask("b");
    huge["cost"] = 6.into();
    let (_, body) = dev.decide(&huge);
    assert_eq!((&body["allowed"], &body["never_fits"]), (&false.into(), &true.into()), "store or not");
    assert_eq!(dev.stats()["store_failures"], 4);
}
