//! The message in the caller's language.

use crate::support::{App, SAMPLE};
use serde_json::json;

#[tokio::test]
async fn the_message_is_in_the_language_that_is_preferred_and_there() {
    let app = App::new(SAMPLE);
    app.ask_exhausted("alice", &[]).await;
    let cases = [
        ("ro", "ro"),
        ("ro-RO", "ro"),
        ("RO-ro,en;q=0.9", "ro"),
        ("en;q=0.3, ro;q=0.7", "ro"),
        ("vi, ro;q=0.2", "ro"),
        ("ro;q=0, en", "en"),
        ("vi", "en"),
        ("*", "en"),
        (";;q=,,=", "en"),
        ("", "en"),
    ];
    for (accepts, language) in cases {
        let denied = app.ask("POST", "/api/orders", "alice", &[("accept-language", accepts)]).await;
        assert_eq!(denied.header("content-language"), Some(language), "{accepts}");
        assert!(denied.list("vary").contains("Accept-Language"));
        let expected = match language {
            "ro" => "Planul tău permite 50/h. Încearcă din nou în 72 s.",
            _ => "Your plan allows 50/h. Try again in 72 s.",
        };
        assert_eq!(denied.json()["message"], json!(expected), "{accepts}");
    }
}
