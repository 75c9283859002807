//! Addresses that limits have handed over: who of them is kept out, and for how long.

use crate::fake::Fake;
use crate::{acl, client, edge, rules};
use serde_json::json;
use tollgate_core::Timestamp;
use tollgate_policy::{Cidr, Policy};
use tollgate_waf::converge::{Error, Kept, Operation, Patience, Wanted, apply, keep_out, plan, status};
use tollgate_waf::evaluate::{Request, Truth};
use tollgate_waf::kept_out::choose;

const KEEPS: &str = "[identity]\nclient_ip = { trusted_proxies = ['198.51.100.0/30'] }\n\
    [limits.a]\nkey = ['client_ip']\nrate = '5/min'\npenalty = { first = '1min', edge_after = 2 }\n\
    [[exempt]]\nmatch = 'GET /healthz'\nwhy = 'probes'\n\
    [edge]\nstage = 'block'\negress = { hq = ['203.0.113.0/24'] }\nkeep_out = { most = 3 }\n\
    rules = [{ name = 'rate-all', rate = '2000/5min' }]\n";

fn quiet(_: &str) {}

fn secs(s: u64) -> Timestamp {
    Timestamp::from_secs(s)
}

fn chosen(listed: &[(&str, u64)], now: u64) -> Vec<String> {
    let policy = Policy::parse(&edge(KEEPS)).unwrap().policy;
    let listed = listed.iter().map(|(address, until)| (*address, secs(*until)));
    let mut blocks: Vec<_> = choose(&policy, listed, secs(now)).iter().map(ToString::to_string).collect();
    blocks.sort();
    blocks
}

#[test]
fn who_is_kept_out_is_whose_lock_lasts_and_who_shares_his_address_with_nobody() {
    let listed = [("192.0.2.1", 50), ("192.0.2.1", 20), ("192.0.2.2", 30), ("2001:db8:9::/64", 99)];
    assert_eq!(chosen(&listed, 29), ["192.0.2.1/32", "192.0.2.2/32", "2001:db8:9::/64"]);
    assert_eq!(chosen(&listed, 30), ["192.0.2.1/32", "2001:db8:9::/64"], "over");
    assert_eq!(chosen(&listed, 99), [""; 0]);
    // An office, a proxy, and what is no address.
    assert_eq!(chosen(&[("203.0.113.9", 50), ("198.51.100.2", 50), ("everyone", 50)], 0), [""; 0]);
    let many = [("192.0.2.1", 10), ("192.0.2.2", 40), ("192.0.2.3", 30), ("192.0.2.4", 20)];
    assert_eq!(chosen(&many, 0), ["192.0.2.2/32", "192.0.2.3/32", "192.0.2.4/32"], "whose locks end last");
}

#[test]
fn the_rule_stops_who_is_listed_everywhere_but_where_it_is_exempt() {
    let policy = edge(KEEPS);
    let set = |rules: tollgate_waf::evaluate::Rules| {
        rules.with_ip_set("tollgate-kept-out-ipv4", [format!("{}/32", client())])
    };
    let stops = |method: &str, path: &str| {
        let request = Request::new(method, path, Some(client()));
        set(rules(&policy)).counts("tollgate-kept-out", &request).unwrap()
    };
    assert_eq!((stops("POST", "/api/orders"), stops("GET", "/healthz")), (Truth::Yes, Truth::No));
    assert_eq!(stops("GET", "//healthz"), Truth::Yes);
    let another = Request::new("POST", "/api/orders", Some("192.0.2.9".parse().unwrap()));
    assert_eq!(set(rules(&policy)).counts("tollgate-kept-out", &another), Some(Truth::No));
    let first = acl(&policy).rules.first().map(|rule| (rule.name.clone(), rule.priority));
    assert_eq!(first, Some(("tollgate-kept-out".to_owned(), 39)));
}

fn blocks(texts: &[&str]) -> Vec<Cidr> {
    texts.iter().map(|text| Cidr::of_client(text).unwrap()).collect()
}

async fn kept(fake: &Fake, of: &[&str]) -> Result<Kept, Error> {
    keep_out(fake, &acl(&edge(KEEPS)), &blocks(of), Patience::default(), &quiet).await
}

#[tokio::test(start_paused = true)]
async fn a_set_is_written_once_however_many_come_and_go_and_by_nobody_else() {
    let fake = Fake::default();
    assert!(matches!(kept(&fake, &[]).await, Err(Error::Missing(name)) if name == "tollgate-kept-out-ipv4"));
    let wanted = Wanted::new(acl(&edge(KEEPS)), Vec::new());
    apply(&fake, &wanted, Patience::default(), &quiet).await.unwrap();
    fake.take_writes();
    let came = kept(&fake, &["192.0.2.1", "192.0.2.2", "2001:db8::/64"]).await.unwrap();
    assert_eq!((came.added.join(" "), came.writes), ("192.0.2.1/32 192.0.2.2/32 2001:db8::/64".to_owned(), 2));
    assert_eq!(kept(&fake, &["2001:db8::/64", "192.0.2.2", "192.0.2.1"]).await.unwrap(), Kept::default());
    assert_eq!(fake.take_writes(), [Operation::UpdateIpSet; 2]);
    // What the sentinel writes is no drift, and no later `apply` takes it away.
    assert_eq!(plan(&fake, &wanted, Patience::default(), &quiet).await.unwrap(), []);
    apply(&fake, &wanted, Patience::default(), &quiet).await.unwrap();
    let there = |fake: &Fake| fake.state(|state| state.ip_sets["tollgate-kept-out-ipv4"]["Addresses"].clone());
    assert_eq!(there(&fake), json!(["192.0.2.1/32", "192.0.2.2/32"]));
    let gone = kept(&fake, &["192.0.2.2"]).await.unwrap();
    assert_eq!(gone.removed.join(" "), "192.0.2.1/32 2001:db8::/64");
    // Somebody else has written since the reading: read again, and written once more.
    fake.before(Operation::UpdateIpSet, |state| {
        let token = state.fresh("lock");
        state.ip_sets.get_mut("tollgate-kept-out-ipv4").unwrap()["LockToken"] = token.into();
    });
    kept(&fake, &[]).await.unwrap();
    assert_eq!(there(&fake), json!([]));
}

#[tokio::test(start_paused = true)]
async fn a_status_tells_who_is_kept_out_and_asks_no_counts_of_a_rule_that_counts_nothing() {
    let fake = Fake::default();
    let wanted = Wanted::new(acl(&edge(KEEPS)), Vec::new());
    apply(&fake, &wanted, Patience::default(), &quiet).await.unwrap();
    kept(&fake, &["192.0.2.1", "2001:db8::/64"]).await.unwrap();
    fake.take_writes();
    let rules = status(&fake, &wanted, 0, Patience::default(), &quiet).await.unwrap().unwrap();
    let told: Vec<_> =
        rules.iter().map(|of| (of.rule.as_str(), of.is_rate_based, of.limited.clone().unwrap())).collect();
    let of = |texts: [&str; 2]| texts.map(str::to_owned).to_vec();
    assert_eq!(
        told,
        [
            ("tollgate-kept-out", false, of(["192.0.2.1/32", "2001:db8::/64"])),
            ("tollgate-rate-all", true, of(["192.0.2.1/32", "2001:db8::1/128"])),
        ]
    );
    let asked = fake.state(|state| state.calls.iter().filter(|(call, _)| *call == Operation::GetLimitedKeys).count());
    assert_eq!(asked, 1);
}

#[tokio::test(start_paused = true)]
async fn an_acl_of_another_name_keeps_nobody_out_in_a_set_of_this_one() {
    let fake = Fake::default();
    apply(&fake, &Wanted::new(acl(&edge(KEEPS)), Vec::new()), Patience::default(), &quiet).await.unwrap();
    fake.take_writes();
    let other = edge(KEEPS).replace("[edge]\n", "[edge]\nweb_acl = 'other'\n");
    let error = keep_out(&fake, &acl(&other), &blocks(&["192.0.2.1"]), Patience::default(), &quiet).await.unwrap_err();
    assert!(matches!(&error, Error::Foreign(what) if what.contains("tollgate-acl=other")), "{error}");
    assert!(fake.take_writes().is_empty());
}
