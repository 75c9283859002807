//! The client's address behind whatever stands in front: what a client sends never chooses whose bucket it is charged on.

use crate::caller::{charged_and_counted, v1, v2};
use crate::support::App;
use proptest::prelude::*;
use serde_json::{Value, json};
use tollgate::http::Facts;

/// What a client may send along, and what it hopes to be counted as.
const FORGED: &str = "6.6.6.6, 7.7.7.7";
const EDGE: &str = "130.176.1.1";
const CLIENT: &str = "203.0.113.9";

/// A kind of gateway, and how the header looks to the function behind it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Gateway {
    Rest,
    /// A REST API with an edge of its own.
    EdgeOptimised,
    Http,
    Url,
    Balancer,
}

const ALL: [Gateway; 5] = [Gateway::Rest, Gateway::EdgeOptimised, Gateway::Http, Gateway::Url, Gateway::Balancer];

impl Gateway {
    /// The event of a request from `peer` whose header was `sent`.
    fn event(self, peer: &str, sent: Option<&str>) -> Value {
        let appended = sent.map_or_else(|| peer.to_owned(), |sent| format!("{sent}, {peer}"));
        let (mut event, name, value) = match self {
            Self::Rest => (v1(Value::Null, "prod"), "X-Forwarded-For", appended),
            Self::EdgeOptimised => (v1(Value::Null, "prod"), "X-Forwarded-For", format!("{appended}, 64.252.1.1")),
            Self::Http => (v2(Value::Null, "$default", peer), "x-forwarded-for", appended),
            Self::Url => {
                let leftmost = sent.unwrap_or(peer).split(',').next().unwrap_or_default().to_owned();
                (v2(Value::Null, "$default", peer), "x-forwarded-for", leftmost)
            }
            Self::Balancer => (balanced(), "x-forwarded-for", appended),
        };
        match self {
            Self::Rest | Self::EdgeOptimised => event["requestContext"]["identity"]["sourceIp"] = peer.into(),
            Self::Url => event["requestContext"]["domainName"] = "abc.lambda-url.us-east-1.on.aws".into(),
            Self::Http | Self::Balancer => {}
        }
        event["headers"][name] = value.into();
        event
    }

    /// The same through CloudFront, which appends who asked it.
    fn behind_cloudfront(self, client: &str, sent: Option<&str>) -> Value {
        let sent = sent.map_or_else(|| client.to_owned(), |sent| format!("{sent}, {client}"));
        let mut event = self.event(EDGE, Some(&sent));
        event["headers"]["x-amz-cf-id"] = "bPgA==".into();
        event["headers"]["cloudfront-viewer-address"] = format!("{client}:46532").into();
        event
    }
}

fn balanced() -> Value {
    json!({
        "requestContext": { "elb": { "targetGroupArn": "arn" } }, "httpMethod": "GET", "path": "/api/items/7",
        "queryStringParameters": {}, "headers": { "host": "lb.example" }, "body": "", "isBase64Encoded": false
    })
}

/// The key, and how often the address was unproven and shared.
async fn counted(rule: &str, event: &Value) -> (String, u64, u64) {
    let rule = format!("client_ip = {{ {rule} }}");
    let (key, counts) = charged_and_counted(&rule, "client_ip", event).await;
    (key, counts.unproven_addresses, counts.shared_addresses)
}

fn is(address: &str) -> (String, u64, u64) {
    (format!("client_ip:{address}"), 0, 0)
}

fn unproven() -> (String, u64, u64) {
    ("?client_ip:missing".to_owned(), 1, 0)
}

/// serverless-wsgi#36, everruns#2643.
#[tokio::test]
async fn a_forged_header_changes_nothing_behind_any_gateway() {
    for gateway in ALL {
        for sent in [None, Some(FORGED), Some("garbage"), Some(","), Some(CLIENT), Some("\"")] {
            let found = counted("", &gateway.event(CLIENT, sent)).await;
            assert_eq!(found, is(CLIENT), "{gateway:?} {sent:?}");
        }
    }
}

#[tokio::test]
async fn behind_cloudfront_it_is_the_entry_that_cloudfront_appended() {
    for gateway in [Gateway::Rest, Gateway::EdgeOptimised, Gateway::Http, Gateway::Balancer] {
        for sent in [None, Some(FORGED), Some("garbage"), Some(EDGE), Some(","), Some("6.6.6.6, 130.176.1.1")] {
            let event = gateway.behind_cloudfront(CLIENT, sent);
            for rule in [
                "trusted_hops = 1",
                "trusted_proxies = [\"130.176.0.0/16\"]",
                "trusted_hops = 1, header = \"X-Forwarded-For\"",
            ] {
                assert_eq!(counted(rule, &event).await, is(CLIENT), "{gateway:?} {sent:?} {rule}");
            }
        }
    }
}

/// Lambda leaves of the list what came first, so it is never looked at there.
#[tokio::test]
async fn behind_a_function_url_the_list_is_the_senders_and_cloudfronts_own_header_tells() {
    for sent in [None, Some(FORGED), Some("6.6.6.6,7.7.7.7")] {
        let event = Gateway::Url.behind_cloudfront(CLIENT, sent);
        assert_eq!(counted("trusted_hops = 1", &event).await, unproven());
        assert_eq!(counted("trusted_proxies = [\"130.176.0.0/16\"]", &event).await, unproven());
        for trust in ["trusted_hops = 1", "trusted_proxies = [\"130.176.0.0/16\"]"] {
            let rule = format!("{trust}, header = \"CloudFront-Viewer-Address\"");
            assert_eq!(counted(&rule, &event).await, is(CLIENT));
        }
    }
    let mut direct = Gateway::Url.event(CLIENT, Some(FORGED));
    direct["headers"]["cloudfront-viewer-address"] = "6.6.6.6:1".into();
    let rule = "trusted_proxies = [\"130.176.0.0/16\"], header = \"CloudFront-Viewer-Address\"";
    assert_eq!(counted(rule, &direct).await, is(CLIENT), "who comes past the proxy is who asked");
}

#[tokio::test]
async fn a_header_of_one_address_is_taken_if_it_is_one() {
    let rule = "trusted_hops = 1, header = \"CloudFront-Viewer-Address\"";
    let with = |value: &str| {
        let mut event = Gateway::Http.behind_cloudfront(CLIENT, None);
        event["headers"]["cloudfront-viewer-address"] = value.into();
        event
    };
    assert_eq!(counted(rule, &with("2406:2d40:728d:fa10::c4a:42838")).await, is("2406%3A2d40%3A728d%3Afa10%3A%3A/64"));
    for garbage in ["", "x", "203.0.113.9", "6.6.6.6:1, 203.0.113.9:2", "203.0.113.9:99999"] {
        assert_eq!(counted(rule, &with(garbage)).await, unproven(), "{garbage}");
    }
    let mut event = with("");
    event["headers"]["x-real-ip"] = "203.0.113.9".into();
    assert_eq!(counted("trusted_hops = 1, header = \"X-Real-IP\"", &event).await, is(CLIENT));
    let mut absent = Gateway::Http.event(CLIENT, None);
    absent["headers"]["host"] = "x".into();
    assert_eq!(counted(rule, &absent).await, unproven());
    let mut balanced = Gateway::Balancer.behind_cloudfront(CLIENT, Some(FORGED));
    let listed = "trusted_proxies = [\"130.176.0.0/16\"], header = \"CloudFront-Viewer-Address\"";
    assert_eq!(counted(listed, &balanced).await, is(CLIENT));
    balanced["headers"]["x-forwarded-for"] = "6.6.6.6".into();
    assert_eq!(counted(listed, &balanced).await, is("6.6.6.6"), "the load balancer's own entry");
}

/// The policy trusts more than there is: the missing entries would be the sender's.
#[tokio::test]
async fn too_many_trusted_hops_are_no_address_and_counted() {
    for gateway in [Gateway::Rest, Gateway::EdgeOptimised, Gateway::Http, Gateway::Balancer] {
        assert_eq!(
            counted("trusted_hops = 2", &gateway.behind_cloudfront(CLIENT, None)).await,
            unproven(),
            "{gateway:?}"
        );
        assert_eq!(counted("trusted_hops = 1", &gateway.event(CLIENT, None)).await, unproven(), "{gateway:?}");
    }
}

#[tokio::test]
async fn an_entry_of_a_trusted_proxy_that_is_no_address_is_none_and_never_the_next_one() {
    for client in ["unknown", "", "_hidden", "'{${print(1)}}'", "1.2.3.4.5", "203.0.113.9:99999"] {
        for gateway in [Gateway::Http, Gateway::Balancer] {
            let event = gateway.behind_cloudfront(client, Some(FORGED));
            assert_eq!(counted("trusted_hops = 1", &event).await, unproven(), "{client}");
            assert_eq!(counted("trusted_proxies = [\"130.176.0.0/16\"]", &event).await, unproven(), "{client}");
        }
    }
}

#[tokio::test]
async fn an_entry_that_is_no_address_is_no_hop_to_step_over_either() {
    for gateway in [Gateway::Rest, Gateway::Http, Gateway::Balancer] {
        let event = gateway.event(EDGE, Some("6.6.6.6, unknown"));
        assert_eq!(counted("trusted_hops = 2", &event).await, unproven(), "{gateway:?}");
    }
    let line = [("x-forwarded-for", "6.6.6.6, unknown")];
    assert_eq!(served("trusted_hops = 2", Some("10.0.0.7"), &line).await, "missing");
    assert_eq!(counted("trusted_hops = 1", &Gateway::Http.event("unknown", Some("6.6.6.6"))).await, unproven());
}

/// express-rate-limit#234, powertools-python#7288; express-rate-limit#667, meshmonitor#2001; open-artifacts#26.
#[tokio::test]
async fn ports_mapped_addresses_and_rotation_within_a_network_are_one_client() {
    for gateway in ALL {
        for spelling in ["203.0.113.9:5123", "203.0.113.9:6001", "::ffff:203.0.113.9", "[::ffff:203.0.113.9]:443"] {
            assert_eq!(counted("", &gateway.event(spelling, Some(FORGED))).await, is(CLIENT), "{gateway:?} {spelling}");
        }
        for rotated in ["2001:db8::1", "2001:db8::ffff:1:2", "[2001:db8::3]:443", "2001:DB8:0:0:9::%eth0.100"] {
            assert_eq!(
                counted("", &gateway.event(rotated, None)).await,
                is("2001%3Adb8%3A%3A/64"),
                "{gateway:?} {rotated}"
            );
        }
        assert_eq!(
            counted("ipv6_prefix = 48", &gateway.event("2001:db8:0:7::1", None)).await,
            is("2001%3Adb8%3A%3A/48")
        );
    }
    let two = ["203.0.113.1", "203.0.113.2"].map(|client| Gateway::Http.behind_cloudfront(client, None));
    assert_ne!(
        counted("trusted_hops = 1", &two[0]).await,
        counted("trusted_hops = 1", &two[1]).await,
        "behind one proxy"
    );
}

/// floe#469, AspNetCoreRateLimit#415.
#[tokio::test]
async fn junk_and_a_header_of_64_kb_are_no_error() {
    for junk in [
        "1, ".repeat(20_000),
        "x".repeat(65_536),
        ",".repeat(65_536),
        "[".repeat(65_536),
        "fe80::1%eth0.100".to_owned(),
    ] {
        for gateway in ALL {
            assert_eq!(counted("", &gateway.event(CLIENT, Some(&junk))).await, is(CLIENT), "{gateway:?}");
        }
        assert_eq!(
            counted("trusted_hops = 1", &Gateway::Http.behind_cloudfront(CLIENT, Some(&junk))).await,
            is(CLIENT)
        );
        assert_eq!(
            counted("trusted_hops = 16", &Gateway::Http.event(CLIENT, Some(&junk))).await.0,
            "?client_ip:missing"
        );
    }
}

/// The policy trusts nothing, and something stands in front: everybody shares its address. Counted, so that it shows.
#[tokio::test]
async fn an_address_that_many_share_is_counted_as_such() {
    let shared = |address: &str| (format!("client_ip:{address}"), 0, 1);
    for gateway in [Gateway::Rest, Gateway::Http, Gateway::Balancer, Gateway::Url] {
        assert_eq!(counted("", &gateway.behind_cloudfront(CLIENT, None)).await, shared(EDGE), "{gateway:?}");
    }
    for internal in ["10.0.0.7", "127.0.0.1", "100.64.0.1", "fd00::1"] {
        let address = if internal.contains(':') { "fd00%3A%3A/64" } else { internal };
        for gateway in [Gateway::Rest, Gateway::Http, Gateway::Balancer] {
            assert_eq!(counted("", &gateway.event(internal, Some(CLIENT))).await, shared(address), "{gateway:?}");
            assert_eq!(counted("", &gateway.event(internal, None)).await, is(address), "nothing stands in front");
        }
    }
    let edge = Gateway::EdgeOptimised.event(CLIENT, None);
    assert_eq!(counted("", &edge).await, is(CLIENT), "its own edge is none of the sort");
    let exhausted =
        counted("trusted_proxies = [\"10.0.0.0/8\"]", &Gateway::Http.event("10.0.0.7", Some("10.9.9.9"))).await;
    assert_eq!(exhausted, shared("10.9.9.9"), "a proxy that does not say who asked it");
}

#[tokio::test]
async fn no_address_at_all_is_one_bucket_and_no_doubt() {
    let mut event = balanced();
    event["headers"]["host"] = "x".into();
    assert_eq!(counted("", &event).await, ("?client_ip:missing".to_owned(), 0, 0));
}

/// An application of one's own, whose server says who asks it, or does not.
async fn served(rule: &str, peer: Option<&str>, headers: &[(&str, &str)]) -> String {
    let policy = format!(
        "version = 1\n[identity]\nclient_ip = {{ {rule} }}\n[limits.a]\nkey = [\"client_ip\"]\nrate = \"5/h\"\n\
         [[routes]]\nmatch = \"*\"\ncharge = [\"a\"]\n"
    );
    let app = App::new(&policy);
    let facts = peer.map_or_else(Facts::default, |peer| Facts::default().with_source_address(peer));
    assert_eq!(app.send(crate::support::request("GET", "/", &facts, headers)).await.status, 201);
    let keys = app.store.keys();
    assert_eq!(keys.len(), 1);
    keys[0].strip_prefix("client_ip:").unwrap_or("missing").to_owned()
}

#[tokio::test]
async fn a_server_of_ones_own_knows_its_peer_or_the_policy_says_how_many_there_are() {
    let forged = [("x-forwarded-for", FORGED)];
    assert_eq!(served("", Some("203.0.113.9:5123"), &forged).await, CLIENT);
    assert_eq!(served("", None, &forged).await, "missing", "nobody knows who wrote the header");
    let proxied = [("x-forwarded-for", "6.6.6.6, 203.0.113.9:5123")];
    for peer in [None, Some("10.0.0.7:80")] {
        assert_eq!(served("trusted_hops = 1", peer, &proxied).await, CLIENT);
        assert_eq!(served("trusted_hops = 3", peer, &proxied).await, "missing");
    }
    assert_eq!(served("trusted_proxies = [\"10.0.0.0/8\"]", Some("10.0.0.7"), &proxied).await, CLIENT);
    assert_eq!(served("trusted_proxies = [\"10.0.0.0/8\"]", Some("198.51.100.7"), &proxied).await, "198.51.100.7");
    assert_eq!(served("trusted_proxies = [\"10.0.0.0/8\"]", None, &proxied).await, "missing", "the peer is not known");
}

/// tower_governor.
#[tokio::test]
async fn two_header_lines_are_one_list() {
    let lines = [("x-forwarded-for", FORGED), ("x-forwarded-for", "203.0.113.9"), ("x-forwarded-for", "10.0.0.6")];
    assert_eq!(served("trusted_hops = 2", Some("10.0.0.7"), &lines).await, CLIENT);
    assert_eq!(served("trusted_proxies = [\"10.0.0.0/8\"]", Some("10.0.0.7"), &lines).await, CLIENT);
    let mut event = Gateway::Http.event(EDGE, None);
    event["headers"]["x-forwarded-for"] = "6.6.6.6,203.0.113.9,130.176.1.1".into();
    assert_eq!(counted("trusted_hops = 1", &event).await, is(CLIENT), "as an HTTP API joins them");
}

#[tokio::test]
async fn forwarded_is_read_from_the_right_and_quotes_that_a_sender_left_open_hide_nothing() {
    let rules = ["trusted_hops = 1", "trusted_proxies = [\"10.0.0.0/8\"]", "trusted_hops = 1, header = \"Forwarded\""];
    for rule in rules {
        for line in [
            "for=203.0.113.9",
            "for=6.6.6.6;by=7.7.7.7, for=203.0.113.9;proto=https;host=api.example.com",
            "for=6.6.6.6, by=10.0.0.7;FOR=\"203.0.113.9:5123\"",
            "for=\"6.6.6.6, for=203.0.113.9",
            "for=\"6.6.6.6\\\", for=203.0.113.9;host=\"a,b\"",
            "\", for=\"[::ffff:203.0.113.9]:47\"",
            // A `Host` that the sender chose.
            "for=203.0.113.9;host=\"x;for=6.6.6.6\"",
            "host=\"x\\\";for=6.6.6.6;y\";for=203.0.113.9",
        ] {
            assert_eq!(served(rule, Some("10.0.0.7"), &[("forwarded", line)]).await, CLIENT, "{rule}: {line}");
        }
        for line in [
            "for=unknown",
            "for=_gazonk",
            "by=203.0.113.9",
            "for=6.6.6.6;for=203.0.113.9",
            "for=6.6.6.6,",
            "for=6.6.6.6, x",
            "host=\"x;for=6.6.6.6;y\"",
        ] {
            assert_eq!(served(rule, Some("10.0.0.7"), &[("forwarded", line)]).await, "missing", "{rule}: {line}");
        }
        let v6 = [("forwarded", "for=6.6.6.6"), ("forwarded", "For=\"[2001:db8:cafe::17]:4711\"")];
        assert_eq!(served(rule, Some("10.0.0.7"), &v6).await, "2001%3Adb8%3Acafe%3A%3A/64");
    }
}

/// A proxy writes one of the two; the other is the sender's.
#[tokio::test]
async fn both_lists_are_none_unless_the_policy_says_which() {
    let both = [("x-forwarded-for", "203.0.113.9"), ("forwarded", "for=6.6.6.6")];
    assert_eq!(served("trusted_hops = 1", Some("10.0.0.7"), &both).await, "missing");
    assert_eq!(served("trusted_hops = 1, header = \"X-Forwarded-For\"", Some("10.0.0.7"), &both).await, CLIENT);
    let mut event = Gateway::Http.behind_cloudfront(CLIENT, None);
    event["headers"]["forwarded"] = "for=6.6.6.6".into();
    assert_eq!(counted("trusted_hops = 1", &event).await, is(CLIENT), "AWS writes X-Forwarded-For");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever a client sends in front of what the proxies append.
    #[test]
    fn nothing_that_a_client_sends_changes_its_key(sent in "[ -~]{0,40}", forwarded in "[ -~]{0,40}", by_address in any::<bool>()) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
        runtime.block_on(async {
            let rule = if by_address { "trusted_proxies = [\"130.176.0.0/16\"]" } else { "trusted_hops = 1" };
            for gateway in [Gateway::Rest, Gateway::EdgeOptimised, Gateway::Http, Gateway::Balancer] {
                let mut event = gateway.behind_cloudfront(CLIENT, Some(&sent));
                event["headers"]["forwarded"] = forwarded.clone().into();
                assert_eq!(counted(rule, &event).await, is(CLIENT), "{:?} {:?}", gateway, sent);
                assert_eq!(counted("", &gateway.event(CLIENT, Some(&sent))).await.0, is(CLIENT).0);
            }
            let line = format!("{sent}, for=203.0.113.9");
            let found = served("trusted_hops = 1, header = \"Forwarded\"", None, &[("forwarded", &line)]).await;
            assert_eq!(found, CLIENT, "{line:?}");
        });
    }
}
