//! The JSON Schema and the decoder agree: on every key, on valid policies and on structural mistakes.

use crate::edge::EDGE;
use crate::{FULL, SAMPLE};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use tollgate_policy::{JSON_SCHEMA, KEYS, Policy};
use toml::de::{DeTable, DeValue};

fn schema() -> Value {
    serde_json::from_str(JSON_SCHEMA).expect("JSON")
}

fn json_of(value: &DeValue<'_>) -> Value {
    match value {
        DeValue::String(text) => json!(text),
        DeValue::Integer(n) => json!(i64::from_str_radix(n.as_str(), n.radix()).expect("an integer")),
        DeValue::Float(x) => json!(x.as_str().parse::<f64>().expect("a float")),
        DeValue::Boolean(b) => json!(b),
        DeValue::Datetime(at) => json!(at.to_string()),
        DeValue::Array(list) => list.iter().map(|item| json_of(item.get_ref())).collect(),
        DeValue::Table(table) => json_of_table(table),
    }
}

fn json_of_table(table: &DeTable<'_>) -> Value {
    Value::Object(table.iter().map(|(key, value)| (key.get_ref().to_string(), json_of(value.get_ref()))).collect())
}

fn schema_accepts(text: &str) -> bool {
    let root = DeTable::parse(text).expect(text);
    jsonschema::validator_for(&schema()).expect("a schema").is_valid(&json_of_table(root.get_ref()))
}

#[test]
fn the_schema_is_one() {
    jsonschema::meta::validate(&schema()).expect("draft 2020-12");
}

#[test]
fn the_decoder_and_the_schema_know_the_same_keys() {
    let schema = schema();
    let properties =
        |of: &Value| -> Option<BTreeSet<String>> { Some(of["properties"].as_object()?.keys().cloned().collect()) };
    for list in KEYS {
        let of = if list.table == "policy" { &schema } else { &schema["$defs"][list.table] };
        let expected = list.keys.iter().map(|key| (*key).to_owned()).collect();
        assert_eq!(properties(of), Some(expected), "{}", list.table);
        for (key, value) in of["properties"].as_object().expect("properties") {
            let described = value["description"].is_string() || value["$ref"].is_string();
            assert!(described, "{}.{key} has no description", list.table);
        }
    }
    let tables: BTreeSet<_> = KEYS.iter().map(|list| list.table).collect();
    for (name, definition) in schema["$defs"].as_object().expect("definitions") {
        assert!(definition.get("properties").is_none() || tables.contains(name.as_str()), "{name} is not in KEYS");
    }
}

#[test]
fn every_key_is_in_the_reference() {
    let docs = include_str!("../../src/lib.rs");
    for list in KEYS {
        for key in list.keys {
            let written = |c: char| docs.contains(&format!("{c}{key}"));
            assert!(written('`') || written('[') || written(' ') || written('.'), "{}.{key}", list.table);
        }
    }
}

#[test]
fn valid_policies_pass_both() {
    let limit = |rest: &str| format!("version = 1\n[limits.a]\nkey = [\"user\"]\nrate = \"5/15min\"\n{rest}\n");
    let valid = [
        FULL.to_owned(),
        SAMPLE.to_owned(),
        "version = 1".to_owned(),
        limit(""),
        limit("message = \"{{ {rate}\"\nupgrade_url = \"https://example.com/x\""),
        limit("on_store_failure = \"local\""),
        "version = 1\ninstances = 20".to_owned(),
        limit("on_store_failure = \"open\"\non_change = \"reset\"\nburst = 1_000"),
        limit("mode = \"shadow\"\nown_item = true\natomic = true"),
        limit("shards = 5\nown_item = true\natomic = false"),
        limit("penalty = { first = \"1min\" }"),
        limit("lease = 2\nown_item = true\natomic = false\ncount = \"all\"\nmode = \"enforce\"\ncoalesce = true"),
        limit("lease = 2\ndeny_cache = false"),
        limit("coalesce = false\ndeny_cache = true\nshards = 3"),
        limit("algorithm = \"sliding-window\"\nlease = 1_000_000_000_000"),
        limit(
            "penalty = { first = \"1min\", factor = 3, most = \"1h\", forget = \"0s\", extend = true }\nretry_jitter = \"10s\"",
        ),
        limit("algorithm = \"pacer\""),
        limit("algorithm = \"pacer\"\nburst = 5\ndelay = 5\nmax_wait = \"1500ms\""),
        limit("algorithm = \"pacer\"\nplans.a = { rate = \"1/s\", burst = 0 }\n[plans]\nnames = [\"a\"]"),
        limit("[[routes]]\nmatch = \"*\"\ncharge = [{ limit = \"a\" }]"),
        limit("[identity]\nuser = \"context.identity.sub\"\nclient_ip = { trusted_hops = 2 }"),
        limit("[identity]\nuser = \"query.u\"\nclient_ip = {}").replace("\"user\"", "\"user??tenant\", \"plan\""),
        limit("[identity]\na = { body = \"x\", fold = \"email\" }\nb = { from = \"header.x\", personal = true }"),
        limit("[identity]\ntenant = { from = \"claims.t\", log = \"plain\" }\napi_key = { from = \"header.k\", log = \"hashed\" }"),
        limit("[identity]\na = { from = \"api_key\", fold = \"phone\", region = \"IN\", personal = true }"),
        limit("[identity]\nclient_ip = { trusted_hops = 1, header = \"CloudFront-Viewer-Address\" }"),
        limit("[identity]\nd = { cookie = \"__Host-d\", bound_to = \"user\", max_age = \"400day\" }")
            .replace("\"user\"]", "\"d ?? everyone\"]"),
        limit("[plans]\nnames = [\"one\"]"),
        limit("headers = \"visible\"\n[http]\ncors = { origins = [\"*\"], credentials = false }"),
        limit("[[routes]]\nmatch = \"*\"\ncharge = [\"a\"]\nstep_up = { max_age = \"1s\", bind = [] }"),
        limit(
            "[[routes]]\nmatch = \"*\"\ncharge = [\"a\"]\nstep_up = { max_age = \"1day\", acr = [\"a\", \"urn:x:~\"], amr = [\"otp\"], \
             bind = [\"iban\", \"a b\"] }",
        ),
        "version = 1\nhttp = { legacy_headers = [] }".to_owned(),
        "version = 1\n[otp]\npurposes = [\"login\"]".to_owned(),
        "version = 1\n[mfa]\nissuer = \"Example Ltd\"".to_owned(),
        "version = 1\n[mfa]\nissuer = \"a\"\npasskeys = { rp_id = \"localhost\", origins = [\"http://localhost:8787\"] }".to_owned(),
        "version = 1\n[mfa]\nissuer = \"a\"\n[mfa.passkeys]\nrp_id = \"example.com\"\norigins = [\"https://example.com\", \
         \"https://a.example.com:8443\"]\nuser_verification = \"preferred\"\ntimeout = \"30s\""
            .to_owned(),
        "version = 1\n[mfa]\nissuer = \"Ți\"\nacr = \"urn:example:mfa\"\nmax_age = \"1day\"".to_owned(),
        "version = 1\n[mfa]\nissuer = \"x\"\naudit_retention = \"30day\"".to_owned(),
        "version = 1\n[mfa]\nissuer = \"x\"\n[mfa.recovery]\nwait = \"3day\"".to_owned(),
        "version = 1\n[mfa]\nissuer = \"x\"\naudit_retention = \"3650day\"".to_owned(),
        "version = 1\n[mfa]\nissuer = \"x\"\nenrol_acr = \"e\"\ncooldown = \"48h\"\ncancel_url = \"https://x.org/#{token}\"\nfirst_factor = [\"pwd\", \"sms\"]\n[mfa.tenants]\nallowed = [\"totp\", \"passkey\"]\n\
         required = [\"passkey\"]\nminimum = 2\ngrace = \"90day\"\nadmin = { claim = \"cognito:groups\", value = \"admin\" }"
            .to_owned(),
        "version = 1\n[otp]\npurposes = [\"a\", \"b\", \"c\"]\nacr = \"mfa\"\nfactors = [\"b\"]\nsign_in = [\"a\"]".to_owned(),
        "version = 1\n[otp]\npurposes = [\"login\"]\nchannels = [\"sms\", \"email\", \"event\"]\nmessage = { en = \"{code}\", pt-BR = \"{code}\" }\n\
         subject = \"Your code\"\ndomain = \"login.example.com\"\ncaptcha = true"
            .to_owned(),
        "version = 1\n[otp]\npurposes = [\"login\", \"change-phone\"]\ncountries = [\"RO\", \"VN\"]\nregion = \"RO\"\ndigits = 10\nttl = \"10min\"\nattempts = 1\n\
         budget = \"100/30day\"\ncooldown = { first = \"1s\", factor = 1, most = \"1s\", forget = \"0s\" }"
            .to_owned(),
        "version = 1\n[edge]\nrules = [{ name = \"rate-all\", rate = \"2000/300s\" }]".to_owned(),
        EDGE.to_owned(),
    ];
    for text in valid {
        assert!(Policy::parse(&text).is_ok(), "{:?}", Policy::parse(&text));
        assert!(schema_accepts(&text), "{text}");
    }
}

#[test]
fn structural_mistakes_fail_both() {
    let limit = |rest: &str| format!("version = 1\n[limits.a]\nkey = [\"user\"]\nrate = \"5/15min\"\n{rest}\n");
    let route = |rest: &str| limit(&format!("[[routes]]\nmatch = \"GET /x\"\n{rest}"));
    let mut wrong: Vec<String> = [
        "",
        "version = 2",
        "version = \"1\"",
        "version = 1\nx = 1",
        "version = 1\nrevision = 0",
        "version = 1\ninstances = 0",
    ]
    .map(str::to_owned)
    .to_vec();
    wrong.extend(
        ["[edge]", "edge = { rules = [] }", "[routes]", "plans = {}", "plans = { names = [] }"]
            .map(|rest| format!("version = 1\n{rest}")),
    );
    wrong.extend(
        [
            "",
            "purposes = []",
            "purposes = [\"Login\"]",
            "purposes = [\"login\", \"login\"]",
            "purposes = \"login\"",
            "purposes = [\"login\"]\ncountries = [\"Ro\"]",
            "purposes = [\"login\"]\ncountries = \"RO\"",
            "purposes = [\"login\"]\nregion = \"romania\"",
            "purposes = [\"login\"]\nchannels = []",
            "purposes = [\"login\"]\nchannels = [\"fax\"]",
            "purposes = [\"login\"]\nmessage = \"\"",
            "purposes = [\"login\"]\nsubject = {}",
            "purposes = [\"login\"]\ndomain = \"Example.com\"",
            "purposes = [\"login\"]\ncaptcha = 1",
            "purposes = [\"login\"]\ndigits = 5",
            "purposes = [\"login\"]\ndigits = 11",
            "purposes = [\"login\"]\nattempts = 0",
            "purposes = [\"login\"]\nbudget = 10",
            "purposes = [\"login\"]\ncooldown = {}",
            "purposes = [\"login\"]\ncooldown = { first = \"1min\", extend = true }",
        ]
        .map(|rest| format!("version = 1\n[otp]\n{rest}")),
    );
    wrong.extend(
        [
            "scope = \"global\"",
            "stage = \"deny\"",
            "web_acl = \"a b\"",
            "prefix = \"aws-\"",
            "priority = -1",
            "base_paths = []",
            "base_paths = [\"/\"]",
            "base_paths = [\"prod\"]",
            "egress = { hq = [] }",
            "egress = { hq = [\"0.0.0.0/0\"] }",
            "egress = { HQ = [\"192.0.2.0/24\"] }",
            "forwarded = {}",
            "forwarded = { header = \"a b\" }",
            "forwarded = { header = \"x-real-ip\", if_invalid = \"count\" }",
            "bodies = { slow = { type = \"xml\", content = \"x\" } }",
            "bodies = { slow = { type = \"json\" } }",
            "bodies = { slow = { type = \"text\", content = \"\" } }",
            "headers = { Content-Type = \"text/plain\" }",
            "headers = { retry-after = \"5\" }",
            "headers = { \"a b\" = \"5\" }",
            "headers = { a = \"\" }",
            "logging = {}",
            "logging = { destination = \"arn:aws:s3:::my-logs\" }",
            "logging = { destination = \"arn:aws:s3:::aws-waf-logs-x\", keep = \"none\" }",
            "rule = []",
        ]
        .map(|line| format!("version = 1\n[edge]\nrules = [{{ name = \"a\", rate = \"100/5min\" }}]\n{line}")),
    );
    wrong.extend(
        [
            "rate = \"100/5min\"",
            "name = \"a\"",
            "name = \"A\", rate = \"100/5min\"",
            "name = \"a\", rate = \"9/5min\"",
            "name = \"a\", rate = \"100/h\"",
            "name = \"a\", rate = \"100/3min\"",
            "name = \"a\", rate = \"100/5min\", paths = []",
            "name = \"a\", rate = \"100/5min\", paths = [\"/\"]",
            "name = \"a\", rate = \"100/5min\", paths = [\"api\"]",
            "name = \"a\", rate = \"100/5min\", paths = [\"/a%2f\"]",
            "name = \"a\", rate = \"100/5min\", paths = [\"/a\", \"/a\"]",
            "name = \"a\", rate = \"100/5min\", except = {}",
            "name = \"a\", rate = \"100/5min\", stage = \"captcha\", retry_after = \"1min\"",
            "name = \"a\", rate = \"100/5min\", priority = \"1\"",
            "name = \"a\", rate = \"100/5min\", limit = 1",
        ]
        .map(|rule| format!("version = 1\n[edge]\nrules = [{{ {rule} }}]")),
    );
    wrong.extend(
        [
            "",
            "issuer = \"\"",
            "issuer = \"a:b\"",
            "issuer = \"a\"\nacr = \"\"",
            "issuer = \"a\"\nmax_age = 5",
            "issuer = \"a\"\naudit_retention = 400",
        ]
        .map(|rest| format!("version = 1\n[mfa]\n{rest}")),
    );
    wrong.extend(
        [
            "",
            "rp_id = \"a.x\"",
            "rp_id = \"https://a.x\"\norigins = [\"https://a.x\"]",
            "rp_id = \"A.x\"\norigins = [\"https://a.x\"]",
            "rp_id = \"a.x\"\norigins = []",
            "rp_id = \"a.x\"\norigins = [\"http://a.x\"]",
            "rp_id = \"a.x\"\norigins = [\"https://a.x/\"]",
            "rp_id = \"a.x\"\norigins = [\"https://a.x\"]\nuser_verification = \"discouraged\"",
            "rp_id = \"a.x\"\norigins = [\"https://a.x\"]\ntimeout = 300",
        ]
        .map(|rest| format!("version = 1\n[mfa]\nissuer = \"a\"\n[mfa.passkeys]\n{rest}")),
    );
    wrong.extend(
        [
            "x = 1",
            "allowed = [\"fax\"]",
            "required = \"totp\"",
            "minimum = 3",
            "grace = 7",
            "admin = \"admin\"",
            "admin = { claim = \"role\" }",
            "admin = { claim = \"role\", value = \"a b\" }",
        ]
        .map(|rest| format!("version = 1\n[mfa]\nissuer = \"a\"\n[mfa.tenants]\n{rest}")),
    );
    wrong.extend(
        ["acr = \"mfa\"", "factors = [\"a\"]", "sign_in = [\"a b\"]", "sign_in = [\"a\", \"a\"]"]
            .map(|rest| format!("version = 1\n[otp]\npurposes = [\"a\"]\n{rest}")),
    );
    wrong.extend(
        ["key = \"user\"", "key = []", "key = [\"User\"]", "key = [5]", "key = [\"user ??\"]", ""]
            .map(|key| format!("version = 1\n[limits.a]\nrate = \"5/h\"\n{key}")),
    );
    wrong.extend(
        ["rate = 5", "rate = \"5\"", "rate = \"0/h\"", "rate = \"-5/h\"", "rate = \"1/month\"", "rate = \"1_0/s\"", ""]
            .map(|rate| format!("version = 1\n[limits.a]\nkey = [\"user\"]\n{rate}")),
    );
    wrong.extend(
        [
            "burst = 0",
            "burst = \"5\"",
            "burst = 1.5",
            "algorithm = \"quota\"",
            "count = \"successes\"",
            "on_success = \"clear\"",
            "count = \"failures\"\non_success = \"clear\"",
            "count = \"failures\"\non_success = \"forget\"",
            "count = \"all\"\non_success = \"keep\"",
            "algorithm = \"pacer\"\ncount = \"failures\"",
            "algorithm = \"pacer\"\nrefund_on = \"5xx\"",
            "refund_on = [\"5xx\"]",
            "algorithm = \"pacer\"\ndebt = 5",
            "algorithm = \"sliding-log\"\ndebt = 5",
            "algorithm = \"sliding-log\"\nburst = 5",
            "debt = -1",
            "zone = \"UTC\"",
            "delay = 1",
            "max_wait = \"2s\"",
            "algorithm = \"pacer\"\nburst = -1",
            "algorithm = \"pacer\"\nburst = 5\ndelay = \"5\"",
            "algorithm = \"pacer\"\nmax_wait = 2",
            "algorithm = \"pacer\"\nmax_wait = \"2\"",
            "headers = \"none\"",
            "mode = \"silent\"",
            "own_item = \"no\"",
            "lease = 0",
            "lease = \"5\"",
            "lease = 5\nalgorithm = \"pacer\"",
            "lease = 5\nalgorithm = \"sliding-log\"",
            "lease = 5\npenalty = { first = \"1min\" }",
            "lease = 5\ndebt = 5",
            "lease = 5\nplans.a = { rate = \"1/s\", debt = 5 }\n[plans]\nnames = [\"a\"]",
            "lease = 5\nrefund_on = \"5xx\"",
            "lease = 5\ncount = \"failures\"",
            "lease = 5\natomic = true",
            "lease = 5\nown_item = false",
            "lease = 5\nmode = \"shadow\"",
            "lease = 5\ncoalesce = false",
            "coalesce = \"off\"",
            "deny_cache = 0",
            "atomic = 1",
            "shards = 1",
            "shards = 101",
            "shards = \"5\"",
            "shards = 5\nown_item = false",
            "shards = 5\natomic = true",
            "shards = 5\nlease = 10",
            "shards = 5\npenalty = { first = \"1min\" }",
            "shards = 5\nalgorithm = \"pacer\"",
            "shards = 5\nalgorithm = \"sliding-log\"",
            "on_store_failure = \"cached\"",
            "on_change = \"x\"",
            "message = 5",
            "message = \"\"",
            "message = {}",
            "upgrade_url = \"billing\"",
            "plans.pro = { burst = 5 }",
            "plans.pro = { rate = \"5/h\", cost = 1 }",
            "identity.user = \"sub\"",
            "brust = 5",
        ]
        .map(limit),
    );
    wrong.extend(
        [
            "user = \"sub\"",
            "user = \"claims.\"",
            "user = { fold = \"email\" }",
            "user = { body = \"a\", from = \"claims.sub\" }",
            "user = { body = \"a\", fold = \"Email\" }",
            "user = { body = \"a\", fold = \"email\", region = \"IN\" }",
            "user = { body = \"a\", region = \"IN\" }",
            "user = { body = \"a\", fold = \"phone\", region = \"in\" }",
            "user = { body = \"a\", fold = \"phone\", personal = false }",
            "user = { body = \"a\", personal = 1 }",
            "tenant = { from = \"claims.t\", log = \"yes\" }",
            "client_ip = { trusted_hops = 1, header = \"a b\" }",
            "client_ip = \"header.x\"",
            "client_ip = { cookie = \"d\", bound_to = \"user\" }",
            "plan = { cookie = \"d\", bound_to = \"user\" }",
            "everyone = \"claims.sub\"",
            "d = { cookie = \"d\" }",
            "d = { bound_to = \"user\" }",
            "d = { cookie = \"a b\", bound_to = \"user\" }",
            "d = { cookie = \"d\", bound_to = \"user\", max_age = 90 }",
            "d = { cookie = \"d\", bound_to = \"user\", max_age = \"90\" }",
            "d = { cookie = \"d\", bound_to = \"user\", fold = \"email\" }",
            "client_ip = { ipv6_prefix = 129 }",
            "client_ip = { trusted_hops = 1, trusted_proxies = [\"::/0\"] }",
            "User = \"claims.sub\"",
            "user = {}",
        ]
        .map(|line| limit(&format!("[identity]\n{line}"))),
    );
    wrong.extend(
        [
            "",
            "charge = \"a\"",
            "charge = []",
            "charge = [{ cost = 1 }]",
            "charge = [{ limit = \"a\", cost = 0 }]",
            "charge = [{ limit = \"a\", n = 1 }]",
            "charge = [{ limit = \"a\", settle_within = 60 }]",
            "charge = [{ limit = \"a\", settle_within = \"a minute\" }]",
            "charge = [\"a\"]\nstep_up = {}",
            "charge = [\"a\"]\nstep_up = { max_age = \"5min\", acr = [] }",
            "charge = [\"a\"]\nstep_up = { max_age = \"5min\", acr = [\"a b\"] }",
            "charge = [\"a\"]\nstep_up = { max_age = 300 }",
            "charge = [\"a\"]\non_store_failure = \"cached\"",
        ]
        .map(route),
    );
    wrong.extend(
        [
            "legacy_headers = [\"Limit\"]",
            "legacy_headers = [\"RateLimit\", \"RateLimit\"]",
            "cors = true",
            "cors = {}",
            "cors = { origins = [] }",
            "cors = { origins = [\"*\", \"https://a.example\"] }",
            "cors = { origins = [\"https://a.example/\"] }",
            "cors = { origins = [\"https://A.example\"] }",
            "cors = { origins = [\"a.example\"] }",
            "cors = { origins = [\"*\"], credentials = true }",
            "hsts = true",
        ]
        .map(|line| limit(&format!("[http]\n{line}"))),
    );
    wrong.push(route("charge = [\"a\"]\ncors = \"off\""));
    wrong.push(limit("[[exempt]]\nmatch = \"GET /x\""));
    wrong.push(limit("[[exempt]]\nmatch = \"/x\"\nwhy = \"x\""));
    wrong.push(limit("").replace("limits.a", "limits.\"a b\""));
    for text in wrong {
        assert!(Policy::parse(&text).is_err(), "the parser accepts\n{text}");
        assert!(!schema_accepts(&text), "the schema accepts\n{text}");
    }
}
