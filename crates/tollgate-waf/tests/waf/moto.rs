//! An ACL on moto, an emulator that others wrote (`TOLLGATE_MOTO_ENDPOINT`; CI starts one), by the SDK.

use crate::{SAMPLE, acl, bypass, client};
use serde_json::{Value, json};
use std::net::IpAddr;
use std::sync::Mutex;
use std::time::Duration;
use tollgate_dynamodb::connect::Connection;
use tollgate_waf::aws::AwsWaf;
use tollgate_waf::converge::{Failure, Operation, Patience, Waf, Wanted, apply, destroy, plan, status};
use tollgate_waf::evaluate::{Assumptions, Request, Rules, Truth};

const STAGE: &str = "arn:aws:apigateway:us-east-1::/restapis/abc/stages/prod";

fn quiet(_: &str) {}

async fn moto() -> Option<AwsWaf> {
    let Ok(endpoint) = std::env::var("TOLLGATE_MOTO_ENDPOINT") else {
        println!("skipped: TOLLGATE_MOTO_ENDPOINT names no moto server (pip install 'moto[server]'; moto_server)");
        return None;
    };
    Some(AwsWaf::connect(&Connection::from_environment().endpoint_url(endpoint)).await.unwrap())
}

fn patience() -> Patience {
    let mut patience = Patience::default();
    (patience.between_writes, patience.first_wait) = (Duration::ZERO, Duration::from_millis(1));
    patience
}

/// The sample in an ACL and under a prefix of its own, so that tests and runs do not meet.
fn wanted(name: &str, change: (&str, &str)) -> Wanted {
    let name = format!("{name}-{}", std::process::id());
    let text = SAMPLE
        .replace("web_acl = \"tollgate\"", &format!("web_acl = \"{name}\"\nprefix = \"{name}-\""))
        .replace(change.0, change.1);
    Wanted::new(acl(&text), Vec::new())
}

const BLOCKING: (&str, &str) = ("stage   = \"count\"", "stage   = \"block\"");

async fn planned(waf: &impl Waf, wanted: &Wanted) -> Vec<String> {
    plan(waf, wanted, patience(), &quiet).await.unwrap().iter().map(ToString::to_string).collect()
}

async fn writes(waf: &impl Waf, wanted: &Wanted) -> u64 {
    apply(waf, wanted, patience(), &quiet).await.unwrap().writes
}

fn scope(wanted: &Wanted) -> &'static str {
    if wanted.acl.scope == tollgate_policy::EdgeScope::CloudFront { "CLOUDFRONT" } else { "REGIONAL" }
}

/// The ACL as the API has it, and what a write of it has to carry.
async fn read(waf: &impl Waf, wanted: &Wanted) -> (Value, Value) {
    let list = waf.call(Operation::ListWebAcls, json!({ "Scope": scope(wanted), "Limit": 100 })).await.unwrap();
    let list = list["WebACLs"].as_array().unwrap();
    let id = list.iter().find(|acl| acl["Name"] == wanted.acl.name.as_str()).unwrap()["Id"].clone();
    let input = json!({ "Name": wanted.acl.name, "Scope": scope(wanted), "Id": id });
    let answer = waf.call(Operation::GetWebAcl, input).await.unwrap();
    (answer["WebACL"].clone(), answer["LockToken"].clone())
}

/// Changes the ACL as its console would.
async fn edit(waf: &impl Waf, wanted: &Wanted, change: impl FnOnce(&mut Vec<Value>)) {
    let (acl, token) = read(waf, wanted).await;
    let mut rules = acl["Rules"].as_array().unwrap().clone();
    for rule in &mut rules {
        rule.as_object_mut().unwrap().retain(|_, value| !value.is_null());
    }
    change(&mut rules);
    let input = json!({
        "Name": acl["Name"], "Scope": scope(wanted), "Id": acl["Id"], "LockToken": token, "DefaultAction": acl["DefaultAction"],
        "VisibilityConfig": acl["VisibilityConfig"], "Rules": rules, "CustomResponseBodies": acl["CustomResponseBodies"],
    });
    waf.call(Operation::UpdateWebAcl, input).await.unwrap();
}

fn theirs(name: &str) -> Value {
    json!({
        "Name": name, "Priority": 5, "Action": { "Block": {} },
        "Statement": { "GeoMatchStatement": { "CountryCodes": ["AQ"] }, "KeyOfNextYear": { "a": [1] } },
        "VisibilityConfig": { "SampledRequestsEnabled": true, "CloudWatchMetricsEnabled": true, "MetricName": name },
    })
}

fn names(acl: &Value) -> Vec<&str> {
    acl["Rules"].as_array().unwrap().iter().map(|rule| rule["Name"].as_str().unwrap()).collect()
}

#[tokio::test]
async fn an_acl_is_made_once_and_drift_is_seen_and_mended() {
    let Some(waf) = moto().await else { return };
    let mut wanted = wanted("drift", BLOCKING);
    wanted.resources = vec![STAGE.replace("abc", &wanted.acl.name)];
    assert_eq!(planned(&waf, &wanted).await.len(), 5);
    assert_eq!(writes(&waf, &wanted).await, 3, "a set, an ACL, an association");
    assert_eq!((planned(&waf, &wanted).await, writes(&waf, &wanted).await), (vec![], 0));
    edit(&waf, &wanted, |rules| {
        rules.remove(1);
        rules[0]["Statement"]["RateBasedStatement"]["Limit"] = json!(3000);
    })
    .await;
    let differs = planned(&waf, &wanted).await;
    assert!(
        differs.len() == 2 && differs[0].contains("Limit 3000 -> 2000") && differs[1].starts_with("+ rule"),
        "{differs:?}"
    );
    assert_eq!(writes(&waf, &wanted).await, 1);
    assert_eq!(planned(&waf, &wanted).await, Vec::<String>::new());
    destroy(&waf, &wanted, patience(), &quiet).await.unwrap();
    assert_eq!(planned(&waf, &wanted).await.len(), 5);
}

#[tokio::test]
async fn logging_is_put_and_taken_away() {
    let Some(waf) = moto().await else { return };
    let logging = "[edge]\nlogging = { destination = \"arn:aws:s3:::aws-waf-logs-x\" }";
    let with = wanted("logging", ("[edge]", logging));
    writes(&waf, &with).await;
    assert_eq!(planned(&waf, &with).await, Vec::<String>::new());
    let without = wanted("logging", ("", ""));
    assert_eq!(planned(&waf, &without).await, ["- logging"]);
    assert_eq!((writes(&waf, &without).await, writes(&waf, &without).await), (1, 0));
    destroy(&waf, &without, patience(), &quiet).await.unwrap();
}

/// Somebody else writes just before our write, once.
struct Raced<'a> {
    waf: &'a AwsWaf,
    wanted: &'a Wanted,
    left: Mutex<u32>,
}

impl Waf for Raced<'_> {
    async fn call(&self, operation: Operation, input: Value) -> Result<Value, Failure> {
        let is_raced = operation == Operation::UpdateWebAcl && {
            let mut left = self.left.lock().unwrap();
            let is_left = *left > 0;
            *left = left.saturating_sub(1);
            is_left
        };
        if is_raced {
            edit(self.waf, self.wanted, |rules| rules.push(theirs("meanwhile"))).await;
        }
        self.waf.call(operation, input).await
    }
}

#[tokio::test]
async fn a_lock_token_that_went_stale_costs_nobody_a_rule() {
    let Some(waf) = moto().await else { return };
    let counting = wanted("race", ("", ""));
    writes(&waf, &counting).await;
    let blocking = wanted("race", BLOCKING);
    let raced = Raced { waf: &waf, wanted: &blocking, left: Mutex::new(1) };
    assert_eq!(writes(&raced, &blocking).await, 2, "one that was refused, and one from a new reading");
    let (acl, _) = read(&waf, &blocking).await;
    assert!(names(&acl).contains(&"meanwhile") && names(&acl).len() == 3, "{:?}", names(&acl));
    assert_eq!(planned(&waf, &blocking).await, Vec::<String>::new());
    // What is not ours stays, with what this build has never heard of.
    destroy(&waf, &blocking, patience(), &quiet).await.unwrap();
    let (acl, _) = read(&waf, &blocking).await;
    assert_eq!(names(&acl), ["meanwhile"]);
    assert_eq!(acl["Rules"][0]["Statement"], theirs("meanwhile")["Statement"]);
}

/// The rules that the API has, and the addresses of the sets that they name.
async fn read_back(waf: &impl Waf, wanted: &Wanted) -> Rules {
    let mut rules = Rules::of(&read(waf, wanted).await.0);
    let sets = waf.call(Operation::ListIpSets, json!({ "Scope": scope(wanted), "Limit": 100 })).await.unwrap();
    for set in sets["IPSets"].as_array().unwrap() {
        let input = json!({ "Name": set["Name"], "Scope": scope(wanted), "Id": set["Id"] });
        let Ok(answer) = waf.call(Operation::GetIpSet, input).await else { continue };
        let addresses = answer["IPSet"]["Addresses"].as_array().unwrap().iter();
        let addresses: Vec<String> = addresses.map(|address| address.as_str().unwrap().to_owned()).collect();
        rules = rules.with_ip_set(set["ARN"].as_str().unwrap(), addresses);
    }
    rules
}

#[tokio::test]
async fn nothing_gets_past_the_rules_that_are_read_back() {
    let Some(waf) = moto().await else { return };
    for scope in ["regional", "cloudfront"] {
        let mut wanted = wanted(&format!("bypass-{scope}"), ("\"regional\"", &format!("{scope:?}")));
        // The names that the properties know.
        for rule in &mut wanted.acl.rules {
            rule.name = rule.name.replace(&wanted.acl.prefix, "tollgate-");
        }
        wanted.acl.prefix = "tollgate-".to_owned();
        writes(&waf, &wanted).await;
        let rules = read_back(&waf, &wanted).await;
        bypass::nothing_gets_past(&[rules.clone(), rules.clone().assuming(Assumptions::ALL[3])], 3_000);
        let counts = |method: &str, path: &str, from: &str| {
            rules.counts("tollgate-rate-all", &Request::new(method, path, from.parse::<IpAddr>().unwrap()))
        };
        let client = client().to_string();
        assert_eq!(counts("POST", "/webhooks/payments", &client), Some(Truth::No));
        assert_eq!(counts("POST", "/webhooks/payments/", &client), Some(Truth::Yes));
        assert_eq!(counts("GET", "/", "203.0.113.9"), Some(Truth::No));
    }
}

#[tokio::test]
async fn what_the_emulator_does_not_have_is_told_and_nothing_else_fails() {
    let Some(waf) = moto().await else { return };
    let wanted = wanted("status", ("", ""));
    assert_eq!(status(&waf, &wanted, 1_767_225_600, patience(), &quiet).await.unwrap(), None);
    writes(&waf, &wanted).await;
    let rules = status(&waf, &wanted, 1_767_225_600, patience(), &quiet).await.unwrap().unwrap();
    assert_eq!(rules.len(), 2);
    let told = |why: &Result<Vec<String>, String>| why.as_ref().is_err_and(|why| why.starts_with("wafv2:Get"));
    assert!(rules.iter().all(|rule| told(&rule.limited)), "{rules:?}");
    destroy(&waf, &wanted, patience(), &quiet).await.unwrap();
}
