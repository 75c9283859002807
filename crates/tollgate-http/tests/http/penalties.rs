//! What whoever is locked out is told, and waits that are told with jitter.

use crate::support::App;
use std::collections::BTreeSet;
use std::time::Duration;

fn policy(more: &str) -> String {
    format!(
        "version = 1\n[limits.login]\nkey = [\"user\"]\nrate = \"5/min\"\n{more}\n\
         [[routes]]\nmatch = \"POST /login\"\ncharge = [\"login\"]\n"
    )
}

const PENALTY: &str = "penalty = { first = \"1min\", factor = 2, most = \"1h\", forget = \"24h\" }";

async fn spend(app: &App, user: &str) {
    for _ in 0..5 {
        assert_eq!(app.ask("POST", "/login", user, &[]).await.status, 201);
    }
}

#[tokio::test]
async fn whoever_is_denied_again_waits_longer() {
    let app = App::new(&policy(PENALTY));
    for minutes in [1, 2, 4] {
        spend(&app, "mallory").await;
        let denied = app.ask("POST", "/login", "mallory", &[]).await;
        let wait = minutes * 60;
        assert_eq!((denied.status, denied.header("retry-after")), (429, Some(&*wait.to_string())));
        assert_eq!(denied.header("ratelimit"), Some(&*format!("\"login\";r=0;t={wait}")));
        assert_eq!((&denied.json()["retryAfter"], &denied.json()["limit"]), (&wait.into(), &"login".into()));
        app.clock.advance(Duration::from_secs(wait - 1));
        let locked = app.ask("POST", "/login", "mallory", &[]).await;
        assert_eq!(
            (locked.status, locked.header("ratelimit")),
            (429, Some("\"login\";r=0;t=1")),
            "nothing is left of five"
        );
        assert_eq!(app.ask("POST", "/login", "alice", &[]).await.status, 201, "another user is untouched");
        app.clock.advance(Duration::from_secs(1));
    }
}

#[tokio::test]
async fn a_hidden_limit_tells_nothing_of_its_lock_but_the_wait() {
    let app = App::new(&policy(&format!("{PENALTY}\nheaders = \"hidden\"")));
    spend(&app, "mallory").await;
    let denied = app.ask("POST", "/login", "mallory", &[]).await;
    assert_eq!((denied.status, denied.header("retry-after")), (429, Some("60")));
    assert!(!denied.text.contains("login") && !denied.text.contains("penalty"), "{}", denied.text);
    assert!(denied.header("ratelimit").is_none() && denied.header("ratelimit-policy").is_none());
}

#[tokio::test]
async fn a_crowd_is_told_different_waits_none_of_them_too_short() {
    for (more, least) in [("", 12), (PENALTY, 60)] {
        let app = App::new(&policy(&format!("{more}\nretry_jitter = \"10s\"")));
        let mut waits = BTreeSet::new();
        for user in (0..100).map(|n| format!("user-{n}")) {
            spend(&app, &user).await;
            let denied = app.ask("POST", "/login", &user, &[]).await;
            let wait: u64 = denied.header("retry-after").expect("a wait").parse().expect("seconds");
            assert!((least..=least + 10).contains(&wait), "{wait} s of {least} s and ten more");
            assert_eq!(denied.header("ratelimit"), Some(&*format!("\"login\";r=0;t={wait}")));
            assert_eq!(denied.json()["retryAfter"], wait);
            waits.insert(wait);
        }
        assert!(waits.len() > 5, "{waits:?}");
        app.clock.advance(Duration::from_secs(least));
        assert_eq!(app.ask("POST", "/login", "user-0", &[]).await.status, 201, "what is decided is the true wait");
    }
}
