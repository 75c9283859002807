//! `TOLLGATE_POLICY` as text.

use tollgate::source::{Error, PolicySource, Reader, ReaderOptions};

#[test]
fn every_place_is_shown_as_it_is_written() {
    let texts = [
        "tollgate.toml",
        "/opt/tollgate.toml",
        "ssm:/tollgate/policy",
        "s3://bucket/a/b c.toml",
        "appconfig://app/prod/policy",
    ];
    for text in texts {
        let source: PolicySource = text.parse().unwrap();
        assert_eq!(source.to_string(), text);
        assert_eq!(matches!(source, PolicySource::File(_)), text.ends_with("tollgate.toml"), "{text}");
    }
}

#[test]
fn what_names_no_place_is_told_how_to_write_one() {
    let cases = [
        ("", "ssm:NAME"),
        ("ssm:", "ssm:/tollgate/policy"),
        ("s3://bucket", "s3://bucket/key"),
        ("s3://bucket/", "s3://bucket/key"),
        ("s3:///key", "s3://bucket/key"),
        ("appconfig://app/env", "appconfig://application/environment/profile"),
        ("appconfig://app//profile", "appconfig://application/environment/profile"),
        ("appconfig://a/b/c/d", "appconfig://application/environment/profile"),
        ("https://example.com/tollgate.toml", "s3://BUCKET/KEY"),
    ];
    for (text, help) in cases {
        let error = text.parse::<PolicySource>().unwrap_err();
        assert!(error.to_string().contains(help), "{text}: {error}");
    }
}

#[tokio::test]
async fn a_file_is_read_within_bounds_and_must_be_text() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("tollgate.toml");
    let mut reader = Reader::open(PolicySource::File(path.clone()), &ReaderOptions::default()).await.unwrap();
    assert!(matches!(reader.load().await, Err(Error::Read { .. })));
    std::fs::write(&path, vec![b'#'; 1 << 20]).unwrap();
    assert_eq!(reader.load().await.unwrap().text.unwrap().len(), 1 << 20);
    std::fs::write(&path, vec![b'#'; (1 << 20) + 1]).unwrap();
    assert!(matches!(reader.load().await, Err(Error::TooLarge { .. })));
    std::fs::write(&path, b"version = 1 # caf\xe9").unwrap();
    assert!(matches!(reader.load().await, Err(Error::NotText { valid_up_to: 17, .. })));
}
