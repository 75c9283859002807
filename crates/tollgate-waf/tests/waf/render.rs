//! What a policy comes to.

use crate::{CLIENT, SAMPLE, acl, edge, rules, sent};
use serde_json::{Value, json};
use std::collections::{BTreeSet, HashMap};
use std::net::IpAddr;
use tollgate_policy::Edge;
use tollgate_waf::evaluate::{Request, Truth};
use tollgate_waf::{capacity, check, output};

/// The sample with its stage changed.
fn at_stage(stage: &str) -> Value {
    sent(&acl(&SAMPLE.replace("stage   = \"count\"", &format!("stage   = \"{stage}\""))))
}

#[test]
fn the_sample_counts_by_address_on_all_paths_and_on_those_of_sign_in() {
    let sent = at_stage("count");
    let rules = sent["Rules"].as_array().unwrap();
    let figures = |i: usize| {
        let rate = &rules[i]["Statement"]["RateBasedStatement"];
        (
            rules[i]["Name"].as_str().unwrap(),
            rules[i]["Priority"].as_u64(),
            rate["Limit"].as_u64(),
            rate["EvaluationWindowSec"].as_u64(),
        )
    };
    assert_eq!(figures(0), ("tollgate-rate-all", Some(40), Some(2000), Some(300)));
    assert_eq!(figures(1), ("tollgate-rate-auth", Some(41), Some(100), Some(300)));
    assert!(rules.iter().all(|rule| rule["Statement"]["RateBasedStatement"]["AggregateKeyType"] == "IP"));
    assert_eq!((&sent["DefaultAction"], &sent["Scope"]), (&json!({ "Allow": {} }), &json!("REGIONAL")));
}

#[test]
fn a_stage_is_an_action_and_a_block_is_a_429_that_says_when_to_return() {
    for (stage, action) in [("count", "Count"), ("captcha", "Captcha"), ("challenge", "Challenge")] {
        let sent = at_stage(stage);
        assert_eq!(sent["Rules"][0]["Action"], json!({ action: {} }));
        assert!(sent["CustomResponseBodies"].is_null(), "bodies that nobody answers with");
    }
    let sent = at_stage("block");
    let response = &sent["Rules"][1]["Action"]["Block"]["CustomResponse"];
    assert_eq!(response["ResponseCode"], 429);
    let headers = json!([{ "Name": "retry-after", "Value": "300" }, { "Name": "cache-control", "Value": "no-store" }]);
    assert_eq!(response["ResponseHeaders"], headers);
    let body = &sent["CustomResponseBodies"][response["CustomResponseBodyKey"].as_str().unwrap()];
    let content: Value = serde_json::from_str(body["Content"].as_str().unwrap()).unwrap();
    assert_eq!(
        (body["ContentType"].as_str(), content["error"].as_str()),
        (Some("APPLICATION_JSON"), Some("rate_limited"))
    );
}

#[test]
fn an_egress_set_is_left_out_by_its_addresses_and_each_version_is_a_set() {
    let text = edge(
        "[edge]\negress = { hq = [\"203.0.113.0/24\", \"2001:db8:1::/48\"], lab = [\"192.0.2.7/32\"] }\n\
         rules = [{ name = \"all\", rate = \"100/min\", except = { egress = [\"hq\"] } }]",
    );
    let names: Vec<_> = acl(&text).ip_sets.iter().map(|set| set.name.clone()).collect();
    assert_eq!(names, ["tollgate-hq-ipv4", "tollgate-hq-ipv6"], "what no rule names is not made");
    let rules = rules(&text);
    let counts =
        |address: &str| rules.counts("tollgate-all", &Request::new("GET", "/", address.parse::<IpAddr>().unwrap()));
    assert_eq!([counts("203.0.113.9"), counts("2001:db8:1::1")], [Some(Truth::No); 2]);
    assert_eq!([counts(CLIENT), counts("192.0.2.7"), counts("2001:db8:2::1")], [Some(Truth::Yes); 3]);
}

#[test]
fn what_stands_before_a_path_neither_hides_it_nor_makes_it_exempt() {
    let rules = rules(&SAMPLE.replace("[edge]\n", "[edge]\nbase_paths = [\"/Prod\", \"/v1\"]\n"));
    let counts = |rule: &str, method: &str, path: &str| {
        rules.counts(rule, &Request::new(method, path, CLIENT.parse::<std::net::IpAddr>().unwrap())) == Some(Truth::Yes)
    };
    for base in ["", "/Prod", "/v1", "/prod", "//Prod", "/x/../Prod"] {
        assert!(counts("tollgate-rate-auth", "POST", &format!("{base}/api/auth/login")), "{base}");
    }
    assert!(!counts("tollgate-rate-auth", "POST", "/v2/api/auth"));
    for base in ["", "/Prod", "/v1"] {
        assert!(!counts("tollgate-rate-all", "POST", &format!("{base}/webhooks/payments")), "{base}");
    }
    for base in ["/prod", "//v1", "/v2", "/Prod/v1"] {
        assert!(counts("tollgate-rate-all", "POST", &format!("{base}/webhooks/payments")), "{base}");
    }
}

#[test]
fn nobody_is_exempt_for_sending_no_address() {
    let rules = rules(&edge(
        "[edge]\negress = { hq = [\"203.0.113.0/24\"] }\nforwarded = { header = \"X-Real-IP\" }\n\
         rules = [{ name = \"all\", rate = \"100/min\", except = { egress = [\"hq\"] } }]",
    ));
    let counts = |value: &str| {
        let request = Request::new("GET", "/", CLIENT.parse::<IpAddr>().unwrap()).header("X-Real-IP", value);
        rules.counts("tollgate-all", &request)
    };
    assert_eq!(
        [counts("203.0.113.9"), counts("198.51.100.1"), counts("garbage"), counts("")],
        [Some(Truth::No), Some(Truth::Yes), Some(Truth::Yes), Some(Truth::Yes)]
    );
}

#[test]
fn several_exemptions_and_sets_are_left_out_together() {
    // terraform-aws-waf#131: with several exempt paths the scope-down was malformed.
    for n in 0..5 {
        let exempt: String =
            (0..n).map(|i| format!("[[exempt]]\nmatch = \"POST /hooks/{i}\"\nwhy = \"signed\"\n")).collect();
        let text = edge(&format!("{exempt}[edge]\nrules = [{{ name = \"all\", rate = \"100/min\" }}]"));
        assert_eq!(check::acl(&sent(&acl(&text))), Vec::<String>::new());
        let rules = rules(&text);
        for i in 0..5 {
            let request = Request::new("POST", &format!("/hooks/{i}"), CLIENT.parse::<IpAddr>().unwrap());
            assert_eq!(rules.counts("tollgate-all", &request), Some(if i < n { Truth::No } else { Truth::Yes }));
        }
    }
}

#[test]
fn names_that_a_template_spells_alike_stay_apart() {
    // enterprise-installer PR#161: two paths whose slugs were the same made one rule.
    let text = edge(
        "[edge]\negress = { a-b = [\"192.0.2.1/32\"], ab = [\"192.0.2.2/32\"], a_b = [\"192.0.2.3/32\"] }\n\
         rules = [{ name = \"r-1\", rate = \"10/min\", except = { egress = [\"a-b\", \"ab\", \"a_b\"] } }, { name = \"r1\", rate = \"10/min\" }]",
    );
    let acl = acl(&text);
    let template = output::template(&acl);
    let resources = template["Resources"].as_object().unwrap();
    let sets: Vec<_> = resources.iter().filter(|(_, of)| of["Type"] == "AWS::WAFv2::IPSet").collect();
    assert_eq!(sets.len(), 3, "{:?}", resources.keys());
    assert!(resources.keys().all(|id| id.bytes().all(|b| b.is_ascii_alphanumeric())));
    let folded: BTreeSet<_> = resources.keys().map(|id| id.to_ascii_lowercase()).collect();
    assert_eq!(folded.len(), resources.len());
    let names: BTreeSet<_> = acl.rules.iter().map(|rule| &rule.name).collect();
    assert_eq!(names.len(), 2);
}

/// A template's JSON with the API's spelling, as far as rules go.
fn as_api(value: &Value) -> Value {
    use base64::Engine as _;
    match value {
        Value::Object(map) => map
            .iter()
            .map(|(key, value)| match key.as_str() {
                "SearchString" => {
                    (key.clone(), base64::engine::general_purpose::STANDARD.encode(value.as_str().unwrap()).into())
                }
                "Arn" => ("ARN".to_owned(), json!("set")),
                "ARN" => (key.clone(), json!("set")),
                _ => (key.clone(), as_api(value)),
            })
            .collect(),
        Value::Array(list) => list.iter().map(as_api).collect(),
        other => other.clone(),
    }
}

fn camel(key: &str) -> String {
    let key = key.replace("IP", "Ip").replace("ACL", "Acl");
    key[..1].to_ascii_lowercase() + &key[1..]
}

#[test]
fn a_template_the_cdk_and_the_api_get_the_same_rules() {
    let acl = acl(&SAMPLE.replace("stage   = \"count\"", "stage   = \"block\""));
    let api = sent(&acl);
    let ids = |value: &Value| {
        // What is sent has base64 already; only the references are evened out.
        fn refs(value: &Value) -> Value {
            match value {
                Value::Object(map) => {
                    map.iter().map(|(k, v)| (k.clone(), if k == "ARN" { json!("set") } else { refs(v) })).collect()
                }
                Value::Array(list) => list.iter().map(refs).collect(),
                other => other.clone(),
            }
        }
        refs(value)
    };
    let template = output::template(&acl);
    let resource = &template["Resources"]["EdgeWebAcl"]["Properties"];
    for key in ["Name", "Scope", "DefaultAction", "Rules", "CustomResponseBodies", "VisibilityConfig", "Tags"] {
        assert_eq!(as_api(&resource[key]), ids(&api[key]), "{key}");
    }
    fn keys(value: &Value, change: fn(&str) -> String) -> BTreeSet<String> {
        match value {
            Value::Object(map) => {
                map.iter().flat_map(|(k, v)| std::iter::once(change(k)).chain(keys(v, change))).collect()
            }
            Value::Array(list) => list.iter().flat_map(|v| keys(v, change)).collect(),
            _ => BTreeSet::new(),
        }
    }
    let props = output::props(&acl);
    let mut expected = keys(&resource["Rules"], camel);
    expected.remove("fn::GetAtt");
    assert_eq!(keys(&props["webAcl"]["rules"], str::to_owned), expected);
    assert!(props["webAcl"]["customResponseBodies"]["tollgate-rate-limited"]["contentType"].is_string());
}

#[test]
fn what_the_cdk_takes_as_any_json_has_the_keys_of_cloudformation() {
    // `singleHeader` and `loggingFilter` are `any` of the constructs: what is in them goes into the template as it is.
    let destination = "arn:aws:logs:eu-central-1:111122223333:log-group:aws-waf-logs-x";
    let acl = acl(&SAMPLE.replace("[edge]\n", &format!("[edge]\nlogging = {{ destination = \"{destination}\" }}\n")));
    let template = output::template(&acl);
    let (logging, props) =
        (&template["Resources"]["EdgeLogging"]["Properties"], output::props(&acl)["logging"].clone());
    assert_eq!(props["loggingFilter"], logging["LoggingFilter"]);
    assert_eq!(props["logDestinationConfigs"], json!([destination]));
    let headers = |list: &Value, field: &str| -> Vec<Value> {
        list.as_array().unwrap().iter().map(|of| of[field]["Name"].clone()).filter(|name| !name.is_null()).collect()
    };
    let secret = [json!("authorization"), json!("cookie"), json!("x-api-key")];
    assert_eq!(headers(&logging["RedactedFields"], "SingleHeader"), secret);
    assert_eq!(headers(&props["redactedFields"], "singleHeader"), secret);
}

#[test]
fn a_log_group_is_told_days_that_it_can_keep() {
    let parameter = output::template(&acl(SAMPLE))["Parameters"]["EdgeLogDays"].clone();
    let allowed = parameter["AllowedValues"].as_array().unwrap();
    assert!(
        allowed.contains(&parameter["Default"]) && allowed.contains(&json!("30")) && !allowed.contains(&json!("31"))
    );
}

#[test]
fn yaml_is_the_same_document() {
    let acl = acl(SAMPLE);
    for value in
        [output::template(&acl), json!({ "a": [], "b": {}, "c": [[1, [2]], { "d": null }], "e f": "\n\u{e9}\"#: " })]
    {
        assert_eq!(read_yaml(&output::yaml(&value)), value);
    }
}

/// The little of YAML that is written: blocks whose leaves are JSON.
fn read_yaml(text: &str) -> Value {
    let lines: Vec<(usize, String)> =
        text.lines().map(|line| (line.len() - line.trim_start().len(), line.trim_start().to_owned())).collect();
    let mut rest = std::collections::VecDeque::from(lines);
    read_block(&mut rest)
}

fn read_block(rest: &mut std::collections::VecDeque<(usize, String)>) -> Value {
    let Some((depth, first)) = rest.front().cloned() else { return Value::Null };
    if first.starts_with('-') {
        let mut list = Vec::new();
        while let Some((at, line)) = rest.front().cloned().filter(|(at, line)| *at == depth && line.starts_with('-')) {
            rest.pop_front();
            let inner = line[1..].trim_start().to_owned();
            rest.push_front((at + 2, inner));
            list.push(read_block(rest));
        }
        return list.into();
    }
    if let Some((key, value)) = key_of(&first) {
        let mut map = serde_json::Map::new();
        let mut next = Some((key, value));
        while let Some((key, value)) = next {
            rest.pop_front();
            let value = if value.is_empty() { read_block(rest) } else { serde_json::from_str(&value).unwrap() };
            map.insert(key, value);
            next = rest.front().filter(|(at, _)| *at == depth).and_then(|(_, line)| key_of(line));
        }
        return map.into();
    }
    rest.pop_front();
    serde_json::from_str(&first).unwrap()
}

fn key_of(line: &str) -> Option<(String, String)> {
    let (key, value) = match line.strip_prefix('"') {
        Some(quoted) => {
            let (key, value) = quoted.split_once("\":")?;
            (serde_json::from_str::<String>(&format!("\"{key}\"")).ok()?, value)
        }
        None => {
            let (key, value) = line.split_once(':')?;
            (key.to_owned(), value)
        }
    };
    key.bytes().all(|b| b != b'{' && b != b'[').then(|| (key, value.trim().to_owned()))
}

#[test]
fn units_are_counted_by_the_guide_and_the_sample_is_well_within_the_price() {
    let units = |rest: &str| {
        capacity::of(
            &acl(&edge(
                &format!("{rest}\n[edge]\nrules = [{{ name = \"a\", rate = \"10/min\", RULE }}]").replace(", RULE", ""),
            ))
            .rules,
        )
    };
    assert_eq!(units(""), 2);
    assert_eq!(units("[[exempt]]\nmatch = \"GET /healthz\"\nwhy = \"x\""), 2 + 2 + 2);
    let with_path = acl(&edge("[edge]\nrules = [{ name = \"a\", rate = \"10/min\", paths = [\"/a\"] }]"));
    // Two string matches and three expressions; each chain of three transformations is paid for once.
    assert_eq!(capacity::of(&with_path.rules), 2 + 2 * 2 + 3 * 3 + 2 * 30);
    assert!(capacity::of(&acl(SAMPLE).rules) < capacity::INCLUDED / 4);
}

/// Another project reads the rules and weighs each statement by itself, a transformation each time and `NONE` as one: never less than ours.
#[test]
fn another_reading_of_the_api_takes_the_rules_and_finds_no_fewer_units_than_that() {
    for stage in ["count", "block", "captcha", "challenge"] {
        let acl = acl(&SAMPLE.replace("stage   = \"count\"", &format!("stage   = \"{stage}\"")));
        let rules = winterbaume_wafv2_webacl_rule_parser::parse_rules(&sent(&acl)["Rules"]).unwrap();
        assert_eq!(rules.len(), acl.rules.len());
        let theirs = winterbaume_wafv2_wcu_calculator::calculate_capacity(&rules, &HashMap::new()).unwrap();
        assert!((capacity::of(&acl.rules)..capacity::INCLUDED).contains(&theirs), "{theirs}");
    }
    let one = acl(&edge("[edge]\nrules = [{ name = \"a\", rate = \"10/min\" }]"));
    let rules = winterbaume_wafv2_webacl_rule_parser::parse_rules(&sent(&one)["Rules"]).unwrap();
    let theirs = winterbaume_wafv2_wcu_calculator::calculate_capacity(&rules, &HashMap::new()).unwrap();
    assert_eq!(theirs, capacity::of(&one.rules), "where nothing is shared");
}

#[test]
fn rules_that_take_more_than_an_acl_has_are_found() {
    let paths: Vec<String> = (0..400).map(|i| format!("\"/p{i}\"")).collect();
    let text =
        edge(&format!("[edge]\nrules = [{{ name = \"a\", rate = \"10/min\", paths = [{}] }}]", paths.join(", ")));
    assert_eq!(check::rendered(&acl(SAMPLE)), Vec::<String>::new());
    let found = check::rendered(&acl(&text));
    assert!(found.iter().all(|found| found.contains("capacity units")), "{found:?}");
    assert_eq!(found.is_empty(), capacity::of(&acl(&text).rules) <= capacity::MOST);
    let more: Vec<String> = (0..600).map(|i| format!("\"/p{i}\"")).collect();
    assert_eq!(check::rendered(&acl(&text.replace(&paths.join(", "), &more.join(", ")))).len(), 1);
}

#[test]
fn what_waf_would_refuse_is_found() {
    let good = || sent(&acl(&SAMPLE.replace("stage   = \"count\"", "stage   = \"block\"")));
    assert_eq!(check::acl(&good()), Vec::<String>::new());
    let long = "x".repeat(4097);
    let changes: [(&str, Value, &str); 13] = [
        ("/Rules/1/Name", json!("tollgate-rate-all"), "same name"),
        ("/Rules/1/Priority", json!(40), "same priority"),
        ("/Rules/0/Statement/RateBasedStatement/Limit", json!(9), "a limit of 9"),
        ("/Rules/0/Statement/RateBasedStatement/Limit", json!(2_000_000_001_u64), "a limit of 2000000001"),
        ("/Rules/0/Statement/RateBasedStatement/EvaluationWindowSec", json!(90), "a window of 90"),
        ("/Rules/0/Statement/RateBasedStatement/AggregateKeyType", json!("FORWARDED_IP"), "names no header"),
        (
            "/Rules/0/Statement/RateBasedStatement/ScopeDownStatement",
            json!({ "AndStatement": { "Statements": [] } }),
            "0 statements",
        ),
        (
            "/Rules/0/Statement/RateBasedStatement/ScopeDownStatement",
            json!({ "RegexMatchStatement": { "RegexString": "x".repeat(513) } }),
            "513 characters",
        ),
        (
            "/Rules/0/Statement/RateBasedStatement/ScopeDownStatement",
            json!({ "ByteMatchStatement": { "SearchString": "eHh4".repeat(67) } }),
            "201 bytes",
        ),
        ("/Rules/0/Action/Block/CustomResponse/CustomResponseBodyKey", json!("gone"), "no body \"gone\""),
        ("/Rules/0/Action/Block/CustomResponse/ResponseHeaders/0/Name", json!("Content-Type"), "content-type"),
        ("/CustomResponseBodies/tollgate-rate-limited/Content", json!(long), "4097 bytes"),
        (
            "/Rules/0/Action/Block/CustomResponse/ResponseHeaders",
            vec![json!({ "Name": "x", "Value": "y" }); 11].into(),
            "11 header fields",
        ),
    ];
    for (place, value, says) in changes {
        let mut acl = good();
        *acl.pointer_mut(place).unwrap_or_else(|| panic!("{place}")) = value;
        let found = check::acl(&acl);
        assert!(found.len() == 1 && found[0].contains(says), "{place}: {found:?}");
    }
    let mut many = good();
    let rule = many["Rules"][0].clone();
    many["Rules"] = (0..11)
        .map(|i| {
            let mut rule = rule.clone();
            rule["Name"] = json!(format!("r{i}"));
            rule["Priority"] = json!(i);
            rule
        })
        .collect();
    assert_eq!(check::acl(&many), ["11 rate-based rules, and an ACL has 10 at most"]);
}

#[test]
fn the_longest_path_that_a_policy_takes_is_an_expression_that_waf_takes_or_a_finding() {
    let of = |path: &str| {
        check::acl(&sent(&acl(&edge(&format!(
            "[edge]\nrules = [{{ name = \"a\", rate = \"10/min\", paths = [\"{path}\"] }}]"
        )))))
    };
    assert_eq!(of(&format!("/{}", "a".repeat(Edge::MOST_PATH_BYTES - 2))), Vec::<String>::new());
    assert!(of(&"/a".repeat(40)).iter().all(|found| found.contains("fewer segments")));
    assert!(!of(&"/a".repeat(40)).is_empty());
}

#[test]
fn a_name_that_is_too_long_behind_the_prefix_is_found() {
    let of = |length: usize| {
        let (prefix, name) = ("p".repeat(60), "n".repeat(length));
        let text = format!(
            "[edge]\nprefix = '{prefix}'\nstage = 'block'\negress = {{ {name} = ['192.0.2.0/24'] }}\n\
             bodies = {{ {name} = {{ type = 'text', content = 'x' }} }}\n\
             rules = [{{ name = 'a', rate = '10/min', body = '{name}', except = {{ egress = ['{name}'] }} }}]"
        );
        check::rendered(&acl(&edge(&text)))
    };
    // `-ipv4` comes behind that of a set.
    assert_eq!((of(63), of(64).len(), of(69).len()), (Vec::new(), 1, 2));
    assert!(of(64)[0].contains("128 at most"), "{:?}", of(64));
}

#[test]
fn an_acl_is_put_only_on_what_takes_one() {
    let rest = "arn:aws:apigateway:eu-central-1::/restapis/abc/stages/prod";
    let balancer = "arn:aws:elasticloadbalancing:eu-central-1:111122223333:loadbalancer/app/a/b";
    let app = "arn:aws:amplify:eu-central-1:111122223333:apps/d1";
    assert_eq!([check::resource(rest, false), check::resource(balancer, false), check::resource(app, true)], [None; 3]);
    for (arn, is_cloudfront, says) in [
        ("arn:aws:apigateway:eu-central-1::/apis/abc/stages/prod", false, "HTTP APIs"),
        ("arn:aws:lambda:eu-central-1:111122223333:function:f", false, "function URLs"),
        (rest, true, "name it themselves"),
        (app, false, "an Amplify app takes"),
        ("arn:aws:cloudfront::111122223333:distribution/E1", false, "scope = \"cloudfront\""),
        ("arn:aws:s3:::bucket", false, "not the ARN"),
        ("x", false, "not the ARN"),
    ] {
        assert!(check::resource(arn, is_cloudfront).is_some_and(|why| why.contains(says)), "{arn}");
    }
}
