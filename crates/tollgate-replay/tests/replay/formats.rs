//! Each format, by examples of AWS's documentation and by lines that say the same in all of them.

use proptest::prelude::*;
use std::io::Write;
use tollgate_replay::{Entry, Format, Options, Reader, Replay, decompressed};

use crate::support::{everywhere, limit};

const ALB: &str = "https 2018-07-02T22:23:00.186641Z app/my-loadbalancer/50dc6c495c0c9188 192.168.131.39:2817 10.0.0.1:80 \
    0.086 0.048 0.037 200 200 0 57 \"GET https://www.example.com:443/a/b?c=d HTTP/1.1\" \"curl/7.46.0\" \
    ECDHE-RSA-AES128-GCM-SHA256 TLSv1.2 arn:aws:elasticloadbalancing:us-east-2:123456789012:targetgroup/my-targets/73e2d6bc24d8a067 \
    \"Root=1-58337281-1d84f3d73c47ec4e58577259\" \"www.example.com\" \"arn:aws:acm:us-east-2:123456789012:certificate/12345678\" \
    1 2018-07-02T22:22:48.364000Z \"authenticate,forward\" \"-\" \"-\" \"10.0.0.1:80\" \"200\" \"-\" \"-\" TID_x \"-\" \"-\" \"-\"";

const CLOUDFRONT: &str = "#Version: 1.0\n#Fields: date time x-edge-location sc-bytes c-ip cs-method cs(Host) cs-uri-stem \
    sc-status cs(Referer) cs(User-Agent) cs-uri-query\n\
    2019-12-04\t21:02:31\tLAX1\t392\t192.0.2.24\tGET\td111111abcdef8.cloudfront.net\t/a%20b/index.html\t200\t-\tMozilla/5.0%20(Windows)\tc=d\n";

const WAF: &str = r#"{"timestamp":1683355579981,"formatVersion":1,"webaclId":"arn","terminatingRuleId":"tollgate-rate-auth","terminatingRuleType":"RATE_BASED","action":"BLOCK","terminatingRuleMatchDetails":[],"httpSourceName":"APIGW","ruleGroupList":[{"ruleGroupId":"g","nonTerminatingMatchingRules":[{"ruleId":"in-group","action":"COUNT"}]}],"rateBasedRuleList":[{"rateBasedRuleName":"tollgate-rate-auth","limitKey":"IP","maxRateAllowed":100}],"nonTerminatingMatchingRules":[{"ruleId":"tollgate-rate-all","action":"COUNT"}],"requestHeadersInserted":null,"responseCodeSent":429,"httpRequest":{"clientIp":"52.46.82.45","country":"FR","headers":[{"name":"X-Tenant","value":"acme"}],"uri":"/CanaryTest","args":"a=b","httpVersion":"HTTP/1.1","httpMethod":"GET","requestId":"r"}}"#;

/// Reads all lines of a text by one reader, and shows each as a text.
fn read(text: &str) -> (Option<Format>, Vec<String>) {
    let mut reader = Reader::default();
    let mut shown = Vec::new();
    for line in text.lines() {
        match reader.line(line.as_bytes()) {
            Ok(None) => {}
            Ok(Some(entry)) => shown.push(show(&entry)),
            Err(error) => shown.push(format!("{}: {error}", error.column)),
        }
    }
    (reader.format(), shown)
}

fn show(entry: &Entry<'_>) -> String {
    let ip = entry.client_ip.map_or_else(|| "-".to_owned(), |ip| ip.to_string());
    let request = entry.request.as_ref().map(|request| format!("{} {}", request.method, request.target));
    format!("{} {ip} {} {}", entry.time.as_nanos() / 1_000_000, request.unwrap_or_default(), entry.status)
}

#[test]
fn a_line_of_a_load_balancer_is_read_at_the_time_when_the_request_came() {
    let (format, lines) = read(ALB);
    assert_eq!(format, Some(Format::Alb));
    assert_eq!(lines, ["1530570168364 192.168.131.39 GET https://www.example.com:443/a/b?c=d 200"]);
    // Older logs end earlier, and of a request that cannot be read there is no method.
    let old = ALB
        .split(" \"Root=")
        .next()
        .unwrap()
        .replace("GET https://www.example.com:443/a/b?c=d HTTP/1.1", "- http://x:80- ");
    let lines = read(&old.replace("0.037 200 200", "-1 - -").replace("192.168.131.39:2817", "[2001:db8::1]:2817")).1;
    assert_eq!(lines, ["1530570180186 2001:db8::1  0"]);
}

#[test]
fn fields_of_cloudfront_are_known_by_their_names() {
    let (format, lines) = read(CLOUDFRONT);
    assert_eq!(format, Some(Format::Cloudfront));
    assert_eq!(lines, ["1575493351000 192.0.2.24 GET /a%20b/index.html?c=d 200"]);
    // Other fields in another order, and a line that has lost some.
    let other = "#Fields: cs-method cs-uri-stem c-ip time date sc-status\nPUT\t/x\t2001:db8::1\t21:02:31\t2019-12-04\t000\nPUT\t/x\n";
    let expected = ["1575493351000 2001:db8::1 PUT /x 0", "7: 2 values for 6 fields"];
    assert_eq!(read(other).1, expected);
    let json = r#"{"date":"2019-12-04","time":"21:02:31","c-ip":"192.0.2.24","cs-method":"GET","cs-uri-stem":"/a","cs-uri-query":"-","sc-status":"403"}"#;
    assert_eq!(read(json), (Some(Format::CloudfrontJson), vec!["1575493351000 192.0.2.24 GET /a 403".to_owned()]));
}

#[test]
fn what_waf_did_is_read_beside_the_request() {
    let mut reader = Reader::default();
    let entry = reader.line(WAF.as_bytes()).unwrap().unwrap();
    assert_eq!(show(&entry), "1683355579981 52.46.82.45 GET /CanaryTest?a=b 429");
    assert_eq!(entry.fields.get("header.x-tenant"), Some("acme"));
    let waf = entry.waf.unwrap();
    assert_eq!((&*waf.action, &*waf.rule, waf.stopped()), ("BLOCK", "tollgate-rate-auth", true));
    assert_eq!(waf.counted, ["tollgate-rate-all", "in-group"]);
    assert_eq!(reader.format(), Some(Format::Waf));
}

#[test]
fn json_of_api_gateway_is_read_by_the_names_that_people_give_its_variables() {
    let console = r#"{"requestId":"r","ip":"192.0.2.1","caller":"-","user":"-","requestTime":"17/May/2015:10:05:03 +0000","httpMethod":"GET","resourcePath":"/orders/{id}","status":"200","protocol":"HTTP/1.1","responseLength":"12"}"#;
    let http = r#"{"requestId":"r","ip":"192.0.2.1","requestTime":"17/May/2015:10:05:03 +0000","httpMethod":"GET","routeKey":"GET /orders/{id}","status":"200","protocol":"HTTP/1.1","responseLength":"12"}"#;
    let ours = r#"{"requestId":"r","time":"17/May/2015:10:05:03 +0000","method":"GET","path":"/orders/7","status":"429","latencyMs":"3"}"#;
    let nested = r#"{"requestTimeEpoch":1431857103000,"http":{"method":"GET","path":"/orders/7","sourceIp":"192.0.2.1"},"status":200,"authorizer":{"claims":{"sub":"alice"}}}"#;
    let exported = format!("2015-05-17T10:05:03.000Z {nested}");
    assert_eq!(read(console).1, ["1431857103000 192.0.2.1 GET /orders/{id} 200"]);
    assert_eq!(read(http).1, ["1431857103000 192.0.2.1 GET /orders/{id} 200"]);
    assert_eq!(read(ours).1, ["1431857103000 - GET /orders/7 429"]);
    assert_eq!(read(nested), (Some(Format::ApiGateway), vec!["1431857103000 192.0.2.1 GET /orders/7 200".to_owned()]));
    assert_eq!(read(nested).1, read(&exported).1);
    let mut reader = Reader::default();
    let entry = reader.line(nested.as_bytes()).unwrap().unwrap();
    assert_eq!(entry.fields.get("authorizer.claims.sub"), Some("alice"));
}

#[test]
fn a_stage_in_front_of_a_path_is_no_part_of_it() {
    let line = |fields: &str| {
        let line = format!(r#"{{"requestTimeEpoch":"1431857103000","httpMethod":"GET",{fields},"status":"200"}}"#);
        read(&line).1.concat()
    };
    for (fields, path) in [
        (r#""path":"/live/orders/7","stage":"live""#, "/orders/7"),
        (r#""path":"/live","stage":"live""#, "/"),
        (r#""path":"/lively/orders","stage":"live""#, "/lively/orders"),
        (r#""path":"/orders/7","stage":"$default""#, "/orders/7"),
        (r#""path":"/live/orders/7""#, "/live/orders/7"),
        // The pattern of a resource has none.
        (r#""resourcePath":"/live/orders","stage":"live""#, "/live/orders"),
    ] {
        assert_eq!(line(fields), format!("1431857103000 - GET {path} 200"), "{fields}");
    }
}

#[test]
fn what_a_json_line_lacks_is_said() {
    let flaws = [
        ("{\"a\":1", "not a JSON object: EOF while parsing an object"),
        ("{\"a\":1}", "there is no field by which a log of AWS WAF, CloudFront or API Gateway is known"),
        (
            r#"{"requestTime":"yesterday","httpMethod":"GET","path":"/"}"#,
            "`requestTime` is no time as this format writes it",
        ),
        (r#"{"requestTimeEpoch":"1","httpMethod":"GET"}"#, "there is no `path`, `resourcePath` or `routeKey`"),
        (r#"{"timestamp":1,"action":"ALLOW","httpRequest":{}}"#, "there is no `httpMethod` and `uri` in `httpRequest`"),
    ];
    for (line, why) in flaws {
        let read = read(line).1.concat();
        assert!(read.ends_with(why), "{line}: {read}");
    }
}

#[test]
fn a_file_keeps_the_format_of_the_first_line_that_can_be_read() {
    let (format, lines) = read(&format!("# a comment\n\n{ALB}\n{WAF}\n{ALB}"));
    assert_eq!((format, lines.len()), (Some(Format::Alb), 4));
    assert!(lines[0].contains("the line ends where") || lines[0].contains("should"), "{lines:?}");
    assert_eq!(lines[2], "1: there is no type of connection (http, https, h2, grpcs, ws, wss)");
    assert_eq!(lines[1], lines[3]);
}

fn gzip(text: &str) -> Vec<u8> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(text.as_bytes()).unwrap();
    encoder.finish().unwrap()
}

#[test]
fn several_logs_of_several_formats_plain_and_compressed_are_one_replay() {
    let rules = everywhere(limit("per-ip", "client_ip", 1, 3600, 1));
    let mut replay = Replay::new(&rules, Options::default());
    // Two gzip files in a row are one, as `cat a.gz b.gz` makes them.
    let twice = [gzip(CLOUDFRONT), gzip(CLOUDFRONT)].concat();
    for (name, log) in [("alb", ALB.as_bytes().to_vec()), ("cf", twice), ("waf", WAF.as_bytes().to_vec())] {
        replay.read(Some(name), decompressed(log.as_slice()).unwrap(), |_| ()).unwrap();
    }
    let report = replay.report().unwrap();
    let files: Vec<_> = report.files.iter().map(|file| (file.format, file.requests, file.skipped)).collect();
    let expected = [(Format::Alb, 1, 0), (Format::Cloudfront, 2, 0), (Format::Waf, 1, 0)];
    assert_eq!(files, expected.map(|(format, requests, skipped)| (Some(format), requests, skipped)));
    // What WAF stopped is not decided.
    let limit = &report.limits["per-ip"];
    assert_eq!((report.requests, limit.allowed, limit.denied), (4, 2, 1));
    let waf = report.waf.unwrap();
    assert_eq!((waf.stopped, waf.passed, waf.rules["tollgate-rate-all"].counted), (1, 0, 1));
}

#[test]
fn a_log_that_is_cut_within_its_compression_says_where() {
    let whole = gzip(&ALB.repeat(50).replace("\"-\"https", "\"-\"\nhttps"));
    let cut = decompressed(&whole[..whole.len() - 12]).unwrap();
    let rules = everywhere(limit("per-ip", "client_ip", 1, 3600, 1));
    let error = Replay::new(&rules, Options::default()).read(Some("a.gz"), cut, |_| ()).unwrap_err();
    assert!(error.to_string().starts_with("cannot read line "), "{error}");
    assert!(error.to_string().contains(" of a.gz: "), "{error}");
}

/// A request that every format can tell.
#[derive(Debug, Clone)]
struct Told {
    secs: i64,
    ip: std::net::IpAddr,
    method: &'static str,
    path: String,
    status: u16,
}

fn told() -> impl Strategy<Value = Told> {
    let ip = prop_oneof![
        any::<u32>().prop_map(|bits| std::net::Ipv4Addr::from(bits).into()),
        any::<u128>().prop_map(|bits| std::net::Ipv6Addr::from(bits).into())
    ];
    let method = prop::sample::select(vec!["GET", "POST", "PATCH", "M-SEARCH"]);
    (1_000_000_000_i64..4_000_000_000, ip, method, "/[a-z0-9._~/%-]{0,20}", 100_u16..600)
        .prop_map(|(secs, ip, method, path, status)| Told { secs, ip, method, path, status })
}

fn rendered(told: &Told) -> [(Format, String); 6] {
    let Told { secs, ip, method, path, status } = told;
    let at = jiff::Timestamp::from_second(*secs).unwrap();
    let (clf, iso) = (at.strftime("%d/%b/%Y:%H:%M:%S +0000"), at.strftime("%Y-%m-%dT%H:%M:%S.000000Z"));
    let (day, clock) = (at.strftime("%Y-%m-%d"), at.strftime("%H:%M:%S"));
    let millis = secs * 1000;
    let peer = match ip {
        std::net::IpAddr::V4(ip) => format!("{ip}:1"),
        std::net::IpAddr::V6(ip) => format!("[{ip}]:1"),
    };
    [
        (Format::Combined, format!("{ip} - - [{clf}] \"{method} {path} HTTP/1.1\" {status} 1 \"-\" \"-\"")),
        (Format::Alb, format!("h2 {iso} app/x/1 {peer} - 0 0 0 {status} - 1 1 \"{method} https://h:443{path} HTTP/2.0\" \"-\" - - - \"-\" \"-\" \"-\" 0 {iso}")),
        (Format::Cloudfront, format!("#Fields: date time c-ip cs-method cs-uri-stem sc-status\n{day}\t{clock}\t{ip}\t{method}\t{path}\t{status}")),
        (Format::CloudfrontJson, serde_json::json!({"date": day.to_string(), "time": clock.to_string(), "c-ip": ip.to_string(), "cs-method": method, "cs-uri-stem": path, "sc-status": status.to_string()}).to_string()),
        (Format::ApiGateway, serde_json::json!({"requestTimeEpoch": millis.to_string(), "ip": ip.to_string(), "httpMethod": method, "path": path, "status": status.to_string()}).to_string()),
        (Format::Waf, serde_json::json!({"timestamp": millis, "action": "ALLOW", "terminatingRuleId": "Default_Action", "responseCodeSent": status, "httpRequest": {"clientIp": ip.to_string(), "httpMethod": method, "uri": path}}).to_string()),
    ]
}

proptest! {
    #[test]
    fn one_request_is_the_same_in_every_format(told in told()) {
        for (format, text) in rendered(&told) {
            let mut reader = Reader::default();
            let mut lines = text.lines();
            let last = lines.next_back().unwrap();
            for header in lines {
                prop_assert!(reader.line(header.as_bytes()).unwrap().is_none());
            }
            let entry = reader.line(last.as_bytes()).map_err(|e| format!("{text}: {e}")).unwrap().unwrap();
            let request = entry.request.as_ref().unwrap();
            prop_assert_eq!((entry.time.as_secs(), entry.client_ip, entry.status), (told.secs as u64, Some(told.ip), told.status), "{}", text);
            prop_assert_eq!((&*request.method, request.path()), (told.method, &*told.path), "{}", text);
            prop_assert_eq!(reader.format(), Some(format));
        }
    }

    #[test]
    fn any_bytes_are_lines_of_every_format(
        which in 0_usize..6, told in told(), changes in prop::collection::vec((0_usize..400, any::<u8>()), 0..8), cut in 0_usize..500
    ) {
        let (_, text) = rendered(&told)[which].clone();
        let mut bytes = text.into_bytes();
        for (at, byte) in changes {
            let len = bytes.len();
            bytes[at % len] = byte;
        }
        bytes.truncate(cut);
        let mut reader = Reader::default();
        for line in bytes.split(|b| *b == b'\n') {
            if let Err(error) = reader.line(line) {
                prop_assert!((1..=line.len() + 1).contains(&error.column), "{} of {}", error.column, line.len());
            }
        }
    }

    #[test]
    fn it_does_not_matter_how_a_log_is_split_into_files(
        times in prop::collection::vec(0_u64..60, 1..60), cuts in prop::collection::vec(0_usize..60, 0..4), held in 1_usize..20
    ) {
        let lines: Vec<_> = times.iter().map(|secs| crate::support::line(["192.0.2.1", "192.0.2.2"][*secs as usize % 2], "-", *secs, "/")).collect();
        let rules = everywhere(limit("per-ip", "client_ip", 1, 5, 3));
        let whole = crate::support::run(lines.concat().as_bytes(), &rules);
        let mut options = Options::default();
        options.held = held;
        let mut replay = Replay::new(&rules, options);
        let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut.min(lines.len())).chain([0, lines.len()]).collect();
        cuts.sort_unstable();
        for part in cuts.windows(2) {
            let text = lines[part[0]..part[1]].concat();
            let log = if part[0] % 2 == 0 { gzip(&text) } else { text.into_bytes() };
            replay.read(None, decompressed(log.as_slice()).unwrap(), |_| ()).unwrap();
        }
        prop_assert_eq!(replay.report().unwrap(), whole);
    }
}
