//! The line format: what servers write, and what is said about lines that are cut or not of the format.

use tollgate_replay::{Entry, Flaw};

const TIME: &str = "17/May/2015:10:05:03 +0000";

fn parse(line: &str) -> Entry<'_> {
    Entry::parse(line.as_bytes()).unwrap()
}

fn flaw(line: &str) -> (usize, Flaw) {
    let error = Entry::parse(line.as_bytes()).unwrap_err();
    (error.column, error.flaw)
}

/// Method, target and path of a request line.
fn request(request: &str) -> Option<(String, String, String)> {
    let line = format!("192.0.2.1 - - [{TIME}] \"{request}\" 200 1");
    let request = parse(&line).request?;
    Some((request.method.to_string(), request.target.to_string(), request.path().to_owned()))
}

fn path(target: &str) -> String {
    request(&format!("GET {target} HTTP/1.1")).unwrap().2
}

#[test]
fn a_combined_line_is_read() {
    let line = format!("192.0.2.1 - frank [{TIME}] \"GET /a?b=c HTTP/1.1\" 200 2326 \"http://x/\" \"Mozilla/5.0 (X)\"");
    let entry = parse(&line);
    assert_eq!(entry.time.as_secs(), 1_431_857_103);
    assert_eq!(entry.client_ip, Some("192.0.2.1".parse().unwrap()));
    assert_eq!(entry.user.as_deref(), Some("frank"));
    assert_eq!((entry.status, entry.size), (200, Some(2326)));
    let request = entry.request.unwrap();
    assert_eq!((&*request.method, &*request.target, request.path()), ("GET", "/a?b=c", "/a"));
}

#[test]
fn the_common_format_and_further_fields_and_line_ends_are_accepted() {
    let common = format!("2001:db8::1 - - [{TIME}] \"GET / HTTP/1.1\" 304 -");
    let expected = parse(&common);
    assert_eq!((expected.size, &expected.user), (None, &None));
    for end in
        [" \"-\" \"-\"", " \"-\" \"curl \\\"8\\\"\" 0.003 \"203.0.113.9\"", " 1234", "\n", "\r\n", " \"-\" \"-\"\r\n"]
    {
        assert_eq!(parse(&format!("{common}{end}")), expected, "{end:?}");
    }
}

#[test]
fn users_may_be_empty_escaped_or_of_several_words() {
    for (written, user) in [
        ("-", None),
        ("\"\"", None),
        ("john doe", Some("john doe")),
        ("j\\xc3\\xb6rg", Some("jörg")),
        ("a\\\"b\\\\c\\qd\\x4", Some("a\"b\\c\\qd\\x4")),
    ] {
        let line = format!("192.0.2.1 - {written} [{TIME}] \"GET / HTTP/1.1\" 200 1");
        assert_eq!(parse(&line).user.as_deref(), user, "{written}");
    }
}

#[test]
fn a_client_that_is_a_host_name_has_no_address() {
    for client in ["crawler.example.com", "1.2.3", "01.2.3.4"] {
        let line = format!("{client} - - [{TIME}] \"GET / HTTP/1.1\" 200 1");
        assert_eq!(parse(&line).client_ip, None, "{client}");
    }
}

#[test]
fn what_is_no_http_request_is_still_a_line() {
    for nothing in ["-", "", "\\x16\\x03\\x01\\x02 \\x01", "GET", " / HTTP/1.1", "GET  HTTP/1.1"] {
        assert_eq!(request(nothing), None, "{nothing:?}");
    }
    let line = format!("192.0.2.1 - - [{TIME}] \"-\" 408 0 \"-\" \"-\"");
    assert_eq!(parse(&line).status, 408);
}

#[test]
fn request_lines_of_every_form_are_read() {
    let read = |line| request(line).map(|(method, target, _)| (method, target));
    let of = |method: &str, target: &str| Some((method.to_owned(), target.to_owned()));
    assert_eq!(read("GET /"), of("GET", "/"));
    assert_eq!(read("GET /a b HTTP/1.1"), of("GET", "/a b"));
    assert_eq!(read("M-SEARCH * HTTP/1.1"), of("M-SEARCH", "*"));
    assert_eq!(read("CONNECT example.com:443 HTTP/1.1"), of("CONNECT", "example.com:443"));
    assert_eq!(read("GET /\\\"x\\\" HTTP/1.1"), of("GET", "/\"x\""));
    assert_eq!(path("/a/b?c=/d#e"), "/a/b");
    assert_eq!(path("/a#b?c"), "/a");
    assert_eq!(path("http://example.com/a/b?c"), "/a/b");
    assert_eq!(path("http://example.com"), "/");
    assert_eq!(path("http://example.com?a=/b"), "/");
    assert_eq!(path("/go/http://example.com/a"), "/go/http://example.com/a");
    assert_eq!(path("/go?to=http://example.com/a"), "/go");
}

#[test]
fn bytes_that_are_not_utf_8_are_replaced() {
    let line = b"192.0.2.1 - - [17/May/2015:10:05:03 +0000] \"GET /\xff\xfe HTTP/1.1\" 200 1";
    assert_eq!(Entry::parse(line).unwrap().request.unwrap().path(), "/\u{fffd}\u{fffd}");
}

#[test]
fn a_flaw_says_what_and_where() {
    let time = format!("192.0.2.1 - - [{TIME}]");
    assert_eq!(flaw(""), (1, Flaw::Ends("client")));
    assert_eq!(flaw("192.0.2.1"), (10, Flaw::Ends("identity")));
    assert_eq!(flaw("192.0.2.1 -"), (12, Flaw::Ends("user")));
    assert_eq!(flaw("192.0.2.1 - -"), (14, Flaw::Ends("time")));
    assert_eq!(flaw("192.0.2.1 - - 17/May"), (15, Flaw::Opening("time", '[')));
    assert_eq!(flaw("192.0.2.1 - - [17/May/2015"), (27, Flaw::Closing("time", ']')));
    assert_eq!(flaw("192.0.2.1 - - [17/May/2015] \"GET / HTTP/1.1\" 200 1"), (16, Flaw::Time));
    assert_eq!(flaw(&format!("a.example:80 192.0.2.1 - - [{TIME}] \"GET / HTTP/1.1\" 200 1")), (24, Flaw::ExtraField));
    assert_eq!(flaw(&time), (43, Flaw::Ends("request")));
    assert_eq!(flaw(&format!("{time} GET / HTTP/1.1 200 1")), (44, Flaw::Opening("request", '"')));
    assert_eq!(flaw(&format!("{time} \"GET / HT")), (53, Flaw::Closing("request", '"')));
    assert_eq!(flaw(&format!("{time} \"GET / HT\\\"")), (55, Flaw::Closing("request", '"')));
    assert_eq!(flaw(&format!("{time} \"GET / HT\\")), (54, Flaw::Closing("request", '"')));
    assert_eq!(flaw(&format!("{time} \"GET / HTTP/1.1\" 20")), (61, Flaw::Status));
    assert_eq!(flaw(&format!("{time} \"GET / HTTP/1.1\" 2000 1")), (61, Flaw::Status));
    assert_eq!(flaw(&format!("{time} \"GET / HTTP/1.1\" 200")), (64, Flaw::Ends("size")));
    assert_eq!(flaw(&format!("{time} \"GET / HTTP/1.1\" 200 1k")), (65, Flaw::Size));
    assert_eq!(flaw(&format!("{time} \"GET / HTTP/1.1\" 200 99999999999999999999")), (65, Flaw::Size));
    assert_eq!(flaw(&format!("{time} \"GET / HTTP/1.1\" 200 1 \"-\" \"Moz")), (75, Flaw::Closing("agent", '"')));
}

#[test]
fn times_that_do_not_exist_are_refused() {
    for time in [
        "30/Feb/2015:10:05:03 +0000",
        "29/Feb/2015:10:05:03 +0000",
        "29/Feb/2100:10:05:03 +0000",
        "00/May/2015:10:05:03 +0000",
        "31/Apr/2015:10:05:03 +0000",
        "17/may/2015:10:05:03 +0000",
        "17/Mai/2015:10:05:03 +0000",
        "17/May/2015:24:00:00 +0000",
        "17/May/2015:10:60:03 +0000",
        "17/May/2015:10:05:60 +0000",
        "17/May/2015:10:05:03 00000",
        "17/May/2015:10:05:03 +2400",
        "17/May/2015:10:05:03 +0060",
        "17/May/2015 10:05:03 +0000",
        "17/May/2015:10:05:03",
        "7/May/2015:10:05:03 +0000",
        "31/Dec/1969:23:59:59 +0000",
        "01/Jan/1970:00:00:00 +0001",
        "01/Jan/2555:00:00:00 +0000",
        "+7/May/2015:10:05:03 +0000",
    ] {
        let line = format!("192.0.2.1 - - [{time}] \"GET / HTTP/1.1\" 200 1");
        assert_eq!(flaw(&line), (16, Flaw::Time), "{time}");
    }
}
