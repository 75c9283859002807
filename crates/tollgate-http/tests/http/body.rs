//! Fields of the body as dimensions, and the body as the handler gets it.

use crate::caller::{charged, v1, v2};
use crate::support::App;
use axum::body::Body;
use axum::routing::any;
use http::{Request, StatusCode};
use http_body::Frame;
use http_body_util::{BodyExt, StreamBody};
use serde_json::{Value, json};
use std::convert::Infallible;
use tollgate::http::{Facts, MAX_BODY_BYTES};

const JSON: &str = "application/json";
const FORM: &str = "application/x-www-form-urlencoded";

const POLICY: &str = "version = 1\n[identity]\naccount = { body = \"username\" }\n\
    [limits.a]\nkey = [\"account\"]\nrate = \"5/h\"\n[limits.u]\nkey = [\"user\"]\nrate = \"5/h\"\n\
    [[routes]]\nmatch = \"POST /login\"\ncharge = [\"a\"]\n[[routes]]\nmatch = \"POST /other\"\ncharge = [\"u\"]\n";

fn post(path: &str, content_type: Option<&str>, body: impl Into<Body>) -> Request<Body> {
    let mut request = Request::post(path).extension(Facts::default());
    if let Some(content_type) = content_type {
        request = request.header("content-type", content_type);
    }
    request.body(body.into()).expect("a request")
}

fn echo(policy: &str) -> App {
    App::with_handler(policy, any(async |body: Body| (StatusCode::CREATED, body)))
}

/// The account that a body is counted by, once the handler has had the same body.
async fn counted(content_type: Option<&str>, body: impl AsRef<[u8]>) -> String {
    counted_by("username", content_type, body).await
}

/// The same by another field.
async fn counted_by(field: &str, content_type: Option<&str>, body: impl AsRef<[u8]>) -> String {
    let app = echo(&POLICY.replace("username", field));
    let sent = body.as_ref().to_vec();
    let answered = app.send(post("/login", content_type, sent.clone())).await;
    assert_eq!(answered.status, 201);
    assert_eq!(answered.bytes, sent, "the handler echoes what it got");
    let keys = app.store.keys();
    let missing = app.store.memory.counters().counts().missing_dimensions;
    assert_eq!(missing == 1, keys[0].starts_with('?'), "{keys:?}");
    keys[0].strip_prefix("account:").unwrap_or("missing").to_owned()
}

#[tokio::test]
async fn a_field_of_json_or_of_a_form_is_a_dimension() {
    let json = r#" { "password" : "x", "username" : "bob+x@example.com", "nested": {"username": "eve"} } "#;
    for content_type in [
        Some(JSON),
        Some("application/json; charset=utf-8"),
        Some("application/vnd.api+json"),
        Some("text/plain"),
        None,
    ] {
        assert_eq!(counted(content_type, json).await, "bob+x@example.com", "{content_type:?}");
    }
    assert_eq!(counted(Some(FORM), "password=x&username=bob%2Bx%40example.com").await, "bob+x@example.com");
    assert_eq!(counted(Some("application/x-www-form-urlencoded;charset=\"UTF-8\""), "username=a+b").await, "a b");
    assert_eq!(
        counted(Some(JSON), "{\"user\\u006eame\":\"\u{dc}n\u{ef}c\u{f6}d\u{e9} \\u65e5\u{672c}\"}").await,
        "Ünïcödé 日本"
    );
    assert_eq!(counted(Some(JSON), "\u{feff}{\"username\":\"marked\"}").await, "marked");
}

#[tokio::test]
async fn numbers_and_booleans_are_values_and_one_number_has_one_spelling() {
    for (value, text) in
        [("7", "7"), ("7.0", "7"), ("7e0", "7"), ("-0.0", "0"), ("1.5", "1.5"), ("-0.5", "-0.5"), ("true", "true")]
    {
        assert_eq!(counted(Some(JSON), format!("{{\"username\":{value}}}")).await, text, "{value}");
    }
    for value in
        ["9007199254740992", "9007199254740993", "-9007199254740993", "1e300", "123456789012345678901234567890"]
    {
        let counted = counted(Some(JSON), format!("{{\"username\":{value}}}")).await;
        assert_eq!(counted, "missing", "{value} is another number to JavaScript than to Python");
    }
    assert_eq!(counted(Some(JSON), r#"{"username":9007199254740991}"#).await, "9007199254740991");
    for value in ["null", "[]", "[\"a\"]", "{\"a\":1}", "\"\""] {
        assert_eq!(counted(Some(JSON), format!("{{\"username\":{value}}}")).await, "missing", "{value}");
    }
}

/// Parsers differ in which of several they take.
#[tokio::test]
async fn a_field_that_could_be_read_in_two_ways_has_no_value() {
    for body in [
        r#"{"username":"bogus","username":"victim"}"#,
        r#"{"username":"bogus","username":["victim"]}"#,
        r#"{"username":"bogus","Username":"victim"}"#,
        "{\"username\":\"bogus\",\"u\u{17f}ername\":\"victim\"}",
        r#"{"USERNAME":"victim"}"#,
        r#"{"username":"bogus"} {"username":"victim"}"#,
        r#"{"username":"victim"}&username=bogus"#,
        r#"{"username":"victim",}&username=bogus"#,
        r#" /* a=b */ {"username":"victim"} //&username=bogus"#,
        "#&username=bogus\n{\"username\":\"victim\"}",
        ")]}'\n{\"username\":\"victim\"}&username=bogus",
        // UTF-16 in both orders, which Python's and Java's parsers tell by the zeros.
        "{\0\"\0x\0\"\0:\0\"\0&username=bogus&\"\0,\0\"\0u\0s\0e\0r\0n\0a\0m\0e\0\"\0:\0\"\0v\0\"\0}\0",
        "\0{\0}&username=bogus&",
        r#"{"username":"bogus","x":"&username=victim&y="}"#,
        "username=bogus&username=victim",
        "username=bogus&USERNAME=victim",
        // By PHP, and by Rack up to 2, and everybody else.
        "username=bogus& username=victim",
        "username=bogus&%20username=victim",
        "username=bogus&username%00=victim",
        "username=bogus&username[]=victim",
        "x=1;username=victim&username=bogus",
        "username=bogus;username=victim",
        r#"[{"username":"victim"}]&username=bogus"#,
        "<a>&username=bogus&</a>",
        "\u{feff}username=victim&username=bogus",
        "\u{feff}{\"username\":\"victim\"}&username=bogus",
        r#"{"username":"victim","x":"&username=bogus&y="}"#,
    ] {
        for content_type in [Some(JSON), Some(FORM), None] {
            assert_eq!(counted(content_type, body).await, "missing", "{content_type:?}: {body}");
        }
    }
    assert_eq!(counted(Some(JSON), r#"{"username":"a","username":"a"}"#).await, "a");
    assert_eq!(counted(Some(FORM), "username=a&username=a").await, "a");
}

/// A name of a bracket or a zero is another field to most, and this one to some.
#[tokio::test]
async fn a_name_that_some_parser_takes_for_the_field_leaves_it_without_a_value() {
    let zero = format!("{{\"user_name\":\"bogus\",\"user_name\\u0000{}\":\"victim\"}}", "x".repeat(100));
    for body in [
        // PHP makes an underscore of a bracket that is not closed, of a blank and of a dot.
        "user_name=bogus&user[name=victim",
        "user_name=bogus&user.name=victim",
        "user_name=bogus&user%20name=victim",
        "user_name=bogus&%20user[name%00x=victim",
        // Rack up to 2, and qs of the first.
        "user_name=bogus&[user_name]=victim",
        "user_name=bogus&user_name]=victim",
        "user_name=bogus&[[]user_name]]=victim",
        "user_name=bogus&[user_name][x]=victim",
        "user_name=bogus&user_name[x=victim",
        &zero,
        "{\"user_name\":\"bogus\",\"user[name\":\"victim\"}",
    ] {
        for content_type in [Some(JSON), Some(FORM), None] {
            assert_eq!(counted_by("user_name", content_type, body).await, "missing", "{content_type:?}: {body}");
        }
    }
    // A blank at the end is one of the name to PHP, and none to those who trim.
    for (field, other) in [("user_", "user%20"), ("user_", "user["), ("user", "user%20"), ("user", "%20user")] {
        let body = format!("{field}=bogus&{other}=victim");
        assert_eq!(counted_by(field, Some(FORM), body).await, "missing", "{field}, {other}");
    }
    // Nobody takes these for it.
    for body in ["user_name=a&x[user_name]=b", "user_name=a&username=b", "user_name=a&user_name_=b", "user_name=a&[]=b"]
    {
        assert_eq!(counted_by("user_name", Some(FORM), body).await, "a", "{body}");
    }
}

const MULTIPART: &str = "multipart/form-data; boundary=b";

fn multipart(fields: &[(&str, &str)]) -> String {
    let part = |(name, value): &(&str, &str)| {
        format!("--b\r\nContent-Disposition: form-data; name=\"{name}\"\r\n\r\n{value}\r\n")
    };
    fields.iter().map(part).collect::<String>() + "--b--\r\n"
}

/// Whoever reads the parts reads other fields than their text spells as a form.
#[tokio::test]
async fn a_body_of_another_media_type_has_no_fields_that_its_text_spells() {
    let disguised = multipart(&[("username", "victim"), ("x", "1&username=bogus&")]);
    for content_type in [Some(MULTIPART), Some("Multipart/Form-Data;boundary=\"b\""), Some(FORM), Some(JSON), None] {
        for front in ["", "\r\n", "username=bogus&x=\r\n", "\u{feff}"] {
            assert_eq!(counted(content_type, format!("{front}{disguised}")).await, "missing", "{content_type:?}");
        }
    }
    for content_type in ["application/xml", "application/octet-stream", "text/html", "application/yaml", "json", "*/*"]
    {
        for body in ["username=bogus", r#"{"username":"bogus"}"#, "<a b='&username=bogus&'/>"] {
            assert_eq!(counted(Some(content_type), body).await, "missing", "{content_type}: {body}");
        }
    }
    // A browser's form of that type is `username=a+b` for the user `a+b`.
    assert_eq!(counted(Some("text/plain"), "username=a+b").await, "missing");
    assert_eq!(counted(Some("text/plain"), r#"{"x":"&username=bogus&"}"#).await, "missing");
    assert_eq!(counted(Some("text/plain; charset=UTF-8"), r#"{"username":"a"}"#).await, "a", "as beacons are sent");
    for content_type in ["", " Application/JSON ", "text/json", "application/problem+json;", "application/json; q=1"] {
        assert_eq!(counted(Some(content_type), r#"{"username":"a"}"#).await, "a", "{content_type:?}");
    }
}

/// Handlers differ in which line they take, and gateways join them.
#[tokio::test]
async fn headers_that_can_be_read_in_two_ways_leave_a_body_without_fields() {
    let doubled: [(&str, &[&[u8]]); 11] = [
        ("content-type", &[b"application/json", b"multipart/form-data; boundary=b"]),
        ("content-type", &[b"application/json", b"application/json"]),
        ("content-type", &[b"application/json, multipart/form-data; boundary=b"]),
        ("content-type", &[b"application/json; a=b, multipart/form-data; boundary=b"]),
        ("content-type", &[b"application/json; charset=utf-8; charset=utf-16"]),
        ("content-type", &[b"application/json; charset=\xe9"]),
        ("content-type", &[b"\xff"]),
        ("content-encoding", &[b"identity", b"gzip"]),
        ("content-encoding", &[b"identity, gzip"]),
        ("content-encoding", &[b"\xff"]),
        ("content-encoding", &[b"", b"gzip"]),
    ];
    for (name, lines) in doubled {
        let app = App::new(POLICY);
        let mut sent = post("/login", None, r#"{"username":"a"}"#);
        for line in lines {
            sent.headers_mut().append(name, http::HeaderValue::from_bytes(line).expect("a value"));
        }
        assert_eq!(app.send(sent).await.status, 201);
        assert_eq!(app.store.keys(), ["?account:missing"], "{name}: {lines:?}");
    }
    let app = App::new(POLICY);
    let mut plain = post("/login", Some(JSON), r#"{"username":"a"}"#);
    plain.headers_mut().insert("content-encoding", "identity".parse().expect("a value"));
    app.send(plain).await;
    assert_eq!(app.store.keys(), ["account:a"]);
}

#[tokio::test]
async fn what_cannot_be_read_is_no_value_and_no_error() {
    for body in [
        &b""[..],
        b"{",
        b"[]",
        b"\"username\"",
        b"7",
        b"\xff\xfe{\0\"\0",
        b"{\"username\":\"\xff\"}",
        b"username",
        b"\0",
    ] {
        assert_eq!(counted(Some(JSON), body).await, "missing", "{body:?}");
    }
    let deep = format!("{{\"username\":\"a\",\"x\":{}{}}}", "[".repeat(20_000), "]".repeat(20_000));
    assert!(["a", "missing"].contains(&counted(Some(JSON), deep).await.as_str()));
    let json = r#"{"username":"a"}"#;
    assert_eq!(counted(Some("application/json; charset=utf-16"), json).await, "missing");
    let app = App::new(POLICY);
    let mut zipped = post("/login", Some(JSON), json);
    zipped.headers_mut().insert("content-encoding", "gzip".parse().expect("a value"));
    assert_eq!(app.send(zipped).await.status, 201);
    assert_eq!(app.store.keys(), ["?account:missing"]);
}

/// A body of several pieces without a length, as HTTP/1.1 sends it in chunks.
fn streamed(pieces: Vec<Vec<u8>>, trailers: bool) -> Body {
    let mut frames: Vec<_> = pieces.into_iter().map(|piece| Ok::<_, Infallible>(Frame::data(piece.into()))).collect();
    if trailers {
        let trailers = http::HeaderMap::from_iter([(http::header::EXPIRES, "0".parse().expect("a value"))]);
        frames.push(Ok(Frame::trailers(trailers)));
    }
    Body::new(StreamBody::new(futures_util::stream::iter(frames)))
}

#[tokio::test]
async fn a_body_over_64_kb_has_no_value_and_reaches_the_handler_whole() {
    let json = |bytes: usize| {
        let start = r#"{"username":"a","filler":""#;
        format!("{start}{}\"}}", "x".repeat(bytes - start.len() - 2)).into_bytes()
    };
    assert_eq!(counted(Some(JSON), json(MAX_BODY_BYTES)).await, "a");
    assert_eq!(counted(Some(JSON), json(MAX_BODY_BYTES + 1)).await, "missing");
    for (bytes, account) in
        [(MAX_BODY_BYTES, "account:a"), (MAX_BODY_BYTES + 1, "?account:missing"), (1_000_000, "?account:missing")]
    {
        for trailers in [false, true] {
            let whole = json(bytes);
            let pieces = whole.chunks(1000).map(<[u8]>::to_vec).collect();
            let app = echo(POLICY);
            let answered = app.send(post("/login", Some(JSON), streamed(pieces, trailers))).await;
            assert_eq!((answered.status, answered.bytes == whole), (201, true));
            assert_eq!(app.store.keys(), [account]);
        }
    }
}

#[tokio::test]
async fn an_error_and_trailers_of_a_body_reach_the_handler() {
    let frames = vec![Ok(Frame::data("{".into())), Err(std::io::Error::other("cut"))];
    let mut body = Body::new(StreamBody::new(futures_util::stream::iter(frames)));
    assert_eq!(tollgate::http::Peek::peek(&mut body, 100).await, None);
    assert_eq!(body.frame().await.expect("a frame").expect("data").into_data().expect("data"), "{");
    assert!(body.frame().await.expect("a frame").expect_err("the error").to_string().contains("cut"));

    let mut body = streamed(vec![b"ab".to_vec(), b"cd".to_vec()], true);
    assert_eq!(tollgate::http::Peek::peek(&mut body, 100).await.expect("whole"), "abcd");
    let collected = body.collect().await.expect("no error");
    assert!(collected.trailers().is_some_and(|trailers| trailers.contains_key("expires")));
    assert_eq!(collected.to_bytes(), "abcd");
}

#[tokio::test]
async fn a_body_is_read_only_where_a_dimension_is_in_it() {
    let pending =
        Body::new(StreamBody::new(futures_util::stream::pending::<Result<Frame<axum::body::Bytes>, Infallible>>()));
    let app = App::with_handler(POLICY, any(async || StatusCode::CREATED));
    assert_eq!(app.send(post("/other", Some(JSON), pending)).await.status, 201, "decided without waiting for it");
}

#[tokio::test]
async fn events_have_bodies_too_base64_or_not() {
    let identity = "account = { body = \"username\" }";
    for mut event in [v1(Value::Null, "prod"), v2(Value::Null, "$default", "192.0.2.1")] {
        event["httpMethod"] = "POST".into();
        event["body"] = json!({ "username": "alice" }).to_string().into();
        event["isBase64Encoded"] = false.into();
        assert_eq!(charged(identity, "account", &event).await, "account:alice");
        event["body"] = "eyJ1c2VybmFtZSI6ImFsaWNlIn0=".into();
        event["isBase64Encoded"] = true.into();
        assert_eq!(charged(identity, "account", &event).await, "account:alice");
        event["body"] = Value::Null;
        event["isBase64Encoded"] = false.into();
        assert_eq!(charged(identity, "account", &event).await, "?account:missing");
    }
}
