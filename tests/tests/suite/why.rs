//! `tollgate explain --response` and `--log`: why an answer was given, or calls were denied.

use crate::dev::Dev;
use crate::harness::{repository, run_at_root, stderr, stdout, tollgate};
use proptest::prelude::*;
use serde_json::{Value, json};
use std::io::Write;
use std::process::{Output, Stdio};
use tollgate_cli::why::{Known, of_log, of_response};
use tollgate_policy::Policy;

/// `tollgate explain` of what is on its standard input.
fn explain(flag: &str, pasted: &[u8], more: &[&str]) -> Output {
    let mut command = tollgate();
    command.args(["explain", flag, "-"]).args(more).current_dir(repository("."));
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    child.stdin.take().unwrap().write_all(pasted).unwrap();
    child.wait_with_output().unwrap()
}

fn told(output: &Output) -> Value {
    assert!(output.status.success(), "{}", stderr(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

fn sample() -> Policy {
    Policy::load(repository("infra/tollgate.toml")).unwrap().policy
}

/// What the command tells of an answer, in JSON.
fn of(pasted: &str, known: Known<'_>) -> Value {
    serde_json::to_value(of_response(pasted.as_bytes(), known).unwrap()).unwrap()
}

const STEPS: [&str; 6] = ["layer", "key", "algorithm", "retries", "regions", "action"];

fn assert_whole(report: &Value) {
    let steps: Vec<_> = report["steps"].as_array().unwrap().iter().map(|step| step["step"].as_str().unwrap()).collect();
    assert_eq!(steps, STEPS);
    for step in report["steps"].as_array().unwrap() {
        let lines = step["found"].as_array().unwrap().len() + step["look"].as_array().unwrap().len();
        assert!(lines > 0, "nothing is told in {step}");
    }
}

fn found(report: &Value, step: &str) -> String {
    let step = report["steps"].as_array().unwrap().iter().find(|of| of["step"] == step).unwrap();
    format!("{} {}", step["found"], step["look"])
}

#[test]
fn answers_of_every_layer_are_told_by_their_documented_shapes() {
    let policy = sample();
    let mut read = 0;
    for entry in std::fs::read_dir(repository("tests/tests/suite/answers")).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        let (source, rest) = text.split_once('\n').unwrap();
        let (expected, pasted) = rest.split_once('\n').unwrap();
        assert!(source.starts_with("# source: "), "{}", path.display());
        for policy in [None, Some(&policy)] {
            for pasted in [pasted.to_owned(), pasted.replace('\n', "\r\n")] {
                let report = of(&pasted, Known { policy, ..Known::default() });
                let said = ["layer", "outcome", "confidence"].map(|name| report[name].as_str().unwrap()).join(" ");
                assert_eq!(format!("# expect: {said}"), expected, "{}: {report:#}", path.display());
                assert_whole(&report);
            }
        }
        read += 1;
    }
    assert!(read >= 27, "{read}");
}

/// The bodies of the template's gateway responses, as API Gateway would fill them in.
#[test]
fn answers_of_the_templates_gateway_responses_are_told_by_what_the_template_says() {
    let template = std::fs::read_to_string(repository("infra/template.yaml")).unwrap();
    let body_of = |response: &str| {
        let from = template.split(&format!("ResponseType: {response}\n")).nth(1).expect(response);
        let from = from.split("application/json: ").nth(1).unwrap();
        let text: String = match from.strip_prefix(">-\n") {
            Some(folded) => folded
                .lines()
                .take_while(|line| line.starts_with("          "))
                .map(|l| l.trim().to_owned() + " ")
                .collect(),
            None => from.lines().next().unwrap().trim_matches('\'').to_owned(),
        };
        text.replace("$context.authorizer.retryAfter", "72")
    };
    for (response, status, layer, outcome) in [
        ("ACCESS_DENIED", 429, "authorizer", "limited"),
        ("THROTTLED", 429, "gateway", "limited"),
        ("AUTHORIZER_FAILURE", 503, "authorizer", "unavailable"),
        ("AUTHORIZER_CONFIGURATION_ERROR", 503, "authorizer", "unavailable"),
    ] {
        let pasted = format!("HTTP/2 {status}\nretry-after: 72\nx-amz-apigw-id: J=\n\n{}", body_of(response));
        let report = of(&pasted, Known::default());
        assert_eq!((&report["layer"], &report["outcome"]), (&json!(layer), &json!(outcome)), "{response}: {report:#}");
    }
}

/// What a proxy or a person has cut out of it does not make an answer of the layer one that a gateway gives, which cannot know the limit.
#[test]
fn an_answer_that_names_its_limit_is_the_layers_whatever_was_cut_out() {
    for rest in [r#""limit":"orders""#, r#""violated-policies":["orders"]"#] {
        let kind = r##""type":"https://iana.org/assignments/http-problem-types#quota-exceeded""##;
        let body = format!(r#"{{{kind},"status":429,"error":"rate_limited",{rest},"retryAfter":72}}"#);
        let report = of(&format!("HTTP/2 429\nretry-after: 72\n\n{body}"), Known::default());
        assert_eq!(report["layer"], "application", "{report:#}");
    }
}

#[test]
fn a_body_of_the_policys_edge_names_the_rules_that_answer_with_it() {
    let text = "version = 1\n[edge]\nstage = 'block'\n[edge.bodies.slow]\ntype = 'json'\ncontent = '{\"slow\": \"down\"}'\n\
        [[edge.rules]]\nname = 'all'\nrate = '2000/5min'\n[[edge.rules]]\nname = 'auth'\nrate = '100/5min'\npaths = ['/api/auth/']\nbody = 'slow'\n";
    let policy = Policy::parse(text).map_err(|findings| findings.render("policy")).unwrap().policy;
    let known = Known { policy: Some(&policy), ..Known::default() };
    let report = of("HTTP/2 429\nretry-after: 300\n\n{\"slow\":\"down\"}\n", known);
    assert_eq!((&report["layer"], &report["candidates"]), (&json!("waf"), &json!(["tollgate-auth"])), "{report:#}");
    assert!(found(&report, "key").contains("100/300s of one address, on /api/auth"));
    assert_ne!(
        of("HTTP/2 429\n\n{\"slow\":\"down\"}", Known::default())["layer"],
        "waf",
        "without the policy nobody knows it"
    );
    let ours = include_str!("answers/waf-ours.http").splitn(3, '\n').nth(2).unwrap();
    assert_eq!(of(ours, known)["candidates"], json!(["tollgate-all"]));
}

/// The raw answers of the real server, through the real command.
#[test]
fn a_real_429_is_explained_by_its_own_bytes() {
    let dev = Dev::start(&["--clock", "manual"]);
    let alice = "x-dev-principal: user=alice,tenant=acme,plan=free\r\n";
    let mut raw = String::new();
    for _ in 0..=50 {
        raw = dev.answer("POST", "/api/orders", alice, "");
    }
    assert!(raw.starts_with("HTTP/1.1 429"), "{raw}");
    let report =
        told(&explain("--response", raw.as_bytes(), &["--json", "--method", "POST", "--path", "/api/orders?x=1"]));
    assert_whole(&report);
    let expected = json!({ "layer": "application", "confidence": "certain", "outcome": "limited", "limit": "orders", "can_succeed": true });
    for (name, value) in expected.as_object().unwrap() {
        assert_eq!(&report[name], value, "{name}: {report:#}");
    }
    assert_eq!(report["terms"]["key"], json!(["user"]));
    assert_eq!((&report["terms"]["rate"], &report["terms"]["algorithm"]), (&json!("50/h"), &json!("token-bucket")));
    assert_eq!(report["retry_after_s"], 72, "one unit of 50 an hour");
    assert_eq!(report["policy"], json!({ "revision": 1, "agrees": true }));
    assert_eq!(report["quotas"][0], json!({ "name": "orders", "q": 50, "w": 3600, "r": 0, "t": 72 }));
    assert!(found(&report, "key").contains("where the plan has none of its own: 50/h"), "{report:#}");
    assert!(found(&report, "algorithm").contains("a call on this route costs 1"), "{report:#}");

    // The same bytes beside a policy that is not the one in force.
    let mut other = tempfile::NamedTempFile::new().unwrap();
    write!(other, "version = 1\nrevision = 9\n[limits.orders]\nkey = ['user']\nrate = '100/h'\n").unwrap();
    let policy = ["--json", "--policy", other.path().to_str().unwrap()];
    let report = told(&explain("--response", raw.as_bytes(), &policy));
    assert_eq!((&report["policy"]["agrees"], &report["policy"]["revision"]), (&json!(false), &json!(9)));
    assert!(report["policy"]["differs"].to_string().contains("50 in 3600 s"), "{report:#}");

    // A limit that answers keep quiet about, and an operator's ban, look alike: the policy and the route narrow it down.
    let mut raw = String::new();
    for _ in 0..6 {
        raw = dev.answer(
            "POST",
            "/api/auth/login",
            "content-type: application/json\r\n",
            r#"{"username":"a@x.org","password":"no"}"#,
        );
    }
    assert!(raw.starts_with("HTTP/1.1 429"), "{raw}");
    let report =
        told(&explain("--response", raw.as_bytes(), &["--json", "--method", "POST", "--path", "/api/auth/login"]));
    let logins = json!(["login-account", "login-pair", "login-address", "login-known", "login-everyone"]);
    assert_eq!((&report["limit"], &report["candidates"]), (&Value::Null, &logins), "{report:#}");

    // A call that never fits, and a limiter without its table.
    let never = dev.answer("POST", "/v1/decisions", "", r#"{"limit":"orders","key":{"user":"zoe"},"cost":51}"#);
    let report = told(&explain("--response", never.as_bytes(), &["--json"]));
    assert_eq!((&report["outcome"], &report["can_succeed"]), (&json!("never_fits"), &json!(false)));
    let several = r#"[{"limit":"units","key":{"user":"zoe"}},{"limit":"orders","key":{"user":"alice"}}]"#;
    let several = dev.answer("POST", "/v1/decisions", "", several);
    let report = told(&explain("--response", several.as_bytes(), &["--json"]));
    assert_eq!((&report["limit"], &report["retry_after_s"]), (&json!("orders"), &json!(72)), "{report:#}");
    dev.ask("POST", "/dev/faults", r#"{"store":"error"}"#);
    let closed = dev.answer("GET", "/api/export", alice, "");
    assert!(closed.starts_with("HTTP/1.1 503"), "{closed}");
    let output = explain("--response", closed.as_bytes(), &[]);
    assert!(stdout(&output).starts_with("503 by tollgate in front of the handler\n"), "{}", stdout(&output));
    assert!(stdout(&output).contains("nobody was limited"), "{}", stdout(&output));
}

/// A line as functions log it: see `tests/lambda/printed.rs`, which holds them to it.
fn denial(key: &str, at_ms: u64, wait_ms: u64) -> String {
    json!({
        "timestamp": "2026-11-30T12:00:00.123Z", "level": "INFO", "target": "tollgate::denials", "message": "denied",
        "limit": "orders", "key": "user", "key_ref": key, "outcome": "denied", "plan": "free", "revision": 1, "cost": 1,
        "remaining": 0, "retry_after_ms": wait_ms, "source": "cache", "store_time_ms": at_ms, "route": "POST /api/orders",
    })
    .to_string()
}

#[test]
fn a_log_is_explained_by_its_last_denial_and_counted_by_limit() {
    let metrics = r#"{"_aws":{"Timestamp":1,"CloudWatchMetrics":[]},"Service":"f","Denied":1}"#;
    let log = [
        "START RequestId: 1 Version: $LATEST".to_owned(),
        denial("k1.a", 2_000, 60_000),
        metrics.to_owned(),
        format!("2026-11-30T12:00:00 {}", denial("k1.b", 3_000, 72_000).replace("\"orders\"", "\"units\"").replace("\"cache\"", "\"table\"")),
        denial("k1.a", 1_000, 61_000),
        r#"{"timestamp":"t","level":"WARN","target":"tollgate_http::gate","message":"the limiter could not decide; the call is refused"}"#.to_owned(),
    ]
    .join("\n");
    let report = told(&explain("--log", log.as_bytes(), &["--json"]));
    assert_whole(&report);
    let counts =
        json!({ "lines": 5, "denials": 3, "kept_back": 0, "failures": 1, "by_limit": { "orders": 2, "units": 1 } });
    assert_eq!(report["counts"], counts);
    assert_eq!(
        (&report["limit"], &report["retry_after_s"], &report["input"]),
        (&json!("units"), &json!(72), &json!("log"))
    );
    assert!(found(&report, "layer").contains("the table said so"));
    assert!(
        found(&report, "retries").contains("k1.a on orders: 2 denials within 1000 ms, told to wait 121000 ms"),
        "{report:#}"
    );
    // As CloudWatch's own command prints it.
    let events: Vec<_> = log.lines().map(|line| json!({ "timestamp": 1, "message": line })).collect();
    let exported = serde_json::to_string_pretty(&json!({ "events": events, "searchedLogStreams": [] })).unwrap();
    let again = told(&explain("--log", exported.as_bytes(), &["--json"]));
    assert_eq!(
        (&again["counts"]["denials"], &again["limit"]),
        (&json!(2), &json!("orders")),
        "a line with text before it is no event of ours"
    );
}

#[test]
fn who_keeps_each_wait_is_never_said_to_ignore_one() {
    let (mut at, began) = (1_000, 1_000);
    let mut log = String::new();
    let waits = [500, 72_000, 1, 36_000, 9];
    for wait in waits {
        log += &(denial("k1.a", at, wait) + "\n");
        at += wait;
    }
    // Who counts denials instead, at most one in each of the longest waits, calls him a culprit.
    assert!(waits.len() as u64 > 1 + (at - began) / waits.iter().max().unwrap());
    let report = told(&explain("--log", log.as_bytes(), &["--json"]));
    assert!(found(&report, "retries").contains("no key was denied again sooner"), "{report:#}");
}

#[test]
fn what_is_given_to_the_wrong_flag_names_the_right_one() {
    let answer = include_str!("answers/apigw-throttled.http").splitn(3, '\n').nth(2).unwrap();
    for (flag, pasted, right) in [
        ("--response", denial("k1.a", 1, 1).as_str(), "give it to --log"),
        ("--response", &format!("{}\n{}", denial("k1.a", 1, 1), denial("k1.a", 2, 1)), "give it to --log"),
        ("--log", answer, "give it to --response"),
        ("--log", r#"{"message":"Too Many Requests"}"#, "give it to --response"),
        ("--response", " \r\n ", "paste what `curl -i` prints"),
        ("--log", "nothing here", "no line of tollgate's log"),
    ] {
        let output = explain(flag, pasted.as_bytes(), &[]);
        assert_eq!(output.status.code(), Some(1), "{flag} {pasted}");
        assert!(stderr(&output).contains(right) && stderr(&output).lines().count() == 1, "{}", stderr(&output));
    }
    let output = run_at_root(&["explain", "--response", "/no/such", "--log", "/no/such"]);
    assert_eq!(output.status.code(), Some(1));
    let output = explain("--response", answer.as_bytes(), &["--method", "GET"]);
    assert!(stderr(&output).contains("--method and --path"), "{}", stderr(&output));
    let output = explain("--response", &vec![b'x'; 16 * 1024 * 1024 + 1], &[]);
    assert!(stderr(&output).contains("over 16 MiB"), "{}", stderr(&output));
}

#[test]
fn nothing_that_was_pasted_moves_a_terminal() {
    let evil = "\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}";
    let answer = format!(
        "HTTP/1.1 429 {evil}\nx-ratelimit-limit: {evil}\nretry-after: {evil}\nx-amzn-waf-action: {evil}\n\n\
         {{\"error\":\"rate_limited\",\"limit\":\"{}\",\"scope\":[\"{}\"]}}",
        evil.escape_default(),
        "\\u001b[31m"
    );
    let escaped = serde_json::to_string(evil).unwrap();
    let problem = format!(
        "HTTP/1.1 429 x\ncontent-type: application/problem+json\nretry-after: 1\n\n\
         {{\"type\":\"#quota-exceeded\",\"detail\":\"\",\"error\":\"rate_limited\",\"limit\":{escaped},\"scope\":[{escaped}]}}"
    );
    let line = denial("k1.a", 1, 1)
        .replace("\"orders\"", &escaped)
        .replace("\"k1.a\"", &escaped)
        .replace("\"user\"", &escaped);
    for (flag, pasted) in [("--response", answer), ("--response", problem), ("--log", line)] {
        for more in [&[][..], &["--json"]] {
            let output = explain(flag, pasted.as_bytes(), more);
            assert!(output.status.success(), "{}", stderr(&output));
            let moves = |c: char| (c.is_control() && c != '\n') || c == '\u{202e}';
            assert!(!stdout(&output).contains(moves) && !stderr(&output).contains(moves), "{:?}", stdout(&output));
            assert!(stdout(&output).contains("u{1b}"), "it is shown, as text: {}", stdout(&output));
        }
    }
}

/// Text that has the words in it by which layers are told, among anything else.
fn pasted() -> impl Strategy<Value = Vec<u8>> {
    let words = [
        "HTTP/1.1 429 x\r\n",
        "HTTP/2 403\n",
        "\r\n\r\n",
        "\n",
        "{",
        "}",
        "\"error\":\"rate_limited\",",
        "\"message\":\"Limit Exceeded\"",
        "\"target\":\"tollgate::denials\",",
        "\"level\":\"WARN\",",
        "retry-after: 7\n",
        "Retry-After: 99999999999999999999\n",
        "ratelimit: \"a\";r=0;t=1\n",
        "content-length: 3\n",
        "transfer-encoding: chunked\n\nffffffffffffffff\n",
        "server: cloudflare\n",
        "date: Tue, 01 Dec 9999 02:00:00 GMT\n",
        "x-amzn-waf-action: captcha\n",
        "1015",
        "\"limit\":\"orders\",",
        "\"retry_after_ms\":18446744073709551615,",
        "\"store_time_ms\":18446744073709551615,",
        "\"store_time_ms\":0,",
        "\"key_ref\":\"k\",",
        "\"events\":[",
        "]",
        "\u{202e}",
        "[[[[[[",
        "é",
    ];
    let word = prop_oneof![
        4 => proptest::sample::select(words.to_vec()).prop_map(|word| word.as_bytes().to_vec()),
        1 => proptest::collection::vec(any::<u8>(), 0..12),
    ];
    proptest::collection::vec(word, 0..40).prop_map(|parts| parts.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn any_bytes_have_a_reading_or_one_line_that_says_what_to_give(bytes in pasted()) {
        let policy = sample_once();
        let known = Known { policy: Some(policy), plan: Some("pro"), route: Some(("POST", "/api/orders")) };
        for read in [of_response(&bytes, known), of_log(&bytes, known), of_response(&bytes, Known::default())] {
            match read {
                Ok(report) => {
                    let text = serde_json::to_string(&report).unwrap();
                    prop_assert!(!text.contains(|c: char| c.is_control() || c == '\u{202e}'), "{text}");
                    assert_whole(&serde_json::to_value(&report).unwrap());
                }
                Err(line) => prop_assert!(!line.is_empty() && !line.contains('\n')),
            }
        }
    }
}

fn sample_once() -> &'static Policy {
    static SAMPLE: std::sync::OnceLock<Policy> = std::sync::OnceLock::new();
    SAMPLE.get_or_init(sample)
}
