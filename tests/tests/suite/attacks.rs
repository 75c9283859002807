//! `tollgate attack`: guesses, races and sprays against a server of the command's own, beside people.

use crate::harness::{json, repository, run};
use serde_json::Value;
use std::fs;
use std::path::Path;
use tempfile::NamedTempFile;

/// The sample policy with one text in place of another.
fn sample_with(from: &str, to: &str) -> NamedTempFile {
    let sample = fs::read_to_string(repository("infra/tollgate.toml")).unwrap();
    let changed = sample.replace(from, to);
    assert_ne!(sample, changed);
    let file = tempfile::Builder::new().suffix(".toml").tempfile().unwrap();
    fs::write(&file, changed).unwrap();
    file
}

/// Plays one on a policy, and returns what is told and the page with the chart.
fn play(attack: &str, policy: &Path) -> (Value, String) {
    let folder = tempfile::tempdir().unwrap();
    let page = folder.path().join("page.html");
    let (at, policy) = (page.to_str().unwrap(), policy.to_str().unwrap());
    let told = json(&run(&["attack", attack, "--json", "--html", at, "--policy", policy]));
    let page = fs::read_to_string(page).unwrap();
    assert!(page.contains("<svg") && !page.contains("<script") && !page.contains("src="), "{page}");
    (told, page)
}

#[test]
fn who_has_a_password_and_guesses_for_a_day_has_ten_guesses_an_hour() {
    let (told, page) = play("otp-bruteforce", &repository("infra/tollgate.toml"));
    let of = |figure: &str| told[figure].as_u64().unwrap();
    // Ten an hour, in windows that begin with the first code after the last one is over.
    assert!((200..=250).contains(&of("compared")), "{told}");
    assert!(of("guesses") > of("compared") && of("refused_after_s") < 3600, "{told}");
    assert_eq!((of("honest"), of("honest_blocked")), (24, 0), "{told}");
    assert!(page.contains("even odds take"), "{page}");
    let series = told["series"].as_array().unwrap();
    assert_eq!(series.last().unwrap()["compared"], told["compared"], "the chart ends where the figures do");
}

#[test]
fn guesses_have_as_many_digits_as_codes_have() {
    let eight = sample_with("digits    = 6", "digits    = 8");
    let (told, _) = play("otp-bruteforce", eight.path());
    assert!((200..=250).contains(&told["compared"].as_u64().unwrap()), "{told}");
    assert!(told["years_for_even_odds"].as_f64().unwrap() > 700.0, "{told}");
    let (told, _) = play("otp-race", eight.path());
    assert_eq!(told["compared"], 10 * 5 + 10, "{told}");
}

#[test]
fn where_nothing_can_be_attacked_there_are_no_figures() {
    let other = sample_with(r#""login""#, r#""sign-in""#);
    for attack in ["otp-bruteforce", "otp-race"] {
        let out = run(&["attack", attack, "--policy", other.path().to_str().unwrap()]);
        let error = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(1), "{attack}: {out:?}");
        assert!(error.contains("nothing is attacked") && error.contains("known purposes"), "{attack}: {error}");
    }
}

#[test]
fn of_fifty_callers_at_once_one_is_verified_and_five_guesses_are_compared() {
    let (told, _) = play("otp-race", &repository("infra/tollgate.toml"));
    let of = |figure: &str| told[figure].as_u64().unwrap();
    assert_eq!((of("guesses"), of("right")), (1000, 10), "{told}");
    // Of wrong ones five a round; of right ones the one that is verified.
    assert_eq!(of("compared"), 10 * 5 + 10, "{told}");
    assert_eq!((of("honest"), of("honest_blocked")), (20, 0), "{told}");
}

#[test]
fn a_spray_is_stopped_by_the_limit_of_all_strangers_and_known_devices_sign_in() {
    let (told, _) = play("password-spray", sample_with("1000/15min", "100/15min").path());
    let of = |figure: &str| told[figure].as_u64().unwrap();
    // A window that slides over five quarters of an hour.
    assert!(of("compared") <= 500 && of("guesses") == 3000, "{told}");
    // Of sixty people half are strangers, too.
    assert!(of("honest") == 60 && of("honest_blocked") <= 30, "{told}");
}

#[test]
fn nobody_elsewhere_is_attacked() {
    for url in ["http://203.0.113.7:8787", "https://127.0.0.1:8787", "example.com"] {
        let out = run(&["attack", "otp-race", "--url", url]);
        assert_eq!(out.status.code(), Some(1), "{url}");
        assert!(String::from_utf8_lossy(&out.stderr).contains("nobody else is attacked"), "{out:?}");
    }
}
