//! The command as its users see it: output, one line for an error, exit codes.

use crate::harness::{TABLE, endpoint, json, repository, run, run_at_root, stderr, stdout, tollgate};
use std::io::Write;
use std::process::{Output, Stdio};

const PER_IP: &str = "version = 1\n[limits.per-ip]\nkey = ['client_ip']\nrate = '10/min'\nburst = 5\n";

fn file(text: &str) -> tempfile::NamedTempFile {
    let mut file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
    file.write_all(text.as_bytes()).unwrap();
    file
}

fn path(file: &tempfile::NamedTempFile) -> &str {
    file.path().to_str().unwrap()
}

#[test]
fn a_policy_with_five_mistakes_prints_five_errors_with_their_places() {
    let policy = file(
        "version = 1\n[limits.a]\nkey = [\"usr\"]\nrate = \"0/h\"\nburst = -1\n\
         [[routes]]\nmatch = \"GET /x\"\ncharge = [\"b\", { limit = \"a\", cost = 0 }]\n",
    );
    let output = run(&["policy", "check", path(&policy)]);
    assert_eq!(output.status.code(), Some(1));
    let text = stdout(&output);
    let places: Vec<_> =
        text.lines().filter(|l| l.contains(": error: ")).map(|l| l.split(": error").next().unwrap()).collect();
    let expected = ["3:8", "4:8", "5:9", "8:11", "8:38"].map(|at| format!("{}:{at}", path(&policy)));
    assert_eq!(places, expected, "{text}");
    let report = json(&run(&["policy", "check", path(&policy), "--json"]));
    assert_eq!((&report["ok"], report["diagnostics"].as_array().unwrap().len()), (&false.into(), 5));
}

#[test]
fn the_sample_policy_is_clean_and_the_schema_is_one() {
    let sample = repository("infra/tollgate.toml");
    let output = run(&["policy", "check", sample.to_str().unwrap()]);
    assert!(output.status.success() && !stdout(&output).contains("warning"), "{}", stdout(&output));
    assert!(json(&run(&["policy", "schema"]))["$schema"].as_str().unwrap().contains("2020-12"));
}

#[test]
fn a_replay_counts_exactly_and_a_malformed_line_is_never_fatal() {
    let line =
        |ip: &str, at: &str| format!("{ip} - - [17/May/2015:10:{at} +0000] \"GET / HTTP/1.1\" 200 5 \"-\" \"x\"\n");
    let mut log = String::from("this is no log line\n");
    // Out of order: the seventh call of one address within the minute is the first in the file.
    for at in ["05:06", "05:00", "05:01", "05:02", "05:03", "05:04", "05:05"] {
        log += &line("192.0.2.1", at);
    }
    log += &line("192.0.2.2", "05:00");
    let (log, policy) = (file(&log), file(PER_IP));
    let report = json(&run(&["replay", path(&log), "--policy", path(&policy), "--json"]));
    assert_eq!((&report["requests"], &report["skipped"]), (&8.into(), &1.into()));
    let limit = &report["limits"]["per-ip"];
    // 5 at once, and one token each 6 s: the one at 05:05 is denied, the one at 05:06 is not.
    assert_eq!((&limit["allowed"], &limit["denied"]), (&7.into(), &1.into()));
    assert_eq!(limit["top_denied"][0]["key"], "client_ip:192.0.2.1");
    let text = stdout(&run(&["replay", path(&log), "--policy", path(&policy)]));
    assert!(text.contains("per-ip") && text.contains("this is no log line"), "{text}");
    let mut piped = tollgate()
        .args(["replay", "-", "--policy", path(&policy), "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    piped.stdin.take().unwrap().write_all(&std::fs::read(log.path()).unwrap()).unwrap();
    let piped = json(&piped.wait_with_output().unwrap());
    assert_eq!(piped["files"][0]["name"], "standard input");
    assert_eq!(piped.to_string().replace("standard input", path(&log)), report.to_string());
}

/// The real log, if the machine has it: 10/min burst 5 per address.
#[test]
fn the_sample_log_gives_the_known_figures() {
    let Ok(log) = std::env::var("TOLLGATE_SAMPLE_LOG") else {
        println!("skipped: set TOLLGATE_SAMPLE_LOG to web-2015-05.log");
        return;
    };
    let report = json(&run(&["replay", &log, "--policy", path(&file(PER_IP)), "--json"]));
    assert_eq!((&report["requests"], &report["skipped"]), (&9999.into(), &1.into()));
    assert_eq!(
        (&report["limits"]["per-ip"]["allowed"], &report["limits"]["per-ip"]["denied"]),
        (&8604.into(), &1395.into())
    );
}

#[test]
fn explain_resolves_a_request_as_the_layer_does_and_names_every_limit_and_dimension() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("policy.toml");
    let policy = "version = 1
        [identity]
        order     = 'path.id'
        region    = 'query.region'
        account   = { body = 'username', fold = 'email' }
        client_ip = { trusted_hops = 1 }
        [limits.caller]
        key  = ['user ?? client_ip']
        rate = '9/h'
        [limits.order]
        key  = ['order', 'region']
        rate = '5/h'
        own_item = true
        coalesce = false
        deny_cache = false
        on_store_failure = 'closed'
        [limits.account]
        key  = ['account']
        rate = '3/h'
        mode = 'shadow'
        [[routes]]
        match  = 'PUT /orders/{id}'
        charge = ['caller', 'order', { limit = 'account', cost = 2 }]
        ";
    std::fs::write(&file, policy).unwrap();
    let request = ["--method", "PUT", "--path", "/orders/%37?region=eu", "--body", r#"{"username":"Admin@X.org"}"#];
    let more = ["--header", "Content-Type: application/json", "--header", "X-Forwarded-For: 6.6.6.6, 192.0.2.7"];
    let explain = |args: &[&str]| run(&[&["explain", "--policy", file.to_str().unwrap()][..], args].concat());
    let seen = json(&explain(&[&request[..], &more, &["--source-ip", "203.0.113.1", "--json"]].concat()));
    let values: Vec<_> = seen["dimensions"].as_array().unwrap().iter().map(|d| (&d["name"], &d["value"])).collect();
    let value = |name: &str| values.iter().find(|(known, _)| *known == name).unwrap().1;
    assert_eq!((value("user"), value("client_ip")), (&serde_json::Value::Null, &"192.0.2.7".into()));
    assert_eq!((value("order"), value("region"), value("account")), (&"7".into(), &"eu".into(), &"admin@x.org".into()));
    let charges = seen["charges"].as_array().unwrap();
    let told: Vec<_> = charges.iter().map(|c| (c["limit"].as_str().unwrap(), c["mode"].as_str().unwrap())).collect();
    assert_eq!(told, [("caller", "enforce"), ("order", "enforce"), ("account", "shadow")]);
    assert_eq!(charges[1]["partition_keys"], serde_json::json!(["1/own/order/order:7,region:eu"]));
    let rules: Vec<_> = charges.iter().map(|c| c["on_store_failure"].as_str().unwrap()).collect();
    assert_eq!(
        (rules, &charges[2]["cost"]),
        (vec!["local", "closed", "open"], &2.into()),
        "a shadow is never in the way"
    );
    assert!(charges[2]["key"].as_str().unwrap().starts_with("account:dev."), "{seen}");
    let switched: Vec<_> = charges.iter().map(|c| (c["coalesce"].as_bool(), c["deny_cache"].as_bool())).collect();
    assert_eq!(switched, [(None, None), (Some(false), Some(false)), (None, None)], "told where they are off");
    let text = stdout(&explain(&[&request[..], &["--claim", "sub=alice", "--source-ip", "203.0.113.1"]].concat()));
    assert_eq!(
        text.matches(", an item of its own, not coalesced, never denied from memory, closed").count(),
        1,
        "{text}"
    );
    for line in ["user = alice (claims.sub)", "caller: cost 1 of 9/h", "on key user:alice", "kept as a keyed hash"] {
        assert!(text.contains(line), "{line}: {text}");
    }
    let unproven = stdout(&explain(&["--method", "PUT", "--path", "/orders/7", "--source-ip", "203.0.113.1"]));
    assert!(
        unproven.contains("left no entry") && unproven.contains("where `user ?? client_ip` has no value"),
        "{unproven}"
    );
}

/// What the layer's tests say of each topology, asked of the command.
const TOPOLOGIES: &str = "version = 1
    [identity]
    client_ip = { trusted_hops = 1 }
    account   = { body = 'username', fold = 'email' }
    region    = 'query.region'
    [plans]
    names = ['free', 'pro']
    [limits.address]
    key      = ['client_ip']
    rate     = '9/h'
    own_item = true
    [limits.account]
    key  = ['account']
    rate = '9/h'
    [limits.user]
    key  = ['user', 'region']
    rate = '9/h'
    [[routes]]
    match  = 'GET /search'
    charge = ['address']
    [[routes]]
    match  = 'POST /login'
    charge = ['account', 'address']
    [[routes]]
    match  = 'GET /items/{id}'
    charge = ['user', 'address']
    atomic = true
    [[exempt]]
    match = 'GET /healthz'
    why   = 'a rate-limited health check lies'
    ";

fn explains(policy: &tempfile::NamedTempFile, args: &[&str]) -> Output {
    run(&[&["explain", "--policy", path(policy)][..], args].concat())
}

#[test]
fn explain_finds_the_address_as_the_layer_does_behind_each_gateway() {
    let policy = file(TOPOLOGIES);
    let key = |gateway: &[&str], forwarded: &str| {
        let request = ["--method", "GET", "--path", "/search", "--header", forwarded, "--source-ip", "130.176.1.1"];
        let seen = json(&explains(&policy, &[&request[..], gateway, &["--json"]].concat()));
        seen["charges"][0]["key"].as_str().map(str::to_owned)
    };
    let client = Some("client_ip:203.0.113.9".to_owned());
    for gateway in ["rest", "http", "alb", "none"] {
        assert_eq!(key(&["--gateway", gateway], "X-Forwarded-For: 6.6.6.6, 203.0.113.9"), client, "{gateway}");
    }
    assert_eq!(key(&[], "X-Forwarded-For: 6.6.6.6, 203.0.113.9"), client, "an HTTP API, if nothing is said");
    // Of that list Lambda leaves what the sender wrote, and AWS's gateways write no other.
    assert_eq!(key(&["--gateway", "url"], "X-Forwarded-For: 6.6.6.6, 203.0.113.9"), None);
    assert_eq!(key(&["--gateway", "none"], "Forwarded: for=203.0.113.9"), client);
    assert_eq!(key(&["--gateway", "rest"], "Forwarded: for=203.0.113.9"), None);
}

/// What a client sends alone is nobody's statement about him.
#[test]
fn explain_takes_no_address_from_a_client_alone() {
    for hops in [0, 1] {
        let policy = file(&TOPOLOGIES.replace("trusted_hops = 1", &format!("trusted_hops = {hops}")));
        let request = ["--method", "GET", "--path", "/search", "--header", "X-Forwarded-For: 6.6.6.6", "--gateway"];
        for gateway in ["rest", "http", "url"] {
            let seen = json(&explains(&policy, &[&request[..], &[gateway, "--json"]].concat()));
            assert_eq!(seen["charges"][0]["key"], serde_json::Value::Null, "{gateway}, {hops} hops: {seen}");
        }
        one_line(&explains(&policy, &[&request[..], &["alb"]].concat()), 1, "give it as --source-ip");
    }
}

/// A transaction takes in what can deny, if that is more than one item.
#[test]
fn explain_tells_which_charges_are_one_transaction() {
    const LIMIT: &str = "key = ['user']\nrate = '9/h'";
    let atomic = |user: &str, address: &str, route: &str| {
        let policy = format!(
            "version = 1\n[limits.user]\n{LIMIT}\n{user}\n[limits.same]\n{LIMIT}\n[limits.address]\nkey = ['client_ip']\n\
             rate = '9/h'\n{address}\n[[routes]]\nmatch = 'GET /a'\ncharge = ['user', 'same', 'address']\n{route}\n\
             [[routes]]\nmatch = 'GET /b'\ncharge = ['user', 'same']\n{route}\n"
        );
        let policy = file(&policy);
        ["/a", "/b"].map(|target| {
            let request = ["--method", "GET", "--path", target, "--user", "u", "--client-ip", "192.0.2.1", "--json"];
            let charges = json(&explains(&policy, &request))["charges"].take();
            charges.as_array().unwrap().iter().map(|charge| charge["atomic"] == true).collect::<Vec<_>>()
        })
    };
    let (yes, no) = ("atomic = true", "");
    let all = [vec![true; 3], vec![false; 2]];
    assert_eq!([atomic(yes, no, no), atomic(no, yes, no), atomic(no, no, yes)], [all.clone(), all.clone(), all]);
    let none = [vec![false; 3], vec![false; 2]];
    assert_eq!(atomic(no, no, no), none);
    assert_eq!(atomic(yes, "mode = 'shadow'", yes), none, "one item is left that can deny");
}

#[test]
fn explain_reads_the_event_that_a_function_got() {
    let policy = file(TOPOLOGIES);
    let event = serde_json::json!({
        "resource": "/items/{id}", "path": "/items/7", "httpMethod": "GET",
        "multiValueHeaders": { "X-Forwarded-For": ["203.0.113.9, 130.176.1.1"] },
        "multiValueQueryStringParameters": { "region": ["eu"] },
        "requestContext": { "accountId": "1", "stage": "prod", "httpMethod": "GET", "path": "/prod/items/7",
            "requestId": "r", "apiId": "a", "authorizer": { "claims": { "sub": "alice", "plan": "gold" } },
            "identity": { "sourceIp": "130.176.1.1" } }
    });
    let event = file(&event.to_string());
    let seen = json(&explains(&policy, &["--event", path(&event), "--json"]));
    assert_eq!(
        (&seen["method"], &seen["path"], &seen["pattern"]),
        (&"GET".into(), &"/items/7".into(), &"GET /items/{id}".into())
    );
    let keys: Vec<_> =
        seen["charges"].as_array().unwrap().iter().map(|charge| charge["key"].as_str().unwrap()).collect();
    assert_eq!(keys, ["region:eu,user:alice", "client_ip:203.0.113.9"]);
    for (wrong, says) in [
        ("{", "not JSON"),
        ("{}", "not an event"),
        ("[1]", "not an event"),
        ("7", "not an event"),
        ("null", "not an event"),
        ("{\"httpMethod\":\"GET\",\"path\":\"\\u0000\"}", "not an event"),
        ("{\"httpMethod\":\"GET\",\"path\":\":y\"}", "no address can be built"),
    ] {
        let wrong = file(wrong);
        one_line(&explains(&policy, &["--event", path(&wrong)]), 1, &format!("{}: {says}", path(&wrong)));
    }
    one_line(&explains(&policy, &["--event", "/no/such.json"]), 1, "/no/such.json");
    let both = explains(&policy, &["--event", path(&event), "--path", "/x"]);
    assert!(both.status.code() == Some(1) && stderr(&both).contains("cannot be used with"), "{}", stderr(&both));
}

#[test]
fn explain_tells_unknown_plans_transactions_and_items_of_ones_own() {
    let policy = file(TOPOLOGIES);
    let request = ["--method", "GET", "--path", "/items/7?region=eu", "--source-ip", "192.0.2.1", "--claim"];
    let of = |claim: &str, more: &[&str]| explains(&policy, &[&request[..], &[claim], more].concat());
    let seen = json(&of("plan=gold", &["--json"]));
    assert_eq!((&seen["plan"], &seen["names_unknown_plan"]), (&"free".into(), &true.into()));
    let charge = |i: usize| (&seen["charges"][i]["own_item"], &seen["charges"][i]["atomic"]);
    assert_eq!((charge(0), charge(1)), ((&false.into(), &true.into()), (&true.into(), &true.into())));
    assert_eq!(json(&of("plan=pro", &["--json"]))["names_unknown_plan"], serde_json::Value::Null);
    let text = stdout(&of("plan=gold", &[]));
    for says in ["plan free, since the policy has no plan as the caller names", "an item of its own, atomic"] {
        assert!(text.contains(says), "{says}: {text}");
    }
    let search = stdout(&explains(&policy, &["--method", "GET", "--path", "/search"]));
    assert!(search.contains("an item of its own, local") && !search.contains("since the policy"), "{search}");
}

#[test]
fn explain_treats_preflights_and_head_as_the_layer_does() {
    let policy = file(TOPOLOGIES);
    for (method, target, matched) in [
        ("OPTIONS", "/search", "preflight"),
        ("OPTIONS", "/healthz", "preflight"),
        ("HEAD", "/search", "route"),
        ("HEAD", "/healthz", "exempt"),
        ("GET", "/healthz", "exempt"),
        ("GET", "/nowhere", "unmatched"),
    ] {
        let seen = json(&explains(&policy, &["--method", method, "--path", target, "--json"]));
        assert_eq!(seen["matched"], matched, "{method} {target}");
    }
    assert!(stdout(&explains(&policy, &["--method", "OPTIONS", "--path", "/search"])).contains("preflight"));
    for target in ["search", "", "https://x.org/search", "*"] {
        one_line(&explains(&policy, &["--method", "GET", "--path", target]), 1, "must begin with `/`");
    }
    let claim = ["--method", "GET", "--path", "/search", "--claim", "sub=a", "--gateway"];
    for gateway in ["url", "alb"] {
        one_line(&explains(&policy, &[&claim[..], &[gateway]].concat()), 1, "no claims");
    }
}

#[test]
fn explain_takes_values_that_begin_with_a_hyphen() {
    let policy = file(TOPOLOGIES);
    let login = ["--method", "POST", "--path", "/login"];
    let takes = |args: &[&str]| explains(&policy, &[&login[..], args].concat());
    for args in
        [["--body", "--b\r\n"], ["--header", "-x: 1"], ["--claim", "-x=1"], ["--user", "-"], ["--api-key", "-k"]]
    {
        let output = takes(&args);
        assert!(output.status.success(), "{args:?}: {}", stderr(&output));
    }
}

#[test]
fn explain_speaks_of_key_secrets_only_where_a_personal_value_is_in_a_key() {
    let policy = file(TOPOLOGIES);
    let note = |args: &[&str]| stderr(&explains(&policy, args)).contains("TOLLGATE_KEY_SECRETS");
    assert!(!note(&["--method", "GET", "--path", "/search"]));
    assert!(!note(&["--method", "OPTIONS", "--path", "/login"]));
    assert!(!note(&["--method", "POST", "--path", "/login"]), "it has no value");
    assert!(note(&["--method", "POST", "--path", "/login", "--body", "username=a@x.org"]));
}

#[test]
fn explain_names_route_limits_keys_and_figures() {
    let sample = repository("infra/tollgate.toml");
    let explain = |args: &[&str]| run(&[&["explain", "--policy", sample.to_str().unwrap()][..], args].concat());
    let order =
        json(&explain(&["--method", "POST", "--path", "/api/orders", "--user", "alice", "--plan", "pro", "--json"]));
    let charge = &order["charges"][0];
    assert_eq!(
        (&order["matched"], &charge["limit"], &charge["key"]),
        (&"route".into(), &"orders".into(), &"user:alice".into())
    );
    assert_eq!((&charge["rate"], &charge["burst"], &charge["cost"]), (&"500/h".into(), &100.into(), &1.into()));
    let search = json(&explain(&["--method", "GET", "--path", "/api/search", "--client-ip", "192.0.2.7", "--json"]));
    assert_eq!(
        (&search["charges"][0]["key"], &search["charges"][0]["cost"]),
        (&"client_ip:192.0.2.7".into(), &5.into())
    );
    let network = json(&explain(&["--method", "GET", "--path", "/api/search", "--client-ip", "2001:db8::7", "--json"]));
    assert_eq!(
        network["charges"][0]["key"], "client_ip:2001%3Adb8%3A%3A/64",
        "the key that replay and the layer count"
    );
    for bad in [["--client-ip", "here"], ["--dimension", "nodim=x"], ["--dimension", "x"]] {
        one_line(
            &explain(&[&["--method", "GET", "--path", "/api/search"][..], &bad].concat()),
            1,
            bad[1].split('=').next().unwrap(),
        );
    }
    let missing = stdout(&explain(&["--method", "GET", "--path", "/api/search"]));
    assert!(missing.contains("all calls where `user ?? client_ip` has no value"), "{missing}");
    assert!(stdout(&explain(&["--method", "GET", "--path", "/healthz"])).contains("exempt"));
    assert!(stdout(&explain(&["--method", "GET", "--path", "/nowhere"])).contains("no route"));
    let unknown = explain(&["--method", "POST", "--path", "/api/orders", "--plan", "gold"]);
    assert!(unknown.status.code() == Some(1) && stderr(&unknown).contains("unknown plan"), "{}", stderr(&unknown));
}

/// One line that starts with `error:`, on standard error, and nothing on standard output.
fn one_line(output: &Output, code: i32, says: &str) {
    let text = stderr(output);
    assert_eq!(output.status.code(), Some(code), "{text}");
    assert!(text.lines().count() == 1 && text.starts_with("error: ") && text.contains(says), "{text}");
    assert!(output.stdout.is_empty(), "{}", stdout(output));
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_table_no_credentials_and_a_stopped_server_are_one_line_each() {
    let url = endpoint().await;
    tokio::task::block_in_place(|| {
        let missing = run_at_root(&["inspect", "user:alice", "--endpoint-url", &url, "--table", "no-such-table"]);
        one_line(&missing, 3, "tollgate table create --table no-such-table");
        one_line(&run_at_root(&["inspect", "user:alice", "--endpoint-url", "http://127.0.0.1:9"]), 3, "cannot connect");
        one_line(&run_at_root(&["inspect", "user:alice", "--region", "eu-west-1"]), 3, "no AWS credentials");
        one_line(&run_at_root(&["inspect", "user:alice"]), 3, "AWS_REGION");
        one_line(&run_at_root(&["inspect", "user:alice", "--endpoint-url", "ftp://x"]), 1, "http://");
        for key in ["alice", "", "user:", ":alice", "user:a,user:b", "user:a:b", "user:%zz"] {
            one_line(&run_at_root(&["inspect", key, "--endpoint-url", &url, "--table", TABLE]), 1, "key");
        }
    });
}

/// An endpoint that accepts and stays silent, and one that is no DynamoDB.
#[tokio::test(flavor = "multi_thread")]
async fn an_endpoint_that_is_none_is_an_error_and_not_a_wait_without_end() {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let mut open = Vec::new();
        while let Ok((socket, _)) = listener.accept().await {
            open.push(socket);
        }
    });
    tokio::task::block_in_place(|| {
        for command in [&["inspect", "user:alice"][..], &["table", "describe"]] {
            one_line(&run_at_root(&[command, &["--endpoint-url", &url]].concat()), 3, "is that a DynamoDB endpoint?");
        }
    });
}

#[tokio::test(flavor = "multi_thread")]
async fn a_reset_of_an_unknown_limit_is_an_error() {
    let url = endpoint().await;
    tokio::task::block_in_place(|| {
        let at = ["--endpoint-url", &url, "--table", TABLE];
        let literal = run(&[&["reset", "user:nobody", "--literal-key", "--limit", "rpmm"][..], &at].concat());
        one_line(&literal, 1, "no state of limit rpmm");
        let reset = |limit: &str| run_at_root(&[&["reset", "user:nobody", "--limit", limit][..], &at].concat());
        one_line(&reset("order"), 1, "did you mean `orders`");
        assert!(reset("orders").status.success());
    });
}

#[test]
fn bad_arguments_and_files_exit_with_1() {
    for args in [&["race", "--clients", "0"][..], &["nonsense"], &["replay"], &["race", "--kill"]] {
        assert_eq!(run(args).status.code(), Some(1), "{args:?}");
    }
    let policy = file(PER_IP);
    one_line(&run(&["replay", "/no/such.log", "--policy", path(&policy)]), 1, "/no/such.log");
    one_line(&run(&["replay", "/dev/null", "--policy", "/no/such.toml"]), 1, "/no/such.toml");
    assert_eq!(run(&["--version"]).status.code(), Some(0));
}
