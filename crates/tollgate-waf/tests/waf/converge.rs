//! Bringing an ACL to what a policy says: nothing is written twice, nothing of others is lost, and what takes long is waited for.

use crate::fake::Fake;
use crate::{SAMPLE, acl};
use serde_json::{Value, json};
use std::sync::Mutex;
use std::time::Duration;
use tokio::time::Instant;
use tollgate_waf::converge::{Change, Error, Operation, Patience, Wanted, apply, destroy, plan, status};

const BALANCER: &str = "arn:aws:elasticloadbalancing:eu-central-1:111122223333:loadbalancer/app/a/b";
const ACL: &str = "tollgate";

fn quiet(_: &str) {}

fn wanted(policy: &str) -> Wanted {
    Wanted::new(acl(policy), Vec::new())
}

fn blocking() -> String {
    SAMPLE.replace("stage   = \"count\"", "stage   = \"block\"")
}

async fn applied(fake: &Fake, wanted: &Wanted) -> Vec<String> {
    let applied = apply(fake, wanted, Patience::default(), &quiet).await.unwrap();
    applied.changes.iter().map(ToString::to_string).collect()
}

async fn planned(fake: &Fake, wanted: &Wanted) -> Vec<String> {
    let changes = plan(fake, wanted, Patience::default(), &quiet).await.unwrap();
    changes.iter().map(ToString::to_string).collect()
}

fn theirs(name: &str, priority: u64) -> Value {
    json!({
        "Name": name, "Priority": priority, "Statement": { "StatementOfNextYear": { "Deep": [1, null, {}] } },
        "Action": { "Block": { "CustomResponse": { "ResponseCode": 403, "CustomResponseBodyKey": "theirs" } } },
    })
}

#[tokio::test(start_paused = true)]
async fn what_is_not_there_is_made_and_applied_again_writes_nothing() {
    // terraform-provider-aws#33124: a second apply without changes wrote again.
    let fake = Fake::default();
    let wanted = wanted(&blocking());
    let plan = planned(&fake, &wanted).await;
    assert!(fake.take_writes().is_empty(), "a plan writes nothing");
    assert_eq!(
        plan,
        ["+ IP set tollgate-hq-ipv4", "+ web ACL tollgate", "+ rule tollgate-rate-all", "+ rule tollgate-rate-auth"]
    );
    assert_eq!(applied(&fake, &wanted).await, plan);
    assert_eq!(fake.take_writes(), [Operation::CreateIpSet, Operation::CreateWebAcl]);
    let arn = fake.state(|state| state.ip_sets["tollgate-hq-ipv4"]["ARN"].as_str().unwrap().to_owned());
    assert!(
        fake.state(|state| state.acls[ACL]["Rules"].to_string().contains(&arn)),
        "rules name the set that was made"
    );
    assert_eq!((planned(&fake, &wanted).await, applied(&fake, &wanted).await), (vec![], vec![]));
    assert!(fake.take_writes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_means_the_same_is_not_written() {
    let fake = Fake::default();
    let wanted = wanted(&blocking());
    applied(&fake, &wanted).await;
    fake.take_writes();
    fake.state(|state| {
        state.edit(ACL, |acl| {
            for rule in acl["Rules"].as_array_mut().unwrap() {
                rule["OverrideAction"] = Value::Null;
                rule["RuleLabels"] = json!([]);
                let rate = &mut rule["Statement"]["RateBasedStatement"];
                rate["CustomKeys"] = Value::Null;
                rate.as_object_mut().unwrap().remove("EvaluationWindowSec");
                rate["ScopeDownStatement"]["AndStatement"]["Statements"].as_array_mut().unwrap().reverse();
                rule["Action"]["Block"]["CustomResponse"]["ResponseHeaders"].as_array_mut().unwrap().reverse();
            }
            acl["Rules"].as_array_mut().unwrap().reverse();
        });
    });
    assert_eq!(applied(&fake, &wanted).await, Vec::<String>::new());
    assert!(fake.take_writes().is_empty());
}

#[tokio::test(start_paused = true)]
async fn what_was_changed_or_removed_by_hand_is_drift_and_is_mended() {
    // cloudformation-coverage-roadmap#2276: rules that were removed in the console were not noticed.
    let fake = Fake::default();
    let wanted = wanted(&blocking());
    applied(&fake, &wanted).await;
    fake.state(|state| {
        state.edit(ACL, |acl| {
            acl["Rules"][0]["Statement"]["RateBasedStatement"]["Limit"] = json!(9_000);
            acl["Rules"].as_array_mut().unwrap().remove(1);
            acl["CustomResponseBodies"]["tollgate-rate-limited"]["Content"] = json!("x");
        });
        state.ip_sets.get_mut("tollgate-hq-ipv4").unwrap()["Addresses"] = json!(["198.51.100.0/24"]);
    });
    let plan = planned(&fake, &wanted).await;
    assert_eq!(
        plan,
        [
            "~ IP set tollgate-hq-ipv4: +203.0.113.0/24 -198.51.100.0/24",
            "~ rule tollgate-rate-all: Statement.RateBasedStatement.Limit 9000 -> 2000; it counts anew, and limits nobody for up to a minute",
            "+ rule tollgate-rate-auth",
            "~ bodies tollgate-rate-limited",
        ]
    );
    fake.take_writes();
    assert_eq!(applied(&fake, &wanted).await, plan);
    assert_eq!(fake.take_writes(), [Operation::UpdateIpSet, Operation::UpdateWebAcl]);
    assert!(planned(&fake, &wanted).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn another_action_does_not_cost_the_counts() {
    let fake = Fake::default();
    applied(&fake, &wanted(SAMPLE)).await;
    let changes = plan(&fake, &wanted(&blocking()), Patience::default(), &quiet).await.unwrap();
    let resets = changes.iter().filter_map(|change| match change {
        Change::ChangeRule { resets_counts, .. } => Some(*resets_counts),
        _ => None,
    });
    assert_eq!(resets.collect::<Vec<_>>(), [false, false]);
}

#[tokio::test(start_paused = true)]
async fn an_acl_of_others_keeps_all_that_is_theirs_and_what_this_build_does_not_know() {
    let fake = Fake::default();
    fake.others_acl(ACL, json!([theirs("theirs", 0), theirs("also-theirs", 90), theirs("tollgate-old", 91)]));
    let before = fake.state(|state| state.acls[ACL].clone());
    applied(&fake, &wanted(&blocking())).await;
    let after = fake.state(|state| state.acls[ACL].clone());
    assert_eq!(after["Rules"][0], before["Rules"][0]);
    assert_eq!(after["Rules"][1], before["Rules"][1]);
    let names = fake.state(|state| state.rule_names(ACL));
    assert_eq!(names, ["theirs", "also-theirs", "tollgate-rate-all", "tollgate-rate-auth"]);
    for key in ["DefaultAction", "VisibilityConfig", "TokenDomains", "SomethingNewer"] {
        assert_eq!(after[key], before[key], "{key}");
    }
    assert_eq!(after["CustomResponseBodies"]["theirs"], before["CustomResponseBodies"]["theirs"]);
    // And back: what is left is as it was, but for the rule that had our prefix.
    destroy(&fake, &wanted(&blocking()), Patience::default(), &quiet).await.unwrap();
    let left = fake.state(|state| state.acls[ACL].clone());
    assert_eq!(left["Rules"], json!([before["Rules"][0], before["Rules"][1]]));
    assert_eq!(left["CustomResponseBodies"], before["CustomResponseBodies"]);
    assert!(fake.state(|state| state.ip_sets.is_empty()));
}

#[tokio::test(start_paused = true)]
async fn whoever_writes_between_reading_and_writing_loses_nothing() {
    // terraform-provider-aws#45787, aws-waf-security-automations#152: the lock token was stale, and somebody's rule was lost.
    for times in [1, 3] {
        let fake = Fake::default();
        fake.others_acl(ACL, json!([theirs("first", 0)]));
        for i in 0..times {
            fake.before(Operation::UpdateWebAcl, move |state| {
                state.edit(ACL, |acl| {
                    acl["Rules"].as_array_mut().unwrap().push(theirs(&format!("meanwhile-{i}"), 100 + i))
                });
            });
        }
        applied(&fake, &wanted(SAMPLE)).await;
        let names = fake.state(|state| state.rule_names(ACL));
        assert_eq!(names.len(), 3 + usize::try_from(times).unwrap(), "{names:?}");
        assert!(planned(&fake, &wanted(SAMPLE)).await.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn two_who_apply_at_once_come_to_one_acl() {
    let fake = Fake::default();
    let wanted = wanted(&blocking());
    // The other has made the ACL and the set a moment before.
    let other = Fake::default();
    applied(&other, &wanted).await;
    let (acls, sets) = other.state(|state| (state.acls.clone(), state.ip_sets.clone()));
    fake.before(Operation::CreateIpSet, move |state| (state.acls, state.ip_sets) = (acls, sets));
    applied(&fake, &wanted).await;
    assert_eq!(fake.state(|state| (state.acls.len(), state.ip_sets.len())), (1, 1));
    assert!(planned(&fake, &wanted).await.is_empty());
}

#[tokio::test(start_paused = true)]
async fn who_is_never_left_alone_says_so() {
    let fake = Fake::default();
    fake.others_acl(ACL, json!([]));
    for _ in 0..20 {
        fake.before(Operation::UpdateWebAcl, |state| state.edit(ACL, |acl| acl["Description"] = json!("mine")));
    }
    let error = apply(&fake, &wanted(SAMPLE), Patience::default(), &quiet).await.unwrap_err();
    assert!(matches!(&error, Error::Contended { what, tries: 8 } if what == ACL), "{error}");
}

#[tokio::test(start_paused = true)]
async fn what_is_not_known_everywhere_yet_is_waited_for_and_told() {
    // terraform-provider-aws#29080: right after the ACL was made it could not be put on anything for minutes.
    let fake = Fake::default();
    for _ in 0..6 {
        fake.fail(Operation::Associate, "WAFUnavailableEntityException");
    }
    fake.fail(Operation::CreateWebAcl, "WAFUnavailableEntityException");
    let lines = Mutex::new(Vec::new());
    let progress = |line: &str| lines.lock().unwrap().push(line.to_owned());
    let wanted = Wanted::new(acl(SAMPLE), vec![BALANCER.to_owned()]);
    let since = Instant::now();
    apply(&fake, &wanted, Patience::default(), &progress).await.unwrap();
    let arn = fake.state(|state| state.acls[ACL]["ARN"].as_str().unwrap().to_owned());
    assert_eq!(fake.state(|state| state.on.get(BALANCER).cloned()), Some(arn));
    assert!(since.elapsed() > Duration::from_secs(60));
    let waits = lines.lock().unwrap().iter().filter(|line| line.contains("waiting")).count();
    assert_eq!(waits, 7);
    assert!(planned(&fake, &wanted).await.is_empty());
    // And not for ever.
    let fake = Fake::default();
    (0..100).for_each(|_| fake.fail(Operation::Associate, "WAFUnavailableEntityException"));
    let error = apply(&fake, &wanted, Patience::default(), &quiet).await.unwrap_err().to_string();
    assert!(error.contains("wafv2:AssociateWebACL: WAFUnavailableEntityException"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn writes_are_a_second_apart() {
    let fake = Fake::default();
    let since = Instant::now();
    applied(&fake, &Wanted::new(acl(&blocking()), vec![BALANCER.to_owned()])).await;
    assert_eq!(fake.take_writes().len(), 3);
    assert!(since.elapsed() >= Duration::from_secs(2));
}

#[tokio::test(start_paused = true)]
async fn what_waf_would_refuse_is_found_before_anything_is_sent() {
    let fake = Fake::default();
    fake.others_acl(ACL, json!([theirs("theirs", 40)]));
    let error = apply(&fake, &wanted(SAMPLE), Patience::default(), &quiet).await.unwrap_err();
    assert!(matches!(&error, Error::Check(found) if found[0].contains("same priority, 40")), "{error}");
    fake.others_acl(
        ACL,
        (0..9)
            .map(|i| {
                let mut rule = theirs(&format!("theirs-{i}"), i);
                rule["Statement"] = json!({ "RateBasedStatement": { "Limit": 100, "AggregateKeyType": "IP" } });
                rule["Action"] = json!({ "Count": {} });
                rule
            })
            .collect(),
    );
    let error = apply(&fake, &wanted(SAMPLE), Patience::default(), &quiet).await.unwrap_err();
    assert!(matches!(&error, Error::Check(found) if found[0].contains("11 rate-based rules")), "{error}");
    let http_api = "arn:aws:apigateway:eu-central-1::/apis/abc/stages/prod";
    let error = apply(&fake, &Wanted::new(acl(SAMPLE), vec![http_api.to_owned()]), Patience::default(), &quiet).await;
    assert!(matches!(&error, Err(Error::Resource { why, .. }) if why.contains("HTTP APIs")), "{error:?}");
    assert!(fake.take_writes().is_empty());
    // What needs no reading to be refused is refused without one.
    let bare = Fake::default();
    for change in [http_api, "arn:aws:lambda:eu-central-1:111122223333:function:f"] {
        let wanted = Wanted::new(acl(SAMPLE), vec![change.to_owned()]);
        assert!(plan(&bare, &wanted, Patience::default(), &quiet).await.is_err());
    }
    assert!(bare.state(|state| state.calls.is_empty()));
}

#[tokio::test(start_paused = true)]
async fn a_set_of_somebody_else_is_not_touched() {
    let fake = Fake::default();
    let set = json!({ "Name": "tollgate-hq-ipv4", "Id": "1", "ARN": "arn:set", "Addresses": [], "LockToken": "l", "Tags": [] });
    fake.state(|state| state.ip_sets.insert("tollgate-hq-ipv4".to_owned(), set.clone()));
    let error = apply(&fake, &wanted(SAMPLE), Patience::default(), &quiet).await.unwrap_err();
    assert!(matches!(&error, Error::Foreign(what) if what.contains("tollgate-hq-ipv4")), "{error}");
    destroy(&fake, &wanted(SAMPLE), Patience::default(), &quiet).await.unwrap();
    assert_eq!(fake.state(|state| state.ip_sets["tollgate-hq-ipv4"].clone()), set);
}

#[tokio::test(start_paused = true)]
async fn two_acls_that_go_by_one_prefix_leave_each_others_sets_alone() {
    let fake = Fake::default();
    applied(&fake, &wanted(SAMPLE)).await;
    let set = |fake: &Fake| fake.state(|state| state.ip_sets["tollgate-hq-ipv4"].clone());
    let before = set(&fake);
    // Of the same name: it would have taken the other's office in.
    let other = SAMPLE.replace("web_acl = \"tollgate\"", "web_acl = \"other\"").replace("203.0.113.0", "198.51.100.0");
    let error = apply(&fake, &wanted(&other), Patience::default(), &quiet).await.unwrap_err();
    assert!(matches!(&error, Error::Foreign(what) if what.contains("tollgate-acl=other")), "{error}");
    // Of which the other policy names none: it would have been stale.
    let without = other.replace("except = { egress = [\"hq\"] }", "");
    assert_eq!(applied(&fake, &wanted(&without)).await.first().map(String::as_str), Some("+ web ACL other"));
    assert!(planned(&fake, &wanted(&without)).await.is_empty());
    let done = destroy(&fake, &wanted(&without), Patience::default(), &quiet).await.unwrap();
    assert_eq!(done, ["- web ACL other"]);
    assert_eq!(set(&fake), before);
    // A set that an earlier version has made does not say whose it is, and stays ours.
    fake.state(|state| state.ip_sets.get_mut("tollgate-hq-ipv4").unwrap()["Tags"].as_array_mut().unwrap().truncate(1));
    assert!(planned(&fake, &wanted(SAMPLE)).await.is_empty());
    destroy(&fake, &wanted(SAMPLE), Patience::default(), &quiet).await.unwrap();
    assert!(fake.state(|state| state.ip_sets.is_empty()));
}

#[tokio::test(start_paused = true)]
async fn an_app_of_amplify_has_the_acl_of_cloudfront_put_on_it_and_taken_off() {
    const APP: &str = "arn:aws:amplify:eu-central-1:111122223333:apps/d1a2b3c4";
    let fake = Fake::default();
    let regional = Wanted::new(acl(SAMPLE), vec![APP.to_owned()]);
    let error = plan(&fake, &regional, Patience::default(), &quiet).await.unwrap_err();
    assert!(matches!(&error, Error::Resource { why, .. } if why.contains("cloudfront")), "{error}");
    let global = SAMPLE.replace("scope   = \"regional\"", "scope   = \"cloudfront\"");
    let on = Wanted::new(acl(&global), vec![APP.to_owned()]);
    assert!(applied(&fake, &on).await.contains(&format!("+ on {APP}")));
    let done = destroy(&fake, &wanted(&global), Patience::default(), &quiet).await.unwrap();
    assert!(done.contains(&format!("- on {APP}")), "{done:?}");
    assert!(fake.state(|state| state.on.is_empty() && state.acls.is_empty()));
    // A distribution names it itself.
    let distribution = vec!["arn:aws:cloudfront::111122223333:distribution/E1".to_owned()];
    assert!(plan(&fake, &Wanted::new(acl(&global), distribution), Patience::default(), &quiet).await.is_err());
}

#[tokio::test(start_paused = true)]
async fn requests_of_cloudfront_are_not_logged_in_another_region() {
    let logged = |scope: &str, destination: &str| {
        let edge = format!("scope = \"{scope}\"\nlogging = {{ destination = \"{destination}\" }}\n");
        wanted(&SAMPLE.replace("scope   = \"regional\" ", &edge))
    };
    let group = |region: &str| format!("arn:aws:logs:{region}:111122223333:log-group:aws-waf-logs-x");
    let (here, there) = (group("eu-central-1"), group("us-east-1"));
    let fake = Fake::default();
    let error = apply(&fake, &logged("cloudfront", &here), Patience::default(), &quiet).await.unwrap_err();
    assert!(matches!(&error, Error::Check(found) if found[0].contains("logged in us-east-1")), "{error}");
    assert!(fake.state(|state| state.calls.is_empty()));
    for (scope, destination) in
        [("cloudfront", there.as_str()), ("cloudfront", "arn:aws:s3:::aws-waf-logs-x"), ("regional", &here)]
    {
        plan(&Fake::default(), &logged(scope, destination), Patience::default(), &quiet).await.unwrap();
    }
}

#[tokio::test(start_paused = true)]
async fn a_set_that_no_rule_names_any_longer_goes_after_the_rule() {
    let fake = Fake::default();
    applied(&fake, &wanted(SAMPLE)).await;
    fake.take_writes();
    let without = SAMPLE.replace("except = { egress = [\"hq\"] }", "");
    assert_eq!(applied(&fake, &wanted(&without)).await.last().map(String::as_str), Some("- IP set tollgate-hq-ipv4"));
    assert_eq!(fake.take_writes(), [Operation::UpdateWebAcl, Operation::DeleteIpSet]);
    assert!(fake.state(|state| state.ip_sets.is_empty()));
}

#[tokio::test(start_paused = true)]
async fn logging_is_put_once_and_taken_away() {
    let fake = Fake::default();
    let logged = SAMPLE.replace("[edge]\n", "[edge]\nlogging = { destination = \"arn:aws:s3:::aws-waf-logs-x\" }\n");
    applied(&fake, &wanted(&logged)).await;
    fake.take_writes();
    fake.state(|state| {
        let config = state.logging.values_mut().next().unwrap();
        config["ManagedByFirewallManager"] = json!(false);
        config["RedactedFields"].as_array_mut().unwrap().reverse();
    });
    assert!(planned(&fake, &wanted(&logged)).await.is_empty());
    assert_eq!(applied(&fake, &wanted(&logged.replace("logs-x\"", "logs-x\", keep = \"all\""))).await, ["~ logging"]);
    assert_eq!(applied(&fake, &wanted(SAMPLE)).await, ["- logging"]);
    assert_eq!(fake.take_writes(), [Operation::PutLogging, Operation::DeleteLogging]);
    // On an ACL of others it is theirs.
    let fake = Fake::default();
    fake.others_acl(ACL, json!([]));
    let arn = fake.state(|state| state.acls[ACL]["ARN"].as_str().unwrap().to_owned());
    fake.state(|state| state.logging.insert(arn, json!({ "LogDestinationConfigs": ["theirs"] })));
    applied(&fake, &wanted(SAMPLE)).await;
    assert!(planned(&fake, &wanted(SAMPLE)).await.is_empty());
    assert_eq!(fake.state(|state| state.logging.len()), 1);
}

#[tokio::test(start_paused = true)]
async fn an_acl_of_ours_goes_as_a_whole_and_off_what_it_is_on() {
    let fake = Fake::default();
    let wanted = Wanted::new(acl(SAMPLE), vec![BALANCER.to_owned()]);
    applied(&fake, &wanted).await;
    fake.fail(Operation::DeleteIpSet, "WAFAssociatedItemException");
    fake.before(Operation::DeleteWebAcl, |state| state.edit(ACL, |acl| acl["Description"] = json!("edited")));
    let bare = Wanted::new(acl(SAMPLE), Vec::new());
    let done = destroy(&fake, &bare, Patience::default(), &quiet).await.unwrap();
    assert!(done.contains(&"- web ACL tollgate".to_owned()), "{done:?}");
    fake.state(|state| assert!(state.acls.is_empty() && state.ip_sets.is_empty() && state.on.is_empty()));
    assert!(destroy(&fake, &bare, Patience::default(), &quiet).await.unwrap().is_empty());
    // With a rule of somebody else in it, it stays.
    applied(&fake, &wanted).await;
    fake.state(|state| state.edit(ACL, |acl| acl["Rules"].as_array_mut().unwrap().push(theirs("theirs", 0))));
    destroy(&fake, &bare, Patience::default(), &quiet).await.unwrap();
    assert_eq!(fake.state(|state| state.rule_names(ACL)), ["theirs"]);
    assert!(fake.state(|state| state.on.contains_key(BALANCER)));
}

#[tokio::test(start_paused = true)]
async fn a_status_tells_what_each_rule_has_caught_and_what_is_not_known() {
    let fake = Fake::default();
    assert_eq!(status(&fake, &wanted(SAMPLE), 0, Patience::default(), &quiet).await.unwrap(), None);
    applied(&fake, &wanted(SAMPLE)).await;
    fake.fail(Operation::GetLimitedKeys, "WAFUnsupportedAggregateKeyTypeException");
    let rules = status(&fake, &wanted(SAMPLE), 1_767_225_600, Patience::default(), &quiet).await.unwrap().unwrap();
    assert_eq!((rules[0].rule.as_str(), rules[0].action.as_str()), ("tollgate-rate-all", "Count"));
    assert!(rules[0].limited.as_ref().is_err_and(|why| why.contains("WAFUnsupportedAggregateKeyType")));
    assert_eq!(rules[1].limited, Ok(vec!["192.0.2.1/32".to_owned(), "2001:db8::1/128".to_owned()]));
    assert_eq!(rules[1].sampled, Ok(vec![("POST /api/auth/login".to_owned(), 7), ("POST /a".to_owned(), 1)]));
}

#[tokio::test(start_paused = true)]
async fn addresses_are_the_same_however_they_are_written() {
    let fake = Fake::default();
    let policy = SAMPLE.replace("[\"203.0.113.0/24\"]", "[\"2001:db8:1::/48\"]");
    applied(&fake, &wanted(&policy)).await;
    fake.state(|state| {
        state.ip_sets.get_mut("tollgate-hq-ipv6").unwrap()["Addresses"] =
            json!(["2001:0db8:0001:0000:0000:0000:0000:0000/48"]);
    });
    assert!(planned(&fake, &wanted(&policy)).await.is_empty());
}
