//! What a document shows beside what was printed: equal but for times, ids and codes, which are other ones each time.
//!
//! Invariant: `…` (or `...`) stands for anything; whatever else is shown was printed, in that order, and nothing besides.

use std::collections::BTreeMap;

/// What was shown, and stands for what was printed.
pub type Learned = BTreeMap<String, String>;

fn is_time(word: &str) -> bool {
    let shape: String = word.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).collect();
    shape.starts_with("0000-00-00T00:00:00") && shape.ends_with('Z')
}

/// 128 bits in base64url.
fn is_id(word: &str) -> bool {
    let has = |of: fn(&char) -> bool| word.chars().any(|c| of(&c));
    word.len() == 22 && has(char::is_ascii_uppercase) && has(char::is_ascii_lowercase) && !word.contains([':', '.'])
}

fn is_code(word: &str, before: Option<char>) -> bool {
    word.len() == 6 && before == Some('"') && word.chars().all(|c| c.is_ascii_digit())
}

/// The text with a name of its kind in place of each such word, and the words.
fn normal(text: &str) -> (String, Vec<String>) {
    let (mut out, mut words, mut rest) = (String::new(), Vec::new(), text);
    while let Some(first) = rest.chars().next() {
        let of_word = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | ':' | '.');
        let word = &rest[..rest.find(|c: char| !of_word(c)).unwrap_or(rest.len())];
        // A keyed hash has the name of its secret before a dot.
        let hash = word.split_once('.').filter(|(_, hash)| is_id(hash));
        match hash {
            _ if word.is_empty() => {
                out.push(first);
                rest = &rest[first.len_utf8()..];
                continue;
            }
            Some((secret, _)) => out.extend([secret, ".‹id›"]),
            None if is_time(word) => out.push_str("‹time›"),
            None if is_id(word) => out.push_str("‹id›"),
            None if is_code(word, out.chars().next_back()) => out.push_str("‹code›"),
            None => out.push_str(word),
        }
        if out.ends_with('›') {
            words.push(word.to_owned());
        }
        rest = &rest[word.len()..];
    }
    (out, words)
}

/// Whether what was printed is what is shown; what it teaches about words that differ is learned.
pub fn is_shown(shown: &str, printed: &str, learned: &mut Learned) -> bool {
    let shown = shown.trim_end().replace("...", "…");
    let (expected, words) = normal(&shown);
    let mut words = words.into_iter();
    let (actual, printed_words) = normal(printed.trim_end());
    let parts: Vec<_> = expected.split('…').collect();
    let (mut at, mut taught) = (0, Vec::new());
    for (nth, part) in parts.iter().enumerate() {
        let (first, last, rest) = (nth == 0, nth + 1 == parts.len(), &actual[at..]);
        let found = if last && !first { rest.rfind(part) } else { rest.find(part) };
        let Some(found) = found.filter(|found| !first || *found == 0) else { return false };
        // Each word has ended with this sign.
        let before = actual[..at + found].matches('›').count();
        let known = words.by_ref().take(part.matches('›').count());
        taught.extend(known.zip(&printed_words[before..]).map(|(shown, printed)| (shown, printed.clone())));
        at += found + part.len();
    }
    if at != actual.len() {
        return false;
    }
    learned.extend(taught);
    true
}

#[test]
fn times_ids_and_codes_may_differ_and_nothing_else() {
    let mut learned = Learned::new();
    let is = |shown: &str, printed: &str| is_shown(shown, printed, &mut Learned::new());
    let shown = r#"{"challenge":"zyZ76WSpHsfLah3cx5jtVw","expires_in":300}"#;
    let printed = r#"{"challenge":"AyZ76WSpHsfLah3cx5jt-_","expires_in":300}"#;
    assert!(is_shown(shown, printed, &mut learned));
    assert_eq!(learned["zyZ76WSpHsfLah3cx5jtVw"], "AyZ76WSpHsfLah3cx5jt-_");
    assert!(!is(shown, &printed.replace("300", "301")));
    assert!(is("until 2026-11-30T06:02:36Z", "until 2027-01-01T00:00:00Z\n"));
    assert!(is("a\n…\nz", "a\nb\nc\nz") && is("a ... z", "a b z") && is("a…", "abc"));
    assert!(!is("a\n…\nz", "a\nb") && !is("a", "ab") && !is("b", "ab") && !is("", "a") && !is("a…c", "ab"));
    assert!(is(r#""code":"282368""#, r#""code":"000001""#) && !is("282368", "000001"));
    assert!(is_shown(
        r#"[{…,"code":"282368",…}]"#,
        r#"[{"id":"AAyZ76WSpHsfLah3cx5jtV","code":"135790","n":1}]"#,
        &mut learned
    ));
    assert_eq!(learned["282368"], "135790");
    assert!(is("dev.zyZ76WSpHsfLah3cx5jtVw", "dev.AyZ76WSpHsfLah3cx5jt-_"));
}
