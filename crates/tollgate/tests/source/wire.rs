//! What goes over the wire to SSM and S3, and what is made of answers that are none.

use crate::harness::{Service, at, parameter, policy};
use axum::http::StatusCode;
use tollgate::source::{Error, PolicySource, Reader};

async fn reader(source: &str, service: &Service) -> Reader {
    Reader::open(source.parse::<PolicySource>().unwrap(), &at(&service.url)).await.unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_parameter_is_asked_for_decrypted_and_signed() {
    let service = Service::start().await;
    service.then(parameter(&policy(1, "5/s"), 7));
    let loaded = reader("ssm:/tollgate/policy", &service).await.load().await.unwrap();
    assert_eq!((loaded.text, loaded.version.as_deref()), (Some(policy(1, "5/s")), Some("7")));
    let asked = service.asked().remove(0);
    assert_eq!((asked.method.as_str(), asked.uri.path()), ("POST", "/"));
    assert_eq!(asked.headers["x-amz-target"], "AmazonSSM.GetParameter");
    assert_eq!(&asked.body[..], br#"{"Name":"/tollgate/policy","WithDecryption":true}"#);
    let authorization = asked.headers["authorization"].to_str().unwrap();
    assert!(authorization.contains("/us-east-1/ssm/aws4_request, SignedHeaders=content-type;host;x-amz-date"));
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_has_not_changed_is_not_sent_again() {
    let service = Service::start().await;
    let mut reader = reader("s3://bucket/a b/é.toml", &service).await;
    service.then(([("etag", "\"one\"")], "1")).then((StatusCode::NOT_MODIFIED, ""));
    service.then(([("etag", "\"two\"")], "2"));
    let mut texts = Vec::new();
    for _ in 0..3 {
        texts.push(reader.load().await.unwrap().text);
    }
    assert_eq!(texts, [Some("1".to_owned()), None, Some("2".to_owned())]);
    let asked = service.asked();
    assert_eq!(asked[0].uri.path(), "/bucket/a%20b/%C3%A9.toml");
    let conditions: Vec<_> =
        asked.iter().map(|a| a.headers.get("if-none-match").map(|v| v.to_str().unwrap())).collect();
    // A 304 without an entity tag keeps the one that it answers.
    assert_eq!(conditions, [None, Some("\"one\""), Some("\"one\"")]);
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_that_is_no_text_is_sent_again_so_that_it_is_told_again() {
    let service = Service::start().await;
    let mut reader = reader("s3://bucket/key", &service).await;
    for _ in 0..2 {
        service.then(([("etag", "\"one\"")], b"caf\xe9".to_vec()));
        let error = reader.load().await.unwrap_err();
        assert!(matches!(error, Error::NotText { valid_up_to: 3, .. }), "{error}");
    }
    assert!(service.asked().iter().all(|asked| !asked.headers.contains_key("if-none-match")));
}

#[tokio::test(flavor = "multi_thread")]
async fn what_may_pass_is_asked_once_more_and_what_may_not_is_not() {
    let throttled = r#"{"__type":"ThrottlingException","message":"Rate exceeded"}"#;
    let denied = r#"{"__type":"AccessDeniedException","message":"not authorized"}"#;
    let cases = [
        (StatusCode::INTERNAL_SERVER_ERROR, "", 2),
        (StatusCode::BAD_REQUEST, throttled, 2),
        (StatusCode::OK, "no JSON", 2),
        (StatusCode::BAD_REQUEST, denied, 1),
    ];
    for (status, body, times) in cases {
        let service = Service::start().await;
        let mut reader = reader("ssm:/tollgate/policy", &service).await;
        for _ in 0..times {
            service.then((status, body));
        }
        let error = reader.load().await.unwrap_err();
        assert_eq!((service.asked().len(), error.is_transient()), (times, times == 2), "{error}");
        assert!(!error.to_string().contains('\n'), "{error}");
        service.then((status, body)).then(parameter("x", 1));
        assert_eq!(reader.load().await.is_ok(), times == 2, "one failure that passes is not seen");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_answer_beyond_the_bound_is_not_read() {
    let service = Service::start().await;
    service.then(vec![b'#'; (1 << 20) + 1]);
    let error = reader("s3://bucket/key", &service).await.load().await.unwrap_err();
    assert!(matches!(error, Error::TooLarge { .. }), "{error}");
    assert_eq!(service.asked().len(), 1);
}

#[tokio::test(flavor = "multi_thread")]
async fn nobody_there_and_nobody_answering_are_told_apart() {
    let place = || "ssm:/tollgate/policy".parse::<PolicySource>().unwrap();
    let closed = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap();
    let error = Reader::open(place(), &at(&format!("http://{closed}"))).await.unwrap().load().await.unwrap_err();
    assert!(matches!(error, Error::NoAnswer { .. }), "{error}");
    // Accepts connections by the operating system's backlog and never answers.
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let options = at(&format!("http://{}", silent.local_addr().unwrap())).timeout(std::time::Duration::from_millis(40));
    let error = Reader::open(place(), &options).await.unwrap().load().await.unwrap_err();
    assert!(matches!(error, Error::Late { .. }), "{error}");
    let error = Reader::open(place(), &at("ftp://example")).await.unwrap_err();
    assert!(matches!(error, Error::Setup { .. }) && error.to_string().contains("http://"), "{error}");
}
