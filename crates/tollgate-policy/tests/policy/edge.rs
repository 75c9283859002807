//! `[edge]`: what a policy says of the rules in front, and each mistake at its place.

use crate::{lines, policy, refused};
use std::time::Duration;
use tollgate_policy::{BodyKind, EdgeScope, Policy, Stage};

/// All that an `[edge]` can say.
pub(crate) const EDGE: &str = r#"version = 1
[[exempt]]
match = "POST /webhooks/payments"
why = "signed"
[edge]
scope = "cloudfront"
web_acl = "shop"
prefix = "shop_"
stage = "block"
priority = 100
base_paths = ["/Prod/", "/v1/x"]
egress = { hq = ["203.0.113.0/24", "2001:db8:1::/48"], lab = ["192.0.2.7/32"] }
forwarded = { header = "X-Real-IP", if_invalid = "no-match" }
bodies = { slow = { type = "html", content = "<p>slow down" } }
headers = { X-Limited-By = "edge" }
logging = { destination = "arn:aws:s3:::aws-waf-logs-shop", keep = "all" }
[[edge.rules]]
name = "rate-all"
rate = "2000/10min"
except = { egress = ["hq", "lab"] }
stage = "challenge"
[[edge.rules]]
name = "rate-auth"
paths = ["/API/auth/", "/login", "/oauth/*"]
rate = "100/300s"
body = "slow"
retry_after = "90s"
priority = 7
"#;

#[test]
fn everything_that_is_said_is_known() {
    let policy = policy(EDGE);
    let edge = policy.edge().expect("an edge");
    assert_eq!((edge.scope, edge.web_acl.as_str(), edge.prefix.as_str()), (EdgeScope::CloudFront, "shop", "shop_"));
    let blocks = |i: usize| edge.egress[i].blocks.iter().map(ToString::to_string).collect::<Vec<_>>();
    assert_eq!(
        (blocks(0), blocks(1)),
        (vec!["203.0.113.0/24".into(), "2001:db8:1::/48".into()], vec!["192.0.2.7/32".into()])
    );
    assert_eq!(edge.base_paths.join(" "), "/Prod /v1/x");
    let forwarded = edge.forwarded.as_ref().expect("a header");
    assert_eq!((forwarded.header.as_str(), forwarded.counts_invalid), ("X-Real-IP", false));
    assert_eq!((edge.bodies["slow"].kind, edge.headers["x-limited-by"].as_str()), (BodyKind::Html, "edge"));
    assert!(edge.logging.as_ref().is_some_and(|logging| logging.keeps_all));
    let [all, auth] = &edge.rules[..] else { panic!("{:?}", edge.rules) };
    assert_eq!((all.limit, all.window, all.retry_after), (2000, Duration::from_secs(600), Duration::from_secs(600)));
    assert_eq!((all.stage, all.priority, all.paths.len(), all.egress.len()), (Stage::Challenge, 100, 0, 2));
    assert_eq!((auth.stage, auth.priority, auth.retry_after), (Stage::Block, 7, Duration::from_secs(90)));
    assert_eq!((auth.paths.join(" "), auth.body.as_deref()), ("/api/auth /login /oauth".to_owned(), Some("slow")));
}

#[test]
fn without_an_edge_nothing_is_in_front_and_with_one_it_counts_before_it_blocks() {
    assert!(policy("version = 1").edge().is_none());
    let policy = policy(
        "version = 1\n[edge]\nrules = [{ name = \"a\", rate = \"10/min\" }, { name = \"b\", rate = \"10/min\" }]",
    );
    let edge = policy.edge().expect("an edge");
    assert_eq!(
        (edge.scope, edge.web_acl.as_str(), edge.prefix.as_str()),
        (EdgeScope::Regional, "tollgate", "tollgate-")
    );
    let places: Vec<_> = edge.rules.iter().map(|rule| (rule.stage, rule.priority)).collect();
    assert_eq!(places, [(Stage::Count, 40), (Stage::Count, 41)]);
}

/// Refuses an `[edge]` whose lines from the third on are given, and whose last is a rule, for one reason.
fn one(lines_of: &str, place: &str, says: &str) {
    only(&format!("version = 1\n[edge]\n{lines_of}\n"), place, says);
}

/// The only mistake of a policy.
fn only(text: &str, place: &str, says: &str) {
    let found = lines(&refused(text));
    let found: Vec<_> = found.iter().filter(|line| line.contains(": error: ")).collect();
    let [line] = found[..] else { panic!("{found:#?}\n{text}") };
    assert!(line.starts_with(&format!("{place}: ")) && line.contains(says), "{line}\nwanted {place} {says}\n{text}");
}

fn with_rule(line: &str) -> String {
    format!("{line}\nrules = [{{ name = \"a\", rate = \"100/5min\" }}]")
}

fn rule(rest: &str) -> String {
    format!("[[edge.rules]]\nname = \"a\"\n{rest}")
}

#[test]
fn what_an_edge_says_of_itself() {
    one("scope = \"regional\"", "2:1", "[edge] has no `rules`");
    one("rules = []", "3:9", "has 0 rules");
    let eleven: Vec<_> = (0..11).map(|i| format!("{{ name = \"r{i}\", rate = \"10/min\" }}")).collect();
    one(&format!("rules = [{}]", eleven.join(", ")), "3:9", "has 11 rules");
    one(&with_rule("scope = \"global\""), "3:9", "scope cannot be \"global\"");
    one(&with_rule("stage = \"deny\""), "3:9", "stage cannot be \"deny\"");
    one(&with_rule("web_acl = \"a b\""), "3:11", "is not 1 to 64 letters");
    one(&with_rule("prefix = \"AWS-x\""), "3:10", "reserved");
    one(&with_rule("egress = { hq = [\"203.0.113.7/24\"] }"), "3:18", "not a block of addresses");
    one(&with_rule("egress = { hq = [\"::/0\"] }"), "3:18", "everybody");
    one(&with_rule("base_paths = [\"/a//b\"]"), "3:15", "is not a plain path");
    one(&with_rule("base_paths = [\"/\"]"), "3:15", "is every path");
    one(&with_rule("base_paths = [\"/a\", \"/a/\"]"), "3:21", "given twice");
    one(&with_rule("egress = { hq = [] }"), "3:17", "has 0 blocks");
    one(&with_rule("forwarded = { if_invalid = \"match\" }"), "3:13", "no `header`");
    one(&with_rule("bodies = { a = { type = \"json\" } }"), "3:16", "no `content`");
    let long = "x".repeat(4097);
    one(&with_rule(&format!("bodies = {{ a = {{ type = \"text\", content = \"{long}\" }} }}")), "3:43", "4097 bytes");
    one(&with_rule("headers = { Content-Type = \"x\" }"), "3:13", "`Content-Type` cannot be given here");
    one(&with_rule("headers = { Retry-After = \"x\" }"), "3:13", "`Retry-After` cannot be given here");
    one(&with_rule("headers = { a = \"\\n\" }"), "3:17", "printable ASCII");
    let many: Vec<_> = (0..9).map(|i| format!("h{i} = \"x\"")).collect();
    one(&with_rule(&format!("headers = {{ {} }}", many.join(", "))), "3:11", "9 header fields");
    one(&with_rule("logging = { destination = \"arn:aws:s3:::logs\" }"), "3:27", "aws-waf-logs-");
}

#[test]
fn what_a_rule_says() {
    one(&rule("rate = \"9/min\""), "5:8", "WAF limits to 10 to 2000000000 requests, not 9");
    one(&rule("rate = \"2000000001/min\""), "5:8", "not 2000000001");
    one(&rule("rate = \"100/h\""), "5:8", "a window that WAF does not have");
    one(&rule("rate = \"100\""), "5:8", "has no `/`");
    one(&rule("rate = \"100/min\"\npaths = [\"/\"]"), "6:10", "is every path");
    for path in ["api", "/a//b", "/a/../b", "/a?b", "/a%20", "/a/{b}", "/a b", "/a;b", "/a\\\\b", "/ä"] {
        one(&rule(&format!("rate = \"100/min\"\npaths = [\"{path}\"]")), "6:10", "is not a plain path");
    }
    one(&rule("rate = \"100/min\"\npaths = [\"/A\", \"/a/\"]"), "6:16", "given twice");
    one(&rule("rate = \"100/min\"\nexcept = { egress = [\"hq\"] }"), "6:22", "there is no egress set `hq`");
    one(&rule("rate = \"100/min\"\nbody = \"slow\""), "6:8", "there is no body `slow`");
    one(&rule("rate = \"100/min\"\nstage = \"captcha\"\nretry_after = \"1min\""), "7:15", "blocks none");
    one(&rule("rate = \"100/min\"\nretry_after = \"0s\""), "6:15", "at least 1 s");
    one(&format!("{}\n{}", rule("rate = \"100/min\""), rule("rate = \"99/min\"")), "7:8", "rule `a` is given twice");
    let second = "[[edge.rules]]\nname = \"b\"\nrate = \"10/min\"\npriority = 40";
    one(&format!("{}\n{second}", rule("rate = \"100/min\"")), "9:12", "has priority 40, as `a` has");
}

#[test]
fn an_exemption_of_everything_leaves_nothing_to_count() {
    let text =
        "version = 1\nexempt = [{ match = \"*\", why = \"x\" }]\n[edge]\nrules = [{ name = \"a\", rate = \"10/min\" }]";
    let found = lines(&refused(text));
    assert!(found.iter().any(|line| line.starts_with("2:21: error: this exemption leaves")), "{found:?}");
}

#[test]
fn what_works_and_is_hardly_meant_is_warned_of() {
    let warned = |lines_of: &str| {
        let text = format!("version = 1\n[edge]\n{}", with_rule(lines_of));
        lines(&Policy::parse(&text).expect("a policy").warnings).join("\n")
    };
    assert!(warned("egress = { hq = [\"192.0.2.0/24\"] }").contains("no rule of [edge] names the egress set `hq`"));
    assert!(warned("bodies = { a = { type = \"text\", content = \"x\" } }").contains("names the body `a`"));
    assert!(warned("forwarded = { header = \"x-forwarded-for\" }").contains("which callers choose"));
}

/// A limit by address whose third lock keeps it out, and an `[edge]` with these lines.
fn kept_out(limit: &str, edge: &str) -> String {
    format!(
        "version = 1\n[limits.a]\n{limit}\nrate = '5/min'\n[edge]\n{edge}\n[[edge.rules]]\nname = 'rate-all'\nrate = '2000/5min'\n"
    )
}

const THIRD: &str = "key = ['client_ip']\npenalty = { first = '1min', edge_after = 2 }";

#[test]
fn who_is_kept_out_is_said_by_the_limit_and_by_the_edge() {
    let policy = policy(&kept_out(THIRD, "stage = 'block'\nkeep_out = {}"));
    assert_eq!(policy.limit("a").expect("a limit").penalty().expect("a penalty").edge_after(), Some(2));
    let keeps_out = policy.edge().expect("an edge").keeps_out.clone().expect("somebody");
    assert_eq!((keeps_out.most, keeps_out.stage, keeps_out.priority), (1000, Stage::Block, 39));
    assert_eq!((keeps_out.retry_after, keeps_out.body), (Duration::from_secs(300), None));
    let given = "bodies = { slow = { type = 'text', content = 'x' } }\n\
                 keep_out = { most = 20, stage = 'block', body = 'slow', retry_after = '1h', priority = 3 }";
    let keeps_out =
        crate::policy(&kept_out(THIRD, given)).edge().expect("an edge").keeps_out.clone().expect("somebody");
    assert_eq!((keeps_out.most, keeps_out.priority, keeps_out.body.as_deref()), (20, 3, Some("slow")));
    assert_eq!(keeps_out.retry_after, Duration::from_secs(3600));
}

#[test]
fn nobody_is_kept_out_by_half_of_it() {
    let one = |limit: &str, edge: &str, place: &str, says: &str| only(&kept_out(limit, edge), place, says);
    one(THIRD, "", "2:9", "nobody in front keeps addresses out");
    one(&THIRD.replace("['client_ip']", "['client_ip', 'user']"), "keep_out = {}", "2:9", "is not the address alone");
    one(&THIRD.replace("['client_ip']", "['user ?? client_ip']"), "keep_out = {}", "2:9", "is not the address alone");
    one(&THIRD.replace("after = 2", "after = 7"), "keep_out = {}", "4:42", "edge_after");
    one(&THIRD.replace("after = 2", "after = 0"), "keep_out = {}", "4:42", "edge_after");
    one(THIRD, "keep_out = { most = 2001 }", "7:21", "2000");
    one(THIRD, "keep_out = { priority = 40 }", "8:1", "as `keep_out` has");
    one(THIRD, "keep_out = { stage = 'captcha', retry_after = '1h' }", "7:47", "blocks none");
    one(THIRD, "keep_out = {}\negress = { kept-out = ['192.0.2.0/24'] }", "7:12", "an egress set is named `kept-out`");
    let idle = Policy::parse(&kept_out("key = ['client_ip']", "keep_out = {}")).expect("a policy").warnings;
    assert!(idle.iter().any(|warning| warning.message.contains("keeps nobody out")), "{idle:?}");
}

#[test]
fn an_address_that_anybody_can_write_into_a_header_is_warned_of_where_it_is_kept_out() {
    let warned = |client_ip: &str, limit: &str| {
        let identity = format!("[identity]\nclient_ip = {client_ip}\n[limits.a]");
        let text = kept_out(limit, "keep_out = {}").replace("[limits.a]", &identity);
        let warnings = Policy::parse(&text).expect("a policy").warnings;
        warnings.iter().filter(|warning| warning.message.contains("has anybody kept out")).count()
    };
    assert_eq!(warned("{ trusted_hops = 1 }", THIRD), 1);
    assert_eq!(warned("{ trusted_hops = 1, header = 'CloudFront-Viewer-Address' }", THIRD), 1);
    // Nobody but the gateway itself, and proxies that are known by their addresses.
    assert_eq!(warned("{ trusted_hops = 0 }", THIRD), 0);
    assert_eq!(warned("{ trusted_proxies = ['198.51.100.0/24'] }", THIRD), 0);
    assert_eq!(warned("{ trusted_hops = 1 }", "key = ['client_ip']"), 0, "a limit of the application alone");
}

#[test]
fn whoever_shares_an_address_is_never_kept_out() {
    let proxies = "[identity]\nclient_ip = { trusted_proxies = ['198.51.100.0/24', '2001:db8:7::/64'] }\n[limits.a]";
    let edge = "keep_out = {}\negress = { hq = ['203.0.113.0/25', '2001:db8:1::/48'] }";
    let policy = policy(&kept_out(THIRD, edge).replace("[limits.a]", proxies));
    let never = |block: &str| policy.is_never_kept_out(&tollgate_policy::Cidr::of_client(block).expect("a block"));
    for block in
        ["203.0.113.7", "198.51.100.255", "2001:db8:1:5::/64", "2001:db8:7::/64", "2001:db8::/32", "203.0.112.0/23"]
    {
        assert!(never(block), "{block}");
    }
    for block in ["203.0.113.128", "198.51.101.0", "2001:db8:2::/64", "2001:db8:7:1::/64", "::ffff:1:2"] {
        assert!(!never(block), "{block}");
    }
    for text in ["", "alice", "192.0.2.1/33", "192.0.2.1/24"] {
        assert_eq!(tollgate_policy::Cidr::of_client(text), None, "{text}");
    }
}
